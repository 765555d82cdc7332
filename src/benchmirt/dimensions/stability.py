"""Stability: whether a dimension comes back in other models and in other items.

Congruence: the lineages are split into two halves, items are calibrated on each half alone, and the loadings of the two
are compared per dimension (Tucker). Ability correlation: the items are split into two halves (whole testlets, each
benchmark by itself), models are scored on each half alone, and the abilities are compared per dimension (Pearson). Both
are compared after an orthogonal alignment of each half to the solution of all the data; never after an oblique rotation,
which hides spare dimensions.

A dimension too many turns the others, in each half its own way. Dimensions are therefore judged from the last one on, and one
that does not pass is left out of the fits on which those before it are judged.

Neither number means anything by itself: alignment and positive means lift both. Dimension k is therefore
compared with data simulated from the fitted (k - 1)-dimensional model (item intercepts only for k = 1) that go
through the same steps; p is the share of null data sets that agree at least as well, counting the data themselves.
The prior shrinks a dimension that the data do not need towards nothing, in null data nearly always; a dimension by
which a typical item discriminates less than .05 logits per standard deviation counts as absent and agrees with nothing:
0. Where it is absent from all the data already, halves are not looked at. Since any small agreement is more than that,
two tests that need no model stand beside the null: the mean congruence that is left when the items of one half are
scrambled, in all splits alike, and for the abilities the distribution under random signs of the lineages. Scrambled means
shuffled, since what the first dimension leaks into another one has one sign and agrees by that alone; the loadings of the
first dimension itself may all be alike, as in a Rasch model, and get random signs instead. A dimension passes if all four p
are at most .01 and it is absent from one half or both in at most one split of forty: what comes and goes with
the models that are drawn is not stable, however well it agrees with itself where it is found.

Null replicates end early once ten of them agree at least as well as the data in either number: p is then ten over
their number (Besag and Clifford 1991, *Biometrika* 78, 301-304).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance
from benchmirt.dimensions.checkpoint import Checkpoint, fingerprint
from benchmirt.dimensions.nulls import Gaussian, Intercepts, fit_null, null_data
from benchmirt.files import write_csv, write_json
from benchmirt.identification import Solution
from benchmirt.matrix import select
from benchmirt.progress import progress
from benchmirt.resampling import (
    clusters,
    generator,
    item_halves,
    lineage_halves,
    monte_carlo_p,
    weighted_correlation,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.matrix import ResponseData

__all__ = ["LEAST_LINEAGES", "P_NEEDED", "Stability", "run", "untestable", "write"]

Floats = NDArray[np.float64]

LEAST_LINEAGES = 8
P_NEEDED = 0.01
_LEAST_MODELS_PER_HALF = 4  # beyond the number of dimensions
_LEAST_ITEMS_PER_HALF = 10
_ENOUGH = 10  # null replicates that agree at least as well as the data: no more are needed
_SCRAMBLES = 99
_SIGNS = 9999
_CHUNK = 5  # splits per line of the checkpoint
_ROOM = 0.55  # share of models or items that a half is given room for
_NOTHING = 0.05  # root mean square discrimination: below, a standard deviation of ability moves a chance by a point at most
MOST_ABSENT = 0.025  # share of splits in which a half may lack a dimension that counts as stable

_SPLITS = ("split", "dimension", "dims", "congruence", "ability_r")
_NULL = ("replicate", "split", "dimension", "congruence", "ability_r")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stability:
    """Agreement of each dimension over halves, and its null.

    Attributes
    ----------
    dims
        Number of dimensions of the fit.
    splits
        One row per split and dimension: split, dimension, dims (of the fits on which the dimension is judged), congruence,
        ability_r.
    scrambled
        Mean congruence over splits after scrambling the items of one half, shape (times, dims).
    products
        Mean over splits of each lineage's share in the ability correlation, shape (lineages, dims); they sum to the
        mean ability correlation.
    null
        One row per null replicate, split and dimension: replicate, split, dimension, congruence, ability_r.
    replicates
        Null replicates per dimension.
    why_not
        Why the test could not be made, or None.
    seed
        Seed of splits and nulls.
    data_hash
        Hash of the data.
    checkpoint
        File to remove once the result is written, or None.
    """

    dims: int
    splits: pd.DataFrame
    scrambled: Floats
    products: Floats
    null: pd.DataFrame
    replicates: int
    why_not: str | None
    seed: int
    data_hash: str
    checkpoint: Path | None = None

    @property
    def p_needed(self) -> float:
        """Largest p that passes: .01, or the smallest p that this few replicates can give."""
        return _p_needed(self.replicates)

    def summary(self) -> list[dict[str, Any]]:
        """Return one entry per dimension, as ``stability.json`` holds them; empty where nothing could be tested."""
        return [
            _entry(
                int(str(k)),
                rows,
                self.null[self.null["dimension"] == k],
                self.scrambled[:, int(str(k)) - 1],
                self.products[:, int(str(k)) - 1],
                self.replicates,
                self.seed,
            )
            for k, rows in self.splits.groupby("dimension", sort=True)
        ]


def _p_needed(replicates: int) -> float:
    return max(P_NEEDED, 1 / (1 + replicates))


def _entry(
    dimension: int,
    rows: pd.DataFrame,
    null: pd.DataFrame,
    scrambled: Floats,
    products: Floats,
    replicates: int,
    seed: int,
) -> dict[str, Any]:
    """Judge one dimension from its rows and columns of the tables and arrays of :class:`Stability`."""
    entry: dict[str, Any] = {
        "dimension": dimension,
        "dims": int(rows["dims"].iloc[0]),
        "scrambled_congruence": float(scrambled.mean()),
        "p_scrambled": monte_carlo_p(float(rows["congruence"].mean()), scrambled),
        "p_lineages": _sign_p(products, seed),
        "replicates": int(null["replicate"].nunique()),
        "absent": float((rows["congruence"] == 0).mean()),
    }
    passes = bool(
        max(entry["p_scrambled"], entry["p_lineages"]) <= P_NEEDED and entry["absent"] <= MOST_ABSENT
    )
    for name in ("congruence", "ability_r"):
        observed = float(rows[name].mean())
        low, high = np.quantile(rows[name], [0.025, 0.975])
        entry |= {f"{name}_mean": observed, f"{name}_low": float(low), f"{name}_high": float(high)}
        if null.empty:
            entry |= {f"null_{name}": None, f"p_{name}": None}
            continue
        means = null.groupby("replicate")[name].mean().to_numpy()
        stopped = means.size < replicates and (means >= observed).sum() >= _ENOUGH
        p = _ENOUGH / means.size if stopped else monte_carlo_p(observed, means)
        entry[f"null_{name}"] = {
            "mean": float(means.mean()),
            "q95": float(np.quantile(means, 0.95)),
            "q99": float(np.quantile(means, 0.99)),
        }
        entry[f"p_{name}"] = float(p)
        passes = bool(passes and p <= _p_needed(replicates))
    return entry | {"passes": None if null.empty else passes}


def _sign_p(products: Floats, seed: int) -> float:
    """Share of random signs of the lineages under which their products sum to at least as much as they do."""
    signs = generator(seed, "signs of the lineages").choice([-1.0, 1.0], size=(_SIGNS, products.size))
    return monte_carlo_p(float(products.sum()), signs @ products + 1e-12 * np.abs(products).sum())


@dataclass(frozen=True)
class _Scramble:
    """What becomes of the items of one half: an order and signs, each of shape (items,)."""

    order: NDArray[np.intp]
    signs: Floats

    @classmethod
    def draw(cls, items: int, number: int, seed: int) -> _Scramble:
        rng = generator(seed, f"scrambled items/{number}")
        return cls(rng.permutation(items), rng.choice([-1.0, 1.0], size=items))

    def congruence(self, left: Floats, right: Floats) -> Floats:
        """Congruence of loadings with the scrambled ones, the first dimension's by signs and the others' by order."""
        shuffled = right[self.order]
        found = ident.congruence(left, shuffled @ ident.align(shuffled, left))
        found[0] = abs(ident.congruence(left[:, :1], right[:, :1] * self.signs[:, None])[0])
        return found


def untestable(data: ResponseData, dims: int) -> str | None:
    """Say in a sentence why these data are too few to split into halves, or return None."""
    models, items = data.responses.shape
    lineages = int(np.unique(clusters(data.lineage)).size)
    if lineages < LEAST_LINEAGES:
        return (
            f"there are {lineages} independent lineages of models and at least {LEAST_LINEAGES} are needed to compare "
            "halves"
        )
    if models // 2 < dims + _LEAST_MODELS_PER_HALF:
        return (
            f"half of the {models} models are too few for {dims} dimensions: {dims + _LEAST_MODELS_PER_HALF} "
            "are needed in each half"
        )
    if items // 2 < _LEAST_ITEMS_PER_HALF:
        return f"half of the {items} items are too few: {_LEAST_ITEMS_PER_HALF} are needed in each half"
    halves = lineage_halves(data.lineage, 10, 0)
    smallest = min(int(min(half.sum(), (~half).sum())) for half in halves)
    if smallest < dims + _LEAST_MODELS_PER_HALF:
        return (
            f"one lineage holds so many of the {models} models that a half of the lineages has only {smallest} of "
            f"them; {dims + _LEAST_MODELS_PER_HALF} are needed for {dims} dimensions"
        )
    return None


def _congruences(
    data: ResponseData,
    dims: int,
    model_halves: NDArray[np.bool_],
    item_sides: NDArray[np.bool_],
    reference: Floats,
    scrambles: Sequence[_Scramble],
    options: dict[str, Any],
) -> tuple[Floats, Floats, Floats, Floats]:
    """Fit both halves of every split and compare them dimension by dimension.

    Parameters
    ----------
    data, dims
        What to fit.
    model_halves, item_sides
        Masks of the first halves, shapes (splits, models) and (splits, items).
    reference
        Loadings of all the data that say which dimension is which, (items, dims); 0 for a dimension that is absent, which
        agrees with nothing.
    scrambles
        Of the items of the second halves.

    Returns
    -------
    Congruences and ability correlations, each of shape (splits, dims), those of scrambled items, shape (splits, scrambles, dims),
    and the lineages' shares in the ability correlations, shape (splits, lineages, dims).
    """
    models, splits = len(data.models), len(model_halves)
    present = np.flatnonzero((reference**2).sum(0) > 0)
    phi, r = np.zeros((splits, dims)), np.zeros((splits, dims))
    scrambled = np.zeros((splits, len(scrambles), dims))
    cluster = clusters(data.lineage)
    products = np.zeros((splits, int(cluster.max()) + 1, dims))
    for s in range(splits):
        left, right = (_loadings(data, dims, half, reference, options) for half in _both(model_halves[s]))
        phi[s, present] = ident.congruence(left, right)[present]
        for m, scramble in enumerate(scrambles):
            scrambled[s, m] = scramble.congruence(left, right)
        sides = [_abilities(data, dims, half, reference, options) for half in _both(item_sides[s])]
        for k in present:
            agreed = weighted_correlation(sides[0][:, k], sides[1][:, k])
            if np.isfinite(agreed):
                r[s, k] = agreed
                z = [(side[:, k] - side[:, k].mean()) / side[:, k].std() for side in sides]
                products[s, :, k] = np.bincount(cluster, weights=z[0] * z[1]) / models
    return phi, r, scrambled, products


def _both(half: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return half, ~half


def _fit(data: ResponseData, dims: int, options: dict[str, Any], **weights: Any) -> Solution:
    """Fit one data set and return its canonical solution."""
    from benchmirt.inference import em

    batch = em.fit_many(data, dims, bound=False, **weights, **options)
    means = (np.asarray(x[0], dtype=np.float64) for x in (batch.theta, batch.a, batch.d))
    return ident.canonical(Solution(*means))[0]


def _places(half: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the places of a half, filled up with others so that nearly all halves have one size.

    A fit is compiled for its size, so the others take part with weight 0.
    """
    size = int(np.ceil(_ROOM * half.size)) + 1
    if half.sum() > size:
        return np.arange(half.size)
    return np.sort(np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])[:size])


