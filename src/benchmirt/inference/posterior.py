"""The Gaussian posterior that the engines share, and the frame in which records report it.

The likelihood knows only eta = a . theta + d. Location, scale and rotation of the abilities are conventions that the priors
prefer among; these functions move a posterior along them without changing eta. A record always reports the same frame:
abilities with mean 0 and second moment I over the models fitted (posterior variance included), discriminations with a diagonal
second moment, largest first, and signs under which each dimension's discriminations sum to a positive number. Abilities are
then in standard deviations of the models at hand.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt.inference.record import FitRecord, TestletPosterior
from benchmirt.likelihood import Testlets
from benchmirt.priors import Priors

__all__ = [
    "ItemGroups",
    "State",
    "TestletEffects",
    "discrimination_distance",
    "discrimination_weight",
    "effects_of",
    "half_normal_mode",
    "report_frame",
    "settle_frame",
    "state_of",
    "testlet_posterior",
    "transform",
    "update_hyper",
]

LEAST_VARIANCE = 1e-4
PRIOR_ITEMS = 10.0


class TestletEffects(NamedTuple):
    """Independent Gaussians of the testlets' effects: mean and variance (testlets, models), and the variance of their prior."""

    mean: Array
    variance: Array
    prior: Array


class ItemGroups(NamedTuple):
    """Gaussian priors of groups of items over (a_1..a_K, d): mean (groups, K + 1), covariance (groups, K + 1, K + 1)."""

    mean: Array
    covariance: Array


class State(NamedTuple):
    """Independent Gaussians: m (models, K), v (models, K, K); mu (items, K + 1), s (items, K + 1, K + 1) over (a_1..a_K, d).

    The hyperparameters are kept as variances tau2 (K,), sigma2 and the mean mu_d of the intercepts. Where items have testlets
    whose effects are modelled, or priors by group, these are there as well.
    """

    m: Array
    v: Array
    mu: Array
    s: Array
    tau2: Array
    mu_d: Array
    sigma2: Array
    testlets: TestletEffects | None = None
    groups: ItemGroups | None = None


def effects_of(state: State, index: Array | None) -> Testlets | None:
    """Return the mean effects of the testlets as the likelihood takes them, or None where there are none."""
    return None if state.testlets is None or index is None else Testlets(state.testlets.mean, index)


def half_normal_mode(total: Array, count: Array, scale: float) -> Array:
    """Mode of a variance whose standard deviation has a half-normal prior, given a sum of squares over count terms."""
    mode = scale**2 / 2 * (jnp.sqrt(count**2 + 4 * total / scale**2) - count)
    return jnp.maximum(mode, LEAST_VARIANCE)


def discrimination_weight(state: State, priors: Priors) -> Array:
    """Return by how much the prior precision of each item's discriminations exceeds that of the population, (items,) or (1,).

    A t distribution is a normal one whose precision varies with a Gamma distribution (1 on average); given the items' second
    moments that of an item has the mean that is returned. Under normal priors it is 1.
    """
    df, k = priors.discrimination_df, state.tau2.shape[0]
    if df is None:
        return jnp.ones(1)
    return (df + k) / (df + discrimination_distance(state))


def discrimination_distance(state: State) -> Array:
    """Return the expected squared length of each item's discriminations in standard deviations of the population, (items,)."""
    k = state.tau2.shape[0]
    second = state.mu[:, :k] ** 2 + jnp.diagonal(state.s, axis1=1, axis2=2)[:, :k]
    return (second / state.tau2).sum(1)


def update_hyper(state: State, item_weight: Array, priors: Priors, group: Array | None = None) -> State:
    """Set tau, mu_d and sigma_d to their modes given the items' second moments, and so the priors of groups (codes (items,))."""
    k = state.m.shape[1]
    count = item_weight.sum()
    second = state.mu**2 + jnp.diagonal(state.s, axis1=1, axis2=2)
    of_tau = item_weight * discrimination_weight(state, priors)
    tau2 = half_normal_mode(of_tau @ second[:, :k], count, priors.tau_scale)
    d = state.mu[:, k]
    mu_d = (item_weight @ d / state.sigma2) / (count / state.sigma2 + 1 / priors.intercept_scale**2)
    total = item_weight @ ((d - mu_d) ** 2 + state.s[:, k, k])
    sigma2 = half_normal_mode(total, count, priors.intercept_scale)
    state = state._replace(tau2=tau2, mu_d=mu_d, sigma2=sigma2)
    return state if group is None else _update_groups(state, item_weight, group)


