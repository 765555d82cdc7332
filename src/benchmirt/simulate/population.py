"""A population of models, from which lineages are drawn anew: small twins for the proof that intervals cover.

The simulated study (:mod:`benchmirt.simulate.truth`) fixes the moments of its sample, so that its correlations are exactly those
planned; no interval can be tried on it, since nothing varies. Here nothing is fixed: lineages are drawn from a population, models
from lineages, and questions from what their unit plans, all independently. The response model is that of the simulated study,
without reversed and constant items.

Directions, strengths, means and testlets are those of :data:`benchmirt.simulate.design.BENCHMARKS`. The model is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import special

from benchmirt.simulate import design
from benchmirt.simulate.design import Benchmark, Unit

__all__ = [
    "FRAME",
    "Models",
    "Twin",
    "answers",
    "as_plan",
    "directions",
    "draw_items",
    "draw_models",
    "probabilities",
    "twin",
]

_SHARED = (
    0.45,
    0.35,
)  # share of a lineage in the variance of the abilities, and in that of the benchmarks' own factors
_UNCENSORED = (
    0.1,
    1.6,
)  # share of the models whose refusals were taken out, and by how much less safe they are
_SIZES = (1,) * 27 + (2, 2, 2, 3, 3, 4, 4, 7, 8, 11, 12, 14)
"""Models per lineage in the table of the study's 100 models."""
_MEDIAN, _SPREAD, _JITTER = (
    1.15,
    0.45,
    14.0,
)  # of the discriminations, of their logarithms, and of directions in degrees
_INTERCEPT_SPREAD = 1.5
_OWN = {
    "bbh": 0.25, "gpqa": 0.5, "ifeval": 0.85, "math": 0.75, "mmlu-pro": 0.1, "musr": 0.8, "bbq": 0.5, "do_anything_now": 0.5,
    "harmbench": 0.3, "strongreject": 0.4, "toxigen": 1.5, "trustllm_jailbreaktrigger": 0.4, "wildguardtest": 0.4,
    "wildjailbreak": 0.4, "wmdp": 0.4, "xstest": 0.9,
}  # fmt: skip
"""Weights of the benchmarks' own factors relative to the discriminations: about those that the simulated study solves for."""
_SPARE = 1.5  # items drawn for each that is kept: those that all or no models pass are not used
_SMALL_TESTLET = 4

FRAME = np.array([[1.0, 0.0], [design.ABILITY_CORRELATION, np.sqrt(1.0 - design.ABILITY_CORRELATION**2)]])
"""Rows are reasoning and safety in a plane where the population's abilities have the covariance I."""


@dataclass(frozen=True)
class Models:
    """Models drawn from the population.

    Attributes
    ----------
    theta
        (N, 2) reasoning and safety: in the population mean 0, variance 1 and correlation `design.ABILITY_CORRELATION`.
    own
        (N, B) factors of the benchmarks, standard normal and independent.
    seeds
        (N,) what the factors of the testlets are drawn from.
    lineage
        (N,) codes.
    """

    theta: np.ndarray
    own: np.ndarray
    seeds: np.ndarray
    lineage: np.ndarray

    def alike(self, copy: int, original: int, shift: Sequence[float] = (0.0, 0.0)) -> Models:
        """Return the same models with one made like another, of its lineage, but for a shift of the abilities."""
        changed = [array.copy() for array in (self.theta, self.own, self.seeds, self.lineage)]
        for array in changed:
            array[copy] = array[original]
        changed[0][copy] += shift
        return Models(*changed)


def draw_models(rng: np.random.Generator, count: int, *, related: bool = True) -> Models:
    """Draw models.

    Parameters
    ----------
    rng
        Draws everything.
    count
        Number of models N.
    related
        Whether lineages are drawn, of sizes as in the table of the study's models, until there are enough models (the last one is
        cut short); else every model is a lineage of its own, which stands for the population at large.
    """
    sizes = [] if related else [1] * count
    while sum(sizes) < count:
        sizes.append(int(rng.choice(_SIZES)))
    lineage = np.repeat(np.arange(len(sizes)), sizes)[:count]

    def shared(columns: int, share: float) -> np.ndarray:
        between = rng.standard_normal((len(sizes), columns))[lineage]
        return np.asarray(
            np.sqrt(share) * between + np.sqrt(1 - share) * rng.standard_normal((count, columns))
        )

    plane = shared(2, _SHARED[0])
    share, drop = _UNCENSORED
    # the plane's second axis, which reasoning has no part in, carries what was taken out; mean 0 and variance 1 in the population
    plane[:, 1] += drop * (share - (rng.random(count) < share))
    plane[:, 1] /= np.sqrt(1.0 + drop**2 * share * (1.0 - share))
    return Models(
        plane @ FRAME.T,
        shared(len(design.BENCHMARKS), _SHARED[1]),
        rng.integers(2**31, size=count),
        lineage,
    )


