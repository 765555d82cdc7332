"""The ready study of the published data, against a loopback hub with made-up data of the published form."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from job import Client
from loopback import Hub, Repo
from test_workflow import call

REPOSITORY = Path(__file__).resolve().parents[2]
STUDY = yaml.safe_load((REPOSITORY / "workflow" / "studies" / "paper.yaml").read_text(encoding="utf-8"))
MODELS = pd.read_csv(REPOSITORY / "workflow" / "resources" / "models.csv")["model"].tolist()
NUMBERS = ("three", "five", "seven")
IDS = {
    "bbh": [f"bbh__{name}_{{}}" for name in ("boolean_expressions", *(f"a_{n}_objects" for n in NUMBERS))],
    "gpqa": ["gpqa__extended_{}"],
    "ifeval": ["ifeval__{}"],
    "math": ["math__algebra_hard_{}"],
    "mmlu-pro": ["mmlu_pro__{}"],
    "musr": ["musr__murder_mysteries_{}", "musr__team_allocation_{}"],
    "bbq": ["bbq__Age_{}"],
    "do_anything_now": ["do_anything_now__response_refusal_{}"],
    "harmbench": ["harmbench__copyright_{}", "harmbench__standard_{}"],
    "strongreject": ["strongreject__Non-violent crimes_{}"],
    "toxigen": ["toxigen__classification_{}"],
    "trustllm_jailbreaktrigger": ["trustllm_jailbreaktrigger__['cot']_{}"],
    "wildguardtest": ["wildguardtest__others_{}"],
    "wildjailbreak": ["wildjailbreak__response_refusal_{}", "wildjailbreak__benign_{}"],
    "wmdp": ["wmdp__wmdp-bio_{}"],
    "xstest": ["xstest__contrast_homonyms_{}", "xstest__homonyms_{}"],
}
EACH = 12


@pytest.fixture(scope="module")
def outcomes() -> pd.DataFrame:
    """Return simulated outcomes of the 100 models: items by models."""
    random = np.random.default_rng(5)
    names = [form.format(number) for forms in IDS.values() for form in forms for number in range(EACH)]
    ability = random.normal(size=len(MODELS))
    easiness = 2.5 * random.normal(size=(len(names), 1))
    cells = (random.uniform(size=(len(names), len(MODELS))) < 1 / (1 + np.exp(-ability - easiness))).astype(
        int
    )
    cells[0, :5], cells[0, 5:] = 1, 0  # exactly .05, so that the strict filter drops it
    return pd.DataFrame(cells, index=pd.Index(names, name="question_id"), columns=MODELS)


def statistics(outcomes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statistics that the published study would have made of these outcomes."""
    right = outcomes.sum(axis=1)
    kept = (right > 5) & (right < 95)
    benchmark = {form.format(n): bench for bench, forms in IDS.items() for form in forms for n in range(EACH)}
    items = pd.DataFrame({"average_score": outcomes[kept].mean(axis=1)})
    items.insert(0, "benchmark", [benchmark[name] for name in items.index])
    means = outcomes.groupby(benchmark).mean().T
    means.columns = [f"{name}_average" for name in means.columns]
    means.insert(0, "family", "x")
    return items.reset_index(), means.rename_axis("model").reset_index()


def serve(hub: Hub, outcomes: pd.DataFrame, items: pd.DataFrame, models: pd.DataFrame) -> dict[str, Any]:
    """Put the three data sets on the hub; return the study, told the hash of the made-up statistics."""
    responses, tables = STUDY["sources"][0]["responses"], STUDY["published_statistics"]
    wide = outcomes.rename(columns=lambda name: f"acc_norm_{name}").reset_index()
    files = {
        responses["hub"]: {"simulated_matrix.csv": wide},
        tables["items"]["hub"]: {"simulated_statistics.csv": items},
        tables["models"]["hub"]: {"llm_statistics.csv": models},
    }
    for name, frames in files.items():
        hub.repos[name] = Repo(large=set(frames))
        content = {file: frame.to_csv(index=False).encode() for file, frame in frames.items()}
        commit = hub.repos[name].commit({**content, "README.md": b"# Simulated\n"})
        hub.repos[name].commits[tables["models"]["revision"]] = hub.repos[name].commits[commit]
    study = copy.deepcopy(STUDY)
    del study["published_statistics"]["models"]["sha256"]
    study["title"] += " (simulated)"
    return study


