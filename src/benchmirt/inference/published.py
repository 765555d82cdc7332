"""The published study's own model, priors and optimiser, for the as-published answers on prediction alone.

    P(y_ij = 1) = sigmoid(a_j . (theta_i - b_j))

with all of theta_i, a_j and b_j K-vectors. Two sets of priors, as the study's tool has them:

- ``hierarchical``, of its multidimensional model: every coordinate of theta, a and b is normal about a mean of its own,
  mu ~ N(0, 1e6), with standard deviation 1 / u, u ~ Gamma(1, 1); a is signed.
- ``vague``, of its one-dimensional model: theta ~ N(0, 1), but b ~ N(0, 0.1) and a ~ N(0, 0.1) with standard deviations
  of a tenth of a logit, and the guide's location of a is positive. Hardly anything can be learnt about an item, so that a
  second dimension, which comes with the other priors, seems to gain much.

The guide is a diagonal Gaussian (log-normal for u), and its divergences from the priors are taken in closed form where there is
one, which changes the loss's noise only. Adam's step decays from 0.2 by 0.9999 a step, and the parameters with
the smallest loss met on the way are kept, noisy as a single-sample loss is; predictions come from the guide's locations.
All this is what the study did, not what should be done: see :mod:`benchmirt.model` for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import constraints
from numpyro.infer import SVI, TraceMeanField_ELBO
from numpyro.optim import Adam

from benchmirt import tiles
from benchmirt.inference.record import FitError
from benchmirt.likelihood import log_likelihood
from benchmirt.tiles import Tiled

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["PublishedFit", "fit", "hierarchical", "vague"]

PriorSet = Literal["hierarchical", "vague"]

LEARNING_RATE = 0.2
DECAY = 0.9999
_START_SCALE = 0.1


@dataclass(frozen=True)
class PublishedFit:
    """Locations of a fitted guide: N models, J items, K dimensions.

    Attributes
    ----------
    theta
        Abilities, shape (N, K).
    a, b
        Discriminations and the published vectors of difficulties, each of shape (J, K).
    loss
        Negative evidence lower bound at each step.
    """

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    loss: NDArray[np.float64]

    def predict(self) -> NDArray[np.float64]:
        """Probabilities of a right response at the locations, shape (N, J)."""
        eta = self.theta @ self.a.T - (self.a * self.b).sum(axis=1)
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)))


def hierarchical(responses: Tiled, used: Array) -> None:
    """Multidimensional model with the tool's hierarchical priors.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (models, items), by tile.
    used
        Which dimensions the model has, bool, shape (dims,); the others have no part in anything, so that models with fewer
        dimensions than arrays have room for share one compilation.
    """
    models, items = responses.shape
    values = {}
    for name, size in (("theta", models), ("a", items), ("b", items)):
        with numpyro.plate(f"{name}_dims", used.size), numpyro.handlers.mask(mask=used):
            mu = numpyro.sample(f"mu_{name}", dist.Normal(0.0, 1e6))
            u = numpyro.sample(f"u_{name}", dist.Gamma(1.0, 1.0))
            with numpyro.plate(f"{name}_rows", size):
                values[name] = numpyro.sample(name, dist.Normal(mu, 1.0 / u))
    _observe(responses, used, **values)


def vague(responses: Tiled, used: Array) -> None:
    """One-dimensional model with the tool's "vague" priors; parameters as for :func:`hierarchical`."""
    models, items = responses.shape
    values = {}
    for name, size, scale in (("theta", models, 1.0), ("a", items, 0.1), ("b", items, 0.1)):
        with numpyro.plate(f"{name}_dims", used.size), numpyro.plate(f"{name}_rows", size):
            values[name] = numpyro.sample(name, dist.Normal(0.0, scale))
    _observe(responses, used, **values)


def _observe(responses: Tiled, used: Array, theta: Array, a: Array, b: Array) -> None:
    """Add the likelihood of a . (theta - b), which is that of the intercept -a . b."""
    own = jnp.where(used, a, 0.0)
    numpyro.factor("responses", log_likelihood(theta, own, -(own * b).sum(axis=1), responses))


