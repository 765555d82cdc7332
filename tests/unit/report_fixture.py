"""Result files of a made-up study with a known truth, in the shapes that the workflow writes. Simulated data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from prediction_fixture import write_predictions

from benchmirt.files import write_csv, write_json, write_parquet

REASONING = ("bbh", "gpqa", "ifeval", "math", "mmlu-pro", "musr")
SAFETY = (
    "bbq",
    "do_anything_now",
    "harmbench",
    "strongreject",
    "toxigen",
    "trustllm_jailbreaktrigger",
    "wildguardtest",
    "wildjailbreak",
    "wmdp",
    "xstest",
)
LINEAGES = (
    "Llama-3.1",
    "Qwen2.5",
    "Mistral",
    "Yi-1.5",
    "Gemma 2",
    "Phi-3",
    "OLMo",
    "DeepSeek",
    "Falcon",
    "InternLM",
)
VERSIONS = {"python": "3.11.9", "numpy": "2.4.6", "jax": "0.10.2", "numpyro": "0.22.0"}


@dataclass(frozen=True)
class FakeStudy:
    """What figures and report read of a study."""

    name: str = "made_up"
    title: str = "A made-up study with a planted truth"
    simulated: bool = True
    fits: Mapping[str, Any] = field(default_factory=dict)


def _claim(
    identifier: str,
    kind: str,
    statement: str,
    published: dict[str, Any],
    as_published: dict[str, Any],
    corrected: dict[str, Any],
    models: int,
    items: int,
    lineages: int,
    unit: str,
    simulated: bool,
) -> dict[str, Any]:
    return {
        "claim": identifier,
        "kind": kind,
        "statement": statement,
        "published": {"data": "simulated" if simulated else "same", **published},
        "as_published": {"method": "the study's own procedure", "why": "", "parts": [], **as_published},
        "corrected": {
            "method": "lineage-cluster bootstrap of the corrected fit",
            "level": 0.95,
            "interval_kind": "BCa lineage bootstrap",
            "parts": [],
            **corrected,
        },
        "unit": unit,
        "needs_dimension": None,
        "sample": {"models": models, "items": items, "lineages": lineages},
        "why": "The border lies where half of the published difference would be left.",
        "figures": [f"claim_{identifier}"],
        "tables": [f"claims/{identifier}.csv"],
        "simulated": simulated,
        "provenance": {
            "benchmirt": "0.1.0",
            "commit": "0" * 40,
            "data_hash": "ab" * 32,
            "versions": VERSIONS,
        },
    }


def claim_records(
    truth: dict[str, Any],
    *,
    models: int,
    items: int,
    lineages: int,
    simulated: bool,
    second_fails: bool,
    dims: int,
) -> list[dict[str, Any]]:
    """Return records of one claim of every kind, with every verdict among them."""
    few = models < 30

    def word(verdict: str) -> str:
        return "exploratory" if few and verdict != "cannot test" else verdict

    def part(
        name: str, estimate: float | None, interval: Any, low: Any, high: Any, verdict: str, **more: Any
    ) -> dict[str, Any]:
        return {
            "name": name,
            "estimate": estimate,
            "interval": interval,
            "region": {"low": low, "high": high, "text": None},
            "verdict": word(verdict),
            "why": "",
            "items": 120,
            "models": models,
            "lineages": lineages,
            **more,
        }

    def build(identifier: str, kind: str, *args: Any, unit: str) -> dict[str, Any]:
        return _claim(identifier, kind, *args, models, items, lineages, unit, simulated)

    lost = {
        "estimate": None,
        "interval": None,
        "region": None,
        "verdict": word("not reproduced"),
        "why": "no second dimension: dimension 2 does not come back in independent halves (p = .41)",
    }
    counts = truth["counts"]
    return [
        build(
            "C1",
            "count",
            "The matrix has 100 models, 16 benchmarks and 34,301 items.",
            {"text": "100 models, 16 benchmarks, 34,301 items", "value": 34301},
            {"estimate": items, "text": f"{models} models, {items} items", "verdict": "differs"},
            {
                "estimate": items,
                "interval": None,
                "region": {"low": items, "high": items, "text": "exactly the study's manifest"},
                "verdict": word("reproduced"),
                "why": "every count equals the declared one",
                "parts": [
                    part(b, n, None, n, n, "reproduced", published=n + (7 if i == 1 else 0))
                    for i, (b, n) in enumerate(counts.items())
                ],
            },
            unit="count",
        ),
        build(
            "C3",
            "dimensionality",
            "Two dimensions dominate.",
            {"text": "D = 2", "value": 2},
            {"estimate": 3, "text": "3 dimensions by cell-wise accuracy", "verdict": "differs"},
            {
                "estimate": 2,
                "interval": None,
                "region": {"low": 2, "high": 2, "text": "both methods choose 2"},
                "verdict": word("reproduced"),
                "why": "both methods choose two dimensions",
                "parts": [
                    part("held-out lineages", 2, None, 2, 2, "reproduced", unit="count"),
                    part("eigenvalues", 2, None, 2, 2, "reproduced", unit="count"),
                ],
            },
            unit="count",
        ),
        build(
            "C4",
            "correlation",
            "Two dimensions gain 24 points of macro accuracy over one.",
            {"text": "+24 points", "value": 0.24},
            {"estimate": 0.22, "text": "+22 points with the published priors", "verdict": "matches"},
            {
                "estimate": 0.031,
                "interval": [0.022, 0.040],
                "region": {"low": 0.24, "high": None, "text": None},
                "verdict": word("not reproduced"),
                "why": "with equal priors the gain is far smaller: the published one comes from priors",
                "parts": [
                    part(
                        "gain of 2 over 1",
                        0.031,
                        [0.022, 0.040],
                        0.24,
                        None,
                        "not reproduced",
                        published=0.24,
                    )
                ],
            },
            unit="",
        ),
        build(
            "C6",
            "stability",
            "The two dimensions are stable.",
            {"text": "congruence .882 to .998, means .907 and .947", "value": 0.907},
            {"estimate": 0.94, "text": ".94 over ten seeds", "verdict": "matches"},
            lost
            if second_fails
            else {
                "estimate": 0.86,
                "interval": [0.79, 0.92],
                "region": {
                    "low": None,
                    "high": None,
                    "text": "p < .01 against data without the dimension, both dimensions",
                },
                "verdict": word("reproduced"),
                "why": "both dimensions come back in independent halves",
                "parts": [
                    part(
                        f"dimension {k}",
                        0.9 - 0.07 * k,
                        [0.82 - 0.07 * k, 0.95 - 0.05 * k],
                        0.55,
                        None,
                        "reproduced",
                        unit="congruence",
                    )
                    for k in (1, 2)
                ],
            },
            unit="congruence",
        ),
        build(
            "C9",
            "correlation",
            "BBQ follows reasoning, not safety.",
            {"text": ".85 against −.06", "value": 0.79},
            {"estimate": 0.79, "text": ".83 against .05", "verdict": "matches"},
            lost
            if second_fails
            else {
                "estimate": 0.58,
                "interval": [0.31, 0.77],
                "region": {"low": 0.0, "high": None, "text": None},
                "verdict": word("reproduced"),
                "why": "the whole interval of the difference lies above 0",
                "parts": [
                    part(
                        "|r| reasoning minus |r| safety",
                        0.58,
                        [0.31, 0.77],
                        0.0,
                        None,
                        "reproduced",
                        select={"benchmark": "bbq"},
                        ability=1,
                        against=2 if dims > 1 else None,
                        statistic="abs_r_difference",
                        published=0.79,
                    )
                ],
            },
            unit="r",
        ),
        build(
            "C10",
            "correlation",
            "WMDP runs against reasoning, and not with safety, whatever is done about the answers that could not be read.",
            {"text": "−.89, safety .21 (n.s.)", "value": -0.89},
            {"estimate": -0.84, "text": "−.84", "verdict": "matches"},
            lost
            if second_fails
            else {
                "estimate": -0.42,
                "interval": [-0.68, -0.11],
                "region": {"low": None, "high": -0.5, "text": None},
                "verdict": word("inconclusive"),
                "why": "the interval reaches across the border at −.50",
                "parts": [
                    part(
                        "r with reasoning",
                        -0.42,
                        [-0.68, -0.11],
                        None,
                        -0.5,
                        "inconclusive",
                        select={"benchmark": "wmdp"},
                        ability=1,
                        statistic="r",
                        published=-0.89,
                    ),
                    part(
                        "r with safety",
                        0.12,
                        [-0.14, 0.37],
                        -0.5,
                        0.5,
                        "reproduced",
                        select={"benchmark": "wmdp"},
                        ability=2,
                        statistic="r",
                        published=0.21,
                    ),
                ],
            },
            unit="r",
        ),
        build(
            "C11",
            "direction",
            "HarmBench copyright leans to reasoning; standard and contextual lean to safety.",
            {"text": "direction", "value": None},
            {"estimate": 21.0, "text": "21° from reasoning", "verdict": "matches"},
            lost
            if second_fails
            else {
                "estimate": 27.0,
                "interval": [11.0, 44.0],
                "region": {"low": 0.0, "high": 45.0, "text": None},
                "verdict": word("reproduced"),
                "why": "every set points the way the claim says",
                "parts": [
                    part(
                        f"harmbench {s}",
                        e,
                        [e - 14, e + 15],
                        0.0,
                        45.0,
                        v,
                        select={"benchmark": "harmbench", "subcategory_one": s},
                        ability=k,
                        statistic="angle",
                    )
                    for s, e, v, k in (
                        ("copyright", 27.0, "reproduced", 1),
                        ("standard", 18.0, "reproduced", 2),
                        ("contextual", 24.0, "reproduced", 2),
                    )
                ],
            },
            unit="degrees",
        ),
        build(
            "C13",
            "contrast",
            "XSTest: contrast items and safe items lie on different axes.",
            {"text": ".46 and −.53", "value": None},
            {"estimate": 61.0, "text": "61° apart", "verdict": "matches"},
            lost
            if second_fails
            else {
                "estimate": 66.0,
                "interval": [38.0, 89.0],
                "region": {"low": 20.0, "high": None, "text": None},
                "verdict": word("reproduced"),
                "why": "the whole interval of the difference lies above 20°",
                "parts": [
                    part(
                        "contrast minus safe",
                        66.0,
                        [38.0, 89.0],
                        20.0,
                        None,
                        "reproduced",
                        statistic="angle_difference",
                        ability=1,
                        sides=[
                            {"select": {"benchmark": "xstest", "subcategory_one": "contrast_*"}},
                            {
                                "select": {
                                    "benchmark": "xstest",
                                    "subcategory_one": ["homonyms", "figurative"],
                                }
                            },
                        ],
                    )
                ],
            },
            unit="degrees",
        ),
        build(
            "C8",
            "correlation",
            "The table of 32 correlations.",
            {"text": "32 correlations", "value": None},
            {"estimate": 30, "text": "30 of 32 within .05", "verdict": "matches"},
            {
                "estimate": 25,
                "interval": None,
                "region": {"low": 28, "high": None, "text": "at least 28 of 32 within .05"},
                "verdict": word("not reproduced"),
                "why": "25 of 32 within .05 with abilities from the other benchmarks",
                "parts": [
                    part(
                        "cells within .05",
                        25,
                        None,
                        28,
                        None,
                        "not reproduced",
                        unit="count",
                        statistic="count_within",
                        cells=truth["cells"],
                    )
                ],
            },
            unit="count",
        ),
        build(
            "C22",
            "correlation",
            "Prompt safety labels go with safety discrimination.",
            {"text": "sign", "value": None},
            {
                "estimate": None,
                "text": "",
                "verdict": "cannot test",
                "why": "this study has no prompt labels",
            },
            {
                "estimate": None,
                "interval": None,
                "region": None,
                "verdict": "cannot test",
                "why": "this study has no prompt labels",
            },
            unit="r",
        ),
    ]


def write_results(
    folder: Path,
    *,
    models: int = 60,
    dims: int = 2,
    per_benchmark: int = 60,
    benchmarks: Sequence[str] | None = None,
    seed: int = 7,
    simulated: bool = True,
    named: bool = True,
    second_fails: bool = False,
    replicates: int = 60,
    blocks: bool = False,
    hostile: bool = False,
    flip_second: bool = False,
) -> FakeStudy:
    """Write all the files of a results folder that figures and report read.

    Parameters
    ----------
    folder
        Results folder; made if need be.
    models, dims, per_benchmark, benchmarks, seed
        Size of the study.
    simulated
        Whether its records say that the data are simulated.
    named
        Whether the abilities earned names.
    second_fails
        The last dimension does not come back in halves, and claims that need it are not reproduced.
    replicates
        Bootstrap replicates; 0 for none.
    blocks
        Whole benchmarks are missing for some models.
    hostile
        Names with slashes, at signs, markup, dollars, foreign scripts and great length.
    flip_second
        The last ability is stored with the opposite sign and orientation -1.
    """
    rng = np.random.default_rng(seed)
    names = list(benchmarks) if benchmarks is not None else [*REASONING, *SAFETY]
    safe_side = {b: b in SAFETY for b in names}
    if benchmarks is not None:
        safe_side = {b: n % 2 == 1 for n, b in enumerate(names)}
    if hostile:
        names[0] = "A <b>bold</b> benchmark with $dollars$ & a very very long name indeed/v2"
        safe_side[names[0]] = False

    # models
    size = np.maximum(1, rng.geometric(0.22, size=models))
    lineage = np.repeat([LINEAGES[i] if i < len(LINEAGES) else f"lineage-{i}" for i in range(models)], size)[
        :models
    ]
    model_names = [
        f"org-{i % 9}/{lineage[i]}-{rng.integers(1, 90)}B-instruct-v{i}@host" for i in range(models)
    ]
    if hostile:
        model_names[0] = "<script>alert('x')</script>/evil"
        model_names[1] = "组织/通义千问 \u202e$\\frac{1}{0}$"
        model_names[2] = "a-very-long-organisation-name/" + "a-very-long-model-name-" * 4 + "v1"
    centre = {name: rng.normal(size=dims) * 0.8 for name in dict.fromkeys(lineage)}
    theta = np.stack([centre[name] for name in lineage]) + rng.normal(size=(models, dims)) * 0.7
    theta = (theta - theta.mean(0)) / theta.std(0)
    T = np.eye(dims)
    for k in range(1, dims):
        T[0, k] = 0.2
        T[k, k] = np.sqrt(1 - 0.04)

    # items
    rows = []
    direction = []
    for b in names:
        for n in range(per_benchmark):
            sub = f"part {n % 3}"
            k = min(1, dims - 1) if safe_side[b] else 0
            if dims > 2 and n % dims >= 2:
                k = n % dims
            toward = T[:, k] * (-0.7 if b == "wmdp" else 1.0)
            if b == "wmdp":
                toward = -T[:, 0]
            if b == "bbq":
                toward = T[:, 0]
            if b == "harmbench":
                sub = ("standard", "contextual", "copyright")[n % 3]
                toward = T[:, 0] if sub == "copyright" else toward
            if b == "xstest":
                sub = ("contrast_homonyms", "contrast_figurative", "homonyms", "figurative")[n % 4]
                toward = T[:, min(1, dims - 1)] if sub.startswith("contrast") else T[:, 0]
            direction.append(toward)
            rows.append(
                (f"{b}__{sub.replace(' ', '_')}_{n}", b, "safety" if safe_side[b] else "reasoning", sub)
            )
    J = len(rows)
    strength = rng.lognormal(-0.1, 0.5, size=J)
    a = np.stack(direction) * strength[:, None] + rng.normal(size=(J, dims)) * 0.28
    d = rng.normal(0.3, 1.5, size=J)
    eta = theta @ a.T + d
    y = (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
    if blocks:
        for b_place in range(1, len(names), 2):
            mine = slice(b_place * per_benchmark, (b_place + 1) * per_benchmark)
            y[rng.random(models) < 0.4, mine] = np.nan
    y[rng.random(y.shape) < 0.01] = np.nan
    observed = np.isfinite(y).sum(0)
    mean = np.nansum(y, 0) / np.maximum(observed, 1)
    kept = (mean > 0.03) & (mean < 0.97)
    if not kept.any():
        kept[:] = True
    sign = np.ones(dims)
    if flip_second:
        sign[-1] = -1.0

    items = pd.DataFrame(rows, columns=["question_id", "benchmark", "category", "subcategory_one"])
    items["subcategory_two"] = None
    items["subcategory_three"] = None
    items["domain_superset"] = None
    items["question_type"] = "generation"
    items["testlet"] = [f"t{n // 4}" for n in range(J)]
    items["options"] = pd.array([4 if not safe_side[r[1]] else pd.NA for r in rows], dtype="Int16")
    items["inverted"] = items["benchmark"] == "wmdp"
    items["content_hash"] = None
    items["scored_as"] = "1 is right or safe"
    items["observed"] = observed
    items["mean"] = mean
    items["kept"] = kept
    items["drop_reason"] = np.where(
        kept,
        None,
        np.where(mean <= 0.03, "mean at or below the lower bound", "mean at or above the upper bound"),
    )
    models_table = pd.DataFrame(
        {
            "model": model_names,
            "slug": [f"m{i}" for i in range(models)],
            "canonical": model_names,
            "publisher": [m.split("/")[0] for m in model_names],
            "family": lineage,
            "lineage": lineage,
            "lineage_evidence": "lineage column",
            "size_b": rng.integers(1, 90, size=models).astype(float),
            "reasoning": pd.array([bool(i % 17 == 3) for i in range(models)], dtype="boolean"),
            "released": "2024-05-01",
            "notes": None,
            "observed": np.isfinite(y).sum(1),
            "mean": np.nanmean(y, axis=1),
            "kept": [i != models - 1 for i in range(models)],
            "drop_reason": [
                None if i != models - 1 else "duplicate of another model (canonical name)"
                for i in range(models)
            ],
        }
    )
    for policy in ("published", "honest"):
        target = folder / "matrix" / policy
        write_parquet(items, target / "items.parquet")
        write_parquet(models_table, target / "models.parquet")
        cover = []
        for b in names:
            mine = np.array([r[1] == b for r in rows])
            for i, m in enumerate(model_names):
                seen = int(np.isfinite(y[i, mine]).sum())
                missing = int(mine.sum()) - seen
                cover.append(
                    {
                        "benchmark": b,
                        "model": m,
                        "items": int(mine.sum()),
                        "observed": seen,
                        "missing": missing,
                        "not_run": missing if seen == 0 else 0,
                        "judge_failed": 0 if seen == 0 else missing,
                        "mean": float(np.nanmean(y[i, mine])) if seen else np.nan,
                    }
                )
        write_csv(pd.DataFrame(cover), target / "coverage.csv")
        write_json(
            {
                "policy": policy,
                "models": models,
                "models_kept": int(models_table["kept"].sum()),
                "items": J,
                "items_kept": int(kept.sum()),
                "benchmarks": {
                    b: {"items": per_benchmark, "kept": int(kept[[r[1] == b for r in rows]].sum())}
                    for b in names
                },
                "observed": int(np.isfinite(y).sum()),
                "missing": int(np.isnan(y).sum()),
                "cells_filled_by_policy": 0 if policy == "honest" else 57,
                "failures_known": not blocks,
                "sources": [
                    {
                        "source": "made-up",
                        "files": {
                            "responses": {"path": "simulated_responses.csv.gz", "sha256": "cd" * 32},
                            "items": {"path": "simulated_items.csv", "sha256": "ef" * 32},
                        },
                    }
                ],
                "hash": "ab" * 32,
                "provenance": {"benchmirt": "0.1.0", "versions": VERSIONS},
            },
            target / "summary.json",
        )

    write_json(
        {
            "sources": [
                {
                    "source": "made-up",
                    "formats": ["inspect", "lm-eval"],
                    "models": models,
                    "rows": 4000,
                    "rows_that_tell_their_question": 1000,
                    "failures_known": True,
                    "licence": "CC-BY-4.0",
                    "fetched": [{"data_set": "org/made-up", "commit": "0123456789abcdef"}],
                    "scorer": "scoring.yaml",
                    "simulated": True,
                }
            ],
            "conflicts": {
                "honest": [
                    {
                        "kind": "changed key",
                        "done": "missing",
                        "outcomes": 1234,
                        "models": 3,
                        "benchmarks": [names[0]],
                    }
                ]
            },
            "missingness": [
                {
                    "benchmark": names[0],
                    "why": "failed",
                    "missing": 41,
                    "share": 0.05,
                    "r": -0.62,
                    "low": -0.8,
                    "high": -0.31,
                    "related": "yes",
                }
            ],
            "directions": [
                {
                    "benchmark": names[0],
                    "better": "a",
                    "worse": "b",
                    "better_mean": 0.9,
                    "worse_mean": 0.4,
                    "difference": 0.5,
                    "low": 0.3,
                    "high": 0.7,
                    "direction": "as declared",
                },
                {
                    "benchmark": names[-1],
                    "better": "a",
                    "worse": "b",
                    "better_mean": 0.2,
                    "worse_mean": 0.7,
                    "difference": -0.5,
                    "low": -0.7,
                    "high": -0.3,
                    "direction": "turned round",
                },
            ],
            "rescoring": [
                {
                    "benchmark": names[0],
                    "scorer": "math-verify 0.9.0",
                    "answers": 100,
                    "same": 90,
                    "to_one": 6,
                    "to_zero": 1,
                    "unparsed": 2,
                    "timeout": 1,
                    "crashed": 0,
                }
            ],
            "roads": {
                "benchmarks": [
                    {
                        "benchmark": "all",
                        "expected_items": None,
                        "published_items": 410,
                        "raw_items": 408,
                        "only_published": 5,
                        "only_raw": 3,
                        "other_content": 1,
                        "cells": 2000,
                        "same": 1710,
                        "same_as_counted": 1755,
                        "both_missing": 100,
                        "published_1_raw_0": 71,
                        "published_0_raw_1": 62,
                        "published_0_raw_missing": 40,
                        "published_1_raw_missing": 8,
                        "published_missing_raw_0": 4,
                        "published_missing_raw_1": 5,
                    }
                ]
            },
        },
        folder / "data_card.json",
    )

    # dimensions
    dimensions = folder / "dimensions"
    theta_display = (theta @ T) * sign
    coords = {
        "model": model_names,
        "item": [r[0] for r in rows],
        "dimension": np.arange(1, dims + 1),
        "ability": np.arange(1, dims + 1),
    }
    Tsigned = T * sign
    for fit in ("published", "corrected"):
        data = xr.Dataset(
            {
                "theta": (("model", "dimension"), theta),
                "a": (("item", "dimension"), a),
                "d": (("item",), d),
                "T": (("dimension", "ability"), Tsigned),
                "Phi": (("ability", "ability_"), Tsigned.T @ Tsigned),
                "ability_theta": (("model", "ability"), theta_display),
            },
            coords=coords,
            attrs={
                "fit": fit,
                "engine": "svi",
                "dims": dims,
                "seeds": json.dumps(list(range(10))),
                "seeds_failed": "[]",
            },
        )
        path = dimensions / fit / "consensus.nc"
        path.parent.mkdir(parents=True, exist_ok=True)
        data.to_netcdf(path, engine="h5netcdf")

    labels = ["reasoning", "safety", "instruction following", "verbosity"][:dims]
    follows = [
        [
            {"category": c, "mean_abs_r": v, "low": v - 0.12, "high": v + 0.07}
            for c, v in (("reasoning", 0.82 if k == 0 else 0.21), ("safety", 0.27 if k == 0 else 0.74))
        ]
        for k in range(dims)
    ]
    write_json(
        {
            "categories": ["reasoning", "safety"],
            "named": named,
            "dimensions": [
                {
                    "ability": k + 1,
                    "name": labels[k] if named else None,
                    "display": labels[k] if named else f"ability {k + 1}",
                    "follows": follows[k],
                    "orientation": int(sign[k]),
                    "sign": "oriented so that more is better",
                    "why": "its interval lies above that of every other category"
                    if named
                    else "no category stands out",
                }
                for k in range(dims)
            ],
        },
        dimensions / "labels.json",
    )
    statistics = items[
        ["question_id", "benchmark", "category", "subcategory_one", "testlet", "observed", "mean", "kept"]
    ].copy()
    use = np.where(kept, 1.0, np.nan)
    statistics["intercept"] = d * use
    length = np.linalg.norm(a, axis=1)
    statistics["mdisc"] = length * use
    statistics["mdiff"] = -d / length * use
    for k in range(dims):
        statistics[f"discrimination_{k + 1}"] = a[:, k] * use
        statistics[f"angle_to_{k + 1}"] = (
            np.degrees(np.arccos(np.clip(a @ Tsigned[:, k] / length, -1, 1))) * use
        )
        statistics[f"published_discrimination_{k + 1}"] = a[:, k] * use
    write_csv(statistics, dimensions / "item_statistics.csv")
    abilities = models_table[
        ["model", "family", "lineage", "size_b", "reasoning", "released", "observed", "mean"]
    ].copy()
    gone = np.where(models_table["kept"], 1.0, np.nan)
    for k in range(dims):
        se = rng.uniform(0.08, 0.25, size=models)
        abilities[f"ability_{k + 1}"] = theta_display[:, k] * gone
        abilities[f"ability_{k + 1}_low"] = (theta_display[:, k] - 2 * se) * gone
        abilities[f"ability_{k + 1}_high"] = (theta_display[:, k] + 2 * se) * gone
        abilities[f"published_ability_{k + 1}"] = theta_display[:, k] * gone
    averages = {}
    for b in names:
        mine = np.array([r[1] == b for r in rows])
        with np.errstate(invalid="ignore", divide="ignore"):
            seen = np.isfinite(y[:, mine]).sum(1)
            averages[b] = np.where(seen > 0, np.nansum(y[:, mine], axis=1) / np.maximum(seen, 1), np.nan)
        abilities[f"{b}_average"] = averages[b]
    write_csv(abilities, dimensions / "model_statistics.csv")
    left = np.stack([theta_display + rng.normal(size=theta.shape) * 0.18 for _ in names])
    r = np.stack(
        [
            [
                np.corrcoef(left[i][np.isfinite(averages[b]), k], averages[b][np.isfinite(averages[b])])[0, 1]
                for k in range(dims)
            ]
            for i, b in enumerate(names)
        ]
    )
    xr.Dataset(
        {
            "theta": (("benchmark", "model", "ability"), left),
            "r": (("benchmark", "ability"), r),
            "congruence": (("benchmark", "ability"), np.full_like(r, 0.98)),
            "reliability": (("benchmark", "ability"), np.full_like(r, 0.97)),
        },
        coords={"benchmark": names, "model": model_names, "ability": np.arange(1, dims + 1)},
    ).to_netcdf(dimensions / "leave_one_out.nc", engine="h5netcdf")
    shared = rng.normal(size=(replicates, 1, dims, dims)) * 0.09
    boots = a[None] + (a[None, :, None, :] @ shared)[:, :, 0] + rng.normal(size=(replicates, J, dims)) * 0.25
    weights = np.random.default_rng(1).permuted(np.tile(np.arange(models) % 5 > 0, (replicates, 1)), axis=1)
    xr.Dataset(
        {
            "a": (("replicate", "item", "dimension"), boots.astype(np.float32)),
            "weights": (("replicate", "model"), weights.astype(np.int64)),
        },
        coords={"item": coords["item"], "dimension": coords["dimension"], "model": model_names},
    ).to_netcdf(dimensions / "bootstrap.nc", engine="h5netcdf")

    codes = np.unique(lineage.astype(str), return_inverse=True)[1].astype(np.int64)
    write_predictions(folder, model_names, codes, names, np.random.default_rng(2))

    losses = [0.652, 0.571, 0.5489, 0.5482, 0.5491]
    write_json(
        {
            "heldout": {
                "log_loss": [
                    {
                        "dims": k,
                        "mean": losses[k],
                        "se": 0.004 + 0.002 * (k == 0),
                        "difference": losses[k] - min(losses),
                        "difference_se": 0.001,
                    }
                    for k in range(5)
                ],
                "chosen": 2,
                "rule": "one standard error",
            },
            "eigen": {
                "levels": [
                    {
                        "dims": k,
                        "eigenvalue": v,
                        "null_mean": n,
                        "null_q95": n * 1.08,
                        "null_q99": n * 1.12,
                        "p": p,
                    }
                    for k, v, n, p in (
                        (0, 61.0, 1.9, 0.0099),
                        (1, 9.2, 1.8, 0.0099),
                        (2, 1.83, 1.75, 0.31),
                        (3, 1.7, 1.7, 0.44),
                    )
                ],
                "chosen": 1 if second_fails else 2,
            },
            "agreed": None if second_fails else 2,
            "why_not": "the two methods disagree" if second_fails else None,
        },
        dimensions / "number.json",
    )
    write_csv(
        pd.DataFrame({"dims": [1], "rank": [1], "eigenvalue": [9.2]}), dimensions / "number_eigenvalues.csv"
    )
    splits, null, stable = [], [], []
    for k in range(1, dims + 1):
        fails = second_fails and k == dims and dims > 1
        c = np.clip(rng.normal(0.28 if fails else 0.93 - 0.06 * k, 0.09 if fails else 0.035, 50), -1, 0.999)
        rr = np.clip(rng.normal(0.2 if fails else 0.9 - 0.05 * k, 0.12 if fails else 0.04, 50), -1, 0.999)
        for s in range(50):
            splits.append((s, k, c[s], rr[s]))
        base = np.abs(rng.normal(0.27, 0.07, size=(100, 4)))
        for b in range(100):
            for s in range(4):
                null.append((b, s, k, base[b, s], abs(rng.normal(0.2, 0.08))))
        stable.append(
            {
                "dimension": k,
                "dims": dims - 1 if second_fails and 1 < dims != k else dims,
                "congruence_mean": c.mean(),
                "congruence_low": np.quantile(c, 0.025),
                "congruence_high": np.quantile(c, 0.975),
                "ability_r_mean": rr.mean(),
                "ability_r_low": np.quantile(rr, 0.025),
                "ability_r_high": np.quantile(rr, 0.975),
                "null_congruence": {
                    "mean": base.mean(),
                    "q95": np.quantile(base.mean(1), 0.95),
                    "q99": np.quantile(base.mean(1), 0.99),
                },
                "null_ability_r": {"mean": 0.2, "q95": 0.28, "q99": 0.31},
                "p_congruence": 0.41 if fails else 0.0099,
                "p_ability_r": 0.52 if fails else 0.0099,
                "scrambled_congruence": 0.22,
                "p_scrambled": 0.01,
                "passes": not fails,
            }
        )
    write_json(
        {
            "dims": dims,
            "splits": 50,
            "dimensions": stable,
            "null": "parametric (K-1)",
            "replicates": 100,
            "p_needed": 0.01,
            "why_not": None,
        },
        dimensions / "stability.json",
    )
    write_csv(
        pd.DataFrame(splits, columns=["split", "dimension", "congruence", "ability_r"]),
        dimensions / "stability_splits.csv",
    )
    write_csv(
        pd.DataFrame(null, columns=["replicate", "split", "dimension", "congruence", "ability_r"]),
        dimensions / "stability_null.csv",
    )
    seeds = [
        {
            "fit": fit,
            "seed": s,
            "dimension": k,
            "congruence": min(0.9999, rng.normal(level - 0.01 * k, spread)),
            "ability_r": 0.99,
            "loss": 1000.0 + s,
            "converged": not (fit == "published" and s == 4),
        }
        for fit, level, spread in (("published", 0.93, 0.03), ("corrected", 0.995, 0.003))
        for s in range(10)
        for k in range(1, dims + 1)
    ]
    write_csv(pd.DataFrame(seeds), dimensions / "reproducibility.csv")

    checks = [
        {
            "fit": fit,
            "engine": engine,
            "converged": True,
            "ability": k,
            "congruence": 0.9987,
            "ability_r": 0.9991,
            "ability_difference": 0.21,
            "ability_sd_ratio": 0.83,
            "mdisc_ratio": 0.94,
            "sigma_t": np.nan,
        }
        for fit, engine in (("dims-k2", "em"), ("nuts", "nuts"))
        for k in range(1, dims + 1)
    ]
    write_csv(pd.DataFrame(checks), dimensions / "checks.csv")

    # what each benchmark measures
    profiles = pd.DataFrame(
        {"benchmark": names, "category": ["safety" if safe_side[b] else "reasoning" for b in names]}
    )
    for k in range(1, dims + 1 if dims > 1 else 1):
        near = np.array([(k == 2) == safe_side[b] for b in names])
        profiles[f"angle_{k}"] = np.where(near, 8.0, 84.0)
        profiles[f"angle_{k}_low"], profiles[f"angle_{k}_high"] = (
            np.where(near, 0.0, 70.0),
            np.where(near, 20.0, 97.0),
        )
    (folder / "profiles").mkdir(exist_ok=True)
    write_csv(profiles, folder / "profiles" / "benchmarks.csv")

    # fits
    fits = [
        {
            "fit": "published",
            "engine": "svi",
            "policy": "published",
            "dims": dims,
            "asymptotes": False,
            "testlets": False,
            "seeds": list(range(10)),
            "purpose": "as published",
        },
        {
            "fit": "corrected",
            "engine": "svi",
            "policy": "honest",
            "dims": dims,
            "asymptotes": True,
            "testlets": False,
            "seeds": list(range(10)),
            "purpose": "headline",
        },
        {
            "fit": "dims-k1",
            "engine": "em",
            "policy": "honest",
            "dims": 1,
            "asymptotes": True,
            "testlets": False,
            "seeds": [0],
            "purpose": "number of dimensions",
        },
        {
            "fit": "nuts",
            "engine": "nuts",
            "policy": "honest",
            "dims": dims,
            "asymptotes": True,
            "testlets": False,
            "seeds": [0],
            "purpose": "full posterior",
        },
    ]
    write_csv(
        pd.DataFrame([{**f, "seeds": " ".join(map(str, f["seeds"]))} for f in fits]), folder / "fits.csv"
    )
    for f in fits:
        for s in f["seeds"]:
            settled = not (f["fit"] == "published" and s == 4)
            diagnostics = {"final_loss": 1234.5 + s}
            if f["engine"] == "nuts":
                diagnostics = {
                    "rhat_max": 1.013,
                    "ess_min": 412.0,
                    "rhat_max_abilities": 1.004,
                    "rhat_max_items": 1.013,
                    "ess_min_abilities": 655.0,
                    "ess_min_items": 412.0,
                    "checked_items": 500,
                    "divergences": 0,
                }
            path = folder / "fits" / f["fit"] / f"seed{s}.nc"
            path.parent.mkdir(parents=True, exist_ok=True)
            xr.Dataset(
                attrs={
                    "engine": f["engine"],
                    "dims": f["dims"],
                    "seed": s,
                    "data_hash": "ab" * 32,
                    "converged": int(settled),
                    "converged_why": "the loss settled"
                    if settled
                    else "the loss still fell by 2.1 in the last tenth of the steps",
                    "priors": json.dumps(
                        {"theta": "Normal(0, 1)", "a": "Normal(0, tau)", "tau": "HalfNormal(1.0)"}
                    ),
                    "diagnostics": json.dumps(diagnostics),
                    "versions": json.dumps(VERSIONS),
                }
            ).to_netcdf(path, engine="h5netcdf")

    # claims
    cells = [
        {
            "benchmark": b,
            "ability": labels[k],
            "published": float(np.clip(r[i, k] + rng.normal() * 0.05, -1, 1)),
            "estimate": float(r[i, k]),
            "interval": [float(max(-1, r[i, k] - 0.12)), float(min(1, r[i, k] + 0.1))],
            "within": "no" if (i + k) % 5 == 0 else "yes",
        }
        for i, b in enumerate(names)
        for k in range(dims)
    ]
    records = claim_records(
        {"counts": dict.fromkeys(names, per_benchmark), "cells": cells},
        models=models,
        items=J,
        lineages=len(set(lineage)),
        simulated=simulated,
        second_fails=second_fails,
        dims=dims,
    )
    for record in records:
        write_json(record, folder / "claims" / f"{record['claim']}.json")
    write_csv(
        pd.DataFrame(
            [
                {
                    "claim": c["claim"],
                    "kind": c["kind"],
                    "statement": c["statement"],
                    "corrected_verdict": c["corrected"]["verdict"],
                }
                for c in records
            ]
        ),
        folder / "claims" / "claims.csv",
    )
    return FakeStudy(
        simulated=simulated, title="A made-up study with a planted truth" if simulated else "A made-up study"
    )
