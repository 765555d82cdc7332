"""The data card: what a study rests on, in one file that can go with any number taken from it.

Sources with formats, revisions, licences and hashes; models with lineages; benchmarks with what was dropped and what is
missing, and why; conflicts by kind; whether what is missing goes with ability; whether anything is simulated. Made from
result files alone; names only, never a text of a question or an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmirt import directions, joining, outcomes
from benchmirt.config import Source, Study
from benchmirt.files import read_json, write_json
from benchmirt.outcomes import REASONS

__all__ = ["build", "card"]

_NAMES = ("benchmark", "model", "source", "question_id", "other_id")
_MODEL = ("model", "canonical", "publisher", "lineage", "lineage_evidence", "observed", "mean", "drop_reason")


def build(
    outcome_files: Sequence[str | Path],
    honest: str | Path,
    published: str | Path,
    study: Study,
    out: str | Path,
) -> Path:
    """Write the data card of a study.

    Parameters
    ----------
    outcome_files
        ``shard{n}.parquet`` files, or folders of them, as for :func:`benchmirt.matrix.build`.
    honest, published
        The folders of the two matrices.
    study
        The study; its sources' licences and data sets are used.
    out
        The file.
    """
    write_json(card(outcome_files, Path(honest), Path(published), study), out)
    return Path(out)


def card(outcome_files: Sequence[str | Path], honest: Path, published: Path, study: Study) -> dict[str, Any]:
    """Return the data card of a study, as :func:`build` writes it."""
    summary = read_json(honest / "summary.json")
    manifests = _manifests(outcome_files)
    items, models = (pd.read_parquet(honest / f"{name}.parquet") for name in ("items", "models"))
    coverage = _table(honest / "coverage.csv")
    return {
        "study": study.name,
        "simulated": summary["simulated"],
        "sources": [
            _source(study.source(name), own, summary, _fetched(honest.parents[1] / "fetched" / name))
            for name, own in manifests.items()
        ],
        "models": _models(models),
        "benchmarks": _benchmarks(items, coverage),
        "outcomes": {
            "observed": summary["observed"],
            "missing": {reason: int(coverage[reason].sum()) for reason in REASONS if coverage[reason].any()},
        },
        "conflicts": {
            policy: joining.counts(_table(folder / "conflicts.csv"))
            for policy, folder in (("honest", honest), ("published", published))
        },
        "missingness": _records(_table(honest / "missingness.csv")),
        "directions": directions.table(coverage, items, study),
        "rescoring": _rescoring(manifests),
        "roads": read_json(honest.parents[1] / "roads" / "summary.json") if study.published_road else None,
        "provenance": summary["provenance"],
    }


def _table(path: Path) -> pd.DataFrame:
    """Read a table of the matrix; a model or a benchmark may be called `NA` or `1`."""
    return pd.read_csv(path, dtype=dict.fromkeys(_NAMES, "str"), keep_default_na=False, na_values=[""])


def _manifests(outcome_files: Sequence[str | Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the manifests by source."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in map(Path, outcome_files):
        for shard in sorted(file.glob("shard*.parquet")) if file.is_dir() else [file]:
            for manifest in outcomes.manifests(shard):
                found.setdefault(str(manifest["source"]), []).append(manifest)
    return found


def _fetched(home: Path) -> list[dict[str, Any]]:
    """Return the data sets of the hub that a source was fetched from: name, revision as asked, commit, address."""
    whole = home / "folder.json"  # one data set, or one for each model
    records = [*sorted(home.glob("*.json")), *([] if whole.exists() else sorted(home.glob("folder/*.json")))]
    keys = ("data_set", "revision", "commit", "pinned", "address")
    return [{key: record[key] for key in keys} for record in map(read_json, records)]


def _source(
    source: Source,
    manifests: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
    fetched: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return what the card says of a source."""
    files: Mapping[str, Any] = next(
        (one["files"] for one in summary["sources"] if one["source"] == source.name), {}
    )
    rows = sum(manifest["counts"]["items"] for manifest in manifests)
    known = [manifest.get("content_known") for manifest in manifests]
    return {
        "source": source.name,
        "kind": source.kind,
        "formats": sorted({name for one in manifests for name in one.get("formats", [source.kind])}),
        "licence": source.options.get("licence"),
        "fetched": fetched,
        "files": files,
        "models": len(manifests),
        "rows": rows,
        "rows_that_tell_their_question": None if None in known else sum(map(int, filter(None, known))),
        "failures_known": any(manifest["failures_known"] for manifest in manifests),
        "scorer": manifests[0]["scorer"],
        "scorer_version": manifests[0]["scorer_version"],
        "simulated": any(manifest["simulated"] for manifest in manifests),
    }


def _models(models: pd.DataFrame) -> dict[str, Any]:
    kept = models[models["kept"]]
    return {
        "number": len(models),
        "kept": len(kept),
        "lineages": int(kept["lineage"].nunique()),
        "lineages_given": int((kept["lineage_evidence"] != "none: own cluster").sum()),
        "dropped": _by_reason(models),
        "list": _records(models[list(_MODEL)]),
    }


def _benchmarks(items: pd.DataFrame, coverage: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what the card says of each benchmark: items, those dropped, and outcomes missing by reason."""
    counted = ["items", "observed", *REASONS]
    cells = {
        str(name): {column: int(own[column].sum()) for column in counted}
        for name, own in coverage.groupby("benchmark", sort=False)
    }
    found = []
    for name, own in items.groupby("benchmark", sort=False):
        row = cells[str(name)]
        options = own["options"].dropna()
        found.append(
            {
                "benchmark": str(name),
                "category": next(iter(own["category"].dropna()), None),
                "items": len(own),
                "kept": int(own["kept"].sum()),
                "dropped": _by_reason(own),
                "outcomes": row["observed"],
                "missing": {reason: row[reason] for reason in REASONS if row[reason]},
                "share_missing": 1 - row["observed"] / row["items"],
                "options": [int(options.min()), int(options.max())] if len(options) else None,
                "inverted": int(own["inverted"].sum()),
                "testlets": int(own["testlet"].nunique()),
                "scored_as": sorted(own["scored_as"].dropna().unique()),
            }
        )
    return found


def _by_reason(table: pd.DataFrame) -> dict[str, int]:
    return {str(reason): int(number) for reason, number in table["drop_reason"].value_counts().items()}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as objects, None where a value is missing."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def _rescoring(manifests: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return how often grading again changed the logged outcome, by source, benchmark and scorer."""
    total: dict[tuple[str, str, str], dict[str, int]] = {}
    for source, own in manifests.items():
        for manifest in own:
            for one in manifest.get("rescored", ()):
                counts = total.setdefault((source, one["benchmark"], one["scorer"]), {})
                for key, number in one["counts"].items():
                    counts[key] = counts.get(key, 0) + number
    return [
        {"source": source, "benchmark": benchmark, "scorer": scorer, **counts}
        for (source, benchmark, scorer), counts in sorted(total.items())
    ]
