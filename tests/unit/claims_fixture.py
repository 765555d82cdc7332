"""Small results folders with a planted truth, made without any fit: what fits would find is the truth plus noise.

Everything here is simulated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from prediction_fixture import write_predictions

from benchmirt import config
from benchmirt.config import Study
from benchmirt.files import write_csv, write_json, write_parquet
from benchmirt.identification import follow

ITEM_COLUMNS = (
    "question_id",
    "benchmark",
    "category",
    "subcategory_one",
    "subcategory_two",
    "subcategory_three",
    "domain_superset",
    "question_type",
    "testlet",
    "content_hash",
    "scored_as",
)


@dataclass(frozen=True)
class Subset:
    """Items that point one way: `angle` degrees from the axis of reasoning, towards that of safety."""

    benchmark: str
    category: str
    angle: float
    items: int = 30
    name: str | None = None
    strength: float = 1.5
    easiness: float = 0.0


def _study() -> tuple[Subset, ...]:
    reasoning = [
        Subset(name, "reasoning", 0.0) for name in ("bbh", "gpqa", "ifeval", "math", "mmlu-pro", "musr")
    ]
    jailbreaks = [
        Subset(name, "safety", 78.0)
        for name in ("do_anything_now", "strongreject", "trustllm_jailbreaktrigger", "wildguardtest")
    ]
    return (
        *reasoning,
        *jailbreaks,
        Subset("bbq", "safety", 0.0),
        Subset("harmbench", "safety", 78.0, name="standard"),
        Subset("harmbench", "safety", 0.0, name="copyright"),
        Subset("harmbench", "safety", 78.0, name="contextual"),
        Subset("toxigen", "safety", 60.0, strength=0.5, easiness=3.0),
        Subset("wildjailbreak", "safety", 78.0, name="harmful", items=60),
        Subset("wildjailbreak", "safety", 0.0, name="benign", strength=0.8),
        Subset("wmdp", "safety", 180.0),
        Subset("xstest", "safety", 10.0, name="definitions"),
        Subset("xstest", "safety", 90.0, name="contrast_definitions"),
    )


STUDY = _study()
"""The published study's benchmarks, planted as it describes them."""


@dataclass(frozen=True)
class World:
    """What a results folder is made from.

    Attributes
    ----------
    passes
        Whether each dimension passes its null.
    chosen
        Numbers of dimensions by held-out score and by eigenvalues.
    named
        Names that the two abilities got.
    axis
        Degrees between the two axes (78: correlation .2).
    moved
        How far a short form moves each correlation; its random rivals move them by .05 more.
    larger
        Of the pairs of a benchmark and an ability, those that a form makes larger.
    risen
        By how much a pass rate rises without the sharpest items.
    gained
        How many more held-out answers two dimensions predict than one, as a share.
    """

    subsets: Sequence[Subset] = STUDY
    models: int = 100
    lineages: int = 40
    passes: Sequence[bool | None] = (True, True)
    chosen: tuple[int | None, int | None] = (2, 2)
    named: tuple[str | None, str | None] = ("reasoning", "safety")
    axis: float = 78.463
    replicates: int = 40
    noise: float = 0.1
    moved: float = 0.01
    larger: int = 28
    risen: float = 0.03
    gained: float = 0.25
    missing: float = 0.0
    reliability: float = 0.99
    seed: int = 3
    edits: Mapping[str, Any] = field(default_factory=dict)

    def with_subset(self, benchmark: str, name: str | None = None, **changes: Any) -> World:
        """Return the world with one subset planted otherwise."""
        hit = [one.benchmark == benchmark and one.name == name for one in self.subsets]
        assert sum(hit) == 1
        return replace(
            self,
            subsets=tuple(
                replace(one, **changes) if flag else one for one, flag in zip(self.subsets, hit, strict=True)
            ),
        )


def _draw(world: World, what: str, *more: str) -> np.random.Generator:
    words = [ord(letter) for letter in "/".join((what, *more))]
    return np.random.default_rng([world.seed, *words])


