"""Where a result comes from: code, configuration, data, versions and type of machine.

Nothing here depends on the clock, so that files with a provenance record are byte-identical on a rerun.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "closure",
    "commit",
    "cpu_type",
    "fingerprint",
    "library_fingerprint",
    "record",
    "script_fingerprint",
    "versions",
]

_PACKAGE = "benchmirt"
_HOME = Path(__file__).resolve().parent
# What these decide is words or speed, or reaches a rule as its params: editing them makes no result stale. What hub
# fetches is told by its revision and proved by its hash.
_SILENT = frozenset(
    f"{_PACKAGE}.{name}"
    for name in ("config", "errors", "hub", "launch", "logs", "paths", "progress", "strict_yaml")
)
_PACKAGES = ("arviz", "jax", "jaxlib", "numpy", "numpyro", "pandas", "scipy", "snakemake", "xarray")


def _full(name: str) -> str:
    return name if name == _PACKAGE or name.startswith(_PACKAGE + ".") else f"{_PACKAGE}.{name}"


def _source_of(module: str, home: Path) -> Path | None:
    """Return the file of a module of the library (a package: its ``__init__.py``), or None."""
    folder = home.joinpath(*module.split(".")[1:])
    as_file = folder.with_suffix(".py")
    if module != _PACKAGE and as_file.is_file():
        return as_file
    if folder.is_dir():
        return folder / "__init__.py"
    return None


def _only_for_types(node: ast.AST) -> bool:
    """Say whether `node` is the ``if TYPE_CHECKING:`` block, which never runs."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    return name == "TYPE_CHECKING"


def _statements(node: ast.AST) -> Iterable[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif _only_for_types(child):
            assert isinstance(child, ast.If)
            for other in child.orelse:
                yield from _statements(ast.Module(body=[other], type_ignores=[]))
        else:
            yield from _statements(child)


@functools.cache
def _named(package: str, text: str) -> frozenset[str]:
    """Return what a text that stands in `package` names in its imports from the library, wherever they stand."""
    names: set[str] = set()
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
            continue
        origin = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            origin = ".".join([*above, origin] if origin else above)
        if origin == _PACKAGE or origin.startswith(_PACKAGE + "."):
            names.add(origin)
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return frozenset(name for name in names if name.split(".")[0] == _PACKAGE)


def _imports(module: str, path: Path, home: Path) -> set[str]:
    """Return the modules of the library that `module` imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    named = _named(package, path.read_text(encoding="utf-8"))
    return {name for name in named if _source_of(name, home) is not None}


def closure(modules: Iterable[str], home: Path = _HOME) -> tuple[str, ...]:
    """Return the named modules of the library and all that they import from it, sorted.

    Parameters
    ----------
    modules
        Module names with or without the leading ``benchmirt.``.
    home
        The folder of the library's sources.

    Raises
    ------
    ValueError
        If a named module does not exist.

    Notes
    -----
    Imports are read from the syntax tree: anywhere in the file, absolute or relative, but not below
    ``if TYPE_CHECKING:``. Importing a module runs the packages that hold it, so they count as well.
    """
    todo = [_full(name) for name in modules]
    for name in todo:
        if _source_of(name, home) is None:
            raise ValueError(f"the library has no module {name}")
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        parent = name.rpartition(".")[0]
        if parent:
            todo.append(parent)
        path = _source_of(name, home)
        if path is not None and path.is_file():
            todo.extend(_imports(name, path, home))
    return tuple(sorted(seen))


def _files(modules: Iterable[str], home: Path) -> list[Path]:
    """Return the source files of `modules` and the data files (templates, styles) of their packages."""
    paths: set[Path] = set()
    for name in modules:
        path = _source_of(name, home)
        if path is None or not path.is_file():
            continue
        paths.add(path)
        if path.name == "__init__.py" and name != _PACKAGE:
            paths.update(
                other
                for other in path.parent.rglob("*")
                if other.is_file() and other.suffix not in {".py", ".pyc"} and other.name[0] != "."
            )
    return sorted(paths)


def _hash_files(paths: Iterable[Path], home: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(home).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def fingerprint(modules: Iterable[str], home: Path = _HOME) -> str:
    """Hash the sources of the named modules and of everything in the library that they import.

    Meant for the ``params`` of a Snakemake rule: editing a module reruns exactly the rules that use it.

    Parameters
    ----------
    modules
        Module names with or without the leading ``benchmirt.``.
    home
        The folder of the library's sources.

    Returns
    -------
    str
        16 hexadecimal digits.

    Raises
    ------
    ValueError
        If a named module does not exist.
    """
    return _hash_files(_files(closure(modules, home), home), home)


def script_fingerprint(script: str | Path, also: Iterable[str] = (), home: Path = _HOME) -> str:
    """Hash the modules of the library that a script imports, and all that they import.

    Left out are the modules that can't change a result: messages, progress, logging, launching, and the
    reading of the configuration, whose values reach a rule as its other ``params``.

    Parameters
    ----------
    script
        File of the script.
    also
        Further module names: those that are imported by name while the script runs.
    home
        The folder of the library's sources.

    Returns
    -------
    str
        16 hexadecimal digits.

    Raises
    ------
    ValueError
        If a module named in `also` does not exist.
    """
    modules = {*_imports("", Path(script), home), *map(_full, also)}
    used = set(closure(modules - _SILENT, home)) - _SILENT
    return _hash_files(_files(used, home), home)


def library_fingerprint(home: Path = _HOME) -> str:
    """Hash all Python sources of the library; 16 hexadecimal digits."""
    return _hash_files(sorted(home.rglob("*.py")), home)


@functools.cache
def commit() -> str | None:
    """Return the git commit of the library's sources, or None where they are not in a repository."""
    root = _HOME.parents[1]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


@functools.cache
def cpu_type() -> str:
    """Return the processor's model name; bit-equal reruns are promised per type."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on, installed ones only."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def record(*, config_sha256: str | None = None, data_hash: str | None = None) -> dict[str, object]:
    """Return the provenance record that every output carries.

    Parameters
    ----------
    config_sha256
        Hash of the complete configuration (``Study.config_sha256``).
    data_hash
        Hash of the data that went in (``ResponseData.hash``).

    Returns
    -------
    dict
        ``benchmirt``, ``commit``, ``config_sha256``, ``data_hash``, ``versions``, ``cpu``.
    """
    return {
        "benchmirt": importlib.metadata.version(_PACKAGE),
        "commit": commit(),
        "config_sha256": config_sha256,
        "data_hash": data_hash,
        "versions": versions(),
        "cpu": cpu_type(),
    }
