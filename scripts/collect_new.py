"""Collect the outcomes of new models from one source of any kind, as those of the study are collected.

In:  the source's files; for raw results also the scoring rules and the facts of models.
Out: a folder with shards, manifests, items and models, or with one such folder per job.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import config, sources

    study = config.newcomers(config.load(snakemake.config, Path()))
    sources.collect_all(study.source(snakemake.wildcards.newcomers), study, Path(snakemake.output[0]))
