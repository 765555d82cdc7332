"""A new benchmark joins a frozen calibration: planted parameters come back, and nothing that was known moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ability_fixture import answers, calibration_of, newcomers

from benchmirt.ability import calibration, extension, scores
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.linking import Population
from benchmirt.errors import InputError
from benchmirt.outcomes import ITEM_FACTS

KNOWN, NEW, OWN, OTHERS = 150, 80, 40, 60


def world(
    seed: int, floor: float = 0.0
) -> tuple[Calibration, Calibration, list[str], pd.DataFrame, np.ndarray, np.ndarray]:
    """Give a calibration of the first 150 of 230 items, and outcomes: of its own models on the new items, of others on all."""
    whole = calibration_of(KNOWN + NEW, seed=seed, error=0.0, floor=floor, benchmarks=3)
    whole = replace(whole, item_cov=np.tile(1e-4 * np.eye(3), (KNOWN + NEW, 1, 1)))
    random = np.random.default_rng(seed + 100)
    theta = random.normal(size=(OWN + OTHERS, 2))
    outcomes = answers(whole, theta, seed=seed + 200).T.astype(np.int8)
    outcomes[:KNOWN, :OWN] = -1  # what the study's own models answered in it is not known any more
    shown = theta[:OWN] @ whole.T
    table = whole.model_table.assign(ability_1=shown[:, 0], ability_2=shown[:, 1], observed=KNOWN)
    models = [*table["model"], *(f"other-{model}" for model in range(OTHERS))]
    facts = whole.item_table.copy()
    facts.loc[KNOWN:, "benchmark"] = "mine"
    facts.loc[KNOWN:, "options"] = np.where(whole.floor[KNOWN:] > 0, 4, 0)
    facts["options"] = facts["options"].where(facts["options"] > 0)
    facts = facts.assign(**{name: None for name in ITEM_FACTS if name not in facts})
    known = replace(
        whole,
        items=whole.items[:KNOWN],
        **{name: getattr(whole, name)[:KNOWN] for name in ("a", "d", "item_cov", "floor", "ceiling")},
        item_table=whole.item_table[:KNOWN],
        benchmark_table=whole.benchmark_table.assign(items=KNOWN // 3, calibrated=KNOWN // 3),
        model_table=table,
        about={**whole.about, "asymptotes": floor > 0},
    )
    return whole, known, models, facts, outcomes, theta


def test_an_item_on_known_abilities_is_a_penalised_logistic_regression() -> None:
    """At the mode the gradient of the log posterior, written out, is zero."""
    random = np.random.default_rng(1)
    theta, y = random.normal(size=(300, 2)), random.integers(-1, 2, size=(4, 300)).astype(np.int8)
    prior = Population(np.array([0.8, 0.5]), 0.3, 1.1)
    floor, ceiling = np.array([0.0, 0.25, 0.0, 0.2]), np.array([1.0, 1.0, 0.75, 0.9])
    found, cov = extension.calibrated_on(theta, y, floor, ceiling, prior)
    spread, center = np.array([0.8, 0.5, 1.1]), np.array([0.0, 0.0, 0.3])

    def log_posterior(item: int, beta: np.ndarray) -> float:
        chance = floor[item] + (ceiling[item] - floor[item]) / (1 + np.exp(-(theta @ beta[:2] + beta[2])))
        told = np.where(y[item] == 1, np.log(chance), np.where(y[item] == 0, np.log1p(-chance), 0.0))
        return float(told.sum() - 0.5 * (((beta - center) / spread) ** 2).sum())

    for item in range(4):
        for place in range(3):
            step = np.zeros(3)
            step[place] = 1e-4
            slope = (log_posterior(item, found[item] + step) - log_posterior(item, found[item] - step)) / 2e-4
            assert slope == pytest.approx(0, abs=1e-3)
    curvature = (
        log_posterior(0, found[0] + [0, 0, 0.01])
        + log_posterior(0, found[0] - [0, 0, 0.01])
        - 2 * log_posterior(0, found[0])
    ) / 1e-4
    assert np.linalg.inv(cov[0])[2, 2] == pytest.approx(-curvature, rel=1e-3)


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_planted_items_come_back_within_their_errors(floor: float) -> None:
    hits, errors = [], []
    for seed in range(3):
        whole, known, models, facts, outcomes, _ = world(seed, floor)
        found = extension.extend(known, models, facts, outcomes, simulated=True)
        assert found.items[:KNOWN] == known.items
        for name in ("a", "d", "item_cov", "floor", "ceiling"):
            assert (getattr(found, name)[:KNOWN] == getattr(known, name)).all(), "what is known stays"
        place = [whole.items.index(name) for name in found.items[KNOWN:]]
        assert len(place) > 0.9 * NEW
        assert found.floor[KNOWN:] == pytest.approx(whole.floor[place])
        truth = np.column_stack([whole.a, whole.d])[place]
        values = np.column_stack([found.a, found.d])[KNOWN:]
        spread = np.sqrt(np.diagonal(found.item_cov[KNOWN:], axis1=1, axis2=2))
        hits.append(np.abs(values - truth) < 1.96 * spread)
        errors.append(np.corrcoef(values[:, -1], truth[:, -1])[0, 1])
    assert 0.91 < np.concatenate(hits).mean() < 0.98
    assert min(errors) > 0.9


def test_models_are_placed_by_the_new_items_alone(tmp_path: Path) -> None:
    whole, known, models, facts, outcomes, _ = world(7)
    calibration.write(extension.extend(known, models, facts, outcomes, simulated=True), tmp_path / "extended")
    extended = calibration.read(tmp_path / "extended")
    assert (
        extended.benchmark_table.set_index("benchmark").loc["mine", "calibrated"]
        == len(extended.items) - KNOWN
    )
    assert "Extended by mine" in (tmp_path / "extended" / "README.md").read_text()
    theta = np.random.default_rng(8).normal(size=(200, 2))
    every = answers(whole, theta, seed=9)
    every[:, :KNOWN] = -1
    place = [whole.items.index(name) for name in extended.item_table["question_id"]]
    found = scores.score(extended, newcomers(extended, every[:, place])).scores
    truth = theta @ known.T
    for k in (1, 2):
        low, high = found[f"ability_{k}_low"], found[f"ability_{k}_high"]
        assert 0.9 < ((low < truth[:, k - 1]) & (truth[:, k - 1] < high)).mean() < 0.99
        assert np.corrcoef(found[f"ability_{k}"], truth[:, k - 1])[0, 1] > 0.85


def test_what_cannot_be_linked_is_refused() -> None:
    _, known, models, facts, outcomes, _ = world(11)
    with pytest.raises(InputError, match="knows all of these questions already"):
        extension.extend(known, models, facts[:KNOWN], outcomes[:KNOWN], simulated=True)
    strangers = [f"stranger-{model}" for model in range(len(models))]
    alone = outcomes.copy()
    alone[:KNOWN] = -1
    with pytest.raises(InputError, match=r"too few models link.*found 0.*at least 10"):
        extension.extend(known, strangers, facts, alone, simulated=True)
    idle = outcomes.copy()
    idle[KNOWN:, 9:] = -1  # the others are known, and did not run on the new questions
    with pytest.raises(InputError, match=r"too few models link.*found 9 that ran on them.*at least 10"):
        extension.extend(known, models, facts, idle, simulated=True)
    hashed = replace(known, item_table=known.item_table.assign(content_hash="a"))
    with pytest.raises(InputError, match=r"150 of them with another text.*name of their own"):
        extension.extend(
            hashed, models, facts[:KNOWN].assign(content_hash="b"), outcomes[:KNOWN], simulated=True
        )
    dull = outcomes.copy()
    dull[KNOWN:] = 1
    with pytest.raises(InputError, match=r"tells the common models apart.*80 questions"):
        extension.extend(known, models, facts, dull, simulated=True)


def test_names_that_clash_are_told(caplog: pytest.LogCaptureFixture) -> None:
    _, known, models, facts, outcomes, _ = world(11)
    hashed = replace(known, item_table=known.item_table.assign(content_hash="a"))
    clash = facts.assign(content_hash="a")
    clash.loc[:3, "content_hash"] = "b"
    clash.loc[KNOWN:, "benchmark"] = "benchmark-1"
    extended = extension.extend(hashed, models, clash, outcomes, simulated=True)
    assert len(extended.item_table) == len(facts)
    assert "4 questions have the name of another question of the calibration and are left out" in caplog.text
    assert "new questions join benchmarks that the calibration knows already: benchmark-1" in caplog.text


def test_the_error_of_few_common_models_is_in_the_items_errors() -> None:
    _, known, models, facts, outcomes, _ = world(12)
    many = extension.extend(known, models, facts, outcomes, simulated=True)
    few = extension.extend(known, models[:15], facts, outcomes[:, :15], simulated=True)
    shared = sorted(set(few.items) & set(many.items) - set(known.items))
    spread = [
        np.mean([np.trace(one.item_cov[one.items.index(name)]) for name in shared]) for one in (few, many)
    ]
    assert spread[0] > 2 * spread[1]
