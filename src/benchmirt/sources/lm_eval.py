"""Samples of lm-evaluation-harness: ``samples_{task}_{date}.jsonl``, a row per question and filter.

The file does not name its model; ``results_{date}.json`` beside it does. Results that hold the samples themselves
(``samples`` in them, as ``simple_evaluate`` returns) are read too; totals alone are passed over.

Where it says that the lower grade is the better one (``higher_is_better``), a rule has to say so too.

``metrics`` says which keys are grades; in older files, which lack it, they are the keys that are nothing else. A row
that is there twice (append mode, or blocks of older files without ``filter``) has to agree with itself.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmirt.errors import InputError
from benchmirt.sources.documents import (
    Document,
    Log,
    Records,
    as_text,
    kind_of,
    less_is_better,
    several_grades,
)

__all__ = ["is_row", "is_totals", "read"]

_log = logging.getLogger(__name__)
_FIXED = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
        *("exact_match_original", "model_output", "output_matches_target"),  # beside the grade, and none
    }
)
_NAME = re.compile(r"(?:simulated_)?samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl?")


def is_row(first: Any) -> bool:
    """Say whether a JSON value is a row of samples."""
    return (
        isinstance(first, dict)
        and "doc_id" in first
        and bool({"resps", "filtered_resps", "doc"} & set(first))
    )


def is_totals(value: Any) -> bool:
    """Say whether a JSON value is a results file, with or without samples in it."""
    return isinstance(value, dict) and isinstance(value.get("results"), dict) and "configs" in value


def read(document: Document) -> list[Log]:
    """Return the samples of a file, task by task; none if it holds totals only.

    Raises
    ------
    InputError
        If a row is no object.
    """
    if not document.is_lines and is_totals(document.value):
        return _inside(document)
    match = _NAME.fullmatch(document.name)
    task = match["task"] if match else document.name.rpartition(".")[0]
    rows, numbers = document.rows()
    results = document.beside(f"results_{match['date']}.json") if match and match["date"] else None
    table = _records(document.shown, task, rows, "line", numbers, results)
    return [Log(_model_of(results), table)]


def _model_of(results: Document | None) -> str | None:
    """Return the model that a results file names."""
    if results is None or not isinstance(results.value, dict):
        return None
    name = results.value.get("model_name")
    return name if isinstance(name, str) else None


def _turned(results: Document | None, task: str, name: str) -> bool:
    """Say whether a results file says that the lower grade of a task is the better one."""
    told = results.value if results is not None else None
    for key in ("higher_is_better", task, name):
        told = told.get(key) if isinstance(told, dict) else None
    return told is False


def _inside(document: Document) -> list[Log]:
    """Return the samples that stand in a results file."""
    samples = document.value.get("samples")
    if samples is None:
        return []
    logs = []
    for task, rows in samples.items() if isinstance(samples, dict) else ():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(
                "",
                file=document.shown,
                where=f"samples, {json.dumps(task)}",
                found=kind_of(rows),
                expected="a list of objects",
            )
        label = f"{json.dumps(task, ensure_ascii=False)}, row"
        table = _records(document.shown, task, rows, label, None, document)
        logs.append(Log(_model_of(document), table))
    return logs


def _records(
    file: str,
    task: str,
    rows: Iterable[dict[str, Any]],
    label: str,
    numbers: Sequence[int] | None,
    results: Document | None,
) -> Records:
    made = []
    names: dict[str, None] = {}
    for row in rows:
        grades = {name: row[name] for name in _metrics(row)}
        names.update(dict.fromkeys(grades))
        kept = {key: value for key, value in row.items() if key != "arguments"}
        own = {
            "scores": grades,
            "choices": _choices(row),
            "asked": _asked(row),
        }
        made.append({**kept, **own, "score": next(iter(grades.values()), None)})
    faults = {}
    if len(names) > 1:
        faults["score"] = several_grades(file, names)
    elif results is not None and any(_turned(results, task, name) for name in names):
        faults["score"] = less_is_better(file, next(iter(names)), results.name)
    _tell_prompts(file, made)
    return Records(file, task, made, label, numbers, kind="lm-eval", variant="filter", faults=faults)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Return the keys of a row that are grades."""
    given = row.get("metrics")
    if isinstance(given, list):
        return [name for name in given if isinstance(name, str) and name in row and name not in _FIXED]
    return [name for name in row if name not in _FIXED]


def _choices(row: Mapping[str, Any]) -> list[None] | None:
    """Return an entry per answer option, where each has a log-likelihood; None for free answers."""
    answers = row.get("resps")
    if not isinstance(answers, list):
        return None
    for answer in answers:
        inner = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        if not (isinstance(inner, list) and len(inner) == 2 and inner[1] in ("True", "False", True, False)):
            return None
    return [None] * len(answers)


def _asked(row: Mapping[str, Any]) -> str | None:
    """Return a text that is the same for rows about the same question."""
    known = row.get("doc_hash")
    if isinstance(known, str):
        return known
    return as_text(row.get("doc"))


def _tell_prompts(file: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Warn of questions that one file asks in different words: an old cache may have answered."""
    prompts: dict[str, Any] = {}
    differ: dict[str, None] = {}
    for row in rows:
        name, prompt = str(row.get("doc_id")), row.get("prompt_hash")
        if prompt is not None and prompts.setdefault(name, prompt) != prompt:
            differ[name] = None
    if differ:
        _log.warning(
            "%s: %d questions were asked with two prompts (prompt_hash), such as doc_id %s",
            file,
            len(differ),
            next(iter(differ)),
        )
