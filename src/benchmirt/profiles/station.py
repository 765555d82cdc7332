"""Profiles of all benchmarks of a study, as tables.

Directions and their intervals are those of the claims (:mod:`benchmirt.claims.direction`), what items tell and the best
short form those of :mod:`benchmirt.shortform.information`, and the size of a benchmark's own deviations is the
calibration's (:mod:`benchmirt.ability.prediction`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpy.typing import NDArray

from benchmirt.ability.calibration import Calibration
from benchmirt.ability.posterior import chunks
from benchmirt.ability.response import Items, items_of, response
from benchmirt.claims import direction
from benchmirt.claims.inputs import Ability, Consensus, Results, Unavailable, order_of
from benchmirt.dimensions.families import LeaveOneOut
from benchmirt.errors import InputError
from benchmirt.files import write_csv
from benchmirt.outcomes import REASONS
from benchmirt.profiles import clusters, items, own
from benchmirt.shortform.information import Bank, bank_of, greedy, standard_errors

__all__ = ["DECLARED", "Profiles", "build", "write"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

DECLARED = (
    "subcategory_one",
    "subcategory_two",
    "subcategory_three",
    "domain_superset",
    "question_type",
    "category",
)
"""Columns of the items table whose values are compared with the groups that were found."""
CEILING, FLOOR = 0.95, 0.05
"""An item with at least, or at most, this mean hardly tells models apart; the published filter's bounds."""
SHORT_SHARE, LEAST_SHORT, MOST_SHORT = 0.1, 10, 100
LEAST_ITEMS = 3
"""Fewer items have no interval of their direction."""
MOST_SUBSETS = 30
"""A column with more values says what single items are about, and not how a benchmark is divided."""
MOST_MODELS = 500
"""The information of items is averaged over the abilities of so many models at most, evenly taken."""


@dataclass(frozen=True)
class Profiles:
    """Tables of all benchmarks: a row per benchmark, per group of its items, per declared subset, and per item."""

    benchmarks: pd.DataFrame
    groups: pd.DataFrame
    subsets: pd.DataFrame
    items: pd.DataFrame


@dataclass(frozen=True)
class _Study:
    """What the profiles of all benchmarks are made from, items in the order of the calibration.

    Attributes
    ----------
    results
        Directions, refits and outcomes of the study.
    calibration, parameters
        The items with parameters.
    fit
        The consensus as the claims see it.
    table
        All items of the study.
    member
        Benchmark of each item with parameters, shape (J,).
    outcomes
        1, 0 or -1 where missing, of the items with parameters, shape (N, J).
    theta
        Abilities in the canonical frame, shape (N, K).
    left_out
        Abilities without each benchmark in the canonical frame, shape (N, K), by benchmark; empty where there are none.
    refits
        Usable refits' discriminations, shape (R, J, K), and by how much their deviations are stretched.
    at_models, population
        Information of the items at the models' abilities, and over N(0, I).
    abilities
        The display abilities with their signs.
    """

    results: Results
    calibration: Calibration
    parameters: Items
    fit: Consensus
    table: pd.DataFrame
    member: NDArray[np.str_]
    outcomes: NDArray[np.int8]
    theta: Floats
    left_out: Mapping[str, Floats]
    refits: tuple[NDArray[np.float32], float]
    at_models: Bank
    population: Bank
    abilities: Sequence[Ability]


def _study(results: Results, calibration: Calibration, left_out: LeaveOneOut) -> _Study:
    """Bring everything into the order of the calibration's items.

    Raises
    ------
    InputError
        If the results do not come from the same data.
    """
    fit = results.consensus("corrected")
    if fit.data_hash != left_out.data_hash or fit.data_hash != calibration.about["provenance"]["data_hash"]:
        raise InputError(
            "the calibration or the fits without a benchmark are not of this consensus",
            file=results.folder,
            todo="Run the workflow again, so that all results come from the same data",
        )
    table = results.items()
    place = order_of(pd.Index(table["question_id"]), calibration.items)
    outcomes = np.ascontiguousarray(results.responses()[place].T)
    models = order_of(fit.models, results.models()["model"])
    inward = np.linalg.inv(fit.T)
    theta = fit.ability_theta[models] @ inward
    without = {}
    if left_out.unit == "benchmark" and len(left_out.units) > 1:
        rows = order_of(pd.Index(left_out.models), results.models()["model"])
        without = {unit: left_out.without(unit)[rows] @ inward for unit in left_out.units}
    refits = results.bootstrap
    parameters = items_of(calibration)
    finite = theta[np.isfinite(theta).all(axis=1)]
    some = finite[np.unique(np.linspace(0, len(finite) - 1, min(len(finite), MOST_MODELS)).astype(int))]
    return _Study(
        results=results,
        calibration=calibration,
        parameters=parameters,
        fit=fit,
        table=table,
        member=calibration.benchmark_of(),
        outcomes=outcomes,
        theta=theta,
        left_out=without,
        refits=(refits.a[:, order_of(refits.items, calibration.items)], refits.scale),
        at_models=bank_of(parameters, some),
        population=bank_of(parameters),
        abilities=[results.ability(k + 1) for k in range(fit.dims)],
    )


