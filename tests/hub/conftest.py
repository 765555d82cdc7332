"""Fixtures of the hub: the loopback one, and the real client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from job import REPO, TOKEN, Client
from loopback import Hub, Repo, running


@pytest.fixture
def hub() -> Iterator[Hub]:
    """Give a hub with one data set: a small table, a large one, and a data card."""
    with running() as one:
        repo = Repo(large={"big.csv"})
        repo.commit(
            {
                "README.md": b"# Simulated outcomes\n",
                ".gitattributes": b"*.csv filter=lfs\n",
                "small.csv": b"question_id,a\nq1,1\n",
                "big.csv": b"question_id,a\n" + b"".join(b"q%d,1\n" % number for number in range(40_000)),
                "deep/er/notes.txt": b"made up\n",
            }
        )
        one.repos[REPO] = repo
        one.tokens.add(TOKEN)
        yield one


@pytest.fixture
def client(tmp_path: Path, hub: Hub) -> Iterator[Client]:
    """Give a client; afterwards no file holds the token or the signature of an address, whatever happened."""
    one = Client(tmp_path, hub)
    yield one
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != one.cache / "token":
            assert TOKEN.encode() not in path.read_bytes(), path
            assert b"secret-signature" not in path.read_bytes(), path
    assert all("authorization" not in asked.headers for asked in hub.asked if asked.server == "store")
