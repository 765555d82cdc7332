"""Every figure is drawn from files, whole, legible, the same each time, and says what is simulated."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from report_fixture import FakeStudy, write_results
from scipy.stats import norm, t

from benchmirt import figures
from benchmirt.errors import InputError
from benchmirt.figures import (
    agreement,
    claim,
    drawing,
    items,
    number,
    plane,
    steadiness,
    store,
    style,
    verdicts,
)
from benchmirt.files import read_json, write_json

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"models": 40, "per_benchmark": 24},
    "one ability": {
        "models": 44,
        "dims": 1,
        "benchmarks": ["KOR-Bench", "CRUXEval-O", "GSM8K"],
        "named": False,
        "second_fails": True,
        "per_benchmark": 40,
    },
    "hostile": {
        "models": 36,
        "hostile": True,
        "blocks": True,
        "second_fails": True,
        "flip_second": True,
        "replicates": 0,
        "per_benchmark": 24,
    },
    "three abilities": {"models": 60, "dims": 3, "named": False, "simulated": False, "per_benchmark": 24},
}
SLOW_VARIANTS: dict[str, dict[str, Any]] = {
    "four abilities, few models": {
        "models": 28,
        "dims": 4,
        "benchmarks": [
            "AgentDojo-direct",
            "AgentDojo-resists",
            "AgentDojo-utility",
            "AgentDojo-utility_attacked",
        ],
        "flip_second": True,
    },
    "one benchmark": {"models": 62, "benchmarks": ["KOR-Bench"], "per_benchmark": 600},
    "forty benchmarks": {
        "models": 100,
        "benchmarks": [f"benchmark-number-{i}/with a long name" for i in range(40)],
        "per_benchmark": 25,
        "blocks": True,
    },
    "many models": {"models": 4500, "per_benchmark": 30, "replicates": 20},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, FakeStudy]]:
    made = {}
    for name, options in VARIANTS.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "_"))
        made[name] = (folder, write_results(folder, **options))
    return made


def claims_of(folder: Path) -> dict[str, str]:
    return {path.stem: read_json(path)["kind"] for path in sorted((folder / "claims").glob("*.json"))}


def check_layout(figure: Figure) -> None:
    """Nothing leaves the sheet, and no two panels or legends lie on each other."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    tight = figure.get_tightbbox(renderer)
    width, height = figure.get_size_inches()
    assert tight.x0 >= -0.02, tight
    assert tight.y0 >= -0.02, tight
    assert tight.x1 <= width + 0.02, (tight, width)
    assert tight.y1 <= height + 0.02, (tight, height)
    parts = list(figure.subfigs) or [figure]
    boxes = []
    for part in parts:
        boxes += [legend.get_window_extent(renderer) for legend in part.legends]
        boxes += [axes.get_tightbbox(renderer) for axes in part.axes if axes.get_visible()]
    boxes = [box for box in boxes if box is not None and box.width > 1 and box.height > 1]
    for one, other in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        upwards = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across < 3 or upwards < 3, (one, other)


def check_all(folder: Path, study: FakeStudy) -> None:
    for name in figures.names(claims_of(folder)):
        figure, title = drawing.figure(name, folder, study)
        with style.look():
            if study.simulated:
                style.stamp_simulated(figure, study.title)
            assert title
            assert len(style.description(figure)) > 20, name
            try:
                check_layout(figure)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_is_clipped_and_nothing_overlaps(
    variant: str, results: dict[str, tuple[Path, FakeStudy]]
) -> None:
    check_all(*results[variant])


@pytest.mark.slow
@pytest.mark.parametrize("variant", SLOW_VARIANTS)
def test_unusual_sizes_are_drawn_as_well(variant: str, tmp_path: Path) -> None:
    check_all(tmp_path, write_results(tmp_path, **SLOW_VARIANTS[variant]))


