"""Link a new benchmark to a frozen calibration through models that both know: what is known stays, new items join it.

The abilities of the common models are what the calibration says of them: its own models stand in its table, and others are placed
by their outcomes on its items. They are known with error, so each new item is calibrated on several draws of them (plausible
values; Mislevy 1991, *Psychometrika* 56, 177-196), by maximum a posteriori under the normal prior that the known items imply,
and the fits are put together by Rubin's rules (1987). Nothing of the known items or abilities moves, so that scores before and
after can be compared (fixed parameter calibration; Kim 2006, *Journal of Educational Measurement* 43, 355-381).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmirt import matrix
from benchmirt.ability.calibrate import commonest
from benchmirt.ability.calibration import ITEM_FACTS, Calibration
from benchmirt.ability.linking import Parameters, Population
from benchmirt.ability.newcomers import match, places
from benchmirt.ability.posterior import posterior
from benchmirt.ability.response import LEAST, items_of
from benchmirt.errors import InputError
from benchmirt.resampling import generator
from benchmirt.shortform.information import weight_at

__all__ = ["LEAST_MODELS", "METHOD", "Common", "calibrated_on", "common_models", "extend"]

_log = logging.getLogger(__name__)

Floats = NDArray[np.float64]

LEAST_MODELS = 10
LEAST_OBSERVED = 5
DRAWS = 20
METHOD = (
    f"known items and abilities as they were; new items by maximum a posteriori on {DRAWS} draws of the common models' "
    "abilities, put together by Rubin's rules; errors that items of one testlet share are not in it"
)
_STEPS, _LONGEST, _SETTLED = 100, 1.0, 1e-6


@dataclass(frozen=True)
class Common:
    """Models that the calibration can place: their columns in the outcomes (n,), mean (n, K) and covariance (n, K, K)."""

    columns: NDArray[np.intp]
    mean: Floats
    cov: Floats


def common_models(
    calibration: Calibration, models: Sequence[str], items: pd.DataFrame, outcomes: NDArray[np.int8]
) -> Common:
    """Find the models that a calibration can place, in its canonical frame.

    Parameters
    ----------
    calibration
        The calibration.
    models, items, outcomes
        Names of N models, a row per item with ``question_id``, and 1, 0 or -1 (missing) of shape (J, N).

    Raises
    ------
    InputError
        If they are too few.
    """
    table = calibration.model_table.set_index("model")
    own = np.array([model in table.index for model in models])
    known = items["question_id"].isin(set(calibration.items)).to_numpy()
    placed = ~own & (outcomes[known] >= 0).any(axis=0)
    dims = calibration.dims
    mean, cov = np.zeros((len(models), dims)), np.zeros((len(models), dims, dims))
    if own.any():
        rows = table.loc[[model for model, mine in zip(models, own, strict=True) if mine]]
        shown = rows[[f"ability_{k + 1}" for k in range(dims)]].to_numpy(dtype=np.float64)
        mean[own] = shown @ np.linalg.inv(calibration.T)
        # the calibration does not know which of its items each of its models was run on, only how many
        every = len(calibration.item_table)
        share = rows.get("observed", pd.Series(every, rows.index)).to_numpy(dtype=np.float64) / every
        weight = np.asarray(weight_at(jnp.asarray(mean[own], jnp.float32), items_of(calibration)), np.float64)
        told = np.einsum("nj,jk,jl->nkl", weight, calibration.a, calibration.a, optimize=True)
        cov[own] = np.linalg.inv(np.eye(dims) + np.minimum(share, 1.0)[:, None, None] * told)
    if placed.any():
        names = [model for model, mine in zip(models, placed, strict=True) if mine]
        new = match(calibration, names, items[known], outcomes[np.ix_(known, placed)])
        calibrated = calibration.item_table["calibrated"].to_numpy(dtype=bool)
        found = posterior(np.ascontiguousarray(new.responses[:, calibrated]), items_of(calibration))
        mean[placed], cov[placed] = found.mean, found.cov
    columns = np.flatnonzero(own | placed)
    if len(columns) < LEAST_MODELS:
        raise InputError(
            "too few models link the new questions to the calibration",
            found=f"{len(columns)} that ran on them and are the calibration's own, or answered some of its questions",
            expected=f"at least {LEAST_MODELS}",
            todo="Run the new benchmark on models of the calibration's models.csv, or other models on some of its questions too",
        )
    if len(columns) < len(models):
        _log.warning(
            "%d of %d models have no outcome on a question of the calibration and are left out",
            len(models) - len(columns),
            len(models),
        )
    return Common(columns, mean[columns], cov[columns])


def calibrated_on(
    theta: Floats, responses: NDArray[np.int8], floor: Floats, ceiling: Floats, prior: Population
) -> tuple[Floats, Floats]:
    """Calibrate items on models whose abilities are known.

    Parameters
    ----------
    theta
        Abilities, shape (N, K).
    responses
        1, 0 or -1 (missing), shape (J, N).
    floor, ceiling
        Asymptotes, shape (J,).
    prior
        Of the items' parameters.

    Returns
    -------
    Modes of (a_1..a_K, d), shape (J, K + 1), and their covariances (J, K + 1, K + 1) by expected information.
    """
    X = np.column_stack([theta, np.ones(len(theta))])
    center = np.append(np.zeros(theta.shape[1]), prior.mu_d)
    precision = np.diag(1 / np.append(prior.tau, prior.sigma_d) ** 2)
    seen, right = responses >= 0, responses == 1
    beta = np.tile(center, (len(responses), 1))
    low, width = floor[:, None], (ceiling - floor)[:, None]
    for _ in range(_STEPS):
        logistic = expit(beta @ X.T)
        p = np.clip(low + width * logistic, LEAST, 1 - LEAST)
        slope = width * logistic * (1 - logistic) / (p * (1 - p))
        gradient = (seen * slope * (right - p)) @ X - (beta - center) @ precision
        weight = seen * slope**2 * p * (1 - p)
        information = np.einsum("jn,np,nq->jpq", weight, X, X, optimize=True) + precision
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        beta += step * np.minimum(1.0, _LONGEST / np.maximum(longest, LEAST))
        if longest.max() < _SETTLED:
            break
    return beta, np.linalg.inv(information)


def _over_draws(
    common: Common,
    responses: NDArray[np.int8],
    limits: tuple[Floats, Floats],
    prior: Population,
    seed: int,
) -> tuple[Floats, Floats]:
    """Parameters and covariances of items over draws of the abilities, put together by Rubin's rules."""
    random = generator(seed, "plausible values")
    root = np.linalg.cholesky(common.cov)
    found = []
    for _ in range(DRAWS):
        away = np.einsum("nkl,nl->nk", root, random.standard_normal(common.mean.shape))
        found.append(calibrated_on(common.mean + away, responses, *limits, prior))
    values, within = (np.stack(one) for one in zip(*found, strict=True))
    mean = values.mean(axis=0)
    between = np.einsum("rjp,rjq->jpq", values - mean, values - mean) / (DRAWS - 1)
    return mean, within.mean(axis=0) + (1 + 1 / DRAWS) * between


