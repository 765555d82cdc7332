"""Adaptive tests on trial: how exact abilities are after so many items, on models held out of the calibration.

Lineages are dealt to folds, and each fold is tested with items that were calibrated on the others
(:func:`benchmirt.shortform.folds.calibrate`). The ways to choose items:

- ``adaptive``: for all abilities together, and ``adaptive_balanced`` with each benchmark in proportion,
  ``adaptive_limited`` with an exposure limit;
- ``one_dimensional``: by the Fisher information at the estimate of a single ability, 2PL items and no error of their
  parameters (Fluid Benchmarking; Hofmann et al. 2025);
- ``shortform``: the fixed list that is D-optimal over all models;
- ``random``, and ``stratified``: random with each benchmark in proportion.

All are scored alike, by the posterior of the fold's own calibration with all its abilities. The truth that an estimate
is held against is that of all the model's items in the same calibration. The one-dimensional test is scored by its own
single ability too (``own``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmirt import provenance
from benchmirt.ability.response import Items
from benchmirt.adaptive.replay import Course, Takers, administer, in_list_order, in_random_order
from benchmirt.adaptive.selection import Criterion, Pool, Rules
from benchmirt.adaptive.session import Stop
from benchmirt.dimensions.families import units_of
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json
from benchmirt.progress import progress
from benchmirt.resampling import LEVEL, bca, clusters, lineage_bootstrap
from benchmirt.shortform import folds as folding
from benchmirt.shortform.information import shares

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.labels import Labels
    from benchmirt.matrix import ResponseData

__all__ = ["METHODS", "SIZES", "STOPS", "Trial", "run", "write"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Numbers of items along the curve, up to the one that is asked for."""
METHODS = {
    "adaptive": "chosen for each model by information on all abilities",
    "adaptive_balanced": "the same, each benchmark in proportion to its items",
    "adaptive_limited": "the same without balance, but with the exposure limit",
    "one_dimensional": "chosen for each model by Fisher information on a single ability, as in Fluid Benchmarking",
    "shortform": "one fixed list for all models, D-optimal, each benchmark in proportion",
    "stratified": "random order, each benchmark in proportion",
    "random": "random order",
}
STOPS = (
    *(Stop(standard_error=error) for error in (0.5, 0.4, 0.3, 0.25, 0.2)),
    *(Stop(gain=gain) for gain in (0.05, 0.02, 0.01)),
)
"""Rules whose tests' lengths are told."""
GOALS = (0.5, 0.4, 0.3, 0.2)
"""Root mean squared errors that the number of items is told for."""
LEAST_LINEAGES = 3
REPLICATES = 1000

_CURVE = (
    *("method", "items", "measure", "value", "low", "high"),
    *("difference", "difference_low", "difference_high", "level", "interval_kind", "models", "lineages"),
)
_EXPOSURE = (
    *("method", "items", "models", "largest", "quantile_99", "quantile_90", "median", "never"),
    *("over_limit", "overlap", "benchmarks"),
)


@dataclass(frozen=True)
class Trial:
    """The two tables, and their summary.

    Attributes
    ----------
    curve
        A row per method, number of items and measure. Measures: ``error_k``, the root mean squared error of ability k;
        ``standard_error_k``, the root mean posterior variance; ``rank_k``, Spearman's correlation over models with the
        estimates from all items; ``benchmarks``, the root mean squared error of the predicted means of all benchmarks (of
        the first random order); for the one-dimensional test those of its own ability too (``own_error`` and so on).
        ``difference`` is the value less that of random order.
    exposure
        A row per method and number of items: shares of the models that saw the items (``largest``, quantiles over
        items), share of the items that ``never`` appeared and of those above the limit, ``overlap`` (share of the items
        that two models have in common, on average), and ``benchmarks`` that a model saw.
    summary
        Settings, what each stopping rule takes, items needed for a given error, folds, provenance.
    """

    curve: pd.DataFrame
    exposure: pd.DataFrame
    summary: dict[str, Any]


