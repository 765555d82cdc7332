"""Groups of items that point different ways, found without their labels.

An item's direction is that of its discriminations a_j, known with the error of its posterior. Directions are a mixture of
von Mises-Fisher distributions on the sphere of the abilities (Banerjee, Dhillon, Ghosh and Sra 2005, *JMLR* 6, 1345-1382)
and of an even background that takes items which fit nowhere, so that heavy tails do not make a group. Within group c an
item has the concentration 1 / (tau_c^2 + s_j^2): tau_c is the group's own spread, s_j the item's error in radians (the
mean posterior variance across a_j, over |a_j|^2), so that an item of unknown direction has no say.

Groups are added while that lowers the Bayesian information criterion (Schwarz 1978), and the smallest criterion wins among
solutions whose groups are groups: at least 30 degrees apart, and further than two of their spreads (Ashman, Bird and Zepf
1994, *Astronomical Journal* 108, 2348-2361: less than that has one peak), each with a twentieth of the items and at least
five. More than one group needs a criterion that is better by ten, which counts as very strong evidence (Kass and Raftery
1995, *JASA* 90, 773-795).

Declared subsets are compared afterwards: each subset goes to the group that holds most of it, and the adjusted Rand index
(Hubert and Arabie 1985, *Journal of Classification* 2, 193-218) says how far that division is the one that was found; its
p value is that of subsets shuffled over the items, sorted into groups in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ive

from benchmirt.resampling import generator, monte_carlo_p

__all__ = ["Agreement", "Clusters", "adjusted_rand", "coinciding", "find"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MOST = 4
LEAST_ITEMS = 20
"""Fewer items are not divided."""
LEAST_GROUP = 5
LEAST_SHARE = 0.05
LEAST_ANGLE = 30.0
LEAST_SPREADS = 2.0
LEAST_EVIDENCE = 10.0
CERTAIN = 0.8
"""An item clearly belongs to a group if its probability, against the other groups, is at least this."""
_SPREADS = np.radians(np.array([2.0, 4.0, 6.0, 8.0, 11.0, 14.0, 18.0, 22.0, 27.0, 32.0, 38.0, 45.0]))
_STARTS = 5
_STEPS = 100
_SETTLED = 0.003  # of the log likelihood
_SHUFFLES = 199


@dataclass(frozen=True)
class Clusters:
    """Groups of J items that point different ways.

    Attributes
    ----------
    group
        Group of each item from 0, the largest first, shape (J,); -1 where an item has no direction.
    probability
        Of the item's group against the other groups, shape (J,); NaN where there is none.
    centres
        Unit vectors of the groups in the canonical frame, shape (C, K).
    spreads
        Spread of directions within each group in degrees, without the items' errors, shape (C,).
    background
        Share of the items that fit no group.
    evidence
        By how much the information criterion of the groups is better than that of one group.
    """

    group: Ints
    probability: Floats
    centres: Floats
    spreads: Floats
    background: float
    evidence: float

    @property
    def count(self) -> int:
        """Number of groups C."""
        return len(self.centres)


@dataclass(frozen=True)
class _Mixture:
    """A fitted mixture: background and C groups."""

    share: Floats
    centres: Floats
    spread: Ints
    likelihood: float
    responsibility: Floats


def _log_normalizer(kappa: Floats, dims: int) -> Floats:
    """Log density of the von Mises-Fisher distribution on the unit sphere at its centre, minus kappa, shape of `kappa`."""
    order = dims / 2 - 1
    return np.asarray(
        order * np.log(kappa) - dims / 2 * np.log(2 * np.pi) - np.log(ive(order, kappa)) - kappa,
        dtype=np.float64,
    )


def _errors(a: Floats, cov: Floats, unit: Floats) -> Floats:
    """Squared error of each item's direction, radians, shape (J,)."""
    along = np.einsum("jk,jkl,jl->j", unit, cov, unit)
    across = np.maximum(np.einsum("jkk->j", cov) - along, 0.0)
    return np.asarray(across / ((a.shape[1] - 1) * (a**2).sum(axis=1)))


