"""How fast raw files are collected, and in how much memory, beside a plain read of the same files by pandas.

    python tests/benchmarks/collect.py --json collect.json [--models 100 1000] [--scale 1] [--kinds leaderboard safety-eval]

The files are those of the simulated double, 34,301 items a model at scale 1, in the two formats of the default study. Beyond its
100 models they are copies under other names: links, so that a file met before comes from the cache, in both ways. Every job of
the workflow's rule is a process of its own that makes the call of scripts/collect.py; beside it, in another one, pandas makes a
frame of each of the job's files, one after the other, checks nothing and keeps nothing. Seconds are those of whole processes,
start included, added up over jobs, and mean something as ratios only; peak memory is that of the largest process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import many_models


def lists(study_file: Path) -> dict[str, list[str]]:
    """Write a list of raw files for each job, ``{kind}.{job}.txt`` beside the study; return the jobs of each kind."""
    from benchmirt import config, sources
    from benchmirt.sources import folders

    home = study_file.parent
    study = config.load(json.loads(study_file.read_text("utf-8")), home)
    jobs: dict[str, list[str]] = {}
    for source in study.sources:
        place = home / source.options["folder"]
        known = folders.model_folders(source, study)
        for job in sources.plan(source, study):
            files: list[Path] = []
            for model in job.models:
                own = place / known[model]
                if source.kind == "leaderboard":
                    found = [name for _, _, names in folders.details(own, model, model) for name in names]
                else:
                    found = [*folders.result_files(own, model)]
                files += [own / name for name in found]
            jobs.setdefault(source.kind, []).append(job.name)
            (home / f"{source.kind}.{job.name}.txt").write_text("\n".join(map(str, files)), "utf-8")
    return jobs


def collect(study_file: Path, kind: str, job: str) -> int:
    """Collect the models of a job as its rule does; return the number of outcomes, those that are missing included."""
    from benchmirt import config, outcomes, sources

    home = study_file.parent
    study = config.load(json.loads(study_file.read_text("utf-8")), home)
    paths = sources.collect(study.source(kind), study, home / "outcomes" / kind, job)
    shards = [path for path in paths if path.name.startswith("shard") and path.suffix == ".parquet"]
    return sum(manifest["counts"]["items"] for shard in shards for manifest in outcomes.manifests(shard))


def plain(study_file: Path, kind: str, job: str) -> int:
    """Read the raw files of a job by pandas, without any check; return the number of rows."""
    import pandas as pd

    rows = 0
    for file in (study_file.parent / f"{kind}.{job}.txt").read_text("utf-8").splitlines():
        if file.endswith(".parquet"):
            rows += len(pd.read_parquet(file))
        else:
            with open(file, encoding="utf-8") as stream:
                rows += sum(len(pd.DataFrame(task)) for task in json.load(stream).values())
    return rows


WAYS = {"collect": collect, "plain": plain}


def measured(study_file: Path, kind: str, jobs: list[str]) -> dict[str, Any]:
    """Do all jobs of a kind in both ways; they take turns in going first, since the second finds the files in the cache."""
    found: dict[str, list[many_models.Used]] = {way: [] for way in WAYS}
    for number, job in enumerate(jobs):
        for way in [*WAYS][:: 1 if number % 2 else -1]:
            found[way].append(many_models.part(__file__, way, study_file, kind, job))
        print(f"{kind}: {number + 1} of {len(jobs)} jobs", file=sys.stderr, flush=True)
    row: dict[str, Any] = {"jobs": len(jobs)}
    for way, name in (("collect", "outcomes"), ("plain", "rows_read")):
        row[name] = sum(int(used.told) for used in found[way])
    for way, used in found.items():
        row[f"{way}_s"] = round(sum(one.seconds for one in used), 2)
        row[f"{way}_cpu_s"] = round(sum(one.cpu_s for one in used), 2)
        row[f"{way}_peak_mb"] = round(max(one.peak_mb for one in used), 1)
    return row


def both(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows of all kinds as one: seconds and counts added up, the greatest memory."""
    total: dict[str, Any] = {"kind": " and ".join(row["kind"] for row in rows)}
    for name in rows[0].keys() - {"kind"}:
        values = [row[name] for row in rows]
        total[name] = max(values) if name.endswith("_peak_mb") else round(sum(values), 2)
    return {name: total[name] for name in rows[0]}


def with_ratios(row: dict[str, Any]) -> dict[str, Any]:
    """Add outcomes per second, and what collecting takes for each second or megabyte of a plain read."""
    ratios = {
        f"{what}_ratio": round(row[f"collect_{what}"] / row[f"plain_{what}"], 2)
        for what in ("s", "cpu_s", "peak_mb")
    }
    return row | {"outcomes_per_s": round(row["outcomes"] / row["collect_s"])} | ratios


def size(simulated: Path, folder: Path, models: int, kinds: list[str]) -> list[dict[str, Any]]:
    """Measure at one number of models, in a folder that is removed again."""
    study_file = many_models.study(simulated, folder, models, kinds)
    jobs = json.loads(many_models.part(__file__, "lists", study_file).told)
    rows = [{"kind": kind} | measured(study_file, kind, jobs[kind]) for kind in kinds]
    shutil.rmtree(folder)
    if len(rows) > 1:
        rows.append(both(rows))
    copied = max(0, models - many_models.SIMULATED)
    return [{"models": models, "of_them_copies": copied} | with_ratios(row) for row in rows]


def main() -> None:
    """Simulate, measure both ways at each size, and write the object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--scale", default="1", help="of the simulated double: test, 0.1 or 1 (34,301 items)")
    parser.add_argument("--kinds", nargs="+", default=[*many_models.FOLDERS], choices=[*many_models.FOLDERS])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, help="where the files are put, and removed again (1 GB)")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        way, first, *rest = given.part
        parts = {"simulate": many_models.simulate, "lists": lists, **WAYS}
        print(json.dumps(parts[way](Path(first), *rest)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        simulated = Path(place) / "simulated"
        many_models.part(__file__, "simulate", simulated, given.scale, *given.kinds)
        rows = [
            row
            for models in given.models
            for row in size(simulated, Path(place) / "study", models, given.kinds)
        ]
    found = {"simulated": True, "scale": given.scale, "rows": rows}
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
