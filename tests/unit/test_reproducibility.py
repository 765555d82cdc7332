"""Reproducibility over seeds, the corrected way and the study's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from test_consensus import record, truth

from benchmirt.dimensions import reproducibility
from benchmirt.identification import Solution


def test_seeds_that_agree_are_seen_to_agree_whatever_their_frame() -> None:
    solution = truth()
    found = reproducibility.table({"corrected": [record(solution, seed, noise=0.02) for seed in range(5)]})
    assert tuple(found.columns) == reproducibility.COLUMNS
    assert len(found) == 10
    assert (found["congruence"] > 0.995).all()
    assert (found["ability_r"] > 0.995).all()
    assert found["loss"].tolist()[:2] == [10.0, 10.0]


def test_an_oblique_reference_can_not_be_met_and_wrong_rotation_shows() -> None:
    """Identical seeds agree perfectly; the study's way finds less, in loadings and far less in abilities."""
    solution = truth(seed=3)
    found = reproducibility.table({"published": [record(solution, seed, noise=0.0) for seed in range(6)]})
    np.testing.assert_allclose(found["congruence"], 1.0, atol=1e-9)
    first, others = found[found["seed"] == 0], found[found["seed"] > 0]
    assert first["published_congruence"].isna().all()
    assert (others["published_congruence"] < 0.9999).all()
    assert others["published_ability_r"].abs().min() < 0.9


def test_a_spare_axis_of_noise_does_not_agree() -> None:
    rng = np.random.default_rng(0)
    solution = truth(1)
    records = []
    for seed in range(5):
        noisy = Solution(
            np.column_stack([solution.theta[:, 0], rng.standard_normal(len(solution.theta))]),
            np.column_stack([solution.a[:, 0], 0.2 * rng.standard_normal(len(solution.a))]),
            solution.d,
        )
        records.append(record(noisy, seed, noise=0.0))
    found = reproducibility.table({"f": records}).groupby("dimension")[["congruence", "ability_r"]].mean()
    assert found.loc[1].min() > 0.95
    assert found.loc[2].max() < 0.6


def test_one_seed_and_seeds_that_failed() -> None:
    solution = truth()
    alone = reproducibility.table({"f": [record(solution, 0)]})
    assert alone["congruence"].isna().all()
    mixed = reproducibility.table(
        {"f": [record(solution, 0), record(truth(seed=8), 1, converged=False), record(solution, 2)]}
    )
    assert (mixed[mixed["seed"] != 1]["congruence"] > 0.97).all()
    assert mixed[mixed["seed"] == 1]["congruence"].notna().all()
    assert not mixed[mixed["seed"] == 1]["converged"].any()


def test_the_table_is_written(tmp_path: Path) -> None:
    found = reproducibility.table({"f": [record(truth(), seed) for seed in range(2)]})
    reproducibility.write(found, tmp_path / "r.csv")
    back = pd.read_csv(tmp_path / "r.csv")
    assert list(back.columns) == list(reproducibility.COLUMNS)
    assert back["published_congruence"].isna().sum() == 2
