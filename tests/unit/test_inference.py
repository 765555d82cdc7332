"""The engines on planted truth, against each other, and on matrices that break lesser ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmirt import inference, likelihood, matrix
from benchmirt.errors import InputError
from benchmirt.inference import em, memory, nuts, quadrature
from benchmirt.inference.record import FitError, FitRecord, load_seeds


def planted(models=60, items=240, dims=2, seed=0, floor=False, missing=0.1):
    """Responses with their truth; abilities standardised as records report them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(models, dims))
    theta -= theta.mean(0)
    theta = theta @ np.linalg.inv(np.linalg.cholesky(np.cov(theta.T, bias=True).reshape(dims, dims))).T
    a = rng.normal(size=(items, dims)) * np.array([1.4, 0.8, 0.6])[:dims]
    d = rng.normal(size=items)
    low = np.where(np.arange(items) % 2 == 0, 0.25, 0.0) if floor else np.zeros(items)
    p = low + (1 - low) / (1 + np.exp(-(theta @ a.T + d)))
    y = (rng.random(p.shape) < p).astype(np.int8)
    hidden = rng.random(p.shape) < missing
    data = matrix.from_arrays(np.where(hidden, -1, y), floor=low)
    return data, theta, a, d, p, y, hidden


def log_loss(record, data, y, cells):
    q = np.asarray(
        likelihood.predict(
            record.theta_mean,
            record.theta_cov,
            record.a_mean,
            record.d_mean,
            record.item_cov,
            data.floor,
            data.ceiling,
        )
    )
    return -np.mean(np.log(np.where(y == 1, q, 1 - q))[cells])


def recovered(record, theta):
    """Correlation of each true ability with its best linear prediction from the record."""
    design = np.column_stack([record.theta_mean, np.ones(len(theta))])
    fitted = design @ np.linalg.lstsq(design, theta, rcond=None)[0]
    return [np.corrcoef(fitted[:, k], theta[:, k])[0, 1] for k in range(theta.shape[1])]


OPTIONS = {
    "em": {},
    "svi": {"steps": 800},
    "nuts": {"chains": 2, "warmup": 100, "draws": 300},
}


@pytest.mark.parametrize("engine", ["em", "svi"])
@pytest.mark.parametrize("floor", [False, True])
def test_planted_truth_is_recovered(engine, floor):
    data, theta, _, _, p, y, hidden = planted(floor=floor)
    record = inference.fit(data, engine=engine, dims=2, seed=1, options=OPTIONS[engine])
    assert min(recovered(record, theta)) > (0.92 if floor else 0.94)
    item_mean = np.clip(np.nanmean(np.where(hidden, np.nan, y), axis=0), 0.02, 0.98)
    base = -np.mean(np.log(np.where(y == 1, item_mean, 1 - item_mean))[hidden])
    oracle = -np.mean(np.log(np.where(y == 1, p, 1 - p))[hidden])
    loss = log_loss(record, data, y, hidden)
    assert loss < oracle + 0.35 * (base - oracle)
    assert record.converged, record.converged_why


@pytest.mark.parametrize("dims", [5, 6])
@pytest.mark.parametrize("engine", ["em", "svi"])
def test_many_dimensions_are_recovered(engine, dims):
    rng = np.random.default_rng(dims)
    theta, a = rng.normal(size=(150, dims)), rng.normal(size=(500, dims)) * np.linspace(1.4, 0.9, dims)
    p = 1 / (1 + np.exp(-(theta @ a.T + rng.normal(size=500))))
    data = matrix.from_arrays((rng.random(p.shape) < p).astype(np.int8))
    record = inference.fit(data, engine=engine, dims=dims, seed=0, options=OPTIONS[engine])
    assert min(recovered(record, theta)) > 0.93
    assert record.tau.min() > 0.6


