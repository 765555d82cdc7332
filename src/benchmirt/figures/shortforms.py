"""Short forms: what they lose against all items, benchmark by benchmark, and pass rates without the sharpest items."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmirt.figures import words
from benchmirt.figures.store import Abilities, truths
from benchmirt.figures.style import (
    BLUE,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PALETTE,
    VERMILLION,
    house_ticks,
    printable,
)

BAND = "#C9C9C9"


def _shares(axes: Axes, low: float) -> None:
    """Mark shares of the items on a logarithmic axis."""
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if tick >= low * 0.99]
    axes.set_xscale("log")
    axes.set_xlim(low * 0.85, 1.15)
    axes.set_xticks(ticks, [f"{tick * 100:.0f}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("questions kept, %")


def _of(curve: pd.DataFrame, form: str) -> pd.DataFrame:
    return curve[curve["form"] == form].sort_values("share")


def curves(figure: FigureBase, curve: pd.DataFrame, share: float, naming: Abilities) -> None:
    """Draw how far correlations move, and how much less exact abilities are, from few items to all of them.

    Parameters
    ----------
    figure
        Where to draw.
    curve
        ``curve.csv``.
    share
        The share that the claim speaks of.
    naming
        Names of the abilities.
    """
    left, right = figure.subplots(1, 2)
    best, random, plain, filtered = (
        _of(curve, form) for form in ("information", "stratified", "random", "filter")
    )
    total = float(best["items"].max())
    left.fill_between(
        random["share"], random["loss_low"], random["loss_high"], color=BAND, linewidth=0, zorder=1
    )
    left.plot(random["share"], random["loss"], color=GREY, linestyle="--", zorder=2)
    left.plot(plain["share"], plain["loss"], color=INK, linestyle=":", zorder=2)
    left.plot(best["share"], best["loss"], color=BLUE, marker="o", markersize=3.5, zorder=4)
    left.plot(
        filtered["items"] / total,
        filtered["loss"],
        color=VERMILLION,
        marker="s",
        linestyle="none",
        markersize=4,
        zorder=5,
    )
    left.set_ylabel("mean move of r")
    left.set_ylim(bottom=0)
    handles = [
        Line2D([], [], color=BLUE, marker="o", markersize=3.5, label="chosen by information"),
        Patch(facecolor=BAND, label="random, benchmark by benchmark"),
        Line2D([], [], color=INK, linestyle=":", label="random of all"),
        Line2D(
            [],
            [],
            color=VERMILLION,
            marker="s",
            linestyle="none",
            label="published filter, at the share it really keeps",
        ),
    ]
    for k, label in enumerate(naming.labels):
        column = f"standard_error_{k + 1}"
        colour, marker = (BLUE, ORANGE, *PALETTE[2:4])[k % 4], MARKERS[k % 4]
        right.plot(best["share"], best[column], color=colour, marker=marker, markersize=3.5, zorder=4)
        right.plot(random["share"], random[column], color=colour, linestyle="--", zorder=3)
        name = printable(words.shorten(label, 20))
        handles.append(
            Line2D([], [], color=colour, marker=marker, markersize=3.5, label=f"{name}: by information")
        )
        handles.append(Line2D([], [], color=colour, linestyle="--", label=f"{name}: random"))
    right.set_ylabel("standard error of the ability")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.axvline(share, color="#8A8A8A", linewidth=0.6, zorder=0)
        _shares(axes, float(curve["share"].min()))
        house_ticks(axes.yaxis)
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.2)


def compared(figure: FigureBase, pairs: pd.DataFrame, naming: Abilities) -> None:
    """Draw the absolute correlation of each benchmark with each ability: all items beside the form.

    Parameters
    ----------
    figure
        Where to draw.
    pairs
        Rows of ``correlations.csv`` of one form and share.
    naming
        Names of the abilities.
    """
    benchmarks = list(dict.fromkeys(pairs["benchmark"].astype(str)))
    panels = np.atleast_1d(figure.subplots(1, naming.dims, sharey=True))
    for k, axes in enumerate(panels):
        rows = pairs[pairs["ability"] == k + 1]
        place = np.array([benchmarks.index(str(name)) for name in rows["benchmark"]], dtype=float)
        whole, form = rows["r_full"].abs().to_numpy(dtype=float), rows["r_form"].abs().to_numpy(dtype=float)
        larger = truths(rows["larger"])
        axes.hlines(place, whole, form, color="#8A8A8A", linewidth=1.0, zorder=2)
        axes.plot(
            whole,
            place,
            linestyle="none",
            marker="o",
            markerfacecolor="white",
            color=INK,
            markersize=4.5,
            zorder=3,
        )
        for mask, marker, colour in ((larger, ">", BLUE), (~larger, "<", VERMILLION)):
            axes.plot(
                form[mask],
                place[mask],
                linestyle="none",
                marker=marker,
                color=colour,
                markersize=4.5,
                zorder=4,
            )
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(len(benchmarks) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"|r| with {printable(words.shorten(naming.labels[k], 24))}")
        house_ticks(axes.xaxis)
    panels[0].set_yticks(
        range(len(benchmarks)), [printable(name) for name in words.shorten_all(benchmarks, 26)], fontsize=6.3
    )
    figure.legend(
        handles=[
            Line2D(
                [],
                [],
                linestyle="none",
                marker="o",
                markerfacecolor="white",
                color=INK,
                label="all questions",
            ),
            Line2D([], [], linestyle="none", marker=">", color=BLUE, label="short form: larger"),
            Line2D(
                [], [], linestyle="none", marker="<", color=VERMILLION, label="short form: smaller or equal"
            ),
        ],
        loc="outside lower left",
        ncols=3,
        fontsize=6.2,
    )


def weakened(figure: FigureBase, rows: pd.DataFrame, share: float, ability: str) -> None:
    """Draw the pass rate of the models with least ability, from all items to half of them.

    Parameters
    ----------
    figure
        Where to draw.
    rows
        Rows of ``weakening.csv`` of one way and ability.
    share
        The share taken away that the claim speaks of.
    ability
        Its name.
    """
    axes = figure.subplots()
    rows = rows.sort_values("share")
    x = np.concatenate([[0.0], rows["share"].to_numpy(dtype=float)])
    before = float(rows["before"].iloc[0])

    def line(column: str) -> np.ndarray:
        return np.concatenate([[before], rows[column].to_numpy(dtype=float)])

    axes.axvline(share, color="#8A8A8A", linewidth=0.6, zorder=0)
    axes.fill_between(x, line("random_low"), line("random_high"), color=BAND, linewidth=0, zorder=1)
    axes.plot(x, line("random"), color=GREY, linestyle="--", zorder=2)
    axes.plot(x, line("after"), color=BLUE, marker="o", markersize=3.5, zorder=4)
    told = rows[np.isfinite(rows["low"]) & np.isfinite(rows["high"])]
    axes.vlines(
        told["share"],
        told["random"] + told["low"],
        told["random"] + told["high"],
        color=BLUE,
        linewidth=2.2,
        alpha=0.6,
    )
    axes.set_xlim(-0.01, float(x.max()) * 1.04)
    axes.set_xticks(x, [f"{value * 100:.0f}" for value in x])
    axes.set_xlabel("questions taken away, %")
    axes.set_ylabel(f"pass rate, third with least {printable(words.shorten(ability, 18))}")
    house_ticks(axes.yaxis)
    figure.legend(
        handles=[
            Line2D([], [], color=BLUE, marker="o", markersize=3.5, label="the sharpest"),
            Patch(facecolor=BAND, label="as many at random"),
        ],
        loc="outside lower left",
        ncols=2,
        fontsize=6.2,
    )
