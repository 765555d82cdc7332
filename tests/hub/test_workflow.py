"""Data sets of the hub as sources of a study: fetched once, read as local files are, told where they come from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from job import REPO, Client
from loopback import Hub, Repo

MODELS = [f"org__model-{number}" for number in range(8)]


def call(
    client: Client, config: dict[str, Any], *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Call Snakemake in the client's folder."""
    small = {"claims": {"file": []}, "filter": {"min_observed": 2}, "hub": {"tries": 2, "wait": 0.01}}
    (client.home / "config.yaml").write_text(yaml.safe_dump({"study": "hub", **small, **config}))
    snakefile = Path(__file__).resolve().parents[2] / "Snakefile"
    return subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "snakemake",
                "--snakefile",
                str(snakefile),
                "--directory",
                str(client.home),
            ),
            *("--cores", "1", "--nocolor", *arguments),
        ],
        env=client.environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def rules(run: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the rules of the jobs that ran or would run."""
    return sorted(re.findall(r"^(?:local)?rule (\S+):$", run.stdout + run.stderr, flags=re.MULTILINE))


def table(seed: int) -> pd.DataFrame:
    """Return simulated outcomes, and a column that is no model's."""
    cells = np.random.default_rng(seed).integers(0, 2, size=(30, len(MODELS)))
    frame = pd.DataFrame(cells, columns=[f"acc_norm_{model}" for model in MODELS])
    frame.insert(0, "question_id", [f"bbh__{number}" for number in range(30)])
    frame["average"] = frame[frame.columns[1:]].mean(axis=1)
    return frame


def test_a_table_is_found_by_its_header_and_its_outcomes_are_those_of_the_hub(
    hub: Hub, client: Client
) -> None:
    frame = table(1)
    repo = hub.repos[REPO] = Repo(large={"simulated outcomes.csv"})
    commit = repo.commit(
        {
            "README.md": b"# Simulated outcomes\n",
            "simulated outcomes.csv": frame.to_csv(index=False).encode(),
            "simulated_statistics.csv": b"question_id,average_score\nbbh__0,0.5\n",
        }
    )
    source = {
        "name": "mine",
        "kind": "table",
        "responses": {"hub": REPO, "revision": commit},
        "prefix": "acc_norm_",
    }
    wanted = "results/outcomes/mine/shard0.parquet"
    run = call(client, {"sources": [source]}, wanted)
    assert run.returncode == 0, run.stderr
    assert rules(run) == ["collect", "fetch"]
    found = pd.read_parquet(client.home / wanted).pivot(
        index="question_id", columns="model", values="outcome"
    )
    right = frame.set_index("question_id")[[f"acc_norm_{model}" for model in MODELS]]
    assert (found.loc[right.index, MODELS].to_numpy(dtype=int) == right.to_numpy()).all()
    record = json.loads((client.home / "results/fetched/mine/responses.json").read_text())
    assert (record["data_set"], record["commit"], record["pinned"]) == (REPO, commit, True)
    hub.asked.clear()
    assert rules(call(client, {"sources": [source]}, "-n", wanted)) == []
    other = {**source, "responses": {"hub": REPO, "revision": "main"}}
    assert rules(call(client, {"sources": [other]}, "-n", wanted)) == ["collect", "fetch"]
    assert hub.asked == []


def safety(seed: int) -> bytes:
    """Return simulated results of safety-eval for one model."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "id": f"xstest/{number}",
            "type": "homonyms",
            "prompt": f"simulated prompt {number}",
            "response": "simulated response",
            "response_refusal": str(random.choice(["refusal", "compliance"])),
        }
        for number in range(20)
    ]
    return json.dumps({"xstest:default": rows}).encode()


def test_raw_results_of_the_hub_give_the_outcomes_of_the_same_files_in_a_folder(
    hub: Hub, client: Client
) -> None:
    files = {f"{model}/all.json": safety(number) for number, model in enumerate(MODELS)}
    hub.repos["org/simulated_results"] = Repo()
    hub.repos["org/simulated_results"].commit({**files, "README.md": b"# Simulated\n"})
    for name, data in files.items():
        path = client.home / "simulated_here" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    fetched = {"name": "far", "kind": "safety-eval", "folder": {"hub": "org/simulated_results"}}
    near = {"name": "near", "kind": "safety-eval", "folder": "simulated_here"}
    wanted = ["results/outcomes/far/whole", "results/outcomes/near/0of1"]
    run = call(client, {"sources": [fetched, near]}, *wanted)
    assert run.returncode == 0, run.stderr
    assert 'revision "main" is not pinned' in run.stderr
    far, here = (client.home / path for path in wanted)
    shards = sorted(path.name for path in here.glob("shard*.parquet"))
    assert sorted(path.name for path in far.glob("shard*.parquet")) == shards
    for name in shards:
        pd.testing.assert_frame_equal(pd.read_parquet(far / name), pd.read_parquet(here / name))


def test_each_model_may_have_a_data_set_of_its_own(hub: Hub, client: Client) -> None:
    for number, model in enumerate(MODELS):
        hub.repos[f"org/simulated-{model}"] = Repo()
        hub.repos[f"org/simulated-{model}"].commit(
            {"all.json": safety(number), "README.md": b"# Simulated\n"}
        )
        path = client.home / "simulated_here" / model / "all.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(safety(number))
    pd.DataFrame({"model": MODELS}).to_csv(client.home / "models.csv", index=False)
    near = {"name": "near", "kind": "safety-eval", "folder": "simulated_here", "models": "models.csv"}
    fetched = {**near, "name": "far", "folder": {"hub": "org/simulated-{model}"}}
    study = {"sources": [fetched, near], "models": {"exclude": MODELS[3:]}}
    wanted = ["results/outcomes/far/0of1", "results/outcomes/near/0of1"]
    run = call(client, study, *wanted)
    assert run.returncode == 0, run.stderr
    assert rules(run).count("fetch") == 3
    assert not [asked for asked in hub.asked if any(model in asked.path for model in MODELS[3:])]
    far, here = (client.home / path for path in wanted)
    shards = sorted(path.name for path in here.glob("shard*.parquet"))
    assert len(shards) == 3
    for name in shards:
        pd.testing.assert_frame_equal(pd.read_parquet(far / name), pd.read_parquet(here / name))
    more = {**study, "models": {"exclude": MODELS[4:]}}
    assert rules(call(client, more, "-n", wanted[0])).count("fetch") == 1


def test_a_gated_source_ends_the_run_in_one_sentence_and_leaves_nothing(hub: Hub, client: Client) -> None:
    hub.repos[REPO].gated = True
    source = {"name": "logs", "kind": "files", "files": {"hub": REPO, "files": ["*.csv"]}}
    run = call(client, {"sources": [source]}, "results/outcomes/logs/shard0.parquet")
    told = run.stdout + run.stderr
    assert run.returncode != 0
    assert "Traceback" not in told
    assert "accept its conditions" in told
    assert "Failed: fetch; its log is results/logs/fetch/logs.files.log" in told
    assert not (client.home / "results" / "fetched" / "logs" / "files").exists()
    assert not list((client.home / "results").rglob("*.json"))
