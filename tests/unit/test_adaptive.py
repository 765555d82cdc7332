"""Adaptive tests choose by the known formulas, keep to their limits, stop in time, and save items where they can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ability_fixture import Floats, answers, calibration_of
from scipy.stats import spearmanr
from test_figures_draw import check_layout
from test_shortform_trial import LABELS, world

from benchmirt.ability.calibration import Calibration
from benchmirt.ability.posterior import posterior, posterior_of_own
from benchmirt.ability.response import items_of
from benchmirt.adaptive import selection, trial
from benchmirt.adaptive.replay import Takers, administer, in_list_order, in_random_order
from benchmirt.adaptive.selection import Exposure, Rules, choose, expected_weights, gains, gather
from benchmirt.adaptive.session import AdaptiveTest, Stop, pool_of
from benchmirt.dimensions import consensus as consensuses
from benchmirt.errors import InputError
from benchmirt.figures import adaptive as figure
from benchmirt.figures import style
from benchmirt.files import read_json
from benchmirt.inference import em
from benchmirt.resampling import weighted_correlation
from benchmirt.shortform import listing

NOTHING = np.zeros(0, dtype=np.intp)


def takers_of(known: Calibration, responses: np.ndarray, balance: Any = "none") -> Takers:
    return Takers((pool_of(known, balance),), np.zeros(len(responses), dtype=np.intp), responses)


def test_models_with_items_of_their_own_are_placed_as_alone() -> None:
    known = calibration_of(50, seed=1, floor=0.25)
    responses = answers(known, np.random.default_rng(2).normal(size=(5, 2)), seed=3)
    random = np.random.default_rng(4)
    places = np.stack([random.permutation(50)[:40] for _ in range(5)])
    own = np.take_along_axis(responses, places, axis=1)
    own[2, 7:] = -1
    found = posterior_of_own(own, gather(items_of(known), places))
    for model in range(5):
        alone = posterior(own[[model]], items_of(known, places[model]))
        assert found.mean[model] == pytest.approx(alone.mean[0], abs=1e-4)
        assert found.cov[model] == pytest.approx(alone.cov[0], abs=1e-4)


# -- choice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["D", "A"])
def test_one_ability_is_tested_by_maximum_fisher_information(criterion: selection.Criterion) -> None:
    """Birnbaum (1968): a^2 P (1 - P) at the estimate, as in Fluid Benchmarking."""
    known = replace(calibration_of(80, seed=5, dims=1, error=0.0), item_cov=np.zeros((80, 2, 2)))
    responses = answers(known, np.array([[1.2]]), seed=6)[0]
    test = AdaptiveTest(known, rules=Rules(criterion, per_dimension=1), stop=Stop(items=25))
    asked: list[int] = []
    while True:
        estimate = test.posterior.mean[0, 0]
        p = 1 / (1 + np.exp(-(known.a[:, 0] * estimate + known.d)))
        fisher = known.a[:, 0] ** 2 * p * (1 - p)
        fisher[asked] = -1
        chosen = test.next()
        if not chosen:
            break
        (place,) = (known.items.index(name) for name in chosen)
        assert fisher[place] == pytest.approx(fisher.max(), rel=1e-4)
        asked.append(place)
        test.record({chosen[0]: int(responses[place])})
    assert len(asked) == 25
    assert test.stopped == "items"


def test_gains_are_the_fall_of_the_determinant_and_of_the_shown_variances() -> None:
    random = np.random.default_rng(7)
    a, weight = random.normal(size=(6, 2)), random.uniform(0.05, 0.25, size=6)
    cov = np.array([[0.5, 0.2], [0.2, 0.3]])
    T = calibration_of(3, seed=0).T
    after = np.linalg.inv(np.linalg.inv(cov) + weight[:, None, None] * a[:, :, None] * a[:, None, :])
    assert gains(weight, a, cov, "D", T) == pytest.approx(
        np.log(np.linalg.det(cov)) - np.log(np.linalg.det(after))
    )
    shown = np.trace(T.T @ cov @ T) - np.einsum("ka,jkl,la->j", T, after, T)
    assert gains(weight, a, cov, "A", T) == pytest.approx(shown)


def test_the_information_is_averaged_over_the_posterior() -> None:
    """Against a fine grid, with one ability."""
    known = replace(calibration_of(5, seed=8, dims=1, error=0.0), item_cov=np.zeros((5, 2, 2)))
    found = posterior(answers(known, np.array([[0.3]]), seed=9), items_of(known))
    grid = np.linspace(-6, 6, 4001)
    density = np.exp(-0.5 * (grid - found.mean[0, 0]) ** 2 / found.cov[0, 0, 0])
    p = 1 / (1 + np.exp(-(grid[:, None] * known.a[:, 0] + known.d)))
    exact = (density / density.sum()) @ (p * (1 - p))
    assert expected_weights(found, items_of(known), 7)[0] == pytest.approx(exact, abs=1e-3)
    assert expected_weights(found, items_of(known))[0] == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("criterion", ["D", "A"])
def test_items_of_one_batch_are_chosen_as_if_one_by_one(criterion: selection.Criterion) -> None:
    known = calibration_of(30, seed=10)
    pool, random = pool_of(known), np.random.default_rng(0)
    weight = np.random.default_rng(11).uniform(0.05, 0.25, size=30)
    free = np.arange(30) % 7 != 0
    chosen = choose(pool, Rules(criterion), weight, np.eye(2), free, NOTHING, 6, random)
    precision, left = np.eye(2), free.copy()
    for place in chosen:
        gain = gains(weight, known.a, np.linalg.inv(precision), criterion, known.T)
        assert gain[place] == pytest.approx(gain[left].max(), rel=1e-5)
        precision += weight[place] * np.outer(known.a[place], known.a[place])
        left[place] = False
    assert free[chosen].all()
    assert len(set(chosen)) == 6
    # no more than there are
    assert len(choose(pool, Rules(criterion), weight, np.eye(2), free, NOTHING, 99, random)) == free.sum()


def test_every_beginning_of_a_balanced_test_is_balanced() -> None:
    known = calibration_of(90, seed=12)
    known = replace(known, a=np.where((np.arange(90) % 3 == 0)[:, None], 0.05, known.a))
    responses = answers(known, np.zeros((1, 2)), seed=13)
    for balance, poor in (("none", 0), ("equal", 7)):
        test = AdaptiveTest(known, balance=balance, stop=Stop(items=21))  # type: ignore[arg-type]
        while names := test.next(4):
            test.record({name: int(responses[0, known.items.index(name)]) for name in names})
        groups = np.array([known.items.index(name) % 3 for name in test.asked])
        assert (groups == 0).sum() == poor
        if balance == "equal":
            for size in range(1, 22):
                assert np.ptp(np.bincount(groups[:size], minlength=3)) <= 1


# -- the test of one model ----------------------------------------------------------------------------------


def finished(known: Calibration, responses: np.ndarray, batch: int = 1, **options: Any) -> AdaptiveTest:
    test = AdaptiveTest(known, **options)
    while names := test.next(batch):
        test.record({name: int(responses[known.items.index(name)]) for name in names})
    return test


def test_a_test_stops_when_its_standard_error_is_reached_and_not_before() -> None:
    known = calibration_of(200, seed=14)
    responses = answers(known, np.array([[0.4, -0.8]]), seed=15)[0]
    test = AdaptiveTest(known, stop=Stop(standard_error=0.35))
    course = [test.standard_errors]
    while names := test.next():
        test.record({names[0]: int(responses[known.items.index(names[0])])})
        course.append(test.standard_errors)
    assert test.stopped == "standard error"
    assert (course[-1] <= 0.35).all()
    assert all((errors > 0.35).any() for errors in course[:-1])
    assert 5 < len(test.asked) < 150
    # one bound for each ability: the one that is known sooner alone matters here
    sooner = int(np.argmin(course[-1]))
    one = finished(known, responses, stop=Stop(standard_error=(0.35, 1.0)[:: 1 - 2 * sooner]))
    assert one.standard_errors[sooner] <= 0.35
    assert len(one.asked) < len(test.asked)


def test_a_test_stops_where_no_item_tells_enough_or_none_is_left() -> None:
    known = calibration_of(40, seed=16)
    responses = answers(known, np.zeros((1, 2)), seed=17)[0]
    test = finished(known, responses, stop=Stop(gain=0.05))
    assert test.stopped == "gain"
    assert 2 < len(test.asked) < 40
    left = [place for place, name in enumerate(known.items) if name not in test.asked]
    weight = expected_weights(test.posterior, items_of(known))[0]
    assert gains(weight, known.a, test.posterior.cov[0], "D", known.T)[left].max() < 0.05
    whole = finished(known, responses, batch=7)
    assert whole.stopped == "no item left"
    assert sorted(whole.asked) == sorted(known.items)
    assert whole.abilities == pytest.approx(
        posterior(responses[None], items_of(known)).mean[0] @ known.T, abs=1e-4
    )


def test_reasons_to_stop_come_in_their_order() -> None:
    stop = Stop(standard_error=0.3, items=10, gain=0.1)
    wide, narrow = np.array([0.2, 0.4]), np.array([0.3, 0.3])
    assert stop.why(narrow, 10, -np.inf) == "standard error"
    assert stop.why(wide, 10, -np.inf) == "items"
    assert stop.why(wide, 9, -np.inf) == "no item left"
    assert stop.why(wide, 9, 0.09) == "gain"
    assert stop.why(wide, 9, 0.1) is None
    assert Stop().why(narrow, 10**6, 0.0) is None


@pytest.mark.parametrize("answer", [0, 1])
def test_all_right_or_all_wrong_gives_finite_answers(answer: int) -> None:
    known = calibration_of(60, seed=18, floor=0.25)
    test = finished(known, np.full(60, answer), batch=3, stop=Stop(items=40))
    assert np.isfinite(test.abilities).all()
    assert np.isfinite(test.standard_errors).all()
    assert ((test.abilities > 0) == bool(answer)).all()


def test_a_calibration_of_one_item_is_a_test_of_one_item() -> None:
    known = calibration_of(1, seed=19)
    test = finished(known, np.array([1]), batch=10)
    assert test.asked == known.items
    assert test.stopped == "no item left"
    assert np.isfinite(test.abilities).all()


def test_a_failed_run_is_no_wrong_answer_and_is_not_asked_again() -> None:
    known = calibration_of(30, seed=20)
    test = AdaptiveTest(known, stop=Stop(items=30))
    before = test.abilities
    first = test.next(3)
    test.record(dict.fromkeys(first))
    assert test.abilities == pytest.approx(before)
    assert (test.responses == -1).all()
    assert not set(first) & set(test.next(27))


def test_only_what_is_available_is_asked() -> None:
    known = calibration_of(40, seed=21)
    test = finished(known, np.ones(40, dtype=int), available=known.items[5:15], batch=4)
    assert sorted(test.asked) == sorted(known.items[5:15])


def test_what_cannot_be_is_refused_and_changes_nothing() -> None:
    known = calibration_of(10, seed=22)
    with pytest.raises(InputError, match='"q10"'):
        AdaptiveTest(known, available=["q10"])
    test = AdaptiveTest(known)
    names = test.next(2)
    with pytest.raises(InputError, match="missing"):
        test.next()
    other = next(name for name in known.items if name not in names)
    for outcomes, word in (
        ({names[0]: 1, other: 1}, "not given out"),
        ({names[0]: 1, names[1]: 2}, "found 2; expected 1, 0 or None"),
        ({"unheard of": 1}, "no such item"),
    ):
        with pytest.raises(InputError, match=word):
            test.record(outcomes)
    assert (test.responses == -1).all()
    test.record({names[0]: 1, names[1]: 0})
    with pytest.raises(InputError, match="its outcome is known"):
        test.record({names[0]: 0})
    with pytest.raises(InputError, match="limit"):
        Exposure.of(3, 0.0)


def test_the_same_seed_gives_the_same_test() -> None:
    known = calibration_of(80, seed=23)
    responses = answers(known, np.zeros((1, 2)), seed=24)[0]
    options: dict[str, Any] = {"rules": Rules(best_of=5), "stop": Stop(items=20), "batch": 2}
    one, same, other = (finished(known, responses, seed=seed, **options) for seed in (1, 1, 2))
    assert one.asked == same.asked
    assert np.array_equal(one.abilities, same.abilities)
    assert one.asked != other.asked


def test_no_item_is_shown_to_more_than_its_share_of_the_models() -> None:
    """One model after another: at every moment at most one, or the limit's share of those that have begun."""
    known = calibration_of(60, seed=25)
    theta = 0.3 * np.random.default_rng(26).normal(size=(20, 2))
    responses = answers(known, theta, seed=27)
    free, limited = Exposure.of(60, 1.0), Exposure.of(60, 0.2)
    for number, own in enumerate(responses, start=1):
        for exposure in (free, limited):
            test = finished(known, own, batch=5, exposure=exposure, stop=Stop(items=10))
            if exposure is free:
                assert len(test.asked) == 10
        assert limited.counts.max() <= max(1, 0.2 * number)
        assert limited.counts.sum() >= limited.takers  # models still get items
    assert free.counts.max() == 20, "without a limit the first items go to everyone"


