"""The interface file against the rules: all that they make is named there, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PRINT_RULES = """
import json
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

with SnakemakeApi(OutputSettings(quiet=None)) as api:
    home = api.workflow(ResourceSettings(), config_settings=ConfigSettings(), snakefile=Path("Snakefile"))
    print(json.dumps({rule.name: [str(one) for one in rule.output] for rule in home._workflow.rules}))
"""
WILDCARD = re.compile(r"{([a-z]+)(?:,[^}]*)?}")


@pytest.fixture(scope="module")
def rules(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Give the outputs of each rule as they are declared, wildcards without their constraints."""
    cache = tmp_path_factory.mktemp("cache")
    run = subprocess.run(
        [sys.executable, "-c", PRINT_RULES],
        cwd=repository,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    declared: dict[str, list[str]] = json.loads(run.stdout.splitlines()[-1])
    return {name: [WILDCARD.sub(r"{\1}", one) for one in outputs] for name, outputs in declared.items()}


@pytest.fixture(scope="module")
def interface(repository: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = yaml.safe_load(
        (repository / "workflow" / "interface.yaml").read_text()
    )
    return found


def pattern(template: str) -> re.Pattern[str]:
    """Return what a template of the interface stands for, wildcards as any text without a slash."""
    parts = re.split(r"({[a-z]+})", template.replace("<results>", "results"))
    return re.compile("".join("[^/]+" if part.startswith("{") else re.escape(part) for part in parts))


def test_every_output_is_named(rules: dict[str, list[str]], interface: dict[str, dict[str, str]]) -> None:
    known = [pattern(template) for template in interface["outputs"]]
    lacking = [
        (name, one)
        for name, outputs in rules.items()
        for one in outputs
        if not any(template.fullmatch(one) for template in known)
    ]
    assert not lacking


def test_nothing_is_named_that_no_rule_makes(
    rules: dict[str, list[str]], interface: dict[str, dict[str, str]]
) -> None:
    made = [one for outputs in rules.values() for one in outputs]
    some = "/published_statistics/", "/roads/"  # of some studies only
    tables = {one for one in interface["outputs"] if any(folder in one for folder in some)}
    idle = [
        template
        for template in interface["outputs"]
        if template not in tables and not any(pattern(template).fullmatch(one) for one in made)
    ]
    assert not idle


def test_every_wildcard_has_a_meaning(
    rules: dict[str, list[str]], interface: dict[str, dict[str, str]]
) -> None:
    used = {name for outputs in rules.values() for one in outputs for name in WILDCARD.findall(one)}
    named = {name for template in interface["outputs"] for name in WILDCARD.findall(template)}
    assert used <= set(interface["wildcards"])
    assert set(interface["wildcards"]) == named | {"claim"}


def test_targets_are_rules(rules: dict[str, list[str]], interface: dict[str, dict[str, str]]) -> None:
    assert set(interface["targets"]) <= set(rules)


def test_places_are_those_of_the_snakefile(repository: Path, interface: dict[str, dict[str, str]]) -> None:
    text = (repository / "Snakefile").read_text()
    block = re.search(r"^pathvars:\n((?:    .*\n)+)", text, re.M)
    assert block is not None
    assert set(re.findall(r"^    (\w+)=", block[1], re.M)) == set(interface["pathvars"])
