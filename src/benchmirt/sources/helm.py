"""Runs of HELM: ``per_instance_stats.json``, and ``run_spec.json`` beside it, which names the run and the model.

An instance has many statistics, each with its mean over generations; perturbed instances, and statistics of perturbed
ones, are not the question itself. An instance that is listed twice has its statistics put together. The files do not
hold the questions, so that there is no content hash.
"""

from __future__ import annotations

import json
from typing import Any

from benchmirt.errors import InputError
from benchmirt.sources.documents import Document, Log, Records, kind_of, several_grades

__all__ = ["is_beside", "is_stats", "read"]

_BESIDE = (
    {"name", "count"},
    {"input", "references"},
    {"instance_id", "predicted_text"},
    {"instance_id", "request"},
)
_OF_THE_MODEL = ("model=", "model_deployment=")


def is_stats(value: Any) -> bool:
    """Say whether a JSON value is a list of instances with statistics."""
    return _first_has(value, {"instance_id", "stats"})


def is_beside(value: Any) -> bool:
    """Say whether a JSON value is another file of a run."""
    if isinstance(value, dict):
        return bool({"adapter_spec", "definition_path", "request_states"} & set(value))
    return any(_first_has(value, keys) for keys in _BESIDE)


def _first_has(value: Any, keys: set[str]) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and keys <= set(value[0])


def read(document: Document) -> list[Log]:
    """Return the instances of a run.

    Raises
    ------
    InputError
        If an instance has no name or no list of statistics, or the run's specification is damaged.
    """
    spec = _object(document.beside("run_spec.json"))
    adapter = spec.get("adapter_spec")
    adapter = adapter if isinstance(adapter, dict) else {}
    name, model, method = spec.get("name"), adapter.get("model"), adapter.get("method")
    task = _task(name if isinstance(name, str) else document.path.parent.name)
    merged: dict[tuple[str, str, str], dict[str, Any]] = {}
    numbers: list[int] = []
    value = document.value
    for number, instance in enumerate(value if isinstance(value, list) else [value], start=1):
        key, row = _instance(instance, document.shown, number)
        if key not in merged:
            merged[key] = row
            numbers.append(number)
        else:
            _merge(merged[key], row["scores"])
    chosen = isinstance(method, str) and method.startswith("multiple_choice")
    for row in merged.values():
        options = row["scores"].get("num_references") if chosen else None
        row["choices"] = (
            [None] * int(options) if isinstance(options, int | float) and 2 <= options <= 1000 else None
        )
    rows = list(merged.values())
    names = list(dict.fromkeys(name for row in rows for name in row["scores"]))
    table = Records(
        document.shown,
        task,
        rows,
        "instance",
        numbers,
        kind="helm",
        repeat="train_trial_index",
        faults={"score": several_grades(document.shown, names)} if len(names) > 1 else {},
        called={"id": "instance_id"},
    )
    return [Log(model if isinstance(model, str) else None, table)]


def _object(document: Document | None) -> dict[str, Any]:
    """Return the object that a file holds; an empty one if there is no such file."""
    value = {} if document is None else document.value
    return value if isinstance(value, dict) else {}


def _task(name: str) -> str:
    """Return the name of a run without its model."""
    scenario, mark, arguments = name.partition(":")
    kept = [one for one in arguments.split(",") if one and not one.startswith(_OF_THE_MODEL)]
    return scenario + (mark + ",".join(kept) if kept else "")


def _instance(instance: Any, shown: str, number: int) -> tuple[tuple[str, str, str], dict[str, Any]]:
    """Return what tells an instance from others, and its row."""
    stats = instance.get("stats") if isinstance(instance, dict) else None
    if not isinstance(stats, list):
        raise InputError(
            "",
            file=shown,
            where=f"instance {number}",
            found=kind_of(stats if isinstance(instance, dict) else instance),
            expected="an object with a list of stats",
        )
    row: dict[str, Any] = {
        "id": instance.get("instance_id"),
        "train_trial_index": instance.get("train_trial_index", 0),
        "perturbed": instance.get("perturbation") is not None,
        "score": None,
        "scores": {},
        "missing": None,
    }
    for place, stat in enumerate(stats, start=1):
        if not isinstance(stat, dict):
            raise InputError(
                "",
                file=shown,
                where=f"instance {number}, stat {place}",
                found=kind_of(stat),
                expected="an object",
            )
        called = stat.get("name")
        full = called if isinstance(called, dict) else {"name": called}
        metric = full.get("name")
        if isinstance(metric, str) and full.get("perturbation") is None:
            _merge(row, {metric: stat.get("mean") if stat.get("count") else None})
    row["score"] = next(iter(row["scores"].values()), None)
    key = (
        repr(row["id"]),
        repr(row["train_trial_index"]),
        json.dumps(instance.get("perturbation"), sort_keys=True),
    )
    return key, row


def _merge(row: dict[str, Any], stats: dict[str, Any]) -> None:
    """Add statistics to a row, in place; two that differ are a conflict."""
    for name, value in stats.items():
        before = row["scores"].get(name)
        if before is None:
            row["scores"][name] = value
        elif value is not None and value != before:
            row["missing"] = "conflict"
