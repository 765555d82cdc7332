"""Our engines beside other tools on the same simulated cells: speed, memory, held-out prediction and recovery, as one CSV.

    python -m venv peers
    peers/bin/pip install torch==2.13.0   # a build for CPUs will do
    peers/bin/pip install -r tests/benchmarks/peers_requirements.txt
    python tests/benchmarks/peers.py --models 100 --items 1000 --dims 2 --seeds 1 2 3 --csv peers.csv \
        --peers-python peers/bin/python [--tools svi em py-irt mirt] [--tries 50] [--limit 3600] [--peer-threads 1]

One row a tool and simulated data set (``engine.simulate``, of which a tenth of the cells is held out; ``seed`` is the seed of the
data). The peers live in an environment of their own; each fit of each tool, ours too, is a process of its own (peers_runner.py).

* svi, em: our engines at their defaults. Probabilities are averaged over the posterior.
* py-irt: multidim_2pl by SVI with the settings of the published study: 5,000 epochs, Adam at .2 with decay .9999, priors "vague"
  (which this model ignores), no initializers, the parameters of the lowest loss. The package has no prediction for this model:
  the probability is sigmoid(sum_k a_k (theta_k - b_k)) of these parameters, as in its likelihood and in the study.
* mirt: the PyPI package of that name, EM on a grid at its defaults (no priors on the items), without standard errors; EAP scores.
  The probability is its own ``model.probability`` at these scores.

A fit that fails is started again with the next seed, ``--tries`` times at most (the study allows 50): ``seeds_tried`` and
``seeds_failed`` count, ``reason`` names what went wrong and how often, ``failed_seconds`` is what it cost, and ``start`` is the
seed whose fit the row shows. A tool that is missing, or that fails each time, has a row with the reason and no figures.

``fit_seconds`` run from the response matrix in memory to item parameters and abilities, in a fresh process: for our engines
that includes compilation, which ``again_seconds`` (a second fit in the same process) do not. ``cpu_seconds`` are those of the
same fit on all its ``threads``: every core for our engines, one for the peers, which were slower with two (``--peer-threads``
gives more). ``peak_mb`` is the peak memory of the process when the first fit ends, interpreter and imports included.

Recovery is judged in one frame for all: abilities are standardised to mean 0 and covariance I over the models, and the
discriminations are turned onto the true ones by orthogonal Procrustes; ``congruence_k`` is Tucker's coefficient of dimension k
with the truth, ``ability_r_k`` the correlation. The oracle predicts with the true probabilities, testlet effects included; the
item mean with (right answers + 1) / (answers + 2).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from engine import loss, simulate

from benchmirt import files
from benchmirt import identification as ident

RUNNER = Path(__file__).resolve().parent / "peers_runner.py"
OURS = ("svi", "em")
PEERS = ("py-irt", "mirt")
FIXED = ("mirt",)  # its fit has no random start: a second try would fail like the first
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Data = dict[str, np.ndarray]


def standardised(theta: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Abilities (models, dims) with mean 0 and covariance I over the models, and the discriminations (items, dims) to them."""
    centered = theta - theta.mean(0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(theta))
    root = vectors * np.sqrt(values) @ vectors.T
    return centered @ np.linalg.inv(root), a @ root


def recovery(theta: np.ndarray, a: np.ndarray, data: Data) -> dict[str, float]:
    """Congruence of the discriminations and correlation of the abilities with the truth, per dimension, after alignment."""
    found_theta, found_a = standardised(theta, a)
    true_theta, true_a = standardised(data["theta"], data["a"])
    turn = ident.align(found_a, true_a)
    congruence = ident.congruence(found_a @ turn, true_a)
    r = (found_theta @ turn * true_theta).mean(0)
    return {f"congruence_{k}": float(c) for k, c in enumerate(congruence, 1)} | {
        f"ability_r_{k}": float(c) for k, c in enumerate(r, 1)
    }


def accuracy(probability: np.ndarray, data: Data) -> float:
    """Share of held-out cells on the right side of one half."""
    return float(((probability > 0.5) == (data["y"] == 1))[data["hidden"]].mean())


def item_means(data: Data) -> np.ndarray:
    """Predict each cell by its item's seen answers, (right + 1) / (answers + 2), shape (models, items)."""
    seen = ~data["hidden"]
    right = (data["y"] * seen).sum(0)
    return np.broadcast_to((right + 1) / (seen.sum(0) + 2), seen.shape)


