"""Fixtures of whole runs: a copy of the workflow, and a tiny study that has run to its report."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny import PARTS, Finished, Workflow, write_study


@pytest.fixture(scope="session")
def workflow(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Workflow:
    """Give a copy of the workflow that a test may edit, if it puts things back."""
    home = tmp_path_factory.mktemp("workflow")
    for part in PARTS:
        source = repository / part
        if source.is_dir():
            shutil.copytree(
                source, home / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".snakemake")
            )
        else:
            shutil.copy2(source, home / part)
    return Workflow(home)


@pytest.fixture(scope="session")
def finished(workflow: Workflow, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run the tiny study once, from its tables to its report."""
    folder = tmp_path_factory.mktemp("tiny")
    config = write_study(folder)
    run = workflow.call(folder)
    assert run.code == 0, run.text[-6000:]
    return Finished(workflow, folder, config, run)
