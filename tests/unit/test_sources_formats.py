"""HELM, olmo-eval and OLMES, Every Eval Ever, evalscope, py-irt, long tables: typed by hand from their descriptions."""

from __future__ import annotations

import gzip
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from files_fixture import Files, Row, holds, outcomes, reasons

from benchmirt import config, sources
from benchmirt.errors import InputError
from benchmirt.sources import long_table


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# -- HELM ---------------------------------------------------------------------------------------------------


def stat(name: str, mean: Any, count: int = 1, **more: Any) -> Row:
    return {"name": {"name": name, "split": "test", **more}, "count": count, "sum": mean, "mean": mean}


def instance(name: str, mean: Any = 1.0, trial: int = 0, **more: Any) -> Row:
    stats = [stat("num_references", 4), stat("exact_match", mean), stat("f1_score", 0.5)]
    return {"instance_id": name, "train_trial_index": trial, "stats": stats, **more}


SPEC: Row = {
    "name": "mmlu:subject=law,method=multiple_choice_joint,model=org_m",
    "adapter_spec": {"method": "multiple_choice_joint", "model": "org/m", "model_deployment": "hf/m"},
}
RUN = "mmlu:subject=law,method=multiple_choice_joint,model=org_m"


def run(files: Files, *instances: Any, spec: Row | None = None, name: str = RUN) -> None:
    files.put(f"{name}/per_instance_stats.json", list(instances))
    files.put(f"{name}/run_spec.json", spec or SPEC)
    files.put(f"{name}/scenario.json", {"name": "mmlu", "definition_path": "x"})
    files.put(f"{name}/stats.json", [{"name": {"name": "exact_match"}, "count": 1}])


def test_helm(files: Files) -> None:
    run(files, instance("id7"), instance("id11", 0.0), instance("id12", 0))
    assert files.cells(by="files") == {
        "mmlu:subject=law__joint_id7": (1, None, 1),
        "mmlu:subject=law__joint_id11": (0, None, 0),
        "mmlu:subject=law__joint_id12": (0, None, 0),
    }
    assert files.models() == ["org/m"]
    assert files.items()["options"].tolist() == [4] * 3
    assert set(files.items()["benchmark"]) == {"mmlu:subject=law"}


def test_helm_perturbed_instances_are_no_items(files: Files) -> None:
    robust = stat("exact_match", 0.0, perturbation={"name": "robustness"})
    odd = instance("id7", 0.0, perturbation={"name": "dialect"})
    run(files, {**instance("id7"), "stats": [stat("exact_match", 1.0), robust]}, odd)
    assert outcomes(files.cells(by="files")) == [1]
    assert files.manifests()[0]["read"] == {"rows": 2, "left_out": 1, "repeated": 0}


def test_helm_instances_that_are_listed_twice(files: Files) -> None:
    half = {"instance_id": "id1", "train_trial_index": 0, "stats": [stat("f1_score", 0.2)]}
    other = {"instance_id": "id2", "train_trial_index": 0, "stats": [stat("exact_match", 0.0)]}
    run(files, half, instance("id2"), {**half, "stats": [stat("exact_match", 1.0)]}, other)
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(1, None), (None, "conflict")]


def test_helm_trials_need_a_reduction(files: Files) -> None:
    run(files, instance("id1"), instance("id1", 0.0, trial=1))
    holds(files.fault(by="files"), ['instance 2, field "train_trial_index"', "found train_trial_index 0, 1"])


def test_helm_grades_that_are_none(files: Files) -> None:
    run(
        files,
        instance("id1", 0.5),
        instance("id2", None),
        {**instance("id3"), "stats": [stat("exact_match", 0.0, 0)]},
    )
    why = ["no_threshold", "unparsed", "unparsed"]
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(None, one) for one in why]


