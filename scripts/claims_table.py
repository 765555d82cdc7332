"""List all verdicts: one row per claim, in the order of the claims file.

In:  every claim's record.
Out: ``claims.csv``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.claims.overview import write_table
    from benchmirt.claims.record import read

    write_table([read(Path(path)) for path in snakemake.input], Path(snakemake.output[0]))
