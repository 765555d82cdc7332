from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from claims_fixture import study_of

from benchmirt import claims
from benchmirt.claims import label, prompt_labels, spec
from benchmirt.errors import InputError
from benchmirt.prediction import methods, splits
from benchmirt.shortform import published


def entry(**changes: Any) -> dict[str, Any]:
    """Return a sound entry with changes; None removes a key."""
    made = {
        "id": "M1",
        "kind": "correlation",
        "statement": "Mine follows reasoning.",
        "parts": [part()],
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def part(**changes: Any) -> dict[str, Any]:
    made = {
        "name": "it does",
        "select": {"benchmark": "mine"},
        "ability": "reasoning",
        "region": {"low": 0.5},
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def told(*entries: object) -> str:
    with pytest.raises(InputError) as caught:
        claims.check(list(entries), file="mine.yaml")
    return str(caught.value)


def test_a_sound_entry_becomes_a_claim() -> None:
    (claim,) = claims.check([entry(published={"text": ".9", "value": 0.9}, needs_dimension=2, why="so")])
    assert (claim.id, claim.kind, claim.needs_dimension, claim.published_value) == (
        "M1",
        "correlation",
        2,
        0.9,
    )
    (only,) = claim.parts
    assert only.statistic == "r"  # the kind's first
    assert only.unit == "r"
    assert only.select == {"benchmark": ("mine",)}
    assert only.region is not None
    assert only.region.text == "above .50"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (entry(kind="corelation"), 'M1.kind: found the text "corelation"; expected one of'),
        (entry(kind="corelation"), 'Did you mean "correlation"?'),
        (entry(statemnt="x"), 'M1.statemnt: unknown key. Did you mean "statement"?'),
        (entry(statement=None, statemnt="x"), 'M1.statement: this key is required and missing. Did you mean it by'),
        (entry(statement=""), "M1.statement: found an empty text; expected a text"),
        (entry(id="a b"), 'M1.id: found the text "a b"'.replace("M1", "a b")),
        (entry(parts=None), "M1.parts: this key is required and missing"),
        (entry(parts=[]), "M1.parts: a claim without parts says nothing"),
        (entry(parts={"name": "x"}), "M1.parts: found a mapping; expected a list of parts"),
        (entry(parts=["x"]), 'M1.parts[0]: found the text "x"; expected a mapping'),
        (entry(parts=[part(), part()]), "M1.parts: two parts have this name: found it does"),
        (entry(needs_dimension=0), "M1.needs_dimension: found 0; expected a whole number, at least 1"),
        (entry(needs_dimension=True), "M1.needs_dimension: found true"),
        (entry(needs={"benchmrk": "x"}), 'M1.needs.benchmrk: unknown key (not a column of the items table). Did you'),
        (entry(published={"value": "high"}), 'M1.published.value: found the text "high"; expected a number'),
        (entry(published={"texts": "x"}), 'M1.published.texts: unknown key. Did you mean "text"?'),
        (entry(parts=[part(abilty="x", ability=None)]),
         'M1.parts[0].abilty: unknown key for the statistic r. Did you mean "ability"?'),
        (entry(parts=[part(ability=None)]), "M1.parts[0].ability: this key is required and missing"),
        (entry(parts=[part(ability=0)]), "M1.parts[0].ability: found 0; expected a category, or the number"),
        (entry(parts=[part(statistic="abs_r_diference")]), 'Did you mean "abs_r_difference"?'),
        (entry(parts=[part(statistic="angle")]), 'M1.parts[0].statistic: found the text "angle"; expected one of r,'),
        (entry(parts=[part(statistic="r_difference", against="reasoning")]), "an ability is set against itself"),
        (entry(parts=[part(against="safety")]), "M1.parts[0].against: unknown key for the statistic r"),
        (entry(parts=[part(region={"low": 1, "high": 0})]), "M1.parts[0].region: nothing lies in this region"),
        (entry(parts=[part(region={"low": 1.2})]), "M1.parts[0].region: no value lies in this region: found low 1.2"),
        (entry(parts=[part(region={"low": -2, "high": 2})]), "M1.parts[0].region: every value lies in this region"),
        (entry(parts=[part(region={})]), "M1.parts[0].region: a region without a bound is always true"),
        (entry(parts=[part(region={"lo": 1})]), 'M1.parts[0].region.lo: unknown key. Did you mean "low"?'),
        (entry(parts=[part(region={"low": "0"})]), 'M1.parts[0].region.low: found the text "0"; expected a number'),
        (entry(parts=[part(region=3)]), "M1.parts[0].region: found 3; expected a mapping"),
        (entry(parts=[part(select={})]), "M1.parts[0].select: nothing is selected"),
        (entry(parts=[part(select={"subject": "x"})]), "M1.parts[0].select.subject: unknown key"),
        (entry(parts=[part(select={"benchmark": []})]), "M1.parts[0].select.benchmark: found an empty list"),
        (entry(parts=[part(select={"benchmark": [None]})]), "expected a value or a list of values"),
        (entry(parts=[part(each="benchmarks")]), 'M1.parts[0].each: found the text "benchmarks"; expected one of'),
        (entry(parts=[part(tolerance=-1)]), "M1.parts[0].tolerance: found -1; expected a number, at least 0"),
        (entry(parts=[part(published="x")]), "M1.parts[0].published: found the text"),
        (entry(parts=[part(published={"table": "t.csv"})]), "M1.parts[0].published.column: this key is required"),
        (entry(parts=[{"name": "n", "statistic": "count_within", "within": 0.1, "at_least": 2, "published": 3}]),
         "M1.parts[0].published: found 3; expected {table: FILE, column: NAME}"),
        (entry(kind="stability", parts=[{"name": "x"}]), "M1.parts[0].dimension: this key is required and missing"),
        (entry(kind="contrast", parts=[part(statistic="angle_difference")]), "M1.parts[0].compare: this key is req"),
        (entry(kind="shortform", parts=[{"name": "n", "share": 2, "within": 0.1, "region": {"low": 0}}]),
         "M1.parts[0].share: found 2; expected a number above 0 and at most 1"),
        (entry(kind="shortform", parts=[{"name": "n", "share": 0.1, "form": "filtr", "region": {"low": 0}}]),
         'M1.parts[0].form: found the text "filtr"; expected one of information, filter. Did you mean "filter"?'),
        ("text", '[0]: found the text "text"; expected a mapping'),
        (entry(id=None), "[0].id: this key is required and missing"),
    ],
)  # fmt: skip
def test_each_fault_gets_one_clear_sentence(changed: object, sentence: str) -> None:
    text = told(changed)
    assert sentence in text
    assert "mine.yaml" in text
    assert "Traceback" not in text


