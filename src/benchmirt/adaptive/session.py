"""The adaptive test of one model: ask for questions, run them, tell the outcomes, until enough is known.

.. code-block:: python

    test = AdaptiveTest(known, stop=Stop(standard_error=0.3, items=200))
    while questions := test.next(10):
        test.record({question: run(question) for question in questions})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmirt.ability.calibration import Calibration
from benchmirt.ability.posterior import Posterior, posterior_of_own
from benchmirt.ability.response import items_of
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
from benchmirt.errors import InputError
from benchmirt.given import above_zero, whole_number
from benchmirt.resampling import generator
from benchmirt.shortform.information import Balance, shares

__all__ = ["AdaptiveTest", "Stop", "pool_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Stop:
    """When a test ends: as soon as one of these holds. It always ends where no item is left.

    Attributes
    ----------
    standard_error
        Largest posterior standard error of every shown ability, or of each (A,).
    items
        Items that were put.
    gain
        No item is expected to gain so much: in the unit of the criterion, for D nats of log det precision.
    """

    standard_error: float | tuple[float, ...] | None = None
    items: int | None = None
    gain: float | None = None

    def __post_init__(self) -> None:
        if self.items is not None:
            whole_number(self.items, "items")
        errors = self.standard_error if isinstance(self.standard_error, tuple) else (self.standard_error,)
        for name, value in (*(("standard_error", one) for one in errors), ("gain", self.gain)):
            if value is not None:
                above_zero(value, name)

    def why(self, errors: Floats, items: int, gain: float) -> str | None:
        """Say why a test ends, or None: ``standard error``, ``items``, ``no item left`` or ``gain``.

        Parameters
        ----------
        errors
            Posterior standard errors of the shown abilities, shape (A,).
        items
            Items put so far.
        gain
            Largest expected gain of an item that is left; -inf where none is.
        """
        if self.standard_error is not None and bool((errors <= np.asarray(self.standard_error)).all()):
            return "standard error"
        if self.items is not None and items >= self.items:
            return "items"
        if not np.isfinite(gain):
            return "no item left"
        return "gain" if self.gain is not None and gain < self.gain else None


def pool_of(calibration: Calibration, balance: Balance = "none") -> Pool:
    """Return the items of a calibration as a pool, with content balance over its benchmarks."""
    group, share = shares(calibration.benchmark_of(), balance)
    return Pool(items_of(calibration), calibration.T, group, share)


class AdaptiveTest:
    """The test of one model.

    Parameters
    ----------
    calibration
        What a finished study knows of its items.
    stop
        When it ends.
    rules
        How items are chosen.
    balance
        Share of each benchmark: ``none`` prescribed, ``proportional`` to its items, or ``equal``.
    exposure
        Shared by the tests of all models that a limit is to hold for.
    available
        Names of the items that can be put; None: all of the calibration.
    seed
        Of the draw from the best items.

    Attributes
    ----------
    posterior
        Of the abilities in the canonical frame, one model.
    asked
        Names of the items that were put, in order; those that are out among them.
    stopped
        Why it ended, as from :meth:`Stop.why`, or None.

    Raises
    ------
    InputError
        If an item that is available is not one of the calibration, or an option does not fit it.
    """

    def __init__(
        self,
        calibration: Calibration,
        *,
        stop: Stop | None = None,
        rules: Rules | None = None,
        balance: Balance = "none",
        exposure: Exposure | None = None,
        available: Iterable[str] | None = None,
        seed: int = 0,
    ) -> None:
        abilities = len(calibration.labels)
        wanted = stop.standard_error if stop is not None else None
        if isinstance(wanted, tuple) and len(wanted) != abilities:
            raise InputError(
                "", where="standard_error", found=f"{len(wanted)} numbers", expected=f"one, or {abilities}"
            )
        if exposure is not None and len(exposure.counts) != len(calibration.items):
            raise InputError(
                "the exposure counts other items than the calibration has",
                found=f"{len(exposure.counts):,}",
                expected=f"{len(calibration.items):,}: Exposure.of(len(calibration.items), limit)",
            )
        self.calibration = calibration
        self.stop, self.rules = stop or Stop(), rules or Rules()
        self.pool = pool_of(calibration, balance)
        self.exposure = exposure or Exposure.of(len(calibration.items), 1.0)
        self._place = {name: place for place, name in enumerate(calibration.items)}
        self._free = np.ones(len(calibration.items), dtype=bool)
        if available is not None:
            self._free[:] = False
            self._free[[self._known(name) for name in available]] = True
        self.responses = np.full(len(calibration.items), -1, dtype=np.int8)
        self._order: list[int] = []
        self._out: set[int] = set()
        self._random = generator(seed, "adaptive test")
        self.exposure.takers += 1
        self.stopped: str | None = None
        self._learn()

    def _known(self, name: str) -> int:
        if name not in self._place:
            raise InputError(
                "the calibration has no such item, or it told no models apart",
                found=f'"{name}"',
                expected="a question_id with parameters of items.csv.gz",
            )
        return self._place[name]

    def _learn(self) -> None:
        """Work out the abilities from all outcomes, what each item would tell now, and whether that is enough."""
        places = np.array([self._order], dtype=np.intp)
        self.posterior: Posterior = posterior_of_own(
            self.responses[places] if self._order else np.full((1, 1), -1, dtype=np.int8),
            gather(self.pool.items, places if self._order else np.zeros((1, 1), dtype=np.intp)),
        )
        self._weight = expected_weights(self.posterior, self.pool.items, self.rules.per_dimension)[0]
        gain = gains(
            self._weight,
            self.pool.a,
            self.posterior.cov[0],
            self.rules.criterion,
            self.pool.T,
        )
        left = self._free & self.exposure.open()
        best = float(np.max(gain, where=left, initial=-np.inf))
        self.stopped = self.stop.why(self.standard_errors, len(self._order), best)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the items that were put, in order."""
        return tuple(self.calibration.items[place] for place in self._order)

    @property
    def abilities(self) -> Floats:
        """Posterior mean of each shown ability, shape (A,)."""
        return np.asarray(self.posterior.mean[0] @ self.pool.T)

    @property
    def standard_errors(self) -> Floats:
        """Posterior standard deviation of each shown ability, shape (A,)."""
        return shown_errors(self.posterior.cov, self.pool.T)[0]

    def next(self, size: int = 1) -> tuple[str, ...]:
        """Return the next items to run, at most `size`; none where the test has ended.

        Raises
        ------
        InputError
            If outcomes of items that were given out are still missing, or `size` is not a whole number above 0.
        """
        size = whole_number(size, "size")
        if self._out:
            raise InputError(
                "outcomes of items that were given out are missing",
                found=", ".join(sorted(self.calibration.items[place] for place in self._out)[:3]),
                todo="Record them, None where a run failed, before asking for more",
            )
        if self.stopped is not None:
            return ()
        if self.stop.items is not None:
            size = min(size, self.stop.items - len(self._order))
        chosen = choose(
            self.pool,
            self.rules,
            self._weight,
            self.posterior.cov[0],
            self._free & self.exposure.open(),
            np.array(self._order, dtype=np.intp),
            size,
            self._random,
        )
        if not len(chosen):  # others have used up what was left
            self.stopped = "no item left"
        self.exposure.show(chosen)
        self._free[chosen] = False
        self._order += chosen.tolist()
        self._out = set(chosen.tolist())
        return tuple(self.calibration.items[place] for place in chosen)

    def record(self, outcomes: Mapping[str, int | None]) -> None:
        """Take outcomes of items that were given out: 1, 0, or None where a run failed, which is not a wrong answer.

        Raises
        ------
        InputError
            If an item was not given out, or an outcome is none of these; nothing is recorded then.
        """
        told: dict[int, int] = {}
        for name, outcome in outcomes.items():
            place = self._known(name)
            if place not in self._out:
                raise InputError("this item was not given out, or its outcome is known", found=f'"{name}"')
            if outcome is not None and not (
                isinstance(outcome, (int, float, np.number)) and outcome in (0, 1)
            ):
                raise InputError(
                    "an outcome is neither right nor wrong",
                    where=name,
                    found=str(outcome),
                    expected="1, 0 or None",
                )
            told[place] = -1 if outcome is None else int(outcome)
        for place, value in told.items():
            self.responses[place] = value
        self._out -= set(told)
        self._learn()
