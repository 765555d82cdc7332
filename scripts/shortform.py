"""Choose the questions that tell most about the abilities, up to a number or a precision.

In:  a calibration.
Out: ``shortform.csv``, a row per question in the order to run them, with the standard errors expected after each, and
     ``shortform.json``, which says how the list came about.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.ability import calibration
    from benchmirt.shortform import listing

    known = calibration.read(Path(snakemake.input[0]).parent)
    options = dict(snakemake.params.options)
    form = listing.build(known, **options)
    listing.write(form, known, options, Path(snakemake.output.list).parent)
