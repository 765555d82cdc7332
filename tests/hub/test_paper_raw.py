"""The published study graded from raw outputs, against a loopback hub with made-up details in the layout of the real ones.

The simulator knows what the files hold without reading them, so that what comes out is held against its truth.
"""

from __future__ import annotations

import copy
import json
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from job import TOKEN, Client
from loopback import Hub, Repo
from test_workflow import call, rules

from benchmirt import config, sources
from benchmirt.simulate import raw as simulate

REPOSITORY = Path(__file__).resolve().parents[2]
STUDY = yaml.safe_load((REPOSITORY / "workflow" / "studies" / "paper_raw.yaml").read_text(encoding="utf-8"))
TWIN = simulate.twin(scale="test", models=8)
NAMES = TWIN.simulated.model_table["model"].tolist()
GPQA = (TWIN.reason[:, TWIN.simulated.benchmark == "gpqa"] == "not_run").all(axis=1)
(WITHOUT,) = (name for name, lacks in zip(NAMES, GPQA, strict=True) if lacks)
"""The model that was never run on GPQA."""
MODELS = [name for name in NAMES if name != WITHOUT]
HONEST = pd.DataFrame(TWIN.honest.T, columns=NAMES)[MODELS].to_numpy()
ROADS = "results/paper_raw/roads"
WANTED = f"{ROADS}/disagreements.csv"
FAILED = "published 0, raw missing", "published 1, raw missing"


def test_the_study_asks_for_the_details_of_the_100_models_and_for_no_other_task() -> None:
    study = config.load(STUDY, REPOSITORY, check_files=False)
    wanted = sources.data_sets(study.source("leaderboard"), study)
    names = pd.read_csv(REPOSITORY / "workflow" / "resources" / "models.csv")["model"].tolist()
    assert [one["hub"] for one in wanted.values()] == [
        f"open-llm-leaderboard/{name}-details" for name in names
    ]
    assert len(wanted) == 100
    assert max(len(one["hub"]) for one in wanted.values()) <= 96  # the hub has no longer names
    subsets = pd.read_csv(REPOSITORY / "workflow" / "resources" / "subsets.csv")
    bbh = subsets.loc[subsets["benchmark"] == "bbh", "subcategory_one"]
    math = [
        "algebra",
        "counting_and_prob",
        "geometry",
        "intermediate_algebra",
        "num_theory",
        "prealgebra",
        "precalculus",
    ]
    musr = ["murder_mysteries", "object_placements", "team_allocation"]
    tasks = {
        *(f"bbh_{name}" for name in bbh),
        *(f"math_{name}_hard" for name in math),
        *(f"musr_{name}" for name in musr),
        *("gpqa_extended", "ifeval", "mmlu_pro"),
    }
    others = {"gpqa_main", "gpqa_diamond", "arc_challenge"}
    (patterns,) = {tuple(one["files"]) for one in wanted.values()}

    def matched(run: str) -> set[str]:
        files = {
            task: f"org__model__leaderboard_{task}/{run}/0000.parquet" for task in sorted(tasks | others)
        }
        return {
            task for task, file in files.items() if any(fnmatchcase(file, pattern) for pattern in patterns)
        }

    assert len(tasks) == 24 + 7 + 3 + 3
    assert matched("latest") == tasks
    assert matched("2024_06_16T22_11_25.600579") == set()


def test_both_roads_of_the_published_study_compare_with_the_same_tables() -> None:
    other = yaml.safe_load((REPOSITORY / "workflow" / "studies" / "paper.yaml").read_text(encoding="utf-8"))
    (table,) = other["sources"]
    road = STUDY["published_responses"]
    assert (road["responses"], road["prefix"]) == (table["responses"], table["prefix"])
    assert road["columns"]["benchmark"] == table["columns"]["benchmark"]
    assert STUDY["published_statistics"] == other["published_statistics"]


def truth() -> pd.DataFrame:
    """Return the planted outcomes under the published policy, items by models; missing where nothing was run."""
    names = TWIN.simulated.item_table["question_id"].tolist()
    table = pd.DataFrame(TWIN.published.T, index=names, columns=NAMES, dtype="Int8")[MODELS]
    return table.mask(table < 0)


def failures() -> set[tuple[str, ...]]:
    """Return the planted failures that count as something: kind of disagreement, model, item, reason."""
    planted = TWIN.failures().dropna(subset="published")
    return {
        (FAILED[int(row.published)], row.model, row.question_id, row.reason)
        for row in planted.itertuples(index=False)
        if row.model in MODELS
    }


@pytest.fixture
def raw(hub: Hub, client: Client, tmp_path: Path) -> dict[str, Any]:
    """Put made-up details and the safety-eval results where the study looks for them; return the study."""
    home = tmp_path / "made"
    folders = simulate.write(TWIN, home)
    for folder in folders["leaderboard"].iterdir():
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        repo = hub.repos[f"open-llm-leaderboard/{folder.name}"] = Repo(gated=True, readers={TOKEN})
        repo.commit({"README.md": b"# Simulated\n"})
        repo.commit(files, branch="refs/convert/parquet")
    shutil.move(folders["safety"], client.home / "simulated_safety_eval")
    (client.home / "workflow").mkdir()
    (client.home / "workflow" / "resources").symlink_to(REPOSITORY / "workflow" / "resources")
    study = copy.deepcopy(STUDY)
    study["sources"][0]["scoring"] = ["workflow/resources/scoring.yaml"]  # Math-Verify need not be there
    study["sources"][1]["folder"] = "simulated_safety_eval"
    del study["published_statistics"]
    return {**study, "models": {"include": MODELS}, "title": "A simulated study"}


