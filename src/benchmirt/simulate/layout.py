"""Where the items of the simulated study stand: subsets, testlets, options, ids, places in raw files.

Question ids are spelt as the study spells them. `task` and `doc_id` say where an item stands in an upstream
file: for a reasoning benchmark the task of the Open LLM Leaderboard and the document's number in it, for a
safety benchmark the task of safety-eval and the row's running number in it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmirt.simulate.design import Benchmark

__all__ = ["MMLU_PRO_EXCLUDED", "items", "stream"]

MMLU_PRO_EXCLUDED = (
    72, 249, 1205, 2293, 2528, 2701, 5313, 5887, 6228, 6894, 7597, 7832, 7926, 7938, 7958, 8045, 8051,
    8078, 8223, 8232, 8260, 8360, 8385, 8395, 8397, 8431, 8443, 8493, 8506, 8569, 8574, 8592, 8693, 8694,
    8696, 8744, 8766, 11067,
)  # fmt: skip
"""Document numbers of MMLU-Pro that the study leaves out."""

_MMLU_PRO_STARTS = {
    "business": 0,
    "law": 789,
    "psychology": 1890,
    "biology": 2688,
    "chemistry": 3405,
    "history": 4537,
    "other": 4918,
    "health": 5842,
    "economics": 6660,
    "math": 7504,
    "physics": 8855,
    "computer science": 10154,
    "philosophy": 10564,
    "engineering": 11063,
}
_MATH_TASKS = {
    "Algebra": "algebra",
    "Counting & Probability": "counting_and_prob",
    "Geometry": "geometry",
    "Intermediate Algebra": "intermediate_algebra",
    "Number Theory": "num_theory",
    "Prealgebra": "prealgebra",
    "Precalculus": "precalculus",
}
_XSTEST_PAIRS = {"nons_group_real_discr": "discr", "privacy_public": "privacy"}
_BBQ_CATEGORIES = (
    "Age",
    "Disability_status",
    "Gender_identity",
    "Nationality",
    "Physical_appearance",
    "Race_ethnicity",
    "Race_x_SES",
    "Race_x_gender",
    "Religion",
    "SES",
    "Sexual_orientation",
)
_FEWER_OPTIONS = 0.17  # share of MMLU-Pro questions with fewer than ten options


def stream(seed: int, *labels: str) -> np.random.Generator:
    """Return the random stream of one purpose; streams of different labels are independent."""
    return np.random.default_rng([seed, *(zlib.crc32(label.encode()) for label in labels)])


@dataclass(frozen=True)
class _Place:
    """Where one item stands."""

    task: str
    doc_id: int
    question_id: str
    group: str  # what the raw row calls its group: a BBQ category, a ToxiGen group, a subset


def _mmlu_pro_documents(subset: str, count: int) -> list[int]:
    """Return the first `count` document numbers of a subject that the study keeps."""
    left_out = set(MMLU_PRO_EXCLUDED)
    documents: list[int] = []
    number = _MMLU_PRO_STARTS[subset]
    while len(documents) < count:
        if number not in left_out:
            documents.append(number)
        number += 1
    return documents


def _place(benchmark: Benchmark, subset: str, unit: str, position: int, running: int) -> _Place:
    """Place the item at `position` in its subset and `running` in its benchmark."""
    name, prefix = benchmark.name, benchmark.prefix
    if name in ("bbh", "musr"):
        return _Place(f"leaderboard_{name}_{subset}", position, f"{prefix}{subset}_{position}", subset)
    if name == "math":
        part = f"{_MATH_TASKS[subset]}_hard"
        return _Place(f"leaderboard_math_{part}", position, f"{prefix}{part}_{position}", subset)
    if name == "gpqa":
        return _Place("leaderboard_gpqa_extended", running, f"{prefix}extended_{running}", subset)
    if name == "ifeval":
        return _Place("leaderboard_ifeval", running, f"{prefix}{running}", subset)
    if name == "wildjailbreak":
        part = "response_refusal" if subset == "harmful" else "benign"
        return _Place(f"wildjailbreak:{subset}", position, f"{prefix}{part}_{position}", subset)
    if name == "bbq":  # both contexts of a template, in both polarities, stand together
        number = 2 * position + (subset == "disambig")
        group = _BBQ_CATEGORIES[number // 4 % len(_BBQ_CATEGORIES)]
        return _Place("bbq", number, f"{prefix}{group}_{number}", group)
    if name == "trustllm_jailbreaktrigger":  # the study prints a list here
        return _Place(name, running, f"{prefix}{[subset]}_{running}", subset)
    if name == "do_anything_now":
        return _Place(name, running, f"{prefix}response_refusal_{running}", subset)
    if name == "toxigen":
        return _Place(name, running, f"{prefix}classification_{running}", subset)
    return _Place(name, running, f"{prefix}{subset}_{running}", subset)


def _testlets(benchmark: Benchmark, frame: pd.DataFrame, position: np.ndarray) -> list[str | None]:
    """Return the testlet of each item, or None."""
    if benchmark.name == "xstest":  # a safe prompt and its contrast make a pair
        types = frame["subcategory_one"].str.removeprefix("contrast_").replace(_XSTEST_PAIRS)
        return [f"xstest/{name}/{n}" for name, n in zip(types, position, strict=True)]
    if benchmark.testlet_size == 0:
        return [None] * len(frame)
    if benchmark.testlet_size < 0:
        return [f"{benchmark.name}/{name}" for name in frame["subcategory_one"]]
    if benchmark.name == "bbq":
        return [f"bbq/{number // 4}" for number in frame["doc_id"]]
    size = frame.groupby("subcategory_one")["doc_id"].transform("size").to_numpy()
    number = position * np.maximum(1, np.round(size / benchmark.testlet_size)) // size
    return [f"{benchmark.name}/{s}/{int(n)}" for s, n in zip(frame["subcategory_one"], number, strict=True)]


def _options(benchmark: Benchmark, subsets: list[str], seed: int) -> list[int | None]:
    """Return the number of options of each item, or None."""
    if benchmark.options is None:
        return [None] * len(subsets)
    if not isinstance(benchmark.options, int):
        return [benchmark.options[name] for name in subsets]
    if benchmark.name != "mmlu-pro":
        return [benchmark.options] * len(subsets)
    rng = stream(seed, "options", benchmark.name, str(len(subsets)))
    fewer = rng.random(len(subsets)) < _FEWER_OPTIONS
    number = rng.integers(3, 10, len(subsets))
    return [int(n) if less else benchmark.options for n, less in zip(number, fewer, strict=True)]


def items(benchmark: Benchmark, counts: dict[str, dict[str, int]], seed: int) -> pd.DataFrame:
    """Lay out the items of a benchmark; no parameters yet.

    Parameters
    ----------
    benchmark
        The plan.
    counts
        What `design.allocate` returned.
    seed
        Decides which questions of MMLU-Pro have fewer than ten options.

    Returns
    -------
    DataFrame
        question_id, benchmark, category, subcategory_one, unit, testlet, options (Int16), inverted,
        scored_as, task, doc_id, group.
    """
    subsets: list[str] = []
    units: list[str] = []
    within: list[int] = []
    documents: list[int] = []
    for unit in benchmark.units:
        for subset, count in counts[f"{benchmark.name}/{unit.name}"].items():
            subsets += [subset] * count
            units += [unit.name] * count
            within += list(range(count))
            if benchmark.name == "mmlu-pro":
                documents += _mmlu_pro_documents(subset, count)
    if benchmark.name == "mmlu-pro":
        places = [
            _Place("leaderboard_mmlu_pro", number, f"{benchmark.prefix}{number}", subset)
            for number, subset in zip(documents, subsets, strict=True)
        ]
    else:
        places = [
            _place(benchmark, subset, unit, position, running)
            for running, (subset, unit, position) in enumerate(zip(subsets, units, within, strict=True))
        ]
    frame = pd.DataFrame(
        {
            "question_id": [place.question_id for place in places],
            "benchmark": benchmark.name,
            "category": benchmark.category,
            "subcategory_one": np.array(subsets, dtype=object),
            "unit": np.array(units, dtype=object),
            "doc_id": [place.doc_id for place in places],
        }
    )
    frame["testlet"] = np.array(_testlets(benchmark, frame, np.array(within)), dtype=object)
    frame["options"] = pd.array(_options(benchmark, subsets, seed), dtype="Int16")
    frame["inverted"] = benchmark.inverted
    frame["scored_as"] = benchmark.scored_as
    frame["task"] = [place.task for place in places]
    frame["group"] = [place.group for place in places]
    order = [name for name in frame.columns if name != "doc_id"]
    return frame[[*order[: order.index("task") + 1], "doc_id", "group"]]
