"""Place new models on the abilities of a finished study, and predict the benchmarks that they were not run on.

In:  a calibration, the collected outcomes of the new models.
Out: ``scores.csv``, ``predictions.csv``, ``unmatched.csv`` (items that do not count, and why), ``scores.json`` with method and
     provenance, and a figure of the ability plane.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt.ability import calibration, newcomers, scores
    from benchmirt.figures import newcomers as figure

    known = calibration.read(Path(snakemake.input.calibration[0]).parent)
    merged = newcomers.read(snakemake.input.outcomes)
    new = newcomers.match(known, list(merged.models["model"]), merged.items, merged.outcomes)
    found = scores.score(known, new)
    home = Path(snakemake.output.scores).parent
    scores.write(found, known, new, merged, home)
    figure.draw(known, found.scores, home / "abilities", simulated=known.simulated or merged.simulated)
