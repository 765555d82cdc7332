"""Chains of NUTS whose steps are rotations: exact for a normal target, right for one that is not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy import integrate

from benchmirt.inference import chains
from benchmirt.inference.chains import Chains, Plan

PLAN = Plan(warmup=100, block=400, thinning=1, max_tree_depth=5)


@dataclass(frozen=True)
class Target:
    """Potential of independent coordinates with density exp(-z^2 / 2 - cubic z^3 / 6 - quartic z^4 / 24)."""

    cubic: float = 0.0
    quartic: float = 0.0

    def __call__(self, problem: Array):
        return lambda z: (z**2 / 2 + self.cubic * z**3 / 6 + self.quartic * z**4 / 24).sum() + problem[0]


def kept(problem: Array, z: Array) -> dict[str, Array]:
    return {"z": z}


def drawn(target: Target, size: int, plan: Plan = PLAN, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws of one chain that begins at random."""
    key, start = jax.random.split(jax.random.key(seed))
    sampler = Chains(target, kept, jnp.zeros(1), plan, chains.mesh_of(1))
    state = sampler.begin(jax.random.split(key, 1), jax.random.normal(start, (1, size)))
    for _ in range(plan.warmup // plan.block + 1):
        state = sampler.warm(state, min(plan.warmup, plan.block))
    return {name: np.asarray(values)[0] for name, values in sampler.draw(state, plan.block)[1].items()}


def test_a_step_of_a_normal_target_is_a_rotation_and_keeps_the_energy():
    """Leapfrog steps of this size would change the energy of 50,000 coordinates by hundreds."""
    size, angle = 50_000, 0.5
    z, r = np.random.default_rng(0).normal(size=(2, size))
    step = np.sin(angle)
    kick = float(chains._kick(jnp.float32(step)))
    half = r - step / 2 * kick * z
    moved = z + step * half
    turned = half - step / 2 * kick * moved
    np.testing.assert_allclose(moved, np.cos(angle) * z + np.sin(angle) * r, atol=1e-6)
    np.testing.assert_allclose(turned, np.cos(angle) * r - np.sin(angle) * z, atol=1e-6)


def test_acceptance_does_not_fall_with_the_number_of_coordinates():
    found = drawn(Target(), 50_000, replace(PLAN, block=20))
    assert found["accept_prob"].min() > 0.95
    # the longest step that makes half a turn of a few doublings
    assert found["step_size"][-1] > 0.4
    assert np.isin(found["num_steps"], (3, 7)).all()


@pytest.mark.parametrize("target", [Target(cubic=0.5, quartic=1.0), Target(quartic=3.0)])
def test_moments_of_a_skewed_and_a_flat_target(target):
    """Against quadrature; the kicks are those for a normal target, which neither is."""

    def moment(power: int) -> float:
        def density(z: float) -> float:
            return z**power * np.exp(-(z**2) / 2 - target.cubic * z**3 / 6 - target.quartic * z**4 / 24)

        return integrate.quad(density, -np.inf, np.inf)[0]

    z = drawn(target, 500)["z"].astype(np.float64)
    for power in (1, 2, 3, 4):
        expected = moment(power) / moment(0)
        by_coordinate = (z**power).mean(0)
        error = by_coordinate.std(ddof=1) / np.sqrt(500)
        assert by_coordinate.mean() == pytest.approx(expected, abs=4 * error)


def test_trajectories_between_draws_are_counted_for_divergence_and_thin():
    dense = drawn(Target(), 200, replace(PLAN, block=60))
    thinned = drawn(Target(), 200, replace(PLAN, block=60, thinning=3))
    # the same chain, of which every third state is kept
    np.testing.assert_array_equal(thinned["z"][:20], dense["z"][2::3])


def test_a_step_is_shortened_to_half_a_turn_where_that_is_possible():
    sizes = [float(chains._whole(jnp.float32(size), 5)) for size in (0.02, 0.12, 0.24, 0.6, 1.4)]
    np.testing.assert_allclose(
        sizes, [0.02, *(np.sin(3.5 / n) for n in (31, 15, 7)), np.sin(3.5 / 3)], rtol=1e-6
    )
