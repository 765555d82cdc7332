"""Closed forms and invariants of the statistics behind the claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from claims_fixture import Subset, World, plant, study_of
from scipy import stats

from benchmirt import claims, resampling
from benchmirt.claims import correlation, count, direction, intervals
from benchmirt.claims.contrast import nearer
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.identification import follow

# -- counts -------------------------------------------------------------------------------------------------


def test_items_on_a_bound_are_dropped_in_whole_numbers() -> None:
    right = np.arange(101)
    decided = count.recount(np.full(101, 100), right, ("0.05", "0.95"), 5)
    assert np.flatnonzero(decided == 1).tolist() == list(range(6, 95))
    assert np.flatnonzero(decided == -1).tolist() == [5, 95]
    # as fractions these are on the bound, though floats say otherwise
    assert 3 / 10 != 0.1 * 3
    assert count.recount(np.array([10]), np.array([3]), ("0.3", "0.95"), 5).tolist() == [-1]
    assert count.recount(np.array([60]), np.array([57]), ("0.05", "0.95"), 5).tolist() == [-1]
    assert count.recount(np.array([4, 5]), np.array([2, 2]), ("0.05", "0.95"), 5).tolist() == [0, 1]
    assert count.recount(np.array([0]), np.array([0]), ("0", "1"), 0).tolist() == [-1]


# -- correlations -------------------------------------------------------------------------------------------


def test_weighted_correlations_are_those_of_repeated_models() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30), rng.normal(size=30)
    weights = rng.integers(0, 4, size=(50, 30))
    found = correlation.correlations(x, y, weights.astype(float))
    for one, r in zip(weights, found, strict=True):
        assert r == pytest.approx(np.corrcoef(np.repeat(x, one), np.repeat(y, one))[0, 1], abs=1e-12)
    many = rng.normal(size=(7, 30))
    found = correlation.correlations(many, y, np.ones(30))
    assert found == pytest.approx([np.corrcoef(row, y)[0, 1] for row in many])


def test_a_constant_side_has_no_correlation() -> None:
    x = np.arange(5.0)
    assert np.isnan(correlation.correlations(x, np.ones(5), np.ones(5)))
    assert np.isnan(correlation.correlations(x, x, np.array([0, 0, 1.0, 0, 0])))
    assert np.isnan(correlation.correlations(x, x, np.zeros(5)))


def _estimate(x: np.ndarray, y: np.ndarray, lineage: np.ndarray) -> correlation._Estimate:
    left_out = (lineage[None] != np.unique(lineage)[:, None]).astype(float)
    r = float(correlation.correlations(x, y, np.ones(x.size)))
    return correlation._Estimate(r, correlation.correlations(x, y, left_out), np.full(50, r))


def test_the_interval_of_r_is_students_on_fishers_scale_with_the_jackknife_and_the_calibration() -> None:
    rng = np.random.default_rng(1)
    lineage = rng.integers(25, size=90)
    x = rng.normal(size=90) + 0.7 * rng.normal(size=25)[lineage]
    y = x + rng.normal(size=90)
    one = _estimate(x, y, lineage)
    assert one.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    leave = [np.corrcoef(x[lineage != g], y[lineage != g])[0, 1] for g in np.unique(lineage)]
    assert one.left_out == pytest.approx(leave)
    z = np.arctanh(leave)
    se = np.sqrt(24 / 25 * ((z - z.mean()) ** 2).sum())
    sizes = np.bincount(lineage)
    factor = stats.t.ppf(0.975, 90**2 / (sizes**2).sum() - 1)
    low, high = correlation._interval_of_r(one, lineage)
    assert np.arctanh([low, high]) == pytest.approx(np.arctanh(one.value) + factor * se * np.array([-1, 1]))
    shifts = np.tile([-0.1, 0.1], 25)
    moved = correlation._Estimate(one.value, one.left_out, np.tanh(np.arctanh(one.value) + shifts))
    both = factor * np.hypot(se, shifts.std(ddof=1))
    assert np.arctanh(correlation._interval_of_r(moved, lineage)) == pytest.approx(
        np.arctanh(one.value) + both * np.array([-1, 1])
    )


def test_independent_models_get_about_the_textbook_interval() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    y = 0.5 * x + rng.normal(size=2000)
    one = _estimate(x, y, np.arange(2000))
    low, high = np.arctanh(correlation._interval_of_r(one, np.arange(2000)))
    assert (high - low) / 2 == pytest.approx(1.96 / np.sqrt(1997), rel=0.08)


SIZES = np.array([12, 9, 8, 7, 6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, *[1] * 10])
"""Lineages as unequal as those of the published study's models."""


