"""Faults of the user's input, told in one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["InputError", "faults", "nearest", "visible"]

_LONGEST = 500


def visible(text: str, keep: str = "") -> str:
    r"""Return `text` with each character that cannot be seen written as its code, such as ``\u202e``.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else ascii(one)[1:-1] for one in text)


def _told(text: str | None) -> str | None:
    """Return a part of a sentence on one line, and cut where it would never end."""
    if text is None:
        return None
    text = visible(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 50]}... ({len(text)} characters)"


class InputError(Exception):
    """Something that the user gave is wrong, and this says what, where and what to do.

    Parameters
    ----------
    what
        The fault in a few words, without a full stop. May be empty when `found` says it all.
    file
        The file that holds the fault.
    where
        The place in it: ``row 17, column "m"`` (a row of a text file is its 1-based line, header included)
        or a key path of the configuration.
    found, expected
        What stands there and what may stand there.
    looked_for
        The full path of something that is not there.
    todo
        The way out: one short sentence without a full stop.

    Examples
    --------
    >>> print(InputError("", file="x.csv", where='row 17, column "m"', found='"2"',
    ...                  expected="1, 0 or empty", todo="Correct the value or drop the column"))
    x.csv: row 17, column "m": found "2"; expected 1, 0 or empty. Correct the value or drop the column.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        where: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        todo: str | None = None,
        looked_for: str | Path | None = None,
    ) -> None:
        self.what = visible(what, keep="\n")
        self.file = _told(None if file is None else str(file))
        self.where = _told(where)
        self.found = _told(found)
        self.expected = _told(expected)
        self.todo = _told(todo)
        self.looked_for = _told(None if looked_for is None else str(looked_for))
        super().__init__(
            self.what, self.file, self.where, self.found, self.expected, self.todo, self.looked_for
        )

    def __str__(self) -> str:
        contrast = "; ".join(
            f"{label} {text}"
            for label, text in (
                ("looked for", self.looked_for),
                ("found", self.found),
                ("expected", self.expected),
            )
            if text is not None
        )
        parts = [part for part in (self.file, self.where, self.what, contrast) if part]
        sentence = ": ".join(parts)
        if not sentence.endswith("."):
            sentence += "."
        if self.todo:
            sentence += f" {self.todo}" + ("" if self.todo.endswith((".", "?", "!")) else ".")
        return sentence

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, self.args)


def _rebuild(
    what: str,
    file: str | None,
    where: str | None,
    found: str | None,
    expected: str | None,
    todo: str | None,
    looked_for: str | None,
) -> InputError:
    return InputError(
        what,
        file=file,
        where=where,
        found=found,
        expected=expected,
        todo=todo,
        looked_for=looked_for,
    )


def faults(errors: Sequence[InputError]) -> InputError:
    """Join several faults into one, a line each; a single one is returned as it is.

    Raises
    ------
    ValueError
        If there are none.
    """
    if not errors:
        raise ValueError("no faults to join")
    if len(errors) == 1:
        return errors[0]
    lines = "\n".join(f"  {number}. {error}" for number, error in enumerate(errors, start=1))
    return InputError(f"{len(errors)} faults:\n{lines}")


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that `word` most probably stands for, or None if none is near.

    Compares without regard to case, ``-`` and ``_``; ties go to the first choice.
    """

    def plain(text: str) -> str:
        return text.casefold().replace("-", "").replace("_", "").replace(" ", "")

    by_plain: dict[str, str] = {}
    for choice in choices:
        by_plain.setdefault(plain(choice), choice)
    found = difflib.get_close_matches(plain(word), list(by_plain), n=1, cutoff=0.55)
    return by_plain[found[0]] if found else None
