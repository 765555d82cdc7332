"""What a model would score on benchmarks, or parts of them, that it was not run on.

The score of a benchmark is its mean outcome over all its items. What was answered counts as it came out; for the rest,

- items with parameters answer with the probabilities of :mod:`benchmirt.ability.response`, averaged over the posterior
  of the abilities by its quadrature points;
- items that told none of the study's models apart (all right, or all wrong) answer as they did for those, (passed +
  1/2) / (observed + 1);
- the benchmark's *own deviation* shifts all its items together: models deviate on it from what their abilities on the
  other benchmarks say (a testlet effect of the whole benchmark; Bradlow, Wainer and Wang 1999, *Psychometrika* 64,
  153-168). Its size is estimated on the study's models, each with its abilities without that benchmark
  (:func:`own_deviations`).

The three variances and that of the abilities add up; the interval is that of the beta distribution with the same mean
and variance, which stays between 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.stats import beta

from benchmirt.ability.posterior import Posterior, chunks
from benchmirt.ability.response import Items, response

__all__ = ["Totals", "interval", "own_deviations", "totals", "unanswered"]

Floats = NDArray[np.float64]


class Totals(NamedTuple):
    """Sums over the items of groups at given abilities, each (..., groups).

    ``right``: expected right answers; ``noise``: their variance at fixed abilities; ``slope``: change per logit that
    all items shift.
    """

    right: Floats
    noise: Floats
    slope: Floats


@jax.jit
def _totals(theta: Array, counted: Array, groups: Array, items: Items) -> tuple[Array, Array, Array]:
    """Sum at abilities (Q, models, K) over the counted items (models, items) of each group (items, groups)."""

    def at(point: Array) -> tuple[Array, Array, Array]:
        expected = response(point, items)
        return (
            (counted * expected.probability) @ groups,
            (counted * expected.variance) @ groups,
            (counted * expected.slope) @ groups,
        )

    return jax.lax.map(at, theta)


def totals(points: Floats, counted: NDArray[np.bool_], groups: Floats, items: Items) -> Totals:
    """Sum expected responses over groups of items.

    Parameters
    ----------
    points
        Abilities of N models at Q points each, shape (N, Q, K).
    counted
        Which items count for which model, shape (N, J).
    groups
        1 where an item belongs to a group, else 0, shape (J, G).

    Returns
    -------
    Totals
        Each of shape (N, Q, G).
    """
    member = jnp.asarray(groups, jnp.float32)
    found: list[list[Floats]] = []
    for rows, part in chunks(np.where(counted, np.int8(1), np.int8(-1))):
        own = np.zeros((len(part), *points.shape[1:]), dtype=np.float32)
        own[: rows.stop - rows.start] = points[rows]
        weight = jnp.asarray(part >= 0, jnp.float32)
        sums = _totals(jnp.asarray(own.transpose(1, 0, 2)), weight, member, items)
        found.append(
            [np.asarray(one, np.float64).transpose(1, 0, 2)[: rows.stop - rows.start] for one in sums]
        )
    return Totals(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def unanswered(
    abilities: Posterior, answered: NDArray[np.bool_], groups: Floats, items: Items, own_deviation: Floats
) -> tuple[Floats, Floats]:
    """Predict the number of right answers among the items that each model did not answer.

    Parameters
    ----------
    abilities
        Posterior of N models.
    answered
        Shape (N, J).
    groups
        Membership of the items in G groups, shape (J, G).
    items
        The J items.
    own_deviation
        Standard deviation of the shift of each group, in logits, shape (G,).

    Returns
    -------
    Mean and variance, each of shape (N, G).
    """
    sums = totals(abilities.points, ~answered, groups, items)
    weights = abilities.weights[:, :, None]
    mean = (weights * sums.right).sum(axis=1)
    spread = (weights * (sums.right - mean[:, None]) ** 2).sum(axis=1)
    noise = (weights * sums.noise).sum(axis=1)
    shift = (weights * sums.slope**2).sum(axis=1) * own_deviation**2
    return mean, spread + noise + shift


def own_deviations(
    theta: Floats, responses: NDArray[np.int8], groups: Floats, items: Items, least: int = 20
) -> tuple[Floats, NDArray[np.int64]]:
    """Estimate how far models deviate on each group of items from what their abilities without the group say.

    The shift of group g has the variance that is left of the squared deviations of its scores after the noise of single
    outcomes, in logits: sum((right - expected)^2 - noise) / sum(slope^2) over models, or 0 if that is negative (method
    of moments).

    Parameters
    ----------
    theta
        Abilities of N models estimated without each group, shape (G, N, K).
    responses
        1, 0 or -1 (missing), shape (N, J).
    groups
        Membership of the items, shape (J, G).
    items
        The J items.
    least
        Models with fewer outcomes in a group don't count for it.

    Returns
    -------
    Standard deviations in logits (G,), NaN where fewer than 5 models count, and how many models do (G,).
    """
    deviation = np.full(groups.shape[1], np.nan)
    used = np.zeros(groups.shape[1], dtype=np.int64)
    seen = responses >= 0
    for g in range(groups.shape[1]):
        member = groups[:, [g]]
        right = (responses == 1) @ member[:, 0]
        counts = seen @ member[:, 0] >= least
        used[g] = int(counts.sum())
        if used[g] < 5:
            continue
        sums = totals(theta[g][:, None, :], seen, member, items)
        expected, noise, slope = (one[counts, 0, 0] for one in sums)
        left = ((right[counts] - expected) ** 2 - noise).sum() / (slope**2).sum()
        deviation[g] = np.sqrt(max(left, 0.0))
    return deviation, used


def interval(mean: Floats, variance: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return bounds of a share by the beta distribution of this mean and variance; a point where nothing varies."""
    centre = np.clip(mean, 0.0, 1.0)
    most = centre * (1.0 - centre)
    varies = (variance > 0) & (most > 0)
    size = np.where(varies, most / np.where(varies, np.minimum(variance, 0.99 * most), 1.0) - 1.0, 1.0)
    a, b = np.where(varies, centre * size, 1.0), np.where(varies, (1.0 - centre) * size, 1.0)
    low, high = (beta.ppf(tail, a, b) for tail in ((1 - level) / 2, (1 + level) / 2))
    return np.where(varies, low, centre), np.where(varies, high, centre)
