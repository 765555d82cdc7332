"""YAML files of users: each fault is one sentence that names the file and the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmirt import strict_yaml
from benchmirt.errors import InputError


def fault(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        strict_yaml.read_mapping(path, path.name)
    text = str(caught.value)
    assert text.startswith(f"{path.name}: ")
    assert text.isprintable()
    return text


FAULTS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "not YAML": ("a: 1\nb: [\n", ("row 3", "not YAML")),
    "tab": ("a:\n\tb: 1\n", ("row 2", "not YAML", "Indent with spaces")),
    "key twice": ("a: 1\nb: 2\na: 3\n", ("row 3", "twice", '"a", as in row 1')),
    "key twice below": ("a:\n- b: 1\n  c: 2\n  b: 3\n", ("row 4", '"b", as in row 2')),
    "key twice in braces": ("a: {b: 1, b: 2}\n", ("row 1", '"b"')),
    "key twice in quotes": ('a: 1\n"a": 2\n', ("row 2", '"a", as in row 1')),
    "key twice in JSON": ('{"a": {"b": 1, "b": 2}}', ('"b"', "twice")),
    "truth value as key": ("a: 1\non: 2\n", ("row 2", "found on, which YAML reads as a truth value", '"on"')),
    "number as key": ("7: 2\n", ("row 1", "found 7", 'quotes: "7"')),
    "date as key": ("2020-01-01: 2\n", ("row 1", "found 2020-01-01", "a date")),
    "nothing as key": ("a: 1\nnull: 2\n", ("row 2", "found null", "reads as nothing")),
    "list as key": ("? [a]\n: 2\n", ("row 1", "a list or a mapping")),
    "not UTF-8": (b"a: 1\nb: \xe9\n", ("row 2", "not UTF-8", "0xe9")),
    "UTF-16": ("a: 1\n".encode("utf-16"), ("UTF-16", "Save it as UTF-8")),
    "control character": ("a: 1\nb: \x07\n", ("row 2", "U+0007")),
    "tag": ("a: !!python/name:os.system\n", ("row 1", "not YAML")),
    "two documents": ("a: 1\n---\nb: 1\n", ("row 2", "another document")),
    "itself": ("a: &x\n  b: *x\n", ("row 1", "contains itself")),
    "too deep": ("a: " + "[" * 5000, ("nested too deeply",)),
    "too many": (
        "a: &a [1,1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
            for old, new in zip("abcdef", "bcdefg", strict=True)
        ),
        ("aliases repeat too much",),
    ),
    "no date": ("a: 2020-99-99\n", ("month must be", "quotes")),
    "long number": ("a: " + "9" * 5000, ("cannot be read", "quotes")),
    "octal": ("a: 010\n", ("row 1", "found 010", "to the base of 8", "base of 10")),
    "sexagesimal": ("a: 1\nb: [1:30]\n", ("row 2", "found 1:30", "to the base of 60")),
    "empty": ("", ("found nothing", "a mapping")),
    "comments only": ("# a: 1\n", ("found nothing", "a mapping")),
    "list": ("- a\n", ("found a list", "a mapping")),
    "text": ("a\n", ("found a text", "a mapping")),
    "number": ("7\n", ("found a single value", "a mapping")),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_name_file_and_row(tmp_path: Path, case: str) -> None:
    content, words = FAULTS[case]
    path = tmp_path / "c.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    text = fault(path)
    for word in words:
        assert word in text


def test_what_is_no_file(tmp_path: Path) -> None:
    assert f"this file does not exist: looked for {tmp_path / 'a.yaml'}." in fault(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").mkdir()
    assert f"this is a folder and not a file: looked for {tmp_path / 'b.yaml'}." in fault(tmp_path / "b.yaml")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: 1\n", {"a": 1}),
        ("\ufeffa: 1\r\nb: é\r\n", {"a": 1, "b": "é"}),
        ("x: &x {a: 1}\ny: {<<: *x, a: 2}\n", {"x": {"a": 1}, "y": {"a": 2}}),
        ('{\n\t"a": 1\n}', {"a": 1}),
        ("{a: 1}", {"a": 1}),
        ("a: '010'\nb: 0\nc: 0.5\nd: 10\ne: '1:30'\n", {"a": "010", "b": 0, "c": 0.5, "d": 10, "e": "1:30"}),
    ],
    ids=["plain", "byte-order mark, Windows", "merged", "JSON", "braces", "numbers and quoted ones"],
)
def test_what_is_read(tmp_path: Path, content: str, expected: Any) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content.encode())
    assert strict_yaml.read_mapping(path) == expected
