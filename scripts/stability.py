"""Test whether disjoint halves of lineages and of items find each dimension, more than null data do.

In:  the honest matrix, the corrected consensus.
Out: ``stability.json`` with a verdict per dimension, and every split and null replicate behind it as
     tables.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import consensus, stability

    result = stability.run(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        checkpoint=Path(snakemake.output[0]).with_suffix(".checkpoint.jsonl"),
        **snakemake.params.options,
    )
    stability.write(result, *map(Path, snakemake.output))
