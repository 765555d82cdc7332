"""Effects of testlets, and priors by group: on planted truth, and where there is none."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmirt import inference, likelihood, matrix
from benchmirt.inference import em
from benchmirt.inference.record import FitRecord

MODELS, ITEMS, SIZE = 60, 300, 10
NUMBER = ITEMS // SIZE
ENGINES = {"em": {}, "svi": {"steps": 600}}


def planted(sigma: float, seed: int = 1):
    """Two abilities, and testlets of ten items with effects of the given spread; every sixth testlet has no common name."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(MODELS, 2))
    a = rng.normal(size=(ITEMS, 2)) * [1.0, 0.7]
    testlet = np.arange(ITEMS) // SIZE
    testlet = np.where(testlet % 6 == 5, -1, testlet)
    effect = np.where(testlet >= 0, sigma * rng.normal(size=(MODELS, NUMBER))[:, testlet], 0.0)
    p = 1 / (1 + np.exp(-(theta @ a.T + rng.normal(size=ITEMS) + effect)))
    y = (rng.random(p.shape) < p).astype(np.int8)
    return theta, testlet, effect, y


def test_gradient_in_the_effects_equals_finite_differences():
    rng = np.random.default_rng(0)
    theta, a, d = rng.normal(size=(5, 2)), rng.normal(size=(9, 2)), rng.normal(size=9)
    y = rng.integers(-1, 2, size=(5, 9)).astype(np.int8)
    of_item = jnp.array([0, 0, 1, 2, 2, 2, 3, 1, 3])  # 3: no testlet
    effect = rng.normal(size=(3, 5))
    with jax.enable_x64(True):
        given = [jnp.asarray(x) for x in (theta, a, d)]

        def total(effect):
            return 2.0 * likelihood.log_likelihood(*given, y, testlets=likelihood.Testlets(effect, of_item))

        gradient = np.asarray(jax.grad(total)(jnp.asarray(effect)))
        for place in np.ndindex(effect.shape):
            step = np.zeros_like(effect)
            step[place] = 1e-6
            slope = (total(jnp.asarray(effect + step)) - total(jnp.asarray(effect - step))) / 2e-6
            assert gradient[place] == pytest.approx(float(slope), abs=1e-6)
        cells = np.append(effect, np.zeros((1, 5)), axis=0)[np.asarray(of_item)].T
        eta = theta @ a.T + d + cells
        sign = np.where(y == 1, 1, -1)
        plain = np.where(y >= 0, -np.log1p(np.exp(-sign * eta)), 0.0).sum()
        assert float(total(jnp.asarray(effect))) == pytest.approx(2 * plain, rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_planted_effects_are_recovered(engine):
    theta, testlet, effect, y = planted(0.9)
    data = matrix.from_arrays(y, testlet=testlet)
    assert data.testlets == NUMBER - NUMBER // 6
    record = inference.fit(data, engine=engine, dims=2, seed=0, options=ENGINES[engine])
    assert record.testlets is not None
    assert record.testlets.sigma_t == pytest.approx(0.9, abs=0.1)
    mean, variance = record.testlets.by_item()
    own = testlet >= 0
    assert (mean[:, ~own] == 0).all()
    assert (variance[:, ~own] == 0).all()
    assert np.corrcoef(mean[:, own].ravel(), effect[:, own].ravel())[0, 1] > 0.7
    # variational posteriors are a little too narrow
    inside = np.abs(mean - effect)[:, own] < 1.96 * np.sqrt(variance[:, own])
    assert 0.88 < inside.mean() < 0.97
    design = np.column_stack([record.theta_mean, np.ones(MODELS)])
    fitted = design @ np.linalg.lstsq(design, theta, rcond=None)[0]
    assert min(np.corrcoef(fitted[:, k], theta[:, k])[0, 1] for k in range(2)) > 0.93


def test_discriminations_that_dependence_shrinks_come_back():
    _, testlet, _, y = planted(1.2, seed=2)
    plain, with_effects = (em.fit(matrix.from_arrays(y, testlet=t), 2) for t in (None, testlet))
    assert (with_effects.tau > 1.08 * plain.tau).all()
    assert with_effects.tau == pytest.approx([1.0, 0.7], abs=0.12)
    assert with_effects.diagnostics["elbo"] > plain.diagnostics["elbo"] + 100


def test_without_dependence_little_changes():
    _, testlet, _, y = planted(0.0)
    plain, with_effects = (em.fit(matrix.from_arrays(y, testlet=t), 2) for t in (None, testlet))
    assert with_effects.testlets is not None
    assert with_effects.testlets.sigma_t < 0.4
    assert with_effects.diagnostics["elbo"] < plain.diagnostics["elbo"]
    for k in range(2):
        assert np.corrcoef(plain.theta_mean[:, k], with_effects.theta_mean[:, k])[0, 1] > 0.995


def test_the_rest_of_a_testlet_foretells_a_hidden_answer():
    _, testlet, _, y = planted(1.2)
    hidden = np.random.default_rng(5).random(y.shape) < 0.1
    shown = np.where(hidden, -1, y)

    def loss(codes):
        data = matrix.from_arrays(shown, testlet=codes)
        p = em.fit_many(data, 2).predict(0, data)
        return -np.log(np.where(y == 1, p, 1 - p))[hidden].mean()

    assert loss(testlet) < loss(None) - 0.03


def test_effects_survive_the_disk(tmp_path):
    _, testlet, _, y = planted(0.9)
    record = em.fit(matrix.from_arrays(y, testlet=testlet), 2)
    record.save(tmp_path / "seed0.nc")
    loaded = FitRecord.load(tmp_path / "seed0.nc")
    assert loaded.testlets is not None
    assert record.testlets is not None
    assert loaded.testlets.sigma_t == record.testlets.sigma_t
    np.testing.assert_array_equal(loaded.testlets.of_item, numbered(testlet))
    for ours, theirs in zip(loaded.testlets.by_item(), record.testlets.by_item(), strict=True):
        np.testing.assert_array_equal(ours, np.asarray(theirs, np.float32))


def numbered(testlet):
    """Return codes numbered in the order in which they are met."""
    met = list(dict.fromkeys(testlet[testlet >= 0]))
    return np.array([met.index(code) if code >= 0 else -1 for code in testlet])


@pytest.mark.slow
def test_sampling_agrees(tmp_path):
    _, testlet, effect, y = planted(0.7)
    data = matrix.from_arrays(y, testlet=testlet)
    sampled = inference.fit(
        data, engine="nuts", dims=2, seed=0, options={"chains": 2, "warmup": 200, "draws": 400}
    )
    variational = em.fit(data, 2)
    assert sampled.testlets is not None
    assert variational.testlets is not None
    assert sampled.diagnostics["divergences"] == 0
    assert sampled.testlets.sigma_t == pytest.approx(0.7, abs=0.1)
    assert np.corrcoef(sampled.testlets.mean.ravel(), variational.testlets.mean.ravel())[0, 1] > 0.995
    own = testlet >= 0
    mean, variance = (values[:, own] for values in sampled.testlets.by_item())
    assert (np.abs(mean - effect[:, own]) < 1.96 * np.sqrt(variance)).mean() == pytest.approx(0.95, abs=0.015)
    # the same draws from a checkpoint, effects included
    again = inference.fit(
        data,
        engine="nuts",
        dims=2,
        seed=0,
        options={"chains": 2, "warmup": 200, "draws": 400},
        checkpoint=tmp_path / "checkpoint",
    )
    assert again.testlets is not None
    np.testing.assert_array_equal(again.testlets.mean, sampled.testlets.mean)


def grouped(seed: int = 3):
    """Six groups of items, each with its own middle and spread of the parameters; a tenth of the cells is hidden."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(6), 40)
    center = rng.normal(size=(6, 3)) * [1.0, 1.0, 1.5]
    item = center[group] + 0.3 * rng.normal(size=(240, 3))
    theta = rng.normal(size=(40, 2))
    p = 1 / (1 + np.exp(-(theta @ item[:, :2].T + item[:, 2])))
    y = (rng.random(p.shape) < p).astype(np.int8)
    return group, y, p, rng.random(p.shape) < 0.3


def test_priors_by_group_foretell_better_where_groups_differ():
    group, y, p, hidden = grouped()
    data = matrix.from_arrays(np.where(hidden, -1, y))

    def loss(q):
        return -np.log(np.where(y == 1, q, 1 - q))[hidden].mean()

    one = loss(em.fit_many(data, 2).predict(0, data))
    by_group = loss(em.fit_many(data, 2, group=group).predict(0, data))
    oracle = loss(p)
    assert oracle < by_group < one
    assert by_group - oracle < 0.85 * (one - oracle)


def test_groups_that_mean_nothing_do_no_harm():
    _, y, _, hidden = grouped()
    data = matrix.from_arrays(np.where(hidden, -1, y))
    group = np.random.default_rng(0).integers(0, 6, 240)
    first, second = (em.fit_many(data, 2, group=g).predict(0, data) for g in (None, group))
    loss = [-np.log(np.where(y == 1, q, 1 - q))[hidden].mean() for q in (first, second)]
    assert loss[1] == pytest.approx(loss[0], abs=0.01)


def test_the_bound_of_grouped_priors_rises_as_their_posterior_fits():
    """More sweeps never end at a lower bound, and the groups' bound beats the one population's where groups differ."""
    group, y, *_ = grouped()
    data = matrix.from_arrays(y)
    bounds = [float(em.fit_many(data, 2, group=group, sweeps=n).elbo[0]) for n in (10, 20, 60)]
    assert bounds[0] < bounds[1] + 0.5
    assert bounds[1] < bounds[2] + 0.5
    assert bounds[2] > float(em.fit_many(data, 2).elbo[0]) + 50
