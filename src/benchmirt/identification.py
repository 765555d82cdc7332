"""Rotation, alignment and signs: what the likelihood leaves open, settled one way, every invariant asserted.

The likelihood knows only the logits ``eta = theta A' + d``. Two families of transforms leave them unchanged:

* orthogonal ``R``: ``a' = a R``, ``theta' = theta R``, ``d' = d`` (the covariance of theta stays I, and so
  does A A');
* oblique ``T`` with unit columns: ``a' = a inv(T)'``, ``theta' = theta T``, ``Phi = T'T`` with a unit
  diagonal.

Every function here that applies a transform asserts that it did just that, and raises :class:`InvariantError`
otherwise: a wrong form (``theta R'`` for ``theta R``, say, which is right in two dimensions for reflections
only) can never pass. The steps of an analysis are

1. :func:`canonical`: eigen-order of A'A and declared signs, for each run;
2. :func:`generalised_procrustes`: orthogonal alignment to the consensus of all runs, with no reference run;
3. :func:`quartimin` of the consensus, once, for display and naming (:func:`varimax` as a check).

Stability and the number of dimensions are judged before step 3, since an oblique rotation hides spare
dimensions.

Interpretable numbers of an item are functions of identified quantities only: the intercept d, ``MDISC =
|a|``, ``MDIFF = -d / |a|`` and the direction of a (Reckase 2009, *Multidimensional Item Response Theory*,
chapter 5).

Sources: Jennrich (2002), *Psychometrika* 67, 7-19; Bernaards and Jennrich (2005), *Educational and
Psychological Measurement* 65, 676-696; Gower (1975), *Psychometrika* 40, 33-51; Lorenzo-Seva and ten Berge
(2006), *Methodology* 2, 57-64. All arithmetic is in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.special import ndtri

__all__ = [
    "Alignment",
    "InvariantError",
    "Rotation",
    "Solution",
    "align",
    "align_draws",
    "angle_interval",
    "angles",
    "canonical",
    "congruence",
    "correlation",
    "follow",
    "generalised_procrustes",
    "match",
    "mdiff",
    "mdiff_interval",
    "mdisc",
    "mdisc_interval",
    "oblique",
    "pairing",
    "quartimin",
    "rotate",
    "rotate_item_cov",
    "rotate_theta_cov",
    "signs_of",
    "unrotate_oblique",
    "varimax",
]

Floats = NDArray[np.float64]

_RELATIVE = 1e-8  # tolerance of every asserted invariant, relative to the size of what is compared
_CELLS = 4_000_000  # logits beyond this number are checked on an even subset of the items
_TIE = 1e-9  # eigenvalues closer than this, relative to the largest, count as tied


class InvariantError(ArithmeticError):
    """A transform changed something that it must leave unchanged."""


@dataclass(frozen=True)
class Solution:
    """One solution of the model: abilities and item parameters in one frame.

    Attributes
    ----------
    theta
        Abilities, shape (models, dims).
    a
        Discriminations, shape (items, dims), in logits per unit of ability.
    d
        Intercepts, shape (items,), in logits.
    """

    theta: Floats
    a: Floats
    d: Floats

    def __post_init__(self) -> None:
        """Make the arrays float64; refuse shapes that don't belong together and values that aren't finite."""
        for name in ("theta", "a", "d"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.theta.ndim != 2 or self.a.ndim != 2 or self.theta.shape[1] != self.a.shape[1]:
            raise ValueError(
                f"theta {self.theta.shape} and a {self.a.shape} must have the same number of columns"
            )
        if self.d.shape != (self.a.shape[0],):
            raise ValueError(f"d {self.d.shape} must have one value per row of a {self.a.shape}")
        for name in ("theta", "a", "d"):
            if not np.isfinite(getattr(self, name)).all():
                raise InvariantError(f"{name} holds values that are not finite")

    @property
    def dims(self) -> int:
        """Number of dimensions K."""
        return int(self.a.shape[1])

    def eta(self) -> Floats:
        """Logits, shape (models, items)."""
        return self.theta @ self.a.T + self.d


@dataclass(frozen=True)
class Alignment:
    """Consensus of several solutions by generalised Procrustes analysis.

    Attributes
    ----------
    a
        Mean of the aligned discriminations in their canonical frame, shape (items, dims).
    rotations
        Orthogonal matrix of each run, shape (runs, dims, dims): ``a_run @ rotation`` is the aligned run.
    residual
        Sum of squared distances of the aligned runs from the consensus, over the sum of squares of the runs
        (0 to 1).
    iterations
        Rounds until nothing moved.
    """

    a: Floats
    rotations: Floats
    residual: float
    iterations: int


@dataclass(frozen=True)
class Rotation:
    """A simple-structure rotation, the best of many starts.

    Attributes
    ----------
    T
        Transform with unit columns, shape (dims, dims): ``theta' = theta T``, ``a' = a inv(T)'``.
    loadings
        ``a inv(T)'``, shape (items, dims).
    phi
        ``T'T``, the correlations of the rotated abilities, shape (dims, dims).
    criterion
        Value of the criterion at the solution (quartimin: minimised; varimax: maximised).
    starts, starts_agreeing
        Number of starts, and how many of them reach the criterion's best value.
    minima
        Distinct values that the starts reached, best first.
    """

    T: Floats
    loadings: Floats
    phi: Floats
    criterion: float
    starts: int
    starts_agreeing: int
    minima: tuple[float, ...]


# ------------------------------------------------------------------------------------------ invariants


def _same(found: Floats, expected: Floats, what: str, slack: float = 1.0) -> None:
    """Raise InvariantError unless two arrays agree within the tolerance."""
    if found.shape != expected.shape:
        raise InvariantError(f"{what}: shape {found.shape} instead of {expected.shape}")
    if not found.size:
        return
    error = float(np.abs(found - expected).max())
    scale = max(1.0, float(np.abs(expected).max()))
    if not error <= _RELATIVE * slack * scale:  # the negation also catches NaN
        raise InvariantError(
            f"{what}: largest deviation {error:.3g} (rounding explains {_RELATIVE * slack * scale:.3g})"
        )


def _items_checked(solution: Solution) -> slice:
    """Items on which logits are compared: all, or evenly spaced ones where there are very many cells."""
    return slice(None, None, max(1, -(-solution.theta.shape[0] * solution.d.size // _CELLS)))


def _check(before: Solution, after: Solution, *, orthogonal: bool, slack: float = 1.0) -> None:
    items = _items_checked(before)
    _same(after.d, before.d, "intercepts changed")
    _same(after.theta @ after.a[items].T, before.theta @ before.a[items].T, "the logits changed", slack)
    if orthogonal:
        some = before.a[:: max(1, before.d.size // 512)]
        rotated = after.a[:: max(1, before.d.size // 512)]
        _same(rotated @ rotated.T, some @ some.T, "A A' changed")
        _same((after.a**2).sum(1), (before.a**2).sum(1), "lengths of the discriminations changed")


def _solve(T: Floats, rows: Floats) -> Floats:
    """Return ``rows inv(T)'``."""
    return np.asarray(np.linalg.solve(T, rows.T).T, dtype=np.float64)