def _guide(responses: Tiled, used: Array, start: dict[str, Array], priors: PriorSet) -> None:
    """Diagonal Gaussian guide of both models; the location of a is positive under vague priors."""
    for name, value in start.items():
        positive = name == "a" and priors == "vague"
        constraint = constraints.positive if positive else constraints.real
        loc = numpyro.param(f"{name}_loc", value, constraint=constraint)
        scale = numpyro.param(
            f"{name}_scale", jnp.full(value.shape, _START_SCALE), constraint=constraints.positive
        )
        family = dist.LogNormal if name.startswith("u_") else dist.Normal
        with numpyro.handlers.mask(mask=used):
            numpyro.sample(name, family(loc, scale))


def _start(key: Array, models: int, items: int, dims: int, priors: PriorSet) -> dict[str, Array]:
    """Random locations to start from, in the order of the models' sites; discriminations begin in the positive."""
    keys = dict(zip(("theta", "a", "b"), jax.random.split(key, 3), strict=True))
    start: dict[str, Array] = {}
    for name, size in (("theta", models), ("a", items), ("b", items)):
        if priors == "hierarchical":
            start |= {f"mu_{name}": jnp.zeros(dims), f"u_{name}": jnp.zeros(dims)}
        drawn = jax.random.normal(keys[name], (size, dims))
        start[name] = jnp.abs(drawn) if name == "a" else drawn
    return start


@partial(jax.jit, static_argnames=("priors", "steps"))
def _optimise(
    responses: Tiled, used: Array, key: Array, *, priors: PriorSet, steps: int
) -> tuple[dict[str, Array], Array]:
    """Run all steps in one compiled loop; returns the parameters with the smallest loss, and all losses."""
    models, items = responses.shape
    start_key, run_key = jax.random.split(key)
    start = _start(start_key, models, items, used.size, priors)
    optimiser = Adam(lambda step: LEARNING_RATE * DECAY**step)
    model = vague if priors == "vague" else hierarchical
    svi = SVI(model, partial(_guide, start=start, priors=priors), optimiser, TraceMeanField_ELBO())
    first = svi.init(run_key, responses, used)

    def step(carry: tuple, _: None) -> tuple[tuple, Array]:  # type: ignore[type-arg]
        state, best, least = carry
        before = svi.get_params(state)
        state, loss = svi.update(state, responses, used)
        better = loss < least
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), before, best)
        return (state, best, jnp.where(better, loss, least)), loss

    carry = (first, svi.get_params(first), jnp.float32(jnp.inf))
    (_, best, _), losses = jax.lax.scan(step, carry, length=steps)
    return best, losses


def fit(
    data: ResponseData,
    dims: int,
    *,
    most_dims: int | None = None,
    priors: PriorSet | None = None,
    reveal: NDArray[np.bool_] | None = None,
    seed: int = 0,
    steps: int = 5000,
) -> PublishedFit:
    """Fit as the published study did.

    Parameters
    ----------
    data
        Responses (models, items); asymptotes are not used.
    dims
        Number of dimensions.
    most_dims
        Most dimensions that other fits of these data will have [``dims``]: all of them then share one compilation.
    priors
        ``vague`` or ``hierarchical`` [as in the study: vague for one dimension, hierarchical for more].
    reveal
        Cells that the fit may see, shape (models, items); all of them by default.
    seed, steps
        Of the start and the ELBO's samples, and how many steps (the study took 5,000).

    Raises
    ------
    FitError
        If the loss ceases to be finite. (The study began again, up to 50 times, without a word.)
    """
    chosen: PriorSet = priors or ("vague" if dims == 1 else "hierarchical")
    shown = data.responses if reveal is None else np.where(reveal, data.responses, np.int8(-1))
    tiled = tiles.split(jnp.asarray(shown, jnp.int8))
    used = jnp.arange(max(dims, most_dims or dims)) < dims
    best, losses = _optimise(tiled, used, jax.random.key(seed), priors=chosen, steps=steps)
    loss = np.asarray(losses, np.float64)
    if not np.isfinite(loss).all():
        raise FitError(
            f"the published model with {dims} dimensions, {chosen} priors, seed {seed}: the loss is not finite from "
            f"step {int(np.flatnonzero(~np.isfinite(loss))[0]) + 1} of {steps} on"
        )
    theta, a, b = (np.asarray(best[f"{name}_loc"], np.float64)[:, :dims] for name in ("theta", "a", "b"))
    return PublishedFit(theta=theta, a=a, b=b, loss=loss)
