"""The response matrix: all sources merged, one policy applied, items and models filtered.

Two policies. ``honest``: an outcome that could not be graded is missing. ``published``: such a failure counts
as in the published study, which is 0 for most benchmarks and 1 for WMDP; the outcome tables say so row by row.
Nothing is ever dropped from the tables: items and models that a filter leaves out have ``kept`` false and a
reason, and :func:`load` skips them.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import joining, missingness, outcomes, provenance
from benchmirt.config import Study
from benchmirt.errors import InputError, nearest
from benchmirt.files import sha256_bytes, write_csv, write_json, write_parquet
from benchmirt.ids import lookalike, natural, slug
from benchmirt.joining import KEEP, MISS, MOVE, Lookup, Plan
from benchmirt.outcomes import ITEM_FACTS, MODEL_FACTS, REASONS, Block
from benchmirt.sources.folders import all_models

if TYPE_CHECKING:
    import pandera.pandas as pandera

__all__ = [
    "POLICIES",
    "Merged",
    "ResponseData",
    "build",
    "coverage_schema",
    "from_arrays",
    "item_table_schema",
    "limits_of",
    "load",
    "merge",
    "model_table_schema",
    "select",
]

Policy = Literal["published", "honest"]
POLICIES: tuple[Policy, ...] = ("published", "honest")
_log = logging.getLogger(__name__)
_NOT_RUN, _CONFLICT, _EXCLUDED = (REASONS.index(reason) + 1 for reason in ("not_run", "conflict", "excluded"))
_APART = (
    "If the two are different questions, name them apart in one of the sources; if they are the same one, give both "
    "sources the same benchmark: NAME or the same benchmark in their items files"
)
_STATISTICS = {"observed": "int64", "mean": "float64", "kept": "bool", "drop_reason": "str"}
_ITEM_COLUMNS = {**ITEM_FACTS, **_STATISTICS}
_MODEL_COLUMNS = {
    "model": "str",
    "slug": "str",
    "canonical": "str",
    "publisher": "str",
    "family": "str",
    "lineage": "str",
    "lineage_evidence": "str",
    "size_b": "float64",
    "reasoning": "boolean",
    "released": "str",
    "notes": "str",
    **_STATISTICS,
}


@dataclass(frozen=True)
class ResponseData:
    """The responses of N models to J items, and what is needed to fit them.

    Attributes
    ----------
    responses
        int8 of shape (N, J): 1, 0, or -1 where missing.
    models, items
        Their names, in order.
    floor, ceiling
        float32 of shape (J,): lower and upper asymptote, 0 and 1 where there is none.
    lineage
        int64 of shape (N,): models with the same code are not independent of each other.
    testlet
        int64 of shape (J,): items with the same code share an effect on each model; -1 where there is none, or where none
        is to be modelled.
    item_table, model_table
        The rows of ``items.parquet`` and ``models.parquet`` in the same order.
    hash
        SHA-256 over all of the above except the tables' further columns.
    """

    responses: NDArray[np.int8]
    models: tuple[str, ...]
    items: tuple[str, ...]
    floor: NDArray[np.float32]
    ceiling: NDArray[np.float32]
    lineage: NDArray[np.int64]
    testlet: NDArray[np.int64]
    item_table: pd.DataFrame = field(repr=False)
    model_table: pd.DataFrame = field(repr=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for names in (self.models, self.items):
            digest.update("\0".join(names).encode())
            digest.update(b"\0\0")
        for array in (self.responses, self.floor, self.ceiling, self.lineage, self.testlet):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        object.__setattr__(self, "hash", digest.hexdigest())

    @property
    def testlets(self) -> int:
        """Number of testlets whose effects are to be modelled."""
        return int(self.testlet.max(initial=-1)) + 1


# -- contracts ----------------------------------------------------------------------------------------------


def _table_schema(columns: Mapping[str, str], required: Iterable[str], key: str) -> pandera.DataFrameSchema:
    import pandera.pandas as pandera

    never_null = {*required, "observed", "kept"}
    agree = pandera.Check(
        lambda frame: frame["kept"] == frame["drop_reason"].isna(),
        error="a row is kept or has a reason why not, and never both",
    )
    share = pandera.Check.in_range(0.0, 1.0)
    return pandera.DataFrameSchema(
        {
            name: pandera.Column(
                kind, share if name == "mean" else None, nullable=name not in never_null, unique=name == key
            )
            for name, kind in columns.items()
        },
        checks=agree,
        strict=True,
        ordered=True,
    )


@functools.cache
def item_table_schema() -> pandera.DataFrameSchema:
    """Return the contract of ``items.parquet``."""
    return _table_schema(_ITEM_COLUMNS, ("question_id", "benchmark", "inverted"), "question_id")


@functools.cache
def model_table_schema() -> pandera.DataFrameSchema:
    """Return the contract of ``models.parquet``."""
    required = ("model", "slug", "canonical", "lineage", "lineage_evidence")
    return _table_schema(_MODEL_COLUMNS, required, "model")


@functools.cache
def coverage_schema() -> pandera.DataFrameSchema:
    """Return the contract of ``coverage.csv``."""
    import pandera.pandas as pandera

    whole = pandera.Check.ge(0)
    adds_up = pandera.Check(
        lambda frame: (
            (frame["items"] == frame["observed"] + frame["missing"])
            & (frame["missing"] == frame[list(REASONS)].sum(axis=1))
        ),
        error="items are observed or missing for one reason",
    )
    counts = {name: pandera.Column("int64", whole) for name in ("items", "observed", "missing", *REASONS)}
    return pandera.DataFrameSchema(
        {
            "benchmark": pandera.Column(str),
            "model": pandera.Column(str),
            **counts,
            "mean": pandera.Column("float64", pandera.Check.in_range(0.0, 1.0), nullable=True),
        },
        checks=adds_up,
        unique=["benchmark", "model"],
        strict=True,
        ordered=True,
    )


# -- building -----------------------------------------------------------------------------------------------


@dataclass
class _Origin:
    """A source: its shards, and what is known of its items and models.

    Attributes
    ----------
    shards
        Files of outcomes.
    item_facts, model_facts
        A row per item and model.
    manifests
        One per model.
    """

    shards: list[Path]
    item_facts: pd.DataFrame
    model_facts: pd.DataFrame
    manifests: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """The name of the source."""
        return str(self.manifests[0]["source"]) if self.manifests else str(self.shards[0].parent.name)

    @property
    def is_table(self) -> bool:
        """Whether the source is a table, with rows for items and columns for models."""
        return not self.manifests or "folder" not in self.manifests[0]

    @functools.cached_property
    def _folders(self) -> dict[str | None, str]:
        """What messages call the outcomes of each model of raw files."""
        return {manifest["model"]: str(manifest["folder"]) for manifest in self.manifests}

    def file(self, role: str = "responses", model: str | None = None) -> str:
        """Return how messages call the file that gives the facts in `role`, or a model's outcomes."""
        if not self.is_table:
            return self._folders.get(model) or str(Path(self.manifests[0]["folder"]).parent)
        files = self.manifests[0]["files"] if self.manifests else {}
        chosen = files.get(role, files.get("responses"))
        return str(chosen["path"]) if chosen else str(self.shards[0])

    def place(self, item: str, model: str) -> str:
        """Return how messages call a cell."""
        if not self.is_table:
            return f'"{item}"'
        if self._layout["turned"]:
            return f'row of "{model}", column "{self._layout["prefix"]}{item}"'
        row = self.item_facts.loc[self.item_facts["question_id"] == item, "row"].iloc[0]
        return f'row {row}, column "{self._layout["prefix"]}{model}"'

    def place_of(self, model: str) -> str | None:
        """Return how messages call the place of a model's outcomes in a table; None where its folder says enough."""
        if not self.is_table:
            return None
        if self._layout["turned"]:
            return f'row of "{model}"'
        return f'row 1, column "{self._layout["prefix"]}{model}"'

    @property
    def _layout(self) -> dict[str, Any]:
        """How the table is laid out: whether models are its rows, and what the names of its columns begin with."""
        told = self.manifests[0].get("layout") if self.manifests else None
        return told or {"turned": False, "prefix": ""}


