"""Moments of items' posteriors: against a dense grid."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from benchmirt.inference.moments import match_items
from benchmirt.inference.posterior import State
from benchmirt.likelihood import Asymptotes
from benchmirt.priors import Priors

MODELS, ITEMS = 60, 40


def on_a_grid(
    theta: NDArray[np.float64], y: NDArray[np.int8], floor: float, tau: float, mu_d: float, sigma_d: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean (2,) and covariance (2, 2) of one item's (a, d) by summing over a fine grid."""
    a, d = (x.ravel() for x in np.meshgrid(np.linspace(-6, 6, 241), np.linspace(-14, 10, 481), indexing="ij"))
    p = floor + (1 - floor) * expit(np.outer(a, theta) + d[:, None])
    log = np.where(y == 1, np.log(p), np.where(y == 0, np.log1p(-p), 0.0)).sum(1)
    log += -0.5 * (a / tau) ** 2 - 0.5 * ((d - mu_d) / sigma_d) ** 2
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    points = np.stack([a, d], axis=1)
    mean = weight @ points
    return mean, (weight[:, None] * (points - mean)).T @ (points - mean)


def begin(theta: NDArray[np.float64], items: int) -> State:
    """Known abilities, and items that nothing is known of."""
    return State(
        m=jnp.asarray(theta[:, None], jnp.float32),
        v=jnp.full((len(theta), 1, 1), 0.01),
        mu=jnp.zeros((items, 2)),
        s=jnp.broadcast_to(0.1 * jnp.eye(2), (items, 2, 2)),
        tau2=jnp.ones(1),
        mu_d=jnp.float32(0.0),
        sigma2=jnp.float32(1.0),
    )


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_moments_are_those_of_a_dense_grid(floor: float) -> None:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=MODELS)
    a, d = rng.normal(0, 1.2, ITEMS), rng.normal(-0.5, 2.0, ITEMS)
    y = (rng.random((MODELS, ITEMS)) < floor + (1 - floor) * expit(np.outer(theta, a) + d)).astype(np.int8)
    y[rng.random(y.shape) < 0.1] = -1
    y[:, 0] = 0  # below its floor: the intercept is bounded by the prior alone
    asymptotes = Asymptotes(jnp.full(ITEMS, floor), jnp.ones(ITEMS)) if floor else None
    settled = match_items(begin(theta, ITEMS), jnp.asarray(y), asymptotes, Priors(), rounds=12, points=1024)
    last = match_items(settled, jnp.asarray(y), asymptotes, Priors(), rounds=1, points=2048)
    # the last round used the hyperparameters of the one before
    scales = (float(jnp.sqrt(settled.tau2[0])), float(settled.mu_d), float(jnp.sqrt(settled.sigma2)))
    for j in range(ITEMS):
        mean, covariance = on_a_grid(theta, y[:, j], floor, *scales)
        sd = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(np.asarray(last.mu[j]), mean, atol=0.06 * sd.max())
        np.testing.assert_allclose(np.sqrt(np.diag(np.asarray(last.s[j]))), sd, rtol=0.08)


def test_hyperparameters_are_those_of_the_truth() -> None:
    """Where the abilities are known, strong items near a floor leave the scales of the items' distribution unbiased."""
    rng = np.random.default_rng(2)
    models, items = 100, 4000
    theta = rng.normal(size=models)
    a, d = rng.normal(0, 1.4, items), rng.normal(-0.7, 2.3, items)
    chance = 0.25 + 0.75 * expit(np.outer(theta, a) + d)
    y = (rng.random(chance.shape) < chance).astype(np.int8)
    asymptotes = Asymptotes(jnp.full(items, 0.25), jnp.ones(items))
    found = match_items(begin(theta, items), jnp.asarray(y), asymptotes, Priors(), rounds=25)
    assert float(jnp.sqrt(found.tau2[0])) == pytest.approx(1.4, rel=0.04)
    assert float(found.mu_d) == pytest.approx(-0.7, abs=0.2)
    assert float(jnp.sqrt(found.sigma2)) == pytest.approx(2.3, rel=0.05)
