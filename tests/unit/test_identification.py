"""Identification: closed forms, published rotations and invariants that wrong forms break."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from benchmirt import identification as ident
from benchmirt.identification import InvariantError, Solution

# Eight physical variables of 305 girls (Harman 1976), two unrotated factors, and their quartimin solution as
# published by Bernaards and Jennrich (2005); statsmodels 0.14 and factor_analyzer 0.5 give the same numbers.
HARMAN = np.array(
    [
        [0.830, -0.396],
        [0.818, -0.469],
        [0.777, -0.470],
        [0.798, -0.401],
        [0.786, 0.500],
        [0.672, 0.458],
        [0.594, 0.444],
        [0.647, 0.333],
    ]
)
HARMAN_QUARTIMIN = np.array(
    [
        [0.891822, 0.056015],
        [0.953680, -0.023246],
        [0.929150, -0.046503],
        [0.876683, 0.033658],
        [0.013701, 0.925000],
        [-0.017265, 0.821253],
        [-0.052445, 0.764953],
        [0.085890, 0.683115],
    ]
)


def random_solution(seed: int, models: int = 12, items: int = 30, dims: int = 3) -> Solution:
    rng = np.random.default_rng(seed)
    return Solution(
        rng.standard_normal((models, dims)), rng.standard_normal((items, dims)), rng.standard_normal(items)
    )


def random_rotation(seed: int, dims: int) -> np.ndarray:
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((dims, dims)))
    return q * np.sign(np.diag(r))


def turn(degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s], [s, c]])


# ------------------------------------------------------------------------------------------------ invariants


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(1, 4))
def test_rotation_keeps_logits_and_lengths(seed: int, dims: int) -> None:
    solution = random_solution(seed, dims=dims)
    rotated = ident.rotate(solution, random_rotation(seed + 1, dims))
    np.testing.assert_allclose(rotated.eta(), solution.eta(), atol=1e-10)
    np.testing.assert_allclose(ident.mdisc(rotated.a), ident.mdisc(solution.a), atol=1e-10)
    np.testing.assert_allclose(
        ident.mdiff(rotated.a, rotated.d), ident.mdiff(solution.a, solution.d), atol=1e-9
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(2, 4))
def test_oblique_transform_keeps_logits_and_is_undone(seed: int, dims: int) -> None:
    solution = random_solution(seed, dims=dims)
    T = np.eye(dims) + 0.3 * np.random.default_rng(seed).uniform(-1, 1, (dims, dims))
    T /= np.sqrt((T**2).sum(0))
    moved = ident.oblique(solution, T)
    np.testing.assert_allclose(moved.eta(), solution.eta(), atol=1e-9)
    np.testing.assert_allclose(np.diag(ident.correlation(T)), 1.0)
    back = ident.unrotate_oblique(moved, T)
    np.testing.assert_allclose(back.theta, solution.theta, atol=1e-9)
    np.testing.assert_allclose(back.a, solution.a, atol=1e-9)


def test_phi_is_the_correlation_of_the_transformed_abilities() -> None:
    theta = np.random.default_rng(0).standard_normal((200_000, 2))
    T = np.array([[1.0, 0.6], [0.0, 0.8]])
    np.testing.assert_allclose(np.corrcoef((theta @ T).T), ident.correlation(T), atol=0.01)


def test_the_study_s_rotation_changes_the_logits_unless_it_reflects() -> None:
    """Abilities rotated the wrong way round (theta R') are right in two dimensions for reflections only."""
    solution = random_solution(3, dims=2, items=200)
    for degrees in (10.0, 30.0):
        R = turn(degrees)
        wrong = Solution(solution.theta @ R.T, solution.a @ R, solution.d)
        assert np.abs(wrong.eta() - solution.eta()).max() > 1.0
        np.testing.assert_allclose(
            Solution(solution.theta @ R, solution.a @ R, solution.d).eta(), solution.eta()
        )
    reflection = turn(30.0) @ np.diag([1.0, -1.0])
    wrong = Solution(solution.theta @ reflection.T, solution.a @ reflection, solution.d)
    np.testing.assert_allclose(wrong.eta(), solution.eta(), atol=1e-12)


def test_the_study_s_rotation_decorrelates_the_logits_as_reported() -> None:
    """The wrongly rotated logits correlate about .5 with the true ones at 30 degrees, .94 at 10 degrees."""
    rng = np.random.default_rng(0)
    solution = Solution(rng.standard_normal((400, 2)), rng.standard_normal((400, 2)), np.zeros(400))
    for degrees, expected in ((30.0, 0.5), (10.0, 0.94)):
        R = turn(degrees)
        wrong = Solution(solution.theta @ R.T, solution.a @ R, solution.d)
        r = np.corrcoef(wrong.eta().ravel(), solution.eta().ravel())[0, 1]
        assert r == pytest.approx(np.cos(np.radians(2 * degrees)), abs=0.02)
        assert r == pytest.approx(expected, abs=0.03)


def test_the_wrong_oblique_form_changes_the_logits() -> None:
    solution = random_solution(4, dims=2)
    T = np.array([[1.0, 0.6], [0.0, 0.8]])
    right = ident.oblique(solution, T)
    np.testing.assert_allclose(right.eta(), solution.eta(), atol=1e-12)
    wrong = Solution(solution.theta @ T.T, right.a, right.d)
    assert np.abs(wrong.eta() - solution.eta()).max() > 0.5


@pytest.mark.parametrize("bad", [np.diag([1.0, 1.1]), np.ones((2, 2)), np.eye(3), np.full((2, 2), np.nan)])
def test_a_matrix_that_is_not_orthogonal_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(InvariantError):
        ident.rotate(random_solution(0, dims=2), bad)


@pytest.mark.parametrize(
    "bad", [np.diag([1.0, 2.0]), np.array([[1.0, 1.0], [0.0, 1e-12]]), np.array([[1.0, 1.0], [0.0, 0.0]])]
)
def test_an_oblique_transform_without_unit_columns_or_singular_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(InvariantError):
        ident.oblique(random_solution(0, dims=2), bad)


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvariantError, match="theta"):
        Solution(np.full((2, 1), np.inf), np.ones((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="columns"):
        Solution(np.ones((2, 2)), np.ones((3, 1)), np.zeros(3))


def test_covariances_follow_the_parameters() -> None:
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal([0.5, -1.0, 2.0], np.diag([0.3, 0.2, 0.1]) + 0.05, size=200_000)
    T = np.array([[1.0, 0.6], [0.0, 0.8]])
    moved = np.column_stack([np.linalg.solve(T, draws[:, :2].T).T, draws[:, 2]])
    found = ident.rotate_item_cov(np.cov(draws.T)[None], np.linalg.inv(T).T)[0]
    np.testing.assert_allclose(found, np.cov(moved.T), atol=1e-10)
    theta_cov = np.cov(draws[:, :2].T)[None]
    np.testing.assert_allclose(
        ident.rotate_theta_cov(theta_cov, T)[0], np.cov((draws[:, :2] @ T).T), atol=1e-10
    )


# ------------------------------------------------------------------------------------- canonical frame


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(1, 4))
def test_the_canonical_frame_does_not_depend_on_the_frame_it_came_in(seed: int, dims: int) -> None:
    solution = random_solution(seed, dims=dims)
    first, R = ident.canonical(solution)
    second, _ = ident.canonical(ident.rotate(solution, random_rotation(seed + 7, dims)))
    np.testing.assert_allclose(second.a, first.a, atol=1e-8)
    np.testing.assert_allclose(second.theta, first.theta, atol=1e-8)
    np.testing.assert_allclose(solution.a @ R, first.a)
    gram = first.a.T @ first.a
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-8)
    assert (np.diff(np.diag(gram)) <= 1e-8).all()
    assert (first.a.sum(0) >= 0).all()


