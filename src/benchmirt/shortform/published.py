"""The item filter as the published study made it, and what it really keeps.

Items are cut into quantile bins of the published "difficulty k", and inside each bin those are kept whose discrimination
on axis k is at least the bin's quantile at the cut; at most the quantile at 1 - cut where the axis is negative, that is,
falls with what it is named after. The bins are made over all items, within each category, or within each benchmark.

Two things follow that the study does not report. An item that is the only one of its bin is always kept, so that 100
bins in a set of 300 items keep a third of them at "10 %". And "difficulty k", ``b_k`` of ``b = -a d / |a|^2``, is not
identified: it is a function of discrimination and intercept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.dimensions.families import units_of
from benchmirt.dimensions.labels import follow_categories
from benchmirt.resampling import weighted_correlation

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.matrix import ResponseData

__all__ = [
    "BINS",
    "CUTS",
    "SCOPES",
    "bins_of",
    "category_signs",
    "codes_of",
    "difficulties",
    "filtered",
    "report",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

BINS = 100
CUTS = (0.5, 0.9)
SCOPES = ("all", "category", "benchmark")


def difficulties(a: Floats, d: Floats, T: Floats) -> Floats:
    """Return the published per-dimension difficulties of items, shape (J, A), for abilities along the columns of T (K, A)."""
    square = np.maximum((a**2).sum(axis=1), 1e-12)
    return np.asarray(-(a * (d / square)[:, None]) @ T)


def bins_of(difficulty: Floats, stratum: Codes, bins: int = BINS) -> tuple[Codes, NDArray[np.int64]]:
    """Cut the items of each stratum into quantile bins.

    Bins hold their upper edge, the first its lower edge too, as in :func:`pandas.qcut`; edges that tie are one edge.

    Parameters
    ----------
    difficulty
        Shape (J,).
    stratum
        Codes of the strata from 0, shape (J,).
    bins
        Bins asked for.

    Returns
    -------
    tuple
        Bin of each item, numbered over all strata (J,), and how many edges of each stratum were lost to ties.
    """
    found = np.zeros(len(difficulty), dtype=np.intp)
    strata = int(stratum.max(initial=-1)) + 1
    lost = np.zeros(strata, dtype=np.int64)
    for one in range(strata):
        at = np.flatnonzero(stratum == one)
        if at.size == 0:
            continue
        edges = np.quantile(difficulty[at], np.linspace(0.0, 1.0, bins + 1))
        inner = np.unique(edges)
        lost[one] = len(edges) - len(inner)
        found[at] = one * bins + np.searchsorted(inner[1:-1], difficulty[at], side="left")
    return found, lost


def filtered(
    discrimination: Floats, bin_of: Codes, cut: float, *, negative: bool = False
) -> NDArray[np.bool_]:
    """Keep the items that discriminate most within their bins.

    Parameters
    ----------
    discrimination
        On one axis, shape (J,).
    bin_of
        As from :func:`bins_of`.
    cut
        Quantile at which to cut, in [0, 1): 0.9 is meant to keep a tenth.
    negative
        Whether the axis falls with what it is named after, so that the lowest are kept.

    Returns
    -------
    Shape (J,): at least the bin's quantile, interpolated linearly; items that tie with it are kept.
    """
    value = -discrimination if negative else discrimination
    order = np.lexsort((value, bin_of))
    ordered = value[order]
    _, starts, counts = np.unique(bin_of[order], return_index=True, return_counts=True)
    place = (counts - 1) * cut
    low = np.floor(place).astype(np.intp)
    below = ordered[starts + low]
    above = ordered[starts + np.minimum(low + 1, counts - 1)]
    threshold = below + (above - below) * (place - low)
    kept = np.zeros(len(value), dtype=bool)
    kept[order] = ordered >= np.repeat(np.minimum(threshold, above), counts)
    return kept


def codes_of(names: pd.Series) -> Codes:
    """Return a code from 0 for each name, those without one together, shape (J,)."""
    return np.unique(names.fillna("").to_numpy(dtype=str), return_inverse=True)[1].astype(np.intp)


def _means(data: ResponseData, chosen: NDArray[np.bool_]) -> Floats:
    """Mean outcome of each model over the chosen items that it answered, shape (N,); NaN where it answered none."""
    responses = data.responses[:, chosen]
    seen = (responses >= 0).sum(axis=1)
    return np.where(seen > 0, (responses == 1).sum(axis=1) / np.maximum(seen, 1), np.nan)


def category_signs(data: ResponseData, theta: Floats) -> tuple[list[str | None], list[float]]:
    """Return the category that each ability (N, A) goes with, by the benchmarks' means, and the sign with which it does."""
    kind, units, unit_of = units_of(data)
    category = data.item_table["category"].fillna("").to_numpy(dtype=str)
    rows: dict[str, list[Floats]] = {}
    for unit in units:
        mine = unit_of == unit
        names, counts = np.unique(category[mine], return_counts=True)
        name = unit if kind == "category" else str(names[counts.argmax()])
        score = _means(data, mine)
        r = np.array([weighted_correlation(one, score) for one in theta.T])
        if name and np.isfinite(r).all():
            rows.setdefault(name, []).append(r)
    return follow_categories(rows, theta.shape[1])