# -- models whose answers are on record ---------------------------------------------------------------------


def test_side_by_side_tests_are_the_tests_of_single_models() -> None:
    known = calibration_of(60, seed=28)
    responses = answers(known, np.random.default_rng(29).normal(size=(3, 2)), seed=30)
    course = administer(takers_of(known, responses, "equal"), Rules(), size=18, batch=5, sizes=(7,))
    assert course.at.tolist() == [0, 5, 7, 10, 15, 18]
    for model in range(3):
        test = AdaptiveTest(known, balance="equal", stop=Stop(items=18))
        for size in np.diff(course.at):
            names = test.next(int(size))
            test.record({name: int(responses[model, known.items.index(name)]) for name in names})
        assert [known.items.index(name) for name in test.asked] == course.places[model].tolist()
        assert course.abilities[-1, model] == pytest.approx(test.abilities, abs=1e-4)
        assert course.errors[-1, model] == pytest.approx(test.standard_errors, abs=1e-4)


def test_items_without_an_outcome_are_never_put() -> None:
    known = calibration_of(50, seed=31)
    responses = answers(known, np.random.default_rng(32).normal(size=(6, 2)), seed=33)
    responses[np.random.default_rng(34).uniform(size=responses.shape) < 0.5] = -1
    takers = takers_of(known, responses, "proportional")
    seen = (responses >= 0).sum(axis=1)
    for places in (
        administer(takers, Rules(), size=50, batch=4).places,
        in_list_order(takers, 50),
        in_random_order(takers, 50, stratified=True),
        in_random_order(takers, 50, stratified=False),
    ):
        for model in range(6):
            put = places[model][places[model] >= 0]
            assert (responses[model, put] >= 0).all()
            assert len(np.unique(put)) == len(put) == seen[model]
            assert (places[model][len(put) :] == -1).all()


