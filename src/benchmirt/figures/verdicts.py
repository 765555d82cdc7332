"""Interval plots of claims: every claim on one sheet, or the parts of one claim."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator

from benchmirt.figures import words
from benchmirt.figures.style import (
    COLUMN,
    GREY,
    INK,
    WIDE,
    describe,
    legend_below,
    message,
    printable,
    sheet,
    styled,
)

_FIXED = {"r": (-1.0, 1.0), "degrees": (0.0, 180.0), "share": (0.0, 1.0), "congruence": (0.0, 1.0)}
_BAND = "#CFE3F1"
_EDGE = "#5B9BC8"
_DOTTED = (0, (1, 1))


@dataclass(frozen=True)
class Row:
    """One line of an interval plot.

    Attributes
    ----------
    name
        Words at the left.
    estimate, low, high
        The corrected estimate and its interval; None where there is none.
    region
        (low, high) in which the claim counts as true; an end of None is open; None if no region is known.
    published
        Published figure, or None.
    verdict
        Verdict as the record spells it.
    unit
        Unit of the numbers (`words.UNITS`).
    why
        Sentence that explains the verdict; shown where there is no estimate.
    signed
        True for a difference of angles or shares, whose scale reaches to both sides of 0.
    about
        Whose data the published figure is about, where these are others; else empty.
    loose
        True where `low` and `high` are the answers of two methods and no confidence interval.
    """

    name: str
    estimate: float | None
    low: float | None
    high: float | None
    region: tuple[float | None, float | None] | None
    published: float | None
    verdict: str
    unit: str
    why: str = ""
    signed: bool = False
    about: str = ""
    loose: bool = False


def _float(value: object) -> float | None:
    return float(value) if words.is_number(value) else None  # type: ignore[arg-type]


def _region(bounds: Mapping[str, Any] | None) -> tuple[float | None, float | None] | None:
    if not bounds:
        return None
    low, high = _float(bounds.get("low")), _float(bounds.get("high"))
    return None if low is None and high is None else (low, high)


def _figure(record: Mapping[str, Any], value: object) -> float | None:
    """Return the published figure to draw; a count of another size is none."""
    uncompared = (record.get("as_published") or {}).get("verdict") == "not compared"
    return None if record.get("kind") == "count" and uncompared else _float(value)


_LOOSE = "dimensionality"
_SIGNED = ("leaning", "leaning_difference", "angle_difference", "difference")


def headline(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part whose numbers stand for the whole claim; an empty mapping if the record has no parts."""
    corrected = record.get("corrected") or {}
    parts: list[Mapping[str, Any]] = corrected.get("parts") or []
    named = [part for part in parts if part.get("name") == corrected.get("headline")]
    return next(iter(named or parts), {})


def row_of(record: Mapping[str, Any]) -> Row:
    """Line of a claim from its record."""
    corrected = record.get("corrected") or {}
    bounds = corrected.get("interval") or (None, None)
    published = record.get("published") or {}
    return Row(
        str(record["claim"]),
        _float(corrected.get("estimate")),
        _float(bounds[0]),
        _float(bounds[1]),
        _region(corrected.get("region")),
        _figure(record, published.get("value")),
        str(corrected.get("verdict") or ""),
        words.unit_of(record),
        str(corrected.get("why") or ""),
        headline(record).get("statistic") in _SIGNED,
        words.published_about(record),
        record.get("kind") == _LOOSE,
    )


def rows_of_parts(record: Mapping[str, Any], limit: int = 40) -> list[Row]:
    """Lines of the parts of a claim; of the claim itself if it has none."""
    parts = (record.get("corrected") or {}).get("parts") or []
    if not parts:
        whole = row_of(record)
        return [Row("the claim", *(getattr(whole, f) for f in Row.__dataclass_fields__ if f != "name"))]
    rows = []
    for part in parts[:limit]:
        bounds = part.get("interval") or (None, None)
        published = part.get("published")
        if isinstance(published, Mapping):
            published = published.get("value")
        rows.append(
            Row(
                str(part.get("name") or "part"),
                _float(part.get("estimate")),
                _float(bounds[0]),
                _float(bounds[1]),
                _region(part.get("region")),
                _figure(record, published),
                str(part.get("verdict") or ""),
                words.unit_of(record, part),
                str(part.get("why") or ""),
                part.get("statistic") in _SIGNED,
                words.published_about(record),
                record.get("kind") == _LOOSE,
            )
        )
    return rows


