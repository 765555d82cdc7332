from __future__ import annotations

import copy
import json
import os
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
    assert study.models == {"include": [], "exclude": [], "duplicates": "most_complete", "contrasts": []}
    assert study.filter == {
        "published": {"min_mean": 0.05, "max_mean": 0.95},
        "honest": {"min_mean": 0, "max_mean": 1},
        "min_observed": 5,
    }
    assert study.fits["em"] == {"sweeps": 2000, "tolerance": 1e-3}
    assert study.fits["nuts"]["draws"] == 150
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
        if key not in ("study", "sources", "title", "simulate"):
            assert shown[key] == value, key
    assert set(shown) == set(schema["properties"])


def test_the_default_study_is_valid_and_simulated(repository: Path, tmp_path: Path) -> None:
    raw = yaml.safe_load((repository / "config.yaml").read_text())
    study = config.load({**raw, "claims": {"file": []}}, tmp_path)
    assert study.simulated
    assert study.simulate == {"variant": "twin", "scale": 0.1, "models": 100, "seed": 1}
    assert study.files("safety")["folder"] == "results/sources/simulated_safety_eval"
    assert not study.published_size


def test_the_planted_table_is_valid_and_simulated(repository: Path, tmp_path: Path) -> None:
    raw = yaml.safe_load((repository / "workflow" / "studies" / "planted.yaml").read_text())
    study = config.load({**raw, "claims": {"file": []}}, tmp_path)
    assert study.simulated
    assert study.files("planted")["responses"] == "results/planted/sources/planted/simulated_responses.csv.gz"


def test_full_effort_stands_in_the_place_of_the_other_settings(repository: Path, tmp_path: Path) -> None:
    raw = yaml.safe_load((repository / "config.yaml").read_text()) | {"claims": {"file": []}, "full": True}
    study = config.load(raw, tmp_path)
    assert study.fits["nuts"] == {
        "run": True,
        "chains": 4,
        "warmup": 500,
        "draws": 2500,
        "thinning": 1,
        "max_tree_depth": 5,
    }
    assert (study.dimensions["bootstrap"], study.dimensions["folds"]) == (1000, 10)
    own = config.load(raw | {"full_effort": {"dimensions": {"bootstrap": 70}}}, tmp_path)
    assert (own.dimensions["bootstrap"], own.dimensions["splits"]) == (70, 200)
    assert "full_effort.fits.svi" in message(raw | {"full_effort": {"fits": {"svi": {}}}}, tmp_path)


@pytest.mark.parametrize(("scale", "models", "whole"), [(1, 100, True), (1, 99, False), (0.1, 100, False)])
def test_the_whole_double_has_the_published_size(
    repository: Path, tmp_path: Path, scale: float, models: int, whole: bool
) -> None:
    raw = yaml.safe_load((repository / "config.yaml").read_text()) | {"claims": {"file": []}}
    raw["simulate"] = {"scale": scale, "models": models}
    assert config.load(raw, tmp_path).published_size is whole


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
        ({"fits": {"em": {"tolerance": 0}}}, "fits.em.tolerance", "0", "at least 1e-09"),
        ({"fits": {"dims": 0}}, "fits.dims", "0", "at least 1"),
        ({"fits": {"engine": "SVI2"}}, "fits.engine", '"SVI2"', "one of svi, em, nuts"),
        ({"filter": {"honest": {"max_mean": 95}}}, "filter.honest.max_mean", "95", "at most 1"),
        ({"models": ["a"]}, "models", "a list of 1", "a mapping"),
        ({"models": {"exclude": "a"}}, "models.exclude", '"a"', "a list"),
        ({"models": {"exclude": ["a", "a"]}}, "models.exclude", "a", "twice"),
        ({"dimensions": {"anchors": {"bbq": 2}}}, "dimensions.anchors.bbq", "2", "one of 1, -1"),
        ({"models": {"duplicates": False}}, "models.duplicates", "false", "put a word in quotes"),
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


def test_the_schema_knows_the_kinds_of_sources(repository: Path) -> None:
    schema = json.loads((repository / "workflow/schemas/config.schema.json").read_text())
    kinds = schema["$defs"]["source"]["properties"]["kind"]["enum"]
    assert set(kinds) == {"table", "simulated", *config.RAW, *config.FILES}
    rules = json.loads((repository / "workflow/schemas/scoring.schema.json").read_text())
    assert set(rules["properties"]) == {*config.RAW, *config.FORMATS}


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
    assert f"sources[0].responses: this file does not exist: looked for {base / 'data/respones.csv'}." in text
    assert f"sources[0].items: this file does not exist: looked for {base / 'items.csv'}." in text
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


