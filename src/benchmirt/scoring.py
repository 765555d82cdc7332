"""What counts as a 1: scoring rules are data, and this interprets them.

A rule (``workflow/resources/scoring.yaml``) says which tasks it scores, which field of a row decides and how,
what a failure to grade counted as in the published study, and what else a row tells of its item. No benchmark
is known here.

A number between 0 and 1 is a grade: it becomes an outcome where the rule gives a threshold (``at_least``), and
where it does not, the outcome is missing (``no_threshold``) and the number is kept as the score. So are all numbers
of a task where one of them is above 1: on a scale to 5 or to 100 a 1 is nearly the worst grade, and no right answer.
The rules of the published study, which say what a failure counted as, are about fields that hold nothing but 1 and 0.

What a field that must be a truth value may hold: ``1``, ``1.0``, ``"1"``, ``"1.0"``, ``true``, ``"True"`` and
the same of zero. Anything else is no zero: another number is missing as ``no_threshold``, the rest as ``unparsed``.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmirt import config
from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_bytes
from benchmirt.outcomes import REASONS, Asked, digest

__all__ = ["Grades", "Part", "Rule", "Scorer", "Table", "Template", "innermost", "load", "on_another_scale"]

_SCHEMA = Path("workflow", "schemas", "scoring.schema.json")
_TRUTH: dict[Any, int] = {1: 1, "1": 1, "1.0": 1, "True": 1, 0: 0, "0": 0, "0.0": 0, "False": 0}
_NOTHING, _UNREADABLE, _GRADE = -1, -2, -3
_OPEN, _CLOSE = "<think>", "</think>"
_CODE = {reason: number for number, reason in enumerate(REASONS, start=1)}
FACTS = (
    "subcategory_one",
    "subcategory_two",
    "subcategory_three",
    "domain_superset",
    "question_type",
    "testlet",
)
"""Facts of an item that are templates."""


class Table(Protocol):
    """The rows of one task of one model, by columns."""

    @property
    def file(self) -> str:
        """The file in messages."""
        ...

    @property
    def task(self) -> str:
        """The task's name."""
        ...

    @property
    def kind(self) -> str | None:
        """The format whose rules score it, where there are rules of several."""
        ...

    @property
    def size(self) -> int:
        """The number of rows."""
        ...

    def column(self, field: str) -> list[Any] | None:
        """Return a field (named with dots) of all rows, None where a row lacks it; None if all must."""
        ...

    def lengths(self, field: str) -> list[int | None] | None:
        """Return the number of entries of a field that holds lists."""
        ...

    def where(self, row: int, field: str) -> str:
        """Return how messages call a field of a row (counted from 0)."""
        ...


@dataclass(frozen=True)
class Grades:
    """What some rows are worth; arrays of shape (n,).

    Attributes
    ----------
    outcome
        int8: 1, 0, or -1 where missing.
    published
        int8: the same under the published policy, where a failure has its rule's value.
    reason
        uint8: 0, or 1 + the place in :data:`benchmirt.outcomes.REASONS`.
    score
        float64: the number that was graded, NaN where there is none.
    unreadable
        How many are missing since the field that decides holds what the rule does not explain.
    """

    outcome: NDArray[np.int8]
    published: NDArray[np.int8]
    reason: NDArray[np.uint8]
    score: NDArray[np.float64]
    unreadable: int = 0


# -- templates ----------------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """Return a value as it is printed in a name; None for nothing and for what is no value."""
    if isinstance(value, str):
        return value
    if value is None or value != value or isinstance(value, dict):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    try:
        return str(value)
    except RecursionError:  # nested almost too deeply to be read
        return None


def _part(value: Any, argument: str) -> str | None:
    text = _text(value)
    parts = [] if text is None else text.split("/")
    place = int(argument)
    return parts[place] or None if -len(parts) <= place < len(parts) else None


def _item(value: Any, argument: str) -> Any:
    place = int(argument)
    return value[place] if isinstance(value, list) and -len(value) <= place < len(value) else None


