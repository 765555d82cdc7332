"""Items chosen without a pair of models: calibrations from which the two models' answers are taken away.

Two models are compared on the items that discriminate an ability most or least. Were the items chosen by a calibration
that holds the two, their own answers would have a part in the choice, and on the items so chosen they would differ by
chance already. So for each pair the items are calibrated again with the pair's answers missing: from a cold start,
rotated by itself, and matched to the abilities of the consensus by sign and order alone, so that no answer of the pair
moves the choice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import provenance
from benchmirt.files import atomic
from benchmirt.identification import Solution
from benchmirt.inference import em
from benchmirt.progress import progress

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.matrix import ResponseData

__all__ = ["Pair", "WithoutPairs", "without_pairs", "write"]

Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """A model and what was made of it, by their names."""

    base: str
    changed: str


@dataclass(frozen=True)
class WithoutPairs:
    """Discriminations of the items in calibrations that a pair of models has no part in.

    Attributes
    ----------
    pairs
        The P pairs whose two models the study has.
    a
        Display discriminations ``a inv(T)'``, shape (P, items, abilities), in the order and with the signs of the
        consensus' abilities.
    converged
        Shape (P,).
    items, data_hash
        As in the data.
    """

    pairs: tuple[Pair, ...]
    a: Floats
    converged: NDArray[np.bool_]
    items: tuple[str, ...]
    data_hash: str


def without_pairs(
    data: ResponseData,
    consensus: Consensus,
    pairs: Sequence[Pair],
    *,
    sweeps: int = 2000,
    tolerance: float = 1e-3,
) -> WithoutPairs:
    """Calibrate the items once for each pair, without its answers.

    Parameters
    ----------
    data
        The responses that the consensus was fitted to.
    consensus
        Says which ability is which.
    pairs
        Names of models; pairs that the data lack are left out.
    sweeps, tolerance
        Of the EM fits.
    """
    known = {name: place for place, name in enumerate(data.models)}
    present = [pair for pair in dict.fromkeys(pairs) if pair.base in known and pair.changed in known]
    found, converged = [], []
    for pair in progress(present, total=len(present), what="calibrations with a pair of models left out"):
        weights = np.ones((1, len(data.models)), np.float32)
        answers = data.responses.copy()
        for name in pair:
            weights[0, known[name]] = 0.0
            answers[known[name]] = -1
        batch = em.fit_many(
            replace(data, responses=answers),
            consensus.dims,
            model_weights=weights,
            bound=False,
            sweeps=sweeps,
            tolerance=tolerance,
        )
        means = (np.asarray(x[0], dtype=np.float64) for x in (batch.theta, batch.a, batch.d))
        rotation = ident.quartimin(ident.canonical(Solution(*means))[0].a)
        found.append(ident.match(rotation.loadings, consensus.a_display)[0])
        converged.append(bool(batch.converged[0]))
    return WithoutPairs(
        pairs=tuple(present),
        a=np.stack(found) if found else np.empty((0, len(data.items), consensus.dims)),
        converged=np.array(converged, dtype=bool),
        items=data.items,
        data_hash=data.hash,
    )


def write(family: WithoutPairs, path: str | Path) -> None:
    """Write ``refits.nc`` atomically and byte-reproducibly."""
    data = xr.Dataset(
        {
            "a": (("pair", "item", "ability"), family.a.astype(np.float32)),
            "converged": (("pair",), family.converged.astype(np.int8)),
        },
        coords={"item": list(family.items), "ability": np.arange(1, family.a.shape[2] + 1)},
        attrs={
            "pairs": json.dumps([list(pair) for pair in family.pairs]),
            "data_hash": family.data_hash,
            "versions": json.dumps(provenance.record(data_hash=family.data_hash), sort_keys=True),
        },
    )
    with atomic(path) as temporary:
        data.to_netcdf(temporary, engine="h5netcdf")