def test_the_catalogue_needs_nothing_heavy() -> None:
    code = (
        "import sys, benchmirt.figures, benchmirt.report; "
        "print([m for m in ('matplotlib', 'pandas', 'numpy', 'jinja2', 'xarray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_figure_is_on_one_sheet() -> None:
    claims = [f"C{n}" for n in range(1, 23)]
    sheets = figures.sheets(claims)
    assert sorted(name for drawn in sheets.values() for name in drawn) == sorted(figures.names(claims))
    assert [len(sheets[f"claims_{n}"]) for n in (1, 2, 3)] == [8, 8, 6]


def test_inputs_are_all_that_a_figure_reads(tmp_path: Path) -> None:
    study = write_results(tmp_path / "all", models=30, per_benchmark=12, replicates=20)
    claims = claims_of(tmp_path / "all")
    for name in ["verdicts", "abilities", "coverage", "heldout", "claim_C11", "claim_C10", "claim_C6"]:
        bare = tmp_path / name
        for path in figures.inputs([name], claims):
            target = bare / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(tmp_path / "all" / path)
        drawing.figure(name, bare, study)


def test_files_are_the_same_each_time_and_carry_no_date(
    results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path
) -> None:
    folder, study = results["plain"]
    for name in ("abilities", "eigenvalues", "claim_C11"):
        first = figures.draw(name, folder, study, tmp_path / "one" / name)
        second = figures.draw(name, folder, study, tmp_path / "two" / name)
        assert [p.suffix for p in first] == [".png", ".svg", ".pdf"]
        for one, two in zip(first, second, strict=True):
            assert one.read_bytes() == two.read_bytes(), one
        svg = first[1].read_text(encoding="utf-8")
        assert "<dc:date>" not in svg
        assert "<dc:description>" in svg
        pdf = first[2].read_bytes()
        assert b"CreationDate" not in pdf
        assert b"/FontFile2" in pdf


def test_the_house_style_does_not_leak_nor_yield(
    results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path
) -> None:
    folder, study = results["plain"]
    before = dict(mpl.rcParams)
    (plain, *_) = figures.draw("heldout", folder, study, tmp_path / "plain")
    with mpl.rc_context({"font.size": 22, "axes.facecolor": "black", "savefig.dpi": 50}):
        (other, *_) = figures.draw("heldout", folder, study, tmp_path / "other")
    assert plain.read_bytes() == other.read_bytes()
    assert dict(mpl.rcParams) == before


def test_simulated_data_say_so_on_every_figure_and_real_data_do_not(
    results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path
) -> None:
    for variant, expected in (("plain", True), ("three abilities", False)):
        folder, study = results[variant]
        for name in ("coverage", "claim_C22", "reproducibility"):
            svg = figures.draw(name, folder, study, tmp_path / name)[1].read_text(encoding="utf-8")
            assert ("<!-- SIMULATED DATA" in svg) == expected
            assert ("Simulated data." in svg) == expected


def test_hostile_names_are_drawn_as_text(results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path) -> None:
    folder, study = results["hostile"]
    svg = figures.draw("coverage", folder, study, tmp_path / "coverage")[1].read_text(encoding="utf-8")
    assert "<script" not in svg
    assert style.printable("a\u202eb\n c\t$x$") == "ab c $x$"
    assert style.printable("组") == "\u25a1"


def test_faults_are_told_in_a_sentence(results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path) -> None:
    folder, study = results["plain"]
    with pytest.raises(InputError, match=r"no such figure.*nonsense"):
        figures.draw("nonsense", folder, study, tmp_path / "x")
    with pytest.raises(InputError, match=r"number\.json.*does not exist|does not exist.*number\.json"):
        figures.draw("heldout", tmp_path, study, tmp_path / "x")
    assert not list(tmp_path.glob("x*"))
    broken = tmp_path / "broken"
    (broken / "dimensions").mkdir(parents=True)
    (broken / "dimensions" / "number.json").write_text("{not json", encoding="utf-8")
    with pytest.raises(InputError, match="line 1"):
        figures.draw("heldout", broken, study, tmp_path / "x")
    (broken / "matrix" / "honest").mkdir(parents=True)
    (broken / "matrix" / "honest" / "coverage.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="benchmark"):
        figures.draw("coverage", broken, study, tmp_path / "x")


@pytest.mark.parametrize(
    "name", ["heldout", "eigenvalues", "stability", "reproducibility", "coverage", "verdicts"]
)
def test_nothing_to_show_is_said_in_words(
    name: str, results: dict[str, tuple[Path, FakeStudy]], tmp_path: Path
) -> None:
    _, study = results["plain"]
    home = tmp_path / "dimensions"
    home.mkdir()
    write_json({"why_not": "there are too few lineages"}, home / "number.json")
    write_json({}, tmp_path / "prediction" / "prediction.json")
    write_json({"dimensions": [], "why_not": "there are too few lineages"}, home / "stability.json")
    for empty, columns in {
        "stability_splits": "split,dimension,congruence,ability_r",
        "stability_null": "replicate,split,dimension,congruence,ability_r",
        "reproducibility": "fit,seed,dimension,congruence,ability_r,converged",
    }.items():
        (home / f"{empty}.csv").write_text(columns + "\n", encoding="utf-8")
    (tmp_path / "matrix" / "honest").mkdir(parents=True)
    (tmp_path / "matrix" / "honest" / "coverage.csv").write_text(
        "benchmark,model,items,observed\n", encoding="utf-8"
    )
    figure, _ = drawing.figure(name, tmp_path, study)
    assert "." in style.description(figure)
    if name in ("heldout", "eigenvalues", "stability"):
        assert "too few lineages" in style.description(figure)


# ------------------------------------------------------------------ what is drawn is what is in the files


def test_replicates_deviate_from_the_estimate_as_the_claims_have_it(tmp_path: Path) -> None:
    """Refits of another engine lie about another centre, and refits without a fifth of the lineages too near to it."""
    write_results(tmp_path, models=30, per_benchmark=12, replicates=40)
    folder = tmp_path / "dimensions"
    models = store.read_csv(folder / "model_statistics.csv").assign(lineage=[f"l{n}" for n in range(30)])
    models.to_csv(folder / "model_statistics.csv", index=False)
    data = store.read_dataset(folder / "bootstrap.nc")
    moved = np.where(np.arange(40) % 2, 0.1, -0.1)
    table = store.read_csv(folder / "item_statistics.csv")
    fitted = store.was_fitted(table)
    table = table[fitted]
    a = store.discriminations(table, 2)
    data = data.sel(item=table["question_id"].tolist()).assign(
        a=(("replicate", "item", "dimension"), np.tile(0.7 * a, (40, 1, 1)) + moved[:, None, None])
    )
    data.to_netcdf(folder / "bootstrap.nc", engine="h5netcdf")
    found = drawing.replicates(tmp_path, table)
    reach = (
        0.1 * 2 * t.ppf(0.975, 29) / norm.ppf(0.975)
    )  # thirty lineages of one model, a fifth left out of each refit
    np.testing.assert_allclose(found, a + np.sign(moved)[:, None, None] * reach, atol=1e-5)
    models.assign(lineage="one").to_csv(folder / "model_statistics.csv", index=False)
    assert drawing.replicates(tmp_path, table) is None


def test_orientation_undoes_a_flipped_axis(tmp_path: Path) -> None:
    options: dict[str, Any] = {"models": 30, "per_benchmark": 12, "replicates": 0}
    tables, rotations, matrices = [], [], []
    for flip in (False, True):
        folder = tmp_path / str(flip)
        write_results(folder, flip_second=flip, **options)
        naming = store.read_abilities(folder)
        models = store.read_csv(folder / "dimensions" / "model_statistics.csv")
        left_out = store.read_dataset(folder / "dimensions" / "leave_one_out.nc")
        tables.append(store.oriented_models(models, naming.orientation))
        rotations.append(naming.T)
        matrices.append(agreement.agreement(models, left_out, naming).full)
    assert np.allclose(rotations[0], rotations[1])
    assert np.allclose(matrices[0], matrices[1], equal_nan=True)
    for column in ("ability_2", "ability_2_low", "ability_2_high"):
        assert np.allclose(tables[0][column], tables[1][column], equal_nan=True), column
    ok = tables[1]["ability_2"].notna()
    assert (tables[1].loc[ok, "ability_2_low"] < tables[1].loc[ok, "ability_2_high"]).all()


def test_correlations_are_those_of_the_tables() -> None:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(50, 2))
    other = theta + rng.normal(size=(50, 2)) * 0.5
    average = theta[:, 0] * 0.2 + 0.5
    average[:3] = np.nan
    models = pd.DataFrame(
        {
            "model": [f"m{i}" for i in range(50)],
            "ability_1": theta[:, 0],
            "ability_2": theta[:, 1],
            "x_average": average,
        }
    )
    left_out = xr.Dataset(
        {
            "theta": (("benchmark", "model", "ability"), other[None, ::-1]),
            "congruence": (("benchmark", "ability"), [[0.97, 0.9]]),
        },
        coords={"benchmark": ["x"], "model": [f"m{i}" for i in range(50)][::-1], "ability": [1, 2]},
    )
    naming = store.Abilities(("a", "b"), (True, True), np.ones(2), np.eye(2), np.eye(2), ({}, {}))
    found = agreement.agreement(models, left_out, naming)
    assert found.benchmarks == ("x",)
    assert found.models[0] == 47
    for k in range(2):
        assert np.isclose(found.full[0, k], np.corrcoef(theta[3:, k], average[3:])[0, 1])
        assert np.isclose(found.left_out[0, k], np.corrcoef(other[3:, k], average[3:])[0, 1])
    left_out["congruence"].loc[{"ability": 2}] = 0.4  # without x the second ability is another one
    blank = agreement.agreement(models, left_out, naming).left_out[0]
    assert blank[0] == found.left_out[0, 0]
    assert np.isnan(blank[1])


def test_selections_take_beginnings_lists_and_exceptions() -> None:
    table = pd.DataFrame(
        {
            "benchmark": ["xstest"] * 4 + ["bbq"],
            "subcategory_one": ["contrast_a", "contrast_b", "safe", "other", "x"],
        }
    )
    take = store.selected(table, {"benchmark": "XSTest", "subcategory_one": "contrast_*"})
    assert take.tolist() == [True, True, False, False, False]
    take = store.selected(table, {"benchmark": ["xstest"]}, {"subcategory_one": ["contrast_*", "other"]})
    assert take.tolist() == [False, False, True, False, False]
    assert not store.selected(table, {"no such column": "x"}).any()
    assert not store.selected(table, None).any()


def test_a_row_shows_the_record_and_its_scale_holds_everything() -> None:
    record = {
        "claim": "C9",
        "kind": "correlation",
        "published": {"value": 0.79},
        "corrected": {
            "estimate": 0.5,
            "interval": [0.3, None],
            "region": {"low": 0, "high": None},
            "verdict": "inconclusive",
        },
    }
    row = verdicts.row_of(record)
    assert (row.estimate, row.low, row.high, row.region, row.published) == (0.5, 0.3, None, (0.0, None), 0.79)
    assert verdicts.limits(row) == (-1.0, 1.0)
    record["corrected"] = {"estimate": 120.0, "interval": [80, 250], "region": {"low": 100, "high": 300}}
    record["unit"] = ""
    low, high = verdicts.limits(verdicts.row_of(record))
    assert low <= 0.79
    assert high >= 300


def legend_of(figure: Figure) -> list[str]:
    figures_ = [figure, *figure.subfigs]
    return [text.get_text() for one in figures_ for legend in one.legends for text in legend.get_texts()]


def test_a_legend_of_every_state_stays_on_the_sheet() -> None:
    states = ("reproduced", "not reproduced", "inconclusive", "exploratory")
    records = [
        {
            "claim": f"C{n}",
            "kind": "dimensionality" if n == 0 else "correlation",
            "statement": "Something holds.",
            "published": {"text": "2", "value": 2.0},
            "corrected": {
                "estimate": 2.0 if n == 0 else 0.2,
                "interval": [2.0, 4.0] if n == 0 else [0.1, 0.3],
                "region": {"low": 0.1},
                "verdict": state,
                "parts": [],
            },
        }
        for n, state in enumerate(states)
    ]
    figure = verdicts.verdicts(records)
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.texts} >= set(states)
    with style.look():
        check_layout(figure)


