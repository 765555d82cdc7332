"""How a benchmark's mean goes with an ability over models.

Corrected: Pearson's r between the benchmark's mean and the ability estimated without that benchmark, over the
models that ran it. Models are not independent draws, so intervals come from leaving out one lineage at a time:
Student's t on the scale of Fisher's z, with the jackknife's standard error and as many degrees of freedom as the
lineages' sizes are worth, less one. With a few dozen unequal lineages this covers at its level (a test holds it to
that), where bootstrap intervals over lineages do not (percentile and bias-corrected accelerated 87-92 %,
studentised 90-93 %). The calibration's own error, from refits on resampled lineages, is added. Estimated abilities correlate
less than true ones would, by the root of their reliability; the interval reaches from the correlation as it is to what it would
be without that. As published: plain
r with the full-data ability of the published fit, which contains the benchmark itself.

``|r| - |r'|`` is judged through the sum and the difference of the two correlations, since the absolute value
bends at 0 (see :func:`benchmirt.claims.verdict.absolute_difference`). A table of correlations is compared cell
by cell with simultaneous intervals: the largest standardised deviation over cells, with the lineages' signs and
sizes drawn at random (multiplier bootstrap), gives one factor for all of them (Romano and Wolf 2005, *JASA* 100,
94-108), so that the numbers of cells that lie surely and possibly within the tolerance bound the true number
with the stated confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.claims import selection
from benchmirt.claims.inputs import Ability, Results, Unavailable, order_of
from benchmirt.claims.intervals import LEVEL, degrees_of_freedom, student_factor
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import ITEM_COLUMNS, TABULAR, Claim, Figure, Part, Selection
from benchmirt.claims.verdict import Bounds, Region, absolute, absolute_difference, number
from benchmirt.identification import SAME_ABILITY
from benchmirt.resampling import combine_se, generator

__all__ = ["METHODS", "Sample", "correlations", "evaluate"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

METHODS = {
    "as_published": "Pearson correlation of the benchmark mean with the ability of the published fit, which is "
    "estimated from the benchmark's own items too",
    "corrected": "Pearson correlation of the benchmark mean with the ability estimated without the benchmark, over "
    "the models that ran it, with lineages left out in turn",
}
DRAWS = 20_000
MIN_REFITS = 20


def correlations(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Return weighted Pearson correlations.

    Parameters
    ----------
    x, y, weights
        Shapes (..., N), which go together; weights are at least 0.

    Returns
    -------
    ndarray, shape (...)
        NaN where a side does not vary.
    """
    total = weights.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (weights * x).sum(axis=-1) / total, (weights * y).sum(axis=-1) / total
        dx, dy = x - mean_x[..., None], y - mean_y[..., None]
        var_x, var_y = (weights * dx**2).sum(axis=-1), (weights * dy**2).sum(axis=-1)
        flat = (var_x <= 1e-24 * total) | (var_y <= 1e-24 * total)
        r = (weights * dx * dy).sum(axis=-1) / np.sqrt(var_x * var_y)
    return np.where(flat | (total == 0), np.nan, np.clip(r, -1.0, 1.0))


@dataclass(frozen=True)
class Sample:
    """The models and numbers behind the correlations of one benchmark (or set of items in it).

    Attributes
    ----------
    chosen
        Usable items, shape (J,).
    ran
        Which kept models ran it, shape (N,).
    score
        Their means, shape (n,).
    lineage
        Codes of their lineages among those of all kept models, shape (n,).
    """

    chosen: Mask
    ran: Mask
    score: Floats
    lineage: NDArray[np.int64]

    @property
    def lineages(self) -> NDArray[np.int64]:
        """The lineages' codes, each once."""
        return np.unique(self.lineage)

    def left_out(self) -> Floats:
        """Return weights with each lineage left out in turn, shape (lineages, n)."""
        return (self.lineage[None, :] != self.lineages[:, None]).astype(np.float64)


def _sample(select: Selection, excepted: Selection, results: Results) -> Sample:
    """Collect the models that ran a selection; Unavailable if there are hardly any."""
    chosen = results.usable(select, excepted)
    every = selection.mask(results.items(), select, excepted)
    ran = results.ran(every)
    if ran.sum() < 3:
        raise Unavailable(f"only {int(ran.sum())} models answered at least half of the items")
    return Sample(chosen, ran, results.means(every)[ran], results.lineage()[ran])


