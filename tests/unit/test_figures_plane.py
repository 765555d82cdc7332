"""Geometry: planes keep angles and lengths, directions and their intervals come out as planted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmirt.figures import plane


def unit_columns(rng: np.random.Generator, dims: int) -> np.ndarray:
    T = rng.normal(size=(dims, dims))
    return T / np.linalg.norm(T, axis=0)


@pytest.mark.parametrize("dims", [2, 3, 5])
def test_plane_is_true_to_angles_and_symmetric_about_its_diagonal(dims: int) -> None:
    rng = np.random.default_rng(dims)
    T = unit_columns(rng, dims)
    B = plane.basis(T, 0, 1)
    assert np.allclose(B.T @ B, np.eye(2))
    first, second = T[:, 0] @ B, T[:, 1] @ B
    assert np.allclose(np.linalg.norm(first), 1)
    assert np.isclose(first @ second, T[:, 0] @ T[:, 1])
    assert np.isclose(plane.heading(first) + plane.heading(second), 90)
    assert plane.heading(first) < plane.heading(second)


def test_angle_between() -> None:
    axis = np.array([1.0, 0.0])
    assert plane.angle_between(np.array([2.0, 0.0]), axis) == pytest.approx(0)
    assert plane.angle_between(np.array([0.0, 3.0]), axis) == pytest.approx(90)
    assert plane.angle_between(np.array([-1.0, 0.0]), axis) == pytest.approx(180)
    assert np.isnan(plane.angle_between(np.zeros(2), axis))


def test_mean_directions_come_out_as_planted() -> None:
    rng = np.random.default_rng(3)
    planted = {"along": np.array([1.0, 0.0]), "across": np.array([0.0, 1.0])}
    groups = ["along"] * 400 + ["across"] * 400
    a = np.concatenate([planted[g][None] for g in groups]) + rng.normal(size=(800, 2)) * 0.3
    replicates = a[None] + rng.normal(size=(100, 1, 2)) * 0.05
    found = plane.directions(groups, a, replicates)
    assert [s.name for s in found] == ["along", "across"]
    for s in found:
        assert s.items == 400
        assert plane.angle_between(s.mean, planted[s.name]) < 4
        assert s.replicates.shape == (100, 2)
        assert 0.8 < s.single_minded <= 1


def test_replicates_with_gaps_are_left_out() -> None:
    a = np.ones((4, 2))
    replicates = np.ones((30, 4, 2))
    replicates[3] = np.nan
    (found,) = plane.directions(["x"] * 4, a, replicates)
    assert found.replicates.shape == (29, 2)


def test_circular_interval_reaches_across_the_cut() -> None:
    rng = np.random.default_rng(0)
    angles = plane.wrapped(180 + rng.normal(scale=5, size=4000))
    low, high = plane.circular_interval(angles, 179.0)
    assert low == pytest.approx(180 - 1.96 * 5, abs=1)
    assert high == pytest.approx(180 + 1.96 * 5, abs=1)
    assert plane.circular_interval(angles[:5], 0.0) is None


@given(st.lists(st.floats(-180, 180), min_size=1, max_size=60), st.floats(1, 20))
@example([0.0] * 15 + [153.0, -54.0], 19.0)  # fit on a line, and overlap round the circle
def test_spread_keeps_order_and_distance(angles: list[float], gap: float) -> None:
    given_angles = np.array(angles)
    out = plane.spread(given_angles, gap)
    assert out.shape == given_angles.shape
    if len(angles) > 1:
        turned = np.sort(out % 360)
        steps = np.diff(np.append(turned, turned[0] + 360))
        assert steps.min() >= min(gap, 360 / len(angles)) - 1e-6


def test_spread_leaves_what_is_apart() -> None:
    assert np.allclose(plane.spread(np.array([0.0, 90.0, -90.0]), 9), [0, 90, -90])
