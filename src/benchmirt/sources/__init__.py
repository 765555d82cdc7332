"""Readers of sources: one per format, all returning the same outcome table.

Nothing heavy is imported here: the workflow asks for the plan when it is parsed.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from benchmirt.config import FILES, RAW, Source, Study
from benchmirt.sources.folders import Batch, data_sets, plan

__all__ = ["Batch", "collect", "collect_all", "data_sets", "modules_of", "plan"]


def modules_of(kind: str) -> tuple[str, ...]:
    """Return the modules that collect a kind of source, to tell when their results are stale."""
    if kind in FILES:
        return ("sources.files", "math_worker")
    if kind in RAW:
        return ("sources.raw", f"sources.{kind.replace('-', '_')}", "math_worker")
    return ("sources.table", "outcomes")


def collect_all(source: Source, study: Study, out_dir: str | Path) -> list[Path]:
    """Read one source of a study with all its models; as :func:`collect`, job by job."""
    return [path for job in plan(source, study) for path in collect(source, study, out_dir, job.name)]


def collect(source: Source, study: Study, out_dir: str | Path, batch: str = "") -> list[Path]:
    """Read one source of a study, or some models of it, and write their outcomes.

    Parameters
    ----------
    source
        One of ``study.sources``.
    study
        The study; its base is the folder that paths are relative to.
    out_dir
        The folder of the source's outcomes.
    batch
        Name of one of the jobs of :func:`plan`.

    Returns
    -------
    list of Path
        The files that the job makes.

    Raises
    ------
    InputError
        If the files are malformed; it names the file, the row and the field.
    """
    if source.kind in FILES and not source.by_model:
        found: list[Path] = importlib.import_module("benchmirt.sources.files").collect(source, study, out_dir)
        return found
    if source.kind in (*RAW, *FILES):
        jobs = {job.name: job for job in plan(source, study)}
        raw = importlib.import_module("benchmirt.sources.raw")
        paths: list[Path] = raw.collect(source, study, out_dir, jobs[batch])
        return paths
    read = importlib.import_module("benchmirt.sources.table").read
    made: list[Path] = importlib.import_module("benchmirt.outcomes").write(read(source, study), out_dir)
    return made
