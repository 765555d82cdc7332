"""Checks of the headline against what was turned, stretched and shaken on purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmirt import config, matrix
from benchmirt.dimensions import checks, consensus
from benchmirt.inference import FitRecord, em


@pytest.fixture(scope="module")
def record():
    """Return a fit of planted responses in two dimensions."""
    rng = np.random.default_rng(2)
    theta, a = rng.normal(size=(40, 2)), rng.normal(size=(150, 2)) * [1.2, 0.8]
    p = 1 / (1 + np.exp(-(theta @ a.T + rng.normal(size=150))))
    return em.fit(matrix.from_arrays((rng.random(p.shape) < p).astype(np.int8)), 2)


def turned(record, angle=0.7, flatter=1.0, surer=1.0):
    """Return the same fit in another frame, with discriminations and standard errors that are multiples of its own."""
    R = np.array([[np.cos(angle), -np.sin(angle)], [-np.sin(angle), -np.cos(angle)]])
    return replace(
        record,
        theta_mean=record.theta_mean @ R,
        theta_cov=surer**2 * R.T @ record.theta_cov @ R,
        a_mean=flatter * record.a_mean @ R,
    )


def test_a_fit_in_another_frame_agrees_in_all(record):
    headline = consensus.build([record], fit="corrected")
    found = checks.table(headline, {"same": turned(record)})
    assert found["ability"].tolist() == [1, 2]
    np.testing.assert_allclose(found[["congruence", "ability_r", "mdisc_ratio"]], 1.0, atol=1e-4)
    np.testing.assert_allclose(found["ability_sd_ratio"], 1.0, atol=1e-3)
    np.testing.assert_allclose(found["ability_difference"], 0.0, atol=1e-3)
    assert found["sigma_t"].isna().all()


def test_ratios_are_headline_to_check(record):
    headline = consensus.build([record], fit="corrected")
    found = checks.table(headline, {"other": turned(record, flatter=1.25, surer=2.0)})
    np.testing.assert_allclose(found["mdisc_ratio"], 0.8, atol=1e-4)
    np.testing.assert_allclose(found["ability_sd_ratio"], 0.5, atol=1e-3)


def test_a_shift_by_its_own_error_is_a_difference_of_one(record):
    headline = consensus.build([record], fit="corrected")
    sd = np.sqrt(np.diagonal(headline.ability_cov, axis1=1, axis2=2))
    sign = np.where(np.arange(40) % 2, 1.0, -1.0)[:, None]
    moved = replace(
        turned(record, angle=0.0), theta_mean=(headline.ability_theta + sign * sd) @ np.linalg.inv(headline.T)
    )
    moved = replace(moved, theta_cov=headline.theta_cov, a_mean=headline.a)
    found = checks.table(headline, {"shaken": moved})
    np.testing.assert_allclose(found["ability_difference"], 1.0, atol=1e-6)
    assert (found["ability_r"] < 0.99).all()


def test_fits_of_other_data_are_refused(record):
    headline = consensus.build([record], fit="corrected")
    with pytest.raises(ValueError, match="other models"):
        checks.table(headline, {"other": replace(record, models=record.models[::-1])})


def test_a_fit_is_its_first_seed_that_did_not_fail(record, tmp_path):
    paths = [tmp_path / "fits" / fit / f"seed{seed}.nc" for fit in ("nuts", "dims-k2") for seed in (0, 1)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    failure = {"engine": "nuts", "dims": 2, "seed": 0, "data_hash": "", "why": "numbers ceased to be finite"}
    for path in (paths[0], *paths[2:]):
        FitRecord.save_failure(path, **failure)
    replace(record, seed=1).save(paths[1])
    found = checks.read(paths)
    assert list(found) == ["nuts"]
    assert found["nuts"].seed == 1


def test_the_checks_are_the_fits_of_the_same_responses_and_size(minimal_config, tmp_path):
    (tmp_path / "responses.csv").write_text("question_id,a,b\nq,1,0\n", encoding="utf-8")
    study = config.load(minimal_config(fits={"testlets": True, "dims": 2, "max_dims": 3}), tmp_path)
    rows = config.fits_table(study)
    assert config.checks_of(rows) == ["dims-k2", "nuts", "testlets"]
    assert [row["fit"] for row in rows if row["testlets"]] == ["testlets"]
