"""Pairs of models of which one is known to be better tell whether a benchmark is the right way round."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmirt import config, directions, matrix, sources
from benchmirt.errors import InputError

SAFE, UNSAFE = "org/safe", "org/unsafe"


def rows(
    home: Path, contrasts: list[dict[str, Any]], size: int = 200, turned: bool = False, **models: Any
) -> list[dict[str, Any]]:
    """Build the matrix of a simulated safety benchmark and one of other questions; return the comparison of pairs."""
    rng = np.random.default_rng(7)
    rates = {SAFE: (0.9, 0.5), UNSAFE: (0.3, 0.5), "org/other": (0.5, 0.5)}
    cells = {
        name: np.concatenate([rng.random(size) < one for one in rate]).astype(int)
        for name, rate in rates.items()
    }
    if turned:
        cells = {name: np.where(np.arange(2 * size) < size, 1 - own, own) for name, own in cells.items()}
    names = [f"jail__{k}" for k in range(size)] + [f"sums__{k}" for k in range(size)]
    pd.DataFrame({"question_id": names, **cells}).to_csv(home / "t.csv", index=False)
    facts = {"benchmark": [name[:4] for name in names], "category": ["safety"] * size + ["reasoning"] * size}
    pd.DataFrame({"question_id": names, **facts}).to_csv(home / "i.csv", index=False)
    source = {"name": "simulated", "kind": "table", "responses": "t.csv", "items": "i.csv"}
    raw = {"study": "s", "sources": [source], "claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}
    study = config.load(
        {**raw, "filter": {"min_observed": 1}, "models": {"contrasts": contrasts, **models}}, home
    )
    shards = sources.collect_all(study.sources[0], study, home / "o")
    matrix.build(shards[:1], study, "honest", home / "m")
    return directions.table(
        pd.read_csv(home / "m" / "coverage.csv"), pd.read_parquet(home / "m" / "items.parquet"), study
    )


PAIR: dict[str, Any] = {"better": SAFE, "worse": UNSAFE, "of": ["safety"]}


@pytest.mark.parametrize("turned", [False, True])
def test_open_instruct_500_a_benchmark_that_is_turned_round_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, turned: bool
) -> None:
    """Attack success or its opposite: a model that is known to be unsafe tells which."""
    with caplog.at_level(logging.WARNING):
        (found,) = rows(tmp_path, [PAIR], turned=turned)
    assert found["benchmark"] == "jail"
    assert found["direction"] == (directions.TURNED if turned else directions.AS_DECLARED)
    assert found["difference"] == pytest.approx(-0.6 if turned else 0.6, abs=0.1)
    assert found["low"] < found["difference"] < found["high"]
    assert ("is its direction right?" in caplog.text) == turned


def test_models_that_do_not_differ_tell_nothing(tmp_path: Path) -> None:
    (found,) = rows(tmp_path, [{**PAIR, "of": ["sums"]}])
    assert found["direction"] == directions.CANNOT_TELL
    (tmp_path / "few").mkdir()
    (few,) = rows(tmp_path / "few", [PAIR], size=3)
    assert few["direction"] == directions.CANNOT_TELL


def test_the_interval_covers_as_it_says() -> None:
    """Of 4,000 simulated pairs of rates .7 and .6, about 95 % of the intervals hold the difference."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(4000):
        means = rng.binomial(150, [0.7, 0.6]) / 150
        own = pd.DataFrame({"observed": 150, "mean": means}, index=["a", "b"])
        one = directions._compared(own, {"better": "a", "worse": "b"})
        held += one["low"] <= 0.1 <= one["high"]
    assert 0.94 < held / 4000 < 0.97


def test_pairs_that_do_not_take_part_are_left_out(tmp_path: Path) -> None:
    assert rows(tmp_path, [PAIR], exclude=[UNSAFE]) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"worse": "org/unsave"},
            r'models.contrasts\[0\].worse: there is no such model: found "org/unsave". Did you mean "org/unsafe"',
        ),
        ({"of": ["saftey"]}, r'models.contrasts\[0\].of: there is no such benchmark or category.*"safety"'),
    ],
)
def test_names_that_are_not_there_are_told(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        rows(tmp_path, [{**PAIR, **change}])
