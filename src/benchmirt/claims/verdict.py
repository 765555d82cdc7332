"""Regions, intervals and verdicts: when a claim counts as reproduced.

An interval wholly inside the claim's region says *reproduced*, wholly outside *not reproduced*, and across
the border, or just touching it, *inconclusive*. A claim of several parts says that all of them hold, so it
is reproduced if every part is. Asking for every interval to lie inside is an intersection-union test and
keeps its level with any number of parts (Berger 1982, *Technometrics* 24, 295-300).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CANNOT_TEST",
    "DIFFERS",
    "EXPLORATORY",
    "INCONCLUSIVE",
    "MATCHES",
    "MIN_ITEMS",
    "MIN_MODELS",
    "NOT_COMPARED",
    "NOT_REPRODUCED",
    "REPRODUCED",
    "Region",
    "absolute",
    "absolute_difference",
    "combine",
    "combine_published",
    "folded",
    "is_trial",
    "judge",
    "number",
]

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
EXPLORATORY = "exploratory"
CANNOT_TEST = "cannot test"
MATCHES = "matches"
DIFFERS = "differs"
NOT_COMPARED = "not compared"

MIN_MODELS = 30
"""With fewer models an estimate is shown as exploratory, without a verdict."""
MIN_ITEMS = 20
"""With fewer usable items a selection cannot be judged."""
P_NEEDED = 0.01
"""Largest p-value with which a dimension passes."""
MOST_ABSENT = 0.025
"""Largest share of splits in which a half may lack a dimension that passes, as in the stability test."""
MIN_NULLS = 99
"""With fewer simulated data sets no p-value can be as small as that: such a run is a trial."""

Bounds = tuple[float, float]


def number(value: float, unit: str = "") -> str:
    """Write a number as regions and reasons do: ``.05``, ``-.90``, ``45``, ``34,301``, ``.0099``."""
    if unit == "count":
        return f"{value:,.0f}"
    if value == round(value):
        return f"{value:.0f}"
    if unit == "gain":
        return f"{value:.3f}".replace("0.", ".", 1)
    if unit == "degrees":
        return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"
    text = f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.2g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def bound(value: float, unit: str = "") -> str:
    """Write a bound of a region: as other numbers, but with all its digits, since what it borders on depends on them."""
    text = number(value, unit)
    if unit == "count" or abs(float(text.replace(",", "")) - value) <= 1e-9:
        return text
    whole = f"{value:.10g}"
    return whole.replace("0.", ".", 1) if whole.startswith(("0.", "-0.")) else whole


@dataclass(frozen=True)
class Region:
    """Where a claim is true: between two bounds, either of which may be open.

    Attributes
    ----------
    low, high
        Bounds in the unit of the statistic; None is open.
    text
        The region in words.
    """

    low: float | None
    high: float | None
    text: str

    @classmethod
    def build(cls, low: float | None, high: float | None, unit: str = "", text: str | None = None) -> Region:
        """Return a region and write it in words: ``above 0``, ``at most 45 degrees``."""
        if text is None:
            ending = " degrees" if unit == "degrees" else ""
            if low is not None and high is not None:
                text = f"between {bound(low, unit)} and {bound(high, unit)}{ending}"
            elif low is not None:
                text = f"above {bound(low, unit)}{ending}"
            elif high is not None:
                text = f"{'at most' if unit == 'degrees' else 'below'} {bound(high, unit)}{ending}"
            else:
                text = "anywhere"
        return cls(low, high, text)

    @classmethod
    def whole(cls, low: int | None, high: int | None, text: str) -> Region:
        """Return a region for whole numbers; its bounds, which count as inside, are moved out by a half."""
        return cls(None if low is None else low - 0.5, None if high is None else high + 0.5, text)

    def holds(self, value: float) -> bool:
        """Say whether a single number lies in the region, borders included."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def as_dict(self) -> dict[str, float | str | None]:
        """Return what a record holds of the region."""
        return {"low": self.low, "high": self.high, "text": self.text}


