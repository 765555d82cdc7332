"""Predict what is held out, by every split and method, and write how well it went.

The matched-prior answers come from the honest matrix; the split ``published`` repeats the study's own on its own matrix: random
cells, its fits, its baselines.
"""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.dimensions.checkpoint import Checkpoint, fingerprint
from benchmirt.errors import InputError
from benchmirt.files import read_json, write_csv, write_json, write_parquet
from benchmirt.prediction import cellwise, methods, splits
from benchmirt.prediction.intervals import measured
from benchmirt.prediction.splits import NotPossible, Split
from benchmirt.prediction.tally import (
    AVERAGES,
    FIELDS,
    METRICS,
    Classes,
    Tally,
    calibration_line,
    classes,
    count,
    measure,
)
from benchmirt.progress import progress

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["BASELINE", "PUBLISHED", "Prediction", "read", "run", "write"]

PUBLISHED = "published"
"""Name of the split that repeats the study's own."""
BASELINE = "benchmark_mean"
"""What gains are counted from: the baseline that the study compares with."""

_PUBLISHED_FOLDS = 10  # the study's own number, of which some or all are made
_LEAST_MODELS = 4  # beyond the number of dimensions, in a training fold

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prediction:
    """Everything that was predicted.

    Attributes
    ----------
    tallies
        Counts by split.
    cells
        Cells by benchmark, class of the predicted logit and outcome, by split and method: (B, classes, 2).
    says
        Splits in words.
    why_not
        Why a split was not possible, by its name.
    settings
        What was asked for.
    data_hash
        Hashes of the two matrices.
    checkpoint
        File to remove once the result is written, or None.
    """

    tallies: Mapping[str, Tally]
    cells: Mapping[tuple[str, str], NDArray[np.int64]]
    says: Mapping[str, str]
    why_not: Mapping[str, str]
    settings: Mapping[str, Any]
    data_hash: Mapping[str, str]
    checkpoint: Path | None = None


# ------------------------------------------------------------------------------------------ predicting


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 1)).decode()


def _unpacked(text: str, kind: type, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind).reshape(shape).copy()


def _tallied(
    data: ResponseData,
    split: Split,
    chosen: Sequence[str],
    options: Mapping[str, Any],
    kept: Checkpoint,
) -> tuple[Tally, dict[tuple[str, str], NDArray[np.int64]]]:
    """Predict every fold of a split by every method, and count."""
    names, code = np.unique(data.item_table["benchmark"].astype(str).to_numpy(), return_inverse=True)
    shape = (len(data.models), names.size, len(FIELDS))
    counts = np.zeros((len(split.folds), len(chosen), *shape))
    cells: dict[tuple[str, str], NDArray[np.int64]] = {}
    work = [(f, m) for f in range(len(split.folds)) for m in range(len(chosen))]
    for f, m in progress(work, len(work), f"predictions of {split.says}"):
        fold, method = split.folds[f], chosen[m]
        key = f"{split.name}/{f}/{method}"
        found = kept.get(key)
        if found is None:
            p = methods.predict(method, data, fold, options)
            scored = (data.responses, fold.scored, code, names.size)
            found = [_packed(count(p, *scored)), _packed(classes(p, *scored))]
            kept.put(key, found)
        counts[f, m] = _unpacked(found[0], np.float64, shape)
        of_classes = _unpacked(found[1], np.int64, (names.size, -1, 2))
        cells[split.name, method] = cells.get((split.name, method), 0) + of_classes
    tally = Tally(
        split.name,
        tuple(chosen),
        data.models,
        tuple(map(str, names)),
        data.lineage,
        counts,
        split.apart,
        split.ratio,
    )
    return tally, cells


