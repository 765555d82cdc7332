"""Which mix of benchmarks creates which dimension: refits to other mixes, compared with the solution of all items.

Four kinds of mixes: one benchmark left out (the refits of :mod:`benchmirt.dimensions.families`), the benchmarks of one
category alone, those of one category and one benchmark more, and, to tell a change of the mix from the loss of items, as
many items as a category has, drawn at random from every benchmark alike. Each mix is fitted from a cold start, so that
nothing of the whole solution is in it but its own items, aligned to the whole on the items that both have (orthogonal
Procrustes; dimensions that the prior has shrunk to nothing agree with nothing), and compared per ability by Tucker's
congruence of the display discriminations on those items and by the correlation of the abilities.

What other models would have given is told for the categories alone: each is fitted again with the same lineages left out
as in a refit of the bootstrap family, and compared with that refit.

A dimension of one category counts as absent where the prior has shrunk it to nothing. Where it is there, whether it is
more than chance is tested as in :mod:`benchmirt.dimensions.stability`, on that category's items alone, if null data sets
are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance
from benchmirt.dimensions import stability
from benchmirt.dimensions.consensus import build
from benchmirt.files import write_csv, write_json
from benchmirt.identification import Solution
from benchmirt.inference import em
from benchmirt.matrix import select
from benchmirt.progress import progress
from benchmirt.resampling import drawn_before, generator, item_units, stretch, weighted_correlation

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.dimensions.families import Bootstrap, LeaveOneOut
    from benchmirt.matrix import ResponseData

__all__ = ["Compared", "Mix", "Mixes", "alone", "compare", "mixes_of", "run", "write"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_ITEMS = 20
MOST_CATEGORIES = 4
"""With more categories they are compared, but not refitted on resampled lineages."""
COLUMNS = (
    "mix",
    "category",
    "benchmark",
    "items",
    "dims",
    "ability",
    "congruence",
    "ability_r",
    "converged",
)


@dataclass(frozen=True)
class Mix:
    """One mix of benchmarks.

    Attributes
    ----------
    kind
        ``only`` (one category), ``added`` (one category and one benchmark more), ``random`` (as many items as the category has),
        or ``without`` (one benchmark, or category, left out).
    category, benchmark
        What it is named for; an empty text where that says nothing.
    kept
        Items that inform it, shape (items,).
    """

    kind: str
    category: str
    benchmark: str
    kept: Mask


@dataclass(frozen=True)
class Compared:
    """A mix beside the solution of all items.

    Attributes
    ----------
    dims
        Dimensions that the prior has not shrunk to nothing.
    congruence, ability_r
        Per ability, shape (abilities,); 0 for what is not there at all.
    """

    dims: int
    congruence: Floats
    ability_r: Floats


@dataclass(frozen=True)
class Mixes:
    """All mixes of a study.

    Attributes
    ----------
    table
        One row per mix and ability, with `COLUMNS`.
    replicates
        One row per category alone, refit and ability: category, replicate, ability, congruence, ability_r.
    scale
        By how much deviations of the replicates are to be stretched (:func:`benchmirt.resampling.stretch`).
    alone
        Per category what became of its dimensions; see :func:`alone`.
    checkpoints
        Files to remove once the result is written.
    data_hash
        Hash of the data.
    """

    table: pd.DataFrame
    replicates: pd.DataFrame
    scale: float
    alone: list[dict[str, Any]]
    checkpoints: tuple[Path, ...]
    data_hash: str


def _labels(data: ResponseData, column: str) -> NDArray[np.object_]:
    """Return each item's value of a column as text, empty where there is none."""
    if column not in data.item_table:
        return np.full(len(data.items), "", dtype=object)
    values = data.item_table[column]
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy(dtype=object)


def categories_of(data: ResponseData) -> list[str]:
    """Return the categories with enough items to be fitted alone, in order; none where there is only one."""
    names, counts = np.unique(_labels(data, "category"), return_counts=True)
    large = {str(name) for name, count in zip(names, counts, strict=True) if name and count >= LEAST_ITEMS}
    told = [name for name in dict.fromkeys(_labels(data, "category")) if name in large]
    return told if len(told) > 1 else []


def _random(data: ResponseData, size: int, seed: int, purpose: str) -> Mask:
    """Draw about `size` items, whole testlets, the same share of every benchmark."""
    units = item_units(data.item_table["testlet"].to_numpy(dtype=object), len(data.items))
    benchmark = _labels(data, "benchmark")
    rng = generator(seed, purpose)
    share = size / len(data.items)
    kept = np.zeros(len(data.items), dtype=bool)
    for name in dict.fromkeys(benchmark):
        at = np.flatnonzero(benchmark == name)
        unit = np.unique(units[at], return_inverse=True)[1]
        sizes = np.bincount(unit)
        kept[at] = (drawn_before(sizes, rng) + sizes / 2 <= share * at.size)[unit]
    return kept


