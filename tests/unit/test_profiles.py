"""Profiles of benchmarks: what is planted in items comes out, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from profiles_fixture import Made, Planted, plant, profile, toward
from scipy import stats

from benchmirt.claims import direction
from benchmirt.errors import InputError
from benchmirt.profiles import clusters, items, own, station
from benchmirt.shortform.information import Bank, standard_errors


def cloud(
    directions: np.ndarray, items: int, seed: int, *, spread: float = 0.12, error: float = 0.25
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items along each of some directions (C, K), with heavy-tailed lengths: estimates, covariances, and the planted group."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(directions)), items)
    dims = directions.shape[1]
    unit = directions[group] + spread * rng.normal(size=(len(group), dims))
    a = unit * np.exp(rng.normal(0, 0.5, len(group)))[:, None] + error * rng.normal(size=unit.shape)
    return a, np.repeat(error**2 * np.eye(dims)[None], len(group), 0), group


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize("dims", [2, 3, 4])
def test_two_halves_along_two_axes_are_two_groups(dims: int) -> None:
    a, cov, planted = cloud(np.eye(dims)[:2], 80, seed=dims)
    found = clusters.find(a, cov)
    assert found is not None
    assert found.count == 2
    sure = found.probability >= clusters.CERTAIN
    assert sure.mean() > 0.7
    assert clusters.adjusted_rand(found.group[sure].astype(np.int64), planted[sure]) > 0.9
    for axis in np.eye(dims)[:2]:
        assert (found.centres @ axis).max() > np.cos(np.radians(8))


def test_three_directions_are_three_groups() -> None:
    a, cov, planted = cloud(np.array([toward(0), toward(80), toward(190)]), 70, seed=5)
    found = clusters.find(a, cov)
    assert found is not None
    assert found.count == 3
    assert clusters.adjusted_rand(found.group.astype(np.int64), planted) > 0.8


@pytest.mark.parametrize("dims", [2, 3])
def test_one_direction_is_one_group_whatever_the_chance(dims: int) -> None:
    counts = []
    for seed in range(20):
        a, cov, _ = cloud(np.eye(dims)[:1], 150, seed=seed, error=0.1 + 0.02 * seed)
        found = clusters.find(a, cov)
        assert found is not None
        counts.append(found.count)
    assert counts == [1] * 20


def test_a_broad_fan_and_stray_items_are_no_second_group() -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        angle = np.radians(rng.uniform(0, 70, 200))
        a = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(200, 2))
        a[:12] = rng.normal(size=(12, 2))
        found = clusters.find(a, np.repeat(0.01 * np.eye(2)[None], 200, 0))
        assert found is not None
        assert found.count == 1


def test_items_of_unknown_direction_have_no_say() -> None:
    a, cov, _ = cloud(np.array([toward(0)]), 100, seed=3)
    noise = np.random.default_rng(0).normal(size=(100, 2)) * 0.3
    found = clusters.find(
        np.concatenate([a, noise]), np.concatenate([cov, np.repeat(np.eye(2)[None], 100, 0)])
    )
    assert found is not None
    assert found.count == 1
    assert found.centres[0] @ np.array([1.0, 0.0]) > 0.98


def test_too_few_items_or_one_ability_are_not_divided() -> None:
    a, cov, _ = cloud(np.eye(2), 9, seed=1)
    assert clusters.find(a, cov) is None
    assert clusters.find(a[:, :1].repeat(5, 0), cov[:, :1, :1].repeat(5, 0)) is None


def test_order_of_items_and_frame_change_nothing() -> None:
    a, cov, _ = cloud(np.eye(2), 60, seed=8)
    found = clusters.find(a, cov)
    order = np.random.default_rng(1).permutation(len(a))
    mixed = clusters.find(a[order], cov[order])
    turn = np.array([toward(37), [-toward(37)[1], toward(37)[0]]])
    turned = clusters.find(a @ turn, cov)
    assert found is not None
    assert mixed is not None
    assert turned is not None
    assert (found.group[order] == mixed.group).mean() > 0.98
    assert (found.group == turned.group).mean() > 0.98


@pytest.mark.parametrize("dims", [2, 3, 4])
@pytest.mark.parametrize("kappa", [0.3, 4.0, 400.0])
def test_the_density_of_directions_is_scipys(dims: int, kappa: float) -> None:
    centre = np.eye(dims)[0]
    x = np.random.default_rng(2).normal(size=(5, dims))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    ours = clusters._log_normalizer(np.array([kappa]), dims) + kappa * (x @ centre)
    np.testing.assert_allclose(ours, stats.vonmises_fisher(centre, kappa).logpdf(x), rtol=1e-9, atol=1e-9)


def test_the_adjusted_rand_index_in_a_small_case() -> None:
    # Hubert and Arabie: pairs together in both 2, in the first 2 + 1 (of 10), in the second 1 + 3
    one, other = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
    both, first, second = 2, 4, 4
    expected = first * second / 10
    assert clusters.adjusted_rand(one, other) == pytest.approx((both - expected) / (4 - expected))
    assert clusters.adjusted_rand(one, one) == 1.0
    assert clusters.adjusted_rand(one, 1 - one) == 1.0


def test_subsets_are_gathered_before_they_are_compared() -> None:
    a, cov, planted = cloud(np.eye(2), 80, seed=2)
    found = clusters.find(a, cov)
    assert found is not None
    rng = np.random.default_rng(0)
    fine = planted * 5 + rng.integers(5, size=len(planted))  # five subsets in each half
    columns = {"random": rng.integers(6, size=len(planted)), "fine": fine}
    same = clusters.coinciding(found, columns)
    assert same is not None
    assert same.column == "fine"
    assert same.rand > 0.9
    assert same.p == pytest.approx(1 / 200)
    chance = clusters.coinciding(found, {"random": columns["random"]})
    assert chance is not None
    assert chance.p > 0.01
    assert clusters.coinciding(found, {"own name": np.arange(len(planted))}) is None


# ------------------------------------------------------------------ items


def reversed_items(seed: int, reversed_: int, total: int = 200) -> tuple[items.Along, np.ndarray]:
    rng = np.random.default_rng(seed)
    sign = np.where(np.arange(total) < reversed_, -1.0, 1.0)
    truth = np.column_stack([sign * rng.lognormal(0, 0.4, total), np.zeros(total)])
    a = truth + 0.3 * rng.normal(size=truth.shape)
    found = items.along(a, np.repeat(0.09 * np.eye(2)[None], total, 0))
    assert found is not None
    return found, sign < 0


def test_planted_reversals_are_found_and_hardly_any_other() -> None:
    right = wrong = 0
    for seed in range(10):
        found, planted = reversed_items(seed, 12)
        flagged = items.false_discoveries(found.p)
        right += int(flagged[planted].sum())
        wrong += int(flagged[~planted].sum())
    assert right > 0.6 * 120
    assert wrong <= 0.05 * (right + wrong) + 2


def test_no_reversals_are_made_up() -> None:
    made_up = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        # half of the items do not discriminate at all: the hardest case that is not backwards
        truth = np.column_stack([np.where(np.arange(150) % 2, 1.0, 0.0), np.zeros(150)])
        found = items.along(
            truth + 0.3 * rng.normal(size=truth.shape), np.repeat(0.09 * np.eye(2)[None], 150, 0)
        )
        assert found is not None
        made_up.append(items.false_discoveries(found.p).any())
    assert np.mean(made_up) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 100)


def test_refits_that_vary_more_than_the_posterior_count() -> None:
    rng = np.random.default_rng(0)
    a = np.column_stack([np.ones(50), np.zeros(50)]) + 0.1 * rng.normal(size=(50, 2))
    a[0] = [-0.6, 0.0]
    cov = np.repeat(0.01 * np.eye(2)[None], 50, 0)
    refits = a[None] + 0.2 * rng.normal(size=(60, 50, 2))
    plain, wide = items.along(a, cov), items.along(a, cov, refits, scale=2.0)
    assert plain is not None
    assert wide is not None
    assert plain.se == pytest.approx(0.1)
    assert wide.se.mean() == pytest.approx(0.4, rel=0.1)
    assert plain.p[0] < 1e-6 < wide.p[0]


def test_items_without_a_common_direction_are_not_tested() -> None:
    rng = np.random.default_rng(0)
    a, cov = rng.normal(size=(60, 2)), np.repeat(0.01 * np.eye(2)[None], 60, 0)
    assert items.along(a - a.mean(0), cov) is None
    assert items.along(np.ones((4, 2)), cov[:4]) is None
    assert items.along(np.ones((5, 2)), cov[:5]) is not None


def test_false_discoveries_are_scipys() -> None:
    p = np.random.default_rng(3).uniform(size=300) ** 3
    ours = items.false_discoveries(np.append(p, np.nan), 0.05)
    np.testing.assert_array_equal(ours[:-1], stats.false_discovery_control(p) <= 0.05)
    assert not ours[-1]
    assert not items.false_discoveries(np.full(3, np.nan)).any()


def test_what_items_add_is_the_derivative_of_the_information() -> None:
    rng = np.random.default_rng(1)
    bank = Bank(rng.normal(size=(30, 2)), rng.uniform(0, 0.25, (7, 30)), np.full(7, 1 / 7))
    member = np.arange(30) < 20
    found = items.contributions(bank, member)
    part = Bank(bank.a[:20], bank.weight[:, :20], bank.share)

    def log_det(weights: np.ndarray) -> float:
        M = np.eye(2) + np.einsum("j,qj,jk,jl->qkl", weights, part.weight, part.a, part.a)
        return float(part.share @ np.linalg.slogdet(M)[1])

    for place in (0, 7, 19):
        step = np.zeros(20)
        step[place] = 1e-5
        derivative = (log_det(1 + step) - log_det(1 - step)) / 2e-5
        assert found[place] == pytest.approx(derivative, rel=1e-5)
    assert found.sum() < 2
    along = items.directional(bank, np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(along[:, 0], bank.weight.mean(0) * bank.a[:, 0] ** 2)


def test_items_that_add_little_hold_a_hundredth_together() -> None:
    contribution = np.append(np.full(50, 1e-6), np.full(50, 1.0))
    found = items.little(contribution)
    np.testing.assert_array_equal(found, np.arange(100) < 50)
    assert not items.little(np.ones(20)).any()
    assert items.little(np.zeros(3)).all()


# ------------------------------------------------------------------ own factor


def answers(
    own_sd: float, seed: int, models: int = 300, size: int = 60
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes of one benchmark, their probabilities by the abilities alone, and the true scores' variances."""
    rng = np.random.default_rng(seed)
    theta, shift = rng.normal(size=models), own_sd * rng.normal(size=models)
    d = rng.normal(0, 0.5, size)
    eta = theta[:, None] + d
    probability = 1 / (1 + np.exp(-eta - shift[:, None]))
    outcomes = (rng.random(probability.shape) < probability).astype(float)
    expected = 1 / (1 + np.exp(-eta))
    parts = np.array([(probability - expected).mean(1).var(), probability.mean(1).var()])
    return outcomes, expected, parts


