"""Readers of raw results: fixtures typed from the formats' descriptions, and everything that can be wrong."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmirt import config, matrix, outcomes, sources
from benchmirt.errors import InputError
from benchmirt.files import read_json
from benchmirt.sources import folders

Row = dict[str, Any]
Cells = dict[str, tuple[int | None, str | None, int | None]]


# -- writing what upstream writes ---------------------------------------------------------------------------


def bbh_row(doc_id: int, score: Any = 1.0, **more: Any) -> Row:
    """Make a row as lm-evaluation-harness logs it."""
    return {
        "doc_id": doc_id,
        "doc": {"input": f"True and False is {doc_id}", "target": "False"},
        "target": "False",
        "arguments": {
            "gen_args_0": {"arg_0": "Q: ...", "arg_1": " False"},
            "gen_args_1": {"arg_0": "Q: ...", "arg_1": " True"},
        },
        "resps": [[["-0.4", "False"]], [["-1.1", "False"]]],
        "filtered_resps": [["-0.4", "False"], ["-1.1", "False"]],
        "filter": "none",
        "metrics": ["acc_norm"],
        "doc_hash": f"a{doc_id}",
        "prompt_hash": "b",
        "target_hash": "c",
        "acc_norm": score,
        **more,
    }


def ifeval_row(doc_id: int, text: str, score: Any) -> Row:
    return {
        "doc_id": doc_id,
        "doc": {"key": doc_id, "prompt": f"p{doc_id}", "instruction_id_list": ["x"]},
        "resps": [[text]],
        "filtered_resps": [text],
        "prompt_level_strict_acc": score,
        "inst_level_strict_acc": [bool(score)],
    }


def math_row(doc_id: int, text: str, score: Any) -> Row:
    return {
        "doc_id": doc_id,
        "doc": {"problem": f"m{doc_id}", "type": "Algebra", "level": "Level 5", "answer": "1"},
        "resps": [[text]],
        "filtered_resps": [text],
        "doc_hash": f"h{doc_id}",
        "exact_match": score,
        "exact_match_original": score,
    }


def mmlu_row(doc_id: int, options: Sequence[str] = ("a", "b", "c"), score: Any = 1, **more: Any) -> Row:
    doc = {"question": f"q{doc_id}", "options": list(options), "category": "law", "src": "x"}
    return {
        "doc_id": doc_id,
        "doc": doc,
        "filtered_resps": [["-1.0", "False"] for _ in options],
        "doc_hash": f"{doc_id}{doc}",
        "acc": score,
        **more,
    }


class Raw:
    """A study of raw sources below a folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.out = home / "out"

    def details(
        self,
        model: str,
        task: str,
        rows: Sequence[Row],
        *,
        run: str = "latest",
        name: str = "0000.parquet",
        suffix: str = "-details",
    ) -> Path:
        path = self.home / "lb" / f"{model}{suffix}" / f"{model}__leaderboard_{task}" / run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
        return path

    def results(self, model: str, content: Any, name: str = "all.json") -> Path:
        path = self.home / "se" / model / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def study(
        self, kind: str = "leaderboard", source: Mapping[str, Any] | None = None, **keys: Any
    ) -> config.Study:
        folder = "lb" if kind == "leaderboard" else "se"
        raw = {"study": "s", "sources": [{"name": "raw", "kind": kind, "folder": folder, **(source or {})}]}
        small = {"claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}
        return config.load({**raw, **small, **keys}, self.home)

    def collect(self, kind: str = "leaderboard", **keys: Any) -> list[Path]:
        study = self.study(kind, **keys)
        shards = []
        for batch in sources.plan(study.sources[0], study):
            made = sources.collect(study.sources[0], study, self.out, batch.name)
            assert {path.parent for path in made} == {self.out / batch.name}
            own = [self.out / batch.name / f"{shard}.parquet" for shard in batch.shards]
            assert set(own) == {
                path for path in made if path.name.startswith("shard") and path.suffix == ".parquet"
            }
            shards += own
        return shards

    def cells(self, kind: str = "leaderboard", model: str = "o__m", **keys: Any) -> Cells:
        frame = pd.concat([pd.read_parquet(shard) for shard in self.collect(kind, **keys)])
        own = frame[frame["model"] == model].astype(object).where(frame.notna(), None)
        return {
            row.question_id: (row.outcome, row.reason, row.published) for row in own.itertuples(index=False)
        }

    def fault(self, kind: str = "leaderboard", **keys: Any) -> str:
        with pytest.raises(InputError) as caught:
            self.collect(kind, **keys)
        assert not self.out.exists(), "nothing is written when a file is wrong"
        message = str(caught.value)
        assert "\n" not in message
        return message

    def manifest(self) -> dict[str, Any]:
        (path,) = self.out.glob("*/*.manifests.json")
        return read_json(path)[0]

    def items(self) -> pd.DataFrame:
        (path,) = self.out.glob("*/items.parquet")
        return pd.read_parquet(path).set_index("question_id")


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path)


# -- leaderboard: what is read ------------------------------------------------------------------------------


