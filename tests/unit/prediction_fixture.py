"""How well held-out answers were predicted, planted: what the station of predictions would write. Simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmirt.prediction.station import PUBLISHED, Prediction, write
from benchmirt.prediction.tally import FIELDS, Tally

FILES = ("prediction.json", "scores.csv", "calibration.csv", "models.parquet")


def write_predictions(
    folder: Path,
    models: Sequence[str],
    lineage: np.ndarray,
    benchmarks: Sequence[str],
    rng: np.random.Generator,
    gained: float = 0.25,
) -> None:
    """Write what methods of given accuracy, log loss and noise of ranks would score.

    Parameters
    ----------
    folder
        The results folder.
    models, lineage, benchmarks
        Names, codes of the lineages, and names.
    rng
        Draws how models differ.
    gained
        How many more held-out answers two dimensions predict than one, as a share.
    """
    methods = {
        "model_mean": (0.60, 0.67, 0.5),
        "category_mean": (0.65, 0.62, 0.4),
        "benchmark_mean": (0.70, 0.60, 0.05),
        "item_mean": (0.68, 0.61, 0.6),
        "rasch": (0.74, 0.55, 0.4),
        "mirt_1": (0.85 - gained, 0.60, 0.4),
        "mirt_2": (0.85, 0.45, 0.3),
        "mirt_3": (0.855, 0.45, 0.3),
        "mirt_4": (0.855, 0.45, 0.3),
    }
    study = {f"published_{k}": (0.79 if k > 1 else 0.55, 0.5, 0.3) for k in (1, 2, 3, 4)}
    plans = {
        "cells": methods,
        "lineages": {name: methods[name] for name in methods if name not in ("mirt_3", "mirt_4")},
        PUBLISHED: {
            "model_mean": methods["model_mean"],
            "benchmark_mean": methods["benchmark_mean"],
            **study,
        },
    }
    able = rng.normal(size=(len(models), len(benchmarks)))
    tallies, cells = {}, {}
    for split, chosen in plans.items():
        counts = np.empty((1, len(chosen), *able.shape, len(FIELDS)))
        for m, (name, (accuracy, loss, noise)) in enumerate(chosen.items()):
            right = accuracy + 0.01 * able + 0.01 * rng.normal(size=able.shape)
            guessed = able + noise * rng.normal(size=able.shape)
            means = (np.ones_like(able), right, 1 - right, loss - 0.01 * able, 0.5 * loss, able, guessed)
            counts[0, m] = 40 * np.stack([np.broadcast_to(one, able.shape) for one in means], axis=-1)
            cells[split, name] = np.ones((len(benchmarks), 1000, 2), dtype=np.int64)
        apart = split == "lineages"
        tallies[split] = Tally(
            split, tuple(chosen), tuple(models), tuple(benchmarks), lineage, counts, apart, 1 / 3
        )
    made = Prediction(tallies, cells, dict.fromkeys(plans, "planted"), {}, {}, {"honest": "planted"})
    home = folder / "prediction"
    home.mkdir(parents=True, exist_ok=True)
    write(made, *(home / name for name in FILES))
