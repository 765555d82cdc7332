"""Whether a dimension comes back in other models and other items.

The corrected answer is congruence over disjoint halves of lineages and items, judged by its p-value against data
simulated with one dimension less, and by what else ``stability.json`` asks of it; a region, if the claim gives
one, asks for a size besides. As published: mean congruence over seeds on the same data, which tests the optimiser
and no more.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmirt.claims.gate import failings, p_needed, trial
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import NOT_REPRODUCED, Region, number

__all__ = ["METHODS", "evaluate"]

METHODS = {
    "as_published": "mean Tucker congruence over seeds fitted to the same data, the others aligned to the first",
    "corrected": "Tucker congruence over disjoint halves of lineages and items, against data simulated with one "
    "dimension less",
}


def _over_seeds(table: pd.DataFrame, dimension: int) -> float | None:
    """Return the mean congruence of a dimension over seeds, the study's way where the table has it."""
    rows = table[(table["fit"] == "published") & (table["dimension"] == dimension)]
    for column in ("published_congruence", "congruence"):
        if column in rows and rows[column].notna().any():
            return float(rows[column].mean())
    return None


def _part(part: Part, results: Results) -> PartResult:
    stability, (models, lineages) = results.stability, results.size()
    dimension = part.dimension or 1
    as_published = _over_seeds(results.reproducibility, dimension)
    why = "" if as_published is not None else f"no seeds agree or disagree on dimension {dimension}"
    needed = p_needed(stability)
    fewer = f"{dimension - 1} dimension{'s' * (dimension > 2)}" if dimension > 1 else "no dimension"
    nulls = f"data with {fewer}"
    asked = f"p of at most {number(needed)} against {nulls}"
    base: dict[str, Any] = {
        "part": part,
        "chosen": results.items()["kept"].to_numpy(dtype=bool),
        "models": models,
        "lineages": lineages,
        "published": results.published_figure(part),
        "as_published": as_published,
        "as_published_why": why,
    }
    entry = next(
        (one for one in stability.get("dimensions") or () if int(one["dimension"]) == dimension), None
    )
    if entry is None or stability.get("why_not"):
        why_not = stability.get("why_not") or f"dimension {dimension} was not tested"
        return PartResult(**base, region=part.region, blocked=Unavailable(str(why_not)))
    region = Region(
        part.region.low if part.region else None,
        part.region.high if part.region else None,
        f"{part.region.text}, {asked}" if part.region else asked,
    )
    ends = (entry.get("congruence_low"), entry.get("congruence_high"))
    interval = None if None in ends else (float(ends[0]), float(ends[1]))
    tails = {key: entry.get(key) for key in ("p_congruence", "p_ability_r")}
    shown = ", ".join(
        f"p = {number(p)} for {word}"
        for word, p in zip(("congruence", "abilities"), tails.values(), strict=True)
        if p is not None
    )
    blocked = trial(stability)
    if entry.get("passes") is None:
        blocked = Unavailable("the dimension was not tested against its null")
    elif blocked is None and not entry["passes"]:
        blocked = Unavailable(failings(entry, needed), NOT_REPRODUCED)
    return PartResult(
        **base,
        region=region,
        blocked=blocked,
        estimate=entry.get("congruence_mean"),
        interval=interval,
        interval_kind=f"2.5 to 97.5 percentiles over {stability.get('splits')} splits into disjoint halves",
        level=0.95,
        told="" if part.region else f"stable over halves beyond what {nulls} would give ({shown})",
        extra={
            "dimension": dimension,
            "dims": entry.get("dims"),
            "ability_r": entry.get("ability_r_mean"),
            "null": {
                "congruence": entry.get("null_congruence"),
                "ability_r": entry.get("null_ability_r"),
                "scrambled_congruence": entry.get("scrambled_congruence"),
            },
            **tails,
        },
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on stability."""
    return [_part(part, results) for part in claim.parts]
