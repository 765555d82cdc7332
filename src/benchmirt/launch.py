"""Prepare a process for JAX: cores, devices and the compilation cache, all before JAX is imported.

Snakemake's ``threads`` is a promise to the scheduler that XLA does not know of: left alone it starts one
thread per core in every job. :func:`prepare` makes the promise true and does three more things that JAX
reads only once, when it starts: the number of host devices (chains run in parallel only if there is a
device for each), the platform (the CPU, unless the user asks for another by ``JAX_PLATFORMS``), and a
compilation cache that is shared by all jobs. The cache is kept apart per CPU type and JAX version, since
compiled code fits nothing else.

Results are bit-equal from run to run on one CPU type. They do not depend on how many jobs run at once,
because a job's number of threads is its rule's and not the machine's.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmirt.errors import InputError
from benchmirt.provenance import cpu_type

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "PJRT_NPROC",  # the size of XLA's thread pool on the host
)
CUDA_VERSIONS = (12, 13)
_claims: list[IO[str]] = []  # open lock files: a core stays claimed for as long as this process lives


@dataclass(frozen=True)
class Launch:
    """What :func:`prepare` did.

    Attributes
    ----------
    threads
        Threads that numpy's libraries and XLA may use.
    devices
        Host devices that JAX will show.
    cores
        Numbers of the cores that the process is bound to; empty where the system can't bind.
    cache
        Folder of JAX's compilation cache.
    started
        When, on the monotonic clock.
    """

    threads: int
    devices: int
    cores: tuple[int, ...]
    cache: Path
    started: float = field(default_factory=time.monotonic)

    def usage(self) -> dict[str, object]:
        """Seconds since the launch, peak memory in megabytes, threads, devices, cores and CPU type."""
        import resource  # exists on POSIX systems only

        unit = 1e6 if sys.platform == "darwin" else 1e3  # getrusage counts bytes there, else kilobytes
        return {
            "seconds": round(time.monotonic() - self.started, 2),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1),
            "threads": self.threads,
            "devices": self.devices,
            "cores": list(self.cores),
            "cpu": cpu_type(),
        }


def _cpu_features() -> str:
    """Instruction sets of this processor: two virtual machines of one name can differ in them."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return ""
    found = re.search(
        r"^(?:flags|Features)\s*:\s*(.+)$", info.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return found[1] if found else ""


def cache_folder() -> Path:
    """Folder of the compilation cache for this CPU type and JAX version, below the user's cache folder."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(f"{cpu_type()} {_cpu_features()}".encode()).hexdigest()[:8]
    cpu = re.sub(r"[^a-z0-9]+", "-", cpu_type().lower()).strip("-")
    return root / "benchmirt" / f"jax-{importlib.metadata.version('jax')}" / f"{cpu}-{digest}"


def _claim_cores(threads: int) -> tuple[int, ...]:
    """Bind this process to ``threads`` cores that no other prepared process is bound to.

    Cores are claimed by file locks, which the system drops when a process ends, however it ends. Where
    fewer cores are free than asked for (more jobs than cores), the process stays unbound and the scheduler
    shares the time out.
    """
    if sys.platform != "linux":
        return ()
    import fcntl  # exists on POSIX systems only

    folder = Path(tempfile.gettempdir()) / f"benchmirt-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    claimed: dict[int, IO[str]] = {}
    for core in sorted(os.sched_getaffinity(0)):
        if len(claimed) == threads:
            break
        lock: IO[str] = (folder / f"{core}.lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            claimed[core] = lock
    if len(claimed) < threads:
        for lock in claimed.values():
            lock.close()
        return ()
    _claims.extend(claimed.values())
    os.sched_setaffinity(0, claimed)
    return tuple(claimed)


def _prefer_gpu() -> None:
    """Choose JAX's CUDA platform, unless the user has chosen one, and let it take memory as it needs it.

    Raises
    ------
    InputError
        If nothing is installed that JAX could reach a GPU by.
    """
    if "JAX_PLATFORMS" not in os.environ:
        if not any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in CUDA_VERSIONS):
            raise InputError(
                "the fits ask for GPUs (fits.gpus), and JAX's CUDA plugin is not installed here",
                expected="the packages of the extra `gpu`, or JAX_PLATFORMS set to the platform to run on",
                todo="Run `pip install -e '.[gpu]'` in the environment of the jobs, or set fits.gpus to 0",
            )
        os.environ["JAX_PLATFORMS"] = "cuda"
    # else the first of several jobs on one GPU takes three quarters of its memory
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def prepare(threads: int, *, devices: int | None = None, gpus: int = 0) -> Launch:
    """Bind this process to its threads and set what JAX reads when it starts.

    Parameters
    ----------
    threads
        Threads of the job, at least 1.
    devices
        Host devices that JAX shows [``threads``]: parallel chains need one each.
    gpus
        GPUs that the job asked for; with any, JAX runs on them.

    Returns
    -------
    Launch
        What was set. Variables that the user has set (``JAX_PLATFORMS``, ``JAX_COMPILATION_CACHE_DIR``,
        a device count in ``XLA_FLAGS``) are left as they are.

    Raises
    ------
    ValueError
        ``threads`` or ``devices`` is below 1.
    InputError
        GPUs are asked for where JAX could reach none.
    RuntimeError
        JAX is already imported, so that nothing of this would have any effect.
    """
    devices = threads if devices is None else devices
    if threads < 1 or devices < 1:
        raise ValueError(f"threads and devices must be at least 1, not {threads} and {devices}")
    if "jax" in sys.modules:
        raise RuntimeError("launch.prepare must run before jax is imported")
    if gpus:
        _prefer_gpu()
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_force_host_platform_device_count" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={devices}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    cache = Path(os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder())))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("MPLBACKEND", "agg")
    return Launch(threads, devices, _claim_cores(threads), cache)
