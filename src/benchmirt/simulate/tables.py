"""Write a simulated study as the wide tables that a ``table`` source reads, and its truth beside them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from benchmirt import files
from benchmirt.simulate.study import Simulated, study

__all__ = ["table", "write_truth"]

_ITEM_COLUMNS = [
    "question_id",
    "benchmark",
    "category",
    "subcategory_one",
    "testlet",
    "options",
    "inverted",
    "scored_as",
]


def table(
    variant: str,
    models: int,
    items: int,
    seed: int,
    out_dir: str | Path,
    truth_dir: str | Path,
    *,
    flip: tuple[str, ...] = (),
    missing: float = 0.015,
) -> dict[str, Path]:
    """Simulate a study and write it as wide tables.

    Parameters
    ----------
    variant, models, items, seed, flip, missing
        As for `study`.
    out_dir
        Folder of ``simulated_responses.csv.gz`` (rows items, one column per model; 1, 0 or empty),
        ``simulated_items.csv`` and ``simulated_models.csv``.
    truth_dir
        Folder of the truth; see `write_truth`. Nothing in `out_dir` depends on it.

    Returns
    -------
    dict
        responses, items, models, truth and the further truth files -> path.

    Raises
    ------
    InputError
        As `study` does.
    """
    simulated = study(variant, models, items, seed, flip=flip, missing=missing)
    out = Path(out_dir)
    paths = {
        "responses": out / "simulated_responses.csv.gz",
        "items": out / "simulated_items.csv",
        "models": out / "simulated_models.csv",
    }
    files.write_csv(_wide(simulated), paths["responses"])
    files.write_csv(simulated.item_table[_ITEM_COLUMNS], paths["items"])
    files.write_csv(_models(simulated), paths["models"])
    return paths | write_truth(simulated, truth_dir)


def _wide(simulated: Simulated) -> pd.DataFrame:
    """Return the responses as text cells, rows items and columns models."""
    cells = np.array(["0", "1", ""], dtype=object)[simulated.responses.T]
    frame = pd.DataFrame(cells, columns=simulated.model_table["model"].tolist())
    frame.insert(0, "question_id", simulated.item_table["question_id"].to_numpy())
    return frame


def _models(simulated: Simulated) -> pd.DataFrame:
    """Return the model table with a note that says what it is."""
    models = simulated.model_table[
        ["model", "publisher", "family", "lineage", "lineage_evidence", "size_b", "reasoning", "released"]
    ].copy()
    models["notes"] = "simulated outcomes: the name marks a lineage, nothing here was measured on this model"
    return models


def write_truth(simulated: Simulated, truth_dir: str | Path) -> dict[str, Path]:
    """Write the truth of a simulated study.

    Files: ``simulated_truth.json`` (settings and counts), ``simulated_truth_models.csv`` (abilities and
    benchmark factors), ``simulated_truth_items.csv`` (parameters), ``simulated_truth_correlations.csv``
    (planted against achieved), ``simulated_truth_probabilities.npy`` ((N, J) float64, models by items in the
    tables' order).

    Returns
    -------
    dict
        truth, truth_models, truth_items, truth_correlations, truth_probabilities -> path.
    """
    folder = Path(truth_dir)
    paths = {
        "truth": folder / "simulated_truth.json",
        "truth_models": folder / "simulated_truth_models.csv",
        "truth_items": folder / "simulated_truth_items.csv",
        "truth_correlations": folder / "simulated_truth_correlations.csv",
        "truth_probabilities": folder / "simulated_truth_probabilities.npy",
    }
    models = simulated.model_table[["model", "lineage"]].copy()
    models["reasoning"] = simulated.theta[:, 0]
    models["safety"] = simulated.theta[:, 1]
    names = simulated.correlations["benchmark"].tolist()
    own = pd.DataFrame(simulated.own, columns=[f"own_{name}" for name in names])
    files.write_json(simulated.truth, paths["truth"])
    files.write_csv(pd.concat([models, own], axis=1), paths["truth_models"])
    files.write_csv(simulated.item_table.drop(columns=["category", "scored_as"]), paths["truth_items"])
    files.write_csv(simulated.correlations, paths["truth_correlations"])
    buffer = io.BytesIO()
    np.save(buffer, simulated.probability)
    with files.atomic(paths["truth_probabilities"]) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return paths
