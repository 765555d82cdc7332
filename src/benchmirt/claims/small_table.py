"""Small tables that claims name: published figures, labels of prompts. Imports nothing heavy."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmirt.errors import InputError

__all__ = ["read_rows"]


def read_rows(path: str | Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read a CSV file strictly: the names of its columns, and its rows with their numbers (the header is row 1).

    Raises
    ------
    InputError
        If the file is not readable, is empty, names a column twice or not at all, or has a row that does not fit the header.
    """
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            _check(header, path)
            for fields in reader:
                if len(fields) != len(header) and fields:
                    raise InputError(
                        "the row does not fit the header",
                        file=path,
                        where=f"row {reader.line_num}",
                        found=f"{len(fields)} fields",
                        expected=str(len(header)),
                        todo="Look for missing or spare commas, and quote texts that hold commas",
                    )
                if fields:
                    rows.append((reader.line_num, dict(zip(header, fields, strict=True))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            "this is not a readable table",
            file=path,
            found=str(error).splitlines()[0],
            expected="a CSV file in UTF-8",
        ) from error
    return header, rows


def _check(header: list[str], path: str | Path) -> None:
    """Check that every column has a name of its own."""
    if not header:
        raise InputError("the file is empty", file=path, todo="It needs a header and rows")
    for name in header:
        if not name.strip() or name != name.strip():
            raise InputError(
                "a column has no name, or one that begins or ends with a space",
                file=path,
                where="row 1",
                found=f'"{name}"',
                todo="Name it as it is meant",
            )
        if header.count(name) > 1:
            raise InputError(
                "two columns have the same name",
                file=path,
                where="row 1",
                found=f'"{name}"',
                todo="Rename or drop one of them",
            )
