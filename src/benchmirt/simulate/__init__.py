"""Simulated studies with a known truth. Everything written from here says `simulated` in its file name.

Nothing here imports the model, the sources or the matrix: the truth must not share a mistake with what it
tests.
"""

from __future__ import annotations

from benchmirt.simulate.design import FLIPS
from benchmirt.simulate.study import VARIANTS, Simulated, matrix, study
from benchmirt.simulate.tables import table, write_truth

__all__ = ["FLIPS", "VARIANTS", "Simulated", "matrix", "study", "table", "write_truth"]
