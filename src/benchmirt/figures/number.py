"""How many dimensions: eigenvalues against their null, and the score on held-out models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from benchmirt.claims.verdict import P_NEEDED
from benchmirt.figures import words
from benchmirt.figures.style import (
    BLUE,
    COLUMN,
    INK,
    VERMILLION,
    describe,
    house_ticks,
    message,
    sheet,
    styled,
)

Floats = NDArray[np.float64]


def _column(rows: Sequence[Mapping[str, Any]], key: str) -> Floats:
    return np.array([float(r[key]) if words.is_number(r.get(key)) else np.nan for r in rows])


def _dims_axis(axes: Axes, dims: Floats) -> None:
    axes.set_xticks(dims, [str(int(d)) for d in dims])
    axes.set_xlim(dims.min() - 0.4, dims.max() + 0.4)


def _eigen_panel(
    axes: Axes, rows: Sequence[Mapping[str, Any]], needed: float, *, narrow: bool = False
) -> NDArray[np.bool_]:
    """Eigenvalues beside their null distribution; returns which of them are beyond chance, at a p-value of at most `needed`.

    In a narrow panel only the first p-value says that it is one.
    """
    dims, value = _column(rows, "dims"), _column(rows, "eigenvalue")
    q95, q99 = _column(rows, "null_q95"), _column(rows, "null_q99")
    middle = _column(rows, "null_mean")
    positive = np.concatenate([value, q95, q99])
    positive = positive[np.isfinite(positive) & (positive > 0)]
    logarithmic = positive.size > 1 and positive.max() / positive.min() > 12
    floor = positive.min() * 0.8 if logarithmic else 0.0
    base = np.where(np.isfinite(middle), middle, floor)
    axes.bar(dims, q99 - base, bottom=base, width=0.5, color="#DCDCDC", zorder=1)
    axes.bar(dims, q95 - base, bottom=base, width=0.5, color="#B9B9B9", zorder=1.5)
    axes.plot(dims, value, color=BLUE, linewidth=0.9, zorder=3)
    p = _column(rows, "p")
    beyond = np.where(np.isfinite(p), p <= needed, value > q99)
    axes.plot(dims[beyond], value[beyond], "o", color=BLUE, zorder=4)
    axes.plot(dims[~beyond], value[~beyond], "o", markerfacecolor="white", color=BLUE, zorder=4)
    if logarithmic:
        axes.set_yscale("log")
        low, high = floor, positive.max() * 1.9
        ticks = [t for t in (m * 10.0**e for e in range(-6, 9) for m in (1, 2, 5)) if low <= t <= high]
        axes.set_ylim(low, high)
        if len(ticks) > 7:
            ticks = [t for t in ticks if f"{t:e}"[0] == "1"]
        axes.set_yticks(ticks, [f"{t:,g}" for t in ticks])
        axes.set_yticks([], minor=True)
    else:
        axes.set_ylim(0, float(positive.max()) * 1.18 if positive.size else 1.0)
    _dims_axis(axes, dims)
    axes.set_xlim(dims.min() - 0.4, dims.max() + 0.75)
    axes.set_xlabel("dimensions already in the model")
    axes.set_ylabel("largest eigenvalue left over")
    for n, (d, v, row) in enumerate(zip(dims, value, rows, strict=True)):
        text = words.probability(row.get("p"))
        axes.annotate(
            text.removeprefix("p ").removeprefix("= ") if narrow and n else text,
            (d, v),
            xytext=(4, 2.5),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=6.2,
            color=INK,
        )
    return np.asarray(beyond, dtype=np.bool_)


def _needed(eigen: Mapping[str, Any]) -> float:
    """Return the largest p-value with which an eigenvalue is beyond chance."""
    return float(eigen.get("p_needed") or P_NEEDED)


@styled
def eigenvalues(number: Mapping[str, Any]) -> Figure:
    """Largest eigenvalue of what k dimensions leave unexplained, beside its distribution if k were enough.

    Parameters
    ----------
    number
        Content of `number.json`.
    """
    eigen = number.get("eigen") or {}
    rows = sorted(eigen.get("levels") or [], key=lambda r: int(r["dims"]))
    if not rows:
        return message(f"Eigenvalues were not computed. {number.get('why_not') or ''}")
    figure = sheet(COLUMN, 2.6)
    beyond = _eigen_panel(figure.add_subplot(), rows, _needed(eigen))
    handles: list[Any] = [
        Line2D([], [], marker="o", color=BLUE, linewidth=0.9, label="data: beyond chance"),
    ]
    if (~beyond).any():
        handles.append(
            Line2D(
                [],
                [],
                marker="o",
                markerfacecolor="white",
                color=BLUE,
                linewidth=0.9,
                label="data: within chance",
            )
        )
    handles.append(Patch(facecolor="#B9B9B9", label="chance, up to its 95 % point"))
    handles.append(Patch(facecolor="#DCDCDC", label="chance, up to its 99 % point"))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.2, columnspacing=0.8)
    chosen = eigen.get("chosen")
    said = "; ".join(
        f"after {words.plural(int(r['dims']), 'dimension')} {words.number(r.get('eigenvalue'))}, chance up to "
        f"{words.number(r.get('null_q99'))}, {words.probability(r.get('p'))}"
        for r in rows
    )
    verdict = (
        "No number was chosen."
        if chosen is None
        else f"This method chooses {words.plural(int(chosen), 'dimension')}."
    )
    return describe(figure, f"Eigenvalues of the residuals beside their null distribution: {said}. {verdict}")


def _curve(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    chosen: object,
    label: str,
    *,
    better: str,
    unit: str,
) -> None:
    """Mean with standard errors by number of dimensions; the chosen one ringed, the band of one error shaded."""
    dims, mean, se = _column(rows, "dims"), _column(rows, "mean"), _column(rows, "se")
    best = int(np.nanargmin(mean) if better == "lower" else np.nanargmax(mean))
    reach = np.where(np.isfinite(se), se, 0.0)
    own = rows[best]
    if words.is_number(own.get("se")) and better == "lower":
        axes.axhspan(
            mean[best] - reach[best], mean[best] + reach[best], color="#E8E8E8", linewidth=0, zorder=0
        )
    axes.errorbar(
        dims, mean, yerr=reach, color=BLUE, marker="o", linewidth=0.9, elinewidth=0.9, capsize=2, zorder=3
    )
    if words.is_number(chosen):
        at = np.flatnonzero(dims == float(chosen))  # type: ignore[arg-type]
        if at.size:
            axes.plot(
                dims[at],
                mean[at],
                marker="o",
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=VERMILLION,
                markeredgewidth=1.2,
                linestyle="none",
                zorder=4,
            )
    side = 1.0 if better == "lower" else -1.0
    for d, m, r in zip(dims, mean, reach, strict=True):
        axes.annotate(
            words.quantity(m, unit),
            (d, m + side * r),
            xytext=(2, 3 * side),
            textcoords="offset points",
            ha="left",
            va="bottom" if side > 0 else "top",
            fontsize=6,
            color=INK,
        )
    axes.margins(y=0.22)
    _dims_axis(axes, dims)
    house_ticks(axes.yaxis)
    axes.set_ylabel(label)


@styled
def heldout(number: Mapping[str, Any]) -> Figure:
    """How well models of lineages never seen are predicted, by number of dimensions.

    Parameters
    ----------
    number
        Content of `number.json`, and `cellwise` of `prediction.json`.
    """
    score = number.get("heldout") or {}
    rows = sorted(score.get("log_loss") or [], key=lambda r: int(r["dims"]))
    cell = number.get("cellwise") or {}
    cells = sorted(cell.get("macro_accuracy") or [], key=lambda r: int(r["dims"]))
    if not rows and not cells:
        return message(f"Held-out scores were not computed. {number.get('why_not') or ''}")
    panels = [bool(rows), bool(cells)]
    figure = sheet(COLUMN, 0.5 + 1.75 * sum(panels))
    grid = np.atleast_1d(figure.subplots(sum(panels), 1))
    place = 0
    said = []
    if rows:
        _curve(
            grid[place],
            rows,
            score.get("chosen"),
            "log loss (less is better)",
            better="lower",
            unit="log loss",
        )
        grid[place].set_title("Models of lineages never seen", fontsize=7)
        place += 1
        said.append(
            "log loss on held-out lineages "
            + ", ".join(f"{int(r['dims'])} dimensions {words.quantity(r['mean'], 'log loss')}" for r in rows)
            + (
                f"; chosen {score['chosen']} by {score.get('rule', 'rule')}"
                if score.get("chosen") is not None
                else ""
            )
        )
    if cells:
        _curve(
            grid[place],
            cells,
            cell.get("chosen"),
            "mean accuracy (more is better)",
            better="higher",
            unit="log loss",
        )
        grid[place].set_title("Single answers of known models", fontsize=7)
        said.append(
            "cell-wise accuracy "
            + ", ".join(f"{int(r['dims'])} dimensions {words.number(r['mean'])}" for r in cells)
        )
    grid[-1].set_xlabel("dimensions in the model")
    handles: list[Any] = [
        Line2D([], [], marker="o", color=BLUE, linewidth=0.9, label="mean and standard error"),
        Line2D(
            [],
            [],
            marker="o",
            markersize=8,
            markerfacecolor="none",
            color=VERMILLION,
            linestyle="none",
            label="chosen",
        ),
    ]
    if rows:
        handles.append(Patch(facecolor="#E8E8E8", label="within one standard error of the best"))
    figure.legend(handles=handles, loc="outside lower left", ncols=2, fontsize=6.2, columnspacing=0.8)
    return describe(figure, f"Prediction by number of dimensions: {'; '.join(said)}.")


_LISTS = {"heldout": "log_loss", "eigen": "levels", "cellwise": "macro_accuracy"}


def has(number: Mapping[str, Any], name: str) -> bool:
    """Return whether there are results of a method (`heldout`, `eigen` or `cellwise`)."""
    return bool((number.get(name) or {}).get(_LISTS[name]))


def panel(axes: Axes, number: Mapping[str, Any], name: str) -> None:
    """Results of one method in axes of their own."""
    found = number[name]
    rows = sorted(found[_LISTS[name]], key=lambda r: int(r["dims"]))
    if name == "eigen":
        _eigen_panel(axes, rows, _needed(found), narrow=True)
        axes.set_title("Left over (grey: chance)", fontsize=7)
    elif name == "heldout":
        _curve(axes, rows, found.get("chosen"), "log loss (less is better)", better="lower", unit="log loss")
        axes.set_title("Lineages never seen", fontsize=7)
        axes.set_xlabel("dimensions in the model")
    else:
        _curve(axes, rows, found.get("chosen"), "accuracy (more is better)", better="higher", unit="log loss")
        axes.set_title("Single answers", fontsize=7)
        axes.set_xlabel("dimensions in the model")


def whole_numbers() -> MaxNLocator:
    """Ticks at whole numbers, few of them."""
    return MaxNLocator(nbins=4, integer=True)
