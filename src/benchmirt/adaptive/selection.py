"""Choose the next items of a model, given the posterior of its abilities.

With the posterior covariance S of the abilities, an item with discriminations a and information w (as in
:mod:`benchmirt.shortform.information`) makes the posterior precision inv(S) + w a a'. Two criteria:

- D: the determinant of the precision is to grow most, which it does by the factor 1 + w a'S a (Segall 1996,
  *Psychometrika* 61, 331-354). It does not depend on the axes. The gain is the logarithm of that factor.
- A: the sum of the posterior variances of the shown abilities T is to fall most, which it does by
  w |T'S a|^2 / (1 + w a'S a) (Mulder and van der Linden 2009, *Psychometrika* 74, 273-296; Reckase 2009,
  *Multidimensional Item Response Theory*, chapter 10).

w is averaged over the posterior, since early on the abilities are hardly known (van der Linden 1998, *Psychometrika* 63,
201-216). With one ability, w a^2 is the Fisher information of the item, and both criteria put items in its order.

Several items at a time: S is worked out anew after each as if it had been answered; what it will tell does not depend
on the answer as long as w does not move.

Content balance is that of :func:`benchmirt.shortform.information.furthest_behind`. Exposure: the next item is drawn
from the best n (randomesque; Kingsbury and Zara 1989, *Applied Measurement in Education* 2, 359-375), and an item rests
while more than a share of the test takers have seen it (restricted; Revuelta and Ponsoda 1998, *Journal of Educational
Measurement* 35, 311-327).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt.ability.posterior import Posterior, nodes
from benchmirt.ability.response import Items
from benchmirt.errors import InputError
from benchmirt.given import whole_number
from benchmirt.shortform.information import furthest_behind, weight_at

__all__ = [
    "Criterion",
    "Exposure",
    "Pool",
    "Rules",
    "choose",
    "expected_weights",
    "gains",
    "gather",
    "shown_errors",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Criterion = Literal["D", "A"]


@dataclass(frozen=True)
class Pool:
    """The items that a test may use.

    Attributes
    ----------
    items
        J items.
    T
        Unit vectors of the shown abilities as columns, shape (K, A).
    group, share
        Group of each item (J,), and the share of a test that each group is to have (G,), as from
        :func:`benchmirt.shortform.information.shares`.
    """

    items: Items
    T: Floats
    group: NDArray[np.intp]
    share: Floats

    @cached_property
    def a(self) -> Floats:
        """Discriminations, shape (J, K)."""
        return np.asarray(self.items.a, np.float64)


@dataclass(frozen=True)
class Rules:
    """How the next item is chosen.

    Attributes
    ----------
    criterion
        ``D``, all abilities together, or ``A``, the sum of the variances of the shown ones.
    best_of
        It is drawn from so many of the best; 1: the best.
    per_dimension
        Points per dimension that the information is averaged over; 1: it is that at the posterior mean.
    """

    criterion: Criterion = "D"
    best_of: int = 1
    per_dimension: int = 3

    def __post_init__(self) -> None:
        if self.criterion not in ("D", "A"):
            raise InputError("there is no such criterion", found=repr(self.criterion), expected="D or A")
        for name in ("best_of", "per_dimension"):
            whole_number(getattr(self, name), name)


@dataclass
class Exposure:
    """How many test takers have seen each item, and the share that may.

    Of n takers that have begun no more than ``max(1, limit n)`` see an item. One object serves all tests that share a
    limit.

    Attributes
    ----------
    limit
        In (0, 1]; 1: no limit.
    counts
        Takers that have seen each item, shape (J,).
    takers
        Takers that have begun.
    """

    limit: float
    counts: NDArray[np.int64] = field(repr=False)
    takers: int = 0

    def __post_init__(self) -> None:
        fine = isinstance(self.limit, (int, float, np.number)) and not isinstance(self.limit, bool)
        if not (fine and 0.0 < self.limit <= 1.0):
            raise InputError(
                "", where="limit", found=repr(self.limit), expected="a share above 0 and at most 1"
            )

    @classmethod
    def of(cls, items: int, limit: float) -> Exposure:
        """Begin with so many items that nobody has seen."""
        return cls(limit, np.zeros(whole_number(items, "items"), dtype=np.int64))

    def open(self) -> Mask:
        """Say which items one more taker may see, shape (J,)."""
        # a hair of slack, so that .2 of 15 is 3
        return self.counts + 1 <= max(1.0, self.limit * self.takers + 1e-9)

    def show(self, places: NDArray[np.intp]) -> None:
        """Count that one taker sees the items at some places."""
        self.counts[places] += 1


def gather(items: Items, index: Any) -> Items:
    """Return each model's own items: the arrays of `items` at an index of shape (N, M)."""
    # NumPy's indexing, since JAX would compile for each shape
    own: Items = jax.tree.map(lambda array: np.asarray(array)[index], items)
    return own