def test_tied_eigenvalues_give_one_frame() -> None:
    a = np.vstack([2.0 * np.eye(3), -np.eye(3), np.eye(3)])  # A'A is a multiple of the identity
    solution = Solution(np.random.default_rng(0).standard_normal((5, 3)), a, np.zeros(9))
    frames = [ident.canonical(ident.rotate(solution, random_rotation(seed, 3)))[0] for seed in range(6)]
    sums = [np.sort(frame.a.sum(0)) for frame in frames]
    for frame, total in zip(frames, sums, strict=True):
        np.testing.assert_allclose(total, sums[0], atol=1e-8)
        np.testing.assert_allclose(np.sort(np.abs(frame.a), axis=0), np.sort(np.abs(a), axis=0), atol=1e-8)


def test_signs_follow_the_anchor_that_an_axis_loads_on() -> None:
    rng = np.random.default_rng(2)
    a = np.zeros((40, 2))
    a[:25, 0], a[25:, 1] = 1.0 + 0.1 * rng.standard_normal(25), 0.8 + 0.1 * rng.standard_normal(15)
    solution = Solution(rng.standard_normal((6, 2)), a, np.zeros(40))
    anchors = np.zeros((2, 40))
    anchors[0, :25], anchors[1, 25:] = 1.0, -1.0
    turned, _ = ident.canonical(solution, anchors)
    assert turned.a[:25, 0].mean() > 0
    assert turned.a[25:, 1].mean() < 0
    plain, _ = ident.canonical(solution)
    assert (plain.a.sum(0) > 0).all()