def _models(
    rng: np.random.Generator, lineage: np.ndarray, rho: Sequence[float], shape: str, shared: float = 0.4
) -> tuple[np.ndarray, np.ndarray]:
    """Return abilities (K, n) that are alike within lineages, and a score with the given correlations."""

    def draw(*size: int) -> np.ndarray:
        if shape == "normal":
            return rng.normal(size=size)
        return (rng.gamma(2, size=size) - 2) / np.sqrt(2)

    k = len(rho)
    both = np.sqrt(shared) * draw(k + 1, lineage.max() + 1)[:, lineage]
    both += np.sqrt(1 - shared) * draw(k + 1, lineage.size)
    rest = np.sqrt(1 - np.sum(np.square(rho)))
    return both[:k], np.asarray(rho) @ both[:k] + rest * both[k]


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_intervals_of_r_cover_over_unequal_lineages(rho: float, shape: str) -> None:
    rng = np.random.default_rng(2)
    lineage, rounds, hits = np.repeat(np.arange(SIZES.size), SIZES), 600, 0
    for _ in range(rounds):
        (x,), y = _models(rng, lineage, [rho], shape)
        low, high = correlation._interval_of_r(_estimate(x, y, lineage), lineage)
        hits += low < rho < high
    # 95 % aimed at; three standard errors at 600 rounds are 2.7 points
    assert 0.92 <= hits / rounds <= 0.985


@pytest.mark.parametrize("reliability", [0.7, 0.9])
def test_intervals_of_r_hold_the_correlation_with_the_true_ability(reliability: float) -> None:
    rng = np.random.default_rng(5)
    rho, lineage, rounds, plain, hits = 0.8, np.repeat(np.arange(SIZES.size), SIZES), 600, 0, 0
    for _ in range(rounds):
        (theta,), y = _models(rng, lineage, [rho], "normal")
        # as posterior means are: as far from the truth as what is left of its variance
        seen = reliability * theta + np.sqrt(reliability * (1 - reliability)) * rng.normal(size=lineage.size)
        one = _estimate(seen, y, lineage)
        low, high = correlation._interval_of_r(one, lineage)
        plain += low < rho < high
        ceiling = one.value / np.sqrt(reliability)
        known = replace(one, ceiling=ceiling, reliability=reliability)
        low, high = correlation._interval_of_r(known, lineage)
        assert low < one.value < high
        hits += low < rho < high
    assert hits / rounds >= 0.92
    assert plain / rounds < 0.9 or reliability > 0.8


def test_an_ability_of_which_nothing_is_known_gives_no_interval(tmp_path: Path) -> None:
    plant(tmp_path, World(reliability=float("nan")))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"] == "nothing is known of the abilities without bbq"


@pytest.mark.parametrize("rho", [(0.6, 0.0), (0.6, 0.3), (-0.7, 0.2), (0.5, 0.5)])
def test_differences_of_absolute_correlations_cover_also_where_one_is_0(rho: tuple[float, float]) -> None:
    rng = np.random.default_rng(4)
    lineage, rounds, above, below = np.repeat(np.arange(SIZES.size), SIZES), 600, 0, 0
    truth = abs(rho[0]) - abs(rho[1])
    for _ in range(rounds):
        theta, y = _models(rng, lineage, rho, "normal")
        made = [_estimate(one, y, lineage) for one in theta]
        estimate, (low, high) = correlation._difference("abs_r_difference", *made, lineage)
        assert low - 1e-12 <= estimate <= high + 1e-12
        above += low > truth
        below += high < truth
    # claiming too much is what matters: at most 2.5 %, and three standard errors
    assert above / rounds <= 0.045
    assert 1 - (above + below) / rounds >= 0.915


