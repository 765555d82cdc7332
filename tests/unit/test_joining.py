"""Same question, same content: planted conflicts whose right resolution is known, and what is listed of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from files_fixture import Files, holds, outcomes, reasons

from benchmirt import config, joining, matrix, sources
from benchmirt.errors import InputError

Row = dict[str, Any]
LETTERS = "ABCDEFGHIJ"
GENERIC = "samples_{}.jsonl"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def asked(
    doc_id: int, score: int, number: int | None = None, options: Sequence[str] = "xyz", right: str = "x"
) -> Row:
    """Make a row of MMLU-Pro as lm-evaluation-harness logs it: the question `number` under the name `doc_id`."""
    text = f"simulated question {doc_id if number is None else number}"
    doc = {
        "question": text,
        "options": list(options),
        "answer": LETTERS[list(options).index(right)],
        "category": "law",
    }
    return {
        "doc_id": doc_id,
        "doc": doc,
        "target": doc["answer"],
        "filtered_resps": [["-1.0", "False"] for _ in options],
        "filter": "none",
        "metrics": ["acc"],
        "acc": score,
    }


class Study:
    """Models with rows of one task in a folder each, collected and merged."""

    def __init__(self, files: Files, task: str = "leaderboard_mmlu_pro") -> None:
        self.files = files
        self.task = task

    def put(self, model: str, rows: Sequence[Row]) -> None:
        self.files.put(f"{model}/{GENERIC.format(self.task)}", list(rows))

    def build(self, policy: matrix.Policy = "honest", **settings: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the matrix (a row per item) and the table of conflicts."""
        keys = {"joining": settings, "filter": {"min_observed": 1}}
        study = self.files.study("lm-eval", **keys)
        out = self.files.home / f"m{len(list(self.files.home.glob('m*')))}"
        matrix.build(self.files.collect("lm-eval", **keys), study, policy, out)
        conflicts = pd.read_csv(out / "conflicts.csv")
        assert list(conflicts) == list(joining.COLUMNS)
        assert "simulated question" not in (out / "conflicts.csv").read_text(), "names only"
        return pd.read_parquet(out / "responses.parquet").set_index("question_id"), conflicts

    @property
    def items(self) -> pd.DataFrame:
        last = max(self.files.home.glob("m*"), key=lambda path: int(path.name[1:]))
        return pd.read_parquet(last / "items.parquet").set_index("question_id")


def truth(models: int, items: int, seed: int = 1) -> np.ndarray:
    """Return outcomes (J, N) without an item that all pass or all fail."""
    cells = np.random.default_rng(seed).integers(0, 2, (items, models))
    cells[:, 0], cells[:, 1] = 1, 0
    return cells


def planted(files: Files, cells: np.ndarray, orders: Mapping[int, np.ndarray]) -> Study:
    """Write models that were asked the same questions; some under other names: name k is question order[k]."""
    study = Study(files)
    for model in range(cells.shape[1]):
        order = orders.get(model, np.arange(len(cells)))
        rows = [asked(k, int(cells[number, model]), int(number)) for k, number in enumerate(order)]
        study.put(f"org__m{model}", rows)
    return study


def values(responses: pd.DataFrame) -> np.ndarray:
    """Return outcomes in the order of the items' numbers, -1 where missing."""
    order = sorted(responses.index, key=lambda name: int(name.rpartition("_")[2]))
    return responses.loc[order].astype("Int8").fillna(-1).to_numpy(dtype=int)


# -- other names for the same questions ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_reordered_ids_are_joined_by_content(files: Files, seed: int) -> None:
    """Two of seven models have their questions under other names; the matrix is that of the planted truth."""
    rng = np.random.default_rng(seed)
    cells = truth(7, 20, seed)
    orders = {model: rng.permutation(20) for model in (3, 6)}
    responses, conflicts = planted(files, cells, orders).build()
    np.testing.assert_array_equal(values(responses), cells)
    found = {
        (row.model, row.question_id): row.other_id
        for row in conflicts.itertuples()
        if row.kind == "reordered"
    }
    expected = {
        (f"org__m{model}", f"mmlu_pro__{k}"): f"mmlu_pro__{number}"
        for model, order in orders.items()
        for k, number in enumerate(order)
        if k != number
    }
    assert found == expected
    assert set(conflicts["done"]) == {"moved to the other name"}


