"""The published study's models by name, without pandas: what a simulated study is about is known beforehand."""

from __future__ import annotations

import csv
import functools
from pathlib import Path

from benchmirt.errors import InputError

__all__ = ["MODELS", "chosen"]

MODELS = Path("workflow", "resources", "models.csv")
"""Facts of the published study's models, relative to the folder of the workflow."""

_ROOT = Path(__file__).resolve().parents[2]
_FEWEST = 8


@functools.cache
def _rows() -> tuple[tuple[str, str], ...]:
    """Return (model, lineage) of all models; a model of unknown lineage is its own."""
    if not (_ROOT / MODELS).is_file():
        raise InputError(
            "the simulated study needs this table",
            file=_ROOT / MODELS,
            todo="Run from a complete copy of the workflow (pip install -e .)",
        )
    with open(_ROOT / MODELS, encoding="utf-8", newline="") as stream:
        return tuple(
            (row["model"], row["lineage"] or f"own:{row['model']}") for row in csv.DictReader(stream)
        )


@functools.cache
def chosen(models: int) -> tuple[str, ...]:
    """Return `models` of the study's 100 models, spread over the lineages, in the study's order.

    A lineage of n models keeps about n x models / 100 of them (largest remainders), evenly spaced in its list.

    Raises
    ------
    InputError
        If fewer than 8 or more than 100 models are asked for.
    """
    rows = _rows()
    if not _FEWEST <= models <= len(rows):
        raise InputError(
            "the simulated study",
            where="models",
            found=str(models),
            expected=f"a number from {_FEWEST} to {len(rows)}",
        )
    sizes: dict[str, int] = {}
    for _, lineage in rows:
        sizes[lineage] = sizes.get(lineage, 0) + 1
    share = {lineage: size * models / len(rows) for lineage, size in sizes.items()}
    keep = {lineage: int(part) for lineage, part in share.items()}
    by_rest = sorted(sizes, key=lambda lineage: keep[lineage] - share[lineage])
    for lineage in by_rest[: models - sum(keep.values())]:
        keep[lineage] += 1
    names: list[str] = []
    rank = dict.fromkeys(sizes, 0)
    for name, lineage in rows:
        before, rank[lineage] = rank[lineage], rank[lineage] + 1
        if rank[lineage] * keep[lineage] // sizes[lineage] > before * keep[lineage] // sizes[lineage]:
            names.append(name)
    return tuple(names)
