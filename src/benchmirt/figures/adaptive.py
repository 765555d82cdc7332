"""Errors of the abilities against the number of questions, for every way to choose them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from benchmirt.figures import style, words
from benchmirt.figures.style import (
    BLUE,
    BROWN,
    GREEN,
    GREY,
    INK,
    ORANGE,
    VERMILLION,
    WIDE,
    describe,
    house_ticks,
    legend_below,
    printable,
    sheet,
    styled,
)

__all__ = ["LOOKS", "curves", "draw"]

LOOKS: dict[str, tuple[str, str, Any, str]] = {
    "adaptive": ("adaptive", BLUE, "-", "o"),
    "adaptive_balanced": ("adaptive, benchmarks in proportion", GREEN, "-", "^"),
    "adaptive_limited": ("adaptive, exposure limited", ORANGE, "-", "D"),
    "one_dimensional": ("adaptive, one ability (Fluid Benchmarking)", VERMILLION, "--", "s"),
    "shortform": ("fixed list", BROWN, "-.", "v"),
    "stratified": ("random, benchmarks in proportion", GREY, "--", ""),
    "random": ("random", INK, ":", ""),
}
"""Words, colour, line and marker of each method."""
BANDS = ("adaptive", "random")
"""Methods whose 95 % intervals are drawn; the others' overlap too much to be told apart."""


@styled
def curves(curve: pd.DataFrame, labels: Sequence[str]) -> Figure:
    """Draw the root mean squared error of each ability.

    Parameters
    ----------
    curve
        ``curve.csv``.
    labels
        Names of the abilities.

    Returns
    -------
    Figure
        One panel per ability, three at most in a row.
    """
    columns = min(len(labels), 3)
    rows = -(-len(labels) // columns)
    figure = sheet(WIDE if columns > 1 else 4.6, 2.5 * rows + 0.7)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for spare in panels[len(labels) :]:
        spare.set_axis_off()
    told = []
    for k, (axes, label) in enumerate(zip(panels, labels, strict=False)):
        mine = curve[curve["measure"] == f"error_{k + 1}"]
        _panel(axes, mine)
        axes.set_title(printable(words.capital(words.shorten(label, 34))))
        last = mine[mine["items"] == mine["items"].max()].set_index("method")["value"]
        told.append(
            f"{label}: "
            + ", ".join(
                f"{LOOKS[name][0]} {words.number(last[name])}" for name in LOOKS if name in last.index
            )
        )
    panels[0].set_ylim(bottom=0)  # of all, once the highest of them is known
    for axes in panels[::columns]:
        axes.set_ylabel("error (standard deviations)")
    shown = set(curve["method"])
    handles = [
        Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=3.5, label=text)
        for name, (text, colour, line, marker) in LOOKS.items()
        if name in shown
    ]
    legend_below(figure, handles, 3, 6.2)
    return describe(
        figure,
        f"Root mean squared error of the abilities against the number of questions, for "
        f"{words.plural(len(shown), 'way')} to choose them. With the most questions, "
        f"{words.count(int(curve['items'].max()))}: {'; '.join(told)}.",
    )


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    for name, (_, colour, line, marker) in LOOKS.items():
        mine = rows[rows["method"] == name].sort_values("items")
        if name in BANDS and np.isfinite(mine[["low", "high"]].to_numpy(dtype=float)).all():
            axes.fill_between(
                mine["items"], mine["low"], mine["high"], color=colour, alpha=0.15, linewidth=0, zorder=1
            )
        axes.plot(
            mine["items"],
            mine["value"],
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=3.5,
            zorder=4 if name == "adaptive" else 3,
        )
    ticks = sorted(set(rows["items"].astype(int)))
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(ticks, [words.count(tick) for tick in ticks])
    axes.set_xlabel("questions")
    house_ticks(axes.yaxis)


def draw(
    curve: pd.DataFrame, labels: Sequence[str], stem: Path, *, title: str, simulated: bool
) -> list[Path]:
    """Draw the errors and write the figure in every format.

    Parameters
    ----------
    curve, labels
        As in :func:`curves`.
    stem
        Path without extension.
    title
        Of the study.
    simulated
        Whether any of the data is simulated; the figure says so then.
    """
    drawn = curves(curve, labels)
    named = "What adaptive tests save"
    if simulated:
        style.stamp_simulated(drawn, title)
        named = f"Simulated data. {named}"
        describe(drawn, f"Simulated data. {style.description(drawn)}")
    return style.save(drawn, stem, named)