def _unit(select: Selection, excepted: Selection, results: Results) -> tuple[int, str]:
    """Return which abilities leave a selection out, and its name."""
    left_out = results.leave_one_out
    items = results.items()
    column = left_out.unit
    names = items.loc[selection.mask(items, select, excepted), column].dropna().astype(str).unique()
    if len(names) != 1:
        raise Unavailable(
            f"the items are of {len(names)} values of {column}, and abilities are estimated without one at a time"
        )
    found = left_out.units.get_indexer(pd.Index([names[0]]))[0]
    if found < 0:
        raise Unavailable(f"there are no abilities without {names[0]}")
    if len(left_out.units) == 1:
        raise Unavailable(f"there are no abilities without {names[0]}, which has all the items")
    if not left_out.usable[found]:
        raise Unavailable(f"the fit without {names[0]} did not converge")
    return int(found), str(names[0])


class _Abilities:
    """The abilities that go with a selection: without it for the estimate, from refits for the calibration."""

    def __init__(self, select: Selection, excepted: Selection, results: Results, ran: Mask) -> None:
        self.results = results
        self.fit = results.consensus("corrected")
        if self.fit.failed is not None:
            raise Unavailable(self.fit.failed)
        models = results.models()["model"][ran]
        left_out, refits = results.leave_one_out, results.bootstrap
        self.at, self.name = _unit(select, excepted, results)
        self.theta = left_out.theta[self.at][order_of(left_out.models, models)]
        if len(refits.theta) < MIN_REFITS:
            raise Unavailable(
                f"only {len(refits.theta)} refits on resampled lineages are usable, {MIN_REFITS} are needed"
            )
        self.refits = refits.theta[:, order_of(refits.models, models)]

    def estimate(self, ability: Ability) -> Floats:
        """Abilities without the benchmark, shape (n,)."""
        self._same(ability)
        values = ability.sign * self.theta[:, ability.index]
        if not np.isfinite(values).all():
            raise Unavailable(f"the abilities without {self.name} are not finite")
        return values

    def calibrations(self, ability: Ability) -> Floats:
        """Abilities from each refit, shape (R, n)."""
        axes = self.results.bootstrap.T[:, :, ability.index]
        return ability.sign * np.einsum("rnk,rk->rn", self.refits, axes)

    def reliability(self, ability: Ability) -> float:
        """Return the reliability of the abilities without the benchmark, 0 to 1."""
        found = float(self.results.leave_one_out.reliability[self.at, ability.index])
        if not 0 < found <= 1:
            raise Unavailable(f"nothing is known of the abilities without {self.name}")
        return found

    def _same(self, ability: Ability) -> None:
        phi = float(self.results.leave_one_out.congruence[self.at, ability.index])
        if not phi >= SAME_ABILITY:
            raise Unavailable(
                f"without {self.name} {ability.name} is another ability (congruence {number(phi)}), so "
                f"that nothing independent of {self.name} is left to compare it with"
            )


# -- intervals ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Estimate:
    """A statistic with what its error is made of.

    Attributes
    ----------
    value
        On the data.
    left_out
        With each lineage left out in turn, shape (lineages,).
    calibration
        From each refit, shape (R,); None if no fit is involved.
    scale
        By how much deviations of refits are to be stretched.
    ceiling
        On the data, were the abilities known exactly: a correlation over the root of their reliability (Spearman 1904). None:
        the value.
    reliability
        The least that any of the abilities has.
    """

    value: float
    left_out: Floats
    calibration: Floats | None
    scale: float = 1.0
    ceiling: float | None = None
    reliability: float = 1.0

    @property
    def known(self) -> float:
        """The statistic were the abilities known exactly."""
        return self.value if self.ceiling is None else self.ceiling

    def map(self, how: Callable[[Any], Any]) -> _Estimate:
        """Return a function of the statistic as it is, with abilities that are not known exactly."""
        calibration = None if self.calibration is None else how(self.calibration)
        return _Estimate(float(how(self.value)), how(self.left_out), calibration, self.scale)

    def deviations(self) -> Floats:
        """Return the lineages' shares in the sampling error: the sum of their squares is its variance."""
        if not np.isfinite(self.left_out).all():
            raise Unavailable("nothing varies any more when one of the lineages is left out")
        count = self.left_out.size
        return np.sqrt((count - 1) / count) * (self.left_out - self.left_out.mean())

    def calibration_se(self) -> float:
        """Return the standard error that comes from the calibration of the items."""
        if self.calibration is None:
            return 0.0
        spread = self.calibration[np.isfinite(self.calibration)]
        if spread.size < MIN_REFITS:
            raise Unavailable(f"only {spread.size} refits give the statistic, {MIN_REFITS} are needed")
        return self.scale * float(spread.std(ddof=1))

    def interval(self, lineage: NDArray[np.int64]) -> Bounds:
        """Return Student's interval with both errors, about the value as it is and were the abilities known.

        Parameters
        ----------
        lineage
            Codes of the models, shape (n,).
        """
        error = combine_se(float(np.linalg.norm(self.deviations())), self.calibration_se())
        half = student_factor(lineage) * error / float(np.sqrt(self.reliability))
        return min(self.value, self.known) - half, max(self.value, self.known) + half

    def stretched(self, low: float, high: float) -> Bounds:
        """Return an interval of a correlation that reaches as far as it would were the abilities known, -1 to 1."""
        root = float(np.sqrt(self.reliability))
        return max(min(low, low / root), -1.0), min(max(high, high / root), 1.0)


