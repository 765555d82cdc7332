"""Paths that a user gives: what may stand in them, and whether there is what they name."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmirt.ids import code_point, unseen

__all__ = ["Absent", "absent", "improper", "not_a_folder", "not_an_input"]

_LONGEST_NAME = 255  # bytes, of every common file system
_LONGEST_PATH = 3500  # bytes; systems allow 4096, and our own folders and files need some


@dataclass(frozen=True)
class Absent:
    """Why something cannot be read.

    Attributes
    ----------
    what
        The fault.
    looked_for
        The full path.
    todo
        The way out.
    """

    what: str
    looked_for: str
    todo: str


def improper(text: str) -> tuple[str, str] | None:
    """Say what is wrong with a path as it is written, and what to do; None if nothing is.

    Braces and angle brackets stand for parts that Snakemake fills in, so that they cannot stand for themselves.
    """
    odd = unseen(text)
    if odd is not None:
        return f"the path holds a character that cannot be seen ({code_point(odd)})", "Rename it"
    for one in "{}<>":
        if one in text:
            return f'the path holds "{one}", which Snakemake fills in', "Rename it"
    if any(part != part.strip() for part in text.split("/")):
        return "a name in the path begins or ends with a space", "Rename it"
    if "://" in text:
        return "this is an address and not a path", "Give a path on this machine"
    if text.startswith(("~", "$")):
        return f'"{text[0]}" is not filled in here', "Write the path in full"
    if any(len(part.encode()) > _LONGEST_NAME for part in text.split("/")):
        return f"a name in the path is longer than {_LONGEST_NAME} bytes", "Give it a shorter name"
    if len(os.path.abspath(text).encode()) > _LONGEST_PATH:
        return f"the path is longer than {_LONGEST_PATH} bytes", "Give it a shorter one"
    return None


def absent(path: Path, kind: Literal["file", "folder"]) -> Absent | None:
    """Say why a file or a folder cannot be read, or None if it can."""
    full = str(path.absolute())
    relative = "Correct the path; it is relative to the working directory"
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        if number in (errno.ENOENT, errno.ENOTDIR, None):
            return Absent(f"this {kind} does not exist", full, relative)
        return Absent(f"this {kind} cannot be read ({os.strerror(number)})", full, "Correct the path")
    if kind == "file" and stat.S_ISDIR(mode):
        return Absent("this is a folder and not a file", full, "Name a file in it")
    if kind == "folder" and not stat.S_ISDIR(mode):
        return Absent("this is a file and not a folder", full, "Name the folder that holds it")
    if kind == "file" and not stat.S_ISREG(mode):
        return Absent("this is not an ordinary file", full, "Write its content into a file")
    if not os.access(path, os.R_OK | (os.X_OK if kind == "folder" else 0)):
        return Absent(f"this {kind} may not be read", full, "Change its permissions")
    return None


def not_an_input(text: str, path: Path, kind: Literal["file", "folder"]) -> Absent | None:
    """Say why a path, written as `text`, cannot be read from; None if it can."""
    wrong = improper(text)
    if wrong is not None:
        return Absent(wrong[0], str(path.absolute()), wrong[1])
    return absent(path, kind)


def not_a_folder(path: Path) -> Absent | None:
    """Say why a folder can neither be written into nor be made, or None if it can."""
    full = path.absolute()
    for step in [full, *full.parents]:
        try:
            mode = os.stat(step).st_mode
        except (FileNotFoundError, NotADirectoryError):
            if step.is_symlink():
                return Absent(
                    "this is a link to what does not exist",
                    str(step),
                    "Name another folder, or mend the link",
                )
            continue
        except OSError as error:
            why = f"this folder cannot be used ({os.strerror(error.errno or 0)})"
            return Absent(why, str(step), "Name another folder")
        if not stat.S_ISDIR(mode):
            todo = "Name a folder, or move the file away"
            return Absent("this is a file, so that no folder can be made there", str(step), todo)
        if not os.access(step, os.W_OK | os.X_OK):
            return Absent("this folder may not be written into", str(step), "Name another folder")
        return None
    return None
