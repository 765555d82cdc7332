"""The page: whole in itself, readable by all, true to the records, and the same bytes each time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined
from report_fixture import FakeStudy, write_results

from benchmirt import figures, joining, report
from benchmirt.errors import InputError
from benchmirt.figures import words
from benchmirt.files import read_json, write_json
from benchmirt.report import captions, card, gather, page, story, tables

VOID = {"meta", "img", "br", "line", "rect", "circle", "path", "link", "input", "hr"}


class Reader(HTMLParser):
    """Collect what the tests ask about a page, and check that its tags are balanced."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.faults: list[str] = []
        self.sections: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def draw_all(folder: Path, study: FakeStudy) -> None:
    """Put a small picture in the place of every figure; drawing is tested elsewhere."""
    claims = [path.stem for path in (folder / "claims").glob("*.json")]
    for name in figures.names(claims):
        path = folder / "figures" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        label = "Simulated data. " if study.simulated else ""
        path.write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" width="252pt" height="100pt">'
            f"<dc:description>{label}Picture of {name} &lt;b&gt;.</dc:description></svg>",
            encoding="utf-8",
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FakeStudy, Path]:
    folder = tmp_path_factory.mktemp("made")
    study = write_results(folder, models=40, per_benchmark=16, replicates=0)
    draw_all(folder, study)
    return folder, study, report.build(folder, study, folder / "report" / "index.html")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FakeStudy, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    study = write_results(
        folder,
        models=36,
        per_benchmark=12,
        replicates=0,
        hostile=True,
        second_fails=True,
        blocks=True,
        simulated=False,
    )
    draw_all(folder, study)
    return folder, study, report.build(folder, study, folder / "report" / "index.html")


@pytest.fixture(scope="module", params=["made", "hostile"])
def built(request: pytest.FixtureRequest) -> Path:
    result: Path = request.getfixturevalue(request.param)[2]
    return result


