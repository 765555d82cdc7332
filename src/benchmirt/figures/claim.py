"""One figure per claim, chosen by the kind of the claim: a picture of the evidence above its intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from benchmirt.figures import (
    agreement,
    evidence,
    foretold,
    items,
    number,
    plane,
    shortforms,
    steadiness,
    verdicts,
    words,
)
from benchmirt.figures.abilities import lineage_legend, lineages
from benchmirt.figures.store import Abilities, discriminations, oriented_models, selected, was_fitted
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    INK,
    MARKERS,
    PALETTE,
    WIDE,
    describe,
    message,
    printable,
    sheet,
    styled,
)

Floats = NDArray[np.float64]
MOST_PARTS = 24
FEW = 4
"""Up to so many sets of items are shown as points and by their full names."""


def nothing(record: Mapping[str, Any]) -> str | None:
    """Sentence that says why a claim has no picture, or None if it has one."""
    rows = verdicts.rows_of_parts(record)
    if any(row.estimate is not None for row in rows) or any(p.get("cells") for p in _parts(record)):
        return None
    corrected = record.get("corrected") or {}
    word = words.verdict(corrected.get("verdict")).word
    return f"{record['claim']}: {word}. {corrected.get('why') or ''}".strip()


def _parts(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((record.get("corrected") or {}).get("parts") or [])


def _stack(
    record: Mapping[str, Any], width: float, height: float, paint: Callable[[FigureBase], None] | None
) -> Figure:
    """Figure with a picture above and the claim's parts as intervals below."""
    rows = verdicts.rows_of_parts(record, MOST_PARTS)
    below = 0.34 + 0.37 * len(rows)
    if paint is None:
        return verdicts.parts(record)
    figure = sheet(width, height + below)
    above, under = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=(height, below)), dtype=object))
    paint(above)
    verdicts.fill(under, rows, width)
    said = "; ".join(f"{r.name} {verdicts.said(r)}" for r in rows)
    return describe(figure, f"Evidence for claim {record['claim']} and the intervals of its parts. {said}.")


# ------------------------------------------------------------------ counts


def _single(region: tuple[float | None, float | None] | None) -> float | None:
    """Return the one whole number that a region holds, or None."""
    low, high = region or (None, None)
    return None if low is None or high is None or high - low > 1 else (low + high) / 2


@styled
def count(record: Mapping[str, Any]) -> Figure:
    """Draw counts beside the numbers that they should be."""
    if sentence := nothing(record):
        return message(sentence)
    rows = [r for r in verdicts.rows_of_parts(record, 60) if r.estimate is not None]
    figure = sheet(COLUMN, 0.6 + 0.23 * len(rows))
    axes = figure.add_subplot()
    found = np.array([float(r.estimate or 0.0) for r in rows])
    expected = [_single(r.region) for r in rows]
    widest = max(
        [*found, *(float(e) for e in expected if e is not None), *(r.published or 0 for r in rows)],
        default=1.0,
    )
    spread = widest / max(float(found[found > 0].min()) if (found > 0).any() else 1.0, 1.0) > 200
    for n, (row, value, target) in enumerate(zip(rows, found, expected, strict=True)):
        look = words.verdict(row.verdict)
        if spread:
            axes.hlines(n, 0, max(value, target or 0.0), color="#DDDDDD", linewidth=0.6, zorder=1)
            axes.plot([value], [n], marker="o", color=look.colour, markersize=5, zorder=3)
        else:
            axes.barh(n, value, height=0.62, color=look.colour, alpha=0.85, zorder=2)
        if target is not None:
            axes.plot([target, target], [n - 0.42, n + 0.42], color=INK, linewidth=1.4, zorder=2.5)
        if row.published is not None and row.published != target:
            axes.plot(
                [row.published], [n], marker="d", markerfacecolor="white", color=INK, markersize=4.5, zorder=4
            )
        right = max(value, target or 0.0, row.published or 0.0)
        axes.annotate(
            f"{words.count(value)} {look.symbol}",
            (right, n),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.3,
        )
    if spread:
        axes.set_xscale("symlog", linthresh=1.0)
        powers = [100**e for e in range(5) if 100**e <= widest]
        axes.set_xticks(powers, [words.count(p) for p in powers])
        axes.set_xticks([], minor=True)
        axes.set_xlim(0, widest * 30)
    else:
        axes.set_xlim(0, (widest or 1.0) * 1.28)
        axes.xaxis.set_major_locator(number.whole_numbers())
        axes.xaxis.set_major_formatter(lambda value, _: words.count(value))
    axes.set_yticks(range(len(rows)), [printable(n) for n in words.shorten_all([r.name for r in rows], 26)])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    handles: list[Any] = [
        Line2D(
            [],
            [],
            marker="o",
            color=words.verdict(word).colour,
            linestyle="none",
            label=f"counted here: {word}",
        )
        if spread
        else Patch(facecolor=words.verdict(word).colour, alpha=0.85, label=f"counted here: {word}")
        for word in dict.fromkeys(r.verdict for r in rows)
    ]
    if any(e is not None for e in expected):
        handles.append(Line2D([], [], color=INK, linewidth=1.4, label="should be"))
    published = verdicts.published_label(words.published_about(record))
    if any(r.published is not None and r.published != e for r, e in zip(rows, expected, strict=True)):
        handles.append(
            Line2D([], [], marker="d", markerfacecolor="white", color=INK, linestyle="none", label=published)
        )
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.3)
    said = "; ".join(f"{r.name} {verdicts.said(r)}" for r in rows)
    return describe(figure, f"Counts of claim {record['claim']}: {said}.")


