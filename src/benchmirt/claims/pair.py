"""Whether a model differs from the one that it was made of on the items that tell one ability, and not on those of another.

For each pair of models, each ability that the claim names and either end of its discriminations there is one set of items:
the tenth that discriminates most, and the tenth that discriminates least. As published, the sets come from a fit that holds
both models, and the two are compared by an unpaired t test as if each had items of its own. Corrected, they come from a
calibration in which the pair has no part (:mod:`benchmirt.dimensions.pairs`), the models are compared on the same items with
testlets resampled (:mod:`benchmirt.claims.differences`), and p values are Holm's over all sets of the claim.

The estimate is the difference of the shares passed, changed model less base. A part that says that the models differ (its
region lies on one side of 0) needs an interval inside its region and Holm's p below .05; one that says that they do not
needs an interval inside its margin. The interval is about other items like these: the two models are what the claim speaks of,
and three pairs say little about other models. A curve shows the difference over all items, in bins of equal size by their
discrimination.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmirt.claims import differences
from benchmirt.claims.differences import MIN_TESTLETS, Paired, Unpaired
from benchmirt.claims.inputs import Ability, Results, Unavailable, order_of
from benchmirt.claims.intervals import LEVEL
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part, pairs_of
from benchmirt.claims.verdict import INCONCLUSIVE, MIN_ITEMS, REPRODUCED, Region, judge, number
from benchmirt.resampling import item_units, mean_and_se

__all__ = ["METHODS", "SHARE", "bins", "curve", "evaluate", "tails"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Key = tuple[str, str, str | int, str]
Tests = dict[str, tuple[Mask, Paired]]

METHODS = {
    "as_published": "items chosen by a fit that holds both models, unpaired t test",
    "corrected": "items chosen by a calibration without the pair, paired difference with testlets resampled, McNemar's "
    "test, Holm's correction",
}
SHARE = 0.1
SIGNIFICANT = 0.05
MOST_BINS = 100
"""Bins of the published curves."""
LEAST_BIN = 200
"""Items of a bin, where there are enough for `FEWEST_BINS`."""
FEWEST_BINS = 5


def tails(values: Floats, share: float = SHARE) -> dict[str, Mask]:
    """Return which items have the highest and the lowest values, by interpolated quantiles, borders included.

    Parameters
    ----------
    values
        Shape (items,), finite.
    share
        Share of the items at either end, between 0 and .5: 2,958 of 29,574 at .1.
    """
    low, high = np.quantile(values, [share, 1 - share])
    return {"high": values >= high, "low": values <= low}


def bins(values: Floats) -> list[NDArray[np.int64]]:
    """Return the items of bins of equal size by a value, the lowest bin first.

    Parameters
    ----------
    values
        Shape (items,), finite.

    Returns
    -------
    At most as many bins as the published curves have, and so many that each holds 200 items, but at least five.
    """
    count = min(MOST_BINS, max(FEWEST_BINS, values.size // LEAST_BIN))
    return [part for part in np.array_split(np.argsort(values, kind="stable"), count) if part.size]


def curve(
    answers: NDArray[np.int8], values: Floats, units: NDArray[np.intp] | None = None
) -> list[dict[str, float]]:
    """Return how two models differ from bin to bin of the items' discriminations.

    Parameters
    ----------
    answers
        Of base and changed model, shape (2, items): 1, 0 or -1.
    values
        Discriminations, shape (items,).
    units
        Testlet of each item, shape (items,): bins are compared on the items that both answered, with a 95 % interval by Student's
        t over testlets. None: as two samples, as published, without one.

    Returns
    -------
    One entry per bin that can be compared: discrimination (its median), items, difference, low and high (NaN where there is no
    interval).
    """
    made = []
    for part in bins(values):
        base, changed = (side[part] for side in answers)
        both = (base >= 0) & (changed >= 0)
        if not both.any():
            continue
        low = high = float("nan")
        if units is None:
            difference = float(changed[changed >= 0].mean() - base[base >= 0].mean())
        else:
            own = np.unique(units[part][both], return_inverse=True)[1]
            difference, se = mean_and_se(changed[both].astype(np.float64) - base[both], own)
            testlets = int(own.max()) + 1
            if testlets >= MIN_TESTLETS:
                half = float(stdtrit(testlets - 1, (1 + LEVEL) / 2)) * se
                low, high = difference - half, difference + half
        made.append(
            {
                "discrimination": float(np.median(values[part])),
                "items": int(both.sum()),
                "difference": difference,
                "low": low,
                "high": high,
            }
        )
    return made


def _answers(results: Results, policy: str, pair: tuple[str, str]) -> NDArray[np.int8]:
    """Return the outcomes of the two models on all items, shape (2, J).

    Raises
    ------
    Unavailable
        If the study lacks one of them.
    """
    names = results.models(policy)["model"].tolist()
    for name in pair:
        if name not in names:
            raise Unavailable(f"this study has no model {name}", absent=True)
    return results.responses(policy)[:, [names.index(name) for name in pair]].T


@dataclass(frozen=True)
class _Ranked:
    """The usable items of a matrix with what a fit says of their discriminations.

    Attributes
    ----------
    place
        Where the items stand in the matrix, shape (kept,).
    values
        Their discriminations, shape (kept,).
    size
        Number of all items of the matrix.
    """

    place: NDArray[np.int64]
    values: Floats
    size: int

    @classmethod
    def of(cls, results: Results, policy: str, items: Any, values: Floats) -> _Ranked:
        """Bring a fit's values, in the order of its items, to those of a matrix."""
        table = results.items(policy)
        kept = table["kept"].to_numpy(dtype=bool)
        at = order_of(items, table.loc[kept, "question_id"])
        return cls(np.flatnonzero(kept), values[at], len(table))

    def sets(self) -> dict[str, Mask]:
        """Return the tenths at both ends, over all items of the matrix."""
        found = {}
        for end, own in tails(self.values).items():
            found[end] = np.zeros(self.size, dtype=bool)
            found[end][self.place[own]] = True
        return found


