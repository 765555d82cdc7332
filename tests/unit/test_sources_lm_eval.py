"""Samples of lm-evaluation-harness: newer and older files, filters, append mode, repeated rows, several metrics."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from files_fixture import Files, Row, holds, outcomes, reasons

from benchmirt import config, matrix, sources
from benchmirt.errors import InputError

DATE = "2025-09-09T13-31-53.431753"
NAME = f"o__m/samples_gsm8k_{DATE}.jsonl"


def generated(doc_id: Any, score: Any, text: str = "4", **more: Any) -> Row:
    """Make a row of a generated answer, as newer versions write it."""
    return {
        "doc_id": doc_id,
        "doc": {"question": f"q{doc_id}", "answer": "4"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "Q: ...", "arg_1": {"until": ["\n"]}}},
        "resps": [[text]],
        "filtered_resps": [text],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": f"d{doc_id}",
        "prompt_hash": f"p{doc_id}",
        "target_hash": "t",
        "exact_match": score,
        **more,
    }


def chosen(doc_id: int, score: Any, **more: Any) -> Row:
    """Make a row of log-likelihoods."""
    answers = [["-0.4", "False"], ["-1.1", "False"], ["-2", "True"]]
    row = generated(doc_id, None, resps=[[answer] for answer in answers], filtered_resps=answers)
    del row["exact_match"]
    return {**row, "metrics": ["acc_norm"], "acc_norm": score, **more}


def older(row: Row) -> Row:
    return {key: value for key, value in row.items() if key not in ("filter", "metrics")}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("old", [False, True])
def test_rows_of_newer_and_older_files(files: Files, old: bool) -> None:
    rows = [generated(0, 1.0), generated(2, 0), generated(3, True), generated(7, "0.0")]
    files.put(NAME, [older(row) if old else row for row in rows])
    cells = files.cells()
    assert list(cells) == ["gsm8k__0", "gsm8k__2", "gsm8k__3", "gsm8k__7"]
    assert outcomes(cells) == [1, 0, 1, 0]
    items = files.items()
    assert set(items["benchmark"]) == {"gsm8k"}
    assert items["options"].isna().all()
    assert items["content_hash"].is_unique
    (manifest,) = files.manifests()
    assert manifest["model"] == "o__m"
    assert manifest["failures_known"] is True
    assert manifest["read"] == {"rows": 4, "left_out": 0, "repeated": 0}


def test_options_are_counted_where_each_has_a_likelihood(files: Files) -> None:
    files.put(NAME, [chosen(0, 1.0), chosen(1, 0.0)])
    assert outcomes(files.cells()) == [1, 0]
    assert files.items()["options"].tolist() == [3, 3]


def test_a_task_of_the_leaderboard_has_the_names_of_its_details(files: Files) -> None:
    row = chosen(72, None, metrics=["acc"], acc=1.0)
    row["doc"] = {"question": "q", "options": ["a", "b", "c"], "category": "law"}
    del row["acc_norm"]
    files.put(f"o__m/samples_leaderboard_mmlu_pro_{DATE}.jsonl", [{**row, "doc_id": 71}, row])
    assert outcomes(files.cells()) == [1]  # 72 is one of those that the published study left out
    assert files.items().index.tolist() == ["mmlu_pro__71"]
    assert files.items()["subcategory_one"].tolist() == ["law"]


def test_a_metric_that_the_rule_does_not_find_is_told(files: Files) -> None:
    files.put(f"o__m/samples_leaderboard_bbh_navigate_{DATE}.jsonl", [generated(0, 1.0)])
    holds(
        files.fault(),
        [
            'no row has the field "acc_norm", which decides here: found exact_match',
            "leaderboard_bbh_navigate",
        ],
    )


@pytest.mark.parametrize("by", ["folder", "files"])
def test_a_rule_that_scores_nothing_is_told(files: Files, caplog: pytest.LogCaptureFixture, by: str) -> None:
    """A misspelt task is scored by the ordinary rules, and nobody would know."""
    files.put(NAME, [generated(0, 1), generated(1, 0)])
    files.put(f"o__m/results_{DATE}.json", {"results": {}, "configs": {}, "model_name": "o__m"})
    rule = {"benchmark": "mine", "question_id": "m__{doc_id}", "one": {"field": "score", "is": True}}
    files.declare(lm_eval=[{**rule, "tasks": "gsm8k"}, {**rule, "benchmark": "other", "tasks": "gsm9k"}])
    with caplog.at_level(logging.WARNING):
        files.collect(by=by)
    told = [one.message for one in caplog.records if "scores nothing" in one.message]
    assert told == [
        'raw: the rule for "other" in own.yaml scores nothing here: no task is called gsm9k; there are gsm8k'
    ]


@pytest.mark.parametrize("by", ["folder", "files"])
def test_a_task_of_which_a_rule_takes_no_row_is_told(
    files: Files, caplog: pytest.LogCaptureFixture, by: str
) -> None:
    """As where the rule wants another filter than the run had."""
    for task in ("gsm8k", "sums"):
        files.put(f"o__m/samples_{task}_{DATE}.jsonl", [generated(0, 1)])
    files.put(f"o__m/results_{DATE}.json", {"results": {}, "configs": {}, "model_name": "o__m"})
    rule = {"benchmark": "gsm8k", "tasks": "gsm8k", "question_id": "gsm8k__{doc_id}"}
    files.declare(lm_eval={**rule, "one": {"field": "score", "is": True}, "only": {"filter": ["other"]}})
    assert list(files.cells(by=by)) == ["sums__0"]
    words = (
        "the rules leave out every row of some tasks (left_out, only, where), so that they have no outcome: "
    )
    assert words + "gsm8k (1 of 1 models)" in caplog.text
    assert files.manifests()[0]["tasks_left_out"] == ["gsm8k"]
    files.out.rename(files.home / "old")
    (files.home / "in" / "o__m" / f"samples_sums_{DATE}.jsonl").unlink()
    holds(files.fault(by=by), ["found 1 rows; tasks of which rules leave out every row: gsm8k"])


@pytest.mark.parametrize("by", ["folder", "files"])
@pytest.mark.parametrize(
    "name", ["samples_t.jsonl.gz", "samples_t.JSONL", "t.tsv", "deep/t.csv.zst", "t.xlsx", "t.CSV.GZ"]
)
def test_files_that_end_in_another_way_are_told(
    files: Files, caplog: pytest.LogCaptureFixture, by: str, name: str
) -> None:
    files.put(NAME, [generated(0, 1)])
    files.put(f"o__m/results_{DATE}.json", {"results": {}, "configs": {}, "model_name": "o__m"})
    files.put("o__m/notes.txt", "jsonl")
    files.put("o__m/.gitattributes", "*.jsonl.gz")
    assert list(files.cells(by=by)) == ["gsm8k__0"]
    assert "not looked at" not in caplog.text
    files.out.rename(files.home / "old")
    files.put(f"o__m/{name}", b"x")
    assert list(files.cells(by=by)) == ["gsm8k__0"]
    assert (
        f"1 files are not looked at, since their names end in another way than those of results: in/o__m/{name}"
        in (caplog.text)
    )
    (files.home / "in" / NAME).unlink()
    (files.home / "in" / "o__m" / f"results_{DATE}.json").unlink()
    files.out.rename(files.home / "older")
    holds(files.fault(by=by), ["there is no file in here that may hold results", f"found in/o__m/{name}"])


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_that_may_hold_several_models_is_told(
    files: Files, caplog: pytest.LogCaptureFixture, named: bool
) -> None:
    """With org/model below the folder, org would be one model that ran what its models ran."""
    for model, task in (("a", "gsm8k"), ("b", "sums")):
        files.put(f"org/{model}/samples_{task}_{DATE}.jsonl", [generated(0, 1)])
        if named:
            totals = {"results": {}, "configs": {}, "model_name": "org"}
            files.put(f"org/{model}/results_{DATE}.json", totals)
    assert list(files.cells()) == ["gsm8k__0", "sums__0"]
    words = "the files of 1 models lie in several folders and do not name their model, such as those of org in a, b"
    assert (words in caplog.text) is not named


def test_a_grade_that_no_row_has_is_told_and_not_missing_throughout(files: Files) -> None:
    """Another benchmark of the model would hide that all of this one is missing."""
    files.put(NAME, [generated(0, 1), generated(1, 0)])
    files.put("o__m/samples_other.jsonl", [generated(0, 1), generated(1, 0)])
    one = {"field": "scores.f1", "is": True}
    files.declare(lm_eval={"benchmark": "gsm8k", "tasks": "gsm8k", "question_id": "g__{doc_id}", "one": one})
    holds(
        files.fault(), [f'in/{NAME}: no row has the field "scores.f1", which decides here: found exact_match']
    )


def test_failures_are_missing_and_never_zero(files: Files) -> None:
    rows = [
        generated(0, 0.0, filtered_resps=["[invalid]"]),
        generated(1, 0.0, text=""),
        generated(2, 0.0, text="<think> and so"),
        generated(3, None),
        generated(4, float("nan")),
        generated(5, 0.5),
        generated(6, [1, 0]),
        generated(7, -(10**30)),
    ]
    files.put(NAME, rows)
    cells = files.cells()
    assert outcomes(cells) == [None] * 8
    assert reasons(cells) == [
        *("unparsed", "empty", "truncated", "unparsed", "unparsed"),
        *("no_threshold", "unparsed", "no_threshold"),
    ]
    assert [cell[2] for cell in cells.values()] == [0, 0, 0, *[None] * 5]  # what the harness itself counted
    assert files.table()["score"].tolist()[5] == 0.5


def test_several_filters_are_refused_and_one_is_chosen_by_a_rule(files: Files) -> None:
    """lm-evaluation-harness #1687, #2025: one row per filter with the same doc_id."""
    rows = [
        generated(0, float(name == "flexible-extract"), filter=name)
        for name in ("strict-match", "flexible-extract")
    ]
    files.put(NAME, rows)
    holds(
        files.fault(),
        [
            f'in/{NAME}: line 2, field "filter": one answer to "gsm8k__0" has several grades, told apart by "filter"',
            'found "strict-match", "flexible-extract"; expected one of them',
            "only: {filter: [strict-match]}",
        ],
    )
    rule: dict[str, Any] = {
        "benchmark": "gsm8k",
        "tasks": "gsm8k",
        "question_id": "gsm8k__{doc_id}",
        "one": {"field": "score", "is": True},
        "only": {"filter": ["flexible-extract"]},
    }
    files.declare(lm_eval=rule)
    assert outcomes(files.cells()) == [1]
    assert files.manifests()[0]["read"] == {"rows": 2, "left_out": 1, "repeated": 0}