def _whole(value: Any) -> int | None:
    text = _text(value)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _div(value: Any, argument: str) -> int | None:
    number = _whole(value)
    return None if number is None else number // int(argument)


def _drop(value: Any, argument: str) -> str | None:
    text = _text(value)
    return None if text is None else text.removeprefix(argument)


def _hash(value: Any, argument: str) -> str | None:
    text = _text(value)
    return None if text is None else digest(text)


_FILTERS: dict[str, Callable[[Any, str], Any]] = {
    "part": _part,
    "item": _item,
    "div": _div,
    "drop": _drop,
    "hash": _hash,
}
_NUMBERED = ("part", "item", "div")
_PLACE = re.compile(r"\{([^{}]*)\}")

Columns = Callable[[str], "list[Any] | None"]


class Template:
    """A text with fields in braces.

    Parameters
    ----------
    text
        Such as ``bbq__{category}_{id|part:-1}``.

    Attributes
    ----------
    fields
        The fields that it needs.

    Raises
    ------
    ValueError
        If a filter is unknown or its argument is none.
    """

    def __init__(self, text: str) -> None:
        pieces = _PLACE.split(text)
        self._format = "%s".join(piece.replace("%", "%%") for piece in pieces[::2])
        self._places = [self._parsed(place) for place in pieces[1::2]]
        if "{" in self._format or "}" in self._format:
            raise ValueError(f'a brace is open or empty in "{text}"')
        named = [name for name, _ in self._places]
        named += [argument for _, filters in self._places for name, argument in filters if name == "within"]
        self.fields = tuple(dict.fromkeys(named))

    @staticmethod
    def _parsed(place: str) -> tuple[str, list[tuple[str, str]]]:
        field, *filters = place.split("|")
        if not field:
            raise ValueError("a brace holds no field")
        parsed = []
        for text in filters:
            name, _, argument = text.partition(":")
            if name not in _FILTERS and name != "within":
                near = nearest(name, [*_FILTERS, "within"])
                raise ValueError(
                    f'there is no filter "{name}"' + (f'; did you mean "{near}"?' if near else "")
                )
            number = r"[1-9][0-9]*" if name == "div" else r"-?[0-9]+"
            if name in _NUMBERED and not re.fullmatch(number, argument):
                raise ValueError(f'the filter "{name}" needs a whole number, such as {name}:1')
            if name == "within" and not argument:
                raise ValueError('the filter "within" needs a field, such as within:type')
            parsed.append((name, argument))
        return field, parsed

    def __call__(self, column: Columns, size: int) -> list[str | None]:
        """Return the text of each row; None where a field that it needs is not there.

        Parameters
        ----------
        column
            Gives the column of a field, or None.
        size
            The number of rows.
        """
        if not self._places:
            return [self._format % ()] * size
        columns = []
        for field, filters in self._places:
            values = column(field)
            if values is None:
                return [None] * size
            for name, argument in filters:
                if name == "within":
                    values = _within(values, column(argument) or [None] * size)
                else:
                    apply = _FILTERS[name]
                    values = [apply(value, argument) for value in values]
            columns.append([_text(value) for value in values])
        return [None if None in texts else self._format % texts for texts in zip(*columns, strict=True)]


def _within(values: Sequence[Any], groups: Sequence[Any]) -> list[int | None]:
    """Return whole numbers less the least of their group."""
    numbers = [_whole(value) for value in values]
    names = [_text(group) for group in groups]
    least: dict[str | None, int] = {}
    for name, number in zip(names, numbers, strict=True):
        if number is not None:
            least[name] = min(number, least.get(name, number))
    return [
        None if number is None else number - least[name] for name, number in zip(names, numbers, strict=True)
    ]


# -- rules --------------------------------------------------------------------------------------------------


