"""Variants of whole studies, from their files to verdicts: what is planted comes out, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny import MODELS, Workflow, write_config, write_study

from benchmirt.simulate import compare

VARIANTS = ("twin", "twin_pure", "one", "noise", "flipped")
COMPARED = "results/truth/twin/comparison/simulated_verdicts.csv"


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_verdicts_are_those_of_the_planted_truth(workflow: Workflow, tmp_path: Path, variant: str) -> None:
    """The twin at scale `test`."""
    # two starts and no sampling: neither takes part in a corrected verdict
    write_config(
        tmp_path,
        {
            "study": variant,
            "simulate": {"variant": variant, "scale": "test"},
            "sources": [
                {"name": "leaderboard", "kind": "leaderboard"},
                {"name": "safety", "kind": "safety-eval"},
            ],
            "fits": {"seeds": 2, "nuts": {"run": False}},
        },
    )
    run = workflow.call(tmp_path, COMPARED)
    assert run.code == 0, run.text[-3000:]
    found = pd.read_csv(tmp_path / COMPARED).set_index(["claim", "column"])
    wanted = compare.expected(variant, "test").set_index(["claim", "column"])
    assert set(found.index) == set(wanted.index)
    assert not found["false_claim"].any(), found[found["false_claim"]]
    assert found["agrees"].all(), found.loc[~found["agrees"], ["expected", "found"]]


SIGMA = 1.2


def write_testlets(path: Path, ability: np.ndarray, size: int, testlets: int) -> None:
    """Write simulated responses to testlets, whose questions share an effect on each model besides an ability (models,)."""
    random = np.random.default_rng(4)
    models = len(ability)
    testlet = np.arange(size * testlets) // size
    eta = 1.5 * ability[:, None] + random.normal(size=size * testlets)
    eta += SIGMA * random.normal(size=(models, testlets))[:, testlet]
    right = random.random(eta.shape) < 1 / (1 + np.exp(-eta))
    table = pd.DataFrame(right.T.astype(int), columns=MODELS)
    table.insert(0, "question_id", [f"t{item}" for item in range(len(testlet))])
    table.to_csv(path / "passages.csv", index=False)
    names = [f"passage-{one}" for one in testlet]
    items = pd.DataFrame({"question_id": table["question_id"], "benchmark": "passages", "testlet": names})
    items.to_csv(path / "passages_items.csv", index=False)


@pytest.mark.slow
def test_a_study_with_effects_of_testlets_runs_to_its_report(workflow: Workflow, tmp_path: Path) -> None:
    """What the questions of a passage share comes out; the headline, which knows nothing of it, is told the difference."""
    config = write_study(tmp_path)
    first = np.random.default_rng(1).normal(size=(2, len(MODELS)))[0]  # of the first table's abilities
    write_testlets(tmp_path, first, size=6, testlets=20)
    passages = {
        "name": "passages",
        "kind": "table",
        "responses": "passages.csv",
        "items": "passages_items.csv",
    }
    fits = {**config["fits"], "testlets": True, "em": {"sweeps": 2000}, "nuts": {"run": False}}
    write_config(tmp_path, {**config, "sources": [*config["sources"], passages], "fits": fits})
    run = workflow.call(tmp_path)
    assert run.code == 0, run.text[-4000:]
    home = tmp_path / "results"
    table = pd.read_csv(home / "dimensions" / "checks.csv").set_index("fit")
    assert table.loc["testlets", "testlet_sigma"].to_numpy() == pytest.approx(SIGMA, abs=0.25)
    assert table.drop(index="testlets")["testlet_sigma"].isna().all()
    assert (table.loc["testlets", "ability_r"] > 0.8).all(), "the abilities stay"
    fits_table = pd.read_csv(home / "fits.csv").set_index("fit")
    assert fits_table.index[fits_table["testlets"]].tolist() == ["testlets"]
    page = (home / "report" / "index.html").read_text(encoding="utf-8")
    assert "The fit with testlets adds an effect" in page
