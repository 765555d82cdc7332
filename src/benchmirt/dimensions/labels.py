"""Names of the abilities, found after the fact.

The dimensions are fitted blind. An ability is then compared with the declared categories of the benchmarks: for each benchmark
the correlation of its mean with the ability estimated without it, and for each category the mean absolute correlation of its
benchmarks. An ability carries a category's name only if that correlation is clearly above a floor and clearly above that of every
other category, over lineage-bootstrap resamples of the models. Otherwise it stays "ability k".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import resampling
from benchmirt.files import write_json

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.families import LeaveOneOut
    from benchmirt.matrix import ResponseData

__all__ = ["Labels", "build", "follow_categories", "orientation", "read", "write"]

Floats = NDArray[np.float64]

LEAST_CORRELATION = 0.3
LEAST_LEAD = 0.1  # an ability that all categories follow nearly alike is named after none of them
LEAST_LINEAGES = 5
LEAST_SHARE = 0.5  # of a benchmark's items that a model must have answered for its mean to count


@dataclass(frozen=True)
class Labels:
    """What the abilities follow.

    Attributes
    ----------
    categories
        Declared categories, in the order of the items.
    dimensions
        One entry per ability: ability, name (or None), display, orientation (1 or -1), sign, follows, why.
    why_not
        Why no ability could be named at all, or None.
    """

    categories: tuple[str, ...]
    dimensions: tuple[dict[str, Any], ...]
    why_not: str | None

    @property
    def named(self) -> bool:
        """Whether every ability carries a name."""
        return all(entry["name"] for entry in self.dimensions)


def _unit_means(data: ResponseData, labels: NDArray[np.str_], units: tuple[str, ...]) -> Floats:
    """Mean response of every model in every unit, shape (units, models); NaN where it answered too few items."""
    means = np.full((len(units), len(data.models)), np.nan)
    for index, unit in enumerate(units):
        responses = data.responses[:, labels == unit]
        seen = responses >= 0
        count = seen.sum(1)
        enough = count >= max(1.0, LEAST_SHARE * responses.shape[1])
        means[index, enough] = (responses * seen).sum(1)[enough] / count[enough]
    return means


def _correlations(theta: Floats, means: Floats, weights: Floats) -> Floats:
    """Weighted correlations of abilities (models, abilities) with one unit's means, shape (weights, abilities)."""
    seen = np.isfinite(means) & np.isfinite(theta).all(1)
    w = weights[:, seen]
    x, y = theta[seen], means[seen]
    total = w.sum(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = w @ x / total, w @ y / total[:, 0]
        cross = w @ (x * y[:, None]) / total - mean_x * mean_y[:, None]
        var_x = w @ x**2 / total - mean_x**2
        var_y = w @ y**2 / total[:, 0] - mean_y**2
        r = cross / np.sqrt(var_x * var_y[:, None])
    degenerate = (var_x <= 1e-12) | (var_y <= 1e-12)[:, None]
    return np.where(degenerate | ~np.isfinite(r), np.nan, r)


def build(
    data: ResponseData,
    consensus: Consensus,
    leave_one_out: LeaveOneOut,
    *,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Labels:
    """Compare the abilities with the declared categories.

    Parameters
    ----------
    data
        The responses, with the items' table.
    consensus
        The fit whose display abilities are named.
    leave_one_out
        Abilities with one unit left out.
    replicates, level, seed
        Of the lineage bootstrap and its percentile intervals.
    """
    from benchmirt.dimensions.families import units_of

    abilities = consensus.dims
    kind, units, item_units = units_of(data)
    category_of_item = data.item_table["category"].fillna("").to_numpy(dtype=str)
    category_of = {}
    for unit in units:
        names, counts = np.unique(category_of_item[item_units == unit], return_counts=True)
        category_of[unit] = unit if kind == "category" else str(names[counts.argmax()])
    categories = tuple(dict.fromkeys(name for name in category_of.values() if name))
    lineages = len(set(resampling.clusters(data.lineage)))

    why_not = None
    if len(units) < 2:
        why_not = f"the study has a single {kind}, so no ability can be estimated without it"
    elif len(categories) < 2:
        why_not = (
            "the study declares fewer than two categories of benchmarks, so there is nothing to tell apart"
        )
    elif lineages < LEAST_LINEAGES:
        why_not = f"the models come from {lineages} lineages, too few to resample (at least {LEAST_LINEAGES})"

    weights = np.concatenate(
        [
            np.ones((1, len(data.models))),
            resampling.lineage_bootstrap(data.lineage, replicates, seed, "labels"),
        ]
    )
    means = _unit_means(data, item_units, units)
    r = np.full((len(units), 1 + replicates, abilities), np.nan)
    if len(units) > 1:
        for index, unit in enumerate(units):
            r[index] = _correlations(leave_one_out.without(unit), means[index], weights)
            r[index][:, ~leave_one_out.comparable[index]] = np.nan
    strength = np.full((len(categories), 1 + replicates, abilities), np.nan)
    signed = np.zeros((len(categories), abilities))
    for index, category in enumerate(categories):
        rows = r[[category_of[unit] == category for unit in units]]
        if np.isfinite(rows[:, 0]).any():
            strength[index] = _mean(np.abs(rows))
            signed[index] = np.nan_to_num(_mean(rows)[0])
    rests = [
        {
            category: [
                unit
                for unit, same in zip(units, leave_one_out.comparable[:, k], strict=True)
                if category_of[unit] == category and not same
            ]
            for category in categories
        }
        for k in range(abilities)
    ]
    return Labels(categories, _entries(categories, strength, signed, why_not, level, rests), why_not)


def _mean(rows: Floats) -> Floats:
    """Mean over the first axis of what is finite; NaN where nothing is."""
    finite = np.isfinite(rows)
    count = finite.sum(0)
    total = np.where(finite, rows, 0.0).sum(0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _entries(
    categories: tuple[str, ...],
    strength: Floats,
    signed: Floats,
    why_not: str | None,
    level: float,
    rests: Sequence[Mapping[str, Sequence[str]]],
) -> tuple[dict[str, Any], ...]:
    abilities = strength.shape[2]
    point = np.nan_to_num(strength[:, 0]) if categories else np.zeros((0, abilities))
    rows, columns = ident.pairing(point) if categories else ((), ())
    owner = {int(k): int(index) for k, index in zip(columns, rows, strict=True)}
    entries = []
    for k in range(abilities):
        follows: list[dict[str, Any]] = []
        for index, category in enumerate(categories):
            low, high = _percentiles(strength[index, 1:, k], level)
            follows.append(
                {
                    "category": category,
                    "mean_abs_r": _number(strength[index, 0, k]),
                    "low": low,
                    "high": high,
                }
            )
        best = owner.get(k)
        name, why = None, why_not
        if why_not is None:
            name, why = _verdict(k, best, categories, strength, level, rests[k])
        # the sign follows the category that the ability goes with, whether or not the name is supported
        reference = best if best is not None else (int(point[:, k].argmax()) if categories else None)
        turned = reference is not None and signed[reference, k] < 0
        entries.append(
            {
                "ability": k + 1,
                "name": name,
                "display": name or f"ability {k + 1}",
                "orientation": -1 if turned else 1,
                "sign": (
                    "as fitted"
                    if reference is None
                    else f"oriented so that higher goes with higher means in {categories[reference]}"
                ),
                "follows": sorted(follows, key=lambda entry: entry["mean_abs_r"] or 0.0, reverse=True),
                "why": why,
            }
        )
    return tuple(entries)


def _verdict(
    k: int,
    best: int | None,
    categories: tuple[str, ...],
    strength: Floats,
    level: float,
    rests: Mapping[str, Sequence[str]],
) -> tuple[str | None, str]:
    """Name of ability k, if the evidence supports one, and the evidence in words.

    ``rests``: for each category the benchmarks without which the ability is another one.
    """
    if best is None or not np.isfinite(strength[:, 0, k]).any():
        alone = sorted({unit for units in rests.values() for unit in units})
        if not alone:
            return None, "every category goes better with another ability"
        return (
            None,
            f"without {_any_of(alone)} it is another ability, so that it cannot be compared with what it rests on",
        )
    others = [index for index in range(len(categories)) if index != best]
    with np.errstate(invalid="ignore"):
        margin = strength[best, :, k] - np.max(np.nan_to_num(strength[others, :, k]), axis=0)
    low_r, _ = _percentiles(strength[best, 1:, k], level)
    low_margin, _ = _percentiles(margin[1:], level)
    r = strength[best, 0, k]
    lone = rests[categories[best]]
    other = (
        f"; without {_any_of(lone)} it is another ability, so that nothing can be said of that"
        if lone
        else ""
    )
    if low_r is None or low_margin is None:
        why = other or " (constant or missing means)"
        return None, f"the correlations with {categories[best]} are not defined{why}"
    lead = f"{abs(margin[0]):.2f} {'more' if margin[0] >= 0 else 'less'} than the strongest other category"
    text = (
        f"benchmarks of {categories[best]} correlate with it at {r:.2f} on average (at least {low_r:.2f} in "
        f"{level:.0%} of the resamples), {lead} (at least {low_margin:+.2f})"
    )
    if low_r < LEAST_CORRELATION:
        needed = f"a name needs {LEAST_CORRELATION}"
    elif low_margin <= 0:
        needed = "a name needs a lead above 0"
    elif margin[0] < LEAST_LEAD:
        needed = f"a name needs a lead of {LEAST_LEAD}"
    else:
        return categories[best], text
    return None, f"{text}; {needed}{other}"


def _any_of(units: Sequence[str]) -> str:
    """Name units, or count them if they are many."""
    return " or ".join(units) if len(units) <= 3 else f"any one of {len(units)} benchmarks"


def _percentiles(values: Floats, level: float) -> tuple[float | None, float | None]:
    finite = values[np.isfinite(values)]
    if finite.size < max(20, 0.9 * values.size):
        return None, None
    low, high = resampling.percentile(finite, level)
    return float(low), float(high)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def follow_categories(
    correlations: Mapping[str, Sequence[Floats]], abilities: int
) -> tuple[list[str | None], list[float]]:
    """Pair abilities with categories by their correlations alone, without asking whether the evidence supports a name.

    Parameters
    ----------
    correlations
        For each category the correlations of its benchmarks' means with the abilities, each (abilities,).
    abilities
        Number of abilities.

    Returns
    -------
    tuple of lists
        The category of each ability, all assigned together by the mean absolute correlation, or None; and the sign of the
        mean correlation with it, 1 without one.
    """
    names: list[str | None] = [None] * abilities
    signs = [1.0] * abilities
    if correlations:
        categories = list(correlations)
        strength = np.nan_to_num(np.array([np.abs(correlations[one]).mean(axis=0) for one in categories]))
        for row, column in zip(*ident.pairing(strength), strict=True):
            names[column] = categories[row]
            total = float(np.mean([r[column] for r in correlations[categories[row]]]))
            signs[column] = -1.0 if total < 0 else 1.0
    return names, signs


def write(labels: Labels, path: str | Path) -> None:
    """Write ``labels.json``."""
    write_json(
        {
            "categories": list(labels.categories),
            "dimensions": list(labels.dimensions),
            "named": labels.named,
            "why_not": labels.why_not,
        },
        path,
    )


def read(path: str | Path) -> Labels:
    """Read ``labels.json``."""
    from benchmirt.files import read_json

    found = read_json(path)
    return Labels(tuple(found["categories"]), tuple(found["dimensions"]), found["why_not"])


def orientation(labels: Labels | Mapping[str, Any]) -> NDArray[np.float64]:
    """Signs (abilities,) by which consumers multiply display abilities and loadings."""
    entries = labels.dimensions if isinstance(labels, Labels) else labels["dimensions"]
    return np.array([float(entry["orientation"]) for entry in entries])
