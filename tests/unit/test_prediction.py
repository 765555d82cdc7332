"""Prediction: splits leak nothing, measures have their known values, planted models are recovered, the priors' artefact shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmirt import matrix
from benchmirt.inference import published
from benchmirt.prediction import baselines, cellwise, methods, populations, rasch, splits, station, tally
from benchmirt.prediction.intervals import measured
from benchmirt.resampling import clusters

MODELS, ITEMS = 40, 120


def planted(seed: int = 0, *, slopes: bool = False) -> tuple[matrix.ResponseData, np.ndarray]:
    """Responses with 12 lineages and 4 benchmarks, and their true probabilities: additive, or of two abilities."""
    rng = np.random.default_rng(seed)
    theta, d = rng.normal(size=(MODELS, 2)), rng.normal(size=ITEMS)
    first = np.arange(ITEMS) < ITEMS // 2
    a = np.column_stack([first, ~first]) * 1.5
    eta = (theta @ a.T if slopes else theta[:, :1]) + d
    p = 1 / (1 + np.exp(-eta))
    responses = (rng.random(p.shape) < p).astype(np.int8)
    responses[0, :5] = -1
    benchmark = np.repeat([f"b{k}" for k in range(4)], ITEMS // 4)
    data = matrix.from_arrays(responses, lineage=np.arange(MODELS) % 12, benchmark=benchmark)
    data.item_table["category"] = np.where(first, "one", "two")
    data.item_table["testlet"] = [f"t{j // 3}" if j < 60 else None for j in range(ITEMS)]
    return data, p


def test_cells_are_a_partition_and_never_both_seen_and_scored() -> None:
    data, _ = planted()
    split = splits.cells(data, 5, 0)
    assert split.ratio == 0.25
    scored = np.stack([fold.scored for fold in split.folds])
    assert np.array_equal(scored.sum(axis=0), (data.responses >= 0).astype(int))
    for fold in split.folds:
        assert not (fold.shown & fold.scored).any()
        assert np.array_equal(fold.shown | fold.scored, data.responses >= 0)
        assert abs(int(fold.scored.sum()) - MODELS * ITEMS // 5) <= 5
    assert len(splits.cells(data, 10, 0, used=2).folds) == 2


def test_new_items_show_nothing_of_themselves_or_their_testlets() -> None:
    data, _ = planted()
    folds = splits.items(data, 4, 0).folds
    assert np.array_equal(sum(fold.scored.astype(int) for fold in folds), (data.responses >= 0).astype(int))
    testlet = data.item_table["testlet"].to_numpy()
    for fold in folds:
        assert not fold.shown[:, ~fold.items].any()
        assert not fold.scored[:, fold.items].any()
        assert not set(testlet[fold.items & (np.arange(ITEMS) < 60)]) & set(
            testlet[~fold.items & (np.arange(ITEMS) < 60)]
        )
        assert 20 <= (~fold.items).sum() <= 40


@pytest.mark.parametrize("few", [False, True])
def test_new_lineages_inform_no_item_and_share_the_items_that_they_are_scored_on(few: bool) -> None:
    data, _ = planted()
    split = splits.few_answers(data, 4, 0, 6) if few else splits.lineages(data, 4, 0)
    cluster = clusters(data.lineage)
    observed = data.responses >= 0
    seen = np.zeros(MODELS, dtype=int)
    for fold in split.folds:
        new = ~fold.models
        seen += new
        assert not set(cluster[new]) & set(cluster[~new])
        assert not fold.scored[~new].any()
        assert np.array_equal(fold.shown[~new], observed[~new])
        assert not (fold.shown & fold.scored).any()
    assert (seen == 1).all()
    scored = sum(fold.scored.astype(int) for fold in split.folds)
    assert (scored[1:] == scored[1]).all()  # model 0 misses some
    share = scored[1].mean()
    assert share == pytest.approx(0.8, abs=0.02) if few else share == pytest.approx(0.5, abs=0.1)
    testlet = data.item_table["testlet"].to_numpy()[:60]
    hidden = scored[1, :60] == 1
    assert not set(testlet[hidden]) & set(testlet[~hidden])
    assert split.apart


def test_a_new_benchmark_is_all_unknown_and_dates_part_old_from_new() -> None:
    data, _ = planted()
    for fold, name in zip(splits.benchmarks(data).folds, ["b0", "b1", "b2", "b3"], strict=True):
        own = (data.item_table["benchmark"] == name).to_numpy()
        assert np.array_equal(fold.items, ~own)
        assert not fold.shown[:, own].any()
    data.model_table["released"] = [f"2024-{1 + k % 12:02d}" if k < 30 else None for k in range(MODELS)]
    split = splits.newer_models(data, 0)
    (fold,) = split.folds
    assert split.ratio == fold.scored.any(axis=1).sum() / fold.models.sum()
    date = data.model_table["released"].fillna("").to_numpy()
    new = fold.scored.any(axis=1)
    assert max(date[fold.models]) < min(date[new])
    assert not fold.shown[30:].any()
    assert not fold.scored[30:].any()
    data.model_table["released"] = None
    with pytest.raises(splits.NotPossible, match="release date of 0 of 40"):
        splits.newer_models(data, 0)


def test_measures_have_their_known_values() -> None:
    y = np.array([[1, 0, 1, 1], [0, 0, 1, -1]], dtype=np.int8)
    p = np.array([[0.9, 0.2, 0.6, 0.4], [0.5, 0.7, 0.8, 0.3]])
    counts = tally.count(p, y, y >= 0, np.array([0, 0, 1, 1]), 2)[None, None]
    value = {m: tally.measure(counts, m)[0] for m in ("accuracy", "error", "log_loss", "brier")}
    # 0.5 counts as wrong for a 1 and right for a 0, as rounding to even does
    assert value["accuracy"] == pytest.approx([5 / 7, (3 / 4 + 2 / 3) / 2, 3 / 4, 2 / 3])
    assert value["error"][0] == pytest.approx((0.1 + 0.2 + 0.4 + 0.6 + 0.5 + 0.7 + 0.2) / 7)
    assert value["brier"][0] == pytest.approx((0.01 + 0.04 + 0.16 + 0.36 + 0.25 + 0.49 + 0.04) / 7)
    assert value["log_loss"][0] == pytest.approx(-np.log([0.9, 0.8, 0.6, 0.4, 0.5, 0.3, 0.8]).mean())


def test_ranks_and_single_cells_agree_with_other_programs() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, (30, 50)).astype(np.int8)
    p = np.clip(0.5 + 0.3 * (y - 0.5) + 0.25 * rng.normal(size=y.shape), 0.02, 0.98)
    code = np.repeat([0, 1], 25)
    counts = tally.count(p, y, y >= 0, code, 2)[None, None]
    found = tally.measure(counts, "rank")[0]
    own = [spearmanr(p[:, code == b].mean(1), y[:, code == b].mean(1)).statistic for b in (0, 1)]
    assert found[1:] == pytest.approx([np.mean(own), *own])
    constant = tally.measure(tally.count(np.full(p.shape, 0.4), y, y >= 0, code, 2)[None, None], "rank")
    assert constant[0] == pytest.approx(0)

    cells = tally.Classes(tally.classes(p, y, y >= 0, code, 2).sum(axis=0))
    wrong, right = p[y == 0], p[y == 1]
    pairs = np.sign(right[:, None] - wrong[None]).mean() / 2 + 0.5
    assert cells.auc() == pytest.approx(pairs, abs=1e-3)
    slope, intercept = tally.calibration_line(cells)
    x, target = np.log(p / (1 - p)).ravel(), y.ravel()
    residual = target - 1 / (1 + np.exp(-(intercept + slope * x)))
    # the likelihood's score vanishes
    assert residual.mean() == pytest.approx(0, abs=2e-3)
    assert (residual * x).mean() == pytest.approx(0, abs=4e-3)
    curve = cells.curve()
    assert curve["cells"].sum() == y.size
    assert (curve["cells"] * curve["observed"]).sum() == pytest.approx(y.sum())


def test_ranks_are_compared_within_folds() -> None:
    """The mean of the others is the lower the better a fold's own models are: over folds it ranks pure chance backwards."""
    rng = np.random.default_rng(3)
    pooled, within = [], []
    for _ in range(30):
        y = rng.integers(0, 2, (24, 40)).astype(np.int8)
        fold_of = np.arange(24) % 4
        counts = []
        for fold in range(4):
            inside = fold_of == fold
            p = np.broadcast_to(y[~inside].mean(0), y.shape)
            scored = np.broadcast_to(inside[:, None], y.shape)
            counts.append(tally.count(p, y, scored, np.zeros(40, np.int64), 1)[None])
        table = np.stack(counts)
        within.append(tally.measure(table, "rank")[0, 0])
        pooled.append(tally.measure(table.sum(axis=0, keepdims=True), "rank")[0, 0])
    assert np.mean(pooled) < -0.1
    assert within == pytest.approx([0.0] * 30)


