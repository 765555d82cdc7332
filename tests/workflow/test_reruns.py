"""What runs again after a change: exactly what depends on it, told by dry runs on a finished study."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny import MODELS, Finished

SEEDED = {"consensus", "reproducibility"}  # read every seed of the headline fits
AFTER_CONSENSUS = {
    "stability",
    "leave_one_out",
    "bootstrap",
    "checks",
    "labels",
    "item_model_statistics",
    "calibration",
    "profiles",
}
CATALOGUE = {f"figure_{sheet}" for sheet in ("verdicts", "dimensions", "tests", "prediction")}
DRAWN = CATALOGUE | {"figure_claims_1"}
JUDGED = {"claim", "claims_table"}
PAGES = {"page", "benchmark_pages"}
FITTED = {"fit", "fit_first", "fit_nuts"}
FROM_MATRIX = (
    FITTED | SEEDED | AFTER_CONSENSUS | JUDGED | DRAWN | PAGES | {"number", "prediction", "data_card"}
)
EVERYTHING = FROM_MATRIX | {"collect", "matrix", "fits_table"}

# Edited module of the library -> rules that run again. `fit` stands for svi and em, see the test of the engines.
AFTER_EDITING: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "logs": set(),
    "launch": set(),
    "config": set(),
    "simulate": set(),  # the study has no simulated source
    "sources/table": EVERYTHING - {"fits_table"},
    "matrix": FROM_MATRIX | {"matrix"},
    "prediction/rasch": {"prediction", "page"} | JUDGED | DRAWN - {"figure_dimensions"},
    "dimensions/checks": {"checks", "page"},
    "directions": {"data_card", "page"},
    "figures/abilities": DRAWN | PAGES,
    "report/page": PAGES,
    "profiles/own": {"profiles"} | PAGES,
    "report/profile": PAGES,
}


@contextmanager
def edited(path: Path) -> Iterator[None]:
    """Append a comment to a source file, and put it back with its time."""
    text, stat = path.read_bytes(), path.stat()
    path.write_bytes(text + b"\n# edited\n")
    try:
        yield
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_second_run_does_nothing(finished: Finished) -> None:
    run = finished.dry()
    assert run.jobs == []
    assert "Nothing to be done" in run.text


@pytest.mark.parametrize("module", AFTER_EDITING)
def test_editing_a_module_runs_exactly_what_uses_it(module: str, finished: Finished) -> None:
    path = finished.workflow.home / "src" / "benchmirt" / f"{module}.py"
    if not path.is_file():
        path = path.with_suffix("") / "__init__.py"
    with edited(path):
        assert finished.dry().rules == AFTER_EDITING[module]
    assert finished.dry().jobs == []


@pytest.mark.parametrize("engine", ["svi", "em", "nuts"])
def test_editing_an_engine_runs_its_own_fits_only(engine: str, finished: Finished) -> None:
    path = finished.workflow.home / "src" / "benchmirt" / "inference" / f"{engine}.py"
    with edited(path):
        run = finished.dry()
    fits = {
        output.split("/")[2]
        for job in run.jobs
        for output in job.outputs
        if output.startswith("results/fits/") and output.endswith(".nc")
    }
    own = {"svi": {"published", "corrected"}, "em": {"dims-k1", "dims-k2"}, "nuts": {"nuts"}}
    if engine == "em":  # families of refits use it too
        assert {"stability", "number", "leave_one_out", "bootstrap", "prediction"} <= run.rules
    assert own[engine] <= fits
    assert not fits & own["nuts" if engine == "svi" else "svi"]


def test_touching_a_table_runs_nothing(finished: Finished) -> None:
    os.utime(finished.folder / "first.csv")
    assert finished.dry().jobs == []


def test_a_table_that_is_replaced_by_an_older_one_is_read_again(finished: Finished) -> None:
    path = finished.folder / "first.csv"
    content, stat = path.read_bytes(), path.stat()
    rows = content.decode().splitlines()
    path.write_text("\n".join([rows[0], rows[1][:-1] + str(1 - int(rows[1][-1])), *rows[2:]]) + "\n")
    os.utime(path, (0, 0))
    try:
        assert "collect" in finished.dry().rules
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert finished.dry().jobs == []


def test_editing_a_script_runs_its_rule(finished: Finished) -> None:
    with edited(finished.workflow.home / "scripts" / "figure.py"):
        assert finished.dry().rules == DRAWN | {"page"}
    assert finished.dry().jobs == []


def changed(finished: Finished, section: str, **keys: Any) -> dict[str, Any]:
    config = copy.deepcopy(finished.config)
    config.setdefault(section, {}).update(keys)
    return config


def test_another_seed_runs_only_that_seed_and_what_reads_it(finished: Finished) -> None:
    run = finished.dry(config=changed(finished, "fits", seeds=3))
    fits = {output for output in run.outputs if output.startswith("results/fits/")}
    assert fits == {"results/fits/published/seed2.nc", "results/fits/corrected/seed2.nc"}
    assert run.rules == {"fits_table", "fit"} | SEEDED | AFTER_CONSENSUS | JUDGED | PAGES | DRAWN - {
        "figure_prediction"
    }


def test_a_title_runs_what_shows_it(finished: Finished) -> None:
    config = {**copy.deepcopy(finished.config), "title": "Another title"}
    assert finished.dry(config=config).rules == DRAWN | PAGES | {"calibration", "profiles"}
    assert finished.dry(config=changed(finished, "report", title="Another heading")).rules == PAGES


def test_settings_of_an_engine_run_its_fits_only(finished: Finished) -> None:
    nuts = {**finished.config["fits"]["nuts"], "draws": 21}
    assert finished.dry(config=changed(finished, "fits", nuts=nuts)).rules == {"fit_nuts", "checks", "page"}


def test_more_splits_run_the_stability_test_and_what_reads_it(finished: Finished) -> None:
    run = finished.dry(config=changed(finished, "dimensions", splits=3))
    assert "stability" in run.rules
    assert not run.rules & (FITTED | SEEDED | {"number", "bootstrap", "leave_one_out", "matrix"})


def test_another_claim_is_judged_alone(finished: Finished) -> None:
    only = [*finished.config["claims"]["only"], "C6"]
    run = finished.dry(config=changed(finished, "claims", only=only))
    assert {output for output in run.outputs if output.startswith("results/claims/C")} == {
        "results/claims/C6.json"
    }
    assert not run.rules & (FITTED | AFTER_CONSENSUS - {"leave_one_out"} | {"matrix", "collect", "number"})


def test_another_model_leaves_the_other_source_alone(finished: Finished) -> None:
    table = finished.folder / "second.csv"
    before, stat = table.read_bytes(), table.stat()
    frame = pd.read_csv(table)
    frame[MODELS[34]] = 1 - frame[MODELS[2]]
    frame.to_csv(table, index=False)
    try:
        run = finished.dry()
    finally:
        table.write_bytes(before)
        os.utime(table, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    collected = {output for output in run.outputs if output.startswith("results/outcomes/")}
    assert collected == {"results/outcomes/second/shard0.parquet"}
    assert run.rules == FROM_MATRIX | {"collect", "matrix"}
    assert finished.dry().jobs == []


def test_another_source_leaves_the_others_alone(finished: Finished) -> None:
    config = copy.deepcopy(finished.config)
    config["sources"].append({"name": "third", "kind": "simulated", "models": 30, "items": 200})
    run = finished.dry(config=config)
    collected = {output for output in run.outputs if output.startswith("results/outcomes/")}
    assert collected == {"results/outcomes/third/shard0.parquet"}
    assert "simulate" in run.rules


def test_leaving_a_model_out_starts_at_the_matrix(finished: Finished) -> None:
    run = finished.dry(config=changed(finished, "models", exclude=[MODELS[3]]))
    assert run.rules == FROM_MATRIX | {"matrix"}
