"""Logs of inspect: ``.eval`` (a ZIP archive with a file per sample and epoch) and its JSON form.

A log names its model and task. A sample has a score per scorer; ``C`` and ``I`` stand for right and wrong, ``P`` for
partly right, ``N`` for no answer, and scores may be numbers, lists or mappings as well.

An errored sample has no outcome, whatever score it may have; one that hit a limit and has no score was cut off; one
without a score in a log that did not end well was not run. What the log's own totals and reductions say is not used:
they average over epochs, and count errors as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmirt.errors import InputError
from benchmirt.sources.archive import Archive
from benchmirt.sources.documents import (
    Document,
    Log,
    Records,
    as_text,
    kind_of,
    parsed,
    right_answer,
    several_grades,
)

__all__ = ["is_log", "read"]

_LIMITS = {"time": "timeout", "working": "timeout", "operator": "not_run"}
_HEADERS = ("header.json", "_journal/start.json")  # the second is all that a run which crashed leaves


def is_log(value: Any) -> bool:
    """Say whether a JSON value is a log."""
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and "status" in value


def read(document: Document) -> list[Log]:
    """Return the samples of a log.

    Raises
    ------
    InputError
        If the log is damaged, names no task or model, or has no samples; if a sample is no object.
    """
    if document.is_archive:
        header, samples = _archive(document)
    else:
        header, samples = _header(document.value, document.shown, None), _inside(document)
    task, model = (_text_of(header, key, document.shown) for key in ("task", "model"))
    status = header.get("status", "started")
    rows = [_row(sample, header, status) for sample in samples]
    if not rows and status == "success":
        raise InputError(
            "the log holds no samples, only totals",
            file=document.shown,
            todo="Run it with --log-samples, or take it out",
        )
    names = list(dict.fromkeys(name for row in rows for name in row["scores"]))
    faults = {"score": several_grades(document.shown, names)} if len(names) > 1 else {}
    table = Records(document.shown, task, rows, "sample", kind="inspect", repeat="epoch", faults=faults)
    return [Log(model, table, None if status == "success" else str(status))]


def _header(value: Any, shown: str, where: str | None) -> dict[str, Any]:
    """Return what stands before the samples of a log, if it is that."""
    if isinstance(value, dict) and isinstance(value.get("eval"), dict):
        return value
    raise InputError(
        "",
        file=shown,
        where=where,
        found=kind_of(value),
        expected='a log of inspect: an object with the object "eval" in it',
    )


def _archive(document: Document) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the header and the samples of a ZIP archive."""
    archive = Archive(document.data, document.shown)
    name = next((name for name in _HEADERS if name in archive), None)
    if name is None:
        raise InputError(
            "this ZIP archive is no log of inspect",
            file=document.shown,
            found=", ".join(archive.names[:4]) or "nothing in it",
            expected="header.json in it",
            todo="Take it out of the folder",
        )
    header = _header(parsed(archive.read(name), document.shown, name), document.shown, name)

    def samples() -> Iterator[dict[str, Any]]:
        for member in archive.names:
            if member.startswith("samples/") and member.endswith(".json"):
                sample = parsed(archive.read(member), document.shown, member)
                yield _object(sample, document.shown, member)

    return header, samples()


def _inside(document: Document) -> Iterator[dict[str, Any]]:
    """Return the samples of a log in JSON."""
    samples = document.value.get("samples") or []
    if not isinstance(samples, list):
        raise InputError(
            "",
            file=document.shown,
            where="samples",
            found=kind_of(samples),
            expected="a list of objects",
        )
    return (_object(one, document.shown, f"sample {place}") for place, one in enumerate(samples, start=1))


def _object(sample: Any, shown: str, where: str) -> dict[str, Any]:
    if not isinstance(sample, dict):
        raise InputError(
            "", file=shown, where=where, found=kind_of(sample), expected="an object with a sample"
        )
    return sample


def _text_of(header: Mapping[str, Any], key: str, shown: str) -> str:
    found = header["eval"].get(key)
    if not isinstance(found, str) or not found:
        raise InputError(
            f"the log does not name its {key}", file=shown, where=f"eval.{key}", found=kind_of(found)
        )
    return found


def _row(sample: Mapping[str, Any], header: Mapping[str, Any], status: Any) -> dict[str, Any]:
    """Return what a sample tells."""
    given = sample.get("scores")
    scores = {
        name: score.get("value") if isinstance(score, dict) else score
        for name, score in (given if isinstance(given, dict) else {}).items()
    }
    choices = sample.get("choices")
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch", 1),
        "score": next(iter(scores.values()), None),
        "scores": scores,
        "choices": choices if isinstance(choices, list) and choices else None,
        "asked": as_text(sample.get("input")),
        "key": right_answer(sample.get("target"), choices),
        "missing": _missing(sample, scores, header, status),
        "metadata": sample.get("metadata"),
        "task_args": header["eval"].get("task_args"),
    }


def _missing(
    sample: Mapping[str, Any], scores: Mapping[str, Any], header: Mapping[str, Any], status: Any
) -> str | None:
    """Return why a sample has no outcome, if the log says so."""
    if header.get("invalidated") is True:
        return "excluded"
    if sample.get("error"):
        return "errored"
    if scores:
        return None
    limit = sample.get("limit")
    if limit:
        kind = limit.get("type") if isinstance(limit, dict) else limit
        return _LIMITS.get(kind, "truncated") if isinstance(kind, str) else "truncated"
    return None if status == "success" else "not_run"