def test_means_are_those_of_the_cells_shown() -> None:
    y = np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 0, 1, 1]], dtype=np.int8)
    shown = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    fold = splits.Fold(np.array([True, True, False]), np.ones(4, dtype=bool), shown, ~shown)
    total = baselines.model_mean(y, fold)
    assert total[:, 0] == pytest.approx([2.5 / 4, 0.5 / 3, 2.5 / 6])
    grouped = baselines.model_mean(y, fold, np.array([0, 0, 1, 1]))
    assert grouped[0] == pytest.approx([2.5 / 3, 2.5 / 3, 0.5 / 2, 0.5 / 2])
    assert grouped[1, 3] == pytest.approx(0.5 / 3)
    assert baselines.item_mean(y, fold)[2] == pytest.approx([1.5 / 3, 1.5 / 3, 0.5 / 2, np.nan], nan_ok=True)


def test_an_unknown_item_is_predicted_as_its_population() -> None:
    data, _ = planted()
    p = np.random.default_rng(0).random((MODELS, ITEMS))
    known = np.ones(ITEMS, dtype=bool)
    known[:3] = False  # some of b0
    known[30:60] = False  # all of b1, which is in the category of b0
    filled = populations.fill(p, known, data.item_table)
    assert np.array_equal(filled[:, known], p[:, known])
    assert filled[:, 0] == pytest.approx(p[:, 3:30].mean(axis=1))
    assert filled[:, 40] == pytest.approx(p[:, 3:30].mean(axis=1))


