"""Real files of evaluation tools, where they are at hand: read to the right outcomes or refused with a sentence."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from files_fixture import Files, holds, outcomes, reasons

from benchmirt import config
from benchmirt.errors import InputError
from benchmirt.sources import table

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = Path(os.environ.get("BENCHMIRT_SAMPLES", REPOSITORY.parent / "shared" / "samples"))

pytestmark = pytest.mark.skipif(
    not (SAMPLES / "lm_eval").is_dir(), reason="no sample files (set BENCHMIRT_SAMPLES to their folder)"
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def take(files: Files, *names: str, into: str = "m") -> None:
    """Copy sample files."""
    for name in names:
        path = files.home / "in" / into / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / name, path)


def passed(values: str) -> list[int | None]:
    """Spell outcomes: 1, 0 and . for missing."""
    return [None if value == "." else int(value) for value in values]


# -- lm-evaluation-harness ----------------------------------------------------------------------------------

HARNESS = {
    "gsm8k_2025-09-09T13-31-53.431753": ("gsm8k", "100"),
    "ko_winogrande_2024-11-19T14-38-02.552165": ("ko_winogrande", ".........."),
    "leaderboard_gpqa_diamond_2024-11-21T17-58-00.556850": ("leaderboard_gpqa_diamond", "000"),
    "leaderboard_gpqa_main_2024-11-21T17-26-18.889065": ("leaderboard_gpqa_main", "0000000000"),
    "leaderboard_math_prealgebra_hard_2024-11-14T16-01-56.818889": ("math", "00000000000000"),
    "math_perturbed_full_2026-01-21T03-44-18.458309": ("math_perturbed_full", "0000000000"),
    "mmlu_pro_plus_chemistry_2025-10-14T14-44-39.372006": ("mmlu_pro_plus_chemistry", "100"),
    "mmlu_pro_plus_psychology_2025-10-14T14-44-39.372006": ("mmlu_pro_plus_psychology", "100"),
    "winogrande_2024-12-23T14-29-31.806745": ("winogrande", ".1...11..."),
}


@pytest.mark.parametrize("name", HARNESS)
def test_samples_of_the_harness(files: Files, name: str) -> None:
    take(files, f"lm_eval/samples_{name}.jsonl")
    benchmark, values = HARNESS[name]
    cells = files.cells()
    assert outcomes(cells) == passed(values)
    assert set(reasons(cells)) <= {None, "unparsed"}
    assert set(files.items()["benchmark"]) == {benchmark}


@pytest.mark.parametrize("task", ["bbh_causal_judgement", "mmlu_pro", "musr_murder_mysteries"])
def test_tasks_of_the_leaderboard_scored_otherwise(files: Files, task: str) -> None:
    """A fork asks a chat model, so that the leaderboard's metric is not there; a rule may name the other one."""
    (path,) = (SAMPLES / "lm_eval").glob(f"samples_leaderboard_{task}_*.jsonl")
    take(files, f"lm_eval/{path.name}")
    message = files.fault()
    holds(message, ["no row has the field", "found exact_match", f'"leaderboard_{task}" of your own'])
    files.declare(
        lm_eval={
            "benchmark": "chat",
            "tasks": f"leaderboard_{task}",
            "question_id": "chat__{doc_id}",
            "one": {"field": "exact_match", "is": True},
        }
    )
    assert outcomes(files.cells()) == passed("01101" if task.startswith("bbh") else "0" * 10)


def test_repeated_blocks_of_the_harness(files: Files) -> None:
    take(files, f"lm_eval/samples_{'ko_winogrande_2024-11-19T14-38-02.552165'}.jsonl")
    files.cells()
    assert files.manifests()[0]["read"] == {"rows": 30, "left_out": 0, "repeated": 20}


def test_results_of_the_harness_name_the_model(files: Files) -> None:
    date = "2024-12-23T14-29-31.806745"
    take(files, f"lm_eval/samples_winogrande_{date}.jsonl", f"lm_eval/results_{date}.json")
    assert len(files.cells(by="files")) == 10
    assert files.models() == ["gpt-4o"]


@pytest.mark.parametrize(
    "path", sorted((SAMPLES / "lm_eval").glob("results_2*.json")), ids=lambda path: path.name
)
def test_totals_of_the_harness(files: Files, path: Path) -> None:
    take(files, f"lm_eval/{path.name}")
    holds(files.fault(), ["in/m: no file in here holds outcomes of single questions"])


