"""Whether fewer items do: what a short form keeps of the picture, and what a set loses with its sharpest items.

Corrected: forms are chosen from calibrations that know nothing of the lineages on which they are judged, and benchmarks are
correlated with abilities in which they had no part (``<results>/shortforms/``, made by :mod:`benchmirt.shortform.trial`).

- ``kept``: the share of pairs of a benchmark and an ability whose correlation the form moves by no more than is allowed. As
  many pairs surely and possibly lie within, by simultaneous t intervals over lineages (jackknife, Bonferroni), as bound the
  true share.
- ``advantage``: by how much smaller the form's mean absolute move is than that of stratified random forms of its size.
- ``larger``: the share of pairs with a larger absolute correlation than all items give. Its interval is Clopper and Pearson's
  (1934) for as many independent pairs as there are benchmarks, since the abilities share a benchmark's items, and for fewer
  where the share varies over resampled lineages (design effect; Korn and Graubard 1998, *Survey Methodology* 24, 193-201).
- ``weakening``: by how much more the pass rate of the models with least ability rises without the sharpest items than without
  as many random ones (studentised bootstrap over lineages).

As published: the study's filter, its fit, and the same models throughout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmirt.claims.inputs import Ability, Results, Unavailable
from benchmirt.claims.intervals import LEVEL, degrees_of_freedom, student_factor
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import Bounds, number
from benchmirt.resampling import clopper_pearson

__all__ = ["METHODS", "binomial", "evaluate", "surely_and_possibly"]

METHODS = {
    "as_published": "the published filter (quantile bins of difficulty, most discriminating items of each) by the published fit, "
    "judged on the models that it was fitted to",
    "corrected": "forms chosen by calibrations without the lineages that are judged, benchmarks against abilities in which "
    "they had no part",
}

MOST_KEPT = 1.5
"""A filter that keeps more than so many times the items that it is meant to says nothing about so few."""


def surely_and_possibly(difference: pd.Series, se: pd.Series, factor: float, within: float) -> Bounds:
    """Return the shares of differences that surely and that possibly lie within a distance of 0.

    Parameters
    ----------
    difference, se
        Estimates and standard errors.
    factor
        Of the standard errors in simultaneous intervals.
    within
        The distance.
    """
    half = factor * se.to_numpy(dtype=float)
    size = np.abs(difference.to_numpy(dtype=float))
    return float((size + half <= within + 1e-12).mean()), float((size - half <= within + 1e-12).mean())


def binomial(larger: int, pairs: int, benchmarks: int, variance: float, level: float = LEVEL) -> Bounds:
    """Return Clopper and Pearson's interval of a share for as many pairs as the given ones are worth.

    Parameters
    ----------
    larger, pairs
        The share's counts.
    benchmarks
        Independent pairs, if nothing else made them alike.
    variance
        Of the share over resampled lineages.
    level
        Coverage.
    """
    shrunk = (larger + 1) / (pairs + 2)
    worth = benchmarks / (1.0 + benchmarks * variance / (shrunk * (1.0 - shrunk)))
    return clopper_pearson(worth * (larger / pairs), worth, level)


def _near(column: pd.Series, value: float | None) -> pd.Series:
    return (column - (value or 0.0)).abs() < 1e-9


def _of_form(part: Part, results: Results, table: str) -> pd.DataFrame:
    """Return the rows of a form of one size.

    Raises
    ------
    Unavailable
        If there are none.
    """
    from benchmirt.files import read_json

    why = read_json(results.path("shortforms/summary.json")).get("why_not")
    if why:
        raise Unavailable(str(why))
    found = results.table(f"shortforms/{table}.csv")
    same = found[found["form"] == part.form]
    rows = same[_near(same["share"], part.share)]
    if rows.empty:
        known = ", ".join(number(one) for one in sorted(same["share"].unique()))
        raise Unavailable(
            f"no form {part.form} of the share {number(part.share or 0.0)} was made (there are {known or 'none'})"
        )
    return rows


# -- as published -------------------------------------------------------------------------------------------


def _filtered(part: Part, results: Results) -> pd.DataFrame:
    """Return what the published filter gives, a row per benchmark and ability that has a correlation.

    Raises
    ------
    Unavailable
        If the filter was not tried so, or nothing is to be compared.
    """
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    table = results.table("shortforms/published_filter.csv")
    rows = table[(table["scope"] == part.scope) & _near(table["cut"], 1.0 - (part.share or 0.0))]
    rows = rows[rows["r_full"].notna()]
    if rows.empty:
        raise Unavailable(f"the published filter was not tried with the share {number(part.share or 0.0)}")
    items, nominal, kept = (float(rows[key].sum()) for key in ("items", "nominal", "kept"))
    if kept > MOST_KEPT * nominal:
        raise Unavailable(
            f"the published filter, meant to keep {nominal / items:.0%} of the items, keeps {kept / items:.0%} of these, whose "
            f"bins within {part.scope} hold too few"
        )
    return rows


def _published(part: Part, results: Results) -> float:
    if part.statistic == "weakening":
        assert part.ability is not None
        return float(
            _weakened(part, results, "as published", results.published_ability(part.ability))["excess"]
        )
    rows = _filtered(part, results)
    form = rows["r_form"].fillna(0.0)  # a benchmark that vanished goes with nothing
    if part.statistic == "kept":
        return float(((form - rows["r_full"]).abs() <= (part.within or 0.0) + 1e-12).mean())
    return float((form.abs() > rows["r_full"].abs() + 1e-12).mean())


def _told(results: Results) -> list[dict[str, Any]]:
    """Return what the published filter keeps of all items, for each scope and cut."""
    table = results.table("shortforms/published_filter.csv")
    told = []
    for _, rows in table.groupby(["scope", "cut"], sort=False):
        abilities = rows["ability"].nunique()
        told.append(
            {
                "scope": str(rows["scope"].iloc[0]),
                "cut": float(rows["cut"].iloc[0]),
                "items": int(rows["items"].sum() // abilities),
                "nominal": float(rows["nominal"].sum() / abilities),
                "kept": float(rows["kept"].sum() / abilities),
                "most": float(rows["share"].max()),
                "vanished": sorted(rows.loc[rows["kept"] == 0, "benchmark"].unique()),
            }
        )
    return told


# -- corrected ----------------------------------------------------------------------------------------------


def _kept(part: Part, results: Results) -> dict[str, Any]:
    rows = _of_form(part, results, "correlations")
    within = part.within or 0.0
    factor = student_factor(results.lineage(), 1.0 - (1.0 - LEVEL) / len(rows))
    half = factor * rows["difference_se"]
    return {
        "estimate": float((rows["difference"].abs() <= within + 1e-12).mean()),
        "interval": surely_and_possibly(rows["difference"], rows["difference_se"], factor, within),
        "interval_kind": f"pairs surely and possibly so, by simultaneous t intervals ({factor:.2f} standard errors), "
        "jackknife over lineages",
        "extra": {
            "pairs": [
                {
                    "benchmark": row["benchmark"],
                    "ability": _display(results, int(row["ability"])),
                    "items": int(row["items"]),
                    "kept": float(row["kept"]),
                    "r_full": float(row["r_full"]),
                    "r_form": float(row["r_form"]),
                    "difference": float(row["difference"]),
                    "interval": [float(row["difference"] - reach), float(row["difference"] + reach)],
                }
                for (_, row), reach in zip(rows.iterrows(), half, strict=True)
            ]
        },
    }


def _display(results: Results, ability: int) -> str:
    for entry in results.labels["dimensions"]:
        if int(entry["ability"]) == ability:
            return str(entry.get("display") or f"ability {ability}")
    return f"ability {ability}"


def _advantage(part: Part, results: Results) -> dict[str, Any]:
    row = _of_form(part, results, "curve").iloc[0]
    lineage = results.lineage()
    half = student_factor(lineage) * float(row["advantage_se"])
    value = float(row["advantage"])
    if not np.isfinite([value, half]).all():
        raise Unavailable("random forms of its size have no picture to compare it with")
    return {
        "estimate": value,
        "interval": (value - half, value + half),
        "interval_kind": f"t interval, jackknife over lineages ({degrees_of_freedom(lineage):.1f} degrees of freedom)",
        "note": f"it is nearer than {float(row['beaten']):.0%} of the random forms",
    }


def _larger(part: Part, results: Results) -> dict[str, Any]:
    row = _of_form(part, results, "curve").iloc[0]
    larger, pairs, benchmarks = (int(row[key]) for key in ("larger", "pairs", "benchmarks"))
    return {
        "estimate": larger / pairs,
        "interval": binomial(larger, pairs, benchmarks, float(row["larger_variance"])),
        "interval_kind": "binomial interval (Clopper and Pearson), pairs clustered by benchmark and by lineage",
    }


def _weakened(part: Part, results: Results, way: str, ability: Ability) -> pd.Series:
    """Return the row of an ability.

    Raises
    ------
    Unavailable
        If there is none.
    """
    table = results.table("shortforms/weakening.csv")
    rows = table[(table["way"] == way) & (table["ability"] == ability.index + 1)]
    rows = rows[_near(rows["share"], part.share)]
    if rows.empty:
        raise Unavailable(
            f"no items were taken away for the ability {ability.name} at the share {number(part.share or 0.0)}"
        )
    return rows.iloc[0]


def _weakening(part: Part, results: Results) -> dict[str, Any]:
    assert part.ability is not None
    _of_form(replace(part, form="information", share=1.0), results, "curve")  # says why nothing was judged
    ability = results.ability(part.ability)
    row = _weakened(part, results, "cross-fitted", ability)
    if not np.isfinite(row["low"]):
        raise Unavailable(f"there is no interval at the share {number(part.share or 0.0)}")
    items = results.items()
    return {
        "ability": ability,
        "estimate": float(row["excess"]),
        "interval": (float(row["low"]), float(row["high"])),
        "interval_kind": str(row["interval_kind"]),
        "chosen": ((items["category"] == row["category"]) & items["kept"]).to_numpy(dtype=bool),
        "note": f"{int(row['removed'])} of {int(row['items'])} items taken away; the {int(row['models'])} models with least "
        f"of the ability pass {number(float(row['before']))} of all items and {number(float(row['after']))} of those left",
    }


_CORRECTED = {"kept": _kept, "advantage": _advantage, "larger": _larger, "weakening": _weakening}


def _part(part: Part, results: Results) -> PartResult:
    models, lineages = results.size()
    result = PartResult(
        part=part,
        region=part.region,
        published=results.published_figure(part),
        chosen=results.items()["kept"].to_numpy(dtype=bool),
        models=models,
        lineages=lineages,
        level=LEVEL,
    )
    if part.statistic == "advantage":
        result = replace(result, compares=False, as_published_why="no random forms were published")
    else:
        try:
            result = replace(result, as_published=_published(part, results))
        except Unavailable as reason:
            result = replace(result, as_published_why=str(reason))
    told: dict[str, Any] = {"share": part.share}
    if part.statistic != "weakening":
        told |= {"form": part.form, "filter": _told(results)}
    try:
        fit = results.consensus("corrected")
        if fit.failed is not None:
            raise Unavailable(fit.failed)
        found = _CORRECTED[part.statistic](part, results)
    except Unavailable as reason:
        return replace(result, extra=told).block(reason)
    note = "; ".join(one for one in (str(found.get("note", "")), fit.note) if one)
    return replace(result, **{**found, "note": note, "extra": told | found.get("extra", {})})


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on short forms."""
    return [_part(part, results) for part in claim.parts]
