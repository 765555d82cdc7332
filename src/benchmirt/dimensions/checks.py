"""Checks of the headline: whether other ways to fit the same responses give the same answer.

The headline is the consensus of many starts of one engine. Beside it stand variational EM, which needs no start, sampling by
NUTS, whose posterior is exact up to sampling error, and, where asked for, a fit that models what the items of a testlet share.
Each is aligned to the headline by an orthogonal rotation, since an oblique one would hide spare dimensions, and then turned to
the abilities that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmirt import identification as ident
from benchmirt.dimensions.consensus import Floats, solution_of
from benchmirt.files import write_csv
from benchmirt.inference.record import FitRecord, load_seeds
from benchmirt.resampling import weighted_correlation

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus

__all__ = ["read", "table", "write"]

COLUMNS = (
    "fit",
    "engine",
    "converged",
    "ability",
    "congruence",
    "ability_r",
    "ability_difference",
    "ability_sd_ratio",
    "mdisc_ratio",
    "sigma_t",
)


def read(paths: Iterable[str | Path]) -> dict[str, FitRecord]:
    """Read the records of fits, of each the first seed that did not fail, by name of the fit, which is that of the folder.

    Raises
    ------
    InputError
        If a file is missing or is not a fit record.
    """
    seeds: dict[str, list[Path]] = {}
    for path in map(Path, paths):
        seeds.setdefault(path.parent.name, []).append(path)
    return {fit: records[0] for fit, files in seeds.items() if (records := load_seeds(files)[0])}


def table(headline: Consensus, checks: Mapping[str, FitRecord]) -> pd.DataFrame:
    """Compare each check with the headline, ability by ability.

    Parameters
    ----------
    headline
        Consensus of the headline's seeds.
    checks
        Records of the same models, items and number of dimensions, by name of the fit.

    Returns
    -------
    pandas.DataFrame
        One row per fit and ability: Tucker congruence of the loadings; correlation of the abilities; root mean square
        difference of the abilities in standard deviations of the check's posterior; median ratio of the headline's posterior
        standard deviations to the check's (below 1: the headline is surer than the check); ratio of mean MDISC, headline to
        check; and the standard deviation of testlets' effects, in logits, where they are modelled.

    Raises
    ------
    ValueError
        If a check has other models, items or dimensions.
    """
    rows: list[dict[str, Any]] = []
    for fit, record in checks.items():
        if (record.models, record.items, record.dims) != (headline.models, headline.items, headline.dims):
            raise ValueError(f"the fit {fit} has other models, items or dimensions than the headline")
        R = ident.align(record.a_mean, headline.a)
        plain = ident.rotate(solution_of(record), R)
        shown = ident.oblique(plain, headline.T)
        sd = _deviations(ident.rotate_theta_cov(record.theta_cov, R @ headline.T))
        ratio = np.median(_deviations(headline.ability_cov) / sd, axis=0)
        difference = np.sqrt((((headline.ability_theta - shown.theta) / sd) ** 2).mean(axis=0))
        phi = ident.congruence(shown.a, headline.a_display)
        mdisc = np.linalg.norm(headline.a, axis=1).mean() / np.linalg.norm(plain.a, axis=1).mean()
        for k in range(headline.dims):
            values = (
                fit,
                record.engine,
                bool(record.converged),
                k + 1,
                float(phi[k]),
                weighted_correlation(shown.theta[:, k], headline.ability_theta[:, k]),
                float(difference[k]),
                float(ratio[k]),
                float(mdisc),
                np.nan if record.testlets is None else record.testlets.sigma_t,
            )
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _deviations(covariances: Floats) -> Floats:
    """Return standard deviations (models, abilities) of covariances (models, abilities, abilities)."""
    return np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))


def write(frame: pd.DataFrame, path: str | Path) -> None:
    """Write ``checks.csv``."""
    write_csv(frame, path)