def test_an_axis_whose_discriminations_cancel_gets_a_sign_too() -> None:
    a = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.5], [1.0, -0.5]])
    for flip in (np.diag([1.0, 1.0]), np.diag([1.0, -1.0])):
        turned, _ = ident.canonical(Solution(np.ones((2, 2)), a @ flip, np.zeros(4)))
        np.testing.assert_allclose(np.abs(turned.a), np.abs(a))
    zero, _ = ident.canonical(Solution(np.ones((2, 2)), np.zeros((4, 2)), np.zeros(4)))
    assert not zero.a.any()


# ------------------------------------------------------------------------------------------------ alignment


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(1, 4))
def test_procrustes_undoes_a_rotation(seed: int, dims: int) -> None:
    solution = random_solution(seed, dims=dims)
    R = random_rotation(seed + 3, dims)
    np.testing.assert_allclose(
        solution.a @ R @ ident.align(solution.a @ R, solution.a), solution.a, atol=1e-9
    )
    weights = np.ones(30)
    weights[20:] = 0.0
    spoiled = solution.a @ R
    spoiled[20:] += 5.0
    np.testing.assert_allclose(
        spoiled[:20] @ ident.align(spoiled, solution.a, weights), solution.a[:20], atol=1e-9
    )


def test_draws_are_aligned_as_single_runs_are() -> None:
    solution = random_solution(5)
    draws = np.stack([solution.a @ random_rotation(seed, 3) for seed in range(5)])
    for draw, R in zip(draws, ident.align_draws(draws, solution.a), strict=True):
        np.testing.assert_allclose(R, ident.align(draw, solution.a), atol=1e-12)