def run(
    honest: ResponseData,
    published: ResponseData,
    *,
    dims: int = 2,
    max_dims: int = 4,
    folds: int = 4,
    answers: int = 10,
    by_benchmark: bool = False,
    published_folds: int = 2,
    published_steps: int = 200,
    seed: int = 0,
    sweeps: int = 60,
    tolerance: float = 5e-3,
    checkpoint: Path | None = None,
) -> Prediction:
    """Predict held-out outcomes by every split and method.

    Parameters
    ----------
    honest, published
        The two matrices; asymptotes of the published one are not used.
    dims, max_dims
        Dimensions of the headline, and most dimensions tried. More than the headline's are tried on random cells alone, as
        the study did; :mod:`benchmirt.dimensions.number` does so on new lineages.
    folds
        Folds of cells, of lineages and of items.
    answers
        Items a benchmark that a new model shows where few are known.
    by_benchmark
        Whether a fit with priors by benchmark predicts single answers and new lineages too.
    published_folds, published_steps
        How many of the study's ten folds are made, and with how many of its 5,000 steps.
    seed
        Seeds everything.
    sweeps, tolerance
        As in :func:`benchmirt.inference.em.fit_many`; coarser by default than for a fit that is reported.
    checkpoint
        JSONL file that lets a killed job resume, or None.
    """
    models, items = honest.responses.shape
    most = max(0, min(max_dims, int(models * (1 - 1 / folds)) - _LEAST_MODELS, items - 1))
    all_dims = range(1, most + 1)
    few_dims = sorted({k for k in (1, dims) if k <= most})
    categories = honest.item_table["category"].nunique()

    def of(numbers: Sequence[int], *, extended: bool) -> tuple[str, ...]:
        named = methods.chosen(numbers, categories=categories, extended=extended)
        return (*named, methods.by_benchmark(dims)) if extended and by_benchmark and dims <= most else named

    plans: list[tuple[str, Callable[[], Split], tuple[str, ...]]] = [
        ("cells", lambda: splits.cells(honest, folds, seed), of(all_dims, extended=True)),
        ("lineages", lambda: splits.lineages(honest, folds, seed), of(few_dims, extended=True)),
        (
            "few_answers",
            lambda: splits.few_answers(honest, folds, seed, answers),
            of(few_dims, extended=False),
        ),
        ("items", lambda: splits.items(honest, folds, seed), of(few_dims, extended=False)),
        ("benchmarks", lambda: splits.benchmarks(honest), of(few_dims, extended=False)),
        ("newer_models", lambda: splits.newer_models(honest, seed), of(few_dims, extended=False)),
    ]
    of_study = (*methods.chosen((), categories=categories, extended=False), "rasch")
    if most:
        of_study += (*map(methods.published, all_dims), methods.published(1, matched=True))
        of_study += (methods.PUBLISHED_BY_CATEGORY,) if categories > 1 else ()
    options = {"sweeps": sweeps, "tolerance": tolerance}
    of_steps = {"steps": published_steps, "seed": seed, "most_dims": max(most, 1)}
    key = fingerprint(
        __name__, honest=honest.hash, published=published.hash, folds=folds, answers=answers, **options, **of_steps,
    )  # fmt: skip
    tallies: dict[str, Tally] = {}
    cells: dict[tuple[str, str], NDArray[np.int64]] = {}
    says: dict[str, str] = {}
    why_not: dict[str, str] = {}

    with Checkpoint(checkpoint, key) as kept:
        for name, make, chosen in plans:
            try:
                split = make()
            except NotPossible as reason:
                _log.info("nothing predicted for %s: %s", name, reason)
                why_not[name] = str(reason)
                continue
            tallies[name], found = _tallied(honest, split, chosen, options, kept)
            cells |= found
            says[name] = split.says
        own = replace(
            splits.cells(published, _PUBLISHED_FOLDS, seed, used=published_folds),
            name=PUBLISHED,
            says="single answers, at random, as published",
        )
        tallies[PUBLISHED], found = _tallied(published, own, of_study, of_steps, kept)
        cells |= found
        says[PUBLISHED] = own.says
    return Prediction(
        tallies=tallies,
        cells=cells,
        says=says,
        why_not=why_not,
        settings={
            "folds": folds,
            "answers": answers,
            "published_folds": published_folds,
            "published_folds_of": _PUBLISHED_FOLDS,
            "published_steps": published_steps,
            "dims": dims,
            "most_dims": most,
            "seed": seed,
        },
        data_hash={"honest": honest.hash, "published": published.hash},
        checkpoint=checkpoint,
    )


# ------------------------------------------------------------------------------------------ tables


_COLUMNS = (
    *("split", "method", "fold", "benchmark", "metric"),
    *("value", "low", "high", "gain", "gain_low", "gain_high"),
)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rows(tally: Tally) -> Iterator[dict[str, Any]]:
    """Yield the scores of a split: every method and measure over all, by benchmark, and by fold."""
    for metric in METRICS:
        found = measured(tally, metric)
        ends = (*found.scores(), *found.gains(BASELINE))
        for m, c in zip(*np.nonzero(np.isfinite(found.values)), strict=True):
            numbers = (_finite(one[m, c]) for one in ends)
            yield {
                "split": tally.split,
                "method": tally.methods[m],
                "fold": "all",
                "benchmark": found.columns[c],
                "metric": metric,
                **dict(zip(_COLUMNS[5:], numbers, strict=True)),
            }
        for f, counts in enumerate(tally.counts):
            values = measure(counts[None], metric)
            for method, of_method in zip(tally.methods, values, strict=True):
                for column, value in zip(AVERAGES, of_method, strict=False):
                    if np.isfinite(value):
                        yield {
                            "split": tally.split,
                            "method": method,
                            "fold": str(f + 1),
                            "benchmark": column,
                            "metric": metric,
                            "value": float(value),
                        }


