from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmirt import claims, config
from benchmirt.errors import InputError

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "responses.csv").write_text("question_id,a,b\n1,1,0\n")
    return tmp_path


@pytest.fixture
def claim() -> dict[str, Any]:
    return {
        "id": "M1",
        "kind": "direction",
        "statement": "Harmful prompts point to safety.",
        "published": {"text": "none"},
        "needs_dimension": 2,
        "parts": [
            {
                "name": "harmful",
                "select": {"benchmark": "toxigen", "subcategory_one": ["a", "b"]},
                "ability": "safety",
                "statistic": "angle",
                "region": {"low": 0, "high": None},
            }
        ],
        "why": "half a right angle",
    }


def message(raw: Any, base: Path) -> str:
    with pytest.raises(InputError) as caught:
        config.load(raw, base)
    return str(caught.value)


def test_defaults_are_filled_everywhere(minimal_config: Make, base: Path) -> None:
    study = config.load(minimal_config(), base)
    assert (study.name, study.title, study.results, study.simulated) == ("test", "test", "results", False)
    assert study.models == {"include": [], "exclude": [], "duplicates": "most_complete"}
    assert study.filter == {
        "published": {"min_mean": 0.05, "max_mean": 0.95},
        "honest": {"min_mean": 0, "max_mean": 1},
        "min_observed": 5,
    }
    assert study.fits["em"] == {"sweeps": 300, "tolerance": 1e-3}
    assert study.fits["nuts"]["draws"] == 500
    assert study.dimensions["splits"] == 50
    assert study.source("mine").options["columns"] == {}
    assert study.files("mine") == {"responses": "responses.csv"}
    with pytest.raises(KeyError):
        study.source("yours")


def test_the_given_configuration_is_not_changed(minimal_config: Make, base: Path) -> None:
    raw = minimal_config()
    before = copy.deepcopy(raw)
    study = config.load(raw, base)
    assert raw == before
    again = config.load(config.dump(study), base)
    assert again == study


def test_every_default_of_the_schema_stands_in_the_default_study(
    repository: Path, minimal_config: Make
) -> None:
    """config.yaml shows every knob at its default value."""
    shown = yaml.safe_load((repository / "config.yaml").read_text())
    schema = json.loads((repository / "workflow/schemas/config.schema.json").read_text())
    filled = config._fill({"study": "x", "sources": []}, schema, schema)
    for key, value in filled.items():
        if key not in ("study", "sources", "title"):
            assert shown[key] == value, key
    assert set(shown) == set(schema["properties"])


def test_the_default_study_is_valid_and_simulated(repository: Path, tmp_path: Path) -> None:
    raw = yaml.safe_load((repository / "config.yaml").read_text())
    study = config.load({**raw, "claims": {"file": []}}, tmp_path)
    assert study.simulated
    assert study.files("twin")["responses"] == "results/sources/twin/simulated_responses.csv.gz"


@pytest.mark.parametrize("name", ["agentdojo", "korbench", "mmlu_pro", "zeroeval", "speechmap", "joint"])
def test_the_ready_studies_are_valid(repository: Path, tmp_path: Path, name: str) -> None:
    raw = yaml.safe_load((repository / "workflow" / "studies" / f"{name}.yaml").read_text())
    raw.setdefault("claims", {})["file"] = []
    study = config.load(raw, tmp_path, check_files=False)
    assert study.name == name
    assert not study.simulated
    own = claims.load(study)
    assert len(own) >= 2
    assert not any(re.fullmatch(r"C\d+", claim) for claim in own), "ids of the published claims are taken"
    assert "this file does not exist" in message(raw, tmp_path)


def test_the_hash_depends_on_content_only(minimal_config: Make, base: Path) -> None:
    def digest(raw: dict[str, Any]) -> str:
        return config.load(raw, base).config_sha256

    first = digest(minimal_config())
    assert digest({"fits": {"dims": 2}, **minimal_config()}) == first, "a default that is spelt out"
    assert digest(minimal_config(results="elsewhere")) == first, "the place of the results"
    assert digest(minimal_config(fits={"dims": 3})) != first


