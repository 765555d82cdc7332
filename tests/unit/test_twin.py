"""The twin's raw files, read back: every cell is the simulated truth, or missing for the reason that was planted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmirt import config, matrix, outcomes, sources
from benchmirt.config import RAW, Study
from benchmirt.outcomes import FAILURES, REASONS
from benchmirt.simulate import raw

MODELS = 24  # hold both ways of writing, reasoning models, earlier runs and unused subsets


def study_of(home: Path, models: int) -> Study:
    found = [{"name": kind, "kind": kind} for kind in RAW]
    simulate = {"scale": "test", "models": models}
    return config.load(
        {"study": "twin", "sources": found, "simulate": simulate, "claims": {"file": []}}, home
    )


def collect(twin: raw.Twin, home: Path) -> tuple[Study, list[Path]]:
    """Write raw files where the configuration looks for them, and collect them."""
    study = study_of(home, len(twin.honest))
    raw.write(twin, home / "results" / "sources")
    shards = []
    for source in study.sources:
        folder = home / "results" / "outcomes" / source.name
        for batch in sources.plan(source, study):
            sources.collect(source, study, folder, batch.name)
            shards += [folder / batch.name / f"{shard}.parquet" for shard in batch.shards]
    homes = list(dict.fromkeys(shard.parent for shard in shards))
    for policy in matrix.POLICIES:
        matrix.build(homes, study, policy, home / policy)
    return study, shards


@pytest.fixture(scope="module")
def twin() -> raw.Twin:
    return raw.twin("twin", "test", 1, models=MODELS)


@pytest.fixture(scope="module")
def collected(twin: raw.Twin, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study, list[Path]]:
    home = tmp_path_factory.mktemp("twin")
    return home, *collect(twin, home)


def cells(folder: Path, twin: raw.Twin) -> np.ndarray:
    """Return the responses of a matrix in the truth's order, (N, J), -1 where missing."""
    table = pd.read_parquet(folder / "responses.parquet").set_index("question_id")
    items, models = twin.simulated.item_table["question_id"], twin.simulated.model_table["model"]
    assert set(table.index) == set(items)
    assert set(table.columns) == set(models)
    return table.loc[items, models].to_numpy(dtype=np.int8, na_value=-1).T


@pytest.mark.parametrize("policy", matrix.POLICIES)
def test_every_cell_is_the_truth(
    twin: raw.Twin, collected: tuple[Path, Study, list[Path]], policy: str
) -> None:
    found = cells(collected[0] / policy, twin)
    np.testing.assert_array_equal(found, getattr(twin, policy))
    planted = twin.reason != np.array(None)
    np.testing.assert_array_equal(found[~planted], twin.simulated.responses[~planted])


def test_every_gap_has_the_reason_that_was_planted(
    twin: raw.Twin, collected: tuple[Path, Study, list[Path]]
) -> None:
    items = {name: place for place, name in enumerate(twin.simulated.item_table["question_id"])}
    models = {name: place for place, name in enumerate(twin.simulated.model_table["model"])}
    found = np.full(twin.reason.shape, "not_run", dtype=object)
    for shard in collected[2]:
        for block in outcomes.blocks(shard, models, items):
            why = np.array([None, *REASONS], dtype=object)[block.reason]
            found[block.model, block.item] = why
    np.testing.assert_array_equal(found, twin.reason)


def test_coverage_says_so(twin: raw.Twin, collected: tuple[Path, Study, list[Path]]) -> None:
    failures = twin.failures()
    for policy in matrix.POLICIES:
        coverage = pd.read_csv(collected[0] / policy / "coverage.csv").set_index(["benchmark", "model"])
        left = failures if policy == "honest" else failures[failures["published"].isna()]
        planted = left.groupby(["benchmark", "model", "reason"]).size().unstack(fill_value=0)
        wanted = planted.reindex(index=coverage.index, columns=list(REASONS), fill_value=0)
        np.testing.assert_array_equal(coverage[list(REASONS)].to_numpy(), wanted.to_numpy())
        assert (coverage["items"] > 0).all()
    filled = failures["reason"].isin(FAILURES)
    assert filled.sum() == failures["published"].notna().sum() > 100


