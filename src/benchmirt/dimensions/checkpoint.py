"""Checkpoints of long families: one line of JSON per replicate, so that a killed job resumes where it was.

The file begins with a fingerprint of everything that a replicate depends on (data, settings, code); a file
with another fingerprint is started over. The number of replicates is not part of it: asking for more
continues. A last line that a killed job left incomplete is dropped. Whoever writes the
family's output removes the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from benchmirt import provenance

__all__ = ["Checkpoint", "fingerprint"]


def fingerprint(module: str, **parts: Any) -> str:
    """Hash settings and arrays together with the code that uses them.

    Parameters
    ----------
    module
        Module of the library whose sources (and those that it imports) count.
    parts
        Numbers, strings, lists, None or arrays.
    """
    digest = hashlib.sha256(provenance.fingerprint([module]).encode())
    for name in sorted(parts):
        value = parts[name]
        digest.update(f"\0{name}\0".encode())
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


class Checkpoint:
    """Results of replicates by key, kept in a JSONL file, or in memory only if there is no path.

    Use as a context manager. Floats come back exactly.
    """

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self._found: dict[str, Any] = {}
        self._stream: IO[str] | None = None

    def __enter__(self) -> Checkpoint:
        if self._path is None:
            return self
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = self._read()
        if kept is None:
            self._stream = self._path.open("w", encoding="utf-8", newline="\n")
            self._line({"fingerprint": self._fingerprint})
        else:
            os.truncate(self._path, kept)
            self._stream = self._path.open("a", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self) -> int | None:
        """Read the file; return the length of its sound part, or None if it must be started over."""
        assert self._path is not None
        if not self._path.is_file():
            return None
        sound = 0
        with self._path.open("rb") as stream:
            for number, line in enumerate(stream):
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                except ValueError:
                    break
                if number == 0:
                    if entry.get("fingerprint") != self._fingerprint:
                        return None
                else:
                    self._found[entry["key"]] = entry["value"]
                sound += len(line)
        return sound or None

    def _line(self, entry: Mapping[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(entry) + "\n")
            self._stream.flush()

    def get(self, key: str) -> Any | None:
        """Return the result of a replicate, or None if it isn't there yet."""
        return self._found.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep the result of a replicate (numbers, strings, lists and mappings of them)."""
        self._found[key] = value
        self._line({"key": key, "value": value})
