"""How benchmark averages go with abilities: heat map of correlations, and one benchmark as a scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from benchmirt.figures import words
from benchmirt.figures.abilities import lineage_legend, lineages, scatter
from benchmirt.figures.store import Abilities, oriented_models
from benchmirt.figures.style import (
    COLUMN,
    INK,
    WIDE,
    describe,
    house_ticks,
    message,
    place_labels,
    printable,
    sheet,
    styled,
)
from benchmirt.identification import SAME_ABILITY

Floats = NDArray[np.float64]
_AVERAGE = "_average"


@dataclass(frozen=True)
class Agreement:
    """Correlations of benchmark averages with abilities.

    Attributes
    ----------
    benchmarks
        B names.
    full
        (B, K) correlations with abilities from all responses.
    left_out
        (B, K) correlations with abilities from all other benchmarks; NaN where there are none.
    models
        (B,) models with both an average and an ability.
    """

    benchmarks: tuple[str, ...]
    full: Floats
    left_out: Floats
    models: NDArray[np.int64]


def correlation(x: Floats, y: Floats) -> float:
    """Pearson correlation over the pairs that are both there; NaN for fewer than three or without spread."""
    ok = np.isfinite(x) & np.isfinite(y)
    if ok.sum() < 3 or np.std(x[ok]) == 0 or np.std(y[ok]) == 0:
        return float("nan")
    return float(np.corrcoef(x[ok], y[ok])[0, 1])


def left_out_abilities(
    data: xr.Dataset, benchmark: str, models: Sequence[str], naming: Abilities
) -> Floats | None:
    """(N, K) abilities of the models from all benchmarks but one, oriented; None if that one was not left out.

    NaN where an ability rests on the benchmark and is another one without it.
    """
    if "theta" not in data or benchmark not in [str(b) for b in data["benchmark"].to_numpy()]:
        return None
    theta = data["theta"].transpose("benchmark", "model", "ability")
    place = [str(b) for b in theta["benchmark"].to_numpy()].index(benchmark)
    row = {str(m): n for n, m in enumerate(theta["model"].to_numpy())}
    same = data["congruence"].transpose("benchmark", "ability").to_numpy()[place] >= SAME_ABILITY
    values = np.where(same, np.asarray(theta.to_numpy()[place], dtype=float), np.nan)
    out = np.full((len(models), values.shape[1]), np.nan)
    for n, model in enumerate(models):
        if model in row:
            out[n] = values[row[model]]
    return out * naming.orientation


def agreement(models: pd.DataFrame, left_out: xr.Dataset, naming: Abilities) -> Agreement:
    """Correlations of every benchmark's average with every ability, both ways.

    Parameters
    ----------
    models
        Model statistics (`ability_k`, `{benchmark}_average`), not yet oriented.
    left_out
        `leave_one_out.nc`.
    naming
        Abilities.
    """
    models = oriented_models(models, naming.orientation)
    names = models["model"].astype(str).tolist()
    units = [str(b) for b in left_out["benchmark"].to_numpy()] if "benchmark" in left_out.coords else []
    columns = [c.removesuffix(_AVERAGE) for c in models.columns if c.endswith(_AVERAGE)]
    benchmarks = [b for b in columns if b in units] or [c for c in columns if c != "total"]
    full = np.full((len(benchmarks), naming.dims), np.nan)
    other = np.full_like(full, np.nan)
    used = np.zeros(len(benchmarks), dtype=np.int64)
    for i, benchmark in enumerate(benchmarks):
        average = models[benchmark + _AVERAGE].to_numpy(dtype=float)
        theta = left_out_abilities(left_out, benchmark, names, naming)
        used[i] = int((np.isfinite(average) & np.isfinite(models["ability_1"].to_numpy(dtype=float))).sum())
        for k in range(naming.dims):
            full[i, k] = correlation(models[f"ability_{k + 1}"].to_numpy(dtype=float), average)
            if theta is not None:
                other[i, k] = correlation(theta[:, k], average)
    return Agreement(tuple(benchmarks), full, other, used)


def _heat(axes: Axes, values: Floats, naming: Abilities, title: str) -> AxesImage:
    image = axes.imshow(
        np.ma.masked_invalid(values),
        cmap="RdBu_r",
        norm=TwoSlopeNorm(0, -1, 1),
        aspect="auto",
        interpolation="nearest",
    )
    for i, j in np.ndindex(values.shape):
        v = values[i, j]
        axes.text(
            j,
            i,
            words.number(v),
            ha="center",
            va="center",
            fontsize=6.3,
            color="white" if np.isfinite(v) and abs(v) > 0.62 else INK,
        )
    axes.set_xticks(
        range(values.shape[1]),
        [printable(words.shorten(words.capital(label), 18)) for label in naming.labels],
        rotation=0 if values.shape[1] < 3 else 28,
        ha="center" if values.shape[1] < 3 else "right",
        rotation_mode="anchor" if values.shape[1] >= 3 else "default",
    )
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=7)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.0)
    axes.tick_params(which="minor", length=0)
    return image


@styled
def correlations(found: Agreement, naming: Abilities) -> Figure:
    """Heat map of the correlations between benchmark averages and abilities, both ways.

    Parameters
    ----------
    found
        The correlations.
    naming
        Abilities.

    Returns
    -------
    Figure
        Left: abilities from all responses, so that each benchmark is part of what it is compared with. Right:
        abilities from all the other benchmarks.
    """
    if not found.benchmarks:
        return message("There is no benchmark average to correlate.")
    order = np.arange(len(found.benchmarks))
    if naming.dims > 1:
        score = np.where(np.isfinite(found.full), found.full, 0.0)
        order = np.lexsort((-score[:, 0], np.argmax(np.abs(score), axis=1)))
    both = bool(np.isfinite(found.left_out).any())
    width = COLUMN + 0.9 if naming.dims <= 2 else WIDE
    figure = sheet(width, 0.95 + 0.185 * len(order))
    panels = list(figure.subplots(1, 2 if both else 1, sharey=True, squeeze=False).ravel())
    image = _heat(panels[0], found.full[order], naming, "all responses")
    if both:
        _heat(panels[1], found.left_out[order], naming, "that benchmark left out")
    names = [printable(n) for n in words.shorten_all([found.benchmarks[i] for i in order], 26)]
    panels[0].set_yticks(range(len(names)), names)
    bar = figure.colorbar(
        image,
        ax=panels,
        location="bottom",
        shrink=0.6,
        aspect=40,
        pad=0.02,
    )
    bar.set_ticks([-1, -0.5, 0, 0.5, 1], labels=[words.number(t, 1) for t in (-1, -0.5, 0, 0.5, 1)])
    bar.outline.set_visible(False)
    bar.set_label("correlation over models")
    said = "; ".join(
        f"{found.benchmarks[i]} "
        + ", ".join(
            f"{label} {words.number(found.full[i, k])} (left out {words.number(found.left_out[i, k])})"
            for k, label in enumerate(naming.labels)
        )
        for i in order
    )
    return describe(figure, f"Correlations of benchmark averages with abilities. {said}.")


def draw_scatter(axes: Axes, x: Floats, y: Floats, models: pd.DataFrame, xlabel: str, ylabel: str) -> None:
    """One benchmark's averages against one ability, coloured by lineage, with their correlation."""
    groups, looks = lineages(models)
    scatter(axes, x, y, groups, looks)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    house_ticks(axes.yaxis)
    axes.margins(0.08)
    ok = np.isfinite(x) & np.isfinite(y)
    r = correlation(x, y)
    if np.isfinite(r):
        slope, level = np.polyfit(x[ok], y[ok], 1)
        ends = np.array([x[ok].min(), x[ok].max()])
        axes.plot(ends, level + slope * ends, color="#8A8A8A", linewidth=0.8, zorder=1)
    axes.set_title(
        f"r = {words.number(r)}  ({words.plural(int(ok.sum()), 'model')})", fontsize=7, fontweight="normal"
    )


__all__ = [
    "Agreement",
    "agreement",
    "correlation",
    "correlations",
    "draw_scatter",
    "left_out_abilities",
    "lineage_legend",
    "place_labels",
]
