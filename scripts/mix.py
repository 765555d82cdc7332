"""Refit to other mixes of benchmarks, to see which mix creates which dimension.

In:  the honest matrix, the corrected consensus, the refits with one benchmark left out and on resampled lineages.
Out: ``mix.csv`` with congruences and ability correlations, ``mix_replicates.csv`` with those of resampled
     lineages, ``mix.json`` with what became of each category's dimensions when it stands alone.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import consensus, families, mix

    output = snakemake.output
    result = mix.run(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        families.read_leave_one_out(Path(snakemake.input.leave_one_out)),
        families.read_bootstrap(Path(snakemake.input.bootstrap)),
        checkpoint=Path(output.summary).with_suffix(".checkpoint"),
        **snakemake.params.options,
    )
    mix.write(result, Path(output.table), Path(output.replicates), Path(output.summary))
