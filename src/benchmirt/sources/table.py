"""Wide response tables: a row per item, a column per model, 1, 0 or nothing in the cells; or turned round.

Three files: ``responses`` (``question_id``, then one column per model; or ``model``, then one column per item), and
optionally ``items``
(``question_id``, ``benchmark``, ...) and ``models`` (``model``, ``family``, ...), each CSV, gzip-compressed
CSV or Parquet. What a cell may hold:

========================= =========================================================
``1``, ``1.0``            passed (``1.0`` because pandas writes columns with gaps so)
``0``, ``0.0``            failed
nothing                   missing, with the reason ``not_run``
Parquet null, NaN         missing
Parquet true, false       passed, failed (and decimals, if they are just 1 or 0)
anything else             an error
========================= =========================================================

Names are kept as they are written: ``0012`` is a text.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.config import Source, Study
from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_of
from benchmirt.outcomes import GIVEN, ITEM_FACTS, ITEM_ORIGINS, MODEL_FACTS, REASONS, Outcomes, digest
from benchmirt.sources.facts import Facts, model_facts, strings
from benchmirt.sources.fetched import table_in
from benchmirt.sources.reading import Sheet, batches, check_header, check_names, read_sheet, rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read"]

_log = logging.getLogger(__name__)
_MISSING = 255
_CELLS = {"1": 1, "0": 0, "": _MISSING, "1.0": 1, "0.0": 0}
_EXPECTED = "1, 0 or empty"
_NOT_RUN = REASONS.index("not_run") + 1


def read(source: Source, study: Study) -> Outcomes:
    """Read a wide response table and the facts of its items and models.

    Parameters
    ----------
    source
        A source of kind ``table``, or ``simulated`` whose tables have been written.
    study
        The study; paths are relative to its base.

    Returns
    -------
    Outcomes

    Raises
    ------
    InputError
        If a file is missing, damaged or of another format; if a cell is not 1, 0 or empty; if ids or columns
        are met twice; if the three files do not name the same items and models; if a fact has the wrong type.
    """
    id_column = source.options.get("columns", {}).get("question_id", "question_id")
    name_column = source.options.get("model_columns", {}).get("model", "model")
    prefix = source.options.get("prefix", "")
    files = _files(source, study, id_column, name_column, prefix)
    paths = {role: study.base / name for role, name in files.items()}
    wide = _responses(paths["responses"], files["responses"], id_column, name_column, prefix)
    models, items, cells = wide.models, wide.items, wide.cells
    numbers = [1] * len(items) if wide.turned else wide.numbers
    _log.info("%s: %d items, %d models", files["responses"], len(items), len(models))
    item_sheet = _sheet_of("items", paths, files, id_column, items, wide)
    model_sheet = _sheet_of("models", paths, files, name_column, models, wide)
    return Outcomes(
        models=models,
        items=items,
        outcome=cells,
        reason=np.where(cells < 0, np.uint8(_NOT_RUN), np.uint8(0)),
        item_facts=_item_facts(
            Facts(
                item_sheet,
                id_column,
                items,
                numbers,
                files["responses"],
                source.options.get("columns", {}),
                f"{source.place}.columns",
            ),
            items,
            numbers,
            source,
        ),
        model_facts=model_facts(
            Facts(
                model_sheet,
                name_column,
                models,
                wide.numbers if wide.turned else [1] * len(models),
                files["responses"],
                source.options.get("model_columns", {}),
                f"{source.place}.model_columns",
            ),
            models,
        ),
        manifest={
            "source": source.name,
            "kind": source.kind,
            "simulated": source.kind == "simulated",
            "scorer": "as given in the table",
            "scorer_version": None,
            "failures_known": False,
            "layout": {"turned": wide.turned, "prefix": prefix},
            "benchmirt": version("benchmirt"),
            "files": {
                role: {"path": files[role], "sha256": sha256_of(paths[role])} for role in sorted(files)
            },
        },
    )


def _files(source: Source, study: Study, id_column: str, name_column: str, prefix: str) -> dict[str, str]:
    """Return the source's files; a fetched one is found by its header.

    Raises
    ------
    InputError
        If no fetched table has the header, or several have.
    """
    keys = {"responses": [id_column, name_column], "items": [id_column], "models": [name_column]}
    return {
        role: table_in(study.base / name, name, keys[role], prefix if role == "responses" else "")
        if role in source.fetched
        else name
        for role, name in source.files(study.results).items()
    }


# -- the responses ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wide:
    """A response table.

    Attributes
    ----------
    models, items
        Names.
    numbers
        The rows of the items; of the models, if the table is turned round.
    key
        The column of the names in the rows.
    turned
        Whether models are the rows.
    cells
        int8 of shape (J, N), -1 for missing.
    prefix
        What the names of the columns begin with in the file.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    numbers: list[int]
    key: str
    turned: bool
    cells: NDArray[np.int8]
    prefix: str

    def where(self, role: str, place: int) -> str:
        """Return where the name of an item or a model stands."""
        if (role == "models") == self.turned:
            return f'row {self.numbers[place]}, column "{self.key}"'
        return f'row 1, column "{self.prefix}{(self.models if role == "models" else self.items)[place]}"'