def test_records_report_one_frame():
    data = planted()[0]
    for engine in ("em", "svi"):
        record = inference.fit(data, engine=engine, dims=2, seed=1, options=OPTIONS[engine])
        np.testing.assert_allclose(record.theta_mean.mean(0), 0, atol=1e-4)
        second = np.cov(record.theta_mean.T, bias=True) + record.theta_cov.mean(0)
        np.testing.assert_allclose(second, np.eye(2), atol=2e-3)
        items = record.a_mean.T @ record.a_mean + record.item_cov[:, :2, :2].sum(0)
        assert abs(items[0, 1]) < 1e-3 * items[0, 0]
        assert items[0, 0] > items[1, 1]
        assert (record.a_mean.sum(0) >= 0).all()


def test_one_dimension_is_close_to_a_dense_quadrature_fit():
    """EM against marginal maximum likelihood by quadrature over one ability: another way to the same model.

    The bound shrinks discriminations where few items leave the abilities uncertain; with 60 items little is left of it.
    """
    data, *_ = planted(models=200, items=60, dims=1, seed=4, missing=0.0)
    record, exact = em.fit(data, 1), quadrature.fit(data, nodes=31)
    a, b = record.a_mean[:, 0], exact.a[:, 0]
    usual = np.abs(b) < 2.5  # beyond, the prior-free maximum runs off
    assert np.corrcoef(a[usual], b[usual])[0, 1] > 0.99
    slope = (a[usual] * b[usual]).sum() / (b[usual] ** 2).sum()
    assert 0.85 < slope < 1.05
    assert np.corrcoef(record.d_mean[usual], exact.d[usual])[0, 1] > 0.99


