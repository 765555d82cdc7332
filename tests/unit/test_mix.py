"""Mixes of benchmarks: which are made, how they are compared, and what claims make of planted tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_fixture import World, plant, study_of
from scipy import stats
from test_dimensions_families import response_data

from benchmirt import inference, simulate
from benchmirt.claims import judge, record
from benchmirt.claims.intervals import degrees_of_freedom
from benchmirt.dimensions import consensus, families, mix
from benchmirt.files import write_csv, write_json
from benchmirt.identification import Solution

# -- the mixes ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> Any:
    return response_data(simulate.study("planted_pure", models=50, items=400, seed=1))


@pytest.fixture(scope="module")
def whole(data: Any) -> Any:
    return consensus.build([inference.fit(data, engine="em", dims=2, seed=0)], fit="corrected")


@pytest.fixture(scope="module")
def found(data: Any, whole: Any) -> mix.Mixes:
    resampled = families.bootstrap(data, whole, replicates=4)
    return mix.run(data, whole, families.leave_one_out(data, whole), resampled, replicates=3)


def test_every_category_stands_alone_and_with_each_benchmark_of_the_others(data: Any) -> None:
    made = mix.mixes_of(data)
    category, benchmark = (data.item_table[name].to_numpy(dtype=str) for name in ("category", "benchmark"))
    told = {(one.kind, one.category, one.benchmark): one.kept for one in made}
    assert len(told) == len(made) == 2 + 2 + 16
    np.testing.assert_array_equal(told["only", "reasoning", ""], category == "reasoning")
    np.testing.assert_array_equal(
        told["added", "reasoning", "wmdp"], (category == "reasoning") | (benchmark == "wmdp")
    )
    assert ("added", "safety", "wmdp") not in told


def test_random_items_are_as_many_whole_testlets_and_leave_the_mix_as_it_is(data: Any) -> None:
    random = {one.category: one.kept for one in mix.mixes_of(data) if one.kind == "random"}
    only = {one.category: one.kept for one in mix.mixes_of(data) if one.kind == "only"}
    testlet = data.item_table["testlet"]
    for name, kept in random.items():
        assert abs(int(kept.sum()) - int(only[name].sum())) <= 16
        share = pd.Series(kept).groupby(data.item_table["benchmark"]).mean()
        assert share.between(0.2, 0.8).all()
        known = testlet.notna() & (testlet.map(testlet.value_counts()) > 1)
        assert set(pd.Series(kept)[known].groupby(testlet[known]).mean()) <= {0.0, 1.0}


def test_one_category_makes_no_mix() -> None:
    planted = simulate.matrix(30, 60, dims=1)
    table = planted.item_table.assign(category="all", testlet=None, observed=30, mean=0.5, kept=True)
    one = response_data(planted)
    object.__setattr__(one, "item_table", table)
    assert mix.mixes_of(one) == []


def test_a_mix_of_everything_is_the_whole() -> None:
    rng = np.random.default_rng(0)
    theta, a, d = rng.normal(size=(30, 2)), rng.normal(size=(50, 2)), rng.normal(size=50)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    T = np.array([[1.0, 0.3], [0.0, np.sqrt(1 - 0.09)]])
    same = mix.compare(Solution(theta @ turn, a @ turn, d), np.ones(50, bool), a, theta, T)
    assert same.dims == 2
    assert same.congruence == pytest.approx([1, 1])
    assert same.ability_r == pytest.approx([1, 1])


def test_a_solution_that_lost_a_dimension_keeps_the_other_one() -> None:
    rng = np.random.default_rng(1)
    theta, d = rng.normal(size=(200, 2)), np.zeros(400)
    a = np.zeros((400, 2))
    a[:200, 0], a[200:, 1] = 1 + 0.1 * rng.normal(size=200), 1 + 0.1 * rng.normal(size=200)
    kept = np.arange(400) < 200
    lost = mix.compare(Solution(theta * [1, 0], a * [1, 0], d), kept, a, theta, np.eye(2))
    assert lost.dims == 1
    assert lost.congruence == pytest.approx([1, 0])
    assert lost.ability_r[0] == pytest.approx(1)
    assert lost.ability_r[1] == 0


def test_a_category_keeps_its_own_ability_and_the_planted_other_one_is_weaker(found: mix.Mixes) -> None:
    rows = found.table.set_index(["mix", "category", "benchmark", "ability"]).sort_index()
    assert (rows.loc["random", "congruence"] > 0.9).all()
    # WMDP and BBQ follow reasoning: with them, or without any one benchmark, both abilities stay
    assert (rows.loc["without", "congruence"] > 0.9).all()
    alone = rows.loc[("only", "reasoning", "")]
    assert alone["congruence"].max() > 0.9
    assert alone["congruence"].min() < rows.loc["without", "congruence"].min()
    assert set(found.replicates["category"]) == {"reasoning", "safety"}
    assert len(found.replicates) == 2 * 3 * 2
    assert found.scale == pytest.approx(2, rel=0.1)


def test_the_family_is_written_whole(found: mix.Mixes, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("mix.csv", "mix_replicates.csv", "mix.json")]
    mix.write(found, *paths)
    assert pd.read_csv(paths[0], keep_default_na=False).columns.tolist() == list(mix.COLUMNS)
    assert len(pd.read_csv(paths[1])) == len(found.replicates)


def test_absent_dimensions_fail_and_others_are_tested_if_asked_for(data: Any) -> None:
    category = data.item_table["category"].to_numpy(dtype=str)
    one = mix.select(data, items=category == "safety")
    options = {"sweeps": 30, "tolerance": 5e-3}
    untested = mix.alone(one, 2, 1, replicates=0, splits=4, **options)
    assert [entry["passes"] for entry in untested] == [None, False]
    tested = mix.alone(one, 2, 1, replicates=2, splits=4, **options)
    assert tested[0]["why"].startswith("a trial, p = ")
    assert tested[0]["passes"] is None
    assert tested[0]["ability_r"] > 0.5
    assert tested[1] == {"dimension": 2, "passes": False, "why": "shrunk to nothing by the prior"}


# -- the claim ----------------------------------------------------------------------------------------------

CELLS = {("reasoning", 1): 0.97, ("reasoning", 2): 0.2, ("safety", 1): 0.95, ("safety", 2): 0.99}


def _entry(**part: Any) -> dict[str, Any]:
    return {
        "id": "M1",
        "kind": "mix",
        "statement": "It depends on the mix.",
        "published": {"text": "a stated limit"},
        "needs_dimension": 2,
        "parts": [{"name": "least", "statistic": "least_congruence", "region": {"high": 0.85}, **part}],
    }


def _planted(
    folder: Path, cells: dict[tuple[str, int], float], spread: float = 0.05, count: int = 20, **world: Any
) -> Path:
    """Write a results folder whose mixes have known congruences, with refits of a known spread on Fisher's scale."""
    plant(folder, World(**world))
    rng = np.random.default_rng(0)
    rows, again = [], []
    for (category, ability), phi in cells.items():
        rows.append(("only", category, "", 300, 2, ability, phi, phi, True))
        rows.append(("added", category, "bbq", 330, 2, ability, 0.9, 0.9, True))
        z = rng.normal(size=count)
        z = (z - z.mean()) / z.std(ddof=1)
        again += [
            (category, r, ability, float(np.tanh(np.arctanh(phi) + spread * one)), 0.9, True)
            for r, one in enumerate(z)
        ]
    home = folder / "dimensions"
    write_csv(pd.DataFrame(rows, columns=list(mix.COLUMNS)), home / "mix.csv")
    columns = ["category", "replicate", "ability", "congruence", "ability_r", "converged"]
    write_csv(pd.DataFrame(again, columns=columns), home / "mix_replicates.csv")
    entries = [{"dimension": 1, "passes": True, "why": "p"}, {"dimension": 2, "passes": False, "why": "gone"}]
    write_json(
        {"alone": [{"category": "reasoning", "items": 300, "dimensions": entries}], "scale": 2.0},
        home / "mix.json",
    )
    return folder


