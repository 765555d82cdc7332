"""The consensus of a fit's seeds, in one frame, with one rotation for display.

Each run is put in its canonical frame, the runs are aligned to their common mean by generalised Procrustes
analysis (no reference run), and the consensus is the mean of the aligned runs in its own canonical frame.
Quartimin of the consensus, from many starts, gives the axes for display and naming; stability and the
number of dimensions are not judged there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance
from benchmirt.errors import InputError, nearest
from benchmirt.files import atomic
from benchmirt.identification import Solution

if TYPE_CHECKING:
    import pandas as pd

    from benchmirt.inference.record import FitRecord

__all__ = ["Consensus", "anchor_rows", "build", "read", "solution_of", "write"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Consensus:
    """Consensus solution of one fit.

    Attributes
    ----------
    fit, engine
        Names of the fit and of the engine that made its runs.
    theta, theta_cov
        Abilities in the canonical frame, shapes (models, dims) and (models, dims, dims). The covariance is
        the runs' mean posterior covariance plus the spread of the runs.
    a, d, item_cov
        Item parameters, shapes (items, dims), (items,) and (items, dims + 1, dims + 1).
    T
        Unit vectors of the display abilities as columns, shape (dims, abilities).
    models, items
        Names in the order of the arrays.
    seeds
        Seeds that converged and make up the consensus; empty if none did, and then it is that of all runs.
    seeds_failed
        For each seed that failed or did not converge, why.
    losses
        Final loss of every run by seed.
    rotation
        Criterion, starts, starts_agreeing and minima of quartimin, and the largest angle in degrees between
        its axes and those of varimax.
    spread
        Spread of the runs: residual of the alignment, iterations, smallest congruence of a run with the
        consensus per dimension, and range of the losses.
    data_hash
        Hash of the data.
    versions
        Provenance.
    """

    fit: str
    engine: str
    theta: Floats
    theta_cov: Floats
    a: Floats
    d: Floats
    item_cov: Floats
    T: Floats
    models: tuple[str, ...]
    items: tuple[str, ...]
    seeds: tuple[int, ...]
    seeds_failed: dict[int, str]
    losses: dict[int, float]
    rotation: dict[str, Any]
    spread: dict[str, Any]
    data_hash: str
    versions: dict[str, Any] = field(default_factory=dict)

    @property
    def dims(self) -> int:
        """Number of dimensions."""
        return int(self.a.shape[1])

    @cached_property
    def phi(self) -> Floats:
        """Correlations of the display abilities, shape (abilities, abilities)."""
        return ident.correlation(self.T)

    @cached_property
    def _display(self) -> Solution:
        return ident.oblique(Solution(self.theta, self.a, self.d), self.T)

    @property
    def ability_theta(self) -> Floats:
        """Display abilities ``theta T``, shape (models, abilities)."""
        return self._display.theta

    @property
    def ability_cov(self) -> Floats:
        """Covariances of the display abilities, shape (models, abilities, abilities)."""
        return ident.rotate_theta_cov(self.theta_cov, self.T)

    @property
    def a_display(self) -> Floats:
        """Display loadings ``a inv(T)'``, shape (items, abilities)."""
        return self._display.a

    def as_record(self) -> FitRecord:
        """Return the consensus as a fit record, for warm starts; hyperparameters are moments of the items."""
        from benchmirt.inference.record import FitRecord

        variance = np.einsum("jkk->jk", self.item_cov)
        mu_d = float(self.d.mean())
        return FitRecord(
            engine=self.engine,
            dims=self.dims,
            seed=-1,
            theta_mean=self.theta,
            theta_cov=self.theta_cov,
            a_mean=self.a,
            d_mean=self.d,
            item_cov=self.item_cov,
            tau=np.sqrt((self.a**2 + variance[:, : self.dims]).mean(0)),
            mu_d=mu_d,
            sigma_d=float(np.sqrt(((self.d - mu_d) ** 2 + variance[:, self.dims]).mean())),
            trace=np.zeros(1),
            models=self.models,
            items=self.items,
            data_hash=self.data_hash,
            priors={},
            diagnostics={},
            versions=self.versions,
            converged=bool(self.seeds),
            converged_why="consensus of seeds",
        )


