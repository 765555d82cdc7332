"""Logs of inspect: ZIP archives and JSON, epochs, errors, cancelled runs, logs without scores, graded scores."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from files_fixture import Files, Row, holds, outcomes, reasons

from benchmirt.sources import archive

HEADER: Row = {
    "version": 2,
    "status": "success",
    "eval": {"task": "arc", "model": "org/m", "dataset": {"name": "d"}, "config": {"epochs": 1}},
    "results": {"scores": [{"name": "choice", "metrics": {"accuracy": {"value": 0.5}}}]},
}


def sample(number: Any, value: Any = "C", epoch: int = 1, **more: Any) -> Row:
    score = {"value": value, "answer": "A", "explanation": None, "metadata": None, "history": []}
    return {
        "id": number,
        "epoch": epoch,
        "input": f"secret question {number}",
        "choices": ["x", "y"],
        "target": "A",
        "scores": {"choice": score},
        "metadata": {},
        "error": None,
        "limit": None,
        "uuid": f"u{number}",
        **more,
    }


def log(*samples: Row, **more: Any) -> Row:
    return {**HEADER, "samples": list(samples), **more}


def members(samples: Sequence[Row], header: Mapping[str, Any] = HEADER) -> dict[str, bytes]:
    found = {f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode() for one in samples}
    extra: dict[str, Any] = {"_journal/start.json": header, "summaries.json": [], "reductions.json": []}
    return {
        **{name: json.dumps(value).encode() for name, value in extra.items()},
        **found,
        "header.json": json.dumps(header).encode(),
    }


def zipped(content: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as stream:
        for name, data in content.items():
            stream.writestr(name, data)
    return buffer.getvalue()


def zstandard(content: Mapping[str, bytes]) -> bytes:
    """Write a ZIP archive by hand, its members compressed with Zstandard (method 93), as new versions do."""
    body, directory = b"", b""
    for name, data in content.items():
        packed = pa.Codec("zstd").compress(data, asbytes=True)
        common = struct.pack(
            "<HHHHHIIIHH", 20, 0, 93, 0, 0, zlib.crc32(data), len(packed), len(data), len(name), 0
        )
        directory += (
            b"PK\x01\x02"
            + struct.pack("<H", 20)
            + common
            + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
            + name.encode()
        )
        body += b"PK\x03\x04" + common + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(content), len(content), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


@pytest.fixture
def files(tmp_path: Any) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("write", [zipped, zstandard, lambda content: zipped(content, zipfile.ZIP_STORED)])
def test_archives(files: Files, write: Callable[[Mapping[str, bytes]], bytes]) -> None:
    files.put(
        "2025_arc.eval", write(members([sample(1), sample("q 2", "I"), sample(3, 1.0), sample(4, False)]))
    )
    cells = files.cells(by="files")
    assert cells == {
        "arc__1": (1, None, 1),
        "arc__q 2": (0, None, 0),
        "arc__3": (1, None, 1),
        "arc__4": (0, None, 0),
    }
    assert files.models() == ["org/m"]
    assert files.items()["options"].tolist() == [2] * 4
    assert files.items()["content_hash"].is_unique
    assert files.manifests()[0]["failures_known"] is True


def test_the_same_in_json_and_by_a_folder_per_model(files: Files) -> None:
    files.put("m/log.json", log(sample(1), sample(2, "I")))
    assert outcomes(files.cells("inspect")) == [1, 0]
    assert files.models() == ["m"]


def test_failures_are_missing_with_their_reason(files: Files) -> None:
    """Errored samples, limits, no score, no answer: none of them is a wrong answer."""
    nothing: Row = {"scores": {}}
    rows = [
        sample(1, error={"message": "secret", "traceback": "secret"}, **nothing),
        sample(2, limit={"type": "token", "limit": 10}, **nothing),
        sample(3, limit={"type": "time", "limit": 10}, **nothing),
        sample(4, limit={"type": "token", "limit": 10}),
        sample(5, **nothing),
        sample(6, "N"),
        sample(7, "C", error="secret"),
        sample(8, None),
        sample(9, scores=None),
    ]
    files.put("m/log.json", log(*rows))
    cells = files.cells()
    assert reasons(cells) == [
        *("errored", "truncated", "timeout", None, "judge_failed", "empty", "errored", "judge_failed"),
        "judge_failed",
    ]
    assert outcomes(cells) == [None, None, None, 1, *[None] * 5]
    assert [cell[2] for cell in cells.values()] == [None, None, None, 1, *[None] * 5]


def test_grades_are_kept_until_a_rule_has_a_threshold(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    """The tool itself turns P into 0.5, and lists and mappings into 0 with a warning; here they are missing."""
    rows = [
        sample(1, 0.65),
        sample(2, "P"),
        sample(3, [1, 0]),
        sample(4, {"a": 1}),
        sample(5, "C"),
        sample(6, 0.2),
    ]
    files.put("m/log.json", log(*rows))
    assert [cell[:2] for cell in files.cells().values()] == [
        *[(None, "no_threshold")] * 2,
        *[(None, "unparsed")] * 2,
        (1, None),
        (None, "no_threshold"),
    ]
    assert files.table()["score"].fillna(-1).tolist() == [0.65, 0.5, -1, -1, 1, 0.2]
    assert "raw: 3 outcomes are missing since their grade is neither 0 nor 1" in caplog.text
    files.declare(
        inspect={
            "benchmark": "arc",
            "tasks": "arc",
            "question_id": "arc__{id}",
            "one": {"field": "score", "at_least": 0.5, "values": {"C": 1, "I": 0, "P": 0.5}},
        }
    )
    assert outcomes(files.cells()) == [1, 1, None, None, 1, 0]


def epochs(*values: Any, **more: Any) -> list[Row]:
    return [sample(1, value, epoch, **more) for epoch, value in enumerate(values, start=1)]


def test_epochs_are_refused_without_a_reduction(files: Files) -> None:
    files.put("logs/a.json", log(*epochs("I", "C"), sample(2)))
    holds(
        files.fault(),
        [
            'in/logs/a.json: sample 2, field "epoch": "arc__1" was asked several times, and no rule says which',
            "found epoch 1, 2. Write repeats: first, majority or {mean: 0.5} into a scoring rule.",
        ],
    )


@pytest.mark.parametrize(
    ("repeats", "values", "expected"),
    [
        ("first", ["I", "C", "C"], (0, None)),
        ("first", ["N", "C", "C"], (None, "empty")),
        ("majority", ["I", "C", "C"], (1, None)),
        ("majority", ["I", "C"], (None, "conflict")),
        ("majority", ["N", "C", "C", "I"], (1, None)),
        ("majority", ["N", "N"], (None, "empty")),
        ({"mean": 0.5}, ["I", "C"], (1, None)),
        ({"mean": 0.51}, ["I", "C"], (0, None)),
        ({"mean": 0.5}, [0.4, 0.7], (1, None)),
        ({"mean": 0.6}, [0.4, 0.7], (0, None)),
        ({"mean": 0.5}, ["P", "N", [1]], (1, None)),
        ({"mean": 0.5}, ["N", [1]], (None, "empty")),
    ],
)
def test_epochs_with_a_declared_reduction(
    files: Files, repeats: Any, values: list[Any], expected: tuple[int | None, str | None]
) -> None:
    rule = {
        "benchmark": "arc",
        "tasks": "arc",
        "question_id": "arc__{id}",
        "one": {"field": "score", "is": True, "values": {"C": 1, "I": 0, "P": 0.5}},
        "failure": {"published": None, "texts": {"N": "empty"}, "why": "missing"},
        "repeats": repeats,
    }
    files.declare(inspect=rule)
    rows = epochs(*values)
    files.put("m/log.json", log(*reversed(rows), sample(2)))
    cells = files.cells()
    assert list(cells) == ["arc__1", "arc__2"]
    assert cells["arc__1"][:2] == expected
    assert files.manifests()[0]["read"]["repeated"] == len(values) - 1


@pytest.mark.parametrize(
    ("repeats", "values", "expected"),
    [
        ("majority", {1: ["C", "C", "C"], 2: ["I"], 3: ["I"]}, (0, None)),
        ("majority", {1: ["C"], 2: ["I", "C"], 3: ["C"]}, (None, "conflict")),
        ("majority", {1: ["N", "C"], 2: ["C"], 3: ["I"]}, (1, None)),
        ({"mean": 0.5}, {1: ["C", "C"], 2: ["I"], 3: ["I"]}, (0, None)),
        ({"mean": 0.5}, {1: [0.9, 0.9], 2: [0.4], 3: [0.1]}, (0, None)),
        ({"mean": 0.5}, {1: [0.9, 0.8], 2: [0.4], 3: [0.1]}, (None, "conflict")),
        ("first", {1: ["C", "C"], 2: ["I"]}, (1, None)),
        ("first", {1: ["C", "I"], 2: ["I"]}, (None, "conflict")),
    ],
)
def test_an_epoch_that_stands_in_several_rows_counts_once(
    files: Files, repeats: Any, values: dict[int, list[Any]], expected: tuple[int | None, str | None]
) -> None:
    """A log that was written twice must not outvote the other epochs."""
    rule = {
        "benchmark": "arc",
        "tasks": "arc",
        "question_id": "arc__{id}",
        "one": {"field": "score", "is": True, "values": {"C": 1, "I": 0}},
        "failure": {"texts": {"N": "empty"}, "why": "missing"},
        "repeats": repeats,
    }
    files.declare(inspect=rule)
    rows = [sample(1, value, epoch) for epoch, own in values.items() for value in own]
    files.put("m/log.json", log(*rows))
    assert files.cells()["arc__1"][:2] == expected
    (manifest,) = files.manifests()
    counted = {entry["done"]: entry["outcomes"] for entry in manifest["conflicts"]}
    assert counted["each repeat counted once"] == len(rows) - len(values)
    assert manifest["read"]["repeated"] == len(rows) - 1


def test_an_errored_epoch_does_not_count_in_a_mean(files: Files) -> None:
    rule = {
        "benchmark": "arc",
        "tasks": "arc",
        "question_id": "arc__{id}",
        "one": {"field": "score", "at_least": 0.5},
        "failure": {"why": "missing"},
        "repeats": {"mean": 0.5},
    }
    files.declare(inspect=rule)
    files.put("m/log.json", log(sample(1, 0.6), sample(1, 0, 2, error="e")))
    assert files.cells() == {"arc__1": (1, None, 1)}


def test_cancelled_runs(files: Files) -> None:
    files.put("m/log.json", log(sample(1), sample(2, scores={}), status="cancelled"))
    assert [cell[:2] for cell in files.cells().values()] == [(1, None), (None, "not_run")]
    assert files.manifests()[0]["runs"] == {"arc": "cancelled"}


def test_a_cancelled_run_without_samples_has_no_outcome_whatever_its_totals_say(files: Files) -> None:
    files.put(
        "m/log.json", log(status="cancelled", reductions=[{"scorer": "choice", "samples": [{"value": 1.0}]}])
    )
    holds(files.fault(), ["in/m: this model has no row", 'found 0 rows; a run of arc called "cancelled"'])


def test_a_log_without_samples_is_refused_whatever_its_totals_say(files: Files) -> None:
    files.put("a.json", {**HEADER, "reductions": [{"scorer": "choice", "samples": [{"value": 1.0}]}]})
    holds(
        files.fault(by="files"),
        ["in/a.json: the log holds no samples, only totals. Run it with --log-samples"],
    )


def test_a_run_that_crashed_leaves_its_start_only(files: Files) -> None:
    content = members([sample(1), sample(2, scores={})], {key: HEADER[key] for key in ("version", "eval")})
    del content["header.json"]
    files.put("a.eval", zipped(content))
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(1, None), (None, "not_run")]
    assert files.manifests()[0]["runs"] == {"arc": "started"}


def test_invalidated_logs_are_excluded(files: Files) -> None:
    files.put("m/log.json", log(sample(1), invalidated=True))
    assert files.cells() == {"arc__1": (None, "excluded", None)}


def test_a_retried_run_completes_another(files: Files) -> None:
    files.put("a.json", log(sample(1), sample(2, error="e", scores={}), status="error"))
    files.put("b.json", log(sample(1), sample(2, "I"), sample(3, "C")))
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(1, None), (0, None), (1, None)]
    files.put("c.json", log(sample(1, "I")))
    assert files.cells(by="files")["arc__1"] == (None, "conflict", None)


def test_several_scorers_are_refused_and_one_is_chosen_by_a_rule(files: Files) -> None:
    scores = {"choice": {"value": "I"}, "judge": {"value": "C"}}
    files.put("m/log.json", log(sample(1, scores=scores)))
    holds(
        files.fault(), ["in/m/log.json: the rows hold several grades", "found choice, judge", "scores.choice"]
    )
    one = {"field": "scores.judge", "is": True, "values": {"C": 1, "I": 0}}
    files.declare(inspect={"benchmark": "arc", "tasks": "arc", "question_id": "arc__{id}", "one": one})
    assert outcomes(files.cells()) == [1]


def test_shuffled_options_are_the_same_question(files: Files) -> None:
    files.put("a.json", log(sample(1)))
    other = {**HEADER["eval"], "model": "org/n"}
    files.put("b.json", log(sample(1, "I", choices=["y", "x"], target="B"), eval=other))
    assert files.table(by="files")["content_hash"].nunique() == 2
    items = files.items()
    assert len(items) == 2
    assert items["question_hash"].nunique() == items["key_hash"].nunique() == 1
    files.put("b.json", log(sample(1, "I", choices=["y", "z"]), eval=other))
    assert files.table(by="files")["content_hash"].nunique() == 2
    assert files.items()["question_hash"].nunique() == 2


# -- what is wrong ------------------------------------------------------------------------------------------

GOOD = members([sample(1), sample(2, "I")])


def flipped(data: bytes) -> bytes:
    """Change a byte in the content of the first sample."""
    place = data.index(b"samples/1_epoch_1.json") + 60
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (zipped(GOOD)[:-30], ["this ZIP archive is damaged, or was cut off"]),
        (zipped(GOOD)[:200], ["this ZIP archive is damaged"]),
        (flipped(zstandard(GOOD)), ['"samples/1_epoch_1.json": this ZIP archive is damaged']),
        (flipped(zipped(GOOD)), ['"samples/1_epoch_1.json": this ZIP archive is damaged']),
        (zipped({**GOOD, "/etc/passwd": b"x"}), ["a name in the archive leads out of it", '"/etc/passwd"']),
        (zipped({**GOOD, "samples/../../x.json": b"{}"}), ["leads out of it"]),
        (zipped({**GOOD, "C:/x.json": b"{}"}), ["leads out of it"]),
        (zipped({"a.txt": b"x"}), ["no log of inspect: found a.txt; expected header.json"]),
        (zipped({}), ["no log of inspect: found nothing in it"]),
        (zipped({**GOOD, "header.json": b"[]"}), ["header.json: found a list"]),
        (zipped({**GOOD, "header.json": b'{"eval": {}}'}), ["the log does not name its task"]),
        (
            zipped({**GOOD, "header.json": b'{"eval": {"task": "t", "model": 1}}'}),
            ["does not name its model"],
        ),
        (zipped({**GOOD, "samples/9.json": b"{"}), ["samples/9.json, column 2: this is not JSON"]),
        (zipped({**GOOD, "samples/9.json": b"[]"}), ["samples/9.json: found a list; expected an object"]),
        (zipped({**GOOD, "samples/9.json": b"{}"}), ["which item it is about", "found id nothing"]),
        (zipped({**GOOD, "samples/9.json": b'{"id": [1]}'}), ["arc__[1]"]),
    ],
)
def test_archives_that_are_wrong(files: Files, data: bytes, words: list[str]) -> None:
    files.put("a.eval", data)
    if words == ["arc__[1]"]:
        assert list(files.cells(by="files")) == ["arc__1", "arc__2", *words]
        return
    message = files.fault(by="files")
    assert message.startswith("in/a.eval: ")
    holds(message, words)
    assert "secret" not in message


@pytest.mark.parametrize("write", [zipped, zstandard])
def test_zip_bombs_are_not_unpacked(
    files: Files, write: Callable[[Mapping[str, bytes]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_A_MEMBER", 1 << 16)
    bomb = write({**GOOD, "samples/9.json": b" " * (1 << 20)})
    assert len(bomb) < 1 << 14
    files.put("a.eval", bomb)
    holds(
        files.fault(by="files"),
        ['"samples/9.json": a member of the archive unpacks to too much', "65,536 bytes"],
    )
    size = struct.pack("<I", 1 << 20)
    files.put("a.eval", bomb.replace(size, struct.pack("<I", 100)))
    holds(files.fault(by="files"), ['"samples/9.json"'])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_samples_under_one_name_are_refused_and_the_last_does_not_win(files: Files) -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as stream:
        for name, content in (*GOOD.items(), *GOOD.items()):
            stream.writestr(name, content)
    files.put("a.eval", buffer.getvalue())
    assert outcomes(files.cells(by="files")) == [1, 0]
    shutil.rmtree(files.out)
    with zipfile.ZipFile(buffer, "a") as stream:
        stream.writestr("summaries.json", b"[1]")  # of which nothing is read
    files.put("a.eval", buffer.getvalue())
    assert outcomes(files.cells(by="files")) == [1, 0]
    shutil.rmtree(files.out)
    with zipfile.ZipFile(buffer, "a") as stream:
        stream.writestr("samples/1_epoch_1.json", json.dumps(sample(1, "I")))
    files.put("a.eval", buffer.getvalue())
    holds(files.fault(by="files"), ['"samples/1_epoch_1.json": two members of the archive have this name'])


def test_many_large_members_are_not_unpacked(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_AT_ALL", 1 << 16)
    monkeypatch.setattr(archive, "_MOST_TIMES", 20)
    files.put("a.eval", zipped({**GOOD, **{f"samples/b{k}.json": b" " * (1 << 16) for k in range(9)}}))
    holds(files.fault(by="files"), ["in/a.eval: the archive unpacks to too much", "in 15 members"])


def test_encrypted_and_unknown_members(files: Files) -> None:
    data = bytearray(zipped(GOOD, zipfile.ZIP_STORED))
    for mark, shift in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            data[place + shift] |= 1
    files.put("a.eval", bytes(data))
    holds(files.fault(by="files"), ["damaged", "encrypted"])
    data = bytearray(zipped(GOOD, zipfile.ZIP_STORED))
    for mark, shift in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            data[place + shift] = 97
    files.put("a.eval", bytes(data))
    holds(files.fault(by="files"), ["damaged", "compression"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**HEADER, "samples": {"a": 1}}, ["samples: found an object; expected a list of objects"]),
        ({**HEADER, "samples": ["x"]}, ["sample 1: found a text; expected an object"]),
        ({**HEADER, "eval": {"task": "t", "model": ""}}, ["does not name its model"]),
        (
            {**HEADER, "eval": {"task": "t", "model": "a\u202eb"}, "samples": [sample(1)]},
            ["cannot be seen", "U+202E"],
        ),
        ({**HEADER, "eval": {"task": "t", "model": " a"}, "samples": [sample(1)]}, ['found " a"']),
    ],
)
def test_logs_that_are_wrong(files: Files, content: Any, words: list[str]) -> None:
    files.put("a.json", content)
    holds(files.fault(by="files"), words)


def test_names_of_models_are_no_paths(files: Files) -> None:
    names = ["../../etc/passwd", "/abs", "a/../b", "m{x}", "é", "-rf"]
    for number, name in enumerate(names):
        files.put(f"{number}.json", log(sample(1), eval={**HEADER["eval"], "model": name}))
    before = {path for path in files.home.rglob("*") if "out" not in path.parts}
    assert len(files.collect(by="files")) == 1
    assert files.models() == sorted(names)
    assert {path for path in files.home.rglob("*") if "out" not in path.parts} == before
