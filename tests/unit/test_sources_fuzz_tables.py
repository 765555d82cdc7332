"""Wide and long tables, details of the leaderboard and results of safety-eval, damaged and absurd: one sentence or outcomes."""

from __future__ import annotations

import csv
import gzip
import json
import math
import shutil
from collections.abc import Callable, Mapping
from decimal import Decimal
from io import BytesIO, StringIO
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from files_fixture import Files
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sources_fuzz import FUZZ, ODD, ONE, SECRET, VALUES, ZERO, changed, damaged, places

from benchmirt import config, sources
from benchmirt.errors import InputError

Cells = dict[tuple[str, str], int]
DETAILS = "o__m-details/o__m__leaderboard_bbh_snarks/latest/0000.parquet"
QUICK = settings(FUZZ, max_examples=15)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def clean(files: Files) -> Files:
    for folder in (files.home / "in", files.out):
        shutil.rmtree(folder, ignore_errors=True)
    return files


def again(files: Files) -> None:
    """Forget what an earlier example wrote."""
    for folder in (files.home / "in", files.out):
        shutil.rmtree(folder, ignore_errors=True)


def check_sentence(files: Files, message: str) -> None:
    """Check that a refusal is a sentence that tells no text of a question, and that nothing was written."""
    assert message.isprintable()
    assert SECRET not in message
    assert len(message) < 3000
    assert not files.out.exists(), "nothing is written when a file is wrong"


def read(files: Files, kind: str, responses: str = "") -> Cells | None:
    """Collect a source; None if it is refused, in a sentence that tells no text of a question, with nothing written."""
    before = {path for path in files.home.rglob("*") if files.out not in path.parents}
    how = {"by": "responses", "name": f"in/{responses}"} if kind == "table" else {}
    try:
        shards = files.collect(kind, **how)
    except InputError as error:
        check_sentence(files, str(error))
        return None
    finally:
        after = {path for path in files.home.rglob("*") if files.out not in path.parents}
        assert after - before <= {files.out}, "nothing is written elsewhere"
    frame = pd.concat([pd.read_parquet(shard) for shard in shards])
    values = frame["outcome"].astype(object).where(frame["outcome"].notna(), -1)
    return dict(zip(zip(frame["model"], frame["question_id"], strict=True), map(int, values), strict=True))


# -- a small file of each -----------------------------------------------------------------------------------


def row(number: int, score: Any) -> dict[str, Any]:
    """Return a row of the details of the leaderboard."""
    return {
        "doc_id": number,
        "doc": {"input": SECRET, "target": "(A)"},
        "target": "(A)",
        "resps": [[["-0.4", "False"]], [["-1.1", "False"]]],
        "filtered_resps": [["-0.4", "False"], ["-1.1", "False"]],
        "doc_hash": f"h{number}",
        "acc_norm": score,
    }


def parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def details(scores: pa.Array) -> bytes:
    """Return details whose column of scores is as given."""
    rows = [{key: value for key, value in row(n, 0).items() if key != "acc_norm"} for n in range(len(scores))]
    return parquet(pa.Table.from_pylist(rows).append_column("acc_norm", scores))


def safety(value: Any, field: str = "response_refusal") -> dict[str, Any]:
    """Return results of safety-eval of two tasks, one of whose values is as given."""
    asked = {"prompt": SECRET, "type": "homonyms", "response": SECRET, "is_parsing_error": False}
    rows = [
        {"id": f"xstest/{n}", **asked, "response_refusal": "compliance", **({field: value} if n == 0 else {})}
        for n in range(2)
    ]
    graded = {"id": "strongreject/1", "category": "c", "forbidden_prompt": SECRET, "response_score": 0.1}
    return {"xstest:default": rows, "strongreject:logprobs": [graded]}


def wide(cells: Mapping[str, list[Any]]) -> bytes:
    """Return a response table as CSV; a key is a column."""
    buffer = StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(cells)
    table.writerows(zip(*cells.values(), strict=True))
    return buffer.getvalue().encode("utf-8", "surrogatepass")


