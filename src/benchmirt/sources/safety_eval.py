"""Results of safety-eval: JSON, one object ``{"task:config": [rows]}`` per file.

::

    {folder}/{model}/all.json, or results.{task}.json per task

A row is a prompt; ``id`` says which. Which fields the judge leaves depends on the task. Tasks that no scoring
rule wants are passed over, and so is every other file in the folder.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_bytes
from benchmirt.scoring import Scorer
from benchmirt.sources.documents import Records, check_whole, kind_of, parsed, read_bytes
from benchmirt.sources.folders import result_files
from benchmirt.sources.raw import Found

__all__ = ["read"]

_log = logging.getLogger(__name__)


def _parsed(data: bytes, shown: str) -> dict[str, Any]:
    """Return the object that a file holds."""
    check_whole(data, shown, 'JSON: {"task:config": [rows]}')
    content = parsed(data, shown, todo="Put the runs in files of their own, results.{task}.json")
    if not isinstance(content, dict):
        raise InputError(
            "",
            file=shown,
            found=kind_of(content),
            expected='one object {"task:config": [rows]}',
            todo="Fetch it again, or take the file out",
        )
    return content


def _rows(rows: Any, task: str, shown: str) -> list[dict[str, Any]]:
    """Check that a task holds a list of objects."""
    if not isinstance(rows, list):
        raise InputError("", file=shown, where=f'"{task}"', found=kind_of(rows), expected="a list of rows")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(
                "",
                file=shown,
                where=f'"{task}", row {number}',
                found=kind_of(row),
                expected="an object with the fields of a row",
            )
    return rows


def _tell_without_judge(table: Records, scorer: Scorer) -> None:
    """Warn of a task none of whose rows holds what decides: its judge did not run."""
    decide = dict.fromkeys(
        rule.one["field"] for _, rule, parts in scorer.of(table.task) if rule.one["field"] not in parts
    )
    if table.size and decide and not any(map(table.has, decide)):
        _log.warning(
            '%s: no row of "%s" has the field "%s", which decides here, so that none has an outcome; did its judge run?',
            table.file,
            table.task,
            '" or "'.join(decide),
        )


def read(folder: Path, model: str, shown: str, scorer: Scorer) -> Found:
    """Read the results of one model.

    Parameters
    ----------
    folder
        The model's folder.
    model
        Its name.
    shown
        What messages call the folder.
    scorer
        The rules of this format.

    Raises
    ------
    InputError
        If a file is no JSON, was cut off, or is not what it should be; if no task in it is known.
    """
    tables: list[Records] = []
    files: dict[str, str] = {}
    unused: list[str] = []
    for name in result_files(folder, shown):
        place = f"{shown}/{name}"
        data = read_bytes(folder / name, place)
        files[name] = sha256_bytes(data)
        for task, rows in _parsed(data, place).items():
            if scorer.of(task):
                tables.append(Records(place, task, _rows(rows, task, place), f'"{task}", row'))
                _tell_without_judge(tables[-1], scorer)
            else:
                unused.append(task)
    if not tables:
        known = sorted({rule.benchmark for rule in scorer.rules})
        near = nearest(unused[0].partition(":")[0], known) if unused else None
        raise InputError(
            "no task in here has a scoring rule",
            file=shown,
            found=", ".join(f'"{ascii(task)[1:-1]}"' for task in unused[:5]) or "nothing",
            expected=", ".join(f"{name}:..." for name in known),
            todo=f'Did you mean "{near}"?' if near else "Write rules of your own and name them in scoring",
        )
    return Found(tables=tables, files=files, unused=unused, runs={}, known_as=None)
