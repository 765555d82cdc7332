"""Do the intervals behind the verdicts hold the truth as often as they say? A table of coverage over small simulated studies.

    python tests/benchmarks/calibration.py --rows twins.csv --table coverage.csv [--markdown coverage.md]

Each twin is a study of 80 models and 504 questions whose lineages, models, questions and answers are all drawn anew from one
population (:mod:`benchmirt.simulate.population`), and goes the whole way in one process: fit (EM), consensus, refits without each
benchmark, without a fifth of the lineages (as many as the default study has) and without pairs of models, and names; then the
kinds of claims give estimate, interval and verdict for the shipped claims' parts and for every benchmark. That there are two
dimensions is planted and not tested; a twin whose abilities get no name gives no interval.

What each interval is meant to hold, computed from what was planted and never from an estimate:

- directions (C7, C11 to C13): other models and other questions of the same kind. Angle in the population between the mean
  discrimination of all questions that could be drawn and the ability's axis, which is the quartimin axis of all questions.
- correlations and means (C8 to C10, C14): other models, these questions. Correlation in the population of models of the score on
  the twin's own questions with the true ability along the quartimin axis of their true discriminations.
- pairs (C19): these two models, other questions. The mean over twins of the true difference on the questions chosen.

Gains of prediction (C4, C17, C18) are about other models on these questions, in twins of their own that answer one of four sets
of questions. Held-out answers and ranks are what they are, so that a gain's truth is its expectation, the mean over twins of a
set.

At a border: the region of every statement is laid with its border on the truth, so that `reproduced` says too much, with Clopper
and Pearson's 99 % upper bound of its rate. In a second plan the truth lies on the borders of shipped claims themselves: BBQ,
HarmBench's copyright items and WildJailbreak's benign ones lean neither way, the two sets of XSTest lean alike. The two models
of a pair that is alike differ by 0 in both plans.

Two thirds of the lineages are single models, as in the study. A killed run goes on where it was: twins that stand in the file of
rows are not made again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

TWINS = {"published": 400, "border": 400, "prediction": 400}


def scratch() -> str | None:
    """Return a folder in memory for the files of one twin, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> None:
    """Make the twins that are missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, count in TWINS.items():
        parser.add_argument(f"--{name}", type=int, default=count, help=f"twins of the plan {name} [{count}]")
    parser.add_argument(
        "--rows", type=Path, required=True, help="CSV file, a row per twin and statement; grows"
    )
    parser.add_argument("--table", type=Path, required=True, help="CSV file of the table")
    parser.add_argument("--markdown", type=Path, help="the same as Markdown")
    given = parser.parse_args()

    from benchmirt import launch

    launch.prepare(len(os.sched_getaffinity(0)), devices=1)
    from benchmirt import files
    from benchmirt.progress import progress
    from benchmirt.proof import table, trial
    from benchmirt.proof.truth import Known

    for name in TWINS:
        there = table.seeds(given.rows, name)
        missing = [seed for seed in range(1, getattr(given, name) + 1) if seed not in there]
        known = None if name == trial.FORETOLD else Known.build(name)
        for seed in progress(missing, total=len(missing), what=f"twins of the plan {name}"):
            if known is None:
                table.append(trial.foretell(seed), given.rows)
                continue
            with tempfile.TemporaryDirectory(dir=scratch()) as folder:
                table.append(trial.run(seed, known, Path(folder)), given.rows)
    found = table.coverage(table.read(given.rows))
    files.write_csv(found, given.table)
    text = table.markdown(found)
    print(text)
    if given.markdown is not None:
        files.write_text(text, given.markdown)


if __name__ == "__main__":
    main()
