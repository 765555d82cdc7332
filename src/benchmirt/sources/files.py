"""Result files of evaluation tools: their formats told by content, their rows graded by rules.

Either a folder per model, whose name is the model's, or files that name their models themselves.
``workflow/resources/FORMATS.md`` says which field of which format becomes what.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmirt.config import FORMATS, Source, Study
from benchmirt.errors import InputError
from benchmirt.files import sha256_bytes
from benchmirt.ids import code_point, unseen
from benchmirt.outcomes import OneModel
from benchmirt.progress import progress
from benchmirt.scoring import Scorer
from benchmirt.sources import raw
from benchmirt.sources.documents import Document, Log, Records, read_bytes
from benchmirt.sources.folders import overlooked, tree
from benchmirt.sources.formats import TELLS_FAILURES, logs

__all__ = ["collect", "kinds", "read"]

_log = logging.getLogger(__name__)
_KNOWN_AS = "doc_hash"
_LONGEST = 500
_WAY_OUT = "Write a scoring rule for one of its tasks, fetch its results again, or take its files out"


def kinds(kind: str) -> tuple[str, ...]:
    """Return the formats that a kind of source may hold."""
    return FORMATS if kind == "files" else (kind,)


def _read_file(path: Path, shown: str, kind: str) -> tuple[str, list[Log], str]:
    """Return the format of a file, what it tells, and its SHA-256."""
    data = read_bytes(path, shown)
    found, told = logs(Document(path, shown, data), kind)
    if not told:
        _log.info("%s: passed over, since it holds no outcomes of single questions", shown)
    return found, told, sha256_bytes(data)


def _require(table: Records, scorer: Scorer) -> None:
    """Stop where a rule asks for a field that no row has: its outcomes would all be missing.

    Raises
    ------
    InputError
        If one does.
    """
    for part in scorer.parts(table):
        decides = part.rule.one["field"]
        if decides in part.names or table.has(decides) or not part.size:
            continue
        given = next((one for one in table.column("scores") or [] if isinstance(one, dict)), {})
        raise InputError(
            f'no row has the field "{decides}", which decides here',
            file=table.file,
            found=", ".join(map(str, given)) or "no grade at all",
            todo=f'A scoring rule for "{table.task}" of your own may name another field',
        )


def _check_model(model: str | None, table: Records) -> str:
    """Return the name of a model, if it is one.

    Raises
    ------
    InputError
        If there is none, or it cannot be seen or is too long.
    """
    if model is None or not model.strip():
        raise InputError(
            "this file does not say which model it is about",
            file=table.file,
            todo="Put the files of each model into a folder of its name, and name the folder of these folders in folder:",
        )
    odd = unseen(model)
    if odd is not None or model != model.strip() or len(model) > _LONGEST:
        raise InputError(
            "the name of the model holds a character that cannot be seen, or is too long",
            file=table.file,
            found=f'{code_point(odd)}, in "{model}"' if odd else f'"{model}"',
            todo="Correct the name",
        )
    return model


def read(folder: Path, model: str, shown: str, scorer: Scorer, kind: str) -> raw.Found:
    """Read the files of one model, which lie in its folder.

    Parameters
    ----------
    folder
        The model's folder.
    model
        Its name.
    shown
        What messages call the folder.
    scorer
        The rules.
    kind
        The format, or ``files``.

    Raises
    ------
    InputError
        If a file is damaged or of no known format, or is about another model than the others.
    """
    tables: list[Records] = []
    hashes: dict[str, str] = {}
    unused: list[str] = []
    runs: dict[str, str] = {}
    stated: dict[str, str] = {}
    formats: set[str] = set()
    for name in tree(folder, shown):
        own = name.removeprefix(f"{shown}/")
        found, told, digest = _read_file(folder / own, name, kind)
        if not told:
            continue
        hashes[own] = digest
        formats.add(found)
        for log in told:
            if log.model is not None:
                stated.setdefault(log.model, name)
            if log.run is not None:
                runs[log.table.task] = log.run
            if scorer.of(log.table.task, log.table.kind):
                _require(log.table, scorer)
                tables.append(log.table)
            else:
                unused.append(log.table.task)
    if len(stated) > 1:
        (one, first), (other, second) = list(stated.items())[:2]
        raise InputError(
            "the folder of one model holds files of two",
            file=shown,
            found=f'"{one}" in {first} and "{other}" in {second}',
            expected=f'only "{model}"',
            todo="Give each model a folder of its own, or write files: in the place of folder:",
        )
    if not hashes:
        raise InputError(
            "no file in here holds outcomes of single questions",
            file=shown,
            todo="Fetch the samples as well as the totals, or take the folder out",
        )
    return raw.Found(
        tables,
        hashes,
        unused,
        runs,
        _KNOWN_AS,
        failures_known=formats <= TELLS_FAILURES,
        way_out=(_WAY_OUT,),
        formats=tuple(sorted(formats)),
        named=bool(stated),
        overlooked=tuple(overlooked(folder, shown)),
    )


@dataclass
class _Model:
    """What the files told of one model so far."""

    gathered: raw.Gathered
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)
    formats: set[str] = field(default_factory=set)


def collect(source: Source, study: Study, out_dir: str | Path) -> list[Path]:
    """Collect a source whose files name their models; its outcomes are one shard.

    Parameters
    ----------
    source
        A source of a kind in :data:`benchmirt.config.FILES`, with ``files``.
    study
        The study; paths are relative to its base. Models that it leaves out are not graded.
    out_dir
        The folder of the source's outcomes.

    Raises
    ------
    InputError
        If a file is damaged, of no known format, or does not name its model; if no model is left.
    """
    home = source.files(study.results)["files"]
    scorer = raw.rules(source, study, kinds(source.kind))
    items = raw.Items()
    models: dict[str, _Model] = {}
    left_out: set[str] = set()
    names = tree(study.base / home, home)
    for shown in progress(names, len(names), f"{source.name}: files"):
        found, told, digest = _read_file(study.base / shown, shown, source.kind)
        for log in told:
            name = _check_model(log.model, log.table)
            if not study.takes(name):
                left_out.add(name)
                continue
            one = models.setdefault(
                name, _Model(raw.Gathered(name, scorer, items, study.joining["repeated_rows"], _WAY_OUT))
            )
            one.files[shown.removeprefix(f"{home}/")] = {"path": shown, "sha256": digest}
            one.formats.add(found)
            if log.run is not None:
                one.runs[log.table.task] = log.run
            if scorer.of(log.table.task, log.table.kind):
                _require(log.table, scorer)
                one.gathered.add(log.table, _KNOWN_AS)
            else:
                one.unused.append(log.table.task)
    if left_out and not models:
        raise InputError(
            "models.include and models.exclude leave no model of this source",
            file=home,
            found=f"{len(left_out)} models, such as {min(left_out)}",
        )
    if not models:
        raise InputError(
            "no file in here holds outcomes of single questions",
            file=home,
            todo="Fetch the samples as well as the totals",
        )
    manifest = {
        **raw.manifest_of(source, scorer),
        "models_left_out": sorted(left_out),
        "overlooked": overlooked(study.base / home, home),
    }
    done = [_finish(models[name], home, study, manifest) for name in sorted(models)]
    raw.tell_idle(source.name, scorer, done)
    return raw.write(source, study, {"shard0": done}, items, Path(out_dir))


def _finish(one: _Model, home: str, study: Study, manifest: Mapping[str, Any]) -> OneModel:
    """Return the outcomes of one model."""
    paths = [file["path"] for file in one.files.values()]
    shown = paths[0] if len(paths) == 1 else f"{home}/{next(iter(one.files))}"
    known = one.formats <= TELLS_FAILURES
    simulated = raw.check_simulated(paths, shown, study)
    return one.gathered.finish(
        shown,
        one.files,
        one.unused,
        one.runs,
        {
            **manifest,
            "failures_known": known,
            "simulated": simulated,
            "formats": sorted(one.formats),
            "named": True,
        },
    )
