"""What is held out, and what a prediction of it may rest on.

The published study holds out single cells at random. Each of them has its model and its item in the data already, so that this
tests interpolation only. What matters to a user is held out here as well: new items, new models that answered half of the items
or only a few, a new benchmark, and models newer than those that the items were calibrated on.

In every fold three things are fixed: which models inform the items, which items inform the abilities, and which cells may be
seen. What is scored is never seen; a model held out informs no item, and an item held out informs no ability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmirt.resampling import (
    cell_folds,
    clusters,
    drawn_before,
    generator,
    item_halves,
    item_units,
    lineage_folds,
)

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = [
    "Fold",
    "NotPossible",
    "Split",
    "benchmarks",
    "cells",
    "few_answers",
    "items",
    "lineages",
    "newer_models",
]

Bools = NDArray[np.bool_]

LEAST_LINEAGES = 8
LEAST_DATED = 10
"""Fewest models with a known date on either side of the split by date."""


class NotPossible(Exception):  # noqa: N818 - a reason, not an error of the program
    """These data do not allow a split, for the reason given."""


@dataclass(frozen=True)
class Fold:
    """One part of a split; N models, J items.

    Attributes
    ----------
    models
        Models that inform the items, shape (N,).
    items
        Items that inform the abilities and whose parameters are known, shape (J,).
    shown
        Cells that may be seen, shape (N, J).
    scored
        Cells that are predicted and scored, observed and not shown, shape (N, J).
    """

    models: Bools
    items: Bools
    shown: Bools
    scored: Bools


@dataclass(frozen=True)
class Split:
    """A way to hold something out.

    Attributes
    ----------
    name
        Short name, as tables hold it.
    says
        What is held out, in words.
    folds
        Its parts.
    apart
        Whether every model is scored in one fold only, so that the folds together are one comparison of all models;
        otherwise each fold compares them all.
    ratio
        How much is held out in a fold for what the fit has seen: models for models, items for items, cells for cells.
    """

    name: str
    says: str
    folds: tuple[Fold, ...]
    ratio: float
    apart: bool = False


def _names(data: ResponseData, column: str) -> NDArray[np.object_]:
    return data.item_table[column].to_numpy(dtype=object)


def _ratio(folds: int) -> float:
    """Return how much of folds of equal size is held out for what is not."""
    return 1.0 / (folds - 1)


def cells(data: ResponseData, folds: int, seed: int, used: int | None = None) -> Split:
    """Hold out cells at random, as the published study does.

    Parameters
    ----------
    data
        The responses.
    folds, seed
        Number of folds, and the seed.
    used
        How many of the folds are made [all].
    """
    observed = data.responses >= 0
    fold = cell_folds(data.responses.shape, folds, generator(seed, "cell folds"))
    everyone, everything = (np.ones(size, dtype=bool) for size in observed.shape)
    return Split(
        "cells",
        "single answers, at random",
        tuple(
            Fold(everyone, everything, observed & (fold != f), observed & (fold == f))
            for f in range(min(folds, used or folds))
        ),
        _ratio(folds),
    )


def items(data: ResponseData, folds: int, seed: int) -> Split:
    """Hold out items, whole testlets together, a part of every benchmark in each fold."""
    observed = data.responses >= 0
    benchmark = _names(data, "benchmark").astype(str)
    units = item_units(_names(data, "testlet"), benchmark.size)
    fold = np.empty(benchmark.size, dtype=np.int64)
    for name in np.unique(benchmark):
        at = np.flatnonzero(benchmark == name)
        unit = np.unique(units[at], return_inverse=True)[1]
        rng = generator(seed, f"item folds/{name}")
        place = drawn_before(np.bincount(unit), rng) * folds // at.size
        # a benchmark with few testlets must not always fall into the first folds
        fold[at] = (place[unit] + rng.integers(folds)) % folds
    everyone = np.ones(observed.shape[0], dtype=bool)
    return Split(
        "items",
        "new questions of known benchmarks, answered by known models",
        tuple(
            Fold(everyone, fold != f, observed & (fold != f), observed & (fold == f))
            for f in range(folds)
            if (fold == f).any()
        ),
        _ratio(folds),
    )


def _newcomers(observed: Bools, fold: NDArray[np.intp], revealed: Bools) -> tuple[Fold, ...]:
    """Folds whose own models inform no item, show the revealed items and are scored on the others.

    A model with a negative fold is scored in none and informs all.
    """
    everything = np.ones(observed.shape[1], dtype=bool)
    made = []
    for f in range(int(fold.max()) + 1):
        new = fold == f
        hidden = new[:, None] & ~revealed
        made.append(Fold(~new, everything, observed & ~hidden, observed & hidden))
    return tuple(made)


def _need_lineages(data: ResponseData) -> None:
    count = int(clusters(data.lineage).max(initial=-1)) + 1
    if count < LEAST_LINEAGES:
        raise NotPossible(
            f"there are {count} independent lineages of models and at least {LEAST_LINEAGES} are needed to hold some out"
        )


def _revealed_half(data: ResponseData, seed: int) -> Bools:
    return item_halves(_names(data, "benchmark"), _names(data, "testlet"), 1, seed)[0]


def lineages(data: ResponseData, folds: int, seed: int) -> Split:
    """Hold out whole lineages; their models show one half of the items, the same for all, and are scored on the other.

    Raises
    ------
    NotPossible
        With fewer than 8 lineages.
    """
    _need_lineages(data)
    made = _newcomers(
        data.responses >= 0, lineage_folds(data.lineage, folds, seed), _revealed_half(data, seed)
    )
    return Split(
        "lineages",
        "models of lineages never seen, half of whose answers are known",
        made,
        _ratio(len(made)),
        apart=True,
    )


def few_answers(data: ResponseData, folds: int, seed: int, answers: int) -> Split:
    """Hold out whole lineages; their models show a few items of every benchmark, the same for all.

    Parameters
    ----------
    data
        The responses.
    folds, seed
        Folds of lineages, and the seed.
    answers
        Items shown of every benchmark; whole testlets, until there are so many (at most half of the benchmark).

    Raises
    ------
    NotPossible
        With fewer than 8 lineages.
    """
    _need_lineages(data)
    benchmark = _names(data, "benchmark").astype(str)
    units = item_units(_names(data, "testlet"), benchmark.size)
    revealed = np.zeros(benchmark.size, dtype=bool)
    for name in np.unique(benchmark):
        at = np.flatnonzero(benchmark == name)
        unit = np.unique(units[at], return_inverse=True)[1]
        sizes = np.bincount(unit)
        before = drawn_before(sizes, generator(seed, f"few answers/{name}"))
        revealed[at] = ((before < answers) & (before + sizes <= at.size / 2))[unit]
    made = _newcomers(data.responses >= 0, lineage_folds(data.lineage, folds, seed), revealed)
    return Split(
        "few_answers",
        f"models of lineages never seen, of whom about {answers} answers a benchmark are known",
        made,
        _ratio(len(made)),
        apart=True,
    )


def benchmarks(data: ResponseData) -> Split:
    """Hold out one benchmark at a time: its items are unknown, and abilities come from the others.

    Raises
    ------
    NotPossible
        With a single benchmark.
    """
    observed = data.responses >= 0
    benchmark = _names(data, "benchmark").astype(str)
    names = np.unique(benchmark)
    if names.size < 2:
        raise NotPossible("there is a single benchmark, and holding it out leaves nothing")
    everyone = np.ones(observed.shape[0], dtype=bool)
    return Split(
        "benchmarks",
        "a benchmark never seen, answered by known models",
        tuple(
            Fold(everyone, benchmark != name, observed & (benchmark != name), observed & (benchmark == name))
            for name in names
        ),
        _ratio(len(names)),
    )


def newer_models(data: ResponseData, seed: int) -> Split:
    """Hold out the models released after the median date, of whom half of the items are shown.

    Models without a date inform nothing and are not scored.

    Raises
    ------
    NotPossible
        Where fewer than 10 models with a known date are on either side.
    """
    observed = data.responses >= 0
    released = data.model_table["released"].astype("string").fillna("").to_numpy(dtype=str)
    dated = released != ""
    middle = np.sort(released[dated])[(int(dated.sum()) - 1) // 2] if dated.any() else ""
    newer = dated & (released > middle)
    older = dated & ~newer
    if min(newer.sum(), older.sum()) < LEAST_DATED:
        raise NotPossible(
            f"the release date of {int(dated.sum())} of {dated.size} models is known, and {LEAST_DATED} older and "
            f"{LEAST_DATED} newer ones are needed"
        )
    half = _revealed_half(data, seed)
    fold = _newcomers(observed, np.where(newer, 0, -1), half)[0]
    return Split(
        "newer_models",
        f"models released after {middle}, half of whose answers are known; items known from older models",
        (Fold(older, fold.items, fold.shown & dated[:, None], fold.scored),),
        float(newer.sum() / older.sum()),
        apart=True,
    )
