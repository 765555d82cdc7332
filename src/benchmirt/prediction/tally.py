"""How well outcomes were predicted, counted per model and benchmark, and the measures that follow from the counts.

Log loss and the Brier score are proper: nobody can better them by reporting other probabilities than he believes in. Accuracy
of rounded probabilities and the mean absolute error, which the published study uses, are not. Rank agreement is the Spearman
correlation over models between the mean predicted and the mean observed outcome of the cells scored: a comparison of like with
like only where all models are scored on the same items. AUC and calibration need single cells, which are counted in 1,000
classes of the predicted logit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

__all__ = [
    "AVERAGES",
    "FIELDS",
    "LESS_IS_BETTER",
    "METRICS",
    "Classes",
    "Tally",
    "calibration_line",
    "classes",
    "count",
    "measure",
]

Floats = NDArray[np.float64]

FIELDS = ("cells", "right", "error", "log_loss", "brier", "observed", "predicted")
"""What is summed over the cells of a model in a benchmark."""
METRICS = ("accuracy", "error", "log_loss", "brier", "rank")
"""Measures that follow from `FIELDS`."""
LESS_IS_BETTER = ("error", "log_loss", "brier")
AVERAGES = ("micro", "macro")
"""Over all cells, and over benchmarks; for the rank agreement: of the means over all cells, and over benchmarks."""

_CLIP = 1e-6
_CLASSES = 1000
_REACH = 8.0  # logits that the classes span on either side
_NUMERATOR = {"accuracy": "right", "error": "error", "log_loss": "log_loss", "brier": "brier"}


@dataclass(frozen=True)
class Tally:
    """Counts of one split.

    Attributes
    ----------
    split
        Its name.
    methods, models, benchmarks
        Names: M, N and B of them.
    lineage
        Codes of the models' lineages, shape (N,).
    counts
        Shape (folds, M, N, B, fields).
    apart, ratio
        Whether the folds compare different models, and how much each holds out for what its fit has seen
        (:class:`benchmirt.prediction.splits.Split`).
    """

    split: str
    methods: tuple[str, ...]
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    lineage: NDArray[np.int64]
    counts: Floats
    apart: bool
    ratio: float


def count(
    probability: Floats,
    responses: NDArray[np.int8],
    scored: NDArray[np.bool_],
    benchmark: NDArray[np.int64],
    benchmarks: int,
) -> Floats:
    """Sum `FIELDS` over the cells of each model in each benchmark.

    Parameters
    ----------
    probability, responses, scored
        Shape (N, J); what is not scored is not read.
    benchmark
        Code of each item's benchmark, shape (J,).
    benchmarks
        Number of benchmarks B.

    Returns
    -------
    Shape (N, B, fields).
    """
    model, item = np.nonzero(scored)
    y, p = responses[model, item].astype(np.float64), probability[model, item]
    fields = (
        None,
        (p > 0.5) == (y == 1),
        np.abs(y - p),
        -np.log(np.clip(np.where(y == 1, p, 1.0 - p), _CLIP, 1.0)),
        (y - p) ** 2,
        y,
        p,
    )
    shape = (len(responses), benchmarks)
    place = model * benchmarks + benchmark[item]
    sums = [np.bincount(place, weights=one, minlength=shape[0] * shape[1]).reshape(shape) for one in fields]
    return np.stack(sums, axis=-1).astype(np.float64)


def _ratios(counts: Floats, metric: str) -> Floats:
    """Measure by method: micro, macro and each benchmark, from (M, N, B, fields) -> (M, B + 2)."""
    above = counts[..., FIELDS.index(_NUMERATOR[metric])].sum(axis=1)
    below = counts[..., 0].sum(axis=1)
    known = below.sum(axis=0) > 0
    each = np.where(known, above / np.where(known, below, 1.0), np.nan)
    micro = above.sum(axis=1) / max(float(below[0].sum()), 1.0)
    macro = each[:, known].mean(axis=1) if known.any() else np.full(len(each), np.nan)
    return np.column_stack([micro, macro, each])


def _spearman(predicted: Floats, observed: Floats) -> Floats:
    """Spearman correlation of each method's predictions (n, M) with the observed means (n,).

    0 where the predictions are all alike, NaN where the observed means are, or with fewer than 3 models.
    """
    from scipy.stats import rankdata  # slow to import, and claims that read tallies need no ranks

    if len(observed) < 3 or np.ptp(observed) == 0:
        return np.full(predicted.shape[1], np.nan)
    # predictions that differ by rounding alone are alike
    ranks = rankdata(np.round(predicted, 10), axis=0)
    ranks -= ranks.mean(axis=0)
    target = rankdata(np.round(observed, 10))
    target -= target.mean()
    size = np.sqrt((ranks**2).sum(axis=0) * (target**2).sum())
    return np.asarray(np.where(size > 0, target @ ranks / np.where(size > 0, size, 1.0), 0.0))


def _ranks(counts: Floats) -> Floats:
    """Rank agreement, within folds, from (folds, M, N, B, fields) -> (M, B + 2)."""
    micro = _within_folds(counts.sum(axis=3))
    table = np.column_stack([_within_folds(counts[:, :, :, b]) for b in range(counts.shape[3])])
    known = np.isfinite(table).all(axis=0)
    macro = table[:, known].mean(axis=1) if known.any() else np.full(len(table), np.nan)
    return np.column_stack([micro, macro, table])


def _within_folds(counts: Floats) -> Floats:
    """Average over folds of the rank agreement in each, from (folds, M, N, fields) -> (M,); a fold counts by its models less one.

    NaN where no fold can be ranked.
    """
    total, weights = np.zeros(counts.shape[1]), 0.0
    for fold in counts:
        cells = fold[0, :, 0]
        ran = cells > 0
        observed = fold[0, ran, FIELDS.index("observed")] / cells[ran]
        predicted = fold[:, ran, FIELDS.index("predicted")] / cells[ran]
        found = _spearman(predicted.T, observed)
        if np.isfinite(found).all():
            total += (ran.sum() - 1) * found
            weights += float(ran.sum() - 1)
    return total / weights if weights else np.full(counts.shape[1], np.nan)


def measure(counts: Floats, metric: str) -> Floats:
    """Compute a measure from counts.

    Parameters
    ----------
    counts
        Shape (folds, M, N, B, fields).
    metric
        One of `METRICS`. Ranks are compared within a fold and then averaged over the folds: what was learnt from the other
        models is the lower the better those of the fold are, so that over folds even pure chance ranks them backwards.

    Returns
    -------
    Shape (M, B + 2): over all cells (micro), over benchmarks (macro), and in each benchmark; NaN where nothing is scored.
    """
    return _ranks(counts) if metric == "rank" else _ratios(counts.sum(axis=0), metric)


# ------------------------------------------------------------------------------------------ single cells


@dataclass(frozen=True)
class Classes:
    """Cells by class of the predicted logit.

    Attributes
    ----------
    cells
        How many had the outcome 0 and 1, shape (..., classes, 2).
    """

    cells: NDArray[np.int64]

    @property
    def probability(self) -> Floats:
        """Predicted probability in the middle of each class."""
        width = 2 * _REACH / _CLASSES
        return np.asarray(expit(-_REACH + width * (np.arange(_CLASSES) + 0.5)))

    def auc(self) -> float:
        """Chance that a right answer was given the larger probability than a wrong one; NaN without either."""
        wrong, right = self.cells[:, 0], self.cells[:, 1]
        pairs = float(wrong.sum()) * float(right.sum())
        if pairs == 0:
            return float("nan")
        below = np.cumsum(wrong) - wrong
        return float((right * (below + 0.5 * wrong)).sum() / pairs)

    def curve(self, parts: int = 10) -> pd.DataFrame:
        """Observed share of right answers by predicted probability: part, cells, predicted, observed."""
        part = np.minimum((self.probability * parts).astype(np.int64), parts - 1)
        both = self.cells.sum(axis=1)
        size = np.bincount(part, weights=both, minlength=parts)
        with np.errstate(invalid="ignore"):
            predicted = np.bincount(part, weights=both * self.probability, minlength=parts) / size
            observed = np.bincount(part, weights=self.cells[:, 1], minlength=parts) / size
        table = pd.DataFrame(
            {
                "part": np.arange(parts) + 1,
                "cells": size.astype(np.int64),
                "predicted": predicted,
                "observed": observed,
            }
        )
        return table[table["cells"] > 0].reset_index(drop=True)


def classes(
    probability: Floats,
    responses: NDArray[np.int8],
    scored: NDArray[np.bool_],
    benchmark: NDArray[np.int64],
    benchmarks: int,
) -> NDArray[np.int64]:
    """Count the scored cells by benchmark, class of the predicted logit, and outcome; shape (B, classes, 2)."""
    model, item = np.nonzero(scored)
    p = np.clip(probability[model, item], _CLIP, 1.0 - _CLIP)
    place = np.clip((logit(p) + _REACH) / (2 * _REACH) * _CLASSES, 0, _CLASSES - 1).astype(np.int64)
    code = (benchmark[item] * _CLASSES + place) * 2 + responses[model, item]
    return np.bincount(code, minlength=benchmarks * _CLASSES * 2).reshape(benchmarks, _CLASSES, 2)


def calibration_line(found: Classes) -> tuple[float, float]:
    """Fit logit P(right) = intercept + slope * predicted logit by maximum likelihood (Cox 1958).

    Returns
    -------
    Slope and intercept: 1 and 0 for calibrated predictions; a slope below 1 means that they are too extreme. NaN where the
    predictions or the outcomes are all alike.
    """
    both = found.cells.sum(axis=1).astype(np.float64)
    used = both > 0
    total, right = both[used], found.cells[used, 1].astype(np.float64)
    if used.sum() < 2 or right.sum() in (0.0, total.sum()):
        return float("nan"), float("nan")
    x = np.column_stack([np.ones(int(used.sum())), logit(found.probability[used])])
    line: Any = np.array([0.0, 1.0])
    for _ in range(50):
        p = expit(x @ line)
        information = (x * (total * p * (1.0 - p))[:, None]).T @ x
        step = np.linalg.solve(information, x.T @ (right - total * p))
        line = line + np.clip(step, -1.0, 1.0)
        if float(np.abs(step).max()) < 1e-8:
            break
    return float(line[1]), float(line[0])
