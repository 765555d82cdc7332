"""Deterministic variational EM: the workhorse of warm starts, resampling families and nulls.

The posterior is approximated by independent Gaussians, one of dimension K per model and one of dimension K + 1 per item
(over a_1..a_K and d), of dimension 1 per testlet and model where testlets are modelled, and the hyperparameters by their modes. A
sweep updates, in turn and in closed form, with the evidence
e_ij = g_ij + w_ij E[eta_ij] of each cell,

1. every item:   S_j^-1 = prior + sum_i w_ij E[x x'],  mu_j = S_j (prior + sum_i e_ij E[x]),   x = (theta, 1)
2. every model:  V_i^-1 = I + sum_j w_ij E[a a'],      m_i = V_i sum_j (e_ij E[a] - w_ij E[a d])
3. the hyperparameters tau, mu_d, sigma_d (modes given the items' second moments), or such of each group of items
4. the frame: location, scale and rotation, which the likelihood leaves free and the priors settle (parameter expansion,
   Liu, Rubin and Wu 1998). Without it the sweeps would creep along these directions.

with g and w the expected slope and curvature of a cell's log likelihood under its Gaussian logit: steps of Newton's kind towards
the maximum of the Gaussian bound itself (Opper and Archambeau 2009; Knowles and Minka 2011). The bound of Jaakkola and
Jordan (2000) would be simpler, but is so loose that discriminations shrink, and that on small tables a weak dimension had
better not be there. Full steps overshoot where few models answer saturated items: no mean moves by more than a few logits or a
standard deviation, and fits that do not settle soon go on with half steps of the items. The moments of a logit are products of
moments of models and items, so that a cell costs a dozen multiply-adds and a few transcendental functions. A sweep is one
pass over tiles of items (:mod:`benchmirt.tiles`): a tile's items are updated at once, and add what they say about the models.

Many replicates of one data set (bootstrap, folds, halves, leave-one-out) differ by weights only and share one compilation:
a model of weight 0 does not inform the items but is still scored, an item of weight 0 does not inform the abilities but is
still calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import lgamma, log
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt import tiles
from benchmirt.inference import check_dims
from benchmirt.inference.posterior import (
    ItemGroups,
    State,
    TestletEffects,
    discrimination_distance,
    discrimination_weight,
    half_normal_mode,
    report_frame,
    settle_frame,
    state_of,
    testlet_posterior,
    update_hyper,
)
from benchmirt.inference.record import FitError, FitRecord, TestletPosterior
from benchmirt.likelihood import (
    Asymptotes,
    Bends,
    asymptotes_of,
    bends_of,
    cell_log_likelihood,
    effect_by_item,
    effect_total,
    expected_score_and_curvature,
    predict,
    testlet_index,
)
from benchmirt.priors import Priors
from benchmirt.provenance import versions
from benchmirt.tiles import Tiled

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["Batch", "fit", "fit_many"]

FIRST_SWEEPS = 20
FIRST_TESTLET_VARIANCE = 0.25
LEAST_SWEEPS = 10
FULL_SWEEPS = 30
LONGEST_ITEM_STEP = 2.0  # logits
LONGEST_MODEL_STEP = 1.0  # standard deviations of the abilities
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
    testlets
        Effects of testlets, one per replicate, or empty.
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
    testlets: tuple[TestletPosterior, ...]
    elbo: NDArray[np.float64]
    sweeps: NDArray[np.int64]
    change: NDArray[np.float64]
    converged: NDArray[np.bool_]

    def predict(self, index: int, data: ResponseData) -> NDArray[np.float64]:
        """Probabilities of all cells from one replicate, averaged over its posterior, shape (models, items).

        Parameters
        ----------
        index
            Which replicate.
        data
            The data of the fit, whose asymptotes count.
        """
        return np.asarray(
            predict(
                self.theta[index],
                self.theta_cov[index],
                self.a[index],
                self.d[index],
                self.item_cov[index],
                data.floor,
                data.ceiling,
                self.testlets[index].by_item() if self.testlets else None,
            ),
            dtype=np.float64,
        )


def _pairs(size: int) -> list[tuple[int, int]]:
    """Places of the upper triangle of a symmetric matrix, row by row."""
    return [(p, q) for p in range(size) for q in range(p, size)]


def _places(size: int) -> dict[tuple[int, int], int]:
    """Row of every place of a symmetric matrix in its packed form."""
    return {place: row for row, (p, q) in enumerate(_pairs(size)) for place in ((p, q), (q, p))}


def _packed(matrices: Array) -> Array:
    """Upper triangles of symmetric matrices (n, p, p), one row per place: (p (p + 1) / 2, n)."""
    return jnp.stack([matrices[:, p, q] for p, q in _pairs(matrices.shape[-1])])


def _inverse(packed: Array, size: int) -> Array:
    """Invert many small symmetric positive definite matrices, packed (p (p + 1) / 2, n), by sweeps (Goodnight 1979).

    LAPACK is called once per matrix and would dominate at 30,000 items; a sweep runs over all of them at once.
    """
    place = _places(size)
    full = jnp.stack([packed[place[p, q]] for p in range(size) for q in range(size)])
    places = jnp.arange(size)[:, None, None]

    def sweep(k: Array, matrix: Array) -> Array:
        row, column = matrix[k], matrix[:, k, None]
        scaled = row / row[k]
        elsewhere = jnp.where(places == k, scaled, matrix - column * scaled)
        at_column = jnp.where(places == k, -1.0, column) / row[k]
        return jnp.where(places.transpose(1, 0, 2) == k, at_column, elsewhere)

    # a loop and not its steps one by one, which XLA would fuse: each place of the result would redo all that went before
    inverse = -jax.lax.fori_loop(0, size, sweep, full.reshape(size, size, -1))
    return jnp.stack([inverse[pair] for pair in _pairs(size)])


def _log_determinant(matrices: Array) -> Array:
    """Logarithms of the determinants of many small symmetric positive definite matrices (n, p, p): the pivots of elimination.

    LAPACK factors many matrices with all threads, for which devices that do so at the same time wait in vain.
    """
    size = matrices.shape[-1]
    full = jnp.moveaxis(matrices, 0, -1)

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, total = carry
        row = matrix[k]
        return matrix - matrix[:, k, None] * (row / row[k]), total + jnp.log(row[k])

    total: Array = jax.lax.fori_loop(0, size, eliminate, (full, jnp.zeros(matrices.shape[0])))[1]
    return total


def _unpacked(packed: Array, size: int) -> Array:
    """Full symmetric matrices (n, p, p) of packed ones."""
    place = _places(size)
    rows = [jnp.stack([packed[place[p, q]] for q in range(size)], -1) for p in range(size)]
    return jnp.stack(rows, -2)


class _Items(NamedTuple):
    """The items' Gaussians over (a_1..a_K, d) by parameter, so that a tile is a stretch of the last axis.

    Attributes
    ----------
    mean
        Shape (K + 1, items).
    covariance
        Packed, shape (P, items).
    """

    mean: Array
    covariance: Array


class _Moments(NamedTuple):
    """Moments of vectors: ``mean`` (K + 1, n), and ``second``, E[v v'], packed (P, n)."""

    mean: Array
    second: Array


def _items_of(state: State) -> _Items:
    return _Items(state.mu.T, _packed(state.s))


def _with_items(state: State, items: _Items) -> State:
    return state._replace(mu=items.mean.T, s=_unpacked(items.covariance, items.mean.shape[0]))


def _item_moments(items: _Items) -> _Moments:
    """Return the moments of b = (a, d)."""
    mean = items.mean
    products = jnp.stack([mean[p] * mean[q] for p, q in _pairs(mean.shape[0])])
    return _Moments(mean, products + items.covariance)


def _model_moments(state: State) -> _Moments:
    """Return the moments of x = (theta, 1)."""
    n, k = state.m.shape
    mean = jnp.concatenate([state.m, jnp.ones((n, 1))], axis=1).T
    second = [mean[p] * mean[q] + (state.v[:, p, q] if q < k else 0.0) for p, q in _pairs(k + 1)]
    return _Moments(mean, jnp.stack(second))


def _logit_moments(models: _Moments, items: _Moments) -> tuple[Array, Array]:
    """Mean and second moment of eta of every cell, (models, items); multiply-adds that fuse with what follows."""
    size = items.mean.shape[0]
    mean = jnp.broadcast_to(items.mean[-1], (models.mean.shape[1], items.mean.shape[1]))
    for p in range(size - 1):
        mean = mean + models.mean[p][:, None] * items.mean[p]
    square = jnp.zeros_like(mean)
    for row, (p, q) in enumerate(_pairs(size)):
        square = square + ((1.0 if p == q else 2.0) * models.second[row])[:, None] * items.second[row]
    return mean, square


class _Effects(NamedTuple):
    """What testlets add to a tile's logits: mean and variance, each (models, items)."""

    mean: Array
    variance: Array


def _evidence(
    responses: Array, models: _Moments, items: _Moments, bends: Bends | None, effects: _Effects | None
) -> tuple[Array, Array]:
    """Return what every cell contributes, both (models, items): its evidence g + w E[a . theta + d], and its curvature w.

    Both are 0 where a response is missing. They serve the items and the models of one sweep.
    """
    mean, square = _logit_moments(models, items)
    variance = jnp.maximum(square - mean**2, 0.0)
    whole = mean
    if effects is not None:
        whole, variance = mean + effects.mean, variance + effects.variance
    score, weight = expected_score_and_curvature(whole, variance, responses, bends)
    return score + weight * mean, weight


def _expected_log_likelihood(
    responses: Array,
    models: _Moments,
    items: _Moments,
    asymptotes: Asymptotes | None,
    effects: _Effects | None,
) -> Array:
    """Return the expected log likelihood of every cell under the Gaussian logits, (models, items), by quadrature."""
    mean, square = _logit_moments(models, items)
    variance = jnp.maximum(square - mean**2, 0.0)
    if effects is not None:
        mean, variance = mean + effects.mean, variance + effects.variance
    deviation = jnp.sqrt(variance)
    total = jnp.zeros_like(mean)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        at_node = cell_log_likelihood(mean + float(node) * deviation, responses, asymptotes)
        total = total + float(weight) * at_node
    return total


class _Prior(NamedTuple):
    """Gaussian prior of (a_1..a_K, d), by item or one for all (the last axis 1).

    Attributes
    ----------
    precision
        Packed, shape (P, items).
    linear
        The precision times the mean, shape (K + 1, items).
    """

    precision: Array
    linear: Array


def _prior_of_all(state: State, weight: Array) -> _Prior:
    """Return the prior of the one population; the precisions of discriminations are so many times (items,) as large, or (1,)."""
    k, nothing = state.tau2.shape[0], jnp.zeros_like(weight)
    scale = [*(weight / state.tau2[p] for p in range(k)), nothing + 1 / state.sigma2]
    packed = [scale[p] if p == q else nothing for p, q in _pairs(k + 1)]
    return _Prior(jnp.stack(packed), jnp.stack([nothing] * k + [nothing + state.mu_d / state.sigma2]))


def _prior_by_group(groups: ItemGroups, group: Array) -> _Prior:
    """Return every item's prior, which is its group's."""
    size = groups.mean.shape[1]
    precision = _inverse(_packed(groups.covariance), size)
    place = _places(size)
    linear = [sum(precision[place[p, q]] * groups.mean[:, q] for q in range(size)) for p in range(size)]
    return _Prior(precision[:, group], jnp.stack(linear)[:, group])


def _model_rows(second: Array, dims: int) -> Array:
    """Pick from the packed moments of items E[a a'], packed, and then E[a d]: (K (K + 1) / 2 + K, n)."""
    pairs = list(enumerate(_pairs(dims + 1)))
    both = [second[row] for row, (_, q) in pairs if q < dims]
    return jnp.stack(both + [second[row] for row, (p, q) in pairs if p < dims and q == dims])


def _model_covariances(precision: Array, dims: int) -> Array:
    """Posterior covariances of the abilities (models, K, K) from the items' summed precisions (models, K (K + 1) / 2)."""
    prior = jnp.array([1.0 if p == q else 0.0 for p, q in _pairs(dims)])
    return _unpacked(_inverse((precision + prior).T, dims), dims)


def _bounded(step: Array, longest: float, axis: int) -> Array:
    """Shorten steps (vectors along ``axis``) to at most ``longest``."""
    length = jnp.sqrt((step**2).sum(axis, keepdims=True))
    return step * (longest / jnp.maximum(length, longest))


def _proper(precision: Array, size: int) -> Array:
    """Give the items that fill the last tile up, which come with precisions of 0, others: no result of theirs may be NaN."""
    identity = jnp.array([[1.0] if p == q else [0.0] for p, q in _pairs(size)])
    return jnp.where(precision[0] > 0, precision, identity)


class _PerItem(NamedTuple):
    """What a pass needs of each item, the items along the last axis; see :class:`_Facts`."""

    gaussians: _Items
    limits: Bends | Asymptotes | None
    weight: Array
    testlet: Array | None


class _Shared(NamedTuple):
    """What a pass needs for every tile: the models' moments and weights, and testlets' effects."""

    models: _Moments
    model_weight: Array
    testlets: TestletEffects | None


class _Facts(NamedTuple):
    """What a fit knows beside the responses.

    Attributes
    ----------
    asymptotes
        Known asymptotes, or None.
    model_weight, item_weight
        Shapes (models,) and (items,).
    testlet, group
        Codes of the items' testlets and groups, shape (items,), or None where they are not modelled.
    """

    asymptotes: Asymptotes | None
    model_weight: Array
    item_weight: Array
    testlet: Array | None
    group: Array | None


def _effects(testlets: TestletEffects | None, testlet: Array | None) -> _Effects | None:
    """Pick the effects of a tile's items."""
    if testlets is None or testlet is None:
        return None
    return _Effects(effect_by_item(testlets.mean, testlet), effect_by_item(testlets.variance, testlet))


def _shared(state: State, facts: _Facts) -> _Shared:
    return _Shared(_model_moments(state), facts.model_weight, state.testlets)


def _per_item(state: State, facts: _Facts, limits: Bends | Asymptotes | None) -> _PerItem:
    return _PerItem(_items_of(state), limits, facts.item_weight, facts.testlet)


def _prior(state: State, facts: _Facts, priors: Priors) -> _Prior:
    """Return every item's prior: its group's, or that of the one population."""
    if facts.group is not None and state.groups is not None:
        return _prior_by_group(state.groups, facts.group)
    weight = discrimination_weight(state, priors)
    return _prior_of_all(state, jnp.broadcast_to(weight, facts.item_weight.shape))


def _update(state: State, tiled: Tiled, facts: _Facts, share: Array, priors: Priors) -> State:
    """Move the Gaussians of items, then of models and testlets, towards the best ones for the others, in one pass over tiles.

    Items go the ``share`` of the way.
    """
    k = state.m.shape[1]
    place = _places(k + 1)

    def of_tile(tile: tiles.Tile, per_item: tuple[_PerItem, _Prior], shared: _Shared) -> tuple[Any, _Items]:
        items, prior = per_item
        old = items.gaussians
        effects = _effects(shared.testlets, items.testlet)
        evidence, weight = tile.cells(_evidence, shared.models, _item_moments(old), items.limits, effects)
        precision = (shared.models.second * shared.model_weight) @ weight + _proper(prior.precision, k + 1)
        covariance = _inverse(precision, k + 1)
        linear = (shared.models.mean * shared.model_weight) @ evidence + prior.linear
        best = [sum(covariance[place[p, q]] * linear[q] for q in range(k + 1)) for p in range(k + 1)]
        mean = old.mean + _bounded(share * (jnp.stack(best) - old.mean), LONGEST_ITEM_STEP, 0)
        new = _Items(mean, old.covariance + share * (covariance - old.covariance))
        moments = _item_moments(new)
        rows = _model_rows(moments.second, k) * items.weight
        sums = weight @ rows.T, evidence @ (new.mean[:k] * items.weight).T
        if shared.testlets is None or items.testlet is None or effects is None:
            return (*sums, None), new
        # what the new items leave of the evidence
        left = (evidence - weight * (_logit_moments(shared.models, moments)[0] - effects.mean)) * items.weight
        number = shared.testlets.mean.shape[0]
        of_testlets = [effect_total(x, items.testlet, number) for x in (weight * items.weight, left)]
        return (*sums, of_testlets), new

    per_item = _per_item(state, facts, bends_of(facts.asymptotes)), _prior(state, facts, priors)
    (from_weight, from_evidence, of_testlets), items = tiles.sweep(
        of_tile, tiled, per_item, _shared(state, facts)
    )
    v = _model_covariances(from_weight[:, :-k], k)
    best = jnp.einsum("npq,nq->np", v, from_evidence - from_weight[:, -k:])
    m = state.m + _bounded(best - state.m, LONGEST_MODEL_STEP, 1)
    state = _with_items(state, items)._replace(m=m, v=v)
    return state if of_testlets is None else _with_effects(state, facts.model_weight, priors, *of_testlets)


def _with_effects(state: State, model_weight: Array, priors: Priors, weight: Array, evidence: Array) -> State:
    """Move the testlets' effects to where their summed weights and evidence (testlets, models) put them; update their prior."""
    assert state.testlets is not None
    variance = 1.0 / (weight + 1.0 / state.testlets.prior)
    mean = variance * evidence
    total = ((mean**2 + variance) @ model_weight).sum()
    count = model_weight.sum() * mean.shape[0]
    prior = half_normal_mode(total, count, priors.testlet_scale)
    return state._replace(testlets=TestletEffects(mean, variance, prior))


@partial(jax.jit, static_argnames="priors")
def _elbo(state: State, tiled: Tiled, facts: _Facts, priors: Priors) -> Array:
    """Evidence lower bound, with the hyperparameters at their modes."""
    k = state.m.shape[1]

    def of_tile(tile: tiles.Tile, items: _PerItem, shared: _Shared) -> tuple[Array, None]:
        effects = _effects(shared.testlets, items.testlet)
        moments = _item_moments(items.gaussians)
        cells = tile.cells(_expected_log_likelihood, shared.models, moments, items.limits, effects)
        return (shared.model_weight @ cells) @ items.weight, None

    per_item = _per_item(state, facts, facts.asymptotes)
    fit = tiles.sweep(of_tile, tiled, per_item, _shared(state, facts))[0]
    theta_terms = _log_determinant(state.v) + k - (state.m**2).sum(1) - jnp.trace(state.v, axis1=1, axis2=2)
    hyper = -(
        state.tau2.sum() / priors.tau_scale**2 + (state.mu_d**2 + state.sigma2) / priors.intercept_scale**2
    )
    if state.testlets is not None:
        mean, variance, prior = state.testlets
        terms = (jnp.log(variance / prior) + 1 - (mean**2 + variance) / prior).sum(0)
        theta_terms += terms
        hyper -= prior / priors.testlet_scale**2
    item_terms = _item_terms(state, facts, priors)
    return fit + (facts.model_weight @ theta_terms + facts.item_weight @ item_terms + hyper) / 2


def _item_terms(state: State, facts: _Facts, priors: Priors) -> Array:
    """Twice the part of each item, (items,), in the evidence lower bound besides the likelihood."""
    entropy = _log_determinant(state.s) + state.mu.shape[1]
    if facts.group is None or state.groups is None:
        k = state.tau2.shape[0]
        second = (state.mu[:, k] - state.mu_d) ** 2 + state.s[:, k, k]
        scales = jnp.log(state.tau2).sum() + jnp.log(state.sigma2)
        return entropy - scales - _tail(discrimination_distance(state), k, priors) - second / state.sigma2
    off = state.mu - state.groups.mean[facts.group]
    precision = jnp.linalg.inv(state.groups.covariance)[facts.group]
    second = off[:, :, None] * off[:, None, :] + state.s
    size = jnp.linalg.slogdet(state.groups.covariance)[1]
    return entropy - size[facts.group] - (precision * second).sum((1, 2))


def _tail(distance: Array, dims: int, priors: Priors) -> Array:
    """Return minus twice the log prior of discriminations at a squared distance, but for what a normal one has at 0."""
    df = priors.discrimination_df
    if df is None:
        return distance
    constant = lgamma((df + dims) / 2) - lgamma(df / 2) - dims / 2 * log(df / 2)
    return (df + dims) * jnp.log1p(distance / df) - 2 * constant


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


def _cold_state(theta: Array, items: int, testlets: int, groups: int) -> State:
    n, k = theta.shape
    return State(
        m=theta,
        v=jnp.tile(0.1 * jnp.eye(k), (n, 1, 1)),
        mu=jnp.zeros((items, k + 1)),
        s=jnp.tile(0.1 * jnp.eye(k + 1), (items, 1, 1)),
        tau2=jnp.ones(k),
        mu_d=jnp.float32(0.0),
        sigma2=jnp.float32(2.0),
        testlets=TestletEffects(
            jnp.zeros((testlets, n)), jnp.full((testlets, n), 0.1), jnp.float32(FIRST_TESTLET_VARIANCE)
        )
        if testlets
        else None,
        groups=ItemGroups(
            jnp.zeros((groups, k + 1)), jnp.tile(jnp.diag(jnp.append(jnp.ones(k), 2.0)), (groups, 1, 1))
        )
        if groups
        else None,
    )


@partial(jax.jit, static_argnames="dims")
def _start_abilities(
    responses: Array, model_weight: Array, item_weight: Array, key: Array | None, *, dims: int
) -> Array:
    """Abilities to start from (models, dims): random ones if there is a key, else the spectral ones."""
    if key is not None:
        return jax.random.normal(key, (responses.shape[0], dims))
    return _spectral_start(responses, dims, model_weight, item_weight)


class _Limits(NamedTuple):
    """When sweeps end: sweeps with a wide tau to begin with, most sweeps, and the change of the abilities that ends them."""

    first_sweeps: Array
    sweeps: Array
    tolerance: Array


@partial(jax.jit, static_argnames="priors")
def _solve(
    tiled: Tiled, facts: _Facts, start: State, limits: _Limits, *, priors: Priors
) -> tuple[State, Array, Array]:
    """Sweep until the abilities rest; returns the state, the number of sweeps and the last change.

    Cold and warm starts differ by values only, so that one compilation serves both.
    """
    return tiles.over_devices(partial(_sweeps, priors=priors), tiled, facts, start, limits)


def _sweeps(
    tiled: Tiled, facts: _Facts, start: State, limits: _Limits, *, priors: Priors
) -> tuple[State, Array, Array]:
    def unfinished(carry: tuple[State, Array, Array]) -> Array:
        _, count, change = carry
        unsettled = (change > limits.tolerance) | (count < LEAST_SWEEPS)
        return (count < limits.sweeps) & unsettled & jnp.isfinite(change)

    def advance(carry: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        old, count, _ = carry
        share = jnp.where(count < FULL_SWEEPS, 1.0, 0.5)
        new = _update(old, tiled, facts, share, priors)
        new = settle_frame(new, facts.model_weight, facts.item_weight, priors)
        hyper = update_hyper(new, facts.item_weight, priors, facts.group)
        # at first tau stays wide: a dimension that has not been found yet would have its scale shut to 0 for good
        new = hyper._replace(tau2=jnp.where(count < 0, new.tau2, hyper.tau2))
        # in logits of a typical item, so that a spare dimension, whose abilities mean nothing, has no say
        change = jnp.sqrt(((new.m - old.m) ** 2 @ new.tau2).mean())
        return new, count + 1, change

    first = (start, -limits.first_sweeps, jnp.float32(np.finfo(np.float32).max))
    return jax.lax.while_loop(unfinished, advance, first)


def fit_many(
    data: ResponseData,
    dims: int,
    *,
    model_weights: NDArray[Any] | None = None,
    item_weights: NDArray[Any] | None = None,
    reveal: NDArray[np.bool_] | None = None,
    group: NDArray[np.integer[Any]] | None = None,
    start: FitRecord | None = None,
    bound: bool = True,
    seed: int = 0,
    sweeps: int = 2000,
    tolerance: float = 1e-3,
    priors: Priors | None = None,
    devices: Sequence[jax.Device] = (),
) -> Batch:
    """Fit R replicates of one data set that differ by weights or by the cells they may see.

    Parameters
    ----------
    data
        Responses (models, items) with their asymptotes; effects of testlets are modelled where items have any.
    dims
        Number of dimensions K, below the number of models.
    model_weights
        Shape (R, models), not negative; counts for a bootstrap, 0 for a model that is scored only. Default: one
        replicate of ones.
    item_weights
        Shape (R, items); 0 for an item that is calibrated only. Default: ones.
    reveal
        Shape (R, models, items): cells that a replicate may see; the others are treated as missing.
    group
        Codes of groups of items, shape (items,), from 0: each has a Gaussian prior of its own, with any mean and covariance,
        in the place of the one population's. For predictions only: dimensions found so were told which items belong together.
    start
        A fit of the same models, items and dims to start from (a warm start); else the spectral start for seed 0 and
        random abilities for other seeds.
    bound
        Whether the evidence lower bound is computed, which costs as much as a few sweeps.
    seed
        Seed of the random starts, one per replicate.
    sweeps, tolerance
        Most sweeps, and the root mean square change of the abilities, in logits of a typical item, that ends them.
    priors
        Scales of the hyperpriors.
    devices
        Devices that share the items, of this process or of several; by default the first one does it all.

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

    def filled(weights: NDArray[Any] | None, size: int) -> NDArray[np.float32]:
        if weights is None:
            return np.ones((replicates, size), np.float32)
        if weights.shape != (replicates, size):
            raise ValueError(f"weights have shape {weights.shape}, expected {(replicates, size)}")
        return np.asarray(weights, np.float32)

    priors = priors or Priors()
    responses = jnp.asarray(data.responses, jnp.int8)
    of_models, of_items = filled(model_weights, models), filled(item_weights, items)
    keys = jax.random.split(jax.random.key(seed), replicates) if seed else None
    mesh = tiles.mesh_of(devices)
    tiled = tiles.split(data.responses, mesh)
    of_all = _Facts(
        asymptotes=asymptotes_of(data.floor, data.ceiling),
        model_weight=jnp.ones(models),
        item_weight=jnp.ones(items),
        testlet=testlet_index(data.testlet),
        group=None if group is None else jnp.asarray(group, jnp.int32),
    )
    groups = 0 if group is None else int(group.max()) + 1
    warm = None if start is None else state_of(start)
    cold = 0 if start is not None else FIRST_SWEEPS
    solved = []
    for index in range(replicates):
        weights = jnp.asarray(of_models[index]), jnp.asarray(of_items[index])
        facts = of_all._replace(model_weight=weights[0], item_weight=weights[1])
        shown = responses
        if reveal is not None:
            shown = jnp.where(jnp.asarray(reveal[index]), responses, jnp.int8(-1))
            tiled = tiles.split(shown, mesh)
        state = warm
        if state is None:
            key = None if keys is None else keys[index]
            theta = _start_abilities(shown, *weights, key, dims=dims)
            state = _cold_state(theta, items, data.testlets, groups)
        limits = _Limits(jnp.int32(cold), jnp.int32(sweeps), jnp.float32(tolerance))
        state, count, change = _solve(tiled, facts, state, limits, priors=priors)
        elbo = _elbo(state, tiled, facts, priors) if bound else np.float32(np.nan)
        state = report_frame(state, *weights, priors, facts.group)
        solved.append(jax.tree.map(np.asarray, (state, elbo, count, change)))
    state, elbo, count, change = jax.tree.map(lambda *x: np.stack(x), *solved)
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
        testlets=tuple(
            testlet_posterior(TestletEffects(*effects), data.testlet)
            for effects in zip(*(state.testlets or ()), strict=True)
        ),
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
    sweeps: int = 2000,
    tolerance: float = 1e-3,
    priors: Priors | None = None,
    devices: Sequence[jax.Device] = (),
) -> FitRecord:
    """Fit one data set; parameters, errors and frame as in :func:`fit_many`."""
    priors = priors or Priors()
    batch = fit_many(
        data,
        dims,
        start=start,
        seed=seed,
        sweeps=sweeps,
        tolerance=tolerance,
        priors=priors,
        devices=devices,
    )
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
        testlets=batch.testlets[0] if batch.testlets else None,
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
