"""The number of dimensions, by two methods that share little.

1. Held-out log score. Whole lineages are held out; a held-out model shows half of its items (whole testlets, each
   benchmark by itself) and is scored on the other half with posterior-averaged probabilities. The number chosen is the
   smallest whose mean log loss lies within one standard error of the best one's (Breiman, Friedman, Olshen and Stone 1984,
   3.4.3), the error being that of the mean over lineages: a tie is not evidence for the larger number. Beside it stands the
   smallest number whose paired difference from the best is within its own standard error, which also counts dimensions that are
   real and tiny.
2. Residual eigenvalues. The leading eigenvalue of the model-by-model Gram matrix of standardised residuals of the
   k-dimensional fit is compared with that of data simulated from that very fit and fitted again, for k = 0, 1, ...; the
   number chosen is the first k that is not rejected at .01. A level ends early where its null was reached ten times, or where
   twenty replicates leave the eigenvalue far away (p < 1e-6 if the null is normal; then that is the p). (Tetrachoric
   correlations of 30,000 items are neither affordable nor defined at 100 models.)

Dimension 0 holds item intercepts only. Every number of dimensions has the same priors.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.dimensions.checkpoint import Checkpoint, fingerprint
from benchmirt.dimensions.nulls import fit_null, intercepts, null_data
from benchmirt.files import write_csv, write_json
from benchmirt.progress import progress
from benchmirt.resampling import (
    clusters,
    lineage_folds,
    mean_and_se,
    monte_carlo_p,
    prediction_p,
    revealed_halves,
)

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["Number", "run", "write"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

P_NEEDED = 0.01
LEAST_LINEAGES = 8
_LEAST_MODELS = 4  # beyond the number of dimensions, in a training fold
_RANKS = 6
_ENOUGH = 10  # null replicates that reach the data's eigenvalue: no more are needed
_FEWEST = 20  # null replicates; after these, and a p value of a normal null below `_FAR`, no more are needed
_FAR = 1e-6
_TIE = 1e-4  # log loss, in nats a response, below which two numbers of dimensions are the same
_CLIP = 1e-6
_RESIDUAL_CLIP = 0.01
_CELLS = 200_000_000  # cells of masks held at once

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Number:
    """Evidence on the number of dimensions.

    Attributes
    ----------
    heldout
        One row per model and number of dimensions: model, lineage, fold, dims, log_loss (mean over scored items).
    eigenvalues
        One row per level and rank: dims, rank, eigenvalue, null_mean, null_q95, null_q99.
    levels
        One entry per level tested: dims, eigenvalue, null_q95, null_q99, p, replicates.
    dims
        Numbers of dimensions tried, from 0.
    replicates
        Null replicates asked for.
    why_not
        Why lineages could not be held out, or None.
    data_hash, seed
        Hash of the data, and the seed.
    checkpoint
        File to remove once the result is written, or None.
    """

    heldout: pd.DataFrame
    eigenvalues: pd.DataFrame
    levels: list[dict[str, Any]]
    dims: tuple[int, ...]
    replicates: int
    why_not: str | None
    data_hash: str
    seed: int
    checkpoint: Path | None = None

    @property
    def p_needed(self) -> float:
        """Largest p that rejects a number: .01, or the smallest p that this few replicates can give."""
        return max(P_NEEDED, 1 / (1 + self.replicates))

    def by_heldout(self) -> dict[str, Any]:
        """Log loss by number of dimensions, and the number that the one-standard-error rule chooses."""
        rule = (
            "one standard error: the smallest number of dimensions whose log loss lies within one standard error (over "
            "lineages) of the best one's"
        )
        if self.heldout.empty:
            return {"log_loss": [], "chosen": None, "chosen_paired": None, "best": None, "rule": rule}
        table = self.heldout.pivot(index="model", columns="dims", values="log_loss")
        lineage = self.heldout.drop_duplicates("model").set_index("model")["lineage"].loc[table.index]
        codes = lineage.to_numpy(dtype=np.int64)
        best = int(table.mean().to_numpy().argmin())
        values = table.to_numpy(dtype=np.float64)
        limit = sum(mean_and_se(values[:, best], codes))
        rows: list[dict[str, Any]] = []
        chosen = paired = None
        for column, k in enumerate(int(str(name)) for name in table.columns):
            mean, se = mean_and_se(values[:, column], codes)
            difference, difference_se = mean_and_se(values[:, column] - values[:, best], codes)
            rows.append(
                {
                    "dims": k,
                    "mean": mean,
                    "se": se,
                    "difference": difference,
                    "difference_se": difference_se,
                }
            )
            if chosen is None and mean <= limit:
                chosen = k
            if paired is None and difference <= max(difference_se, _TIE):
                paired = k
        return {
            "log_loss": rows,
            "chosen": chosen,
            "chosen_paired": paired,
            "best": rows[best]["dims"],
            "rule": rule,
        }

    def by_eigenvalues(self) -> dict[str, Any]:
        """Levels of the sequential test, and the first number of dimensions that it does not reject."""
        chosen = next((level["dims"] for level in self.levels if level["p"] > self.p_needed), None)
        at_least = bool(self.levels) and chosen is None
        return {
            "levels": self.levels,
            "chosen": self.levels[-1]["dims"] if at_least else chosen,
            "at_least": at_least,
            "p_needed": self.p_needed,
        }

    def summary(self) -> dict[str, Any]:
        """Return what ``number.json`` holds."""
        heldout, eigen = self.by_heldout(), self.by_eigenvalues()
        agreed = heldout["chosen"] == eigen["chosen"] and not eigen["at_least"]
        return {
            "heldout": heldout,
            "eigen": eigen,
            "agreed": heldout["chosen"] if agreed else None,
            "dims": list(self.dims),
            "replicates": self.replicates,
            "seed": self.seed,
            "why_not": self.why_not,
        }

    def folds_table(self) -> pd.DataFrame:
        """One row per fold and number of dimensions: log_loss of the held-out models, and how many they are."""
        return self.heldout.groupby(["fold", "dims"], as_index=False).agg(
            log_loss=("log_loss", "mean"), models=("model", "count")
        )


# ------------------------------------------------------------------------------------------ held-out scores


def _predictions(
    data: ResponseData,
    dims: int,
    model_weights: NDArray[np.float32],
    shown: Bools,
    options: dict[str, Any],
) -> list[Floats]:
    """Probabilities of all cells, from fits that see some cells and are informed about items by some models.

    Parameters
    ----------
    model_weights
        Shape (folds, models).
    shown
        Cells that a fit may see, shape (folds, models, items).

    Returns
    -------
    One array of shape (models, items) per fold.
    """
    if dims == 0:
        found = []
        for weights, cells in zip(model_weights, shown, strict=True):
            fitted = intercepts(data.responses, data.floor, data.ceiling, weights[:, None] * cells)
            found.append(np.broadcast_to(fitted.predict(), data.responses.shape))
        return found
    from benchmirt.inference import em

    batch = em.fit_many(data, dims, model_weights=model_weights, reveal=shown, bound=False, **options)
    return [batch.predict(f, data) for f in range(len(model_weights))]


def _log_loss(p: Floats, y: NDArray[np.int8]) -> Floats:
    clipped = np.clip(p, _CLIP, 1 - _CLIP)
    return np.asarray(-np.where(y == 1, np.log(clipped), np.log1p(-clipped)))


def _batches(folds: int, cells: int) -> list[list[int]]:
    """Group folds into batches of one size (the last is filled up with its own last fold)."""
    size = int(np.clip(_CELLS // max(cells, 1), 1, folds))
    batches = [list(range(start, min(start + size, folds))) for start in range(0, folds, size)]
    batches[-1] += [batches[-1][-1]] * (size - len(batches[-1]))
    return batches


def _held_out_models(
    data: ResponseData,
    dims: tuple[int, ...],
    folds: int,
    seed: int,
    kept: Checkpoint,
    options: dict[str, Any],
) -> pd.DataFrame:
    fold = lineage_folds(data.lineage, folds, seed)
    count = int(fold.max()) + 1
    benchmark, testlet = (data.item_table[name].to_numpy(dtype=object) for name in ("benchmark", "testlet"))
    revealed = revealed_halves(benchmark, len(data.models), seed, testlet)
    scored = (data.responses >= 0) & ~revealed
    cluster = clusters(data.lineage)
    frames = []
    for k in progress(dims, len(dims), "dimensions on held-out lineages"):
        found = kept.get(f"heldout/{k}")
        if found is None:
            losses = np.full(len(data.models), np.nan)
            for batch in _batches(count, data.responses.size):
                out = np.stack([fold == f for f in batch])
                shown = ~(out[:, :, None] & ~revealed[None])
                for f, p in zip(
                    batch, _predictions(data, k, (~out).astype(np.float32), shown, options), strict=True
                ):
                    for i in np.flatnonzero((fold == f) & scored.any(1)):
                        losses[i] = _log_loss(p[i, scored[i]], data.responses[i, scored[i]]).mean()
            found = [None if np.isnan(one) else float(one) for one in losses]
            kept.put(f"heldout/{k}", found)
        frames.append(
            pd.DataFrame(
                {
                    "model": data.models,
                    "lineage": cluster,
                    "fold": fold,
                    "dims": k,
                    "log_loss": pd.array(found, dtype="Float64").to_numpy(dtype=np.float64, na_value=np.nan),
                }
            )
        )
    return pd.concat(frames, ignore_index=True).dropna(subset=["log_loss"])


# ------------------------------------------------------------------------------------------ eigenvalues


def residual_eigenvalues(responses: NDArray[np.int8], probability: Floats, count: int = _RANKS) -> Floats:
    """Leading eigenvalues of the model-by-model Gram matrix of standardised residuals.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (models, items).
    probability
        Fitted probabilities, shape (models, items); taken as .01 to .99, so that no single surprise dominates.
    count
        How many.

    Returns
    -------
    Shape (count,), falling, 0 beyond the number of models. Each row of residuals is scaled by the square root of the number of
    responses, so that independent residuals give a matrix near the identity; missing cells contribute nothing.
    """
    p = np.clip(probability, _RESIDUAL_CLIP, 1 - _RESIDUAL_CLIP)
    seen = responses >= 0
    residual = np.where(seen, (responses - p) / np.sqrt(p * (1 - p)), 0.0)
    residual /= np.sqrt(np.maximum(seen.sum(1, keepdims=True), 1))
    values = np.linalg.eigvalsh(residual @ residual.T)[::-1]
    found = np.zeros(count)
    found[: min(count, values.size)] = values[:count]
    return found


def _probabilities(data: ResponseData, dims: int, options: dict[str, Any]) -> Floats:
    """Return what a fit from the spectral start makes of all cells of one data set, shape (models, items).

    Null data are fitted in the same way: from the fit that they come from, weak dimensions would be shut at once.
    """
    models, items = data.responses.shape
    ones, shown = np.ones((1, models), dtype=np.float32), np.ones((1, models, items), dtype=bool)
    return _predictions(data, dims, ones, shown, options)[0]


def _p(observed: float, null: Floats, replicates: int) -> float:
    """Return the p value of a level whose null may have been cut short, because it was reached often enough or is far away."""
    if null.size == replicates:
        return monte_carlo_p(observed, null)
    reached = int((null >= observed).sum())
    return reached / null.size if reached else prediction_p(observed, null)  # Besag and Clifford 1991


def _eigenvalue_levels(
    data: ResponseData,
    dims: tuple[int, ...],
    replicates: int,
    seed: int,
    kept: Checkpoint,
    options: dict[str, Any],
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    levels: list[dict[str, Any]] = []
    frames = []
    for k in dims:
        observed = residual_eigenvalues(data.responses, _probabilities(data, k, options))
        fitted = fit_null(data, k, options)
        null: list[list[float]] = []
        reached = 0
        what = f"null eigenvalues with {k} dimension{'s' * (k != 1)}"
        for b in progress(range(replicates), replicates, what):
            found = kept.get(f"eigen/{k}/{b}")
            if found is None:
                made = null_data(data, fitted, seed, f"eigenvalue null/{k}/{b}")
                found = residual_eigenvalues(made.responses, _probabilities(made, k, options)).tolist()
                kept.put(f"eigen/{k}/{b}", found)
            null.append(found)
            reached += found[0] >= observed[0]
            far = len(null) >= _FEWEST and prediction_p(observed[0], [one[0] for one in null]) < _FAR
            if reached >= _ENOUGH or far:
                break
        table = np.asarray(null)
        level = {
            "dims": k,
            "eigenvalue": float(observed[0]),
            "null_q95": float(np.quantile(table[:, 0], 0.95)),
            "null_q99": float(np.quantile(table[:, 0], 0.99)),
            "p": _p(float(observed[0]), table[:, 0], replicates),
            "replicates": len(null),
        }
        levels.append(level)
        frames.append(
            pd.DataFrame(
                {
                    "dims": k,
                    "rank": np.arange(1, _RANKS + 1),
                    "eigenvalue": observed,
                    "null_mean": table.mean(0),
                    "null_q95": np.quantile(table, 0.95, axis=0),
                    "null_q99": np.quantile(table, 0.99, axis=0),
                }
            )
        )
        if level["p"] > max(P_NEEDED, 1 / (1 + replicates)):
            break
    return levels, pd.concat(frames, ignore_index=True)


def run(
    data: ResponseData,
    *,
    max_dims: int = 4,
    folds: int = 10,
    replicates: int = 100,
    seed: int = 0,
    sweeps: int = 100,
    tolerance: float = 2e-3,
    checkpoint: Path | None = None,
) -> Number:
    """Collect the evidence on the number of dimensions.

    Parameters
    ----------
    data
        Responses with lineages and benchmarks.
    max_dims
        Most dimensions tried; fewer where there are too few models.
    folds
        Folds of lineages, at most one per lineage.
    replicates
        Null data sets per level of the sequential test; at least 99 for p = .01.
    seed
        Seeds everything.
    sweeps, tolerance
        As in :func:`benchmirt.inference.em.fit_many`; coarser by default than for a fit that is reported.
    checkpoint
        JSONL file that lets a killed job resume, or None.

    Returns
    -------
    Number
        With ``why_not`` set, and no held-out models, where there are fewer than 8 lineages.
    """
    models, items = data.responses.shape
    most = min(max_dims, int(models * (1 - 1 / folds)) - _LEAST_MODELS, items - 1)
    dims = tuple(range(max(most, 0) + 1))
    if most < max_dims:
        _log.warning(
            "number of dimensions: %d models allow at most %d of the %d asked for",
            models,
            max(most, 0),
            max_dims,
        )
    options: dict[str, Any] = {"sweeps": sweeps, "tolerance": tolerance}
    lineages = int(np.unique(clusters(data.lineage)).size)
    why_not = None
    if lineages < LEAST_LINEAGES:
        why_not = (
            f"there are {lineages} independent lineages of models and at least {LEAST_LINEAGES} are needed to hold "
            "some of them out"
        )
        _log.warning("number of dimensions: %s", why_not)
    key = fingerprint(__name__, data=data.hash, folds=folds, seed=seed, **options)
    with Checkpoint(checkpoint, key) as kept:
        heldout = (
            _held_out_models(data, dims, folds, seed, kept, options)
            if why_not is None
            else pd.DataFrame(columns=["model", "lineage", "fold", "dims", "log_loss"])
        )
        levels, eigenvalues = _eigenvalue_levels(data, dims, replicates, seed, kept, options)
    return Number(
        heldout=heldout,
        eigenvalues=eigenvalues,
        levels=levels,
        dims=dims,
        replicates=replicates,
        why_not=why_not,
        data_hash=data.hash,
        seed=seed,
        checkpoint=checkpoint,
    )


def write(
    result: Number, json_path: str | Path, folds_path: str | Path, eigenvalues_path: str | Path
) -> None:
    """Write ``number.json``, ``number_folds.csv`` and ``number_eigenvalues.csv``; then drop the checkpoint."""
    write_csv(result.folds_table(), folds_path)
    write_csv(result.eigenvalues, eigenvalues_path)
    write_json({**result.summary(), "provenance": provenance.record(data_hash=result.data_hash)}, json_path)
    if result.checkpoint is not None:
        result.checkpoint.unlink(missing_ok=True)