def test_rows_as_the_harness_logs_them(raw: Raw) -> None:
    raw.details("o__m", "bbh_boolean_expressions", [bbh_row(0), bbh_row(1, 0.0)])
    raw.details("o__m", "ifeval", [ifeval_row(0, "text", True), ifeval_row(1, "", False)])
    raw.details("o__m", "math_algebra_hard", [math_row(0, "4", "1"), math_row(1, "<think>so", "0")])
    raw.details("o__m", "mmlu_pro", [mmlu_row(71), mmlu_row(72), mmlu_row(73, "abcd", 0)])
    assert raw.cells() == {
        "bbh__boolean_expressions_0": (1, None, 1),
        "bbh__boolean_expressions_1": (0, None, 0),
        "ifeval__0": (1, None, 1),
        "ifeval__1": (None, "empty", 0),
        "math__algebra_hard_0": (1, None, 1),
        "math__algebra_hard_1": (None, "truncated", 0),
        "mmlu_pro__71": (1, None, 1),
        "mmlu_pro__73": (0, None, 0),
    }
    items = raw.items()
    assert list(items.index) == [
        "bbh__boolean_expressions_0",
        "bbh__boolean_expressions_1",
        "ifeval__0",
        "ifeval__1",
        "math__algebra_hard_0",
        "math__algebra_hard_1",
        "mmlu_pro__71",
        "mmlu_pro__73",
    ]
    facts = items.loc["mmlu_pro__73"]
    assert (facts["benchmark"], facts["category"], facts["subcategory_one"]) == (
        "mmlu-pro",
        "reasoning",
        "law",
    )
    assert facts["options"] == 4
    assert facts["question_type"] == "multiple choice logprobs"
    assert facts["scored_as"] == "answer correct"
    assert items.loc["bbh__boolean_expressions_0", "testlet"] == "bbh/boolean_expressions"
    assert items.loc["bbh__boolean_expressions_0", "options"] == 2
    assert items.loc["math__algebra_hard_0", "subcategory_one"] == "Algebra"
    assert items["options"].isna().sum() == 4
    assert items["content_hash"].is_unique
    manifest = raw.manifest()
    assert manifest["failures_known"] is True
    assert manifest["simulated"] is False
    assert manifest["tasks"]["leaderboard_mmlu_pro"] == 3
    assert manifest["read"] == {"rows": 9, "left_out": 1, "repeated": 0}
    assert manifest["counts"] == {
        "items": 8,
        "observed": 6,
        "passed": 4,
        "missing": {"empty": 1, "truncated": 1},
    }
    assert len(manifest["files"]) == 4
    assert all(len(file["sha256"]) == 64 for file in manifest["files"].values())


@pytest.mark.parametrize("newer", [True, False])
def test_older_files_lack_some_columns(raw: Raw, newer: bool) -> None:
    rows = [bbh_row(0), bbh_row(1, 0.0)]
    if not newer:
        rows = [
            {key: value for key, value in row.items() if key not in ("filter", "metrics", "doc_hash")}
            for row in rows
        ]
    raw.details("o__m", "bbh_navigate", rows)
    assert [cell[0] for cell in raw.cells().values()] == [1, 0]
    assert raw.items()["content_hash"].notna().all()


def test_mixed_numbers_and_gaps_in_one_column(raw: Raw) -> None:
    raw.details(
        "o__m", "bbh_navigate", [bbh_row(0, 1.0), bbh_row(1, None), bbh_row(2, float("nan")), bbh_row(3, 0.5)]
    )
    assert list(raw.cells().values()) == [
        *((1, None, 1), (None, "unparsed", 0), (None, "unparsed", 0), (None, "no_threshold", 0))
    ]


def test_the_run_called_latest_counts_or_else_the_newest(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0, 0)], run="2024_06_16T15_17_05.123456")
    raw.details("o__m", "bbh_navigate", [bbh_row(0, 1)])
    raw.details("o__m", "bbh_navigate", [bbh_row(0, 0)], run="2025_06_16T15_17_05.123456")
    raw.details("o__m", "bbh_snarks", [bbh_row(0, 0)], run="2024_06_16T15_17_05.123456")
    raw.details("o__m", "bbh_snarks", [bbh_row(0, 1)], run="2024_10_16T15_17_05.123456")
    raw.details("o__m", "bbh_snarks", [bbh_row(0, 0)], run="2023_06_16T15_17_05.123456")
    assert [cell[0] for cell in raw.cells().values()] == [1, 1]
    assert raw.manifest()["runs"] == {"leaderboard_bbh_snarks": "2024_10_16T15_17_05.123456"}


def test_subsets_that_no_rule_scores_are_not_even_opened(raw: Raw) -> None:
    gpqa = {"doc_id": 0, "doc": {"Question": "q", "High-level domain": "Physics"}, "acc_norm": 1}
    raw.details("o__m", "gpqa_extended", [gpqa])
    for name in ("gpqa_main", "gpqa_diamond"):
        raw.details("o__m", name, [gpqa]).write_bytes(b"damaged")
    assert raw.cells() == {"gpqa__extended_0": (1, None, 1)}
    assert raw.items().loc["gpqa__extended_0", "subcategory_one"] == "Physics"
    assert raw.manifest()["tasks_without_rule"] == ["leaderboard_gpqa_diamond", "leaderboard_gpqa_main"]


def test_a_run_in_several_files(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0), bbh_row(1)])
    raw.details("o__m", "bbh_navigate", [bbh_row(2, "1"), bbh_row(3, "0")], name="0001.parquet")
    assert [cell[0] for cell in raw.cells().values()] == [1, 1, 1, 0]


def test_repeated_rows_must_agree(raw: Raw) -> None:
    rows = [bbh_row(0, 1.0), bbh_row(1, 1.0), bbh_row(2, None), bbh_row(3, None), bbh_row(0, 1.0)]
    rows += [bbh_row(1, 0.0), bbh_row(2, 0.0), bbh_row(3, None)]
    raw.details("o__m", "bbh_navigate", rows)
    assert list(raw.cells().values()) == [
        (1, None, 1),
        (None, "conflict", None),
        (0, None, 0),
        (None, "unparsed", 0),
    ]
    assert raw.manifest()["read"]["repeated"] == 4


def test_repeated_rows_about_another_question_are_a_conflict(raw: Raw) -> None:
    raw.details("o__m", "mmlu_pro", [mmlu_row(0, "abc"), mmlu_row(0, "abcd")])
    assert list(raw.cells().values()) == [(None, "conflict", None)]


