"""The pages of benchmarks: one for each, whole in itself, true to the tables, and the same bytes each time."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from profiles_fixture import Made, Planted, plant, profile, toward
from test_report import Reader, read

from benchmirt import report
from benchmirt.errors import InputError
from benchmirt.profiles import station
from benchmirt.report import profile as pages

HOSTILE = 'a/b <i>ünï</i> & "c" %41'
BENCHMARKS = [
    Planted(HOSTILE, {"refuse": toward(90), "<b>comply": toward(5)}, items=50),
    Planted("one way", {"x": toward(0)}, items=60, reversed=2, missing=0.05, easy=4, hard=3),
    Planted("against", {"x": toward(180)}, items=30),
    Planted("dead", {"x": toward(0)}, items=4, easy=4),
    Planted("x" * 250, {"y": toward(45)}, items=3),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, station.Profiles, list[Path]]:
    one = plant(tmp_path_factory.mktemp("pages"), BENCHMARKS, seed=5)
    found = profile(one)
    return one, found, report.benchmark_pages(one.folder, one.study, one.folder / "report" / "benchmark")


def page_of(made: tuple[Made, station.Profiles, list[Path]], name: str) -> tuple[Reader, str]:
    path = made[0].folder / "report" / report.benchmark_page(name)
    reader = read(path)
    return reader, " ".join(" ".join(reader.text).split())


def test_every_benchmark_has_one_page(made: tuple[Made, station.Profiles, list[Path]]) -> None:
    one, _, paths = made
    assert sorted(paths) == sorted((one.folder / "report" / "benchmark").iterdir())
    assert len(paths) == len(BENCHMARKS)
    for planted, path in zip(BENCHMARKS, paths, strict=True):
        assert path == one.folder / "report" / report.benchmark_page(planted.name)
        assert len(path.name) < 256
        assert re.fullmatch(r"[A-Za-z0-9=._~-]+", path.name)


def test_pages_need_nothing_from_outside_and_are_valid(
    made: tuple[Made, station.Profiles, list[Path]],
) -> None:
    for path in made[2]:
        text = path.read_text(encoding="utf-8")
        reader = read(path)
        assert not reader.faults
        assert not reader.open
        ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert {a["aria-labelledby"] for _, a in reader.tags if "aria-labelledby" in a} <= set(ids)
        assert {str(a["href"]) for a in reader.all("a")} == {"#main", "../index.html"}
        assert not reader.all("script")
        assert not reader.all("link")
        assert "http:" not in re.sub(r"data:image/[^\"]*", "", text)
        assert "https:" not in re.sub(r"data:image/[^\"]*", "", text)
        images = reader.all("img")
        assert len(images) == 1
        assert str(images[0]["src"]).startswith("data:image/svg+xml;base64,")
        assert images[0]["alt"]
        style = text[text.index("<style>") : text.index("</style>")]
        assert "url(" not in style
        assert "@media print" in style


def test_names_from_outside_are_text(made: tuple[Made, station.Profiles, list[Path]]) -> None:
    reader, text = page_of(made, HOSTILE)
    assert HOSTILE in text
    assert "<b>comply" in text
    assert not reader.all("i")
    assert not reader.all("b")


def test_pages_say_that_a_run_is_a_trial(
    made: tuple[Made, station.Profiles, list[Path]], tmp_path: Path
) -> None:
    one = made[0]
    found = pages.gather(one.folder, one.study)
    trial = {**found.stability, "p_needed": 1 / 11, "replicates": 10}
    for stability, told in ((found.stability, False), (trial, True)):
        for path in pages.write(replace(found, stability=stability), tmp_path / str(told)):
            assert ("Trial run: too few comparisons" in path.read_text(encoding="utf-8")) == told


def test_pages_say_that_data_are_simulated(
    made: tuple[Made, station.Profiles, list[Path]], tmp_path: Path
) -> None:
    one = made[0]
    for path in made[2]:
        assert "Simulated data: these answers were drawn from a known truth." in path.read_text(
            encoding="utf-8"
        )
        assert str(read(path).all("img")[0]["alt"]).startswith("Simulated data.")
    real = SimpleNamespace(**{**vars(one.study), "simulated": False})
    for path in report.benchmark_pages(one.folder, real, tmp_path / "real"):
        assert "imulated" not in re.sub(
            r"<style>.*</style>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )


def test_the_opening_says_what_it_measures_and_what_its_questions_are_worth(
    made: tuple[Made, station.Profiles, list[Path]],
) -> None:
    _, text = page_of(made, HOSTILE)
    assert "It measures a mix:" in text
    assert "Its 100 questions fall into two groups that point different ways;" in text
    _, text = page_of(made, "one way")
    assert re.search(r"It mostly measures reasoning \(\d\d % of what its questions tell;", text)
    assert "2 run backwards" in text
    assert "4 are passed by nearly every model" in text
    _, text = page_of(made, "against")
    assert "It mostly measures reasoning in reverse: models with more of it score lower" in text
    _, text = page_of(made, "dead")
    assert "None of its questions tells these models apart" in text
    assert "Of its 4 questions, 4 add next to nothing and 4 are passed by nearly every model." in text


def test_tables_hold_the_numbers_of_the_files(made: tuple[Made, station.Profiles, list[Path]]) -> None:
    one, found, _ = made
    _, text = page_of(made, "one way")
    row = found.benchmarks.set_index("benchmark").loc["one way"]
    cells = one.outcomes[:, (one.items["benchmark"] == "one way").to_numpy()]
    assert f"Of {cells.size:,} answers of the models used, {(cells < 0).sum():,} are missing." in text
    assert f"Empty answer {(cells < 0).sum():,}" in text
    assert f"{row['angle_1']:.0f}°" in text
    backwards = found.items[found.items["backwards"] & (found.items["benchmark"] == "one way")]
    assert len(backwards) == 2
    for name in backwards["question_id"]:
        assert re.search(re.escape(name) + r" [.\d]+ −[.\d]+ ± [.\d]+ p < .001 runs backwards", text)
    short = (
        found.items[found.items["benchmark"] == "one way"].sort_values("short_rank")["question_id"].head(10)
    )
    assert " ".join(short) in text
    _, text = page_of(made, HOSTILE)
    assert "They coincide with the declared subcategory" in text
    declared = found.subsets[found.subsets["benchmark"] == HOSTILE]
    assert len(declared) > 1
    for entry in declared.to_dict("records"):
        assert f"{entry['subset']} {entry['items']} " in text
        assert f"{entry['angle_1']:.0f}°" in text
    groups = found.groups[found.groups["benchmark"] == HOSTILE]
    for entry in groups.to_dict("records"):
        assert f"{entry['group']} {entry['items']} {entry['certain']} {entry['angle_1']:.0f}°" in text


def test_the_same_results_make_the_same_pages(
    made: tuple[Made, station.Profiles, list[Path]], tmp_path: Path
) -> None:
    again = report.benchmark_pages(made[0].folder, made[0].study, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in made[2]]


def test_inputs_name_every_file_that_the_pages_read(
    made: tuple[Made, station.Profiles, list[Path]], tmp_path: Path
) -> None:
    one = made[0]
    for name in report.profile_inputs():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).hardlink_to(one.folder / name)
    paths = report.benchmark_pages(tmp_path, one.study, tmp_path / "report" / "benchmark")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in made[2]]


def test_a_missing_file_is_named_and_the_old_pages_stay(
    made: tuple[Made, station.Profiles, list[Path]], tmp_path: Path
) -> None:
    one = made[0]
    kept = tmp_path / "pages" / "old.html"
    kept.parent.mkdir()
    kept.write_text("old", encoding="utf-8")
    for name in report.profile_inputs():
        if name != "profiles/groups.csv":
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).hardlink_to(one.folder / name)
    with pytest.raises(InputError, match=r"groups\.csv"):
        report.benchmark_pages(tmp_path, one.study, kept.parent)
    assert kept.read_text(encoding="utf-8") == "old"
    report.benchmark_pages(one.folder, one.study, kept.parent)
    assert not kept.exists()


@pytest.mark.parametrize("dims", [1, 3, 4])
def test_pages_of_any_number_of_abilities(dims: int, tmp_path: Path) -> None:
    axes = np.eye(dims)
    one = plant(
        tmp_path,
        [Planted(f"b{k}", {"all": axes[-1 - k % dims]}, items=30) for k in range(2)],
        dims=dims,
        passes=False,
        models=29,
    )
    profile(one)
    for path in report.benchmark_pages(tmp_path, one.study, tmp_path / "pages"):
        reader = read(path)
        text = " ".join(" ".join(reader.text).split())
        assert not reader.faults
        assert "Fewer than 30 models: everything here is exploratory." in text
        if dims == 1:
            assert "A good score goes with reasoning, the one ability of this study." in text
            assert "Groups were not looked for" in text
        else:
            assert "not every ability below is real" in text
            assert "Its questions are one group" in text


def test_the_plane_of_a_benchmark_is_that_of_its_two_largest_abilities() -> None:
    row = {"share_1": 0.1, "share_2": 0.5, "share_3": 0.1, "share_4": 0.3}
    assert pages._pair(row, 4) == (1, 3)
    assert pages._pair({}, 4) == (0, 1)
    assert pages._pair({"share_1": 0.1, "share_2": 0.9}, 2) == (0, 1)


def test_names_of_pages_are_told_apart() -> None:
    names = ["x" * 300, "x" * 301, "ü" * 90, "ü" * 91, "a/b", "a b", ".hidden", ".."]
    made = [report.benchmark_page(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(len(one.encode()) < 240 and one.count("/") == 1 and "/." not in one for one in made)


def test_a_benchmark_without_groups_is_coloured_by_its_declared_subsets(tmp_path: Path) -> None:
    alike = Planted("alike", {"first half": toward(20), "second half": toward(20)}, items=40)
    one = plant(
        tmp_path, [alike, Planted("b", {"x": toward(0)}, items=40), Planted("c", {"y": toward(90)}, items=40)]
    )
    found = profile(one)
    assert found.benchmarks.set_index("benchmark").loc["alike", "groups"] == 1
    page = next(
        path
        for path in report.benchmark_pages(tmp_path, one.study, tmp_path / "pages")
        if path.stem == "alike"
    ).read_text(encoding="utf-8")
    assert "Colours and shapes are declared subsets" in page
    assert "by declared subset: first half and second half" in page
    other = (tmp_path / "pages" / "b.html").read_text(encoding="utf-8")
    assert "Colours and shapes" not in other