def _origins(paths: Sequence[Path]) -> list[_Origin]:
    """Read what stands beside shards; shards of one source, from whatever job, belong together.

    Raises
    ------
    InputError
        If a job's folder is incomplete.
    """
    homes: dict[Path, list[Path]] = {}
    for path in paths:
        if path.is_dir():
            homes[path] = sorted(path.glob("shard*.parquet"))
        else:
            homes.setdefault(path.parent, []).append(path)
    found: dict[str, _Origin] = {}
    for home, shards in homes.items():
        manifests = [manifest for shard in shards for manifest in outcomes.manifests(shard)]
        items, models = outcomes.facts(home / "shard")
        if sorted(manifest["model"] for manifest in manifests) != sorted(models["model"]):
            raise InputError(
                "this folder is incomplete", file=home, todo="Delete it, and its models are collected again"
            )
        name = manifests[0]["source"] if manifests else str(home)
        job = _Origin(shards, items, models, manifests)
        found[name] = _joined_jobs(found[name], job) if name in found else job
    return [_ordered(origin) for origin in found.values()]


def _joined_jobs(some: _Origin, job: _Origin) -> _Origin:
    """Put a job of raw files to others of its source; one by one, since each tells all items again, which are kept once."""
    return _Origin(
        [*some.shards, *job.shards],
        _each_once(pd.concat([some.item_facts, job.item_facts], ignore_index=True)),
        pd.concat([some.model_facts, job.model_facts], ignore_index=True),
        [*some.manifests, *job.manifests],
    )


def _each_once(items: pd.DataFrame) -> pd.DataFrame:
    """Return items with a row per content and scorer."""
    return items.drop_duplicates(["question_id", "content_hash", "scorer"], ignore_index=True)


def _ordered(origin: _Origin) -> _Origin:
    """Sort the items and models of raw files, of which no file says an order."""
    if origin.is_table:
        return origin
    items = _each_once(origin.item_facts)
    return replace(
        origin,
        item_facts=items.iloc[_sorted(items)].reset_index(drop=True),
        model_facts=origin.model_facts.sort_values("model", kind="stable", ignore_index=True),
    )


def _sorted(items: pd.DataFrame) -> list[int]:
    """Return the places of items by benchmark and name."""
    keys = zip(items["benchmark"].tolist(), map(natural, items["question_id"].tolist()), strict=True)
    return [place for place, _ in sorted(enumerate(keys), key=lambda one: one[1])]


def _refuse_mixed_scorers(origins: Sequence[_Origin]) -> None:
    """Stop at an item whose outcomes were graded in two ways: they would differ by the scorer, not by the model."""
    graded: dict[str, tuple[str, str]] = {}
    for origin in origins:
        known = origin.item_facts[["question_id", "scorer"]].dropna().drop_duplicates()
        for item, scorer in zip(known["question_id"], known["scorer"], strict=True):
            before, file = graded.setdefault(item, (scorer, origin.file("items")))
            if before != scorer:
                raise InputError(
                    f'"{item}" was graded in two ways, and outcomes of two scorers are no one item',
                    file=origin.file("items"),
                    found=scorer,
                    expected=f"{before}, as in {file}",
                    todo="Grade both by the same scoring rule and version, and collect them again, or name the "
                    "items apart (question_id)",
                )


@dataclass(frozen=True)
class Merged:
    """The outcomes of all sources, unfiltered: J items, N models.

    Attributes
    ----------
    items, models
        A row of facts each (:data:`benchmirt.outcomes.ITEM_FACTS`, :data:`benchmirt.outcomes.MODEL_FACTS`).
    outcomes
        int8 of shape (J, N): 1, 0, or -1 where missing.
    reasons
        uint8 of shape (J, N): why an outcome could not be graded, as in :class:`benchmirt.outcomes.Outcomes`; also where
        the policy has it count as something.
    simulated
        Whether a source says that it is simulated.
    sources
        Name, files and hashes of each.
    """

    items: pd.DataFrame
    models: pd.DataFrame
    outcomes: NDArray[np.int8]
    reasons: NDArray[np.uint8]
    simulated: bool
    sources: list[dict[str, Any]]


def merge(
    outcome_files: Sequence[str | Path], policy: Policy, settings: Mapping[str, str] = joining.DEFAULTS
) -> Merged:
    """Merge shards and apply a policy; nothing is filtered.

    Parameters
    ----------
    outcome_files
        ``shard{n}.parquet`` files, or folders of them, as in :func:`build`.
    policy
        ``published`` or ``honest``.
    settings
        Section ``joining`` of the configuration.

    Raises
    ------
    InputError
        If sources disagree about an outcome or a fact, or an item was graded by two scorers.
    """
    joint = _joint(outcome_files, policy, settings)
    return Merged(
        items=joint.items,
        models=joint.models,
        outcomes=joint.values,
        reasons=joint.ungraded,
        simulated=any(manifest.get("simulated") for one in joint.origins for manifest in one.manifests),
        sources=[_described(origin) for origin in joint.origins if origin.manifests],
    )


@dataclass(frozen=True)
class _Joint:
    """Outcomes of all sources, joined by name and content.

    Attributes
    ----------
    origins
        The sources, with one row of facts per item.
    items, models
        Facts, merged.
    values, reasons
        (J, N) outcomes, and reasons as in :class:`benchmirt.outcomes.Outcomes`.
    ungraded
        The reasons, those of outcomes that the policy filled included.
    filled
        Failures that the policy filled.
    conflicts
        The table of conflicts.
    aliases
        Items whose outcomes belong to another item.
    """

    origins: list[_Origin]
    items: pd.DataFrame
    models: pd.DataFrame
    values: NDArray[np.int8]
    reasons: NDArray[np.uint8]
    ungraded: NDArray[np.uint8]
    filled: int
    conflicts: pd.DataFrame
    aliases: Mapping[str, str]


