"""Compare the verdicts and the estimates of a simulated study with its truth.

In:  the claims table, the item and model statistics, the labels, and what was planted.
Out: tables of verdicts, abilities, correlations and directions, found beside planted. Not a part of the
     report: ask for it by path, ``<results>/truth/{source}/comparison/simulated_verdicts.csv``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.simulate import compare

    compare.write(
        Path(snakemake.input.claims).parents[1],
        Path(snakemake.input.truth[0]).parent,
        Path(snakemake.output[0]).parent,
    )
