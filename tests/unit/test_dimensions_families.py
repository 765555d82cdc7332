"""Refits, names and statistics on planted data whose answers are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from benchmirt import inference, matrix, resampling, simulate
from benchmirt.dimensions import consensus, families, labels, statistics
from benchmirt.errors import InputError


def response_data(planted):
    """Make response data of a simulated study, all items kept."""
    items = planted.item_table.assign(
        observed=(planted.responses >= 0).sum(0),
        mean=np.where(planted.responses >= 0, planted.responses, 0).mean(0),
        kept=True,
    )
    return matrix.ResponseData(
        responses=planted.responses,
        models=tuple(planted.model_table["model"]),
        items=tuple(items["question_id"]),
        floor=planted.floor.astype(np.float32),
        ceiling=planted.ceiling.astype(np.float32),
        lineage=planted.lineage.astype(np.int64),
        testlet=np.full(len(items), -1, np.int64),
        item_table=items,
        model_table=planted.model_table,
    )


@pytest.fixture(scope="module")
def planted():
    return simulate.study("planted_pure", models=50, items=400, seed=1)


@pytest.fixture(scope="module")
def data(planted):
    return response_data(planted)


@pytest.fixture(scope="module")
def solution(data):
    return consensus.build([inference.fit(data, engine="em", dims=2, seed=0)], fit="corrected")


@pytest.fixture(scope="module")
def left_out(data, solution):
    return families.leave_one_out(data, solution)


@pytest.fixture(scope="module")
def resampled(data, solution):
    return families.bootstrap(data, solution, replicates=20)


@pytest.fixture(scope="module")
def named(data, solution, left_out):
    return labels.build(data, solution, left_out, replicates=200)


def test_every_benchmark_is_left_out_once(data, left_out):
    assert left_out.unit == "benchmark"
    assert left_out.units == tuple(dict.fromkeys(data.item_table["benchmark"]))
    assert left_out.converged.all()
    assert np.isfinite(left_out.theta).all()


def test_a_left_out_benchmark_has_no_say_in_the_abilities(data, solution, left_out):
    unit = left_out.units[0]
    own = (data.item_table["benchmark"] == unit).to_numpy()
    turned = dataclasses.replace(
        data, responses=np.where(own & (data.responses >= 0), 1 - data.responses, data.responses)
    )
    again = families.leave_one_out(turned, solution)
    np.testing.assert_allclose(again.without(unit), left_out.without(unit), atol=2e-3)
    assert np.abs(again.without(left_out.units[1]) - left_out.without(left_out.units[1])).max() > 0.01


def test_left_out_abilities_stay_close_to_the_full_ones(solution, left_out):
    for index in range(2):
        for unit in left_out.units:
            r = np.corrcoef(left_out.without(unit)[:, index], solution.ability_theta[:, index])[0, 1]
            assert r > 0.9


def test_reliability_is_the_squared_correlation_with_the_truth(planted, left_out):
    """Of the estimates with what is best foretold from the true abilities; half of it where an ability has as much noise."""
    basis = np.column_stack([np.ones(len(planted.theta)), planted.theta])
    for unit, expected in zip(left_out.units, left_out.reliability, strict=True):
        theta = left_out.without(unit)
        fitted = basis @ np.linalg.lstsq(basis, theta, rcond=None)[0]
        assert fitted.var(0) / theta.var(0) == pytest.approx(expected, abs=0.04)
    drawn = np.random.default_rng(0).normal(size=(1000, 2))
    even = families._reliability(drawn, np.tile(np.diag(drawn.var(0)), (1000, 1, 1)))
    assert even == pytest.approx([0.5, 0.5])


def test_refits_leave_out_whole_lineages_and_stay_in_the_frame(data, solution, resampled):
    assert resampled.converged.all()
    for weights in resampled.weights:
        for code in set(data.lineage):
            assert len(set(weights[data.lineage == code])) == 1
        kept = len(set(data.lineage[weights == 1]))
        assert kept == round(0.8 * len(set(data.lineage)))
    assert resampling.stretch(resampled.weights, data.lineage) == pytest.approx(2.0, rel=0.1)
    congruence = [
        (a * solution.a).sum(0) / np.sqrt((a**2).sum(0) * (solution.a**2).sum(0)) for a in resampled.a
    ]
    assert np.median(congruence, axis=0).min() > 0.9


def test_rows_of_the_bootstrap_do_not_depend_on_their_number(data, solution, resampled):
    few = families.bootstrap(data, solution, replicates=4)
    np.testing.assert_array_equal(few.weights, resampled.weights[:4])
    np.testing.assert_allclose(few.theta, resampled.theta[:4], atol=1e-3)


def test_families_survive_the_disk(tmp_path, left_out, resampled):
    families.write_leave_one_out(left_out, tmp_path / "leave_one_out.nc")
    families.write_bootstrap(resampled, tmp_path / "bootstrap.nc")
    loaded = families.read_leave_one_out(tmp_path / "leave_one_out.nc")
    np.testing.assert_array_equal(loaded.theta, left_out.theta)
    np.testing.assert_array_equal(loaded.reliability, left_out.reliability)
    assert loaded.units == left_out.units
    again = families.read_bootstrap(tmp_path / "bootstrap.nc")
    np.testing.assert_array_equal(again.a, resampled.a)
    families.write_bootstrap(again, tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == (tmp_path / "bootstrap.nc").read_bytes()
    (tmp_path / "bootstrap.nc").write_bytes(b"cut")
    with pytest.raises(InputError, match=r"bootstrap\.nc"):
        families.read_bootstrap(tmp_path / "bootstrap.nc")


def test_a_consensus_of_other_data_is_refused(data, solution):
    with pytest.raises(InputError, match="other models or items"):
        families.leave_one_out(matrix.select(data, items=np.arange(100)), solution)


def test_planted_abilities_get_their_names_and_signs(planted, solution, named):
    assert named.named
    assert {entry["name"] for entry in named.dimensions} == {"reasoning", "safety"}
    shown = solution.ability_theta * labels.orientation(named)
    for index, entry in enumerate(named.dimensions):
        truth = planted.theta[:, ["reasoning", "safety"].index(entry["name"])]
        assert np.corrcoef(shown[:, index], truth)[0, 1] > 0.9
        assert entry["follows"][0]["category"] == entry["name"]


def test_names_follow_the_declared_categories_and_not_their_order(data, solution, left_out, named):
    swapped = data.item_table["category"].map({"reasoning": "safety", "safety": "reasoning"})
    other = dataclasses.replace(data, item_table=data.item_table.assign(category=swapped))
    again = labels.build(other, solution, left_out, replicates=200)
    names = {"reasoning": "safety", "safety": "reasoning"}
    assert [names[entry["name"]] for entry in again.dimensions] == [
        entry["name"] for entry in named.dimensions
    ]


def test_a_single_category_names_nothing(data, solution, left_out):
    alone = dataclasses.replace(data, item_table=data.item_table.assign(category="all"))
    found = labels.build(alone, solution, left_out, replicates=50)
    assert not found.named
    assert [entry["display"] for entry in found.dimensions] == ["ability 1", "ability 2"]
    assert "fewer than two categories" in str(found.why_not)


def test_too_few_lineages_name_nothing(data, solution, left_out):
    related = dataclasses.replace(data, lineage=np.arange(len(data.models)) % 3)
    assert "3 lineages" in str(labels.build(related, solution, left_out, replicates=50).why_not)


def test_noise_gets_no_name():
    data = response_data(simulate.study("noise", models=40, items=200, seed=3))
    fitted = consensus.build([inference.fit(data, engine="em", dims=2, seed=0)], fit="corrected")
    found = labels.build(data, fitted, families.leave_one_out(data, fitted), replicates=200)
    assert [entry["name"] for entry in found.dimensions] == [None, None]


@pytest.mark.parametrize(("other", "name"), [(0.85, None), (0.75, "safety")])
def test_an_ability_that_all_categories_follow_alike_is_named_after_none(other, name):
    noise = np.random.default_rng(0).normal(0.0, 0.01, (2, 201, 1))
    strength = np.array([other, 0.9])[:, None, None] + noise
    nothing = {"reasoning": [], "safety": []}
    found, why = labels._verdict(0, 1, ("reasoning", "safety"), strength, 0.95, nothing)
    assert found == name
    assert ("a name needs a lead" in why) == (name is None)
    # benchmarks without which the ability is another one are told as the likely reason; they take no name away
    found, why = labels._verdict(0, 1, ("reasoning", "safety"), strength, 0.95, nothing | {"safety": ["bbq"]})
    assert found == name
    assert ("without bbq it is another ability" in why) == (name is None)


def test_an_ability_that_rests_on_one_benchmark_is_compared_with_nothing():
    """Only `refusal` follows the second ability: what takes its place without refusal says nothing about refusal."""
    rng = np.random.default_rng(7)
    names = np.repeat(["logic_a", "logic_b", "honest", "refusal"], 50)
    a = np.where((names == "refusal")[:, None], [0.0, 1.5], [1.5, 0.0])
    theta = rng.standard_normal((60, 2))
    chance = 1 / (1 + np.exp(-(theta @ a.T + rng.normal(0.0, 1.0, 200))))
    data = matrix.from_arrays(
        (rng.random(chance.shape) < chance).astype(np.int8), lineage=np.arange(60) % 20, benchmark=names
    )
    category = np.where(np.isin(names, ["honest", "refusal"]), "safety", "reasoning")
    data = dataclasses.replace(data, item_table=data.item_table.assign(category=category))
    fitted = consensus.build([inference.fit(data, engine="em", dims=2, seed=0)], fit="corrected")
    left_out = families.leave_one_out(data, fitted)
    second = int(np.abs(np.corrcoef(fitted.ability_theta.T, theta[:, 1])[:2, 2]).argmax())
    expected = np.ones((4, 2), bool)
    expected[left_out.units.index("refusal"), second] = False
    np.testing.assert_array_equal(left_out.comparable, expected)
    found = labels.build(data, fitted, left_out, replicates=200)
    assert found.dimensions[second]["name"] is None
    assert "without refusal it is another ability" in str(found.dimensions[second]["why"])


def test_labels_survive_the_disk(tmp_path, named):
    labels.write(named, tmp_path / "labels.json")
    assert labels.read(tmp_path / "labels.json") == named


def test_weighted_correlations_equal_repeated_rows():
    rng = np.random.default_rng(0)
    theta, means = rng.normal(size=(12, 2)), rng.normal(size=12)
    means[3] = np.nan
    weights = rng.integers(0, 4, size=(5, 12)).astype(float)
    found = labels._correlations(theta, means, weights)
    for row, counts in zip(found, weights, strict=True):
        seen = np.isfinite(means)
        index = np.repeat(np.flatnonzero(seen), counts[seen].astype(int))
        for k in range(2):
            assert row[k] == pytest.approx(np.corrcoef(theta[index, k], means[index])[0, 1], abs=1e-9)


def test_item_statistics_hold_identified_numbers(data, solution):
    record = inference.fit(data, engine="em", dims=2, seed=0)
    dropped = pd.DataFrame({"question_id": ["dropped"], "benchmark": ["bbh"], "kept": [False]})
    frame = statistics.item_statistics(pd.concat([data.item_table, dropped]), solution, [record])
    assert len(frame) == len(data.items) + 1
    assert frame.iloc[-1][["intercept", "mdisc", "angle_to_1", "published_difficulty_1"]].isna().all()
    fitted = frame.iloc[:-1]
    np.testing.assert_allclose(fitted["mdisc"], np.linalg.norm(solution.a, axis=1))
    np.testing.assert_allclose(fitted["mdiff"], -fitted["intercept"] / fitted["mdisc"], rtol=1e-6)
    for name in ("intercept", "mdisc"):
        assert (fitted[f"{name}_low"] <= fitted[name]).all()
        assert (fitted[name] <= fitted[f"{name}_high"]).all()
    # the published difficulty is a function of loading and intercept: rotating it back gives -a d / |a|^2
    assert fitted["published_difficulty_1"].notna().all()


def test_published_difficulty_is_not_identified(data, solution):
    """Difficulty per dimension carries the sign of the loading, whatever the item's hardness (REFERENCE: D4)."""
    record = inference.fit(data, engine="em", dims=1, seed=0)
    _, loadings, difficulty = statistics.published_solution(record)
    strong = np.abs(loadings[:, 0]) > 0.1
    np.testing.assert_allclose(
        difficulty[strong, 0] * loadings[strong, 0], -record.d_mean[strong], rtol=1e-4, atol=1e-4
    )


