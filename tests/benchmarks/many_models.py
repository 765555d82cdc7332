"""What the benchmarks of many models share: studies of copied simulated files, and parts that run in processes of their own.

The simulator knows 100 models. A larger study holds each of them several times, under new names; the copies are links, so
that a thousand models take no more disk than a hundred.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"leaderboard": "simulated_open_llm_leaderboard", "safety-eval": "simulated_safety_eval"}
"""Kind of a source -> the folder of its raw files."""
SIMULATED = 100
"""Models that the simulator knows."""
_DETAILS = "-details"


def simulate(folder: Path, scale: str, *kinds: str) -> None:
    """Write the raw files of the simulated double's 100 models, those for sources of some kinds."""
    from benchmirt.simulate import raw

    raw.write(
        raw.twin(scale=scale),
        folder,
        [part for part, name in raw.FOLDERS.items() if name in {FOLDERS[kind] for kind in kinds}],
    )


def study(simulated: Path, folder: Path, models: int, kinds: Sequence[str]) -> Path:
    """Make a study of so many models in `folder`, from the raw files of 100 in `simulated`; return its configuration.

    Copies of one model share a lineage, which the study's file of models names.
    """
    folder.mkdir(parents=True)
    lineages: dict[str, str] = {}
    for kind in kinds:
        originals = sorted(path.name.removesuffix(_DETAILS) for path in (simulated / FOLDERS[kind]).iterdir())
        for number in range(models):
            model = originals[number % len(originals)]
            copy = model if number < len(originals) else f"{model}-copy{number // len(originals)}"
            lineages[copy] = model
            _link(simulated / FOLDERS[kind], folder / FOLDERS[kind], model, copy)
    with open(folder / "models.csv", "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("model", "lineage"), *sorted(lineages.items())])
    sources = [
        {"name": kind, "kind": kind, "folder": FOLDERS[kind], "models": "models.csv"} for kind in kinds
    ]
    # JSON is YAML, and Snakemake reads a config.yaml in the study's folder by itself
    path = folder / "config.yaml"
    path.write_text(json.dumps({"study": "many", "results": "results", "sources": sources}), encoding="utf-8")
    return path


def _link(here: Path, there: Path, model: str, copy: str) -> None:
    """Give a model's files a second place under another name, which folders of leaderboard details repeat."""
    suffix = _DETAILS if (here / f"{model}{_DETAILS}").is_dir() else ""
    home = here / f"{model}{suffix}"
    for place, _, names in os.walk(home):
        inside = Path(place).relative_to(home)
        parts = [copy + part.removeprefix(model) if part.startswith(model) else part for part in inside.parts]
        target = there.joinpath(f"{copy}{suffix}", *parts)
        target.mkdir(parents=True)
        for name in names:
            os.link(Path(place, name), target / name)


@dataclass(frozen=True)
class Used:
    """What a process took: seconds, seconds of CPU of all its cores, peak memory in MB; and what it printed."""

    seconds: float
    cpu_s: float
    peak_mb: float
    told: str


def alone(command: Sequence[str], folder: Path) -> Used:
    """Run a command in a folder and measure it.

    Raises
    ------
    subprocess.CalledProcessError
        If the command fails; what it said goes to standard error.
    RuntimeError
        If the caller has been as large: a child's peak memory is never less than its parent's.
    """
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log)
        assert process.stdout is not None
        told = process.stdout.read().decode("utf-8")
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            sys.stderr.write(log.read().decode("utf-8", "replace"))
            raise subprocess.CalledProcessError(process.returncode, command)
    if used.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        raise RuntimeError("the peak memory is that of the process that measures")
    return Used(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, told)


def part(script: str, *arguments: str | Path) -> Used:
    """Measure a part of a benchmark: the script itself with ``--part``, in a process of its own."""
    return alone([sys.executable, str(Path(script).resolve()), "--part", *map(str, arguments)], Path())
