"""Speed, memory and accuracy of the engines on simulated data, as one JSON object.

    python tests/benchmarks/engine.py --models 100 --items 30000 --dims 2 --json engine.json [--no-nuts]

Times are seconds on the cores that this process may use and mean something as ratios only. The floor is one plain forward pass,
``sum(logaddexp(0, A @ theta.T + d))`` in float32; beside it stands a loop written by hand in C (pass.c). The data are simulated
with item groups that have their own loadings, heavy tails and testlets, so not from the prior that is fitted; a tenth of
the cells is held out. What was not run is null.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
HIDDEN = 0.1
SEEDS = 10


def simulate(models: int, items: int, dims: int, seed: int) -> dict[str, np.ndarray]:
    """Simulate responses: 16 groups of items with their own loading patterns, t-distributed loadings, testlets of 10 items."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((models, dims))
    group = np.arange(items) * 16 // items
    center = rng.normal(0.0, 0.8, (16, dims)) + np.array([0.6] + [0.0] * (dims - 1))
    a = center[group] + 0.4 * rng.standard_t(4, (items, dims))
    d = rng.normal(0.3, 1.3, items)
    testlet = rng.normal(0.0, 0.5, (models, -(-items // 10)))[:, np.arange(items) // 10]
    probability = 1 / (1 + np.exp(-(theta @ a.T + d + testlet)))
    return {
        "y": (rng.random((models, items)) < probability).astype(np.int8),
        "hidden": rng.random((models, items)) < HIDDEN,
        "theta": theta,
        "a": a,
        "probability": probability,
    }


def best(call: Callable[[], Any], rounds: int = 7) -> float:
    """Shortest time of a call in seconds."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def loss(probability: np.ndarray, data: dict[str, np.ndarray]) -> float:
    """Held-out log loss per cell, natural logarithm."""
    p = np.where(data["y"] == 1, probability, 1 - probability)
    return float(-np.log(np.clip(p, 1e-9, 1))[data["hidden"]].mean())


def passes(models: int, items: int, y: np.ndarray) -> dict[str, Any]:
    """Time one plain forward pass, our value and gradient in a loop, and the loop in C."""
    import jax
    import jax.numpy as jnp

    from benchmirt import tiles
    from benchmirt.likelihood import log_likelihood

    rng = np.random.default_rng(0)
    theta, a, d = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((models, 2), (items, 2), (items,))
    )
    arrays = [jnp.asarray(x) for x in (theta, a, d)]

    def floor(theta: jax.Array, a: jax.Array, d: jax.Array) -> jax.Array:
        return jnp.logaddexp(0.0, a @ theta.T + d[:, None]).sum()

    floor_pass = jax.jit(floor)
    cells = tiles.split(y)
    gradient = jax.value_and_grad(log_likelihood, argnums=(0, 1, 2))
    rounds = 10

    @jax.jit
    def many(cells: tiles.Tiled, theta: jax.Array, a: jax.Array, d: jax.Array) -> Any:
        def step(_: int, carry: Any) -> Any:
            total, parameters = carry
            value, slopes = gradient(*parameters, cells)
            return total + value, tuple(p + 1e-9 * s for p, s in zip(parameters, slopes, strict=True))

        return jax.lax.fori_loop(0, rounds, step, (jnp.float32(0.0), (theta, a, d)))

    seconds = best(lambda: jax.block_until_ready(floor_pass(*arrays)))
    read = 4 * (models * 2 + items * 3) + 4 * models * items
    return {
        "pass_floor_s": seconds,
        "pass_floor_gb_s": read / seconds / 1e9,
        "value_and_grad_s": best(lambda: jax.block_until_ready(many(cells, *arrays)), 3) / rounds,
        "c_pass_s": by_hand(theta, a, d, y),
    }


def by_hand(theta: np.ndarray, a: np.ndarray, d: np.ndarray, y: np.ndarray) -> float | None:
    """Time the loop in C, or return None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "pass.so"
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "-o", library, HERE / "pass.c", "-lm"], check=True)
        run = ctypes.CDLL(str(library)).value_and_gradient
        run.restype = ctypes.c_double
        columns = np.ascontiguousarray(a.T)
        out = [np.empty_like(x) for x in (theta, columns, d)]
        arguments = [x.ctypes.data_as(ctypes.c_void_p) for x in (theta, columns, d, y, *out)]
        return best(lambda: run(*y.shape, *arguments))


def whole_process(file: Path, dims: int, cache: Path) -> float:
    """Time a whole process that reads the data, fits them by SVI and ends."""
    code = (
        "import sys; from benchmirt import launch; launch.prepare(int(sys.argv[3]))\n"
        "import numpy as np; from benchmirt import inference, matrix\n"
        "y = np.load(sys.argv[1])['seen']\n"
        "inference.fit(matrix.from_arrays(y), engine='svi', dims=int(sys.argv[2]), seed=1)\n"
    )
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, str(file), str(dims), str(len(os.sched_getaffinity(0)))],
        env={**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)},
        check=True,
    )
    return time.perf_counter() - start


