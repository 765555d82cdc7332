"""New models scored: abilities with intervals, person fit, and predicted benchmarks, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmirt import identification as ident
from benchmirt import provenance
from benchmirt.ability.calibrate import memberships
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.newcomers import Newcomers
from benchmirt.ability.person_fit import LEAST_OUTCOMES, person_fit
from benchmirt.ability.posterior import Posterior, posterior
from benchmirt.ability.prediction import interval, unanswered
from benchmirt.ability.response import items_of
from benchmirt.files import write_csv, write_json

if TYPE_CHECKING:
    from benchmirt.matrix import Merged

__all__ = ["METHOD", "Scores", "score", "write"]

Floats = NDArray[np.float64]

METHOD = {
    "abilities": "posterior mean under N(0, I), the spread of the study's models; the items' own uncertainty is integrated "
    "out item by item (expected response functions, Mislevy, Wingersky and Sheehan 1994)",
    "intervals": "95 %, mean and 1.96 posterior standard deviations",
    "person_fit": "l_z* (Snijders 2001): 0 and 1 are mean and standard deviation under the model, below -2 is unusual; p is "
    f"the lower tail; none with fewer than {LEAST_OUTCOMES} outcomes. In real data few records fit the model to the letter, so "
    "compare with person_fit_worse, the share of the study's models that fit worse",
    "predictions": "score over all items of the benchmark: outcomes where there are, probabilities elsewhere; 95 % intervals "
    "hold the abilities' and items' uncertainty, the noise of single answers, and how far models deviate on the benchmark",
}

_MISFIT = (
    -2.0,
    0.01,
)  # person fit, and the share of the study's models that fit still worse: below both a record is pointed out
_LITTLE = 0.9  # of the prior's standard deviation: an ability that the outcomes hardly inform


@dataclass(frozen=True)
class Scores:
    """Scores of N new models.

    Attributes
    ----------
    abilities
        Posterior in the calibration's canonical frame.
    scores
        A row per model: model, outcomes, benchmarks, mean, ability_k with _low, _high and _above (share of the study's
        models that lie below), person_fit, person_fit_p, person_fit_worse, note.
    predictions
        A row per model and benchmark with items that it was not run on: model, benchmark, items, run, observed,
        predicted, low, high.
    """

    abilities: Posterior
    scores: pd.DataFrame
    predictions: pd.DataFrame


def score(calibration: Calibration, new: Newcomers, *, level: float = 0.95) -> Scores:
    """Place new models on the abilities of a calibration.

    Parameters
    ----------
    calibration, new
        The calibration, and the new models' outcomes on its items.
    level
        Of all intervals.
    """
    calibrated = calibration.item_table["calibrated"].to_numpy(dtype=bool)
    responses = new.responses[:, calibrated]
    # items that no model answered say nothing about abilities
    answered = np.flatnonzero((responses >= 0).any(axis=0))
    items = items_of(calibration, answered)
    found = posterior(np.ascontiguousarray(responses[:, answered]), items)
    fit = person_fit(found.mean, np.ascontiguousarray(responses[:, answered]), items)
    return Scores(
        found,
        _scores(calibration, new, responses, found, fit.statistic, fit.p, level),
        _predictions(calibration, new, found, level),
    )


def _scores(
    calibration: Calibration,
    new: Newcomers,
    responses: NDArray[np.int8],
    found: Posterior,
    fit: Floats,
    p: Floats,
    level: float,
) -> pd.DataFrame:
    ability = found.mean @ calibration.T
    sd = np.sqrt(np.einsum("nkk->nk", ident.rotate_theta_cov(found.cov, calibration.T)))
    half = ndtri(0.5 + level / 2) * sd
    seen = responses >= 0
    groups = memberships(calibration.benchmark_of(), list(calibration.benchmark_table["benchmark"]))
    columns: dict[str, object] = {
        "model": list(new.models),
        "outcomes": seen.sum(axis=1),
        "benchmarks": ((seen @ groups) > 0).sum(axis=1),
        "mean": (responses == 1).sum(axis=1) / seen.sum(axis=1),
    }
    for k in range(calibration.dims):
        known = calibration.model_table[f"ability_{k + 1}"].to_numpy(dtype=np.float64)
        columns[f"ability_{k + 1}"] = ability[:, k]
        columns[f"ability_{k + 1}_low"] = ability[:, k] - half[:, k]
        columns[f"ability_{k + 1}_high"] = ability[:, k] + half[:, k]
        columns[f"ability_{k + 1}_above"] = (known[None, :] < ability[:, [k]]).mean(axis=1)
    usual = calibration.model_table["person_fit"].dropna().to_numpy(dtype=np.float64)
    worse = (usual[None, :] < fit[:, None]).mean(axis=1) if usual.size else np.full(len(fit), np.nan)
    columns["person_fit"], columns["person_fit_p"] = fit, p
    columns["person_fit_worse"] = np.where(np.isfinite(fit), worse, np.nan)
    misfit = (fit < _MISFIT[0]) & (worse <= _MISFIT[1])
    columns["note"] = [
        _note(calibration, new.models[n], responses[n], sd[n], misfit[n]) for n in range(len(new.models))
    ]
    return pd.DataFrame(columns)


def _note(
    calibration: Calibration, model: str, outcomes: NDArray[np.int8], sd: Floats, misfit: bool
) -> str | None:
    """Say what a reader of one model's abilities should know."""
    told = []
    if model in set(calibration.model_table["model"]):
        told.append(
            "one of the study's own models: its answers made the items' parameters too, so that it comes out too far from the "
            "middle here; the calibration's models.csv has its place"
        )
    right, seen = int((outcomes == 1).sum()), int((outcomes >= 0).sum())
    if right in (0, seen):
        told.append(
            f"all {'right' if right else 'wrong'}: the abilities lie beyond what these items can tell, the prior bounds them"
        )
    if seen < LEAST_OUTCOMES:
        told.append(f"{seen} outcomes, too few to say how well the record fits")
    if misfit:
        told.append(
            "fits worse than the study's models do: its answers do not follow from these abilities alone"
        )
    hardly = [calibration.labels[k] for k in range(calibration.dims) if sd[k] > _LITTLE]
    if hardly:
        told.append(f"these items say next to nothing about: {', '.join(hardly)}")
    return "; ".join(told) or None


