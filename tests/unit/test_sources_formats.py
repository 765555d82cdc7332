"""HELM, olmo-eval and OLMES, Every Eval Ever, evalscope, py-irt, long tables: typed by hand from their descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files_fixture import Files, Row, holds, outcomes


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
    assert [cell[:2] for cell in files.cells(by="files").values()] == [(None, "unparsed")] * 3


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
        ([instance("a"), {"instance_id": "b"}], ["instance 2: found a null"]),
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
        "arc__2": (None, "unparsed", None),
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
