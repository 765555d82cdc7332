"""The second day of a finished study: its calibration, new models on it, and the questions to run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny import MODELS, Finished, Run, Workflow, write_config, write_responses

from benchmirt.ability import calibration
from benchmirt.adaptive import trial
from benchmirt.files import read_json


@pytest.fixture(scope="module")
def day_two(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the finished study, whose first test stays as it is."""
    folder = tmp_path_factory.mktemp("second") / "tiny"
    shutil.copytree(finished.folder, folder)
    return folder


def write_new(folder: Path) -> None:
    """Write new models: a strong and a weak one, as the study's were simulated; one of the study; all right; five outcomes."""
    first = pd.read_csv(folder / "first.csv")
    new = first[["question_id"]].copy()
    random = np.random.default_rng(1)
    random.normal(size=(2, len(MODELS)))
    easiness = random.normal(size=60)
    for name, ability in (("strong", 1.5), ("weak", -1.5)):
        chance = 1 / (1 + np.exp(-(1.5 * ability + easiness)))
        new[name] = (np.random.default_rng(3).uniform(size=60) < chance).astype(int)
    new[MODELS[3]] = first[MODELS[3]]
    new["perfect"] = 1
    new["short"] = [1, 0, 1, 1, 0] + [None] * 55
    new.loc[len(new)] = ["unheard of", 1, 1, 1, 1, 1]
    new.to_csv(folder / "new.csv", index=False)


def scored(folder: Path, workflow: Workflow, config: dict[str, Any]) -> Run:
    write_config(folder, config)
    return workflow.call(folder, "score")


TABLE = {"name": "new", "kind": "table", "responses": "new.csv"}


def test_a_finished_study_leaves_its_calibration(finished: Finished) -> None:
    home = finished.folder / "results" / "calibration"
    assert {path.name for path in home.iterdir()} == set(calibration.FILES)
    known = calibration.read(home)
    statistics = pd.read_csv(finished.folder / "results" / "dimensions" / "item_statistics.csv").set_index(
        "question_id"
    )
    own = statistics.loc[list(known.items)]
    assert np.allclose(known.a, own[["discrimination_1", "discrimination_2"]])
    assert np.allclose(known.d, own["intercept"])
    assert len(known.item_table) == 100
    assert set(known.model_table["model"]) == set(MODELS)
    population = known.about["population"]
    assert np.allclose(population["mean"], 0, atol=0.05)
    assert np.allclose(population["covariance"], np.eye(2), atol=0.1)
    assert known.about["study"] == "tiny"
    assert known.about["simulated"] is False, "the tables of this study do not say that they are simulated"


def test_new_models_are_scored_on_the_study_itself(day_two: Path, finished: Finished) -> None:
    write_new(day_two)
    run = scored(day_two, finished.workflow, {**finished.config, "score": {"models": [TABLE]}})
    assert run.code == 0, run.text[-4000:]
    assert run.rules == {"collect_new", "score"}
    home = day_two / "results" / "scores"
    table = pd.read_csv(home / "scores.csv").set_index("model")
    assert list(table.index) == ["strong", "weak", MODELS[3], "perfect", "short"]
    assert list(table["outcomes"]) == [60, 60, 60, 60, 5]
    assert "one of the study's own models" in table.loc[MODELS[3], "note"]
    for k in (1, 2):
        assert table.loc["strong", f"ability_{k}"] > table.loc["weak", f"ability_{k}"] + 0.5
        assert table.loc["short", f"ability_{k}_high"] - table.loc["short", f"ability_{k}_low"] > 2
    assert np.isfinite(table.filter(like="ability").to_numpy()).all()
    predictions = pd.read_csv(home / "predictions.csv")
    second = predictions[(predictions["benchmark"] == "second") & (predictions["model"] == MODELS[3])].iloc[0]
    truth = pd.read_csv(day_two / "second.csv")[MODELS[3]].mean()
    assert second["low"] <= truth <= second["high"]
    assert second["run"] == 0
    unmatched = pd.read_csv(home / "unmatched.csv")
    assert unmatched["question_id"].tolist() == ["unheard of"]
    summary = read_json(home / "scores.json")
    assert (
        summary["calibration"]["sha256"]
        == read_json(home.parent / "calibration" / "calibration.json")["sha256"]
    )
    for ending in ("png", "svg", "pdf"):
        assert (home / f"abilities.{ending}").stat().st_size > 5000
    assert finished.workflow.dry(day_two, "score").jobs == []
    assert finished.workflow.dry(day_two).jobs == [], (
        "the study itself does not depend on what is asked of it"
    )