def _joint(outcome_files: Sequence[str | Path], policy: Policy, settings: Mapping[str, str]) -> _Joint:
    """Read, join and merge the outcomes of all sources."""
    origins = _origins([Path(shard) for shard in outcome_files])
    _refuse_mixed_scorers(origins)
    models = _merge_facts(origins, "models", "model")
    place = {name: number for number, name in enumerate(models["model"])}
    facts, shards = [origin.item_facts for origin in origins], [origin.shards for origin in origins]
    plan = joining.plan(facts, shards, place, settings if policy == "honest" else joining.BY_NAME)
    origins = [replace(origin, item_facts=own) for origin, own in zip(origins, plan.facts, strict=True)]
    items = _merge_facts(origins, "items", "question_id")
    merger = _Merger(origins, items, models, plan, settings["repeated_runs"])
    values, reasons = merger.merged()
    ungraded = reasons
    filled = np.zeros((), dtype=bool)
    if policy == "published":
        filled = (values < 0) & (merger.filling >= 0)
        values[filled] = merger.filling[filled]
        reasons = np.where(filled, np.uint8(0), reasons)
    conflicts = joining.table(merger.conflicts)
    _tell_conflicts(conflicts, policy)
    return _Joint(
        origins, items, models, values, reasons, ungraded, int(filled.sum()), conflicts, plan.aliases
    )


def _tell_conflicts(conflicts: pd.DataFrame, policy: Policy) -> None:
    """Log how many outcomes are contested, by kind."""
    for one in joining.counts(conflicts):
        _log.warning("%s: %s, %d outcomes: %s", policy, one["kind"], one["outcomes"], one["done"])


def build(
    outcome_files: Sequence[str | Path], study: Study, policy: Policy, out_dir: str | Path
) -> list[Path]:
    """Merge shards, apply a policy and the study's filters, and write the matrix.

    Parameters
    ----------
    outcome_files
        ``shard{n}.parquet`` files, or folders of them, in the order of the study's sources; the tables of
        facts and the manifests are read from beside each.
    study
        Its ``models``, ``joining`` and ``filter`` are used.
    policy
        ``published`` or ``honest``.
    out_dir
        The folder for ``responses.parquet``, ``items.parquet``, ``models.parquet``, ``coverage.csv``,
        ``conflicts.csv``, ``missingness.csv`` and ``summary.json``.

    Returns
    -------
    list of Path
        The seven files.

    Raises
    ------
    InputError
        If sources disagree about an outcome or a fact, a model has no outcome at all, a name in
        ``models.include``, ``models.exclude`` or ``dimensions.anchors`` is unknown, an item was graded by two scorers,
        fewer than two models or no item are left, or fewer than the dimensions to be fitted need.
    """
    if policy not in POLICIES:
        raise ValueError(f"no policy is called {policy!r}")
    joint = _joint(outcome_files, policy, study.joining)
    origins, items, models = joint.origins, joint.items, joint.models
    values, reasons, conflicts = joint.values, joint.reasons, joint.conflicts

    model_table = _model_table(models, values, study, origins)
    _need_two_models(model_table, origins)
    kept_models = model_table["kept"].to_numpy()
    item_table = _item_table(items, values[:, kept_models], study, policy, origins, joint.aliases)
    _drop_silent_models(model_table, values, item_table["kept"].to_numpy())
    _need_two_models(model_table, origins)
    _check_anchors(item_table, study, policy, origins)
    _check_dims(item_table, model_table, study, policy, origins)
    coverage = _coverage(item_table, model_table, values, reasons)

    home = Path(out_dir)
    names = ("responses.parquet", "items.parquet", "models.parquet", "coverage.csv", "conflicts.csv")
    paths = [home / name for name in (*names, "missingness.csv")]
    _write_responses(values, item_table["question_id"], model_table["model"], paths[0])
    write_parquet(item_table_schema().validate(item_table), paths[1])
    write_parquet(model_table_schema().validate(model_table), paths[2])
    write_csv(coverage_schema().validate(coverage), paths[3])
    write_csv(conflicts, paths[4])
    write_csv(missingness.table(values, reasons, item_table, model_table), paths[5])
    asymptotes = policy == "honest" and bool(study.fits["asymptotes"])
    data = _assemble(values, item_table, model_table, asymptotes)
    paths.append(home / "summary.json")
    summary = _summary(data, item_table, model_table, values, origins, study, policy, joint.filled)
    summary["conflicts"] = joining.counts(conflicts)
    write_json(summary, paths[-1])
    _log.info(
        "%s: %d of %d items and %d of %d models kept",
        policy,
        item_table["kept"].sum(),
        len(item_table),
        model_table["kept"].sum(),
        len(model_table),
    )
    return paths


def _check_anchors(table: pd.DataFrame, study: Study, policy: Policy, origins: Sequence[_Origin]) -> None:
    """Stop at an anchor that no item follows, before anything is fitted.

    The consensus of the corrected fits is of the honest policy, so an anchor must be about items kept there.
    """
    anchors = study.dimensions["anchors"]
    if not anchors:
        return
    left = table.loc[table["kept"]]
    known = sorted({*table["benchmark"], *table["category"].dropna()})
    kept = {*left["benchmark"], *left["category"].dropna()}
    for name in anchors:
        place = {"file": _files(origins, "items"), "where": f"dimensions.anchors.{name}"}
        if name not in known:
            near = nearest(name, known)
            raise InputError(
                "an anchor names neither a benchmark nor a category",
                **place,
                found=f'"{name}"',
                expected="one of " + ", ".join(known),
                todo=f'Did you mean "{near}"?' if near else "Name one of these, or drop the anchor",
            )
        if policy == "honest" and name not in kept:
            raise InputError(
                "the filter leaves no item of this anchor",
                **place,
                found=f'"{name}"',
                todo="Name another benchmark or category, or loosen filter.honest",
            )


def _check_dims(
    item_table: pd.DataFrame,
    model_table: pd.DataFrame,
    study: Study,
    policy: Policy,
    origins: Sequence[_Origin],
) -> None:
    """Stop where more dimensions are to be fitted than the matrix can carry."""
    models, items = int(model_table["kept"].sum()), int(item_table["kept"].sum())
    most = min(models - 1, items)
    for key in ("dims", "max_dims") if policy == "honest" else ("dims",):
        if study.fits[key] > most:
            raise InputError(
                f"{models} models and {items} items are kept under the policy {policy}",
                file=_files(origins),
                where=f"fits.{key}",
                found=str(study.fits[key]),
                expected=f"at most {most}: fewer dimensions than models, and no more than items",
                todo=f"Lower fits.{key}, or add {'models' if models - 1 <= items else 'items'}",
            )


def _refuse_lookalikes(names: Sequence[str], homes: Sequence[str], role: str) -> None:
    """Stop at names of two sources that differ in their Unicode form only."""
    alike = lookalike(names)
    if alike is not None:
        first, second = alike
        raise InputError(
            f"the name of this {role} looks like one in {homes[first]}, written in another Unicode form",
            file=homes[second],
            found=f'"{names[second]}" twice',
            todo="Write it in the same form (NFC) if the two are one, or name them apart",
        )