@pytest.mark.parametrize("engine", ["em", "svi"])
def test_same_seed_same_bits(engine):
    data = planted(models=40, items=120)[0]
    first, second = (
        inference.fit(data, engine=engine, dims=2, seed=5, options=OPTIONS[engine]) for _ in range(2)
    )
    for name in ("theta_mean", "theta_cov", "a_mean", "d_mean", "item_cov"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_permuting_models_and_items_permutes_the_answer():
    data = planted(models=40, items=120)[0]
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(120)
    moved = matrix.from_arrays(data.responses[rows][:, columns])
    first, second = em.fit(data, 2, tolerance=1e-5), em.fit(moved, 2, tolerance=1e-5)
    np.testing.assert_allclose(second.theta_mean, first.theta_mean[rows], atol=2e-3)
    np.testing.assert_allclose(second.a_mean, first.a_mean[columns], atol=5e-3)


def test_random_and_spectral_starts_reach_the_same_optimum():
    data = planted()[0]
    spectral = em.fit(data, 2)
    for seed in (1, 2, 3):
        other = em.fit(data, 2, seed=seed)
        assert other.diagnostics["elbo"] == pytest.approx(spectral.diagnostics["elbo"], abs=0.5)
        np.testing.assert_allclose(other.theta_mean, spectral.theta_mean, atol=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_a_weak_dimension_of_a_small_table_is_kept(seed):
    """40 models, 120 items and a chance floor: a loose bound shuts the second dimension at a tenth of its planted spread."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(40, 2))
    theta -= theta.mean(0)
    theta = theta @ np.linalg.inv(np.linalg.cholesky(np.cov(theta.T, bias=True))).T
    a = rng.normal(size=(120, 2)) * [1.0, 0.7]
    p = 0.25 + 0.75 / (1 + np.exp(-(theta @ a.T + rng.normal(size=120))))
    data = matrix.from_arrays((rng.random(p.shape) < p).astype(np.int8), floor=np.full(120, 0.25))
    spread = np.sqrt(np.linalg.eigvalsh(a.T @ a / len(a)))[::-1]
    ratio = em.fit(data, 2).tau / spread
    assert (ratio > 0.7).all()
    assert (ratio < 1.05).all()


def test_the_fit_is_a_maximum_of_its_bound():
    """No nearby Gaussians have a higher evidence bound, computed here by dense quadrature and plain formulas."""
    data, *_ = planted(models=25, items=20, seed=3, missing=0.0)
    record = em.fit(data, 1, tolerance=1e-6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def bound(theta, theta_var, item, item_cov):
        x = np.column_stack([theta, np.ones(len(theta))])
        mean = x @ item.T
        second_a = item[:, 0] ** 2 + item_cov[:, 0, 0]
        variance = np.einsum("np,jpq,nq->nj", x, item_cov, x) + np.outer(theta_var, second_a)
        eta = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        sign = np.where(data.responses == 1, 1.0, -1.0)[..., None]
        fit = (-np.log1p(np.exp(-sign * eta)) @ weights).sum()
        of_models = np.log(theta_var) - theta**2 - theta_var
        spread = np.array([record.tau[0], record.sigma_d])
        offset = item - [0.0, record.mu_d]
        second = offset**2 + np.diagonal(item_cov, axis1=1, axis2=2)
        of_items = np.linalg.slogdet(item_cov)[1] - (second / spread**2).sum(1)
        return fit + (of_models.sum() + of_items.sum()) / 2

    item = np.column_stack([record.a_mean[:, 0], record.d_mean])
    best = [record.theta_mean[:, 0], record.theta_cov[:, 0, 0], item, record.item_cov]
    best = [np.asarray(x, np.float64) for x in best]
    top = bound(*best)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shift = 0.1 * rng.normal(size=25), 0.1 * rng.normal(size=item.shape)
        other = bound(best[0] + shift[0], best[1], best[2] + shift[1], best[3])
        assert other < top
        scale = np.exp(0.1 * rng.normal(size=25)), np.exp(0.1 * rng.normal(size=(20, 1, 1)))
        assert bound(best[0], best[1] * scale[0], best[2], best[3] * scale[1]) < top


def test_determinants_of_many_matrices_are_those_of_lapack():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(50, 4, 4))
    matrices = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(4)
    found = em._log_determinant(matrices.astype(np.float32))
    np.testing.assert_allclose(found, np.linalg.slogdet(matrices)[1], atol=2e-4)


def test_too_few_draws_to_judge_by_are_refused():
    data = planted(models=10, items=20)[0]
    with pytest.raises(ValueError, match="at least 4 draws"):
        nuts.fit(data, 1, draws=3)


def test_a_weight_of_two_is_a_model_twice():
    data = planted(models=30, items=100, missing=0.0)[0]
    weights = np.ones((1, 30))
    weights[0, :10] = 2
    weighted = em.fit_many(data, 2, model_weights=weights, tolerance=1e-5)
    doubled = matrix.from_arrays(np.concatenate([data.responses, data.responses[:10]]))
    plain = em.fit(doubled, 2, tolerance=1e-5)
    np.testing.assert_allclose(weighted.a[0], plain.a_mean, atol=5e-3)
    np.testing.assert_allclose(weighted.theta[0], plain.theta_mean[:30], atol=5e-3)


def test_weight_zero_keeps_a_model_out_of_the_items_and_still_scores_it():
    data = planted(models=40, items=150)[0]
    weights = np.ones((1, 40))
    weights[0, 30:] = 0
    with_scored = em.fit_many(data, 2, model_weights=weights, tolerance=1e-5)
    alone = em.fit(matrix.from_arrays(data.responses[:30]), 2, tolerance=1e-5)
    np.testing.assert_allclose(with_scored.a[0], alone.a_mean, atol=5e-3)
    assert np.abs(with_scored.theta[0][30:]).max() > 0.1


def test_item_weight_zero_keeps_an_item_out_of_the_abilities_and_still_calibrates_it():
    data = planted(models=40, items=150, missing=0.0)[0]
    weights = np.ones((1, 150))
    weights[0, 100:] = 0
    without = em.fit_many(data, 2, item_weights=weights, tolerance=1e-5)
    alone = em.fit(matrix.from_arrays(data.responses[:, :100]), 2, tolerance=1e-5)
    np.testing.assert_allclose(without.theta[0], alone.theta_mean, atol=5e-3)
    assert np.abs(without.a[0][100:]).max() > 0.3


def test_hidden_cells_are_never_seen():
    data, *_ = planted(models=40, items=120, missing=0.0)
    reveal = np.random.default_rng(0).random((2, 40, 120)) < 0.7
    batch = em.fit_many(data, 2, reveal=reveal)
    flipped = matrix.from_arrays(np.where(reveal[1], data.responses, 1 - data.responses))
    again = em.fit_many(flipped, 2, reveal=reveal)
    np.testing.assert_array_equal(batch.theta[1], again.theta[1])


@pytest.mark.parametrize("engine", ["em", "svi"])
@pytest.mark.parametrize(
    "case",
    [
        "constant items",
        "perfect and zero models",
        "empty model",
        "empty item",
        "two models",
        "one item",
        "sparse",
    ],
)
def test_awkward_matrices_give_finite_answers(engine, case):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, size=(20, 40)).astype(np.int8)
    dims = 2
    if case == "constant items":
        y[:, :5], y[:, 5:10] = 1, 0
    elif case == "perfect and zero models":
        y[0], y[1] = 1, 0
    elif case == "empty model":
        y[3] = -1
    elif case == "empty item":
        y[:, 3] = -1
    elif case == "two models":
        y, dims = y[:2], 1
    elif case == "one item":
        y, dims = y[:, :1], 1
    else:
        y[rng.random(y.shape) < 0.99] = -1
    record = inference.fit(matrix.from_arrays(y), engine=engine, dims=dims, seed=0, options=OPTIONS[engine])
    assert np.isfinite(record.eta()).all()
    assert np.abs(record.theta_mean).max() < 20


@pytest.mark.parametrize("dims", [0, 20, 25])
def test_impossible_dimensions_are_refused(dims):
    data = planted(models=20, items=30)[0]
    with pytest.raises(InputError, match="20 models and 30 items"):
        inference.fit(data, engine="em", dims=dims, seed=0)


def test_an_unknown_engine_gets_the_nearest_name():
    with pytest.raises(InputError, match="svi"):
        inference.fit(planted(models=20, items=30)[0], engine="svii", dims=1, seed=0)


def test_memory_is_refused_before_it_is_taken():
    with pytest.raises(InputError, match="GiB needed"):
        memory.check("svi", 4500, 21600, 2, available=2**30)
    assert memory.check("em", 100, 1000, 2, available=2**33) < 2**30


def test_no_nan_is_passed_on():
    record = em.fit(planted(models=20, items=30)[0], 1)
    broken = {name: getattr(record, name) for name in record.__dataclass_fields__}
    broken["a_mean"] = np.full_like(record.a_mean, np.nan)
    with pytest.raises(FitError, match="30 values of a_mean"):
        FitRecord(**broken)


def test_a_record_survives_the_disk_and_is_the_same_bytes_again(tmp_path):
    record = em.fit(planted(models=20, items=30)[0], 1)
    record.save(tmp_path / "a.nc")
    record.save(tmp_path / "b.nc")
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()
    loaded = FitRecord.load(tmp_path / "a.nc")
    np.testing.assert_array_equal(loaded.a_mean, record.a_mean)
    assert loaded.diagnostics == record.diagnostics
    assert loaded.models == record.models
    assert loaded.converged_why == record.converged_why


def test_a_file_that_is_no_record_is_named(tmp_path):
    (tmp_path / "seed0.nc").write_text("not NetCDF")
    with pytest.raises(InputError, match=r"seed0\.nc"):
        FitRecord.load(tmp_path / "seed0.nc")


class KilledError(Exception):
    pass


def test_a_seed_that_fails_leaves_a_file_that_says_so(tmp_path, caplog):
    data = planted(models=20, items=30)[0]
    path = tmp_path / "seed3.nc"
    options = {"steps": 60, "learning_rate": 1e30}
    inference.fit_to_file(data, path, engine="svi", dims=2, seed=3, options=options)
    records, failed = load_seeds([path])
    assert records == []
    assert "not finite from step" in failed[3]
    assert "not finite from step" in caplog.text
    inference.fit_to_file(data, path, engine="em", dims=2, seed=3)
    assert [record.seed for record in load_seeds([path])[0]] == [3]


@pytest.mark.slow
def test_a_killed_sampler_goes_on_to_the_same_draws(tmp_path, monkeypatch):
    data = planted(models=12, items=15, seed=3)[0]
    options = {"chains": 1, "warmup": 10, "draws": 12, "max_tree_depth": 3}
    monkeypatch.setattr(nuts, "BLOCK", 4)
    monkeypatch.setattr(nuts, "KEPT_ITEM_VALUES", 0)
    monkeypatch.setattr(nuts, "KEPT_ITEM_DRAWS", 2)  # one draw in six: some blocks keep none
    whole = nuts.fit(data, 1, **options)
    assert whole.draws["a"].shape == (1, 2, 15, 1)
    written = nuts.Checkpoint.write
    path = tmp_path / "seed0.nc.checkpoint"
    sampled = []

    def die_after(warm, blocks):
        def write(self, kept, state):
            written(self, kept, state)
            sampled.append((kept.warm, kept.blocks))
            if sampled[-1] == (warm, blocks):
                raise KilledError

        return write

    for place in [(2, 0), (3, 2)]:  # during warm-up, of 4, 4 and 2 steps, and among the three blocks of draws
        monkeypatch.setattr(nuts.Checkpoint, "write", die_after(*place))
        with pytest.raises(KilledError):
            nuts.fit(data, 1, checkpoint=path, **options)
    monkeypatch.setattr(nuts.Checkpoint, "write", die_after(-1, -1))
    resumed = nuts.fit(data, 1, checkpoint=path, **options)
    assert sampled == [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)]
    np.testing.assert_array_equal(resumed.draws["theta"], whole.draws["theta"])
    np.testing.assert_array_equal(resumed.draws["a"], whole.draws["a"])
    np.testing.assert_array_equal(resumed.item_cov, whole.item_cov)
    np.testing.assert_array_equal(resumed.trace, whole.trace)


def test_convergence_figures_are_those_of_arviz():
    rng = np.random.default_rng(4)
    draws = np.cumsum(rng.normal(size=(3, 200, 4)), axis=1) * 0.05 + rng.normal(size=(3, 200, 4))
    draws[1, :, 2] += 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    for index in range(4):
        one = draws[:, :, index]
        assert float(nuts.rank_rhat(draws)[index]) == pytest.approx(arviz.rhat(one), rel=1e-6)
        assert float(nuts.bulk_ess(draws)[index]) == pytest.approx(arviz.ess(one, method="bulk"), rel=0.05)
        assert float(nuts.tail_ess(draws)[index]) == pytest.approx(arviz.ess(one, method="tail"), rel=0.05)


@pytest.mark.slow
def test_nuts_agrees_with_the_other_engines(tmp_path):
    data, theta, *_, y, hidden = planted(models=40, items=120, seed=7)
    fits = {
        engine: inference.fit(data, engine=engine, dims=2, seed=0, options=OPTIONS[engine])
        for engine in OPTIONS
    }
    nuts = fits["nuts"]
    assert nuts.diagnostics["divergences"] == 0
    assert nuts.diagnostics["rhat_max"] < 1.1
    assert min(recovered(nuts, theta)) > 0.93
    sd = np.sqrt(np.einsum("nkk->nk", nuts.theta_cov))
    for engine in ("em", "svi"):
        difference = np.abs(fits[engine].theta_mean - nuts.theta_mean) / sd
        assert np.median(difference) < 0.35
        ratio = np.sqrt(np.einsum("nkk->nk", fits[engine].theta_cov)) / sd
        assert 0.6 < np.median(ratio) < 1.1
        assert log_loss(fits[engine], data, y, hidden) == pytest.approx(
            log_loss(nuts, data, y, hidden), abs=0.01
        )
    nuts.save(tmp_path / "seed0.nc")
    loaded = FitRecord.load(tmp_path / "seed0.nc")
    np.testing.assert_array_equal(loaded.draws["theta"], nuts.draws["theta"].astype(np.float32))
    again = inference.fit(data, engine="nuts", dims=2, seed=0, options=OPTIONS["nuts"])
    np.testing.assert_array_equal(again.draws["theta"], nuts.draws["theta"])