def test_rows_that_repeat_without_a_filter_must_agree(files: Files) -> None:
    """Append mode, or the blocks of older files, whose filters have no name."""
    rows = [
        generated(0, 1),
        generated(1, 1),
        generated(2, None),
        generated(0, 1),
        generated(1, 0),
        generated(2, 0),
    ]
    files.put(NAME, [older(row) for row in rows])
    assert [cell[:2] for cell in files.cells().values()] == [(1, None), (None, "conflict"), (0, None)]
    assert files.manifests()[0]["read"]["repeated"] == 3


def test_repeated_runs_must_agree(files: Files) -> None:
    files.put(NAME, [generated(0, 1), generated(1, 1)])
    files.put(NAME.replace("2025", "2024"), [generated(0, 1), generated(1, 0)])
    assert [cell[:2] for cell in files.cells().values()] == [(1, None), (None, "conflict")]


def test_a_stale_cache_of_prompts_is_told(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    """lm-evaluation-harness #4084: one question, one task version, two prompts."""
    files.put(NAME, [generated(0, 1), generated(0, 1, prompt_hash="other")])
    with caplog.at_level(logging.WARNING):
        files.cells()
    assert "1 questions were asked with two prompts (prompt_hash), such as doc_id 0" in caplog.text


def test_only_the_first_questions_were_run(files: Files) -> None:
    """lm-evaluation-harness #2598: --limit takes the first questions; the others are missing, not wrong."""
    for model, number in (("a", 6), ("b", 6), ("c", 2)):
        files.put(
            f"{model}/samples_gsm8k_{DATE}.jsonl",
            [generated(k, int(ord(model) + k) % 2) for k in range(number)],
        )
    study = files.study(filter={"min_observed": 1})
    matrix.build(files.collect(), study, "honest", files.home / "m")
    coverage = (files.home / "m" / "coverage.csv").read_text().splitlines()
    assert [line.split(",")[1:6] for line in coverage[1:]] == [
        ["a", "6", "6", "0", "0"],
        ["b", "6", "6", "0", "0"],
        ["c", "6", "2", "4", "4"],
    ]


def test_several_metrics_are_refused_and_one_is_chosen_by_a_rule(files: Files) -> None:
    row = chosen(0, 1.0, metrics=["acc", "acc_norm"], acc=0.0)
    files.put(f"o__m/samples_arc_{DATE}.jsonl", [row])
    holds(
        files.fault(),
        [
            "the rows hold several grades, and no rule says which one counts: found acc, acc_norm",
            "scores.acc, is: true",
        ],
    )
    files.declare(
        lm_eval={
            "benchmark": "arc",
            "tasks": "arc",
            "question_id": "arc__{doc_id}",
            "one": {"field": "acc_norm", "is": True},
            "options": "choices",
        }
    )
    assert files.cells() == {"arc__0": (1, None, 1)}


@pytest.mark.parametrize("inside", [False, True])
def test_a_metric_whose_lower_grade_is_the_better_one_needs_a_rule_that_says_so(
    files: Files, inside: bool
) -> None:
    totals: Row = {
        "results": {},
        "configs": {},
        "higher_is_better": {"gsm8k": {"exact_match": False}, "arc": {"acc": True}},
    }
    rows = {"gsm8k": [generated(0, 1), generated(1, 0)], "arc": [chosen(0, 1.0)]}
    if inside:
        files.put("o__m/results.json", {**totals, "samples": rows})
    else:
        files.put(f"o__m/results_{DATE}.json", totals)
        for task, own in rows.items():
            files.put(f"o__m/samples_{task}_{DATE}.jsonl", own)
    words = [
        "the lower grade is the better one, and no rule says so",
        '"exact_match"',
        "scores.exact_match, is: false",
    ]
    holds(files.fault(), [*words, "results.json" if inside else f"results_{DATE}.json"])
    rule = {"benchmark": "gsm8k", "tasks": "gsm8k", "question_id": "gsm8k__{doc_id}"}
    files.declare(lm_eval={**rule, "one": {"field": "scores.exact_match", "is": False}})
    assert {name: cell[0] for name, cell in files.cells().items()} == {
        "gsm8k__0": 0,
        "gsm8k__1": 1,
        "arc__0": 1,
    }


def test_the_results_file_beside_names_the_model(files: Files) -> None:
    totals = {"results": {}, "configs": {}, "model_name": "org/model@8"}
    files.put(NAME, [generated(0, 1)])
    files.put(f"o__m/results_{DATE}.json", totals)
    assert files.cells(by="files") == {"gsm8k__0": (1, None, 1)}
    assert files.models() == ["org/model@8"]
    assert outcomes(files.cells(by="folder", model="o__m")) == [1]


def test_a_file_of_samples_may_end_in_json(files: Files) -> None:
    """Its task is the same, so that its questions are those of other models."""
    row = generated(0, 1)
    files.put(NAME.removesuffix("l"), json.dumps(row) + "\n" + json.dumps({**row, "doc_id": 1}) + "\n")
    assert list(files.cells()) == ["gsm8k__0", "gsm8k__1"]


def test_a_file_without_its_results_does_not_name_its_model(files: Files) -> None:
    files.put(NAME, [generated(0, 1)])
    holds(files.fault(by="files"), [f"in/{NAME}: this file does not say which model", "folder:"])


def test_totals_alone_are_passed_over(files: Files) -> None:
    files.put(f"o__m/results_{DATE}.json", {"results": {"gsm8k": {"exact_match,none": 0.5}}, "configs": {}})
    holds(files.fault(), ["in/o__m: no file in here holds outcomes of single questions"])
    assert "no file in here holds" in files.fault(by="files")


def test_samples_inside_results(files: Files) -> None:
    samples = {
        "gsm8k": [generated(0, 1, model_output="x", output_matches_target=False)],
        "arc": [chosen(0, 0.0)],
    }
    totals = {"results": {}, "configs": {}, "samples": samples}
    files.put("o__m/results.json", totals)
    assert files.cells() == {"gsm8k__0": (1, None, 1), "arc__0": (0, None, 0)}
    files.out.rename(files.home / "old")
    files.put("o__m/results.json", {**totals, "samples": {"gsm8k": [1]}})
    holds(files.fault(), ['samples, "gsm8k": found a list; expected a list of objects'])


WHOLE = (json.dumps(generated(0, 1)) + "\n" + json.dumps(generated(1, 1)) + "\n").encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["the file is empty"]),
        (b"\n \n", ["the file has no rows"]),
        (WHOLE[:-20], ["line 2, column", "not JSON, or it was cut off"]),
        (WHOLE + b"[1]\n", ["line 3: found a list; expected an object"]),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
            ["Git LFS pointer", "Run git lfs pull"],
        ),
        (b"<html>", ["a web page"]),
        (b"PK\x03\x04 and so", ["archive"]),
        (
            b'{"doc_id": 0, "doc_id": 1, "resps": []}\n',
            ['line 1: a key stands twice in one object: found "doc_id"'],
        ),
        (
            WHOLE.replace(b'"doc_id": 1', b'"doc_id": null'),
            ['line 2, field "doc_id"', "found doc_id nothing"],
        ),
        (WHOLE.replace(b'"doc_id": 1', b'"doc_id": {"a": 1}'), ["line 2", "which item it is about"]),
        (WHOLE.replace(b'"doc_id": 1', b'"doc_id": "\\ud800"'), ["cannot be written as UTF-8"]),
        (b'{"a": 1}\n', ["this file has none of the formats that are read: found an object with the keys a"]),
    ],
)
def test_files_that_are_wrong(files: Files, content: bytes, words: list[str]) -> None:
    files.put(NAME, content)
    message = files.fault()
    assert message.startswith("in/o__m")
    holds(message, words)
    assert "q0" not in message


