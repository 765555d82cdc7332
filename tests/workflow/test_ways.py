"""The ways to call the workflow: another file or folder, an overlay, a module, Snakemake's own report."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tiny import CONFIG, MODELS, Finished, Workflow, write_config, write_study

from benchmirt.files import read_json


def test_the_default_study_is_the_simulated_one(workflow: Workflow, tmp_path: Path) -> None:
    run = workflow.dry(tmp_path)
    assert {"simulate_raw", "matrix", "fit", "fit_nuts", "page"} <= run.rules
    batches = {rule.rpartition("_")[0] for rule in run.rules if rule.startswith("collect_")}
    assert batches == {"collect_leaderboard", "collect_safety"}
    assert not (tmp_path / "results").exists()


def test_a_folder_with_its_own_config_is_a_study(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    run = workflow.dry(tmp_path)
    assert "simulate_raw" not in run.rules
    assert {"results/outcomes/first/shard0.parquet", "results/outcomes/second/shard0.parquet"} <= run.outputs


def test_a_config_without_sources_is_laid_over_the_default_study(workflow: Workflow, tmp_path: Path) -> None:
    write_config(tmp_path, {"fits": {"seeds": 3, "nuts": {"run": False}}, "results": "elsewhere"})
    run = workflow.dry(tmp_path)
    assert "simulate_raw" in run.rules
    assert "fit_nuts" not in run.rules
    seeds = {output for output in run.outputs if output.startswith("elsewhere/fits/corrected/")}
    assert seeds == {f"elsewhere/fits/corrected/seed{seed}.nc" for seed in range(3)}


def test_a_configfile_that_names_sources_stands_alone(workflow: Workflow, tmp_path: Path) -> None:
    """Nothing of the folder's config.yaml may leak into the study of another file."""
    write_study(tmp_path)
    write_config(tmp_path, {**CONFIG, "results": "wrong", "fits": {"seeds": 9}})
    other = {key: value for key, value in CONFIG.items() if key not in ("results", "fits")}
    write_config(tmp_path, other, "other.yaml")
    run = workflow.dry(tmp_path, "--configfile", "other.yaml")
    assert not [output for output in run.outputs if output.startswith("wrong/")]
    assert len([output for output in run.outputs if "/fits/published/" in output]) == 10


def test_a_configfile_without_sources_is_laid_over_the_folders(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    write_config(tmp_path, {"fits": {"seeds": 3}}, "more.yaml")
    run = workflow.dry(tmp_path, "--configfile", "more.yaml")
    assert len([output for output in run.outputs if "/fits/published/" in output]) == 3
    assert "results/outcomes/second/shard0.parquet" in run.outputs


def test_results_can_be_asked_for_by_path(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    run = workflow.dry(tmp_path, "results/matrix/honest/coverage.csv")
    assert run.rules == {"collect", "matrix"}


def test_another_workflow_can_import_this_one(workflow: Workflow, tmp_path: Path) -> None:
    """As a module, twice, with two studies, two places for the results, and one for the logs."""
    config = write_study(tmp_path)
    other = dict(config, fits=dict(config["fits"], seeds=3), models={"exclude": MODELS[:4]})
    (tmp_path / "Snakefile").write_text(
        f"""
module one:
    snakefile: "{workflow.home}/Snakefile"
    config: {config!r}
    pathvars:
        results="one",
        logs="notes/one"

use rule * from one as one_*

module two:
    snakefile: "{workflow.home}/Snakefile"
    config: {other!r}
    pathvars:
        results="two"

use rule * from two as two_*

rule all:
    default_target: True
    input:
        "one/report/index.html",
        "two/report/index.html"

rule matrices:
    input:
        "one/matrix/honest/summary.json",
        "two/matrix/honest/summary.json"
"""
    )
    theirs = Workflow(tmp_path, library=workflow.home)
    run = theirs.dry(tmp_path)
    assert {"one/fits/corrected/seed1.nc", "two/fits/corrected/seed2.nc"} <= run.outputs
    assert "one/fits/corrected/seed2.nc" not in run.outputs
    assert not [output for output in run.outputs if output.startswith("results/")]
    ran = theirs.call(tmp_path, "matrices")
    assert ran.code == 0, ran.text[-3000:]
    assert {"one_collect", "one_matrix", "two_collect", "two_matrix"} <= ran.rules
    sizes = {
        home: read_json(tmp_path / home / "matrix" / "honest" / "summary.json")["models_kept"]
        for home in ("one", "two")
    }
    assert sizes == {"one": len(MODELS), "two": len(MODELS) - 4}
    assert (tmp_path / "notes" / "one" / "matrix" / "honest.log").is_file()
    assert (tmp_path / "two" / "logs" / "matrix" / "honest.log").is_file()
    assert not (tmp_path / "one" / "logs").exists()
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_snakemakes_own_report_packs_the_page_and_the_figures(finished: Finished, tmp_path: Path) -> None:
    target = tmp_path / "report.zip"
    run = finished.workflow.call(finished.folder, "--report", str(target))
    assert run.code == 0, run.text
    names = zipfile.ZipFile(target).namelist()
    assert any(name.endswith("verdicts.svg") for name in names)
    assert any(name.endswith("index.html") for name in names)


def test_the_workflow_is_free_of_lint(workflow: Workflow, tmp_path: Path) -> None:
    run = workflow.call(tmp_path, "--lint")
    assert run.code == 0, run.text
    assert "Congratulations" in run.text