def extend(
    calibration: Calibration,
    models: Sequence[str],
    items: pd.DataFrame,
    outcomes: NDArray[np.int8],
    *,
    simulated: bool,
    seed: int = 0,
) -> Calibration:
    """Return the calibration with the items that it does not know, calibrated on the models that it can place.

    Parameters
    ----------
    calibration
        The calibration.
    models, items, outcomes
        Names of N models; a row of facts per item (:data:`benchmirt.outcomes.ITEM_FACTS`), known ones among them; 1, 0 or -1
        (missing) of shape (J, N).
    simulated
        Whether any of these outcomes is simulated.
    seed
        Of the draws of abilities.

    Raises
    ------
    InputError
        If no item is new, none of the new ones tells models apart, or too few models are common.
    """
    place, why = places(calibration, items)
    new = place < 0
    other = ~new & (why != "")
    if other.any():
        named = items.loc[other, "question_id"]
        _log.warning(
            "%d questions have the name of another question of the calibration and are left out; name them apart to add them: %s",
            len(named),
            ", ".join(named.head(5)) + (", ..." if len(named) > 5 else ""),
        )
    if not new.any():
        raise InputError(
            "the calibration knows all of these questions already",
            found=f"{len(items):,} questions"
            + (f", {int(other.sum()):,} of them with another text or way of scoring" if other.any() else ""),
            todo="Give those a name of their own"
            if other.any()
            else "Name the outcomes on the new benchmark too",
        )
    joined = sorted(set(items.loc[new, "benchmark"]) & set(calibration.benchmark_table["benchmark"]))
    if joined:
        _log.warning(
            "new questions join benchmarks that the calibration knows already: %s", ", ".join(joined)
        )
    # who did not run on the new questions says nothing about them
    ran = np.asarray((outcomes[new] >= 0).any(axis=0))
    models = [model for model, there in zip(models, ran.tolist(), strict=True) if there]
    outcomes = outcomes[:, ran]
    common = common_models(calibration, models, items, outcomes)
    responses = outcomes[np.ix_(new, common.columns)]
    table = _facts(items[new], responses)
    told = table["calibrated"].to_numpy(dtype=bool)
    if not told.any():
        raise InputError(
            "none of the new questions tells the common models apart",
            found=f"{len(told):,} questions with fewer than {LEAST_OBSERVED} outcomes, or all right, or all wrong",
        )
    fitted = table[told]
    limits = np.zeros(len(fitted)), np.ones(len(fitted))
    if calibration.about.get("asymptotes"):
        floor, ceiling = matrix.limits_of(fitted)
        limits = floor.astype(np.float64), ceiling.astype(np.float64)
    prior = Population.of(Parameters(calibration.a, calibration.d, calibration.item_cov))
    values, cov = _over_draws(common, responses[told], limits, prior, seed)
    return replace(
        calibration,
        items=(*calibration.items, *fitted["question_id"]),
        a=np.concatenate([calibration.a, values[:, :-1]]),
        d=np.concatenate([calibration.d, values[:, -1]]),
        item_cov=np.concatenate([calibration.item_cov, cov]),
        floor=np.concatenate([calibration.floor, limits[0]]),
        ceiling=np.concatenate([calibration.ceiling, limits[1]]),
        item_table=pd.concat([calibration.item_table, table], ignore_index=True),
        benchmark_table=_benchmarks(calibration.benchmark_table, table),
        about={
            **calibration.about,
            "simulated": calibration.simulated or simulated,
            "extended": [
                *calibration.about.get("extended", []),
                {
                    "benchmarks": sorted(set(table["benchmark"])),
                    "items": len(fitted),
                    "models": len(common.columns),
                    "method": METHOD,
                },
            ],
        },
    )


def _facts(items: pd.DataFrame, responses: NDArray[np.int8]) -> pd.DataFrame:
    """Rows of new items as a calibration has them."""
    seen = responses >= 0
    observed = seen.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean = (responses == 1).sum(axis=1) / observed
    table = items.assign(observed=observed, mean=mean)[list(ITEM_FACTS)].reset_index(drop=True)
    table["calibrated"] = (observed >= LEAST_OBSERVED) & (mean > 0) & (mean < 1)
    return table


def _benchmarks(known: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Add the new items to the table of benchmarks; how far models deviate on a new one is not known."""
    table = known.set_index("benchmark")
    for name, rows in items.groupby("benchmark", sort=False):
        if name not in table.index:
            table.loc[name, ["items", "calibrated"]] = 0
            if "category" in table:
                table.loc[name, "category"] = commonest(rows["category"])
            if "deviation_models" in table:
                table.loc[name, "deviation_models"] = 0
        table.loc[name, ["items", "calibrated"]] += [len(rows), int(rows["calibrated"].sum())]
    whole = [column for column in ("items", "calibrated", "deviation_models") if column in table]
    return table.astype(dict.fromkeys(whole, "int64")).rename_axis("benchmark").reset_index()
