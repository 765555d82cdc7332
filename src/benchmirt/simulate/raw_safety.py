"""Write simulated outcomes as safety-eval results: JSON, one object ``{"task:config": [rows]}`` per file.

Layout: ``{org}__{model}/simulated_all.json``, or, for every fourth model, ``simulated_results.{task}.json`` per
task; beside them ``simulated_metrics.json`` with the headline figures. Reasoning models ran other configurations
(``harmbench:wildguard_reasoning_answer``). What is planted:

- rows with an empty response and no judge fields;
- rows of reasoning models whose response ends inside ``<think>``, without judge fields;
- rows whose judge failed: judge fields null and ``is_parsing_error`` true;
- BBQ rows without a verdict (``"correct": null``), WMDP rows without an answer (``"answer_choice": null``);
- StrongReject's summary rows (ids that begin with ``Best``), which are no items, and scores of exactly .5;
- rows written twice, with the same or with another judgement.

Texts are placeholders.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmirt import files
from benchmirt.simulate.layout import stream
from benchmirt.simulate.study import Simulated

__all__ = ["write"]

_PER_TASK_EVERY = 4
_HEADLINE = {
    "harmbench": "inverted_micro_asr_lower",
    "do_anything_now": "inverted_macro_asr",
    "trustllm_jailbreaktrigger": "inverted_macro_asr",
    "wildjailbreak": "inverted_macro_asr",
    "wildguardtest": "inverted_micro_harm_lower",
    "xstest": "overall_accuracy",
    "bbq": "accuracy",
    "strongreject": "inverted_asr",
    "toxigen": "safe_overall",
    "wmdp": "inverted_accuracy",
}
_CONFIG = {"strongreject": "logprobs", "toxigen": "tiny"}
_PLAIN = {"strongreject": "logprobs", "toxigen": "tiny", "bbq": "default", "wmdp": "default"}


def _config(task: str, thinks: bool) -> str:
    """Return the name of a task's configuration, ``task:config``."""
    name, _, part = task.partition(":")
    if not thinks:
        return f"{name}:{part or _CONFIG.get(name, 'default')}"
    if name in _PLAIN:
        return f"{name}:{_PLAIN[name]}_reasoning_answer"
    return f"{name}:{part + '_' if part else ''}wildguard_reasoning_answer"


@dataclass(frozen=True)
class _Task:
    """A task: the beginning of each row's JSON, and its possible ends.

    `ends` maps (kind of row, outcome) to an index into `texts`; kinds are 0 ordinary, 1 empty, 2 truncated,
    3 judge failed or unparsed. A row's variant (e.g. whether refusal is desired) chooses a set of ends.
    """

    name: str
    benchmark: str
    columns: np.ndarray
    starts: list[str]
    variant: np.ndarray
    best: list[str]
    best_of: np.ndarray


_RESPONSE = '"response": "simulated response"'
_EMPTY = '"response": ""}'
_CUT = '"response": "<think>simulated thoughts"}'
_KINDS = {"empty": 1, "truncated": 2, "judge_failed": 3, "unparsed": 3}


def _start(**fields: Any) -> str:
    """Return the beginning of a row, open for more fields."""
    return json.dumps(fields, ensure_ascii=False)[:-1] + ", "


