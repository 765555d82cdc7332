"""Write the fits table: engine, policy, dimensions, asymptotes, seeds and purpose of every fit.

In:  the rows, made from the configuration.
Out: ``fits.csv``, for readers; no fit depends on it.
"""

from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt import files

    rows = [{**row, "seeds": " ".join(map(str, row["seeds"]))} for row in snakemake.params.rows]
    files.write_csv(pd.DataFrame(rows), snakemake.output[0])