def test_helm_other_scenarios_need_a_rule(files: Files) -> None:
    spec = {"name": "narrative_qa:model=org_m", "adapter_spec": {"method": "generation", "model": "org/m"}}
    run(files, instance("id1"), spec=spec)
    holds(
        files.fault(by="files"), ["no row that a scoring rule scores", "tasks without a rule: narrative_qa"]
    )
    one = {"field": "scores.f1_score", "at_least": 0.5}
    files.declare(helm={"benchmark": "nqa", "tasks": "narrative_qa", "question_id": "nqa__{id}", "one": one})
    assert files.cells(by="files") == {"nqa__id1": (1, None, 1)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([instance("a"), 1], ["instance 2: found a number; expected an object with a list of stats"]),
        ([instance("a"), {"instance_id": "b"}], ["instance 2: found nothing"]),
        ([{**instance("a"), "stats": [1]}], ["instance 1, stat 1: found a number"]),
        ([instance("a"), {**instance("b"), "instance_id": None}], ["which item it is about", "instance 2"]),
        ([], ["none of the formats that are read: found a list"]),
    ],
)
def test_helm_files_that_are_wrong(files: Files, content: Any, words: list[str]) -> None:
    run(files, *content)
    holds(files.fault(by="files"), words)


# -- olmo-eval and OLMES ------------------------------------------------------------------------------------


def prediction(number: int, metrics: Any, text: str = "A", **more: Any) -> Row:
    return {
        "doc_id": number,
        "native_id": f"h{number}",
        "model_output": [{"text": text}],
        "instance_metrics": metrics,
        "label": "A",
        "final_output": text,
        **more,
    }


@pytest.mark.parametrize("flat", [False, True])
def test_olmo_eval(files: Files, flat: bool) -> None:
    rows = [
        prediction(k, {"exact_match": v if flat else {"exact_match": v}}) for k, v in enumerate((1.0, 0, 0.5))
    ]
    files.put(
        "predictions/org__m/arc_0a1b2c-predictions.jsonl", [*rows, prediction(3, {"exact_match": 1}, " ")]
    )
    assert files.cells(by="files") == {
        "arc__0": (1, None, 1),
        "arc__1": (0, None, 0),
        "arc__2": (None, "no_threshold", None),
        "arc__3": (None, "empty", 1),
    }
    assert files.models() == ["org__m"]


def test_olmes(files: Files) -> None:
    rows = [
        {
            "doc_id": 0,
            "native_id": "n",
            "metrics": {"acc": 1, "acc_norm": 0},
            "model_output": [{"sum_logits": -1}] * 3,
        }
    ]
    files.put("out/task-000-arc-predictions.jsonl", rows)
    files.put(
        "out/task-000-arc-metrics.json", {"task_config": {}, "metrics": {}, "model_config": {"model": "m"}}
    )
    files.put(
        "out/task-000-arc-requests.jsonl", [{"request_type": "x", "request": {}, "doc_id": 0, "doc": {}}]
    )
    holds(files.fault(by="files"), ["the rows hold several grades", "found acc, acc_norm", "scores.acc"])
    one = {"field": "scores.acc_norm", "is": True}
    rule = {"benchmark": "arc", "tasks": "arc", "question_id": "arc__{id}", "one": one, "options": "choices"}
    files.declare(olmo_eval=rule)
    assert files.cells(by="files") == {"arc__0": (0, None, 0)}
    assert files.models() == ["m"]
    assert files.items()["options"].tolist() == [3]


def test_olmo_eval_nested_metrics_have_both_names(files: Files) -> None:
    files.put("m/arc-predictions.jsonl", [prediction(0, {"judge": {"pass": 1, "fail": 0}})])
    holds(files.fault(), ["found judge/pass, judge/fail"])


def test_olmo_eval_predictions_without_a_folder_of_the_model(files: Files) -> None:
    files.put("arc-predictions.jsonl", [prediction(0, {"exact_match": 1})])
    holds(files.fault(by="files"), ["this file does not say which model it is about"])


# -- Every Eval Ever ----------------------------------------------------------------------------------------


def record(number: int, score: Any = 1.0, correct: Any = None, **more: Any) -> Row:
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "e",
        "model_id": "org/m",
        "evaluation_name": "b",
        "sample_id": f"b_{number}",
        "sample_hash": "h",
        "interaction_type": "single_turn",
        "input": {"raw": f"secret {number}", "reference": ["A"], "choices": ["A", "B"]},
        "output": {"raw": ["A"]},
        "messages": None,
        "answer_attribution": [{"turn_idx": 0, "source": "output.raw", "extracted_value": "A"}],
        "evaluation": {"score": score, "is_correct": bool(score) if correct is None else correct},
        **more,
    }


