"""Verdicts on planted results folders: they come out as planted, and every edge says what it is."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from claims_fixture import STUDY, Subset, World, plant, study_of

from benchmirt import claims, files
from benchmirt.claims.gate import failings, missing_dimension
from benchmirt.claims.verdict import number
from benchmirt.errors import InputError
from benchmirt.figures import words

Record = dict[str, Any]


def verdicts(folder: Path, *names: str, **keys: Any) -> dict[str, str]:
    study = study_of(**keys)
    wanted = names or tuple(claims.load(study))
    return {name: claims.evaluate(name, folder, study)["corrected"]["verdict"] for name in wanted}


def judge(folder: Path, entry: dict[str, Any], **keys: Any) -> Record:
    entry = {"id": "M", "statement": "mine", **entry}
    return claims.evaluate("M", folder, study_of([entry], **keys))


def r_of(benchmark: str, ability: str | int = "reasoning", **changes: Any) -> dict[str, Any]:
    part = {"name": "n", "select": {"benchmark": benchmark}, "ability": ability, "region": {"low": 0.3}}
    return {"kind": "correlation", "parts": [part | changes]}


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def base(planted: Path) -> dict[str, str]:
    return verdicts(planted)


# -- planted truths -----------------------------------------------------------------------------------------


def test_planted_verdicts_come_out(base: dict[str, str]) -> None:
    assert base == {
        "C1": "reproduced",
        "C2": "reproduced",
        "C3": "reproduced",
        "C4": "reproduced",
        "C5": "reproduced",
        "C6": "reproduced",
        "C7": "reproduced",
        "C8": "not reproduced",  # the fixture's correlations are not the published ones
        "C9": "reproduced",
        "C10": "reproduced",
        "C11": "reproduced",
        "C12": "reproduced",
        "C13": "reproduced",
        "C14": "inconclusive",  # planted at .5, the border
        "C15": "reproduced",
        "C16": "reproduced",
        "C17": "reproduced",
        "C18": "reproduced",
        "C19": "cannot test",  # the fixture's models have other names
        "C20": "reproduced",
        "C21": "reproduced",
        "C22": "cannot test",  # no prompt is labelled
    }


def test_a_small_gain_is_no_large_one(tmp_path: Path, base: dict[str, str]) -> None:
    found = verdicts(plant(tmp_path, World(gained=0.02)))
    assert found["C4"] == "not reproduced"
    assert {name for name in found if found[name] != base[name]} == {"C4"}


FITTED = ("C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14")
MUTATIONS: dict[str, tuple[World, set[str]]] = {
    "bbq": (World().with_subset("bbq", angle=90.0), {"C9"}),
    "wmdp": (World().with_subset("wmdp", angle=0.0), {"C10"}),
    "copyright": (World().with_subset("harmbench", "copyright", angle=90.0), {"C11"}),
    "benign": (World().with_subset("wildjailbreak", "benign", angle=90.0, strength=1.5), {"C12"}),
    "xstest": (
        World()
        .with_subset("xstest", "definitions", angle=90.0)
        .with_subset("xstest", "contrast_definitions", angle=10.0),
        {"C13"},
    ),
    "musr": (World().with_subset("musr", angle=90.0), {"C7"}),
    "strongreject": (World().with_subset("strongreject", angle=-10.0), {"C7"}),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_flipping_a_subset_flips_its_verdict_and_no_other(
    mutation: str, tmp_path: Path, base: dict[str, str]
) -> None:
    world, hit = MUTATIONS[mutation]
    found = verdicts(plant(tmp_path, world), *FITTED)
    assert {name for name in FITTED if found[name] != base[name]} == hit
    assert all(found[name] == "not reproduced" for name in hit)


RESTS_ON_TWO = ("C3", *(f"C{number}" for number in (*range(5, 18), 20, 21)))


def _fail_second(folder: Path, passes: bool | None = False, **edits: Any) -> None:
    path = folder / "dimensions" / "stability.json"
    stability = json.loads(path.read_text(encoding="utf-8")) | edits
    stability["dimensions"][1] |= {"passes": passes, "p_congruence": 0.3, "p_ability_r": 0.2}
    files.write_json(stability, path)


@pytest.mark.parametrize("named", [("reasoning", "safety"), ("reasoning", None), (None, None)])
def test_without_a_second_dimension_nothing_that_needs_it_is_reproduced(
    named: tuple[str | None, str | None], tmp_path: Path
) -> None:
    # all else speaks for the claims, only the second dimension fails its null
    plant(tmp_path, World(passes=(True, False), named=named))
    study = study_of()
    for name in RESTS_ON_TWO:
        corrected = claims.evaluate(name, tmp_path, study)["corrected"]
        assert corrected["verdict"] == "not reproduced", name
        if name != "C6":
            assert corrected["why"].startswith("no second dimension: its loadings come back no better"), name
            assert all(part["verdict"] == "not reproduced" for part in corrected["parts"])
    # estimates and intervals are shown all the same where there is a name to go by
    shown = claims.evaluate("C9", tmp_path, study)["corrected"]
    assert (shown["interval"] is None) == (named[1] is None)
    assert verdicts(tmp_path, "C1", "C2") == {"C1": "reproduced", "C2": "reproduced"}


@pytest.mark.parametrize("chosen", [(1, 1), (0, 0)])
def test_one_dimension_or_none_never_gives_two(chosen: tuple[int, int], tmp_path: Path) -> None:
    plant(tmp_path, World(passes=(False, False), chosen=chosen, named=(None, None)))
    found = verdicts(tmp_path, *RESTS_ON_TWO)
    assert set(found.values()) == {"not reproduced"}


def test_an_untested_dimension_leaves_claims_untested(tmp_path: Path) -> None:
    plant(tmp_path)
    _fail_second(tmp_path, passes=None)
    assert verdicts(tmp_path, "C9", "C11", "C3", "C6") == dict.fromkeys(
        ("C9", "C11", "C3", "C6"), "cannot test"
    )
    _fail_second(tmp_path, passes=True, why_not="7 lineages are fewer than 8")
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert "7 lineages are fewer than 8" in record["corrected"]["why"]
    # with few models there would be no verdict anyway, so the estimate is shown
    plant(tmp_path, World(models=28, lineages=24))
    _fail_second(tmp_path, passes=True, why_not="5 lineages are fewer than 8")
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "exploratory"
    assert record["corrected"]["estimate"] is not None
    assert "5 lineages are fewer than 8" in record["corrected"]["why"]
    # a study fitted with one dimension has none to test
    plant(tmp_path, World(passes=(True,)))
    record = claims.evaluate("C13", tmp_path, study_of())
    assert record["corrected"]["why"] == "dimension 2 was not tested: the fits have 1"


@pytest.mark.parametrize(
    ("chosen", "verdict"),
    [((2, 2), "reproduced"), ((1, 1), "not reproduced"), ((3, 4), "not reproduced"), ((1, 2), "inconclusive"),
     ((2, 3), "inconclusive"), ((1, 3), "inconclusive"), ((None, 2), "cannot test"), ((2, None), "cannot test")],
)  # fmt: skip
def test_the_number_of_dimensions_needs_both_methods(
    chosen: tuple[int | None, int | None], verdict: str, tmp_path: Path
) -> None:
    world = World(chosen=chosen, subsets=(Subset("a", "reasoning", 0.0), Subset("b", "safety", 78.0)))
    plant(tmp_path, world)
    record = judge(
        tmp_path, {"kind": "dimensionality", "parts": [{"name": "n", "expected": 2, "published": 2}]}
    )
    assert record["corrected"]["verdict"] == verdict
    assert record["as_published"]["verdict"] == "matches"
    assert record["corrected"]["interval_kind"] in (None, "range of two methods, not a confidence interval")


# -- samples too small --------------------------------------------------------------------------------------


def test_fewer_than_30_models_are_exploratory(tmp_path: Path) -> None:
    plant(tmp_path, World(models=29, lineages=25))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "exploratory"
    assert record["corrected"]["estimate"] is not None
    assert record["corrected"]["interval"] is not None
    assert "29 models are fewer than 30" in record["corrected"]["why"]
    found = verdicts(tmp_path, "C1", "C3", "C6", "C7", "C13")
    assert found == {"C1": "reproduced", **dict.fromkeys(("C3", "C6", "C7", "C13"), "exploratory")}
    _fail_second(tmp_path)
    assert verdicts(tmp_path, "C9")["C9"] == "exploratory"
    assert verdicts(plant(tmp_path, World(models=30, lineages=26)), "C9")["C9"] == "reproduced"


def test_models_that_did_not_run_a_benchmark_do_not_count(tmp_path: Path) -> None:
    def outcomes(share: float) -> np.ndarray:
        world = World()
        folder = plant(tmp_path / "whole", world)
        table = pd.read_parquet(folder / "matrix" / "honest" / "responses.parquet")
        values = table.drop(columns="question_id").fillna(-1).to_numpy(dtype=np.int8)
        rows = table["question_id"].str.startswith("bbq").to_numpy().nonzero()[0]
        values[rows[: round(share * len(rows))], 25:] = -1
        return values

    plant(tmp_path, responses=outcomes(1.0))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "exploratory"
    assert record["sample"]["models"] == 25
    # with half of the items a model still counts
    plant(tmp_path, responses=outcomes(0.5))
    assert claims.evaluate("C9", tmp_path, study_of())["sample"]["models"] == 100
    plant(tmp_path, responses=outcomes(0.6))
    assert claims.evaluate("C9", tmp_path, study_of())["sample"]["models"] == 25


def test_fewer_than_20_usable_items_cannot_be_tested(tmp_path: Path) -> None:
    plant(tmp_path, World().with_subset("bbq", items=19).with_subset("harmbench", "copyright", items=12))
    study = study_of()
    record = claims.evaluate("C9", tmp_path, study)
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"] == "only 19 of 19 items are usable, 20 are needed"
    assert record["as_published"]["verdict"] == "cannot test"
    record = claims.evaluate("C11", tmp_path, study)
    assert record["corrected"]["verdict"] == "cannot test"
    assert "copyright towards reasoning: only 12 of 12 items" in record["corrected"]["why"]
    # claims on the whole study need all its benchmarks, but counts count whatever there is
    assert verdicts(tmp_path, "C1", "C2", "C8") == {
        "C1": "reproduced",
        "C2": "reproduced",
        "C8": "cannot test",
    }
    # the other benchmarks are the published ones still
    assert claims.evaluate("C3", tmp_path, study)["as_published"]["verdict"] == "matches"


def test_items_that_the_filter_dropped_are_not_usable(tmp_path: Path) -> None:
    plant(tmp_path, World().with_subset("bbq", easiness=40.0))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert (
        "only 0 of 30 items are usable, 20 are needed (30 all outcomes equal)" in record["corrected"]["why"]
    )


def test_a_benchmark_that_the_study_lacks_cannot_be_tested(tmp_path: Path) -> None:
    plant(tmp_path, World(subsets=tuple(one for one in STUDY if one.benchmark != "wmdp")))
    study = study_of()
    record = claims.evaluate("C10", tmp_path, study)
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"] == "this study has no items with benchmark wmdp"
    assert record["as_published"]["verdict"] == "cannot test"
    assert record["corrected"]["estimate"] is None
    assert verdicts(tmp_path, "C1", "C2", "C8") == dict.fromkeys(("C1", "C2", "C8"), "cannot test")
    # what is not about it is judged, but not compared with figures about it
    record = claims.evaluate("C7", tmp_path, study)
    assert record["corrected"]["verdict"] == "reproduced"
    assert record["as_published"]["verdict"] == "not compared"
    assert "about other data: this study has no items with benchmark wmdp" in record["as_published"]["why"]
    # even if its second dimension failed besides
    _fail_second(tmp_path)
    assert verdicts(tmp_path, "C10")["C10"] == "cannot test"


def test_a_study_without_the_category_cannot_be_tested(tmp_path: Path) -> None:
    plant(
        tmp_path, World(subsets=tuple(replace(one, category="skill") for one in STUDY), named=("skill", None))
    )
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"] == "this study has no items with category reasoning"
    record = claims.evaluate("C3", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert "this study has no items with category reasoning, safety" in record["corrected"]["why"]


def test_a_category_that_no_ability_is_named_after_cannot_be_tested(tmp_path: Path) -> None:
    plant(tmp_path, World(named=("reasoning", None)))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"] == "no ability could be named safety (no category stands out)"
    assert record["corrected"]["estimate"] is None
    assert verdicts(tmp_path, "C8", "C11", "C13") == dict.fromkeys(("C8", "C11", "C13"), "cannot test")
    # the number of the ability needs no name
    assert judge(tmp_path, r_of("strongreject", 2))["corrected"]["verdict"] == "reproduced"
    # names are matched whatever their case
    assert judge(tmp_path, r_of("bbh", "Reasoning"))["corrected"]["verdict"] == "reproduced"


# -- edges --------------------------------------------------------------------------------------------------


def test_constant_means_cannot_be_correlated(tmp_path: Path) -> None:
    folder = plant(tmp_path / "whole")
    table = pd.read_parquet(folder / "matrix" / "honest" / "responses.parquet")
    values = table.drop(columns="question_id").to_numpy(dtype=np.int8)
    rows = table["question_id"].str.startswith("bbq").to_numpy().nonzero()[0]
    # each model passes half of the items, a different half for every other model
    values[np.ix_(rows[:15], range(0, 100, 2))] = values[np.ix_(rows[15:], range(1, 100, 2))] = 1
    values[np.ix_(rows[15:], range(0, 100, 2))] = values[np.ix_(rows[:15], range(1, 100, 2))] = 0
    plant(tmp_path, responses=values)
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert record["corrected"]["why"].startswith("every model has the same mean")
    assert record["as_published"]["verdict"] == "cannot test"
    assert record["as_published"]["why"].startswith("every model has the same mean")
    text = json.dumps(record)
    assert "NaN" not in text


@pytest.mark.parametrize("claim", ["C9", "C11"])
def test_too_few_lineages_or_refits_leave_no_interval(claim: str, tmp_path: Path) -> None:
    plant(tmp_path / "lineages", World(lineages=2))
    record = claims.evaluate(claim, tmp_path / "lineages", study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert "lineages are worth only" in record["corrected"]["why"]
    plant(tmp_path / "refits", World(replicates=19))
    record = claims.evaluate(claim, tmp_path / "refits", study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert "only 19 refits" in record["corrected"]["why"]


def _edit(path: Path, change: Callable[[xr.Dataset], None]) -> None:
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        data = opened.load()
    change(data)
    path.unlink()
    data.to_netcdf(path, engine="h5netcdf")


def test_refits_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    plant(tmp_path)
    before = claims.evaluate("C9", tmp_path, study_of())["corrected"]["interval"]

    def spoil(data: xr.Dataset) -> None:
        data["theta"][:10, 0, 0] = np.nan

    _edit(tmp_path / "dimensions" / "bootstrap.nc", spoil)
    after = claims.evaluate("C9", tmp_path, study_of())["corrected"]["interval"]
    assert after == pytest.approx(before, abs=0.02)
    assert after != before

    def spoil_most(data: xr.Dataset) -> None:
        data["theta"][:25, 0, 0] = np.nan

    _edit(tmp_path / "dimensions" / "bootstrap.nc", spoil_most)
    assert "only 15 refits" in claims.evaluate("C9", tmp_path, study_of())["corrected"]["why"]


def test_fits_that_did_not_converge_cannot_be_used_unless_the_study_says_so(tmp_path: Path) -> None:
    failed = {"seeds": "[]", "seeds_failed": json.dumps({"0": "not finite", "1": "loss still falling"})}
    plant(tmp_path, World(edits={"corrected_attrs": failed}))
    for claim in ("C8", "C9", "C11", "C13"):
        record = claims.evaluate(claim, tmp_path, study_of())
        assert record["corrected"]["verdict"] == "cannot test"
        assert "no seed of the fit corrected converged" in record["corrected"]["why"]
        assert record["as_published"]["estimate"] is not None
    record = claims.evaluate("C9", tmp_path, study_of(unconverged=True))
    assert record["corrected"]["verdict"] == "reproduced"
    assert "2 of 2 seeds of the fit corrected did not converge" in record["corrected"]["why"]
    some = {"seeds": "[0]", "seeds_failed": json.dumps({"1": "loss still falling"})}
    plant(tmp_path, World(edits={"corrected_attrs": some}))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "reproduced"
    assert "1 of 2 seeds of the fit corrected did not converge" in record["corrected"]["why"]
    plant(tmp_path, World(edits={"published_attrs": failed}))
    record = claims.evaluate("C11", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "reproduced"
    assert record["as_published"]["verdict"] == "cannot test"
    assert "no seed of the fit published converged" in record["as_published"]["why"]


def test_families_leave_out_what_did_not_converge(tmp_path: Path) -> None:
    plant(tmp_path)
    both = {"bootstrap.nc": "replicate", "leave_one_out.nc": "benchmark"}

    def mark(count: int) -> Callable[[xr.Dataset], None]:
        def change(data: xr.Dataset) -> None:
            (dim,) = set(both.values()) & set(data.dims)
            data["converged"] = (dim, (np.arange(data.sizes[dim]) >= count).astype(np.int8))

        return change

    _edit(tmp_path / "dimensions" / "bootstrap.nc", mark(20))
    assert verdicts(tmp_path, "C9", "C11") == {"C9": "reproduced", "C11": "reproduced"}
    _edit(tmp_path / "dimensions" / "bootstrap.nc", mark(21))
    for claim in ("C9", "C11"):
        record = claims.evaluate(claim, tmp_path, study_of())
        assert "only 19 refits" in record["corrected"]["why"]
        assert (
            claims.evaluate(claim, tmp_path, study_of(unconverged=True))["corrected"]["verdict"]
            == "reproduced"
        )
    _edit(tmp_path / "dimensions" / "bootstrap.nc", mark(0))
    _edit(tmp_path / "dimensions" / "leave_one_out.nc", mark(99))
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["why"] == "the fit without bbq did not converge"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"p_congruence": 0.3},
            "its loadings come back no better than in data simulated without it (p = .30)",
        ),
        (
            {"p_ability_r": 0.2},
            "its abilities come back no better than in data simulated without it (p = .20)",
        ),
        ({"p_lineages": 0.04}, "it does not hold over lineages (p = .04)"),
        (
            {"p_scrambled": 0.5},
            "its loadings agree over halves no more than those of scrambled items do (p = .50)",
        ),
        ({"absent": 0.1}, "a half lacks it in 10% of the splits"),
        ({}, "it does not come back in halves of the models and items"),
    ],
)
def test_the_reason_why_a_dimension_is_missing_is_told(entry: dict[str, float], text: str) -> None:
    sound = {"p_congruence": 0.0099, "p_ability_r": 0.0099, "p_lineages": 0.001, "congruence_mean": 0.9}
    assert failings(sound | entry, 0.0099) == text
    dimensions = [{"dimension": 1, "passes": False, **sound, **entry}, {"dimension": 2, "passes": True}]
    reason = missing_dimension({"dimensions": dimensions, "p_needed": 0.0099}, 2)
    assert str(reason) == f"no second dimension: dimension 1 is missing already: {text}"
    assert reason is not None
    assert reason.verdict == "not reproduced"


def test_a_claim_of_ones_own_rests_on_the_last_ability_that_it_names(tmp_path: Path) -> None:
    """Where the second dimension fails, what is said of the second ability falls, and what is said of the first stands."""
    plant(tmp_path, World(passes=(True, False)))
    first = judge(tmp_path, r_of("bbh", 1))
    assert first["corrected"]["verdict"] == "reproduced"
    assert first["needs_dimension"] == 1
    for change in ({"ability": 2}, {"ability": 1, "against": 2, "statistic": "abs_r_difference"}):
        second = judge(tmp_path, r_of("bbh", **change))
        assert second["corrected"]["verdict"] == "not reproduced"
        assert second["needs_dimension"] == 2
        assert "no second dimension" in second["corrected"]["why"]


def test_an_ability_that_vanishes_without_the_benchmark_cannot_be_compared_with_it(tmp_path: Path) -> None:
    plant(tmp_path)

    def spoil(data: xr.Dataset) -> None:
        data["congruence"].loc[{"benchmark": "bbq"}] = 0.4

    _edit(tmp_path / "dimensions" / "leave_one_out.nc", spoil)
    record = claims.evaluate("C9", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "cannot test"
    assert "without bbq reasoning is another ability (congruence .40)" in record["corrected"]["why"]
    assert verdicts(tmp_path, "C10")["C10"] == "reproduced"


def test_one_benchmark_leaves_out_categories(tmp_path: Path) -> None:
    subsets = (
        Subset("mine", "reasoning", 0.0, name="a"),
        Subset("mine", "safety", 78.0, name="b"),
    )
    plant(tmp_path, World(subsets=subsets))

    def rename(data: xr.Dataset) -> None:
        data.attrs["unit"] = "category"

    path = tmp_path / "dimensions" / "leave_one_out.nc"
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        data = opened.load()
    path.unlink()
    both = xr.concat([data, data], dim="benchmark").assign_coords(benchmark=["reasoning", "safety"])
    both.attrs["unit"] = "category"
    both.to_netcdf(path, engine="h5netcdf")
    part = {"name": "n", "select": {"category": "safety"}, "ability": "safety", "region": {"low": 0.3}}
    assert judge(tmp_path, {"kind": "correlation", "parts": [part]})["corrected"]["verdict"] == "reproduced"
    record = judge(tmp_path, r_of("mine"))
    assert (
        "2 values of category, and abilities are estimated without one at a time"
        in record["corrected"]["why"]
    )


def test_several_benchmarks_at_once_have_no_ability_without_them(planted: Path) -> None:
    record = judge(planted, r_of("bbh", select={"benchmark": ["bbh", "gpqa"]}))
    assert record["corrected"]["verdict"] == "cannot test"
    assert "2 values of benchmark" in record["corrected"]["why"]
    record = judge(planted, r_of("bbh", select={"benchmark": ["bbh", "gpqa"]}, each="benchmark"))
    assert record["corrected"]["verdict"] == "reproduced"
    assert [part["name"] for part in record["corrected"]["parts"]] == ["bbh: n", "gpqa: n"]


def test_an_absent_value_of_each_makes_the_claim_untestable(planted: Path) -> None:
    part = {"name": "n", "statistic": "angle", "select": {"benchmark": ["bbh", "bbbh"]}, "each": "benchmark",
            "ability": "reasoning", "region": {"high": 45}}  # fmt: skip
    record = judge(planted, {"kind": "direction", "parts": [part]})
    assert record["corrected"]["verdict"] == "cannot test"
    assert [one["verdict"] for one in record["corrected"]["parts"]] == ["reproduced", "cannot test"]
    assert 'bbbh: n: this study has no items with benchmark bbbh (it has "bbh")' in record["corrected"]["why"]
    part["select"] = {"category": "none"}
    record = judge(planted, {"kind": "direction", "parts": [part]})
    assert (record["corrected"]["verdict"], record["corrected"]["parts"]) == ("cannot test", [])
    claims.write(record, planted / "m.json", planted / "m.csv")
    assert len(pd.read_csv(planted / "m.csv")) == 0


def test_one_dimension_has_no_directions(tmp_path: Path) -> None:
    plant(tmp_path)
    for name in ("corrected/consensus.nc", "bootstrap.nc"):
        path = tmp_path / "dimensions" / name
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
        path.unlink()
        one = {dim: [0] for dim in ("dimension", "ability") if dim in data.dims}
        data.isel(one).to_netcdf(path, engine="h5netcdf")
    part = {"name": "n", "select": {"benchmark": "bbh"}, "ability": 1, "region": {"high": 45}}
    record = judge(tmp_path, {"kind": "direction", "parts": [part]})
    assert record["corrected"]["why"] == "the fit has one dimension, and a direction needs two"
    assert record["corrected"]["verdict"] == "cannot test"


def test_few_testlets_are_said_to_be_few(tmp_path: Path) -> None:
    plant(tmp_path)
    for policy in ("honest", "published"):
        path = tmp_path / "matrix" / policy / "items.parquet"
        items = pd.read_parquet(path)
        items.loc[items["benchmark"] == "xstest", "testlet"] = "one"
        items.loc[items["benchmark"] == "harmbench", "testlet"] = None
        items.to_parquet(path)
    (part,) = claims.evaluate("C13", tmp_path, study_of())["corrected"]["parts"]
    assert "items (too few testlets)" in part["interval_kind"]
    part = claims.evaluate("C11", tmp_path, study_of())["corrected"]["parts"][0]
    assert "draws of items, by" in part["interval_kind"]


def test_results_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    plant(tmp_path)
    plant(tmp_path / "other", World(subsets=STUDY[:-1]))
    (tmp_path / "dimensions" / "bootstrap.nc").write_bytes(
        (tmp_path / "other" / "dimensions" / "bootstrap.nc").read_bytes()
    )
    with pytest.raises(InputError, match="the results do not belong together"):
        claims.evaluate("C13", tmp_path, study_of())


def test_a_missing_file_or_claim_is_told(planted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"matrix/honest/items.parquet: a claim needs this result"):
        claims.evaluate("C9", tmp_path, study_of())
    with pytest.raises(InputError, match=r'no claim has this id: found C99. Did you mean "C9"'):
        claims.evaluate("C99", planted, study_of())


def test_missing_outcomes_are_borne(tmp_path: Path) -> None:
    plant(tmp_path, World(missing=0.3))
    found = verdicts(tmp_path, "C2", "C9", "C10", "C13")
    assert set(found.values()) == {"reproduced"}


# -- counts -------------------------------------------------------------------------------------------------


def test_counts_are_compared_with_what_was_delivered(tmp_path: Path, planted: Path) -> None:
    plant(tmp_path)
    path = tmp_path / "outcomes" / "mine" / "items.parquet"
    items = pd.read_parquet(path)
    pd.concat([items, items.iloc[[0]].assign(question_id="lost")]).to_parquet(path)
    record = claims.evaluate("C1", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "not reproduced"
    assert "630 in the matrix, 631 as the sources delivered" in record["corrected"]["why"]
    assert record["as_published"]["verdict"] == "not compared"
    assert record["as_published"]["why"] == "published counts are compared at full size only"
    record = claims.evaluate("C1", planted, study_of(published_size=True))
    assert record["as_published"]["verdict"] == "differs"
    assert "all items 630 against 34,301" in record["as_published"]["why"]
    assert record["corrected"]["verdict"] == "reproduced"


def test_kept_items_are_counted_again(tmp_path: Path) -> None:
    plant(tmp_path)
    path = tmp_path / "matrix" / "published" / "items.parquet"
    items = pd.read_parquet(path)
    # as if rounding had kept an item that lies on the bound
    edge = items.index[items["observed"].gt(0) & items["mean"].isin([0.05, 0.95])]
    assert len(edge) > 0
    items.loc[edge[0], "kept"] = True
    items.to_parquet(path)
    record = claims.evaluate("C2", tmp_path, study_of())
    assert record["corrected"]["verdict"] == "not reproduced"
    assert "exactly on a bound and so dropped" in record["corrected"]["why"]


REGION = {"name": "n", "select": {"benchmark": "bbq"}, "ability": "reasoning", "region": {"high": 45}}


@pytest.mark.parametrize(
    ("published", "full", "expected"),
    [
        # without a published figure nothing matches, however well the region holds
        ({}, False, (None, "not compared")),
        ({"text": "along reasoning"}, False, ("same", "matches")),
        # figures about named data: whole and real, real but not at full size, or lacking
        ({"text": "along reasoning", "needs": {"benchmark": ["bbq", "wmdp"]}}, True, ("same", "matches")),
        ({"text": "along reasoning", "needs": {"benchmark": ["bbq", "wmdp"]}}, False, ("other", "matches")),
        (
            {"text": "along reasoning", "needs": {"benchmark": ["bbq", "elsewhere"]}},
            True,
            ("other", "not compared"),
        ),
    ],
)
def test_only_published_figures_are_compared_and_whose_data_they_are_about_is_told(
    published: dict[str, Any], full: bool, expected: tuple[str | None, str], planted: Path
) -> None:
    claim = {"id": "M", "statement": "s", "kind": "direction", "published": published, "parts": [REGION]}
    record = claims.evaluate("M", planted, study_of([claim], published_size=full))
    assert (record["published"]["data"], record["as_published"]["verdict"]) == expected
    assert record["as_published"]["estimate"] is not None
    assert record["corrected"]["verdict"] == "reproduced"


@pytest.mark.parametrize(("replicates", "trial"), [(98, True), (99, False), (10, True), (1, True)])
@pytest.mark.parametrize("passes", [True, False])
def test_too_few_null_data_sets_are_a_trial_without_verdicts(
    replicates: int, trial: bool, passes: bool, tmp_path: Path
) -> None:
    needed = max(0.01, 1 / (1 + replicates))
    edits = {"stability": {"replicates": replicates, "p_needed": needed}}
    plant(tmp_path, World(passes=(True, passes), edits=edits))
    for claim in ("C3", "C6", "C7", "C9", "C13"):
        record = claims.evaluate(claim, tmp_path, study_of())
        if trial:
            assert record["corrected"]["verdict"] == "exploratory"
            assert record["corrected"]["why"].startswith(
                f"a trial: chance was judged from {replicates} simulated"
            )
            assert record["corrected"]["estimate"] is not None
        else:
            assert record["corrected"]["verdict"] == ("reproduced" if passes else "not reproduced")
    # counts do not rest on it, and what cannot be tested is no trial
    assert verdicts(tmp_path, "C1")["C1"] == "reproduced"
    lacking = {**REGION, "select": {"benchmark": "elsewhere"}}
    claim = {"id": "M", "statement": "s", "kind": "direction", "needs_dimension": 2, "parts": [lacking]}
    assert claims.evaluate("M", tmp_path, study_of([claim]))["corrected"]["verdict"] == "cannot test"


def test_a_number_of_dimensions_from_few_null_data_sets_is_a_trial(tmp_path: Path) -> None:
    plant(tmp_path)
    path = tmp_path / "dimensions" / "number.json"
    number = files.read_json(path)
    files.write_json({**number, "eigen": {**number["eigen"], "p_needed": 1 / 11}}, path)
    record = judge(tmp_path, {"kind": "dimensionality", "parts": [{"name": "n", "expected": 2}]})
    assert record["corrected"]["verdict"] == "exploratory"
    assert record["corrected"]["interval_kind"] == "range of two methods, not a confidence interval"
    assert record["corrected"]["level"] is None


def test_counts_may_name_their_number(planted: Path) -> None:
    def count(expected: int) -> Record:
        part = {"name": "n", "statistic": "items", "select": {"benchmark": "bbq"}, "expected": expected}
        return judge(planted, {"kind": "count", "parts": [part]})

    assert count(30)["corrected"]["verdict"] == "reproduced"
    assert count(31)["corrected"]["verdict"] == "not reproduced"
    assert count(30)["as_published"]["verdict"] == "not compared"
    assert count(30)["as_published"]["why"] == "there is no published figure"
    assert count(30)["published"]["data"] is None


# -- tables of correlations ---------------------------------------------------------------------------------


FACTS = {"table": "facts.csv", "column": "r"}
FLIPS = {"statistic": "sign_flips", "above": 0.3, "at_most": 0}


def _table(folder: Path, rows: list[tuple[str, str, float]], parts: list[dict[str, Any]]) -> Record:
    with open(folder / "facts.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["benchmark", "ability", "r"])
        writer.writerows(rows)
    full = [
        {"name": str(k), "published": {"table": "facts.csv", "column": "r"}, **part}
        for k, part in enumerate(parts)
    ]
    study = study_of([{"id": "M", "statement": "s", "kind": "correlation", "parts": full}], folder)
    return claims.evaluate("M", folder, study)


def test_a_table_is_judged_by_cells_that_surely_and_possibly_agree(tmp_path: Path) -> None:
    plant(tmp_path, World(models=100, lineages=90))
    names = ["bbh", "gpqa", "ifeval", "math", "wmdp", "strongreject"]
    rows = [(name, ability, 0.0) for name in names for ability in ("reasoning", "safety")]
    close = {"statistic": "count_within", "within": 0.1, "at_least": len(rows)}
    first = _table(tmp_path, rows, [close])
    found = {(cell["benchmark"], cell["ability"]): cell for cell in first["corrected"]["parts"][0]["cells"]}
    truth = [(name, ability, found[name, ability]["estimate"]) for name, ability, _ in rows]

    record = _table(tmp_path, truth, [close, {**close, "within": 0.6}, {**close, "at_least": 0}])
    narrow, wide, any_number = record["corrected"]["parts"]
    # every estimate agrees, but not every interval lies within .1
    assert narrow["estimate"] == 12
    assert 0 < narrow["interval"][0] < narrow["interval"][1] == 12
    assert narrow["verdict"] == "inconclusive"
    assert [wide["verdict"], wide["interval"]] == ["reproduced", [12, 12]]
    assert any_number["verdict"] == "reproduced"
    assert record["corrected"]["verdict"] == "inconclusive"
    assert narrow["region"]["text"] == "at least 12 of 12"
    assert record["as_published"]["parts"][0]["estimate"] >= 11

    wrong = [(name, ability, r - 0.9 if r > 0 else r + 0.9) for name, ability, r in truth]
    record = _table(tmp_path, wrong, [{**close, "at_least": 1}])
    assert record["corrected"]["verdict"] == "not reproduced"
    assert record["corrected"]["parts"][0]["interval"] == [0, 0]
    assert record["as_published"]["verdict"] == "differs"


def test_turned_signs_are_counted_where_correlations_are_large(tmp_path: Path) -> None:
    plant(tmp_path)
    right = [
        ("bbh", "reasoning", 0.9),
        ("wmdp", "reasoning", -0.9),
        ("strongreject", "safety", 0.9),
        ("bbh", "safety", -0.1),
    ]
    record = _table(tmp_path, right, [FLIPS])
    (part,) = record["corrected"]["parts"]
    assert (part["verdict"], part["estimate"], part["interval"]) == ("reproduced", 0, [0, 0])
    assert len(part["cells"]) == 3  # the small one is not looked at
    assert part["region"]["text"] == "at most 0 of 3"
    assert record["as_published"]["verdict"] == "matches"
    record = _table(tmp_path, [("bbh", "reasoning", -0.9), *right[1:]], [FLIPS])
    assert record["corrected"]["verdict"] == "not reproduced"
    assert record["as_published"]["verdict"] == "differs"


def test_a_table_with_an_absent_benchmark_is_not_counted_over_the_rest(tmp_path: Path) -> None:
    plant(tmp_path)
    rows = [("bbh", "reasoning", 0.9), ("none", "reasoning", 0.9)]
    record = _table(tmp_path, rows, [{"statistic": "count_within", "within": 0.5, "at_least": 1}])
    assert record["corrected"]["verdict"] == "cannot test"
    assert (
        "1 of the published figures cannot be compared: this study has no items with benchmark none"
        in (record["corrected"]["why"])
    )
    assert record["as_published"]["verdict"] == "cannot test"
    (tmp_path / "facts.csv").write_text("benchmark,ability,r\nbbh,reasoning,high\n", encoding="utf-8")
    part = {
        "name": "n",
        "statistic": "sign_flips",
        "above": 0.3,
        "at_most": 0,
        "published": {"table": "facts.csv", "column": "r"},
    }
    study = study_of([{"id": "M", "statement": "s", "kind": "correlation", "parts": [part]}], tmp_path)
    with pytest.raises(InputError, match=r'facts.csv: row 2, column "r": found "high"; expected a number'):
        claims.evaluate("M", tmp_path, study)


# -- records ------------------------------------------------------------------------------------------------


def test_records_have_one_shape_and_their_tables_agree(planted: Path, tmp_path: Path) -> None:
    study = study_of()
    # the fixture has neither pairs of models nor labels; these kinds have tests of their own
    judged = [name for name, claim in claims.load(study).items() if claim.kind not in ("pair", "label")]
    records = [claims.evaluate(name, planted, study) for name in judged]
    for record in records:
        name = record["claim"]
        claims.write(record, tmp_path / f"{name}.json", tmp_path / f"{name}.csv")
        text = (tmp_path / f"{name}.json").read_text(encoding="utf-8")
        again = claims.read(tmp_path / f"{name}.json")
        assert json.loads(text) == again
        assert set(record) == {
            "claim", "kind", "statement", "unit", "needs_dimension", "published", "as_published", "corrected",
            "check_values", "sample", "why", "figures", "tables", "simulated", "provenance",
        }  # fmt: skip
        assert record["corrected"]["parts"]
        for part in record["corrected"]["parts"]:
            assert part["verdict"] in ("reproduced", "not reproduced", "inconclusive")
            assert part["why"]
            assert part["interval"][0] <= part["estimate"] <= part["interval"][1]
            assert part["models"] == 100
            assert 0 < part["items"] <= 630
            assert part["unit"] in words.UNITS
        rows = pd.read_csv(tmp_path / f"{name}.csv")
        assert (rows["claim"] == name).all()
        parts = rows[rows["row"] == "part"]
        assert parts["estimate"].tolist() == pytest.approx(
            [part["estimate"] for part in record["corrected"]["parts"]]
        )
        if record["kind"] in ("direction", "contrast"):
            vectors = rows[rows["row"] == "direction"]
            assert len(vectors) == len(parts) * (2 if record["kind"] == "contrast" else 1)
            assert vectors[["direction_1", "direction_2"]].notna().all(axis=None)
            angles = rows[rows["row"] == "angle"]
            assert len(angles) == 2 * len(vectors)
            assert angles["estimate"].between(0, 180).all()
            assert set(angles["part"]) == set(parts["part"])
        if name == "C14":  # the figure shown is that of the part shown
            assert record["corrected"]["headline"] == "ToxiGen with safety"
            assert record["published"]["value"] == 0.32
        if name == "C8":
            assert (rows["row"] == "cell").sum() == 32 + sum(
                abs(cell["published"]) > 0.3 for cell in record["corrected"]["parts"][0]["cells"]
            )
    table = claims.table(records)
    assert table.columns[:3].tolist() == ["claim", "kind", "statement"]
    assert table[["as_published_verdict", "corrected_verdict", "why", "region"]].notna().all(axis=None)
    assert table["claim"].tolist() == [record["claim"] for record in records]
    claims.write_table(records, tmp_path / "claims.csv")
    back = pd.read_csv(tmp_path / "claims.csv")
    assert back["corrected_verdict"].tolist() == table["corrected_verdict"].tolist()
    assert back["corrected_low"].to_numpy() == pytest.approx(table["corrected_low"].to_numpy(dtype=float))
    claims.write_latex(records, tmp_path / "claims.tex", tmp_path / "parts.tex")
    for name, count in (
        ("claims", len(records)),
        ("parts", sum(len(one["corrected"]["parts"]) for one in records)),
    ):
        text = (tmp_path / f"{name}.tex").read_text(encoding="utf-8")
        body = text.split("\\endlastfoot")[1].split("\\end{longtable}")[0]
        assert body.count("\\\\\n") == count
        # what LaTeX would take for commands is escaped
        assert not re.search(r"(?<!\\)[_%#$]", body)
        assert text.count("{") == text.count("}")
    assert "trustllm\\_jailbreaktrigger: along safety" in text
    c9 = next(one for one in records if one["claim"] == "C9")["corrected"]
    ends = " & ".join(["C9", "BBQ with reasoning more than with safety"])
    assert f"{ends} & {number(c9['estimate'], 'r')} [{number(c9['interval'][0], 'r')}" in text


def test_a_record_is_the_same_again(planted: Path, tmp_path: Path) -> None:
    for name in ("C8", "C11", "C13"):
        texts = []
        for k in range(2):
            claims.write(
                claims.evaluate(name, planted, study_of()), tmp_path / f"{k}.json", tmp_path / f"{k}.csv"
            )
            texts.append((tmp_path / f"{k}.json").read_bytes() + (tmp_path / f"{k}.csv").read_bytes())
        assert texts[0] == texts[1]


def test_all_inputs_are_named_beforehand(planted: Path, tmp_path: Path) -> None:
    study = study_of()
    for name, claim in claims.load(study).items():
        home = tmp_path / name
        for path in claims.inputs_of(claim, ["mine"]):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_bytes((planted / path).read_bytes())
        claims.evaluate(name, home, study)  # finds all that it needs


def test_simulated_studies_say_so(planted: Path) -> None:
    study = study_of()
    assert claims.evaluate("C2", planted, study)["simulated"] is False
    assert claims.evaluate("C2", planted, replace(study, simulated=True))["simulated"] is True
    assert claims.evaluate("C9", planted, study)["provenance"]["data_hash"] == "0" * 64
    assert claims.evaluate("C9", planted, study)["provenance"]["config_sha256"] == study.config_sha256


# -- short forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "found"),
    [
        (World(moved=0.2), {"C15": "not reproduced", "C16": "reproduced", "C21": "reproduced"}),
        (World(moved=0.045), {"C15": "inconclusive", "C16": "reproduced", "C21": "reproduced"}),
        (World(larger=2), {"C15": "reproduced", "C16": "not reproduced", "C21": "reproduced"}),
        (World(larger=20), {"C15": "reproduced", "C16": "inconclusive", "C21": "reproduced"}),
        (World(risen=-0.02), {"C15": "reproduced", "C16": "reproduced", "C21": "not reproduced"}),
        (World(risen=0.012), {"C15": "reproduced", "C16": "reproduced", "C21": "inconclusive"}),
    ],
)
def test_what_short_forms_lose_settles_their_claims(
    world: World, found: dict[str, str], tmp_path: Path
) -> None:
    assert verdicts(plant(tmp_path, world), *found) == found


def test_short_forms_as_published_are_those_of_its_filter(planted: Path, tmp_path: Path) -> None:
    study = study_of()
    records = {name: claims.evaluate(name, planted, study) for name in ("C15", "C16", "C21")}
    assert {name: one["as_published"]["verdict"] for name, one in records.items()} == {
        "C15": "matches",
        "C16": "matches",
        "C21": "matches",
    }
    # the advantage over random forms was never published, and is not compared
    assert [part["verdict"] for part in records["C15"]["as_published"]["parts"]] == ["matches", None]
    # a benchmark that vanished from the filtered set goes with nothing
    plant(tmp_path)
    path = tmp_path / "shortforms" / "published_filter.csv"
    table = pd.read_csv(path)
    # a filter that keeps most of the items says nothing about a tenth of them
    table.assign(kept=20).to_csv(path, index=False)
    record = claims.evaluate("C15", tmp_path, study)
    assert record["as_published"]["verdict"] == "cannot test"
    assert "meant to keep 10% of the items, keeps 67% of these" in record["as_published"]["why"]
    table.loc[table["benchmark"] == "bbh", ["r_form", "kept"]] = [np.nan, 0]
    table.to_csv(path, index=False)
    record = claims.evaluate("C15", tmp_path, study)
    assert record["as_published"]["estimate"] == pytest.approx(15 / 16)
    kept = next(one for one in record["corrected"]["parts"][0]["filter"] if one["cut"] == 0.9)
    assert kept["vanished"] == ["bbh"]
    assert (kept["items"], kept["kept"]) == (480, 60)
    assert kept["nominal"] == pytest.approx(48)


@pytest.mark.parametrize(
    ("claim", "name", "column"),
    [
        ("C15", "shortforms/published_filter.csv", "r_form"),
        ("C6", "dimensions/reproducibility.csv", "congruence"),
        ("C20", "dimensions/mix.csv", "ability_r"),
    ],
)
def test_a_text_among_the_numbers_of_a_result_is_told_with_its_place(
    tmp_path: Path, claim: str, name: str, column: str
) -> None:
    plant(tmp_path)
    table = pd.read_csv(tmp_path / name, dtype=str, keep_default_na=False)
    table.loc[1, column] = "0.5?"
    table.to_csv(tmp_path / name, index=False)
    with pytest.raises(InputError, match=rf'{name}: row 3, column "{column}": a text .* found "0.5\?"'):
        claims.evaluate(claim, tmp_path, study_of())


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (
            {"statistic": "kept", "share": 0.3, "within": 0.05},
            "no form information of the share .30 was made (there are .10, ",
        ),
        (
            {"statistic": "weakening", "share": 0.2, "ability": "safety"},
            "no items were taken away for the ability safety",
        ),
    ],
)
def test_a_form_that_was_not_made_cannot_be_tested(part: dict[str, Any], why: str, planted: Path) -> None:
    record = judge(planted, {"kind": "shortform", "parts": [{"name": "n", "region": {"low": 0.0}, **part}]})
    assert record["corrected"]["verdict"] == "cannot test"
    assert why in record["corrected"]["why"]


def test_a_trial_that_judged_nothing_says_why(tmp_path: Path) -> None:
    plant(tmp_path)
    files.write_json(
        {"folds": 0, "why_not": "the models come from 2 lineages"}, tmp_path / "shortforms" / "summary.json"
    )
    for name in ("C15", "C16", "C21"):
        corrected = claims.evaluate(name, tmp_path, study_of())["corrected"]
        assert corrected["verdict"] == "cannot test"
        assert "the models come from 2 lineages" in corrected["why"]
