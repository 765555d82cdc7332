"""Every reader on damaged and absurd files: one sentence or outcomes, never another exception and never a silent 0."""

from __future__ import annotations

import copy
import csv
import json
import math
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from files_fixture import Files
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmirt import scoring
from benchmirt.config import FORMATS
from benchmirt.errors import InputError
from benchmirt.sources import raw
from benchmirt.sources.documents import Document
from benchmirt.sources.formats import logs

RULES = Path(__file__).resolve().parents[2] / "workflow" / "resources" / "scoring.yaml"
SCORER = scoring.load([(RULES, "scoring.yaml")], FORMATS)
SECRET = "secret prompt"
FUZZ = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes
)

# -- a small file of each format ----------------------------------------------------------------------------


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def lm_eval(score: Any) -> dict[str, Any]:
    def row(number: int, value: Any) -> Any:
        doc = {"question": SECRET, "answer": "4"}
        own = {"resps": [["4"]], "filtered_resps": ["4"], "filter": "none", "metrics": ["exact_match"]}
        return {
            "doc_id": number,
            "doc": doc,
            "target": "4",
            **own,
            "doc_hash": f"h{number}",
            "exact_match": value,
        }

    return {"m/samples_t_2025-01-01T00-00-00.1.jsonl": [row(0, score), row(1, 1.0)]}


def inspect(score: Any) -> dict[str, Any]:
    def sample(number: int, value: Any) -> Any:
        own = {
            "scores": {"s": {"value": value, "answer": SECRET}},
            "metadata": {},
            "error": None,
            "limit": None,
        }
        return {"id": number, "epoch": 1, "input": SECRET, "choices": ["x", "y"], "target": "A", **own}

    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "org/m"}}
    return {"m/log.json": {**header, "samples": [sample(0, score), sample(1, "C")]}}


def helm(score: Any) -> dict[str, Any]:
    def instance(name: str, value: Any) -> Any:
        stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1, "mean": value}]
        return {"instance_id": name, "train_trial_index": 0, "stats": stats}

    adapter = {"method": "multiple_choice_joint", "model": "org/m"}
    return {
        "m/per_instance_stats.json": [instance("id0", score), instance("id1", 1.0)],
        "m/run_spec.json": {"name": "mmlu:s=l,method=multiple_choice_joint,model=m", "adapter_spec": adapter},
    }


def olmo_eval(score: Any) -> dict[str, Any]:
    def row(number: int, value: Any) -> Any:
        own = {"model_output": [{"text": SECRET}], "label": "A", "instance_metrics": {"em": {"em": value}}}
        return {"doc_id": number, "native_id": f"h{number}", **own}

    return {"predictions/m/t_0a1b2c-predictions.jsonl": [row(0, score), row(1, 1.0)]}


def every_eval_ever(score: Any) -> dict[str, Any]:
    def row(number: int, value: Any) -> Any:
        own = {"input": {"raw": SECRET, "choices": ["A", "B"]}, "evaluation": {"score": value}}
        return {"model_id": "org/m", "evaluation_name": "t", "sample_id": str(number), **own}

    return {"e_samples.jsonl": [row(0, score), row(1, 1.0)]}


def evalscope(score: Any) -> dict[str, Any]:
    def row(number: int, value: Any) -> Any:
        graded = {"value": {"acc": value}, "prediction": SECRET, "main_score_name": None}
        sample = {"score": graded, "sample_id": number, "group_id": number}
        messages = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": "A", "model": "m"}]
        return {"index": number, "target": "A", "messages": messages, "sample_score": sample}

    return {"reviews/m/t.jsonl": [row(0, score), row(1, 1.0)]}


def py_irt(score: Any) -> dict[str, Any]:
    return {"t.jsonlines": [{"subject_id": "m", "responses": {"q0": score, "q1": 1}}]}


def long(score: Any) -> dict[str, Any]:
    return {
        "t.csv": [
            {"model": "m", "question_id": "q0", "outcome": score},
            {"model": "m", "question_id": "q1", "outcome": 1},
        ]
    }


MAKERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "lm-eval": lm_eval,
    "inspect": inspect,
    "helm": helm,
    "olmo-eval": olmo_eval,
    "every-eval-ever": every_eval_ever,
    "evalscope": evalscope,
    "py-irt": py_irt,
    "long": long,
}


def test_every_format_is_here() -> None:
    assert tuple(MAKERS) == FORMATS