def _matcher(wanted: str | list[Any]) -> Callable[[Any], bool]:
    """Return what says whether a value is meant by a regular expression or a list of values."""
    if isinstance(wanted, list):
        texts = {str(value) for value in wanted}
        return lambda value: _text(value) in texts
    search = re.compile(wanted).search

    def found(value: Any) -> bool:
        text = _text(value)
        return text is not None and search(text) is not None

    return found


class Rule:
    """A scoring rule.

    Parameters
    ----------
    entry
        An entry of a file of rules, defaults filled.
    kind
        The format that it is about.
    file
        What messages call the file that it stands in.

    Attributes
    ----------
    tasks
        Pattern of the tasks that it scores.
    benchmark, category, inverted, scored_as
        Facts of all its items; `benchmark` may name parts of the task.
    repeats
        How repeats of a question become one outcome: ``first``, ``majority``, the least mean that is a 1, or
        None: they do not.
    rescore
        Who grades the answers again (``by``), from which fields (``gold``, ``answer``), with how many ``seconds`` for
        each; None: what the tool logged counts.
    fields
        The fields that grading needs of each row.
    facts
        The fields that tell about an item.
    content, key
        The fields that make up what was asked (lists in it hold answer options), and the one of the right answer.
    hashed_from
        Names the recipe of the hashes: those of two recipes cannot be compared.

    Raises
    ------
    ValueError
        If a template, a pattern or ``one`` makes no sense; the text says which.
    """

    def __init__(self, entry: Mapping[str, Any], kind: str | None = None, file: str = "") -> None:
        self.kind = kind
        self.file = file
        self.tasks: str = entry["tasks"]
        self.benchmark: str = entry["benchmark"]
        self._benchmark = _told("benchmark", Template, entry["benchmark"])
        self.category: str | None = entry["category"]
        self.inverted: bool = entry["inverted"]
        self.scored_as: str | None = entry["scored_as"]
        self.options: int | str | None = entry["options"]
        self.response: str | None = entry["response"]
        self.failure: Mapping[str, Any] = entry["failure"]
        self.one: Mapping[str, Any] = entry["one"]
        self.rescore: Mapping[str, Any] | None = entry["rescore"]
        repeats = entry["repeats"]
        self.repeats: str | float | None = repeats["mean"] if isinstance(repeats, Mapping) else repeats
        self._task = _told("tasks", _task_pattern, entry["tasks"])
        self._where = _told("where", _matchers, entry["where"])
        self._left_out = _told("left_out", _matchers, entry["left_out"])
        self._only = _told("only", _matchers, entry["only"])
        self.question_id = _told("question_id", Template, entry["question_id"])
        self.templates = {
            name: _told(name, Template, entry[name]) for name in FACTS if entry[name] is not None
        }
        self.content: list[str | list[str]] = entry["content"]
        key = entry["key"]
        self.key: str | None = key["letter"] if isinstance(key, Mapping) else key
        self._lettered = isinstance(key, Mapping)
        self._known: dict[tuple[str, tuple[tuple[str, ...], ...], str | None], Asked] = {}
        self.hashed_from = json.dumps([*([kind] if _of_reader(self.content) else []), self.content])
        self._read = _told("one", _grader, self.one)
        self._unread = _told("failure.unparsed", _matchers, self.failure["unparsed"])
        own = set(self._task.groupindex)
        lost = [name for name in self._benchmark.fields if name not in own]
        if lost:
            raise ValueError(f'benchmark: "{lost[0]}" is not named in tasks')
        needed = [
            *self._where,
            *self._left_out,
            *self._only,
            *self.question_id.fields,
            self.one["field"],
            self.one.get("differs_from"),
            self.failure["flag"],
            self.failure["why"],
            *self._unread,
            self.response,
            *((self.rescore["gold"], self.rescore["answer"]) if self.rescore else ()),
        ]
        self.fields = tuple(dict.fromkeys(name for name in needed if name and name not in own))
        told = [name for template in self.templates.values() for name in template.fields]
        self.facts = tuple(name for name in dict.fromkeys(told) if name not in own)

    @property
    def logged_by(self) -> str:
        """The field in which the tool logged the grade, in words."""
        return f"as logged ({self.one['field']})"

    @property
    def graded(self) -> bool:
        """Whether a threshold turns numbers into outcomes."""
        return "at_least" in self.one or "at_most" in self.one

    def benchmark_of(self, names: Mapping[str, str]) -> str:
        """Return the benchmark of a task, whose `names` stand for parts of it."""
        (text,) = self._benchmark(lambda field: [names[field]], 1)
        return str(text)

    def parts_of(self, task: str) -> dict[str, str] | None:
        """Return what the names in ``tasks`` stand for; None if the rule does not score this task."""
        match = self._task.fullmatch(task)
        return None if match is None else match.groupdict()

    def grade(self, part: Part) -> Grades:
        """Grade some rows.

        Notes
        -----
        Of several reasons the first holds: what the file itself says, an empty output, a thought that never ends,
        an answer that was not understood, a flag that grading failed, no grade, a grade that cannot be read. Under
        the published policy a grade counts even so, if there is one and no flag, unless the file says otherwise.
        """
        code, score = self._read(part)
        if self.failure["published"] is None and not self.graded and on_another_scale(score):
            code = np.where(code >= 0, _GRADE, code)
        reason = np.zeros(part.size, dtype=np.uint8)
        reason[code == _NOTHING] = _CODE[self.failure["reason"]]
        reason[code == _UNREADABLE] = _CODE["unparsed"]
        reason[code == _GRADE] = _CODE["no_threshold"]
        graded = code >= 0
        flags = part.column(self.failure["flag"]) if self.failure["flag"] else None
        if flags is not None:
            flag = np.fromiter(map(_truth, flags), dtype=np.int8, count=part.size)
            reason[flag == 1] = _CODE[self.failure["reason"]]
            reason[flag == _UNREADABLE] = _CODE["unparsed"]
            graded &= (flag == 0) | (flag == _NOTHING)
        for field, matches in self._unread.items():
            for place, answer in enumerate(part.column(field) or ()):
                if matches(innermost(answer)):
                    reason[place] = _CODE["unparsed"]
        responses = part.column(self.response) if self.response else None
        if responses is not None:
            for place, response in enumerate(map(innermost, responses)):
                if not isinstance(response, str):
                    continue
                if _OPEN in response and response.rfind(_OPEN) > response.rfind(_CLOSE):
                    reason[place] = _CODE["truncated"]
                elif not response or response.isspace():
                    reason[place] = _CODE["empty"]
        if self.failure["texts"]:
            for place, value in enumerate(part.column(self.one["field"]) or ()):
                if isinstance(value, str) and value in self.failure["texts"]:
                    reason[place] = _CODE[self.failure["texts"][value]]
        stated = part.column(self.failure["why"]) if self.failure["why"] else None
        for place, why in enumerate(stated or ()):
            if why in _CODE:
                reason[place] = _CODE[why]
                graded[place] = False
        instead = -1 if self.failure["published"] is None else self.failure["published"]
        published = np.where(graded, code, instead).astype(np.int8)
        ordinary = self.failure["published"] is None
        unreadable = int(((code == _UNREADABLE) & (reason == _CODE["unparsed"])).sum()) if ordinary else 0
        return Grades(np.where(reason == 0, code, -1).astype(np.int8), published, reason, score, unreadable)

    def content_of(self, part: Part) -> list[Asked | None]:
        """Return the hashes of what was asked, row by row; None where nothing of it is there.

        The parts of the task that ``tasks`` names belong to the question: tasks may number alike what differs.
        """
        if not self.content:
            return [None] * part.size
        nothing = [None] * part.size
        stems = [part.column(entry) or nothing for entry in self.content if isinstance(entry, str)]
        groups = [
            [part.column(field) or nothing for field in entry]
            for entry in self.content
            if not isinstance(entry, str)
        ]
        keys = (part.column(self.key) if self.key else None) or nothing
        scope = list(part.names.values())
        made = []
        for place in range(part.size):
            texts = [_text(column[place]) for column in stems]
            options = [_options(column[place] for column in columns) for columns in groups]
            made.append(self._asked(scope, texts, options, keys[place]))
        return made

    def _asked(
        self, scope: list[str], texts: list[str | None], options: list[list[str]], answer: Any
    ) -> Asked | None:
        """Return the hashes of one row; the same object for the same question, since many models were asked it."""
        if texts.count(None) == len(texts) and not any(options):
            return None
        stem = digest("\x1f".join([*scope, *(text or "" for text in texts)]))
        shown = _text(answer)
        asked = (stem, tuple(map(tuple, options)), shown)
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._hashed(stem, options, shown)
        return known

    def _hashed(self, stem: str, options: list[list[str]], shown: str | None) -> Asked:
        """Return the hashes of a question: of its stem, its options and its right answer."""
        alike = "\x1d".join("\x1e".join(sorted(group)) for group in options)
        question = digest(f"{stem}\x1f{alike}") if any(options) else stem
        if shown is not None and self._lettered:
            shown = _answer(shown, [text for group in options for text in group])
        key = None if shown is None else digest(shown.strip())
        ordered = "\x1d".join("\x1e".join(group) for group in options)
        return Asked(digest(f"{question}\x1f{ordered}\x1f{key or ''}"), stem, question, key)


