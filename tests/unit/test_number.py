"""The number of dimensions: the planted one is chosen by both methods, and noise has none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_stability import planted

from benchmirt import matrix
from benchmirt.dimensions import number
from benchmirt.dimensions.number import Number
from benchmirt.files import read_json

OPTIONS = {"max_dims": 2, "folds": 4, "replicates": 19}


@pytest.mark.slow
@pytest.mark.parametrize("dims", [0, 1, 2])
def test_the_planted_number_is_chosen(dims: int) -> None:
    found = number.run(planted(dims, models=60, items=240, lineages=20), **OPTIONS).summary()
    assert found["heldout"]["chosen"] == dims
    assert found["eigen"]["chosen"] == dims
    assert found["agreed"] == dims
    assert not found["eigen"]["at_least"]
    assert [row["dims"] for row in found["heldout"]["log_loss"]] == [0, 1, 2]


@pytest.mark.slow
def test_more_dimensions_than_tried_are_said_to_be_more(tmp_path: Path) -> None:
    result = number.run(planted(3, models=60, items=240, lineages=20), max_dims=1, folds=4, replicates=19)
    found = result.summary()
    assert found["eigen"]["at_least"] is True
    assert found["eigen"]["chosen"] == 1
    assert found["agreed"] is None
    outputs = [tmp_path / name for name in ("n.json", "f.csv", "e.csv")]
    number.write(result, *outputs)
    assert read_json(outputs[0])["dims"] == [0, 1]
    folds = pd.read_csv(outputs[1])
    assert list(folds.columns) == ["fold", "dims", "log_loss", "models"]
    assert len(folds) == 8
    eigenvalues = pd.read_csv(outputs[2])
    assert list(eigenvalues.columns) == ["dims", "rank", "eigenvalue", "null_mean", "null_q95", "null_q99"]
    assert (eigenvalues.groupby("dims")["eigenvalue"].apply(lambda one: one.is_monotonic_decreasing)).all()


@pytest.mark.slow
def test_a_killed_job_resumes_with_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted(1)
    path = tmp_path / "number.checkpoint.jsonl"
    options = {"max_dims": 1, "folds": 3, "replicates": 3}
    whole = number.run(data, **options)
    real = number._probabilities
    calls: list[int] = []

    def dies(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(number, "_probabilities", dies)
    with pytest.raises(KeyboardInterrupt):
        number.run(data, **options, checkpoint=path)
    monkeypatch.setattr(number, "_probabilities", real)
    monkeypatch.setattr(number, "_batches", None)  # held-out scores must all come from the checkpoint
    resumed = number.run(data, **options, checkpoint=path)
    pd.testing.assert_frame_equal(resumed.eigenvalues, whole.eigenvalues)
    pd.testing.assert_frame_equal(resumed.heldout, whole.heldout)


@pytest.mark.slow
def test_a_level_ends_early_where_its_null_is_far_away_or_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted(1, models=60, items=240, lineages=20)
    options = {"max_dims": 1, "folds": 3, "replicates": 40}
    cut = number.run(data, **options)
    assert cut.levels[0]["replicates"] == 20
    assert 10 <= cut.levels[1]["replicates"] < 40
    assert cut.levels[0]["p"] < 1e-6
    monkeypatch.setattr(number, "_FAR", 0.0)
    monkeypatch.setattr(number, "_ENOUGH", 1000)
    whole = number.run(data, **options)
    assert [level["replicates"] for level in whole.levels] == [40, 40]
    assert whole.levels[0]["p"] == pytest.approx(1 / 41)
    assert whole.by_eigenvalues()["chosen"] == cut.by_eigenvalues()["chosen"] == 1


@pytest.mark.slow
def test_few_lineages_can_not_be_held_out() -> None:
    result = number.run(planted(1, lineages=4), max_dims=1, folds=3, replicates=2)
    found = result.summary()
    assert "4 independent lineages" in found["why_not"]
    assert found["heldout"]["chosen"] is None
    assert found["agreed"] is None
    assert found["eigen"]["levels"]
    assert result.folds_table().empty


@pytest.mark.slow
def test_few_models_limit_the_number_of_dimensions() -> None:
    tiny = matrix.from_arrays((np.random.default_rng(0).random((6, 30)) < 0.5).astype(np.int8))
    result = number.run(tiny, max_dims=4, folds=3, replicates=2)
    assert result.dims == (0,)
    assert result.summary()["eigen"]["chosen"] in (0, None)


def test_residual_eigenvalues_of_independent_residuals_are_near_one() -> None:
    rng = np.random.default_rng(0)
    p = np.broadcast_to(rng.uniform(0.2, 0.8, 20_000), (30, 20_000))
    y = (rng.random(p.shape) < p).astype(np.int8)
    found = number.residual_eigenvalues(y, p)
    np.testing.assert_allclose(found, 1.0, atol=0.1)
    y[:, :5000] = -1  # missing cells contribute nothing
    np.testing.assert_allclose(number.residual_eigenvalues(y, p), 1.0, atol=0.12)
    few = number.residual_eigenvalues(y[:3], p[:3])
    assert not few[3:].any()


def made(losses: np.ndarray, p: list[float], replicates: int = 100) -> Number:
    """Turn log losses (models, dims) and p values of the levels into a result."""
    models, count = losses.shape
    return Number(
        heldout=pd.DataFrame(
            {
                "model": np.repeat([f"m{i}" for i in range(models)], count),
                "lineage": np.repeat(np.arange(models), count),
                "fold": np.repeat(np.arange(models) % 4, count),
                "dims": np.tile(np.arange(count), models),
                "log_loss": losses.ravel(),
            }
        ),
        eigenvalues=pd.DataFrame(),
        levels=[
            {"dims": k, "eigenvalue": 2.0, "null_q95": 1.0, "null_q99": 1.1, "p": one, "replicates": 100}
            for k, one in enumerate(p)
        ],
        dims=tuple(range(count)),
        replicates=replicates,
        why_not=None,
        data_hash="h",
        seed=0,
    )


def test_the_one_standard_error_rule_prefers_fewer_dimensions_in_a_tie() -> None:
    rng = np.random.default_rng(0)
    own = 0.05 * rng.standard_normal((40, 1))
    # the third dimension is real and tiny: the paired difference sees it, the standard error of the mean does not
    found = made(0.5 + own + np.array([0.1, 0.05, 0.002, 0.0]), [0.001, 0.001, 0.3]).by_heldout()
    assert found["best"] == 3
    assert found["chosen"] == 2
    assert found["chosen_paired"] == 3
    rows = found["log_loss"]
    assert rows[1]["difference"] == pytest.approx(0.05)
    assert rows[3]["difference_se"] == 0.0
    assert rows[0]["se"] == pytest.approx(own.std(ddof=1) / np.sqrt(40), rel=1e-6)
    tie = made(0.5 + own + np.array([0.1, 0.0, 5e-5, 0.0]), [0.001, 0.3]).by_heldout()
    assert tie["chosen"] == tie["chosen_paired"] == 1


def test_the_first_level_that_is_not_rejected_is_chosen() -> None:
    losses = np.full((10, 4), 0.5)
    found = made(losses, [1 / 101, 1 / 101, 0.4]).by_eigenvalues()
    assert (found["chosen"], found["at_least"]) == (2, False)
    assert made(losses, [0.2]).by_eigenvalues()["chosen"] == 0
    every = made(losses, [1 / 101] * 4).by_eigenvalues()
    assert (every["chosen"], every["at_least"]) == (3, True)
    few = made(losses, [1 / 20, 2 / 20], replicates=19).by_eigenvalues()
    assert (few["chosen"], few["p_needed"]) == (1, pytest.approx(0.05))
