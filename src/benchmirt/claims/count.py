"""Counts: how many models, benchmarks, items and kept items there are, to the last one.

The corrected answer compares the matrix with what the study's sources delivered (its manifest), or with the
number that the claim expects; kept items are counted again from the responses, in whole numbers. The
published figure is compared at full size only, since a scaled-down study cannot have it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from benchmirt.claims import selection
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import Region, number

__all__ = ["METHODS", "evaluate", "recount"]

METHODS = {
    "as_published": "counts of the matrix with the published scoring and filter",
    "corrected": "the matrix counted against what the sources delivered; kept items counted again from the "
    "responses, in whole numbers",
}

_LISTED = 5


def recount(observed: np.ndarray, right: np.ndarray, bounds: tuple[str, str], least: int) -> np.ndarray:
    """Decide in whole numbers which items a filter keeps.

    Parameters
    ----------
    observed, right
        Per item the number of models with an outcome, and with the outcome 1, shape (J,).
    bounds
        Lower and upper bound of the mean as decimal texts; a mean must lie strictly between them.
    least
        Smallest number of outcomes.

    Returns
    -------
    ndarray of int8, shape (J,)
        1 kept; 0 dropped; -1 dropped with a mean exactly on a bound.
    """
    low, high = (Fraction(bound) for bound in bounds)
    above = right * low.denominator - observed * low.numerator
    below = observed * high.numerator - right * high.denominator
    kept = (above > 0) & (below > 0) & (observed >= least)
    edge = ((above == 0) | (below == 0)) & (observed >= least)
    return np.where(kept, 1, np.where(edge, -1, 0)).astype(np.int8)


def _delivered(results: Results) -> tuple[pd.DataFrame, pd.Index]:
    """Return the items and models that the sources delivered, each once."""
    sources = [source.name for source in results.study.sources]
    items = pd.concat([results.delivered(source, "items") for source in sources], ignore_index=True)
    models = pd.concat([results.delivered(source, "models") for source in sources], ignore_index=True)
    return items.drop_duplicates("question_id", ignore_index=True), pd.Index(models["model"].unique())


def _counts(part: Part, results: Results, policy: str) -> int:
    if part.statistic == "models":
        return len(results.all_models(policy))
    items = results.items(policy)
    chosen = selection.mask(items, part.select, part.excepted)
    if part.statistic == "benchmarks":
        return int(items.loc[chosen, "benchmark"].nunique())
    if part.statistic == "kept_items":
        return int((chosen & items["kept"].to_numpy(dtype=bool)).sum())
    return int(chosen.sum())


def _expected(part: Part, results: Results) -> tuple[int, str, str]:
    """Return the number that must come out, where it comes from, and a note."""
    if part.expected is not None:
        return part.expected, "as the claim expects", ""
    if part.statistic == "kept_items":
        policy = "published"
        items = results.items(policy)
        chosen = selection.mask(items, part.select, part.excepted)
        outcomes = results.responses(policy)[chosen]
        bounds = results.study.filter[policy]
        decided = recount(
            (outcomes >= 0).sum(axis=1),
            (outcomes == 1).sum(axis=1),
            (str(bounds["min_mean"]), str(bounds["max_mean"])),
            int(results.study.filter["min_observed"]),
        )
        note = ""
        edge = items.loc[chosen, "question_id"].to_numpy()[decided == -1]
        if edge.size:
            listed = ", ".join(map(str, edge[:_LISTED])) + (", ..." if edge.size > _LISTED else "")
            some = "item lies" if edge.size == 1 else "items lie"
            note = f"{edge.size:,} {some} exactly on a bound and so dropped ({listed})"
        return int((decided == 1).sum()), "as counted again from the responses", note
    items, models = _delivered(results)
    if part.statistic == "models":
        return len(models), "as the sources delivered", ""
    chosen = selection.mask(items, part.select, part.excepted)
    if part.statistic == "benchmarks":
        return int(items.loc[chosen, "benchmark"].nunique()), "as the sources delivered", ""
    return int(chosen.sum()), "as the sources delivered", ""


def _part(part: Part, results: Results) -> PartResult:
    # kept items are a matter of the published filter in both columns
    policy = "published" if part.statistic == "kept_items" else "honest"
    items, (models, lineages) = results.items(policy), results.size()
    result = PartResult(
        part=part,
        needs_models=False,
        models=models,
        lineages=lineages,
        published=results.published_figure(part),
    )
    reason = selection.absent(items, part.select, part.excepted) if part.select else None
    if reason is not None:
        return replace(result, blocked=Unavailable(reason, absent=True), as_published_why=reason)
    count = float(_counts(part, results, policy))
    expected, source, note = _expected(part, results)
    return replace(
        result,
        region=Region.whole(expected, expected, f"exactly {number(expected, 'count')}, {source}"),
        estimate=count,
        interval=(count, count),
        interval_kind="a count, without sampling error",
        told=f"{number(count, 'count')} in the matrix, {number(expected, 'count')} {source}",
        note=note,
        chosen=selection.mask(results.items(), part.select, part.excepted),
        as_published=float(_counts(part, results, "published")),
        as_published_why=""
        if results.study.published_size
        else "published counts are compared at full size only",
        compares=result.published is not None and results.study.published_size,
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on counts."""
    parts = [one for part in claim.parts for one in selection.expand(part, results.items())]
    return [_part(part, results) for part in parts]
