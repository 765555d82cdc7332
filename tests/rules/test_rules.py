"""What every rule and every script must have, read from their texts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((REPOSITORY / "scripts").glob("*.py"))


def _rules() -> dict[str, str]:
    """Text of every rule by name; those made in a loop under the name of their script and a star."""
    found = {}
    for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        for block in re.split(r"^(?=(?:    )?rule\b)|^(?=use rule\b)", text, flags=re.MULTILINE)[1:]:
            name = re.match(r"\s*rule (\w+):", block)
            script = re.search(r"scripts/(\w+)\.py", block)
            if block.startswith("use rule"):
                continue
            key = name[1] if name else f"{script[1]}_*" if script else "?"
            found[key] = block
    return found


RULES = _rules()


def test_the_story_has_all_its_stations() -> None:
    stations = ["collect", "matrix", "fit", "consensus", "claim", "figure_*", "page"]
    assert [name for name in stations if name not in RULES] == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_what_it_needs(rule: str) -> None:
    text = RULES[rule]
    directives = set(re.findall(r"^\s+(\w+):", text, flags=re.MULTILINE))
    assert {"output", "log", "benchmark", "threads", "resources", "params", "conda", "script"} <= directives
    assert "mem_mb=memory(" in text
    assert "<logs>/" in text
    assert "<benchmarks>/" in text
    assert "rules." not in text, "paths are literal, so that the workflow can be imported as a module"


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_the_fingerprint_of_its_own_script_of_the_same_name(rule: str) -> None:
    script = re.search(r"scripts/(\w+)\.py", RULES[rule])
    assert script is not None
    assert script[1] == rule.removesuffix("_*")
    assert re.search(rf'fingerprint=(?:lambda w: )?code_of\("{script[1]}"', RULES[rule])


@pytest.mark.parametrize("rule", ["score", "extend", "shortform", "adaptive", "compare_studies"])
def test_what_is_asked_for_stays_until_a_new_answer_takes_its_place(rule: str) -> None:
    """Snakemake removes other outputs before their job begins, also where it then fails."""
    outputs = re.search(r"    output:\n(.*?)\n    log:", RULES[rule], flags=re.DOTALL)
    assert outputs is not None
    named = [line for line in outputs[1].splitlines() if "<results>/" in line]
    assert named
    assert all("update(" in line for line in named)


def test_every_script_has_its_rule() -> None:
    assert {script.stem for script in SCRIPTS} == {rule.removesuffix("_*") for rule in RULES}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_thin_documented_and_sets_up_first(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 50
    documentation = ast.get_docstring(tree)
    assert documentation is not None
    assert "\nIn:  " in documentation
    assert "\nOut: " in documentation
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try)]
    body = tree.body[-1]
    assert isinstance(body, ast.If)
    assert "logs.start(snakemake" in ast.unparse(body.body[0]), "before anything imports jax"
    outside = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in [(node.module or "").split(".")[0]]
    }
    assert outside <= {"benchmirt", "pathlib", "typing", "snakemake"}


@pytest.mark.parametrize(
    "file", sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")), ids=lambda f: f.stem
)
def test_a_rule_file_opens_with_its_part_of_the_story(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    documentation = re.match(r'"""(.+?)"""', text, flags=re.DOTALL)
    assert documentation is not None
    if file.stem == "common":
        return
    assert re.search(r"^in    ", documentation[1], flags=re.MULTILINE)
    assert re.search(r"^out   ", documentation[1], flags=re.MULTILINE)
    steps = documentation[1].partition("\nsteps ")[2]
    for rule in re.findall(r"^rule (\w+):", text, flags=re.MULTILINE):
        assert re.search(rf"^\s*{rule} ", steps, flags=re.MULTILINE), f"{rule} is not told"


def test_the_front_door_is_short() -> None:
    assert len((REPOSITORY / "Snakefile").read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("profile", ["slurm", "cluster-generic"])
def test_a_profile_names_rules_that_there_are(profile: str) -> None:
    path = REPOSITORY / "workflow" / "profiles" / profile / "config.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    arrays = settings.get("slurm-array-jobs", "")
    named = {*settings["set-resources"], *filter(None, arrays.split(","))}
    texts = [file.read_text(encoding="utf-8") for file in (REPOSITORY / "workflow" / "rules").glob("*.smk")]
    rules = set(re.findall(r"^(?:rule|use rule \w+ as) (\w+)", "\n".join(texts), flags=re.MULTILINE))
    assert named - rules == set()
    # the plugin loses jobs of an array that `jobs` does not let in
    assert not arrays or settings["jobs"] >= 1000
