"""Make a calibration from the results of a finished study: the corrected headline fit, its frames, names and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.ability.calibration import ITEM_FACTS, Calibration
from benchmirt.ability.person_fit import person_fit
from benchmirt.ability.prediction import own_deviations
from benchmirt.ability.response import Items, items_of
from benchmirt.dimensions.labels import orientation
from benchmirt.errors import InputError

if TYPE_CHECKING:
    from benchmirt.config import Study
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.families import LeaveOneOut
    from benchmirt.dimensions.labels import Labels
    from benchmirt.matrix import ResponseData

__all__ = ["build", "commonest", "memberships"]

Floats = NDArray[np.float64]
MODEL_FACTS = ("model", "family", "lineage", "observed", "mean")


def memberships(names: NDArray[np.str_], groups: list[str]) -> Floats:
    """Return 1 where an item (rows) is of a group (columns), else 0."""
    return (names[:, None] == np.array(groups, dtype=str)[None, :]).astype(np.float64)


def build(
    study: Study,
    data: ResponseData,
    item_table: pd.DataFrame,
    consensus: Consensus,
    labels: Labels,
    model_statistics: pd.DataFrame,
    leave_one_out: LeaveOneOut,
    *,
    simulated: bool,
) -> Calibration:
    """Freeze what a study knows.

    Parameters
    ----------
    study
        Names and configuration.
    data
        The honest matrix that the consensus was fitted to.
    item_table
        All items of the honest matrix, kept or not.
    consensus, labels, model_statistics, leave_one_out
        Of the corrected fit; the statistics give the models' intervals, as the report shows them.
    simulated
        Whether any of the data is simulated.

    Raises
    ------
    InputError
        If the results do not come from the same data.
    """
    if consensus.data_hash != data.hash or leave_one_out.data_hash != data.hash:
        raise InputError(
            "the consensus or the fits without a benchmark are not of this matrix",
            file=study.results,
            todo="Run the workflow again, so that all results come from the same data",
        )
    sign = orientation(labels)
    calibration = Calibration(
        items=consensus.items,
        a=consensus.a,
        d=consensus.d,
        item_cov=consensus.item_cov,
        floor=data.floor.astype(np.float64),
        ceiling=data.ceiling.astype(np.float64),
        T=consensus.T * sign,
        labels=tuple(entry["display"] for entry in labels.dimensions),
        named=tuple(bool(entry["name"]) for entry in labels.dimensions),
        item_table=_item_table(item_table, consensus.items),
        model_table=pd.DataFrame(),
        benchmark_table=pd.DataFrame(),
        about=_about(study, consensus, simulated),
    )
    items = items_of(calibration)
    fit = person_fit(consensus.theta, data.responses, items).statistic
    return Calibration(
        **{
            **vars(calibration),
            "model_table": _model_table(consensus, model_statistics, sign, fit),
            "benchmark_table": _benchmark_table(calibration, data, items, consensus, leave_one_out),
        }
    )


def _item_table(table: pd.DataFrame, calibrated: tuple[str, ...]) -> pd.DataFrame:
    """Facts of all items, those with parameters in the order of the fit and then the others."""
    facts = table[list(ITEM_FACTS)].copy()
    facts["calibrated"] = facts["question_id"].isin(set(calibrated))
    place = {name: k for k, name in enumerate(calibrated)}
    order = facts["question_id"].map(place).fillna(len(place)).to_numpy(dtype=np.int64)
    return facts.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _model_table(consensus: Consensus, statistics: pd.DataFrame, sign: Floats, fit: Floats) -> pd.DataFrame:
    """Return the fitted models on the abilities shown, as the report shows them, and how well each record fits."""
    known = statistics.set_index("model").loc[list(consensus.models)].reset_index()
    columns: dict[str, Any] = {name: known[name] for name in MODEL_FACTS if name in known}
    for k, turned in enumerate(sign, start=1):
        low, high = ("low", "high") if turned > 0 else ("high", "low")
        columns[f"ability_{k}"] = turned * known[f"ability_{k}"]
        columns[f"ability_{k}_low"] = turned * known[f"ability_{k}_{low}"]
        columns[f"ability_{k}_high"] = turned * known[f"ability_{k}_{high}"]
    return pd.DataFrame({**columns, "person_fit": fit})


def _benchmark_table(
    calibration: Calibration,
    data: ResponseData,
    items: Items,
    consensus: Consensus,
    leave_one_out: LeaveOneOut,
) -> pd.DataFrame:
    """Count the items of each benchmark, and estimate the models' own deviations on it where benchmarks were left out."""
    table = calibration.item_table
    names = list(dict.fromkeys(table["benchmark"]))
    rows = pd.DataFrame(
        {
            "benchmark": names,
            "category": [commonest(table.loc[table["benchmark"] == name, "category"]) for name in names],
            "items": [int((table["benchmark"] == name).sum()) for name in names],
            "calibrated": [int(table.loc[table["benchmark"] == name, "calibrated"].sum()) for name in names],
        }
    )
    deviation = np.full(len(names), np.nan)
    used = np.zeros(len(names), dtype=np.int64)
    if leave_one_out.unit == "benchmark" and len(leave_one_out.units) > 1:
        units = [unit for unit in leave_one_out.units if unit in names]
        shown = np.linalg.inv(consensus.T)
        theta = np.stack([leave_one_out.without(unit) @ shown for unit in units])
        own, models = own_deviations(
            theta, data.responses, memberships(calibration.benchmark_of(), units), items
        )
        places = [names.index(unit) for unit in units]
        deviation[places], used[places] = own, models
    rows["own_deviation"], rows["deviation_models"] = deviation, used
    return rows


def commonest(column: pd.Series) -> str | None:
    """Return the value that is met most often, None where there is none."""
    found = column.dropna()
    return None if found.empty else str(found.mode().iloc[0])


def _about(study: Study, consensus: Consensus, simulated: bool) -> dict[str, Any]:
    seeds, failed = len(consensus.seeds), len(consensus.seeds_failed)
    how = (
        f"consensus of {seeds} of {seeds + failed} seeds that converged"
        if seeds
        else "no seed of which converged"
    )
    mean = consensus.theta.mean(axis=0)
    return {
        "study": study.name,
        "title": study.title,
        "simulated": simulated,
        "fit": consensus.fit,
        "engine": consensus.engine,
        "converged": bool(seeds),
        "how": how,
        "frames": {
            "canonical": "abilities of the study's models have mean 0 and second moment I; eta = a . theta + d",
            "display": "ability = theta T, T the directions of the abilities; display_a = a inv(T)'; eta is the same",
        },
        "prior": "N(0, I) in the canonical frame",
        "population": {
            "models": len(consensus.models),
            "mean": mean,
            "covariance": np.cov(consensus.theta.T, bias=True).reshape(consensus.dims, consensus.dims)
            + consensus.theta_cov.mean(axis=0),
            "frame": "canonical; posterior variance included",
        },
        "rotation": {"method": consensus.rotation.get("method"), "starts": consensus.rotation.get("starts")},
        "asymptotes": bool(study.fits["asymptotes"]),
        "filter": study.filter,
        "provenance": provenance.record(config_sha256=study.config_sha256, data_hash=consensus.data_hash),
    }
