"""Outcomes of new models, matched with the items of a calibration by their names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import matrix
from benchmirt.errors import InputError, nearest

if TYPE_CHECKING:
    from benchmirt.ability.calibration import Calibration

__all__ = ["Newcomers", "match", "places", "read"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Newcomers:
    """New models and their outcomes on the items of a calibration.

    Attributes
    ----------
    models
        Names of the N models.
    responses
        int8 of shape (N, all items of the calibration's ``item_table``): 1, 0, or -1 where missing.
    unmatched
        Items that were answered and don't count, a row each: question_id, models (how many answered it), why.
    """

    models: tuple[str, ...]
    responses: NDArray[np.int8]
    unmatched: pd.DataFrame


def read(folders: Sequence[str | Path]) -> matrix.Merged:
    """Read the outcomes of new models, as collected from sources of any kind; failures are missing.

    Parameters
    ----------
    folders
        One per source, with its shards or with a folder for each job that made some.

    Raises
    ------
    InputError
        If two sources disagree.
    """
    jobs = [
        job
        for folder in map(Path, folders)
        for job in ([folder] if (folder / "items.parquet").is_file() else sorted(folder.iterdir()))
    ]
    return matrix.merge(jobs, "honest")


def match(
    calibration: Calibration,
    models: Sequence[str],
    items: Sequence[str] | pd.DataFrame | None,
    outcomes: NDArray[np.int8],
    *,
    origin: str = "outcomes of new models",
) -> Newcomers:
    """Bring outcomes into the order of a calibration's items.

    Parameters
    ----------
    calibration
        The calibration.
    models
        Names of the N models.
    items
        Names of the J items, or their table with ``question_id`` and perhaps ``content_hash`` and ``scored_as``: an
        item whose content or way of scoring is known on both sides and differs is another item under the same name.
    outcomes
        1, 0, or -1 (or NaN) where missing, shape (J, N).
    origin
        What messages call the outcomes.

    Raises
    ------
    InputError
        If the items have no names, none is in the calibration, or a model has no outcome on any of them; if an item or a model
        stands twice, the shape does not fit, or an outcome is anything else.
    """
    if items is None:
        raise InputError(
            "a bare vector of outcomes cannot be scored, since their order says nothing about which items they belong to",
            file=origin,
            found=f"{len(outcomes):,} outcomes without names",
            expected="question_id with every outcome",
            todo="Write a table with the column question_id and one column per model",
        )
    table = items if isinstance(items, pd.DataFrame) else pd.DataFrame({"question_id": list(items)})
    if "question_id" not in table:
        raise InputError(
            "the table of items has no names",
            file=origin,
            found=", ".join(map(str, table.columns[:8])) or "no columns",
            expected='the column "question_id"',
        )
    names = table["question_id"].astype(str)
    outcomes = _checked(np.asarray(outcomes), names, list(models), origin)
    own = calibration.item_table.reset_index(drop=True)
    place, why = places(calibration, table)
    answered = (outcomes >= 0).sum(axis=1)
    used = why == ""
    _require(calibration, names[answered > 0], used[answered > 0], origin)
    responses = np.full((len(models), len(own)), -1, dtype=np.int8)
    responses[:, place[used]] = outcomes[used].T
    bare = own.loc[~own["calibrated"], "question_id"]
    why[used & names.isin(set(bare)).to_numpy()] = (
        "told none of the study's models apart, so that it says nothing about abilities"
    )
    listed = (answered > 0) & (why != "")
    unmatched = pd.DataFrame(
        {"question_id": names[listed], "models": answered[listed], "why": why[listed]}
    ).reset_index(drop=True)
    for reason in unmatched["why"].unique():
        group = unmatched[unmatched["why"] == reason]
        shown = ", ".join(group["question_id"].head(5)) + (", ..." if len(group) > 5 else "")
        _log.warning("%d of %d items: %s: %s", len(group), int((answered > 0).sum()), reason, shown)
    silent = (responses[:, own["calibrated"].to_numpy(dtype=bool)] < 0).all(axis=1)
    if silent.any():
        raise InputError(
            "this model has no outcome on an item with parameters",
            file=origin,
            found=f'"{models[int(np.flatnonzero(silent)[0])]}"'
            + (f" and {int(silent.sum()) - 1} more" if silent.sum() > 1 else ""),
            todo="Run it on items that are calibrated (True in that column of the calibration's items.csv.gz), or leave it out",
        )
    return Newcomers(tuple(models), responses, unmatched)


def places(calibration: Calibration, items: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """Find items in a calibration by their names.

    Parameters
    ----------
    calibration
        The calibration.
    items
        A row per item with ``question_id`` and perhaps ``content_hash`` and ``scored_as``.

    Returns
    -------
    place
        Rows of the calibration's ``item_table``, -1 for an item that it does not know, shape (J,).
    why
        Why an item does not count, shape (J,): it is not known, or its content or way of scoring is known on both sides and
        differs; empty where it counts.
    """
    own = calibration.item_table
    place = pd.Index(own["question_id"]).get_indexer(pd.Index(items["question_id"].astype(str)))
    why = np.where(place < 0, "not in the calibration", "").astype(object)
    for column, reason in (("content_hash", "another question"), ("scored_as", "scored in another way")):
        if column not in items:
            continue
        theirs = items[column].to_numpy(dtype=object)
        ours = own[column].to_numpy(dtype=object)[np.maximum(place, 0)]
        known = (place >= 0) & ~pd.isna(theirs) & ~pd.isna(ours)
        why[known & (theirs != ours)] = f"{reason} under this name than in the calibration"
    return place, why


def _checked(outcomes: NDArray[Any], names: pd.Series, models: list[str], origin: str) -> NDArray[np.int8]:
    """Return outcomes as 1, 0 or -1; anything else is refused, since it would be taken for a right or a wrong answer."""
    shape = (len(names), len(models))
    if outcomes.shape != shape:
        raise InputError(
            "the outcomes have another shape than their names",
            file=origin,
            found=" x ".join(map(str, outcomes.shape)),
            expected=f"{shape[0]} items x {shape[1]} models",
        )
    for kind, series in (("item", names), ("model", pd.Series(models, dtype=str))):
        twice = series[series.duplicated()]
        if len(twice):
            raise InputError(f"this {kind} stands twice", file=origin, found=f'"{twice.iloc[0]}"')
    values = pd.DataFrame(outcomes)
    known = values.isin([0, 1, -1])
    odd = np.argwhere((~known & values.notna()).to_numpy())
    if len(odd):
        row, column = odd[0]
        raise InputError(
            "an outcome is neither right nor wrong",
            file=origin,
            where=f'"{names.iloc[row]}" of "{models[column]}"',
            found=f'the text "{outcomes[row, column]}"'
            if isinstance(outcomes[row, column], str)
            else str(outcomes[row, column]),
            expected="1, 0, or -1 or NaN where missing",
            todo="Decide by a threshold what counts as right before outcomes are scored",
        )
    return values.where(known, -1).to_numpy(dtype=np.int8)


def _require(calibration: Calibration, names: pd.Series, used: NDArray[np.bool_], origin: str) -> None:
    """Stop where no item that was answered is in the calibration."""
    if used.any():
        return
    if not len(names):
        raise InputError(
            "there are no outcomes to place a model by",
            file=origin,
            todo="Fill the cells of questions that the models were asked, with 1 or 0",
        )
    known = calibration.item_table["question_id"]
    first = str(names.iloc[0])
    near = nearest(first, known) if len(known) < 10_000 else None
    raise InputError(
        "none of the items is in the calibration",
        file=origin,
        found=f"{len(names):,} items such as " + ", ".join(names.head(3)),
        expected="names such as " + ", ".join(known.head(3)),
        todo=f'Write the names as the calibration does: did "{first}" mean "{near}"?'
        if near
        else "Write the names as the calibration does",
    )
