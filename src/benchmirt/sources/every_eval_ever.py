"""Samples of Every Eval Ever: ``{uuid}_samples.jsonl``, a row per sample and metric.

``evaluation.score`` is the grade. ``evaluation.is_correct`` means something for metrics of right or wrong only: it is
used where there is no score, and where it contradicts a score of 0 or 1 the outcome is a conflict. Where the totals
beside (``{uuid}.json``) say that the lower score is the better one, a rule has to say so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmirt.sources.documents import Document, Log, Records, as_text, less_is_better, right_answer

__all__ = ["is_row", "is_totals", "read"]


def is_row(first: Any) -> bool:
    """Say whether a JSON value is a sample."""
    return isinstance(first, dict) and {"sample_id", "model_id", "evaluation"} <= set(first)


def is_totals(value: Any) -> bool:
    """Say whether a JSON value holds the totals of an evaluation."""
    return isinstance(value, dict) and {"evaluation_results", "model_info"} <= set(value)


def read(document: Document) -> list[Log]:
    """Return the samples of a file, by model and evaluation.

    Raises
    ------
    InputError
        If a row is no object.
    """
    rows, numbers = document.rows()
    totals = _totals_of(document)
    groups: dict[tuple[str | None, str, bool], tuple[list[dict[str, Any]], list[int]]] = {}
    for row, number in zip(rows, numbers, strict=True):
        model, task = row.get("model_id"), row.get("evaluation_name")
        turned = _is_turned(row, totals)
        key = (
            model if isinstance(model, str) else None,
            task if isinstance(task, str) else "unnamed",
            turned,
        )
        own, places = groups.setdefault(key, ([], []))
        own.append(_row(row, turned))
        places.append(number)
    return [
        Log(
            model,
            Records(
                document.shown,
                task,
                own,
                "line",
                places,
                kind="every-eval-ever",
                variant="evaluation_result_id",
                called={"id": "sample_id"},
                faults={"score": less_is_better(document.shown, "score", _totals_name(document))}
                if turned
                else {},
            ),
        )
        for (model, task, turned), (own, places) in groups.items()
    ]


def _totals_name(document: Document) -> str:
    """Return the name of the file with the totals of a file of samples."""
    return document.name.replace("_samples.jsonl", ".json")


def _totals_of(document: Document) -> list[Mapping[str, Any]]:
    """Return the totals that stand beside a file of samples, one per metric; none where there is no such file."""
    name = _totals_name(document)
    beside = document.beside(name) if name != document.name else None
    results = beside.value.get("evaluation_results") if beside and isinstance(beside.value, dict) else None
    return [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []


def _is_turned(row: Mapping[str, Any], totals: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether the totals tell that the lower score of a sample's metric is the better one."""
    own: list[Mapping[str, Any]] = []
    for key in ("evaluation_result_id", "evaluation_name"):
        named = row.get(key)
        own = own or [one for one in totals if named is not None and one.get(key) == named]
    configs = [one.get("metric_config") for one in own]
    return bool(own) and all(isinstance(one, dict) and one.get("lower_is_better") is True for one in configs)


def _row(row: Mapping[str, Any], turned: bool) -> dict[str, Any]:
    """Return what a sample tells; `turned` says that the lower score is the better one."""
    given = row.get("evaluation")
    evaluation = given if isinstance(given, dict) else {}
    score, correct = evaluation.get("score"), evaluation.get("is_correct")
    sides = [side for side in (score, correct) if isinstance(side, bool | int | float) and side in (0, 1)]
    asked = row.get("input")
    question = asked if isinstance(asked, dict) else {}
    choices = question.get("choices")
    choices = choices if isinstance(choices, list) and choices else None
    missing = None
    if row.get("error"):
        missing = "errored"
    elif len(sides) == 2 and (sides[0] != sides[1]) != turned:
        missing = "conflict"
    return {
        "id": row.get("sample_id"),
        "evaluation_result_id": row.get("evaluation_result_id"),
        "score": correct if score is None else score,
        "scores": {"score": score, "is_correct": correct},
        "choices": choices,
        "asked": as_text(question.get("raw")),
        "key": right_answer(question.get("reference"), choices),
        "missing": missing,
        "metadata": row.get("metadata"),
    }
