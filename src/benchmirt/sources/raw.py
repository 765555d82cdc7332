"""Raw results, a folder per model: read by a format's reader, graded by rules, written as shards.

What every format shares: rows are graded rule by rule; repeats of a question (epochs, trials) become one outcome as
their rule says, and are refused if it does not say; other rows that repeat an item must agree; the facts of an
item are put together from the first rows about it.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import outcomes, rescoring, scoring
from benchmirt.config import FILES, Source, Study
from benchmirt.errors import InputError, nearest
from benchmirt.ids import code_point, natural, unseen
from benchmirt.outcomes import ITEM_FACTS, ITEM_ORIGINS, REASONS, Asked, OneModel, differ
from benchmirt.progress import progress
from benchmirt.scoring import Part, Rule, Scorer, Table
from benchmirt.sources.facts import Facts, model_facts, strings
from benchmirt.sources.folders import Batch, jobs_of, model_folders
from benchmirt.sources.reading import read_sheet
from benchmirt.sources.repeats import Repeated, reduce

__all__ = [
    "Found",
    "Gathered",
    "Items",
    "check_simulated",
    "collect",
    "manifest_of",
    "rules",
    "tell_idle",
    "write",
]

_log = logging.getLogger(__name__)
_DOCUMENT = "doc."  # the fields that a doc_hash is about
_CONFLICT = REASONS.index("conflict") + 1


@dataclass(frozen=True)
class Found:
    """What a reader found of one model.

    Attributes
    ----------
    tables
        The rows, task by task.
    files
        File relative to the model's folder -> SHA-256.
    unused
        Tasks that no rule scores.
    runs
        Task -> run, where it is not the one called ``latest``.
    known_as
        Field that is the same for rows whose content is the same, if the format has one.
    failures_known
        Whether the format tells a failure from a wrong answer.
    way_out
        What to do where no row is scored, if that is something special.
    formats
        Formats of the files, where they are told by content.
    named
        Whether a file names the model, or the layout does.
    overlooked
        Files that were not looked at, though they may be meant.
    """

    tables: Sequence[Table]
    files: Mapping[str, str]
    unused: Sequence[str]
    runs: Mapping[str, str]
    known_as: str | None
    failures_known: bool = True
    way_out: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    named: bool = True
    overlooked: tuple[str, ...] = ()


Read = Callable[[Path, str, str, Scorer], Found]


class Items:
    """The items met so far, and what the first rows about each tell of it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Asked | None], tuple[int, Mapping[str, str], int | None, list[Any]]] = {}
        self._content: dict[tuple[int, str, str, str], Asked | None] = {}
        self._rules: dict[int, Rule] = {}
        self._benchmark: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def shared(self, names: Iterable[str]) -> list[str]:
        """Return names, each the object that other models have too: a job holds the names of all its models' rows."""
        return [self._names.setdefault(name, name) for name in names]

    def content_of(self, part: Part, known_as: str | None) -> list[Asked | None]:
        """Return the hashes of what was asked; looked up where the format's own hash was met before."""
        marks = part.column(known_as) if known_as else None
        if marks is None or not all(isinstance(mark, str) for mark in marks):
            return part.rule.content_of(part)
        answers = _answers_beside(part)
        keys = [
            (part.number, part.table.task, mark, answer) for mark, answer in zip(marks, answers, strict=True)
        ]
        if not all(key in self._content for key in keys):
            self._content.update(zip(keys, part.rule.content_of(part), strict=True))
        return [self._content[key] for key in keys]

    def add(self, part: Part, names: Sequence[str], content: Sequence[Asked | None]) -> None:
        """Remember the facts of items that are new.

        Raises
        ------
        InputError
            If two rules give items of different benchmarks one name.
        """
        self._rules[part.number] = part.rule
        self._check_benchmark(part, names)
        fresh = [place for place, key in enumerate(zip(names, content, strict=True)) if key not in self._rows]
        if not fresh:
            return
        columns = [part.column(field) or [None] * part.size for field in part.rule.facts]
        options = part.options()
        for place in fresh:
            name = names[place]
            told = [column[place] for column in columns]
            self._rows.setdefault((name, content[place]), (part.number, part.names, options[place], told))

    def _check_benchmark(self, part: Part, names: Sequence[str]) -> None:
        """Stop at a name that an item of another benchmark has, and at a benchmark that cannot be seen."""
        benchmark = part.benchmark
        odd = unseen(benchmark)
        if odd is not None:
            raise InputError(
                "the name of the benchmark holds a character that cannot be seen",
                file=part.table.file,
                found=f'{code_point(odd)}, in "{benchmark}"',
                todo="Correct it, or name the benchmark in a scoring rule",
            )
        for name in names:
            if self._benchmark.setdefault(name, benchmark) != benchmark:
                raise InputError(
                    "items of two benchmarks have one name",
                    file=part.table.file,
                    found=f'"{name}" in {self._benchmark[name]} and in {benchmark}',
                    todo="Give them names apart in the scoring rules (question_id)",
                )

    def table(self) -> pd.DataFrame:
        """Return the facts of all items, sorted by benchmark and name."""
        by_rule: dict[int, list[tuple[str, Asked | None]]] = {}
        for key, row in self._rows.items():
            by_rule.setdefault(row[0], []).append(key)
        parts = []
        for number, keys in by_rule.items():
            rule, rows = self._rules[number], [self._rows[key] for key in keys]
            told = {field: [row[3][place] for row in rows] for place, field in enumerate(rule.facts)}

            def column(
                field: str,
                told: Mapping[str, list[Any]] = told,
                rows: Sequence[tuple[int, Mapping[str, str], int | None, list[Any]]] = rows,
            ) -> list[Any] | None:
                return told[field] if field in told else [row[1].get(field) for row in rows]

            frame = {
                "question_id": strings(name for name, _ in keys),
                "benchmark": strings(_storable(rule.benchmark_of(row[1])) for row in rows),
                "category": strings([rule.category] * len(keys)),
                **{
                    name: strings(map(_storable, template(column, len(keys))))
                    for name, template in rule.templates.items()
                },
                "options": pd.array([row[2] for row in rows], dtype="Int16"),
                "inverted": np.full(len(keys), rule.inverted),
                "content_hash": strings(asked and asked.content for _, asked in keys),
                "scored_as": strings([rule.scored_as] * len(keys)),
                "stem_hash": strings(asked and asked.stem for _, asked in keys),
                "question_hash": strings(asked and asked.question for _, asked in keys),
                "key_hash": strings(asked and asked.key for _, asked in keys),
                "hashed_from": strings(rule.hashed_from if asked else None for _, asked in keys),
                "scorer": strings([rescoring.scorer_of(rule)] * len(keys)),
            }
            missing = {name: strings([None] * len(keys)) for name in ITEM_FACTS if name not in frame}
            parts.append(pd.DataFrame({**frame, **missing})[[*ITEM_FACTS, *ITEM_ORIGINS]])
        table = pd.concat(parts, ignore_index=True)
        sorted_by = zip(
            table["benchmark"].tolist(),
            map(natural, table["question_id"].tolist()),
            map(str, table["content_hash"].tolist()),
            strict=True,
        )
        order = [place for place, _ in sorted(enumerate(sorted_by), key=lambda one: one[1])]
        table = table.iloc[order].reset_index(drop=True)
        for name in ("row", "fact_row"):
            table[name] = pd.array([None] * len(table), dtype="Int64")
        return table


