"""ZIP archives of results, read in memory only: nothing of them is ever written to disk.

Members are unpacked one at a time and up to a limit, their checksums are compared, and names that would lead out of a
folder are refused. Zstandard, which Python's own zipfile learns in 3.14 only, is unpacked by Arrow.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BytesIO

import pyarrow as pa

from benchmirt.errors import InputError

__all__ = ["MOST_A_MEMBER", "Archive"]

MOST_A_MEMBER = 1 << 29
"""Most bytes that a member may unpack to."""

_MOST_AT_ALL = 1 << 30
_MOST_TIMES = (
    500  # an archive may unpack to more than the number above if it does not shrink by more than this
)

_ZSTANDARD = 93
_LOCAL = struct.Struct("<4s22xHH")
_BLOCK = 1 << 20
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    pa.ArrowException,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,  # an encrypted member, or a way of packing that zipfile does not know
    ValueError,
    LookupError,
)


class Archive:
    """The members of an archive.

    Parameters
    ----------
    data
        The archive's bytes.
    shown
        What messages call it.

    Raises
    ------
    InputError
        If it is damaged, a member's name leads out of it, or it unpacks to more than any log.
    """

    def __init__(self, data: bytes, shown: str) -> None:
        self._data = data
        self._shown = shown
        try:
            self._open = zipfile.ZipFile(BytesIO(data))
            members = [info for info in self._open.infolist() if not info.is_dir()]
        except _FAULTS as error:
            raise self._damaged(error) from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._twice: set[str] = set()
        for info in members:
            before = self._members.setdefault(info.filename, info)
            if (before.CRC, before.file_size) != (info.CRC, info.file_size):
                self._twice.add(info.filename)
        for name in self._members:
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or ":" in name[:3]:
                raise InputError(
                    "a name in the archive leads out of it",
                    file=shown,
                    found=f'"{name}"',
                    todo="Do not unpack this archive; fetch it from where it was made",
                )

        size = sum(info.file_size for info in self._members.values())
        if size > max(_MOST_AT_ALL, _MOST_TIMES * len(data)):
            raise InputError(
                "the archive unpacks to too much",
                file=shown,
                found=f"{size:,} bytes in {len(self._members):,} members, from {len(data):,} bytes",
                todo="Take it out; no log is so long",
            )

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> list[str]:
        """The names of the members, in order."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises
        ------
        InputError
            If it is damaged, encrypted, compressed in an unknown way, or unpacks to more than `MOST_A_MEMBER` bytes; if
            two members of this name have different contents.
        """
        info = self._members[name]
        if name in self._twice:
            raise InputError(
                "two members of the archive have this name",
                file=self._shown,
                where=f'"{name}"',
                found="another content in each",
                todo="Write the log again, so that it holds one of them, or take it out",
            )
        if info.file_size > MOST_A_MEMBER:
            raise self._too_large(name)
        try:
            content = self._zstandard(info) if info.compress_type == _ZSTANDARD else self._other(info)
        except _FAULTS as error:
            raise self._damaged(error, name) from None
        if len(content) > MOST_A_MEMBER:
            raise self._too_large(name)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._damaged(zipfile.BadZipFile("the checksum is another one"), name)
        return content

    def _other(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack a member by Python's own means, at most a byte more than is allowed."""
        with self._open.open(info) as stream:
            return stream.read(MOST_A_MEMBER + 1)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack a member that is compressed with Zstandard, at most a block more than is allowed."""
        if info.flag_bits & 1:
            raise RuntimeError("it is encrypted")
        mark, name, extra = _LOCAL.unpack_from(self._data, info.header_offset)
        if mark != b"PK\x03\x04":
            raise zipfile.BadZipFile("a member is not where the directory says")
        start = info.header_offset + _LOCAL.size + name + extra
        packed = self._data[start : start + info.compress_size]
        blocks: list[bytes] = []
        size = 0
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            while size <= MOST_A_MEMBER and (block := stream.read(_BLOCK)):
                blocks.append(block)
                size += len(block)
        return b"".join(blocks)

    def _damaged(self, error: Exception, name: str | None = None) -> InputError:
        return InputError(
            "this ZIP archive is damaged, or was cut off",
            file=self._shown,
            where=None if name is None else f'"{name}"',
            found=(str(error).splitlines() or [type(error).__name__])[0],
            todo="Fetch it again, or take it out",
        )

    def _too_large(self, name: str) -> InputError:
        return InputError(
            "a member of the archive unpacks to too much",
            file=self._shown,
            where=f'"{name}"',
            expected=f"at most {MOST_A_MEMBER:,} bytes",
            todo="Take it out; no log of one sample is so long",
        )
