"""Linking two studies: the planted transformation comes back, planted drift is found, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from benchmirt.ability import linking
from benchmirt.ability.linking import Parameters, Population
from benchmirt.errors import InputError


def posterior(
    a: np.ndarray, d: np.ndarray, information: float, prior: Population, rng: np.random.Generator
) -> Parameters:
    """Posterior of items whose data say so much of each parameter, with errors of that size; correlated as they are."""
    items, k = a.shape
    root = np.eye(k + 1) + 0.3 * rng.standard_normal((items, k + 1, k + 1))
    own = information * rng.uniform(0.5, 2.0, (items, 1, 1)) * root @ root.transpose(0, 2, 1)
    precision = np.diag(1 / np.append(prior.tau**2, prior.sigma_d**2))
    truth = np.column_stack([a, d])
    noise = np.einsum(
        "jpq,jq->jp", np.linalg.cholesky(np.linalg.inv(own)), rng.standard_normal((items, k + 1))
    )
    cov = np.linalg.inv(own + precision)
    center = np.append(np.zeros(k), prior.mu_d)
    mean = np.einsum("jpq,jq->jp", cov, np.einsum("jpq,jq->jp", own, truth + noise) + precision @ center)
    return Parameters(mean[:, :k], mean[:, k], cov)


def planted(drifting: int, seed: int, items: int = 1500, information: float = 12.0):
    """Two studies of the same items: other models, so that location, scale and rotation differ, and some items drifted."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((items, 2)) * [1.0, 0.6] + [0.7, 0.0]
    d = rng.normal(0.4, 1.2, items)
    M, m = np.array([[1.3, 0.4], [-0.5, 0.8]]), np.array([0.6, -0.3])
    moved_a, moved_d = a @ M, d + a @ m
    moved_d[:drifting] += rng.choice([-2.0, 2.0], drifting)
    priors = tuple(
        Population(np.sqrt((x**2).mean(axis=0)), float(y.mean()), float(y.std()))
        for x, y in ((a, d), (moved_a, moved_d))
    )
    first = posterior(a, d, information, priors[0], rng)
    second = posterior(moved_a, moved_d, information, priors[1], rng)
    return first, second, priors, M, m


@pytest.mark.parametrize("information", [12.0, 4.0])
def test_the_planted_transformation_comes_back_though_estimates_are_shrunk(information: float) -> None:
    first, second, priors, M, m = planted(0, seed=1, items=6000, information=information)
    found = linking.link(first, second, priors, np.zeros(6000), np.ones(6000))
    np.testing.assert_allclose(found.M, M, atol=0.04)
    np.testing.assert_allclose(found.m, m, atol=0.04)
    np.testing.assert_allclose(np.stack(found.measured), np.stack([np.eye(2)] * 2), atol=1e-9)
    plain = np.linalg.lstsq(first.a, second.a, rcond=None)[0]
    assert np.linalg.norm(plain - M) > 2 * np.linalg.norm(found.M - M)


def test_items_that_drifted_are_found_and_others_left_alone() -> None:
    first, second, priors, M, _ = planted(150, seed=2)
    found = linking.link(first, second, priors, np.zeros(1500), np.ones(1500))
    planted_drift = np.arange(1500) < 150
    assert found.drifted[planted_drift].mean() > 0.75
    assert (found.drifted & ~planted_drift).sum() / found.drifted.sum() < 0.1
    np.testing.assert_allclose(found.M, M, atol=0.08)
    moved = found.easier[planted_drift & found.drifted]
    assert (np.abs(moved) > 0.1).mean() > 0.9
    assert abs(float(np.mean(found.easier[~planted_drift]))) < 0.02


def test_without_drift_the_statistic_has_its_distribution_and_nothing_is_flagged() -> None:
    flagged = 0
    for seed in range(5):
        first, second, priors, *_ = planted(0, seed=10 + seed)
        found = linking.link(first, second, priors, np.zeros(1500), np.ones(1500))
        known = np.isfinite(found.chi_square)
        assert known.mean() > 0.9
        assert float(np.mean(found.chi_square[known])) == pytest.approx(3.0, abs=0.3)
        flagged += int(found.drifted.sum())
    assert flagged <= 5


def test_posteriors_that_are_too_narrow_do_not_make_items_drift() -> None:
    first, second, priors, *_ = planted(0, seed=3)
    narrow = Parameters(second.a, second.d, second.cov / 2.5)
    found = linking.link(first, narrow, priors, np.zeros(1500), np.ones(1500))
    assert found.inflation > 1.2
    assert found.drifted.mean() < 0.01


def test_a_study_agrees_with_itself_whatever_its_frame() -> None:
    rng = np.random.default_rng(4)
    prior = Population(np.ones(2), 0.4, 1.2)  # the same in every direction, so that a turned study has it too
    first = posterior(rng.standard_normal((200, 2)), rng.normal(0.4, 1.2, 200), 12.0, prior, rng)
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    whole = np.block([[turn, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    second = Parameters(first.a @ turn, first.d, whole.T @ first.cov @ whole)
    found = linking.link(first, second, (prior, prior), np.zeros(200), np.ones(200))
    np.testing.assert_allclose(found.M, turn, atol=1e-9)
    np.testing.assert_allclose(found.m, 0, atol=1e-9)
    np.testing.assert_allclose(linking.axes(found.M, np.eye(2), turn.T), np.eye(2), atol=1e-9)
    assert not found.drifted.any()
    assert linking.matched(np.array([[0.1, -0.9], [0.8, 0.2]])) == [(0, 1, -0.9), (1, 0, 0.8)]


@pytest.mark.parametrize("seed", range(4))
def test_an_ability_that_the_items_do_not_measure_is_told_and_leaves_the_other_linked(seed: int) -> None:
    """All items load on the first ability alone; the prior's second one has nothing to be linked by."""
    rng = np.random.default_rng(seed)
    a = np.column_stack([rng.normal(0.7, 1.0, 600), np.zeros(600)])
    d = rng.normal(0.4, 1.2, 600)
    priors = tuple(Population(np.array([scale * np.hypot(0.7, 1.0), 0.5]), 0.4, 1.2) for scale in (1.0, 1.3))
    first = posterior(a, d, 12.0, priors[0], rng)
    second = posterior(a * [1.3, 1.0], d + a[:, 0] * 0.5, 12.0, priors[1], rng)
    found = linking.link(first, second, priors, np.zeros(600), np.ones(600))
    for onto in found.measured:
        np.testing.assert_allclose(onto, np.diag([1.0, 0.0]), atol=0.06)
    assert found.M[0, 0] == pytest.approx(1.3, abs=0.1)
    assert found.m[0] == pytest.approx(0.5, abs=0.1)
    assert np.abs(found.easier).mean() < 0.15
    assert abs(float(found.easier.mean())) < 0.04
    assert found.drifted.mean() < 0.01
    assert linking.axes(found.M, np.eye(2), np.eye(2))[0, 0] > 0.98


def test_what_cannot_be_linked_is_told() -> None:
    first, second, priors, *_ = planted(0, seed=5, items=20)
    with pytest.raises(InputError, match=r"too few items in common.*20 calibrated in both.*at least 26"):
        linking.link(first, second, priors, np.zeros(20), np.ones(20))
    other = Parameters(second.a[:, :1], second.d, second.cov[:, 1:, 1:])
    with pytest.raises(InputError, match="different numbers of dimensions"):
        linking.link(first, other, priors, np.zeros(20), np.ones(20))
