"""The items in the plane of discriminations: item map and direction rose."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Wedge
from matplotlib.ticker import MultipleLocator
from numpy.typing import NDArray

from benchmirt.figures import plane, words
from benchmirt.figures.store import Abilities, discriminations, grouping, was_fitted
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    CROWD,
    GREY,
    INK,
    MARKERS,
    PALE,
    PALETTE,
    WIDE,
    describe,
    house_ticks,
    legend_below,
    message,
    printable,
    sheet,
    styled,
)

Floats = NDArray[np.float64]


MANY = 60
"""From so many items on their density is drawn."""
MOST_SUBSETS = 4
"""Up to so many subsets of a benchmark have colours; of more only the means are shown."""
_LEAST_OF_MEAN = 5
_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)))
_OTHERS = ("#EEEEEE", "#DDDDDD")
"""Greys behind nine tenths and behind half of the items of other benchmarks."""
MOST_TAGS = 20
"""With more sets than this a rose has no tags."""

Corner = Literal["lower right", "lower left", "upper right", "upper left"]

Frame = tuple[float, float]
"""Lower and upper end of a square frame, the same for both axes."""


def frame_of(points: Floats) -> Frame:
    """Square frame that holds the origin and all but about one in 250 of the points, with the origin off its edge."""
    if not len(points):
        return -1.0, 1.0
    low = min(0.0, float(np.quantile(points.min(axis=1), 0.002)))
    high = max(0.0, float(np.quantile(points.max(axis=1), 0.998)))
    reach = max(high, -low, 1e-3)
    return min(low, -0.12 * reach) - 0.06 * reach, max(high, 0.12 * reach) + 0.06 * reach


def density(points: Floats, frame: Frame, bins: int = 48) -> Floats:
    """Smoothed counts of points on a square grid over a frame, (bins, bins), first index vertical.

    Points beyond the frame do not count. The fewer the points, the wider they are smoothed, by the rate of Silverman's
    rule in the plane.
    """
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=bins, range=[frame, frame])
    from scipy.ndimage import gaussian_filter  # takes a third of a second to import, and few figures need it

    width = bins / 30 * float(np.clip(len(points) / 400, 0.05, 3)) ** (-1 / 6)
    return np.asarray(gaussian_filter(counts, width, mode="constant"), dtype=float)


def _centres(frame: Frame, bins: int) -> Floats:
    return np.asarray((np.arange(bins) + 0.5) / bins * (frame[1] - frame[0]) + frame[0], dtype=float)


def levels(grid: Floats, shares: Sequence[float]) -> list[float]:
    """Heights whose contours hold the given shares of the mass, rising and distinct."""
    flat = np.sort(grid.ravel())[::-1]
    total = flat.sum()
    if total <= 0:
        return []
    cumulative = np.cumsum(flat) / total
    heights = [float(flat[min(int(np.searchsorted(cumulative, s)), len(flat) - 1)]) for s in shares]
    return sorted({h for h in heights if h > 0})


def _to_edge(direction: Floats, frame: Frame) -> float:
    """Length at which a ray from the origin leaves the frame."""
    ends = [(frame[1] if v > 0 else frame[0]) / v for v in direction if abs(v) > 1e-9]
    return float(min(ends))


ABILITY_LINES: tuple[Any, Any] = ("-", (0, (4, 1.5)))
"""Line styles of the first and of the second ability of a plane."""


def ability_arrows(axes: Axes, naming: Abilities, B: Floats, pair: tuple[int, int], frame: Frame) -> None:
    """Draw the directions of the two abilities of a plane through the origin, from edge to edge of the frame."""
    for k, style in zip(pair, ABILITY_LINES, strict=True):
        toward = naming.T[:, k] @ B
        toward = toward / np.linalg.norm(toward)
        ahead, behind = _to_edge(toward, frame) * 0.98, -_to_edge(-toward, frame)
        axes.plot(
            [behind * toward[0], ahead * toward[0]],
            [behind * toward[1], ahead * toward[1]],
            color=GREY,
            linewidth=0.6,
            linestyle=style,
            zorder=1.5,
        )
        axes.annotate(
            "",
            xy=tuple(toward * ahead),
            xytext=tuple(toward * ahead * 0.9),
            arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 0.8, "mutation_scale": 6},
            zorder=5,
        )


def _contours(
    axes: Axes, points: Floats, frame: Frame, colour: str, shares: Sequence[float], line: Any = "-"
) -> None:
    grid = density(points, frame)
    heights = levels(grid, shares)
    if heights and grid.max() > heights[0]:
        centres = _centres(frame, len(grid))
        axes.contour(
            centres,
            centres,
            grid,
            levels=heights,
            colors=[colour],
            linewidths=[0.9],
            linestyles=[line],
            zorder=3,
        )


def cloud(
    axes: Axes,
    points: Floats,
    frame: Frame,
    *,
    colour: str = BLUE,
    marker: str = "o",
    line: Any = "-",
    shares: Sequence[float] = (0.5, 0.9),
    among: int = 0,
) -> None:
    """Draw items as points, those beyond the frame at its edge, and contours around shares of them if they are many.

    Parameters
    ----------
    axes
        Where to draw.
    points
        (n, 2) items in plane coordinates.
    frame
        The frame.
    colour, marker, line
        Look of the points, and of the contours.
    shares
        Shares of the items that contours hold.
    among
        Number of points of the whole panel, which decides on their size; 0: these are all.
    """
    inside = ((points >= frame[0]) & (points <= frame[1])).all(axis=1)
    shown = np.clip(points, *frame)
    n = max(len(points), among, 1)
    axes.scatter(
        shown[inside, 0],
        shown[inside, 1],
        s=float(np.clip(900 / n, 2.0, 9)),
        c=colour,
        marker=marker,
        alpha=float(np.clip(150 / n, 0.22, 0.7)),
        linewidths=0,
        rasterized=n > CROWD,
        zorder=2,
    )
    if (~inside).any():
        axes.scatter(
            shown[~inside, 0],
            shown[~inside, 1],
            s=7,
            c=colour,
            marker="+",
            linewidths=0.6,
            zorder=2,
            clip_on=False,
        )
    if shares and len(points) >= MANY:
        _contours(axes, points, frame, colour, shares, line)


def square(axes: Axes, frame: Frame) -> None:
    """Make a square frame with the same few ticks on both sides."""
    axes.set_xlim(*frame)
    axes.set_ylim(*frame)
    axes.set_aspect("equal")
    step = float(f"{frame[1] * 0.62:.0g}")
    ticks = [t for t in (-step, 0.0, step) if frame[0] <= t <= frame[1]]
    texts = [words.number(t, 0 if step >= 1 else 1) if t else "0" for t in ticks]
    axes.set_xticks(ticks, texts)
    axes.set_yticks(ticks, texts)
    axes.tick_params(labelsize=5.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    for spine in axes.spines.values():
        spine.set_color("#BBBBBB")


def panel_characters(width: float) -> int:
    """Return how many characters of a name fit above a panel that is `width` inches wide."""
    return max(8, int(width * 13) - 7)


def panel_title(name: str, n: int, width: float) -> str:
    """Name and number of items of a panel that is `width` inches wide, cut so that it fits."""
    number = f" ({words.count(n)})"
    return printable(words.shorten(name, max(8, int(width * 13) - len(number)))) + number


@styled
def item_map(items: pd.DataFrame, naming: Abilities) -> Figure:
    """Draw what the questions of each benchmark tell apart: their discriminations, one panel per benchmark.

    Parameters
    ----------
    items
        Item statistics (`benchmark`, `discrimination_1..K`, `kept`), one row per item.
    naming
        Names and directions of the abilities.

    Returns
    -------
    Figure
        With two abilities a panel shows their plane, its items coloured by subset where these are few, before
        the items of the other panels in grey. With more it shows the plane of the first two, and the heading
        says so. With one ability a panel shows how the discriminations are distributed. With one benchmark the
        panels are its categories.
    """
    items = items[was_fitted(items)].reset_index(drop=True)
    if items.empty:
        return message("No item was fitted.")
    column, word = grouping(items)
    groups = items[column].fillna("none").astype(str).to_numpy()
    names = list(dict.fromkeys(groups.tolist()))
    a = discriminations(items, naming.dims)
    rows, columns = _grid(len(names))
    if naming.dims == 1:
        return _histograms(items, a[:, 0] * naming.T[0, 0], groups, names, word, naming)
    subset = subsets_of(items, column)
    points = a @ plane.basis(naming.T)
    frame = frame_of(points)
    width = WIDE if columns > 2 else max(COLUMN, 2.6 * columns)
    part = naming.dims > 2
    ragged = rows * columns > len(names)  # labels of axes stand between the last two rows as well
    figure = sheet(width, rows * (width / columns * 0.93 + 0.2) + 0.75 + 0.34 * part + 0.3 * ragged)
    if part:
        figure.suptitle(_only_two(naming, width), x=0.01, ha="left", fontsize=7)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    shown = words.shorten_all(names, panel_characters(width / columns))
    for place, axes in enumerate(grid.ravel()):
        if place >= len(names):
            axes.set_axis_off()
            continue
        mine = groups == names[place]
        _others(axes, points[~mine], frame)
        _items_of(axes, points[mine], subset[mine], frame)
        ability_arrows(axes, naming, plane.basis(naming.T), (0, 1), frame)
        axes.set_title(panel_title(shown[place], int(mine.sum()), width / columns), fontsize=6.5)
        square(axes, frame)
    room = max(12, int(width / columns * 17) - 9)
    first, second = (
        f"discrimination\n({line}: {printable(words.shorten(naming.axis(k), room))})"
        for k, line in ((0, "solid"), (1, "dashed"))
    )
    for axes in grid[:, 0]:
        axes.set_ylabel(second, fontsize=6.3)
    for place in range(min(columns, len(names))):
        last = [r for r in range(rows) if r * columns + place < len(names)][-1]
        grid[last, place].set_xlabel(first, fontsize=6.3)
        grid[last, place].tick_params(labelbottom=True)
    legend_below(figure, _map_legend(subset, groups, word), 3, 6.3)
    return describe(
        figure,
        f"Item map: {words.plural(len(items), 'question')} in the plane of {naming.labels[0]} and {naming.labels[1]}"
        f"{', two of the ' + words.spelled(naming.dims) + ' abilities' if part else ''}, "
        f"one panel for each of {words.plural(len(names), word, 'benchmarks' if word == 'benchmark' else None)}, "
        "with the subsets of each.",
    )


def subsets_of(items: pd.DataFrame, column: str) -> NDArray[np.object_]:
    """Subset of each item within the groups of a column, shape (J,); empty where no subset is declared."""
    if column == "subcategory_one" or "subcategory_one" not in items:
        return np.full(len(items), "", dtype=object)
    return items["subcategory_one"].astype("string").fillna("").to_numpy(dtype=object)


def _coloured(subset: NDArray[np.object_]) -> list[str]:
    """Subsets of a panel that have colours, in order of their first item; none if they are too many or but one."""
    found = [str(name) for name in dict.fromkeys(subset.tolist()) if name]
    return found if 2 <= len(found) <= MOST_SUBSETS else []


def _others(axes: Axes, points: Floats, frame: Frame) -> None:
    """Draw where the items of the other panels lie, in grey."""
    if len(points) < MANY:
        return
    grid = density(points, frame)
    heights = levels(grid, (0.9, 0.5))
    if heights and grid.max() > heights[-1]:
        centres = _centres(frame, len(grid))
        axes.contourf(
            centres,
            centres,
            grid,
            levels=[*heights, float(grid.max())],
            colors=_OTHERS[-len(heights) :],
            zorder=0.5,
        )


def _items_of(axes: Axes, points: Floats, subset: NDArray[np.object_], frame: Frame) -> None:
    """Draw the items of one panel, coloured by subset where these are few, and the means of subsets or of all."""
    coloured = _coloured(subset)
    if not coloured:
        cloud(axes, points, frame)
        for name in dict.fromkeys(subset.tolist()):
            mine = subset == name
            if name and _LEAST_OF_MEAN <= mine.sum() < len(points):
                axes.plot(*points[mine].mean(axis=0), **_mean_look("o", "white", 3.0))
        axes.plot(*points.mean(axis=0), **_mean_look("*", INK, 7.0))
        return
    rest = np.array([name not in coloured for name in subset])
    if rest.any():
        cloud(axes, points[rest], frame, colour=GREY, shares=(), among=len(points))
    for n, name in enumerate(coloured):
        mine = subset == name
        look: dict[str, Any] = {"colour": PALETTE[n], "marker": MARKERS[n], "line": _LINES[n]}
        cloud(axes, points[mine], frame, shares=(0.5,), among=len(points), **look)
        axes.plot(*points[mine].mean(axis=0), **_mean_look(MARKERS[n], PALETTE[n], 5.0))
    _subset_legend(axes, points, coloured, frame)


def _mean_look(marker: str, colour: str, size: float) -> dict[str, Any]:
    star = marker == "*"
    return {
        "marker": marker,
        "color": colour,
        "markersize": size,
        "markeredgecolor": "white" if star else INK,
        "markeredgewidth": 0.5 if star else 0.7,
        "linestyle": "none",
        "zorder": 6,
    }


def _subset_legend(axes: Axes, points: Floats, coloured: Sequence[str], frame: Frame) -> None:
    """Name the colours of a panel in the corner where the fewest items lie."""
    unit = (points - frame[0]) / (frame[1] - frame[0])
    tall = 0.09 * len(coloured)
    inside: dict[Corner, NDArray[np.bool_]] = {
        "lower right": (unit[:, 0] > 0.45) & (unit[:, 1] < tall),
        "lower left": (unit[:, 0] < 0.55) & (unit[:, 1] < tall),
        "upper right": (unit[:, 0] > 0.45) & (unit[:, 1] > 1 - tall),
        "upper left": (unit[:, 0] < 0.55) & (unit[:, 1] > 1 - tall),
    }
    names = words.shorten_all([printable(name.replace("_", " ")) for name in coloured], 26)
    legend = axes.legend(
        handles=[
            Line2D(
                [],
                [],
                color=PALETTE[n],
                marker=MARKERS[n],
                linestyle=_LINES[n],
                markersize=3.2,
                linewidth=0.9,
                label=name,
            )
            for n, name in enumerate(names)
        ],
        loc=min(inside, key=lambda corner: int(inside[corner].sum())),
        fontsize=5.6,
        handlelength=1.7,
        handletextpad=0.4,
        labelspacing=0.15,
        borderpad=0.15,
        borderaxespad=0.2,
        frameon=True,
        framealpha=0.75,
        edgecolor="none",
    )
    legend.set_zorder(5.5)


def _map_legend(subset: NDArray[np.object_], groups: NDArray[np.object_], word: str) -> list[Any]:
    """Return the handles of the legend that all panels share."""
    panels = [subset[groups == name] for name in dict.fromkeys(groups.tolist())]
    coloured = [bool(_coloured(own)) for own in panels]
    many = any(len(set(own.tolist()) - {""}) > MOST_SUBSETS for own in panels)
    handles: list[Any] = []
    if not all(coloured):
        handles.append(Line2D([], [], label="mean", **_mean_look("*", INK, 7.0)))
    if many:
        handles.append(Line2D([], [], label="mean of a subset", **_mean_look("o", "white", 3.0)))
    if any(coloured):
        handles.append(Line2D([], [], label="mean of a named subset", **_mean_look("s", GREY, 5.0)))
    if any(len(own) >= MANY for own in panels):
        handles.append(Line2D([], [], color=BLUE, linewidth=0.9, label="half and nine tenths of the items"))
    if len(panels) > 1:
        handles.append(
            Patch(facecolor=_OTHERS[0], label=f"nine tenths of the other {_PLURALS.get(word, word)}")
        )
        handles.append(Patch(facecolor=_OTHERS[1], label="half of them"))
    return handles


_PLURALS = {
    "benchmark": "benchmarks’ items",
    "category": "categories’ items",
    "subcategory": "subcategories’ items",
}


def _grid(panels: int) -> tuple[int, int]:
    """Rows and columns of so many panels, as even as may be."""
    rows = -(-panels // (4 if panels <= 24 else 6))
    return rows, -(-panels // rows)


def _only_two(naming: Abilities, width: float) -> str:
    """Heading of a plane of two abilities where there are more."""
    shown = words.listing([printable(words.shorten(label, 20)) for label in naming.labels[:2]])
    hidden = words.listing([printable(words.shorten(label, 20)) for label in naming.labels[2:]])
    text = (
        f"Two of the {words.spelled(naming.dims)} abilities: {shown}. A question near the centre may ask for "
        f"{hidden}, which this plane does not show."
    )
    return textwrap.fill(text, int(width * 15))


def _histograms(
    items: pd.DataFrame,
    slope: Floats,
    groups: NDArray[np.object_],
    names: Sequence[str],
    word: str,
    naming: Abilities,
) -> Figure:
    rows, columns = _grid(len(names))
    width = WIDE if columns > 2 else COLUMN
    figure = sheet(width, 1.35 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    shown = words.shorten_all(names, panel_characters(width / columns))
    low, high = (float(v) for v in np.quantile(slope, (0.002, 0.998)))
    low, high = min(low, 0.0), max(high, 0.0) if high > low else low + 1.0
    bins = np.linspace(low, high, 36)
    for place, axes in enumerate(grid.ravel()):
        if place >= len(names):
            axes.set_axis_off()
            continue
        mine = np.clip(slope[groups == names[place]], low, high)
        axes.hist(mine, bins=bins, color=BLUE, edgecolor="white", linewidth=0.2)
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.axvline(float(mine.mean()), color=INK, linewidth=1.0, linestyle=(0, (4, 1.5)))
        house_ticks(axes.xaxis)
        axes.set_title(panel_title(shown[place], len(mine), width / columns), fontsize=6.5)
        axes.tick_params(labelsize=5.8)
    figure.supxlabel(f"discrimination by {printable(naming.axis(0))}; dashed: mean", fontsize=7.5)
    figure.supylabel("items", fontsize=7.5)
    return describe(
        figure,
        f"How strongly the {words.plural(len(items), 'question')} tell models apart in {naming.labels[0]}, one panel "
        f"per {word}.",
    )


# ------------------------------------------------------------------ direction rose


def colours_of(
    items: pd.DataFrame, groups: Sequence[str], names: Sequence[str]
) -> dict[str, tuple[str, str, str]]:
    """Colour, marker and category of each group of items, where there are two to six categories.

    With other numbers of categories all groups are blue circles of category ``""``.
    """
    plain = dict.fromkeys(names, (BLUE, "o", ""))
    if "category" not in items:
        return plain
    table = pd.DataFrame({"group": list(groups), "category": items["category"].fillna("none").astype(str)})
    first = table.groupby("group", sort=False)["category"].agg(lambda c: c.value_counts(sort=True).index[0])
    kinds = list(dict.fromkeys(first[name] for name in names))
    if not 2 <= len(kinds) <= 6 or len(kinds) == len(names):
        return plain
    return {
        name: (PALETTE[kinds.index(first[name])], MARKERS[kinds.index(first[name])], first[name])
        for name in names
    }


def rose(
    axes: Axes,
    vectors: Mapping[str, Floats],
    intervals: Mapping[str, tuple[float, float] | None],
    looks: Mapping[str, tuple[str, str, str]],
    naming: Abilities,
    B: Floats,
    pair: tuple[int, int],
    tags: Mapping[str, str],
) -> None:
    """Mean directions as vectors from the centre, with intervals as arcs and tags on a ring around them.

    Parameters
    ----------
    axes
        Where to draw; its own axis is switched off.
    vectors
        (2,) mean discrimination vector in plane coordinates of each set.
    intervals
        Interval of each set's direction in degrees.
    looks
        (colour, marker, category) of each set.
    naming, B, pair
        Abilities, plane coordinates (`plane.basis`) and which two abilities span the plane.
    tags
        Short text of each set, written on the ring; sets without one get none.
    """
    axes.set_axis_off()
    axes.set_aspect("equal")
    longest = max((float(np.linalg.norm(v)) for v in vectors.values()), default=1.0) or 1.0
    ring = 1.0
    inner = 0.86
    angle = np.radians(np.arange(0, 361, 3))
    nice = float(f"{longest:.1g}")
    nice = nice if nice <= longest else float(f"{longest / 2:.1g}")
    for radius, style in ((nice / longest * inner, (0, (1, 2))), (ring, "-")):
        axes.plot(
            radius * np.cos(angle), radius * np.sin(angle), color="#D5D5D5", linewidth=0.6, linestyle=style
        )
    axes.text(
        0.02,
        -nice / longest * inner - 0.02,
        f"{words.number(nice, 1)}",
        fontsize=5.5,
        color=GREY,
        ha="left",
        va="top",
    )
    for k, style in zip(pair, ABILITY_LINES, strict=True):
        tip = naming.T[:, k] @ B
        tip = tip / np.linalg.norm(tip)
        axes.plot(
            [-tip[0], tip[0]], [-tip[1], tip[1]], color="#8A8A8A", linewidth=0.7, linestyle=style, zorder=1
        )
        axes.annotate(
            "",
            xy=tuple(tip * 1.30),
            xytext=tuple(tip * 1.16),
            arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 0.9, "mutation_scale": 7},
            annotation_clip=False,
        )
        side = tip * 1.33
        axes.text(
            float(side[0]),
            float(side[1]),
            printable(words.shorten(naming.labels[k], 22)),
            fontsize=7.5,
            fontweight="bold",
            ha="left" if side[0] > 0.45 else "center",
            va="center" if abs(side[1]) < 0.45 else ("bottom" if side[1] > 0 else "top"),
        )
    names = list(vectors)
    headings = np.array([float(plane.heading(vectors[name])) for name in names])
    spots = plane.spread(headings, 9.0)
    for name, here, spot in zip(names, headings, spots, strict=True):
        colour, marker, _ = looks[name]
        radius = float(np.linalg.norm(vectors[name])) / longest * inner
        x, y = radius * np.cos(np.radians(here)), radius * np.sin(np.radians(here))
        axes.plot([0, x], [0, y], color=colour, linewidth=1.0, zorder=3)
        axes.plot(
            [x],
            [y],
            marker=marker,
            color=colour,
            markersize=4.2,
            markeredgecolor="white",
            markeredgewidth=0.4,
            zorder=4,
        )
        span = intervals.get(name)
        if span is not None:
            axes.add_patch(
                Wedge(
                    (0, 0),
                    max(radius, 0.05),
                    span[0],
                    span[1],
                    color=colour,
                    alpha=0.16,
                    linewidth=0,
                    zorder=2,
                )
            )
            arc = np.radians(np.linspace(span[0], span[1], 40))
            axes.plot(radius * np.cos(arc), radius * np.sin(arc), color=colour, linewidth=1.4, zorder=3.5)
        if name not in tags:
            continue
        edge = np.radians(spot)
        away = np.radians(here)
        axes.plot(
            [(radius + 0.03) * np.cos(away), 0.975 * np.cos(edge)],
            [(radius + 0.03) * np.sin(away), 0.975 * np.sin(edge)],
            color=PALE,
            linewidth=0.5,
            zorder=1.5,
        )
        axes.text(
            1.06 * np.cos(edge),
            1.06 * np.sin(edge),
            tags[name],
            fontsize=6,
            ha="center",
            va="center",
            color=INK,
            bbox={"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": colour, "linewidth": 0.7},
            zorder=5,
        )
    axes.set_xlim(-1.32, 1.75)
    axes.set_ylim(-1.25, 1.5)


def _forest(
    axes: Axes,
    values: Sequence[float],
    spans: Sequence[tuple[float, float] | None],
    names: Sequence[str] | None,
    looks: Sequence[tuple[str, str, str]],
) -> None:
    """Dots with intervals, one line per set, the first on top."""
    for row, (value, span, (colour, marker, _)) in enumerate(zip(values, spans, looks, strict=True)):
        if span is not None:
            axes.plot(span, [row, row], color=colour, linewidth=1.4, solid_capstyle="butt", zorder=2)
        axes.plot(
            [value],
            [row],
            marker=marker,
            color=colour,
            markersize=4,
            markeredgecolor="white",
            markeredgewidth=0.4,
            zorder=3,
        )
    axes.set_ylim(len(values) - 0.4, -0.6)
    if names is None:
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(names)), names, fontsize=6.3)
        axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


@styled
def directions(items: pd.DataFrame, naming: Abilities, replicates: Floats | None = None) -> Figure:
    """Which way each benchmark points: its mean discrimination vector, with bootstrap intervals.

    Parameters
    ----------
    items
        Item statistics, one row per item.
    naming
        Names and directions of the abilities.
    replicates
        (R, J, K) discriminations of the same rows (NaN where not fitted) over lineage-bootstrap replicates.

    Returns
    -------
    Figure
        Two abilities: a rose and a list of angles. More: a rose per pair and the angle to each. One: the mean
        discriminations.
    """
    keep = was_fitted(items)
    if not keep.any():
        return message("No item was fitted.")
    items = items[keep].reset_index(drop=True)
    if replicates is not None:
        replicates = replicates[:, keep]
    column, word = grouping(items)
    groups = items[column].fillna("none").astype(str).to_numpy()
    sets = plane.directions(groups, discriminations(items, naming.dims), replicates)
    looks = colours_of(items, groups.tolist(), [s.name for s in sets])
    return _direction_figure(sets, looks, naming, word)


def _direction_figure(
    sets: Sequence[plane.Direction],
    looks: Mapping[str, tuple[str, str, str]],
    naming: Abilities,
    word: str,
) -> Figure:
    dims = naming.dims
    if dims == 1:
        return _mean_discriminations(sets, looks, naming, word)
    B = plane.basis(naming.T)
    first = float(plane.heading(naming.T[:, 0] @ B))
    turn = {s.name: float(plane.wrapped(plane.heading(s.mean @ B) - first, 45.0)) for s in sets}
    sets = sorted(sets, key=lambda s: turn[s.name])
    tags = {s.name: str(n) for n, s in enumerate(sets, start=1)}
    shown = [printable(name) for name in words.shorten_all([s.name for s in sets], 26)]
    tagged = len(sets) <= MOST_TAGS
    names = [f"{tags[s.name]}  {name}" if tagged else name for s, name in zip(sets, shown, strict=True)]
    if not tagged:
        tags = {}
    look_list = [looks[s.name] for s in sets]
    pairs = list(combinations(range(dims), 2))[:6] if dims > 2 else [(0, 1)]
    height = 0.55 + 0.155 * len(sets)
    if dims == 2:
        figure = sheet(WIDE, max(3.5, height))
        left, right = figure.subplots(1, 2, width_ratios=(1.05, 1))
        rose_of(left, sets, looks, naming, (0, 1), tags)
        spans = []
        for s in sets:
            around = plane.heading(s.replicates @ B) - first
            spans.append(plane.circular_interval(around, turn[s.name]))
        _forest(right, [turn[s.name] for s in sets], spans, names, look_list)
        between = float(plane.angle_between(naming.T[:, 0], naming.T[:, 1]))
        ends = [v for s, span in zip(sets, spans, strict=True) for v in (turn[s.name], *(span or ()))]
        low, high = min(-20.0, *ends), max(between + 20.0, *ends)
        right.set_xlim(low - 4, high + 4)
        marks = {
            0.0: naming.labels[0],
            between: naming.labels[1],
            between - 180: f"against {naming.labels[1]}",
            180.0: f"against {naming.labels[0]}",
        }
        for place, text in marks.items():
            if low - 4 <= place <= high + 4:
                right.axvline(
                    place,
                    color="#8A8A8A",
                    linewidth=0.7,
                    linestyle="-" if place in (0.0, 180.0) else (0, (4, 1.5)),
                    zorder=1,
                )
                right.annotate(
                    printable(words.shorten(text, 22)),
                    (place, 1.0),
                    xycoords=("data", "axes fraction"),
                    xytext=(0, 3),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=6.3,
                    color=INK,
                    annotation_clip=False,
                )
        right.xaxis.set_major_locator(MultipleLocator(45))
        right.set_xlabel(
            f"degrees from {printable(words.shorten(naming.labels[0], 15))} "
            f"towards {printable(words.shorten(naming.labels[1], 15))}"
        )
    else:
        rose_rows = -(-len(pairs) // 3)
        figure = sheet(WIDE, 2.3 * rose_rows + height + 0.4)
        outer = figure.add_gridspec(2, 1, height_ratios=(2.3 * rose_rows, height))
        above = outer[0].subgridspec(rose_rows, 3)
        for n, pair in enumerate(pairs):
            rose_of(figure.add_subplot(above[n // 3, n % 3]), sets, looks, naming, pair, tags)
        below = outer[1].subgridspec(1, dims)
        for k in range(dims):
            axes = figure.add_subplot(below[k])
            values = [float(plane.angle_between(s.mean, naming.T[:, k])) for s in sets]
            spans = [plane.plain_interval(plane.angle_between(s.replicates, naming.T[:, k])) for s in sets]
            _forest(axes, values, spans, names if k == 0 else None, look_list)
            axes.set_xlim(-5, 185)
            axes.set_xticks([0, 90, 180], ["along", "across", "against"])
            axes.axvline(90, color="#8A8A8A", linewidth=0.6, zorder=1)
            axes.set_xlabel(printable(words.shorten(naming.labels[k], 24)))
    _category_legend(figure, looks, any(len(s.replicates) for s in sets))
    said = []
    for s in sets:
        angles = [float(plane.angle_between(s.mean, naming.T[:, k])) for k in range(dims)]
        texts = [f"{words.quantity(v, 'degrees')} from {naming.labels[k]}" for k, v in enumerate(angles)]
        said.append(f"{s.name} {words.listing(texts)}")
    return describe(figure, f"Mean direction of the questions of each {word}. {'; '.join(said)}.")


def rose_of(
    axes: Axes,
    sets: Sequence[plane.Direction],
    looks: Mapping[str, tuple[str, str, str]],
    naming: Abilities,
    pair: tuple[int, int],
    tags: Mapping[str, str],
) -> None:
    """Draw the mean directions of sets of items, with intervals, in the plane of two abilities; see `rose`."""
    B = plane.basis(naming.T, *pair)
    vectors = {s.name: s.mean @ B for s in sets}
    spans = {
        s.name: plane.circular_interval(plane.heading(s.replicates @ B), float(plane.heading(s.mean @ B)))
        for s in sets
    }
    rose(axes, vectors, spans, looks, naming, B, pair, tags)


def _category_legend(figure: Figure, looks: Mapping[str, tuple[str, str, str]], intervals: bool) -> None:
    kinds = {category: (colour, marker) for colour, marker, category in looks.values() if category}
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=4.2,
            label=printable(words.shorten(kind, 30)),
        )
        for kind, (colour, marker) in kinds.items()
    ]
    if intervals:
        handles.append(
            Line2D([], [], color=GREY, linewidth=1.6, label="95 % bootstrap interval over lineages")
        )
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=6.5)


def _mean_discriminations(
    sets: Sequence[plane.Direction],
    looks: Mapping[str, tuple[str, str, str]],
    naming: Abilities,
    word: str,
) -> Figure:
    sign = float(naming.T[0, 0])
    sets = sorted(sets, key=lambda s: -float(s.mean[0]) * sign)
    figure = sheet(COLUMN, 0.75 + 0.155 * len(sets))
    axes = figure.add_subplot()
    values = [float(s.mean[0]) * sign for s in sets]
    spans = [plane.plain_interval(s.replicates[:, 0] * sign) for s in sets]
    _forest(
        axes,
        values,
        spans,
        [printable(name) for name in words.shorten_all([s.name for s in sets], 26)],
        [looks[s.name] for s in sets],
    )
    axes.axvline(0, color="#8A8A8A", linewidth=0.7, zorder=1)
    house_ticks(axes.xaxis)
    axes.set_xlabel(f"mean discrimination by {printable(naming.axis(0))}")
    _category_legend(figure, looks, any(span is not None for span in spans))
    said = "; ".join(f"{s.name} {words.number(v)}" for s, v in zip(sets, values, strict=True))
    return describe(
        figure, f"Mean discrimination of the questions of each {word} by {naming.labels[0]}. {said}."
    )
