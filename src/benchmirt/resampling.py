"""Resampling of lineages and items: bootstrap weights, halves, folds, and intervals made from them.

Language models are not independent draws: fine-tunes of one base model share most of what they can do.
Whatever generalises over models is therefore resampled by lineage, and a model of unknown lineage (a
negative code) is a cluster of its own. Whatever generalises over items is resampled by testlet where
testlets are known.

Every draw comes from an explicit generator seeded by (seed, purpose), and replicate r by (seed, purpose,
r), so that the same seed gives the same answer in any order and for any number of replicates.

Intervals: the plain percentile interval covers 90-93 % with a few dozen unequal clusters; the
bias-corrected and accelerated one (Efron 1987, *JASA* 82, 171-185) and the studentised one (Efron and
Tibshirani 1993, chapter 12), with the jackknife over clusters (Field and Welsh 2007, *JRSS B* 69, 369-390),
come closer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

__all__ = [
    "Interval",
    "bca",
    "cell_folds",
    "clopper_pearson",
    "cluster_interval",
    "clusters",
    "combine_se",
    "drawn_before",
    "effective_clusters",
    "generator",
    "item_halves",
    "item_units",
    "jackknife",
    "jackknife_se",
    "lineage_bootstrap",
    "lineage_folds",
    "lineage_halves",
    "lineage_subsamples",
    "mean_and_se",
    "monte_carlo_p",
    "percentile",
    "prediction_p",
    "revealed_halves",
    "stretch",
    "student_factor",
    "studentised",
    "weighted_correlation",
    "widen",
]

Floats = NDArray[np.float64]
Kind = Literal["bca", "studentised", "percentile"]

LEVEL = 0.95
"""Coverage that intervals aim at."""

MIN_CLUSTERS = 3.0
"""With lineages worth fewer equal ones than this, no interval has a meaning."""

_UNDEFINED = 0.1  # share of undefined replicates beyond which an interval says nothing


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval.

    Attributes
    ----------
    estimate
        The estimate on the data themselves.
    low, high
        Ends; infinite where the replicates say nothing.
    level
        Coverage aimed at, 0 to 1.
    kind
        How it was made, in words.
    se
        Standard error.
    replicates, undefined
        Number of replicates, and those for which the statistic was not defined (left out).
    """

    estimate: float
    low: float
    high: float
    level: float
    kind: str
    se: float
    replicates: int
    undefined: int = 0


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose: always the same, and independent of those of other purposes."""
    digest = hashlib.sha256(purpose.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


# -------------------------------------------------------------------------------- clusters and weights


def clusters(lineage: ArrayLike) -> NDArray[np.intp]:
    """Return cluster numbers 0..C-1, shape (models,); each negative code is a cluster of its own."""
    codes = np.asarray(lineage, dtype=np.int64)
    own = codes < 0
    fresh = codes.copy()
    fresh[own] = (codes.max(initial=0) + 1) + np.arange(int(own.sum()))
    return np.unique(fresh, return_inverse=True)[1]


def effective_clusters(codes: NDArray[Any]) -> float:
    """Return how many equal clusters the clusters' sizes are worth, ``(sum n)^2 / sum n^2``.

    Parameters
    ----------
    codes
        Cluster of each model, shape (n,).

    Notes
    -----
    Carter, Schnepel and Steigerwald (2017), *Review of Economics and Statistics* 99, 698-709, show that unequal
    clusters count as fewer; this is their number where all of a cluster's variation is shared.
    """
    sizes = np.unique(codes, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if sizes.size else 0.0


def student_factor(codes: NDArray[Any], level: float = LEVEL) -> float:
    """Return the factor of a standard error over unequal clusters in a two-sided interval, by Student's t.

    Parameters
    ----------
    codes
        Cluster of each model, shape (n,).
    level
        Coverage aimed at.

    Returns
    -------
    Infinite where the clusters are worth fewer than three equal ones: no interval has a meaning then.
    """
    worth = effective_clusters(codes)
    return float(stdtrit(worth - 1, (1 + level) / 2)) if worth >= MIN_CLUSTERS else float("inf")


def lineage_bootstrap(
    lineage: ArrayLike, replicates: int, seed: int, purpose: str = "bootstrap"
) -> NDArray[np.int64]:
    """Draw lineages with replacement.

    Returns
    -------
    Number of times that each model is drawn, shape (replicates, models): all models of a lineage have the
    same count.
    """
    cluster = clusters(lineage)
    count = int(cluster.max(initial=-1)) + 1
    weights = np.empty((replicates, cluster.size), dtype=np.int64)
    for r in range(replicates):
        drawn = generator(seed, f"{purpose}/{r}").integers(count, size=count)
        weights[r] = np.bincount(drawn, minlength=count)[cluster]
    return weights


def lineage_subsamples(
    lineage: ArrayLike, replicates: int, seed: int, purpose: str = "subsamples", share: float = 0.8
) -> NDArray[np.int64]:
    """Leave out a random part of the lineages (delete-d jackknife; Shao and Wu 1989).

    For refits: copies of a model, which drawing with replacement makes, agree on every item, chance included, and a fit takes
    that for discrimination.

    Parameters
    ----------
    share
        Share of the lineages that is kept, in (0, 1); at least one is kept, and with two or more at least one left out.

    Returns
    -------
    1 where a model is kept, else 0, shape (replicates, models); row r is the same whatever the number of replicates.
    """
    cluster = clusters(lineage)
    count = int(cluster.max(initial=-1)) + 1
    kept = max(1, min(count - 1, round(share * count)))
    weights = np.empty((replicates, cluster.size), dtype=np.int64)
    for r in range(replicates):
        order = generator(seed, f"{purpose}/{r}").permutation(count)
        weights[r] = np.isin(cluster, order[:kept])
    return weights


def stretch(weights: ArrayLike, lineage: ArrayLike) -> float:
    """Factor by which deviations of refits must be stretched to stand for those of other models.

    To first order a statistic moves by the sum of (weight - 1) times a lineage's influence, and its sampling variance is the sum
    of the squared influences: so the factor is one over the standard deviation of the lineages' weights around their mean. It is
    1 for drawing with replacement and 2 where a fifth of the lineages is left out.

    Parameters
    ----------
    weights
        Shape (replicates, models).
    lineage
        Shape (models,).
    """
    first = np.unique(clusters(lineage), return_index=True)[1]
    own = np.asarray(weights, dtype=np.float64)[:, first]
    relative = own / np.maximum(own.mean(axis=1, keepdims=True), 1e-12)
    deviation = float(relative.std()) if relative.size else 0.0
    return 1.0 / deviation if deviation > 0 else 1.0


def _balanced(sizes: NDArray[np.int64], parts: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Deal units at random to parts of nearly equal total size; returns the part of each unit."""
    best, best_gap = np.zeros(sizes.size, dtype=np.intp), np.inf
    for _ in range(20):
        part = np.zeros(sizes.size, dtype=np.intp)
        totals = np.zeros(parts)
        for unit in rng.permutation(sizes.size):
            smallest = np.flatnonzero(totals == totals.min())
            part[unit] = smallest[rng.integers(smallest.size)] if smallest.size > 1 else smallest[0]
            totals[part[unit]] += sizes[unit]
        gap = float(totals.max() - totals.min())
        if gap < best_gap:
            best, best_gap = part, gap
        if best_gap <= max(1.0, 0.1 * float(totals.mean())):
            break
    return best


