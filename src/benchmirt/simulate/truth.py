"""Planted truth: abilities, factors, item parameters and probabilities of the simulated study.

The model is not imported from anywhere: a response is 1 with probability

    c_j + (u_j - c_j) * logistic(s_j * (a_j . theta_i + w_j z_{i,b(j)} + v_j g_{i,t(j)}) + d_j)

with two abilities theta, one factor z per benchmark and one factor g per testlet; s_j is -1 for the few items
whose key is planted the wrong way round. Over the models of the sample the abilities have mean 0, variance 1
and correlation `design.ABILITY_CORRELATION`, and every factor is uncorrelated with both, all exactly. What
then decides a benchmark's correlations with the abilities is its direction and the weight of its own factor;
these and the intercept are solved for, so that correlations and mean come out as planned in the sample at
hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import optimize, special

from benchmirt.errors import InputError
from benchmirt.simulate import design, layout
from benchmirt.simulate.layout import stream

__all__ = ["Abilities", "BenchmarkTruth", "abilities", "benchmark_truth"]

_JITTER = 14.0  # degrees: spread of the items' directions around their unit's
_SPREAD = 0.45  # of the logarithm of the discriminations
_MEDIAN = 1.15  # of the discriminations
_TAIL = (0.05, 2.2)  # share of items with a heavy loading, and the factor on it
_REVERSED = 0.01
_CONSTANT = 0.006
_UNCENSORED = ("abliterated", "lorablated", "dolphin", "liberated", "daredevil", "pygmalion", "neoxt")


@dataclass(frozen=True)
class Abilities:
    """What the models bring.

    Attributes
    ----------
    theta
        (N, 2) reasoning and safety: mean 0, variance 1 and the planned correlation, exactly.
    own
        (N, B) one factor per benchmark of the design: mean 0, variance 1, uncorrelated with `theta` (and with
        each other where there are enough models), exactly.
    lineage
        (N,) lineage codes; a model of unknown lineage is its own.
    """

    theta: np.ndarray
    own: np.ndarray
    lineage: np.ndarray

    @property
    def basis(self) -> np.ndarray:
        """(N, 3) orthonormal basis of the constant and the abilities."""
        columns = np.column_stack([np.ones(len(self.theta)), self.theta])
        return np.asarray(np.linalg.qr(columns)[0])

    def residual(self, factors: np.ndarray) -> np.ndarray:
        """Take mean and abilities out of (N, T) `factors` and scale each to variance 1."""
        left = factors - self.basis @ (self.basis.T @ factors)
        scale = np.sqrt((left**2).mean(axis=0))
        return np.asarray(left / np.where(scale > 1e-9, scale, 1.0))


def lineage_codes(models: pd.DataFrame) -> np.ndarray:
    """Return (N,) integer codes of the lineages, each model of unknown lineage its own."""
    lineage = models["lineage"].fillna("own:" + models["model"])
    return np.asarray(pd.factorize(lineage)[0])


def abilities(models: pd.DataFrame, seed: int, correlation: float = design.ABILITY_CORRELATION) -> Abilities:
    """Draw abilities and benchmark factors for `models` and fix their sample moments.

    Reasoning rises with size, safety is lower for models whose name says that refusals were taken out; both,
    and the benchmark factors, share a lineage effect.

    Parameters
    ----------
    models
        Columns model, lineage, size_b, reasoning.
    seed
        Any non-negative integer.
    correlation
        Correlation of the two abilities over the models.
    """
    lineage = lineage_codes(models)
    count, groups = len(models), int(lineage.max()) + 1
    rng = stream(seed, "abilities", str(count))

    def shared(columns: int, share: float) -> np.ndarray:
        between = rng.standard_normal((groups, columns))[lineage]
        within = rng.standard_normal((count, columns))
        return np.asarray(np.sqrt(share) * between + np.sqrt(1 - share) * within)

    raw = shared(2, 0.45)
    size = np.log(models["size_b"].to_numpy(float))
    raw[:, 0] += 0.75 * (size - size.mean()) / size.std() + 0.5 * models["reasoning"].to_numpy(float)
    names = models["model"].str.lower()
    raw[:, 1] -= 1.6 * np.array([any(word in name for word in _UNCENSORED) for name in names], float)
    raw -= raw.mean(axis=0)
    white = raw @ _power(raw.T @ raw / count, -0.5)
    theta = white @ _power(np.array([[1.0, correlation], [correlation, 1.0]]), 0.5)
    theta -= theta.mean(axis=0)
    drawn = Abilities(theta, np.empty((count, 0)), lineage)
    own = shared(len(design.BENCHMARKS), 0.35)
    if count >= own.shape[1] + 24:
        own = drawn.residual(own)
        basis, triangle = np.linalg.qr(own)
        own = basis * np.sign(np.diag(triangle))
    return Abilities(theta, drawn.residual(own), lineage)


def _power(matrix: np.ndarray, power: float) -> np.ndarray:
    """Return the symmetric `power` of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values**power) @ vectors.T)


