"""Names of models and items: as parts of paths, reversible and safe, and in the order that readers expect."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote, unquote

__all__ = ["code_point", "lookalike", "natural", "slug", "unseen", "unslug"]

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})  # categories of Unicode
# Characters of other categories that show nothing: joiners, fillers, variation selectors.
_BLANK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)


def slug(name: str) -> str:
    """Return a path-safe form of `name` from which :func:`unslug` gets it back.

    Letters, digits, ``-``, ``_``, ``~`` and inner ``.`` stay; every other byte of the UTF-8 form
    becomes ``=XX``.

    Raises
    ------
    ValueError
        If `name` is empty.

    Examples
    --------
    >>> slug("meta-llama/Llama 3@fp8")
    'meta-llama=2FLlama=203=40fp8'
    """
    if not name:
        raise ValueError("an empty name has no slug")
    safe = quote(name, safe="").replace("%", "=")
    return "=2E" + safe[1:] if safe.startswith(".") else safe


def unslug(text: str) -> str:
    """Return the name whose slug is `text`.

    Raises
    ------
    ValueError
        If `text` is not a slug.
    """
    name = unquote(text.replace("=", "%"), errors="strict")
    if not name or slug(name) != text:
        raise ValueError(f"{text!r} is not a slug")
    return name


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts names as readers expect: ``q2`` before ``q10``."""
    return tuple(
        (0, int(piece)) if piece.isdigit() and piece.isascii() else (1, piece)
        for piece in re.split(r"([0-9]+)", name)
        if piece
    )


def unseen(name: str) -> str | None:
    r"""Return the first character of `name` that cannot be seen, or that turns the order of others; None if all can.

    Control and format characters, marks of direction, spaces other than the plain one, and fillers.

    Examples
    --------
    >>> unseen("a\u202eb") == "\u202e"
    True
    """
    if name.isascii() and name.isprintable():
        return None
    return next(
        (one for one in name if one != " " and (unicodedata.category(one) in _UNSEEN or one in _BLANK)),
        None,
    )


def code_point(character: str) -> str:
    r"""Return how messages call a character.

    Examples
    --------
    >>> code_point("\u202e")
    'U+202E, right-to-left override'
    """
    called = unicodedata.name(character, "control character").lower()
    return f"U+{ord(character):04X}, {called}"


def lookalike(names: Iterable[str]) -> tuple[int, int] | None:
    """Return the places of the first two names that differ in their Unicode form only, or None.

    An accented letter may be one character or two; readers cannot tell the two names apart.
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if name.isascii():
            continue
        before = seen.setdefault(unicodedata.normalize("NFC", name), place)
        if before != place:
            return before, place
    return None
