from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmirt import provenance


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Make a small library: report -> figures -> model (inside a function), package sources -> table."""
    home = tmp_path / "benchmirt"
    sources = {
        "__init__.py": "",
        "errors.py": "import json",
        "model.py": "from benchmirt.errors import InputError",
        "figures.py": "def draw():\n    import benchmirt.model\n",
        "report/__init__.py": "from .. import figures\nfrom .page import write",
        "report/page.py": "from ..errors import InputError",
        "report/page.html": "<p>",
        "typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from benchmirt import model\n",
        "alone.py": "import numpy",
    }
    for name, text in sources.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home


def test_closure_follows_every_kind_of_import(library: Path) -> None:
    def names(*modules: str) -> set[str]:
        return {name.removeprefix("benchmirt.") for name in provenance.closure(modules, library)}

    assert names("errors") == {"benchmirt", "errors"}
    assert names("figures") == {"benchmirt", "figures", "model", "errors"}
    assert names("report") == {"benchmirt", "report", "report.page", "figures", "model", "errors"}
    assert names("report.page") >= {"report", "figures"}, "importing a module runs its package"
    assert names("typed") == {"benchmirt", "typed"}, "imports for type checkers never run"
    with pytest.raises(ValueError, match="modle"):
        names("modle")


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("errors.py", {"errors", "model", "figures", "report"}),
        ("model.py", {"model", "figures", "report"}),
        ("figures.py", {"figures", "report"}),
        ("report/page.html", {"report"}),
        ("alone.py", {"alone"}),
    ],
)
def test_an_edit_changes_exactly_the_fingerprints_of_what_uses_it(
    library: Path, edited: str, changed: set[str]
) -> None:
    modules = ["errors", "model", "figures", "report", "typed", "alone"]
    before = {name: provenance.fingerprint([name], library) for name in modules}
    path = library / edited
    path.write_text(path.read_text() + "\n# edited\n")
    after = {name: provenance.fingerprint([name], library) for name in modules}
    assert {name for name in modules if before[name] != after[name]} == changed


@pytest.mark.parametrize(
    ("edited", "changes"),
    [
        ("figures.py", True),
        ("model.py", True),
        ("errors.py", False),
        ("alone.py", False),
        ("report/page.html", False),
    ],
)
def test_a_script_has_the_fingerprint_of_what_it_imports(library: Path, edited: str, changes: bool) -> None:
    script = library / "draw.py"
    script.write_text("from benchmirt import errors\nif True:\n    from benchmirt import figures\n")
    before = provenance.script_fingerprint(script, home=library)
    with_more = provenance.script_fingerprint(script, ["alone"], library)
    assert before != with_more
    path = library / edited
    path.write_text(path.read_text() + "\n# edited\n")
    assert (provenance.script_fingerprint(script, home=library) != before) == changes
    with pytest.raises(ValueError, match="aloen"):
        provenance.script_fingerprint(script, ["aloen"], library)


def test_fingerprints_do_not_depend_on_order_spelling_or_line_ends(library: Path) -> None:
    first = provenance.fingerprint(["figures", "errors"], library)
    assert provenance.fingerprint(["benchmirt.errors", "benchmirt.figures"], library) == first
    (library / "figures.py").write_bytes(b"def draw():\r\n    import benchmirt.model\r\n")
    assert provenance.fingerprint(["figures", "errors"], library) == first


def test_the_real_library_has_fingerprints() -> None:
    assert provenance.closure(["ids"]) == ("benchmirt", "benchmirt.ids")
    assert len(provenance.fingerprint(["provenance"])) == 16
    assert len(provenance.library_fingerprint()) == 16


def test_record_is_plain_complete_and_repeatable() -> None:
    record = provenance.record(config_sha256="c", data_hash="d")
    assert set(record) == {"benchmirt", "commit", "config_sha256", "data_hash", "versions", "cpu"}
    assert record == provenance.record(config_sha256="c", data_hash="d")
    assert json.loads(json.dumps(record)) == record
    assert {"python", "numpy", "jax", "numpyro"} <= set(provenance.versions())
    assert provenance.cpu_type()
