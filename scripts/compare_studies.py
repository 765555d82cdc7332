"""Set another study beside this one.

In:  the calibrations of both, this study's verdicts and, if named, the other's.
Out: ``abilities.csv`` (do the same abilities come out), ``items.csv`` (which items drifted), ``benchmarks.csv``, ``models.csv``,
     ``verdicts.csv`` (which changed), ``compared.json`` with method and provenance, and a figure.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.ability import calibration, compared
    from benchmirt.figures import compared as figure

    here, there = (
        calibration.read(Path(path).parent) for path in (snakemake.input.here[0], snakemake.input.there[0])
    )
    found = compared.compare(here, there)
    others = snakemake.input.there[1:]
    claims = compared.verdicts(snakemake.input.claims, others[0]) if others else None
    home = Path(snakemake.output[0]).parent
    compared.write(found, here, there, claims, home)
    figure.draw(found, here, there, home / "compared")