def as_plan(
    benchmarks: Sequence[Benchmark] = design.BENCHMARKS, **angles: Mapping[str, float]
) -> tuple[Benchmark, ...]:
    """Return the plan with some units turned to other angles: ``xstest={"safe": 90}``."""

    def turned(benchmark: Benchmark) -> Benchmark:
        own = angles.get(benchmark.name, {})
        units = tuple(replace(unit, angle=own.get(unit.name, unit.angle)) for unit in benchmark.units)
        return replace(benchmark, units=units)

    return tuple(turned(benchmark) for benchmark in benchmarks)


def _unit_vector(unit: Unit) -> np.ndarray:
    angle = np.deg2rad(unit.angle)
    return np.array([np.cos(angle), np.sin(angle)])


def directions(plan: Sequence[Benchmark]) -> dict[str, np.ndarray]:
    """Return the direction of the mean discrimination of every unit and benchmark over all items that could be drawn.

    Jitter is symmetric, so a unit's mean lies at its planned angle; that of a benchmark is the mean of its units, as many items
    each, by their strengths.

    Returns
    -------
    dict
        ``"benchmark"`` and ``"benchmark/unit"`` -> (2,) vector in the plane of `FRAME`, of no particular length.
    """
    found = {}
    for benchmark in plan:
        vectors = {unit.name: unit.strength * _unit_vector(unit) @ FRAME for unit in benchmark.units}
        found[benchmark.name] = np.sum(list(vectors.values()), axis=0)
        found |= {f"{benchmark.name}/{name}": vector for name, vector in vectors.items()}
    return found


def draw_items(rng: np.random.Generator, plan: Sequence[Benchmark], per_unit: int) -> pd.DataFrame:
    """Draw the items of every unit independently of each other.

    Returns
    -------
    DataFrame
        question_id, benchmark, category, subcategory_one, unit, testlet, options, inverted, scored_as, a_reasoning, a_safety,
        d, floor, ceiling, own_weight, testlet_weight; `per_unit` rows for each unit.
    """
    frames = []
    for benchmark in plan:
        for unit in benchmark.units:
            frames.append(_unit_items(rng, benchmark, unit, per_unit))
    return pd.concat(frames, ignore_index=True)


def _unit_items(rng: np.random.Generator, benchmark: Benchmark, unit: Unit, count: int) -> pd.DataFrame:
    subsets = list(unit.subsets)
    names = [subsets[k % len(subsets)] for k in range(count)]
    size = unit.strength * _MEDIAN * np.exp(_SPREAD * rng.standard_normal(count))
    angle = np.deg2rad(unit.angle + _JITTER * rng.standard_normal(count))
    options = benchmark.options
    of_item = np.array(
        [
            np.inf if options is None else options if isinstance(options, int) else options[name]
            for name in names
        ],
        float,
    )
    floor = np.zeros(count) if benchmark.inverted else 1.0 / of_item
    ceiling = 1.0 - 1.0 / of_item if benchmark.inverted else np.ones(count)
    share = np.clip((benchmark.mean - floor) / (ceiling - floor), 0.1, 0.9)
    testlets = _testlet_names(benchmark, count)
    return pd.DataFrame(
        {
            "question_id": [f"{benchmark.prefix}{unit.name}_{k}" for k in range(count)],
            "benchmark": benchmark.name,
            "category": benchmark.category,
            "subcategory_one": names,
            "unit": unit.name,
            "testlet": np.array(testlets, dtype=object),
            "options": pd.array([None if np.isinf(n) else int(n) for n in of_item], dtype="Int16"),
            "inverted": benchmark.inverted,
            "scored_as": benchmark.scored_as,
            "a_reasoning": size * np.cos(angle),
            "a_safety": size * np.sin(angle),
            "d": 1.5 * special.logit(share) + _INTERCEPT_SPREAD * rng.standard_normal(count),
            "floor": floor,
            "ceiling": ceiling,
            "own_weight": size * _OWN[benchmark.name],
            "testlet_weight": size
            * benchmark.testlet_weight
            * np.array([name is not None for name in testlets]),
        }
    )