def _of_reader(content: Sequence[str | list[str]]) -> bool:
    """Say whether fields that a reader of one format makes up are hashed, so that other formats' hashes differ."""
    return "asked" in content or ["choices"] in content


def _options(values: Iterable[Any]) -> list[str]:
    """Return answer options as texts, lists flattened."""
    flat = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    return [text for entry in flat if (text := _text(entry)) is not None]


_LETTER = re.compile(r"\(?([A-Z])\)?[.:]?|([0-9]{1,3})")


def _answer(shown: str, options: Sequence[str]) -> str:
    """Return the answer that a letter, such as ``(B)``, or a number from 0 on stands for; itself if it is none."""
    found = _LETTER.fullmatch(shown.strip())
    if found is None:
        return shown
    place = ord(found[1]) - ord("A") if found[1] else int(found[2])
    return options[place] if place < len(options) else shown


def on_another_scale(score: NDArray[np.float64]) -> bool:
    """Say whether grades reach beyond 1, so that without a threshold neither 1 nor 0 is an outcome."""
    return bool((score > 1).any())


def innermost(value: Any) -> Any:
    """Return the first entry of a list, of lists in it, and so on; nothing of an empty one is an empty text."""
    while isinstance(value, list):
        value = value[0] if value else ""
    return value


def _told(key: str, function: Callable[[Any], Any], value: Any) -> Any:
    """Return ``function(value)``, and name the key if that fails."""
    try:
        return function(value)
    except re.error as error:
        raise ValueError(f"{key}: not a regular expression ({error})") from None
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _task_pattern(text: str) -> re.Pattern[str]:
    """Turn ``{name}`` and ``*`` into a regular expression."""
    pattern = ""
    for piece in re.split(r"(\{\w+\}|\*)", text):
        if piece == "*":
            pattern += ".*"
        elif piece.startswith("{") and piece.endswith("}"):
            pattern += f"(?P<{piece[1:-1]}>.+)"
        else:
            pattern += re.escape(piece)
    return re.compile(pattern, re.DOTALL)


