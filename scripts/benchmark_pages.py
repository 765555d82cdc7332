"""Write a page for each benchmark.

In:  the profiles of the benchmarks and what they are shown with.
Out: ``report/benchmark/``, a page per benchmark without any outside asset.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    import benchmirt.report
    from benchmirt import config

    folder = Path(snakemake.output[0])
    benchmirt.report.benchmark_pages(
        folder.parents[1],
        config.load(snakemake.config, Path()),
        folder,
        snakemake.params.configfiles,
        snakemake.params.overrides,
    )