def test_reordered_ids_may_be_missing_and_the_published_policy_joins_by_name(files: Files) -> None:
    cells = truth(5, 6)
    order = np.array([1, 0, 2, 3, 5, 4])
    study = planted(files, cells, {4: order})
    responses, conflicts = study.build(reordered="conflict")
    expected = cells.copy()
    expected[[0, 1, 4, 5], 4] = -1
    np.testing.assert_array_equal(values(responses), expected)
    assert conflicts["done"].tolist() == ["missing"] * 4
    responses, conflicts = study.build("published")
    by_name = cells.copy()
    by_name[:, 4] = cells[order, 4]
    np.testing.assert_array_equal(values(responses), by_name)
    assert conflicts[["kind", "outcomes", "done"]].to_numpy().tolist() == [["reordered", 4, "joined by name"]]


def test_of_two_models_the_first_says_what_a_name_stands_for(files: Files) -> None:
    cells = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    responses, _ = planted(files, cells, {1: np.array([3, 2, 0, 1])}).build()
    np.testing.assert_array_equal(values(responses), cells)


def test_one_question_under_two_names_that_no_model_met_together(files: Files) -> None:
    """A release that counts from 100: its models join the others', under the name that more models have."""
    cells = truth(5, 4)
    study = Study(files)
    for model in range(5):
        shift = 100 if model > 2 else 0
        study.put(f"org__m{model}", [asked(k + shift, int(cells[k, model]), k) for k in range(4)])
    responses, conflicts = study.build()
    np.testing.assert_array_equal(values(responses)[:4], cells)
    assert responses.loc["mmlu_pro__100"].isna().all()
    reason = study.items.loc["mmlu_pro__100", "drop_reason"]
    assert reason == "the question has another name too, which more models have"
    assert set(conflicts["kind"]) == {"renamed"}
    assert len(conflicts) == 8


def test_a_question_that_a_benchmark_asks_twice_stays_two_items(files: Files) -> None:
    cells = truth(4, 4)
    study = Study(files)
    for model in range(4):
        study.put(f"org__m{model}", [asked(k, int(cells[k, model]), min(k, 2)) for k in range(4)])
    responses, conflicts = study.build()
    np.testing.assert_array_equal(values(responses), cells)
    assert conflicts[["question_id", "other_id", "kind"]].to_numpy().tolist() == [
        ["mmlu_pro__3", "mmlu_pro__2", "same question"]
    ]


def test_a_moved_outcome_that_meets_another_of_its_model_is_a_conflict(files: Files) -> None:
    """Model 3 has question 1 under both names: once right, once wrong; of question 0 where they agree, one is left."""
    cells = truth(4, 3)
    study = planted(files, cells, {})
    study.put("org__m3", [asked(0, 1, 1), asked(1, 0, 1), asked(2, 1, 2)])
    responses, conflicts = study.build()
    assert responses["org__m3"].fillna(-1).tolist() == [-1, -1, 1]
    assert conflicts[["kind", "question_id"]].to_numpy().tolist() == [
        ["reordered", "mmlu_pro__0"],
        ["repeated rows", "mmlu_pro__1"],
    ]
    study.put("org__m3", [asked(0, 1, 1), asked(1, 1, 1), asked(2, 1, 2)])
    responses, conflicts = study.build()
    assert responses["org__m3"].fillna(-1).tolist() == [-1, 1, 1]
    agreed = conflicts[conflicts["question_id"].isna()]
    assert agreed[["model", "kind", "done"]].to_numpy().tolist() == [
        ["org__m3", "repeated rows", "counted once: they agree"]
    ]


# -- other questions under the same name --------------------------------------------------------------------


def edited(files: Files) -> Study:
    """Write five models; models 3 and 4 were asked question 1 with two options of the five."""
    study = Study(files)
    for model in range(5):
        options = "xy" if model > 2 else "vwxyz"
        study.put(f"org__m{model}", [asked(0, model % 2), asked(1, int(model in (0, 3)), options=options)])
    return study


