"""The list of items to run where not all can be: the most telling first, up to a number or a precision.

What items tell, and how the next one is chosen: :mod:`benchmirt.shortform.information`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.response import items_of
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json
from benchmirt.given import above_zero, whole_number
from benchmirt.shortform.information import Balance, bank_of, greedy, shares

__all__ = ["ShortForm", "build", "write"]

Floats = NDArray[np.float64]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShortForm:
    """A list of items.

    Attributes
    ----------
    places
        Of the chosen items among those of the calibration, best first, shape (n,).
    standard_errors
        Expected posterior standard deviation of each shown ability after each item (n, K): the root of its mean variance.
    start
        The same before any item (K,).
    """

    places: NDArray[np.intp]
    standard_errors: Floats
    start: Floats


def build(
    calibration: Calibration,
    *,
    size: int | None = None,
    standard_error: float | None = None,
    ability: str | int = "all",
    balance: Balance = "proportional",
) -> ShortForm:
    """Choose items until the list is long or precise enough.

    Parameters
    ----------
    calibration
        The items.
    size
        Items of the list; None: as many as the precision takes.
    standard_error
        Largest expected standard error of the ability, or of every ability; None: whatever the size gives. With both
        the list ends where the first is reached.
    ability
        ``all``, or the number (from 1) or name of the one that matters.
    balance
        Content balance over benchmarks.

    Raises
    ------
    InputError
        If neither size nor precision is given or one of them cannot be, there is no such ability, or all items together are not
        so many or so precise.
    """
    if size is None and standard_error is None:
        raise InputError(
            "a short form needs a size or a standard_error", where="shortform", todo="Give one of the two"
        )
    if size is not None:
        whole_number(size, "shortform.size")
    if standard_error is not None:
        above_zero(standard_error, "shortform.standard_error")
    chosen = None if ability == "all" else calibration.ability(ability, where="shortform.ability")
    total = len(calibration.items)
    if size is not None and size > total:
        raise InputError(
            "the calibration has fewer items",
            where="shortform.size",
            found=str(size),
            expected=f"at most {total}",
        )
    bank = bank_of(items_of(calibration))
    group, share = shares(calibration.benchmark_of(), balance)
    T = calibration.T
    direction = None if chosen is None else T[:, chosen]

    def errors(inverse: Floats) -> Floats:
        return np.sqrt(np.einsum("q,kt,qkl,lt->t", bank.share, T, inverse, T))

    places: list[int] = []
    found: list[Floats] = []
    wanted = slice(None) if chosen is None else slice(chosen, chosen + 1)
    for place, inverse in greedy(bank, group, share, direction):
        places.append(place)
        found.append(errors(inverse))
        reached = standard_error is not None and bool((found[-1][wanted] <= standard_error).all())
        if reached or len(places) == size:
            break
    else:
        raise InputError(
            "all items of the calibration together are less precise than that",
            where="shortform.standard_error",
            found=str(standard_error),
            expected=f"at least {found[-1][wanted].max():.3g}",
        )
    _log.info(
        "%d items; expected standard errors %s", len(places), ", ".join(f"{one:.3f}" for one in found[-1])
    )
    start = errors(
        np.broadcast_to(np.eye(calibration.dims), (len(bank.share), calibration.dims, calibration.dims))
    )
    return ShortForm(np.array(places, dtype=np.intp), np.array(found), start)


def write(form: ShortForm, calibration: Calibration, options: dict[str, Any], folder: str | Path) -> None:
    """Write ``shortform.csv``, a row per item in the order to run them, and ``shortform.json``, which says how it came about."""
    home = Path(folder)
    facts = (
        calibration.item_table[calibration.item_table["calibrated"]].iloc[form.places].reset_index(drop=True)
    )
    columns = {f"standard_error_{k + 1}": form.standard_errors[:, k] for k in range(calibration.dims)}
    kept = facts[["question_id", "benchmark", "category", "testlet", "mean"]]
    rank = pd.DataFrame({"rank": np.arange(1, len(facts) + 1)})
    write_csv(pd.concat([rank, kept, pd.DataFrame(columns)], axis=1), home / "shortform.csv")
    write_json(
        {
            "simulated": calibration.simulated,
            "items": len(form.places),
            "of": len(calibration.items),
            "abilities": {
                f"standard_error_{k + 1}": {
                    "ability": label,
                    "without_items": form.start[k],
                    "expected": form.standard_errors[-1, k],
                }
                for k, label in enumerate(calibration.labels)
            },
            "benchmarks": facts["benchmark"].value_counts(sort=False).to_dict(),
            "options": options,
            "criterion": "D-optimal: mean log determinant of the information over N(0, I)"
            if options["ability"] == "all"
            else "c-optimal: mean posterior variance of the ability over N(0, I)",
            "calibration": calibration.origin,
            "provenance": provenance.record(data_hash=calibration.about["provenance"]["data_hash"]),
        },
        home / "shortform.json",
    )
