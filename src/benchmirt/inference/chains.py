"""Chains of NUTS in blocks: one compiled program for warm-up and draws, a device per chain where there are enough.

NumPyro's own driver compiles a program for warm-up with the first draws, another for the draws after them and one more for states
that come back from it; the programs are large, and on small data compiling them takes longer than the draws. Here a block is a
loop whose length is an argument, so that one program serves every block, and every data set of one shape.

The coordinates are meant to be nearly standard normal, and the integrator makes use of that. A leapfrog step of size e = sin(t)
whose kicks are 1 / cos(t / 2)^2 times as strong is the rotation by t as three shears, exact for a standard normal: the energy
changes only by what the posterior is not normal, and no longer with the number of parameters, which at 90,000 made the steps
short. Exact integration of the normal part is the idea of Shahbaba, Lan, Johnson and Neal (2014), *Statistics and Computing* 24,
339-349. Whatever the strength of the kicks, a step is reversible and keeps volumes, so that the draws are those of the posterior.

A trajectory doubles until it turns, which a normal one does after half a turn. After warm-up a step is shortened to one of which
3, 7, 15 or 31 lead a little beyond: a trajectory that just misses half a turn would go on to a whole one and end where it began.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from numpyro.infer import NUTS

from benchmirt import tiles

__all__ = ["STATS", "Chains", "Plan", "mesh_of"]

CHAIN = "chain"
ACCEPTANCE = 0.65  # best for long trajectories in many dimensions (Beskos et al. 2013)
FIRST_STEP = 0.25
TURN = 3.5  # radians of a whole trajectory, where steps that are no longer than warm-up found allow it
LENGTHENED = 1.2  # or little longer

STATS = ("potential_energy", "diverging", "num_steps", "accept_prob", "step_size")


def _stats(state: Any) -> dict[str, Array]:
    """Return what is kept of a sampler's state beside the draw."""
    return {**{name: getattr(state, name) for name in STATS[:-1]}, "step_size": state.adapt_state.step_size}


@dataclass(frozen=True)
class Plan:
    """How chains go on.

    Attributes
    ----------
    warmup
        Steps that find the step size.
    block
        Most draws of a block.
    thinning
        Trajectories from one draw to the next.
    max_tree_depth
        Most doublings of a trajectory.
    """

    warmup: int
    block: int
    thinning: int
    max_tree_depth: int


def _kick(step_size: Array) -> Array:
    """How many times as strong kicks have to be for a step to be a rotation; 2 from a step of 1 on, where none is."""
    return 2.0 / (1.0 + jnp.sqrt(jnp.maximum(1.0 - step_size**2, 0.0)))


def _whole(step_size: Array, max_tree_depth: int) -> Array:
    """Shorten a step so that a trajectory of some number of doublings makes a little more than half a turn, if one can."""
    sizes = jnp.sin(TURN / (2.0 ** jnp.arange(2, max_tree_depth + 1) - 1))
    longest: Array = jnp.where(sizes <= LENGTHENED * step_size, sizes, 0.0).max(initial=0.0)
    return jnp.where(longest > 0, longest, step_size)


def _kernel(potential: Callable[[Array], Array], kick: Array | float, plan: Plan) -> NUTS:
    """Return NUTS with kicks that are so many times as strong."""

    def stronger(z: Array) -> Array:
        value = potential(z)
        return kick * value + (1.0 - kick) * jax.lax.stop_gradient(value)

    return NUTS(
        potential_fn=stronger,
        step_size=FIRST_STEP,
        adapt_mass_matrix=False,
        max_tree_depth=plan.max_tree_depth,
        target_accept_prob=ACCEPTANCE,
    )


def _trajectory(potential: Callable[[Array], Array], state: Any, plan: Plan) -> Any:
    """Go one trajectory further. States hold the plain gradient."""
    step_size = state.adapt_state.step_size
    step_size = jnp.where(state.i < plan.warmup, step_size, _whole(step_size, plan.max_tree_depth))
    kick = _kick(step_size)
    kernel = _kernel(potential, kick, plan)
    # sets the sampler up; the state that it returns is not used
    kernel.init(jax.random.key(0), plan.warmup, state.z, (), {})
    adapted = state.adapt_state._replace(step_size=step_size)
    state = kernel.sample(state._replace(z_grad=kick * state.z_grad, adapt_state=adapted), (), {})
    return state._replace(z_grad=state.z_grad / kick)


