"""The population that twins are drawn from: its moments are those planned, and what is drawn is independent."""

from __future__ import annotations

import numpy as np
import pytest

from benchmirt.simulate import design, population
from benchmirt.simulate.population import FRAME


def test_the_plane_has_the_correlation_of_the_abilities() -> None:
    np.testing.assert_allclose(
        FRAME @ FRAME.T, [[1, design.ABILITY_CORRELATION], [design.ABILITY_CORRELATION, 1]]
    )


@pytest.mark.parametrize("related", [True, False])
def test_moments_of_the_population(related: bool) -> None:
    models = population.draw_models(np.random.default_rng(1), 60_000, related=related)
    np.testing.assert_allclose(models.theta.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(np.cov(models.theta.T), FRAME @ FRAME.T, atol=0.06)
    np.testing.assert_allclose(np.cov(models.own.T), np.eye(16), atol=0.06)
    sizes = np.unique(models.lineage, return_counts=True)[1]
    assert set(sizes[:-1]) <= ({1, 2, 3, 4, 7, 8, 11, 12, 14} if related else {1})


def test_models_of_a_lineage_are_alike_and_others_are_not() -> None:
    models = population.draw_models(np.random.default_rng(2), 60_000)
    ability = models.theta[:, 0]
    same = models.lineage[1:] == models.lineage[:-1]
    within = np.corrcoef(ability[1:][same], ability[:-1][same])[0, 1]
    between = np.corrcoef(ability[1:][~same], ability[:-1][~same])[0, 1]
    assert within == pytest.approx(0.45, abs=0.04)
    assert between == pytest.approx(0.0, abs=0.04)


def test_items_point_where_their_unit_does_on_average() -> None:
    plan = population.as_plan(xstest={"safe": 45.0})
    items = population.draw_items(np.random.default_rng(3), plan, 4000)
    planned = population.directions(plan)
    for name in ("wmdp/all", "harmbench/copyright", "xstest/safe", "harmbench"):
        benchmark, _, unit = name.partition("/")
        own = items[(items["benchmark"] == benchmark) & (items["unit"] == (unit or items["unit"]))]
        mean = own[["a_reasoning", "a_safety"]].mean().to_numpy() @ FRAME
        cosine = mean @ planned[name] / np.linalg.norm(mean) / np.linalg.norm(planned[name])
        assert np.degrees(np.arccos(min(cosine, 1.0))) < 1.0, name


def test_models_made_alike_have_the_same_probabilities_and_a_shift_moves_them() -> None:
    rng = np.random.default_rng(4)
    models = population.draw_models(rng, 10).alike(3, 7).alike(5, 7, (0.0, -1.0))
    items = population.draw_items(rng, population.as_plan(), 12)
    p = population.probabilities(models, items)
    np.testing.assert_array_equal(p[3], p[7])
    assert models.lineage[3] == models.lineage[7]
    safety = (items["a_safety"] > 0.2).to_numpy()
    assert (p[5, safety] < p[7, safety]).all()
    assert not np.allclose(p[4], p[7])


def test_twins_have_one_shape_and_only_items_that_tell_models_apart() -> None:
    plan = population.as_plan()
    units = sum(len(benchmark.units) for benchmark in plan)
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        twin = population.twin(rng, population.draw_models(rng, 40), plan, 10)
        assert twin.responses.shape == twin.probability.shape == (40, 10 * units)
        assert (twin.items.groupby(["benchmark", "unit"]).size() == 10).all()
        assert (twin.responses == 0).any(axis=0).all()
        assert (twin.responses == 1).any(axis=0).all()
        assert (twin.probability >= twin.items["floor"].to_numpy()).all()
        assert (twin.probability <= twin.items["ceiling"].to_numpy()).all()


def test_too_few_items_that_tell_models_apart_are_refused() -> None:
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="too few items"):
        population.twin(rng, population.draw_models(rng, 2), population.as_plan(), 10)