def test_the_exposure_limit_holds_side_by_side_too() -> None:
    known = calibration_of(120, seed=35)
    responses = answers(known, 0.3 * np.random.default_rng(36).normal(size=(15, 2)), seed=37)
    takers = takers_of(known, responses)
    for limit, largest in ((1.0, 15), (0.2, 3)):
        places = administer(takers, Rules(best_of=3), size=12, batch=4, limit=limit).places
        assert (places >= 0).all()
        assert np.bincount(places.ravel()).max() == largest


def test_random_orders_are_random_and_stratified_ones_balanced() -> None:
    known = calibration_of(90, seed=38)
    takers = takers_of(known, np.ones((40, 90), dtype=np.int8), "proportional")
    plain = in_random_order(takers, 30, stratified=False)
    assert 5 < np.bincount(plain.ravel(), minlength=90).mean() < 20
    assert np.ptp((plain % 3 == 0).sum(axis=1)) > 2
    strata = in_random_order(takers, 30, stratified=True)
    for size in range(1, 31):
        counts = np.stack([(strata[:, :size] % 3 == group).sum(axis=1) for group in range(3)])
        assert (np.abs(counts - size / 3) < 1 + 1e-9).all()
    assert not np.array_equal(strata, in_random_order(takers, 30, stratified=True, draw=1))
    assert np.array_equal(strata, in_random_order(takers, 30, stratified=True))
    assert np.bincount(strata[:, 0] % 3, minlength=3).min() > 3, "no group always comes first"


