"""Reading tables strictly: every fault names the file, the row and the field.

A row of a text file is its 1-based line, header included; a row of a Parquet file is the 1-based number of
the record. Text is UTF-8 (a byte-order mark and Windows line ends are fine), fields are separated by commas.
"""

from __future__ import annotations

import codecs
import csv
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from gzip import BadGzipFile, GzipFile
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Sheet", "batches", "check_header", "read_sheet", "rows", "text_of"]

_IMPOSTORS = (
    (b"\x1f\x8b", "gzip-compressed data", "Give the file a name that ends in .csv.gz"),
    (b"PAR1", "a Parquet file", "Give the file a name that ends in .parquet"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "Save it as CSV"),
    (b"\xff\xfe", "UTF-16 text", "Save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "Save it as UTF-8"),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data", "Decompress it, or compress it with gzip"),
    (b"version https://git-lfs", "a Git LFS pointer instead of the data", "Run git lfs pull"),
    (b"<!doctype html", "a web page", "Download the file itself"),
    (b"<html", "a web page", "Download the file itself"),
)


@dataclass(frozen=True)
class Sheet:
    """A small table of texts.

    Attributes
    ----------
    file
        Its name in messages.
    header
        The names of the columns.
    fields
        A list of texts per row, as long as the header.
    numbers
        The row number of each.
    """

    file: str
    header: tuple[str, ...]
    fields: list[list[str]]
    numbers: list[int]

    def column(self, name: str) -> list[str]:
        """Return one column."""
        place = self.header.index(name)
        return [row[place] for row in self.fields]


def _recognise(head: bytes, file: str) -> None:
    """Raise if the first bytes are those of something else than text."""
    for magic, what, todo in _IMPOSTORS:
        if head.lower().startswith(magic.lower()):
            raise InputError("", file=file, found=what, expected="a CSV file", todo=todo)
    if b"\0" in head:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            raise InputError(
                "", file=file, found="binary data", expected="a CSV file", todo="Export the table as CSV"
            ) from None


def _open(path: Path, file: str) -> BufferedReader | GzipFile:
    if not path.is_file():
        raise InputError("this file does not exist", file=file, found=str(path.absolute()))
    with open(path, "rb") as stream:
        head = stream.read(512)
    if not head:
        raise InputError("the file is empty", file=file, todo="It needs a header and rows")
    if path.name.endswith(".gz"):
        if not head.startswith(b"\x1f\x8b"):
            raise InputError(
                "the name ends in .gz but the content is not gzip-compressed",
                file=file,
                todo="Compress the file or drop .gz from its name",
            )
        return GzipFile(path, "rb")
    return open(path, "rb")


def _lines(stream: BufferedReader | GzipFile, file: str) -> Iterator[str]:
    """Yield lines as text, without the byte-order mark."""
    number = 0
    while True:
        try:
            if number == 0:
                _recognise(stream.peek(512)[:512], file)
            line = stream.readline()
        except (EOFError, zlib.error, BadGzipFile) as error:
            raise InputError(
                "the compressed file is damaged or was cut off",
                file=file,
                where=f"after row {number}",
                found=str(error),
                todo="Fetch or write it again",
            ) from None
        if not line:
            return
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "the text is not UTF-8",
                file=file,
                where=f"row {number}, byte {error.start + 1}",
                found=f"the byte 0x{line[error.start]:02x}",
                todo="Save the file as UTF-8",
            ) from None
        if "\0" in text:
            raise InputError("", file=file, where=f"row {number}", found="binary data", expected="a CSV file")
        yield text