def _matchers(wanted: Mapping[str, Any]) -> dict[str, Callable[[Any], bool]]:
    return {field: _matcher(value) for field, value in wanted.items()}


def _truth(value: Any) -> int:
    """Read a truth value strictly: 1, 0, -1 for nothing, -2 for anything else."""
    try:
        return _TRUTH[value]
    except (KeyError, TypeError):
        return _NOTHING if value is None or _is_nan(value) else _UNREADABLE


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


_Reader = Callable[["Part"], "tuple[NDArray[np.int8], NDArray[np.float64]]"]


def _grader(one: Mapping[str, Any]) -> _Reader:
    """Return what reads the field that decides: codes (1, 0, -1 nothing, -2 unreadable, -3 a grade) and raw numbers.

    Raises
    ------
    ValueError
        If the keys do not go together.
    """
    ways = [key for key in ("is", "differs_from", "at_most", "at_least") if key in one]
    if len(ways) != 1:
        raise ValueError("give exactly one of is, differs_from, at_most and at_least")
    for key, needs in (("else", ["is"]), ("among", ["differs_from"]), ("within", ["at_most", "at_least"])):
        if key in one and ways[0] not in needs:
            raise ValueError(f"{key} goes with {' or '.join(needs)} only")
    values = one.get("values", {})
    if values and ways[0] != "at_least" and not isinstance(one.get("is"), bool):
        raise ValueError("values goes with at_least, or with is: true or false")
    if "differs_from" in one and "among" not in one:
        raise ValueError("differs_from needs among: the texts that can be compared")
    if "at_most" in one:
        low, high = one.get("within", (-np.inf, np.inf))
        return functools.partial(_numbers, field=one["field"], most=one["at_most"], low=low, high=high)
    if "at_least" in one:
        low, high = one.get("within", (0, 1))
        return functools.partial(
            _grades, field=one["field"], least=one["at_least"], low=low, high=high, values=values
        )
    if "differs_from" in one:
        return functools.partial(
            _differing, field=one["field"], other=one["differs_from"], among=frozenset(one["among"])
        )
    if isinstance(one["is"], bool):
        if "else" in one:
            raise ValueError("else goes with a text only")
        return functools.partial(_truths, field=one["field"], desired=one["is"], values=values)
    if "else" not in one:
        raise ValueError("a text in is needs else: the only other text, which is a 0")
    return functools.partial(_labels, field=one["field"], desired=one["is"], other=one["else"])