def _bounds(
    study: _Study, chosen: Mask, purpose: str
) -> tuple[dict[str, float | None], direction.Cloud | None, NDArray[np.int64]]:
    """Return angles to all abilities with intervals, and the cloud that they come from, of some usable items.

    Parameters
    ----------
    chosen
        Shape (all items of the study,).
    """
    dims = study.fit.dims
    found: dict[str, float | None] = {}
    lineage = study.results.lineage()[study.results.ran(chosen)]
    try:
        if chosen.sum() < LEAST_ITEMS:
            raise Unavailable("too few items")
        cloud = direction.cloud(study.results, study.fit, [chosen], purpose)
    except Unavailable:
        cloud = None
    mean = study.fit.a[order_of(study.fit.items, study.table.loc[chosen, "question_id"])].mean(axis=0)
    for k, ability in enumerate(study.abilities, start=1):
        names = [f"angle_{k}", f"angle_{k}_low", f"angle_{k}_high"]
        if dims == 1:
            continue
        values: list[float | None] = [
            float(direction.angle_to(mean, direction.axis_of(study.fit, ability))),
            None,
            None,
        ]
        if cloud is not None:
            with contextlib.suppress(Unavailable):
                values[0], (values[1], values[2]) = direction.angle_with_interval(
                    study.results, study.fit, cloud, 0, ability, lineage
                )
        found |= dict(zip(names, values, strict=True))
    return found, cloud, lineage


def _strength(
    study: _Study, cloud: direction.Cloud | None, lineage: NDArray[np.int64], mean: Floats
) -> dict[str, float | None]:
    """Return the length of the mean discrimination; with one ability signed, and with an interval."""
    if study.fit.dims > 1:
        return {"discrimination": float(np.linalg.norm(mean))}
    axis = direction.axis_of(study.fit, study.abilities[0])
    value = float(mean @ axis)
    found: dict[str, float | None] = {
        "discrimination": value,
        "discrimination_low": None,
        "discrimination_high": None,
    }
    if cloud is not None:
        try:
            below, above = direction.spread(cloud.replicates[0] @ axis, lineage, cloud.scale)
        except Unavailable:
            return found
        if np.isfinite([below, above]).all():
            found |= {"discrimination_low": value - below, "discrimination_high": value + above}
    return found


def _shares(a: Floats, T: Floats) -> Floats:
    """Return which share of the items' squared MDISC lies along each ability, shape (A,).

    Abilities may be oblique; the shares are along the orthogonal axes nearest to them, so that they sum to 1.
    """
    left, _, right = np.linalg.svd(T)
    squared = ((a @ (left @ right)) ** 2).sum(axis=0)
    return np.asarray(squared / squared.sum() if squared.sum() > 0 else np.full(len(squared), np.nan))


@jax.jit
def _without(theta: Array, responses: Array, member: Array, items: Items) -> tuple[Array, Array, Array]:
    """Return what the other benchmarks say of one, for models (N, K) with outcomes (N, J; -1 missing) at their abilities.

    Returns
    -------
    Probability of a 1 (N, J), gradient of the benchmark's expected score (N, K), and precision of the abilities by the
    outcomes of the other benchmarks (N, K, K).
    """
    told = response(theta, items)
    seen = responses >= 0
    own = seen & member
    gradient = jnp.where(own, told.slope, 0.0) @ items.a / jnp.maximum(own.sum(axis=1, keepdims=True), 1)
    weight = jnp.where(seen & ~member, told.slope**2 / told.variance, 0.0)
    outer = items.a[:, :, None] * items.a[:, None, :]
    precision = jnp.eye(items.dims) + jnp.einsum("nj,jkl->nkl", weight, outer)
    return told.probability, gradient, precision


