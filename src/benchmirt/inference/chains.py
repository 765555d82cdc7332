"""Chains of NUTS in blocks: one compiled program for warm-up and draws, a device per chain where there are enough.

NumPyro's own driver compiles a program for warm-up with the first draws, another for the draws after them and one more for states
that come back from it; the programs are large, and on small data compiling them takes longer than the draws. Here a block is a
loop whose length is an argument, so that one program serves every block, and every data set of one shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from numpyro.infer import NUTS

from benchmirt import tiles

__all__ = ["STATS", "Chains", "mesh_of"]

CHAIN = "chain"

STATS = ("potential_energy", "diverging", "num_steps", "accept_prob", "step_size")


def _stats(state: Any) -> dict[str, Array]:
    """Return what is kept of a sampler's state beside the draw."""
    return {**{name: getattr(state, name) for name in STATS[:-1]}, "step_size": state.adapt_state.step_size}


@functools.cache
def _programs(
    kernel_of: Callable[[Any], NUTS],
    report: Callable[[Any, Array], dict[str, Array]],
    of_problem: Any,
    warmup: int,
    block: int,
    mesh: Mesh,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the programs that begin chains and that take steps; compiled once for problems of one shape."""

    def begin(problem: Any, keys: Array, initial: Array) -> Any:
        kernel = kernel_of(tiles.localised(problem))
        return jax.lax.map(lambda one: kernel.init(one[0], warmup, one[1], (), {}), (keys, initial))

    def steps(problem: Any, states: Any, count: Array) -> tuple[Any, dict[str, Array]]:
        problem = tiles.localised(problem)
        kernel = kernel_of(problem)

        def drawn(state: Any) -> dict[str, Array]:
            return report(problem, state.z) | _stats(state)

        def of_chain(state: Any) -> tuple[Any, dict[str, Array]]:
            # sets the sampler up; the state that it returns is not used
            kernel.init(jax.random.key(0), warmup, state.z, (), {})

            def step(index: Array, carry: tuple[Any, dict[str, Array]]) -> tuple[Any, dict[str, Array]]:
                state, kept = carry
                state = kernel.sample(state, (), {})
                return state, {name: kept[name].at[index].set(value) for name, value in drawn(state).items()}

            shapes = jax.eval_shape(drawn, state)
            empty = {name: jnp.zeros((block, *x.shape), x.dtype) for name, x in shapes.items()}
            final: tuple[Any, dict[str, Array]] = jax.lax.fori_loop(0, count, step, (state, empty))
            return final

        return jax.lax.map(of_chain, states)  # those of one device one after the other

    own, whole = (PartitionSpec(*name) for name in ((CHAIN,), ()))  # type: ignore[no-untyped-call]

    def compiled(function: Callable[..., Any], *specs: PartitionSpec) -> Callable[..., Any]:
        spread = jax.shard_map(
            function, mesh=mesh, in_specs=(of_problem, *specs), out_specs=own, check_vma=False
        )
        return jax.jit(spread)

    return compiled(begin, own, own), compiled(steps, own, whole)


class Chains:
    """Chains that go on block by block.

    What the sampler needs to know is an argument of the compiled programs and not a constant in them: data of one shape share
    one compilation, and devices can hold a part of the data each.

    Parameters
    ----------
    kernel_of
        Makes NUTS over one vector of coordinates from the problem; hashable, and equal for equal kernels.
    report
        What to keep, given the problem, of a vector of coordinates: a dictionary of arrays.
    problem
        Tree of arrays, with responses by tile among them.
    warmup, block
        Warm-up steps of the chains, and the most steps of a block.
    mesh
        Devices along the axes CHAIN and :data:`benchmirt.tiles.AXIS`, see :func:`mesh_of`.
    """

    def __init__(
        self,
        kernel_of: Callable[[Any], NUTS],
        report: Callable[[Any, Array], dict[str, Array]],
        problem: Any,
        *,
        warmup: int,
        block: int,
        mesh: Mesh,
    ) -> None:
        self.block = block
        self.problem = problem
        self._begin, self._steps = _programs(kernel_of, report, tiles.specs(problem), warmup, block, mesh)

    def begin(self, keys: Array, initial: Array) -> Any:
        """Return the state of all chains at their starts: a key and a vector of coordinates each."""
        return self._begin(self.problem, keys, initial)

    def run(self, state: Any, count: int) -> tuple[Any, dict[str, Array]]:
        """Go on by ``count`` steps; returns the state, and what was kept, by name: (chain, count, ...).

        Raises
        ------
        ValueError
            If ``count`` exceeds the length of a block.
        """
        if count > self.block:
            raise ValueError(f"a block has {self.block} steps, not {count}")
        state, kept = self._steps(self.problem, state, jnp.int32(count))
        return state, {name: values[:, :count] for name, values in kept.items()}


def mesh_of(chains: int, devices: int) -> Mesh:
    """Return the mesh of the chains.

    Either every device has chains of its own, as many as the others; or several share the items of one chain after the
    other. Not both: chains take paths of different length, and devices that wait for each other have to go the same way.

    Parameters
    ----------
    chains
        Chains.
    devices
        Devices that share the items of a chain; 1: each chain has its own, where there are enough.
    """
    if devices > 1:
        return Mesh(np.array(jax.devices()[:devices])[None], (CHAIN, tiles.AXIS))
    found = jax.local_devices()
    rows = max(n for n in range(1, len(found) + 1) if chains % n == 0)
    return Mesh(np.array(found[:rows])[:, None], (CHAIN, tiles.AXIS))
