"""Results of safety-eval: JSON, one object ``{"task:config": [rows]}`` per file.

::

    {folder}/{model}/all.json, or results.{task}.json per task

A row is a prompt; ``id`` says which. Which fields the judge leaves depends on the task. Tasks that no scoring
rule wants are passed over, and so is every other file in the folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_bytes
from benchmirt.scoring import Scorer
from benchmirt.sources.folders import result_files
from benchmirt.sources.raw import Found

__all__ = ["read"]


class Results:
    """The rows of one task.

    Parameters
    ----------
    file
        The file in messages.
    task
        ``task:config``.
    rows
        Objects.
    """

    def __init__(self, file: str, task: str, rows: list[dict[str, Any]]) -> None:
        self.file = file
        self.task = task
        self.size = len(rows)
        self._rows = rows

    def column(self, field: str) -> list[Any] | None:
        """Return a field of all rows, None where a row lacks it."""
        name, *inner = field.split(".")
        values = [row.get(name) for row in self._rows]
        for key in inner:
            values = [value.get(key) if isinstance(value, dict) else None for value in values]
        return values

    def lengths(self, field: str) -> list[int | None] | None:
        """Return the number of entries of a field that holds lists."""
        return [len(value) if isinstance(value, list) else None for value in self.column(field) or []]

    def where(self, row: int, field: str) -> str:
        """Return how messages call a field of a row."""
        return f'"{self.task}", row {row + 1}, field "{field}"'


class _TwiceError(ValueError):
    """A key that stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object, and refuse one that names a key twice: JSON would keep the last in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return found


def _damaged(shown: str, why: str, where: str | None = None) -> InputError:
    return InputError(
        f"this is not JSON, or it was cut off ({why})",
        file=shown,
        where=where,
        todo="Fetch it again, or take the folder out",
    )


def _parsed(data: bytes, shown: str) -> dict[str, Any]:
    """Return the object that a file holds."""
    if not data:
        raise InputError("the file is empty", file=shown, todo="Fetch it again")
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except _TwiceError as error:
        raise InputError(
            "a key stands twice in one object",
            file=shown,
            found=f'"{error}" twice',
            todo="Put the runs in files of their own, results.{task}.json",
        ) from None
    except UnicodeDecodeError as error:
        raise InputError("the text is not UTF-8", file=shown, where=f"byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise _damaged(shown, error.msg, f"line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise _damaged(shown, str(error)) from None
    except RecursionError:
        raise _damaged(shown, "nested too deeply") from None
    if not isinstance(content, dict):
        raise InputError(
            "",
            file=shown,
            found=f"a {_kind(content)}",
            expected='one object {"task:config": [rows]}',
            todo="Fetch it again, or take the file out",
        )
    return content


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), "null")


def _rows(rows: Any, task: str, shown: str) -> list[dict[str, Any]]:
    """Check that a task holds a list of objects."""
    if not isinstance(rows, list):
        raise InputError(
            "", file=shown, where=f'"{task}"', found=f"a {_kind(rows)}", expected="a list of rows"
        )
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(
                "",
                file=shown,
                where=f'"{task}", row {number}',
                found=f"a {_kind(row)}",
                expected="an object with the fields of a row",
            )
    return rows


def read(folder: Path, model: str, shown: str, scorer: Scorer) -> Found:
    """Read the results of one model.

    Parameters
    ----------
    folder
        The model's folder.
    model
        Its name.
    shown
        What messages call the folder.
    scorer
        The rules of this format.

    Raises
    ------
    InputError
        If a file is no JSON, was cut off, or is not what it should be; if no task in it is known.
    """
    tables: list[Results] = []
    files: dict[str, str] = {}
    unused: list[str] = []
    for name in result_files(folder, shown):
        place = f"{shown}/{name}"
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise InputError("this file cannot be read", file=place, found=str(error.strerror)) from None
        files[name] = sha256_bytes(data)
        for task, rows in _parsed(data, place).items():
            if scorer.of(task):
                tables.append(Results(place, task, _rows(rows, task, place)))
            else:
                unused.append(task)
    if not tables:
        known = sorted({rule.benchmark for rule in scorer.rules})
        near = nearest(unused[0].partition(":")[0], known) if unused else None
        raise InputError(
            "no task in here has a scoring rule",
            file=shown,
            found=", ".join(f'"{ascii(task)[1:-1]}"' for task in unused[:5]) or "nothing",
            expected=", ".join(f"{name}:..." for name in known),
            todo=f'Did you mean "{near}"?' if near else "Write rules of your own and name them in scoring",
        )
    return Found(tables=tables, files=files, unused=unused, runs={}, known_as=None)
