"""New models are placed where they belong, with intervals that cover, and are told apart where they do not fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from ability_fixture import Floats, answers, calibration_of, newcomers
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import beta

from benchmirt import identification as ident
from benchmirt import inference, matrix
from benchmirt.ability import calibrate, calibration, prediction, scores
from benchmirt.ability.calibration import Calibration
from benchmirt.ability.newcomers import match
from benchmirt.ability.person_fit import person_fit
from benchmirt.ability.posterior import posterior
from benchmirt.ability.response import items_of, response
from benchmirt.dimensions import consensus, labels
from benchmirt.dimensions.families import LeaveOneOut
from benchmirt.errors import InputError
from benchmirt.figures import newcomers as figure


def sd_of(cov: Floats) -> Floats:
    return np.sqrt(np.einsum("nkk->nk", cov))


def dense(known: Calibration, responses: NDArray[np.int8], points: int = 141) -> tuple[Floats, Floats]:
    """Posterior means and standard deviations of two abilities, summed over a fine grid in float64."""
    line = np.linspace(-5.5, 5.5, points)
    grid = np.array(np.meshgrid(line, line, indexing="ij")).reshape(2, -1).T
    x = np.column_stack([grid, np.ones(len(grid))])
    mean = x @ np.column_stack([known.a, known.d]).T
    variance = np.einsum("gk,jkl,gl->gj", x, known.item_cov, x)
    p = known.floor + (1 - known.floor) * expit(mean / np.sqrt(1 + np.pi / 8 * variance))
    moments = []
    for row in responses:
        seen = row >= 0
        log = np.log(np.where(row[seen] == 1, p[:, seen], 1 - p[:, seen])).sum(1) - 0.5 * (grid**2).sum(1)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        centre = weight @ grid
        moments.append((centre, np.sqrt(weight @ (grid - centre) ** 2)))
    return np.array([one for one, _ in moments]), np.array([one for _, one in moments])


@pytest.mark.parametrize(("items", "floor"), [(5, 0.25), (60, 0.25), (60, 0.0)])
def test_the_posterior_is_that_of_a_fine_grid(items: int, floor: float) -> None:
    known = calibration_of(items, seed=items, floor=floor)
    responses = answers(known, 1.3 * np.random.default_rng(1).normal(size=(30, 2)), seed=2)
    responses[0], responses[1] = 1, 0
    responses[2, : items // 2] = -1
    found = posterior(responses, items_of(known))
    mean, sd = dense(known, responses)
    assert (np.abs(found.mean - mean) / sd).max() < 0.02
    assert np.abs(sd_of(found.cov) / sd - 1).max() < 0.02
    assert np.allclose(found.weights.sum(axis=1), 1, atol=1e-5)


def test_one_rasch_item_has_the_known_posterior() -> None:
    """Symmetry: at d = 0 a right and a wrong answer move the mean by the same amount, E[t tanh(t / 2)] under N(0, 1)."""
    known = replace(
        calibration_of(1, seed=0, dims=1, error=0.0),
        a=np.ones((1, 1)),
        d=np.zeros(1),
        T=np.eye(1),
    )
    found = posterior(np.array([[1], [0], [-1]], dtype=np.int8), items_of(known))
    t, w = np.polynomial.hermite_e.hermegauss(80)
    exact = (w / w.sum()) @ (t * np.tanh(t / 2))
    assert found.mean[:, 0] == pytest.approx([exact, -exact, 0.0], abs=2e-4)
    assert found.cov[2, 0, 0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("items", "error", "floor"), [(6, 0.4, 0.25), (60, 0.5, 0.25)])
def test_intervals_cover_at_their_rate_with_the_error_of_the_items(
    items: int, error: float, floor: float
) -> None:
    known = calibration_of(items, seed=3, error=error, floor=floor)
    theta = np.random.default_rng(4).normal(size=(2000, 2))
    found = posterior(answers(known, theta, seed=5), items_of(known))
    covered = (np.abs(found.mean - theta) < 1.96 * sd_of(found.cov)).mean()
    assert abs(covered - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 2000)


def test_without_the_error_of_the_items_intervals_would_not_cover() -> None:
    known = calibration_of(60, seed=3, error=1.2, floor=0.25)
    theta = np.random.default_rng(4).normal(size=(2000, 2))
    responses = answers(known, theta, seed=5)
    covered = {}
    for error in (1.2, 0.0):
        found = posterior(responses, items_of(replace(known, item_cov=known.item_cov * (error > 0))))
        covered[error] = (np.abs(found.mean - theta) < 1.96 * sd_of(found.cov)).mean()
    assert abs(covered[1.2] - 0.95) < 0.015
    assert covered[0.0] < 0.92


@dataclass(frozen=True)
class Fitted:
    """A small calibration that was really fitted, and its truth: a and d, abilities of the models."""

    a: Floats
    d: Floats
    theta: Floats
    data: matrix.ResponseData
    consensus: consensus.Consensus


@cache
def fitted(seed: int) -> Fitted:
    random = np.random.default_rng(seed)
    loads = np.where(np.arange(120)[:, None] < 60, [1, 0.15], [0.15, 1])
    a, d = np.abs(random.normal(1.2, 0.4, size=(120, 2))) * loads, random.normal(size=120)
    theta = random.normal(size=(60, 2))
    responses = (random.uniform(size=(60, 120)) < expit(theta @ a.T + d)).astype(np.int8)
    data = matrix.from_arrays(responses, benchmark=["x"] * 60 + ["y"] * 60)
    record = inference.fit(data, engine="em", dims=2, seed=0)
    return Fitted(a, d, theta, data, consensus.build([record], fit="corrected", starts=3))


def test_intervals_cover_after_a_small_calibration_was_really_fitted() -> None:
    """The truth is brought into the frame of the fit: mean 0 and covariance I of its models, axes aligned on the items."""
    covered = []
    for seed in range(3):
        truth, found = fitted(seed), fitted(seed).consensus
        centre, scale = truth.theta.mean(0), np.linalg.cholesky(np.cov(truth.theta.T, bias=True))
        R = ident.align(truth.a @ scale, found.a)
        random = np.random.default_rng(100 + seed)
        new = random.normal(size=(1000, 2))
        outcomes = (random.uniform(size=(1000, 120)) < expit(new @ truth.a.T + truth.d)).astype(np.int8)
        placed = np.linalg.solve(scale, (new - centre).T).T @ R
        known = replace(
            calibration_of(120, seed=0), a=found.a, d=found.d, item_cov=found.item_cov, floor=np.zeros(120)
        )
        made = posterior(outcomes, items_of(known))
        covered.append((np.abs(made.mean - placed) < 1.96 * sd_of(made.cov)).mean())
    assert 0.935 < np.mean(covered) < 0.97


def test_the_order_of_items_and_of_models_does_not_matter() -> None:
    known = calibration_of(60, seed=6, bare=4)
    responses = answers(known, np.random.default_rng(7).normal(size=(8, 2)), seed=8)
    names = list(known.items)
    order, who = np.random.default_rng(9).permutation(60), np.random.default_rng(10).permutation(8)
    models = [f"m{n}" for n in range(8)]
    one = scores.score(known, match(known, models, names, responses.T))
    two = scores.score(
        known,
        match(
            known,
            [models[n] for n in who],
            [names[j] for j in order],
            responses[np.ix_(who, order)].T,
        ),
    )
    pd.testing.assert_frame_equal(
        one.scores.iloc[who].reset_index(drop=True), two.scores, rtol=1e-5, atol=1e-6
    )


def test_all_right_all_wrong_and_five_items_give_finite_wide_answers() -> None:
    known = calibration_of(60, seed=11)
    known = replace(known, a=np.abs(known.a))
    responses = np.full((4, 60), -1, dtype=np.int8)
    responses[0], responses[1] = 1, 0
    responses[2, :5] = [1, 0, 1, 1, 0]
    responses[3, 0] = 1
    table = scores.score(known, newcomers(known, responses)).scores
    shown = [name for name in table if name.startswith("ability")]
    assert np.isfinite(table[shown].to_numpy(dtype=float)).all()
    assert (table.loc[0, ["ability_1", "ability_2"]] > 0.9).all()
    assert (table.loc[1, ["ability_1", "ability_2"]] < -0.9).all()
    width = table["ability_1_high"] - table["ability_1_low"]
    assert (width[[2, 3]] > 2.4).all()
    assert (width < 3.93).all(), "never wider than the prior"
    assert table.loc[0, "note"].startswith("all right")
    assert table.loc[1, "note"].startswith("all wrong")
    assert "5 outcomes" in table.loc[2, "note"]
    assert "fits worse" not in table.loc[2, "note"]  # what is not known is not held against a record
    assert table.loc[2:3, "person_fit"].isna().all()


def test_a_model_of_the_study_is_told_apart() -> None:
    known = calibration_of(60, seed=11)
    new = newcomers(known, answers(known, np.zeros((2, 2)), seed=1))
    table = scores.score(known, replace(new, models=("known-3", "fresh"))).scores
    assert "study's own models" in table.loc[0, "note"]
    assert pd.isna(table.loc[1, "note"])


# ------------------------------------------------------------------------------------------ person fit


def test_person_fit_has_mean_zero_and_sd_one_under_the_model() -> None:
    known = calibration_of(60, seed=12, error=0.4, floor=0.25)
    theta = np.random.default_rng(13).normal(size=(2000, 2))
    responses = answers(known, theta, seed=14)
    items_known = items_of(known)
    found = person_fit(posterior(responses, items_known).mean, responses, items_known)
    assert abs(found.statistic.mean()) < 0.15
    assert found.statistic.std() == pytest.approx(1.0, abs=0.06)
    assert (found.p < 0.05).mean() == pytest.approx(0.05, abs=0.016)
    assert (found.p < 0.01).mean() == pytest.approx(0.01, abs=0.007)


def test_person_fit_uncorrected_for_the_estimate_would_vary_too_little() -> None:
    """What Snijders' correction is for: plain l_z with estimated abilities has a standard deviation below 1."""
    known = replace(calibration_of(60, seed=15, error=0.0, floor=0.25), d=np.full(60, 1.5))
    responses = answers(known, np.random.default_rng(16).normal(size=(2000, 2)), seed=17)
    items_known = items_of(known)
    mean = posterior(responses, items_known).mean
    expected = response(jnp.asarray(mean, jnp.float32), items_known)
    p = np.asarray(expected.probability, np.float64)
    logit = np.log(p / (1 - p))
    plain = ((responses - p) * logit).sum(1) / np.sqrt((p * (1 - p) * logit**2).sum(1))
    corrected = person_fit(mean, responses, items_known).statistic
    assert plain.std() < 0.85
    assert abs(corrected.std() - 1) < 0.1


