from __future__ import annotations

import logging

import pytest

import benchmirt.progress as module


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_batch_log_gets_a_line_now_and_then(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = []
    for entry in module.progress(iter(range(100)), 100, "splits"):
        seen.append(entry)
        clock.now += 1.0
    assert seen == list(range(100))
    assert [record.getMessage() for record in caplog.records] == [
        "splits: 30 of 100 after 30 s",
        "splits: 60 of 100 after 60 s",
        "splits: 90 of 100 after 90 s",
        "splits: 100 of 100, done after 100 s",
    ]


def test_short_work_says_nothing(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert list(module.progress([1, 2], None, "x")) == [1, 2]
    assert not caplog.records


def test_unknown_totals_are_left_out(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in module.progress(iter(range(2)), None, "x"):
        clock.now += 31
    assert caplog.records[0].getMessage() == "x: 1 after 31 s"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(module.progress(range(3), None, "folds")) == [0, 1, 2]
    assert "folds" in capsys.readouterr().err
