"""Null data: the intercept-only model against quadrature and counts, and simulation that keeps the rest of the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from benchmirt import matrix
from benchmirt.dimensions.nulls import Gaussian, Intercepts, intercepts, null_data


def simulated(models: int, items: int, seed: int = 0, floor: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    d = rng.normal(0.5, 1.5, items)
    p = floor + (1 - floor) * expit(d)
    return (rng.random((models, items)) < p).astype(np.int8), d


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_intercepts_agree_with_quadrature(floor: float) -> None:
    y, _ = simulated(30, 300, floor=floor)
    fitted = intercepts(y, np.full(300, floor), np.ones(300))
    for j in (0, 7, int(y.mean(0).argmax()), int(y.mean(0).argmin())):
        right = int(y[:, j].sum())

        def density(d: float, right: int = right) -> float:
            p = floor + (1 - floor) * expit(d)
            return float(p**right * (1 - p) ** (30 - right) * norm.pdf(d, fitted.mu_d, fitted.sigma_d))

        total = quad(density, -15, 15, limit=400)[0]
        mean = quad(lambda d: (floor + (1 - floor) * expit(d)) * density(d), -15, 15, limit=400)[0] / total
        assert fitted.predict()[j] == pytest.approx(mean, abs=2e-3)


def test_the_prior_of_the_intercepts_is_found() -> None:
    y, d = simulated(200, 2000)
    fitted = intercepts(y, np.zeros(2000), np.ones(2000))
    assert fitted.mu_d == pytest.approx(d.mean(), abs=0.05)
    assert fitted.sigma_d == pytest.approx(d.std(), abs=0.06)


def test_many_models_give_the_item_mean_and_missing_cells_count_for_nothing() -> None:
    y, _ = simulated(5000, 20)
    np.testing.assert_allclose(intercepts(y, np.zeros(20), np.ones(20)).predict(), y.mean(0), atol=2e-3)
    holes = y.copy()
    holes[2500:, :10] = -1
    found = intercepts(holes, np.zeros(20), np.ones(20)).predict()
    np.testing.assert_allclose(found[:10], y[:2500, :10].mean(0), atol=2e-3)
    weights = np.ones((5000, 1))
    weights[2500:] = 0
    np.testing.assert_allclose(
        intercepts(y, np.zeros(20), np.ones(20), weights).predict()[:10], found[:10], atol=1e-3
    )


def test_items_that_all_or_none_solve_stay_finite() -> None:
    y = np.ones((40, 6), dtype=np.int8)
    y[:, :3] = 0
    y[:20, 5] = 0
    fitted = intercepts(y, np.array([0.0, 0.25, 0.5, 0.0, 0.25, 0.25]), np.ones(6))
    assert np.isfinite(fitted.grid).all()
    assert np.isfinite(fitted.weight).all()
    assert ((fitted.predict() > 0) & (fitted.predict() < 1)).all()
    nothing = intercepts(np.full((4, 3), -1), np.zeros(3), np.ones(3))
    assert np.isfinite(nothing.predict()).all()


def test_null_data_keep_all_but_the_outcomes() -> None:
    y, _ = simulated(40, 60)
    y[:10, 30:] = -1
    data = matrix.from_arrays(y, lineage=np.arange(40) // 2, floor=0.1)
    fitted = intercepts(data.responses, data.floor, data.ceiling)
    made = null_data(data, fitted, 0, "a")
    np.testing.assert_array_equal(made.responses < 0, data.responses < 0)
    np.testing.assert_array_equal(made.lineage, data.lineage)
    np.testing.assert_array_equal(made.floor, data.floor)
    assert made.item_table is data.item_table
    assert made.hash != data.hash
    np.testing.assert_array_equal(null_data(data, fitted, 0, "a").responses, made.responses)
    assert (null_data(data, fitted, 0, "b").responses != made.responses).any()
    many = np.mean([null_data(data, fitted, 0, str(r)).responses[:, :30] for r in range(200)], axis=(0, 1))
    np.testing.assert_allclose(many, fitted.predict()[:30], atol=0.04)


def test_draws_have_the_posterior_s_moments() -> None:
    rng = np.random.default_rng(0)
    cov = np.array([[0.3, 0.1, 0.05], [0.1, 0.2, -0.05], [0.05, -0.05, 0.1]])
    fitted = Gaussian(
        theta=np.array([[0.5, -0.5]]),
        theta_cov=np.array([[[0.1, 0.05], [0.05, 0.2]]]),
        a=np.array([[1.0, 0.3]]),
        d=np.array([0.2]),
        item_cov=cov[None],
        floor=np.array([0.2]),
        ceiling=np.array([0.9]),
    )
    drawn = np.array([fitted.draw(rng, 1)[0, 0] for _ in range(20_000)])
    theta = rng.multivariate_normal(fitted.theta[0], fitted.theta_cov[0], 200_000)
    item = rng.multivariate_normal([1.0, 0.3, 0.2], cov, 200_000)
    expected = 0.2 + 0.7 * expit((theta * item[:, :2]).sum(1) + item[:, 2])
    assert drawn.mean() == pytest.approx(expected.mean(), abs=0.003)
    assert drawn.std() == pytest.approx(expected.std(), abs=0.003)
    with pytest.raises(ValueError, match="models"):
        fitted.draw(rng, 2)


def test_a_draw_of_intercepts_has_equal_rows_and_the_right_mean() -> None:
    y, _ = simulated(60, 50)
    fitted = intercepts(y, np.zeros(50), np.ones(50))
    assert isinstance(fitted, Intercepts)
    rng = np.random.default_rng(1)
    draws = np.stack([fitted.draw(rng, 3) for _ in range(3000)])
    assert np.ptp(draws, axis=1).max() == 0
    np.testing.assert_allclose(draws.mean((0, 1)), fitted.predict(), atol=0.01)
