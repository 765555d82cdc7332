"""YAML read strictly: what YAML would settle in silence, or end in a traceback, is one sentence with its row.

A key that stands twice (YAML keeps the last), a key that is no text (``on``, ``7``), a text that contains itself,
a file that is not UTF-8: each is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmirt import paths
from benchmirt.errors import InputError

__all__ = ["read", "read_mapping"]

_MOST = 500_000  # values, those of aliases counted at each place


class _TwiceError(ValueError):
    """A key that stands twice in one JSON object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return found


def _text(path: Path, shown: str) -> str:
    """Return what a file holds."""
    fault = paths.absent(path, "file")
    if fault is not None:
        raise InputError(fault.what, file=shown, looked_for=fault.looked_for, todo=fault.todo)
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("", file=shown, found="UTF-16 text", expected="UTF-8", todo="Save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "the text is not UTF-8",
            file=shown,
            where=f"row {data.count(10, 0, error.start) + 1}",
            found=f"the byte 0x{data[error.start]:02x}",
            todo="Save it as UTF-8",
        ) from None
    for number, line in enumerate(text.split("\n"), start=1):
        odd = next((one for one in line.rstrip("\r") if (one < " " and one != "\t") or one == "\x7f"), None)
        if odd is not None:
            raise InputError(
                "",
                file=shown,
                where=f"row {number}",
                found=f"the control character U+{ord(odd):04X}",
                expected="text",
                todo="Remove it, or write the file again",
            )
    return text


def _json(text: str, shown: str) -> Any:
    """Return what a JSON text holds, or None if it is none: it may still be YAML."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _TwiceError as error:
        raise _twice(str(error), shown, None) from None
    except (ValueError, RecursionError):
        return None


def _twice(key: str, shown: str, rows: tuple[int, int] | None) -> InputError:
    return InputError(
        "a key stands twice, of which only the last would count",
        file=shown,
        where=None if rows is None else f"row {rows[1]}",
        found=f'"{key}"' + ("" if rows is None else f", as in row {rows[0]}"),
        todo="Keep one of them",
    )


def _check(node: Any, shown: str) -> None:
    """Refuse keys that stand twice or are no texts, values that contain themselves, and aliases without end."""
    import yaml

    count = 0
    open_nodes: set[int] = set()

    def visit(node: Any) -> None:
        nonlocal count
        count += 1
        row = node.start_mark.line + 1
        if count > _MOST:
            raise InputError("the aliases repeat too much", file=shown, where=f"row {row}")
        if isinstance(node, yaml.ScalarNode):
            _refuse_odd_number(node, shown, row)
            return
        if id(node) in open_nodes:
            raise InputError(
                "a value contains itself",
                file=shown,
                where=f"row {row}",
                todo="Write it out without an alias",
            )
        open_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen: dict[str, int] = {}
            for key, value in node.value:
                here = key.start_mark.line + 1
                if key.tag != "tag:yaml.org,2002:merge":
                    name = _name(key, shown, here)
                    if name in seen:
                        raise _twice(name, shown, (seen[name], here))
                    seen[name] = here
                visit(value)
        else:
            for value in node.value:
                visit(value)
        open_nodes.discard(id(node))

    visit(node)


def _refuse_odd_number(node: Any, shown: str, row: int) -> None:
    """Refuse what YAML reads as a number to another base than a person does: 010 is 8, and 1:30 is 90."""
    if node.style is not None or not node.tag.endswith((":int", ":float")):
        return
    if ":" in node.value or re.fullmatch(r"[-+]?0[0-9_]+", node.value):
        base = "60" if ":" in node.value else "8"
        raise InputError(
            "",
            file=shown,
            where=f"row {row}",
            found=f"{node.value}, which YAML reads as a number to the base of {base}",
            expected="a number to the base of 10",
            todo=f'Write it without leading zeros and colons, or as a text: "{node.value}"',
        )


def _name(key: Any, shown: str, row: int) -> str:
    """Return the text of a key."""
    import yaml

    if not isinstance(key, yaml.ScalarNode):
        raise InputError(
            "a key is a list or a mapping",
            file=shown,
            where=f"row {row}",
            expected="a text",
            todo="Put texts with brackets or braces into quotes",
        )
    if key.tag != "tag:yaml.org,2002:str":
        kinds = {"bool": "a truth value", "null": "nothing", "int": "a number", "float": "a number"}
        kind = kinds.get(key.tag.rpartition(":")[2], "a date or another value")
        raise InputError(
            "a key is not a text",
            file=shown,
            where=f"row {row}",
            found=f"{key.value or 'nothing'}, which YAML reads as {kind}",
            expected="a text",
            todo=f'Put it into quotes: "{key.value}"' if key.value else "Write the key before the colon",
        )
    return str(key.value)


def read(path: str | Path, shown: str | None = None) -> Any:
    """Read a YAML or JSON file, which messages call `shown` if that is given.

    Raises
    ------
    InputError
        If it is missing, is a folder, is not UTF-8, is not YAML, or names a key twice or by something else than
        a text; the sentence names the row.
    """
    import yaml

    called = str(path) if shown is None else shown
    text = _text(Path(path), called)
    found = _json(text, called)
    if found is not None:
        return found
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, called)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        todo = None
        if "'\\t'" in problem:
            todo = "Indent with spaces; YAML allows no tabs there"
        elif "another document" in problem:
            todo = "Keep one document; drop what follows ---"
        raise InputError(
            f"this is not YAML ({problem})",
            file=called,
            where=None if mark is None else f"row {mark.line + 1}",
            todo=todo,
        ) from None
    except ValueError as error:  # dates and numbers that Python cannot hold
        raise InputError(
            f"a value cannot be read ({str(error).partition(';')[0]})",
            file=called,
            todo="Put dates and long numbers into quotes",
        ) from None
    except RecursionError:
        raise InputError("this is not YAML (nested too deeply)", file=called) from None
    finally:
        loader.dispose()


def read_mapping(path: str | Path, shown: str | None = None) -> dict[str, Any]:
    """Read a file that holds a mapping, such as a configuration.

    Raises
    ------
    InputError
        As :func:`read`; if the file is empty or holds something else.
    """
    called = str(path) if shown is None else shown
    found = read(path, called)
    if isinstance(found, Mapping):
        return dict(found)
    kind = {list: "a list", str: "a text", type(None): "nothing"}.get(type(found), "a single value")
    raise InputError(
        "",
        file=called,
        found=kind,
        expected="a mapping (key: value)",
        todo="Write keys such as study: and sources: at the beginning of their rows",
    )