@pytest.mark.parametrize("own_sd", [0.0, 0.8])
def test_the_own_share_is_the_planted_one(own_sd: float) -> None:
    inside = []
    for seed in range(8):
        outcomes, expected, parts = answers(own_sd, seed)
        found = own.own_factor(
            outcomes, None, np.arange(300) // 3, expected, np.zeros(300), purpose=f"test/{seed}"
        )
        assert found is not None
        assert found.share is not None
        truth = parts[0] / parts[1]
        assert found.share.estimate == pytest.approx(truth, abs=0.08)
        inside.append(found.share.low <= truth <= found.share.high)
        noise = (outcomes.mean(1).var() - parts[1]) / outcomes.mean(1).var()
        assert found.reliability == pytest.approx(1 - noise, abs=0.05)
    assert sum(inside) >= 6


def test_the_error_of_the_abilities_is_not_the_benchmarks_own() -> None:
    rng = np.random.default_rng(5)
    theta, error = rng.normal(size=400), 0.5
    d = rng.normal(0, 0.5, 80)

    def chance(t: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-t[:, None] - d))

    outcomes = (rng.random((400, 80)) < chance(theta)).astype(float)
    guess = theta + error * rng.normal(size=400)
    guess *= 1 / (1 + error**2)  # the mean of the posterior; its variance is below
    expected = chance(guess)
    variance = error**2 / (1 + error**2)
    slope = (expected * (1 - expected)).mean(1)
    lineage = np.arange(400) // 4
    naive = own.own_factor(outcomes, None, lineage, expected, np.zeros(400))
    found = own.own_factor(outcomes, None, lineage, expected, variance * slope**2)
    assert naive is not None
    assert found is not None
    assert naive.share is not None
    assert found.share is not None
    assert naive.share.low > 0.1
    assert abs(found.share.estimate) < 0.08  # to first order