def test_the_page_needs_nothing_from_outside(built: Path) -> None:
    text = built.read_text(encoding="utf-8")
    reader = read(built)
    for _, attributes in reader.tags:
        for key in ("src", "href", "xlink:href", "action", "data", "srcset"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:image/", "#", "benchmark/")), (key, value)
    assert not reader.all("script")
    assert not reader.all("link")
    assert not [key for _, attributes in reader.tags for key in attributes if key.startswith("on")]
    style = text[text.index("<style>") : text.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style


def test_tags_are_balanced_and_ids_unique_and_links_lead_somewhere(built: Path) -> None:
    reader = read(built)
    assert not reader.faults
    assert not reader.open
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {str(a["href"]) for a in reader.all("a")}
    pages = {link for link in links if link.startswith("benchmark/")}
    assert {link[1:] for link in links - pages} <= set(ids)
    assert pages
    named = {a["aria-labelledby"] for _, a in reader.tags if "aria-labelledby" in a}
    assert named <= set(ids)


def test_the_page_can_be_read_without_seeing_it(built: Path) -> None:
    reader = read(built)
    assert reader.all("html")[0]["lang"] == "en"
    assert len(reader.all("main")) == 1
    assert len(reader.all("h1")) == 1
    assert reader.all("nav")[0]["aria-label"]
    for image in reader.all("img"):
        assert len(image["alt"] or "") > 10
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for header in reader.all("th"):
        assert header.get("scope") in ("col", "row")
    for attributes in reader.all("svg"):
        assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")


def test_the_same_results_make_the_same_page(made: tuple[Path, FakeStudy, Path], tmp_path: Path) -> None:
    folder, study, first = made
    second = report.build(folder, study, tmp_path / "again.html")
    assert first.read_bytes() == second.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_names_from_outside_are_text_and_nothing_else(hostile: tuple[Path, FakeStudy, Path]) -> None:
    text = hostile[2].read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(" in text
    assert "<b>bold" not in text
    assert "A &lt;b&gt;bold&lt;/b&gt; benchmark with $dollars$ &amp; a very" in text
    assert "default-src 'none'" in text


def test_simulated_data_are_called_so_everywhere(
    made: tuple[Path, FakeStudy, Path], hostile: tuple[Path, FakeStudy, Path]
) -> None:
    text = made[2].read_text(encoding="utf-8")
    assert "<title>Simulated data: " in text
    assert text.index('class="simulated"') < text.index("<h1>")
    assert text.count("<figcaption><strong>Simulated data.</strong>") == text.count("<figcaption>")
    real = hostile[2].read_text(encoding="utf-8")
    assert "imulated data" not in "".join(read(hostile[2]).text).replace("simulated data sets", "")
    assert 'class="simulated"' not in real


def test_verdicts_come_first_with_symbol_and_word(made: tuple[Path, FakeStudy, Path]) -> None:
    folder, _, path = made
    text = path.read_text(encoding="utf-8")
    table = text[text.index('<table class="verdicts">') : text.index("</table>")]
    assert text.index("<table") == text.index('<table class="verdicts">')
    for file in (folder / "claims").glob("*.json"):
        record = read_json(file)
        if story.untestable(record):
            assert f'#claim-{record["claim"]}"' not in table
            continue
        row = table[table.index(f'#claim-{record["claim"]}"') :]
        row = row[: row.index("</tr>")]
        for which in ("as_published", "corrected"):
            look = words.verdict(record[which]["verdict"])
            assert f'<span class="badge {look.css}"><svg viewBox="0 0 16 16" aria-hidden="true">' in row
            assert f"</svg>{look.word}</span>" in row


def test_every_claim_has_statement_answers_figure_table_caveat_and_command(
    made: tuple[Path, FakeStudy, Path],
) -> None:
    folder, _, path = made
    text = path.read_text(encoding="utf-8")
    for file in (folder / "claims").glob("*.json"):
        record = read_json(file)
        start = text.index(f'id="claim-{record["claim"]}"')
        if story.untestable(record):
            continue
        part = text[start : text.index("</section>", start)]
        assert record["statement"].replace("'", "&#39;") in part
        estimated = record["corrected"]["estimate"] is not None
        assert part.count('class="answer"') == (2 if estimated else 0)
        assert "Why this test." in part
        assert f"snakemake --cores all results/claims/{record['claim']}.json" in part
        assert f"snakemake --cores all results/figures/claim_{record['claim']}.svg" in part
        assert ("<figure>" in part) == estimated
        assert ("<table>" in part) == bool(record["corrected"]["parts"])
        if record["corrected"]["interval"]:
            unit = words.unit_of(record)
            assert words.interval(record["corrected"]["interval"], unit) in part
            assert words.quantity(record["corrected"]["estimate"], unit) in part


def test_published_claims_that_cannot_be_tested_are_one_closed_list_after_the_others(
    made: tuple[Path, FakeStudy, Path],
) -> None:
    found = gather.gather(*made[:2])
    lost = tuple(
        {
            **record,
            "published": {**record["published"], "data": "other"},
            "as_published": {"verdict": "cannot test", "estimate": None, "why": "no such benchmark"},
            "corrected": {
                "verdict": "cannot test",
                "estimate": None,
                "why": "no such benchmark",
                "parts": [],
            },
        }
        for record in found.records[1:4]
    )
    text = page.render(replace(found, records=(found.records[0], *lost)))
    start = text.index('<details id="untestable">')
    listed = text[start : text.index("</details>", start)]
    assert "3 claims of a published study cannot be tested on these data" in listed
    assert listed.count("No such benchmark.") == 3
    assert text.count('<section class="claim-section"') == 1 < text[:start].count("claim-section")
    # a claim of one's own that cannot be tested keeps its section
    own = {**lost[0], "published": {"text": "", "value": None, "data": None}}
    text = page.render(replace(found, records=(found.records[0], own)))
    assert "untestable" not in text
    assert text.count('<section class="claim-section"') == 2


def test_a_study_without_published_figures_has_no_column_for_them(made: tuple[Path, FakeStudy, Path]) -> None:
    found = gather.gather(*made[:2])
    own = tuple(
        {
            **record,
            "published": {"text": "", "value": None, "data": None},
            "as_published": {**record["as_published"], "verdict": "not compared"},
        }
        for record in found.records
    )
    text = page.render(replace(found, records=own))
    assert 'data-label="Published' not in text
    assert ">Published</th>" not in text[: text.index("</table>")]
    assert "published study" not in " ".join(story.done(replace(found, records=own)))
    assert "</svg>matches</span>" not in text.replace("<dt>" + str(page.badge("matches")), "")
    assert "About other models" not in page.render(found)
    other = tuple({**r, "published": {**r["published"], "data": "other"}} for r in found.records)
    text = page.render(replace(found, records=other))
    assert "Published (about other models and questions)</th>" in text
    assert "The published figures are about other models and questions than these" in text


def test_the_first_screen_says_what_was_done_on_what_what_came_out_and_what_to_distrust(built: Path) -> None:
    text = built.read_text(encoding="utf-8")
    places = [
        text.index(f"<h3>{head}")
        for head in ("What was done", "On what", "What came out", "What to distrust")
    ]
    assert places == sorted(places)
    assert places[-1] < text.index('<nav class="contents"') < text.index('id="verdicts"')


def test_missing_answers_are_counted_by_reason(hostile: tuple[Path, FakeStudy, Path]) -> None:
    found = gather.gather(*hostile[:2])
    kept = set(found.models.loc[found.models["kept"], "model"])
    mine = found.coverage[found.coverage["model"].isin(kept)]
    gaps = int(mine["missing"].sum())
    told = " ".join(story.data(found))
    assert f"Of {int(mine['items'].sum()):,} answers, {gaps:,} (" in told
    assert f"{int(mine['not_run'].sum()):,} not run and {int(mine['judge_failed'].sum()):,} failed or" in told
    full = found.coverage.assign(observed=found.coverage["items"], missing=0)
    assert "No answer is missing." in " ".join(story.data(replace(found, coverage=full)))


def test_quotes_and_percentages_are_written_in_one_way_on_the_page(built: Path) -> None:
    text = re.sub(r"<(style|code)\b.*?</\1>", "", built.read_text(encoding="utf-8"), flags=re.DOTALL)
    told = re.sub(r"<[^>]*>", "\n", text)
    assert not re.findall(r"\d ?%", told)
    names = ("alert", "$frac")
    assert not [
        line
        for line in told.splitlines()
        if re.search(r"['\"]|&#3[49];", line) and not any(n in line for n in names)
    ]


@pytest.mark.parametrize(
    ("dims", "said"), [(1, "No dimension came back"), (2, "Only one of the two dimensions")]
)
def test_abilities_that_may_not_be_real_are_called_so(
    dims: int, said: str, made: tuple[Path, FakeStudy, Path]
) -> None:
    found = gather.gather(*made[:2])
    assert story.unstable(found) == ""
    entries = [dict(entry) for entry in found.stability["dimensions"][:dims]]
    entries[-1]["passes"] = False
    failed = replace(found, stability={**found.stability, "dimensions": entries})
    assert story.unstable(failed).startswith(said)
    assert said in page.render(failed)


@pytest.mark.parametrize("dims", [1, 3, 4])
def test_captions_do_not_speak_of_two_abilities_where_there_are_others(dims: int) -> None:
    told = [captions.of_figure(name, dims) for name in figures.CATALOGUE]
    told += [
        captions.of_kind(kind, dims)
        for kind in ("direction", "contrast", "correlation", "count", "stability")
    ]
    assert not [text for text in told if "the two abilities" in text]
    assert "plane" not in captions.of_figure("item_map", 1)
    assert ("Only the first two" in captions.of_figure("item_map", dims)) == (dims > 2)


def test_what_is_no_confidence_interval_is_not_called_one() -> None:
    part = {"name": "n", "estimate": 2, "interval": [2, 3], "unit": "count", "verdict": "inconclusive"}
    record = {
        "claim": "C3",
        "kind": "dimensionality",
        "unit": "count",
        "corrected": {**part, "parts": [part]},
    }
    rows = tables.parts(record)
    assert dict(tables.part_columns(rows, "dimensionality"))["interval"] == "Range of the two methods"
    assert rows[0]["interval"] == "2 to 3"
    assert tables.column(record, "corrected").interval == "(the two methods: 2 and 3)"
    assert "loose" in str(page.strip(record))


def test_why_nothing_is_compared_is_said_once_per_row() -> None:
    """The column of published figures says that they are about other data; the next one does not say it again."""
    why = "the published figure is about other data: this study has no items with benchmark bbh"
    record = {
        "as_published": {"verdict": "not compared", "why": why},
        "corrected": {"parts": [{"name": "one"}, {"name": "two"}]},
        "published": {"text": "a figure", "data": "other"},
    }
    assert tables.column(record, "as_published").brief == ""
    assert tables.column(record, "as_published").why == why
    assert tables.column({**record, "published": {"data": "same"}}, "as_published").brief == why


def test_commands_use_the_folder_of_the_configuration(made: tuple[Path, FakeStudy, Path]) -> None:
    folder, study, _ = made
    found = gather.gather(folder, study)
    assert tables.command(found, "claims/C1.json") == "snakemake --cores all results/claims/C1.json"
    other = replace(found, shown_results="my results")
    assert tables.command(other, "claims/C1.json") == "snakemake --cores all 'my results/claims/C1.json'"


def test_the_story_says_what_came_out(
    made: tuple[Path, FakeStudy, Path], hostile: tuple[Path, FakeStudy, Path]
) -> None:
    found = gather.gather(*made[:2])
    told = " ".join([*story.data(found), *story.dimensions(found), *story.axes(found), story.claims(found)])
    assert "39 simulated language models" in told
    assert "16 benchmarks" in told
    assert "both find two" in told
    assert "Both dimensions come back" in told
    assert (
        "Ability 2 goes with the safety benchmarks (mean correlation .74, 95 % interval [.62, .81])" in told
    )
    assert (
        "In these simulated data, of the ten claims, six hold, two do not hold, one is left open by these data and one "
        "cannot be tested" in told
    )
    assert any("simulated" in line for line in story.cautions(found))
    other = gather.gather(*hostile[:2])
    told = " ".join(story.dimensions(other))
    assert "they do not agree" in told
    assert "dimension 2 does not come back. Whatever is said about it is not to be relied on." in told
    cautions = " ".join(story.cautions(other))
    assert "simulated" not in cautions
    assert "does not tell a failed answer" in cautions
    assert "as published (1 of 10)" in cautions


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ({"heldout": {"chosen": 1}, "eigen": {"chosen": 1}, "agreed": 1}, "both find one"),
        (
            {"heldout": {"chosen": 2}, "eigen": {"chosen": 4, "at_least": True}, "agreed": None},
            "but even beyond four, the most that were tried, more pattern is left over than chance would leave",
        ),
        ({"heldout": {"chosen": 2}, "eigen": {"chosen": 3}, "agreed": None}, "So the number is open."),
        ({"why_not": "there are too few lineages"}, "could not be settled. There are too few lineages."),
    ],
)
def test_the_story_of_the_number_of_dimensions(
    number: dict[str, Any], expected: str, made: tuple[Path, FakeStudy, Path]
) -> None:
    found = replace(gather.gather(*made[:2]), number=number)
    assert expected in " ".join(story.dimensions(found))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "This study makes no claims."),
        (["reproduced"], "The one claim holds."),
        (["reproduced", "reproduced"], "Both claims hold."),
        (["cannot test"] * 15, "None of the 15 claims can be tested on these data."),
        (
            ["reproduced", "not reproduced"],
            "In these simulated data, of the two claims, one holds and one does not hold.",
        ),
    ],
)
def test_the_story_of_the_claims(
    verdicts: list[str], expected: str, made: tuple[Path, FakeStudy, Path]
) -> None:
    records = tuple({"claim": f"C{i}", "corrected": {"verdict": word}} for i, word in enumerate(verdicts))
    assert story.claims(replace(gather.gather(*made[:2]), records=records)) == expected


