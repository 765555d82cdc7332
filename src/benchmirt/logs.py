"""The one logging set-up of every job: to the rule's log file and to the console, faults included.

A fault of the user's input (:class:`~benchmirt.errors.InputError`) is one sentence in both places and exit
status 1. Anything else that goes wrong leaves its whole traceback in both, so that no log ends without
saying why.
"""

from __future__ import annotations

import atexit
import csv
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmirt import launch
from benchmirt.errors import InputError

log = logging.getLogger(__name__)


def set_up(file: str | Path | None, name: str) -> None:
    """Send log records and warnings to a file and, from level INFO on, to standard error.

    Parameters
    ----------
    file
        The rule's log, written anew; its folder is made. None: console only.
    name
        What console lines begin with, for instance ``fit corrected 3``.
    """
    console = logging.StreamHandler()
    console.setLevel(logging.INFO)
    console.setFormatter(logging.Formatter(f"[{name}] %(message)s"))
    handlers: list[logging.Handler] = [console]
    if file is not None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        to_file = logging.FileHandler(file, mode="w", encoding="utf-8")
        to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handlers.append(to_file)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    logging.getLogger("benchmirt").setLevel(logging.DEBUG)
    for noisy in ("jax", "matplotlib", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _record


def _record(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    """Log an exception that nothing caught: by its sentence if it is a fault of the input, else in full."""
    if isinstance(fault, InputError):
        log.error("%s", fault)
    elif issubclass(kind, KeyboardInterrupt):
        log.error("interrupted")
    else:
        log.critical("the job failed: %s", str(fault) or kind.__name__, exc_info=(kind, fault, trace))


def start(job: Any, *, devices: int | None = None, gpus: int = 0) -> launch.Launch:
    """Begin a script: set up its log and prepare the process for JAX.

    Parameters
    ----------
    job
        The ``snakemake`` object of the script: its ``log``, ``rule``, ``wildcards`` and ``threads`` are read.
    devices
        Host devices that JAX shows [as many as threads].
    gpus
        GPUs that the job asked for, on which JAX then runs.

    Returns
    -------
    benchmirt.launch.Launch
        The threads, devices, cores and cache of this process.
    """
    set_up(job.log[0] if job.log else None, " ".join([job.rule, *map(str, job.wildcards)]))
    launched = launch.prepare(job.threads, devices=devices, gpus=gpus)
    log.debug(
        "started with %d threads on cores %s", launched.threads, launched.cores or "of the system's choice"
    )
    atexit.register(_end, launched)
    return launched


def _end(launched: launch.Launch) -> None:
    """Log what the job took."""
    usage = launched.usage()
    log.debug("ended after %s s, %s MB at most", usage["seconds"], usage["peak_mb"])


def closing(results: str | Path, targets: Iterable[str] = ()) -> str:
    """Say what came of a run and where it is, for its end.

    Parameters
    ----------
    results
        The results folder.
    targets
        What was asked for. New models' scores, an extended calibration, a short form, the trial of adaptive tests and another
        study have their own line; for anything else the line tells of the report and of how many claims had which verdict.

    Returns
    -------
    str
        One or two lines, or an empty string where there is nothing to tell (yet).
    """
    asked = {
        "score": ("Scores of the new models", "scores/scores.csv"),
        "extend": ("Calibration with the new questions", "extended/calibration.json"),
        "shortform": ("List of questions", "shortform/shortform.csv"),
        "adaptive": ("Adaptive tests on trial", "adaptive/curve.csv"),
        "compare_studies": ("The two studies", "compared/abilities.csv"),
    }
    told = [f"{asked[target][0]}: {Path(results, asked[target][1])}" for target in targets if target in asked]
    if told:
        return "\n".join(told)
    page, table = Path(results, "report", "index.html"), Path(results, "claims", "claims.csv")
    if not (page.is_file() and table.is_file()):
        return ""
    with table.open(encoding="utf-8", newline="") as stream:
        counts = Counter(row.get("corrected_verdict") or "without verdict" for row in csv.DictReader(stream))
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"Report: {page}\nVerdicts: {verdicts or 'none'}"


def failures(snakemake_logs: Iterable[str | Path]) -> str:
    """Say for each failed job of a run which log tells why, and what that log says.

    Parameters
    ----------
    snakemake_logs
        Snakemake's own logs of the run.

    Returns
    -------
    str
        A line per failed job with the path of its log, and below it the errors in that log.
    """
    lines: list[str] = []
    for file in snakemake_logs:
        text = Path(file).read_text(encoding="utf-8", errors="replace") if Path(file).is_file() else ""
        for job in re.finditer(
            r"^Error in rule (\S+?):\n(?:[ \t]+.*\n)*?[ \t]+log: (.+?)(?: \(check log file.*)?$",
            text,
            flags=re.MULTILINE,
        ):
            lines.append(f"Failed: {job[1]}; its log is {job[2]}")
            said = Path(job[2]).read_text(encoding="utf-8") if Path(job[2]).is_file() else ""
            lines += [
                f"  {fault}"
                for fault in re.findall(r"^\S+ \S+ (?:ERROR|CRITICAL) \S+: (.+)", said, flags=re.MULTILINE)
            ]
    return "\n".join(lines)