def judge(interval: Bounds | None, region: Region) -> str:
    """Judge an interval against a region.

    Parameters
    ----------
    interval
        Lower and upper end, or None if there is none.
    region
        Where the claim is true.

    Returns
    -------
    str
        ``reproduced``, ``not reproduced``, ``inconclusive``, or ``cannot test`` without an interval.
    """
    if interval is None or not all(math.isfinite(end) for end in interval):
        return CANNOT_TEST
    low, high = interval
    above = region.low is None or low > region.low
    below = region.high is None or high < region.high
    if above and below:
        return REPRODUCED
    if (region.low is not None and high < region.low) or (region.high is not None and low > region.high):
        return NOT_REPRODUCED
    return INCONCLUSIVE


def combine(verdicts: Iterable[str]) -> str:
    """Combine the verdicts of parts that must all hold.

    One part that is not reproduced settles the whole claim. Otherwise a part that cannot be tested leaves it
    untested, then an exploratory one leaves it exploratory, then an inconclusive one inconclusive.
    """
    found = set(verdicts)
    for word in (NOT_REPRODUCED, CANNOT_TEST, EXPLORATORY, INCONCLUSIVE):
        if word in found:
            return word
    return REPRODUCED if found else CANNOT_TEST


def combine_published(verdicts: Iterable[str]) -> str:
    """Combine the as-published verdicts of parts: one that differs settles it, then one that cannot be tested.

    Without any, nothing is compared.
    """
    found = set(verdicts)
    for word in (DIFFERS, CANNOT_TEST):
        if word in found:
            return word
    return MATCHES if found else NOT_COMPARED


def is_trial(evidence: Mapping[str, Any]) -> bool:
    """Say whether a test rests on too few simulated data sets to give a verdict.

    Parameters
    ----------
    evidence
        ``stability.json``, or the eigenvalues of ``number.json``: `p_needed` is read.
    """
    return float(evidence.get("p_needed") or P_NEEDED) > P_NEEDED + 1e-9


def folded(low: float, high: float) -> Bounds:
    """Fold an interval of a signed angle into one of the unsigned angle.

    Parameters
    ----------
    low, high
        Degrees, ``low <= high``, on the whole line.

    Returns
    -------
    tuple
        Smallest and largest unsigned angle (0 to 180 degrees) that the interval holds. It covers the unsigned
        angle at least as often as the given interval covers the signed one, and never reaches below 0.
    """

    def fold(angle: float) -> float:
        return abs((angle + 180.0) % 360.0 - 180.0)

    if high - low >= 360.0:
        return 0.0, 180.0
    ends = fold(low), fold(high)
    holds_zero = math.floor(high / 360.0) >= math.ceil(low / 360.0)
    holds_half = math.floor((high - 180.0) / 360.0) >= math.ceil((low - 180.0) / 360.0)
    return (0.0 if holds_zero else min(ends)), (180.0 if holds_half else max(ends))


def absolute(low: float, high: float) -> Bounds:
    """Return the interval of ``|x|`` from that of x."""
    ends = abs(low), abs(high)
    return (0.0 if low <= 0.0 <= high else min(ends)), max(ends)


def absolute_difference(total: Bounds, difference: Bounds) -> Bounds:
    """Return an interval of ``|x| - |y|`` from those of ``x + y`` and ``x - y``.

    ``|x| - |y|`` bends where y (or x) is 0, so that its own bootstrap distribution is biased there however
    large the sample; sum and difference are smooth. It equals ``sign(s d) min(|s|, |d|)`` with the sum s and
    the difference d, which rises with s where d > 0 and falls where d < 0 (and the other way round), so that
    its extremes over the rectangle of both intervals stand in the corners. That it is positive is the
    intersection of one-sided statements about s and d, hence tested at the level of the single intervals.
    """

    def value(s: float, d: float) -> float:
        return math.copysign(min(abs(s), abs(d)), s * d)

    corners = [value(s, d) for s in total for d in difference]
    return min(corners), max(corners)
