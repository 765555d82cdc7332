"""Write the data card: what the study rests on.

In:  the outcomes' manifests, both matrices' tables and summaries.
Out: ``data_card.json``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, data_card

    data_card.build(
        [Path(file) for file in snakemake.input.shards],
        Path(snakemake.input.honest[0]).parent,
        Path(snakemake.input.published[0]).parent,
        config.load(snakemake.config, Path()),
        snakemake.output[0],
    )