def _orthogonal(R: ArrayLike, dims: int) -> Floats:
    matrix = np.asarray(R, dtype=np.float64)
    if matrix.shape != (dims, dims):
        raise InvariantError(f"a rotation of {dims} dimensions has shape {matrix.shape}")
    _same(matrix.T @ matrix, np.eye(dims), "R'R is not the identity")
    return matrix


def _unit_columns(T: ArrayLike, dims: int) -> Floats:
    matrix = np.asarray(T, dtype=np.float64)
    if matrix.shape != (dims, dims):
        raise InvariantError(f"an oblique transform of {dims} dimensions has shape {matrix.shape}")
    _same((matrix**2).sum(0), np.ones(dims), "the diagonal of Phi = T'T is not 1")
    condition = float(np.linalg.cond(matrix))
    if not condition < 1e8:
        raise InvariantError(f"the oblique transform is singular (condition number {condition:.3g})")
    return matrix


# ------------------------------------------------------------------------------------------ transforms


def rotate(solution: Solution, R: ArrayLike) -> Solution:
    """Rotate or reflect a solution: ``a' = a R``, ``theta' = theta R``.

    Parameters
    ----------
    solution
        The solution.
    R
        Orthogonal matrix, shape (dims, dims).

    Raises
    ------
    InvariantError
        If R'R is not I, or the logits or A A' changed.
    """
    matrix = _orthogonal(R, solution.dims)
    rotated = Solution(solution.theta @ matrix, solution.a @ matrix, solution.d)
    _check(solution, rotated, orthogonal=True)
    return rotated


