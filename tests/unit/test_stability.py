"""Stability over halves: planted dimensions pass, spare ones and noise never do, and small data say why they can't tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmirt import identification as ident
from benchmirt import matrix, simulate
from benchmirt.dimensions import consensus, stability
from benchmirt.dimensions.consensus import Consensus
from benchmirt.dimensions.stability import Stability
from benchmirt.files import read_json
from benchmirt.identification import Solution
from benchmirt.inference import em
from benchmirt.matrix import ResponseData


def planted(
    dims: int, models: int = 48, items: int = 160, seed: int = 0, lineages: int = 16, missing: float = 0.02
) -> ResponseData:
    made = simulate.matrix(models, items, max(dims, 1), seed, lineages=lineages, missing=missing)
    responses = made.responses
    if dims == 0:
        rng = np.random.default_rng(seed)
        responses = (rng.random(responses.shape) < rng.uniform(0.1, 0.9, items)).astype(np.int8)
    return matrix.from_arrays(responses, lineage=made.lineage, benchmark=made.benchmark)


def fitted(data: ResponseData, dims: int = 2) -> Consensus:
    return consensus.build([em.fit(data, dims)], fit="corrected")


def summary(data: ResponseData, dims: int = 2, **options: object) -> list[dict[str, object]]:
    settings = {"splits": 8, "replicates": 19, "null_splits": 4} | options
    return stability.run(data, fitted(data, dims), **settings).summary()  # type: ignore[arg-type]


@pytest.mark.slow
def test_two_planted_dimensions_are_stable() -> None:
    for entry in summary(planted(2)):
        assert entry["passes"] is True
        assert entry["dims"] == 2
        assert entry["congruence_mean"] > 0.6
        assert entry["ability_r_mean"] > 0.8
        assert entry["p_congruence"] == entry["p_ability_r"] == pytest.approx(0.05)
        assert entry["congruence_low"] <= entry["congruence_mean"] <= entry["congruence_high"]
        assert entry["scrambled_congruence"] < entry["congruence_mean"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_one_dimension_has_no_stable_second(seed: int) -> None:
    first, second = summary(planted(1, seed=seed))
    assert first["passes"] is True
    assert first["dims"] == 1  # a second dimension that does not come back is left out
    assert second["passes"] is False
    assert second["dims"] == 2
    assert max(second["p_congruence"], second["p_ability_r"]) > 0.05


@pytest.mark.slow
def test_items_that_all_discriminate_alike_have_a_stable_dimension() -> None:
    """Shuffling the items of a Rasch model changes nothing, and yet its dimension is there."""
    rng = np.random.default_rng(5)
    theta, d = rng.standard_normal((48, 1)), rng.normal(0.0, 1.0, 160)
    responses = (rng.random((48, 160)) < 1 / (1 + np.exp(-(theta + d)))).astype(np.int8)
    data = matrix.from_arrays(responses, lineage=np.arange(48) % 16)
    first, second = summary(data)
    assert first["passes"] is True
    assert first["ability_r_mean"] > 0.8
    assert second["passes"] is False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_stable_dimension(seed: int) -> None:
    for entry in summary(planted(0, seed=seed)):
        assert entry["passes"] is False


@pytest.mark.slow
def test_a_killed_job_resumes_with_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted(2)
    solution = fitted(data)
    path = tmp_path / "stability.checkpoint.jsonl"
    options = {"splits": 4, "replicates": 3, "null_splits": 2}
    whole = stability.run(data, solution, **options)
    real, calls = stability._null_replicate, []

    def dies(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stability, "_null_replicate", dies)
    with pytest.raises(KeyboardInterrupt):
        stability.run(data, solution, **options, checkpoint=path)
    monkeypatch.setattr(stability, "_null_replicate", lambda *a: calls.append(1) or real(*a))
    calls.clear()
    resumed = stability.run(data, solution, **options, checkpoint=path)
    assert len(calls) == 6 - 3  # of 2 x 3 null replicates 3 were kept
    pd.testing.assert_frame_equal(resumed.splits, whole.splits)
    pd.testing.assert_frame_equal(resumed.null, whole.null)
    outputs = [tmp_path / name for name in ("s.json", "s.csv", "n.csv")]
    stability.write(resumed, *outputs)
    assert not path.exists()
    written = read_json(outputs[0])
    assert written["replicates"] == 3
    assert written["p_needed"] == pytest.approx(0.25)
    assert written["why_not"] is None
    assert len(written["dimensions"]) == 2
    assert list(pd.read_csv(outputs[1]).columns) == [
        "split",
        "dimension",
        "dims",
        "congruence",
        "ability_r",
    ]
    assert list(pd.read_csv(outputs[2]).columns) == [
        "replicate",
        "split",
        "dimension",
        "congruence",
        "ability_r",
    ]


@pytest.mark.slow
def test_degenerate_rows_and_columns_do_no_harm() -> None:
    """Items that nobody or everybody in a half solves, and whole blocks that are missing, do no harm."""
    data = planted(2, missing=0.0)
    responses = data.responses.copy()
    responses[: data.responses.shape[0] // 2, :30] = -1
    responses[0], responses[1] = 1, 0
    responses[2:40, 40] = 1
    hard = replace(data, responses=responses)
    for entry in summary(hard, replicates=2):
        assert np.isfinite(entry["congruence_mean"])
        assert entry["ability_r_mean"] > 0.5


@pytest.mark.parametrize(
    ("data", "dims", "words"),
    [
        (planted(2, lineages=5), 2, "5 independent lineages"),
        (planted(1, models=10, lineages=10), 2, "10 models are too few"),
        (planted(1, items=16), 1, "16 items are too few"),
    ],
)
def test_small_data_say_why_not(tmp_path: Path, data: ResponseData, dims: int, words: str) -> None:
    models, items = data.responses.shape
    solution = Consensus(
        fit="f",
        engine="em",
        theta=np.zeros((models, dims)),
        theta_cov=np.zeros((models, dims, dims)),
        a=np.ones((items, dims)),
        d=np.zeros(items),
        item_cov=np.zeros((items, dims + 1, dims + 1)),
        T=np.eye(dims),
        models=data.models,
        items=data.items,
        seeds=(0,),
        seeds_failed={},
        losses={},
        rotation={},
        spread={},
        data_hash=data.hash,
    )
    result = stability.run(data, solution)
    assert words in (result.why_not or "")
    assert result.summary() == []
    outputs = [tmp_path / name for name in ("s.json", "s.csv", "n.csv")]
    stability.write(result, *outputs)
    assert read_json(outputs[0])["why_not"] == result.why_not
    assert pd.read_csv(outputs[1]).empty


def test_one_huge_lineage_can_not_be_halved() -> None:
    lineage = np.concatenate([np.zeros(40, int), np.arange(1, 8)])
    data = matrix.from_arrays(np.ones((47, 30), dtype=np.int8), lineage=lineage)
    assert "one lineage holds so many" in (stability.untestable(data, 4) or "")


def test_a_solution_with_one_dimension_does_not_turn_into_two() -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((60, 2)) * [2.0, 1.0] + [1.0, 0.0]
    lone = Solution(
        np.column_stack([rng.standard_normal(9), np.zeros(9)]),
        np.column_stack([reference[:, 0] + 0.3 * reference[:, 1], 1e-9 * rng.standard_normal(60)]),
        np.zeros(60),
    )
    theta, a = stability.onto(lone, reference)
    assert not a[:, 1].any()
    assert not theta[:, 1].any()
    assert ident.congruence(a, reference)[0] > 0.9
    turned = reference @ np.array([[0.6, -0.8], [0.8, 0.6]])
    both, _ = ident.canonical(Solution(rng.standard_normal((9, 2)), turned, np.zeros(60)))
    np.testing.assert_allclose(stability.onto(both, reference)[1], reference, atol=1e-9)
    nothing = Solution(np.zeros((9, 2)), np.zeros((60, 2)), np.zeros(60))
    assert not stability.onto(nothing, reference)[1].any()


def made(
    congruence: list[float], null: list[float], *, scrambled: float = 0.0, replicates: int = 100
) -> Stability:
    return Stability(
        dims=1,
        splits=pd.DataFrame(
            {
                "split": range(len(congruence)),
                "dimension": 1,
                "dims": 1,
                "congruence": congruence,
                "ability_r": congruence,
            }
        ),
        scrambled=np.full((99, 1), scrambled),
        products=np.full((20, 1), float(np.mean(congruence)) / 20),
        null=pd.DataFrame(
            {"replicate": range(len(null)), "split": 0, "dimension": 1, "congruence": null, "ability_r": null}
        ),
        replicates=replicates,
        why_not=None,
        seed=0,
        data_hash="h",
    )


def test_p_counts_null_data_that_agree_as_well() -> None:
    entry = made([0.8, 0.6], [0.1] * 99 + [0.75]).summary()[0]
    assert entry["p_congruence"] == pytest.approx(2 / 101)
    assert entry["passes"] is False
    entry = made([0.8, 0.6], [0.1] * 100).summary()[0]
    assert entry["p_congruence"] == pytest.approx(1 / 101)
    assert entry["passes"] is True
    assert entry["null_congruence"]["q99"] == pytest.approx(0.1)


def test_a_null_that_stopped_early_gives_ten_over_its_number() -> None:
    entry = made([0.5], [0.9] * 10 + [0.1] * 15).summary()[0]
    assert entry["p_congruence"] == pytest.approx(10 / 25)
    assert entry["replicates"] == 25
    assert entry["passes"] is False


def test_agreement_no_better_than_of_scrambled_items_does_not_pass() -> None:
    """Where the null shrinks the dimension to nothing, any agreement beats it; scrambled items must be beaten too."""
    assert made([0.3], [0.0] * 100, scrambled=0.4).summary()[0]["passes"] is False
    assert made([0.3], [0.0] * 100, scrambled=0.2).summary()[0]["passes"] is True
    one_lineage = replace(made([0.3], [0.0] * 100), products=np.array([[0.3]] + [[0.0]] * 19))
    assert one_lineage.summary()[0]["p_lineages"] > 0.3
    assert one_lineage.summary()[0]["passes"] is False


def test_a_dimension_that_comes_and_goes_does_not_pass() -> None:
    """One split of forty may lack it; with more it is an accident of the models that are drawn."""
    assert made([0.8] * 39 + [0.0], [0.0] * 100).summary()[0]["passes"] is True
    entry = made([0.8] * 38 + [0.0] * 2, [0.0] * 100).summary()[0]
    assert entry["absent"] == pytest.approx(0.05)
    assert entry["passes"] is False


def test_few_replicates_pass_at_the_level_that_they_can_reach() -> None:
    few = made([0.5], [0.0] * 19, replicates=19)
    assert few.p_needed == pytest.approx(0.05)
    assert few.summary()[0]["passes"] is True
    assert made([0.5], [0.0] * 199, replicates=199).p_needed == 0.01


def test_a_lone_general_dimension_is_the_large_one() -> None:
    """It agrees in shape with the small second dimension more, but lies nearer to the first."""
    rng = np.random.default_rng(0)
    large, small = 1.5 + rng.normal(0, 0.8, 500), 0.4 * rng.normal(0, 1, 500)
    reference = np.column_stack([large, small])
    lone = small / small.std() + 0.4 * large / large.std()
    found = Solution(np.zeros((5, 2)), np.column_stack([lone, np.zeros(500)]), np.zeros(500))
    assert abs(ident.congruence(lone[:, None], reference[:, [1]])[0]) > 0.7
    _, loadings = stability.onto(found, reference)
    assert (loadings[:, 1] == 0).all()
    assert ident.congruence(loadings[:, [0]], reference[:, [0]])[0] > 0.4


def test_the_mean_over_splits_is_compared_with_means_over_splits() -> None:
    """Splits differ by far more than shuffles do: what the best single split reaches by chance says nothing of a mean."""
    rng = np.random.default_rng(0)
    wide = np.clip(rng.normal(0.5, 0.1, 50), 0, 1)
    result = made(wide.tolist(), [0.1] * 100)
    just_below = replace(result, scrambled=np.full((99, 1), wide.mean() - 0.01))
    assert just_below.summary()[0]["p_scrambled"] == pytest.approx(0.01)
    assert just_below.summary()[0]["passes"] is True
