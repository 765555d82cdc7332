"""The real client in a process of its own, as a job has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback import Hub

REPO = "org/outcomes"
TOKEN = "hf_" + "T0kenThatNobodyMayRead" * 2
JOB = """
import json, sys
from pathlib import Path
from benchmirt import hub, logs
given = json.loads(sys.argv[1])
logs.set_up(given["log"], "fetch")
wanted = hub.DataSet(given["repo"], given["revision"], tuple(given["files"]), given["sha256"])
hub.fetch(wanted, Path(given["folder"]), Path(given["record"]), hub.Patience(**given["patience"]))
"""


@dataclass(frozen=True)
class Fetched:
    """What a fetch said, and what it left."""

    code: int
    text: str
    folder: Path
    record: dict[str, Any] | None

    @property
    def files(self) -> dict[str, bytes]:
        """The files in the folder."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }

    def refused(self, *words: str) -> str:
        """Check that it failed in one sentence with all of the words and left nothing; return the sentence."""
        assert self.code == 1, self.text
        assert "Traceback" not in self.text, self.text
        told = [line for line in self.text.splitlines() if "of the hub" in line]
        assert len(told) == 1, self.text
        assert [word for word in words if word not in told[0]] == [], told[0]
        assert not self.folder.exists()
        assert self.record is None
        assert [path.name for path in self.folder.parent.iterdir()] in ([], ["log"])
        return told[0]


class Client:
    """The real client in a fresh process, with a cache of its own."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self.home = home
        self.hub = hub
        self.cache = home / "hf"

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables of a process that knows this hub only."""
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE"))
        }
        return {
            **own,
            "HF_HOME": str(self.cache),
            "HF_ENDPOINT": self.hub.address,
            "NO_PROXY": "127.0.0.1",
            **more,
        }

    def fetch(
        self,
        revision: str = "main",
        *,
        repo: str = REPO,
        files: tuple[str, ...] = (),
        sha256: Mapping[str, str] | None = None,
        out: str = "out",
        variables: Mapping[str, str] | None = None,
        **patience: float,
    ) -> Fetched:
        """Fetch into the folder ``{out}/files``."""
        home = self.home / out
        home.mkdir(exist_ok=True)
        given = {
            "repo": repo,
            "revision": revision,
            "files": files,
            "sha256": dict(sha256 or {}),
            "folder": str(home / "files"),
            "record": str(home / "record.json"),
            "log": str(home / "log"),
            "patience": {"tries": 3, "wait": 0.01, "longest_wait": 0.05, "timeout": 5.0, **patience},
        }
        done = subprocess.run(
            [sys.executable, "-c", JOB, json.dumps(given)],
            env=self.environment(**(variables or {})),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        record = home / "record.json"
        return Fetched(
            done.returncode,
            done.stdout + done.stderr,
            home / "files",
            json.loads(record.read_text()) if record.is_file() else None,
        )

    def blobs(self) -> list[Path]:
        """Files of content in the cache, unfinished ones included."""
        return [path for path in self.cache.glob("hub/*/blobs/*") if path.is_file()]
