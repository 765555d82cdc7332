"""Refit with one benchmark left out at a time, to compare it with abilities that it did not shape.

In:  the honest matrix, the corrected consensus.
Out: ``leave_one_out.nc``, aligned to the consensus and rotated as shown.
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

    result = families.leave_one_out(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        **snakemake.params.options,
    )
    families.write_leave_one_out(result, Path(snakemake.output[0]))
