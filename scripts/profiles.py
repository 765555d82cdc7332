"""Profile all benchmarks: what each measures, and which of its items are worth keeping.

In:  the honest matrix, the corrected consensus with its refits and names, the fits without a benchmark, the calibration.
Out: ``benchmarks.csv``, ``groups.csv``, ``subsets.csv`` and ``items.csv``: a row per benchmark, per group of its items that was
     found, per subset that is declared, and per item.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import pandas as pd

    from benchmirt import config
    from benchmirt.ability import calibration
    from benchmirt.claims.inputs import Results
    from benchmirt.dimensions import families
    from benchmirt.profiles import station

    results = Path(snakemake.output.benchmarks).parents[1]
    profiles = station.build(
        Results(results, config.load(snakemake.config, Path())),
        calibration.read(Path(snakemake.input.calibration[0]).parent),
        families.read_leave_one_out(snakemake.input.leave_one_out),
        pd.read_csv(
            snakemake.input.coverage,
            dtype={"benchmark": "str", "model": "str"},
            keep_default_na=False,
            na_values=[""],
        ),
    )
    station.write(profiles, **snakemake.output)