def limits(row: Row) -> tuple[float, float]:
    """Return the ends of the scale of a line, wide enough for all that is on it.

    Correlations, angles and shares have the ends of their natural scale, so that such lines can be compared.
    """
    values = [
        v for v in (row.estimate, row.low, row.high, row.published, *(row.region or ())) if v is not None
    ]
    if row.unit in _FIXED:
        low, high = _FIXED[row.unit]
        if row.unit == "degrees":
            reach = 90.0 if all(abs(v) <= 90 for v in values) else 180.0
            low, high = (-reach if row.signed or any(v < 0 for v in values) else 0.0), reach
        elif row.unit == "share" and row.signed:
            low = -high
        return min([low, *values]), max([high, *values])
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * 0.15 or abs(high) * 0.2 or 1.0
    if row.unit == "count":
        return min(0.0, math.floor(low)), math.ceil(high + room)
    step = 10.0 ** math.floor(math.log10(room * 2))
    lower = 0.0 if low >= 0 and low < 3 * room else math.floor((low - room) / step) * step
    return lower, math.ceil((high + room) / step) * step


def _mark(axes: Axes, row: Row, place: float, ends: tuple[float, float]) -> None:
    """Draw the published figure, the interval and the estimate of a line at a height, on a scale with these ends."""
    look = words.verdict(row.verdict)
    if row.published is not None:
        axes.plot(
            [row.published],
            [place],
            marker="d",
            markersize=5.5,
            markerfacecolor="white",
            markeredgecolor=INK,
            markeredgewidth=0.8,
            linestyle="none",
            zorder=3,
            clip_on=False,
        )
    if row.estimate is not None:
        if row.low is not None or row.high is not None:
            left = ends[0] if row.low is None else row.low
            right = ends[1] if row.high is None else row.high
            axes.plot(
                [left, right],
                [place, place],
                color=look.colour,
                linewidth=1.8,
                linestyle=_DOTTED if row.loose else "-",
                solid_capstyle="butt",
                zorder=4,
            )
            for end, known in ((left, row.low), (right, row.high)):
                if known is not None and not row.loose:
                    axes.plot(
                        [end, end],
                        [place - 0.28, place + 0.28],
                        color=look.colour,
                        linewidth=1.0,
                        zorder=4,
                        clip_on=False,
                    )
        axes.plot(
            [row.estimate],
            [place],
            marker="o" if look.marker == "_" else look.marker,
            markersize=4.6,
            color=look.colour,
            markeredgecolor="white",
            markeredgewidth=0.5,
            linestyle="none",
            zorder=5,
            clip_on=False,
        )


