"""A study larger than one machine, station by station: planning, collecting, the response matrix.

    python tests/benchmarks/scale.py --csv scale.csv [--plot scale.png] [--models 100 500 1500 4500] [--folder DIR]

A study of so many models on the benchmarks of the Open LLM Leaderboard (simulated; 20,922 items a model at scale 1) is made in a
folder of its own: raw files of the 100 models of the simulated double, and links to them under other names. Measured are

- plan: ``snakemake -n`` of the whole study, the second time, when the names of the files are in the cache;
- collect: some jobs, as scripts/collect.py does them; seconds and CPU of all jobs are stated from these;
- outcomes: what all jobs leave on disk. Those not collected are written by the library with simulated responses;
- matrix: both policies, as scripts/matrix.py builds them from all outcomes.

Each is a process of its own; seconds are those of the whole process, and mean something as ratios and as growth only.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import many_models

KIND = "leaderboard"
FAILED = 0.02
"""Share of simulated responses that are missing."""
STATIONS = {
    "plan": "plan (snakemake -n)",
    "collect": "collect, all jobs",
    "matrix_honest": "matrix, honest",
    "matrix_published": "matrix, published",
}
"""Beginning of columns -> what the plot calls them."""


def loaded(study_file: Path) -> Any:
    """Return the study and its jobs by name."""
    from benchmirt import config, sources

    study = config.load(json.loads(study_file.read_text("utf-8")), study_file.parent)
    return study, {job.name: job for job in sources.plan(study.source(KIND), study)}


def jobs(study_file: Path) -> list[str]:
    """Return the names of all jobs."""
    return [*loaded(study_file)[1]]


def home(study_file: Path) -> Path:
    """Return the folder of the source's outcomes."""
    return study_file.parent / "results" / "outcomes" / KIND


def collect(study_file: Path, job: str) -> None:
    """Collect the models of a job as its rule does."""
    from benchmirt import sources

    study, _ = loaded(study_file)
    sources.collect(study.source(KIND), study, home(study_file), job)


def outcomes(study_file: Path, like: str) -> None:
    """Write what the jobs leave that have not run, with simulated responses to the items that the job `like` collected."""
    import numpy as np
    import pandas as pd

    from benchmirt import outcomes as table
    from benchmirt.sources.folders import jobs_of

    study, planned = loaded(study_file)
    items, facts = table.facts(home(study_file) / like / "shard")
    items = items.drop_duplicates("question_id", ignore_index=True)
    manifest = table.manifests(min((home(study_file) / like).glob("shard*.parquet")))[0]
    lineage = pd.read_csv(study_file.parent / "models.csv", dtype="str").set_index("model")["lineage"]
    rng = np.random.default_rng(1)
    a, d = rng.normal(0.0, (1.0, 0.7), (len(items), 2)), rng.standard_normal(len(items))
    names, content = tuple(items["question_id"]), list(items["content_hash"])

    def one(model: str) -> table.OneModel:
        eta = a @ rng.standard_normal(2) + d
        right = rng.random(len(items)) < 1 / (1 + np.exp(-eta))
        failed = rng.random(len(items)) < FAILED
        return table.OneModel(
            model=model,
            items=names,
            outcome=np.where(failed, -1, right).astype(np.int8),
            published=np.where(failed, 0, right).astype(np.int8),
            reason=np.where(failed, table.REASONS.index("unparsed") + 1, 0).astype(np.uint8),
            score=np.where(failed, np.nan, right),
            content=content,
            manifest={**manifest, "folder": str(Path(manifest["folder"]).with_name(model)), "conflicts": []},
        )

    for job, shards in jobs_of(study.source(KIND), [*lineage.index]).items():
        if (home(study_file) / job).exists():
            continue
        own = pd.Series(planned[job].models, dtype="str")
        told = facts.iloc[np.zeros(len(own), dtype=int)].reset_index(drop=True)
        table.write_models(
            {shard: [one(model) for model in members] for shard, members in shards.items()},
            items,
            told.assign(model=own, lineage=own.map(lineage).astype("str")),
            home(study_file) / job,
        )


def matrix(study_file: Path, policy: str) -> dict[str, int]:
    """Build a matrix as its rule does; return what its summary says of its size."""
    from benchmirt import matrix as station

    study, planned = loaded(study_file)
    folders = [home(study_file) / job for job in planned]
    paths = station.build(folders, study, policy, study_file.parent / "results" / "matrix" / policy)
    summary = json.loads(paths[-1].read_text("utf-8"))
    return {name: summary[name] for name in ("models", "items", "observed", "missing")}


def disk(folder: Path) -> tuple[int, float]:
    """Return how many files there are in a folder, and their megabytes."""
    sizes = [os.path.getsize(Path(place, name)) for place, _, names in os.walk(folder) for name in names]
    return len(sizes), round(sum(sizes) / 1e6, 1)


def planned(folder: Path) -> dict[str, Any]:
    """Measure a dry run of the whole study, the second of two."""
    snakefile = str(many_models.ROOT / "Snakefile")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-s",
        snakefile,
        "--directory",
        str(folder),
        "-n",
        "--quiet",
        "rules",
    ]
    many_models.alone(command, folder)
    used = many_models.alone(command, folder)
    counts = re.findall(r"^total +([0-9]+)$", used.told, re.MULTILINE)
    return {"plan_jobs": int(counts[-1]), **taken("plan", [used])}


