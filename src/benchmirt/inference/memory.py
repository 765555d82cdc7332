"""How much memory a fit will take, checked before it takes it."""

from __future__ import annotations

from pathlib import Path

import psutil

from benchmirt.errors import InputError

__all__ = ["available_bytes", "check", "estimate_bytes"]

MEGABYTE = 10**6
# as measured (tests/benchmarks/growth.py): a process with the engine's compiled programs, in bytes; bytes a cell, of responses in
# the forms in which they pass through; copies of all parameters; copies of what NUTS draws in a block, and of what it keeps
BASE_BYTES = {"em": 530 * MEGABYTE, "svi": 640 * MEGABYTE, "nuts": 880 * MEGABYTE}
CELL_BYTES = {"em": 8, "svi": 7, "nuts": 9}
PARAMETER_COPIES = {"em": 6, "svi": 12, "nuts": 10}
DRAW_COPIES = 10
BLOCK_DRAWS = 50
CHECKED_ITEMS = 500


def estimate_bytes(
    engine: str, models: int, items: int, dims: int, *, chains: int = 1, draws: int = 0
) -> int:
    """Estimate the peak resident memory of one fit on CPUs, in bytes.

    Parameters
    ----------
    engine
        ``svi``, ``em`` or ``nuts``.
    models, items, dims
        Size of the problem.
    chains, draws
        Chains that run at once and draws of each (nuts).
    """
    parameters = models * dims * (dims + 1) + items * (dims + 1) * (dims + 2)
    total = (
        BASE_BYTES[engine] + CELL_BYTES[engine] * models * items + 4 * PARAMETER_COPIES[engine] * parameters
    )
    if engine == "nuts":
        of_models, of_item = models * dims, dims + 1
        in_block = min(BLOCK_DRAWS, draws) * (of_models + items * of_item)
        kept = draws * (of_models + min(items, CHECKED_ITEMS) * of_item)
        total += 4 * DRAW_COPIES * chains * (in_block + kept)
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
    engine: str,
    models: int,
    items: int,
    dims: int,
    *,
    chains: int = 1,
    draws: int = 0,
    available: int | None = None,
) -> int:
    """Compare the estimate with the memory at hand and return it, in bytes.

    Raises
    ------
    InputError
        If the fit will not fit, with the number of items that would.
    """
    needed = estimate_bytes(engine, models, items, dims, chains=chains, draws=draws)
    free = available_bytes() if available is None else available
    if needed > free:
        per_item = (needed - BASE_BYTES[engine]) / items
        fitting = max(0, int((free - BASE_BYTES[engine]) / per_item))
        raise InputError(
            f"the {engine} fit of {models} models x {items} items with {dims} dimensions would not fit in memory",
            found=f"about {needed / 2**30:.1f} GiB needed, {free / 2**30:.1f} GiB available",
            expected=f"at most about {fitting} items here, or a machine with more memory",
            todo="run on a larger machine, lower `fits.nuts.chains`, or restrict the items with `filter`",
        )
    return needed
