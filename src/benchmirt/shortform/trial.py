"""Short forms on trial: every way of choosing them, judged on lineages that had no part in the choice.

One job makes four tables: what the published filter really keeps (:mod:`benchmirt.shortform.published`), the curve from
few items to all of them with random forms beside it, the correlations of each benchmark and ability, and what a set of
items loses with its sharpest ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.dimensions.families import units_of
from benchmirt.dimensions.labels import orientation
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json
from benchmirt.progress import progress
from benchmirt.resampling import clusters, jackknife_se
from benchmirt.shortform import folds as folding
from benchmirt.shortform import published
from benchmirt.shortform.information import standard_errors
from benchmirt.shortform.picture import Picture, Sample, picture_of, random_losses
from benchmirt.shortform.weakening import Weakening, lowest, sharpest, weakening

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.families import LeaveOneOut
    from benchmirt.dimensions.labels import Labels
    from benchmirt.matrix import ResponseData

__all__ = ["SHARES", "WITHIN", "Trial", "run", "write"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Shares of the items of each benchmark along the curve."""
FILTERED = tuple(round(1.0 - cut, 6) for cut in reversed(published.CUTS))
"""Shares at which the published filter is judged too."""
REMOVED = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Shares of sharpest items taken away."""
TENTH = 0.1
"""The share among them that gets an interval."""
WITHIN = 0.05
"""How near two correlations lie that count as the same."""
LEAST_LINEAGES = 3
REPLICATES = 1000

_CURVE = (
    *("form", "share", "items", "pairs", "benchmarks", "loss", "loss_low", "loss_high"),
    *("advantage", "advantage_se", "beaten", "within", "larger", "larger_variance"),
)
_CORRELATIONS = (
    *("form", "share", "benchmark", "ability", "items", "kept", "models", "lineages"),
    *("r_full", "r_form", "difference", "difference_se", "larger"),
)
_WEAKENING = (
    *("way", "ability", "category", "share", "items", "removed", "models", "lineages", "before", "after"),
    *("random", "random_low", "random_high", "excess", "low", "high", "level", "interval_kind"),
)


@dataclass(frozen=True)
class Trial:
    """The four tables, and what stands in their summary.

    Attributes
    ----------
    filter_report
        As from :func:`benchmirt.shortform.published.report`.
    curve
        A row per form and share: items (mean over folds), loss with the quantiles of random forms, ``advantage`` (loss of
        stratified random forms of the same size less its own) with the jackknife's standard error over lineages, ``beaten``
        (share of those forms with a larger loss), pairs ``within`` .05 and with ``larger`` absolute correlations, and the
        expected standard error of each ability (``standard_error_k``).
    correlations
        A row per form, share, benchmark and ability.
    weakening
        A row per way, ability and share of items taken away.
    summary
        Settings, folds, why nothing could be judged (``why_not``), provenance.
    """

    filter_report: pd.DataFrame
    curve: pd.DataFrame
    correlations: pd.DataFrame
    weakening: pd.DataFrame
    summary: dict[str, Any]


def _sample(
    data: ResponseData, leave_one_out: LeaveOneOut, signs: Floats, fold: NDArray[np.intp], unconverged: bool
) -> Sample:
    _, units, unit_of = units_of(data)
    group = np.array([units.index(one) for one in unit_of], dtype=np.intp)
    theta = np.where(leave_one_out.comparable[:, None], leave_one_out.theta * signs, np.nan)
    if not unconverged:
        theta = np.where(leave_one_out.converged[:, None, None], theta, np.nan)
    return Sample(data.responses, group, theta, fold, data.lineage)


def _why_not(data: ResponseData, leave_one_out: LeaveOneOut, unconverged: bool) -> str | None:
    """Say why no form can be judged, or None."""
    lineages = int(clusters(data.lineage).max()) + 1
    if len(leave_one_out.units) < 2:
        return f"the study has a single {leave_one_out.unit}, so no ability can be estimated without it"
    if lineages < LEAST_LINEAGES:
        return f"the models come from {lineages} lineages, and forms are judged on others than they are chosen from"
    if not (leave_one_out.converged.any() or unconverged):
        return f"no fit without a {leave_one_out.unit} converged"
    return None


def _errors(folds: Sequence[folding.Fold], chosen: NDArray[Any]) -> dict[str, float]:
    """Return expected standard errors of the abilities, over folds, with each fold's items (F, J) or parts of items."""
    squares = np.mean(
        [standard_errors(one.bank, form, one.T) ** 2 for one, form in zip(folds, chosen, strict=True)], axis=0
    )
    return {f"standard_error_{k + 1}": float(np.sqrt(value)) for k, value in enumerate(squares)}


