"""One fit by one tool in a process of its own: what peers.py starts, once a fit, with the interpreter that has the tool.

    python tests/benchmarks/peers_runner.py TOOL SEEN.npz DIMS START FOLDER

SEEN.npz holds ``seen``, int8 of shape (models, items): 1, 0 or -1 for not observed. FOLDER gets ``fit.npz`` (``theta``: models x
dims, ``a``: items x dims, ``probability``: models x items) and ``fit.json`` (version, seconds, peak memory, convergence). A fit
that fails ends this process with its traceback: peers.py reads the reason there.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Fit = dict[str, Any]


class NoTorch(MetaPathFinder):
    """Hide torch from mirt, which looks for a GPU with it: torch is here for py-irt, and its memory is not mirt's."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse torch and leave all else to the finders that follow."""
        if name == "torch":
            raise ModuleNotFoundError("torch is hidden from mirt", name=name)


def timed(fit: Callable[[], Any]) -> tuple[Any, Fit]:
    """Call once; return the result, its seconds (wall and CPU) and the peak memory of this process so far."""
    start, cpu = time.perf_counter(), time.process_time()
    result = fit()
    return result, {
        "fit_seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "again_seconds": None,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def our_engine(engine: str, seen: np.ndarray, dims: int, start: int) -> Fit:
    """Fit with an engine of benchmirt, twice: the first call compiles."""
    from benchmirt import launch

    launch.prepare(len(os.sched_getaffinity(0)), devices=1)
    from benchmirt import inference, matrix
    from benchmirt.likelihood import predict
    from benchmirt.provenance import commit

    def fit() -> inference.FitRecord:
        return inference.fit(matrix.from_arrays(seen), engine=engine, dims=dims, seed=start)

    record, cost = timed(fit)
    cost["again_seconds"] = timed(fit)[1]["fit_seconds"]
    moments = (record.theta_mean, record.theta_cov, record.a_mean, record.d_mean, record.item_cov)
    return {
        "version": "+".join(filter(None, (version("benchmirt"), (commit() or "")[:9]))),
        "converged": record.converged,
        "theta": record.theta_mean,
        "a": record.a_mean,
        "probability": np.asarray(predict(*moments), dtype=np.float64),
        **cost,
    }


def py_irt(seen: np.ndarray, dims: int, start: int) -> Fit:
    """Fit with py-irt as the published study calls it, seeded here since the study sets no seed."""
    import pandas as pd
    import pyro
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    epochs = 5000
    settings = IrtConfig(
        model_type="multidim_2pl",
        priors="vague",
        epochs=epochs,
        dims=dims,
        lr=0.2,
        lr_decay=0.9999,
        initializers=[],
    )
    models, items = seen.shape
    frame = pd.DataFrame(
        np.where(seen < 0, np.nan, seen),
        index=[f"model{i}" for i in range(models)],
        columns=[f"item{j}" for j in range(items)],
    )
    pyro.set_rng_seed(start)

    def fit() -> Any:
        data = Dataset.from_pandas(frame)
        trainer = IrtModelTrainer(data_path=Path(), config=settings, dataset=data, verbose=False)
        trainer.train(epochs=epochs, device="cpu")
        return trainer.best_params

    best, cost = timed(fit)
    theta, a, b = (np.asarray(best[name], dtype=np.float64) for name in ("ability", "disc", "diff"))
    eta = theta @ a.T - (a * b).sum(1)
    return {
        "version": version("py-irt"),
        "converged": None,
        "theta": theta,
        "a": a,
        "probability": np.exp(-np.logaddexp(0.0, -eta)),
        **cost,
    }


def mirt(seen: np.ndarray, dims: int, start: int) -> Fit:
    """Fit with Python's mirt: EM at its defaults, but without standard errors, and EAP scores; nothing in it is random."""
    sys.meta_path.insert(0, NoTorch())
    from mirt import fit_mirt, fscores

    def fit() -> Any:
        result = fit_mirt(seen, model="2PL", n_factors=dims, compute_standard_errors=False)
        return result, fscores(result, seen).theta

    (result, theta), cost = timed(fit)
    return {
        "version": version("mirt"),
        "converged": bool(result.converged),
        "theta": theta,
        "a": np.asarray(result.model.parameters["discrimination"]).reshape(-1, dims),
        "probability": result.model.probability(theta),
        **cost,
    }


def main() -> None:
    """Fit and write both files."""
    tool, file, dims, start, folder = sys.argv[1:]
    seen = np.load(file)["seen"]
    if tool in ("svi", "em"):
        found = our_engine(tool, seen, int(dims), int(start))
    else:
        found = {"py-irt": py_irt, "mirt": mirt}[tool](seen, int(dims), int(start))
    arrays = {name: found.pop(name) for name in ("theta", "a", "probability")}
    np.savez(Path(folder) / "fit.npz", **arrays)
    (Path(folder) / "fit.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
