"""Short forms on trial: the published filter by hand, forms against brute force, no leak, and planted truths."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ability_fixture import calibration_of
from scipy import stats

from benchmirt import matrix
from benchmirt.ability.response import items_of
from benchmirt.claims import shortform as claim
from benchmirt.dimensions import consensus as consensuses
from benchmirt.dimensions.labels import Labels
from benchmirt.errors import InputError
from benchmirt.figures import claim as draw
from benchmirt.figures.store import Abilities
from benchmirt.files import read_json
from benchmirt.inference import em
from benchmirt.matrix import ResponseData
from benchmirt.report import tables
from benchmirt.resampling import lineage_folds
from benchmirt.shortform import folds, information, published, trial
from benchmirt.shortform.picture import Sample, correlations, picture_of, random_losses, scores
from benchmirt.shortform.weakening import lowest, sharpest, weakening

Floats = np.ndarray

# -- the published filter -----------------------------------------------------------------------------------


def test_the_filter_keeps_what_a_hand_would_keep() -> None:
    """Two bins of four: at .5 the median, between the second and third value, cuts; at .9 only the largest is left."""
    difficulty = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    discrimination = np.array([0.1, 0.9, 0.4, 0.2, -1.0, -0.2, -0.8, -0.3])
    bin_of, lost = published.bins_of(difficulty, np.zeros(8, dtype=int), 2)
    assert bin_of.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert lost.tolist() == [0]
    kept = published.filtered(discrimination, bin_of, 0.5)
    assert np.flatnonzero(kept).tolist() == [1, 2, 5, 7]
    assert np.flatnonzero(published.filtered(discrimination, bin_of, 0.9)).tolist() == [1, 5]
    # a negative axis: at most the quantile at 1 - cut
    assert np.flatnonzero(published.filtered(discrimination, bin_of, 0.5, negative=True)).tolist() == [
        0,
        3,
        4,
        6,
    ]
    assert np.flatnonzero(published.filtered(discrimination, bin_of, 0.9, negative=True)).tolist() == [0, 4]


def test_items_that_tie_with_the_quantile_are_kept_and_tied_edges_are_one() -> None:
    bin_of, lost = published.bins_of(np.array([1.0, 1.0, 1.0, 1.0, 2.0]), np.zeros(5, dtype=int), 4)
    assert lost.tolist() == [3]  # the edges 1, 1, 1, 1, 2
    assert len(set(bin_of)) == 1
    assert published.filtered(np.array([3.0, 3, 1, 3, 2]), bin_of, 0.5).tolist() == [
        True,
        True,
        False,
        True,
        False,
    ]
    constant, lost = published.bins_of(np.ones(5), np.zeros(5, dtype=int), 4)
    assert lost.tolist() == [4]
    assert len(set(constant)) == 1


@pytest.mark.parametrize("cut", [0.5, 0.9])
@pytest.mark.parametrize("negative", [False, True])
def test_bins_and_quantiles_are_those_of_pandas(cut: float, negative: bool) -> None:
    """The study's way, one bin at a time: pandas' quantile bins, pandas' quantiles."""
    rng = np.random.default_rng(1)
    difficulty, discrimination = rng.normal(size=700), rng.normal(size=700)
    stratum = rng.integers(3, size=700)
    bin_of, _ = published.bins_of(difficulty, stratum, 10)
    found = published.filtered(discrimination, bin_of, cut, negative=negative)
    expected = np.zeros(700, dtype=bool)
    for one in range(3):
        table = pd.DataFrame({"b": difficulty, "a": discrimination})[stratum == one]
        for _, rows in table.groupby(pd.qcut(table["b"], 10), observed=True):
            limit = rows["a"].quantile(1 - cut if negative else cut)
            keep = rows["a"] <= limit if negative else rows["a"] >= limit
            expected[rows.index[keep]] = True
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("items", "share"), [(300, 0.33), (450, 0.22), (541, 0.18), (734, 0.14), (90, 1.0)])
def test_small_strata_keep_far_more_than_a_tenth(items: int, share: float) -> None:
    """A hundred bins keep at least one item each; the shares were found by simulation of the study's own code."""
    rng = np.random.default_rng(2)
    bin_of, _ = published.bins_of(rng.normal(size=items), np.zeros(items, dtype=int))
    assert published.filtered(rng.normal(size=items), bin_of, 0.9).mean() == pytest.approx(share, abs=0.012)


