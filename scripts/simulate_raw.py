"""Write raw files of the simulated study, as the upstream projects would: one of the two folders.

In:  nothing; what is simulated is a parameter (variant, scale, models, seed).
Out: a folder with one folder per model, in the format that its name tells. Every file is called simulated.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.simulate import raw

    folder = Path(snakemake.output[0])
    parts = [part for part, name in raw.FOLDERS.items() if name == folder.name]
    raw.write(raw.twin(**snakemake.params.twin), folder.parent, parts)
