"""Two studies side by side: whether the abilities are the same, which items drifted, how benchmarks and verdicts changed.

What is compared are calibrations (:mod:`benchmirt.ability.calibration`), so that a published folder is enough, and, where they
are at hand, the two studies' tables of verdicts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance, sheets
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.linking import (
    FALSE_DISCOVERIES,
    Link,
    Parameters,
    Population,
    axes,
    least_items,
    link,
    matched,
    transform,
)
from benchmirt.claims.verdict import CANNOT_TEST, EXPLORATORY, INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json
from benchmirt.resampling import generator, item_units, percentile
from benchmirt.sheets import Column

__all__ = ["Compared", "compare", "verdicts", "write"]

_log = logging.getLogger(__name__)

Floats = NDArray[np.float64]

REPLICATES = 200
LEAST_LINKED = 0.5
METHOD = (
    "The items that both studies calibrated link their abilities (moments of the items, without prior and error); an item "
    "drifted where Lord's chi-square, divided by what the typical item shows, is flagged at a false discovery rate of "
    f"{FALSE_DISCOVERIES}. Intervals of the correlations draw the items' testlets again. An ability of which the common items "
    "measure less than half in either study is not compared."
)
_NUMBER = Column("number", empty=True)
_VERDICTS = {
    "claim": Column(),
    "kind": Column(),
    "statement": Column(),
    "corrected_verdict": Column(choices=(REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, EXPLORATORY, CANNOT_TEST)),
    "corrected_estimate": _NUMBER,
    "corrected_low": _NUMBER,
    "corrected_high": _NUMBER,
}


@dataclass(frozen=True)
class Compared:
    """What two studies say of the same abilities, items, benchmarks and models.

    Attributes
    ----------
    link
        How the abilities of the two go together.
    abilities
        A row per pair of abilities that go together: correlation over models like this study's, its interval, the share of
        their variance that the common items measure in both studies (``linked``), and the correlation over the models that
        both studies have, with their number. Where that share is less than half, the correlations and the other study's
        places on the ability are left out.
    items
        A row per item that both calibrated.
    benchmarks
        A row per benchmark of either: its items, those in common, and how they moved.
    models
        A row per model of either study: abilities here, and there, the latter in this study's frame.
    edited
        Items of one name in both that are another question, or have other asymptotes.
    """

    link: Link
    abilities: pd.DataFrame
    items: pd.DataFrame
    benchmarks: pd.DataFrame
    models: pd.DataFrame
    edited: int


@dataclass(frozen=True)
class _Common:
    """Places of the common items in the two calibrations, and in how many the question itself is another."""

    here: NDArray[np.intp]
    there: NDArray[np.intp]
    edited: int


def _calibrated(known: Calibration) -> pd.DataFrame:
    """Rows of the items that have parameters, in their order."""
    return known.item_table[known.item_table["calibrated"].to_numpy(dtype=bool)]


def _common(here: Calibration, there: Calibration) -> _Common:
    """Find items of the same name whose question, where both know it, is the same, and so are the asymptotes."""
    place = {name: row for row, name in enumerate(there.items)}
    pairs = [(row, place[name]) for row, name in enumerate(here.items) if name in place]
    one, two = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    content = [
        _calibrated(known)["content_hash"].fillna("").to_numpy(dtype=str)[rows]
        for known, rows in ((here, one), (there, two))
    ]
    asked = (content[0] == content[1]) | (content[0] == "") | (content[1] == "")
    asked &= (here.floor[one] == there.floor[two]) & (here.ceiling[one] == there.ceiling[two])
    return _Common(one[asked], two[asked], int((~asked).sum()))


def _parameters(known: Calibration) -> Parameters:
    return Parameters(known.a, known.d, known.item_cov)


def compare(here: Calibration, there: Calibration, seed: int = 0) -> Compared:
    """Compare another study with this one.

    Parameters
    ----------
    here, there
        Calibrations of this study and of the other.
    seed
        Seeds the replicates of the intervals.

    Raises
    ------
    InputError
        If the studies have too few items in common, or different numbers of dimensions.
    """
    common = _common(here, there)
    whole = _parameters(here), _parameters(there)
    populations = Population.of(whole[0]), Population.of(whole[1])
    limits = here.floor[common.here], here.ceiling[common.here]
    first, second = whole[0][common.here], whole[1][common.there]
    if here.dims == there.dims and common.edited and len(common.here) < least_items(here.dims):
        raise InputError(
            "too few questions are the same in both studies",
            found=f"{len(common.here):,}, and {common.edited:,} of the same name with another text or number of choices",
            todo="Compare studies that asked the same questions",
        )
    found = link(first, second, populations, *limits)
    calibrated = _calibrated(here).iloc[common.here]
    items = _items(found, first, second, calibrated)
    models = _models(here, there, found)
    pairs = matched(axes(found.M, here.T, there.T))
    replicates = _replicates(found, calibrated["testlet"], here.T, there.T, seed)
    abilities = _abilities(here, there, found, pairs, replicates, models)
    for k in abilities.loc[abilities["r"].isna(), "ability"]:
        models[f"ability_{k}_there"] = np.nan
    return Compared(found, abilities, items, _benchmarks(here, there, items), models, common.edited)


def _items(found: Link, first: Parameters, second: Parameters, table: pd.DataFrame) -> pd.DataFrame:
    """Describe the common items: what is identified of each in both studies, the other's in this study's frame."""
    back = np.linalg.inv(found.M)
    a = second.a @ back
    d = second.d - a @ found.m
    return pd.DataFrame(
        {
            "question_id": table["question_id"].to_numpy(),
            "benchmark": table["benchmark"].to_numpy(),
            "mdisc_here": ident.mdisc(first.a),
            "mdisc_there": ident.mdisc(a),
            "intercept_here": first.d,
            "intercept_there": d,
            "easier": found.easier,
            "chi_square": found.chi_square,
            "p": found.p,
            "q": found.q,
            "drifted": found.drifted,
        }
    )


def _benchmarks(here: Calibration, there: Calibration, items: pd.DataFrame) -> pd.DataFrame:
    sizes = {
        name: _calibrated(known)["benchmark"].value_counts()
        for name, known in (("items_here", here), ("items_there", there))
    }
    moved = items.groupby("benchmark").agg(
        common=("question_id", "size"), drifted=("drifted", "sum"), easier=("easier", "mean")
    )
    table = pd.DataFrame(sizes).join(moved, how="outer")
    counts = ["items_here", "items_there", "common", "drifted"]
    table[counts] = table[counts].fillna(0).astype("int64")
    return table.rename_axis("benchmark").reset_index().sort_values("benchmark", ignore_index=True)


def _models(here: Calibration, there: Calibration, found: Link) -> pd.DataFrame:
    """Place the models of both on this study's abilities; the link carries the other study's over."""
    shown = [f"ability_{k + 1}" for k in range(here.dims)]
    theirs = there.model_table[shown].to_numpy(dtype=np.float64) @ np.linalg.inv(there.T)
    moved = (theirs @ found.M.T + found.m) @ here.T
    one = here.model_table.set_index("model")[["lineage", *shown]].add_suffix("_here")
    two = pd.DataFrame(moved, columns=shown, index=there.model_table["model"])
    two.insert(0, "lineage", there.model_table["lineage"].to_numpy())
    table = one.join(two.add_suffix("_there"), how="outer").rename_axis("model").reset_index()
    table.insert(1, "lineage", table.pop("lineage_here").fillna(table.pop("lineage_there")))
    return table


def _replicates(found: Link, testlet: pd.Series, T_here: Floats, T_there: Floats, seed: int) -> Floats:
    """Correlations of all pairs of abilities over replicates of the items, whole testlets together, shape (R, K, K)."""
    units = item_units(testlet.to_numpy(dtype=object), len(testlet))
    members = [np.flatnonzero((units == unit) & found.used) for unit in np.unique(units[found.used])]
    rng = generator(seed, "items of the link")
    made = []
    for _ in range(REPLICATES):
        drawn = np.concatenate([members[unit] for unit in rng.integers(0, len(members), len(members))])
        M, _ = transform(*(one[drawn] for one in found.evidence))
        made.append(axes(M, T_here, T_there))
    return np.stack(made)


def _correlation(pairs: Floats) -> float:
    """Correlation of pairs (n, 2); NaN where fewer than three say nothing."""
    return (
        float(np.clip(np.asarray(np.corrcoef(pairs.T))[0, 1], -1.0, 1.0)) if len(pairs) > 2 else float("nan")
    )


def _abilities(
    here: Calibration,
    there: Calibration,
    found: Link,
    pairs: list[tuple[int, int, float]],
    replicates: Floats,
    models: pd.DataFrame,
) -> pd.DataFrame:
    rows = []
    for k, other, r in pairs:
        axes_of_both = here.T[:, k], there.T[:, other]
        linked = min(
            float(axis @ onto @ axis) for axis, onto in zip(axes_of_both, found.measured, strict=True)
        )
        low, high = percentile(replicates[:, k, other])
        if linked < LEAST_LINKED:
            r = low = high = np.nan
            _log.warning(
                "the common questions say next to nothing about the ability %s in one of the studies: it is not compared",
                here.labels[k],
            )
        columns = [f"ability_{k + 1}_here", f"ability_{k + 1}_there"]
        shared = models.dropna(subset=columns)
        rows.append(
            {
                "ability": k + 1,
                "name": here.labels[k],
                "other": other + 1,
                "other_name": there.labels[other],
                "r": r,
                "low": low,
                "high": high,
                "linked": linked,
                "models": len(shared),
                "r_models": _correlation(shared[columns].to_numpy(dtype=np.float64))
                if np.isfinite(r)
                else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _verdict_table(path: str | Path) -> pd.DataFrame:
    """Read a study's table of verdicts; its columns lose the word that they are the corrected ones."""
    todo = "Name the claims.csv that a study wrote, as it was written"
    table = sheets.read(Path(path), "claim", _VERDICTS, what="table of verdicts", todo=todo, bare=True).frame
    return table[list(_VERDICTS)].rename(columns=lambda name: str(name).removeprefix("corrected_"))