@functools.cache
def _programs(
    potential_of: Callable[[Any], Callable[[Array], Array]],
    report: Callable[[Any, Array], dict[str, Array]],
    of_problem: Any,
    plan: Plan,
    mesh: Mesh,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the programs that begin chains and that go on with them; compiled once for problems of one shape."""

    def begin(problem: Any, keys: Array, initial: Array) -> Any:
        kernel = _kernel(potential_of(tiles.localised(problem)), 1.0, plan)
        return jax.lax.map(lambda one: kernel.init(one[0], plan.warmup, one[1], (), {}), (keys, initial))

    def draws(problem: Any, states: Any, count: Array, thinning: Array) -> tuple[Any, dict[str, Array]]:
        problem = tiles.localised(problem)
        potential = potential_of(problem)

        def further(_: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, diverged = carry
            state = _trajectory(potential, state, plan)
            return state, diverged | state.diverging

        def drawn(state: Any) -> dict[str, Array]:
            return report(problem, state.z) | _stats(state)

        def of_chain(state: Any) -> tuple[Any, dict[str, Array]]:
            def draw(index: Array, carry: tuple[Any, dict[str, Array]]) -> tuple[Any, dict[str, Array]]:
                state, kept = carry
                state, diverged = jax.lax.fori_loop(0, thinning, further, (state, jnp.bool_(False)))
                found = drawn(state) | {"diverging": diverged}
                return state, {name: kept[name].at[index].set(value) for name, value in found.items()}

            shapes = jax.eval_shape(drawn, state)
            empty = {name: jnp.zeros((plan.block, *x.shape), x.dtype) for name, x in shapes.items()}
            final: tuple[Any, dict[str, Array]] = jax.lax.fori_loop(0, count, draw, (state, empty))
            return final

        return jax.lax.map(of_chain, states)  # those of one device one after the other

    own, whole = (PartitionSpec(*name) for name in ((CHAIN,), ()))  # type: ignore[no-untyped-call]

    def compiled(function: Callable[..., Any], *specs: PartitionSpec) -> Callable[..., Any]:
        spread = jax.shard_map(
            function, mesh=mesh, in_specs=(of_problem, *specs), out_specs=own, check_vma=False
        )
        return jax.jit(spread)

    return compiled(begin, own, own), compiled(draws, own, whole, whole)


class Chains:
    """Chains that go on block by block.

    What the sampler needs to know is an argument of the compiled programs and not a constant in them: data of one shape share
    one compilation, and devices can hold a part of the data each.

    Parameters
    ----------
    potential_of
        Makes the potential, a function of one vector of coordinates, from the problem; hashable, and equal for equal potentials.
    report
        What to keep, given the problem, of a vector of coordinates: a dictionary of arrays.
    problem
        Tree of arrays, with responses by tile among them.
    plan
        How the chains go on.
    mesh
        Devices along the axes CHAIN and :data:`benchmirt.tiles.AXIS`, see :func:`mesh_of`.
    """

    def __init__(
        self,
        potential_of: Callable[[Any], Callable[[Array], Array]],
        report: Callable[[Any, Array], dict[str, Array]],
        problem: Any,
        plan: Plan,
        mesh: Mesh,
    ) -> None:
        self.plan = plan
        self.problem = problem
        self._begin, self._draws = _programs(potential_of, report, tiles.specs(problem), plan, mesh)

    def begin(self, keys: Array, initial: Array) -> Any:
        """Return the state of all chains at their starts: a key and a vector of coordinates each."""
        return self._begin(self.problem, keys, initial)

    def warm(self, state: Any, count: int) -> Any:
        """Go on by ``count`` steps of warm-up."""
        return self._go_on(state, count, 1)[0]

    def draw(self, state: Any, count: int) -> tuple[Any, dict[str, Array]]:
        """Go on by ``count`` draws; returns the state, and what was kept, by name: (chain, count, ...)."""
        return self._go_on(state, count, self.plan.thinning)

    def _go_on(self, state: Any, count: int, thinning: int) -> tuple[Any, dict[str, Array]]:
        if count > self.plan.block:
            raise ValueError(f"a block has {self.plan.block} draws, not {count}")
        state, kept = self._draws(self.problem, state, jnp.int32(count), jnp.int32(thinning))
        return state, {name: values[:, :count] for name, values in kept.items()}


def mesh_of(chains: int, devices: Sequence[jax.Device] = ()) -> Mesh:
    """Return the mesh of the chains.

    Either every device has chains of its own, as many as the others; or several share the items of one chain after the
    other. Not both: chains take paths of different length, and devices that wait for each other have to go the same way.

    Parameters
    ----------
    chains
        Chains.
    devices
        Devices that share the items of a chain; with none or one, each chain has one of this process's, where there are enough.
    """
    if len(devices) > 1:
        return Mesh(np.array(devices)[None], (CHAIN, tiles.AXIS))
    found = jax.local_devices()
    rows = max(n for n in range(1, len(found) + 1) if chains % n == 0)
    return Mesh(np.array(found[:rows])[:, None], (CHAIN, tiles.AXIS))
