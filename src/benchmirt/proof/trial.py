"""One small study with a known truth, from answers to the intervals of claims, by the functions that the rules call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmirt import config
from benchmirt.claims import selection
from benchmirt.claims import spec as claims_spec
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.pair import tails
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import judge
from benchmirt.config import Study
from benchmirt.dimensions import consensus, families, labels, pairs
from benchmirt.files import write_parquet
from benchmirt.inference import em
from benchmirt.matrix import ResponseData
from benchmirt.prediction import methods, splits
from benchmirt.prediction.intervals import measured
from benchmirt.prediction.tally import Tally, count
from benchmirt.proof.truth import PLANS, Crowd, Known
from benchmirt.simulate import population
from benchmirt.simulate.design import resources
from benchmirt.simulate.population import Models, Twin

__all__ = ["COLUMNS", "FORETOLD", "MISSING", "MODELS", "PER_UNIT", "foretell", "run"]

MODELS, PER_UNIT, MISSING = 80, 24, 0.015
SHIPPED = ("C4", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14", "C17", "C18")
COLUMNS = (
    *("twin", "plan", "questions", "claim", "part", "statistic", "ability"),
    *("estimate", "low", "high", "truth", "region_low", "region_high", "verdict", "why"),
)
FORETOLD = "prediction"
"""Name of the plan of twins that are predicted only."""
QUESTION_SETS = 4
_FOLDS = 4
_PREDICTION: Mapping[str, Any] = {"sweeps": 60, "tolerance": 5e-3}
_EM: Mapping[str, Any] = {"sweeps": 2000, "tolerance": 1e-3}
_BASE, _COPY, _CHANGED = 0, 1, 2
_PLACED = (0.3, 0.5)  # abilities of the pair's base, in all twins
_SHIFT = (0.0, -1.2)


def _model(index: int) -> str:
    return f"simulated-model-{index:03d}"


def _own_claims() -> list[dict[str, Any]]:
    """Return statements about every benchmark, beside the shipped claims."""
    every = {"category": ["reasoning", "safety"]}
    both = ({"ability": "reasoning", "against": "safety"}, {"ability": "safety", "against": "reasoning"})
    border: dict[str, Any] = {"region": {"low": 0}}

    def claim(name: str, kind: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": name, "kind": kind, "statement": name, "parts": parts}

    def each(
        statistic: str, keys: Sequence[Mapping[str, Any]], region: dict[str, Any] = border
    ) -> list[dict[str, Any]]:
        shared = {"statistic": statistic, "select": every, "each": "benchmark", **region}
        return [{"name": " ".join([statistic, *own.values()]), **shared, **own} for own in keys]

    alone = [{"ability": own["ability"]} for own in both]
    high = {"region": {"high": 45}}
    return [
        claim("directions", "direction", [*each("angle", alone, high), *each("leaning", both[:1])]),
        claim(
            "correlations",
            "correlation",
            [
                *each("r", alone),
                *each("abs_r_difference", both[:1]),
                *each("r_difference", both[:1]),
                *each("mean", [{}], {"region": {"low": 0.5}}),
            ],
        ),
        claim(
            "pairs",
            "pair",
            [
                {
                    "name": f"{name}, {ability}",
                    "ability": ability,
                    "base": _model(_BASE),
                    "changed": _model(changed),
                    "region": {"high": 0},
                }
                for name, changed in (("alike", _COPY), ("less safe", _CHANGED))
                for ability in ("reasoning", "safety")
            ],
        ),
    ]


@cache
def _study() -> Study:
    home = resources().parents[1]
    return config.load(
        {
            "study": "proof",
            "sources": [{"name": "mine", "kind": "table", "responses": "responses.csv"}],
            "claims": {"extra": _own_claims()},
        },
        home,
        check_files=False,
    )


@cache
def _claims() -> dict[str, Claim]:
    loaded = claims_spec.load(_study())
    return {
        name: claim
        for name, claim in loaded.items()
        if name in (*SHIPPED, "directions", "correlations", "pairs")
    }


# -- the study ----------------------------------------------------------------------------------------------


def _placed(models: Models) -> Models:
    """Return the models with a pair that is alike, and one that differs, by what is the same in all twins."""
    theta, own = models.theta.copy(), models.own.copy()
    theta[_BASE], own[_BASE] = _PLACED, 0.0
    base = Models(theta, own, models.seeds, models.lineage)
    return base.alike(_COPY, _BASE).alike(_CHANGED, _BASE, _SHIFT)


def _data(twin: Twin) -> ResponseData:
    """Return the responses of a twin with their tables, as a matrix whose items and models are all kept has them."""
    items = twin.items[
        ["question_id", "benchmark", "category", "subcategory_one", "testlet", "options", "inverted"]
    ]
    names = [_model(index) for index in range(len(twin.responses))]
    models = pd.DataFrame(
        {"model": names, "lineage": [f"lineage-{code:03d}" for code in twin.models.lineage]}
    )
    kept: dict[str, Any] = {"kept": True, "drop_reason": None}
    return ResponseData(
        responses=twin.responses,
        models=tuple(names),
        items=tuple(items["question_id"]),
        floor=twin.items["floor"].to_numpy(np.float32),
        ceiling=twin.items["ceiling"].to_numpy(np.float32),
        lineage=twin.models.lineage.astype(np.int64),
        testlet=np.full(len(items), -1, np.int64),
        item_table=items.assign(**kept),
        model_table=models.assign(**kept),
    )


def _write(data: ResponseData, folder: Path, replicates: int) -> None:
    """Make and write what claims read: the fit and its refits, as the rules of the same names do."""
    table = pd.DataFrame(data.responses.T, columns=data.models).astype("Int8").replace(-1, pd.NA)
    table.insert(0, "question_id", list(data.items))
    for policy in ("honest", "published"):
        home = folder / "matrix" / policy
        write_parquet(table, home / "responses.parquet")
        write_parquet(data.item_table, home / "items.parquet")
        write_parquet(data.model_table, home / "models.parquet")
    home = folder / "dimensions"
    solution = consensus.build([em.fit(data, 2, **_EM)], fit="corrected", item_table=data.item_table)
    for fit in ("corrected", "published"):  # what would be as published is not looked at
        consensus.write(solution, home / fit / "consensus.nc")
    left_out = families.leave_one_out(data, solution, **_EM)
    families.write_leave_one_out(left_out, home / "leave_one_out.nc")
    families.write_bootstrap(
        families.bootstrap(data, solution, replicates=replicates, **_EM), home / "bootstrap.nc"
    )
    labels.write(labels.build(data, solution, left_out), home / "labels.json")
    asked = [pairs.Pair(*names) for names in claims_spec.pairs_of([_claims()["pairs"]])]
    pairs.write(pairs.without_pairs(data, solution, asked, **_EM), folder / "pairs" / "refits.nc")


# -- rows ---------------------------------------------------------------------------------------------------


def _row(claim: str, found: PartResult, truth: float) -> dict[str, Any]:
    part, region = found.part, found.region
    low, high = found.interval or (np.nan, np.nan)
    return {
        "claim": claim,
        "part": part.name,
        "statistic": part.statistic,
        "ability": part.ability,
        "estimate": found.estimate,
        "low": low,
        "high": high,
        "truth": truth,
        "region_low": None if region is None else region.low,
        "region_high": None if region is None else region.high,
        "verdict": found.verdict,
        "why": "" if found.blocked is None else str(found.blocked),
    }


def _direction(part: Part, known: Known, items: pd.DataFrame) -> float:
    chosen = items[selection.mask(items, part.select, part.excepted)]
    ability = str(part.ability)
    if part.statistic == "angle":
        return known.angle(chosen, ability)
    leaning = known.leaning(chosen, ability, str(part.against))
    if part.statistic == "leaning":
        return leaning
    other = items[selection.mask(items, part.compare)]
    return leaning - known.leaning(other, ability, str(part.against))


def _correlation(part: Part, crowd: Crowd, items: pd.DataFrame) -> float:
    chosen = selection.mask(items, part.select, part.excepted)
    if part.statistic == "mean":
        return crowd.mean(chosen)
    r = crowd.r(chosen, str(part.ability))
    if part.against is not None:
        other = crowd.r(chosen, str(part.against))
        return abs(r) - abs(other) if part.statistic == "abs_r_difference" else r - other
    return abs(r) if part.statistic == "abs_r" else r


def _pair(part: Part, results: Results, twin: Twin) -> float:
    """Return the true difference of a pair on the items that were chosen for it."""
    try:
        ability = results.ability(str(part.ability))
    except Unavailable:
        return float("nan")
    refits = results.without_pairs
    at = list(refits.pairs).index((str(part.base), str(part.changed)))
    chosen = tails(ability.sign * refits.a[at, :, ability.index])[part.end]
    base, changed = (_index(name) for name in (part.base, part.changed))
    return float((twin.probability[changed] - twin.probability[base])[chosen].mean())


def _index(name: str | None) -> int:
    """Return the number of a model by its name."""
    return int(str(name).rsplit("-", 1)[1])


def _table_rows(
    claim: Claim, found: PartResult, crowd: Crowd, items: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield the cells of a table of correlations, whose intervals are meant to hold all at once."""
    for cell in found.extra.get("cells", ()):
        chosen = selection.mask(items, {column: tuple(values) for column, values in cell["select"].items()})
        yield {
            "claim": claim.id,
            "part": f"{cell['benchmark']}: simultaneous",
            "statistic": "simultaneous r",
            "ability": cell["ability"],
            "estimate": cell["estimate"],
            "low": cell["interval"][0],
            "high": cell["interval"][1],
            "truth": crowd.r(chosen, cell["ability"]),
            "verdict": cell["within"],
        }


