"""How time and memory of a fit grow with models and items, beside the memory that is estimated before it starts.

    python tests/benchmarks/growth.py --csv growth.csv [--plot growth.png] [--engines em svi nuts] [--sizes 100x1000 4500x21600]

Each fit runs twice in one process of its own, on simulated data in two dimensions: the first time includes compilation, the
second does not; NUTS takes few draws, two chains at a time. Peak memory is that of the process, the simulated responses included
(a byte a cell).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmirt import launch

OPTIONS = {"nuts": {"chains": 2, "warmup": 10, "draws": 100}}
SIZES = ("100x1000", "100x10000", "100x34301", "400x10000", "400x34301", "1000x34301", "4500x21600")


def chains_of(engine: str) -> int:
    """Chains that run at once."""
    return OPTIONS.get(engine, {}).get("chains", 1)


def simulate(models: int, items: int, seed: int = 1) -> np.ndarray:
    """Simulate responses in two dimensions, a stretch of items at a time so that little memory is needed."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((models, 2)).astype(np.float32)
    y = np.empty((models, items), np.int8)
    for start in range(0, items, 1000):
        width = min(1000, items - start)
        a = rng.normal(0.0, (1.0, 0.7), (width, 2)).astype(np.float32)
        eta = theta @ a.T + rng.standard_normal(width).astype(np.float32)
        y[:, start : start + width] = rng.random(eta.shape, dtype=np.float32) < 1 / (1 + np.exp(-eta))
    return y


def measure(engine: str, models: int, items: int) -> dict[str, Any]:
    """Fit twice in this process; return seconds and peak memory."""
    import resource
    import time

    from benchmirt import inference, matrix

    data = matrix.from_arrays(simulate(models, items))
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        record = inference.fit(data, engine=engine, dims=2, seed=1, options=OPTIONS.get(engine))
        seconds.append(time.perf_counter() - start)
    return {
        "first_s": round(seconds[0], 2),
        "again_s": round(seconds[1], 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1),
        "converged": record.converged,
    }


def alone(engine: str, models: int, items: int) -> dict[str, Any]:
    """Measure in a process of its own, and add the estimate."""
    from benchmirt.inference import memory

    told = subprocess.run(
        [sys.executable, __file__, "--alone", engine, str(models), str(items)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    drawn = {key: OPTIONS[engine][key] for key in ("chains", "draws")} if engine in OPTIONS else {}
    row: dict[str, Any] = {"simulated": True, "engine": engine, "models": models, "items": items}
    row |= json.loads(told.splitlines()[-1])
    row["estimate_mb"] = round(memory.estimate_bytes(engine, models, items, 2, **drawn) / 1e6, 1)
    row["estimate_to_peak"] = round(row["estimate_mb"] / row["peak_mb"], 2)
    return row


def plot(table: pd.DataFrame, path: Path) -> None:
    """Draw seconds and memory against the number of cells."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots(1, 2)
    for engine, part in table.groupby("engine"):
        cells = part["models"] * part["items"]
        axes[0].plot(cells, part["again_s"], "o-", label=engine)
        axes[1].plot(cells, part["peak_mb"], "o-", label=engine)
        axes[1].plot(cells, part["estimate_mb"], ":", color="grey")
    for axis, what in zip(axes, ("seconds (compiled)", "peak memory, MB (dotted: estimated)"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="models x items, simulated", ylabel=what)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure all sizes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", default=["em", "svi"], choices=["em", "svi", "nuts"])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="MODELSxITEMS")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()

    if given.alone:
        engine, models, items = given.alone
        launch.prepare(len(os.sched_getaffinity(0)), devices=chains_of(engine))
        print(json.dumps(measure(engine, int(models), int(items))))
        return
    rows = []
    for size in given.sizes:
        for engine in given.engines:
            rows.append(alone(engine, *map(int, size.split("x"))))
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    if given.csv:
        table.to_csv(given.csv, index=False)
    if given.plot:
        plot(table, given.plot)


if __name__ == "__main__":
    main()
