"""How probable a right answer is where an item's parameters are known with error only: expected response functions.

A calibration gives (a_j, d_j) a mean and a covariance. A new model answers an item once, and the errors of different
items are taken to be independent, so that the likelihood of its abilities with the item parameters integrated out is a
product over items of

    P_j(theta) = E[c_j + (u_j - c_j) sigmoid(a_j . theta + d_j)]

(Lewis 1985; Mislevy, Wingersky and Sheehan 1994, *Dealing with uncertainty about item parameters: expected response
functions*, ETS Research Report 94-28). This is the limit that multiple imputation over draws of the item parameters
tends to, without the noise of finitely many draws and at the cost of one pass; hence it is used here. The Gaussian
integral is MacKay's (1992), as everywhere in this library (:func:`benchmirt.likelihood.moderated`). What it leaves out
is an error that all items share, such as the choice of models that define the zero and unit of the abilities.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmirt.ability.calibration import Calibration
from benchmirt.likelihood import Asymptotes, asymptotes_of, cell_log_likelihood, logit_moments, moderated

__all__ = ["Items", "Response", "items_of", "log_likelihood", "response"]

LEAST = 1e-6
"""Probabilities are kept so far from 0 and 1 where they stand in a denominator."""


class Items(NamedTuple):
    """Items as arrays of float32, J of them: a (J, K), d (J,), cov (J, K + 1, K + 1), and known asymptotes or None."""

    a: Array
    d: Array
    cov: Array
    asymptotes: Asymptotes | None

    @property
    def dims(self) -> int:
        """Number of abilities K."""
        return int(self.a.shape[1])


class Response(NamedTuple):
    """Expected responses of models to items, each (models, items).

    ``probability`` of a right answer, in (0, 1); ``slope``, its derivative in the item's mean logit; ``variance``, p (1
    - p).
    """

    probability: Array
    slope: Array
    variance: Array


def items_of(calibration: Calibration, places: NDArray[np.intp] | None = None) -> Items:
    """Return the items of a calibration, or those at some places, in its canonical frame."""
    at = np.arange(len(calibration.items)) if places is None else places
    return Items(
        a=jnp.asarray(calibration.a[at], jnp.float32),
        d=jnp.asarray(calibration.d[at], jnp.float32),
        cov=jnp.asarray(calibration.item_cov[at], jnp.float32),
        asymptotes=asymptotes_of(calibration.floor[at], calibration.ceiling[at]),
    )


def _logits(theta: Array, items: Items) -> tuple[Array, Array]:
    """Moderated logits of abilities (models, K), and the factor by which they were shrunk, both (models, items)."""
    k = items.dims
    mean, variance = logit_moments(theta, jnp.zeros((theta.shape[0], k, k), theta.dtype), *items[:3])
    return moderated(mean, variance)


def log_likelihood(theta: Array, responses: Array, items: Items) -> Array:
    """Log probability of each outcome (models, items) at abilities (models, K); 0 where it is missing (-1)."""
    return cell_log_likelihood(_logits(theta, items)[0], responses, items.asymptotes)


def response(theta: Array, items: Items) -> Response:
    """Return the expected responses at abilities (models, K)."""
    logits, shrunk = _logits(theta, items)
    logistic = jax.nn.sigmoid(logits)
    slope = shrunk * logistic * (1.0 - logistic)
    if items.asymptotes is not None:
        low, high = items.asymptotes
        logistic, slope = low + (high - low) * logistic, (high - low) * slope
    probability = jnp.clip(logistic, LEAST, 1.0 - LEAST)
    return Response(probability, slope, probability * (1.0 - probability))