def test_folders_of_models_and_everything_beside_them(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    raw.details("o__n-details", "bbh_navigate", [bbh_row(0)])
    raw.details("o__plain", "bbh_navigate", [bbh_row(0)], suffix="")
    home = raw.home / "lb"
    (home / ".cache" / "huggingface").mkdir(parents=True)
    (home / "README.md").write_text("x")
    (home / "o__m-details" / ".gitattributes").write_text("x")
    (home / "o__m-details" / "README.md").write_text("x")
    (home / "o__m-details" / "o__m__leaderboard_bbh_navigate" / "latest" / "README.md").write_text("x")
    study = raw.study()
    assert folders.model_folders(study.sources[0], study) == {
        "o__m": "o__m-details",
        "o__n-details": "o__n-details-details",
        "o__plain": "o__plain",
    }
    assert len(raw.collect()) == 3


def test_names_that_are_no_paths(raw: Raw) -> None:
    """Names may hold anything that a folder's name may; files are named by hashes."""
    names = ["o__..", "o__m n@{x}", "o__$(rm)", "o__é", "-rf", "o__..%2Fup"]
    for name in names:
        raw.details(name, "bbh_navigate", [bbh_row(0)])
    shards = raw.collect()
    assert {path.parents[1] for path in shards} == {raw.out}
    found = [manifest["model"] for shard in shards for manifest in outcomes.manifests(shard)]
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("results", [None, "<results>"])
def test_jobs_of_many_models_name_folders(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, results: str | None
) -> None:
    for model in ("a__x", "a__y"):
        raw.details(model, "bbh_navigate", [bbh_row(0)])
    study = raw.study()
    (few,) = sources.plan(study.sources[0], study, results)
    assert few.inputs[:2] == tuple(
        f"lb/{model}-details/{model}__leaderboard_bbh_navigate/latest/0000.parquet"
        for model in ("a__x", "a__y")
    )
    monkeypatch.setattr(folders, "FILES_UP_TO", 1)
    (many,) = sources.plan(study.sources[0], study, results)
    assert many.inputs == ("lb/a__x-details", "lb/a__y-details", *few.inputs[2:])
    assert (many.name, many.models, many.shards) == (few.name, few.models, few.shards)
    assert len(raw.collect()) == 2


def test_names_that_snakemake_would_fill_in_are_refused_for_it(raw: Raw) -> None:
    raw.details("o__m{x}", "bbh_navigate", [bbh_row(0)])
    study = raw.study()
    with pytest.raises(InputError) as caught:
        sources.plan(study.sources[0], study, results="<results>")
    assert str(caught.value) == (
        'lb: a name holds braces, which Snakemake fills in: found "o__m{x}-details". Rename it.'
    )


def test_items_whose_names_cannot_be_seen_are_refused(raw: Raw) -> None:
    raw.results("m", {"xstest:default": [xstest(0), {**xstest(1), "id": "homonyms/\u202e1"}]})
    with pytest.raises(InputError) as caught:
        raw.collect("safety-eval")
    text = str(caught.value)
    assert "se/m/" in text
    assert '"xstest:default", row 2, field "' in text
    assert "the name of the item holds a character that cannot be seen: found U+202E" in text


def test_linked_folders_are_read(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    away = raw.home / "away"
    shutil.move(raw.home / "lb" / "o__m-details", away)
    (raw.home / "lb" / "o__m-details").symlink_to(away)
    assert raw.cells() == {"bbh__navigate_0": (1, None, 1)}


# -- leaderboard: what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2], ["not a Parquet file, or it is damaged"]),
        (lambda data: data[:-1], ["damaged"]),
        (lambda data: b"", ["the file is empty"]),
        (lambda data: b"<html>", ["damaged"]),
        (
            lambda data: b"version https://git-lfs.github.com/spec/v1\n",
            ["Git LFS pointer", "Run git lfs pull"],
        ),
        (lambda data: data[:40] + bytes(60) + data[100:], ["damaged"]),
    ],
)
def test_damaged_files(raw: Raw, damage: Callable[[bytes], bytes], words: list[str]) -> None:
    path = raw.details("o__m", "bbh_navigate", [bbh_row(number) for number in range(50)])
    path.write_bytes(damage(path.read_bytes()))
    message = raw.fault()
    assert message.startswith("lb/o__m-details/o__m__leaderboard_bbh_navigate/latest/0000.parquet")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"doc_id": 0, "acc": 1}],
            ['there is no column "acc_norm"', "found doc_id, acc", 'nearest is "acc"'],
        ),
        ([{"acc_norm": 1}], ['there is no column "doc_id"']),
        ([{"doc_id": None, "acc_norm": 1}], ['row 1, column "doc_id"', "found doc_id nothing"]),
        ([{"doc_id": 0, "acc_norm": 1}, {"doc_id": None, "acc_norm": 1}], ["row 2"]),
        ([{"doc_id": {"a": 0}, "acc_norm": 1}], ["row 1", "doc_id {'a': 0}"]),
    ],
)
def test_columns_that_are_wrong(raw: Raw, rows: list[Row], words: list[str]) -> None:
    raw.details("o__m", "bbh_navigate", rows)
    message = raw.fault()
    for word in words:
        assert word in message


def test_fields_of_items_of_another_type_are_not_there(raw: Raw) -> None:
    raw.details("o__m", "mmlu_pro", [{"doc_id": 0, "doc": "text", "filtered_resps": "x", "acc": 1}])
    assert raw.cells() == {"mmlu_pro__0": (1, None, 1)}
    assert raw.items().loc["mmlu_pro__0", ["subcategory_one", "options", "content_hash"]].isna().all()


