"""By how much one way to predict held-out answers is better than another, on the same answers.

Corrected: methods with the same priors on the honest matrix, and an interval that leaves out a lineage at a time. As published:
the study's own fits on its own matrix and random cells, where a gain also counts what the priors of the two fits differ in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.intervals import LEVEL
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.prediction import methods
from benchmirt.prediction.intervals import Measured, measured
from benchmirt.prediction.splits import NotPossible
from benchmirt.prediction.station import PUBLISHED, read
from benchmirt.prediction.tally import Tally

__all__ = ["METHODS", "evaluate"]

METHODS = {
    "as_published": "the study's own fits and baselines on random held-out cells of the published matrix",
    "corrected": "all methods with the same priors on the same held-out answers, paired, one lineage left out at a time",
}

_LISTED = ("accuracy", "log_loss", "rank")


def as_study(method: str) -> str:
    """Name the study's own method that goes with one of ours."""
    family, _, dims = method.partition("_")
    return methods.published(int(dims)) if family == "mirt" and dims.isdigit() else method


def tally_of(results: Results, split: str) -> Tally:
    """Return how well the answers of a split were predicted.

    Raises
    ------
    Unavailable
        If the data did not allow the split.
    """
    try:
        return read(
            results.path("prediction/prediction.json"), results.path("prediction/models.parquet"), split
        )
    except NotPossible as reason:
        raise Unavailable(str(reason)) from None


def listed(results: Results, split: str, average: str) -> list[dict[str, Any]]:
    """Scores of all methods of a split, for the record: one entry per method."""
    table = results.table("prediction/scores.csv")
    table = table[(table["split"] == split) & (table["fold"] == "all") & (table["benchmark"] == average)]
    entries = []
    for method in table["method"].unique():
        entry: dict[str, Any] = {
            "split": split,
            "method": method,
            "label": methods.label(method),
            "average": average,
        }
        own = table[table["method"] == method].set_index("metric")
        for metric in _LISTED:
            value, *ends = own.loc[metric, ["value", "low", "high"]] if metric in own.index else [np.nan] * 3
            entry[metric] = _finite(float(value))
            entry[f"{metric}_interval"] = [float(end) for end in ends] if np.isfinite(ends).all() else None
        entries.append(entry)
    return entries


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _need(found: Measured, *wanted: str) -> None:
    lacking = [methods.label(method) for method in wanted if method not in found.methods]
    if lacking:
        raise Unavailable(f"this split has no predictions by {' or '.join(lacking)}: the data are too few")


def _as_published(part: Part, results: Results, metric: str) -> dict[str, Any]:
    """Return what the study's own way gives, or why it gives nothing."""
    method, baseline = as_study(part.method or ""), as_study(part.baseline or "")
    try:
        found = measured(tally_of(results, PUBLISHED), metric)
        _need(found, method, baseline)
    except Unavailable as reason:
        return {"as_published_why": str(reason)}
    scores = [found.score(one, part.average).value for one in (method, baseline)]
    gain = found.gain(method, baseline, part.average).value
    if not np.isfinite(gain):
        return {"as_published_why": "the study's own fits gave no score"}
    pairs = tuple(zip(scores, part.published_scores, strict=True)) if part.published_scores else ()
    return {"as_published": gain, "pairs": pairs}


def _part(part: Part, results: Results) -> PartResult:
    metric = part.statistic.removesuffix("_gain")
    models, lineages = results.size()
    result = PartResult(
        part=part,
        region=part.region,
        published=results.published_figure(part),
        compares=part.published is not None or part.published_region is not None,
        chosen=results.items()["kept"].to_numpy(dtype=bool),
        models=models,
        lineages=lineages,
        **_as_published(part, results, metric),
    )
    method, baseline = part.method or "", part.baseline or ""
    try:
        tally = tally_of(results, part.split or "")
        found = measured(tally, metric)
        _need(found, method, baseline)
    except Unavailable as reason:
        return result.block(reason)
    gain = found.gain(method, baseline, part.average)
    result = replace(
        result,
        models=found.models,
        lineages=found.lineages,
        estimate=_finite(gain.value),
        extra={
            "split": part.split,
            "method": method,
            "baseline": baseline,
            "average": part.average,
        },
    )
    if not np.isfinite([gain.low, gain.high]).all():
        why = "the lineages are worth too few independent models to say how far models differ"
        return result.block(Unavailable(why))
    return replace(result, interval=(gain.low, gain.high), interval_kind=found.kind, level=LEVEL)


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on prediction; the scores of all methods are listed once for each split and average."""
    judged, told = [], set()
    for part in claim.parts:
        result = _part(part, results)
        scores = []
        for split in (part.split or "", PUBLISHED) if "split" in result.extra else ():
            if (split, part.average) not in told:
                told.add((split, part.average))
                scores += listed(results, split, part.average)
        judged.append(replace(result, extra={**result.extra, "scores": scores}))
    return judged