def test_results_of_the_harness_with_samples_in_them(files: Files) -> None:
    take(files, "lm_eval/results_with_samples_leaderboard_2025-07-11.json")
    cells = files.cells()
    assert {name: cell[0] for name, cell in cells.items()} == {
        "mmlu_pro__0": 1,
        "bbh__boolean_expressions_0": 1,
        "bbh__hyperbaton_0": 0,
        "bbh__object_counting_0": 1,
        "leaderboard_gpqa_main__0": 0,
        "math__algebra_hard_0": 1,
        "math__precalculus_hard_0": 0,
        "ifeval__0": 0,
        "musr__murder_mysteries_0": 1,
    }


# -- inspect ------------------------------------------------------------------------------------------------

INSPECT = {
    "arc_qwen.json": ("ollama/qwen2.5:0.5b", "100", None),
    "class-eval.eval": ("openai/gpt-5-nano", "11111", None),
    "cvebench_sample_error.json": ("anthropic/claude-opus-4-6", ".", "errored"),
    "cyse2_fraction_score.json": ("mistral/mistral-large-latest", ".", "no_threshold"),
    "log_message_deduplication.eval": ("hardcoded/hardcoded", "0", None),
    "mmlu-summary-choices.eval": ("openai/gpt-4o", "0", None),
    "popularity_scored.eval": ("openai/gpt-4o-mini", "1111110011", None),
    "popularity_unscored.eval": ("openai/gpt-4o-mini", "..........", "judge_failed"),
    "pubmedqa_gpt4o_mini.json": ("openai/azure/gpt-4o-mini", "11", None),
}


@pytest.mark.parametrize("name", INSPECT)
def test_logs_of_inspect(files: Files, name: str) -> None:
    take(files, f"inspect_ai/{name}")
    model, values, reason = INSPECT[name]
    cells = files.cells(by="files")
    assert outcomes(cells) == passed(values)
    assert set(reasons(cells)) == {reason}
    assert files.models() == [model]


@pytest.mark.parametrize("name", ["log_streaming.eval", "metr_small_6_epochs.eval"])
def test_epochs_of_inspect(files: Files, name: str) -> None:
    take(files, f"inspect_ai/{name}")
    holds(files.fault(by="files"), ["was asked several times", "found epoch", "repeats: first, majority"])
    rule = {
        "benchmark": "b",
        "tasks": "{task}",
        "question_id": "b__{id}",
        "one": {"field": "score", "is": True, "values": {"C": 1, "I": 0}},
        "repeats": {"mean": 0.6},
    }
    files.declare(inspect=rule)
    table = files.table(by="files").set_index("question_id")
    if name.startswith("log"):
        assert table["outcome"].to_dict() == {"b__1": 0, "b__2": 1}
        assert table["score"].to_dict() == {"b__1": 0.5, "b__2": 1.0}
    else:
        assert table["outcome"].to_dict() == {"b__default": 1}


def test_a_cancelled_run_of_inspect(files: Files) -> None:
    take(files, "inspect_ai/no-samples.json")
    holds(files.fault(by="files"), ["no row that a scoring rule scores", 'testtaskname called "cancelled"'])


# -- HELM ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "model", "values"),
    [
        ("hellaswag_pythia-1b", "eleutherai/pythia-1b-v0", "0011000001"),
        ("mmlu_philosophy_gpt2", "openai/gpt2", "0000000100"),
    ],
)
def test_runs_of_helm(files: Files, run: str, model: str, values: str) -> None:
    for name in ("per_instance_stats", "run_spec", "scenario"):
        take(files, f"helm/{run}/{name}.json", into=run)
    assert outcomes(files.cells(by="files")) == passed(values)
    assert files.models() == [model]
    assert files.items()["options"].tolist() == [4] * 10
    assert files.cells(by="folder").keys()


def test_a_run_of_helm_that_needs_a_rule(files: Files) -> None:
    for name in ("per_instance_stats", "run_spec", "scenario"):
        take(files, f"helm/narrative_qa_gpt2/{name}.json")
    holds(
        files.fault(by="files"), ["no row that a scoring rule scores", "tasks without a rule: narrative_qa"]
    )
    one = {"field": "scores.rouge_l", "at_least": 0.5}
    files.declare(helm={"benchmark": "nqa", "tasks": "narrative_qa", "question_id": "nqa__{id}", "one": one})
    assert outcomes(files.cells(by="files")) == passed("00000")


# -- Every Eval Ever, evalscope, py-irt ---------------------------------------------------------------------


def test_samples_of_every_eval_ever(files: Files) -> None:
    take(files, "every_eval_ever/None_samples.jsonl")
    assert files.cells(by="files") == {
        "hellaswag__id44874": (0, None, 0),
        "hellaswag__id47299": (0, None, 0),
        "hellaswag__id45277": (1, None, 1),
    }
    assert files.models() == ["eleutherai/pythia-1b-v0"]
    assert files.items()["options"].tolist() == [4] * 3


