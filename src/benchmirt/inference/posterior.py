"""The Gaussian posterior that the engines share, and the frame in which records report it.

The likelihood knows only eta = a . theta + d. Location, scale and rotation of the abilities are conventions that the priors
prefer among; these functions move a posterior along them without changing eta. A record always reports the same frame:
abilities with mean 0 and second moment I over the models fitted (posterior variance included), discriminations with a diagonal
second moment, largest first, and signs under which each dimension's discriminations sum to a positive number. Abilities are
then in standard deviations of the models at hand.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from benchmirt.inference.record import FitRecord
from benchmirt.priors import Priors

__all__ = ["State", "report_frame", "settle_frame", "state_of", "transform", "update_hyper"]

LEAST_VARIANCE = 1e-4


class State(NamedTuple):
    """Independent Gaussians: m (models, K), v (models, K, K); mu (items, K + 1), s (items, K + 1, K + 1) over (a_1..a_K, d).

    The hyperparameters are kept as variances tau2 (K,), sigma2 and the mean mu_d of the intercepts.
    """

    m: Array
    v: Array
    mu: Array
    s: Array
    tau2: Array
    mu_d: Array
    sigma2: Array


def half_normal_mode(total: Array, count: Array, scale: float) -> Array:
    """Mode of a variance whose standard deviation has a half-normal prior, given a sum of squares over count terms."""
    mode = scale**2 / 2 * (jnp.sqrt(count**2 + 4 * total / scale**2) - count)
    return jnp.maximum(mode, LEAST_VARIANCE)


def update_hyper(state: State, item_weight: Array, priors: Priors) -> State:
    """Set tau, mu_d and sigma_d to their modes given the items' second moments."""
    k = state.m.shape[1]
    count = item_weight.sum()
    second = state.mu**2 + jnp.diagonal(state.s, axis1=1, axis2=2)
    tau2 = half_normal_mode(item_weight @ second[:, :k], count, priors.tau_scale)
    d = state.mu[:, k]
    mu_d = (item_weight @ d / state.sigma2) / (count / state.sigma2 + 1 / priors.intercept_scale**2)
    total = item_weight @ ((d - mu_d) ** 2 + state.s[:, k, k])
    sigma2 = half_normal_mode(total, count, priors.intercept_scale)
    return state._replace(tau2=tau2, mu_d=mu_d, sigma2=sigma2)


def transform(state: State, shift: Array, basis: Array) -> State:
    """Move to theta' = inv(basis) (theta - shift) with a' = basis' a and d' = d + a . shift: eta does not change."""
    k = state.m.shape[1]
    inverse = jnp.linalg.inv(basis)
    jacobian = jnp.zeros((k + 1, k + 1)).at[:k, :k].set(basis.T).at[k, :k].set(shift).at[k, k].set(1.0)
    return state._replace(
        m=(state.m - shift) @ inverse.T,
        v=_congruent(state.v, inverse),
        mu=state.mu @ jacobian.T,
        s=_congruent(state.s, jacobian),
    )


def _congruent(matrices: Array, transformation: Array) -> Array:
    """T A T' for many matrices A, (n, p, p), as one product with the Kronecker square of T."""
    flat = matrices.reshape(matrices.shape[0], -1)
    return (flat @ jnp.kron(transformation, transformation).T).reshape(matrices.shape)


def _total(weight: Array, matrices: Array) -> Array:
    """Weighted sum of many matrices (n, p, p)."""
    return (weight @ matrices.reshape(matrices.shape[0], -1)).reshape(matrices.shape[1:])


def _second_moment(state: State, item_weight: Array) -> Array:
    k = state.m.shape[1]
    a = state.mu[:, :k]
    return (a.T * item_weight) @ a + _total(item_weight, state.s)[:k, :k]


def _whitening(state: State, shift: Array, model_weight: Array, item_weight: Array) -> Array:
    """Basis that, after a shift, makes the mean of E[theta theta'] the identity and the items' second moments diagonal."""
    centered = state.m - shift
    spread = (centered.T * model_weight) @ centered + _total(model_weight, state.v)
    scale = jnp.linalg.cholesky(spread / model_weight.sum())
    _, rotation = jnp.linalg.eigh(scale.T @ _second_moment(state, item_weight) @ scale)
    rotation = rotation[:, ::-1]  # largest first
    return scale @ (rotation * jnp.where(jnp.diagonal(rotation) < 0, -1.0, 1.0))


def settle_frame(state: State, model_weight: Array, item_weight: Array) -> State:
    """Put location, scale and rotation where the priors want them (each in closed form).

    Location maximises the priors of theta and d together; scale makes the mean of E[theta theta'] the identity;
    rotation makes the items' second moments diagonal, largest first (Hadamard's inequality: then the profile over
    tau is at its maximum).
    """
    k = state.m.shape[1]
    models = model_weight.sum()
    a, d = state.mu[:, :k], state.mu[:, k]
    second = _second_moment(state, item_weight)
    crossed = (item_weight * (d - state.mu_d)) @ a + _total(item_weight, state.s)[:k, k]
    shift = jnp.linalg.solve(
        models * jnp.eye(k) + second / state.sigma2, model_weight @ state.m - crossed / state.sigma2
    )
    return transform(state, shift, _whitening(state, shift, model_weight, item_weight))


@partial(jax.jit, static_argnames="priors")
def report_frame(state: State, model_weight: Array, item_weight: Array, priors: Priors) -> State:
    """Move a posterior to the frame of records (see the module's text), hyperparameters included."""
    k = state.m.shape[1]
    models = model_weight.sum()
    center = model_weight @ state.m / models
    state = transform(state, center, _whitening(state, center, model_weight, item_weight))
    sign = jnp.where(state.mu[:, :k].sum(0) < 0, -1.0, 1.0)
    return update_hyper(transform(state, jnp.zeros(k), jnp.diag(sign)), item_weight, priors)


def state_of(record: FitRecord) -> State:
    """Return a record's posterior moments as a state to start from."""
    return State(
        m=jnp.asarray(record.theta_mean, jnp.float32),
        v=jnp.asarray(record.theta_cov, jnp.float32),
        mu=jnp.concatenate(
            [jnp.asarray(record.a_mean, jnp.float32), jnp.asarray(record.d_mean, jnp.float32)[:, None]],
            axis=1,
        ),
        s=jnp.asarray(record.item_cov, jnp.float32),
        tau2=jnp.asarray(record.tau, jnp.float32) ** 2,
        mu_d=jnp.float32(record.mu_d),
        sigma2=jnp.float32(record.sigma_d**2),
    )
