"""The items of one benchmark in the plane of discriminations: its groups, its mean, and what runs backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from benchmirt.figures import plane, words
from benchmirt.figures.items import Frame, ability_arrows, density, frame_of, levels, square
from benchmirt.figures.store import Abilities
from benchmirt.figures.style import (
    CROWD,
    GREY,
    INK,
    MARKERS,
    PALETTE,
    describe,
    house_ticks,
    legend_below,
    message,
    printable,
    sheet,
    styled,
)

__all__ = ["Outline", "outline", "profile"]

Floats = NDArray[np.float64]

WIDTH = 4.4
"""Width of the drawing, inches."""
_BINS = 48


@dataclass(frozen=True)
class Outline:
    """The items of all benchmarks in one plane, as the background of each benchmark's drawing.

    Attributes
    ----------
    pair
        The two abilities that span the plane, from 0.
    frame
        Lower and upper end of the square.
    grid, level
        Smoothed counts of items, and the height whose contour holds nine tenths of them (None: no contour).
    """

    pair: tuple[int, int]
    frame: Frame
    grid: Floats
    level: float | None


def outline(a: Floats, naming: Abilities, pair: tuple[int, int]) -> Outline:
    """Make the background of a plane from the discriminations of all items (J, K)."""
    points = a @ plane.basis(naming.T, *pair)
    frame = frame_of(points)
    grid = density(points, frame, _BINS)
    heights = levels(grid, (0.9,))
    return Outline(pair, frame, grid, heights[0] if heights and grid.max() > heights[0] else None)


@styled
def profile(
    name: str,
    a: Floats,
    group: NDArray[np.int64],
    backwards: NDArray[np.bool_],
    naming: Abilities,
    behind: Outline | None,
    subsets: Sequence[str] = (),
) -> Figure:
    """Draw what the questions of one benchmark tell apart.

    Parameters
    ----------
    name
        The benchmark.
    a
        Discriminations of its fitted items, shape (J, K).
    group
        Group of each item from 1, 0 where there are no groups, shape (J,).
    backwards
        Items that run backwards, shape (J,).
    naming
        Names and directions of the abilities.
    behind
        The plane and the items of all benchmarks; None with one ability, whose discriminations are drawn as a histogram.
    subsets
        Names of the groups where these are declared subsets and were not found; 0 is what belongs to none.
    """
    if not len(a):
        return message("No question of this benchmark could be fitted.", width=WIDTH)
    if behind is None:
        return _histogram(name, a[:, 0] * naming.T[0, 0], backwards, naming)
    B = plane.basis(naming.T, *behind.pair)
    points = np.clip(a @ B, *behind.frame)
    figure = sheet(WIDTH, WIDTH + 0.1)
    axes = figure.add_subplot()
    if behind.level is not None:
        centres = (np.arange(_BINS) + 0.5) / _BINS * (behind.frame[1] - behind.frame[0]) + behind.frame[0]
        axes.contour(
            centres,
            centres,
            behind.grid,
            levels=[behind.level],
            colors=["#B5B5B5"],
            linewidths=[0.7],
            zorder=1,
        )
    handles = []
    numbers = sorted(set(group.tolist()))
    for number in numbers:
        mine = group == number
        look = max(number - 1, 0) % len(PALETTE)
        count = int(mine.sum())
        axes.scatter(
            points[mine, 0],
            points[mine, 1],
            s=float(np.clip(2400 / max(len(points), 1), 3.0, 16.0)),
            c=PALETTE[look],
            marker=MARKERS[look],
            alpha=float(np.clip(250 / max(len(points), 1), 0.2, 0.7)),
            linewidths=0,
            rasterized=len(points) > CROWD,
            zorder=2,
        )
        if number == 0 or len(numbers) == 1:
            said = words.plural(count, "question")
        else:
            called = printable(words.shorten_end(subsets[number - 1], 26)) if subsets else f"group {number}"
            said = f"{called} ({words.count(count)})"
        handles.append(
            Line2D(
                [], [], color=PALETTE[look], marker=MARKERS[look], linestyle="none", markersize=4, label=said
            )
        )
        if len(numbers) > 1:
            axes.plot(
                *(a[mine].mean(axis=0) @ B),
                marker=MARKERS[look],
                color=PALETTE[look],
                markersize=9,
                markeredgecolor=INK,
                markeredgewidth=1.0,
                zorder=5,
            )
    if backwards.any():
        axes.scatter(
            points[backwards, 0],
            points[backwards, 1],
            s=42,
            facecolors="none",
            edgecolors=INK,
            linewidths=1.0,
            zorder=6,
        )
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                marker="o",
                fillstyle="none",
                linestyle="none",
                markersize=6,
                label="runs backwards",
            )
        )
    axes.plot(
        *(a.mean(axis=0) @ B),
        marker="*",
        markersize=10,
        color=INK,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=7,
    )
    handles.append(Line2D([], [], marker="*", color=INK, linestyle="none", markersize=7, label="mean"))
    if behind.level is not None:
        handles.append(Line2D([], [], color="#B5B5B5", linewidth=0.9, label="nine tenths of all questions"))
    ability_arrows(axes, naming, B, behind.pair, behind.frame)
    square(axes, behind.frame)
    axes.tick_params(labelsize=6.5)
    first, second = (naming.axis(k) for k in behind.pair)
    axes.set_xlabel(f"discrimination; solid line: {printable(words.shorten(first, 34))}")
    axes.set_ylabel(f"discrimination; dashed line: {printable(words.shorten(second, 34))}")
    legend_below(figure, handles, 3 if subsets else 4, 6.8)
    more = f", two of {words.spelled(naming.dims)} abilities" if naming.dims > 2 else ""
    return describe(
        figure,
        f"{words.capital(words.plural(len(a), 'question'))} of {name} in the plane of "
        f"{naming.labels[behind.pair[0]]} and {naming.labels[behind.pair[1]]}{more}"
        f"{_said_groups(numbers, subsets)}{_said_backwards(backwards)}.",
    )


def _said_groups(numbers: Sequence[int], subsets: Sequence[str]) -> str:
    if len(numbers) < 2:
        return ""
    if subsets:
        return f", by declared subset: {words.listing(list(subsets))}"
    return f", in {words.spelled(len(numbers))} groups that point different ways"


def _said_backwards(backwards: NDArray[np.bool_]) -> str:
    count = int(backwards.sum())
    return f"; {words.spelled(count)} {'runs' if count == 1 else 'run'} backwards" if count else ""


def _histogram(name: str, slope: Floats, backwards: NDArray[np.bool_], naming: Abilities) -> Figure:
    """Draw how the discriminations by the one ability are distributed."""
    figure = sheet(WIDTH, 2.6)
    axes = figure.add_subplot()
    axes.hist(slope, bins=min(36, max(5, len(slope))), color=PALETTE[0], edgecolor="white", linewidth=0.3)
    axes.axvline(0, color=GREY, linewidth=0.7)
    axes.axvline(float(slope.mean()), color=INK, linewidth=1.1, linestyle=(0, (4, 1.5)))
    if backwards.any():
        axes.plot(
            slope[backwards], np.zeros(int(backwards.sum())), "v", color=INK, markersize=5, clip_on=False
        )
    house_ticks(axes.xaxis)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel(
        f"discrimination by {printable(naming.axis(0))}; dashed: mean"
        + ("; triangles: run backwards" if backwards.any() else "")
    )
    axes.set_ylabel("questions")
    return describe(
        figure,
        f"How strongly the {words.plural(len(slope), 'question')} of {name} tell models apart in {naming.labels[0]}"
        f"{_said_backwards(backwards)}.",
    )
