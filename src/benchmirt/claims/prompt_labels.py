"""Labels that an outside judge gave the prompts: a table of its own. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from benchmirt.errors import InputError, nearest
from benchmirt.sources.reading import read_rows

__all__ = ["VALUES", "read_labels"]

VALUES = {"-1": -1.0, "0": 0.0, "1": 1.0}


def read_labels(path: str | Path) -> dict[str, float]:
    """Read a table of prompt labels: columns question_id and label, no others; labels -1, 0 or 1.

    Raises
    ------
    InputError
        If the file is no such table; the sentence names the row.
    """
    columns, rows = read_rows(Path(path), str(path))
    if sorted(columns) != ["label", "question_id"]:
        unknown = [one for one in columns if one not in ("question_id", "label")]
        near = nearest(unknown[0], ("question_id", "label")) if unknown else None
        raise InputError(
            "a table of prompt labels has other columns",
            file=path,
            found=", ".join(columns),
            expected="question_id, label",
            todo=f'Did you mean "{near}"?' if near else None,
        )
    labels: dict[str, float] = {}
    for place, row in rows:
        _put(labels, row, place, path)
    return labels


def _put(labels: dict[str, float], row: dict[str, str], place: int, path: str | Path) -> None:
    """Add one row to the labels."""
    question, label = row["question_id"], row["label"]
    where = f"row {place}"
    if not question:
        raise InputError("", file=path, where=where, found="no question_id", expected="the id of a question")
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