def _answers_beside(part: Part) -> list[str]:
    """Return the right answers that stand beside the document, of which a format's own hash knows nothing."""
    key = part.rule.key
    inside = key is None or key.startswith(_DOCUMENT)
    answers = None if inside or key is None else part.column(key)
    return [""] * part.size if answers is None else [_written(answer) for answer in answers]


def _written(value: Any) -> str:
    """Return a value as a text that tells it from others."""
    try:
        return repr(value)
    except RecursionError:  # nested almost too deeply to be read
        return ""


def _storable(text: str | None) -> str | None:
    """Return a text without halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


# -- one model ----------------------------------------------------------------------------------------------


class Gathered:
    """The graded rows of one model, table by table.

    Parameters
    ----------
    model
        Its name.
    scorer
        The rules.
    items
        The items met so far, of all models.
    repeated_rows
        What becomes of rows that repeat an item and disagree: ``conflict`` or ``first``.
    way_out
        What to do where no row is scored.
    """

    def __init__(
        self,
        model: str,
        scorer: Scorer,
        items: Items,
        repeated_rows: str,
        way_out: str = "Fetch its results again, or name it in models.exclude",
    ) -> None:
        self.model = model
        self._repeated_rows = repeated_rows
        self._way_out = way_out
        self._scorer = scorer
        self._items = items
        self._rows: list[Repeated] = []
        self._benchmarks: list[str] = []
        self._tasks: dict[str, int] = {}
        self._counts = {"rows": 0, "left_out": 0, "repeated": 0}
        self._conflicts: list[dict[str, Any]] = []
        self._rescored: list[dict[str, Any]] = []
        self._left_out: list[str] = []
        self._unreadable = 0

    def add(self, table: Table, known_as: str | None) -> None:
        """Grade the rows of a table.

        Parameters
        ----------
        table
            The rows.
        known_as
            Field that is the same for rows whose content is the same, if the format has one.

        Raises
        ------
        InputError
            If a row cannot be told which item it is about, or there are repeats without a rule for them.
        """
        task = _storable(table.task) or ""
        self._tasks[task] = self._tasks.get(task, 0) + table.size
        self._counts["rows"] += table.size
        self._counts["left_out"] += table.size
        before = self._counts["left_out"]
        for part in self._scorer.parts(table):
            names = self._items.shared(part.question_ids())
            _check_names(names, part)
            content = self._items.content_of(part, known_as)
            self._items.add(part, names, content)
            self._counts["left_out"] -= len(names)
            grades = part.rule.grade(part)
            self._unreadable += grades.unreadable
            if part.rule.rescore is not None:
                grades, counts = rescoring.again(part, grades)
                self._rescored.append(
                    {"benchmark": part.benchmark, "scorer": rescoring.scorer_of(part.rule), "counts": counts}
                )
            reduced = reduce(part, names, content, grades)
            self._counts["repeated"] += reduced.repeats + reduced.twice
            if reduced.repeats:
                self._conflicts.append(
                    _told("repeats", part.benchmark, reduced.repeats, f"one outcome ({part.rule.repeats})")
                )
            if reduced.twice:
                self._conflicts.append(
                    _told("repeated rows", part.benchmark, reduced.twice, "each repeat counted once")
                )
            self._rows.append(reduced)
            self._benchmarks += [part.benchmark] * len(reduced.names)
        if table.size and self._counts["left_out"] == before:
            self._left_out.append(task)

    def finish(
        self,
        shown: str,
        files: Mapping[str, Mapping[str, str]],
        unused: Sequence[str],
        runs: Mapping[str, str],
        manifest: Mapping[str, Any],
    ) -> OneModel:
        """Settle rows that repeat an item, and return the outcomes.

        Parameters
        ----------
        shown
            What messages call the model's folder or file.
        files
            Its files: name -> path and SHA-256.
        unused
            Tasks that no rule scores.
        runs
            Task -> run, where that is worth telling.
        manifest
            What all models of the source share.

        Raises
        ------
        InputError
            If no row is scored.
        """
        names = [name for rows in self._rows for name in rows.names]
        if not names:
            told, out = (
                ", ".join(ascii(task)[1:-1] for task in some[:5]) for some in (unused, self._left_out)
            )
            raise InputError(
                "this model has no row that a scoring rule scores",
                file=shown,
                found=f"{self._counts['rows']} rows"
                + (f"; tasks without a rule: {told}" if told else "")
                + (f"; tasks of which rules leave out every row: {out}" if out else "")
                + "".join(
                    f'; a run of {ascii(task)[1:-1]} called "{run}"' for task, run in [*runs.items()][:3]
                ),
                todo=self._way_out,
            )
        content = [asked for rows in self._rows for asked in rows.content]
        outcome = np.concatenate([rows.grades.outcome for rows in self._rows])
        published = np.concatenate([rows.grades.published for rows in self._rows])
        reason = np.concatenate([rows.grades.reason for rows in self._rows])
        score = np.concatenate([rows.grades.score for rows in self._rows])
        keep = np.arange(len(names))
        if len(set(names)) < len(names):
            keep, conflicts = _settle(
                names, self._benchmarks, content, outcome, published, reason, self._repeated_rows
            )
            self._counts["repeated"] += len(names) - len(keep)
            self._conflicts += conflicts
        return OneModel(
            model=self.model,
            items=tuple(names[place] for place in keep),
            outcome=outcome[keep],
            published=published[keep],
            reason=reason[keep],
            score=score[keep],
            content=[asked and asked.content for asked in map(content.__getitem__, keep)],
            manifest={
                **manifest,
                "folder": shown,
                "files": dict(files),
                "tasks": self._tasks,
                "tasks_without_rule": sorted({_storable(task) or "" for task in unused}),
                "runs": dict(runs),
                "read": self._counts,
                "content_known": sum(content[place] is not None for place in keep),
                "conflicts": self._conflicts,
                "rescored": self._rescored,
                "tasks_left_out": sorted({*self._left_out}),
                "unreadable": self._unreadable,
            },
        )


def _check_names(names: Sequence[str], part: Part) -> None:
    """Stop at a name that UTF-8 cannot hold, that holds what cannot be seen, or that begins or ends with a space."""
    try:
        "\0".join(names).encode("utf-8")
    except UnicodeEncodeError:
        place = next(place for place, name in enumerate(names) if _storable(name) != name)
        row = place if part.rows is None else part.rows[place]
        raise InputError(
            "the name of the item cannot be written as UTF-8",
            file=part.table.file,
            where=part.table.where(row, part.rule.question_id.fields[0]),
            found=ascii(names[place]),
        ) from None
    for place, name in enumerate(names):
        odd = unseen(name)
        if odd is not None or name != name.strip():
            row = place if part.rows is None else part.rows[place]
            raise InputError(
                "the name of the item begins or ends with a space"
                if odd is None
                else "the name of the item holds a character that cannot be seen",
                file=part.table.file,
                where=part.table.where(row, part.rule.question_id.fields[0]),
                found=f'"{name}"' if odd is None else f'{code_point(odd)}, in "{name}"',
                todo="Name the item by another field in a scoring rule (question_id)",
            )


def _told(
    kind: str, benchmark: str, outcomes: int, done: str, question_id: str | None = None
) -> dict[str, Any]:
    """Return an entry of the manifest's list of conflicts; without a question it counts several."""
    return {
        "kind": kind,
        "benchmark": benchmark,
        "question_id": question_id,
        "outcomes": outcomes,
        "done": done,
    }


