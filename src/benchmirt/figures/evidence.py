"""Pictures of the evidence behind claims on pairs of models, mixes of benchmarks and prompt labels, from their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from benchmirt.figures import words
from benchmirt.figures.style import BLUE, GREY, INK, PALETTE, VERMILLION, printable

__all__ = ["CURVES_HEIGHT", "curves", "height_of_mixes", "height_of_pairs", "labels", "mixes", "pairs"]

Rows = Sequence[Mapping[str, Any]]

MOST_PAIRS = 4
MOST_MIXES = 48
_ENDS = {"high": "most", "low": "least"}


# ------------------------------------------------------------------ pairs of models


def _sets(rows: Rows) -> list[tuple[str, str]]:
    return list(dict.fromkeys((str(row["ability"]), str(row["end"])) for row in rows))


def height_of_pairs(rows: Rows) -> float:
    """Height in inches that :func:`pairs` needs."""
    return 0.95 + 0.24 * len(_sets(rows))


def pairs(figure: FigureBase, rows: Rows) -> None:
    """Draw a panel per pair with a line per set of items.

    Parameters
    ----------
    figure
        Where to draw.
    rows
        Tests: base, changed, ability, end, difference, low, high, published_difference and published_least; what was not
        tested is absent.
    """
    found = list(dict.fromkeys((str(row["base"]), str(row["changed"])) for row in rows))[:MOST_PAIRS]
    sets = _sets(rows)
    panels = np.atleast_1d(figure.subplots(1, len(found), sharex=True, sharey=True))
    titles = words.model_names([changed for _, changed in found], min(30, 84 // len(found)))
    for axes, pair, title in zip(panels, found, titles, strict=True):
        axes.axvline(0, color="#BBBBBB", linewidth=0.7, zorder=0)
        for row in rows:
            if (str(row["base"]), str(row["changed"])) == pair:
                _pair(axes, row, sets.index((str(row["ability"]), str(row["end"]))))
        axes.set_title(printable(title), fontsize=6.6)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=6.3)
        axes.xaxis.set_major_formatter(lambda value, _: words.number(value, 1))
        axes.set_ylim(len(sets) - 0.4, -0.6)
        axes.set_xlabel("difference of the shares passed", fontsize=6.6 if len(found) < MOST_PAIRS else 5.6)
    names = [f"discriminate {words.shorten(ability, 16)} {_ENDS[end]}" for ability, end in sets]
    panels[0].set_yticks(range(len(sets)), [printable(name) for name in names], fontsize=6.5)
    figure.legend(
        handles=[
            Line2D([], [], color=BLUE, marker="o", markersize=4.2, label="chosen without the pair, paired"),
            Line2D(
                [],
                [],
                color=VERMILLION,
                marker="d",
                markerfacecolor="white",
                markersize=4.6,
                linewidth=0.8,
                label="as published, unpaired",
            ),
        ],
        loc="outside lower left",
        ncols=2,
        fontsize=6.4,
    )


def _pair(axes: Axes, row: Mapping[str, Any], place: int) -> None:
    if words.is_number(row.get("difference")):
        if words.is_number(row.get("low")) and words.is_number(row.get("high")):
            axes.plot([row["low"], row["high"]], [place - 0.13] * 2, color=BLUE, linewidth=1.5, zorder=2)
        axes.plot([row["difference"]], [place - 0.13], marker="o", color=BLUE, markersize=4, zorder=3)
    if words.is_number(row.get("published_difference")):
        middle, least = row["published_difference"], row["published_least"]
        axes.plot(
            [middle - least, middle + least], [place + 0.17] * 2, color=VERMILLION, linewidth=0.8, zorder=2
        )
        axes.plot(
            [middle],
            [place + 0.17],
            marker="d",
            markerfacecolor="white",
            color=VERMILLION,
            markersize=4.4,
            markeredgewidth=0.8,
            zorder=3,
        )


CURVES_HEIGHT = 1.75
"""Height in inches that :func:`curves` needs."""
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))


def curves(figure: FigureBase, rows: Rows) -> None:
    """Draw the difference of each pair over the items' discriminations, a panel per ability, the published way thin beside it.

    Parameters
    ----------
    figure
        Where to draw.
    rows
        Bins: base, changed, ability, version (corrected, as published), discrimination, difference, and low and high or None.
    """
    found = list(dict.fromkeys((str(row["base"]), str(row["changed"])) for row in rows))[:MOST_PAIRS]
    abilities = list(dict.fromkeys(str(row["ability"]) for row in rows))
    panels = np.atleast_1d(figure.subplots(1, len(abilities), sharey=True))
    for axes, ability in zip(panels, abilities, strict=True):
        axes.axhline(0, color="#BBBBBB", linewidth=0.7, zorder=0)
        for place, pair in enumerate(found):
            own = [r for r in rows if r["ability"] == ability and (str(r["base"]), str(r["changed"])) == pair]
            _curve(axes, own, PALETTE[place % len(PALETTE)], _DASHES[place % len(_DASHES)])
        axes.set_xlabel(
            f"discrimination of {printable(words.shorten(ability, 24))}, median of a bin", fontsize=6.6
        )
        axes.tick_params(labelsize=6.3)
        axes.yaxis.set_major_formatter(lambda value, _: words.number(value, 1))
        axes.xaxis.set_major_formatter(lambda value, _: words.number(value, 1))
    panels[0].set_ylabel("difference of the\nshares passed", fontsize=6.6)
    names = words.model_names([changed for _, changed in found], 40)
    handles = [
        Line2D(
            [],
            [],
            color=PALETTE[place % len(PALETTE)],
            linestyle=_DASHES[place % len(_DASHES)],
            linewidth=1.3,
            label=printable(name),
        )
        for place, name in enumerate(names)
    ]
    if any(row["version"] != "corrected" for row in rows):
        handles.append(Line2D([], [], color=GREY, linewidth=0.6, label="thin: as published"))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.2)


def _curve(axes: Axes, rows: Rows, colour: str, dashes: Any) -> None:
    for version, width in (("as published", 0.6), ("corrected", 1.3)):
        own = sorted((r for r in rows if r["version"] == version), key=lambda r: float(r["discrimination"]))
        x, y = ([float(r[key]) for r in own] for key in ("discrimination", "difference"))
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=width, zorder=2 + width)
        sure = [r for r in own if words.is_number(r.get("low")) and words.is_number(r.get("high"))]
        if sure:
            low, high = ([float(r[key]) for r in sure] for key in ("low", "high"))
            axes.fill_between(
                [float(r["discrimination"]) for r in sure], low, high, color=colour, alpha=0.14, linewidth=0
            )


# ------------------------------------------------------------------ mixes of benchmarks

_ORDER = ("only", "random", "added", "without")


def _mixes(rows: Rows) -> list[tuple[str, str]]:
    """Return kind and name of the mixes that are shown, at most `MOST_MIXES`: of those left out the least changed."""
    worst: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (str(row["mix"]), str(row["named"]))
        worst[key] = min(worst.get(key, 1.0), float(row["congruence"]))
    told = sorted(worst, key=lambda key: (_ORDER.index(key[0]) > 1, worst[key]))[:MOST_MIXES]
    return sorted(told, key=lambda key: (_ORDER.index(key[0]), list(worst).index(key)))


def height_of_mixes(rows: Rows) -> float:
    """Height in inches that :func:`mixes` needs."""
    return 0.8 + 0.125 * len(_mixes(rows))


def mixes(figure: FigureBase, rows: Rows, border: float | None) -> None:
    """Draw a panel per ability with a line per mix.

    Parameters
    ----------
    figure
        Where to draw.
    rows
        Mixes by abilities: mix, named, ability, congruence, low, high, ability_r.
    border
        Congruence below which an ability is no longer the same, or None.
    """
    shown = _mixes(rows)
    abilities = list(dict.fromkeys(str(row["ability"]) for row in rows))
    panels = np.atleast_1d(figure.subplots(1, len(abilities), sharex=True, sharey=True))
    breaks = [n - 0.5 for n in range(1, len(shown)) if shown[n][0] != shown[n - 1][0]]
    for axes, ability in zip(panels, abilities, strict=True):
        for place in breaks:
            axes.axhline(place, color="#CCCCCC", linewidth=0.6, zorder=0)
        if border is not None:
            axes.axvline(border, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
        for row in rows:
            key = (str(row["mix"]), str(row["named"]))
            if str(row["ability"]) == ability and key in shown:
                _mix(axes, row, shown.index(key))
        axes.set_title(printable(words.capital(words.shorten(ability, 26))), fontsize=7)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("agreement with the whole", fontsize=6.8)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda value, _: words.number(value, 1))
        axes.tick_params(axis="x", labelsize=6.3)
    panels[0].set_yticks(
        range(len(shown)),
        [printable(name) for name in words.shorten_all([name for _, name in shown], 40)],
        fontsize=5.6,
    )
    figure.legend(
        handles=[
            Line2D([], [], color=BLUE, marker="o", markersize=4, linewidth=1.2, label="congruence"),
            Line2D(
                [],
                [],
                color=VERMILLION,
                marker="s",
                markerfacecolor="white",
                markersize=3.6,
                linestyle="none",
                label="correlation of the abilities",
            ),
        ],
        loc="outside lower left",
        ncols=2,
        fontsize=6.4,
    )


def _mix(axes: Axes, row: Mapping[str, Any], place: int) -> None:
    if words.is_number(row.get("low")) and words.is_number(row.get("high")):
        axes.plot([row["low"], row["high"]], [place, place], color=BLUE, linewidth=1.2, zorder=2)
    axes.plot(
        [row["ability_r"]],
        [place],
        marker="s",
        markerfacecolor="white",
        color=VERMILLION,
        markersize=3.6,
        markeredgewidth=0.8,
        zorder=3,
    )
    axes.plot([row["congruence"]], [place], marker="o", color=BLUE, markersize=2.8, zorder=4)


# ------------------------------------------------------------------ prompt labels


def labels(figure: FigureBase, groups: Rows, ability: str) -> None:
    """Draw how the discriminations of an ability are spread under each label.

    Parameters
    ----------
    figure
        Where to draw.
    groups
        Per label: word, items, mean, and the quantiles at .05, .25, .5, .75 and .95.
    ability
        Its name.
    """
    axes = figure.subplots(1, 1)
    axes.axvline(0, color="#BBBBBB", linewidth=0.7, zorder=0)
    for place, group in enumerate(groups):
        low, first, middle, third, high = group["quantiles"]
        axes.plot([low, high], [place, place], color=BLUE, linewidth=0.9, zorder=1)
        axes.plot([first, third], [place, place], color=BLUE, linewidth=5, solid_capstyle="butt", zorder=2)
        axes.plot([middle, middle], [place - 0.22, place + 0.22], color="white", linewidth=1.4, zorder=3)
        axes.plot([group["mean"]], [place], marker="o", color=INK, markersize=3.4, zorder=4)
    names = [f"{group['word']} ({words.count(group['items'])})" for group in groups]
    axes.set_yticks(range(len(groups)), [printable(name) for name in names], fontsize=6.8)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"discrimination of {printable(words.shorten(ability, 24))}", fontsize=7)
