"""Passes over the response matrix, a tile of items at a time.

What a fit computes per cell (logits, probabilities, scores) is needed once and at once: a tile is small enough for its arrays
to stay in a core's cache, so that a pass costs the arithmetic and not the memory traffic, and needs memory for the int8 responses
and one tile only. On an accelerator, whose memory is fast and whose launches are slow, the one tile is the whole matrix.

A pass is a loop over tiles, over arrays whose last axis is the items::

    tiled = split(responses)
    items = tiled.pad(items)

    def step(total, tile):
        cells = tile.cells(of_each_cell, theta, tile.take(items))     # (models, width)
        return tile.put(total, cells.sum(axis=0))

    total = tiled.trim(fold(step, tiled.pad(jnp.zeros(tiled.items)), tiled))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

__all__ = ["Tile", "Tiled", "fold", "split", "width_of"]

CELLS = 65_536  # a float32 array of so many cells takes a quarter of a megabyte
LANES = 16

Carry = TypeVar("Carry")
Tree = TypeVar("Tree")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tiled:
    """Responses by tile. Items that fill the last tile up are missing everywhere.

    Attributes
    ----------
    responses
        1, 0 or -1 (missing), int8, shape (tiles, models, width).
    occupied
        The number of each tile, from 1, or 0 where it holds no response, shape (tiles,). Numbers, since a column of equal truth
        values would be folded away with the border that it makes (see :meth:`Tile.cells`).
    items
        Number of items.
    """

    responses: Array
    occupied: Array
    items: int = field(metadata={"static": True})

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of models and of items."""
        return self.responses.shape[1], self.items

    def pad(self, per_item: Tree) -> Tree:
        """Return arrays (..., items) filled up with zeros to whole tiles."""
        spare = self.responses.shape[0] * self.responses.shape[2] - self.items
        return jax.tree.map(lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, spare)]), per_item)

    def trim(self, per_item: Tree) -> Tree:
        """Return arrays of whole tiles without what fills the last one up: (..., items)."""
        return jax.tree.map(lambda x: x[..., : self.items], per_item)


class Tile(NamedTuple):
    """A stretch of items: their responses (models, width), a number above 0 if there are any, and where it starts."""

    responses: Array
    occupied: Array
    start: Array

    def take(self, per_item: Array) -> Array:
        """Return the tile's part of an array of whole tiles."""
        return lax.dynamic_slice_in_dim(per_item, self.start, self.responses.shape[1], axis=-1)

    def put(self, per_item: Array, values: Array) -> Array:
        """Return the array of whole tiles with the tile's part replaced by the values (..., width)."""
        return lax.dynamic_update_slice_in_dim(per_item, values, self.start, axis=-1)

    def cells(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return ``function(responses, *operands)``, or zeros of the same shape where the tile holds no response.

        The condition saves the work of matrices that are missing in blocks. It also is a border over which XLA does not fuse:
        the loops within run over plain arrays and are vectorised, which those that index into a slice are not.
        """
        blank = jax.eval_shape(function, self.responses, *operands)

        def skip(*_: Any) -> Any:
            return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank)

        return lax.cond(self.occupied > 0, function, skip, self.responses, *operands)


def width_of(models: int, items: int) -> int:
    """Items of a tile: all in one, or as many tiles of about one size as keep to the number of cells."""
    if jax.default_backend() != "cpu":
        return items
    tiles = -(-models * items // CELLS)
    width = -(-items // tiles)
    return min(items, -(-width // LANES) * LANES)


def split(responses: ArrayLike | Tiled) -> Tiled:
    """Arrange responses by tile; what is tiled already is returned as it is.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), int8, shape (models, items).
    """
    if isinstance(responses, Tiled):
        return responses
    matrix = jnp.asarray(responses, jnp.int8)
    models, items = matrix.shape
    width = width_of(models, items)
    tiles = -(-items // width)
    filled = jnp.pad(matrix, ((0, 0), (0, tiles * width - items)), constant_values=-1)
    arranged = filled.reshape(models, tiles, width).transpose(1, 0, 2)
    seen = (arranged >= 0).any(axis=(1, 2))
    return Tiled(arranged, jnp.where(seen, jnp.arange(1, tiles + 1), 0), items)


def fold(step: Callable[[Carry, Tile], Carry], carry: Carry, tiled: Tiled) -> Carry:
    """Pass over all tiles in turn.

    Parameters
    ----------
    step
        Takes what is carried and a tile, returns what is carried on.
    carry
        What the first tile gets.
    tiled
        Responses by tile.
    """
    tiles, _, width = tiled.responses.shape

    def advance(index: Array, carried: Carry) -> Carry:
        return step(carried, Tile(tiled.responses[index], tiled.occupied[index], index * width))

    return lax.fori_loop(0, tiles, advance, carry)
