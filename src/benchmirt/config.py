"""The study: its configuration, checked before anything runs.

The one source of what may be written is ``workflow/schemas/config.schema.json``. This module fills its
defaults, turns every violation into a sentence with the full path of the key, and adds the checks that need
more than one key or a look at the disk. It imports nothing heavy, since it runs whenever the workflow is
parsed.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchmirt import paths
from benchmirt.errors import InputError, faults, nearest
from benchmirt.ids import code_point, unseen
from benchmirt.strict_yaml import read as read_yaml
from benchmirt.strict_yaml import read_mapping

__all__ = [
    "AFTERWARDS",
    "CALIBRATION",
    "FILES",
    "FOLDERS",
    "FORMATS",
    "PLACES",
    "RAW",
    "RESPONSES",
    "ROAD_FILES",
    "STATISTICS",
    "UNTOLD",
    "Source",
    "Study",
    "claims_table",
    "dump",
    "fits_table",
    "load",
    "need_newcomers",
    "newcomers",
    "read_mapping",
    "read_yaml",
    "validated",
]

_ROOT = Path(__file__).resolve().parents[2]
_SCHEMA = Path("workflow", "schemas", "config.schema.json")
_SIMULATED = {
    "responses": "simulated_responses.csv.gz",
    "items": "simulated_items.csv",
    "models": "simulated_models.csv",
}
RAW = {
    "leaderboard": "simulated_open_llm_leaderboard",
    "safety-eval": "simulated_safety_eval",
}
"""Kinds of sources with one folder per model, and the folder of each where the workflow simulates it."""

FORMATS = ("lm-eval", "inspect", "helm", "olmo-eval", "every-eval-ever", "evalscope", "py-irt", "long")
"""Kinds of sources of other evaluation tools' files, which lie in a folder per model or name the models themselves."""

FILES = ("files", *FORMATS)
"""The same and ``files``, whose formats are told by what is in them."""

_MODEL = "{model}"
STATISTICS = "_published"
"""Stands for the published statistics where others have the name of a source, which cannot begin so."""

RESPONSES = "_published_responses"
"""The same for the published responses."""

ROAD_FILES = (
    "disagreements.csv",
    "items.csv",
    "benchmarks.csv",
    "models.csv",
    "missing.csv",
    "summary.json",
)
"""What the comparison of published and raw responses makes."""

UNTOLD = "not told"
"""Benchmark of published items that nothing tells."""

PLACES = ("responses", "items", "models", "folder", "files")
"""Keys of sources that take a path, or a data set of the hub in its place."""

FOLDERS = (
    *(
        "fetched",
        "sources",
        "truth",
        "outcomes",
        "matrix",
        "roads",
        "published_statistics",
        "fits",
        "dimensions",
    ),
    *("prediction", "shortforms", "pairs", "claims", "profiles", "calibration", "report", "figures"),
    *("scores", "extended", "shortform", "adaptive", "compared", "logs", "benchmarks"),
)
"""Folders that a study makes among its results."""

CALIBRATION = ("calibration.json", "items.csv.gz", "models.csv", "benchmarks.csv", "README.md")
"""Files of a calibration's folder."""

AFTERWARDS = ("score", "shortform", "adaptive", "compare")
"""Sections that ask something of a finished study, so that none of its results depends on them."""

_TYPES = {
    "object": "a mapping (key: value)",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "nothing",
}


@dataclass(frozen=True)
class Source:
    """One source of outcomes.

    Attributes
    ----------
    name
        Unique in the study and safe in paths.
    kind
        ``table``, ``simulated``, or one of :data:`RAW` or :data:`FILES`.
    options
        The source's other keys, defaults filled; paths as they were given.
    """

    name: str
    kind: str
    options: dict[str, Any]

    @property
    def place(self) -> str:
        """How messages call its place in the configuration."""
        return RESPONSES.lstrip("_") if self.name == RESPONSES else f"sources ({self.name})"

    @property
    def fetched(self) -> dict[str, dict[str, Any]]:
        """What comes from the hub: the key of the path that it stands for -> the data set."""
        return {role: self.options[role] for role in PLACES if isinstance(self.options.get(role), dict)}

    @property
    def per_model(self) -> bool:
        """Whether each model has a data set of its own on the hub."""
        folder = self.options.get("folder")
        return isinstance(folder, dict) and _MODEL in folder["hub"]

    def _place(self, role: str, results: str) -> str:
        """Return the path of a file or a folder: as it was given, or the folder that it is fetched into."""
        if role in self.fetched:
            return f"{results}/fetched/{self.name}/{role}"
        return str(self.options[role])

    @property
    def by_model(self) -> bool:
        """Whether the source is a folder with one folder per model."""
        return self.kind in RAW or (self.kind in FILES and "folder" in self.options)

    def files(self, results: str) -> dict[str, str]:
        """Return what is read: ``responses`` and, where there are such, ``items`` and ``models``.

        Raw sources have a ``folder``, or ``files`` that name their models, instead of responses, and no items.

        Parameters
        ----------
        results
            The results folder; simulated tables stand in its ``sources/{name}/``, simulated raw files in its
            ``sources/``, and what comes from the hub is a folder in its ``fetched/{name}/``.
        """
        if self.kind in RAW:
            simulated = f"{results}/sources/{RAW[self.kind]}"
            folder = self._place("folder", results) if "folder" in self.options else simulated
            return {"folder": folder.rstrip("/") or "/", "models": self.options["models"]}
        if self.kind in FILES:
            role = "folder" if self.by_model else "files"
            return {role: self._place(role, results).rstrip("/") or "/", "models": self.options["models"]}
        if self.kind == "simulated":
            return {role: f"{results}/sources/{self.name}/{name}" for role, name in _SIMULATED.items()}
        roles = ("responses", "items", "models")
        return {role: self._place(role, results) for role in roles if role in self.options}