def _fisher(r: Any) -> Any:
    return np.arctanh(np.clip(r, -1 + 1e-9, 1 - 1e-9))


def _interval_of_r(r: _Estimate, lineage: NDArray[np.int64]) -> Bounds:
    """Return the interval of a correlation, made on the scale of Fisher's z."""
    low, high = r.map(_fisher).interval(lineage)
    return r.stretched(float(np.tanh(low)), float(np.tanh(high)))


def _r(sample: Sample, abilities: _Abilities, ability: Ability) -> _Estimate:
    theta = abilities.estimate(ability)
    ones = np.ones(len(theta))
    value, reliability = float(correlations(theta, sample.score, ones)), abilities.reliability(ability)
    found = _Estimate(
        value,
        correlations(theta, sample.score, sample.left_out()),
        correlations(abilities.calibrations(ability), sample.score, ones),
        abilities.results.bootstrap.scale,
        value / float(np.sqrt(reliability)),
        reliability,
    )
    if not np.isfinite(found.value):
        raise Unavailable(f"the ability {ability.name} or the mean does not vary over these models")
    return found


def _combined(one: _Estimate, two: _Estimate, sign: float) -> _Estimate:
    assert one.calibration is not None
    assert two.calibration is not None
    return _Estimate(
        one.value + sign * two.value,
        one.left_out + sign * two.left_out,
        one.calibration + sign * two.calibration,
        one.scale,
        one.known + sign * two.known,
        min(one.reliability, two.reliability),
    )


def _difference(
    statistic: str, one: _Estimate, two: _Estimate, lineage: NDArray[np.int64]
) -> tuple[float, Bounds]:
    """Return the difference of two correlations, or of their absolute values, and its interval."""
    minus = _combined(one, two, -1.0)
    if statistic == "r_difference":
        low, high = minus.interval(lineage)
        return minus.value, (max(low, -2.0), min(high, 2.0))
    plus = _combined(one, two, 1.0)
    low, high = absolute_difference(plus.interval(lineage), minus.interval(lineage))
    return abs(one.value) - abs(two.value), (max(low, -1.0), min(high, 1.0))


# -- as published -------------------------------------------------------------------------------------------


def _published_r(select: Selection, excepted: Selection, ability: str | int, results: Results) -> float:
    """Return plain r between the ability of the published fit and the mean of a selection.

    Raises
    ------
    Unavailable
        If there is no such ability, or nothing varies.
    """
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    found = results.published_ability(ability)
    items, models = results.items("published"), results.models("published")
    score = results.means(selection.mask(items, select, excepted), "published")
    theta = found.sign * fit.ability_theta[order_of(fit.models, models["model"]), found.index]
    seen = np.isfinite(score)
    r = float(correlations(theta[seen], score[seen], np.ones(int(seen.sum()))))
    if not np.isfinite(r):
        raise Unavailable("every model has the same mean, so that nothing can be correlated with it")
    return r


def _published_value(part: Part, results: Results) -> float:
    if part.statistic == "mean":
        items = results.items("published")
        score = results.means(selection.mask(items, part.select, part.excepted), "published")
        return float(np.nanmean(score))
    assert part.ability is not None
    r = _published_r(part.select, part.excepted, part.ability, results)
    if part.against is None:
        return abs(r) if part.statistic == "abs_r" else r
    other = _published_r(part.select, part.excepted, part.against, results)
    return abs(r) - abs(other) if part.statistic == "abs_r_difference" else r - other


# -- parts --------------------------------------------------------------------------------------------------


def _kind(sample: Sample, *, scale: str) -> str:
    return (
        f"t interval{scale}, jackknife over {len(sample.lineages)} lineages "
        f"({degrees_of_freedom(sample.lineage):.1f} degrees of freedom)"
    )