def taken(station: str, used: list[many_models.Used], times: float = 1.0) -> dict[str, float]:
    """Return columns of seconds, CPU and memory of a station; seconds `times` as much."""
    return {
        f"{station}_s": round(sum(one.seconds for one in used) * times, 1),
        f"{station}_cpu_s": round(sum(one.cpu_s for one in used) * times, 1),
        f"{station}_peak_mb": round(max(one.peak_mb for one in used), 1),
    }


def size(simulated: Path, folder: Path, models: int, sampled: int) -> dict[str, Any]:
    """Measure all stations at one number of models, in a folder that is removed again."""
    study_file = many_models.study(simulated, folder, models, [KIND])
    files, megabytes = disk(folder / many_models.FOLDERS[KIND])
    row: dict[str, Any] = {
        "simulated": True,
        "models": models,
        "items": None,
        "raw_files": files,
        "raw_mb": megabytes,
    }
    row |= planned(folder)
    names = json.loads(many_models.part(__file__, "jobs", study_file).told)
    chosen = names[:: -(-len(names) // sampled)]
    used = [many_models.part(__file__, "collect", study_file, job) for job in chosen]
    row |= {"collect_jobs": len(names), "collect_jobs_measured": len(chosen)}
    row |= taken("collect", used, len(names) / len(chosen))
    many_models.part(__file__, "outcomes", study_file, chosen[0])
    row["outcome_files"], row["outcome_mb"] = disk(home(study_file))
    for policy in ("honest", "published"):
        used = [many_models.part(__file__, "matrix", study_file, policy)]
        found = json.loads(used[0].told)
        if found["models"] != models:
            raise RuntimeError(f"the matrix has {found['models']} models, and not {models}")
        row["items"] = found["items"]
        row |= taken(f"matrix_{policy}", used)
    row["matrix_files"], row["matrix_mb"] = disk(folder / "results" / "matrix")
    shutil.rmtree(folder)
    return row


def growth(rows: list[dict[str, Any]]) -> str:
    """Say as which power of the number of models each measure grows: a line fitted through logarithms, and the last step."""
    import numpy as np

    models = np.log([row["models"] for row in rows])
    told = []
    for column in rows[0]:
        if column.endswith(("_cpu_s", "_mb")):
            values = np.log([row[column] for row in rows])
            slope, last = (
                np.polyfit(models, values, 1)[0],
                (values[-1] - values[-2]) / (models[-1] - models[-2]),
            )
            told.append(f"{column} ~ models^{slope:.2f} (last step {last:.2f})")
    return "; ".join(told)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds, memory and disk against the number of models."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    models = [row["models"] for row in rows]
    for (station, name), line in zip(STATIONS.items(), ("o-", "o-", "o-", "s--"), strict=True):
        axes[0].plot(models, [row[f"{station}_cpu_s"] for row in rows], line, label=name)
        axes[1].plot(models, [row[f"{station}_peak_mb"] for row in rows], line)
    for column, name in (("raw_mb", "raw files"), ("outcome_mb", "outcomes"), ("matrix_mb", "both matrices")):
        axes[2].plot(models, [row[column] for row in rows], "o-", label=name)
    for axis, what in zip(axes, ("seconds of CPU", "peak memory of a job, MB", "disk, MB"), strict=True):
        axis.set(xscale="log", xlabel="models", ylabel=what)
        axis.set_xticks(models, [f"{count:,}" for count in models])
        axis.xaxis.minorticks_off()
    axes[0].set_yscale("log")
    axes[1].set_ylim(bottom=0)
    axes[2].set_yscale("log")
    for axis, left in ((axes[0], 0.0), (axes[2], 0.2)):
        axis.legend(frameon=False, loc="lower left", bbox_to_anchor=(left, 1.0))
    figure.suptitle(f"Simulated studies of {rows[-1]['items']:,} items")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Simulate, measure every size, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 500, 1500, 4500])
    parser.add_argument("--scale", default="1", help="of the simulated double: test, 0.1 or 1 (all items)")
    parser.add_argument("--sampled", type=int, default=2, help="jobs of collecting that are measured")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--folder", type=Path, help="where the files are put, and removed again (5 GB)")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        name, first, *rest = given.part
        parts = {
            "simulate": many_models.simulate,
            "jobs": jobs,
            "collect": collect,
            "outcomes": outcomes,
            "matrix": matrix,
        }
        print(json.dumps(parts[name](Path(first), *rest)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        simulated = Path(place) / "simulated"
        many_models.part(__file__, "simulate", simulated, given.scale, KIND)
        rows = []
        for models in given.models:
            rows.append(size(simulated, Path(place) / "study", models, given.sampled))
            print(rows[-1], flush=True)
    if given.csv:
        with open(given.csv, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, [*rows[0]])
            writer.writeheader()
            writer.writerows(rows)
    if len(rows) > 1:
        print(growth(rows))
    if given.plot:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