def _curve_row(
    form: str, share: float, found: Picture, chosen: Sequence[Mask], against: Floats
) -> dict[str, Any]:
    """Sum up one form beside stratified random ones of its size, whose losses (1 + L, D) are `against`."""
    difference = np.abs(found.r[0] - found.whole[0])
    known = np.isfinite(difference)
    advantage = against.mean(axis=1) - found.loss
    return {
        "form": form,
        "share": share,
        "items": float(np.mean([one.sum(axis=1).mean() for one in chosen])),
        "pairs": int(known.sum()),
        "benchmarks": int(known.any(axis=1).sum()),
        "loss": float(found.loss[0]),
        "advantage": float(advantage[0]),
        "advantage_se": float(jackknife_se(advantage[1:])),
        "beaten": float((against[0] > found.loss[0]).mean()),
        "within": int((difference[known] <= WITHIN).sum()),
        "larger": int(found.larger[known].sum()),
        "larger_variance": found.larger_variance,
    }


def _random_row(form: str, share: float, items: float, losses: Floats, row: dict[str, Any]) -> dict[str, Any]:
    low, high = np.quantile(losses[0], (0.025, 0.975))
    return {
        **{key: row[key] for key in ("pairs", "benchmarks")},
        "form": form,
        "share": share,
        "items": items,
        "loss": float(losses[0].mean()),
        "loss_low": float(low),
        "loss_high": float(high),
    }


