"""Which ability a set of items follows: the angle between its mean discriminations and the ability's axis.

The estimate is the angle (0 to 180 degrees) between the sum of the discrimination vectors of the selected
items, in the canonical frame of the consensus, and the axis of an ability; the leaning is the angle to
another ability minus that, so that it is positive for items nearer to the first.

Replicates resample lineages and testlets together: each refit on resampled lineages is combined with several
draws of testlets (of items where there are none, or too few). The interval is the estimate plus or minus
Student's t times the replicates' standard deviation, with the lineages' degrees of freedom
(:mod:`benchmirt.claims.intervals`): refits and headline may come from different engines, so that the refits'
spread says how sure the estimate is, but their centre need not be its own. Angles are treated with their sign, as
they lie to one side of the axis or the other, and folded afterwards: an interval of an angle near 0 ends at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmirt.claims import selection
from benchmirt.claims.inputs import Ability, Consensus, Results, Unavailable, order_of
from benchmirt.claims.intervals import LEVEL, degrees_of_freedom, student_factor
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part, Selection
from benchmirt.claims.verdict import Bounds, folded
from benchmirt.resampling import generator, item_units

__all__ = ["METHODS", "Side", "angle_to", "evaluate", "half_width", "prepare", "sides"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

METHODS = {
    "as_published": "angle of the mean discriminations in the published fit (no floors, failures scored 0)",
    "corrected": "angle of the mean discriminations in the corrected fit, with lineages and testlets resampled",
}
DRAWS = 1000
MIN_REFITS = 20
MIN_TESTLETS = 5


@dataclass(frozen=True)
class Side:
    """Mean discriminations of one selection.

    Attributes
    ----------
    chosen
        Usable items, shape (J,) over all items of the matrix.
    mean
        Mean discrimination vector, shape (K,).
    replicates
        The same under resampling, shape (draws, K); draw r of one side belongs to draw r of any other.
    """

    chosen: Mask
    mean: Floats
    replicates: Floats


def angle_to(vectors: Floats, axis: Floats) -> Floats:
    """Return the angle of each vector to an axis in degrees, 0 to 180; NaN for a vector of length 0.

    Parameters
    ----------
    vectors
        Shape (..., K).
    axis
        Shape (K,), any length but 0.
    """
    along = vectors @ (axis / np.linalg.norm(axis))
    across = np.sqrt(np.maximum((vectors**2).sum(axis=-1) - along**2, 0.0))
    angle = np.degrees(np.arctan2(across, along))
    return np.where((vectors**2).sum(axis=-1) > 0, angle, np.nan)


def _signed(mean: Floats, replicates: Floats, axis: Floats) -> Floats:
    """Return the replicates' angles to the axis, negative on the other side of it than `mean`, unwrapped."""
    unit = axis / np.linalg.norm(axis)
    side = mean - (mean @ unit) * unit
    across = replicates - np.outer(replicates @ unit, unit)
    if np.linalg.norm(side) <= 1e-12 * np.linalg.norm(mean):
        # exactly on the axis: any side will do, so the one along which the replicates differ most
        side = np.linalg.svd(across, full_matrices=False)[2][0]
    signed = np.where(across @ side < 0, -1.0, 1.0) * angle_to(replicates, axis)
    estimate = float(angle_to(mean, axis))
    return estimate + (signed - estimate + 180.0) % 360.0 - 180.0


def half_width(replicates: Floats, lineage: NDArray[np.int64]) -> float:
    """Return Student's factor times the standard deviation of the replicates.

    Parameters
    ----------
    replicates
        Degrees, shape (draws,); NaN where there is no direction.
    lineage
        Lineage of each model, shape (n,).

    Raises
    ------
    Unavailable
        If more than a tenth of the replicates have no direction, or there are too few lineages.
    """
    values = replicates[np.isfinite(replicates)]
    if values.size < 0.9 * replicates.size:
        raise Unavailable(f"only {values.size} of {replicates.size} replicates have a direction")
    return student_factor(lineage) * float(values.std(ddof=1))


def _groups(units: NDArray[np.intp], members: Sequence[Mask]) -> list[NDArray[np.intp]]:
    """Sort testlets by which of the selections they have items in, so that each such group is drawn by itself."""
    count = int(units.max(initial=-1)) + 1
    pattern = np.zeros(count, dtype=np.int64)
    for k, member in enumerate(members):
        pattern[np.unique(units[member])] += 2**k
    return [np.flatnonzero(pattern == one) for one in np.unique(pattern[pattern > 0])]