def _nan(size: int) -> NDArray[np.float64]:
    return np.full(size, np.nan)


def _number(value: Any) -> float | None:
    """Return a value as a finite number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _column(part: Part, field: str, values: Mapping[str, float]) -> list[Any]:
    """Return a field of all rows, with the texts in `values` as the numbers that they stand for."""
    column = part.column(field) or [None] * part.size
    if not values:
        return column
    return [values.get(value, value) if isinstance(value, str) else value for value in column]


def _truths(
    part: Part, field: str, desired: bool, values: Mapping[str, float]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    column = _column(part, field, values)
    code = np.fromiter(map(_truth, column), dtype=np.int8, count=part.size)
    score = np.where(code >= 0, code, np.nan).astype(np.float64)
    for place in np.flatnonzero(code == _UNREADABLE):
        number = _number(column[place])
        if number is not None:
            code[place], score[place] = _GRADE, number
    if not desired:
        code = np.where(code >= 0, 1 - code, code).astype(np.int8)
    return code, score


def _grades(
    part: Part, field: str, least: float, low: float, high: float, values: Mapping[str, float]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    code = np.empty(part.size, dtype=np.int8)
    score = _nan(part.size)
    for place, value in enumerate(_column(part, field, values)):
        truth = _truth(value)
        number = float(truth) if truth >= 0 else _number(value)
        if truth == _NOTHING:
            code[place] = _NOTHING
        elif number is None or not low <= number <= high:
            code[place] = _UNREADABLE
        else:
            code[place], score[place] = number >= least, number
    return code, score


def _labels(part: Part, field: str, desired: str, other: str) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    def read(value: Any) -> int:
        if value is None or _is_nan(value):
            return _NOTHING
        if not isinstance(value, str):
            return _UNREADABLE
        if value == desired:
            return 1
        return 0 if value == other else _UNREADABLE

    values = part.column(field) or [None] * part.size
    return np.fromiter(map(read, values), dtype=np.int8, count=part.size), _nan(part.size)


def _differing(
    part: Part, field: str, other: str, among: frozenset[str]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    def read(value: Any, with_what: Any) -> int:
        if value is None or _is_nan(value):
            return _NOTHING
        if not (isinstance(value, str) and isinstance(with_what, str) and {value, with_what} <= among):
            return _UNREADABLE
        return int(value != with_what)

    values = part.column(field) or [None] * part.size
    others = part.column(other) or [None] * part.size
    return np.fromiter(map(read, values, others), dtype=np.int8, count=part.size), _nan(part.size)


def _numbers(
    part: Part, field: str, most: float, low: float, high: float
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    code = np.empty(part.size, dtype=np.int8)
    score = _nan(part.size)
    for place, value in enumerate(part.column(field) or [None] * part.size):
        number = _number(value)
        if value is None or _is_nan(value):
            code[place] = _NOTHING
        elif number is None or not low <= number <= high:
            code[place] = _UNREADABLE
        else:
            code[place], score[place] = number <= most, number
    return code, score


# -- rows and rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The rows of a table that one rule scores.

    Attributes
    ----------
    table
        All rows.
    rule, number
        The rule and its place among the rules.
    names
        What the names in the rule's ``tasks`` stand for.
    rows
        Which rows; None for all.
    """

    table: Table
    rule: Rule
    number: int
    names: Mapping[str, str]
    rows: list[int] | None

    @property
    def benchmark(self) -> str:
        """The benchmark of the rows."""
        return self.rule.benchmark_of(self.names)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.table.size if self.rows is None else len(self.rows)

    def column(self, field: str) -> list[Any] | None:
        """Return a field of these rows; None if the table has no such field."""
        if field in self.names:
            return [self.names[field]] * self.size
        values = self.table.column(field)
        return values if values is None or self.rows is None else [values[row] for row in self.rows]

    def options(self) -> list[int | None]:
        """Return the number of options of each row, None where there are none."""
        given = self.rule.options
        if not isinstance(given, str):
            return [given] * self.size
        sizes = self.table.lengths(given) or [None] * self.table.size
        chosen = sizes if self.rows is None else [sizes[row] for row in self.rows]
        return [size if size is not None and 2 <= size <= 1000 else None for size in chosen]

    def question_ids(self) -> list[str]:
        """Return the names of the items.

        Raises
        ------
        InputError
            If a row has no name, because a field is missing or of the wrong kind.
        """
        names = self.rule.question_id(self.column, self.size)
        lost = next((place for place, name in enumerate(names) if name is None), None)
        if lost is not None:
            row = lost if self.rows is None else self.rows[lost]
            needed = [field for field in self.rule.question_id.fields if field not in self.names]
            columns = {field: self.column(field) for field in needed}
            shown = ", ".join(
                f"{field} {_shown(None if values is None else values[lost])}"
                for field, values in columns.items()
            )
            raise InputError(
                "the row cannot be told which item it is about",
                file=self.table.file,
                where=self.table.where(row, needed[0]),
                found=shown,
                todo="Correct or remove the row, or fetch the file again",
            )
        return [name for name in names if name is not None]


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        text = repr(value) if not isinstance(value, str) else f'"{value}"'
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 40 else text[:36] + " ..."