def test_rasch_comes_near_the_planted_probabilities_and_beats_the_means() -> None:
    data, p = planted()
    fold = splits.cells(data, 5, 0).folds[0]
    fitted = rasch.fit(data.responses, fold, data.floor, data.ceiling)
    # a mean over 32 models errs by about .07 on average
    assert np.abs(fitted.predict() - p)[fold.scored].mean() < 0.08
    y = data.responses[fold.scored]

    def loss(q: np.ndarray) -> float:
        own = q[fold.scored]
        return float(-np.log(np.where(y == 1, own, 1 - own)).mean())

    oracle = loss(p)
    found = {
        name: loss(methods.predict(name, data, fold, {})) for name in ("model_mean", "item_mean", "rasch")
    }
    assert oracle < found["rasch"] < min(found["model_mean"], found["item_mean"])
    assert found["rasch"] - oracle < 0.03


def test_random_cells_follow_the_study_s_rule() -> None:
    """The mean over benchmarks of the share that is right, whatever their sizes; the largest number that gains over a point."""
    accuracy = np.array(
        [[0.60, 0.70, 0.71, 0.705, 0.729], [0.61, 0.71, 0.715, 0.715, 0.71]]
    )  # fold, dimensions
    cells = np.array([10.0, 1000.0])
    counts = np.zeros((2, 6, 1, 2, len(tally.FIELDS)))
    counts[..., 0, :, tally.FIELDS.index("cells")] = cells
    right = np.concatenate([np.full((2, 1), 0.9), accuracy], axis=1)[:, :, None] + np.array([-0.05, 0.05])
    counts[..., 0, :, tally.FIELDS.index("right")] = right * cells
    names = ("model_mean", "item_mean", "mirt_1", "mirt_2", "mirt_3", "mirt_4")
    made = tally.Tally("cells", names, ("m",), ("a", "b"), np.zeros(1, np.int64), counts, False, 0.25)
    found = cellwise.chosen(made)
    assert [row["dims"] for row in found["macro_accuracy"]] == [0, 1, 2, 3, 4]
    assert [row["mean"] for row in found["macro_accuracy"]] == pytest.approx(accuracy.mean(axis=0))
    assert found["macro_accuracy"][0]["gain"] is None
    assert found["macro_accuracy"][1]["gain"] == pytest.approx(0.1)
    assert found["macro_accuracy"][1]["se"] == pytest.approx(0.005)
    assert (found["chosen"], found["folds"]) == (1, 2)  # the others gain .0075, -.0025 and .0095
    made.counts[:, 5, 0, :, tally.FIELDS.index("right")] += 0.002 * cells
    assert cellwise.chosen(made)["chosen"] == 4


def test_a_paired_interval_is_that_of_the_lineages() -> None:
    """The difference of two constant predictions is a sum over lineages, whose jackknife error is known."""
    y = np.repeat(np.arange(20) % 2, 50).reshape(20, 50).astype(np.int8)
    lineage = np.arange(20) // 2
    y[::5] = 1
    code = np.zeros(50, dtype=int)
    counts = np.stack([tally.count(np.full(y.shape, q), y, y >= 0, code, 1) for q in (0.7, 0.4)])[None]
    both = tally.Tally("cells", ("a", "b"), tuple(map(str, range(20))), ("x",), lineage, counts, True, 0.0)
    found = measured(both, "accuracy")
    gain = found.gain("a", "b", "micro")
    values = (2.0 * y - 1.0).mean(axis=1).reshape(10, 2).mean(axis=1)
    assert gain.value == pytest.approx(values.mean())
    reach = stats.t.ppf(0.975, 9 / 2) * values.std(ddof=1) / np.sqrt(10)
    assert (gain.low, gain.high) == pytest.approx((values.mean() - reach, values.mean() + reach), rel=1e-4)
    # one fold that holds out a third of what its fit has seen: four thirds of the variance
    wider = measured(replace(both, ratio=1 / 3), "accuracy").gain("a", "b", "micro")
    assert wider.high - wider.low == pytest.approx(np.sqrt(4 / 3) * (gain.high - gain.low))
    assert found.gain("b", "a", "micro").value == pytest.approx(-gain.value)
    assert measured(both, "brier").gain("a", "a", "micro").high == 0


