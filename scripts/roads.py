"""Compare the published responses with those graded from raw files, cell by cell.

In:  the outcomes of all sources, the published table, and the published numbers of items and names of models.
Out: a row for everything that differs, how items were matched, counts by benchmark, by model and by reason of what is
     missing, and a summary. Nothing is settled here, and no matrix changes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, roads

    roads.write(
        config.load(snakemake.config, Path()),
        snakemake.input.shards,
        Path(snakemake.input.counts),
        Path(snakemake.input.roster),
        Path(snakemake.output[0]).parent,
    )
