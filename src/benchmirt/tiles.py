"""Passes over the response matrix, a tile of items at a time.

What a fit computes per cell (logits, probabilities, scores) is needed once and at once: a tile is small enough for its arrays
to stay in a core's cache, so that a pass costs the arithmetic and not the memory traffic, and needs memory for the int8 responses
and one tile only. On an accelerator, whose memory is fast and whose launches are slow, the one tile is the whole matrix.

A pass is one function of a tile, over arrays whose last axis is the items. It returns what is summed over the tiles and what
belongs to the tile's items::

    def of_tile(tile, items, shared):
        cells = tile.cells(of_each_cell, items, shared)     # (models, width)
        return cells.sum(axis=1), cells.sum(axis=0)

    of_models, of_items = sweep(of_tile, split(responses), items, shared)

Several devices, of one process or of several, hold a share of the tiles each. Every device then goes through its own, and only
the sums and the items' results pass between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike

__all__ = [
    "AXIS",
    "Tile",
    "Tiled",
    "localised",
    "mesh_of",
    "over_devices",
    "specs",
    "split",
    "sweep",
    "width_of",
]

CELLS = 65_536  # a float32 array of so many cells takes a quarter of a megabyte
LANES = 16
AXIS = "items"

Tree = TypeVar("Tree")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tiled:
    """Responses by tile. Items that fill the last tile up are missing everywhere, as are tiles that give every device as many.

    Attributes
    ----------
    responses
        1, 0 or -1 (missing), int8, shape (tiles, models, width); of a device's own tiles where ``local``.
    occupied
        The number of each tile, from 1, or 0 where it holds no response, shape (tiles,). Numbers, since a column of equal truth
        values would be folded away with the border that it makes (see :meth:`Tile.cells`).
    items
        Number of items, on all devices together.
    mesh
        The devices that share the tiles, or None for one.
    local
        Whether this is what one device sees of them (see :func:`over_devices`).
    """

    responses: Array
    occupied: Array
    items: int = field(metadata={"static": True})
    mesh: Mesh | None = field(default=None, metadata={"static": True})
    local: bool = field(default=False, metadata={"static": True})

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of models and of items."""
        return self.responses.shape[1], self.items

    @property
    def _shares(self) -> int:
        """How many times as many tiles as are here all devices have together."""
        return self.mesh.shape[AXIS] if self.local and self.mesh is not None else 1

    def _pad(self, per_item: Tree) -> Tree:
        """Fill arrays (..., items) up with zeros to the tiles of all devices."""
        spare = self._shares * self.responses.shape[0] * self.responses.shape[2] - self.items
        return jax.tree.map(lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, spare)]), per_item)

    def _trim(self, per_item: Tree) -> Tree:
        """Take away again what fills the last tiles up."""
        return jax.tree.map(lambda x: x[..., : self.items], per_item)


class Tile(NamedTuple):
    """The responses (models, width) of a stretch of items, and a number above 0 if there are any."""

    responses: Array
    occupied: Array

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


def mesh_of(devices: Sequence[jax.Device]) -> Mesh | None:
    """Return the devices as those that share the items; None for none or one, which need no sharing."""
    return Mesh(np.array(devices), (AXIS,)) if len(devices) > 1 else None


def split(responses: ArrayLike | Tiled, mesh: Mesh | None = None) -> Tiled:
    """Arrange responses by tile; what is tiled already is returned as it is.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), int8, shape (models, items). Where the devices belong to several processes, each passes all of them.
    mesh
        The devices that are to share the tiles along the axis AXIS; None for the default device alone.
    """
    if isinstance(responses, Tiled):
        return responses
    if mesh is None:
        return _arranged(jnp.asarray(responses, jnp.int8), 1)
    whole = _arranged(np.asarray(responses, np.int8), mesh.shape[AXIS])
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))  # type: ignore[no-untyped-call]
    placed = [
        jax.make_array_from_callback(x.shape, sharding, x.__getitem__)
        for x in (whole.responses, whole.occupied)
    ]
    return Tiled(placed[0], placed[1], whole.items, mesh)