def _ranked_without(results: Results, pair: tuple[str, str], ability: Ability) -> _Ranked:
    """Return the items with their discriminations by a calibration without a pair.

    Raises
    ------
    Unavailable
        If there is no such calibration.
    """
    refits = results.without_pairs
    if pair not in refits.pairs:
        raise Unavailable(f"there is no calibration without {pair[0]} and {pair[1]}")
    at = list(refits.pairs).index(pair)
    if not refits.usable[at]:
        raise Unavailable(f"the calibration without {pair[0]} and {pair[1]} did not converge")
    return _Ranked.of(results, "honest", refits.items, ability.sign * refits.a[at, :, ability.index])


def _called(results: Results, wanted: str | int) -> str:
    """Return the name of an ability that a claim names or numbers."""
    try:
        return results.ability(wanted).name
    except Unavailable:
        return f"ability {wanted}" if isinstance(wanted, int) else wanted


def _ranked_as_published(results: Results, wanted: str | int) -> _Ranked:
    """Return the items with their discriminations by the published fit.

    Raises
    ------
    Unavailable
        If the fit or the ability is not there.
    """
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    ability = results.published_ability(wanted)
    return _Ranked.of(results, "published", fit.items, ability.sign * fit.a_display[:, ability.index])


def _units(results: Results) -> NDArray[np.intp]:
    """Return the testlet of each item, shape (J,)."""
    table = results.items()
    testlet = table["testlet"].astype(object).where(table["testlet"].notna(), None).to_numpy()
    return item_units(testlet, len(table))


def _paired(results: Results, answers: NDArray[np.int8], ranked: _Ranked, purpose: str) -> Tests:
    """Compare a pair on the sets of an ability, chosen without it.

    Raises
    ------
    Unavailable
        If they share too few items.
    """
    units, found = _units(results), {}
    for end, own in ranked.sets().items():
        both = own & (answers >= 0).all(axis=0)
        if both.sum() < MIN_ITEMS:
            raise Unavailable(
                f"both models answered only {int(both.sum())} of the items, {MIN_ITEMS} are needed"
            )
        test = differences.paired(answers[0, both], answers[1, both], units[both], purpose=f"{purpose}/{end}")
        found[end] = (both, test)
    return found


def _unpaired(answers: NDArray[np.int8], ranked: _Ranked) -> dict[str, Unpaired]:
    """Compare a pair as the study did.

    Raises
    ------
    Unavailable
        If a model answered too few items.
    """
    found = {}
    for end, own in ranked.sets().items():
        if ((answers[:, own] >= 0).sum(axis=1) < MIN_ITEMS).any():
            raise Unavailable(f"a model answered fewer than {MIN_ITEMS} of the items")
        found[end] = differences.unpaired(answers[0, own], answers[1, own])
    return found


