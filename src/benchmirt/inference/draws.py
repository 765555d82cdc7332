"""What is kept of a sampler's draws, and the checkpoint from which a killed run goes on to the same draws."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmirt import files
from benchmirt.inference.chains import STATS
from benchmirt.inference.record import FitError

__all__ = ["Checkpoint", "Kept", "Moments"]


class Moments:
    """Running mean and covariance of item parameters, or of whatever stands in their place, over draws, in float64.

    Parameters
    ----------
    origin
        Values (items, size) near the mean, from which the draws are measured.
    """

    def __init__(self, origin: NDArray[np.float64]) -> None:
        items, size = origin.shape
        self.count = 0
        self.origin = origin
        self.total = np.zeros((items, size))
        self.squares = np.zeros((items, size, size))

    def add(self, draws: NDArray[Any]) -> None:
        """Add draws of shape (draws, items, size)."""
        values = draws.astype(np.float64) - self.origin
        self.count += len(values)
        self.total += values.sum(0)
        self.squares += np.einsum("djp,djq->jpq", values, values)

    def result(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean (items, size) and covariance (items, size, size)."""
        mean = self.total / self.count
        covariance = self.squares / self.count - mean[:, :, None] * mean[:, None, :]
        return mean + self.origin, covariance * self.count / max(self.count - 1, 1)

    def saved(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the sums as a checkpoint holds them."""
        parts = {"total": self.total, "squares": self.squares, "count": np.array(self.count)}
        return {f"{name}_{part}": values for part, values in parts.items()}

    def restore(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the sums of a checkpoint."""
        self.total, self.squares = arrays[f"{name}_total"], arrays[f"{name}_squares"]
        self.count = int(arrays[f"{name}_count"])


@dataclass
class Kept:
    """What is kept of the draws so far.

    Attributes
    ----------
    moments
        Moments of all items.
    effects
        Moments of testlets' effects, (testlets x models, 1), or None.
    warm
        Blocks of warm-up that are complete; nothing of them is kept.
    theta, item, checked, stats
        A part per block: abilities of all draws, all items of some draws, some items of all draws, the sampler's statistics.
    """

    moments: Moments
    effects: Moments | None = None
    warm: int = 0
    theta: list[NDArray[Any]] = field(default_factory=list)
    item: list[NDArray[Any]] = field(default_factory=list)
    checked: list[NDArray[Any]] = field(default_factory=list)
    stats: dict[str, list[NDArray[Any]]] = field(default_factory=lambda: {name: [] for name in STATS})

    def __post_init__(self) -> None:
        """Keep the spread of the testlets' effects with the statistics, where there are any."""
        if self.effects is not None:
            self.stats["sigma_t"] = []

    def add(self, drawn: Mapping[str, NDArray[Any]], *, thin: int, checked: NDArray[np.int64]) -> None:
        """Add a block.

        Parameters
        ----------
        drawn
            ``theta`` (chain, draw, models, dims), ``item`` (chain, draw, items, dims + 1), statistics (chain, draw) and, where
            effects are kept, ``gamma`` (chain, draw, testlets, models).
        thin
            One draw in so many is kept of all items.
        checked
            The items that are kept in full.

        Raises
        ------
        FitError
            If a draw is not finite.
        """
        theta, item = drawn["theta"], drawn["item"]
        if not (np.isfinite(theta).all() and np.isfinite(item).all()):
            raise FitError(f"draws of block {self.blocks + 1} are not finite")
        number = sum(part.shape[1] for part in self.theta) + np.arange(theta.shape[1])
        self.moments.add(item.reshape(-1, *item.shape[2:]))
        if self.effects is not None:
            gamma = drawn["gamma"]
            self.effects.add(gamma.reshape(gamma.shape[0] * gamma.shape[1], -1, 1))
        self.theta.append(theta)
        self.item.append(item[:, number % thin == thin // 2])
        self.checked.append(item[:, :, checked])
        for name, parts in self.stats.items():
            parts.append(drawn[name])

    @property
    def blocks(self) -> int:
        """Blocks of draws that are complete."""
        return len(self.theta)

    def joined(self, name: str) -> NDArray[Any]:
        """Return one kind of draws over all blocks: (chain, draw, ...)."""
        parts: list[NDArray[Any]] = self.stats[name] if name in self.stats else getattr(self, name)
        return np.concatenate(parts, axis=1)


class Checkpoint:
    """The chains and all that is kept of them after the last block, of warm-up too, in one file that is replaced as a whole.

    The file carries a fingerprint of data, settings and code; one with another fingerprint, or one that can't be read, is
    not used.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self.path = path
        self.key = key

    def write(self, kept: Kept, state: Any) -> None:
        """Replace the file."""
        if self.path is None:
            return
        arrays = {f"state{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(_plain(state)))}
        for name in ("theta", "item", "checked"):
            arrays |= {f"{name}{i}": part for i, part in enumerate(getattr(kept, name))}
        for name, parts in kept.stats.items():
            arrays |= {f"{name}{i}": part for i, part in enumerate(parts)}
        arrays |= kept.moments.saved("items")
        if kept.effects is not None:
            arrays |= kept.effects.saved("effects")
        arrays |= {"warm": np.array(kept.warm), "key": np.array(self.key)}
        with files.atomic(self.path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    def read(self, kept: Kept, like: Any) -> Any | None:
        """Fill ``kept`` and return the chains' state, shaped as ``like``; None if there is nothing to go on from."""
        if self.path is None or not self.path.is_file():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = dict(file)
        except (OSError, ValueError, zipfile.BadZipFile):
            return None
        if str(arrays.get("key")) != self.key:
            return None
        blocks = sum(name.startswith("checked") for name in arrays)
        for name in ("theta", "item", "checked"):
            getattr(kept, name).extend(arrays[f"{name}{i}"] for i in range(blocks))
        for name, parts in kept.stats.items():
            parts.extend(arrays[f"{name}{i}"] for i in range(blocks))
        kept.moments.restore("items", arrays)
        if kept.effects is not None:
            kept.effects.restore("effects", arrays)
        kept.warm = int(arrays["warm"])
        leaves, structure = jax.tree.flatten(_plain(like))
        placed = [jax.device_put(arrays[f"state{i}"], leaf.sharding) for i, leaf in enumerate(leaves)]
        return _keyed(jax.tree.unflatten(structure, placed), like)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(state: Any) -> Any:
    """Random keys as the numbers that they are made of, so that a file can hold them."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, state)


def _keyed(plain: Any, like: Any) -> Any:
    return jax.tree.map(lambda x, y: jax.random.wrap_key_data(x) if _is_key(y) else x, plain, like)
