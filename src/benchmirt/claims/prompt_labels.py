"""Labels that an outside judge gave the prompts: a table of its own. Imports nothing heavy."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from benchmirt.errors import InputError, nearest

__all__ = ["VALUES", "read_labels"]

VALUES = {"-1": -1.0, "0": 0.0, "1": 1.0}


def read_labels(path: str | Path) -> dict[str, float]:
    """Read a table of prompt labels: columns question_id and label, no others; labels -1, 0 or 1.

    Raises
    ------
    InputError
        If the file is no such table; the sentence names the row.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            columns = list(reader.fieldnames or [])
            if sorted(columns) != ["label", "question_id"]:
                near = next(
                    (
                        nearest(one, ("question_id", "label"))
                        for one in columns
                        if one not in ("question_id", "label")
                    ),
                    None,
                )
                raise InputError(
                    "a table of prompt labels has other columns",
                    file=path,
                    found=", ".join(map(str, columns)) or "no row",
                    expected="question_id, label",
                    todo=f'Did you mean "{near}"?' if near else None,
                )
            labels: dict[str, float] = {}
            for place, row in enumerate(reader, start=2):
                _put(labels, row, place, path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            "this is not a readable table of prompt labels", file=path, found=str(error)
        ) from error
    return labels


def _put(labels: dict[str, float], row: dict[str, Any], place: int, path: str | Path) -> None:
    """Add one row to the labels."""
    question, label = row["question_id"], row["label"]
    where = f"row {place}"
    if None in row or question is None or label is None or not question:
        raise InputError(
            "", file=path, where=where, found="another number of values", expected="question_id, label"
        )
    if label not in VALUES:
        raise InputError(
            "",
            file=path,
            where=f"{where}, label",
            found=f'"{label}"',
            expected="-1 (safe), 0 (controversial) or 1 (unsafe)",
        )
    if question in labels:
        raise InputError(
            "two rows label this prompt", file=path, where=where, found=question, todo="Keep one of them"
        )
    labels[question] = VALUES[label]