def publish(hub: Hub, table: pd.DataFrame) -> None:
    """Put a published table of outcomes on the hub."""
    wide = table.rename(columns=lambda name: f"acc_norm_{name}").rename_axis("question_id").reset_index()
    repo = hub.repos[STUDY["published_responses"]["responses"]["hub"]] = Repo(large={"simulated_matrix.csv"})
    repo.commit({"simulated_matrix.csv": wide.to_csv(index=False).encode(), "README.md": b"# Simulated\n"})


def disagreements(client: Client) -> pd.DataFrame:
    return pd.read_csv(client.home / WANTED, dtype=str).fillna("")


def listed(found: pd.DataFrame) -> set[tuple[str, ...]]:
    """Return disagreements about cells: kind, model, item, reason."""
    own = found.loc[found["published"] + found["raw"] != "", ["kind", "model", "question_id", "reason"]]
    return set(own.itertuples(index=False, name=None))


def test_both_roads_meet_but_for_what_is_planted(hub: Hub, client: Client, raw: dict[str, Any]) -> None:
    table = truth()
    right, wrong = int(np.flatnonzero(HONEST[:, 2] == 1)[0]), int(np.flatnonzero(HONEST[:, 3] == 0)[0])
    unread = int(np.flatnonzero(HONEST[:, 4] == 1)[5])
    for item, model, value in ((right, 2, 0), (wrong, 3, 1), (unread, 4, pd.NA)):
        table.iloc[item, model] = value
    gone = table.index[-1]
    table = table.drop(index=gone)
    table.loc["bbh__snarks_9999"] = 1
    table["org__unknown"] = 1
    table = table.rename(columns={MODELS[6]: "org__other"})
    publish(hub, table)
    run = call(client, raw, WANTED, HF_TOKEN=TOKEN)
    assert run.returncode == 0, run.stderr[-5000:]
    found = disagreements(client)
    here = truth()
    expected = {row for row in failures() if row[1] != MODELS[6] and row[2] != gone} | {
        ("published 0, raw 1", MODELS[2], here.index[right], ""),
        ("published 1, raw 0", MODELS[3], here.index[wrong], ""),
        ("published missing, raw 1", MODELS[4], here.index[unread], ""),
    }
    assert listed(found) == expected
    others = found[found["published"] + found["raw"] == ""]
    assert set(others[["kind", "question_id", "model"]].itertuples(index=False, name=None)) == {
        ("item only in raw", gone, ""),
        ("item only in published", "bbh__snarks_9999", ""),
        ("model only in raw", "", MODELS[6]),
    }  # models that do not take part, as those of two strange columns, are not asked for
    missing = found[found["kind"].isin(FAILED)]
    assert (missing["counted"] == missing["published"]).all()
    counts = pd.read_csv(client.home / ROADS / "benchmarks.csv").set_index("benchmark")
    assert counts.at["all", "expected_items"] == 34_301
    assert counts.at["all", "raw_items"] == len(here)
    assert counts.at["all", "cells"] == (len(here) - 1) * 6
    summary = json.loads((client.home / ROADS / "summary.json").read_text())
    assert summary["models"] == {"expected": 7, "published": 6, "raw": 7, "both": 6}
    models = pd.read_csv(client.home / ROADS / "models.csv").set_index("model")
    assert models.at[MODELS[6], "roads"] == "raw"
    fetched = client.home / "results/paper_raw/fetched/leaderboard/folder"
    assert {path.parent.name for path in fetched.rglob("*.parquet")} == {"latest"}


@pytest.mark.slow
def test_a_gate_that_is_not_accepted_is_told_before_anything_is_fetched(
    hub: Hub, client: Client, raw: dict[str, Any]
) -> None:
    publish(hub, truth())
    run = call(client, raw, WANTED)
    told = run.stdout + run.stderr
    assert run.returncode != 0
    assert "Traceback" not in told
    assert "7 of 8 data sets: its owner asks for an agreement first" in told
    assert "export HF_TOKEN=" in told
    assert rules(run) == ["fetch"]
    assert not hub.requests("GET .*/resolve/")


def test_a_benchmark_that_a_model_lacks_is_told_before_anything_is_fetched(
    hub: Hub, client: Client, raw: dict[str, Any]
) -> None:
    publish(hub, truth())
    run = call(client, {**raw, "models": {"include": NAMES}}, WANTED, HF_TOKEN=TOKEN)
    told = run.stdout + run.stderr
    assert run.returncode != 0
    assert (
        f'data set "open-llm-leaderboard/{WITHOUT}-details" of the hub: file "*__leaderboard_gpqa_extended'
        in told
    )
    assert rules(run) == ["fetch"]
    assert not hub.requests("GET .*/resolve/")


def test_a_model_without_safety_results_is_told_when_the_workflow_is_read(
    hub: Hub, client: Client, raw: dict[str, Any]
) -> None:
    shutil.rmtree(client.home / "simulated_safety_eval" / MODELS[4])
    run = call(client, raw, "-n", WANTED)
    told = run.stdout + run.stderr
    assert run.returncode != 0
    assert (
        "Error: simulated_safety_eval: 1 of the 7 models of workflow/resources/models.csv have no folder in here: "
        f"looked for {MODELS[4]}. Fetch their results, or name them in models.exclude" in told
    )
    assert not hub.asked
