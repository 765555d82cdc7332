"""How often intervals held the truth over many small studies, each rate with its own Monte-Carlo interval."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmirt.errors import InputError
from benchmirt.resampling import clopper_pearson

__all__ = ["BORDER", "append", "coverage", "markdown", "read", "seeds"]

BORDER = "border"
"""Name of the plan whose truth lies on borders of claims."""
_ON = 1e-3  # a truth so near to the border lies on it, since what is sought by repetition is not met to the last digit
_PART = 0.25
_LEVEL = 0.99
_EVERY = ("directions", "correlations")
_KEY = ["plan", "claim", "part"]
_WRONG = "Wrong at the border, at most"


def append(rows: pd.DataFrame, path: Path) -> None:
    """Add the rows of a twin to a file, in the order of its columns.

    Raises
    ------
    InputError
        If the file has other columns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        columns = list(pd.read_csv(path, nrows=0).columns)
        if set(columns) != set(rows.columns):
            raise InputError(
                "this is no table of these twins",
                file=path,
                found=", ".join(columns),
                expected=", ".join(rows.columns),
                todo="Give another file to --rows, or remove this one",
            )
        rows = rows[columns]
    text = rows.to_csv(index=False, header=not path.exists(), lineterminator="\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(text)  # at once, so that a killed run leaves whole twins


def read(path: Path) -> pd.DataFrame:
    """Read the rows of all twins."""
    return pd.read_csv(path, keep_default_na=True)


def seeds(path: Path, plan: str) -> set[int]:
    """Return the seeds of the twins of a plan that stand in a file; none without a file."""
    if not path.exists():
        return set()
    rows = read(path)
    return {int(seed) for seed in rows.loc[rows["plan"] == plan, "twin"].unique()}


def _with_truths(rows: pd.DataFrame) -> pd.DataFrame:
    """Fill in truths that are expectations over twins: of gains of prediction, and of differences of a pair."""
    ends = {end: pd.to_numeric(rows[end]) for end in ("region_low", "region_high")}
    filled = rows.assign(**ends)
    gain, pair = filled["statistic"].str.endswith("_gain"), filled["statistic"] == "difference"
    for which, column in ((gain, "estimate"), (pair, "truth")):
        alike = filled[which].groupby([*_KEY, "questions"], dropna=False)
        filled.loc[which, "truth"] = alike[column].transform("mean")
    filled = filled[filled["low"].notna() & filled["truth"].notna()]
    filled["above"] = filled["low"] > filled["truth"]
    filled["below"] = filled["high"] < filled["truth"]
    filled["inside"] = ~filled["above"] & ~filled["below"]
    return filled


def _sides(rows: pd.DataFrame) -> list[str]:
    """Return on which sides of the truth an interval would be wrong at a border of its region; both for statements on all."""
    if rows["claim"].iloc[0] in _EVERY:
        return ["above", "below"]
    ends = {"above": "region_low", "below": "region_high"}
    return [side for side, end in ends.items() if rows[end].notna().any()] or list(ends)


def _rates(rows: pd.DataFrame, twins: int) -> dict[str, Any]:
    """Return the rates of one statement over twins, one row each."""
    count, inside = len(rows), int(rows["inside"].sum())
    low, high = clopper_pearson(inside, count, _LEVEL)
    wrong = max(int(rows[side].sum()) for side in _sides(rows))
    outside = (rows["truth"] <= rows["region_low"] + _ON) | (rows["truth"] >= rows["region_high"] - _ON)
    return {
        "twins": count,
        "without_interval": twins - count,
        "coverage": inside / count,
        "coverage_low": low,
        "coverage_high": high,
        "above": float(rows["above"].mean()),
        "below": float(rows["below"].mean()),
        # an upper bound at 99 % is the upper end of a two-sided interval at 98 %
        "wrong_at_border": clopper_pearson(wrong, count, 2 * _LEVEL - 1)[1],
        "outside_region": int(outside.sum()),
        "reproduced_outside": int((outside & (rows["verdict"] == "reproduced")).sum()),
        "truth": float(rows["truth"].mean()),
        "bias": float((rows["estimate"] - rows["truth"]).mean()),
        "half_width": float(((rows["high"] - rows["low"]) / 2).mean()),
    }


def _simultaneous(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row per twin: whether all its simultaneous intervals hold."""
    by_twin = rows.groupby("twin", as_index=False)
    return by_twin.agg(
        {
            "inside": "all",
            "above": "any",
            "below": "any",
            "truth": "mean",
            "estimate": "mean",
            "low": "mean",
            "high": "mean",
            "claim": "first",
            "region_low": "first",
            "region_high": "first",
            "verdict": "first",
        }
    )


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Count how often intervals hold the truth.

    Parameters
    ----------
    rows
        Of all twins, as :func:`benchmirt.proof.trial.run` gives them.

    Returns
    -------
    DataFrame
        A row per plan and statement, those of single benchmarks after the shipped claims': plan, claim, part, statistic, twins
        with an interval and without, coverage with Clopper and Pearson's 99 % interval, rates of intervals wholly above and
        below the truth, wrong_at_border (99 % upper bound of the rate of `reproduced` if a border of the region lay on the truth;
        of single benchmarks, whose regions have no say, on the worse side), number of twins whose truth lies outside the region
        or on its border and of those with the verdict `reproduced`, mean truth, bias and half-width.
    """
    filled = _with_truths(rows)
    twins: dict[Hashable, int] = rows.groupby("plan")["twin"].nunique().to_dict()
    at_once = filled["statistic"] == "simultaneous r"
    found = [
        {
            "plan": plan,
            "claim": claim,
            "part": part,
            "statistic": own["statistic"].iloc[0],
            **_rates(own, twins[plan]),
        }
        for (plan, claim, part), own in filled[~at_once].groupby(_KEY, sort=False)
    ]
    for plan, own in filled[at_once].groupby("plan", sort=False):
        what = {"plan": plan, "claim": "C8", "part": "all 32 at once", "statistic": "simultaneous r"}
        found.append({**what, **_rates(_simultaneous(own), twins[plan])})
    table = pd.DataFrame(found)
    table["every"] = table["claim"].isin(_EVERY)
    number = pd.to_numeric(table["claim"].str.extract(r"^C(\d+)$")[0])
    order = table.assign(number=number).sort_values(
        ["plan", "every", "number"], kind="stable", ascending=[False, True, True]
    )
    return order.drop(columns=["every", "number"]).reset_index(drop=True)


def _share(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1) if value < 1 else "1"


def _pooled(table: pd.DataFrame) -> Iterator[str]:
    """Yield a line per statement on all benchmarks: the mean over them, and the least with its interval."""
    named = table.assign(name=[part.partition(": ")[2] for part in table["part"]])
    for key, own in named.groupby(["plan", "name"], sort=False):
        plan, name = key if isinstance(key, tuple) else (key, "")
        rows = own.to_dict("records")
        least = min(rows, key=lambda row: row["coverage"])
        yield _line(
            plan,
            name,
            len(rows),
            _share(own["coverage"].mean()),
            f"{_share(least['coverage'])} ({_share(least['coverage_low'])} to {_share(least['coverage_high'])})",
            str(least["part"]).partition(": ")[0],
            _share(own["wrong_at_border"].max()),
        )


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def markdown(table: pd.DataFrame) -> str:
    """Write the table of coverage for readers: the shipped claims' statements, and the benchmarks' in summary.

    Of plans made for borders only the statements are shown that are not true in a good part of the twins.
    """
    planted = (table["outside_region"] > _PART * table["twins"]) & ~table["claim"].isin(_EVERY)
    table = table[(table["plan"] != BORDER) | planted]
    every = table["claim"].isin(_EVERY)
    shipped = ("Plan", "Claim", "Statement", "Twins", "Coverage", "99 % interval", "Above, below", _WRONG)
    of_each = (
        "Plan",
        "Statement on each",
        "Benchmarks",
        "Mean coverage",
        "Least, 99 % interval",
        "Of",
        _WRONG,
    )
    lines = [_line(*shipped), "|---" * len(shipped) + "|"]
    for row in table[~every].to_dict("records"):
        lines.append(
            _line(
                row["plan"],
                row["claim"],
                row["part"],
                row["twins"],
                _share(row["coverage"]),
                f"{_share(row['coverage_low'])} to {_share(row['coverage_high'])}",
                f"{_share(row['above'])}, {_share(row['below'])}",
                _share(row["wrong_at_border"]),
            )
        )
    lines += ["", _line(*of_each), "|---" * len(of_each) + "|", *_pooled(table[every])]
    return "\n".join(lines) + "\n"
