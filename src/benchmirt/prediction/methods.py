"""How held-out outcomes are predicted: from simple means to several abilities.

All get the same cells to look at. MIRT comes with the same priors for every number of dimensions, so that what a dimension gains
is its own doing; each fold starts afresh, since a fit that has seen the scored cells would lend them to a warm start. The
``mirt_*_benchmark`` methods give the items of each benchmark a prior of their own, which predicts better; but a fit that was told
which items belong together finds no dimensions. The ``published_*`` methods are the study's own fits
(:mod:`benchmirt.inference.published`), and belong to its column alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmirt.prediction import baselines, populations, rasch
from benchmirt.prediction.splits import Fold

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["LABELS", "PUBLISHED_BY_CATEGORY", "by_benchmark", "label", "mirt", "predict", "published"]

Floats = NDArray[np.float64]

LABELS: dict[str, str] = {
    "model_mean": "model mean",
    "category_mean": "model mean per category",
    "benchmark_mean": "model mean per benchmark",
    "item_mean": "item mean",
    "rasch": "Rasch",
    "rasch_benchmark": "Rasch per benchmark",
    "mirt_1_category": "1-D MIRT per category",
}
"""Methods in words; those with a number of dimensions are named by :func:`label`."""

PUBLISHED_BY_CATEGORY = "published_1_category"
"""The study's own fit of one dimension to each category by itself."""


def label(method: str) -> str:
    """Name a method in words: ``mirt_2`` is 2-D MIRT."""
    if method in LABELS:
        return LABELS[method]
    family, dims, *priors = method.split("_")
    if family == "mirt":
        return f"{dims}-D MIRT" + (", priors by benchmark" if priors else "")
    more = {"matched": ", matched priors", "category": " per category"}
    return f"{dims}-D as published" + "".join(more[one] for one in priors)


def mirt(dims: int) -> str:
    """Name the method with so many dimensions."""
    return f"mirt_{dims}"


def by_benchmark(dims: int) -> str:
    """Name the method with so many dimensions and a prior of the items of each benchmark."""
    return f"mirt_{dims}_benchmark"


def published(dims: int, *, matched: bool = False) -> str:
    """Name the study's own fit; matched: one dimension with the priors that the study gives to several."""
    return f"published_{dims}" + ("_matched" if matched else "")


def _codes(data: ResponseData, column: str) -> NDArray[np.int64]:
    """Codes of the items' groups, shape (J,), by their alphabet; items without one are a group."""
    names = data.item_table[column].astype("string").fillna("").to_numpy(dtype=str)
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _em(
    data: ResponseData,
    fold: Fold,
    dims: int,
    items: NDArray[np.bool_],
    options: Mapping[str, Any],
    group: NDArray[np.int64] | None = None,
) -> Floats:
    """Probabilities of all cells from one fit, whose abilities rest on some of the items."""
    from benchmirt.inference import em

    batch = em.fit_many(
        data,
        dims,
        model_weights=fold.models[None].astype(np.float32),
        item_weights=items[None].astype(np.float32),
        reveal=fold.shown[None],
        group=group,
        bound=False,
        **options,
    )
    return batch.predict(0, data)


def _mirt(data: ResponseData, fold: Fold, options: Mapping[str, Any], *, dims: int, grouped: bool) -> Floats:
    return _em(data, fold, dims, fold.items, options, _codes(data, "benchmark") if grouped else None)


