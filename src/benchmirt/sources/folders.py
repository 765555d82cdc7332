"""Raw sources as they lie on disk: the models' folders, their files, and how models are put into jobs.

Nothing heavy is imported and no file is opened, since the workflow asks when it is parsed. A job names every file that it
reads, as long as a source has no more than :data:`FILES_UP_TO` models; beyond, it names the models' folders, and what is wrong
in one of them is told by the job that reads it.

A model has its own shard up to :data:`ONE_A_SHARD` models of a source; beyond, shards hold about
:data:`MODELS_A_JOB` of them. Which shard follows from the model's name alone, and so does the job, which
collects about :data:`MODELS_A_JOB` models: a new model leaves the files of all others as they are.

A source whose files name the models themselves is one job with one shard, and so is one that is fetched from the hub,
unless each model has a data set of its own there.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmirt import roster
from benchmirt.config import FILES, RAW, Source, Study
from benchmirt.errors import InputError
from benchmirt.ids import natural
from benchmirt.sources.reading import read_sheet

__all__ = [
    "FILES_UP_TO",
    "MODELS_A_JOB",
    "ONE_A_SHARD",
    "Batch",
    "all_models",
    "batches",
    "data_sets",
    "details",
    "jobs_of",
    "model_folders",
    "plan",
    "result_files",
    "tree",
]

ONE_A_SHARD = 100
MODELS_A_JOB = 50
FILES_UP_TO = 500
"""Models of a source up to which its jobs name files: Snakemake takes a tenth of a millisecond for each of them, again in
every job on a cluster, and a model of the leaderboard has 37."""
_WHOLE = "whole"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LATEST = "latest"
_DETAILS = "-details"
_RESULTS = re.compile(r"(?:simulated_)?(?:all\.json|results\.[^/]+)")
_BITS = 32
_ENDINGS = (".json", ".jsonl", ".jsonlines", ".eval", ".csv", ".csv.gz", ".parquet")
_MEANT = re.compile(
    r".+\.(?:(?:json|jsonl|jsonlines|eval|csv|parquet|ndjson)(?:\.(?:gz|bz2|xz|zst|zip))?|tsv|xlsx?)",
    re.IGNORECASE,
)
_DEEPEST = 20


@dataclass(frozen=True)
class Batch:
    """One job of collecting.

    Attributes
    ----------
    name
        Empty where a source is a table, collected in one job; else such as ``0of4``, and the name of the
        folder that the job makes in the folder of the source's outcomes.
    models
        The models to collect, sorted; none where a table says which there are.
    shards
        Shards that the job makes, without their endings.
    inputs
        The files that the job reads, the folders of its models, or a folder that another job makes.
    """

    name: str
    models: tuple[str, ...]
    shards: tuple[str, ...]
    inputs: tuple[str, ...]


def _hash(model: str) -> int:
    """Return the first `_BITS` bits of the SHA-256 of a name."""
    return int.from_bytes(hashlib.sha256(model.encode("utf-8")).digest()[: _BITS // 8], "big")


def _bits(models: int) -> int:
    """Return how many bits of the hash divide `models` into groups of about `MODELS_A_JOB`."""
    return max(0, round(math.log2(max(1, models) / MODELS_A_JOB)))


def batches(models: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Divide models into jobs and shards.

    Parameters
    ----------
    models
        All models of a source, in any order.

    Returns
    -------
    dict
        Name of the job -> name of the shard -> its models, all sorted.
    """
    bits = _bits(len(models))
    jobs: dict[str, dict[str, list[str]]] = {}
    for model in sorted(models):
        number = _hash(model)
        part = number >> (_BITS - bits)
        shard = f"shard{number:08x}" if len(models) <= ONE_A_SHARD else f"shard{part}"
        job = f"{part}of{1 << bits}"
        jobs.setdefault(job, {}).setdefault(shard, []).append(model)
    return {job: dict(sorted(jobs[job].items())) for job in sorted(jobs, key=natural)}


