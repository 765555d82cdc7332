"""Predictions of olmo-eval (``{spec}_{hash}-predictions.jsonl``) and OLMES (``task-000-{task}-predictions.jsonl``).

A row is a question. ``instance_metrics`` (a mapping of metrics, or of scorers with metrics) or ``metrics`` hold its
grades. The model is the folder below ``predictions``, or stands in OLMES' ``task-000-{task}-metrics.json`` beside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchmirt.sources.documents import Document, Log, Records, as_text, several_grades

__all__ = ["is_beside", "is_row", "read"]

_END = "-predictions.jsonl"
_SPEC = re.compile(r"(?:simulated_)?(?:task-\d+-)?(?P<task>.+?)(?:_[0-9a-f]{6})?")


def is_row(first: Any) -> bool:
    """Say whether a JSON value is a prediction."""
    return (
        isinstance(first, dict)
        and "doc_id" in first
        and any(isinstance(first.get(key), dict) for key in ("instance_metrics", "metrics"))
    )


def is_beside(value: Any) -> bool:
    """Say whether a JSON value is another file of a run: requests, or metrics."""
    return isinstance(value, dict) and (
        {"request_type", "request"} <= set(value) or {"task_config", "metrics"} <= set(value)
    )


def read(document: Document) -> list[Log]:
    """Return the predictions of a file.

    Raises
    ------
    InputError
        If a row is no object.
    """
    rows, numbers = document.rows()
    name = (
        document.name.removesuffix(_END) if document.name.endswith(_END) else document.name.rpartition(".")[0]
    )
    match = _SPEC.fullmatch(name)
    task = match["task"] if match else name
    made = [_row(row) for row in rows]
    names = list(dict.fromkeys(metric for row in made for metric in row["scores"]))
    faults = {"score": several_grades(document.shown, names)} if len(names) > 1 else {}
    table = Records(
        document.shown,
        task,
        made,
        "line",
        numbers,
        kind="olmo-eval",
        faults=faults,
        called={"id": "doc_id"},
    )
    return [Log(_model_of(document), table)]


def _model_of(document: Document) -> str | None:
    """Return the model that the folders or the metrics beside a file name."""
    if document.path.parent.parent.name == "predictions":
        return document.path.parent.name
    if not document.name.endswith(_END):
        return None
    metrics = document.beside(document.name.removesuffix(_END) + "-metrics.json")
    told = (
        metrics.value.get("model_config") if metrics is not None and isinstance(metrics.value, dict) else None
    )
    model = told.get("model") if isinstance(told, dict) else None
    return model if isinstance(model, str) else None


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a prediction tells."""
    scores = _grades(row)
    outputs = row.get("model_output")
    outputs = [one for one in outputs if isinstance(one, dict)] if isinstance(outputs, list) else []
    likelihoods = len(outputs) > 1 and all("sum_logits" in one for one in outputs)
    return {
        "id": row.get("doc_id"),
        "native_id": row.get("native_id"),
        "score": next(iter(scores.values()), None),
        "scores": scores,
        "choices": [None] * len(outputs) if likelihoods else None,
        "response": outputs[0].get("text") if outputs and not likelihoods else None,
        "asked": as_text(row.get("native_id")),
        "key": as_text(row.get("label")),
    }


def _grades(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the grades by name: a scorer with the only metric of its own name has that name."""
    given: dict[str, Any] = next(
        (row[key] for key in ("instance_metrics", "metrics") if isinstance(row.get(key), dict)), {}
    )
    found: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(value, dict):
            found[name] = value
            continue
        for metric, inner in value.items():
            found[name if metric == name else f"{name}/{metric}"] = inner
    return found
