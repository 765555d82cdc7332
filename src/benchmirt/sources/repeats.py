"""Repeats: several epochs, trials or generations of one question become one outcome, as a rule declares.

A rule says ``repeats: first``, ``majority`` or ``{mean: THRESHOLD}``. Without it they are refused: nothing is averaged
or overwritten in silence. So are several grades of one answer (the filters of lm-evaluation-harness, the metrics of
Every Eval Ever): a rule has to say which one counts.

========== ======================================================================================
first      the repeat with the least number or name; where it is missing, the outcome is missing
majority   what most of the repeats that have an outcome are; a tie is a conflict
mean       1 if the mean grade of the repeats that have one is at least the threshold
========== ======================================================================================

One repeat that stands in several rows counts once where they agree; where they do not, the outcome is a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmirt.errors import InputError
from benchmirt.ids import natural
from benchmirt.outcomes import REASONS, Asked, differ
from benchmirt.scoring import Grades, Part, on_another_scale

__all__ = ["Repeated", "reduce"]

_CONFLICT = REASONS.index("conflict") + 1
_NO_THRESHOLD = REASONS.index("no_threshold") + 1


@dataclass(frozen=True)
class Repeated:
    """Graded rows.

    Attributes
    ----------
    names, content
        The item of each row, and the hashes of what was asked.
    grades
        What each is worth.
    repeats, twice
        How many rows were one repeat of several, and how many stood for a repeat that another row stands for.
    """

    names: list[str]
    content: list[Asked | None]
    grades: Grades
    repeats: int = 0
    twice: int = 0


def reduce(part: Part, names: list[str], content: list[Asked | None], grades: Grades) -> Repeated:
    """Return the rows of a part with one row per question that was asked several times.

    Parameters
    ----------
    part
        The rows; its table may have the attributes ``repeat`` and ``variant``, the fields that tell rows apart.
    names, content, grades
        The item of each row, the hashes of what was asked, and what it is worth.

    Raises
    ------
    InputError
        If a question has several grades of one answer, or repeats without a rule for them.
    """
    if len(set(names)) == len(names):
        return Repeated(names, content, grades)
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        groups.setdefault(name, []).append(place)
    _refuse_variants(part, groups)
    field = getattr(part.table, "repeat", None)
    marks = part.column(field) if field else None
    if marks is None:
        return Repeated(names, content, grades)
    several = {
        name: places for name, places in groups.items() if len({_mark(marks[place]) for place in places}) > 1
    }
    if not several:
        return Repeated(names, content, grades)
    if part.rule.repeats is None:
        raise _undeclared(part, str(field), several, marks)
    drop: set[int] = set()
    twice = 0
    result = Grades(grades.outcome.copy(), grades.published.copy(), grades.reason.copy(), grades.score.copy())
    for places in several.values():
        ordered = sorted(places, key=lambda place: natural(_mark(marks[place])))
        chosen, agree = _each_once(ordered, [_mark(marks[place]) for place in ordered], grades)
        first = chosen[0]
        _merge(part, chosen, grades, result)
        if not agree or differ(content[place] for place in places):
            _miss(result, first, _CONFLICT)
        drop.update(place for place in places if place != first)
        twice += len(places) - len(chosen)
    keep = [place for place in range(len(names)) if place not in drop]
    return Repeated(
        [names[place] for place in keep],
        [content[place] for place in keep],
        Grades(result.outcome[keep], result.published[keep], result.reason[keep], result.score[keep]),
        len(drop) - twice,
        twice,
    )


def _mark(value: Any) -> str:
    """Return what tells a repeat from others, as a text."""
    return value if isinstance(value, str) else repr(value)


def _miss(grades: Grades, place: int, reason: int) -> None:
    grades.outcome[place] = grades.published[place] = -1
    grades.reason[place] = reason


def _each_once(places: Sequence[int], marks: Sequence[str], grades: Grades) -> tuple[list[int], bool]:
    """Return a row for each repeat, in order, and whether the rows of each agree.

    As of rows that repeat an item, one that has a grade stands for those where grading failed.
    """
    rows: dict[str, list[int]] = {}
    for place, mark in zip(places, marks, strict=True):
        rows.setdefault(mark, []).append(place)
    chosen, agree = [], True
    for own in rows.values():
        seen = [place for place in own if grades.outcome[place] >= 0 or not np.isnan(grades.score[place])]
        chosen.append(seen[0] if seen else own[0])
        worth = {(int(grades.outcome[place]), str(grades.score[place])) for place in seen or own}
        agree &= len(worth) == 1
    return chosen, agree


def _merge(part: Part, places: Sequence[int], grades: Grades, result: Grades) -> None:
    """Put the outcome of some repeats, in order, into the row of the first."""
    first, how = places[0], part.rule.repeats
    if how == "first":
        return
    if how == "majority":
        ones = sum(int(grades.outcome[place] == 1) for place in places)
        zeros = sum(int(grades.outcome[place] == 0) for place in places)
        if ones + zeros == 0:
            return
        result.score[first] = ones / (ones + zeros)
        if ones == zeros:
            _miss(result, first, _CONFLICT)
            return
        outcome = int(ones > zeros)
    else:
        assert not isinstance(how, str | None)
        values = [value for place in places if (value := _grade(part, grades, place)) is not None]
        if not values:
            return
        result.score[first] = mean = float(np.mean(values))
        outcome = int(mean >= how)
    result.outcome[first] = result.published[first] = outcome
    result.reason[first] = 0


def _grade(part: Part, grades: Grades, place: int) -> float | None:
    """Return the grade of a row, or None: its outcome; its number, where the rule or the mean has the threshold."""
    score, outcome = float(grades.score[place]), int(grades.outcome[place])
    if outcome >= 0:
        return score if part.rule.graded else float(outcome)
    # without a threshold of its own a fraction is missing as no_threshold, and just that is a grade for the mean
    fraction = grades.reason[place] == _NO_THRESHOLD and 0.0 < score < 1.0
    fits = part.rule.one.get("is") is True and not on_another_scale(grades.score)
    return score if fraction and fits else None


def _refuse_variants(part: Part, groups: dict[str, list[int]]) -> None:
    """Stop at a question whose answer has several grades."""
    field = getattr(part.table, "variant", None)
    marks = part.column(field) if field else None
    if marks is None:
        return
    for name, places in groups.items():
        found = list(dict.fromkeys(_mark(marks[place]) for place in places))
        if len(found) > 1:
            raise InputError(
                f'one answer to "{name}" has several grades, told apart by "{field}"',
                file=part.table.file,
                where=part.table.where(_row(part, places[1]), str(field)),
                found=", ".join(f'"{mark}"' for mark in found[:5]),
                expected="one of them",
                todo=f"Say which one counts in a scoring rule: only: {{{field}: [{found[0]}]}}",
            )


def _undeclared(part: Part, field: str, several: dict[str, list[int]], marks: Sequence[Any]) -> InputError:
    """Tell that questions were asked several times, and nothing says which answer counts."""
    name, places = next(iter(several.items()))
    found = list(dict.fromkeys(_mark(marks[place]) for place in places))
    others = f" (and {len(several) - 1} other questions)" if len(several) > 1 else ""
    return InputError(
        f'"{name}" was asked several times{others}, and no rule says which answer counts',
        file=part.table.file,
        where=part.table.where(_row(part, places[1]), field),
        found=f"{field} {', '.join(found[:5])}" + (", ..." if len(found) > 5 else ""),
        todo="Write repeats: first, majority or {mean: 0.5} into a scoring rule",
    )


def _row(part: Part, place: int) -> int:
    return place if part.rows is None else part.rows[place]
