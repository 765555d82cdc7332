"""The simulator: planted truths are met, variants differ where they should, files are reproducible."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmirt import simulate
from benchmirt.errors import InputError
from benchmirt.simulate import design, layout

PACKAGE = Path(simulate.__file__).parent


@pytest.fixture(scope="module")
def planted() -> simulate.Simulated:
    return simulate.study("planted", 80, 800, 1)


def correlations(simulated: simulate.Simulated) -> pd.DataFrame:
    """Recompute the benchmarks' correlations from the true probabilities, by numpy alone."""
    rows = {}
    for name in dict.fromkeys(simulated.benchmark):
        mean = simulated.probability[:, simulated.benchmark == name].mean(axis=1)
        rows[name] = [np.corrcoef(mean, simulated.theta[:, k])[0, 1] for k in range(2)]
    return pd.DataFrame(rows, index=["reasoning", "safety"]).T


def test_design_is_the_study() -> None:
    sizes = {benchmark.name: benchmark.size for benchmark in design.BENCHMARKS}
    assert len(sizes) == 16
    assert sum(sizes.values()) == 34301
    assert (
        sum(
            size
            for name, size in sizes.items()
            if design.BENCHMARKS[list(sizes).index(name)].category == "reasoning"
        )
        == 20922
    )
    assert sizes["mmlu-pro"] == 11994
    assert sizes["strongreject"] == 2294


@pytest.mark.parametrize(
    ("models", "items", "seed"), [(80, 800, 1), (100, 800, 2), (60, 400, 3), (40, 600, 4)]
)
def test_planted_correlations_are_met(models: int, items: int, seed: int) -> None:
    simulated = simulate.study("planted", models, items, seed)
    found = correlations(simulated)
    for benchmark in design.BENCHMARKS:
        np.testing.assert_allclose(found.loc[benchmark.name], benchmark.correlations, atol=1e-6)
        mean = simulated.probability[:, simulated.benchmark == benchmark.name].mean()
        assert abs(mean - benchmark.mean) < 1e-6


def test_planted_correlations_are_the_published_ones() -> None:
    published = pd.read_csv(design.resources() / "published_correlations.csv")
    by_cell = published.set_index(["benchmark", "ability"])["r"]
    for benchmark in design.BENCHMARKS:
        expected = [by_cell[benchmark.name, ability] for ability in ("reasoning", "safety")]
        np.testing.assert_allclose(benchmark.correlations, expected)


def test_sizes_agree_with_the_tables_of_facts() -> None:
    benchmarks = pd.read_csv(design.resources() / "benchmarks.csv").set_index("benchmark")
    subsets = pd.read_csv(design.resources() / "subsets.csv").set_index(["benchmark", "subcategory_one"])
    for benchmark in design.BENCHMARKS:
        assert benchmark.size == benchmarks.loc[benchmark.name, "items"]
        assert benchmark.category == benchmarks.loc[benchmark.name, "category"]
        planned = {name: size for unit in benchmark.units for name, size in unit.subsets.items()}
        assert set(planned) == set(subsets.loc[benchmark.name].index)
        for name, size in planned.items():
            known = subsets.loc[(benchmark.name, name), "items"]
            assert np.isnan(known) or known == size, (benchmark.name, name)


