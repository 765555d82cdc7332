"""The likelihood of binary responses, written once and used by every engine.

A response of model ``i`` to item ``j`` is right with probability::

    P(y_ij = 1) = c_j + (u_j - c_j) * sigmoid(eta_ij),    eta_ij = a_j . theta_i + d_j [+ gamma_i,t(j)]

with ``c`` the lower asymptote (chance floor) and ``u`` the upper one (Lord 1980; Barton and Lord 1981), and, where asked for,
the effect ``gamma`` of the item's testlet ``t`` on the model (Bradlow, Wainer and Wang 1999).
``c = 0, u = 1`` is the two-parameter logistic model in its multidimensional, compensatory form (Reckase 2009).
Responses are int8: 1 right, 0 wrong, -1 missing; a missing cell contributes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from benchmirt import tiles
from benchmirt.tiles import Tiled

__all__ = [
    "Asymptotes",
    "Bends",
    "Testlets",
    "bends_of",
    "cell_log_likelihood",
    "expected_logistic",
    "expected_score_and_curvature",
    "item_log_likelihood",
    "log_likelihood",
    "moderated",
    "predict",
    "probability",
]


class Asymptotes(NamedTuple):
    """Known lower and upper asymptotes of every item, each of shape (items,) in [0, 1], ``floor < ceiling``."""

    floor: Array
    ceiling: Array


class Testlets(NamedTuple):
    """What items of one testlet share beyond the abilities.

    Attributes
    ----------
    effect
        Effect of each testlet on each model, logits, shape (testlets, models).
    of_item
        Which testlet an item belongs to, int32, shape (items,); the number of testlets where it belongs to none.
    """

    effect: Array
    of_item: Array


def asymptotes_of(floor: ArrayLike, ceiling: ArrayLike) -> Asymptotes | None:
    """Return the asymptotes, or None where every item is a plain 2PL item (which is faster to evaluate).

    Parameters
    ----------
    floor, ceiling
        Lower and upper asymptotes, shape (items,), in [0, 1].

    Raises
    ------
    ValueError
        If a floor is not below its ceiling or either leaves [0, 1].
    """
    low, high = np.asarray(floor, np.float32), np.asarray(ceiling, np.float32)
    if not (np.all(low >= 0) and np.all(high <= 1) and np.all(low < high)):
        raise ValueError("asymptotes must satisfy 0 <= floor < ceiling <= 1 for every item")
    if np.all(low == 0) and np.all(high == 1):
        return None
    return Asymptotes(jnp.asarray(low), jnp.asarray(high))


def testlet_index(testlet: ArrayLike) -> Array | None:
    """Return the index of :class:`Testlets` from codes with -1 for none, shape (items,), or None if no item has a testlet."""
    codes = np.asarray(testlet)
    number = int(codes.max(initial=-1)) + 1
    return jnp.asarray(np.where(codes < 0, number, codes), jnp.int32) if number else None


def probability(eta: ArrayLike, floor: ArrayLike = 0.0, ceiling: ArrayLike = 1.0) -> Array:
    """Probability of a right response at the logits ``eta``, shape (models, items), values in [floor, ceiling]."""
    low = jnp.asarray(floor)
    return low + (jnp.asarray(ceiling) - low) * jax.nn.sigmoid(jnp.asarray(eta))


# log1p(t) / t on [0, 1] and on [1/sqrt(2) - 1, sqrt(2) - 1], by Chebyshev interpolation: within 3e-7, as good as float32 is
_ON_UNIT = (
    0.999999971,
    -0.499995015,
    0.333192713,
    -0.248443699,
    0.191114311,
    -0.136747697,
    0.078361668,
    -0.0295885074,
    0.0052534578,
)
_ON_OCTAVE = (
    0.999999974,
    -0.49999987,
    0.333341833,
    -0.250021535,
    0.199569775,
    -0.16560696,
    0.149490955,
    -0.143773306,
    0.0874394535,
)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


@jax.custom_jvp
def _log1p(x: Array) -> Array:
    """log(1 + x) for x in [0, 1]. XLA's own logarithm takes longer than all else that a cell needs."""
    if x.dtype != jnp.float32:
        return jnp.log1p(x)
    return x * _polynomial(x, _ON_UNIT)