def _refuse_case_twins(facts: pd.DataFrame, homes: Sequence[str], column: str) -> None:
    """Stop at two benchmarks or categories whose names differ in case only: one is misspelt, or both get one page."""
    first: dict[str, str] = {}
    for place, value in enumerate(facts[column]):
        if pd.isna(value):
            continue
        twin = first.setdefault(str(value).casefold(), str(value))
        if twin != value:
            raise InputError(
                f"two names in the column {column} differ in case only",
                file=homes[place],
                where=f'question "{facts["question_id"].iloc[place]}", column "{column}"',
                found=f'"{value}" beside "{twin}"',
                todo="Write them alike if they are one, or name them apart",
            )


def _merge_facts(origins: Sequence[_Origin], role: str, key: str) -> pd.DataFrame:
    """Put the facts of all sources under each other, each name once; facts given twice must agree."""
    columns = list(ITEM_FACTS if role == "items" else MODEL_FACTS)
    merged: pd.DataFrame | None = None
    homes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    for number, origin in enumerate(origins):
        facts = (origin.item_facts if role == "items" else origin.model_facts).reset_index(drop=True)
        if merged is None:
            merged = facts[columns].copy()
            homes = np.zeros(len(merged), dtype=np.int64)
            continue
        place = pd.Index(merged[key]).get_indexer(pd.Index(facts[key]))
        shared = np.flatnonzero(place >= 0)
        for column in columns:
            if column in (key, "content_hash") or not shared.size:  # contents are for `joining` to compare
                continue
            old = merged[column].iloc[place[shared]].reset_index(drop=True)
            new = facts[column].iloc[shared].reset_index(drop=True)
            differ = (old.notna() & new.notna() & (old != new).fillna(False)).to_numpy(dtype=bool)
            if differ.any() and column != "notes":
                first = int(np.flatnonzero(differ)[0])
                there, here = place[shared[first]], shared[first]
                before = origins[homes[there]]
                raise InputError(
                    f'"{facts[key].iloc[here]}" has another {column} in {before.file(role)}',
                    file=origin.file(role),
                    where=_where(facts, here, column),
                    found=f'"{new.iloc[first]}"',
                    expected=f'"{old.iloc[first]}", as there',
                    todo=_APART if column == "benchmark" else "Make the two files agree",
                )
            if column == "notes":
                both = old.where(~differ, old + "; " + new)
                merged.loc[merged.index[place[shared]], column] = both.where(old.notna(), new).to_numpy()
            elif old.isna().any():
                merged.loc[merged.index[place[shared]], column] = old.where(old.notna(), new).to_numpy()
        fresh = facts.loc[place < 0, columns]
        merged = pd.concat([merged, fresh], ignore_index=True)
        homes = np.concatenate([homes, np.full(len(fresh), number, dtype=np.int64)])
    if merged is None:
        raise ValueError("no sources")
    names = merged[key].tolist()
    files = [origins[home].file(role) for home in homes]
    _refuse_lookalikes(names, files, role.removesuffix("s"))
    for column in ("benchmark", "category") if role == "items" else ():
        _refuse_case_twins(merged, files, column)
    return merged


def _where(facts: pd.DataFrame, place: int, column: str) -> str:
    if pd.notna(facts["fact_row"].iloc[place]):
        return f'row {facts["fact_row"].iloc[place]}, column "{column}"'
    if "row" in facts and pd.notna(facts["row"].iloc[place]):
        return f"row {facts['row'].iloc[place]}"  # of the responses, which have no such column
    return f'column "{column}"'


