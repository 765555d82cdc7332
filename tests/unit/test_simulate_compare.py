"""The comparison with the truth: perfect results agree with it, spoilt ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmirt import files, simulate
from benchmirt.simulate import compare, design

LABELS: dict[str, Any] = {
    "dimensions": [
        {"ability": 1, "name": "safety", "orientation": -1},
        {"ability": 2, "name": "reasoning", "orientation": 1},
    ]
}
CLAIMS = [f"C{number}" for number in range(1, 23)]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    simulate.table("planted", 60, 500, 1, folder / "tables", folder / "truth")
    return folder / "truth"


@pytest.fixture
def models(truth: Path) -> pd.DataFrame:
    """Estimates that are the truth, turned round and doubled where that is free."""
    frame = pd.read_csv(truth / "simulated_truth_models.csv")
    rng = np.random.default_rng(1)
    error = 0.1 * rng.standard_normal((2, len(frame)))
    safety, reasoning = -2 * (frame["safety"] + error[0]), frame["reasoning"] + error[1]
    table = pd.DataFrame(
        {"model": frame["model"], "reasoning": False, "ability_1": safety, "ability_2": reasoning}
    )
    for column, width in (("ability_1", 2 * 0.196), ("ability_2", 0.196)):
        table[f"{column}_low"], table[f"{column}_high"] = table[column] - width, table[column] + width
    probability = np.load(truth / "simulated_truth_probabilities.npy")
    items = pd.read_csv(truth / "simulated_truth_items.csv")
    for name in items["benchmark"].unique():
        table[f"{name}_average"] = probability[:, items["benchmark"] == name].mean(axis=1)
    return table


def test_abilities(models: pd.DataFrame, truth: Path) -> None:
    table = compare.abilities(models, LABELS, pd.read_csv(truth / "simulated_truth_models.csv"))
    assert set(table["ability"]) == {"reasoning", "safety"}
    assert (table["r"] > 0.98).all()
    assert table["r_other"].abs().max() < 0.35
    assert table["coverage"].between(0.85, 1.0).all()


def test_narrow_intervals_do_not_cover(models: pd.DataFrame, truth: Path) -> None:
    models["ability_2_low"] = models["ability_2"] - 0.01
    models["ability_2_high"] = models["ability_2"] + 0.01
    table = compare.abilities(models, LABELS, pd.read_csv(truth / "simulated_truth_models.csv"))
    coverage = table.set_index("ability")["coverage"]
    assert coverage["reasoning"] < 0.3
    assert coverage["safety"] > 0.8


def test_correlations(models: pd.DataFrame, truth: Path) -> None:
    table = compare.correlations(models, LABELS, pd.read_csv(truth / "simulated_truth_correlations.csv"))
    assert len(table) == 32
    assert table["difference"].abs().max() < 0.1
    cell = table.set_index(["benchmark", "ability"])["true"]
    assert cell["harmbench", "safety"] == pytest.approx(0.90)


def test_directions(truth: Path) -> None:
    items = pd.read_csv(truth / "simulated_truth_items.csv")
    a = items[["a_reasoning", "a_safety"]].to_numpy()
    rho = design.ABILITY_CORRELATION
    gram = np.array([[1, rho], [rho, 1]])
    inner = a @ gram  # inner products with the two axes, both of length one
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = np.degrees(np.arccos(inner / np.sqrt(np.einsum("jk,kl,jl->j", a, gram, a))[:, None]))
    table = pd.DataFrame({"question_id": items["question_id"], "benchmark": items["benchmark"]})
    table["angle_to_1"], table["angle_to_2"] = 180 - angle[:, 1], angle[:, 0]
    found = compare.directions(table, LABELS, items)
    assert len(found) == 2 * sum(len(benchmark.units) for benchmark in design.BENCHMARKS)
    np.testing.assert_allclose(found["true"], found["found"], atol=1e-9)
    by_unit = found.set_index(["benchmark", "unit", "ability"])["true"]
    assert by_unit["mmlu-pro", "all", "reasoning"] < 20
    assert by_unit["harmbench", "standard", "safety"] < 40


def test_every_claim_has_an_expected_verdict_for_every_variant() -> None:
    for variant in ("twin", "twin_pure", "one", "noise", "flipped"):
        for scale in ("test", "0.1", "1"):
            rows = compare.expected(variant, scale)
            for column, known in (
                ("corrected", {"reproduced", "not reproduced", "inconclusive", "cannot test"}),
                ("as_published", {"matches", "differs", "not compared", "cannot test"}),
            ):
                of_column = rows[rows["column"] == column]
                assert list(of_column["claim"]) == list(CLAIMS)
                assert {verdict for allowed in of_column["expected"] for verdict in allowed} <= known
    pd.testing.assert_frame_equal(compare.expected("planted"), compare.expected("twin"))


@pytest.mark.parametrize("variant", ["one", "noise"])
def test_no_second_dimension_is_ever_expected_without_one(variant: str) -> None:
    rows = compare.expected(variant)
    needs = rows["claim"].isin([one for one in CLAIMS if one not in ("C1", "C2", "C18", "C22")]) & (
        rows["column"] == "corrected"
    )
    assert all(allowed == ("not reproduced",) for allowed in rows.loc[needs, "expected"])


def test_verdicts_say_what_is_wrong() -> None:
    rows = compare.expected("flipped")
    first = {column: part["expected"].str[0].to_numpy() for column, part in rows.groupby("column")}
    good = pd.DataFrame(
        {
            "claim": list(CLAIMS),
            "corrected_verdict": first["corrected"],
            "as_published_verdict": first["as_published"],
        }
    )
    found = compare.verdicts(good, "flipped")
    assert found["agrees"].all()
    assert not found["false_claim"].any()
    good.loc[good["claim"] == "C9", "corrected_verdict"] = "reproduced"
    wrong = compare.verdicts(good, "flipped").set_index(["claim", "column"])
    assert not wrong.loc[("C9", "corrected"), "agrees"]
    assert wrong.loc[("C9", "corrected"), "false_claim"]
    assert wrong["false_claim"].sum() == 1
    missing = compare.verdicts(good[good["claim"] != "C9"], "flipped").set_index(["claim", "column"])
    assert pd.isna(missing.loc[("C9", "corrected"), "found"])
    assert not missing.loc[("C9", "corrected"), "agrees"]


def test_write(models: pd.DataFrame, truth: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    items = pd.read_csv(truth / "simulated_truth_items.csv")[["question_id", "benchmark"]]
    files.write_json(LABELS, results / "dimensions" / "labels.json")
    files.write_csv(models, results / "dimensions" / "model_statistics.csv")
    files.write_csv(
        items.assign(angle_to_1=60.0, angle_to_2=30.0), results / "dimensions" / "item_statistics.csv"
    )
    claims = pd.DataFrame(
        {"claim": CLAIMS, "corrected_verdict": "inconclusive", "as_published_verdict": "differs"}
    )
    files.write_csv(claims, results / "claims" / "claims.csv")
    paths = compare.write(results, truth, tmp_path / "out")
    assert all(path.name.startswith("simulated_") and path.is_file() for path in paths.values())
    verdicts = pd.read_csv(paths["verdicts"])
    assert set(verdicts["claim"]) == set(CLAIMS)
    assert not verdicts["false_claim"].any()
