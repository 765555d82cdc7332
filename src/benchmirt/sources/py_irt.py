"""Response files of py-irt: a line per model, ``{"subject_id": NAME, "responses": {QUESTION: OUTCOME}}``."""

from __future__ import annotations

from typing import Any

from benchmirt.errors import InputError
from benchmirt.sources.documents import Document, Log, Records, kind_of

__all__ = ["is_row", "read"]


def is_row(first: Any) -> bool:
    """Say whether a JSON value is a line of responses."""
    return isinstance(first, dict) and {"subject_id", "responses"} <= set(first)


def read(document: Document) -> list[Log]:
    """Return the responses of a file, model by model.

    Raises
    ------
    InputError
        If a line is no object, or its responses are none.
    """
    logs: list[Log] = []
    for row, number in zip(*document.rows(), strict=True):
        responses, model = row.get("responses"), row.get("subject_id")
        if not isinstance(responses, dict):
            raise InputError(
                "",
                file=document.shown,
                where=f'line {number}, field "responses"',
                found=kind_of(responses),
                expected="an object {QUESTION: OUTCOME}",
            )
        if not isinstance(model, str) and (model is not None or any(log.model for log in logs)):
            raise InputError(
                "",
                file=document.shown,
                where=f'line {number}, field "subject_id"',
                found="nothing" if model is None else kind_of(model),
                expected="a text, the name of the model",
            )
        rows = [
            {"id": name, "score": value, "scores": {"response": value}} for name, value in responses.items()
        ]
        task = document.name.rpartition(".")[0]
        table = Records(document.shown, task, rows, f"line {number}, response", kind="py-irt")
        logs.append(Log(model if isinstance(model, str) else None, table))
    return logs
