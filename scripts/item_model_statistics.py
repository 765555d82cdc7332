"""Tabulate every item and model: identified numbers with intervals, and those as published.

In:  the honest matrix, the corrected consensus, the refits (bootstrap, leave-one-out), the published fits.
Out: ``item_statistics.csv`` and ``model_statistics.csv``.
"""

from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt.dimensions import consensus, families, statistics
    from benchmirt.inference.record import load_seeds

    responses, items, models = (pd.read_parquet(table) for table in snakemake.input.matrix)
    solution = consensus.read(snakemake.input.consensus)
    bootstrap = families.read_bootstrap(snakemake.input.bootstrap)
    left_out = families.read_leave_one_out(snakemake.input.left_out)
    published, _ = load_seeds(snakemake.input.published)
    statistics.write(statistics.item_statistics(items, solution, published), snakemake.output.item_statistics)
    statistics.write(
        statistics.model_statistics(models, responses, items, solution, bootstrap, left_out, published),
        snakemake.output.model_statistics,
    )
