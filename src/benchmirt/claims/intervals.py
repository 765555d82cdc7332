"""Student's intervals over lineages of unequal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmirt import resampling
from benchmirt.claims.inputs import Unavailable
from benchmirt.resampling import LEVEL, effective_clusters

__all__ = ["LEVEL", "degrees_of_freedom", "effective_clusters", "student_factor"]


def degrees_of_freedom(codes: NDArray[np.int64]) -> float:
    """Return the effective number of clusters less one, at least 0."""
    return max(effective_clusters(codes) - 1.0, 0.0)


def student_factor(codes: NDArray[np.int64], level: float = LEVEL) -> float:
    """Return the factor of a standard error in a two-sided interval.

    Raises
    ------
    Unavailable
        If the clusters are worth fewer than three equal ones.
    """
    factor = resampling.student_factor(codes, level)
    if not np.isfinite(factor):
        worth = effective_clusters(codes)
        raise Unavailable(
            f"the lineages are worth only {worth:.1f} independent models, too few to say how far models differ"
        )
    return factor
