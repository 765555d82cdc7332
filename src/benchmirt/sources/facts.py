"""Facts of items and models, found in files by our names, their aliases, or as the configuration says."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from benchmirt.errors import InputError, nearest
from benchmirt.ids import code_point, lookalike, unseen
from benchmirt.outcomes import ITEM_FACTS, MODEL_FACTS
from benchmirt.sources.reading import Sheet

__all__ = ["Facts", "model_facts", "strings"]

_ALIASES = {"subcategory_one": ("subcategory",), "domain_superset": ("domain",)}
_NEARLY = 0.8  # likeness of two names, in difflib's ratio
_TRUTH = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST = 1e6  # billions of parameters; a larger number is not in billions
_NOTHING = frozenset({"nan", "NaN", "None", "NULL", "null", "NA", "N/A", "<NA>", "#N/A", "NaT"})
_GROUPS = frozenset({"benchmark", "category", "testlet", "canonical", "publisher", "family", "lineage"})


def _words(spec: Any) -> Iterable[str]:
    """Return the columns that a specification of the configuration names."""
    if isinstance(spec, str):
        return [spec]
    if isinstance(spec, Mapping):
        return [str(spec["column"])] if "column" in spec else []
    return [word for one in spec for word in _words(one)] if isinstance(spec, Sequence) else []


class Facts:
    """Facts by column, found by our names, their aliases, or as the configuration says.

    Parameters
    ----------
    sheet
        The file, or None: only the names themselves are known. A name that it does not hold has no facts.
    key, names, numbers
        The column of the names, the names in order, and their rows in the responses.
    file
        The responses, for messages where there is no sheet.
    asked
        The configuration's columns.
    place
        The key path of `asked`.
    """

    def __init__(
        self,
        sheet: Sheet | None,
        key: str,
        names: Sequence[str],
        numbers: Sequence[int],
        file: str,
        asked: Mapping[str, Any],
        place: str,
    ) -> None:
        if sheet is None:
            self.header: tuple[str, ...] = (key,)
            self.fields = [[name] for name in names]
            self.numbers = list(numbers)
            self.file = file
        else:
            index = sheet.header.index(key)
            order = {row[index]: row_place for row_place, row in enumerate(sheet.fields)}
            self.header = sheet.header
            blank = [""] * len(sheet.header)
            self.fields = [sheet.fields[order[name]] if name in order else blank for name in names]
            self.numbers = [sheet.numbers[order[name]] if name in order else 0 for name in names]
            self.file = sheet.file
        self.sheet = sheet
        self.key = key
        self.given = sheet is not None
        self.asked = asked
        self.place = place
        self._refuse_misspelt(MODEL_FACTS if place.endswith("model_columns") else ITEM_FACTS)

    def _refuse_misspelt(self, known: Iterable[str]) -> None:
        """Stop at a column whose name is nearly that of a fact which the file does not give: it would be ignored."""
        used = {word for spec in self.asked.values() for word in _words(spec)}
        aliases = {alias for names in _ALIASES.values() for alias in names}
        absent = [name for name in {*known, *aliases} if name not in self.header and name not in self.asked]
        for column in self.header if self.given else ():
            if column == self.key or column in used or column in known or column in aliases:
                continue
            close = get_close_matches(column.casefold(), sorted(absent), n=1, cutoff=_NEARLY)
            if close:
                raise InputError(
                    "a column is nearly called as a fact that the file lacks",
                    file=self.file,
                    where=f'row 1, column "{column}"',
                    found=f'"{column}"',
                    expected=f'"{close[0]}", or a name that is not so near',
                    todo="Correct the name, or rename the column if it means something else.",
                )

    def column_of(self, name: str) -> str:
        """Return the file's column that first gives the fact called `name`."""
        asked = self.asked.get(name, name)
        first = asked[0] if isinstance(asked, list) else asked
        column: str = first.get("column", name) if isinstance(first, dict) else first
        if name not in self.asked and name not in self.header:
            return next((own for own in _ALIASES.get(name, ()) if own in self.header), name)
        return column

    def texts(self, name: str) -> list[str | None]:
        """Return the fact called `name` as texts, None where it is not given.

        Raises
        ------
        InputError
            If a text holds what cannot be seen, or a group is called as software writes a missing value.
        """
        values = self._texts(name)
        for place, value in enumerate(values):
            if value is None:
                continue
            odd = unseen(value)
            if odd is not None:
                raise InputError(
                    "a text holds a character that cannot be seen",
                    file=self.file,
                    where=f'row {self.numbers[place]}, column "{self.column_of(name)}"',
                    found=f'{code_point(odd)}, in "{value}"',
                    todo="Remove the character",
                )
            if self.given and name in _GROUPS and value in _NOTHING:
                raise InputError(
                    "",
                    file=self.file,
                    where=f'row {self.numbers[place]}, column "{self.column_of(name)}"',
                    found=f'"{value}"',
                    expected=f"a {name}, or an empty cell where there is none",
                    todo=f'Empty the cell, or choose another name if it is really called "{value}"',
                )
        if self.given and name in _GROUPS:
            self._refuse_lookalikes(name, values)
        return values

    def _refuse_lookalikes(self, name: str, values: Sequence[str | None]) -> None:
        """Stop at two groups whose names differ in their Unicode form only."""
        places: dict[str, int] = {}
        for place, value in enumerate(values):
            if value is not None:
                places.setdefault(value, place)
        groups = list(places)
        alike = lookalike(groups)
        if alike is None:
            return
        first, second = (groups[number] for number in alike)
        raise InputError(
            f"the text looks like that of row {self.numbers[places[first]]}, written in another Unicode form",
            file=self.file,
            where=f'row {self.numbers[places[second]]}, column "{self.column_of(name)}"',
            found=f'"{second}"',
            todo="Write it in the same form (NFC) in both rows",
        )

    def _texts(self, name: str) -> list[str | None]:
        if name in self.asked:
            asked = self.asked[name]
            return self._first(name, asked if isinstance(asked, list) else [asked])
        for own in (name, *_ALIASES.get(name, ())):
            if own in self.header:
                return [value or None for value in self._column(own)]
        return [None] * len(self.fields)

    def _column(self, name: str) -> list[str]:
        """Return a column of the file, without spaces around its texts."""
        if self.sheet is not None and name in self.sheet.unreadable:
            self.sheet.column(name)  # raises
        index = self.header.index(name)
        return [row[index].strip() for row in self.fields]

    def _first(self, name: str, specs: Sequence[Any]) -> list[str | None]:
        found: list[str | None] = [None] * len(self.fields)
        for spec in specs:
            for place, value in enumerate(self._one(name, spec)):
                if found[place] is None:
                    found[place] = value
        return found

    def _one(self, name: str, spec: Any) -> list[str | None]:
        if isinstance(spec, str):
            spec = {"column": spec}
        constant = spec.get("value")
        if isinstance(constant, bool):
            constant = "true" if constant else "false"
        elif constant is not None:
            constant = str(constant)
        column = spec.get("column")
        if column is None:
            return [constant] * len(self.fields)
        if column not in self.header:
            near = nearest(column, self.header)
            raise InputError(
                f'there is no column "{column}"',
                file=self.file,
                where=f"row 1 (asked for by {self.place}.{name})",
                found=", ".join(self.header[:8]) + (", ..." if len(self.header) > 8 else ""),
                todo=f'Did you mean "{near}"?' if near else "Name one of these",
            )
        values = self._column(column)
        pattern = spec.get("pattern")
        if pattern is None:
            return [(constant if value and constant is not None else value) or None for value in values]
        matches = [re.search(pattern, value) for value in values]
        if not any(matches):
            raise InputError(
                f'the pattern of {self.place}.{name} is nowhere in column "{column}"',
                file=self.file,
                where=f'row {self.numbers[0]}, column "{column}"',
                found=f'"{values[0]}" first',
                expected=f"{pattern}",
            )
        if constant is not None:
            return [constant if match else None for match in matches]
        return [(match.group(1) or None) if match else None for match in matches]

    def typed(self, name: str, kind: str, what: str) -> list[Any]:
        """Return a fact as numbers, truth values or dates.

        Raises
        ------
        InputError
            If a text is none.
        """
        values: list[Any] = []
        for place, text in enumerate(self.texts(name)):
            value = None if text is None else _converted(text, kind)
            if text is not None and value is None:
                raise InputError(
                    "",
                    file=self.file,
                    where=f'row {self.numbers[place]}, column "{self.column_of(name)}"',
                    found=f'"{text}"',
                    expected=what,
                    todo="Correct the value or leave it empty",
                )
            values.append(value)
        return values


