"""Short forms hold the items that tell most, balanced over benchmarks, and their standard errors come true."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ability_fixture import Floats, answers, calibration_of

from benchmirt.ability.calibration import Calibration
from benchmirt.ability.posterior import posterior
from benchmirt.ability.response import items_of
from benchmirt.errors import InputError
from benchmirt.files import read_json
from benchmirt.shortform import information, listing


def one_ability(a: Floats, d: Floats) -> Calibration:
    """Items of one ability without error and floor."""
    known = calibration_of(len(a), seed=0, dims=1, error=0.0)
    return replace(known, a=np.asarray(a, dtype=float)[:, None], d=np.asarray(d, dtype=float))


def whole_list(
    known: Calibration, balance: information.Balance = "none", direction: Floats | None = None
) -> list[int]:
    group, share = information.shares(known.benchmark_of(), balance)
    return [
        place
        for place, _ in information.greedy(information.bank_of(items_of(known)), group, share, direction)
    ]


def test_the_information_of_a_2pl_item_is_the_known_one() -> None:
    """Birnbaum (1968): a^2 P (1 - P), largest a^2 / 4 where d = -a theta; w is that without a^2."""
    known = one_ability(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    bank = information.bank_of(items_of(known))
    points = np.polynomial.hermite_e.hermegauss(information.PER_DIMENSION[1])[0]
    p = 1 / (1 + np.exp(-(points[:, None] * [1.0, 2.0] + [0.0, 1.0])))
    assert np.allclose(bank.weight, p * (1 - p), atol=1e-6)
    assert bank.share.sum() == pytest.approx(1)


def test_the_information_of_an_item_with_a_floor_is_the_known_one() -> None:
    """Birnbaum (1968) for the three-parameter model: a^2 (P - c)^2 (1 - P) / (P (1 - c)^2)."""
    known = replace(one_ability(np.array([1.3]), np.array([0.4])), floor=np.array([0.25]))
    points = np.polynomial.hermite_e.hermegauss(information.PER_DIMENSION[1])[0]
    p = 0.25 + 0.75 / (1 + np.exp(-(1.3 * points + 0.4)))
    exact = (p - 0.25) ** 2 * (1 - p) / (p * 0.75**2)
    assert np.allclose(information.bank_of(items_of(known)).weight[:, 0], exact, rtol=1e-4)


def test_an_item_that_may_be_luck_comes_after_one_that_is_known() -> None:
    known = calibration_of(2, seed=0, dims=1, error=0.0)
    cov = np.zeros((2, 2, 2))
    cov[0] = np.eye(2)
    known = replace(known, a=np.full((2, 1), 1.5), d=np.zeros(2), item_cov=cov)
    assert whole_list(known) == [1, 0]


def determinant(bank: information.Bank, places: tuple[int, ...]) -> float:
    at = list(places)
    information = np.eye(bank.a.shape[1]) + np.einsum(
        "qj,jk,jl->qkl", bank.weight[:, at], bank.a[at], bank.a[at]
    )
    return float(bank.share @ np.linalg.slogdet(information)[1])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_greedy_lists_are_all_but_the_best_of_all_lists(seed: int) -> None:
    """The first item is the best there is; lists of four reach far more than the guaranteed 1 - 1/e of the best of all."""
    known = calibration_of(11, seed=seed, error=0.2, floor=0.25)
    bank = information.bank_of(items_of(known))
    chosen = whole_list(known)
    for size in (1, 4):
        best = max(determinant(bank, places) for places in combinations(range(11), size))
        reached = determinant(bank, tuple(chosen[:size]))
        assert reached <= best + 1e-9
        assert reached >= (1 - 1 / np.e) * best
        assert reached >= (best - 1e-9 if size == 1 else 0.97 * best)


def test_the_inverses_that_are_kept_up_to_date_are_the_inverses() -> None:
    known = calibration_of(30, seed=4, error=0.3)
    bank = information.bank_of(items_of(known))
    group, share = information.shares(known.benchmark_of(), "none")
    found = list(islice(information.greedy(bank, group, share), 12))
    chosen, inverse = [place for place, _ in found], found[-1][1]
    a = bank.a[chosen]
    exact = np.linalg.inv(np.eye(2) + np.einsum("qj,jk,jl->qkl", bank.weight[:, chosen], a, a))
    assert np.allclose(inverse, exact, atol=1e-10)
    assert len(set(chosen)) == 12


def test_one_ability_is_measured_by_its_own_items() -> None:
    """With items of two kinds, a list for one ability begins with those that point along it."""
    known = calibration_of(40, seed=5, error=0.1)
    first = np.arange(40) % 2 == 0
    along = np.where(first[:, None], [1.2, 0.05], [0.05, 1.2])
    known = replace(known, a=along, d=np.zeros(40), T=np.eye(2))
    for k in range(2):
        form = listing.build(known, size=15, ability=k + 1, balance="none")
        assert (first[form.places] == (k == 0)).all()
        assert form.standard_errors[-1, k] < 0.65 < form.standard_errors[-1, 1 - k]
    assert np.array_equal(
        listing.build(known, size=15, ability="Reasoning", balance="none").places,
        listing.build(known, size=15, ability=1, balance="none").places,
    )


@pytest.mark.parametrize("balance", ["proportional", "equal"])
def test_every_beginning_of_a_list_is_balanced(balance: information.Balance) -> None:
    known = calibration_of(120, seed=6)
    names = np.random.default_rng(7).choice(["a", "b", "c", "d"], size=120, p=[0.5, 0.25, 0.15, 0.1])
    known = replace(known, item_table=known.item_table.assign(benchmark=names))
    group, share = information.shares(known.benchmark_of(), balance)
    assert share.sum() == pytest.approx(1)
    chosen = group[whole_list(known, balance)[:40]]
    for size in range(1, 41):
        counts = np.bincount(chosen[:size], minlength=4)
        assert (counts < share * size + 1 + 1e-9).all()
        if balance == "equal" and (counts < np.bincount(group)).all():
            assert np.ptp(counts) <= 1


def test_without_balance_a_poor_benchmark_may_be_left_out() -> None:
    known = calibration_of(60, seed=8)
    poor = known.benchmark_of() == "benchmark-1"
    known = replace(known, a=np.where(poor[:, None], 0.05, known.a))
    assert not poor[whole_list(known)[:20]].any()
    assert poor[whole_list(known, "proportional")[:21]].sum() == 7


def test_standard_errors_fall_and_are_those_of_simulated_models() -> None:
    """The last one is the root of the mean posterior variance of models who answer just the list."""
    known = calibration_of(150, seed=9, error=0.3, floor=0.25)
    form = listing.build(known, size=60)
    assert (np.diff(np.vstack([form.start, form.standard_errors]), axis=0) < 1e-12).all()
    assert form.start == pytest.approx(np.ones(2), abs=1e-6)
    theta = np.random.default_rng(10).normal(size=(2000, 2))
    responses = np.ascontiguousarray(answers(known, theta, seed=11)[:, form.places])
    found = posterior(responses, items_of(known, form.places))
    shown = np.einsum("kt,nkl,lt->nt", known.T, found.cov, known.T)
    assert form.standard_errors[-1] == pytest.approx(np.sqrt(shown.mean(axis=0)), rel=0.05)
    assert form.standard_errors[-1] == pytest.approx(
        np.sqrt((((found.mean - theta) @ known.T) ** 2).mean(axis=0)), rel=0.08
    )


def test_a_list_ends_where_it_is_precise_enough() -> None:
    known = calibration_of(150, seed=12)
    form = listing.build(known, standard_error=0.5)
    assert (form.standard_errors[-1] <= 0.5).all()
    assert (form.standard_errors[-2] > 0.5).any()
    capped = listing.build(known, size=3, standard_error=0.5)
    assert np.array_equal(capped.places, form.places[:3])


def test_what_cannot_be_had_is_refused() -> None:
    known = calibration_of(20, seed=13)
    for options, word in (
        ({}, "size or a standard_error"),
        ({"size": 21}, "at most 20"),
        ({"standard_error": 0.01}, "at least"),
        ({"size": 0}, "shortform.size: found 0; expected a whole number"),
        ({"size": 2.5}, "shortform.size: found 2.5"),
        ({"size": True}, "shortform.size: found True"),
        (
            {"size": 3, "standard_error": float("nan")},
            "shortform.standard_error: found nan; expected a number above 0",
        ),
        ({"standard_error": -1}, "shortform.standard_error: found -1"),
        ({"size": 3, "ability": "safty"}, '"safety"'),
        ({"size": 3, "ability": 3}, '1 ("reasoning")'),
    ):
        with pytest.raises(InputError) as caught:
            listing.build(known, **options)  # type: ignore[arg-type]
        assert word in str(caught.value)


def test_the_files_say_what_to_run_and_how_it_was_chosen(tmp_path: Path) -> None:
    known = calibration_of(30, seed=14, bare=5)
    options = {"size": 6, "standard_error": None, "ability": "all", "balance": "equal"}
    form = listing.build(known, size=6, balance="equal")
    listing.write(form, known, options, tmp_path)
    table = pd.read_csv(tmp_path / "shortform.csv")
    assert table["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["question_id"].tolist() == [known.items[place] for place in form.places]
    summary = read_json(tmp_path / "shortform.json")
    assert summary["simulated"] is True
    assert summary["benchmarks"] == {"benchmark-0": 2, "benchmark-1": 2, "benchmark-2": 2}
    assert summary["abilities"]["standard_error_2"]["expected"] == pytest.approx(form.standard_errors[-1, 1])
