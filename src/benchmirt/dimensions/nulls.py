"""Null data: outcomes simulated from a fitted model, with everything else of the data kept.

Missing cells, asymptotes, lineages and benchmarks stay as they are. Parameters are drawn from the fit's
posterior, not set to its means, since shrunken means would make null data tamer than the data. For zero
dimensions the model holds item intercepts only; it has no ability to integrate over, so its posterior is
computed exactly on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from benchmirt.resampling import generator

if TYPE_CHECKING:
    from benchmirt.inference.em import Batch
    from benchmirt.matrix import ResponseData
    from benchmirt.priors import Priors

__all__ = ["Gaussian", "Intercepts", "fit_null", "intercepts", "null_data"]

Floats = NDArray[np.float64]

_ROUNDS = 100
_POINTS = np.linspace(-6.0, 6.0, 49)  # in standard deviations about the mode


@dataclass(frozen=True)
class Intercepts:
    """Posterior of item intercepts without any ability, on a grid.

    Attributes
    ----------
    grid
        Intercepts d, shape (items, points), in logits, evenly spaced about each item's mode.
    weight
        Posterior probability of each point, shape (items, points); rows sum to 1.
    floor, ceiling
        Asymptotes, shape (items,).
    mu_d, sigma_d
        Mean and standard deviation of the intercepts' prior, fitted to the data.
    """

    grid: Floats
    weight: Floats
    floor: Floats
    ceiling: Floats
    mu_d: float
    sigma_d: float

    def predict(self) -> Floats:
        """Posterior mean probability of a 1, shape (items,)."""
        return self.floor + (self.ceiling - self.floor) * (self.weight * expit(self.grid)).sum(1)

    def draw(self, rng: np.random.Generator, models: int) -> Floats:
        """Probabilities at one draw of the intercepts, shape (models, items): all rows are alike."""
        cumulative = np.cumsum(self.weight, axis=1)
        point = (rng.random((self.weight.shape[0], 1)) * cumulative[:, -1:] > cumulative).sum(axis=1)
        step = self.grid[:, 1] - self.grid[:, 0]
        d = self.grid[np.arange(point.size), point] + step * (rng.random(point.size) - 0.5)
        return np.broadcast_to(self.floor + (self.ceiling - self.floor) * expit(d), (models, d.size))


@dataclass(frozen=True)
class Gaussian:
    """Posterior of a fit with abilities: independent Gaussians per model and per item.

    Attributes
    ----------
    theta, theta_cov
        Shapes (models, dims) and (models, dims, dims).
    a, d, item_cov
        Shapes (items, dims), (items,) and (items, dims + 1, dims + 1), the latter over (a, d).
    floor, ceiling
        Asymptotes, shape (items,).
    """

    theta: Floats
    theta_cov: Floats
    a: Floats
    d: Floats
    item_cov: Floats
    floor: Floats
    ceiling: Floats

    @classmethod
    def of_batch(cls, batch: Batch, index: int, data: ResponseData) -> Gaussian:
        """Take the posterior of one replicate of a batch of fits of these data."""
        return cls(
            theta=batch.theta[index].astype(np.float64),
            theta_cov=batch.theta_cov[index].astype(np.float64),
            a=batch.a[index].astype(np.float64),
            d=batch.d[index].astype(np.float64),
            item_cov=batch.item_cov[index].astype(np.float64),
            floor=np.asarray(data.floor, dtype=np.float64),
            ceiling=np.asarray(data.ceiling, dtype=np.float64),
        )

    @classmethod
    def matched(cls, batch: Batch, index: int, data: ResponseData, priors: Priors) -> Gaussian:
        """Take the posterior of one replicate, with the moments of the items' exact posteriors given the abilities.

        A variational fit shrinks items near their asymptotes. Null data that are drawn from it are tamer than the data: what the
        engine makes of strong items near the floor, which can look like one more dimension, would be missing from them.
        """
        import jax.numpy as jnp

        from benchmirt.inference.moments import match_items
        from benchmirt.inference.posterior import State
        from benchmirt.likelihood import asymptotes_of

        plain = cls.of_batch(batch, index, data)
        item = np.column_stack([plain.a, plain.d])
        found = (plain.theta, plain.theta_cov, item, plain.item_cov)
        scales = (batch.tau[index] ** 2, batch.mu_d[index], batch.sigma_d[index] ** 2)
        m, v, mu, s, tau2, mu_d, sigma2 = (jnp.asarray(part, jnp.float32) for part in (*found, *scales))
        state = State(m, v, mu, s, tau2, mu_d, sigma2)
        state = match_items(state, data.responses, asymptotes_of(data.floor, data.ceiling), priors)
        item = np.asarray(state.mu, np.float64)
        return replace(plain, a=item[:, :-1], d=item[:, -1], item_cov=np.asarray(state.s, np.float64))

    def draw(self, rng: np.random.Generator, models: int) -> Floats:
        """Probabilities at one draw of all parameters, shape (models, items)."""
        theta = self.theta + _normal(self.theta_cov, rng)
        if models != theta.shape[0]:
            raise ValueError(f"the fit has {theta.shape[0]} models, not {models}")
        item = np.column_stack([self.a, self.d]) + _normal(self.item_cov, rng)
        return self.floor + (self.ceiling - self.floor) * expit(theta @ item[:, :-1].T + item[:, -1])


def _normal(cov: Floats, rng: np.random.Generator) -> Floats:
    """Draw one zero-mean vector per covariance matrix."""
    size = cov.shape[-1]
    lower = np.linalg.cholesky(cov + 1e-9 * np.eye(size))  # the covariances were kept in single precision
    return np.asarray((lower @ rng.standard_normal(cov.shape[:-1])[..., None])[..., 0])


def intercepts(
    responses: ArrayLike, floor: ArrayLike, ceiling: ArrayLike, weights: ArrayLike | None = None
) -> Intercepts:
    """Fit item intercepts d_j ~ N(mu_d, sigma_d) without any ability.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (models, items).
    floor, ceiling
        Asymptotes, shape (items,).
    weights
        Weight of each cell, shape (models, items), or of each model, shape (models, 1); 0 leaves it out.

    Notes
    -----
    mu_d and sigma_d are found by EM, with each item's posterior on a grid about its mode; sigma_d stays above 0.05.
    """
    y = np.asarray(responses)
    w = np.ones((1, 1)) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = np.stack([((y == 1) * w).sum(0), ((y == 0) * w).sum(0)])
    all_low, all_high, _ = np.broadcast_arrays(
        np.asarray(floor, np.float64), np.asarray(ceiling, np.float64), counts[0]
    )
    # items with the same counts and asymptotes have the same posterior
    kinds, kind, size = np.unique(
        np.concatenate([counts, [all_low, all_high]]), axis=1, return_inverse=True, return_counts=True
    )
    right, wrong, low, high = kinds
    size = size / size.sum()
    mu, sigma = 0.0, 2.0
    d = np.zeros(low.size)
    for _ in range(_ROUNDS):
        information = np.ones(low.size)
        for _step in range(_ROUNDS):  # Fisher scoring to the mode
            s = expit(d)
            p = np.clip(low + (high - low) * s, 1e-12, 1 - 1e-12)
            slope = (high - low) * s * (1 - s)
            information = (right + wrong) * slope**2 / (p * (1 - p)) + 1 / sigma**2
            step = ((right / p - wrong / (1 - p)) * slope - (d - mu) / sigma**2) / information
            d = d + np.clip(step, -1.0, 1.0)
            if float(np.abs(step).max(initial=0.0)) < 1e-6:
                break
        grid = d[:, None] + _POINTS / np.sqrt(information)[:, None]
        p = np.clip(low[:, None] + (high - low)[:, None] * expit(grid), 1e-12, 1 - 1e-12)
        log = right[:, None] * np.log(p) + wrong[:, None] * np.log1p(-p) - 0.5 * ((grid - mu) / sigma) ** 2
        weight = np.exp(log - log.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        mean, square = (weight * grid).sum(1), (weight * grid**2).sum(1)
        previous = (mu, sigma)
        mu = float(size @ mean)
        sigma = max(0.05, float(np.sqrt(max(size @ (square - 2 * mu * mean) + mu**2, 0.0))))
        if abs(mu - previous[0]) + abs(sigma - previous[1]) < 1e-5:
            break
    kind = kind.reshape(-1)
    return Intercepts(grid[kind], weight[kind], all_low, all_high, mu, sigma)


def fit_null(data: ResponseData, dims: int, options: dict[str, Any]) -> Intercepts | Gaussian:
    """Fit the model that null data are simulated from.

    Parameters
    ----------
    data
        The data.
    dims
        Dimensions of the model; 0 for item intercepts only.
    options
        Of :func:`benchmirt.inference.em.fit_many`.
    """
    if dims == 0:
        return intercepts(data.responses, data.floor, data.ceiling)
    from benchmirt.inference import em
    from benchmirt.priors import Priors

    batch = em.fit_many(data, dims, bound=False, **options)
    return Gaussian.matched(batch, 0, data, options.get("priors") or Priors())


def null_data(data: ResponseData, fitted: Intercepts | Gaussian, seed: int, purpose: str) -> ResponseData:
    """Simulate outcomes from a fit where the data have outcomes; missing cells stay missing.

    Parameters
    ----------
    data
        The data.
    fitted
        The fit to simulate from.
    seed, purpose
        What seeds the draw, as in :func:`benchmirt.resampling.generator`.
    """
    rng = generator(seed, purpose)
    probability = fitted.draw(rng, data.responses.shape[0])
    drawn = (rng.random(data.responses.shape) < probability).astype(np.int8)
    made: Any = replace(data, responses=np.where(data.responses >= 0, drawn, np.int8(-1)))
    return made
