"""Reviews of evalscope: ``reviews/{model}/{dataset}_{subset}.jsonl``, a row per question and repeat.

``sample_score.score.value`` holds the grades; ``main_score_name`` says which one counts, where there are several.
``group_id`` is the question, and ``sample_id`` the repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmirt.sources.documents import Document, Log, Records, as_text, several_grades

__all__ = ["is_beside", "is_row", "read"]


def is_row(first: Any) -> bool:
    """Say whether a JSON value is a review."""
    return isinstance(first, dict) and {"index", "sample_score"} <= set(first)


def is_beside(value: Any) -> bool:
    """Say whether a JSON value is a prediction that was not graded yet, or a report."""
    return isinstance(value, dict) and (
        {"index", "model_output"} <= set(value) or {"dataset_name", "model_name", "metrics"} <= set(value)
    )


def read(document: Document) -> list[Log]:
    """Return the reviews of a file.

    Raises
    ------
    InputError
        If a row is no object.
    """
    rows, numbers = document.rows()
    made = [_row(row) for row in rows]
    names = list(dict.fromkeys(name for row in made for name in row["scores"]))
    unclear = any(len(row["scores"]) > 1 and row["main"] not in row["scores"] for row in made)
    table = Records(
        document.shown,
        document.name.rpartition(".")[0],
        made,
        "line",
        numbers,
        kind="evalscope",
        repeat="sample_id",
        faults={"score": several_grades(document.shown, names)} if unclear else {},
        called={"id": "group_id"},
    )
    folder = document.path.parent
    model = folder.name if folder.parent.name == "reviews" else next(filter(None, map(_model_of, rows)), None)
    return [Log(model, table)]


def _messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = row.get("messages")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _model_of(row: Mapping[str, Any]) -> str | None:
    """Return the model that answered."""
    names = [one.get("model") for one in _messages(row)]
    return next((name for name in names if isinstance(name, str) and name), None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a review tells."""
    sample = _object(row.get("sample_score"))
    score = _object(sample.get("score"))
    value = score.get("value")
    scores = value if isinstance(value, dict) else {} if value is None else {"value": value}
    name = score.get("main_score_name")
    main = name if isinstance(name, str) and name in scores else next(iter(scores), None)
    number = sample.get("sample_id", row.get("index"))
    group = sample.get("group_id")
    asked = [one.get("content") for one in _messages(row) if one.get("role") != "assistant"]
    return {
        "id": number if group is None else group,
        "sample_id": number,
        "main": name,
        "score": None if main is None else scores[main],
        "scores": scores,
        "asked": as_text(asked or None),
        "key": as_text(row.get("target")),
        "response": score.get("prediction"),
        "extracted": score.get("extracted_prediction"),
        "metadata": sample.get("sample_metadata"),
    }