def test_a_copied_calibration_and_raw_files_are_enough(finished: Finished, tmp_path: Path) -> None:
    """Nothing of the study is there but the folder, and the new models come as a long table."""
    shutil.copytree(finished.folder / "results" / "calibration", tmp_path / "published")
    (tmp_path / "logs").mkdir()
    rows = [f"m,first,a{item},{item % 2}\nn,first,a{item},1\n" for item in range(40)]
    (tmp_path / "logs" / "long.csv").write_text("model,benchmark,question_id,outcome\n" + "".join(rows))
    config = {
        "results": "here",
        "score": {"calibration": "published", "models": [{"name": "logs", "kind": "files", "files": "logs"}]},
        "shortform": {"calibration": "published", "size": 7, "balance": "equal"},
    }
    run = scored(tmp_path, finished.workflow, config)
    assert run.code == 0, run.text[-4000:]
    table = pd.read_csv(tmp_path / "here" / "scores" / "scores.csv")
    assert table["model"].tolist() == ["m", "n"]
    assert (table["outcomes"] == 40).all()
    chosen = finished.workflow.call(tmp_path, "shortform")
    assert chosen.code == 0, chosen.text[-4000:]
    assert chosen.rules == {"shortform"}
    listed = pd.read_csv(tmp_path / "here" / "shortform" / "shortform.csv")
    assert len(listed) == 7
    assert listed["benchmark"].value_counts().max() <= 3
    write_config(tmp_path, {**config, "shortform": {"calibration": "published", "ability": "sharpness"}})
    refused(finished.workflow.call(tmp_path, "shortform"), "no such ability", "sharpness")
    again = pd.read_csv(tmp_path / "here" / "shortform" / "shortform.csv")
    assert again.equals(listed), "a wish that fails costs nothing"


def refused(run: Run, *words: str) -> None:
    assert run.code != 0
    assert "Traceback" not in run.text, run.text
    assert any(all(word in line for word in words) for line in run.text.splitlines()), run.text


def test_what_cannot_be_scored_is_refused_and_leaves_nothing(
    day_two: Path, finished: Finished, tmp_path: Path
) -> None:
    shutil.copytree(finished.folder / "results" / "calibration", tmp_path / "published")
    score = {"calibration": "published", "models": [TABLE]}
    refused(
        scored(tmp_path, finished.workflow, {"score": {**score, "models": []}}),
        "score.models",
        "no new models",
    )
    (tmp_path / "new.csv").write_text("1\n0\n1\n1\n")
    refused(scored(tmp_path, finished.workflow, {"score": score}), "new.csv", "question_id")
    (tmp_path / "new.csv").write_text("question_id,m\nx1,1\nx2,0\n")
    refused(
        scored(tmp_path, finished.workflow, {"score": score}), "none of the items is in the calibration", "x1"
    )
    assert not list((tmp_path / "results" / "scores").glob("*.csv"))
    gone = {**score, "calibration": "nowhere"}
    refused(scored(tmp_path, finished.workflow, {"score": gone}), "score.calibration", "nowhere")


def test_another_study_is_set_beside_this_one(day_two: Path, finished: Finished) -> None:
    """The study itself, under another roof: the same abilities, no drift, no verdict changed; one verdict is edited."""
    other = day_two.parent / "other"
    shutil.copytree(finished.folder / "results" / "calibration", other / "calibration")
    table = pd.read_csv(finished.folder / "results" / "claims" / "claims.csv")
    table.loc[table["claim"] == "C2", "corrected_verdict"] = "inconclusive"
    table.to_csv(other / "claims.csv", index=False)
    compare = {"calibration": "../other/calibration", "claims": "../other/claims.csv"}
    write_config(day_two, {**finished.config, "compare": compare})
    run = finished.workflow.call(day_two, "compare_studies")
    assert run.code == 0, run.text[-3000:]
    assert run.rules == {"compare_studies"}
    home = day_two / "results" / "compared"
    abilities = pd.read_csv(home / "abilities.csv")
    assert abilities["ability"].tolist() == abilities["other"].tolist() == [1, 2]
    assert abilities["r"].to_numpy() == pytest.approx(1.0)
    assert abilities["r_models"].to_numpy() == pytest.approx(1.0)
    assert not pd.read_csv(home / "items.csv")["drifted"].any()
    verdicts = pd.read_csv(home / "verdicts.csv").set_index("claim")
    assert verdicts["changed"].to_dict() == {"C2": True, "C3": False, "C9": False}
    assert read_json(home / "compared.json")["models"]["common"] == len(MODELS)
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    (other / "broken.csv").write_text("claim,kind\nC2,count\n")
    write_config(day_two, {**finished.config, "compare": {**compare, "claims": "../other/broken.csv"}})
    refused(
        finished.workflow.call(day_two, "compare_studies"),
        "broken.csv",
        'lacks a column: expected "statement"',
    )
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    write_config(day_two, finished.config)
    without = finished.workflow.call(day_two, "compare_studies")
    assert without.code != 0
    assert "there is no study to compare with" in without.text
    assert "Traceback" not in without.text