GOOD = {"question_id": ["q0", "q1"], "org/m": ["1", "0"], "n": ["", "1.0"]}
LARGE = pa.table(
    {"question_id": [f"q{n}" for n in range(200)], "m": [n % 2 for n in range(200)], "n": [1, 0] * 100}
)
WHOLE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "leaderboard": (DETAILS, lambda: details(pa.array([1.0, 0.0]))),
    "safety-eval": ("o__m/all.json", lambda: json.dumps(safety("refusal")).encode()),
    "wide": ("r.csv", lambda: wide(GOOD)),
    "wide, compressed": ("r.csv.gz", lambda: gzip.compress(wide(GOOD), mtime=0)),
    "wide, Parquet": ("r.parquet", lambda: parquet(LARGE)),
    "wide, Parquet without compression": (
        "r.parquet",
        lambda: parquet(LARGE, compression="none", use_dictionary=False),
    ),
    "long, Parquet": (
        "r.parquet",
        lambda: parquet(pa.table({"model": ["m", "m"], "question_id": ["q0", "q1"], "outcome": [1, 0]})),
    ),
}


def kind_of(name: str) -> str:
    return "table" if name.startswith("wide") else "long" if name.startswith("long") else name


@pytest.mark.parametrize("name", WHOLE)
def test_the_files_as_they_are(clean: Files, name: str) -> None:
    path, make = WHOLE[name]
    clean.put(path, make())
    found = read(clean, kind_of(name), path) if kind_of(name) != "long" else long(clean)
    assert found is not None
    assert {0, 1} <= set(found.values())


def long(files: Files) -> Cells | None:
    """Collect files of any format, which name their models."""
    try:
        frame = files.table(by="files")
    except InputError as error:
        check_sentence(files, str(error))
        return None
    return {
        (one.model, one.question_id): -1 if pd.isna(one.outcome) else int(one.outcome)
        for one in frame.itertuples()
    }


# -- damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WHOLE)
@settings(FUZZ, max_examples=25)
@given(data=st.data())
def test_cut_and_flipped_bytes(clean: Files, name: str, data: st.DataObject) -> None:
    again(clean)
    path, make = WHOLE[name]
    clean.put(path, damaged(make(), data))
    found = long(clean) if kind_of(name) == "long" else read(clean, kind_of(name), path)
    assert found is None or set(found.values()) <= {-1, 0, 1}


