"""Name the abilities from the declared category of benchmarks that each one follows, or decline to.

In:  the honest matrix, the corrected consensus, the abilities with one benchmark left out.
Out: ``labels.json`` with the correlations, their intervals, and a name only where the evidence supports
     one.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import consensus, families, labels

    result = labels.build(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        families.read_leave_one_out(Path(snakemake.input.leave_one_out)),
    )
    labels.write(result, Path(snakemake.output[0]))
