"""Same question, same content: outcomes are joined on what was asked as well as on the name of the question.

Within a benchmark, over all models and sources, the hashes of what was asked (:class:`benchmirt.outcomes.Asked`) tell
whether one name stands for one question. What a name stands for is what most models were asked under it (of equally
many, the first model's); all else is a conflict of one of these kinds, and the configuration (``joining``) says what
becomes of it under the honest policy. The published policy joins by name, as the published study did.

================ ===================================================== ==============================================
kind             a model was asked, under some name,                   what can become of it
================ ===================================================== ==============================================
reordered        what most models were asked under another name        ``move`` to that name, or ``conflict``
renamed          what other models were asked under another name only  the same
edited options   the question with other answer options                ``commonest``: the others are missing;
other question   a question that is met nowhere else                   ``exclude``: the whole item is;
changed key      the question with another right answer                ``split``: each is an item of its own
shuffled options the question with its options in another order        ``keep``, or ``conflict``
same question    one question twice, under two names                   both are kept
not compared     nothing says what, or another recipe hashed it        joined by name alone
repeated rows    the question in several rows of its results           settled when they are read: counted once where
                                                                       they agree, else ``conflict`` or ``first``
repeats          the question several times, as a rule reduces them    one outcome
repeated runs    the question in several sources                       counted once where they agree, else ``refuse``,
                                                                       ``conflict`` or ``first``
================ ===================================================== ==============================================

Hashes made by different recipes (``hashed_from``) are never compared. Nothing is read twice unless the facts of the
items show that some name has two contents, or some content two names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import outcomes
from benchmirt.ids import natural
from benchmirt.outcomes import GIVEN, Block

__all__ = [
    "BY_NAME",
    "COLUMNS",
    "DEFAULTS",
    "KEEP",
    "MISS",
    "MOVE",
    "Lookup",
    "Plan",
    "Variant",
    "counts",
    "plan",
    "table",
]

COLUMNS = {
    "source": "str",
    "model": "str",
    "benchmark": "str",
    "question_id": "str",
    "other_id": "str",
    "kind": "str",
    "outcomes": "int64",
    "done": "str",
}
"""Columns of a table of conflicts; an entry without a question or a model counts several."""

DEFAULTS = {
    "reordered": "move",
    "edited": "commonest",
    "changed_key": "commonest",
    "shuffled": "keep",
    "repeated_rows": "conflict",
    "repeated_runs": "refuse",
}
"""What the configuration says if it says nothing."""

BY_NAME = {**DEFAULTS, "reordered": "name", "edited": "name", "changed_key": "name"}
"""What the published study did."""

KEEP, MISS, MOVE = 0, 1, 2
_KEY_OF = {
    "reordered": "reordered",
    "renamed": "reordered",
    "edited options": "edited",
    "other question": "edited",
    "changed key": "changed_key",
    "shuffled options": "shuffled",
}


class Variant(NamedTuple):
    """One content that models were asked under one name, by its hashes (:class:`benchmirt.outcomes.Asked`)."""

    name: str
    benchmark: str
    recipe: str
    content: str
    stem: str
    question: str
    key: str | None


class Fate(NamedTuple):
    """What becomes of the outcomes of a variant.

    Attributes
    ----------
    kind
        Kind of conflict; None where there is none.
    action
        :data:`KEEP`, :data:`MISS` or :data:`MOVE`.
    target
        The item that they belong to, where it is another one.
    done
        The action in words.
    """

    kind: str | None = None
    action: int = KEEP
    target: str | None = None
    done: str = ""


@dataclass(frozen=True)
class Plan:
    """What becomes of the outcomes of questions whose name or content is contested.

    Attributes
    ----------
    facts
        Facts of items of each source, one row per item: those of what the name stands for.
    variants, fates
        Each content that some name has beside others, or that has several names, and what becomes of it.
    only
        For each source, item -> variant of rows that do not tell their content, where the item's facts do.
    excluded
        Items that are excluded as a whole -> the kind of conflict.
    aliases
        Items whose outcomes all belong to another item -> that item.
    notes
        Conflicts of items, whatever the model: rows of the table of conflicts.
    """

    facts: list[pd.DataFrame]
    variants: list[Variant]
    fates: list[Fate]
    only: list[dict[str, int]]
    excluded: dict[str, str]
    aliases: dict[str, str]
    notes: list[dict[str, Any]]


class Lookup:
    """Finds the variant of a row.

    Parameters
    ----------
    variants
        Of a :class:`Plan`.
    only
        For each source, item -> variant of rows without content.
    place
        The code of each item.
    """

    def __init__(
        self, variants: Sequence[Variant], only: Sequence[Mapping[str, int]], place: Mapping[str, int]
    ) -> None:
        item = np.array([place[one.name] for one in variants], dtype=np.int64)
        content = np.array([int(one.content, 16) for one in variants], dtype=np.uint64)
        self._contents = np.unique(content)
        key = item * max(1, self._contents.size) + np.searchsorted(self._contents, content)
        self._variant = np.argsort(key, kind="stable")
        self._key = key[self._variant]
        size = max(place.values(), default=-1) + 1
        self._involved = np.zeros(size, dtype=bool)
        self._involved[item] = True
        self._only = []
        for known in only:
            default = np.full(size, -1, dtype=np.int64)
            for name, variant in known.items():
                default[place[name]] = variant
            self._only.append(default)

    def __call__(
        self, source: int, item: NDArray[np.int64], content: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Return the variant of each row of a source, -1 where it is not contested or not known."""
        found = np.full(item.size, -1, dtype=np.int64)
        at = np.flatnonzero(self._involved[item])
        if not at.size:
            return found
        own = content[at]
        place = np.minimum(np.searchsorted(self._contents, own), self._contents.size - 1)
        key = item[at] * self._contents.size + place
        spot = np.minimum(np.searchsorted(self._key, key), self._key.size - 1)
        known = (self._contents[place] == own) & (self._key[spot] == key)
        found[at[known]] = self._variant[spot[known]]
        blank = at[own == 0]
        found[blank] = self._only[source][item[blank]]
        return found


