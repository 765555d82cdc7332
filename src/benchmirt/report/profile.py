"""A page for each benchmark: what it measures, and which of its questions are worth keeping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Template
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmirt.claims.verdict import MIN_MODELS, is_trial
from benchmirt.figures import profile as drawing
from benchmirt.figures import store, style, words
from benchmirt.files import atomic_folder, read_json
from benchmirt.report import benchmark_page, card, page, story, tables

__all__ = ["Profiled", "gather", "render", "write"]

Floats = NDArray[np.float64]

MOST_LISTED = 40
"""So many questions are listed by name on the page; the table of items has them all."""
MOST_SUBSETS = 30
MOST_COLOURED = 6
"""So many declared subsets can be told apart by colour and shape."""
MANY = 0.05
"""A smaller share of questions at the ceiling or at the floor is not worth a word in the opening."""
SUSPECT = 0.05
"""Questions whose p value of running backwards is below this are listed even where it may be chance among so many."""
MIXED = 0.6
"""An ability with a larger share is what a benchmark mostly measures."""

_COLUMNS = {
    "subcategory_one": "subcategory",
    "subcategory_two": "second subcategory",
    "subcategory_three": "third subcategory",
    "domain_superset": "domain",
    "question_type": "type of question",
    "category": "category",
}
_NAMES = ("question_id", "benchmark", "subset")


@dataclass(frozen=True)
class Profiled:
    """All that the pages show.

    Attributes
    ----------
    name, title, simulated
        Of the study.
    shown_results, configfiles, overrides
        What commands repeat; see `benchmirt.report.gather.Findings`.
    naming
        Names and directions of the abilities.
    stability
        Content of ``stability.json``.
    benchmarks, groups, subsets, items
        Tables of the profiles.
    a
        Discriminations by the rows of `items`, NaN where not fitted, shape (J, K).
    missingness
        Whether what is missing goes with ability, a row per benchmark and group of reasons.
    models
        Models that were fitted.
    """

    name: str
    title: str
    simulated: bool
    shown_results: str
    configfiles: tuple[str, ...]
    overrides: tuple[str, ...]
    naming: store.Abilities
    stability: Mapping[str, Any]
    benchmarks: pd.DataFrame
    groups: pd.DataFrame
    subsets: pd.DataFrame
    items: pd.DataFrame
    a: Floats
    missingness: pd.DataFrame
    models: int


def _table(path: Path, required: Sequence[str]) -> pd.DataFrame:
    """Read a table of profiles; names stay text."""
    frame = store.read_csv(path, required)
    for name in _NAMES:
        if name in frame:
            frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return frame


def gather(
    results: Path, study: Any, configfiles: Sequence[str] = (), overrides: Sequence[str] = ()
) -> Profiled:
    """Read all that the pages show; see `benchmirt.report.benchmark_pages`."""
    home = results / "profiles"
    naming = store.read_abilities(results)
    items = _table(home / "items.csv", ("question_id", "benchmark", "backwards"))
    statistics = store.read_csv(
        results / "dimensions" / "item_statistics.csv", ("question_id", "discrimination_1")
    )
    fitted = statistics.set_index("question_id").reindex(items["question_id"])
    report = getattr(study, "report", None) or {}
    return Profiled(
        name=str(study.name),
        title=str(report.get("title") or study.title or study.name),
        simulated=bool(study.simulated),
        shown_results=str(getattr(study, "results", "") or "results"),
        configfiles=tuple(configfiles),
        overrides=tuple(overrides),
        naming=naming,
        stability=read_json(results / "dimensions" / "stability.json"),
        benchmarks=_table(home / "benchmarks.csv", ("benchmark", "items", "kept")),
        groups=_table(home / "groups.csv", ("benchmark", "group", "items")),
        subsets=_table(home / "subsets.csv", ("benchmark", "column", "subset")),
        items=items,
        a=store.discriminations(fitted, naming.dims),
        missingness=store.read_csv(results / "matrix" / "honest" / "missingness.csv", ("benchmark",)),
        models=int(read_json(results / "matrix" / "honest" / "summary.json")["models_kept"]),
    )


# ------------------------------------------------------------------ in words


def _shares(row: Mapping[str, Any], dims: int) -> list[float]:
    found: list[Any] = [row.get(f"share_{k + 1}") for k in range(dims)]
    return [float(v) for v in found if words.is_number(v)]


def measures(row: Mapping[str, Any], naming: store.Abilities) -> str:
    """Say in one sentence what a benchmark measures."""
    shares = _shares(row, naming.dims)
    if not shares or not words.is_number(row.get("discrimination")):
        return "None of its questions tells these models apart, so what it measures cannot be said."
    if naming.dims == 1:
        low, high = (float(row.get(f"discrimination_{end}") or np.nan) for end in ("low", "high"))
        if low < 0 < high:
            return f"Whether its questions go with {naming.labels[0]} at all is not clear from these models."
        way = "goes with" if float(row["discrimination"]) > 0 else "runs against"
        return f"A good score {way} {naming.labels[0]}, the one ability of this study."
    order = np.argsort(shares)[::-1]
    top = int(order[0])
    angle = float(row[f"angle_{top + 1}"])
    against = angle > 90
    away = words.quantity(180 - angle if against else angle, "degrees")
    told = f"on average they point {away} off {'its opposite' if against else 'its direction'}"
    if shares[top] >= MIXED:
        said = " in reverse: models with more of it score lower" if against else ""
        return f"It mostly measures {naming.labels[top]}{said} ({words.share(shares[top])} of what its questions tell; {told})."
    parts = [f"{words.share(shares[k])} {naming.labels[k]}" for k in order if shares[k] >= 0.1]
    return f"It measures a mix: {words.listing(parts)}."


def worth(row: Mapping[str, Any]) -> str:
    """Say in one sentence what a builder should know of a benchmark's questions."""

    def number(key: str) -> int:
        return int(row[key]) if words.is_number(row.get(key)) else 0

    total, little, back = number("items"), number("adds_little"), number("backwards")
    told = [f"{words.count(little) if little else 'none'} {'add' if little > 1 else 'adds'} next to nothing"]
    if back:
        told.append(f"{words.count(back)} {'run' if back > 1 else 'runs'} backwards")
    for key, text in (("items_at_ceiling", "passed"), ("items_at_floor", "failed")):
        if number(key) >= MANY * total and number(key):
            count = number(key)
            told.append(f"{words.count(count)} {'are' if count > 1 else 'is'} {text} by nearly every model")
    if number("groups") > 1:
        into = f"{words.spelled(number('groups'))} groups that point different ways"
        return f"Its {words.plural(total, 'question')} fall into {into}; {words.listing(told)}."
    return f"Of its {words.plural(total, 'question')}, {words.listing(told)}."


