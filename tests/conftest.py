"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Give the folder of the Snakefile."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Give the folder of the real response tables; skip where there is none."""
    folder = Path(os.environ.get("BENCHMIRT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "korbench" / "responses.csv.gz").is_file():
        pytest.skip("no real response tables (set BENCHMIRT_DATA to their folder)")
    return folder


@pytest.fixture
def minimal_config() -> Callable[..., dict[str, Any]]:
    """Give a function that returns the smallest configuration of a table source, plus the given keys.

    ``minimal_config("data.csv", items="items.csv", filter={...})``: the keys of a source go to the source.
    """
    of_source = {
        *("items", "models_file", "columns", "model_columns"),
        *("benchmark", "options", "inverted", "prefix"),
    }

    def make(responses: str | Path = "responses.csv", **keys: Any) -> dict[str, Any]:
        source = {"name": "mine", "kind": "table", "responses": str(responses)}
        for key in of_source & set(keys):
            value = keys.pop(key)
            source[key.removesuffix("_file")] = str(value) if isinstance(value, Path) else value
        return {"study": "test", "sources": [source], "claims": {"file": []}, **keys}

    return make


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[..., dict[str, Path]]:
    """Give a function that writes a response table, and facts of items and models, to a folder.

    The frames hold ``question_id`` (responses, items) and ``model`` (models) as columns. Returns the paths.
    """

    def write(
        responses: pd.DataFrame,
        items: pd.DataFrame | None = None,
        models: pd.DataFrame | None = None,
        folder: str = ".",
    ) -> dict[str, Path]:
        home = tmp_path / folder
        home.mkdir(parents=True, exist_ok=True)
        paths = {}
        for name, frame in (("responses", responses), ("items", items), ("models", models)):
            if frame is not None:
                paths[name] = home / f"{name}.csv"
                frame.to_csv(paths[name], index=False)
        return paths

    return write
