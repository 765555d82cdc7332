"""Two studies side by side: abilities of the models that both have, and how the benchmarks moved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmirt.figures import style, words
from benchmirt.figures.style import (
    BLUE,
    GREY,
    PALE,
    VERMILLION,
    WIDE,
    describe,
    house_ticks,
    printable,
    sheet,
    styled,
)

if TYPE_CHECKING:
    from benchmirt.ability.calibration import Calibration
    from benchmirt.ability.compared import Compared

__all__ = ["compared", "draw"]

_MOST = 24  # benchmarks with a row of their own


def _abilities(axes: Axes, entry: pd.Series, models: pd.DataFrame) -> None:
    """Abilities here and there, of the models that both studies have."""
    k = int(entry["ability"])
    shown = models.dropna(subset=[f"ability_{k}_here", f"ability_{k}_there"])
    x, y = (shown[f"ability_{k}_{side}"].to_numpy(dtype=float) for side in ("here", "there"))
    if len(shown):
        low, high = min(x.min(), y.min()), max(x.max(), y.max())
        axes.plot([low, high], [low, high], color=PALE, linewidth=0.8, zorder=1)
        axes.plot(x, y, linestyle="none", marker="o", markersize=3, color=BLUE, alpha=0.8, zorder=2)
    else:
        said = "no model in common" if np.isfinite(entry["r"]) else "not compared"
        axes.text(0.5, 0.5, said, ha="center", va="center", color=GREY, transform=axes.transAxes)
    axes.set_xlabel(printable(words.shorten(f"{entry['name']}, this study", 34)))
    axes.set_ylabel("the same, other study")
    ends = f"{words.number(entry['low'])}, {words.number(entry['high'])}"
    axes.set_title(
        f"correlation of the axes {words.number(entry['r'])} [{ends}]"
        if np.isfinite(entry["r"])
        else "not linked: the common questions do not measure it",
        fontsize=7,
        fontweight="normal",
    )
    for axis in (axes.xaxis, axes.yaxis):
        house_ticks(axis)


def _benchmarks(axes: Axes, table: pd.DataFrame) -> None:
    """Mean change of the expected score by benchmark, and the share of its items that drifted."""
    rows = np.arange(len(table))
    easier = table["easier"].to_numpy(dtype=float)
    axes.axvline(0, color=PALE, linewidth=0.8, zorder=1)
    axes.plot(easier, rows, linestyle="none", marker="D", markersize=3.5, color=VERMILLION, zorder=2)
    width = max(float(np.abs(easier).max()), 0.02)
    drifted, common = (table[name].to_numpy(dtype=np.int64) for name in ("drifted", "common"))
    for row in range(len(table)):
        axes.annotate(
            f"{words.share(drifted[row] / common[row])} of {words.count(int(common[row]))}",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=6.3,
        )
    axes.set_xlim(-1.2 * width, 1.2 * width)
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_yticks(
        rows, [printable(name) for name in words.shorten_all(table["benchmark"].astype(str).tolist(), 24)]
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("easier in the other study (score)")
    axes.set_title(
        "benchmarks by how they moved; at the right, the questions that drifted",
        fontsize=7,
        fontweight="normal",
    )
    house_ticks(axes.xaxis)


@styled
def compared(found: Compared) -> Figure:
    """Draw a panel per ability, and one of the benchmarks."""
    table = (
        found.benchmarks[found.benchmarks["common"] > 0].sort_values("common", ascending=False).head(_MOST)
    )
    table = table.sort_values("easier", ignore_index=True)
    abilities = len(found.abilities)
    upper = 2.2 * -(-abilities // 3)
    lower = 0.9 + 0.16 * len(table)
    figure = sheet(WIDE, upper + lower)
    rows = figure.add_gridspec(2, 1, height_ratios=[upper, lower])
    top, bottom = (figure.add_subfigure(rows[place]) for place in (0, 1))
    grid = np.atleast_1d(top.subplots(-(-abilities // 3), min(abilities, 3), squeeze=False)).ravel()
    for spare in grid[abilities:]:
        spare.set_axis_off()
    for axes, (_, entry) in zip(grid, found.abilities.iterrows(), strict=False):
        _abilities(axes, entry, found.models)
    _benchmarks(bottom.subplots(), table)
    said = "; ".join(
        f"{entry['name']} goes with {entry['other_name']} at {words.number(entry['r'])}"
        if np.isfinite(entry["r"])
        else f"{entry['name']} is not linked"
        for _, entry in found.abilities.iterrows()
    )
    drifted = int(found.items["drifted"].sum())
    return describe(
        figure,
        f"Two studies: {said}. {words.count(drifted)} of {words.plural(len(found.items), 'common item')} drifted.",
    )


def draw(found: Compared, here: Calibration, there: Calibration, stem: Path) -> list[Path]:
    """Draw the comparison and write it in every format; says so if either study is simulated."""
    figure = compared(found)
    title = f"{here.about['study']} and {there.about['study']}"
    if here.simulated or there.simulated:
        figure = style.stamp_simulated(figure, title)
    return style.save(figure, stem, title)
