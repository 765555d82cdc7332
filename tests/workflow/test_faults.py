"""What is wrong with a study is said in one sentence, before any long work, and leaves nothing half done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny import MODELS, Run, Workflow, write_config, write_study


def refused(run: Run, *words: str) -> None:
    """Check that a run failed without a traceback and said all of the words in one line."""
    assert run.code != 0, run.text
    assert "Traceback" not in run.text, run.text
    lines = [line for line in run.text.splitlines() if all(word in line for word in words)]
    assert lines, f"{words} not in one line of:\n{run.text}"


CONFIGURATIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "misspelt key": ({"fits": {"sedes": 3}}, ("config.yaml", "fits.sedes", '"seeds"')),
    "misspelt section": ({"dimension": {"splits": 3}}, ("config.yaml", "dimension", '"dimensions"')),
    "text for a number": ({"fits": {"seeds": "three"}}, ("config.yaml", "fits.seeds", "three")),
    "no such engine": ({"fits": {"engine": "swi"}}, ("config.yaml", "fits.engine", "swi", '"svi"')),
    "no such claim": ({"claims": {"only": ["C99"]}}, ("config.yaml", "claims.only", "C99")),
    "no such claims file": ({"claims": {"file": ["mine.yaml"]}}, ("claims.file", "mine.yaml")),
    "no such table": (
        {"sources": [{"name": "a", "kind": "table", "responses": "gone.csv"}]},
        ("config.yaml", "sources[0].responses", "gone.csv"),
    ),
    "no sources": ({"sources": []}, ("config.yaml", "sources")),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_fault_of_the_configuration_stops_before_any_job(
    case: str, workflow: Workflow, tmp_path: Path
) -> None:
    keys, words = CONFIGURATIONS[case]
    write_config(tmp_path, {**write_study(tmp_path), **keys})
    run = workflow.call(tmp_path)
    refused(run, *words)
    assert "Execute" not in run.text
    assert not (tmp_path / "results").exists()
    dry = workflow.call(tmp_path, "-n")
    refused(dry, *words)


def test_a_configuration_that_is_not_yaml_is_refused(workflow: Workflow, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("study: tiny\nsources: [\n")
    run = workflow.call(tmp_path)
    refused(run, "config.yaml", "row 3", "not YAML")
    assert not (tmp_path / "results").exists()


FILES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("config.yaml", "found nothing")),
    "a list": (b"- study: tiny\n", ("config.yaml", "found a list")),
    "a tab": (b"study: tiny\nfits:\n\tseeds: 3\n", ("config.yaml", "row 3", "spaces")),
    "not UTF-8": (b"study: tiny\ntitle: \xe9\n", ("config.yaml", "row 2", "UTF-8")),
    "a key twice": (b"study: tiny\ntitle: a\nstudy: b\n", ("config.yaml", "row 3", '"study", as in row 1')),
}


@pytest.mark.parametrize("case", FILES)
def test_a_configuration_that_is_no_mapping_is_refused(case: str, workflow: Workflow, tmp_path: Path) -> None:
    content, words = FILES[case]
    (tmp_path / "config.yaml").write_bytes(content)
    refused(workflow.call(tmp_path, "-n"), *words)


def test_a_configuration_from_elsewhere_names_no_key_twice(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text((tmp_path / "config.yaml").read_text() + "title: another\n")
    refused(workflow.call(tmp_path, "-n", "--configfile", str(path)), "mine.yaml", '"title", as in row 2')


def test_results_that_are_a_file_are_refused(workflow: Workflow, tmp_path: Path) -> None:
    write_config(tmp_path, {**write_study(tmp_path), "results": "first.csv/results"})
    refused(workflow.call(tmp_path), "config.yaml: results", "first.csv", "a file")
    assert (tmp_path / "first.csv").is_file()


def spoil_value(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.astype(object)
    frame.iloc[3, 2] = 2
    return frame


def spoil_text(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.astype(object)
    frame.iloc[4, 1] = "right"
    return frame


def repeat_item(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.iloc[[5]]], ignore_index=True)


TABLES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], tuple[str, ...]]] = {
    "a value of 2": (spoil_value, ("second.csv", "row 5", MODELS[1], '"2"')),
    "text in a score": (spoil_text, ("second.csv", "row 6", MODELS[0], '"right"')),
    "an item twice": (repeat_item, ("second.csv", "row 42", "question_id", '"b5"')),
    "no items": (lambda frame: frame.iloc[:0], ("second.csv",)),
    "no question_id": (
        lambda frame: frame.rename(columns={"question_id": "id"}),
        ("second.csv", "question_id"),
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_malformed_table_is_refused_by_file_row_and_field(
    case: str, workflow: Workflow, tmp_path: Path
) -> None:
    spoil, words = TABLES[case]
    write_study(tmp_path)
    table = tmp_path / "second.csv"
    spoil(pd.read_csv(table)).to_csv(table, index=False)
    run = workflow.call(tmp_path, "--keep-going", "results/outcomes/second/shard0.parquet")
    refused(run, *words)
    assert "Failed: collect; its log is results/logs/collect/second.log" in run.text
    log = (tmp_path / "results" / "logs" / "collect" / "second.log").read_text()
    assert all(word in log for word in words)
    made = [path for path in (tmp_path / "results" / "outcomes").rglob("*") if path.is_file()]
    assert not made


def test_a_model_with_no_outcome_is_refused(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    table = tmp_path / "second.csv"
    frame = pd.read_csv(table).astype(object)
    frame["empty"] = None
    frame.to_csv(table, index=False)
    run = workflow.call(tmp_path, "results/matrix/honest/responses.parquet")
    refused(run, "second.csv", '"empty"', "no outcome")
    assert not list((tmp_path / "results" / "matrix").rglob("*.*"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda frame: frame.iloc[:, :2], ("first.csv", "one model alone")),
        (
            lambda frame: frame.assign(**dict.fromkeys(MODELS, 1)),
            ("first.csv", "no item is left", "equal"),
        ),
    ],
    ids=["one model only", "all items equal"],
)
def test_a_table_that_tells_nothing_is_refused(
    spoil: Callable[[pd.DataFrame], pd.DataFrame],
    words: tuple[str, ...],
    workflow: Workflow,
    tmp_path: Path,
) -> None:
    config = write_study(tmp_path)
    write_config(tmp_path, {**config, "sources": config["sources"][:1]})
    table = tmp_path / "first.csv"
    spoil(pd.read_csv(table)).to_csv(table, index=False)
    run = workflow.call(tmp_path, "results/matrix/honest/responses.parquet")
    refused(run, *words)
    assert not list((tmp_path / "results" / "matrix").rglob("*.*"))


def test_two_tables_that_disagree_are_refused(workflow: Workflow, tmp_path: Path) -> None:
    config = write_study(tmp_path)
    frame = pd.read_csv(tmp_path / "first.csv")
    frame.iloc[6, 3] = 1 - frame.iloc[6, 3]
    frame.to_csv(tmp_path / "again.csv", index=False)
    again = {"name": "again", "kind": "table", "responses": "again.csv", "items": "first_items.csv"}
    write_config(tmp_path, {**config, "sources": [*config["sources"], again]})
    run = workflow.call(tmp_path, "results/matrix/honest/responses.parquet")
    refused(run, "again.csv", "row 8", MODELS[2], '"a6"', "first.csv")


def test_facts_of_items_that_are_not_in_the_table_are_refused(workflow: Workflow, tmp_path: Path) -> None:
    write_study(tmp_path)
    items = pd.read_csv(tmp_path / "first_items.csv")
    items.loc[7, "question_id"] = "a007"
    items.to_csv(tmp_path / "first_items.csv", index=False)
    run = workflow.call(tmp_path, "results/outcomes/first/shard0.parquet")
    refused(run, "first_items.csv", "a7")
