"""Whether a model differs from the one that it was made of on the items that tell one ability, and not on those of another.

For each pair of models, each ability that the claim names and either end of its discriminations there is one set of items:
the tenth that discriminates most, and the tenth that discriminates least. As published, the sets come from a fit that holds
both models, and the two are compared by an unpaired t test as if each had items of its own. Corrected, they come from a
calibration in which the pair has no part (:mod:`benchmirt.dimensions.pairs`), the models are compared on the same items with
testlets resampled (:mod:`benchmirt.claims.differences`), and p values are Holm's over all sets of the claim.

The estimate is the difference of the shares passed, changed model less base. A part that says that the models differ (its
region lies on one side of 0) needs an interval inside its region and Holm's p below .05; one that says that they do not
needs an interval inside its margin. The interval is about other items like these: the two models are what the claim speaks of,
and three pairs say little about other models.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmirt.claims import differences
from benchmirt.claims.differences import Paired, Unpaired
from benchmirt.claims.inputs import Ability, Results, Unavailable, order_of
from benchmirt.claims.intervals import LEVEL
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part, pairs_of
from benchmirt.claims.verdict import INCONCLUSIVE, MIN_ITEMS, REPRODUCED, Region, judge, number
from benchmirt.resampling import item_units

__all__ = ["METHODS", "SHARE", "evaluate", "tails"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Key = tuple[str, str, str | int, str]

METHODS = {
    "as_published": "items chosen by a fit that holds both models, unpaired t test",
    "corrected": "items chosen by a calibration without the pair, paired difference with testlets resampled, McNemar's "
    "test, Holm's correction",
}
SHARE = 0.1
SIGNIFICANT = 0.05


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


def _chosen(results: Results, policy: str, items: Any, values: Floats) -> dict[str, Mask]:
    """Return the sets of a fit, over all items of the matrix."""
    table = results.items(policy)
    at = order_of(items, table.loc[table["kept"].astype(bool), "question_id"])
    place = np.flatnonzero(table["kept"].to_numpy(dtype=bool))
    sets = {}
    for end, own in tails(values[at]).items():
        sets[end] = np.zeros(len(table), dtype=bool)
        sets[end][place[own]] = True
    return sets


def _corrected(results: Results, pair: tuple[str, str], ability: Ability) -> dict[str, tuple[Mask, Paired]]:
    """Compare a pair on the sets of an ability, chosen without it.

    Raises
    ------
    Unavailable
        If one of the models is not there, there is no calibration without them, or they share too few items.
    """
    answers = _answers(results, "honest", pair)
    refits = results.without_pairs
    if pair not in refits.pairs:
        raise Unavailable(f"there is no calibration without {pair[0]} and {pair[1]}")
    at = list(refits.pairs).index(pair)
    if not refits.usable[at]:
        raise Unavailable(f"the calibration without {pair[0]} and {pair[1]} did not converge")
    table = results.items()
    testlet = table["testlet"].astype(object).where(table["testlet"].notna(), None).to_numpy()
    units = item_units(testlet, len(table))
    found = {}
    for end, own in _chosen(
        results, "honest", refits.items, ability.sign * refits.a[at, :, ability.index]
    ).items():
        both = own & (answers >= 0).all(axis=0)
        if both.sum() < MIN_ITEMS:
            raise Unavailable(
                f"both models answered only {int(both.sum())} of the items, {MIN_ITEMS} are needed"
            )
        purpose = f"pair/{pair[0]}/{pair[1]}/{ability.index}/{end}"
        found[end] = (
            both,
            differences.paired(answers[0, both], answers[1, both], units[both], purpose=purpose),
        )
    return found


def _published(results: Results, pair: tuple[str, str], wanted: str | int) -> dict[str, Unpaired]:
    """Compare a pair as the study did.

    Raises
    ------
    Unavailable
        If one of the models, the fit or the ability is not there.
    """
    answers = _answers(results, "published", pair)
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    ability = results.published_ability(wanted)
    found = {}
    sets = _chosen(results, "published", fit.items, ability.sign * fit.a_display[:, ability.index])
    for end, own in sets.items():
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
        self.wanted = list(dict.fromkeys(part.ability for part in claim.parts if part.ability is not None))
        for pair in pairs_of([claim]):
            for wanted in self.wanted:
                self._test(results, pair, wanted)
        keys = list(self.tests)
        adjusted = differences.holm([self.tests[key][1].p for key in keys])
        self.p = dict(zip(keys, (float(one) for one in adjusted), strict=True))

    def _test(self, results: Results, pair: tuple[str, str], wanted: str | int) -> None:
        try:
            for end, unpaired in _published(results, pair, wanted).items():
                self.published[(*pair, wanted, end)] = unpaired
        except Unavailable as reason:
            self.published_why[(*pair, wanted)] = str(reason)
        try:
            _answers(results, "honest", pair)
            self.abilities[wanted] = results.ability(wanted)
            for end, test in _corrected(results, pair, self.abilities[wanted]).items():
                self.tests[(*pair, wanted, end)] = test
        except Unavailable as reason:
            self.why[(*pair, wanted)] = reason

    def table(self) -> dict[str, Any]:
        """Return every test of both versions, as the page and the CSV file show them."""
        rows = []
        for key in dict.fromkeys([*self.tests, *self.published]):
            base, changed, wanted, end = key
            row: dict[str, Any] = {"base": base, "changed": changed, "ability": str(wanted), "end": end}
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
    return [replace(parts[0], extra={**parts[0].extra, "table": family.table()}), *parts[1:]]