def test_person_fit_detects_a_record_that_cannot_be() -> None:
    """A model with leaked answers to the hardest questions fails easy ones; one with its columns mixed up answers at random."""
    known = calibration_of(200, seed=18, error=0.1)
    theta = np.random.default_rng(19).normal(size=(50, 2))
    usual = answers(known, theta, seed=20)
    leaked, mixed = usual.copy(), usual.copy()
    leaked[:, np.argsort(known.d)[:30]] = 1
    for row in mixed:
        np.random.default_rng(21).shuffle(row)
    items_known = items_of(known)
    found = {
        name: person_fit(posterior(one, items_known).mean, one, items_known)
        for name, one in (("usual", usual), ("leaked", leaked), ("mixed", mixed))
    }
    assert (found["usual"].p < 0.01).mean() < 0.1
    assert (found["leaked"].p < 0.01).mean() > 0.9
    assert (found["mixed"].p < 0.01).mean() > 0.9


# ----------------------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("own_deviation", [0.0, 0.6])
def test_a_predicted_benchmark_is_calibrated(own_deviation: float) -> None:
    """One benchmark is hidden, on which models deviate by as much as the calibration says."""
    known = calibration_of(120, seed=22, error=0.4)
    known = replace(
        known, benchmark_table=known.benchmark_table.assign(own_deviation=[own_deviation, 0.0, 0.0])
    )
    hidden = np.arange(120) % 3 == 0
    random = np.random.default_rng(23)
    theta, shift = random.normal(size=(1000, 2)), own_deviation * random.normal(size=(1000, 1))
    whole = answers(known, theta, seed=24, shift=shift * hidden)
    shown = np.where(hidden, np.int8(-1), whole)
    table = scores.score(known, newcomers(known, shown)).predictions
    assert (table["benchmark"] == "benchmark-0").all()
    assert ((table["run"] == 0) & table["observed"].isna()).all()
    truth = whole[:, hidden].mean(axis=1)
    assert ((table["low"] <= truth) & (truth <= table["high"])).mean() == pytest.approx(0.95, abs=0.025)
    assert np.polyfit(table["predicted"], truth, 1)[0] == pytest.approx(1.0, abs=0.1)
    assert (table["predicted"] - truth).mean() == pytest.approx(0.0, abs=0.012)


