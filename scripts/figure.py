"""Draw one figure as PNG, SVG and PDF, from result files alone.

In:  the files that the figure's entry in the catalogue names.
Out: three files of the same drawing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, figures

    stem = Path(snakemake.output[0]).with_suffix("")
    figures.draw(snakemake.params.figure, stem.parents[1], config.load(snakemake.config, Path()), stem)
