"""Student's intervals over lineages of unequal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmirt.claims.inputs import Unavailable
from benchmirt.resampling import effective_clusters

__all__ = ["LEVEL", "MIN_CLUSTERS", "degrees_of_freedom", "effective_clusters", "student_factor"]

LEVEL = 0.95
MIN_CLUSTERS = 3.0
"""With lineages worth fewer equal ones than this, no interval has a meaning."""


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
    worth = effective_clusters(codes)
    if worth < MIN_CLUSTERS:
        raise Unavailable(
            f"the lineages are worth only {worth:.1f} independent models, too few to say how far models differ"
        )
    return float(stdtrit(worth - 1, (1 + level) / 2))
