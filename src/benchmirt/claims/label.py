"""Whether labels of the prompts, supplied from elsewhere, go with how the items discriminate an ability.

The estimate is the correlation, over the items that have a label, of the label (-1 safe, 0 controversial, 1 unsafe) with the
display discrimination. Corrected, testlets are resampled (BCa on Fisher's scale), since prompts that share a template share
label and discrimination, and what other models would have made of the items is added from the refits on resampled lineages. As
published: the same correlation with the discriminations of the published fit, without an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmirt.claims import selection
from benchmirt.claims.inputs import Ability, Results, Unavailable, order_of
from benchmirt.claims.intervals import LEVEL
from benchmirt.claims.prompt_labels import read_labels
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import MIN_ITEMS
from benchmirt.resampling import cluster_interval, item_units, weighted_correlation, widen

__all__ = ["METHODS", "evaluate"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

METHODS = {
    "as_published": "correlation of prompt labels with the discriminations of the published fit",
    "corrected": "correlation of prompt labels with the discriminations of the corrected fit, testlets and lineages resampled",
}
WORDS = {-1.0: "safe", 0.0: "controversial", 1.0: "unsafe"}
MIN_REFITS = 20
MIN_UNITS = 5


@dataclass(frozen=True)
class _Sample:
    """Labelled items of a selection: where they stand, and their labels."""

    chosen: Mask
    label: Floats


def _sample(part: Part, results: Results, policy: str) -> _Sample:
    """Return the labelled and kept items of a part.

    Raises
    ------
    Unavailable
        If there are no labels, too few of them, or only one value.
    """
    name = results.study.claims["prompt_labels"]
    if not name:
        raise Unavailable(
            "no labels of the prompts are supplied (claims.prompt_labels names none)", absent=True
        )
    labels = read_labels(results.study.resource(name))
    items = results.items(policy)
    own: Floats = np.array([labels.get(name, np.nan) for name in items["question_id"]], dtype=np.float64)
    chosen = selection.mask(items, part.select, part.excepted) & np.isfinite(own)
    chosen &= items["kept"].to_numpy(dtype=bool)
    if chosen.sum() < MIN_ITEMS:
        raise Unavailable(
            f"only {int(chosen.sum())} of the usable items have a label, {MIN_ITEMS} are needed", absent=True
        )
    if np.ptp(own[chosen]) == 0:
        raise Unavailable("all labelled items have the same label")
    return _Sample(chosen, own[chosen])


def _published(part: Part, results: Results) -> float:
    sample = _sample(part, results, "published")
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    assert part.ability is not None
    ability = results.published_ability(part.ability)
    at = order_of(fit.items, results.items("published").loc[sample.chosen, "question_id"])
    return weighted_correlation(sample.label, ability.sign * fit.a_display[at, ability.index])


def _groups(label: Floats, values: Floats) -> list[dict[str, Any]]:
    """Return how the discriminations of each label are spread."""
    groups = []
    for value in np.unique(label):
        own = values[label == value]
        low, first, middle, third, high = np.quantile(own, [0.05, 0.25, 0.5, 0.75, 0.95])
        groups.append(
            {
                "label": int(value),
                "word": WORDS[float(value)],
                "items": int(own.size),
                "mean": float(own.mean()),
                "quantiles": [float(one) for one in (low, first, middle, third, high)],
            }
        )
    return groups


def _table(sample: _Sample, results: Results, display: Floats) -> dict[str, Any]:
    """Return the correlation with every ability, over all labelled items and in each category by itself."""
    items = results.items()[sample.chosen]
    category = items["category"].astype(object).where(items["category"].notna(), "").to_numpy()
    rows = []
    for name in ("all labelled items", *dict.fromkeys(category)):
        own = np.ones(len(items), dtype=bool) if name == "all labelled items" else category == name
        if own.sum() < MIN_ITEMS or np.ptp(sample.label[own]) == 0:
            continue
        for index in range(display.shape[1]):
            ability = results.ability(index + 1)
            r = weighted_correlation(sample.label[own], ability.sign * display[own, index])
            rows.append({"items_of": name, "ability": ability.name, "items": int(own.sum()), "estimate": r})
    return {
        "row": "label",
        "caption": "Correlation of the prompt labels with the discriminations, over all labelled items and within each "
        "category.",
        "columns": [
            ["items_of", "Items of", "name"],
            ["ability", "Ability", "name"],
            ["items", "Items", "count"],
            ["estimate", "r", "r"],
        ],
        "rows": rows,
    }


def _calibration_se(results: Results, names: Any, ability: Ability, label: Floats) -> float:
    """Return the standard error that other models would bring, from the refits on resampled lineages."""
    refits = results.bootstrap
    at = order_of(refits.items, names)
    good = np.isfinite(refits.T).all(axis=(1, 2))
    if good.sum() < MIN_REFITS:
        raise Unavailable(
            f"only {int(good.sum())} refits on resampled lineages are usable, {MIN_REFITS} are needed"
        )
    turns = np.linalg.inv(refits.T[good])[:, ability.index]
    moved = np.einsum("rjk,rk->rj", refits.a[good][:, at].astype(np.float64), turns)
    r = np.array([weighted_correlation(label, one) for one in moved])
    return refits.scale * float(r[np.isfinite(r)].std(ddof=1))


def _part(part: Part, results: Results) -> PartResult:
    models, lineages = results.size()
    result = PartResult(
        part=part,
        region=part.region,
        published=results.published_figure(part),
        models=models,
        lineages=lineages,
    )
    try:
        result = replace(result, as_published=_published(part, results))
    except Unavailable as reason:
        result = replace(result, as_published_why=str(reason))
    try:
        sample = _sample(part, results, "honest")
        result = replace(result, chosen=sample.chosen)
        fit = results.consensus("corrected")
        if fit.failed is not None:
            raise Unavailable(fit.failed)
        assert part.ability is not None
        ability = results.ability(part.ability)
        result = replace(result, ability=ability, note=fit.note)
        items = results.items()[sample.chosen]
        names = items["question_id"]
        display = fit.a_display[order_of(fit.items, names)]
        values = ability.sign * display[:, ability.index]
        testlet = items["testlet"].astype(object).where(items["testlet"].notna(), None).to_numpy()
        units = item_units(testlet, len(items))
        count = len(np.unique(units))
        if count < MIN_UNITS:
            raise Unavailable(f"the labelled items are of {count} testlets, {MIN_UNITS} are needed")
        found = cluster_interval(
            lambda weights: weighted_correlation(sample.label, values, weights),
            units,
            purpose=f"label/{part.name}",
            transform="fisher",
        )
        found = widen(found, _calibration_se(results, names, ability, sample.label))
    except Unavailable as reason:
        return result.block(reason)
    return replace(
        result,
        estimate=found.estimate,
        interval=(max(found.low, -1.0), min(found.high, 1.0)),
        level=LEVEL,
        interval_kind=f"bca bootstrap over {count} testlets (items without one count as one), with the calibration's error",
        extra={"groups": _groups(sample.label, values), "table": _table(sample, results, display)},
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on prompt labels."""
    return [_part(part, results) for part in claim.parts]
