"""Tables whose columns are known beforehand, read strictly: a damaged cell is told by file, row and column, and never guessed.

pandas takes a text for nothing, ``1_000`` for a number, and a second column of one name for another one. Here a number is what
JSON and CSV writers write, a truth value is ``True`` or ``False``, and nothing is nothing only where it may be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmirt.errors import InputError, nearest
from benchmirt.sources.reading import Sheet, check_header, rows

__all__ = ["Column", "Typed", "read", "typed"]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_TRUTH = {"True": True, "False": False}


@dataclass(frozen=True)
class Column:
    """What a column holds.

    Attributes
    ----------
    kind
        Texts, numbers, whole numbers, or truth values.
    low, high
        Bounds of numbers.
    empty
        Whether a cell may be empty.
    needed
        Whether the column has to be there.
    choices
        The only texts that may stand there.
    """

    kind: Literal["text", "number", "whole", "truth"] = "text"
    low: float = -math.inf
    high: float = math.inf
    empty: bool = False
    needed: bool = True
    choices: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What may stand in a cell, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices) + (", or nothing" if self.empty else "")
        what = {"text": "a text", "number": "a number", "whole": "a whole number", "truth": "True or False"}
        bounds = [
            f"{word} {bound:,g}"
            for word, bound in (("from", self.low), ("to", self.high))
            if math.isfinite(bound)
        ]
        return " ".join([what[self.kind], *bounds]) + (", or nothing" if self.empty else "")

    def value(self, text: str) -> Any:
        """Return what a cell holds: None where it is empty and may be, NotImplemented where it cannot be."""
        if not text:
            return None if self.empty else NotImplemented
        if self.kind == "text":
            return text if not self.choices or text in self.choices else NotImplemented
        if self.kind == "truth":
            return _TRUTH.get(text, NotImplemented)
        pattern = _WHOLE if self.kind == "whole" else _NUMBER
        if pattern.fullmatch(text) is None:
            return NotImplemented
        number = int(text) if self.kind == "whole" else float(text)
        return number if math.isfinite(number) and self.low <= number <= self.high else NotImplemented


@dataclass(frozen=True)
class Typed:
    """A table as it was read.

    Attributes
    ----------
    file
        Its name in messages.
    frame
        Texts as ``str``, numbers as ``float64`` (NaN where there is none), whole numbers as ``int64`` or, where a cell may be
        empty, ``Int64``, truth values as ``bool`` or ``boolean``. Columns that nobody asked for are texts.
    numbers
        The row of the file, header included, that each row of the frame stands in.
    todo
        The way out of a fault.
    """

    file: str
    frame: pd.DataFrame
    numbers: list[int]
    todo: str

    def fault(self, what: str, place: int, column: str, *, found: str, expected: str | None) -> InputError:
        """Return what is wrong with a cell, by its place in the frame."""
        return InputError(
            what,
            file=self.file,
            where=f'row {self.numbers[place]}, column "{column}"',
            found=found,
            expected=expected,
            todo=self.todo,
        )


def read(
    path: Path, key: str, columns: Mapping[str, Column], *, what: str, todo: str, bare: bool = False
) -> Typed:
    """Read a CSV file.

    Parameters
    ----------
    path
        A ``.csv`` or ``.csv.gz`` file.
    key
        Column of names of which none may be met twice.
    columns
        What the columns hold, the key among them. Others may be there and are kept as texts.
    what
        What messages call the table, such as ``table of a calibration``.
    todo
        The way out of a fault.
    bare
        Whether it may have no rows.

    Raises
    ------
    InputError
        If the file is damaged, a column is lacking or is there twice, or a cell holds what it cannot.
    """
    file = str(path)
    content = rows(path, file)
    _, header = next(content)
    check_header(header, file, header[0])
    whole = _lacking(header, columns) is None
    listed = list(content) if whole else []
    sheet = Sheet(file, tuple(header), [fields for _, fields in listed], [number for number, _ in listed])
    if whole and not listed and not bare:
        raise InputError("the table has a header but no rows", file=file, todo=todo)
    return typed(sheet, key, columns, what=what, todo=todo)


def _lacking(header: Iterable[str], columns: Mapping[str, Column]) -> str | None:
    """Return the first column that has to be there and is not."""
    there = set(header)
    return next((name for name, column in columns.items() if column.needed and name not in there), None)


def typed(sheet: Sheet, key: str, columns: Mapping[str, Column], *, what: str, todo: str) -> Typed:
    """Give the columns of a table of texts their types; as :func:`read`.

    Raises
    ------
    InputError
        If a column is lacking, or a cell holds what it cannot.
    """
    lacking = _lacking(sheet.header, columns)
    if lacking is not None and not set(columns) & set(sheet.header):
        raise InputError(
            f"this is no {what}",
            file=sheet.file,
            found=", ".join(sheet.header[:8]) + (", ..." if len(sheet.header) > 8 else ""),
            expected=f"the columns {', '.join(name for name, column in columns.items() if column.needed)}",
            todo=todo,
        )
    if lacking is not None:
        near = nearest(lacking, [other for other in sheet.header if other not in columns])
        raise InputError(
            f"this {what} lacks a column",
            file=sheet.file,
            found=None if near is None else f'"{near}"',
            expected=f'"{lacking}"',
            todo=todo,
        )
    found: dict[str, pd.Series] = {}
    table = Typed(sheet.file, pd.DataFrame(), sheet.numbers, todo)
    for place, name in enumerate(sheet.header):
        if name in columns and name in sheet.unreadable:
            sheet.column(name)  # raises
        texts = (fields[place] for fields in sheet.fields)
        found[name] = _series(table, name, columns.get(name, Column(empty=True)), texts)
    table = Typed(sheet.file, pd.DataFrame(found), sheet.numbers, todo)
    twice = np.flatnonzero(table.frame[key].duplicated().to_numpy())
    if len(twice):
        name = table.frame[key].iloc[twice[0]]
        raise table.fault("", int(twice[0]), key, found=f'"{name}" twice', expected="each name once")
    return table


def _series(table: Typed, name: str, column: Column, texts: Iterable[str]) -> pd.Series:
    """Return a column in the type of its kind; stop at the first cell that cannot be."""
    values = []
    for place, text in enumerate(texts):
        value = column.value(text)
        if value is NotImplemented:
            raise table.fault(
                "", place, name, found=f'"{text}"' if text else "nothing", expected=column.expected
            )
        values.append(value)
    if column.kind == "number":
        return pd.Series([np.nan if value is None else value for value in values], dtype="float64")
    if column.kind == "text":
        return pd.Series([np.nan if value is None else value for value in values], dtype="str")
    kinds = {"whole": ("int64", "Int64"), "truth": ("bool", "boolean")}
    return pd.Series(values, dtype=kinds[column.kind][column.empty])
