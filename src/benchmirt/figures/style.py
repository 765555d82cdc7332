"""The look that all figures share: sheet sizes, colours, markers, labels that do not collide, and files."""

from __future__ import annotations

import functools
import io
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib.style
import numpy as np
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from benchmirt.figures import words
from benchmirt.figures.catalogue import FORMATS
from benchmirt.files import atomic

STYLE = Path(__file__).with_name("benchmirt.mplstyle")

COLUMN = 3.5
"""Width of a column of print, inches."""
WIDE = 7.2
"""Width of a printed page's text, inches."""

INK = "#1A1A1A"
GREY = "#6B6B6B"
PALE = "#C9C9C9"
WASH = "#EFEFEF"
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, BROWN = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C6D31",
)
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Okabe and Ito's colours, which the common kinds of colour blindness keep apart, without the pale yellow."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One marker per colour of `PALETTE`, so that groups stay apart in greyscale."""

CROWD = 400
"""Above so many marks a scatter is drawn as pixels inside vector files, and without intervals."""

P = ParamSpec("P")


@contextmanager
def look() -> Iterator[None]:
    """Matplotlib's settings of the house, whatever the caller's own are."""
    with matplotlib.style.context(["default", str(STYLE)]):
        yield


def styled(function: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a figure function draw in the house style wherever it is called from."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with look():
            return function(*args, **kwargs)

    return wrapper


def sheet(width: float, height: float) -> Figure:
    """Empty figure of a size in inches, laid out so that nothing is clipped, outside pyplot's global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def describe(figure: Figure, text: str) -> Figure:
    """Attach the text that stands in for the picture when it cannot be seen."""
    figure.set_label(" ".join(text.split()))
    return figure


def description(figure: Figure) -> str:
    """Text attached by `describe`, empty if none."""
    label = figure.get_label()
    return label if isinstance(label, str) else ""


def message(text: str, *, width: float = COLUMN, height: float = 1.1) -> Figure:
    """Sheet that says in words why there is nothing to draw."""
    figure = sheet(width, height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    text = words.sentences(text)
    lines = textwrap.fill(printable(text), width=int(width * 15))
    axes.text(0.5, 0.5, lines, ha="center", va="center", color=GREY, transform=axes.transAxes, fontsize=7.5)
    return describe(figure, text)


@functools.cache
def _glyphs() -> frozenset[int]:
    path = font_manager.findfont("DejaVu Sans")
    return frozenset(FT2Font(path).get_charmap())


def printable(text: object) -> str:
    """Text that the font can show: control characters go, characters that it lacks become a box."""
    known = _glyphs()
    out = []
    for character in unicodedata.normalize("NFC", str(text)):
        if character.isspace():
            out.append(" ")
        elif unicodedata.category(character) in ("Cc", "Cf", "Cs"):
            continue
        else:
            out.append(character if ord(character) in known else "\u25a1")
    return " ".join("".join(out).split())


_STAMP: dict[str, Any] = {"fontsize": 6.5, "fontweight": "bold"}
_LEAST_TITLE = 20  # letters of a title that is cut; a shorter rest is no title


@functools.cache
def _inches(text: str, fontsize: float, fontweight: str) -> float:
    """Width of a text in the house font."""
    path = TextPath((0, 0), text, size=fontsize, prop=FontProperties(weight=fontweight))
    return float(path.get_extents().width) / 72


def stamp_simulated(figure: Figure, title: str) -> Figure:
    """Say on the figure itself that its data are simulated. The sheet grows; the drawing keeps its size."""
    width, height = figure.get_size_inches()
    band = 0.21
    figure.set_size_inches(width, height + band)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, 0, 1, height / (height + band)))  # type: ignore[call-arg]
    text = "SIMULATED DATA, not real models"
    name = printable(title)
    while name and _inches(f"{text}  ({name})", **_STAMP) > 0.97 * width:
        name = words.shorten_end(name, len(name) - 2) if len(name) > _LEAST_TITLE else ""
    if name:
        text += f"  ({name})"
    figure.text(
        0.01,
        1 - 0.35 * band / (height + band),
        text,
        ha="left",
        va="center",
        **_STAMP,
        color="#8A3B00",
        in_layout=False,
    )
    return figure


def save(figure: Figure, stem: Path, title: str = "") -> list[Path]:
    """Write a figure as PNG (200 dots per inch), SVG and PDF, the same bytes each time.

    Parameters
    ----------
    figure
        The figure; its description (`describe`) goes into the files.
    stem
        Path without extension. Its folder is made if need be.
    title
        Title written into the files.

    Returns
    -------
    list of Path
        One path per format.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Software": None, "Title": title},
        "svg": {"Date": None, "Creator": None, "Title": title, "Description": description(figure)},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": title},
    }
    paths = []
    with look():
        for suffix in FORMATS:
            path = stem.with_name(f"{stem.name}.{suffix}")
            with atomic(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=metadata[suffix])
            with matplotlib.rc_context({"figure.constrained_layout.use": False, "figure.autolayout": False}):
                figure.set_layout_engine(
                    None
                )  # the first format's layout serves all, without a dry run for each
            paths.append(path)
    return paths