def _settle(
    names: Sequence[str],
    benchmarks: Sequence[str],
    content: Sequence[Asked | None],
    outcome: NDArray[np.int8],
    published: NDArray[np.int8],
    reason: NDArray[np.uint8],
    policy: str,
) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """Settle rows that repeat an item, in place; return which rows stand for the items, and what was found.

    Rows with one outcome stand for it, whatever grading failed beside it. Rows with different outcomes, or
    about different questions of one name, are a conflict, and that is missing under both policies; or, if
    `policy` is ``first``, the first of them counts as it is.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    keep = np.empty(len(places), dtype=np.int64)
    found: list[dict[str, Any]] = []
    agreed: dict[str, int] = {}
    for number, (name, group) in enumerate(places.items()):
        seen = [place for place in group if outcome[place] >= 0]
        keep[number] = chosen = seen[0] if seen else group[0]
        if len(group) == 1:
            continue
        benchmark = benchmarks[chosen]
        if len({int(outcome[place]) for place in seen}) < 2 and not differ(content[place] for place in group):
            agreed[benchmark] = agreed.get(benchmark, 0) + len(group) - 1
        elif policy == "first":
            keep[number] = group[0]
            found.append(_told("repeated rows", benchmark, len(group), "the first row counts", name))
        else:
            outcome[chosen] = published[chosen] = -1
            reason[chosen] = _CONFLICT
            found.append(_told("repeated rows", benchmark, len(group), "missing", name))
    found += [
        _told("repeated rows", name, count, "counted once: they agree") for name, count in agreed.items()
    ]
    return keep, found


# -- a batch ------------------------------------------------------------------------------------------------


def _models(source: Source, study: Study, names: Sequence[str]) -> pd.DataFrame:
    """Return the facts of models; one that the file does not name has none."""
    shown = source.options["models"]
    columns = source.options["model_columns"]
    key = columns.get("model", "model")
    sheet = read_sheet(study.resource(shown), shown, key)
    own = sheet.column(key)
    first: dict[str, int] = {}
    twice = next((name for place, name in enumerate(own) if first.setdefault(name, place) != place), None)
    if twice is not None:
        raise InputError(
            "a model has two rows",
            file=shown,
            where=f'row {sheet.numbers[len(own) - 1 - own[::-1].index(twice)]}, column "{key}"',
            found=f'"{twice}"',
            todo="Drop one of the two rows",
        )
    known = set(own)
    strange = [name for name in names if name not in known]
    if strange:
        near = nearest(strange[0], own) if len(own) < 10_000 else None
        _log.warning(
            "%s: %d of %d models have no row, so each is a lineage of its own: %s%s",
            shown,
            len(strange),
            len(names),
            ", ".join(strange[:5]) + (", ..." if len(strange) > 5 else ""),
            f' (the nearest to the first is "{near}")' if near else "",
        )
    place = f"sources ({source.name}).model_columns"
    return model_facts(Facts(sheet, key, names, [0] * len(names), shown, columns, place), names)


def rules(source: Source, study: Study, kinds: Sequence[str]) -> Scorer:
    """Return the scoring rules of a source whose files have one of some formats.

    Raises
    ------
    InputError
        If a file of rules is missing or wrong.
    """
    files = [(study.resource(path), path) for path in source.options["scoring"]]
    return scoring.load(files, kinds, study.root)


def manifest_of(source: Source, scorer: Scorer) -> dict[str, Any]:
    """Return what the manifests of all models of a source hold."""
    return {
        "source": source.name,
        "kind": source.kind,
        "scorer": ", ".join(scorer.files),
        "scorer_version": scorer.version,
        "benchmirt": version("benchmirt"),
    }


def check_simulated(files: Iterable[str], shown: str, study: Study) -> bool:
    """Say whether files are simulated, which their names tell.

    Raises
    ------
    InputError
        If they are, and the study does not say so.
    """
    made = [name for name in files if name.rpartition("/")[2].startswith("simulated_")]
    if made and not study.simulated:
        raise InputError(
            "these files are simulated, but nothing would say so",
            file=shown,
            found=made[0],
            todo='Put them into a folder whose name holds "simulated"',
        )
    return bool(made)


def _lacking(models: Sequence[OneModel]) -> dict[str, list[str]]:
    """Return the tasks that other models have and a model has not; configurations of one task are one (``task:config``)."""
    own = {one.model: {task.partition(":")[0] for task in one.manifest["tasks"]} for one in models}
    every = set().union(*own.values())
    return {model: sorted(every - tasks) for model, tasks in own.items() if every - tasks}


def _tell(source: str, models: Sequence[OneModel], items: int) -> None:
    """Log what was found, and what was left aside."""
    missing: dict[str, int] = {}
    unused: dict[str, int] = {}
    for one in models:
        for number, reason in enumerate(REASONS, start=1):
            missing[reason] = missing.get(reason, 0) + int((one.reason == number).sum())
        for task in one.manifest["tasks_without_rule"]:
            unused[task] = unused.get(task, 0) + 1
    observed = sum(int((one.outcome >= 0).sum()) for one in models)
    why = ", ".join(f"{reason} {number}" for reason, number in missing.items() if number)
    _log.info(
        "%s: %d models, %d items; %d outcomes, missing: %s",
        source,
        len(models),
        items,
        observed,
        why or "none",
    )
    graded = missing["no_threshold"]
    if graded:
        _log.warning(
            "%s: %d outcomes are missing since their grade is neither 0 nor 1, or others of the task are above 1; a scoring "
            "rule may have a threshold (at_least)",
            source,
            graded,
        )
    unreadable = sum(one.manifest["unreadable"] for one in models)
    if unreadable:
        _log.warning(
            "%s: %d outcomes are missing since their grade is a text or another value that no rule explains; a scoring rule "
            "may say what it stands for (values, or is with else)",
            source,
            unreadable,
        )
    _tell_unread(source, models)
    known = sum(one.manifest["content_known"] for one in models)
    total = sum(len(one.items) for one in models)
    if known < total:
        _log.warning(
            "%s: %d of %d rows do not tell what was asked, so that they are joined by the question's name alone",
            source,
            total - known,
            total,
        )
    gaps = _lacking(models)
    if gaps:
        _log.warning(
            "%s: %d of %d models lack tasks that others have, so that these are missing: %s",
            source,
            len(gaps),
            len(models),
            "; ".join(f"{model}: {', '.join(tasks[:5])}" for model, tasks in [*gaps.items()][:5])
            + ("; ..." if len(gaps) > 5 else ""),
        )
    if unused:
        _log.info(
            "%s: tasks without a scoring rule: %s",
            source,
            ", ".join(
                f"{task} ({number} of {len(models)} models)" for task, number in sorted(unused.items())
            ),
        )


def _tell_unread(source: str, models: Sequence[OneModel]) -> None:
    """Warn of tasks and files of which nothing is used, and of folders that may be those of several models."""
    left_out: dict[str, int] = {}
    for one in models:
        for task in one.manifest["tasks_left_out"]:
            left_out[task] = left_out.get(task, 0) + 1
    if left_out:
        _log.warning(
            "%s: the rules leave out every row of some tasks (left_out, only, where), so that they have no outcome: %s",
            source,
            ", ".join(
                f"{task} ({number} of {len(models)} models)" for task, number in sorted(left_out.items())
            ),
        )
    names = sorted({name for one in models for name in one.manifest["overlooked"]})
    if names:
        _log.warning(
            "%s: %d files are not looked at, since their names end in another way than those of results: %s; unpack or "
            "rename them if they are meant",
            source,
            len(names),
            ", ".join(names[:3]) + (", ..." if len(names) > 3 else ""),
        )
    apart = {one.model: inside for one in models if len(inside := _folders_of(one)) > 1}
    if apart:
        model, inside = next(iter(apart.items()))
        _log.warning(
            "%s: the files of %d models lie in several folders and do not name their model, such as those of %s in %s; if "
            "each of these is a model, name the folder of these folders in folder:",
            source,
            len(apart),
            model,
            ", ".join(inside[:3]) + (", ..." if len(inside) > 3 else ""),
        )


def _folders_of(one: OneModel) -> list[str]:
    """Return the folders in a model's folder in which its files lie, if all lie in some and none names its model."""
    if one.manifest["named"]:
        return []
    inside = {name.rpartition("/")[0].partition("/")[0] for name in one.manifest["files"]}
    return [] if "" in inside else sorted(inside)


