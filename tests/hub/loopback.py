"""A hub on this machine: the true layout of its addresses, headers and redirects, and faults on demand.

Small files come from the hub itself, large ones (LFS) by a redirect from a store at another address, as on the real
one. Every request is kept, so that tests can say what was asked and who was told the token.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 3
"""Files in one page of a listing; the hub has 1,000."""


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Asked:
    """A request: where, how, and with which headers."""

    server: str
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Repo:
    """A data set: its commits, its branches, which files are large, and who may read it."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    gated: bool = False
    private: bool = False
    readers: set[str] = field(default_factory=set)
    listed_wrong: set[str] = field(default_factory=set)

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Make a commit on a branch and return its name."""
        name = hashlib.sha1(repr((sorted(files.items()), len(self.commits))).encode()).hexdigest()
        self.commits[name] = files
        self.branches[branch] = name
        return name

    def of(self, revision: str) -> str | None:
        return self.branches.get(revision, revision if revision in self.commits else None)


@dataclass
class Fault:
    """What goes wrong, where (a regular expression of ``METHOD path``) and how many times more."""

    where: str
    times: int
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    damage: bool = False
    lag: float = 0.0
    commit: str | None = None


class Hub:
    """A hub with its store; start it with :func:`running`."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens: set[str] = set()
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        self.address = ""
        self.store = ""

    def fail(self, where: str, times: int = 1, **how: Any) -> None:
        """Let something go wrong."""
        self.faults.append(Fault(where, times, **how))

    def fault(self, method: str, path: str) -> Fault | None:
        """Take the first fault that is due here."""
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.where, f"{method} {path}"):
                    fault.times -= 1
                    return fault
        return None

    def requests(self, where: str) -> list[Asked]:
        """Return the requests whose ``METHOD server/path`` holds a regular expression."""
        return [one for one in self.asked if re.search(where, f"{one.method} {one.server}{one.path}")]


class Handler(BaseHTTPRequestHandler, ABC):
    """What both servers share: keeping requests, faults, bodies with ranges."""

    hub: Hub
    called = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.hub.lock:
            self.hub.asked.append(Asked(self.called, self.command, self.path, headers))
        self.due = self.hub.fault(self.command, f"{self.called}{self.path}")
        if self.due and self.due.lag:
            time.sleep(self.due.lag)
        if self.due and self.due.status:
            self.refuse(self.due.status, "", "a fault on demand", **self.due.headers)
            return
        self.serve(urlsplit(self.path).path)

    @abstractmethod
    def serve(self, path: str) -> None:
        """Answer a request for which no fault is due."""

    def head(self, status: int, length: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def refuse(self, status: int, code: str, message: str, **headers: str) -> None:
        body = json.dumps({"error": message}).encode()
        told = {"X_Error_Message": message, "Content_Type": "application/json", **headers}
        if code:
            told["X_Error_Code"] = code
        self.head(status, len(body), **told)
        if self.command != "HEAD":
            self.wfile.write(body)

    def say(self, value: Any, **headers: str) -> None:
        body = json.dumps(value).encode()
        self.head(200, len(body), Content_Type="application/json", **headers)
        self.wfile.write(body)

    def file(self, data: bytes, **headers: str) -> None:
        """Send a file, or the range of it that is asked for; damaged or cut off if that is due."""
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(span[1]) if span else 0
        body = data[start:]
        if self.due and self.due.damage:
            body = bytes(byte ^ 1 for byte in body)
        if span:
            headers["Content_Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self.head(206 if span else 200, len(body), Accept_Ranges="bytes", **headers)
        if self.command == "HEAD":
            return
        if self.due and self.due.cut_after is not None:
            self.wfile.write(body[: self.due.cut_after])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(body)


class HubHandler(Handler):
    """The hub: facts and listings of data sets, and their small files."""

    called = "hub"

    def serve(self, path: str) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.hub.tokens:
            self.refuse(401, "", "Invalid credentials in Authorization header")
            return
        facts = re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree)/(.+?))?", path)
        file = re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        found = facts or file
        repo = self.hub.repos.get(found[1]) if found else None
        if found is None:
            self.refuse(404, "", "Not Found")
            return
        if repo is None or (repo.private and token not in repo.readers):
            self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
            return
        revision = unquote(file[2] if file else (facts[3] if facts and facts[3] else "main"))
        commit = repo.of(revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif file:
            self.resolve(repo, file[1], commit, unquote(file[3]), token)
        elif facts and facts[2] == "tree":
            self.tree(repo, commit)
        else:
            files = [{"rfilename": name} for name in repo.commits[commit]]
            gated = "manual" if repo.gated else False
            self.say(
                {"id": found[1], "sha": commit, "private": repo.private, "gated": gated, "siblings": files}
            )

    def tree(self, repo: Repo, commit: str) -> None:
        """List the files of a commit, a page at a time."""
        names = sorted(repo.commits[commit])
        start = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        entries = []
        for name in names[start : start + PAGE]:
            data = repo.commits[commit][name]
            if name in repo.listed_wrong:
                data = data[:-1] + b"?"
            entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data), "oid": git_hash(data)}
            if name in repo.large:
                entry["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        more = {}
        if start + PAGE < len(names):
            home = f"http://{self.headers['Host']}"
            address = f"{home}{urlsplit(self.path).path}?recursive=True&cursor={start + PAGE}"
            more["Link"] = f'<{address}>; rel="next"'
        self.say(entries, **more)

    def resolve(self, repo: Repo, name: str, commit: str, path: str, token: str) -> None:
        if repo.gated and token not in repo.readers:
            message = f"Access to dataset {name} is restricted."
            self.refuse(403 if token else 401, "GatedRepo", message)
            return
        data = repo.commits[commit].get(path)
        shown = self.due.commit if self.due and self.due.commit else commit
        if data is None:
            self.refuse(404, "EntryNotFound", "Entry not found", X_Repo_Commit=shown)
        elif path in repo.large:
            address = f"{self.hub.store}/{sha256(data)}?X-Signature=secret-signature"
            self.head(
                302,
                0,
                Location=address,
                X_Repo_Commit=shown,
                X_Linked_Etag=f'"{sha256(data)}"',
                X_Linked_Size=str(len(data)),
            )
        else:
            self.file(data, ETag=f'"{git_hash(data)}"', X_Repo_Commit=shown)


class StoreHandler(Handler):
    """The store of large files, by their hashes; it must not be told who asks."""

    called = "store"

    def serve(self, path: str) -> None:
        for repo in self.hub.repos.values():
            for files in repo.commits.values():
                for data in files.values():
                    if sha256(data) == path.strip("/"):
                        self.file(data, ETag=f'"{path.strip("/")}"')
                        return
        self.refuse(404, "", "Not Found")


@contextmanager
def running() -> Iterator[Hub]:
    """Run a hub and its store until the end of the block."""
    hub = Hub()
    servers = []
    for handler in (HubHandler, StoreHandler):
        bound: Callable[..., Any] = type(handler.__name__, (handler,), {"hub": hub})
        server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
    hub.address, hub.store = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
