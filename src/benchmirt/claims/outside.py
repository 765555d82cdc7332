"""Check values from outside, beside the published table of models that reached us and the responses here.

No verdict rests on them: they tell whether both are what the published study was made from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import published_statistics
from benchmirt.claims import check_values, spec
from benchmirt.claims.check_values import CheckValue
from benchmirt.resampling import lineage_bootstrap, percentile

if TYPE_CHECKING:
    from benchmirt.claims.inputs import Results

__all__ = ["beside", "checked"]

_REPLICATES = 2000
_SEED = 0
_LEAST = 3  # models that a correlation needs

Floats = NDArray[np.float64]


def checked(claim: spec.Claim, results: Results) -> list[dict[str, Any]]:
    """Return a claim's check values as :func:`beside` does; none where the study names no published table of models.

    Raises
    ------
    InputError
        If the check values or the published table cannot be read.
    """
    study = results.study
    if not claim.check_values or "models" not in study.published_statistics:
        return []
    table = published_statistics.read(study, "models").set_index("model")
    items, models = results.items("published"), results.models("published")
    columns = published_statistics.score_columns(items, table.columns)
    published = table[list(columns)]
    names = [published_statistics.called(name) for name in models["model"]]
    here = published_statistics.scores(items, results.responses("published"), names, columns)
    family = table["family"] if "family" in table else pd.Series(table.index, index=table.index)
    found = check_values.read(spec.find_table(claim.check_values, study))
    return beside(found, published, here, family.astype(str).tolist())


def beside(
    checks: Sequence[CheckValue], published: pd.DataFrame, here: pd.DataFrame, family: Sequence[str]
) -> list[dict[str, Any]]:
    """Return each check value beside the same statistic of the published table and of the responses here.

    Parameters
    ----------
    checks
        The check values.
    published
        The published table: a row per model (its index), a column per score, NaN where there is none.
    here
        The same from the responses: other models or fewer columns may be there.
    family
        Family of each model of `published`, shape (N,), by which models are resampled for the 95 % intervals.

    Returns
    -------
    list of dict
        ``quantity``, ``column``, ``against``, ``model``; ``checked`` with ``checked_low`` and ``checked_high``;
        ``published``, ``published_low``, ``published_high`` (percentile interval; None for scores); ``agrees``: whether the
        published table gives the check value, to the digits that were printed (None where it has no such statistic);
        ``here``, and ``models``, the number of models in it.
    """
    drawn = lineage_bootstrap(
        np.unique(np.asarray(family, dtype=str), return_inverse=True)[1], _REPLICATES, _SEED
    )
    return list(_rows(checks, published, here, drawn))


def _rows(
    checks: Sequence[CheckValue], published: pd.DataFrame, here: pd.DataFrame, drawn: NDArray[np.int64]
) -> Iterator[dict[str, Any]]:
    for check in checks:
        there, _ = _statistic(check, published)
        ours, models = _statistic(check, here)
        low, high = _interval(check, published, drawn) if there is not None else (None, None)
        checked_low, checked_high = check.interval or (None, None)
        yield {
            "quantity": check.quantity,
            "column": check.column,
            "against": check.against,
            "model": check.model,
            "checked": check.value,
            "checked_low": checked_low,
            "checked_high": checked_high,
            "published": there,
            "published_low": low,
            "published_high": high,
            "agrees": None
            if there is None
            else bool(abs(there - check.value) <= 0.5 * 10.0**-check.digits + 1e-9),
            "here": ours,
            "models": models,
        }


def _statistic(check: CheckValue, table: pd.DataFrame) -> tuple[float | None, int]:
    """Return the statistic in a table of scores, None where it is undefined, and the number of models in it."""
    if check.quantity == "score":
        if check.model not in table.index or check.column not in table:
            return None, 0
        score = float(table[check.column].to_dict()[check.model])
        return (score, 1) if math.isfinite(score) else (None, 0)
    x, y = _columns(check, table)
    value = _correlation(check.quantity, x, y)
    return (value if math.isfinite(value) else None), x.size


def _columns(check: CheckValue, table: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return the two columns of a correlation where both are there; empty where the table lacks one."""
    if not {check.column, check.against} <= set(table.columns):
        return np.empty(0), np.empty(0)
    both = table[[check.column, check.against]].to_numpy(dtype=np.float64)
    both = both[np.isfinite(both).all(axis=1)]
    return both[:, 0], both[:, 1]


def _correlation(quantity: str, x: Floats, y: Floats) -> float:
    """Return Spearman's or Pearson's correlation; NaN with fewer than three models or without spread."""
    if x.size < _LEAST:
        return math.nan
    if quantity == "spearman":
        from scipy.stats import rankdata  # slow to import

        x, y = rankdata(x), rankdata(y)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else math.nan


def _interval(
    check: CheckValue, table: pd.DataFrame, drawn: NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """Return the percentile interval over resampled families; none for a score, or where a resample has no correlation."""
    if check.quantity == "score":
        return None, None
    both = table[[check.column, check.against]].to_numpy(dtype=np.float64)
    there = np.isfinite(both).all(axis=1)
    values = [
        _correlation(check.quantity, *np.repeat(both[there], times[there], axis=0).T) for times in drawn
    ]
    return percentile(values) if np.isfinite(values).all() else (None, None)
