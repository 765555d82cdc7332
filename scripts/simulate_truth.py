"""Write the truth of the simulated study: what was planted, and what the raw files must give.

In:  nothing; what is simulated is a parameter (variant, scale, models, seed).
Out: tables below ``truth/``, which nothing reads but the comparison.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.simulate import raw

    raw.write_truth(raw.twin(**snakemake.params.twin), Path(snakemake.output[0]).parent)