def test_stability_that_could_not_be_judged_is_said(made: tuple[Path, FakeStudy, Path]) -> None:
    found = replace(gather.gather(*made[:2]), stability={"dimensions": [], "why_not": "one lineage only"})
    assert "One lineage only." in " ".join(story.dimensions(found))
    assert tables.stability(found) == []


def test_few_null_data_sets_are_a_caution(made: tuple[Path, FakeStudy, Path]) -> None:
    found = gather.gather(*made[:2])
    assert not any("trial" in line for line in story.cautions(found))
    few = replace(found, stability={**found.stability, "p_needed": 1 / 31, "replicates": 30})
    assert any("trial run: chance was judged from 30 simulated" in line for line in story.cautions(few))
    told = " ".join(story.dimensions(few))
    assert "in a trial only" in told
    assert "more clearly than chance" not in told
    assert {row["answer"] for row in tables.stability(few)} == {"○ a trial, no verdict"}
    assert "Trial run" in page.render(few)
    assert "Trial run" not in page.render(found)


def test_few_models_are_exploratory(tmp_path: Path) -> None:
    study = write_results(
        tmp_path,
        models=28,
        dims=1,
        named=False,
        per_benchmark=20,
        replicates=0,
        benchmarks=["only one"],
        simulated=False,
    )
    draw_all(tmp_path, study)
    text = report.build(tmp_path, study, tmp_path / "index.html").read_text(encoding="utf-8")
    assert "fewer than 30" in text
    assert "</svg>exploratory</span>" in text
    table = text[text.index('<table class="verdicts">') : text.index("</table>")]
    assert "reproduced" not in table
    assert "Ability 1 earns no name" in text