def own_share(row: Mapping[str, Any]) -> str:
    """Say how repeatable the score is, and how much of it no other benchmark shares."""
    if not words.is_number(row.get("reliability")):
        return "How repeatable its score is cannot be said: its questions cannot be halved, or too few models answered them."
    text = (
        f"Reliability {words.number(row['reliability'])}: that share of the differences between models’ scores would be found "
        "again with another set of such questions."
    )
    if not words.is_number(row.get("own_share")):
        return (
            f"{text} How much of it is the benchmark’s own cannot be said, since there is no other benchmark from which the "
            "abilities could be worked out."
        )
    if float(row.get("own_share_high") or row["own_share"]) <= 0:
        return (
            f"{text} How much of it is the benchmark’s own cannot be told from so few questions: what the abilities leave over "
            "is less than chance alone should leave."
        )
    share = min(max(float(row["own_share"]), 0.0), 1.0)
    span = ""
    if words.is_number(row.get("own_share_low")):
        low, high = (min(max(float(row[f"own_share_{end}"]), 0.0), 1.0) for end in ("low", "high"))
        span = f" (95\u00a0% interval {words.share(low)} to {words.share(high)})"
    text += (
        f" Of that, {words.share(share)}{span} is the benchmark’s own: its questions share it, and the abilities that the other "
        "benchmarks show do not explain it."
    )
    if words.is_number(row.get("own_deviation")):
        text += (
            f" Models deviate on it by {words.number(row['own_deviation'])} logits (standard deviation) from what those "
            "abilities say."
        )
    return text


