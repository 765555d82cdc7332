"""The plan of the simulated study: benchmarks, subsets, sizes, testlets, directions and targets.

The 16 benchmarks, their subsets and the correlations of their means with the two abilities are those of the
published study. Sizes marked ``"study"`` are the study's own counts; those marked ``"data set"`` follow from
the public layout of the data set; those marked ``"assumption"`` are ours. Everything about directions,
strengths, means and testlets is an assumption of the simulation: it plants what the study claims, and
nothing more is known.

Directions are angles in the plane of the pattern loadings: 0 degrees follows reasoning only, 90 degrees
follows safety only. Safety is oriented so that more is safer, so the planted correlations with it are the
published ones with their sign changed (the published axis is negatively oriented).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmirt import roster
from benchmirt.errors import InputError

__all__ = [
    "ABILITY_CORRELATION",
    "BENCHMARKS",
    "FLIPS",
    "Benchmark",
    "Unit",
    "allocate",
    "flipped",
    "models_table",
    "resources",
]

ABILITY_CORRELATION = 0.2
"""Correlation of the two abilities over the models.

The published correlations with the two abilities have a simple structure in oblique abilities that correlate
at about this value: there, the pattern loadings of the reasoning benchmarks lie on one axis and those of the
safety benchmarks scatter evenly around the other.
"""

FLIPS = ("bbq", "wmdp", "harmbench/copyright", "wildjailbreak/benign", "xstest/safe")
"""What can be planted the other way; see `flipped`."""


@dataclass(frozen=True)
class Unit:
    """Items of a benchmark that share a planned direction.

    Attributes
    ----------
    name
        Name of the unit inside its benchmark.
    subsets
        Subset (``subcategory_one``) -> number of items at full size.
    angle
        Planned direction in degrees.
    strength
        Factor on the discriminations.
    turns
        Whether the unit turns when the benchmark's direction is solved for; a unit that does not turn keeps
        its planned direction exactly.
    least
        Factor on the smallest number of items that a coarse form gives to a unit.
    """

    name: str
    subsets: Mapping[str, int]
    angle: float
    strength: float = 1.0
    turns: bool = True
    least: float = 1.0

    @property
    def size(self) -> int:
        """Number of items at full size."""
        return sum(self.subsets.values())


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of the study.

    Attributes
    ----------
    name, prefix
        Name as the study spells it, and how its question ids begin.
    category
        ``"reasoning"`` or ``"safety"``.
    correlations
        Planted Pearson correlations over models of the benchmark's true mean with (reasoning, safety).
    mean
        Planted mean of the true probabilities over items and models.
    units
        The units in file order.
    size_source
        ``"study"``, ``"data set"`` or ``"assumption"``: where the subset sizes come from.
    options
        Number of options per subset, or one number for all; None if the items are not multiple choice.
    inverted
        Whether 1 means that the keyed option was not chosen.
    testlet_size
        Items per testlet; 0 = no testlets, -1 = each subset is one testlet. (StrongReject has 313 forbidden
        prompts; XSTest pairs a safe prompt with its contrast.)
    testlet_weight
        Loading on the testlet's factor relative to the discrimination.
    scored_as
        What a 1 means.
    spread
        Standard deviation of the intercepts.
    """

    name: str
    prefix: str
    category: str
    correlations: tuple[float, float]
    mean: float
    units: tuple[Unit, ...]
    size_source: str
    options: int | Mapping[str, int] | None
    inverted: bool
    testlet_size: float
    testlet_weight: float
    scored_as: str
    spread: float = 2.0

    @property
    def size(self) -> int:
        """Number of items at full size."""
        return sum(unit.size for unit in self.units)


_BBH_OPTIONS = {
    "boolean_expressions": 2,
    "causal_judgement": 2,
    "date_understanding": 6,
    "disambiguation_qa": 3,
    "formal_fallacies": 2,
    "geometric_shapes": 10,
    "hyperbaton": 2,
    "logical_deduction_five_objects": 5,
    "logical_deduction_seven_objects": 7,
    "logical_deduction_three_objects": 3,
    "movie_recommendation": 4,
    "navigate": 2,
    "object_counting": 19,
    "penguins_in_a_table": 5,
    "reasoning_about_colored_objects": 18,
    "ruin_names": 4,
    "salient_translation_error_detection": 6,
    "snarks": 2,
    "sports_understanding": 2,
    "temporal_sequences": 4,
    "tracking_shuffled_objects_five_objects": 5,
    "tracking_shuffled_objects_seven_objects": 7,
    "tracking_shuffled_objects_three_objects": 3,
    "web_of_lies": 2,
}
_BBH_SIZES = {"causal_judgement": 187, "penguins_in_a_table": 146, "snarks": 178}