class _Family:
    """All tests of a claim: pairs by abilities by ends, with Holm's correction over all of them."""

    def __init__(self, claim: Claim, results: Results) -> None:
        self.tests: dict[Key, tuple[Mask, Paired]] = {}
        self.published: dict[Key, Unpaired] = {}
        self.why: dict[tuple[str, str, str | int], Unavailable] = {}
        self.published_why: dict[tuple[str, str, str | int], str] = {}
        self.abilities: dict[str | int, Ability] = {}
        self.curves: list[dict[str, Any]] = []
        self.wanted = list(dict.fromkeys(part.ability for part in claim.parts if part.ability is not None))
        self.called = {wanted: _called(results, wanted) for wanted in self.wanted}
        for pair in pairs_of([claim]):
            for wanted in self.wanted:
                self._test(results, pair, wanted)
        keys = list(self.tests)
        adjusted = differences.holm([self.tests[key][1].p for key in keys])
        self.p = dict(zip(keys, (float(one) for one in adjusted), strict=True))

    def _test(self, results: Results, pair: tuple[str, str], wanted: str | int) -> None:
        group = (*pair, wanted)
        try:
            answers = _answers(results, "published", pair)
            ranked = _ranked_as_published(results, wanted)
            for end, unpaired in _unpaired(answers, ranked).items():
                self.published[(*group, end)] = unpaired
            self._draw(group, "as published", curve(answers[:, ranked.place], ranked.values))
        except Unavailable as reason:
            self.published_why[group] = str(reason)
        try:
            answers = _answers(results, "honest", pair)
            self.abilities[wanted] = ability = results.ability(wanted)
            ranked = _ranked_without(results, pair, ability)
            purpose = f"pair/{pair[0]}/{pair[1]}/{ability.index}"
            for end, test in _paired(results, answers, ranked, purpose).items():
                self.tests[(*group, end)] = test
            units = _units(results)[ranked.place]
            self._draw(group, "corrected", curve(answers[:, ranked.place], ranked.values, units))
        except Unavailable as reason:
            self.why[group] = reason

    def _draw(self, group: tuple[str, str, str | int], version: str, points: list[dict[str, float]]) -> None:
        base, changed, wanted = group
        common = {"base": base, "changed": changed, "ability": self.called[wanted], "version": version}
        self.curves += [{**common, **point} for point in points]

    def table(self) -> dict[str, Any]:
        """Return every test of both versions, as the page and the CSV file show them."""
        rows = []
        for key in dict.fromkeys([*self.tests, *self.published]):
            base, changed, wanted, end = key
            row: dict[str, Any] = {
                "base": base,
                "changed": changed,
                "ability": self.called[wanted],
                "end": end,
            }
            if key in self.tests:
                row |= asdict(self.tests[key][1]) | {"p_holm": self.p[key]}
            if key in self.published:
                row |= {f"published_{name}": value for name, value in asdict(self.published[key]).items()}
            rows.append(row)
        return {
            "row": "test",
            "caption": "Every pair on the tenth of the items that discriminates each ability most (high) and least "
            "(low): corrected beside published.",
            "columns": [
                ["changed", "Changed model", "name"],
                ["ability", "Ability", "name"],
                ["end", "End", "name"],
                ["items", "Items", "count"],
                ["testlets", "Testlets", "count"],
                ["difference", "Difference", "share"],
                ["low", "95 % interval", "interval"],
                ["p_mcnemar", "McNemar", "p"],
                ["p_holm", "Holm", "p"],
                ["published_difference", "Unpaired", "share"],
                ["published_p", "t test", "p"],
                ["published_d", "Cohen's d", "r"],
            ],
            "rows": rows,
        }


def _beside_zero(region: Region | None) -> int:
    """Return on which side of 0 a region lies: 1, -1, or 0 if it holds it."""
    if region is None:
        return 0
    return int(region.low is not None and region.low >= 0) - int(region.high is not None and region.high <= 0)


def _significant(side: int, least: float) -> Region:
    """Return where a difference matches what the study says: significant on one side, or not significant."""
    if side:
        word = "above" if side > 0 else "below"
        text = f"significantly {word} 0 (p < .05, unpaired)"
        return Region(least if side > 0 else None, -least if side < 0 else None, text)
    return Region(-least, least, "within chance (p > .05, unpaired)")


def _part(part: Part, family: _Family, results: Results) -> PartResult:
    assert part.base is not None
    assert part.changed is not None
    assert part.ability is not None
    models, lineages = results.size()
    group = (part.base, part.changed, part.ability)
    key = (*group, part.end)
    result = PartResult(
        part=part,
        region=part.region,
        published=results.published_figure(part),
        models=models,
        lineages=lineages,
    )
    if key in family.published:
        unpaired = family.published[key]
        asked = part.published_region or _significant(_beside_zero(part.region), unpaired.least)
        result = replace(result, part=replace(part, published_region=asked), as_published=unpaired.difference)
    else:
        result = replace(result, as_published_why=family.published_why[group])
    if group in family.why:
        return result.block(family.why[group])
    chosen, paired = family.tests[key]
    result = replace(
        result,
        estimate=paired.difference,
        chosen=chosen,
        ability=family.abilities[part.ability],
        level=LEVEL,
        extra={"base": part.base, "changed": part.changed, "end": part.end, "p_holm": family.p[key]},
    )
    if not np.isfinite([paired.low, paired.high]).all():
        return result.block(Unavailable(paired.kind))
    result = replace(result, interval=(paired.low, paired.high), interval_kind=paired.kind)
    open_still = _beside_zero(part.region) and family.p[key] >= SIGNIFICANT
    if open_still and part.region is not None and judge(result.interval, part.region) == REPRODUCED:
        tests = len(family.p)
        return result.block(
            Unavailable(
                f"Holm's p over {tests} tests is {number(family.p[key])}, not below .05", INCONCLUSIVE
            )
        )
    return result


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on pairs of models."""
    family = _Family(claim, results)
    parts = [_part(part, family, results) for part in claim.parts]
    more = {"table": family.table(), "curve": {"row": "bin", "rows": family.curves}}
    return [replace(parts[0], extra={**parts[0].extra, **more}), *parts[1:]]
