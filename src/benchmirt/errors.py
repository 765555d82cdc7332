"""Faults of the user's input, told in one clear sentence."""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["InputError", "faults", "main_guard", "nearest"]

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


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
    ) -> None:
        self.what = what
        self.file = None if file is None else str(file)
        self.where = where
        self.found = found
        self.expected = expected
        self.todo = todo
        super().__init__(what, self.file, where, found, expected, todo)

    def __str__(self) -> str:
        contrast = "; ".join(
            f"{label} {text}"
            for label, text in (("found", self.found), ("expected", self.expected))
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
        return (_rebuild, (self.what, self.file, self.where, self.found, self.expected, self.todo))


def _rebuild(
    what: str, file: str | None, where: str | None, found: str | None, expected: str | None, todo: str | None
) -> InputError:
    return InputError(what, file=file, where=where, found=found, expected=expected, todo=todo)


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


def _failure(information: Any) -> logging.LogRecord:
    return logging.LogRecord("benchmirt", logging.ERROR, __file__, 0, "unexpected failure", None, information)


@contextmanager
def main_guard(log: str | Path | None = None) -> Iterator[None]:
    """Run the body of a script: log to the rule's log and to stderr, and end faults of the input politely.

    An :class:`InputError` is written as one sentence to both and ends the program with exit status 1 and no
    traceback. The traceback of any other exception is written to the log, and the exception is raised again.

    Parameters
    ----------
    log
        The rule's log file; its folder is made if needed. None: stderr only.
    """
    root = logging.getLogger()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    to_file: logging.Handler | None = None
    if log is not None:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        to_file = logging.FileHandler(log, mode="w", encoding="utf-8")
        handlers.append(to_file)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(_FORMAT))
        root.addHandler(handler)
    level = root.level
    root.setLevel(logging.INFO)
    try:
        yield
    except InputError as error:
        logging.getLogger("benchmirt").error("%s", error)
        raise SystemExit(1) from None
    except Exception:
        if to_file is not None:
            to_file.handle(_failure(sys.exc_info()))
        raise
    finally:
        root.setLevel(level)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
