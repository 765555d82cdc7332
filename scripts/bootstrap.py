"""Refit on resampled lineages: what the calibration of the items contributes to every interval.

In:  the honest matrix, the corrected consensus.
Out: ``bootstrap.nc``, every replicate aligned to the consensus.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import consensus, families

    result = families.bootstrap(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        **snakemake.params.options,
    )
    families.write_bootstrap(result, Path(snakemake.output[0]))
