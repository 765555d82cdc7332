"""Do the dimensions come back: over random seeds, and over independent halves of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from benchmirt.claims.verdict import P_NEEDED, is_trial
from benchmirt.figures import words
from benchmirt.figures.store import truths
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    GREY,
    INK,
    VERMILLION,
    describe,
    house_ticks,
    message,
    printable,
    sheet,
    styled,
)

Floats = NDArray[np.float64]
_MEASURES = (
    ("congruence", "agreement of discriminations (congruence)"),
    ("ability_r", "agreement of abilities (r)"),
)


def _values(table: pd.DataFrame, dimension: int, column: str) -> Floats:
    if column not in table or "dimension" not in table:
        return np.empty(0)
    rows = table.loc[table["dimension"].astype(int) == dimension, column]
    return rows.dropna().to_numpy(dtype=float)


def _null_means(table: pd.DataFrame, dimension: int, column: str) -> Floats:
    """Mean over the splits of each null replicate: what the mean over splits of the data is compared with."""
    if column not in table or "dimension" not in table:
        return np.empty(0)
    rows = table[table["dimension"].astype(int) == dimension]
    if "replicate" in rows:
        rows = rows.groupby("replicate", sort=True)[[column]].mean()
    return rows[column].dropna().to_numpy(dtype=float)


def _panel(axes: Axes, splits: Floats, null: Floats, threshold: object, low: float) -> None:
    bins = np.linspace(low, 1.0, 31).tolist()
    if null.size:
        weights = np.full(null.size, 1 / null.size)
        axes.hist(
            np.clip(null, low, 1),
            bins=bins,
            weights=weights,
            color="#C4C4C4",
            edgecolor="white",
            linewidth=0.2,
        )
    if splits.size:
        weights = np.full(splits.size, 1 / splits.size)
        axes.hist(
            np.clip(splits, low, 1),
            bins=bins,
            weights=weights,
            histtype="step",
            color=BLUE,
            linewidth=1.0,
            zorder=3,
        )
        axes.axvline(float(splits.mean()), color=BLUE, linewidth=1.6, zorder=4)
    if words.is_number(threshold):
        axes.axvline(float(threshold), color=INK, linewidth=0.9, linestyle=(0, (2, 1.5)), zorder=4)  # type: ignore[arg-type]
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(low - 0.01, 1.01)
    axes.margins(y=0.15)
    house_ticks(axes.xaxis)


def answer(entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Say with symbol and words whether a dimension comes back, and why not where the two measures do not show it.

    Parameters
    ----------
    entry
        The dimension's entry of `stability.json`.
    result
        Content of `stability.json`.
    """
    passes = entry.get("passes")
    if passes is None:
        return f"{words.NOTHING} not tested"
    without = _without(entry, result)
    if is_trial(result):
        return f"{words.verdict('exploratory').symbol} a trial, no verdict"
    if passes:
        return f"{words.verdict('reproduced').symbol} comes back{without}"
    shown = [entry.get("p_congruence"), entry.get("p_ability_r")]
    hidden = ""
    if all(words.is_number(p) and float(p) <= P_NEEDED for p in shown if p is not None):
        beside = {"lineages": entry.get("p_lineages"), "scrambled items": entry.get("p_scrambled")}
        failing = [
            f"{what} {words.probability(p)}"
            for what, p in beside.items()
            if words.is_number(p) and float(p or 0) > P_NEEDED
        ]
        hidden = f" ({', '.join(failing)})" if failing else ""
    return f"{words.verdict('not reproduced').symbol} does not come back{without}{hidden}"


def _without(entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Say which dimensions were left out of the fits on which one before them was judged."""
    most = int(result.get("dims") or 0)
    left_out = [str(k) for k in range(int(entry.get("dims") or most) + 1, most + 1)]
    return f" without dimension{'s' * (len(left_out) > 1)} {words.listing(left_out)}" if left_out else ""


def halves(
    axes: Axes,
    entry: Mapping[str, Any],
    result: Mapping[str, Any],
    splits: pd.DataFrame,
    null: pd.DataFrame,
) -> None:
    """One dimension's congruence between halves beside chance, in its own axes."""
    dimension = int(entry["dimension"])
    data, chance = _values(splits, dimension, "congruence"), _null_means(null, dimension, "congruence")
    low = float(np.floor(min([0.0, *data, *chance]) * 10) / 10)
    _panel(axes, data, chance, (entry.get("null_congruence") or {}).get("q99"), low)
    mean = (
        f"mean {words.number(entry.get('congruence_mean'))}, {words.probability(entry.get('p_congruence'))}"
    )
    axes.set_title(f"Dimension {dimension}\n{answer(entry, result)}\n{mean}", fontsize=6.6)
    axes.set_xlabel("congruence of halves")


@styled
def stability(result: Mapping[str, Any], splits: pd.DataFrame, null: pd.DataFrame) -> Figure:
    """Agreement of each dimension between disjoint halves of models and items, beside agreement by chance.

    Parameters
    ----------
    result
        Content of `stability.json`.
    splits
        Table of splits (`split`, `dimension`, `congruence`, `ability_r`).
    null
        The same for data simulated without the dimension (`replicate`).
    """
    dimensions = sorted(result.get("dimensions") or [], key=lambda d: int(d["dimension"]))
    if not dimensions:
        return message(f"Stability could not be judged. {result.get('why_not') or ''}")
    figure = sheet(4.8, 0.62 + 1.15 * len(dimensions))
    grid = figure.subplots(len(dimensions), 2, squeeze=False, sharex="col")
    said = []
    everything = {
        column: [
            *splits.get(column, pd.Series(dtype=float)).dropna().tolist(),
            *null.get(column, pd.Series(dtype=float)).dropna().tolist(),
        ]
        for column, _ in _MEASURES
    }
    for row, entry in enumerate(dimensions):
        dimension = int(entry["dimension"])
        for place, (column, label) in enumerate(_MEASURES):
            axes = grid[row, place]
            low = float(np.floor(min([0.0, *everything[column]]) * 10) / 10)
            limit = entry.get(f"null_{column}") or {}
            _panel(
                axes,
                _values(splits, dimension, column),
                _null_means(null, dimension, column),
                limit.get("q99"),
                low,
            )
            p = words.probability(entry.get("p_congruence" if column == "congruence" else "p_ability_r"))
            mean = f"mean {words.number(entry.get(f'{column}_mean'))}, {p}"
            title = f"Dimension {dimension}: {answer(entry, result)}\n{mean}" if place == 0 else f"\n{mean}"
            axes.set_title(title, fontsize=7)
            if row == len(dimensions) - 1:
                axes.set_xlabel(label)
        said.append(
            f"dimension {dimension} congruence {words.number(entry.get('congruence_mean'))} "
            f"({words.probability(entry.get('p_congruence'))}), abilities r {words.number(entry.get('ability_r_mean'))} "
            f"({words.probability(entry.get('p_ability_r'))}): {answer(entry, result)}"
        )
    figure.legend(
        handles=[
            Line2D([], [], color=BLUE, linewidth=1.0, label="pairs of halves"),
            Line2D([], [], color=BLUE, linewidth=1.8, label="their mean"),
            Patch(facecolor="#C4C4C4", label="means by chance"),
            Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (2, 1.5)), label="99 % point of chance"),
        ],
        loc="outside lower left",
        ncols=4,
        fontsize=6.2,
    )
    return describe(figure, f"Agreement of independent halves beside chance: {'; '.join(said)}.")


