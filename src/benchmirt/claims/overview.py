"""All claims at a glance: one row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmirt.files import write_csv

__all__ = ["COLUMNS", "table", "write_table"]

COLUMNS = (
    "claim",
    "kind",
    "statement",
    "published",
    "as_published_estimate",
    "as_published_verdict",
    "corrected_estimate",
    "corrected_low",
    "corrected_high",
    "level",
    "interval_kind",
    "region",
    "corrected_verdict",
    "why",
    "models",
    "items",
    "lineages",
)


def table(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per record, in the given order, with `COLUMNS`."""
    rows = []
    for record in records:
        published, corrected = record["as_published"], record["corrected"]
        low, high = corrected["interval"] or (None, None)
        rows.append(
            (
                record["claim"],
                record["kind"],
                record["statement"],
                record["published"]["text"],
                published["estimate"],
                published["verdict"],
                corrected["estimate"],
                low,
                high,
                corrected["level"],
                corrected["interval_kind"],
                corrected["region"]["text"] if corrected["region"] else None,
                corrected["verdict"],
                corrected["why"],
                record["sample"]["models"],
                record["sample"]["items"],
                record["sample"]["lineages"],
            )
        )
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = ["models", "items", "lineages"]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def write_table(records: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write ``claims.csv``."""
    write_csv(table(records), path)