def test_folders_that_are_wrong(files: Files) -> None:
    (files.home / "in").mkdir()
    assert "there is no folder of a model" in files.fault()
    files.put("o__m/README.md", "text")
    assert "in/o__m: there is no file in here that may hold results" in files.fault()
    files.put(NAME, [generated(0, 1)])
    (files.home / "in" / "o__m" / "loop").symlink_to(files.home / "in" / "o__m")
    assert "folders lie more than 20 deep" in files.fault()


def test_a_folder_holds_one_model(files: Files) -> None:
    for year, model in (("2024", "a"), ("2025", "b")):
        files.put(NAME.replace("2025", year), [generated(0, 1)])
        totals = {"results": {}, "configs": {}, "model_name": model}
        files.put(f"o__m/results_{DATE.replace('2025', year)}.json", totals)
    holds(
        files.fault(),
        ["the folder of one model holds files of two", '"a" in in/o__m/', 'expected only "o__m"'],
    )
    assert outcomes(files.cells(by="files", model="b")) == [1]


def test_tasks_without_a_rule_are_told(files: Files) -> None:
    rule = {
        "benchmark": "b",
        "tasks": "b",
        "question_id": "b__{doc_id}",
        "one": {"field": "score", "is": True},
    }
    files.declare(lm_eval=rule)
    files.put(NAME, [generated(0, 1)])
    source = {"name": "raw", "kind": "lm-eval", "folder": "in", "scoring": ["own.yaml"]}
    study = config.load({"study": "s", "sources": [source], "claims": {"file": []}}, files.home)
    with pytest.raises(InputError, match=r"no row that a scoring rule scores.*tasks without a rule: gsm8k"):
        sources.collect(study.sources[0], study, files.out, "0of1")


