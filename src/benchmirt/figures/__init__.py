"""The figures of a study, drawn from result files alone.

This front module imports nothing heavy, so that the workflow can ask for names and inputs of figures while it
is parsed. `draw` loads the drawing code on first use.

One module per family: `verdicts` (interval plot), `abilities` (models in the ability plane), `items` (item map,
direction rose), `number` (eigenvalues, held-out score), `steadiness` (stability, reproducibility), `agreement`
(correlations), `coverage`, and `claim` (one figure per claim, by kind). `store` reads the files, `plane` holds
the geometry, `style` the look, `words` the way in which numbers and names are written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmirt.figures.catalogue import CATALOGUE, FORMATS, Entry, caption, category, inputs, names, sheets

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["CATALOGUE", "FORMATS", "Entry", "caption", "category", "draw", "inputs", "names", "sheets"]


def draw(
    name: str, results_dir: str | PathLike[str], study: Any, out_stem: str | PathLike[str]
) -> list[Path]:
    """Draw one figure from the files of a results folder and write it in every format.

    Parameters
    ----------
    name
        One of `names(...)`.
    results_dir
        The results folder of the study.
    study
        Object with attributes ``name``, ``title`` and ``simulated`` (a `benchmirt.config.Study`).
    out_stem
        Path without extension; ``.png``, ``.svg`` and ``.pdf`` are added.

    Returns
    -------
    list of Path
        The files written, in the order of `FORMATS`.

    Raises
    ------
    InputError
        If there is no such figure, or if a file that it is drawn from is missing or malformed.
    """
    from benchmirt.figures import drawing

    return drawing.draw(name, Path(results_dir), study, Path(out_stem))