@pytest.mark.parametrize(
    ("data", "label"),
    [
        ("same", "published"),
        ("simulated", "published (about real models)"),
        ("other", "published (about other models and questions)"),
    ],
)
def test_a_diamond_says_whose_data_it_is_about_and_there_is_none_without_a_figure(
    data: str, label: str
) -> None:
    corrected = {"estimate": 0.5, "interval": [0.3, 0.6], "region": {"low": 0}, "verdict": "reproduced"}
    record = {"claim": "C9", "kind": "correlation", "statement": "s", "corrected": corrected}
    with_figure = {**record, "published": {"value": 0.79, "data": data}}
    assert label in legend_of(verdicts.verdicts([with_figure]))
    without = verdicts.verdicts([{**record, "published": {"value": None, "data": data}}])
    assert not [text for text in legend_of(without) if text.startswith("published")]


def test_a_count_of_another_size_has_no_diamond() -> None:
    part = {"name": "items", "estimate": 80, "region": {"low": 79.5, "high": 80.5}, "published": 34301}
    record = {
        "claim": "C1",
        "kind": "count",
        "unit": "count",
        "published": {"value": 34301, "data": "simulated"},
        "as_published": {"verdict": "not compared"},
        "corrected": {**part, "verdict": "reproduced", "parts": [{**part, "verdict": "reproduced"}]},
    }
    assert verdicts.row_of(record).published is None
    assert verdicts.rows_of_parts(record)[0].published is None
    assert verdicts.row_of({**record, "as_published": {"verdict": "differs"}}).published == 34301