def svg(figure: Figure, title: str = "") -> str:
    """Text of a figure as SVG, for a page that holds its own pictures; the same each time."""
    buffer = io.StringIO()
    metadata: dict[str, str | None] = {
        "Date": None,
        "Creator": None,
        "Title": title,
        "Description": description(figure),
    }
    with look():
        figure.savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def house_ticks(axis: Axis) -> None:
    """Write the numbers of an axis as everywhere else: .85, −.06, 1.00, with as many digits as they need."""

    def text(value: float, _: float) -> str:
        places = [f"{abs(v):.4f}".rstrip("0") for v in axis.get_majorticklocs()]
        digits = max((len(p.split(".")[1]) for p in places), default=0)
        return words.number(value, digits) if value else "0"

    axis.set_major_formatter(text)


def legend_below(figure: FigureBase, handles: Sequence[Artist], columns: int, fontsize: float) -> None:
    """Put a legend below a figure, or a part of one, in so many columns or in the most that its width has room for."""
    root = figure.get_figure(root=True)
    assert root is not None
    renderer = root.canvas.get_renderer()  # type: ignore[attr-defined]
    for count in range(columns, 0, -1):
        legend = figure.legend(handles=handles, loc="outside lower left", ncols=count, fontsize=fontsize)
        room = figure.bbox.width  # type: ignore[attr-defined]
        if count == 1 or legend.get_window_extent(renderer).width <= room:
            return
        legend.remove()


def group_colours(names: Sequence[str], keep: int = len(PALETTE)) -> dict[str, tuple[str, str]]:
    """Colour and marker for the most frequent groups, in order of frequency and then of name.

    Parameters
    ----------
    names
        Group of each point.
    keep
        How many groups get a colour of their own, at most ``len(PALETTE)``.

    Returns
    -------
    dict
        ``{group: (colour, marker)}`` for the groups kept; the rest is to be drawn grey.
    """
    values, counts = np.unique(np.asarray(names, dtype=object).astype(str), return_counts=True)
    order = sorted(range(len(values)), key=lambda i: (-counts[i], values[i]))
    return {str(values[i]): (PALETTE[r], MARKERS[r]) for r, i in enumerate(order[:keep])}


_SLOTS = (
    (1, 0, "left", "center"),
    (-1, 0, "right", "center"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
    (0.8, 0.8, "left", "bottom"),
    (0.8, -0.8, "left", "top"),
    (-0.8, 0.8, "right", "bottom"),
    (-0.8, -0.8, "right", "top"),
)


def place_labels(
    axes: Axes,
    points: ArrayLike,
    texts: Sequence[str],
    *,
    obstacles: ArrayLike | None = None,
    size: float = 6.0,
    gap: float = 4.0,
    colour: str = INK,
) -> int:
    """Write labels beside points where they neither overlap each other, nor leave the axes, nor hide points.

    A label for which no free place is found is left out. Call it last: it fixes the layout.

    Parameters
    ----------
    axes
        Where the points are.
    points
        (n, 2) positions in data coordinates, the most important first.
    texts
        n labels.
    obstacles
        (m, 2) further points that labels should keep off.
    size
        Font size, points.
    gap
        Distance from the point, points.
    colour
        Colour of the text.

    Returns
    -------
    int
        How many labels were written.
    """
    figure = axes.get_figure(root=True)
    if figure is None or not texts:
        return 0
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    frame = axes.get_window_extent(renderer)
    here = axes.transData.transform(np.asarray(points, dtype=float).reshape(-1, 2))
    others = here if obstacles is None else axes.transData.transform(np.asarray(obstacles, dtype=float))
    pixel = figure.dpi / 72
    taken: list[Bbox] = []
    written = 0
    for (x, y), point, text in zip(here, np.asarray(points, dtype=float), texts, strict=True):
        best: tuple[float, Any, Any] | None = None
        for rank, (dx, dy, ha, va) in enumerate(_SLOTS):
            note = axes.annotate(
                text,
                point,
                xytext=(dx * gap, dy * gap),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=size,
                color=colour,
                in_layout=False,
                annotation_clip=True,
                zorder=6,
            )
            box = note.get_window_extent(renderer).padded(0.6 * pixel)
            note.remove()
            inside = (
                box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1 + 2
            )
            if not inside or any(box.overlaps(other) for other in taken):
                continue
            hidden = (
                (others[:, 0] > box.x0)
                & (others[:, 0] < box.x1)
                & (others[:, 1] > box.y0)
                & (others[:, 1] < box.y1)
                & (np.hypot(others[:, 0] - x, others[:, 1] - y) > 0.5)
            )
            cost = 10 * float(hidden.sum()) + 0.1 * rank
            if best is None or cost < best[0]:
                best = (cost, (dx, dy, ha, va), box)
        if best is None or best[0] >= 10:
            continue
        dx, dy, ha, va = best[1]
        axes.annotate(
            text,
            point,
            xytext=(dx * gap, dy * gap),
            textcoords="offset points",
            ha=ha,
            va=va,
            fontsize=size,
            color=colour,
            in_layout=False,
            zorder=6,
        )
        taken.append(best[2])
        written += 1
    return written