def _cell_rows(tally: Tally, cells: Mapping[tuple[str, str], NDArray[np.int64]]) -> Iterator[dict[str, Any]]:
    """Yield what needs single cells: AUC, and slope and intercept of the calibration line."""
    for method in tally.methods:
        own = cells[tally.split, method]
        pooled = Classes(own.sum(axis=0))
        each = [Classes(one).auc() for one in own]
        slope, intercept = calibration_line(pooled)
        found = {
            ("micro", "auc"): pooled.auc(),
            ("macro", "auc"): float(np.nanmean(each)) if np.isfinite(each).any() else float("nan"),
            ("micro", "calibration_slope"): slope,
            ("micro", "calibration_intercept"): intercept,
            **{(name, "auc"): value for name, value in zip(tally.benchmarks, each, strict=True)},
        }
        for (column, metric), value in found.items():
            if np.isfinite(value):
                yield {
                    "split": tally.split,
                    "method": method,
                    "fold": "all",
                    "benchmark": column,
                    "metric": metric,
                    "value": value,
                }


def _scores(result: Prediction) -> pd.DataFrame:
    rows = [row for tally in result.tallies.values() for row in _rows(tally)]
    rows += [row for tally in result.tallies.values() for row in _cell_rows(tally, result.cells)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _calibration(result: Prediction) -> pd.DataFrame:
    frames = []
    for (split, method), own in result.cells.items():
        curve = Classes(own.sum(axis=0)).curve()
        curve.insert(0, "method", method)
        curve.insert(0, "split", split)
        frames.append(curve)
    return pd.concat(frames, ignore_index=True)


def _by_model(tally: Tally) -> pd.DataFrame:
    """Write the counts of a split as a table: a row per fold, method, model and benchmark with anything scored."""
    fold, method, model, benchmark = np.nonzero(tally.counts[..., 0])
    found = tally.counts[fold, method, model, benchmark]
    table = {
        "split": tally.split,
        "fold": (fold + 1).astype(np.int16),
        "method": np.asarray(tally.methods, dtype=object)[method],
        "model": np.asarray(tally.models, dtype=object)[model],
        "lineage": tally.lineage[model],
        "benchmark": np.asarray(tally.benchmarks, dtype=object)[benchmark],
        **{name: found[:, k] for k, name in enumerate(FIELDS)},
    }
    return pd.DataFrame(table)


def _summary(result: Prediction) -> dict[str, Any]:
    return {
        "splits": {
            name: {
                "says": result.says[name],
                "folds": len(tally.counts),
                "apart": tally.apart,
                "ratio": tally.ratio,
                "cells": int(tally.counts[:, 0, :, :, 0].sum()),
                "methods": list(tally.methods),
            }
            for name, tally in result.tallies.items()
        },
        "why_not": dict(result.why_not),
        "labels": {
            method: methods.label(method)
            for method in dict.fromkeys(one for tally in result.tallies.values() for one in tally.methods)
        },
        "cellwise": cellwise.chosen(result.tallies["cells"]),
        "baseline": BASELINE,
        "settings": dict(result.settings),
        "provenance": provenance.record(data_hash=result.data_hash["honest"]),
    }


def write(
    result: Prediction,
    summary: str | Path,
    scores: str | Path,
    calibration: str | Path,
    by_model: str | Path,
) -> None:
    """Write ``prediction.json``, ``scores.csv``, ``calibration.csv`` and ``models.parquet``; then drop the checkpoint."""
    write_csv(_scores(result), scores)
    write_csv(_calibration(result), calibration)
    write_parquet(pd.concat(map(_by_model, result.tallies.values()), ignore_index=True), by_model)
    write_json(_summary(result), summary)
    if result.checkpoint is not None:
        result.checkpoint.unlink(missing_ok=True)


def read(summary: str | Path, by_model: str | Path, split: str) -> Tally:
    """Read the counts of one split.

    Raises
    ------
    NotPossible
        If the data did not allow this split, with the reason.
    InputError
        If there is no such split.
    """
    about = read_json(summary)
    if split in about["why_not"]:
        raise NotPossible(about["why_not"][split])
    if split not in about["splits"]:
        raise InputError(
            "there is no such split",
            file=summary,
            found=split,
            expected="one of " + ", ".join(about["splits"]),
        )
    entry = about["splits"][split]
    table = pd.read_parquet(by_model, filters=[("split", "==", split)])
    chosen = tuple(entry["methods"])
    models, benchmarks = (tuple(dict.fromkeys(table[column])) for column in ("model", "benchmark"))
    places = (
        table["fold"].to_numpy() - 1,
        pd.Index(chosen).get_indexer(table["method"]),
        pd.Index(models).get_indexer(table["model"]),
        pd.Index(benchmarks).get_indexer(table["benchmark"]),
    )
    counts = np.zeros((entry["folds"], len(chosen), len(models), len(benchmarks), len(FIELDS)))
    counts[places] = table[list(FIELDS)].to_numpy()
    lineage = table.drop_duplicates("model").set_index("model")["lineage"].loc[list(models)]
    return Tally(
        split,
        chosen,
        models,
        benchmarks,
        lineage.to_numpy(dtype=np.int64),
        counts,
        bool(entry["apart"]),
        float(entry["ratio"]),
    )