def test_an_ability_that_a_category_lacks_is_found(tmp_path: Path) -> None:
    told = judge.evaluate("M1", _planted(tmp_path, CELLS), study_of([_entry()]))
    corrected = told["corrected"]
    assert corrected["verdict"] == "reproduced"
    assert corrected["estimate"] == pytest.approx(0.2)
    assert "safety in reasoning alone" in corrected["why"]
    assert told["as_published"]["verdict"] == "not compared"
    # Student's interval on Fisher's scale, twice the spread, corrected for four of them
    from benchmirt.claims.inputs import Results

    freedom = min(19, degrees_of_freedom(Results(tmp_path, study_of([_entry()])).lineage()))
    half = stats.t.ppf(1 - 0.05 / 4 / 2, freedom) * 2 * 0.05
    assert corrected["interval"] == pytest.approx(np.tanh(np.arctanh(0.2) + half * np.array([-1, 1])))


@pytest.mark.parametrize(
    ("least", "verdict"), [(0.97, "not reproduced"), (0.86, "inconclusive"), (0.5, "reproduced")]
)
def test_verdicts_follow_the_least_congruence(tmp_path: Path, least: float, verdict: str) -> None:
    cells = {**CELLS, ("reasoning", 2): least}
    cells = {key: max(value, 0.97) if key != ("reasoning", 2) else value for key, value in cells.items()}
    told = judge.evaluate("M1", _planted(tmp_path, cells), study_of([_entry()]))
    assert told["corrected"]["verdict"] == verdict, told["corrected"]["why"]


