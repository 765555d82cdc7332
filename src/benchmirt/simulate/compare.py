"""Hold the results of a simulated study against its truth. Nothing else reads the truth.

Only finished tables are read (claims.csv, model_statistics.csv, item_statistics.csv, labels.json), so that this
module, too, shares no code with what it judges.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmirt import files
from benchmirt.simulate import design

__all__ = ["abilities", "correlations", "directions", "expected", "verdicts", "write"]

_NAMES = ("reasoning", "safety")
_FORMS = {"planted": "twin", "planted_pure": "twin_pure"}
_COLUMNS = {"corrected": "corrected_verdict", "as_published": "as_published_verdict"}


def expected(variant: str, scale: str = "test", table: str | Path | None = None) -> pd.DataFrame:
    """Return what must come out for a variant: claim, column, expected (a tuple of verdicts), why.

    Parameters
    ----------
    variant
        A variant of the twin or of the tables (``planted`` is the twin's ``twin``).
    scale
        Rows for one scale stand before rows for any.
    table
        ``expected_verdicts.csv``; by default that of the workflow.
    """
    path = design.resources() / "expected_verdicts.csv" if table is None else Path(table)
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = rows[(rows["variant"] == _FORMS.get(variant, variant)) & rows["scale"].isin(["", scale])]
    rows = rows.sort_values("scale", ascending=False, kind="stable").drop_duplicates(["claim", "column"])
    rows["expected"] = [tuple(text.split("|")) for text in rows["expected"]]
    return rows.sort_index()[["claim", "column", "expected", "why"]].reset_index(drop=True)


def verdicts(claims: pd.DataFrame, variant: str, scale: str = "test") -> pd.DataFrame:
    """Compare verdicts with the expected ones.

    Parameters
    ----------
    claims
        The table claims.csv.
    variant, scale
        As for `expected`.

    Returns
    -------
    DataFrame
        claim, column, expected, found (missing if the claim was not judged), agrees (bool), false_claim (bool: the
        claim came out as true although the planted truth says that it is not), why.
    """
    rows = expected(variant, scale)
    by_claim = claims.set_index("claim")
    found = [
        str(by_claim.loc[row["claim"], _COLUMNS[row["column"]]]) if row["claim"] in by_claim.index else None
        for _, row in rows.iterrows()
    ]
    rows["found"] = found
    rows["agrees"] = [verdict in allowed for verdict, allowed in zip(found, rows["expected"], strict=True)]
    rows["false_claim"] = [
        verdict in ("reproduced", "matches") and verdict not in allowed
        for verdict, allowed in zip(found, rows["expected"], strict=True)
    ]
    return rows[["claim", "column", "expected", "found", "agrees", "false_claim", "why"]]


def _ability_columns(models: pd.DataFrame, labels: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Return name of ability -> (column, orientation), for the abilities that were named."""
    named = {}
    for entry in labels["dimensions"]:
        if entry.get("name"):
            column = f"ability_{entry['ability']}"
            if column in models.columns:
                named[str(entry["name"]).lower()] = (column, float(entry.get("orientation", 1)))
    return named


def abilities(models: pd.DataFrame, labels: dict[str, Any], truth: pd.DataFrame) -> pd.DataFrame:
    """Compare estimated with true abilities.

    Parameters
    ----------
    models
        The table model_statistics.csv.
    labels
        labels.json.
    truth
        ``simulated_truth_models.csv``.

    Returns
    -------
    DataFrame
        Per named ability: models, r (with the true ability of that name), r_other (with the other one), coverage
        (share of 95 % intervals that hold the true value, once scale and rotation are taken from a regression of
        the estimates on the true abilities, since these are free).
    """
    known = truth[["model", *_NAMES]].rename(columns={name: f"true_{name}" for name in _NAMES})
    joined = models.merge(known, on="model", validate="one_to_one")
    true = joined[[f"true_{name}" for name in _NAMES]].to_numpy(float)
    rows = []
    for name, (column, orientation) in _ability_columns(models, labels).items():
        if name not in _NAMES:
            continue
        estimate = orientation * joined[column].to_numpy(float)
        seen = np.isfinite(estimate)
        basis = np.column_stack([np.ones(len(true)), true])
        mapped = basis @ np.linalg.lstsq(basis[seen], estimate[seen], rcond=None)[0]
        ends = orientation * joined[[f"{column}_low", f"{column}_high"]].to_numpy(float)
        inside = (mapped >= ends.min(axis=1)) & (mapped <= ends.max(axis=1))
        own = _NAMES.index(name)
        rows.append(
            {
                "ability": name,
                "models": int(seen.sum()),
                "r": float(np.corrcoef(estimate[seen], true[seen, own])[0, 1]),
                "r_other": float(np.corrcoef(estimate[seen], true[seen, 1 - own])[0, 1]),
                "coverage": float(inside[seen].mean()),
            }
        )
    return pd.DataFrame(rows, columns=["ability", "models", "r", "r_other", "coverage"])


def correlations(models: pd.DataFrame, labels: dict[str, Any], truth: pd.DataFrame) -> pd.DataFrame:
    """Compare the correlations of benchmark means and abilities with the planted ones.

    Parameters
    ----------
    models, labels
        As for `abilities`.
    truth
        ``simulated_truth_correlations.csv``.

    Returns
    -------
    DataFrame
        Per benchmark and named ability: true (of the true means with the true abilities), found (of the observed
        means with the estimated abilities), difference.
    """
    rows = []
    for name, (column, orientation) in _ability_columns(models, labels).items():
        if name not in _NAMES:
            continue
        for _, row in truth.iterrows():
            average = f"{row['benchmark']}_average"
            if average not in models.columns:
                continue
            pair = models[[average, column]].dropna().to_numpy(float)
            found = orientation * float(np.corrcoef(pair.T)[0, 1])
            true = float(row[f"achieved_r_{name}"])
            rows.append(
                {
                    "benchmark": row["benchmark"],
                    "ability": name,
                    "true": true,
                    "found": found,
                    "difference": found - true,
                }
            )
    return pd.DataFrame(rows, columns=["benchmark", "ability", "true", "found", "difference"])


def directions(
    items: pd.DataFrame,
    labels: dict[str, Any],
    truth: pd.DataFrame,
    correlation: float = design.ABILITY_CORRELATION,
) -> pd.DataFrame:
    """Compare the directions of the sets of items that claims speak of.

    Parameters
    ----------
    items
        The table item_statistics.csv.
    labels
        labels.json.
    truth
        ``simulated_truth_items.csv``.
    correlation
        Of the true abilities.

    Returns
    -------
    DataFrame
        Per benchmark, unit and named ability: items, true and found median angle to the ability's axis in degrees.
    """
    axes = np.array([[1.0, 0.0], [correlation, np.sqrt(1 - correlation**2)]])
    common = truth[truth["kind"] == "ordinary"].copy()
    vector = common[["a_reasoning", "a_safety"]].to_numpy(float) @ axes
    length = np.linalg.norm(vector, axis=1)
    with np.errstate(invalid="ignore"):
        cosine = (vector @ axes.T) / length[:, None]
    for k, name in enumerate(_NAMES):
        common[f"true_{name}"] = np.degrees(np.arccos(np.clip(cosine[:, k], -1, 1)))
    keep = ["question_id", "unit", "true_reasoning", "true_safety"]
    joined = items.merge(common[keep], on="question_id", validate="one_to_one")
    rows = []
    for entry in labels["dimensions"]:
        name = str(entry.get("name") or "").lower()
        column = f"angle_to_{entry['ability']}"
        if name not in _NAMES or column not in joined.columns:
            continue
        angle = joined[column] if float(entry.get("orientation", 1)) > 0 else 180 - joined[column]
        frame = joined.assign(found=angle).dropna(subset=["found", f"true_{name}"])
        for (benchmark, unit), part in frame.groupby(["benchmark", "unit"], sort=False):
            rows.append(
                {
                    "benchmark": benchmark,
                    "unit": unit,
                    "ability": name,
                    "items": len(part),
                    "true": float(part[f"true_{name}"].median()),
                    "found": float(part["found"].median()),
                }
            )
    return pd.DataFrame(rows, columns=["benchmark", "unit", "ability", "items", "true", "found"])


def write(results: str | Path, truth_dir: str | Path, out_dir: str | Path) -> dict[str, Path]:
    """Compare a finished simulated study with its truth and write the tables.

    Parameters
    ----------
    results
        The study's results folder, with claims/claims.csv and dimensions/ in it.
    truth_dir
        The folder of its truth.
    out_dir
        Folder for ``simulated_verdicts.csv``, ``simulated_abilities.csv``, ``simulated_correlations.csv`` and
        ``simulated_directions.csv``.

    Returns
    -------
    dict
        verdicts, abilities, correlations, directions -> path.
    """
    home, truth, out = Path(results), Path(truth_dir), Path(out_dir)
    settings = files.read_json(truth / "simulated_truth.json")
    labels = files.read_json(home / "dimensions" / "labels.json")
    models = pd.read_csv(home / "dimensions" / "model_statistics.csv")
    items = pd.read_csv(home / "dimensions" / "item_statistics.csv")
    claims = pd.read_csv(home / "claims" / "claims.csv", dtype=str, keep_default_na=False)
    scale = "test" if settings["scale"] is None else f"{settings['scale']:g}"
    found = verdicts(claims, settings["variant"], scale)
    found["expected"] = ["|".join(allowed) for allowed in found["expected"]]
    tables = {
        "verdicts": found,
        "abilities": abilities(models, labels, pd.read_csv(truth / "simulated_truth_models.csv")),
        "correlations": correlations(models, labels, pd.read_csv(truth / "simulated_truth_correlations.csv")),
        "directions": directions(items, labels, pd.read_csv(truth / "simulated_truth_items.csv")),
    }
    paths = {name: out / f"simulated_{name}.csv" for name in tables}
    for name, frame in tables.items():
        files.write_csv(frame, paths[name])
    return paths
