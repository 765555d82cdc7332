"""Which of the fetched tables is meant: told by its header, since a data set may call its files as it likes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmirt.errors import InputError
from benchmirt.sources.folders import tree
from benchmirt.sources.reading import batches, rows

__all__ = ["table_in"]

_TABLES = (".csv", ".csv.gz", ".parquet")


def table_in(folder: Path, shown: str, keys: Sequence[str], prefix: str = "") -> str:
    """Return the name of the table that is meant, below a folder.

    Parameters
    ----------
    folder
        The folder.
    shown
        What messages call it.
    keys
        Columns of which the table has at least one.
    prefix
        What a further column must begin with.

    Returns
    -------
    str
        The file, which begins with `shown`: the only table, or the only one with such a header.

    Raises
    ------
    InputError
        If there is none, or if there are several.
    """
    tables = [name for name in tree(folder, shown) if name.endswith(_TABLES)]
    fits = tables
    if len(tables) > 1:
        fits = [name for name in tables if _fits(folder / name.removeprefix(f"{shown}/"), name, keys, prefix)]
    if len(fits) == 1:
        return fits[0]
    column = " or ".join(f'"{key}"' for key in keys)
    raise InputError(
        "several tables have the header that is looked for"
        if fits
        else "no table has the header that is looked for",
        file=shown,
        found=", ".join((fits or tables)[:5]) or "no table",
        expected=f"one with the column {column}"
        + (f' and columns that begin with "{prefix}"' if prefix else ""),
        todo="Name the right one in files: [NAME]",
    )


def _fits(path: Path, shown: str, keys: Sequence[str], prefix: str) -> bool:
    """Say whether a table has such a header; one that cannot be read has not."""
    try:
        if path.name.endswith(".parquet"):
            header: Sequence[str] = next(batches(path, shown)).schema.names
        else:
            _, header = next(rows(path, shown))
    except InputError:
        return False
    return any(key in header for key in keys) and any(
        name.startswith(prefix) for name in header if name not in keys
    )