def test_faults_of_extra_claims_name_the_configuration(minimal_config: Make, base: Path) -> None:
    odd = {"id": "X1", "kind": "nope", "statement": "x"}
    with pytest.raises(InputError, match=r"claims\.extra: X1\.kind: found .*nope"):
        claims.load(config.load(minimal_config(claims={"file": [], "extra": [odd]}), base))


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
    assert f"claims.file: this file does not exist: looked for {base / 'no.yaml'}." in text
    assert "claims.file: []" in text
    (base / "folder").mkdir()
    text = message(minimal_config(claims={"file": ["folder"]}), base)
    assert f"claims.file: this is a folder and not a file: looked for {base / 'folder'}." in text
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


# -- what no schema can say


@pytest.mark.parametrize(
    ("key", "found", "todo"),
    [(1, "1", '"1"'), (True, "true", '"true"'), (None, "nothing", "before the colon"), (0.5, "0.5", '"0.5"')],
    ids=str,
)
@pytest.mark.parametrize("where", ["dimensions.anchors", "fits", "sources[0].options", "sources[0].columns"])
def test_keys_are_texts(
    minimal_config: Make, base: Path, where: str, key: object, found: str, todo: str
) -> None:
    raw = minimal_config(dimensions={"anchors": {}}, fits={}, options={}, columns={})
    level: Any = raw["sources"][0] if where.startswith("sources") else raw
    for part in where.removeprefix("sources[0].").split("."):
        level = level[part]
    level[key] = 1
    text = message(raw, base)
    assert f"configuration: {where}: a key is not a text: found {found}" in text
    assert todo in text


def test_the_claims_of_the_study_have_texts_as_keys(
    minimal_config: Make, base: Path, claim: dict[str, Any]
) -> None:
    claim["parts"][0]["select"][7] = "x"
    text = message(minimal_config(claims={"file": [], "extra": [claim]}), base)
    assert "claims.extra[0].parts[0].select: a key is not a text: found 7" in text


def test_a_value_that_contains_itself(minimal_config: Make, base: Path) -> None:
    raw = minimal_config(models={})
    raw["models"]["include"] = raw["models"]
    assert "configuration: a value contains itself" in message(raw, base)


def numbers(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Any:
    """Yield the path and schema of every number below the keys of a schema."""
    for key, part in schema.get("properties", {}).items():
        yield from numbers(part, (*path, key))
        kinds = part.get("type", "")
        if "number" in kinds or "integer" in kinds:
            yield (*path, key), part


def test_every_number_has_a_least_and_a_greatest_value(repository: Path) -> None:
    schema = json.loads((repository / "workflow/schemas/config.schema.json").read_text())
    whole = {"properties": {**schema["properties"], "$defs": {"properties": schema["$defs"]}}}
    found = dict(numbers(whole))
    assert len(found) >= 20
    constants = [path for path in found if path[-1] == "value"]  # of a column: any
    assert [path for path, part in found.items() if not {"minimum", "maximum"} <= set(part)] == constants


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**30, -1, 1e308], ids=str)
@pytest.mark.parametrize(
    "where",
    [
        *("fits.svi.steps", "fits.svi.learning_rate", "fits.em.tolerance", "fits.nuts.draws", "fits.seeds"),
        *("fits.priors.tau_scale", "filter.min_observed", "filter.honest.min_mean", "dimensions.bootstrap"),
    ],
)
def test_numbers_that_cannot_be_are_told_once_by_their_key(
    minimal_config: Make, base: Path, where: str, value: float
) -> None:
    raw = minimal_config()
    *above, last = where.split(".")
    level = raw
    for part in above:
        level = level.setdefault(part, {})
    level[last] = value
    text = message(raw, base)
    assert text.startswith(f"configuration: {where}: found ")
    assert "\n" not in text
    assert len(text) < 150


