"""Published tables of statistics are read as they stand, or refused by row and column."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from claims_fixture import study_of

from benchmirt import published_statistics
from benchmirt.errors import InputError

ITEMS = "question_id,benchmark,average_score\nq1,bbh,0.25\nNA,bbh,\n"
MODELS = "model,family,bbh_average,MMLU-Pro_average\norg/NA,1,0.25,\nnan,,0.5,1e-05\n"


def read(home: Path, role: str, text: str | bytes, name: str = "") -> pd.DataFrame:
    name = name or f"{role}.csv"
    (home / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return published_statistics.read(study_of(base=home, published_statistics={role: name}), role)


def test_names_stay_names_and_scores_are_numbers(tmp_path: Path) -> None:
    items = read(tmp_path, "items", ITEMS)
    assert items["question_id"].tolist() == ["q1", "NA"]
    assert items["average_score"].iloc[0] == 0.25
    assert items["average_score"].isna().tolist() == [False, True]
    models = read(tmp_path, "models", b"\xef\xbb\xbf" + MODELS.replace("\n", "\r\n").encode())
    assert models["model"].tolist() == ["org__NA", "nan"]
    assert models["MMLU-Pro_average"].tolist()[1] == 1e-05
    assert models["family"].tolist()[0] == "1"


def test_a_table_of_parquet_is_read_alike(tmp_path: Path) -> None:
    read(tmp_path, "items", ITEMS).to_parquet(tmp_path / "items.parquet")
    study = study_of(base=tmp_path, published_statistics={"items": "items.parquet"})
    pd.testing.assert_frame_equal(published_statistics.read(study, "items"), read(tmp_path, "items", ITEMS))


@pytest.mark.parametrize(
    ("role", "text", "told"),
    [
        ("items", ITEMS.replace("0.25", "0.2x"), 'items.csv: row 2, column "average_score": found "0.2x"'),
        (
            "items",
            ITEMS.replace("0.25", "1_0"),
            'column "average_score": found "1_0"; expected a number, or nothing',
        ),
        ("items", ITEMS.replace("0.25", "inf"), 'found "inf"'),
        ("items", ITEMS.replace("NA", ""), 'row 3, column "question_id": found nothing'),
        ("items", ITEMS.replace("NA", "q1"), '"q1" twice'),
        ("items", ITEMS.replace("benchmark", "average_score"), "two columns have the same name"),
        ("items", ITEMS.replace("question_id", "id"), 'there is no column "question_id"'),
        ("items", ITEMS.replace(",", ";"), "separated by semicolons; use commas"),
        ("items", "", "the file is empty"),
        ("items", ITEMS.encode("utf-16"), "UTF-16"),
        ("items", ITEMS[:-2], "fields"),
        ("models", MODELS.replace("nan,,", "org__NA,,"), 'row 3, column "model": found "org__NA" twice'),
        ("models", MODELS.replace("1e-05", "NaN"), 'column "MMLU-Pro_average": found "NaN"'),
    ],
)
def test_a_damaged_table_is_refused(role: str, text: str | bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, role, text)
    assert told in str(caught.value)
    assert "columns:" not in str(caught.value)