def idle(row: Mapping[str, Any]) -> str:
    """Say how many questions add little, and how many, and which models, are at an end of the scale."""
    total, little, unfitted = int(row["items"]), int(row["adds_little"]), int(row["items"]) - int(row["kept"])

    def be(n: int) -> str:
        return f"{words.count(n)} {'is' if n == 1 else 'are'}"

    text = (
        f"{words.count(little)} of {words.plural(total, 'question')} ({words.share(little / total)}) together hold 1\u00a0% of "
        "what the benchmark tells about these models."
    )
    if unfitted:
        text += f" Among them, {be(unfitted)} not even fitted, since all outcomes are equal or too few."
    return (
        f"{text} {words.capital(be(int(row['items_at_ceiling'])))} passed by at least 95\u00a0% of the models (ceiling), "
        f"{be(int(row['items_at_floor']))} passed by at most 5\u00a0% (floor). Of the models, "
        f"{be(int(row['models_at_ceiling']))} at a score of .95 or more, {be(int(row['models_at_floor']))} at .05 or less."
    )


def grouping(row: Mapping[str, Any]) -> str:
    """Say whether the questions fall into groups, and which declared subsets those are."""
    if not words.is_number(row.get("groups")):
        return "Groups were not looked for: that takes at least 20 fitted questions and two abilities."
    count = int(row["groups"])
    if count == 1:
        return "Its questions are one group: no division into groups that point different ways describes them clearly better."
    text = (
        f"Without being told any label, the questions fall into {words.spelled(count)} groups that point different ways (BIC "
        f"better by {words.count(row['groups_evidence'])} than that of one group; 10 counts as very strong)."
    )
    column = row.get("groups_column")
    if not isinstance(column, str):
        return f"{text} No declared subset is there to compare them with."
    what = _COLUMNS.get(column, column)
    rand, p = words.number(row["groups_rand"]), words.probability(row["groups_p"])
    if float(row["groups_p"]) > 0.01:
        return f"{text} They coincide with no declared subsets (nearest: {what}, adjusted Rand index {rand}, {p})."
    return (
        f"{text} They coincide with the declared {what}: each subset put to the group that holds most of it, the adjusted Rand "
        f"index is {rand} ({p} against shuffled subsets; 1 is the same division, 0 chance)."
    )


# ------------------------------------------------------------------ tables


def _abilities(row: Mapping[str, Any], naming: store.Abilities) -> list[list[str]]:
    """Return a row per ability: share, angle with interval, expected standard errors of all questions and of the short form."""
    rows = []
    for k, label in enumerate(naming.labels, start=1):
        if naming.dims > 1:
            value = words.quantity(row.get(f"angle_{k}"), "degrees")
            span = words.interval((row.get(f"angle_{k}_low"), row.get(f"angle_{k}_high")), "degrees")
        else:
            value = words.number(row.get("discrimination"))
            span = words.interval((row.get("discrimination_low"), row.get("discrimination_high")))
        rows.append(
            [
                words.capital(label),
                words.share(row.get(f"share_{k}")),
                value,
                span,
                words.number(row.get(f"standard_error_{k}")),
                words.number(row.get(f"short_standard_error_{k}")),
            ]
        )
    return rows


def _angles(entry: Mapping[Any, Any], dims: int) -> list[str]:
    """Return the angle to each ability and its interval, in words."""
    angles = []
    for k in range(1, dims + 1):
        angles.append(words.quantity(entry.get(f"angle_{k}"), "degrees"))
        angles.append(words.interval((entry.get(f"angle_{k}_low"), entry.get(f"angle_{k}_high")), "degrees"))
    return angles


def _group_rows(found: Profiled, name: str) -> list[list[str]]:
    mine = found.groups[found.groups["benchmark"] == name]
    return [
        [
            str(entry["group"]),
            words.count(entry["items"]),
            words.count(entry["certain"]),
            *_angles(entry, found.naming.dims),
        ]
        for entry in mine.to_dict("records")
    ]