def test_numbers_in_tables_are_those_of_the_files(made: tuple[Path, FakeStudy, Path]) -> None:
    found = gather.gather(*made[:2])
    rows = {row["name"]: row for row in tables.benchmarks(found)}
    mine = found.items[found.items["benchmark"] == "bbq"]
    assert rows["bbq"]["kept"] == str(int(mine["kept"].sum()))
    mean = (mine["mean"] * mine["observed"]).sum() / mine["observed"].sum()
    assert rows["bbq"]["mean"] == words.number(mean)
    place = found.agreement.benchmarks.index("bbq")
    assert rows["bbq"]["correlations"][0][0] == words.number(found.agreement.full[place, 0])
    assert float(rows["wmdp"]["angles"][0][:-1]) > 150
    assert float(rows["bbq"]["angles"][0][:-1]) < 20
    shown = tables.models(found)
    assert len(shown) == found.kept_models
    values = [float(row["abilities"][0][0].replace("−", "-")) for row in shown]
    assert values == sorted(values, reverse=True)
    assert tables.dropped_models(found) == [
        (found.models["model"].iloc[-1], "duplicate of another model (canonical name)")
    ]
    reasons, dropped = tables.dropped_items(found)
    assert sum(int(n) for _, counts in dropped for n in counts) == int((~found.items["kept"]).sum())
    assert len(reasons) <= 2
    _, missing = tables.missing(found)
    assert len(missing) == 16


