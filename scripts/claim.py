"""Judge one claim: estimate, interval and verdict, as the study did it and corrected.

In:  the tables that the claim's kind needs.
Out: the claim's record and a table of its parts. A claim that the study's benchmarks can't test says so,
     and why.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config
    from benchmirt.claims.judge import evaluate
    from benchmirt.claims.record import write

    results = Path(snakemake.output.record).parents[1]
    record = evaluate(snakemake.wildcards.claim, results, config.load(snakemake.config, Path()))
    write(record, Path(snakemake.output.record), Path(snakemake.output.parts))
