"""Judge short forms on lineages that had no part in choosing them.

In:  both matrices, both consensus solutions, the abilities without each benchmark and their names.
Out: ``published_filter.csv``, ``curve.csv``, ``correlations.csv``, ``weakening.csv`` and ``summary.json``.
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
    from benchmirt.shortform import trial

    result = trial.run(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        families.read_leave_one_out(Path(snakemake.input.leave_one_out)),
        labels.read(Path(snakemake.input.labels)),
        matrix.load(Path(snakemake.input.published_matrix[0]).parent, asymptotes=False),
        consensus.read(Path(snakemake.input.published_consensus)),
        **snakemake.params.options,
    )
    trial.write(result, **{name: Path(path) for name, path in snakemake.output.items()})
