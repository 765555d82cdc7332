"""Simulated studies in memory: the planted study in its variants, and plain matrices for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from benchmirt.errors import InputError, nearest
from benchmirt.simulate import design
from benchmirt.simulate.layout import stream
from benchmirt.simulate.truth import abilities, benchmark_truth

__all__ = ["VARIANTS", "Simulated", "matrix", "study"]

VARIANTS = ("planted", "planted_pure", "one", "noise", "flipped")
_FLIPPED = ("bbq", "wmdp", "harmbench/copyright")


@dataclass(frozen=True)
class Simulated:
    """A simulated study with its truth.

    Attributes
    ----------
    responses
        (N, J) int8: 1, 0 or -1 (missing).
    theta
        (N, K) true abilities.
    a, d
        (J, K) discriminations and (J,) intercepts of the common abilities; d is infinite for constant items.
    floor, ceiling
        (J,) lower and upper asymptotes.
    probability
        (N, J) true probabilities of a 1, with every factor.
    lineage
        (N,) lineage codes.
    benchmark
        (J,) benchmark names.
    model_table, item_table
        What is known of models and items, truth columns included; in the order of the arrays.
    correlations
        Planted and achieved correlations of the benchmarks' true means with the abilities.
    own
        (N, B) benchmark factors.
    testlet
        (N, T) testlet factors, in order of first appearance in `item_table`.
    truth
        Settings and counts.
    """

    responses: np.ndarray
    theta: np.ndarray
    a: np.ndarray
    d: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray
    probability: np.ndarray
    lineage: np.ndarray
    benchmark: np.ndarray
    model_table: pd.DataFrame
    item_table: pd.DataFrame
    correlations: pd.DataFrame
    own: np.ndarray
    testlet: np.ndarray
    truth: dict[str, Any] = field(default_factory=dict)

    def eta(self) -> np.ndarray:
        """Return (N, J) logits of the common part, theta a' + d."""
        return np.asarray(self.theta @ self.a.T + self.d)


def _check(variant: str, flip: tuple[str, ...]) -> None:
    """Refuse variants and flips that do not exist."""
    for value, choices, where in [(variant, VARIANTS, "variant")] + [
        (name, design.FLIPS, "flip") for name in flip
    ]:
        if value not in choices:
            close = nearest(value, choices)
            raise InputError(
                "the simulated study",
                where=where,
                found=f'"{value}"',
                expected=" or ".join(choices),
                todo=f'Did you mean "{close}"?' if close else None,
            )


def study(
    variant: str = "planted",
    models: int = 80,
    items: int | None = 800,
    seed: int = 1,
    *,
    scale: float | None = None,
    flip: tuple[str, ...] = (),
    missing: float = 0.015,
) -> Simulated:
    """Simulate the study.

    Parameters
    ----------
    variant
        ``planted``: two abilities, weak benchmark and testlet factors, chance floors, heavy-tailed loadings,
        a few constant and reversed items, correlations of the benchmarks' true means as published.
        ``planted_pure``: the same without benchmark and testlet factors. ``one``: one ability. ``noise``:
        none. ``flipped``: planted, with BBQ, WMDP and HarmBench copyright the other way.
    models
        Number of models, 8 to 100.
    items
        Number of items, 100 to 34,301; or None if `scale` is given.
    seed
        Seed of everything. The same seed gives the same abilities, item parameters and uniform numbers in
        every variant, so that a flip changes the responses to the flipped benchmark only.
    scale
        Share of the full study instead of `items`.
    flip
        Names of `design.FLIPS` to plant the other way.
    missing
        Share of responses that are missing at random.

    Raises
    ------
    InputError
        For an unknown variant or flip, counts out of range, or targets that cannot be reached.
    """
    flip = tuple(flip)
    _check(variant, flip)
    if variant == "flipped":
        flip = tuple(dict.fromkeys(_FLIPPED + flip))
    form = "planted" if variant == "flipped" else variant
    table = design.models_table(models)
    people = abilities(table, seed)
    counts = design.allocate(items) if scale is None else design.allocate(scale=scale)
    parts, responses, rows = [], [], []
    for plan in design.BENCHMARKS:
        benchmark = design.flipped(plan, flip)
        part = benchmark_truth(benchmark, counts, people, seed, form)
        rng = stream(seed, "responses", plan.name, str(len(part.items)), str(models))
        drawn = (rng.random(part.probability.shape) < part.probability).astype(np.int8)
        gaps = stream(seed, "missing", plan.name, str(len(part.items)), str(models))
        drawn[gaps.random(drawn.shape) < missing] = -1
        parts.append(part)
        responses.append(drawn)
        mean = part.probability.mean(axis=1)
        varies = mean.std() > 1e-9
        achieved = [
            float(np.corrcoef(mean, people.theta[:, k])[0, 1]) if varies else np.nan for k in range(2)
        ]
        known = form == "planted"
        rows.append(
            {
                "benchmark": plan.name,
                "items": len(part.items),
                "planted_r_reasoning": benchmark.correlations[0] if known else np.nan,
                "achieved_r_reasoning": achieved[0],
                "planted_r_safety": benchmark.correlations[1] if known else np.nan,
                "achieved_r_safety": achieved[1],
                "planted_mean": benchmark.mean,
                "achieved_mean": float(mean.mean()),
            }
        )
    item_table = pd.concat([part.items for part in parts], ignore_index=True)
    probability = np.concatenate([part.probability for part in parts], axis=1)
    item_table["probability_mean"] = probability.mean(axis=0)
    truth = {
        "simulated": True,
        "variant": variant,
        "models": models,
        "items": len(item_table),
        "scale": scale,
        "seed": seed,
        "flipped": list(flip),
        "missing": missing,
        "ability_correlation": design.ABILITY_CORRELATION,
        "kinds": {str(kind): int(n) for kind, n in item_table["kind"].value_counts().sort_index().items()},
    }
    return Simulated(
        responses=np.concatenate(responses, axis=1),
        theta=people.theta,
        a=item_table[["a_reasoning", "a_safety"]].to_numpy(),
        d=item_table["d"].to_numpy(),
        floor=item_table["floor"].to_numpy(),
        ceiling=item_table["ceiling"].to_numpy(),
        probability=probability,
        lineage=people.lineage,
        benchmark=item_table["benchmark"].to_numpy(dtype=object),
        model_table=table,
        item_table=item_table,
        correlations=pd.DataFrame(rows),
        own=people.own,
        testlet=np.concatenate([part.testlet_factors for part in parts], axis=1),
        truth=truth,
    )


