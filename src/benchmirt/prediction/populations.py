"""An item that nobody has answered is predicted as the items that it is drawn from are, on average.

Its population is the smallest known group that it belongs to: its subset of the benchmark, the benchmark, its category, or all
known items. Averaging predictions over the known items of that group integrates over the group's item parameters.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["fill"]

Floats = NDArray[np.float64]

LEAST = 10
"""Fewest known items that make a population."""
_LEVELS = (("benchmark", "subcategory_one"), ("benchmark",), ("category",), ())


def fill(probability: Floats, known: NDArray[np.bool_], item_table: pd.DataFrame) -> Floats:
    """Replace the predictions of unknown items by the mean over their population.

    Parameters
    ----------
    probability
        Shape (N, J); what stands for unknown items is not read.
    known
        Items with parameters, shape (J,).
    item_table
        The J items; benchmark, category and subcategory_one are read, where there are any.

    Returns
    -------
    Probabilities, shape (N, J).
    """
    if known.all():
        return probability
    filled = probability.copy()
    left = ~known
    for columns in _LEVELS:
        level = [column for column in columns if column in item_table]
        if len(level) < len(columns):
            continue
        if level:
            code = item_table.groupby(level, sort=True, dropna=False).ngroup().to_numpy()
            named = item_table[level].notna().all(axis=1).to_numpy()
        else:
            code, named = np.zeros(left.size, dtype=np.int64), np.ones(left.size, dtype=bool)
        for group in np.unique(code[left & named]):
            members = known & (code == group)
            if members.sum() >= (LEAST if level else 1):
                new = left & (code == group)
                filled[:, new] = probability[:, members].mean(axis=1, keepdims=True)
                left &= ~new
    return filled
