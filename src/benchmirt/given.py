"""Numbers that a caller gives: refused in a sentence where they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmirt.errors import InputError

__all__ = ["above_zero", "whole_number"]


def whole_number(value: Any, name: str) -> int:
    """Return a whole number above 0.

    Raises
    ------
    InputError
        If it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError("", where=name, found=repr(value), expected="a whole number, 1 or more")
    return int(value)


def above_zero(value: Any, name: str) -> float:
    """Return a number above 0.

    Raises
    ------
    InputError
        If it is anything else, NaN among it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise InputError("", where=name, found=repr(value), expected="a number above 0")
    return float(value)