def test_every_eval_ever(files: Files) -> None:
    rows = [
        record(1),
        record(2, 0.0),
        record(3, 0.4, False),
        record(4, error="timeout"),
        record(5, 0.0, True),
        {**record(6), "evaluation": {"is_correct": True}},
        {**record(7), "evaluation": {}},
        record(8, model_id="org/n"),
    ]
    files.put("e_samples.jsonl", rows)
    files.put("e.json", {"evaluation_results": [], "model_info": {}})
    assert files.cells(by="files", model="org/m") == {
        "b__b_1": (1, None, 1),
        "b__b_2": (0, None, 0),
        "b__b_3": (None, "no_threshold", None),
        "b__b_4": (None, "errored", None),
        "b__b_5": (None, "conflict", None),
        "b__b_6": (1, None, 1),
        "b__b_7": (None, "judge_failed", None),
    }
    assert files.models() == ["org/m", "org/n"]
    assert files.items()["options"].tolist() == [2] * 8


def test_every_eval_ever_has_a_row_per_metric(files: Files) -> None:
    rows = [record(1, score, evaluation_result_id=name) for name, score in (("acc", 1.0), ("f1", 0.0))]
    files.put("e_samples.jsonl", rows)
    words = [
        'line 2, field "evaluation_result_id"',
        'found "acc", "f1"',
        "only: {evaluation_result_id: [acc]}",
    ]
    holds(files.fault(by="files"), words)
    one = {"field": "score", "is": True}
    rule = {"benchmark": "b", "tasks": "b", "question_id": "b__{id}", "one": one}
    files.declare(every_eval_ever={**rule, "only": {"evaluation_result_id": ["f1"]}})
    assert files.cells(by="files") == {"b__b_1": (0, None, 0)}


@pytest.mark.parametrize("by_id", [False, True])
def test_every_eval_ever_metric_whose_lower_score_is_the_better_one(files: Files, by_id: bool) -> None:
    """The totals beside the samples say so; the grades as they stand would turn the outcomes round in silence."""
    own: Row = {"evaluation_result_id": "toxic"} if by_id else {}
    rows = [
        record(1, 1.0, **own),
        record(2, 0.0, **own),
        record(3, 1.0, **own),
        record(4, 0.0, **own, evaluation_name="c"),
    ]
    for row, correct in zip(rows, [False, True, True, False], strict=True):
        row["evaluation"]["is_correct"] = correct
    result = {**own, "evaluation_name": "b", "metric_config": {"lower_is_better": True}}
    others = [{"evaluation_name": "c", "metric_config": {"lower_is_better": False}}]
    if by_id:
        rows[3]["evaluation_result_id"] = "right"
        others = [{**others[0], "evaluation_name": "b", "evaluation_result_id": "right"}]
    files.put("e_samples.jsonl", rows)
    files.put("e.json", {"model_info": {}, "evaluation_results": [result, *others]})
    words = ["the lower grade is the better one, and no rule says so", "e.json", "scores.score, is: false"]
    holds(files.fault(by="files"), words)
    rule = {
        "benchmark": "b",
        "tasks": "b",
        "question_id": "b__{id}",
        "one": {"field": "scores.score", "is": False},
        "failure": {"why": "missing"},
    }
    files.declare(every_eval_ever=rule)
    assert {name: cell[:2] for name, cell in files.cells(by="files").items()} == {
        "b__b_1": (0, None),
        "b__b_2": (1, None),
        "b__b_3": (None, "conflict"),
        "c__b_4": (0, None),
    }


# -- evalscope ----------------------------------------------------------------------------------------------


def review(
    number: int, value: Any, main: str | None = None, group: int | None = None, text: str = "A"
) -> Row:
    score = {"value": value, "extracted_prediction": "A", "prediction": text, "main_score_name": main}
    messages = [
        {"role": "user", "content": f"q{number}"},
        {"role": "assistant", "content": text, "model": "qwen"},
    ]
    sample = {"score": score, "sample_id": number, "group_id": number if group is None else group}
    return {"index": number, "target": "A", "messages": messages, "sample_score": sample}


