"""Simulate one source: response tables as a user would have them, and their truth elsewhere.

In:  the source's options (variant, models, items, seed).
Out: ``simulated_responses.csv.gz``, ``simulated_items.csv``, ``simulated_models.csv``, and below ``truth/``
     what was planted. No later rule reads the truth.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

if __name__ == "__main__":
    logs.start(snakemake)
    from benchmirt import simulate

    options = snakemake.params.options
    simulate.table(
        options["variant"],
        options["models"],
        options["items"],
        options["seed"],
        Path(snakemake.output.responses).parent,
        Path(snakemake.output.truth[0]).parent,
    )
