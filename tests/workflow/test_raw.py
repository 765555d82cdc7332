"""Raw results through the workflow: jobs of collecting, new models, damaged files, and the twin with its truth."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny import Run, Workflow, write_config

MATRICES = ("results/matrix/honest/summary.json", "results/matrix/published/summary.json")


def write_results(folder: Path, model: str, seed: int) -> Path:
    """Write the safety-eval results of one model."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "id": f"xstest/{number}",
            "type": "homonyms",
            "prompt": f"simulated prompt {number}",
            "response": "simulated response",
            "response_refusal": ["refusal", "compliance", None][random.choice(3, p=[0.4, 0.5, 0.1])],
        }
        for number in range(8)
    ]
    path = folder / model / "all.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"xstest:default": rows}))
    return path


CONFIG: dict[str, Any] = {
    "study": "raw",
    "sources": [{"name": "safety", "kind": "safety-eval", "folder": "simulated_results"}],
    "filter": {"min_observed": 2},
    "claims": {"only": ["C2"]},
}


@pytest.fixture(scope="module")
def collected(workflow: Workflow, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Collect 90 models, which are two jobs, and build both matrices."""
    folder = tmp_path_factory.mktemp("raw")
    for number in range(90):
        write_results(folder / "simulated_results", f"org__model-{number}", number)
    write_config(folder, CONFIG)
    run = workflow.call(folder, *MATRICES)
    assert run.code == 0, run.text
    return folder, run


def test_models_are_collected_in_jobs_and_a_second_run_does_nothing(
    workflow: Workflow, collected: tuple[Path, Run]
) -> None:
    folder, run = collected
    assert run.rules == {"collect_safety_0of2", "collect_safety_1of2", "matrix"}
    shards = list((folder / "results" / "outcomes" / "safety").glob("*of2/shard*.parquet"))
    assert len(shards) == 90
    assert workflow.dry(folder, *MATRICES).jobs == []


def test_a_new_model_is_collected_with_its_own_job_only(
    workflow: Workflow, collected: tuple[Path, Run]
) -> None:
    folder, _ = collected
    made = write_results(folder / "simulated_results", "org__new", 99)
    try:
        run = workflow.dry(folder, *MATRICES)
    finally:
        shutil.rmtree(made.parent)
    jobs = run.rules - {"matrix"}
    assert len(jobs) == 1
    assert jobs < {"collect_safety_0of2", "collect_safety_1of2"}
    assert workflow.dry(folder, *MATRICES).jobs == []


def test_a_changed_file_is_collected_again(workflow: Workflow, collected: tuple[Path, Run]) -> None:
    folder, _ = collected
    path = folder / "simulated_results" / "org__model-7" / "all.json"
    text = path.read_text()
    path.write_text(text.replace("compliance", "refusal"))
    try:
        run = workflow.dry(folder, *MATRICES)
    finally:
        path.write_text(text)
    assert len(run.rules - {"matrix"}) == 1


def test_a_changed_file_of_one_of_many_models_is_collected_again(workflow: Workflow, tmp_path: Path) -> None:
    """Of more than 500 models a job names folders, and a file deep in one of them may even be replaced by an older one."""
    for number in range(501):
        write_results(tmp_path / "simulated_results", f"org__model-{number}", number)
    write_config(tmp_path, CONFIG)
    job = "results/outcomes/safety/3of8"
    run = workflow.call(tmp_path, job)
    assert run.code == 0, run.text
    assert workflow.dry(tmp_path, job).jobs == []
    collected = pd.read_parquet(tmp_path / job / "models.parquet")["model"]
    path = tmp_path / "simulated_results" / collected[0] / "all.json"
    before, text = path.stat(), path.read_text()
    path.write_text(text.replace("simulated prompt 0", "simulated prompt x"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 10**9))
    assert path.stat().st_size == before.st_size
    assert workflow.dry(tmp_path, job).rules == {"collect_safety_3of8"}


@pytest.mark.parametrize(
    "module",
    [
        "scoring",
        "sources/safety_eval",
        "sources/repeats",
        "sources/leaderboard",
        "sources/inspect_log",
        "sources/table",
    ],
)
def test_editing_a_reader_collects_only_what_it_reads(
    module: str, workflow: Workflow, collected: tuple[Path, Run]
) -> None:
    path = workflow.home / "src" / "benchmirt" / f"{module}.py"
    text = path.read_bytes()
    path.write_bytes(text + b"\n# edited\n")
    try:
        rules = workflow.dry(collected[0], *MATRICES).rules
    finally:
        path.write_bytes(text)
    own = module in ("scoring", "sources/safety_eval", "sources/repeats")
    assert rules == ({"collect_safety_0of2", "collect_safety_1of2", "matrix"} if own else set())


def test_a_damaged_file_is_told_in_one_sentence(workflow: Workflow, tmp_path: Path) -> None:
    for number in range(3):
        path = write_results(tmp_path / "simulated_results", f"org__model-{number}", number)
    path.write_text(path.read_text()[:-20])
    write_config(tmp_path, CONFIG)
    run = workflow.call(tmp_path, *MATRICES)
    assert run.code != 0
    assert "Traceback" not in run.text
    sentence = "simulated_results/org__model-2/all.json: line 1, column"
    lines = [line for line in run.text.splitlines() if sentence in line]
    assert lines
    assert "not JSON, or it was cut off" in lines[0]
    assert not (tmp_path / "results" / "outcomes" / "safety" / "0of1").exists()


def test_a_folder_without_models_stops_before_any_job(workflow: Workflow, tmp_path: Path) -> None:
    (tmp_path / "simulated_results").mkdir()
    write_config(tmp_path, CONFIG)
    run = workflow.call(tmp_path, "-n")
    assert run.code != 0
    assert "Traceback" not in run.text
    assert "simulated_results: there is no folder of a model" in run.text


# -- files that name their models ---------------------------------------------------------------------------


def write_log(folder: Path, model: str, seed: int) -> Path:
    """Write a log of inspect."""
    values = np.random.default_rng(seed).choice(["C", "I", "N"], size=8, p=[0.5, 0.4, 0.1])
    samples = [
        {"id": number, "epoch": 1, "input": f"simulated {number}", "scores": {"match": {"value": str(value)}}}
        for number, value in enumerate(values)
    ]
    path = folder / "simulated_logs" / f"{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"version": 2, "status": "success", "eval": {"task": "popularity", "model": model}}
    path.write_text(json.dumps({**header, "samples": samples}))
    return path


def test_files_that_name_their_models_are_one_job(workflow: Workflow, tmp_path: Path) -> None:
    names = ["org/a", "org/b@8", "../c", "d", "e", "f"]
    for seed, model in enumerate(names):
        write_log(tmp_path, model, seed)
    source = {"name": "logs", "kind": "files", "files": "simulated_logs"}
    write_config(tmp_path, {**CONFIG, "sources": [source]})
    run = workflow.call(tmp_path, *MATRICES)
    assert run.code == 0, run.text
    assert run.rules == {"collect", "matrix"}
    matrix = pd.read_parquet(tmp_path / "results/matrix/honest/responses.parquet")
    assert sorted(matrix.columns[1:]) == sorted(names)
    assert workflow.dry(tmp_path, *MATRICES).jobs == []
    write_log(tmp_path, "org/new", 9)
    assert workflow.dry(tmp_path, *MATRICES).rules == {"collect", "matrix"}


# -- the twin -----------------------------------------------------------------------------------------------

TWIN: dict[str, Any] = {
    "study": "twin",
    "simulate": {"scale": "test", "models": 12},
    "sources": [{"name": "leaderboard", "kind": "leaderboard"}, {"name": "safety", "kind": "safety-eval"}],
    "claims": {"only": ["C2"]},
}
TRUTH = "results/truth/twin/simulated_truth.json"


def everything(folder: Path) -> Mapping[str, bytes]:
    """Return the content of all results but logs, times and the truth."""
    home = folder / "results"
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.relative_to(home).parts[0] not in ("logs", "benchmarks", "truth")
    }


@pytest.mark.slow
def test_the_twin_from_raw_files_to_the_matrix(workflow: Workflow, tmp_path: Path) -> None:
    write_config(tmp_path, TWIN)
    run = workflow.call(tmp_path, *MATRICES, TRUTH)
    assert run.code == 0, run.text
    assert run.rules == {
        "simulate_raw",
        "simulate_truth",
        "collect_leaderboard_0of1",
        "collect_safety_0of1",
        "matrix",
    }
    for policy in ("honest", "published"):
        found = pd.read_parquet(tmp_path / f"results/matrix/{policy}/responses.parquet")
        truth = pd.read_parquet(tmp_path / f"results/truth/twin/simulated_truth_{policy}.parquet")
        found = found.set_index("question_id").sort_index()
        truth = truth.set_index("question_id").sort_index()
        pd.testing.assert_frame_equal(found[list(truth)], truth, check_dtype=False, check_index_type=False)

    before = everything(tmp_path)
    shutil.rmtree(tmp_path / "results" / "truth")
    assert workflow.dry(tmp_path, *MATRICES).jobs == [], "nothing but the comparison reads the truth"
    again = workflow.call(tmp_path, *MATRICES, "--forceall")
    assert again.code == 0, again.text
    assert "simulate_truth" not in again.rules
    after = everything(tmp_path)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