def _loadings(
    data: ResponseData, dims: int, half: NDArray[np.bool_], reference: Floats, options: dict[str, Any]
) -> Floats:
    """Return loadings of all items from some of the models, aligned to the reference."""
    places = _places(half)
    weights = half[places].astype(np.float32)[None]
    return onto(_fit(select(data, models=places), dims, options, model_weights=weights), reference)[1]


def _abilities(
    data: ResponseData, dims: int, half: NDArray[np.bool_], reference: Floats, options: dict[str, Any]
) -> Floats:
    """Return abilities of all models from some of the items, aligned to the reference."""
    places = _places(half)
    weights = half[places].astype(np.float32)[None]
    found = _fit(select(data, items=places), dims, options, item_weights=weights)
    return onto(found, reference[places], weights[0])[0]


def onto(solution: Solution, reference: Floats, weights: NDArray[Any] | None = None) -> tuple[Floats, Floats]:
    """Align a solution to reference loadings, leaving out the dimensions that it has shrunk to nothing.

    Parameters
    ----------
    solution
        A solution in its canonical frame.
    reference
        Loadings to align to, shape (items, dims).
    weights
        Weight of each item in the alignment, shape (items,).

    Returns
    -------
    Abilities (models, dims) and loadings (items, dims). If r of the dims are left, they are matched to those r
    dimensions of the reference that lie nearest (least squares, as in the alignment), and the others are 0: a solution
    with one dimension, turned into a plane, would else seem to have two.
    """
    size = np.sqrt((solution.a**2).mean(0))
    alive = size > _NOTHING
    if alive.all():
        R = ident.align(solution.a, reference, weights)
        return solution.theta @ R, solution.a @ R
    theta, a = np.zeros_like(solution.theta), np.zeros_like(solution.a)
    if alive.any():
        kept = solution.a[:, alive]
        seen = kept if weights is None else kept * np.asarray(weights)[:, None]
        _, columns = ident.pairing(np.abs(seen.T @ reference))
        columns = np.sort(columns)
        R = ident.align(kept, reference[:, columns], weights)
        theta[:, columns], a[:, columns] = solution.theta[:, alive] @ R, kept @ R
    return theta, a


