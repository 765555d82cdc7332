"""The ways to install agree: pins for pip, the conda mirror, and what the package itself asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
CONDA_NAMES = {"snakemake-minimal": "snakemake", "huggingface_hub": "huggingface-hub"}


def pins(python: str) -> dict[str, str]:
    """Version of every package that requirements.txt pins for a version of Python on Linux."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
    }
    found: dict[str, str] = {}
    for line in (REPOSITORY / "envs" / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith(("#", "-e")) or line.lstrip().startswith("#"):
            continue
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        name = canonicalize_name(requirement.name)
        assert name not in found, f"{name} is pinned twice for Python {python}"
        exact = re.fullmatch(r"==([^*]+)", str(requirement.specifier))
        assert exact is not None, f"{line} is not an exact pin"
        found[name] = exact[1]
    return found


def test_the_conda_environment_has_the_versions_of_the_pins() -> None:
    text = (REPOSITORY / "envs" / "environment.yaml").read_text(encoding="utf-8")
    stated = dict(
        re.match(r"([\w-]+)\s*=?(.*)", line).groups() for line in yaml.safe_load(text)["dependencies"]
    )
    python = stated.pop("python")
    stated.pop("pip")
    pinned = pins(python)
    names = {CONDA_NAMES.get(name, name): version for name, version in stated.items()}
    assert {name: pinned[name] for name in names} == names


def test_the_conda_environment_holds_all_that_the_package_asks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    stated = yaml.safe_load((REPOSITORY / "envs" / "environment.yaml").read_text(encoding="utf-8"))
    names = {CONDA_NAMES.get(name, name) for line in stated["dependencies"] for name in [line.split()[0]]}
    assert wanted <= names


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_all_that_the_package_asks_for_is_pinned_and_new_enough(python: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = pins(python)
    for line in project["dependencies"] + project["optional-dependencies"]["dev"]:
        requirement = Requirement(line)
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, line


def test_the_pins_name_no_index_and_end_with_this_package() -> None:
    text = (REPOSITORY / "envs" / "requirements.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    assert text.splitlines()[-1] == "-e ."


def test_the_readme_opens_with_the_two_commands() -> None:
    setup = "python3 -m venv .venv && . .venv/bin/activate && pip install -r envs/requirements.txt"
    top = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert top.index(f"{setup} && snakemake --cores all") < top.index(f"{setup} && pytest")


def test_version_and_licence_are_the_same_everywhere() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"] == "Apache-2.0"