def test_simultaneous_intervals_hold_all_cells_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "DRAWS", 4000)
    rng = np.random.default_rng(6)
    lineage = np.repeat(np.arange(SIZES.size), SIZES)
    truth, rounds, hits = np.linspace(-0.6, 0.8, 8), 250, 0
    for k in range(rounds):
        cells = []
        for rho in truth:
            (x,), y = _models(rng, lineage, [rho], "normal")
            sample = correlation.Sample(np.ones(1, bool), np.ones(lineage.size, bool), y, lineage)
            cells.append(correlation._Cell({}, {}, "a", rho, sample, _estimate(x, y, lineage)))
        bounds, factor = correlation._simultaneous(cells, f"round {k}")
        assert factor > stats.t.ppf(0.975, SIZES.sum() ** 2 / (SIZES**2).sum() - 1)
        hits += all(low < rho < high for rho, (low, high) in zip(truth, bounds, strict=True))
    assert hits / rounds >= 0.90


def test_estimates_come_from_abilities_without_the_benchmark(tmp_path: Path) -> None:
    plant(tmp_path)
    study = study_of()
    record = claims.evaluate("C10", tmp_path, study)
    with xr.open_dataset(tmp_path / "dimensions" / "leave_one_out.nc", engine="h5netcdf") as data:
        theta = data["theta"].sel(benchmark="wmdp").to_numpy()
    results = Results(tmp_path, study)
    mine = (results.items()["benchmark"] == "wmdp").to_numpy()
    score = results.means(mine)
    # the fixture's labels turn the second ability round
    r = [np.corrcoef(theta[:, 0], score)[0, 1], np.corrcoef(-theta[:, 1], score)[0, 1]]
    parts = {part["name"]: part["estimate"] for part in record["corrected"]["parts"]}
    assert parts["WMDP with reasoning"] == pytest.approx(r[0])
    assert parts["WMDP with safety"] == pytest.approx(abs(r[1]))
    assert parts["WMDP with reasoning more than with safety"] == pytest.approx(abs(r[0]) - abs(r[1]))
    with xr.open_dataset(tmp_path / "dimensions" / "published" / "consensus.nc", engine="h5netcdf") as data:
        full = data["ability_theta"].to_numpy()
    # in the published fit the abilities stand the other way round, reasoning turned
    plain = np.corrcoef(-full[:, 1], results.means(mine, "published"))[0, 1]
    found = {part["name"]: part["estimate"] for part in record["as_published"]["parts"]}
    assert abs(found["WMDP with reasoning"]) == pytest.approx(abs(plain))
    assert found["WMDP with reasoning"] < 0


# -- directions ---------------------------------------------------------------------------------------------


def test_angles_are_those_of_the_inner_product() -> None:
    rng = np.random.default_rng(0)
    vectors, axis = rng.normal(size=(40, 3)), rng.normal(size=3)
    cosine = vectors @ axis / np.linalg.norm(vectors, axis=1) / np.linalg.norm(axis)
    assert direction.angle_to(vectors, axis) == pytest.approx(np.degrees(np.arccos(cosine)))
    assert direction.angle_to(axis, 5 * axis) == pytest.approx(0, abs=1e-5)
    assert direction.angle_to(-axis, axis) == pytest.approx(180, abs=1e-5)
    assert np.isnan(direction.angle_to(np.zeros(3), axis))


def test_directions_do_not_depend_on_the_frame() -> None:
    rng = np.random.default_rng(1)
    vectors, axis, other = rng.normal(size=(20, 2)), rng.normal(size=2), rng.normal(size=2)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for one, two in (
        (direction.angle_to(vectors, axis), direction.angle_to(vectors @ turn, axis @ turn)),
        (
            nearer(vectors[:10], vectors[10:], axis, other),
            nearer(vectors[:10] @ turn, vectors[10:] @ turn, axis @ turn, other @ turn),
        ),
    ):
        assert one == pytest.approx(two)


def test_signs_of_contrasts_point_to_the_ability() -> None:
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    near, far = np.array([1.0, 0.2]), np.array([0.2, 1.0])
    assert nearer(near, far, x, None) == pytest.approx(90 - 2 * np.degrees(np.arctan(0.2)))
    assert nearer(near, far, x, y) > 0 > nearer(near, far, y, x)
    assert direction.leaning(near, x, y) == pytest.approx(-direction.leaning(far, x, y))


