from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from benchmirt.errors import InputError, faults, nearest


def test_the_sentence_names_file_place_contrast_and_way_out() -> None:
    error = InputError(
        "",
        file=Path("data/x.csv"),
        where='row 17, column "m"',
        found='"2"',
        expected="1, 0 or empty",
        todo="Correct the value or drop the column.",
    )
    assert str(error) == (
        'data/x.csv: row 17, column "m": found "2"; expected 1, 0 or empty. '
        "Correct the value or drop the column."
    )


def test_parts_that_are_not_given_leave_no_trace() -> None:
    assert str(InputError("no models at all")) == "no models at all."
    assert str(InputError("the file is empty.", file="a.csv")) == "a.csv: the file is empty."


def test_an_error_survives_pickling() -> None:
    error = InputError("bad", file="f", where="w", found="x", expected="y", todo="z")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_several_faults_are_numbered_and_one_is_itself() -> None:
    first, second = InputError("a"), InputError("b")
    assert faults([first]) is first
    text = str(faults([first, second]))
    assert "2 faults" in text
    assert "1. a." in text
    assert "2. b." in text
    with pytest.raises(ValueError, match="no faults"):
        faults([])


@pytest.mark.parametrize(
    ("word", "expected"),
    [("seed", "seeds"), ("Max-Dims", "max_dims"), ("benchmrk", "benchmark"), ("zzz", None), ("", None)],
)
def test_nearest(word: str, expected: str | None) -> None:
    assert nearest(word, ["dims", "max_dims", "seeds", "benchmark"]) == expected
