"""Whether the study has a dimension at all: a claim that rests on it falls with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmirt.claims.inputs import Unavailable
from benchmirt.claims.verdict import (
    EXPLORATORY,
    MIN_NULLS,
    MOST_ABSENT,
    NOT_REPRODUCED,
    P_NEEDED,
    is_trial,
    number,
)

__all__ = ["failings", "missing_dimension", "p_needed", "trial"]

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def p_needed(stability: Mapping[str, Any]) -> float:
    """Return the largest p-value with which a dimension passes."""
    return float(stability.get("p_needed", P_NEEDED))


def trial(evidence: Mapping[str, Any]) -> Unavailable | None:
    """Say that a test is a trial, which gives no verdict; None if it is not.

    Parameters
    ----------
    evidence
        ``stability.json``, or the eigenvalues of ``number.json``, with `p_needed` and perhaps `replicates`.
    """
    if not is_trial(evidence):
        return None
    count = round(1 / p_needed(evidence)) - 1
    sets = f"{count} simulated data set{'s' * (count != 1)}"
    return Unavailable(f"a trial: chance was judged from {sets} and a verdict needs {MIN_NULLS}", EXPLORATORY)


def failings(entry: Mapping[str, Any], needed: float) -> str:
    """Say which of the conditions a dimension that does not pass fails.

    Parameters
    ----------
    entry
        The dimension's entry of ``stability.json``.
    needed
        Largest p-value with which it would pass.
    """
    told = []
    for key, what in (("p_congruence", "loadings come"), ("p_ability_r", "abilities come")):
        p = entry.get(key)
        if p is not None and p > needed:
            told.append(f"its {what} back no better than in data simulated without it (p = {number(p)})")
    for key, what in (
        ("p_lineages", "it does not hold over lineages"),
        ("p_scrambled", "its loadings agree over halves no more than those of scrambled items do"),
    ):
        p = entry.get(key)
        if p is not None and p > P_NEEDED:
            told.append(f"{what} (p = {number(p)})")
    absent = entry.get("absent")
    if absent is not None and absent > MOST_ABSENT:
        told.append(f"a half lacks it in {absent:.0%} of the splits")
    return "; ".join(told) or "it does not come back in halves of the models and items"


def missing_dimension(stability: Mapping[str, Any], needed: int) -> Unavailable | None:
    """Say why the study has no such dimension; None if this one and all before it pass their nulls.

    Parameters
    ----------
    stability
        ``stability.json``.
    needed
        Number of the dimension, from 1.

    Returns
    -------
    Unavailable or None
        *not reproduced* if a dimension was tested and fails, *cannot test* if it was not tested, *exploratory* if the
        test was a trial, whatever came out.
    """
    if stability.get("why_not"):
        return Unavailable(f"the dimensions could not be tested: {stability['why_not']}")
    tested = {int(entry["dimension"]): entry for entry in stability.get("dimensions") or ()}
    for k in range(1, needed + 1):
        if k not in tested:
            return Unavailable(f"dimension {k} was not tested: the fits have {len(tested)}")
        if tested[k].get("passes") is None:
            return Unavailable(f"dimension {k} was not tested against its null")
    tried = trial(stability)
    if tried is not None:
        return tried
    for k in range(1, needed + 1):
        if not tested[k]["passes"]:
            ordinal = _ORDINALS[needed - 1] if needed <= len(_ORDINALS) else f"{needed}th"
            which = "" if k == needed else f"dimension {k} is missing already: "
            reason = failings(tested[k], p_needed(stability))
            return Unavailable(f"no {ordinal} dimension: {which}{reason}", NOT_REPRODUCED)
    return None