def noisy_runs(runs: int, noise: float, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((60, 3)) * np.array([2.0, 1.0, 0.5]) + np.array([1.0, 0.5, 0.2])
    made = [(truth + noise * rng.standard_normal(truth.shape)) @ random_rotation(s, 3) for s in range(runs)]
    return truth, made


def test_generalised_procrustes_finds_the_common_loadings() -> None:
    truth, runs = noisy_runs(8, 0.05)
    found = ident.generalised_procrustes(runs)
    expected, _ = ident.canonical(Solution(np.zeros((1, 3)), truth, np.zeros(60)))
    assert (ident.congruence(found.a, expected.a) > 0.998).all()
    assert found.residual < 0.01
    for run, R in zip(runs, found.rotations, strict=True):
        assert (ident.congruence(run @ R, found.a) > 0.99).all()
    exact = ident.generalised_procrustes([truth @ random_rotation(s, 3) for s in range(4)])
    np.testing.assert_allclose(exact.a, expected.a, atol=1e-8)
    assert exact.residual < 1e-14


def test_permuting_or_rotating_the_runs_changes_nothing_but_rounding() -> None:
    _, runs = noisy_runs(6, 0.4, seed=1)
    found = ident.generalised_procrustes(runs)
    order = [3, 1, 5, 0, 4, 2]
    permuted = ident.generalised_procrustes([runs[i] for i in order])
    np.testing.assert_allclose(permuted.a, found.a, atol=1e-9)
    np.testing.assert_allclose(permuted.rotations, found.rotations[order], atol=1e-8)
    rotated = ident.generalised_procrustes([run @ random_rotation(90 + i, 3) for i, run in enumerate(runs)])
    np.testing.assert_allclose(rotated.a, found.a, atol=1e-7)


def test_generalised_procrustes_refuses_nothing_and_mixed_shapes() -> None:
    with pytest.raises(ValueError, match="no run"):
        ident.generalised_procrustes([])
    with pytest.raises(ValueError, match="shapes"):
        ident.generalised_procrustes([np.ones((3, 1)), np.ones((3, 2))])


def test_congruence_closed_forms() -> None:
    a = np.array([[1.0, 1.0, 0.0], [2.0, -1.0, 0.0]])
    b = np.array([[2.0, 1.0, 1.0], [4.0, 1.0, 1.0]])
    np.testing.assert_allclose(ident.congruence(a, b), [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(ident.congruence(a, -a), [-1.0, -1.0, 0.0])


def test_positive_means_alone_give_a_high_congruence() -> None:
    """Tucker's coefficient is no correlation: unrelated loadings with positive means agree by it."""
    rng = np.random.default_rng(0)
    a, b = 1.0 + 0.5 * rng.standard_normal((2, 5000, 1))
    assert ident.congruence(a, b)[0] == pytest.approx(0.8, abs=0.01)
    assert abs(np.corrcoef(a[:, 0], b[:, 0])[0, 1]) < 0.04


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_dimensions_are_matched_by_signed_permutation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((50, 4))
    order, signs = rng.permutation(4), rng.choice([-1.0, 1.0], 4)
    matched, permutation, found = ident.match(a[:, order] * signs, a)
    np.testing.assert_allclose(matched, a)
    np.testing.assert_array_equal(order[permutation], np.arange(4))
    np.testing.assert_allclose(found, signs[permutation])


# ------------------------------------------------------------------------------------ simple structure


def test_quartimin_of_harman_s_physical_variables() -> None:
    found = ident.quartimin(HARMAN)
    np.testing.assert_allclose(found.loadings, HARMAN_QUARTIMIN, atol=5e-6)
    assert found.phi[0, 1] == pytest.approx(0.472746, abs=2e-6)
    assert found.starts_agreeing == found.starts == 100
    squares = HARMAN_QUARTIMIN**2
    assert found.criterion == pytest.approx(0.5 * (squares[:, 0] * squares[:, 1]).sum(), rel=1e-4)


def test_quartimin_of_three_factors_agrees_with_other_implementations() -> None:
    """As statsmodels 0.14 (oblimin, gamma 0) and factor_analyzer 0.5 (oblimin) on the same matrix."""
    rng = np.random.default_rng(5)
    a = np.zeros((24, 3))
    a[np.arange(24), np.arange(24) % 3] = rng.uniform(0.5, 2, 24)
    a += 0.15 * rng.normal(size=(24, 3))
    a = a @ np.linalg.cholesky(np.array([[1, 0.4, 0.2], [0.4, 1, 0.3], [0.2, 0.3, 1]]))
    found = ident.quartimin(a)
    expected = [
        [1.760316, 0.080744, -0.105704],
        [-0.017411, 1.548075, 0.003273],
        [-0.139860, -0.005762, 1.250222],
        [0.878316, -0.177190, 0.006215],
        [-0.156920, 0.377071, 0.028683],
    ]
    np.testing.assert_allclose(found.loadings[:5], expected, atol=1e-5)
    np.testing.assert_allclose(found.phi[np.triu_indices(3, 1)], [0.390918, 0.091478, 0.275625], atol=1e-5)
    varimax = ident.varimax(a)
    expected = [
        [1.728909, 0.443336, -0.055756],
        [0.261844, 1.511993, 0.154516],
        [-0.098621, 0.185721, 1.226009],
        [0.825322, 0.018804, 0.008862],
        [-0.084334, 0.340005, 0.061570],
    ]
    np.testing.assert_allclose(varimax.loadings[:5], expected, atol=1e-5)
    np.testing.assert_allclose(varimax.T.T @ varimax.T, np.eye(3), atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), dims=st.integers(2, 3))
def test_quartimin_does_not_depend_on_the_frame_and_recovers_simple_structure(seed: int, dims: int) -> None:
    rng = np.random.default_rng(seed)
    simple = np.zeros((60, dims))
    simple[np.arange(60), np.arange(60) % dims] = rng.uniform(0.5, 2.0, 60)
    phi = np.full((dims, dims), 0.3) + 0.7 * np.eye(dims)
    a = simple @ np.linalg.cholesky(phi)  # in a frame where theta ~ N(0, I)
    found = ident.quartimin(a, starts=20)
    assert found.criterion == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(found.phi, phi, atol=1e-3)
    np.testing.assert_allclose(ident.match(found.loadings, simple)[0], simple, atol=1e-2)
    turned = ident.quartimin(a @ random_rotation(seed, dims), starts=20)
    np.testing.assert_allclose(turned.loadings, found.loadings, atol=2e-3)


def test_local_minima_are_counted() -> None:
    a = np.random.default_rng(5).standard_normal((6, 4))
    found = ident.quartimin(a, starts=60, seed=3)
    assert found.starts_agreeing < found.starts
    assert len(found.minima) > 1
    assert found.criterion == pytest.approx(found.minima[0], rel=1e-6)
    assert found.criterion == pytest.approx(min(found.minima), rel=1e-9)
    again = ident.quartimin(a, starts=60, seed=3)
    np.testing.assert_array_equal(again.T, found.T)


def test_degenerate_loadings_are_rotated_without_a_crash() -> None:
    one = ident.quartimin(np.array([[-1.0], [-2.0], [0.5]]))
    np.testing.assert_allclose(one.T, [[-1.0]])
    zero = ident.quartimin(np.zeros((5, 2)))
    np.testing.assert_allclose(zero.T, np.eye(2))
    assert not zero.loadings.any()
    a = np.random.default_rng(0).standard_normal((20, 2))
    a[:, 1] = 0.0
    collapsed = ident.quartimin(a)
    assert np.isfinite(collapsed.loadings).all()
    assert collapsed.criterion == pytest.approx(0.0, abs=1e-12)


# ---------------------------------------------------------------------------------------- item numbers


def test_item_numbers_closed_forms() -> None:
    a, d = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]]), np.array([5.0, -2.0, 1.0])
    np.testing.assert_allclose(ident.mdisc(a), [5.0, 1.0, 0.0])
    np.testing.assert_allclose(ident.mdiff(a, d), [-1.0, 2.0, np.nan])
    found = ident.angles(a, np.eye(2))
    np.testing.assert_allclose(
        found[:2], [[np.degrees(np.arccos(0.6)), np.degrees(np.arccos(0.8))], [0.0, 90.0]]
    )
    assert np.isnan(found[2]).all()


