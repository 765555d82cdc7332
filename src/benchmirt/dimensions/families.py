"""Families of refits: one benchmark left out, and lineages resampled.

Every member is a warm variational EM fit of the same data under other weights, aligned to the consensus on the items by
orthogonal Procrustes. Left-out items keep their calibration but have no say in the abilities; models of weight 0 are scored only.
Each refit of the bootstrap family leaves out a random fifth of the lineages; their spread stands for that over other models once
it is stretched (:func:`benchmirt.resampling.stretch`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance, resampling
from benchmirt.errors import InputError
from benchmirt.files import atomic
from benchmirt.inference import em
from benchmirt.progress import progress

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.matrix import ResponseData

__all__ = [
    "Bootstrap",
    "LeaveOneOut",
    "bootstrap",
    "leave_one_out",
    "read_bootstrap",
    "read_leave_one_out",
    "units_of",
    "write_bootstrap",
    "write_leave_one_out",
]

Floats = NDArray[np.float64]
CHUNK_BYTES = 256 * 2**20


@dataclass(frozen=True)
class LeaveOneOut:
    """Abilities with one benchmark left out.

    Attributes
    ----------
    unit
        What is left out: ``benchmark``, or ``category`` where the study has a single benchmark.
    units
        Names of the units, U of them.
    theta
        Display abilities estimated without the unit, shape (U, models, abilities).
    a
        Discriminations in the consensus' canonical frame, those of the left-out items included, shape (U, items, dims).
    congruence
        Of the other items' display discriminations with those of the consensus, shape (U, abilities).
    reliability
        Share of the abilities' variance over models that the estimates have, 0 to 1, shape (U, abilities): the variance of the
        posterior means over itself and the mean posterior variance. Its root is the correlation of estimate and ability.
    converged
        Shape (U,).
    models, items, data_hash
        As in the data.
    """

    unit: str
    units: tuple[str, ...]
    theta: Floats
    a: NDArray[np.float32]
    congruence: Floats
    reliability: Floats
    converged: NDArray[np.bool_]
    models: tuple[str, ...]
    items: tuple[str, ...]
    data_hash: str

    def without(self, unit: str) -> Floats:
        """Display abilities (models, abilities) estimated without one unit."""
        return self.theta[self.units.index(unit)]

    @property
    def comparable(self) -> NDArray[np.bool_]:
        """Whether an ability is the same without the unit, shape (U, abilities).

        Where it rests on the unit, what takes its place without it says nothing about the unit.
        """
        return self.congruence >= ident.SAME_ABILITY


@dataclass(frozen=True)
class Bootstrap:
    """Refits with a part of the lineages left out.

    Attributes
    ----------
    weights
        1 for the models that informed a refit, else 0, shape (R, models).
    theta
        Abilities in the consensus' canonical frame, shape (R, models, dims); models left out are scored.
    a
        Discriminations in that frame, shape (R, items, dims).
    T
        Axes of the abilities, the display rotation repeated for each refit, shape (R, dims, abilities).
    converged
        Shape (R,).
    models, items, data_hash
        As in the data.
    """

    weights: NDArray[np.int64]
    theta: Floats
    a: NDArray[np.float32]
    T: Floats
    converged: NDArray[np.bool_]
    models: tuple[str, ...]
    items: tuple[str, ...]
    data_hash: str


def units_of(data: ResponseData) -> tuple[str, tuple[str, ...], NDArray[np.str_]]:
    """Return what may be left out: the kind of unit, the units in order, and each item's unit (items,)."""
    benchmark = data.item_table["benchmark"].to_numpy(dtype=str)
    if len(set(benchmark)) > 1 or "category" not in data.item_table:
        kind, labels = "benchmark", benchmark
    else:
        kind, labels = "category", data.item_table["category"].fillna("none").to_numpy(dtype=str)
    return kind, tuple(dict.fromkeys(labels)), labels