def _responses(path: Path, file: str, id_column: str, name_column: str, prefix: str) -> _Wide:
    """Read the response table, whichever way round it is; with a prefix, only the columns that begin with it."""
    parts: list[NDArray[np.uint8]] = []
    names: list[str] = []
    numbers: list[int] = []
    reader = _parquet_rows if path.name.endswith(".parquet") else _csv_rows
    columns: tuple[str, ...] = ()
    key = id_column
    for part in reader(path, file, id_column, name_column, prefix):
        key, columns = part.key, part.columns
        names += part.names
        numbers += part.numbers
        parts.append(part.cells)
    turned = key != id_column
    _check_ids(names, numbers, file, key)
    if not columns:
        raise InputError(
            f"there is no column of {'an item' if turned else 'a model'}",
            file=file,
            where="row 1",
            found=f'only "{key}"',
            expected=f"one column per {'item' if turned else 'model'}",
        )
    if not names:
        raise InputError("the table has a header but no rows", file=file)
    cells = (np.concatenate(parts) if len(parts) > 1 else parts[0]).view(np.int8)
    if turned:
        return _Wide(tuple(names), columns, numbers, key, turned, np.ascontiguousarray(cells.T), prefix)
    return _Wide(columns, tuple(names), numbers, key, turned, cells, prefix)


@dataclass(frozen=True)
class _Part:
    """Some rows: the column of their names, the other columns, the names, the row numbers, the cells (255: missing)."""

    key: str
    columns: tuple[str, ...]
    names: list[str]
    numbers: list[int]
    cells: NDArray[np.uint8]


def _csv_rows(path: Path, file: str, id_column: str, name_column: str, prefix: str) -> Iterator[_Part]:
    """Yield parts of a CSV table; 255 is missing (as int8: -1)."""
    content = rows(path, file)
    _, header = next(content)
    kept = _kept(header, file, (id_column, name_column), prefix) if prefix else None
    if kept is not None:
        header = [header[index] for index in kept]
    key = _key_of(header, file, id_column, name_column)
    place = header.index(key)
    columns = [name for name in header if name != key]
    items: list[str] = []
    numbers: list[int] = []
    cells = bytearray()
    for number, fields in content:
        if kept is not None:
            fields = [fields[index] for index in kept]
        items.append(fields.pop(place))
        numbers.append(number)
        try:
            cells += bytes(map(_CELLS.__getitem__, fields))
        except KeyError:
            column = next(index for index, field in enumerate(fields) if field not in _CELLS)
            raise _bad_cell(file, number, columns[column], f'"{fields[column]}"', items[-1]) from None
    array = np.frombuffer(cells, dtype=np.uint8).reshape(len(items), len(columns))
    yield _Part(key, _without(prefix, columns, file), items, numbers, array)


