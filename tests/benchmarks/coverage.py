"""Do the intervals of the engines hold the truth as often as they say? A table of coverage over simulated replications.

    python tests/benchmarks/coverage.py --replications 400 --csv coverage.csv [--engines em svi nuts] [--heavy-tails]
        [--discrimination-df 4]

Each replication draws abilities and item parameters from the model's prior (or from t distributions with 4 degrees of freedom),
simulates responses of one fixed shape, so that one compilation serves all, and fits them. Truth are the values drawn, brought to
the frame of records: abilities with mean 0 and second moment I, and the rotation that brings the fit closest to them. Counted are
95 % intervals of abilities, MDISC, MDIFF (both Reckase 2009), each item's direction and the direction of the mean discrimination
of a group of items: of draws where there are any, else normal ones by the delta method. Per tercile of |theta| or MDISC as well:
of the estimates, where an exact posterior covers at its nominal rate, and of the truth, where none does that shrinks at all (the
largest true values are those that luck made look smaller). The Monte-Carlo interval is that of a mean over replications at 99 %,
since cells of one replication are not independent draws.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


def turned(angle: np.ndarray) -> np.ndarray:
    """Bring differences of angles to [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def grouped(values: np.ndarray) -> np.ndarray:
    """Average the second axis but last (items) by group of items."""
    return values.reshape(*values.shape[:-2], -1, GROUP, values.shape[-1]).mean(-2)


class Found(NamedTuple):
    """One quantity: whether each 95 % interval holds the truth, and the sizes that terciles are taken of."""

    held: np.ndarray
    size: np.ndarray
    true_size: np.ndarray


def sizes(a: np.ndarray) -> np.ndarray:
    """Length of each vector."""
    return np.linalg.norm(a, axis=-1)


def angles(a: np.ndarray) -> np.ndarray:
    """Direction of each vector in the plane, radians."""
    return np.arctan2(a[..., 1], a[..., 0])


def aligned(record: Any, truth: dict[str, np.ndarray]) -> np.ndarray:
    """Rotation that brings the record closest to the truth."""
    left, _, right = np.linalg.svd(np.asarray(record.a_mean, float).T @ truth["a"])
    return left @ right


def by_moments(record: Any, truth: dict[str, np.ndarray]) -> Iterator[tuple[str, Found]]:
    """Judge normal intervals, by the delta method, around what a Gaussian posterior estimates."""
    R = aligned(record, truth)
    turn = np.eye(3)
    turn[:2, :2] = R.T
    theta, a, d = record.theta_mean @ R, record.a_mean @ R, np.asarray(record.d_mean, float)
    theta_sd = np.sqrt(np.einsum("pq,npr,rq->nq", R, record.theta_cov, R))
    cov = turn @ np.asarray(record.item_cov, float) @ turn.T
    size, true_size = sizes(a), sizes(truth["a"])

    def inside(estimate: np.ndarray, deviation: np.ndarray, value: np.ndarray) -> np.ndarray:
        return np.abs(estimate - value) <= Z95 * deviation

    def deviation(gradient: np.ndarray) -> np.ndarray:
        return np.sqrt(np.einsum("jp,jpq,jq->j", gradient, cov, gradient))

    held = inside(theta, theta_sd, truth["theta"]).ravel()
    yield "ability", Found(held, np.repeat(sizes(theta), 2), np.repeat(sizes(truth["theta"]), 2))
    unit = a / size[:, None]
    nothing = np.zeros((ITEMS, 1))
    yield "MDISC", Found(inside(size, deviation(np.hstack([unit, nothing])), true_size), size, true_size)
    slope = np.hstack([unit * (d / size**2)[:, None], -1 / size[:, None]])
    yield "MDIFF", Found(inside(-d / size, deviation(slope), -truth["d"] / true_size), size, true_size)

    def direction(mean: np.ndarray, covariance: np.ndarray, true_mean: np.ndarray) -> Found:
        length = sizes(mean)
        across = np.column_stack([-mean[:, 1], mean[:, 0]]) / length[:, None] ** 2
        spread = np.sqrt(np.einsum("jp,jpq,jq->j", across, covariance, across))
        off = turned(angles(mean) - angles(true_mean))
        return Found(inside(off, spread, np.zeros(len(off))), length, sizes(true_mean))

    of_items = cov[:, :2, :2]
    of_groups = of_items.reshape(-1, GROUP, 2, 2).mean(1) / GROUP
    yield "direction", direction(a, of_items, truth["a"])
    yield "group direction", direction(grouped(a), of_groups, grouped(truth["a"]))


def by_draws(record: Any, truth: dict[str, np.ndarray]) -> Iterator[tuple[str, Found]]:
    """Judge equal-tailed intervals of the draws."""
    R = aligned(record, truth)
    flat = {name: np.concatenate(list(values)) for name, values in record.draws.items()}
    theta, a, d = flat["theta"] @ R, flat["a"] @ R, flat["d"]

    def held(draws: np.ndarray, value: np.ndarray) -> np.ndarray:
        # order statistics between which a further draw falls at the rate; the usual ones lack .002 at 1,000 draws
        low, high = np.quantile(draws, (0.025, 0.975), axis=0, method="weibull")
        return (low <= value) & (value <= high)

    size, true_size = sizes(a.mean(0)), sizes(truth["a"])
    of_models = np.repeat(sizes(theta.mean(0)), 2), np.repeat(sizes(truth["theta"]), 2)
    yield "ability", Found(held(theta, truth["theta"]).ravel(), *of_models)
    yield "MDISC", Found(held(sizes(a), true_size), size, true_size)
    yield "MDIFF", Found(held(-d / sizes(a), -truth["d"] / true_size), size, true_size)

    def direction(draws: np.ndarray, value: np.ndarray) -> Found:
        off = turned(angles(draws) - angles(value))
        # angles have no ends: measured from the middle of the draws
        middle = np.arctan2(np.sin(off).mean(0), np.cos(off).mean(0))
        return Found(held(turned(off - middle), turned(-middle)), sizes(draws.mean(0)), sizes(value))

    yield "direction", direction(a, truth["a"])
    yield "group direction", direction(grouped(a), grouped(truth["a"]))


def rates(record: Any, truth: dict[str, np.ndarray]) -> dict[tuple[str, str, str], float]:
    """Return the share of intervals that hold the truth, per quantity, tercile, and what the terciles are of."""
    found = {}
    for quantity, one in (by_moments if record.draws is None else by_draws)(record, truth):
        found[quantity, "all", "all"] = float(one.held.mean())
        for of, size in (("estimate", one.size), ("truth", one.true_size)):
            tercile = np.digitize(size, np.quantile(size, (1 / 3, 2 / 3)))
            for index, name in enumerate(("low", "middle", "high")):
                found[quantity, name, of] = float(one.held[tercile == index].mean())
    return found


def main() -> None:
    """Simulate, fit, count, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--engines", nargs="+", default=["em", "svi"], choices=sorted(OPTIONS))
    parser.add_argument(
        "--heavy-tails", action="store_true", help="draw from t distributions, not from the prior"
    )
    parser.add_argument(
        "--discrimination-df", type=float, help="fit a t distribution of discriminations, not a normal one"
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
        counted: dict[tuple[str, str, str], list[float]] = {}
        rng = np.random.default_rng(given.seed)
        for _ in progress(range(given.replications), total=given.replications, what=engine):
            truth = draw(rng, given.heavy_tails)
            data = matrix.from_arrays(truth["y"])
            record = inference.fit(
                data,
                engine=engine,
                dims=2,
                seed=0,
                options=OPTIONS[engine],
                priors={"discrimination_df": given.discrimination_df},
            )
            for key, rate in rates(record, truth).items():
                counted.setdefault(key, []).append(rate)
        for (quantity, tercile, of), values in counted.items():
            error = Z99 * np.std(values, ddof=1) / np.sqrt(len(values))
            rows.append(
                {
                    "simulated": True,
                    "engine": engine,
                    "truth": "t with 4 degrees of freedom" if given.heavy_tails else "normal",
                    "prior": f"t with {given.discrimination_df:g} degrees of freedom"
                    if given.discrimination_df
                    else "normal",
                    "quantity": quantity,
                    "tercile": tercile,
                    "tercile_of": of,
                    "replications": len(values),
                    "coverage": round(float(np.mean(values)), 4),
                    "low": round(float(np.mean(values) - error), 4),
                    "high": round(float(np.mean(values) + error), 4),
                }
            )
    files.write_csv(pd.DataFrame(rows), given.csv)


if __name__ == "__main__":
    main()
