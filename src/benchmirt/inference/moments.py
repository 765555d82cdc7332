"""Means and covariances of the items' posterior given the abilities, by importance sampling.

A Gaussian that follows from a bound or from the curvature at one point is too narrow where a posterior is skewed: for an item
near its chance floor, whose intercept the responses hardly keep from minus infinity, by factors up to six. Hyperparameters that
rest on such posteriors come out too small. Given the abilities the items are independent with K + 1 parameters each, so that a
few hundred points of a quasi-random set, the same for all items, give the first two moments of each.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from benchmirt import tiles
from benchmirt.inference.posterior import State, effects_of, update_hyper
from benchmirt.likelihood import Asymptotes, Testlets, item_log_likelihood
from benchmirt.priors import Priors
from benchmirt.tiles import Tiled

__all__ = ["match_items"]

DEGREES = 5.0
STRETCH = 1.3
KEPT = 0.05


def _student(points: int, size: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scrambled Sobol points (points, size) of a multivariate t of unit scale, and their log density less a constant."""
    from scipy.stats import chi2, norm, qmc

    uniform = qmc.Sobol(size + 1, rng=np.random.default_rng(0)).random(points)
    uniform = np.clip(uniform, 1e-6, 1 - 1e-6)
    x = norm.ppf(uniform[:, :size]) / np.sqrt(chi2.ppf(uniform[:, size:], DEGREES) / DEGREES)
    density = -(DEGREES + size) / 2 * np.log1p((x**2).sum(1) / DEGREES)
    return x.astype(np.float32), density.astype(np.float32)


@partial(jax.jit, static_argnames="priors")
def _weighted(
    state: State,
    tiled: Tiled,
    asymptotes: Asymptotes | None,
    testlets: Testlets | None,
    points: Array,
    density: Array,
    priors: Priors,
) -> tuple[Array, Array]:
    """Mean (items, size) and covariance (items, size, size) of each item's posterior, from points around the present ones."""
    k = state.m.shape[1]
    tril = STRETCH * jnp.linalg.cholesky(state.s)

    def log_prior(a: Array, d: Array) -> Array:
        distance, df = (a**2 / state.tau2).sum(1), priors.discrimination_df
        of_a = distance if df is None else (df + k) * jnp.log1p(distance / df)
        return -0.5 * (of_a + (d - state.mu_d) ** 2 / state.sigma2)

    def log_weight(point: tuple[Array, Array]) -> Array:
        x, log_density = point
        item = state.mu + jnp.einsum("jpq,q->jp", tril, x)
        a, d = item[:, :k], item[:, k]
        likelihood = item_log_likelihood(state.m, a, d, tiled, asymptotes, testlets)
        return likelihood + log_prior(a, d) - log_density

    weight = jax.nn.softmax(jax.lax.map(log_weight, (points, density)), axis=0)
    mean = weight.T @ points
    second = (weight.T @ (points[:, :, None] * points[:, None, :]).reshape(len(points), -1)).reshape(
        tril.shape
    )
    spread = second - mean[:, :, None] * mean[:, None, :]
    return state.mu + jnp.einsum("jpq,jq->jp", tril, mean), tril @ spread @ tril.mT


def match_items(
    state: State,
    responses: ArrayLike | Tiled,
    asymptotes: Asymptotes | None,
    priors: Priors,
    testlet: Array | None = None,
    *,
    rounds: int = 6,
    points: int = 128,
) -> State:
    """Replace the items' means and covariances by those of their posterior given the mean abilities; update the hyperparameters.

    Parameters
    ----------
    state
        Where to begin; its abilities stay.
    responses
        1, 0 or -1 (missing), shape (models, items), or the same by tile.
    asymptotes
        Known asymptotes, or None for the 2PL.
    priors
        Scales of the hyperpriors.
    testlet
        Which testlet an item belongs to, where the state has their effects, which stay as well.
    rounds
        How often points are drawn, from a t distribution that the moments of the round before define.
    points
        Points per round, a power of 2; each costs one pass over the responses.
    """
    tiled = tiles.split(responses)
    nodes = _student(points, state.mu.shape[1])
    ones = jnp.ones(state.mu.shape[0])
    testlets = effects_of(state, testlet)
    for _ in range(rounds):
        mean, spread = _weighted(state, tiled, asymptotes, testlets, *nodes, priors)
        # few points may carry an item's weight: part of the covariance before keeps the next round's points apart
        state = state._replace(mu=mean, s=(1 - KEPT) * spread + KEPT * state.s)
        state = update_hyper(state, ones, priors)
    return state
