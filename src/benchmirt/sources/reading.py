"""Reading tables strictly: every fault names the file, the row and the field.

A row of a text file is its 1-based line, header included; a row of a Parquet file is the 1-based number of
the record. Text is UTF-8 (a byte-order mark and Windows line ends are fine), fields are separated by commas.
"""

from __future__ import annotations

import codecs
import csv
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from gzip import BadGzipFile, GzipFile
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from benchmirt import paths
from benchmirt.errors import InputError, nearest
from benchmirt.ids import code_point, lookalike, unseen

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = [
    "Sheet",
    "batches",
    "check_header",
    "check_names",
    "damage_told",
    "exact",
    "open_parquet",
    "read_sheet",
    "recognise",
    "rows",
    "texts_of",
]

_IMPOSTORS = (
    (b"\x1f\x8b", "gzip-compressed data", "Give the file a name that ends in .csv.gz"),
    (b"PAR1", "a Parquet file", "Give the file a name that ends in .parquet"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "Save it as CSV"),
    (b"\xff\xfe\0\0", "UTF-32 text", "Save it as UTF-8"),
    (b"\xff\xfe", "UTF-16 text", "Save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "Save it as UTF-8"),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data", "Decompress it, or compress it with gzip"),
    (b"BZh", "bzip2-compressed data", "Decompress it, or compress it with gzip"),
    (b"\xfd7zXZ", "xz-compressed data", "Decompress it, or compress it with gzip"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "Unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet", "Save it as CSV"),
    (b"/annex/objects/", "a git-annex pointer instead of the data", "Run git annex get"),
    (b"../.git/annex/", "a git-annex pointer instead of the data", "Run git annex get"),
    (b"version https://git-lfs", "a Git LFS pointer instead of the data", "Run git lfs pull"),
    (b"<!doctype html", "a web page", "Download the file itself"),
    (b"<html", "a web page", "Download the file itself"),
)