@dataclass(frozen=True)
class _Resamples:
    """Weights of the models: all alike (row 0), each lineage left out in turn, and drawn with replacement."""

    weights: Floats
    lineages: int

    @classmethod
    def of(cls, lineage: NDArray[np.int64]) -> _Resamples:
        cluster = clusters(lineage)
        count = int(cluster.max()) + 1
        left_out = (cluster[None, :] != np.arange(count)[:, None]).astype(np.float64)
        drawn = lineage_bootstrap(lineage, REPLICATES, 0, "adaptive trial")
        return cls(np.vstack([np.ones(len(lineage)), left_out, drawn]), count)

    def interval(self, values: Floats) -> tuple[float, float]:
        """Return the BCa ends of a statistic that was worked out with each row of weights; NaN with few lineages."""
        estimate, left_out, drawn = values[0], values[1 : 1 + self.lineages], values[1 + self.lineages :]
        drawn = drawn[np.isfinite(drawn)]
        if self.lineages < LEAST_LINEAGES or not np.isfinite(estimate) or len(drawn) < 0.9 * REPLICATES:
            return np.nan, np.nan
        return bca(float(estimate), drawn, left_out, LEVEL)


def _root_mean(squares: Floats, valid: NDArray[np.bool_], weights: Floats) -> Floats:
    """Root of the weighted mean of squares (N,) of the valid models, with each row of weights (R, N): shape (R,)."""
    own = weights[:, valid]
    total = own.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.where(total > 0, own @ squares[valid] / total, np.nan))


def _ranks(estimate: Floats, truth: Floats, valid: NDArray[np.bool_], weights: Floats) -> Floats:
    """Spearman's correlation of estimates with the truth (N,), with each row of weights, over ranks among all: shape (R,)."""
    x, y = (rankdata(one[valid]) - (valid.sum() + 1) / 2 for one in (estimate, truth))
    own = weights[:, valid]
    with np.errstate(invalid="ignore", divide="ignore"):
        own = own / own.sum(axis=1, keepdims=True)
        products = [own @ one for one in (x, y, x * y, x * x, y * y)]
        spread = np.sqrt((products[3] - products[0] ** 2) * (products[4] - products[1] ** 2))
        return np.where(spread > 1e-9, (products[2] - products[0] * products[1]) / spread, np.nan)


@dataclass(frozen=True)
class _Given:
    """Tests of one method: places (D, N, size) of D draws, and what scores them beside the common calibration."""

    places: NDArray[np.intp]
    own: Takers | None = None


def _one_dimensional(
    data: ResponseData, fold_of: Places, sweeps: int, tolerance: float
) -> tuple[Takers, list[bool]]:
    """Calibrate 2PL items of a single ability without each fold, and take their parameters as exact."""
    plain = replace(data, floor=np.zeros_like(data.floor), ceiling=np.ones_like(data.ceiling))
    pools, settled = [], []
    for index in range(int(fold_of.max()) + 1):
        batch = folding.fit_without(plain, fold_of == index, 1, sweeps=sweeps, tolerance=tolerance)
        # more is better
        sign = 1.0 if batch.a[0].sum() >= 0 else -1.0
        items = Items(
            jnp.asarray(batch.a[0]), jnp.asarray(batch.d[0]), jnp.zeros_like(batch.item_cov[0]), None
        )
        group = np.zeros(len(data.items), dtype=np.intp)
        pools.append(Pool(items, np.array([[sign]]), group, np.ones(1)))
        settled.append(bool(batch.converged[0]))
    return Takers(tuple(pools), fold_of, data.responses), settled


