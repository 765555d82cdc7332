"""Ask the Hugging Face hub about all data sets of a study, before the first of them is fetched.

In:  nothing; the data sets are parameters. Those that were fetched before are not asked about.
Out: a record of their commits. What is gated, missing or misspelt is told at once, in one sentence for all of a kind.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, hub

    home = Path(snakemake.output[0]).parent
    hub.ask(
        [
            hub.DataSet.of(wanted)
            for place, wanted in snakemake.params.data_sets
            if not (home / f"{place}.json").exists()
        ],
        Path(snakemake.output[0]),
        hub.Patience(**config.load(snakemake.config, Path(), check_files=False).hub),
    )
