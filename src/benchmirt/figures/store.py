"""Reading the result files that figures and page are made from, into small plain objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from benchmirt.errors import InputError
from benchmirt.figures.words import capital
from benchmirt.files import AGAIN, check_numbers, read_json
from benchmirt.outcomes import ITEM_FACTS, MODEL_FACTS

Floats = NDArray[np.float64]

_NAMES = (
    "model",
    "item",
    "question_id",
    "benchmark",
    "category",
    "family",
    "lineage",
    "claim",
    "testlet",
    "fit",
    "subset",
)
_TEXTS = frozenset(
    {
        *_NAMES,
        *(name for facts in (ITEM_FACTS, MODEL_FACTS) for name, kind in facts.items() if kind == "str"),
        *("fold", "group", "groups_column", "name", "seeds"),
        *("statement", "published", "region", "why"),  # of a claim, in words
    }
)
"""Columns of names and other texts, some of which may look like numbers."""


def read_csv(path: Path, required: Sequence[str] = ()) -> pd.DataFrame:
    """Table of a CSV file; columns of names stay text, so that a model called `NA` or `1` keeps its name.

    Parameters
    ----------
    path
        The file.
    required
        Columns that must be there.

    Raises
    ------
    InputError
        If the file is missing, is not a table, lacks a required column, or holds a text among numbers.
    """
    try:
        table = pd.read_csv(
            path, dtype=dict.fromkeys(_NAMES, str), keep_default_na=False, na_values=[""], low_memory=False
        )
    except FileNotFoundError as error:
        raise InputError("the file does not exist", file=path, todo="Run the workflow first") from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InputError(
            "this is not a CSV table", file=path, found=str(error).strip(), todo=AGAIN
        ) from error
    for column in required:
        if column not in table.columns:
            raise InputError(
                "a column is missing",
                file=path,
                found=", ".join(map(str, table.columns[:12])),
                expected=column,
                todo=AGAIN,
            )
    return check_numbers(table, path, _TEXTS)


def read_dataset(path: Path) -> xr.Dataset:
    """Whole content of a NetCDF file.

    Raises
    ------
    InputError
        If the file is missing or is not NetCDF.
    """
    if not path.exists():
        raise InputError("the file does not exist", file=path, todo="Run the workflow first")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            return data.load()
    except (OSError, ValueError) as error:
        raise InputError("this is not a readable NetCDF file", file=path, todo=AGAIN) from error


@dataclass(frozen=True)
class Abilities:
    """The display abilities of a study: their names and directions.

    Attributes
    ----------
    labels
        K short names: the category that an ability follows, or `ability k` where the evidence earns no name.
    named
        For each ability whether the name was earned.
    orientation
        (K,) 1 or -1: sign by which stored abilities and directions are multiplied so that more is better.
    T
        (K, K); column k is the unit vector of ability k in the canonical ability space, orientation applied.
    phi
        (K, K) correlations between the abilities, orientation applied.
    details
        The entries of `labels.json`, one per ability.
    """

    labels: tuple[str, ...]
    named: tuple[bool, ...]
    orientation: Floats
    T: Floats
    phi: Floats
    details: tuple[Mapping[str, Any], ...]

    @property
    def dims(self) -> int:
        """Number of abilities."""
        return len(self.labels)

    def axis(self, k: int) -> str:
        """Words for the axis of ability k (from 0)."""
        text = capital(self.labels[k])
        return f"{text} ability" if self.named[k] else text


def abilities(labels: Mapping[str, Any], consensus: xr.Dataset) -> Abilities:
    """Names and directions of the abilities from `labels.json` and `consensus.nc`.

    Raises
    ------
    InputError
        If the two disagree about the number of dimensions.
    """
    T = np.asarray(consensus["T"].transpose("dimension", "ability").to_numpy(), dtype=float)
    dims = T.shape[1]
    details: list[Mapping[str, Any]] = sorted(labels.get("dimensions", []), key=lambda d: int(d["ability"]))
    if details and [int(d["ability"]) for d in details] != list(range(1, dims + 1)):
        raise InputError(
            "labels and consensus disagree about the abilities",
            file="dimensions/labels.json",
            found=str([d["ability"] for d in details]),
            expected=f"abilities 1 to {dims}",
            todo=AGAIN,
        )
    if not details:
        details = [{"ability": k + 1} for k in range(dims)]
    sign = np.array([-1.0 if d.get("orientation") == -1 else 1.0 for d in details])
    T = T * sign
    return Abilities(
        labels=tuple(str(d.get("display") or d.get("name") or f"ability {d['ability']}") for d in details),
        named=tuple(bool(d.get("name")) for d in details),
        orientation=sign,
        T=T,
        phi=T.T @ T,
        details=tuple(details),
    )


def read_abilities(results: Path, fit: str = "corrected") -> Abilities:
    """Names and directions of the abilities from a results folder."""
    labels = read_json(results / "dimensions" / "labels.json")
    return abilities(labels, read_dataset(results / "dimensions" / fit / "consensus.nc"))


def oriented_models(table: pd.DataFrame, orientation: Floats) -> pd.DataFrame:
    """Model statistics with abilities multiplied by their orientation (bounds swapped where it is -1)."""
    table = table.copy()
    for k, sign in enumerate(orientation, start=1):
        if sign > 0:
            continue
        name = f"ability_{k}"
        bounds = {b: table[f"{name}_{b}"].copy() for b in ("low", "high") if f"{name}_{b}" in table}
        table[name] = -table[name]
        for bound, other in (("low", "high"), ("high", "low")):
            if other in bounds:
                table[f"{name}_{bound}"] = -bounds[other]
    return table


def discriminations(table: pd.DataFrame, dims: int) -> Floats:
    """(J, K) discriminations of the rows of item statistics in the canonical frame; NaN where not fitted."""
    return table[[f"discrimination_{k}" for k in range(1, dims + 1)]].to_numpy(dtype=float)


def was_fitted(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows of item statistics were fitted."""
    keep = table["discrimination_1"].notna().to_numpy(dtype=bool)
    return keep & truths(table["kept"]) if "kept" in table else keep


