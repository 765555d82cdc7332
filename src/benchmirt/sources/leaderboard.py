"""Details of the Open LLM Leaderboard: one Parquet file per model, task and run.

::

    {folder}/{org}__{model}-details/{org}__{model}__leaderboard_{task}/{run}/0000.parquet

A run is ``latest`` or named for its time; where there is no ``latest`` the newest counts. A row is a question;
``doc_id`` says which, ``doc_hash`` whether it was asked in the same words. Tasks that no scoring rule wants (of
GPQA's subsets, for instance, the published study uses one) are not opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_bytes
from benchmirt.scoring import Scorer
from benchmirt.sources.documents import check_whole, read_bytes
from benchmirt.sources.folders import details
from benchmirt.sources.raw import Found
from benchmirt.sources.reading import damage_told, open_parquet

__all__ = ["read"]

_HASH = "doc_hash"
_AGAIN = "Fetch it again, or take the folder out"


class Details:
    """The rows of one task, in one or several files; columns are read when they are asked for.

    Parameters
    ----------
    task
        Its name.
    contents
        What messages call each file, and its bytes.
    fields
        Fields that will be asked for, with dots; read at once.

    Raises
    ------
    InputError
        If a file is damaged or no Parquet file, or has no ``doc_id``.
    """

    def __init__(self, task: str, contents: list[tuple[str, bytes]], fields: tuple[str, ...]) -> None:
        self.kind = None
        self.task = task
        self.file = contents[0][0]
        self._open = [(shown, _opened(shown, data)) for shown, data in contents]
        self._sizes = [content.metadata.num_rows for _, content in self._open]
        self.size = sum(self._sizes)
        self._known: dict[str, list[Any] | None] = {}
        self._names = [set(content.schema_arrow.names) for _, content in self._open]
        self._read(fields)

    def has(self, field: str) -> bool:
        """Say whether all files have the column of a field."""
        return all(field.partition(".")[0] in names for names in self._names)

    def require(self, fields: tuple[str, ...]) -> None:
        """Check that columns are there.

        Raises
        ------
        InputError
            If one is missing.
        """
        for field in fields:
            column = field.partition(".")[0]
            for (shown, content), names in zip(self._open, self._names, strict=True):
                if column not in names:
                    found = list(content.schema_arrow.names)
                    near = nearest(column, found)
                    raise InputError(
                        f'there is no column "{column}"',
                        file=shown,
                        found=", ".join(found[:12]) + (", ..." if len(found) > 12 else ""),
                        todo=f'The nearest is "{near}"; a scoring rule may name another field'
                        if near
                        else "Fetch the file again, or name another field in a scoring rule",
                    )

    def column(self, field: str) -> list[Any] | None:
        """Return a field of all rows; None if the files have no such column."""
        if field not in self._known:
            self._read((field,))
        return self._known[field]

    def lengths(self, field: str) -> list[int | None] | None:
        """Return the number of entries of a column of lists."""
        import pyarrow.compute as pc

        if not self.has(field):
            return None
        sizes: list[int | None] = []
        for shown, content in self._open:
            column = _columns(shown, content, [field])[field]
            if not _is_list(column.type):
                return None
            sizes += pc.list_value_length(column).to_pylist()
        return sizes

    def where(self, row: int, field: str) -> str:
        """Return how messages call a field of a row."""
        for size in self._sizes:
            if row < size:
                break
            row -= size
        return f'row {row + 1}, column "{field}"'

    def _read(self, fields: tuple[str, ...]) -> None:
        wanted = [field for field in fields if field not in self._known and self.has(field)]
        self._known.update({field: None for field in fields if field not in self._known})
        if not wanted:
            return
        parts: dict[str, list[Any]] = {field: [] for field in wanted}
        lost: set[str] = set()
        for shown, content in self._open:
            table = _columns(shown, content, wanted)
            for field in wanted:
                values = _values(table, field)
                if values is None:
                    lost.add(field)
                else:
                    parts[field] += values
        self._known.update({field: values for field, values in parts.items() if field not in lost})


def _opened(shown: str, data: bytes) -> pq.ParquetFile:
    check_whole(data, shown, "a Parquet file")
    with damage_told(shown, _AGAIN):
        content = open_parquet(pa.BufferReader(data), len(data), shown)
        names = content.schema_arrow.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError("two columns have the same name", file=shown, found=f'"{twice[0]}" twice')
    return content


def _columns(shown: str, content: pq.ParquetFile, fields: list[str]) -> pa.Table:
    with damage_told(shown, _AGAIN):
        table = content.read(columns=fields, use_threads=False)
        table.validate(full=True)
    return table


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _values(table: pa.Table, field: str) -> list[Any] | None:
    """Return a field of a table as Python values; None if it has no such field."""
    import pyarrow.compute as pc

    name, *inner = field.split(".")
    if name not in table.column_names:
        return None
    column = table[name]
    for key in inner:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(key) < 0:
            return None
        column = pc.struct_field(column, key)
    values: list[Any] = column.to_pylist()
    return values


def read(folder: Path, model: str, shown: str, scorer: Scorer) -> Found:
    """Read the details of one model.

    Parameters
    ----------
    folder
        The model's folder.
    model
        Its name.
    shown
        What messages call the folder.
    scorer
        The rules of this format.

    Raises
    ------
    InputError
        If a file is damaged, or is not what it should be.
    """
    tables: list[Details] = []
    files: dict[str, str] = {}
    unused: list[str] = []
    other_runs: dict[str, str] = {}
    for task, run, names in details(folder, model, shown):
        rules = scorer.of(task)
        if not rules:
            unused.append(task)
            continue
        if run != "latest":
            other_runs[task] = run
        contents = []
        for name in names:
            data = read_bytes(folder / name, f"{shown}/{name}")
            files[name] = sha256_bytes(data)
            contents.append((f"{shown}/{name}", data))
        table = Details(task, contents, (*scorer.fields(task), _HASH))
        for _, rule, parts in rules:
            table.require(
                tuple(field for field in (*rule.question_id.fields, rule.one["field"]) if field not in parts)
            )
        tables.append(table)
    return Found(tables=tables, files=files, unused=unused, runs=other_runs, known_as=_HASH)
