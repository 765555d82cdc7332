"""Whole files only: atomic writing, hashes and byte-reproducible tables."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import secrets
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmirt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "AGAIN",
    "atomic",
    "atomic_folder",
    "check_numbers",
    "read_json",
    "sha256_bytes",
    "sha256_of",
    "stamp_of",
    "write_csv",
    "write_json",
    "write_parquet",
    "write_text",
]

AGAIN = "Delete the file and run the workflow again"
"""What to do about a file of a study that cannot be read."""
_BLOCK = 1 << 20
_SMALL, _FEW = 64 << 20, 8


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it on success, remove it on failure.

    The temporary name ends as `path` does, so that writers which look at the suffix behave alike. The folder
    is made if needed. Readers see the old file, the new file, or none; never half a file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{secrets.token_hex(6)}.{target.name}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it takes the place of `path` on success and is removed on failure.

    For many small files at once: readers see the old folder, none for a moment, or the new one.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{secrets.token_hex(6)}.{target.name}")
    temporary.mkdir()
    try:
        yield temporary
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def stamp_of(paths: Iterable[str | Path]) -> str:
    """Return what changes when a file is replaced by another one, even by an older one: a hash over sizes and small contents.

    Contents count up to 64 MB a file and eight files; beyond that sizes do. A folder counts as the sizes and times of all
    files in it: Snakemake looks at the times of those only that it is told of.
    """
    digest = hashlib.sha256()
    found = [Path(path) for path in paths]
    for path in found:
        if path.is_dir():
            for inside, *told in _inside(os.fspath(path)):
                digest.update(f"{inside}\0{told}\n".encode("utf-8", "surrogateescape"))
            continue
        size = path.stat().st_size if path.is_file() else -1
        content = sha256_of(path) if 0 <= size <= _SMALL and len(found) <= _FEW else ""
        digest.update(f"{path.as_posix()}\0{size}\0{content}\n".encode())
    return digest.hexdigest()


def _inside(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of what a folder and the folders in it hold; -1 for what cannot be read or leads elsewhere."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        yield folder, -1, -1
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _inside(entry.path)
        elif entry.is_file():
            told = entry.stat()
            yield entry.path, told.st_size, told.st_mtime_ns
        else:
            yield entry.path, -1, -1


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _plain(value: object) -> object:
    """Turn numpy scalars and arrays, paths and non-finite numbers into what JSON can hold."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        entries = sorted(value) if isinstance(value, set | frozenset) else value
        return [_plain(entry) for entry in entries]
    if isinstance(value, Path):
        return value.as_posix()
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        return _plain(to_list())
    raise TypeError(f"cannot write a {type(value).__name__} as JSON")


def write_json(value: object, path: str | Path) -> None:
    """Write `value` as JSON: sorted keys, one space of indent, NaN and infinities as null.

    Mappings, sequences, sets (sorted), paths, numpy scalars and arrays are understood.

    Raises
    ------
    TypeError
        If `value` holds anything else.
    """
    text = json.dumps(_plain(value), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(text + "\n", path)


def read_json(path: str | Path, todo: str = AGAIN) -> Any:
    """Read a JSON file of a study; `todo` is the way out where it is damaged.

    Raises
    ------
    InputError
        If it is missing, is not JSON in UTF-8, or names a key twice, of which only one would count.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("a key stands twice", file=path, found=f'"{twice}"', todo=todo)
        return found

    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream, object_pairs_hook=once)
    except FileNotFoundError as error:
        raise InputError("the file does not exist", file=path, todo="Run the workflow first") from error
    except IsADirectoryError as error:
        raise InputError("", file=path, found="a folder", expected="a file", todo=todo) from error
    except RecursionError as error:
        raise InputError(
            "this is not JSON", file=path, found="values nested without end", todo=todo
        ) from error
    except json.JSONDecodeError as error:
        raise InputError(
            "this is not JSON", file=path, where=f"line {error.lineno}", found=error.msg, todo=todo
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "this is not JSON", file=path, found="bytes that are not UTF-8", todo=todo
        ) from error


def check_numbers(table: pd.DataFrame, path: str | Path, texts: Container[str]) -> pd.DataFrame:
    """Check that no text stands among the numbers of a table that was read from a CSV file.

    Parameters
    ----------
    table
        What pandas read: a column with a text in it holds texts.
    path
        The file.
    texts
        Columns that may hold texts that look like numbers, such as names.

    Returns
    -------
    pandas.DataFrame
        The table.

    Raises
    ------
    InputError
        With the row and the column of the first such text.
    """
    import pandas as pd

    for name in table.columns:
        if name in texts or pd.api.types.is_numeric_dtype(table[name]):
            continue
        given = table[name].notna().to_numpy()
        numbers = pd.to_numeric(table[name], errors="coerce").notna().to_numpy()
        if numbers.any() and not numbers[given].all():
            row = int((given & ~numbers).argmax())
            raise InputError(
                "a text stands among numbers",
                file=path,
                where=f'row {row + 2}, column "{name}"',
                found=f'"{table[name].iloc[row]}"',
                expected="a number",
                todo=AGAIN,
            )
    return table


def write_text(text: str, path: str | Path) -> None:
    """Write `text` as UTF-8 with Unix line ends, whatever the platform."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Write `frame` as CSV without its index, missing values empty; ``.gz`` names are compressed.

    The bytes depend on the content only (the gzip header holds neither a name nor a time).
    """
    buffer = io.StringIO()
    frame.to_csv(buffer, index=False, lineterminator="\n")
    data = buffer.getvalue().encode("utf-8")
    with atomic(path) as temporary:
        if str(path).endswith(".gz"):
            with (
                open(temporary, "wb") as raw,
                gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped,
            ):
                zipped.write(data)
        else:
            temporary.write_bytes(data)


def write_parquet(table: pd.DataFrame | pa.Table, path: str | Path) -> None:
    """Write a data frame (without its index) or an Arrow table as Parquet, byte-reproducibly."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)
    with atomic(path) as temporary:
        pq.write_table(arrow, temporary, compression="zstd", store_schema=True)
