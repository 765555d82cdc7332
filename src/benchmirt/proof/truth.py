"""What the intervals of claims are meant to hold, computed from what was planted.

Directions speak of other models and other questions: their truth is that of all questions that could be drawn. Correlations and
means speak of other models and these questions: their truth is that of a crowd of models on the questions at hand. Abilities are
those along the quartimin axes of the true discriminations, since that is what the study calls its abilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt.claims.direction import angle_to, leaning
from benchmirt.proof.table import BORDER
from benchmirt.simulate import population
from benchmirt.simulate.design import Benchmark
from benchmirt.simulate.population import FRAME, Models, Twin

__all__ = ["ABILITIES", "PLANS", "Crowd", "Known", "axes_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ABILITIES = ("reasoning", "safety")
PLANS = ("published", BORDER)
"""Directions as the published study has them, and such that what four claims say is just not so."""
_CROWD = 10_000
_ITEMS_PER_UNIT = 4000
_ROUNDS = 8


def axes_of(items: pd.DataFrame) -> Floats:
    """Return the quartimin axes of true discriminations as columns, those of reasoning and safety, in the plane of FRAME."""
    axes = ident.quartimin(items[["a_reasoning", "a_safety"]].to_numpy() @ FRAME, starts=20).T
    cosine = FRAME @ axes
    rows, columns = ident.pairing(np.abs(cosine))
    found = np.empty_like(axes)
    found[:, rows] = axes[:, columns] * np.sign(cosine[rows, columns])
    return found


def _axes_of_plan(plan: Sequence[Benchmark], seed: int) -> Floats:
    """Return the axes of all questions that could be drawn."""
    return axes_of(population.draw_items(np.random.default_rng([seed, 1]), plan, _ITEMS_PER_UNIT))


def _at_the_border(seed: int) -> tuple[Benchmark, ...]:
    """Return a plan where BBQ and what C11 and C12 say of reasoning lean neither way, and both sets of XSTest lean alike.

    What turns moves the axes, so the angle half-way between them is sought by repetition, with the same items throughout.
    """
    angle = 45.0
    for _ in range(_ROUNDS):
        plan = population.as_plan(
            bbq={"ambig": angle, "disambig": angle},
            harmbench={"copyright": angle},
            wildjailbreak={"benign": angle},
            xstest={"safe": angle, "contrast": angle},
        )
        middle = _axes_of_plan(plan, seed).sum(axis=1) @ np.linalg.inv(FRAME)
        angle = float(np.degrees(np.arctan2(middle[1], middle[0])))
    return plan


@dataclass(frozen=True)
class Known:
    """What is true of all twins of one plan.

    Attributes
    ----------
    name
        One of PLANS.
    plan
        The benchmarks.
    axes
        Axes of reasoning and safety as columns, by all questions that could be drawn, in the plane of FRAME.
    vectors
        Direction of the mean discrimination of each unit, (2,) in that plane, by ``"benchmark/unit"``.
    models
        Many models of the population, with exactly its moments of the abilities.
    """

    name: str
    plan: tuple[Benchmark, ...]
    axes: Floats
    vectors: dict[str, Floats]
    models: Models

    @classmethod
    def build(cls, name: str, seed: int = 0) -> Known:
        """Compute what is true of a plan."""
        plan = _at_the_border(seed) if name == PLANS[1] else population.as_plan()
        models = population.draw_models(np.random.default_rng([seed, 2]), _CROWD, related=False)
        plane = models.theta @ np.linalg.inv(FRAME).T
        plane = plane - plane.mean(axis=0)
        plane = plane @ np.linalg.inv(np.linalg.cholesky(plane.T @ plane / _CROWD)).T
        exact = Models(plane @ FRAME.T, models.own, models.seeds, models.lineage)
        return cls(name, plan, _axes_of_plan(plan, seed), population.directions(plan), exact)

    def axis(self, ability: str) -> Floats:
        """Return the axis of an ability by its name, (2,)."""
        return np.asarray(self.axes[:, ABILITIES.index(ability)])

    def vector(self, items: pd.DataFrame) -> Floats:
        """Return the direction of the mean of the items that could stand in the place of these, (2,)."""
        units = items["benchmark"] + "/" + items["unit"]
        return np.asarray(np.mean([self.vectors[name] for name in units], axis=0))

    def angle(self, items: pd.DataFrame, ability: str) -> float:
        """Return the true angle of a selection to an ability in degrees."""
        return float(angle_to(self.vector(items), self.axis(ability)))

    def leaning(self, items: pd.DataFrame, ability: str, against: str) -> float:
        """Return how much nearer a selection is to one ability than to another, in degrees."""
        return float(leaning(self.vector(items), self.axis(ability), self.axis(against)))


class Crowd:
    """Many models of the population on the questions of one twin.

    Parameters
    ----------
    known
        The population.
    twin
        The study.
    missing
        Share of missing answers.
    """

    def __init__(self, known: Known, twin: Twin, missing: float) -> None:
        self.probability = population.probabilities(known.models, twin.items)
        self.answered = 1.0 - missing
        plane = known.models.theta @ np.linalg.inv(FRAME).T
        self.abilities = plane @ axes_of(twin.items)

    def mean(self, chosen: Mask) -> float:
        """Return the mean score over models of the chosen items, shape (J,)."""
        return float(self.probability[:, chosen].mean())

    def r(self, chosen: Mask, ability: str) -> float:
        """Return the correlation over models of the observed score on the chosen items with an ability."""
        p = self.probability[:, chosen]
        score, theta = p.mean(axis=1), self.abilities[:, ABILITIES.index(ability)]
        chance = float((p * (1.0 - p)).mean()) / (chosen.sum() * self.answered)
        covariance = float(np.mean((score - score.mean()) * (theta - theta.mean())))
        return covariance / float(np.sqrt((score.var() + chance) * theta.var()))