def test_the_example_of_every_eval_ever(files: Files) -> None:
    example = "every_eval_ever/f3a1c0de-4b2e-4c1a-9f6d-1b7e5a2c8d40"
    take(files, f"{example}.json", f"{example}_samples.jsonl")
    assert files.cells(by="files") == {"demo-source.demo_bench__demo_0001": (1, None, 1)}
    assert files.models() == ["demo-org/demo-model"]


def test_totals_of_every_eval_ever(files: Files) -> None:
    take(files, "every_eval_ever/98ea850e-7019-4728-a558-8b1819ec47c2.json")
    holds(files.fault(by="files"), ["in: no file in here holds outcomes of single questions"])


@pytest.mark.parametrize(
    ("task", "values"),
    [
        ("gpqa_diamond_default", "0111111011"),
        ("gsm8k_main", "1111111111"),
        ("ifeval_default", "1111011111"),
        ("iquiz_EQ", "0111111001"),
    ],
)
def test_reviews_of_evalscope(files: Files, task: str, values: str) -> None:
    path = files.put(f"reviews/qwen-plus/{task}.jsonl", b"")
    shutil.copyfile(SAMPLES / "evalscope" / f"qwen-plus_reviews_{task}.jsonl", path)
    assert outcomes(files.cells(by="files")) == passed(values)
    assert files.models() == ["qwen-plus"]


@pytest.mark.parametrize("name", ["qwen-plus_predictions_gsm8k_main.jsonl", "qwen-plus_report_gsm8k.json"])
def test_predictions_and_reports_of_evalscope_hold_no_outcomes(files: Files, name: str) -> None:
    take(files, f"evalscope/{name}")
    holds(files.fault(), ["in/m: no file in here holds outcomes of single questions"])


def test_responses_of_py_irt(files: Files) -> None:
    take(files, "response_matrix/py-irt_minitest.jsonlines")
    wanted = {"pedro": "1010", "pinguino": "1100", "ken": "1111", "burt": "0000"}
    for model, values in wanted.items():
        assert outcomes(files.cells(by="files", model=model)) == passed(values)
    assert files.models() == sorted(wanted)


@pytest.mark.parametrize("by", ["folder", "files"])
def test_every_sample_file_is_read_or_refused(files: Files, by: str) -> None:
    """None ends in another exception, and none is read to outcomes other than those above."""
    read = set()
    for path in sorted(SAMPLES.rglob("*.*")):
        if path.name == "README.md" or path.is_dir():
            continue
        name = path.relative_to(SAMPLES).as_posix()
        shutil.rmtree(files.home / "in", ignore_errors=True)
        shutil.rmtree(files.out, ignore_errors=True)
        take(files, name)
        if path.name == "per_instance_stats.json":
            take(files, name.replace("per_instance_stats", "run_spec"))
        with suppress(InputError):
            files.collect(by=by)
            read.add(name)
    assert len(read) == (27 if by == "folder" else 18)


# -- what is not read ---------------------------------------------------------------------------------------

STRANGE = {
    "bigcodebench/Qwen2.5-Coder-7B-Instruct--main--bigcodebench-hard-instruct--vllm-0-1-sanitized_calibrated_eval_results.json": (
        "results of BigCodeBench or EvalPlus"
    ),
    "bigcodebench/Qwen2.5-Coder-7B-Instruct--main--bigcodebench-hard-instruct--vllm-0-1-sanitized_calibrated_pass_at_k.json": (
        "totals of BigCodeBench"
    ),
    "deepeval/test_run_sample.json": "a test run of DeepEval",
    "evalplus/evalperf_cod_4_gpu_results.json": "results of EvalPlus",
    "openai_evals/us-tort-law-turbo.jsonl": "an event log of OpenAI Evals",
    "promptfoo/sample-export.json": "an export of promptfoo",
}


@pytest.mark.parametrize("name", STRANGE, ids=lambda name: name.partition("/")[0])
def test_formats_that_are_not_read(files: Files, name: str) -> None:
    take(files, name)
    holds(
        files.fault(),
        ["this format is not read: found ", STRANGE[name], "long table: model, question_id, outcome"],
    )


def test_a_matrix_without_names_of_questions(tmp_path: Path) -> None:
    """Items in rows, the first cell of the header empty: there are row numbers, and no names."""
    path = SAMPLES / "response_matrix" / "irt-on-bench_binary_matrix.csv"
    source = {"name": "m", "kind": "table", "responses": str(path)}
    study = config.load({"study": "s", "sources": [source], "claims": {"file": []}}, tmp_path)
    with pytest.raises(InputError) as caught:
        table.read(study.sources[0], study)
    holds(str(caught.value), ["row 1, column 1: a column has no name", "Name it or drop it"])
