"""Which items a claim speaks of, whether the study has them, and whether there are enough."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.claims.spec import Part, Selection
from benchmirt.claims.verdict import MIN_ITEMS
from benchmirt.errors import nearest

__all__ = ["absent", "expand", "mask", "shown", "too_few"]

Mask = NDArray[np.bool_]


def _matches(values: pd.Series, wanted: Iterable[str]) -> Mask:
    """Say which values are wanted; ``*`` stands for any text."""
    found = np.zeros(len(values), dtype=bool)
    plain = values.astype("string")
    for one in wanted:
        if "*" in one:
            pattern = ".*".join(map(re.escape, one.split("*")))
            hit = plain.str.fullmatch(pattern, flags=re.DOTALL)
        else:
            hit = plain == one
        found |= hit.fillna(False).to_numpy(dtype=bool)
    return found


def mask(items: pd.DataFrame, select: Selection, excepted: Selection | None = None) -> Mask:
    """Return which items are selected.

    Parameters
    ----------
    items
        The items table (J rows).
    select
        Column -> values; all columns must match, with any of their values. Empty: every item.
    excepted
        Items that match all of this are left out again.

    Returns
    -------
    ndarray of bool, shape (J,)
    """
    chosen = np.ones(len(items), dtype=bool)
    for column, values in select.items():
        chosen &= _matches(items[column], values) if column in items else False
    if excepted:
        chosen &= ~mask(items, excepted)
    return chosen


def shown(select: Selection, excepted: Selection | None = None) -> str:
    """Write a selection in words: ``benchmark harmbench, subcategory_one copyright``."""
    text = ", ".join(f"{column} {' or '.join(values)}" for column, values in select.items()) or "all items"
    return f"{text}, without {shown(excepted)}" if excepted else text


def absent(items: pd.DataFrame, select: Selection, excepted: Selection | None = None) -> str | None:
    """Say in one sentence what of a selection the study does not have; None if it has all of it."""
    for column, values in select.items():
        known = items[column].dropna().astype(str).unique() if column in items else np.array([], dtype=str)
        if len(known) == 0:
            return f"no item of this study has a {column}"
        missing = [value for value in values if not _matches(pd.Series(known), [value]).any()]
        if missing:
            near = nearest(missing[0], known) if len(missing) == 1 else None
            hint = f' (it has "{near}")' if near and len(near) <= 40 else ""
            return f"this study has no items with {column} {', '.join(missing)}{hint}"
    if not mask(items, select, excepted).any():
        return f"this study has no items with {shown(select, excepted)}"
    return None


def too_few(items: pd.DataFrame, chosen: Mask) -> str | None:
    """Say in one sentence that fewer than 20 of the chosen items are usable, and why; else None."""
    kept = items["kept"].to_numpy(dtype=bool)
    usable = int((chosen & kept).sum())
    if usable >= MIN_ITEMS:
        return None
    total = int(chosen.sum())
    reasons = items.loc[chosen & ~kept, "drop_reason"].astype("string").fillna("dropped").value_counts()
    dropped = "; ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    return f"only {usable} of {total:,} items are usable, {MIN_ITEMS} are needed" + (
        f" ({dropped})" if dropped else ""
    )


def expand(part: Part, items: pd.DataFrame) -> list[Part]:
    """Return one part for each value of the column named by ``each``: those asked for, or else all there are.

    A value that is asked for and absent gets its part all the same, which then says so.
    """
    if part.each is None:
        return [part]
    listed = part.select.get(part.each, ())
    present = items.loc[mask(items, part.select, part.excepted), part.each].dropna().astype(str)
    values = [one for one in listed if "*" not in one]
    if not listed or len(values) < len(listed):
        values += [one for one in present.unique() if one not in values]
    return [
        replace(
            part,
            name=f"{value}: {part.name}",
            select={**part.select, part.each: (value,)},
            each=None,
        )
        for value in values
    ]
