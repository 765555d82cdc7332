"""Collect one source, or some models of it: read strictly and write one outcome table, whatever the format.

In:  the source's files; for raw results also the scoring rules and the facts of models.
Out: shards (a row per model and item; a missing outcome has a reason), one manifest per model, and the
     source's items and models. A malformed file ends the job with one sentence that names file, row, field.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, sources

    study = config.load(snakemake.config, Path())
    source, batch = study.source(snakemake.params.source), snakemake.params.batch
    sources.collect(source, study, Path(snakemake.output[0]).parent, batch)