def test_what_was_answered_counts_as_it_came_out_and_items_without_parameters_as_usual() -> None:
    """Where half a benchmark was run, the score over all its items lies between what is certain and what is possible."""
    known = calibration_of(60, seed=25, bare=3)
    whole = answers(known, np.random.default_rng(26).normal(size=(8, 2)), seed=27)
    shown = whole.copy()
    half = (np.arange(60) % 3 == 1) & (np.arange(60) < 30)
    shown[:4, half] = -1
    table = scores.score(known, newcomers(known, shown)).predictions
    # nobody was run on the items 60 to 62, which have no parameters: every benchmark has something to predict
    assert len(table) == 24
    rows = table[(table["benchmark"] == "benchmark-1") & table["model"].isin([f"new-{n}" for n in range(4)])]
    right = (shown[:4, np.arange(60) % 3 == 1] == 1).sum(axis=1)
    assert (rows["run"] == 10).all()
    assert np.allclose(rows["observed"], right / 10)
    assert (rows["low"] * 21 >= right).all()
    assert (rows["high"] * 21 <= right + 11).all()
    full = table[(table["benchmark"] == "benchmark-0") & (table["model"] == "new-5")].iloc[0]
    passed = (whole[5, np.arange(60) % 3 == 0] == 1).sum()
    usual = 50.5 / 51  # all 50 of the study's models were right
    assert full["predicted"] == pytest.approx((passed + usual) / 21)
    assert full["high"] - full["low"] < 1 / 21 + 1e-9


