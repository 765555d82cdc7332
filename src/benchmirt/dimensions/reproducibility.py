"""Reproducibility: whether other seeds find the same dimensions in the same data.

This tests the optimiser and nothing else. Each seed is compared with the consensus of the other seeds, by Tucker
congruence of the loadings and correlation of the abilities, per dimension and after an orthogonal alignment.

Beside it stands the study's own way: the first seed is rotated obliquely (quartimin) and serves as the
reference; every other seed is aligned to it by an orthogonal rotation, so that perfect agreement is
impossible unless the oblique rotation happened to be orthogonal; and the abilities are rotated the wrong
way round (theta R' where a R asks for theta R), which is harmless in two dimensions only if R reflects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmirt import identification as ident
from benchmirt.dimensions.consensus import solution_of
from benchmirt.files import write_csv
from benchmirt.identification import Solution
from benchmirt.resampling import weighted_correlation

if TYPE_CHECKING:
    from benchmirt.inference.record import FitRecord

__all__ = ["table", "write"]

COLUMNS = (
    "fit",
    "seed",
    "dimension",
    "congruence",
    "ability_r",
    "loss",
    "converged",
    "published_congruence",
    "published_ability_r",
)


def table(fits: Mapping[str, Sequence[FitRecord]]) -> pd.DataFrame:
    """Compare the seeds of each fit.

    Parameters
    ----------
    fits
        Fit records of all seeds, by name of the fit.

    Returns
    -------
    pandas.DataFrame
        One row per fit, seed and dimension. ``congruence`` and ``ability_r`` compare the seed with the consensus of
        the others (missing with one seed only, or if no other one converged); ``published_congruence`` and
        ``published_ability_r`` with the first seed, the study's way (missing for that seed). ``loss`` is
        the final loss. Seeds that did not converge are compared too, but are in no consensus.
    """
    rows: list[dict[str, Any]] = []
    for fit, records in fits.items():
        ordered = sorted(records, key=lambda record: record.seed)
        solutions = [solution_of(record) for record in ordered]
        published = _published(solutions) if solutions else []
        for i, record in enumerate(ordered):
            others = [solutions[j] for j, other in enumerate(ordered) if j != i and other.converged]
            phi, r = _against(solutions[i], others)
            for k in range(record.dims):
                values = (
                    phi[k],
                    r[k],
                    float(record.trace[-1]),
                    bool(record.converged),
                    *(column[k] for column in published[i]),
                )
                rows.append(dict(zip(COLUMNS, (fit, record.seed, k + 1, *values), strict=True)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _against(solution: Solution, others: Sequence[Solution]) -> tuple[list[float], list[float]]:
    """Return congruence and ability correlation per dimension with the consensus of the other seeds."""
    if not others:
        return [float("nan")] * solution.dims, [float("nan")] * solution.dims
    common = ident.generalised_procrustes([other.a for other in others])
    theta = np.mean(
        [ident.rotate(other, R).theta for other, R in zip(others, common.rotations, strict=True)], axis=0
    )
    mine = ident.rotate(solution, ident.align(solution.a, common.a))
    r = [weighted_correlation(mine.theta[:, k], theta[:, k]) for k in range(solution.dims)]
    return ident.congruence(mine.a, common.a).tolist(), r


def _published(solutions: Sequence[Solution]) -> list[tuple[list[float], list[float]]]:
    """Compare each seed with the first one, the study's way; the first seed has no answer."""
    rotation = ident.quartimin(solutions[0].a)
    reference = rotation.loadings
    stored = (
        solutions[0].theta @ rotation.T.T
    )  # as the study's code does; theta T is what goes with these loadings
    nothing = [float("nan")] * reference.shape[1]
    found = [(nothing, nothing)]
    for solution in solutions[1:]:
        R = ident.align(solution.a, reference)
        wrong = solution.theta @ R.T  # likewise for theta R
        found.append(
            (
                ident.congruence(solution.a @ R, reference).tolist(),
                [weighted_correlation(wrong[:, k], stored[:, k]) for k in range(reference.shape[1])],
            )
        )
    return found


def write(frame: pd.DataFrame, path: str | Path) -> None:
    """Write ``reproducibility.csv``."""
    write_csv(frame, path)
