"""Write simulated outcomes as Open LLM Leaderboard details: one parquet file per model and task.

Layout, as in the leaderboard's data sets after conversion to parquet::

    {org}__{model}-details/{org}__{model}__leaderboard_{task}/latest/simulated_0000.parquet

Columns: doc_id, doc, target, arguments, resps, filtered_resps, doc_hash, prompt_hash, target_hash, in newer files
also filter and metrics, and the scores. A score is spelt in each of the ways seen in the wild: 1, 1.0, "1",
"1.0", true, "True"; one spelling per file. What else is planted:

- an output that is the empty string scores 0; so does one that ends inside ``<think>``;
- a null score (of `math`);
- documents of MMLU-Pro that the study leaves out, and the GPQA subsets that it does not use;
- an earlier run with other results in a split named for its time;
- rows written twice, with the same score or with another one.

Texts are placeholders; candidates' log-likelihoods agree with the score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmirt import files
from benchmirt.simulate.layout import MMLU_PRO_EXCLUDED, stream
from benchmirt.simulate.study import Simulated

__all__ = ["SPELLINGS", "write"]

SPELLINGS = ("1", "1.0", '"1"', '"1.0"', "true", '"True"')
"""Ways in which a score of one is spelt; that of a file is ``SPELLINGS[(model + task) % 6]``."""

_METRIC = {
    "bbh": "acc_norm",
    "gpqa": "acc_norm",
    "musr": "acc_norm",
    "mmlu-pro": "acc",
    "math": "exact_match",
}
_EARLIER = "2024_06_16T15_17_05.123456"
_LARGE = 2000
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Task:
    """The parts of a task's files that are the same for all models; arrays have a row per document."""

    name: str
    benchmark: str
    columns: np.ndarray  # column of the response matrix, -1 where the study has no such item
    documents: np.ndarray
    candidates: np.ndarray  # number of candidate answers, 0 for generation
    answers: np.ndarray  # index of the right candidate
    fixed: pa.Table  # doc_id ... arguments
    hashes: pa.Table

    def rows(self, keep: np.ndarray) -> _Task:
        """Return the task with the rows `keep` only, in that order."""
        if np.array_equal(keep, np.arange(len(self.documents))):
            return self
        places = pa.array(keep)
        return replace(
            self,
            columns=self.columns[keep],
            documents=self.documents[keep],
            candidates=self.candidates[keep],
            answers=self.answers[keep],
            fixed=self.fixed.take(places),
            hashes=self.hashes.take(places),
        )


def _texts(word: str, numbers: Sequence[int] | np.ndarray) -> pa.Array:
    """Return placeholder texts ``simulated {word} {number}``."""
    return pa.array([f"simulated {word} {number}" for number in numbers], pa.string())


