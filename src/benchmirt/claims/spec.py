"""The entries of a claims file: what may be written, and one clear sentence for each fault.

The shape is also in ``workflow/schemas/claims.schema.json`` for editors; a test keeps the two in step. Nothing
heavy is imported, since entries are checked whenever the workflow is parsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmirt import paths
from benchmirt.claims import check_values
from benchmirt.claims.prompt_labels import read_labels
from benchmirt.claims.verdict import Region
from benchmirt.errors import InputError, faults, nearest
from benchmirt.sources.reading import read_rows

if TYPE_CHECKING:
    from benchmirt.config import Study

__all__ = [
    "FORMS",
    "ITEM_COLUMNS",
    "KINDS",
    "SCOPES",
    "STATISTICS",
    "TABULAR",
    "Claim",
    "Figure",
    "Part",
    "Selection",
    "Statistic",
    "check",
    "find_table",
    "inputs_of",
    "load",
    "pairs_of",
    "read_figures",
    "tables_of",
]

Selection = Mapping[str, tuple[str, ...]]

ITEM_COLUMNS = (
    "question_id",
    "benchmark",
    "category",
    "subcategory_one",
    "subcategory_two",
    "subcategory_three",
    "domain_superset",
    "question_type",
    "testlet",
    "scored_as",
)
"""Columns of the items table by which items can be selected."""


@dataclass(frozen=True)
class Statistic:
    """What one part of a claim can ask for.

    Attributes
    ----------
    unit
        Unit of the estimate: r, degrees, count, share, congruence, gain or nothing.
    needs, takes
        Keys of the part that must and may be given, beyond those that every part may have.
    """

    unit: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


_SELECTED = ("except", "each")
_REGION = ("region",)

STATISTICS: dict[str, dict[str, Statistic]] = {
    "count": {
        "items": Statistic("count", (), ("select", "expected", *_SELECTED)),
        "kept_items": Statistic("count", (), ("select", "expected", *_SELECTED)),
        "benchmarks": Statistic("count", (), ("select", "except", "expected")),
        "models": Statistic("count", (), ("expected",)),
    },
    "dimensionality": {"dimensions": Statistic("count", ("expected",))},
    "stability": {"stability": Statistic("congruence", ("dimension",), _REGION)},
    "direction": {
        "angle": Statistic("degrees", ("select", "ability", *_REGION), _SELECTED),
        "leaning": Statistic("degrees", ("select", "ability", "against", *_REGION), _SELECTED),
    },
    "contrast": {
        "angle_difference": Statistic("degrees", ("select", "compare", "ability", *_REGION), ("except",)),
        "leaning_difference": Statistic(
            "degrees", ("select", "compare", "ability", "against", *_REGION), ("except",)
        ),
    },
    "correlation": {
        "r": Statistic("r", ("select", "ability", *_REGION), _SELECTED),
        "abs_r": Statistic("r", ("select", "ability", *_REGION), _SELECTED),
        "r_difference": Statistic("r", ("select", "ability", "against", *_REGION), _SELECTED),
        "abs_r_difference": Statistic("r", ("select", "ability", "against", *_REGION), _SELECTED),
        "mean": Statistic("share", ("select", *_REGION), _SELECTED),
        "count_within": Statistic("count", ("published", "within", "at_least")),
        "sign_flips": Statistic("count", ("published", "above", "at_most")),
    },
    "shortform": {
        "kept": Statistic("share", ("share", "within", *_REGION), ("form", "scope")),
        "advantage": Statistic("", ("share", *_REGION), ("form",)),
        "larger": Statistic("share", ("share", *_REGION), ("form", "scope")),
        "weakening": Statistic("", ("ability", "share", *_REGION)),
    },
    "pair": {"difference": Statistic("share", ("base", "changed", "ability", *_REGION), ("end",))},
    "mix": {
        "least_congruence": Statistic("congruence", _REGION),
        "congruence": Statistic("congruence", ("category", "ability", *_REGION)),
    },
    "label": {"label_r": Statistic("r", ("ability", *_REGION), ("select", "except"))},
    "prediction": {
        f"{metric}_gain": Statistic(
            "gain", ("split", "method", "baseline", *_REGION), ("average", "published_scores")
        )
        for metric in ("accuracy", "log_loss", "rank")
    },
}
"""Per kind its statistics; the first is the one meant where a part names none."""

REACH = {
    "r": (-1.0, 1.0),
    "abs_r": (0.0, 1.0),
    "r_difference": (-2.0, 2.0),
    "abs_r_difference": (-1.0, 1.0),
    "label_r": (-1.0, 1.0),
    "mean": (0.0, 1.0),
    "kept": (0.0, 1.0),
    "larger": (0.0, 1.0),
    "angle": (0.0, 180.0),
    "angle_difference": (-180.0, 180.0),
    "stability": (-1.0, 1.0),
    "least_congruence": (-1.0, 1.0),
    "congruence": (-1.0, 1.0),
    "accuracy_gain": (-1.0, 1.0),
}
"""The least and the largest value that a statistic can have, of those that have one."""

KINDS = tuple(STATISTICS)

FORMS = ("information", "filter")
"""How the items of a short form are chosen: by what they tell about all abilities, or by the published filter."""

SCOPES = ("benchmark", "category", "all")
"""Within what the published filter bins items."""
SPLITS = ("cells", "lineages", "few_answers", "items", "benchmarks", "newer_models")
"""What a claim on prediction can hold out."""
METHODS = (
    *("model_mean", "category_mean", "benchmark_mean", "item_mean"),
    *("rasch", "rasch_benchmark", "mirt_1_category"),
)
"""How it can be predicted, beside ``mirt_1``, ``mirt_2``, ..."""
AVERAGES = ("micro", "macro")

TABULAR = ("count_within", "sign_flips")
"""Statistics that compare a whole table of published figures."""
ENDS = ("high", "low")
"""Which end of the discriminations a set of items is taken from."""
_CLAIM = ("id", "kind", "statement", "published", "needs_dimension", "needs", "parts", "why")
_REQUIRED = ("id", "kind", "statement", "parts")
_COMMON = ("name", "statistic", "published", "tolerance", "published_region")
_PUBLISHED = ("text", "value", "needs", "check_values")
_BOUNDS = ("low", "high", "text")
_MIRT = re.compile(r"mirt_[1-9]\d?")
_FIGURE = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Figure:
    """A published figure that stands in a table of facts.

    Attributes
    ----------
    table
        CSV file, in the working directory or in ``workflow/resources``. Its row is found by the columns that
        are item columns or ``ability``.
    column
        Column with the figure.
    """

    table: str
    column: str


@dataclass(frozen=True)
class Part:
    """One condition of a claim; see ``claims.schema.json`` for the keys.

    Attributes
    ----------
    base, changed, end
        The two models of a pair, and the end of the discriminations from which their items are taken.
    category
        The only category of a mix of benchmarks.
    region
        Where the condition is true; None for counts, which are compared with `expected` or the manifest.
    published_region
        Where the as-published number matches, if that differs from `region`.
    split, method, baseline, average
        Of a prediction: what is held out, how it is predicted, what that is compared with, and whether cells (micro) or
        benchmarks (macro) are averaged.
    published_scores
        The published scores of method and baseline, each of which the as-published ones must meet.
    """

    name: str
    statistic: str
    unit: str
    select: Selection = field(default_factory=dict)
    excepted: Selection = field(default_factory=dict)
    compare: Selection = field(default_factory=dict)
    each: str | None = None
    ability: str | int | None = None
    against: str | int | None = None
    dimension: int | None = None
    region: Region | None = None
    published_region: Region | None = None
    published: float | Figure | None = None
    tolerance: float = 0.0
    expected: int | None = None
    within: float | None = None
    above: float | None = None
    at_least: int | None = None
    at_most: int | None = None
    form: str = FORMS[0]
    share: float | None = None
    scope: str = SCOPES[0]
    base: str | None = None
    changed: str | None = None
    end: str = "high"
    category: str | None = None
    split: str | None = None
    method: str | None = None
    baseline: str | None = None
    average: str = "micro"
    published_scores: tuple[float, float] | None = None


@dataclass(frozen=True)
class Claim:
    """One checked claim.

    Attributes
    ----------
    needs
        Items that the study must have for the claim to be about it at all.
    published_needs
        Items that it must have for its figures to be compared with the published ones.
    check_values
        Table of facts with check values from outside (:mod:`benchmirt.claims.check_values`); empty: none.
    needs_dimension
        Without this dimension, as judged by its null, the claim is not reproduced. None: that of the last ability that its
        parts name.
    """

    id: str
    kind: str
    statement: str
    parts: tuple[Part, ...]
    published_text: str = ""
    published_value: float | None = None
    needs_dimension: int | None = None
    needs: Selection = field(default_factory=dict)
    published_needs: Selection = field(default_factory=dict)
    check_values: str = ""
    why: str = ""


# -- checking -----------------------------------------------------------------------------------------------


class _Reader:
    """Reads entries, collecting every fault."""

    def __init__(self, file: str | Path | None) -> None:
        self.file = file
        self.told: list[InputError] = []

    def tell(self, what: str, where: str, **more: str | None) -> None:
        self.told.append(InputError(what, file=self.file, where=where, **more))

    def keys(self, value: Mapping[str, Any], known: Sequence[str], where: str, what: str = "") -> None:
        for key in value:
            if key in known:
                continue
            near = nearest(str(key), known)
            todo = f'Did you mean "{near}"?' if near else f"Known here: {', '.join(known)}"
            self.tell(f"unknown key{what}", f"{where}.{key}" if where else str(key), todo=todo)

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value
        self.tell("", where, found=_shown(value), expected="a mapping (key: value)")
        return {}

    def text(self, value: object, where: str, *, empty: bool = False) -> str:
        if isinstance(value, str) and (value.strip() or empty):
            return value
        self.tell("", where, found=_shown(value), expected="a text")
        return ""

    def number(self, value: object, where: str, expected: str = "a number") -> float | None:
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
            return float(value)
        self.tell("", where, found=_shown(value), expected=expected)
        return None

    def whole(self, value: object, where: str, least: int) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.tell("", where, found=_shown(value), expected=f"a whole number, at least {least}")
        return None

    def choice(self, value: object, choices: Sequence[str], where: str) -> str | None:
        if isinstance(value, str) and value in choices:
            return value
        near = nearest(value, choices) if isinstance(value, str) else None
        self.tell(
            "",
            where,
            found=_shown(value),
            expected="one of " + ", ".join(choices),
            todo=f'Did you mean "{near}"?' if near else None,
        )
        return None

    def selection(self, value: object, where: str) -> Selection:
        chosen: dict[str, tuple[str, ...]] = {}
        given = self.mapping(value, where)
        self.keys(given, ITEM_COLUMNS, where, " (not a column of the items table)")
        if isinstance(value, Mapping) and not value:
            self.tell("nothing is selected", where, todo="Give a column and its value, or remove the key")
        for column, entry in given.items():
            values = list(entry) if isinstance(entry, list | tuple) else [entry]
            good = [one for one in values if isinstance(one, str | int | float) and not isinstance(one, bool)]
            if not values or len(good) < len(values):
                self.tell(
                    "", f"{where}.{column}", found=_shown(entry), expected="a value or a list of values"
                )
            chosen[str(column)] = tuple(dict.fromkeys(str(one) for one in good))
        return chosen

    def region(self, value: object, where: str, statistic: str, unit: str) -> Region | None:
        given = self.mapping(value, where)
        self.keys(given, _BOUNDS, where)
        ends: dict[str, float | None] = {}
        for end in ("low", "high"):
            ends[end] = (
                None
                if given.get(end) is None
                else self.number(given[end], f"{where}.{end}", "a number or null")
            )
        text = None if given.get("text") is None else self.text(given["text"], f"{where}.text")
        low, high = ends["low"], ends["high"]
        if low is None and high is None:
            if isinstance(value, Mapping) and not any(isinstance(given.get(end), str) for end in ends):
                self.tell("a region without a bound is always true", where, todo="Give low, high or both")
            return None
        if low is not None and high is not None and low >= high:
            self.tell(
                "nothing lies in this region",
                where,
                found=f"low {low:g} and high {high:g}",
                expected="low below high",
            )
            return None
        if statistic in REACH:
            self._reachable(low, high, statistic, where)
        return Region.build(low, high, unit, text)

    def _reachable(self, low: float | None, high: float | None, statistic: str, where: str) -> None:
        least, most = REACH[statistic]
        bounds = f"{'' if low is None else f'low {low:g} '}{'' if high is None else f'high {high:g}'}".strip()
        expected = f"a part of {least:g} to {most:g}, which is where {statistic} lies"
        if (low is not None and low >= most) or (high is not None and high <= least):
            self.tell("no value lies in this region", where, found=bounds, expected=expected)
        elif (low is None or low < least) and (high is None or high > most):
            self.tell("every value lies in this region", where, found=bounds, expected=expected)

    def figure(self, value: object, where: str, *, table: bool) -> float | Figure | None:
        if isinstance(value, Mapping):
            self.keys(value, ("table", "column"), where)
            for key in ("table", "column"):
                if key not in value:
                    self.tell("this key is required and missing", f"{where}.{key}", todo="Add it")
            if not {"table", "column"} <= set(value):
                return None
            return Figure(
                self.text(value["table"], f"{where}.table"), self.text(value["column"], f"{where}.column")
            )
        if table:
            self.tell("", where, found=_shown(value), expected="{table: FILE, column: NAME}")
            return None
        return self.number(value, where, "a number, or {table: FILE, column: NAME}")

    def ability(self, value: object, where: str) -> str | int | None:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        self.tell("", where, found=_shown(value), expected="a category, or the number of an ability from 1")
        return None

    def method(self, value: object, where: str) -> str | None:
        if isinstance(value, str) and _MIRT.fullmatch(value):
            return value
        return self.choice(value, (*METHODS, "mirt_1", "mirt_2"), where)

    def pair(self, value: object, where: str) -> tuple[float, float] | None:
        if not isinstance(value, list | tuple) or len(value) != 2:
            self.tell(
                "", where, found=_shown(value), expected="two numbers: of the method and of the baseline"
            )
            return None
        first, second = (self.number(one, f"{where}[{k}]") for k, one in enumerate(value))
        return None if first is None or second is None else (first, second)

    def part(self, value: object, where: str, kind: str) -> Part | None:
        given = self.mapping(value, where)
        if not isinstance(value, Mapping):
            return None
        statistics = STATISTICS[kind]
        name = given.get("statistic", next(iter(statistics)))
        statistic = self.choice(name, tuple(statistics), f"{where}.statistic")
        if statistic is None:
            return None
        rules = statistics[statistic]
        self.keys(given, (*_COMMON, *rules.needs, *rules.takes), where, f" for the statistic {statistic}")
        for key in ("name", *rules.needs):
            if key not in given:
                near = nearest(key, [str(one) for one in given if one not in (*_COMMON, *rules.needs)])
                self.tell(
                    "this key is required and missing",
                    f"{where}.{key}",
                    todo=f'Did you mean it by "{near}"?' if near else "Add it",
                )
        made: dict[str, Any] = {"statistic": statistic, "unit": rules.unit, "name": ""}
        for key, entry in given.items():
            at = f"{where}.{key}"
            if key == "name":
                made[key] = self.text(entry, at)
            elif key in ("select", "compare"):
                made[key] = self.selection(entry, at)
            elif key == "except":
                made["excepted"] = self.selection(entry, at)
            elif key == "each":
                made[key] = self.choice(entry, ITEM_COLUMNS, at)
            elif key in ("ability", "against"):
                made[key] = self.ability(entry, at)
            elif key in ("region", "published_region"):
                made[key] = self.region(entry, at, statistic, rules.unit)
            elif key == "published":
                made[key] = self.figure(entry, at, table=statistic in TABULAR)
            elif key in ("tolerance", "within", "above"):
                size = self.number(entry, at, "a number, at least 0")
                if size is not None and size < 0:
                    self.tell("", at, found=f"{size:g}", expected="a number, at least 0")
                made[key] = size
            elif key in ("expected", "at_least", "at_most"):
                made[key] = self.whole(entry, at, 0)
            elif key in ("form", "scope"):
                made[key] = self.choice(entry, FORMS if key == "form" else SCOPES, at)
            elif key == "share":
                part = self.number(entry, at, "a number above 0 and at most 1")
                if part is not None and not 0 < part <= 1:
                    self.tell("", at, found=f"{part:g}", expected="a number above 0 and at most 1")
                made[key] = part
            elif key == "dimension":
                made[key] = self.whole(entry, at, 1)
            elif key in ("base", "changed", "category"):
                made[key] = self.text(entry, at)
            elif key == "end":
                made[key] = self.choice(entry, ENDS, at) or ENDS[0]
            elif key == "split":
                made[key] = self.choice(entry, SPLITS, at)
            elif key in ("method", "baseline"):
                made[key] = self.method(entry, at)
            elif key == "average":
                made[key] = self.choice(entry, AVERAGES, at)
            elif key == "published_scores":
                made[key] = self.pair(entry, at)
        if given.get("base") is not None and given.get("base") == given.get("changed"):
            self.tell("a model is paired with itself", f"{where}.changed", found=_shown(given["changed"]))
        if given.get("against") is not None and given.get("against") == given.get("ability"):
            self.tell("an ability is set against itself", f"{where}.against", found=_shown(given["against"]))
        if given.get("method") is not None and given.get("method") == given.get("baseline"):
            self.tell(
                "a method is compared with itself", f"{where}.baseline", found=_shown(given["baseline"])
            )
        if "tolerance" in made and made["tolerance"] is None:
            del made["tolerance"]
        return Part(**made)

    def claim(self, value: object, number: int) -> Claim | None:
        where = f"[{number}]"
        given = self.mapping(value, where)
        if not isinstance(value, Mapping):
            return None
        if isinstance(given.get("id"), str) and given["id"]:
            where = given["id"]
        self.keys(given, _CLAIM, where)
        for key in _REQUIRED:
            if key not in given:
                near = nearest(key, [str(one) for one in given if one not in _CLAIM])
                self.tell(
                    "this key is required and missing",
                    f"{where}.{key}",
                    todo=f'Did you mean it by "{near}"?' if near else "Add it",
                )
        identity = given.get("id", "")
        if "id" in given and not (isinstance(identity, str) and _ID.fullmatch(identity)):
            self.tell(
                "",
                f"{where}.id",
                found=_shown(identity),
                expected="a short name of letters, digits, '.', '_' and '-'",
            )
        statement = self.text(given["statement"], f"{where}.statement") if "statement" in given else ""
        published = self.mapping(given.get("published") or {}, f"{where}.published")
        self.keys(published, _PUBLISHED, f"{where}.published")
        figure = published.get("value")
        dimension = given.get("needs_dimension")
        kind = self.choice(given["kind"], KINDS, f"{where}.kind") if "kind" in given else None
        parts = given.get("parts", ())
        if not isinstance(parts, list | tuple):
            self.tell("", f"{where}.parts", found=_shown(parts), expected="a list of parts")
            parts = ()
        elif not parts and "parts" in given:
            self.tell("a claim without parts says nothing", f"{where}.parts", expected="at least one part")
        made = (
            []
            if kind is None
            else [self.part(one, f"{where}.parts[{k}]", kind) for k, one in enumerate(parts)]
        )
        claim = Claim(
            id=str(identity),
            kind=str(kind),
            statement=statement,
            parts=tuple(part for part in made if part is not None),
            published_text=self.text(published.get("text", ""), f"{where}.published.text", empty=True),
            published_value=None if figure is None else self.number(figure, f"{where}.published.value"),
            needs_dimension=(
                None if dimension is None else self.whole(dimension, f"{where}.needs_dimension", 1)
            ),
            needs=self.selection(given["needs"], f"{where}.needs") if "needs" in given else {},
            published_needs=(
                self.selection(published["needs"], f"{where}.published.needs") if "needs" in published else {}
            ),
            check_values=(
                self.text(published["check_values"], f"{where}.published.check_values")
                if "check_values" in published
                else ""
            ),
            why=self.text(given.get("why", ""), f"{where}.why", empty=True),
        )
        names = [part.name for part in claim.parts if part.name]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.tell("two parts have this name", f"{where}.parts", found=name, todo="Name them apart")
        return claim


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"' if value.strip() else "an empty text"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return str(value)


def check(entries: object, *, file: str | Path | None = None) -> tuple[Claim, ...]:
    """Check raw entries and return the claims.

    Parameters
    ----------
    entries
        What YAML gave: a list of mappings.
    file
        What messages call their home.

    Raises
    ------
    InputError
        One sentence for each fault: unknown keys with the nearest right one, missing keys, wrong values,
        regions that hold nothing or everything, ids and names that occur twice.
    """
    reader = _Reader(file)
    if not isinstance(entries, list | tuple):
        raise InputError("", file=file, found=_shown(entries), expected="a list of claims")
    claims = [reader.claim(entry, number) for number, entry in enumerate(entries)]
    made = tuple(claim for claim in claims if claim is not None)
    seen: set[str] = set()
    for claim in made:
        if claim.id and claim.id in seen:
            reader.tell("two claims have this id", claim.id, todo="Give one of them another id")
        seen.add(claim.id)
    if reader.told:
        raise faults(reader.told)
    return made


# -- tables of facts ----------------------------------------------------------------------------------------


def find_table(name: str, study: Study) -> Path:
    """Find a table of facts: in the working directory, beside the workflow, or in its ``resources``.

    Raises
    ------
    InputError
        If it is in none of them, or its name cannot be that of a file here.
    """
    wrong = paths.improper(name)
    if wrong is not None:
        raise InputError(wrong[0], file=name, where="the table of facts that a claim names", todo=wrong[1])
    places = (study.base / name, study.root / name, study.root / "workflow" / "resources" / name)
    for place in places:
        if place.is_file():
            return place
    raise InputError(
        "a claim names a table of facts that does not exist",
        file=name,
        todo="Put it into the working directory or into workflow/resources",
    )


def read_figures(path: Path, column: str) -> list[tuple[dict[str, str], float]]:
    """Read the rows of a table of facts that have a figure: all their columns, and the figure.

    Parameters
    ----------
    path
        A CSV file.
    column
        The column of the figures; rows where it is empty have none.

    Raises
    ------
    InputError
        If the file is no such table, lacks the column or any that says whose figures these are, says of two rows that they
        are about the same, or a figure is not a number.
    """
    header, rows = read_rows(path, str(path))
    if column not in header:
        near = nearest(column, header)
        raise InputError(
            "no such column",
            file=path,
            found=column,
            expected="one of " + ", ".join(header),
            todo=f'Did you mean "{near}"?' if near else None,
        )
    keys = [name for name in header if name in (*ITEM_COLUMNS, "ability")]
    if not keys:
        raise InputError(
            "the table has no column that says whose figures these are",
            file=path,
            expected="one of " + ", ".join((*ITEM_COLUMNS, "ability")),
        )
    found: list[tuple[dict[str, str], float]] = []
    seen: dict[tuple[str, ...], int] = {}
    for number, row in rows:
        whose = tuple(row[name] for name in keys)
        if whose in seen:
            raise InputError(
                "two rows are about the same",
                file=path,
                where=f"row {number}",
                found=f"{', '.join(whose)}, as in row {seen[whose]}",
                todo="Keep one of them",
            )
        seen[whose] = number
        text = row[column].strip()
        if not text:
            continue
        if not (_FIGURE.fullmatch(text) and math.isfinite(float(text))):
            raise InputError(
                "",
                file=path,
                where=f'row {number}, column "{column}"',
                found=f'"{text}"',
                expected="a number",
            )
        found.append((row, float(text)))
    return found


def _check_figures(claim: Claim, study: Study) -> Iterator[InputError]:
    if claim.check_values:
        try:
            check_values.read(find_table(claim.check_values, study))
        except InputError as error:
            yield error
    for part in claim.parts:
        if not isinstance(part.published, Figure):
            continue
        try:
            path = find_table(part.published.table, study)
            figures = read_figures(path, part.published.column)
        except InputError as error:
            yield error
            continue
        if not figures or (part.statistic in TABULAR and "ability" not in figures[0][0]):
            yield InputError(
                "the table has no figure in this column" if not figures else 'there is no column "ability"',
                file=path,
                where=f"{claim.id}, {part.name}",
                found=part.published.column if not figures else None,
                expected=None if not figures else "the name of an ability beside each figure",
            )


def _beyond(claim: Claim, study: Study) -> Iterator[InputError]:
    """Find what a claim asks of more dimensions than the study fits."""
    dims, most = study.fits["dims"], study.fits["max_dims"]
    for part in claim.parts:
        for key in ("method", "baseline"):
            method = getattr(part, key)
            if method and _MIRT.fullmatch(method) and int(method.removeprefix("mirt_")) > most:
                yield InputError(
                    "this study fits fewer dimensions",
                    where=f"{claim.id}, {part.name}: {key}",
                    found=method,
                    expected=f"at most mirt_{most}",
                    todo="Raise fits.max_dims, or compare with fewer dimensions",
                )
        for key in ("ability", "against", "dimension"):
            number = getattr(part, key)
            if isinstance(number, int) and number > dims:
                yield InputError(
                    "this study fits fewer dimensions",
                    where=f"{claim.id}, {part.name}: {key}",
                    found=str(number),
                    expected=f"at most {dims}",
                    todo="Raise fits.dims, or name another one",
                )


# -- entry points -------------------------------------------------------------------------------------------


def load(study: Study) -> dict[str, Claim]:
    """Return the checked claims of a study by id, in the order in which they are given.

    Raises
    ------
    InputError
        One sentence for each fault of the entries or of the tables that they or the configuration name.
    """
    from benchmirt import config

    homes = [path.name for path in study.claims_files] + ["claims.extra"] * bool(study.claims["extra"])
    claims = check(config.claims_table(study), file=", ".join(homes) or None)
    told = [fault for claim in claims for fault in _check_figures(claim, study)]
    # the shipped claims speak of what their study fits; a study that fits less cannot test them
    own = {entry.get("id") for entry in study.claims["extra"]}
    told += [fault for claim in claims if claim.id in own for fault in _beyond(claim, study)]
    if study.claims["prompt_labels"] and any(claim.kind == "label" for claim in claims):
        read_labels(study.resource(study.claims["prompt_labels"]))
    if told:
        raise faults(told)
    return {claim.id: claim for claim in claims}


def _as_claim(entry: Mapping[str, Any] | Claim) -> Claim:
    return entry if isinstance(entry, Claim) else check([entry])[0]


_MATRIX = ("items", "models", "responses")
_FITTED = (
    *(f"matrix/{policy}/{table}.parquet" for policy in ("honest", "published") for table in _MATRIX),
    "dimensions/labels.json",
    "dimensions/stability.json",
    "dimensions/corrected/consensus.nc",
    "dimensions/published/consensus.nc",
    "dimensions/bootstrap.nc",
)
MIX_FILES = ("mix.csv", "mix_replicates.csv", "mix.json")
_SMALL = ("matrix/honest/items.parquet", "matrix/honest/models.parquet", "dimensions/stability.json")
_INPUTS = {
    "count": tuple(
        f"matrix/{policy}/{table}.parquet" for policy in ("honest", "published") for table in _MATRIX
    ),
    "dimensionality": (*_SMALL, "dimensions/number.json", "prediction/prediction.json"),
    "stability": (*_SMALL, "dimensions/reproducibility.csv"),
    "direction": _FITTED,
    "contrast": _FITTED,
    "correlation": (*_FITTED, "dimensions/leave_one_out.nc"),
    "shortform": (
        *(file for file in _FITTED if file != "dimensions/bootstrap.nc"),
        *(f"shortforms/{table}.csv" for table in ("published_filter", "curve", "correlations", "weakening")),
        "shortforms/summary.json",
    ),
    "pair": (*(file for file in _FITTED if file != "dimensions/bootstrap.nc"), "pairs/refits.nc"),
    "mix": (*_SMALL, "dimensions/labels.json", *(f"dimensions/{file}" for file in MIX_FILES)),
    "label": _FITTED,
    "prediction": (
        *_SMALL,
        "prediction/prediction.json",
        "prediction/scores.csv",
        "prediction/models.parquet",
    ),
}


def inputs_of(entry: Mapping[str, Any] | Claim, sources: Sequence[str] = ()) -> list[str]:
    """Return the files, relative to the results folder, from which a claim is judged.

    Parameters
    ----------
    entry
        A claim, raw or checked.
    sources
        Names of the study's sources; counts are compared with what these delivered.

    Raises
    ------
    InputError
        If a raw entry is not well formed.
    """
    claim = _as_claim(entry)
    files = list(_INPUTS[claim.kind])
    if claim.check_values:
        files += [path for table in _MATRIX if (path := f"matrix/published/{table}.parquet") not in files]
    if claim.kind == "count":
        files += [f"outcomes/{source}/{table}.parquet" for source in sources for table in ("items", "models")]
        if claim.needs_dimension is not None:
            files.append("dimensions/stability.json")
    return files


def tables_of(entry: Mapping[str, Any] | Claim, study: Study) -> list[str]:
    """Return the paths of the tables of facts that a claim names, and of the labels that it is judged by.

    Raises
    ------
    InputError
        If a raw entry is not well formed or a table does not exist.
    """
    claim = _as_claim(entry)
    names = [part.published.table for part in claim.parts if isinstance(part.published, Figure)]
    if claim.check_values:
        names.append(claim.check_values)
    tables = [find_table(name, study).as_posix() for name in dict.fromkeys(names)]
    if claim.kind == "label" and study.claims["prompt_labels"]:
        tables.append(study.resource(study.claims["prompt_labels"]).as_posix())
    return tables


def pairs_of(claims: Iterable[Claim]) -> list[tuple[str, str]]:
    """Return the pairs of models (base, changed) that claims speak of, each once, in order."""
    parts = [part for claim in claims for part in claim.parts]
    return list(dict.fromkeys((part.base, part.changed) for part in parts if part.base and part.changed))
