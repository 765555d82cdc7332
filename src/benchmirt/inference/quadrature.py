"""Marginal maximum likelihood by quadrature over the abilities: small item sets, an outside check on the engines.

With few items and one or two dimensions the abilities can be integrated out (Bock and Lieberman 1970). No prior stands on the
items, so the estimates are those that classical programs publish; the likelihood is the one that every engine calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmirt.inference.record import FitError
from benchmirt.likelihood import Asymptotes, asymptotes_of, cell_log_likelihood

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["MarginalFit", "fit", "marginal_log_likelihood"]


@dataclass(frozen=True)
class MarginalFit:
    """Marginal maximum likelihood estimates.

    Attributes
    ----------
    a, d
        Discriminations (items, dims) and intercepts (items,), in logits.
    log_likelihood
        Marginal log likelihood at the maximum.
    gradient_max
        Largest absolute derivative there.
    """

    a: NDArray[np.float64]
    d: NDArray[np.float64]
    log_likelihood: float
    gradient_max: float


def _grid(dims: int, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Hermite nodes (points, dims) of N(0, I) and the logarithms of their weights (points,)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    log_weights = np.log(weights / weights.sum())
    grid = np.array(list(product(points, repeat=dims)))
    return grid, np.array([sum(x) for x in product(log_weights, repeat=dims)])


def marginal_log_likelihood(
    a: Array,
    d: Array,
    responses: Array,
    counts: Array,
    grid: Array,
    log_weights: Array,
    asymptotes: Asymptotes | None = None,
) -> Array:
    """Log likelihood of response patterns with abilities N(0, I) integrated out.

    Parameters
    ----------
    a, d
        Shapes (items, dims) and (items,).
    responses, counts
        Distinct patterns (patterns, items) of 1, 0, -1 and how often each occurs (patterns,).
    grid, log_weights
        Quadrature points (points, dims) and log weights (points,).
    asymptotes
        Known asymptotes, or None for the 2PL.
    """

    def at(point: Array) -> Array:
        eta = jnp.broadcast_to(a @ point + d, responses.shape)
        return cell_log_likelihood(eta, responses, asymptotes).sum(axis=1)

    joint = jax.vmap(at)(grid) + log_weights[:, None]
    return counts @ jax.scipy.special.logsumexp(joint, axis=0)


def fit(data: ResponseData, dims: int = 1, *, nodes: int = 61) -> MarginalFit:
    """Maximise the marginal likelihood over all item parameters.

    Parameters
    ----------
    data
        Responses (models, items); equal rows are counted, not repeated.
    dims
        1 or 2; beyond, the grid grows too fast to be of use. In two dimensions the solution's rotation is arbitrary.
    nodes
        Quadrature points per dimension.

    Raises
    ------
    ValueError
        If ``dims`` is not 1 or 2.
    FitError
        If the optimiser ends without a finite maximum.
    """
    if dims not in (1, 2):
        raise ValueError(f"quadrature serves 1 or 2 dimensions, not {dims}")
    patterns, counts = np.unique(data.responses, axis=0, return_counts=True)
    items = patterns.shape[1]
    grid, log_weights = _grid(dims, nodes)
    asymptotes = asymptotes_of(data.floor, data.ceiling)

    def negative(parameters: Array) -> Array:
        table = parameters.reshape(items, dims + 1)
        return -marginal_log_likelihood(
            table[:, :dims],
            table[:, dims],
            jnp.asarray(patterns),
            jnp.asarray(counts, parameters.dtype),
            jnp.asarray(grid, parameters.dtype),
            jnp.asarray(log_weights, parameters.dtype),
            asymptotes,
        )

    with jax.enable_x64(True):
        value_and_gradient = jax.jit(jax.value_and_grad(negative))

        def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = value_and_gradient(jnp.asarray(parameters))
            return float(value), np.asarray(gradient, np.float64)

        start = np.full((items, dims + 1), 0.5)
        start[:, 1:dims] = np.linspace(-0.5, 0.5, items)[:, None]
        start[:, dims] = 0.0
        found: Any = minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-7},
        )
    if not np.isfinite(found.fun):
        raise FitError(f"quadrature with {dims} dimensions ended without a maximum: {found.message}")
    table = found.x.reshape(items, dims + 1)
    sign = np.where(table[:, :dims].sum(axis=0) < 0, -1.0, 1.0)
    return MarginalFit(
        a=table[:, :dims] * sign,
        d=table[:, dims],
        log_likelihood=-float(found.fun),
        gradient_max=float(np.abs(found.jac).max()),
    )