@pytest.mark.parametrize(
    ("change", "where", "todo"),
    [
        ({"title": 7}, "title", 'Put it into quotes: "7"'),
        ({"models": {"include": [True]}}, "models.include[0]", 'Put it into quotes: "true"'),
        ({"claims": {"file": "a.yaml"}}, "claims.file", "Write it as a list: [a.yaml]"),
    ],
)
def test_the_way_out_of_a_wrong_type(
    minimal_config: Make, base: Path, change: dict[str, Any], where: str, todo: str
) -> None:
    text = message(minimal_config(**change), base)
    assert f"configuration: {where}: found " in text
    assert todo in text


def test_whole_floats_are_signs(minimal_config: Make, base: Path) -> None:
    study = config.load(minimal_config(dimensions={"anchors": {"a": -1.0}}), base)
    assert str(study.dimensions["anchors"]["a"]) == "-1"


# -- paths and names


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ("taken", "this is a file, so that no folder can be made there"),
        ("taken/below", "this is a file, so that no folder can be made there"),
        ("a{b}", 'holds "{"'),
        ("<a>", 'holds "<"'),
        ("a\nb", "U+000A, control character"),
        ("a\u202eb", "U+202E, right-to-left override"),
        ("a/ b", "begins or ends with a space"),
        ("~/a", '"~" is not filled in here'),
        ("$HOME/a", '"$" is not filled in here'),
        ("s3://a/b", "an address and not a path"),
        ("dangling", "a link to what does not exist"),
        ("/", "the root of the file system"),
        ("./", "the working directory itself"),
        ("x/..", "the working directory itself"),
        ("x" * 300, "longer than 255 bytes"),
        ("x/" * 2000, "longer than 3500 bytes"),
    ],
)
def test_results_folders_that_cannot_be(minimal_config: Make, base: Path, results: str, words: str) -> None:
    (base / "taken").write_text("")
    (base / "dangling").symlink_to(base / "gone" / "there")
    text = message(minimal_config(results=results), base)
    assert text.startswith("configuration: results: ")
    assert words in text
    assert text.isprintable()
    assert not (base / "taken").is_dir()


@pytest.mark.parametrize(
    ("results", "folder"),
    [
        ("data/results", "data"),
        ("data", "data"),
        ("data", "data/logs"),
        ("data/m1", "data"),
        ("x/../data/r", "data"),
    ],
)
def test_results_and_sources_lie_apart(minimal_config: Make, base: Path, results: str, folder: str) -> None:
    """What a run makes would else be taken for what it reads, and a changed source would not be seen."""
    (base / "data" / "logs").mkdir(parents=True)
    sources = [{"name": "mine", "kind": "files", "files": folder}]
    text = message(minimal_config(results=results, sources=sources), base)
    assert "sources[0].files: results would be written where outcomes are read from" in text
    apart = minimal_config(results="data-results", sources=sources)
    assert config.load(apart, base).results == "data-results"


def test_results_folders_that_can_be(minimal_config: Make, base: Path) -> None:
    for given, plain in (("./a//b/", "a/b"), ("a b", "a b"), ("//x", "/x"), ("a/../c", "c"), ("é", "é")):
        assert config.load(minimal_config(results=given), base).results == plain


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"items": "folder.csv"}, "sources[0].items", "this is a folder and not a file: looked for"),
        ({"items": "a{b}.csv"}, "sources[0].items", 'the path holds "{"'),
        ({"models_file": "a\n.csv"}, "sources[0].models", "U+000A"),
        ({"items": "x" * 300 + ".csv"}, "sources[0].items", "longer than 255 bytes"),
        ({"items": "pipe.csv"}, "sources[0].items", "not an ordinary file"),
        ({"items": "i.csv\n"}, "sources[0].items", "the path of a .csv"),
    ],
)
def test_files_that_cannot_be_read(
    minimal_config: Make, base: Path, change: dict[str, Any], where: str, words: str
) -> None:
    (base / "folder.csv").mkdir()
    os.mkfifo(base / "pipe.csv")
    text = message(minimal_config(**change), base)
    assert f"configuration: {where}: " in text
    assert words in text
    assert "\n" not in text


def test_folders_that_are_files(base: Path) -> None:
    raw = {
        "study": "test",
        "sources": [{"name": "a", "kind": "leaderboard", "folder": "responses.csv"}],
        "claims": {"file": []},
    }
    text = message(raw, base)
    assert f"sources[0].folder: this is a file and not a folder: looked for {base / 'responses.csv'}." in text