def reason_of(code: int, stderr: str) -> str:
    """Say in a line why a process failed: its signal, the distribution whose parameter is NaN, or its last error."""
    if code < 0:
        return f"killed by signal {-code}"
    lines = stderr.splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)]
    if not heads:
        return f"exit code {code} without an error message"
    head = lines[heads[-1]]
    bad = re.search(r"parameter (\w+) .*of distribution (\w+)\(", head)
    if bad and "nan" in "".join(lines[heads[-1] + 1 : heads[-1] + 2]):
        return f"{head.split(':')[0]}: the {bad[1]} of a {bad[2]} distribution turned NaN"
    return head[:200]


def attempt(
    tool: str, python: str, file: Path, dims: int, start: int, threads: int, limit: float
) -> tuple[dict[str, Any], str]:
    """Fit once in a process of its own; return what it found and an empty reason, or nothing and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | dict.fromkeys(THREADS, str(threads))
        # empty, so that each first fit of ours pays for its compilation
        environment["JAX_COMPILATION_CACHE_DIR"] = folder
        command = [python, str(RUNNER), tool, str(file), str(dims), str(start), folder]
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return {}, f"stopped after {limit:g} s"
        except OSError as error:
            return {}, f"{python} can't be started: {error.strerror}"
        if done.returncode:
            return {}, reason_of(done.returncode, done.stderr)
        with np.load(Path(folder) / "fit.npz") as arrays:
            return json.loads((Path(folder) / "fit.json").read_text()) | dict(arrays), ""


def measured(tool: str, file: Path, data: Data, given: argparse.Namespace) -> dict[str, Any]:
    """Fit until a start succeeds, ``--tries`` times at most; return the figures of a row, or only the reason."""
    ours = tool in OURS
    python = sys.executable if ours else given.peers_python
    threads = len(os.sched_getaffinity(0)) if ours else given.peer_threads
    row: dict[str, Any] = {
        "tool": tool,
        "threads": threads,
        "seeds_tried": 0,
        "seeds_failed": 0,
        "failed_seconds": 0.0,
    }
    if python is None:
        return row | {"reason": "not run: --peers-python is missing"}
    reasons: Counter[str] = Counter()
    found: dict[str, Any] = {}
    for start in range(1 if tool in FIXED else given.tries):
        begin = time.perf_counter()
        found, reason = attempt(tool, python, file, given.dims, start, threads, given.limit)
        row["seeds_tried"] += 1
        if not reason:
            break
        row["seeds_failed"] += 1
        row["failed_seconds"] += time.perf_counter() - begin
        reasons[reason] += 1
        if reason.startswith(("ModuleNotFoundError", "ImportError", python)):
            break  # no other seed would help
    row["reason"] = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    if not found:
        return row
    theta, a, probability = (found.pop(name) for name in ("theta", "a", "probability"))
    return row | {
        **found,
        "start": start,
        "accuracy": accuracy(probability, data),
        "log_loss": loss(probability, data),
        **recovery(theta, a, data),
    }


def columns(dims: int) -> list[str]:
    """Names of the columns, in their order."""
    each = [f"{name}_{k}" for name in ("congruence", "ability_r") for k in range(1, dims + 1)]
    return [
        *("data", "tool", "version", "models", "items", "dims", "seed"),
        *("threads", "fit_seconds", "cpu_seconds", "again_seconds", "peak_mb"),
        *("accuracy", "log_loss", "oracle_log_loss", "item_mean_log_loss", *each, "converged"),
        *("seeds_tried", "seeds_failed", "failed_seconds", "start", "reason"),
    ]  # fmt: skip


def compare(given: argparse.Namespace) -> pd.DataFrame:
    """Measure all tools on all data sets, writing the table after each row."""
    rows: list[dict[str, Any]] = []
    for seed in given.seeds:
        data = simulate(given.models, given.items, given.dims, seed)
        shared = {
            "data": "simulated",
            "models": given.models,
            "items": given.items,
            "dims": given.dims,
            "seed": seed,
            "oracle_log_loss": loss(data["probability"], data),
            "item_mean_log_loss": loss(item_means(data), data),
        }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "seen.npz"
            np.savez(file, seen=np.where(data["hidden"], -1, data["y"]).astype(np.int8))
            for tool in given.tools:
                rows.append(shared | measured(tool, file, data, given))
                table = pd.DataFrame(rows).reindex(columns=columns(given.dims)).round(4)
                files.write_csv(table, given.csv)
                print(table.iloc[-1].dropna().to_dict(), flush=True)
    return table


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--dims", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="seeds of the simulated data sets")
    parser.add_argument("--tools", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument("--peers-python", help="interpreter of the environment that has the peers")
    parser.add_argument("--peer-threads", type=int, default=1)
    parser.add_argument("--tries", type=int, default=50, help="starts of one tool on one data set at most")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of one fit at most")
    parser.add_argument("--csv", type=Path, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    compare(parsed())