def lineage_halves(lineage: ArrayLike, splits: int, seed: int) -> NDArray[np.bool_]:
    """Split the lineages into disjoint halves, balanced by the number of models.

    Returns
    -------
    True for the models of the first half, shape (splits, models).

    Raises
    ------
    ValueError
        If there are fewer than two lineages.
    """
    cluster = clusters(lineage)
    sizes = np.bincount(cluster)
    if sizes.size < 2:
        raise ValueError("halves need at least two lineages")
    return np.stack(
        [_balanced(sizes, 2, generator(seed, f"lineage halves/{s}"))[cluster] == 0 for s in range(splits)]
    )


def lineage_folds(lineage: ArrayLike, folds: int, seed: int) -> NDArray[np.intp]:
    """Deal the lineages to folds, balanced by the number of models; returns the fold of each model.

    There are at most as many folds as lineages.
    """
    cluster = clusters(lineage)
    sizes = np.bincount(cluster)
    return _balanced(sizes, min(folds, sizes.size), generator(seed, "lineage folds"))[cluster]


def item_units(testlet: ArrayLike | None, items: int) -> NDArray[np.intp]:
    """Return the number of each item's testlet, shape (items,); an item without one is its own.

    Parameters
    ----------
    testlet
        Names, with None, NaN or "" where there is none; or None if no testlets are known.
    items
        Number of items.
    """
    if testlet is None:
        return np.arange(items)
    names = np.asarray(testlet, dtype=object)
    if names.shape != (items,):
        raise ValueError(f"testlets have shape {names.shape}, expected {(items,)}")
    codes: dict[str, int] = {}
    units = np.empty(items, dtype=np.intp)
    for j, name in enumerate(names):
        missing = not isinstance(name, str) or name == ""
        units[j] = codes.setdefault(f"item {j}" if missing else f"testlet {name}", len(codes))
    return units