def test_a_wholly_run_benchmark_needs_no_prediction() -> None:
    known = calibration_of(60, seed=28)
    responses = answers(known, np.zeros((2, 2)), seed=29)
    assert scores.score(known, newcomers(known, responses)).predictions.empty


def test_own_deviations_are_found_where_they_are_planted() -> None:
    known = calibration_of(180, seed=30, error=0.0)
    random = np.random.default_rng(31)
    theta = random.normal(size=(400, 2))
    planted = np.array([0.0, 0.4, 0.8])
    shift = (planted * random.normal(size=(400, 3)))[:, np.arange(180) % 3]
    responses = answers(known, theta, seed=32, shift=shift)
    groups = calibrate.memberships(known.benchmark_of(), ["benchmark-0", "benchmark-1", "benchmark-2"])
    found, used = prediction.own_deviations(np.stack([theta] * 3), responses, groups, items_of(known))
    assert found == pytest.approx(planted, abs=0.12)
    assert (used == 400).all()


def test_bounds_of_a_share_are_those_of_the_beta_distribution() -> None:
    mean, variance = np.array([0.3, 0.99, 0.0, 0.5]), np.array([0.01, 0.0004, 0.0, 0.0])
    low, high = prediction.interval(mean, variance)
    size = 0.3 * 0.7 / 0.01 - 1
    assert (low[0], high[0]) == pytest.approx(beta.ppf([0.025, 0.975], 0.3 * size, 0.7 * size))
    assert 0.9 < low[1] < 0.99 < high[1] <= 1
    assert (low[2], high[2], low[3], high[3]) == (0, 0, 0.5, 0.5)


# -------------------------------------------------------------------------------------------- refusals


