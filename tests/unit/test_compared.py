"""Two studies side by side: tables of verdicts that do not fit are refused, and other claims under one name are no change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ability_fixture import calibration_of

from benchmirt.ability import compared
from benchmirt.errors import InputError
from benchmirt.figures import compared as figure

COLUMNS = (
    "claim",
    "kind",
    "statement",
    *(f"corrected_{name}" for name in ("verdict", "estimate", "low", "high")),
)


def table(path: Path, *rows: tuple[object, ...]) -> Path:
    pd.DataFrame([(*row, 0.5, 0.4, 0.6) for row in rows], columns=list(COLUMNS)).to_csv(path, index=False)
    return path


def test_only_the_same_claim_can_change(tmp_path: Path) -> None:
    here = table(
        tmp_path / "a.csv",
        ("1", "count", "x", "reproduced"),
        ("2", "count", "y", "reproduced"),
        ("3", "count", "z", "inconclusive"),
    )
    there = table(
        tmp_path / "b.csv",
        ("1", "count", "x", "inconclusive"),
        ("2", "mix", "other", "inconclusive"),
        ("4", "mix", "w", "reproduced"),
    )
    found = compared.verdicts(here, there).set_index("claim")
    assert found["changed"].to_dict() == {"1": True, "2": False, "3": False, "4": False}
    assert found["same_claim"].to_dict() == {"1": True, "2": False, "3": True, "4": True}
    assert found.loc["4", "statement"] == "w"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the file is empty"),
        (b"claim,kind\nC1,a,b,c\nC2,a\n", 'table of verdicts lacks a column: expected "statement"'),
        (b"\xff\xfe\x00", "UTF-16"),
        (b"a;b\n1;2\n", "no table of verdicts.*the columns claim"),
    ],
)
def test_another_file_is_no_table_of_verdicts(content: bytes, told: str, tmp_path: Path) -> None:
    here = table(tmp_path / "a.csv", ("C1", "count", "x", "reproduced"))
    (tmp_path / "b.csv").write_bytes(content)
    with pytest.raises(InputError, match=rf"b\.csv.*{told}"):
        compared.verdicts(here, tmp_path / "b.csv")


def test_a_claim_that_stands_twice_is_refused(tmp_path: Path) -> None:
    here = table(tmp_path / "a.csv", ("C1", "count", "x", "reproduced"), ("C1", "count", "x", "inconclusive"))
    with pytest.raises(InputError, match=r'a\.csv.*row 3, column "claim".*"C1" twice'):
        compared.verdicts(here, here)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        (
            "corrected_verdict",
            "holds",
            'row 2, column "corrected_verdict": found "holds"; expected one of reproduced, not',
        ),
        ("corrected_verdict", "", "found nothing; expected one of reproduced"),
        (
            "corrected_estimate",
            "0_5",
            'column "corrected_estimate": found "0_5"; expected a number, or nothing',
        ),
        ("corrected_low", "nan", 'column "corrected_low": found "nan"'),
        ("claim", "", 'column "claim": found nothing'),
    ],
)
def test_a_damaged_verdict_is_no_change(column: str, value: str, told: str, tmp_path: Path) -> None:
    here = table(tmp_path / "a.csv", ("C1", "count", "x", "reproduced"))
    rows = pd.read_csv(here, dtype=str)
    rows.loc[0, column] = value
    rows.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(InputError) as caught:
        compared.verdicts(here, tmp_path / "b.csv")
    assert told in str(caught.value)


def test_claims_may_have_any_name_and_a_study_none(tmp_path: Path) -> None:
    here = table(tmp_path / "a.csv", ("NA", "count", "x", "cannot test"), ("1", "count", "x", "reproduced"))
    there = table(tmp_path / "b.csv", ("NA", "count", "x", "reproduced"))
    assert compared.verdicts(here, there).set_index("claim")["changed"].to_dict() == {"NA": True, "1": False}
    pd.read_csv(here)[:0].to_csv(there, index=False)
    assert not compared.verdicts(here, there)["changed"].any()


def test_edited_questions_are_not_linked_and_told_apart_from_missing_ones() -> None:
    here = calibration_of(60, seed=1)
    there = replace(here, item_table=here.item_table.assign(content_hash="b"))
    edited = replace(here, item_table=here.item_table.assign(content_hash="a"))
    with pytest.raises(InputError, match=r"too few questions are the same.*found 0, and 60 of the same name"):
        compared.compare(edited, there)
    other = replace(here, items=tuple(f"z{item}" for item in range(60)))
    with pytest.raises(InputError, match="too few items in common"):
        compared.compare(here, other)


def test_a_study_beside_itself_in_another_frame_is_the_same() -> None:
    here = calibration_of(200, seed=2, error=0.25)
    turn = np.array(
        [[0.0, -1.0], [1.0, 0.0]]
    )  # axes swapped and one turned round: canonical frames settle no more
    whole = np.block([[turn, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    here = replace(here, model_table=here.model_table.assign(lineage="l"))
    there = replace(here, a=here.a @ turn, item_cov=whole.T @ here.item_cov @ whole, T=turn.T @ here.T)
    found = compared.compare(here, there)
    assert found.abilities[["ability", "other"]].to_numpy().tolist() == [[1, 1], [2, 2]]
    assert found.abilities["r"].to_numpy() == pytest.approx(1.0)
    assert found.abilities["linked"].to_numpy() == pytest.approx(1.0)
    assert not found.items["drifted"].any()
    assert found.benchmarks["common"].sum() == 200
    assert found.models.shape[0] == 40


def test_an_ability_that_no_common_question_measures_is_not_compared(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = calibration_of(200, seed=3, error=0.25)
    random = np.random.default_rng(4)
    a = here.a * [1.0, 0.0] + np.column_stack([np.zeros(200), 0.05 * random.normal(size=200)])
    model_table = here.model_table.assign(lineage="l")
    here = replace(here, a=a, T=np.eye(2), model_table=model_table)
    found = compared.compare(here, here)
    table = found.abilities.set_index("ability")
    assert table.loc[1, "r"] == pytest.approx(1.0, abs=0.01)
    assert table.loc[1, "linked"] > 0.95
    assert table.loc[2, "linked"] < 0.05
    assert table.loc[2, ["r", "low", "high", "r_models"]].isna().all()
    assert found.models["ability_2_there"].isna().all()
    assert found.models["ability_1_there"].notna().all()
    assert "next to nothing about the ability safety" in caplog.text
    titles = [axes.get_title("left") for axes in figure.compared(found).axes]
    assert sum("not linked" in title for title in titles) == 1