def _starts(benchmark: str, items: pd.DataFrame) -> list[str]:
    """Return the beginnings of the rows of a task."""
    rows = []
    for number, group, testlet in zip(items["doc_id"], items["group"], items["testlet"], strict=True):
        prompt = f"simulated prompt {number}"
        row: dict[str, Any]
        if benchmark == "do_anything_now":
            row = {"id": f"{benchmark}/{number}", "source": group, "instruction": prompt}
        elif benchmark == "trustllm_jailbreaktrigger":
            row = {"id": f"{benchmark}/{number}", "label": [group], "instruction": prompt}
        elif benchmark == "wildjailbreak":
            row = {"id": f"{benchmark}/{group}/{number}", "instruction": prompt}
        elif benchmark == "wildguardtest":
            kind = "adversarial" if number % 2 else "vanilla"
            row = {
                "id": f"{benchmark}/{number}",
                "prompt": prompt,
                "prompt_type": kind,
                "subcategory": group,
                "response_model": "simulated",
            }
        elif benchmark == "harmbench":
            row = {
                "id": f"{benchmark}/{number}",
                "BehaviorID": f"simulated_behaviour_{number}",
                "Behavior": prompt,
                "FunctionalCategory": group,
                "SemanticCategory": "simulated",
                "ContextString": f"simulated context {number}" if group == "contextual" else "",
            }
        elif benchmark == "xstest":
            row = {"id": f"{benchmark}/{number}", "prompt": prompt, "type": group}
        elif benchmark == "bbq":
            row = {
                "id": f"{benchmark}/{group}/{number}",
                "category": group,
                "formatted_question": prompt,
                "question_polarity": "nonneg" if number // 2 % 2 else "neg",
                "context_condition": "disambig" if number % 2 else "ambig",
            }
        elif benchmark == "wmdp":
            row = {
                "id": f"{benchmark}/{number}",
                "category": group,
                "formatted_question": prompt,
                "gold_label": "ABCD"[number % 4],
            }
        elif benchmark == "strongreject":
            row = {
                "id": f"{benchmark}/{number}",
                "category": group,
                "forbidden_prompt": f"simulated forbidden prompt {testlet.partition('/')[2]}",
                "jailbreak": f"simulated_jailbreak_{number % 37}",
                "jailbroken_prompt": prompt,
            }
        else:  # toxigen
            row = {"id": f"{benchmark}/{group}/{number}", "input": prompt}
        rows.append(_start(**row))
    return rows


def _ends(benchmark: str) -> np.ndarray:
    """Return the ends of rows: (variants, kinds, outcomes) texts; StrongReject's ordinary ends are per score."""

    def judged(refusal: str | None, harm: str | None) -> str:
        fields = {
            "response_refusal": refusal,
            "response_harmfulness": harm,
            "is_parsing_error": refusal is None,
        }
        return f"{_RESPONSE}, {json.dumps(fields)[1:]}"

    refused, complied = judged("refusal", "unharmful"), judged("compliance", "harmful")
    answered, failed = judged("compliance", "unharmful"), judged(None, None)
    ordinary: list[tuple[str, str]]
    if benchmark in ("do_anything_now", "trustllm_jailbreaktrigger", "wildguardtest", "harmbench"):
        ordinary = [(complied, refused)]
    elif benchmark in ("wildjailbreak", "xstest"):  # variant 1: the prompt is harmless and should be answered
        ordinary = [(complied, refused), (judged("refusal", "unharmful"), answered)]
    elif benchmark == "bbq":
        ordinary = [
            (
                f'{_RESPONSE}, "analysis": {{"correct": false}}}}',
                f'{_RESPONSE}, "analysis": {{"correct": true}}}}',
            )
        ]
        failed = f'{_RESPONSE}, "analysis": {{"correct": null}}}}'
    elif benchmark == "wmdp":  # four variants: the right answer; 1 means that it was not given
        answer = [f'{_RESPONSE}, "answer_choice": "{letter}"}}' for letter in "ABCD"]
        ordinary = [(answer[gold], answer[(gold + 1) % 4]) for gold in range(4)]
        failed = f'{_RESPONSE}, "answer_choice": null}}'
    elif benchmark == "strongreject":
        ordinary = [("", "")]
        failed = f'{_RESPONSE}, "response_score": null, "is_parsing_error": true}}'
    else:
        ordinary = [
            (
                '"output": "simulated response", "classification": 1}',
                '"output": "simulated response", "classification": 0}',
            )
        ]
    ends = np.empty((len(ordinary), 4, 2), dtype=object)
    for variant, (zero, one) in enumerate(ordinary):
        ends[variant] = [[zero, one], [_EMPTY, _EMPTY], [_CUT, _CUT], [failed, failed]]
    return ends


def _variants(benchmark: str, items: pd.DataFrame) -> np.ndarray:
    """Return the variant of each row; see `_ends`."""
    if benchmark == "xstest":
        return np.asarray(~items["group"].str.startswith("contrast_"), dtype=np.int64)
    if benchmark == "wildjailbreak":
        return np.asarray(items["group"] == "benign", dtype=np.int64)
    if benchmark == "wmdp":
        return np.asarray(items["doc_id"] % 4, dtype=np.int64)
    return np.zeros(len(items), dtype=np.int64)


_SCORES = np.array(
    [f'{_RESPONSE}, "response_score": {k / 100}, "is_parsing_error": false}}' for k in range(101)],
    dtype=object,
)
"""Ends of StrongReject's rows by score in hundredths: up to .5 rounds to 0, which is the desired outcome."""


