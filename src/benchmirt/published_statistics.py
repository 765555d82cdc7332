"""The published statistics of items and models against the matrix: what is not as it was published, one by one.

Nothing here decides a verdict. The published tables are check values from outside: they tell whether the responses
that a study reads are those that the published one was made from (and its filter is ours).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.config import Study
from benchmirt.files import write_csv, write_json
from benchmirt.sheets import Column, typed
from benchmirt.sources.fetched import table_in
from benchmirt.sources.reading import read_sheet

__all__ = ["COLUMNS", "called", "compare", "read", "score_columns", "scores", "write"]

COLUMNS = ("kind", "name", "what", "ours", "published")
"""Columns of the differences.

kind: ``count``; ``only_here`` and ``only_published`` (an item or a model that the other side lacks or drops); ``value``.
"""
_CLOSE = 5e-5  # about half of what one outcome makes in the mean of the largest benchmark, 1/11,994
_KEYS = {"items": "question_id", "models": "model"}

_ENDING = "_average"
_NOT_SELECT = ("wmdp", "bbq")
"""Benchmarks of safety that the published score ``select_safety_average`` leaves out."""

Row = tuple[str, str, str, Any, Any]


def write(study: Study, matrix: Path, counts: Path, out_dir: Path) -> list[Path]:
    """Compare the study's matrix (published policy) with the published statistics that it names.

    Parameters
    ----------
    study
        The study; its ``published_statistics`` names the tables.
    matrix
        The folder of the matrix.
    counts
        A table with a row per benchmark: ``benchmark``, ``items``; its published number of items.
    out_dir
        Takes ``differences.csv`` and ``summary.json``.

    Returns
    -------
    list of Path
        The two files.

    Raises
    ------
    InputError
        If a published table cannot be read, lacks its key, or has a name twice.
    """
    ours = {table: pd.read_parquet(matrix / f"{table}.parquet") for table in ("items", "models", "responses")}
    published = {role: read(study, role) for role in study.published_statistics}
    rows, compared = compare(
        ours["items"], ours["models"], ours["responses"], published, pd.read_csv(counts, dtype={"items": int})
    )
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    paths = [out_dir / "differences.csv", out_dir / "summary.json"]
    write_csv(frame, paths[0])
    kinds = {str(kind): int(number) for kind, number in frame["kind"].value_counts().sort_index().items()}
    write_json({"compared": compared, "differences": kinds}, paths[1])
    return paths


def read(study: Study, role: str) -> pd.DataFrame:
    """Read a published table.

    Parameters
    ----------
    study
        The study; its ``published_statistics`` names the table.
    role
        ``items`` or ``models``.

    Returns
    -------
    DataFrame
        All that stands there, as texts, and scores as numbers, NaN where there is none; models are called ``org__model``.

    Raises
    ------
    InputError
        If the table cannot be read, lacks its key, has a name twice, or holds a score that is no number.
    """
    key = _KEYS[role]
    shown = place = study.statistics_places(study.results)[role]
    if (study.base / place).is_dir():
        shown = table_in(study.base / place, place, [key])
    sheet = read_sheet(study.base / shown, shown, key, elsewhere=False)
    scores = [name for name in sheet.header if _plain(name).endswith((_ENDING, "average_score"))]
    columns = {key: Column(), **dict.fromkeys(scores, Column("number", empty=True))}
    todo = "Take the table as it was published"
    table = typed(sheet, key, columns, what=f"published table of {role}", todo=todo)
    frame = table.frame
    if role == "models":
        frame[key] = frame[key].map(called)
        twice = np.flatnonzero(frame[key].duplicated().to_numpy())
        if len(twice):
            found = f'"{frame[key].iloc[twice[0]]}" twice'
            raise table.fault("", int(twice[0]), key, found=found, expected="each name once")
    return frame


def compare(
    items: pd.DataFrame,
    models: pd.DataFrame,
    responses: pd.DataFrame,
    published: Mapping[str, pd.DataFrame],
    counts: pd.DataFrame,
) -> tuple[list[Row], dict[str, int]]:
    """Return all differences, and how many values of each kind were compared.

    Parameters
    ----------
    items, models, responses
        Tables of a matrix; see :mod:`benchmirt.matrix`.
    published
        ``items`` and ``models``, or one of them: the published statistics.
    counts
        ``benchmark`` and its published number of ``items``.

    Returns
    -------
    list of tuple
        Rows of :data:`COLUMNS`.
    dict
        What was compared -> how often.
    """
    found = [
        *_counts(items, counts),
        *([*_items(items, published["items"])] if "items" in published else []),
        *([*_models(items, models, responses, published["models"])] if "models" in published else []),
    ]
    compared: dict[str, int] = {}
    for kind, *_ in found:
        compared[kind] = compared.get(kind, 0) + 1
    return [row for _, row, same in found if not same], compared


Compared = tuple[str, Row, bool]


def _counts(items: pd.DataFrame, counts: pd.DataFrame) -> Iterator[Compared]:
    """Yield the number of items of each benchmark, and of all."""
    here = items["benchmark"].value_counts()
    there = counts.set_index("benchmark")["items"]
    for benchmark in [*there.index, *here.index.difference(there.index)]:
        ours, published = int(here.get(benchmark, 0)), int(there.get(benchmark, 0))
        yield "counts", ("count", benchmark, "items", ours, published), ours == published
    yield "counts", ("count", "all", "items", len(items), int(there.sum())), len(items) == there.sum()


def _items(items: pd.DataFrame, published: pd.DataFrame) -> Iterator[Compared]:
    """Yield the kept items, and their means and benchmarks."""
    ours = items.set_index("question_id")
    theirs = published.set_index("question_id")
    kept = ours.index[ours["kept"]]
    reason = ours["drop_reason"].map(str).to_dict()
    yield "counts", ("count", "all", "kept items", len(kept), len(theirs)), len(kept) == len(theirs)
    for name in kept.union(theirs.index):
        if name not in theirs.index:
            yield "items", ("only_here", name, "kept, with the mean", ours.at[name, "mean"], None), False
        elif name not in ours.index:
            yield "items", ("only_published", name, "not in the responses", None, None), False
        elif not ours.at[name, "kept"]:
            what = f"dropped here ({reason[name]}), with the mean"
            yield "items", ("only_published", name, what, ours.at[name, "mean"], None), False
        else:
            yield "items", ("value", name, "kept", True, True), True
    both = theirs.index.intersection(ours.index)
    if "average_score" in theirs:
        means = zip(both, ours.loc[both, "mean"], theirs.loc[both, "average_score"], strict=True)
        for name, mean, score in means:
            yield (
                "item means",
                ("value", name, "average_score", mean, score),
                bool(abs(mean - score) <= _CLOSE),
            )
    if "benchmark" in theirs:
        pairs = zip(
            both, ours.loc[both, "benchmark"].map(str), theirs.loc[both, "benchmark"].map(str), strict=True
        )
        for name, one, other in pairs:
            yield "item benchmarks", ("value", name, "benchmark", one, other), _plain(one) == _plain(other)


def called(model: str) -> str:
    """Return the name of a model as the study writes it: ``org__model``."""
    return model.replace("/", "__")


def _plain(benchmark: str) -> str:
    """Return the name of a benchmark as the statistics and the responses may both write it."""
    return benchmark.casefold().replace("-", "_")


def _models(
    items: pd.DataFrame, models: pd.DataFrame, responses: pd.DataFrame, published: pd.DataFrame
) -> Iterator[Compared]:
    """Yield the models, and their scores, over all items or over the kept ones, in any way of averaging."""
    theirs = published.set_index("model")
    names = [called(name) for name in models["model"]]
    for name in sorted({*names, *theirs.index}):
        kind = (
            "value"
            if name in names and name in theirs.index
            else "only_here"
            if name in names
            else "only_published"
        )
        yield "models", (kind, name, "model", name in names, name in theirs.index), kind == "value"
    columns = score_columns(items, theirs.columns)
    cells = (
        responses.set_index("question_id")
        .loc[items["question_id"], list(models["model"])]
        .to_numpy(dtype=float, na_value=-1)
    )
    ways = [
        scores(items, cells, names, columns, kept=kept, over=over)
        for over in ("items", "benchmarks")
        for kept in (True, False)
    ]
    for column, benchmarks in columns.items():
        told = theirs[column].to_dict()
        what = "model means" if len(benchmarks) == 1 else "model scores over benchmarks"
        for name in [name for name in names if name in told]:
            same = any(abs(way.at[name, column] - told[name]) <= _CLOSE for way in ways)
            yield what, ("value", name, column, ways[0].at[name, column], told[name]), same


def score_columns(items: pd.DataFrame, columns: Iterable[Any]) -> dict[str, list[str]]:
    """Return which columns of a published table of models are scores, and over which benchmarks each is the mean.

    Parameters
    ----------
    items
        Items of a matrix; see :mod:`benchmirt.matrix`.
    columns
        Names of the table's columns. A score is called ``{benchmark}_average``, ``{category}_average``,
        ``select_safety_average`` (safety without WMDP and BBQ) or ``total_average``.
    """
    category = items.drop_duplicates("benchmark").set_index("benchmark")["category"].map(str)
    over = {"total": list(category.index)}
    for name in category.unique():
        over[_plain(name)] = list(category.index[category == name])
    over["select_safety"] = [name for name in over.get("safety", []) if _plain(name) not in _NOT_SELECT]
    over |= {_plain(name): [name] for name in category.index}
    known = {f"{name}{_ENDING}": benchmarks for name, benchmarks in over.items() if benchmarks}
    return {str(column): known[_plain(str(column))] for column in columns if _plain(str(column)) in known}


def scores(
    items: pd.DataFrame,
    cells: NDArray[Any],
    names: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    *,
    kept: bool = True,
    over: str = "items",
) -> pd.DataFrame:
    """Return the scores of models as a published table has them.

    Parameters
    ----------
    items
        Items of a matrix.
    cells
        Outcomes of all items, 1 or 0, negative for missing, shape (items, models).
    names
        The models.
    columns
        Of :func:`score_columns`.
    kept
        Whether the items that the filter dropped are left out.
    over
        Whether a score over several benchmarks is the mean over their ``items`` or over the ``benchmarks``.

    Returns
    -------
    DataFrame
        A row per model, a column per score, 0 to 1; NaN where a model answered nothing.
    """
    cells = np.where(cells < 0, np.nan, cells)
    used = items["kept"].to_numpy(dtype=bool) if kept else np.ones(len(items), dtype=bool)
    single = {name: ((items["benchmark"] == name).to_numpy() & used) for name in items["benchmark"].unique()}
    means = {name: _means(cells[own]) for name, own in single.items()}
    found = {
        column: means[benchmarks[0]]
        if len(benchmarks) == 1
        else np.mean([means[name] for name in benchmarks], axis=0)
        if over == "benchmarks"
        else _means(cells[np.logical_or.reduce([single[name] for name in benchmarks])])
        for column, benchmarks in columns.items()
    }
    return pd.DataFrame(found, index=pd.Index(names, name="model"))


def _means(cells: np.ndarray) -> np.ndarray:
    """Return the mean outcome of each model over items, NaN where it answered none; shape (N,)."""
    observed = (~np.isnan(cells)).sum(axis=0)
    return np.where(observed > 0, np.nansum(cells, axis=0) / np.maximum(observed, 1), np.nan)
