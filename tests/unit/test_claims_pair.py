"""Pairs of models: tests against closed forms and scipy, items chosen without the pair, planted differences."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from claims_fixture import World, plant, study_of
from scipy import stats
from test_dimensions_families import response_data

from benchmirt import inference, simulate
from benchmirt.claims import differences, judge, pair, record
from benchmirt.dimensions import consensus, pairs
from benchmirt.files import write_parquet

# -- the statistics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "changed"), [(0, 1), (1, 0), (3, 9), (12, 12), (40, 17), (0, 30), (101, 140)]
)
def test_mcnemar_is_the_exact_binomial_test(base: int, changed: int) -> None:
    expected = stats.binomtest(base, base + changed, 0.5).pvalue
    assert differences.mcnemar(base, changed) == pytest.approx(expected, rel=1e-10)


def test_mcnemar_without_any_difference_is_one() -> None:
    assert differences.mcnemar(0, 0) == 1.0


def test_holm_is_as_worked_by_hand() -> None:
    # .01 * 4 = .04; .02 * 3 = .06; .022 * 2 = .044, not below .06; .5
    assert differences.holm([0.022, 0.5, 0.01, 0.02]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    # none grows beyond 1, ties share, NaN is no test
    assert differences.holm([0.4, 0.9, 0.4]) == pytest.approx([1.0, 1.0, 1.0])
    found = differences.holm([0.01, np.nan, 0.04])
    assert found[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(found[1])


def test_the_unpaired_test_is_scipys() -> None:
    rng = np.random.default_rng(0)
    base, changed = (rng.random(400) < 0.6).astype(int), (rng.random(400) < 0.5).astype(int)
    base[:30], changed[20:40] = -1, -1
    found = differences.unpaired(base, changed)
    left, right = base[base >= 0].astype(float), changed[changed >= 0].astype(float)
    expected = stats.ttest_ind(right, left)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.freedom == expected.df
    n, m = left.size, right.size
    pooled = ((n - 1) * left.var(ddof=1) + (m - 1) * right.var(ddof=1)) / (n + m - 2)
    assert found.d == pytest.approx((right.mean() - left.mean()) / np.sqrt(pooled))
    # the smallest significant difference has p = .05
    least = found.least / (found.difference / found.t)
    assert 2 * stats.t.sf(least, found.freedom) == pytest.approx(0.05)
    assert found.items == 390


def test_two_models_that_answer_alike_do_not_differ() -> None:
    answers = np.array([0, 1] * 30)
    assert differences.unpaired(np.ones(20), np.ones(20)).p == 1.0
    found = differences.paired(answers, answers, np.arange(60))
    assert (found.difference, found.p, found.low, found.high) == (0.0, 1.0, 0.0, 0.0)


def test_only_items_that_both_answered_count() -> None:
    base = np.array([1, 1, 0, -1, 1, 0, 1, 1])
    changed = np.array([0, 1, 0, 1, -1, 1, 0, 0])
    found = differences.paired(base, changed, np.arange(8))
    assert (found.items, found.only_base, found.only_changed) == (6, 3, 1)
    assert found.difference == pytest.approx(-2 / 6)
    assert found.p_mcnemar == pytest.approx(stats.binomtest(1, 4, 0.5).pvalue)


def test_testlets_that_stand_and_fall_together_count_as_one() -> None:
    """A testlet of copies says no more than its first item: p and interval are those of the testlets."""
    rng = np.random.default_rng(1)
    base, changed = (rng.random(40) < 0.6).astype(int), (rng.random(40) < 0.4).astype(int)
    alone = differences.paired(base, changed, np.arange(40))
    copied = differences.paired(np.repeat(base, 10), np.repeat(changed, 10), np.repeat(np.arange(40), 10))
    assert copied.p_clustered == pytest.approx(alone.p_clustered)
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    assert copied.p_mcnemar < alone.p_mcnemar / 10
    assert copied.p == copied.p_clustered
    # over single items the clustered test is the paired t test with the factor n / (n - 1) in the variance
    expected = stats.ttest_rel(changed, base)
    assert alone.p_clustered == pytest.approx(expected.pvalue)


def test_too_few_testlets_give_no_interval() -> None:
    found = differences.paired(np.ones(40), np.zeros(40), np.repeat(np.arange(4), 10))
    assert np.isnan([found.low, found.high, found.p]).all()


def test_a_tenth_is_that_of_the_study() -> None:
    sets = pair.tails(np.random.default_rng(0).permutation(29_574).astype(float))
    assert [int(sets[end].sum()) for end in ("high", "low")] == [2958, 2958]


@pytest.mark.parametrize(("items", "count"), [(29_574, 100), (4_525, 22), (1_000, 5), (3, 3)])
def test_bins_hold_200_items_and_are_at_most_those_of_the_study(items: int, count: int) -> None:
    values = np.random.default_rng(0).normal(size=items)
    parts = pair.bins(values)
    assert len(parts) == count
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(items))
    edges = [(values[part].min(), values[part].max()) for part in parts]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(edges))


def test_a_curve_is_the_paired_difference_of_each_bin() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=1000)
    answers = rng.integers(-1, 2, size=(2, 1000)).astype(np.int8)
    points = pair.curve(answers, values, np.arange(1000))
    for point, part in zip(points, pair.bins(values), strict=True):
        both = part[(answers[:, part] >= 0).all(axis=0)]
        expected = stats.ttest_rel(answers[1, both], answers[0, both])
        ends = expected.confidence_interval(0.95)
        assert point["items"] == both.size
        assert point["discrimination"] == np.median(values[part])
        assert point["difference"] == pytest.approx(
            (answers[1, both].astype(float) - answers[0, both]).mean()
        )
        assert (point["low"], point["high"]) == pytest.approx((ends.low, ends.high))
    unpaired = pair.curve(answers, values)
    first = pair.bins(values)[0]
    base, changed = (side[first][side[first] >= 0].mean() for side in answers)
    assert unpaired[0]["difference"] == pytest.approx(changed - base)
    assert np.isnan([unpaired[0]["low"], unpaired[0]["high"]]).all()


def test_a_bin_that_no_model_answered_and_too_few_testlets_say_nothing() -> None:
    values = np.arange(1000.0)
    answers = np.ones((2, 1000), dtype=np.int8)
    answers[1, :200] = -1
    points = pair.curve(answers, values, np.arange(1000) // 250)
    assert [point["items"] for point in points] == [200] * 4
    assert all(np.isnan(point["low"]) for point in points)


# -- items chosen without the pair --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> tuple[Any, Any]:
    data = response_data(simulate.study("planted_pure", models=40, items=240, seed=2))
    return data, consensus.build([inference.fit(data, engine="em", dims=2, seed=0)], fit="corrected")


def test_no_answer_of_a_pair_moves_the_choice(small: tuple[Any, Any]) -> None:
    data, whole = small
    two = pairs.Pair(data.models[3], data.models[11])
    answers = data.responses.copy()
    answers[[3, 11]] = np.random.default_rng(0).integers(-1, 2, size=(2, answers.shape[1]))
    other = dataclasses.replace(data, responses=answers)
    again = consensus.build([inference.fit(other, engine="em", dims=2, seed=0)], fit="corrected")
    first, second = pairs.without_pairs(data, whole, [two]), pairs.without_pairs(other, again, [two])
    assert not np.array_equal(whole.a, again.a), "the whole does depend on the pair"
    np.testing.assert_array_equal(first.a, second.a)


def test_the_calibration_without_a_pair_finds_the_same_abilities(
    small: tuple[Any, Any], tmp_path: Path
) -> None:
    data, whole = small
    two = pairs.Pair(data.models[0], data.models[1])
    family = pairs.without_pairs(data, whole, [two, pairs.Pair("nobody", data.models[1]), two])
    assert family.pairs == (two,)
    for k in range(2):
        assert np.corrcoef(family.a[0, :, k], whole.a_display[:, k])[0, 1] > 0.9
    pairs.write(family, tmp_path / "refits.nc")
    with xr.open_dataset(tmp_path / "refits.nc", engine="h5netcdf") as data_set:
        assert json.loads(data_set.attrs["pairs"]) == [list(two)]
        assert data_set["a"].shape == family.a.shape


def test_a_study_without_the_models_gets_an_empty_family(small: tuple[Any, Any], tmp_path: Path) -> None:
    data, whole = small
    family = pairs.without_pairs(data, whole, [pairs.Pair("nobody", "somebody")])
    assert family.a.shape == (0, 240, 2)
    pairs.write(family, tmp_path / "refits.nc")
    with xr.open_dataset(tmp_path / "refits.nc", engine="h5netcdf") as data_set:
        assert data_set["a"].shape == (0, 240, 2)


# -- the claim ----------------------------------------------------------------------------------------------

BASE, CHANGED = "org/model-004", "org/model-009"


def _part(ability: str, **more: Any) -> dict[str, Any]:
    region = {"high": -0.1} if ability == "safety" else {"low": -0.1, "high": 0.1}
    return {
        "name": f"on {ability} items",
        "base": BASE,
        "changed": CHANGED,
        "ability": ability,
        "region": region,
    } | more


def _entry(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "P1",
        "kind": "pair",
        "statement": "They differ on safety alone.",
        "published": {"text": "they differ on safety alone"},
        "needs_dimension": 2,
        "parts": list(parts or (_part("safety"), _part("reasoning"))),
    }


def _planted(folder: Path, lost: float = 0.7, also: float = 0.0, seed: int = 0) -> Path:
    """Plant a pair: the changed model answers as its base, but loses a share of the safety (and reasoning) items."""
    plant(folder, World())
    items = pd.read_parquet(folder / "matrix" / "honest" / "items.parquet")
    # BBQ, WMDP and the like are called safety and follow reasoning, as in the study
    for policy in ("honest", "published"):
        path = folder / "matrix" / policy / "responses.parquet"
        table = pd.read_parquet(path)
        base = (np.random.default_rng(7).random(len(table)) < 0.8).astype(int)
        name = items["benchmark"].to_numpy(dtype=str)
        subset = items["subcategory_one"].fillna("").to_numpy(dtype=str)
        side = (items["category"] == "safety").to_numpy() & ~np.isin(name, ["bbq", "wmdp", "toxigen"])
        side &= ~np.isin(subset, ["copyright", "benign", "definitions"])
        lose = np.random.default_rng(seed).random(len(table)) < np.where(side, lost, also)
        table[BASE] = pd.array(base, dtype="Int8")
        table[CHANGED] = pd.array(np.where(lose, 0, base), dtype="Int8")
        write_parquet(table, path)
    _write_refits(folder)
    return folder


def _write_refits(folder: Path, converged: int = 1, names: tuple[str, str] = (BASE, CHANGED)) -> None:
    with xr.open_dataset(folder / "dimensions" / "corrected" / "consensus.nc", engine="h5netcdf") as fit:
        display = np.linalg.solve(fit["T"].to_numpy(), fit["a"].to_numpy().T).T
        item = fit["item"].to_numpy().astype(str)
    (folder / "pairs").mkdir(exist_ok=True)
    xr.Dataset(
        {
            "a": (("pair", "item", "ability"), display[None]),
            "converged": (("pair",), np.array([converged], np.int8)),
        },
        coords={"item": item},
        attrs={"pairs": json.dumps([list(names)])},
    ).to_netcdf(folder / "pairs" / "refits.nc", engine="h5netcdf")


def test_a_planted_difference_on_safety_alone_is_found(tmp_path: Path) -> None:
    found = judge.evaluate("P1", _planted(tmp_path / "r"), study_of([_entry()]))
    assert found["corrected"]["verdict"] == "reproduced", found["corrected"]["why"]
    assert found["as_published"]["verdict"] == "matches", found["as_published"]["why"]
    safety, reasoning = found["corrected"]["parts"]
    # .8 of the items are passed and .7 of them lost
    assert safety["interval"][0] < -0.56 < safety["interval"][1]
    assert safety["p_holm"] < 1e-6
    assert reasoning["interval"][0] <= 0 <= reasoning["interval"][1]
    rows = safety["table"]["rows"]
    assert [(row["ability"], row["end"]) for row in rows] == [
        ("safety", "high"),
        ("safety", "low"),
        ("reasoning", "high"),
        ("reasoning", "low"),
    ]
    ends = {
        ability: [
            row
            for row in safety["curve"]["rows"]
            if (row["ability"], row["version"]) == (ability, "corrected")
        ]
        for ability in ("safety", "reasoning")
    }
    assert ends["safety"][-1]["low"] < -0.56 < ends["safety"][-1]["high"]
    assert ends["safety"][-1]["difference"] < ends["reasoning"][-1]["difference"] - 0.3
    by_hand = differences.holm([row["p"] for row in rows])
    assert [row["p_holm"] for row in rows] == pytest.approx(list(by_hand))


def test_an_ability_that_a_claim_numbers_is_called_by_its_name(tmp_path: Path) -> None:
    folder = _planted(tmp_path / "r")
    tables = {
        ability: judge.evaluate("P1", folder, study_of([_entry(_part("safety") | {"ability": ability})]))
        for ability in ("safety", 1, 2)
    }
    called = {
        ability: {row["ability"] for row in record["corrected"]["parts"][0]["table"]["rows"]}
        for ability, record in tables.items()
    }
    assert called["safety"] == {"safety"}
    assert called[1] | called[2] == {"reasoning", "safety"}


def test_a_model_that_lost_reasoning_too_is_not_alike(tmp_path: Path) -> None:
    found = judge.evaluate("P1", _planted(tmp_path / "r", also=0.4), study_of([_entry()]))
    verdicts = [part["verdict"] for part in found["corrected"]["parts"]]
    assert verdicts == ["reproduced", "not reproduced"]
    assert found["corrected"]["verdict"] == "not reproduced"
    assert found["as_published"]["verdict"] == "differs"


def test_copies_do_not_differ_on_safety(tmp_path: Path) -> None:
    found = judge.evaluate("P1", _planted(tmp_path / "r", lost=0.0), study_of([_entry()]))
    assert [part["verdict"] for part in found["corrected"]["parts"]] == ["not reproduced", "reproduced"]


def test_a_difference_that_holm_does_not_bear_out_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _planted(tmp_path / "r")
    monkeypatch.setattr(differences, "holm", lambda p: np.full(len(p), 0.2))
    safety, reasoning = judge.evaluate("P1", folder, study_of([_entry()]))["corrected"]["parts"]
    assert safety["verdict"] == "inconclusive"
    assert safety["why"].startswith("Holm's p over 4 tests is .20")
    assert reasoning["verdict"] == "reproduced"


def test_a_study_without_the_models_cannot_test(tmp_path: Path) -> None:
    folder = _planted(tmp_path / "r")
    entry = _entry(_part("safety", changed="org/absent"))
    found = judge.evaluate("P1", folder, study_of([entry]))
    assert found["corrected"]["verdict"] == found["as_published"]["verdict"] == "cannot test"
    assert found["corrected"]["why"] == "this study has no model org/absent"


def test_a_calibration_that_did_not_converge_cannot_test(tmp_path: Path) -> None:
    folder = _planted(tmp_path / "r")
    _write_refits(folder, converged=0)
    found = judge.evaluate("P1", folder, study_of([_entry()]))
    assert found["corrected"]["verdict"] == "cannot test"
    assert "did not converge" in found["corrected"]["why"]
    assert found["as_published"]["verdict"] == "matches"


def test_the_record_and_its_table_hold_every_test(tmp_path: Path) -> None:
    found = judge.evaluate("P1", _planted(tmp_path / "r"), study_of([_entry()]))
    record.write(found, tmp_path / "P1.json", tmp_path / "P1.csv")
    table = pd.read_csv(tmp_path / "P1.csv")
    bins = len(found["corrected"]["parts"][0]["curve"]["rows"])
    assert table["row"].value_counts().to_dict() == {"test": 4, "part": 2, "bin": bins}
    tests = table[table["row"] == "test"]
    assert tests[["p_mcnemar", "p_holm", "published_p", "published_d"]].notna().all(axis=None)
    assert set(tests["base"]) == {BASE}