def _lists(values: pa.Array, sizes: np.ndarray) -> pa.ListArray:
    """Cut a flat array into lists of the given sizes."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _struct(**fields: pa.Array) -> pa.StructArray:
    """Make a column of structures."""
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _hashes(name: str, what: str, documents: np.ndarray) -> pa.Array:
    """Return one SHA-256 in hexadecimal per document."""
    return pa.array(
        [hashlib.sha256(f"simulated {name} {what} {number}".encode()).hexdigest() for number in documents]
    )


def _task(name: str, benchmark: str, items: pd.DataFrame, seed: int) -> _Task:
    """Prepare what all models' files of a task share."""
    columns = items.index.to_numpy()
    documents = items["doc_id"].to_numpy()
    candidates = items["options"].to_numpy(dtype=np.int64, na_value=0)
    groups = items["group"].to_numpy(dtype=object)
    if benchmark == "mmlu-pro":
        extra = len(MMLU_PRO_EXCLUDED)
        columns = np.concatenate([columns, np.full(extra, -1)])
        documents = np.concatenate([documents, MMLU_PRO_EXCLUDED])
        candidates = np.concatenate([candidates, np.full(extra, 10)])
        groups = np.concatenate([groups, np.full(extra, "other", dtype=object)])
        order = np.argsort(documents, kind="stable")
        columns, documents = columns[order], documents[order]
        candidates, groups = candidates[order], groups[order]
    count = len(documents)
    rng = stream(seed, "answers", name, str(count))
    answers = (rng.random(count) * np.maximum(candidates, 1)).astype(np.int64)
    letters = pa.array([f"({_LETTERS[answer]})" for answer in answers])
    prompt = _texts("prompt", documents)
    target = letters
    if benchmark == "bbh":
        doc = _struct(input=_texts("question", documents), target=letters)
    elif benchmark == "gpqa":
        doc = _struct(
            **{"Question": _texts("question", documents), "High-level domain": pa.array(groups)},
            **{f"choice{k + 1}": _texts(f"choice {k + 1} of question", documents) for k in range(4)},
            answer=letters,
        )
    elif benchmark == "musr":
        narrative = items["testlet"].str.rsplit("/", n=1).str[1].to_numpy()
        choices = pa.array([str([f"choice {k + 1}" for k in range(number)]) for number in candidates])
        target = pa.array([f"choice {answer + 1}" for answer in answers])
        doc = _struct(
            narrative=_texts("narrative", narrative),
            question=_texts("question", documents),
            choices=choices,
            answer_index=pa.array(answers),
            answer_choice=target,
        )
    elif benchmark == "mmlu-pro":
        target = pa.array([_LETTERS[answer] for answer in answers])
        flat = pa.array([f"choice {k + 1}" for number in candidates for k in range(number)])
        doc = _struct(
            question_id=pa.array(documents + 70),
            question=_texts("question", documents),
            options=_lists(flat, candidates),
            answer=target,
            answer_index=pa.array(answers),
            cot_content=pa.array([""] * count),
            category=pa.array(groups),
            src=pa.array([f"simulated-{group}" for group in groups]),
        )
    elif benchmark == "math":
        target = pa.array([f"simulated answer {number}" for number in documents])
        doc = _struct(
            problem=_texts("problem", documents),
            level=pa.array(["Level 5"] * count),
            type=pa.array(groups),
            solution=_texts("solution", documents),
            answer=target,
        )
    else:
        target = pa.array([""] * count)
        doc = _struct(
            key=pa.array(documents + 1000),
            prompt=prompt,
            instruction_id_list=pa.array([["simulated:instruction"]] * count),
        )
    most = int(candidates.max(initial=0))
    if most:
        arguments = {}
        for k in range(most):
            there = candidates > k
            text = pa.array([f" ({_LETTERS[k]})"] * count)
            arguments[f"gen_args_{k}"] = pa.StructArray.from_arrays(
                [prompt, text], names=["arg_0", "arg_1"], mask=pa.array(~there)
            )
        argument = _struct(**arguments)
    else:
        limit = 1024 if benchmark == "math" else 1280
        settings = _struct(
            do_sample=pa.array([False] * count),
            max_gen_toks=pa.array([limit] * count),
            temperature=pa.array([0.0] * count),
            until=pa.array([[]] * count, pa.list_(pa.string())),
        )
        argument = _struct(gen_args_0=_struct(arg_0=prompt, arg_1=settings))
    fixed = pa.table({"doc_id": pa.array(documents), "doc": doc, "target": target, "arguments": argument})
    hashes = pa.table(
        {f"{what}_hash": _hashes(name, what, documents) for what in ("doc", "prompt", "target")}
    )
    return _Task(name, benchmark, columns, documents, candidates, answers, fixed, hashes)


_LOWER = [f"-{k / 10:.1f}" for k in range(20, 200)]
_UPPER = [f"-{k / 10:.1f}" for k in range(1, 20)]
_POOL = pa.array([*_LOWER, *_UPPER, "False", "True"], pa.string())


def _candidates(task: _Task, right: np.ndarray, rng: np.random.Generator) -> tuple[pa.Array, pa.Array]:
    """Return resps and filtered_resps of a multiple-choice task: [log-likelihood, is greedy] per candidate."""
    wrong = (
        task.answers + 1 + (rng.random(len(right)) * (task.candidates - 1)).astype(np.int64)
    ) % np.maximum(task.candidates, 1)
    chosen = np.where(right, task.answers, wrong)
    first = np.concatenate([[0], np.cumsum(task.candidates)])
    total = int(first[-1])
    value = rng.integers(0, len(_LOWER), total)
    value[first[:-1] + chosen] = len(_LOWER) + rng.integers(0, len(_UPPER), len(chosen))
    greedy = np.full(total, len(_POOL) - 2)
    greedy[first[:-1] + chosen] = len(_POOL) - 1
    flat = _POOL.take(pa.array(np.column_stack([value, greedy]).ravel()))
    pairs = _lists(flat, np.full(total, 2))
    return _lists(_lists(pairs, np.ones(total, dtype=np.int64)), task.candidates), _lists(
        pairs, task.candidates
    )


def _score(values: np.ndarray, missing: np.ndarray, spelling: str) -> pa.Array:
    """Spell 0/1 scores."""
    one = values == 1
    if spelling == "1":
        return pa.array(one.astype(np.int64), mask=missing)
    if spelling == "1.0":
        return pa.array(one.astype(np.float64), mask=missing)
    if spelling == "true":
        return pa.array(one, mask=missing)
    words = {'"1"': ("0", "1"), '"1.0"': ("0.0", "1.0"), '"True"': ("False", "True")}[spelling]
    return pa.array(np.array(words, dtype=object)[one.astype(int)], pa.string(), mask=missing)