def test_the_fixed_list_is_the_short_form() -> None:
    known = calibration_of(60, seed=39)
    places = in_list_order(takers_of(known, np.ones((2, 60), dtype=np.int8), "proportional"), 20)
    assert np.array_equal(places, np.tile(listing.build(known, size=20).places, (2, 1)))


def test_predicted_means_are_the_means_once_all_is_tested_and_near_them_before() -> None:
    known = calibration_of(300, seed=40, error=0.05)
    theta = np.random.default_rng(41).normal(size=(10, 2))
    responses = answers(known, theta, seed=42)
    responses[:, ::10] = -1
    takers = takers_of(known, responses)
    group = (np.arange(300) % 3).astype(np.intp)
    exact = np.stack(
        [
            ((responses == 1) & (group == g)).sum(1) / ((responses >= 0) & (group == g)).sum(1)
            for g in range(3)
        ],
        axis=1,
    )
    found = posterior(responses, items_of(known))
    assert takers.means(found, takers.seen, group, 3) == pytest.approx(exact)
    half = takers.seen & (np.arange(300) < 150)
    assert np.abs(takers.means(found, half, group, 3) - exact).max() < 0.12


def test_adaptive_tests_need_fewer_items_than_random_order() -> None:
    """Nine of ten items say little: for the error that random order reaches with 60 items, adaptive tests need 15."""
    known = calibration_of(400, seed=43, error=0.1)
    random = np.random.default_rng(44)
    a = 0.15 * random.normal(size=(400, 2))
    sharp = np.arange(400) % 10 == 0
    a[sharp] = np.where(random.uniform(size=(40, 1)) < 0.5, [1.8, 0.1], [0.1, 1.8])
    known = replace(known, a=a)
    theta = random.normal(size=(150, 2))
    takers = takers_of(known, answers(known, theta, seed=45))

    def error(places: np.ndarray) -> Floats:
        return np.asarray(
            np.sqrt(((takers.shown(takers.posterior(places))[0] - theta @ known.T) ** 2).mean(0))
        )

    adaptive = error(administer(takers, Rules(), size=15, batch=1).places)
    by_chance = error(in_random_order(takers, 60, stratified=False))
    assert (adaptive < by_chance).all()
    # a test for one ability does not measure two
    alone = replace(known, a=a[:, :1], item_cov=np.zeros((400, 2, 2)), T=np.eye(1))
    single = administer(takers_of(alone, takers.responses), Rules(per_dimension=1), size=15, batch=1).places
    assert error(single)[1] > 1.3 * adaptive[1]


