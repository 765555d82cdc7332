"""Progress: a bar on a terminal, a plain line now and then in a batch log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["progress"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_LINES = 30.0


def progress(iterable: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """Yield the entries of `iterable` and tell how far it is.

    Parameters
    ----------
    iterable
        The work.
    total
        The number of entries if known; taken from ``len`` where there is one.
    what
        The work in a few words, such as ``"splits"``.

    Notes
    -----
    On a terminal this is a tqdm bar. Elsewhere it logs one line at least 30 seconds after the last one and,
    for work that took that long, one at the end, so that a batch log stays readable.
    """
    count = total if total is not None else getattr(iterable, "__len__", lambda: None)()
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(iterable, total=count, desc=what, leave=False)
        return
    of = "" if count is None else f" of {count}"
    start = last = time.monotonic()
    done = 0
    for entry in iterable:
        yield entry
        done += 1
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            _log.info("%s: %d%s after %.0f s", what, done, of, now - start)
    if last > start:
        _log.info("%s: %d%s, done after %.0f s", what, done, of, time.monotonic() - start)