def oblique(solution: Solution, T: ArrayLike) -> Solution:
    """Transform a solution to correlated axes: ``a' = a inv(T)'``, ``theta' = theta T``.

    Parameters
    ----------
    solution
        A solution with theta ~ N(0, I).
    T
        Nonsingular matrix with unit columns, shape (dims, dims). The new abilities correlate as
        ``correlation(T)``.

    Raises
    ------
    InvariantError
        If T's columns don't have unit length, T is singular, or the logits changed.
    """
    matrix = _unit_columns(T, solution.dims)
    moved = Solution(solution.theta @ matrix, _solve(matrix, solution.a), solution.d)
    _check(solution, moved, orthogonal=False, slack=max(1.0, float(np.linalg.cond(matrix))))
    return moved


def unrotate_oblique(solution: Solution, T: ArrayLike) -> Solution:
    """Undo :func:`oblique`: ``a = a' T'``, ``theta = theta' inv(T)``, with the same assertions."""
    matrix = _unit_columns(T, solution.dims)
    moved = Solution(_solve(matrix.T, solution.theta), solution.a @ matrix.T, solution.d)
    _check(solution, moved, orthogonal=False, slack=max(1.0, float(np.linalg.cond(matrix))))
    return moved


def correlation(T: ArrayLike) -> Floats:
    """Correlations of the abilities after an oblique transform, ``Phi = T'T``, shape (dims, dims)."""
    matrix = np.asarray(T, dtype=np.float64)
    matrix = _unit_columns(matrix, matrix.shape[0])
    phi = matrix.T @ matrix
    np.fill_diagonal(phi, 1.0)
    return phi


def rotate_theta_cov(theta_cov: ArrayLike, M: ArrayLike) -> Floats:
    """Covariances of the abilities after ``theta' = theta M``: ``M' cov M``, shape (models, dims, dims)."""
    matrix = np.asarray(M, dtype=np.float64)
    return np.asarray(np.einsum("pk,npq,ql->nkl", matrix, np.asarray(theta_cov, dtype=np.float64), matrix))


def rotate_item_cov(item_cov: ArrayLike, B: ArrayLike) -> Floats:
    """Covariances over (a_1..a_K, d) after ``a' = a B``, shape (items, dims + 1, dims + 1).

    B is R for an orthogonal rotation and inv(T)' for an oblique one.
    """
    matrix = np.asarray(B, dtype=np.float64)
    full = np.eye(matrix.shape[0] + 1)
    full[:-1, :-1] = matrix
    return np.asarray(np.einsum("pk,jpq,ql->jkl", full, np.asarray(item_cov, dtype=np.float64), full))


# ------------------------------------------------------------------------------------- canonical frame