class _Merger:
    """Merges the outcomes of all sources.

    Parameters
    ----------
    origins
        The sources.
    items, models
        Their facts, merged.
    plan
        What becomes of outcomes whose name or content is contested.
    runs
        What becomes of outcomes about which sources disagree.

    Attributes
    ----------
    conflicts
        What was found and done: rows of the table of conflicts.
    filling
        int8 of shape (J, N): what failures count as under the published policy, -1 where nothing.
    """

    def __init__(
        self,
        origins: Sequence[_Origin],
        items: pd.DataFrame,
        models: pd.DataFrame,
        plan: Plan,
        runs: str,
    ) -> None:
        self._origins, self._plan, self._runs = origins, plan, runs
        self._items, self._models = list(items["question_id"]), list(models["model"])
        self._benchmark = list(items["benchmark"])
        self._item_place = {name: place for place, name in enumerate(self._items)}
        self._model_place = {name: place for place, name in enumerate(self._models)}
        self._find = Lookup(plan.variants, plan.only, self._item_place)
        self._action = np.array([fate.action for fate in plan.fates] + [KEEP])  # the last: no variant
        self._kinds = np.array([fate.kind or "" for fate in plan.fates] + [""], dtype=object)
        self._target = np.array(
            [self._item_place.get(fate.target or "", -1) for fate in plan.fates] + [-1], dtype=np.int64
        )
        self._excluded = np.isin(self._items, list(plan.excluded))
        self._values = np.full((len(items), len(models)), -1, dtype=np.int8)
        self._reasons = np.full(self._values.shape, _NOT_RUN, dtype=np.uint8)
        self.filling = np.full(self._values.shape, -1, dtype=np.int8)
        self._disputed: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self.conflicts = [*plan.notes, *_told_by_readers(origins)]

    def merged(self) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return outcomes and reasons, both (J, N); a cell without any source is not_run.

        Raises
        ------
        InputError
            If sources disagree about an outcome, and nothing says what to do then.
        """
        for number, origin in enumerate(self._origins):
            moved: list[Block] = []
            for shard in origin.shards:
                for block in outcomes.blocks(shard, self._model_place, self._item_place):
                    self._add(number, self._settled(number, block, moved), moved=False)
            if moved:
                self._add(number, self._once(number, _joined(moved)), moved=True)
        for item, model in self._disputed:
            self._values[item, model], self._reasons[item, model] = -1, _CONFLICT
        return self._values, self._reasons

    def _settled(self, number: int, block: Block, moved: list[Block]) -> Block:
        """Return a block without contested outcomes, and put aside those that belong to another item."""
        variant = self._find(number, block.item, block.content)
        kinds = self._kinds[variant]
        told = kinds != ""
        if told.any():
            self._list(number, block, variant, told)
        action = self._action[variant]
        away = action == MOVE
        if away.any():
            moved.append(replace(_rows_of(block, away), item=self._target[variant[away]]))
        miss = {_CONFLICT: action == MISS, _EXCLUDED: self._excluded[block.item]}
        if not (away.any() or any(where.any() for where in miss.values())):
            return block
        outcome, reason = block.outcome.copy(), block.reason.copy()
        for why, where in miss.items():
            outcome[where], reason[where] = -1, why
        return _rows_of(replace(block, outcome=outcome, reason=reason), ~away)

    def _once(self, number: int, block: Block) -> Block:
        """Return outcomes that were moved, those that met another one of the same model at their item as a conflict."""
        cell = block.item * len(self._models) + block.model
        _, first, inverse, times = np.unique(cell, return_index=True, return_inverse=True, return_counts=True)
        twice = times[inverse] > 1
        there = self._reasons[block.item, block.model] != _NOT_RUN
        differs = there & (self._values[block.item, block.model] != block.outcome)
        lost = twice | differs
        for place in np.flatnonzero(lost):
            self._tell_cell(number, block, int(place), "repeated rows", "missing")
        outcome, reason = block.outcome.copy(), block.reason.copy()
        outcome[lost], reason[lost] = -1, _CONFLICT
        self._disputed.append((block.item[lost], block.model[lost]))
        return _rows_of(replace(block, outcome=outcome, reason=reason), np.isin(np.arange(cell.size), first))

    def _add(self, number: int, block: Block, moved: bool) -> None:
        """Put a block into the matrix."""
        new, why, at = block.outcome, block.reason, (block.item, block.model)
        old = self._values[at]
        both = (old >= 0) & (new >= 0)
        has = new >= 0
        if both.any():
            clash = both & (old != new)
            if clash.any() and not moved:
                self._clash(number, block, clash)
                has = has & ~clash
            kind = "repeated rows" if moved else "repeated runs"
            self._count(number, block, both & ~clash, kind, "counted once: they agree")
        self._values[block.item[has], block.model[has]] = new[has]
        self._reasons[block.item[has], block.model[has]] = 0
        says_why = (new < 0) & (old < 0) & (why != _NOT_RUN)
        self._reasons[block.item[says_why], block.model[says_why]] = why[says_why]
        graded = (new < 0) & (block.published >= 0)
        self.filling[block.item[graded], block.model[graded]] = block.published[graded]

    def _clash(self, number: int, block: Block, clash: NDArray[np.bool_]) -> None:
        """Settle outcomes that differ from those of earlier sources, as the configuration says."""
        if self._runs == "refuse":
            first = int(np.flatnonzero(clash)[0])
            cell = int(block.item[first]), int(block.model[first])
            found = int(block.outcome[first])
            raise _disagreement(self._origins, number, self._item_place, self._model_place, cell, found)
        if self._runs == "conflict":
            self._disputed.append((block.item[clash], block.model[clash]))
        done = "missing" if self._runs == "conflict" else "the source named first counts"
        for place in np.flatnonzero(clash):
            self._tell_cell(number, block, int(place), "repeated runs", done)

    # -- what is told

    def _entry(self, number: int, model: int, benchmark: str, kind: str, done: str) -> dict[str, Any]:
        return {
            "source": self._origins[number].name,
            "model": self._models[model],
            "benchmark": benchmark,
            "kind": kind,
            "outcomes": 1,
            "done": done,
        }

    def _tell_cell(self, number: int, block: Block, place: int, kind: str, done: str) -> None:
        item = int(block.item[place])
        entry = self._entry(number, int(block.model[place]), self._benchmark[item], kind, done)
        self.conflicts.append({**entry, "question_id": self._items[item]})

    def _list(self, number: int, block: Block, variant: NDArray[np.int64], told: NDArray[np.bool_]) -> None:
        """List contested outcomes one by one; those that are kept are counted by model and benchmark."""
        kept = told & (self._action[variant] == KEEP)
        for kind in np.unique(self._kinds[variant[kept]]):
            own = kept & (self._kinds[variant] == kind)
            done = self._plan.fates[int(variant[np.flatnonzero(own)[0]])].done
            self._count(number, block, own, str(kind), done)
        for place in np.flatnonzero(told & ~kept):
            fate = self._plan.fates[int(variant[place])]
            item = int(block.item[place])
            entry = self._entry(
                number, int(block.model[place]), self._benchmark[item], str(fate.kind), fate.done
            )
            self.conflicts.append({**entry, "question_id": self._items[item], "other_id": fate.target})

    def _count(self, number: int, block: Block, where: NDArray[np.bool_], kind: str, done: str) -> None:
        """Count outcomes by model and benchmark, as one entry each."""
        if not where.any():
            return
        names, codes = np.unique([self._benchmark[item] for item in block.item[where]], return_inverse=True)
        pairs, times = np.unique(np.column_stack([block.model[where], codes]), axis=0, return_counts=True)
        for (model, code), count in zip(pairs.tolist(), times.tolist(), strict=True):
            entry = self._entry(number, model, str(names[code]), kind, done)
            self.conflicts.append({**entry, "outcomes": count})


def _joined(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks."""
    return Block(*(np.concatenate([getattr(one, name.name) for one in blocks]) for name in fields(Block)))


def _rows_of(block: Block, where: NDArray[np.bool_]) -> Block:
    """Return some rows of a block."""
    return Block(*(getattr(block, name.name)[where] for name in fields(Block)))


def _told_by_readers(origins: Sequence[_Origin]) -> list[dict[str, Any]]:
    """Return the conflicts within the results of one model, which its manifest lists."""
    return [
        {"source": manifest["source"], "model": manifest["model"], **entry}
        for origin in origins
        for manifest in origin.manifests
        for entry in manifest.get("conflicts", ())
    ]


def _disagreement(
    origins: Sequence[_Origin],
    number: int,
    item_place: Mapping[str, int],
    model_place: Mapping[str, int],
    cell: tuple[int, int],
    found: int,
) -> InputError:
    """Tell which two sources differ in which cell."""
    item, model = list(item_place)[cell[0]], list(model_place)[cell[1]]
    earlier = ""
    for origin in origins[: number + 1]:
        for shard in origin.shards:
            for other in outcomes.blocks(shard, model_place, item_place):
                same = (other.item == cell[0]) & (other.model == cell[1]) & (other.outcome >= 0)
                if same.any() and not earlier:
                    place = origin.place(item, model).partition(", column")[0]
                    earlier = f"{int(other.outcome[same][0])}, as in {origin.file(model=model)}, {place}"
    return InputError(
        f'two files disagree about "{item}" and this model',
        file=origins[number].file(model=model),
        where=origins[number].place(item, model),
        found=str(found),
        expected=earlier,
        todo="Correct one of the two files, rename the model in one if it was run twice, name the items apart "
        "if they are two questions, or say in joining.repeated_runs what counts",
    )


def _files(origins: Sequence[_Origin], role: str = "responses") -> str:
    return ", ".join(dict.fromkeys(origin.file(role) for origin in origins))