def _arranged(matrix: Any, devices: int) -> Tiled:
    """Arrange a matrix of either array library by tile, as many tiles for each device."""
    xp = np if isinstance(matrix, np.ndarray) else jnp
    models, items = matrix.shape
    width = min(width_of(models, items), -(-items // devices))
    tiles = -(-items // (width * devices)) * devices
    filled = xp.pad(matrix, ((0, 0), (0, tiles * width - items)), constant_values=-1)
    arranged = filled.reshape(models, tiles, width).transpose(1, 0, 2)
    seen = (arranged >= 0).any(axis=(1, 2))
    return Tiled(arranged, xp.where(seen, xp.arange(1, tiles + 1, dtype=xp.int32), 0), items)


def localised(tree: Tree) -> Tree:
    """Mark responses by tile, within what :func:`jax.shard_map` maps, as what one device sees of them."""
    return jax.tree.map(lambda x: replace(x, local=True) if _is_shared(x) else x, tree, is_leaf=_is_shared)


def specs(tree: Any) -> Any:
    """Return how the arrays of a tree lie on devices: responses that devices share are, all else is everywhere."""

    def of(leaf: Any) -> PartitionSpec:
        return PartitionSpec(AXIS) if _is_shared(leaf) else PartitionSpec()  # type: ignore[no-untyped-call]

    return jax.tree.map(of, tree, is_leaf=_is_shared)


def _is_shared(leaf: Any) -> bool:
    return isinstance(leaf, Tiled) and leaf.mesh is not None


def over_devices(function: Callable[..., Tree], tiled: Tiled, *operands: Any) -> Tree:
    """Return ``function(tiled, *operands)``, run by every device of the responses on its own tiles.

    All but the passes over the responses is done by each device alike, so that what is returned is the same on all, and every
    process has it whole. Loops of many passes should be run as one such function.
    """
    if tiled.mesh is None or tiled.local:
        return function(tiled, *operands)
    given = (tiled, *operands)
    everywhere = PartitionSpec()  # type: ignore[no-untyped-call]
    spread: Callable[..., Tree] = jax.shard_map(
        lambda *given: function(*localised(given)),
        mesh=tiled.mesh,
        in_specs=specs(given),
        out_specs=everywhere,
        check_vma=False,
    )
    return spread(*given)


def sweep(
    function: Callable[[Tile, Any, Any], tuple[Any, Any]], tiled: Tiled, per_item: Any, shared: Any = None
) -> tuple[Any, Any]:
    """Pass over all tiles in turn.

    Parameters
    ----------
    function
        Takes a tile, its part of ``per_item`` and ``shared``; returns two trees of arrays: what is to be summed over the
        tiles, and what belongs to the tile's items, (..., width).
    tiled
        Responses by tile.
    per_item
        Tree of arrays (..., items).
    shared
        What every tile needs.

    Returns
    -------
    tuple
        The sums, and the tiles' arrays put together, (..., items).
    """
    return over_devices(lambda *given: _pass(function, *given), tiled, per_item, shared)


def _pass(function: Callable[[Tile, Any, Any], Any], tiled: Tiled, per_item: Any, shared: Any) -> Any:
    """Pass over the tiles that are here, and bring together what the devices found."""
    tiles, _, width = tiled.responses.shape
    padded = tiled._pad(per_item)
    if tiled.local:
        first = lax.axis_index(AXIS) * tiles * width
        padded = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, first, tiles * width, -1), padded)

    def at(index: ArrayLike) -> tuple[Any, Any]:
        tile = Tile(tiled.responses[index], tiled.occupied[index])
        start = index * width
        taken = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, width, -1), padded)
        return function(tile, taken, shared)

    def advance(index: Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        found = at(index)
        sums = jax.tree.map(jnp.add, carried[0], found[0])
        return sums, jax.tree.map(
            lambda whole, part: lax.dynamic_update_slice_in_dim(whole, part, index * width, -1),
            carried[1],
            found[1],
        )

    sums, columns = jax.eval_shape(at, jnp.int32(0))
    empty = (
        jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), sums),
        jax.tree.map(lambda x: jnp.zeros((*x.shape[:-1], tiles * width), x.dtype), columns),
    )
    sums, columns = lax.fori_loop(0, tiles, advance, empty)
    if tiled.local:
        sums = lax.psum(sums, AXIS)  # type: ignore[no-untyped-call]
        columns = jax.tree.map(lambda x: lax.all_gather(x, AXIS, axis=x.ndim - 1, tiled=True), columns)
    return sums, tiled._trim(columns)
