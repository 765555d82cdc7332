"""Is 1 the desired outcome? Benchmark by benchmark, by models of which it is known that one is better than the other.

The direction of a benchmark is declared by its scoring rule, and a rule may be wrong: attack success for its opposite, the
judge's label for its negation. The configuration may name pairs of models (``models.contrasts``), such as a model and the
same one whose refusals were taken out; where the better one passes surely less often, the benchmark is turned round.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchmirt.config import Study
from benchmirt.errors import InputError, nearest

__all__ = ["AS_DECLARED", "CANNOT_TELL", "TURNED", "table"]

_log = logging.getLogger(__name__)
AS_DECLARED, TURNED, CANNOT_TELL = "as declared", "turned round", "cannot tell"
_Z = 1.959964  # of a 95 % interval


def table(coverage: pd.DataFrame, items: pd.DataFrame, study: Study) -> list[dict[str, Any]]:
    """Compare the pass rates of pairs of models, and tell in the log which benchmarks are turned round.

    Parameters
    ----------
    coverage
        ``coverage.csv`` of a matrix: ``benchmark``, ``model``, ``observed`` outcomes and their ``mean``.
    items
        ``items.parquet`` of the matrix: ``benchmark`` and ``category``.
    study
        Its ``models["contrasts"]``; pairs of which a model does not take part are left out.

    Returns
    -------
    list of dict
        A row per pair and benchmark: ``benchmark``, ``better``, ``worse``, the two means, their ``difference`` with a 95 %
        interval (normal, as if the two were independent, which is wider as long as they pass the same items), and the
        ``direction``.

    Raises
    ------
    InputError
        If a pair names a model, or a benchmark or category, that is not there.
    """
    rows = []
    for place, contrast in enumerate(study.models["contrasts"]):
        where = f"models.contrasts[{place}]"
        if not (study.takes(contrast["better"]) and study.takes(contrast["worse"])):
            continue
        for side in ("better", "worse"):
            _check(contrast[side], coverage["model"], f"{where}.{side}", "model")
        known = [*items["benchmark"], *items["category"].dropna()]
        for group in contrast["of"]:
            _check(group, known, f"{where}.of", "benchmark or category")
        meant = items.loc[
            items[["benchmark", "category"]].isin(contrast["of"]).any(axis=1), "benchmark"
        ].unique()
        for benchmark in meant:
            own = coverage[coverage["benchmark"] == benchmark].set_index("model")
            rows.append({"benchmark": str(benchmark), **_compared(own, contrast)})
    for row in rows:
        if row["direction"] == TURNED:
            _log.warning(
                "%s: %s passes less often (%.2f) than %s (%.2f), which models.contrasts calls worse; is its direction right?",
                *(row[name] for name in ("benchmark", "better", "better_mean", "worse", "worse_mean")),
            )
    return rows


def _check(name: str, known: Sequence[str] | pd.Series, where: str, what: str) -> None:
    """Stop at a name that is not there."""
    names = sorted({str(one) for one in known})
    if name not in names:
        near = nearest(name, names)
        raise InputError(
            f"there is no such {what}",
            where=where,
            found=f'"{name}"',
            todo=f'Did you mean "{near}"?' if near else "Correct it, or take the pair out",
        )


def _compared(own: pd.DataFrame, contrast: Mapping[str, str]) -> dict[str, Any]:
    """Return the difference of two models on one benchmark; `own` has a row per model."""
    counts, rates = (dict(zip(own.index, own[name], strict=True)) for name in ("observed", "mean"))
    names = [contrast[side] for side in ("better", "worse")]
    numbers = [int(counts[name]) for name in names]
    means = [float(rates[name]) if counts[name] else None for name in names]
    told: dict[str, Any] = {
        "better": contrast["better"],
        "worse": contrast["worse"],
        "better_mean": means[0],
        "worse_mean": means[1],
        "difference": None,
        "low": None,
        "high": None,
        "direction": CANNOT_TELL,
    }
    if means[0] is None or means[1] is None:
        return told
    # with a success and a failure added to each, so that shares of 0 and 1 are not certain
    shares = [(mean * n + 1) / (n + 2) for mean, n in zip((means[0], means[1]), numbers, strict=True)]
    spread = _Z * math.sqrt(sum(p * (1 - p) / (n + 2) for p, n in zip(shares, numbers, strict=True)))
    low, high = shares[0] - shares[1] - spread, shares[0] - shares[1] + spread
    direction = AS_DECLARED if low > 0 else TURNED if high < 0 else CANNOT_TELL
    return told | {"difference": means[0] - means[1], "low": low, "high": high, "direction": direction}