def test_model_statistics_hold_means_and_intervals(data, solution, resampled):
    responses = pd.DataFrame(data.responses.T, columns=list(data.models)).astype("Int8").replace(-1, pd.NA)
    responses.insert(0, "question_id", list(data.items))
    models = data.model_table.assign(observed=1, mean=0.5, kept=True)
    frame = statistics.model_statistics(models, responses, data.item_table, solution, resampled)
    alone = statistics.model_statistics(models, responses, data.item_table, solution)
    assert list(frame["model"]) == list(data.models)
    np.testing.assert_allclose(frame[["ability_1", "ability_2"]], solution.ability_theta)
    assert (
        frame["ability_1_high"] - frame["ability_1_low"] > alone["ability_1_high"] - alone["ability_1_low"]
    ).all()
    own = (data.item_table["benchmark"] == "bbh").to_numpy()
    seen = data.responses[:, own] >= 0
    expected = np.where(seen, data.responses[:, own], 0).sum(1) / seen.sum(1)
    np.testing.assert_allclose(frame["bbh_average"], expected)


def test_ability_intervals_hold_the_mix_of_benchmarks(data, solution):
    """Against the closed form: refits whose abilities lie at +-shift about the consensus, once the scale is given back."""
    responses = pd.DataFrame(data.responses.T, columns=list(data.models)).astype("Int8").replace(-1, pd.NA)
    responses.insert(0, "question_id", list(data.items))
    models = data.model_table.assign(observed=1, mean=0.5, kept=True)
    theta = solution.ability_theta
    shift = np.zeros_like(theta)
    shift[:4] = 0.05 * np.array([1, -1, 1, -1])[:, None]  # about zero, so that it moves no centre
    moved = [theta + shift, theta - shift, theta + shift, theta - shift]
    refits = [3 * one / one.std(0) * theta.std(0) + 1 for one in moved]  # another unit and zero
    scaled = np.stack([(one - one.mean(0)) / one.std(0) * theta.std(0) for one in moved])
    expected = 3 / 4 * ((scaled - scaled.mean(0)) ** 2).sum(0)
    units = ("a", "b", "c", "d")

    def half(count: int) -> np.ndarray:
        left_out = families.LeaveOneOut(
            "benchmark",
            units[:count],
            np.stack(refits[:count]),
            np.zeros((count, 1, 2), np.float32),
            np.ones((count, 2)),
            np.ones((count, 2)),
            np.ones(count, bool),
            solution.models,
            solution.items,
            solution.data_hash,
        )
        frame = statistics.model_statistics(models, responses, data.item_table, solution, None, left_out)
        return (frame[["ability_1_high", "ability_2_high"]].to_numpy() - theta) / ndtri(0.975)

    posterior = np.einsum("nkk->nk", solution.ability_cov)
    np.testing.assert_allclose(half(4) ** 2, posterior + expected, rtol=1e-6)
    assert (expected[:4] > 20 * expected[4:].max()).all()
    np.testing.assert_allclose(half(2) ** 2, posterior, rtol=1e-6)  # two say too little of a mix


def test_clusters_of_unknown_lineage_are_their_own(data):
    assert len(set(resampling.clusters(np.array([-1, -1, 0, 0])))) == 3


def test_an_ability_that_no_benchmark_can_be_compared_with_gets_no_name():
    """As where a dimension is shrunk to nothing: what a fit leaves there may go with anything."""
    nothing = np.full((2, 51, 1), np.nan)
    rests = {"reasoning": ["a", "b"], "safety": ["c", "d"]}
    entry = labels._entries(("reasoning", "safety"), nothing, np.zeros((2, 1)), None, 0.95, [rests])[0]
    assert entry["name"] is None
    assert entry["why"].startswith("without any one of 4 benchmarks it is another ability")
