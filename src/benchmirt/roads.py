"""Two roads to one matrix: the published outcomes and those graded from raw files, compared cell by cell.

Nothing here changes a matrix or settles anything: what differs is listed, kind by kind, and the reader judges.

Items are matched by ``question_id``, those that are left by ``content_hash`` where just one item of either road has it.
Models are matched by name, where ``org/model`` is ``org__model``. A cell of the raw road is 1, 0, or missing for a
reason; what the published study's rule made of such a failure stands beside it (``counted``), since the published
matrix cannot tell a failure from a 0.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import matrix
from benchmirt.config import ROAD_FILES, UNTOLD, Study
from benchmirt.errors import InputError
from benchmirt.files import write_csv, write_json
from benchmirt.ids import natural
from benchmirt.outcomes import REASONS
from benchmirt.sources import table

__all__ = ["CELLS", "COLUMNS", "LISTED", "Compared", "Road", "compare", "write"]

_log = logging.getLogger(__name__)

COLUMNS = (
    *("kind", "benchmark", "question_id", "raw_id", "matched", "model"),
    *("published", "raw", "reason", "counted"),
)
"""Columns of the disagreements.

``raw_id`` is the item's name on the raw road and ``question_id`` that on the published one (on the raw one, if it is there
alone); ``matched``: how the item was matched; ``reason``: why the raw outcome is missing; ``counted``: what the published
study's rule made of it.
"""

LISTED = (
    "item only in published",
    "item only in raw",
    "one name, other content",
    "model only in published",
    "model only in raw",
    "model in neither",
)
"""Kinds of disagreements about items and models, a row each."""

CELLS = (
    "published 1, raw 0",
    "published 0, raw 1",
    "published 0, raw missing",
    "published 1, raw missing",
    "published missing, raw 0",
    "published missing, raw 1",
)
"""Kinds of disagreements about a cell, a row each."""

_PAIRS = {(1, 0): 0, (0, 1): 1, (0, -1): 2, (1, -1): 3, (-1, 0): 4, (-1, 1): 5}
_CODES = np.array([[_PAIRS.get((one, other), -1) for other in (-1, 0, 1)] for one in (-1, 0, 1)])
_BY_NAME, _BY_CONTENT = "question_id", "content hash"
_AT_ONCE = 20_000_000  # cells


@dataclass(frozen=True)
class Road:
    """The outcomes of one road: J items, N models.

    Attributes
    ----------
    items
        A row per item: ``question_id``, ``benchmark``, ``content_hash`` (missing where it is not known).
    models
        Their names.
    outcome
        int8 of shape (J, N): 1, 0, or -1 where missing.
    reason
        uint8 of shape (J, N): 0 where there is an outcome, else 1 + the place in :data:`benchmirt.outcomes.REASONS`.
    counted
        int8 of shape (J, N): the outcomes where a failure counts as in the published study.
    """

    items: pd.DataFrame
    models: Sequence[str]
    outcome: NDArray[np.int8]
    reason: NDArray[np.uint8]
    counted: NDArray[np.int8]


@dataclass(frozen=True)
class Compared:
    """What a comparison found.

    Attributes
    ----------
    disagreements
        A row of :data:`COLUMNS` for everything that differs.
    items
        A row per item: its name on either road, how it was matched, whether its content is the same.
    benchmarks, models
        Counts by benchmark (the first row: all of them) and by model.
    missing
        Counts of outcomes that the raw road lacks, by benchmark, kind and reason.
    """

    disagreements: pd.DataFrame
    items: pd.DataFrame
    benchmarks: pd.DataFrame
    models: pd.DataFrame
    missing: pd.DataFrame


# -- items and models ---------------------------------------------------------------------------------------


def _places(names: Sequence[Any]) -> dict[str, int]:
    """Return the place of each text that is met once; a text that is missing or met twice has none."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for place, name in enumerate(names):
        if isinstance(name, str) and found.setdefault(name, place) != place:
            twice.add(name)
    return {name: place for name, place in found.items() if name not in twice}