def test_signed_replicates_stand_on_both_sides_of_the_axis() -> None:
    axis = np.array([1.0, 0.0])
    mean = np.array([1.0, 0.1])
    vectors = np.array([[1.0, 0.3], [1.0, -0.1], [-1.0, 0.05], [-1.0, -0.05]])
    signed = direction._signed(mean, axis, vectors, axis)
    own = np.degrees(np.arctan(0.1))
    # unwrapped to within half a turn of the estimate
    assert signed == pytest.approx(
        [
            np.degrees(np.arctan(0.3)),
            -own,
            180 - np.degrees(np.arctan(0.05)),
            180 + np.degrees(np.arctan(0.05)),
        ]
    )
    # turning vector and axis together changes nothing
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2, 2)))[0]
    turn[:, :, 0] *= np.sign(np.linalg.det(turn))[:, None]
    small = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    assert direction._signed(mean, axis, vectors @ small, axis @ small) == pytest.approx(signed)


def test_a_direction_exactly_on_the_axis_has_an_interval() -> None:
    rng = np.random.default_rng(2)
    axis = np.array([1.0, 0.0, 0.0])
    vectors = axis + 0.05 * rng.normal(size=(20_000, 3))
    signed = direction._signed(axis, axis, vectors, axis)
    assert abs(signed.mean()) < 1


def test_the_reach_of_an_interval_is_students_and_keeps_its_shape() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(10, 4, size=(200, 500))
    below, above = direction.spread(values, np.arange(100_000))
    assert [below, above] == pytest.approx([4 * 1.96] * 2, rel=0.03)
    few = np.repeat(np.arange(6), 5)
    wider = stats.t.ppf(0.975, 5) / stats.norm.ppf(0.975)
    assert direction.spread(values, few) == pytest.approx((below * wider, above * wider), rel=1e-4)
    below, above = direction.spread(rng.gamma(1.0, size=(200, 500)), np.arange(10_000))
    assert above > 3 * below
    # where the replicates stand does not matter, only how far they are apart; nor do a few that went astray
    assert direction.spread(values + 50, few) == pytest.approx(direction.spread(values, few))
    assert direction.spread(values, few, 2.0) == pytest.approx(2 * np.array(direction.spread(values, few)))
    astray = values.copy()
    astray[0] = 170.0
    assert direction.spread(astray, few) == pytest.approx(direction.spread(values, few), rel=0.1)


def test_effective_clusters_are_worth_their_sizes() -> None:
    assert intervals.effective_clusters(np.arange(20)) == pytest.approx(20)
    assert intervals.effective_clusters(np.repeat([3, 8, 9, 11, 40], 7)) == pytest.approx(5)
    assert intervals.effective_clusters(np.array([0] * 50 + [1])) == pytest.approx(51**2 / (2500 + 1))
    assert intervals.degrees_of_freedom(np.array([], dtype=int)) == 0
    with pytest.raises(Unavailable, match=r"worth only 1\.0 independent models"):
        intervals.student_factor(np.array([0] * 50 + [1]))
    with pytest.raises(Unavailable, match="replicates have a direction"):
        direction.spread(np.full(200, np.nan), np.arange(20))


def test_the_error_of_means_is_that_of_clusters_and_keeps_what_selections_share() -> None:
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(40), 3)
    a = rng.normal(size=(40, 2))[units] + 0.3 * rng.normal(size=(120, 2))
    first = units < 30
    second = units >= 20
    root = direction._item_error(a, [first, second], units)
    covariance = root.T @ root
    for k, member in enumerate((first, second)):
        totals = np.array(
            [(a[(units == t) & member] - a[member].mean(axis=0)).sum(axis=0) for t in set(units[member])]
        )
        count = len(totals)
        expected = count / (count - 1) * totals.T @ totals / member.sum() ** 2
        assert covariance[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] == pytest.approx(expected)
    shared = covariance[:2, 2:]
    assert np.trace(shared) > 0
    # apart, they have nothing in common
    apart = direction._item_error(a, [units < 20, units >= 20], units)
    assert (apart.T @ apart)[:2, 2:] == pytest.approx(0.0, abs=1e-12)
    # a set compared with itself has no error
    same = direction._item_error(a, [first, first], units)
    assert same[:, :2] == pytest.approx(same[:, 2:], abs=1e-7)


