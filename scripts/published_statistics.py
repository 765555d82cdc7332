"""Compare the matrix with the published statistics of items and models, and list what differs, one by one.

In:  the matrix under the published policy, the published tables, and the published numbers of items.
Out: the differences (kind, name, what, ours, published), and how many values were compared. No verdict rests on them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, published_statistics

    published_statistics.write(
        config.load(snakemake.config, Path()),
        Path(snakemake.input.matrix[0]).parent,
        Path(snakemake.input.counts),
        Path(snakemake.output[0]).parent,
    )