def _starts(unit: Floats, weight: Floats, count: int, rng: np.random.Generator) -> list[Floats]:
    """Centres to start from: far from each other, beginning at the mean direction and at items drawn by weight."""
    found = []
    mean = weight @ unit
    for start in range(_STARTS if count > 1 else 1):
        length = np.linalg.norm(mean)
        first = mean / length if start == 0 and length > 0 else unit[rng.choice(len(unit), p=weight)]
        centres = [first]
        while len(centres) < count:
            near = np.max(unit @ np.array(centres).T, axis=1)
            odds = weight * np.maximum(1.0 - near, 1e-9)
            centres.append(unit[rng.choice(len(unit), p=odds / odds.sum())])
        found.append(np.array(centres))
    return found


def _fit(unit: Floats, kappa: Floats, normalizer: Floats, centres: Floats) -> _Mixture:
    """Fit a mixture by expectation-maximisation.

    Parameters
    ----------
    unit
        Directions, shape (J, K).
    kappa, normalizer
        Concentration of each item for each spread, and the log normaliser, shape (spreads, J).
    centres
        Where the groups start, shape (C, K).
    """
    items, dims = unit.shape
    count = len(centres)
    background = gammaln(dims / 2) - np.log(2) - dims / 2 * np.log(np.pi)
    share = np.append(0.05, np.full(count, 0.95 / count))
    spread = np.full(count, len(_SPREADS) // 2)
    last = -np.inf
    for _ in range(_STEPS):
        along = unit @ centres.T
        density = np.column_stack(
            [np.full(items, background), normalizer[spread].T + kappa[spread].T * along]
        )
        with np.errstate(divide="ignore"):
            joint = density + np.log(share)
        top = joint.max(axis=1, keepdims=True)
        responsibility = np.exp(joint - top)
        total = responsibility.sum(axis=1, keepdims=True)
        responsibility /= total
        likelihood = float((np.log(total) + top).sum())
        if likelihood - last < _SETTLED:
            break
        last = likelihood
        share = responsibility.mean(axis=0)
        own = responsibility[:, 1:]
        moved = (own * kappa[spread].T).T @ unit
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        centres = np.where(length > 0, moved / np.maximum(length, 1e-300), centres)
        along = unit @ centres.T
        spread = np.argmax(normalizer @ own + kappa @ (own * along), axis=0)
    return _Mixture(share, centres, spread, likelihood, responsibility)


def _apart(mixture: _Mixture, certain: Ints) -> bool:
    """Say whether groups are groups: apart from each other, and large enough."""
    count = len(mixture.centres)
    sizes = np.bincount(certain, minlength=count)
    if (sizes < max(LEAST_GROUP, LEAST_SHARE * len(certain))).any():
        return False
    for one in range(count):
        for other in range(one):
            angle = np.arccos(np.clip(mixture.centres[one] @ mixture.centres[other], -1.0, 1.0))
            spread = np.sqrt((_SPREADS[mixture.spread[[one, other]]] ** 2).mean())
            if angle < np.radians(LEAST_ANGLE) or angle < LEAST_SPREADS * spread:
                return False
    return True


def find(a: Floats, cov: Floats, *, seed: int = 0, purpose: str = "clusters") -> Clusters | None:
    """Divide items into groups that point different ways.

    Parameters
    ----------
    a
        Discriminations in an orthogonal frame, shape (J, K).
    cov
        Their posterior covariances, shape (J, K, K).
    seed, purpose
        Of the starts.

    Returns
    -------
    Clusters, or None where there are fewer than 20 items or than two dimensions.
    """
    items, dims = a.shape
    known = (a**2).sum(axis=1) > 0
    if dims < 2 or known.sum() < LEAST_ITEMS:
        return None
    unit = a[known] / np.linalg.norm(a[known], axis=1, keepdims=True)
    error = _errors(a[known], cov[known], unit)
    kappa = 1.0 / (_SPREADS[:, None] ** 2 + error[None, :])
    normalizer = _log_normalizer(kappa, dims)
    weight = 1.0 / (np.median(_SPREADS) ** 2 + error)
    weight /= weight.sum()

    def best_of(count: int) -> tuple[float, _Mixture]:
        rng = generator(seed, f"{purpose}/{count}")
        fitted = max(
            (_fit(unit, kappa, normalizer, start) for start in _starts(unit, weight, count, rng)),
            key=lambda one: one.likelihood,
        )
        return -2 * fitted.likelihood + count * (dims + 1) * float(np.log(len(unit))), fitted

    single, chosen = best_of(1)
    criterion = last = single
    for count in range(2, MOST + 1):
        value, fitted = best_of(count)
        if value >= last:
            break
        last = value
        apart = _apart(fitted, np.argmax(fitted.responsibility[:, 1:], axis=1))
        if apart and value < min(criterion, single - LEAST_EVIDENCE):
            criterion, chosen = value, fitted
    own = chosen.responsibility[:, 1:]
    certain = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
    first = np.argmax(certain, axis=1)
    order = np.argsort(-np.bincount(first, minlength=len(chosen.centres)), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    group = np.full(items, -1, dtype=np.intp)
    probability = np.full(items, np.nan)
    group[known] = place[first]
    probability[known] = certain.max(axis=1)
    return Clusters(
        group,
        probability,
        chosen.centres[order],
        np.degrees(_SPREADS[chosen.spread[order]]),
        float(chosen.share[0]),
        float(single - criterion),
    )


def adjusted_rand(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the adjusted Rand index of two divisions of the same items, each an array of codes from 0, shape (J,)."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0)

    def pairs(counts: Floats) -> float:
        return float((counts * (counts - 1)).sum() / 2)

    both, first, second = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = first * second / max(pairs(np.array([float(len(one))])), 1.0)
    most = (first + second) / 2
    return 1.0 if most == expected else float((both - expected) / (most - expected))


@dataclass(frozen=True)
class Agreement:
    """The declared column whose subsets come nearest to the groups.

    Attributes
    ----------
    column
        Name of the column.
    rand
        Adjusted Rand index of the groups and of the subsets, each put to the group that holds most of it.
    p
        Share of shuffled subsets that come as near.
    """

    column: str
    rand: float
    p: float


def _gathered(subset: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each item the group that holds most of its subset."""
    table = np.zeros((int(subset.max()) + 1, int(group.max()) + 1))
    np.add.at(table, (subset, group), 1.0)
    return np.asarray(np.argmax(table, axis=1)[subset], dtype=np.int64)


def coinciding(
    clusters: Clusters, columns: Mapping[str, NDArray[np.int64]], *, seed: int = 0, purpose: str = "subsets"
) -> Agreement | None:
    """Say which declared subsets the groups coincide with.

    Parameters
    ----------
    clusters
        The groups of J items; those that clearly belong to one are compared.
    columns
        For each declared column the code of each item's subset, -1 where it has none, shape (J,).
    seed, purpose
        Of the shuffles.

    Returns
    -------
    The nearest column, or None where there is one group, or no column divides the items.
    """
    if clusters.count < 2:
        return None
    best: Agreement | None = None
    for name, codes in columns.items():
        use = (codes >= 0) & (np.nan_to_num(clusters.probability) >= CERTAIN)
        values, subset = np.unique(codes[use], return_inverse=True)
        group = clusters.group[use].astype(np.int64)
        if not 2 <= len(values) <= use.sum() / 2 or len(np.unique(group)) < 2:
            continue
        rand = adjusted_rand(group, _gathered(subset, group))
        rng = generator(seed, f"{purpose}/{name}")
        null = [
            adjusted_rand(group, _gathered(mixed, group))
            for mixed in (rng.permutation(subset) for _ in range(_SHUFFLES))
        ]
        found = Agreement(name, rand, monte_carlo_p(rand, null))
        if best is None or (found.p, -found.rand) < (best.p, -best.rand):
            best = found
    return best