def test_a_folder_with_the_details_of_another_model(raw: Raw) -> None:
    path = raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    path.parents[2].rename(raw.home / "lb" / "o__other-details")
    message = raw.fault()
    assert (
        "lb/o__other-details/o__m__leaderboard_bbh_navigate: the folder holds details of another model"
        in message
    )
    assert 'found "o__m"; expected "o__other"' in message


def test_folders_without_what_is_expected(raw: Raw) -> None:
    (raw.home / "lb").mkdir()
    assert "there is no folder of a model" in raw.fault()
    (raw.home / "lb" / "o__m-details").mkdir()
    assert "lb/o__m-details: there are no details of this model: found nothing" in raw.fault()
    (raw.home / "lb" / "o__m-details" / "samples.jsonl").write_text("{}")
    assert "found samples.jsonl; expected folders such as o__m__leaderboard_ifeval" in raw.fault()
    (raw.home / "lb" / "o__m-details" / "o__m__leaderboard_ifeval" / "latest").mkdir(parents=True)
    assert "there is no run with a parquet file" in raw.fault()


def test_a_model_with_tasks_that_no_rule_scores_only(raw: Raw) -> None:
    raw.details("o__m", "gpqa_main", [{"doc_id": 0}])
    message = raw.fault()
    assert "no row that a scoring rule scores" in message
    assert "leaderboard_gpqa_main" in message


def test_two_folders_of_one_model(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    raw.details("o__m", "bbh_navigate", [bbh_row(0)], suffix="")
    assert 'two folders hold the same model: found "o__m" and "o__m-details"' in raw.fault()


@pytest.mark.parametrize("name", ["o__m\n", "o__\x1b[31m", "o__m\x7f"])
def test_names_with_control_characters(raw: Raw, name: str) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    (raw.home / "lb" / name).mkdir()
    message = raw.fault()
    assert "control characters" in message
    assert message.isprintable()


def test_names_that_are_not_utf8(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)])
    try:
        os.mkdir(os.fsencode(raw.home / "lb") + b"/o__\xff")
    except OSError:
        pytest.skip("the file system takes UTF-8 only")
    assert "not UTF-8" in raw.fault()


def test_simulated_files_must_be_called_so(raw: Raw) -> None:
    raw.details("o__m", "bbh_navigate", [bbh_row(0)], name="simulated_0000.parquet")
    assert "these files are simulated, but nothing would say so" in raw.fault()
    (raw.home / "lb").rename(raw.home / "simulated_lb")
    study = raw.study(source={"folder": "simulated_lb"})
    assert study.simulated
    sources.collect(study.sources[0], study, raw.out, "0of1")
    assert raw.manifest()["simulated"] is True


# -- safety-eval: what is read ------------------------------------------------------------------------------


def xstest(number: int, refusal: Any = "compliance", **more: Any) -> Row:
    return {
        "id": f"xstest/{number}",
        "prompt": f"prompt {number}",
        "type": "homonyms",
        "response": "text",
        "response_refusal": refusal,
        "is_parsing_error": False,
        **more,
    }


SAFETY: dict[str, list[Row]] = {
    "xstest:default": [xstest(3)],
    "wildjailbreak:harmful": [
        {
            "id": "wildjailbreak/harmful/1",
            "instruction": "i",
            "response": "r",
            "response_refusal": "refusal",
            "response_harmfulness": "unharmful",
            "is_parsing_error": False,
        }
    ],
    "do_anything_now:default": [
        {"id": "do_anything_now/2", "source": "ChatGPT", "instruction": "i", "response": ""}
    ],
    "trustllm_jailbreaktrigger:default": [
        {
            "id": "trustllm_jailbreaktrigger/5",
            "label": ["cot"],
            "instruction": "i",
            "response": "r",
            "response_refusal": None,
            "is_parsing_error": True,
        }
    ],
    "wildguardtest:default": [
        {
            "id": "wildguardtest/9",
            "prompt": "p",
            "response_model": "m",
            "subcategory": "cyberattack",
            "prompt_type": "vanilla",
            "response": "r",
            "response_harmfulness": "harmful",
        }
    ],
    "harmbench:default": [
        {
            "id": "harmbench/7",
            "BehaviorID": "b",
            "Behavior": "do",
            "ContextString": None,
            "FunctionalCategory": "standard",
            "SemanticCategory": "illegal",
            "response": "r",
            "response_harmfulness": "unharmful",
        }
    ],
    "toxigen:tiny": [
        {"id": "toxigen/physical_diability/8", "input": "i", "output": "o", "classification": 0}
    ],
    "bbq:default": [
        {
            "id": "bbq/Age/11",
            "formatted_question": "q",
            "question_polarity": "neg",
            "context_condition": "ambig",
            "category": "Age",
            "response": "r",
            "analysis": {"correct": True},
        }
    ],
    "wmdp:default": [
        {
            "id": "wmdp/1",
            "category": "wmdp-bio",
            "formatted_question": "q",
            "answer_choice": None,
            "gold_label": "A",
            "response": "r",
        }
    ],
    "strongreject:logprobs": [
        {
            "id": "strongreject/4",
            "category": "Violence",
            "forbidden_prompt": "f",
            "jailbreak": "none",
            "jailbroken_prompt": "j",
            "response": "r",
            "response_score": 0.5,
            "is_parsing_error": False,
        },
        {"id": "Best_0", "category": "Violence", "forbidden_prompt": "f", "response_score": 0.9},
    ],
}
SAFETY_CELLS: Cells = {
    "xstest__homonyms_3": (1, None, 1),
    "wildjailbreak__response_refusal_1": (1, None, 1),
    "do_anything_now__response_refusal_2": (None, "empty", 0),
    "trustllm_jailbreaktrigger__['cot']_5": (None, "judge_failed", 0),
    "wildguardtest__cyberattack_9": (0, None, 0),
    "harmbench__standard_7": (1, None, 1),
    "toxigen__classification_8": (1, None, 1),
    "bbq__Age_11": (1, None, 1),
    "wmdp__wmdp-bio_1": (None, "unparsed", 1),
    "strongreject__Violence_4": (1, None, 1),
}