@pytest.mark.slow
def test_the_published_priors_make_one_dimension_look_bad() -> None:
    """On planted data of two abilities, most of the gain of the second dimension is that of the priors."""
    data, _ = planted(3, slopes=True)
    fold = splits.cells(data, 5, 0).folds[0]

    def accuracy(dims: int, priors: published.PriorSet, most: int) -> float:
        p = published.fit(data, dims, priors=priors, most_dims=most, reveal=fold.shown, steps=300).predict()
        return float(((p > 0.5) == (data.responses == 1))[fold.scored].mean())

    vague = accuracy(1, "vague", 1)
    matched, two = accuracy(1, "hierarchical", 2), accuracy(2, "hierarchical", 2)
    assert matched - vague > 0.05
    assert two > matched
    assert two - vague > 1.5 * (two - matched)


def test_the_published_fit_of_a_category_sees_nothing_of_the_others() -> None:
    data, _ = planted(2)
    category = np.where(np.arange(len(data.items)) % 3 == 0, "one", "other")
    data = replace(data, item_table=data.item_table.assign(category=category))
    fold = splits.cells(data, 5, 0).folds[0]
    options = {"steps": 20, "seed": 0, "most_dims": 2}
    name = methods.PUBLISHED_BY_CATEGORY
    made = methods.predict(name, data, fold, options)
    assert np.isfinite(made).all()
    own = category == "one"
    other = data.responses.copy()
    other[:, ~own] = 1 - np.abs(other[:, ~own])
    again = methods.predict(name, replace(data, responses=other), fold, options)
    np.testing.assert_array_equal(made[:, own], again[:, own])
    assert not np.allclose(made[:, ~own], again[:, ~own])
    whole = methods.predict(methods.published(1), data, fold, options)
    assert not np.allclose(made[:, own], whole[:, own])
    assert methods.label(name) == "1-D as published per category"


@pytest.mark.slow
def test_spare_room_for_dimensions_changes_nothing() -> None:
    data, _ = planted(2)
    alone = published.fit(data, 1, priors="hierarchical", steps=20)
    roomy = published.fit(data, 1, priors="hierarchical", steps=20, most_dims=3)
    assert alone.theta.shape == roomy.theta.shape == (MODELS, 1)
    again = published.fit(data, 1, priors="hierarchical", steps=20, most_dims=3)
    assert np.array_equal(again.a, roomy.a)


@pytest.mark.slow
def test_a_study_is_predicted_and_read_back(tmp_path: Path) -> None:
    data, _ = planted(1, slopes=True)
    effort = {"folds": 3, "by_benchmark": True, "published_folds": 1, "published_steps": 50}
    result = station.run(data, data, dims=2, max_dims=2, **effort)
    files = [
        tmp_path / name for name in ("prediction.json", "scores.csv", "calibration.csv", "models.parquet")
    ]
    station.write(result, *files)
    for split, own in result.tallies.items():
        back = station.read(files[0], files[3], split)
        assert back.methods == own.methods
        for metric in ("accuracy", "log_loss"):
            found = measured(back, metric).values[:, 0]
            assert found == pytest.approx(measured(own, metric).values[:, 0])
    with pytest.raises(splits.NotPossible, match="release date"):
        station.read(files[0], files[3], "newer_models")
    cells = measured(result.tallies["cells"], "log_loss")
    assert cells.gain("mirt_2", "mirt_1", "micro").low > 0  # two abilities are planted
    assert cells.gain("mirt_1_category", "mirt_1", "micro").low > 0
    told = json.loads(files[0].read_text(encoding="utf-8"))
    assert told["labels"]["mirt_2_benchmark"] == "2-D MIRT, priors by benchmark"
    for split, own in result.tallies.items():
        assert ("mirt_2_benchmark" in own.methods) == (split in ("cells", "lineages"))
    assert cells.gain("mirt_2_benchmark", "mirt_2", "micro").high > -0.01
    again = station.run(data, data, dims=2, max_dims=2, **effort)
    for split, own in result.tallies.items():
        assert np.array_equal(own.counts, again.tallies[split].counts)
