"""Scores of held-out answers: every number of the tables is drawn once, where it belongs, and can be read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from report_fixture import write_results
from test_figures_draw import check_layout

from benchmirt.figures import claim, foretold, store, style
from benchmirt.files import read_json


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, models=30, per_benchmark=12, replicates=0)
    return folder


def marks(axes: Axes, marker: str) -> dict[float, float]:
    """Height and value of the marks of one kind."""
    return {
        float(line.get_ydata()[0]): float(line.get_xdata()[0])
        for line in axes.get_lines()
        if line.get_marker() == marker and len(line.get_xdata())
    }


def test_scores_drawn_are_those_of_the_table(results: Path) -> None:
    table = store.read_csv(results / "prediction" / "scores.csv")
    figure = foretold.scores(table, read_json(results / "prediction" / "prediction.json"))
    first = figure.axes[0]
    assert first.get_title("left") == "Single answers"
    names = [label.get_text() for label in first.get_yticklabels()]
    assert names[:3] == ["model mean", "model mean per category", "model mean per benchmark"]
    assert len(figure.axes) == 4
    whole = table[(table["fold"] == "all") & (table["benchmark"] == "micro")]
    for place, (split, metric) in enumerate(
        (s, m) for s in ("cells", "lineages") for m in ("accuracy", "log_loss")
    ):
        own = whole[(whole["split"] == split) & (whole["metric"] == metric)].set_index("method")["value"]
        drawn = marks(figure.axes[place], "o")
        assert sorted(drawn.values()) == pytest.approx(sorted(own))
        in_order = [drawn[height] for height in sorted(drawn)]
        assert in_order == pytest.approx(own.tolist())
    study = whole[(whole["split"] == "published") & (whole["metric"] == "accuracy")].set_index("method")[
        "value"
    ]
    crosses = marks(first, "X")
    assert crosses[names.index("2-D MIRT") + 0.2] == pytest.approx(study["published_2"])
    assert crosses[names.index("model mean") + 0.2] == pytest.approx(study["model_mean"])
    assert len(crosses) == len(study)
    with style.look():
        check_layout(figure)


def test_the_dashed_line_is_at_the_baseline(results: Path) -> None:
    table = store.read_csv(results / "prediction" / "scores.csv")
    about = read_json(results / "prediction" / "prediction.json")
    figure = foretold.scores(table, about)
    whole = table[(table["fold"] == "all") & (table["benchmark"] == "micro") & (table["split"] == "lineages")]
    value = whole[(whole["method"] == about["baseline"]) & (whole["metric"] == "log_loss")]["value"].item()
    (line,) = (one for one in figure.axes[3].get_lines() if one.get_linestyle() == "--")
    assert line.get_xdata()[0] == pytest.approx(value)


def _scores(methods: dict[str, float], split: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "split": split,
            "method": method,
            "label": f"words for {method}",
            "accuracy": value,
            "accuracy_interval": [value - 0.02, value + 0.02],
            "log_loss": 1 - value,
            "log_loss_interval": None,
            "rank": value,
            "rank_interval": None,
            **more,
        }
        for method, value in methods.items()
    ]


def _record(scores: list[dict[str, Any]], statistic: str = "accuracy_gain") -> dict[str, Any]:
    part = {
        "name": "a part",
        "statistic": statistic,
        "split": "cells",
        "method": "mirt_2",
        "baseline": "mirt_1",
        "unit": "gain",
        "estimate": 0.1,
        "interval": [0.05, 0.15],
        "region": {"low": 0.0, "high": None},
        "verdict": "reproduced",
        "scores": scores,
    }
    return {"claim": "X1", "kind": "prediction", "corrected": {"parts": [part], "verdict": "reproduced"}}


def test_what_a_claim_compares_is_in_bold_and_the_studys_own_fits_stand_beside_it() -> None:
    own = _scores({"model_mean": 0.6, "mirt_1": 0.7, "mirt_2": 0.8}, "cells")
    study = _scores(
        {"model_mean": 0.61, "published_1": 0.5, "published_1_matched": 0.72, "published_2": 0.79},
        "published",
    )
    figure = claim.prediction(_record(own + study))
    axes = figure.subfigs[0].axes[0]
    labels = axes.get_yticklabels()
    assert [label.get_text() for label in labels] == [
        "words for model_mean",
        "words for mirt_1",
        "words for mirt_2",
        "words for published_1_matched",
    ]
    assert [label.get_fontweight() for label in labels] == ["normal", "bold", "bold", "normal"]
    assert marks(axes, "o") == pytest.approx({-0.2: 0.6, 0.8: 0.7, 1.8: 0.8})
    assert marks(axes, "X") == pytest.approx({0.2: 0.61, 1.2: 0.5, 2.2: 0.79, 3.0: 0.72})
    filled = [
        line.get_xdata()[0]
        for line in axes.get_lines()
        if line.get_marker() in ("o", "X") and line.get_markerfacecolor() != "white"
    ]
    assert sorted(filled) == pytest.approx([0.79, 0.8])


def test_the_studys_own_fits_stand_alone_where_no_other_single_answers_are_held_out() -> None:
    found = foretold.blocks(_scores({"mirt_1": 0.7}, "lineages") + _scores({"published_2": 0.7}, "published"))
    assert [(block.split, list(block.own), list(block.study)) for block in found] == [
        ("lineages", ["mirt_1"], []),
        ("published", [], ["mirt_2"]),
    ]


@pytest.mark.parametrize("statistic", ["accuracy_gain", "log_loss_gain", "rank_gain"])
@pytest.mark.parametrize("splits", [1, 6])
def test_claims_on_predictions_are_drawn_whole(statistic: str, splits: int) -> None:
    rng = np.random.default_rng(splits)
    names = [name for name in foretold.TITLES if name != "published"][:splits]
    methods = ["model_mean", "rasch", *(f"mirt_{k}" for k in range(1, 7))]
    scores = [
        entry
        for split in names
        for entry in _scores(dict(zip(methods, rng.uniform(0.5, 0.9, len(methods)), strict=True)), split)
    ]
    figure = claim.prediction(_record(scores, statistic))
    with style.look():
        check_layout(figure)
        renderer = figure.canvas.get_renderer()
        for axes in figure.subfigs[0].axes:
            boxes = [one.get_window_extent(renderer) for one in axes.get_xticklabels() if one.get_text()]
            room = [right.x0 - left.x1 for left, right in pairwise(boxes)]
            assert min(room, default=9) > 4


def test_without_scores_the_intervals_alone_are_drawn() -> None:
    record = _record([])
    assert "reproduced" in style.description(claim.prediction(record))
    empty = pd.DataFrame({"split": [], "method": [], "fold": [], "benchmark": [], "metric": [], "value": []})
    assert "Nothing was held out" in style.description(foretold.scores(empty, {"splits": {}, "labels": {}}))
