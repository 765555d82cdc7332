"""Tabulate every item and model: identified numbers with intervals, and those as published.

In:  the honest matrix, the corrected consensus, the bootstrap, the published fits.
Out: ``item_statistics.csv`` and ``model_statistics.csv``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt.dimensions import consensus, families, statistics
    from benchmirt.inference.record import FitRecord

    solution = consensus.read(Path(snakemake.input.consensus))
    published = [FitRecord.load(Path(path)) for path in snakemake.input.published]
    statistics.write(
        statistics.item_statistics(pd.read_parquet(snakemake.input.item_table), solution, published),
        Path(snakemake.output.item_statistics),
    )
    statistics.write(
        statistics.model_statistics(
            pd.read_parquet(snakemake.input.model_table),
            pd.read_parquet(snakemake.input.responses),
            solution,
            families.read_bootstrap(Path(snakemake.input.bootstrap)),
            published,
        ),
        Path(snakemake.output.model_statistics),
    )
