"""Chains of NUTS in blocks: one compiled program for warm-up and draws, a device per chain where there are enough.

NumPyro's own driver compiles a program for warm-up with the first draws, another for the draws after them and one more for states
that come back from it; the programs are large, and on small data compiling them takes longer than the draws. Here a block is a
loop whose length is an argument, so that one program serves every block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from numpyro.infer import NUTS

__all__ = ["STATS", "Chains"]

STATS = ("potential_energy", "diverging", "num_steps", "accept_prob", "step_size")


def _stats(state: Any) -> dict[str, Array]:
    """Return what is kept of a sampler's state beside the draw."""
    return {**{name: getattr(state, name) for name in STATS[:-1]}, "step_size": state.adapt_state.step_size}


class Chains:
    """Chains that go on block by block.

    Parameters
    ----------
    kernel
        NUTS over one vector of coordinates, with a potential function.
    report
        What to keep of a vector of coordinates: a dictionary of arrays.
    chains, warmup, block
        Chains, their warm-up steps, and the most steps of a block.
    """

    def __init__(
        self,
        kernel: NUTS,
        report: Callable[[Array], dict[str, Array]],
        *,
        chains: int,
        warmup: int,
        block: int,
    ) -> None:
        self.block = block
        devices = max(n for n in range(1, jax.local_device_count() + 1) if chains % n == 0)
        mesh = Mesh(jax.local_devices()[:devices], ("chain",))
        chain, whole = (PartitionSpec(*name) for name in (("chain",), ()))  # type: ignore[no-untyped-call]

        def begin(key: Array, initial: Array) -> Any:
            return kernel.init(key, warmup, initial, (), {})

        def steps(state: Any, count: Array) -> tuple[Any, dict[str, Array]]:
            def step(index: Array, carry: tuple[Any, dict[str, Array]]) -> tuple[Any, dict[str, Array]]:
                state, kept = carry
                state = kernel.sample(state, (), {})
                drawn = report(state.z) | _stats(state)
                return state, {name: kept[name].at[index].set(value) for name, value in drawn.items()}

            shapes = jax.eval_shape(lambda: report(state.z) | _stats(state))
            empty = {name: jnp.zeros((block, *x.shape), x.dtype) for name, x in shapes.items()}
            final: tuple[Any, dict[str, Array]] = jax.lax.fori_loop(0, count, step, (state, empty))
            return final

        def each(function: Callable[..., Any], *specs: PartitionSpec) -> Callable[..., Any]:
            """Map over the chains: those of one device one after the other."""

            def local(first: Any, second: Any) -> Any:
                if specs[1] == chain:
                    return jax.lax.map(lambda both: function(*both), (first, second))
                return jax.lax.map(lambda one: function(one, second), first)

            return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=chain, check_vma=False))

        self._begin = each(begin, chain, chain)
        self._steps = each(steps, chain, whole)

    def begin(self, keys: Array, initial: Array) -> Any:
        """Return the state of all chains at their starts: a key and a vector of coordinates each."""
        return self._begin(keys, initial)

    def run(self, state: Any, count: int) -> tuple[Any, dict[str, Array]]:
        """Go on by ``count`` steps; returns the state, and what was kept, by name: (chain, count, ...).

        Raises
        ------
        ValueError
            If ``count`` exceeds the length of a block.
        """
        if count > self.block:
            raise ValueError(f"a block has {self.block} steps, not {count}")
        state, kept = self._steps(state, jnp.int32(count))
        return state, {name: values[:, :count] for name, values in kept.items()}