def _part(part: Part, results: Results) -> PartResult:
    result = PartResult(part=part, region=part.region, published=results.published_figure(part))
    try:
        sample = _sample(part.select, part.excepted, results)
    except Unavailable as reason:
        return replace(result, blocked=reason, as_published_why=str(reason))
    result = replace(
        result, chosen=sample.chosen, models=int(sample.ran.sum()), lineages=len(sample.lineages), level=LEVEL
    )
    try:
        result = replace(result, as_published=_published_value(part, results))
    except Unavailable as reason:
        result = replace(result, as_published_why=str(reason))
    try:
        if part.statistic == "mean":
            return _mean(result, sample)
        assert part.ability is not None
        ability = results.ability(part.ability)
        against = None if part.against is None else results.ability(part.against)
        result = replace(result, ability=ability, against=against)
        _check_varies(sample)
        abilities = _Abilities(part.select, part.excepted, results, sample.ran)
        result = replace(result, note=abilities.fit.note)
        one = _r(sample, abilities, ability)
        scale = " on Fisher's z"
        if against is not None:
            two = _r(sample, abilities, against)
            estimate, interval = _difference(part.statistic, one, two, sample.lineage)
            scale = "" if part.statistic == "r_difference" else " of sum and difference"
        elif part.statistic == "abs_r":
            estimate, interval = abs(one.value), absolute(*_interval_of_r(one, sample.lineage))
        else:
            estimate, interval = one.value, _interval_of_r(one, sample.lineage)
    except Unavailable as reason:
        return result.block(reason)
    return replace(
        result,
        estimate=estimate,
        interval=interval,
        interval_kind=_kind(sample, scale=scale) + ", with the calibration's error",
    )


def _check_varies(sample: Sample) -> None:
    if np.ptp(sample.score) <= 1e-12:
        raise Unavailable("every model has the same mean, so that nothing can be correlated with it")


def _mean(result: PartResult, sample: Sample) -> PartResult:
    """Judge the mean score, over models at large."""
    weights = sample.left_out()
    with np.errstate(invalid="ignore"):
        left_out = weights @ sample.score / weights.sum(axis=1)
    estimate = _Estimate(float(sample.score.mean()), left_out, None)
    low, high = estimate.interval(sample.lineage)
    return replace(
        result,
        estimate=estimate.value,
        interval=(max(low, 0.0), min(high, 1.0)),
        interval_kind=_kind(sample, scale=""),
    )


# -- tables -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cell:
    """One published correlation and what came out for it."""

    row: dict[str, str]
    select: Selection
    ability: str
    published: float
    sample: Sample
    found: _Estimate


def _row_selection(row: dict[str, str]) -> Selection:
    return {column: (value,) for column, value in row.items() if column in ITEM_COLUMNS}


def _cells(figure: Figure, results: Results) -> list[_Cell]:
    """Return the cells of a table of published correlations.

    Raises
    ------
    Unavailable
        If any of them cannot be tested: a count over the rest would be one of another table.
    """
    made = []
    gone: list[str] = []
    for row, value in results.figures(figure):
        select = _row_selection(row)
        try:
            sample = _sample(select, {}, results)
        except Unavailable as reason:
            if not reason.absent:
                raise
            gone.append(str(reason))
            continue
        _check_varies(sample)
        ability = results.ability(row["ability"])
        found = _r(sample, _Abilities(select, {}, results, sample.ran), ability)
        made.append(_Cell(row, select, row["ability"], value, sample, found))
    if gone:
        reasons = list(dict.fromkeys(gone))
        more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        raise Unavailable(
            f"{len(gone)} of the published figures cannot be compared: {'; '.join(reasons[:3])}{more}",
            absent=True,
        )
    return made


def _simultaneous(cells: list[_Cell], purpose: str) -> tuple[list[Bounds], float]:
    """Return simultaneous intervals of all cells, and the factor of their standard errors."""
    found = [cell.found.map(_fisher) for cell in cells]
    everyone = np.unique(np.concatenate([cell.sample.lineages for cell in cells]))
    shares = np.zeros((everyone.size, len(cells)))
    for k, (cell, one) in enumerate(zip(cells, found, strict=True)):
        shares[np.searchsorted(everyone, cell.sample.lineages), k] = one.deviations()
    se = np.linalg.norm(shares, axis=0)
    freedom = min(degrees_of_freedom(cell.sample.lineage) for cell in cells)
    rng = generator(0, purpose)
    drawn = rng.normal(size=(DRAWS, everyone.size)) @ (shares / np.maximum(se, 1e-12))
    largest = np.abs(drawn).max(axis=1) / np.sqrt(rng.chisquare(freedom, size=DRAWS) / freedom)
    factor = float(np.quantile(largest, LEVEL))
    bounds = []
    for cell, one, own in zip(cells, found, se, strict=True):
        half = factor * combine_se(float(own), one.calibration_se())
        bounds.append(
            cell.found.stretched(float(np.tanh(one.value - half)), float(np.tanh(one.value + half)))
        )
    return bounds, factor


