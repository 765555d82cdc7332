"""Results folders for the profiles of benchmarks, of any number of abilities, with a planted truth. Simulated data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from claims_fixture import ITEM_COLUMNS, study_of

from benchmirt.ability.calibration import Calibration
from benchmirt.claims.inputs import Results
from benchmirt.dimensions.families import LeaveOneOut
from benchmirt.files import write_csv, write_json, write_parquet
from benchmirt.profiles import station

HASH = "0" * 64


@dataclass(frozen=True)
class Planted:
    """A benchmark: so many items per subset, each subset along a direction (a vector of K numbers).

    `reversed` items of each subset point the other way, `missing` is the share of outcomes that are missing, `easy` and `hard`
    items are passed by all, or by none, of the models.
    """

    name: str
    subsets: dict[str, Sequence[float]]
    items: int = 40
    reversed: int = 0
    missing: float = 0.0
    easy: int = 0
    hard: int = 0
    own: float = 0.0
    testlet: bool = False


@dataclass(frozen=True)
class Made:
    """What was planted: the folder, what `station.build` takes, and the table of items with their reversal."""

    folder: Path
    results: Results
    calibration: Calibration
    left_out: LeaveOneOut
    coverage: pd.DataFrame
    items: pd.DataFrame
    outcomes: np.ndarray
    study: Any


def _items(benchmarks: Sequence[Planted], rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    rows, vectors = [], []
    for one in benchmarks:
        for subset, direction in one.subsets.items():
            axis = np.asarray(direction, dtype=float)
            size = 1.3 * np.exp(rng.normal(0, 0.3, one.items))
            sign = np.where(np.arange(one.items) < one.reversed, -1.0, 1.0)
            vectors.append((sign * size)[:, None] * (axis + 0.1 * rng.normal(size=(one.items, len(axis)))))
            for k in range(one.items):
                last = one.items - 1 - k  # items at the ends of the scale come last, the reversed ones first
                extreme = "easy" if last < one.easy else "hard" if last < one.easy + one.hard else ""
                rows.append(
                    {
                        "question_id": f"{one.name}/{subset}/{k:03d}",
                        "benchmark": one.name,
                        "category": "reasoning" if len(rows) % 2 else "safety",
                        "subcategory_one": subset,
                        "testlet": f"{one.name}/{subset}/t{k // 4}" if one.testlet else None,
                        "reversed": sign[k] < 0,
                        "extreme": extreme,
                        "absent": one.missing,
                        "own": one.own,
                    }
                )
    return pd.DataFrame(rows), np.concatenate(vectors)


def plant(
    folder: Path,
    benchmarks: Sequence[Planted],
    *,
    dims: int = 2,
    models: int = 80,
    error: float = 0.2,
    seed: int = 1,
    passes: bool = True,
    simulated: bool = True,
    replicates: int = 30,
) -> Made:
    """Write what the profiles and their pages are made from: estimates are the truth plus noise of size `error`."""
    rng = np.random.default_rng(seed)
    items, a = _items(benchmarks, rng)
    J = len(items)
    d = rng.normal(0, 0.7, J)
    theta = rng.normal(size=(models, dims))
    theta = (theta - theta.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(theta.T).reshape(dims, dims))).T
    names = [one.name for one in benchmarks]
    shift = rng.normal(size=(models, len(names)))[:, [names.index(b) for b in items["benchmark"]]]
    eta = theta @ a.T + d + items["own"].to_numpy() * shift
    outcomes = (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(np.int8)
    outcomes[:, (items["extreme"] == "easy").to_numpy()] = 1
    outcomes[:, (items["extreme"] == "hard").to_numpy()] = 0
    outcomes[rng.random(eta.shape) < items["absent"].to_numpy()] = -1
    seen = outcomes >= 0
    table = items[["question_id", "benchmark", "category", "subcategory_one", "testlet"]].copy()
    for column in ITEM_COLUMNS:
        table[column] = (table[column] if column in table else pd.Series([None] * J)).astype("string")
    table = table[list(ITEM_COLUMNS)]
    table["options"] = pd.array([None] * J, dtype="Int16")
    table["inverted"] = False
    table["observed"] = seen.sum(0)
    table["mean"] = (outcomes == 1).sum(0) / np.maximum(seen.sum(0), 1)
    table["kept"] = (table["mean"] > 0) & (table["mean"] < 1)
    model_names = [f"org/model-{n:03d}" for n in range(models)]
    model_table = pd.DataFrame(
        {"model": model_names, "lineage": [f"base-{n % 25:02d}" for n in range(models)], "kept": True}
    )
    cells = pd.DataFrame(outcomes.T, columns=model_names).astype("Int8").replace(-1, pd.NA).astype("Int8")
    cells.insert(0, "question_id", table["question_id"].to_numpy())
    home = folder / "matrix" / "honest"
    write_parquet(table, home / "items.parquet")
    write_parquet(model_table, home / "models.parquet")
    write_parquet(cells, home / "responses.parquet")
    write_json({"models_kept": models, "simulated": simulated}, home / "summary.json")
    coverage = []
    for name in names:
        mine = (items["benchmark"] == name).to_numpy()
        for n, model in enumerate(model_names):
            own = outcomes[n, mine]
            there = int((own >= 0).sum())
            coverage.append(
                {
                    "benchmark": name, "model": model, "items": int(mine.sum()), "observed": there,
                    "missing": int(mine.sum()) - there, "not_run": 0, "empty": int(mine.sum()) - there,
                    "mean": float((own == 1).sum() / there) if there else np.nan,
                }
            )  # fmt: skip
    coverage = pd.DataFrame(coverage)
    empty = coverage.groupby("benchmark", sort=False)["missing"].sum()
    write_csv(
        pd.DataFrame(
            [
                {
                    "benchmark": name, "why": "any reason", "missing": count, "share": 0.1, "r": -0.4, "low": -0.6,
                    "high": -0.2, "level": 0.95, "related": "yes",
                }
                for name, count in empty.items()
                if count
            ],
            columns=["benchmark", "why", "missing", "share", "r", "low", "high", "level", "related"],
        ),
        home / "missingness.csv",
    )  # fmt: skip

    kept = np.flatnonzero(table["kept"])
    fitted = table["question_id"].to_numpy()[kept].astype(str)
    T = np.eye(dims)
    T[0, 1:] = 0.2
    T /= np.linalg.norm(T, axis=0)
    sign = np.ones(dims)
    sign[-1] = -1.0 if dims > 1 else 1.0
    noisy = a[kept] + error * rng.normal(size=(len(kept), dims))
    stored = T * sign  # as the fit has it; the labels turn it back
    dimension = {"dimension": np.arange(1, dims + 1), "ability": np.arange(1, dims + 1)}
    nc = folder / "dimensions" / "corrected" / "consensus.nc"
    nc.parent.mkdir(parents=True)
    xr.Dataset(
        {
            "a": (("item", "dimension"), noisy),
            "T": (("dimension", "ability"), stored),
            "ability_theta": (("model", "ability"), theta @ stored),
        },
        coords={"model": model_names, "item": fitted, **dimension},
        attrs={"seeds": json.dumps([0]), "seeds_failed": "{}", "data_hash": HASH},
    ).to_netcdf(nc, engine="h5netcdf")
    keep = np.stack([rng.permutation(25) < 20 for _ in range(replicates)])[:, np.arange(models) % 25]
    xr.Dataset(
        {
            "a": (
                ("replicate", "item", "dimension"),
                (noisy[None] + 0.5 * error * rng.normal(size=(replicates, *noisy.shape))).astype(np.float32),
            ),
            "theta": (("replicate", "model", "dimension"), np.repeat(theta[None], replicates, 0)),
            "T": (("replicate", "dimension", "ability"), np.repeat(stored[None], replicates, 0)),
            "weights": (("replicate", "model"), keep.astype(np.int32)),
        },
        coords={"model": model_names, "item": fitted},
    ).to_netcdf(folder / "dimensions" / "bootstrap.nc", engine="h5netcdf")
    labels = ["reasoning", "safety", "ability 3", "ability 4"][:dims]
    write_json(
        {
            "categories": ["reasoning", "safety"],
            "dimensions": [
                {
                    "ability": k + 1,
                    "name": label if k < 2 else None,
                    "display": label,
                    "orientation": int(sign[k]),
                }
                for k, label in enumerate(labels)
            ],
        },
        folder / "dimensions" / "labels.json",
    )
    write_json(
        {
            "dimensions": [
                {"dimension": k + 1, "passes": passes or k == 0, "p_congruence": 0.01, "p_ability_r": 0.01}
                for k in range(dims)
            ],
            "replicates": 100,
        },
        folder / "dimensions" / "stability.json",
    )
    statistics = table[["question_id", "benchmark", "category", "mean", "kept"]].copy()
    for k in range(dims):
        column = np.full(J, np.nan)
        column[kept] = noisy[:, k]
        statistics[f"discrimination_{k + 1}"] = column
    write_csv(statistics, folder / "dimensions" / "item_statistics.csv")
    facts = pd.concat([table.iloc[kept], table.drop(index=kept)], ignore_index=True)
    calibration = Calibration(
        items=tuple(fitted),
        a=noisy,
        d=d[kept],
        item_cov=np.repeat(error**2 * np.eye(dims + 1)[None], len(kept), 0),
        floor=np.zeros(len(kept)),
        ceiling=np.ones(len(kept)),
        T=T,
        labels=tuple(labels),
        named=(True,) * dims,
        item_table=facts.assign(calibrated=facts["kept"]),
        model_table=pd.DataFrame(),
        benchmark_table=pd.DataFrame({"benchmark": names, "own_deviation": 0.5}),
        about={"provenance": {"data_hash": HASH}, "simulated": simulated},
    )
    units = tuple(names)
    alone = len(units) == 1
    left_out = LeaveOneOut(
        unit="category" if alone else "benchmark",
        units=("reasoning", "safety") if alone else units,
        theta=np.repeat((theta @ stored)[None], 2 if alone else len(units), 0),
        a=np.zeros((0, 0, 0), dtype=np.float32),
        congruence=np.ones((2 if alone else len(units), theta.shape[1])),
        reliability=np.ones((2 if alone else len(units), theta.shape[1])),
        converged=np.ones(len(units), dtype=bool),
        models=tuple(model_names),
        items=tuple(fitted),
        data_hash=HASH,
    )
    study = SimpleNamespace(name="planted", title="A planted study", simulated=simulated, results="results")
    results = Results(folder, study_of([]))
    return Made(folder, results, calibration, left_out, coverage, items, outcomes, study)


def profile(made: Made) -> station.Profiles:
    """Make the profiles and write them where the pages look for them."""
    found = station.build(made.results, made.calibration, made.left_out, made.coverage)
    home = made.folder / "profiles"
    station.write(
        found, home / "benchmarks.csv", home / "groups.csv", home / "subsets.csv", home / "items.csv"
    )
    return found


def toward(degrees: float) -> list[float]:
    """Return a unit vector in the plane."""
    angle = np.radians(degrees)
    return [float(np.cos(angle)), float(np.sin(angle))]