def _update_groups(state: State, item_weight: Array, group: Array) -> State:
    """Set the groups' means and covariances to their modes; the one population of all items is worth PRIOR_ITEMS of each."""
    assert state.groups is not None
    size = state.mu.shape[1]
    number = state.groups.mean.shape[0]
    population = jnp.append(jnp.zeros(size - 1), state.mu_d)
    spread = jnp.diag(jnp.append(state.tau2, state.sigma2))

    def by_group(values: Array) -> Array:
        weighted = values * item_weight.reshape(-1, *[1] * (values.ndim - 1))
        return jax.ops.segment_sum(weighted, group, number)

    count = by_group(jnp.ones_like(item_weight))
    mean = (by_group(state.mu) + population) / (count + 1)[:, None]
    off = state.mu - mean[group]
    scatter = by_group(off[:, :, None] * off[:, None, :] + state.s)
    from_population = mean - population
    scatter += from_population[:, :, None] * from_population[:, None, :] + PRIOR_ITEMS * spread
    return state._replace(groups=ItemGroups(mean, scatter / (count + 1 + PRIOR_ITEMS)[:, None, None]))


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


def settle_frame(state: State, model_weight: Array, item_weight: Array, priors: Priors) -> State:
    """Put location, scale and rotation where the priors want them (each in closed form).

    Location maximises the priors of theta and d together; scale makes the mean of E[theta theta'] the identity;
    rotation makes the items' second moments, as the priors weigh them, diagonal, largest first (Hadamard's inequality: then
    the profile over tau is at its maximum).
    """
    k = state.m.shape[1]
    models = model_weight.sum()
    if state.groups is not None:  # whose means move along with the location
        shift = model_weight @ state.m / models
        return transform(state, shift, _whitening(state, shift, model_weight, item_weight))
    a, d = state.mu[:, :k], state.mu[:, k]
    second = _second_moment(state, item_weight)
    crossed = (item_weight * (d - state.mu_d)) @ a + _total(item_weight, state.s)[:k, k]
    shift = jnp.linalg.solve(
        models * jnp.eye(k) + second / state.sigma2, model_weight @ state.m - crossed / state.sigma2
    )
    of_tau = item_weight * discrimination_weight(state, priors)
    return transform(state, shift, _whitening(state, shift, model_weight, of_tau))


@partial(jax.jit, static_argnames="priors")
def report_frame(
    state: State, model_weight: Array, item_weight: Array, priors: Priors, group: Array | None = None
) -> State:
    """Move a posterior to the frame of records (see the module's text), hyperparameters included."""
    k = state.m.shape[1]
    models = model_weight.sum()
    center = model_weight @ state.m / models
    state = transform(state, center, _whitening(state, center, model_weight, item_weight))
    sign = jnp.where(state.mu[:, :k].sum(0) < 0, -1.0, 1.0)
    return update_hyper(transform(state, jnp.zeros(k), jnp.diag(sign)), item_weight, priors, group)


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
        testlets=None
        if record.testlets is None
        else TestletEffects(
            jnp.asarray(record.testlets.mean.T, jnp.float32),
            jnp.asarray(record.testlets.variance.T, jnp.float32),
            jnp.float32(record.testlets.sigma_t**2),
        ),
    )


def testlet_posterior(effects: TestletEffects, testlet: NDArray[np.integer[Any]]) -> TestletPosterior:
    """Return the testlets' effects as records have them; codes (items,) say which testlet an item belongs to, -1: none."""
    mean, variance, prior = (np.asarray(x) for x in effects)
    return TestletPosterior(mean.T, variance.T, float(np.sqrt(prior)), testlet)