def test_a_new_benchmark_joins_the_calibration(day_two: Path, finished: Finished) -> None:
    """Through the study's own models: the calibration grows, and a model that ran on the new benchmark alone is placed."""
    write_responses(day_two / "mine.csv", MODELS, 50, 5, "mine")
    source = {"name": "mine", "kind": "table", "responses": "mine.csv", "benchmark": "my quiz"}
    config = {**finished.config, "score": {"models": [source]}}
    write_config(day_two, config)
    run = finished.workflow.call(day_two, "extend")
    assert run.code == 0, run.text[-3000:]
    assert run.rules == {"collect_new", "extend"}
    extended = calibration.read(day_two / "results" / "extended")
    before = calibration.read(day_two / "results" / "calibration")
    assert extended.items[: len(before.items)] == before.items
    assert extended.benchmark_table.set_index("benchmark").loc["my quiz", "items"] == 50
    assert extended.about["extended"][0]["models"] == len(MODELS)
    pd.read_csv(day_two / "mine.csv")[["question_id", MODELS[0]]].rename(columns={MODELS[0]: "fresh"}).to_csv(
        day_two / "fresh.csv", index=False
    )
    fresh = {"name": "fresh", "kind": "table", "responses": "fresh.csv", "benchmark": "my quiz"}
    write_config(
        day_two, {**finished.config, "score": {"calibration": "results/extended", "models": [fresh]}}
    )
    placed = finished.workflow.call(day_two, "score")
    assert placed.code == 0, placed.text[-3000:]
    table = pd.read_csv(day_two / "results" / "scores" / "scores.csv")
    assert table["outcomes"].tolist() == [len(extended.items) - len(before.items)]
    write_config(day_two, {**config, "score": {"models": [{**source, "responses": "first.csv"}]}})
    refused(finished.workflow.call(day_two, "extend"), "knows all of these questions already")


def test_adaptive_tests_are_tried_out_on_models_held_out(day_two: Path, finished: Finished) -> None:
    """Every way of choosing has its rows; long adaptive tests are nearer to the truth than short ones."""
    config = {**finished.config, "adaptive": {"size": 30, "folds": 2, "draws": 2, "batch": 2}}
    write_config(day_two, config)
    run = finished.workflow.call(day_two, "adaptive")
    assert run.code == 0, run.text[-4000:]
    assert run.rules == {"adaptive"}
    home = day_two / "results" / "adaptive"
    curve = pd.read_csv(home / "curve.csv")
    assert set(curve["method"]) == set(trial.METHODS)
    assert set(curve["items"]) == {10, 20, 30}
    errors = curve[(curve["method"] == "adaptive") & (curve["measure"] == "error_1")].set_index("items")
    assert errors.loc[30, "value"] < errors.loc[10, "value"]
    exposure = pd.read_csv(home / "exposure.csv")
    limited = exposure[(exposure["method"] == "adaptive_limited") & (exposure["items"] == 10)].iloc[0]
    free = exposure[(exposure["method"] == "adaptive") & (exposure["items"] == 10)].iloc[0]
    assert limited["largest"] < free["largest"]
    for ending in ("png", "svg", "pdf"):
        assert (home / f"curve.{ending}").stat().st_size > 5000
    assert finished.workflow.dry(day_two, "adaptive").jobs == []
    write_config(day_two, {**config, "adaptive": {"size": 0}})
    refused(finished.workflow.call(day_two, "adaptive"), "adaptive.size", "0")