@dataclass(frozen=True)
class Study:
    """A checked study; see ``workflow/schemas/config.schema.json`` for what the mappings hold.

    Attributes
    ----------
    name, title
        Short name and title.
    simulated
        Whether any source is simulated; everything shown must say so then.
    results
        The results folder as given, without ``.`` and double slashes.
    sources
        In the order of the configuration.
    models, joining, filter, fits, dimensions, prediction, shortforms, claims, report
        The sections, defaults filled.
    published_size
        Whether the sources hold the published study complete, so that counts are compared with the published ones.
    raw
        The complete configuration, defaults filled.
    base, root
        The working directory, and the folder that holds the workflow.
    config_sha256
        Hash of `raw` without the results folder and what is asked afterwards.
    simulate
        What the simulated double holds, or None: arguments of :func:`benchmirt.simulate.raw.twin`.
    hub
        How patiently data sets of the hub are fetched: arguments of :class:`benchmirt.hub.Patience`.
    published_statistics
        Tables of ``items`` and ``models`` that the study was published with: paths, or data sets of the hub.
    published_responses
        The response table that it was published with, if it is named; see :attr:`published_road`.
    score, shortform, adaptive, compare
        What is asked of a finished study, defaults filled; no other result depends on it.
    """

    name: str
    title: str
    simulated: bool
    results: str
    sources: tuple[Source, ...]
    models: dict[str, Any]
    joining: dict[str, Any]
    filter: dict[str, Any]
    fits: dict[str, Any]
    dimensions: dict[str, Any]
    prediction: dict[str, Any]
    shortforms: dict[str, Any]
    claims: dict[str, Any]
    report: dict[str, Any]
    published_size: bool
    raw: dict[str, Any]
    base: Path = field(compare=False)
    root: Path = field(compare=False)
    config_sha256: str
    simulate: dict[str, Any] | None = None
    hub: dict[str, Any] = field(default_factory=dict)
    published_statistics: dict[str, Any] = field(default_factory=dict)
    published_responses: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)
    shortform: dict[str, Any] = field(default_factory=dict)
    compare: dict[str, Any] = field(default_factory=dict)
    adaptive: dict[str, Any] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """Return the source called `name`.

        Raises
        ------
        KeyError
            If there is none.
        """
        for source in self.sources:
            if source.name == name:
                return source
        raise KeyError(name)

    def takes(self, model: str) -> bool:
        """Say whether a model takes part, by ``models.include`` and ``models.exclude``."""
        include = self.models["include"]
        return model not in self.models["exclude"] and (not include or model in include)

    @property
    def published_road(self) -> Source | None:
        """The published responses as a table that is compared with the matrix and is no part of it; None if none are named."""
        if not self.published_responses:
            return None
        return Source(RESPONSES, "table", {"benchmark": UNTOLD, **self.published_responses})

    def statistics_places(self, results: str) -> dict[str, str]:
        """Return the published tables of ``items`` and ``models``, or the folders that they are fetched into."""
        return {
            role: place if isinstance(place, str) else f"{results}/fetched/{STATISTICS}/{role}"
            for role, place in self.published_statistics.items()
        }

    def files(self, source: str) -> dict[str, str]:
        """Return the tables of a source; see :meth:`Source.files`."""
        return self.source(source).files(self.results)

    def resource(self, path: str) -> Path:
        """Return where a file stands that is found in the working directory or else beside the workflow."""
        return _resource(path, self.base, self.root)

    @property
    def claims_files(self) -> tuple[Path, ...]:
        """The files with claims, found in the working directory or else beside the workflow."""
        return tuple(_resource(path, self.base, self.root) for path in self.claims["file"])


# -- the schema: defaults and sentences ---------------------------------------------------------------------