def test_the_kind_says_which_format_is_expected(files: Files) -> None:
    files.put(NAME, [generated(0, 1)])
    assert outcomes(files.cells("lm-eval")) == [1]
    files.out.rename(files.home / "old")
    files.put("o__m/more.jsonl", [{"spec": {}}])
    holds(
        files.fault("lm-eval"), ["this format is not read: found an event log of OpenAI Evals", "long table"]
    )


def test_the_kind_overrides_what_cannot_be_told(files: Files) -> None:
    files.put("o__m/samples_t.jsonl", [{"doc_id": 0, "acc": 1}, {"doc_id": 1, "acc": 0}])
    assert "none of the formats that are read" in files.fault()
    assert outcomes(files.cells("lm-eval")) == [1, 0]


def test_models_that_are_left_out(files: Files) -> None:
    for model in ("a", "b", "c"):
        files.put(
            f"{model}/samples_gsm8k_{DATE}.jsonl", [generated(k, int(ord(model) + k) % 2) for k in range(4)]
        )
    study = files.study(filter={"min_observed": 1}, models={"exclude": ["a"]})
    matrix.build(files.collect(), study, "honest", files.home / "m")
    table = pd.read_parquet(files.home / "m" / "models.parquet").set_index("model")
    assert table["kept"].to_dict() == {"a": False, "b": True, "c": True}