def matrix(
    models: int = 60,
    items: int = 120,
    dims: int = 2,
    seed: int = 0,
    *,
    benchmarks: int = 4,
    lineages: int = 15,
    missing: float = 0.0,
    floor: float = 0.0,
    ceiling: float = 1.0,
    loading: float = 1.2,
    simple: bool = True,
) -> Simulated:
    """Simulate a plain matrix with a known truth, for tests.

    Parameters
    ----------
    models, items, dims
        N, J and K.
    seed
        Any non-negative integer.
    benchmarks
        Number of benchmarks; item blocks of equal size. Benchmark b follows dimension b mod K.
    lineages
        Number of lineages, of unequal sizes; abilities share a lineage effect (intraclass correlation about
        .4).
    missing
        Share of responses missing at random.
    floor, ceiling
        Asymptotes of every item.
    loading
        Typical size of an item's main loading.
    simple
        True: an item loads on its benchmark's dimension, and a little on the others. False: normal loadings.

    Returns
    -------
    Simulated
        With theta of sample mean 0 and sample covariance I exactly.
    """
    rng = stream(seed, "matrix")
    lineages = max(1, min(lineages, models))
    weights = 1.0 / np.arange(1, lineages + 1)
    lineage = np.concatenate(
        [np.arange(lineages), rng.choice(lineages, size=models - lineages, p=weights / weights.sum())]
    )
    raw = np.sqrt(0.4) * rng.standard_normal((lineages, dims))[lineage]
    raw += np.sqrt(0.6) * rng.standard_normal((models, dims))
    raw -= raw.mean(axis=0)
    theta = np.linalg.qr(raw)[0] * np.sqrt(models) if dims else raw
    block = np.arange(items) * benchmarks // items
    size = loading * np.exp(0.35 * rng.standard_normal(items))
    if simple and dims:
        a = 0.15 * rng.standard_normal((items, dims))
        a[np.arange(items), block % dims] = size
    else:
        a = loading * rng.standard_normal((items, dims))
    d = rng.standard_normal(items)
    probability = floor + (ceiling - floor) * special.expit(theta @ a.T + d)
    responses = (rng.random((models, items)) < probability).astype(np.int8)
    responses[rng.random((models, items)) < missing] = -1
    names = np.array([f"simulated-{b + 1}" for b in block], dtype=object)
    item_table = pd.DataFrame(
        {
            "question_id": [f"{name}/{j}" for j, name in enumerate(names)],
            "benchmark": names,
            "category": [f"category {b % max(dims, 1) + 1}" for b in block],
            "d": d,
            "floor": floor,
            "ceiling": ceiling,
        }
    )
    for k in range(dims):
        item_table[f"a_{k + 1}"] = a[:, k]
    model_table = pd.DataFrame(
        {
            "model": [f"simulated-model-{i + 1}" for i in range(models)],
            "lineage": [f"lineage-{code + 1}" for code in lineage],
        }
    )
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        mean = probability[:, names == name].mean(axis=1)
        rows.append(
            {"benchmark": name, "items": int((names == name).sum()), "achieved_mean": float(mean.mean())}
        )
        for k in range(dims):
            rows[-1][f"achieved_r_{k + 1}"] = float(np.corrcoef(mean, theta[:, k])[0, 1])
    return Simulated(
        responses=responses,
        theta=theta,
        a=a,
        d=d,
        floor=np.full(items, floor),
        ceiling=np.full(items, ceiling),
        probability=probability,
        lineage=lineage,
        benchmark=names,
        model_table=model_table,
        item_table=item_table,
        correlations=pd.DataFrame(rows),
        own=np.empty((models, 0)),
        testlet=np.empty((models, 0)),
        truth={
            "simulated": True,
            "variant": "matrix",
            "models": models,
            "items": items,
            "dims": dims,
            "seed": seed,
        },
    )