# ------------------------------------------------------------------ dimensionality and stability


@styled
def dimensionality(record: Mapping[str, Any], found: Mapping[str, Any]) -> Figure:
    """Held-out score and left-over eigenvalues by number of dimensions, above the claim's intervals."""
    if sentence := nothing(record):
        return message(sentence)
    curves = [name for name in ("heldout", "eigen", "cellwise") if number.has(found, name)]
    if not curves:
        return verdicts.parts(record)

    def paint(figure: FigureBase) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(curves)))
        for axes, name in zip(panels, curves, strict=True):
            number.panel(axes, found, name)

    return _stack(record, WIDE if len(curves) > 2 else 5.0, 1.9, paint)


@styled
def stability(
    record: Mapping[str, Any], result: Mapping[str, Any], splits: pd.DataFrame, null: pd.DataFrame
) -> Figure:
    """Agreement of independent halves beside chance, above the claim's intervals."""
    if sentence := nothing(record):
        return message(sentence)
    dimensions = len(result.get("dimensions") or [])
    if not dimensions:
        return verdicts.parts(record)
    return _stack(
        record,
        4.8,
        steadiness.height_of(dimensions),
        lambda figure: steadiness.halves(figure, result, splits, null, ["congruence"]),
    )


# ------------------------------------------------------------------ directions


def sides(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any] | None]]:
    """Distinct selections of items that a claim speaks of: (name, select, except), in the order of its parts."""
    found: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any] | None]] = {}
    for part in _parts(record):
        candidates = part.get("sides") or [part]
        for side in candidates:
            select = side.get("select")
            if not select:
                continue
            without = side.get("except")
            key = json.dumps([select, without], sort_keys=True, default=str)
            if key not in found:
                given = str(side.get("name") or "")
                name = given if given and len(candidates) == 1 else selection_name(select, without)
                found[key] = (name, select, without)
    chosen = list(found.values())
    repeated = [name for name, _, _ in chosen]
    return [
        (name if repeated.count(name) == 1 else selection_name(select, without), select, without)
        for name, select, without in chosen
    ]


def selection_name(select: Mapping[str, Any], without: Mapping[str, Any] | None = None) -> str:
    """Words for a selection: its values, such as `harmbench, copyright` or `xstest without contrast`."""
    taken, left = (
        ", ".join(
            "/".join(
                _plain(column, value) for value in (values if isinstance(values, list | tuple) else [values])
            )
            for column, values in given.items()
            if column != "category" or "benchmark" not in given
        )
        for given in (select, without or {})
    )
    return f"{taken} without {left}" if left else taken


def angles_by_ability(record: Mapping[str, Any]) -> dict[str, list[verdicts.Row]]:
    """Lines of a claim on the angles of many sets of items, by the ability; none for a claim on few or on other numbers.

    A line is named by its items where that tells it from the others.
    """
    parts = _parts(record)[:MOST_PARTS]
    if len(parts) <= FEW or any(part.get("statistic") != "angle" or not part.get("select") for part in parts):
        return {}
    names = [selection_name(part["select"], part.get("except")) for part in parts]
    found: dict[str, list[verdicts.Row]] = {}
    for part, row, name in zip(parts, verdicts.rows_of_parts(record, MOST_PARTS), names, strict=True):
        ability = str(part.get("ability_name") or f"ability {part.get('ability')}")
        told = name if names.count(name) == 1 else row.name
        found.setdefault(f"Angle to {ability}", []).append(replace(row, name=words.typeset(told)))
    return found