def test_all_faults_are_told_at_once() -> None:
    text = told(entry(id="A", kind="corelation"), entry(id="B", statment="x"), entry(id="B"))
    assert all(name in text for name in ("A.kind", "B.statment", "B: two claims have this id"))


@pytest.mark.parametrize("entries", [None, 3, {"id": "x"}, "text"])
def test_entries_that_are_no_list_are_refused(entries: object) -> None:
    with pytest.raises(InputError, match="expected a list of claims"):
        claims.check(entries)


def test_a_table_of_facts_must_exist_and_have_the_column(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("benchmark,mean\nmine,0.5\n", encoding="utf-8")
    for table, column, sentence in (
        ("none.csv", "mean", "none.csv: a claim names a table of facts that does not exist"),
        (
            "facts.csv",
            "meen",
            'no such column: found meen; expected one of benchmark, mean. Did you mean "mean"?',
        ),
    ):
        study = study_of([entry(parts=[part(published={"table": table, "column": column})])], tmp_path)
        with pytest.raises(InputError) as caught:
            claims.load(study)
        assert sentence in str(caught.value)
    for name, sentence in (("a{x}.csv", 'holds "{"'), ("x" * 300 + ".csv", "longer than 255 bytes")):
        study = study_of([entry(parts=[part(published={"table": name, "column": "mean"})])], tmp_path)
        with pytest.raises(InputError, match=sentence):
            claims.load(study)
    (tmp_path / "facts.csv").write_text("name,mean\nmine,0.5\n", encoding="utf-8")
    study = study_of([entry(parts=[part(published={"table": "facts.csv", "column": "mean"})])], tmp_path)
    with pytest.raises(InputError, match="no column that says whose figures these are"):
        claims.load(study)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "benchmark,mean,mean\na,1,2\n",
            'row 1, column "mean": two columns have the same name: found it in columns 2 and 3',
        ),
        ("benchmark,mean\na,1\na,2\n", "row 3: two rows are about the same: found a, as in row 2"),
        ("benchmark,mean\na\n", "row 2: the row does not fit the header"),
        ("benchmark,mean\na,1,2\n", "row 2: the row does not fit the header"),
        ("benchmark,mean\na,nan\n", 'row 2, column "mean": found "nan"; expected a number'),
        ("benchmark,mean\na,inf\n", 'found "inf"'),
        ("benchmark,mean\na,2_0\n", 'found "2_0"'),
        ("benchmark,mean\na,٢\n", "expected a number"),
        ('benchmark,mean\n"a,1\n', "row 2: the row cannot be split into fields"),
        ("benchmark, mean\na,1\n", "begins or ends with a space"),
        ("benchmark,mean\na,\n", "the table has no figure in this column"),
        ("", "the file is empty"),
        ("benchmark,mean\na,é\n".encode("latin-1"), "row 2, byte 3: the text is not UTF-8"),
    ],
)
def test_a_table_of_facts_is_read_strictly(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    path = tmp_path / "facts.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    study = study_of([entry(parts=[part(published={"table": "facts.csv", "column": "mean"})])], tmp_path)
    with pytest.raises(InputError) as caught:
        claims.load(study)
    assert sentence in str(caught.value)
    path.write_text("\ufeffbenchmark,mean\na,1e-1\nb,\n", encoding="utf-8")
    assert spec.read_figures(path, "mean") == [({"benchmark": "a", "mean": "1e-1"}, 0.1)]


# -- the shipped claims -------------------------------------------------------------------------------------


def test_the_claims_for_any_study_are_sound_and_need_no_name(repository: Path) -> None:
    home = repository / "workflow"
    entries = yaml.safe_load((home / "resources" / "claims_any.yaml").read_text(encoding="utf-8"))
    schema = json.loads((home / "schemas" / "claims.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(entries)
    for claim in claims.check(entries):
        assert claim.why
        assert not claim.needs
        for one in claim.parts:
            assert (dict(one.select), one.category) == ({}, None)
            assert not isinstance(one.ability, str)


def test_the_published_claims_are_sound_and_follow_the_schema(repository: Path) -> None:
    path = repository / "workflow" / "resources" / "claims.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema = json.loads(
        (repository / "workflow" / "schemas" / "claims.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(entries)
    loaded = claims.load(study_of())
    assert list(loaded) == [f"C{number}" for number in range(1, 23)]
    assert {claim.kind for claim in loaded.values()} == set(claims.KINDS)
    assert all(claim.why and claim.published_text for claim in loaded.values())
    # whatever rests on a second dimension says so
    for claim in loaded.values():
        abilities = {one.ability for one in claim.parts} | {one.against for one in claim.parts}
        tables = any(
            isinstance(one.published, spec.Figure) and one.published.column == "r" for one in claim.parts
        )
        if "safety" in abilities or tables:
            assert claim.needs_dimension == 2, claim.id


def test_schema_and_library_know_the_same_keys(repository: Path) -> None:
    schema = json.loads(
        (repository / "workflow" / "schemas" / "claims.schema.json").read_text(encoding="utf-8")
    )
    defs = schema["$defs"]
    assert set(defs["claim"]["properties"]) == set(spec._CLAIM)
    assert set(defs["claim"]["required"]) == set(spec._REQUIRED)
    assert defs["claim"]["properties"]["kind"]["enum"] == list(spec.KINDS)
    assert defs["column"]["enum"] == list(spec.ITEM_COLUMNS)
    keys = set(spec._COMMON)
    names = []
    for statistics in spec.STATISTICS.values():
        for name, rules in statistics.items():
            names.append(name)
            keys |= {*rules.needs, *rules.takes}
    assert set(defs["part"]["properties"]) == keys
    assert sorted(defs["part"]["properties"]["statistic"]["enum"]) == sorted(names)


def test_facts_add_up(repository: Path) -> None:
    folder = repository / "workflow" / "resources"

    def rows(name: str) -> list[dict[str, str]]:
        with open(folder / name, encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    benchmarks = {row["benchmark"]: row for row in rows("benchmarks.csv")}
    assert sum(int(row["items"]) for row in benchmarks.values()) == 34_301
    assert sum(int(row["items"]) for row in benchmarks.values() if row["category"] == "safety") == 13_379
    correlations = rows("published_correlations.csv")
    assert {(row["benchmark"], row["ability"]) for row in correlations} == {
        (name, ability) for name in benchmarks for ability in ("reasoning", "safety")
    }
    for row in correlations:
        turned = -1 if row["ability"] == "safety" else 1
        assert float(row["r"]) == turned * float(row["r_as_printed"])
        # at 100 models, p < .01 means |r| >= .256
        assert (row["below_p_01"] == "yes") == (abs(float(row["r"])) >= 0.256)
    subsets = rows("subsets.csv")
    assert {row["benchmark"] for row in subsets} == set(benchmarks)
    for name, row in benchmarks.items():
        sizes = [one["items"] for one in subsets if one["benchmark"] == name]
        if all(sizes):
            assert sum(map(int, sizes)) == int(row["items"]), name
    assert all(row["evidence"] for row in [*benchmarks.values(), *correlations, *subsets])


def test_inputs_are_named_without_loading_anything_heavy() -> None:
    code = (
        "import sys; from benchmirt import claims;"
        "entry = {'id': 'x', 'kind': 'count', 'statement': 's', 'parts': [{'name': 'n'}]};"
        "print(*claims.inputs_of(entry, ['a', 'b']));"
        "heavy = {'numpy', 'pandas', 'scipy', 'xarray', 'jax'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    files = done.stdout.split()
    assert "outcomes/a/items.parquet" in files
    assert "outcomes/b/models.parquet" in files
    assert "matrix/published/responses.parquet" in files


def test_a_kind_needs_no_more_than_its_files() -> None:
    loaded = claims.load(study_of())
    assert not any("dimensions" in name for name in claims.inputs_of(loaded["C1"], ["mine"]))
    assert "dimensions/number.json" in claims.inputs_of(loaded["C3"])
    assert "dimensions/leave_one_out.nc" not in claims.inputs_of(loaded["C11"])
    assert "dimensions/leave_one_out.nc" in claims.inputs_of(loaded["C9"])
    assert all("stability.json" in " ".join(claims.inputs_of(loaded[name])) for name in loaded if name > "C2")
    published, checks = claims.tables_of(loaded["C8"], study_of())
    assert published.endswith("workflow/resources/published_correlations.csv")
    assert checks.endswith("workflow/resources/check_values.csv")


def test_names_that_claims_may_use_are_those_of_the_stations() -> None:
    """The specification repeats them, since it must import nothing heavy."""
    assert set(spec.SPLITS) == {name for name in splits.__all__ if name.islower()}
    assert set(spec.METHODS) == set(methods.LABELS)
    assert set(spec.SCOPES) == set(published.SCOPES)
    assert set(prompt_labels.VALUES.values()) == set(label.WORDS)


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        (
            {
                "kind": "prediction",
                "split": "cells",
                "method": "mirt_6",
                "baseline": "mirt_1",
                "region": {"low": 0},
            },
            "M1, n: method: this study fits fewer dimensions: found mirt_6; expected at most mirt_4",
        ),
        (
            {"kind": "correlation", "select": {"benchmark": "b"}, "ability": 3, "region": {"low": 0.5}},
            "M1, n: ability: this study fits fewer dimensions: found 3; expected at most 2",
        ),
    ],
)
def test_own_claims_ask_for_no_more_dimensions_than_are_fitted(claim: dict[str, Any], told: str) -> None:
    kind = claim.pop("kind")
    with pytest.raises(InputError) as caught:
        claims.load(study_of([entry(kind=kind, parts=[{"name": "n", **claim}])]))
    assert told in str(caught.value)


def test_the_shipped_claims_load_where_fewer_dimensions_are_fitted() -> None:
    assert "C5" in claims.load(study_of(fits={"dims": 1, "max_dims": 2}))
