"""A Slurm of one node on this machine, for the time of a test session."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
GENERIC = CONFIGURATION.with_name("gres.conf")
MARK = "# one node, for benchmirt's tests"
SECONDS = 30


def lacking() -> str | None:
    """Say why no Slurm can be started here, or None."""
    if any(shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None for program in PROGRAMS):
        return "no Slurm: its programs are not installed (Debian: slurm-wlm, munge)"
    if os.getuid() != 0:
        return "no Slurm: its daemons are started by root only"
    if CONFIGURATION.is_file() and MARK not in CONFIGURATION.read_text(encoding="utf-8"):
        return f"no Slurm of the tests' own: this machine has one already ({CONFIGURATION})"
    return None


def _settings(folder: Path, cores: int, megabytes: int) -> str:
    host = socket.gethostname()
    return f"""{MARK}
ClusterName=test
GresTypes=gpu
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MinJobAge=7200
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={megabytes} Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=12:00:00 State=UP
"""


class OneNode:
    """Daemons of munge and Slurm: started in the constructor, ended by :meth:`stop`.

    The node says that it has a GPU, so that jobs can ask for it; there is none behind it.

    Parameters
    ----------
    folder
        An empty folder for their states and logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("state", "spool"):
            (folder / part).mkdir(parents=True)
        runtime = Path("/run/munge")
        runtime.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(runtime, "munge", "munge")
        self._munge = not (runtime / "munge.socket.2").exists()
        if self._munge:
            subprocess.run(
                ["setpriv", "--reuid=munge", "--regid=munge", "--init-groups", "/usr/sbin/munged"], check=True
            )
        CONFIGURATION.parent.mkdir(exist_ok=True)
        CONFIGURATION.write_text(_settings(folder, os.cpu_count() or 1, 8000), encoding="utf-8")
        GENERIC.write_text(f"{MARK}\nName=gpu File=/dev/null\n", encoding="utf-8")
        for daemon in ("slurmctld", "slurmd"):
            subprocess.run([f"/usr/sbin/{daemon}"], check=True)
        until = time.monotonic() + SECONDS
        while "idle" not in self.state():
            if time.monotonic() > until:
                log = (folder / "slurmctld.log").read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"Slurm's node is not idle after {SECONDS} s: {self.state()!r}\n{log}")
            time.sleep(0.5)

    def state(self) -> str:
        """Return what Slurm says of its node."""
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def jobs(self, folder: Path) -> list[dict[str, str]]:
        """Return what Slurm knows of the jobs of a working directory, those that have ended too."""
        done = subprocess.run(["scontrol", "-o", "show", "jobs"], capture_output=True, text=True, check=True)
        every = [
            dict(word.split("=", 1) for word in line.split() if "=" in word)
            for line in done.stdout.splitlines()
        ]
        return [job for job in every if job.get("WorkDir") == str(folder)]

    def stop(self) -> None:
        """End all jobs and daemons, and take the configuration away."""
        subprocess.run(["scancel", "--user", "root"], check=False)
        pids = [self.folder / "slurmd.pid", self.folder / "slurmctld.pid"]
        if self._munge:
            pids.append(Path("/run/munge/munged.pid"))
        for path in pids:
            if path.is_file():
                os.kill(int(path.read_text()), signal.SIGTERM)
        for path in (CONFIGURATION, GENERIC):
            path.unlink(missing_ok=True)
