"""Predict held-out answers by every split and method, and score the predictions.

In:  the honest and the published matrix.
Out: ``prediction.json`` with what was done, and scores, calibration and counts per model as tables.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.prediction import station

    result = station.run(
        matrix.load(Path(snakemake.input.honest[0]).parent, asymptotes=snakemake.params.asymptotes),
        matrix.load(Path(snakemake.input.published[0]).parent, asymptotes=False),
        checkpoint=Path(snakemake.output.summary).with_suffix(".checkpoint.jsonl"),
        **snakemake.params.options,
    )
    station.write(result, *map(Path, snakemake.output))