def test_missing_outcomes_and_testlets_are_no_own_factor() -> None:
    outcomes, expected, _ = answers(0.0, 3)
    outcomes[np.random.default_rng(1).random(outcomes.shape) < 0.3] = np.nan
    testlet = np.array([f"t{k // 6}" for k in range(60)], dtype=object)
    found = own.own_factor(outcomes, testlet, np.arange(300) // 3, expected, np.zeros(300))
    assert found is not None
    assert found.share is not None
    assert abs(found.share.estimate) < 0.05
    assert own.own_factor(outcomes, np.full(60, "one", dtype=object), np.arange(300), expected, None) is None
    assert own.own_factor(outcomes[:9], None, np.arange(9), expected[:9], np.zeros(9)) is None
    alone = own.own_factor(outcomes, None, np.arange(300) // 3, None, None)
    assert alone is not None
    assert alone.share is None
    assert alone.reliability > 0.5


# ------------------------------------------------------------------ all together

HALVES = Planted("two/halves ü", {"refuse": toward(90), "comply": toward(5)}, items=50, testlet=True)
ONE_WAY = Planted("one way", {"x": toward(0), "y": toward(0)}, items=40, reversed=1, own=0.8)
GAPS = Planted("gaps", {"z": toward(45)}, items=60, missing=0.1, easy=7, hard=5)
TINY = Planted("three", {"z": toward(80)}, items=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return plant(tmp_path_factory.mktemp("profiles"), [HALVES, ONE_WAY, GAPS, TINY], seed=3)


@pytest.fixture(scope="module")
def found(made: Made) -> station.Profiles:
    return profile(made)


def row_of(found: station.Profiles, name: str) -> pd.Series:
    return found.benchmarks.set_index("benchmark").loc[name]


def test_groups_are_the_planted_subsets(found: station.Profiles) -> None:
    row = row_of(found, HALVES.name)
    assert row["groups"] == 2
    assert row["groups_column"] == "subcategory_one"
    assert row["groups_rand"] > 0.9
    assert row["groups_p"] < 0.01
    mine = found.items[found.items["benchmark"] == HALVES.name]
    table = pd.crosstab(mine["subset"], mine["group"])
    assert (table.max(axis=1) >= 45).all()
    assert set(table.idxmax(axis=1)) == {1, 2}
    angles = found.groups.set_index("benchmark").loc[HALVES.name]
    assert sorted(round(a / 10) * 10 for a in angles["angle_1"]) == [0, 90] or len(angles) == 2
    assert (angles["angle_1_low"] <= angles["angle_1"]).all()
    for name in (ONE_WAY.name, GAPS.name):
        assert row_of(found, name)["groups"] == 1
    assert pd.isna(row_of(found, TINY.name)["groups"])


def test_declared_subsets_have_the_planted_directions(made: Made, found: station.Profiles) -> None:
    facts = made.results.items()
    mine = found.subsets[(found.subsets["benchmark"] == HALVES.name)]
    by_subset = mine[mine["column"] == "subcategory_one"].set_index("subset")
    assert list(by_subset.index) == list(HALVES.subsets)
    for name, planted in HALVES.subsets.items():
        row = by_subset.loc[name]
        own = (facts["benchmark"] == HALVES.name) & (facts["subcategory_one"] == name)
        cells = made.outcomes[:, own.to_numpy()]
        assert row["items"] == own.sum()
        assert row["mean"] == pytest.approx((cells == 1).sum() / (cells >= 0).sum())
        # the axes follow the items, so they need not be those that were planted
        nearest = int(np.argmax(planted)) + 1
        assert row[f"angle_{nearest}"] < 20 < 60 < row[f"angle_{3 - nearest}"]
        for k in (1, 2):
            assert row[f"angle_{k}_low"] <= row[f"angle_{k}"] <= row[f"angle_{k}_high"]


def test_a_single_subset_and_a_name_for_every_item_divide_nothing(
    made: Made, found: station.Profiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = found.subsets[found.subsets["benchmark"] == GAPS.name]
    assert "subcategory_one" not in set(mine["column"])
    monkeypatch.setattr(station, "MOST_SUBSETS", 1)
    assert profile(made).subsets.empty
    monkeypatch.undo()
    profile(made)


def test_directions_are_those_of_the_claims(made: Made, found: station.Profiles) -> None:
    """The same estimate and nearly the same interval (other draws) as a claim about the benchmark would show."""
    results = made.results
    chosen = (results.items()["benchmark"] == ONE_WAY.name).to_numpy() & results.items()["kept"].to_numpy(
        bool
    )
    cloud = direction.cloud(results, results.consensus("corrected"), [chosen], "another purpose")
    row = row_of(found, ONE_WAY.name)
    for k in (1, 2):
        estimate, (low, high) = direction.angle_with_interval(
            results, results.consensus("corrected"), cloud, 0, results.ability(k), results.lineage()
        )
        assert row[f"angle_{k}"] == pytest.approx(estimate)
        assert row[f"angle_{k}_low"] == pytest.approx(low, abs=1.5)
        assert row[f"angle_{k}_high"] == pytest.approx(high, abs=1.5)
    assert row["angle_1"] < 15
    assert row["share_1"] + row["share_2"] == pytest.approx(1.0)
    assert row["share_1"] > 0.85


def test_backwards_items_of_the_study_are_the_planted_ones(made: Made, found: station.Profiles) -> None:
    joined = found.items.merge(made.items[["question_id", "reversed"]], on="question_id")
    assert joined.loc[joined["reversed"] & joined["kept"], "backwards"].all()
    assert joined.loc[~joined["reversed"], "backwards"].sum() <= 1
    assert row_of(found, ONE_WAY.name)["backwards"] == 2
    assert row_of(found, TINY.name)["backwards_tested"] == 0


def test_ceiling_floor_and_missing_are_counted(made: Made, found: station.Profiles) -> None:
    row = row_of(found, GAPS.name)
    mine = (made.items["benchmark"] == GAPS.name).to_numpy()
    cells = made.outcomes[:, mine]
    assert row["missing"] == row["missing_empty"] == (cells < 0).sum() > 0
    assert row["observed"] == (cells >= 0).sum()
    assert row["missing_not_run"] == 0
    means = np.array([(cells[:, j] == 1).sum() / (cells[:, j] >= 0).sum() for j in range(cells.shape[1])])
    assert row["items_at_ceiling"] == (means >= 0.95).sum() >= 7
    assert row["items_at_floor"] == (means <= 0.05).sum() >= 5
    assert row["items"] == 60
    assert row["kept"] == ((means > 0) & (means < 1)).sum()
    items_of = found.items[found.items["benchmark"] == GAPS.name].set_index("question_id")
    dropped = items_of[~items_of["kept"]]
    assert dropped["adds_little"].all()
    assert dropped["contribution"].isna().all()
    assert not dropped["backwards"].any()
    assert row_of(found, HALVES.name)["missing"] == 0


def test_the_own_factor_shows_where_it_was_planted(found: station.Profiles) -> None:
    assert row_of(found, ONE_WAY.name)["own_share_low"] > 0.05
    assert row_of(found, HALVES.name)["own_share"] < row_of(found, ONE_WAY.name)["own_share"] / 2
    assert row_of(found, HALVES.name)["reliability"] > 0.8


def test_the_short_form_is_better_than_chance_and_no_better_than_all(
    made: Made, found: station.Profiles
) -> None:
    row = row_of(found, HALVES.name)
    assert row["short_items"] == 10
    mine = found.items[found.items["benchmark"] == HALVES.name]
    assert sorted(mine["short_rank"].dropna()) == list(range(1, 11))
    member = made.calibration.benchmark_of() == HALVES.name
    bank = station.bank_of(station.items_of(made.calibration))
    part = Bank(bank.a[member], bank.weight[:, member], bank.share)
    rng = np.random.default_rng(0)
    for k in (1, 2):
        assert row[f"standard_error_{k}"] < row[f"short_standard_error_{k}"] < 1
    random = []
    for _ in range(50):
        form = np.zeros(int(member.sum()), dtype=bool)
        form[rng.choice(len(form), 10, replace=False)] = True
        random.append(standard_errors(part, form, made.calibration.T))
    best = np.array([row["short_standard_error_1"], row["short_standard_error_2"]])
    assert (best**2).sum() < (np.array(random) ** 2).sum(1).min()
    assert row_of(found, TINY.name)["short_items"] == row_of(found, TINY.name)["kept"]


def test_the_same_results_give_the_same_bytes(made: Made, found: station.Profiles, tmp_path: Path) -> None:
    again = station.build(made.results, made.calibration, made.left_out, made.coverage)
    tables = ("benchmarks.csv", "groups.csv", "subsets.csv", "items.csv")
    station.write(again, *(tmp_path / name for name in tables))
    for name in tables:
        assert (tmp_path / name).read_bytes() == (made.folder / "profiles" / name).read_bytes()


@pytest.mark.parametrize("dims", [1, 3, 4])
def test_any_number_of_abilities_will_do(dims: int, tmp_path: Path) -> None:
    axes = np.eye(dims)
    benchmarks = [Planted(f"b{k}", {"all": axes[k % dims]}, items=30) for k in range(3)]
    found = profile(plant(tmp_path, benchmarks, dims=dims))
    for k in range(3):
        row = row_of(found, f"b{k}")
        assert row[f"share_{k % dims + 1}"] > 0.8
        assert np.isfinite([row[f"standard_error_{d + 1}"] for d in range(dims)]).all()
        if dims > 1:
            assert row[f"angle_{k % dims + 1}"] < 20
            assert row["groups"] == 1
        else:
            assert "angle_1" not in row
            assert row["discrimination_low"] < row["discrimination"] < row["discrimination_high"]
            assert pd.isna(row["groups"])


def test_one_benchmark_alone_has_no_own_share(tmp_path: Path) -> None:
    found = profile(plant(tmp_path, [Planted("only", {"x": toward(10), "y": toward(80)})]))
    row = row_of(found, "only")
    assert pd.isna(row["own_share"])
    assert row["reliability"] > 0.5
    assert row["groups"] == 2


def test_a_benchmark_that_tells_nothing_has_a_row(tmp_path: Path) -> None:
    found = profile(plant(tmp_path, [ONE_WAY, Planted("dead", {"x": toward(0)}, items=8, easy=8)]))
    row = row_of(found, "dead")
    assert row["kept"] == 0
    assert row["adds_little"] == row["items_at_ceiling"] == 8
    assert row["models_at_ceiling"] == 80


def test_results_of_other_data_are_refused(made: Made) -> None:
    with pytest.raises(InputError, match="not of this consensus"):
        station.build(
            made.results, made.calibration, replace(made.left_out, data_hash="1" * 64), made.coverage
        )