def test_the_cosine_of_an_angle_is_the_correlation_of_the_logit_with_the_ability() -> None:
    theta = np.random.default_rng(0).standard_normal((300_000, 2))
    T = np.array([[1.0, 0.6], [0.0, 0.8]])
    a = np.array([[0.5, 1.2]])
    cosine = np.cos(np.radians(ident.angles(a, T)[0]))
    r = [np.corrcoef(theta @ a[0], theta @ T[:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(cosine, r, atol=0.01)


def test_intervals_agree_with_draws() -> None:
    rng = np.random.default_rng(0)
    mean, cov = (
        np.array([1.2, 0.5, -0.8]),
        np.array([[0.02, 0.005, 0.003], [0.005, 0.03, -0.004], [0.003, -0.004, 0.05]]),
    )
    draws = rng.multivariate_normal(mean, cov, size=400_000)
    T = np.array([[1.0, 0.6], [0.0, 0.8]])
    low, high = ident.mdisc_interval(mean[None, :2], cov[None])[0]
    np.testing.assert_allclose([low, high], np.quantile(ident.mdisc(draws[:, :2]), [0.025, 0.975]), atol=0.03)
    low, high = ident.mdiff_interval(mean[None, :2], mean[2:], cov[None])[0]
    along = draws[:, :2] @ (mean[:2] / np.linalg.norm(mean[:2]))
    np.testing.assert_allclose([low, high], np.quantile(-draws[:, 2] / along, [0.025, 0.975]), atol=0.02)
    spread = np.quantile(ident.angles(draws[:, :2], T), [0.025, 0.975], axis=0).T
    np.testing.assert_allclose(ident.angle_interval(mean[None, :2], cov[None], T)[0], spread, atol=1.5)


def test_intervals_of_flat_items_are_open_not_wrong() -> None:
    cov = np.eye(3)[None] * np.array([0.5, 0.5, 0.1])[:, None]
    assert np.isnan(ident.mdiff_interval(np.array([[0.1, 0.1]]), np.array([1.0]), cov)).all()
    assert ident.mdisc_interval(np.array([[0.1, 0.1]]), cov)[0, 0] == 0.0
    on_axis = ident.angle_interval(np.array([[1.0, 0.0]]), 0.01 * cov, np.eye(2))[0, 0]
    assert on_axis[0] == 0.0
    assert on_axis[1] == pytest.approx(np.degrees(1.96 * np.sqrt(0.005)), rel=0.01)
    with pytest.raises(ValueError, match="level"):
        ident.mdisc_interval(np.ones((1, 2)), cov, level=95)
