"""Compare each seed with the consensus of the other seeds, per fit and dimension.

In:  fit records of all seeds of the fits ``published`` and ``corrected``.
Out: ``reproducibility.csv``. Agreement over seeds tests the optimiser; whether a dimension is in the data
     is what ``stability`` tests.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.dimensions import reproducibility
    from benchmirt.inference.record import load_seeds

    records = {fit: load_seeds(snakemake.input[fit])[0] for fit in ("published", "corrected")}
    reproducibility.write(reproducibility.table(records), Path(snakemake.output[0]))
