"""Bring all seeds of one fit into one frame, average them there, and find the rotation that is shown.

In:  fit records of all seeds, the item table.
Out: ``consensus.nc`` with the consensus solution, its covariances, the display rotation and the correlation
     of the display abilities; seeds that failed or did not converge are left out and named.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt.dimensions import consensus
    from benchmirt.inference.record import load_seeds

    records, failed = load_seeds(snakemake.input.fits)
    solution = consensus.build(
        records,
        fit=snakemake.wildcards.fit,
        item_table=pd.read_parquet(snakemake.input.item_table),
        anchors=snakemake.params.anchors,
        failed=failed,
    )
    consensus.write(solution, Path(snakemake.output[0]))
