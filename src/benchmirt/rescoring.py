"""Answers graded again, by a program of one known version, in a process that can be ended.

A scoring rule asks for it (``rescore``): the right answer comes from a declared field of the source, the model's answer
from another. What the tool logged stays in the outcome's ``score``, and the manifest counts how often the two differ.
An answer that takes longer than the limit is missing (timeout), one that cannot be read is missing (unparsed), and one
at which the scorer fails is missing (judge_failed); none of them is a 0 under the honest policy.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmirt.errors import InputError
from benchmirt.outcomes import REASONS
from benchmirt.scoring import Grades, Part, Rule, innermost

__all__ = ["REASON_OF", "WORKERS", "Verifier", "again", "count", "scorer_of", "verifier"]

WORKERS: dict[str, Sequence[str]] = {"math-verify": (sys.executable, "-m", "benchmirt.math_worker")}
"""Command of the process of each scorer."""

REASON_OF = {"unparsed": "unparsed", "timeout": "timeout", "crashed": "judge_failed"}
"""Why an answer has no outcome, by verdict."""

_GRADED = (0, *(REASONS.index(why) + 1 for why in ("unparsed", "no_threshold", "judge_failed")))
_THOUGHT = "</think>"
_START = 120.0  # seconds until a scorer must have started


class Verifier:
    """A scorer in a process of its own, with a time limit per answer.

    Parameters
    ----------
    command
        Starts the process, the limit added; it speaks as :mod:`benchmirt.math_worker` does.
    seconds
        Limit per answer.

    Attributes
    ----------
    scorer
        The scorer and its version, as the process tells them.

    Raises
    ------
    InputError
        If the scorer is not installed, or does not start.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = [*command, str(seconds)]
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._known: dict[tuple[str, str], str] = {}
        self.scorer = self._start()

    def __call__(self, gold: str, answer: str) -> str:
        """Return ``right``, ``wrong``, ``unparsed``, ``timeout`` or ``crashed``."""
        key = gold, answer
        if key not in self._known:
            self._known[key] = self._ask({"gold": gold, "answer": answer})
        return self._known[key]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> str:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        told = self._read(_START) or {}
        if "scorer" in told:
            return str(told["scorer"])
        self.close()
        raise InputError(
            "a scoring rule grades answers again, and the program for that is not installed"
            if "missing" in told
            else "the program that grades answers again does not start",
            found=told.get("missing"),
            todo="Install it: pip install -e '.[math]'; or leave out the rule (rescore)",
        )

    def _ask(self, request: Mapping[str, str]) -> str:
        if self._process is None:
            again = self._start()
            if again != self.scorer:
                raise InputError("the scorer changed while it was used", found=again, expected=self.scorer)
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            return "crashed"
        reply = self._read(self._seconds)
        if reply is None:
            ended = process.poll() is not None
            self.close()
            return "crashed" if ended else "timeout"
        return str(reply["verdict"])

    def _read(self, seconds: float) -> dict[str, Any] | None:
        """Return the next line of the process as JSON; None if it does not come in time, or the process ends."""
        assert self._process is not None
        assert self._process.stdout is not None
        pipe, line = self._process.stdout.fileno(), b""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return None
                part = os.read(pipe, 65536)
                if not part:
                    self._process.wait()
                    return None
                line += part
        found: dict[str, Any] = json.loads(line)
        return found


@functools.cache
def verifier(name: str, seconds: float) -> Verifier:
    """Return the scorer of a name, started once and ended with this program."""
    made = Verifier(WORKERS[name], seconds)
    atexit.register(made.close)
    return made


def count(logged: NDArray[np.int8], verdicts: Sequence[str | None]) -> dict[str, int]:
    """Count how often a verdict differs from the logged outcome.

    Parameters
    ----------
    logged
        int8 of shape (n,): 1, 0, or -1 where nothing was logged.
    verdicts
        What the scorer said of each answer; None where it was not asked.

    Returns
    -------
    dict
        ``answers`` that were graded again; of these ``same``, ``to_one`` (0 or nothing logged before), ``to_zero``, and
        ``unparsed``, ``timeout`` and ``crashed``.
    """
    counts = dict.fromkeys(("answers", "same", "to_one", "to_zero", "unparsed", "timeout", "crashed"), 0)
    for before, verdict in zip(logged.tolist(), verdicts, strict=True):
        if verdict is None:
            continue
        counts["answers"] += 1
        if verdict in REASON_OF:
            counts[verdict] += 1
        elif int(verdict == "right") == before:
            counts["same"] += 1
        else:
            counts["to_one" if verdict == "right" else "to_zero"] += 1
    return counts


def scorer_of(rule: Rule) -> str:
    """Return what grades the items of a rule: the field that the tool wrote, or a program and its version."""
    again = rule.rescore
    return rule.logged_by if again is None else verifier(again["by"], again["seconds"]).scorer


def again(part: Part, logged: Grades) -> tuple[Grades, dict[str, int]]:
    """Return what the rows of a rule that asks for it are worth by its own scorer, and how often that differs.

    Rows without an answer (empty, truncated, not run, ...) stay as they are.
    """
    asked = part.rule.rescore
    assert asked is not None
    grade = verifier(asked["by"], asked["seconds"])
    golds, answers = (part.column(asked[role]) or [None] * part.size for role in ("gold", "answer"))
    outcome, published, reason = logged.outcome.copy(), logged.published.copy(), logged.reason.copy()
    failure = part.rule.failure["published"]
    verdicts: list[str | None] = [None] * part.size
    for place in np.flatnonzero(np.isin(logged.reason, _GRADED)):
        gold, answer = innermost(golds[place]), innermost(answers[place])
        both = isinstance(gold, str) and isinstance(answer, str)
        verdicts[place] = verdict = grade(gold, answer.rpartition(_THOUGHT)[2]) if both else "unparsed"
        if verdict in REASON_OF:
            outcome[place], reason[place] = -1, REASONS.index(REASON_OF[verdict]) + 1
            published[place] = -1 if failure is None else failure
        else:
            outcome[place] = published[place] = int(verdict == "right")
            reason[place] = 0
    return Grades(outcome, published, reason, logged.score), count(logged.outcome, verdicts)
