"""The data card of two small sources, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmirt import config, data_card, matrix, sources
from benchmirt.files import read_json, write_json

PUBLIC = "org/public"


def row(doc_id: int, score: Any, target: str = "1") -> dict[str, Any]:
    doc = {"doc_id": doc_id, "doc": {"q": f"simulated question {doc_id}"}, "target": target}
    more = {"resps": [["1"]], "filtered_resps": ["1"], "metrics": ["exact_match"], "exact_match": score}
    return {**doc, **more, "doc_hash": f"h{doc_id}"}


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Any]:
    """Write, collect and merge logs of three models, and a table of two; return the card."""
    scores: dict[str, list[Any]] = {"a": [1, 0, 1, 0.5], PUBLIC: [0, 1, None, 1], "c": [1, 1, 0, 0]}
    for model, own in scores.items():
        path = tmp_path / "logs" / model.replace("/", "__") / "samples_sums.jsonl"
        path.parent.mkdir(parents=True)
        rows = [row(k, score, "2" if (model, k) == ("c", 3) else "1") for k, score in enumerate(own)]
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    (tmp_path / "t.csv").write_text("question_id,a,d\nq1,1,0\nq2,0,1\nq3,1,1\n")
    raw = {
        "study": "mine",
        "sources": [
            {"name": "logs", "kind": "files", "folder": "logs", "licence": "CC-BY-4.0"},
            {"name": "more", "kind": "table", "responses": "t.csv", "benchmark": "words"},
        ],
        "claims": {"file": []},
        "fits": {"dims": 1, "max_dims": 1},
        "filter": {"min_observed": 1},
    }
    study = config.load(raw, tmp_path)
    places: list[Path] = []
    for source in study.sources:
        for batch in sources.plan(source, study):
            paths = sources.collect(source, study, tmp_path / "o" / source.name, batch.name)
            places.append(paths[0].parent if batch.name else paths[0])
    for policy in matrix.POLICIES:
        matrix.build(places, study, policy, tmp_path / "m" / policy)
    record = {"data_set": "org/logs", "revision": "main", "commit": "0" * 40, "pinned": False, "address": "x"}
    write_json({**record, "files": {}}, tmp_path / "fetched" / "logs" / "folder" / "a.json")
    out = data_card.build(
        places, tmp_path / "m" / "honest", tmp_path / "m" / "published", study, tmp_path / "card.json"
    )
    assert "simulated question" not in out.read_text(), "names only"
    card: dict[str, Any] = read_json(out)
    return card


def test_sources(made: dict[str, Any]) -> None:
    logs, more = made["sources"]
    assert (logs["kind"], logs["formats"], logs["licence"], logs["models"]) == (
        "files",
        ["lm-eval"],
        "CC-BY-4.0",
        3,
    )
    assert (logs["rows"], logs["rows_that_tell_their_question"], logs["failures_known"]) == (12, 12, True)
    assert [(one["data_set"], one["commit"]) for one in logs["fetched"]] == [("org/logs", "0" * 40)]
    assert more["fetched"] == []
    assert [file["number"] for file in logs["files"].values() if "number" in file] == [3]
    assert all(len(file["sha256"]) == 64 for file in logs["files"].values())
    assert (more["formats"], more["licence"], more["models"]) == (["table"], None, 2)
    assert (more["rows_that_tell_their_question"], more["failures_known"]) == (None, False)
    assert made["simulated"] is False


def test_models_and_benchmarks(made: dict[str, Any]) -> None:
    models = made["models"]
    assert (models["number"], models["kept"], models["lineages"], models["lineages_given"]) == (4, 4, 4, 0)
    assert [one["model"] for one in models["list"]] == ["a", "c", "org__public", "d"]
    sums, words = made["benchmarks"]
    assert (sums["benchmark"], sums["items"], sums["outcomes"]) == ("sums", 4, 9)
    assert sums["missing"] == {"not_run": 4, "unparsed": 1, "conflict": 1, "no_threshold": 1}
    assert sums["share_missing"] == pytest.approx(7 / 16)
    assert sums["kept"] + sum(sums["dropped"].values()) == 4
    assert sums["dropped"] == {"all outcomes equal": 1}
    assert (words["items"], words["outcomes"], words["missing"]) == (3, 6, {"not_run": 6})
    assert words["dropped"] == {"all outcomes equal": 1}
    assert made["outcomes"]["observed"] == 15
    assert made["outcomes"]["missing"] == {"not_run": 10, "unparsed": 1, "conflict": 1, "no_threshold": 1}


def test_conflicts_and_missingness(made: dict[str, Any]) -> None:
    assert made["conflicts"]["honest"] == [
        {
            "kind": "changed key",
            "done": "missing",
            "outcomes": 1,
            "models": 1,
            "benchmarks": ["sums"],
            "listed": 1,
        }
    ]
    assert made["conflicts"]["published"][0]["done"] == "joined by name"
    assert {one["related"] for one in made["missingness"]} == {"cannot test"}, "four models say nothing"
    assert made["rescoring"] == []
    assert made["roads"] is None


def test_names_that_look_like_nothing_or_numbers_are_names(tmp_path: Path) -> None:
    """Benchmarks and models called NA, None or 1, which a plain reader of CSV takes for gaps and numbers."""
    names = ["NA", "None", "1", "1.0"]
    rows = [
        f"{model},{benchmark} {item},{(place + number + item) % 2},{benchmark}"
        for place, model in enumerate(names)
        for number, benchmark in enumerate(names)
        for item in range(4)
        if (model, benchmark, item) != ("NA", "NA", 0)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["model,question_id,outcome,benchmark", *rows, ""]))
    raw = {
        "study": "mine",
        "sources": [{"name": "long", "kind": "long", "files": "t.csv"}],
        "claims": {"file": []},
        "fits": {"dims": 1, "max_dims": 1},
        "filter": {"min_observed": 1},
    }
    study = config.load(raw, tmp_path)
    places = [path.parent for path in sources.collect(study.sources[0], study, tmp_path / "o", "")]
    for policy in matrix.POLICIES:
        matrix.build(places[:1], study, policy, tmp_path / "m" / policy)
    card = data_card.card(places[:1], tmp_path / "m" / "honest", tmp_path / "m" / "published", study)
    assert {one["model"] for one in card["models"]["list"]} == set(names)
    assert {one["benchmark"]: one["outcomes"] for one in card["benchmarks"]} == {
        **dict.fromkeys(names, 16),
        "NA": 15,
    }
    assert {one["benchmark"] for one in card["missingness"]} == {"NA"}
