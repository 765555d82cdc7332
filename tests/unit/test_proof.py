"""The proof of intervals: truths from another way to compute them, rates counted right, and one twin from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmirt.errors import InputError
from benchmirt.proof import table, trial
from benchmirt.proof.truth import Crowd, Known, axes_of
from benchmirt.resampling import clopper_pearson
from benchmirt.simulate import population
from benchmirt.simulate.population import FRAME, Models


@pytest.fixture(scope="module")
def known() -> Known:
    return Known.build("published")


@pytest.fixture(scope="module")
def border() -> Known:
    return Known.build("border")


def test_axes_of_items_along_two_directions_are_these() -> None:
    items = pd.DataFrame({"a_reasoning": [1.0] * 5 + [0.0] * 4, "a_safety": [0.0] * 5 + [1.0] * 4})
    # items along an ability alone have the pattern (1, 0), and the ability is what correlates 0 with nothing but itself
    axes = axes_of(items)
    np.testing.assert_allclose(np.linalg.norm(axes, axis=0), 1)
    np.testing.assert_allclose(axes.T @ axes, FRAME @ FRAME.T, atol=1e-6)
    np.testing.assert_allclose(axes, FRAME.T, atol=1e-6)


def test_the_crowd_has_the_moments_of_the_population(known: Known) -> None:
    theta = known.models.theta
    np.testing.assert_allclose(theta.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(theta.T, bias=True), FRAME @ FRAME.T, atol=1e-9)


def test_true_correlations_are_those_of_simulated_scores(known: Known) -> None:
    rng = np.random.default_rng(1)
    twin = population.twin(rng, population.draw_models(rng, 80), known.plan, 24)
    crowd = Crowd(known, twin, 0.015)
    fresh: Models = population.draw_models(np.random.default_rng(2), 40_000, related=False)
    y = population.answers(rng, population.probabilities(fresh, twin.items), 0.015)
    axes = axes_of(twin.items)
    abilities = fresh.theta @ np.linalg.inv(FRAME).T @ axes
    for name in ("bbq", "wmdp", "toxigen"):
        own = (twin.items["benchmark"] == name).to_numpy()
        score = (y[:, own] == 1).sum(axis=1) / (y[:, own] >= 0).sum(axis=1)
        for k, ability in enumerate(("reasoning", "safety")):
            assert crowd.r(own, ability) == pytest.approx(np.corrcoef(score, abilities[:, k])[0, 1], abs=0.02)
        assert crowd.mean(own) == pytest.approx(score.mean(), abs=0.01)


def test_true_angles_are_those_of_many_items(known: Known) -> None:
    items = population.draw_items(np.random.default_rng(3), known.plan, 4000)
    own = items[items["benchmark"] == "strongreject"]
    mean = own[["a_reasoning", "a_safety"]].mean().to_numpy() @ FRAME
    cosine = mean @ known.axis("safety") / np.linalg.norm(mean)
    assert known.angle(own, "safety") == pytest.approx(np.degrees(np.arccos(cosine)), abs=1.0)
    assert known.leaning(own, "safety", "reasoning") > 45


def test_the_second_plan_lies_on_the_borders(border: Known) -> None:
    items = population.draw_items(np.random.default_rng(4), border.plan, 3)

    def of(benchmark: str, unit: str) -> pd.DataFrame:
        return items[(items["benchmark"] == benchmark) & (items["unit"] == unit)]

    for benchmark, unit in (("harmbench", "copyright"), ("wildjailbreak", "benign"), ("bbq", "ambig")):
        assert border.leaning(of(benchmark, unit), "reasoning", "safety") == pytest.approx(0, abs=1e-3)
    sets = [border.vector(of("xstest", unit)) for unit in ("safe", "contrast")]
    np.testing.assert_allclose(sets[0], sets[1])
    assert border.leaning(of("harmbench", "standard"), "safety", "reasoning") > 45


# -- counting -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "total"), [(0, 20), (3, 20), (20, 20), (391, 400)])
def test_exact_intervals_of_shares(count: int, total: int) -> None:
    theirs = stats.binomtest(count, total).proportion_ci(0.99, "exact")
    assert clopper_pearson(count, total, 0.99) == pytest.approx((theirs.low, theirs.high))


def _rows() -> pd.DataFrame:
    """Return 100 twins: a statement that covers 90 times, and misses 7 above and 3 below; a gain; two simultaneous cells."""
    rows = []
    for twin in range(1, 101):
        low = 0.6 if twin <= 7 else -0.4 if twin <= 10 else 0.0
        common = {
            "twin": twin,
            "plan": "published",
            "questions": None,
            "ability": None,
            "estimate": low + 0.25,
            "low": low,
            "high": low + 0.5,
            "region_low": 0.3,
            "region_high": None,
            "verdict": "reproduced" if low > 0.3 else "inconclusive",
        }
        rows.append(
            {
                **common,
                "claim": "C9",
                "part": "n",
                "statistic": "r",
                "truth": 0.3,
            }
        )
        gain = 0.1 + 0.001 * (twin % 2)
        rows.append({**common, "claim": "C17", "part": "g", "statistic": "accuracy_gain", "truth": np.nan, "estimate": gain,
                     "low": gain - 0.01, "high": gain + 0.01})  # fmt: skip
        for cell in range(2):
            miss = twin in (cell + 1, 50)
            rows.append({**common, "claim": "C8", "part": f"{cell}: s", "statistic": "simultaneous r", "low": 0.0,
                         "high": 1.0, "truth": 2.0 if miss else 0.5})  # fmt: skip
        rows.append({**common, "claim": "C10", "part": "none", "statistic": "r", "truth": 0.0,
                     "low": np.nan if twin > 90 else -1.0, "high": np.nan if twin > 90 else 1.0})  # fmt: skip
    return pd.DataFrame(rows)


def test_rates_are_counted() -> None:
    found = table.coverage(_rows()).set_index("claim")
    assert list(found.index) == ["C8", "C9", "C10", "C17"]
    nine = found.loc["C9"]
    assert (nine["twins"], nine["coverage"], nine["above"], nine["below"]) == (100, 0.9, 0.07, 0.03)
    theirs = stats.binomtest(90, 100).proportion_ci(0.99, "exact")
    assert (nine["coverage_low"], nine["coverage_high"]) == pytest.approx((theirs.low, theirs.high))
    one_sided = stats.binomtest(7, 100, alternative="less").proportion_ci(0.99, "exact").high
    assert nine["wrong_at_border"] == pytest.approx(one_sided)
    assert (nine["outside_region"], nine["reproduced_outside"]) == (100, 7)
    assert found.loc["C8", "coverage"] == 0.97  # twins 1, 2 and 50 miss a cell
    assert found.loc["C17", "truth"] == pytest.approx(0.1005)
    assert found.loc["C17", "coverage"] == 1.0
    assert (found.loc["C10", "twins"], found.loc["C10", "without_interval"]) == (90, 10)


def test_rows_are_kept_and_counted_on(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.csv"
    assert table.seeds(path, "published") == set()
    whole = _rows()
    for twin in (1, 2, 3):
        table.append(whole[whole["twin"] == twin], path)
    assert table.seeds(path, "published") == {1, 2, 3}
    assert table.seeds(path, "border") == set()
    pd.testing.assert_frame_equal(
        table.coverage(table.read(path)), table.coverage(whole[whole["twin"] <= 3]), check_dtype=False
    )


def test_rows_of_another_order_find_their_columns_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    whole = _rows()
    table.append(whole[whole["twin"] == 1], path)
    table.append(whole.loc[whole["twin"] == 2, whole.columns[::-1]], path)
    pd.testing.assert_frame_equal(
        table.coverage(table.read(path)), table.coverage(whole[whole["twin"] <= 2]), check_dtype=False
    )
    before = path.read_bytes()
    with pytest.raises(InputError, match="no table of these twins"):
        table.append(whole.drop(columns="truth"), path)
    assert path.read_bytes() == before


def test_the_table_is_readable() -> None:
    text = table.markdown(table.coverage(_rows()))
    assert "| published | C9 | n | 100 | .900 |" in text
    border = _rows().assign(plan=table.BORDER)
    text = table.markdown(table.coverage(border))
    assert "| border | C9 | n | 100 | .900 |" in text, "the truth lies on its border"
    border["region_low"] = None
    assert "| border | C9 |" not in table.markdown(table.coverage(border))


# -- a twin -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_twin_goes_the_whole_way(known: Known, tmp_path: Path) -> None:
    rows = trial.run(1, known, tmp_path / "one", replicates=20)
    again = trial.run(1, known, tmp_path / "two", replicates=20)
    pd.testing.assert_frame_equal(rows, again)
    assert set(trial.SHIPPED) - set(rows["claim"]) == {"C4", "C17", "C18"}
    assert rows["truth"].notna().all()
    assert rows["low"].notna().mean() > 0.9
    close = rows[rows["statistic"] == "r"].dropna(subset=["estimate", "truth"])
    assert np.corrcoef(close["estimate"].astype(float), close["truth"].astype(float))[0, 1] > 0.9
    alike = rows[rows["part"].str.startswith("alike")]
    np.testing.assert_allclose(alike["truth"].to_numpy(dtype=float), 0)


@pytest.mark.slow
def test_gains_are_measured_on_few_sets_of_questions() -> None:
    rows = pd.concat([trial.foretell(seed) for seed in (1, 1 + trial.QUESTION_SETS)])
    assert set(rows["claim"]) == {"C4", "C17", "C18"}
    assert set(rows["questions"]) == {1}
    assert (rows["low"] < rows["estimate"]).all()
    assert (rows["estimate"] < rows["high"]).all()
    found = table.coverage(rows)
    assert found["twins"].eq(2).all()
    expected = rows.groupby(["claim", "part"])["estimate"].mean()
    for row in found.to_dict("records"):
        assert row["truth"] == pytest.approx(expected[row["claim"], row["part"]])