@pytest.mark.parametrize("chosen", [{"exclude": ["bad"]}, {"include": ["b", "c"]}])
def test_models_that_are_left_out_are_not_read(files: Files, chosen: dict[str, list[str]]) -> None:
    """A damaged folder of an excluded model stops nothing, and its name is known all the same."""
    for model in ("b", "c"):
        files.put(
            f"{model}/samples_gsm8k_{DATE}.jsonl", [generated(k, int(ord(model) + k) % 2) for k in range(4)]
        )
    files.put("bad/samples_gsm8k.jsonl", b"{damaged")
    shards = files.collect(models=chosen)
    assert files.models() == ["b", "c"]
    study = files.study(filter={"min_observed": 1}, models=chosen)
    matrix.build(shards, study, "honest", files.home / "m")
    with pytest.raises(InputError, match=r'models\.exclude.*found "bda"\. Did you mean "bad"\?'):
        matrix.build(shards, files.study(models={"exclude": ["bda"]}), "honest", files.home / "n")


def test_models_of_files_that_name_them_are_left_out_before_they_are_graded(files: Files) -> None:
    """Nothing of the excluded model can be scored, which is a fault where it takes part."""
    for model, task in (("b", "gsm8k"), ("c", "gsm8k"), ("org/bad", "unknown")):
        files.put(
            f"results_{model[0]}.json",
            {
                "configs": {},
                "results": {},
                "model_name": model,
                "samples": {task: [generated(k, int(ord(model[0]) + k) % 2) for k in range(4)]},
            },
        )
    files.declare(
        lm_eval={
            "benchmark": "gsm8k",
            "tasks": "gsm8k",
            "question_id": "g_{doc_id}",
            "one": {"field": "score", "is": True},
        }
    )
    (files.home / "only.yaml").write_text((files.home / "own.yaml").read_text())
    source = {"name": "raw", "kind": "lm-eval", "files": "in", "scoring": ["only.yaml"]}
    small = {"study": "s", "sources": [source], "claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}

    def study(**models: list[str]) -> config.Study:
        return config.load({**small, "models": models, "filter": {"min_observed": 1}}, files.home)

    with pytest.raises(InputError, match="no row that a scoring rule scores"):
        sources.collect(study().sources[0], study(), files.out)
    out = study(exclude=["org/bad"])
    shard = sources.collect(out.sources[0], out, files.out)[0]
    assert files.models() == ["b", "c"]
    matrix.build([shard], out, "honest", files.home / "m")
    with pytest.raises(InputError, match=r'Did you mean "org/bad"\?'):
        matrix.build([shard], study(exclude=["org/bat"]), "honest", files.home / "n")
    with pytest.raises(InputError, match="leave no model of this source"):
        sources.collect(out.sources[0], study(include=["x"]), files.home / "o")
