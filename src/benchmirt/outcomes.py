"""The outcome table: what every reader of a source hands on.

An outcome is 1, 0 or missing for a reason. On disk, a source is a folder with

- ``shard{n}.parquet``: model, question_id, outcome, reason, score, content_hash, published, a row per model and
  item (an item without a row was not run); ``published`` is the outcome where an outcome that could not be
  graded counts as in the published study;
- ``shard{n}.manifests.json``: one manifest per model (scorer, version, files and their hashes, counts);
- ``items.parquet`` and ``models.parquet``: the facts that the source gives of its items and models.

A source of raw files has a folder for each job that collects some of its models.

Where models of one source were asked different things under one name, the item has a row of facts for
each, told apart by ``content_hash``; :data:`ITEM_ORIGINS` says in what they differ.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.files import atomic, read_json, write_json, write_parquet
from benchmirt.ids import slug

if TYPE_CHECKING:
    import pandera.pandas as pandera
    import pyarrow as pa

__all__ = [
    "FAILURES",
    "GIVEN",
    "ITEM_FACTS",
    "ITEM_ORIGINS",
    "MODEL_FACTS",
    "REASONS",
    "Asked",
    "Block",
    "OneModel",
    "Outcomes",
    "blocks",
    "differ",
    "digest",
    "facts",
    "item_schema",
    "manifests",
    "model_schema",
    "outcome_schema",
    "write",
    "write_models",
]

REASONS = (
    "not_run",
    "empty",
    "truncated",
    "unparsed",
    "judge_failed",
    "timeout",
    "conflict",
    "excluded",
    "no_threshold",
    "errored",
)
"""Why an outcome is missing; `no_threshold`: there is a grade, and no rule says from which grade on it is a 1."""

FAILURES = ("empty", "truncated", "unparsed", "judge_failed", "timeout", "errored")
"""The reasons that mean: the model was run, and running or grading it failed."""

ITEM_FACTS = {
    "question_id": "str",
    "benchmark": "str",
    "category": "str",
    "subcategory_one": "str",
    "subcategory_two": "str",
    "subcategory_three": "str",
    "domain_superset": "str",
    "question_type": "str",
    "testlet": "str",
    "options": "Int16",
    "inverted": "bool",
    "content_hash": "str",
    "scored_as": "str",
}
"""Facts of an item and their types."""

ITEM_ORIGINS = ("stem_hash", "question_hash", "key_hash", "hashed_from", "scorer")
"""What a source's table of items tells besides: the parts of :class:`Asked`, the recipe by which they were hashed
(hashes of two recipes cannot be compared), and what graded the item."""

MODEL_FACTS = {
    "model": "str",
    "canonical": "str",
    "publisher": "str",
    "family": "str",
    "lineage": "str",
    "size_b": "float64",
    "reasoning": "boolean",
    "released": "str",
    "notes": "str",
}
"""Facts of a model and their types."""

GIVEN = "as given in the table"
"""Recipe of hashes that a table's own column of contents gives."""

_ROWS_A_GROUP = 250_000


class Asked(NamedTuple):
    """Hashes of what a row asked, 16 hexadecimal digits each.

    Attributes
    ----------
    content
        All of it, options in their order, with the right answer.
    stem
        The question without its answer options.
    question
        The stem and the options in any order.
    key
        The right answer as a text, not as a letter; None if it is not known.
    """

    content: str
    stem: str
    question: str
    key: str | None


