"""Pictures and tables of claims on pairs, mixes and labels: whole, legible, and what the records say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_figures_draw import check_layout

from benchmirt.figures import claim, evidence, style, verdicts, words
from benchmirt.report import tables

COLUMNS = [
    ["changed", "Changed model", "name"],
    ["items", "Items", "count"],
    ["difference", "Difference", "share"],
    ["low", "95 % interval", "interval"],
    ["p_holm", "Holm", "p"],
    ["nothing", "Nothing", "r"],
]


def _record(kind: str, table: dict[str, Any], **part: Any) -> dict[str, Any]:
    unit = {"pair": "share", "mix": "congruence", "label": "r"}[kind]
    one = {
        "name": "a part of the claim",
        "statistic": {"pair": "difference", "mix": "least_congruence", "label": "label_r"}[kind],
        "unit": unit,
        "estimate": -0.4,
        "interval": [-0.5, -0.3],
        "region": {"low": None, "high": -0.1, "text": "below -.10"},
        "verdict": "reproduced",
        "why": "it lies there",
        "ability_name": "safety",
        "table": table,
        **part,
    }
    corrected = {"parts": [one], "headline": one["name"], "verdict": "reproduced", "why": "it lies there"}
    corrected |= {key: one[key] for key in ("estimate", "interval", "region")}
    return {
        "claim": "X1",
        "kind": kind,
        "unit": unit,
        "corrected": corrected,
        "published": {"text": "they differ"},
    }


def _tests(pairs: int, abilities: tuple[str, ...] = ("safety", "reasoning")) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "base": f"org__a-model-with-a-rather-long-name-{n}",
            "changed": f"org__a-model-with-a-rather-long-name-{n}-abliterated",
            "ability": ability,
            "end": end,
            "items": 400,
            "difference": (value := float(rng.uniform(-0.6, 0.3))),
            "low": value - 0.06,
            "high": value + 0.06,
            "p_holm": 0.0004,
            "published_difference": value + 0.05,
            "published_least": 0.07,
        }
        for n in range(pairs)
        for ability in abilities
        for end in ("high", "low")
    ]


@pytest.mark.parametrize(
    ("pairs", "abilities"), [(1, ("safety",)), (3, ("safety", "reasoning")), (6, ("a" * 60, "b"))]
)
def test_pairs_are_drawn_whole(pairs: int, abilities: tuple[str, ...]) -> None:
    rows = _tests(pairs, abilities)
    rows[0] = {key: value for key, value in rows[0].items() if "published" not in key}
    rows[1] = {key: value for key, value in rows[1].items() if key in ("base", "changed", "ability", "end")}
    figure = claim.pair(_record("pair", {"row": "test", "caption": "", "columns": [], "rows": rows}))
    assert len(figure.subfigs[0].axes) == min(pairs, evidence.MOST_PAIRS)
    with style.look():
        check_layout(figure)


@pytest.mark.parametrize(
    ("pairs", "abilities"), [(1, ("safety",)), (3, ("safety", "reasoning")), (6, ("a" * 60, "b"))]
)
def test_curves_of_pairs_stand_above_their_tests(pairs: int, abilities: tuple[str, ...]) -> None:
    tests = _tests(pairs, abilities)
    bins = [
        {
            **{key: row[key] for key in ("base", "changed", "ability")},
            "version": version,
            "discrimination": 0.3 * n - 1,
            "items": 200,
            "difference": row["difference"] * n / 20,
            "low": row["difference"] * n / 20 - 0.1 if version == "corrected" and n else None,
            "high": row["difference"] * n / 20 + 0.1 if version == "corrected" and n else None,
        }
        for row in tests
        if row["end"] == "high"
        for version in ("corrected", "as published")
        for n in range(20)
    ]
    table = {"row": "test", "caption": "", "columns": [], "rows": tests}
    figure = claim.pair(_record("pair", table, curve={"row": "bin", "rows": bins}))
    above, under = figure.subfigs[0].subfigs
    assert len(above.axes) == len(abilities)
    assert len(under.axes) == min(pairs, evidence.MOST_PAIRS)
    drawn = above.axes[0].get_lines()[-1]
    assert list(drawn.get_xdata()) == pytest.approx([0.3 * n - 1 for n in range(20)])
    with style.look():
        check_layout(figure)


def _mixes(benchmarks: int, abilities: int = 2) -> list[dict[str, Any]]:
    names = [f"benchmark_{n}_with_a_name" for n in range(benchmarks)]
    told = [("only", "reasoning alone"), ("random", "random items, as many as of reasoning")]
    told += [("added", f"reasoning and {name}") for name in names] + [
        ("without", f"without {name}") for name in names
    ]
    return [
        {
            "mix": mix,
            "named": named,
            "ability": f"ability {k + 1}",
            "congruence": 0.99 - 0.005 * (place + k),
            "low": 0.2 if mix == "only" else None,
            "high": 0.99 if mix == "only" else None,
            "ability_r": 0.97 - 0.005 * place,
        }
        for place, (mix, named) in enumerate(told)
        for k in range(abilities)
    ]


@pytest.mark.parametrize(("benchmarks", "abilities"), [(2, 1), (16, 2), (60, 3)])
def test_mixes_are_drawn_whole(benchmarks: int, abilities: int) -> None:
    rows = _mixes(benchmarks, abilities)
    figure = claim.mix(_record("mix", {"row": "mix", "caption": "", "columns": [], "rows": rows}))
    panels = figure.subfigs[0].axes
    assert len(panels) == abilities
    shown = [label.get_text() for label in panels[0].get_yticklabels()]
    assert len(shown) == min(2 + 2 * benchmarks, evidence.MOST_MIXES)
    assert shown[:2] == ["reasoning alone", "random items, as many as of reasoning"]
    with style.look():
        check_layout(figure)


def test_of_too_many_mixes_the_least_changed_are_left_out() -> None:
    rows = _mixes(60, 1)
    kept = [named for _, named in evidence._mixes(rows)]
    left = {row["named"] for row in rows} - set(kept)
    worst = {row["named"]: row["congruence"] for row in rows}
    assert max(worst[name] for name in kept[2:]) < min(worst[name] for name in left)


def test_labels_are_drawn_whole() -> None:
    groups = [
        {
            "word": word,
            "label": n,
            "items": 1200 * (n + 1),
            "mean": 0.1 * n,
            "quantiles": [-1, -0.2, 0.1, 0.6, 1.5],
        }
        for n, word in enumerate(("safe", "controversial", "unsafe"))
    ]
    figure = claim.label(
        _record("label", {"row": "label", "caption": "", "columns": [], "rows": []}, groups=groups)
    )
    names = [label.get_text() for label in figure.subfigs[0].axes[0].get_yticklabels()]
    assert names == ["safe (1,200)", "controversial (2,400)", "unsafe (3,600)"]
    with style.look():
        check_layout(figure)


def _angles(sets: int, abilities: int) -> dict[str, Any]:
    parts = [
        {
            "name": f"set {n}: along ability {n % abilities + 1}",
            "statistic": "angle",
            "unit": "degrees",
            "select": {"benchmark": [f"benchmark-{n}/with a long name indeed"]},
            "ability": n % abilities + 1,
            "ability_name": "reasoning" if n % abilities == 0 else f"ability {n % abilities + 1}",
            "estimate": 5.0 * n + 1,
            "interval": [0.0, 5.0 * n + 20],
            "region": {"low": None, "high": 45.0},
            "verdict": "reproduced" if n < 5 else "inconclusive",
        }
        for n in range(sets)
    ]
    return {"claim": "X1", "kind": "direction", "corrected": {"parts": parts, "verdict": "inconclusive"}}


@pytest.mark.parametrize(("sets", "abilities"), [(5, 1), (13, 2), (24, 6)])
def test_many_angles_stand_on_one_scale_by_ability(sets: int, abilities: int) -> None:
    record = _angles(sets, abilities)
    groups = claim.angles_by_ability(record)
    assert next(iter(groups)) == "Angle to reasoning"
    assert len(groups) == abilities
    figure = verdicts.forest(record, groups, "degrees")
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    drawn = {
        labels[round(line.get_ydata()[0])]: line.get_xdata()[0]
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1
    }
    in_order = [row.estimate for rows in groups.values() for row in rows]
    assert list(drawn.values()) == in_order
    assert sorted(in_order) == [5.0 * n + 1 for n in range(sets)]
    assert len(labels) == sets + abilities
    borders = {
        line.get_xdata()[0]
        for line in axes.get_lines()
        if len(set(line.get_ydata())) == 2 and line.get_zorder() < 1
    }
    assert borders == {45.0}
    with style.look():
        check_layout(figure)
    assert figure.get_size_inches()[1] < 7


def test_few_angles_and_other_numbers_keep_their_picture() -> None:
    record = _angles(6, 2)
    assert claim.angles_by_ability(_angles(claim.FEW, 2)) == {}
    record["corrected"]["parts"][3]["statistic"] = "leaning"
    assert claim.angles_by_ability(record) == {}


def test_a_set_that_could_not_be_tested_keeps_its_line() -> None:
    record = _angles(6, 2)
    record["corrected"]["parts"][2] |= {"estimate": None, "interval": None, "verdict": "cannot test"}
    figure = verdicts.forest(record, claim.angles_by_ability(record), "degrees")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("– cannot test") == 1
    assert len(texts) == 6


@pytest.mark.parametrize("draw", [claim.pair, claim.mix, claim.label])
def test_without_evidence_the_reason_is_written(draw: Any) -> None:
    record = {
        "claim": "X1",
        "kind": "pair",
        "corrected": {"parts": [], "verdict": "cannot test", "why": "no such model"},
    }
    assert "No such model" in style.description(draw(record)) or "no such model" in style.description(
        draw(record)
    )


def test_the_table_on_the_page_is_that_of_the_record() -> None:
    table = {"row": "test", "caption": "Every pair.", "columns": COLUMNS, "rows": _tests(1)}
    (made,) = tables.evidence(_record("pair", table))
    assert [name for name, _ in made.headings] == [
        "Changed model",
        "Items",
        "Difference",
        "95 % interval",
        "Holm",
    ]
    assert [numeric for _, numeric in made.headings] == [False, True, True, True, True]
    row = table["rows"][0]
    assert made.rows[0] == [
        row["changed"],
        "400",
        words.number(row["difference"]),
        words.interval((row["low"], row["high"])),
        "p < .001",
    ]
    assert tables.evidence({"claim": "X1", "corrected": {"parts": [{"name": "bare"}]}}) == []