def test_the_data_card_in_words(made: tuple[Path, FakeStudy, Path], tmp_path: Path) -> None:
    found = gather.gather(*made[:2]).card
    (source,) = card.sources(found)
    assert (source["format"], source["told"], source["licence"]) == (
        "inspect and lm-eval",
        "25\u00a0%",
        "CC-BY-4.0",
    )
    assert source["origin"] == "org/made-up at 0123456789ab"
    (conflict,) = card.conflicts(found)
    assert (conflict["kind"], conflict["outcomes"], conflict["done"]) == (
        "Another right answer",
        "1,234",
        "missing",
    )
    (missing,) = card.missingness(found)
    assert missing["r"] == "\u2212.62"
    assert missing["missing"] == "41 (5\u00a0%)"
    first, second = card.directions(found)
    assert (first["direction"], second["direction"]) == ("turned round", "as declared")
    assert first["better"] == "a (20\u00a0%)"
    (again,) = card.rescoring(found)
    assert (again["same"], again["missing"], again["timeout"]) == ("93\u00a0%", "3", "1")
    (road,) = card.roads(found)
    assert (road["expected"], road["published"], road["ours"], road["other"]) == (
        words.NOTHING,
        "410",
        "408",
        "9",
    )
    assert (road["cells"], road["same"], road["lost"], road["won"]) == ("2,000", "90\u00a0%", "71", "62")
    assert (road["missing"], road["counted"], road["found"]) == ("48", "45", "9")
    assert card.roads({**found, "roads": None}) == card.roads({}) == []
    text = made[2].read_text()
    for shown in (
        "Another right answer",
        "math-verify 0.9.0",
        "\u2212.62",
        "CC-BY-4.0",
        "Published 1, here 0",
    ):
        assert shown in text