def test_answers_of_two_methods_are_not_drawn_as_an_interval() -> None:
    part = {"name": "n", "estimate": 2, "interval": [2, 3], "unit": "count", "verdict": "inconclusive"}
    record = {
        "claim": "C3",
        "kind": "dimensionality",
        "unit": "count",
        "corrected": {**part, "parts": [part]},
    }
    row = verdicts.row_of(record)
    assert row.loose
    assert verdicts.said(row) == "2 and 3 inconclusive"
    assert "from one method’s answer to the other’s" in legend_of(verdicts.verdicts([record]))
    assert not verdicts.row_of({**record, "kind": "correlation"}).loose


@pytest.mark.parametrize(
    ("variant", "heading"), [("plain", False), ("one ability", False), ("three abilities", True)]
)
def test_a_plane_of_two_of_more_abilities_says_so(
    variant: str, heading: bool, results: dict[str, tuple[Path, FakeStudy]]
) -> None:
    figure, _ = drawing.figure("item_map", *results[variant])
    title = figure.get_suptitle()
    assert ("Two of the three abilities" in title) == heading
    assert ("two of the three abilities" in style.description(figure)) == heading


def _planted_items(subsets: dict[str, dict[str, int]], seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [
        {"benchmark": benchmark, "subcategory_one": subset, "kept": True}
        for benchmark, sizes in subsets.items()
        for subset, size in sizes.items()
        for _ in range(size)
    ]
    table = pd.DataFrame(rows)
    for k in (1, 2, 3):
        table[f"discrimination_{k}"] = rng.normal(0.8 if k == 1 else 0.2, 0.4, len(table))
    return table


def _plain_abilities(dims: int) -> store.Abilities:
    labels = tuple(f"ability {k + 1}" for k in range(dims))
    eye = np.eye(dims)
    return store.Abilities(labels, (False,) * dims, np.ones(dims), eye, eye, ({},) * dims)


def test_items_are_coloured_by_subset_where_these_are_few() -> None:
    table = _planted_items(
        {"few": {"one": 12, "two": 70}, "many": {f"s{n}": 10 for n in range(7)}, "none": {"all": 9}}
    )
    naming = _plain_abilities(2)
    figure = items.item_map(table, naming)
    few, many, none = figure.axes[:3]
    points = table[["discrimination_1", "discrimination_2"]].to_numpy() @ plane.basis(naming.T)
    frame = items.frame_of(points)
    inside = ((points > frame[0]) & (points < frame[1])).all(axis=1)
    for subset, colour in (("one", style.PALETTE[0]), ("two", style.PALETTE[1])):
        mine = (table["subcategory_one"] == subset).to_numpy()
        drawn = [
            cloud.get_offsets()
            for cloud in few.collections
            if isinstance(cloud, PathCollection)
            and cloud.get_facecolor().size
            and to_hex(cloud.get_facecolor()[0]) == colour.lower()
            and len(cloud.get_offsets()) == (mine & inside).sum()
        ]
        assert len(drawn) == 1
        np.testing.assert_allclose(drawn[0], points[mine & inside])
        assert any(np.allclose(_spot(line), points[mine].mean(axis=0)) for line in few.get_lines())
    assert [text.get_text() for text in few.get_legend().get_texts()] == ["one", "two"]
    assert many.get_legend() is None
    means = [_spot(line) for line in many.get_lines() if line.get_marker() == "o"]
    expected = [points[(table["subcategory_one"] == f"s{n}").to_numpy()].mean(axis=0) for n in range(7)]
    np.testing.assert_allclose(means, expected)
    assert [line.get_marker() for line in none.get_lines() if len(line.get_xdata()) == 1] == ["*"]
    looks = {(line.get_marker(), line.get_linestyle()) for line in few.get_legend().get_lines()}
    assert len(looks) == 2  # apart in greyscale as well


def _spot(line: Line2D) -> np.ndarray:
    return np.array([line.get_xdata()[0], line.get_ydata()[0]])


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("benchmarks", [1, 2, 5, 14, 20])
def test_item_maps_of_any_number_of_benchmarks_are_whole(benchmarks: int, dims: int) -> None:
    sizes = [{"s" * 40: 40, "t" * 40: 30}, {f"s{n}": 20 for n in range(8)}, {"all": 3}]
    table = _planted_items(
        {f"benchmark-{n} with a long name indeed": sizes[n % 3] for n in range(benchmarks)}
    )
    figure = items.item_map(table.assign(category="c"), _plain_abilities(dims))
    with style.look():
        check_layout(figure)
        renderer = figure.canvas.get_renderer()
        for axes in figure.axes:
            legend = axes.get_legend()
            if legend is not None:
                box, room = legend.get_window_extent(renderer), axes.get_window_extent(renderer)
                assert room.x0 <= box.x0
                assert box.x1 <= room.x1


@pytest.mark.parametrize("seed", range(5))
def test_contours_hold_the_share_that_they_say(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(900, 2))
    frame = items.frame_of(points)
    grid = items.density(points, frame)
    half, nine = items.levels(grid, (0.9, 0.5))[::-1]
    place = np.clip(((points - frame[0]) / (frame[1] - frame[0]) * len(grid)).astype(int), 0, len(grid) - 1)
    heights = grid[place[:, 1], place[:, 0]]
    assert np.mean(heights >= half) == pytest.approx(0.5, abs=0.1)
    assert np.mean(heights >= nine) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("shift", [-6.0, 0.0, 6.0])
def test_a_frame_holds_the_origin_and_nearly_all_points(shift: float) -> None:
    points = np.random.default_rng(3).normal(shift, 1, size=(2000, 2))
    low, high = items.frame_of(points)
    assert low < 0 < high
    assert np.mean(((points >= low) & (points <= high)).all(axis=1)) > 0.99


def test_an_eigenvalue_is_beyond_chance_by_its_p_value() -> None:
    level = {"dims": 1, "eigenvalue": 1.54, "null_mean": 1.4, "null_q95": 1.5, "null_q99": 1.504}
    for p, needed, word in ((0.02, 0.01, "within"), (0.0099, 0.01, "beyond"), (0.09, 1 / 11, "beyond")):
        drawn = number.eigenvalues({"eigen": {"levels": [{**level, "p": p}], "p_needed": needed}})
        marks = [
            line.get_markerfacecolor()
            for line in drawn.axes[0].lines
            if len(line.get_xdata()) and line.get_marker() == "o"
        ]
        assert (marks == ["white"]) == (word == "within")


def test_sets_of_items_are_named_in_plain_words() -> None:
    assert (
        claim.selection_name({"benchmark": ["xstest"]}, {"subcategory_one": ["contrast_*"]})
        == "xstest without contrast"
    )
    assert (
        claim.selection_name({"category": ["safety"], "benchmark": ["do_anything_now"]}) == "do_anything_now"
    )


def test_one_benchmark_is_shown_by_its_categories() -> None:
    table = pd.DataFrame(
        {"benchmark": ["a"] * 4, "category": ["x", "x", "y", "y"], "subcategory_one": list("abcd")}
    )
    assert store.grouping(table) == ("category", "category")
    assert store.grouping(table.assign(category="x")) == ("subcategory_one", "subcategory")
    assert store.grouping(table.assign(benchmark=list("abab"))) == ("benchmark", "benchmark")


def test_names_that_look_like_numbers_or_nothing_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,benchmark,ability_1\nNA,1,0.5\nnull,007,\n", encoding="utf-8")
    table = store.read_csv(path, ("model",))
    assert table["model"].tolist() == ["NA", "null"]
    assert table["benchmark"].tolist() == ["1", "007"]
    assert table["ability_1"].isna().tolist() == [False, True]


def test_a_text_among_the_numbers_of_a_figure_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,benchmark,ability_1\na,1,0.5\nb,x,0.5?\n", encoding="utf-8")
    with pytest.raises(InputError, match=r'x.csv: row 3, column "ability_1": a text .* found "0.5\?"'):
        store.read_csv(path, ("model",))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"passes": True}, "✓ comes back"),
        ({"passes": True, "dims": 3}, "✓ comes back"),
        ({"passes": True, "dims": 2}, "✓ comes back without dimension 3"),
        ({"passes": False, "dims": 1}, "✗ does not come back without dimensions 2 and 3"),
        ({"passes": None}, "– not tested"),
        (
            {"passes": False, "p_congruence": 0.4, "p_ability_r": 0.5, "p_lineages": 0.6},
            "✗ does not come back",
        ),
        (
            {"passes": False, "p_congruence": 0.0099, "p_ability_r": 0.0099, "p_lineages": 0.03},
            "✗ does not come back (lineages p = .030)",
        ),
        (
            {"passes": False, "p_congruence": 0.0099, "p_ability_r": 0.0099, "p_scrambled": 0.2},
            "✗ does not come back (scrambled items p = .20)",
        ),
    ],
)
def test_a_dimensions_answer_names_what_the_panels_do_not_show(entry: dict[str, Any], said: str) -> None:
    assert steadiness.answer(entry, {"p_needed": 0.01, "dims": 3}) == said
    if entry["passes"] is not None:
        assert steadiness.answer(entry, {"p_needed": 1 / 11}) == "○ a trial, no verdict"


