"""Link two calibrations through the items that they share, and find the items that drifted between them.

Two studies settle location, scale and rotation of their abilities by their own models. For an item that works alike in both,
a_2 = a_1 M and d_2 = d_1 + a_1 m: the abilities of the first are theta_1 = M theta_2 + m (Li and Lissitz 2000; Oshima, Davey and
Lee 2000). The items' second moments in either frame settle m, and M up to a rotation, which is the one nearest to the cross
moments; priors, which shrink estimates, and the errors' share are taken out of the moments (Fuller 1987, 2.2). Unlike a
regression this holds whether the errors of the two studies are independent or, as where they share models, not. Where the
items of a study tell models apart in fewer directions than there are abilities, the other directions cannot be linked, and
`Link.measured` says which.

Whether an item drifted is then Lord's (1980) chi-square in K + 1 dimensions, between what the data of either study say of it.
Models of one lineage are no independent witnesses, and posteriors of fits without sampling are too narrow, so the statistic is
divided by what the typical item shows, as Devlin and Roeder (1999) do in genetics; the share of falsely flagged items is held by
Benjamini and Hochberg (1995). Items that are flagged have no say in the link, which is made anew until none is new (Candell and
Drasgow 1988).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt.errors import InputError
from benchmirt.likelihood import probability

__all__ = [
    "Link",
    "Parameters",
    "Population",
    "axes",
    "least_items",
    "link",
    "matched",
    "measured",
    "transform",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FALSE_DISCOVERIES = 0.05
_ROUNDS = 10
_LEAST_INFORMATION = 0.05  # of the data, in that of the prior: below it their difference is mostly rounding
_LEAST_RELIABLE = 0.1  # of what varies in a direction, that is no error
_NODES = 400


@dataclass(frozen=True)
class Population:
    """Normal prior of the item parameters of a study: scales (K,) of the discriminations, mean and scale of the intercepts."""

    tau: Floats
    mu_d: float
    sigma_d: float

    @classmethod
    def of(cls, items: Parameters) -> Population:
        """Return the prior that the posteriors of all items imply, as variational EM estimates it."""
        second = items.a**2 + np.diagonal(items.cov, axis1=1, axis2=2)[:, :-1]
        mean = float(items.d.mean())
        spread = (items.d - mean) ** 2 + items.cov[:, -1, -1]
        return cls(np.sqrt(second.mean(axis=0)), mean, float(np.sqrt(spread.mean())))


@dataclass(frozen=True)
class Parameters:
    """Item parameters of a study: ``a`` (J, K), ``d`` (J,), and posterior covariances over both, ``cov`` (J, K + 1, K + 1)."""

    a: Floats
    d: Floats
    cov: Floats

    def __getitem__(self, rows: Bools | NDArray[np.intp]) -> Parameters:
        return Parameters(self.a[rows], self.d[rows], self.cov[rows])

    def without(self, prior: Population) -> Evidence:
        """Take the prior out of the posteriors."""
        scale = np.append(prior.tau, prior.sigma_d)
        precision = np.diag(1 / scale**2)
        center = np.append(np.zeros(self.a.shape[1]), prior.mu_d)
        posterior = np.linalg.inv(self.cov)
        own = posterior - precision
        known = np.linalg.eigvalsh(own * np.outer(scale, scale)).min(axis=1) > _LEAST_INFORMATION
        cov = np.linalg.inv(np.where(known[:, None, None], own, precision))
        linear = np.einsum("jpq,jq->jp", posterior, np.column_stack([self.a, self.d])) - precision @ center
        spread = np.einsum("jpp->j", cov / np.outer(scale, scale))
        return Evidence(np.einsum("jpq,jq->jp", cov, linear), cov, known, spread)


@dataclass(frozen=True)
class Evidence:
    """What the data of a study alone say of J items.

    Attributes
    ----------
    values, cov
        Estimates of (a_1..a_K, d), shape (J, K + 1), and the covariances of their errors.
    known
        Whether the data say anything of an item in every direction, shape (J,); the others' values mean nothing.
    spread
        Sum of the error variances, in those of the population.
    """

    values: Floats
    cov: Floats
    known: Bools
    spread: Floats

    def __getitem__(self, rows: Bools | NDArray[np.intp]) -> Evidence:
        return Evidence(self.values[rows], self.cov[rows], self.known[rows], self.spread[rows])


@dataclass(frozen=True)
class Link:
    """How the second study's parameters follow from the first's, and what does not follow.

    Attributes
    ----------
    M, m
        Shapes (K, K) and (K,): theta_1 = M theta_2 + m.
    chi_square
        Lord's statistic of each item, divided by `inflation`, shape (J,); NaN where the data say too little of an item.
    p, q
        Its p value, and the least false discovery rate at which the item is flagged.
    drifted
        Whether `q` is at most `FALSE_DISCOVERIES`.
    inflation
        By how much the typical item differs more than chance says, at least 1.
    easier
        Expected score in the second study less that in the first, over models like the first study's, shape (J,).
    rounds
        Links made until no flag changed.
    evidence
        What the data of either study say of the items.
    used
        The items that the link rests on, shape (J,).
    measured
        Projectors (K, K) onto the abilities of either study that these items measure; of the others no link knows anything.
    """

    M: Floats
    m: Floats
    chi_square: Floats
    p: Floats
    q: Floats
    drifted: Bools
    inflation: float
    easier: Floats
    rounds: int
    evidence: tuple[Evidence, Evidence]
    used: Bools
    measured: tuple[Floats, Floats]


def _root(matrix: Floats) -> Floats:
    """Symmetric root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(values) @ vectors.T)