def truths(column: pd.Series) -> NDArray[np.bool_]:
    """Return which entries of a column of yes and no, however it was read, are yes."""
    return column.astype(str).str.lower().isin(("true", "1", "1.0")).to_numpy(dtype=bool)


def grouping(table: pd.DataFrame, most: int = 60) -> tuple[str, str]:
    """Column by which items are shown apart, and the word for it: benchmarks, or what a single one is made of.

    Parameters
    ----------
    table
        Item table with `benchmark` and perhaps `category` and `subcategory_one`.
    most
        A finer column with more values than this is not used.
    """
    if table["benchmark"].nunique() > 1:
        return "benchmark", "benchmark"
    for column, word in (("category", "category"), ("subcategory_one", "subcategory")):
        if column in table and 2 <= table[column].nunique() <= most:
            return column, word
    return "benchmark", "benchmark"


def selected(
    table: pd.DataFrame, select: Mapping[str, Any] | None, without: Mapping[str, Any] | None = None
) -> NDArray[np.bool_]:
    """Which rows of an item table a claim's selection takes.

    Parameters
    ----------
    table
        Item table.
    select
        ``{column: value or list of values}``; all must hold. A value that ends in ``*`` stands for a beginning.
        None selects nothing.
    without
        Rows to leave out, written the same way.

    Returns
    -------
    (J,) bool array
        All False if a column is not in the table.
    """
    if not select or any(column not in table for column in select):
        return np.zeros(len(table), dtype=bool)
    keep = np.ones(len(table), dtype=bool)
    for column, wanted in select.items():
        keep &= _among(table[column], wanted)
    if without and all(column in table for column in without):
        drop = np.ones(len(table), dtype=bool)
        for column, wanted in without.items():
            drop &= _among(table[column], wanted)
        keep &= ~drop
    return keep


def _among(column: pd.Series, wanted: Any) -> NDArray[np.bool_]:
    values = [str(v).casefold() for v in (wanted if isinstance(wanted, list | tuple) else [wanted])]
    text = column.astype(str).str.casefold()
    found = text.isin([v for v in values if not v.endswith("*")])
    for value in values:
        if value.endswith("*"):
            found |= text.str.startswith(value[:-1])
    return found.to_numpy(dtype=bool)