def test_seeds_are_drawn_by_what_they_fall_short_of_one() -> None:
    table = pd.DataFrame(
        {
            "fit": ["published"] * 3 + ["corrected"] * 2,
            "seed": [0, 1, 2, 0, 1],
            "dimension": 1,
            "congruence": [0.9, 0.99, 0.4, 0.999, 1.0],
            "converged": [True, True, False, True, True],
        }
    )
    figure = steadiness.reproducibility(table)
    (axes,) = figure.axes
    drawn = [cloud.get_offsets()[:, 0].tolist() for cloud in axes.collections if len(cloud.get_offsets())]
    assert drawn == [pytest.approx([0.1, 0.01]), pytest.approx([0.6]), pytest.approx([0.001, 1e-5])]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "dimension 1, as published",
        "dimension 1, corrected",
    ]
    ticks = dict(zip((t.get_text() for t in axes.get_xticklabels()), axes.get_xticks(), strict=True))
    assert ticks == pytest.approx({".5": 0.5, ".9": 0.1, ".99": 0.01, ".999": 0.001, ".9999": 0.0001})
    right, left = sorted(axes.get_xlim())
    assert axes.get_xlim() == (left, right)
    assert right < 1e-5
    assert left > 0.6
    with style.look():
        check_layout(figure)


