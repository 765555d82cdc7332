"""Readers of sources. Every fault of a user's file must name the file, the row and the field."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmirt import config, outcomes, sources
from benchmirt.errors import InputError
from benchmirt.files import read_json, sha256_of
from benchmirt.sources import reading, table

Make = Callable[..., dict[str, Any]]

GOOD = "question_id,a/x@fp8,b c,d\nq1,1,0,1\nq2,0,,1\nq3,1.0,0.0,\n"


@pytest.fixture
def read(tmp_path: Path, minimal_config: Make) -> Callable[..., outcomes.Outcomes]:
    """Give a function that writes files and reads them as one source."""

    def run(responses: str | bytes, name: str = "r.csv", **keys: Any) -> outcomes.Outcomes:
        (tmp_path / name).write_bytes(responses.encode() if isinstance(responses, str) else responses)
        for role, key in (("items", "items"), ("models", "models_file")):
            if key in keys:
                (tmp_path / f"{role}.csv").write_text(keys[key])
                keys[key] = f"{role}.csv"
        study = config.load(minimal_config(name, **keys), tmp_path)
        return table.read(study.sources[0], study)

    return run


@pytest.fixture
def fault(read: Callable[..., outcomes.Outcomes]) -> Callable[..., str]:
    """Give a function that reads as `read` does and returns the message, one line long."""

    def run(*args: Any, **keys: Any) -> str:
        with pytest.raises(InputError) as caught:
            read(*args, **keys)
        text = str(caught.value)
        assert "\n" not in text
        return text

    return run


Read = Callable[..., outcomes.Outcomes]
Fault = Callable[..., str]


# -- what is read

TURNED = "model,q1,q2,q3\na/x@fp8,1,0,1.0\nb c,0,,0.0\nd,1,1,\n"


@pytest.mark.parametrize("as_parquet", [False, True])
def test_a_row_per_model_is_the_same_turned_round(read: Read, tmp_path: Path, as_parquet: bool) -> None:
    wanted = read(GOOD)
    if as_parquet:
        path = tmp_path / "t.parquet"
        pd.read_csv(StringIO(TURNED)).to_parquet(path)
        found = read(path.read_bytes(), "r.parquet")
    else:
        found = read(TURNED)
    assert (found.models, found.items) == (wanted.models, wanted.items)
    np.testing.assert_array_equal(found.outcome, wanted.outcome)
    np.testing.assert_array_equal(found.reason, wanted.reason)
    assert list(found.item_facts["row"]) == [1, 1, 1]


def test_facts_of_a_table_that_is_turned_round(read: Read) -> None:
    items = "question_id,benchmark\nq3,z\nq1,x\nq2,y\n"
    models = "name,lineage\nd,l1\nb c,l2\na/x@fp8,l3\nother,l4\n"
    text = TURNED.replace("model,", "name,")
    found = read(text, items=items, models_file=models, model_columns={"model": "name"})
    assert list(found.item_facts["benchmark"]) == ["x", "y", "z"]
    assert list(found.model_facts["lineage"]) == ["l3", "l2", "l1"]


@pytest.mark.parametrize(
    ("text", "keys", "parts"),
    [
        (TURNED.replace("0.0", "2"), {}, ['row 3, column "q3": found "2" for "b c"']),
        (TURNED + "d,1,1,1\n", {}, ['row 5, column "model": the same name stands in row 4']),
        (TURNED.replace("q3", "family"), {}, ["Facts of models go into the file of models"]),
        ("model\na\n", {}, ['no column of an item: found only "model"']),
        (
            TURNED,
            {"models_file": "model\nb c\nd\n"},
            ['row 2, column "model": this model has no row in models.csv'],
        ),
        (
            TURNED,
            {"items": "question_id\nq1\nq2\n"},
            ['row 1, column "q3": this item has no row in items.csv'],
        ),
        (TURNED, {"items": "question_id\nq1\nq2\nq3\nq4\n"}, ["row 5", "this item has no column in r.csv"]),
    ],
)
def test_tables_turned_round_that_are_wrong(
    fault: Fault, text: str, keys: dict[str, str], parts: list[str]
) -> None:
    if "family" in text:
        text = text.replace("1.0", "llama")
    told = fault(text, **keys)
    for part in parts:
        assert part in told


def test_cells_names_and_reasons(read: Read) -> None:
    found = read(GOOD)
    assert found.models == ("a/x@fp8", "b c", "d")
    assert found.items == ("q1", "q2", "q3")
    np.testing.assert_array_equal(found.outcome, [[1, 0, 1], [0, -1, 1], [1, 0, -1]])
    not_run = outcomes.REASONS.index("not_run") + 1
    np.testing.assert_array_equal(found.reason, np.where(found.outcome < 0, not_run, 0))
    assert list(found.item_facts["benchmark"]) == ["mine"] * 3
    assert list(found.item_facts["row"]) == [2, 3, 4]
    assert found.manifest["failures_known"] is False


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.rstrip("\n").encode(),
        GOOD.replace("\nq2", "\n\n\nq2").encode(),
        "".join(
            ",".join(f'"{field}"' for field in line.split(",")) + "\n" for line in GOOD.splitlines()
        ).encode(),
    ],
    ids=["byte-order mark", "Windows", "no last line end", "blank lines", "quoted"],
)
def test_dialects_of_csv_are_the_same_table(read: Read, content: bytes) -> None:
    plain, other = read(GOOD), read(content)
    assert (plain.models, plain.items) == (other.models, other.items)
    np.testing.assert_array_equal(plain.outcome, other.outcome)


def test_gzip_is_the_same_table(read: Read) -> None:
    other = read(gzip.compress(GOOD.encode()), "r.csv.gz")
    np.testing.assert_array_equal(read(GOOD).outcome, other.outcome)


def test_names_that_look_like_numbers_stay_texts(read: Read) -> None:
    found = read("question_id,7,07\n0012,1,0\n12,0,1\n1e3,1,1\nNA,1,0\nnan,0,0\n")
    assert found.items == ("0012", "12", "1e3", "NA", "nan")
    assert found.models == ("7", "07")


def test_the_id_column_may_stand_anywhere_and_have_another_name(read: Read) -> None:
    found = read("m,item,n\n1,q1,0\n0,q2,1\n", columns={"question_id": "item"})
    assert found.models == ("m", "n")
    assert found.items == ("q1", "q2")
    np.testing.assert_array_equal(found.outcome, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    "columns",
    [
        {"m": [1, 0, 1], "n": [0, 1, 1]},
        {"m": [1.0, 0.0, 1.0], "n": [0.0, 1.0, 1.0]},
        {"m": [True, False, True], "n": [False, True, True]},
        {"m": ["1", "0", "1.0"], "n": ["0", "1", "1"]},
        {"m": pd.Categorical(["1", "0", "1"]), "n": pd.array([0, 1, 1], dtype="Int8")},
    ],
    ids=["int", "float", "bool", "text", "category"],
)
def test_parquet_types(tmp_path: Path, minimal_config: Make, columns: dict[str, Any]) -> None:
    frame = pd.DataFrame({"question_id": ["01", "2", "3"], **columns})
    frame.to_parquet(tmp_path / "r.parquet")
    study = config.load(minimal_config("r.parquet"), tmp_path)
    found = table.read(study.sources[0], study)
    assert found.items == ("01", "2", "3")
    np.testing.assert_array_equal(found.outcome, [[1, 0], [0, 1], [1, 1]])


def test_parquet_gaps_and_integer_ids(tmp_path: Path, minimal_config: Make) -> None:
    frame = pd.DataFrame(
        {
            "question_id": [7, 8, 9],
            "m": [1.0, np.nan, 0.0],
            "n": pd.array([None, 1, 0], dtype="Int8"),
            "o": [None, None, None],
            "p": ["1", None, ""],
        }
    )
    frame.to_parquet(tmp_path / "r.parquet", row_group_size=2)
    study = config.load(minimal_config("r.parquet"), tmp_path)
    found = table.read(study.sources[0], study)
    assert found.items == ("7", "8", "9")
    np.testing.assert_array_equal(found.outcome, [[1, -1, -1, 1], [-1, 1, -1, -1], [0, 0, -1, -1]])
    assert list(found.item_facts["row"]) == [1, 2, 3]


# -- faults of the responses


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("2", "Correct the value"),
        ("-1", "Correct the value"),
        ("0.5", "what counts as 1"),
        ("yes", "Correct the value"),
        ("true", "Write 1 for true and 0 for false"),
        ("FALSE", "Write 1 for true and 0 for false"),
        ("NA", "Leave the cell empty"),
        ("nan", "Leave the cell empty"),
        ("None", "Leave the cell empty"),
        (" 1", "Remove the spaces"),
        (" ", "Remove the spaces"),
        ("1.00", "Correct the value"),
        ("inf", "Correct the value"),
    ],
)
def test_cells_that_are_not_1_0_or_empty(fault: Fault, cell: str, hint: str) -> None:
    text = fault(f"question_id,a,b\nq1,1,0\nq2,0,1\nq3,1,{cell}\n")
    assert text.startswith(f'r.csv: row 4, column "b": found "{cell}" for "q3"; expected 1, 0 or empty.')
    assert hint in text


def test_facts_among_the_responses(fault: Fault) -> None:
    text = fault("question_id,benchmark,a\nq1,bbh,1\n")
    assert 'r.csv: row 2, column "benchmark": found "bbh"' in text
    assert "file of items" in text


def test_rows_are_lines_of_the_file(fault: Fault) -> None:
    """Blank lines and quoted line ends move the line numbers."""
    text = fault('question_id,a,b\n\n"q\n1",1,0\nq2,0,2\n')
    assert 'r.csv: row 5, column "b"' in text


def test_parquet_cells_that_are_wrong(tmp_path: Path, minimal_config: Make) -> None:
    def message(frame: pd.DataFrame) -> str:
        frame.to_parquet(tmp_path / "r.parquet")
        study = config.load(minimal_config("r.parquet"), tmp_path)
        with pytest.raises(InputError) as caught:
            table.read(study.sources[0], study)
        return str(caught.value)

    text = message(pd.DataFrame({"question_id": ["x", "y"], "m": [1, 2]}))
    assert 'r.parquet: row 2, column "m": found "2" for "y"; expected 1, 0 or empty.' in text
    text = message(pd.DataFrame({"question_id": ["x", "y"], "m": [0.25, 1.0]}))
    assert 'row 1, column "m": found "0.25"' in text
    text = message(pd.DataFrame({"question_id": ["x", "y"], "m": ["1", "pass"]}))
    assert 'row 2, column "m": found "pass"' in text
    text = message(pd.DataFrame({"question_id": ["x"], "m": [[1]]}))
    assert 'row 1, column "m"' in text
    assert "neither numbers nor texts" in text
    text = message(pd.DataFrame({"question_id": [0.5, 1.5], "m": [1, 0]}))
    assert 'row 1, column "question_id": found the type double; expected texts' in text
    text = message(pd.DataFrame({"question_id": ["x", "x"], "m": [1, 0]}))
    assert 'r.parquet: row 2, column "question_id"' in text


PREFIXED = "question_id,acc_a/x,acc_b,note\nq1,1,0,x\nq2,0,1,y\n"


def test_a_prefix_chooses_columns_and_is_cut(read: Read, tmp_path: Path) -> None:
    found = read(PREFIXED, prefix="acc_")
    assert (found.models, found.items) == (("a/x", "b"), ("q1", "q2"))
    turned = read("model,acc_q1,acc_q2,note\na/x,1,0,x\nb,0,1,y\n", prefix="acc_")
    assert (turned.models, turned.items) == (found.models, found.items)
    np.testing.assert_array_equal(turned.outcome, found.outcome)
    pd.read_csv(StringIO(PREFIXED)).to_parquet(tmp_path / "t.parquet")
    as_parquet = read((tmp_path / "t.parquet").read_bytes(), "r.parquet", prefix="acc_")
    np.testing.assert_array_equal(as_parquet.outcome, found.outcome)


@pytest.mark.parametrize(
    ("responses", "told"),
    [
        (PREFIXED.replace("q2,0", "q2,7"), 'row 3, column "acc_a/x": found "7" for "q2"'),
        (PREFIXED.replace("acc_b", "acc_"), 'row 1, column "acc_": it has no name but the prefix'),
        (PREFIXED.replace("acc_b", "acc_ b"), 'row 1, column "acc_ b": the name without the prefix begins'),
    ],
)
@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_with_a_prefix_the_whole_name_of_a_column_is_told(
    fault: Fault, tmp_path: Path, responses: str, told: str, name: str
) -> None:
    pd.read_csv(StringIO(responses)).to_parquet(tmp_path / "t.parquet")
    content = responses if name == "r.csv" else (tmp_path / "t.parquet").read_bytes()
    found = fault(content, name, prefix="acc_")
    assert (told if name == "r.csv" else told.replace("row 3", "row 2")) in found


def test_with_a_prefix_a_model_without_facts_is_told_by_its_column(fault: Fault) -> None:
    assert 'r.csv: row 1, column "acc_b": ' in fault(PREFIXED, prefix="acc_", models_file="model\na/x\n")


def test_a_question_id_twice(fault: Fault) -> None:
    text = fault("question_id,a,b\nq1,1,0\nq2,1,0\nq1,0,0\n")
    assert text.startswith(
        'r.csv: row 4, column "question_id": the same name stands in row 2: found "q1" twice'
    )


def test_a_question_id_that_is_empty_or_has_spaces(fault: Fault) -> None:
    assert 'r.csv: row 3, column "question_id": the name is missing' in fault("question_id,a\nq1,1\n,0\n")
    text = fault("question_id,a\nq1 ,1\n")
    assert 'r.csv: row 2, column "question_id"' in text
    assert 'found "q1 "; expected "q1"' in text


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("question_id,m,n,m", ['row 1, column "m"', "the same name", "columns 2 and 4"]),
        ("question_id,m,,n", ["row 1, column 3", "no name", "index=False"]),
        (",question_id,m,n", ["row 1, column 1", "no name"]),
        ("question_id,m, n,o", ["row 1, column 3", 'found " n"; expected "n"']),
        ("item,m,n,o", ["row 1", 'no column "question_id"', '"item"']),
        ("Question ID,m,n,o", ["row 1", 'Rename "Question ID" to question_id']),
        ("question_id,m,n,", ["row 1, column 4", "no name", "the comma that ends each row"]),
        ("question_id,m, ,o", ["row 1, column 3", "no name"]),
        ("Unnamed: 0,question_id,m,n", ["row 1, column 1", '"Unnamed: 0"', "index=False"]),
        ("question_id;m;n;o", ["row 1", "separated by semicolons"]),
        ("question_id\tm\tn\to", ["row 1", "separated by tabs"]),
        ("model,q1,q2,q1", ['row 1, column "q1"', "the same name", "columns 2 and 4"]),
        ("question_id,model,outcome,x", ['row 1, column "model"', "kind: long", "pivot"]),
    ],
)
def test_headers_that_are_wrong(fault: Fault, header: str, parts: list[str]) -> None:
    text = fault(f"{header}\nq1,1,0,1\n" if "," in header else f"{header}\nq1\n")
    assert text.startswith("r.csv: ")
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["the file is empty"]),
        (b"\n\n", ["the file is empty"]),
        (b"question_id,m\n", ["a header but no rows"]),
        (b"question_id\nq1\n", ["row 1", "no column of a model"]),
        (b"question_id,m\nq1,1\nq2\n", ["row 3", "found 1 fields; expected 2"]),
        (b"question_id,m\nq1,1,1\n", ["row 2", "found 3 fields; expected 2"]),
        (b'question_id,m\nq1,1\nq2,"1\n', ["row 3", "cannot be split"]),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["found binary data; expected a CSV file"]),
        (b"PK\x03\x04" + b"x" * 40, ["a ZIP archive or a spreadsheet", "Save it as CSV"]),
        (b"PAR1" + b"\0" * 40, ["a Parquet file", "ends in .parquet"]),
        (gzip.compress(GOOD.encode(), mtime=0), ["gzip-compressed", "ends in .csv.gz"]),
        (GOOD.encode("utf-16"), ["UTF-16", "Save it as UTF-8"]),
        (GOOD.encode("utf-16-le"), ["UTF-16", "Save it as UTF-8"]),
        (GOOD.encode("utf-16-be"), ["UTF-16", "Save it as UTF-8"]),
        (GOOD.encode("utf-32"), ["UTF-32", "Save it as UTF-8"]),
        (GOOD.replace("\n", "\r").encode(), ["row 1", "the old Macintosh way"]),
        (b'"question_id";"m"\n"q";"1"\n', ["row 1", "separated by commas"]),
        (b'{"question_id": ["q1"]}', ["row 1", "seems to be JSON"]),
        (b"BZh91AY&SY", ["bzip2-compressed data"]),
        (b"\xfd7zXZ\x00", ["xz-compressed data"]),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ["an old spreadsheet"]),
        (b"/annex/objects/SHA256E-s1--a.csv\n", ["git-annex pointer", "git annex get"]),
        (b"<!DOCTYPE html><html>", ["a web page"]),
        (b"version https://git-lfs.github.com/spec/v1\n", ["Git LFS pointer", "git lfs pull"]),
        ("question_id,m\nq1,1\nqé,0\n".encode("latin-1"), ["row 3, byte 2", "not UTF-8", "0xe9"]),
        (b"question_id,m\nq1,1\nq\0,0\n", ["row 3", "binary data"]),
    ],
)
def test_files_that_are_no_table(fault: Fault, content: bytes, parts: list[str]) -> None:
    text = fault(content)
    assert text.startswith("r.csv: ")
    for part in parts:
        assert part in text


def test_gzip_files_that_are_cut_off_damaged_or_none(fault: Fault) -> None:
    rows = "".join(f"q{number},{number % 2},1\n" for number in range(20_000))
    packed = gzip.compress(("question_id,a,b\n" + rows).encode())
    text = fault(packed[: len(packed) // 2], "r.csv.gz")
    assert text.startswith("r.csv.gz: after row ")
    assert "damaged or was cut off" in text
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    text = fault(bytes(broken), "r.csv.gz")
    assert text.startswith("r.csv.gz: ")
    assert "not gzip-compressed" in fault(GOOD, "r.csv.gz")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"question_id,a\n" + b"q" * 500, "r.csv.gz: row 2: the row is too long: expected at most 100 bytes"),
        (b"question_id,a\n" + b"q,1\n" * 500, "r.csv.gz: row 98: the compressed file unpacks to too much"),
        (b"\0" * 500, "r.csv.gz: row 1: the row is too long"),
    ],
)
def test_compressed_tables_that_unpack_to_more_than_any_table_are_refused(
    fault: Fault, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.setattr(reading, "_LONGEST_LINE", 100)
    monkeypatch.setattr(reading, "_MOST_TEXT", 400)
    monkeypatch.setattr(reading, "_MOST_TIMES", 1)
    assert told in fault(gzip.compress(content), "r.csv.gz")


def test_parquet_tables_that_unpack_to_more_than_any_table_are_refused(
    fault: Fault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reading, "_MOST_ROWS", 1000)
    monkeypatch.setattr(reading, "_MOST_ROWS_A_BYTE", 1)
    pd.DataFrame({"question_id": ["q"] * 100_000, "a": 1}).to_parquet(tmp_path / "t.parquet")
    found = fault((tmp_path / "t.parquet").read_bytes(), "r.parquet")
    assert found.startswith("r.parquet: the file unpacks to too much, or is damaged: found 100,000 rows in")


def test_parquet_texts_that_are_no_utf8_are_told(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"question_id": ["quest", "other"], "a": [1, 0]}),
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    whole = path.read_bytes()
    assert whole.count(b"quest\x05") == 1
    found = fault(whole.replace(b"quest\x05", b"qu\xbcst\x05"), "r.parquet")
    assert "r.parquet: this is not a Parquet file, or it is damaged: found " in found
    assert "UTF8" in found


def test_parquet_pages_are_compared_with_their_checksums(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pa.table({"question_id": ["quest", "other"], "a": [1, 0]})
    pq.write_table(
        frame,
        path,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
        write_statistics=False,
    )
    found = fault(path.read_bytes().replace(b"quest\x05", b"guest\x05"), "r.parquet")
    assert "damaged: found could not verify page integrity" in found


@pytest.mark.parametrize("name", ["r.csv.gz", "r.parquet"])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html>", "a web page"),
    ],
)
def test_what_stands_in_for_a_file_is_told(fault: Fault, name: str, content: bytes, found: str) -> None:
    text = fault(content, name)
    assert text.startswith(f"{name}: found ")
    assert found in text


def test_parquet_files_that_are_none(fault: Fault) -> None:
    text = fault(b"PAR1" + b"\0" * 100, "r.parquet")
    assert text.startswith("r.parquet: this is not a Parquet file, or it is damaged")
    assert "r.parquet: the file is empty" in fault(b"", "r.parquet")


# -- facts of items


ITEMS = (
    "question_id,benchmark,category,subcategory,domain,options,inverted,note\n"
    "q3,B,x,x-1,dom,,,n\nq1,A,y,y-1,dom,4,true,n\nq2,A,,y-2,dom,4,False,n\n"
)


def test_item_facts_are_matched_by_name_and_typed(read: Read) -> None:
    facts = read(GOOD, items=ITEMS).item_facts
    assert list(facts["question_id"]) == ["q1", "q2", "q3"]
    assert list(facts["benchmark"]) == ["A", "A", "B"]
    assert list(facts["subcategory_one"]) == ["y-1", "y-2", "x-1"], "subcategory is subcategory_one"
    assert list(facts["domain_superset"]) == ["dom"] * 3, "domain is domain_superset"
    assert facts["category"].isna().tolist() == [False, True, False]
    assert facts["options"].tolist() == [4, 4, pd.NA]
    assert facts["inverted"].tolist() == [True, False, False]
    assert facts["fact_row"].tolist() == [3, 4, 2]
    outcomes.item_schema().validate(facts)


def test_columns_say_where_facts_are(read: Read) -> None:
    facts = read(
        GOOD,
        items=ITEMS,
        columns={
            "benchmark": "domain",
            "category": [{"column": "category", "pattern": "^y$", "value": "why"}, {"value": "other"}],
            "subcategory_two": {"column": "subcategory", "pattern": "^(.)-"},
            "testlet": ["category", {"column": "subcategory", "pattern": "-(.)$"}],
            "options": {"value": 10},
        },
    ).item_facts
    assert list(facts["benchmark"]) == ["dom"] * 3
    assert list(facts["category"]) == ["why", "other", "other"]
    assert list(facts["subcategory_two"]) == ["y", "y", "x"]
    assert list(facts["testlet"]) == ["y", "2", "x"]
    assert list(facts["options"]) == [10, 10, 10]


def test_patterns_work_without_an_items_file(read: Read) -> None:
    columns = {
        "testlet": {"column": "question_id", "pattern": "^q([12])"},
        "inverted": {"column": "question_id", "pattern": "q3", "value": True},
    }
    facts = read(GOOD, benchmark="bench", columns=columns).item_facts
    assert list(facts["benchmark"]) == ["bench"] * 3
    assert facts["testlet"].tolist()[:2] == ["1", "2"]
    assert facts["testlet"].isna().tolist() == [False, False, True]
    assert facts["inverted"].tolist() == [False, False, True]
    assert facts["fact_row"].isna().all()


def test_options_and_inverted_by_benchmark_fill_what_the_file_leaves_open(read: Read) -> None:
    facts = read(GOOD, items=ITEMS, options={"A": 3, "B": 5}, inverted=["B"]).item_facts
    assert facts["options"].tolist() == [4, 4, 5]
    assert facts["inverted"].tolist() == [True, False, True]


@pytest.mark.parametrize("section", ["options", "inverted"])
def test_unknown_benchmarks_are_told(fault: Fault, section: str) -> None:
    value: Any = {"bench": 4} if section == "options" else ["bench"]
    text = fault(GOOD, benchmark="benchh", **{section: value})
    assert f"r.csv: sources (mine).{section}: there is no such benchmark" in text
    assert 'found "bench"; expected "benchh"?' in text


def test_unknown_columns_are_told_with_the_nearest(fault: Fault) -> None:
    text = fault(GOOD, items=ITEMS, columns={"testlet": "subcategry"})
    assert "items.csv: row 1 (asked for by sources (mine).columns.testlet)" in text
    assert 'no column "subcategry"' in text
    assert 'Did you mean "subcategory"?' in text


def test_a_pattern_that_is_nowhere_is_told(fault: Fault) -> None:
    text = fault(GOOD, items=ITEMS, columns={"testlet": {"column": "subcategory", "pattern": "^z(.)"}})
    assert 'items.csv: row 3, column "subcategory"' in text
    assert "the pattern of sources (mine).columns.testlet is nowhere" in text


def test_an_item_without_a_row_in_items(fault: Fault) -> None:
    text = fault(GOOD, items="question_id,benchmark\nq1,A\nq3,A\n")
    assert text.startswith(
        'r.csv: row 3, column "question_id": this item has no row in items.csv: found "q2".'
    )


def test_an_item_without_a_row_in_responses(fault: Fault) -> None:
    text = fault(GOOD, items="question_id,benchmark\nq1,A\nq2,A\nq9,A\nq3,A\nq8,A\n")
    assert text.startswith('items.csv: row 4, column "question_id": this item has no row in r.csv')
    assert "nor have 1 others" in text
    assert 'found "q9"' in text


@pytest.mark.parametrize(
    ("items", "parts"),
    [
        ("question_id,benchmark\nq1,A\nq2,A\nq1,A\nq3,A\n", ['row 4, column "question_id"', "row 2", '"q1"']),
        ("question_id,benchmark\nq1,A\nq2,\nq3,A\n", ['row 3, column "benchmark"', "no benchmark"]),
        ("question_id,options\nq1,4\nq2,one\nq3,4\n", ['row 3, column "options"', 'found "one"']),
        ("question_id,options\nq1,4\nq2,1\nq3,4\n", ['row 3, column "options"', "at least 2"]),
        ("question_id,options\nq1,4\nq2,2.5\nq3,4\n", ['row 3, column "options"', '"2.5"']),
        ("question_id,inverted\nq1,1\nq2,0\nq3,maybe\n", ['row 4, column "inverted"', '"maybe"']),
        ("id,benchmark\nq1,A\n", ["row 1", 'no column "question_id"']),
        ("question_id,benchmark\n", ["a header but no rows"]),
        ("question_id,benchmark\nq1,A\nq2\n", ["row 3", "found 1 fields; expected 2"]),
    ],
)
def test_item_files_that_are_wrong(fault: Fault, items: str, parts: list[str]) -> None:
    text = fault(GOOD, items=items)
    assert text.startswith("items.csv: ")
    for part in parts:
        assert part in text


def test_faults_name_the_column_of_the_file(fault: Fault) -> None:
    text = fault(GOOD, items="question_id,k\nq1,4\nq2,one\nq3,4\n", columns={"options": "k"})
    assert 'items.csv: row 3, column "k"' in text


# -- facts of models


MODELS = "model,family,size_b,reasoning,kind\nd,F,70,true,x\na/x@fp8,G,,0,x\nb c,,7.5,,x\nspare,F,1,,x\n"


def test_model_facts(read: Read, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    facts = read(GOOD, models_file=MODELS, model_columns={"notes": "kind"}).model_facts
    assert list(facts["model"]) == ["a/x@fp8", "b c", "d"]
    assert facts["family"].isna().tolist() == [False, True, False]
    assert facts["size_b"].tolist()[1:] == [7.5, 70.0]
    assert facts["reasoning"].tolist() == [False, pd.NA, True]
    assert list(facts["notes"]) == ["x"] * 3
    assert facts["lineage"].isna().all()
    outcomes.model_schema().validate(facts)
    assert "1 models that are not in r.csv are left out" in caplog.text


def test_a_model_that_is_missing_from_the_models_file(fault: Fault) -> None:
    text = fault(GOOD, models_file="model,family\na/x@fp8,F\nd,F\nb_c,F\n")
    assert text.startswith('r.csv: row 1, column "b c": this model has no row in models.csv: found "b c".')
    assert 'the nearest is "b_c"' in text


@pytest.mark.parametrize(
    ("models", "parts"),
    [
        ("model\na/x@fp8\nb c\nd\nd\n", ['row 5, column "model"', "row 4"]),
        ("model,size_b\na/x@fp8,\nb c,big\nd,\n", ['row 3, column "size_b"', 'found "big"']),
        ("model,size_b\na/x@fp8,\nb c,-1\nd,\n", ['row 3, column "size_b"', 'found "-1"']),
        ("model,reasoning\na/x@fp8,\nb c,yes\nd,\n", ['row 3, column "reasoning"', 'found "yes"']),
        (
            "model,released\na/x@fp8,2024-02-29\nb c,2024-02-30\nd,\n",
            ['row 3, column "released"', 'found "2024-02-30"'],
        ),
        (
            "model,released\na/x@fp8,2024\nb c,2024-09\nd,soon\n",
            ['row 4, column "released"', "2024-09-12, 2024-09 or 2024"],
        ),
        ("name\na/x@fp8\nb c\nd\n", ["row 1", 'no column "model"']),
    ],
)
def test_model_files_that_are_wrong(fault: Fault, models: str, parts: list[str]) -> None:
    text = fault(GOOD, models_file=models)
    assert text.startswith("models.csv: ")
    for part in parts:
        assert part in text


# -- collecting


def test_collect_writes_the_contract(tmp_path: Path, minimal_config: Make) -> None:
    (tmp_path / "r.csv").write_text(GOOD)
    study = config.load(minimal_config("r.csv"), tmp_path)
    first = sources.collect(study.sources[0], study, tmp_path / "one")
    second = sources.collect(study.sources[0], study, tmp_path / "two")
    assert [path.name for path in first] == [
        "shard0.parquet",
        "shard0.manifests.json",
        "items.parquet",
        "models.parquet",
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    frame = pd.read_parquet(first[0])
    assert list(frame) == ["model", "question_id", "outcome", "reason", "score", "content_hash", "published"]
    assert len(frame) == 9
    assert frame.loc[frame["outcome"].isna(), ["model", "question_id", "reason"]].values.tolist() == [
        ["b c", "q2", "not_run"],
        ["d", "q3", "not_run"],
    ]
    manifests = read_json(first[1])
    assert [manifest["model"] for manifest in manifests] == ["a/x@fp8", "b c", "d"]
    assert manifests[0]["slug"] == "a=2Fx=40fp8"
    assert manifests[1]["counts"] == {"items": 3, "observed": 2, "passed": 0, "missing": {"not_run": 1}}
    assert manifests[0]["files"]["responses"] == {"path": "r.csv", "sha256": sha256_of(tmp_path / "r.csv")}


def test_nothing_is_written_when_a_table_is_wrong(tmp_path: Path, minimal_config: Make) -> None:
    (tmp_path / "r.csv").write_text("question_id,a\nq1,2\n")
    study = config.load(minimal_config("r.csv"), tmp_path)
    with pytest.raises(InputError):
        sources.collect(study.sources[0], study, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["agentdojo", "korbench", "mmlu_pro", "zeroeval", "speechmap", "joint"])
def test_real_tables(real_data: Path, minimal_config: Make, name: str) -> None:
    keys = {"items": f"{name}/items.csv.gz", "models_file": f"{name}/models.csv"}
    study = config.load(minimal_config(f"{name}/responses.csv.gz", **keys), real_data)
    found = table.read(study.sources[0], study)
    plain = pd.read_csv(
        real_data / name / "responses.csv.gz",
        dtype={"question_id": str},
        keep_default_na=False,
        na_values=[""],
    ).set_index("question_id")
    assert found.items == tuple(plain.index)
    assert found.models == tuple(plain.columns)
    np.testing.assert_array_equal(found.outcome, plain.fillna(-1).to_numpy().astype(np.int8))
    outcomes.item_schema().validate(found.item_facts)
    outcomes.model_schema().validate(found.model_facts)


@pytest.mark.parametrize(
    ("key", "text", "column", "fact"),
    [
        ("items", "question_id,benchmrk\nq1,A\nq2,A\nq3,A\n", "benchmrk", "benchmark"),
        ("items", "question_id,benchmark,categry\nq1,A,x\nq2,A,x\nq3,A,x\n", "categry", "category"),
        ("models_file", "model,linage\na/x@fp8,F\nd,F\nb c,F\n", "linage", "lineage"),
        ("models_file", "linaege,model\nF,a/x@fp8\nF,d\nF,b c\n", "linaege", "lineage"),
        ("models_file", "model,LINEAGE\na/x@fp8,F\nd,F\nb c,F\n", "LINEAGE", "lineage"),
        ("items", "question_id,BENCHMARK\nq1,A\nq2,A\nq3,A\n", "BENCHMARK", "benchmark"),
    ],
)
def test_a_misspelt_column_is_not_ignored(fault: Fault, key: str, text: str, column: str, fact: str) -> None:
    said = fault(GOOD, **{key: text})
    assert f'{key.removesuffix("_file")}.csv: row 1, column "{column}"' in said
    assert f'"{fact}"' in said


def test_a_parquet_table_without_columns_is_refused(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    pd.DataFrame(index=range(4)).to_parquet(path)
    assert "r.parquet: the table has no columns" in fault(path.read_bytes(), "r.parquet")


def test_columns_that_mean_something_else_are_left_alone(read: Read) -> None:
    text = "question_id,benchmark,note,author,benchmarks\nq1,A,n,me,x\nq2,A,n,me,x\nq3,A,n,me,x\n"
    assert list(read(GOOD, items=text).item_facts["benchmark"]) == ["A", "A", "A"]
    mapped = "question_id,benchmark,categry\nq1,A,x\nq2,A,x\nq3,A,y\n"
    facts = read(GOOD, items=mapped, columns={"category": "categry"}).item_facts
    assert list(facts["category"]) == ["x", "x", "y"]


# -- what cannot be seen, and columns of Parquet files


@pytest.mark.parametrize("odd", ["\x07", "\t", "\u200b", "\u202e", "\ufeff", "\xa0"], ids=ascii)
def test_names_can_be_seen(fault: Fault, odd: str) -> None:
    code = f"found U+{ord(odd):04X}, "
    text = fault(f"question_id,a,b\nq1,1,0\nq{odd}2,0,1\n")
    assert 'r.csv: row 3, column "question_id": a name holds a character that cannot be seen' in text
    assert code in text
    text = fault(f"question_id,a,b{odd}c\nq1,1,0\n")
    assert "r.csv: row 1, column 3: a name holds a character that cannot be seen" in text
    assert code in text
    assert text.isprintable()


@pytest.mark.parametrize("column", ["benchmark", "category", "testlet", "scored_as"])
def test_facts_can_be_seen(fault: Fault, column: str) -> None:
    items = f"question_id,{column}\nq1,x\nq2,y\u202ez\nq3,x\n"
    text = fault(GOOD, items=items)
    assert f'items.csv: row 3, column "{column}": a text holds a character that cannot be seen' in text
    assert "found U+202E, right-to-left override" in text


def test_names_and_groups_in_two_unicode_forms(fault: Fault) -> None:
    one, two = "\u00e9", "e\u0301"
    text = fault(f"question_id,a\n{one},1\nq,1\n{two},0\n")
    assert 'r.csv: row 4, column "question_id": the name looks like that of row 2' in text
    assert "r.csv: row 1, column 3: the name looks like" in fault(f"question_id,{one},{two}\nq,1,0\n")
    text = fault(f"question_id,a\n{one},1\n", items=f"question_id,benchmark\n{two},x\n")
    assert 'r.csv: row 2, column "question_id": this item has no row in items.csv' in text
    assert "same Unicode form (NFC)" in text
    text = fault(GOOD, items=f"question_id,benchmark\nq1,{one}\nq2,x\nq3,{two}\n")
    assert 'items.csv: row 4, column "benchmark": the text looks like that of row 2' in text


@pytest.mark.parametrize("word", ["nan", "None", "NA", "NULL", "<NA>"])
def test_groups_are_not_called_as_missing_values(fault: Fault, word: str) -> None:
    text = fault(GOOD, items=f"question_id,benchmark\nq1,x\nq2,{word}\nq3,x\n")
    assert f'items.csv: row 3, column "benchmark": found "{word}"; expected a benchmark' in text
    text = fault(GOOD, models_file=f"model,lineage\na/x@fp8,x\nb c,{word}\nd,{word}\n")
    assert f'models.csv: row 3, column "lineage": found "{word}"; expected a lineage' in text


@pytest.mark.parametrize("size", ["7_0", "\u0667", "1e30", "7000000000", "1e400", "-1", "0", "inf", "7B"])
def test_sizes_are_billions(fault: Fault, size: str) -> None:
    text = fault(GOOD, models_file=f"model,size_b\na/x@fp8,7\nb c,{size}\nd,\n")
    assert f'models.csv: row 3, column "size_b": found "{size}"; expected a number of billions' in text


def test_truth_values_as_pandas_writes_them(read: Read) -> None:
    items = "question_id,inverted\nq1,1.0\nq2,0.0\nq3,TRUE\n"
    assert read(GOOD, items=items).item_facts["inverted"].tolist() == [True, False, True]


CELLS: dict[str, tuple[pa.Array, list[int] | str]] = {
    "huge": (pa.array([1, 2**60 + 1]), 'found "1152921504606846977" for "y"'),
    "huge unsigned": (pa.array([1, 2**64 - 1], pa.uint64()), 'found "18446744073709551615" for "y"'),
    "decimal": (pa.array([Decimal("1.00"), Decimal(0)]), [1, 0]),
    "decimal with a gap": (pa.array([None, Decimal(0)], pa.decimal256(50, 2)), [-1, 0]),
    "nearly one": (pa.array([Decimal(1), Decimal("1." + "0" * 30 + "1")]), 'found "1.0000000000'),
    "text view": (pa.array(["1", None], pa.string_view()), [1, -1]),
    "dictionary": (pa.array([1, 0]).dictionary_encode(), [1, 0]),
    "infinite": (pa.array([1.0, float("inf")]), 'found "inf" for "y"'),
    "time": (pa.array([1, 0], pa.timestamp("us")), "found timestamp[us]"),
    "bytes": (pa.array([b"1", b"0"]), "found binary"),
    "list": (pa.array([[1], [0]]), "found list"),
    "mapping": (pa.array([{"a": 1}, {"a": 0}]), "found struct"),
}


@pytest.mark.parametrize("case", CELLS)
def test_parquet_cells_of_every_type(tmp_path: Path, minimal_config: Make, case: str) -> None:
    column, expected = CELLS[case]
    pq.write_table(pa.table({"question_id": ["x", "y"], "m": column}), tmp_path / "r.parquet")
    study = config.load(minimal_config("r.parquet"), tmp_path)
    if isinstance(expected, list):
        assert table.read(study.sources[0], study).outcome[:, 0].tolist() == expected
        return
    with pytest.raises(InputError) as caught:
        table.read(study.sources[0], study)
    assert "r.parquet: row " in str(caught.value)
    assert 'column "m": ' in str(caught.value)
    assert expected in str(caught.value)


FACTS: dict[str, tuple[pa.Array, str | list[str]]] = {
    "huge": (pa.array([2**60 + 1, 4]), ["1152921504606846977", "4"]),
    "whole": (pa.array([4.0, None]), ["4", ""]),
    "large": (pa.array([1e300, 1e15]), ["1e+300", "1000000000000000"]),
    "single": (pa.array([0.1, 7.5], pa.float32()), ["0.1", "7.5"]),
    "decimal": (pa.array([Decimal("4.50"), None]), ["4.50", ""]),
    "truth": (pa.array([True, None]), ["true", ""]),
    "dictionary": (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
    "date": (pa.array([date(2024, 5, 1), None]), ["2024-05-01", ""]),
    "midnight": (
        pa.array([datetime(2024, 5, 1), datetime(2024, 5, 1, 12)]),
        ["2024-05-01", "2024-05-01 12:00:00"],
    ),
    "zone": (pa.array([0, None], pa.timestamp("us", "Europe/Nowhere")), ["1970-01-01", ""]),
    "nothing": (pa.nulls(2), ["", ""]),
    "too late": (pa.array([2**62, 0], pa.timestamp("us")), "timestamp[us]"),
    "bytes": (pa.array([b"a", b"b"]), "binary"),
    "list": (pa.array([["a"], ["b"]]), "list<element: string>"),
    "mapping": (pa.array([{"a": 1}, {"a": 0}]), "struct<a: int64>"),
}


@pytest.mark.parametrize("case", FACTS)
def test_parquet_facts_of_every_type(tmp_path: Path, minimal_config: Make, case: str) -> None:
    column, expected = FACTS[case]
    (tmp_path / "r.csv").write_text("question_id,m,n\nx,1,0\ny,0,1\n")
    facts = {"question_id": ["x", "y"], "benchmark": ["b", "b"], "testlet": column}
    pq.write_table(pa.table(facts), tmp_path / "items.parquet")
    study = config.load(minimal_config("r.csv", items="items.parquet"), tmp_path)
    if isinstance(expected, list):
        found = table.read(study.sources[0], study).item_facts["testlet"]
        assert found.fillna("").tolist() == expected
        return
    with pytest.raises(InputError) as caught:
        table.read(study.sources[0], study)
    text = str(caught.value)
    assert 'items.parquet: row 1, column "testlet": the column holds neither texts nor numbers' in text
    assert f"found the type {expected}" in text


def test_columns_that_nobody_asks_for_may_hold_anything(tmp_path: Path, minimal_config: Make) -> None:
    (tmp_path / "r.csv").write_text("question_id,m,n\nx,1,0\n")
    facts = {"question_id": ["x"], "benchmark": ["b"], "embedding": [[0.5, 0.25]]}
    pq.write_table(pa.table(facts), tmp_path / "items.parquet")
    study = config.load(minimal_config("r.csv", items="items.parquet"), tmp_path)
    assert table.read(study.sources[0], study).item_facts["benchmark"].tolist() == ["b"]