def test_difficulty_is_the_published_one() -> None:
    """B of a . (theta - b) = a . theta + d that is shortest, along the axes: a . b = -d."""
    rng = np.random.default_rng(3)
    a, d = rng.normal(size=(20, 2)), rng.normal(size=20)
    assert (a * published.difficulties(a, d, np.eye(2))).sum(axis=1) == pytest.approx(-d)


# -- information --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_forms_are_all_but_the_best_of_all_forms(seed: int) -> None:
    known = calibration_of(12, seed=seed, error=0.2, floor=0.25)
    bank = information.bank_of(items_of(known), np.random.default_rng(seed).normal(size=(25, 2)))
    group = np.repeat([0, 1], 6)
    sizes = np.array([2, 3])
    chosen = information.optimal(bank, group, sizes)
    assert np.bincount(group[chosen], minlength=2).tolist() == [2, 3]

    def value(places: tuple[int, ...]) -> float:
        inside = np.zeros(12, dtype=bool)
        inside[list(places)] = True
        return information.log_determinant(bank, inside)

    best = max(
        value((*one, *two)) for one in combinations(range(6), 2) for two in combinations(range(6, 12), 3)
    )
    reached = information.log_determinant(bank, chosen)
    assert 0.985 * best <= reached <= best + 1e-9


def test_forms_tell_as_much_as_the_list_that_is_made_item_by_item() -> None:
    known = calibration_of(200, seed=7, error=0.2, benchmarks=4)
    bank = information.bank_of(items_of(known))
    group, share = information.shares(known.benchmark_of(), "proportional")
    listed = np.zeros(200, dtype=bool)
    for place, _ in islice(information.greedy(bank, group, share), 40):
        listed[place] = True
    formed = information.optimal(bank, group, np.bincount(group[listed], minlength=4))
    assert information.log_determinant(bank, formed) >= information.log_determinant(bank, listed) - 0.01


def test_standard_errors_are_those_of_the_inverse_information() -> None:
    """One ability, one point: 1 / sqrt(1 + sum a^2 P (1 - P))."""
    known = calibration_of(5, seed=8, dims=1, error=0.0)
    bank = information.bank_of(items_of(known), np.array([[0.3]]))
    p = 1 / (1 + np.exp(-(known.a[:, 0] * 0.3 + known.d)))
    inside = np.array([True, False, True, True, False])
    exact = 1 / np.sqrt(1 + (known.a[:, 0] ** 2 * p * (1 - p))[inside].sum())
    assert information.standard_errors(bank, inside, np.eye(1)) == pytest.approx([exact], rel=1e-4)


def test_sizes_are_the_nearest_and_at_least_one() -> None:
    group = np.repeat([0, 1, 2], [100, 25, 3])
    assert folds.sizes_of(group, 0.1).tolist() == [10, 3, 1]
    assert folds.sizes_of(group, 1.0).tolist() == [100, 25, 3]


# -- scores and correlations --------------------------------------------------------------------------------


def sample_of(models: int = 60, items: int = 90, units: int = 3, seed: int = 0, noise: float = 0.0) -> Sample:
    """Models of 20 lineages and items of one ability, `noise` of them answered by chance."""
    rng = np.random.default_rng(seed)
    lineage = np.arange(models) % 20
    theta = rng.normal(size=models)
    a = np.where(rng.random(items) < noise, 0.0, 2.0)
    responses = (rng.random((models, items)) < 1 / (1 + np.exp(-np.outer(theta, a)))).astype(np.int8)
    return Sample(
        responses,
        np.arange(items) % units,
        np.tile(theta[None, :, None], (units, 1, 1)),
        lineage_folds(lineage, 4, 0),
        lineage,
    )


def test_a_score_is_measured_by_the_models_of_the_other_folds() -> None:
    sample = sample_of()
    responses = sample.responses.copy()
    responses[3, sample.items[1][:5]] = -1
    sample = replace(sample, responses=responses)
    rng = np.random.default_rng(1)
    chosen = rng.random((4, 30, 1)) < 0.5
    found = scores(sample, 1, chosen)[:, 0]
    for model in (0, 3, 17):
        form = sample.items[1][chosen[sample.fold[model], :, 0]]
        means = np.array([row[form][row[form] >= 0].mean() for row in responses])
        others = means[sample.fold != sample.fold[model]]
        assert found[model] == pytest.approx((means[model] - others.mean()) / others.std(), abs=1e-5)


