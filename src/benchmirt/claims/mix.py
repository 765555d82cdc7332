"""Whether the dimensions depend on the mix of benchmarks that they were found in.

Each category's items are fitted alone and compared with the solution of all items, ability by ability, by Tucker's congruence
of the discriminations on the items that both have (:mod:`benchmirt.dimensions.mix`). An ability whose congruence falls surely
below what is read as fair similarity (.85; Lorenzo-Seva and ten Berge 2006, *Methodology* 2, 57-64) is not the same any more.

The intervals are Student's on Fisher's scale, from refits on resampled lineages. For the least congruence of several, both
ends are the least of theirs, with Bonferroni's correction: any ability that falls below the border settles the claim.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmirt.claims.inputs import Ability, Results, Unavailable
from benchmirt.claims.intervals import LEVEL, degrees_of_freedom, student_factor
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import Bounds

__all__ = ["METHODS", "evaluate"]

METHODS = {
    "as_published": "stated as a limit, without a figure",
    "corrected": "items of one category fitted alone: Tucker congruence with the solution of all items, on the items that "
    "both have, with lineages resampled",
}
MIN_REFITS = 10
_UNPUBLISHED = "the study states this limit without a figure"


@dataclass(frozen=True)
class _Cell:
    """Congruence of one ability in the items of one category."""

    category: str
    ability: Ability
    items: int
    congruence: float
    ability_r: float
    replicates: np.ndarray

    def interval(self, lineage: NDArray[np.int64], scale: float, level: float = LEVEL) -> Bounds:
        """Return Student's interval on Fisher's scale, with the fewer degrees of freedom of lineages and refits.

        Parameters
        ----------
        lineage
            Lineage of each model, shape (n,).
        scale
            By how much deviations of the refits are to be stretched.
        level
            Of the interval.
        """
        if self.replicates.size < MIN_REFITS:
            raise Unavailable(
                f"only {self.replicates.size} refits of {self.category} on resampled lineages are usable, "
                f"{MIN_REFITS} are needed"
            )
        of_refits = float(stdtrit(self.replicates.size - 1, (1 + level) / 2))
        factor = max(student_factor(lineage, level), of_refits)
        half = factor * scale * float(_fisher(self.replicates).std(ddof=1))
        center = float(_fisher(np.array(self.congruence)))
        return float(np.tanh(center - half)), float(np.tanh(center + half))


def _fisher(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.arctanh(np.clip(values, -1 + 1e-9, 1 - 1e-9)))


def _cells(results: Results) -> list[_Cell]:
    """Return every ability of every category alone.

    Raises
    ------
    Unavailable
        If the study has a single category, or a fit did not settle.
    """
    mixes = results.mixes
    rows = mixes.table[mixes.table["mix"] == "only"]
    if rows.empty:
        raise Unavailable(
            "this study has not two categories with enough items to be fitted alone", absent=True
        )
    failed = rows.loc[~rows["converged"].astype(bool), "category"]
    if len(failed) and not results.study.claims.get("unconverged", False):
        raise Unavailable(f"the fit of {failed.iloc[0]} alone did not converge")
    cells = []
    for row in rows.to_dict("records"):
        again = mixes.replicates
        own = (again["category"] == row["category"]) & (again["ability"] == row["ability"])
        cells.append(
            _Cell(
                str(row["category"]),
                results.ability(int(row["ability"])),
                int(row["items"]),
                float(row["congruence"]),
                float(row["ability_r"]),
                again.loc[own & again["converged"].astype(bool), "congruence"].to_numpy(dtype=np.float64),
            )
        )
    return cells


def _table(results: Results, cells: list[_Cell], intervals: list[Bounds]) -> dict[str, Any]:
    """Return every mix with each ability, as the page and the CSV file show them."""
    ends = {
        (cell.category, cell.ability.index + 1): interval
        for cell, interval in zip(cells, intervals, strict=True)
    }
    names = {cell.ability.index + 1: cell.ability.name for cell in cells}
    rows = []
    for row in results.mixes.table.to_dict("records"):
        at = (str(row["category"]), int(row["ability"]))
        interval = ends.get(at) if row["mix"] == "only" else None
        low, high = interval or (None, None)
        rows.append(
            {
                "mix": str(row["mix"]),
                "category": str(row["category"]),
                "benchmark": str(row["benchmark"]),
                "named": named(str(row["mix"]), str(row["category"]), str(row["benchmark"])),
                "items": int(row["items"]),
                "dims": int(row["dims"]),
                "ability": names.get(int(row["ability"]), str(row["ability"])),
                "congruence": float(row["congruence"]),
                "low": low,
                "high": high,
                "ability_r": float(row["ability_r"]),
            }
        )
    return {
        "row": "mix",
        "caption": "Each mix of benchmarks beside the solution of all items: dimensions that are left, congruence of the "
        "discriminations on the items that both have, and correlation of the abilities.",
        "columns": [
            ["named", "Mix", "name"],
            ["items", "Items", "count"],
            ["dims", "Dimensions", "count"],
            ["ability", "Ability", "name"],
            ["congruence", "Congruence", "r"],
            ["low", "95 % interval", "interval"],
            ["ability_r", "Abilities", "r"],
        ],
        "rows": rows,
    }


def _failing(results: Results) -> list[str]:
    """Say which dimensions do not pass in a category alone, and why."""
    return [
        f"dimension {one['dimension']} does not pass in {entry['category']} alone ({one['why']})"
        for entry in results.mixes.alone
        for one in entry["dimensions"]
        if one["passes"] is False
    ]


def named(mix: str, category: str, benchmark: str) -> str:
    """Return a mix in words."""
    return {
        "only": f"{category} alone",
        "random": f"random items, as many as of {category}",
        "added": f"{category} and {benchmark}",
        "without": f"without {benchmark or category}",
    }[mix]


def _part(part: Part, cells: list[_Cell], results: Results) -> PartResult:
    models, lineages = results.size()
    result = PartResult(
        part=part,
        region=part.region,
        models=models,
        lineages=lineages,
        chosen=results.items()["kept"].to_numpy(dtype=bool),
        as_published_why=_UNPUBLISHED,
        compares=False,
    )
    try:
        chosen = cells
        if part.statistic == "congruence":
            assert part.ability is not None
            ability = results.ability(part.ability)
            result = replace(result, ability=ability)
            chosen = [
                cell
                for cell in cells
                if cell.category == part.category and cell.ability.index == ability.index
            ]
            if not chosen:
                raise Unavailable(f"this study has no fit of the category {part.category} alone", absent=True)
        least = min(chosen, key=lambda cell: cell.congruence)
        result = replace(
            result,
            estimate=least.congruence,
            extra={"mix": f"{least.category} alone", "found": least.ability.name},
        )
        codes = results.lineage()
        level = 1 - (1 - LEVEL) / len(chosen)
        ends = [cell.interval(codes, results.mixes.scale, level) for cell in chosen]
    except Unavailable as reason:
        return result.block(reason)
    low, high = (min(end[side] for end in ends) for side in (0, 1))
    correction = f", Bonferroni over {len(chosen)}" if len(chosen) > 1 else ""
    told = f"{least.ability.name} in {least.category} alone"
    return replace(
        result,
        interval=(low, high),
        level=LEVEL,
        interval_kind=f"t interval on Fisher's z over {least.replicates.size} refits on resampled lineages "
        f"({min(degrees_of_freedom(codes), least.replicates.size - 1):.1f} degrees of freedom{correction})",
        note="; ".join([*([f"the least is that of {told}"] if len(chosen) > 1 else []), *_failing(results)]),
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on mixes of benchmarks."""
    try:
        cells = _cells(results)
        intervals = [cell.interval(results.lineage(), results.mixes.scale) for cell in cells]
    except Unavailable as reason:
        return [
            PartResult(part=part, blocked=reason, as_published_why=_UNPUBLISHED, compares=False)
            for part in claim.parts
        ]
    parts = [_part(part, cells, results) for part in claim.parts]
    return [
        replace(
            parts[0],
            extra={
                **parts[0].extra,
                "table": _table(results, cells, intervals),
                "alone": list(results.mixes.alone),
            },
        ),
        *parts[1:],
    ]
