"""Calibrate the items without each pair of models that a claim compares, so that the pair has no part in choosing them.

In:  the honest matrix, the corrected consensus.
Out: ``refits.nc`` with the discriminations of every calibration, in the order and with the signs of the abilities.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import consensus, pairs

    result = pairs.without_pairs(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        [pairs.Pair(*names) for names in snakemake.params.pairs],
        **snakemake.params.options,
    )
    pairs.write(result, Path(snakemake.output[0]))
