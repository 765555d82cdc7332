"""Answers graded again: a planted scorer that hangs and dies, and Math-Verify where it is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files_fixture import Files, holds, outcomes, reasons

from benchmirt import config, matrix, rescoring, scoring, sources
from benchmirt.errors import InputError

SCORER = """
import json, os, sys, time
print(json.dumps({"scorer": "planted " + open(sys.argv[1]).read()}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["answer"] == "hang":
        while True:
            time.sleep(0.01)
    if asked["answer"] == "die":
        os._exit(3)
    verdict = "unparsed" if asked["answer"] == "?" else "right" if asked["answer"] == asked["gold"] else "wrong"
    print(json.dumps({"verdict": verdict}), flush=True)
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Give the command of a scorer that compares texts; its version stands in a file."""
    (tmp_path / "scorer.py").write_text(SCORER)
    (tmp_path / "version").write_text("1")
    return [sys.executable, str(tmp_path / "scorer.py"), str(tmp_path / "version")]


@pytest.fixture
def planted(command: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let rules that ask for Math-Verify be graded by the planted scorer."""
    rescoring.verifier.cache_clear()
    monkeypatch.setitem(rescoring.WORKERS, "math-verify", command)
    yield
    rescoring.verifier.cache_clear()


def test_torchtitan_4442_and_open_r1_420_a_hang_is_a_timeout_and_the_next_answer_is_graded(
    command: list[str],
) -> None:
    grade = rescoring.Verifier(command, 0.5)
    answers = ["1", "hang", "1", "2", "die", "1", "hang", "?"]
    expected = ["right", "timeout", "right", "wrong", "crashed", "right", "timeout", "unparsed"]
    assert [grade("1", answer) for answer in answers] == expected
    assert grade.scorer == "planted 1"
    grade.close()
    assert grade("1", "1") == "right", "known already"
    assert grade("2", "2") == "right", "started again"
    grade.close()


def test_a_scorer_that_changes_while_it_is_used_is_refused(command: list[str], tmp_path: Path) -> None:
    grade = rescoring.Verifier(command, 0.5)
    assert grade("1", "die") == "crashed"
    (tmp_path / "version").write_text("2")
    with pytest.raises(InputError, match=r"the scorer changed.*planted 2.*planted 1"):
        grade("1", "1")
    grade.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('print(\'{"missing": "No module named x"}\')', "not installed: found No module named x. Install it"),
        ("raise SystemExit(1)", "does not start"),
    ],
)
def test_a_scorer_that_is_not_there(code: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rescoring.Verifier([sys.executable, "-c", code], 1)


def test_what_changed_is_counted() -> None:
    logged = np.array([1, 1, 0, 0, -1, 1, 0, 1, 1], dtype=np.int8)
    verdicts = ["right", "wrong", "right", "wrong", "right", "timeout", "unparsed", "crashed", None]
    assert rescoring.count(logged, verdicts) == {
        "answers": 8,
        "same": 2,
        "to_one": 2,
        "to_zero": 1,
        "unparsed": 1,
        "timeout": 1,
        "crashed": 1,
    }


RULE: dict[str, Any] = {
    "benchmark": "math",
    "tasks": "math",
    "question_id": "math_{doc_id}",
    "one": {"field": "exact_match", "is": True},
    "rescore": {"by": "math-verify", "gold": "doc.answer", "answer": "resps", "seconds": 0.5},
    "failure": {"published": 0},
    "response": "resps",
}


def row(doc_id: int, answer: str, logged: Any) -> dict[str, Any]:
    doc = {"doc_id": doc_id, "doc": {"problem": f"simulated {doc_id}", "answer": "7"}, "target": "7"}
    more = {"filtered_resps": [answer], "metrics": ["exact_match"], "exact_match": logged}
    return {**doc, **more, "resps": [[answer]]}


ROWS = [
    *(row(0, "7", 1), row(1, "7", 0), row(2, "8", 1), row(3, "hang", 1), row(4, "?", 0)),
    *(row(5, "", 0), row(6, "<think>hang</think>7", None), row(7, "die", 1)),
]


@pytest.mark.usefixtures("planted")
def test_rows_are_graded_again(files: Files) -> None:
    files.declare(lm_eval=RULE)
    files.put("m/samples_math.jsonl", ROWS)
    cells = files.cells()
    assert outcomes(cells) == [1, 1, 0, None, None, None, 1, None]
    assert reasons(cells) == [None, None, None, "timeout", "unparsed", "empty", None, "judge_failed"]
    assert [cell[2] for cell in cells.values()] == [1, 1, 0, 0, 0, 0, 1, 0], (
        "the published study counted failures as 0"
    )
    assert files.table()["score"].fillna(-1).tolist() == [1, 0, 1, 1, 0, 0, -1, 1], "what was logged"
    (again,) = files.manifests()[0]["rescored"]
    assert (again["benchmark"], again["scorer"]) == ("math", "planted 1")
    assert again["counts"] == {
        "answers": 7,
        "same": 1,
        "to_one": 2,
        "to_zero": 1,
        "unparsed": 1,
        "timeout": 1,
        "crashed": 1,
    }
    assert set(files.items()["scorer"]) == {"planted 1"}


def collected(home: Path, name: str, rules: str, model: str) -> tuple[config.Study, list[Path]]:
    """Collect a source of one model, in a folder of its own, by some rules."""
    path = home / name / model / "samples_math.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in ROWS[:3]))
    source = {"name": name, "kind": "lm-eval", "folder": name, "scoring": [rules]}
    raw = {"study": "s", "sources": [source], "claims": {"file": []}, "fits": {"dims": 1, "max_dims": 1}}
    study = config.load({**raw, "filter": {"min_observed": 1}}, home)
    made = sources.collect(study.sources[0], study, home / "o" / name, "0of1")
    return study, [made[0].parent]


@pytest.mark.usefixtures("planted")
def test_math_verify_leaderboard_scorers_are_never_mixed_within_an_item(files: Files) -> None:
    """All models of the leaderboard were graded again, and old and new scores live on side by side."""
    files.declare(lm_eval=RULE)
    (files.home / "again.yaml").write_text((files.home / "own.yaml").read_text())
    files.declare(lm_eval={**RULE, "rescore": None})
    study, first = collected(files.home, "one", "again.yaml", "a")
    _, second = collected(files.home, "two", "own.yaml", "b")
    with pytest.raises(InputError) as caught:
        matrix.build([*first, *second], study, "honest", files.home / "m")
    holds(
        str(caught.value),
        ["was graded in two ways", "found as logged (exact_match)", "expected planted 1, as in one"],
    )
    assert not (files.home / "m").exists()


@pytest.mark.usefixtures("planted")
def test_math_verify_17_and_37_versions_are_never_mixed_within_an_item(files: Files) -> None:
    """A bug of one version is none of the next: two jobs of one source must have had the same."""
    files.declare(lm_eval=RULE)
    study, first = collected(files.home, "one", "own.yaml", "a")
    (files.home / "version").write_text("2")
    rescoring.verifier.cache_clear()
    _, second = collected(files.home, "two", "own.yaml", "b")
    with pytest.raises(InputError, match=r"graded in two ways.*found planted 2; expected planted 1"):
        matrix.build([*first, *second], study, "honest", files.home / "m")


def test_the_rule_that_grades_math_again_differs_from_the_ordinary_one_in_that_alone(
    repository: Path,
) -> None:
    home = repository / "workflow" / "resources"
    plain, again = (
        scoring.load([(home / f"{name}.yaml", name)], "leaderboard") for name in ("scoring", "rescoring")
    )
    (ordinary,) = [rule for rule in plain.rules if rule.benchmark == "math"]
    (own,) = again.rules
    assert ordinary.rescore is None
    assert own.rescore == {"by": "math-verify", "gold": "doc.answer", "answer": "resps", "seconds": 10}
    for name in (
        "benchmark",
        "category",
        "one",
        "failure",
        "response",
        "content",
        "key",
        "scored_as",
        "hashed_from",
    ):
        assert getattr(own, name) == getattr(ordinary, name), name
    assert own.question_id.fields == ordinary.question_id.fields


# -- the real scorer ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[rescoring.Verifier]:
    pytest.importorskip("math_verify")
    made = rescoring.Verifier(rescoring.WORKERS["math-verify"], 6)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("\\frac{1}{2}", "The final answer is $0.5$. I hope it is correct.", "right"),
        ("\\frac{1}{2}", "\\boxed{\\frac{2}{4}}", "right"),
        ("16", "first $15$, but in the end \\boxed{16}", "right"),
        ("5", "\\boxed{6}", "wrong"),
        ("5", "I do not know", "unparsed"),
        ("", "$3$", "unparsed"),
        ("13", "the answer is $\\text{13}$", "right"),  # Math-Verify 37: wrong before 0.8
        (
            "(0,12.5)",
            "$0<x<12.5$",
            "wrong",
        ),  # Math-Verify 10 and 25, sieval 18: verify(a, b) is not verify(b, a),
        ("0<x<12.5", "$(0,12.5)$", "right"),  # and here the right answer always comes first
        ("2x-y=0", "$x+y=0$", "wrong"),  # Math-Verify 60: different equations
        ("x-y=0", "$x-y=0$", "right"),
    ],
)
def test_math_verify_10_25_37_and_60_open_r1_557_sieval_18(
    real: rescoring.Verifier, gold: str, answer: str, verdict: str
) -> None:
    assert real(gold, answer) == verdict
    assert real.scorer.startswith("math-verify 0.")
    assert "sympy " in real.scorer


def test_math_verify_60_trivial_readings_are_rejected() -> None:
    pytest.importorskip("math_verify")
    sympy = pytest.importorskip("sympy")
    from benchmirt.math_worker import trivial

    assert trivial([sympy.Integer(0), "2x+3=y"])
    assert trivial([sympy.true, "x=x"])
    assert not trivial([sympy.Integer(0), "0"])
    assert not trivial([sympy.Eq(sympy.Symbol("x"), 0), "x=0"])


def test_a_tower_of_powers_ends_in_time_and_the_next_answer_is_graded(real: rescoring.Verifier) -> None:
    tower = "$2003^{(2002^{2001})}$"
    assert real("3", tower) in ("timeout", "crashed")
    assert real("3", "$3$") == "right"