def jobs_of(source: Source, models: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Divide the models of a source into jobs and shards; what is fetched is one job.

    Which models a fetched folder holds is not known when the workflow is parsed, so the job must not depend on them.
    """
    jobs = batches(models)
    if source.per_model or not source.fetched:
        return jobs
    return {_WHOLE: {shard: own for shards in jobs.values() for shard, own in shards.items()}}


# -- folders ------------------------------------------------------------------------------------------------


def _entries(folder: Path, shown: str) -> list[os.DirEntry[str]]:
    """Return what a folder holds, without hidden entries, by name.

    Raises
    ------
    InputError
        If the folder cannot be listed, or a name in it is not UTF-8 or holds control characters.
    """
    try:
        with os.scandir(folder) as listing:
            found = sorted((entry for entry in listing if entry.name[0] != "."), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError("this folder cannot be read", file=shown, found=str(error.strerror)) from None
    for entry in found:
        if not entry.name.isprintable():
            raise InputError(
                "a name holds control characters or bytes that are not UTF-8",
                file=shown,
                found=ascii(entry.name),
                todo="Rename it",
            )
    return found


def _model_of(kind: str, folder: str) -> str:
    return folder.removesuffix(_DETAILS) if kind == "leaderboard" and folder != _DETAILS else folder


def all_models(source: Source, study: Study) -> dict[str, str]:
    """Return the models of a raw source and the name of each one's folder.

    Raises
    ------
    InputError
        If there is no model, or two folders hold one.
    """
    shown = source.files(study.results)["folder"]
    suffix = _DETAILS if source.kind == "leaderboard" else ""
    if source.per_model:
        folders = [f"{model}{suffix}" for model in _named(source, study)]
    elif "folder" in source.options:
        folders = [entry.name for entry in _entries(study.base / shown, shown) if entry.is_dir()]
    else:
        assert study.simulate is not None
        folders = [f"{model}{suffix}" for model in roster.chosen(study.simulate["models"])]
    found: dict[str, str] = {}
    for folder in folders:
        model = _model_of(source.kind, folder)
        if model in found:
            raise InputError(
                "two folders hold the same model",
                file=shown,
                found=f'"{found[model]}" and "{folder}"',
                todo="Take one of them out",
            )
        found[model] = folder
    if not found:
        raise InputError(
            "there is no folder of a model",
            file=shown,
            expected="one folder per model",
            todo=f"Name the folder that holds them in sources ({source.name}).folder",
        )
    return found


def _named(source: Source, study: Study) -> list[str]:
    """Return the models that the source's file with facts of models names.

    Raises
    ------
    InputError
        If the file cannot be read, or a name in it cannot be a part of a data set's name.
    """
    shown = source.options["models"]
    key = source.options["model_columns"].get("model", "model")
    names = read_sheet(study.resource(shown), shown, key).column(key)
    odd = next((name for name in names if _NAME.fullmatch(name) is None), None)
    if odd is not None:
        raise InputError(
            "this cannot be a part of the name of a data set",
            file=shown,
            where=f'column "{key}"',
            found=f'"{odd}"',
            expected="letters, digits, '.', '_' and '-'",
            todo="Correct it, or name models: FILE with the models that the hub has",
        )
    return names


def data_sets(source: Source, study: Study) -> dict[str, dict[str, Any]]:
    """Return what is fetched for a source: a folder in ``<results>/fetched/{source}/`` -> the data set.

    Raises
    ------
    InputError
        If each model has a data set of its own, and the models are not known.
    """
    if not source.per_model:
        return source.fetched
    wanted = source.options["folder"]
    return {
        f"folder/{folder}": {**wanted, "hub": wanted["hub"].replace("{model}", model)}
        for model, folder in model_folders(source, study).items()
    }


def model_folders(source: Source, study: Study) -> dict[str, str]:
    """Return the models of a raw source that take part, and the name of each one's folder.

    Models that ``models.exclude`` names, or that ``models.include`` leaves out, are not collected at all.

    Raises
    ------
    InputError
        If there is no model, or two folders hold one.
    """
    found = all_models(source, study)
    kept = {model: folder for model, folder in found.items() if study.takes(model)}
    if not kept:
        raise InputError(
            "models.include and models.exclude leave no model of this source",
            file=source.files(study.results)["folder"],
            found=f"{len(found)} models, such as {next(iter(found))}",
        )
    return kept


def _check_complete(source: Source, study: Study) -> None:
    """Stop where a study that says to hold all models lacks the folder of one.

    Raises
    ------
    InputError
        If it does.
    """
    if not study.published_size or source.per_model or "folder" not in source.options:
        return
    found = all_models(source, study)
    wanted = [model for model in _named(source, study) if study.takes(model)]
    gone = [model for model in wanted if model not in found]
    if gone:
        raise InputError(
            f"{len(gone)} of the {len(wanted)} models of {source.options['models']} have no folder in here",
            file=source.files(study.results)["folder"],
            looked_for=", ".join(gone[:5]) + (", ..." if len(gone) > 5 else ""),
            todo="Fetch their results, or name them in models.exclude, or write published_size: false, so that no count is "
            "compared with the published one",
        )


def details(folder: Path, model: str, shown: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the leaderboard details of one model: (task, run, files) by task.

    The run is the one called ``latest``, or else the newest. Files are relative to `folder`, in order.

    Raises
    ------
    InputError
        If the folder holds the details of another model, or none.
    """
    found: list[tuple[str, str, tuple[str, ...]]] = []
    others: list[str] = []
    for config in _entries(folder, shown):
        if not config.is_dir():
            others.append(config.name)
            continue
        owner, mark, task = config.name.rpartition("__leaderboard_")
        if not mark:
            others.append(config.name)
            continue
        if owner != model:
            raise InputError(
                "the folder holds details of another model",
                file=f"{shown}/{config.name}",
                found=f'"{owner}"',
                expected=f'"{model}", as its folder says',
                todo="Rename the folder, or move these away",
            )
        runs: dict[str, tuple[str, ...]] = {}
        for run in _entries(Path(config.path), f"{shown}/{config.name}"):
            if run.is_dir():
                inside = _entries(Path(run.path), f"{shown}/{config.name}/{run.name}")
                files = tuple(
                    f"{config.name}/{run.name}/{entry.name}"
                    for entry in inside
                    if entry.name.endswith(".parquet")
                )
                if files:
                    runs[run.name] = files
        if not runs:
            raise InputError(
                "there is no run with a parquet file",
                file=f"{shown}/{config.name}",
                expected="latest/0000.parquet",
                todo="Fetch it again, or take this folder out",
            )
        run_name = _LATEST if _LATEST in runs else max(runs)
        found.append((f"leaderboard_{task}", run_name, runs[run_name]))
    if not found:
        raise InputError(
            "there are no details of this model",
            file=shown,
            found=", ".join(others[:5]) or "nothing",
            expected=f"folders such as {model}__leaderboard_ifeval",
            todo="Fetch them again, or take the folder out",
        )
    return found


def result_files(folder: Path, shown: str) -> tuple[str, ...]:
    """Return the names of the files with safety-eval results of one model.

    Raises
    ------
    InputError
        If there is none.
    """
    entries = _entries(folder, shown)
    found = tuple(entry.name for entry in entries if _RESULTS.fullmatch(entry.name) and entry.is_file())
    if not found:
        raise InputError(
            "there are no results of this model",
            file=shown,
            found=", ".join(entry.name for entry in entries[:5]) or "nothing",
            expected="all.json or results.{task}.json",
            todo="Fetch them again, or take the folder out",
        )
    return found


def tree(path: Path, shown: str) -> list[str]:
    """Return the files at a path that may be results, by name: itself, or all in a folder and in folders there.

    Parameters
    ----------
    path
        A file or a folder.
    shown
        What messages call it; the names that are returned begin with it.

    Raises
    ------
    InputError
        If there is none, a folder cannot be listed or lies too deep, or a name is not printable.
    """
    if not path.is_dir():
        return [shown]
    found = [name for name in _all_in(path, shown) if name.endswith(_ENDINGS)]
    if not found:
        raise InputError(
            "there is no file in here that may hold results",
            file=shown,
            found=", ".join(overlooked(path, shown)[:3]) or None,
            expected=f"names that end in {', '.join(_ENDINGS)}",
            todo="Name the folder that holds them, or take this one out",
        )
    return sorted(found)


def overlooked(path: Path, shown: str) -> list[str]:
    """Return files in a folder that are not looked at though they may be meant: compressed, `.JSONL`, tabs, spreadsheets."""
    if not path.is_dir():
        return []
    return sorted(
        name for name in _all_in(path, shown) if not name.endswith(_ENDINGS) and _MEANT.fullmatch(name)
    )


def _all_in(path: Path, shown: str) -> Iterator[str]:
    """Yield the files in a folder and in folders there."""
    todo = [(path, shown, 0)]
    while todo:
        folder, name, depth = todo.pop()
        if depth > _DEEPEST:
            raise InputError(
                f"folders lie more than {_DEEPEST} deep",
                file=shown,
                found=name,
                todo="Take out what is no result; a link may lead back to a folder above it",
            )
        for entry in _entries(folder, name):
            if entry.is_dir():
                todo.append((Path(entry.path), f"{name}/{entry.name}", depth + 1))
            else:
                yield f"{name}/{entry.name}"


def _inputs(source: Source, study: Study, folder: str, models: dict[str, str], by_file: bool) -> list[str]:
    """Return the raw files of some models, or their folders, or the folder that is made for all of them."""
    if not source.per_model and (source.fetched or "folder" not in source.options):
        return [folder]
    if source.per_model or not by_file:
        return [f"{folder}/{name}" for name in models.values()]
    paths: list[str] = []
    for model, name in models.items():
        home, shown = study.base / folder / name, f"{folder}/{name}"
        if source.kind in FILES:
            paths += tree(home, shown)
        elif source.kind == "leaderboard":
            paths += [f"{shown}/{file}" for _, _, files in details(home, model, shown) for file in files]
        else:
            paths += [f"{shown}/{file}" for file in result_files(home, shown)]
    return paths


def _check_braces(files: Sequence[str]) -> None:
    """Stop at a name that Snakemake would fill in."""
    for file in files:
        name = next((part for part in file.split("/") if "{" in part or "}" in part), None)
        if name is not None:
            raise InputError(
                "a name holds braces, which Snakemake fills in",
                file=file.partition(name)[0].rstrip("/"),
                found=f'"{name}"',
                todo="Rename it",
            )


def plan(source: Source, study: Study, results: str | None = None) -> list[Batch]:
    """Return the jobs that collect a source.

    Parameters
    ----------
    source
        One of ``study.sources``, of any kind.
    study
        The study.
    results
        How Snakemake calls the results folder in paths; ``study.results`` if absent.

    Raises
    ------
    InputError
        If a folder does not hold what it should; for Snakemake, if a name in it holds braces.
    """
    given = source.files(study.results if results is None else results)
    if source.kind not in (*RAW, *FILES):
        return [Batch(name="", models=(), shards=("shard0",), inputs=tuple(given.values()))]
    tables = [os.path.relpath(study.resource(path), study.base or ".") for path in source.options["scoring"]]
    tables.append(os.path.relpath(study.resource(given["models"]), study.base or "."))
    if (
        source.fetched and not source.per_model and results is not None
    ):  # what is fetched need not be there yet
        name = _WHOLE if source.by_model else ""
        place = given["folder" if source.by_model else "files"]
        return [Batch(name=name, models=(), shards=(), inputs=(place, *tables))]
    if not source.by_model:
        files = tree(study.base / given["files"], given["files"])
        if results is not None:
            _check_braces(files)
        return [Batch(name="", models=(), shards=("shard0",), inputs=(*files, *tables))]
    folders = model_folders(source, study)
    _check_complete(source, study)
    by_file = len(folders) <= FILES_UP_TO
    jobs = []
    for name, shards in jobs_of(source, list(folders)).items():
        own = sorted(model for models in shards.values() for model in models)
        files = _inputs(source, study, given["folder"], {model: folders[model] for model in own}, by_file)
        if results is not None:
            _check_braces(files)
        jobs.append(Batch(name=name, models=tuple(own), shards=tuple(shards), inputs=(*files, *tables)))
    return jobs