def _measures(
    takers: Takers,
    places: NDArray[np.intp],
    valid: NDArray[np.bool_],
    whole: tuple[Floats, Floats],
    group: Places,
    resamples: _Resamples,
    prefix: str = "",
) -> dict[str, Floats]:
    """Return each measure of tests (D, N, n) with each row of the weights, (R,).

    `whole` are the abilities (N, A) from all items and the means (N, G) of the groups.
    """
    truth, means = whole
    found = [takers.posterior(one) for one in places]
    mean, errors = (np.stack(one) for one in zip(*(takers.shown(one) for one in found), strict=True))
    squares, variance = ((mean - truth) ** 2).mean(axis=0), (errors**2).mean(axis=0)
    made: dict[str, Floats] = {}
    for k in range(truth.shape[1]):
        suffix = "" if prefix else f"_{k + 1}"
        made[f"{prefix}error{suffix}"] = _root_mean(squares[:, k], valid, resamples.weights)
        made[f"{prefix}standard_error{suffix}"] = _root_mean(variance[:, k], valid, resamples.weights)
        made[f"{prefix}rank{suffix}"] = np.mean(
            [_ranks(one[:, k], truth[:, k], valid, resamples.weights) for one in mean], axis=0
        )
    # predictions of the first draw alone, which cost more than all else
    tested = np.zeros(takers.responses.shape, dtype=bool)
    model, step = np.nonzero(places[0] >= 0)
    tested[model, places[0][model, step]] = True
    apart = (takers.means(found[0], tested, group, means.shape[1]) - means) ** 2
    made[f"{prefix}benchmarks"] = _root_mean(np.nanmean(apart, axis=1), valid, resamples.weights)
    return made


def _exposure_row(
    method: str, places: Places, valid: NDArray[np.bool_], takers: Takers, group: Places, limit: float
) -> dict[str, Any]:
    """Sum up who saw what in the tests (N, n), and how alike those of the models that count are."""
    mine, count = places[valid], takers.responses.shape[1]
    # tests that ended sooner showed items too
    share = np.bincount(places[places >= 0], minlength=count) / len(places)
    seen = np.zeros((len(mine), count), dtype=np.float32)
    seen[np.arange(len(mine))[:, None], mine] = 1
    common = (seen.sum(axis=0) ** 2).sum() - seen.sum()
    pairs = len(mine) * (len(mine) - 1)
    return {
        "method": method,
        "items": mine.shape[1],
        "models": len(mine),
        "largest": share.max(),
        "quantile_99": np.quantile(share, 0.99),
        "quantile_90": np.quantile(share, 0.9),
        "median": np.median(share),
        "never": (share == 0).mean(),
        "over_limit": (share > limit + 1e-9).mean(),
        "overlap": common / (pairs * mine.shape[1]),
        "benchmarks": np.mean([len(np.unique(group[one])) for one in mine]),
    }


def _stopping(course: Course, truth: Floats) -> list[dict[str, Any]]:
    """Say for each rule how many tests it ends, after how many items, and how far from the truth (N, A) they are then."""
    told = []
    for stop in STOPS:
        ended = np.array(
            [
                [
                    stop.why(course.errors[step, model], int(at), course.gain[step, model])
                    in ("standard error", "gain")
                    for model in range(len(truth))
                ]
                for step, at in enumerate(course.at)
            ]
        )
        reached = ended.any(axis=0)
        step = ended.argmax(axis=0)[reached]
        apart = course.abilities[step, np.flatnonzero(reached)] - truth[reached]
        quartiles = np.quantile(course.at[step], (0.25, 0.5, 0.75)) if reached.any() else [None] * 3
        told.append(
            {
                "standard_error": stop.standard_error,
                "gain": stop.gain,
                "reached": reached.mean(),
                "items": dict(zip(("quartile_1", "median", "quartile_3"), quartiles, strict=True)),
                "error": np.sqrt((apart**2).mean(axis=0)).tolist() if reached.any() else None,
            }
        )
    return told


def _needed(curve: pd.DataFrame, measures: Sequence[str]) -> dict[str, Any]:
    """Say after how many items each method's errors reach the goals, on straight lines over log items; None: not reached."""

    def items(rows: pd.DataFrame, goal: float) -> float | None:
        n, error = rows["items"].to_numpy(dtype=float), rows["value"].to_numpy(dtype=float)
        below = np.flatnonzero(error <= goal)
        if not below.size or below[0] == 0:
            return float(n[0]) if below.size else None
        i = below[0]
        part = (error[i - 1] - goal) / (error[i - 1] - error[i])
        return float(np.exp(np.log(n[i - 1]) + part * np.log(n[i] / n[i - 1])))

    return {
        method: {
            measure: {
                f"{goal:g}": items(
                    curve[(curve["method"] == method) & (curve["measure"] == measure)].sort_values("items"),
                    goal,
                )
                for goal in GOALS
            }
            for measure in measures
        }
        for method in METHODS
    }