def _items(world: World) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the items table, discriminations in the plane where reasoning is the first axis, and intercepts.

    Each subset has its own stream, so that changing one changes nothing else.
    """
    rows, vectors, intercepts = [], [], []
    for subset in world.subsets:
        stream = _draw(world, "items", subset.benchmark, str(subset.name))
        angle = np.radians(subset.angle + stream.normal(0, 8, subset.items))
        size = subset.strength * np.exp(stream.normal(0, 0.2, subset.items))
        vectors.append(size[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
        intercepts.append(subset.easiness + stream.normal(0, 1, subset.items))
        label = f"{subset.benchmark}/{subset.name or 'all'}"
        rows += [
            {
                "question_id": f"{label}/{k:03d}",
                "benchmark": subset.benchmark,
                "category": subset.category,
                "subcategory_one": subset.name,
                "testlet": f"{label}/t{k // 2}",
            }
            for k in range(subset.items)
        ]
    table = pd.DataFrame(rows)
    for column in ITEM_COLUMNS:
        if column not in table:
            table[column] = None
        table[column] = table[column].astype("string")
    table["options"] = pd.array([None] * len(table), dtype="Int16")
    table["inverted"] = False
    return table, np.concatenate(vectors), np.concatenate(intercepts)


def _nc(path: Path, data: xr.Dataset) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data.to_netcdf(path, engine="h5netcdf")


def _stability(world: World) -> dict[str, Any]:
    entries = []
    for k, passes in enumerate(world.passes, start=1):
        p = None if passes is None else 1 / 101 if passes else 0.31
        mean = 0.93 if passes else 0.55
        entries.append(
            {
                "dimension": k,
                "congruence_mean": mean,
                "congruence_low": mean - 0.05,
                "congruence_high": mean + 0.03,
                "ability_r_mean": mean,
                "ability_r_low": mean - 0.05,
                "ability_r_high": mean + 0.03,
                "null_congruence": {"mean": 0.4, "q95": 0.6, "q99": 0.7},
                "null_ability_r": {"mean": 0.4, "q95": 0.6, "q99": 0.7},
                "p_congruence": p,
                "p_ability_r": p,
                "scrambled_congruence": 0.3,
                "p_scrambled": 0.01,
                "passes": passes,
            }
        )
    return {
        "dims": len(entries),
        "splits": 50,
        "dimensions": entries,
        "null": "parametric (K-1)",
        "replicates": 100,
        "p_needed": 0.01,
        "why_not": None,
    }


def _shortforms(folder: Path, world: World, units: Sequence[str]) -> None:
    """Write the tables of short forms as the trial writes them, a tenth and a half of all items."""
    pairs = [(unit, k) for unit in units for k in (1, 2)]
    forms = [(form, share) for form in ("information", "filter") for share in (0.1, 0.5, 1.0)]
    write_csv(
        pd.DataFrame(
            [
                {
                    "form": form, "share": share, "benchmark": unit, "ability": k, "items": 30, "kept": 30 * share,
                    "models": world.models, "lineages": world.lineages, "r_full": 0.5, "r_form": 0.5 + world.moved,
                    "difference": world.moved, "difference_se": 0.004, "larger": n < world.larger,
                }
                for form, share in forms
                for n, (unit, k) in enumerate(pairs)
            ]
        ),
        folder / "shortforms" / "correlations.csv",
    )  # fmt: skip
    write_csv(
        pd.DataFrame(
            [
                {
                    "form": form, "share": share, "items": 600 * share, "pairs": len(pairs), "benchmarks": len(units),
                    "loss": world.moved, "advantage": 0.05, "advantage_se": 0.01, "beaten": 1.0, "within": len(pairs),
                    "larger": world.larger, "larger_variance": 0.001, "standard_error_1": 0.2, "standard_error_2": 0.2,
                }
                for form, share in forms
            ]
        ),
        folder / "shortforms" / "curve.csv",
    )  # fmt: skip
    write_csv(
        pd.DataFrame(
            [
                {
                    "cut": cut, "scope": scope, "ability": k, "category": "safety", "benchmark": unit, "items": 30,
                    "nominal": 30 * (1 - cut), "kept": 4 if cut == 0.9 else 16, "share": 2 / 3, "ties": 0, "r_full": 0.5,
                    "r_form": 0.5 + world.moved, "r_means": 0.9,
                }
                for cut in (0.5, 0.9)
                for scope in ("all", "category", "benchmark")
                for unit, k in pairs
            ]
        ),
        folder / "shortforms" / "published_filter.csv",
    )  # fmt: skip
    write_csv(
        pd.DataFrame(
            [
                {
                    "way": way, "ability": k, "category": "safety", "share": 0.1, "items": 300, "removed": 30,
                    "models": 33, "lineages": 20, "before": 0.5, "after": 0.5 + world.risen, "random": 0.5,
                    "random_low": 0.49, "random_high": 0.51, "excess": world.risen, "low": world.risen - 0.01,
                    "high": world.risen + 0.01, "level": 0.95, "interval_kind": "bootstrap",
                }
                for way in ("cross-fitted", "as published")
                for k in (1, 2)
            ]
        ),
        folder / "shortforms" / "weakening.csv",
    )  # fmt: skip
    write_json({"folds": 5, "why_not": None}, folder / "shortforms" / "summary.json")


def _write_mixes(home: Path, world: World) -> None:
    """Write what fits of each category alone would give: no safety in the reasoning items, both in the others."""
    rows, again = [], []
    rng = _draw(world, "mixes")
    for category, ability, phi in (
        ("reasoning", 1, 0.97),
        ("reasoning", 2, 0.2),
        ("safety", 1, 0.95),
        ("safety", 2, 0.99),
    ):
        rows.append(("only", category, "", 300, 2, ability, phi, phi, True))
        z = np.arctanh(phi) + 0.05 * rng.normal(size=12)
        again += [(category, r, ability, float(np.tanh(one)), 0.9, True) for r, one in enumerate(z)]
    mix = ["mix", "category", "benchmark", "items", "dims", "ability", "congruence", "ability_r", "converged"]
    write_csv(pd.DataFrame(rows, columns=mix), home / "mix.csv")
    refits = ["category", "replicate", "ability", "congruence", "ability_r", "converged"]
    write_csv(pd.DataFrame(again, columns=refits), home / "mix_replicates.csv")
    write_json({"alone": [], "scale": 2.0}, home / "mix.json")


def plant(folder: Path, world: World | None = None, responses: np.ndarray | None = None) -> Path:
    """Write a results folder; `responses` (J, N) replace the simulated ones."""
    world = world or World()
    items, a, d = _items(world)
    N = world.models
    theta = _draw(world, "theta").normal(size=(N, 2))
    lineage = _draw(world, "lineage").integers(world.lineages, size=N)
    # models of one lineage are alike
    centers = _draw(world, "centers").normal(size=(world.lineages, 2))
    theta = 0.8 * theta + 0.6 * centers[lineage]
    theta = (theta - theta.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(theta.T))).T
    eta = a @ theta.T + d[:, None]
    streams = np.concatenate(
        [
            _draw(world, "answers", subset.benchmark, str(subset.name)).random((subset.items, N))
            for subset in world.subsets
        ]
    )
    outcomes = (streams < 1 / (1 + np.exp(-eta))).astype(np.int8) if responses is None else responses
    if world.missing:
        outcomes = np.where(_draw(world, "missing").random(outcomes.shape) < world.missing, -1, outcomes)
    models = pd.DataFrame(
        {
            "model": [f"org/model-{n:03d}" for n in range(N)],
            "lineage": [f"base-{code:02d}" for code in lineage],
            "family": [f"base-{code:02d}" for code in lineage],
            "kept": True,
            "drop_reason": pd.array([None] * N, dtype="string"),
        }
    )

    observed, right = (outcomes >= 0).sum(1), (outcomes == 1).sum(1)
    kept = {}
    for policy, low, high in (("honest", 0.0, 1.0), ("published", 0.05, 0.95)):
        table = items.copy()
        mean = np.where(observed > 0, right / np.maximum(observed, 1), np.nan)
        keep = (observed >= 5) & (mean > low) & (mean < high)
        table["observed"], table["mean"], table["kept"] = observed, mean, keep
        table["drop_reason"] = pd.array(
            [None if one else "all outcomes equal" for one in keep], dtype="string"
        )
        kept[policy] = np.flatnonzero(keep)
        cells = (
            pd.DataFrame(outcomes, columns=models["model"]).astype("Int8").replace(-1, pd.NA).astype("Int8")
        )
        cells.insert(0, "question_id", items["question_id"].to_numpy())
        write_parquet(table, folder / "matrix" / policy / "items.parquet")
        write_parquet(models, folder / "matrix" / policy / "models.parquet")
        write_parquet(cells, folder / "matrix" / policy / "responses.parquet")
    _shortforms(folder, world, list(dict.fromkeys(items["benchmark"])))
    units = list(dict.fromkeys(items["benchmark"]))
    write_predictions(folder, models["model"], lineage, units, _draw(world, "predictions"), world.gained)
    write_parquet(items, folder / "outcomes" / "mine" / "items.parquet")
    write_parquet(models[["model", "lineage", "family"]], folder / "outcomes" / "mine" / "models.parquet")

    angle = np.radians(world.axis)
    axes = np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]])
    turn = np.linalg.qr(_draw(world, "turn").normal(size=(2, 2)))[0]
    jitter = _draw(world, "estimates")
    names = models["model"].tolist()
    for fit, order in (("corrected", [1.0, -1.0]), ("published", [-1.0, 1.0])):
        # signs and order of the axes are a fit's own; the labels tell them for the corrected one
        signs = np.array(order)
        place = [0, 1] if fit == "corrected" else [1, 0]
        T = (turn.T @ axes * signs)[:, place]
        policy = "honest" if fit == "corrected" else "published"
        index = kept[policy]
        noisy = a[index] @ turn + jitter.normal(0, world.noise, (len(index), 2))
        abilities = (theta @ turn + jitter.normal(0, world.noise, (N, 2))) @ T
        _nc(
            folder / "dimensions" / fit / "consensus.nc",
            xr.Dataset(
                {
                    "a": (("item", "dimension"), noisy),
                    "T": (("dimension", "ability"), T),
                    "ability_theta": (("model", "ability"), abilities),
                },
                coords={"model": names, "item": items["question_id"].to_numpy()[index].astype(str)},
                attrs={"fit": fit, "seeds": json.dumps([0, 1]), "seeds_failed": "{}", "data_hash": "0" * 64}
                | world.edits.get(f"{fit}_attrs", {}),
            ),
        )
        if fit == "published":
            continue
        units = list(dict.fromkeys(items["benchmark"]))
        left_out = np.stack([(theta @ turn + jitter.normal(0, world.noise, (N, 2))) @ T for _ in units])
        _nc(
            folder / "dimensions" / "leave_one_out.nc",
            xr.Dataset(
                {
                    "theta": (("benchmark", "model", "ability"), left_out),
                    "congruence": (("benchmark", "ability"), np.full((len(units), 2), 0.97)),
                    "reliability": (("benchmark", "ability"), np.full((len(units), 2), world.reliability)),
                },
                coords={
                    "benchmark": units,
                    "model": names,
                    "item": items["question_id"].to_numpy()[index].astype(str),
                },
                attrs={"unit": "benchmark"},
            ),
        )
        R = world.replicates
        tilt = jitter.normal(0, 0.03, (R, 1, 2))
        refits = noisy[None] + tilt + jitter.normal(0, 2 * world.noise, (R, *noisy.shape))
        scores = theta @ turn + jitter.normal(0, world.noise, (R, N, 2))
        _nc(
            folder / "dimensions" / "bootstrap.nc",
            xr.Dataset(
                {
                    "a": (("replicate", "item", "dimension"), refits.astype(np.float32)),
                    "theta": (("replicate", "model", "dimension"), scores.astype(np.float32)),
                    "T": (
                        ("replicate", "dimension", "ability"),
                        np.stack([follow(one, T) for one in refits]),
                    ),
                    "weights": (("replicate", "model"), np.ones((R, N), dtype=np.int32)),
                },
                coords={"model": names, "item": items["question_id"].to_numpy()[index].astype(str)},
            ),
        )
    write_json(
        {
            "categories": ["reasoning", "safety"],
            "named": all(world.named),
            "dimensions": [
                {
                    "ability": k + 1,
                    "name": name,
                    "display": name or f"ability {k + 1}",
                    "orientation": [1, -1][k],
                    "why": "no category stands out" if name is None else "follows it",
                }
                for k, name in enumerate(world.named)
            ],
        },
        folder / "dimensions" / "labels.json",
    )
    _write_mixes(folder / "dimensions", world)
    _nc(
        folder / "pairs" / "refits.nc",
        xr.Dataset(
            {
                "a": (("pair", "item", "ability"), np.empty((0, len(items), 2))),
                "converged": (("pair",), np.empty(0, dtype=np.int8)),
            },
            coords={"item": items["question_id"].to_numpy().astype(str)},
            attrs={"pairs": "[]"},
        ),
    )
    stability = _stability(world) | world.edits.get("stability", {})
    write_json(stability, folder / "dimensions" / "stability.json")
    held_out, eigen = world.chosen
    write_json(
        {
            "heldout": {"chosen": held_out},
            "eigen": {"chosen": eigen},
            "agreed": held_out if held_out == eigen else None,
        },
        folder / "dimensions" / "number.json",
    )
    write_csv(
        pd.DataFrame(
            [
                {"fit": fit, "seed": seed, "dimension": k, "congruence": 0.95, "converged": True}
                for fit in ("published", "corrected")
                for seed in range(3)
                for k in (1, 2)
            ]
        ),
        folder / "dimensions" / "reproducibility.csv",
    )
    return folder


def study_of(
    entries: Sequence[Mapping[str, Any]] | None = None,
    base: Path | None = None,
    *,
    unconverged: bool = False,
    **keys: Any,
) -> Study:
    """Return a study with the given claims, or with the published study's ones."""
    section: dict[str, Any] = {"unconverged": unconverged}
    if entries is not None:
        section |= {"file": [], "extra": list(entries)}
    return config.load(
        {
            "study": "planted",
            "sources": [{"name": "mine", "kind": "table", "responses": "responses.csv"}],
            "claims": section,
            **keys,
        },
        base or Path(),
        check_files=False,
    )