@pytest.mark.parametrize(
    ("change", "where", "hint"),
    [
        ({"fitts": {}}, "fitts", '"fits"'),
        ({"seeds": 3}, "seeds", '"fits.seeds"'),
        ({"fits": {"seed": 3}}, "fits.seed", '"seeds"'),
        ({"filter": {"publised": {}}}, "filter.publised", '"published"'),
        ({"filter": {"honest": {"minmean": 0}}}, "filter.honest.minmean", '"min_mean"'),
        ({"fits": {"nuts": {"sweeps": 3}}}, "fits.nuts.sweeps", '"fits.em.sweeps"'),
        ({"models": {"qqq": 1}}, "models.qqq", "include, exclude, duplicates"),
        ({"columns": {"benchmrk": "x"}}, "sources[0].columns.benchmrk", '"benchmark"'),
        ({"model_columns": {"familly": "x"}}, "sources[0].model_columns.familly", '"family"'),
    ],
)
def test_unknown_keys_are_named_in_full_with_the_nearest_right_one(
    minimal_config: Make, base: Path, change: dict[str, Any], where: str, hint: str
) -> None:
    text = message(minimal_config(**change), base)
    assert f"configuration: {where}: unknown key." in text
    assert hint in text
    assert "\n" not in text


def test_unknown_keys_of_a_source_depend_on_its_kind(minimal_config: Make, base: Path) -> None:
    raw = minimal_config()
    raw["sources"][0]["respones"] = "x"
    assert 'sources[0].respones: unknown key. Did you mean "responses"?' in message(raw, base)
    raw["sources"] = [{"name": "s", "kind": "simulated", "responses": "x.csv"}]
    assert "sources[0].responses: unknown key. Known here: name, kind, variant" in message(raw, base)


@pytest.mark.parametrize(
    ("change", "where", "found", "expected"),
    [
        ({"filter": None}, "filter", "nothing (null)", "a mapping"),
        ({"fits": {"seeds": None}}, "fits.seeds", "nothing (null)", "a whole number"),
        ({"fits": {"seeds": 2.5}}, "fits.seeds", "2.5", "a whole number"),
        ({"fits": {"seeds": True}}, "fits.seeds", "true", "a whole number"),
        ({"fits": {"seeds": "ten"}}, "fits.seeds", '"ten"', "a whole number"),
        ({"fits": {"em": {"tolerance": "1e-4"}}}, "fits.em.tolerance", '"1e-4"', "0.0001"),
        ({"fits": {"em": {"tolerance": 0}}}, "fits.em.tolerance", "0", "more than 0"),
        ({"fits": {"dims": 0}}, "fits.dims", "0", "at least 1"),
        ({"fits": {"engine": "SVI2"}}, "fits.engine", '"SVI2"', "one of svi, em, nuts"),
        ({"filter": {"honest": {"max_mean": 95}}}, "filter.honest.max_mean", "95", "at most 1"),
        ({"models": ["a"]}, "models", "a list of 1", "a mapping"),
        ({"models": {"exclude": "a"}}, "models.exclude", '"a"', "a list"),
        ({"models": {"exclude": ["a", "a"]}}, "models.exclude", "a", "twice"),
        ({"dimensions": {"anchors": {"bbq": 2}}}, "dimensions.anchors.bbq", "2", "one of 1, -1"),
        ({"study": "my study"}, "study", '"my study"', "a short name"),
        ({"results": ""}, "results", "nothing", "at least 1"),
        ({"columns": {"testlet": {"pattern": "(x)"}}}, "sources[0].columns.testlet", "pattern", "{column"),
        ({"options": {"bbq": 1}}, "sources[0].options.bbq", "1", "at least 2"),
    ],
)
def test_wrong_values_name_key_found_and_expected(
    minimal_config: Make, base: Path, change: dict[str, Any], where: str, found: str, expected: str
) -> None:
    text = message(minimal_config(**change), base)
    assert f"configuration: {where}: " in text
    assert found in text
    assert expected in text
    assert "\n" not in text


