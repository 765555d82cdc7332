"""The models in the ability plane, with lineages and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from benchmirt.figures import words
from benchmirt.figures.store import Abilities, oriented_models
from benchmirt.figures.style import (
    CROWD,
    GREY,
    PALE,
    WIDE,
    describe,
    group_colours,
    message,
    place_labels,
    printable,
    sheet,
    styled,
)

Floats = NDArray[np.float64]
OTHER = ("#9A9A9A", "o")


def lineages(models: pd.DataFrame) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """Lineage of each model and the look of those lineages that have at least two models.

    Parameters
    ----------
    models
        Model table with `lineage` or `family`.

    Returns
    -------
    (list of str, dict)
        Lineage of each row, and ``{lineage: (colour, marker)}`` of the seven largest.
    """
    for column in ("lineage", "family"):
        if column in models and models[column].notna().any():
            groups = models[column].fillna("unknown").astype(str).tolist()
            counts = pd.Series(groups).value_counts()
            shared = [g for g in groups if counts[g] > 1]
            if shared:
                return groups, group_colours(shared)
    return ["" for _ in range(len(models))], {}


def scatter(
    axes: Axes,
    x: Floats,
    y: Floats,
    groups: Sequence[str],
    looks: dict[str, tuple[str, str]],
    *,
    size: float | None = None,
) -> None:
    """Points coloured and shaped by lineage; the small lineages grey, beneath."""
    many = len(x) > CROWD
    area = size if size is not None else (3.0 if many else 16.0)
    names = np.asarray(groups, dtype=object)
    rest = ~np.isin(names, list(looks)) if looks else np.ones(len(x), dtype=bool)
    for mask, (colour, marker), order in [
        (rest, OTHER, 2.0),
        *((names == name, look, 3.0) for name, look in looks.items()),
    ]:
        if mask.any():
            axes.scatter(
                x[mask],
                y[mask],
                s=area if order < 3 or not many else 2.2 * area,
                c=colour,
                marker=marker,
                edgecolors="white",
                linewidths=0.0 if many else 0.4,
                alpha=0.7 if many else 1.0,
                zorder=order,
                rasterized=many,
            )


def lineage_legend(
    figure: FigureBase,
    groups: Sequence[str],
    looks: dict[str, tuple[str, str]],
    columns: int,
    extra: Sequence[Line2D] = (),
) -> None:
    """Legend of lineages below the axes, with their numbers of models."""
    counts = pd.Series(list(groups)).value_counts()
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=4,
            label=f"{printable(words.shorten(name, 20))} ({counts[name]})",
        )
        for name, (colour, marker) in looks.items()
    ]
    others = sum(1 for g in groups if g not in looks)
    if others:
        label = f"others ({others})" if looks else f"models ({others})"
        handles.append(
            Line2D([], [], color=OTHER[0], marker="o", linestyle="none", markersize=4, label=label)
        )
    handles.extend(extra)
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=6.2, columnspacing=0.9)


def extremes(x: Floats, y: Floats, how_many: int) -> list[int]:
    """Return indices of the points farthest out in eight directions, outermost first, each once."""
    ok = np.isfinite(x) & np.isfinite(y)
    if not ok.any():
        return []
    scale_x = np.nanstd(x[ok]) or 1.0
    scale_y = np.nanstd(y[ok]) or 1.0
    u = (x - np.nanmean(x[ok])) / scale_x
    v = (y - np.nanmean(y[ok])) / scale_y
    u, v = np.where(ok, u, 0.0), np.where(ok, v, 0.0)
    found: list[int] = []
    for degrees in (45, 225, 135, 315, 0, 180, 90, 270):
        angle = np.radians(degrees)
        best = int(np.argmax(u * np.cos(angle) + v * np.sin(angle)))
        if best not in found:
            found.append(best)
    return found[:how_many]


def _column(models: pd.DataFrame, name: str) -> Floats:
    if name not in models:
        return np.full(len(models), np.nan)
    return models[name].to_numpy(dtype=float)


def _plane(
    axes: Axes, models: pd.DataFrame, short: Sequence[str], i: int, j: int, naming: Abilities, alone: bool
) -> None:
    groups, looks = lineages(models)
    x, y = _column(models, f"ability_{i + 1}"), _column(models, f"ability_{j + 1}")
    if len(models) <= CROWD:
        for k, horizontal in ((i + 1, True), (j + 1, False)):
            low, high = _column(models, f"ability_{k}_low"), _column(models, f"ability_{k}_high")
            ok = np.isfinite(low) & np.isfinite(high)
            if horizontal:
                axes.hlines(y[ok], low[ok], high[ok], color=PALE, linewidth=0.5, zorder=1)
            else:
                axes.vlines(x[ok], low[ok], high[ok], color=PALE, linewidth=0.5, zorder=1)
    scatter(axes, x, y, groups, looks)
    axes.axhline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    axes.axvline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    unit = " (standard deviations)" if alone else ""
    axes.set_xlabel(printable(words.shorten(naming.axis(i), 34)) + unit)
    axes.set_ylabel(printable(words.shorten(naming.axis(j), 34)) + unit)
    axes.margins(0.09)
    chosen = extremes(x, y, 8 if alone else 3)
    names = [printable(short[n]) for n in chosen]
    points = np.stack([x, y], axis=1)
    place_labels(axes, points[chosen], names, obstacles=points, size=5.6 if alone else 5.2)


@styled
def abilities(models: pd.DataFrame, naming: Abilities) -> Figure:
    """Draw the models in the ability plane.

    Parameters
    ----------
    models
        Model statistics (`ability_k`, `ability_k_low`, `ability_k_high`, `lineage`), one row per model.
    naming
        Names, orientation and correlations of the abilities.

    Returns
    -------
    Figure
        One ability: models in order of ability with intervals. Two: the plane. More: one panel per pair.
    """
    models = oriented_models(models, naming.orientation)
    models = models[models["ability_1"].notna()].reset_index(drop=True)
    if models.empty:
        return message("No model has an ability estimate.")
    dims = naming.dims
    if dims == 1:
        return _ranks(models, naming)
    groups, looks = lineages(models)
    bars = [Line2D([], [], color=PALE, linewidth=0.8, label="95 % interval")] if len(models) <= CROWD else []
    pairs = list(combinations(range(dims), 2))[:6]
    if len(pairs) == 1:
        figure = sheet(4.6, 4.6)
        axes = [figure.add_subplot()]
        columns = 4
    else:
        rows = -(-len(pairs) // 3)
        figure = sheet(WIDE, 2.45 * rows + 0.5)
        axes = list(figure.subplots(rows, 3, squeeze=False).ravel())
        columns = 6
        for spare in axes[len(pairs) :]:
            spare.set_axis_off()
    lineage_legend(figure, groups, looks, columns, bars)
    for panel, (i, j) in zip(axes, pairs, strict=False):
        panel.set_title(
            f"correlation of the two abilities {words.number(naming.phi[i, j])}",
            fontweight="normal",
            fontsize=7,
        )
    short = words.model_names(models["model"].astype(str).tolist(), 24 if len(pairs) == 1 else 18)
    for panel, (i, j) in zip(axes, pairs, strict=False):
        _plane(panel, models, short, i, j, naming, len(pairs) == 1)
    top = "; ".join(
        f"highest in {naming.labels[k]}: {models['model'].iloc[int(models[f'ability_{k + 1}'].argmax())]}"
        for k in range(dims)
    )
    return describe(
        figure,
        f"Scatter of {words.plural(len(models), 'model')} by {words.listing(list(naming.labels))}, one mark per "
        f"model, colour and shape by lineage. {top}.",
    )


def _ranks(models: pd.DataFrame, naming: Abilities) -> Figure:
    """One ability: models from the highest to the lowest, with intervals."""
    models = models.sort_values("ability_1", kind="stable").reset_index(drop=True)
    groups, looks = lineages(models)
    value = _column(models, "ability_1")
    low, high = _column(models, "ability_1_low"), _column(models, "ability_1_high")
    rank = np.arange(len(models), dtype=float)
    named = len(models) <= 120
    figure = sheet(4.6, 1.0 + (0.115 * len(models) if named else 4.0))
    axes = figure.add_subplot()
    lineage_legend(figure, groups, looks, 4)
    if len(models) <= CROWD:
        axes.hlines(rank, low, high, color=PALE, linewidth=0.8, zorder=1)
    scatter(axes, value, rank, groups, looks, size=11)
    axes.axvline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    axes.set_ylim(-1, len(models))
    axes.set_xlabel(printable(naming.axis(0)) + " (standard deviations)")
    if named:
        axes.set_yticks(
            rank,
            [printable(m) for m in words.model_names(models["model"].astype(str).tolist(), 34)],
            fontsize=5.4,
        )
        axes.tick_params(axis="y", length=0)
    else:
        axes.set_yticks([])
        axes.set_ylabel("models, from the lowest to the highest", color=GREY)
    return describe(
        figure,
        f"{words.plural(len(models), 'model')} in order of {naming.labels[0]}, from "
        f"{models['model'].iloc[0]} to {models['model'].iloc[-1]}, with 95 % intervals.",
    )
