"""The profiles for clusters, tried on a real Slurm of one node: a study to its report, and what goes wrong on clusters."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import Repo, running
from one_node import OneNode, lacking
from tiny import Finished, Run, Workflow, write_config, write_study

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
ITEMS = "results/matrix/published/items.parquet"
FITTED = "results/dimensions/published/consensus.nc"
both_profiles = pytest.mark.parametrize("profile", list(QUICK))


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


def surroundings(workflow: Workflow, **variables: str) -> dict[str, str]:
    """Return the environment of a call, with the copy's library."""
    return {**os.environ, "PYTHONPATH": str(workflow.home / "src"), **variables}


def call(workflow: Workflow, folder: Path, profile: str, *arguments: str, **variables: str) -> Run:
    """Run the study through a profile and wait."""
    done = subprocess.run(
        command(workflow, folder, profile, *arguments),
        env=surroundings(workflow, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    return Run(done.returncode, done.stdout + done.stderr)


@contextmanager
def meddled(workflow: Workflow, *scripts: str, line: str) -> Iterator[None]:
    """Put a line before all that scripts of the copy do, for a while."""
    whole = {path: path.read_bytes() for path in (workflow.home / "scripts" / f"{one}.py" for one in scripts)}
    start = b'if __name__ == "__main__":\n'
    try:
        for path, text in whole.items():
            assert start in text
            path.write_bytes(text.replace(start, start + f"    {line}\n".encode()))
        yield
    finally:
        for path, text in whole.items():
            path.write_bytes(text)


def noting(variable: str, folder: Path) -> str:
    """Return a line that notes what a variable says in each job, in a file named after the job's rule."""
    return f"import os; open({str(folder)!r} + '/' + snakemake.rule, 'w').write(os.environ.get({variable!r}, ''))"


@both_profiles
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
    jobs = slurm.jobs(tmp_path)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert not [job for job in jobs if "TresPerJob" in job], "this study asks for no GPU"
    again = call(workflow, tmp_path, profile)
    assert "Nothing to be done" in again.text


def test_many_seeds_go_in_as_one_array(workflow: Workflow, slurm: OneNode, tmp_path: Path) -> None:
    config = write_study(tmp_path)
    write_config(tmp_path, {**config, "fits": {**config["fits"], "seeds": 5}})
    run = call(workflow, tmp_path, "slurm", FITTED)
    assert run.code == 0, run.text[-4000:]
    jobs = slurm.jobs(tmp_path)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    arrays = Counter(job["ArrayJobId"] for job in jobs if "ArrayJobId" in job)
    assert list(arrays.values()) == [4], "all but the first seed, which goes before the others"


@both_profiles
def test_a_gpu_is_asked_for_by_the_jobs_that_want_it(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    """The node's GPU is none, so the fit runs on the CPU, as JAX's variable says; the scheduler does not know."""
    config = write_study(tmp_path)
    write_config(tmp_path, {**config, "fits": {**config["fits"], "gpus": 1}})
    notes = tmp_path / "notes"
    notes.mkdir()
    fit = "results/fits/corrected/seed0.nc"
    with meddled(workflow, "matrix", "fit", line=noting("CUDA_VISIBLE_DEVICES", notes)):
        run = call(workflow, tmp_path, profile, fit, JAX_PLATFORMS="cpu")
    assert run.code == 0, run.text[-4000:]
    assert (tmp_path / fit).is_file()
    assert {path.name: path.read_text() for path in notes.iterdir()} == {"matrix": "", "fit_first": "0"}
    asked = Counter(job.get("TresPerJob", "none") for job in slurm.jobs(tmp_path))
    assert asked == {"none": 3, "gres:gpu:1": 1}


@both_profiles
def test_fetching_stays_where_the_command_was_given(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    config = write_study(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    with running() as hub:
        repo = hub.repos["org/outcomes"] = Repo()
        commit = repo.commit({"second.csv": (tmp_path / "second.csv").read_bytes()})
        second = {**config["sources"][1], "responses": {"hub": "org/outcomes", "revision": commit}}
        write_config(tmp_path, {**config, "sources": [second]})
        with meddled(workflow, "fetch", "collect", line=noting("SLURM_JOB_ID", notes)):
            run = call(
                workflow,
                tmp_path,
                profile,
                "results/outcomes/second/shard0.parquet",
                HF_ENDPOINT=hub.address,
                HF_HOME=str(tmp_path / "cache"),
                NO_PROXY="127.0.0.1",
            )
    assert run.code == 0, run.text[-4000:]
    assert (notes / "fetch").read_text() == ""
    assert (notes / "collect").read_text().isdigit()
    assert len(slurm.jobs(tmp_path)) == 1


@both_profiles
def test_a_job_killed_for_its_memory_gets_twice_as_much(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    write_study(tmp_path)
    mark = str(tmp_path / "was-killed")
    line = (
        f"import os; open({mark!r}, 'x') and os.kill(os.getpid(), 9) if not os.path.exists({mark!r}) else 0"
    )
    with meddled(workflow, "matrix", line=line):
        run = call(workflow, tmp_path, profile, ITEMS)
    assert run.code == 0, run.text[-4000:]
    asked = Counter((job["JobState"], job["MinMemoryNode"]) for job in slurm.jobs(tmp_path))
    # two jobs of collecting, the one of the matrix that was killed, and the one in its place
    assert asked == {("COMPLETED", "1000M"): 2, ("FAILED", "1500M"): 1, ("COMPLETED", "3000M"): 1}


@both_profiles
def test_a_failed_job_shows_its_sentence_and_its_log(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    write_study(tmp_path)
    table = tmp_path / "second.csv"
    lines = table.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",2"
    table.write_text("\n".join(lines) + "\n")
    run = call(workflow, tmp_path, profile, "--retries", "0", ITEMS)
    assert run.code != 0
    assert re.search(r"second\.csv.*row 4.*found.*2", run.text), run.text[-3000:]
    assert "results/logs/collect/second.log" in run.text
    assert "Traceback" not in run.text


@both_profiles
def test_a_killed_driver_goes_on_without_loss(
    profile: str, workflow: Workflow, slurm: OneNode, tmp_path: Path
) -> None:
    write_study(tmp_path)
    driver = subprocess.Popen(
        command(workflow, tmp_path, profile, FITTED),
        env=surroundings(workflow),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    first = tmp_path / ITEMS
    until = time.monotonic() + 300
    while not first.exists() and time.monotonic() < until:
        time.sleep(0.5)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert first.exists()
    while subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout:  # what was submitted ends
        time.sleep(1)
    written = first.stat().st_mtime_ns
    assert call(workflow, tmp_path, profile, "--unlock").code == 0
    run = call(workflow, tmp_path, profile, FITTED)
    assert run.code == 0, run.text[-4000:]
    assert (tmp_path / FITTED).is_file()
    assert first.stat().st_mtime_ns == written