def _parquet_rows(path: Path, file: str, id_column: str, name_column: str, prefix: str) -> Iterator[_Part]:
    """Yield parts of a Parquet table; 255 is missing (as int8: -1)."""
    done = 0
    key = id_column
    kept: list[int] = []
    for batch in batches(path, file):
        if prefix:
            kept = kept or _kept(batch.schema.names, file, (id_column, name_column), prefix)
            batch = batch.select(kept)
        header = list(batch.schema.names)
        if done == 0:
            key = _key_of(header, file, id_column, name_column)
        place = header.index(key)
        columns = [name for name in header if name != key]
        items = _parquet_ids(batch.column(place), file, key, done)
        cells = np.empty((len(items), len(columns)), dtype=np.uint8)
        for index, name in enumerate(columns):
            column = batch.column(header.index(name))
            cells[:, index] = _parquet_cells(column, file, name, items, done)
        numbers = list(range(done + 1, done + len(items) + 1))
        done += len(items)
        yield _Part(key, _without(prefix, columns, file), items, numbers, cells)


def _without(prefix: str, columns: Sequence[str], file: str) -> tuple[str, ...]:
    """Return the names that columns have without their prefix.

    Raises
    ------
    InputError
        If nothing is left of one, or what is left begins with a space.
    """
    names = tuple(name.removeprefix(prefix) for name in columns)
    for column, name in zip(columns, names, strict=True):
        if not name or name != name.strip():
            what = (
                "the name without the prefix begins with a space" if name else "it has no name but the prefix"
            )
            raise InputError(
                what,
                file=file,
                where=f'row 1, column "{column}"',
                todo="Correct prefix: in the source, or rename or drop the column",
            )
    return names


def _kept(header: Sequence[str], file: str, keys: Sequence[str], prefix: str) -> list[int]:
    """Return the places of the names of the rows and of the columns that begin with a prefix; the log says what is left out.

    Parameters
    ----------
    header
        The names of the columns.
    file
        The file in messages.
    keys
        What the column with the names of the rows may be called; the first that is there is meant.
    prefix
        The beginning.

    Raises
    ------
    InputError
        If no column begins so.
    """
    key = next((name for name in keys if name in header), keys[0])
    kept = [place for place, name in enumerate(header) if name == key or name.startswith(prefix)]
    if not any(header[place] != key for place in kept):
        raise InputError(
            f'no column begins with "{prefix}"',
            file=file,
            where="row 1",
            found=", ".join(header[:5]) + (", ..." if len(header) > 5 else ""),
            todo="Correct prefix: in the source, or remove it if columns are called as the models are",
        )
    aside = [name or "one without a name" for place, name in enumerate(header) if place not in kept]
    if aside:
        _log.info("%s: %d columns are no models: %s", file, len(aside), ", ".join(aside[:10]))
    return kept


def _parquet_ids(column: pa.Array, file: str, name: str, before: int) -> list[str]:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise InputError(
            "",
            file=file,
            where=f'row {before + 1}, column "{name}"',
            found=f"the type {kind}",
            expected="texts",
            todo="Write the names as texts",
        )
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _parquet_cells(
    column: pa.Array, file: str, name: str, items: Sequence[str], before: int
) -> NDArray[np.uint8]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING, dtype=np.uint8)
    shown: Any
    if _is_text(kind):
        texts = ["" if text is None else text for text in column.to_pylist()]
        codes = np.array([_CELLS.get(text, 254) for text in texts], dtype=np.uint8)
        bad = np.flatnonzero(codes == 254)
        shown = texts
    elif pa.types.is_decimal(kind):
        shown = column.to_pylist()
        known = {None: _MISSING, 1: 1, 0: 0}
        codes = np.array([known.get(value, 254) for value in shown], dtype=np.uint8)
        bad = np.flatnonzero(codes == 254)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        # large integers lose digits here, but none of them comes out as 1 or 0
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
        bad = np.flatnonzero(~missing & (values != 1.0) & (values != 0.0))
        codes = np.where(missing, _MISSING, values == 1.0).astype(np.uint8)
        shown = column.to_pylist()
    else:
        raise InputError(
            "the column holds neither numbers nor texts",
            file=file,
            where=f'row {before + 1}, column "{name}"',
            found=str(kind),
            expected=_EXPECTED,
        )
    if bad.size:
        first = int(bad[0])
        raise _bad_cell(file, before + first + 1, name, f'"{shown[first]}"', items[first])
    return codes