def run(
    data: ResponseData,
    consensus: Consensus,
    labels: Labels,
    *,
    size: int = 200,
    batch: int = 5,
    criterion: Criterion = "D",
    exposure: float = 0.2,
    best_of: int = 5,
    folds: int = 5,
    draws: int = 10,
    sweeps: int = 2000,
    tolerance: float = 1e-3,
) -> Trial:
    """Give tests of every kind to models held out of the calibration.

    Parameters
    ----------
    data, consensus, labels
        The honest matrix, the axes, and the names of the abilities.
    size
        Items of the longest tests; sizes are those of `SIZES` up to it, and itself.
    batch
        Items that are chosen at a time.
    criterion
        As in :class:`benchmirt.adaptive.selection.Rules`.
    exposure, best_of
        Limit of ``adaptive_limited``, within each fold, and from how many of the best items it draws.
    folds
        Folds of lineages.
    draws
        Random orders of each kind.
    sweeps, tolerance
        Of the calibrations.

    Raises
    ------
    InputError
        If the consensus is not of this matrix, or there are too few lineages or items.
    """
    if consensus.data_hash != data.hash:
        raise InputError(
            "the fit is not of this matrix",
            todo="Run the workflow again, so that all results come from the same data",
        )
    lineages = int(clusters(data.lineage).max()) + 1
    if lineages < LEAST_LINEAGES:
        raise InputError(
            "too few lineages to test models on items that others calibrated",
            found=str(lineages),
            expected=f"at least {LEAST_LINEAGES}",
        )
    longest = int((data.responses >= 0).sum(axis=1).max())
    size = min(size, longest - 1)
    sizes = sorted({*(one for one in SIZES if one < size), size})
    fold_of, calibrated = folding.calibrate(data, consensus, folds=folds, sweeps=sweeps, tolerance=tolerance)
    single, single_settled = _one_dimensional(data, fold_of, sweeps, tolerance)
    unit, units, unit_of = units_of(data)
    group, share = shares(unit_of, "proportional")
    balanced = Takers(
        tuple(Pool(one.items, one.T, group, share) for one in calibrated), fold_of, data.responses
    )
    anywhere = Takers(
        tuple(Pool(one.items, one.T, np.zeros_like(group), np.ones(1)) for one in calibrated),
        fold_of,
        data.responses,
    )
    rules = Rules(criterion)

    def adaptively(name: str, takers: Takers, rules: Rules, limit: float = 1.0) -> Course:
        return administer(takers, rules, size=size, batch=batch, sizes=sizes, limit=limit, name=name)

    course = adaptively("adaptive", anywhere, rules)

    def randomly(stratified: bool) -> NDArray[np.intp]:
        return np.stack(
            [in_random_order(balanced, size, stratified=stratified, draw=draw) for draw in range(draws)]
        )

    given = {
        "adaptive": _Given(course.places[None]),
        "adaptive_balanced": _Given(adaptively("adaptive_balanced", balanced, rules).places[None]),
        "adaptive_limited": _Given(
            adaptively("adaptive_limited", anywhere, replace(rules, best_of=best_of), exposure).places[None]
        ),
        "one_dimensional": _Given(
            adaptively("one_dimensional", single, Rules(per_dimension=1)).places[None], single
        ),
        "shortform": _Given(in_list_order(balanced, size)[None]),
        "stratified": _Given(randomly(True)),
        "random": _Given(randomly(False)),
    }
    member = (group[:, None] == np.arange(len(share))).astype(np.float64)
    with np.errstate(invalid="ignore"):
        means = ((data.responses == 1) @ member) / (anywhere.seen @ member)

    whole = anywhere.whole(), means
    alone = single.whole(), means
    resamples = _Resamples.of(data.lineage)
    curve: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for at in progress(sizes, len(sizes), "numbers of items"):
        against: dict[str, Floats] = {}
        valid_of = {
            # a model that has hardly more outcomes has no other items to be right or wrong about
            method: (tests.places[:, :, at - 1] >= 0).all(axis=0) & (anywhere.seen.sum(axis=1) > at)
            for method, tests in given.items()
        }
        for method in reversed(METHODS):  # random order first, which the others are held against
            valid, tests = valid_of[method], given[method]
            if valid.sum() < LEAST_LINEAGES:
                continue
            places = tests.places[:, :, :at]
            made = _measures(anywhere, places, valid, whole, group, resamples)
            if method == "random":
                against = made
            if tests.own is not None:
                made |= _measures(tests.own, places, valid, alone, group, resamples, prefix="own_")
            same = bool((valid == valid_of["random"]).all()) and method != "random"
            curve += _rows(method, at, made, against if same else {}, valid, data.lineage, resamples)
            shown.append(_exposure_row(method, places[0], valid, anywhere, group, exposure))
    order = {method: place for place, method in enumerate(METHODS)}
    table = pd.DataFrame(curve, columns=list(_CURVE))
    table = table.sort_values(["method", "items"], key=_by(order), kind="stable").reset_index(drop=True)
    seen = pd.DataFrame(shown, columns=list(_EXPOSURE))
    seen = seen.sort_values(["method", "items"], key=_by(order), kind="stable").reset_index(drop=True)
    errors = [f"error_{k + 1}" for k in range(whole[0].shape[1])]
    return Trial(
        table,
        seen,
        {
            "abilities": {f"error_{k + 1}": one["display"] for k, one in enumerate(labels.dimensions)},
            "methods": METHODS,
            "settings": {
                "size": size,
                "batch": batch,
                "sizes": sizes,
                "criterion": criterion,
                "exposure": exposure,
                "best_of": best_of,
                "folds": int(fold_of.max()) + 1,
                "draws": draws,
            },
            "models": len(data.models),
            "lineages": lineages,
            "items": len(data.items),
            "balance": {"over": unit, "groups": len(units)},
            "truth": "abilities from all outcomes of the model in the calibration that it is tested with",
            "converged": [one.converged for one in calibrated],
            "converged_one_dimensional": single_settled,
            "stopping": _stopping(course, whole[0]),
            "needed": _needed(table, errors),
            "interval": f"{LEVEL:.0%} BCa bootstrap over lineages, {REPLICATES} replicates; items held fixed",
            "data_hash": data.hash,
            "provenance": provenance.record(data_hash=data.hash),
        },
    )


