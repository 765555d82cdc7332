"""Freeze a finished study: items with their uncertainty, abilities, population and benchmarks, in a folder to copy or publish.

In:  the honest matrix, the corrected consensus, the names of the abilities, the fits without a benchmark, the model statistics.
Out: ``calibration.json``, ``items.csv.gz``, ``models.csv``, ``benchmarks.csv`` and ``README.md``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt import config, files, matrix
    from benchmirt.ability import calibrate, calibration
    from benchmirt.dimensions import consensus, families, labels

    study = config.load(snakemake.config, Path())
    items = Path(snakemake.input.matrix[1])
    frozen = calibrate.build(
        study,
        matrix.load(items.parent, asymptotes=study.fits["asymptotes"]),
        pd.read_parquet(items),
        consensus.read(snakemake.input.consensus),
        labels.read(snakemake.input.labels),
        pd.read_csv(
            snakemake.input.model_statistics, dtype={"model": "str"}, keep_default_na=False, na_values=[""]
        ),
        families.read_leave_one_out(snakemake.input.leave_one_out),
        simulated=files.read_json(snakemake.input.summary)["simulated"],
    )
    calibration.write(frozen, Path(snakemake.output[0]).parent)
