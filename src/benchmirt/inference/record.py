"""The record of one fit: what every engine returns, and the only thing that later stations read.

A record holds what is reproducible (posterior moments, draws, diagnostics, priors as really used, seeds, versions),
never times or memory, which go to a ``.run.json`` beside it. On disk it is NetCDF with named dimensions: group
``estimates`` for the moments, and for engines that draw, ``posterior`` and ``sample_stats`` as ArviZ names them, so that
``arviz.from_netcdf`` reads the file in its 0.x and 1.x generations alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from benchmirt import provenance
from benchmirt.errors import InputError
from benchmirt.files import atomic

__all__ = ["FitError", "FitRecord", "TestletPosterior", "load_seeds"]

ARRAYS = ("theta_mean", "theta_cov", "a_mean", "d_mean", "item_cov", "tau", "trace")
Floats = NDArray[np.floating[Any]]


class FitError(RuntimeError):
    """A fit ended without a usable result; the message says at which step and why."""


@dataclass(frozen=True)
class TestletPosterior:
    """Posterior of the testlets' effects on models, in logits.

    Attributes
    ----------
    mean, variance
        Posterior of the effects, each of shape (models, testlets).
    sigma_t
        Standard deviation of all effects (posterior mean or mode).
    of_item
        Code of each item's testlet, shape (items,); -1 where it belongs to none.
    """

    mean: Floats
    variance: Floats
    sigma_t: float
    of_item: NDArray[np.integer[Any]]

    def by_item(self) -> tuple[Floats, Floats]:
        """Return mean and variance item by item, each of shape (models, items); 0 for an item without a testlet."""
        none = np.zeros((len(self.mean), 1), self.mean.dtype)
        mean, variance = (
            np.concatenate([values, none], axis=1)[:, self.of_item] for values in (self.mean, self.variance)
        )
        return mean, variance


@dataclass(frozen=True)
class FitRecord:
    """Posterior of one fit.

    Attributes
    ----------
    engine, dims, seed
        How it was made.
    theta_mean, theta_cov
        Posterior mean and covariance of the abilities, shapes (models, dims) and (models, dims, dims).
    a_mean, d_mean
        Posterior means of discriminations (items, dims) and intercepts (items,), in logits.
    item_cov
        Posterior covariance over (a_1..a_K, d) of each item, shape (items, dims + 1, dims + 1).
    tau, mu_d, sigma_d
        Posterior mean or mode of the hyperparameters.
    trace
        Loss at each step or sweep (svi, em), or the potential energy of the draws (nuts).
    draws
        ``theta`` (chain, draw, models, dims) in full, ``a`` and ``d`` thinned, or None.
    sample_stats
        Per-draw diagnostics (chain, draw) of NUTS, or None.
    testlets
        Effects of testlets, or None where they are not modelled.
    models, items
        Names in the order of the arrays.
    data_hash
        Hash of the responses, asymptotes and names that were fitted.
    priors, diagnostics, versions
        As really used, as measured, as installed.
    converged, converged_why
        Verdict on identified quantities, with its reason.
    """

    engine: str
    dims: int
    seed: int
    theta_mean: Floats
    theta_cov: Floats
    a_mean: Floats
    d_mean: Floats
    item_cov: Floats
    tau: Floats
    mu_d: float
    sigma_d: float
    trace: Floats
    models: tuple[str, ...]
    items: tuple[str, ...]
    data_hash: str
    priors: dict[str, Any]
    diagnostics: dict[str, Any]
    versions: dict[str, Any]
    converged: bool
    converged_why: str
    draws: dict[str, Floats] | None = None
    sample_stats: dict[str, Floats] | None = None
    testlets: TestletPosterior | None = None

    def __post_init__(self) -> None:
        """Refuse a record that holds a number which is not finite: no NaN is ever passed on.

        Raises
        ------
        FitError
            Naming the array and how many of its values are not finite.
        """
        for name in ARRAYS:
            bad = int(np.size(getattr(self, name)) - np.isfinite(getattr(self, name)).sum())
            if bad:
                raise FitError(
                    f"{self.engine} fit with {self.dims} dimensions, seed {self.seed}: {bad} values of {name} are "
                    "not finite, so the fit is refused"
                )
        if self.testlets is not None and not np.isfinite(self.testlets.mean).all():
            raise FitError(f"{self.engine} fit, seed {self.seed}: effects of testlets are not finite")
        for name, values in (self.draws or {}).items():
            if not np.isfinite(values).all():
                raise FitError(f"{self.engine} fit, seed {self.seed}: draws of {name} are not finite")

    @staticmethod
    def save_failure(
        path: str | Path, *, engine: str, dims: int, seed: int, data_hash: str, why: str
    ) -> None:
        """Write, in place of a record, that a seed's fit failed and why, so that it is listed beside the others."""
        attributes = {
            "engine": engine,
            "dims": dims,
            "seed": seed,
            "data_hash": data_hash,
            "failed": 1,
            "converged": 0,
            "converged_why": f"failed: {why}",
            "priors": "{}",
            "diagnostics": "{}",
            "versions": json.dumps(provenance.versions(), sort_keys=True),
        }
        with atomic(path) as temporary:
            xr.Dataset(attrs=attributes).to_netcdf(temporary, engine="h5netcdf", mode="w")

    def eta(self) -> Floats:
        """Logits at the posterior means, shape (models, items)."""
        return self.theta_mean @ self.a_mean.T + self.d_mean

    def save(self, path: str | Path) -> None:
        """Write the record as NetCDF, atomically and byte-reproducibly."""
        k = self.dims
        parameter = [f"a_{i + 1}" for i in range(k)] + ["d"]
        coords = {"model": list(self.models), "item": list(self.items), "dimension": np.arange(1, k + 1)}
        estimates = xr.Dataset(
            {
                "theta_mean": (("model", "dimension"), np.asarray(self.theta_mean, np.float32)),
                "theta_cov": (("model", "dimension", "dimension_"), np.asarray(self.theta_cov, np.float32)),
                "a_mean": (("item", "dimension"), np.asarray(self.a_mean, np.float32)),
                "d_mean": (("item",), np.asarray(self.d_mean, np.float32)),
                "item_cov": (("item", "parameter", "parameter_"), np.asarray(self.item_cov, np.float32)),
                "tau": (("dimension",), np.asarray(self.tau, np.float32)),
                "mu_d": ((), float(self.mu_d)),
                "sigma_d": ((), float(self.sigma_d)),
                "trace": (("step",), np.asarray(self.trace, np.float64)),
            },
            coords={**coords, "parameter": parameter},
        )
        attributes = {
            "engine": self.engine,
            "dims": k,
            "seed": self.seed,
            "data_hash": self.data_hash,
            "converged": int(self.converged),
            "converged_why": self.converged_why,
            "priors": json.dumps(self.priors, sort_keys=True),
            "diagnostics": json.dumps(self.diagnostics, sort_keys=True),
            "versions": json.dumps(self.versions, sort_keys=True),
        }
        if self.testlets is not None:
            attributes["testlet_effects"] = 1
        compress = {"zlib": True, "complevel": 1}
        with atomic(path) as temporary:
            xr.Dataset(attrs=attributes).to_netcdf(temporary, engine="h5netcdf", mode="w")
            estimates.to_netcdf(temporary, engine="h5netcdf", mode="a", group="estimates")
            if self.testlets is not None:
                effects = xr.Dataset(
                    {
                        "mean": (("model", "testlet"), np.asarray(self.testlets.mean, np.float32)),
                        "variance": (("model", "testlet"), np.asarray(self.testlets.variance, np.float32)),
                        "sigma_t": ((), self.testlets.sigma_t),
                        "of_item": (("item",), np.asarray(self.testlets.of_item, np.int64)),
                    }
                )
                effects.to_netcdf(temporary, engine="h5netcdf", mode="a", group="testlets")
            if self.draws is not None:
                posterior = xr.Dataset(
                    {
                        "theta": (
                            ("chain", "draw", "model", "dimension"),
                            self.draws["theta"].astype(np.float32),
                        ),
                        "a": (
                            ("chain", "thinned_draw", "item", "dimension"),
                            self.draws["a"].astype(np.float32),
                        ),
                        "d": (("chain", "thinned_draw", "item"), self.draws["d"].astype(np.float32)),
                    },
                    coords={
                        **coords,
                        "chain": np.arange(self.draws["theta"].shape[0]),
                        "draw": np.arange(self.draws["theta"].shape[1]),
                    },
                )
                posterior.to_netcdf(
                    temporary,
                    engine="h5netcdf",
                    mode="a",
                    group="posterior",
                    encoding=dict.fromkeys(("theta", "a", "d"), compress),
                )
            if self.sample_stats is not None:
                xr.Dataset(
                    {name: (("chain", "draw"), values) for name, values in sorted(self.sample_stats.items())}
                ).to_netcdf(temporary, engine="h5netcdf", mode="a", group="sample_stats")

    @classmethod
    def load(cls, path: str | Path) -> FitRecord:
        """Read a record.

        Raises
        ------
        FitError
            If the file says that the fit failed, with the reason.
        InputError
            If the file is missing or is not a fit record.
        """
        try:
            with xr.open_dataset(path, engine="h5netcdf") as root:
                attributes = dict(root.attrs)
            if "failed" in attributes:
                raise FitError(str(attributes["converged_why"]))
            with xr.open_dataset(path, engine="h5netcdf", group="estimates") as opened:
                estimates = opened.load()
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                "this is not a readable fit record",
                file=path,
                found=str(error).splitlines()[0] if str(error) else type(error).__name__,
                expected="a NetCDF file with the group 'estimates', as the fit rule writes it",
                todo="delete the file and run the workflow again",
            ) from error
        draws = stats = testlets = None
        if "testlet_effects" in attributes:
            with xr.open_dataset(path, engine="h5netcdf", group="testlets") as opened:
                testlets = TestletPosterior(
                    opened["mean"].to_numpy(),
                    opened["variance"].to_numpy(),
                    float(opened["sigma_t"]),
                    opened["of_item"].to_numpy(),
                )
        if attributes["engine"] == "nuts":
            with xr.open_dataset(path, engine="h5netcdf", group="posterior") as posterior:
                draws = {name: posterior[name].to_numpy() for name in ("theta", "a", "d")}
            with xr.open_dataset(path, engine="h5netcdf", group="sample_stats") as opened:
                stats = {str(name): opened[name].to_numpy() for name in opened.data_vars}
        return cls(
            engine=str(attributes["engine"]),
            dims=int(attributes["dims"]),
            seed=int(attributes["seed"]),
            **{name: estimates[name].to_numpy() for name in ARRAYS},
            mu_d=float(estimates["mu_d"]),
            sigma_d=float(estimates["sigma_d"]),
            models=tuple(str(name) for name in estimates["model"].to_numpy()),
            items=tuple(str(name) for name in estimates["item"].to_numpy()),
            data_hash=str(attributes["data_hash"]),
            priors=json.loads(attributes["priors"]),
            diagnostics=json.loads(attributes["diagnostics"]),
            versions=json.loads(attributes["versions"]),
            converged=bool(attributes["converged"]),
            converged_why=str(attributes["converged_why"]),
            draws=draws,
            sample_stats=stats,
            testlets=testlets,
        )


def load_seeds(paths: Iterable[str | Path]) -> tuple[list[FitRecord], dict[int, str]]:
    """Read the records of a fit's seeds, and, of the seeds whose fit failed, why.

    Raises
    ------
    InputError
        If a file is missing or is not a fit record.
    """
    records, failed = [], {}
    for path in paths:
        try:
            records.append(FitRecord.load(path))
        except FitError as error:
            with xr.open_dataset(path, engine="h5netcdf") as root:
                failed[int(root.attrs["seed"])] = str(error)
    return records, failed
