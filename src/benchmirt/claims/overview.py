"""All claims at a glance: one row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmirt.claims.verdict import number
from benchmirt.files import write_csv, write_text

__all__ = ["COLUMNS", "latex", "shown", "table", "write_latex", "write_table"]

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


def shown(entry: Mapping[str, Any], unit: str) -> str:
    """Write the estimate of an answer or a part with its interval: ``.85 [.70, .93]``; ``--`` where there is none."""
    if entry["estimate"] is None:
        return "--"
    ending = " degrees" if unit == "degrees" else ""
    low, high = entry["interval"] or (None, None)
    span = "" if low is None or high is None else f" [{number(low, unit)}, {number(high, unit)}]"
    return f"{number(entry['estimate'], unit)}{span}{ending}"


def _longtable(frame: pd.DataFrame, widths: str, caption: str, label: str) -> str:
    text: str = frame.to_latex(
        index=False, escape=True, longtable=True, column_format=widths, caption=caption, label=label
    )
    return text


def latex(records: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Return two LaTeX tables (packages booktabs and longtable): a row per claim, and a row per part of a claim."""
    claims, parts, simulated = [], [], False
    for record in records:
        corrected = record["corrected"]
        simulated |= bool(record["simulated"])
        claims.append(
            {
                "Claim": record["claim"],
                "Statement": record["statement"],
                "Published": record["published"]["text"],
                "As published": record["as_published"]["verdict"],
                "Corrected": shown(corrected, record["unit"]),
                "Verdict": corrected["verdict"],
            }
        )
        parts += [
            {
                "Claim": record["claim"],
                "Part": part["name"],
                "Corrected": shown(part, part["unit"]),
                "True where": part["region"]["text"] if part["region"] else "--",
                "Verdict": part["verdict"],
                "Models": part["models"],
                "Lineages": part["lineages"],
            }
            for part in corrected["parts"]
        ]
    note = " Simulated data: nothing here was measured on any model." if simulated else ""
    return (
        _longtable(
            pd.DataFrame(claims),
            "lp{4.6cm}p{3.6cm}lp{2.6cm}l",
            f"Every claim, as published and corrected, with 95\\% intervals.{note}",
            "tab:claims",
        ),
        _longtable(
            pd.DataFrame(parts),
            "lp{4.6cm}p{3cm}p{3cm}lrr",
            f"Every part of every claim, corrected, with 95\\% intervals.{note}",
            "tab:parts",
        ),
    )


def write_latex(
    records: Iterable[Mapping[str, Any]], claims_path: str | Path, parts_path: str | Path
) -> None:
    """Write ``claims.tex`` and ``parts.tex``."""
    for text, path in zip(latex(records), (claims_path, parts_path), strict=True):
        write_text(text, path)
