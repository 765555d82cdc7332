"""The launcher: what it sets takes effect, and it refuses to come too late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmirt import launch

CORES = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


def run(code: str, **environment: str) -> Any:
    """Run Python code in a fresh process and return what it prints as JSON."""
    clean = {key: value for key, value in os.environ.items() if key not in {"XLA_FLAGS", "JAX_PLATFORMS"}}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def test_jax_sees_devices_platform_and_cache(tmp_path: Path) -> None:
    seen = run(
        "import json; from benchmirt import launch; launch.prepare(1, devices=3); import jax\n"
        "cache = jax.config.jax_compilation_cache_dir\n"
        "print(json.dumps([len(jax.devices()), jax.default_backend(), cache]))",
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert seen[:2] == [3, "cpu"]
    assert Path(seen[2]).is_relative_to(tmp_path)
    assert "jax-" in seen[2]


def test_compiled_code_is_kept_in_the_cache(tmp_path: Path) -> None:
    code = (
        "import os; from benchmirt import launch; launch.prepare(1); import jax, jax.numpy as jnp\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)\n"
        "jax.jit(lambda x: jnp.tanh(x @ x.T).sum())(jnp.ones((8, 8)))\n"
        "print(sum(len(files) for _, _, files in os.walk(os.environ['JAX_COMPILATION_CACHE_DIR'])))"
    )
    first = run(code, XDG_CACHE_HOME=str(tmp_path))
    assert first > 0
    assert run(code, XDG_CACHE_HOME=str(tmp_path)) == first


def test_what_the_user_sets_stays(tmp_path: Path) -> None:
    seen = run(
        "import json, os; from benchmirt import launch; launch.prepare(1, devices=2)\n"
        "names = ['XLA_FLAGS', 'JAX_COMPILATION_CACHE_DIR', 'JAX_PLATFORMS']\n"
        "print(json.dumps([os.environ[name] for name in names]))",
        XLA_FLAGS="--xla_force_host_platform_device_count=5",
        JAX_COMPILATION_CACHE_DIR=str(tmp_path),
        JAX_PLATFORMS="cpu,",
    )
    assert seen == ["--xla_force_host_platform_device_count=5", str(tmp_path), "cpu,"]


def test_too_late_once_jax_is_imported() -> None:
    message = run(
        "import json, jax; from benchmirt import launch\n"
        "try: launch.prepare(1)\n"
        "except RuntimeError as fault: print(json.dumps(str(fault)))"
    )
    assert message == "launch.prepare must run before jax is imported"


@pytest.mark.parametrize(("threads", "devices"), [(0, None), (1, 0), (-2, 1)])
def test_senseless_numbers_are_refused(threads: int, devices: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        launch.prepare(threads, devices=devices)


@pytest.mark.skipif(len(CORES) < 2, reason="one core only")
def test_jobs_side_by_side_get_different_cores_and_free_them(tmp_path: Path) -> None:
    """With two cores, the first two processes hold one each; the third finds none free and stays unbound."""
    code = (
        "import json, os, sys; from benchmirt import launch\n"
        f"os.sched_setaffinity(0, {CORES[:2]})\n"
        "got = launch.prepare(1)\n"
        "print(json.dumps([list(got.cores), sorted(os.sched_getaffinity(0))]), flush=True)\n"
        "sys.stdin.read()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    running = []
    answers = []
    for _ in range(3):
        job = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(job)
        assert job.stdout is not None
        answers.append(json.loads(job.stdout.readline()))
    for job in running:
        job.communicate("", timeout=60)
    bound = [cores for cores, _ in answers[:-1]]
    assert sorted(core for cores in bound for core in cores) == CORES[:2]
    assert all(cores == affinity for cores, affinity in answers[:-1])
    assert answers[-1] == [[], CORES[:2]]
    again = run(
        "import json; from benchmirt import launch; print(json.dumps(launch.prepare(1).cores))",
        TMPDIR=str(tmp_path),
    )
    assert again == CORES[:1]


def test_usage_tells_time_memory_and_cores() -> None:
    began = launch.Launch(
        threads=2, devices=2, cores=(0, 1), cache=Path("cache"), started=time.monotonic() - 3
    )
    usage = began.usage()
    assert 3 <= float(str(usage["seconds"])) < 60
    assert 10 < float(str(usage["peak_mb"])) < 1e5
    assert usage["cores"] == [0, 1]
    assert usage["threads"] == 2
    assert usage["cpu"]
