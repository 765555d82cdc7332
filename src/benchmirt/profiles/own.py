"""How much of a benchmark's score is its own: not shared with the study's other benchmarks.

Each model's abilities are worked out without the benchmark. What they leave over of its answers, outcome minus expected
outcome, is averaged over two halves of the items (whole testlets), many times; the covariance of the two halves over models
is the variance of what the benchmark's items share beyond the abilities, chance of single answers apart. What the
abilities' own error makes both halves share, to first order mean of g' V g with g the gradient of the expected score and V
the posterior covariance, is taken off. The *own share* is that variance over the covariance of the raw half scores, which
is the score's variance without the chance of single answers. The *own reliability* is the correlation of the residual
halves, stepped up to the whole benchmark (Spearman 1910, Brown 1910).

Intervals resample lineages of models (:func:`benchmirt.resampling.cluster_interval`) with items held fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmirt.resampling import Interval, cluster_interval, clusters, item_halves

__all__ = ["Own", "own_factor"]

Floats = NDArray[np.float64]

SPLITS = 20
REPLICATES = 400
LEAST_MODELS = 10
LEAST_LINEAGES = 5


@dataclass(frozen=True)
class Own:
    """What the items of a benchmark share.

    Attributes
    ----------
    reliability
        Of the benchmark's score over models: share of its variance that another set of such items would find again.
    share
        Share of that variance which is the benchmark's own, with its interval; None without abilities from elsewhere.
    own_reliability
        Of what the abilities leave over of the score; NaN without them.
    models
        Models that count.
    """

    reliability: float
    share: Interval | None
    own_reliability: float
    models: int


def _halves(values: Floats, halves: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return mean values (N, J; NaN where missing) of both halves of the items (S, J), each (N, S); NaN if all are missing."""
    seen = np.isfinite(values)
    filled = np.where(seen, values, 0.0)

    def mean(part: NDArray[np.bool_]) -> Floats:
        count = seen @ part.T.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(count > 0, filled @ part.T / count, np.nan))

    return mean(halves), mean(~halves)


def _covariance(weights: Floats, x: Floats, y: Floats) -> float:
    """Mean over splits of the weighted covariance of two halves (N, S)."""
    w = weights / weights.sum()
    return float((w @ (x * y) - (w @ x) * (w @ y)).mean())


def _stepped_up(x: Floats, y: Floats) -> float:
    """Spearman-Brown reliability of a whole from its halves (N, S), from mean covariance and mean variances."""
    even = np.ones(len(x))
    both, one, other = (_covariance(even, *pair) for pair in ((x, y), (x, x), (y, y)))
    size = np.sqrt(one * other)
    r = both / size if size > 0 else np.nan
    return float(2 * r / (1 + r)) if r > -1 else float("nan")


def own_factor(
    outcomes: Floats,
    testlet: NDArray[np.object_] | None,
    lineage: NDArray[np.int64],
    expected: Floats | None,
    error: Floats | None,
    *,
    seed: int = 0,
    purpose: str = "own factor",
) -> Own | None:
    """Divide what the items of one benchmark share into what the abilities explain and what is its own.

    Parameters
    ----------
    outcomes
        1, 0 or NaN (missing), shape (N, J), of models that ran the benchmark.
    testlet
        As in :func:`benchmirt.resampling.item_units`, shape (J,).
    lineage
        Codes of the models, shape (N,).
    expected
        Probabilities of a 1 by abilities without the benchmark, shape (N, J), or None.
    error
        Variance of each model's expected score by the error of those abilities, shape (N,).
    seed, purpose
        Of splits and resampling.

    Returns
    -------
    Own, or None where the items cannot be halved, or fewer than 10 models of 5 lineages answered both halves.
    """
    items = outcomes.shape[1]
    halves = item_halves(np.full(items, "own"), testlet, SPLITS, seed)
    if not items or halves.all(axis=1).any() or (~halves).all(axis=1).any():
        return None
    x, y = _halves(outcomes, halves)
    use = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    if expected is not None:
        use &= np.isfinite(expected).all(axis=1)
    if use.sum() < LEAST_MODELS or len(np.unique(clusters(lineage[use]))) < LEAST_LINEAGES:
        return None
    x, y = x[use], y[use]
    reliability = _stepped_up(x, y)
    if expected is None or error is None:
        return Own(reliability, None, float("nan"), int(use.sum()))
    left, right = _halves((outcomes - expected)[use], halves)
    noise = error[use]

    def share(weights: Floats) -> float:
        total = _covariance(weights, x, y)
        own = _covariance(weights, left, right) - float(weights @ noise / weights.sum())
        return own / total if total > 1e-9 else float("nan")

    found = cluster_interval(share, lineage[use], replicates=REPLICATES, seed=seed, purpose=purpose)
    return Own(reliability, found, _stepped_up(left, right), int(use.sum()))
