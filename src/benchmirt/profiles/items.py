"""What single items add to a benchmark, and which of them run backwards.

*Contribution*: to first order, what an item adds to the log determinant of the information M of its benchmark,
mean of w_j a_j' inv(M) a_j (:mod:`benchmirt.shortform.information`). Contributions of a benchmark sum to less than the
number of abilities, whatever their number and axes. Items *add little* if they, the least contributing, hold one
hundredth of the benchmark's sum together.

*Backwards*: an item's discrimination along the mean direction of the benchmark's other items is negative. Its standard
error is the posterior's, or that of refits to other lineages where that is larger; one-sided p values of all items of the
study are held to a false discovery rate (Benjamini and Hochberg 1995, *JRSS B* 57, 289-300). Posterior means are drawn
towards zero more than their errors are, so that the p values are rather too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmirt.shortform.information import Bank, information

__all__ = ["Along", "along", "contributions", "directional", "false_discoveries", "little"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LITTLE = 0.01
RATE = 0.05
LEAST_ITEMS = 5
"""In a smaller benchmark the other items do not say which way is forwards."""
CLEAR = 3.0
"""The mean of the items must be so many standard errors long to be a direction."""


def directional(bank: Bank, T: Floats) -> Floats:
    """Return the information of each item along each ability's axis, mean over the population: shape (J, A).

    Parameters
    ----------
    bank
        The items.
    T
        Unit vectors of the abilities as columns, shape (K, A).
    """
    return np.asarray((bank.share @ bank.weight)[:, None] * (bank.a @ T) ** 2)


def contributions(bank: Bank, member: Mask) -> Floats:
    """Return what each item of one benchmark adds to what that benchmark tells, shape (items of it,).

    Parameters
    ----------
    bank
        All items J.
    member
        Those of the benchmark, shape (J,).
    """
    own = Bank(bank.a[member], bank.weight[:, member], bank.share)
    inverse = np.linalg.inv(information(own, np.ones(len(own.a))))
    spread = np.einsum("jk,qkl,jl->qj", own.a, inverse, own.a, optimize=True)
    return np.asarray(own.share @ (own.weight * spread))


def little(contribution: Floats) -> Mask:
    """Return which items add little: the least contributing, as many as hold one hundredth of the sum together."""
    order = np.argsort(contribution, kind="stable")
    found = np.zeros(len(contribution), dtype=bool)
    found[order] = np.cumsum(contribution[order]) <= LITTLE * contribution.sum()
    return found


@dataclass(frozen=True)
class Along:
    """Discriminations of a benchmark's items along the direction of its other items.

    Attributes
    ----------
    value, se
        Estimate and standard error, shape (J,).
    p
        One-sided p value of running backwards, shape (J,).
    """

    value: Floats
    se: Floats
    p: Floats


def along(a: Floats, cov: Floats, refits: Floats | None = None, scale: float = 1.0) -> Along | None:
    """Return how items discriminate along the mean direction of the other items of their benchmark.

    Parameters
    ----------
    a, cov
        Discriminations and posterior covariances, shapes (J, K) and (J, K, K).
    refits
        Discriminations in refits to other lineages, shape (R, J, K).
    scale
        By how much their deviations are to be stretched.

    Returns
    -------
    Along, or None where there are fewer than 5 items, or their mean is not clearly different from zero.
    """
    count = len(a)
    if count < LEAST_ITEMS:
        return None
    mean = a.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0 or length < CLEAR * float((a @ (mean / length)).std(ddof=1)) / np.sqrt(count):
        return None
    others = mean[None, :] * count - a
    unit = others / np.maximum(np.linalg.norm(others, axis=1, keepdims=True), 1e-300)
    value = (a * unit).sum(axis=1)
    variance = np.einsum("jk,jkl,jl->j", unit, cov, unit)
    if refits is not None and len(refits) > 2:
        variance = np.maximum(
            variance, scale**2 * np.einsum("rjk,jk->rj", refits, unit, optimize=True).var(axis=0, ddof=1)
        )
    se = np.sqrt(variance)
    return Along(value, se, np.asarray(ndtr(value / np.maximum(se, 1e-300))))


def false_discoveries(p: Floats, rate: float = RATE) -> Mask:
    """Return which hypotheses are rejected where so many false ones among them are tolerated; NaN is none, shape (n,)."""
    from scipy.stats import false_discovery_control  # slow to import

    known = np.isfinite(p)
    found = np.zeros(len(p), dtype=bool)
    if known.any():
        found[known] = false_discovery_control(p[known]) <= rate
    return found