def differences(client: Client, study: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Run to the comparison; return its table and its summary."""
    (client.home / "workflow").mkdir(exist_ok=True)
    link = client.home / "workflow" / "resources"
    if not link.exists():
        link.symlink_to(REPOSITORY / "workflow" / "resources")
    study = {**study, "filter": {}}
    table = f"{study['results']}/published_statistics/differences.csv"
    run = call(client, study, table)
    assert run.returncode == 0, run.stderr[-5000:]
    return pd.read_csv(client.home / table), json.loads(
        (client.home / table).with_name("summary.json").read_text()
    )


def test_planted_differences_are_listed_and_no_others(
    hub: Hub, client: Client, outcomes: pd.DataFrame
) -> None:
    items, models = statistics(outcomes)
    items.loc[3, "average_score"] += 0.01  # the mean of one item
    gone = items["question_id"].iloc[7]  # an item that the published filter is said to have dropped
    spare = {
        "question_id": outcomes.index[0],
        "benchmark": "bbh",
        "average_score": 0.05,
    }  # one that it is said to keep
    items = pd.concat([items.drop(index=7), pd.DataFrame([spare])], ignore_index=True)
    models.loc[2, "xstest_average"] += 1 / (2 * EACH)  # one outcome more
    models.loc[4, "model"] = "org__unknown"
    study = serve(hub, outcomes, items, models)
    found, summary = differences(client, study)
    told = {
        (row.kind, row.name, row.what) for row in found.loc[found["kind"] != "count"].itertuples(index=False)
    }
    assert {(kind, name) for kind, name, _ in told} == {
        ("only_here", gone),
        ("only_published", outcomes.index[0]),
        ("value", items["question_id"].iloc[3]),
        ("value", MODELS[2]),
        ("only_here", MODELS[4]),
        ("only_published", "org__unknown"),
    }
    counts = found.loc[(found["kind"] == "count") & (found["what"] == "items")].set_index("name")
    assert counts.loc["all", ["ours", "published"]].astype(int).tolist() == [len(outcomes), 34_301]
    assert counts.at["bbh", "ours"] == str(4 * EACH)
    assert summary["compared"]["model means"] == 99 * 16
    assert summary["compared"]["item means"] == len(items)
    ids = pd.read_parquet(client.home / "results/paper/matrix/published/items.parquet").set_index(
        "question_id"
    )
    benchmark = {form.format(0): bench for bench, forms in IDS.items() for form in forms}
    assert ids.loc[list(benchmark), "benchmark"].tolist() == list(benchmark.values())
    expected = {
        "wildjailbreak__benign_0": "benign",
        "wildjailbreak__response_refusal_0": "harmful",
        "xstest__contrast_homonyms_0": "contrast_homonyms",
        "harmbench__copyright_0": "copyright",
        "bbh__boolean_expressions_0": "boolean_expressions",
    }
    assert ids.loc[list(expected), "subcategory_one"].tolist() == list(expected.values())
    assert set(ids.loc[ids["inverted"], "benchmark"]) == {"wmdp"}
    assert ids.loc[["bbh__a_five_objects_0", "mmlu_pro__0"], "options"].tolist() == [5, 10]


@pytest.mark.slow
def test_the_hash_of_the_published_model_statistics_is_asked_for(
    hub: Hub, client: Client, outcomes: pd.DataFrame
) -> None:
    study = serve(hub, outcomes, *statistics(outcomes))
    study["published_statistics"] = STUDY["published_statistics"]
    (client.home / "workflow").mkdir()
    (client.home / "workflow" / "resources").symlink_to(REPOSITORY / "workflow" / "resources")
    run = call(client, study, "results/paper/fetched/_published/models")
    told = run.stdout + run.stderr
    assert run.returncode != 0
    assert "expected 9cff23cde83b954fed36c3990711c41f73dca6a342a4907a249bfa14ed214695" in told
    assert "Traceback" not in told
    assert not (client.home / "results" / "paper" / "fetched" / "_published" / "models").exists()