def test_sample_moments_are_exact(planted: simulate.Simulated) -> None:
    theta = planted.theta
    np.testing.assert_allclose(theta.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(theta.T @ theta / len(theta), [[1, 0.2], [0.2, 1]], atol=1e-12)
    factors = np.column_stack([planted.own, planted.testlet])
    np.testing.assert_allclose(factors.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(factors.T @ theta, 0, atol=1e-10)
    np.testing.assert_allclose(planted.own.T @ planted.own / len(theta), np.eye(16), atol=1e-10)


def test_probabilities_follow_the_written_truth(planted: simulate.Simulated) -> None:
    items = planted.item_table
    names = [benchmark.name for benchmark in design.BENCHMARKS]
    own = planted.own[:, [names.index(name) for name in planted.benchmark]]
    codes, _ = pd.factorize(items["testlet"])
    testlet = np.where(codes >= 0, planted.testlet[:, codes], 0.0)
    logit = (
        planted.eta() + own * items["own_weight"].to_numpy() + testlet * items["testlet_weight"].to_numpy()
    )
    expected = planted.floor + (planted.ceiling - planted.floor) / (1 + np.exp(-logit))
    np.testing.assert_allclose(planted.probability, expected, atol=1e-12)


def test_responses_match_their_probabilities(planted: simulate.Simulated) -> None:
    seen = planted.responses >= 0
    assert 0.010 < 1 - seen.mean() < 0.020
    p = planted.probability[seen]
    y = planted.responses[seen]
    assert abs((y - p).sum()) < 4 * np.sqrt((p * (1 - p)).sum())
    assert set(np.unique(planted.responses)) == {-1, 0, 1}


def test_claim_bearing_sets_have_enough_items(planted: simulate.Simulated) -> None:
    counts = planted.item_table.groupby(["benchmark", "unit"]).size()
    assert len(planted.item_table) == 800
    assert counts.min() >= 24
    kinds = planted.item_table["kind"].value_counts()
    assert 2 <= kinds["constant"] <= 12
    assert 3 <= kinds["reversed"] <= 20
    means = np.where(planted.responses >= 0, planted.responses, np.nan)
    usable = ((np.nanmean(means, axis=0) > 0) & (np.nanmean(means, axis=0) < 1))[:, None]
    kept = planted.item_table[usable].groupby(["benchmark", "unit"]).size()
    assert kept.min() >= 20


def test_loadings_are_heavy_tailed(planted: simulate.Simulated) -> None:
    size = np.log(np.hypot(*planted.a[planted.item_table["kind"] == "ordinary"].T))
    centred = size - size.mean()
    assert np.exp(size).max() > 4 * np.exp(np.median(size))
    assert (centred**3).mean() / (centred**2).mean() ** 1.5 > 0


def test_splits_are_planted(planted: simulate.Simulated) -> None:
    items = planted.item_table[planted.item_table["kind"] == "ordinary"]
    angle = np.degrees(np.arctan2(items["a_safety"], items["a_reasoning"]))
    median = angle.groupby([items["benchmark"], items["unit"]]).median()
    assert median["harmbench", "copyright"] < 35
    assert median["harmbench", "standard"] > 65
    assert median["harmbench", "contextual"] > 65
    assert median["wildjailbreak", "benign"] < 35
    assert median["wildjailbreak", "harmful"] > 65
    assert median["xstest", "safe"] < 35
    assert median["xstest", "contrast"] > 65


def test_floors_and_ceilings(planted: simulate.Simulated) -> None:
    items = planted.item_table
    ordinary = items["kind"] != "constant"
    wmdp = items["benchmark"] == "wmdp"
    assert items.loc[wmdp, "inverted"].all()
    assert not items.loc[~wmdp, "inverted"].any()
    np.testing.assert_allclose(items.loc[wmdp & ordinary, "ceiling"], 0.75)
    gpqa = (items["benchmark"] == "gpqa") & ordinary
    np.testing.assert_allclose(items.loc[gpqa, "floor"], 0.25)


def test_pure_is_two_dimensional() -> None:
    pure = simulate.study("planted_pure", 80, 800, 1)
    planted = simulate.study("planted", 80, 800, 1)
    ordinary = (pure.item_table["kind"] != "constant").to_numpy()
    open_part = ((pure.probability - pure.floor) / (pure.ceiling - pure.floor))[:, ordinary]
    logit = np.log(open_part / (1 - open_part))
    values = np.linalg.svd(logit - logit.mean(axis=0), compute_uv=False)
    assert values[2] < 1e-8 * values[0]
    np.testing.assert_allclose(pure.a, planted.a)


def test_one_and_noise_have_no_second_dimension() -> None:
    one = simulate.study("one", 80, 800, 1)
    assert not one.a[:, 1].any()
    assert not one.item_table[["own_weight", "testlet_weight"]].to_numpy().any()
    ordinary = one.item_table["kind"] == "ordinary"
    runs_down = one.a[ordinary, 0] < 0
    np.testing.assert_array_equal(runs_down, one.item_table.loc[ordinary, "benchmark"] == "wmdp")
    noise = simulate.study("noise", 80, 800, 1)
    assert np.ptp(noise.probability, axis=0).max() == 0


@pytest.mark.parametrize("flip", design.FLIPS)
def test_a_flip_changes_nothing_else(planted: simulate.Simulated, flip: str) -> None:
    other = simulate.study("planted", 80, 800, 1, flip=(flip,))
    changed = (other.probability != planted.probability).any(axis=0)
    assert set(planted.benchmark[changed]) == {flip.split("/")[0]}
    same = planted.benchmark != flip.split("/")[0]
    np.testing.assert_array_equal(other.responses[:, same], planted.responses[:, same])
    np.testing.assert_array_equal(other.responses < 0, planted.responses < 0)


def test_flipped_variant() -> None:
    found = correlations(simulate.study("flipped", 80, 800, 1))
    np.testing.assert_allclose(found.loc["bbq"], [0.06, 0.85], atol=1e-6)
    np.testing.assert_allclose(found.loc["wmdp"], [0.89, 0.21], atol=1e-6)


def test_same_seed_same_study(planted: simulate.Simulated) -> None:
    again = simulate.study("planted", 80, 800, 1)
    np.testing.assert_array_equal(again.responses, planted.responses)
    pd.testing.assert_frame_equal(again.item_table, planted.item_table)
    other = simulate.study("planted", 80, 800, 2)
    assert (other.responses != planted.responses).mean() > 0.2


def test_lineages(planted: simulate.Simulated) -> None:
    table = planted.model_table
    assert len(table) == 80
    assert table["model"].is_unique
    assert (table["lineage"] == "qwen2.5").sum() >= 8
    unknown = table["lineage"].isna()
    codes = pd.Series(planted.lineage)
    assert (codes.map(codes.value_counts())[unknown] == 1).all()
    known = table.loc[~unknown]
    assert (
        known.groupby("lineage")["model"].count() == codes[~unknown].groupby(known["lineage"]).count()
    ).all()
    full = design.models_table(100)
    assert full["lineage"].nunique() == 39
    between = pd.Series(planted.theta[:, 1]).groupby(planted.lineage)
    assert between.transform("mean").var() > 0.3


def test_tables_of_models_and_lineages_agree() -> None:
    models = design.models_table(100)
    lineages = pd.read_csv(design.resources() / "lineages.csv")
    assert lineages["lineage"].is_unique
    assert set(models["lineage"].dropna()) == set(lineages["lineage"])
    assert models["lineage_evidence"].notna().all()
    assert models["size_b"].between(0.1, 200).all()
    assert models["reasoning"].sum() == 6
    assert (models["model"].str.split("__").str[0] == models["publisher"]).all()


@pytest.mark.parametrize("count", [8, 20, 39, 60, 99, 100])
def test_models_are_spread_over_lineages(count: int) -> None:
    table = design.models_table(count)
    assert len(table) == count
    assert table["model"].is_unique


@pytest.mark.parametrize("items", [100, 300, 800, 3430, 34301])
def test_allocation_adds_up(items: int) -> None:
    counts = design.allocate(items)
    assert sum(sum(part.values()) for part in counts.values()) == items
    for benchmark in design.BENCHMARKS:
        for unit in benchmark.units:
            part = counts[f"{benchmark.name}/{unit.name}"]
            assert all(0 <= part[name] <= size for name, size in unit.subsets.items())


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
def test_scaled_allocation_keeps_twenty_items_a_subset(scale: float) -> None:
    counts = design.allocate(scale=scale)
    for benchmark in design.BENCHMARKS:
        for unit in benchmark.units:
            for name, size in unit.subsets.items():
                part = counts[f"{benchmark.name}/{unit.name}"][name]
                assert part >= min(20, size)
                least = 20 if len(unit.subsets) > 1 else 26
                assert part == max(min(least, size), round(scale * size))


def test_question_ids_are_unique_at_full_size() -> None:
    counts = design.allocate(scale=1.0)
    table = pd.concat([layout.items(benchmark, counts, 1) for benchmark in design.BENCHMARKS])
    ids = table["question_id"]
    assert len(ids) == 34301
    assert ids.is_unique
    places = table[["task", "doc_id"]]
    assert not places.duplicated().any()
    assert table.loc[table["benchmark"] == "strongreject", "testlet"].nunique() == 313
    pro = table.loc[table["benchmark"] == "mmlu-pro", "doc_id"]
    assert not set(pro) & set(layout.MMLU_PRO_EXCLUDED)
    assert set(pro) | set(layout.MMLU_PRO_EXCLUDED) == set(range(12032))
    assert {"ifeval__41", "gpqa__extended_3", "bbh__boolean_expressions_12", "math__algebra_hard_5"} <= set(
        ids
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"variant": "planed"}, ["planed", 'Did you mean "planted"']),
        ({"flip": ("bbk",)}, ["bbk", '"bbq"']),
        ({"models": 7}, ["models", "7", "8 to 100"]),
        ({"items": 99}, ["items", "99"]),
        ({"items": None, "scale": 1.5}, ["scale", "1.5"]),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        simulate.study(**arguments)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


def test_tables(tmp_path: Path) -> None:
    paths = simulate.table("planted", 40, 300, 5, tmp_path / "out", tmp_path / "truth")
    assert all("simulated" in path.name for path in paths.values())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "simulated_responses.csv.gz",
        "simulated_items.csv",
        "simulated_models.csv",
    }
    simulated = simulate.study("planted", 40, 300, 5)
    responses = pd.read_csv(paths["responses"])
    assert responses.shape == (300, 41)
    values = responses.drop(columns="question_id").to_numpy().T
    np.testing.assert_array_equal(np.where(np.isnan(values), -1, values), simulated.responses)
    items = pd.read_csv(paths["items"])
    assert list(items["question_id"]) == list(responses["question_id"])
    assert set(items["category"]) == {"reasoning", "safety"}
    models = pd.read_csv(paths["models"])
    assert list(models["model"]) == list(responses.columns[1:])
    assert models["notes"].str.contains("simulated").all()
    truth_items = pd.read_csv(paths["truth_items"])
    np.testing.assert_allclose(truth_items["a_safety"], simulated.a[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(np.load(paths["truth_probabilities"]), simulated.probability)


def test_tables_are_byte_reproducible(tmp_path: Path) -> None:
    first = simulate.table("flipped", 30, 200, 1, tmp_path / "a", tmp_path / "at")
    second = simulate.table("flipped", 30, 200, 1, tmp_path / "b", tmp_path / "bt")
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_matrix() -> None:
    simulated = simulate.matrix(50, 200, 3, seed=2, missing=0.1, floor=0.2, ceiling=0.9)
    assert simulated.responses.shape == (50, 200)
    np.testing.assert_allclose(simulated.theta.T @ simulated.theta / 50, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(simulated.theta.mean(axis=0), 0, atol=1e-12)
    expected = 0.2 + 0.7 / (1 + np.exp(-simulated.eta()))
    np.testing.assert_allclose(simulated.probability, expected)
    assert 0.06 < (simulated.responses < 0).mean() < 0.14
    assert len(set(simulated.lineage)) == 15
    assert len(set(simulated.benchmark)) == 4


def test_nothing_of_the_model_or_the_readers_is_imported() -> None:
    allowed = {"errors", "files", "ids", "roster", "simulate"}
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names = (
                    [node.module]
                    if node.module != "benchmirt"
                    else [f"benchmirt.{alias.name}" for alias in node.names]
                )
            for name in names:
                if name.split(".")[0] == "benchmirt":
                    assert name.split(".")[1] in allowed, f"{path.name} imports {name}"
                assert name.split(".")[0] not in {"jax", "numpyro"}


def test_testlets_agree_with_the_table_of_facts() -> None:
    table = pd.read_csv(design.resources() / "testlets.csv").set_index("benchmark")
    counts = design.allocate(scale=1.0)
    for benchmark in design.BENCHMARKS:
        number = layout.items(benchmark, counts, 1)["testlet"].nunique()
        assert number == (table.loc[benchmark.name, "number"] if benchmark.name in table.index else 0)


@pytest.mark.slow
def test_full_size() -> None:
    simulated = simulate.study("planted", 100, None, 1, scale=1.0)
    assert simulated.responses.shape == (100, 34301)
    found = correlations(simulated)
    for benchmark in design.BENCHMARKS:
        np.testing.assert_allclose(found.loc[benchmark.name], benchmark.correlations, atol=1e-6)
