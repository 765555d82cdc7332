"""Resampling: balance, disjointness, seeds, and intervals that cover."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from benchmirt import resampling as re

LINEAGE = np.repeat(np.arange(12), [9, 7, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1])


def test_a_seed_and_a_purpose_name_one_stream() -> None:
    first = re.generator(3, "halves").random(4)
    np.testing.assert_array_equal(re.generator(3, "halves").random(4), first)
    assert not np.array_equal(re.generator(3, "folds").random(4), first)
    assert not np.array_equal(re.generator(4, "halves").random(4), first)


def test_models_of_unknown_lineage_are_clusters_of_their_own() -> None:
    np.testing.assert_array_equal(re.clusters([5, 5, -1, 2, -1]), [1, 1, 2, 0, 3])
    weights = re.lineage_bootstrap([0, 0, -1, -1, -1], 200, seed=1)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    assert (weights[:, 2] != weights[:, 3]).any()


@settings(max_examples=30, deadline=None)
@given(codes=st.lists(st.integers(-1, 6), min_size=2, max_size=40), seed=st.integers(0, 1000))
def test_bootstrap_draws_whole_lineages(codes: list[int], seed: int) -> None:
    cluster = re.clusters(codes)
    weights = re.lineage_bootstrap(codes, 7, seed)
    per_cluster = np.stack([weights[:, cluster == c] for c in [0]])
    assert (per_cluster == per_cluster[:, :, :1]).all()
    first = [np.flatnonzero(cluster == c)[0] for c in range(cluster.max() + 1)]
    np.testing.assert_array_equal(weights[:, first].sum(1), cluster.max() + 1)
    np.testing.assert_array_equal(
        re.lineage_bootstrap(codes, 3, seed), weights[:3]
    )  # any number of replicates


def test_halves_are_disjoint_by_lineage_and_balanced() -> None:
    halves = re.lineage_halves(LINEAGE, 50, seed=0)
    for half in halves:
        assert all(len(set(half[c == LINEAGE])) == 1 for c in range(12))
        assert abs(int(half.sum()) - 22) <= 2
    assert len({half.tobytes() for half in halves}) > 40
    with pytest.raises(ValueError, match="two lineages"):
        re.lineage_halves(np.zeros(5), 3, seed=0)


def test_folds_hold_whole_lineages() -> None:
    fold = re.lineage_folds(LINEAGE, 5, seed=0)
    assert set(fold) == set(range(5))
    assert all(len(set(fold[c == LINEAGE])) == 1 for c in range(12))
    assert set(re.lineage_folds(np.arange(3), 10, seed=0)) == {0, 1, 2}


def test_item_halves_keep_testlets_and_halve_each_benchmark() -> None:
    benchmark = np.repeat(["a", "b"], [60, 41])
    testlet = np.array([f"t{j // 4}" if j < 40 else None for j in range(101)], dtype=object)
    halves = re.item_halves(benchmark, testlet, 30, seed=0)
    for half in halves:
        assert all(len(set(half[testlet == t])) == 1 for t in {f"t{j}" for j in range(10)})
        assert abs(int(half[:60].sum()) - 30) <= 3
        assert int(half[60:].sum()) in (20, 21)
    assert len({half.tobytes() for half in halves}) == 30
    np.testing.assert_array_equal(re.item_halves(benchmark, testlet, 3, seed=0), halves[:3])


def test_missing_testlets_of_any_kind_are_items_of_their_own() -> None:
    units = re.item_units(np.array(["x", None, float("nan"), "", "x"], dtype=object), 5)
    assert units[0] == units[4]
    assert len(set(units)) == 4
    with pytest.raises(ValueError, match="shape"):
        re.item_units(np.array(["x"], dtype=object), 2)


def test_revealed_halves_differ_by_model_and_are_stratified() -> None:
    benchmark = np.repeat(["a", "b"], [30, 51])
    testlet = np.array([f"t{j // 3}" for j in range(81)], dtype=object)
    revealed = re.revealed_halves(benchmark, 40, seed=0, testlet=testlet)
    np.testing.assert_array_equal(revealed[:, :30].sum(1), 15)
    assert set(revealed[:, 30:].sum(1)) == {24, 27}
    assert len({row.tobytes() for row in revealed}) == 40
    for row in revealed:
        np.testing.assert_array_equal(row.reshape(27, 3).sum(1) % 3, 0)


def test_cells_are_dealt_evenly() -> None:
    fold = re.cell_folds((7, 11), 10, re.generator(0, "cells"))
    assert fold.shape == (7, 11)
    assert set(np.bincount(fold.ravel())) == {7, 8}


def test_weighted_correlation_closed_forms() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 30))
    assert re.weighted_correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    counts = rng.integers(0, 4, 30)
    repeated = np.corrcoef(np.repeat(x, counts), np.repeat(y, counts))[0, 1]
    assert re.weighted_correlation(x, y, counts) == pytest.approx(repeated)
    assert re.weighted_correlation(x, 2 * x + 1) == pytest.approx(1.0)
    assert np.isnan(re.weighted_correlation(x, np.ones(30)))
    assert np.isnan(re.weighted_correlation(x, 1e6 + np.zeros(30)))
    y[3] = np.nan
    assert re.weighted_correlation(x, y) == pytest.approx(np.corrcoef(np.delete(x, 3), np.delete(y, 3))[0, 1])


def test_monte_carlo_p_counts_itself() -> None:
    assert re.monte_carlo_p(2.0, [1.0] * 99) == pytest.approx(0.01)
    assert re.monte_carlo_p(1.0, [1.0, 0.0, 2.0]) == pytest.approx(0.75)


def test_jackknife_of_a_mean_has_the_textbook_error() -> None:
    x = np.random.default_rng(1).standard_normal(25)
    left_out = re.jackknife(lambda w: float(w @ x / w.sum()), np.arange(25))
    assert re.jackknife_se(left_out) == pytest.approx(x.std(ddof=1) / 5)
    both = np.column_stack([np.append(left_out, np.nan), np.append(2 * left_out, np.nan)])
    np.testing.assert_allclose(re.jackknife_se(both), np.array([1, 2]) * x.std(ddof=1) / 5)
    assert np.isnan(re.jackknife_se(left_out[:1]))
    mean, se = re.mean_and_se(x, np.arange(25))
    assert (mean, se) == (pytest.approx(x.mean()), pytest.approx(x.std(ddof=1) / 5))
    assert re.mean_and_se(x, np.zeros(25))[1] == np.inf


def test_the_cluster_error_of_a_mean_exceeds_the_naive_one() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(12)[LINEAGE] + 0.1 * rng.standard_normal(44)
    assert re.mean_and_se(x, LINEAGE)[1] > 1.5 * x.std(ddof=1) / np.sqrt(44)


def test_bca_of_a_symmetric_statistic_is_the_percentile_interval() -> None:
    values = np.linspace(-1, 1, 2001)
    np.testing.assert_allclose(re.bca(0.0, values, [-1.0, 0.0, 1.0]), re.percentile(values), atol=2e-3)
    shifted = re.bca(0.5, values, [-1.0, 0.0, 1.0])
    assert shifted[0] > re.percentile(values)[0]
    assert np.isfinite(re.bca(5.0, values, [0.0])).all()  # all replicates below the estimate


def test_a_statistic_that_is_not_defined_gives_an_open_interval() -> None:
    found = re.cluster_interval(lambda w: float("nan"), LINEAGE, replicates=20)
    assert (found.low, found.high) == (-np.inf, np.inf)
    few = re.cluster_interval(lambda w: float(w.sum()), [0, 0, 1, 1], replicates=20)
    assert (few.low, few.high) == (-np.inf, np.inf)


def test_intervals_of_correlations_stay_inside_and_repeat() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(44)
    y = x + 0.3 * rng.standard_normal(44)

    def r(w: np.ndarray) -> float:
        return re.weighted_correlation(x, y, w)

    for kind in ("bca", "studentised", "percentile"):
        found = re.cluster_interval(r, LINEAGE, kind=kind, replicates=200, transform="fisher", seed=5)
        assert -1 < found.low < found.estimate < found.high < 1
        assert found.estimate == pytest.approx(r(np.ones(44)))
        assert found == re.cluster_interval(r, LINEAGE, kind=kind, replicates=200, transform="fisher", seed=5)
        assert kind in found.kind
        assert "12 lineages" in found.kind


def test_calibration_error_widens_both_sides() -> None:
    found = re.Interval(0.5, 0.3, 0.6, 0.95, "bca", 0.08, 100)
    wider = re.widen(found, 0.1)
    assert wider.low == pytest.approx(0.5 - np.hypot(0.2, 0.196), abs=1e-4)
    assert wider.high == pytest.approx(0.5 + np.hypot(0.1, 0.196), abs=1e-4)
    assert wider.se == pytest.approx(re.combine_se(0.08, 0.1))
    assert re.widen(found, 0.0).low == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bca", "studentised"])
def test_intervals_cover_with_unequal_lineages(kind: str) -> None:
    """Lineages of sizes 1 to 14 share much of their variance; the nominal 95 % interval still covers."""
    sizes = np.array([14, 10, 8, 7, 6, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1])
    lineage = np.repeat(np.arange(27), sizes)
    rng = np.random.default_rng(0)
    rho, runs, held = 0.5, 200, 0
    chol = np.linalg.cholesky(np.array([[1.0, rho], [rho, 1.0]]))
    for run in range(runs):
        shared = rng.standard_normal((27, 2)) @ chol.T
        own = rng.standard_normal((lineage.size, 2)) @ chol.T
        xy = np.sqrt(0.4) * shared[lineage] + np.sqrt(0.6) * own

        def r(w: np.ndarray, xy: np.ndarray = xy) -> float:
            return re.weighted_correlation(xy[:, 0], xy[:, 1], w)

        found = re.cluster_interval(r, lineage, kind=kind, replicates=199, seed=run, transform="fisher")  # type: ignore[arg-type]
        held += found.low <= rho <= found.high
    assert 0.91 <= held / runs <= 0.99


def test_prediction_p_is_uniform_for_one_more_value_of_the_null():
    rng = np.random.default_rng(0)
    p = np.array([re.prediction_p(one[0], one[1:]) for one in rng.normal(3.0, 2.0, (4000, 8))])
    np.testing.assert_allclose(np.quantile(p, [0.05, 0.25, 0.5, 0.9]), [0.05, 0.25, 0.5, 0.9], atol=0.03)
    assert re.prediction_p(1.0, [2.0]) == 1.0
    assert re.prediction_p(1.0, [0.0, 0.0]) == 0.0
    assert re.prediction_p(0.0, [0.0, 0.0]) == 1.0