def written(name: str, content: Any) -> bytes:
    """Return a file's bytes."""
    if name.endswith(".csv"):
        buffer = StringIO()
        rows = [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []
        header = list(dict.fromkeys(key for row in rows for key in row))
        table = csv.writer(buffer, lineterminator="\n")
        table.writerow(header)
        for row in rows:
            table.writerow(["" if row.get(key) is None else str(row.get(key)) for key in header])
        return buffer.getvalue().encode("utf-8", "surrogatepass")
    if name.endswith((".jsonl", ".jsonlines")):
        return lines(*content) if isinstance(content, list) else json.dumps(content).encode()
    return json.dumps(content).encode()


# -- what is done to them -----------------------------------------------------------------------------------

DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
ODD: list[Any] = [
    *(None, True, False, 0, 1, 1.0, -1, 0.5, 2, 10**400, 1e308, math.nan, math.inf, -math.inf),
    *(
        "",
        " ",
        "0",
        "1",
        "1.0",
        "True",
        "true",
        "None",
        "nan",
        "I",
        "C",
        "N",
        "P",
        "a" * 700,
        "é",
        "\u202e",
        "\u200b",
    ),
    *(
        "\ud800",
        "\0",
        "\n",
        "../../etc/passwd",
        "/abs",
        "C:\\x",
        "{x}",
        "$(rm)",
        "-rf",
        "~",
        "%s",
        "<b>",
        'a,b"c',
    ),
    *([], {}, [None], [[1]], {"a": 1}, {"": {}}, [1, "a", None], DEEP),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))


def changed(value: Any, path: tuple[Any, ...], how: str, odd: Any) -> Any:
    """Return a copy of a JSON value with one change."""
    if not path:
        return {"replace": odd, "wrap": [value], "double": [value, value]}.get(how, value)
    new = copy.deepcopy(value)
    level = new
    for key in path[:-1]:
        level = level[key]
    last = path[-1]
    if how == "replace":
        level[last] = odd
    elif how == "wrap":
        level[last] = [level[last]]
    elif how == "double" and isinstance(level, list):
        level.append(copy.deepcopy(level[last]))
    elif how == "rename" and isinstance(level, dict):
        level[str(odd) if not isinstance(odd, list | dict) else "x"] = level.pop(last)
    elif how == "drop":
        del level[last]
    elif how == "add" and isinstance(level, dict):
        level["extra key"] = odd
    return new


