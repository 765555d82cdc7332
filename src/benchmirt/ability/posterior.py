"""Abilities of new models: posterior means, covariances and quadrature points, given outcomes on any part of the items.

The prior is N(0, I) in the canonical frame of the calibration, that is, the spread of its models; the likelihood is
that of :mod:`benchmirt.ability.response`. Each model's posterior is integrated by Gauss-Hermite quadrature whose points
are laid at its own mean and covariance (Naylor and Smith 1982, *Applied Statistics* 31, 214-225), first at the mode, by
Fisher scoring, and its information, then, finer, at what the first points say. The posterior always exists: a record
that is all right, all wrong or five items long has a finite mean, and an interval as wide as the prior where the
outcomes say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt.ability.response import Items, log_likelihood, response

__all__ = ["Posterior", "chunks", "nodes", "posterior", "posterior_of_own"]

Floats = NDArray[np.float64]

CELLS = 2_000_000  # outcomes worked on at a time
STEPS = 25  # of Fisher scoring at most; what it leaves, the quadrature corrects
LONGEST_STEP = 1.0  # standard deviations of ability
FINEST = {
    1: 15,
    2: 5,
}  # quadrature points per dimension, 3 beyond two: standard deviations are right to 2 %


@dataclass(frozen=True)
class Posterior:
    """Posterior of N models on K abilities, in the canonical frame.

    Attributes
    ----------
    mean, cov
        Shapes (N, K) and (N, K, K).
    points, weights
        Quadrature: abilities (N, Q, K), and weights (N, Q) that sum to 1 for each model.
    """

    mean: Floats
    cov: Floats
    points: Floats
    weights: Floats


def nodes(dims: int, per_dimension: int | None = None) -> tuple[Floats, Floats]:
    """Gauss-Hermite points (Q, dims) and weights (Q,) of N(0, I); as many as the last pass takes, or so many per dimension."""
    points, weights = np.polynomial.hermite_e.hermegauss(per_dimension or FINEST.get(dims, 3))
    weights = weights / weights.sum()
    grid = np.array(list(product(points, repeat=dims)))
    return grid, np.array([np.prod(one) for one in product(weights, repeat=dims)])


def chunks(responses: NDArray[np.int8]) -> Iterator[tuple[slice, NDArray[np.int8]]]:
    """Yield the rows and the responses of models (N, J) in parts of one shape, the last filled with models without outcomes."""
    count, items = responses.shape
    # powers of two, so that few shapes need compiling
    size = max(1, min(max(8, 1 << (count - 1).bit_length()), CELLS // max(1, items)))
    for start in range(0, count, size):
        part = responses[start : start + size]
        filled = np.full((size, items), -1, dtype=np.int8)
        filled[: len(part)] = part
        yield slice(start, start + len(part)), filled


def _scoring(theta: Array, responses: Array, items: Items) -> tuple[Array, Array]:
    """Gradient of the log posterior (models, K), and its expected information (models, K, K), prior included."""
    expected = response(theta, items)
    seen = responses >= 0
    through = jnp.where(seen, expected.slope / expected.variance, 0.0)
    gradient = (through * (responses - expected.probability)) @ items.a - theta
    k = items.dims
    outer = (items.a[:, :, None] * items.a[:, None, :]).reshape(-1, k * k)
    information = ((through * expected.slope) @ outer).reshape(-1, k, k) + jnp.eye(k)
    return gradient, information


def _mode(responses: Array, items: Items) -> tuple[Array, Array]:
    """Posterior mode (models, K) and inverse information there (models, K, K)."""

    def unsettled(state: tuple[Array, Array, Array]) -> Array:
        count, _, longest = state
        return (count < STEPS) & (longest > 1e-3)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, theta, _ = state
        gradient, information = _scoring(theta, responses, items)
        move = jnp.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        length = jnp.sqrt((move**2).sum(axis=1, keepdims=True))
        move = move * jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(length, 1e-12))
        return count + 1, theta + move, jnp.abs(move).max()

    start = jnp.zeros((responses.shape[0], items.dims))
    _, theta, _ = jax.lax.while_loop(unsettled, step, (jnp.int32(0), start, jnp.float32(jnp.inf)))
    return theta, jnp.linalg.inv(_scoring(theta, responses, items)[1])


def _integrate(
    mean: Array, cov: Array, responses: Array, items: Items, rule: tuple[Floats, Floats]
) -> tuple[Array, Array]:
    """Lay points at a mean and covariance of each model; return them (Q, models, K) and their posterior weights (Q, models)."""
    grid, log_weights = jnp.asarray(rule[0], jnp.float32), jnp.log(jnp.asarray(rule[1], jnp.float32))
    scale = jnp.linalg.cholesky(cov)
    points = mean + jnp.einsum("nkl,ql->qnk", scale, grid)
    reference = log_likelihood(mean, responses, items)

    def gain(point: Array) -> Array:
        # cell by cell, since float32 totals of many thousand cells are too coarse to subtract
        return (log_likelihood(point, responses, items) - reference).sum(axis=1)

    log_density = jax.lax.map(gain, points) - 0.5 * (points**2).sum(axis=2)
    log_density = log_density + (log_weights + 0.5 * (grid**2).sum(axis=1))[:, None]
    return points, jax.nn.softmax(log_density, axis=0)


def _moments(points: Array, weights: Array) -> tuple[Array, Array]:
    """Mean (models, K) and covariance (models, K, K) of weighted points."""
    mean = jnp.einsum("qn,qnk->nk", weights, points)
    apart = points - mean
    return mean, jnp.einsum("qn,qnk,qnl->nkl", weights, apart, apart)


@jax.jit
def _posterior(responses: Array, items: Items) -> tuple[Array, Array, Array, Array]:
    mean, cov = _mode(responses, items)
    for per_dimension in (3, None):
        points, weights = _integrate(mean, cov, responses, items, nodes(items.dims, per_dimension))
        mean, cov = _moments(points, weights)
    return mean, cov, points.transpose(1, 0, 2), weights.T


def posterior(responses: NDArray[np.int8], items: Items) -> Posterior:
    """Place models on the abilities.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (N, J).
    items
        The J items.
    """
    found: list[list[Floats]] = []
    for rows, part in chunks(responses):
        made = _posterior(jnp.asarray(part), items)
        found.append([np.asarray(one, np.float64)[: rows.stop - rows.start] for one in made])
    return Posterior(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


@jax.jit
def _posterior_of_own(responses: Array, items: Items) -> tuple[Array, Array, Array, Array]:
    found: tuple[Array, Array, Array, Array] = jax.vmap(_posterior)(responses[:, None, :], items)
    mean, cov, points, weights = (one[:, 0] for one in found)
    return mean, cov, points, weights


def posterior_of_own(responses: NDArray[np.int8], items: Items) -> Posterior:
    """Place models each of which answered items of its own.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (N, M).
    items
        Each array with a first axis of N models more: a (N, M, K), d (N, M) and so on.
    """
    count, asked = responses.shape
    # few widths, so that few shapes need compiling; what is added has no outcome
    width = 32
    while width < asked:
        width *= 8
    wide = np.full((count, width), -1, dtype=np.int8)
    wide[:, :asked] = responses

    def filled(field: Array, rows: slice, size: int) -> Array:
        own = np.asarray(field)[rows]
        beside = [(0, size - len(own)), (0, width - asked)]
        return jnp.asarray(np.pad(own, beside + [(0, 0)] * (own.ndim - 2), mode="edge"))

    found: list[list[Floats]] = []
    for rows, part in chunks(wide):
        own = jax.tree.map(partial(filled, rows=rows, size=len(part)), items)
        made = _posterior_of_own(jnp.asarray(part), own)
        found.append([np.asarray(one, np.float64)[: rows.stop - rows.start] for one in made])
    return Posterior(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