def test_whole_floats_are_whole_numbers(minimal_config: Make, base: Path) -> None:
    seeds = config.load(minimal_config(fits={"seeds": 3.0}), base).fits["seeds"]
    assert seeds == 3
    assert isinstance(seeds, int)


def test_missing_keys(minimal_config: Make, base: Path) -> None:
    assert "the configuration is empty" in message({}, base)
    assert "the configuration is empty" in message(None, base)
    text = message({"study": "x", "source": []}, base)
    assert "sources: this key is required and missing" in text
    assert 'source: unknown key. Did you mean "sources"?' in text
    raw = minimal_config()
    del raw["sources"][0]["kind"]
    assert "sources[0].kind: this key is required and missing" in message(raw, base)
    raw = minimal_config()
    del raw["sources"][0]["responses"]
    assert "sources[0].responses: this key is required and missing" in message(raw, base)
    raw["sources"][0]["kind"] = "tabel"
    assert 'sources[0].kind: found the text "tabel"; expected one of table' in message(raw, base)
    assert 'Did you mean "table"?' in message(raw, base)


def test_several_faults_come_together(minimal_config: Make, base: Path) -> None:
    text = message(minimal_config(fits={"seed": 1, "dims": "two"}, modles={}), base)
    assert "3 faults" in text
    for part in ("fits.seed:", "fits.dims:", "modles:"):
        assert part in text


def test_a_missing_file_is_shown_with_its_absolute_path(minimal_config: Make, base: Path) -> None:
    text = message(minimal_config("data/respones.csv", items="items.csv"), base)
    assert f"sources[0].responses: this file does not exist: found {base / 'data/respones.csv'}." in text
    assert f"sources[0].items: this file does not exist: found {base / 'items.csv'}." in text
    config.load(minimal_config("data/respones.csv"), base, check_files=False)


def test_wrong_endings_are_told_at_once(minimal_config: Make, base: Path) -> None:
    text = message(minimal_config("responses.xlsx"), base)
    assert "sources[0].responses" in text
    assert ".csv, .csv.gz or .parquet" in text


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"models": {"include": ["a"], "exclude": ["a"]}}, ["models:", "both included and excluded", "a"]),
        ({"filter": {"published": {"min_mean": 0.95}}}, ["filter.published", "no item can pass"]),
        ({"fits": {"dims": 5}}, ["fits.max_dims", "found 4", "which is 5"]),
        (
            {"columns": {"testlet": {"column": "question_id", "pattern": "^(a"}}},
            ["sources[0].columns.testlet", "not a regular expression"],
        ),
        (
            {"columns": {"testlet": ["a", {"column": "question_id", "pattern": "(a)(b)"}]}},
            ["sources[0].columns.testlet", "exactly one group", "with 2"],
        ),
        ({"model_columns": {"family": "vendor"}}, ["sources[0].model_columns", "models: FILE"]),
    ],
)
def test_checks_of_meaning(
    minimal_config: Make, base: Path, change: dict[str, Any], parts: list[str]
) -> None:
    text = message(minimal_config(**change), base)
    for part in parts:
        assert part in text


def test_source_names_are_unique(minimal_config: Make, base: Path) -> None:
    raw = minimal_config()
    raw["sources"] *= 2
    text = message(raw, base)
    assert "sources[1].name: two sources have this name: found mine" in text


# -- claims


