"""What a claim may need from the results folder, read when it is first asked for.

Arrays come with names, and are brought into one order of models and items here, so that the kinds need not
think about the order of files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt.claims import selection
from benchmirt.claims.spec import Figure, Part, Selection, find_table, read_figures
from benchmirt.errors import InputError
from benchmirt.files import check_numbers, read_json
from benchmirt.resampling import stretch
from benchmirt.sources import plan

if TYPE_CHECKING:
    import xarray as xr

    from benchmirt.config import Study

__all__ = [
    "Ability",
    "Bootstrap",
    "Consensus",
    "LeaveOneOut",
    "Mixes",
    "Results",
    "Unavailable",
    "WithoutPairs",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TEXTS = (
    *(
        "benchmark",
        "category",
        "fit",
        "fold",
        "form",
        "interval_kind",
        "method",
        "metric",
        "mix",
        "scope",
        "split",
    ),
    "way",
)
"""Columns of names in tables of results, some of which may look like numbers."""

SHARE_RUN = 0.5
"""A model counts as having run a selection if it answered this share of its usable items."""


class Unavailable(Exception):  # noqa: N818 - a reason, not an error of the program
    """A claim cannot be judged, for the reason given.

    Attributes
    ----------
    verdict
        What the reason amounts to.
    absent
        Whether the study lacks what the claim is about, which goes before any other finding.
    """

    def __init__(self, why: str, verdict: str = "cannot test", *, absent: bool = False) -> None:
        super().__init__(why)
        self.verdict = verdict
        self.absent = absent


@dataclass(frozen=True)
class Ability:
    """One ability of the display solution.

    Attributes
    ----------
    index
        From 0.
    sign
        1 or -1: abilities, axes and loadings are multiplied by it.
    name
        How it is called.
    """

    index: int
    sign: float
    name: str


@dataclass(frozen=True)
class Consensus:
    """Consensus solution of a fit: N models, J items, K dimensions.

    Attributes
    ----------
    ability_theta
        Display abilities, shape (N, K).
    a
        Discriminations in the canonical frame, shape (J, K).
    T
        Columns are the unit vectors of the abilities in the canonical frame, shape (K, K).
    failed
        Why the fit cannot be used, or None.
    note
        What a reader should know about the fit, or an empty text.
    data_hash
        Hash of the data that went in.
    """

    models: pd.Index
    items: pd.Index
    ability_theta: Floats
    a: Floats
    T: Floats
    failed: str | None
    note: str
    data_hash: str | None

    @property
    def dims(self) -> int:
        """Number of dimensions."""
        return int(self.a.shape[1])

    @property
    def a_display(self) -> Floats:
        """Display discriminations ``a inv(T)'``, shape (J, K)."""
        return np.asarray(np.linalg.solve(self.T, self.a.T).T)


@dataclass(frozen=True)
class LeaveOneOut:
    """Abilities from all items but those of one benchmark (or of one category, if there is one benchmark).

    Attributes
    ----------
    unit
        Item column whose values are left out in turn.
    theta
        Abilities, shape (units, N, K), aligned to the consensus.
    congruence
        Of the other items' display discriminations with those of the consensus, shape (units, K).
    reliability
        Share of the abilities' variance over models that the estimates have, 0 to 1, shape (units, K).
    usable
        Whether the fit can be used, shape (units,).
    """

    unit: str
    units: pd.Index
    models: pd.Index
    theta: Floats
    congruence: Floats
    reliability: Floats
    usable: Mask


@dataclass(frozen=True)
class Bootstrap:
    """Refits on resampled lineages, aligned to the consensus.

    Attributes
    ----------
    a
        Discriminations, shape (R, J, K), float32.
    theta
        Abilities in the canonical frame, shape (R, N, K).
    T
        Axes of the abilities in each refit, as columns, shape (R, K, K): the display rotation, repeated from where the
        consensus has it, so that the axes move with the models that happen to be drawn. NaN where there is none.
    scale
        By how much deviations of refits must be stretched to stand for those of other models
        (:func:`benchmirt.resampling.stretch`): 2 where a fifth of the lineages was left out (a delete-d jackknife;
        Shao and Wu 1989, *Annals of Statistics* 17, 1176-1197).
    """

    models: pd.Index
    items: pd.Index
    a: NDArray[np.float32]
    theta: Floats
    T: Floats
    scale: float


