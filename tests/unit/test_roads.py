"""Two roads compared cell by cell: planted disagreements of every kind come out, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmirt import config, roads, sources
from benchmirt.errors import InputError
from benchmirt.outcomes import REASONS, digest
from benchmirt.roads import CELLS, Road

JUDGE = REASONS.index("judge_failed") + 1
NOT_RUN = REASONS.index("not_run") + 1


def road(
    names: list[str], models: list[str], cells: list[list[int]], content: dict[str, str] | None = None
) -> Road:
    """Return a road whose benchmark is what stands before the double underscore of a name."""
    known = content or {}
    items = pd.DataFrame(
        {
            "question_id": pd.Series(names, dtype="str"),
            "benchmark": pd.Series([name.partition("__")[0] for name in names], dtype="str"),
            "content_hash": pd.Series([known.get(name) for name in names], dtype="str"),
        }
    )
    outcome = np.array(cells, dtype=np.int8)
    reason = np.where(outcome < 0, np.uint8(NOT_RUN), np.uint8(0))
    return Road(items, models, outcome, reason, outcome.copy())


def rows(found: roads.Compared, *columns: str) -> set[tuple[Any, ...]]:
    """Return the disagreements as tuples, missing values as None."""
    frame = found.disagreements[["kind", *columns]].astype(object)
    return {tuple(None if pd.isna(one) else one for one in row) for row in frame.to_numpy().tolist()}


def test_every_pair_of_cells_is_of_its_own_kind() -> None:
    names = [f"a__{number}" for number in range(3)]
    published = road(names, ["x", "y", "z"], [[1, 1, 1], [0, 0, 0], [-1, -1, -1]])
    raw = road(names, ["x", "y", "z"], [[1, 0, -1]] * 3)
    raw.reason[1, 2], raw.counted[1, 2] = JUDGE, 0  # a failed judge, which the published study counted as 0
    found = roads.compare(published, raw)
    assert rows(found, "question_id", "model", "published", "raw", "reason", "counted") == {
        ("published 1, raw 0", "a__0", "y", 1, 0, "", None),
        ("published 1, raw missing", "a__0", "z", 1, None, "not_run", None),
        ("published 0, raw 1", "a__1", "x", 0, 1, "", None),
        ("published 0, raw missing", "a__1", "z", 0, None, "judge_failed", 0),
        ("published missing, raw 1", "a__2", "x", None, 1, "", None),
        ("published missing, raw 0", "a__2", "y", None, 0, "", None),
    }
    every = found.benchmarks.set_index("benchmark").loc["all"]
    assert every[["cells", "same", "same_as_counted", "both_missing"]].tolist() == [9, 2, 3, 1]
    counts = found.models.set_index("model")[[roads._SNAKE[kind] for kind in CELLS]]
    assert counts.loc["x"].tolist() == [0, 1, 0, 0, 0, 1]
    assert counts.loc["y"].tolist() == [1, 0, 0, 0, 1, 0]
    assert counts.loc["z"].tolist() == [0, 0, 1, 1, 0, 0]
    assert found.missing.to_dict("records") == [
        {
            "benchmark": "a",
            "kind": kind,
            "reason": reason,
            "cells": 1,
            "counted_0": counted,
            "counted_1": 0,
            "counted_missing": 1 - counted,
        }
        for kind, reason, counted in (
            ("published 0, raw missing", "judge_failed", 1),
            ("published 1, raw missing", "not_run", 0),
        )
    ]


def test_items_and_models_of_one_road_only_are_listed_once_each() -> None:
    published = road(["a__0", "a__1", "b__0"], ["x", "gone"], [[1, 1], [0, 0], [1, 0]])
    raw = road(["a__1", "a__2"], ["new", "x"], [[1, 0], [0, 1]])
    found = roads.compare(published, raw, {"a": 3, "b": 1, "c": 5}, ["x", "org/nobody", "new"])
    assert rows(found, "benchmark", "question_id", "raw_id", "model") == {
        ("item only in published", "a", "a__0", "", ""),
        ("item only in published", "b", "b__0", "", ""),
        ("item only in raw", "a", "a__2", "a__2", ""),
        ("model only in published", "", "", "", "gone"),
        ("model only in raw", "", "", "", "new"),
        ("model in neither", "", "", "", "org/nobody"),
    }
    counts = found.benchmarks.set_index("benchmark")
    columns = [
        "expected_items",
        "published_items",
        "raw_items",
        "only_published",
        "only_raw",
        "cells",
        "same",
    ]
    assert counts.loc["a", columns].tolist() == [3, 2, 2, 1, 1, 1, 1]
    assert counts.loc["b", columns].tolist() == [1, 1, 0, 1, 0, 0, 0]
    assert counts.loc["c", columns].tolist() == [5, 0, 0, 0, 0, 0, 0]
    assert counts.loc["all", columns].tolist() == [9, 3, 2, 2, 1, 1, 1]
    assert found.models.set_index("model")["roads"].to_dict() == {
        "gone": "published",
        "new": "raw",
        "x": "both",
    }


def test_items_are_matched_by_name_and_what_is_left_by_content() -> None:
    one, two, three, four = (digest(text) for text in "abcd")
    published = road(
        ["a__0", "a__1", "a__2", "a__3", "a__4"],
        ["x"],
        [[1], [1], [0], [1], [1]],
        {"a__0": one, "a__1": two, "a__2": three, "a__3": four, "a__4": four},
    )
    raw = road(
        ["a__0", "a__2", "a__7", "a__8"],
        ["x"],
        [[1], [0], [0], [1]],
        {"a__0": one, "a__2": digest("else"), "a__7": two, "a__8": four},
    )
    found = roads.compare(published, raw)
    items = found.items[["published_id", "raw_id", "matched", "content"]]
    assert set(items.itertuples(index=False, name=None)) == {
        ("a__0", "a__0", "question_id", "same"),
        ("a__1", "a__7", "content hash", "same"),
        ("a__2", "a__2", "question_id", "other"),
        (
            "a__3",
            "",
            "",
            "not compared",
        ),  # two published items ask this, so that nobody knows which one it is
        ("a__4", "", "", "not compared"),
        ("", "a__8", "", "not compared"),
    }
    assert rows(found, "question_id", "raw_id", "matched", "model") == {
        ("published 1, raw 0", "a__1", "a__7", "content hash", "x"),
        ("one name, other content", "a__2", "a__2", "question_id", ""),
        ("item only in published", "a__3", "", "", ""),
        ("item only in published", "a__4", "", "", ""),
        ("item only in raw", "a__8", "a__8", "", ""),
    }
    every = found.benchmarks.set_index("benchmark").loc["all"]
    assert every[["matched_by_question_id", "matched_by_content_hash", "other_content"]].tolist() == [2, 1, 1]


def test_an_item_whose_name_moved_on_says_where_its_content_is() -> None:
    texts = [digest(text) for text in "abc"]
    names = ["a__0", "a__1", "a__2"]
    published = road(names, ["x"], [[1], [0], [1]], dict(zip(names, texts, strict=True)))
    raw = road(names, ["x"], [[0], [1], [1]], dict(zip(names, [texts[1], texts[0], texts[2]], strict=True)))
    items = roads.compare(published, raw).items.set_index("raw_id")
    assert items["content"].tolist() == ["other", "other", "same"]
    assert items["content_at"].tolist() == ["a__1", "a__0", ""]


def test_hashes_of_two_recipes_are_not_compared() -> None:
    published = road(["a__0"], ["x"], [[1]], {"a__0": digest("one recipe")})
    raw = road(["a__0"], ["x"], [[1]], {"a__0": digest("another recipe")})
    found = roads.compare(published, raw)
    assert found.items["content"].tolist() == ["not compared"]
    assert found.disagreements.empty


def test_a_model_is_found_under_its_name_with_a_slash() -> None:
    published = road(["a__0"], ["org/one", "two__b", "two/b"], [[1, 0, 1]])
    raw = road(["a__0"], ["org__one", "two__b"], [[0, 0]])
    found = roads.compare(published, raw)
    assert rows(found, "model") == {
        ("published 1, raw 0", "org__one"),
        ("model only in published", "two/b"),  # two__b is there under just this name
    }


def test_the_order_of_items_and_models_and_the_size_of_steps_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(3)
    names = [f"{'ab'[number % 2]}__{number}" for number in range(40)]
    models = [f"m{number}" for number in range(7)]
    one, other = (random.integers(-1, 2, size=(40, 7)) for _ in range(2))
    plain = roads.compare(road(names, models, one.tolist()), road(names, models, other.tolist()))
    item, model = random.permutation(40), random.permutation(7)
    mixed = road(
        [names[place] for place in item], [models[place] for place in model], other[item][:, model].tolist()
    )
    monkeypatch.setattr(roads, "_AT_ONCE", 30)
    again = roads.compare(road(names, models, one.tolist()), mixed)
    for table in ("disagreements", "items", "benchmarks", "models", "missing"):
        pd.testing.assert_frame_equal(getattr(plain, table), getattr(again, table))
    assert len(plain.disagreements) == (one != other).sum()
    kinds = plain.benchmarks.set_index("benchmark")
    assert kinds.loc["all", "published_1_raw_0"] == ((one == 1) & (other == 0)).sum()
    assert kinds.loc["b", "cells"] == 20 * 7


# -- a study ------------------------------------------------------------------------------------------------

MODELS = ["org__a", "org__b", "org__c"]


def judged(number: int, refusal: str | None) -> dict[str, Any]:
    return {
        "id": f"xstest/{number}",
        "type": "homonyms",
        "prompt": f"simulated prompt {number}",
        "response": "simulated response",
        "response_refusal": refusal,
        "is_parsing_error": refusal is None,
    }


def study(home: Path, **keys: Any) -> config.Study:
    """Write a raw source of three models and a published table; return the study."""
    answers = {
        "org__a": ["compliance", "refusal"],
        "org__b": [None, "compliance"],
        "org__c": [None, "refusal"],
    }
    for model, own in answers.items():
        path = home / "simulated_raw" / model / "all.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"xstest:default": [judged(place, one) for place, one in enumerate(own)]}))
    (home / "published.csv").write_text(
        "question_id,acc_norm_org__a,acc_norm_org__b,acc_norm_org__c\n"
        "xstest__homonyms_0,1,0,1\n"
        "xstest__homonyms_1,0,0,\n"
        "bbq__Age_3,1,1,1\n"
    )
    raw = {
        "study": "s",
        "sources": [{"name": "raw", "kind": "safety-eval", "folder": "simulated_raw"}],
        "published_responses": {"responses": "published.csv", "prefix": "acc_norm_"},
        "claims": {"file": []},
    }
    return config.load({**raw, **keys}, home)


def compared(home: Path, one: config.Study) -> pd.DataFrame:
    made = sources.collect_all(one.sources[0], one, home / "out")
    shards = sorted({path.parent for path in made})
    (home / "sizes.csv").write_text("benchmark,items\nxstest,3\nbbq,1\n")
    (home / "roster.csv").write_text("model\norg__a\norg__b\norg__c\norg__d\n")
    roads.write(one, shards, home / "sizes.csv", home / "roster.csv", home / "roads")
    return pd.read_csv(home / "roads" / "disagreements.csv", dtype=str).fillna("")


def test_a_failed_judge_is_missing_here_and_a_0_or_a_1_there(tmp_path: Path) -> None:
    one = study(tmp_path)
    found = compared(tmp_path, one)
    columns = ["kind", "question_id", "model", "reason", "counted"]
    assert set(found[columns].itertuples(index=False, name=None)) == {
        ("published 0, raw missing", "xstest__homonyms_0", "org__b", "judge_failed", "0"),
        ("published 1, raw missing", "xstest__homonyms_0", "org__c", "judge_failed", "0"),
        ("published 0, raw 1", "xstest__homonyms_1", "org__b", "", ""),
        ("published missing, raw 0", "xstest__homonyms_1", "org__c", "", ""),
        ("item only in published", "bbq__Age_3", "", "", ""),
    }
    assert set(found["benchmark"]) == {"xstest", config.UNTOLD}
    summary = json.loads((tmp_path / "roads" / "summary.json").read_text())
    assert summary["unexpected_items"] == []  # nothing is expected of a study that is not the published one
    assert summary["models"] == {"expected": None, "published": 3, "raw": 3, "both": 3}
    (table,) = summary["published"].values()
    assert table["path"] == "published.csv"


def test_lm_evaluation_harness_1311_the_published_study_is_held_against_its_counts_and_its_models(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = {"benchmark": {"column": "question_id", "pattern": "^(.+?)__"}}
    table = {"responses": "published.csv", "prefix": "acc_norm_", "columns": columns}
    (tmp_path / "m.csv").write_text("model\norg__a\norg__b\norg__c\n")
    raw = {"name": "raw", "kind": "safety-eval", "folder": "simulated_raw", "models": "m.csv"}
    one = study(tmp_path, published_size=True, published_responses=table, sources=[raw])
    found = compared(tmp_path, one)
    assert found.loc[found["kind"] == "model in neither", "model"].tolist() == ["org__d"]
    summary = json.loads((tmp_path / "roads" / "summary.json").read_text())
    assert summary["unexpected_items"] == [
        {"benchmark": "all", "expected_items": 4, "published_items": 3, "raw_items": 2},
        {"benchmark": "xstest", "expected_items": 3, "published_items": 2, "raw_items": 2},
        {"benchmark": "bbq", "expected_items": 1, "published_items": 1, "raw_items": 0},
    ]
    told = [record.getMessage() for record in caplog.records if record.name == "benchmirt.roads"]
    assert "xstest: 3 items expected, 2 published, 2 raw" in told
    assert "item only in published: 1" in told


def test_a_renamed_item_is_found_by_the_content_that_the_published_items_tell(tmp_path: Path) -> None:
    one = study(tmp_path)
    made = sources.collect_all(one.sources[0], one, tmp_path / "first")
    (facts,) = (pd.read_parquet(path) for path in made if path.name == "items.parquet")
    content = facts.set_index("question_id")["content_hash"]
    path = tmp_path / "published.csv"
    path.write_text(path.read_text().replace("xstest__homonyms_1", "renamed"))
    (tmp_path / "items.csv").write_text(
        f"question_id,benchmark,hash\nrenamed,xstest,{content['xstest__homonyms_1']}\n"
        f"xstest__homonyms_0,xstest,{content['xstest__homonyms_0']}\nbbq__Age_3,bbq,\n"
    )
    table = {
        "responses": "published.csv",
        "prefix": "acc_norm_",
        "items": "items.csv",
        "columns": {"content_hash": "hash"},
    }
    found = compared(tmp_path, config.load({**one.raw, "published_responses": table}, tmp_path))
    own = found[found["question_id"] == "renamed"]
    assert set(own[["kind", "raw_id", "matched", "model"]].itertuples(index=False, name=None)) == {
        ("published 0, raw 1", "xstest__homonyms_1", "content hash", "org__b"),
        ("published missing, raw 0", "xstest__homonyms_1", "content hash", "org__c"),
    }
    assert set(found["benchmark"]) == {"xstest", "bbq"}


def test_models_that_do_not_take_part_are_not_missed(tmp_path: Path) -> None:
    one = study(tmp_path, models={"exclude": ["org__c"]})
    assert "org__c" not in set(compared(tmp_path, one)["model"])


def test_a_cell_of_the_published_table_that_is_none_is_told_with_its_place(tmp_path: Path) -> None:
    one = study(tmp_path)
    path = tmp_path / "published.csv"
    path.write_text(path.read_text().replace("_1,0,0,", "_1,0,2,"))
    with pytest.raises(InputError, match=r'published.csv: row 3, column "acc_norm_org__b": found "2"'):
        compared(tmp_path, one)


def test_nothing_named_is_nothing_to_compare_with(tmp_path: Path) -> None:
    one = study(tmp_path, published_responses={})
    with pytest.raises(InputError, match="there are no published responses to compare with"):
        compared(tmp_path, one)