@dataclass(frozen=True)
class Scorer:
    """The scoring rules of one format.

    Attributes
    ----------
    rules
        In order.
    files, version
        Where they stand, and the SHA-256 of those files.
    """

    rules: tuple[Rule, ...]
    files: tuple[str, ...]
    version: str

    def of(self, task: str, kind: str | None = None) -> list[tuple[int, Rule, dict[str, str]]]:
        """Return the rules that score a task: place, rule, what the names in ``tasks`` stand for.

        Parameters
        ----------
        task
            The task's name.
        kind
            The format of its rows; None for rules of any.
        """
        found = []
        for number, rule in enumerate(self.rules):
            names = rule.parts_of(task) if kind in (None, rule.kind) else None
            if names is not None:
                found.append((number, rule, names))
        return found

    def idle(self, tasks: Iterable[str]) -> list[Rule]:
        """Return the rules of files that stand before the last, the ordinary one, which score none of some tasks."""
        met = list(tasks)
        return [
            rule
            for rule in self.rules
            if rule.file in self.files[:-1] and all(rule.parts_of(task) is None for task in met)
        ]

    def fields(self, task: str) -> tuple[str, ...]:
        """Return the fields that grading a task needs of each row."""
        return tuple(dict.fromkeys(field for _, rule, _ in self.of(task) for field in rule.fields))

    def parts(self, table: Table) -> Iterator[Part]:
        """Divide a table between the rules; rows that are no items, or that no rule wants, are in none."""
        left: list[int] | None = None
        for number, rule, names in self.of(table.task, table.kind):
            part = Part(table, rule, number, names, left)
            mine = _holds(part, rule._where, all)
            out = _left_out(part)
            if mine is None and out is None:
                yield part
                return
            places = range(table.size) if left is None else left
            own = [place for k, place in enumerate(places) if mine is None or mine[k]]
            kept = [
                place
                for k, place in enumerate(places)
                if (mine is None or mine[k]) and not (out is not None and out[k])
            ]
            if kept:
                yield Part(table, rule, number, names, kept if len(kept) < table.size else None)
            taken = set(own)
            left = [place for place in places if place not in taken]
            if not left:
                return