def mixes_of(data: ResponseData, seed: int = 0) -> list[Mix]:
    """Return the mixes to be fitted: categories alone, with one benchmark more, and random items like them."""
    category, benchmark = _labels(data, "category"), _labels(data, "benchmark")
    made = []
    for name in categories_of(data):
        own = category == name
        made.append(Mix("only", name, "", own))
        made.append(Mix("random", name, "", _random(data, int(own.sum()), seed, f"mix/{name}")))
        made += [
            Mix("added", name, str(other), own | (benchmark == other))
            for other in dict.fromkeys(benchmark[~own])
        ]
    return made


def compare(
    solution: Solution,
    kept: Mask,
    a: Floats,
    theta: Floats,
    T: Floats,
    weights: NDArray[Any] | None = None,
) -> Compared:
    """Compare a solution of some of the items with the one of all items.

    Parameters
    ----------
    solution
        Abilities and parameters of all items, in any frame.
    kept
        Items that inform it, shape (items,).
    a, theta
        Canonical discriminations (items, dims) and abilities (models, dims) of the whole.
    T
        Axes of the whole's display abilities, shape (dims, abilities).
    weights
        Weights of the models in the correlation, shape (models,).
    """
    own = ident.canonical(Solution(solution.theta, solution.a[kept], solution.d[kept]))[0]
    found, loadings = stability.onto(own, a[kept])
    turn = np.linalg.inv(T).T
    r = [weighted_correlation(found @ axis, theta @ axis, weights) for axis in T.T]
    return Compared(
        dims=int((loadings != 0).any(axis=0).sum()),
        congruence=ident.congruence(loadings @ turn, a[kept] @ turn),
        ability_r=np.nan_to_num(np.array(r)),
    )


def _fitted(
    data: ResponseData,
    dims: int,
    options: dict[str, Any],
    kept: Mask,
    weights: NDArray[np.int64] | None = None,
) -> tuple[Solution, bool]:
    """Fit the items of a mix, with weights of the models; return the solution and whether it settled."""
    batch = em.fit_many(
        data,
        dims,
        item_weights=kept[None].astype(np.float32),
        model_weights=None if weights is None else weights[None].astype(np.float32),
        bound=False,
        **options,
    )
    means = (np.asarray(x[0], dtype=np.float64) for x in (batch.theta, batch.a, batch.d))
    return Solution(*means), bool(batch.converged[0])


def _rows(mix: Mix, found: Compared, converged: bool) -> list[tuple[Any, ...]]:
    return [
        (
            mix.kind,
            mix.category,
            mix.benchmark,
            int(mix.kept.sum()),
            found.dims,
            ability + 1,
            float(phi),
            float(r),
            converged,
        )
        for ability, (phi, r) in enumerate(zip(found.congruence, found.ability_r, strict=True))
    ]


def _left_out(data: ResponseData, consensus: Consensus, left_out: LeaveOneOut) -> list[tuple[Any, ...]]:
    """Return the rows of the mixes that lack one benchmark, from the refits that there are."""
    labels = _labels(data, left_out.unit)
    turn = np.linalg.inv(consensus.T).T
    rows: list[tuple[Any, ...]] = []
    for place, unit in enumerate(left_out.units):
        kept = labels != unit
        if not kept.any():
            continue
        loadings = left_out.a[place][kept].astype(np.float64)
        found = Compared(
            consensus.dims,
            ident.congruence(loadings @ turn, consensus.a[kept] @ turn),
            np.nan_to_num(
                [
                    weighted_correlation(left_out.theta[place][:, k], consensus.ability_theta[:, k])
                    for k in range(consensus.T.shape[1])
                ]
            ),
        )
        named = {"benchmark": "", "category": ""} | {left_out.unit: unit}
        mix = Mix("without", named["category"], named["benchmark"], kept)
        rows += _rows(mix, found, bool(left_out.converged[place]))
    return rows


