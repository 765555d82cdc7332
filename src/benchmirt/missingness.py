"""Is what is missing related to ability? Per benchmark, over models.

Missing outcomes that go with ability (the weak models crash, only the strong ones are reported) bias what the
observed ones say. Each benchmark's share of missing outcomes is correlated with the models' score on the other
benchmarks: the mean of outcome less the item's mean, so that a model is not called able for having met easy items.
Where there is no other benchmark, the score is that on the benchmark itself.

The interval is a lineage-cluster bootstrap (:mod:`benchmirt.resampling`), since models are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import resampling
from benchmirt.outcomes import FAILURES, REASONS

__all__ = ["COLUMNS", "GROUPS", "table"]

GROUPS: Mapping[str, tuple[str, ...]] = {
    "any reason": REASONS,
    "failed": FAILURES,
}
"""Reasons that are looked at together: missing for whatever reason of all items, or failed of what was run."""

COLUMNS = (
    *("benchmark", "why", "missing", "share", "models", "r", "low", "high", "level", "interval_kind"),
    "related",
)
"""``r``: correlation of the share that is missing with the score; ``related``: yes, no, or cannot test."""

_UNSEEN = ("not_run", "excluded")
_FEWEST = 10  # models; fewer say nothing
_REPLICATES = 500
_AT_ONCE = 256


def table(
    values: NDArray[np.int8],
    reasons: NDArray[np.uint8],
    item_table: pd.DataFrame,
    model_table: pd.DataFrame,
) -> pd.DataFrame:
    """Correlate what is missing with the score, per benchmark and group of reasons.

    Parameters
    ----------
    values
        int8 of shape (J, N): 1, 0, or -1 where missing.
    reasons
        uint8 of shape (J, N): 0, or 1 + the place in :data:`benchmirt.outcomes.REASONS`.
    item_table, model_table
        ``items.parquet`` and ``models.parquet`` in the same order; models that are not kept do not count.

    Returns
    -------
    DataFrame
        Columns :data:`COLUMNS`, a row per benchmark and group of which anything is missing.
    """
    kept = model_table["kept"].to_numpy(dtype=bool)
    codes, benchmarks = pd.factorize(item_table["benchmark"])
    counts, excess, observed = _sums(values, reasons, codes, len(benchmarks), kept)
    lineage = pd.factorize(model_table.loc[kept, "lineage"])[0]
    rows = []
    for place, benchmark in enumerate(benchmarks):
        others = np.arange(len(benchmarks)) != place if len(benchmarks) > 1 else np.array([True])
        score = _ratio(excess[others].sum(axis=0), observed[others].sum(axis=0))
        items = int((codes == place).sum())
        for why, group in GROUPS.items():
            missing = _of(counts[place], group)
            if not missing.any():
                continue
            base = items - (_of(counts[place], _UNSEEN) if why == "failed" else 0 * missing)
            share = _ratio(missing, base)
            rows.append(
                {
                    "benchmark": benchmark,
                    "why": why,
                    "missing": int(missing.sum()),
                    "share": float(missing.sum() / base.sum()),
                    **_related(share, score, lineage, f"{benchmark}: {why}"),
                }
            )
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    return made.astype({"missing": "int64", "models": "int64"})


def _of(counts: NDArray[np.int64], group: tuple[str, ...]) -> NDArray[np.int64]:
    """Return how many outcomes are missing for some reasons; (N,)."""
    total: NDArray[np.int64] = counts[[REASONS.index(reason) + 1 for reason in group]].sum(axis=0)
    return total


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """Return above / below, NaN where there is nothing below."""
    ratio = np.full(above.shape, np.nan)
    np.divide(above.astype(np.float64), below.astype(np.float64), out=ratio, where=below > 0)
    return ratio


def _sums(
    values: NDArray[np.int8],
    reasons: NDArray[np.uint8],
    codes: NDArray[np.int64],
    benchmarks: int,
    kept: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return by benchmark and kept model: outcomes by reason (B, R + 1, N), outcomes above the items' means, observed (B, N)."""
    models = np.flatnonzero(kept)
    right = (values[:, models] == 1).sum(axis=1)
    mean = np.nan_to_num(_ratio(right, (values[:, models] >= 0).sum(axis=1)))
    counts = np.zeros((benchmarks, len(REASONS) + 1, models.size), dtype=np.int64)
    excess = np.zeros((benchmarks, models.size))
    observed = np.zeros((benchmarks, models.size), dtype=np.int64)
    for start in range(0, models.size, _AT_ONCE):
        chosen = models[start : start + _AT_ONCE]
        own, why = values[:, chosen], reasons[:, chosen]
        above = np.where(own >= 0, own - mean[:, None], 0.0)
        for code in range(benchmarks):
            at, to = codes == code, slice(start, start + chosen.size)
            excess[code, to] = above[at].sum(axis=0)
            observed[code, to] = (own[at] >= 0).sum(axis=0)
            for number in np.unique(why[at]):
                counts[code, number, to] = (why[at] == number).sum(axis=0)
    return counts, excess, observed


def _related(
    share: NDArray[np.float64], score: NDArray[np.float64], lineage: NDArray[np.int64], purpose: str
) -> dict[str, object]:
    """Return the correlation of two numbers of models, its interval, and whether that leaves out 0."""
    both = np.isfinite(share) & np.isfinite(score)
    x, y, cluster = share[both], score[both], lineage[both]
    nothing = {"models": int(both.sum()), "r": None, "low": None, "high": None, "level": None}
    if both.sum() < _FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {**nothing, "interval_kind": None, "related": "cannot test"}
    found = resampling.cluster_interval(
        lambda weights: resampling.weighted_correlation(x, y, weights),
        cluster,
        replicates=_REPLICATES,
        purpose=f"missingness of {purpose}",
        transform="fisher",
    )
    tested = bool(np.isfinite([found.low, found.high]).all())
    return {
        **nothing,
        "r": found.estimate,
        "low": found.low if tested else None,
        "high": found.high if tested else None,
        "level": found.level,
        "interval_kind": found.kind,
        "related": ("no" if found.low <= 0 <= found.high else "yes") if tested else "cannot test",
    }
