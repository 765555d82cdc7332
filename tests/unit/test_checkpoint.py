"""Checkpoints: a killed job resumes, and stale or broken files are never trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmirt.dimensions.checkpoint import Checkpoint, fingerprint


def test_results_come_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "family.jsonl"
    values = np.random.default_rng(0).standard_normal(5).tolist()
    with Checkpoint(path, "a") as kept:
        assert kept.get("0") is None
        kept.put("0", values)
        kept.put("1", {"r": None, "s": "text"})
    with Checkpoint(path, "a") as kept:
        assert kept.get("0") == values
        assert kept.get("1") == {"r": None, "s": "text"}
        kept.put("2", 1.0)
    assert len(path.read_text().splitlines()) == 4


def test_another_fingerprint_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "family.jsonl"
    with Checkpoint(path, "a") as kept:
        kept.put("0", 1)
    with Checkpoint(path, "b") as kept:
        assert kept.get("0") is None
    with Checkpoint(path, "a") as kept:
        assert kept.get("0") is None


@pytest.mark.parametrize("torn", ['{"key": "1", "val', '{"key": "1", "value": 2}', "\x00\x00"])
def test_a_line_that_a_killed_job_left_torn_is_dropped(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "family.jsonl"
    with Checkpoint(path, "a") as kept:
        kept.put("0", 1)
    with path.open("a") as stream:
        stream.write(torn)
    with Checkpoint(path, "a") as kept:
        assert kept.get("0") == 1
        assert kept.get("1") is None
        kept.put("1", 3)
    with Checkpoint(path, "a") as kept:
        assert (kept.get("0"), kept.get("1")) == (1, 3)


def test_a_file_of_something_else_is_started_over(tmp_path: Path) -> None:
    path = tmp_path / "family.jsonl"
    path.write_text("")
    with Checkpoint(path, "a") as kept:
        kept.put("0", 1)
    path.write_text("not json\n")
    with Checkpoint(path, "a") as kept:
        assert kept.get("0") is None


def test_without_a_path_results_stay_in_memory() -> None:
    with Checkpoint(None, "a") as kept:
        kept.put("0", 1)
        assert kept.get("0") == 1


def test_the_fingerprint_sees_data_settings_and_code() -> None:
    a = np.arange(4.0)
    first = fingerprint("dimensions.checkpoint", data="x", a=a, seed=1)
    assert first == fingerprint("dimensions.checkpoint", seed=1, a=a.copy(), data="x")
    assert first != fingerprint("dimensions.checkpoint", data="x", a=a, seed=2)
    assert first != fingerprint("dimensions.checkpoint", data="x", a=a + 1, seed=1)
    assert first != fingerprint("resampling", data="x", a=a, seed=1)
