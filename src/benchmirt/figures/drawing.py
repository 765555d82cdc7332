"""From the name of a figure to its files: read the results, draw, stamp what is simulated, write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmirt.errors import InputError
from benchmirt.figures import (
    abilities,
    agreement,
    catalogue,
    claim,
    coverage,
    foretold,
    items,
    number,
    steadiness,
    store,
    style,
    verdicts,
    words,
)
from benchmirt.files import read_json
from benchmirt.resampling import LEVEL, clusters, stretch, student_factor

Floats = NDArray[np.float64]


def replicates(results: Path, table: pd.DataFrame) -> Floats | None:
    """(R, J, K) discriminations, as they could have been with other models, for the rows of an item table, NaN where not fitted.

    Refits that did not settle are left out. The others deviate from the table's discriminations as they do from their own mean,
    which another engine may have moved, stretched to what other lineages would do and for how few these are, as in the claims'
    intervals (:mod:`benchmirt.claims.direction`). None if there are no refits, or too few lineages.
    """
    data = store.read_dataset(results / catalogue.BOOTSTRAP)
    if "a" not in data or data.sizes.get("replicate", 0) == 0:
        return None
    if "converged" in data:
        data = data.isel(replicate=data["converged"].to_numpy().astype(bool))
    a = data["a"].transpose("replicate", "item", "dimension")
    row = {str(name): n for n, name in enumerate(a["item"].to_numpy())}
    index = np.array([row.get(str(name), -1) for name in table["question_id"]], dtype=np.int64)
    moved = np.asarray(a.to_numpy(), dtype=np.float64)[:, index]
    moved -= moved.mean(axis=0)
    moved[:, index < 0] = np.nan
    models = _models(results).set_index("model")["lineage"]
    lineage, _ = pd.factorize(models.reindex([str(name) for name in data["model"].to_numpy()]))
    weights = data["weights"].transpose("replicate", "model").to_numpy()
    reach = student_factor(clusters(lineage)) / float(ndtri((1 + LEVEL) / 2))
    if not np.isfinite(reach):
        return None
    return store.discriminations(table, moved.shape[2]) + reach * stretch(weights, lineage) * moved


def records(results: Path, study: Any) -> list[dict[str, Any]]:
    """Return the records of all claims in their order, those that cannot be tested here last."""
    table = results / "claims" / "claims.csv"
    wanted = claim_ids(study)
    if wanted is None and table.exists():
        wanted = store.read_csv(table, ("claim",))["claim"].tolist()
    if wanted is None:
        wanted = sorted(path.stem for path in (results / "claims").glob("*.json"))
    found = [read_json(results / "claims" / f"{name}.json") for name in wanted]
    return sorted(found, key=lambda r: (r.get("corrected") or {}).get("verdict") == "cannot test")


def claim_ids(study: Any) -> list[str] | None:
    """Claim ids of a study in their order, or None for an object that is not a configured study."""
    from benchmirt import config

    if not isinstance(study, config.Study):
        return None
    return [str(entry["id"]) for entry in config.claims_table(study)]


def _items(results: Path) -> pd.DataFrame:
    return store.read_csv(results / catalogue.ITEMS, ("question_id", "benchmark", "discrimination_1"))


def _models(results: Path) -> pd.DataFrame:
    return store.read_csv(results / catalogue.MODELS, ("model", "ability_1"))


def _stability(results: Path) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    found, splits, null = (results / path for path in catalogue.STABILITY)
    return read_json(found), store.read_csv(splits), store.read_csv(null)


def _agreement(results: Path) -> Figure:
    naming = store.read_abilities(results)
    left_out = store.read_dataset(results / catalogue.LEAVE_ONE_OUT)
    return agreement.correlations(agreement.agreement(_models(results), left_out, naming), naming)


def _directions(results: Path) -> Figure:
    table = _items(results)
    return items.directions(table, store.read_abilities(results), replicates(results, table))


def _by_number(results: Path) -> dict[str, Any]:
    """Return the evidence on the number of dimensions, that of single answers, as published, among it."""
    number, prediction = (read_json(results / file) for file in (catalogue.NUMBER, catalogue.PREDICTION))
    return {**number, "cellwise": prediction.get("cellwise")}


_GENERAL: dict[str, Callable[[Path], Figure]] = {
    "abilities": lambda r: abilities.abilities(_models(r), store.read_abilities(r)),
    "item_map": lambda r: items.item_map(_items(r), store.read_abilities(r)),
    "directions": _directions,
    "correlations": _agreement,
    "eigenvalues": lambda r: number.eigenvalues(read_json(r / catalogue.NUMBER)),
    "heldout": lambda r: number.heldout(_by_number(r)),
    "stability": lambda r: steadiness.stability(*_stability(r)),
    "reproducibility": lambda r: steadiness.reproducibility(
        store.read_csv(r / catalogue.REPRODUCIBILITY, ("fit", "seed", "dimension", "congruence"))
    ),
    "scores": lambda r: foretold.scores(
        store.read_csv(r / "prediction" / "scores.csv", ("split", "method", "fold", "metric", "value")),
        read_json(r / catalogue.PREDICTION),
    ),
    "calibration": lambda r: foretold.calibration(
        store.read_csv(r / "prediction" / "calibration.csv", ("split", "method", "predicted", "observed")),
        read_json(r / catalogue.PREDICTION),
    ),
    "coverage": lambda r: coverage.coverage(
        store.read_csv(r / "matrix" / "honest" / "coverage.csv", ("benchmark", "model", "items", "observed"))
    ),
}


_FROM_RECORD: dict[str | None, Callable[[Any], Figure]] = {
    "pair": claim.pair,
    "mix": claim.mix,
    "label": claim.label,
}


def _of_claim(results: Path, record: dict[str, Any]) -> Figure:
    kind = record.get("kind")
    if claim.nothing(record) is not None:
        return verdicts.parts(record)
    if kind == "count":
        return claim.count(record)
    if kind in _FROM_RECORD:
        return _FROM_RECORD[kind](record)
    if kind == "dimensionality":
        return claim.dimensionality(record, _by_number(results))
    if kind == "stability":
        return claim.stability(record, *_stability(results))
    if kind in ("direction", "contrast"):
        table = _items(results)
        return claim.direction(record, table, store.read_abilities(results), replicates(results, table))
    if kind == "correlation":
        left_out = store.read_dataset(results / catalogue.LEAVE_ONE_OUT)
        return claim.correlation(record, _models(results), left_out, store.read_abilities(results))
    if kind == "shortform":
        curve, pairs, weakening = (store.read_csv(results / path) for path in catalogue.SHORTFORMS)
        return claim.shortform(record, curve, pairs, weakening, store.read_abilities(results))
    if kind == "prediction":
        return claim.prediction(record)
    return verdicts.parts(record)


def figure(name: str, results: Path, study: Any) -> tuple[Figure, str]:
    """Draw a figure without writing it; returns it with its title.

    Raises
    ------
    InputError
        If there is no such figure, or if a file that it is drawn from is missing or malformed.
    """
    if name == "verdicts":
        return verdicts.verdicts(records(results, study)), catalogue.CATALOGUE[name].title
    if name in _GENERAL:
        return _GENERAL[name](results), catalogue.CATALOGUE[name].title
    try:
        identifier = catalogue.claim_of(name)
    except KeyError:
        raise InputError(
            "there is no such figure",
            found=name,
            expected=words.listing([*catalogue.CATALOGUE, "claim_{id}"], "or"),
        ) from None
    record = read_json(results / "claims" / f"{identifier}.json")
    return _of_claim(results, record), f"{identifier}: {record.get('statement') or ''}".strip()


def draw(name: str, results: Path, study: Any, stem: Path) -> list[Path]:
    """Draw a figure and write it; see `benchmirt.figures.draw`."""
    drawn, title = figure(name, results, study)
    if getattr(study, "simulated", False):
        style.stamp_simulated(drawn, str(getattr(study, "title", "") or getattr(study, "name", "")))
        title = f"Simulated data. {title}"
        style.describe(drawn, f"Simulated data. {style.description(drawn)}")
    return style.save(drawn, stem, title)
