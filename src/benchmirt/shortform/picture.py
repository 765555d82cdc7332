"""Whether a short form gives the picture that all items give: correlations of benchmarks with abilities.

A model's score on a form is measured in standard deviations of the models that the form was chosen from, since the forms
of different folds hold different items. Every score is one on a form that lineages other than the model's own have chosen,
and is correlated, over all models, with the ability estimated without the benchmark. Whole benchmarks and random forms are
scored in the same way, so that only the choice of items differs.

*Loss* is the mean absolute difference, over pairs of a benchmark and an ability, between the correlation of the form and
that of the whole benchmark; a form without items of a benchmark has no correlation, which counts as 0. All comparisons are
made again with each lineage left out, and the jackknife's standard errors say how they would vary over lineages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmirt.resampling import clusters, generator, lineage_bootstrap

__all__ = ["Picture", "Sample", "correlations", "picture_of", "random_losses", "scores"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHARE_RUN = 0.5
"""A model counts as having run a benchmark if it answered this share of its items."""
MOST_CELLS = 2**23
"""Random forms are drawn so many cells (folds x draws x items) at a time."""


@dataclass(frozen=True)
class Sample:
    """Who is scored on what, and against which abilities: N models, J items, U benchmarks, A abilities.

    Attributes
    ----------
    responses
        1, 0, or -1 where missing, shape (N, J).
    group
        Benchmark of each item, shape (J,).
    theta
        Abilities without each benchmark, turned so that more is better, shape (U, N, A).
    fold
        Fold of each model, shape (N,).
    lineage
        Codes, shape (N,).
    """

    responses: NDArray[np.int8]
    group: NDArray[np.intp]
    theta: Floats
    fold: NDArray[np.intp]
    lineage: NDArray[np.int64]

    @cached_property
    def items(self) -> list[NDArray[np.intp]]:
        """Places of the items of each benchmark."""
        return [np.flatnonzero(self.group == unit) for unit in range(len(self.theta))]

    @cached_property
    def ran(self) -> Mask:
        """Which models ran each benchmark, shape (U, N)."""
        return np.stack([(self.responses[:, places] >= 0).mean(axis=1) >= SHARE_RUN for places in self.items])

    @cached_property
    def folds(self) -> int:
        """Number of folds F."""
        return int(self.fold.max()) + 1

    @cached_property
    def left_out(self) -> Floats:
        """Weights of the models: all 1, then each lineage left out in turn, shape (1 + L, N)."""
        cluster = clusters(self.lineage)
        left = cluster[None, :] != np.arange(int(cluster.max()) + 1)[:, None]
        return np.vstack([np.ones(len(cluster)), left.astype(np.float64)])

    @cached_property
    def whole(self) -> Floats:
        """Correlations of the whole benchmarks, shape (1 + L, U, A)."""
        every = np.ones((self.folds, len(self.group), 1), dtype=bool)
        return correlations(self, every, self.left_out)[..., 0]


def scores(sample: Sample, unit: int, chosen: Mask) -> Floats:
    """Score models on the items of one benchmark that the form of their own fold holds.

    Parameters
    ----------
    sample
        The models.
    unit
        Place of the benchmark, with J' items.
    chosen
        Forms of each fold, shape (F, J', D).

    Returns
    -------
    Shape (N, D): distance from the mean of the models outside the fold, in their standard deviations; NaN where a model
    answered none of the form's items, or did not run the benchmark.
    """
    responses = sample.responses[:, sample.items[unit]]
    passed, seen = (responses == 1).astype(np.float32), (responses >= 0).astype(np.float32)
    complete = bool(seen.all())
    ran = sample.ran[unit]
    found = np.full((len(responses), chosen.shape[2]), np.nan)
    for fold in range(sample.folds):
        own = (sample.fold == fold) & ran
        known = (sample.fold != fold) & ran
        if not own.any() or not known.any():
            continue
        form = chosen[fold].astype(np.float32)
        answered = form.sum(axis=0)[None, :] if complete else seen @ form
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(answered > 0, (passed @ form) / answered, np.nan).astype(np.float64)
        there = np.isfinite(mean[known])
        count = np.maximum(there.sum(axis=0), 1)
        filled = np.where(there, mean[known], 0.0)
        center = filled.sum(axis=0) / count
        spread = np.sqrt((np.where(there, mean[known] - center, 0.0) ** 2).sum(axis=0) / count)
        found[own] = (mean[own] - center) / np.where(spread > 1e-9, spread, 1.0)
    return found


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted correlations of many scores (N, D) with one ability (N,), shape (W, D); NaN where a side does not vary."""
    seen = np.isfinite(x) & np.isfinite(y)[:, None]
    x0, y0 = np.where(seen, x, 0.0), np.where(seen, np.nan_to_num(y)[:, None], 0.0)
    total = weights @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (weights @ x0) / total, (weights @ y0) / total
        cov = (weights @ (x0 * y0)) / total - mean_x * mean_y
        var_x = (weights @ x0**2) / total - mean_x**2
        var_y = (weights @ y0**2) / total - mean_y**2
        r = cov / np.sqrt(var_x * var_y)
    flat = (var_x <= 1e-9) | (var_y <= 1e-9) | (total < 3)
    return np.where(flat, np.nan, np.clip(r, -1.0, 1.0))


def correlations(sample: Sample, chosen: Mask, weights: Floats) -> Floats:
    """Correlate the scores on forms with the abilities that the benchmarks had no part in.

    Parameters
    ----------
    sample
        The models.
    chosen
        Forms of each fold, shape (F, J, D).
    weights
        Of the models, shape (W, N).

    Returns
    -------
    Shape (W, U, A, D); 0 where a form holds nothing that varies, NaN where the whole benchmark has no ability to be compared
    with.
    """
    units, _, abilities = sample.theta.shape
    found = np.zeros((len(weights), units, abilities, chosen.shape[2]))
    for unit, places in enumerate(sample.items):
        x = scores(sample, unit, chosen[:, places])
        for ability in range(abilities):
            y = sample.theta[unit, :, ability]
            r = np.nan_to_num(_pearson(x, y, weights)) if np.isfinite(y).all() else np.nan
            found[:, unit, ability] = r
    return found


@dataclass(frozen=True)
class Picture:
    """The correlations that a form gives beside those of the whole benchmarks.

    Attributes
    ----------
    r, whole
        Correlations of the form and of all items: on the data, then with each lineage left out, shape (1 + L, U, A).
    larger_variance
        Variance, over resampled lineages, of the share of pairs with a larger absolute correlation than the whole.
    """

    r: Floats
    whole: Floats
    larger_variance: float

    @property
    def loss(self) -> Floats:
        """Mean absolute difference over pairs, shape (1 + L,)."""
        return _loss(self.r, self.whole)

    @property
    def larger(self) -> Mask:
        """Which pairs have a larger absolute correlation with the form, shape (U, A)."""
        return np.asarray(np.abs(self.r[0]) > np.abs(self.whole[0]) + 1e-12)


def _loss(r: Floats, whole: Floats) -> Floats:
    """Mean absolute difference over those pairs (axes 1 and 2) that have a correlation."""
    return np.asarray(np.nanmean(np.abs(r - whole), axis=(1, 2)))


def picture_of(sample: Sample, chosen: Sequence[Mask], *, replicates: int = 500, seed: int = 0) -> Picture:
    """Compare forms with the whole benchmarks.

    Parameters
    ----------
    sample
        The models.
    chosen
        For each ability the forms of each fold, (F, J): one and the same for all abilities, or one for each.
    replicates, seed
        Of the bootstrap over lineages.
    """
    weights = np.vstack([sample.left_out, lineage_bootstrap(sample.lineage, replicates, seed, "short forms")])
    every = np.ones((sample.folds, len(sample.group), 1), dtype=bool)
    whole = correlations(sample, every, weights)[..., 0]
    found = correlations(sample, np.stack(chosen, axis=-1), weights)
    own = [found[:, :, k, min(k, len(chosen) - 1)] for k in range(found.shape[2])]
    r = np.stack(own, axis=2)
    known = np.isfinite(whole[0])
    drawn = slice(len(sample.left_out), None)
    larger = (np.abs(r[drawn]) > np.abs(whole[drawn]) + 1e-12)[:, known].mean(axis=1)
    judged = slice(len(sample.left_out))
    return Picture(r[judged], whole[judged], float(larger.var(ddof=1)))


def random_losses(
    sample: Sample,
    chosen: Mask,
    *,
    stratified: bool,
    draws: int,
    purpose: str,
    abilities: slice = slice(None),
) -> Floats:
    """Return the loss of random forms of the same size, each fold with a draw of its own.

    Parameters
    ----------
    sample
        The models.
    chosen
        The forms of each fold whose size is taken, shape (F, J).
    stratified
        Whether as many of each benchmark are drawn as the form has, or of all items together.
    draws
        Number of random forms D.
    purpose
        What seeds them.
    abilities
        Which abilities count.

    Returns
    -------
    On the data, then with each lineage left out, shape (1 + L, D).
    """
    folds, items = chosen.shape
    size = max(1, min(draws, MOST_CELLS // (folds * items)))
    strata = sample.items if stratified else [np.arange(items)]
    losses = []
    for first in range(0, draws, size):
        rng = generator(0, f"{purpose}/{first}")
        count = min(size, draws - first)
        forms = np.zeros((folds, items, count), dtype=bool)
        for places in strata:
            for fold in range(folds):
                take = int(chosen[fold, places].sum())
                keys = rng.random((count, len(places)))
                if take:
                    limit = np.partition(keys, take - 1, axis=1)[:, take - 1 : take]
                    forms[fold, places] = (keys <= limit).T
        r = correlations(sample, forms, sample.left_out)[:, :, abilities]
        losses.append(_loss(r, sample.whole[:, :, abilities, None]))
    return np.concatenate(losses, axis=1)
