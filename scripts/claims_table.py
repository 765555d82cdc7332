"""List all verdicts: one row per claim, in the order of the claims file.

In:  every claim's record.
Out: ``claims.csv``; the same and the claims' parts as LaTeX tables, ``claims.tex`` and ``parts.tex``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.claims.overview import write_latex, write_table
    from benchmirt.claims.record import read

    records = [read(Path(path)) for path in snakemake.input]
    write_table(records, Path(snakemake.output.table))
    write_latex(records, *map(Path, snakemake.output.latex))