@pytest.mark.parametrize("layout", ["all", "per task", "per task without ending", "both"])
def test_rows_of_every_task(raw: Raw, layout: str) -> None:
    if layout in ("all", "both"):
        raw.results("o__m", SAFETY)
    if layout != "all":
        ending = "" if layout == "per task without ending" else ".json"
        for task, rows in SAFETY.items():
            raw.results("o__m", {task: rows}, f"results.{task.partition(':')[0]}{ending}")
    raw.results("o__m", {"xstest": {"overall_accuracy": 1.0}}, "metrics.json")
    assert raw.cells("safety-eval") == SAFETY_CELLS
    items = raw.items()
    assert len(items) == 10
    assert items.loc["wmdp__wmdp-bio_1", "options"] == 4
    assert items["inverted"].sum() == 1
    assert items.loc["wmdp__wmdp-bio_1", "inverted"]
    assert items.loc["bbq__Age_11", "options"] == 3
    assert items.loc["bbq__Age_11", "testlet"] == "bbq/2"
    told = items.loc["bbq__Age_11", ["subcategory_one", "subcategory_two", "subcategory_three"]]
    assert told.tolist() == ["ambig", "Age", "neg"]
    assert items.loc["toxigen__classification_8", "subcategory_one"] == "physical_diability"
    assert items.loc["trustllm_jailbreaktrigger__['cot']_5", "subcategory_one"] == "cot"
    assert items.loc["xstest__homonyms_3", "question_type"] == "generation - benign"
    manifest = raw.manifest()
    assert manifest["tasks"]["strongreject:logprobs"] == (2 if layout != "both" else 4)
    assert manifest["read"]["repeated"] == (0 if layout != "both" else 10)


def test_reasoning_models_and_tasks_of_others(raw: Raw) -> None:
    content = {
        "xstest:wildguard_reasoning_answer": [xstest(3, "refusal")],
        "toxigen:full": [{"id": "toxigen/asian/3", "classification": 1}],
        "alpaca_eval:default": {"anything": 1},
    }
    raw.results("o__m", content)
    assert raw.cells("safety-eval") == {"xstest__homonyms_3": (0, None, 0)}
    assert raw.manifest()["tasks_without_rule"] == ["alpaca_eval:default", "toxigen:full"]