def _predictions(calibration: Calibration, new: Newcomers, found: Posterior, level: float) -> pd.DataFrame:
    """Predict for each model the score of every benchmark that it was not wholly run on."""
    table = calibration.item_table
    calibrated = table["calibrated"].to_numpy(dtype=bool)
    names = list(calibration.benchmark_table["benchmark"])
    groups = memberships(table["benchmark"].to_numpy(dtype=str), names)
    seen = new.responses >= 0
    size, run = groups.sum(axis=0), seen @ groups
    right = (new.responses == 1) @ groups
    if not (run < size).any():
        return _prediction_rows(new.models, names, size, run, right, right, np.zeros_like(right), level)
    own = calibration.benchmark_table["own_deviation"].fillna(0.0).to_numpy(dtype=np.float64)
    mean, variance = unanswered(found, seen[:, calibrated], groups[calibrated], items_of(calibration), own)
    # items without parameters answer as they did for the study's models
    observed = table["observed"].to_numpy(dtype=np.float64)
    passed = table["mean"].fillna(0.5).to_numpy(dtype=np.float64) * observed
    usual = (passed + 0.5) / (observed + 1.0)
    left = ~seen & ~calibrated
    mean = mean + (left * usual) @ groups
    variance = variance + (left * usual * (1.0 - usual)) @ groups
    return _prediction_rows(new.models, names, size, run, right, right + mean, variance, level)


def _prediction_rows(
    models: tuple[str, ...],
    names: list[str],
    size: Floats,
    run: Floats,
    right: Floats,
    total: Floats,
    variance: Floats,
    level: float,
) -> pd.DataFrame:
    """Turn numbers of right answers (N, G) into rows of shares, for benchmarks of `size` (G,) items that were not wholly run."""
    # what was answered is certain, so that only the rest has an interval
    left = np.maximum(size - run, 1.0)
    low, high = interval((total - right) / left, variance / left**2, level)
    model, benchmark = np.nonzero(run < size)
    at = (model, benchmark)
    with np.errstate(invalid="ignore"):
        observed = right / run
    return pd.DataFrame(
        {
            "model": [models[n] for n in model],
            "benchmark": [names[g] for g in benchmark],
            "items": size[benchmark].astype(np.int64),
            "run": run[at].astype(np.int64),
            "observed": observed[at],
            "predicted": (total / size)[at],
            "low": ((right + low * left) / size)[at],
            "high": ((right + high * left) / size)[at],
        }
    )


def write(
    scores: Scores, calibration: Calibration, new: Newcomers, merged: Merged, folder: str | Path
) -> None:
    """Write ``scores.csv``, ``predictions.csv``, ``unmatched.csv`` and ``scores.json``, which says how they came about."""
    home = Path(folder)
    write_csv(scores.scores, home / "scores.csv")
    write_csv(scores.predictions, home / "predictions.csv")
    write_csv(new.unmatched, home / "unmatched.csv")
    summary = {
        "simulated": calibration.simulated or merged.simulated,
        "models": len(new.models),
        "items": {
            "answered": int((merged.outcomes >= 0).any(axis=1).sum()),
            "unmatched": len(new.unmatched),
            "calibrated": len(calibration.items),
        },
        "abilities": {f"ability_{k + 1}": label for k, label in enumerate(calibration.labels)},
        "method": METHOD,
        "calibration": calibration.origin,
        "sources": merged.sources,
        "provenance": provenance.record(data_hash=calibration.about["provenance"]["data_hash"]),
    }
    write_json(summary, home / "scores.json")