# -- the trial ----------------------------------------------------------------------------------------------


def test_rank_agreement_is_spearmans() -> None:
    random = np.random.default_rng(46)
    truth = random.normal(size=12)
    estimate = truth + random.normal(size=12)
    weights = np.vstack([np.ones(12), random.integers(0, 3, size=12)]).astype(float)
    valid = np.arange(12) != 4
    found = trial._ranks(estimate, truth, valid, weights)
    assert found[0] == pytest.approx(spearmanr(estimate[valid], truth[valid]).statistic)
    ranks = [pd.Series(one[valid]).rank().to_numpy() for one in (estimate, truth)]
    assert found[1] == pytest.approx(weighted_correlation(*ranks, weights[1][valid]))


@pytest.fixture(scope="module")
def tried() -> trial.Trial:
    data = world(seed=1, noise=0.8)
    data.responses[0, 30:] = -1  # a model that was hardly run
    data = replace(data)
    found = consensuses.build([em.fit(data, 2)], fit="corrected")
    labels = replace(
        LABELS,
        dimensions=tuple({**one, "display": f"ability {k}"} for k, one in enumerate(LABELS.dimensions)),
    )
    return trial.run(data, found, labels, size=60, batch=5, draws=3, exposure=0.3, folds=4)


def value(found: trial.Trial, method: str, items: int, measure: str, column: str = "value") -> float:
    rows = found.curve[
        (found.curve["method"] == method)
        & (found.curve["items"] == items)
        & (found.curve["measure"] == measure)
    ]
    assert len(rows) == 1
    return float(rows[column].iloc[0])