@_log1p.defjvp
def _log1p_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _log1p(primals[0]), tangents[0] / (1.0 + primals[0])


@jax.custom_jvp
def _log(x: Array) -> Array:
    """log(x) for normal positive numbers, by exponent and mantissa."""
    if x.dtype != jnp.float32:
        return jnp.log(x)
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    exponent = (bits - jnp.int32(0x3F3504F3)) >> 23  # so that the mantissa lies around 1
    mantissa = jax.lax.bitcast_convert_type(bits - (exponent << 23), jnp.float32) - 1.0
    return exponent * jnp.float32(np.log(2.0)) + mantissa * _polynomial(mantissa, _ON_OCTAVE)


@_log.defjvp
def _log_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _log(primals[0]), tangents[0] / primals[0]


class _Outcome(NamedTuple):
    """Parts of the likelihood of every cell, each (models, items).

    ``log_likelihood``; ``responsibility``, the share of the outcome's probability that passes through the logistic part;
    ``complement``, 1 - sigmoid(z), with z = eta for a right response and -eta for a wrong one.
    """

    log_likelihood: Array
    responsibility: Array
    complement: Array


def _outcome(eta: Array, responses: Array, asymptotes: Asymptotes | None) -> _Outcome:
    """Turn right and wrong into one case, log(low + (high - low) sigmoid(z)); one exp, one log and at most two divisions."""
    right = responses == 1
    z = jnp.where(right, eta, -eta)
    shrink = jnp.exp(-jnp.abs(z))
    larger = 1.0 / (1.0 + shrink)
    above = z >= 0
    complement = jnp.where(above, shrink, 1.0) * larger
    if asymptotes is None:
        return _Outcome(jnp.minimum(z, 0.0) - _log1p(shrink), jnp.ones_like(z), complement)
    low = jnp.where(right, asymptotes.floor, 1.0 - asymptotes.ceiling)
    high = jnp.where(right, asymptotes.ceiling, 1.0 - asymptotes.floor)
    through = (high - low) * jnp.where(above, 1.0, shrink) * larger
    # without a floor the sum underflows below z = -88, where its logarithm is z + log(high)
    plain = low == 0.0
    total = jnp.where(plain, high * larger, low + through)
    log_likelihood = _log(total) + jnp.where(plain, jnp.minimum(z, 0.0), 0.0)
    return _Outcome(log_likelihood, jnp.where(plain, 1.0, through / total), complement)


def _score(outcome: _Outcome, responses: Array) -> Array:
    """First derivative of each cell's log likelihood in eta; 0 where the response is missing."""
    sign = jnp.where(responses == 1, 1.0, jnp.where(responses == 0, -1.0, 0.0))
    return sign * outcome.responsibility * outcome.complement


def cell_log_likelihood(eta: ArrayLike, responses: ArrayLike, asymptotes: Asymptotes | None = None) -> Array:
    """Log likelihood of every cell, shape (models, items); 0 where the response is missing.

    Parameters
    ----------
    eta
        Logits, shape (models, items).
    responses
        1, 0 or -1 (missing), shape (models, items).
    asymptotes
        Known asymptotes, or None for the 2PL.
    """
    y = jnp.asarray(responses)
    return jnp.where(y >= 0, _outcome(jnp.asarray(eta), y, asymptotes).log_likelihood, 0.0)


class Bends(NamedTuple):
    """Where the curves of right and wrong responses bend a second time, in logits from the first; each of shape (items,).

    With asymptotes c and u, log P = softplus(eta + right) - softplus(eta) + log c with right = log(u / c), and
    log(1 - P) = softplus(eta + wrong) - softplus(eta) + log(1 - c) with wrong = log((1 - u) / (1 - c)). Without a floor the
    one is infinite, without a ceiling the other is minus infinity.
    """

    right: Array
    wrong: Array