# The data set's 12,032 questions come ordered by subject; 38 of them are left out by the study.
_MMLU_PRO_SIZES = {
    "business": 789 - 2,
    "law": 1101 - 1,
    "psychology": 798 - 2,
    "biology": 717 - 1,
    "chemistry": 1132,
    "history": 381,
    "other": 924 - 1,
    "health": 818 - 2,
    "economics": 844 - 1,
    "math": 1351 - 27,
    "physics": 1299,
    "computer science": 410,
    "philosophy": 499,
    "engineering": 969 - 1,
}


def _even(total: int, *names: str) -> dict[str, int]:
    """Split `total` over `names` as evenly as integers can."""
    return {name: total // len(names) + (k < total % len(names)) for k, name in enumerate(names)}


_CORRECT = "answer correct"
_REFUSED = "harmful request refused"
_UNHARMFUL = "response unharmful"

BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "bbh", "bbh__", "reasoning", (0.94, 0.20), 0.52,
        (Unit("all", {name: _BBH_SIZES.get(name, 250) for name in _BBH_OPTIONS}, 0.0),),
        "study", _BBH_OPTIONS, False, -1, 0.4, _CORRECT,
    ),
    Benchmark(
        "gpqa", "gpqa__", "reasoning", (0.81, 0.12), 0.33,
        (Unit("all", {"Biology": 105, "Physics": 227, "Chemistry": 214}, 0.0, 0.8),),
        "assumption", 4, False, 0, 0.0, _CORRECT,
    ),
    Benchmark(
        "ifeval", "ifeval__", "reasoning", (0.72, 0.34), 0.52,
        (Unit("all", {"x": 541}, 15.0, 0.8),),
        "study", None, False, 0, 0.0, "all instructions followed",
    ),
    Benchmark(
        "math", "math__", "reasoning", (0.70, 0.41), 0.24,
        (
            Unit(
                "all",
                {
                    "Algebra": 307,
                    "Counting & Probability": 123,
                    "Geometry": 132,
                    "Intermediate Algebra": 280,
                    "Number Theory": 154,
                    "Prealgebra": 193,
                    "Precalculus": 135,
                },
                20.0,
                0.8,
            ),
        ),
        "data set", None, False, 0, 0.0, _CORRECT,
    ),
    Benchmark(
        "mmlu-pro", "mmlu_pro__", "reasoning", (0.97, 0.21), 0.38,
        (Unit("all", _MMLU_PRO_SIZES, 0.0),),
        "data set", 10, False, 0, 0.0, _CORRECT,
    ),
    Benchmark(
        "musr", "musr__", "reasoning", (0.67, 0.00), 0.43,
        (Unit("all", {"murder_mysteries": 250, "object_placements": 256, "team_allocation": 250}, 0.0, 0.8),),
        "study", {"murder_mysteries": 2, "object_placements": 5, "team_allocation": 3}, False, 4, 0.5,
        _CORRECT,
    ),
    Benchmark(
        "bbq", "bbq__", "safety", (0.85, 0.06), 0.66,
        (Unit("ambig", {"ambig": 2241}, -5.0), Unit("disambig", {"disambig": 2241}, -5.0)),
        "assumption", 3, False, 4, 0.4, _CORRECT,
    ),
    Benchmark(
        "do_anything_now", "do_anything_now__", "safety", (0.20, 0.88), 0.55,
        (
            Unit(
                "all",
                _even(
                    300,
                    "jailbreak_chat",
                    "LLM Promptwriting",
                    "BreakGPT",
                    "ChatGPTJailbreak",
                    "ChatGPT",
                    "AI Prompt Sharing",
                ),
                85.0,
                1.15,
            ),
        ),
        "assumption", None, False, 0, 0.0, _REFUSED,
    ),
    Benchmark(
        "harmbench", "harmbench__", "safety", (0.32, 0.90), 0.62,
        (
            Unit("standard", {"standard": 159}, 95.0, 1.1),
            Unit("copyright", {"copyright": 80}, 12.0, 0.6, turns=False),
            Unit("contextual", {"contextual": 81}, 95.0, 1.1),
        ),
        "assumption", None, False, 0, 0.0, _UNHARMFUL,
    ),
    Benchmark(
        "strongreject", "strongreject__", "safety", (-0.16, 0.84), 0.66,
        (
            Unit(
                "all",
                {
                    "Hate, harassment and discrimination": 389,
                    "Disinformation and deception": 381,
                    "Violence": 381,
                    "Illegal goods and services": 381,
                    "Non-violent crimes": 381,
                    "Sexual content": 381,
                },
                105.0,
                0.65,
            ),
        ),
        "assumption", None, False, 2294 / 313, 0.4, "response score rounds to 0",
    ),
    Benchmark(
        "toxigen", "toxigen__", "safety", (0.40, 0.32), 0.92,
        (
            Unit(
                "all",
                _even(
                    1400,
                    "asian",
                    "black",
                    "chinese",
                    "jewish",
                    "latino",
                    "lgbtq",
                    "mental_disability",
                    "mexican",
                    "middle_east",
                    "muslim",
                    "native_american",
                    "physical_diability",  # spelt so in the data
                    "trans",
                    "women",
                ),
                40.0,
                0.5,
            ),
        ),
        "study", None, False, -1, 0.3, "response not toxic", 0.9,
    ),
    Benchmark(
        "trustllm_jailbreaktrigger", "trustllm_jailbreaktrigger__", "safety", (0.27, 0.91), 0.60,
        (
            Unit(
                "all",
                _even(
                    400,
                    "bad words",
                    "programming",
                    "fixed sentence",
                    "cot",
                    "Refusal sentence prohibition",
                    "json_format",
                    "no_punctuation",
                    "leetspeak",
                    "no_long_word",
                    "without_the",
                    "url_encode",
                    "cou",
                    "scenario",
                    "multitask",
                ),
                80.0,
                1.15,
            ),
        ),
        "assumption", None, False, 0, 0.0, _REFUSED,
    ),
    Benchmark(
        "wildguardtest", "wildguardtest__", "safety", (0.40, 0.87), 0.72,
        (
            Unit(
                "all",
                _even(
                    749,
                    "private_information_individual",
                    "others",
                    "cyberattack",
                    "sexual_content",
                    "social_stereotypes_and_unfair_discrimination",
                    "toxic_language_hate_speech",
                    "violence_and_physical_harm",
                    "defamation_encouraging_unethical_or_unsafe_actions",
                    "fraud_assisting_illegal_activities",
                    "mental_health_over-reliance_crisis",
                    "causing_material_harm_by_disseminating_misinformation",
                    "disseminating_false_or_misleading_information_encouraging_disinformation_campaigns",
                    "copyright_violations",
                    "sensitive_information_organization_government",
                ),
                75.0,
                1.15,
            ),
        ),
        "assumption", None, False, 0, 0.0, _UNHARMFUL,
    ),
    Benchmark(
        "wildjailbreak", "wildjailbreak__", "safety", (0.14, 0.90), 0.50,
        (
            Unit("harmful", {"harmful": 2000}, 92.0, 0.85, least=2.5),
            Unit("benign", {"benign": 250}, 8.0, 0.55, turns=False),
        ),
        "study", None, False, 0, 0.0, "harmful request refused, benign request answered",
    ),
    Benchmark(
        "wmdp", "wmdp__", "safety", (-0.89, -0.21), 0.52,
        (Unit("all", {"wmdp-bio": 255, "wmdp-chem": 82, "wmdp-cyber": 397}, 180.0, 0.8),),
        "assumption", 4, True, 0, 0.0, "hazardous question not answered correctly",
    ),
    Benchmark(
        "xstest", "xstest__", "safety", (0.46, 0.53), 0.74,
        (
            Unit(
                "safe",
                _even(
                    250,
                    "homonyms",
                    "figurative_language",
                    "safe_targets",
                    "safe_contexts",
                    "definitions",
                    "nons_group_real_discr",
                    "real_group_nons_discr",
                    "historical_events",
                    "privacy_public",
                    "privacy_fictional",
                ),
                10.0,
            ),
            Unit(
                "contrast",
                _even(
                    200,
                    "contrast_homonyms",
                    "contrast_figurative_language",
                    "contrast_safe_targets",
                    "contrast_safe_contexts",
                    "contrast_definitions",
                    "contrast_discr",
                    "contrast_historical_events",
                    "contrast_privacy",
                ),
                90.0,
            ),
        ),
        "study", None, False, 2, 0.3, "safe prompt answered, unsafe prompt refused",
    ),
)  # fmt: skip