@pytest.mark.parametrize("name", ["wide, Parquet", "wide, Parquet without compression"])
@settings(FUZZ, max_examples=40)
@given(data=st.data())
def test_pages_with_a_checksum_give_the_right_outcomes_or_none(
    clean: Files, name: str, data: st.DataObject
) -> None:
    """A byte that changes inside a page cannot turn a 1 into a 0."""
    again(clean)
    packed = "none" if "without" in name else "snappy"
    whole = parquet(LARGE, compression=packed, use_dictionary=False, write_page_checksum=True)
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # where the schema begins
    place = data.draw(st.integers(4, end - 1))
    clean.put(
        "r.parquet",
        whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :],
    )
    found = read(clean, "table", "r.parquet")
    if found is None:
        return
    right = {("m", f"q{n}"): n % 2 for n in range(200)} | {("n", f"q{n}"): 1 - n % 2 for n in range(200)}
    assert found == right


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet"])
@FUZZ
@given(
    content=st.one_of(
        st.binary(max_size=80), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_anything_at_all_in_the_place_of_a_table(clean: Files, name: str, content: bytes) -> None:
    again(clean)
    clean.put(name, content)
    read(clean, "table", name)


@FUZZ
@given(content=st.text(alphabet=',"\n\r;\t01q\\\0 ', max_size=60))
def test_anything_that_is_nearly_a_table(clean: Files, content: str) -> None:
    again(clean)
    clean.put("r.csv", b"question_id,m,n\nq0,1,0\n" + content.encode())
    read(clean, "table", "r.csv")


# -- wrong types, and never a silent 0 ----------------------------------------------------------------------


@FUZZ
@given(data=st.data())
def test_results_of_safety_eval_with_wrong_types_and_odd_keys(clean: Files, data: st.DataObject) -> None:
    again(clean)
    content: Any = safety("refusal")
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["replace", "replace", "wrap", "double", "rename", "drop", "add"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    clean.put("o__m/all.json", json.dumps(content).encode())
    read(clean, "safety-eval")


@settings(FUZZ, max_examples=40)
@given(value=VALUES)
def test_only_a_refusal_is_a_refusal(clean: Files, value: Any) -> None:
    """Where 1 stands for compliance, nothing but the text of a refusal is a 0."""
    again(clean)
    clean.put("o__m/all.json", json.dumps(safety(value)).encode())
    found = read(clean, "safety-eval")
    assert found is not None
    assert found["o__m", "xstest__homonyms_0"] == {"refusal": 0, "compliance": 1}.get(str(value), -1)
    assert found["o__m", "xstest__homonyms_1"] == 1


@settings(FUZZ, max_examples=40)
@given(value=VALUES)
def test_only_a_number_from_0_to_1_is_a_grade_of_strongreject(clean: Files, value: Any) -> None:
    again(clean)
    content = safety("refusal")
    content["strongreject:logprobs"][0]["response_score"] = value
    clean.put("o__m/all.json", json.dumps(content).encode())
    found = read(clean, "safety-eval")
    assert found is not None
    graded = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    assert (found["o__m", "strongreject__c_1"] in (0, 1)) == graded, value


def arrow(values: list[Any]) -> pa.Array | None:
    """Return values as a column, None where Arrow or Parquet has no type for them."""
    try:
        column = pa.array(values)
        parquet(pa.table({"column": column}))
        return column
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None


@settings(FUZZ, max_examples=50)
@given(value=st.one_of(VALUES, st.binary(max_size=3), st.decimals(allow_nan=False, places=2, max_value=9)))
def test_only_zeros_of_details_are_zero(clean: Files, value: Any) -> None:
    again(clean)
    scores = arrow([value, value])
    if scores is None:
        return
    clean.put(DETAILS, details(scores))
    found = read(clean, "leaderboard")
    if found is not None:
        assert set(found.values()) == {outcome_of(value)}


def outcome_of(value: Any) -> int:
    """Return the outcome that a grade stands for; -1 for missing."""
    if isinstance(value, str):
        return 1 if value in ONE else 0 if value in ZERO else -1
    known = isinstance(value, bool | int | float | Decimal) and value in (0, 1)
    return int(value) if known else -1


@settings(FUZZ, max_examples=50)
@given(value=st.one_of(VALUES, st.binary(max_size=3), st.decimals(allow_nan=False, places=2, max_value=9)))
def test_only_zeros_of_wide_parquet_tables_are_zero(clean: Files, value: Any) -> None:
    again(clean)
    column = arrow([value, value])
    if column is None:
        return
    clean.put("r.parquet", parquet(pa.table({"question_id": ["q0", "q1"], "m": column, "n": [1, 0]})))
    found = read(clean, "table", "r.parquet")
    nothing = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
    wanted = -1 if nothing else outcome_of(value)
    if value in ("True", "False") and isinstance(value, str):
        wanted = -1  # a table spells them 1 and 0, and says so
    assert (found is None) == (wanted == -1 and not nothing)
    assert found is None or found["m", "q0"] == wanted


@settings(FUZZ, max_examples=50)
@given(cell=st.one_of(st.sampled_from([str(one) for one in (*ODD, *ONE, *ZERO)]), st.text(max_size=6)))
def test_only_zeros_of_wide_tables_are_zero(clean: Files, cell: str) -> None:
    again(clean)
    clean.put("r.csv", wide({**GOOD, "org/m": [cell, "0"]}))
    found = read(clean, "table", "r.csv")
    wanted = {"1": 1, "1.0": 1, "0": 0, "0.0": 0, "": -1}.get(cell)
    if wanted is None:
        assert found is None
    else:
        assert found is not None
        assert found["org/m", "q0"] == wanted


@pytest.mark.parametrize("role", ["items", "models"])
@FUZZ
@given(data=st.data())
def test_facts_of_any_kind(clean: Files, role: str, data: st.DataObject) -> None:
    """Numbers, dates and truth values of items and models are what they are, or one sentence."""
    again(clean)
    names = {"items": ("question_id", ["q0", "q1"]), "models": ("model", ["org/m", "n"])}
    columns = {
        "items": ["benchmark", "options", "inverted", "testlet", "content_hash"],
        "models": ["size_b", "released", "reasoning", "lineage", "canonical"],
    }
    key, own = names[role]
    text = st.one_of(st.sampled_from([str(one) for one in ODD]), st.text(max_size=8))
    table = {key: own, **{name: data.draw(st.lists(text, min_size=2, max_size=2)) for name in columns[role]}}
    clean.put("r.csv", wide(GOOD))
    clean.put("facts.csv", wide(table))
    source = {"name": "raw", "kind": "table", "responses": "in/r.csv", role: "in/facts.csv"}
    study = config.load({"study": "s", "sources": [source], "claims": {"file": []}}, clean.home)
    try:
        sources.collect_all(study.sources[0], study, clean.out)
    except InputError as error:
        check_sentence(clean, str(error))


# -- names, and rows of the details -------------------------------------------------------------------------

COLUMNS = st.sampled_from(
    [
        *(["1", "2"], [1.0, 2.0], [None, None], [b"1", b"\xff"], [[1], [2]], [{"a": 1}, {"a": 2}]),
        *([True, False], [10**18, -1], [SECRET, SECRET], ["", ""], ["\u202e", "é"], ["a" * 700, "b"]),
    ]
)


@QUICK
@given(name=st.sampled_from(list(row(0, 1))), values=COLUMNS, drop=st.booleans())
def test_columns_of_details_of_any_type(clean: Files, name: str, values: list[Any], drop: bool) -> None:
    again(clean)
    table = pa.Table.from_pylist([row(0, 1.0), row(1, 0.0)])
    place = table.column_names.index(name)
    table = table.remove_column(place) if drop else table.set_column(place, name, pa.array(values))
    clean.put(DETAILS, parquet(table))
    found = read(clean, "leaderboard")
    if found is not None and name != "acc_norm":
        assert set(found.values()) <= {-1, 0, 1}
        assert next(iter(found.values())) in (1, -1), "the first row was right, or tells nothing"


@QUICK
@given(name=st.one_of(st.sampled_from([one for one in ODD if isinstance(one, str)]), st.text(max_size=9)))
def test_names_of_items_and_models_lead_nowhere(clean: Files, name: str) -> None:
    again(clean)
    clean.put("r.csv", wide({"question_id": [name, "q1"], name: ["1", "0"], "n": ["0", "1"]}))
    found = read(clean, "table", "r.csv")
    if found is not None:
        assert found[name, name] == 1
        assert all(path.resolve().is_relative_to(clean.out) for path in clean.out.rglob("*"))


@pytest.mark.parametrize("kind", ["leaderboard", "safety-eval"])
def test_folders_of_models_may_have_any_name(clean: Files, kind: str) -> None:
    names = ["$(rm)", "-rf", "é", "a b", "%s", "~", "a" * 100]
    for name in names:
        if kind == "leaderboard":
            path = f"{name}-details/{name}__leaderboard_bbh_snarks/latest/0000.parquet"
            clean.put(path, details(pa.array([1.0, 0.0])))
        else:
            clean.put(f"{name}/all.json", json.dumps(safety("refusal")).encode())
    found = read(clean, kind)
    assert found is not None
    assert {model for model, _ in found} == set(names)