def _judged(known: Known, twin: Twin, results: Results) -> Iterator[dict[str, Any]]:
    items = results.items().assign(unit=twin.items["unit"])
    crowd = Crowd(known, twin, MISSING)
    truths: dict[str, Callable[[Part], float]] = {
        "direction": lambda part: _direction(part, known, items),
        "contrast": lambda part: _direction(part, known, items),
        "correlation": lambda part: _correlation(part, crowd, items),
        "pair": lambda part: _pair(part, results, twin),
    }
    for claim in _claims().values():
        if claim.kind not in truths:
            continue
        for found in import_module(f"benchmirt.claims.{claim.kind}").evaluate(claim, results):
            if found.part.statistic == "count_within":
                yield from _table_rows(claim, found, crowd, items)
            elif found.part.statistic != "sign_flips":
                yield _row(claim.id, found, truths[claim.kind](found.part))


def _tally(data: ResponseData, split: splits.Split, chosen: Sequence[str]) -> Tally:
    names, code = np.unique(data.item_table["benchmark"].astype(str).to_numpy(), return_inverse=True)
    counts = np.stack(
        [
            np.stack(
                [
                    count(
                        methods.predict(method, data, fold, _PREDICTION),
                        data.responses,
                        fold.scored,
                        code,
                        names.size,
                    )
                    for method in chosen
                ]
            )
            for fold in split.folds
        ]
    )
    shared = (data.models, tuple(map(str, names)), data.lineage, counts)
    return Tally(split.name, tuple(chosen), *shared, split.apart, split.ratio)