def rows(path: Path, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (row number, fields) of a CSV file, the header first; blank lines are skipped.

    Parameters
    ----------
    path
        A ``.csv`` or ``.csv.gz`` file.
    file
        Its name in messages.

    Raises
    ------
    InputError
        If it does not exist, is empty, is no CSV file or is damaged; if a row is longer or shorter than the
        header.
    """
    with _open(path, file) as stream:
        reader = csv.reader(_lines(stream, file), strict=True)
        width = 0
        start = 1
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                raise InputError(
                    f"the row cannot be split into fields ({error})",
                    file=file,
                    where=f"row {start}",
                    todo="Check its quotation marks",
                ) from None
            if fields is None:
                break
            number, start = start, reader.line_num + 1
            if not fields:
                continue
            if not width:
                width = len(fields)
            elif len(fields) != width:
                raise InputError(
                    "the row does not fit the header",
                    file=file,
                    where=f"row {number}",
                    found=f"{len(fields)} fields",
                    expected=f"{width}",
                    todo="Look for missing or spare commas, and quote texts that hold commas",
                )
            yield number, fields
        if not width:
            raise InputError("the file is empty", file=file, todo="It needs a header and rows")


def check_header(header: Sequence[str], file: str, needed: str) -> None:
    """Check the names of the columns.

    Raises
    ------
    InputError
        If a name is empty, is met twice, or begins or ends with a space; if the column `needed` is not there.
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if not name:
            raise InputError(
                "a column has no name",
                file=file,
                where=f"row 1, column {place}",
                todo="Name it or drop it (pandas: to_csv(..., index=False))",
            )
        if name != name.strip():
            raise InputError(
                "the name of a column begins or ends with a space",
                file=file,
                where=f"row 1, column {place}",
                found=f'"{name}"',
                expected=f'"{name.strip()}"',
            )
        if name in seen:
            raise InputError(
                "two columns have the same name",
                file=file,
                where=f'row 1, column "{name}"',
                found=f"it in columns {seen[name]} and {place}",
                todo="Rename or drop one of them",
            )
        seen[name] = place
    if needed not in seen:
        shown = ", ".join(f'"{name}"' for name in list(header)[:5]) + (", ..." if len(header) > 5 else "")
        todo = f"Add the column {needed}, or say in columns: which one it is"
        for separator, called in ((";", "semicolons"), ("\t", "tabs")):
            if separator in header[0]:
                todo = f"The fields seem to be separated by {called}; use commas"
        raise InputError(f'there is no column "{needed}"', file=file, where="row 1", found=shown, todo=todo)


def text_of(value: object) -> str:
    """Return a value of a Parquet file as the text that a CSV file would hold; missing is empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def batches(path: Path, file: str) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a Parquet file; at least one, so that the schema is always seen.

    Raises
    ------
    InputError
        If the file does not exist, is empty, damaged or no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _open(path, file).close()
    try:
        with pq.ParquetFile(path) as content:
            schema = content.schema_arrow
            nothing = True
            for batch in content.iter_batches(batch_size=16384):
                nothing = False
                yield batch
            if nothing:
                yield pa.RecordBatch.from_pylist([], schema=schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            "this is not a Parquet file, or it is damaged",
            file=file,
            found=str(error).splitlines()[0],
            todo="Write it again",
        ) from None


def read_sheet(path: Path, file: str, needed: str) -> Sheet:
    """Read a table of texts (facts of items or models) whole.

    Parameters
    ----------
    path
        A ``.csv``, ``.csv.gz`` or ``.parquet`` file.
    file
        Its name in messages.
    needed
        The column that must be there.

    Raises
    ------
    InputError
        As :func:`rows`, :func:`batches` and :func:`check_header`; if there is no row.
    """
    if path.name.endswith(".parquet"):
        header: list[str] = []
        fields: list[list[str]] = []
        for batch in batches(path, file):
            header = list(batch.schema.names)
            columns = [[text_of(value) for value in column.to_pylist()] for column in batch.columns]
            fields += [list(row) for row in zip(*columns, strict=True)]
        numbers = list(range(1, len(fields) + 1))
    else:
        content = rows(path, file)
        _, header = next(content)
        read = list(content)
        numbers = [number for number, _ in read]
        fields = [row for _, row in read]
    check_header(header, file, needed)
    if not fields:
        raise InputError("the table has a header but no rows", file=file)
    return Sheet(file, tuple(header), fields, numbers)
