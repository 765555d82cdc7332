"""The response model as one NumPyro function.

    theta_i ~ N(0, I_K)                      abilities of the models
    a_jk    ~ N(0, tau_k),  signed           discriminations of the items, or t with heavier tails
    d_j     ~ N(mu_d, sigma_d)               intercepts of the items
    gamma_it ~ N(0, sigma_t)                 effects of testlets on the models, where asked for
    P(y_ij = 1) = c_j + (u_j - c_j) * sigmoid(a_j . theta_i + d_j [+ gamma_i,t(j)])

with tau_k ~ HalfNormal(tau_scale), mu_d ~ N(0, intercept_scale), sigma_d ~ HalfNormal(intercept_scale) and
sigma_t ~ HalfNormal(testlet_scale): the same weakly informative priors for every number of dimensions. Scales are half-normal,
never Gamma precisions, whose guides run into NaN (as the study's own tool does). Fixing theta to N(0, I) fixes location and
scale; rotation and signs are settled afterwards (:mod:`benchmirt.identification`).
"""

from __future__ import annotations

from math import lgamma, log, pi

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints

from benchmirt.likelihood import Asymptotes, Testlets, log_likelihood
from benchmirt.priors import Priors
from benchmirt.tiles import Tiled

__all__ = ["mirt", "sample_frame"]

_PRIORS = Priors()


class MultivariateT(dist.Distribution):  # type: ignore[misc]
    """Vectors (dims,) that are t distributed together: normal ones with scales ``scale``, all divided by one chi variable.

    NumPyro's own distribution takes any correlations and so solves a system for each of 30,000 items.
    """

    support = constraints.real_vector

    def __init__(self, df: float, scale: Array) -> None:
        self.df = df
        self.scale = scale
        super().__init__(batch_shape=(), event_shape=scale.shape)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw vectors, shape ``sample_shape`` and (dims,)."""
        normal_key, chi_key = jax.random.split(key)
        normal = jax.random.normal(normal_key, (*sample_shape, *self.scale.shape))
        chi_square = 2.0 * jax.random.gamma(chi_key, self.df / 2, sample_shape)
        return self.scale * normal * jnp.sqrt(self.df / chi_square)[..., None]

    def log_prob(self, value: Array) -> Array:
        """Log density of vectors (..., dims)."""
        k = self.scale.shape[0]
        constant = lgamma((self.df + k) / 2) - lgamma(self.df / 2) - k / 2 * log(self.df * pi)
        distance = ((value / self.scale) ** 2).sum(-1)
        return constant - jnp.log(self.scale).sum() - (self.df + k) / 2 * jnp.log1p(distance / self.df)


def _discriminations(tau: Array, priors: Priors) -> dist.Distribution:
    """Return the distribution of one item's discriminations, (dims,)."""
    if priors.discrimination_df is None:
        return dist.Normal(0.0, tau).to_event(1)
    return MultivariateT(priors.discrimination_df, tau)


def sample_frame(theta: Array) -> tuple[Array, Array]:
    """Return the sample mean (dims,) and the lower Cholesky factor (dims, dims) of the sample covariance of theta."""
    center = theta.mean(axis=0)
    spread = theta - center
    covariance = spread.T @ spread / theta.shape[0]
    return center, jnp.linalg.cholesky(covariance + 1e-6 * jnp.eye(theta.shape[1], dtype=theta.dtype))


def mirt(
    responses: Array | Tiled,
    dims: int,
    asymptotes: Asymptotes | None = None,
    priors: Priors = _PRIORS,
    reference: Array | float = 0.0,
    framed: bool = False,
    testlet: Array | None = None,
    testlets: int = 0,
) -> None:
    """Multidimensional two-parameter logistic model with known asymptotes, and with effects of testlets if there are any.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), int8, shape (models, items), or the same by tile.
    dims
        Number of dimensions K.
    asymptotes
        Known asymptotes, or None for the 2PL.
    priors
        Scales of the hyperpriors.
    reference
        Constant subtracted from every item's log likelihood, shape (items,) or 0: it changes no posterior, and keeps
        float32 totals near 0 where their resolution is fine.
    framed
        Sample the item parameters (a_1..a_K, d) as one site ``item``, in the frame in which the sample of abilities
        has mean 0 and covariance I. The posterior is the same; location and scale, which all items share, then no
        longer tie every item parameter to every ability, so that Hamiltonian trajectories can be short.
    testlet, testlets
        Which testlet an item belongs to (see :class:`benchmirt.likelihood.Testlets`), and how many there are; 0: none.
    """
    models, items = responses.shape
    tau = numpyro.sample("tau", dist.HalfNormal(priors.tau_scale).expand([dims]).to_event(1))
    discriminations = _discriminations(tau, priors)
    mu_d = numpyro.sample("mu_d", dist.Normal(0.0, priors.intercept_scale))
    sigma_d = numpyro.sample("sigma_d", dist.HalfNormal(priors.intercept_scale))
    theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([models, dims]).to_event(2))
    if framed:
        item = numpyro.sample("item", dist.ImproperUniform(constraints.real_vector, (items,), (dims + 1,)))
        center, scale = sample_frame(theta)
        inverse = jax.scipy.linalg.solve_triangular(scale, jnp.eye(dims), lower=True)
        theta = (theta - center) @ inverse.T
        a, d = item[:, :dims], item[:, dims]
        # the same prior as below, seen from the frame: it is that of a @ inv(scale), and the volume shrinks by |scale|
        plain_a = a @ inverse
        prior = discriminations.log_prob(plain_a).sum()
        prior += dist.Normal(mu_d, sigma_d).log_prob(d - plain_a @ center).sum()
        numpyro.factor("item_prior", prior - items * jnp.log(jnp.diagonal(scale)).sum())
    else:
        a = numpyro.sample("a", discriminations.expand([items]).to_event(1))
        d = numpyro.sample("d", dist.Normal(mu_d, sigma_d).expand([items]).to_event(1))
    effects = None
    if testlets and testlet is not None:
        sigma_t = numpyro.sample("sigma_t", dist.HalfNormal(priors.testlet_scale))
        gamma = numpyro.sample("gamma", dist.Normal(0.0, sigma_t).expand([testlets, models]).to_event(2))
        effects = Testlets(gamma, testlet)
    numpyro.factor("responses", log_likelihood(theta, a, d, responses, asymptotes, reference, effects))
