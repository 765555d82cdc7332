from __future__ import annotations

import gzip
import hashlib
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmirt import files
from benchmirt.errors import InputError


def test_atomic_leaves_the_old_file_and_nothing_else_when_the_writer_fails(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "x.txt"
    files.write_text("old", target)

    def write_half() -> None:
        with files.atomic(target) as temporary:
            temporary.write_text("ne")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert [path.name for path in target.parent.iterdir()] == ["x.txt"]


def test_atomic_keeps_the_suffix(tmp_path: Path) -> None:
    with files.atomic(tmp_path / "a.csv.gz") as temporary:
        assert temporary.name.endswith("a.csv.gz")
        assert temporary.parent == tmp_path
        temporary.touch()


def test_hashes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc" * 1_000_000)
    assert files.sha256_of(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()
    assert files.sha256_bytes(b"") == hashlib.sha256().hexdigest()


def test_json_is_sorted_and_has_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    value = {
        "b": np.float32(0.5),
        "a": [math.nan, math.inf, np.int8(3), np.bool_(True)],
        "c": np.array([[1.0, np.nan]]),
        "d": ("é", Path("p/q"), {"y", "x"}),
        "e": None,
    }
    files.write_json(value, path)
    text = path.read_text(encoding="utf-8")
    assert text.index('"a"') < text.index('"b"')
    assert "NaN" not in text
    assert "é" in text
    assert files.read_json(path) == {
        "a": [None, None, 3, True],
        "b": 0.5,
        "c": [[1.0, None]],
        "d": ["é", "p/q", ["x", "y"]],
        "e": None,
    }
    with pytest.raises(TypeError, match="object"):
        files.write_json(object(), path)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_tables_are_byte_reproducible_and_read_back(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame(
        {
            "model": ["a/b", "c@d", "é f"],
            "outcome": pd.array([1, 0, None], dtype="Int8"),
            "score": [0.1, np.nan, 1e-300],
        }
    )
    paths = [tmp_path / "one" / name, tmp_path / "two" / name]
    for path in paths:
        (files.write_parquet if name.endswith("parquet") else files.write_csv)(frame, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if name.endswith("parquet"):
        pd.testing.assert_frame_equal(pd.read_parquet(paths[0]), frame, check_dtype=False)
    else:
        read = pd.read_csv(paths[0], dtype={"outcome": "Int8"})
        pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    if name.endswith("gz"):
        assert b"\r" not in gzip.decompress(paths[0].read_bytes())


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with files.atomic_folder(target) as home:
        (home / "a").write_text("1")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["a"]
    with files.atomic_folder(target) as home:
        (home / "b").write_text("2")
    assert [path.name for path in target.iterdir()] == ["b"]
    with pytest.raises(FileNotFoundError), files.atomic_folder(target) as home:
        (home / "missing" / "c").write_text("3")
    assert [path.name for path in target.iterdir()] == ["b"]
    assert [path.name for path in target.parent.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("content", "told"),
    [(b'{"a": 1,\n"b', "line 2"), (b'{"a": "\xe9"}', "not UTF-8"), (b"", "line 1"), (None, "does not exist")],
)
def test_a_damaged_json_file_is_named(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "number.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        files.read_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'a key stands twice: found "c"'),
        ("[" * 100_000, "nested without end"),
    ],
)
def test_json_that_would_be_read_in_part_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        files.read_json(path)


def test_a_stamp_tells_files_apart_whatever_their_times(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,1\n")
    os.utime(path, (9, 9))
    first = files.stamp_of([path])
    path.write_text("x,0\n")
    os.utime(path, (9, 9))
    assert files.stamp_of([path]) != first
    path.write_text("x,1\n")
    assert files.stamp_of([path]) == first
    assert files.stamp_of([tmp_path / "gone.csv"]) != files.stamp_of([])


def test_a_stamp_of_a_folder_tells_every_file_in_it(tmp_path: Path) -> None:
    home = tmp_path / "model"
    path = home / "task" / "latest" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_text("1")
    os.utime(path, (9, 9))
    seen = [files.stamp_of([home])]
    path.write_text("2")
    os.utime(path, (8, 8))  # of the same size, and older
    seen.append(files.stamp_of([home]))
    path.write_text("22")
    os.utime(path, (8, 8))
    seen.append(files.stamp_of([home]))
    path.rename(path.with_name("1.json"))
    seen.append(files.stamp_of([home]))
    (home / "all").symlink_to(home)  # leads round in a circle
    seen.append(files.stamp_of([home]))
    assert len(set(seen)) == 5
    assert files.stamp_of([home]) == seen[-1]


def test_a_text_among_numbers_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,fold,a,b\n1,all,0.5,x\nm,1,,y\nn,2,1e-3,z\n")
    table = pd.read_csv(path)
    assert files.check_numbers(table, path, {"model", "fold"}) is table
    path.write_text("model,fold,a,b\n1,all,0.5,x\nm,1,,y\nn,2,1e-3?,z\n")
    with pytest.raises(
        InputError, match=r't.csv: row 4, column "a": a text stands among numbers: found "1e-3\?"'
    ):
        files.check_numbers(pd.read_csv(path), path, {"model", "fold"})
