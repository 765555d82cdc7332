"""Claims as data: what a study says, judged on what came out.

A claim is an entry of a YAML file; its kind says how it is judged, and every kind gives the same record.
Nothing here knows a benchmark by name. The names below are imported when they are first used, so that
reading the configuration stays fast and each kind keeps its own fingerprint.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmirt.claims.judge import evaluate
    from benchmirt.claims.overview import latex, table, write_latex, write_table
    from benchmirt.claims.record import read, write
    from benchmirt.claims.spec import KINDS, Claim, check, inputs_of, load, pairs_of, tables_of

_HOMES = {
    "evaluate": "judge",
    "table": "overview",
    "latex": "overview",
    "write_latex": "overview",
    "write_table": "overview",
    "read": "record",
    "write": "record",
    "KINDS": "spec",
    "Claim": "spec",
    "check": "spec",
    "inputs_of": "spec",
    "load": "spec",
    "pairs_of": "spec",
    "tables_of": "spec",
}

__all__ = [
    "KINDS",
    "Claim",
    "check",
    "evaluate",
    "inputs_of",
    "latex",
    "load",
    "pairs_of",
    "read",
    "table",
    "tables_of",
    "write",
    "write_latex",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