def _key_of(header: Sequence[str], file: str, id_column: str, name_column: str) -> str:
    """Return the column of the names in the rows: of items, or of models where the table is turned round.

    Raises
    ------
    InputError
        If the header is wrong, or the table is long.
    """
    if name_column in header and id_column in header:
        raise InputError(
            "the table has a column of models as well as one of items",
            file=file,
            where=f'row 1, column "{name_column}"',
            expected=f'"{id_column}" and one column per model, or "{name_column}" and one column per item',
            todo="Read a long table with kind: long and files: FILE, or make it wide "
            f'(pandas: pivot(index="{id_column}", columns="{name_column}", values=...))',
        )
    key = name_column if name_column in header else id_column
    check_header(header, file, key)
    return key


def _bad_cell(file: str, number: int, model: str, found: str, item: str) -> InputError:
    try:
        fraction = 0.0 < float(found.strip('"')) < 1.0
    except ValueError:
        fraction = False
    todo = "Correct the value or drop the column"
    text = found[1:-1]
    if text.strip() in _CELLS:
        todo = "Remove the spaces"
    elif text.strip().casefold() in ("true", "false"):
        todo = "Write 1 for true and 0 for false"
    elif text.strip().casefold() in ("na", "n/a", "nan", "none", "null", "<na>", "-"):
        todo = "Leave the cell empty where there is no outcome"
    if fraction:
        todo = "A graded score needs a decision what counts as 1: write 1 or 0"
    if model in ITEM_FACTS:
        todo = "Facts of items go into the file of items"
    elif model in MODEL_FACTS:
        todo = "Facts of models go into the file of models"
    return InputError(
        "",
        file=file,
        where=f'row {number}, column "{model}"',
        found=f'{found} for "{item}"',
        expected=_EXPECTED,
        todo=todo,
    )


def _check_ids(names: Sequence[str], numbers: Sequence[int], file: str, column: str) -> None:
    """Check that ids are given, are met once, and have no spaces around them."""
    seen: dict[str, int] = {}
    for name, number in zip(names, numbers, strict=True):
        where = f'row {number}, column "{column}"'
        if not name:
            raise InputError(
                "the name is missing", file=file, where=where, todo="Every row needs its own name"
            )
        if name != name.strip():
            raise InputError(
                "a name begins or ends with a space",
                file=file,
                where=where,
                found=f'"{name}"',
                expected=f'"{name.strip()}"',
            )
        if name in seen:
            raise InputError(
                f"the same name stands in row {seen[name]}",
                file=file,
                where=where,
                found=f'"{name}" twice',
                expected="each name once",
                todo="Drop one of the two rows, or name them apart",
            )
        seen[name] = number
    check_names(names, file, lambda place: f'row {numbers[place]}, column "{column}"')


# -- facts of items and models ------------------------------------------------------------------------------