def test_evalscope(files: Files) -> None:
    rows = [
        review(3, {"acc": 1.0}),
        review(1, {"acc": 0.0}),
        review(2, {"acc": 0.5}),
        review(4, {}),
        review(5, {"acc": 0.0}, text=""),
    ]
    files.put("reviews/qwen-plus/gsm8k_main.jsonl", rows)
    files.put("predictions/qwen-plus/gsm8k_main.jsonl", [{"index": 1, "model_output": {}}])
    files.put("reports/gsm8k.json", {"dataset_name": "gsm8k", "model_name": "q", "metrics": []})
    assert files.cells(by="files") == {
        "gsm8k_main__3": (1, None, 1),
        "gsm8k_main__1": (0, None, 0),
        "gsm8k_main__2": (None, "no_threshold", None),
        "gsm8k_main__4": (None, "judge_failed", None),
        "gsm8k_main__5": (None, "empty", 0),
    }
    assert files.models() == ["qwen-plus"]


def test_evalscope_answers_that_were_not_understood(files: Files) -> None:
    row = review(1, {"acc": 0.0})
    row["sample_score"]["score"]["extracted_prediction"] = ""
    files.put("reviews/m/t.jsonl", [row])
    assert files.cells(by="files") == {"t__1": (None, "unparsed", 0)}


def test_evalscope_has_a_main_score(files: Files) -> None:
    value = {"loose": 1.0, "strict": 0.0}
    files.put("ifeval.jsonl", [review(1, value, "strict"), review(2, value, "loose")])
    assert outcomes(files.cells(by="files")) == [0, 1]
    assert files.models() == ["qwen"]
    files.out.rename(files.home / "old")
    files.put("ifeval.jsonl", [review(1, value), review(2, value, "loose")])
    holds(files.fault(by="files"), ["the rows hold several grades", "found loose, strict"])


def test_evalscope_repeats_need_a_reduction(files: Files) -> None:
    files.put("aime.jsonl", [review(1, {"acc": 1.0}, group=0), review(2, {"acc": 0.0}, group=0)])
    holds(
        files.fault(by="files"),
        ['line 2, field "sample_id": "aime__0" was asked several times', "sample_id 1, 2"],
    )


# -- py-irt -------------------------------------------------------------------------------------------------


def test_py_irt(files: Files) -> None:
    rows = [
        {"subject_id": "pedro", "responses": {"q1": 1, "q2": 0, "q3": True, "q4": "1"}},
        {"subject_id": "ken", "responses": {"q1": 1.0, "q2": 0.3, "q3": None}},
        {"subject_id": "ken", "responses": {"q1": 0, "q4": 0}},
    ]
    files.put("mini.jsonlines", rows)
    assert outcomes(files.cells(by="files", model="pedro")) == [1, 0, 1, 1]
    assert files.cells(by="files", model="ken") == {
        "q1": (None, "conflict", None),
        "q2": (None, "no_threshold", None),
        "q3": (None, "unparsed", None),
        "q4": (0, None, 0),
    }
    assert set(files.items()["benchmark"]) == {"mini"}
    assert files.manifests()[0]["failures_known"] is False


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"subject_id": "a", "responses": [1, 0]}, ['line 2, field "responses": found a list']),
        ({"subject_id": 7, "responses": {"q": 1}}, ['line 2, field "subject_id"', "expected a text"]),
        ({"responses": {"q": 1}}, ['line 2, field "subject_id": found nothing']),
        ({"subject_id": "a\u200b", "responses": {"q": 1}}, ["cannot be seen", "U+200B"]),
        (
            {"subject_id": "a", "responses": {"q\u200b": 1}},
            ["the name of the item holds a character", "line 2"],
        ),
    ],
)
def test_py_irt_files_that_are_wrong(files: Files, row: Row, words: list[str]) -> None:
    files.put("mini.jsonlines", [{"subject_id": "b", "responses": {"q": 1}}, row])
    holds(files.fault(by="files"), words)


def test_items_of_two_files_that_share_names_are_refused(files: Files) -> None:
    for name in ("one", "two"):
        files.put(f"{name}.jsonlines", [{"subject_id": "a", "responses": {"q": 1}}])
    holds(files.fault(by="files"), ["items of two benchmarks have one name", '"q" in one and in two'])


# -- long tables --------------------------------------------------------------------------------------------