def test_a_single_start_leaves_a_sentence() -> None:
    table = pd.DataFrame({"fit": ["corrected"], "seed": [0], "dimension": [1], "congruence": [np.nan]})
    assert "no seeds to compare" in style.description(steadiness.reproducibility(table))


def test_a_long_answer_about_a_dimension_is_not_clipped() -> None:
    entry = {"dimension": 1, "dims": 1, "passes": False, "p_congruence": 0.0099, "p_ability_r": 0.0099}
    entry |= {"p_lineages": 0.03, "p_scrambled": 0.2}
    one = pd.DataFrame({"dimension": [1], "congruence": [0.5], "ability_r": [0.5]})
    figure = steadiness.stability({"dimensions": [entry], "p_needed": 0.01, "dims": 4}, one, one)
    with style.look():
        figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    tight = figure.get_tightbbox()
    assert min(tight.x0, tight.y0, width - tight.x1, height - tight.y1) >= -0.02
    answer, other = (axes.get_title("left").split("\n") for axes in figure.axes)
    assert " ".join(answer).startswith(
        "Dimension 1: ✗ does not come back without dimensions 2, 3 and 4 (lineages"
    )
    assert len(other) == 1  # stands below the answer, which reaches over both panels


def test_halves_and_chance_are_those_of_the_tables() -> None:
    splits = pd.DataFrame(
        {"dimension": [1, 1, 2], "congruence": [0.8, 0.9, 0.1], "ability_r": [0.95, 0.97, 0.2]}
    )
    null = pd.DataFrame(
        {"replicate": [0, 0, 1], "dimension": 1, "congruence": [0.1, 0.3, -0.4], "ability_r": [0.0, 0.0, 0.1]}
    )
    entries = [
        {"dimension": 2, "passes": None},
        {"dimension": 1, "passes": True, "congruence_mean": 0.85, "null_congruence": {"q99": 0.21}},
    ]
    figure = steadiness.stability({"dimensions": entries, "p_needed": 0.01, "dims": 2}, splits, null)
    first, second, third, _ = figure.axes
    chance, halves = (cloud.get_offsets()[:, 0].tolist() for cloud in first.collections)
    assert halves == pytest.approx([0.8, 0.9])
    assert chance == pytest.approx([0.2, -0.4])
    mean, limit = (list(line.get_xdata()) for line in first.get_lines())
    assert mean == pytest.approx([0.85, 0.85])
    assert limit == pytest.approx([0.21, 0.21])
    assert second.collections[1].get_offsets()[:, 0].tolist() == pytest.approx([0.95, 0.97])
    assert first.get_title("left").startswith("Dimension 1: ✓ comes back\nmean .85")
    assert third.get_title("left").startswith("Dimension 2: – not tested")
    assert len(third.collections[0].get_offsets()) == 0
    assert third.get_xlim() == first.get_xlim()
    assert first.get_xlim()[0] < -0.4
    with style.look():
        check_layout(figure)


