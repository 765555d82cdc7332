"""Calibrations that know nothing of some lineages, and the forms that are chosen from them.

The lineages are dealt to folds. For each fold the items are calibrated by variational EM on the models of the other folds
alone: the fold's own outcomes are hidden, not only given weight 0, so that changing them changes no form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt.ability.response import Items
from benchmirt.inference import em
from benchmirt.likelihood import asymptotes_of
from benchmirt.progress import progress
from benchmirt.resampling import lineage_folds
from benchmirt.shortform.information import Bank, bank_of, optimal
from benchmirt.shortform.published import bins_of, difficulties, filtered

if TYPE_CHECKING:
    from benchmirt.dimensions.consensus import Consensus
    from benchmirt.matrix import ResponseData

__all__ = ["Fold", "calibrate", "filter_form", "fit_without", "information_form", "sizes_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_POINTS = 200
"""Information is averaged over at most so many of the calibrated models."""


@dataclass(frozen=True)
class Fold:
    """A calibration without the models of one fold, in its own canonical frame.

    Attributes
    ----------
    a, d
        Discriminations (J, K) and intercepts (J,).
    T
        The consensus' axes of the abilities, found again here, as columns, shape (K, A).
    items
        The same with covariances and asymptotes.
    bank
        Information of the items at the abilities of the calibrated models.
    converged
        Whether the fit settled.
    """

    a: Floats
    d: Floats
    T: Floats
    items: Items
    bank: Bank
    converged: bool

    @property
    def loadings(self) -> Floats:
        """Discriminations on the abilities along T, a inv(T)', shape (J, A)."""
        return np.asarray(self.a @ np.linalg.inv(self.T).T)


def fit_without(
    data: ResponseData, hidden: Mask, dims: int, *, sweeps: int = 2000, tolerance: float = 1e-3
) -> em.Batch:
    """Calibrate the items without some models.

    Parameters
    ----------
    data
        The responses.
    hidden
        Models whose outcomes the fit may not see, shape (N,).
    dims
        Number of abilities.
    sweeps, tolerance
        Of the EM fit.

    Returns
    -------
    One replicate.
    """
    known = ~hidden
    return em.fit_many(
        data,
        dims,
        model_weights=known[None].astype(np.float32),
        reveal=np.broadcast_to(known[None, :, None], (1, *data.responses.shape)),
        bound=False,
        sweeps=sweeps,
        tolerance=tolerance,
    )


def calibrate(
    data: ResponseData,
    consensus: Consensus,
    *,
    folds: int = 5,
    seed: int = 0,
    sweeps: int = 2000,
    tolerance: float = 1e-3,
) -> tuple[NDArray[np.intp], tuple[Fold, ...]]:
    """Deal the lineages to folds and calibrate the items without each.

    Parameters
    ----------
    data
        The responses.
    consensus
        Whose axes are found again in each fold; nothing else of it is used.
    folds
        Number of folds, at most one per lineage.
    seed
        Of the folds.
    sweeps, tolerance
        Of the EM fits.

    Returns
    -------
    tuple
        Fold of each model (N,), and the calibrations.
    """
    fold_of = lineage_folds(data.lineage, folds, seed)
    asymptotes = asymptotes_of(data.floor, data.ceiling)
    made = []
    count = int(fold_of.max()) + 1
    # as many points in every fold, so that one compilation serves all
    points = min(MOST_POINTS, len(fold_of) - int(np.bincount(fold_of).max()))
    for index in progress(range(count), total=count, what="calibrations without a fold of lineages"):
        known = fold_of != index
        batch = fit_without(data, ~known, consensus.dims, sweeps=sweeps, tolerance=tolerance)
        rotation = ident.align(batch.a[0], consensus.a)
        axes = ident.follow(batch.a[0] @ rotation, consensus.T)
        T = rotation @ (axes if np.isfinite(axes).all() else consensus.T)
        items = Items(
            jnp.asarray(batch.a[0]), jnp.asarray(batch.d[0]), jnp.asarray(batch.item_cov[0]), asymptotes
        )
        theta = batch.theta[0][known].astype(np.float64)
        spaced = np.linspace(0, len(theta) - 1, points).round().astype(np.intp)
        bank = bank_of(items, theta[spaced])
        made.append(
            Fold(
                batch.a[0].astype(np.float64),
                batch.d[0].astype(np.float64),
                T,
                items,
                bank,
                bool(batch.converged[0]),
            )
        )
    return fold_of, tuple(made)


def sizes_of(group: NDArray[np.intp], share: float) -> NDArray[np.int64]:
    """Return how many items of each group a share of them is: the nearest number, at least 1, shape (G,)."""
    count = np.bincount(group)
    return np.maximum(1, np.floor(share * count + 0.5)).astype(np.int64)


def information_form(fold: Fold, group: NDArray[np.intp], share: float) -> Mask:
    """Choose the items that tell most about all abilities, the same share of every benchmark, shape (J,)."""
    return optimal(fold.bank, group, sizes_of(group, share))


def filter_form(fold: Fold, group: NDArray[np.intp], share: float, ability: int, sign: float) -> Mask:
    """Choose items by the published filter within each benchmark, for one ability, shape (J,): more than the share.

    Parameters
    ----------
    fold
        The calibration.
    group
        Benchmark of each item, shape (J,).
    share
        What the filter is meant to keep.
    ability
        Its place.
    sign
        -1 if the axis falls with what it is named after.
    """
    difficulty = difficulties(fold.a, fold.d, fold.T)[:, ability]
    bin_of, _ = bins_of(difficulty, group)
    return filtered(fold.loadings[:, ability], bin_of, 1.0 - share, negative=sign < 0)