LONG = "model,question_id,outcome,reason,benchmark\na,q1,1,,x\na,q2,0.0,,x\nb,q1,,timeout,x\nb,q2,,,x\nb,q9,True,,y\n"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_long_tables(files: Files, ending: str) -> None:
    if ending == "csv":
        files.put("t.csv", LONG)
    elif ending == "csv.gz":
        files.put("t.csv.gz", gzip.compress(LONG.encode()))
    else:
        path = files.put("t.parquet", b"")
        frame = pd.read_csv(StringIO(LONG), dtype={"outcome": "str"})
        frame.assign(trace="secret").to_parquet(path)
    assert files.cells(by="files", model="a") == {"q1": (1, None, 1), "q2": (0, None, 0)}
    assert files.cells(by="files", model="b") == {
        "q1": (None, "timeout", None),
        "q2": (None, "not_run", None),
        "q9": (1, None, 1),
    }
    assert files.items()["benchmark"].to_dict() == {"q1": "x", "q2": "x", "q9": "y"}


def test_one_file_may_be_named(files: Files) -> None:
    files.put("t.csv", LONG)
    files.put("other.csv", "a,b\n1,2\n")
    assert outcomes(files.cells("long", "files", "in/t.csv", model="a")) == [1, 0]


def test_our_own_outcome_tables_are_long_tables(files: Files) -> None:
    files.put("t.csv", LONG)
    first = files.table(by="files")
    files.out.rename(files.home / "again")
    (shard,) = (files.home / "again").glob("shard0.parquet")
    study = files.study("long", "files", "again/shard0.parquet")
    sources.collect(study.sources[0], study, files.out)
    second = pd.read_parquet(files.out / "shard0.parquet")
    for name in ("model", "question_id", "outcome", "reason"):
        assert first[name].astype(str).tolist() == second[name].astype(str).tolist()
    assert shard.is_file()


def test_scores_of_long_tables(files: Files) -> None:
    files.put(
        "t.csv", "subject_id,item_id,response\na,1,0.65\na,2,1e0\na,3,nan\na,4,yes\na,5,1e999\na,6,false\n"
    )
    assert [cell[:2] for cell in files.cells(by="files").values()] == [
        (None, "no_threshold"),
        (1, None),
        *[(None, "unparsed")] * 3,
        (0, None),
    ]
    assert files.table(by="files")["score"].fillna(-1).tolist() == [0.65, 1, -1, -1, -1, 0]


@pytest.mark.parametrize("above", ["1.5", "5", "100", "1e30"])
def test_grades_of_another_scale_are_no_outcomes_until_a_rule_has_a_threshold(
    files: Files, caplog: pytest.LogCaptureFixture, above: str
) -> None:
    """One star of five is the worst answer and one percent nearly so: beside them a 1 is not right, nor a 0 wrong."""
    files.put(
        "t.csv",
        f"model,question_id,outcome,benchmark\na,1,1,s\na,2,{above},s\na,3,0,s\na,4,0.5,s\na,5,,s\na,6,1,other\n",
    )
    cells = files.cells(by="files")
    assert [cell[0] for cell in cells.values()] == [None] * 5 + [1]
    assert [cell[2] for cell in cells.values()] == [None] * 5 + [1]
    assert reasons(cells) == [*["no_threshold"] * 4, "not_run", None]
    assert "4 outcomes are missing since their grade is neither 0 nor 1, or others" in caplog.text
    assert files.table(by="files")["score"].tolist()[:2] == [1, float(above)]
    one = {"field": "score", "at_least": 1.2, "within": [0, 1e30]}
    files.declare(long={"benchmark": "s", "tasks": "s", "question_id": "{id}", "one": one})
    assert outcomes(files.cells(by="files")) == [0, 1, 0, 0, None, 1]


def test_texts_that_no_rule_explains_are_told(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    files.put("t.csv", "model,question_id,outcome\na,1,100%\na,2,yes\na,3,1\na,4,\n")
    assert [cell[0] for cell in files.cells(by="files").values()] == [None, None, 1, None]
    assert (
        "2 outcomes are missing since their grade is a text or another value that no rule explains"
        in caplog.text
    )
    assert files.manifests()[0]["unreadable"] == 2


@pytest.mark.parametrize(("mark", "shown"), [(";", '";"'), ("\t", "tabs"), ("|", '"|"')])
def test_tables_with_another_mark_between_fields(files: Files, mark: str, shown: str) -> None:
    files.put("t.csv", f"model{mark}question_id{mark}outcome\na{mark}1{mark}1\n")
    holds(
        files.fault(by="files"), [f"in/t.csv: row 1: the fields are not separated by commas: found {shown}"]
    )


def test_fractions_among_grades_of_another_scale_are_in_no_mean(files: Files) -> None:
    files.put("t.csv", "model,item,score,trial\na,1,0.5,1\na,1,5,2\na,2,1,1\n")
    rule = {"benchmark": "t", "tasks": "t", "question_id": "{id}", "one": {"field": "score", "is": True}}
    files.declare(long={**rule, "repeats": {"mean": 0.5}})
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(None, "no_threshold")] * 2


