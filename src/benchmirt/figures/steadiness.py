"""Do the dimensions come back: over random seeds, and over independent halves of the data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from benchmirt.claims.verdict import P_NEEDED, is_trial
from benchmirt.figures import words
from benchmirt.figures.store import truths
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    GREY,
    INK,
    VERMILLION,
    WASH,
    describe,
    house_ticks,
    legend_below,
    message,
    printable,
    sheet,
    styled,
)

Floats = NDArray[np.float64]
_MEASURES = {
    "congruence": "agreement of discriminations (congruence)",
    "ability_r": "agreement of abilities (r)",
}
_CHANCE_GREY = "#7A7A7A"
_DASHED = (0, (2, 1.5))
SAME = 0.95
"""From this congruence on, two factors count as the same (Lorenzo-Seva and ten Berge, 2006)."""


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


_DATA, _CHANCE = 1.0, 0.0
"""Heights of the pairs of halves and of what chance gives."""
_STRIP = 0.38
"""Height of a strip, inches."""
_LETTERS = 72
"""Letters of an answer that stand in a line."""


def _panel(axes: Axes, splits: Floats, null: Floats, threshold: object) -> None:
    """Draw the pairs of halves as marks in a band above those of chance."""
    for values, height, colour in ((null, _CHANCE, _CHANCE_GREY), (splits, _DATA, BLUE)):
        rise = 0.26 * np.sin(2.4 * np.arange(values.size))  # spread in height, the same each time
        axes.scatter(values, height + rise, s=7, c=colour, linewidths=0, alpha=0.6, zorder=3, clip_on=False)
    if splits.size:
        axes.plot(
            [float(splits.mean())] * 2, [_DATA - 0.45, _DATA + 0.45], color=BLUE, linewidth=1.6, zorder=4
        )
    if words.is_number(threshold):
        axes.plot(
            [float(threshold)] * 2,  # type: ignore[arg-type]
            [_CHANCE - 0.45, _DATA + 0.45],
            color=INK,
            linewidth=0.9,
            linestyle=_DASHED,
            zorder=2,
        )
    axes.set_yticks([_DATA, _CHANCE], ["halves", "chance"], fontsize=6.3)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.55, 1.55)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Let an axis reach from the lowest value, or from 0, to 1."""
    axes.set_xlim(min([0.0, *values]) - 0.02, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
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


def height_of(dimensions: int) -> float:
    """Height in inches that :func:`halves` needs for so many dimensions."""
    return 0.65 + (_STRIP + 0.36) * dimensions


def halves(
    figure: FigureBase,
    result: Mapping[str, Any],
    splits: pd.DataFrame,
    null: pd.DataFrame,
    measures: Sequence[str] = ("congruence", "ability_r"),
) -> None:
    """Draw the agreement of halves beside that of chance, a row for each dimension and a column for each measure.

    Parameters
    ----------
    figure
        Where to draw, `height_of` inches high.
    result
        Content of `stability.json`.
    splits, null
        Tables of the splits and of those of data without the dimension.
    measures
        Columns of the tables that are shown.
    """
    entries = _entries(result)
    grid = figure.subplots(len(entries), len(measures), squeeze=False, sharex="col", sharey=True)
    drawn: dict[str, list[float]] = {column: [] for column in measures}
    for entry, panels in zip(entries, grid, strict=True):
        dimension = int(entry["dimension"])
        for axes, column in zip(panels, measures, strict=True):
            data, chance = _values(splits, dimension, column), _null_means(null, dimension, column)
            _panel(axes, data, chance, (entry.get(f"null_{column}") or {}).get("q99"))
            drawn[column] += [*data, *chance]
            mean = words.number(entry.get(f"{column}_mean"))
            axes.set_title(f"mean {mean}, {words.probability(entry.get(f'p_{column}'))}", fontsize=6.6)
        said = textwrap.fill(f"Dimension {dimension}: {answer(entry, result)}", _LETTERS)
        panels[0].set_title(f"{said}\n{panels[0].get_title('left')}", fontsize=6.6)
    for axes, column in zip(grid[-1], measures, strict=True):
        axes.set_xlabel(_MEASURES[column])
        _scale(axes, drawn[column])
    legend_below(
        figure,
        [
            Line2D(
                [], [], color=BLUE, marker="o", linestyle="none", markersize=2.8, label="a pair of halves"
            ),
            Line2D([], [], color=BLUE, linewidth=1.8, label="their mean"),
            Line2D(
                [],
                [],
                color=_CHANCE_GREY,
                marker="o",
                linestyle="none",
                markersize=2.8,
                label="a mean by chance",
            ),
            Line2D([], [], color=INK, linewidth=0.9, linestyle=_DASHED, label="99 % point of chance"),
        ],
        4,
        6.2,
    )


def _entries(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Dimensions of `stability.json` in their order."""
    return sorted(result.get("dimensions") or [], key=lambda entry: int(entry["dimension"]))


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
    entries = _entries(result)
    if not entries:
        return message(f"Stability could not be judged. {result.get('why_not') or ''}")
    figure = sheet(4.8, height_of(len(entries)))
    halves(figure, result, splits, null)
    said = "; ".join(
        f"dimension {entry['dimension']} congruence {words.number(entry.get('congruence_mean'))} "
        f"({words.probability(entry.get('p_congruence'))}), abilities r {words.number(entry.get('ability_r_mean'))} "
        f"({words.probability(entry.get('p_ability_r'))}): {answer(entry, result)}"
        for entry in entries
    )
    return describe(figure, f"Agreement of independent halves beside chance: {said}.")


_NINES = (-1.0, 0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
"""Congruences written on a scale where each step is ten times nearer to 1."""


def _short_of_one(congruence: ArrayLike) -> Floats:
    """By how much congruences fall short of 1, at least a hundred-thousandth."""
    return np.maximum(1.0 - np.asarray(congruence, dtype=float), 1e-5)


def _nines(axes: Axes, values: Floats) -> None:
    """Make an axis logarithmic in what falls short of 1, so that .99 and .999 are as far apart as .9 and .99."""
    short = _short_of_one(values)
    axes.set_xscale("log")
    axes.set_xlim(max(float(short.max()), 0.1) * 1.25, min(float(short.min()), 0.01) * 0.8)
    low, high = sorted(axes.get_xlim())
    shown = [tick for tick in _NINES if low <= 1 - tick <= high]
    digits = {tick: max(1, len(str(tick)) - 2) for tick in shown}
    texts = [words.number(tick, digits[tick]) if tick else "0" for tick in shown]
    axes.set_xticks([1 - tick for tick in shown], texts)
    axes.set_xticks([], minor=True)


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
        return message("No fit was repeated from other random starts, so there are no seeds to compare.")
    fits = list(dict.fromkeys(table["fit"].astype(str)))
    looks = dict(zip(fits, ((VERMILLION, "s"), (BLUE, "o"), (INK, "^"), (GREY, "D")), strict=False))
    groups = [
        (int(dimension), str(fit), part)
        for dimension, own in table.groupby(table["dimension"].astype(int), sort=True)
        for fit, part in own.groupby(own["fit"].astype(str), sort=False)
    ]
    figure = sheet(COLUMN, 0.75 + 0.27 * len(groups))
    axes = figure.add_subplot()
    for height, (_, fit, part) in enumerate(groups):
        _seeds(axes, part, height, *looks.get(fit, (GREY, "D")))
        if height % 2:
            axes.axhspan(height - 0.5, height + 0.5, color=WASH, linewidth=0, zorder=0)
    axes.set_yticks(
        range(len(groups)), [f"dimension {k}, {printable(words.fit_name(fit))}" for k, fit, _ in groups]
    )
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    _nines(axes, table["congruence"].to_numpy(dtype=float))
    axes.axvline(1 - SAME, color=INK, linewidth=0.8, linestyle=_DASHED, zorder=1)
    axes.set_xlabel("congruence with the other seeds")
    _seed_legend(figure, "converged" not in table or bool(truths(table["converged"]).all()))
    means = table.groupby(["dimension", "fit"], sort=True)["congruence"].agg(["mean", "min", "count"])
    said = "; ".join(
        f"dimension {row['dimension']}, {words.fit_name(str(row['fit']))}: mean {words.number(row['mean'])}, "
        f"lowest {words.number(row['min'])} over {words.plural(int(row['count']), 'seed')}"
        for row in means.reset_index().to_dict("records")
    )
    return describe(figure, f"Agreement of each seed with the consensus of the others. {said}.")


def _seeds(axes: Axes, part: pd.DataFrame, height: int, colour: str, marker: str) -> None:
    """Draw the seeds of one fit and dimension at a height, and their mean."""
    values = part["congruence"].to_numpy(dtype=float)
    settled = truths(part["converged"]) if "converged" in part else np.ones(len(part), dtype=bool)
    rise = np.linspace(-0.25, 0.25, len(part)) if len(part) > 1 else np.zeros(1)
    for which, look, size, width in ((settled, marker, 13, 0.0), (~settled, "x", 15, 1.0)):
        axes.scatter(
            _short_of_one(values[which]),
            height + rise[which],
            s=size,
            c=colour,
            marker=look,
            linewidths=width,
            zorder=3,
        )
    mean = float(_short_of_one(values.mean()))
    axes.plot([mean, mean], [height - 0.4, height + 0.4], color=colour, linewidth=1.2, zorder=2)


def _seed_legend(figure: Figure, settled: bool) -> None:
    look: dict[str, Any] = {"color": GREY, "linestyle": "none"}
    handles = [
        Line2D([], [], marker="o", markersize=3.6, label="a seed", **look),
        Line2D([], [], color=GREY, linewidth=1.2, label="mean"),
        Line2D(
            [],
            [],
            color=INK,
            linewidth=0.8,
            linestyle=_DASHED,
            label=f"{words.number(SAME)}: counts as the same",
        ),
    ]
    if not settled:
        handles.insert(1, Line2D([], [], marker="x", markersize=4, label="one that did not settle", **look))
    legend_below(figure, handles, 3, 6.2)