def test_the_log_says_what_was_found(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    raw.results("a", {"xstest:default": [xstest(1), xstest(2, None), xstest(3, None)]})
    raw.results("b", {"xstest:default": [xstest(1)], "alpaca_eval:default": []})
    with caplog.at_level(logging.INFO):
        raw.collect("safety-eval")
    assert "raw: 2 models, 3 items; 2 outcomes, missing: judge_failed 2" in caplog.text
    assert "raw: tasks without a scoring rule: alpaca_eval:default (1 of 2 models)" in caplog.text


def test_a_task_whose_judge_did_not_run_is_told(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    """The published policy counts each of its rows as a 0, which looks like an unsafe model."""
    rows = [{key: value for key, value in xstest(n).items() if key != "response_refusal"} for n in range(2)]
    raw.results("o__m", {"xstest:default": rows, "bbq:default": SAFETY["bbq:default"]})
    with caplog.at_level(logging.WARNING):
        cells = raw.cells("safety-eval")
    assert cells["xstest__homonyms_0"] == (None, "judge_failed", 0)
    told = [one.message for one in caplog.records if "did its judge run?" in one.message]
    assert told == [
        'se/o__m/all.json: no row of "xstest:default" has the field "response_refusal", which decides here, '
        "so that none has an outcome; did its judge run?"
    ]


def test_repeated_ids(raw: Raw) -> None:
    rows = [xstest(1), xstest(2), xstest(3), xstest(1), xstest(2, "refusal")]
    rows.append({**xstest(3, None), "is_parsing_error": True})
    raw.results("o__m", {"xstest:default": rows})
    assert list(raw.cells("safety-eval").values()) == [(1, None, 1), (None, "conflict", None), (1, None, 1)]


def test_what_python_and_windows_write(raw: Raw) -> None:
    row = {**SAFETY["strongreject:logprobs"][0], "response_score": float("nan")}
    text = json.dumps({"strongreject:logprobs": [row]})
    assert "NaN" in text
    raw.results("o__m", b"\xef\xbb\xbf" + text.replace(", ", ",\r\n").encode())
    assert list(raw.cells("safety-eval").values()) == [(None, "judge_failed", 0)]


# -- safety-eval: what is wrong -----------------------------------------------------------------------------

WHOLE = json.dumps({"xstest:default": [xstest(3), xstest(4)]}).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["the file is empty"]),
        (WHOLE[:-1], ["not JSON, or it was cut off", "line 1"]),
        (WHOLE[: len(WHOLE) // 2], ["cut off"]),
        (WHOLE + WHOLE, ["Extra data"]),
        (b"\xff\xfe{}", ["not UTF-8", "the byte 0xff"]),
        (b"[" * 100_000, ["nested too deeply"]),
        (b'{"xstest:default": [{"id": ' + b"9" * 5000 + b"}]}", ["not JSON", "integer string conversion"]),
        ([xstest(3)], ["found a list", 'expected one object {"task:config": [rows]}']),
        ("text", ["found a text"]),
        ({"xstest:default": {"rows": []}}, ['"xstest:default"', "found an object", "a list of rows"]),
        ({"xstest:default": [xstest(3), "text"]}, ['"xstest:default", row 2', "found a text"]),
        ({"xstest:default": [xstest(3), {**xstest(4), "id": None}]}, ['row 2, field "type"', "id nothing"]),
        ({"xstest:default": [{**xstest(4), "id": "xstest/"}]}, ['id "xstest/"']),
        ({"xstest:default": [{**xstest(4), "type": {"a": 1}}]}, ["type {'a': 1}"]),
        ({"xstest:default": [{**xstest(4), "type": "\ud800"}]}, ["cannot be written as UTF-8"]),
        ({"xtest:default": [xstest(3)]}, ["no task in here has a scoring rule", 'Did you mean "xstest"?']),
        ({}, ["no task in here has a scoring rule", "found nothing"]),
        ({"xstest:default": []}, ["no row that a scoring rule scores"]),
        (b'{"xstest:default": [], "xstest:default": []}', ["a key stands twice", '"xstest:default" twice']),
        (b'{"xstest:default": [{"id": "xstest/1", "id": "xstest/2"}]}', ['"id" twice']),
    ],
)
def test_results_that_are_wrong(raw: Raw, content: Any, words: list[str]) -> None:
    raw.results("o__m", content)
    message = raw.fault("safety-eval")
    assert message.startswith("se/o__m")
    for word in words:
        assert word in message
    assert "prompt 3" not in message


def test_folders_without_results(raw: Raw) -> None:
    raw.results("o__m", {}, "metrics.json")
    message = raw.fault("safety-eval")
    assert "se/o__m: there are no results of this model: found metrics.json" in message
    raw.home.joinpath("se", "o__m", "all.json").symlink_to("nowhere")
    assert "there are no results of this model" in raw.fault("safety-eval")


# -- models, jobs, shards -----------------------------------------------------------------------------------


def test_facts_of_models(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    for model in ("a__x", "a__y"):
        raw.results(model, {"xstest:default": [xstest(3)]})
    (raw.home / "m.csv").write_text("name,lineage,size_b,reasoning\na__x,llama-3,8,true\nother,z,1,false\n")
    with caplog.at_level(logging.WARNING):
        raw.collect("safety-eval", source={"models": "m.csv", "model_columns": {"model": "name"}})
    assert "m.csv: 1 of 2 models have no row" in caplog.text
    (path,) = raw.out.glob("*/models.parquet")
    facts = pd.read_parquet(path).set_index("model")
    assert facts.loc["a__x", ["lineage", "size_b", "reasoning"]].tolist() == ["llama-3", 8.0, True]
    assert facts.loc["a__y"].isna().all()
    assert facts["fact_row"].fillna(-1).tolist() == [2, -1]


def test_a_model_twice_in_the_facts(raw: Raw) -> None:
    raw.results("a__x", {"xstest:default": [xstest(3)]})
    (raw.home / "m.csv").write_text("model\na__x\na__x\n")
    with pytest.raises(InputError, match='row 3, column "model": a model has two rows'):
        raw.collect("safety-eval", source={"models": "m.csv"})


def test_excluded_models_are_not_read(raw: Raw) -> None:
    raw.results("a__x", {"xstest:default": [xstest(3)]})
    raw.results("a__bad", b"damaged")
    assert len(raw.collect("safety-eval", models={"exclude": ["a__bad"]})) == 1
    assert len(raw.collect("safety-eval", models={"include": ["a__x"]})) == 1
    study = raw.study("safety-eval", models={"include": ["a__z"]})
    with pytest.raises(InputError, match="leave no model of this source"):
        sources.plan(study.sources[0], study)


def test_what_is_wrong_in_one_of_many_folders_is_told_by_the_job_that_reads_it(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "FILES_UP_TO", 8)
    for number in range(9):
        raw.results(f"a__{number}", {"xstest:default": [xstest(3)]})
    (raw.home / "se" / "a__7" / "all.json").rename(raw.home / "se" / "a__7" / "some.json")
    study = raw.study("safety-eval")
    jobs = sources.plan(study.sources[0], study)
    (own,) = (job for job in jobs if "a__7" in job.models)
    with pytest.raises(InputError, match=r"se/a__7: there are no results of this model: found some\.json"):
        sources.collect(study.sources[0], study, raw.out, own.name)


def test_a_complete_study_needs_the_folder_of_every_model(raw: Raw) -> None:
    for name in ("a__x", "a__y"):
        raw.results(name, {"xstest:default": [xstest(3)]})
    (raw.home / "m.csv").write_text("model\na__x\na__y\na__z\na__w\n")
    source = {"models": "m.csv"}
    fault = (
        r"se: 2 of the 4 models of m.csv have no folder in here: looked for a__z, a__w\. Fetch their results"
    )
    study = raw.study("safety-eval", source=source, published_size=True)
    with pytest.raises(InputError, match=fault):
        sources.plan(study.sources[0], study)
    for keys in ({"models": {"exclude": ["a__z", "a__w"]}, "published_size": True}, {}):
        study = raw.study("safety-eval", source=source, **keys)
        assert len(sources.plan(study.sources[0], study)[0].models) == 2


def test_tasks_that_a_model_lacks_are_told(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    wmdp = {
        "id": "wmdp/3",
        "category": "wmdp-bio",
        "formatted_question": "q",
        "answer_choice": "A",
        "gold_label": "B",
    }
    raw.results("a__x", {"xstest:default": [xstest(3)]})
    raw.results("a__y", {"xstest:reasoning": [xstest(3)], "wmdp:default": [wmdp]})
    raw.collect("safety-eval")
    told = [record.getMessage() for record in caplog.records if "lack tasks" in record.getMessage()]
    assert told == ["raw: 1 of 2 models lack tasks that others have, so that these are missing: a__x: wmdp"]


MODELS = st.sets(st.text("abcdefgh/_-. é", min_size=1, max_size=12), min_size=1, max_size=300)


@given(MODELS)
def test_every_model_is_in_one_shard_of_one_job(models: set[str]) -> None:
    jobs = folders.batches(sorted(models))
    assert folders.batches(sorted(models, reverse=True)) == jobs
    shards = [(shard, members) for own in jobs.values() for shard, members in own.items()]
    assert sorted(model for _, members in shards for model in members) == sorted(models)
    assert len({shard for shard, _ in shards}) == len(shards)
    if len(models) <= folders.ONE_A_SHARD:
        assert all(len(members) == 1 for _, members in shards)


@given(MODELS, st.text("xyz", min_size=13, max_size=14))
def test_a_new_model_changes_no_other_shard(models: set[str], new: str) -> None:
    def homes(of: set[str]) -> dict[str, tuple[str, str]]:
        return {
            model: (job, shard)
            for job, shards in folders.batches(sorted(of)).items()
            for shard, members in shards.items()
            for model in members
        }

    before, after = homes(models), homes(models | {new})
    same_shape = folders._bits(len(models)) == folders._bits(len(models) + 1)
    if same_shape and len(models) != folders.ONE_A_SHARD:
        assert {model: after[model] for model in models} == before


def test_shards_hold_about_50_models() -> None:
    for count in (1, 24, 30, 100, 101, 250, 1000, 4500):
        jobs = folders.batches([f"org__model-{number}" for number in range(count)])
        sizes = [sum(map(len, shards.values())) for shards in jobs.values()]
        assert sum(sizes) == count
        assert np.mean(sizes) <= 72
        if count > 100:
            assert np.mean(sizes) >= 34
            assert all(len(shards) == 1 for shards in jobs.values())


def test_a_new_model_leaves_the_files_of_others_as_they_are(raw: Raw) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in raw.out.rglob("shard*")}

    for model in ("a", "b", "c"):
        raw.results(model, {"xstest:default": [xstest(number) for number in range(5)]})
    raw.collect("safety-eval")
    before = content()
    assert len(before) == 6
    raw.results("aa", {"xstest:default": [xstest(number) for number in range(7)]})
    raw.collect("safety-eval")
    after = content()
    assert len(after) == 8
    assert {name: after[name] for name in before} == before


def test_many_models_share_shards_and_make_the_same_matrix(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    names = [f"org__m{number}" for number in range(12)]
    for name in names:
        rows = [xstest(n, ["refusal", "compliance"][rng.integers(2)]) for n in rng.permutation(20)[:15]]
        raw.results(name, {"xstest:default": rows})
    study = raw.study("safety-eval", filter={"min_observed": 1})

    def built(name: str) -> tuple[pd.DataFrame, int]:
        raw.out = raw.home / name
        shards = raw.collect("safety-eval", filter={"min_observed": 1})
        matrix.build(shards, study, "honest", raw.home / f"{name}_matrix")
        return pd.read_parquet(raw.home / f"{name}_matrix" / "responses.parquet"), len(shards)

    alone, count = built("alone")
    assert count == 12
    monkeypatch.setattr(folders, "ONE_A_SHARD", 5)
    monkeypatch.setattr(folders, "MODELS_A_JOB", 3)
    shared, fewer = built("shared")
    assert fewer <= 4
    pd.testing.assert_frame_equal(alone, shared)
    assert list(alone.columns[1:]) == sorted(names)
    assert list(alone["question_id"]) == [f"xstest__homonyms_{number}" for number in range(20)]


# -- into the matrix ----------------------------------------------------------------------------------------


def responses(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "responses.parquet").set_index("question_id")


def test_a_task_that_was_not_run_is_not_run(raw: Raw) -> None:
    for model in ("a", "b", "c"):
        raw.details(model, "bbh_navigate", [bbh_row(0, model == "a"), bbh_row(1, model != "a")])
    raw.details("a", "bbh_snarks", [bbh_row(0, 1)])
    raw.details("b", "bbh_snarks", [bbh_row(0, 0)])
    study = raw.study(filter={"min_observed": 1})
    matrix.build(raw.collect(), study, "honest", raw.home / "m")
    coverage = pd.read_csv(raw.home / "m" / "coverage.csv").set_index("model")
    assert coverage["not_run"].to_dict() == {"a": 0, "b": 0, "c": 1}
    assert coverage["items"].tolist() == [3, 3, 3]
    summary = read_json(raw.home / "m" / "summary.json")
    assert summary["failures_known"] is True
    files = summary["sources"][0]["files"]
    assert files["5 files of 3 models"]["path"] == "lb"
    assert files["scoring rules"]["path"] == "workflow/resources/scoring.yaml"


def test_models_that_were_asked_something_else(raw: Raw, caplog: pytest.LogCaptureFixture) -> None:
    """Honest: the commonest question counts. Published: joined by name, as the published study did."""
    for model, options in (("a", "abc"), ("b", "abc"), ("c", "abcd"), ("d", "abc")):
        raw.details(
            model,
            "mmlu_pro",
            [mmlu_row(0, options, int(model in "ac")), mmlu_row(1, "ab", int(model in "ab"))],
        )
    study = raw.study(filter={"min_observed": 1})
    shards = raw.collect()
    items = pd.concat([pd.read_parquet(path) for path in raw.out.glob("*/items.parquet")])
    assert (items["question_id"] == "mmlu_pro__0").sum() == 2
    with caplog.at_level(logging.WARNING):
        for policy in matrix.POLICIES:
            matrix.build(shards, study, policy, raw.home / policy)
    assert "honest: edited options, 1 outcomes: missing" in caplog.text
    assert "published: edited options, 1 outcomes: joined by name" in caplog.text
    honest, published = responses(raw.home / "honest"), responses(raw.home / "published")
    assert honest.loc["mmlu_pro__0"].isna().tolist() == [False, False, True, False]
    assert published.loc["mmlu_pro__0"].tolist() == [1, 0, 1, 0]
    assert honest.loc["mmlu_pro__1"].tolist() == published.loc["mmlu_pro__1"].tolist()
    table = pd.read_parquet(raw.home / "honest" / "items.parquet").set_index("question_id")
    assert table.loc["mmlu_pro__0", "options"] == 3
    coverage = pd.read_csv(raw.home / "honest" / "coverage.csv").set_index("model")
    assert coverage["conflict"].to_dict() == {"a": 0, "b": 0, "c": 1, "d": 0}


def test_published_takes_what_each_row_says(raw: Raw) -> None:
    def rows(*answers: str | None) -> list[Row]:
        return [
            {"id": f"wmdp/{n}", "category": "c", "answer_choice": answer, "gold_label": "A", "response": "r"}
            for n, answer in enumerate(answers)
        ]

    raw.results("a", {"wmdp:default": rows("A", "B", None), "xstest:default": [xstest(0), xstest(1, None)]})
    raw.results(
        "b", {"wmdp:default": rows("B", "A", "A"), "xstest:default": [xstest(0, "refusal"), xstest(1)]}
    )
    study = raw.study("safety-eval", filter={"min_observed": 1})
    shards = raw.collect("safety-eval")
    for policy in matrix.POLICIES:
        matrix.build(shards, study, policy, raw.home / policy)
    honest, published = responses(raw.home / "honest"), responses(raw.home / "published")
    assert published["a"].to_dict() == {
        "wmdp__c_0": 0,
        "wmdp__c_1": 1,
        "wmdp__c_2": 1,
        "xstest__homonyms_0": 1,
        "xstest__homonyms_1": 0,
    }
    assert honest["a"].isna().tolist() == [False, False, True, False, True]
    assert read_json(raw.home / "published" / "summary.json")["cells_filled_by_policy"] == 2


def test_a_folder_that_lacks_a_shard(raw: Raw) -> None:
    for model in ("a", "b"):
        raw.results(model, {"xstest:default": [xstest(0), xstest(1, "refusal")]})
    shards = raw.collect("safety-eval")
    shards[0].unlink()
    with pytest.raises(InputError, match="0of1: this folder is incomplete"):
        matrix.build([shards[0].parent], raw.study("safety-eval"), "honest", raw.home / "m")


def test_a_model_without_any_grade(raw: Raw) -> None:
    raw.results("a", {"xstest:default": [xstest(0), xstest(1, "refusal")]})
    raw.results("b", {"xstest:default": [xstest(0, None), xstest(1, None)]})
    with pytest.raises(InputError) as caught:
        matrix.build(raw.collect("safety-eval"), raw.study("safety-eval"), "honest", raw.home / "m")
    assert str(caught.value).startswith(
        "se/b: this model has no outcome at all: found only rows that could not"
    )


def test_unknown_models_are_looked_for_in_the_folders_as_well(raw: Raw) -> None:
    for model in ("a__one", "a__two", "a__three"):
        raw.results(
            model, {"xstest:default": [xstest(0, "refusal"), xstest(1, ["refusal", None][model < "a__t"])]}
        )
    study = raw.study("safety-eval", models={"exclude": ["a__on"]})
    with pytest.raises(InputError, match=r'models\.exclude.*Did you mean "a__one"\?'):
        matrix.build(raw.collect("safety-eval"), study, "honest", raw.home / "m")


def test_two_sources_that_disagree(raw: Raw) -> None:
    for folder, answer in (("one", "refusal"), ("two", "compliance")):
        for model in ("a", "b"):
            path = raw.home / folder / model / "all.json"
            path.parent.mkdir(parents=True)
            rows = [xstest(0, "refusal"), xstest(1, answer if model == "b" else "refusal")]
            path.write_text(json.dumps({"xstest:default": rows}))
    raw_config = {
        "study": "s",
        "sources": [{"name": name, "kind": "safety-eval", "folder": name} for name in ("one", "two")],
        "claims": {"file": []},
    }
    study = config.load(raw_config, raw.home)
    shards = []
    for source in study.sources:
        (batch,) = sources.plan(source, study)
        sources.collect(source, study, raw.home / "o" / source.name, batch.name)
        shards.append(raw.home / "o" / source.name / batch.name)
    with pytest.raises(InputError) as caught:
        matrix.build(shards, study, "honest", raw.home / "m")
    assert str(caught.value) == (
        'two/b: "xstest__homonyms_1": two files disagree about "xstest__homonyms_1" and this model: '
        'found 1; expected 0, as in one/b, "xstest__homonyms_1". '
        "Correct one of the two files, rename the model in one if it was run twice, name the items apart if "
        "they are two questions, or say in joining.repeated_runs what counts."
    )


def test_nothing_heavy_is_imported_for_the_plan() -> None:
    import subprocess
    import sys

    heavy = ("jax", "pandas", "numpy", "pyarrow")
    code = f"import sys, benchmirt.sources; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_that_the_format_owners_own_package_writes(raw: Raw) -> None:
    """The leaderboard's data sets are converted to Parquet by Hugging Face's datasets."""
    datasets = pytest.importorskip("datasets")
    for task, rows in {
        "bbh_navigate": [bbh_row(0), bbh_row(1, 0.0)],
        "ifeval": [ifeval_row(0, "text", True), ifeval_row(1, "", False)],
        "mmlu_pro": [mmlu_row(1, "abc"), mmlu_row(2, "ab", 0)],
    }.items():
        path = raw.details("o__m", task, rows)
        datasets.Dataset.from_list(rows).to_parquet(str(path))
    assert [cell[:2] for cell in raw.cells().values()] == [
        (1, None),
        (0, None),
        (1, None),
        (None, "empty"),
        (1, None),
        (0, None),
    ]
    assert raw.items()["options"].fillna(0).tolist() == [2, 2, 0, 0, 3, 2]
