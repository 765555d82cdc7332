"""Long tables: a row per model and question, CSV or Parquet.

The columns are known by the names below, which cover our own outcome tables and those of measurement-db; exactly one
column may stand for each role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from benchmirt.errors import InputError
from benchmirt.outcomes import REASONS
from benchmirt.sources.documents import Document, Log, Records
from benchmirt.sources.reading import batches, check_header, exact, rows, texts_of

__all__ = ["COLUMNS", "header_of", "is_long", "read"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_id", "subject_id", "subject"),
    "question": ("question_id", "item_id", "sample_id", "item", "question"),
    "grade": ("outcome", "response", "score", "correct", "is_correct"),
    "benchmark": ("benchmark", "benchmark_id", "dataset", "task"),
    "repeat": ("trial", "epoch", "repeat", "replicate", "generation"),
    "variant": ("test_condition", "metric", "filter"),
    "reason": ("reason",),
    "content": ("content_hash",),
}
"""What a column may be called, by its role."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SPELT = frozenset({"1", "1.0", "True", "0", "0.0", "False"})
_TRUTH = {
    "true": "True",
    "false": "False",
    "TRUE": "True",
    "FALSE": "False",
}  # the last two of R and spreadsheets


def is_long(header: Sequence[str]) -> bool:
    """Say whether a table has columns of models and of questions."""
    return all(set(COLUMNS[role]) & set(header) for role in ("model", "question"))


def header_of(document: Document) -> list[str]:
    """Return the names of the columns of a table.

    Raises
    ------
    InputError
        If the file is damaged or no table.
    """
    if document.name.endswith(".parquet") or document.data.startswith(b"PAR1"):
        return list(next(iter(batches(document.path, document.shown))).schema.names)
    return next(iter(rows(document.path, document.shown)))[1]


def read(document: Document) -> list[Log]:
    """Return the rows of a table, by model and benchmark.

    Raises
    ------
    InputError
        If the file is damaged or no table, two columns may stand for one role, or a reason is none that is known.
    """
    header, columns, numbers = _columns(document)
    names = _roles(header, document.shown)
    check_header(header, document.shown, names["question"])
    taken = {role: columns[header.index(name)] for role, name in names.items()}
    for role in [role for role in ("model", "benchmark") if role in names]:
        _check_filled(names[role], taken[role], numbers, document.shown)
    groups: dict[tuple[str, str], tuple[list[dict[str, Any]], list[int]]] = {}
    unnamed = document.name.partition(".")[0]
    for place, number in enumerate(numbers):
        cells = {role: column[place] for role, column in taken.items()}
        own, places = groups.setdefault((cells["model"], cells.get("benchmark") or unnamed), ([], []))
        own.append(_row(cells, document.shown, number))
        places.append(number)
    return [
        Log(
            model,
            Records(
                document.shown,
                benchmark,
                own,
                "row",
                places,
                kind="long",
                repeat="repeat" if "repeat" in names else None,
                variant="variant" if "variant" in names else None,
                called={"id": names["question"], "score": names["grade"], **names},
            ),
        )
        for (model, benchmark), (own, places) in groups.items()
    ]


def _check_filled(name: str, cells: Sequence[str], numbers: Sequence[int], shown: str) -> None:
    """Refuse a column of names that has gaps: what an empty cell stands for is not known. One that is all empty says nothing.

    Raises
    ------
    InputError
        With the row of the first gap.
    """
    if any(cells) and not all(cells):
        row = numbers[next(place for place, cell in enumerate(cells) if not cell)]
        raise InputError(
            "the cell is empty, while the column has names in other rows",
            file=shown,
            where=f'row {row}, column "{name}"',
            todo="Fill it in",
        )


def _columns(document: Document) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the header, the columns as texts, and the number of each row."""
    if not (document.name.endswith(".parquet") or document.data.startswith(b"PAR1")):
        content = rows(document.path, document.shown)
        _, header = next(content)
        read_rows = list(content)
        if not read_rows:
            raise InputError("the table has a header but no rows", file=document.shown)
        columns = [list(column) for column in zip(*(fields for _, fields in read_rows), strict=True)]
        return header, columns, [number for number, _ in read_rows]
    header = []
    parts: list[list[str]] = []
    wanted = {name for names in COLUMNS.values() for name in names}
    size = 0
    for batch in batches(document.path, document.shown):
        header = list(batch.schema.names)
        parts = parts or [[] for _ in header]
        for name, column, part in zip(header, batch.columns, parts, strict=True):
            texts = texts_of(column) if name in wanted else [""] * len(column)
            if texts is None:
                raise InputError(
                    "the column holds neither texts nor numbers",
                    file=document.shown,
                    where=f'row {size + 1}, column "{name}"',
                    found=f"the type {column.type}",
                    expected="texts, numbers or truth values",
                    todo="Write the column as texts",
                )
            part += texts
        size += batch.num_rows
    if not size:
        raise InputError("the table has a header but no rows", file=document.shown)
    return header, parts, list(range(1, size + 1))


def _roles(header: Iterable[str], shown: str) -> dict[str, str]:
    """Return the column of each role that the table has.

    Raises
    ------
    InputError
        If a role that is needed has none, or a role has two.
    """
    given = list(header)
    names: dict[str, str] = {}
    for role, known in COLUMNS.items():
        found = [name for name in known if name in given]
        if role == "grade" and found[:1] == ["outcome"] and found[1:] == ["score"]:
            found = ["outcome"]  # as in our own tables, where the score is what was graded
        if len(found) > 1:
            raise InputError(
                f"two columns may be the {role}",
                file=shown,
                where="row 1",
                found=", ".join(f'"{name}"' for name in found),
                expected="one of them",
                todo="Rename or drop the others",
            )
        if not found and role in ("model", "question", "grade"):
            raise InputError(
                f"there is no column of the {role}",
                file=shown,
                where="row 1",
                found=", ".join(given[:8]) + (", ..." if len(given) > 8 else ""),
                expected=" or ".join(known),
                todo="Rename the column",
            )
        if found:
            names[role] = found[0]
    return names


def _row(cells: dict[str, str], shown: str, number: int) -> dict[str, Any]:
    """Return what a row tells."""
    reason = cells.get("reason") or None
    if reason is not None and reason not in REASONS:
        raise InputError(
            "this reason is not known",
            file=shown,
            where=f'row {number}, column "reason"',
            found=f'"{reason}"',
            expected=", ".join(REASONS),
            todo="Correct it, or rename the column",
        )
    grade = _grade(cells["grade"])
    return {
        "id": cells["question"] or None,
        "score": grade,
        "scores": {"grade": grade},
        "repeat": cells.get("repeat"),
        "variant": cells.get("variant"),
        "missing": reason if reason is not None or grade is not None else "not_run",
        "asked": cells.get("content") or None,
    }


def _grade(text: str) -> str | float | None:
    """Return a cell as a grade: a spelling of 1 or 0 as it is, another number as one, nothing as None."""
    text = text.strip()
    if not text:
        return None
    text = _TRUTH.get(text, text)
    if text in _SPELT or _NUMBER.fullmatch(text) is None:
        return text
    return exact(text)
