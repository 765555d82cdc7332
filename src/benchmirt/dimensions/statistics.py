"""Item and model statistics of any study: identified numbers with intervals, and the published columns beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmirt import identification as ident
from benchmirt import resampling
from benchmirt.dimensions.consensus import solution_of
from benchmirt.files import write_csv

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.families import Bootstrap, LeaveOneOut
    from benchmirt.inference.record import FitRecord

__all__ = ["item_statistics", "model_statistics", "published_solution", "write"]

Floats = NDArray[np.float64]
LEAST_UNITS = 3

ITEM_FACTS = (
    "question_id",
    "benchmark",
    "category",
    "subcategory_one",
    "testlet",
    "observed",
    "mean",
    "kept",
)
MODEL_FACTS = ("model", "family", "lineage", "size_b", "reasoning", "released", "observed", "mean", "kept")


def _facts(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return table[[name for name in columns if name in table]].reset_index(drop=True).copy()


def _joined(facts: pd.DataFrame, key: str, names: Sequence[str], columns: dict[str, Floats]) -> pd.DataFrame:
    """Join columns of fitted items or models to all of them; those that were not fitted stay empty."""
    fitted = pd.DataFrame({key: list(names), **columns})
    return facts.merge(fitted, on=key, how="left", validate="one_to_one")


def published_solution(record: FitRecord) -> tuple[Floats, Floats, Floats]:
    """Rotate one run as the published code does.

    Loadings are quartimin's ``a inv(T)'``; the abilities and the per-dimension difficulties, ``b_k = -a_k d / |a|^2`` (not
    identified: a function of loading and intercept), are multiplied by the transpose of the ``T`` that would keep the logits.

    Returns
    -------
    tuple of arrays
        Abilities (models, dims), loadings (items, dims), difficulties (items, dims).
    """
    solution, _ = ident.canonical(solution_of(record))
    rotation = ident.quartimin(solution.a, seed=record.seed)
    square = np.maximum((solution.a**2).sum(1), 1e-12)
    difficulty = -solution.a * (solution.d / square)[:, None]
    transposed = rotation.T.T
    return solution.theta @ transposed, rotation.loadings, difficulty @ transposed


def item_statistics(
    items: pd.DataFrame, consensus: Consensus, published: Sequence[FitRecord] = (), *, level: float = 0.95
) -> pd.DataFrame:
    """Return one row per item.

    Parameters
    ----------
    items
        All items of the study (``items.parquet``); those that the filter dropped keep empty statistics.
    consensus
        The corrected fit.
    published
        Records of the published fit; the first gives the as-published columns.
    level
        Of the intervals, which are posterior (normal, delta method; Fieller's for MDIFF, empty where unbounded).

    Returns
    -------
    pandas.DataFrame
        The items' facts; intercept, mdisc and mdiff with _low and _high; discrimination_k in the canonical frame; angle_to_k with
        _low and _high in degrees; published_discrimination_k and published_difficulty_k.
    """
    k = consensus.dims
    half = ndtri(0.5 + level / 2) * np.sqrt(consensus.item_cov[:, k, k])
    length = ident.mdisc_interval(consensus.a, consensus.item_cov, level)
    location = ident.mdiff_interval(consensus.a, consensus.d, consensus.item_cov, level)
    angles = ident.angles(consensus.a, consensus.T)
    spread = ident.angle_interval(consensus.a, consensus.item_cov, consensus.T, level)
    columns: dict[str, Floats] = {
        "intercept": consensus.d,
        "intercept_low": consensus.d - half,
        "intercept_high": consensus.d + half,
        "mdisc": ident.mdisc(consensus.a),
        "mdisc_low": length[:, 0],
        "mdisc_high": length[:, 1],
        "mdiff": ident.mdiff(consensus.a, consensus.d),
        "mdiff_low": location[:, 0],
        "mdiff_high": location[:, 1],
    }
    for index in range(k):
        columns[f"discrimination_{index + 1}"] = consensus.a[:, index]
    for index in range(k):
        columns[f"angle_to_{index + 1}"] = angles[:, index]
        columns[f"angle_to_{index + 1}_low"] = spread[:, index, 0]
        columns[f"angle_to_{index + 1}_high"] = spread[:, index, 1]
    frame = _joined(_facts(items, ITEM_FACTS), "question_id", consensus.items, columns)
    first = published[0] if published else None
    if first is not None:
        _, loadings, difficulty = published_solution(first)
        columns = {}
        for index in range(first.dims):
            columns[f"published_discrimination_{index + 1}"] = loadings[:, index]
            columns[f"published_difficulty_{index + 1}"] = difficulty[:, index]
        frame = _joined(frame, "question_id", first.items, columns)
    return frame


def _on_one_scale(replicated: Floats, consensus: Consensus) -> Floats:
    """Give each replicate the spread of the consensus: a refit's own zero and unit move no model among the others.

    Parameters
    ----------
    replicated
        Display abilities of refits, shape (replicates, models, abilities).
    """
    centred = replicated - replicated.mean(1, keepdims=True)
    return np.asarray(centred / centred.std(1, keepdims=True) * consensus.ability_theta.std(0))


def model_statistics(
    models: pd.DataFrame,
    responses: pd.DataFrame,
    items: pd.DataFrame,
    consensus: Consensus,
    bootstrap: Bootstrap | None = None,
    left_out: LeaveOneOut | None = None,
    published: Sequence[FitRecord] = (),
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return one row per model.

    Parameters
    ----------
    models, responses, items
        ``models.parquet``, ``responses.parquet`` and ``items.parquet`` of the honest matrix.
    consensus
        The corrected fit.
    bootstrap
        Refits with a part of the lineages left out; their spread, stretched, is added to the posterior's, so that intervals hold
        the calibration's own variance.
    left_out
        Refits with each benchmark left out; their delete-one jackknife variance is added, so that intervals hold what the study's
        mix of benchmarks adds to an ability. Fewer than three say too little of a mix and add nothing.
    published
        Records of the published fit; the first gives the as-published columns.
    level
        Of the intervals (normal). The three variances are taken as independent; a benchmark's own items have a part in the first
        and the third, so that intervals are rather too wide than too narrow.

    Returns
    -------
    pandas.DataFrame
        The models' facts; ability_k with _low and _high (display abilities); one mean per benchmark over its kept items;
        published_ability_k.
    """
    variance = np.einsum("nkk->nk", consensus.ability_cov)
    if bootstrap is not None and len(bootstrap.theta) > 1:
        # an unknown lineage becomes -1: a cluster of its own
        lineage, _ = pd.factorize(models.set_index("model")["lineage"].reindex(list(consensus.models)))
        factor = resampling.stretch(bootstrap.weights, lineage)
        variance = variance + factor**2 * _on_one_scale(bootstrap.theta @ consensus.T, consensus).var(
            0, ddof=1
        )
    if left_out is not None and len(left_out.units) >= LEAST_UNITS:
        variance = variance + resampling.jackknife_se(_on_one_scale(left_out.theta, consensus)) ** 2
    half = ndtri(0.5 + level / 2) * np.sqrt(variance)
    columns: dict[str, Floats] = {}
    for index in range(consensus.dims):
        columns[f"ability_{index + 1}"] = consensus.ability_theta[:, index]
        columns[f"ability_{index + 1}_low"] = consensus.ability_theta[:, index] - half[:, index]
        columns[f"ability_{index + 1}_high"] = consensus.ability_theta[:, index] + half[:, index]
    frame = _joined(_facts(models, MODEL_FACTS), "model", consensus.models, columns)
    frame = frame.merge(_benchmark_means(responses, items), on="model", how="left", validate="one_to_one")
    if published:
        theta, _, _ = published_solution(published[0])
        frame = _joined(
            frame,
            "model",
            published[0].models,
            {f"published_ability_{index + 1}": theta[:, index] for index in range(published[0].dims)},
        )
    return frame


def _benchmark_means(responses: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Mean of every model over the kept items of every benchmark; empty where it answered none."""
    kept = items.loc[items["kept"], ["question_id", "benchmark"]]
    table = responses.set_index("question_id").loc[kept["question_id"]]
    means = {
        f"{name}_average": table.loc[group["question_id"]].mean(axis=0, skipna=True).astype("float64")
        for name, group in kept.groupby("benchmark", sort=False)
    }
    return pd.DataFrame(means).rename_axis("model").reset_index()


def write(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table of statistics as CSV."""
    write_csv(frame, path)
