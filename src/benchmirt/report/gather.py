"""Read everything that the page shows from a results folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5netcdf
import pandas as pd
import xarray as xr

from benchmirt.errors import InputError
from benchmirt.figures import agreement, catalogue, drawing, store
from benchmirt.files import read_json
from benchmirt.report import POLICIES


@dataclass(frozen=True)
class Run:
    """One seed of a fit, as its record describes it.

    Attributes
    ----------
    seed
        The seed.
    converged, why
        Whether it settled, and the reason.
    diagnostics, priors, versions
        As the record holds them; the spread of each dimension's discriminations, near 0 where the fit lost it, among the first.
    """

    seed: int
    converged: bool
    why: str
    diagnostics: Mapping[str, Any]
    priors: Mapping[str, Any]
    versions: Mapping[str, Any]


@dataclass(frozen=True)
class Fit:
    """One row of the fits table with its runs."""

    name: str
    engine: str
    policy: str
    dims: int
    asymptotes: bool
    testlets: bool
    purpose: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Findings:
    """All results of a study that the page shows.

    Attributes
    ----------
    results
        The results folder on disk.
    shown_results
        The results folder as it is written in commands.
    configfiles
        Files given by ``--configfile``, which commands repeat.
    overrides
        What ``--config`` set, which commands repeat too.
    name, title, simulated
        Of the study.
    records
        Claim records in the order of the page.
    naming
        Names and directions of the abilities.
    labels, number, stability
        Contents of the JSON files of those names.
    reproducibility, item_statistics, model_statistics
        Tables; the model statistics are oriented.
    agreement
        Correlations of benchmark averages with abilities, both ways.
    items, models, coverage
        Of the honest matrix: all items and models, kept or not.
    summaries
        Summary of the matrix by policy.
    fits
        The fits, in the order of the fits table.
    card
        The data card.
    profiles
        What each benchmark measures: a row per benchmark.
    """

    results: Path
    shown_results: str
    configfiles: tuple[str, ...]
    overrides: tuple[str, ...]
    name: str
    title: str
    simulated: bool
    records: tuple[Mapping[str, Any], ...]
    naming: store.Abilities
    labels: Mapping[str, Any]
    number: Mapping[str, Any]
    stability: Mapping[str, Any]
    reproducibility: pd.DataFrame
    checks: pd.DataFrame
    item_statistics: pd.DataFrame
    model_statistics: pd.DataFrame
    agreement: agreement.Agreement
    items: pd.DataFrame
    models: pd.DataFrame
    coverage: pd.DataFrame
    summaries: Mapping[str, Mapping[str, Any]]
    fits: tuple[Fit, ...]
    card: Mapping[str, Any]
    profiles: pd.DataFrame

    @property
    def kept_models(self) -> int:
        """Models that were fitted."""
        return int(self.models["kept"].sum())

    @property
    def kept_items(self) -> int:
        """Items that were fitted."""
        return int(self.items["kept"].sum())

    @property
    def lineages(self) -> int:
        """Lineages of the fitted models."""
        return int(self.models.loc[self.models["kept"], "lineage"].nunique())


def read_parquet(path: Path) -> pd.DataFrame:
    """Table of a Parquet file.

    Raises
    ------
    InputError
        If the file is missing or is not Parquet.
    """
    if not path.exists():
        raise InputError("the file does not exist", file=path, todo="Run the workflow first")
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(
            "this is not a readable Parquet file",
            file=path,
            todo="Delete the file and run the workflow again",
        ) from error


def read_run(path: Path) -> Run:
    """Read the card of one seed from its fit record, without its arrays."""
    if not path.exists():
        raise InputError("the file does not exist", file=path, todo="Run the workflow first")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            found = dict(data.attrs)
        return Run(
            int(found["seed"]),
            bool(int(found["converged"])),
            str(found["converged_why"]),
            {**json.loads(found["diagnostics"]), **_spreads(path)},
            json.loads(found["priors"]),
            json.loads(found["versions"]),
        )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            "this is not a readable fit record", file=path, todo="Delete the file and run the workflow again"
        ) from error


def _spreads(path: Path) -> dict[str, float]:
    """Return the spread of each dimension's discriminations in a fit record; nothing for a seed that failed."""
    with h5netcdf.File(path, "r") as file:
        if "estimates" not in file.groups:
            return {}
        tau = file["estimates"]["tau"][:]
    return {f"spread of discriminations (τ), dimension {k}": float(one) for k, one in enumerate(tau, start=1)}


def read_fits(results: Path) -> tuple[Fit, ...]:
    """Read the fits table with a card per seed; the seeds are those of the table."""
    table = pd.read_csv(results / "fits.csv", dtype=str, keep_default_na=False)
    fits = []
    for row in table.to_dict("records"):
        seeds = row["seeds"].split()
        fits.append(
            Fit(
                name=row["fit"],
                engine=row["engine"],
                policy=row["policy"],
                dims=int(row["dims"]),
                asymptotes=row["asymptotes"].lower() == "true",
                testlets=row["testlets"].lower() == "true",
                purpose=row.get("purpose", ""),
                runs=tuple(read_run(results / "fits" / row["fit"] / f"seed{seed}.nc") for seed in seeds),
            )
        )
    return tuple(fits)


def gather(
    results: Path, study: Any, configfiles: Sequence[str] = (), overrides: Sequence[str] = ()
) -> Findings:
    """Read all that the page shows.

    Parameters
    ----------
    results
        The results folder.
    study
        See `benchmirt.report.build`.
    configfiles
        Files given by ``--configfile``.
    overrides
        What ``--config`` set, as ``key=value``.

    Raises
    ------
    InputError
        If a file is missing or malformed.
    """
    home = results / "dimensions"
    naming = store.read_abilities(results)
    models = store.read_csv(results / catalogue.MODELS, ("model", "ability_1"))
    left_out = store.read_dataset(results / catalogue.LEAVE_ONE_OUT)
    report = getattr(study, "report", None) or {}
    return Findings(
        results=results,
        shown_results=str(getattr(study, "results", "") or "results"),
        configfiles=tuple(configfiles),
        overrides=tuple(overrides),
        name=str(study.name),
        title=str(report.get("title") or study.title or study.name),
        simulated=bool(study.simulated),
        records=tuple(drawing.records(results, study)),
        naming=naming,
        labels=read_json(home / "labels.json"),
        number=read_json(home / "number.json"),
        stability=read_json(home / "stability.json"),
        reproducibility=store.read_csv(results / catalogue.REPRODUCIBILITY, ("fit", "seed", "dimension")),
        checks=store.read_csv(home / "checks.csv", ("fit", "engine", "converged", "ability")),
        item_statistics=store.read_csv(
            results / catalogue.ITEMS, ("question_id", "benchmark", "discrimination_1")
        ),
        model_statistics=store.oriented_models(models, naming.orientation),
        agreement=agreement.agreement(models, left_out, naming),
        items=read_parquet(results / "matrix" / "honest" / "items.parquet"),
        models=read_parquet(results / "matrix" / "honest" / "models.parquet"),
        coverage=store.read_csv(
            results / "matrix" / "honest" / "coverage.csv", ("benchmark", "model", "items")
        ),
        summaries={policy: read_json(results / "matrix" / policy / "summary.json") for policy in POLICIES},
        fits=read_fits(results),
        card=read_json(results / "data_card.json"),
        profiles=store.read_csv(results / "profiles" / "benchmarks.csv", ("benchmark", "category")),
    )
