"""Files of raw results as bytes, as JSON and as rows: what every reader of them shares.

JSON is read strictly: a key that stands twice in one object, of which Python would keep the last in silence, is a
fault, and so is a file that was cut off. Messages name places and kinds of values, never texts of questions or
answers.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmirt import paths
from benchmirt.errors import InputError
from benchmirt.sources.reading import exact

__all__ = [
    "Document",
    "Log",
    "Records",
    "as_text",
    "check_whole",
    "kind_of",
    "less_is_better",
    "parsed",
    "read_bytes",
    "right_answer",
    "several_grades",
]

_LFS = b"version https://git-lfs"
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
}


class Records:
    """The rows of one task, as objects.

    Parameters
    ----------
    file
        The file in messages.
    task
        The task's name.
    rows
        Objects.
    label
        What messages call a row; its number follows.
    numbers
        The number of each row; from 1 on, if None.
    kind
        The format, where files of several are read together.
    repeat
        Field that tells repeats of a question apart, such as ``epoch``.
    variant
        Field that tells apart several grades of one answer, such as ``filter``.
    faults
        Fields that cannot be given, and why: raised when they are asked for.
    called
        What the file calls fields that have another name here.
    """

    def __init__(
        self,
        file: str,
        task: str,
        rows: Sequence[dict[str, Any]],
        label: str = "row",
        numbers: Sequence[int] | None = None,
        *,
        kind: str | None = None,
        repeat: str | None = None,
        variant: str | None = None,
        faults: Mapping[str, InputError] | None = None,
        called: Mapping[str, str] | None = None,
    ) -> None:
        self.file = file
        self.task = task
        self.kind = kind
        self.size = len(rows)
        self.repeat = repeat
        self.variant = variant
        self._rows = rows
        self._label = label
        self._numbers = numbers
        self._faults = faults or {}
        self._called = called or {}

    def column(self, field: str) -> list[Any] | None:
        """Return a field of all rows, None where a row lacks it.

        Raises
        ------
        InputError
            If the rows do not tell which of several values it is.
        """
        if field in self._faults:
            raise self._faults[field]
        name, *inner = field.split(".")
        values = [row.get(name) for row in self._rows]
        for key in inner:
            values = [value.get(key) if isinstance(value, dict) else None for value in values]
        return values

    def has(self, field: str) -> bool:
        """Say whether any row has a field, whatever is in it."""
        names = field.split(".")
        return any(_holds(row, names) for row in self._rows)

    def lengths(self, field: str) -> list[int | None] | None:
        """Return the number of entries of a field that holds lists."""
        return [len(value) if isinstance(value, list) else None for value in self.column(field) or []]

    def where(self, row: int, field: str) -> str:
        """Return how messages call a field of a row."""
        number = row + 1 if self._numbers is None else self._numbers[row]
        return f'{self._label} {number}, {"column" if self.kind == "long" else "field"} "{self._called.get(field, field)}"'


def _holds(value: Any, names: Sequence[str]) -> bool:
    """Say whether objects one in the other have these keys."""
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def kind_of(value: object) -> str:
    """Return how messages call the type of a JSON value, with its article."""
    return _KINDS.get(type(value), "nothing (null)")


def read_bytes(path: Path, shown: str) -> bytes:
    """Return a file's content.

    Raises
    ------
    InputError
        If it is no ordinary file (a pipe would be waited for, a device has no end), or cannot be read.
    """
    gone = paths.absent(path, "file")
    if gone is not None:
        raise InputError(gone.what, file=shown, todo="Take it out, or put the file itself there")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("this file cannot be read", file=shown, found=str(error.strerror)) from None


def check_whole(data: bytes, shown: str, expected: str) -> None:
    """Stop at a file that is empty, or a pointer in the place of the data.

    Raises
    ------
    InputError
        If it is.
    """
    if not data:
        raise InputError("the file is empty", file=shown, todo="Fetch it again")
    if data.startswith(_LFS):
        raise InputError(
            "",
            file=shown,
            found="a Git LFS pointer instead of the data",
            expected=expected,
            todo="Run git lfs pull",
        )


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


def parsed(
    data: bytes, shown: str, where: str | None = None, todo: str = "Keep one of the two, or fetch it again"
) -> Any:
    """Return the JSON value that some bytes hold.

    Parameters
    ----------
    data
        UTF-8 text.
    shown
        The file in messages.
    where
        The place in it, such as a line.
    todo
        The way out of a key that stands twice.

    Raises
    ------
    InputError
        If they are no JSON, were cut off, are no UTF-8, nest too deeply, or an object in them names a key twice.
    """
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once, parse_float=exact)
    except _TwiceError as error:
        raise InputError(
            "a key stands twice in one object", file=shown, where=where, found=f'"{error}" twice', todo=todo
        ) from None
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1}"
        raise InputError(
            "the text is not UTF-8",
            file=shown,
            where=f"{where}, {place}" if where else place,
            found=f"the byte 0x{data[error.start]:02x}",
            todo="Save the file as UTF-8",
        ) from None
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        raise _damaged(
            shown, error.msg, f"{where}, {place}" if where else f"line {error.lineno}, {place}"
        ) from None
    except ValueError as error:
        raise _damaged(shown, str(error), where) from None
    except RecursionError:
        raise _damaged(shown, "nested too deeply", where) from None


@dataclass(frozen=True)
class Log:
    """What a file tells of one model and one task.

    Attributes
    ----------
    model
        The model as the file names it, or None.
    table
        The rows.
    run
        How the run ended, if not well.
    """

    model: str | None
    table: Records
    run: str | None = None


@dataclass(frozen=True)
class Document:
    """A file that may hold results.

    Attributes
    ----------
    path
        Where it lies.
    shown
        What messages call it.
    data
        Its content.
    """

    path: Path
    shown: str
    data: bytes

    @property
    def name(self) -> str:
        """Its name, without folders."""
        return self.path.name

    @functools.cached_property
    def is_archive(self) -> bool:
        """Whether it is a ZIP archive."""
        return self.data.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    @functools.cached_property
    def is_table(self) -> bool:
        """Whether it is a table: CSV, compressed or not, or Parquet."""
        return self.name.endswith((".csv", ".csv.gz", ".parquet")) or self.data.startswith(b"PAR1")

    @functools.cached_property
    def is_lines(self) -> bool:
        """Whether it holds a JSON value per line."""
        if self.name.endswith((".jsonl", ".jsonlines")):
            return True
        first, _, rest = self.data.partition(b"\n")
        if not rest.strip():
            return False
        try:
            json.loads(first.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return False
        return True

    @functools.cached_property
    def value(self) -> Any:
        """The JSON value of the whole file.

        Raises
        ------
        InputError
            If it is no JSON.
        """
        return parsed(self.data, self.shown)

    @functools.cached_property
    def first(self) -> Any:
        """The first JSON value: of the first line that is not blank, or of the whole file.

        Raises
        ------
        InputError
            If it is no JSON, or there is none.
        """
        if not self.is_lines:
            return self.value
        for _, value in self._lines():
            return value
        raise InputError("the file has no rows", file=self.shown, todo="Fetch it again")

    def rows(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Return the objects of a file with one per line, and the number of each one's line.

        Raises
        ------
        InputError
            If a line is no JSON, or no object.
        """
        pairs = list(self._lines()) if self.is_lines else [(1, self.value)]
        for number, row in pairs:
            if not isinstance(row, dict):
                raise InputError(
                    "",
                    file=self.shown,
                    where=f"line {number}",
                    found=kind_of(row),
                    expected="an object with the fields of a row",
                )
        return [row for _, row in pairs], [number for number, _ in pairs]

    def beside(self, name: str) -> Document | None:
        """Return the file of another name in the same folder, or None if there is none."""
        path = self.path.with_name(name)
        shown = self.shown[: len(self.shown) - len(self.name)] + name
        return Document(path, shown, read_bytes(path, shown)) if path.is_file() else None

    def _lines(self) -> Iterator[tuple[int, Any]]:
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            if line.strip():
                yield number, parsed(line, self.shown, f"line {number}")


