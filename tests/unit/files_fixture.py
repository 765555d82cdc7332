"""A study of result files below a folder: write them, collect them, look at outcomes and messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from benchmirt import config, sources
from benchmirt.errors import InputError
from benchmirt.files import read_json

Row = dict[str, Any]
Cell = tuple[int | None, str | None, int | None]


class Files:
    """Files in ``in/`` below a folder, and what collecting them gives in ``out/``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.out = home / "out"
        self.rules: str | None = None

    def put(self, name: str, content: Any) -> Path:
        """Write a file: bytes and texts as they are, a list of objects in a .jsonl as lines, all else as JSON."""
        path = self.home / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith((".jsonl", ".jsonlines")):
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def declare(self, **rules: Row | list[Row]) -> None:
        """Write scoring rules, which come before the ordinary ones; ``_`` in a format's name stands for ``-``."""
        entries = {
            kind.replace("_", "-"): one if isinstance(one, list) else [one] for kind, one in rules.items()
        }
        self.rules = "own.yaml"
        (self.home / self.rules).write_text(yaml.safe_dump(entries), encoding="utf-8")

    def study(self, kind: str = "files", by: str = "folder", name: str = "in", **keys: Any) -> config.Study:
        """Load a study whose only source is the folder ``in``, or a file in it."""
        source: Row = {"name": "raw", "kind": kind, by: name}
        if self.rules is not None:
            source["scoring"] = [self.rules, "workflow/resources/scoring.yaml"]
        small = {"claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}
        return config.load({"study": "s", "sources": [source], **small, **keys}, self.home)

    def collect(self, *arguments: Any, **keys: Any) -> list[Path]:
        """Collect the source; return the shards."""
        study = self.study(*arguments, **keys)
        shards = []
        for batch in sources.plan(study.sources[0], study):
            made = sources.collect(study.sources[0], study, self.out, batch.name)
            assert {path.parent for path in made} == {self.out / batch.name}
            shards += [self.out / batch.name / f"{shard}.parquet" for shard in batch.shards]
        assert all(shard.is_file() for shard in shards)
        return shards

    def table(self, *arguments: Any, **keys: Any) -> pd.DataFrame:
        """Collect the source; return the rows of all shards."""
        return pd.concat(
            [pd.read_parquet(shard) for shard in self.collect(*arguments, **keys)], ignore_index=True
        )

    def cells(self, *arguments: Any, model: str | None = None, **keys: Any) -> dict[str, Cell]:
        """Collect; return question -> (outcome, reason, published outcome) of the only model, or of one."""
        frame = self.table(*arguments, **keys)
        model = model or frame["model"].unique().tolist()[0]
        own = frame[frame["model"] == model].astype(object).where(frame.notna(), None)
        return {row.question_id: (row.outcome, row.reason, row.published) for row in own.itertuples()}

    def models(self) -> list[str]:
        """Return the models that were collected."""
        return sorted(manifest["model"] for manifest in self.manifests())

    def manifests(self) -> list[dict[str, Any]]:
        """Return the manifests of what was collected."""
        return [one for path in sorted(self.out.rglob("*.manifests.json")) for one in read_json(path)]

    def items(self) -> pd.DataFrame:
        """Return the facts of the items that were collected."""
        return pd.concat([pd.read_parquet(path) for path in self.out.rglob("items.parquet")]).set_index(
            "question_id"
        )

    def fault(self, *arguments: Any, **keys: Any) -> str:
        """Collect what is wrong; return the sentence."""
        with pytest.raises(InputError) as caught:
            self.collect(*arguments, **keys)
        assert not self.out.exists(), "nothing is written when a file is wrong"
        message = str(caught.value)
        assert "\n" not in message
        return message


def outcomes(cells: Mapping[str, Cell]) -> list[int | None]:
    """Return the outcomes alone, in order."""
    return [cell[0] for cell in cells.values()]


def reasons(cells: Mapping[str, Cell]) -> list[str | None]:
    """Return the reasons alone, in order."""
    return [cell[1] for cell in cells.values()]


def holds(message: str, words: Iterable[str]) -> None:
    """Check that a message holds some words."""
    for word in words:
        assert word in message, message
