"""How two models differ on one set of items: paired and clustered, and unpaired as the published study did it.

Both models answer the same items, so that what they share drops out of the paired difference: McNemar's exact test asks
whether the items that only one of them passes are split evenly. Items of a testlet stand or fall together; the interval
is a bootstrap over testlets, and beside McNemar's p, which takes the items for independent, stands that of the mean
difference over testlets (Student's t with the cluster-robust standard error). The larger of the two counts: where there
are no testlets the exact one is valid, and where there are the other one is. Several tests of one family are corrected by
Holm's method.

Sources: McNemar (1947), *Psychometrika* 12, 153-157; Holm (1979), *Scandinavian Journal of Statistics* 6, 65-70; Eliasziw
and Donner (1991), *Statistics in Medicine* 10, 1981-1991, for paired proportions in clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtr, stdtrit

from benchmirt.resampling import cluster_interval, mean_and_se

__all__ = ["MIN_TESTLETS", "Paired", "Unpaired", "holm", "mcnemar", "paired", "unpaired"]

MIN_TESTLETS = 5
"""With fewer testlets (items without one count as one each) nothing is said of other items."""
REPLICATES = 1000


@dataclass(frozen=True)
class Paired:
    """Two models on the items that both answered.

    Attributes
    ----------
    items, testlets
        Number of items, and of testlets (items without one count as one each).
    base_mean, changed_mean
        Shares passed.
    difference, low, high
        ``changed - base`` and its 95 % interval; NaN ends with too few testlets.
    only_base, only_changed
        Items that only one of the models passes.
    p_mcnemar, p_clustered, p
        Two-sided: exact for independent items, over testlets, and the larger of the two.
    kind
        How the interval was made.
    """

    items: int
    testlets: int
    base_mean: float
    changed_mean: float
    difference: float
    low: float
    high: float
    only_base: int
    only_changed: int
    p_mcnemar: float
    p_clustered: float
    p: float
    kind: str


@dataclass(frozen=True)
class Unpaired:
    """The published comparison: two samples of equal variance, as if each model had answered items of its own.

    Attributes
    ----------
    items
        Items of the set that either model answered.
    base_mean, changed_mean, difference
        Shares passed, and ``changed - base``.
    t, freedom, p
        Student's two-sample test, two-sided.
    d
        Cohen's d, the difference over the pooled standard deviation.
    least
        Smallest absolute difference that the test calls significant at .05.
    """

    items: int
    base_mean: float
    changed_mean: float
    difference: float
    t: float
    freedom: int
    p: float
    d: float
    least: float


def mcnemar(only_base: int, only_changed: int) -> float:
    """Return McNemar's exact two-sided p for the items that only one of two models passes; 1 without any."""
    count = only_base + only_changed
    return float(min(1.0, 2.0 * bdtr(min(only_base, only_changed), count, 0.5))) if count else 1.0


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Return Holm's adjusted p values, shape (tests,), in the given order.

    The smallest is multiplied by the number of tests, the next by one less, and so on; none is smaller than one
    before it, or larger than 1. NaN stays NaN and is no test.
    """
    given = np.asarray(p, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    at = np.flatnonzero(np.isfinite(given))
    order = at[np.argsort(given[at], kind="stable")]
    stepped = given[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def paired(
    base: ArrayLike,
    changed: ArrayLike,
    testlet: ArrayLike,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    purpose: str = "paired difference",
) -> Paired:
    """Compare two models on the same items.

    Parameters
    ----------
    base, changed
        Outcomes, shape (items,): 1, 0, or -1 where missing; only items that both answered count.
    testlet
        Number of each item's testlet, shape (items,) (:func:`benchmirt.resampling.item_units`).
    replicates, seed, purpose
        Of the bootstrap over testlets.

    Raises
    ------
    ValueError
        If no item was answered by both.
    """
    one, two = np.asarray(base), np.asarray(changed)
    both = (one >= 0) & (two >= 0)
    if not both.any():
        raise ValueError("no item was answered by both models")
    one, two = one[both].astype(np.float64), two[both].astype(np.float64)
    units = np.unique(np.asarray(testlet)[both], return_inverse=True)[1]
    testlets = int(units.max()) + 1
    difference = two - one
    only_base, only_changed = int((difference < 0).sum()), int((difference > 0).sum())
    exact = mcnemar(only_base, only_changed)
    low = high = over_testlets = float("nan")
    kind = f"{testlets} testlets are too few for an interval"
    if testlets >= MIN_TESTLETS:
        mean, se = mean_and_se(difference, units)
        over_testlets = (
            1.0 if mean == 0 else float(2 * stdtr(testlets - 1, -abs(mean) / se)) if se > 0 else 0.0
        )
        found = cluster_interval(
            lambda weights: float(weights @ difference / weights.sum()),
            units,
            replicates=replicates,
            seed=seed,
            purpose=purpose,
        )
        low, high = found.low, found.high
        kind = f"bca bootstrap over {testlets} testlets (items without one count as one), {replicates} replicates"
    return Paired(
        items=int(both.sum()),
        testlets=testlets,
        base_mean=float(one.mean()),
        changed_mean=float(two.mean()),
        difference=float(difference.mean()),
        low=low,
        high=high,
        only_base=only_base,
        only_changed=only_changed,
        p_mcnemar=exact,
        p_clustered=over_testlets,
        p=max(exact, over_testlets) if np.isfinite(over_testlets) else float("nan"),
        kind=kind,
    )


def unpaired(base: ArrayLike, changed: ArrayLike) -> Unpaired:
    """Compare two models as if each had answered items of its own.

    Parameters
    ----------
    base, changed
        Outcomes, shape (items,): 1, 0, or -1 where missing; each model counts on what it answered.

    Raises
    ------
    ValueError
        If a model answered fewer than two of the items.
    """
    one, two = (np.asarray(side) for side in (base, changed))
    either = int(((one >= 0) | (two >= 0)).sum())
    one, two = (side[side >= 0].astype(np.float64) for side in (one, two))
    if min(one.size, two.size) < 2:
        raise ValueError("a model answered fewer than two of the items")
    freedom = one.size + two.size - 2
    pooled = (((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum()) / freedom
    difference = float(two.mean() - one.mean())
    se = float(np.sqrt(pooled * (1 / one.size + 1 / two.size)))
    t = difference / se if se > 0 else float(np.sign(difference) * np.inf) if difference else 0.0
    return Unpaired(
        items=either,
        base_mean=float(one.mean()),
        changed_mean=float(two.mean()),
        difference=difference,
        t=t,
        freedom=freedom,
        p=float(2 * stdtr(freedom, -abs(t))),
        d=difference / float(np.sqrt(pooled)) if pooled > 0 else t,
        least=float(stdtrit(freedom, 0.975)) * se,
    )