def main() -> None:
    """Run all parts and write the object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--items", type=int, default=30_000)
    parser.add_argument("--dims", type=int, default=2)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--no-nuts", action="store_true", help="leave the sampler out; its numbers are null then"
    )
    given = parser.parse_args()

    from benchmirt import launch

    launch.prepare(len(os.sched_getaffinity(0)), devices=2)
    from benchmirt import files, inference, matrix
    from benchmirt import identification as ident
    from benchmirt.likelihood import predict
    from benchmirt.provenance import versions

    data = simulate(given.models, given.items, given.dims, given.seed)
    seen = np.where(data["hidden"], -1, data["y"]).astype(np.int8)
    study = matrix.from_arrays(seen)
    found: dict[str, Any] = {
        "simulated": True,
        "models": given.models,
        "items": given.items,
        "dims": given.dims,
        **passes(given.models, given.items, seen),
        "oracle_log_loss": loss(data["probability"], data),
    }

    def fitted(engine: str, seed: int, **options: Any) -> inference.FitRecord:
        return inference.fit(study, engine=engine, dims=given.dims, seed=seed, options=options)

    def held_out(record: inference.FitRecord) -> float:
        moments = (record.theta_mean, record.theta_cov, record.a_mean, record.d_mean, record.item_cov)
        return loss(np.asarray(predict(*moments), dtype=np.float64), data)

    for engine, name in (("svi", "fit"), ("em", "em")):
        record = fitted(engine, 0)
        found[f"{name}_warm_s"] = best(lambda engine=engine: fitted(engine, 0), 3)
        found[f"{name}_heldout_log_loss"] = held_out(record)
    reference = record.a_mean
    failed, least = 0, 1.0
    for seed in range(SEEDS):
        try:
            one = fitted("svi", seed)
        except inference.FitError:
            failed += 1
            continue
        aligned = one.a_mean @ ident.align(one.a_mean, reference)
        least = min(least, float(ident.congruence(aligned, reference).min()))
    found |= {"seeds_tried": SEEDS, "seeds_failed": failed, "congruence_min": least}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seen.npz"
        np.savez(file, seen=seen)
        found["fit_cold_process_s"] = whole_process(file, given.dims, Path(folder) / "cache")
        found["fit_process_s"] = whole_process(file, given.dims, Path(folder) / "cache")
    sampled = dict.fromkeys(
        [
            "nuts_heldout_log_loss",
            "nuts_wall_s",
            "nuts_rhat_max",
            "nuts_ess_min",
            "nuts_divergences",
            "nuts_draws",
        ]
    )
    if not given.no_nuts:
        start = time.perf_counter()
        record = fitted("nuts", 0, chains=2, warmup=100, draws=1000, thinning=2)
        told = record.diagnostics
        sampled = {
            "nuts_heldout_log_loss": held_out(record),
            "nuts_wall_s": time.perf_counter() - start,
            "nuts_rhat_max": told["rhat_max"],
            "nuts_ess_min": told["ess_min"],
            "nuts_divergences": told["divergences"],
            "nuts_draws": 2000,
        }
    found |= sampled
    found["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    found["versions"] = versions()
    files.write_json(found, given.json)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
