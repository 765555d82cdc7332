"""The twin: the simulated study in the upstream files' own formats, with planted failures and a known truth.

What a reader must make of the files is written down beside them, in the truth folder only: the matrix under both
policies, and every planted failure with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmirt import files
from benchmirt.errors import InputError, nearest
from benchmirt.simulate import raw_leaderboard, raw_safety
from benchmirt.simulate.layout import stream
from benchmirt.simulate.study import Simulated, study
from benchmirt.simulate.tables import write_truth as write_study_truth

__all__ = ["FAILED", "FOLDERS", "SCALES", "VARIANTS", "Twin", "twin", "write", "write_truth"]

VARIANTS = {
    "twin": "planted",
    "twin_pure": "planted_pure",
    "one": "one",
    "noise": "noise",
    "flipped": "flipped",
}
"""Variant of the twin -> form of `study`."""

FOLDERS = {"leaderboard": "simulated_open_llm_leaderboard", "safety": "simulated_safety_eval"}
"""Part of the raw files -> its folder."""

SCALES = ("test", "0.1", "1")
"""``test``: about 800 items, coarse subsets; ``0.1``: at least 20 items a subset; ``1``: all 34,301 items."""

FAILED = ("empty", "truncated", "unparsed", "judge_failed")
"""Planted reasons that the published policy turns into an outcome; the others stay missing."""

_TEST_ITEMS = 800
_JUDGED = (
    "do_anything_now",
    "harmbench",
    "strongreject",
    "trustllm_jailbreaktrigger",
    "wildguardtest",
    "wildjailbreak",
    "xstest",
)
_GENERATED = ("ifeval", "math")
_RATES: dict[str, dict[str, float]] = {
    "empty": dict.fromkeys((*_JUDGED, "bbq", "wmdp", *_GENERATED), 0.004),
    "judge_failed": dict.fromkeys(_JUDGED, 0.015),
    "unparsed": {"bbq": 0.01, "wmdp": 0.02, "math": 0.003},
}
_TRUNCATED = dict.fromkeys(_JUDGED, 0.02) | dict.fromkeys(_GENERATED, 0.10)
"""Share of outputs of reasoning models that end inside their thoughts."""


@dataclass(frozen=True)
class Twin:
    """A simulated study with its planted failures.

    Attributes
    ----------
    variant, scale, seed
        As given to `twin`.
    simulated
        The study without missing responses.
    reason
        (N, J) object array: None, or the reason that a response is missing (empty, truncated, unparsed,
        judge_failed, not_run, conflict).
    honest
        (N, J) int8: what the honest policy makes of the files; -1 where there is a reason.
    published
        (N, J) int8: what the published policy makes of them: 0 for the reasons in `FAILED`, but 1 on inverted
        items; -1 for not_run and conflict.
    repeated
        (N, J) bool: rows written twice with the same score, which is no conflict.
    """

    variant: str
    scale: str
    seed: int
    simulated: Simulated
    reason: np.ndarray
    honest: np.ndarray
    published: np.ndarray
    repeated: np.ndarray

    def failures(self) -> pd.DataFrame:
        """Return one row per planted failure: model, question_id, benchmark, reason, published (Int8)."""
        model, item = np.nonzero(self.honest < 0)
        published = self.published[model, item]
        return pd.DataFrame(
            {
                "model": self.simulated.model_table["model"].to_numpy()[model],
                "question_id": self.simulated.item_table["question_id"].to_numpy()[item],
                "benchmark": self.simulated.benchmark[item],
                "reason": self.reason[model, item],
                "published": pd.arrays.IntegerArray(np.maximum(published, 0), published < 0),
            }
        )


def twin(
    variant: str = "twin",
    scale: str | float = "0.1",
    seed: int = 1,
    *,
    models: int = 100,
    flip: tuple[str, ...] = (),
    failures: bool = True,
) -> Twin:
    """Simulate the twin in memory.

    Parameters
    ----------
    variant
        A key of `VARIANTS`.
    scale
        One of `SCALES`.
    seed
        Seed of everything.
    models
        Number of models, 8 to 100.
    flip
        As for `study`.
    failures
        False plants no failures at all.

    Raises
    ------
    InputError
        For an unknown variant or scale, or as `study` does.
    """
    if variant not in VARIANTS:
        close = nearest(variant, VARIANTS)
        raise InputError(
            "the simulated study",
            where="variant",
            found=f'"{variant}"',
            expected=" or ".join(VARIANTS),
            todo=f'Did you mean "{close}"?' if close else None,
        )
    name = scale if isinstance(scale, str) else f"{scale:g}"
    if name not in SCALES:
        raise InputError(
            "the simulated study", where="scale", found=f'"{name}"', expected=" or ".join(SCALES)
        )
    if name == "test":
        simulated = study(VARIANTS[variant], models, _TEST_ITEMS, seed, flip=flip, missing=0.0)
    else:
        simulated = study(VARIANTS[variant], models, None, seed, scale=float(name), flip=flip, missing=0.0)
    shape = simulated.responses.shape
    reason = np.full(shape, None, dtype=object)
    repeated = np.zeros(shape, dtype=bool)
    if failures:
        _plant(simulated, reason, repeated, seed)
    missing = reason != np.full(shape, None)
    inverted = simulated.item_table["inverted"].to_numpy(dtype=bool)
    published = np.where(missing, inverted.astype(np.int8), simulated.responses)
    published[missing & ~np.isin(reason, FAILED)] = -1
    honest = np.where(missing, np.int8(-1), simulated.responses)
    return Twin(variant, name, seed, simulated, reason, honest, published, repeated)


def _plant(simulated: Simulated, reason: np.ndarray, repeated: np.ndarray, seed: int) -> None:
    """Plant failures into `reason` and agreeing repetitions into `repeated`, in place."""
    items = simulated.item_table
    thinks = simulated.model_table["reasoning"].to_numpy(dtype=bool)
    for benchmark in dict.fromkeys(simulated.benchmark):
        columns = np.flatnonzero(simulated.benchmark == benchmark)
        drawn = stream(seed, "failures", benchmark, str(len(columns)), str(len(thinks))).random(
            (len(thinks), len(columns))
        )
        part = np.full(drawn.shape, None, dtype=object)
        low = np.zeros((len(thinks), 1))
        for name, rates in _RATES.items():
            high = low + rates.get(benchmark, 0.0)
            part[(drawn >= low) & (drawn < high)] = name
            low = high
        high = low + np.where(thinks, _TRUNCATED.get(benchmark, 0.0), 0.0)[:, None]
        part[(drawn >= low) & (drawn < high)] = "truncated"
        reason[:, columns] = part
    rng = stream(seed, "incidents", str(len(thinks)))
    order = rng.permutation(len(thinks))
    task, document = items["task"].to_numpy(), items["doc_id"].to_numpy()
    # a task never run, for four models; a run stopped half-way; runs appended to a file, with other results
    for model, name in zip(
        order,
        ("leaderboard_gpqa_extended", "leaderboard_bbh_navigate", "wmdp", "strongreject"),
        strict=False,
    ):
        reason[model, task == name] = "not_run"
    limited = task == "leaderboard_math_geometry_hard"
    reason[order[4], limited & (document >= np.median(document[limited]))] = "not_run"
    for model, name in ((order[5], "leaderboard_ifeval"), (order[6], "wildguardtest")):
        columns = rng.permutation(np.flatnonzero((task == name) & (reason[model] == np.array(None))))[:6]
        reason[model, columns[:3]] = "conflict"
        repeated[model, columns[3:]] = True


def write(simulated: Twin, out_dir: str | Path, parts: Sequence[str] = tuple(FOLDERS)) -> dict[str, Path]:
    """Write the twin's raw files.

    Parameters
    ----------
    simulated
        What `twin` returned.
    out_dir
        Folder for those of `FOLDERS`; see `raw_leaderboard` and `raw_safety` for what is in them.
    parts
        Which to write: keys of `FOLDERS`.

    Returns
    -------
    dict
        Part -> its folder.
    """
    written = {part: Path(out_dir) / FOLDERS[part] for part in parts}
    for part, folder in written.items():
        writer = raw_leaderboard.write if part == "leaderboard" else raw_safety.write
        writer(simulated.simulated, simulated.reason, simulated.repeated, simulated.seed, folder)
    return written


def write_truth(simulated: Twin, truth_dir: str | Path) -> dict[str, Path]:
    """Write the twin's truth: that of `tables.write_truth`, and what a reader must make of the raw files.

    Further files: ``simulated_truth_honest.parquet`` and ``simulated_truth_published.parquet`` (question_id and a
    nullable Int8 column per model), ``simulated_truth_failures.csv`` (model, question_id, benchmark, reason,
    published).

    Returns
    -------
    dict
        As `tables.write_truth`, and truth_honest, truth_published, truth_failures -> path.
    """
    folder = Path(truth_dir)
    paths = write_study_truth(simulated.simulated, folder)
    further = {name: folder / f"simulated_truth_{name}.parquet" for name in ("honest", "published")}
    models = simulated.simulated.model_table["model"].tolist()
    ids = pa.array(simulated.simulated.item_table["question_id"])
    for name, path in further.items():
        matrix = getattr(simulated, name)
        columns = [pa.array(row, mask=row < 0) for row in matrix]
        files.write_parquet(pa.Table.from_arrays([ids, *columns], names=["question_id", *models]), path)
    failures = folder / "simulated_truth_failures.csv"
    files.write_csv(simulated.failures(), failures)
    return paths | {f"truth_{name}": path for name, path in further.items()} | {"truth_failures": failures}
