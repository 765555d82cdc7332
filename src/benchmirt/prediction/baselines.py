"""Predictions by means alone: of the model, all over or by group of items, and of the item.

A mean of r right answers among n is taken as (r + 1/2) / (n + 1), so that no prediction is 0 or 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmirt.prediction.splits import Fold

__all__ = ["item_mean", "model_mean"]

Floats = NDArray[np.float64]


def _mean(right: Floats, count: Floats) -> Floats:
    return np.asarray((right + 0.5) / (count + 1.0))


def model_mean(responses: NDArray[np.int8], fold: Fold, group: NDArray[np.int64] | None = None) -> Floats:
    """Predict every cell by the model's mean over the cells shown, of the item's group if there are groups.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (N, J).
    fold
        What may be seen.
    group
        Group of each item, from 0, shape (J,). A model that shows nothing of a group is predicted by its mean over all, and a
        model that shows nothing at all by the mean of the others.

    Returns
    -------
    Probabilities, shape (N, J).
    """
    shown = fold.shown & (responses >= 0)
    right = shown & (responses == 1)
    count = shown.sum(axis=1)
    everyone = _mean(right[fold.models].sum(), shown[fold.models].sum())
    total = np.where(count > 0, _mean(right.sum(axis=1), count), everyone)
    if group is None:
        return np.repeat(total[:, None], responses.shape[1], axis=1)
    member = (group[:, None] == np.arange(int(group.max(initial=-1)) + 1)).astype(np.float64)
    counts = shown @ member
    means = np.where(counts > 0, _mean(right @ member, counts), total[:, None])
    return np.asarray(means[:, group])


def item_mean(responses: NDArray[np.int8], fold: Fold) -> Floats:
    """Predict every cell by the item's mean over the models that inform items; shape (N, J).

    An item that nobody shows has no mean, and is NaN.
    """
    shown = fold.shown & (responses >= 0) & fold.models[:, None]
    count = shown.sum(axis=0)
    means = np.where(count > 0, _mean((shown & (responses == 1)).sum(axis=0), count), np.nan)
    return np.repeat(means[None], responses.shape[0], axis=0)
