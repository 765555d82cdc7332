"""The number of dimensions as the published study chose it: by what each one more gains on single answers held out at random.

A model and an item of a held-out cell are known from their other cells, so this tests interpolation only. The priors are the same
for every number of dimensions here; the study's were not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmirt.prediction.methods import mirt
from benchmirt.prediction.tally import AVERAGES, Tally, measure

__all__ = ["GAIN", "chosen"]

GAIN = 0.01
"""Macro accuracy that a dimension must gain."""


def chosen(tally: Tally) -> dict[str, Any]:
    """Macro accuracy over benchmarks by number of dimensions, and the number that the study's rule chooses.

    Parameters
    ----------
    tally
        Counts of the split of single answers. No dimension is the item mean.

    Returns
    -------
    ``macro_accuracy``: a row per number of dimensions (mean and standard error over folds, gain over one dimension less);
    ``chosen``: the largest number that gains more than `GAIN`; ``folds`` and the ``rule`` in words.
    """
    places = {k: tally.methods.index(name) for k, name in _dims(tally).items()}
    macro = AVERAGES.index("macro")
    by_fold = np.stack([measure(fold[None], "accuracy")[:, macro] for fold in tally.counts])
    rows: list[dict[str, Any]] = []
    number = 0
    for k, place in places.items():
        values = by_fold[:, place]
        gain = float((values - by_fold[:, places[k - 1]]).mean()) if k else None
        if gain is not None and gain > GAIN:
            number = k
        rows.append(
            {
                "dims": k,
                "mean": float(values.mean()),
                "se": float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None,
                "gain": gain,
            }
        )
    return {
        "folds": len(by_fold),
        "macro_accuracy": rows,
        "chosen": number,
        "rule": "gain of more than 1 point: the largest number that gains more than .01 of macro accuracy over one less",
    }


def _dims(tally: Tally) -> dict[int, str]:
    """Methods of a split by their number of dimensions, from 0 and without a gap."""
    found = {0: "item_mean"}
    while mirt(len(found)) in tally.methods:
        found[len(found)] = mirt(len(found))
    return found