@pytest.mark.parametrize("name", ["a\n", "a" * 101, "a/b", "", "é"])
def test_names_that_become_paths(minimal_config: Make, base: Path, claim: dict[str, Any], name: str) -> None:
    raw = minimal_config(study=name, claims={"file": [], "extra": [{**claim, "id": name}]})
    raw["sources"][0]["name"] = name
    text = message(raw, base)
    assert "study: found" in text
    assert "sources[0].name: found" in text
    raw = minimal_config(claims={"file": [], "extra": [{**claim, "id": name}]})
    assert "claims.extra[0].id: found" in message(raw, base)


def test_names_that_differ_in_case_only(minimal_config: Make, base: Path, claim: dict[str, Any]) -> None:
    raw = minimal_config()
    raw["sources"] = [{**raw["sources"][0], "name": name} for name in ("a", "b", "A")]
    text = message(raw, base)
    assert 'sources[2].name: another source is called "a"' in text
    assert "found A" in text
    assert "sources[1]" not in text
    raw = minimal_config(claims={"file": [], "extra": [claim, {**claim, "id": "m1"}]})
    assert 'claims.extra: the claims "M1" and "m1" share a file' in message(raw, base)


def test_a_claim_is_not_called_as_the_table_of_claims(
    minimal_config: Make, base: Path, claim: dict[str, Any]
) -> None:
    raw = minimal_config(claims={"file": [], "extra": [{**claim, "id": "Claims"}]})
    assert 'claims.extra: this id is taken by the table of all claims: found "Claims"' in message(raw, base)


def test_titles_can_be_seen(minimal_config: Make, base: Path) -> None:
    assert config.load(minimal_config(title="A title\n"), base).title == "A title"
    text = message(minimal_config(title="a\u202eb", report={"title": "c\x07"}), base)
    assert "title: the title holds a character that cannot be seen: found U+202E" in text
    assert "report.title: the title holds a character that cannot be seen: found U+0007" in text


def test_what_is_asked_of_a_finished_study_changes_nothing_else(minimal_config: Make, base: Path) -> None:
    plain = config.load(minimal_config(), base)
    assert plain.score == {"calibration": "", "models": []}
    assert plain.shortform["size"] == 100
    assert plain.adaptive["exposure"] == 0.2
    new = {"name": "new", "kind": "table", "responses": "responses.csv"}
    asked = config.load(
        minimal_config(score={"models": [new]}, shortform={"size": 7}, adaptive={"size": 9}), base
    )
    assert asked.config_sha256 == plain.config_sha256
    newcomers = config.newcomers(asked)
    assert [source.name for source in newcomers.sources] == ["new"]
    assert newcomers.source("new").options["columns"] == {}
    assert newcomers.models["exclude"] == []
    config.need_newcomers(asked)
    with pytest.raises(InputError, match="no new models"):
        config.need_newcomers(plain)


@pytest.mark.parametrize(
    ("section", "keys", "words"),
    [
        ("score", {"calibration": "gone"}, ("score.calibration", "gone")),
        ("shortform", {"calibration": "."}, ("shortform.calibration", "there is no calibration.json")),
        (
            "score",
            {"models": [{"name": "a", "kind": "table", "responses": "gone.csv"}]},
            ("score.models[0].responses",),
        ),
        ("score", {"models": [{"name": "a", "kind": "simulated"}]}, ("score.models[0].kind", "this machine")),
        ("score", {"models": [{"name": "a", "kind": "table"}]}, ("score.models[0].responses", "required")),
        (
            "score",
            {"models": [{"name": "a", "kind": "helm"}]},
            ("score.models[0]", "one of folder and files"),
        ),
        ("score", {"models": "new.csv"}, ("score.models", "a list")),
        ("shortform", {"size": None}, ("shortform", "size or a standard_error")),
        ("shortform", {"balance": "some"}, ("shortform.balance", "proportional")),
        ("shortform", {"sise": 3}, ("shortform.sise", '"size"')),
        ("adaptive", {"exposure": 0}, ("adaptive.exposure", "0")),
        ("adaptive", {"criterion": "T"}, ("adaptive.criterion", "D")),
    ],
)
def test_a_fault_in_what_is_asked_of_a_finished_study_is_named(
    section: str, keys: dict[str, Any], words: tuple[str, ...], minimal_config: Make, base: Path
) -> None:
    said = message(minimal_config(**{section: keys}), base)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("name", ["scores", "matrix", "compared"])
