"""Fetch a data set of the Hugging Face hub, or some of its files, and check them by their hashes.

In:  nothing; the data set, its revision, its files and their hashes are parameters, and so are all data sets of the study:
     whether these are to be had is asked before the first of them is fetched. The token is the client's.
Out: a folder with the files by their names in the data set, and a record of where they come from. A fault leaves
     neither behind and is told in one sentence.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, hub

    output = snakemake.output
    patience = hub.Patience(**config.load(snakemake.config, Path(), check_files=False).hub)
    home = Path(output.record.removesuffix(f"{snakemake.wildcards.source}/{snakemake.wildcards.role}.json"))
    new = [
        hub.DataSet.of(wanted)
        for place, wanted in snakemake.params.every
        if not (home / f"{place}.json").exists()
    ]
    hub.ask(new, home / "_asked.json", patience)
    hub.fetch(hub.DataSet.of(snakemake.params.data_set), Path(output.folder), Path(output.record), patience)
