"""Draw figures as PNG, SVG and PDF, from result files alone.

In:  the files that the figures' entries in the catalogue name.
Out: three files of each drawing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, figures

    study, folder = config.load(snakemake.config, Path()), Path(snakemake.output[0]).parent
    for name in snakemake.params.figures:
        figures.draw(name, folder.parent, study, folder / name)