def test_a_file_in_the_place_of_a_folder_of_results_is_named(
    name: str, minimal_config: Make, base: Path
) -> None:
    (base / "results").mkdir()
    (base / "results" / name).write_text("")
    said = message(minimal_config(results="results"), base)
    assert "results: this is a file, so that no folder can be made there" in said
    assert f'results/{name}"' in said


def test_the_folders_of_results_are_those_that_rules_write_into() -> None:
    text = "".join(
        path.read_text()
        for path in sorted((Path(config.__file__).parents[2] / "workflow" / "rules").glob("*.smk"))
    )
    written = set(re.findall(r"<results>/([a-z_]+)/", text))
    assert written <= set(config.FOLDERS)


def test_a_calibration_that_lacks_a_file_is_named(minimal_config: Make, base: Path) -> None:
    (base / "copied").mkdir()
    for name in config.CALIBRATION[:-2]:
        (base / "copied" / name).write_text("")
    said = message(minimal_config(score={"calibration": "copied"}), base)
    assert "there is no benchmarks.csv in this folder" in said
    assert "it lacks benchmarks.csv, README.md" in said


@pytest.mark.parametrize("section", ["score", "shortform", "compare"])
@pytest.mark.parametrize("written", ["results/calibration", "results/../results/calibration/", "linked"])
def test_the_calibration_that_the_study_itself_would_write_is_not_taken_for_one_from_elsewhere(
    section: str, written: str, minimal_config: Make, base: Path
) -> None:
    """Named in a file that is given alone, it would be made anew out of the data of another study."""
    own = base / "results" / "calibration"
    own.mkdir(parents=True)
    (base / "linked").symlink_to(own)
    for name in config.CALIBRATION:
        (own / name).write_text("")
    said = message(minimal_config(results="results", **{section: {"calibration": written}}), base)
    assert f"{section}.calibration: this is the folder that a study with these results writes itself" in said
    config.load(minimal_config(results="other", **{section: {"calibration": written}}), base)


def test_calibrations_have_the_files_that_are_asked_for() -> None:
    from benchmirt.ability import calibration

    assert calibration.FILES == config.CALIBRATION


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (
            {"respones": "responses.csv"},
            'published_responses.respones: unknown key. Did you mean "responses"?',
        ),
        (
            {"responses": "responses.csv", "column": {}},
            'published_responses.column: unknown key. Did you mean "columns"?',
        ),
        (
            {"responses": "responses.csv", "columns": {"content": "text"}},
            'published_responses.columns.content: unknown key. Did you mean "content_hash"?',
        ),
        ({"responses": "gone.csv"}, "published_responses.responses: this file does not exist"),
        ({"responses": "r.txt"}, "published_responses.responses"),
        (
            {"responses": "responses.csv", "items": "gone.csv"},
            "published_responses.items: this file does not exist",
        ),
        ({"prefix": "acc_"}, "published_responses.responses: this key is required and missing"),
        (
            {"responses": {"hub": "org/{model}"}},
            "published_responses.responses.hub: {model} stands for one model",
        ),
        ({"responses": {"hub": "org/x", "revison": "main"}}, 'Did you mean "revision"?'),
        (
            {
                "responses": "responses.csv",
                "columns": {"benchmark": {"column": "question_id", "pattern": "a"}},
            },
            "published_responses.columns.benchmark: a pattern needs exactly one group",
        ),
    ],
)
def test_faults_of_the_published_responses(
    minimal_config: Make, base: Path, section: dict[str, Any], told: str
) -> None:
    assert told in message(minimal_config(published_responses=section), base)


def test_the_nearest_of_a_misspelt_section_is_the_published_responses(
    minimal_config: Make, base: Path
) -> None:
    text = message(minimal_config(published_response={"responses": "responses.csv"}), base)
    assert 'published_response: unknown key. Did you mean "published_responses"?' in text


def test_the_published_road_is_a_table_that_is_no_source(minimal_config: Make, base: Path) -> None:
    assert config.load(minimal_config(), base).published_road is None
    table = {"responses": {"hub": "org/x"}, "prefix": "acc_"}
    study = config.load(minimal_config(published_responses=table), base)
    road = study.published_road
    assert road is not None
    assert [source.name for source in study.sources] == ["mine"]
    assert road.files("r") == {"responses": "r/fetched/_published_responses/responses"}
    assert config.load(config.dump(study), base) == study
    assert config.newcomers(study).published_road is None
