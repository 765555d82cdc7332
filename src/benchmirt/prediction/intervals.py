"""Intervals of measures and of differences between methods, by leaving out one lineage at a time.

Models of one lineage are not independent witnesses, so the jackknife leaves out lineages; every method is measured on the same
cells, so that a difference of methods has an interval of its own, far narrower than those of the two. Ranks have an interval
where each model is ranked once, on questions that the models of its fold share. Student's t with the
number of equal lineages that the unequal ones are worth, less one, as degrees of freedom (Carter, Schnepel and Steigerwald
2017). Fits are held as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmirt.prediction.tally import AVERAGES, LESS_IS_BETTER, Tally, measure
from benchmirt.resampling import LEVEL, clusters, effective_clusters, student_factor

__all__ = ["LEVEL", "Estimate", "Measured", "measured"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; infinite ends where there is none, as where lineages are worth fewer than three equal ones."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """One measure of all methods of a split.

    Attributes
    ----------
    metric
        Its name.
    methods, columns
        Names: M methods; micro, macro and the benchmarks.
    values
        Shape (M, columns).
    left_out
        The same with each lineage left out, shape (lineages, M, columns).
    factor
        Of a standard error in a 95 % interval.
    kind
        What the intervals are, in words.
    models, lineages
        Numbers that they rest on.
    """

    metric: str
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats
    factor: float
    kind: str
    models: int
    lineages: int

    def _around(self, values: Floats, left_out: Floats) -> tuple[Floats, Floats, Floats]:
        reach = self.factor * _errors(left_out)
        reach = np.where(np.isfinite(reach), reach, np.inf)
        return values, values - reach, values + reach

    def scores(self) -> tuple[Floats, Floats, Floats]:
        """Measure of every method, and the ends of its interval, each of shape (M, columns)."""
        return self._around(self.values, self.left_out)

    def gains(self, baseline: str) -> tuple[Floats, Floats, Floats]:
        """By how much every method is better than one of them on the same cells, and the ends; positive is better."""
        sign, b = -1.0 if self.metric in LESS_IS_BETTER else 1.0, self.methods.index(baseline)
        left_out = self.left_out - self.left_out[:, [b]]
        return self._around(sign * (self.values - self.values[b]), sign * left_out)

    def score(self, method: str, column: str) -> Estimate:
        """Return the measure of a method."""
        return self._pick(self.scores(), method, column)

    def gain(self, method: str, baseline: str, column: str) -> Estimate:
        """Return by how much a method is better than another one on the same cells; positive is better."""
        return self._pick(self.gains(baseline), method, column)

    def _pick(self, found: tuple[Floats, Floats, Floats], method: str, column: str) -> Estimate:
        m, c = self.methods.index(method), self.columns.index(column)
        value, low, high = (float(one[m, c]) for one in found)
        return Estimate(value, low, high)


def _errors(left_out: Floats) -> Floats:
    """Delete-one-cluster standard errors of many numbers, (clusters, ...) -> (...); see :func:`resampling.jackknife_se`."""
    seen = np.isfinite(left_out)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, left_out, 0.0).sum(axis=0) / count
    spread = np.where(seen, (left_out - mean) ** 2, 0.0).sum(axis=0)
    return np.where(count > 1, np.sqrt((count - 1) / count * spread), np.nan)


def measured(tally: Tally, metric: str) -> Measured:
    """Measure all methods of a split, with what their intervals need.

    Parameters
    ----------
    tally
        Counts of the split.
    metric
        One of :data:`benchmirt.prediction.tally.METRICS`.
    """
    scored = tally.counts[:, 0, :, :, 0].sum(axis=(0, 2)) > 0
    counts = tally.counts[:, :, scored]
    if metric != "rank":
        counts = counts.sum(axis=0, keepdims=True)
    values = measure(counts, metric)
    cluster = clusters(tally.lineage[scored])
    lineages = int(cluster.max(initial=-1)) + 1
    worth, factor = effective_clusters(cluster), student_factor(cluster, LEVEL)
    kind = f"jackknife over {lineages} lineages, worth {worth:.0f} equal ones, paired over methods"
    if metric == "rank" and not tally.apart:
        factor, kind = np.inf, "no interval: every fold ranks the same models"
    left_out = np.full((1, *values.shape), np.nan)
    if np.isfinite(factor):
        left_out = np.stack([measure(counts[:, :, cluster != c], metric) for c in range(lineages)])
    return Measured(
        metric=metric,
        methods=tally.methods,
        columns=(*AVERAGES, *tally.benchmarks),
        values=values,
        left_out=left_out,
        factor=factor,
        kind=kind,
        models=int(scored.sum()),
        lineages=lineages,
    )
