"""The outcome table: what every reader of a source hands on.

An outcome is 1, 0 or missing for a reason. On disk, a source is a folder with

- ``shard{n}.parquet``: model, question_id, outcome, reason, score, content_hash, a row per model and item;
- ``shard{n}.manifests.json``: one manifest per model (scorer, version, files and their hashes, counts);
- ``items.parquet`` and ``models.parquet``: the facts that the source gives of its items and models.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.files import atomic, read_json, write_json, write_parquet
from benchmirt.ids import slug

if TYPE_CHECKING:
    import pandera.pandas as pandera

__all__ = [
    "FAILURES",
    "ITEM_FACTS",
    "MODEL_FACTS",
    "REASONS",
    "Block",
    "Outcomes",
    "blocks",
    "facts",
    "item_schema",
    "manifests",
    "model_schema",
    "outcome_schema",
    "write",
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
)
"""Why an outcome is missing."""

FAILURES = ("empty", "truncated", "unparsed", "judge_failed", "timeout")
"""The reasons that mean: the model was run, and grading it failed."""

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

_ROWS_A_GROUP = 1_000_000


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
        A row per item: :data:`ITEM_FACTS`, and ``row`` and ``fact_row``, the rows of the files it comes from.
    model_facts
        A row per model: :data:`MODEL_FACTS`, and ``fact_row``.
    manifest
        What all models of the source share: scorer, version, files.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    outcome: NDArray[np.int8]
    reason: NDArray[np.uint8]
    item_facts: pd.DataFrame
    model_facts: pd.DataFrame
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
    reason
        uint8 of shape (n,): as in :class:`Outcomes`.
    """

    model: NDArray[np.int64]
    item: NDArray[np.int64]
    outcome: NDArray[np.int8]
    reason: NDArray[np.uint8]


# -- contracts ----------------------------------------------------------------------------------------------


def _text(nullable: bool = True) -> pandera.Column:
    import pandera.pandas as pandera

    return pandera.Column(str, nullable=nullable, coerce=False)


@functools.cache
def outcome_schema() -> pandera.DataFrameSchema:
    """Return the contract of a shard's rows."""
    import pandera.pandas as pandera

    one_of_two = pandera.Check(
        lambda frame: frame["outcome"].isna() == frame["reason"].notna(),
        error="a row has an outcome or a reason, and never both",
    )
    category = pd.CategoricalDtype
    return pandera.DataFrameSchema(
        {
            "model": pandera.Column(category, nullable=False),
            "question_id": pandera.Column(category, nullable=False),
            "outcome": pandera.Column("Int8", pandera.Check.isin([0, 1]), nullable=True),
            "reason": pandera.Column(category, pandera.Check.isin(list(REASONS)), nullable=True),
            "score": pandera.Column("float64", nullable=True),
            "content_hash": _text(),
        },
        checks=one_of_two,
        strict=True,
        ordered=True,
    )


def _facts_schema(facts: Mapping[str, str], required: tuple[str, ...], key: str) -> dict[str, pandera.Column]:
    import pandera.pandas as pandera

    never_null = {*required, "inverted"}
    return {
        name: pandera.Column(kind, nullable=name not in never_null, unique=name == key)
        for name, kind in facts.items()
    }


@functools.cache
def item_schema() -> pandera.DataFrameSchema:
    """Return the contract of a source's facts of items."""
    import pandera.pandas as pandera

    columns = _facts_schema(ITEM_FACTS, ("question_id", "benchmark"), "question_id")
    columns["options"] = pandera.Column("Int16", pandera.Check.ge(2), nullable=True)
    rows = {name: pandera.Column("Int64", nullable=True) for name in ("row", "fact_row")}
    return pandera.DataFrameSchema({**columns, **rows}, strict=True, ordered=True)


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
    import pyarrow as pa
    import pyarrow.parquet as pq

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
    with atomic(paths[0]) as temporary:
        writer: pq.ParquetWriter | None = None
        for start in range(0, count, a_group):
            frame = outcome_schema().validate(_long(outcomes, start, min(count, start + a_group)))
            table = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(
                    temporary, table.schema, compression="zstd", dictionary_pagesize_limit=1 << 26
                )
            writer.write_table(table, row_group_size=_ROWS_A_GROUP * 2)
        if writer is not None:
            writer.close()
    write_json(_manifests(outcomes), paths[1])
    write_parquet(items, paths[2])
    write_parquet(models, paths[3])
    return paths


def _long(outcomes: Outcomes, start: int, stop: int) -> pd.DataFrame:
    """Return the rows of the models `start` to `stop`, model by model."""
    size, models = len(outcomes.items), stop - start
    value = outcomes.outcome[:, start:stop].T.ravel()
    reason = outcomes.reason[:, start:stop].T.ravel().astype(np.int8) - np.int8(1)
    return pd.DataFrame(
        {
            "model": pd.Categorical.from_codes(
                np.repeat(np.arange(start, stop, dtype=np.int32), size), categories=pd.Index(outcomes.models)
            ),
            "question_id": pd.Categorical.from_codes(
                np.tile(np.arange(size, dtype=np.int32), models), categories=pd.Index(outcomes.items)
            ),
            "outcome": pd.arrays.IntegerArray(np.maximum(value, 0), value < 0),
            "reason": pd.Categorical.from_codes(reason, categories=pd.Index(REASONS)),
            "score": np.full(len(value), np.nan),
            "content_hash": pd.Series(np.nan, index=range(len(value)), dtype="str"),
        }
    )


def _manifests(outcomes: Outcomes) -> list[dict[str, Any]]:
    observed = (outcomes.outcome >= 0).sum(axis=0)
    passed = (outcomes.outcome == 1).sum(axis=0)
    return [
        {
            **outcomes.manifest,
            "model": model,
            "slug": slug(model),
            "counts": {
                "items": len(outcomes.items),
                "observed": int(observed[place]),
                "passed": int(passed[place]),
                "missing": {
                    reason: int(number)
                    for reason, number in zip(
                        REASONS,
                        np.bincount(outcomes.reason[:, place], minlength=len(REASONS) + 1)[1:],
                        strict=True,
                    )
                    if number
                },
            },
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
    """Yield the rows of a shard in blocks of about a million.

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
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())

    def codes(column: pa.ChunkedArray, place: Mapping[str, int]) -> NDArray[np.int64]:
        array = column.cast(text).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
        own = np.array([place[name] for name in array.dictionary.to_pylist()], dtype=np.int64)
        places: NDArray[np.int64] = own[array.indices.to_numpy()]
        return places

    reason_place = {name: number for number, name in enumerate(REASONS, start=1)}
    with pq.ParquetFile(shard) as content:
        for group in range(content.num_row_groups):
            table = content.read_row_group(group, columns=["model", "question_id", "outcome", "reason"])
            reason = table["reason"].cast(text).combine_chunks()
            missing = reason.indices.fill_null(-1).to_numpy()
            own = np.array(
                [reason_place[name] for name in reason.dictionary.to_pylist()] + [0], dtype=np.uint8
            )
            yield Block(
                model=codes(table["model"], model_place),
                item=codes(table["question_id"], item_place),
                outcome=table["outcome"].fill_null(-1).to_numpy().astype(np.int8),
                reason=own[missing],
            )