@functools.cache
def _schema(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(
            "the schema of the configuration is missing",
            file=path,
            todo="Run from a complete copy of the workflow",
        )
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def _resolve(schema: Mapping[str, Any], whole: Mapping[str, Any], value: object) -> dict[str, Any]:
    """Return `schema` with its reference followed and the branch for `value` chosen."""
    merged = dict(schema)
    reference = merged.pop("$ref", None)
    if reference is not None:
        merged = {**_resolve(whole["$defs"][reference.rpartition("/")[2]], whole, value), **merged}
    for branch in merged.get("anyOf", []) if isinstance(value, Mapping) else []:
        part = _resolve(branch, whole, value)
        if part.get("type") == "object":
            merged = {**part, **merged}
    for branch in merged.pop("allOf", []):
        kind = branch["if"]["properties"]["kind"]["const"]
        if isinstance(value, Mapping) and value.get("kind") == kind:
            merged = {**merged, **_resolve(branch["then"], whole, value)}
    return merged


def _fill(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    """Return a copy of `value` with defaults filled and whole floats of whole numbers made int."""
    schema = _resolve(schema, whole, value)
    if isinstance(value, Mapping):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        other = other if isinstance(other, Mapping) else {}
        filled = {key: _fill(entry, known.get(key, other), whole) for key, entry in value.items()}
        for key, part in known.items():
            if key not in filled and "default" in part:
                filled[key] = _fill(copy.deepcopy(part["default"]), part, whole)
        return filled
    if isinstance(value, list | tuple):
        return [_fill(entry, schema.get("items", {}), whole) for entry in value]
    if isinstance(value, float) and schema.get("type") == "integer" and value.is_integer():
        return int(value)
    if isinstance(value, float):
        return next((choice for choice in schema.get("enum", ()) if choice == value), value)
    return value


def _key_path(path: Iterable[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(value: object) -> str:
    """Describe a value of the configuration as its author wrote it."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, Mapping):
        return "a mapping with the keys " + ", ".join(map(str, value)) if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan, which is not a number" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    if isinstance(value, int) and abs(value) >= 10**15:
        return f"{value:.6g}" if abs(value) < 10**300 else "a number of more than 300 digits"
    return str(value)


def _homes(schema: Mapping[str, Any], whole: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (key, full path) of every key of the sections of the schema."""
    for key, part in schema.get("properties", {}).items():
        full = f"{path}.{key}" if path else key
        yield key, full
        yield from _homes(part, whole, full)


def _unknown(key: str, level: Mapping[str, Any], whole: Mapping[str, Any], at: str) -> str:
    """Return what to do about an unknown key: the nearest key here, or its right place, or all keys."""
    here = list(level.get("properties", {}))
    near = nearest(key, here)
    if near is not None:
        return f'Did you mean "{near}"?'
    elsewhere = [full for name, full in _homes(whole, whole) if name == key and full != f"{at}.{key}"]
    # the keys of a published table are those of a source of that kind, which is where they were meant
    elsewhere = [full for full in elsewhere if not full.startswith("published_responses.")]
    # the settings of full_effort have their usual homes as well
    elsewhere = [full for full in elsewhere if not full.startswith("full_effort.")] or elsewhere
    if len(elsewhere) == 1:
        return f'Did you mean "{elsewhere[0]}"?'
    return "Known here: " + ", ".join(here) if here else "Remove it"


def _sentences(error: Any, whole: Mapping[str, Any], origin: str) -> Iterator[InputError]:
    """Turn one violation of the schema into sentences."""
    where = _key_path(error.absolute_path)
    value, rule, kind = error.instance, error.validator_value, error.validator

    def fault(what: str, **more: str | None) -> InputError:
        return InputError(what, file=origin, **{"where": where or None, **more})

    if kind == "additionalProperties" and isinstance(rule, bool):
        level = _resolve(error.schema, whole, value)
        for key in value:
            if key in level.get("properties", {}):
                continue
            yield fault(
                "unknown key",
                where=_key_path([*error.absolute_path, str(key)]),
                todo=_unknown(str(key), level, whole, where),
            )
    elif kind == "required":
        for key in rule:
            if key not in value:
                full = _key_path([*error.absolute_path, key])
                near = nearest(key, [k for k in map(str, value) if k not in error.schema["properties"]])
                todo = f'Did you mean it by "{near}"?' if near else "Add it"
                yield fault("this key is required and missing", where=full, todo=todo)
    elif kind == "type":
        types = [rule] if isinstance(rule, str) else list(rule)
        todo = None
        if value is None:
            todo = "Give it a value, or remove the key to use its default"
        elif isinstance(value, str) and {"number", "integer"} & set(types) and _is_number(value):
            if float(value).is_integer():
                todo = f"Write it without quotes: {int(float(value))}"
            else:
                todo = f"Write it without quotes and, in YAML, with a decimal point: {float(value)!r}"
        elif "string" in types and not isinstance(value, Mapping | list):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            todo = f'Put it into quotes: "{text}"'
        elif "array" in types and isinstance(value, str):
            todo = f"Write it as a list: [{value}]"
        yield fault("", found=_shown(value), expected=" or ".join(_TYPES[name] for name in types), todo=todo)
    elif kind == "enum":
        near = nearest(value, [str(choice) for choice in rule]) if isinstance(value, str) else None
        todo = f'Did you mean "{near}"?' if near else None
        if isinstance(value, bool) and any(isinstance(choice, str) for choice in rule):
            todo = "YAML reads a bare yes, no, on or off as true or false: put a word in quotes"
        yield fault("", found=_shown(value), expected="one of " + ", ".join(map(str, rule)), todo=todo)
    elif kind in _BOUNDS:
        yield fault("", found=_shown(value), expected=f"{_BOUNDS[kind]} {rule}")
    elif kind == "maxLength":
        yield fault(
            "", found=f"{len(value)} characters", expected=f"at most {rule}", todo="Give it a shorter name"
        )
    elif kind in ("minLength", "minItems", "minProperties"):
        yield fault("", found=_shown(value) if value else "nothing", expected=f"at least {rule}")
    elif kind == "uniqueItems":
        twice = sorted({str(entry) for entry in value if value.count(entry) > 1})
        yield fault("the list names an entry twice", found=", ".join(twice), todo="Remove one of them")
    elif kind == "anyOf" and isinstance(value, Mapping) and (inside := _of_mapping(error)):
        for one in inside:
            yield from _sentences(one, whole, origin)
    else:  # a pattern or alternatives: the schema says in words what it wants
        yield fault("", found=_shown(value), expected=error.schema["$comment"])


def _of_mapping(error: Any) -> list[Any]:
    """Return what is wrong with a mapping where it may be a mapping or something else; nothing if it may be none."""
    branches: dict[int, list[Any]] = {}
    for one in error.context:
        branches.setdefault(one.relative_schema_path[0], []).append(one)
    fits = [
        found
        for found in branches.values()
        if not any(one.validator == "type" and one.absolute_path == error.absolute_path for one in found)
    ]
    told = len(fits) == 1 and all(one.validator in _SIMPLE or "$comment" in one.schema for one in fits[0])
    return fits[0] if told else []


_SIMPLE = frozenset({"additionalProperties", "required", "type", "minLength", "minItems", "uniqueItems"})


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _values(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path and the value of everything in a mapping or a list, and of keys that are no texts.

    Raises
    ------
    RecursionError
        If a value contains itself.
    """
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(key, str):
                yield from _values(entry, (*path, key))
            else:
                yield path, _Key(key)
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            yield from _values(entry, (*path, place))
    else:
        yield path, value


@dataclass(frozen=True)
class _Key:
    """A key of a mapping that is no text."""

    key: object


def _check_plain(value: Any, origin: str) -> None:
    """Refuse what no schema can: keys that are no texts, numbers that are none, values without end.

    Raises
    ------
    InputError
        One for all faults.
    """
    told = []
    try:
        for path, entry in _values(value):
            where = _key_path(path) or None
            if isinstance(entry, _Key):
                text = str(entry.key).lower() if isinstance(entry.key, bool) else str(entry.key)
                told.append(
                    InputError(
                        "a key is not a text",
                        file=origin,
                        where=where,
                        found=_shown(entry.key),
                        expected="a text",
                        todo="Write the key before the colon"
                        if entry.key is None
                        else f'Put it into quotes: "{text}"',
                    )
                )
            elif isinstance(entry, float) and not math.isfinite(entry):
                told.append(
                    InputError("", file=origin, where=where, found=_shown(entry), expected="a finite number")
                )
    except RecursionError:
        raise InputError(
            "a value contains itself, or is nested too deeply",
            file=origin,
            todo="Write it out without an alias",
        ) from None
    if told:
        raise faults(told)


def _check(
    value: Mapping[str, Any], schema: Mapping[str, Any], whole: Mapping[str, Any], origin: str
) -> None:
    """Raise one InputError with every violation of `schema`.

    Raises
    ------
    InputError
        If there is any.
    """
    import jsonschema

    validator = jsonschema.Draft202012Validator({**schema, "$defs": whole["$defs"]})
    found = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    mistyped = {tuple(error.absolute_path) for error in found if error.validator == "type"}
    told = [
        sentence
        for error in found
        if error.validator == "type" or tuple(error.absolute_path) not in mistyped
        for sentence in _sentences(error, whole, origin)
    ]
    if told:
        raise faults(list({str(sentence): sentence for sentence in told}.values()))


def _is_simulated(source: Mapping[str, Any]) -> bool:
    """Say whether a source is simulated: by its kind, for want of a folder, or by the folder's name."""
    if source["kind"] in (*RAW, *FILES):
        place = source.get("folder", source.get("files"))
        if place is None:
            return source["kind"] in RAW
        return "simulated" in Path(place["hub"] if isinstance(place, Mapping) else place).name
    return bool(source["kind"] == "simulated")


# -- checks beyond the schema -------------------------------------------------------------------------------


def _is_whole_double(simulate: Mapping[str, Any] | None) -> bool:
    """Say whether the simulated double is as large as the published study."""
    return simulate is not None and simulate["scale"] == 1 and simulate["models"] == 100


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of nested mappings in which the values of `above` replace those of `below`."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _laid_over(merged[key], value) if both else copy.deepcopy(value)
    return merged


def _resource(path: str, base: Path, root: Path) -> Path:
    """Find a file in the working directory, or else beside the workflow."""
    here, there = base / path, root / path
    return here if os.path.exists(here) or not os.path.exists(there) else there


def _unreadable(
    path: str, full: Path, kind: Literal["file", "folder"], where: str, origin: str, check_files: bool
) -> Iterator[InputError]:
    """Yield why a path of the configuration cannot be read, if it cannot."""
    wrong = paths.improper(path)
    if wrong is not None:
        yield InputError(wrong[0], file=origin, where=where, found=f'"{path}"', todo=wrong[1])
        return
    gone = paths.absent(full, kind) if check_files else None
    if gone is not None:
        yield InputError(gone.what, file=origin, where=where, looked_for=gone.looked_for, todo=gone.todo)


def _check_results(results: str, base: Path, origin: str, check_files: bool) -> Iterator[InputError]:
    """Yield why the results folder cannot be written into, if it cannot."""
    wrong = paths.improper(results)
    if wrong is None and not results.strip("/"):
        wrong = "this is the root of the file system", "Name a folder of its own, such as results"
    if wrong is None and Path(os.path.abspath(base / results)) == Path(os.path.abspath(base)):
        wrong = "this is the working directory itself", "Name a folder in it, such as results"
    if wrong is not None:
        yield InputError(wrong[0], file=origin, where="results", found=f'"{results}"', todo=wrong[1])
        return
    if not check_files:
        return
    places = [base / results, *(base / results / name for name in FOLDERS)]
    closed = next((gone for gone in map(paths.not_a_folder, places) if gone is not None), None)
    if closed is not None:
        yield InputError(
            closed.what, file=origin, where="results", found=f'"{closed.looked_for}"', todo=closed.todo
        )


def _check_apart(raw: Mapping[str, Any], base: Path, origin: str) -> Iterator[InputError]:
    """Yield which sources lie where results are written: what a run makes would be taken for what it reads."""
    results = Path(os.path.abspath(base / raw["results"]))
    asked = [(f"sources[{number}]", source) for number, source in enumerate(raw["sources"])]
    asked += [(f"score.models[{number}]", source) for number, source in enumerate(raw["score"]["models"])]
    for where, source in asked:
        for role in PLACES:
            given = source.get(role)
            if not isinstance(given, str):
                continue
            place = Path(os.path.abspath(base / given))
            if place == results or results in place.parents or place in results.parents:
                yield InputError(
                    "results would be written where outcomes are read from",
                    file=origin,
                    where=f"{where}.{role}",
                    found=f'"{given}", and results: "{raw["results"]}"',
                    expected="folders of which none lies in the other",
                    todo="Name another folder in results:",
                )


def _check_titles(raw: Mapping[str, Any], origin: str) -> Iterator[InputError]:
    """Yield what cannot be seen in the headings of the page."""
    for where, text in (("title", raw["title"]), ("report.title", raw["report"]["title"])):
        odd = unseen(text.strip())
        if odd is not None:
            yield InputError(
                "the title holds a character that cannot be seen",
                file=origin,
                where=where,
                found=code_point(odd),
                todo="Remove it",
            )


def _check_columns(source: Mapping[str, Any], where: str, origin: str) -> Iterator[InputError]:
    for section in ("columns", "model_columns"):
        for column, spec in source.get(section, {}).items():
            for one in spec if isinstance(spec, list) else [spec]:
                pattern = one.get("pattern") if isinstance(one, dict) else None
                if pattern is None:
                    continue
                place = f"{where}.{section}.{column}"
                try:
                    groups = re.compile(pattern).groups
                except re.error as error:
                    yield InputError(
                        f"the pattern is not a regular expression ({error})",
                        file=origin,
                        where=place,
                        found=f'"{pattern}"',
                    )
                    continue
                if groups != 1 and "value" not in one:
                    yield InputError(
                        "a pattern needs exactly one group in parentheses, which gives the value",
                        file=origin,
                        where=place,
                        found=f'"{pattern}" with {groups}',
                        todo="Write groups that give nothing as (?:...)",
                    )


def _check_raw(
    source: Mapping[str, Any],
    where: str,
    simulate: Mapping[str, Any] | None,
    base: Path,
    root: Path,
    origin: str,
    check_files: bool,
) -> Iterator[InputError]:
    """Yield what is wrong with a source of raw files."""
    yield from _check_columns(source, where, origin)
    folder = source.get("folder")
    if source["kind"] in FILES:
        if (folder is None) == ("files" not in source):
            yield InputError(
                "give one of folder and files",
                file=origin,
                where=where,
                found="neither" if folder is None else "both",
                todo="folder: DIR where each model has its folder in it, files: PATH where the files name the models",
            )
            return
        if folder is None and not isinstance(source["files"], Mapping):
            full = base / source["files"]
            kind: Literal["file", "folder"] = "folder" if full.is_dir() else "file"
            yield from _unreadable(source["files"], full, kind, f"{where}.files", origin, check_files)
    elif folder is None and simulate is None:
        yield InputError(
            "this key is required and missing",
            file=origin,
            where=f"{where}.folder",
            todo="Name the folder that holds one folder per model, or add simulate: to have it made",
        )
    if folder is not None and not isinstance(folder, Mapping):
        yield from _unreadable(folder, base / folder, "folder", f"{where}.folder", origin, check_files)
    for key in ("models", "scoring"):
        for path in [source[key]] if isinstance(source[key], str) else source[key]:
            full = _resource(path, base, root)
            yield from _unreadable(path, full, "file", f"{where}.{key}", origin, check_files)


def _check_published_responses(
    table: Mapping[str, Any], base: Path, origin: str, check_files: bool
) -> Iterator[InputError]:
    """Yield what is wrong with the published responses, if any are named."""
    where = "published_responses"
    yield from _check_hub(table, where, origin)
    yield from _check_columns(table, where, origin)
    if table and "responses" not in table:
        yield InputError(
            "this key is required and missing",
            file=origin,
            where=f"{where}.responses",
            todo=f"Name the published table of outcomes, or remove {where}",
        )
    for role in ("responses", "items"):
        if isinstance(table.get(role), str):
            full = base / table[role]
            yield from _unreadable(table[role], full, "file", f"{where}.{role}", origin, check_files)


def _check_hub(places: Mapping[str, Any], where: str, origin: str) -> Iterator[InputError]:
    """Yield where a data set is asked for by model though there is no folder per model."""
    for role, place in places.items():
        if isinstance(place, Mapping) and role != "folder" and _MODEL in place.get("hub", ""):
            yield InputError(
                f"{_MODEL} stands for one model after the other, and this is not a folder per model",
                file=origin,
                where=f"{where}.{role}.hub",
                found=f'"{place["hub"]}"',
                todo="Name one data set",
            )


def _check_simulate(raw: Mapping[str, Any], origin: str) -> Iterator[InputError]:
    """Yield what is wrong with the simulated double: nothing reads it, or two sources read the same."""
    if raw["simulate"] is None:
        return
    kinds = [source["kind"] for source in raw["sources"] if source["kind"] in RAW and "folder" not in source]
    if not kinds:
        yield InputError(
            "no source reads what is simulated",
            file=origin,
            where="simulate",
            todo=f"Add sources of the kinds {' and '.join(RAW)} without a folder, or drop simulate",
        )
    for number, source in enumerate(raw["sources"]):
        if source["kind"] == "simulated" and source["name"].casefold() in {"twin", *RAW.values()}:
            yield InputError(
                "beside simulate, this name is taken by the folder of its truth or of its files",
                file=origin,
                where=f"sources[{number}].name",
                found=source["name"],
                todo="Give the source another name",
            )
    for kind in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        yield InputError(
            "two sources read the same simulated files",
            file=origin,
            where="sources",
            found=f"the kind {kind} twice without a folder",
            todo="Drop one of them",
        )


def _check_afterwards(
    raw: Mapping[str, Any], base: Path, root: Path, origin: str, check_files: bool
) -> Iterator[InputError]:
    """Yield what is wrong with what is asked of a finished study."""
    for section in AFTERWARDS:
        folder = raw[section].get("calibration")
        if folder:
            where = f"{section}.calibration"
            own = base / raw["results"] / "calibration"
            if os.path.realpath(base / folder) == os.path.realpath(own):
                yield InputError(
                    "this is the folder that a study with these results writes itself: where the configuration is not the "
                    "one that made it, it would be made anew, out of other data",
                    file=origin,
                    where=where,
                    found=f'"{folder}", and results: "{raw["results"]}"',
                    todo="Name the calibration of another study"
                    if section == "compare"
                    else "Name another folder in results:, or leave calibration out and give the files of the study too",
                )
                continue
            faults = [*_unreadable(folder, base / folder, "folder", where, origin, check_files)]
            yield from faults
            gone = [name for name in CALIBRATION if not (base / folder / name).is_file()]
            if check_files and not faults and gone:
                yield InputError(
                    f"there is no {gone[0]} in this folder",
                    file=origin,
                    where=where,
                    looked_for=str((base / folder).absolute()),
                    todo="Name the folder `calibration` that a finished study wrote"
                    if gone[0] == CALIBRATION[0]
                    else f"Copy the whole folder; it lacks {', '.join(gone)}",
                )
    claims = raw["compare"]["claims"]
    if claims:
        yield from _unreadable(claims, base / claims, "file", "compare.claims", origin, check_files)
    if raw["shortform"]["size"] is None and raw["shortform"]["standard_error"] is None:
        yield InputError(
            "a short form needs a size or a standard_error",
            file=origin,
            where="shortform",
            todo="Give one of the two",
        )
    names: list[str] = []
    for number, source in enumerate(raw["score"]["models"]):
        where = f"score.models[{number}]"
        if source["name"].casefold() in names:
            yield InputError(
                "two sources have this name",
                file=origin,
                where=f"{where}.name",
                found=source["name"],
                todo="Give each source its own name",
            )
        names.append(source["name"].casefold())
        remote = [key for key, value in source.items() if isinstance(value, Mapping) and "hub" in value]
        if source["kind"] == "simulated" or remote:
            yield InputError(
                "new models come from files on this machine",
                file=origin,
                where=f"{where}.{remote[0] if remote else 'kind'}",
                found="a data set of the hub" if remote else "simulated",
                todo="Name a table, or files of an evaluation tool",
            )
        elif source["kind"] in (*RAW, *FILES):
            yield from _check_raw(source, where, None, base, root, origin, check_files)
        else:
            yield from _check_columns(source, where, origin)
            for role in ("responses", "items", "models"):
                if role in source:
                    full = base / source[role]
                    yield from _unreadable(source[role], full, "file", f"{where}.{role}", origin, check_files)


def _check_meaning(
    raw: Mapping[str, Any], base: Path, root: Path, origin: str, check_files: bool
) -> Iterator[InputError]:
    """Yield what is wrong with a configuration that agrees with the schema."""
    yield from _check_simulate(raw, origin)
    faults = [*_check_results(raw["results"], base, origin, check_files)]
    yield from faults or _check_apart(raw, base, origin)
    yield from _check_titles(raw, origin)
    names: dict[str, str] = {}
    for number, source in enumerate(raw["sources"]):
        where = f"sources[{number}]"
        other = names.get(source["name"].casefold())
        if other is not None:
            yield InputError(
                "two sources have this name"
                if other == source["name"]
                else f'another source is called "{other}", and some file systems do not tell the two apart',
                file=origin,
                where=f"{where}.name",
                found=source["name"],
                todo="Give each source its own name",
            )
        names[source["name"].casefold()] = source["name"]
        yield from _check_hub({role: source.get(role) for role in PLACES}, where, origin)
        if source["kind"] in (*RAW, *FILES):
            yield from _check_raw(source, where, raw["simulate"], base, root, origin, check_files)
        if source["kind"] != "table":
            continue
        yield from _check_columns(source, where, origin)
        for key, needs in (("columns", "items"), ("model_columns", "models")):
            extra = [column for column in source[key] if column not in ("question_id", "model")]
            if extra and needs not in source and key == "model_columns":
                yield InputError(
                    f"columns of a file that is not given ({needs})",
                    file=origin,
                    where=f"{where}.{key}",
                    found=", ".join(extra),
                    todo=f"Add {needs}: FILE, or remove {key}",
                )
        for role in ("responses", "items", "models"):
            if role in source and not isinstance(source[role], Mapping):
                full = base / source[role]
                yield from _unreadable(source[role], full, "file", f"{where}.{role}", origin, check_files)
    yield from _check_hub(raw["published_statistics"], "published_statistics", origin)
    for role, place in raw["published_statistics"].items():
        if isinstance(place, str):
            where = f"published_statistics.{role}"
            yield from _unreadable(place, Path(base) / place, "file", where, origin, check_files)
    yield from _check_published_responses(raw["published_responses"], base, origin, check_files)
    for policy in ("published", "honest"):
        bounds = raw["filter"][policy]
        if bounds["min_mean"] >= bounds["max_mean"]:
            yield InputError(
                "no item can pass this filter",
                file=origin,
                where=f"filter.{policy}",
                found=f"min_mean {bounds['min_mean']} and max_mean {bounds['max_mean']}",
                expected="min_mean below max_mean",
            )
    labels = raw["claims"]["prompt_labels"]
    if labels:
        where = "claims.prompt_labels"
        yield from _unreadable(labels, _resource(labels, base, root), "file", where, origin, check_files)
    yield from _check_afterwards(raw, base, root, origin, check_files)
    both = sorted(set(raw["models"]["include"]) & set(raw["models"]["exclude"]))
    if both:
        yield InputError(
            "a model is both included and excluded",
            file=origin,
            where="models",
            found=", ".join(both),
            todo="Name it in one of the two lists",
        )
    if raw["fits"]["dims"] > raw["fits"]["max_dims"]:
        yield InputError(
            "the headline has more dimensions than are tried",
            file=origin,
            where="fits.max_dims",
            found=str(raw["fits"]["max_dims"]),
            expected=f"at least fits.dims, which is {raw['fits']['dims']}",
        )


def load(
    config: Mapping[str, Any],
    base: Path,
    root: Path | None = None,
    *,
    origin: str = "configuration",
    check_files: bool = True,
) -> Study:
    """Check a configuration and return its study.

    Parameters
    ----------
    config
        What Snakemake read from ``config.yaml``, ``--configfile`` and ``--config``.
    base
        The working directory: paths of the configuration are relative to it.
    root
        The folder of the Snakefile, where the schema and the files of ``workflow/resources`` stand.
    origin
        What messages call the configuration, such as the name of its file.
    check_files
        Whether files that are named must exist already (not so if other rules make them).

    Returns
    -------
    Study

    Raises
    ------
    InputError
        One for all faults: unknown or missing keys, wrong types and values, files that do not exist, claims
        that are not well formed.
    """
    home = _ROOT if root is None else Path(root)
    whole = _schema(home / _SCHEMA)
    if not config:
        raise InputError("the configuration is empty", file=origin, expected="at least study and sources")
    if not isinstance(config, Mapping):
        raise InputError("", file=origin, found=_shown(config), expected=_TYPES["object"])
    _check_plain(config, origin)
    raw = _fill(config, whole, whole)
    _check(raw, whole, whole, origin)
    if raw["full"]:
        raw = _laid_over(raw, raw["full_effort"])
    told = list(_check_meaning(raw, Path(base), home, origin, check_files))
    if told:
        raise faults(told)
    hashed = {key: value for key, value in raw.items() if key not in ("results", *AFTERWARDS)}
    study = Study(
        name=raw["study"],
        title=raw["title"].strip() or raw["study"],
        simulated=any(_is_simulated(source) for source in raw["sources"]),
        results=posixpath.normpath(re.sub("^/+", "/", raw["results"])),
        sources=_sources(raw["sources"]),
        models=raw["models"],
        joining=raw["joining"],
        filter=raw["filter"],
        fits=raw["fits"],
        dimensions=raw["dimensions"],
        prediction=raw["prediction"],
        shortforms=raw["shortforms"],
        claims=raw["claims"],
        report=raw["report"],
        published_size=raw["published_size"] or _is_whole_double(raw["simulate"]),
        raw=raw,
        base=Path(base),
        root=home,
        config_sha256=hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest(),
        simulate=raw["simulate"],
        hub=raw["hub"],
        published_statistics=raw["published_statistics"],
        published_responses=raw["published_responses"],
        score=raw["score"],
        shortform=raw["shortform"],
        compare=raw["compare"],
        adaptive=raw["adaptive"],
    )
    claims_table(study, origin=origin)
    return study


def _sources(entries: Iterable[Mapping[str, Any]]) -> tuple[Source, ...]:
    return tuple(
        Source(
            name=entry["name"],
            kind=entry["kind"],
            options={key: value for key, value in entry.items() if key not in ("name", "kind")},
        )
        for entry in entries
    )


def newcomers(study: Study) -> Study:
    """Return a study whose sources are those of the new models to score, none of whom is left out; it may have none."""
    return replace(
        study,
        sources=_sources(study.score["models"]),
        models={"include": [], "exclude": [], "duplicates": "keep", "contrasts": []},
        simulate=None,
        published_statistics={},
        published_responses={},
        simulated=any(_is_simulated(source) for source in study.score["models"]),
    )


def need_newcomers(study: Study) -> None:
    """Stop where a study names no new models to score.

    Raises
    ------
    InputError
        If it does not.
    """
    if not study.score["models"]:
        raise InputError(
            "there are no new models to score",
            where="score.models",
            todo="Name their outcomes as sources are named: score: {models: [{name: new, kind: table, responses: new.csv}]}",
        )


def need_other(study: Study) -> list[str]:
    """Return the files of the other study that this one is compared with: its calibration's, and its verdicts if named.

    Raises
    ------
    InputError
        If the configuration names no calibration.
    """
    folder, claims = study.compare["calibration"], study.compare["claims"]
    if not folder:
        raise InputError(
            "there is no study to compare with",
            where="compare.calibration",
            todo="Name the folder that the other study wrote: compare: {calibration: other/results/calibration}",
        )
    return [posixpath.join(posixpath.normpath(folder), "calibration.json"), *([claims] if claims else [])]


def dump(study: Study) -> dict[str, Any]:
    """Return the complete configuration of a study; :func:`load` takes it back."""
    return copy.deepcopy(study.raw)


def claims_table(study: Study, *, origin: str = "configuration") -> list[dict[str, Any]]:
    """Return the claims to judge: those of the claims files, then the study's own, filtered by ``only``.

    A claims file is a list of claims, or a mapping with the one key ``claims``. Here each needs an id, a kind
    and a statement only; the rest is checked by :mod:`benchmirt.claims`, which knows the kinds.

    Raises
    ------
    InputError
        If a claims file is missing, is not YAML or not a list of claims, a claim is not well formed, two have
        one id, or ``claims.only`` names none of them.
    """
    whole = _schema(study.root / _SCHEMA)
    entries: list[dict[str, Any]] = []
    homes: dict[str, str] = {}
    told: list[InputError] = []
    groups = []
    for given, path in zip(study.claims["file"], study.claims_files, strict=True):
        groups.append((_read_claims(given, path, origin), path.as_posix()))
    for path_entries, file in groups:
        _check_plain(path_entries, file)
        schema = {"type": "array", "items": {"$ref": "#/$defs/claim"}}
        _check(path_entries, schema, whole, file)
    groups.append((study.claims["extra"], f"{origin}: claims.extra"))
    for group, home in groups:
        for entry in group:
            twin = next((other for other in homes if other.casefold() == entry["id"].casefold()), None)
            if twin is not None:
                told.append(
                    InputError(
                        f'two claims have the id "{entry["id"]}"'
                        if twin == entry["id"]
                        else f'the claims "{twin}" and "{entry["id"]}" share a file where case does not count',
                        file=home,
                        found=f"the other one in {homes[twin]}",
                        todo="Give this one another id",
                    )
                )
            if entry["id"].casefold() == "claims":
                told.append(
                    InputError(
                        "this id is taken by the table of all claims",
                        file=home,
                        found=f'"{entry["id"]}"',
                        todo="Give the claim another id",
                    )
                )
            homes[entry["id"]] = home
            entries.append(copy.deepcopy(entry))
    for wanted in study.claims["only"]:
        if wanted not in homes:
            near = nearest(wanted, homes)
            told.append(
                InputError(
                    "no claim has this id",
                    file=origin,
                    where="claims.only",
                    found=wanted,
                    todo=f'Did you mean "{near}"?' if near else f"Known: {', '.join(homes)}",
                )
            )
    if told:
        raise faults(told)
    only = set(study.claims["only"])
    return [entry for entry in entries if not only or entry["id"] in only]


def validated(value: Any, schema: Path, origin: str, root: Path | None = None) -> Any:
    """Return a copy of `value`, a mapping, with the defaults of a schema filled, if it agrees with the schema.

    Parameters
    ----------
    value
        What a file holds.
    schema
        File of the schema, relative to the folder of the workflow.
    origin
        What messages call the file.
    root
        The folder of the workflow; found from the library if absent.

    Raises
    ------
    InputError
        One for all violations.
    """
    whole = _schema((_ROOT if root is None else Path(root)) / schema)
    _check_plain(value, origin)
    filled = _fill(value, whole, whole)
    _check(filled, whole, whole, origin)
    return filled


def _read_claims(given: str, path: Path, origin: str) -> Any:
    """Return what a file with claims holds."""
    wrong = next(_unreadable(given, path, "file", "claims.file", origin, True), None)
    if wrong is not None:
        raise InputError(
            wrong.what,
            file=wrong.file,
            where=wrong.where,
            found=wrong.found,
            looked_for=wrong.looked_for,
            todo=f"{wrong.todo}, or give claims.file: [] to judge only claims.extra",
        )
    entries = read_yaml(path, path.as_posix())
    if isinstance(entries, dict) and list(entries) == ["claims"]:
        entries = entries["claims"]
    return [] if entries is None else entries


# -- the fits -----------------------------------------------------------------------------------------------


def checks_of(fits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of those of the fits (rows of :func:`fits_table`) that fit the headline's responses in another way."""
    headline = next(row for row in fits if row["fit"] == "corrected")
    same = ("policy", "dims", "asymptotes")
    return [
        row["fit"] for row in fits if row is not headline and all(row[key] == headline[key] for key in same)
    ]


def fits_table(study: Study) -> list[dict[str, Any]]:
    """Return the fits of a study, a row each: fit, engine, policy, dims, asymptotes, testlets, seeds, purpose.

    ``published`` repeats the published study's analysis, ``corrected`` is the headline; ``dims-k1`` and on
    are for the number of dimensions; ``nuts`` checks the headline by sampling, ``testlets`` by modelling what the items
    of a testlet share.
    """
    fits = study.fits
    seeds = list(range(fits["seeds"]))

    def row(
        fit: str,
        engine: str,
        policy: str,
        dims: int,
        asymptotes: bool,
        own: list[int],
        purpose: str,
        *,
        testlets: bool = False,
    ) -> dict[str, Any]:
        return {
            "fit": fit,
            "engine": engine,
            "policy": policy,
            "dims": dims,
            "asymptotes": asymptotes,
            "testlets": testlets,
            "seeds": own,
            "purpose": purpose,
        }

    floors = fits["asymptotes"]
    rows = [
        row("published", "svi", "published", fits["dims"], False, seeds, "the analysis as published"),
        row("corrected", fits["engine"], "honest", fits["dims"], floors, seeds, "the corrected headline"),
    ]
    rows += [
        row(f"dims-k{dims}", "em", "honest", dims, floors, [0], "the number of dimensions")
        for dims in range(1, fits["max_dims"] + 1)
    ]
    if fits["nuts"]["run"]:
        rows.append(row("nuts", "nuts", "honest", fits["dims"], floors, [0], "the headline by sampling"))
    if fits["testlets"]:
        purpose = "the headline with effects of testlets"
        rows.append(row("testlets", "em", "honest", fits["dims"], floors, [0], purpose, testlets=True))
    return rows