def report(data: ResponseData, consensus: Consensus, *, bins: int = BINS) -> pd.DataFrame:
    """Filter the items as the study did and report what is kept.

    Parameters
    ----------
    data
        The published matrix: kept items and models.
    consensus
        Of the published fit.
    bins
        Quantile bins of each stratum.

    Returns
    -------
    pandas.DataFrame
        A row per cut, scope, ability and benchmark: items, ``nominal`` (items that the cut should keep), ``kept``, ``share``
        of items kept, ``ties`` (edges of bins lost to equal difficulties, over the stratum), and Pearson's r over models of
        the ability with the whole mean (``r_full``) and with the filtered one (``r_form``), and of the two means with each
        other (``r_means``). An axis is turned so that it rises with its category. ``kept`` 0: the benchmark vanished.
    """
    theta, loadings = consensus.ability_theta, consensus.a_display
    difficulty = difficulties(consensus.a, consensus.d, consensus.T)
    names, signs = category_signs(data, theta)
    _, units, unit_of = units_of(data)
    strata = {
        "all": np.zeros(len(data.items), dtype=np.intp),
        "category": codes_of(data.item_table["category"]),
        "benchmark": codes_of(pd.Series(unit_of)),
    }
    full = {unit: _means(data, unit_of == unit) for unit in units}
    rows = []
    for scope in SCOPES:
        for k, sign in enumerate(signs):
            bin_of, lost = bins_of(difficulty[:, k], strata[scope], bins)
            for cut in CUTS:
                kept = filtered(loadings[:, k], bin_of, cut, negative=sign < 0)
                for unit in units:
                    mine = unit_of == unit
                    form = _means(data, mine & kept) if (mine & kept).any() else np.full(len(theta), np.nan)
                    rows.append(
                        {
                            "cut": cut,
                            "scope": scope,
                            "ability": k + 1,
                            "category": names[k],
                            "benchmark": unit,
                            "items": int(mine.sum()),
                            "nominal": (1.0 - cut) * mine.sum(),
                            "kept": int((mine & kept).sum()),
                            "share": float(kept[mine].mean()),
                            "ties": int(lost[np.unique(strata[scope][mine])].sum()),
                            "r_full": weighted_correlation(sign * theta[:, k], full[unit]),
                            "r_form": weighted_correlation(sign * theta[:, k], form),
                            "r_means": weighted_correlation(full[unit], form),
                        }
                    )
    return pd.DataFrame(rows).sort_values(["cut", "scope"], kind="stable").reset_index(drop=True)