def test_items_are_told_as_planted(twin: raw.Twin, collected: tuple[Path, Study, list[Path]]) -> None:
    table = pd.read_parquet(collected[0] / "honest" / "items.parquet")
    truth = twin.simulated.item_table.set_index("question_id").loc[table["question_id"]].reset_index()
    for column in ("benchmark", "category", "subcategory_one", "inverted", "scored_as"):
        assert (table[column].to_numpy() == truth[column].to_numpy()).all(), column
    assert table["options"].astype("Int64").equals(truth["options"].astype("Int64"))
    pairs = pd.DataFrame({"found": table["testlet"].fillna(""), "planted": truth["testlet"].fillna("")})
    pairs = pairs.drop_duplicates()
    assert pairs["found"].is_unique
    assert pairs["planted"].is_unique
    assert table["content_hash"].notna().all()


def test_models_and_lineages_are_those_of_the_study(
    twin: raw.Twin, collected: tuple[Path, Study, list[Path]]
) -> None:
    table = pd.read_parquet(collected[0] / "honest" / "models.parquet").set_index("model")
    truth = twin.simulated.model_table.set_index("model").loc[table.index]
    known = truth["lineage"].notna()
    assert (table.loc[known, "lineage"] == truth.loc[known, "lineage"]).all()
    assert (table["reasoning"].astype(bool) == truth["reasoning"].astype(bool)).all()


def test_everything_says_that_it_is_simulated(collected: tuple[Path, Study, list[Path]]) -> None:
    home, study, shards = collected
    assert study.simulated
    assert all(manifest["simulated"] for shard in shards for manifest in outcomes.manifests(shard))
    assert '"simulated": true' in (home / "honest" / "summary.json").read_text()


def test_the_simulator_writes_where_the_sources_look() -> None:
    assert list(raw.FOLDERS.values()) == list(RAW.values())


def test_the_plan_is_known_before_anything_is_written(tmp_path: Path) -> None:
    study = study_of(tmp_path, 100)
    for source in study.sources:
        jobs = sources.plan(source, study, results="<results>")
        assert [job.name for job in jobs] == ["0of2", "1of2"]
        assert sum(len(job.shards) for job in jobs) == 100
        assert {job.inputs[0] for job in jobs} == {f"<results>/sources/{RAW[source.kind]}"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"simulate": None}, "sources[0].folder: this key is required and missing"),
        (
            {"sources": [{"name": "a", "kind": "table", "responses": "r.csv"}]},
            "no source reads what is simulated",
        ),
        (
            {"sources": [{"name": n, "kind": "leaderboard"} for n in "ab"]},
            "two sources read the same simulated",
        ),
        (
            {"sources": [{"name": "twin", "kind": "simulated"}, {"name": "a", "kind": "leaderboard"}]},
            "this name is taken by the folder of its truth",
        ),
        ({"simulate": {"variant": "twn"}}, 'Did you mean "twin"?'),
        ({"simulate": {"scale": 0.2}}, "expected one of test, 0.1, 1"),
        ({"simulate": {"models": 5}}, "expected at least 8"),
        ({"simulate": {"modells": 50}}, 'simulate.modells: unknown key. Did you mean "models"?'),
        (
            {"sources": [{"name": "a", "kind": "leaderboard", "folder": "nowhere"}]},
            "this folder does not exist",
        ),
        (
            {"sources": [{"name": "a", "kind": "leaderboard", "scoring": ["own.yaml"]}]},
            "sources[0].scoring: this file does not exist",
        ),
        ({"sources": [{"name": "a", "kind": "safety-eval", "responses": "r.csv"}]}, "responses: unknown key"),
    ],
)
def test_configurations_that_are_wrong(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    (tmp_path / "r.csv").write_text("question_id,m\nq,1\n")
    found = [{"name": kind, "kind": kind} for kind in RAW]
    plain = {"study": "twin", "sources": found, "simulate": {}, "claims": {"file": []}}
    with pytest.raises(config.InputError) as caught:
        config.load({**plain, **change}, tmp_path)
    assert words in str(caught.value)


def test_deterministic(twin: raw.Twin, collected: tuple[Path, Study, list[Path]], tmp_path: Path) -> None:
    collect(twin, tmp_path)
    for path in sorted((tmp_path / "results" / "outcomes").rglob("*.*")):
        other = collected[0] / path.relative_to(tmp_path)
        assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.slow
@pytest.mark.parametrize("variant", raw.VARIANTS)
def test_every_variant_with_all_models(variant: str, tmp_path: Path) -> None:
    twin = raw.twin(variant, "test", 2)
    collect(twin, tmp_path)
    for policy in matrix.POLICIES:
        np.testing.assert_array_equal(cells(tmp_path / policy, twin), getattr(twin, policy))