def run(
    data: ResponseData,
    consensus: Consensus,
    *,
    splits: int = 50,
    replicates: int = 100,
    null_splits: int = 4,
    seed: int = 0,
    sweeps: int = 100,
    tolerance: float = 2e-3,
    checkpoint: Path | None = None,
) -> Stability:
    """Judge the stability of the dimensions of a consensus.

    Parameters
    ----------
    data
        The data of the consensus.
    consensus
        Says how many dimensions there are and which is which.
    splits
        Splits of the data into halves.
    replicates
        Null data sets per dimension; at least 99 for p < .01.
    null_splits
        Splits of each null data set in which the dimension is there at all. A mean over fewer splits scatters more, which makes
        the test stricter.
    seed
        Seeds everything.
    sweeps, tolerance
        As in :func:`benchmirt.inference.em.fit_many`. The defaults are coarser than those of a fit that is reported: a
        half that has nearly settled is compared as it is. Mostly this moves nothing beyond the third digit (half of a small
        data set can drift on for long; then it agrees better than its end point would). Data and nulls are
        treated alike.
    checkpoint
        JSONL file that lets a killed job resume, or None.

    Returns
    -------
    Stability
        With ``why_not`` set, and no rows, where the data are too few.
    """
    dims = consensus.dims
    why_not = untestable(data, dims)
    if why_not is not None:
        _log.warning("stability: %s", why_not)
        splits_table, null_table = (pd.DataFrame(columns=columns) for columns in (_SPLITS, _NULL))
        nothing = np.zeros((0, dims))
        return Stability(dims, splits_table, nothing, nothing, null_table, 0, why_not, seed, data.hash)
    options: dict[str, Any] = {"sweeps": sweeps, "tolerance": tolerance}
    key = fingerprint(
        __name__, data=data.hash, consensus=consensus.a, null_splits=null_splits, seed=seed, **options
    )
    tables, nulls = [], []
    products = np.zeros((int(clusters(data.lineage).max()) + 1, dims))
    scrambled = np.zeros((_SCRAMBLES, dims))
    fitted = dims
    halves = None
    with Checkpoint(checkpoint, key) as kept:
        for k in range(dims, 0, -1):
            if halves is None:
                whole = _fit(data, fitted, options)
                reference = onto(whole, consensus.a if fitted == dims else whole.a)[1]
                halves = _observed(data, fitted, reference, splits, seed, options, kept)
            of_k = halves.table(k)
            scrambled[:, k - 1] = halves.scrambled[..., k - 1].mean(0)
            products[:, k - 1] = halves.products[..., k - 1].mean(0)
            least = of_k[["congruence", "ability_r"]].mean().to_numpy()
            null = _null(data, fitted, k, least, replicates, null_splits, seed, options, kept)
            tables.append(of_k)
            nulls.append(null)
            entry = _entry(k, of_k, null, scrambled[:, k - 1], products[:, k - 1], replicates, seed)
            if k == fitted > 1 and entry["passes"] is False:
                _log.info("dimension %d does not come back: those before it are fitted without it", k)
                fitted, halves = k - 1, None
    return Stability(
        dims=dims,
        splits=pd.concat(tables).sort_values(["split", "dimension"], ignore_index=True),
        scrambled=scrambled,
        products=products,
        null=pd.concat(nulls[::-1], ignore_index=True),
        replicates=replicates,
        why_not=None,
        seed=seed,
        data_hash=data.hash,
        checkpoint=checkpoint,
    )