def _matched(published: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Match the items of two roads.

    Returns
    -------
    DataFrame
        A row per item of either road: ``published_place`` and ``raw_place`` (-1: not there), ``matched``.
    """
    there, here = _places(list(published["question_id"])), _places(list(raw["question_id"]))
    pairs = [(place, here[name], _BY_NAME) for name, place in there.items() if name in here]
    left = [place for name, place in there.items() if name not in here]
    spare = [place for name, place in here.items() if name not in there]
    hashes = [list(road["content_hash"].astype(object)) for road in (published, raw)]
    by_content = _places([hashes[1][place] for place in spare])
    for text, number in _places([hashes[0][place] for place in left]).items():
        if text in by_content:
            pairs.append((left[number], spare[by_content[text]], _BY_CONTENT))
    done = {place for place, _, _ in pairs}, {place for _, place, _ in pairs}
    pairs += [(place, -1, "") for place in left if place not in done[0]]
    pairs += [(-1, place, "") for place in spare if place not in done[1]]
    return pd.DataFrame(pairs, columns=["published_place", "raw_place", "matched"])


def _content(pairs: pd.DataFrame, published: pd.DataFrame, raw: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return whether both roads ask the same under one name, and which published item asks what the raw one does.

    Hashes may come from two recipes, so that they count in a benchmark only where the roads have one in common.
    """
    told: list[str] = []
    elsewhere: list[str] = []
    theirs = set(published["content_hash"].dropna())
    home = _places(list(published["content_hash"].astype(object)))
    met = raw["content_hash"].isin(theirs)
    comparable = set(raw.loc[met, "benchmark"])
    texts = [road["content_hash"].astype(object).tolist() for road in (published, raw)]
    benchmarks, names = raw["benchmark"].tolist(), published["question_id"].tolist()
    for there, here in zip(pairs["published_place"], pairs["raw_place"], strict=True):
        one = texts[0][there] if there >= 0 else None
        other = texts[1][here] if here >= 0 else None
        known = isinstance(one, str) and isinstance(other, str) and benchmarks[here] in comparable
        told.append(("same" if one == other else "other") if known else "not compared")
        away = home.get(other, there) if known and isinstance(other, str) else there
        elsewhere.append(names[away] if away != there else "")
    return told, elsewhere


def _item_table(published: Road, raw: Road) -> pd.DataFrame:
    """Return a row per item of either road, sorted by benchmark and name."""
    made = _matched(published.items, raw.items)
    made["content"], made["content_at"] = _content(made, published.items, raw.items)
    rows = {}
    for name, road in (("published", published), ("raw", raw)):
        own = road.items.reset_index(drop=True).reindex(made[f"{name}_place"].where(lambda one: one >= 0))
        rows[name] = own[["question_id", "benchmark"]].astype(object).reset_index(drop=True)
    made["published_id"], made["raw_id"] = (
        rows[name]["question_id"].fillna("") for name in ("published", "raw")
    )
    made["benchmark"] = rows["raw"]["benchmark"].fillna(rows["published"]["benchmark"]).fillna(UNTOLD)
    keys = zip(
        made["benchmark"],
        (natural(one or other) for one, other in zip(made["published_id"], made["raw_id"], strict=True)),
        strict=True,
    )
    order = [place for place, _ in sorted(enumerate(keys), key=lambda one: one[1])]
    return made.iloc[order].reset_index(drop=True)


def _plain(model: str) -> str:
    return model.replace("/", "__")


def _model_places(models: Sequence[str]) -> dict[str, int]:
    """Return the place of each model by its name as folders write it, or as it is where that would be two models' name."""
    plain = _places(list(map(_plain, models)))
    return {(_plain(name) if _plain(name) in plain else name): place for place, name in enumerate(models)}


def _model_table(published: Road, raw: Road) -> pd.DataFrame:
    """Return a row per model of either road, those of the raw one by its name: places on either road (-1: not there)."""
    there, here = _model_places(published.models), _model_places(raw.models)
    rows = [
        (
            raw.models[here[name]] if name in here else published.models[there[name]],
            there.get(name, -1),
            here.get(name, -1),
        )
        for name in sorted({*there, *here})
    ]
    return pd.DataFrame(rows, columns=["model", "published_place", "raw_place"])


# -- cells --------------------------------------------------------------------------------------------------


def compare(
    published: Road,
    raw: Road,
    items: Mapping[str, int] | None = None,
    models: Sequence[str] = (),
) -> Compared:
    """Compare two roads.

    Parameters
    ----------
    published, raw
        The roads.
    items
        Benchmark -> how many items it should have, for the table of benchmarks.
    models
        Models that should be there: one that neither road has is listed.

    Returns
    -------
    Compared
    """
    item_table, model_table = _item_table(published, raw), _model_table(published, raw)
    both = (item_table["published_place"] >= 0) & (item_table["raw_place"] >= 0)
    shared = (model_table["published_place"] >= 0) & (model_table["raw_place"] >= 0)
    pairs = item_table[both].reset_index(drop=True)
    columns = model_table[shared].reset_index(drop=True)
    codes, names = pd.factorize(pairs["benchmark"])
    by_benchmark = {name: np.zeros(len(names), dtype=np.int64) for name in _COUNTS}
    by_model = {name: np.zeros(len(columns), dtype=np.int64) for name in _COUNTS}
    reasons = np.zeros((len(names), len(CELLS), len(REASONS) + 1, 3), dtype=np.int64)
    rows = [_listed(item_table, model_table, models)]
    step = max(1, _AT_ONCE // max(1, len(columns)))
    for start in range(0, len(pairs), step):
        part = _Cells.of(published, raw, pairs.iloc[start : start + step], columns)
        own = codes[start : start + step]
        for name, where in part.counts():
            by_model[name] += where.sum(axis=0)
            np.add.at(by_benchmark[name], own, where.sum(axis=1))
        item, model = np.nonzero((part.kind >= 0) & (part.raw < 0))
        at = (own[item], part.kind[item, model], part.reason[item, model], part.counted[item, model] + 1)
        np.add.at(reasons, at, 1)
        rows.append(part.rows())
    return Compared(
        disagreements=pd.concat(rows, ignore_index=True),
        items=item_table[["benchmark", "published_id", "raw_id", "matched", "content", "content_at"]],
        benchmarks=_benchmark_table(item_table, list(names), by_benchmark, items or {}),
        models=_by_model(model_table, columns, by_model),
        missing=_missing_table(reasons, list(names)),
    )


_SNAKE = {kind: kind.replace(", ", "_").replace(" ", "_") for kind in CELLS}
_COUNTS = ("cells", "same", "same_as_counted", "both_missing", *_SNAKE.values())


@dataclass(frozen=True)
class _Cells:
    """Cells that both roads have, of some items (rows) and all models (columns)."""

    pairs: pd.DataFrame
    columns: pd.DataFrame
    published: NDArray[np.int8]
    raw: NDArray[np.int8]
    reason: NDArray[np.uint8]
    counted: NDArray[np.int8]
    kind: NDArray[np.int8]

    @classmethod
    def of(cls, published: Road, raw: Road, pairs: pd.DataFrame, columns: pd.DataFrame) -> _Cells:
        there = np.ix_(pairs["published_place"].to_numpy(), columns["published_place"].to_numpy())
        here = np.ix_(pairs["raw_place"].to_numpy(), columns["raw_place"].to_numpy())
        one, other = published.outcome[there], raw.outcome[here]
        kind = _CODES[one + 1, other + 1].astype(np.int8)
        return cls(pairs, columns, one, other, raw.reason[here], raw.counted[here], kind)

    def counts(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield each of the counts, and where it is met."""
        yield "cells", np.ones(self.kind.shape, dtype=bool)
        yield "same", (self.kind < 0) & (self.published >= 0)
        yield "same_as_counted", (self.published >= 0) & (self.published == self.counted)
        yield "both_missing", (self.kind < 0) & (self.published < 0)
        for number, kind in enumerate(CELLS):
            yield _SNAKE[kind], self.kind == number

    def rows(self) -> pd.DataFrame:
        """Return the disagreements, a row each."""
        item, model = np.nonzero(self.kind >= 0)
        where = item, model
        missing = self.raw[where] < 0
        why = np.array(["", *REASONS], dtype=object)
        own = self.pairs.iloc[item]
        shown = {name: pd.array(getattr(self, name)[where], dtype="Int8") for name in ("published", "raw")}
        counted = pd.array(self.counted[where], dtype="Int8")
        counted[~missing] = -1
        for one in (*shown.values(), counted):
            one[np.asarray(one == -1)] = pd.NA
        return pd.DataFrame(
            {
                "kind": np.array(CELLS, dtype=object)[self.kind[where]],
                "benchmark": own["benchmark"].to_numpy(),
                "question_id": own["published_id"].to_numpy(),
                "raw_id": own["raw_id"].to_numpy(),
                "matched": own["matched"].to_numpy(),
                "model": self.columns["model"].to_numpy()[model],
                **shown,
                "reason": np.where(missing, why[self.reason[where]], ""),
                "counted": counted,
            },
            columns=list(COLUMNS),
        )


# -- tables -------------------------------------------------------------------------------------------------


def _listed(items: pd.DataFrame, models: pd.DataFrame, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the disagreements about items and models, a row each."""
    kind = np.select(
        [items["raw_place"] < 0, items["published_place"] < 0, items["content"] == "other"],
        LISTED[:3],
        default="",
    )
    named = items.assign(
        kind=kind, question_id=items["published_id"].where(items["published_id"] != "", items["raw_id"])
    )
    rows: list[dict[str, Any]] = named.loc[
        kind != "", ["kind", "benchmark", "question_id", "raw_id", "matched"]
    ].to_dict("records")
    for name, there, here in zip(
        models["model"], models["published_place"], models["raw_place"], strict=True
    ):
        if there < 0 or here < 0:
            rows.append({"kind": f"model only in {'published' if here < 0 else 'raw'}", "model": name})
    met = set(map(_plain, models["model"]))
    rows += [{"kind": "model in neither", "model": name} for name in wanted if _plain(name) not in met]
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(object)
    for name in ("published", "raw", "counted"):
        frame[name] = pd.array([pd.NA] * len(frame), dtype="Int8")
    return frame.fillna({name: "" for name in COLUMNS if name not in ("published", "raw", "counted")})


def _benchmark_table(
    items: pd.DataFrame,
    names: Sequence[str],
    counts: Mapping[str, NDArray[np.int64]],
    wanted: Mapping[str, int],
) -> pd.DataFrame:
    """Return counts of items and cells by benchmark; the first row is about all."""
    order = [*wanted, *sorted(set(items["benchmark"]) - set(wanted))]
    rows = []
    for benchmark in order:
        own = items[items["benchmark"] == benchmark]
        place = names.index(benchmark) if benchmark in names else None
        there, here = own["published_place"] >= 0, own["raw_place"] >= 0
        rows.append(
            {
                "benchmark": benchmark,
                "expected_items": wanted.get(benchmark),
                "published_items": int(there.sum()),
                "raw_items": int(here.sum()),
                "matched_by_question_id": int((own["matched"] == _BY_NAME).sum()),
                "matched_by_content_hash": int((own["matched"] == _BY_CONTENT).sum()),
                "only_published": int((there & ~here).sum()),
                "only_raw": int((here & ~there).sum()),
                "other_content": int((own["content"] == "other").sum()),
                **{name: 0 if place is None else int(counts[name][place]) for name in _COUNTS},
            }
        )
    frame = pd.DataFrame(rows)
    whole = {"benchmark": "all", **frame.drop(columns="benchmark").sum(min_count=1).to_dict()}
    frame = pd.concat([pd.DataFrame([whole]), frame], ignore_index=True)
    numbers = [name for name in frame if name != "benchmark"]
    return frame.astype(dict.fromkeys(numbers, "Int64"))


def _by_model(
    models: pd.DataFrame, shared: pd.DataFrame, counts: Mapping[str, NDArray[np.int64]]
) -> pd.DataFrame:
    """Return counts of cells by model, and on which road each is."""
    where = np.select(
        [models["raw_place"] < 0, models["published_place"] < 0], ["published", "raw"], default="both"
    )
    made = pd.DataFrame({"model": models["model"], "roads": where})
    own = pd.DataFrame({"model": shared["model"], **{name: counts[name] for name in _COUNTS}})
    made = made.merge(own, on="model", how="left")
    return made.astype(dict.fromkeys(_COUNTS, "Int64")).fillna(dict.fromkeys(_COUNTS, 0))


def _missing_table(counts: NDArray[np.int64], benchmarks: Sequence[str]) -> pd.DataFrame:
    """Return how many outcomes the raw road lacks, by benchmark, kind and reason, and what they counted as."""
    rows = [
        {
            "benchmark": benchmarks[bench],
            "kind": CELLS[kind],
            "reason": ("", *REASONS)[reason],
            "cells": int(own.sum()),
            **{f"counted_{name}": int(own[place]) for place, name in ((1, "0"), (2, "1"), (0, "missing"))},
        }
        for (bench, kind, reason), own in (
            (place, counts[place]) for place in np.ndindex(counts.shape[:3]) if counts[place].any()
        )
    ]
    names = ["benchmark", "kind", "reason", "cells", "counted_0", "counted_1", "counted_missing"]
    return pd.DataFrame(rows, columns=names)


# -- a study ------------------------------------------------------------------------------------------------


def write(
    study: Study, outcome_files: Sequence[str | Path], counts: Path, roster: Path, out_dir: Path
) -> list[Path]:
    """Compare the published responses that a study names with the outcomes of its sources.

    Parameters
    ----------
    study
        The study; its ``published_responses`` names the table.
    outcome_files
        ``shard{n}.parquet`` files, or folders of them, as for :func:`benchmirt.matrix.build`.
    counts
        A table with ``benchmark`` and ``items``, its published number of items; used if the study says that its sources
        hold the published study complete (``published_size``).
    roster
        A table with ``model``, the published models; used likewise.
    out_dir
        Takes :data:`benchmirt.config.ROAD_FILES`.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If no published table is named or it cannot be read, or sources disagree.
    """
    source = study.published_road
    if source is None:
        raise InputError(
            "there are no published responses to compare with",
            where="published_responses",
            todo="Name them: published_responses: {responses: FILE}",
        )
    theirs = table.read(source, study)
    kept = [place for place, name in enumerate(theirs.models) if study.takes(_plain(name))]
    published = Road(
        items=theirs.item_facts,
        models=[theirs.models[place] for place in kept],
        outcome=theirs.outcome[:, kept],
        reason=theirs.reason[:, kept],
        counted=theirs.outcome[:, kept],
    )
    merged = matrix.merge(outcome_files, "published", study.joining)
    graded = np.where(merged.reasons > 0, np.int8(-1), merged.outcomes)
    raw = Road(merged.items, list(merged.models["model"]), graded, merged.reasons, merged.outcomes)
    wanted: dict[str, int] = {}
    models: list[str] = []
    if study.published_size:
        sizes = pd.read_csv(counts, dtype={"items": int})
        wanted = dict(zip(sizes["benchmark"], sizes["items"], strict=True))
        models = [name for name in pd.read_csv(roster, dtype=str)["model"] if study.takes(name)]
    found = compare(published, raw, wanted, models)
    paths = [out_dir / name for name in ROAD_FILES]
    tables = (found.disagreements, found.items, found.benchmarks, found.models, found.missing)
    for frame, path in zip(tables, paths, strict=False):
        write_csv(frame, path)
    summary = _summary(found, len(models) or None)
    summary["published"] = theirs.manifest["files"]
    summary["raw"] = [one["source"] for one in merged.sources]
    write_json(summary, paths[-1])
    _tell(summary)
    return paths


def _summary(found: Compared, models: int | None) -> dict[str, Any]:
    """Return the counts of kinds, benchmarks whose number of items is not the expected one, and the benchmarks' table."""
    kinds = found.disagreements["kind"].value_counts()
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in found.benchmarks.astype(object).to_dict("records")
    ]
    roads = found.models["roads"]
    return {
        "disagreements": {kind: int(kinds.get(kind, 0)) for kind in (*CELLS, *LISTED)},
        "models": {
            "expected": models,
            "published": int((roads != "raw").sum()),
            "raw": int((roads != "published").sum()),
            "both": int((roads == "both").sum()),
        },
        "unexpected_items": [
            {name: row[name] for name in ("benchmark", "expected_items", "published_items", "raw_items")}
            for row in rows
            if row["expected_items"] is not None
            and {row["published_items"], row["raw_items"]} != {row["expected_items"]}
        ],
        "benchmarks": rows,
    }


def _tell(summary: Mapping[str, Any]) -> None:
    """Log how far the roads agree."""
    every = summary["benchmarks"][0]
    _log.info("%d cells on both roads, %d the same", every["cells"], every["same"])
    for kind, number in summary["disagreements"].items():
        if number:
            _log.warning("%s: %d", kind, number)
    for row in summary["unexpected_items"]:
        _log.warning(
            "%s: %d items expected, %d published, %d raw",
            *(row[name] for name in ("benchmark", "expected_items", "published_items", "raw_items")),
        )