@dataclass(frozen=True)
class BenchmarkTruth:
    """The planted items of one benchmark.

    Attributes
    ----------
    items
        One row per item: the columns of `layout.items`, then kind (ordinary, reversed, constant),
        a_reasoning, a_safety, d, floor, ceiling, own_weight, testlet_weight. Weights and loadings carry the
        sign of a reversed key.
    probability
        (N, J) true probabilities of a 1.
    testlet_factors
        (N, T) factors of the benchmark's testlets.
    """

    items: pd.DataFrame
    probability: np.ndarray
    testlet_factors: np.ndarray


def _scores(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw `count` standard normal numbers, one from each of as many equal strata, in random order."""
    return np.asarray(special.ndtri((rng.permutation(count) + rng.random(count)) / count))


@dataclass(frozen=True)
class _Items:
    """What of a benchmark's items does not depend on what is solved for; arrays are (J,) or (N, J)."""

    people: Abilities
    size: np.ndarray
    sign: np.ndarray
    planned: np.ndarray
    jitter: np.ndarray
    turns: np.ndarray
    intercept: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray
    constant: np.ndarray
    level: np.ndarray
    own: np.ndarray
    own_share: np.ndarray
    testlet: np.ndarray
    testlet_weight: np.ndarray

    def parameters(self, form: str, turn: float, weight: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return loadings (J, 2), own and testlet weights (J,).

        `turn` is the benchmark's turn in degrees, `weight` that of its own factor; `form` as for
        `benchmark_truth`.
        """
        scale = np.where(self.constant, 0.0, self.sign * self.size)
        nothing = np.zeros(len(scale))
        if form == "noise":
            return np.zeros((len(scale), 2)), nothing, nothing
        if form == "one":  # all along, but what runs against both abilities (WMDP)
            main = np.sign(np.cos(np.deg2rad(self.planned - 45.0)))
            return np.column_stack([scale * main, nothing]), nothing, nothing
        angle = np.deg2rad(self.planned + self.jitter + self.turns * turn)
        loadings = scale[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        if form == "planted_pure":
            return loadings, nothing, nothing
        return loadings, weight * scale * self.own_share, scale * self.testlet_weight

    def probability(self, form: str, turn: float, weight: float, easier: float) -> np.ndarray:
        """Return (N, J) probabilities; `easier` is added to every intercept."""
        loadings, own, testlet = self.parameters(form, turn, weight)
        logit = self.people.theta @ loadings.T + self.own[:, None] * own + self.testlet * testlet
        curve = special.expit(logit + self.intercept + easier)
        return np.where(self.constant, self.level, self.floor + (self.ceiling - self.floor) * curve)


def _draw(
    benchmark: design.Benchmark, frame: pd.DataFrame, people: Abilities, seed: int
) -> tuple[_Items, np.ndarray, np.ndarray]:
    """Draw the items of a benchmark; return them, their kinds (J,) and the testlet factors (N, T)."""
    count = len(frame)
    rng = stream(seed, "items", benchmark.name, str(count))
    unit_of = {unit.name: unit for unit in benchmark.units}
    units = [unit_of[name] for name in frame["unit"]]
    size, jitter, intercept, own_share = np.empty((4, count))
    kind = np.full(count, "ordinary", dtype=object)
    for unit in benchmark.units:
        rows = np.flatnonzero(frame["unit"] == unit.name)
        number = len(rows)
        size[rows] = _MEDIAN * np.exp(_SPREAD * _scores(rng, number))
        size[rng.permutation(rows)[: round(_TAIL[0] * number)]] *= _TAIL[1]
        jitter[rows] = _JITTER * _scores(rng, number)
        intercept[rows] = benchmark.spread * _scores(rng, number)
        own_share[rows] = np.exp(0.3 * _scores(rng, number))
        odd = rng.permutation(rows)
        reversed_, constant = rng.binomial(number, _REVERSED), rng.binomial(number, _CONSTANT)
        kind[odd[:reversed_]] = "reversed"
        if number >= 40:  # small sets keep every item
            kind[odd[reversed_ : reversed_ + constant]] = "constant"
    level = (rng.random(count) < 0.5).astype(float)
    options = frame["options"].to_numpy(dtype=float, na_value=np.inf)
    codes, names = pd.factorize(frame["testlet"])
    rng = stream(seed, "testlets", benchmark.name, str(count))
    drawn = rng.standard_normal((len(people.theta), len(names)))
    factors = people.residual(drawn)
    column = [plan.name for plan in design.BENCHMARKS].index(benchmark.name)
    items = _Items(
        people=people,
        size=size * np.array([unit.strength for unit in units]),
        sign=np.where(kind == "reversed", -1.0, 1.0),
        planned=np.array([unit.angle for unit in units]),
        jitter=jitter,
        turns=np.array([unit.turns for unit in units], dtype=float),
        intercept=intercept,
        floor=np.zeros(count) if benchmark.inverted else 1.0 / options,
        ceiling=1.0 - 1.0 / options if benchmark.inverted else np.ones(count),
        constant=kind == "constant",
        level=level,
        own=people.own[:, column],
        own_share=own_share,
        testlet=factors[:, codes] if len(names) else np.zeros((len(people.theta), count)),
        testlet_weight=benchmark.testlet_weight * (codes >= 0),
    )
    return items, kind, factors


def benchmark_truth(
    benchmark: design.Benchmark,
    counts: dict[str, dict[str, int]],
    people: Abilities,
    seed: int,
    form: str,
) -> BenchmarkTruth:
    """Plant the items of one benchmark and solve for its targets.

    Parameters
    ----------
    benchmark
        The (possibly flipped) plan.
    counts
        What `design.allocate` returned.
    people
        Abilities and factors of the models.
    seed
        Seed of the item streams; a benchmark's streams depend on nothing but seed, name and counts.
    form
        ``"planted"``, ``"planted_pure"`` (no own and no testlet factor), ``"one"`` (one ability only) or
        ``"noise"`` (no ability at all).

    Raises
    ------
    InputError
        If the targets cannot be met by the sample at hand.
    """
    frame = layout.items(benchmark, counts, seed)
    items, kind, factors = _draw(benchmark, frame, people, seed)
    turn = weight = easier = 0.0
    if form in ("planted", "planted_pure"):
        items, (turn, weight, easier) = _reach(benchmark, items)
    if form != "planted":

        def excess(shift: float) -> float:
            return float(items.probability(form, turn, 0.0, shift).mean() - benchmark.mean)

        weight, easier = 0.0, float(optimize.brentq(excess, -15.0, 15.0, xtol=1e-13))
    loadings, own, testlet = items.parameters(form, turn, weight)
    never = np.where(items.level > 0, np.inf, -np.inf)
    frame["kind"] = kind
    frame["a_reasoning"], frame["a_safety"] = loadings.T
    frame["d"] = np.where(items.constant, never, items.intercept + easier)
    frame["floor"] = np.where(items.constant, 0.0, items.floor)
    frame["ceiling"] = np.where(items.constant, 1.0, items.ceiling)
    frame["own_weight"] = own
    frame["testlet_weight"] = testlet
    return BenchmarkTruth(frame, items.probability(form, turn, weight, easier), factors)


def _reach(benchmark: design.Benchmark, items: _Items) -> tuple[_Items, tuple[float, float, float]]:
    """Meet the three targets, with weaker discriminations if the curves bend too much for them.

    A mean of steep curves is no linear function of the abilities, which bounds its correlations with them.
    """
    for weaker in (1.0, 0.8, 0.6, 0.45, 0.3):
        tried = replace(items, size=weaker * items.size)
        found = _solve(benchmark, tried)
        if found is not None:
            return tried, found
    raise InputError(
        "the planted correlations cannot be reached with these models and items",
        where=benchmark.name,
        todo="Use more models or more items.",
    )


def _solve(benchmark: design.Benchmark, items: _Items) -> tuple[float, float, float] | None:
    """Find the turn, the own factor's weight and the shift of the intercepts that meet the three targets."""
    theta = items.people.theta
    target = np.array([*benchmark.correlations, benchmark.mean])

    def excess(unknown: np.ndarray) -> np.ndarray:
        turn, log_weight, easier = unknown
        mean = items.probability("planted", 10.0 * turn, float(np.exp(log_weight)), easier).mean(axis=1)
        centred = mean - mean.mean()
        correlations = centred @ theta / len(theta) / np.sqrt((centred**2).mean())
        return np.asarray([*correlations, mean.mean()] - target)

    for log_weight in (-0.7, -1.5, 0.0, -2.5, 0.6):
        for turn in (0.0, 1.5, -1.5):
            start = np.array([turn, log_weight, 0.0])
            found = optimize.root(excess, start, method="hybr", options={"xtol": 1e-13})
            if np.abs(found.fun).max() < 1e-9:
                return 10.0 * float(found.x[0]), float(np.exp(found.x[1])), float(found.x[2])
    return None
