"""Test models adaptively that were held out of the calibration, beside random order, a fixed list and one-dimensional tests.

In:  the honest matrix, the consensus solution, the names of the abilities.
Out: ``curve.csv``, a row per method, number of items and measure; ``exposure.csv``, who saw what; ``adaptive.json`` with
     stopping rules, settings and provenance; and a figure of the errors against the number of items.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import matrix
    from benchmirt.adaptive import trial
    from benchmirt.dimensions import consensus, labels
    from benchmirt.figures import adaptive as figure

    result = trial.run(
        matrix.load(Path(snakemake.input.matrix[0]).parent, asymptotes=snakemake.params.asymptotes),
        consensus.read(Path(snakemake.input.consensus)),
        labels.read(Path(snakemake.input.labels)),
        **snakemake.params.options,
    )
    tables = {name: snakemake.output[name] for name in ("summary", "curve", "exposure")}
    trial.write(result, **{name: Path(path) for name, path in tables.items()})
    title, simulated = snakemake.params.study
    stem = Path(snakemake.output.curve).with_suffix("")
    figure.draw(
        result.curve, list(result.summary["abilities"].values()), stem, title=title, simulated=simulated
    )