def _model_table(
    models: pd.DataFrame, values: NDArray[np.int8], study: Study, origins: Sequence[_Origin]
) -> pd.DataFrame:
    """Add slugs, lineages, counts and what is kept."""
    table = models.copy()
    names = list(table["model"])
    known = (
        [*names, *_not_collected(study, origins)]
        if study.models["include"] or study.models["exclude"]
        else names
    )
    for section in ("include", "exclude"):
        for name in study.models[section]:
            if name not in known:
                near = nearest(name, known)
                raise InputError(
                    "no source has this model",
                    file=_files(origins),
                    where=f"models.{section}",
                    found=f'"{name}"',
                    todo=f'Did you mean "{near}"?' if near else "Names are those of the tables and folders",
                )
    table["slug"] = pd.Series([slug(name) for name in names], dtype="str")
    table["canonical"] = table["canonical"].fillna(table["model"])
    _refuse_chains(table, origins)
    evidence = np.where(
        table["lineage"].notna(),
        "lineage column",
        np.where(table["family"].notna(), "family column", "none: own cluster"),
    )
    table["lineage"] = table["lineage"].fillna(table["family"]).fillna(table["model"])
    table["lineage_evidence"] = pd.Series(evidence, dtype="str")
    seen = values >= 0
    table["observed"] = seen.sum(axis=0).astype(np.int64)
    table["mean"] = _mean((values == 1).sum(axis=0), table["observed"].to_numpy())
    reason: list[str | None] = [None] * len(names)
    include = set(study.models["include"])
    for place, name in enumerate(names):
        if include and name not in include:
            reason[place] = "not in models.include"
        elif name in study.models["exclude"]:
            reason[place] = "in models.exclude"
        elif not table["observed"].iloc[place]:
            origin = next(o for o in origins if name in set(o.model_facts["model"]))
            raise InputError(
                "this model has no outcome at all",
                file=origin.file(model=name),
                where=origin.place_of(name),
                found="only empty cells"
                if origin.is_table
                else "only rows that could not be graded, or that contradict each other (see the log)",
                todo="Take it out, or name the model in models.exclude"
                if origin.is_table
                else "Fetch its results again, or name the model in models.exclude",
            )
    if study.models["duplicates"] == "most_complete":
        _drop_duplicates(table, reason)
    return _with_reasons(table, reason, _MODEL_COLUMNS)


def _refuse_chains(table: pd.DataFrame, origins: Sequence[_Origin]) -> None:
    """Stop where a model's canonical name is a model that itself is called otherwise: the two would count as two."""
    canonical = dict(zip(table["model"], table["canonical"], strict=True))
    for model, name in canonical.items():
        further = canonical.get(name, name)
        if further != name:
            origin = next(one for one in origins if (one.model_facts["model"] == model).any())
            place = int(np.flatnonzero(origin.model_facts["model"] == model)[0])
            raise InputError(
                "a canonical name is that of a model which has another canonical name",
                file=origin.file("models"),
                where=_where(origin.model_facts, place, "canonical"),
                found=f'"{name}", and for "{name}": "{further}"',
                expected="one name for all runs of one model",
                todo=f'Write "{further}" in both rows if it is one model, or empty the cell',
            )


def _not_collected(study: Study, origins: Sequence[_Origin]) -> list[str]:
    """Return the models that sources have, those among them that models.include and models.exclude leave out."""
    told = [manifest.get("models_left_out", []) for origin in origins for manifest in origin.manifests[:1]]
    by_folder = [all_models(source, study) for source in study.sources if source.by_model]
    return [model for models in (*told, *by_folder) for model in models]


def _drop_duplicates(table: pd.DataFrame, reason: list[str | None]) -> None:
    """Keep the most complete of the models with one canonical name; the first where two are equal."""
    best: dict[str, int] = {}
    observed, canonical = table["observed"].to_numpy(), list(table["canonical"])
    for place, name in enumerate(canonical):
        if reason[place] is None and (name not in best or observed[place] > observed[best[name]]):
            best[name] = place
    for place, name in enumerate(canonical):
        if reason[place] is None and best[name] != place:
            reason[place] = f"the same model as {table['model'].iloc[best[name]]}, which is more complete"
            if observed[place] == observed[best[name]]:
                reason[place] = f"the same model as {table['model'].iloc[best[name]]}, which comes first"


def _mean(passed: NDArray[Any], observed: NDArray[Any]) -> NDArray[np.float64]:
    """Return passed / observed, correctly rounded, so that 5 of 100 is 0.05 exactly; NaN for none."""
    mean = np.full(len(passed), np.nan)
    np.divide(passed.astype(np.float64), observed.astype(np.float64), out=mean, where=observed > 0)
    return mean


def _with_reasons(
    table: pd.DataFrame, reason: Sequence[str | None], columns: Mapping[str, str]
) -> pd.DataFrame:
    table["drop_reason"] = pd.Series(
        [np.nan if text is None else text for text in reason], dtype="str", index=table.index
    )
    table["kept"] = table["drop_reason"].isna()
    return table[list(columns)]


def _item_table(
    items: pd.DataFrame,
    values: NDArray[np.int8],
    study: Study,
    policy: Policy,
    origins: Sequence[_Origin],
    aliases: Mapping[str, str],
) -> pd.DataFrame:
    """Add counts over the kept models and what is kept; `aliases` are items whose outcomes belong to another."""
    table = items.copy()
    passed = (values == 1).sum(axis=1)
    observed = (values >= 0).sum(axis=1)
    mean = _mean(passed, observed)
    bounds, least = study.filter[policy], study.filter["min_observed"]
    low, high = bounds["min_mean"], bounds["max_mean"]
    rules = [
        (observed == 0, "no outcomes"),
        (observed < least, f"fewer than {least} outcomes"),
        ((passed == 0) | (passed == observed), "all outcomes equal"),
        (mean <= low, f"mean not above {low}"),
        (mean >= high, f"mean not below {high}"),
    ]
    chosen = np.select([hit for hit, _ in rules], list(range(len(rules))), default=-1)
    reason = [None if rule < 0 else rules[rule][1] for rule in chosen]
    for place, name in enumerate(table["question_id"]):
        if name in aliases and not observed[place]:
            reason[place] = "the question has another name too, which more models have"
    table["observed"] = observed.astype(np.int64)
    table["mean"] = mean
    table = _with_reasons(table, reason, _ITEM_COLUMNS)
    if not table["kept"].any():
        counts = table["drop_reason"].value_counts()
        why = "; ".join(f"{number} items: {text}" for text, number in counts.items())
        raise InputError(
            f"no item is left under the policy {policy}",
            file=_files(origins),
            where=f"filter.{policy}, filter.min_observed",
            found=why,
            todo="Items inform a fit only if models differ on them: add models or loosen the filter",
        )
    return table


def _drop_silent_models(table: pd.DataFrame, values: NDArray[np.int8], kept_items: NDArray[np.bool_]) -> None:
    """Drop models, in place, whose every outcome is on an item that was dropped."""
    silent = table["kept"].to_numpy() & ~(values[kept_items] >= 0).any(axis=0)
    table.loc[silent, "drop_reason"] = "no outcome on a kept item"
    table["kept"] = table["drop_reason"].isna()


def _need_two_models(table: pd.DataFrame, origins: Sequence[_Origin]) -> None:
    kept = list(table.loc[table["kept"], "model"])
    if len(kept) < 2:
        found = f'only "{kept[0]}"' if kept else "none"
        dropped = table.loc[~table["kept"], ["model", "drop_reason"]]
        why = "; ".join(f"{row.model}: {row.drop_reason}" for row in dropped.head(3).itertuples())
        raise InputError(
            "abilities are relative: one model alone cannot be placed",
            file=_files(origins),
            where="row 1, columns of models" if all(origin.is_table for origin in origins) else None,
            found=found + (f" ({why})" if why else ""),
            expected="at least 2 models, and 30 for verdicts",
            todo="Add further models, or loosen models.include and models.exclude",
        )


