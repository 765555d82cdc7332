"""Write the report: one self-contained page, verdicts first.

In:  every claim's record, every figure, the tables and the fit records.
Out: ``report/index.html``, without any outside asset.
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

    page = Path(snakemake.output[0])
    benchmirt.report.build(
        page.parents[1],
        config.load(snakemake.config, Path()),
        page,
        snakemake.params.configfiles,
        snakemake.params.overrides,
    )