def _within(part: Part, published: float, bounds: Bounds) -> str:
    """Say whether a cell agrees with its published figure: yes, no, or open."""
    low, high = bounds
    if part.statistic == "count_within":
        assert part.within is not None
        if published - part.within < low and high < published + part.within:
            return "yes"
        return "no" if high < published - part.within or low > published + part.within else "open"
    sign = 1.0 if published > 0 else -1.0
    ends = sorted((sign * low, sign * high))
    return "yes" if ends[0] > 0 else "no" if ends[1] < 0 else "open"


def _agrees(part: Part, published: float, value: float) -> bool:
    if part.statistic == "count_within":
        assert part.within is not None
        return abs(value - published) <= part.within + 1e-9
    return value * published > 0


def _table(
    part: Part, results: Results, cells_of: Callable[[Figure], list[_Cell]], purpose: str
) -> PartResult:
    """Judge a whole table of published correlations by the number of its cells that agree."""
    assert isinstance(part.published, Figure)
    figures = results.figures(part.published)
    flips = part.statistic == "sign_flips"
    asked = [value for _, value in figures if not flips or abs(value) > (part.above or 0.0)]
    if flips:
        region = Region.whole(None, part.at_most, f"at most {part.at_most} of {len(asked)}")
    else:
        region = Region.whole(part.at_least, None, f"at least {part.at_least} of {len(asked)}")
    models, lineages = results.size()
    result = PartResult(part=part, region=region, models=models, lineages=lineages)
    published: dict[int, float] = {}
    try:
        for k, (row, value) in enumerate(figures):
            select = _row_selection(row)
            results.usable(select, {})
            if not flips or abs(value) > (part.above or 0.0):
                published[k] = _published_r(select, {}, row["ability"], results)
        agree = sum(_agrees(part, figures[k][1], r) for k, r in published.items())
        result = replace(result, as_published=float(len(published) - agree if flips else agree))
    except Unavailable as reason:
        result = replace(result, as_published_why=str(reason))
    try:
        cells = cells_of(part.published)
        if not cells:
            raise Unavailable("the table has no published figures")
        result = replace(
            result,
            chosen=np.logical_or.reduce([cell.sample.chosen for cell in cells]),
            models=min(int(cell.sample.ran.sum()) for cell in cells),
            lineages=min(len(cell.sample.lineages) for cell in cells),
            note=results.consensus("corrected").note,
        )
        bounds, factor = _simultaneous(cells, purpose)
    except Unavailable as reason:
        return result.block(reason)
    told: list[dict[str, Any]] = []
    for k, (cell, ends) in enumerate(zip(cells, bounds, strict=True)):
        if flips and abs(cell.published) <= (part.above or 0.0):
            continue
        told.append(
            {
                "select": {column: list(values) for column, values in cell.select.items()},
                "benchmark": cell.row.get("benchmark"),
                "ability": cell.ability,
                "published": cell.published,
                "as_published": published.get(k),
                "estimate": cell.found.value,
                "interval": list(ends),
                "within": _within(part, cell.published, ends),
                "agrees": _agrees(part, cell.published, cell.found.value),
                "items": int(cell.sample.chosen.sum()),
                "models": int(cell.sample.ran.sum()),
                "lineages": len(cell.sample.lineages),
            }
        )
    sure = sum(cell["within"] == "yes" for cell in told)
    never = sum(cell["within"] == "no" for cell in told)
    agree = sum(bool(cell["agrees"]) for cell in told)
    total = len(told)
    return replace(
        result,
        estimate=float(total - agree if flips else agree),
        interval=(float(never), float(total - sure)) if flips else (float(sure), float(total - never)),
        interval_kind=f"cells surely and possibly so, by simultaneous t intervals on Fisher's z ({factor:.2f} standard "
        "errors), jackknife over lineages, with the calibration's error",
        level=LEVEL,
        extra={"cells": told},
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on correlations."""

    @cache
    def cells_of(figure: Figure) -> list[_Cell]:
        return _cells(figure, results)

    parts = [one for part in claim.parts for one in selection.expand(part, results.items())]
    return [
        _table(part, results, cells_of, f"claim/{claim.id}")
        if part.statistic in TABULAR
        else _part(part, results)
        for part in parts
    ]