def _coverage(
    item_table: pd.DataFrame,
    model_table: pd.DataFrame,
    values: NDArray[np.int8],
    reasons: NDArray[np.uint8],
) -> pd.DataFrame:
    """Count outcomes by benchmark, model and reason."""
    names = list(model_table["model"])
    codes, benchmarks = pd.factorize(item_table["benchmark"])
    parts: list[pd.DataFrame] = []
    for code, benchmark in enumerate(benchmarks):
        own, why = values[codes == code], reasons[codes == code]
        observed = (own >= 0).sum(axis=0)
        part = {
            "benchmark": pd.Series([benchmark] * len(names), dtype="str"),
            "model": pd.Series(names, dtype="str"),
            "items": np.full(len(names), len(own), dtype=np.int64),
            "observed": observed.astype(np.int64),
            "missing": (len(own) - observed).astype(np.int64),
            **{
                reason: (why == number).sum(axis=0).astype(np.int64)
                for number, reason in enumerate(REASONS, start=1)
            },
            "mean": _mean((own == 1).sum(axis=0), observed),
        }
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _write_responses(values: NDArray[np.int8], items: pd.Series, models: pd.Series, path: Path) -> None:
    """Write a row per item and one nullable Int8 column per model, without a copy as objects."""
    import pyarrow as pa

    names = list(models)
    nothing = pd.DataFrame(
        {"question_id": pd.Series(dtype="str"), **{name: pd.Series(dtype="Int8") for name in names}}
    )
    schema = pa.Schema.from_pandas(nothing, preserve_index=False)
    columns = [pa.array(list(items), type=schema.field(0).type)]
    columns += [
        pa.array(np.ascontiguousarray(values[:, place]), mask=values[:, place] < 0)
        for place in range(len(names))
    ]
    write_parquet(pa.Table.from_arrays(columns, schema=schema), path)


def _summary(
    data: ResponseData,
    item_table: pd.DataFrame,
    model_table: pd.DataFrame,
    values: NDArray[np.int8],
    origins: Sequence[_Origin],
    study: Study,
    policy: Policy,
    filled: int,
) -> dict[str, Any]:
    grouped = item_table.groupby("benchmark", sort=False)["kept"]
    observed = int((values >= 0).sum())
    return {
        "policy": policy,
        "simulated": study.simulated
        or any(manifest.get("simulated") for origin in origins for manifest in origin.manifests),
        "models": len(model_table),
        "models_kept": int(model_table["kept"].sum()),
        "models_dropped": _counts(model_table),
        "items": len(item_table),
        "items_kept": int(item_table["kept"].sum()),
        "items_dropped": _counts(item_table),
        "benchmarks": {
            str(name): {"items": int(kept.size), "kept": int(kept.sum())} for name, kept in grouped
        },
        "observed": observed,
        "missing": int(values.size) - observed,
        "cells_filled_by_policy": filled,
        "failures_known": any(
            manifest["failures_known"] for origin in origins for manifest in origin.manifests
        ),
        "sources": [_described(origin) for origin in origins if origin.manifests],
        "hash": data.hash,
        "provenance": provenance.record(config_sha256=study.config_sha256, data_hash=data.hash),
    }


def _described(origin: _Origin) -> dict[str, Any]:
    """Return what the summary says of a source."""
    first = origin.manifests[0]
    if origin.is_table:
        return {"source": first["source"], "files": first["files"]}
    files = sorted(
        (file["path"], file["sha256"]) for manifest in origin.manifests for file in manifest["files"].values()
    )
    role = f"{len(files):,} files of {len(origin.manifests):,} models"
    return {
        "source": first["source"],
        "kind": first["kind"],
        "models": len(origin.manifests),
        "files": {
            role: {
                "path": str(Path(first["folder"]).parent),
                "sha256": sha256_bytes(repr(files).encode()),
                "number": len(files),
            },
            "scoring rules": {"path": first["scorer"], "sha256": first["scorer_version"]},
        },
    }


def _counts(table: pd.DataFrame) -> dict[str, int]:
    return {str(reason): int(number) for reason, number in table["drop_reason"].value_counts().items()}


# -- loading ------------------------------------------------------------------------------------------------


def limits_of(item_table: pd.DataFrame) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return floors 1/options, and ceilings 1 - 1/options of inverted items; 0 and 1 elsewhere."""
    chance = 1.0 / item_table["options"].to_numpy(dtype=np.float64, na_value=np.inf)
    inverted = item_table["inverted"].to_numpy(dtype=bool)
    floor = np.where(inverted, 0.0, chance).astype(np.float32)
    ceiling = np.where(inverted, 1.0 - chance, 1.0).astype(np.float32)
    return floor, ceiling


def _testlets(item_table: pd.DataFrame) -> NDArray[np.int64]:
    """Return codes of the items' testlets, those of a benchmark by themselves; -1 where an item shares its testlet with none."""
    named = item_table["testlet"].notna() & (item_table["testlet"] != "")
    codes = item_table.groupby(["benchmark", "testlet"], sort=False, dropna=False).ngroup()
    shared = named & codes.duplicated(keep=False)
    return _numbered(codes.where(shared, -1).to_numpy(dtype=np.int64))