def refusal(run: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        run()
    return str(caught.value)


def test_a_bare_vector_is_refused_in_one_sentence() -> None:
    known = calibration_of(20, seed=33)
    said = refusal(lambda: match(known, ["m"], None, np.ones((20, 1), dtype=np.int8)))
    assert "bare vector" in said
    assert "question_id" in said
    assert "\n" not in said


def test_an_outcome_that_is_neither_right_nor_wrong_is_refused_and_nan_is_missing() -> None:
    known = calibration_of(20, seed=35)
    names = [f"q{item}" for item in range(20)]
    outcomes = np.tile([[1.0], [0.0]], (10, 2))
    outcomes[4, 1] = np.nan
    new = match(known, ["m", "n"], names, outcomes)
    assert new.responses[1, :6].tolist() == [1, 0, 1, 0, -1, 0]
    assert scores.score(known, new).scores["outcomes"].tolist() == [20, 19]
    for odd in (2.0, 0.9, np.inf):
        outcomes[7, 0] = odd
        said = refusal(lambda: match(known, ["m", "n"], names, outcomes))
        assert '"q7" of "m"' in said
        assert f"found {odd}; expected 1, 0, or -1 or NaN" in said
    outcomes[7, 0] = 0
    assert "another shape" in refusal(lambda: match(known, ["m", "n"], names, outcomes.T))
    assert 'item stands twice: found "q0"' in refusal(
        lambda: match(known, ["m", "n"], ["q0", "q0", *names[2:]], outcomes)
    )
    assert 'model stands twice: found "m"' in refusal(lambda: match(known, ["m", "m"], names, outcomes))


def test_texts_and_items_without_names_are_refused() -> None:
    known = calibration_of(3, seed=33)
    texts = np.array([["1"], ["0"], ["1"]])
    assert 'found the text "1"' in refusal(lambda: match(known, ["m"], list(known.items), texts))
    unnamed = pd.DataFrame({"id": known.items})
    said = refusal(lambda: match(known, ["m"], unnamed, np.ones((3, 1), dtype=np.int8)))
    assert 'the column "question_id"' in said


def test_items_that_are_not_in_the_calibration_are_listed_and_refused_if_none_is() -> None:
    known = calibration_of(20, seed=34, bare=1)
    names = ["q3", "q5", "strange", "q20", "unanswered"]
    outcomes = np.array([[1], [0], [1], [1], [-1]], dtype=np.int8)
    new = match(known, ["m"], names, outcomes)
    assert new.unmatched[["question_id", "models"]].to_numpy().tolist() == [["strange", 1], ["q20", 1]]
    assert "not in the calibration" in new.unmatched["why"][0]
    assert "none of the study's models apart" in new.unmatched["why"][1]
    assert (new.responses[0, [3, 5, 20]] == [1, 0, 1]).all()
    assert (new.responses >= 0).sum() == 3
    said = refusal(lambda: match(known, ["m"], ["Q-3", "zzz"], outcomes[:2]))
    assert "none of the items is in the calibration" in said
    assert '"q3"' in said


def test_another_question_or_score_under_a_known_name_does_not_count() -> None:
    known = calibration_of(4, seed=35)
    own = known.item_table.assign(
        content_hash=["aa", "bb", None, "dd"], scored_as=["accuracy", None, None, "safe"]
    )
    known = replace(known, item_table=own)
    table = pd.DataFrame(
        {
            "question_id": ["q0", "q1", "q2", "q3"],
            "content_hash": ["aa", "xx", "cc", "dd"],
            "scored_as": ["accuracy", "accuracy", None, "unsafe"],
        }
    )
    new = match(known, ["m"], table, np.ones((4, 1), dtype=np.int8))
    assert new.unmatched["question_id"].tolist() == ["q1", "q3"]
    assert (new.responses[0] == [1, -1, 1, -1]).all()


def test_a_model_without_any_usable_outcome_is_refused() -> None:
    known = calibration_of(5, seed=36)
    outcomes = np.array([[1, -1], [0, -1]], dtype=np.int8)
    said = refusal(lambda: match(known, ["good", "silent"], ["q0", "q1"], outcomes))
    assert '"silent"' in said


# ------------------------------------------------------------------------------------------ the folder


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    known = calibration_of(12, seed=37, floor=0.25, bare=2)
    calibration.write(known, tmp_path / "one")
    again = calibration.read(tmp_path / "one")
    for name in ("a", "d", "item_cov", "floor", "ceiling", "T"):
        assert np.array_equal(getattr(again, name), getattr(known, name)), name
    assert (again.items, again.labels, again.named) == (known.items, known.labels, known.named)
    pd.testing.assert_frame_equal(again.model_table, known.model_table)
    calibration.write(again, tmp_path / "two")
    for name in calibration.FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert "simulated" in (tmp_path / "one" / "README.md").read_text()


def test_both_frames_give_the_same_logits_and_the_same_variance_of_them(tmp_path: Path) -> None:
    known = calibration_of(9, seed=38)
    calibration.write(known, tmp_path)
    rows = pd.read_csv(tmp_path / "items.csv.gz")
    theta = np.array([0.7, -1.2])
    shown = theta @ known.T
    own = known.a @ theta + known.d
    assert np.allclose(rows[["display_a_1", "display_a_2"]] @ shown + rows["display_d"], own)
    names = ["a_1", "a_2", "d"]
    for prefix, at in (("", theta), ("display_", shown)):
        x = [*at, 1.0]
        total = sum(
            x[k] * x[m] * rows[f"{prefix}cov_{names[min(k, m)]}_{names[max(k, m)]}"]
            for k in range(3)
            for m in range(3)
        )
        assert np.allclose(total, np.einsum("k,jkl,l->j", [*theta, 1.0], known.item_cov, [*theta, 1.0]))


def test_a_damaged_or_foreign_folder_is_refused(tmp_path: Path) -> None:
    assert "calibration.json" in refusal(lambda: calibration.read(tmp_path))
    calibration.write(calibration_of(5, seed=39), tmp_path)
    models = tmp_path / "models.csv"
    models.write_text(models.read_text().replace("known-1,", "known-x,"))
    assert "models.csv" in refusal(lambda: calibration.read(tmp_path))
    models.unlink()
    assert "missing" in refusal(lambda: calibration.read(tmp_path))
    about = json.loads((tmp_path / "calibration.json").read_text())
    (tmp_path / "calibration.json").write_text(json.dumps({**about, "version": 99}))
    assert "99" in refusal(lambda: calibration.read(tmp_path))
    (tmp_path / "calibration.json").write_text("[]")
    assert "not a calibration" in refusal(lambda: calibration.read(tmp_path))


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("d", "deep", 'column "d"'),
        ("d", "", 'column "d"'),
        (
            "cov_d_d",
            "-1",
            'column "cov_d_d": the calibrated question "q1" has a parameter that cannot be: found -1.0',
        ),
        (
            "cov_d_d",
            "",
            'row 3, column "cov_d_d": the calibrated question "q1" has a parameter that cannot be',
        ),
        ("cov_a_1_a_2", "50", 'question "q1" has covariances that cannot be together'),
        ("a_1", "1_000", 'row 3, column "a_1": found "1_000"; expected a number from'),
        ("a_1", "1e300", 'row 3, column "a_1": found "1e300"; expected a number from'),
        ("a_1", "inf", 'row 3, column "a_1": found "inf"'),
        ("a_1", "0.123", "the canonical frame and of the one shown do not agree"),
        ("display_d", "0.123", "the canonical frame and of the one shown do not agree"),
        ("floor", " 0.5", 'column "floor": found " 0.5"'),
        ("mean", "2.5", 'column "mean": found "2.5"; expected a number from 0 to 1, or nothing'),
        ("mean", "", 'question "q1" has outcomes and no mean'),
        ("observed", "-5", 'column "observed": found "-5"; expected a whole number from 0'),
        ("observed", "2.5", 'column "observed": found "2.5"'),
        ("options", "0x4", 'column "options": found "0x4"'),
        ("inverted", "", 'column "inverted": found nothing; expected True or False'),
        ("calibrated", "", 'column "calibrated": found nothing; expected True or False'),
        ("calibrated", "False", 'question "q1" has a parameter and is not said to be calibrated'),
        ("benchmark", "", 'column "benchmark": found nothing'),
        ("benchmark", "other", 'this benchmark is not in benchmarks.csv: found "other"'),
        ("content_hash", None, 'lacks a column: expected "content_hash"'),
        ("floor", "1", 'column "floor": the calibrated question "q1"'),
        ("calibrated", "maybe", 'column "calibrated": found'),
        ("a_2", None, 'lacks a column: expected "a_2"'),
    ],
)
def test_edited_items_are_refused_though_the_hashes_are_right(
    tmp_path: Path, column: str, value: str | None, told: str
) -> None:
    calibration.write(calibration_of(5, seed=39), tmp_path)
    path = tmp_path / "items.csv.gz"
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if value is None:
        rows = rows.drop(columns=column)
    else:
        rows.loc[1, column] = value
    rows.to_csv(path, index=False)
    about = json.loads((tmp_path / "calibration.json").read_text())
    about["sha256"]["items.csv.gz"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "calibration.json").write_text(json.dumps(about))
    assert told in refusal(lambda: calibration.read(tmp_path))


