"""Check values from outside: a table of statistics that others computed from a study's published table of models.

Nothing heavy is imported, since the table is checked whenever the workflow is parsed; see :mod:`benchmirt.claims.outside`
for what is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmirt.errors import InputError
from benchmirt.sources.reading import read_rows

__all__ = ["COLUMNS", "QUANTITIES", "CheckValue", "read"]

QUANTITIES = ("spearman", "pearson", "score")
"""What a check value can be: a correlation of two columns over models, or the score of one model in one column."""

COLUMNS = ("quantity", "column", "against", "model", "value", "low", "high", "evidence")
"""Columns of a table of check values; ``against`` is empty for a score, ``model`` for a correlation."""

_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
)  # its digits behind the point count, so that it has no exponent


@dataclass(frozen=True)
class CheckValue:
    """One check value: `value` as it was printed, with so many `digits` behind the point, and its 95 % interval if it has one."""

    quantity: str
    column: str
    against: str
    model: str
    value: float
    digits: int
    interval: tuple[float, float] | None


def read(path: Path) -> list[CheckValue]:
    """Read a table of check values.

    Raises
    ------
    InputError
        If the file is no such table, or a row is not about one of :data:`QUANTITIES`, lacks what that is about, or holds a
        figure that is none.
    """
    header, rows = read_rows(path, str(path))
    lacking = [name for name in COLUMNS[:-1] if name not in header]
    if lacking:
        raise InputError(
            f'there is no column "{lacking[0]}"',
            file=path,
            expected=", ".join(COLUMNS),
            found=", ".join(header),
        )
    return [_value(row, path, f"row {number}") for number, row in rows]


def _value(row: Mapping[str, str], path: Path, where: str) -> CheckValue:
    quantity = row["quantity"]
    if quantity not in QUANTITIES:
        raise InputError(
            "",
            file=path,
            where=where,
            found=f'quantity "{quantity}"',
            expected=f"one of {', '.join(QUANTITIES)}",
        )
    needed, idle = ("model", "against") if quantity == "score" else ("against", "model")
    for name, there in (("column", True), (needed, True), (idle, False)):
        if bool(row[name].strip()) != there:
            raise InputError(
                f"a {quantity} is about {'a column and a model' if quantity == 'score' else 'two columns'}",
                file=path,
                where=f'{where}, column "{name}"',
                found=f'"{row[name]}"',
                expected="a name" if there else "nothing",
            )
    ends = [_number(row, name, path, where) for name in ("low", "high")]
    value = _number(row, "value", path, where)
    if value is None or (ends[0] is None) != (ends[1] is None):
        raise InputError(
            "a value, or one end of its interval, is missing",
            file=path,
            where=where,
            todo="Fill it in, or remove the row",
        )
    low, high = ends
    if low is not None and high is not None and not low <= value <= high:
        raise InputError(
            "the interval does not hold the value",
            file=path,
            where=where,
            found=f"{low} to {high}, and {value}",
            expected="low, value and high in this order",
        )
    return CheckValue(
        quantity=quantity,
        column=row["column"].strip(),
        against=row["against"].strip(),
        model=row["model"].strip(),
        value=value,
        digits=len(row["value"].strip().partition(".")[2]),
        interval=None if low is None or high is None else (low, high),
    )


def _number(row: Mapping[str, str], name: str, path: Path, where: str) -> float | None:
    text = row[name].strip()
    if not text:
        return None
    if _NUMBER.fullmatch(text) is None:
        raise InputError(
            "",
            file=path,
            where=f'{where}, column "{name}"',
            found=f'"{text}"',
            expected="a number such as 0.25",
        )
    value = float(text)
    if row["quantity"] != "score" and abs(value) > 1:
        raise InputError(
            "this is no correlation",
            file=path,
            where=f'{where}, column "{name}"',
            found=text,
            expected="a number from -1 to 1",
        )
    return value