def item_halves(benchmark: ArrayLike, testlet: ArrayLike | None, splits: int, seed: int) -> NDArray[np.bool_]:
    """Split the items into disjoint halves, by testlet, each benchmark by itself.

    Parameters
    ----------
    benchmark
        Benchmark of each item, shape (items,).
    testlet
        As in :func:`item_units`. A testlet stays in one half (testlets of two benchmarks with one name are
        two).
    splits, seed
        Number of splits and the seed.

    Returns
    -------
    True for the items of the first half, shape (splits, items).
    """
    names = np.asarray(benchmark, dtype=object).astype(str)
    units = item_units(testlet, names.size)
    halves = np.zeros((splits, names.size), dtype=bool)
    for name in np.unique(names):
        at = np.flatnonzero(names == name)
        unit = np.unique(units[at], return_inverse=True)[1]
        sizes = np.bincount(unit)
        for s in range(splits):
            rng = generator(seed, f"item halves/{name}/{s}")
            halves[s, at] = _halve(sizes, rng)[unit]
    return halves


def drawn_before(sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Put units in a random order, and say how many members stand before each.

    Parameters
    ----------
    sizes
        Members of each unit, shape (units,).
    rng
        Draws the order.
    """
    order = rng.permutation(sizes.size)
    before = np.empty(sizes.size, dtype=np.int64)
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    return before


def _halve(sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose units at random until they hold half of the total; which of the two sides they are is random too."""
    half = drawn_before(sizes, rng) + sizes <= sizes.sum() / 2
    return half if rng.integers(2) else ~half


def revealed_halves(
    benchmark: ArrayLike, models: int, seed: int, testlet: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Choose for each model by itself half of the testlets of every benchmark; True where revealed.

    Returns
    -------
    Shape (models, items). A benchmark with one testlet is revealed to every other model or so.
    """
    names = np.asarray(benchmark, dtype=object).astype(str)
    units = item_units(testlet, names.size)
    rng = generator(seed, "revealed halves")
    revealed = np.zeros((models, names.size), dtype=bool)
    for name in np.unique(names):
        at = np.flatnonzero(names == name)
        unit = np.unique(units[at], return_inverse=True)[1]
        count = int(unit.max()) + 1
        rank = np.argsort(np.argsort(rng.random((models, count)), axis=1), axis=1)
        half = count // 2 + (rng.integers(2, size=(models, 1)) if count % 2 else 0)
        revealed[:, at] = (rank < half)[:, unit]
    return revealed


# ------------------------------------------------------------------------------------------ intervals


def weighted_correlation(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Pearson correlation with weights, of the pairs without a NaN; NaN where a side does not vary."""
    left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    w = np.ones(left.size) if weights is None else np.asarray(weights, dtype=np.float64)
    seen = np.isfinite(left) & np.isfinite(right) & (w > 0)
    left, right, w = left[seen], right[seen], w[seen]
    if left.size < 2:
        return float("nan")
    if any(np.ptp(side) <= 1e-12 * np.abs(side).max() for side in (left, right)):
        return float("nan")
    w = w / w.sum()
    left, right = left - w @ left, right - w @ right
    size = float(np.sqrt((w @ left**2) * (w @ right**2)))
    return float(np.clip(w @ (left * right) / size, -1.0, 1.0))


def monte_carlo_p(observed: float, null: ArrayLike) -> float:
    """One-sided Monte Carlo p value, (1 + #{null >= observed}) / (1 + B) (Davison and Hinkley 1997)."""
    values = np.asarray(null, dtype=np.float64)
    return float((1 + int((values >= observed).sum())) / (1 + values.size))


def prediction_p(observed: float, null: ArrayLike) -> float:
    """One-sided p value of an observation as one more of normal null values, by Student's t (Hahn and Meeker 1991, 4.7).

    Unlike a Monte Carlo p value it may fall below 1 / (1 + B), for what it says about a tail that no replicate reached: use it
    only to find that something lies far beyond.

    Returns
    -------
    1 with fewer than two values.
    """
    from scipy.stats import t

    values = np.asarray(null, dtype=np.float64)
    if values.size < 2:
        return 1.0
    se = float(values.std(ddof=1)) * np.sqrt(1 + 1 / values.size)
    distance = observed - float(values.mean())
    return float(t.sf(distance / se, values.size - 1)) if se > 0 else float(distance <= 0)


def clopper_pearson(count: float, total: float, level: float = LEVEL) -> tuple[float, float]:
    """Exact interval of a share (Clopper and Pearson 1934, *Biometrika* 26, 404-413); the counts need not be whole."""
    below, above = _tails(level)
    low = 0.0 if count <= 0 else float(betaincinv(count, total - count + 1.0, below))
    high = 1.0 if count >= total else float(betaincinv(count + 1.0, total - count, above))
    return low, high


def jackknife(statistic: Callable[[Floats], Any], lineage: ArrayLike) -> Floats:
    """Return the statistic with each cluster left out in turn, shape (clusters, ...).

    Parameters
    ----------
    statistic
        Function of the models' weights, shape (models,).
    lineage
        Codes of the models.
    """
    cluster = clusters(lineage)
    return np.stack(
        [
            np.asarray(statistic((cluster != c).astype(np.float64)), dtype=np.float64)
            for c in range(int(cluster.max()) + 1)
        ]
    )


def jackknife_se(jackknifed: ArrayLike) -> Floats:
    """Delete-one standard error (Efron and Stein 1981); omissions that leave nothing defined are skipped.

    Parameters
    ----------
    jackknifed
        The statistics with each cluster left out, shape (clusters, ...).

    Returns
    -------
    One standard error per statistic, shape (...); NaN with fewer than two that are defined.
    """
    values = np.asarray(jackknifed, dtype=np.float64)
    defined = np.isfinite(values)
    count = defined.sum(0)
    mean = np.where(defined, values, 0.0).sum(0) / np.maximum(count, 1)
    square = np.where(defined, (values - mean) ** 2, 0.0).sum(0)
    return np.where(count < 2, np.nan, np.sqrt((count - 1) / np.maximum(count, 1) * square))


def _tails(level: float) -> tuple[float, float]:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level}")
    return (1 - level) / 2, (1 + level) / 2


def percentile(replicates: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Plain percentile interval."""
    low, high = np.quantile(np.asarray(replicates, dtype=np.float64), _tails(level))
    return float(low), float(high)


def bca(
    estimate: float, replicates: ArrayLike, jackknifed: ArrayLike, level: float = 0.95
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval.

    Parameters
    ----------
    estimate
        The statistic on the data.
    replicates
        Bootstrap replicates, finite, shape (R,).
    jackknifed
        Leave-one-cluster-out values, shape (clusters,).
    level
        Coverage, 0 to 1.
    """
    values = np.asarray(replicates, dtype=np.float64)
    below = float((values < estimate).mean() + 0.5 * (values == estimate).mean())
    z0 = float(ndtri(np.clip(below, 0.5 / values.size, 1 - 0.5 / values.size)))
    left_out = np.asarray(jackknifed, dtype=np.float64)
    left_out = left_out[np.isfinite(left_out)]
    deviation = left_out.mean() - left_out if left_out.size else np.zeros(1)
    spread = float((deviation**2).sum())
    acceleration = float((deviation**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    ends = []
    for tail in _tails(level):
        z = z0 + float(ndtri(tail))
        denominator = 1 - acceleration * z
        # beyond the pole the interval reaches the last replicate on that side
        shifted = z0 + z / denominator if denominator > 0 else np.copysign(np.inf, z)
        ends.append(float(np.quantile(values, ndtr(shifted))))
    return ends[0], ends[1]


def studentised(
    estimate: float, se: float, replicates: ArrayLike, replicate_se: ArrayLike, level: float = 0.95
) -> tuple[float, float]:
    """Bootstrap-t interval from replicates (R,) and the standard error of each (R,), all finite."""
    t = (np.asarray(replicates, dtype=np.float64) - estimate) / np.asarray(replicate_se, dtype=np.float64)
    low, high = np.quantile(t, _tails(level))
    return float(estimate - high * se), float(estimate - low * se)


def _replicate_se(statistic: Callable[[Floats], float], cluster: NDArray[np.intp], weights: Floats) -> float:
    """Jackknife standard error of a bootstrap replicate: take one copy of each drawn cluster away."""
    count = int(cluster.max()) + 1
    copies = np.zeros(count)
    copies[cluster] = weights
    left_out = np.array(
        [statistic(weights - (cluster == c)) if copies[c] > 0 else np.nan for c in range(count)]
    )
    seen = np.isfinite(left_out)
    total = copies[seen].sum()
    if seen.sum() < 2:
        return float("nan")
    center = (copies[seen] @ left_out[seen]) / total
    return float(np.sqrt((total - 1) / total * (copies[seen] @ (left_out[seen] - center) ** 2)))


def cluster_interval(
    statistic: Callable[[Floats], float],
    lineage: ArrayLike,
    *,
    kind: Kind = "bca",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    purpose: str = "interval",
    transform: Literal["fisher"] | None = None,
) -> Interval:
    """Interval of a statistic of the models by resampling their lineages.

    Parameters
    ----------
    statistic
        Function of the models' weights (counts), shape (models,), returning a number, or NaN where it isn't
        defined.
    lineage
        Codes of the models, shape (models,); negative = a cluster of its own.
    kind
        ``bca`` (default), ``studentised`` (a jackknife within each replicate: dearer by the number of
        clusters) or ``percentile``.
    replicates, level, seed, purpose
        Number of replicates, coverage, and what seeds them.
    transform
        ``fisher`` to work on the atanh scale (for correlations; the ends come back on the scale of the
        statistic).

    Returns
    -------
    Interval
        With infinite ends if the estimate, or more than a tenth of the replicates, is not defined, or there
        are fewer than 3 clusters.
    """
    cluster = clusters(lineage)
    count = int(cluster.max(initial=-1)) + 1

    def moved(weights: Floats) -> float:
        value = float(statistic(weights))
        return float(np.arctanh(np.clip(value, -1 + 1e-9, 1 - 1e-9))) if transform == "fisher" else value

    def back(value: float) -> float:
        return float(np.tanh(value)) if transform == "fisher" else value

    words = f"{kind} bootstrap over {count} lineages, {replicates} replicates"
    ones = np.ones(cluster.size)
    estimate = moved(ones)
    nothing = Interval(back(estimate), -np.inf, np.inf, level, words, np.inf, replicates, replicates)
    if not np.isfinite(estimate) or count < 3:
        return nothing
    drawn = lineage_bootstrap(lineage, replicates, seed, purpose).astype(np.float64)
    values = np.array([moved(weights) for weights in drawn])
    defined = np.isfinite(values)
    left_out = np.asarray(jackknife(moved, lineage))
    se = float(jackknife_se(left_out))
    if kind == "studentised":
        errors = np.array(
            [
                _replicate_se(moved, cluster, weights) if seen else np.nan
                for weights, seen in zip(drawn, defined, strict=True)
            ]
        )
        defined &= np.isfinite(errors) & (errors > 0)
    undefined = int((~defined).sum())
    if undefined > _UNDEFINED * replicates or not np.isfinite(se):
        return replace(nothing, undefined=undefined)
    values = values[defined]
    if kind == "studentised":
        low, high = studentised(estimate, se, values, errors[defined], level)
    elif kind == "bca":
        low, high = bca(estimate, values, left_out, level)
    else:
        low, high = percentile(values, level)
    natural = np.array([back(value) for value in values])
    return Interval(
        back(estimate), back(low), back(high), level, words, float(natural.std(ddof=1)), replicates, undefined
    )


def combine_se(bootstrap_se: float, calibration_se: float) -> float:
    """Combine two independent standard errors: the draw of models and the calibration of the items."""
    return float(np.hypot(bootstrap_se, calibration_se))


def widen(interval: Interval, calibration_se: float) -> Interval:
    """Add the calibration's own error to an interval over models whose items were held fixed.

    Each half-width h becomes ``sqrt(h^2 + (z se)^2)``, which keeps the interval's asymmetry and is exact
    for normal errors.
    """
    z = float(ndtri(_tails(interval.level)[1])) * calibration_se
    return replace(
        interval,
        low=interval.estimate - float(np.hypot(interval.estimate - interval.low, z)),
        high=interval.estimate + float(np.hypot(interval.high - interval.estimate, z)),
        se=combine_se(interval.se, calibration_se),
        kind=f"{interval.kind}, with the calibration's error",
    )


def mean_and_se(
    values: ArrayLike, lineage: ArrayLike, weights: ArrayLike | None = None
) -> tuple[float, float]:
    """Weighted mean over models and its cluster-robust standard error, with the factor C / (C - 1).

    Parameters
    ----------
    values
        One number per model, shape (models,).
    lineage
        Codes of the models.
    weights
        Weight of each model, shape (models,) [ones].

    Returns
    -------
    Mean, and its standard error (infinite with fewer than two clusters).
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones(x.size) if weights is None else np.asarray(weights, dtype=np.float64)
    mean = float(w @ x / w.sum())
    cluster = clusters(lineage)
    totals = np.bincount(cluster, weights=w * (x - mean))
    count = totals.size
    if count < 2:
        return mean, float("inf")
    return mean, float(np.sqrt(count / (count - 1) * (totals**2).sum()) / w.sum())


def cell_folds(cells: Sequence[int] | int, folds: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Deal cells at random to folds of equal size; returns the fold of each cell, in the given shape."""
    shape = (cells,) if isinstance(cells, int) else tuple(cells)
    size = int(np.prod(shape))
    return rng.permutation(np.arange(size) % folds).astype(np.int8).reshape(shape)