@pytest.mark.slow
def test_on_trial_adaptive_tests_beat_random_order_on_both_abilities(tried: trial.Trial) -> None:
    for measure in ("error_1", "error_2"):
        assert value(tried, "adaptive", 20, measure) < value(tried, "random", 50, measure)
        assert value(tried, "adaptive", 20, measure, "difference_high") < 0
        low, high = (value(tried, "adaptive", 20, measure, end) for end in ("low", "high"))
        assert low < value(tried, "adaptive", 20, measure) < high
    assert value(tried, "adaptive", 50, "error_1") < value(tried, "adaptive", 10, "error_1")
    assert value(tried, "adaptive", 50, "rank_1") > 0.9
    assert value(tried, "adaptive", 50, "benchmarks") < value(tried, "random", 10, "benchmarks")
    assert set(tried.curve["method"]) == set(trial.METHODS)
    assert set(tried.curve.loc[tried.curve["measure"].str.startswith("own_"), "method"]) == {
        "one_dimensional"
    }
    # the model that was hardly run counts as long as it has items
    assert value(tried, "random", 20, "error_1", "models") == 80
    assert value(tried, "random", 50, "error_1", "models") == 79


@pytest.mark.slow
def test_on_trial_the_limit_holds_and_stopping_rules_are_told(tried: trial.Trial) -> None:
    exposure = tried.exposure.set_index(["method", "items"])
    assert exposure.loc[("adaptive", 10), "largest"] > 0.9, (
        "the first items go to all that have outcomes on them"
    )
    limited = exposure.loc["adaptive_limited"]
    assert (limited["largest"] <= 0.3 + 1e-9).all()
    assert (limited["over_limit"] == 0).all()
    assert exposure.loc[("shortform", 20), "overlap"] > 3 * exposure.loc[("random", 20), "overlap"]
    rules = {one["standard_error"]: one for one in tried.summary["stopping"] if one["standard_error"]}
    assert rules[0.5]["reached"] > 0.4 > rules[0.2]["reached"] == 0
    assert 30 <= rules[0.5]["items"]["median"] <= 60
    gained = {one["gain"]: one["items"]["median"] for one in tried.summary["stopping"] if one["gain"]}
    assert gained[0.05] < gained[0.02]
    needed = tried.summary["needed"]["adaptive"]["error_1"]
    goals = {goal: items for goal, items in needed.items() if items is not None}
    assert goals["0.4"] > goals["0.5"]
    assert tried.summary["needed"]["random"]["error_1"]["0.4"] is None, "random order does not come so near"
    assert needed["0.2"] is None
    low, high = (value(tried, "adaptive", size, "error_1") for size in (20, 10))
    assert low < 0.4 < high
    assert needed["0.4"] == pytest.approx(10 * 2 ** ((high - 0.4) / (high - low)))