def anchor_rows(anchors: Mapping[str, int | str] | None, item_table: pd.DataFrame | None) -> Floats | None:
    """Turn declared anchors into signed weights of the items.

    Parameters
    ----------
    anchors
        Benchmark or category with 1 / "positive" or -1 / "negative"; none: None.
    item_table
        Items with the columns ``benchmark`` and ``category``.

    Returns
    -------
    Shape (anchors, items), or None without anchors.

    Raises
    ------
    InputError
        If a name is neither a benchmark nor a category, or a sign is none.
    """
    if not anchors:
        return None
    if item_table is None:
        raise ValueError("anchors need the table of items")
    rows = []
    benchmark = item_table["benchmark"].astype(str).to_numpy()
    category = item_table["category"].astype(object).where(item_table["category"].notna(), "").to_numpy()
    known = sorted({*benchmark, *(str(one) for one in category if one)})
    for name, sign in anchors.items():
        chosen = (benchmark == name) | (category == name)
        if not chosen.any():
            guess = nearest(name, known)
            raise InputError(
                "an anchor names neither a benchmark nor a category",
                where=f"dimensions.anchors.{name}",
                found=f'"{name}"',
                expected="one of " + ", ".join(known),
                todo=f'write "{guess}"' if guess else None,
            )
        direction = {"1": 1.0, "positive": 1.0, "-1": -1.0, "negative": -1.0}.get(str(sign))
        if direction is None:
            raise InputError(
                "an anchor needs a sign",
                where=f"dimensions.anchors.{name}",
                found=f'"{sign}"',
                expected="1 or -1",
            )
        rows.append(direction * chosen.astype(np.float64))
    return np.stack(rows)


def solution_of(record: FitRecord) -> Solution:
    """Return the posterior means of a record as a solution, in float64."""
    return Solution(
        *(np.asarray(getattr(record, name), dtype=np.float64) for name in ("theta_mean", "a_mean", "d_mean"))
    )


def build(
    records: Sequence[FitRecord],
    *,
    fit: str,
    item_table: pd.DataFrame | None = None,
    anchors: Mapping[str, int | str] | None = None,
    failed: Mapping[int, str] | None = None,
    starts: int = 100,
    seed: int = 0,
) -> Consensus:
    """Make the consensus of a fit's seeds.

    Parameters
    ----------
    records
        One fit record per seed, of the same data and dims. Those that did not converge are listed and left
        out, unless none converged.
    fit
        Name of the fit.
    item_table
        Items in the order of the records, needed for anchors only.
    anchors
        As in :func:`anchor_rows`; without them each axis is signed so that its discriminations sum to a
        positive number.
    failed
        For each seed that gave no record, why; they are listed with those that did not converge.
    starts, seed
        Starts of the display rotation.

    Raises
    ------
    InputError
        If there is no record, or the records differ in data or dims.
    benchmirt.identification.InvariantError
        If a transform changes what it must not.
    """
    if not records:
        raise InputError(
            "a consensus needs at least one fit",
            where=fit,
            found="; ".join(f"seed {number} {why}" for number, why in (failed or {}).items()) or "no record",
            todo="see the logs of the fits",
        )
    ordered = sorted(records, key=lambda record: record.seed)
    first = ordered[0]
    for record in ordered[1:]:
        for name in ("dims", "data_hash", "models", "items"):
            if getattr(record, name) != getattr(first, name):
                raise InputError(
                    f"the seeds of one fit differ in {name}",
                    where=f"{fit}, seeds {first.seed} and {record.seed}",
                    todo="delete the fit's records and run the workflow again",
                )
    used = [record for record in ordered if record.converged]
    unsettled = {record.seed: record.converged_why for record in ordered if not record.converged}
    kept = used or ordered
    rows = anchor_rows(anchors, item_table)
    solutions = [ident.canonical(solution_of(record), rows) for record in kept]
    alignment = ident.generalised_procrustes([solution.a for solution, _ in solutions], anchors=rows)
    aligned = [
        ident.rotate(solution, R) for (solution, _), R in zip(solutions, alignment.rotations, strict=True)
    ]
    turns = [turn @ R for (_, turn), R in zip(solutions, alignment.rotations, strict=True)]
    theta = np.mean([one.theta for one in aligned], axis=0)
    d = np.mean([one.d for one in aligned], axis=0)
    final, R = ident.canonical(Solution(theta, alignment.a, d), rows)
    aligned = [ident.rotate(one, R) for one in aligned]
    turns = [turn @ R for turn in turns]
    stacked = [np.column_stack([one.a, one.d]) for one in aligned]
    center = np.column_stack([final.a, final.d])
    display = ident.quartimin(final.a, starts, seed)
    T = display.T * ident.signs_of(display.loadings, rows)
    varimax = ident.varimax(final.a, seed=seed)
    losses = {record.seed: float(record.trace[-1]) for record in ordered}
    return Consensus(
        fit=fit,
        engine=first.engine,
        theta=final.theta,
        theta_cov=np.mean(
            [
                ident.rotate_theta_cov(record.theta_cov, turn) + _outer(one.theta - final.theta)
                for record, turn, one in zip(kept, turns, aligned, strict=True)
            ],
            axis=0,
        ),
        a=final.a,
        d=final.d,
        item_cov=np.mean(
            [
                ident.rotate_item_cov(record.item_cov, turn) + _outer(one - center)
                for record, turn, one in zip(kept, turns, stacked, strict=True)
            ],
            axis=0,
        ),
        T=T,
        models=first.models,
        items=first.items,
        seeds=tuple(record.seed for record in used),
        seeds_failed=dict(sorted({**unsettled, **(failed or {})}.items())),
        losses=losses,
        rotation={
            "method": "quartimin",
            "criterion": display.criterion,
            "starts": display.starts,
            "starts_agreeing": display.starts_agreeing,
            "minima": list(display.minima[:10]),
            "varimax_angle": _axes_apart(T, varimax.T),
        },
        spread={
            "residual": alignment.residual,
            "iterations": alignment.iterations,
            "congruence_min": np.min([ident.congruence(one.a, final.a) for one in aligned], axis=0).tolist(),
            "loss_min": min(losses.values()),
            "loss_max": max(losses.values()),
            "loss_sd": float(np.std(list(losses.values()))),
        },
        data_hash=first.data_hash,
        versions=provenance.record(data_hash=first.data_hash),
    )