def _moments(one: Evidence, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Take the weighted second moments of the items' parameters apart, into what differs and what is error.

    Returns
    -------
    A matrix S (K + 1, K + 1) whose columns are directions, with S S' the moments of the estimates; the share of each direction
    that is no error, (K + 1,), at most 1 and ascending, below 0 where errors are larger than all that varies; and the moments
    without the errors, S diag(share) S', with `_LEAST_RELIABLE` in the place of lower shares, since nothing can be divided by
    less than nothing (Fuller 1987, 2.2.2, bounds them in the same way).
    """
    raw = np.einsum("j,jp,jq->pq", weight, one.values, one.values)
    root = _root(raw)
    inverse = np.linalg.inv(root)
    errors = inverse @ np.einsum("j,jpq->pq", weight, one.cov) @ inverse
    noise, directions = np.linalg.eigh(errors)
    S = root @ directions[:, ::-1]
    share = 1 - noise[::-1]
    return S, share, np.asarray(S * np.maximum(share, _LEAST_RELIABLE) @ S.T)


def _weight(first: Evidence, second: Evidence) -> Floats:
    """Weights of the items, shape (J,): less where the data say less."""
    return np.asarray(1 / (1 + first.spread + second.spread))


def measured(one: Evidence, other: Evidence) -> Floats:
    """Return the projector (K, K) onto the abilities of `one` study that the items measure there.

    Those are the directions in which discriminations differ by more than their errors; of the others the items say nothing,
    whatever the link. `other` has a say in the items' weights only.
    """
    k = one.values.shape[1] - 1
    discriminations = Evidence(one.values[:, :k], one.cov[:, :k, :k], one.known, one.spread)
    S, share, _ = _moments(discriminations, _weight(one, other))
    basis = np.linalg.qr(S[:, share > _LEAST_RELIABLE])[0]
    return np.asarray(basis @ basis.T)


def transform(first: Evidence, second: Evidence) -> tuple[Floats, Floats]:
    """Return M and m from items that work alike in both studies, and of which both know something."""
    k = first.values.shape[1] - 1
    weight = _weight(first, second)
    of_first, of_second = (_moments(one, weight)[2] for one in (first, second))
    root_1, root_2 = _root(of_first[:k, :k]), _root(of_second[:k, :k])
    cross = np.einsum("j,jp,jq->pq", weight, first.values[:, :k], second.values[:, :k])
    left, _, right = np.linalg.svd(np.linalg.solve(root_1, cross) @ np.linalg.inv(root_2))
    M = np.linalg.solve(root_1, left @ right @ root_2)
    lag = np.linalg.solve(M.T, of_second[:k, k]) - of_first[:k, k]
    return M, np.asarray(np.linalg.solve(root_1 @ root_1, lag), dtype=np.float64)


def least_items(dims: int) -> int:
    """Return the fewest items that a link may rest on: twenty beyond its unknowns."""
    return 20 + dims * (dims + 1)


def _expected(items: Parameters, floor: Floats, ceiling: Floats, theta: Floats) -> Floats:
    """Mean probability of a 1 over abilities (n, K), shape (J,)."""
    return np.asarray(probability(theta @ items.a.T + items.d, floor, ceiling), np.float64).mean(axis=0)


def link(
    first: Parameters,
    second: Parameters,
    populations: tuple[Population, Population],
    floor: Floats,
    ceiling: Floats,
    seed: int = 0,
) -> Link:
    """Link two studies through their common items.

    Parameters
    ----------
    first, second
        Parameters of the same J items in the canonical frames of the two studies, K dimensions in both.
    populations
        Priors of the item parameters in the two studies (:meth:`Population.of` all their items).
    floor, ceiling
        Asymptotes, shape (J,), the same in both.
    seed
        Draws the models over whom expected scores are averaged.

    Raises
    ------
    InputError
        If the numbers of dimensions differ, or there are too few common items.
    """
    items, k = first.a.shape
    if second.a.shape[1] != k:
        raise InputError(
            "studies with different numbers of dimensions cannot be linked",
            found=f"{k} in this study and {second.a.shape[1]} in the other",
            todo="Run one of them with the number of dimensions of the other (fits: {dims: ...})",
        )
    least = least_items(k)
    if items < least:
        raise InputError(
            "the studies have too few items in common to be linked",
            found=f"{items:,} calibrated in both",
            expected=f"at least {least}",
        )
    from scipy.stats import chi2, false_discovery_control  # slow to import

    one, two = first.without(populations[0]), second.without(populations[1])
    known = one.known & two.known
    flagged, rounds, settled = np.zeros(items, dtype=bool), 0, False
    while not settled and rounds < _ROUNDS and (known & ~flagged).sum() >= least:
        rounds += 1
        drifted = flagged
        used = known & ~drifted
        M, m = transform(one[used], two[used])
        turn = np.block([[M, m[:, None]], [np.zeros((1, k)), np.ones((1, 1))]])
        difference = two.values - one.values @ turn
        raw = np.einsum(
            "jp,jpq,jq->j", difference, np.linalg.inv(two.cov + turn.T @ one.cov @ turn), difference
        )
        inflation = max(1.0, float(np.median(raw[used]) / chi2.median(k + 1)))
        chi_square = np.where(known, raw / inflation, np.nan)
        p = np.asarray(chi2.sf(chi_square, k + 1))
        q = np.full(items, np.nan)
        q[known] = false_discovery_control(p[known])
        flagged = np.nan_to_num(q, nan=1.0) <= FALSE_DISCOVERIES
        settled = bool((flagged == drifted).all())
    if not rounds:
        raise InputError(
            "the data of the two studies say too little of their common items to link them",
            found=f"{int(known.sum()):,} of {items:,} items that say enough",
            expected=f"at least {least}",
        )
    theta = np.random.default_rng(seed).standard_normal((_NODES, k))
    of_first = _expected(first, floor, ceiling, theta)
    of_second = _expected(second, floor, ceiling, (theta - m) @ np.linalg.inv(M).T)
    easier = of_second - of_first
    found = measured(one[used], two[used]), measured(two[used], one[used])
    return Link(M, m, chi_square, p, q, flagged, inflation, easier, rounds, (one, two), used, found)


def axes(M: Floats, first: Floats, second: Floats) -> Floats:
    """Correlations of the abilities shown in two studies, over models like the first study's.

    Parameters
    ----------
    M
        Of the link, shape (K, K).
    first, second
        Directions of the abilities shown, unit vectors as columns, shape (K, K), each in its study's canonical frame.

    Returns
    -------
    Shape (K, K): rows for the first study's abilities, columns for the second's.
    """
    moved = np.linalg.inv(M).T @ np.asarray(second)
    return np.asarray(np.asarray(first).T @ (moved / np.linalg.norm(moved, axis=0)))


def matched(correlations: Floats) -> list[tuple[int, int, float]]:
    """Pairs of abilities of two studies that go together, with their correlation, by the first study's order."""
    rows, columns = ident.pairing(np.abs(correlations))
    return [
        (int(row), int(column), float(correlations[row, column]))
        for row, column in zip(rows, columns, strict=True)
    ]
