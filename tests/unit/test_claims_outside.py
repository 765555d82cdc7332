"""Check values from outside, beside a published table of models and the responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_fixture import World, plant, study_of
from scipy import stats

from benchmirt import claims
from benchmirt.claims import check_values, outside
from benchmirt.errors import InputError
from benchmirt.report import tables

SHIPPED = Path(__file__).resolve().parents[2] / "workflow" / "resources" / "check_values.csv"
HEAD = ",".join(check_values.COLUMNS) + "\n"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("planted"), World())


@pytest.fixture(scope="module")
def table(planted: Path) -> pd.DataFrame:
    """Return the table of models that would have been published of the planted responses."""
    home = planted / "matrix" / "published"
    items = pd.read_parquet(home / "items.parquet").set_index("question_id")
    kept = items[items["kept"]]
    wide = pd.read_parquet(home / "responses.parquet").set_index("question_id").loc[kept.index]
    cells = wide.astype(float).where(lambda one: one >= 0)
    means = cells.groupby(kept["benchmark"]).mean().T.add_suffix("_average")
    means["reasoning_average"] = cells[kept["category"] == "reasoning"].mean()
    select = (kept["category"] == "safety") & ~kept["benchmark"].isin(["wmdp", "bbq"])
    means["select_safety_average"] = cells[select].mean()
    models = pd.read_parquet(home / "models.parquet").set_index("model")
    means.insert(0, "family", models["lineage"].reindex(means.index).fillna("none"))
    means.index = means.index.str.replace("__", "/", n=1)
    return means.rename_axis("model").reset_index()


def judged(planted: Path, home: Path, published: pd.DataFrame, checks: str) -> list[dict[str, Any]]:
    """Judge claim C8 with these published means and check values; return what it says of the latter."""
    home.mkdir(exist_ok=True)
    published.to_csv(home / "llm_statistics.csv", index=False)
    (home / "check_values.csv").write_text(HEAD + checks, encoding="utf-8")
    study = study_of(base=home, published_statistics={"models": "llm_statistics.csv"})
    record = claims.evaluate("C8", planted, study)
    claims.write(record, home / "C8.json", home / "C8.csv")
    rows = pd.read_csv(home / "C8.csv")
    assert (rows["row"] == "check value").sum() == len(record["check_values"])
    assert len(tables._check_values(record).rows) == len(record["check_values"])
    found: list[dict[str, Any]] = record["check_values"]
    return found


def test_correlations_and_scores_are_those_of_another_program(
    planted: Path, table: pd.DataFrame, tmp_path: Path
) -> None:
    model = str(table["model"].iloc[3]).replace("/", "__")
    x, y = table["reasoning_average"], table["select_safety_average"]
    rho, r = stats.spearmanr(x, y).statistic, stats.pearsonr(x, y).statistic
    rows = (
        f"spearman,reasoning_average,select_safety_average,,{rho:.3f},-1,1,x\n"
        f"pearson,reasoning_average,select_safety_average,,{r + 0.001:.3f},,,x\n"
        f"score,wmdp_average,,{model},{table['wmdp_average'].iloc[3]:.3f},,,x\n"
        f"spearman,wmdp_average,unheard_average,,0.5,,,x\n"
        f"score,wmdp_average,,nobody,0.5,,,x\n"
    )
    found = judged(planted, tmp_path, table, rows)
    assert [row["agrees"] for row in found] == [True, False, True, None, None]
    assert [found[0][key] for key in ("published", "here")] == pytest.approx([rho, rho])
    assert found[1]["published"] == pytest.approx(r)
    assert found[2]["published"] == pytest.approx(table["wmdp_average"].iloc[3])
    assert found[2]["here"] == pytest.approx(table["wmdp_average"].iloc[3])
    assert found[0]["published_low"] < rho < found[0]["published_high"]
    assert (found[0]["checked_low"], found[0]["checked_high"]) == (-1, 1)
    assert [row["models"] for row in found] == [len(table), len(table), 1, 0, 0]


def test_a_table_of_other_models_is_told_apart_from_the_responses(
    planted: Path, table: pd.DataFrame, tmp_path: Path
) -> None:
    shuffled = table.assign(wmdp_average=table["wmdp_average"].to_numpy()[::-1])
    r = stats.pearsonr(table["reasoning_average"], table["wmdp_average"]).statistic
    (row,) = judged(planted, tmp_path, shuffled, f"pearson,reasoning_average,wmdp_average,,{r:.3f},,,x\n")
    assert row["agrees"] is False
    assert row["here"] == pytest.approx(r)


def test_models_of_a_family_count_as_one() -> None:
    rng = np.random.default_rng(2)
    both = rng.normal(size=(30, 2)) @ np.array([[1, 0.5], [0, 1]])
    single = pd.DataFrame(both, columns=["a", "b"], index=[f"m{k}" for k in range(30)])
    families = [f"f{k:02d}" for k in range(30)]
    twice = pd.concat([single, single.add_prefix("").rename(index=lambda name: name + "x")])
    check = [check_values.CheckValue("pearson", "a", "b", "", 0.0, 3, None)]
    (one,) = outside.beside(check, single, single, families)
    (two,) = outside.beside(check, twice, twice, families * 2)
    assert two["published"] == pytest.approx(one["published"])
    assert (two["published_low"], two["published_high"]) == pytest.approx(
        (one["published_low"], one["published_high"])
    )
    # Fisher's interval, which is right for independent normal pairs, is about as wide
    half = np.tanh(np.arctanh(one["published"]) + np.array([-1.96, 1.96]) / np.sqrt(27))
    assert one["published_high"] - one["published_low"] == pytest.approx(half[1] - half[0], rel=0.3)


def test_without_the_published_table_of_models_nothing_is_said(planted: Path) -> None:
    assert claims.evaluate("C8", planted, study_of())["check_values"] == []


def test_the_shipped_check_values_are_read() -> None:
    found = check_values.read(SHIPPED)
    by = {(one.quantity, one.column, one.against or one.model): one for one in found}
    assert len(by) == len(found) == 2 * 12 + 2 * 4
    wmdp = by["spearman", "reasoning_average", "wmdp_average"]
    assert (wmdp.value, wmdp.digits, wmdp.interval) == (-0.876, 3, (-0.945, -0.784))
    assert by["pearson", "ifeval_average", "xstest_average"].value == 0.577
    assert by["score", "select_safety_average", "teknium__OpenHermes-2.5-Mistral-7B"].value == 0.288
    roster = pd.read_csv(SHIPPED.with_name("models.csv"))["model"]
    assert {one.model for one in found if one.model} <= set(roster)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("kendall,a,b,,0.5,,,x", 'quantity "kendall"'),
        ("spearman,a,,,0.5,,,x", 'column "against"'),
        ("score,a,,,0.5,,,x", 'column "model"'),
        ("score,a,b,m,0.5,,,x", 'column "against"'),
        ("pearson,a,b,,half,,,x", 'column "value"'),
        ("pearson,a,b,,nan,,,x", 'column "value"'),
        ("pearson,a,b,,0_5,,,x", 'column "value": found "0_5"; expected a number such as 0.25'),
        ("pearson,a,b,,5e-1,,,x", 'column "value": found "5e-1"'),
        ("spearman,a,b,,2.48,,,x", 'column "value": this is no correlation: found 2.48'),
        ("spearman,a,b,,0.2,0.4,0.6,x", "the interval does not hold the value"),
        ("spearman,a,b,,0.2,0.4,0.1,x", "the interval does not hold the value"),
        ("pearson,a,b,,,,,x", "is missing"),
        ("pearson,a,b,,0.5,0.1,,x", "is missing"),
    ],
)
def test_a_row_that_says_nothing_is_refused(row: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + row + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        check_values.read(path)
    assert said in str(caught.value)
    assert "row 2" in str(caught.value)
    path.write_text("quantity,column\nscore,a\n", encoding="utf-8")
    with pytest.raises(InputError, match='no column "against"'):
        check_values.read(path)
