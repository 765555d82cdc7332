"""How much memory a fit will take, checked before it takes it."""

from __future__ import annotations

from pathlib import Path

import psutil

from benchmirt.errors import InputError

__all__ = ["available_bytes", "check", "estimate_bytes"]

# float32 arrays of the size of the response matrix that are alive at the peak, and copies of the parameters
CELL_ARRAYS = {"em": 8, "svi": 5, "nuts": 5}
PARAMETER_COPIES = {"em": 12, "svi": 14, "nuts": 40}
BASE_BYTES = 400 * 2**20
BLOCK_DRAWS = 50


def estimate_bytes(engine: str, models: int, items: int, dims: int, chains: int = 1) -> int:
    """Estimate the peak resident memory of one fit, in bytes.

    Parameters
    ----------
    engine
        ``svi``, ``em`` or ``nuts``.
    models, items, dims
        Size of the problem.
    chains
        Chains that run at once (nuts).
    """
    cells = 4 * models * items
    parameters = 4 * (models * dims * (dims + 1) + items * (dims + 1) * (dims + 2))
    total = BASE_BYTES + cells * CELL_ARRAYS[engine] * max(chains, 1) + parameters * PARAMETER_COPIES[engine]
    if engine == "nuts":
        total += 4 * chains * BLOCK_DRAWS * (items * (dims + 1) + models * dims) * 3
    return total


def available_bytes() -> int:
    """Memory that this process may still take, in bytes: the machine's, or the control group's if that is less."""
    free = int(psutil.virtual_memory().available)
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        if Path(limit).is_file() and Path(used).is_file():
            text = Path(limit).read_text().strip()
            if text.isdigit():
                free = min(free, max(0, int(text) - int(Path(used).read_text())))
    return free


def check(
    engine: str, models: int, items: int, dims: int, chains: int = 1, available: int | None = None
) -> int:
    """Compare the estimate with the memory at hand and return it, in bytes.

    Raises
    ------
    InputError
        If the fit will not fit, with the number of items that would.
    """
    needed = estimate_bytes(engine, models, items, dims, chains)
    free = available_bytes() if available is None else available
    if needed > free:
        per_item = (needed - BASE_BYTES) / items
        fitting = max(0, int((free - BASE_BYTES) / per_item))
        raise InputError(
            f"the {engine} fit of {models} models x {items} items with {dims} dimensions would not fit in memory",
            found=f"about {needed / 2**30:.1f} GiB needed, {free / 2**30:.1f} GiB available",
            expected=f"at most about {fitting} items here, or a machine with more memory",
            todo="run on a larger machine, lower `fits.nuts.chains`, or restrict the items with `filter`",
        )
    return needed