def as_text(value: Any) -> str | None:
    """Return a JSON value as a text that is the same for equal values; None for nothing, or what nests too deeply."""
    if value is None:
        return None
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:  # nested almost too deeply to be read
        return None


def right_answer(target: Any, choices: Any) -> str | None:
    """Return the right answer as a text, whatever its letter: of a list of one the entry, of a letter its option.

    Parameters
    ----------
    target
        A text, a letter, or a list of them.
    choices
        The answer options; anything else than a list where there are none.
    """
    answers = target if isinstance(target, list) else [target]
    if isinstance(choices, list):
        places = {chr(ord("A") + place): choice for place, choice in enumerate(choices[:26])}
        answers = [places.get(one, one) if isinstance(one, str) else one for one in answers]
    known = sorted(text for one in answers if (text := as_text(one)) is not None)
    return "\x1e".join(known) or None


def less_is_better(file: str, name: str, said_by: str) -> InputError:
    """Tell that the lower grade is the better one, and no rule says so: read as it stands, the answers were turned round.

    Parameters
    ----------
    file
        The file in messages.
    name
        The grade.
    said_by
        The file that says so.
    """
    return InputError(
        "the lower grade is the better one, and no rule says so",
        file=file,
        found=f'"{name}", of which {said_by} says so',
        todo=f"Name it in a scoring rule: one: {{field: scores.{name}, is: false}}, or at_most in the place of is",
    )


def several_grades(file: str, names: Iterable[str], field: str = "scores") -> InputError:
    """Tell that rows hold several grades, and no rule says which one counts.

    Parameters
    ----------
    file
        The file in messages.
    names
        The grades.
    field
        The field whose parts they are.
    """
    found = list(names)
    return InputError(
        "the rows hold several grades, and no rule says which one counts",
        file=file,
        found=", ".join(found[:8]) + (", ..." if len(found) > 8 else ""),
        expected="one of them",
        todo=f"Name it in a scoring rule: one: {{field: {field}.{found[0]}, is: true}}",
    )
