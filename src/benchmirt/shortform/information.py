"""What items tell about the abilities, and which tell most.

Given the answers, the posterior covariance of the abilities is about the inverse of

    M(theta) = I + sum_j w_j(theta) a_j a_j',   w_j = slope^2 / (P_j (1 - P_j))

that is, of the prior's information and that of the items (Segall 1996, *Psychometrika* 61, 331-354). P_j holds the
item's own uncertainty (:mod:`benchmirt.ability.response`), so that a discrimination that may be luck counts for less
(van der Linden and Glas 2000, *Applied Measurement in Education* 13, 35-53). A list serves a population of models, not
one: criteria are means over N(0, I), the spread of the study's models, by Gauss-Hermite quadrature, or over the
abilities of a sample.

- All abilities: the mean of log det M is to be large (D-optimality). It is submodular, so that adding the best item
  each time reaches at least 1 - 1/e of the best gain of any list so long (Nemhauser, Wolsey and Fisher 1978,
  *Mathematical Programming* 14, 265-294).
- One ability t: the mean of t' inv(M) t, its expected posterior variance, is to be small (c-optimality), item by item
  as well.

Content balance: the next item comes from the benchmark that is furthest behind its share (Kingsbury and Zara 1989,
*Applied Measurement in Education* 2, 359-375), so that every beginning of the list is balanced, and no benchmark is
ever a whole item ahead of its share.

Where no order is wanted but a set of given size, no step per item is needed: what an item adds to the mean of log det M
is, to first order, the mean of w_j a_j' inv(M) a_j, so the largest are taken and M is worked out anew from them
(:func:`optimal`; the sensitivity function of Fedorov 1972, *Theory of Optimal Experiments*).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt.ability.posterior import nodes
from benchmirt.ability.response import Items, response
from benchmirt.errors import InputError

__all__ = [
    "Balance",
    "Bank",
    "bank_of",
    "furthest_behind",
    "greedy",
    "information",
    "log_determinant",
    "optimal",
    "shares",
    "standard_errors",
    "weight_at",
]

Floats = NDArray[np.float64]
Balance = Literal["proportional", "equal", "none"]

PER_DIMENSION = {1: 21, 2: 7}  # quadrature points of the population; 3 beyond
ROUNDS = 10


def weight_at(theta: Array, items: Items) -> Array:
    """Return w_j at abilities (Q, K), shape (Q, J)."""
    expected = response(theta, items)
    return expected.slope**2 / expected.variance


_weight_at = jax.jit(weight_at)


@dataclass(frozen=True)
class Bank:
    """What items tell over a population of abilities.

    Attributes
    ----------
    a
        Discriminations, shape (J, K).
    weight
        w_j at each point of the population, shape (Q, J).
    share
        Weights of the points, shape (Q,), which sum to 1.
    """

    a: Floats
    weight: Floats
    share: Floats


def bank_of(items: Items, abilities: Floats | None = None) -> Bank:
    """Return the information of items over N(0, I), or over the abilities of a sample (Q, K), which count alike."""
    if abilities is None:
        points, share = nodes(items.dims, PER_DIMENSION.get(items.dims, 3))
    else:
        points, share = abilities, np.full(len(abilities), 1.0 / len(abilities))
    weight = np.asarray(_weight_at(jnp.asarray(points, jnp.float32), items), np.float64)
    return Bank(np.asarray(items.a, np.float64), weight, share)


def shares(benchmark: NDArray[np.str_], balance: Balance) -> tuple[NDArray[np.intp], Floats]:
    """Return the group of each item (J,) and the share of a list that each group is to have (G,).

    Parameters
    ----------
    benchmark
        Benchmark of each item.
    balance
        ``proportional`` to the number of items, ``equal``, or ``none``: one group.

    Raises
    ------
    InputError
        If it is another word.
    """
    if balance not in ("none", "proportional", "equal"):
        raise InputError(
            "there is no such balance", found=repr(balance), expected="none, proportional or equal"
        )
    if balance == "none":
        return np.zeros(len(benchmark), dtype=np.intp), np.ones(1)
    names, group, count = np.unique(benchmark, return_inverse=True, return_counts=True)
    share = count / count.sum() if balance == "proportional" else np.full(len(names), 1.0 / len(names))
    return group.astype(np.intp), share


def furthest_behind(counts: Floats, share: Floats, left: Floats) -> NDArray[np.bool_]:
    """Say which groups that have items left are furthest behind their share of a list that is one longer, shape (G,)."""
    behind = np.where(left > 0, share * (counts.sum() + 1) - counts, -np.inf)
    return behind >= behind.max() - 1e-9


def greedy(
    bank: Bank, group: NDArray[np.intp], share: Floats, direction: Floats | None = None
) -> Iterator[tuple[int, Floats]]:
    """Yield the places of items, the most telling first, each with the inverses of M (Q, K, K) once it is in the list.

    Parameters
    ----------
    bank
        The items.
    group, share
        As from :func:`shares`.
    direction
        Unit vector of the one ability that matters (K,); None: all.
    """
    dims = bank.a.shape[1]
    inverse = np.broadcast_to(np.eye(dims), (len(bank.share), dims, dims)).copy()
    free = np.ones(len(bank.a), dtype=bool)
    counts = np.zeros(len(share))
    left = np.bincount(group, minlength=len(share)).astype(np.float64)
    while free.any():
        candidates = np.flatnonzero(free & furthest_behind(counts, share, left)[group])
        a, weight = bank.a[candidates], bank.weight[:, candidates]
        spread = inverse @ a.T  # (Q, K, candidates)
        quadratic = weight * np.einsum("qkj,jk->qj", spread, a)
        if direction is None:
            gain = bank.share @ np.log1p(quadratic)
        else:
            gain = bank.share @ (weight * np.einsum("qkj,k->qj", spread, direction) ** 2 / (1.0 + quadratic))
        best = int(np.argmax(gain))
        place = int(candidates[best])
        column = spread[:, :, best]
        factor = weight[:, best] / (1.0 + quadratic[:, best])
        inverse -= factor[:, None, None] * column[:, :, None] * column[:, None, :]
        free[place] = False
        counts[group[place]] += 1
        left[group[place]] -= 1
        yield place, inverse


def information(bank: Bank, chosen: NDArray[Any]) -> Floats:
    """Return M at each point, shape (Q, K, K), of a set of items (J,), or of parts of items where weights are given."""
    dims = bank.a.shape[1]
    total = bank.weight @ (_squares(bank) * np.asarray(chosen, dtype=np.float64)[:, None])
    return np.eye(dims) + total.reshape(-1, dims, dims)


def _squares(bank: Bank) -> Floats:
    """Return a_j a_j' of each item as a row, shape (J, K * K)."""
    return (bank.a[:, :, None] * bank.a[:, None, :]).reshape(len(bank.a), -1)