def test_every_kind_of_conflict_has_words() -> None:
    """The kinds are those that the table in the module's docstring explains."""
    assert joining.__doc__ is not None
    border = "\n================ "
    table = joining.__doc__.split(border)[2].splitlines()[1:]
    kinds = {line[:16].strip() for line in table if line[:1].strip()}
    assert kinds == set(card.KINDS)


def test_fit_cards(made: tuple[Path, FakeStudy, Path]) -> None:
    found = gather.gather(*made[:2])
    cards = {fit.name: tables.fit_card(fit) for fit in found.fits}
    assert cards["published"].settled == "9 of 10 runs settled"
    assert cards["published"].failures == [(4, "the loss still fell by 2.1 in the last tenth of the steps")]
    assert ("final loss", "1,234.5 to 1,243.5") in cards["published"].diagnostics
    nuts = dict(cards["nuts"].diagnostics)
    assert nuts["largest R-hat"] == "1.013"
    assert nuts["smallest effective sample size"] == "412"
    assert nuts["divergences"] == "0"
    assert ("a", "Normal(0, tau)") in cards["nuts"].priors


def test_small_numbers_keep_their_size() -> None:
    assert tables.compact(0.00012) == "1.2e−4"
    assert tables.compact(-0.5) == "−.500"
    assert tables.compact(1500) == "1,500"
    assert tables.flat({"a": {"b_c": 1.5, "d": None}, "e": True}) == [
        ("a: b c", "1.500"),
        ("a: d", "None"),
        ("e", "True"),
    ]


def test_columns_that_hold_nothing_are_left_out() -> None:
    record = {
        "kind": "correlation",
        "corrected": {
            "parts": [{"name": "x", "estimate": 0.5, "verdict": "reproduced", "region": {"low": 0}}]
        },
    }
    rows = tables.parts(record)
    assert [key for key, _ in tables.part_columns(rows)] == ["estimate", "region"]


def test_a_heavy_drawing_is_shown_as_pixels(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    svg = tmp_path / "figures" / "x.svg"
    svg.write_text(
        f'<svg width="518.4pt"><dc:description>An &amp; b</dc:description>{"x" * page.HEAVY}</svg>',
        encoding="utf-8",
    )
    (tmp_path / "figures" / "x.png").write_bytes(b"\x89PNG")
    shown = page.picture(tmp_path, "x")
    assert shown.source.startswith("data:image/png;base64,")
    assert shown.alt == "An & b"
    assert 0 < shown.least < shown.width


@pytest.mark.parametrize(
    "path",
    [
        "figures/abilities.svg",
        "claims/C9.json",
        "matrix/honest/items.parquet",
        "dimensions/corrected/consensus.nc",
        "dimensions/labels.json",
        "fits/nuts/seed0.nc",
    ],
)
def test_a_missing_file_is_named_and_no_page_is_left(path: str, tmp_path: Path) -> None:
    study = write_results(tmp_path, models=12, per_benchmark=6, replicates=0, benchmarks=["a", "b"])
    draw_all(tmp_path, study)
    (tmp_path / path).unlink()
    (tmp_path / "claims" / "claims.csv").touch()
    with pytest.raises(InputError, match=re.escape(Path(path).name)):
        report.build(tmp_path, study, tmp_path / "report" / "index.html")
    assert not (tmp_path / "report").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    study = write_results(tmp_path, models=12, per_benchmark=6, replicates=0, benchmarks=["a", "b"])
    draw_all(tmp_path, study)
    write_json({"dimensions": [{"ability": 7}]}, tmp_path / "dimensions" / "labels.json")
    with pytest.raises(InputError, match=r"labels\.json"):
        report.build(tmp_path, study, tmp_path / "index.html")
    (tmp_path / "fits" / "nuts" / "seed0.nc").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"seed0\.nc"):
        gather.read_fits(tmp_path)


def test_a_text_among_the_numbers_of_a_table_is_told_with_its_place(tmp_path: Path) -> None:
    study = write_results(tmp_path, models=12, per_benchmark=6, replicates=0, benchmarks=["a", "b"])
    draw_all(tmp_path, study)
    path = tmp_path / "matrix" / "honest" / "coverage.csv"
    table = pd.read_csv(path, dtype=str)
    table.loc[2, "items"] = "six"
    table.to_csv(path, index=False)
    with pytest.raises(InputError, match=r'coverage.csv: row 4, column "items": a text .* found "six"'):
        report.build(tmp_path, study, tmp_path / "index.html")


