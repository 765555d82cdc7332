"""Many new models placed on a finished study: seconds of `snakemake score`, job by job.

    python tests/benchmarks/newcomers.py [--models 100 1000] [--items 30000] [--csv newcomers.csv]

A simulated calibration is copied to a folder of its own, and a table with the answers of new models to all of its items is put
beside it. Measured is the whole command, and within it the job that reads the table and the one that scores.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import many_models

JOBS = {"collect_new/new": "collect", "score": "score"}
"""Job's name below <results>/benchmarks -> beginning of columns."""
BENCHMARKS = 16


def simulate(folder: Path, models: str, items: str) -> None:
    """Write a calibration of so many items, and a table of new models' answers to them."""
    import numpy as np
    import pandas as pd

    sys.path.insert(0, str(many_models.ROOT / "tests" / "unit"))
    from ability_fixture import answers, calibration_of

    from benchmirt.ability import calibration

    known = calibration_of(int(items), seed=1, floor=0.25, benchmarks=BENCHMARKS)
    calibration.write(known, folder / "calibration")
    abilities = np.random.default_rng(2).normal(size=(int(models), known.dims))
    table = pd.DataFrame(
        answers(known, abilities, seed=3).T, columns=[f"simulated-{model}" for model in range(len(abilities))]
    )
    table.insert(0, "question_id", list(known.items))
    table.to_csv(folder / "new.csv", index=False)


def measured(folder: Path, models: int, items: int) -> dict[str, Any]:
    """Measure the whole command and its two jobs."""
    folder.mkdir()
    many_models.part(__file__, "simulate", folder, str(models), str(items))
    new = [{"name": "new", "kind": "table", "responses": "new.csv"}]
    study = {"results": "results", "score": {"calibration": "calibration", "models": new}}
    (folder / "config.yaml").write_text(json.dumps(study), encoding="utf-8")
    snakefile = str(many_models.ROOT / "Snakefile")
    command = [sys.executable, "-m", "snakemake", "-s", snakefile, "--directory", str(folder), "--cores", "1"]
    used = many_models.alone([*command, "score"], folder)
    row = {"simulated": True, "models": models, "items": items, "s": used.seconds, "cpu_s": used.cpu_s}
    for job, name in JOBS.items():
        with open(folder / "results" / "benchmarks" / f"{job}.tsv", encoding="utf-8", newline="") as stream:
            told = next(csv.DictReader(stream, delimiter="\t"))
        row |= {f"{name}_s": float(told["s"]), f"{name}_cpu_s": float(told["cpu_time"])}
        row[f"{name}_peak_mb"] = float(told["max_rss"])
    return row


def main() -> None:
    """Simulate, measure every number of models, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--items", type=int, default=30_000)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        _, folder, *rest = given.part
        simulate(Path(folder), *rest)
        return
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for models in given.models:
            rows.append(measured(Path(place) / str(models), models, given.items))
            print(rows[-1], flush=True)
    if given.csv:
        with open(given.csv, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, [*rows[0]])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