def digest(text: str) -> str:
    """Return an 8-byte hash of a text in hexadecimal."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def differ(asked: Iterable[Asked | None]) -> bool:
    """Say whether some rows asked different things, or knew different right answers; the order of options is nothing."""
    known = [one for one in asked if one is not None]
    return len({one.question for one in known}) > 1 or len({one.key for one in known if one.key}) > 1


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one source.

    Attributes
    ----------
    models, items
        Names of the N models and J items.
    outcome
        int8 of shape (J, N): 1, 0, or -1 where missing.
    reason
        uint8 of shape (J, N): 0 where there is an outcome, else 1 + the place in :data:`REASONS`.
    item_facts
        A row per item: :data:`ITEM_FACTS`, :data:`ITEM_ORIGINS`, and ``row`` and ``fact_row``, the rows of the
        files it comes from.
    model_facts
        A row per model: :data:`MODEL_FACTS`, and ``fact_row``.
    manifest
        What all models of the source share: scorer, version, files.
    published
        int8 of shape (J, N): the outcomes under the published policy; the same as `outcome` if None.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    outcome: NDArray[np.int8]
    reason: NDArray[np.uint8]
    item_facts: pd.DataFrame
    model_facts: pd.DataFrame
    manifest: Mapping[str, Any]
    published: NDArray[np.int8] | None = None


@dataclass(frozen=True)
class OneModel:
    """The outcomes of one model on the items that it was run on.

    Attributes
    ----------
    model
        Its name.
    items
        Names of its items.
    outcome, published
        int8 of shape (J,): 1, 0, or -1 where missing, under the honest and the published policy.
    reason
        uint8 of shape (J,): as in :class:`Outcomes`.
    score
        float64 of shape (J,): the number that was graded, NaN where there is none.
    content
        Hash of what was asked (:attr:`Asked.content`), or None.
    manifest
        Scorer, version, files, and whatever else its reader tells.
    """

    model: str
    items: tuple[str, ...]
    outcome: NDArray[np.int8]
    published: NDArray[np.int8]
    reason: NDArray[np.uint8]
    score: NDArray[np.float64]
    content: Sequence[str | None]
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """Some rows of a shard, in code form.

    Attributes
    ----------
    model, item
        Places in the lists of names that :func:`blocks` was given; int64 of shape (n,).
    outcome
        int8 of shape (n,): 1, 0 or -1.
    published
        int8 of shape (n,): the same under the published policy.
    reason
        uint8 of shape (n,): as in :class:`Outcomes`.
    content
        uint64 of shape (n,): hash of what was asked, 0 where it is not known.
    """

    model: NDArray[np.int64]
    item: NDArray[np.int64]
    outcome: NDArray[np.int8]
    published: NDArray[np.int8]
    reason: NDArray[np.uint8]
    content: NDArray[np.uint64]


# -- contracts ----------------------------------------------------------------------------------------------


@functools.cache
def outcome_schema() -> pandera.DataFrameSchema:
    """Return the contract of a shard's rows."""
    import pandera.pandas as pandera

    one_of_two = pandera.Check(
        lambda frame: frame["outcome"].isna() == frame["reason"].notna(),
        error="a row has an outcome or a reason, and never both",
    )
    kept = pandera.Check(
        lambda frame: frame["outcome"].isna() | (frame["outcome"] == frame["published"]).fillna(False),
        error="an outcome is the same under both policies",
    )
    category = pd.CategoricalDtype
    return pandera.DataFrameSchema(
        {
            "model": pandera.Column(category, nullable=False),
            "question_id": pandera.Column(category, nullable=False),
            "outcome": pandera.Column("Int8", pandera.Check.isin([0, 1]), nullable=True),
            "reason": pandera.Column(category, pandera.Check.isin(list(REASONS)), nullable=True),
            "score": pandera.Column("float64", nullable=True),
            "content_hash": pandera.Column(
                str, pandera.Check.str_matches(r"^[0-9a-f]{16}$"), nullable=True, coerce=False
            ),
            "published": pandera.Column("Int8", pandera.Check.isin([0, 1]), nullable=True),
        },
        checks=[one_of_two, kept],
        strict=True,
        ordered=True,
    )


def _facts_schema(facts: Mapping[str, str], required: tuple[str, ...], key: str) -> dict[str, pandera.Column]:
    import pandera.pandas as pandera

    never_null = {*required, "inverted"}
    return {
        name: pandera.Column(kind, nullable=name not in never_null, unique=name == key == "model")
        for name, kind in facts.items()
    }


@functools.cache
def item_schema() -> pandera.DataFrameSchema:
    """Return the contract of a source's facts of items."""
    import pandera.pandas as pandera

    columns = _facts_schema(ITEM_FACTS, ("question_id", "benchmark"), "question_id")
    columns["options"] = pandera.Column("Int16", pandera.Check.ge(2), nullable=True)
    origins = {name: pandera.Column("str", nullable=True) for name in ITEM_ORIGINS}
    rows = {name: pandera.Column("Int64", nullable=True) for name in ("row", "fact_row")}
    return pandera.DataFrameSchema(
        {**columns, **origins, **rows}, unique=["question_id", "content_hash"], strict=True, ordered=True
    )


@functools.cache
def model_schema() -> pandera.DataFrameSchema:
    """Return the contract of a source's facts of models."""
    import pandera.pandas as pandera

    columns = _facts_schema(MODEL_FACTS, ("model",), "model")
    columns["size_b"] = pandera.Column("float64", pandera.Check.gt(0), nullable=True)
    rows = {"fact_row": pandera.Column("Int64", nullable=True)}
    return pandera.DataFrameSchema({**columns, **rows}, strict=True, ordered=True)


# -- writing ------------------------------------------------------------------------------------------------