def _angle_interval(folder: Path, world: World) -> tuple[float, float, float]:
    plant(folder, world)
    entry = {
        "id": "A",
        "kind": "direction",
        "statement": "s",
        "parts": [
            {"name": "n", "select": {"benchmark": "b"}, "ability": "reasoning", "region": {"high": 45}},
        ],
    }
    (part,) = claims.evaluate("A", folder, study_of([entry]))["corrected"]["parts"]
    return part["estimate"], *part["interval"]


def test_intervals_of_angles_stay_between_0_and_180(tmp_path: Path) -> None:
    rest = (Subset("other", "safety", 78.0),)
    for angle in (0.0, 40.0, 180.0):
        world = World(subsets=(Subset("b", "reasoning", angle), *rest), noise=0.3)
        estimate, low, high = _angle_interval(tmp_path / str(angle), world)
        assert 0 <= low <= estimate <= high <= 180
        assert low <= angle <= high
    assert low < high == 180


def test_replicates_vary_as_lineages_and_testlets_do(tmp_path: Path) -> None:
    plant(tmp_path, World(replicates=100))
    path = tmp_path / "dimensions" / "bootstrap.nc"
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        data = opened.load()
    study = study_of()
    results = Results(tmp_path, study)
    fit = results.consensus("corrected")
    items = results.items()
    mine = (items["benchmark"] == "bbh").to_numpy() & items["kept"].to_numpy()
    a = fit.a[fit.items.get_indexer(items.loc[mine, "question_id"])]

    def replicates(change: np.ndarray) -> np.ndarray:
        path.unlink()
        data.assign(a=(data["a"].dims, change.astype(np.float32))).to_netcdf(path, engine="h5netcdf")
        found = direction.cloud(Results(tmp_path, study), fit, [mine], "test")
        assert found.drawn == "testlets"
        assert found.means[0] == pytest.approx(a.mean(axis=0))
        return found.replicates[0]

    # all refits alike: what is left is the draw of testlets
    same = replicates(np.broadcast_to(fit.a, data["a"].shape)).reshape(-1, 2)
    testlet = items.loc[mine, "testlet"].to_numpy()
    share = np.array([(a[testlet == t] - a.mean(axis=0)).sum(axis=0) for t in np.unique(testlet)]) / len(a)
    count = len(share)
    assert same.std(axis=0) == pytest.approx(np.sqrt(count / (count - 1) * (share**2).sum(axis=0)), rel=0.06)
    # within a refit the draws have that spread, between refits the refits' own
    tilt = np.random.default_rng(0).normal(0, 0.2, (100, 1, 2))
    moved = replicates(fit.a + tilt)
    assert moved.mean(axis=1) == pytest.approx(a.mean(axis=0) + tilt[:, 0], abs=0.06)


def test_refits_are_stretched_by_how_little_they_differ() -> None:
    rng = np.random.default_rng(0)
    influence = rng.normal(size=40)
    lineages = np.arange(40)
    fifth = np.array([rng.permutation(np.repeat([1.0, 0.0], [32, 8])) for _ in range(4000)])
    half = np.array([rng.permutation(np.repeat([1.0, 0.0], 20)) for _ in range(4000)])
    drawn = rng.multinomial(40, np.full(40, 1 / 40), size=4000).astype(float)
    for weights, scale in ((fifth, 2.0), (half, 1.0), (drawn, 1.0)):
        found = resampling.stretch(weights, lineages)
        assert found == pytest.approx(scale, rel=0.03)
        # a linear statistic gets its sampling variance, whichever way lineages were resampled
        moved = (weights / weights.mean(axis=1, keepdims=True) - 1) @ influence
        assert found * moved.std() == pytest.approx(np.linalg.norm(influence), rel=0.08)
    assert resampling.stretch(np.ones((5, 40)), lineages) == 1.0
    assert resampling.stretch(np.ones((0, 40)), lineages) == 1.0