def _draw_row(axes: Axes, row: Row) -> None:
    """Draw one line in its own axes: band where the claim holds, interval, estimate, published figure."""
    low, high = limits(row)
    axes.set_xlim(low, high)
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    for side in ("left", "top", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#999999")
    axes.spines["bottom"].set_position(("data", -0.82))
    if row.region is not None:
        start = low if row.region[0] is None else row.region[0]
        stop = high if row.region[1] is None else row.region[1]
        if stop - start < 0.004 * (high - low):
            axes.axvline(start, color=_EDGE, linewidth=2.2, zorder=0.5, ymin=0.1)
        else:
            axes.axvspan(start, stop, ymin=0.1, facecolor=_BAND, linewidth=0, zorder=0.5)
            for border in row.region:
                if border is not None:
                    axes.axvline(border, color=_EDGE, linewidth=0.9, zorder=0.6, ymin=0.1)
    _mark(axes, row, 0.0, (low, high))
    ticks = [low, high]
    if low < 0 < high and abs(low + high) < 1e-9:
        ticks.insert(1, 0.0)
    axes.set_xticks(ticks, [words.quantity(t, row.unit) for t in ticks], fontsize=5.5, color=GREY)
    axes.tick_params(length=1.5, pad=1.0)
    labels = axes.get_xticklabels()
    labels[0].set_horizontalalignment("left")
    labels[-1].set_horizontalalignment("right")


def _value(row: Row) -> str:
    if row.estimate is None:
        return words.NOTHING
    text = words.quantity(row.estimate, row.unit)
    if (row.low is None and row.high is None) or row.low == row.high == row.estimate:
        return text
    if row.loose:
        return f"{words.quantity(row.low, row.unit)} and {words.quantity(row.high, row.unit)}"
    return f"{text} {words.interval((row.low, row.high), row.unit)}"


def published_label(about: str) -> str:
    """Words for published figures in a legend, with whose data they are about (`words.published_about`)."""
    return f"published ({about})" if about else "published"


def _legend(figure: FigureBase, rows: Sequence[Row], columns: int) -> None:
    handles: list[Any] = []
    if any(row.region is not None for row in rows):
        handles.append(
            Patch(facecolor=_BAND, edgecolor=_EDGE, linewidth=0.5, label="where the claim is true")
        )
    about = {row.about for row in rows if row.published is not None}
    if about:
        handles.append(
            Line2D(
                [],
                [],
                marker="d",
                markersize=5,
                markerfacecolor="white",
                markeredgecolor=INK,
                markeredgewidth=0.8,
                linestyle="none",
                label=published_label(sorted(about)[-1]),
            )
        )
    if any(row.loose and row.low != row.high for row in rows):
        handles.append(
            Line2D(
                [],
                [],
                color=GREY,
                linewidth=1.6,
                linestyle=_DOTTED,
                label="from one method’s answer to the other’s",
            )
        )
    for word in dict.fromkeys(row.verdict for row in rows if row.estimate is not None):
        look = words.verdict(word)
        handles.append(
            Line2D(
                [],
                [],
                marker="o" if look.marker == "_" else look.marker,
                color=look.colour,
                markersize=4.6,
                linewidth=1.6,
                label=look.word,
            )
        )
    if handles:
        legend_below(figure, handles, columns, 6.5)


def _lines(
    figure: FigureBase, rows: Sequence[Row], names: Sequence[str], *, columns: int, width: float
) -> None:
    """Fill a figure with one strip per row: name, strip, number, verdict."""
    wide = width > COLUMN + 0.5
    grid = figure.add_gridspec(len(rows), 3, width_ratios=(1.25, 1.9, 1.25) if wide else (1.15, 1.3, 1.0))
    chars = int(width * (6.2 if wide else 6.6))
    for i, (row, name) in enumerate(zip(rows, names, strict=True)):
        left = figure.add_subplot(grid[i, 0])
        left.set_axis_off()
        text = "\n".join(textwrap.wrap(name, chars)[:3]) if len(name) > chars else name
        left.text(0, 0.5, text, va="center", ha="left", fontsize=7 if wide else 6.5, transform=left.transAxes)
        middle = figure.add_subplot(grid[i, 1])
        if row.estimate is None:
            middle.set_axis_off()
            why = words.shorten_end(
                printable(words.typeset(row.why)), int(width * 20) if wide else int(width * 21)
            )
            middle.text(
                0,
                0.5,
                "\n".join(textwrap.wrap(why, int(width * 7.2) if wide else int(width * 7.4))),
                va="center",
                ha="left",
                fontsize=6.2,
                color="#555555",
                transform=middle.transAxes,
            )
        else:
            _draw_row(middle, row)
        right = figure.add_subplot(grid[i, 2])
        right.set_axis_off()
        look = words.verdict(row.verdict)
        right.text(0, 0.55, _value(row), va="bottom", ha="left", fontsize=6.8, transform=right.transAxes)
        right.text(
            0,
            0.45,
            f"{look.symbol} {look.word}",
            va="top",
            ha="left",
            fontsize=6.8,
            color=_text_colour(look),
            fontweight="bold",
            transform=right.transAxes,
        )
    _legend(figure, rows, columns)


def said(row: Row) -> str:
    """Write a row in words, for descriptions."""
    return f"{_value(row)} {words.verdict(row.verdict).word}"


def fill(figure: FigureBase, rows: Sequence[Row], width: float) -> None:
    """Draw rows as strips into a figure or a part of one that is `width` inches wide."""
    _lines(
        figure,
        rows,
        [printable(words.typeset(row.name)) for row in rows],
        columns=3 if width > COLUMN + 0.5 else 2,
        width=width,
    )


def _text_colour(look: words.Verdict) -> str:
    """Colour of a verdict's word: the mark's colour, darkened until it is readable as text."""
    dark = {"good": "#006B4E", "bad": "#9C3F00", "open": "#7A5200", "early": "#00578A"}
    return dark.get(look.css, "#555555")


@styled
def verdicts(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Every claim on one sheet: where its interval lies, where it would have to lie, and what was published.

    Parameters
    ----------
    records
        Claim records in the order in which they are shown; those that cannot be tested are left out.

    Returns
    -------
    Figure
        One strip per claim, each with its own scale (written at its ends); correlations share -1 to 1, angles
        0 to 90 or 180 degrees.
    """
    if not records:
        return message("This study makes no claims.")
    total = len(records)
    records = [r for r in records if (r.get("corrected") or {}).get("verdict") != "cannot test"]
    silent = total - len(records)
    if not records:
        return message(
            f"None of the {total} claims can be tested on these data."
            if total > 1
            else "The claim cannot be tested on these data.",
            width=WIDE,
        )
    rest = (
        f"Not shown: {words.plural(silent, 'claim')} that cannot be tested on these data." if silent else ""
    )
    rows = [row_of(record) for record in records]
    names = [
        printable(
            f"{record['claim']}  {words.shorten_end(words.typeset(str(record.get('statement') or '')), 120)}"
        )
        for record in records
    ]
    figure = sheet(WIDE, 0.35 + 0.43 * len(rows))
    _lines(figure, rows, names, columns=6, width=WIDE)
    text = "; ".join(f"{r.name} {said(r)}" for r in rows)
    return describe(figure, f"Interval plot of {words.plural(len(rows), 'claim')}. {text}. {rest}")


@styled
def parts(record: Mapping[str, Any]) -> Figure:
    """Draw the parts of one claim as an interval plot.

    Parameters
    ----------
    record
        The claim's record.
    """
    rows = rows_of_parts(record)
    if all(row.estimate is None for row in rows):
        why = str((record.get("corrected") or {}).get("why") or "there is nothing to show")
        return message(f"{record['claim']}: {words.verdict(rows[0].verdict).word}. {why}")
    figure = sheet(COLUMN, 0.35 + 0.4 * len(rows))
    fill(figure, rows, COLUMN)
    text = "; ".join(f"{r.name} {said(r)}" for r in rows)
    return describe(figure, f"Interval plot of the parts of claim {record['claim']}. {text}.")


_FOREST = 4.2
"""Width of an interval plot on one scale, inches."""


@styled
def forest(record: Mapping[str, Any], groups: Mapping[str, Sequence[Row]], axis: str) -> Figure:
    """Draw many lines on one scale, one close below the other, in groups with a heading.

    Parameters
    ----------
    record
        The claim's record.
    groups
        Lines by heading, in order; all in the same unit.
    axis
        What the scale is, in words.
    """
    rows = [row for own in groups.values() for row in own]
    scales = [limits(row) for row in rows]
    low, high = min(one[0] for one in scales), max(one[1] for one in scales)
    figure = sheet(_FOREST, 0.6 + 0.165 * (len(rows) + len(groups)))
    axes = figure.add_subplot()
    names = iter(words.shorten_all([row.name for row in rows], 28))
    ticks: dict[int, str] = {}
    headings: list[int] = []
    for heading, own in groups.items():
        headings.append(len(ticks))
        ticks[len(ticks)] = printable(words.shorten_end(heading, 40))
        for row in own:
            place = len(ticks)
            ticks[place] = printable(next(names))
            _shade(axes, row, place, (low, high))
            _mark(axes, row, place, (low, high))
            look = words.verdict(row.verdict)
            axes.text(
                1.03,
                place,
                f"{look.symbol} {look.word if row.estimate is None else _value(row)}",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=6.5,
                color=_text_colour(look),
            )
    axes.set_yticks(list(ticks), list(ticks.values()), fontsize=6.5)
    for place in headings:
        axes.get_yticklabels()[place].set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(low, high)
    axes.set_ylim(len(ticks) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    if rows[0].unit == "degrees":
        axes.xaxis.set_major_locator(MultipleLocator(45))
    axes.xaxis.set_major_formatter(lambda value, _: words.quantity(value, rows[0].unit))
    axes.set_xlabel(axis)
    _legend(figure, rows, 3)
    text = "; ".join(f"{heading}: {row.name} {said(row)}" for heading, own in groups.items() for row in own)
    return describe(figure, f"Interval plot of the parts of claim {record['claim']}, {axis}. {text}.")


def _shade(axes: Axes, row: Row, place: float, ends: tuple[float, float]) -> None:
    """Shade where a line's claim is true, with a line at its borders."""
    if row.region is None:
        return
    start, stop = (end if bound is None else bound for bound, end in zip(row.region, ends, strict=True))
    axes.fill_between([start, stop], place - 0.5, place + 0.5, facecolor=_BAND, linewidth=0, zorder=0.5)
    for border in row.region:
        if border is not None:
            axes.plot([border] * 2, [place - 0.5, place + 0.5], color=_EDGE, linewidth=0.9, zorder=0.6)
