"""Deterministic variational EM: the workhorse of warm starts, resampling families and nulls.

The posterior is approximated by independent Gaussians, one of dimension K per model and one of dimension K + 1 per item
(over a_1..a_K and d), and the hyperparameters by their modes. A sweep updates, in turn and in closed form,

1. every item:   S_j^-1 = prior + sum_i w_ij E[x x'],  mu_j = S_j (prior + sum_i r_ij (y_ij - 1/2) E[x]),   x = (theta, 1)
2. every model:  V_i^-1 = I + sum_j w_ij E[a a'],      m_i = V_i sum_j (r_ij (y_ij - 1/2) E[a] - w_ij E[a d])
3. the hyperparameters tau, mu_d, sigma_d (modes given the items' second moments)
4. the frame: location, scale and rotation, which the likelihood leaves free and the priors settle (parameter expansion,
   Liu, Rubin and Wu 1998). Without it the sweeps would creep along these directions.

Sweeps use the Jaakkola-Jordan bound (2000), w = r tanh(xi / 2) / (2 xi) with xi^2 = E[eta^2]: every step raises a lower bound
of the evidence, so they cannot run away, as Newton steps do where few models answer many saturated items. At the end the
covariances, which the bound makes too narrow, are replaced by those of the expected curvature under the Gaussian logits
(Knowles and Minka 2011). Asymptotes enter through the responsibilities r of the EM complete data: the chance that a response
passed through the logistic part; r = 1 without asymptotes, 0 where a response is missing. xi^2 is a product of second moments of
models and items, so that a cell costs a dozen multiply-adds, a root and a tanh.

Many replicates of one data set (bootstrap, folds, halves, leave-one-out) differ by weights only and share one compilation:
a model of weight 0 does not inform the items but is still scored, an item of weight 0 does not inform the abilities but is
still calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt.inference import check_dims
from benchmirt.inference.posterior import State, report_frame, settle_frame, state_of, update_hyper
from benchmirt.inference.record import FitError, FitRecord
from benchmirt.likelihood import (
    Asymptotes,
    asymptotes_of,
    cell_log_likelihood,
    logit_moments,
    moderated,
    responsibility,
    score_and_curvature,
)
from benchmirt.model import Priors
from benchmirt.provenance import versions

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["Batch", "fit", "fit_many"]

FIRST_SWEEPS = 20
LEAST_SWEEPS = 10
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Batch:
    """Results of :func:`fit_many` for R replicates, float32, in each replicate's own canonical frame.

    Attributes
    ----------
    theta, theta_cov
        Abilities, shapes (R, models, dims) and (R, models, dims, dims).
    a, d, item_cov
        Item parameters, shapes (R, items, dims), (R, items) and (R, items, dims + 1, dims + 1).
    tau, mu_d, sigma_d
        Hyperparameters, shapes (R, dims), (R,) and (R,).
    elbo
        Evidence lower bound at the end (expected log likelihood by 9-point quadrature), shape (R,); NaN if not wanted.
    sweeps, change, converged
        Sweeps used, last root mean square change of the abilities (in logits of a typical item), and whether it fell
        below the tolerance.
    """

    theta: NDArray[np.float32]
    theta_cov: NDArray[np.float32]
    a: NDArray[np.float32]
    d: NDArray[np.float32]
    item_cov: NDArray[np.float32]
    tau: NDArray[np.float32]
    mu_d: NDArray[np.float32]
    sigma_d: NDArray[np.float32]
    elbo: NDArray[np.float64]
    sweeps: NDArray[np.int64]
    change: NDArray[np.float64]
    converged: NDArray[np.bool_]


def _pairs(size: int) -> list[tuple[int, int]]:
    """Places of the upper triangle of a symmetric matrix, row by row."""
    return [(p, q) for p in range(size) for q in range(p, size)]


def _packed(matrices: Array) -> Array:
    """Upper triangles of symmetric matrices (n, p, p), one row per place: (p (p + 1) / 2, n)."""
    return jnp.stack([matrices[:, p, q] for p, q in _pairs(matrices.shape[-1])])


def _inverse(packed: Array, size: int) -> Array:
    """Invert many small symmetric positive definite matrices: packed (p (p + 1) / 2, n) in, full (n, p, p) out.

    LAPACK is called once per matrix and dominates a sweep at 30,000 items; these unrolled Gauss-Jordan steps run over all of
    them at once.
    """
    place = {pair: row for row, pair in enumerate(_pairs(size))}
    rows = [[packed[place[min(p, q), max(p, q)]] for q in range(size)] for p in range(size)]
    for k in range(size):
        pivot = 1.0 / rows[k][k]
        column = [rows[p][k] for p in range(size)]
        rows[k] = [pivot if q == k else rows[k][q] * pivot for q in range(size)]
        for p in range(size):
            if p != k:
                rows[p] = [
                    -column[p] * pivot if q == k else rows[p][q] - column[p] * rows[k][q] for q in range(size)
                ]
    upper = {(p, q): (rows[p][q] + rows[q][p]) / 2 for p, q in _pairs(size)}
    # without a barrier each place of the result would redo all steps
    upper = jax.lax.optimization_barrier(upper)  # type: ignore[no-untyped-call]
    return jnp.stack(
        [jnp.stack([upper[min(p, q), max(p, q)] for q in range(size)], -1) for p in range(size)], -2
    )


def _model_moments(state: State) -> Array:
    """E[x x'] of every model, x = (theta, 1), packed: (P, models) with P = (K + 1) (K + 2) / 2."""
    n, k = state.m.shape
    x = [state.m[:, p] for p in range(k)] + [jnp.ones(n)]
    return jnp.stack([x[p] * x[q] + (state.v[:, p, q] if q < k else 0.0) for p, q in _pairs(k + 1)])


def _item_moments(state: State) -> Array:
    """E[b b'] of every item, b = (a, d), packed: (P, items)."""
    return jnp.stack(
        [state.mu[:, p] * state.mu[:, q] + state.s[:, p, q] for p, q in _pairs(state.mu.shape[1])]
    )


def _evidence(state: State, responses: Array, asymptotes: Asymptotes | None) -> tuple[Array, Array]:
    """Return what every cell contributes under the bound, both (models, items): r (y - 1/2), and its weight w.

    Both are 0 where a response is missing. r and xi are the bound's own parameters, at their best for the current Gaussians;
    they serve the items and the models of one sweep.
    """
    seen = responses >= 0
    double = jnp.array([1.0 if p == q else 2.0 for p, q in _pairs(state.mu.shape[1])])
    square = _model_moments(state).T @ (double[:, None] * _item_moments(state))
    share = jnp.where(seen, 1.0, 0.0)
    if asymptotes is not None:
        mean = state.m @ state.mu[:, :-1].T + state.mu[:, -1]
        shrunk, _ = moderated(mean, jnp.maximum(square - mean**2, 0.0))
        share = jnp.where(seen, responsibility(shrunk, responses, asymptotes), 0.0)
    xi = jnp.sqrt(jnp.maximum(square, 0.0) + 1e-8)
    return share * (responses - 0.5), share * jnp.tanh(xi / 2) / (2 * xi)


def _item_precisions(state: State, weight: Array, model_weight: Array) -> Array:
    """Posterior precisions of the items, packed (P, items)."""
    prior, _ = _item_prior(state)
    diagonal = [prior[p] if p == q else 0.0 for p, q in _pairs(state.mu.shape[1])]
    return (_model_moments(state) * model_weight) @ weight + jnp.stack(diagonal)[:, None]


def _model_precisions(moments: Array, weight: Array, dims: int) -> Array:
    """Posterior precisions of the abilities, packed (K (K + 1) / 2, models), from the items' weighted E[a a']."""
    rows = [row for row, (_, q) in enumerate(_pairs(dims + 1)) if q < dims]
    prior = jnp.array([1.0 if p == q else 0.0 for p, q in _pairs(dims)])
    return (weight @ moments[jnp.array(rows)].T).T + prior[:, None]


def _item_prior(state: State) -> tuple[Array, Array]:
    """Precisions and means of the prior of (a_1..a_K, d)."""
    k = state.m.shape[1]
    return (
        jnp.concatenate([1 / state.tau2, 1 / state.sigma2[None]]),
        jnp.concatenate([jnp.zeros(k), state.mu_d[None]]),
    )


def _update_items(state: State, evidence: Array, weight: Array, model_weight: Array) -> State:
    """Maximise the bound over the items' Gaussians."""
    size = state.mu.shape[1]
    precision, center = _item_prior(state)
    s = _inverse(_item_precisions(state, weight, model_weight), size)
    x = jnp.concatenate([state.m, jnp.ones((state.m.shape[0], 1))], axis=1)
    linear = (x.T * model_weight) @ evidence + (precision * center)[:, None]
    mu = jnp.stack([sum(s[:, p, q] * linear[q] for q in range(size)) for p in range(size)], -1)
    return state._replace(mu=mu, s=s)


def _update_models(state: State, evidence: Array, weight: Array, item_weight: Array) -> State:
    """Maximise the bound over the abilities' Gaussians."""
    k = state.m.shape[1]
    moments = _item_moments(state) * item_weight
    v = _inverse(_model_precisions(moments, weight, k), k)
    rows = [row for row, (p, q) in enumerate(_pairs(k + 1)) if p < k and q == k]
    linear = evidence @ (state.mu[:, :k] * item_weight[:, None]) - weight @ moments[jnp.array(rows)].T
    return state._replace(m=jnp.einsum("npq,nq->np", v, linear), v=v)


def _sharpen(
    state: State, responses: Array, asymptotes: Asymptotes | None, model_weight: Array, item_weight: Array
) -> State:
    """Replace the bound's covariances, which are too narrow, by those of the expected curvature; means stay."""
    k = state.m.shape[1]
    mean, variance = logit_moments(state.m, state.v, state.mu[:, :k], state.mu[:, k], state.s)
    shrunk, kappa = moderated(mean, variance)
    weight = score_and_curvature(shrunk, responses, asymptotes)[1] * kappa
    items = _item_precisions(state, weight, model_weight)
    models = _model_precisions(_item_moments(state) * item_weight, weight, k)
    return state._replace(s=_inverse(items, k + 1), v=_inverse(models, k))


def _sweep(
    state: State,
    responses: Array,
    asymptotes: Asymptotes | None,
    model_weight: Array,
    item_weight: Array,
    priors: Priors,
    first: bool,
) -> State:
    evidence, weight = _evidence(state, responses, asymptotes)
    state = _update_items(state, evidence, weight, model_weight)
    state = _update_models(state, evidence, weight, item_weight)
    state = settle_frame(state, model_weight, item_weight)
    hyper = update_hyper(state, item_weight, priors)
    # at first tau stays wide: a dimension that has not been found yet would have its scale shut to 0 for good
    return hyper._replace(tau2=state.tau2) if first else hyper


def _elbo(
    state: State,
    responses: Array,
    asymptotes: Asymptotes | None,
    model_weight: Array,
    item_weight: Array,
    priors: Priors,
) -> Array:
    """Evidence lower bound, with the hyperparameters at their modes."""
    k = state.m.shape[1]
    mean, variance = logit_moments(state.m, state.v, state.mu[:, :k], state.mu[:, k], state.s)
    deviation = jnp.sqrt(jnp.maximum(variance, 0.0))

    def at(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        cells = cell_log_likelihood(mean + node[0] * deviation, responses, asymptotes)
        return total + node[1] * cells, None

    nodes = (jnp.asarray(_NODES, jnp.float32), jnp.asarray(_NODE_WEIGHTS, jnp.float32))
    expected, _ = jax.lax.scan(at, jnp.zeros_like(mean), nodes)
    fit = (model_weight @ expected) @ item_weight

    theta_terms = (
        jnp.linalg.slogdet(state.v)[1] + k - (state.m**2).sum(1) - jnp.trace(state.v, axis1=1, axis2=2)
    )
    prior_variance = jnp.concatenate([state.tau2, state.sigma2[None]])
    center = jnp.concatenate([jnp.zeros(k), state.mu_d[None]])
    second = (state.mu - center) ** 2 + jnp.diagonal(state.s, axis1=1, axis2=2)
    item_terms = (
        jnp.linalg.slogdet(state.s)[1]
        + k
        + 1
        - jnp.log(prior_variance).sum()
        - (second / prior_variance).sum(1)
    )
    hyper = -(
        state.tau2.sum() / priors.tau_scale**2 + (state.mu_d**2 + state.sigma2) / priors.intercept_scale**2
    )
    return fit + (model_weight @ theta_terms + item_weight @ item_terms + hyper) / 2


def _spectral_start(responses: Array, dims: int, model_weight: Array, item_weight: Array) -> Array:
    """Abilities (models, dims) from the leading eigenvectors of the models' Gram matrix of standardised residuals."""
    seen = (responses >= 0) * 1.0
    weighted = seen * model_weight[:, None]
    mean = (weighted * responses).sum(0) / jnp.maximum(weighted.sum(0), 1.0)
    mean = jnp.clip(mean, 0.02, 0.98)
    residual = seen * (responses - mean) / jnp.sqrt(mean * (1 - mean)) * item_weight
    residual = residual / jnp.sqrt(jnp.maximum(seen.mean(1, keepdims=True), 1e-3))
    root = jnp.sqrt(model_weight)
    _, vectors = jnp.linalg.eigh((root[:, None] * residual) @ (root[:, None] * residual).T)
    leading = vectors[:, ::-1][:, :dims] * jnp.sqrt(model_weight.sum())
    # a fixed sign: the abilities rise with the residual score
    sign = jnp.where((leading * (root * residual.sum(1))[:, None]).sum(0) < 0, -1.0, 1.0)
    return jnp.where(model_weight[:, None] > 0, leading * sign / jnp.maximum(root[:, None], 1e-6), 0.0)


def _cold_state(theta: Array, items: int) -> State:
    n, k = theta.shape
    return State(
        m=theta,
        v=jnp.tile(0.1 * jnp.eye(k), (n, 1, 1)),
        mu=jnp.zeros((items, k + 1)),
        s=jnp.tile(0.1 * jnp.eye(k + 1), (items, 1, 1)),
        tau2=jnp.ones(k),
        mu_d=jnp.float32(0.0),
        sigma2=jnp.float32(2.0),
    )


@partial(
    jax.jit, static_argnames=("dims", "sweeps", "tolerance", "priors", "warm", "random", "sharpen", "bound")
)
def _solve(
    responses: Array,
    asymptotes: Asymptotes | None,
    model_weights: Array,
    item_weights: Array,
    reveal: Array | None,
    start: State | None,
    keys: Array,
    *,
    dims: int,
    sweeps: int,
    tolerance: float,
    priors: Priors,
    warm: bool,
    random: bool,
    sharpen: bool,
    bound: bool,
) -> tuple[State, Array, Array, Array, Array]:
    items = responses.shape[1]

    def one(inputs: tuple[Array, Array, Array | None, Array]) -> tuple[State, Array, Array, Array, Array]:
        model_weight, item_weight, shown, key = inputs
        y = responses if shown is None else jnp.where(shown, responses, jnp.int8(-1))
        step = partial(
            _sweep,
            responses=y,
            asymptotes=asymptotes,
            model_weight=model_weight,
            item_weight=item_weight,
            priors=priors,
        )
        if warm:
            assert start is not None
            state = start
        else:
            if random:
                theta = jax.random.normal(key, (responses.shape[0], dims))
            else:
                theta = _spectral_start(y, dims, model_weight, item_weight)
            state = jax.lax.fori_loop(
                0, FIRST_SWEEPS, lambda _, s: step(s, first=True), _cold_state(theta, items)
            )

        def unfinished(carry: tuple[State, Array, Array, Array]) -> Array:
            _, count, change, _ = carry
            unsettled = (change > tolerance) | (count < LEAST_SWEEPS)
            return (count < sweeps) & unsettled & jnp.isfinite(change)

        def advance(carry: tuple[State, Array, Array, Array]) -> tuple[State, Array, Array, Array]:
            old, count, _, trace = carry
            new = step(old, first=False)
            # in logits of a typical item, so that a spare dimension, whose abilities mean nothing, has no say
            change = jnp.sqrt(((new.m - old.m) ** 2 @ new.tau2).mean())
            return new, count + 1, change, trace.at[count].set(change)

        first = (state, jnp.int32(0), jnp.float32(np.finfo(np.float32).max), jnp.zeros(sweeps))
        state, count, change, trace = jax.lax.while_loop(unfinished, advance, first)
        if sharpen:
            state = _sharpen(state, y, asymptotes, model_weight, item_weight)
        elbo = jnp.float32(jnp.nan)
        if bound:
            elbo = _elbo(state, y, asymptotes, model_weight, item_weight, priors)
        return report_frame(state, model_weight, item_weight, priors), elbo, count, change, trace

    return jax.lax.map(one, (model_weights, item_weights, reveal, keys))


def fit_many(
    data: ResponseData,
    dims: int,
    *,
    model_weights: NDArray[Any] | None = None,
    item_weights: NDArray[Any] | None = None,
    reveal: NDArray[np.bool_] | None = None,
    start: FitRecord | None = None,
    sharpen: bool = True,
    bound: bool = True,
    seed: int = 0,
    sweeps: int = 300,
    tolerance: float = 1e-3,
    priors: Priors | None = None,
) -> Batch:
    """Fit R replicates of one data set that differ by weights or by the cells they may see.

    Parameters
    ----------
    data
        Responses (models, items) with their asymptotes.
    dims
        Number of dimensions K, below the number of models.
    model_weights
        Shape (R, models), not negative; counts for a bootstrap, 0 for a model that is scored only. Default: one
        replicate of ones.
    item_weights
        Shape (R, items); 0 for an item that is calibrated only. Default: ones.
    reveal
        Shape (R, models, items): cells that a replicate may see; the others are treated as missing.
    start
        A fit of the same models, items and dims to start from (a warm start); else the spectral start for seed 0 and
        random abilities for other seeds.
    sharpen
        Whether the covariances are replaced by the sharper ones; means do not depend on it.
    bound
        Whether the evidence lower bound is computed, which costs as much as a few sweeps.
    seed
        Seed of the random starts, one per replicate.
    sweeps, tolerance
        Most sweeps, and the root mean square change of the abilities, in logits of a typical item, that ends them.
    priors
        Scales of the hyperpriors.

    Returns
    -------
    Batch
        In the order of the weights.

    Raises
    ------
    InputError
        If ``dims`` is not possible for this matrix.
    FitError
        If a replicate's numbers cease to be finite.
    """
    models, items = data.responses.shape
    check_dims(models, items, dims)
    replicates = max((len(x) for x in (model_weights, item_weights, reveal) if x is not None), default=1)

    def filled(weights: NDArray[Any] | None, size: int) -> Array:
        if weights is None:
            return jnp.ones((replicates, size), jnp.float32)
        if weights.shape != (replicates, size):
            raise ValueError(f"weights have shape {weights.shape}, expected {(replicates, size)}")
        return jnp.asarray(weights, jnp.float32)

    state, elbo, count, change, _ = _solve(
        jnp.asarray(data.responses, jnp.int8),
        asymptotes_of(data.floor, data.ceiling),
        filled(model_weights, models),
        filled(item_weights, items),
        None if reveal is None else jnp.asarray(reveal),
        None if start is None else state_of(start),
        jax.random.split(jax.random.key(seed), replicates),
        dims=dims,
        sweeps=sweeps,
        tolerance=tolerance,
        priors=priors or Priors(),
        warm=start is not None,
        random=seed != 0,
        sharpen=sharpen,
        bound=bound,
    )
    change_ = np.asarray(change, np.float64)
    finite = np.isfinite(change_) & (np.isfinite(np.asarray(elbo)) | (not bound))
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        raise FitError(
            f"variational EM with {dims} dimensions: {int((~finite).sum())} of {replicates} replicates ceased to be "
            f"finite, the first is replicate {first} after {int(count[first])} sweeps"
        )
    return Batch(
        theta=np.asarray(state.m),
        theta_cov=np.asarray(state.v),
        a=np.asarray(state.mu[:, :, :-1]),
        d=np.asarray(state.mu[:, :, -1]),
        item_cov=np.asarray(state.s),
        tau=np.sqrt(np.asarray(state.tau2)),
        mu_d=np.asarray(state.mu_d),
        sigma_d=np.sqrt(np.asarray(state.sigma2)),
        elbo=np.asarray(elbo, np.float64),
        sweeps=np.asarray(count, np.int64),
        change=change_,
        converged=change_ <= tolerance,
    )


def fit(
    data: ResponseData,
    dims: int,
    *,
    start: FitRecord | None = None,
    seed: int = 0,
    sweeps: int = 300,
    tolerance: float = 1e-3,
    priors: Priors | None = None,
) -> FitRecord:
    """Fit one data set; parameters, errors and frame as in :func:`fit_many`."""
    priors = priors or Priors()
    batch = fit_many(data, dims, start=start, seed=seed, sweeps=sweeps, tolerance=tolerance, priors=priors)
    converged = bool(batch.converged[0])
    return FitRecord(
        engine="em",
        dims=dims,
        seed=seed,
        theta_mean=batch.theta[0],
        theta_cov=batch.theta_cov[0],
        a_mean=batch.a[0],
        d_mean=batch.d[0],
        item_cov=batch.item_cov[0],
        tau=batch.tau[0],
        mu_d=float(batch.mu_d[0]),
        sigma_d=float(batch.sigma_d[0]),
        trace=-batch.elbo[:1],
        models=data.models,
        items=data.items,
        data_hash=data.hash,
        priors=priors.as_dict(),
        diagnostics={
            "elbo": float(batch.elbo[0]),
            "sweeps": int(batch.sweeps[0]),
            "change": float(batch.change[0]),
            "tolerance": tolerance,
            "start": "warm" if start is not None else "spectral" if seed == 0 else "random",
        },
        versions=versions(),
        converged=converged,
        converged_why=(
            f"abilities changed by {batch.change[0]:.1e} logits in the last of {batch.sweeps[0]} sweeps "
            f"({'below' if converged else 'not below'} the tolerance {tolerance:.0e})"
        ),
    )
