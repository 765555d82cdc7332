"""Which model was run on which benchmark, and how much of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmirt.figures import words
from benchmirt.figures.style import WIDE, describe, message, printable, sheet, styled

_SHADES = LinearSegmentedColormap.from_list("shades", ["#DCEAF4", "#0A3E66"])
NAMED = 72
"""Up to so many models are named below the map."""


@styled
def coverage(table: pd.DataFrame) -> Figure:
    """Heat map of the share of each benchmark's items that each model has an outcome for.

    Parameters
    ----------
    table
        `coverage.csv`: `benchmark`, `model`, `items`, `observed`.
    """
    if table.empty:
        return message("There are no outcomes.")
    table = table.assign(share=table["observed"] / table["items"].where(table["items"] > 0))
    benchmarks = list(dict.fromkeys(table["benchmark"].astype(str)))
    models = list(dict.fromkeys(table["model"].astype(str)))
    wide = table.assign(
        benchmark=table["benchmark"].astype(str), model=table["model"].astype(str)
    ).pivot_table(index="benchmark", columns="model", values="share", aggfunc="first")
    values = wide.reindex(index=benchmarks, columns=models).fillna(0.0).to_numpy(dtype=float)
    seen = values > 0
    order = sorted(
        range(len(models)), key=lambda n: (-int(seen[:, n].sum()), tuple(~seen[:, n]), models[n].casefold())
    )
    values = values[:, order]
    named = len(models) <= NAMED
    figure = sheet(WIDE, 1.0 + 0.17 * len(benchmarks) + (1.15 if named else 0.1))
    axes = figure.add_subplot()
    image = axes.imshow(
        np.ma.masked_where(values == 0, values),
        cmap=_SHADES,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    axes.patch.set(facecolor="white", hatch="//////", edgecolor="#BBBBBB")
    axes.set_yticks(
        range(len(benchmarks)), [printable(b) for b in words.shorten_all(benchmarks, 28)], fontsize=6.5
    )
    if named:
        short = words.model_names(models, 24)
        labels = [printable(short[n]) for n in order]
        axes.set_xticks(range(len(models)), labels, rotation=90, fontsize=5.6 if len(models) <= 50 else 4.6)
        axes.set_xticks(np.arange(len(models) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(benchmarks) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.7)
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{words.count(len(models))} models, from the most to the fewest benchmarks")
        axes.set_yticks(np.arange(len(benchmarks) + 1) - 0.5, minor=True)
        axes.grid(which="minor", axis="y", color="white", linewidth=0.7)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, location="top", shrink=0.35, aspect=30, pad=0.02, anchor=(0.0, 0.0))
    bar.set_ticks([0, 0.5, 1], labels=["0\u00a0%", "50\u00a0%", "100\u00a0%"])
    bar.set_label("share of the benchmark’s items with an outcome")
    bar.outline.set_visible(False)
    if (values == 0).any():
        axes.legend(
            handles=[Patch(facecolor="white", hatch="//////", edgecolor="#BBBBBB", label="not run at all")],
            loc="lower right",
            bbox_to_anchor=(1.0, 1.02),
        )
    total = float(table["observed"].sum()) / max(float(table["items"].sum()), 1.0)
    return describe(
        figure,
        f"Coverage of {words.plural(len(benchmarks), 'benchmark')} by {words.plural(len(models), 'model')}: "
        f"{words.share(total)} of the cells have an outcome; {int((values == 0).sum())} of {values.size} "
        "benchmark-model pairs were not run at all.",
    )