@dataclass(frozen=True)
class _Halves:
    """Agreement of halves in fits with `dims` dimensions, as :func:`_congruences` returns it."""

    dims: int
    congruence: Floats
    ability_r: Floats
    scrambled: Floats
    products: Floats

    def table(self, dimension: int) -> pd.DataFrame:
        """Return one dimension's rows of the table of splits."""
        columns = (self.congruence[:, dimension - 1], self.ability_r[:, dimension - 1])
        places = np.arange(len(self.congruence))
        return pd.DataFrame(dict(zip(_SPLITS, (places, dimension, self.dims, *columns), strict=True)))


def _observed(
    data: ResponseData,
    dims: int,
    reference: Floats,
    splits: int,
    seed: int,
    options: dict[str, Any],
    kept: Checkpoint,
) -> _Halves:
    """Compare the halves of the data, some splits at a time, each line of the checkpoint."""
    rounds = -(-splits // _CHUNK)
    model_halves, item_sides = _sides(data, rounds * _CHUNK, seed)
    scrambles = [_Scramble.draw(len(data.items), m, seed) for m in range(_SCRAMBLES)]
    found: list[tuple[Floats, ...]] = []
    for r in progress(range(rounds), rounds, f"splits into halves ({dims} dimension{'s' * (dims > 1)})"):
        at = slice(r * _CHUNK, (r + 1) * _CHUNK)
        parts = kept.get(f"splits/{dims}/{r}")
        if parts is None:
            some = _congruences(data, dims, model_halves[at], item_sides[at], reference, scrambles, options)
            parts = [part.tolist() for part in some]
            kept.put(f"splits/{dims}/{r}", parts)
        found.extend(zip(*(np.asarray(part) for part in parts), strict=True))
    return _Halves(dims, *(np.stack(part) for part in zip(*found[:splits], strict=True)))


def _sides(data: ResponseData, splits: int, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the first halves of models and of items, shapes (splits, models) and (splits, items)."""
    benchmark, testlet = (data.item_table[name].to_numpy(dtype=object) for name in ("benchmark", "testlet"))
    return lineage_halves(data.lineage, splits, seed), item_halves(benchmark, testlet, splits, seed)


def _null(
    data: ResponseData,
    dims: int,
    k: int,
    least: Floats,
    replicates: int,
    null_splits: int,
    seed: int,
    options: dict[str, Any],
    kept: Checkpoint,
) -> pd.DataFrame:
    """Agreement of dimension k in fits of data made without it, until enough replicates agree as well as `least`.

    `least` holds the observed congruence and ability correlation.
    """
    fitted = fit_null(data, k - 1, options)
    rows: list[pd.DataFrame] = []
    exceeded = np.zeros(2, dtype=int)
    for b in progress(range(replicates), replicates, f"null data with {k - 1} dimension{'s' * (k != 2)}"):
        found = kept.get(f"null/{dims}/{k}/{b}")
        if found is None:
            found = _null_replicate(data, fitted, dims, k, b, seed, null_splits, options)
            kept.put(f"null/{dims}/{k}/{b}", found)
        values = (b, np.arange(len(found[0])), k, *found)
        rows.append(pd.DataFrame(dict(zip(_NULL, values, strict=True))))
        exceeded += np.mean(found, axis=1) >= least
        if exceeded.max() >= _ENOUGH:
            break
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=_NULL)


def _null_replicate(
    data: ResponseData,
    fitted: Intercepts | Gaussian,
    dims: int,
    k: int,
    replicate: int,
    seed: int,
    splits: int,
    options: dict[str, Any],
) -> Sequence[list[float]]:
    """Congruences and ability correlations of dimension k over the splits of one null data set."""
    made = null_data(data, fitted, seed, f"stability null/{k}/{replicate}")
    whole = _fit(made, dims, options)
    present = np.sqrt((whole.a**2).mean(0)) > _NOTHING
    if not present[k - 1]:
        return [[0.0] * splits, [0.0] * splits]
    own = int(generator(seed, f"stability null splits/{k}/{replicate}").integers(2**31))
    reference = np.where(present, whole.a, 0.0)
    phi, r, _, _ = _congruences(made, dims, *_sides(data, splits, own), reference, (), options)
    return [phi[:, k - 1].tolist(), r[:, k - 1].tolist()]


def write(result: Stability, json_path: str | Path, splits_path: str | Path, null_path: str | Path) -> None:
    """Write ``stability.json``, ``stability_splits.csv`` and ``stability_null.csv``; then drop the checkpoint."""
    write_csv(result.splits, splits_path)
    write_csv(result.null, null_path)
    write_json(
        {
            "dims": result.dims,
            "splits": int(result.splits["split"].nunique()),
            "dimensions": result.summary(),
            "null": "parametric (K-1): dimension k against data simulated from the fitted model with k - 1 dimensions, "
            "item intercepts only for k = 1",
            "order": "from the last dimension on; one that does not pass is left out of the fits of those before it, whose "
            "dims say how many dimensions they had",
            "replicates": result.replicates,
            "p_needed": result.p_needed,
            "rule": "p_congruence and p_ability_r at most p_needed, p_scrambled and p_lineages at most .01, absent (the share "
            f"of splits in which a half lacks the dimension) at most {MOST_ABSENT}",
            "seed": result.seed,
            "why_not": result.why_not,
            "provenance": provenance.record(data_hash=result.data_hash),
        },
        json_path,
    )
    if result.checkpoint is not None:
        result.checkpoint.unlink(missing_ok=True)
