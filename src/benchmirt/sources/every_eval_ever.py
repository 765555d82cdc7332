"""Samples of Every Eval Ever: ``{uuid}_samples.jsonl``, a row per sample and metric.

``evaluation.score`` is the grade. ``evaluation.is_correct`` means something for metrics of right or wrong only: it is
used where there is no score, and where it contradicts a score of 0 or 1 the outcome is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmirt.sources.documents import Document, Log, Records, as_text, right_answer

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
    groups: dict[tuple[str | None, str], tuple[list[dict[str, Any]], list[int]]] = {}
    for row, number in zip(rows, numbers, strict=True):
        model, task = row.get("model_id"), row.get("evaluation_name")
        key = (model if isinstance(model, str) else None, task if isinstance(task, str) else "unnamed")
        own, places = groups.setdefault(key, ([], []))
        own.append(_row(row))
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
            ),
        )
        for (model, task), (own, places) in groups.items()
    ]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a sample tells."""
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
    elif len(sides) == 2 and sides[0] != sides[1]:
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
