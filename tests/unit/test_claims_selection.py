from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmirt.claims import selection
from benchmirt.claims.spec import Part


@pytest.fixture
def items() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "question_id": [f"q{k}" for k in range(60)],
            "benchmark": ["a"] * 30 + ["b"] * 30,
            "category": ["reasoning"] * 30 + ["safety"] * 30,
            "subcategory_one": ["x"] * 15 + ["contrast_x"] * 15 + ["(y*"] * 15 + [None] * 15,
            "subcategory_two": [None] * 60,
            "kept": [True] * 50 + [False] * 10,
            "drop_reason": [None] * 50 + ["all outcomes equal"] * 6 + ["fewer than 5 outcomes"] * 4,
        }
    )
    for column in ("subcategory_one", "subcategory_two"):
        frame[column] = frame[column].astype("string")
    return frame


def test_columns_must_all_match_and_values_may_vary(items: pd.DataFrame) -> None:
    def count(select: dict[str, tuple[str, ...]], excepted: dict[str, tuple[str, ...]] | None = None) -> int:
        return int(selection.mask(items, select, excepted).sum())

    assert count({}) == 60
    assert count({"benchmark": ("a",)}) == 30
    assert count({"benchmark": ("a", "b")}) == 60
    assert count({"benchmark": ("a",), "subcategory_one": ("x",)}) == 15
    assert count({"benchmark": ("a",), "category": ("safety",)}) == 0
    assert count({"subcategory_one": ("contrast_*",)}) == 15
    assert count({"subcategory_one": ("*x",)}) == 30
    assert count({"subcategory_one": ("(y*",)}) == 15  # only the star is special
    assert count({"benchmark": ("a",)}, {"subcategory_one": ("contrast_*",)}) == 15
    assert (
        count({"benchmark": ("b",)}, {"subcategory_one": ("(y*",)}) == 15
    )  # a missing value is not left out


@pytest.mark.parametrize(
    ("select", "sentence"),
    [
        ({"benchmark": ("c",)}, "this study has no items with benchmark c"),
        ({"benchmark": ("a", "c", "d")}, "this study has no items with benchmark c, d"),
        ({"category": ("Reasoning ",)}, 'no items with category Reasoning  (it has "reasoning")'),
        ({"subcategory_two": ("x",)}, "no item of this study has a subcategory_two"),
        ({"benchmark": ("b",), "subcategory_one": ("x",)}, "no items with benchmark b, subcategory_one x"),
    ],
)
def test_what_is_absent_is_told_in_one_sentence(
    items: pd.DataFrame, select: dict[str, tuple[str, ...]], sentence: str
) -> None:
    assert sentence in str(selection.absent(items, select))
    assert selection.absent(items, {"benchmark": ("a",)}) is None


def test_dropped_items_are_not_usable(items: pd.DataFrame) -> None:
    every = np.ones(60, dtype=bool)
    assert selection.too_few(items, every) is None
    few = (items["subcategory_one"].isna()).to_numpy()
    assert selection.too_few(items, few) == (
        "only 5 of 15 items are usable, 20 are needed (6 all outcomes equal; 4 fewer than 5 outcomes)"
    )
    nineteen = np.arange(60) < 19
    assert selection.too_few(items, nineteen) == "only 19 of 19 items are usable, 20 are needed"
    assert selection.too_few(items, np.arange(60) < 20) is None


def test_each_makes_a_part_for_every_value(items: pd.DataFrame) -> None:
    def names(**keys: object) -> list[str]:
        part = Part(name="follows", statistic="r", unit="r", **keys)  # type: ignore[arg-type]
        return [one.name for one in selection.expand(part, items)]

    assert names() == ["follows"]
    assert names(each="benchmark") == ["a: follows", "b: follows"]
    assert names(each="benchmark", select={"category": ("safety",)}) == ["b: follows"]
    # values that are asked for get a part even if the study lacks them, in the order given
    assert names(each="benchmark", select={"benchmark": ("z", "a")}) == ["z: follows", "a: follows"]
    assert names(each="subcategory_one", select={"subcategory_one": ("*x",)}) == [
        "x: follows",
        "contrast_x: follows",
    ]
    assert names(each="benchmark", excepted={"benchmark": ("a",)}) == ["b: follows"]
    assert names(each="benchmark", select={"category": ("none",)}) == []
    (one, _) = selection.expand(Part(name="", statistic="r", unit="r", each="benchmark"), items)
    assert one.select == {"benchmark": ("a",)}
    assert one.each is None


def test_selections_read_as_words() -> None:
    assert selection.shown({"benchmark": ("a", "b")}, {"subcategory_one": ("x",)}) == (
        "benchmark a or b, without subcategory_one x"
    )
    assert selection.shown({}) == "all items"
