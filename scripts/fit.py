"""Fit one model to one response matrix with one seed.

In:  a response matrix, a row of the fits table, the engine's options and the priors.
Out: the fit record, which holds only what is reproducible, and ``.run.json`` beside it with seconds, peak
     memory, threads and cores. If numbers cease to be finite, the record says that the seed failed and why.
"""

from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    # a device per chain, whatever the number of threads: chains that share one are compiled to other bits
    launched = logs.start(
        snakemake,
        devices=max(snakemake.params.options.get("chains", 1), snakemake.params.devices),
        gpus=snakemake.params.gpus,
    )
    from pathlib import Path

    from benchmirt import files, inference, matrix

    row = snakemake.params.fit
    inference.fit_to_file(
        matrix.load(Path(snakemake.input[0]).parent, asymptotes=row["asymptotes"], testlets=row["testlets"]),
        snakemake.output.fit,
        engine=row["engine"],
        dims=row["dims"],
        seed=int(snakemake.wildcards.seed),
        options=snakemake.params.options,
        priors=snakemake.params.priors,
        devices=snakemake.params.devices,
    )
    files.write_json(launched.usage(), snakemake.output.run)
