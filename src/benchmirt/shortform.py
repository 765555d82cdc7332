"""Which questions to run: short lists of items that tell most about the abilities.

Given the answers, the posterior covariance of the abilities is about the inverse of

    M(theta) = I + sum_j w_j(theta) a_j a_j',   w_j = slope^2 / (P_j (1 - P_j))

that is, of the prior's information and that of the items (Segall 1996, *Psychometrika* 61, 331-354). P_j holds the
item's own uncertainty (:mod:`benchmirt.ability.response`), so that a discrimination that may be luck counts for less
(van der Linden and Glas 2000, *Applied Measurement in Education* 13, 35-53). A list serves a population of models, not
one: criteria are means over N(0, I), the spread of the study's models, by Gauss-Hermite quadrature.

- All abilities: the mean of log det M is to be large (D-optimality). It is submodular, so that adding the best item
  each time reaches at least 1 - 1/e of the best gain of any list so long (Nemhauser, Wolsey and Fisher 1978,
  *Mathematical Programming* 14, 265-294).
- One ability t: the mean of t' inv(M) t, its expected posterior variance, is to be small (c-optimality), item by item
  as well.

Content balance: the next item comes from the benchmark that is furthest behind its share (Kingsbury and Zara 1989,
*Applied Measurement in Education* 2, 359-375), so that every beginning of the list is balanced, and no benchmark is
ever a whole item ahead of its share.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.posterior import nodes
from benchmirt.ability.response import Items, items_of, response
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json

__all__ = ["Balance", "Bank", "ShortForm", "bank_of", "build", "greedy", "shares", "write"]

Floats = NDArray[np.float64]
Balance = Literal["proportional", "equal", "none"]
_log = logging.getLogger(__name__)

PER_DIMENSION = {1: 21, 2: 7}  # quadrature points of the population; 3 beyond


@dataclass(frozen=True)
class Bank:
    """What items tell over a population of abilities.

    Attributes
    ----------
    a
        Discriminations, shape (J, K).
    weight
        w_j at each point of the population, shape (Q, J).
    share
        Weights of the points, shape (Q,), which sum to 1.
    """

    a: Floats
    weight: Floats
    share: Floats


@dataclass(frozen=True)
class ShortForm:
    """A list of items.

    Attributes
    ----------
    places
        Of the chosen items among those of the calibration, best first, shape (n,).
    standard_errors
        Expected posterior standard deviation of each shown ability after each item (n, K): the root of its mean variance.
    start
        The same before any item (K,).
    """

    places: NDArray[np.intp]
    standard_errors: Floats
    start: Floats


def bank_of(items: Items) -> Bank:
    """Return the information of items over N(0, I)."""
    points, share = nodes(items.dims, PER_DIMENSION.get(items.dims, 3))
    expected = response(jnp.asarray(points, jnp.float32), items)
    weight = np.asarray(expected.slope**2 / expected.variance, np.float64)
    return Bank(np.asarray(items.a, np.float64), weight, share)


def shares(benchmark: NDArray[np.str_], balance: Balance) -> tuple[NDArray[np.intp], Floats]:
    """Return the group of each item (J,) and the share of a list that each group is to have (G,).

    Parameters
    ----------
    benchmark
        Benchmark of each item.
    balance
        ``proportional`` to the number of items, ``equal``, or ``none``: one group.
    """
    if balance == "none":
        return np.zeros(len(benchmark), dtype=np.intp), np.ones(1)
    names, group, count = np.unique(benchmark, return_inverse=True, return_counts=True)
    share = count / count.sum() if balance == "proportional" else np.full(len(names), 1.0 / len(names))
    return group.astype(np.intp), share


def _furthest_behind(counts: Floats, share: Floats, left: Floats) -> NDArray[np.bool_]:
    """Say which groups that have items left are furthest behind their share of a list that is one longer."""
    behind = np.where(left > 0, share * (counts.sum() + 1) - counts, -np.inf)
    return behind >= behind.max() - 1e-9


def greedy(
    bank: Bank, group: NDArray[np.intp], share: Floats, direction: Floats | None = None
) -> Iterator[tuple[int, Floats]]:
    """Yield the places of items, the most telling first, each with the inverses of M (Q, K, K) once it is in the list.

    Parameters
    ----------
    bank
        The items.
    group, share
        As from :func:`shares`.
    direction
        Unit vector of the one ability that matters (K,); None: all.
    """
    dims = bank.a.shape[1]
    inverse = np.broadcast_to(np.eye(dims), (len(bank.share), dims, dims)).copy()
    free = np.ones(len(bank.a), dtype=bool)
    counts = np.zeros(len(share))
    left = np.bincount(group, minlength=len(share)).astype(np.float64)
    while free.any():
        candidates = np.flatnonzero(free & _furthest_behind(counts, share, left)[group])
        a, weight = bank.a[candidates], bank.weight[:, candidates]
        spread = inverse @ a.T  # (Q, K, candidates)
        quadratic = weight * np.einsum("qkj,jk->qj", spread, a)
        if direction is None:
            gain = bank.share @ np.log1p(quadratic)
        else:
            gain = bank.share @ (weight * np.einsum("qkj,k->qj", spread, direction) ** 2 / (1.0 + quadratic))
        best = int(np.argmax(gain))
        place = int(candidates[best])
        column = spread[:, :, best]
        factor = weight[:, best] / (1.0 + quadratic[:, best])
        inverse -= factor[:, None, None] * column[:, :, None] * column[:, None, :]
        free[place] = False
        counts[group[place]] += 1
        left[group[place]] -= 1
        yield place, inverse


def build(
    calibration: Calibration,
    *,
    size: int | None = None,
    standard_error: float | None = None,
    ability: str | int = "all",
    balance: Balance = "proportional",
) -> ShortForm:
    """Choose items until the list is long or precise enough.

    Parameters
    ----------
    calibration
        The items.
    size
        Items of the list; None: as many as the precision takes.
    standard_error
        Largest expected standard error of the ability, or of every ability; None: whatever the size gives. With both
        the list ends where the first is reached.
    ability
        ``all``, or the number (from 1) or name of the one that matters.
    balance
        Content balance over benchmarks.

    Raises
    ------
    InputError
        If neither size nor precision is given, there is no such ability, or all items together are not so many or so
        precise.
    """
    if size is None and standard_error is None:
        raise InputError(
            "a short form needs a size or a standard_error", where="shortform", todo="Give one of the two"
        )
    chosen = None if ability == "all" else calibration.ability(ability, where="shortform.ability")
    total = len(calibration.items)
    if size is not None and size > total:
        raise InputError(
            "the calibration has fewer items",
            where="shortform.size",
            found=str(size),
            expected=f"at most {total}",
        )
    bank = bank_of(items_of(calibration))
    group, share = shares(calibration.benchmark_of(), balance)
    T = calibration.T
    direction = None if chosen is None else T[:, chosen]

    def errors(inverse: Floats) -> Floats:
        return np.sqrt(np.einsum("q,kt,qkl,lt->t", bank.share, T, inverse, T))

    places: list[int] = []
    found: list[Floats] = []
    wanted = slice(None) if chosen is None else slice(chosen, chosen + 1)
    for place, inverse in greedy(bank, group, share, direction):
        places.append(place)
        found.append(errors(inverse))
        reached = standard_error is not None and bool((found[-1][wanted] <= standard_error).all())
        if reached or len(places) == size:
            break
    else:
        raise InputError(
            "all items of the calibration together are less precise than that",
            where="shortform.standard_error",
            found=str(standard_error),
            expected=f"at least {found[-1][wanted].max():.3g}",
        )
    _log.info(
        "%d items; expected standard errors %s", len(places), ", ".join(f"{one:.3f}" for one in found[-1])
    )
    start = errors(
        np.broadcast_to(np.eye(calibration.dims), (len(bank.share), calibration.dims, calibration.dims))
    )
    return ShortForm(np.array(places, dtype=np.intp), np.array(found), start)


def write(form: ShortForm, calibration: Calibration, options: dict[str, Any], folder: str | Path) -> None:
    """Write ``shortform.csv``, a row per item in the order to run them, and ``shortform.json``, which says how it came about."""
    home = Path(folder)
    facts = (
        calibration.item_table[calibration.item_table["calibrated"]].iloc[form.places].reset_index(drop=True)
    )
    columns = {f"standard_error_{k + 1}": form.standard_errors[:, k] for k in range(calibration.dims)}
    kept = facts[["question_id", "benchmark", "category", "testlet", "mean"]]
    rank = pd.DataFrame({"rank": np.arange(1, len(facts) + 1)})
    write_csv(pd.concat([rank, kept, pd.DataFrame(columns)], axis=1), home / "shortform.csv")
    write_json(
        {
            "simulated": calibration.simulated,
            "items": len(form.places),
            "of": len(calibration.items),
            "abilities": {
                f"standard_error_{k + 1}": {
                    "ability": label,
                    "without_items": form.start[k],
                    "expected": form.standard_errors[-1, k],
                }
                for k, label in enumerate(calibration.labels)
            },
            "benchmarks": facts["benchmark"].value_counts(sort=False).to_dict(),
            "options": options,
            "criterion": "D-optimal: mean log determinant of the information over N(0, I)"
            if options["ability"] == "all"
            else "c-optimal: mean posterior variance of the ability over N(0, I)",
            "calibration": calibration.origin,
            "provenance": provenance.record(data_hash=calibration.about["provenance"]["data_hash"]),
        },
        home / "shortform.json",
    )
