"""Prompt labels: the table of labels, planted correlations, and what is said without any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_fixture import World, plant, study_of

from benchmirt.claims import judge, prompt_labels, spec
from benchmirt.claims.inputs import Results
from benchmirt.errors import InputError


def _entry(**part: Any) -> dict[str, Any]:
    return {
        "id": "L1",
        "kind": "label",
        "statement": "Unsafe prompts discriminate safety more.",
        "published": {"text": "they go together"},
        "needs_dimension": 2,
        "parts": [{"name": "label", "ability": "safety", "region": {"low": 0}, **part}],
    }


def _study(labels: Path | None, **part: Any) -> Any:
    study = study_of([_entry(**part)])
    if labels is not None:
        study.claims["prompt_labels"] = str(labels)
    return study


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("planted"), World())


def _labels(planted: Path, path: Path, sign: float) -> tuple[Path, np.ndarray, np.ndarray]:
    """Label the items by the sign of their safety discrimination, with noise; return labels and discriminations."""
    results = Results(planted, study_of([_entry()]))
    fit = results.consensus("corrected")
    ability = results.ability("safety")
    values = ability.sign * fit.a_display[:, ability.index]
    noisy = sign * values + np.random.default_rng(0).normal(size=values.size)
    labels = np.digitize(noisy, np.quantile(noisy, [1 / 3, 2 / 3])) - 1
    pd.DataFrame({"question_id": fit.items, "label": labels}).to_csv(path, index=False)
    return path, labels, values


@pytest.mark.parametrize(
    ("sign", "verdict", "published"), [(1, "reproduced", "matches"), (-1, "not reproduced", "differs")]
)
def test_planted_labels_go_with_discrimination(
    planted: Path, tmp_path: Path, sign: int, verdict: str, published: str
) -> None:
    path, labels, values = _labels(planted, tmp_path / "labels.csv", sign)
    found = judge.evaluate("L1", planted, _study(path))
    corrected = found["corrected"]
    assert corrected["verdict"] == verdict, corrected["why"]
    assert corrected["estimate"] == pytest.approx(np.corrcoef(labels, values)[0, 1])
    assert corrected["interval"][0] < corrected["estimate"] < corrected["interval"][1]
    assert found["as_published"]["verdict"] == published
    (part,) = corrected["parts"]
    assert sum(group["items"] for group in part["groups"]) == len(labels)
    assert [group["word"] for group in part["groups"]] == ["safe", "controversial", "unsafe"]
    safety = [row for row in part["table"]["rows"] if row["ability"] == "safety"]
    assert [row["items_of"] for row in safety] == ["all labelled items", "reasoning", "safety"]


def test_labels_that_mean_nothing_leave_it_open(planted: Path, tmp_path: Path) -> None:
    path, _, _ = _labels(planted, tmp_path / "labels.csv", 0.0)
    found = judge.evaluate("L1", planted, _study(path))
    low, high = found["corrected"]["interval"]
    assert low < 0 < high
    assert found["corrected"]["verdict"] == "inconclusive"


def test_a_selection_of_the_items(planted: Path, tmp_path: Path) -> None:
    path, labels, values = _labels(planted, tmp_path / "labels.csv", 1.0)
    results = Results(planted, study_of([_entry()]))
    items = results.items().set_index("question_id").loc[results.consensus("corrected").items]
    own = (items["category"] == "safety").to_numpy()
    found = judge.evaluate("L1", planted, _study(path, select={"category": "safety"}))
    assert found["corrected"]["estimate"] == pytest.approx(np.corrcoef(labels[own], values[own])[0, 1])
    assert found["sample"]["items"] == own.sum()


def test_without_labels_nothing_can_be_tested(planted: Path) -> None:
    found = judge.evaluate("L1", planted, _study(None))
    assert found["corrected"]["verdict"] == found["as_published"]["verdict"] == "cannot test"
    assert "no labels of the prompts are supplied" in found["corrected"]["why"]


def test_too_few_labels_and_a_single_value_cannot_be_tested(planted: Path, tmp_path: Path) -> None:
    path, _, _ = _labels(planted, tmp_path / "labels.csv", 1.0)
    table = pd.read_csv(path)
    table.head(19).to_csv(path, index=False)
    found = judge.evaluate("L1", planted, _study(path))
    assert "only 19 of the usable items have a label" in found["corrected"]["why"]
    table.assign(label=1).to_csv(path, index=False)
    found = judge.evaluate("L1", planted, _study(path))
    assert found["corrected"]["why"].startswith("all labelled items have the same label")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("question_id,lable\na,1\n", 'Did you mean "label"?'),
        ("question_id,label,note\na,1,x\n", "expected question_id, label"),
        ("question_id,label\na,2\n", 'row 2, label: found "2"'),
        ("question_id,label\na,1\nb,unsafe\n", 'row 3, label: found "unsafe"'),
        ("question_id,label\na,1\na,0\n", "two rows label this prompt"),
        ("question_id,label\na\n", "row 2: the row does not fit the header: found 1 fields; expected 2"),
        ("", "the file is empty"),
    ],
)
def test_a_table_of_other_shape_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError) as fault:
        prompt_labels.read_labels(tmp_path / "labels.csv")
    assert told in str(fault.value)


def test_labels_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("label,question_id\n-1,a\n0,b\n1,c\n")
    assert prompt_labels.read_labels(tmp_path / "labels.csv") == {"a": -1.0, "b": 0.0, "c": 1.0}


def test_the_claim_is_judged_again_when_the_labels_change(tmp_path: Path) -> None:
    study = _study(tmp_path / "labels.csv")
    assert spec.tables_of(_entry(), study) == [(tmp_path / "labels.csv").as_posix()]
    assert spec.tables_of(_entry(), _study(None)) == []