def _testlet_names(benchmark: Benchmark, count: int) -> list[str | None]:
    """Return the testlets of a unit's items: across units where a benchmark pairs them, and none where subsets are testlets."""
    if benchmark.testlet_size <= 0:
        return [None] * count
    each = max(1, _SMALL_TESTLET // len(benchmark.units)) if benchmark.name != "xstest" else 1
    return [f"{benchmark.name}/{k // each}" for k in range(count)]


def _testlet_factors(models: Models, testlets: pd.Series) -> np.ndarray:
    """Return each model's factor of each item's testlet, (N, J); 0 without one."""
    codes, names = pd.factorize(testlets)
    if not len(names):
        return np.zeros((len(models.seeds), len(codes)))
    # of the model and the testlet alone, so that models made alike have the same
    drawn = np.stack([np.random.default_rng(int(seed)).standard_normal(len(names)) for seed in models.seeds])
    return np.where(codes >= 0, drawn[:, codes], 0.0)


def probabilities(models: Models, items: pd.DataFrame) -> np.ndarray:
    """Return the probabilities of a 1, (N, J)."""
    column = pd.Index([one.name for one in design.BENCHMARKS]).get_indexer(pd.Index(items["benchmark"]))
    logit = models.theta @ items[["a_reasoning", "a_safety"]].to_numpy().T + items["d"].to_numpy()
    logit += models.own[:, column] * items["own_weight"].to_numpy()
    logit += _testlet_factors(models, items["testlet"]) * items["testlet_weight"].to_numpy()
    floor, ceiling = items["floor"].to_numpy(), items["ceiling"].to_numpy()
    return np.asarray(floor + (ceiling - floor) * special.expit(logit))


def answers(rng: np.random.Generator, probability: np.ndarray, missing: float) -> np.ndarray:
    """Draw responses, int8 (N, J): 1, 0, and -1 where missing."""
    drawn = (rng.random(probability.shape) < probability).astype(np.int8)
    drawn[rng.random(probability.shape) < missing] = -1
    return drawn


@dataclass(frozen=True)
class Twin:
    """A small study drawn from the population.

    Attributes
    ----------
    models
        The N models.
    items
        The J items, as :func:`draw_items` returns them.
    probability
        (N, J) true probabilities of a 1.
    responses
        (N, J) int8: 1, 0 or -1.
    """

    models: Models
    items: pd.DataFrame
    probability: np.ndarray
    responses: np.ndarray


def twin(
    rng: np.random.Generator, models: Models, plan: Sequence[Benchmark], per_unit: int, missing: float = 0.015
) -> Twin:
    """Draw the items and answers of a study; items on which the models do not differ are drawn again.

    Parameters
    ----------
    rng
        Draws everything.
    models
        The models, which are given.
    plan
        The benchmarks.
    per_unit
        Items of each unit, so that all twins have one shape.
    missing
        Share of the answers that are missing at random.

    Raises
    ------
    ValueError
        If a unit has too few items on which the models differ.
    """
    items = draw_items(rng, plan, int(np.ceil(_SPARE * per_unit)))
    probability = probabilities(models, items)
    drawn = answers(rng, probability, missing)
    useful = (drawn == 0).any(axis=0) & (drawn == 1).any(axis=0)
    unit = items["benchmark"] + "/" + items["unit"]
    rank = pd.Series(useful).groupby(unit.to_numpy()).cumsum()
    chosen = useful & (rank.to_numpy() <= per_unit)
    if chosen.sum() < per_unit * unit.nunique():
        raise ValueError("a unit has too few items on which the models differ")
    return Twin(models, items[chosen].reset_index(drop=True), probability[:, chosen], drawn[:, chosen])