def _plain(column: str, value: object) -> str:
    """Return a value of an item column in plain words; names of benchmarks stay as they are."""
    return str(value) if column == "benchmark" else str(value).rstrip("*").replace("_", " ").strip()


@styled
def direction(
    record: Mapping[str, Any], table: pd.DataFrame, naming: Abilities, replicates: Floats | None = None
) -> Figure:
    """Directions of the claim's sets of items in the ability plane, above the claim's intervals.

    Parameters
    ----------
    record
        The claim's record; kind direction or contrast.
    table
        Item statistics of all items.
    naming
        Names and directions of the abilities.
    replicates
        (R, J, K) discriminations of the rows of `table` over bootstrap replicates.
    """
    if sentence := nothing(record):
        return message(sentence)
    keep = was_fitted(table)
    a = discriminations(table, naming.dims)
    chosen = sides(record)
    if angles := angles_by_ability(record):
        return verdicts.forest(record, angles, "degrees between the mean direction and the ability’s")
    if len(chosen) > FEW:
        chosen = [(selection_name(select, without), select, without) for _, select, without in chosen]
    masks = {
        name: mask
        for name, select, without in chosen
        if (mask := selected(table, select, without) & keep).sum() >= 1
    }
    if not masks or naming.dims < 2:
        return verdicts.parts(record)
    pair = _pair(record, naming.dims)
    B = plane.basis(naming.T, *pair)
    found = {
        name: plane.directions(
            [name] * int(mask.sum()), a[mask], None if replicates is None else replicates[:, mask]
        )[0]
        for name, mask in masks.items()
    }
    looks = {name: (PALETTE[n % len(PALETTE)], MARKERS[n % len(MARKERS)], "") for n, name in enumerate(found)}
    tags = {name: str(n) for n, name in enumerate(found, start=1)}
    few = len(found) <= FEW

    def paint(figure: FigureBase) -> None:
        if few:
            left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.12))
            points = {name: a[mask] @ B for name, mask in masks.items()}
            frame = items.frame_of(np.concatenate(list(points.values())))
            for name, cloud in points.items():
                items.cloud(left, cloud, frame, colour=looks[name][0], marker=looks[name][1])
            items.ability_arrows(left, naming, B, pair, frame)
            items.square(left, frame)
            left.set_xlabel("discrimination of each question", fontsize=6.8)
        else:
            right = figure.subplots(1, 1)
        items.rose_of(right, list(found.values()), looks, naming, pair, tags)
        figure.legend(
            handles=[
                Line2D(
                    [],
                    [],
                    color=looks[name][0],
                    marker=looks[name][1],
                    markersize=4,
                    linewidth=1.0,
                    label=f"{tags[name]} {printable(words.shorten(name, 30 if few else 24))} ({words.count(s.items)})",
                )
                for name, s in found.items()
            ],
            loc="outside lower left",
            ncols=2 if few else 3,
            fontsize=6.2,
        )

    height = 2.9 + 0.12 * (-(-len(found) // (2 if few else 3)))
    return _stack(record, 5.4, height, paint)


def _pair(record: Mapping[str, Any], dims: int) -> tuple[int, int]:
    """Return the two abilities that a claim is mostly about (from 0)."""
    named: list[int] = []
    for part in _parts(record):
        for key in ("ability", "against"):
            value = part.get(key)
            if (
                isinstance(value, int)
                and not isinstance(value, bool)
                and 1 <= value <= dims
                and value - 1 not in named
            ):
                named.append(value - 1)
    rest = [k for k in range(dims) if k not in named]
    first, second = sorted([*named, *rest][:2])
    return first, second


# ------------------------------------------------------------------ correlations


def _cells(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for part in _parts(record):
        if part.get("cells"):
            return list(part["cells"])
    return []


def _table_of_cells(record: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the published and the corrected correlation of each benchmark with each ability."""
    abilities = list(dict.fromkeys(str(c.get("ability")) for c in cells))
    benchmarks = list(dict.fromkeys(str(c.get("benchmark")) for c in cells))
    place = {name: n for n, name in enumerate(benchmarks)}
    height = 0.62 + 0.16 * len(benchmarks)

    def paint(figure: FigureBase) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(abilities), sharey=True))
        for axes, ability in zip(panels, abilities, strict=True):
            axes.axvline(0, color="#BBBBBB", linewidth=0.6, zorder=0)
            for cell in cells:
                if str(cell.get("ability")) == ability:
                    _cell(axes, cell, place[str(cell.get("benchmark"))])
            axes.set_xlim(-1.05, 1.05)
            axes.set_xticks([-1, 0, 1])
            axes.set_xlabel(f"r with {printable(words.shorten(ability, 24))}")
            axes.set_ylim(len(benchmarks) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(
            range(len(benchmarks)), [printable(b) for b in words.shorten_all(benchmarks, 26)], fontsize=6.3
        )
        figure.legend(
            handles=[
                Line2D([], [], color=BLUE, marker="o", markersize=4, label="here, near the published figure"),
                Line2D(
                    [],
                    [],
                    color=words.VERDICTS["differs"].colour,
                    marker="X",
                    markersize=4.4,
                    label="here, elsewhere",
                ),
                Line2D(
                    [],
                    [],
                    marker="d",
                    markerfacecolor="white",
                    color=INK,
                    linestyle="none",
                    label=verdicts.published_label(words.published_about(record)),
                ),
            ],
            loc="outside lower left",
            ncols=3,
            fontsize=6.3,
        )

    return _stack(record, 4.8 if len(abilities) < 3 else WIDE, height, paint)


def _cell(axes: Axes, cell: Mapping[str, Any], row: int) -> None:
    off = cell.get("within") == "no"
    colour, marker = (words.VERDICTS["differs"].colour, "X") if off else (BLUE, "o")
    bounds = cell.get("interval")
    if bounds and words.is_number(bounds[0]) and words.is_number(bounds[1]):
        axes.plot(bounds, [row, row], color=colour, linewidth=1.2, zorder=2)
    if words.is_number(cell.get("estimate")):
        axes.plot(
            [cell["estimate"]],
            [row],
            marker=marker,
            color=colour,
            markersize=4,
            markeredgecolor="white",
            markeredgewidth=0.3,
            zorder=3,
        )
    if words.is_number(cell.get("published")):
        axes.plot(
            [cell["published"]],
            [row],
            marker="d",
            markerfacecolor="none",
            color=INK,
            markersize=4.6,
            markeredgewidth=0.7,
            zorder=4,
        )


@styled
def correlation(
    record: Mapping[str, Any], models: pd.DataFrame, left_out: xr.Dataset, naming: Abilities
) -> Figure:
    """Benchmark average against ability, one mark per model, above the claim's intervals.

    Parameters
    ----------
    record
        The claim's record.
    models
        Model statistics, not yet oriented.
    left_out
        `leave_one_out.nc`; where a benchmark was left out, its own answers have no part in the abilities shown.
    naming
        Abilities.
    """
    if sentence := nothing(record):
        return message(sentence)
    if cells := _cells(record):
        return _table_of_cells(record, cells)
    table = oriented_models(models, naming.orientation)
    panels = _panels(record, table, naming.dims)
    if not panels:
        return verdicts.parts(record)
    groups, looks = lineages(table)
    names = table["model"].astype(str).tolist()

    def paint(figure: FigureBase) -> None:
        grid = np.atleast_1d(figure.subplots(1, len(panels), sharey=len({b for b, _ in panels}) == 1))
        for axes, (benchmark, k) in zip(grid, panels, strict=True):
            theta = agreement.left_out_abilities(left_out, benchmark, names, naming)
            x = table[f"ability_{k + 1}"].to_numpy(dtype=float) if theta is None else theta[:, k]
            y = table[f"{benchmark}_average"].to_numpy(dtype=float)
            label = printable(naming.axis(k))
            note = "" if theta is None else f"\n(without {printable(words.shorten(benchmark, 22))})"
            agreement.draw_scatter(
                axes, x, y, table, label + note, f"{printable(words.shorten(benchmark, 24))}, average"
            )
        for axes in grid[1:]:
            if len({b for b, _ in panels}) == 1:
                axes.set_ylabel("")
        lineage_legend(figure, groups, looks, 4 if len(panels) < 3 else 6)

    width = {1: COLUMN, 2: 5.0, 3: WIDE, 4: WIDE}[len(panels)]
    return _stack(record, width, 2.75, paint)


def _panels(record: Mapping[str, Any], table: pd.DataFrame, dims: int) -> list[tuple[str, int]]:
    """(benchmark, ability from 0) of the scatters of a claim, at most four."""
    columns = {
        c.removesuffix("_average").casefold(): c.removesuffix("_average")
        for c in map(str, table)
        if c.endswith("_average")
    }
    found: list[tuple[str, int]] = []
    for part in _parts(record):
        select = part.get("select") or {}
        wanted = select.get("benchmark")
        for name in wanted if isinstance(wanted, list | tuple) else [wanted]:
            if name is None or str(name).casefold() not in columns or len(select) != 1:
                continue
            for key in ("ability", "against"):
                k = part.get(key)
                if isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= dims:
                    panel = (columns[str(name).casefold()], k - 1)
                    if panel not in found:
                        found.append(panel)
    return found[:4]


# ------------------------------------------------------------------ short forms


@styled
def shortform(
    record: Mapping[str, Any],
    curve: pd.DataFrame,
    pairs: pd.DataFrame,
    weakening: pd.DataFrame,
    naming: Abilities,
) -> Figure:
    """Draw what short forms keep, benchmark by benchmark, or what a set loses with its sharpest items; above the intervals.

    Parameters
    ----------
    record
        The claim's record; kind shortform.
    curve, pairs, weakening
        ``curve.csv``, ``correlations.csv`` and ``weakening.csv``.
    naming
        Names of the abilities.
    """
    if sentence := nothing(record):
        return message(sentence)
    first = _parts(record)[0]
    share, form = float(first["share"]), str(first.get("form") or "")
    asked = {str(part.get("statistic")) for part in _parts(record)}
    if "weakening" in asked:
        place = int(first.get("ability") or 1)
        rows = weakening[(weakening["way"] == "cross-fitted") & (weakening["ability"] == place)]
        if rows.empty:
            return verdicts.parts(record)
        return _stack(
            record,
            COLUMN,
            2.35,
            lambda figure: shortforms.weakened(figure, rows, share, naming.labels[place - 1]),
        )
    if curve.empty:
        return verdicts.parts(record)
    if asked == {"larger"}:
        rows = pairs[(pairs["form"] == form) & np.isclose(pairs["share"], share)]
        height = 0.75 + 0.16 * rows["benchmark"].nunique()
        return _stack(record, 5.4, height, lambda figure: shortforms.compared(figure, rows, naming))
    return _stack(record, 5.4, 2.5, lambda figure: shortforms.curves(figure, curve, share, naming))


# ------------------------------------------------------------------ pairs, mixes and labels


def _rows(record: Mapping[str, Any], table: str = "table") -> list[Mapping[str, Any]]:
    """Return the rows of one of the kind's own tables."""
    return [row for part in _parts(record) for row in (part.get(table) or {}).get("rows") or []]


@styled
def pair(record: Mapping[str, Any]) -> Figure:
    """Difference of each pair of models over all items and on each set of items, in both versions, above the intervals."""
    if sentence := nothing(record):
        return message(sentence)
    rows, bins = _rows(record), _rows(record, "curve")
    if not rows:
        return verdicts.parts(record)
    height = evidence.height_of_pairs(rows)
    if not bins:
        return _stack(record, WIDE, height, lambda figure: evidence.pairs(figure, rows))

    def paint(figure: FigureBase) -> None:
        heights = (evidence.CURVES_HEIGHT, height)
        above, under = np.ravel(np.asarray(figure.subfigures(2, 1, height_ratios=heights), dtype=object))
        evidence.curves(above, bins)
        evidence.pairs(under, rows)

    return _stack(record, WIDE, evidence.CURVES_HEIGHT + height, paint)


@styled
def mix(record: Mapping[str, Any]) -> Figure:
    """Congruence and ability correlation of each mix with the whole, above the claim's interval."""
    if sentence := nothing(record):
        return message(sentence)
    rows = _rows(record)
    if not rows:
        return verdicts.parts(record)
    border = next((row.region[1] for row in verdicts.rows_of_parts(record) if row.region), None)
    height = evidence.height_of_mixes(rows)
    return _stack(record, 5.6, height, lambda figure: evidence.mixes(figure, rows, border))


@styled
def label(record: Mapping[str, Any]) -> Figure:
    """Draw how discriminations are spread under each label, above the claim's interval."""
    if sentence := nothing(record):
        return message(sentence)
    found = next((part for part in _parts(record) if part.get("groups")), None)
    if found is None:
        return verdicts.parts(record)
    name = str(found.get("ability_name") or "the ability")
    return _stack(record, COLUMN, 1.35, lambda figure: evidence.labels(figure, found["groups"], name))


# ------------------------------------------------------------------ prediction


@styled
def prediction(record: Mapping[str, Any]) -> Figure:
    """Scores of all methods in the splits that a claim is about, above the claim's intervals."""
    if sentence := nothing(record):
        return message(sentence)
    entries = foretold.listed(record)
    if not entries:
        return verdicts.parts(record)
    found, metrics = foretold.blocks(entries), foretold.metrics(record)

    def paint(figure: FigureBase) -> None:
        foretold.stacked(
            figure, found, metrics, foretold.compared(record), "what the claim compares with (both in bold)"
        )

    return _stack(record, foretold.WIDTHS.get(len(metrics), WIDE), foretold.height_of(found), paint)
