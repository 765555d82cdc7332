"""How well held-out answers are predicted: scores of all methods, and whether probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmirt.figures import words
from benchmirt.figures.style import (
    BLUE,
    GREY,
    INK,
    MARKERS,
    PALETTE,
    VERMILLION,
    WASH,
    WIDE,
    describe,
    house_ticks,
    message,
    sheet,
    styled,
)

TITLES = {
    "cells": "single answers",
    "lineages": "new lineages",
    "few_answers": "few answers known",
    "items": "new questions",
    "benchmarks": "new benchmarks",
    "newer_models": "newer models",
    "published": "as published",
}
"""Splits in a few words."""
MEASURES = {
    "accuracy": "accuracy (more is better)",
    "log_loss": "log loss (less is better)",
    "rank": "rank agreement (more is better)",
}
_CURVES = ("benchmark_mean", "item_mean", "rasch_benchmark", "rasch", "mirt_1", "mirt_2")


def _bars(axes: Axes, rows: Sequence[Mapping[str, Any]], methods: Sequence[str], metric: str) -> None:
    """Draw the scores of one split, a line per method; the best is filled, the others are open."""
    found = {str(row["method"]): row for row in rows if words.is_number(row.get("value"))}
    values = {method: float(found[method]["value"]) for method in methods if method in found}
    best = None
    if values:
        best = (min if metric == "log_loss" else max)(values, key=lambda method: values[method])
    for n, method in enumerate(methods):
        if n % 2:
            axes.axhspan(n - 0.5, n + 0.5, color=WASH, linewidth=0, zorder=0)
        if method not in values:
            continue
        row = found[method]
        colour = VERMILLION if method.startswith("published") else BLUE
        ends: list[Any] = [row.get("low"), row.get("high")]
        if all(words.is_number(end) for end in ends):
            axes.plot(ends, [n, n], color=colour, linewidth=1.1, zorder=2)
        axes.plot(
            [values[method]],
            [n],
            marker="X" if method.startswith("published") else "o",
            color=colour,
            markerfacecolor=colour if method == best else "white",
            markersize=4.2,
            markeredgewidth=0.9,
            linestyle="none",
            zorder=3,
        )
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=3)
    house_ticks(axes.xaxis)
    axes.tick_params(axis="x", labelsize=6)


def _legend(study: bool) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            marker="o",
            color=BLUE,
            markerfacecolor="white",
            linewidth=1.1,
            label="score and 95 % interval",
        ),
        Line2D([], [], marker="o", color=BLUE, linewidth=1.1, label="the best one"),
    ]
    if study:
        handles.append(
            Line2D(
                [],
                [],
                marker="X",
                color=VERMILLION,
                markerfacecolor="white",
                linewidth=1.1,
                label="the study's own fit",
            )
        )
    return handles


@styled
def scores(table: pd.DataFrame, about: Mapping[str, Any]) -> Figure:
    """Accuracy and log loss of every method by what was held out.

    Parameters
    ----------
    table
        Content of `scores.csv`.
    about
        Content of `prediction.json`.
    """
    chosen = table[(table["fold"] == "all") & (table["benchmark"] == "micro")]
    splits = [name for name in TITLES if name in about["splits"]]
    labels = about["labels"]
    if chosen.empty or not splits:
        return message("Nothing was held out.")
    order = dict.fromkeys(method for name in splits for method in about["splits"][name]["methods"])
    methods = [method for method in order if (chosen["method"] == method).any()]
    figure = sheet(WIDE, 0.75 + 2 * (0.4 + 0.15 * len(methods)))
    grid = np.atleast_2d(figure.subplots(2, len(splits), sharey=True, sharex=False))
    said = []
    for row, metric in zip(grid, ("accuracy", "log_loss"), strict=True):
        own = chosen[chosen["metric"] == metric]
        for axes, split in zip(row, splits, strict=True):
            found: Any = own[own["split"] == split].to_dict("records")
            _bars(axes, found, methods, metric)
            if metric == "accuracy":
                axes.set_title(TITLES[split].replace(" ", "\n", 1), fontsize=6.4)
            said.append(
                f"{metric.replace('_', ' ')}, {TITLES[split]}: "
                + ", ".join(f"{labels[one['method']]} {words.number(one['value'], 3)}" for one in found)
            )
        row[0].set_yticks(range(len(methods)), [labels[method] for method in methods], fontsize=6)
        row[len(row) // 2].set_xlabel(MEASURES[metric], fontsize=6.8)
    figure.legend(handles=_legend("published" in splits), loc="outside lower left", ncols=3, fontsize=6.3)
    return describe(figure, f"Scores of all methods by what was held out. {'; '.join(said)}.")


@styled
def calibration(table: pd.DataFrame, about: Mapping[str, Any]) -> Figure:
    """Observed share of right answers by predicted probability, a panel for each of the splits.

    Parameters
    ----------
    table
        Content of `calibration.csv`.
    about
        Content of `prediction.json`.
    """
    splits = [name for name in TITLES if name in about["splits"] and name != "published"]
    methods = [method for method in _CURVES if (table["method"] == method).any()]
    if not splits or not methods:
        return message("Nothing was held out.")
    across = min(3, len(splits))
    down = -(-len(splits) // across)
    figure = sheet(5.2, 0.6 + 1.75 * down)
    grid = np.ravel(np.atleast_1d(figure.subplots(down, across, sharex=True, sharey=True)))
    for axes, split in zip(grid, splits, strict=False):
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=(0, (3, 2)), zorder=1)
        for n, method in enumerate(methods):
            own = table[(table["split"] == split) & (table["method"] == method)]
            axes.plot(
                own["predicted"],
                own["observed"],
                color=PALETTE[n],
                marker=MARKERS[n],
                markersize=2.8,
                linewidth=0.8,
                zorder=2 + n,
            )
        axes.set_title(TITLES[split], fontsize=6.8)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
        axes.set_aspect("equal")
    for axes in grid[len(splits) :]:
        axes.set_axis_off()
    grid[(down - 1) * across + (across > 2)].set_xlabel("predicted probability of a right answer", fontsize=7)
    figure.supylabel("observed share of right answers", fontsize=7)
    figure.legend(
        handles=[
            *(
                Line2D(
                    [],
                    [],
                    color=PALETTE[n],
                    marker=MARKERS[n],
                    markersize=3,
                    linewidth=0.8,
                    label=about["labels"][method],
                )
                for n, method in enumerate(methods)
            ),
            Line2D([], [], color=GREY, linewidth=0.7, linestyle=(0, (3, 2)), label="as it should be"),
        ],
        loc="outside lower left",
        ncols=3,
        fontsize=6.3,
    )
    return describe(
        figure,
        "Observed share of right answers by predicted probability, for "
        + words.listing([TITLES[split] for split in splits])
        + ".",
    )


def listed(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Scores of all methods that a claim's record lists."""
    parts = (record.get("corrected") or {}).get("parts") or []
    return [entry for part in parts for entry in part.get("scores") or []]


def metrics(record: Mapping[str, Any]) -> list[str]:
    """Measures that a claim is about, in the order of `MEASURES`; log loss stands beside the others."""
    parts = (record.get("corrected") or {}).get("parts") or []
    wanted = {str(part.get("statistic")).removesuffix("_gain") for part in parts} | {"log_loss"}
    return [metric for metric in MEASURES if metric in wanted]


def panel(axes: Axes, entries: Sequence[Mapping[str, Any]], metric: str, methods: Sequence[str]) -> None:
    """Scores of one split by one measure in axes of their own."""
    rows = []
    for entry in entries:
        low, high = entry.get(f"{metric}_interval") or (None, None)
        rows.append({"method": entry["method"], "value": entry.get(metric), "low": low, "high": high})
    _bars(axes, rows, methods, metric)
    axes.set_xlabel(MEASURES[metric].replace(" (", "\n("), fontsize=6.3, color=INK)
