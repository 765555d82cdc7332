"""Rows of the data card's tables on the page, from `data_card.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmirt.figures import words

__all__ = ["conflicts", "directions", "missingness", "rescoring", "roads", "sources"]

KINDS = {
    "reordered": "question under another name",
    "renamed": "question under a name of its own",
    "edited options": "other answer options",
    "other question": "another question under one name",
    "changed key": "another right answer",
    "shuffled options": "options in another order",
    "same question": "one question twice in a benchmark",
    "not compared": "contents that cannot be compared",
    "repeated rows": "rows that repeat a question",
    "repeats": "questions asked several times",
    "repeated runs": "models that two sources have",
}
"""Kinds of conflicts, in words."""

_WHY = {"any reason": "missing for any reason", "failed": "run, and failed"}


def sources(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per source."""
    return [_source(one) for one in card["sources"]]


def _source(one: Mapping[str, Any]) -> dict[str, str]:
    told, rows = one["rows_that_tell_their_question"], one["rows"]
    origin = [f"{place['data_set']} at {place['commit'][:12]}" for place in one["fetched"]]
    return {
        "source": str(one["source"]),
        "format": words.listing([str(name) for name in one["formats"]]),
        "models": words.count(one["models"]),
        "rows": words.count(rows),
        "told": words.NOTHING if told is None else words.share(told / rows if rows else None),
        "failures": "told" if one["failures_known"] else "not told from a 0",
        "licence": str(one["licence"] or "not given"),
        "origin": words.listing(_few(origin)) if origin else words.NOTHING,
        "scorer": str(one["scorer"]),
    }


def conflicts(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per kind of conflict and what was done about it under the honest policy."""
    return [
        {
            "kind": words.capital(KINDS.get(str(one["kind"]), str(one["kind"]))),
            "outcomes": words.count(one["outcomes"]) if one["outcomes"] else words.NOTHING,
            "models": words.count(one["models"]) if one["models"] else words.NOTHING,
            "benchmarks": words.listing(_few([str(name) for name in one["benchmarks"]])),
            "done": str(one["done"]),
        }
        for one in card["conflicts"]["honest"]
    ]


def _few(names: list[str]) -> list[str]:
    """Return some names, and how many more there are."""
    return names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]


def missingness(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per benchmark and group of reasons, those related to ability first."""
    order = {"yes": 0, "no": 1, "cannot test": 2}
    return [
        {
            "benchmark": str(one["benchmark"]),
            "why": _WHY.get(str(one["why"]), str(one["why"])),
            "missing": f"{words.count(one['missing'])} ({words.share(one['share'])})",
            "r": words.number(one["r"]),
            "interval": words.interval((one["low"], one["high"])),
            "related": str(one["related"]),
        }
        for one in sorted(card["missingness"], key=lambda one: order.get(str(one["related"]), 3))
    ]


def directions(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per benchmark and pair of models of which one is known to be better, those turned round first."""
    return [
        {
            "benchmark": str(one["benchmark"]),
            "better": f"{one['better']} ({words.share(one['better_mean'])})",
            "worse": f"{one['worse']} ({words.share(one['worse_mean'])})",
            "difference": words.number(one["difference"]),
            "interval": words.interval((one["low"], one["high"])),
            "direction": str(one["direction"]),
        }
        for one in sorted(card["directions"], key=lambda one: one["direction"] != "turned round")
    ]


def rescoring(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per benchmark that was graded again: how often that changed the logged outcome."""
    rows = []
    for one in card["rescoring"]:
        both = one["same"] + one["to_one"] + one["to_zero"]
        rows.append(
            {
                "benchmark": str(one["benchmark"]),
                "scorer": str(one["scorer"]),
                "answers": words.count(one["answers"]),
                "same": words.share(one["same"] / both if both else None),
                "to_one": words.count(one["to_one"]),
                "to_zero": words.count(one["to_zero"]),
                "missing": words.count(one["unparsed"] + one["timeout"] + one["crashed"]),
                "timeout": words.count(one["timeout"]),
            }
        )
    return rows


def roads(card: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row per benchmark, all of them first: how the published outcomes and ours agree; none without such."""
    return [_road(row) for row in (card.get("roads") or {"benchmarks": []})["benchmarks"]]


def _road(row: Mapping[str, Any]) -> dict[str, str]:
    sizes = [row["expected_items"], row["published_items"], row["raw_items"]]
    both = row["cells"] - row["both_missing"]
    return {
        "benchmark": str(row["benchmark"]),
        **{
            name: words.NOTHING if size is None else words.count(size)
            for name, size in zip(("expected", "published", "ours"), sizes, strict=True)
        },
        "other": words.count(row["only_published"] + row["only_raw"] + row["other_content"]),
        "cells": words.count(row["cells"]),
        "same": words.share(row["same"] / both if both else None),
        "lost": words.count(row["published_1_raw_0"]),
        "won": words.count(row["published_0_raw_1"]),
        "missing": words.count(row["published_0_raw_missing"] + row["published_1_raw_missing"]),
        "counted": words.count(row["same_as_counted"] - row["same"]),
        "found": words.count(row["published_missing_raw_0"] + row["published_missing_raw_1"]),
    }