def test_a_model_that_did_not_run_the_benchmark_has_no_score() -> None:
    sample = sample_of()
    responses = sample.responses.copy()
    responses[5, sample.items[0]] = -1
    found = scores(replace(sample, responses=responses), 0, np.ones((4, 30, 1), dtype=bool))
    assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [5]


def test_correlations_are_pearsons() -> None:
    sample = sample_of()
    chosen = np.random.default_rng(2).random((4, 90, 2)) < 0.3
    weights = np.vstack([np.ones(60), np.arange(60) % 3])
    found = correlations(sample, chosen, weights)
    assert found.shape == (2, 3, 1, 2)
    x = scores(sample, 2, chosen[:, sample.items[2]])
    theta = sample.theta[2, :, 0]
    assert found[0, 2, 0] == pytest.approx([stats.pearsonr(one, theta)[0] for one in x.T])
    twice = np.repeat(np.arange(60), np.arange(60) % 3)
    assert found[1, 2, 0, 1] == pytest.approx(stats.pearsonr(x[twice, 1], theta[twice])[0])


def test_all_items_lose_nothing_and_no_items_lose_all() -> None:
    sample = sample_of()
    every = picture_of(sample, [np.ones((4, 90), dtype=bool)], replicates=20)
    assert every.loss == pytest.approx(np.zeros(21))
    assert not every.larger.any()
    assert every.larger_variance == 0
    none = np.ones((4, 90), dtype=bool)
    none[:, sample.items[1]] = False
    gone = picture_of(sample, [none], replicates=20)
    assert gone.r[0, 1, 0] == 0
    assert gone.loss[0] == pytest.approx(abs(every.whole[0, 1, 0]) / 3)


def test_random_forms_have_the_size_of_the_form_and_move_less_the_larger_they_are() -> None:
    sample = sample_of()
    chosen = np.zeros((4, 90), dtype=bool)
    for places in sample.items:
        chosen[:, places[:3]] = True
    few = random_losses(sample, chosen, stratified=True, draws=40, purpose="few")
    assert few.shape == (21, 40)
    assert np.array_equal(few, random_losses(sample, chosen, stratified=True, draws=40, purpose="few"))
    for places in sample.items:
        chosen[:, places[:20]] = True
    many = random_losses(sample, chosen, stratified=False, draws=40, purpose="many")
    assert many[0].max() < few[0].mean()
    whole = random_losses(sample, np.ones_like(chosen), stratified=True, draws=3, purpose="whole")
    assert whole == pytest.approx(np.zeros((21, 3)))


# -- the whole trial ----------------------------------------------------------------------------------------