def _rows(
    task: _Task,
    keep: np.ndarray,
    score: np.ndarray,
    reason: np.ndarray,
    thinks: bool,
    spelling: str,
    newer: bool,
    rng: np.random.Generator,
) -> pa.Table:
    """Make the rows `keep` of one file.

    Parameters
    ----------
    keep
        (R,) rows of the task, possibly with repetitions.
    score, reason
        (R,) scores and reasons of these rows.
    """
    metric = _METRIC.get(task.benchmark)
    part = task.rows(keep)
    columns = {name: part.fixed[name].combine_chunks() for name in part.fixed.column_names}
    if task.candidates.any():
        columns["resps"], columns["filtered_resps"] = _candidates(part, score == 1, rng)
    else:
        text = np.full(len(keep), "simulated output", dtype=object)
        if thinks:
            text[:] = "<think>simulated thoughts</think> simulated output"
        text[reason == "truncated"] = "<think>simulated thoughts"
        text[reason == "empty"] = ""
        answer = pa.array(text, pa.string())
        ones = np.ones(len(keep), dtype=np.int64)
        columns["resps"] = _lists(_lists(answer, ones), ones)
        columns["filtered_resps"] = answer
    if newer:
        columns["filter"] = pa.array(["none"] * len(keep))
        columns["metrics"] = pa.array([[metric or "prompt_level_strict_acc"]] * len(keep))
    columns |= {name: part.hashes[name].combine_chunks() for name in part.hashes.column_names}
    missing = reason == "unparsed"
    if metric is None:
        level = _score(score, missing, spelling)
        columns["prompt_level_strict_acc"] = columns["prompt_level_loose_acc"] = level
        columns["inst_level_strict_acc"] = pa.array([[bool(value)] for value in score == 1])
    else:
        columns[metric] = _score(score, missing, spelling)
        if metric == "exact_match" and newer:
            columns["exact_match_original"] = _score(score, missing, spelling)
    return pa.table(columns)


def write(simulated: Simulated, reason: np.ndarray, repeated: np.ndarray, seed: int, folder: Path) -> None:
    """Write the details of all models.

    Parameters
    ----------
    simulated
        The study; responses without gaps.
    reason
        (N, J) planted reasons, None where there is none.
    repeated
        (N, J) rows to be written twice.
    seed
        Seed of what the truth does not fix (log-likelihoods, results that do not count).
    folder
        Where the models' folders go.
    """
    table = simulated.item_table
    reasoning = table[table["category"] == "reasoning"]
    tasks = [
        _task(str(name), str(items["benchmark"].iloc[0]), items, seed)
        for name, items in reasoning.groupby("task", sort=False)
    ]
    for row, (model, thinks) in enumerate(
        zip(simulated.model_table["model"], simulated.model_table["reasoning"], strict=True)
    ):
        with files.atomic_folder(folder / f"{model}-details") as home:
            _write_model(simulated, reason, repeated, seed, tasks, row, bool(thinks), home)


def _write_model(
    simulated: Simulated,
    reason: np.ndarray,
    repeated: np.ndarray,
    seed: int,
    tasks: Sequence[_Task],
    row: int,
    thinks: bool,
    home: Path,
) -> None:
    """Write the details of one model, that in `row`, into its folder."""
    model = simulated.model_table["model"].iloc[row]
    rng = stream(seed, "leaderboard", model)
    for number, task in enumerate(tasks):
        inside = task.columns >= 0
        score = rng.integers(0, 2, len(inside))
        score[inside] = simulated.responses[row, task.columns[inside]]
        why = np.full(len(inside), None, dtype=object)
        why[inside] = reason[row, task.columns[inside]]
        twice = np.zeros(len(inside), dtype=bool)
        twice[inside] = repeated[row, task.columns[inside]]
        score[np.isin(why, ("empty", "truncated"))] = 0
        keep = np.flatnonzero(why != "not_run")
        if not len(keep):
            continue
        again = np.flatnonzero(twice | (why == "conflict"))
        other = np.where(why[again] == "conflict", 1 - score[again], score[again])
        keep, score = np.concatenate([keep, again]), np.concatenate([score[keep], other])
        spelling = SPELLINGS[(row + number) % len(SPELLINGS)]
        newer = row % 2 == 1
        rows = _rows(task, keep, score, why[keep], thinks, spelling, newer, rng)
        config = home / f"{model}__{task.name}"
        _write(rows, config / "latest")
        if task.benchmark == "ifeval" and row % 40 == 3:  # an earlier run, which does not count
            earlier = _rows(
                task, keep, rng.integers(0, 2, len(keep)), why[keep], thinks, spelling, newer, rng
            )
            _write(earlier, config / _EARLIER)
        if task.benchmark == "gpqa" and row % 40 == 5:  # subsets that the study does not use
            few = keep[: max(1, len(keep) // 3)]
            for name in ("main", "diamond"):
                unused = _rows(
                    task, few, rng.integers(0, 2, len(few)), why[few], thinks, spelling, newer, rng
                )
                _write(unused, home / f"{model}__leaderboard_gpqa_{name}" / "latest")


def _write(rows: pa.Table, split: Path) -> None:
    """Write one file; small ones in the codec that is quickest to write."""
    codec = "snappy" if rows.num_rows < _LARGE else "zstd"
    split.mkdir(parents=True)
    path = split / "simulated_0000.parquet"
    pq.write_table(rows, path, compression=codec, store_schema=False, write_statistics=False)
