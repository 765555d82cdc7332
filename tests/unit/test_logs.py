"""Logging: one sentence for a fault of the input, everything for any other, and the closing words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmirt import logs


def run(body: str, log: Path) -> subprocess.CompletedProcess[str]:
    """Run a body as a script's would run, in a fresh process."""
    code = f"from benchmirt import logs\nlogs.set_up({str(log)!r}, 'fit corrected 3')\n{body}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


def test_a_fault_of_the_input_is_one_sentence(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "rule.log"
    done = run(
        "from benchmirt.errors import InputError\n"
        "raise InputError('', file='x.csv', where='row 17', found='2', expected='1, 0 or empty')",
        log,
    )
    assert done.returncode == 1
    sentence = "x.csv: row 17: found 2; expected 1, 0 or empty."
    assert done.stderr == f"[fit corrected 3] {sentence}\n"
    assert log.read_text().count("\n") == 1
    assert log.read_text().endswith(f"{sentence}\n")


def test_any_other_fault_leaves_its_traceback_in_both(tmp_path: Path) -> None:
    log = tmp_path / "rule.log"
    done = run("def inner():\n    return 1 / 0\ninner()", log)
    assert done.returncode == 1
    for text in (done.stderr, log.read_text()):
        assert "the job failed: division by zero" in text
        assert "ZeroDivisionError" in text
        assert ", in inner" in text


def test_messages_and_warnings_go_to_file_and_console(tmp_path: Path) -> None:
    log = tmp_path / "rule.log"
    log.write_text("of an earlier run")
    done = run(
        "import logging, warnings\n"
        "logging.getLogger('benchmirt.x').info('said')\n"
        "logging.getLogger('benchmirt.x').debug('aside')\n"
        "logging.getLogger('another').debug('unheard')\n"
        "warnings.warn('beware')",
        log,
    )
    assert done.returncode == 0
    for text in (done.stderr, log.read_text()):
        assert "said" in text
        assert "unheard" not in text
        assert "beware" in text
    assert "aside" in log.read_text()
    assert "aside" not in done.stderr
    assert "earlier run" not in log.read_text()
    assert done.stderr.startswith("[fit corrected 3] said\n")


def test_closing_counts_the_verdicts(tmp_path: Path) -> None:
    assert logs.closing(tmp_path) == ""
    (tmp_path / "report").mkdir()
    (tmp_path / "claims").mkdir()
    (tmp_path / "report" / "index.html").write_text("<html>")
    (tmp_path / "claims" / "claims.csv").write_text(
        "claim,corrected_verdict\nC1,reproduced\nC2,cannot test\nC3,reproduced\n"
    )
    assert logs.closing(tmp_path) == (
        f"Report: {tmp_path}/report/index.html\nVerdicts: 2 reproduced, 1 cannot test"
    )
    (tmp_path / "claims" / "claims.csv").write_text("claim,corrected_verdict\n")
    assert logs.closing(tmp_path).endswith("Verdicts: none")


def test_closing_names_what_was_asked_for(tmp_path: Path) -> None:
    assert (
        logs.closing(tmp_path, ["score"]) == f"Scores of the new models: {tmp_path / 'scores' / 'scores.csv'}"
    )
    assert (
        logs.closing(tmp_path, ["shortform"])
        == f"List of questions: {tmp_path / 'shortform' / 'shortform.csv'}"
    )
    assert logs.closing(tmp_path, ["extend"]).endswith(str(tmp_path / "extended" / "calibration.json"))
    assert logs.closing(tmp_path, ["adaptive"]).endswith(str(tmp_path / "adaptive" / "curve.csv"))
    assert logs.closing(tmp_path, ["all"]) == ""


def test_failures_name_the_log_and_what_it_says(tmp_path: Path) -> None:
    first, second = tmp_path / "a folder" / "a.log", tmp_path / "b.log"
    first.parent.mkdir()
    first.write_text(
        "2026-01-01 00:00:00,000 DEBUG benchmirt.logs: started\n"
        "2026-01-01 00:00:01,000 ERROR benchmirt.logs: x.csv: row 17: found 2.\n"
        "2026-01-01 00:00:02,000 DEBUG benchmirt.logs: ended\n"
    )
    run_log = tmp_path / "snakemake.log"
    run_log.write_text(
        "Error in rule collect:\n"
        "    message: None\n"
        "    jobid: 3\n"
        f"    log: {first} (check log file(s) for error details)\n"
        "\n"
        "Error in rule fit:\n"
        "    jobid: 4\n"
        f"    log: {second} (check log file(s) for error details)\n"
    )
    assert logs.failures([run_log, tmp_path / "none.log"]) == (
        f"Failed: collect; its log is {first}\n  x.csv: row 17: found 2.\nFailed: fit; its log is {second}"
    )
    assert logs.failures([]) == ""
