"""A finished study: everything is in its place, whole, and made again byte by byte."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from tiny import Finished

from benchmirt.files import read_json


def results(finished: Finished) -> Path:
    return finished.folder / "results"


def test_the_run_ends_with_the_page_and_the_verdicts(finished: Finished) -> None:
    assert "Report: results/report/index.html" in finished.run.text
    assert "Verdicts: " in finished.run.text
    page = (results(finished) / "report" / "index.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")


def test_every_benchmark_has_its_page_and_the_report_links_to_it(finished: Finished) -> None:
    home = results(finished) / "report"
    text = (home / "index.html").read_text(encoding="utf-8")
    links = {line.split('"')[0] for line in text.split('href="')[1:] if line.startswith("benchmark/")}
    pages = {path.relative_to(home).as_posix() for path in home.glob("benchmark/*.html")}
    assert links == pages == {f"benchmark/{name}.html" for name in ("sums", "refusals", "second")}
    with (results(finished) / "profiles" / "benchmarks.csv").open(encoding="utf-8", newline="") as stream:
        assert {row["benchmark"] for row in csv.DictReader(stream)} == {"sums", "refusals", "second"}


def test_every_job_left_a_log_and_a_benchmark(finished: Finished) -> None:
    for job in finished.run.jobs:
        assert job.outputs
    logs = list((results(finished) / "logs").rglob("*.log"))
    benchmarks = list((results(finished) / "benchmarks").rglob("*.tsv"))
    assert len(logs) == len(benchmarks) == len(finished.run.jobs)
    for log in logs:
        text = log.read_text(encoding="utf-8")
        assert "started with" in text
        assert "ended after" in text
        assert "Traceback" not in text


def test_no_temporary_file_is_left(finished: Finished) -> None:
    snakemakes = ".snakemake_timestamp"  # in the folder of the pages of benchmarks
    assert not [path for path in results(finished).rglob(".*") if path.name != snakemakes]


def test_the_fits_table_lists_the_fits_that_there_are(finished: Finished) -> None:
    with (results(finished) / "fits.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    listed = {f"{row['fit']}/seed{seed}.nc" for row in rows for seed in row["seeds"].split()}
    there = {
        path.relative_to(results(finished) / "fits").as_posix()
        for path in results(finished).glob("fits/*/*.nc")
    }
    assert listed == there


def test_times_stand_beside_the_fits_and_not_in_them(finished: Finished) -> None:
    for fit in results(finished).glob("fits/*/*.nc"):
        usage = json.loads(fit.with_suffix(".run.json").read_text(encoding="utf-8"))
        assert usage["seconds"] > 0
        assert usage["peak_mb"] > 0
        assert usage["threads"] == 1
        assert usage["devices"] == (2 if fit.parent.name == "nuts" else 1)


def test_every_claim_has_its_record_and_its_row(finished: Finished) -> None:
    with (results(finished) / "claims" / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["claim"] for row in rows] == finished.config["claims"]["only"]
    for row in rows:
        record = json.loads(
            (results(finished) / "claims" / f"{row['claim']}.json").read_text(encoding="utf-8")
        )
        assert record["corrected"]["verdict"] == row["corrected_verdict"]
        assert record["why"]


@pytest.mark.slow
def test_more_jobs_and_threads_give_the_same_bytes(finished: Finished, tmp_path: Path) -> None:
    """Run the whole study again with four cores, so that more jobs run at once and NUTS has a core per chain."""
    again = tmp_path / "again"
    shutil.copytree(finished.folder, again, ignore=shutil.ignore_patterns("results", ".snakemake"))
    run = finished.workflow.call(again, "--cores", "4")
    assert run.code == 0, run.text[-6000:]
    nuts = json.loads((again / "results" / "fits" / "nuts" / "seed0.run.json").read_text(encoding="utf-8"))
    assert nuts["threads"] == 2
    apart = ("logs/", "benchmarks/")
    names = {
        path.relative_to(results(finished)).as_posix()
        for path in results(finished).rglob("*")
        if path.is_file() and not path.name.endswith(".run.json")
    }
    compared = sorted(name for name in names if not name.startswith(apart))
    assert len(compared) > 50
    different = [
        name
        for name in compared
        if (again / "results" / name).read_bytes() != (results(finished) / name).read_bytes()
    ]
    assert different == []


def test_jobs_ask_for_memory_by_the_larger_matrix(finished: Finished, tmp_path: Path) -> None:
    """As much as thousands of models would take, whatever stands first among a job's inputs."""
    shutil.copytree(finished.folder, tmp_path / "tiny")
    path = tmp_path / "tiny" / "results" / "matrix" / "honest" / "summary.json"
    path.write_text(json.dumps({**read_json(path), "models": 4500, "items": 21600}))
    forced = ("fit_first", "consensus", "claim", "claims_table")
    run = finished.workflow.dry(tmp_path / "tiny", "--forcerun", *forced)
    asked: dict[str, set[int]] = {rule: set() for rule in forced}
    for rule, megabytes in re.findall(r"^rule (\w+):$.*?mem_mb=(\d+)", run.text, re.MULTILINE | re.DOTALL):
        asked.setdefault(rule, set()).add(int(megabytes))
    cells = 4500 * 21600 / 1e6
    assert {rule: asked[rule] for rule in forced} == {
        "fit_first": {int(1500 + 200 * cells)},
        "consensus": {int(1000 + 50 * cells)},
        "claim": {int(1500 + 100 * cells)},
        "claims_table": {500},
    }