_LONGEST_LINE = 1 << 26  # bytes; a line per model of 34,301 questions takes two million
_MOST_TEXT = (
    1 << 30
)  # bytes that compressed text may unpack to; more, if it shrinks by no more than what follows
_MOST_TIMES = 500
_MOST_ROWS = 20_000_000  # of a Parquet file; more, if a byte of it holds no more than the number below
_MOST_ROWS_A_BYTE = 100


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
    unreadable
        Columns that hold neither texts nor numbers, and what they hold.
    """

    file: str
    header: tuple[str, ...]
    fields: list[list[str]]
    numbers: list[int]
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> list[str]:
        """Return one column.

        Raises
        ------
        InputError
            If it holds neither texts nor numbers.
        """
        if name in self.unreadable:
            raise InputError(
                "the column holds neither texts nor numbers",
                file=self.file,
                where=f'row {self.numbers[0]}, column "{name}"',
                found=f"the type {self.unreadable[name]}",
                expected="texts, numbers or truth values",
                todo="Write the column as texts",
            )
        place = self.header.index(name)
        return [row[place] for row in self.fields]


def recognise(head: bytes, file: str, expected: str = "a CSV file") -> None:
    """Raise if the first bytes are those of something else than text."""
    for magic, what, todo in _IMPOSTORS:
        if head.lower().startswith(magic.lower()):
            raise InputError("", file=file, found=what, expected=expected, todo=todo)
    if b"\0" in head and (not head[::2].strip(b"\0")) != (not head[1::2].strip(b"\0")):
        raise InputError("", file=file, found="UTF-16 text", expected=expected, todo="Save it as UTF-8")
    if b"\0" in head and expected == "a CSV file":
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            raise InputError(
                "", file=file, found="binary data", expected="a CSV file", todo="Export the table as CSV"
            ) from None


def _open(path: Path, file: str) -> BufferedReader | GzipFile:
    gone = paths.absent(path, "file")
    if gone is not None:
        raise InputError(gone.what, file=file, looked_for=gone.looked_for, todo=gone.todo)
    with open(path, "rb") as stream:
        head = stream.read(512)
    if not head:
        raise InputError("the file is empty", file=file, todo="It needs a header and rows")
    if path.name.endswith(".gz"):
        if not head.startswith(b"\x1f\x8b"):
            recognise(head, file, "a gzip-compressed CSV file")
            raise InputError(
                "the name ends in .gz but the content is not gzip-compressed",
                file=file,
                todo="Compress the file or drop .gz from its name",
            )
        return GzipFile(path, "rb")
    if path.name.endswith(".parquet") and not head.startswith(b"PAR1"):
        recognise(head, file, "a Parquet file")
    return open(path, "rb")


def _lines(stream: BufferedReader | GzipFile, file: str, most: float) -> Iterator[str]:
    """Yield lines as text, without the byte-order mark; `most` bytes of them."""
    number = size = 0
    while True:
        try:
            if number == 0:
                recognise(stream.peek(512)[:512], file)
            line = stream.readline(_LONGEST_LINE + 1)
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
        size += len(line)
        if len(line) > _LONGEST_LINE or size > most:
            raise InputError(
                "the compressed file unpacks to too much" if size > most else "the row is too long",
                file=file,
                where=f"row {number}",
                expected=f"at most {most if size > most else _LONGEST_LINE:,.0f} bytes",
                todo="Take it out; no table of outcomes is so long",
            )
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
        packed = isinstance(stream, GzipFile)
        most = max(_MOST_TEXT, _MOST_TIMES * path.stat().st_size) if packed else math.inf
        reader = csv.reader(_lines(stream, file, most), strict=True)
        width = 0
        start = 1
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                raise _unsplit(str(error), file, start) from None
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


def _unsplit(error: str, file: str, number: int) -> InputError:
    """Tell why a row cannot be split into fields, and the likely way out."""
    todo = "Check its quotation marks"
    if "new-line character" in error:
        error, todo = (
            "its lines end in the old Macintosh way",
            "Save it with the line ends of Unix or Windows",
        )
    elif number == 1 and "expected after" in error:
        todo = "Fields are separated by commas; check the quotation marks too"
    return InputError(
        f"the row cannot be split into fields ({error})", file=file, where=f"row {number}", todo=todo
    )


def check_names(names: Sequence[str], file: str, where: Callable[[int], str]) -> None:
    """Check that names can be seen, and can be told apart.

    Parameters
    ----------
    names
        The names.
    file
        The file in messages.
    where
        Gives the place of a name in it.

    Raises
    ------
    InputError
        If a name holds a character that cannot be seen or that turns the order of others; if two names differ
        in their Unicode form only.
    """
    for place, name in enumerate(names):
        odd = unseen(name)
        if odd is not None:
            raise InputError(
                "a name holds a character that cannot be seen",
                file=file,
                where=where(place),
                found=f'{code_point(odd)}, in "{name}"',
                todo="Remove the character",
            )
    alike = lookalike(names)
    if alike is not None and names[alike[0]] != names[alike[1]]:
        raise InputError(
            f"the name looks like that of {where(alike[0])}, written in another Unicode form",
            file=file,
            where=where(alike[1]),
            found=f'"{names[alike[1]]}" twice',
            todo="Write it in the same form (NFC) if the two are one, or name them apart",
        )


def check_header(header: Sequence[str], file: str, needed: str, *, elsewhere: bool = True) -> None:
    """Check the names of the columns.

    Parameters
    ----------
    header
        The names.
    file
        The file in messages.
    needed
        The column that must be there.
    elsewhere
        Whether the configuration can say that another column is the one.

    Raises
    ------
    InputError
        If a name is empty, is met twice, begins or ends with a space, or cannot be seen; if the column `needed`
        is not there.
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if not name.strip():
            last = place == len(header) > 1
            raise InputError(
                "a column has no name",
                file=file,
                where=f"row 1, column {place}",
                todo="Name it, or drop the comma that ends each row"
                if last
                else "Name it or drop it (pandas: to_csv(..., index=False))",
            )
        if name.startswith("Unnamed: "):
            raise InputError(
                "a column has the name that pandas gives to one without a name",
                file=file,
                where=f"row 1, column {place}",
                found=f'"{name}"',
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
    if not header:
        raise InputError("the table has no columns", file=file, todo=f"Give it a column {needed} and others")
    if needed in seen or "\t" not in header[0]:
        check_names(header, file, lambda place: f"row 1, column {place + 1}")
    if needed not in seen:
        shown = ", ".join(f'"{name}"' for name in list(header)[:5]) + (", ..." if len(header) > 5 else "")
        near = nearest(needed, header)
        told = ", or say in columns: which one it is" if elsewhere else ""
        todo = f"Add the column {needed}{told}"
        if near is not None:
            todo = f'Rename "{near}" to {needed} if it is the one{told}'
        if header[0].startswith(("{", "[")):
            todo = "The file seems to be JSON; write it as CSV"
        for separator, called in ((";", "semicolons"), ("\t", "tabs")):
            if separator in header[0]:
                todo = f"The fields seem to be separated by {called}; use commas"
        raise InputError(f'there is no column "{needed}"', file=file, where="row 1", found=shown, todo=todo)


def _text(value: object) -> str:
    """Return a value of a Parquet file as the text that a CSV file would hold; missing is empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def exact(text: str) -> float:
    """Return a decimal number as a float that is 0, 1 or -1 only where the text says so.

    A grade such as 1e-400 would round to 0, and be taken for a wrong answer; it becomes the float beside it.
    """
    number = float(text)
    if number not in (0.0, 1.0, -1.0):
        return number
    try:
        written = Decimal(text.strip())
        above, below = written > number, written < number
    except InvalidOperation:  # an exponent beyond reason, of a number next to 0
        above, below = not text.strip().startswith("-"), text.strip().startswith("-")
    if above:
        return math.nextafter(number, math.inf)
    return math.nextafter(number, -math.inf) if below else number


def texts_of(column: pa.Array) -> list[str] | None:
    """Return a column of a Parquet file as texts that a CSV file would hold; missing is empty.

    Numbers have as few digits as tell them apart, dates are as in ISO 8601, midnight left out. None for columns
    that hold something else: bytes, lists, mappings.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        short = column.to_numpy(zero_copy_only=False)
        column = pa.array([None if one != one else float(str(one)) for one in short], type=pa.float64())
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        naive = column.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) else column
        try:
            dates = naive.cast(pa.string()).to_pylist()
        except pa.ArrowInvalid:
            return None
        if any(one is not None and one.startswith("<") for one in dates):  # beyond what can be written
            return None
        return ["" if one is None else _date(one) for one in dates]
    elif not (
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    ):
        return None
    return [_text(value) for value in column.to_pylist()]