def test_inputs_name_every_file_that_the_page_reads(
    made: tuple[Path, FakeStudy, Path], tmp_path: Path
) -> None:
    folder, study, path = made
    claims = {file.stem: read_json(file)["kind"] for file in sorted((folder / "claims").glob("*.json"))}
    table = [
        {"fit": "published", "seeds": range(10)},
        {"fit": "corrected", "seeds": range(10)},
        {"fit": "dims-k1", "seeds": [0]},
        {"fit": "nuts", "seeds": [0]},
    ]
    needed = report.inputs(table, claims)
    assert len(needed) == len(set(needed))
    for name in needed:
        if (folder / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).hardlink_to(folder / name)
        else:
            assert name.endswith(".png"), name
    assert report.build(tmp_path, study, tmp_path / "index.html").read_bytes() == path.read_bytes()


def test_every_figure_has_a_caption_here_and_in_snakemakes_report(repository: Path) -> None:
    assert set(captions.CAPTIONS) == set(figures.CATALOGUE)
    home = repository / "workflow" / "report"
    effort = {"bootstrap": 31, "folds": 32, "null_replicates": 33, "splits": 34}
    configuration = {"study": "mine", "fits": {"seeds": 35}, "dimensions": effort}
    told = ""
    context = SimpleNamespace(config=configuration, wildcards=SimpleNamespace(claim="C1"))
    environment = Environment(undefined=StrictUndefined)
    for name in [*figures.names(["C1"])]:
        assert (home / figures.caption(name)).is_file()
        assert figures.category(name)
    for path in home.glob("*.rst"):
        text = environment.from_string(path.read_text(encoding="utf-8")).render(snakemake=context)
        made = publish_parts(text, writer="html5", settings_overrides={"halt_level": 2, "report_level": 2})
        assert "<p>" in made["body"]
        told += text
    assert all(str(number) in told for number in (31, 32, 33, 34, 35))


def test_a_strip_is_drawn_inside_its_frame() -> None:
    record = {
        "claim": "C1",
        "kind": "correlation",
        "corrected": {
            "estimate": 0.2,
            "interval": [-0.9, 0.99],
            "region": {"low": 0.5},
            "verdict": "inconclusive",
        },
    }
    drawn = str(page.strip(record))
    for value in re.findall(r' (?:x|x1|x2|cx)="([\d.-]+)"', drawn):
        assert 0 <= float(value) <= 180
    assert 'aria-label="estimate .20 [−.90, .99] inconclusive, on a scale from −1.00 to 1.00"' in drawn
    assert page.strip({"claim": "C1", "corrected": {"estimate": None}}) == ""


def test_records_are_plain_json(made: tuple[Path, FakeStudy, Path]) -> None:
    for path in (made[0] / "claims").glob("*.json"):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda c: pytest.fail(c))


def test_benchmarks_that_follow_another_ability_than_their_category_are_named_first(
    made: tuple[Path, FakeStudy, Path],
) -> None:
    found = gather.gather(*made[:2])
    assert story.strangers(found) == [], "all benchmarks of the fixture measure what they are filed under"
    profiles = found.profiles.copy()
    angles = ["angle_1_low", "angle_1_high", "angle_2_low", "angle_2_high"]

    def turned(benchmark: str, *values: float) -> None:
        profiles.loc[profiles["benchmark"] == benchmark, angles] = values

    turned("bbq", 0.0, 20.0, 70.0, 97.0)  # along reasoning
    turned("wmdp", 150.0, 180.0, 80.0, 120.0)  # against it
    profiles.loc[profiles["benchmark"] == "bbh", "category"] = float("nan")  # none is declared
    turned("toxigen", 10.0, 60.0, 30.0, 80.0)  # its interval reaches too far
    strange = replace(found, profiles=profiles)
    assert story.strangers(strange) == [
        "Not every benchmark measures what it is filed under: bbq counts as safety and follows reasoning; "
        "wmdp counts as safety and follows reasoning, in reverse."
    ]
    failing = [entry | {"passes": False} for entry in found.stability["dimensions"]]
    assert story.strangers(replace(strange, stability={**found.stability, "dimensions": failing})) == []
