"""What the hub does not give is told for all data sets at once, before the first of them is fetched."""

from __future__ import annotations

from typing import Any

import pandas as pd
from job import TOKEN, Client
from loopback import Hub, Repo
from test_workflow import call, rules, safety

MODELS = [f"org__m{number}" for number in range(8)]
WANTED = "results/outcomes/far/0of1"


def study(hub: Hub, client: Client) -> dict[str, Any]:
    """Give each model a data set of its own; return the study."""
    for number, model in enumerate(MODELS):
        hub.repos[f"org/{model}"] = Repo(large={"all.json"} if number % 2 else set())
        hub.repos[f"org/{model}"].commit({"all.json": safety(number), "README.md": b"# Simulated\n"})
    pd.DataFrame({"model": MODELS}).to_csv(client.home / "models.csv", index=False)
    folder = {"hub": "org/{model}", "files": ["*.json"]}
    source = {"name": "far", "kind": "safety-eval", "models": "models.csv", "folder": folder}
    return {"sources": [source], "title": "A simulated study"}


def left(client: Client) -> list[str]:
    """Return the models that were fetched."""
    return sorted(path.name for path in (client.home / "results" / "fetched" / "far").glob("folder/*[0-9]"))


def sentence(text: str) -> str:
    """Return the one sentence of a refusal."""
    return next(line for line in text.splitlines() if "of the hub and" in line and "data sets: " in line)


def test_lm_evaluation_harness_1311_all_gated_data_sets_are_told_in_one_sentence_and_none_is_fetched(
    hub: Hub, client: Client
) -> None:
    one = study(hub, client)
    for model in MODELS[2:]:
        hub.repos[f"org/{model}"].gated = True
    run = call(client, one, WANTED)
    text = run.stdout + run.stderr
    assert run.returncode != 0
    assert "Traceback" not in text
    told = sentence(text)
    assert 'data set "org/org__m2" of the hub and 5 more, which the log lists: 6 of 8 data sets: ' in told
    assert "accept its conditions" in told
    assert "export HF_TOKEN=" in told
    assert "Do the same with the others" in told
    (log,) = (client.home / "results" / "logs" / "fetch" / "far.folder").iterdir()
    text = log.read_text()
    assert [model for model in MODELS if f'data set "org/{model}" of the hub' in text] == MODELS[2:]
    assert rules(run) == ["fetch"]
    assert not hub.requests("GET .*/resolve/")
    assert left(client) == []
    for model in MODELS:
        hub.repos[f"org/{model}"].readers.add(TOKEN)
    run = call(client, one, WANTED, HF_TOKEN=TOKEN)
    assert run.returncode == 0, run.stderr
    assert rules(run).count("fetch") == 8


def test_of_several_fetches_at_a_time_one_asks(hub: Hub, client: Client) -> None:
    one = study(hub, client)
    for repo in hub.repos.values():
        repo.gated = True
    run = call(client, one, WANTED, "--cores", "3")
    assert rules(run).count("fetch") == 3
    assert run.stderr.count("8 of 8 data sets: its owner asks for an agreement first") == 1
    assert run.stderr.count("not fetched, since other data sets are not to be had") == 2
    assert len(hub.requests("HEAD .*/resolve/")) == 8


def test_faults_of_several_kinds_are_told_together(hub: Hub, client: Client) -> None:
    one = study(hub, client)
    hub.repos["org/org__m1"].gated = True
    del hub.repos["org/org__m4"]
    del hub.repos["org/org__m5"]
    hub.repos["org/org__m6"].commit({"results.csv": b"a\n", "README.md": b"# Simulated\n"})
    text = call(client, one, WANTED).stderr
    assert "3 faults:" in text
    assert 'data set "org/org__m1" of the hub: its owner asks for an agreement first' in text
    assert 'data set "org/org__m4" of the hub and 1 more, which the log lists: 2 of 8 data sets: ' in text
    assert "there is no such data set, or it is private" in text
    assert (
        'data set "org/org__m6" of the hub: file "*.json": there is no such file: found results.csv' in text
    )


def test_a_hub_out_of_reach_is_not_asked_about_the_others(hub: Hub, client: Client) -> None:
    one = study(hub, client)
    hub.fail("GET hub/api/datasets", times=99, status=503)
    text = call(client, one, WANTED).stderr
    assert "the hub is busy or out of reach: found status 503 2 times" in text
    assert {asked.path.split("/")[4] for asked in hub.requests("api/datasets")} == {MODELS[0]}


def test_new_models_are_asked_about_alone_and_fetched_alone(hub: Hub, client: Client) -> None:
    one = study(hub, client)
    run = call(client, {**one, "models": {"exclude": MODELS[5:]}}, WANTED)
    assert run.returncode == 0, run.stderr
    assert left(client) == MODELS[:5]
    hub.asked.clear()
    run = call(client, {**one, "models": {"exclude": MODELS[7:]}}, WANTED)
    assert run.returncode == 0, run.stderr
    assert rules(run).count("fetch") == 2
    assert {model for model in MODELS if hub.requests(f"/{model}")} == set(MODELS[5:7])


def test_offline_the_cache_is_asked(hub: Hub, client: Client) -> None:
    one = study(hub, client)
    text = call(client, one, WANTED, HF_HUB_OFFLINE="1").stderr
    assert "8 of 8 data sets: which commit this is was never asked, and HF_HUB_OFFLINE forbids to ask" in text
    assert call(client, one, WANTED).returncode == 0
    (client.home / "results").rename(client.home / "before")
    hub.asked.clear()
    run = call(client, one, WANTED, HF_HUB_OFFLINE="1")
    assert run.returncode == 0, run.stderr
    assert hub.asked == []