def _by(order: dict[str, int]) -> Callable[[pd.Series], pd.Series]:
    """Sort methods in their own order, and numbers as they are."""
    return lambda column: column.map(order) if column.name == "method" else column


def _rows(
    method: str,
    at: int,
    made: dict[str, Floats],
    against: dict[str, Floats],
    valid: NDArray[np.bool_],
    lineage: NDArray[np.int64],
    resamples: _Resamples,
) -> list[dict[str, Any]]:
    """Turn measures, worked out with each row of weights, into rows with intervals."""
    rows = []
    for measure, values in made.items():
        low, high = resamples.interval(values)
        row: dict[str, Any] = {
            "method": method,
            "items": at,
            "measure": measure,
            "value": float(values[0]),
            "low": low,
            "high": high,
            "level": LEVEL,
            "interval_kind": "bca bootstrap over lineages",
            "models": int(valid.sum()),
            "lineages": len(np.unique(clusters(lineage)[valid])),
        }
        if measure in against:
            difference = values - against[measure]
            low, high = resamples.interval(difference)
            row |= {"difference": float(difference[0]), "difference_low": low, "difference_high": high}
        rows.append(row)
    return rows


def write(trial: Trial, *, summary: str | Path, curve: str | Path, exposure: str | Path) -> None:
    """Write the summary and the two tables."""
    write_csv(trial.curve, curve)
    write_csv(trial.exposure, exposure)
    write_json(trial.summary, summary)