def _gains(data: ResponseData) -> Iterator[dict[str, Any]]:
    """Yield the gains of prediction that the shipped claims speak of."""
    parts = [
        (claim.id, part) for claim in _claims().values() if claim.kind == "prediction" for part in claim.parts
    ]
    made = {"cells": splits.cells, "lineages": splits.lineages}
    tallies = {}
    for name, make in made.items():
        own = [part for _, part in parts if part.split == name]
        chosen = dict.fromkeys(str(method) for part in own for method in (part.method, part.baseline))
        tallies[name] = _tally(data, make(data, _FOLDS, 0), tuple(chosen))
    for claim, part in parts:
        metric = part.statistic.removesuffix("_gain")
        gain = measured(tallies[str(part.split)], metric).gain(
            str(part.method), str(part.baseline), part.average
        )
        yield {
            "claim": claim,
            "part": part.name,
            "statistic": part.statistic,
            "estimate": gain.value,
            "low": gain.low,
            "high": gain.high,
            "region_low": None if part.region is None else part.region.low,
            "region_high": None if part.region is None else part.region.high,
            "verdict": None if part.region is None else judge((gain.low, gain.high), part.region),
        }


def run(seed: int, known: Known, folder: Path, *, replicates: int = 60) -> pd.DataFrame:
    """Make one twin and judge it.

    Parameters
    ----------
    seed
        Draws lineages, models, questions and answers.
    known
        What is true of the plan.
    folder
        Where the results lie for a moment; best in memory.
    replicates
        Refits on resampled lineages: those of the default study.

    Returns
    -------
    DataFrame
        A row per statement, with the columns COLUMNS.
    """
    rng = np.random.default_rng([seed, PLANS.index(known.name)])
    twin = population.twin(rng, _placed(population.draw_models(rng, MODELS)), known.plan, PER_UNIT, MISSING)
    data = _data(twin)
    _write(data, folder, replicates)
    rows = list(_judged(known, twin, Results(folder, _study())))
    return pd.DataFrame(rows).assign(twin=seed, plan=known.name).reindex(columns=list(COLUMNS))


@cache
def _questions(number: int) -> pd.DataFrame:
    """Return one of a few sets of questions, on which some models drawn at random differ."""
    rng = np.random.default_rng([number, len(PLANS)])
    models = population.draw_models(rng, MODELS)
    return population.twin(rng, models, population.as_plan(), PER_UNIT, MISSING).items


def foretell(seed: int) -> pd.DataFrame:
    """Make one twin that answers one of a few sets of questions, and measure how much better some methods foretell its answers.

    Gains are about other models on the same questions, and their truth is an expectation over twins: hence the few sets.

    Parameters
    ----------
    seed
        Draws lineages, models and answers; says which questions.

    Returns
    -------
    As :func:`run`.
    """
    rng = np.random.default_rng([seed, len(PLANS) + 1])
    models, number = population.draw_models(rng, MODELS), seed % QUESTION_SETS
    items = _questions(number)
    probability = population.probabilities(models, items)
    twin = Twin(models, items, probability, population.answers(rng, probability, MISSING))
    found = pd.DataFrame(_gains(_data(twin)))
    return found.assign(twin=seed, plan=FORETOLD, questions=number).reindex(columns=list(COLUMNS))