def test_few_refits_have_few_degrees_of_freedom(tmp_path: Path) -> None:
    told = judge.evaluate("M1", _planted(tmp_path, CELLS, count=10), study_of([_entry()]))
    half = stats.t.ppf(1 - 0.05 / 4 / 2, 9) * 2 * 0.05
    assert told["corrected"]["interval"] == pytest.approx(np.tanh(np.arctanh(0.2) + half * np.array([-1, 1])))
    assert "(9.0 degrees of freedom" in told["corrected"]["interval_kind"]


def test_one_ability_in_one_category_has_no_correction(tmp_path: Path) -> None:
    entry = _entry(statistic="congruence", category="safety", ability="reasoning")
    told = judge.evaluate("M1", _planted(tmp_path, CELLS), study_of([entry]))
    (part,) = told["corrected"]["parts"]
    assert part["estimate"] == pytest.approx(0.95)
    assert "Bonferroni" not in part["interval_kind"]
    gone = _entry(statistic="congruence", category="tact", ability="reasoning")
    told = judge.evaluate("M1", tmp_path, study_of([gone]))
    assert told["corrected"]["verdict"] == "cannot test"
    assert "tact" in told["corrected"]["why"]


def test_a_single_category_and_too_few_refits_cannot_test(tmp_path: Path) -> None:
    told = judge.evaluate("M1", _planted(tmp_path / "a", {}), study_of([_entry()]))
    assert told["corrected"]["verdict"] == "cannot test"
    assert "two categories" in told["corrected"]["why"]
    told = judge.evaluate("M1", _planted(tmp_path / "b", CELLS, count=9), study_of([_entry()]))
    assert told["corrected"]["verdict"] == "cannot test"
    assert "10 are needed" in told["corrected"]["why"]


def test_without_a_second_dimension_nothing_depends_on_anything(tmp_path: Path) -> None:
    told = judge.evaluate("M1", _planted(tmp_path, CELLS, passes=(True, False)), study_of([_entry()]))
    assert told["corrected"]["verdict"] == "not reproduced"
    assert told["corrected"]["why"].startswith("no second dimension")


def test_the_record_says_what_became_of_each_mix_and_dimension(tmp_path: Path) -> None:
    told = judge.evaluate("M1", _planted(tmp_path, CELLS), study_of([_entry()]))
    record.write(told, tmp_path / "M1.json", tmp_path / "M1.csv")
    table = pd.read_csv(tmp_path / "M1.csv")
    rows = table[table["row"] == "mix"].set_index(["named", "ability"])
    assert len(rows) == 8
    assert "dimension 2 does not pass in reasoning alone (gone)" in told["corrected"]["why"]
    assert rows.loc[("reasoning alone", "safety"), "high"] < 0.85
    assert rows.loc["safety and bbq", "low"].isna().all()
