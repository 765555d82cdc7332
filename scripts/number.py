"""Find the number of dimensions in two ways: held-out lineages, and eigenvalues against a null.

In:  the honest matrix.
Out: ``number.json`` with what each method chose and whether they agree, and the folds and eigenvalues
     behind it as tables.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.dimensions import number

    data = matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes)
    number.write(number.run(data, **snakemake.params.options), *map(Path, snakemake.output))
