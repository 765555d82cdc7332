from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from benchmirt.errors import InputError, faults, nearest, visible


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
    error = InputError(
        "bad", file="f", where="w", found="x" * 1000, expected="y", todo="z\n", looked_for=Path("/p")
    )
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


def test_what_was_looked_for_is_not_called_found() -> None:
    error = InputError("this file does not exist", file="a.yaml", where="k", looked_for=Path("/x/y.csv"))
    assert str(error) == "a.yaml: k: this file does not exist: looked for /x/y.csv."


def test_a_sentence_is_one_visible_line_whatever_it_quotes() -> None:
    error = InputError(
        "a\x07", file="f\n.csv", where='row 1, column "\u202e"', found="\u200b", expected="é", todo="no\r"
    )
    text = str(error)
    assert text.isprintable()
    for code in ("a\\x07", "f\\n.csv", "\\u202e", "\\u200b", "é", "no\\r"):
        assert code in text
    assert visible("a b é") == "a b é"


def test_a_sentence_does_not_repeat_a_value_without_end() -> None:
    text = str(InputError("", file="f.csv", found="9" * 10_000, expected="1"))
    assert len(text) < 600
    assert "(10000 characters); expected 1" in text