def _date(text: str) -> str:
    """Return a time without zeros that say nothing."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removesuffix(" 00:00:00")


def batches(path: Path, file: str) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a Parquet file; at least one, so that the schema is always seen.

    Raises
    ------
    InputError
        If the file does not exist, is empty, damaged or no Parquet file.
    """
    import pyarrow as pa

    _open(path, file).close()
    with damage_told(file, "Write it again"), open_parquet(path, path.stat().st_size, file) as content:
        schema = content.schema_arrow
        nothing = True
        for batch in content.iter_batches(batch_size=16384):
            nothing = False
            batch.validate(full=True)
            yield batch
        if nothing:
            yield pa.RecordBatch.from_pylist([], schema=schema)


def open_parquet(source: Path | pa.BufferReader, size: int, file: str) -> pq.ParquetFile:
    """Open a Parquet file; pages that have a checksum will be compared with it.

    Parameters
    ----------
    source
        The file, or its content.
    size
        Its bytes.
    file
        Its name in messages.

    Raises
    ------
    InputError
        If it says to hold more rows than a file of its size can.
    pyarrow.ArrowException, OSError, ValueError
        If it is damaged; :func:`damage_told` tells it.
    """
    import pyarrow.parquet as pq

    content = pq.ParquetFile(source, page_checksum_verification=True)
    rows = content.metadata.num_rows
    if not 0 <= rows <= max(_MOST_ROWS, _MOST_ROWS_A_BYTE * size):
        raise InputError(
            "the file unpacks to too much, or is damaged",
            file=file,
            found=f"{rows:,} rows in {size:,} bytes",
            todo="Take it out; no table of outcomes is so long",
        )
    return content


@contextmanager
def damage_told(file: str, todo: str) -> Iterator[None]:
    """Tell in one sentence what Arrow says of a damaged Parquet file.

    Raises
    ------
    InputError
        In the place of what Arrow raises; texts that are no UTF-8 among it.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            "this is not a Parquet file, or it is damaged",
            file=file,
            found=(str(error).splitlines() or [type(error).__name__])[0],
            todo=todo,
        ) from None


def read_rows(path: Path, file: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read a CSV file whole: the names of its columns, and its rows by name with their numbers.

    Raises
    ------
    InputError
        As :func:`rows` and :func:`check_header`, of which no column is asked for.
    """
    content = rows(path, file)
    _, header = next(content)
    check_header(header, file, header[0])
    return header, [(number, dict(zip(header, fields, strict=True))) for number, fields in content]


def read_sheet(path: Path, file: str, needed: str, *, elsewhere: bool = True) -> Sheet:
    """Read a table of texts (facts of items or models) whole.

    Parameters
    ----------
    path
        A ``.csv``, ``.csv.gz`` or ``.parquet`` file.
    file
        Its name in messages.
    needed
        The column that must be there.
    elsewhere
        Whether the configuration can say that another column is the one.

    Raises
    ------
    InputError
        As :func:`rows`, :func:`batches` and :func:`check_header`; if there is no row.
    """
    if path.name.endswith(".parquet"):
        header: list[str] = []
        fields: list[list[str]] = []
        unreadable: dict[str, str] = {}
        for batch in batches(path, file):
            header = list(batch.schema.names)
            columns = []
            for name, column in zip(header, batch.columns, strict=True):
                texts = texts_of(column)
                if texts is None:
                    unreadable[name] = str(column.type)
                columns.append([""] * len(column) if texts is None else texts)
            fields += [list(row) for row in zip(*columns, strict=True)]
        numbers = list(range(1, len(fields) + 1))
    else:
        unreadable = {}
        content = rows(path, file)
        _, header = next(content)
        read = list(content)
        numbers = [number for number, _ in read]
        fields = [row for _, row in read]
    check_header(header, file, needed, elsewhere=elsewhere)
    if not fields:
        raise InputError("the table has a header but no rows", file=file)
    return Sheet(file, tuple(header), fields, numbers, unreadable)
