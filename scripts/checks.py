"""Compare other ways to fit the same responses with the headline.

In:  the consensus of the headline, and the records of the fits that check it.
Out: ``checks.csv``: agreement of abilities and loadings, and of how sure they are. A check that failed is left out; its card
     in the report says why.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.dimensions import checks, consensus

    headline = consensus.read(snakemake.input.headline)
    checks.write(checks.table(headline, checks.read(snakemake.input.fits)), Path(snakemake.output[0]))