def _expected(study: _Study, name: str, member: Mask, ran: Mask) -> tuple[Floats | None, Floats | None]:
    """Return expected outcomes (models, items of the benchmark) by abilities without it, and their error's variance."""
    theta = study.left_out.get(name)
    if theta is None or member.all():
        return None, None
    theta = theta[ran]
    found: list[tuple[Floats, Floats]] = []
    for rows, part in chunks(study.outcomes[ran]):
        own = np.zeros((len(part), theta.shape[1]), dtype=np.float32)
        own[: rows.stop - rows.start] = np.nan_to_num(theta[rows])
        told = _without(jnp.asarray(own), jnp.asarray(part), jnp.asarray(member), study.parameters)
        probability, gradient, precision = (
            np.asarray(one[: rows.stop - rows.start], np.float64) for one in told
        )
        error = np.einsum("nk,nkl,nl->n", gradient, np.linalg.inv(precision), gradient)
        found.append((probability[:, member], error))
    expected = np.concatenate([one for one, _ in found])
    expected[~np.isfinite(theta).all(axis=1)] = np.nan
    return expected, np.concatenate([one for _, one in found])


def _own(study: _Study, name: str, member: Mask, lineage: NDArray[np.int64], ran: Mask) -> dict[str, Any]:
    """Return how reliable the benchmark's score is, and how much of it is its own."""
    row: dict[str, Any] = dict.fromkeys(
        ("reliability", "own_share", "own_share_low", "own_share_high", "own_reliability", "own_deviation")
    )
    known = study.calibration.benchmark_table.set_index("benchmark")["own_deviation"]
    row["own_deviation"] = float(known.get(name, np.nan))
    if not ran.any():
        return row
    expected, error = _expected(study, name, member, ran)
    testlet = study.calibration.item_table["testlet"].to_numpy(dtype=object)[: len(member)][member]
    outcomes = study.outcomes[np.ix_(ran, member)].astype(np.float64)
    outcomes[outcomes < 0] = np.nan
    found = own.own_factor(outcomes, testlet, lineage, expected, error, purpose=f"own factor/{name}")
    if found is None:
        return row
    row["reliability"] = found.reliability
    if found.share is not None:
        row["own_share"] = found.share.estimate
        row["own_reliability"] = found.own_reliability
        if np.isfinite([found.share.low, found.share.high]).all():
            row["own_share_low"], row["own_share_high"] = found.share.low, found.share.high
    return row


def _short_form(study: _Study, member: Mask) -> tuple[NDArray[np.intp], dict[str, Any]]:
    """Return the places of the items of the best short form among the benchmark's, best first, and what it loses."""
    bank = Bank(study.population.a[member], study.population.weight[:, member], study.population.share)
    count = int(member.sum())
    size = min(count, max(LEAST_SHORT, min(MOST_SHORT, round(SHORT_SHARE * count))))
    T = study.calibration.T
    places = []
    for place, _ in greedy(bank, np.zeros(count, dtype=np.intp), np.ones(1)):
        places.append(place)
        if len(places) == size:
            break
    form = np.zeros(count, dtype=bool)
    form[places] = True
    row: dict[str, Any] = {"short_items": size}
    whole, short = (standard_errors(bank, chosen, T) for chosen in (np.ones(count, dtype=bool), form))
    for k in range(len(whole)):
        row[f"standard_error_{k + 1}"], row[f"short_standard_error_{k + 1}"] = (
            float(whole[k]),
            float(short[k]),
        )
    return np.array(places, dtype=np.intp), row


def _codes(column: pd.Series) -> NDArray[np.int64]:
    """Codes of a column's values, -1 where there is none."""
    return pd.factorize(column)[0].astype(np.int64)


def _groups(
    study: _Study, name: str, member: Mask
) -> tuple[clusters.Clusters | None, dict[str, Any], list[dict[str, Any]]]:
    """Return the groups of a benchmark's items, what its row says of them, and a row per group."""
    calibration = study.calibration
    dims = study.fit.dims
    found = clusters.find(
        calibration.a[member], calibration.item_cov[member][:, :dims, :dims], purpose=f"clusters/{name}"
    )
    row: dict[str, Any] = dict.fromkeys(
        ("groups", "groups_evidence", "background", "groups_column", "groups_rand", "groups_p")
    )
    if found is None:
        return None, row, []
    names = np.array(calibration.items, dtype=object)[member]
    declared = study.table.set_index("question_id").loc[names]
    same = clusters.coinciding(
        found,
        {column: _codes(declared[column]) for column in DECLARED if column in declared},
        purpose=f"subsets/{name}",
    )
    row |= {"groups": found.count, "groups_evidence": found.evidence, "background": found.background}
    if same is not None:
        row |= {"groups_column": same.column, "groups_rand": same.rand, "groups_p": same.p}
    rows = []
    for group in range(found.count if found.count > 1 else 0):
        mine = found.group == group
        chosen = study.table["question_id"].isin(set(names[mine])).to_numpy()
        angles, _, _ = _bounds(study, chosen, f"profiles/{name}/{group}")
        rows.append(
            {
                "benchmark": name,
                "group": group + 1,
                "items": int(mine.sum()),
                "certain": int((found.probability[mine] >= clusters.CERTAIN).sum()),
                "spread": float(found.spreads[group]),
                **angles,
            }
        )
    return found, row, rows


