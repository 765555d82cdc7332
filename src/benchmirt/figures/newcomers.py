"""New models in the ability plane, among those of the study that their abilities are measured by."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from benchmirt.figures import style, words
from benchmirt.figures.abilities import OTHER, scatter
from benchmirt.figures.store import Abilities
from benchmirt.figures.style import (
    CROWD,
    GREY,
    VERMILLION,
    WIDE,
    describe,
    place_labels,
    printable,
    sheet,
    styled,
)

if TYPE_CHECKING:
    from benchmirt.ability.calibration import Calibration

__all__ = ["draw", "naming_of", "newcomers"]

Floats = NDArray[np.float64]
LOOK = (VERMILLION, "D")
MOST_NAMED = 25  # new models; beyond, names would hide the points
_STEPS = 80  # points that stand for an interval where names are kept off it


def naming_of(calibration: Calibration) -> Abilities:
    """Return names and directions of a calibration's abilities, which are turned so that more is better."""
    return Abilities(
        labels=calibration.labels,
        named=calibration.named,
        orientation=np.ones(calibration.dims),
        T=calibration.T,
        phi=calibration.phi,
        details=(),
    )


@styled
def newcomers(known: pd.DataFrame, new: pd.DataFrame, naming: Abilities) -> Figure:
    """Draw new models with their intervals among known ones.

    Parameters
    ----------
    known
        `model` and `ability_k` of the study's models.
    new
        `model`, `ability_k`, `ability_k_low` and `ability_k_high` of the new ones.
    naming
        Names and correlations of the abilities.

    Returns
    -------
    Figure
        One ability: models in order of ability. Two: the plane. More: one panel per pair.
    """
    dims = naming.dims
    pairs = list(combinations(range(dims), 2))[:6]
    if len(pairs) <= 1:
        figure = sheet(4.6, 4.6)
        panels = [figure.add_subplot()]
    else:
        rows = -(-len(pairs) // 3)
        figure = sheet(WIDE, 2.45 * rows + 0.5)
        panels = list(figure.subplots(rows, 3, squeeze=False).ravel())
        for spare in panels[len(pairs) :]:
            spare.set_axis_off()
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=4, label=label)
        for (colour, marker), label in (
            (OTHER, f"models of the study ({len(known)})"),
            (LOOK, f"new models, with 95 % intervals ({len(new)})"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.2)
    if dims == 1:
        _ranks(panels[0], known, new, naming)
    for panel, (i, j) in zip(panels, pairs, strict=False):
        correlation = words.number(naming.phi[i, j])
        panel.set_title(f"correlation of the two abilities {correlation}", fontweight="normal", fontsize=7)
    for panel, (i, j) in zip(panels, pairs, strict=False):
        _plane(panel, known, new, naming, i, j)
    placed = "; ".join(
        f"{row.model}: "
        + ", ".join(f"{naming.labels[k]} {getattr(row, f'ability_{k + 1}'):.2f}" for k in range(dims))
        for row in new.head(5).itertuples()
    )
    return describe(
        figure,
        f"{words.plural(len(new), 'new model')} by {words.listing(list(naming.labels))}, among "
        f"{words.plural(len(known), 'model')} of the study. {placed}.",
    )


def _column(table: pd.DataFrame, name: str) -> Floats:
    return table[name].to_numpy(dtype=np.float64)


def _bounds(new: pd.DataFrame, k: int) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of ability k (from 0)."""
    return _column(new, f"ability_{k + 1}_low"), _column(new, f"ability_{k + 1}_high")


def _names(new: pd.DataFrame) -> list[str]:
    return [printable(name) for name in words.model_names(new["model"].astype(str).tolist(), 24)]


def _plane(axes: Axes, known: pd.DataFrame, new: pd.DataFrame, naming: Abilities, i: int, j: int) -> None:
    x, y = _column(new, f"ability_{i + 1}"), _column(new, f"ability_{j + 1}")
    others = np.stack([_column(known, f"ability_{k + 1}") for k in (i, j)], axis=1)
    scatter(axes, others[:, 0], others[:, 1], ["" for _ in others], {})
    points = np.stack([x, y], axis=1)
    obstacles = points
    if len(new) <= CROWD:
        (left, right), (bottom, top) = (_bounds(new, k) for k in (i, j))
        obstacles = np.concatenate([_along(left, right, y), _along(bottom, top, x)[:, ::-1]])
        axes.hlines(y, left, right, color=VERMILLION, linewidth=0.6, alpha=0.6, zorder=4)
        axes.vlines(x, bottom, top, color=VERMILLION, linewidth=0.6, alpha=0.6, zorder=4)
    scatter(axes, x, y, ["new"] * len(new), {"new": LOOK}, size=18)
    axes.axhline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    axes.axvline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    axes.set_xlabel(printable(words.shorten(naming.axis(i), 34)) + " (standard deviations)")
    axes.set_ylabel(printable(words.shorten(naming.axis(j), 34)) + " (standard deviations)")
    axes.margins(0.09)
    shown = min(len(new), MOST_NAMED)
    place_labels(axes, points[:shown], _names(new)[:shown], obstacles=obstacles, size=5.6)


def _along(low: Floats, high: Floats, level: Floats) -> Floats:
    """Return points along horizontal intervals, (points, 2), close enough to keep names off the lines."""
    steps = np.linspace(0.0, 1.0, _STEPS)[:, None]
    return np.stack(
        [low + steps * (high - low), np.broadcast_to(level, (_STEPS, level.size))], axis=-1
    ).reshape(-1, 2)


def _ranks(axes: Axes, known: pd.DataFrame, new: pd.DataFrame, naming: Abilities) -> None:
    """One ability: all models from the lowest to the highest."""
    value = np.concatenate([_column(known, "ability_1"), _column(new, "ability_1")])
    rank = np.empty(len(value))
    rank[np.argsort(value, kind="stable")] = np.arange(len(value))
    own = rank[len(known) :]
    scatter(axes, value[: len(known)], rank[: len(known)], ["" for _ in range(len(known))], {})
    obstacles = np.stack([value[len(known) :], own], axis=1)
    if len(new) <= CROWD:
        obstacles = _along(*_bounds(new, 0), own)
        axes.hlines(own, *_bounds(new, 0), color=VERMILLION, linewidth=0.6, alpha=0.6, zorder=4)
    scatter(axes, value[len(known) :], own, ["new"] * len(new), {"new": LOOK}, size=18)
    axes.axvline(0, color="#E3E3E3", linewidth=0.6, zorder=0)
    axes.set_yticks([])
    axes.set_xlabel(printable(naming.axis(0)) + " (standard deviations)")
    axes.set_ylabel("models, from the lowest to the highest", color=GREY)
    points = np.stack([value[len(known) :], own], axis=1)
    shown = min(len(new), MOST_NAMED)
    place_labels(axes, points[:shown], _names(new)[:shown], obstacles=obstacles, size=5.6)


def draw(calibration: Calibration, scores: pd.DataFrame, stem: Path, *, simulated: bool) -> list[Path]:
    """Draw the new models and write the figure in every format.

    Parameters
    ----------
    calibration
        Names of the abilities, and the study's models.
    scores
        The new models' abilities.
    stem
        Path without extension.
    simulated
        Whether any of the data is simulated; the figure says so then.
    """
    drawn = newcomers(calibration.model_table, scores, naming_of(calibration))
    title = "Where the new models stand"
    if simulated:
        style.stamp_simulated(drawn, str(calibration.about["title"]))
        title = f"Simulated data. {title}"
        describe(drawn, f"Simulated data. {style.description(drawn)}")
    return style.save(drawn, stem, title)
