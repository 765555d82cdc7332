from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmirt.claims.verdict import (
    Region,
    absolute,
    absolute_difference,
    combine,
    combine_published,
    folded,
    judge,
    number,
)

R, N, OPEN, E, C = "reproduced", "not reproduced", "inconclusive", "exploratory", "cannot test"


@pytest.mark.parametrize(
    ("interval", "low", "high", "word"),
    [
        ((0.1, 0.3), 0, None, R),
        ((-0.3, -0.1), 0, None, N),
        ((-0.1, 0.1), 0, None, OPEN),
        ((0.0, 0.1), 0, None, OPEN),  # touches the border from inside
        ((-0.1, 0.0), 0, None, OPEN),  # touches it from outside
        ((0.0, 0.0), 0, None, OPEN),
        ((0, 30), None, 45, R),
        ((0, 45), None, 45, OPEN),
        ((45, 60), None, 45, OPEN),
        ((46, 60), None, 45, N),
        ((0.91, 0.93), 0.9, 0.94, R),
        ((0.90, 0.93), 0.9, 0.94, OPEN),
        ((0.91, 0.94), 0.9, 0.94, OPEN),
        ((0.80, 0.99), 0.9, 0.94, OPEN),
        ((0.95, 0.99), 0.9, 0.94, N),
        ((0.80, 0.85), 0.9, 0.94, N),
        (None, 0, None, C),
        ((np.nan, 1.0), 0, None, C),
        ((-np.inf, np.inf), 0, None, C),
    ],
)
def test_an_interval_is_judged_by_where_the_whole_of_it_lies(
    interval: tuple[float, float] | None, low: float | None, high: float | None, word: str
) -> None:
    assert judge(interval, Region.build(low, high)) == word


@given(
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(sorted),
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(sorted),
)
def test_a_narrower_interval_never_turns_a_verdict_round(outer: list[float], inner: list[float]) -> None:
    region = Region.build(-0.5, 0.5)
    low, high = max(outer[0], inner[0]), min(outer[1], inner[1])
    if low > high:
        return
    wide, narrow = judge((outer[0], outer[1]), region), judge((low, high), region)
    assert wide in (OPEN, narrow)


def test_whole_numbers_count_as_inside_at_their_bound() -> None:
    region = Region.whole(28, None, "at least 28 of 32")
    assert judge((28, 32), region) == R
    assert judge((20, 27), region) == N
    assert judge((27, 28), region) == OPEN
    exact = Region.whole(2, 2, "exactly 2")
    assert [judge((k, k), exact) for k in (1, 2, 3)] == [N, R, N]
    assert judge((1, 2), exact) == OPEN


def test_parts_combine_as_a_conjunction() -> None:
    words = (R, N, OPEN, E, C)
    for parts in itertools.product(words, repeat=3):
        found = combine(parts)
        if N in parts:
            assert found == N
        elif set(parts) == {R}:
            assert found == R
        else:
            assert found == next(word for word in (C, E, OPEN) if word in parts)
    assert combine([]) == C
    assert combine_published(["matches", "matches"]) == "matches"
    assert combine_published(["matches", "differs", C]) == "differs"
    assert combine_published(["matches", C]) == C
    assert combine_published([]) == "not compared"


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (0, None, "r", "above 0"),
        (-0.05, 0.05, "r", "between -.05 and .05"),
        (None, 45, "degrees", "at most 45 degrees"),
        (None, -0.5, "r", "below -.50"),
        (0.9, 0.94, "share", "between .90 and .94"),
        (None, None, "r", "anywhere"),
    ],
)
def test_regions_read_as_words(low: float | None, high: float | None, unit: str, text: str) -> None:
    assert Region.build(low, high, unit).text == text
    assert Region.build(low, high, unit, "its own words").text == "its own words"


def test_a_bound_keeps_the_digits_on_which_a_border_depends() -> None:
    """7 of 8 pairs are .875, which is not above .88."""
    assert Region.build(0.875, None).text == "above .875"
    assert Region.build(-0.0625, 0.3).text == "between -.0625 and .30"
    assert Region.build(None, 12.5, "degrees").text == "at most 12.5 degrees"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(34301, "count", "34,301"), (0.0099, "", ".0099"), (-0.063, "r", "-.06"), (1.0, "r", "1"),
     (0.999, "r", "1.00"), (12.6, "degrees", "13"), (2.52, "degrees", "2.5"), (0, "degrees", "0")],
)  # fmt: skip
def test_numbers_read_as_people_write_them(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((-5, 10), (0, 10)),
        ((-10, 5), (0, 10)),
        ((3, 10), (3, 10)),
        ((-10, -3), (3, 10)),
        ((170, 190), (170, 180)),
        ((175, 200), (160, 180)),
        ((-1, 181), (0, 180)),
        ((350, 370), (0, 10)),
        ((0, 400), (0, 180)),
        ((0, 0), (0, 0)),
    ],
)
def test_angles_fold_at_0_and_180(interval: tuple[float, float], expected: tuple[float, float]) -> None:
    assert folded(*interval) == pytest.approx(expected)


@given(st.floats(-180, 180), st.floats(0, 500))
def test_a_folded_interval_holds_just_the_angles_of_the_unfolded_one(start: float, length: float) -> None:
    low, high = folded(start, start + length)
    points = np.linspace(start, start + length, 2001)
    angles = np.abs((points + 180) % 360 - 180)
    step = length / 2000 + 1e-6
    assert low <= angles.min() + 1e-6
    assert high >= angles.max() - 1e-6
    assert angles.min() - step <= low
    assert high <= angles.max() + step


@given(st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted))
def test_absolute_values_of_an_interval(ends: list[float]) -> None:
    points = np.abs(np.linspace(*ends, 501))
    low, high = absolute(*ends)
    assert low <= points.min() + 1e-12
    assert high == pytest.approx(points.max())
    assert low == 0 or low == pytest.approx(points.min())


@given(
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(sorted),
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(sorted),
)
def test_the_difference_of_absolute_values_over_a_rectangle_of_sum_and_difference(
    total: list[float], difference: list[float]
) -> None:
    low, high = absolute_difference((total[0], total[1]), (difference[0], difference[1]))
    s, d = np.meshgrid(np.linspace(*total, 41), np.linspace(*difference, 41))
    values = np.abs((s + d) / 2) - np.abs((s - d) / 2)
    assert low <= values.min() + 1e-9
    assert high >= values.max() - 1e-9
    # the extremes are taken, in corners of the grid
    assert low == pytest.approx(values.min(), abs=1e-9)
    assert high == pytest.approx(values.max(), abs=1e-9)