def _chunk(data: ResponseData, dims: int) -> int:
    """Return how many replicates to run at a time so that their results stay small."""
    models, items = data.responses.shape
    each = 4 * (items * (dims + 1) * (dims + 2) + models * dims * (dims + 1))
    return max(1, CHUNK_BYTES // each)


def leave_one_out(
    data: ResponseData, consensus: Consensus, *, sweeps: int = 2000, tolerance: float = 1e-4, seed: int = 0
) -> LeaveOneOut:
    """Estimate the abilities with each benchmark left out in turn.

    Parameters
    ----------
    data
        The responses that the consensus was fitted to.
    consensus
        Frame, start, and display rotation.
    sweeps, tolerance, seed
        Of the EM fits.

    Raises
    ------
    InputError
        If the consensus is of other data.
    """
    _same_data(data, consensus)
    kind, units, labels = units_of(data)
    if len(units) == 1:
        # nothing would be left to estimate abilities from
        empty = np.full((1, len(data.models), consensus.dims), np.nan)
        return LeaveOneOut(
            kind,
            units,
            empty,
            consensus.a[None].astype(np.float32),
            np.zeros((1, consensus.dims)),
            np.zeros((1, consensus.dims)),
            np.zeros(1, bool),
            data.models,
            data.items,
            data.hash,
        )
    kept = np.stack([labels != unit for unit in units])
    start = consensus.as_record()
    theta, a, congruence, reliability, converged = [], [], [], [], []
    turn = np.linalg.inv(consensus.T).T
    for index in progress(range(len(units)), total=len(units), what=f"fits with one {kind} left out"):
        batch = em.fit_many(
            data,
            consensus.dims,
            item_weights=kept[index : index + 1].astype(np.float32),
            start=start,
            bound=False,
            seed=seed,
            sweeps=sweeps,
            tolerance=tolerance,
        )
        rotation = ident.align(batch.a[0], consensus.a, kept[index].astype(np.float64))
        theta.append(batch.theta[0] @ rotation @ consensus.T)
        unsure = ident.rotate_theta_cov(batch.theta_cov[0], rotation @ consensus.T)
        reliability.append(_reliability(theta[-1], unsure))
        a.append((batch.a[0] @ rotation).astype(np.float32))
        others = kept[index]
        congruence.append(ident.congruence(a[-1][others] @ turn, consensus.a[others] @ turn))
        converged.append(bool(batch.converged[0]))
    return LeaveOneOut(
        kind,
        units,
        np.stack(theta),
        np.stack(a),
        np.stack(congruence),
        np.stack(reliability),
        np.array(converged),
        data.models,
        data.items,
        data.hash,
    )


def _reliability(theta: Floats, theta_cov: Floats) -> Floats:
    """Return the reliability of abilities, shape (abilities,), from means (models, abilities) and their covariances."""
    known, unknown = theta.var(axis=0), np.einsum("nkk->nk", theta_cov).mean(axis=0)
    return np.asarray(known / (known + unknown))


def bootstrap(
    data: ResponseData,
    consensus: Consensus,
    *,
    replicates: int = 200,
    sweeps: int = 2000,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> Bootstrap:
    """Refit with a random fifth of the lineages left out; row r is the same whatever the number of replicates.

    Parameters
    ----------
    data
        The responses that the consensus was fitted to.
    consensus
        Frame and start.
    replicates
        Number of refits R.
    sweeps, tolerance, seed
        Of the EM fits, and of the resamples.

    Raises
    ------
    InputError
        If the consensus is of other data.
    """
    _same_data(data, consensus)
    weights = resampling.lineage_subsamples(data.lineage, replicates, seed)
    start = consensus.as_record()
    size = min(_chunk(data, consensus.dims), max(1, replicates // 10), replicates)
    theta, a, converged = [], [], []
    firsts = range(0, replicates, size)
    for first in progress(
        firsts,
        total=len(firsts),
        what=f"{replicates} refits with a fifth of the lineages left out, {size} at a time",
    ):
        rows = weights[first : first + size]
        # the last chunk is filled up, so that one compilation serves all
        filled = np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])
        batch = em.fit_many(
            data,
            consensus.dims,
            model_weights=filled.astype(np.float32),
            start=start,
            bound=False,
            seed=seed,
            sweeps=sweeps,
            tolerance=tolerance,
        )
        for index in range(len(rows)):
            rotation = ident.align(batch.a[index], consensus.a)
            theta.append(batch.theta[index] @ rotation)
            a.append((batch.a[index] @ rotation).astype(np.float32))
        converged.append(batch.converged[: len(rows)])
    return Bootstrap(
        weights=weights,
        theta=np.stack(theta),
        a=np.stack(a),
        T=np.stack([ident.follow(loadings, consensus.T) for loadings in a]),
        converged=np.concatenate(converged),
        models=data.models,
        items=data.items,
        data_hash=data.hash,
    )


def _same_data(data: ResponseData, consensus: Consensus) -> None:
    if data.models != consensus.models or data.items != consensus.items:
        raise InputError(
            "the consensus is of other models or items than the matrix",
            found=f"{len(consensus.models)} models x {len(consensus.items)} items",
            expected=f"{len(data.models)} models x {len(data.items)} items of the matrix",
            todo="run the workflow again; it rebuilds the consensus",
        )


def _write(
    path: str | Path, variables: dict[str, Any], coords: dict[str, Any], attrs: dict[str, Any]
) -> None:
    with atomic(path) as temporary:
        xr.Dataset(variables, coords=coords, attrs=attrs).to_netcdf(
            temporary, engine="h5netcdf", encoding={"a": {"zlib": True, "complevel": 1}}
        )


def _read(path: str | Path, what: str) -> xr.Dataset:
    try:
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            return opened.load()
    except (OSError, ValueError) as error:
        raise InputError(
            f"this is not a readable file of {what}",
            file=path,
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            todo="delete the file and run the workflow again",
        ) from error


def _names(data: xr.Dataset, name: str) -> tuple[str, ...]:
    return tuple(str(one) for one in data[name].to_numpy())


def _attrs(data_hash: str, **further: Any) -> dict[str, Any]:
    record = provenance.record(data_hash=data_hash)
    return {"data_hash": data_hash, "versions": json.dumps(record, sort_keys=True), **further}


def write_leave_one_out(family: LeaveOneOut, path: str | Path) -> None:
    """Write ``leave_one_out.nc`` atomically and byte-reproducibly."""
    dims = family.a.shape[2]
    _write(
        path,
        {
            "theta": (("benchmark", "model", "ability"), family.theta),
            "a": (("benchmark", "item", "dimension"), family.a),
            "congruence": (("benchmark", "ability"), family.congruence),
            "reliability": (("benchmark", "ability"), family.reliability),
            "converged": (("benchmark",), family.converged.astype(np.int8)),
        },
        {
            "benchmark": list(family.units),
            "model": list(family.models),
            "item": list(family.items),
            "ability": np.arange(1, dims + 1),
            "dimension": np.arange(1, dims + 1),
        },
        _attrs(family.data_hash, unit=family.unit),
    )


def read_leave_one_out(path: str | Path) -> LeaveOneOut:
    """Read ``leave_one_out.nc``; an unreadable file raises :class:`InputError`."""
    data = _read(path, "abilities with one benchmark left out")
    return LeaveOneOut(
        unit=str(data.attrs["unit"]),
        units=_names(data, "benchmark"),
        theta=data["theta"].to_numpy(),
        a=data["a"].to_numpy(),
        congruence=data["congruence"].to_numpy(),
        reliability=data["reliability"].to_numpy(),
        converged=data["converged"].to_numpy().astype(bool),
        models=_names(data, "model"),
        items=_names(data, "item"),
        data_hash=str(data.attrs["data_hash"]),
    )


def write_bootstrap(family: Bootstrap, path: str | Path) -> None:
    """Write ``bootstrap.nc`` atomically and byte-reproducibly."""
    dims = family.a.shape[2]
    _write(
        path,
        {
            "weights": (("replicate", "model"), family.weights.astype(np.int16)),
            "theta": (("replicate", "model", "dimension"), family.theta),
            "a": (("replicate", "item", "dimension"), family.a),
            "T": (("replicate", "dimension", "ability"), family.T),
            "converged": (("replicate",), family.converged.astype(np.int8)),
        },
        {
            "replicate": np.arange(len(family.a)),
            "model": list(family.models),
            "item": list(family.items),
            "dimension": np.arange(1, dims + 1),
            "ability": np.arange(1, dims + 1),
        },
        _attrs(family.data_hash),
    )


def read_bootstrap(path: str | Path) -> Bootstrap:
    """Read ``bootstrap.nc``; an unreadable file raises :class:`InputError`."""
    data = _read(path, "refits on resampled lineages")
    return Bootstrap(
        weights=data["weights"].to_numpy().astype(np.int64),
        theta=data["theta"].to_numpy(),
        a=data["a"].to_numpy(),
        T=data["T"].to_numpy(),
        converged=data["converged"].to_numpy().astype(bool),
        models=_names(data, "model"),
        items=_names(data, "item"),
        data_hash=str(data.attrs["data_hash"]),
    )