def test_claims_stretch_refits_by_the_weights_of_their_own_models(tmp_path: Path) -> None:
    plant(tmp_path)
    path = tmp_path / "dimensions" / "bootstrap.nc"
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        data = opened.load()
    codes = Results(tmp_path, study_of()).lineage()
    kept = np.arange(codes.max() + 1) % 5 > 0
    drawn = np.random.default_rng(0).permuted(np.tile(kept, (data.sizes["replicate"], 1)), axis=1)
    # models of the file in another order than those of the matrix
    data = data.assign(weights=(("replicate", "model"), drawn[:, codes].astype(np.int32))).isel(
        model=slice(None, None, -1)
    )
    path.unlink()
    data.to_netcdf(path, engine="h5netcdf")
    assert Results(tmp_path, study_of()).bootstrap.scale == pytest.approx(np.sqrt(kept.sum() / (~kept).sum()))


def test_axes_turn_with_the_refits(tmp_path: Path) -> None:
    plant(tmp_path)
    path = tmp_path / "dimensions" / "bootstrap.nc"
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        data = opened.load()
    results = Results(tmp_path, study_of())
    fit = results.consensus("corrected")
    angles = np.radians(np.linspace(-20, 20, data.sizes["replicate"]))
    turns = np.array([[[np.cos(x), np.sin(x)], [-np.sin(x), np.cos(x)]] for x in angles])
    path.unlink()
    turned = np.einsum("jk,rkl->rjl", fit.a, turns)
    followed = np.stack([follow(one, fit.T) for one in turned])
    data.assign(a=(data["a"].dims, turned.astype(np.float32)), T=(data["T"].dims, followed)).to_netcdf(
        path, engine="h5netcdf"
    )
    results = Results(tmp_path, study_of())
    axes = results.bootstrap.T
    assert np.linalg.norm(axes, axis=1) == pytest.approx(1.0)
    # the middle refit is hardly turned; all others have its axes, turned as they are
    middle = len(angles) // 2
    straight = axes[middle] @ np.eye(2)
    for r, turn in enumerate(turns):
        assert axes[r] == pytest.approx(turn.T @ turns[middle] @ straight, abs=1e-4)
    assert (np.abs(np.einsum("ka,ka->a", straight, fit.T)) > 0.98).all()
    # vectors and axes turn together, so the angles of a set do not change but for its items
    mine = results.usable({"benchmark": ("bbh",)}, {})
    found = direction.cloud(results, fit, [mine], "test")
    ability = results.ability("reasoning")
    signed = direction.angle_to(found.replicates[0].mean(axis=1), direction.axes_of(results, ability)[:, 0])
    assert np.ptp(signed) < 3


def test_more_items_make_a_direction_surer(tmp_path: Path) -> None:
    rest = (Subset("other", "safety", 78.0),)
    widths = []
    for items in (24, 240):
        world = World(subsets=(Subset("b", "reasoning", 30.0, items=items), *rest))
        _, low, high = _angle_interval(tmp_path / str(items), world)
        widths.append(high - low)
    assert widths[1] < widths[0]


def test_order_of_models_and_items_changes_nothing(tmp_path: Path) -> None:
    one, two = plant(tmp_path / "one"), plant(tmp_path / "two")
    rng = np.random.default_rng(5)
    for policy in ("honest", "published"):
        folder = two / "matrix" / policy
        items, models = pd.read_parquet(folder / "items.parquet"), pd.read_parquet(folder / "models.parquet")
        responses = pd.read_parquet(folder / "responses.parquet")
        rows, columns = rng.permutation(len(items)), rng.permutation(len(models))
        models = models.iloc[columns].reset_index(drop=True)
        responses = responses.iloc[rows].reset_index(drop=True)[["question_id", *models["model"]]]
        items.iloc[rows].reset_index(drop=True).to_parquet(folder / "items.parquet")
        models.to_parquet(folder / "models.parquet")
        responses.to_parquet(folder / "responses.parquet")
    study = study_of()
    for claim in ("C9", "C10", "C11", "C13", "C2"):
        first, second = (claims.evaluate(claim, folder, study) for folder in (one, two))
        for a, b in zip(first["corrected"]["parts"], second["corrected"]["parts"], strict=True):
            assert a["estimate"] == pytest.approx(b["estimate"], abs=1e-9)
            assert a["interval"] == pytest.approx(b["interval"], abs=1e-6)
            assert a["as_published"] == pytest.approx(b["as_published"], abs=1e-9)
            assert a["items"] == b["items"]