def test_truth_values_as_spreadsheets_write_them(files: Files) -> None:
    files.put("t.csv", "model,question_id,outcome\na,1,TRUE\na,2,FALSE\na,3,true\na,4,False\na,5,T\n")
    assert [cell[:2] for cell in files.cells(by="files").values()] == [
        (1, None),
        (0, None),
        (1, None),
        (0, None),
        (None, "unparsed"),
    ]


def test_a_grade_that_is_nearly_0_or_1_is_neither(files: Files) -> None:
    """Floats round 1e-400 to 0; a grade so small is no wrong answer, and one just below 1 no right one."""
    near = ["1e-400", "0.99999999999999999999", "1.00000000000000000001", "-1e-999"]
    files.put("t.csv", "model,question_id,outcome\n" + "".join(f"a,{n},{g}\n" for n, g in enumerate(near)))
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(None, "no_threshold")] * 4
    files.put("t.csv", "model,question_id,outcome\na,0,1.000\na,1,0e5\na,2,-0.0\na,3,100e-2\n")
    assert [cell[:2] for cell in files.cells(by="files").values()] == [
        (1, None),
        (0, None),
        (0, None),
        (1, None),
    ]


def test_a_grade_in_json_that_is_nearly_0_is_not_0(files: Files) -> None:
    text = '{"subject_id": "a", "responses": {"q1": 1e-400, "q2": 0.99999999999999999999, "q3": 0.0, "q4": 1.0}}\n'
    files.put("mini.jsonlines", text)
    found = [cell[:2] for cell in files.cells(by="files").values()]
    assert found == [(None, "no_threshold")] * 2 + [(0, None), (1, None)]


def test_trials_and_conditions_of_long_tables(files: Files) -> None:
    files.put("t.csv", "subject_id,item_id,response,trial\na,1,1,1\na,1,0,2\n")
    holds(
        files.fault(by="files"), ['row 3, column "trial": "1" was asked several times', "found repeat 1, 2"]
    )
    files.put("t.csv", "subject_id,item_id,response,test_condition\na,1,1,cot\na,1,0,direct\n")
    holds(files.fault(by="files"), ['told apart by "variant"', 'found "cot", "direct"'])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,question_id\na,q\n", ["there is no column of the grade", "outcome or response"]),
        (
            "model,question_id,response,score\na,q,1,1\n",
            ['two columns may be the grade: found "response", "score"'],
        ),
        ("model,question_id,outcome\n", ["a header but no rows"]),
        ("model,question_id,outcome\na,q\n", ["row 2: the row does not fit the header"]),
        ("model,question_id,outcome\n,q,1\n", ["does not say which model"]),
        ("model,question_id,outcome\na,q,1\n,q,1\n", ['row 3, column "model": the cell is empty']),
        (
            "model,question_id,outcome,benchmark\na,q,1,\na,r,1,b\n",
            ['row 2, column "benchmark": the cell is empty', "Fill it in"],
        ),
        (
            "model,question_id,outcome\na,,1\n",
            ['row 2, column "question_id": the row cannot be told which item'],
        ),
        ("model,question_id,outcome,reason\na,q,,odd\n", ['row 2, column "reason"', 'found "odd"']),
        (
            "model,item,outcome\na,p,1\na, q,0\n",
            ['row 3, column "item": the name of the item begins or ends with a space: found " q"'],
        ),
        ("question_id,a,b\nq,1,0\n", ["a table without columns of models and questions", "kind: table"]),
        ("model,question_id,outcome,benchmark\na,q,1,b\u202eb\n", ["benchmark holds a character", "U+202E"]),
        ("", ["the file is empty"]),
    ],
)
def test_long_tables_that_are_wrong(files: Files, text: str, words: list[str]) -> None:
    files.put("t.csv", text)
    message = files.fault(by="files")
    assert message.startswith("in/t.csv: ")
    holds(message, words)


