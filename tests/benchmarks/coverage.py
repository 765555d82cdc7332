"""Do the intervals of the engines hold the truth as often as they say? A table of coverage over simulated replications.

    python tests/benchmarks/coverage.py --replications 400 --csv coverage.csv [--engines em svi nuts] [--heavy-tails]

Each replication draws abilities and item parameters from the model's prior (or from t distributions with 4 degrees of freedom),
simulates responses of one fixed shape, so that one compilation serves all, and fits them. Truth are the values drawn, brought to
the frame of records: abilities with mean 0 and second moment I, and the rotation that brings the fit closest to them. Counted are
95 % intervals: normal ones for abilities and, by the delta method, for MDISC, MDIFF (both Reckase 2009), each item's direction
and the direction of the mean discrimination of a group of items; per tercile of |theta| or MDISC as well. The Monte-Carlo
interval is that of a mean over replications at 99 %, since cells of one replication are not independent draws.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MODELS, ITEMS, GROUP = 60, 200, 20
TAU = np.array([1.0, 0.7])
Z95, Z99 = 1.959964, 2.575829
OPTIONS: dict[str, dict[str, Any]] = {
    "em": {"tolerance": 1e-4},
    "svi": {"steps": 600},
    "nuts": {"chains": 2, "warmup": 200, "draws": 500},
}


def draw(rng: np.random.Generator, heavy: bool) -> dict[str, np.ndarray]:
    """Draw abilities, item parameters and responses; the parameters in the frame of the sample of abilities."""

    def sample(*shape: int) -> np.ndarray:
        if heavy:
            return rng.standard_t(4, shape) / np.sqrt(2.0)  # variance 1
        return rng.standard_normal(shape)

    theta, a, d = sample(MODELS, 2), sample(ITEMS, 2) * TAU, sample(ITEMS)
    y = rng.random((MODELS, ITEMS)) < 1 / (1 + np.exp(-(theta @ a.T + d)))
    center = theta.mean(0)
    scale = np.linalg.cholesky(np.cov(theta.T, bias=True))
    return {
        "y": y.astype(np.int8),
        "theta": (theta - center) @ np.linalg.inv(scale).T,
        "a": a @ scale,
        "d": d + a @ center,
    }


def inside(estimate: np.ndarray, deviation: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Tell which normal 95 % intervals hold the truth."""
    return np.abs(estimate - truth) <= Z95 * deviation


def turned(angle: np.ndarray) -> np.ndarray:
    """Bring differences of angles to [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def judged(record: Any, truth: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield quantity, whether each interval holds the truth, and what its terciles are taken of."""
    left, _, right = np.linalg.svd(np.asarray(record.a_mean, float).T @ truth["a"])
    R = left @ right
    turn = np.eye(3)
    turn[:2, :2] = R.T
    theta, a, d = record.theta_mean @ R, record.a_mean @ R, np.asarray(record.d_mean, float)
    theta_sd = np.sqrt(np.einsum("pq,npr,rq->nq", R, record.theta_cov, R))
    cov = turn @ np.asarray(record.item_cov, float) @ turn.T
    size, true_size = np.linalg.norm(a, axis=1), np.linalg.norm(truth["a"], axis=1)
    distance = np.linalg.norm(truth["theta"], axis=1)
    yield "ability", inside(theta, theta_sd, truth["theta"]).ravel(), np.repeat(distance, 2)

    unit = a / size[:, None]
    across = np.column_stack([-unit[:, 1], unit[:, 0]])

    def deviation(gradient: np.ndarray) -> np.ndarray:
        return np.sqrt(np.einsum("jp,jpq,jq->j", gradient, cov, gradient))

    nothing = np.zeros((ITEMS, 1))
    yield "MDISC", inside(size, deviation(np.hstack([unit, nothing])), true_size), true_size
    difficulty, true_difficulty = -d / size, -truth["d"] / true_size
    slope = np.hstack([unit * (d / size**2)[:, None], -1 / size[:, None]])
    yield "MDIFF", inside(difficulty, deviation(slope), true_difficulty), true_size
    angle, true_angle = np.arctan2(a[:, 1], a[:, 0]), np.arctan2(truth["a"][:, 1], truth["a"][:, 0])
    spread = deviation(np.hstack([across / size[:, None], nothing]))
    yield "direction", inside(turned(angle - true_angle), spread, np.zeros(ITEMS)), true_size

    def grouped(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, GROUP, *values.shape[1:]).mean(1)

    mean, true_mean = grouped(a), grouped(truth["a"])
    mean_cov = grouped(cov[:, :2, :2]) / GROUP
    length = np.linalg.norm(mean, axis=1)
    across = np.column_stack([-mean[:, 1], mean[:, 0]]) / length[:, None] ** 2
    spread = np.sqrt(np.einsum("jp,jpq,jq->j", across, mean_cov, across))
    off = turned(np.arctan2(mean[:, 1], mean[:, 0]) - np.arctan2(true_mean[:, 1], true_mean[:, 0]))
    yield "group direction", inside(off, spread, np.zeros(len(off))), np.linalg.norm(true_mean, axis=1)


def rates(record: Any, truth: dict[str, np.ndarray]) -> dict[tuple[str, str], float]:
    """Return the share of intervals that hold the truth, per quantity and tercile."""
    found = {}
    for quantity, held, size in judged(record, truth):
        found[quantity, "all"] = float(held.mean())
        tercile = np.digitize(size, np.quantile(size, (1 / 3, 2 / 3)))
        for index, name in enumerate(("low", "middle", "high")):
            found[quantity, name] = float(held[tercile == index].mean())
    return found


def main() -> None:
    """Simulate, fit, count, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--engines", nargs="+", default=["em", "svi"], choices=sorted(OPTIONS))
    parser.add_argument(
        "--heavy-tails", action="store_true", help="draw from t distributions, not from the prior"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, required=True)
    given = parser.parse_args()

    from benchmirt import launch

    launch.prepare(len(os.sched_getaffinity(0)), devices=2)
    from benchmirt import files, inference, matrix
    from benchmirt.progress import progress

    rows: list[dict[str, Any]] = []
    for engine in given.engines:
        counted: dict[tuple[str, str], list[float]] = {}
        rng = np.random.default_rng(given.seed)
        for _ in progress(range(given.replications), total=given.replications, what=engine):
            truth = draw(rng, given.heavy_tails)
            data = matrix.from_arrays(truth["y"])
            record = inference.fit(data, engine=engine, dims=2, seed=0, options=OPTIONS[engine])
            for key, rate in rates(record, truth).items():
                counted.setdefault(key, []).append(rate)
        for (quantity, tercile), values in counted.items():
            error = Z99 * np.std(values, ddof=1) / np.sqrt(len(values))
            rows.append(
                {
                    "simulated": True,
                    "engine": engine,
                    "truth": "t with 4 degrees of freedom" if given.heavy_tails else "prior",
                    "quantity": quantity,
                    "tercile": tercile,
                    "replications": len(values),
                    "coverage": round(float(np.mean(values)), 4),
                    "low": round(float(np.mean(values) - error), 4),
                    "high": round(float(np.mean(values) + error), 4),
                }
            )
    files.write_csv(pd.DataFrame(rows), given.csv)


if __name__ == "__main__":
    main()