def test_claims_come_from_files_then_extra_and_only_filters(
    minimal_config: Make, base: Path, claim: dict[str, Any]
) -> None:
    (base / "c.yaml").write_text(yaml.safe_dump({"claims": [{**claim, "id": "F1"}]}))
    raw = minimal_config(claims={"file": ["c.yaml"], "extra": [claim]})
    study = config.load(raw, base)
    assert [entry["id"] for entry in config.claims_table(study)] == ["F1", "M1"]
    raw["claims"]["only"] = ["M1"]
    assert [entry["id"] for entry in config.claims_table(config.load(raw, base))] == ["M1"]
    raw["claims"]["only"] = ["m-1"]
    assert 'claims.only: no claim has this id: found m-1. Did you mean "M1"?' in message(raw, base)


def test_resources_are_found_beside_the_workflow(minimal_config: Make, base: Path, repository: Path) -> None:
    raw = minimal_config(claims={"file": ["workflow/schemas/config.schema.json"]})
    text = message(raw, base)
    assert str(repository / "workflow" / "schemas") in text
    assert "expected a list" in text


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("kind", None, ["claims.extra[0].kind", "nothing (null)", "a text"]),
        ("statement", "", ["claims.extra[0].statement", "at least 1"]),
        ("id", "a/b", ["claims.extra[0].id", "a short name"]),
    ],
)
def test_claims_are_checked(
    minimal_config: Make,
    base: Path,
    claim: dict[str, Any],
    key: str,
    value: Any,
    parts: list[str],
) -> None:
    claim[key] = value
    text = message(minimal_config(claims={"file": [], "extra": [claim]}), base)
    for part in parts:
        assert part in text


def test_claim_ids_are_unique(minimal_config: Make, base: Path, claim: dict[str, Any]) -> None:
    (base / "c.yaml").write_text(yaml.safe_dump([claim]))
    text = message(minimal_config(claims={"file": ["c.yaml"], "extra": [claim]}), base)
    assert 'claims.extra: two claims have the id "M1"' in text
    assert "c.yaml" in text


def test_claims_files_that_cannot_be_read(minimal_config: Make, base: Path) -> None:
    text = message(minimal_config(claims={"file": ["no.yaml"]}), base)
    assert f"claims.file: this file with claims does not exist: found {base / 'no.yaml'}." in text
    (base / "bad.yaml").write_text("- id: A\n  kind: [count\n")
    text = message(minimal_config(claims={"file": ["bad.yaml"]}), base)
    assert "bad.yaml: row 3: this is not YAML" in text


# -- fits


def test_the_fits_of_the_default_study(minimal_config: Make, base: Path) -> None:
    rows = {row["fit"]: row for row in config.fits_table(config.load(minimal_config(), base))}
    assert list(rows) == ["published", "corrected", "dims-k1", "dims-k2", "dims-k3", "dims-k4", "nuts"]
    assert rows["published"]["asymptotes"] is False
    assert rows["published"]["policy"] == "published"
    assert rows["corrected"]["seeds"] == list(range(10))
    assert all(row["policy"] == "honest" for fit, row in rows.items() if fit != "published")
    assert {rows[f"dims-k{k}"]["dims"] for k in range(1, 5)} == {1, 2, 3, 4}


def test_the_fits_follow_the_configuration(minimal_config: Make, base: Path) -> None:
    fits = {"engine": "em", "dims": 1, "max_dims": 2, "seeds": 3, "asymptotes": False, "nuts": {"run": False}}
    rows = config.fits_table(config.load(minimal_config(fits=fits), base))
    assert [row["fit"] for row in rows] == ["published", "corrected", "dims-k1", "dims-k2"]
    assert [row["engine"] for row in rows] == ["svi", "em", "em", "em"]
    assert rows[0]["dims"] == rows[1]["dims"] == 1
    assert rows[0]["seeds"] == [0, 1, 2]
    assert not any(row["asymptotes"] for row in rows)


def test_importing_is_light() -> None:
    heavy = ("jax", "pandas", "numpy", "pyarrow")
    code = f"import sys, benchmirt.config; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
