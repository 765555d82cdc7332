"""How well held-out answers are predicted: scores of all methods, and whether probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmirt.figures import words
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    GREY,
    INK,
    MARKERS,
    PALETTE,
    VERMILLION,
    WASH,
    describe,
    house_ticks,
    legend_below,
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
_STUDY, _BESIDE = "published", "cells"
"""Split of the study's own fits, and the split beside which they are drawn: single answers are held out in both."""
WIDTHS = {1: COLUMN, 2: 4.9}
"""Width in inches of a drawing of so many measures."""

_DASHED = (0, (4, 2))

Entry = Mapping[str, Any]
"""Scores of a method in a split: split, method, label, and each measure with its interval (`accuracy_interval`)."""


@dataclass(frozen=True)
class Block:
    """What was held out in one way, and how well each method predicts it.

    Attributes
    ----------
    split
        Name of the split.
    labels
        Methods in words, by method, in the order of the lines.
    own, study
        Scores of the methods with the same priors, and those of the study's own fits, by the method of the line.
    """

    split: str
    labels: Mapping[str, str]
    own: Mapping[str, Entry]
    study: Mapping[str, Entry]


@dataclass(frozen=True)
class Comparison:
    """Which methods are set against a baseline by a measure."""

    baseline: str
    methods: tuple[str, ...] = ()


def _line_of(method: str) -> str:
    """Name the method on whose line the study's own fit is drawn; matched priors have a line of their own."""
    family, _, rest = method.partition("_")
    return f"mirt_{rest}" if family == _STUDY and not rest.endswith("matched") else method


def blocks(entries: Sequence[Entry]) -> list[Block]:
    """Scores by what was held out; those of the study's own fits stand beside the other single answers."""
    by_split: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        by_split.setdefault(str(entry["split"]), {})[str(entry["method"])] = entry
    study = by_split.pop(_STUDY, {})
    if study and _BESIDE not in by_split:
        by_split[_STUDY] = {}
    made = []
    for split, own in by_split.items():
        beside = study if split in (_BESIDE, _STUDY) else {}
        lines = {_line_of(method): entry for method, entry in beside.items()}
        labels = {method: str(entry["label"]) for method, entry in {**lines, **own}.items()}
        order = [*own, *(method for method in lines if method not in own)]
        made.append(Block(split, {method: labels[method] for method in order}, own, lines))
    return made


def height_of(found: Sequence[Block]) -> float:
    """Height in inches that :func:`stacked` needs."""
    return 0.8 + sum(0.24 + 0.145 * len(block.labels) for block in found)


def _series(axes: Axes, scores: Mapping[str, Entry], block: Block, metric: str, study: bool) -> None:
    """Draw the scores of one kind of fits with their intervals; the best is filled, the others are open."""
    values = {
        method: float(one[metric]) for method, one in scores.items() if words.is_number(one.get(metric))
    }
    if not values:
        return
    best = (min if metric == "log_loss" else max)(values, key=lambda method: values[method])
    colour = VERMILLION if study else BLUE
    for n, method in enumerate(block.labels):
        if method not in values:
            continue
        both = method in block.own and method in block.study
        place = n + (0.2 if study else -0.2) * both
        ends: Any = scores[method].get(f"{metric}_interval") or (None, None)
        if all(words.is_number(end) for end in ends):
            axes.plot(ends, [place, place], color=colour, linewidth=1.0, zorder=2)
        axes.plot(
            [values[method]],
            [place],
            marker="X" if study else "o",
            color=colour,
            markerfacecolor=colour if method == best else "white",
            markersize=4.0 if study else 3.7,
            markeredgewidth=0.8,
            linestyle="none",
            zorder=3,
        )