# -- what there is ------------------------------------------------------------------------------------------


def _texts(column: pd.Series) -> list[Any]:
    """Return a column of texts, None where missing."""
    return [None if missing else text for text, missing in zip(column, column.isna(), strict=True)]


def _known(facts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all contents that are known: a row per source, item and content, columns as :class:`Variant` has them."""
    columns = {
        "question_id": "name",
        "benchmark": "benchmark",
        "hashed_from": "recipe",
        "content_hash": "content",
        "stem_hash": "stem",
        "question_hash": "question",
        "key_hash": "key",
    }
    parts = [
        own.loc[own["question_hash"].notna(), list(columns)].assign(source=number)
        for number, own in enumerate(facts)
    ]
    known = pd.concat(parts, ignore_index=True).rename(columns=columns)
    given = known["recipe"] == GIVEN  # a table says what the content is called, not what it is made of
    for column in ("content", "stem"):
        known[column] = known[column].where(~given, known["question"])
    return known


def _contested(known: pd.DataFrame) -> list[Variant]:
    """Return the contents of names with several, or that share one with another name."""
    unique = known.drop_duplicates(["name", "content", "recipe"], ignore_index=True)
    several = unique["name"][unique.duplicated(["recipe", "name"])]
    shared = unique.drop_duplicates(["recipe", "name", "question"])
    keys = ["recipe", "benchmark", "question"]
    names = {*several, *shared.loc[shared.duplicated(keys, keep=False), "name"]}
    chosen = unique[unique["name"].isin(names)]
    columns = [_texts(chosen[name]) for name in Variant._fields]
    return [Variant(*row) for row in zip(*columns, strict=True)]


def _only(known: pd.DataFrame, variants: Sequence[Variant], sources: int) -> list[dict[str, int]]:
    """Return, for each source, item -> variant where a table says what the content of its items is."""
    place = {(one.name, one.content): number for number, one in enumerate(variants) if one.recipe == GIVEN}
    found: list[dict[str, int]] = [{} for _ in range(sources)]
    given = known[known["recipe"] == GIVEN]
    for number, name, content in zip(given["source"], given["name"], given["content"], strict=True):
        if (name, content) in place:
            found[number][name] = place[name, content]
    return found


@dataclass(frozen=True)
class _Rows:
    """The rows of all sources, and how their variants are found."""

    sources: Sequence[Sequence[Path]]
    models: Mapping[str, int]
    items: Mapping[str, int]
    find: Lookup

    def __iter__(self) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        for number, shards in enumerate(self.sources):
            for shard in shards:
                for block in outcomes.blocks(shard, self.models, self.items):
                    yield block, self.find(number, block.item, block.content)


def _tally(rows: _Rows, variants: int) -> list[tuple[int, int]]:
    """Return, for each variant, how many outcomes it has, and less the place of its first model: the weight of it."""
    count = np.zeros(variants, dtype=np.int64)
    first = np.full(variants, len(rows.models), dtype=np.int64)
    for block, variant in rows:
        at = variant >= 0
        count += np.bincount(variant[at], minlength=variants)
        np.minimum.at(first, variant[at], block.model[at])
    return list(zip(count.tolist(), (-first).tolist(), strict=True))


def _together(rows: _Rows, groups: Sequence[Sequence[int]], variants: int) -> list[bool]:
    """Say of each group of variants, which are one question under several names, whether a model met two of them."""
    if not groups:
        return []
    group_of = np.full(variants + 1, -1, dtype=np.int64)  # the last for rows of no variant
    for number, members in enumerate(groups):
        group_of[list(members)] = number
    seen = []
    for block, variant in rows:
        group = group_of[variant]
        at = group >= 0
        seen.append(np.unique(np.column_stack([group[at], block.model[at], block.item[at]]), axis=0))
    met = np.unique(np.concatenate(seen), axis=0)
    pairs, times = np.unique(met[:, :2], axis=0, return_counts=True)
    twice = set(pairs[times > 1, 0].tolist())
    return [number in twice for number in range(len(groups))]


# -- what becomes of it -------------------------------------------------------------------------------------

_Weight = tuple[int, int]
_Owner = dict[tuple[str, str, str], str]


def plan(
    facts: Sequence[pd.DataFrame],
    sources: Sequence[Sequence[Path]],
    models: Mapping[str, int],
    policy: Mapping[str, str],
) -> Plan:
    """Find names that stand for several contents and contents with several names, and say what becomes of them.

    Parameters
    ----------
    facts
        Facts of items of each source (:func:`benchmirt.outcomes.item_schema`), a row per item and content.
    sources
        The shards of each source.
    models
        The code of each model; of equally common contents the one counts that the model with the least code was asked.
    policy
        Section ``joining`` of the configuration.
    """
    notes = _not_compared(facts)
    known = _known(facts)
    variants = _contested(known)
    only = _only(known, variants, len(facts))
    names = dict.fromkeys(one.name for one in variants)
    items = {name: place for place, name in enumerate(names)}
    items |= {name: len(names) for own in facts for name in own["question_id"] if name not in names}
    rows = _Rows(sources, models, items, Lookup(variants, only, items))
    weight = _tally(rows, len(variants)) if variants else []
    standing = _standing(variants, weight)
    owner, aliases, same = _owners(rows, variants, weight, standing)
    fates = [_fate(one, standing[one.recipe, one.name], owner, policy) for one in variants]
    return Plan(
        facts=[_facts(own, standing, variants, fates) for own in facts],
        variants=variants,
        fates=fates,
        only=only,
        excluded={
            one.name: str(fate.kind)
            for one, fate in zip(variants, fates, strict=True)
            if fate.done == _EXCLUDED
        },
        aliases=aliases if policy["reordered"] == "move" else {},
        notes=[*notes, *same],
    )


_EXCLUDED, _APART = "the whole item is excluded", "an item of its own"


class _Standing(NamedTuple):
    """What a name stands for: hashes of the stem, the question, its right answer (None: unknown), the content."""

    stem: str
    question: str
    key: str | None
    content: str


def _heaviest(texts: Iterable[str], weights: Iterable[_Weight]) -> str:
    """Return the text whose weights add up to most; of equals that of the first model, and then the least text."""
    total: dict[str, tuple[int, int]] = {}
    for text, (count, first) in zip(texts, weights, strict=True):
        before = total.get(text)
        total[text] = (count, first) if before is None else (before[0] + count, max(before[1], first))
    return min(total, key=lambda text: (-total[text][0], -total[text][1], natural(text)))


def _standing(variants: Sequence[Variant], weight: Sequence[_Weight]) -> dict[tuple[str, str], _Standing]:
    """Return what each name stands for, by recipe and name."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(variants):
        groups.setdefault((one.recipe, one.name), []).append(place)
    found = {}
    for family, places in groups.items():
        question = _heaviest([variants[k].question for k in places], [weight[k] for k in places])
        places = [k for k in places if variants[k].question == question]
        keyed = [k for k in places if variants[k].key is not None]
        key = _heaviest([str(variants[k].key) for k in keyed], [weight[k] for k in keyed]) if keyed else None
        places = [k for k in places if variants[k].key == key]
        content = _heaviest([variants[k].content for k in places], [weight[k] for k in places])
        found[family] = _Standing(variants[places[0]].stem, question, key, content)
    return found


def _owners(
    rows: _Rows,
    variants: Sequence[Variant],
    weight: Sequence[_Weight],
    standing: Mapping[tuple[str, str], _Standing],
) -> tuple[_Owner, dict[str, str], list[dict[str, Any]]]:
    """Return the name to which each question belongs, other names of one question, and questions met twice."""
    members: dict[tuple[str, str, str], list[int]] = {}
    for place, one in enumerate(variants):
        if standing[one.recipe, one.name].question == one.question:
            members.setdefault((one.recipe, one.benchmark, one.question), []).append(place)
    owner = {key: variants[places[0]].name for key, places in members.items()}
    several = {key: own for key, own in members.items() if len({variants[k].name for k in own}) > 1}
    aliases: dict[str, str] = {}
    notes: list[dict[str, Any]] = []
    met = _together(rows, list(several.values()), len(variants))
    for (key, places), twice in zip(several.items(), met, strict=True):
        names = [variants[k].name for k in places]
        best = _heaviest(names, [weight[k] for k in places])
        others = sorted({*names} - {best}, key=natural)
        if twice:
            del owner[key]
            notes += [_note(key[1], name, best, "same question", 0, "both are kept") for name in others]
        else:
            owner[key] = best
            aliases |= dict.fromkeys(others, best)
    return owner, aliases, notes


def _fate(one: Variant, stands: _Standing, owner: _Owner, policy: Mapping[str, str]) -> Fate:
    """Return what becomes of a variant."""
    kind, own = _kind(one, stands, owner)
    if kind is None:
        return Fate()
    how = policy[_KEY_OF[kind]]
    if how == "name":
        return Fate(kind, KEEP, None, "joined by name")
    if kind in ("reordered", "renamed"):
        if how == "move":
            return Fate(kind, MOVE, own, "moved to the other name")
        return Fate(kind, MISS, own, "missing")
    if kind == "shuffled options":
        if how == "keep":
            return Fate(kind, KEEP, None, "kept: answers are compared by their text")
        return Fate(kind, MISS, None, "missing")
    if how == "split":
        mark = one.key if kind == "changed key" else one.question
        return Fate(kind, MOVE, f"{one.name}~{str(mark)[:8]}", _APART)
    return Fate(kind, MISS, None, _EXCLUDED if how == "exclude" else "missing")


def _kind(one: Variant, stands: _Standing, owner: _Owner) -> tuple[str | None, str | None]:
    """Return the kind of conflict of a variant, None if there is none, and the name that its question belongs to."""
    own = owner.get((one.recipe, one.benchmark, one.question))
    if one.question != stands.question:
        if own is not None:
            return "reordered", own
        return ("edited options" if one.stem == stands.stem else "other question"), None
    if own is not None and own != one.name:
        return "renamed", own
    if one.key is not None and stands.key is not None and one.key != stands.key:
        return "changed key", None
    alike = one.content == stands.content or one.key != stands.key
    return (None if alike else "shuffled options"), None


def _facts(
    own: pd.DataFrame,
    standing: Mapping[tuple[str, str], _Standing],
    variants: Sequence[Variant],
    fates: Sequence[Fate],
) -> pd.DataFrame:
    """Return a source's facts with one row per item: those of what its name stands for, and of items split off."""
    if not variants:
        return own.drop_duplicates("question_id", ignore_index=True)
    apart = {
        (one.name, one.content): str(fate.target)
        for one, fate in zip(variants, fates, strict=True)
        if fate.done == _APART
    }
    columns = ["hashed_from", "question_id", "question_hash", "key_hash", "content_hash"]
    rank, split = [], []
    for place, row in enumerate(zip(*(_texts(own[name]) for name in columns), strict=True)):
        recipe, name, question, key, content = row
        stands = standing.get((recipe, name))
        if stands is None:
            rank.append(2 if question is None else 0)
        elif question != stands.question or (None not in (key, stands.key) and key != stands.key):
            rank.append(9)
        else:
            rank.append(int(content != stands.content))
        if (name, content) in apart:
            split.append(own.iloc[[place]].assign(question_id=apart[name, content]))
    best = np.array(rank)
    order = np.argsort(best, kind="stable")
    kept = own.iloc[order[best[order] < 9]].drop_duplicates("question_id").sort_index()
    return pd.concat([kept, *split], ignore_index=True).drop_duplicates("question_id", ignore_index=True)


def _note(
    benchmark: str, name: str | None, other: str | None, kind: str, count: int, done: str
) -> dict[str, Any]:
    return {
        "source": None,
        "model": None,
        "benchmark": benchmark,
        "question_id": name,
        "other_id": other,
        "kind": kind,
        "outcomes": count,
        "done": done,
    }


def _not_compared(facts: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Return how many items of each benchmark several sources have whose contents cannot be compared."""
    if len(facts) < 2:
        return []
    columns = ["question_id", "benchmark", "hashed_from"]
    named = pd.concat([own[columns].assign(source=number) for number, own in enumerate(facts)])
    named = named[named.groupby("question_id")["source"].transform("nunique") > 1]
    if named.empty:
        return []
    recipes = named.groupby(["benchmark", "question_id"], sort=False)["hashed_from"]
    alone = (recipes.nunique(dropna=False) > 1) | recipes.apply(lambda own: bool(own.isna().all()))
    counts = alone.groupby("benchmark", sort=False).sum()
    return [
        _note(str(benchmark), None, None, "not compared", int(count), "items joined by name alone")
        for benchmark, count in counts.items()
        if count
    ]


# -- the table ----------------------------------------------------------------------------------------------


def table(entries: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return conflicts as a table, sorted; names only, never a text of a question or an answer."""
    made = pd.DataFrame(
        [{name: entry.get(name) for name in COLUMNS} for entry in entries], columns=list(COLUMNS)
    )
    for name, kind in COLUMNS.items():
        values = [np.nan if value is None else value for value in made[name]] if kind == "str" else made[name]
        made[name] = pd.Series(values, dtype=kind, index=made.index)
    keys = zip(
        made["kind"].fillna(""),
        made["benchmark"].fillna(""),
        (natural(str(text)) for text in made["question_id"].fillna("")),
        made["model"].fillna(""),
        made["source"].fillna(""),
        strict=True,
    )
    order = [place for place, _ in sorted(enumerate(keys), key=lambda one: one[1])]
    return made.iloc[order].reset_index(drop=True)


def counts(made: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how many outcomes, models and items there are of each kind of conflict, and what was done."""
    return [
        {
            "kind": kind,
            "done": done,
            "outcomes": int(own["outcomes"].sum()),
            "models": int(own["model"].nunique()),
            "benchmarks": sorted(own["benchmark"].dropna().unique()),
            "listed": int(own["question_id"].notna().sum()),
        }
        for (kind, done), own in made.groupby(["kind", "done"], sort=True)
    ]
