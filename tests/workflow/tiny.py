"""A tiny study, and Snakemake as its user calls it."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

PARTS = ("Snakefile", "config.yaml", "workflow", "scripts", "src", "envs")


@dataclass(frozen=True)
class Job:
    """One job of a dry run."""

    rule: str
    outputs: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Run:
    """What one call of Snakemake said."""

    code: int
    text: str

    @property
    def jobs(self) -> list[Job]:
        """The jobs that it ran or, in a dry run, would run, `all` left out."""
        found = []
        blocks = re.split(r"^(?=(?:local)?rule \S+:$)", self.text, flags=re.MULTILINE)
        for block in blocks[1:]:
            name = re.match(r"(?:local)?rule (\S+):", block)
            outputs = re.search(r"^    output: (.+)$", block, flags=re.MULTILINE)
            reason = re.search(r"^    reason: (.+)$", block, flags=re.MULTILINE)
            assert name is not None
            if name[1] != "all":
                found.append(
                    Job(
                        name[1],
                        tuple(outputs[1].split(", ")) if outputs else (),
                        reason[1] if reason else "",
                    )
                )
        return found

    @property
    def rules(self) -> set[str]:
        """Names of the rules that ran or would run."""
        return {job.rule for job in self.jobs}

    @property
    def outputs(self) -> set[str]:
        """First output of each job."""
        return {job.outputs[0] for job in self.jobs}


class Workflow:
    """A workflow in a folder of its own, and the folder of the copy whose library it uses: its own unless told."""

    def __init__(self, home: Path, library: Path | None = None) -> None:
        self.home = home
        self.library = library or home

    def call(self, directory: Path, *arguments: str) -> Run:
        """Call Snakemake in a working directory, with the copy's library."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "snakemake", "--snakefile", str(self.home / "Snakefile")),
                *("--directory", str(directory), "--cores", "2", "--nocolor", *arguments),
            ],
            env={**os.environ, "PYTHONPATH": str(self.library / "src")},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            cwd=directory,
        )
        return Run(done.returncode, done.stdout + done.stderr)

    def dry(self, directory: Path, *arguments: str) -> Run:
        """Say what would run; the call itself must succeed."""
        run = self.call(directory, "-n", *arguments)
        assert run.code == 0, run.text
        return run


def write_config(folder: Path, config: Mapping[str, Any], name: str = "config.yaml") -> Path:
    """Write a configuration into a working directory."""
    path = folder / name
    path.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")
    return path


def write_responses(path: Path, models: list[str], items: int, seed: int, prefix: str) -> None:
    """Write a table of simulated responses: two groups of items, each with an ability of its own."""
    random = np.random.default_rng(seed)
    ability = random.normal(size=(2, len(models)))
    frame = pd.DataFrame({"question_id": [f"{prefix}{item}" for item in range(items)]})
    group = np.arange(items) % 2
    easiness = random.normal(size=items)
    for column, model in enumerate(models):
        chance = 1 / (1 + np.exp(-(1.5 * ability[group, column] + easiness)))
        frame[model] = (random.uniform(size=items) < chance).astype(int)
    frame.to_csv(path, index=False)


MODELS = [f"org{number % 12}/model-{number}@v1" for number in range(36)]
CONFIG: dict[str, Any] = {
    "study": "tiny",
    "title": "A tiny {simulated} study",
    "sources": [
        {"name": "first", "kind": "table", "responses": "first.csv", "items": "first_items.csv"},
        {"name": "second", "kind": "table", "responses": "second.csv", "benchmark": "second"},
    ],
    "fits": {
        "max_dims": 2,
        "seeds": 2,
        "svi": {"steps": 200},
        "em": {"sweeps": 30},
        "nuts": {"run": True, "chains": 2, "warmup": 20, "draws": 20, "max_tree_depth": 4},
    },
    "dimensions": {"splits": 2, "null_replicates": 3, "null_splits": 1, "folds": 2, "bootstrap": 3},
    "claims": {"only": ["C2", "C3", "C9"]},
}


def write_study(folder: Path) -> dict[str, Any]:
    """Write the tiny study (two small tables and their configuration); return the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    config = copy.deepcopy(CONFIG)
    write_responses(folder / "first.csv", MODELS, 60, 1, "a")
    write_responses(folder / "second.csv", MODELS[:30], 40, 2, "b")
    pd.DataFrame(
        {
            "question_id": [f"a{item}" for item in range(60)],
            "benchmark": ["sums" if item % 2 == 0 else "refusals" for item in range(60)],
            "category": ["reasoning" if item % 2 == 0 else "safety" for item in range(60)],
        }
    ).to_csv(folder / "first_items.csv", index=False)
    write_config(folder, config)
    return config


@dataclass(frozen=True)
class Finished:
    """A study that has run to its report."""

    workflow: Workflow
    folder: Path
    config: dict[str, Any]
    run: Run

    def dry(self, *arguments: str, config: Mapping[str, Any] | None = None) -> Run:
        """Say what would run now, with another configuration if one is given."""
        if config is None:
            return self.workflow.dry(self.folder, *arguments)
        write_config(self.folder, config)
        try:
            return self.workflow.dry(self.folder, *arguments)
        finally:
            write_config(self.folder, self.config)
