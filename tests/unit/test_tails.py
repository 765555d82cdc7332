"""Discriminations with heavy tails: the density, the engines, and what becomes of items that stand out."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_t

from benchmirt import identification as ident
from benchmirt import inference, matrix, tiles
from benchmirt.inference import em
from benchmirt.model import MultivariateT
from benchmirt.priors import Priors

SCALE = np.array([1.2, 0.5, 0.8], np.float32)
HEAVY = {"discrimination_df": 3.0}


def test_the_density_is_that_of_scipy():
    x = np.random.default_rng(0).normal(size=(50, 3)) * 2
    expected = multivariate_t(shape=np.diag(SCALE.astype(float) ** 2), df=3.5).logpdf(x)
    np.testing.assert_allclose(MultivariateT(3.5, SCALE).log_prob(x), expected, rtol=1e-5)


def test_draws_have_the_moments_of_a_t_distribution():
    draws = np.asarray(MultivariateT(8.0, SCALE).sample(jax.random.key(0), (200_000,)), np.float64)
    np.testing.assert_allclose(np.cov(draws.T), np.diag(SCALE**2) * 8 / 6, atol=0.02)
    # squares depend on each other, since all dimensions share one chi: E[x^2 y^2] / (E[x^2] E[y^2]) = (df - 2) / (df - 4)
    squares = draws**2
    ratio = (squares[:, 0] * squares[:, 1]).mean() / squares[:, 0].mean() / squares[:, 1].mean()
    assert ratio == pytest.approx(6 / 4, abs=0.06)


def heavy(seed=0, models=80, items=300):
    """Plant discriminations with three degrees of freedom; returns data and the discriminations in the sample's frame."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(models, 2))
    chi = np.sqrt(rng.chisquare(3, size=(items, 1)) / 3)
    a, d = rng.normal(size=(items, 2)) * [0.9, 0.6] / chi, rng.normal(size=items)
    p = 1 / (1 + np.exp(-(theta @ a.T + d)))
    scale = np.linalg.cholesky(np.cov(theta.T, bias=True))
    return matrix.from_arrays((rng.random(p.shape) < p).astype(np.int8)), a @ scale


def test_many_degrees_of_freedom_are_the_normal_case():
    data, _ = heavy()
    normal = em.fit(data, 2, tolerance=1e-5)
    nearly = em.fit(data, 2, tolerance=1e-5, priors=Priors(discrimination_df=1e6))
    np.testing.assert_allclose(nearly.theta_mean, normal.theta_mean, atol=2e-3)
    np.testing.assert_allclose(nearly.a_mean, normal.a_mean, atol=2e-3)
    assert nearly.diagnostics["elbo"] == pytest.approx(normal.diagnostics["elbo"], abs=0.5)


def test_items_that_stand_out_are_shrunk_less():
    for seed in (1, 2):
        data, a = heavy(seed)
        fits = [em.fit(data, 2, priors=Priors(**given)) for given in ({}, HEAVY)]
        out = np.linalg.norm(a, axis=1) > np.quantile(np.linalg.norm(a, axis=1), 0.9)
        errors = []
        for record in fits:
            found = record.a_mean @ ident.align(record.a_mean, a)
            errors.append((np.linalg.norm(found - a, axis=1)[out] ** 2).mean())
        assert errors[1] < 0.9 * errors[0]
        assert fits[1].priors["discrimination_df"] == 3.0


def test_the_fit_is_at_the_top_of_its_bound_in_the_spread_of_discriminations():
    """The profile of the bound over the population's scale, by its own formula, is flat where the fit stopped."""
    data, _ = heavy(3)
    record = em.fit(data, 2, tolerance=1e-5, priors=Priors(**HEAVY))
    second = record.a_mean.astype(float) ** 2 + np.diagonal(record.item_cov, axis1=1, axis2=2)[:, :2]

    def bound(tau):
        distance = (second / tau**2).sum(1)
        return (-np.log(tau).sum() - 2.5 * np.log1p(distance / 3)).sum() - (tau**2).sum() / 2

    slopes = [
        (bound(record.tau * (1 + step)) - bound(record.tau * (1 - step))) / 2e-3
        for step in np.diag([1e-3, 1e-3])
    ]
    # in units of the curvature, which is about one per item
    assert np.abs(slopes).max() < 0.01 * len(second)


@pytest.mark.parametrize("given", [{}, HEAVY, "groups"])
def test_items_that_fill_the_last_tile_up_have_no_say(given):
    """The same items in tiles that they fill and in tiles that they do not."""
    rng = np.random.default_rng(5)
    p = 1 / (1 + np.exp(-rng.normal(size=(40, 2)) @ rng.normal(size=(2, 4003))))
    y = (rng.random(p.shape) < p).astype(np.int8)
    options = {"group": np.arange(4003) % 5} if given == "groups" else {"priors": Priors(**given)}
    assert 4003 % tiles.width_of(40, 4003)
    batches = []
    for cells in (tiles.CELLS, y.size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiles, "CELLS", cells)
            batches.append(em.fit_many(matrix.from_arrays(y), 2, sweeps=10, **options))
    np.testing.assert_allclose(batches[0].theta, batches[1].theta, atol=1e-3)
    np.testing.assert_allclose(batches[0].elbo, batches[1].elbo, rtol=1e-5)


@pytest.mark.slow
def test_engines_agree_under_heavy_tails():
    data, a = heavy(4)
    options = {"em": {}, "svi": {"steps": 800}, "nuts": {"chains": 2, "warmup": 150, "draws": 300}}
    fits = {
        engine: inference.fit(data, engine=engine, dims=2, seed=0, options=given, priors=HEAVY)
        for engine, given in options.items()
    }
    size = {engine: np.linalg.norm(record.a_mean, axis=1) for engine, record in fits.items()}
    large = np.argsort(np.linalg.norm(a, axis=1))[-30:]
    for engine in ("em", "svi"):
        turned = fits[engine].a_mean @ ident.align(fits[engine].a_mean, fits["nuts"].a_mean)
        assert ident.congruence(turned, fits["nuts"].a_mean).min() > 0.98
        assert size[engine][large].mean() == pytest.approx(size["nuts"][large].mean(), rel=0.1)
    assert fits["nuts"].diagnostics["divergences"] == 0