def _declared_rows(found: Profiled, name: str) -> list[list[str]]:
    """Return a row per declared subset: what divides, which part, questions, mean, and angles with intervals."""
    mine = found.subsets[found.subsets["benchmark"] == name]
    return [
        [
            _COLUMNS.get(str(entry["column"]), str(entry["column"])),
            str(entry["subset"]),
            words.count(entry["items"]),
            words.number(entry["mean"]),
            *(_angles(entry, found.naming.dims) if found.naming.dims > 1 else ()),
        ]
        for entry in mine.to_dict("records")
    ]


def _subset_rows(mine: pd.DataFrame, groups: int) -> tuple[list[list[str]], int]:
    """Count the questions of each subset in each group, and say how many subsets are left out."""
    known = mine[mine["group"].notna()]
    counts = pd.crosstab(known["subset"].fillna("none").astype(str), known["group"].astype(int))
    counts = counts.reindex(columns=range(1, groups + 1), fill_value=0)
    order = (
        counts.assign(first=-counts.div(counts.sum(axis=1), axis=0)[1])
        .sort_values("first", kind="stable")
        .index
    )
    rows = [[str(name), *(words.count(n) for n in counts.loc[name])] for name in order]
    return rows[:MOST_SUBSETS], max(len(rows) - MOST_SUBSETS, 0)


def _against(mine: pd.DataFrame) -> list[list[str]]:
    """Return the questions that run backwards, and those that may do so by chance, the clearest first."""
    suspect = mine[mine["backwards_p"].lt(SUSPECT).fillna(False)].sort_values("backwards_p", kind="stable")
    return [
        [
            str(entry["question_id"]),
            words.number(entry["mean"]),
            f"{words.number(entry['along'])} ± {words.number(entry['along_se'])}",
            words.probability(entry["backwards_p"]),
            "runs backwards" if entry["backwards"] else "may be chance",
        ]
        for entry in suspect.head(MOST_LISTED).to_dict("records")
    ]


def _missing(row: Mapping[str, Any]) -> list[list[str]]:
    """Return how many outcomes are missing for each reason that occurs."""
    total = int(row["observed"]) + int(row["missing"])
    counts = {
        label: int(row[f"missing_{reason}"])
        for reason, label in tables.REASONS.items()
        if words.is_number(row.get(f"missing_{reason}"))
    }
    return [
        [words.capital(label), words.count(n), words.share(n / total)] for label, n in counts.items() if n
    ]


def _short(mine: pd.DataFrame) -> list[str]:
    chosen = mine[mine["short_rank"].notna()].sort_values("short_rank")
    return [str(name) for name in chosen["question_id"]]


# ------------------------------------------------------------------ page


def _rows(found: Profiled) -> list[dict[str, Any]]:
    """Return what is known of each benchmark, by column."""
    return [{str(key): value for key, value in row.items()} for row in found.benchmarks.to_dict("records")]


def _pair(row: Mapping[str, Any], dims: int) -> tuple[int, int]:
    """Return the two abilities whose plane shows a benchmark best."""
    shares = _shares(row, dims)
    if dims == 2 or not shares:
        return 0, 1
    first, second = sorted(np.argsort(shares)[::-1][:2].tolist())
    return int(first), int(second)


def _picture(figure: Figure, found: Profiled, name: str) -> page.Picture:
    title = f"What the questions of {name} tell apart"
    if found.simulated:
        style.stamp_simulated(figure, found.title)
        title = f"Simulated data. {title}"
        style.describe(figure, f"Simulated data. {style.description(figure)}")
    return page.picture_of("profile", style.svg(figure, title))