def _sheet_of(
    role: str,
    paths: Mapping[str, Path],
    files: Mapping[str, str],
    key: str,
    names: Sequence[str],
    wide: _Wide,
) -> Sheet | None:
    """Read the facts of items or models, and check that they are about the names of the responses."""
    if role not in paths:
        return None
    sheet = read_sheet(paths[role], files[role], key)
    own = sheet.column(key)
    _check_ids(own, sheet.numbers, sheet.file, key)
    responses = files["responses"]
    known = set(own)
    lost = [place for place, name in enumerate(names) if name not in known]
    if lost:
        name = names[lost[0]]
        near = nearest(name, own) if len(own) < 10_000 else None
        near = next((other for other in own if _same_in_nfc(name, other)), near)
        raise InputError(
            f"this {role.removesuffix('s')} has no row in {sheet.file}{_more(lost)}",
            file=responses,
            where=wide.where(role, lost[0]),
            found=f'"{name}"',
            todo=f"Write it in the same Unicode form (NFC) in both files: {sheet.file} has it in another one"
            if near is not None and _same_in_nfc(name, near)
            else f"Add it to {sheet.file}" + (f', where the nearest is "{near}"' if near else ""),
        )
    asked = set(names)
    spare = [place for place, name in enumerate(own) if name not in asked]
    if spare and role == "items":
        raise InputError(
            f"this item has no {'column' if wide.turned else 'row'} in {responses}{_more(spare)}",
            file=sheet.file,
            where=f'row {sheet.numbers[spare[0]]}, column "{key}"',
            found=f'"{own[spare[0]]}"',
            todo=f"Add its responses, or drop it from {sheet.file}",
        )
    if spare:
        _log.info("%s: %d models that are not in %s are left out", sheet.file, len(spare), responses)
    return sheet


def _same_in_nfc(one: str, other: str) -> bool:
    return one != other and unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def _more(places: Sequence[int]) -> str:
    return f" (nor have {len(places) - 1} others)" if len(places) > 1 else ""


def _item_facts(facts: Facts, items: Sequence[str], numbers: Sequence[int], source: Source) -> pd.DataFrame:
    options = source.options
    columns: dict[str, Any] = {"question_id": strings(items)}
    benchmark = facts.texts("benchmark")
    if "benchmark" in options or not any(benchmark):
        stand_in = options.get("benchmark", source.name)
        benchmark = [value or stand_in for value in benchmark]
    lost = next((place for place, value in enumerate(benchmark) if value is None), None)
    if lost is not None:
        raise InputError(
            "the item has no benchmark",
            file=facts.file,
            where=f'row {facts.numbers[lost]}, column "{facts.column_of("benchmark")}"',
            found="nothing",
            todo="Fill it in, or give the source a benchmark: NAME for all items without one",
        )
    columns["benchmark"] = strings(benchmark)
    for name, kind in ITEM_FACTS.items():
        if kind == "str" and name not in columns:
            columns[name] = strings(facts.texts(name))
    named = list(dict.fromkeys(benchmark))
    for section in ("options", "inverted"):
        for name in options.get(section, ()):
            if name not in named:
                near = nearest(name, [known for known in named if known is not None])
                raise InputError(
                    "there is no such benchmark",
                    file=facts.file,
                    where=f"{source.place}.{section}",
                    found=f'"{name}"',
                    expected=f'"{near}"?' if near else f"one of {', '.join(map(str, named))}",
                )
    floor = options.get("options", {})
    given = facts.typed("options", "options", "a whole number of answer options, at least 2, or nothing")
    columns["options"] = pd.array(
        [floor.get(name) if value is None else value for name, value in zip(benchmark, given, strict=True)],
        dtype="Int16",
    )
    turned = facts.typed("inverted", "truth", "true or false")
    columns["inverted"] = np.array(
        [
            (name in options.get("inverted", ())) if value is None else value
            for name, value in zip(benchmark, turned, strict=True)
        ],
        dtype=bool,
    )
    frame = pd.DataFrame({name: columns[name] for name in ITEM_FACTS})
    given_hashes = [None if pd.isna(text) else digest(text) for text in frame["content_hash"]]
    origins = dict.fromkeys(ITEM_ORIGINS, [None] * len(items)) | {
        "question_hash": given_hashes,
        "hashed_from": [text and GIVEN for text in given_hashes],
    }
    for name, texts in origins.items():
        frame[name] = strings(texts)
    frame["row"] = pd.array(list(numbers), dtype="Int64")
    frame["fact_row"] = pd.array(facts.numbers if facts.given else [None] * len(items), dtype="Int64")
    return frame
