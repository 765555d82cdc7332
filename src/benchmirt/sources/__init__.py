"""Readers of sources: one per format, all returning the same outcome table."""

from __future__ import annotations

from pathlib import Path

from benchmirt.config import Source, Study

__all__ = ["collect"]


def collect(source: Source, study: Study, out_dir: str | Path) -> list[Path]:
    """Read one source of a study and write its outcomes.

    Parameters
    ----------
    source
        One of ``study.sources``.
    study
        The study; its base is the folder that paths are relative to.
    out_dir
        The folder for ``shard0.parquet``, ``shard0.manifests.json``, ``items.parquet``, ``models.parquet``.

    Returns
    -------
    list of Path
        The four files.

    Raises
    ------
    InputError
        If the tables are malformed; it names the file, the row and the field.
    """
    from benchmirt import outcomes
    from benchmirt.sources import table

    return outcomes.write(table.read(source, study), out_dir)