def _coloured(mine: pd.DataFrame, groups: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each question's group from 1 (0: none), and the groups' names where they are declared subsets."""
    if groups > 1:
        return mine["group"].fillna(0).to_numpy(dtype=np.int64), []
    subset = mine["subset"].astype("string")
    names = [str(name) for name in subset.dropna().unique()]
    if not 1 < len(names) <= MOST_COLOURED:
        return np.zeros(len(mine), dtype=np.int64), []
    return pd.Index(names).get_indexer(pd.Index(subset)).astype(np.int64) + 1, names


def _caption(found: Profiled, row: Mapping[str, Any], subsets: Sequence[str]) -> str:
    if found.naming.dims == 1:
        return "How strongly each question separates models of high and low ability; below 0 it does so the wrong way round."
    groups = words.is_number(row.get("groups")) and int(row["groups"]) > 1
    what = "groups found without labels" if groups else "declared subsets" if subsets else ""
    return (
        "Each mark is a question. Its distance from the centre says how sharply it tells models apart, its direction in which "
        "ability; lines show the directions of the abilities."
        + (f" Colours and shapes are {what}; large marks are their means." if what else "")
    )


def render(
    found: Profiled, name: str, behind: Mapping[tuple[int, int], drawing.Outline], template: Template
) -> str:
    """Return the page of a benchmark as HTML.

    Parameters
    ----------
    found
        All that the pages show.
    name
        The benchmark.
    behind
        Backgrounds by the two abilities that span their plane; those that are needed are there.
    template
        The page's.
    """
    row = next(row for row in _rows(found) if row["benchmark"] == name)
    at = (found.items["benchmark"] == name).to_numpy()
    mine = found.items[at]
    fitted = np.isfinite(found.a[at]).all(axis=1)
    groups = int(row["groups"]) if words.is_number(row.get("groups")) else 0
    group, coloured = _coloured(mine, groups)
    back = store.truths(mine["backwards"])
    dims = found.naming.dims
    figure = drawing.profile(
        name,
        found.a[at][fitted],
        group[fitted],
        back[fitted],
        found.naming,
        behind[_pair(row, dims)] if dims > 1 else None,
        coloured,
    )
    subsets, more_subsets = (
        _subset_rows(mine, groups) if groups > 1 and isinstance(row.get("groups_column"), str) else ([], 0)
    )
    little = mine[store.truths(mine["adds_little"])]
    table = found.missingness[found.missingness["benchmark"].astype(str) == name]
    return template.render(
        found=found,
        style=page.style(),
        trial=is_trial(found.stability),
        name=name,
        row=row,
        measures=measures(row, found.naming),
        worth=worth(row),
        idle=idle(row),
        own=own_share(row),
        picture=_picture(figure, found, name),
        caption=_caption(found, row, coloured),
        unstable=story.unstable(found),
        few=found.models < MIN_MODELS,
        abilities=_abilities(row, found.naming),
        grouping=grouping(row),
        groups=_group_rows(found, name),
        declared=_declared_rows(found, name),
        column=_COLUMNS.get(str(row.get("groups_column")), str(row.get("groups_column"))),
        subsets=subsets,
        more_subsets=more_subsets,
        against=_against(mine),
        suspects=int(mine["backwards_p"].lt(SUSPECT).fillna(False).sum()),
        little=[str(one) for one in little["question_id"]],
        ceiling=[str(one) for one in mine.loc[mine["extreme"] == "ceiling", "question_id"]],
        floor=[str(one) for one in mine.loc[mine["extreme"] == "floor", "question_id"]],
        most=MOST_LISTED,
        missing=_missing(row),
        missingness=card.missingness({"missingness": json.loads(table.to_json(orient="records"))}),
        short=_short(mine),
        command=tables.command(found, f"report/{benchmark_page(name)}".rpartition("/")[0]),
    )


def write(found: Profiled, folder: Path) -> list[Path]:
    """Write the pages of all benchmarks; the folder is whole or as it was."""
    dims = found.naming.dims
    names = [str(name) for name in found.benchmarks["benchmark"]]
    behind: dict[tuple[int, int], drawing.Outline] = {}
    if dims > 1:
        every = found.a[np.isfinite(found.a).all(axis=1)]
        for pair in dict.fromkeys(_pair(row, dims) for row in _rows(found)):
            behind[pair] = drawing.outline(every, found.naming, pair)
    template = page.environment().get_template("profile.html")
    files = [benchmark_page(name).rpartition("/")[2] for name in names]
    with atomic_folder(folder) as temporary:
        for name, file in zip(names, files, strict=True):
            (temporary / file).write_text(
                render(found, name, behind, template), encoding="utf-8", newline="\n"
            )
    return [folder / file for file in files]