def world(seed: int = 0, noise: float = 0.6, flat: bool = False) -> ResponseData:
    """Two abilities, three benchmarks of each; `noise` of the items are answered by chance, or all alike."""
    rng = np.random.default_rng(seed)
    models = 80
    lineage = np.arange(models) % 20
    theta = 0.8 * rng.normal(size=(models, 2)) + 0.6 * rng.normal(size=(20, 2))[lineage]
    units, each = 6, 60
    unit = np.repeat(np.arange(units), each)
    a = np.zeros((units * each, 2))
    size = np.full(units * each, 1.2) if flat else np.where(rng.random(units * each) < noise, 0.0, 2.0)
    a[np.arange(units * each), unit // 3] = size
    d = np.zeros(units * each) if flat else rng.normal(size=units * each)
    responses = (rng.random((models, units * each)) < 1 / (1 + np.exp(-(theta @ a.T + d)))).astype(np.int8)
    data = matrix.from_arrays(responses, lineage, [f"b{one}" for one in unit])
    table = data.item_table.assign(category=np.where(unit < 3, "reasoning", "safety"))
    return replace(data, item_table=table)


LABELS = Labels(
    ("reasoning", "safety"),
    tuple(
        {"ability": k + 1, "orientation": 1, "follows": [{"category": c}]}
        for k, c in enumerate(("reasoning", "safety"))
    ),
    None,
)


def run(data: ResponseData, **options: Any) -> trial.Trial:
    """Run the trial on fits of the data by EM, with abilities along their categories."""
    from benchmirt.dimensions import families

    record = em.fit(data, 2)
    found = consensuses.build([record], fit="corrected")
    order = [
        int(np.argmax([np.abs(found.a_display[at, k]).mean() for k in range(2)]))
        for at in (slice(0, 180), slice(180, 360))
    ]
    assert sorted(order) == [0, 1]
    sign = np.sign([found.a_display[slice(180 * n, 180 * n + 180), k].sum() for n, k in enumerate(order)])
    found = replace(found, T=found.T[:, order] * sign)
    left_out = families.leave_one_out(data, found)
    return trial.run(data, found, left_out, LABELS, data, found, **options)


@pytest.fixture(scope="module")
def sharp() -> trial.Trial:
    return run(world(), draws=40, shares=(0.1, 0.3, 0.5, 1.0))


def row_of(found: trial.Trial, form: str, share: float) -> pd.Series:
    rows = found.curve[(found.curve["form"] == form) & np.isclose(found.curve["share"], share)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_where_many_items_tell_nothing_a_chosen_form_keeps_the_picture(sharp: trial.Trial) -> None:
    """Six of ten items are noise: a third, chosen without the judged lineages, loses far less than random thirds."""
    best, random = row_of(sharp, "information", 0.3), row_of(sharp, "stratified", 0.3)
    assert best["loss"] < 0.05 < random["loss"]
    assert best["advantage"] - 3 * best["advantage_se"] > 0
    assert best["beaten"] == 1
    assert best["within"] >= 8
    assert best["standard_error_1"] < 0.8 * random["standard_error_1"]
    # half of the items leave noise out: the means go better with their own ability
    pairs = sharp.correlations
    own = pairs[(pairs["form"] == "information") & (pairs["share"] == 0.5)]
    own = own[(own["benchmark"].str[1].astype(int) // 3) == own["ability"] - 1]
    assert len(own) == 6
    assert own["larger"].all()


def test_the_tables_hold_numbers_so_that_what_is_not_known_is_written_empty(sharp: trial.Trial) -> None:
    for table, texts in ((sharp.curve, {"form"}), (sharp.correlations, {"form", "benchmark"})):
        numbers = table.drop(columns=[*texts])
        assert all(kind.kind in "fib" for kind in numbers.dtypes), numbers.dtypes


def test_all_items_are_the_whole(sharp: trial.Trial) -> None:
    whole = row_of(sharp, "information", 1.0)
    assert whole["loss"] == pytest.approx(0)
    assert whole["within"] == whole["pairs"] == 12
    assert whole["larger"] == 0
    assert whole["standard_error_2"] == row_of(sharp, "stratified", 1.0)["standard_error_2"]


@pytest.mark.slow
def test_where_all_items_are_alike_no_choice_beats_chance() -> None:
    found = row_of(run(world(seed=5, flat=True), draws=40, shares=(0.1,)), "information", 0.1)
    assert abs(found["advantage"]) < 4 * found["advantage_se"] + 0.03
    assert 0.01 < found["beaten"] < 0.99 or abs(found["advantage"]) < 0.02


def test_taking_the_sharpest_items_away_raises_the_pass_rate_of_the_weakest(sharp: trial.Trial) -> None:
    rows = sharp.weakening[
        (sharp.weakening["way"] == "cross-fitted") & np.isclose(sharp.weakening["share"], 0.1)
    ]
    assert rows["category"].tolist() == ["reasoning", "safety"]
    assert (rows["low"] > 0).all()
    assert ((rows["low"] < rows["excess"]) & (rows["excess"] < rows["high"])).all()
    assert (rows["removed"] == 18).all()
    assert (rows["after"] > rows["random_high"]).all()


def test_what_held_out_lineages_answer_changes_no_form() -> None:
    data = world(seed=2)
    found = consensuses.build([em.fit(data, 2)], fit="corrected")
    fold_of, before = folds.calibrate(data, found, folds=4)
    group = np.repeat(np.arange(6), 60)
    changed = data.responses.copy()
    held_out = fold_of == 1
    changed[held_out] = 1 - changed[held_out]
    again, after = folds.calibrate(replace(data, responses=changed), found, folds=4)
    assert np.array_equal(fold_of, again)
    assert not set(data.lineage[held_out]) & set(data.lineage[~held_out])
    assert np.array_equal(
        folds.information_form(before[1], group, 0.2), folds.information_form(after[1], group, 0.2)
    )
    assert np.array_equal(before[1].a, after[1].a)
    for k in range(2):
        assert np.array_equal(
            folds.filter_form(before[1], group, 0.2, k, 1), folds.filter_form(after[1], group, 0.2, k, 1)
        )
    # the others have seen the change
    assert not np.array_equal(before[0].a, after[0].a)


def test_the_axes_of_a_fold_are_those_of_the_consensus() -> None:
    data = world(seed=3)
    found = consensuses.build([em.fit(data, 2)], fit="corrected")
    _, made = folds.calibrate(data, found, folds=4)
    for one in made:
        for k in range(2):
            assert np.corrcoef(one.loadings[:, k], found.a_display[:, k])[0, 1] > 0.9
        assert np.linalg.norm(one.T, axis=0) == pytest.approx(np.ones(2))


def test_a_study_that_cannot_be_cross_fitted_says_why(tmp_path: Path) -> None:
    data = replace(world(), lineage=np.arange(80) % 2)
    found = run(data, draws=20)
    assert "2 lineages" in found.summary["why_not"]
    assert found.curve.empty
    assert found.correlations.empty
    assert set(found.weakening["way"]) == {"as published"}
    trial.write(
        found, summary=tmp_path / "s.json", filter_report=tmp_path / "f.csv", curve=tmp_path / "c.csv",
        correlations=tmp_path / "r.csv", weakening=tmp_path / "w.csv",
    )  # fmt: skip
    assert read_json(tmp_path / "s.json")["why_not"] == found.summary["why_not"]
    assert pd.read_csv(tmp_path / "c.csv").columns.tolist()[:3] == ["form", "share", "items"]


def test_results_of_other_data_are_refused() -> None:
    data = world()
    other = SimpleNamespace(data_hash="other")
    with pytest.raises(InputError, match="not of this matrix"):
        trial.run(data, other, other, LABELS, data, other)  # type: ignore[arg-type]


# -- shown --------------------------------------------------------------------------------------------------


NAMING = Abilities(("reasoning", "safety"), (True, True), np.ones(2), np.eye(2), np.eye(2), ())


def record_of(**part: Any) -> dict[str, Any]:
    told = {
        "name": "n", "unit": "", "estimate": 0.03, "interval": [0.02, 0.04], "region": {"low": 0.0, "high": None},
        "verdict": "reproduced", "form": "information", **part,
    }  # fmt: skip
    corrected = {**told, "headline": "n", "parts": [told]}
    return {"claim": "C", "kind": "shortform", "statement": "s", "corrected": corrected}


def lines(figure: Any) -> list[np.ndarray]:
    axes = [one for sub in figure.subfigs for one in sub.axes]
    return [np.asarray(line.get_ydata(), dtype=float) for one in axes for line in one.lines]


def drawn(figure: Any, values: pd.Series) -> bool:
    wanted = values.to_numpy(dtype=float)
    return any(len(one) == len(wanted) and np.allclose(one, wanted) for one in lines(figure))


def test_figures_show_the_numbers_of_the_tables(sharp: trial.Trial) -> None:
    shown_from = (sharp.curve, sharp.correlations, sharp.weakening, NAMING)
    figure = draw.shortform(record_of(statistic="kept", share=0.1), *shown_from)
    best = sharp.curve[sharp.curve["form"] == "information"].sort_values("share")
    random = sharp.curve[sharp.curve["form"] == "stratified"].sort_values("share")
    assert drawn(figure, best["loss"])
    assert drawn(figure, random["loss"])
    assert drawn(figure, best["standard_error_2"])
    figure = draw.shortform(record_of(statistic="larger", share=0.5), *shown_from)
    pairs = sharp.correlations
    pairs = pairs[(pairs["form"] == "information") & (pairs["share"] == 0.5) & (pairs["ability"] == 1)]
    axes = figure.subfigs[0].axes[0]
    assert np.allclose(axes.lines[0].get_xdata(), pairs["r_full"].abs())
    assert [label.get_text() for label in axes.get_yticklabels()] == pairs["benchmark"].tolist()
    shown = np.concatenate([np.asarray(line.get_xdata()) for line in axes.lines[1:]])
    assert sorted(shown) == pytest.approx(sorted(pairs["r_form"].abs()))
    figure = draw.shortform(record_of(statistic="weakening", share=0.1, ability=2), *shown_from)
    rows = sharp.weakening[(sharp.weakening["way"] == "cross-fitted") & (sharp.weakening["ability"] == 2)]
    assert drawn(figure, pd.concat([rows["before"].iloc[:1], rows["after"]]))
    assert "safety" in figure.subfigs[0].axes[0].get_ylabel()


def test_the_page_tells_what_the_filter_keeps_and_every_pair() -> None:
    pair = {
        "benchmark": "b",
        "ability": "safety",
        "items": 1200,
        "kept": 120.4,
        "r_full": 0.5,
        "r_form": 0.46,
    }
    kept = {
        "scope": "all",
        "cut": 0.9,
        "items": 500,
        "nominal": 50.0,
        "kept": 80.0,
        "most": 0.4,
        "vanished": ["x", "y"],
    }
    record = record_of(pairs=[{**pair, "difference": -0.04, "interval": [-0.09, 0.01]}], filter=[kept])
    keeps, moved = tables.evidence(record)
    assert moved.rows[0] == [
        "b",
        "safety",
        "1,200",
        "120.4",
        ".50",
        ".46",
        "\u2212.04",
        "[\u2212.09, .01]",
    ]
    assert keeps.rows[0] == [
        "all questions",
        "10\u00a0%",
        "50",
        "80",
        "16\u00a0%",
        "40\u00a0%",
        "x and y",
    ]


# -- weakening by hand --------------------------------------------------------------------------------------


def test_the_weakest_third_of_those_that_ran() -> None:
    theta = np.array([[3.0, 1, 2, 0, 5, 4, np.nan]])
    ran = np.array([[True, True, True, False, True, True, True]])
    assert np.flatnonzero(lowest(theta, ran)[0]).tolist() == [1, 2]


def test_the_sharpest_are_taken_of_the_set_alone() -> None:
    tells = np.array([9.0, 1, 5, 5, 2, 8])
    among = np.array([False, True, True, True, True, True])
    assert np.flatnonzero(sharpest(tells, among, 0.4)).tolist() == [2, 5]


def test_pass_rates_are_counted() -> None:
    """Two weak models: they fail the removed items and pass half of the rest."""
    responses = np.array([[0, 0, 1, 0], [0, -1, 0, 1], [1, 1, 1, 1]], dtype=np.int8)
    low = np.array([True, True, False])[:, None] & np.ones(4, dtype=bool)
    removed = np.array([[True, True, False, False]])
    found = weakening(
        responses, low, np.zeros(3, dtype=int), removed, np.ones(4, dtype=bool), np.arange(3), draws=300
    )
    assert found.before == pytest.approx(2 / 7)
    assert found.after == pytest.approx(2 / 4)
    assert found.models == found.lineages == 2
    assert found.at_random.mean() == pytest.approx(2 / 7, abs=0.04)
    assert found.excess is None


# -- the claims' numbers ------------------------------------------------------------------------------------


def test_the_binomial_interval_is_clopper_and_pearsons() -> None:
    exact = stats.binomtest(12, 16).proportion_ci(method="exact")
    assert claim.binomial(12, 16, 16, 0.0) == pytest.approx((exact.low, exact.high))
    # two abilities share a benchmark's items: 24 of 32 say no more than 12 of 16
    assert claim.binomial(24, 32, 16, 0.0) == pytest.approx((exact.low, exact.high))
    wider = claim.binomial(24, 32, 16, 0.01)
    assert wider[0] < exact.low < exact.high < wider[1]
    assert claim.binomial(0, 32, 16, 0.0)[0] == 0
    assert claim.binomial(32, 32, 16, 0.0)[1] == 1


def test_chance_alone_seldom_makes_more_than_half_of_the_pairs_larger() -> None:
    """Pairs of a benchmark that go wholly together: the lower end lies above .5 in at most 2.5 % of the cases."""
    rng = np.random.default_rng(4)
    larger = 2 * rng.binomial(16, 0.5, size=4000)
    table = {n: claim.binomial(n, 32, 16, 0.0)[0] > 0.5 for n in range(0, 33, 2)}
    assert np.mean([table[int(n)] for n in larger]) <= 0.025


def test_differences_are_surely_or_possibly_within() -> None:
    difference, se = pd.Series([0.0, 0.04, -0.06, 0.2]), pd.Series([0.01, 0.01, 0.01, 0.01])
    assert claim.surely_and_possibly(difference, se, 2.0, 0.05) == (0.25, 0.75)