def alone(
    data: ResponseData,
    dims: int,
    found: int,
    *,
    replicates: int,
    splits: int,
    checkpoint: Path | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Say of each dimension of one category's items whether it passes on these alone.

    Parameters
    ----------
    data
        The items of one category.
    dims
        Dimensions of the fit.
    found
        Dimensions that the prior has not shrunk to nothing.
    replicates, splits
        Null data sets per dimension and splits of the data; without null data sets, dimensions that are there are not tested.
    checkpoint
        JSONL file that lets a killed job resume, or None.
    options
        Sweeps and tolerance of the fit.

    Returns
    -------
    list of dict
        Per dimension: dimension, passes (False where it is absent, None where it is not tested), and why.
    """
    absent = "shrunk to nothing by the prior"
    told = [
        {"dimension": k + 1, "passes": None, "why": "not tested"}
        if k < found
        else {"dimension": k + 1, "passes": False, "why": absent}
        for k in range(dims)
    ]
    if not replicates or not found:
        return told
    whole = build([em.fit(data, dims, **options)], fit="alone")
    result = stability.run(
        data, whole, splits=splits, replicates=replicates, null_splits=1, checkpoint=checkpoint
    )
    trial = result.p_needed > stability.P_NEEDED
    for entry in result.summary():
        here = told[int(entry["dimension"]) - 1]
        if here["passes"] is None:
            tails = (
                f"p = {entry['p_congruence']:.3g} for loadings and {entry['p_ability_r']:.3g} for abilities"
            )
            here |= {
                "passes": None if trial else entry["passes"],
                "why": f"a trial, {tails}" if trial else tails,
                "congruence": entry["congruence_mean"],
                "ability_r": entry["ability_r_mean"],
            }
    if result.why_not:
        told = [one | {"why": result.why_not} if one["passes"] is None else one for one in told]
    return told


def run(
    data: ResponseData,
    consensus: Consensus,
    left_out: LeaveOneOut,
    bootstrap: Bootstrap,
    *,
    replicates: int = 12,
    null_replicates: int = 0,
    splits: int = 50,
    sweeps: int = 1000,
    tolerance: float = 2e-3,
    seed: int = 0,
    checkpoint: Path | None = None,
) -> Mixes:
    """Fit every mix and compare it with the consensus.

    Parameters
    ----------
    data, consensus
        The responses and what was fitted to them.
    left_out
        Refits with one benchmark left out.
    bootstrap
        Refits of all items on resampled lineages; the first `replicates` that settled are compared with refits of each category.
    replicates
        Refits per category.
    null_replicates, splits
        For the dimensions of each category alone; see :func:`alone`.
    sweeps, tolerance
        Of the EM fits. The tolerance is coarser than that of a fit that is reported, as in
        :mod:`benchmirt.dimensions.stability`; the sweeps leave room for a category that hardly tells the abilities apart,
        which settles slowly.
    seed
        Of the random items.
    checkpoint
        Stem of the files that let killed tests of dimensions resume, or None.
    """
    options: dict[str, Any] = {"sweeps": sweeps, "tolerance": tolerance}
    rows = _left_out(data, consensus, left_out)
    made = mixes_of(data, seed)
    found: dict[str, Compared] = {}
    for mix in progress(made, total=len(made), what="fits of other mixes of benchmarks"):
        solution, converged = _fitted(data, consensus.dims, options, mix.kept)
        compared = compare(solution, mix.kept, consensus.a, consensus.theta, consensus.T)
        rows += _rows(mix, compared, converged)
        if mix.kind == "only":
            found[mix.category] = compared
    lone = [mix for mix in made if mix.kind == "only"]
    chosen = np.flatnonzero(bootstrap.converged)[:replicates]
    refitted = _refitted(data, bootstrap, lone if len(lone) <= MOST_CATEGORIES else [], chosen, options)
    told, checkpoints = [], []
    for number, mix in enumerate(lone):
        path = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}{number}.jsonl")
        entries = alone(
            select(data, items=mix.kept),
            consensus.dims,
            found[mix.category].dims,
            replicates=null_replicates,
            splits=splits,
            checkpoint=path,
            **options,
        )
        told.append({"category": mix.category, "items": int(mix.kept.sum()), "dimensions": entries})
        checkpoints += [path] if path is not None else []
    return Mixes(
        table=pd.DataFrame(rows, columns=list(COLUMNS)),
        replicates=refitted,
        scale=stretch(bootstrap.weights[chosen], data.lineage),
        alone=told,
        checkpoints=tuple(checkpoints),
        data_hash=data.hash,
    )


def _refitted(
    data: ResponseData,
    bootstrap: Bootstrap,
    lone: Sequence[Mix],
    chosen: Sequence[int] | NDArray[np.intp],
    options: dict[str, Any],
) -> pd.DataFrame:
    """Refit each category alone with the lineages left out that a refit of all items left out, and compare the two."""
    tasks = [(mix, int(r)) for mix in lone for r in chosen]
    rows = []
    for mix, r in progress(
        tasks, total=len(tasks), what="refits of one category with a fifth of the lineages left out"
    ):
        weights = bootstrap.weights[r]
        solution, converged = _fitted(data, bootstrap.a.shape[2], options, mix.kept, weights)
        whole = bootstrap.a[r].astype(np.float64), bootstrap.theta[r].astype(np.float64)
        compared = compare(solution, mix.kept, *whole, bootstrap.T[r], weights)
        rows += [
            (mix.category, r, k + 1, float(phi), float(agreed), converged)
            for k, (phi, agreed) in enumerate(zip(compared.congruence, compared.ability_r, strict=True))
        ]
    return pd.DataFrame(
        rows, columns=["category", "replicate", "ability", "congruence", "ability_r", "converged"]
    )


def write(result: Mixes, table_path: str | Path, replicates_path: str | Path, json_path: str | Path) -> None:
    """Write ``mix.csv``, ``mix_replicates.csv`` and ``mix.json``; then drop the checkpoints."""
    write_csv(result.table, table_path)
    write_csv(result.replicates, replicates_path)
    write_json(
        {
            "alone": result.alone,
            "scale": result.scale,
            "provenance": provenance.record(data_hash=result.data_hash),
        },
        json_path,
    )
    for path in result.checkpoints:
        path.unlink(missing_ok=True)