def shown_errors(cov: Floats, T: Floats) -> Floats:
    """Return the standard errors (N, A) of the abilities along the columns of T (K, A) from covariances (N, K, K)."""
    return np.sqrt(np.einsum("naa->na", ident.rotate_theta_cov(cov, T)))


@partial(jax.jit, static_argnames="per_dimension")
def _expected_weights(mean: Array, cov: Array, items: Items, per_dimension: int) -> Array:
    grid, share = nodes(items.dims, per_dimension)
    root = jnp.linalg.cholesky(cov)

    def add(total: Array, point: tuple[Array, Array]) -> tuple[Array, None]:
        away, part = point
        return total + part * weight_at(mean + jnp.einsum("nkl,l->nk", root, away), items), None

    start = jnp.zeros((mean.shape[0], items.d.shape[0]), jnp.float32)
    points = jnp.asarray(grid, jnp.float32), jnp.asarray(share, jnp.float32)
    return jax.lax.scan(add, start, points)[0]


def expected_weights(abilities: Posterior, items: Items, per_dimension: int = 3) -> Floats:
    """Return the information w of items averaged over the posterior of each model, shape (N, J).

    Parameters
    ----------
    abilities
        Of N models; mean and covariance count.
    items
        The J items.
    per_dimension
        Quadrature points per dimension.
    """
    mean, cov = jnp.asarray(abilities.mean, jnp.float32), jnp.asarray(abilities.cov, jnp.float32)
    return np.asarray(_expected_weights(mean, cov, items, per_dimension), np.float64)


def gains(weight: Floats, a: Floats, cov: Floats, criterion: Criterion, T: Floats) -> Floats:
    """Return what each item is expected to gain, shape (J,).

    Parameters
    ----------
    weight
        Information w, shape (J,).
    a
        Discriminations, shape (J, K).
    cov
        Posterior covariance of the abilities, shape (K, K).
    criterion, T
        As in :class:`Rules` and :class:`Pool`.
    """
    spread = a @ cov
    quadratic = weight * np.einsum("jk,jk->j", spread, a)
    if criterion == "D":
        return np.log1p(quadratic)
    return np.asarray(weight * ((spread @ T) ** 2 @ np.ones(T.shape[1])) / (1.0 + quadratic))


def choose(
    pool: Pool,
    rules: Rules,
    weight: Floats,
    cov: Floats,
    free: Mask,
    asked: NDArray[np.intp],
    size: int,
    random: np.random.Generator,
) -> NDArray[np.intp]:
    """Choose the next items of one model.

    Parameters
    ----------
    pool, rules
        The J items and how to choose.
    weight
        Information of the items averaged over the posterior, shape (J,).
    cov
        Posterior covariance of the abilities, shape (K, K).
    free
        Items that may be chosen, shape (J,).
    asked
        Places of the items that were put before, which content balance counts.
    size
        How many to choose.
    random
        For the draw from the best.

    Returns
    -------
    Places in the order of choice; fewer than `size` where no more are free.
    """
    groups = len(pool.share)
    counts = np.bincount(pool.group[asked], minlength=groups).astype(np.float64)
    at = np.flatnonzero(free)
    a, w, group, cov = pool.a[at], weight[at], pool.group[at], cov.copy()
    left = np.bincount(group, minlength=groups).astype(np.float64)
    unused = np.ones(len(at), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(size, len(at)):
        candidates = unused if groups == 1 else unused & furthest_behind(counts, pool.share, left)[group]
        gain = np.where(candidates, gains(w, a, cov, rules.criterion, pool.T), -np.inf)
        best = _one_of_the_best(gain, min(rules.best_of, int(candidates.sum())), random)
        spread = cov @ a[best]
        cov = cov - w[best] / (1.0 + w[best] * (a[best] @ spread)) * np.outer(spread, spread)
        unused[best] = False
        counts[group[best]] += 1
        left[group[best]] -= 1
        chosen.append(best)
    return at[chosen].astype(np.intp)


def _one_of_the_best(gain: Floats, count: int, random: np.random.Generator) -> int:
    if count == 1:
        return int(np.argmax(gain))
    best = np.argpartition(-gain, count - 1)[:count]
    return int(np.sort(best)[random.integers(count)])
