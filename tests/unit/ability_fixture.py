"""Calibrations with a known truth, and models that answer their items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.ability.calibration import Calibration
from benchmirt.ability.newcomers import Newcomers

Floats = NDArray[np.float64]


def calibration_of(
    items: int,
    seed: int,
    *,
    dims: int = 2,
    error: float = 0.3,
    floor: float = 0.0,
    benchmarks: int = 3,
    bare: int = 0,
    own_deviation: float = 0.0,
) -> Calibration:
    """Make a calibration whose item parameters are known up to an error (logits), the last `bare` items without parameters.

    Every other item has a chance floor. The axes shown are oblique, so that mixing up the frames shows.
    """
    random = np.random.default_rng(seed)
    total = items + bare
    a = random.normal(1.0, 0.5, size=(items, dims))
    root = error * random.normal(size=(items, dims + 1, dims + 1)) / np.sqrt(dims + 1)
    T = np.eye(dims)
    T[0, 1:] = 0.3
    T = T / np.linalg.norm(T, axis=0)
    benchmark = [f"benchmark-{item % benchmarks}" for item in range(total)]
    table = pd.DataFrame(
        {
            "question_id": [f"q{item}" for item in range(total)],
            "benchmark": benchmark,
            "category": [None] * total,
            "subcategory_one": [None] * total,
            "testlet": [None] * total,
            "options": pd.array([None] * total, dtype="Int16"),
            "inverted": [False] * total,
            "content_hash": [None] * total,
            "scored_as": [None] * total,
            "observed": [50] * total,
            "mean": [0.5] * items + [1.0] * bare,
            "calibrated": [True] * items + [False] * bare,
        }
    )
    known = random.normal(size=(40, dims))
    models = pd.DataFrame({"model": [f"known-{model}" for model in range(40)]})
    models["lineage"] = models["model"]
    for k in range(dims):
        for name, shift in (("", 0.0), ("_low", -0.2), ("_high", 0.2)):
            models[f"ability_{k + 1}{name}"] = known[:, k] + shift
    models["person_fit"] = random.normal(size=40)
    names = sorted(set(benchmark))
    counts = [benchmark.count(name) for name in names]
    calibrated = [benchmark[:items].count(name) for name in names]
    return Calibration(
        items=tuple(table["question_id"][:items]),
        a=a,
        d=random.normal(0, 1.2, size=items),
        item_cov=root @ root.transpose(0, 2, 1),
        floor=np.where(np.arange(items) % 2 == 0, floor, 0.0),
        ceiling=np.ones(items),
        T=T,
        labels=("reasoning", "safety", "third")[:dims],
        named=(True, False, False)[:dims],
        item_table=table,
        model_table=models,
        benchmark_table=pd.DataFrame(
            {"benchmark": names, "items": counts, "calibrated": calibrated, "own_deviation": own_deviation}
        ),
        about={
            "study": "planted",
            "title": "Planted items",
            "simulated": True,
            "fit": "corrected",
            "engine": "svi",
            "how": "planted",
            "provenance": {"benchmirt": "0", "commit": None, "data_hash": "none", "config_sha256": None},
        },
    )


def answers(
    calibration: Calibration, theta: Floats, seed: int, shift: Floats | float = 0.0
) -> NDArray[np.int8]:
    """Let models (N, K) answer the items with parameters, each time with parameters drawn anew from their uncertainty.

    `shift` (broadcast to (N, J)) is added to all logits.
    """
    random = np.random.default_rng(seed)
    count, items = len(theta), len(calibration.items)
    mean = np.column_stack([calibration.a, calibration.d])
    values, vectors = np.linalg.eigh(calibration.item_cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    drawn = mean + np.einsum("jkl,njl->njk", root, random.normal(size=(count, *mean.shape)))
    logits = np.einsum("njk,nk->nj", drawn[:, :, :-1], theta) + drawn[:, :, -1] + shift
    low, high = calibration.floor, calibration.ceiling
    chance = low + (high - low) / (1.0 + np.exp(-logits))
    return (random.uniform(size=(count, items)) < chance).astype(np.int8)


def newcomers(calibration: Calibration, responses: NDArray[np.int8], **more: Any) -> Newcomers:
    """Name models by their place; items without parameters are not answered."""
    every = np.full((len(responses), len(calibration.item_table)), -1, dtype=np.int8)
    every[:, : responses.shape[1]] = responses
    return Newcomers(tuple(f"new-{model}" for model in range(len(responses))), every, pd.DataFrame(), **more)
