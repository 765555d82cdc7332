"""The likelihood against closed forms, direct formulas in float64 and finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmirt import likelihood, tiles


def direct(eta, y, floor, ceiling):
    """Log likelihood in float64, straight from the formula."""
    p = floor + (ceiling - floor) / (1 + np.exp(-np.asarray(eta, np.float64)))
    cell = np.where(y == 1, np.log(p), np.log1p(-p))
    return np.where(y >= 0, cell, 0.0)


@pytest.fixture
def small():
    rng = np.random.default_rng(3)
    models, items, dims = 7, 11, 3
    return {
        "theta": rng.normal(size=(models, dims)).astype(np.float32),
        "a": rng.normal(size=(items, dims)).astype(np.float32),
        "d": rng.normal(size=items).astype(np.float32),
        "y": rng.integers(-1, 2, size=(models, items)).astype(np.int8),
        "floor": np.where(np.arange(items) % 3 == 0, 0.25, 0.0).astype(np.float32),
        "ceiling": np.where(np.arange(items) % 4 == 0, 0.75, 1.0).astype(np.float32),
    }


@pytest.mark.parametrize("plain", [True, False])
def test_cells_equal_the_formula(small, plain):
    floor, ceiling = (np.zeros(11), np.ones(11)) if plain else (small["floor"], small["ceiling"])
    eta = small["theta"] @ small["a"].T + small["d"]
    found = likelihood.cell_log_likelihood(eta, small["y"], likelihood.asymptotes_of(floor, ceiling))
    np.testing.assert_allclose(found, direct(eta, small["y"], floor, ceiling), rtol=2e-5, atol=1e-6)


def test_plain_items_need_no_asymptotes(small):
    assert likelihood.asymptotes_of(np.zeros(4), np.ones(4)) is None
    asymptotes = likelihood.Asymptotes(jnp.zeros(11), jnp.ones(11))
    eta = small["theta"] @ small["a"].T + small["d"]
    np.testing.assert_allclose(
        likelihood.cell_log_likelihood(eta, small["y"], asymptotes),
        likelihood.cell_log_likelihood(eta, small["y"]),
        rtol=1e-6,
        atol=1e-7,
    )


@pytest.mark.parametrize(("floor", "ceiling"), [(0.5, 0.5), (-0.1, 1.0), (0.2, 1.1), (0.8, 0.3)])
def test_impossible_asymptotes_are_refused(floor, ceiling):
    with pytest.raises(ValueError, match="floor < ceiling"):
        likelihood.asymptotes_of(np.array([0.0, floor]), np.array([1.0, ceiling]))


@pytest.mark.parametrize("plain", [True, False])
def test_gradient_equals_finite_differences_in_float64(small, plain):
    floor, ceiling = (np.zeros(11), np.ones(11)) if plain else (small["floor"], small["ceiling"])
    asymptotes = likelihood.asymptotes_of(floor, ceiling)

    def total(theta, a, d):
        return 3.0 * likelihood.log_likelihood(theta, a, d, small["y"], asymptotes, 0.5)

    gradients = jax.grad(total, argnums=(0, 1, 2))(small["theta"], small["a"], small["d"])
    start = [small[name].astype(np.float64) for name in ("theta", "a", "d")]

    def value(arrays):
        theta, a, d = arrays
        return 3.0 * (direct(theta @ a.T + d, small["y"], floor, ceiling).sum() - 11 * 0.5)

    for which, gradient in enumerate(gradients):
        for index in np.ndindex(start[which].shape):
            up, down = ([x.copy() for x in start] for _ in range(2))
            up[which][index] += 1e-5
            down[which][index] -= 1e-5
            assert float(gradient[index]) == pytest.approx(
                (value(up) - value(down)) / 2e-5, rel=2e-3, abs=2e-4
            )


def test_logarithms_are_as_good_as_float32_is():
    unit = np.linspace(0, 1, 100_001, dtype=np.float32)
    exact = np.log1p(unit.astype(np.float64))
    np.testing.assert_allclose(likelihood._log1p(jnp.asarray(unit)), exact, rtol=3e-7)
    wide = np.geomspace(1.2e-38, 1.0, 100_001).astype(np.float32)
    np.testing.assert_allclose(
        likelihood._log(jnp.asarray(wide)), np.log(wide.astype(np.float64)), rtol=2e-7, atol=1e-7
    )


@pytest.mark.parametrize("plain", [True, False])
def test_tiles_do_not_change_the_likelihood(plain, monkeypatch):
    rng = np.random.default_rng(5)
    models, items = 9, 203  # the last tile is filled up
    theta, a = rng.normal(size=(models, 2)), rng.normal(size=(items, 2))
    d = rng.normal(size=items)
    y = rng.integers(-1, 2, size=(models, items)).astype(np.int8)
    y[:, 64:128] = -1  # a tile without any response
    floor = np.zeros(items) if plain else np.where(np.arange(items) % 3 == 0, 0.25, 0.0)
    asymptotes = likelihood.asymptotes_of(floor, np.ones(items))
    arrays = [jnp.asarray(x, jnp.float32) for x in (theta, a, d)]

    def value_and_gradient():
        total = jax.value_and_grad(lambda *x: likelihood.log_likelihood(*x, y, asymptotes), argnums=(0, 1, 2))
        return total(*arrays), likelihood.item_log_likelihood(*arrays, y, asymptotes)

    whole = value_and_gradient()
    monkeypatch.setattr(tiles, "CELLS", models * 64)
    assert tiles.width_of(models, items) == 64
    for one, other in zip(jax.tree.leaves(value_and_gradient()), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(whole[1], direct(theta @ a.T + d, y, floor, 1.0).sum(0), rtol=1e-4, atol=1e-5)


@settings(max_examples=200, deadline=None)
@given(
    eta=st.floats(-1e4, 1e4),
    y=st.sampled_from([0, 1]),
    floor=st.sampled_from([0.0, 0.1, 0.25, 0.5]),
    ceiling=st.sampled_from([0.75, 0.9, 1.0]),
)
def test_extreme_logits_stay_finite_and_not_positive(eta, y, floor, ceiling):
    asymptotes = likelihood.Asymptotes(jnp.float32([floor]), jnp.float32([ceiling]))
    eta_, y_ = jnp.float32([[eta]]), jnp.int8([[y]])
    value = float(likelihood.cell_log_likelihood(eta_, y_, asymptotes)[0, 0])
    score, curvature = likelihood.expected_score_and_curvature(
        eta_, jnp.zeros_like(eta_), y_, likelihood.bends_of(asymptotes)
    )
    assert np.isfinite(value)
    assert value <= 1e-6
    assert np.isfinite(float(score[0, 0]))
    assert float(curvature[0, 0]) >= 0
    assert (float(score[0, 0]) >= 0) == (y == 1) or float(score[0, 0]) == 0


def test_missing_cells_change_nothing(small):
    y = small["y"].copy()
    eta = small["theta"] @ small["a"].T + small["d"]
    y[:, 2] = -1
    other = eta.copy()
    other[:, 2] += 100
    np.testing.assert_array_equal(
        likelihood.cell_log_likelihood(eta, y).sum(), likelihood.cell_log_likelihood(other, y).sum()
    )


@pytest.mark.parametrize("mean", [-3.0, -0.5, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("variance", [0.01, 0.3, 1.0, 3.0])
def test_averaged_probability_is_close_to_quadrature(mean, variance):
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = (weights / weights.sum()) @ (1 / (1 + np.exp(-(mean + np.sqrt(variance) * nodes))))
    found = float(likelihood.probability(likelihood.moderated(mean, variance)[0]))
    assert found == pytest.approx(exact, abs=0.012)


def gaussian_average(function, mean, variance):
    """Average of a function of a Gaussian, on a dense grid that covers what the logistic function does as well."""
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-(z**2) / 2)
    return (function(mean + np.sqrt(variance) * z) * density).sum() / density.sum()


@pytest.mark.parametrize("mean", [-9.0, -2.0, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("variance", [0.0, 0.3, 4.0, 100.0])
def test_expected_logistic_is_the_average(mean, variance):
    value, slope = likelihood.expected_logistic(jnp.float32(mean), jnp.float32(variance))
    logistic = gaussian_average(lambda eta: 1 / (1 + np.exp(-eta)), mean, variance)
    density = gaussian_average(lambda eta: 1 / (2 + 2 * np.cosh(eta)), mean, variance)
    assert float(value) == pytest.approx(logistic, abs=6e-4)
    assert float(slope) == pytest.approx(density, abs=2e-3)


@pytest.mark.parametrize(("floor", "ceiling"), [(0.0, 1.0), (0.25, 1.0), (0.0, 0.75), (0.2, 0.9)])
@pytest.mark.parametrize("y", [0, 1])
def test_expected_score_and_curvature_are_derivatives_of_the_expected_log_likelihood(y, floor, ceiling):
    """Slope and curvature in the mean of a Gaussian logit, by finite differences; a negative curvature counts as 0."""
    bends = likelihood.bends_of(likelihood.Asymptotes(jnp.float32([floor]), jnp.float32([ceiling])))
    step = 0.05
    for mean, variance in [(-6.0, 1.0), (-1.5, 0.2), (0.0, 9.0), (2.0, 1.0), (6.0, 4.0)]:
        expected = [
            gaussian_average(lambda eta: direct(eta, y, floor, ceiling), at, variance)
            for at in (mean - step, mean, mean + step)
        ]
        cell = jnp.full((1, 1), mean, jnp.float32), jnp.full((1, 1), variance, jnp.float32), jnp.int8([[y]])
        score, curvature = likelihood.expected_score_and_curvature(*cell, bends)
        slope = (expected[2] - expected[0]) / (2 * step)
        second = -(expected[2] - 2 * expected[1] + expected[0]) / step**2
        assert float(score[0, 0]) == pytest.approx(slope, abs=2e-3)
        assert float(curvature[0, 0]) == pytest.approx(max(second, 0.0), abs=4e-3)


def test_logit_moments_equal_monte_carlo():
    rng = np.random.default_rng(0)
    k = 2
    m, mu = rng.normal(size=(3, k)), rng.normal(size=(4, k + 1))
    v = np.stack([np.cov(rng.normal(size=(k, 9))) for _ in range(3)]) * 0.3
    s = np.stack([np.cov(rng.normal(size=(k + 1, 9))) for _ in range(4)]) * 0.3
    mean, variance = likelihood.logit_moments(m, v, mu[:, :k], mu[:, k], s)
    draws = 200_000
    for i in range(3):
        theta = rng.multivariate_normal(m[i], v[i], size=draws)
        for j in range(4):
            b = rng.multivariate_normal(mu[j], s[j], size=draws)
            eta = (theta * b[:, :k]).sum(1) + b[:, k]
            assert float(mean[i, j]) == pytest.approx(eta.mean(), abs=5 * eta.std() / np.sqrt(draws))
            assert float(variance[i, j]) == pytest.approx(eta.var(), rel=0.03)