def _outer(deviation: Floats) -> Floats:
    return np.asarray(deviation[:, :, None] * deviation[:, None, :])


def _axes_apart(T: Floats, other: Floats) -> float:
    """Return the largest angle in degrees between the matched axes of two rotations, signs apart."""
    matched, _, _ = ident.match(other, T)
    cosine = np.abs((matched * T).sum(0))
    return float(np.degrees(np.arccos(np.clip(cosine, 0.0, 1.0))).max())


_JSON = ("seeds_failed", "losses", "rotation", "spread", "versions")


def write(consensus: Consensus, path: str | Path) -> None:
    """Write ``consensus.nc`` atomically and byte-reproducibly."""
    k = consensus.dims
    dimension = np.arange(1, k + 1)
    data = xr.Dataset(
        {
            "theta": (("model", "dimension"), consensus.theta),
            "theta_cov": (("model", "dimension", "dimension_"), consensus.theta_cov),
            "a": (("item", "dimension"), consensus.a),
            "d": (("item",), consensus.d),
            "item_cov": (("item", "parameter", "parameter_"), consensus.item_cov.astype(np.float32)),
            "T": (("dimension", "ability"), consensus.T),
            "Phi": (("ability", "ability_"), consensus.phi),
            "ability_theta": (("model", "ability"), consensus.ability_theta),
            "a_display": (("item", "ability"), consensus.a_display),
        },
        coords={
            "model": list(consensus.models),
            "item": list(consensus.items),
            "dimension": dimension,
            "ability": dimension,
            "parameter": [f"a_{i}" for i in dimension] + ["d"],
        },
        attrs={
            "fit": consensus.fit,
            "engine": consensus.engine,
            "dims": k,
            "data_hash": consensus.data_hash,
            "seeds": json.dumps(list(consensus.seeds)),
            **{name: json.dumps(getattr(consensus, name), sort_keys=True) for name in _JSON},
        },
    )
    with atomic(path) as temporary:
        data.to_netcdf(temporary, engine="h5netcdf")


def read(path: str | Path) -> Consensus:
    """Read ``consensus.nc``.

    Raises
    ------
    InputError
        If the file can't be read.
    """
    try:
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
    except (OSError, ValueError) as error:
        raise InputError(
            "this is not a readable consensus",
            file=path,
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            todo="delete the file and run the workflow again",
        ) from error
    stored = {name: json.loads(data.attrs[name]) for name in _JSON}
    return Consensus(
        fit=str(data.attrs["fit"]),
        engine=str(data.attrs["engine"]),
        **{
            name: data[name].to_numpy().astype(np.float64)
            for name in ("theta", "theta_cov", "a", "d", "item_cov", "T")
        },
        models=tuple(str(name) for name in data["model"].to_numpy()),
        items=tuple(str(name) for name in data["item"].to_numpy()),
        seeds=tuple(json.loads(data.attrs["seeds"])),
        seeds_failed={int(key): value for key, value in stored["seeds_failed"].items()},
        losses={int(key): value for key, value in stored["losses"].items()},
        rotation=stored["rotation"],
        spread=stored["spread"],
        data_hash=str(data.attrs["data_hash"]),
        versions=stored["versions"],
    )