def tell_idle(source: str, scorer: Scorer, models: Iterable[OneModel]) -> None:
    """Warn of rules of the user that score nothing: a misspelt task would be scored by the ordinary rules in silence."""
    tasks = {task for one in models for task in (*one.manifest["tasks"], *one.manifest["tasks_without_rule"])}
    for rule in scorer.idle(tasks):
        _log.warning(
            '%s: the rule for "%s" in %s scores nothing here: no task is called %s; there are %s',
            source,
            rule.benchmark,
            rule.file,
            rule.tasks,
            ", ".join(sorted(tasks)[:8]) + (", ..." if len(tasks) > 8 else ""),
        )


def collect(source: Source, study: Study, out_dir: str | Path, batch: Batch) -> list[Path]:
    """Collect some models of a raw source.

    Parameters
    ----------
    source
        A source with a folder per model: a kind in :data:`benchmirt.config.RAW` or :data:`benchmirt.config.FILES`.
    study
        The study; paths are relative to its base.
    out_dir
        The folder of the source's outcomes; the job has a folder of its own in it.
    batch
        One of :func:`benchmirt.sources.plan`.

    Raises
    ------
    InputError
        If a file is damaged or is not what it should be; it names the file and the place.
    """
    read, kinds = _reader(source.kind)
    scorer = rules(source, study, kinds)
    home = source.files(study.results)["folder"]
    folders = model_folders(source, study)
    items = Items()
    done: dict[str, OneModel] = {}
    for model in progress(batch.models, len(batch.models), f"{source.name}: models"):
        folder = folders[model]
        shown = f"{home}/{folder}"
        found = read(study.base / home / folder, model, shown, scorer)
        simulated = check_simulated(found.files, shown, study)
        gathered = Gathered(model, scorer, items, study.joining["repeated_rows"], *found.way_out)
        for table in found.tables:
            gathered.add(table, found.known_as)
        files = {name: {"path": f"{shown}/{name}", "sha256": digest} for name, digest in found.files.items()}
        own = {
            "failures_known": found.failures_known,
            "simulated": simulated,
            "formats": found.formats or (source.kind,),
            "named": found.named,
            "overlooked": found.overlooked,
        }
        done[model] = gathered.finish(
            shown, files, found.unused, found.runs, {**manifest_of(source, scorer), **own}
        )
    tell_idle(source.name, scorer, done.values())
    shards = {
        shard: [done[model] for model in members]
        for shard, members in jobs_of(source, list(folders))[batch.name].items()
    }
    return write(source, study, shards, items, Path(out_dir) / batch.name)


def _reader(kind: str) -> tuple[Read, Sequence[str]]:
    """Return what reads the folder of one model, and the formats that its files may have."""
    if kind in FILES:
        files = importlib.import_module("benchmirt.sources.files")
        return functools.partial(files.read, kind=kind), files.kinds(kind)
    read: Read = importlib.import_module(f"benchmirt.sources.{kind.replace('-', '_')}").read
    return read, (kind,)


def write(
    source: Source, study: Study, shards: Mapping[str, Sequence[OneModel]], items: Items, folder: Path
) -> list[Path]:
    """Write the outcomes of some models of a source, and say in the log what was found.

    Parameters
    ----------
    source, study
        The source, and the study.
    shards
        Name of a shard -> its models.
    items
        The items of all of them.
    folder
        The folder of the files.

    Raises
    ------
    InputError
        If the file with facts of models is wrong.
    """
    facts = items.table()
    models = [one for members in shards.values() for one in members]
    _tell(source.name, models, facts["question_id"].nunique())
    return outcomes.write_models(
        shards, facts, _models(source, study, sorted(one.model for one in models)), folder
    )
