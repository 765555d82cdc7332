"""Tests given to models whose answers are on record: an item that a model has no outcome for cannot be put to it.

All models are tested side by side, each with the items of the calibration that knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmirt.ability.posterior import Posterior, posterior, posterior_of_own
from benchmirt.ability.prediction import totals
from benchmirt.ability.response import Items
from benchmirt.adaptive.selection import (
    Exposure,
    Pool,
    Rules,
    choose,
    expected_weights,
    gains,
    gather,
    shown_errors,
)
from benchmirt.progress import progress
from benchmirt.resampling import generator
from benchmirt.shortform.information import bank_of, greedy

__all__ = ["Course", "Takers", "administer", "in_list_order", "in_random_order"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Takers:
    """N models with their answers on record.

    Attributes
    ----------
    pools
        Items as each fold's calibration knows them; the same J items in all.
    fold
        Which of them each model is tested with, shape (N,).
    responses
        1, 0 or -1 (missing), shape (N, J).
    """

    pools: tuple[Pool, ...]
    fold: NDArray[np.intp]
    responses: NDArray[np.int8]

    @cached_property
    def stacked(self) -> Items:
        """The items of all folds in arrays with a first axis of folds."""
        stacked: Items = jax.tree.map(lambda *one: jnp.stack(one), *(pool.items for pool in self.pools))
        return jax.tree.map(np.asarray, stacked)

    @cached_property
    def seen(self) -> Mask:
        """Whether there is an outcome, shape (N, J)."""
        return np.asarray(self.responses >= 0)

    def posterior(self, places: Places) -> Posterior:
        """Return the posterior of the models from their outcomes on the items at places (N, M), -1 where there is none."""
        outcomes = np.where(places >= 0, np.take_along_axis(self.responses, places, axis=1), np.int8(-1))
        return posterior_of_own(outcomes, gather(self.stacked, (self.fold[:, None], np.maximum(places, 0))))

    def shown(self, abilities: Posterior) -> tuple[Floats, Floats]:
        """Return means and standard errors of the shown abilities, both (N, A)."""
        mean, errors = np.empty((2, len(self.fold), self.pools[0].T.shape[1]))
        for index, pool in enumerate(self.pools):
            mine = self.fold == index
            mean[mine] = abilities.mean[mine] @ pool.T
            errors[mine] = shown_errors(abilities.cov[mine], pool.T)
        return mean, errors

    def whole(self) -> Floats:
        """Return the shown abilities from all outcomes, (N, A)."""
        mean = np.empty((len(self.fold), self.pools[0].T.shape[1]))
        for index, pool in enumerate(self.pools):
            mine = self.fold == index
            mean[mine] = posterior(self.responses[mine], pool.items).mean @ pool.T
        return mean

    def means(self, abilities: Posterior, tested: Mask, group: Places, groups: int) -> Floats:
        """Predict each model's mean over all its outcomes of each group of items, shape (N, G); NaN where it has none.

        Parameters
        ----------
        abilities
            Posterior of the models.
        tested
            Outcomes that the test brought to light and that count as they are, shape (N, J).
        group, groups
            Group of each item (J,), and how many there are.
        """
        member = (group[:, None] == np.arange(groups)).astype(np.float64)
        right = ((self.responses == 1) & tested) @ member
        for index, pool in enumerate(self.pools):
            mine = self.fold == index
            sums = totals(abilities.points[mine], self.seen[mine] & ~tested[mine], member, pool.items)
            right[mine] += (abilities.weights[mine][:, :, None] * sums.right).sum(axis=1)
        count = self.seen @ member
        return np.where(count > 0, right / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Course:
    """The course of the tests of N models.

    Attributes
    ----------
    places
        Items in the order in which each model was given them, -1 where its test had ended, shape (N, size).
    at
        Numbers of items after which the following were worked out, shape (S,).
    abilities, errors
        Means and standard errors of the shown abilities, shape (S, N, A).
    gain
        Largest expected gain of an item that is left, -inf where none is, shape (S, N).
    """

    places: Places
    at: NDArray[np.int64]
    abilities: Floats
    errors: Floats
    gain: Floats


def administer(
    takers: Takers,
    rules: Rules,
    *,
    size: int,
    batch: int,
    sizes: Sequence[int] = (),
    limit: float = 1.0,
    seed: int = 0,
    name: str = "adaptive",
) -> Course:
    """Test all models adaptively, side by side.

    Exposure is limited among the models of each fold. Were it limited among all of them, an item would go to the fold in
    whose calibration it looks best, which is the one whose own answers, left out there, speak most against it.

    Parameters
    ----------
    takers, rules
        The models and their items, and how items are chosen.
    size
        Items of each test.
    batch
        Items that are chosen at a time.
    sizes
        Numbers of items at which no batch may be under way.
    limit
        Share of the models of each fold that may see an item; one may where that is less than one.
    seed, name
        Of the draws; tests of another name have other draws.
    """
    count, items = takers.responses.shape
    random = generator(seed, f"tests {name}")
    exposures = [Exposure.of(items, limit) for _ in takers.pools]
    for fold in takers.fold:
        exposures[fold].takers += 1
    free = takers.seen.copy()
    places = np.full((count, size), -1, dtype=np.intp)
    at = sorted({*range(0, size, batch), *(one for one in sizes if one < size), size})
    course: list[tuple[Floats, Floats, Floats]] = []
    for begin, end in progress(zip(at, [*at[1:], size], strict=True), len(at), f"rounds of {name} tests"):
        found = takers.posterior(places[:, : max(begin, 1)])
        weight = np.empty((count, items))
        for index, pool in enumerate(takers.pools):
            mine = takers.fold == index
            own = Posterior(*(part[mine] for part in vars(found).values()))
            weight[mine] = expected_weights(own, pool.items, rules.per_dimension)
        gain = np.full(count, -np.inf)
        for model in random.permutation(count):
            pool, exposure = takers.pools[takers.fold[model]], exposures[takers.fold[model]]
            left = free[model] & exposure.open()
            told = gains(weight[model], pool.a, found.cov[model], rules.criterion, pool.T)
            gain[model] = np.max(told, where=left, initial=-np.inf)
            asked = places[model, :begin]
            chosen = choose(
                pool, rules, weight[model], found.cov[model], left, asked[asked >= 0], end - begin, random
            )
            places[model, begin : begin + len(chosen)] = chosen
            free[model, chosen] = False
            exposure.show(chosen)
        course.append((*takers.shown(found), gain))
    abilities, errors, best = (np.stack(one) for one in zip(*course, strict=True))
    return Course(places, np.array(at, dtype=np.int64), abilities, errors, best)


def in_random_order(takers: Takers, size: int, *, stratified: bool, seed: int = 0, draw: int = 0) -> Places:
    """Put the items that each model has outcomes for in random order, shape (N, size), -1 where there are no more.

    Stratified: every beginning holds each group of items in proportion, up to one item.
    """
    places = np.full((len(takers.fold), size), -1, dtype=np.intp)
    kind = "stratified" if stratified else "random"
    for model in range(len(places)):
        random = generator(seed, f"{kind} order {draw}/{model}")
        order = random.permutation(np.flatnonzero(takers.seen[model]))
        if stratified:
            group = takers.pools[takers.fold[model]].group[order]
            counts = np.bincount(group)
            by_group = np.argsort(group, kind="stable")
            rank = np.empty(len(order))
            starts = np.cumsum(counts) - counts
            rank[by_group] = np.arange(len(order)) - starts[group[by_group]]
            begin = random.uniform(size=len(counts))
            order = order[np.argsort((rank + begin[group]) / counts[group], kind="stable")]
        places[model, : min(size, len(order))] = order[:size]
    return places


def in_list_order(takers: Takers, size: int) -> Places:
    """Put the items in the order of the fixed short form of each fold, without those that a model has no outcome for.

    The list is that of :mod:`benchmirt.shortform.listing`: D-optimal over N(0, I), with the pool's content balance.
    Shape (N, size), -1 where there are no more.
    """
    places = np.full((len(takers.fold), size), -1, dtype=np.intp)
    for index, pool in enumerate(takers.pools):
        models = np.flatnonzero(takers.fold == index)
        filled = np.zeros(len(models), dtype=np.intp)
        goal = np.minimum(size, takers.seen[models].sum(axis=1))
        for place, _ in greedy(bank_of(pool.items), pool.group, pool.share):
            takes = takers.seen[models, place] & (filled < goal)
            places[models[takes], filled[takes]] = place
            filled[takes] += 1
            if (filled >= goal).all():
                break
    return places
