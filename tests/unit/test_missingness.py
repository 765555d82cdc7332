"""What is missing against ability: planted relations, and the numbers by another road."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmirt import missingness
from benchmirt.outcomes import REASONS

MODELS, ITEMS = 60, 120
FAILED = REASONS.index("truncated") + 1
NOT_RUN = REASONS.index("not_run") + 1


def study(seed: int = 0) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return outcomes (J, N), reasons, items of two benchmarks, models and their abilities."""
    rng = np.random.default_rng(seed)
    ability, easiness = rng.normal(size=MODELS), rng.normal(size=ITEMS)
    chance = 1 / (1 + np.exp(-(ability[None] + easiness[:, None])))
    values = (rng.uniform(size=chance.shape) < chance).astype(np.int8)
    items = pd.DataFrame({"benchmark": np.where(np.arange(ITEMS) < ITEMS // 2, "x", "y")})
    models = pd.DataFrame({"kept": True, "lineage": [f"l{n % 30}" for n in range(MODELS)]})
    return values, np.zeros(values.shape, dtype=np.uint8), items, models, ability


def lose(values: np.ndarray, reasons: np.ndarray, share: np.ndarray, why: int, seed: int) -> None:
    """Lose a share of each model's outcomes on the first benchmark, in place."""
    lost = np.random.default_rng(seed).uniform(size=(ITEMS // 2, MODELS)) < share[None]
    values[: ITEMS // 2][lost], reasons[: ITEMS // 2][lost] = -1, why


def row(found: pd.DataFrame, why: str) -> pd.Series:
    (place,) = np.flatnonzero((found["benchmark"] == "x") & (found["why"] == why))
    return found.iloc[place]


def test_lighteval_1240_what_weak_models_lack_is_found() -> None:
    """Missingness that goes with ability: the weaker a model, the more of its answers were cut off."""
    values, reasons, items, models, ability = study()
    lose(values, reasons, 0.5 / (1 + np.exp(3 * ability)), FAILED, 1)
    found = missingness.table(values, reasons, items, models)
    assert list(found) == list(missingness.COLUMNS)
    for why in missingness.GROUPS:
        one = row(found, why)
        assert one["related"] == "yes"
        assert -1 < one["low"] < one["r"] < one["high"] < -0.3
    assert set(found["benchmark"]) == {"x"}, "nothing is missing of the other"


def test_what_is_missing_at_random_is_not_related() -> None:
    values, reasons, items, models, _ = study()
    lose(values, reasons, np.full(MODELS, 0.2), NOT_RUN, 2)
    found = missingness.table(values, reasons, items, models)
    one = row(found, "any reason")
    assert one["related"] == "no"
    assert one["low"] < 0 < one["high"]
    assert one["missing"] == (values < 0).sum()
    assert found["why"].tolist() == ["any reason"], "what was not run did not fail"


def test_the_correlation_by_another_road() -> None:
    """The score is that on the other benchmark, each outcome less its item's mean."""
    values, reasons, items, models, _ = study(3)
    lose(values, reasons, np.linspace(0, 0.4, MODELS), FAILED, 4)
    frame = pd.DataFrame(values[ITEMS // 2 :]).astype(float)
    score = frame.sub(frame.mean(axis=1), axis=0).mean()
    share = pd.DataFrame(values[: ITEMS // 2] < 0).mean()
    one = row(missingness.table(values, reasons, items, models), "any reason")
    assert one["r"] == pytest.approx(score.corr(share), abs=1e-12)
    assert one["share"] == pytest.approx((values[: ITEMS // 2] < 0).mean())


def test_models_that_met_easy_items_only_are_not_called_able() -> None:
    """Half of the models skipped the hard half of the other benchmark; their plain means are higher, their score is not."""
    values, reasons, items, models, _ = study(5)
    items["benchmark"] = ["x"] * 40 + ["y"] * 80
    hard = 40 + np.argsort(values[40:].mean(axis=1))[:40]
    skipped = np.arange(MODELS) % 2 == 0
    values[np.ix_(hard, np.flatnonzero(skipped))] = -1
    reasons[np.ix_(hard, np.flatnonzero(skipped))] = NOT_RUN
    values[np.ix_(np.arange(20), np.flatnonzero(skipped))] = -1
    reasons[np.ix_(np.arange(20), np.flatnonzero(skipped))] = NOT_RUN
    other = pd.DataFrame(values[40:]).astype(float).where(lambda cells: cells >= 0).mean()
    assert np.corrcoef(other, skipped)[0, 1] > 0.3, "the trap"
    one = row(missingness.table(values, reasons, items, models), "any reason")
    assert one["related"] == "no"


def test_models_that_are_not_kept_do_not_count_and_few_models_say_nothing() -> None:
    values, reasons, items, models, ability = study()
    lose(values, reasons, 0.5 / (1 + np.exp(3 * ability)), FAILED, 1)
    whole = missingness.table(values, reasons, items, models)
    models["kept"] = np.arange(MODELS) < 50
    part = missingness.table(values, reasons, items, models)
    alone = missingness.table(values[:, :50], reasons[:, :50], items, models[:50])
    pd.testing.assert_frame_equal(part, alone)
    assert part["r"].tolist() != whole["r"].tolist()
    models["kept"] = np.arange(MODELS) < 9
    assert set(missingness.table(values, reasons, items, models)["related"]) == {"cannot test"}


def test_without_gaps_the_table_is_empty() -> None:
    values, reasons, items, models, _ = study()
    assert missingness.table(values, reasons, items, models).empty