@styled
def reproducibility(table: pd.DataFrame) -> Figure:
    """Agreement of each seed with the consensus of all the other seeds.

    Parameters
    ----------
    table
        `reproducibility.csv`: `fit`, `seed`, `dimension`, `congruence`, `ability_r`, `converged`.
    """
    table = table[table["congruence"].notna()]
    if table.empty:
        return message("There are no seeds to compare.")
    fits = list(dict.fromkeys(table["fit"].astype(str)))
    dims = sorted(table["dimension"].astype(int).unique().tolist())
    looks = dict(zip(fits, ((VERMILLION, "s"), (BLUE, "o"), (INK, "^"), (GREY, "D")), strict=False))
    figure = sheet(COLUMN, 0.62 + 0.28 * len(dims) * max(len(fits), 1) * 1.15 + 0.55)
    axes = figure.add_subplot()
    rows: list[str] = []
    height = 0
    for dimension in dims:
        for fit in fits:
            part = table[(table["dimension"].astype(int) == dimension) & (table["fit"].astype(str) == fit)]
            if part.empty:
                continue
            values = part["congruence"].to_numpy(dtype=float)
            settled = truths(part["converged"]) if "converged" in part else np.ones(len(part), dtype=bool)
            jitter = np.linspace(-0.22, 0.22, len(part)) if len(part) > 1 else np.zeros(1)
            colour, marker = looks.get(fit, (GREY, "D"))
            axes.scatter(
                values[settled],
                height + jitter[settled],
                s=13,
                c=colour,
                marker=marker,
                linewidths=0,
                zorder=3,
            )
            axes.scatter(
                values[~settled],
                height + jitter[~settled],
                s=15,
                c=colour,
                marker="x",
                linewidths=1.0,
                zorder=3,
            )
            axes.plot(
                [values.mean()] * 2, [height - 0.36, height + 0.36], color=colour, linewidth=1.2, zorder=2
            )
            rows.append(f"dimension {dimension}, {printable(words.fit_name(fit))}")
            height += 1
    axes.set_yticks(range(height), rows)
    axes.set_ylim(height - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    lowest = float(table["congruence"].min())
    start = float(np.floor(min(lowest, 0.9) * 10 - 1e-9) / 10)
    axes.set_xlim(start, 1.0 + (1 - start) * 0.04)
    if start <= 0.85:
        axes.axvspan(0.95, 1.0, color="#F0F0F0", zorder=0, linewidth=0)
    house_ticks(axes.xaxis)
    axes.set_xlabel("congruence with the other seeds")
    handles = [
        Line2D([], [], color=GREY, marker="o", linestyle="none", markersize=3.6, label="a seed"),
        Line2D([], [], color=GREY, linewidth=1.2, label="mean"),
    ]
    if "converged" in table and not truths(table["converged"]).all():
        handles.append(
            Line2D(
                [],
                [],
                color=GREY,
                marker="x",
                linestyle="none",
                markersize=4,
                label="a seed that did not settle",
            )
        )
    if start <= 0.85:
        handles.append(Patch(facecolor="#F0F0F0", label=".95 and more"))  # type: ignore[arg-type]
    figure.legend(handles=handles, loc="outside lower left", ncols=4, fontsize=6.2)
    means = table.groupby(["dimension", "fit"], sort=True)["congruence"].agg(["mean", "min", "count"])
    said = "; ".join(
        f"dimension {row['dimension']}, {words.fit_name(str(row['fit']))}: mean {words.number(row['mean'])}, "
        f"lowest {words.number(row['min'])} over {words.plural(int(row['count']), 'seed')}"
        for row in means.reset_index().to_dict("records")
    )
    return describe(figure, f"Agreement of each seed with the consensus of the others. {said}.")
