"""The profiles for clusters, tried on a real Slurm of one node: a study to its report, and what goes wrong on clusters."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from one_node import OneNode, lacking
from tiny import Finished, Run, Workflow, write_study

pytestmark = [
    pytest.mark.skipif(lacking() is not None, reason=str(lacking())),
    pytest.mark.xdist_group("slurm"),
    pytest.mark.slow,
]

# the profiles wait for busy clusters, a test need not
WAITS = ("--seconds-between-status-checks", "1", "--latency-wait", "5")
QUICK = {
    "slurm": ("--slurm-init-seconds-before-status-checks", "2", *WAITS),
    "cluster-generic": WAITS,
}
FITTED = "results/dimensions/published/consensus.nc"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNode]:
    """Start Slurm for the tests of this file."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    node = OneNode(tmp_path_factory.mktemp("slurm"))
    yield node
    node.stop()


def command(workflow: Workflow, folder: Path, profile: str, *arguments: str) -> list[str]:
    """Return the command as a user would give it."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(workflow.home / "Snakefile")),
        *("--profile", str(workflow.home / "workflow" / "profiles" / profile), *QUICK[profile]),
        *("--directory", str(folder), "--nocolor", *arguments),
    ]


def call(workflow: Workflow, folder: Path, profile: str, *arguments: str) -> Run:
    """Run the study through a profile and wait."""
    done = subprocess.run(
        command(workflow, folder, profile, *arguments),
        env={**os.environ, "PYTHONPATH": str(workflow.home / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    return Run(done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize("profile", list(QUICK))
def test_a_study_runs_to_its_report(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path, finished: Finished
) -> None:
    write_study(tmp_path)
    run = call(workflow, tmp_path, profile)
    assert run.code == 0, run.text[-4000:]
    assert (tmp_path / "results" / "report" / "index.html").stat().st_size > 100_000
    assert len(re.findall(r"submitted with SLURM jobid|Submitted job", run.text)) > 20
    here = finished.folder / "results"
    for name in (
        "claims/claims.csv",
        "fits/corrected/seed1.nc",
        "fits/nuts/seed0.nc",
        "dimensions/number.json",
    ):
        assert (tmp_path / "results" / name).read_bytes() == (here / name).read_bytes(), name
    again = call(workflow, tmp_path, profile)
    assert "Nothing to be done" in again.text


def sabotage(workflow: Workflow, script: str, line: str) -> tuple[Path, bytes]:
    """Put a line before what a script of the copy does; returns what to put back."""
    path = workflow.home / "scripts" / f"{script}.py"
    whole = path.read_bytes()
    path.write_bytes(
        whole.replace(b"    logs.start(snakemake)\n", f"    logs.start(snakemake)\n    {line}\n".encode())
    )
    assert path.read_bytes() != whole
    return path, whole


def test_a_job_killed_for_its_memory_gets_twice_as_much(
    workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    write_study(tmp_path)
    mark = tmp_path / "was-killed"
    line = f"import os; open({str(mark)!r}, 'x') and os.kill(os.getpid(), 9) if not os.path.exists({str(mark)!r}) else 0"
    path, whole = sabotage(workflow, "matrix", line)
    try:
        run = call(workflow, tmp_path, "slurm", "results/matrix/published/items.parquet")
    finally:
        path.write_bytes(whole)
    assert run.code == 0, run.text[-4000:]
    asked = [
        int(found)
        for found in re.findall(r"^rule matrix:.*?mem_mb=(\d+)", run.text, flags=re.DOTALL | re.MULTILINE)
    ]
    assert sorted(set(asked)) == [1500, 3000]  # what failed jobs said is printed too


def test_a_failed_job_shows_its_sentence_and_its_log(
    workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    write_study(tmp_path)
    table = tmp_path / "second.csv"
    lines = table.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",2"
    table.write_text("\n".join(lines) + "\n")
    run = call(workflow, tmp_path, "slurm", "--retries", "0", "results/matrix/published/items.parquet")
    assert run.code != 0
    assert re.search(r"second\.csv.*row 4.*found.*2", run.text), run.text[-3000:]
    assert "results/logs/collect/second.log" in run.text
    assert "Traceback" not in run.text


def test_a_killed_driver_goes_on_without_loss(workflow: Workflow, slurm: OneNode, tmp_path: Path) -> None:
    write_study(tmp_path)
    driver = subprocess.Popen(
        command(workflow, tmp_path, "slurm", FITTED),
        env={**os.environ, "PYTHONPATH": str(workflow.home / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    first = tmp_path / "results" / "matrix" / "published" / "items.parquet"
    until = time.monotonic() + 300
    while not first.exists() and time.monotonic() < until:
        time.sleep(0.5)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert first.exists()
    while subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout:  # what was submitted ends
        time.sleep(1)
    written = first.stat().st_mtime_ns
    assert call(workflow, tmp_path, "slurm", "--unlock").code == 0
    run = call(workflow, tmp_path, "slurm", FITTED)
    assert run.code == 0, run.text[-4000:]
    assert (tmp_path / FITTED).is_file()
    assert first.stat().st_mtime_ns == written
