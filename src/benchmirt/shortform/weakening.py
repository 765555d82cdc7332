"""What a set of items loses with its sharpest ones: the check of a stated risk.

The items of a category that tell most about its ability are taken away, chosen without the lineages that are then scored.
Asked is how far the pass rate of the models with least of the ability rises, beyond what taking away as many items at
random does. Which models have least is told, for each benchmark, by the other benchmarks, so that no outcome decides both
who is scored and the score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmirt.resampling import Interval, cluster_interval, generator

__all__ = ["Weakening", "lowest", "sharpest", "weakening"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TERCILE = 1 / 3


@dataclass(frozen=True)
class Weakening:
    """What became of the pass rate.

    Attributes
    ----------
    before, after
        Pass rate of the models with least ability on all items, and on those that are left.
    at_random
        The same after each random removal, shape (D,).
    excess
        By how much more the rate rises than at random, with its interval over lineages; None if not asked for.
    models, lineages
        Models with least ability (on any benchmark), and their lineages.
    """

    before: float
    after: float
    at_random: Floats
    excess: Interval | None
    models: int
    lineages: int


def lowest(theta: Floats, ran: Mask) -> Mask:
    """Return the third of the models with the lowest ability, among those that ran.

    Parameters
    ----------
    theta
        Abilities, shape (U, N): without each benchmark.
    ran
        Shape (U, N).
    """
    low = np.zeros(theta.shape, dtype=bool)
    for unit, (values, seen) in enumerate(zip(theta, ran & np.isfinite(theta), strict=True)):
        count = int(np.floor(TERCILE * seen.sum() + 0.5))
        order = np.argsort(np.where(seen, values, np.inf), kind="stable")
        low[unit, order[:count]] = True
    return low


def sharpest(information: Floats, among: Mask, share: float) -> Mask:
    """Return the share of some items (J,) that have most information; of equal ones the first."""
    count = int(np.floor(share * among.sum() + 0.5))
    order = np.argsort(np.where(among, -information, np.inf), kind="stable")
    chosen = np.zeros(len(information), dtype=bool)
    chosen[order[:count]] = True
    return chosen


def weakening(
    responses: NDArray[np.int8],
    low: Mask,
    fold: NDArray[np.intp],
    removed: Mask,
    among: Mask,
    lineage: NDArray[np.int64],
    *,
    draws: int = 200,
    replicates: int = 0,
    purpose: str = "weakening",
) -> Weakening:
    """Compare pass rates with and without the removed items.

    Parameters
    ----------
    responses
        1, 0, or -1 where missing, shape (N, J).
    low
        Whether a model is among those with least ability where an item is scored, shape (N, J).
    fold
        Fold of each model, shape (N,).
    removed
        Items that each fold's choice takes away, shape (F, J).
    among
        The whole set of items, shape (J,).
    lineage
        Codes, shape (N,).
    draws
        Random removals of as many items.
    replicates
        Of the studentised bootstrap over lineages; 0: no interval.
    purpose
        What seeds the draws.
    """
    counts = (responses >= 0) & low & among
    passed = ((responses == 1) & counts).astype(np.float32)
    seen = counts.astype(np.float32)
    who = np.asarray(counts.any(axis=1))

    def totals(kept: Mask) -> tuple[Floats, Floats]:
        """Return passed and answered of each model under its own fold's forms (F, J, D): shapes (N, D)."""
        found = [np.zeros((len(fold), kept.shape[2])) for _ in range(2)]
        for one in range(len(kept)):
            own = fold == one
            form = kept[one].astype(np.float32)
            found[0][own], found[1][own] = passed[own] @ form, seen[own] @ form
        return found[0], found[1]

    places = np.flatnonzero(among)
    drawn = np.broadcast_to(among[None, :, None], (len(removed), len(among), draws)).copy()
    rng = generator(0, purpose)
    for one, gone in enumerate(removed):
        take = int(gone.sum())
        if take:
            keys = rng.random((draws, len(places)))
            limit = np.partition(keys, take - 1, axis=1)[:, take - 1 : take]
            drawn[one, places] = (keys > limit).T
    whole = totals(np.broadcast_to(among[None, :, None], (len(removed), len(among), 1)))
    left = totals((among & ~removed)[:, :, None])
    random_passed, random_seen = totals(drawn)
    mean_passed, mean_seen = random_passed.mean(axis=1), random_seen.mean(axis=1)

    def excess(weights: Floats) -> float:
        answered, expected = weights @ left[1][:, 0], weights @ mean_seen
        if answered <= 0 or expected <= 0:
            return float("nan")
        return float(weights @ left[0][:, 0] / answered - weights @ mean_passed / expected)

    interval = None
    if replicates:
        # lineages without a model of low ability have no share in the rate
        interval = cluster_interval(
            lambda weights: excess(_spread(weights, who)),
            lineage[who],
            kind="studentised",
            replicates=replicates,
            purpose=purpose,
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        return Weakening(
            before=float(whole[0].sum() / whole[1].sum()),
            after=float(left[0].sum() / left[1].sum()),
            at_random=random_passed.sum(axis=0) / random_seen.sum(axis=0),
            excess=interval,
            models=int(who.sum()),
            lineages=len(np.unique(lineage[who])),
        )


def _spread(weights: Floats, who: Mask) -> Floats:
    """Return weights of some models as weights of all."""
    every = np.zeros(len(who))
    every[who] = weights
    return every
