"""Every variant of the twin at scale `test`, from raw files to verdicts: what is planted comes out, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tiny import Workflow, write_config

from benchmirt.simulate import compare

VARIANTS = ("twin", "twin_pure", "one", "noise", "flipped")
COMPARED = "results/truth/twin/comparison/simulated_verdicts.csv"


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_verdicts_are_those_of_the_planted_truth(workflow: Workflow, tmp_path: Path, variant: str) -> None:
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