def rewritten(folder: Path, name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Change a table of a calibration, and its hash with it."""
    change(pd.read_csv(folder / name, dtype=str, keep_default_na=False)).to_csv(folder / name, index=False)
    about = json.loads((folder / "calibration.json").read_text())
    about["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "calibration.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("models.csv", lambda t: t.drop(columns="ability_2"), 'lacks a column: expected "ability_2"'),
        ("models.csv", lambda t: t.drop(columns="model"), 'lacks a column: expected "model"'),
        ("models.csv", lambda t: pd.concat([t, t.head(1)]), 'column "model": found'),
        ("models.csv", lambda t: t.assign(person_fit="good"), 'column "person_fit": found'),
        ("benchmarks.csv", lambda t: t.drop(columns="own_deviation"), 'expected "own_deviation"'),
        ("benchmarks.csv", lambda t: pd.concat([t, t.head(1)]), "twice; expected each name once"),
        ("items.csv.gz", lambda t: pd.concat([t, t.head(1)]), "twice; expected each name once"),
        ("items.csv.gz", lambda t: t.drop(columns="observed"), 'expected "observed"'),
        ("items.csv.gz", lambda t: t[1:], 'row 2, column "items": items.csv.gz holds another number'),
        ("items.csv.gz", lambda t: t[:0], "a header but no rows"),
        ("items.csv.gz", lambda t: pd.concat([t, t[["d"]]], axis=1), "two columns have the same name"),
        (
            "models.csv",
            lambda t: t[1:],
            "models: this file of a calibration and its table of models do not agree",
        ),
        ("models.csv", lambda t: t.rename(columns={"person_fit": "Person_fit"}), 'found "Person_fit"'),
        ("models.csv", lambda t: t.assign(ability_1=""), 'row 2, column "ability_1": found nothing'),
        ("models.csv", lambda t: t.assign(ability_1="nan"), 'row 2, column "ability_1": found "nan"'),
        ("models.csv", lambda t: t.assign(ability_1_low="9"), "an interval ends before it begins"),
        ("benchmarks.csv", lambda t: t.assign(own_deviation="-1"), 'column "own_deviation": found "-1"'),
        ("benchmarks.csv", lambda t: t.assign(items="1_0"), 'column "items": found "1_0"'),
        ("benchmarks.csv", lambda t: t[1:], "this benchmark is not in benchmarks.csv"),
    ],
)
def test_other_tables_are_checked_too(tmp_path: Path, name: str, change: Any, told: str) -> None:
    calibration.write(calibration_of(5, seed=39), tmp_path)
    rewritten(tmp_path, name, change)
    assert told in refusal(lambda: calibration.read(tmp_path))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sha256": {}}, "expected the hashes of items.csv.gz, models.csv, benchmarks.csv"),
        ({"sha256": None}, "expected the hashes of"),
        ({"direction": [float("nan"), 0.0]}, "2 independent unit vectors"),
        ({"direction": [0, 0]}, "2 independent unit vectors"),
        ({"direction": "north"}, "2 independent unit vectors"),
        ({"direction": None}, "2 independent unit vectors"),
        ({"direction": [1.0]}, "2 independent unit vectors"),
        ({"name": None}, "a name of its own each"),
        ({"named": "no"}, "an entry with name, named and direction"),
        ({"ability": 2}, "an entry with name, named and direction"),
        ({"direction": [-1.0, 0.0]}, "the canonical frame and of the one shown do not agree"),
        (
            {"simulated": "no"},
            'simulated: this file of a calibration is not whole: found "no"; expected true or false',
        ),
        ({"simulated": None}, "found null; expected true or false"),
        ({"dims": True}, "dims: this file of a calibration is not whole"),
        ({"items": 99}, "its table of items do not agree: found 99"),
        ({"provenance": {}}, "provenance: this file"),
        ({"fit": None}, "fit: this file of a calibration is not whole: found null; expected a text"),
    ],
)
def test_edited_axes_are_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    calibration.write(calibration_of(5, seed=39), tmp_path)
    about = json.loads((tmp_path / "calibration.json").read_text())
    for key, value in change.items():
        (about if key in about else about["abilities"][0])[key] = value
    (tmp_path / "calibration.json").write_text(json.dumps(about))
    assert told in refusal(lambda: calibration.read(tmp_path))


@pytest.mark.parametrize("key", ["abilities", "dims", "sha256", "provenance"])
def test_a_calibration_that_is_not_whole_is_refused(tmp_path: Path, key: str) -> None:
    calibration.write(calibration_of(5, seed=39), tmp_path)
    about = json.loads((tmp_path / "calibration.json").read_text())
    (tmp_path / "calibration.json").write_text(json.dumps({k: v for k, v in about.items() if k != key}))
    assert "not whole" in refusal(lambda: calibration.read(tmp_path))


@pytest.mark.parametrize("part", ["a", "d", "item_cov"])
def test_the_largest_parameters_that_are_read_give_finite_abilities(part: str, tmp_path: Path) -> None:
    known = calibration_of(30, seed=39, benchmarks=2)
    responses = answers(known, np.random.default_rng(1).normal(size=(4, 2)), seed=2)
    responses[:, ::5] = -1
    if part == "item_cov":
        known.item_cov[:3] *= 1e6
    else:
        getattr(known, part)[:3] = 1e3
    calibration.write(known, tmp_path)
    again = calibration.read(tmp_path)
    found = scores.score(again, newcomers(again, responses))
    assert np.isfinite(found.scores.filter(like="ability").to_numpy()).all()
    assert np.isfinite(found.predictions[["predicted", "low", "high"]].to_numpy()).all()


@pytest.mark.parametrize("name", ["items.csv.gz", "models.csv", "benchmarks.csv"])
def test_tables_of_other_line_ends_and_orders_are_read_alike(tmp_path: Path, name: str) -> None:
    """The rows and the columns may stand in any order, where the hashes were made anew."""
    calibration.write(calibration_of(7, seed=39, bare=2), tmp_path)
    known = calibration.read(tmp_path)
    rewritten(tmp_path, name, lambda t: t.iloc[::-1, ::-1])
    again = calibration.read(tmp_path)
    place = [again.items.index(item) for item in known.items]
    assert np.array_equal(again.item_cov[place], known.item_cov)
    assert np.array_equal(again.a[place], known.a)


def test_abilities_are_shown_turned_so_that_more_is_better() -> None:
    """A study whose second ability is stored upside down gives the calibration that the same study upright gives."""
    data, found = fitted(0).data, fitted(0).consensus
    statistics = pd.DataFrame({"model": list(data.models)})
    for k in range(2):
        for name, shift in (("", 0.0), ("_low", -0.1), ("_high", 0.3)):
            statistics[f"ability_{k + 1}{name}"] = found.ability_theta[:, k] + shift
    entries = [
        {"ability": k + 1, "name": None, "display": f"ability {k + 1}", "orientation": sign}
        for k, sign in enumerate((1, -1))
    ]
    left_out = LeaveOneOut(
        "benchmark", ("x", "y"), np.stack([found.ability_theta] * 2), np.zeros((2, 120, 2), np.float32),
        np.ones((2, 2)), np.ones((2, 2)), np.ones(2, bool), data.models, data.items, data.hash,
    )  # fmt: skip

    class FakeStudy:
        name, title, results, filter, fits, config_sha256 = "s", "t", "r", {}, {"asymptotes": False}, "c"

    made = calibrate.build(
        FakeStudy(),  # type: ignore[arg-type]
        data,
        data.item_table,
        found,
        labels.Labels((), tuple(entries), None),
        statistics,
        left_out,
        simulated=True,
    )
    table = made.model_table
    assert np.allclose(table["ability_2"], -found.ability_theta[:, 1])
    assert np.allclose(table["ability_2_low"], table["ability_2"] - 0.3)
    assert np.allclose(found.theta @ made.T, table[["ability_1", "ability_2"]])
    assert made.benchmark_table["benchmark"].tolist() == ["x", "y"]
    with pytest.raises(InputError, match="not of this matrix"):
        calibrate.build(
            FakeStudy(),  # type: ignore[arg-type]
            matrix.from_arrays(1 - data.responses),
            data.item_table,
            found,
            labels.Labels((), tuple(entries), None),
            statistics,
            left_out,
            simulated=True,
        )


@pytest.mark.parametrize("dims", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_figure_shows_new_models_and_says_that_data_are_simulated(dims: int, tmp_path: Path) -> None:
    known = calibration_of(60, seed=41, dims=dims)
    responses = answers(known, np.random.default_rng(42).normal(size=(3, dims)), seed=43)
    table = scores.score(known, newcomers(known, responses)).scores
    paths = figure.draw(known, table, tmp_path / "abilities", simulated=True)
    assert [path.suffix for path in paths] == [".png", ".svg", ".pdf"]
    svg = paths[1].read_text()
    assert "Simulated data" in svg
    assert "3 new models" in svg