def _panel(axes: Axes, block: Block, metric: str, comparison: Comparison | None) -> None:
    """Draw one measure of one block, with a line per method and a dashed line at the baseline's score."""
    for n in range(1, len(block.labels), 2):
        axes.axhspan(n - 0.5, n + 0.5, color=WASH, linewidth=0, zorder=0)
    baseline = block.own.get(comparison.baseline) if comparison else None
    if baseline is not None and words.is_number(baseline.get(metric)):
        axes.axvline(float(baseline[metric]), color=INK, linewidth=0.7, linestyle=_DASHED, zorder=1)
    _series(axes, block.own, block, metric, study=False)
    _series(axes, block.study, block, metric, study=True)
    axes.set_ylim(len(block.labels) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(axis="x")
    axes.margins(x=0.05)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    house_ticks(axes.xaxis)


def stacked(
    figure: FigureBase,
    found: Sequence[Block],
    metrics: Sequence[str],
    compared: Mapping[tuple[str, str], Comparison],
    baseline: str,
) -> None:
    """Draw a block of lines for each way to hold out, one below the other, and a column for each measure.

    Parameters
    ----------
    figure
        Where to draw, `height_of` inches high.
    found
        The blocks, from above.
    metrics
        Measures, from the left.
    compared
        By split and measure: the baseline at whose score there is a dashed line, and the methods set against it, named in bold.
    baseline
        What the dashed lines are, in words.
    """
    lines = [len(block.labels) for block in found]
    grid = figure.subplots(len(found), len(metrics), squeeze=False, sharex="col", height_ratios=lines)
    for row, block in zip(grid, found, strict=True):
        bold: set[str] = set()
        for axes, metric in zip(row, metrics, strict=True):
            comparison = compared.get((block.split, metric))
            _panel(axes, block, metric, comparison)
            if comparison and comparison.methods:
                bold |= {comparison.baseline, *comparison.methods}
        row[0].set_yticks(range(len(block.labels)), list(block.labels.values()), fontsize=6.3)
        row[0].tick_params(axis="y", length=0)
        for label, method in zip(row[0].get_yticklabels(), block.labels, strict=True):
            label.set_fontweight("bold" if method in bold else "normal")
        row[0].set_title(words.capital(TITLES.get(block.split, block.split)), fontsize=7)
    for axes, metric in zip(grid[-1], metrics, strict=True):
        axes.set_xlabel(MEASURES[metric], fontsize=6.8)
    legend_below(figure, _legend(found, baseline if compared else ""), 2, 6.3)


def _legend(found: Sequence[Block], baseline: str) -> list[Line2D]:
    look: dict[str, Any] = {"markerfacecolor": "white", "linewidth": 1.0, "markersize": 4}
    handles = []
    if any(block.own for block in found):
        handles.append(Line2D([], [], marker="o", color=BLUE, label="same priors, 95 % interval", **look))
    if any(block.study for block in found):
        handles.append(
            Line2D([], [], marker="X", color=VERMILLION, label="the study’s own fit and data", **look)
        )
    handles.append(
        Line2D([], [], marker="o", color=GREY, linestyle="none", markersize=4, label="filled: the best")
    )
    if baseline:
        handles.append(Line2D([], [], color=INK, linewidth=0.7, linestyle=_DASHED, label=baseline))
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
    if chosen.empty or not splits:
        return message("Nothing was held out.")
    metrics, labels = ("accuracy", "log_loss"), about["labels"]
    entries = [
        entry
        for split in splits
        for entry in _entries(chosen[chosen["split"] == split], split, labels, metrics)
    ]
    found = blocks(entries)
    baseline = str(about.get("baseline") or "")
    compared = {
        (block.split, metric): Comparison(baseline) for block in found for metric in metrics if baseline
    }
    figure = sheet(WIDTHS[2], height_of(found))
    stacked(figure, found, metrics, compared, labels.get(baseline, ""))
    said = "; ".join(
        f"{metric.replace('_', ' ')}, {TITLES[split]}: "
        + ", ".join(
            f"{one['label']} {words.number(one.get(metric), 3)}" for one in entries if one["split"] == split
        )
        for metric in metrics
        for split in splits
    )
    return describe(figure, f"Scores of all methods by what was held out. {said}.")


def _entries(
    table: pd.DataFrame, split: str, labels: Mapping[str, str], metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Scores of the methods of one split, from the rows of `scores.csv`."""
    made: dict[str, dict[str, Any]] = {}
    for row in table[table["metric"].isin(metrics)].to_dict("records"):
        method = str(row["method"])
        entry = made.setdefault(method, {"split": split, "method": method, "label": labels[method]})
        entry[str(row["metric"])] = row["value"]
        entry[f"{row['metric']}_interval"] = [row.get("low"), row.get("high")]
    return list(made.values())


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


def compared(record: Mapping[str, Any]) -> dict[tuple[str, str], Comparison]:
    """Return what the parts of a claim's record set against a baseline, by split and measure."""
    made: dict[tuple[str, str], Comparison] = {}
    for part in (record.get("corrected") or {}).get("parts") or []:
        place = str(part.get("split")), str(part.get("statistic")).removesuffix("_gain")
        before = made[place].methods if place in made else ()
        made[place] = Comparison(str(part.get("baseline")), (*before, str(part.get("method"))))
    return made