def read(files: Files, kind: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Read and grade all files; return (model, question) -> (outcome, published outcome)."""
    items = raw.Items()
    models: dict[str, raw.Gathered] = {}
    base = files.home / "in"
    for path in sorted(path for path in base.rglob("*") if path.is_file()):
        shown = path.relative_to(files.home).as_posix()
        _, told = logs(Document(path, shown, path.read_bytes()), kind)
        for log in told:
            model = log.model or "of the folder"
            models.setdefault(model, raw.Gathered(model, SCORER, items, "conflict")).add(
                log.table, "doc_hash"
            )
    found = {}
    for model, gathered in models.items():
        one = gathered.finish("in", {}, [], {}, {})
        for place, name in enumerate(one.items):
            found[model, name] = int(one.outcome[place]), int(one.published[place])
    return found


def attempt(files: Files, kind: str) -> dict[tuple[str, str], tuple[int, int]] | None:
    """Read all files; None if they are refused, in a sentence that tells no text of a question."""
    try:
        return read(files, kind)
    except InputError as error:
        message = str(error)
        assert message.isprintable()
        assert SECRET not in message
        assert len(message) < 3000
        return None


def fill(files: Files, content: dict[str, Any]) -> None:
    for name, value in content.items():
        files.put(name, written(name, value))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def clean(files: Files) -> Files:
    shutil.rmtree(files.home / "in", ignore_errors=True)
    return files


@pytest.mark.parametrize("kind", MAKERS)
def test_the_files_as_they_are(clean: Files, kind: str) -> None:
    fill(clean, MAKERS[kind](0))
    assert sorted(read(clean, "files").values()) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("kind", MAKERS)
def test_files_of_other_formats_are_refused(clean: Files, kind: str) -> None:
    for other, make in MAKERS.items():
        if other == kind:
            continue
        shutil.rmtree(clean.home / "in", ignore_errors=True)
        fill(clean, make(1.0))
        with pytest.raises(InputError, match=f"as kind: {kind} says"):
            read(clean, kind)


# -- never another exception --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("stated", [True, False])
@FUZZ
@given(data=st.data())
def test_wrong_types_and_odd_keys(clean: Files, kind: str, stated: bool, data: st.DataObject) -> None:
    content = MAKERS[kind](1.0)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(content)))
        path = data.draw(st.sampled_from(list(places(content[name]))))
        how = data.draw(st.sampled_from(["replace", "replace", "wrap", "double", "rename", "drop", "add"]))
        content[name] = changed(content[name], path, how, data.draw(st.sampled_from(ODD)))
    fill(clean, content)
    attempt(clean, kind if stated else "files")


@pytest.mark.parametrize("kind", MAKERS)
@FUZZ
@given(data=st.data())
def test_cut_and_flipped_bytes(clean: Files, kind: str, data: st.DataObject) -> None:
    content = MAKERS[kind](1.0)
    fill(clean, content)
    name = data.draw(st.sampled_from(sorted(content)))
    whole = written(name, content[name])
    clean.put(name, damaged(whole, data))
    attempt(clean, "files")


def damaged(whole: bytes, data: st.DataObject) -> bytes:
    """Cut a file, change some of its bytes, or put something in."""
    place = data.draw(st.integers(0, len(whole) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "insert", "empty", "tail"]))
    if how == "cut":
        return whole[:place]
    if how == "flip":
        return whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    if how == "insert":
        return whole[:place] + data.draw(st.binary(min_size=1, max_size=8)) + whole[place:]
    return b"" if how == "empty" else whole[place:]


def archive() -> bytes:
    """Return an archive of a log, with a member stored and the others compressed."""
    log = inspect(1.0)["m/log.json"]
    samples = log.pop("samples")
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as stream:
        for sample in samples:
            stream.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        stream.writestr("header.json", json.dumps(log), zipfile.ZIP_STORED)
    return buffer.getvalue()


ARCHIVE = archive()


@settings(FUZZ, max_examples=100)
@given(data=st.data())
def test_cut_and_flipped_archives(clean: Files, data: st.DataObject) -> None:
    clean.put("a.eval", damaged(ARCHIVE, data))
    found = attempt(clean, "files")
    assert found is None or set(found.values()) <= {(1, 1), (-1, -1)}, (
        "a damaged archive gave another outcome"
    )


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.eval", "a.csv", "a.csv.gz", "a.parquet"])
@FUZZ
@given(
    content=st.one_of(
        st.binary(max_size=80), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_anything_at_all(clean: Files, name: str, content: bytes) -> None:
    clean.put(name, content)
    attempt(clean, "files")


# -- never a silent 0 ---------------------------------------------------------------------------------------

ONE: list[Any] = [1, 1.0, True, "1", "1.0", "True"]
ZERO: list[Any] = [0, 0.0, False, "0", "0.0", "False"]
VALUES = st.one_of(
    st.sampled_from([*ODD, *ONE, *ZERO]),
    st.floats(),
    st.integers(),
    st.text(max_size=6),
    st.lists(st.integers(0, 1)),
)


def expected(kind: str, value: Any) -> int:
    """Return the outcome that a grade stands for; -1 for missing."""
    if kind == "long":  # a cell is a text
        value = "" if value is None else str(value).strip()
        value = {"true": "True", "false": "False"}.get(value, value)
        with suppress(ValueError):
            value = float(value) if value.isascii() and not set(value.lower()) & set("nai_") else value
    if kind == "inspect" and value in ("C", "I"):
        return int(value == "C")
    if isinstance(value, str):
        return 1 if value in ONE else 0 if value in ZERO else -1
    return int(value) if isinstance(value, bool | int | float) and value in (0, 1) else -1


@pytest.mark.parametrize("kind", MAKERS)
@FUZZ
@given(value=VALUES)
def test_only_zeros_are_zero(clean: Files, kind: str, value: Any) -> None:
    fill(clean, MAKERS[kind](value))
    found = attempt(clean, "files")
    if found is None:
        return
    (first, *_), wanted = sorted(found.items()), expected(kind, value)
    assert first[1] == (wanted, wanted)


# -- never a file elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../../up", "/abs/path", "a/../../b", "C:\\x", "..", "m\\..\\x", "~/x", "a" * 400]
)
def test_names_of_models_lead_nowhere(tmp_path: Path, name: str) -> None:
    files = Files(tmp_path / "home")
    files.put("t.jsonlines", [{"subject_id": name, "responses": {f"{name}/q": 1, "q2": 0}}])
    before = {path for path in tmp_path.rglob("*") if "out" not in path.parts}
    files.collect(by="files")
    assert {path for path in tmp_path.rglob("*") if "out" not in path.parts} == before
    assert files.models() == [name]
