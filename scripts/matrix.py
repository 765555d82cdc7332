"""Merge the outcomes of all sources into one response matrix under one policy, and filter it.

In:  shards, manifests, items and models of every source.
Out: responses, items, models, coverage, summary. Items and models that a filter drops stay in the tables
     with ``kept`` false and a reason.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, matrix

    matrix.build(
        [Path(shard) for shard in snakemake.input.shards],
        config.load(snakemake.config, Path()),
        snakemake.wildcards.policy,
        Path(snakemake.output.responses).parent,
    )