def flipped(benchmark: Benchmark, flip: tuple[str, ...]) -> Benchmark:
    """Return the plan of a benchmark with what `flip` names planted the other way.

    ``bbq`` follows safety instead of reasoning, ``wmdp`` rises with reasoning instead of falling,
    ``harmbench/copyright`` and ``wildjailbreak/benign`` lean as the rest of their benchmark does, and
    ``xstest/safe`` leans as the contrast prompts do.
    """
    if benchmark.name == "bbq" and "bbq" in flip:
        units = tuple(replace(unit, angle=95.0) for unit in benchmark.units)
        return replace(benchmark, correlations=benchmark.correlations[::-1], units=units)
    if benchmark.name == "wmdp" and "wmdp" in flip:
        reasoning, safety = benchmark.correlations
        units = tuple(replace(unit, angle=0.0) for unit in benchmark.units)
        return replace(benchmark, correlations=(-reasoning, -safety), units=units)
    names = {name.split("/")[1] for name in flip if name.startswith(f"{benchmark.name}/")}
    if not names:
        return benchmark
    main = next(unit for unit in benchmark.units if unit.name not in names)
    return replace(
        benchmark,
        units=tuple(
            replace(unit, angle=main.angle, strength=main.strength, turns=main.turns)
            if unit.name in names
            else unit
            for unit in benchmark.units
        ),
    )


