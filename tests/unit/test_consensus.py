"""The consensus of seeds: the common frame, failed seeds, signs by anchors, and the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmirt import identification as ident
from benchmirt import matrix
from benchmirt.dimensions import consensus
from benchmirt.errors import InputError
from benchmirt.identification import Solution
from benchmirt.inference import em
from benchmirt.inference.record import FitRecord, load_seeds

MODELS, ITEMS = 40, 90


def truth(dims: int = 2, seed: int = 0) -> Solution:
    """Return simple structure with correlated abilities, in a frame where theta ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    a = np.zeros((ITEMS, dims))
    a[np.arange(ITEMS), np.arange(ITEMS) * dims // ITEMS] = rng.uniform(0.8, 2.0, ITEMS) * np.linspace(
        1, 0.8, ITEMS
    )
    phi = np.full((dims, dims), 0.3) + 0.7 * np.eye(dims)
    return Solution(
        rng.standard_normal((MODELS, dims)), a @ np.linalg.cholesky(phi), rng.standard_normal(ITEMS)
    )


def record(solution: Solution, seed: int, noise: float = 0.05, **changes: object) -> FitRecord:
    """Turn the truth by a random rotation and add a little noise, as a seed would."""
    rng = np.random.default_rng(100 + seed)
    dims = solution.dims
    q, _ = np.linalg.qr(rng.standard_normal((dims, dims)))
    q[:, 0] *= (-1) ** seed  # some rotate, some reflect
    turned = ident.rotate(solution, q)
    made = FitRecord(
        engine="svi",
        dims=dims,
        seed=seed,
        theta_mean=turned.theta + noise * rng.standard_normal(turned.theta.shape),
        theta_cov=np.broadcast_to(q.T @ np.diag(np.linspace(0.1, 0.2, dims)) @ q, (MODELS, dims, dims)),
        a_mean=turned.a + noise * rng.standard_normal(turned.a.shape),
        d_mean=turned.d + noise * rng.standard_normal(ITEMS),
        item_cov=np.broadcast_to(0.05 * np.eye(dims + 1), (ITEMS, dims + 1, dims + 1)),
        tau=np.ones(dims),
        mu_d=0.0,
        sigma_d=1.0,
        trace=np.array([20.0, 10.0 + 0.1 * seed]),
        models=tuple(f"m{i}" for i in range(MODELS)),
        items=tuple(f"q{j}" for j in range(ITEMS)),
        data_hash="h",
        priors={},
        diagnostics={},
        versions={},
        converged=True,
        converged_why="settled",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def item_table() -> pd.DataFrame:
    benchmark = np.where(np.arange(ITEMS) < ITEMS // 2, "first", "second")
    return pd.DataFrame({"benchmark": benchmark, "category": np.where(benchmark == "first", "skill", None)})


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_truth_comes_back_from_rotated_seeds(dims: int) -> None:
    solution = truth(dims)
    found = consensus.build([record(solution, seed) for seed in range(6)], fit="corrected")
    expected, _ = ident.canonical(solution)
    assert (ident.congruence(found.a, expected.a) > 0.99).all()
    np.testing.assert_allclose(found.theta @ found.a.T + found.d, solution.eta(), atol=0.35)
    np.testing.assert_allclose(found.ability_theta @ found.a_display.T, found.theta @ found.a.T, atol=1e-9)
    phi = np.full((dims, dims), 0.3) + 0.7 * np.eye(dims)
    np.testing.assert_allclose(found.phi, phi, atol=0.05)
    assert found.seeds == tuple(range(6))
    assert found.losses[3] == pytest.approx(10.3)
    assert found.rotation["starts_agreeing"] >= 1


def test_the_order_of_the_seeds_does_not_matter() -> None:
    records = [record(truth(), seed) for seed in range(5)]
    first = consensus.build(records, fit="f")
    second = consensus.build(records[::-1], fit="f")
    np.testing.assert_allclose(second.a, first.a, atol=1e-10)
    np.testing.assert_allclose(second.ability_theta, first.ability_theta, atol=1e-10)


def test_covariances_are_turned_and_hold_the_spread_of_the_seeds() -> None:
    solution, _ = ident.canonical(truth())
    quiet = consensus.build([record(solution, seed, noise=0.0) for seed in range(4)], fit="f")
    np.testing.assert_allclose(quiet.theta_cov[0], np.diag([0.1, 0.2]), atol=1e-6)
    loud = consensus.build([record(solution, seed, noise=0.3) for seed in range(40)], fit="f")
    spread = np.einsum("nkk->nk", loud.theta_cov).mean(0) - [0.1, 0.2]
    np.testing.assert_allclose(spread, 0.09, atol=0.02)


def test_seeds_that_failed_are_named_and_left_out() -> None:
    solution = truth()
    broken = record(truth(seed=9), 2, converged=False, converged_why="still moving")
    records = [record(solution, 0), record(solution, 1), broken]
    found = consensus.build(records, fit="f")
    assert found.seeds == (0, 1)
    assert found.seeds_failed == {2: "still moving"}
    np.testing.assert_allclose(found.a, consensus.build(records[:2], fit="f").a)
    none = consensus.build([replace(one, converged=False) for one in records[:2]], fit="f")
    assert none.seeds == ()
    assert set(none.seeds_failed) == {0, 1}
    np.testing.assert_allclose(none.a, found.a)


def test_anchors_set_the_signs() -> None:
    records = [record(truth(), seed) for seed in range(3)]
    table = item_table()
    plain = consensus.build(records, fit="f", item_table=table)
    assert (plain.a_display.sum(0) > 0).all()
    turned = consensus.build(records, fit="f", item_table=table, anchors={"skill": 1, "second": "negative"})
    loads = np.abs(turned.a_display[: ITEMS // 2]).sum(0).argmax()
    assert turned.a_display[: ITEMS // 2, loads].mean() > 0
    assert turned.a_display[ITEMS // 2 :, 1 - loads].mean() < 0
    with pytest.raises(InputError, match="skil"):
        consensus.build(records, fit="f", item_table=table, anchors={"skil": 1})
    with pytest.raises(InputError, match="sign"):
        consensus.build(records, fit="f", item_table=table, anchors={"skill": 2})


def test_seeds_of_different_data_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        consensus.build([], fit="f")
    with pytest.raises(InputError, match="data_hash"):
        consensus.build([record(truth(), 0), record(truth(), 1, data_hash="other")], fit="f")


def test_a_spare_dimension_of_zeros_passes_through() -> None:
    solution = truth(1)
    flat = Solution(
        np.column_stack([solution.theta[:, 0], np.zeros(MODELS)]),
        np.column_stack([solution.a[:, 0], np.zeros(ITEMS)]),
        solution.d,
    )
    found = consensus.build([record(flat, seed, noise=0.0) for seed in range(3)], fit="f")
    assert np.abs(found.a[:, 1]).max() < 1e-9
    assert np.isfinite(found.a_display).all()


def test_the_file_holds_it_all_and_is_reproducible(tmp_path: Path) -> None:
    found = consensus.build(
        [record(truth(), seed) for seed in range(3)] + [record(truth(), 3, converged=False)], fit="corrected"
    )
    consensus.write(found, tmp_path / "a.nc")
    consensus.write(found, tmp_path / "b.nc")
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()
    back = consensus.read(tmp_path / "a.nc")
    for name in ("theta", "theta_cov", "a", "d", "T", "phi", "ability_theta", "a_display"):
        np.testing.assert_array_equal(getattr(back, name), getattr(found, name))
    np.testing.assert_allclose(back.item_cov, found.item_cov, rtol=1e-6)
    for name in (
        "fit",
        "engine",
        "models",
        "items",
        "seeds",
        "seeds_failed",
        "losses",
        "rotation",
        "data_hash",
    ):
        assert getattr(back, name) == getattr(found, name)
    with pytest.raises(InputError, match="readable consensus"):
        consensus.read(tmp_path / "missing.nc")
    assert back.as_record().dims == 2


def test_a_failed_seed_is_listed_and_the_others_make_the_consensus(tmp_path):
    rng = np.random.default_rng(8)
    data = matrix.from_arrays(rng.integers(0, 2, size=(20, 30)).astype(np.int8))
    record = em.fit(data, 1)
    record.save(tmp_path / "seed0.nc")
    FitRecord.save_failure(
        tmp_path / "seed1.nc", engine="em", dims=1, seed=1, data_hash=data.hash, why="the loss is not finite"
    )
    records, failed = load_seeds([tmp_path / "seed0.nc", tmp_path / "seed1.nc"])
    assert [one.seed for one in records] == [0]
    found = consensus.build(records, fit="corrected", failed=failed)
    assert found.seeds == (0,)
    assert found.seeds_failed == {1: "failed: the loss is not finite"}
    consensus.write(found, tmp_path / "consensus.nc")
    assert consensus.read(tmp_path / "consensus.nc").seeds_failed == found.seeds_failed
    with pytest.raises(InputError, match="seed 1 failed: the loss is not finite"):
        consensus.build([], fit="corrected", failed=failed)