def sides(results: Results, fit: Consensus, masks: Sequence[Mask], purpose: str) -> tuple[list[Side], str]:
    """Return the mean discriminations of some selections with paired replicates, and how items were drawn.

    Parameters
    ----------
    results, fit
        The results and their corrected consensus.
    masks
        Usable items of each selection, shape (J,) over all items of the matrix. Draws don't depend on the
        order of the items.
    purpose
        Seeds the draws.

    Raises
    ------
    Unavailable
        If there are too few refits.
    """
    items = results.items()
    union = np.flatnonzero(np.logical_or.reduce(masks))
    union = union[np.argsort(items["question_id"].to_numpy(dtype=str)[union], kind="stable")]
    names = items["question_id"].iloc[union]
    a = fit.a[order_of(fit.items, names)]
    refits = results.bootstrap
    if len(refits.a) < MIN_REFITS:
        raise Unavailable(
            f"only {len(refits.a)} refits on resampled lineages are usable, {MIN_REFITS} are needed"
        )
    at = order_of(refits.items, names)
    inside = [mask[union] for mask in masks]

    testlets = items["testlet"].iloc[union].astype(object)
    testlets = testlets.where(testlets.notna(), None)
    units = item_units(testlets.to_numpy(), len(names))
    drawn = "testlets" if testlets.notna().any() else "items"
    if any(len(np.unique(units[member])) < MIN_TESTLETS for member in inside):
        units, drawn = np.arange(len(names)), "items (too few testlets)"

    count = int(units.max()) + 1
    groups = _groups(units, inside)
    per_refit = -(-DRAWS // len(refits.a))
    replicates = np.empty((len(inside), len(refits.a), per_refit, fit.dims))
    rng = generator(0, f"{purpose}/items")
    for r, refit in enumerate(refits.a):
        times = np.zeros((per_refit, count))
        for group in groups:
            picks = rng.integers(len(group), size=(per_refit, len(group)))
            for row, pick in zip(times, picks, strict=True):
                row[group] = np.bincount(pick, minlength=len(group))
        found = refit[at].astype(np.float64)
        for k, member in enumerate(inside):
            weights = times[:, units[member]]
            replicates[k, r] = (weights @ found[member]) / weights.sum(axis=1, keepdims=True)
    made = [
        Side(mask, a[member].mean(axis=0), replicates[k].reshape(-1, fit.dims))
        for k, (mask, member) in enumerate(zip(masks, inside, strict=True))
    ]
    return made, drawn


def axis_of(fit: Consensus, ability: Ability) -> Floats:
    """Return the axis of an ability in the canonical frame, shape (K,)."""
    return ability.sign * fit.T[:, ability.index]


def angle_with_interval(side: Side, axis: Floats, lineage: NDArray[np.int64]) -> tuple[float, Bounds]:
    """Return the angle of a selection to an axis, and its folded interval, in degrees."""
    estimate = float(angle_to(side.mean, axis))
    half = half_width(_signed(side.mean, side.replicates, axis), lineage)
    return estimate, folded(estimate - half, estimate + half)


def between(value: float, half: float, limit: float) -> Bounds:
    """Return value plus or minus half, cut at the largest size that it can have."""
    limit = max(limit, abs(value))  # which rounding may have passed
    return max(value - half, -limit), min(value + half, limit)


def described(
    results: Results,
    fit: Consensus,
    side: Side,
    selected: tuple[Selection, Selection],
    lineage: NDArray[np.int64],
) -> dict[str, Any]:
    """Return what a record holds of a selection: its direction, and its angles to all abilities."""
    angles = {}
    for index in range(fit.dims):
        ability = results.ability(index + 1)
        try:
            estimate, interval = angle_with_interval(side, axis_of(fit, ability), lineage)
        except Unavailable:
            continue
        angles[str(index + 1)] = {"name": ability.name, "estimate": estimate, "interval": list(interval)}
    return {
        "select": {column: list(values) for column, values in selected[0].items()},
        "except": {column: list(values) for column, values in selected[1].items()},
        "items": int(side.chosen.sum()),
        "direction": [float(value) for value in side.mean],
        "angles": angles,
    }


@dataclass(frozen=True)
class Prepared:
    """What a claim on directions needs, once per part."""

    fit: Consensus
    ability: Ability
    against: Ability | None
    sides: list[Side]
    lineage: NDArray[np.int64]
    kind: str


def prepare(
    part: Part, results: Results, selections: Sequence[tuple[Selection, Selection]], claim: Claim
) -> tuple[PartResult, Prepared | None]:
    """Collect what a part on directions needs; the result says why if that cannot be had."""
    result = PartResult(part=part, region=part.region, published=results.published_figure(part))
    try:
        masks = [results.usable(select, excepted) for select, excepted in selections]
        ran = np.logical_and.reduce([results.ran(mask) for mask in masks])
        lineage = results.lineage()[ran]
        result = replace(
            result,
            chosen=np.logical_or.reduce(masks),
            models=int(ran.sum()),
            lineages=len(np.unique(lineage)),
        )
        fit = results.consensus("corrected")
        if fit.failed is not None:
            raise Unavailable(fit.failed)
        result = replace(result, note=fit.note)
        if fit.dims < 2:
            raise Unavailable("the fit has one dimension, and a direction needs two")
        assert part.ability is not None
        ability = results.ability(part.ability)
        against = None if part.against is None else results.ability(part.against)
        result = replace(result, ability=ability, against=against)
        found, drawn = sides(results, fit, masks, f"claim/{claim.id}")
    except Unavailable as reason:
        return replace(result, blocked=reason, as_published_why=str(reason) if reason.absent else ""), None
    kind = (
        f"t interval from {len(found[0].replicates):,} replicates of lineages (refits) and {drawn}, "
        f"{degrees_of_freedom(lineage):.1f} degrees of freedom"
    )
    return result, Prepared(fit, ability, against, found, lineage, kind)


def published_means(
    part: Part, results: Results, selections: Sequence[tuple[Selection, Selection]]
) -> tuple[list[Floats], Floats, Floats | None]:
    """Return the mean discriminations of selections in the published fit, and the axes of the abilities.

    Raises
    ------
    Unavailable
        If the fit cannot be used, it has no such ability, or its filter left no items of a selection.
    """
    fit = results.consensus("published")
    if fit.failed is not None:
        raise Unavailable(fit.failed)
    if fit.dims < 2:
        raise Unavailable("the published fit has one dimension, and a direction needs two")
    assert part.ability is not None
    axis = axis_of(fit, results.published_ability(part.ability))
    other = None if part.against is None else axis_of(fit, results.published_ability(part.against))
    items = results.items("published")
    kept = items["kept"].to_numpy(dtype=bool)
    means = []
    for select, excepted in selections:
        chosen = selection.mask(items, select, excepted) & kept
        if not chosen.any():
            raise Unavailable(
                f"the published filter leaves no items with {selection.shown(select, excepted)}"
            )
        means.append(fit.a[order_of(fit.items, items.loc[chosen, "question_id"])].mean(axis=0))
    return means, axis, other


def leaning(vectors: Floats, axis: Floats, other: Floats) -> Floats:
    """Return how much nearer vectors are to one axis than to another, in degrees."""
    return angle_to(vectors, other) - angle_to(vectors, axis)


def _part(part: Part, results: Results, claim: Claim) -> PartResult:
    selections = [(part.select, part.excepted)]
    result, ready = prepare(part, results, selections, claim)
    if not result.as_published_why:
        try:
            (mean,), axis, other = published_means(part, results, selections)
            value = angle_to(mean, axis) if other is None else leaning(mean, axis, other)
            result = replace(result, as_published=float(value))
        except Unavailable as reason:
            result = replace(result, as_published_why=str(reason))
    if ready is None:
        return result
    side = ready.sides[0]
    axis = axis_of(ready.fit, ready.ability)
    try:
        if ready.against is None:
            estimate, interval = angle_with_interval(side, axis, ready.lineage)
        else:
            other = axis_of(ready.fit, ready.against)
            estimate = float(leaning(side.mean, axis, other))
            half = half_width(leaning(side.replicates, axis, other), ready.lineage)
            interval = between(estimate, half, float(angle_to(axis, other)))
    except Unavailable as reason:
        return result.block(reason)
    return replace(
        result,
        estimate=estimate,
        interval=interval,
        interval_kind=ready.kind,
        level=LEVEL,
        extra=described(results, ready.fit, side, selections[0], ready.lineage),
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on directions."""
    parts = [one for part in claim.parts for one in selection.expand(part, results.items())]
    return [_part(part, results, claim) for part in parts]