@pytest.mark.parametrize(
    ("how", "first", "other"),
    [
        ("commonest", [1, 0, 0, -1, -1], None),
        ("exclude", [-1] * 5, None),
        ("split", [1, 0, 0, -1, -1], [-1, -1, -1, 1, 0]),
    ],
)
def test_mmlu_pro_14_options_edited_between_runs(
    files: Files, how: str, first: list[int], other: list[int] | None
) -> None:
    """TIGER-AI-Lab/MMLU-Pro #14: one question id with five options, and with two."""
    study = edited(files)
    responses, conflicts = study.build(edited=how)
    assert responses.loc["mmlu_pro__0"].tolist() == [0, 1, 0, 1, 0]
    assert responses.loc["mmlu_pro__1"].fillna(-1).tolist() == first
    apart = [name for name in responses.index if name.startswith("mmlu_pro__1~")]
    assert len(apart) == (other is not None)
    if other is not None:
        assert responses.loc[apart[0]].fillna(-1).tolist() == other
        assert study.items.loc[apart[0], "options"] == 2
    assert study.items.loc["mmlu_pro__1", "options"] == 5
    assert conflicts["model"].tolist() == ["org__m3", "org__m4"]
    assert set(conflicts["kind"]) == {"edited options"}


def test_another_question_under_one_name_is_missing(files: Files) -> None:
    cells = truth(4, 2)
    study = planted(files, cells, {})
    study.put("org__m3", [asked(0, 1), asked(1, 1, 77)])
    responses, conflicts = study.build()
    assert responses.loc["mmlu_pro__1"].isna().tolist() == [False] * 3 + [True]
    assert conflicts[["model", "question_id", "kind", "done"]].to_numpy().tolist() == [
        ["org__m3", "mmlu_pro__1", "other question", "missing"]
    ]


@pytest.mark.parametrize(
    ("how", "first", "names"),
    [("commonest", [1, 0, 0, -1], 1), ("exclude", [-1] * 4, 1), ("split", [1, 0, 0, -1], 2)],
)
def test_changed_keys(files: Files, how: str, first: list[int], names: int) -> None:
    """The same question and options, but another right answer: a 1 does not mean the same."""
    study = Study(files)
    for model in range(4):
        rows = [asked(0, model % 2), asked(1, int(model in (0, 3)), right="z" if model == 3 else "x")]
        study.put(f"org__m{model}", rows)
    responses, conflicts = study.build(changed_key=how)
    assert responses.loc["mmlu_pro__1"].fillna(-1).tolist() == first
    assert sum(name.startswith("mmlu_pro__1") for name in responses.index) == names
    assert conflicts[["model", "question_id", "kind"]].to_numpy().tolist() == [
        ["org__m3", "mmlu_pro__1", "changed key"]
    ]


def gpqa(doc_id: int, score: int, order: Sequence[int], right: int = 0) -> Row:
    """Make a row of GPQA with its answers in some order; the right one is `right`, whatever its letter."""
    texts = [f"simulated answer {doc_id} {k}" for k in order]
    doc = {"Question": f"simulated question {doc_id}", "High-level domain": "Physics"}
    doc |= {f"choice{k + 1}": text for k, text in enumerate(texts)}
    doc["answer"] = f"({LETTERS[list(order).index(right)]})"
    scored = {"filter": "none", "metrics": ["acc_norm"], "acc_norm": score}
    return {
        "doc_id": doc_id,
        "doc": doc,
        "target": doc["answer"],
        "filtered_resps": [["-1", "False"]] * 4,
        **scored,
    }


@pytest.mark.parametrize(
    "task", ["leaderboard_gpqa_extended", "leaderboard_gpqa_main", "gpqa_diamond_zeroshot"]
)
def test_gpqa_and_evalscope_1602_shuffled_answer_letters_are_compared_by_text(
    files: Files, task: str
) -> None:
    """GPQA's answers are shuffled for each run: "(A)" and "(C)" may be the same answer (evalscope #1602).

    So the harness' own hash of the document differs from run to run, and cannot tell what was asked.
    """
    rng = np.random.default_rng(4)
    cells = truth(6, 8)
    study = Study(files, task)
    orders = {(k, model): rng.permutation(4) for k in range(1, 8) for model in range(3, 6)}
    for model in range(6):
        rows = [gpqa(k, int(cells[k, model]), orders.get((k, model), range(4))) for k in range(8)]
        study.put(f"org__m{model}", rows)
    responses, conflicts = study.build()
    np.testing.assert_array_equal(values(responses), cells)
    moved = {
        f"org__m{model}": sum(orders[k, model].tolist() != [0, 1, 2, 3] for k in range(1, 8))
        for model in (3, 4, 5)
    }
    assert set(conflicts["kind"]) == {"shuffled options"}
    assert conflicts.set_index("model")["outcomes"].to_dict() == moved
    responses, conflicts = study.build(shuffled="conflict")
    lost = np.array(
        [
            [orders.get((k, model), np.arange(4)).tolist() != [0, 1, 2, 3] for model in range(6)]
            for k in range(8)
        ]
    )
    np.testing.assert_array_equal(values(responses), np.where(lost, -1, cells))
    assert (conflicts["done"] == "missing").sum() == lost.sum()