def write(outcomes: Outcomes, folder: str | Path, shard: int = 0) -> list[Path]:
    """Write the outcomes of a source as one shard; return the paths.

    Raises
    ------
    pandera.errors.SchemaError
        If the outcomes break the contract, which is a fault of the reader that made them.
    """
    home = Path(folder)
    items = item_schema().validate(outcomes.item_facts)
    models = model_schema().validate(outcomes.model_facts)
    paths = [
        home / f"shard{shard}.parquet",
        home / f"shard{shard}.manifests.json",
        home / "items.parquet",
        home / "models.parquet",
    ]
    size, count = outcomes.outcome.shape
    a_group = max(1, _ROWS_A_GROUP // max(1, size))
    _write_rows((_long(outcomes, k, min(count, k + a_group)) for k in range(0, count, a_group)), paths[0])
    write_json(_manifests(outcomes), paths[1])
    write_parquet(items, paths[2])
    write_parquet(models, paths[3])
    return paths


def write_models(
    shards: Mapping[str, Sequence[OneModel]],
    item_facts: pd.DataFrame,
    model_facts: pd.DataFrame,
    folder: str | Path,
) -> list[Path]:
    """Write the outcomes of some models of a source, and their facts; return the paths.

    Parameters
    ----------
    shards
        Name of a shard without its ending -> its models.
    item_facts, model_facts
        As in :class:`Outcomes`; an item may have a row for each content.
    folder
        The folder of the files.

    Raises
    ------
    pandera.errors.SchemaError
        If the outcomes break the contract, which is a fault of the reader that made them.
    """
    home = Path(folder)
    items, models = item_schema().validate(item_facts), model_schema().validate(model_facts)
    paths = []
    for name, members in shards.items():
        path = home / f"{name}.parquet"
        _write_rows((_rows(one) for one in members), path)
        paths.append(path)
        paths.append(home / f"{name}.manifests.json")
        write_json([_manifest(one) for one in members], paths[-1])
    paths += [home / "items.parquet", home / "models.parquet"]
    write_parquet(items, paths[-2])
    write_parquet(models, paths[-1])
    return paths


def _write_rows(frames: Iterable[pd.DataFrame], path: Path) -> None:
    """Check frames and write them as one shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [
            ("model", names),
            ("question_id", names),
            ("outcome", pa.int8()),
            ("reason", names),
            ("score", pa.float64()),
            ("content_hash", pa.string()),
            ("published", pa.int8()),
        ]
    )
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", dictionary_pagesize_limit=1 << 26) as writer,
    ):
        checked = (outcome_schema().validate(frame) for frame in frames)
        tables = (pa.Table.from_pandas(frame, schema=schema, preserve_index=False) for frame in checked)
        for group in _groups(tables):
            writer.write_table(group, row_group_size=_ROWS_A_GROUP * 2)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put tables together up to a number of rows: a group holds a name or a hash once, however many models share it."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for table in tables:
        if waiting and sum(map(len, waiting)) + len(table) > _ROWS_A_GROUP:
            yield pa.concat_tables(waiting).unify_dictionaries()
            waiting = []
        waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting).unify_dictionaries()


def _nullable(value: NDArray[np.int8]) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.maximum(value, 0), value < 0)


def _reasons(reason: NDArray[np.uint8]) -> pd.Categorical[Any]:
    return pd.Categorical.from_codes(reason.astype(np.int8) - np.int8(1), categories=pd.Index(REASONS))


def _rows(one: OneModel) -> pd.DataFrame:
    """Return the rows of one model."""
    size = len(one.items)
    return pd.DataFrame(
        {
            "model": pd.Categorical.from_codes(
                np.zeros(size, dtype=np.int8), categories=pd.Index([one.model])
            ),
            "question_id": pd.Categorical.from_codes(
                np.arange(size, dtype=np.int32), categories=pd.Index(one.items)
            ),
            "outcome": _nullable(one.outcome),
            "reason": _reasons(one.reason),
            "score": one.score,
            "content_hash": pd.Series(
                [np.nan if text is None else text for text in one.content], dtype="str"
            ),
            "published": _nullable(one.published),
        }
    )


def _long(outcomes: Outcomes, start: int, stop: int) -> pd.DataFrame:
    """Return the rows of the models `start` to `stop`, model by model."""
    size, models = len(outcomes.items), stop - start
    published = outcomes.outcome if outcomes.published is None else outcomes.published
    return pd.DataFrame(
        {
            "model": pd.Categorical.from_codes(
                np.repeat(np.arange(start, stop, dtype=np.int32), size), categories=pd.Index(outcomes.models)
            ),
            "question_id": pd.Categorical.from_codes(
                np.tile(np.arange(size, dtype=np.int32), models), categories=pd.Index(outcomes.items)
            ),
            "outcome": _nullable(outcomes.outcome[:, start:stop].T.ravel()),
            "reason": _reasons(outcomes.reason[:, start:stop].T.ravel()),
            "score": np.full(size * models, np.nan),
            "content_hash": pd.Series(np.nan, index=range(size * models), dtype="str"),
            "published": _nullable(published[:, start:stop].T.ravel()),
        }
    )


def _manifest(one: OneModel) -> dict[str, Any]:
    return {
        **one.manifest,
        "model": one.model,
        "slug": slug(one.model),
        "counts": _counts(one.outcome, one.reason),
    }


def _counts(outcome: NDArray[np.int8], reason: NDArray[np.uint8]) -> dict[str, Any]:
    numbers = np.bincount(reason, minlength=len(REASONS) + 1)[1:]
    return {
        "items": len(outcome),
        "observed": int((outcome >= 0).sum()),
        "passed": int((outcome == 1).sum()),
        "missing": {why: int(number) for why, number in zip(REASONS, numbers, strict=True) if number},
    }


def _manifests(outcomes: Outcomes) -> list[dict[str, Any]]:
    return [
        {
            **outcomes.manifest,
            "model": model,
            "slug": slug(model),
            "counts": _counts(outcomes.outcome[:, place], outcomes.reason[:, place]),
        }
        for place, model in enumerate(outcomes.models)
    ]


# -- reading ------------------------------------------------------------------------------------------------


def facts(shard: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the facts of items and of models that stand beside a shard."""
    home = Path(shard).parent
    items = pd.read_parquet(home / "items.parquet")
    models = pd.read_parquet(home / "models.parquet")
    return item_schema().validate(items), model_schema().validate(models)


def manifests(shard: str | Path) -> list[dict[str, Any]]:
    """Return the manifests of the models of a shard."""
    path = Path(shard)
    read: list[dict[str, Any]] = read_json(
        path.with_name(path.name.removesuffix(".parquet") + ".manifests.json")
    )
    return read


def blocks(
    shard: str | Path, model_place: Mapping[str, int], item_place: Mapping[str, int]
) -> Iterator[Block]:
    """Yield the rows of a shard in blocks of about a quarter of a million.

    Parameters
    ----------
    shard
        A ``shard{n}.parquet``.
    model_place, item_place
        The code of each name.

    Raises
    ------
    KeyError
        If the shard holds a name that has no code.
    """
    import pyarrow.parquet as pq

    names = ["model", "question_id", "outcome", "published", "reason", "content_hash"]

    def codes(column: pa.ChunkedArray, place: Mapping[str, int]) -> NDArray[np.int64]:
        array = _dictionary(column)
        own = np.array([place[name] for name in array.dictionary.to_pylist()], dtype=np.int64)
        places: NDArray[np.int64] = own[array.indices.to_numpy()]
        return places

    reason_place = {name: number for number, name in enumerate(REASONS, start=1)}
    with pq.ParquetFile(shard, read_dictionary=["content_hash"]) as content:
        for group in range(content.num_row_groups):
            table = content.read_row_group(group, columns=names)
            reason = _dictionary(table["reason"])
            missing = reason.indices.fill_null(-1).to_numpy()
            own = np.array(
                [reason_place[name] for name in reason.dictionary.to_pylist()] + [0], dtype=np.uint8
            )
            yield Block(
                model=codes(table["model"], model_place),
                item=codes(table["question_id"], item_place),
                outcome=table["outcome"].fill_null(-1).to_numpy().astype(np.int8),
                published=table["published"].fill_null(-1).to_numpy().astype(np.int8),
                reason=own[missing],
                content=_content(_dictionary(table["content_hash"])),
            )


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column of texts as one array of codes."""
    import pyarrow as pa

    array = column.cast(pa.dictionary(pa.int32(), pa.string())).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
    return array


def _content(column: pa.DictionaryArray) -> NDArray[np.uint64]:
    """Return hashes of 16 hexadecimal digits as numbers, 0 where there is none."""
    texts = column.dictionary.to_pylist()
    own = np.zeros(len(texts) + 1, dtype=np.uint64)  # the last for rows without one
    own[:-1] = np.frombuffer(bytes.fromhex("".join(texts)), dtype=">u8")
    numbers: NDArray[np.uint64] = own[column.indices.fill_null(-1).to_numpy()]
    return numbers