def signs_of(a: Floats, anchors: Floats | None) -> Floats:
    """Return a sign per column so that its sum, or its mean over the anchor it loads on most, is positive."""
    rows = np.ones((1, a.shape[0])) if anchors is None else np.asarray(anchors, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != a.shape[0]:
        raise ValueError(f"anchors {rows.shape} must have one column per item ({a.shape[0]})")
    signs = np.ones(a.shape[1])
    for k, column in enumerate(a.T):
        size = float(np.abs(column).sum())
        for candidates in (rows, np.ones((1, a.shape[0]))):
            means = candidates @ column / np.maximum(np.abs(candidates).sum(1), 1.0)
            strongest = float(means[np.argmax(np.abs(means))])
            if abs(strongest) > _TIE * size / a.shape[0]:
                signs[k] = np.sign(strongest)
                break
        else:
            if size > 0:
                signs[k] = np.sign(column[np.argmax(np.abs(column) > (1 - _TIE) * np.abs(column).max())])
    return signs


def canonical(solution: Solution, anchors: ArrayLike | None = None) -> tuple[Solution, Floats]:
    """Turn a solution into its canonical frame: eigen-order of A'A, declared signs.

    The axes are the eigenvectors of A'A in falling order of eigenvalue, so that the first carries the
    largest sum of squared discriminations, and they are uncorrelated over items. Where eigenvalues tie, the
    axes within the tie are settled by the item with the longest discrimination there (pivoted QR), so that
    the answer does not depend on the frame that the solution came in.

    Parameters
    ----------
    solution
        Any solution.
    anchors
        Signed weights of the items, one row per anchor, shape (anchors, items): each axis is signed so that
        its weighted mean discrimination is positive for the anchor it loads on most. Without anchors: so
        that the sum of its discriminations is positive.

    Returns
    -------
    The canonical solution and the orthogonal matrix that leads there.
    """
    values, vectors = np.linalg.eigh(solution.a.T @ solution.a)
    order = np.argsort(-values, kind="stable")
    values, R = values[order], vectors[:, order]
    start = 0
    for stop in range(1, solution.dims + 1):
        if stop < solution.dims and values[stop - 1] - values[stop] <= _TIE * values[0]:
            continue
        if stop - start > 1 and values[0] > 0:
            block = solution.a @ R[:, start:stop]
            turn = np.asarray(qr(block.T, mode="economic", pivoting=True)[0])
            R = R.copy()
            R[:, start:stop] = R[:, start:stop] @ turn
        start = stop
    R = R * signs_of(solution.a @ R, None if anchors is None else np.asarray(anchors, dtype=np.float64))
    return rotate(solution, R), R


# ------------------------------------------------------------------------------------------- alignment


def align(a: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Orthogonal Procrustes: the R that minimises the (weighted) sum of squares of ``a R - target``.

    Parameters
    ----------
    a, target
        Shapes (items, dims).
    weights
        Weight of each item, shape (items,): 0 leaves an item out of the alignment.

    Returns
    -------
    Orthogonal matrix, shape (dims, dims); it may reflect, since signs are free too.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"can't align {left.shape} to {right.shape}")
    weighted = right if weights is None else right * np.asarray(weights, dtype=np.float64)[:, None]
    u, _, vt = np.linalg.svd(left.T @ weighted)
    return _orthogonal(u @ vt, left.shape[1])


def align_draws(draws: ArrayLike, target: ArrayLike) -> Floats:
    """Orthogonal Procrustes of many draws or replicates at once.

    Parameters
    ----------
    draws
        Discriminations, shape (draws, items, dims).
    target
        Shape (items, dims).

    Returns
    -------
    Orthogonal matrices, shape (draws, dims, dims).
    """
    cross = np.stack(
        [
            np.asarray(one, dtype=np.float64).T @ np.asarray(target, dtype=np.float64)
            for one in np.asarray(draws)
        ]
    )
    u, _, vt = np.linalg.svd(cross)
    rotations = u @ vt
    _same(
        np.swapaxes(rotations, 1, 2) @ rotations,
        np.broadcast_to(np.eye(cross.shape[1]), cross.shape),
        "R'R is not the identity",
    )
    return np.asarray(rotations)


def generalised_procrustes(
    runs: Sequence[ArrayLike], *, anchors: ArrayLike | None = None, rounds: int = 1000
) -> Alignment:
    """Align several solutions to their common mean, with no run as the reference.

    The start is the leading singular vectors of all runs side by side, which no rotation of a run changes
    and which treats the runs alike; then each run is aligned to the mean and the mean is renewed, until
    nothing moves. Permuting the runs changes nothing but the order of summation.

    Parameters
    ----------
    runs
        Discriminations of each run, each of shape (items, dims).
    anchors
        As in :func:`canonical`, for the consensus.
    rounds
        Most rounds.

    Raises
    ------
    ValueError
        If there is no run, or the shapes differ.
    InvariantError
        If the rounds don't settle.
    """
    stack = [np.asarray(run, dtype=np.float64) for run in runs]
    if not stack:
        raise ValueError("no run to align")
    if any(run.shape != stack[0].shape for run in stack):
        raise ValueError(f"runs of different shapes: {sorted({run.shape for run in stack})}")
    items, dims = stack[0].shape
    side_by_side = np.concatenate(stack, axis=1)
    values, vectors = np.linalg.eigh(side_by_side.T @ side_by_side)
    leading = np.argsort(-values, kind="stable")[:dims]
    consensus = side_by_side @ vectors[:, leading] / np.sqrt(len(stack))
    rotations = np.stack([np.eye(dims)] * len(stack))
    size = max(float(sum((run**2).sum() for run in stack)), np.finfo(np.float64).tiny)
    previous = np.inf
    iterations = 0
    for _ in range(rounds):
        iterations += 1
        rotations = np.stack([align(run, consensus) for run in stack])
        aligned = [run @ R for run, R in zip(stack, rotations, strict=True)]
        consensus = np.mean(aligned, axis=0)
        residual = float(sum(((one - consensus) ** 2).sum() for one in aligned)) / size
        if previous - residual <= 1e-15:
            break
        previous = residual
    else:
        raise InvariantError(f"generalised Procrustes did not settle in {rounds} rounds")
    final, R = canonical(Solution(np.zeros((1, dims)), consensus, np.zeros(items)), anchors)
    return Alignment(final.a, rotations @ R, residual, iterations)


def congruence(a: ArrayLike, b: ArrayLike) -> Floats:
    """Tucker's congruence coefficient per dimension, shape (dims,), -1 to 1.

    ``sum(a b) / sqrt(sum(a^2) sum(b^2))`` per column: a cosine about 0, not a correlation. .85 to .94 is
    usually read as fair similarity, .95 and more as equality (Lorenzo-Seva and ten Berge 2006). A column of
    zeros agrees with nothing: 0.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    size = np.sqrt((left**2).sum(0) * (right**2).sum(0))
    return np.asarray(np.where(size > 0, (left * right).sum(0) / np.where(size > 0, size, 1.0), 0.0))


SAME_ABILITY = 0.85
"""Least congruence (fair, by the usual reading) of one ability's loadings in two fits that it may be called the same in."""


def pairing(gain: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pair rows and columns, each at most once, so that the sum of their entries is greatest.

    Returns
    -------
    Rows in their order, and the column of each.
    """
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import, in many short jobs

    rows, columns = linear_sum_assignment(np.asarray(gain, dtype=np.float64), maximize=True)
    return rows, columns


def match(a: ArrayLike, target: ArrayLike) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Match dimensions by the signed permutation with the largest sum of absolute congruences.

    Returns
    -------
    The matched loadings ``a[:, permutation] * signs``, the permutation and the signs.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(target, dtype=np.float64)
    table = np.stack([congruence(left, right[:, [k]]) for k in range(right.shape[1])])  # (target, a)
    _, permutation = pairing(np.abs(table))
    chosen = table[np.arange(right.shape[1]), permutation]
    signs = np.where(chosen < 0, -1.0, 1.0)
    return left[:, permutation] * signs, permutation, signs


# ------------------------------------------------------------------------------------ simple structure


def _moments(a: Floats) -> Floats:
    """Return the fourth moments sum_j a_jp a_jq a_jr a_js: all that the criteria need of the items."""
    pairs = (a[:, :, None] * a[:, None, :]).reshape(a.shape[0], -1)
    return (pairs.T @ pairs).reshape((a.shape[1],) * 4)


def _starts(dims: int, starts: int, seed: int) -> Floats:
    """Return the identity and random orthogonal matrices, shape (starts, dims, dims)."""
    rng = np.random.default_rng([seed, dims])
    q, r = np.linalg.qr(rng.standard_normal((max(starts, 1), dims, dims)))
    q = q * np.sign(np.einsum("skk->sk", r))[:, None, :]
    q[0] = np.eye(dims)
    return np.asarray(q)


def _scaled(a: Floats, normalise: bool) -> Floats:
    if not normalise:
        return a
    length = np.sqrt((a**2).sum(1, keepdims=True))
    return np.asarray(a / np.where(length > 0, length, 1.0))


def _finish(a: Floats, T: Floats, values: Floats, best: int, *, scale: float, sense: float) -> Rotation:
    """Order and sign the chosen transform, assert its invariants, and count the starts that reached it."""
    loadings = _solve(T, a)
    order = np.argsort(-(loadings**2).sum(0), kind="stable")
    T = T[:, order]
    T = T * signs_of(loadings[:, order], None)
    solution = oblique(Solution(np.eye(a.shape[1]), a, np.zeros(a.shape[0])), T)
    tolerance = 1e-6 * max(scale, np.finfo(np.float64).tiny)
    minima: list[float] = []
    for value in np.sort(values[np.isfinite(values)] * sense) * sense:
        if not minima or abs(value - minima[-1]) > tolerance:
            minima.append(float(value))
    return Rotation(
        T=T,
        loadings=solution.a,
        phi=correlation(T),
        criterion=float(values[best]),
        starts=len(values),
        starts_agreeing=int((np.abs(values - values[best]) <= tolerance).sum()),
        minima=tuple(minima),
    )


def quartimin(
    a: ArrayLike, starts: int = 100, seed: int = 0, *, normalise: bool = False, rounds: int = 2000
) -> Rotation:
    """Direct quartimin (oblimin with gamma 0) by gradient projection, the best of many starts.

    Minimises ``1/4 sum_j sum_{p != q} l_jp^2 l_jq^2`` over ``L = a inv(T)'`` with unit columns of T. The
    criterion depends on the items through their fourth moments only, so that a step costs the same for ten
    items and for thirty thousand, and all starts are stepped together.

    Parameters
    ----------
    a
        Discriminations in a frame where theta ~ N(0, I), shape (items, dims).
    starts
        Number of starts, the first of them the identity, the others random orthogonal matrices.
    seed
        Seed of the starts.
    normalise
        Scale rows to unit length before rotating (Kaiser), which lets weak items count as much as strong
        ones.
    rounds
        Most gradient steps.

    Returns
    -------
    Rotation
        Abilities in falling order of their sum of squared loadings, each signed so that its loadings sum to
        a positive number.

    Raises
    ------
    InvariantError
        If no start leads to a nonsingular transform, or an invariant fails.

    Notes
    -----
    Algorithm GPFoblq of Bernaards and Jennrich (2005), for all starts at once.
    """
    full = np.asarray(a, dtype=np.float64)
    dims = full.shape[1]
    scaled = _scaled(full, normalise)
    fourth = _moments(scaled)
    scale = float(np.einsum("ppqq->", fourth))  # sum of |a_j|^4, the size of the criterion
    if dims == 1 or scale == 0.0:
        return _finish(full, np.eye(dims), np.zeros(1), 0, scale=1.0, sense=1.0)
    square = (fourth / scale).reshape(dims**2, dims**2)

    def value(M: Floats) -> tuple[Floats, Floats]:
        # Q[s, p] = sum_j l_jp^2 a_j a_j'; the criterion and its gradient by M follow
        columns = np.swapaxes(M, 1, 2)
        outer = (columns[:, :, :, None] * columns[:, :, None, :]).reshape(-1, dims, dims**2)
        Q = (outer @ square).reshape(-1, dims, dims, dims)
        rest = Q.sum(1, keepdims=True) - Q
        gradient = np.swapaxes((rest @ columns[..., None])[..., 0], 1, 2)
        return 0.25 * np.einsum("scp,scp->s", gradient, M), gradient

    T = _starts(dims, starts, seed)
    M = np.swapaxes(np.linalg.inv(T), 1, 2)
    f, by_M = value(M)
    step = np.ones(len(T))
    active = np.ones(len(T), dtype=bool)
    for _ in range(rounds):
        at = np.flatnonzero(active)
        # dL = -L dT' M gives the gradient by T: -(M' dM inv(T))'
        G = -np.swapaxes(np.swapaxes(M[at], 1, 2) @ by_M[at] @ np.swapaxes(M[at], 1, 2), 1, 2)
        projected = G - T[at] * (T[at] * G).sum(1, keepdims=True)
        s = np.sqrt((projected**2).sum((1, 2)))
        done = s < 1e-9
        active[at[done]] = False
        at, projected, s = at[~done], projected[~done], s[~done]
        if not at.size:
            break
        step[at] *= 2.0
        pending = np.ones(at.size, dtype=bool)
        for _halving in range(30):
            now = at[pending]
            X = T[now] - step[now, None, None] * projected[pending]
            X = X / np.sqrt((X**2).sum(1, keepdims=True))
            M_new = np.swapaxes(np.linalg.inv(X), 1, 2)
            f_new, by_M_new = value(M_new)
            better = f_new < f[now] - 0.5 * s[pending] ** 2 * step[now]
            moved = now[better]
            T[moved], M[moved], f[moved], by_M[moved] = (
                X[better],
                M_new[better],
                f_new[better],
                by_M_new[better],
            )
            pending[np.flatnonzero(pending)[better]] = False
            if not pending.any():
                break
            step[at[pending]] *= 0.5
        active[at[pending]] = False  # no step lowers the criterion any more: rounding is reached
    usable = np.isfinite(f) & (np.linalg.cond(T) < 1e6)
    if not usable.any():
        raise InvariantError("quartimin: every start ended in a singular transform")
    values = np.where(usable, f * scale, np.inf)
    smallest = float(values.min())
    best = int(np.flatnonzero(values <= smallest + 1e-12 * scale)[0])
    squares = _solve(T[best], scaled) ** 2
    direct = 0.25 * float(((squares.sum(1) ** 2) - (squares**2).sum(1)).sum())
    _same(
        np.array([direct / scale]),
        np.array([values[best] / scale]),
        "quartimin: the criterion from the moments is not that of the loadings",
    )
    return _finish(full, T[best], values, best, scale=scale, sense=1.0)


def follow(a: ArrayLike, T: ArrayLike) -> Floats:
    """Repeat a quartimin rotation for other loadings of the same items, from where it stands.

    Parameters
    ----------
    a
        Discriminations in the same canonical frame, shape (items, dims).
    T
        The rotation to follow, as unit columns, shape (dims, abilities).

    Returns
    -------
    Axes of the abilities as columns, shape (dims, abilities), in the order and with the signs of T; NaN where the search
    ends in a singular transform.
    """
    target = np.asarray(T, dtype=np.float64)
    u, _, v = np.linalg.svd(target)
    turn = u @ v  # the orthogonal matrix nearest to T, where the search starts
    try:
        axes = turn @ quartimin(np.asarray(a, dtype=np.float64) @ turn, starts=1).T
    except InvariantError:
        return np.full_like(target, np.nan)
    cosine = axes.T @ target
    rows, columns = pairing(np.abs(cosine))
    matched = np.empty_like(axes)
    matched[:, columns] = axes[:, rows] * np.where(cosine[rows, columns] < 0, -1.0, 1.0)
    return matched


def varimax(
    a: ArrayLike, starts: int = 20, seed: int = 0, *, normalise: bool = False, rounds: int = 2000
) -> Rotation:
    """Varimax (orthogonal), as a check on the oblique rotation: arguments and result as in :func:`quartimin`.

    Maximises the sum over dimensions of the variance of the squared loadings, by repeated polar
    decomposition of the gradient.
    """
    full = np.asarray(a, dtype=np.float64)
    items, dims = full.shape
    scaled = _scaled(full, normalise)
    fourth = _moments(scaled) / items
    second = scaled.T @ scaled / items
    scale = float(np.einsum("ppqq->", fourth))
    if dims == 1 or scale == 0.0:
        return _finish(full, np.eye(dims), np.zeros(1), 0, scale=1.0, sense=-1.0)
    T = _starts(dims, starts, seed)

    def value(R: Floats) -> tuple[Floats, Floats]:
        cubes = np.einsum("abcd,sbp,scp,sdp->sap", fourth, R, R, R, optimize=True)  # mean_j a_j l_jp^3
        squares = np.einsum("sap,ab,sbp->sp", R, second, R, optimize=True)  # mean_j l_jp^2
        f = np.einsum("sap,sap->s", R, cubes) - (squares**2).sum(1)
        return f, cubes - (second @ R) * squares[:, None, :]

    f, gradient = value(T)
    for _ in range(rounds):
        # the criterion is not convex in R; a multiple of R makes each step an ascent
        u, _values, vt = np.linalg.svd(gradient + 2.0 * scale * T)
        T = u @ vt
        previous = f
        f, gradient = value(T)
        if float((f - previous).max()) <= 1e-15 * scale:
            break
    for R in T:
        _orthogonal(R, dims)
    best = int(np.flatnonzero(f >= f.max() - 1e-12 * scale)[0])
    return _finish(full, T[best], f, best, scale=scale, sense=-1.0)


# ---------------------------------------------------------------------------------------- item numbers


def mdisc(a: ArrayLike) -> Floats:
    """Multidimensional discrimination, the length of a, shape (items,), in logits per unit of ability."""
    return np.asarray(np.sqrt((np.asarray(a, dtype=np.float64) ** 2).sum(1)))


def mdiff(a: ArrayLike, d: ArrayLike) -> Floats:
    """Multidimensional difficulty ``-d / |a|``, shape (items,), in units of ability; NaN where a is 0."""
    length = mdisc(a)
    return np.asarray(
        np.where(length > 0, -np.asarray(d, dtype=np.float64) / np.where(length > 0, length, 1.0), np.nan)
    )


def angles(a: ArrayLike, T: ArrayLike) -> Floats:
    """Angle of each item to each ability, shape (items, abilities), 0 to 180 degrees; NaN where a is 0.

    Parameters
    ----------
    a
        Discriminations in a frame where theta ~ N(0, I), shape (items, dims).
    T
        Unit vectors of the abilities as columns, shape (dims, abilities). The cosine of the angle is the
        correlation of the item's logit with the ability.
    """
    length = mdisc(a)[:, None]
    cosine = (
        np.asarray(a, dtype=np.float64) @ np.asarray(T, dtype=np.float64) / np.where(length > 0, length, 1.0)
    )
    return np.asarray(np.where(length > 0, np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))), np.nan))


def _quantile(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level}")
    return float(ndtri(0.5 + level / 2))


def _along(a: Floats, item_cov: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return |a|, its delta-method variance, its covariance with d and the variance of d, each (items,)."""
    length = mdisc(a)
    unit = a / np.where(length > 0, length, 1.0)[:, None]
    k = a.shape[1]
    variance = np.einsum("jp,jpq,jq->j", unit, item_cov[:, :k, :k], unit)
    return length, variance, np.einsum("jp,jp->j", unit, item_cov[:, :k, k]), item_cov[:, k, k]


def mdisc_interval(a: ArrayLike, item_cov: ArrayLike, level: float = 0.95) -> Floats:
    """Delta-method interval of MDISC, shape (items, 2), cut off at 0.

    Parameters
    ----------
    a, item_cov
        Posterior means (items, dims) and covariances over (a, d) (items, dims + 1, dims + 1).
    level
        Coverage, 0 to 1.
    """
    length, variance, _, _ = _along(np.asarray(a, dtype=np.float64), np.asarray(item_cov, dtype=np.float64))
    half = _quantile(level) * np.sqrt(variance)
    return np.stack([np.maximum(length - half, 0.0), length + half], axis=1)


def mdiff_interval(a: ArrayLike, d: ArrayLike, item_cov: ArrayLike, level: float = 0.95) -> Floats:
    """Fieller's interval of MDIFF, shape (items, 2), with the direction of a held at its mean.

    Both ends are NaN where the length of a can't be told from 0 at this level: the ratio is then unbounded.
    Arguments as in :func:`mdisc_interval`.
    """
    means = np.asarray(a, dtype=np.float64)
    intercept = np.asarray(d, dtype=np.float64)
    length, v_s, c, v_d = _along(means, np.asarray(item_cov, dtype=np.float64))
    z2 = _quantile(level) ** 2
    # m = -d/s with (d + m s)^2 <= z^2 (v_d + 2 m c + m^2 v_s)
    A = length**2 - z2 * v_s
    B = intercept * length - z2 * c
    C = intercept**2 - z2 * v_d
    root = B**2 - A * C
    bounded = (A > 0) & (root >= 0)
    spread = np.sqrt(np.where(bounded, root, 0.0))
    safe = np.where(bounded, A, 1.0)
    ends = np.stack([(-B - spread) / safe, (-B + spread) / safe], axis=1)
    return np.where(bounded[:, None], ends, np.nan)


def angle_interval(a: ArrayLike, item_cov: ArrayLike, T: ArrayLike, level: float = 0.95) -> Floats:
    """Delta-method intervals of the angles, shape (items, abilities, 2), within 0 to 180 degrees.

    Arguments as in :func:`mdisc_interval` and :func:`angles`. NaN where a is exactly 0.
    """
    means = np.asarray(a, dtype=np.float64)
    k = means.shape[1]
    cov = np.asarray(item_cov, dtype=np.float64)[:, :k, :k]
    axes = np.asarray(T, dtype=np.float64)
    length = mdisc(means)
    unit = means / np.where(length > 0, length, 1.0)[:, None]
    cosine = unit @ axes
    # the gradient of the angle by a is the unit vector away from the axis, in the plane of both, over |a|
    away = cosine[:, None, :] * unit[:, :, None] - axes[None]
    size = np.sqrt((away**2).sum(1, keepdims=True))
    away = away / np.where(size > 1e-12, size, 1.0)
    variance = np.einsum("jpk,jpq,jqk->jk", away, cov, away)
    on_axis = size[:, 0, :] <= 1e-12  # any direction leads away: take the widest across a
    if on_axis.any():
        across = cov - np.einsum("jp,jq->jpq", unit, np.einsum("jpq,jp->jq", cov, unit))
        widest = np.linalg.svd(across, compute_uv=False)[:, :1]
        variance = np.where(on_axis, widest, variance)
    half = np.degrees(_quantile(level) * np.sqrt(variance) / np.where(length > 0, length, np.nan)[:, None])
    middle = angles(means, axes)
    return np.stack([np.clip(middle - half, 0.0, 180.0), np.clip(middle + half, 0.0, 180.0)], axis=2)