def test_details_of_the_leaderboard_are_another_source(files: Files) -> None:
    path = files.put("t.parquet", b"")
    pd.DataFrame({"doc_id": [0], "doc": ["x"], "acc": [1]}).to_parquet(path)
    holds(files.fault(by="files"), ["found details of the Open LLM Leaderboard", "kind: leaderboard"])


def test_a_vector_without_names_of_questions_is_refused(files: Files) -> None:
    """In tinyBenchmarks (#5, #6) a vector whose order alone says what is what gives a plausible number when shuffled."""
    files.put("m.json", [1, 0, 1, 1])
    holds(
        files.fault(by="files"), ["in/m.json: this file has none of the formats that are read: found a list"]
    )
    files.put("m.json", {"responses": [1, 0, 1], "subject_id": "m"})
    holds(files.fault(by="files"), ["found a list; expected an object {QUESTION: OUTCOME}"])


# -- several formats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["pipe", "device", "nowhere"])
def test_what_is_no_ordinary_file_is_neither_waited_for_nor_read_for_ever(files: Files, what: str) -> None:
    path = files.home / "in" / "m" / "samples_t.jsonl"
    path.parent.mkdir(parents=True)
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if what == "device" else "nowhere")
    message = files.fault()
    assert message.startswith("in/m/samples_t.jsonl: this ")
    holds(message, ["does not exist" if what == "nowhere" else "is not an ordinary file"])


def test_formats_are_told_by_content(files: Files) -> None:
    files.put("a.json", [instance("id1")])
    files.put("run_spec.json", SPEC)
    files.put("b.jsonl", [record(1)])
    files.put("c.json", {"subject_id": "org/m", "responses": {"q1": 1}})
    files.put("d.csv", "model,question_id,outcome\norg/m,q2,0\n")
    assert outcomes(files.cells(by="files")) == [1, 1, 1, 0]
    assert files.manifests()[0]["failures_known"] is False


def test_another_format_than_the_kind_says(files: Files) -> None:
    files.put("b.jsonl", [record(1)])
    holds(
        files.fault("inspect", "files"),
        [
            "found samples of Every Eval Ever; expected a log of inspect, as kind: inspect says",
            "kind: every-eval-ever",
        ],
    )


def test_results_of_safety_eval_are_another_source(files: Files) -> None:
    files.put("m/all.json", {"xstest:default": [{"id": 1}]})
    holds(files.fault(), ["found results of safety-eval", "kind: safety-eval"])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, ["give one of folder and files: found neither"]),
        ({"folder": "in", "files": "in"}, ["give one of folder and files: found both"]),
        ({"files": "nowhere"}, ["sources[0].files: this file does not exist"]),
        ({"folder": "nowhere"}, ["sources[0].folder: this folder does not exist"]),
        ({"fils": "in"}, ['sources[0].fils: unknown key. Did you mean "files"?']),
    ],
)
def test_configurations_that_are_wrong(files: Files, keys: Row, words: list[str]) -> None:
    (files.home / "in").mkdir()
    raw = {"study": "s", "sources": [{"name": "n", "kind": "files", **keys}], "claims": {"file": []}}
    with pytest.raises(InputError) as caught:
        config.load(raw, files.home)
    holds(str(caught.value), words)


def test_simulated_files_must_be_called_so(files: Files) -> None:
    files.put("simulated_b.jsonl", [record(1)])
    assert "these files are simulated, but nothing would say so" in files.fault(by="files")
    (files.home / "in").rename(files.home / "simulated")
    assert files.study(by="files", name="simulated").simulated
    files.collect(by="files", name="simulated")
    assert files.manifests()[0]["simulated"] is True


def test_the_table_of_formats_names_every_kind(repository: Path) -> None:
    text = (repository / "workflow" / "resources" / "FORMATS.md").read_text(encoding="utf-8")
    named = [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]
    assert named[: len(config.FORMATS)] == list(config.FORMATS)
    tested = text.partition("## How each format was tested")[2].partition("\n## ")[0]
    assert all(f"| `{kind}` |" in tested for kind in (*config.FORMATS, *config.RAW, "table"))
    for names in long_table.COLUMNS.values():
        assert all(f"`{name}`" in text for name in names if name != "content_hash")
