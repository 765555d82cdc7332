"""Add the items of a new benchmark to a frozen calibration, through models that both know.

In:  a calibration, the collected outcomes of models on the new benchmark, and perhaps on questions of the calibration.
Out: the extended calibration: ``calibration.json``, ``items.csv.gz``, ``models.csv``, ``benchmarks.csv`` and ``README.md``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.ability import calibration, extension, newcomers

    known = calibration.read(Path(snakemake.input.calibration[0]).parent)
    merged = newcomers.read(snakemake.input.outcomes)
    extended = extension.extend(
        known, list(merged.models["model"]), merged.items, merged.outcomes, simulated=merged.simulated
    )
    calibration.write(extended, Path(snakemake.output[0]).parent)