def _mirt_by_category(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    category = _codes(data, "category")
    made = np.full(data.responses.shape, np.nan)
    for code in np.unique(category):
        own = category == code
        made[:, own] = _em(data, fold, 1, fold.items & own, options)[:, own]
    return made


def _rasch(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    return rasch.fit(data.responses, fold, data.floor, data.ceiling).predict()


def _rasch_by_benchmark(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    benchmark = _codes(data, "benchmark")
    made = np.empty(data.responses.shape)
    for code in np.unique(benchmark):
        own = benchmark == code
        part = replace(fold, items=fold.items[own], shown=fold.shown[:, own], scored=fold.scored[:, own])
        fitted = rasch.fit(data.responses[:, own], part, data.floor[own], data.ceiling[own])
        made[:, own] = fitted.predict()
    return made


def _published(
    data: ResponseData, fold: Fold, options: Mapping[str, Any], *, dims: int, matched: bool
) -> Floats:
    from benchmirt.inference import published as study

    vague = dims == 1 and not matched
    return study.fit(
        data,
        dims,
        most_dims=1 if vague else int(options["most_dims"]),
        priors="vague" if vague else "hierarchical",
        reveal=fold.shown,
        steps=int(options["steps"]),
        seed=int(options["seed"]),
    ).predict()


def _published_by_category(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    category = _codes(data, "category")
    made = np.full(data.responses.shape, np.nan)
    for code in np.unique(category):
        own = (
            category == code
        )  # the others are hidden and not left out, so that all categories share one compilation
        part = replace(fold, shown=fold.shown & own)
        made[:, own] = _published(data, part, options, dims=1, matched=False)[:, own]
    return made


_Predict = Callable[["ResponseData", Fold, Mapping[str, Any]], Floats]


@dataclass(frozen=True)
class _Method:
    """How a method predicts, and whether it needs parameters of the items, so that new items need a population."""

    predict: _Predict
    by_item: bool = True


def _means(column: str | None) -> _Predict:
    def predict(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
        return baselines.model_mean(data.responses, fold, None if column is None else _codes(data, column))

    return predict


def _item_mean(data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    return baselines.item_mean(data.responses, fold)


_METHODS = {
    "model_mean": _Method(_means(None), by_item=False),
    "category_mean": _Method(_means("category"), by_item=False),
    "benchmark_mean": _Method(_means("benchmark"), by_item=False),
    "item_mean": _Method(_item_mean),
    "rasch": _Method(_rasch),
    "rasch_benchmark": _Method(_rasch_by_benchmark),
    "mirt_1_category": _Method(_mirt_by_category),
}


def _method(name: str) -> _Method:
    if name in _METHODS:
        return _METHODS[name]
    family, dims, *priors = name.split("_")
    if family == "mirt":
        return _Method(partial(_mirt, dims=int(dims), grouped=bool(priors)))
    if priors == ["category"]:
        return _Method(_published_by_category)
    return _Method(partial(_published, dims=int(dims), matched=bool(priors)))


def predict(name: str, data: ResponseData, fold: Fold, options: Mapping[str, Any]) -> Floats:
    """Predict all cells by a method from what a fold shows.

    Parameters
    ----------
    name
        A method: one of `LABELS`, or as :func:`mirt`, :func:`by_benchmark` and :func:`published` name them.
    data
        The responses; only those that the fold shows are looked at.
    fold
        What may be seen, and which models and items inform.
    options
        Of the fits: ``sweeps`` and ``tolerance`` of EM; ``steps``, ``seed`` and ``most_dims`` of the published fits.

    Returns
    -------
    Probabilities of a right response, shape (models, items).
    """
    method = _method(name)
    made = method.predict(data, fold, options)
    return populations.fill(made, fold.items, data.item_table) if method.by_item else made


def chosen(dims: Sequence[int], *, categories: int, extended: bool) -> tuple[str, ...]:
    """Methods of a split: the means, MIRT with the given numbers of dimensions and, if extended, what else there is.

    Parameters
    ----------
    dims
        Numbers of dimensions.
    categories
        Number of categories of items; with fewer than two nothing is done by category.
    extended
        Whether the additive models and one dimension per category, which takes longer, are done too.
    """
    by_category = categories > 1
    return (
        "model_mean",
        *(("category_mean",) if by_category else ()),
        "benchmark_mean",
        "item_mean",
        *(("rasch", "rasch_benchmark") if extended else ()),
        *(("mirt_1_category",) if by_category and extended else ()),
        *map(mirt, dims),
    )
