"""Person fit: whether a model's record is one that its abilities make likely.

The statistic is the standardised log likelihood of the record, l_z (Drasgow, Levine and Williams 1985, *British Journal of
Mathematical and Statistical Psychology* 38, 67-86), corrected for the abilities being estimated from the same record, l_z*
(Snijders 2001, *Psychometrika* 66, 331-342; several abilities: Albers, Meijer and Tendeiro 2016, *Applied Psychological
Measurement* 40, 274-288). With w_j = logit P_j and estimating functions r_j = P_j' / (P_j (1 - P_j)),

    l_z* = sum (y_j - P_j) v_j / sqrt(sum P_j (1 - P_j) v_j^2)
    v_j  = w_j - C r_j,  C = (sum w_j P_j't) (sum r_j P_j't)^-1

where ' is the derivative in theta (a column) and t transposes it. v is free of what an error of theta moves, so that
under the model l_z* has mean 0 and standard deviation 1 about whatever consistent estimate is used. P_j holds the
items' own uncertainty (:mod:`benchmirt.ability.response`). Negative values: right where others fail and wrong where
others succeed. The p value is the lower tail, with Edgeworth's correction for skewness (Bedrick 1997, *Psychometrika*
62, 191-199), since a sum over few or easy items is skewed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.stats import norm

from benchmirt.ability.posterior import chunks
from benchmirt.ability.response import Items, response

__all__ = ["LEAST_OUTCOMES", "PersonFit", "person_fit"]

Floats = NDArray[np.float64]

LEAST_OUTCOMES = 20
"""With fewer outcomes no statement is made: the abilities use up most of what there is."""


class PersonFit(NamedTuple):
    """The ``statistic`` l_z* of N models, mean 0 and standard deviation 1 under the model, and its ``p``; NaN: not tested."""

    statistic: Floats
    p: Floats


@jax.jit
def _sums(theta: Array, responses: Array, items: Items) -> tuple[Array, Array, Array]:
    """Numerator, variance and third cumulant of the statistic, each (models,)."""
    k = items.dims
    expected = response(theta, items)
    seen = responses >= 0
    logit = jnp.log(expected.probability) - jnp.log1p(-expected.probability)
    through = expected.slope / expected.variance  # r_j is this times a_j
    slope = jnp.where(seen, expected.slope, 0.0)
    outer = (items.a[:, :, None] * items.a[:, None, :]).reshape(-1, k * k)
    information = ((slope * through) @ outer).reshape(-1, k, k)
    # a direction that the record does not inform takes nothing away
    ridge = 1e-6 * jnp.trace(information, axis1=1, axis2=2)[:, None, None] * jnp.eye(k) + 1e-12 * jnp.eye(k)
    crossed = (logit * slope) @ items.a
    projection = jnp.linalg.solve(information + ridge, crossed[:, :, None])[:, :, 0]
    weight = jnp.where(seen, logit - through * (projection @ items.a.T), 0.0)
    total = (weight * (responses - expected.probability)).sum(axis=1)
    variance = (weight**2 * expected.variance).sum(axis=1)
    third = (weight**3 * expected.variance * (1.0 - 2.0 * expected.probability)).sum(axis=1)
    return total, variance, third


def person_fit(theta: Floats, responses: NDArray[np.int8], items: Items) -> PersonFit:
    """Say how well records agree with the abilities estimated from them.

    Parameters
    ----------
    theta
        Abilities in the frame of the items, shape (N, K).
    responses
        1, 0 or -1 (missing), shape (N, J).
    items
        The J items.
    """
    found: list[list[Floats]] = []
    for rows, part in chunks(responses):
        own = np.zeros((len(part), theta.shape[1]), dtype=np.float32)
        own[: rows.stop - rows.start] = theta[rows]
        sums = _sums(jnp.asarray(own), jnp.asarray(part), items)
        found.append([np.asarray(one, np.float64)[: rows.stop - rows.start] for one in sums])
    total, variance, third = (np.concatenate(parts) for parts in zip(*found, strict=True))
    tested = ((responses >= 0).sum(axis=1) >= LEAST_OUTCOMES) & (variance > 0)
    spread = np.sqrt(np.where(tested, variance, 1.0))
    z = total / spread
    tail = norm.cdf(z) - norm.pdf(z) * third / spread**3 / 6.0 * (z**2 - 1.0)
    return PersonFit(np.where(tested, z, np.nan), np.where(tested, np.clip(tail, 0.0, 1.0), np.nan))