def bends_of(asymptotes: Asymptotes | None) -> Bends | None:
    """Return the bends of every item's curves, or None for the 2PL."""
    if asymptotes is None:
        return None
    floor, ceiling = asymptotes
    return Bends(jnp.log(ceiling) - jnp.log(floor), jnp.log1p(-ceiling) - jnp.log1p(-floor))


# the logistic function as a mixture of normal ones: weights and scales of Monahan and Stefanski (1992), within 5e-4
_MIXTURE = ((0.56442, 0.76862), (0.43558, 0.43525))


def expected_logistic(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return E[sigmoid(eta)], within 5e-4, and E[sigmoid'(eta)], within 2e-3, under a Gaussian eta; of the inputs' shape.

    The logistic function as a mixture of two normal distribution functions, whose Gaussian averages are known (Monahan and
    Stefanski 1992). Other than with one of them, as MacKay has it (:func:`moderated`), the tails are right as well: on
    what they say rests where a response that surprises nobody stops to pull.
    """
    value, slope = jnp.zeros_like(mean), jnp.zeros_like(mean)
    for weight, scale in _MIXTURE:
        steepness = scale * jax.lax.rsqrt(1.0 + scale**2 * variance)
        z = steepness * mean
        value = value + weight * 0.5 * (1.0 + jax.lax.erf(z * np.float32(np.sqrt(0.5))))
        slope = slope + (weight / np.sqrt(2 * np.pi)) * steepness * jnp.exp(-0.5 * z * z)
    return value, slope


def expected_score_and_curvature(
    mean: Array, variance: Array, responses: Array, bends: Bends | None
) -> tuple[Array, Array]:
    """Return the expected slope of each cell's log likelihood in eta, and its expected curvature (minus the second derivative).

    A slope is a difference of two logistic functions, one at each bend. A curvature below 0, which a right response far below the
    floor has, counts as 0. Both have shape (models, items) and are 0 where the response is missing.

    Parameters
    ----------
    mean, variance
        Of the Gaussian logits, shape (models, items).
    responses
        1, 0 or -1 (missing), shape (models, items).
    bends
        Of the items' curves, or None for the 2PL.
    """
    passed, slope = expected_logistic(mean, variance)
    right = responses == 1
    if bends is None:
        score, curvature = right - passed, slope
    else:
        second, second_slope = expected_logistic(mean + jnp.where(right, bends.right, bends.wrong), variance)
        score, curvature = second - passed, jnp.maximum(slope - second_slope, 0.0)
    seen = responses >= 0
    return jnp.where(seen, score, 0.0), jnp.where(seen, curvature, 0.0)


def effect_by_item(effect: Array, index: Array) -> Array:
    """Return the testlets' effects (testlets, models) item by item, (models, items); 0 for an item without a testlet."""
    return effect.at[index].get(mode="fill", fill_value=0.0).T


def effect_total(per_cell: Array, index: Array, testlets: int) -> Array:
    """Add up (models, items) by testlet, (testlets, models); items without a testlet are left out."""
    return jnp.zeros((testlets, per_cell.shape[0])).at[index].add(per_cell.T, mode="drop")


def _logits(theta: Array, a: Array, d: Array, testlets: Testlets | None) -> Array:
    """Logits (models, items) from theta (models, dims) and, by dimension, a (dims, items).

    Multiply-adds that fuse with what follows; a matrix product would write the logits out and read them again.
    """
    eta = jnp.broadcast_to(d, (theta.shape[0], d.shape[0]))
    for k in range(theta.shape[1]):
        eta = eta + theta[:, k : k + 1] * a[k]
    return eta if testlets is None else eta + effect_by_item(*testlets)


class _Items(NamedTuple):
    """What the likelihood needs of the items, their last axis: a (dims, items), d (items,), asymptotes, testlet (items,)."""

    a: Array
    d: Array
    asymptotes: Asymptotes | None
    testlet: Array | None


class _Models(NamedTuple):
    """What it needs of the models: theta (models, dims) and the testlets' effects (testlets, models)."""

    theta: Array
    effect: Array | None


def _parts(
    theta: Array, a: Array, d: Array, asymptotes: Asymptotes | None, testlets: Testlets | None
) -> tuple[_Items, _Models]:
    effect, index = (None, None) if testlets is None else testlets
    return _Items(a.T, d, asymptotes, index), _Models(theta, effect)


def _logits_of(items: _Items, models: _Models) -> Array:
    testlets = (
        None if items.testlet is None or models.effect is None else Testlets(models.effect, items.testlet)
    )
    return _logits(models.theta, items.a, items.d, testlets)


def item_log_likelihood(
    theta: Array,
    a: Array,
    d: Array,
    responses: ArrayLike | Tiled,
    asymptotes: Asymptotes | None = None,
    testlets: Testlets | None = None,
) -> Array:
    """Log likelihood of each item, summed over models, shape (items,); arguments as in :func:`log_likelihood`."""

    def of_each_cell(y: Array, items: _Items, models: _Models) -> Array:
        return cell_log_likelihood(_logits_of(items, models), y, items.asymptotes)

    def of_tile(tile: tiles.Tile, items: _Items, models: _Models) -> tuple[None, Array]:
        return None, tile.cells(of_each_cell, items, models).sum(axis=0)

    total: Array = tiles.sweep(of_tile, tiles.split(responses), *_parts(theta, a, d, asymptotes, testlets))[1]
    return total


@jax.custom_vjp
def log_likelihood(
    theta: Array,
    a: Array,
    d: Array,
    responses: ArrayLike | Tiled,
    asymptotes: Asymptotes | None = None,
    reference: Array | float = 0.0,
    testlets: Testlets | None = None,
) -> Array:
    """Log likelihood of all responses less a reference; value and gradient in one pass over tiles of items.

    The gradient is written by hand: d/d eta = +-(1 - sigmoid(z)) times the responsibility, so that the reverse
    pass is two matrix products instead of a second sweep of transcendental functions.

    Parameters
    ----------
    theta
        Abilities, shape (models, dims).
    a
        Discriminations, shape (items, dims).
    d
        Intercepts, shape (items,).
    responses
        1, 0 or -1 (missing), int8, shape (models, items), or the same by tile, which loops should be given.
    asymptotes
        Known asymptotes, or None for the 2PL.
    reference
        Constant subtracted from each item's log likelihood, shape (items,) or one for all: totals near 0 keep the
        resolution that float32 loses near 1e6.
    testlets
        Effects of testlets, or None.
    """
    return (item_log_likelihood(theta, a, d, responses, asymptotes, testlets) - reference).sum()


def _forward(
    theta: Array,
    a: Array,
    d: Array,
    responses: ArrayLike | Tiled,
    asymptotes: Asymptotes | None,
    reference: Array | float,
    testlets: Testlets | None,
) -> tuple[Array, tuple[Array, Array, Array, Array | None]]:
    models, dims = theta.shape
    x = jnp.concatenate([theta, jnp.ones((models, 1))], axis=1).T

    def of_each_cell(y: Array, items: _Items, models: _Models) -> tuple[Array, Array]:
        outcome = _outcome(_logits_of(items, models), y, items.asymptotes)
        return jnp.where(y >= 0, outcome.log_likelihood, 0.0), _score(outcome, y)

    def of_tile(tile: tiles.Tile, items: _Items, shared: tuple[_Models, Array]) -> tuple[Any, Any]:
        of_models, x = shared
        log_likelihood, score = tile.cells(of_each_cell, items, of_models)
        effect = of_models.effect
        by_testlet = (
            None
            if effect is None or items.testlet is None
            else effect_total(score, items.testlet, effect.shape[0])
        )
        # a product and not a sum, which XLA would not vectorise
        return (score @ items.a.T, by_testlet), (jnp.ones(models) @ log_likelihood, x @ score)

    of_items, of_models = _parts(theta, a, d, asymptotes, testlets)
    (by_model, by_testlet), (total, by_item) = tiles.sweep(
        of_tile, tiles.split(responses), of_items, (of_models, x)
    )
    return (total - reference).sum(), (by_model, by_item[:dims].T, by_item[dims], by_testlet)


def _backward(slopes: tuple[Array, Array, Array, Array | None], upstream: Array) -> tuple[Any, ...]:
    theta, a, d = (upstream * slope for slope in slopes[:3])
    effect = slopes[3]
    testlets = None if effect is None else Testlets(upstream * effect, None)  # type: ignore[arg-type]
    return theta, a, d, None, None, None, testlets


log_likelihood.defvjp(_forward, _backward)


def moderated(mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    """Shrink Gaussian logits so that sigmoid(kappa * mean) is close to E[sigmoid(eta)] (MacKay 1992).

    Less exact than :func:`expected_logistic`, but a logit, of which logarithms of small probabilities can be taken.

    Returns kappa * mean and kappa, with kappa = 1 / sqrt(1 + pi * variance / 8), each of the inputs' shape.
    """
    kappa = jax.lax.rsqrt(1.0 + (jnp.pi / 8.0) * jnp.asarray(variance))
    return kappa * jnp.asarray(mean), kappa


def logit_moments(
    theta_mean: ArrayLike, theta_cov: ArrayLike, a_mean: ArrayLike, d_mean: ArrayLike, item_cov: ArrayLike
) -> tuple[Array, Array]:
    """Mean and variance of eta where abilities and item parameters are independent Gaussians.

    Parameters
    ----------
    theta_mean, theta_cov
        Shapes (models, dims) and (models, dims, dims).
    a_mean, d_mean, item_cov
        Shapes (items, dims), (items,) and (items, dims + 1, dims + 1), the last over (a_1..a_K, d).

    Returns
    -------
    tuple of arrays
        Mean and variance, each of shape (models, items).
    """
    m, v = jnp.asarray(theta_mean), jnp.asarray(theta_cov)
    a, s = jnp.asarray(a_mean), jnp.asarray(item_cov)
    n, k = m.shape
    x = jnp.concatenate([m, jnp.ones((n, 1), m.dtype)], axis=1)
    outer_x = (x[:, :, None] * x[:, None, :]).reshape(n, -1)
    second_a = (a[:, :, None] * a[:, None, :] + s[:, :k, :k]).reshape(a.shape[0], -1)
    mean = m @ a.T + jnp.asarray(d_mean)
    variance = outer_x @ s.reshape(s.shape[0], -1).T + v.reshape(n, -1) @ second_a.T
    return mean, variance


def predict(
    theta_mean: ArrayLike,
    theta_cov: ArrayLike,
    a_mean: ArrayLike,
    d_mean: ArrayLike,
    item_cov: ArrayLike,
    floor: ArrayLike = 0.0,
    ceiling: ArrayLike = 1.0,
    effects: tuple[ArrayLike, ArrayLike] | None = None,
) -> Array:
    """Probabilities of a right response averaged over the posterior, shape (models, items).

    The logistic-normal integral is MacKay's (1992) approximation, within .01 of the exact value for the variances
    met here. Shapes as in :func:`logit_moments`; ``floor`` and ``ceiling`` have shape (items,); ``effects`` are mean and
    variance of what the items' testlets add, each (models, items).
    """
    mean, variance = logit_moments(theta_mean, theta_cov, a_mean, d_mean, item_cov)
    if effects is not None:
        mean, variance = mean + jnp.asarray(effects[0]), variance + jnp.asarray(effects[1])
    return probability(moderated(mean, variance)[0], floor, ceiling)