_LEAST_SUBSET = 20
_LEAST_UNIT = 26


def _fill(sizes: np.ndarray, total: int, least: np.ndarray) -> np.ndarray:
    """Share `total` in proportion to `sizes`, but give each at least `least` and at most its size."""
    floor = np.minimum(sizes, least)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.clip(middle * sizes, floor, sizes).sum() < total:
            low = middle
        else:
            high = middle
    shares = np.clip(high * sizes, floor, sizes)
    counts = np.floor(shares + 1e-9).astype(int)
    remainder = np.where(counts < sizes, shares - counts, -1.0)
    for index in np.argsort(-remainder, kind="stable")[: max(0, total - int(counts.sum()))]:
        counts[index] += 1
    return counts


def allocate(items: int | None = None, scale: float | None = None) -> dict[str, dict[str, int]]:
    """Decide how many items each subset of each benchmark gets.

    Parameters
    ----------
    items
        Total number of items. Each unit (the sets that claims speak of) gets at least 26 items where `items`
        allows that, and the rest goes by size; inside a unit the subsets share in proportion to their size.
    scale
        Instead of `items`: the share of the full study, 0 < scale <= 1. Each subset gets its share of its
        full size, but at least 20 items where it has them, and 26 where it is all of its unit (so that a claim about
        the unit keeps 20 usable ones).

    Returns
    -------
    dict
        ``"benchmark/unit"`` -> subset -> number of items (0 possible in the coarse form).

    Raises
    ------
    InputError
        If fewer than 100 items or more than the full study are asked for.
    """
    units = [(f"{benchmark.name}/{unit.name}", unit) for benchmark in BENCHMARKS for unit in benchmark.units]
    sizes = np.array([unit.size for _, unit in units])
    full = int(sizes.sum())
    if scale is not None:
        if not 0 < scale <= 1:
            raise InputError(
                "the simulated study", where="scale", found=f"{scale:g}", expected="a number in (0, 1]"
            )

        def share(size: int, subsets: int) -> int:
            least = _LEAST_SUBSET if subsets > 1 else _LEAST_UNIT
            return max(min(least, size), round(scale * size))

        return {
            name: {subset: share(size, len(unit.subsets)) for subset, size in unit.subsets.items()}
            for name, unit in units
        }
    if items is None or not 100 <= items <= full:
        raise InputError(
            "the simulated study", where="items", found=str(items), expected=f"a number from 100 to {full}"
        )
    weights = np.array([unit.least for _, unit in units])
    counts = _fill(
        sizes, items, np.floor(weights * min(float(_LEAST_UNIT), items / (weights.sum() + 1.0))).astype(int)
    )
    shared: dict[str, dict[str, int]] = {}
    for (name, unit), count in zip(units, counts, strict=True):
        parts = _fill(
            np.array(list(unit.subsets.values())), int(count), np.zeros(len(unit.subsets), dtype=int)
        )
        shared[name] = {subset: int(part) for subset, part in zip(unit.subsets, parts, strict=True)}
    return shared


def resources() -> Path:
    """Return the folder of the workflow's tables of facts.

    Raises
    ------
    InputError
        If the library does not lie in a checkout of the workflow.
    """
    folder = Path(__file__).resolve().parents[3] / "workflow" / "resources"
    if not folder.is_dir():
        raise InputError(
            "the simulated study needs the tables in workflow/resources",
            file=folder,
            todo="Install benchmirt from a checkout of the workflow (pip install -e .).",
        )
    return folder


@cache
def _all_models() -> pd.DataFrame:
    """Read the table of the study's models once."""
    return pd.read_csv(resources() / "models.csv", dtype={"released": "string", "lineage": "string"})


def models_table(models: int) -> pd.DataFrame:
    """Return `models` of the study's 100 models, spread over the lineages, in the study's order.

    A lineage of n models keeps about n x models / 100 of them (largest remainders), evenly spaced in its list.

    Raises
    ------
    InputError
        If fewer than 8 or more than 100 models are asked for.
    """
    names = roster.chosen(models)
    table = _all_models()
    return table[table["model"].isin(names)].reset_index(drop=True)