def _converted(text: str, kind: str) -> float | int | bool | str | None:
    """Return `text` as a number of options, a size, a truth value or a date; None if it is none."""
    if kind == "truth":
        return _TRUTH.get(text.lower())
    if kind == "date":
        return text if _is_date(text) else None
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    if kind == "options":
        return int(number) if number.is_integer() and 2 <= number <= 1000 else None
    return number if 0.0 < number <= _LARGEST else None


def _is_date(text: str) -> bool:
    """Whether `text` is a year, a month or a day of the calendar, as in 2024, 2024-09 or 2024-09-12."""
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", text) is None:
        return False
    year, month, day = (*map(int, text.split("-")), 1, 1)[:3]
    return year >= 1 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def strings(values: Iterable[str | None]) -> pd.Series:
    """Return a column of texts, missing where None."""
    return pd.Series([np.nan if value is None else value for value in values], dtype="str")


def model_facts(facts: Facts, models: Sequence[str]) -> pd.DataFrame:
    """Return the facts of models, as :func:`benchmirt.outcomes.model_schema` wants them.

    Raises
    ------
    InputError
        If a size, a truth value or a date is none.
    """
    columns: dict[str, Any] = {"model": strings(models)}
    for name, kind in MODEL_FACTS.items():
        if kind == "str" and name not in (*columns, "released"):
            columns[name] = strings(facts.texts(name))
    columns["released"] = strings(
        facts.typed("released", "date", "a date such as 2024-09-12, 2024-09 or 2024, or nothing")
    )
    sizes = facts.typed("size_b", "size", "a number of billions of parameters, up to 1,000,000, or nothing")
    columns["size_b"] = np.array([np.nan if size is None else size for size in sizes], dtype=np.float64)
    columns["reasoning"] = pd.array(facts.typed("reasoning", "truth", "true or false"), dtype="boolean")
    frame = pd.DataFrame({name: columns[name] for name in MODEL_FACTS})
    rows = [number or None for number in facts.numbers] if facts.given else [None] * len(models)
    frame["fact_row"] = pd.array(rows, dtype="Int64")
    return frame