@pytest.mark.slow
def test_the_trial_is_written_and_drawn(tried: trial.Trial, tmp_path: Path) -> None:
    trial.write(
        tried,
        summary=tmp_path / "adaptive.json",
        curve=tmp_path / "curve.csv",
        exposure=tmp_path / "exposure.csv",
    )
    assert read_json(tmp_path / "adaptive.json")["settings"]["sizes"] == [10, 20, 50, 60]
    table = pd.read_csv(tmp_path / "curve.csv")
    assert len(table) == len(tried.curve)
    made = figure.draw(table, ["reasoning", "safety"], tmp_path / "curve", title="A study", simulated=True)
    assert [path.suffix for path in made] == [".png", ".svg", ".pdf"]
    assert "SIMULATED" in (tmp_path / "curve.svg").read_text() or made[1].stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize("abilities", [1, 2, 4])
def test_the_figure_lies_on_its_sheet(tried: trial.Trial, abilities: int) -> None:
    first = tried.curve[tried.curve["measure"] == "error_1"]
    many = pd.concat([first.assign(measure=f"error_{k + 1}") for k in range(abilities)])
    drawn = figure.curves(many, [f"a name of some length {k}" for k in range(abilities)])
    with style.look():
        check_layout(drawn)
    assert "random" in style.description(drawn)


def test_a_trial_needs_lineages_and_its_own_matrix() -> None:
    data = world(seed=2)
    found = consensuses.build([em.fit(data, 2)], fit="corrected")
    with pytest.raises(InputError, match="not of this matrix"):
        trial.run(replace(data, lineage=data.lineage % 5), found, LABELS)
    few = replace(data, lineage=data.lineage % 2)
    with pytest.raises(InputError, match="too few lineages"):
        trial.run(few, replace(found, data_hash=few.hash), LABELS)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Rules(criterion="E"), "'E'.*D or A"),
        (lambda: Rules(best_of=0), "best_of.*0.*whole number"),
        (lambda: Stop(items=2.5), "items.*2.5.*whole number"),
        (lambda: Stop(standard_error=float("nan")), "standard_error.*nan.*above 0"),
        (lambda: Stop(standard_error=(0.3, "x")), "standard_error.*'x'"),
        (lambda: Exposure.of(10, 0.0), "limit.*0.0.*share above 0"),
        (lambda: Exposure.of(10, None), "limit.*None.*share above 0"),  # type: ignore[arg-type]
        (lambda: Exposure.of(10, True), "limit.*True.*share above 0"),
        (lambda: Exposure.of(-1, 0.5), "items.*-1.*whole number"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()


def test_options_that_do_not_fit_the_calibration_are_refused() -> None:
    known = calibration_of(30, seed=3)
    with pytest.raises(InputError, match=r"no such balance.*Proportional.*none, proportional or equal"):
        AdaptiveTest(known, balance="Proportional")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"counts other items.*10.*30"):
        AdaptiveTest(known, exposure=Exposure.of(10, 0.5))
    with pytest.raises(InputError, match=r"standard_error.*3 numbers.*one, or 2"):
        AdaptiveTest(known, stop=Stop(standard_error=(0.3, 0.3, 0.3)))
    test = AdaptiveTest(known)
    with pytest.raises(InputError, match=r"size.*0.*whole number"):
        test.next(0)
    assert test.stopped is None
    (name,) = test.next(1)
    for odd in (pd.NA, np.array([1, 0]), "1"):
        with pytest.raises(InputError, match="neither right nor wrong"):
            test.record({name: odd})  # type: ignore[dict-item]
