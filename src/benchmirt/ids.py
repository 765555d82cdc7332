"""Names of models and items: as parts of paths, reversible and safe, and in the order that readers expect."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

__all__ = ["natural", "slug", "unslug"]


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