def _subsets(study: _Study, facts: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row per declared subset of a benchmark's items: its size, mean, and angles to all abilities with intervals."""
    rows: list[dict[str, Any]] = []
    for column in DECLARED:
        if column not in facts:
            continue
        values = facts[column].astype("string")
        names = values.dropna().unique()
        if not 1 < len(names) <= MOST_SUBSETS:
            continue
        for name in names:
            own = facts[values.eq(name).fillna(False).to_numpy(dtype=bool)]
            used = own.loc[own["kept"].astype(bool), "question_id"]
            row: dict[str, Any] = {
                "benchmark": str(own["benchmark"].iloc[0]),
                "column": column,
                "subset": str(name),
                "items": len(own),
                "kept": len(used),
                "mean": _mean(own),
            }
            if len(used):
                chosen = study.table["question_id"].isin(set(used)).to_numpy()
                row |= _bounds(study, chosen, f"profiles/{row['benchmark']}/{column}/{name}")[0]
            rows.append(row)
    return rows


def _mean(facts: pd.DataFrame) -> float | None:
    """Return the mean of all outcomes of some items, None without any."""
    observed = facts["observed"].to_numpy(dtype=np.float64)
    mean = facts["mean"].to_numpy(dtype=np.float64, na_value=np.nan)
    return float(np.nansum(observed * mean) / observed.sum()) if observed.sum() else None


def _coverage(study: _Study, coverage: pd.DataFrame, name: str) -> dict[str, Any]:
    """Return how many outcomes of kept models there are and are missing, by reason, and models at the ends of the scale."""
    kept = set(study.results.models()["model"])
    mine = coverage[(coverage["benchmark"] == name) & coverage["model"].isin(kept)]
    ran = mine[mine["observed"] > 0]
    row: dict[str, Any] = {"observed": int(mine["observed"].sum()), "missing": int(mine["missing"].sum())}
    row |= {f"missing_{reason}": int(mine[reason].sum()) for reason in REASONS if reason in mine}
    row |= {
        "models_ran": len(ran),
        "models_at_ceiling": int((ran["mean"] >= CEILING).sum()),
        "models_at_floor": int((ran["mean"] <= FLOOR).sum()),
    }
    return row


def _extreme(mean: pd.Series) -> NDArray[np.object_]:
    return np.where(mean >= CEILING, "ceiling", np.where(mean <= FLOOR, "floor", "")).astype(object)


def _profile(
    study: _Study, coverage: pd.DataFrame, name: str
) -> tuple[dict[str, Any], list[dict[str, Any]], pd.DataFrame]:
    """Return the row of a benchmark, the rows of its groups, and those of its items."""
    facts = study.table[study.table["benchmark"].astype(str) == name]
    member = study.member == name
    dims = study.fit.dims
    category = facts["category"].dropna().astype(str)
    extreme = _extreme(facts["mean"].astype("float64"))
    row: dict[str, Any] = {
        "benchmark": name,
        "category": category.mode().iloc[0] if len(category) else None,
        "items": len(facts),
        "kept": int(member.sum()),
        "mean": _mean(facts),
        "items_at_ceiling": int((extreme == "ceiling").sum()),
        "items_at_floor": int((extreme == "floor").sum()),
        **_coverage(study, coverage, name),
    }
    rows = facts[["question_id", "benchmark", "mean", "observed", "kept"]].assign(extreme=extreme)
    if not member.any():
        return row, [], rows
    chosen = (study.table["benchmark"].astype(str) == name).to_numpy() & study.table["kept"].to_numpy(bool)
    ran = study.results.ran(chosen)
    a, cov = study.calibration.a[member], study.calibration.item_cov[member][:, :dims, :dims]
    angles, cloud, lineage = _bounds(study, chosen, f"profiles/{name}")
    lengths = np.linalg.norm(a, axis=1)
    row |= {"models": int(ran.sum()), "lineages": len(np.unique(lineage))} | angles
    row |= _strength(study, cloud, lineage, a.mean(axis=0))
    row["single_minded"] = float(np.linalg.norm(a.mean(axis=0)) / lengths.mean()) if lengths.any() else None
    row |= {f"share_{k + 1}": float(v) for k, v in enumerate(_shares(a, study.calibration.T))}
    row |= _own(study, name, member, lineage, ran)
    groups, told, group_rows = _groups(study, name, member)
    row |= told
    places, short = _short_form(study, member)
    row |= short
    contribution = items.contributions(study.at_models, member)
    refits, scale = study.refits
    against = items.along(a, cov, refits[:, member].astype(np.float64), scale)
    directional = items.directional(
        Bank(study.at_models.a[member], study.at_models.weight[:, member], study.at_models.share),
        study.calibration.T,
    )
    rank = np.full(len(a), np.nan)
    rank[places] = np.arange(1, len(places) + 1)
    nothing = np.full(len(a), np.nan)
    told_items = pd.DataFrame(
        {
            "question_id": np.array(study.calibration.items, dtype=object)[member],
            "group": nothing if groups is None else np.where(groups.group >= 0, groups.group + 1.0, np.nan),
            "group_probability": nothing if groups is None else groups.probability,
            "along": nothing if against is None else against.value,
            "along_se": nothing if against is None else against.se,
            "backwards_p": nothing if against is None else against.p,
            **{f"information_{k + 1}": directional[:, k] for k in range(dims)},
            "contribution": contribution,
            "adds_little": items.little(contribution),
            "short_rank": rank,
        }
    )
    column = row["groups_column"] or "subcategory_one"
    rows = rows.assign(subset=facts.get(column))
    return row, group_rows, rows.merge(told_items, on="question_id", how="left", validate="one_to_one")


def build(
    results: Results, calibration: Calibration, left_out: LeaveOneOut, coverage: pd.DataFrame
) -> Profiles:
    """Profile all benchmarks of a study.

    Parameters
    ----------
    results
        The results of the study.
    calibration
        Its calibration.
    left_out
        Its abilities without each benchmark.
    coverage
        ``coverage.csv`` of the honest matrix.

    Raises
    ------
    InputError
        If the results do not come from the same data.
    """
    study = _study(results, calibration, left_out)
    names = list(dict.fromkeys(study.table["benchmark"].astype(str)))
    found = [_profile(study, coverage, name) for name in names]
    every = pd.concat([rows for _, _, rows in found], ignore_index=True)
    every["backwards"] = items.false_discoveries(every["backwards_p"].to_numpy(dtype=np.float64))
    every["adds_little"] = every["adds_little"].astype("boolean").fillna(True).astype(bool)
    for column in ("group", "short_rank"):
        every[column] = every[column].astype("Int64")
    table = pd.DataFrame([row for row, _, _ in found])
    for counted in ("backwards", "adds_little"):
        total = every.groupby("benchmark", sort=False)[counted].sum()
        table[counted] = table["benchmark"].map(total).astype("Int64")
    table["backwards_tested"] = (
        table["benchmark"].map(every.groupby("benchmark", sort=False)["backwards_p"].count()).astype("Int64")
    )
    for column in ("groups", "short_items", "models", "lineages"):
        if column in table:
            table[column] = table[column].astype("Int64")
    group_rows = [row for _, rows, _ in found for row in rows]
    columns = ["benchmark", "group", "items", "certain", "spread"]
    groups = pd.DataFrame(group_rows, columns=None if group_rows else columns)
    by_name = study.table.groupby(study.table["benchmark"].astype(str), sort=False)
    subset_rows = [row for _, facts in by_name for row in _subsets(study, facts)]
    columns = ["benchmark", "column", "subset", "items", "kept", "mean"]
    subsets = pd.DataFrame(subset_rows, columns=None if subset_rows else columns)
    return Profiles(table, groups, subsets, every)


def write(
    profiles: Profiles,
    benchmarks: str | Path,
    groups: str | Path,
    subsets: str | Path,
    item_table: str | Path,
) -> None:
    """Write the four tables as CSV."""
    for frame, path in (
        (profiles.benchmarks, benchmarks),
        (profiles.groups, groups),
        (profiles.subsets, subsets),
        (profiles.items, item_table),
    ):
        write_csv(frame, path)
