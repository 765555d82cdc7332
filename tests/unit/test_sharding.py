"""One device and several, one process and several: the same answer within rounding.

The number of devices is set before JAX starts, so each case runs in processes of its own.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FIT = """
import json, sys
from benchmirt import launch
launch.prepare(1, devices=int(sys.argv[1]))
import jax
me, processes, port = map(int, sys.argv[2:5])
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, me)
import jax.numpy as jnp
import numpy as np
from benchmirt import likelihood, matrix, tiles
from benchmirt.inference import em, nuts, svi

rng = np.random.default_rng(0)
models, items = 40, 5003  # several tiles, which no number of devices divides
theta, a, d = rng.normal(size=(models, 2)), rng.normal(size=(items, 2)), rng.normal(size=items)
y = (rng.random((models, items)) < 1 / (1 + np.exp(-(theta @ a.T + d)))).astype(np.int8)
y[:, ::7] = -1
y[:20, 1000:4000] = -1  # a block of tiles that half of the models never saw
floor = np.where(np.arange(items) % 2, 0.25, 0.0)
data = matrix.from_arrays(y, floor=floor, testlet=np.arange(items) // 9)
asymptotes = likelihood.asymptotes_of(data.floor, data.ceiling)
given = [jnp.asarray(x, jnp.float32) for x in (theta, a, d)]


def fits(devices):
    tiled = tiles.split(y, tiles.mesh_of(devices))

    @jax.jit
    def passes(tiled, theta, a, d):
        def total(theta, a, d):
            return likelihood.log_likelihood(theta, a, d, tiled, asymptotes)

        by_item = likelihood.item_log_likelihood(theta, a, d, tiled, asymptotes)
        return by_item, jax.value_and_grad(total, argnums=(0, 1, 2))(theta, a, d)

    found = jax.tree.leaves(passes(tiled, *given))
    for engine, options in ((em, {"sweeps": 15}), (svi, {"steps": 40})):
        record = engine.fit(data, 2, devices=devices, **options)
        found += [record.theta_mean, record.a_mean, record.d_mean, record.item_cov, record.testlets.mean]
    return [np.asarray(x, np.float64) for x in found]


one = fits(jax.local_devices()[:1])
worst = {}
for number in json.loads(sys.argv[5]):
    several = fits(jax.devices()[:number])
    worst[number] = max(
        float(np.abs(x - y).max() / max(1.0, np.abs(x).max())) for x, y in zip(one, several, strict=True)
    )
few = matrix.from_arrays(y[:, 2:900:3])
drawn = [nuts.fit(few, 2, warmup=5, draws=4, devices=x).draws["theta"] for x in ((), jax.devices())]
apart, moved = (float(np.abs(x).max()) for x in (drawn[0] - drawn[1], np.diff(drawn[0], axis=1)))
print(json.dumps({"devices": len(jax.devices()), "worst": worst, "apart": apart, "moved": moved}))
"""


def run(repository: Path, devices: int, processes: int, numbers: list[int]) -> list[dict]:
    """Run the fits in so many processes with so many devices each, and return what each prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                FIT,
                str(devices),
                str(me),
                str(processes),
                str(port),
                json.dumps(numbers),
            ],
            cwd=repository,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for me in range(processes)
    ]
    told = []
    for process in started:
        out, errors = process.communicate(timeout=400)
        assert process.returncode == 0, errors
        told.append(json.loads(out.splitlines()[-1]))
    return told


def test_devices_of_one_process_agree(repository):
    (told,) = run(repository, devices=4, processes=1, numbers=[2, 4])
    assert told["devices"] == 4
    assert set(told["worst"]) == {"2", "4"}
    assert all(0 < worst < 2e-5 for worst in told["worst"].values())
    # trajectories magnify the rounding, so a few draws only
    assert told["moved"] > 0.1
    assert told["apart"] < 2e-3


@pytest.mark.slow
def test_processes_agree(repository):
    for told in run(repository, devices=2, processes=2, numbers=[4]):
        assert told["devices"] == 4
        assert 0 < told["worst"]["4"] < 2e-5


CHAINS = """
from benchmirt import launch
launch.prepare(2, devices=2)
import numpy as np
from benchmirt import matrix
from benchmirt.inference import nuts

y = (np.random.default_rng(0).random((15, 30_000)) < 0.6).astype(np.int8)
record = nuts.fit(matrix.from_arrays(y), 2, chains=2, warmup=3, draws=4, max_tree_depth=3)
assert record.draws["theta"].shape[0] == 2
"""


@pytest.mark.slow
def test_chains_of_many_items_do_not_wait_for_each_other(repository):
    """Two devices that factor many matrices at the same time, each with all threads, would never end."""
    done = subprocess.run(
        [sys.executable, "-c", CHAINS], cwd=repository, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
