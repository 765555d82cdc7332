"""Which format a file has: told by what is in it, not by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmirt.errors import InputError
from benchmirt.sources import (
    evalscope,
    every_eval_ever,
    helm,
    inspect_log,
    lm_eval,
    long_table,
    olmo_eval,
    py_irt,
)
from benchmirt.sources.documents import Document, Log, check_whole, kind_of
from benchmirt.sources.reading import recognise as refuse_impostors

__all__ = ["READERS", "TELLS_FAILURES", "logs"]

READERS: dict[str, Callable[[Document], list[Log]]] = {
    "lm-eval": lm_eval.read,
    "inspect": inspect_log.read,
    "helm": helm.read,
    "olmo-eval": olmo_eval.read,
    "every-eval-ever": every_eval_ever.read,
    "evalscope": evalscope.read,
    "py-irt": py_irt.read,
    "long": long_table.read,
}
"""What reads a file of each format."""

TELLS_FAILURES = frozenset({"lm-eval", "inspect", "every-eval-ever"})
"""Formats that tell a failure from a wrong answer."""

_CALLED = {
    "lm-eval": "samples of lm-evaluation-harness",
    "inspect": "a log of inspect",
    "helm": "per_instance_stats of HELM",
    "olmo-eval": "predictions of olmo-eval or OLMES",
    "every-eval-ever": "samples of Every Eval Ever",
    "evalscope": "reviews of evalscope",
    "py-irt": "a response file of py-irt",
    "long": "a long table",
}
_ELSEWHERE = "Take it out of the folder, or write its outcomes as a long table: model, question_id, outcome"


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(name in value for name in names)


# Formats that are read, by the first JSON value of a file.
_OWN: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (olmo_eval.is_row, "olmo-eval"),
    (lm_eval.is_row, "lm-eval"),
    (lm_eval.is_totals, "lm-eval"),
    (inspect_log.is_log, "inspect"),
    (helm.is_stats, "helm"),
    (every_eval_ever.is_row, "every-eval-ever"),
    (evalscope.is_row, "evalscope"),
    (py_irt.is_row, "py-irt"),
)

# Files beside results, which hold no outcomes of single questions.
_BESIDE: tuple[Callable[[Any], bool], ...] = (
    helm.is_beside,
    olmo_eval.is_beside,
    every_eval_ever.is_totals,
    evalscope.is_beside,
)

# Results that are not read.
_STRANGE: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (_has("spec"), "an event log of OpenAI Evals", _ELSEWHERE),
    (_has("evalId", "results"), "an export of promptfoo", _ELSEWHERE),
    (_has("testCases"), "a test run of DeepEval", _ELSEWHERE),
    (_has("eval", "config"), "results of EvalPlus", _ELSEWHERE),
    (_has("eval", "date"), "results of BigCodeBench or EvalPlus", _ELSEWHERE),
    (_has("pass@1"), "totals of BigCodeBench, without outcomes of single tasks", _ELSEWHERE),
)


def _is_safety_eval(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(":" in key and isinstance(rows, list) for key, rows in value.items())
    )


def _told(document: Document, kind: str) -> str | None:
    """Return the format of a file, None if it stands beside results.

    Raises
    ------
    InputError
        If it is of none, or of another than `kind` says.
    """
    found = _by_content(document)
    if found is None:
        return None
    if found == "" and kind == "files":
        raise _unknown(document)
    if kind not in ("files", found) and found != "":
        raise InputError(
            "",
            file=document.shown,
            found=_CALLED[found],
            expected=f"{_CALLED[kind]}, as kind: {kind} says",
            todo=f"Take it out, or write kind: {found}, or kind: files for files of several formats",
        )
    return found or kind


def _by_content(document: Document) -> str | None:
    """Return the format of a file: a name, empty if it is none that is known, None for a file beside results."""
    if document.is_archive:
        return "inspect"
    if document.is_table:
        return _table(document)
    value = document.first
    for test, called, todo in _STRANGE:
        if test(value):
            raise InputError("this format is not read", file=document.shown, found=called, todo=todo)
    if _is_safety_eval(value):
        raise InputError(
            "",
            file=document.shown,
            found="results of safety-eval",
            expected="a format that names its questions",
            todo="Read them with a source of kind: safety-eval, a folder per model",
        )
    if any(test(value) for test in _BESIDE):
        return None
    return next((kind for test, kind in _OWN if test(value)), "")


def _table(document: Document) -> str:
    """Return the format of a table, if it is a long one.

    Raises
    ------
    InputError
        If it is another.
    """
    header = long_table.header_of(document)
    if long_table.is_long(header):
        return "long"
    if len(header) == 1 and (mark := next((one for one in ";\t|" if one in header[0]), None)):
        raise InputError(
            "the fields are not separated by commas",
            file=document.shown,
            where="row 1",
            found="tabs" if mark == "\t" else f'"{mark}"',
            todo="Save the table with commas",
        )
    details = {"doc_id", "doc"} <= set(header)
    raise InputError(
        "",
        file=document.shown,
        found="details of the Open LLM Leaderboard"
        if details
        else "a table without columns of models and questions",
        expected="a long table: model, question_id, outcome",
        todo="Read it with a source of kind: leaderboard"
        if details
        else "Read a wide table with a source of kind: table, or take the file out",
    )


def _unknown(document: Document) -> InputError:
    value = document.first
    keys = list(value) if isinstance(value, dict) else []
    shown = ", ".join(ascii(key)[1:-1][:30] for key in keys[:6]) + (", ..." if len(keys) > 6 else "")
    return InputError(
        "this file has none of the formats that are read",
        file=document.shown,
        found=f"an object with the keys {shown}" if keys else kind_of(value),
        expected=", ".join(_CALLED[kind] for kind in READERS),
        todo="Take it out of the folder, or name its format in kind",
    )


def logs(document: Document, kind: str) -> tuple[str, list[Log]]:
    """Return the format of a file and what it tells; nothing where it holds no outcomes of single questions.

    Parameters
    ----------
    document
        The file.
    kind
        The format, or ``files``: the content tells.

    Raises
    ------
    InputError
        If the file is empty or damaged, or has another format, or none that is known.
    """
    check_whole(document.data, document.shown, "result files")
    if not document.is_archive and not document.is_table:
        refuse_impostors(document.data[:512], document.shown, "a result file")
    found = _told(document, kind)
    return ("", []) if found is None else (found, READERS[found](document))