def log_determinant(bank: Bank, chosen: NDArray[np.bool_]) -> float:
    """Return the mean of log det M over the points for a set of items (J,)."""
    return float(bank.share @ np.linalg.slogdet(information(bank, chosen))[1])


def standard_errors(bank: Bank, chosen: NDArray[np.bool_], T: Floats) -> Floats:
    """Return the expected standard error of the abilities along the columns of T (K, A) with a set of items: shape (A,).

    It is the root of the mean posterior variance over the points.
    """
    inverse = np.linalg.inv(information(bank, chosen))
    return np.sqrt(np.einsum("q,kt,qkl,lt->t", bank.share, T, inverse, T))


def _largest(value: Floats, group: NDArray[np.intp], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Choose the items with the largest values, so many of each group; of equal ones the first."""
    order = np.lexsort((np.arange(len(value)), -value, group))
    starts = np.searchsorted(group[order], np.arange(len(sizes)))
    chosen = np.zeros(len(value), dtype=bool)
    chosen[order] = np.arange(len(order)) - starts[group[order]] < sizes[group[order]]
    return chosen


def optimal(bank: Bank, group: NDArray[np.intp], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Choose a set of items with a large mean of log det M, so many of each group.

    Parameters
    ----------
    bank
        The items.
    group
        Group of each item, shape (J,), from 0.
    sizes
        Items to take of each group, shape (G,), at most as many as it has.

    Returns
    -------
    Shape (J,); with all items of a group in the set nothing is left to choose there.
    """
    count = np.bincount(group, minlength=len(sizes))
    squares, weight = _squares(bank), (bank.weight * bank.share[:, None]).T
    belief = (sizes / np.maximum(count, 1))[group]
    best, reached = np.zeros(len(group), dtype=bool), -np.inf
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(information(bank, belief))
        gain = ((weight @ inverse.reshape(len(inverse), -1)) * squares).sum(axis=1)
        chosen = _largest(gain, group, sizes)
        value = log_determinant(bank, chosen)
        if value <= reached + 1e-12:
            break
        best, reached, belief = chosen, value, chosen.astype(np.float64)
    return best