def _numbered(codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return codes numbered from 0 in the order in which they are met; negative ones stay -1."""
    own = codes >= 0
    numbered = np.full(codes.shape, -1, np.int64)
    numbered[own] = pd.factorize(codes[own])[0]
    return numbered


def _assemble(
    values: NDArray[np.int8], item_table: pd.DataFrame, model_table: pd.DataFrame, asymptotes: bool
) -> ResponseData:
    """Return the kept part of a matrix of all items and models."""
    kept_items = item_table["kept"].to_numpy()
    kept_models = model_table["kept"].to_numpy()
    return _data(
        np.ascontiguousarray(values[kept_items][:, kept_models].T),
        item_table[kept_items].reset_index(drop=True),
        model_table[kept_models].reset_index(drop=True),
        asymptotes,
    )


def _data(
    responses: NDArray[np.int8], item_table: pd.DataFrame, model_table: pd.DataFrame, asymptotes: bool
) -> ResponseData:
    floor, ceiling = limits_of(item_table)
    if not asymptotes:
        floor, ceiling = np.zeros_like(floor), np.ones_like(ceiling)
    return ResponseData(
        responses=responses,
        models=tuple(model_table["model"]),
        items=tuple(item_table["question_id"]),
        floor=floor,
        ceiling=ceiling,
        lineage=pd.factorize(model_table["lineage"])[0].astype(np.int64),
        testlet=np.full(len(item_table), -1, np.int64),
        item_table=item_table,
        model_table=model_table,
    )


def _read_back(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Read a table of ours, whose contract held when it was written, and see that it is of this version's form."""
    table = pd.read_parquet(path)
    found = {str(name): str(kind) for name, kind in table.dtypes.items()}
    if list(found.items()) != list(columns.items()):
        odd = sorted({name for name, _ in set(found.items()) ^ set(columns.items())}) or list(columns)
        raise InputError(
            "this part of the matrix is of another form",
            file=path,
            found=", ".join(f"{name} ({found.get(name, 'absent')})" for name in odd),
            expected=", ".join(f"{name} ({columns.get(name, 'absent')})" for name in odd),
            todo="Delete it and build it again",
        )
    return table


def load(folder: str | Path, *, asymptotes: bool, testlets: bool = False) -> ResponseData:
    """Load the kept items and models of a matrix.

    Parameters
    ----------
    folder
        A folder that :func:`build` has written.
    asymptotes
        Whether floors and ceilings follow from the number of options (1/options, or 1 - 1/options above for
        inverted items); otherwise they are 0 and 1.
    testlets
        Whether effects of testlets are to be modelled.

    Raises
    ------
    InputError
        If the folder is not complete, or was written in another form.
    """
    import pyarrow.parquet as pq

    home = Path(folder)
    for name in ("responses.parquet", "items.parquet", "models.parquet"):
        if not (home / name).is_file():
            raise InputError("this part of the matrix is missing", file=home / name, todo="Build it first")
    item_table = _read_back(home / "items.parquet", _ITEM_COLUMNS)
    model_table = _read_back(home / "models.parquet", _MODEL_COLUMNS)
    item_table_kept = item_table[item_table["kept"]].reset_index(drop=True)
    model_table_kept = model_table[model_table["kept"]].reset_index(drop=True)
    rows = item_table["kept"].to_numpy()
    responses = np.empty((len(model_table_kept), len(item_table_kept)), dtype=np.int8)
    table = pq.read_table(home / "responses.parquet", columns=list(model_table_kept["model"]))
    for place, name in enumerate(model_table_kept["model"]):
        responses[place] = table[name].fill_null(-1).to_numpy()[rows]
    data = _data(responses, item_table_kept, model_table_kept, asymptotes)
    return replace(data, testlet=_testlets(item_table_kept)) if testlets else data


def from_arrays(
    responses: NDArray[Any],
    lineage: Sequence[int] | NDArray[Any] | None = None,
    benchmark: Sequence[str] | NDArray[Any] | None = None,
    floor: NDArray[Any] | float | None = None,
    ceiling: NDArray[Any] | float | None = None,
    testlet: Sequence[int] | NDArray[Any] | None = None,
) -> ResponseData:
    """Make response data from arrays, without files.

    Parameters
    ----------
    responses
        Shape (N, J): 1, 0, and -1 or NaN where missing.
    lineage
        Shape (N,): codes; each model its own if absent.
    benchmark
        Shape (J,): names; all ``"all"`` if absent.
    floor, ceiling
        Shape (J,) or one number for all: asymptotes; 0 and 1 if absent.
    testlet
        Shape (J,): codes of testlets whose effects are to be modelled, -1 for none; none if absent.

    Raises
    ------
    ValueError
        If a response is anything else, or shapes do not fit.
    """
    values = np.asarray(responses)
    if values.ndim != 2:
        raise ValueError(f"responses have the shape (N, J), not {values.shape}")
    if np.issubdtype(values.dtype, np.floating):
        values = np.where(np.isnan(values), -1, values)
    if not np.isin(values, (-1, 0, 1)).all():
        raise ValueError("responses are 1, 0, or -1 where missing")
    cells = np.ascontiguousarray(values, dtype=np.int8)
    count, size = cells.shape
    models = [f"model-{number:04d}" for number in range(count)]
    codes = np.arange(count) if lineage is None else np.asarray(lineage, dtype=np.int64)
    if codes.shape != (count,):
        raise ValueError(f"lineage has the shape ({count},), not {codes.shape}")
    seen = cells >= 0
    items = pd.DataFrame(
        {
            "question_id": pd.Series([f"item-{number:05d}" for number in range(size)], dtype="str"),
            "benchmark": pd.Series(["all"] * size if benchmark is None else list(benchmark), dtype="str"),
        }
    )
    for name, kind in ITEM_FACTS.items():
        if name not in items:
            items[name] = (
                np.zeros(size, dtype=bool) if kind == "bool" else pd.Series([None] * size, dtype=kind)
            )
    items["observed"] = seen.sum(axis=0).astype(np.int64)
    items["mean"] = _mean((cells == 1).sum(axis=0), seen.sum(axis=0))
    own = [f"lineage-{code}" for code in codes]
    table = pd.DataFrame(
        {
            "model": pd.Series(models, dtype="str"),
            "slug": pd.Series(models, dtype="str"),
            "canonical": pd.Series(models, dtype="str"),
            "lineage": pd.Series(own, dtype="str"),
            "lineage_evidence": pd.Series(["given"] * count, dtype="str"),
        }
    )
    for name, kind in _MODEL_COLUMNS.items():
        if name not in table and name not in _STATISTICS:
            table[name] = pd.Series([None] * count, dtype=kind)
    table["observed"] = seen.sum(axis=1).astype(np.int64)
    table["mean"] = _mean((cells == 1).sum(axis=1), seen.sum(axis=1))
    return ResponseData(
        responses=cells,
        models=tuple(models),
        items=tuple(items["question_id"]),
        floor=_per_item(floor, 0.0, size, "floor"),
        ceiling=_per_item(ceiling, 1.0, size, "ceiling"),
        lineage=codes.astype(np.int64),
        testlet=_numbered(np.full(size, -1, np.int64) if testlet is None else np.asarray(testlet, np.int64)),
        item_table=_with_reasons(items, [None] * size, _ITEM_COLUMNS),
        model_table=_with_reasons(table, [None] * count, _MODEL_COLUMNS),
    )


def _per_item(value: NDArray[Any] | float | None, absent: float, size: int, name: str) -> NDArray[np.float32]:
    given = np.asarray(absent if value is None else value, dtype=np.float32)
    if given.shape not in ((), (size,)):
        raise ValueError(f"{name} has the shape ({size},), not {given.shape}")
    return np.ascontiguousarray(np.broadcast_to(given, (size,)))


def select(
    data: ResponseData,
    models: NDArray[Any] | Sequence[int] | None = None,
    items: NDArray[Any] | Sequence[int] | None = None,
) -> ResponseData:
    """Return the given models and items of some response data, in the given order.

    Parameters
    ----------
    data
        The whole.
    models, items
        Places or a mask; all if absent. Lineages keep their codes.
    """
    count, size = data.responses.shape
    who = np.arange(count) if models is None else np.arange(count)[np.asarray(models)]
    what = np.arange(size) if items is None else np.arange(size)[np.asarray(items)]
    return ResponseData(
        responses=np.ascontiguousarray(data.responses[np.ix_(who, what)]),
        models=tuple(data.models[place] for place in who),
        items=tuple(data.items[place] for place in what),
        floor=data.floor[what],
        ceiling=data.ceiling[what],
        lineage=data.lineage[who],
        testlet=_numbered(data.testlet[what]),
        item_table=data.item_table.iloc[what].reset_index(drop=True),
        model_table=data.model_table.iloc[who].reset_index(drop=True),
    )