def _pair_rows(
    form: str, share: float, found: Picture, chosen: Sequence[Mask], sample: Sample, units: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    for unit, name in enumerate(units):
        for ability in range(found.whole.shape[2]):
            if not np.isfinite(found.whole[0, unit, ability]):
                continue
            mine = chosen[min(ability, len(chosen) - 1)][:, sample.items[unit]]
            difference = found.r[:, unit, ability] - found.whole[:, unit, ability]
            rows.append(
                {
                    "form": form,
                    "share": share,
                    "benchmark": name,
                    "ability": ability + 1,
                    "items": mine.shape[1],
                    "kept": float(mine.sum(axis=1).mean()),
                    "models": int(sample.ran[unit].sum()),
                    "lineages": len(np.unique(clusters(sample.lineage)[sample.ran[unit]])),
                    "r_full": found.whole[0, unit, ability],
                    "r_form": found.r[0, unit, ability],
                    "difference": difference[0],
                    "difference_se": float(jackknife_se(difference[1:])),
                    "larger": bool(found.larger[unit, ability]),
                }
            )
    return rows


def _judged(
    sample: Sample,
    folds: Sequence[folding.Fold],
    units: Sequence[str],
    signs: Floats,
    shares: Sequence[float],
    draws: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of the curve and of the correlations."""
    curve: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for share in progress(shares, total=len(shares), what="sizes of short forms"):
        best = np.stack([folding.information_form(one, sample.group, share) for one in folds])
        losses = {
            stratified: random_losses(
                sample, best, stratified=stratified, draws=draws, purpose=f"random {stratified} {share}"
            )
            for stratified in (True, False)
        }
        found = picture_of(sample, [best])
        row = _curve_row("information", share, found, [best], losses[True])
        curve.append({**row, **_errors(folds, best)})
        parts = folding.sizes_of(sample.group, share) / np.bincount(sample.group)
        even = np.broadcast_to(parts[sample.group], best.shape)
        curve.append(
            {**_random_row("stratified", share, row["items"], losses[True], row), **_errors(folds, even)}
        )
        curve.append(_random_row("random", share, row["items"], losses[False], row))
        pairs += _pair_rows("information", share, found, [best], sample, units)
        if share in FILTERED:
            abilities = range(sample.theta.shape[2])
            kept = [
                np.stack([folding.filter_form(one, sample.group, share, k, signs[k]) for one in folds])
                for k in abilities
            ]
            against = np.mean(
                [
                    random_losses(
                        sample,
                        kept[k],
                        stratified=True,
                        draws=draws,
                        purpose=f"random filter {k} {share}",
                        abilities=slice(k, k + 1),
                    )
                    for k in abilities
                ],
                axis=0,
            )
            found = picture_of(sample, kept)
            curve.append(_curve_row("filter", share, found, kept, against))
            pairs += _pair_rows("filter", share, found, kept, sample, units)
    return curve, pairs


def _weakening_row(
    way: str, place: int, category: str, share: float, found: Weakening, counts: tuple[int, int]
) -> dict[str, Any]:
    low, high = np.quantile(found.at_random, (0.025, 0.975))
    row = {
        "way": way,
        "ability": place + 1,
        "category": category,
        "share": share,
        "items": counts[0],
        "removed": counts[1],
        "models": found.models,
        "lineages": found.lineages,
        "before": found.before,
        "after": found.after,
        "random": float(found.at_random.mean()),
        "random_low": float(low),
        "random_high": float(high),
        "excess": found.after - float(found.at_random.mean()),
    }
    if found.excess is not None:
        row |= {
            "excess": found.excess.estimate,
            "low": found.excess.low,
            "high": found.excess.high,
            "level": found.excess.level,
            "interval_kind": found.excess.kind,
        }
    return row


def _weakened(
    data: ResponseData, sample: Sample, folds: Sequence[folding.Fold], labels: Labels, draws: int
) -> list[dict[str, Any]]:
    """Take the sharpest items of each ability's own category away, chosen without the lineages that are scored."""
    category = data.item_table["category"].fillna("").to_numpy(dtype=str)
    rows = []
    for k, entry in enumerate(labels.dimensions):
        name = next((str(one["category"]) for one in entry["follows"]), None)
        theta = sample.theta[:, :, k]
        known = np.asarray(np.isfinite(theta).all(axis=1))
        among = np.asarray((category == name) & known[sample.group])
        if name is None or not among.any():
            continue
        low = lowest(theta, sample.ran)[sample.group].T
        tells = [one.loadings[:, k] ** 2 * (one.bank.share @ one.bank.weight) for one in folds]
        for share in REMOVED:
            removed = np.stack([sharpest(one, among, share) for one in tells])
            found = weakening(
                data.responses, low, sample.fold, removed, among, data.lineage,
                draws=draws, replicates=REPLICATES if share == TENTH else 0, purpose=f"weakening {k} {share}",
            )  # fmt: skip
            counts = (int(among.sum()), int(removed[0].sum()))
            rows.append(_weakening_row("cross-fitted", k, name, share, found, counts))
    return rows


def _weakened_as_published(data: ResponseData, consensus: Consensus, draws: int) -> list[dict[str, Any]]:
    """Take them away as one fit to all models would, and score the models of that fit."""
    names, signs = published.category_signs(data, consensus.ability_theta)
    category = data.item_table["category"].fillna("").to_numpy(dtype=str)
    everyone = np.ones((1, len(data.models)), dtype=bool)
    rows = []
    for k, (name, sign) in enumerate(zip(names, signs, strict=True)):
        if name is None:
            continue
        among = np.asarray(category == name)
        low = lowest(sign * consensus.ability_theta[None, :, k], everyone)[0]
        for share in REMOVED:
            removed = sharpest(sign * consensus.a_display[:, k], among, share)[None]
            found = weakening(
                data.responses, np.broadcast_to(low[:, None], data.responses.shape), np.zeros(len(low), dtype=np.intp),
                removed, among, data.lineage, draws=draws, purpose=f"weakening as published {k} {share}",
            )  # fmt: skip
            counts = (int(among.sum()), int(removed.sum()))
            rows.append(_weakening_row("as published", k, name, share, found, counts))
    return rows


def run(
    data: ResponseData,
    consensus: Consensus,
    leave_one_out: LeaveOneOut,
    labels: Labels,
    published_data: ResponseData,
    published_consensus: Consensus,
    *,
    folds: int = 5,
    draws: int = 100,
    sweeps: int = 2000,
    tolerance: float = 1e-3,
    unconverged: bool = False,
    shares: Sequence[float] = SHARES,
) -> Trial:
    """Judge short forms.

    Parameters
    ----------
    data, consensus, leave_one_out, labels
        Of the corrected fit: the honest matrix, the axes, the abilities without each benchmark, and their names.
    published_data, published_consensus
        Of the published fit.
    folds
        Folds of lineages, each scored on forms that the others chose.
    draws
        Random forms of each kind and size.
    sweeps, tolerance
        Of the calibrations without a fold.
    unconverged
        Whether abilities of fits that did not converge are used.
    shares
        Shares of the items along the curve.

    Raises
    ------
    InputError
        If the results do not come from the same data.
    """
    for found, whole in (
        (consensus.data_hash, data),
        (leave_one_out.data_hash, data),
        (published_consensus.data_hash, published_data),
    ):
        if found != whole.hash:
            raise InputError(
                "the fits are not of this matrix",
                todo="Run the workflow again, so that all results come from the same data",
            )
    why_not = _why_not(data, leave_one_out, unconverged)
    curve: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    weakened = _weakened_as_published(published_data, published_consensus, draws)
    settled: list[bool] = []
    if why_not is None:
        signs = orientation(labels)
        fold_of, calibrated = folding.calibrate(
            data, consensus, folds=folds, sweeps=sweeps, tolerance=tolerance
        )
        settled = [one.converged for one in calibrated]
        sample = _sample(data, leave_one_out, signs, fold_of, unconverged)
        curve, pairs = _judged(sample, calibrated, leave_one_out.units, signs, shares, draws)
        weakened = _weakened(data, sample, calibrated, labels, draws) + weakened
    errors = [f"standard_error_{k + 1}" for k in range(consensus.dims)]
    return Trial(
        filter_report=published.report(published_data, published_consensus),
        curve=pd.DataFrame(curve, columns=[*_CURVE, *errors]),
        correlations=pd.DataFrame(pairs, columns=list(_CORRELATIONS)),
        weakening=pd.DataFrame(weakened, columns=list(_WEAKENING)),
        summary={
            "folds": len(settled),
            "converged": settled,
            "draws": draws,
            "bins": published.BINS,
            "why_not": why_not,
            "data_hash": data.hash,
            "provenance": provenance.record(data_hash=data.hash),
        },
    )


def write(
    trial: Trial,
    *,
    summary: str | Path,
    filter_report: str | Path,
    curve: str | Path,
    correlations: str | Path,
    weakening: str | Path,
) -> None:
    """Write the summary and the four tables."""
    for table, path in (
        (trial.filter_report, filter_report),
        (trial.curve, curve),
        (trial.correlations, correlations),
        (trial.weakening, weakening),
    ):
        write_csv(table, path)
    write_json(trial.summary, summary)