@dataclass(frozen=True)
class WithoutPairs:
    """Calibrations that a pair of models has no part in.

    Attributes
    ----------
    pairs
        Names of the two models of each of P pairs.
    a
        Display discriminations, in the order and with the signs of the consensus' abilities, shape (P, J, K).
    usable
        Whether the calibration can be used, shape (P,).
    """

    pairs: Sequence[tuple[str, str]]
    items: pd.Index
    a: Floats
    usable: Mask


@dataclass(frozen=True)
class Mixes:
    """Fits to other mixes of benchmarks.

    Attributes
    ----------
    table, replicates
        ``mix.csv`` and ``mix_replicates.csv``; see :mod:`benchmirt.dimensions.mix`.
    alone
        Per category what became of its dimensions when it stands alone.
    scale
        By how much deviations of replicates are to be stretched.
    """

    table: pd.DataFrame
    replicates: pd.DataFrame
    alone: Sequence[dict[str, Any]]
    scale: float


class Results:
    """The results of one study.

    Parameters
    ----------
    folder
        The results folder.
    study
        The checked study.
    """

    def __init__(self, folder: str | Path, study: Study) -> None:
        self.folder = Path(folder)
        self.study = study
        self._cache: dict[tuple[str, str], Any] = {}

    def path(self, name: str) -> Path:
        """Return the path of a result.

        Raises
        ------
        InputError
            If it does not exist.
        """
        path = self.folder / name
        if not path.is_file():
            raise InputError(
                "a claim needs this result, and it does not exist",
                file=path,
                todo="Make it first: run the workflow rather than the single step",
            )
        return path

    def _once(self, what: str, policy: str, make: Any) -> Any:
        key = (what, policy)
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    # -- the matrix -----------------------------------------------------------------------------------------

    def items(self, policy: str = "honest") -> pd.DataFrame:
        """Return the table of all items, kept or not."""
        path = f"matrix/{policy}/items.parquet"
        table: pd.DataFrame = self._once("items", policy, lambda: pd.read_parquet(self.path(path)))
        return table

    def models(self, policy: str = "honest") -> pd.DataFrame:
        """Return the table of the models that are kept."""

        def read() -> pd.DataFrame:
            table = self.all_models(policy)
            return table[table["kept"].astype(bool)].reset_index(drop=True)

        kept: pd.DataFrame = self._once("models", policy, read)
        return kept

    def all_models(self, policy: str = "honest") -> pd.DataFrame:
        """Return the table of all models."""
        path = f"matrix/{policy}/models.parquet"
        table: pd.DataFrame = self._once("all_models", policy, lambda: pd.read_parquet(self.path(path)))
        return table

    def responses(self, policy: str = "honest") -> NDArray[np.int8]:
        """Return the outcomes of all items for the kept models, shape (J, N): 1, 0, or -1 for missing."""

        def read() -> NDArray[np.int8]:
            import pyarrow.compute as pc
            import pyarrow.parquet as pq

            path = self.path(f"matrix/{policy}/responses.parquet")
            names = self.models(policy)["model"].tolist()
            table = pq.read_table(path, columns=["question_id", *names])
            order = pd.Index(table.column("question_id").to_pylist()).get_indexer(
                self.items(policy)["question_id"]
            )
            if (order < 0).any():
                raise InputError("the responses lack items of the items table", file=path)
            outcomes = np.empty((len(order), len(names)), dtype=np.int8)
            for k, name in enumerate(names):
                column = pc.fill_null(table.column(name).combine_chunks(), -1)
                outcomes[:, k] = column.to_numpy(zero_copy_only=False).astype(np.int8)[order]
            return outcomes

        matrix: NDArray[np.int8] = self._once("responses", policy, read)
        return matrix

    def lineage(self, policy: str = "honest") -> NDArray[np.int64]:
        """Return a code of the lineage of each kept model, shape (N,), by the lineages' alphabet."""
        table = self.models(policy)
        names = table["lineage"].astype("string").fillna("own cluster: " + table["model"].astype("string"))
        return np.unique(names.to_numpy(dtype=str), return_inverse=True)[1].astype(np.int64)

    def usable(self, select: Selection, excepted: Selection) -> Mask:
        """Return which items are selected and kept, shape (J,).

        Raises
        ------
        Unavailable
            If the study lacks the items, or fewer than 20 of them are usable.
        """
        items = self.items()
        chosen = selection.mask(items, select, excepted)
        reason = selection.absent(items, select, excepted) or selection.too_few(items, chosen)
        if reason is not None:
            raise Unavailable(reason, absent=True)
        return chosen & items["kept"].to_numpy(dtype=bool)

    def size(self) -> tuple[int, int]:
        """Return the number of kept models and of their lineages."""
        codes = self.lineage()
        return len(codes), int(codes.max(initial=-1)) + 1

    def ran(self, chosen: Mask, policy: str = "honest") -> Mask:
        """Return which kept models answered at least half of the usable items among the chosen, shape (N,)."""
        usable = chosen & self.items(policy)["kept"].to_numpy(dtype=bool)
        if not usable.any():
            return np.zeros(len(self.models(policy)), dtype=bool)
        return (self.responses(policy)[usable] >= 0).mean(axis=0) >= SHARE_RUN

    def means(self, chosen: Mask, policy: str = "honest") -> Floats:
        """Return the mean outcome of each kept model over the chosen items that it answered, shape (N,).

        NaN for a model that answered none. Items that the filter dropped count, as they do in a benchmark's
        own score.
        """
        outcomes = self.responses(policy)[chosen]
        observed = (outcomes >= 0).sum(axis=0)
        right = (outcomes == 1).sum(axis=0)
        return np.where(observed > 0, right / np.maximum(observed, 1), np.nan)

    def delivered(self, source: str, table: str) -> pd.DataFrame:
        """Return the table of items or models that a source declared, in whatever jobs it was collected."""
        folders = [Path("outcomes", source, job.name) for job in plan(self.study.source(source), self.study)]
        return pd.concat([pd.read_parquet(self.path(f"{folder}/{table}.parquet")) for folder in folders])

    # -- the dimensions -------------------------------------------------------------------------------------

    @cached_property
    def stability(self) -> dict[str, Any]:
        """Stability of each dimension over halves, with its null."""
        found: dict[str, Any] = read_json(self.path("dimensions/stability.json"))
        return found

    @cached_property
    def number(self) -> dict[str, Any]:
        """Evidence on the number of dimensions."""
        found: dict[str, Any] = read_json(self.path("dimensions/number.json"))
        return found

    @cached_property
    def prediction(self) -> dict[str, Any]:
        """What was predicted, and the number of dimensions that it would choose."""
        found: dict[str, Any] = read_json(self.path("prediction/prediction.json"))
        return found

    @cached_property
    def labels(self) -> dict[str, Any]:
        """Names and signs of the abilities."""
        found: dict[str, Any] = read_json(self.path("dimensions/labels.json"))
        return found

    @cached_property
    def reproducibility(self) -> pd.DataFrame:
        """Agreement over seeds."""
        return self.table("dimensions/reproducibility.csv")

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the results; a benchmark may be called `NA` or `1`.

        Raises
        ------
        InputError
            If a text stands among its numbers.
        """
        path = self.path(name)
        names = dict.fromkeys(_TEXTS, "str")
        return check_numbers(
            pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""]), path, _TEXTS
        )

    def _open(self, name: str) -> xr.Dataset:
        import xarray as xr

        with xr.open_dataset(self.path(name), engine="h5netcdf") as data:
            return data.load()

    def _usable(self, data: xr.Dataset, dimension: str) -> Mask:
        """Return which members of a family of fits converged; all of them if the study takes any."""
        if "converged" not in data or self.study.claims.get("unconverged", False):
            return np.ones(data.sizes[dimension], dtype=bool)
        return data["converged"].to_numpy().astype(bool)

    def consensus(self, fit: str) -> Consensus:
        """Return the consensus solution of a fit."""

        def read() -> Consensus:
            data = self._open(f"dimensions/{fit}/consensus.nc")
            used, failed = (_seeds(data.attrs.get(key)) for key in ("seeds", "seeds_failed"))
            reason, note = None, ""
            if failed and not used and not self.study.claims.get("unconverged", False):
                reason = f"no seed of the fit {fit} converged"
            elif failed:
                note = f"{len(failed)} of {len(used) + len(failed)} seeds of the fit {fit} did not converge"
            return Consensus(
                models=_names(data, "model"),
                items=_names(data, "item"),
                ability_theta=_array(data, "ability_theta", "model", "ability"),
                a=_array(data, "a", "item", "dimension"),
                T=_array(data, "T", "dimension", "ability"),
                failed=reason,
                note=note,
                data_hash=data.attrs.get("data_hash"),
            )

        found: Consensus = self._once("consensus", fit, read)
        return found

    @property
    def data_hash(self) -> str | None:
        """Hash of the corrected fit's data, if a claim has looked at that fit."""
        found: Consensus | None = self._cache.get(("consensus", "corrected"))
        return None if found is None else found.data_hash

    @cached_property
    def leave_one_out(self) -> LeaveOneOut:
        """Abilities with one benchmark left out."""
        data = self._open("dimensions/leave_one_out.nc")
        return LeaveOneOut(
            unit=str(data.attrs.get("unit", "benchmark")),
            units=_names(data, "benchmark"),
            models=_names(data, "model"),
            theta=_array(data, "theta", "benchmark", "model", "ability"),
            congruence=_array(data, "congruence", "benchmark", "ability"),
            reliability=_array(data, "reliability", "benchmark", "ability"),
            usable=self._usable(data, "benchmark"),
        )

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Refits on resampled lineages; those that did not converge or are not finite are left out."""
        data = self._open("dimensions/bootstrap.nc")
        a = data["a"].transpose("replicate", "item", "dimension").to_numpy()
        theta = _array(data, "theta", "replicate", "model", "dimension")
        good = self._usable(data, "replicate")
        good &= np.isfinite(a).all(axis=(1, 2)) & np.isfinite(theta).all(axis=(1, 2))
        return Bootstrap(
            models=_names(data, "model"),
            items=_names(data, "item"),
            a=a if good.all() else a[good],
            theta=theta if good.all() else theta[good],
            T=_array(data, "T", "replicate", "dimension", "ability")[good],
            scale=self._stretch(_names(data, "model"), _array(data, "weights", "replicate", "model")[good]),
        )

    def _stretch(self, models: pd.Index, weights: Floats) -> float:
        """Return by how much deviations of refits must be stretched, from the weights (R, N) of their models."""
        return stretch(weights[:, order_of(models, self.models()["model"])], self.lineage())

    @cached_property
    def without_pairs(self) -> WithoutPairs:
        """Calibrations without each pair of models."""
        data = self._open("pairs/refits.nc")
        return WithoutPairs(
            pairs=[(base, changed) for base, changed in json.loads(data.attrs["pairs"])],
            items=_names(data, "item"),
            a=_array(data, "a", "pair", "item", "ability"),
            usable=self._usable(data, "pair"),
        )

    @cached_property
    def mixes(self) -> Mixes:
        """Fits to other mixes of benchmarks."""
        table, replicates = (
            self.table(f"dimensions/{name}.csv").fillna({"category": "", "benchmark": ""})
            for name in ("mix", "mix_replicates")
        )
        more = read_json(self.path("dimensions/mix.json"))
        return Mixes(table, replicates, more["alone"], float(more["scale"]))

    # -- published figures ----------------------------------------------------------------------------------

    def figures(self, figure: Figure) -> list[tuple[dict[str, str], float]]:
        """Return the rows of a table of facts that have a figure, as :func:`benchmirt.claims.spec.read_figures` does."""
        return read_figures(find_table(figure.table, self.study), figure.column)

    def published_figure(self, part: Part) -> float | None:
        """Return the published figure of a part.

        In a table it is that of the first row that agrees with the part's selection and ability in all columns
        that both have.
        """
        if not isinstance(part.published, Figure):
            return part.published
        keys = {column: values[0] for column, values in part.select.items() if len(values) == 1}
        if isinstance(part.ability, str):
            keys["ability"] = part.ability
        for row, value in self.figures(part.published):
            shared = set(row) & set(keys)
            if shared and all(row[key] == keys[key] for key in shared):
                return value
        return None

    # -- abilities by name ----------------------------------------------------------------------------------

    def ability(self, wanted: str | int) -> Ability:
        """Return the ability that a claim calls by a category's name or by its number.

        Raises
        ------
        Unavailable
            If the study has no such category, no ability could be named after it (that the evidence for a name is missing
            is none against the claim), or it has fewer abilities than that.
        """
        dimensions = sorted(self.labels["dimensions"], key=lambda entry: int(entry["ability"]))
        if isinstance(wanted, int):
            if wanted > len(dimensions):
                raise Unavailable(f"there is no ability {wanted}: the fit has {len(dimensions)}")
            entry = dimensions[wanted - 1]
            return Ability(wanted - 1, _sign(entry), str(entry.get("display") or f"ability {wanted}"))
        for entry in dimensions:
            if entry.get("name") is not None and str(entry["name"]).casefold() == wanted.casefold():
                return Ability(int(entry["ability"]) - 1, _sign(entry), str(entry["name"]))
        categories = self.items()["category"].dropna().astype(str).str.casefold().unique()
        if wanted.casefold() not in categories:
            raise Unavailable(f"this study has no items with category {wanted}", absent=True)
        why = "; ".join(
            str(entry["why"]) for entry in dimensions if entry.get("why") and not entry.get("name")
        )
        raise Unavailable(f"no ability could be named {wanted}" + (f" ({why})" if why else ""))

    def published_ability(self, wanted: str | int) -> Ability:
        """Return the ability of the published fit that goes with a category, named as the study named it.

        Each ability of the published fit gets the category whose benchmark means it correlates with most (in
        the mean of the absolute correlations, all abilities and categories assigned together), and the sign
        with which it rises with them in the mean.

        Raises
        ------
        Unavailable
            If there is no such category, or it got none of the abilities.
        """
        names, signs = self._published_names
        if isinstance(wanted, int):
            if wanted > len(signs):
                raise Unavailable(f"there is no ability {wanted}: the published fit has {len(signs)}")
            return Ability(wanted - 1, signs[wanted - 1], f"ability {wanted}")
        for index, name in enumerate(names):
            if name is not None and name.casefold() == wanted.casefold():
                return Ability(index, signs[index], name)
        raise Unavailable(f"no ability of the published fit goes with the category {wanted}")

    @cached_property
    def _published_names(self) -> tuple[list[str | None], list[float]]:
        from benchmirt.dimensions.labels import follow_categories

        fit = self.consensus("published")
        if fit.failed:
            raise Unavailable(fit.failed)
        items, models = self.items("published"), self.models("published")
        theta = fit.ability_theta[order_of(fit.models, models["model"])]
        pairs = (
            items[["category", "benchmark"]].dropna().drop_duplicates().sort_values(["category", "benchmark"])
        )
        rows: dict[str, list[Floats]] = {}
        for category, benchmark in zip(pairs["category"], pairs["benchmark"], strict=True):
            select = {"category": (str(category),), "benchmark": (str(benchmark),)}
            score = self.means(selection.mask(items, select), "published")
            ran = np.isfinite(score)
            if ran.sum() < 3 or np.ptp(score[ran]) == 0:
                continue
            rows.setdefault(str(category), []).append(
                np.array([np.corrcoef(theta[ran, k], score[ran])[0, 1] for k in range(fit.dims)])
            )
        return follow_categories(rows, fit.dims)


def _sign(entry: dict[str, Any]) -> float:
    return -1.0 if entry.get("orientation", 1) == -1 else 1.0


def _seeds(text: object) -> list[Any]:
    if text is None:
        return []
    found = json.loads(text) if isinstance(text, str) else text
    return list(found) if isinstance(found, Sequence | np.ndarray | dict) else [found]


def _names(data: xr.Dataset, dimension: str) -> pd.Index:
    return pd.Index(data[dimension].to_numpy().astype(str).astype(object))


def _array(data: xr.Dataset, name: str, *dimensions: str) -> Floats:
    return np.asarray(data[name].transpose(*dimensions).to_numpy(), dtype=np.float64)


def order_of(have: pd.Index, want: Sequence[str] | pd.Series) -> NDArray[np.int64]:
    """Return where in `have` each of `want` stands.

    Raises
    ------
    InputError
        If one is not there: the files do not come from the same data.
    """
    order = have.get_indexer(pd.Index(want))
    if (order < 0).any():
        missing = pd.Index(want)[order < 0]
        raise InputError(
            "the results do not belong together",
            found=f"{len(missing)} names that the fits do not have, such as {missing[0]}",
            todo="Run the workflow again, so that all results come from the same data",
        )
    return order.astype(np.int64)