def test_evalscope_1602_options_shuffled_within_the_prompt(files: Files) -> None:
    """Reviews hold the options in the prompt, as they were shuffled, and their texts beside it."""
    rng = np.random.default_rng(5)
    cells = truth(4, 6)
    for model in range(4):
        rows = []
        for k in range(6):
            texts = [f"{k} right", *(f"{k} wrong {n}" for n in range(3))]
            order = rng.permutation(4) if model else range(4)
            prompt = "\n".join([f"simulated question {k}", *(texts[n] for n in order)])
            told = {"correct_answer": texts[0], "incorrect_answers": texts[1:]}
            if (k, model) == (5, 3):
                told["incorrect_answers"] = [*texts[1:3], "another"]
            score = {"value": {"acc": int(cells[k, model])}, "prediction": "A", "extracted_prediction": "A"}
            sample = {"score": score, "sample_id": k, "group_id": k, "sample_metadata": told}
            target = LETTERS[[*order].index(0)]
            messages = [{"role": "user", "content": prompt}]
            rows.append({"index": k, "target": target, "messages": messages, "sample_score": sample})
        files.put(f"reviews/org__m{model}/gpqa_diamond_default.jsonl", rows)
    study = files.study(by="files", filter={"min_observed": 1})
    shards = files.collect(by="files", filter={"min_observed": 1})
    matrix.build(shards, study, "honest", files.home / "m")
    responses = pd.read_parquet(files.home / "m" / "responses.parquet").set_index("question_id")
    cells[5, 3] = -1
    np.testing.assert_array_equal(values(responses), cells)
    conflicts = pd.read_csv(files.home / "m" / "conflicts.csv")
    assert conflicts[["model", "question_id", "kind"]].to_numpy().tolist() == [
        ["org__m3", "gpqa_diamond_default__5", "edited options"]
    ]


def test_a_changed_key_shows_through_shuffled_letters(files: Files) -> None:
    study = Study(files, "leaderboard_gpqa_extended")
    for model, (order, right) in enumerate(
        [((0, 1, 2, 3), 0), ((2, 1, 0, 3), 0), ((2, 1, 0, 3), 2), ((0, 1, 2, 3), 0)]
    ):
        study.put(f"org__m{model}", [gpqa(0, model % 2, order, right), gpqa(1, 1 - model % 2, order)])
    responses, conflicts = study.build()
    assert responses.loc["gpqa__extended_0"].fillna(-1).tolist() == [0, 1, -1, 1]
    assert conflicts.loc[conflicts["kind"] == "changed key", "model"].tolist() == ["org__m2"]


# -- repeated rows and runs ---------------------------------------------------------------------------------


def test_rows_in_append_mode_are_counted_once_where_they_agree(files: Files) -> None:
    cells = truth(3, 4)
    study = planted(files, cells, {})
    twice = [asked(k, int(cells[k, 2])) for k in range(4)]
    study.put("org__m2", [*twice, *twice[:2], asked(3, 1 - int(cells[3, 2]))])
    responses, conflicts = study.build()
    assert values(responses)[:, 2].tolist() == [*cells[:3, 2].tolist(), -1]
    table = conflicts[["kind", "question_id", "outcomes", "done"]].astype(object)
    assert table.where(table.notna(), None).to_numpy().tolist() == [
        ["repeated rows", None, 2, "counted once: they agree"],
        ["repeated rows", "mmlu_pro__3", 2, "missing"],
    ]
    responses, _ = study.build(repeated_rows="first")
    np.testing.assert_array_equal(values(responses), cells)