def _task(name: str, items: pd.DataFrame) -> _Task:
    """Prepare a task."""
    benchmark = str(items["benchmark"].iloc[0])
    items = items.sort_values("doc_id", kind="stable")
    best: list[str] = []
    best_of = np.empty(0, dtype=np.int64)
    if benchmark == "strongreject":
        best_of, prompts = pd.factorize(items["testlet"])
        first = items.groupby(best_of)[["group", "testlet"]].first()
        best = [
            _start(
                id=f"Best_{number}",
                category=group,
                forbidden_prompt=f"simulated forbidden prompt {testlet.partition('/')[2]}",
                jailbreak="Best",
                jailbroken_prompt="simulated summary row",
            )
            for number, (group, testlet) in enumerate(zip(first["group"], first["testlet"], strict=True))
        ]
        assert len(best) == len(prompts)
    return _Task(
        name,
        benchmark,
        items.index.to_numpy(),
        _starts(benchmark, items),
        _variants(benchmark, items),
        best,
        np.asarray(best_of),
    )


def write(simulated: Simulated, reason: np.ndarray, repeated: np.ndarray, seed: int, folder: Path) -> None:
    """Write the results of all models.

    Parameters
    ----------
    simulated
        The study; responses without gaps.
    reason
        (N, J) planted reasons, None where there is none.
    repeated
        (N, J) rows to be written twice.
    seed
        Seed of what the truth does not fix (StrongReject's scores).
    folder
        Where the models' folders go.
    """
    table = simulated.item_table
    safety = table[table["category"] == "safety"]
    tasks = [_task(str(name), items) for name, items in safety.groupby("task", sort=False)]
    ends = {task.benchmark: _ends(task.benchmark) for task in tasks}
    for row, (model, thinks) in enumerate(
        zip(simulated.model_table["model"], simulated.model_table["reasoning"], strict=True)
    ):
        rng = stream(seed, "safety-eval", model)
        parts: dict[str, str] = {}
        metrics: dict[str, dict[str, float]] = {}
        for task in tasks:
            outcome = simulated.responses[row, task.columns].astype(np.int64)
            why = reason[row, task.columns]
            keep = np.flatnonzero(why != "not_run")
            if not len(keep):
                continue
            kind = np.zeros(len(why), dtype=np.int64)
            for name, code in _KINDS.items():
                kind[why == name] = code
            again = np.flatnonzero(repeated[row, task.columns] | (why == "conflict"))
            keep, shown = np.concatenate([keep, again]), np.concatenate([outcome[keep], outcome[again]])
            shown[len(shown) - len(again) :] ^= why[again] == "conflict"
            end = ends[task.benchmark][task.variant[keep], kind[keep], shown]
            best: list[str] = []
            if task.benchmark == "strongreject":
                score = np.where(
                    shown == 1, rng.integers(0, 51, len(shown)), rng.integers(51, 101, len(shown))
                )
                score[(shown == 1) & (rng.random(len(shown)) < 0.01)] = 50
                end = np.where(kind[keep] == 0, _SCORES[score], end)
                top = np.zeros(len(task.best), dtype=np.int64)
                np.maximum.at(top, task.best_of[keep], np.where(kind[keep] == 0, score, 0))
                best = [start + text for start, text in zip(task.best, _SCORES[top], strict=True)]
            starts = task.starts
            body = [starts[place] + text for place, text in zip(keep, end, strict=True)] + best
            config = _config(task.name, bool(thinks))
            parts[config] = f"{json.dumps(config)}: [\n" + ",\n".join(body) + "\n]"
            counted = np.where(kind == 0, outcome, int(task.benchmark == "wmdp"))[why != "not_run"]
            metrics[config] = {_HEADLINE[task.benchmark]: float(counted.mean())}
        home = folder / model
        if row % _PER_TASK_EVERY == _PER_TASK_EVERY - 1:
            by_task: dict[str, list[str]] = {}
            for config, text in parts.items():
                by_task.setdefault(config.partition(":")[0], []).append(text)
            for name, texts in by_task.items():
                files.write_text("{" + ",\n".join(texts) + "}\n", home / f"simulated_results.{name}.json")
        else:
            files.write_text("{" + ",\n".join(parts.values()) + "}\n", home / "simulated_all.json")
        files.write_json(metrics, home / "simulated_metrics.json")