def verdicts(here: str | Path, there: str | Path) -> pd.DataFrame:
    """Set two tables of verdicts side by side; a claim that one of them lacks has nothing there.

    ``same_claim`` says whether both state it in the same words; only then can its verdict have ``changed``.

    Raises
    ------
    InputError
        If a file is no table of verdicts, or has a claim twice.
    """
    tables = [_verdict_table(path) for path in (here, there)]
    both = tables[0].merge(tables[1], on="claim", how="outer", suffixes=("_here", "_there"), sort=False)
    other = both["statement_there"].notna() & (both["statement_here"] != both["statement_there"])
    both["same_claim"] = ~(both["statement_here"].notna() & other)
    for name in ("kind", "statement"):
        both.insert(1, name, both.pop(f"{name}_here").fillna(both.pop(f"{name}_there")))
    both["changed"] = both["verdict_here"].notna() & both["verdict_there"].notna()
    both["changed"] &= both["same_claim"] & (both["verdict_here"] != both["verdict_there"])
    return both


def write(
    compared: Compared,
    here: Calibration,
    there: Calibration,
    claims: pd.DataFrame | None,
    folder: str | Path,
) -> None:
    """Write ``abilities.csv``, ``items.csv``, ``benchmarks.csv``, ``models.csv``, ``verdicts.csv`` and ``compared.json``."""
    home = Path(folder)
    for name in ("abilities", "items", "benchmarks", "models"):
        write_csv(getattr(compared, name), home / f"{name}.csv")
    write_csv(claims if claims is not None else pd.DataFrame(columns=["claim"]), home / "verdicts.csv")
    summary: dict[str, Any] = {
        "simulated": here.simulated or there.simulated,
        "here": here.origin,
        "there": there.origin,
        "method": METHOD,
        "items": {
            "here": len(here.items),
            "there": len(there.items),
            "common": len(compared.items),
            "edited": compared.edited,
            "judged": int(np.isfinite(compared.link.chi_square).sum()),
            "drifted": int(compared.link.drifted.sum()),
        },
        "models": {
            "here": len(here.model_table),
            "there": len(there.model_table),
            "common": int(here.model_table["model"].isin(there.model_table["model"]).sum()),
        },
        "link": {name: getattr(compared.link, name) for name in ("M", "m", "inflation", "rounds")},
        "verdicts_changed": None if claims is None else int(claims["changed"].sum()),
        "provenance": provenance.record(data_hash=here.about["provenance"]["data_hash"]),
    }
    write_json(summary, home / "compared.json")
