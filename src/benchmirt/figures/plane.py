"""Geometry of the ability plane: projections, mean directions and their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def basis(T: Floats, first: int = 0, second: int = 1) -> Floats:
    """Orthonormal coordinates of the plane of two abilities, both at the same angle from its diagonal.

    Parameters
    ----------
    T
        (K, K), K at least 2; column k is the unit vector of ability k in the canonical ability space.
    first, second
        Abilities of the plane. The first comes to lie towards the horizontal, the second towards the vertical.

    Returns
    -------
    (K, 2) array
        `B` such that a vector v of the canonical space has plane coordinates ``v @ B``. ``B.T @ B`` is the
        identity, so that lengths and angles within the plane are true.
    """
    one = T[:, first] / np.linalg.norm(T[:, first])
    two = T[:, second] / np.linalg.norm(T[:, second])
    across = two - (two @ one) * one
    across /= np.linalg.norm(across)
    between = np.arctan2(two @ across, two @ one)
    turn = np.pi / 4 - between / 2
    cos, sin = np.cos(turn), np.sin(turn)
    return np.stack([cos * one - sin * across, sin * one + cos * across], axis=1)


def heading(vectors: Floats) -> Floats:
    """Direction of plane vectors (..., 2) in degrees, counter-clockwise from the horizontal, in (-180, 180]."""
    return np.degrees(np.arctan2(vectors[..., 1], vectors[..., 0]))


def wrapped(angles: Floats | float, centre: Floats | float = 0.0) -> Floats:
    """Angles in degrees brought to within 180 of a centre."""
    return np.asarray((np.asarray(angles) - centre + 180.0) % 360.0 - 180.0 + centre, dtype=float)


def angle_between(vectors: Floats, axis: Floats) -> Floats:
    """Angle in degrees, 0 to 180, between vectors (..., K) and an axis (K,); NaN for a vector of length 0."""
    length = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.clip((vectors @ axis) / length, -1.0, 1.0)
    return np.asarray(np.degrees(np.arccos(cosine)), dtype=float)


@dataclass(frozen=True)
class Direction:
    """Mean discrimination vector of a set of items.

    Attributes
    ----------
    name
        The set.
    items
        How many items.
    mean
        (K,) mean discrimination vector in the canonical frame.
    replicates
        (R, K) the same over bootstrap replicates, or (0, K).
    single_minded
        Length of the mean vector over the mean length, 0 to 1: 1 when all items point the same way.
    """

    name: str
    items: int
    mean: Floats
    replicates: Floats
    single_minded: float


def directions(
    groups: list[str] | NDArray[np.object_], a: Floats, replicates: Floats | None = None
) -> list[Direction]:
    """Mean direction of each group of items, in the order in which the groups first appear.

    Parameters
    ----------
    groups
        Group of each of J items.
    a
        (J, K) discriminations.
    replicates
        (R, J, K) the same over bootstrap replicates, if any.
    """
    labels = np.asarray(groups, dtype=object).astype(str)
    out = []
    for name in dict.fromkeys(labels.tolist()):
        rows = labels == name
        mean = a[rows].mean(axis=0)
        length = float(np.linalg.norm(a[rows], axis=1).mean())
        over = (
            np.asarray(replicates[:, rows].mean(axis=1), dtype=float)
            if replicates is not None
            else np.empty((0, a.shape[1]))
        )
        out.append(
            Direction(
                name,
                int(rows.sum()),
                mean,
                over[np.isfinite(over).all(axis=1)],
                float(np.linalg.norm(mean)) / length if length else 0.0,
            )
        )
    return out


def circular_interval(replicates: Floats, estimate: float, level: float = 0.95) -> tuple[float, float] | None:
    """Percentile interval of angles in degrees around an estimate, or None without replicates.

    Parameters
    ----------
    replicates
        (R,) angles in degrees.
    estimate
        Angle about which they are unwrapped.
    level
        Coverage aimed at.

    Returns
    -------
    (low, high) or None
        In degrees, not wrapped: `low` may lie below -180 and `high` above 180.
    """
    if replicates.size < 20:
        return None
    around = wrapped(replicates, estimate)
    low, high = np.quantile(around, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def plain_interval(replicates: Floats, level: float = 0.95) -> tuple[float, float] | None:
    """Percentile interval of plain numbers, or None with fewer than 20 replicates."""
    values = replicates[np.isfinite(replicates)]
    if values.size < 20:
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _within(values: Floats, room: float) -> Floats:
    """Clip values to a stretch as long as the room that there is, placed so that they move least in squares."""
    if np.ptp(values) <= room:
        return values
    low, high = float(values.min()), float(values.max()) - room
    while high - low > 1e-9 * max(1.0, abs(high)):
        middle = (low + high) / 2
        pushed = np.maximum(middle - values, 0).sum() - np.maximum(values - middle - room, 0).sum()
        low, high = (low, middle) if pushed > 0 else (middle, high)
    return np.asarray(np.clip(values, low, low + room))


def spread(angles: Floats, gap: float) -> Floats:
    """Move angles (degrees) apart until neighbours on the circle are at least `gap` apart, each as little as may be.

    The order on the circle is kept. With more angles than fit they are spaced evenly.
    """
    n = len(angles)
    if n < 2:
        return np.array(angles, dtype=float)
    gap = min(gap, 360.0 / n)
    order = np.argsort(wrapped(angles) % 360.0, kind="stable")
    placed = (wrapped(angles) % 360.0)[order]
    cut = int(np.argmax(np.diff(np.append(placed, placed[0] + 360.0)))) + 1
    placed = np.concatenate([placed[cut:], placed[:cut] + 360.0]) if cut < n else placed
    order = np.concatenate([order[cut:], order[:cut]]) if cut < n else order
    # Least-squares separation on a line: pool adjacent violators of placed - gap * rank.
    shifted = placed - gap * np.arange(n)
    blocks: list[list[float]] = []
    for value in shifted:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            other, count = blocks.pop()
            blocks.append([(mean * size + other * count) / (size + count), size + count])
    pooled = np.concatenate([np.full(int(size), mean) for mean, size in blocks])
    pooled = _within(pooled, 360.0 - gap * n)
    out = np.empty(n)
    out[order] = pooled + gap * np.arange(n)
    return wrapped(out)