def _left_out(part: Part) -> list[bool] | None:
    """Say of each row whether its rule leaves it out; None if it leaves out none."""
    out = _holds(part, part.rule._left_out, any)
    only = _holds(part, part.rule._only, all)
    if only is None:
        return out
    return [not kept or (out is not None and out[place]) for place, kept in enumerate(only)]


def _holds(
    part: Part,
    matchers: Mapping[str, Callable[[Any], bool]],
    how: Callable[[Sequence[bool]], bool],
) -> list[bool] | None:
    """Say of each row whether conditions hold; None if there are none."""
    if not matchers:
        return None
    columns = [
        [matches(value) for value in part.column(field) or [None] * part.size]
        for field, matches in matchers.items()
    ]
    return [how(row) for row in zip(*columns, strict=True)]


def load(files: Sequence[tuple[Path, str]], kind: str | Sequence[str], root: Path | None = None) -> Scorer:
    """Read the scoring rules of a format, or of several.

    Parameters
    ----------
    files
        Paths, and what messages call them; rules of the first file come first.
    kind
        The format or the formats: keys of the files.
    root
        The folder of the workflow, where the schema stands.

    Raises
    ------
    InputError
        If a file is missing, is not YAML, breaks the schema, or has a rule that makes no sense; if there is
        no rule for the format.
    """
    rules: list[Rule] = []
    kinds = [kind] if isinstance(kind, str) else list(kind)
    hashed = b""
    for path, shown in files:
        if not path.is_file():
            raise InputError("this file with scoring rules does not exist", file=shown)
        content = config.read_yaml(path, shown)
        hashed += path.read_bytes()
        if not isinstance(content, dict):
            raise InputError(
                "these are no scoring rules", file=shown, expected="formats, each with its rules"
            )
        read = config.validated(content, _SCHEMA, shown, root)
        for name in kinds:
            for place, entry in enumerate(read.get(name, [])):
                try:
                    rules.append(Rule(entry, name, shown))
                except ValueError as error:
                    raise InputError(
                        f"this rule makes no sense ({error})",
                        file=shown,
                        where=f"{name}[{place}], {entry['benchmark']}",
                    ) from None
    if not rules:
        raise InputError(
            f'there is no rule for the format "{", ".join(kinds)}"',
            file=", ".join(shown for _, shown in files),
        )
    return Scorer(tuple(rules), tuple(shown for _, shown in files), sha256_bytes(hashed))