def test_claims_that_cannot_be_tested_come_last_and_stay_out_of_the_plot(
    results: dict[str, tuple[Path, FakeStudy]],
) -> None:
    folder, study = results["plain"]
    records = drawing.records(folder, study)
    assert records[-1]["claim"] == "C22"
    figure = verdicts.verdicts(records)
    assert "9 claims" in style.description(figure)
    assert "Not shown: 1 claim that cannot be tested" in style.description(figure)
    assert "cannot be tested" in style.description(verdicts.verdicts([records[-1]]))
    assert "None of the 2 claims" in style.description(verdicts.verdicts([records[-1]] * 2))


@pytest.mark.parametrize("width", [2.6, 3.5, 5.0, 7.2])
@pytest.mark.parametrize(
    "title", ["", "Double", "The published study's simulated double, with a planted truth", "W" * 200]
)
def test_the_stamp_of_simulated_data_is_not_clipped(width: float, title: str) -> None:
    figure = style.sheet(width, 1.0)
    style.stamp_simulated(figure, title)
    figure.canvas.draw()
    [stamp] = figure.texts
    assert stamp.get_text().startswith("SIMULATED DATA")
    box = stamp.get_window_extent()
    assert box.x1 <= figure.bbox.width
    assert ("Double" in stamp.get_text()) == (title == "Double")