def runs(files: Files, how: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Build two sources that both have model b, and differ on question 1."""
    home = files.home
    for name, cells in (("one", {"a": (1, 0, 1), "b": (0, 1, 1)}), ("two", {"b": (0, 0, 1), "c": (1, 1, 0)})):
        for model, scores in cells.items():
            path = home / name / model / "samples_leaderboard_mmlu_pro.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(asked(k, score)) + "\n" for k, score in enumerate(scores)))
    raw: Row = {
        "study": "s",
        "sources": [{"name": name, "kind": "lm-eval", "folder": name} for name in ("one", "two")],
        "claims": {"file": []},
        "fits": {"dims": 1, "max_dims": 1},
        "filter": {"min_observed": 1},
        "joining": {} if how is None else {"repeated_runs": how},
    }
    study = config.load(raw, home)
    folders = []
    for source in study.sources:
        for batch in sources.plan(source, study):
            sources.collect(source, study, home / "o" / source.name, batch.name)
            folders.append(home / "o" / source.name / batch.name)
    matrix.build(folders, study, "honest", home / "m")
    responses = pd.read_parquet(home / "m" / "responses.parquet").set_index("question_id")
    return responses, pd.read_csv(home / "m" / "conflicts.csv")


@pytest.mark.parametrize(("how", "expected"), [("conflict", [0, -1, 1]), ("first", [0, 1, 1])])
def test_repeated_runs_that_disagree(files: Files, how: str, expected: list[int]) -> None:
    responses, conflicts = runs(files, how)
    assert responses["b"].fillna(-1).tolist() == expected
    assert responses["a"].tolist() == [1, 0, 1]
    assert responses["c"].tolist() == [1, 1, 0]
    listed = conflicts[conflicts["question_id"].notna()]
    assert listed[["source", "model", "question_id", "kind"]].to_numpy().tolist() == [
        ["two", "b", "mmlu_pro__1", "repeated runs"]
    ]
    agreed = conflicts[conflicts["question_id"].isna()]
    assert agreed[["model", "outcomes", "done"]].to_numpy().tolist() == [["b", 2, "counted once: they agree"]]


def test_repeated_runs_that_disagree_are_refused_if_nothing_says_which_counts(files: Files) -> None:
    with pytest.raises(
        InputError, match=r"two files disagree about .*or say in joining\.repeated_runs what counts"
    ):
        runs(files, None)


# -- tables, and what cannot be compared --------------------------------------------------------------------


def tables(home: Path, second: str, **keys: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Build two tables with hashes of contents; the second names the same questions as `second` says."""
    (home / "t0.csv").write_text("question_id,a,b\nq1,1,0\nq2,0,1\nq3,1,0\n")
    (home / "i0.csv").write_text("question_id,content_hash\nq1,one\nq2,two\nq3,three\n")
    (home / "t1.csv").write_text("question_id,c,d\nq1,1,1\nq2,0,0\nq3,1,0\n")
    (home / "i1.csv").write_text(second)
    one = [
        {"name": f"s{k}", "kind": "table", "responses": f"t{k}.csv", "items": f"i{k}.csv", "benchmark": "x"}
        for k in range(2)
    ]
    raw = {"study": "s", "sources": one, "claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}
    study = config.load({**raw, "filter": {"min_observed": 1}, **keys}, home)
    shards = [sources.collect(source, study, home / "o" / source.name)[0] for source in study.sources]
    matrix.build(shards, study, "honest", home / "m")
    return (
        pd.read_parquet(home / "m" / "responses.parquet").set_index("question_id"),
        pd.read_csv(home / "m" / "conflicts.csv"),
    )


def test_tables_are_joined_by_the_contents_that_they_name(tmp_path: Path) -> None:
    responses, conflicts = tables(tmp_path, "question_id,content_hash\nq1,two\nq2,one\nq3,three\n")
    assert responses["c"].tolist() == [0, 1, 1]
    assert responses["d"].tolist() == [0, 1, 0]
    assert set(conflicts["kind"]) == {"reordered"}
    assert len(conflicts) == 4


def test_what_has_no_content_is_joined_by_name_and_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        responses, conflicts = tables(tmp_path, "question_id\nq1\nq2\nq3\n")
    assert responses["c"].tolist() == [1, 0, 1]
    assert conflicts[["benchmark", "kind", "outcomes", "done"]].to_numpy().tolist() == [
        ["x", "not compared", 3, "items joined by name alone"]
    ]
    assert "honest: not compared, 3 outcomes: items joined by name alone" in caplog.text


def test_readers_without_contents_say_so(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    files.put("mini.jsonlines", [{"subject_id": "a", "responses": {"q1": 1, "q2": 0}}])
    with caplog.at_level(logging.WARNING):
        files.collect(by="files")
    assert (
        "2 of 2 rows do not tell what was asked, so that they are joined by the question's name alone"
        in caplog.text
    )
    assert files.manifests()[0]["content_known"] == 0


def test_outcomes_without_any_conflict_are_listed_nowhere(files: Files) -> None:
    cells = truth(4, 5)
    responses, conflicts = planted(files, cells, {}).build()
    np.testing.assert_array_equal(values(responses), cells)
    assert conflicts.empty


def test_the_defaults_are_those_of_the_configuration(files: Files) -> None:
    files.put("a/samples_t.jsonl", [asked(0, 1)])
    assert dict(files.study().joining) == joining.DEFAULTS


# -- other pitfalls of the field about names and rows -------------------------------------------------------


def generic(doc_id: int, score: int, **more: Any) -> Row:
    doc = {"doc_id": doc_id, "doc": {"q": doc_id}, "target": "1", "resps": [["1"]], "filtered_resps": ["1"]}
    return {**doc, "metrics": ["exact_match"], "exact_match": score, **more}


def test_lm_evaluation_harness_1687_and_2025_a_row_per_filter(files: Files) -> None:
    """gsm8k has two rows per question, with the filters strict-match and flexible-extract: neither averaged nor the last."""
    rows = [
        generic(k, score, filter=name)
        for k in range(3)
        for name, score in (("strict-match", 0), ("flexible-extract", 1))
    ]
    files.put("a/samples_gsm8k.jsonl", rows)
    holds(files.fault(), ['has several grades, told apart by "filter"', "only: {filter: [strict-match]}"])
    files.declare(
        lm_eval={
            "benchmark": "gsm8k",
            "tasks": "gsm8k",
            "question_id": "g_{doc_id}",
            "one": {"field": "score", "is": True},
            "only": {"filter": ["flexible-extract"]},
        }
    )
    assert outcomes(files.cells()) == [1, 1, 1]


def test_lm_evaluation_harness_4084_a_stale_cache_shows_in_prompt_hashes(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [generic(k, 1, prompt_hash="p", filter="none") for k in range(3)]
    files.put("a/samples_t.jsonl", [*rows, generic(1, 1, prompt_hash="old", filter="none")])
    with caplog.at_level(logging.WARNING):
        files.collect()
    assert "1 questions were asked with two prompts (prompt_hash), such as doc_id 1" in caplog.text


def test_lm_evaluation_harness_2598_a_limit_leaves_the_rest_not_run(files: Files) -> None:
    """--limit takes the first questions: the others are missing, and no zeros."""
    for model, size in (("a", 25), ("b", 25), ("c", 10)):
        files.put(f"{model}/samples_t.jsonl", [generic(k, (k + ord(model)) % 2) for k in range(size)])
    study = files.study(filter={"min_observed": 1})
    matrix.build(files.collect(), study, "honest", files.home / "m")
    coverage = pd.read_csv(files.home / "m" / "coverage.csv").set_index("model")
    assert coverage["not_run"].to_dict() == {"a": 0, "b": 0, "c": 15}
    assert coverage.loc["c", "observed"] == 10
    assert coverage.loc["c", "mean"] == 0.5


def test_tiny_benchmarks_5_and_6_a_vector_without_names_is_refused(files: Files) -> None:
    """A shuffled vector of scores gives a plausible number."""
    files.put("scores.csv", "model,score\na,1\na,0\n")
    holds(files.fault(by="files"), ["in/scores.csv: "])


def test_every_eval_ever_59_values_that_are_no_numbers_are_missing(files: Files) -> None:
    """A mapping in the place of a score becomes 0 with a warning elsewhere."""
    row = {"sample_id": "1", "model_id": "m", "evaluation_name": "b", "input": {"raw": "simulated"}}
    files.put("a_samples.jsonl", [{**row, "evaluation": {"score": {"C": 1}}}])
    cells = files.cells(by="files")
    assert (outcomes(cells), reasons(cells)) == ([None], ["unparsed"])


def inspected(scores: dict[str, Any], status: str = "success") -> Row:
    """Return a log of inspect with a sample per entry; its totals and reductions tell of a success."""
    header = {"version": 2, "status": status, "eval": {"task": "t", "model": "m"}}
    totals = {"results": {"scores": [{"name": "s", "metrics": {"accuracy": {"value": 1.0}}}]}}
    reduced = [
        {
            "scorer": "s",
            "reducer": "mean",
            "samples": [{"sample_id": name, "value": 1.0} for name in scores],
        }
    ]
    samples = [
        {"id": name, "epoch": 1, "input": name, "target": "A", **({} if value is ... else {"scores": value})}
        for name, value in scores.items()
    ]
    return {**header, **totals, "reductions": reduced, "samples": samples}


def test_every_eval_ever_pr_89_values_of_inspect_are_mapped_strictly(files: Files) -> None:
    """Letters stand for what inspect says, mappings for nothing, and a score that only the reductions have for none."""
    values = {"right": "C", "wrong": "I", "part": "P", "none": "N", "map": {"C": 1}, "word": "correct"}
    files.put(
        "log.json",
        inspected({name: {"s": {"value": one}} for name, one in values.items()} | {"reduced": ...}),
    )
    found = {name.removeprefix("t__"): cell[:2] for name, cell in files.cells(by="files").items()}
    assert found == {
        "right": (1, None),
        "wrong": (0, None),
        "part": (None, "no_threshold"),
        "none": (None, "empty"),
        "map": (None, "unparsed"),
        "word": (None, "unparsed"),
        "reduced": (None, "judge_failed"),
    }


MIXED: list[tuple[Any, int | None]] = [
    *((1, 1), (0, 0), (1.0, 1), (0.0, 0), ("1.0", 1), ("0", 0), (True, 1), (False, 0), ("True", 1)),
    *(
        (None, None),
        (float("nan"), None),
        ("", None),
        ([1], None),
        ("1,0", None),
        (-1, None),
        (-(10**30), None),
    ),
]


@pytest.mark.parametrize("seed", range(4))
def test_datasets_6106_and_7222_gorilla_371_flashrag_132_types_are_mixed_in_any_order(
    files: Files, seed: int
) -> None:
    """A reader that guesses the type of a column from its first rows fails on, or changes, those that follow."""
    order = np.random.default_rng(seed).permutation(len(MIXED))
    rows = [generic(int(place), MIXED[place][0]) for place in order]
    files.put("a/samples_t.jsonl", rows)
    files.put(
        "b/all.jsonlines", [{"subject_id": "b", "responses": {str(k): MIXED[k][0] for k in order.tolist()}}]
    )
    wanted = {str(place): outcome for place, (_, outcome) in enumerate(MIXED)}
    for model in ("a", "b"):
        cells = files.cells(model=model)
        assert {name.rpartition("__")[2]: cell[0] for name, cell in cells.items()} == wanted


def test_py_irt_59_gaps_may_be_written_or_left_out(files: Files) -> None:
    """A response that is not there and one that is null are both missing, with another reason, and never wrong."""
    lines = [{"subject_id": "m", "responses": {"q1": 1, "q2": None, "q3": 0}}]
    files.put("t.jsonlines", [*lines, {"subject_id": "n", "responses": {"q1": 0, "q3": 1}}])
    matrix.build(
        files.collect(by="files"),
        files.study(by="files", filter={"min_observed": 1}),
        "honest",
        files.home / "m",
    )
    table = pd.read_parquet(files.home / "m" / "responses.parquet").set_index("question_id")
    assert table.loc["q2"].isna().all()
    assert table.drop(index="q2").to_numpy(dtype=int).tolist() == [[1, 0], [0, 1]]
    coverage = pd.read_csv(files.home / "m" / "coverage.csv").set_index("model")
    assert (coverage.loc["m", "unparsed"], coverage.loc["n", "not_run"]) == (1, 1)


def test_mirt_242_rows_without_an_outcome_are_dropped_before_anything_is_fitted(files: Files) -> None:
    """Empty rows spoil statistics of fit: the item stays in the table with a reason, and out of what is fitted."""
    for model, scores in {"a": (1, 0, None), "b": (0, 1, None), "c": (1, 1, None)}.items():
        files.put(f"{model}/samples_t.jsonl", [generic(k, score) for k, score in enumerate(scores)])
    matrix.build(files.collect(), files.study(filter={"min_observed": 1}), "honest", files.home / "m")
    items = pd.read_parquet(files.home / "m" / "items.parquet").set_index("question_id")
    assert items["kept"].tolist() == [True, True, False]
    assert "outcome" in items["drop_reason"].iloc[2]
    assert matrix.load(files.home / "m", asymptotes=False).items == ("t__0", "t__1")
