"""tests/benchmarks/peers.py: its figures on planted values, and what it says of a tool that fails. No peer is needed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
NAN = """Traceback (most recent call last):
  File "multidim_2pl.py", line 225, in guide_hierarchical
ValueError: Expected parameter concentration (Tensor of shape (2,)) of distribution Gamma(concentration: torch.Size([2]), \
rate: torch.Size([2])) to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid values:
tensor([0.1838,    nan], grad_fn=<AddBackward0>)
      Trace Shapes:
       Param Sites:
"""
TURNED_NAN = "ValueError: the concentration of a Gamma distribution turned NaN"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("peers")


@pytest.fixture
def truth() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"theta": rng.normal(size=(40, 2)), "a": rng.normal((1.0, 0.3), 0.7, (60, 2))}


def test_recovery_does_not_depend_on_the_frame_of_a_tool(
    peers: ModuleType, truth: dict[str, np.ndarray]
) -> None:
    """The same logits in a shifted, stretched, skewed and reflected frame are the same solution."""
    frame = np.array([[-2.0, 0.3], [0.5, 0.4]])
    found = peers.recovery(truth["theta"] @ frame + [5.0, -1.0], truth["a"] @ np.linalg.inv(frame).T, truth)
    assert found == pytest.approx(
        dict.fromkeys(["congruence_1", "congruence_2", "ability_r_1", "ability_r_2"], 1.0)
    )


def test_recovery_is_the_cosine_of_the_discriminations_and_the_correlation_of_the_abilities(
    peers: ModuleType,
) -> None:
    """One dimension, by hand: cosine of (1, 0) and (1, 1); correlation of (1, -1, 1, -1) and (3, 1, 3, 9)."""
    truth = {"theta": np.array([[1.0], [-1.0], [1.0], [-1.0]]), "a": np.array([[1.0], [0.0]])}
    found = peers.recovery(np.array([[3.0], [1.0], [3.0], [9.0]]), np.array([[1.0], [1.0]]), truth)
    assert found["congruence_1"] == pytest.approx(np.sqrt(0.5))
    assert found["ability_r_1"] == pytest.approx(-2 / np.sqrt(4 * 9))


def test_recovery_of_one_of_two_dimensions(peers: ModuleType, truth: dict[str, np.ndarray]) -> None:
    """Noise in place of the second dimension shows as such, and leaves the first one alone."""
    rng = np.random.default_rng(4)
    theta, a = (
        np.column_stack([truth[name][:, 0], rng.normal(size=len(truth[name]))]) for name in ("theta", "a")
    )
    found = peers.recovery(theta, a, truth)
    assert found["congruence_1"] > 0.95 > 0.6 > abs(found["congruence_2"])
    assert found["ability_r_1"] > 0.9 > 0.6 > abs(found["ability_r_2"])


def test_only_held_out_cells_are_scored(peers: ModuleType) -> None:
    data = {
        "y": np.array([[1, 0, 1], [0, 1, 1]]),
        "hidden": np.array([[True, True, False], [True, False, True]]),
    }
    probability = np.array([[0.9, 0.2, 0.1], [0.6, 0.1, 0.4]])  # hidden: right, right, wrong, wrong
    assert peers.accuracy(probability, data) == 0.5
    assert peers.loss(probability, data) == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.4]).mean())
    # seen answers: item 1 none, item 2 one right of one, item 3 one right of one
    np.testing.assert_allclose(peers.item_means(data), [[1 / 2, 2 / 3, 2 / 3]] * 2)


@pytest.mark.parametrize(
    ("code", "stderr", "reason"),
    [
        (1, NAN, TURNED_NAN),
        (1, "Traceback:\nModuleNotFoundError: No module named 'py_irt'\n", "ModuleNotFoundError: No module named 'py_irt'"),
        (1, "ValueError: first\n\nDuring handling:\nnumpy.linalg.LinAlgError: then\n", "numpy.linalg.LinAlgError: then"),
        (-9, "", "killed by signal 9"),
        (3, "warning: slow\n", "exit code 3 without an error message"),
    ],
)  # fmt: skip
def test_a_failure_is_named(peers: ModuleType, code: int, stderr: str, reason: str) -> None:
    assert peers.reason_of(code, stderr) == reason


def fake(folder: Path, body: str) -> str:
    """Write an interpreter that takes the runner's arguments but does only what `body` says."""
    script = folder / "python"
    script.write_text(
        f"#!{sys.executable}\nimport json, sys\nimport numpy as np\n"
        f"_, runner, tool, file, dims, start, out = sys.argv\n{body}\n"
    )
    script.chmod(0o755)
    return str(script)


def only_row(peers: ModuleType, folder: Path, tool: str, python: str | None) -> dict[str, object]:
    """Compare one tool on a small data set; return its row of the CSV."""
    options = ["--models", "20", "--items", "30", "--tools", tool, "--tries", "4"]
    if python is not None:
        options += ["--peers-python", python]
    peers.compare(peers.parsed([*options, "--csv", str(folder / "peers.csv")]))
    table = peers.pd.read_csv(folder / "peers.csv")
    assert len(table) == 1
    row: dict[str, object] = table.iloc[0].dropna().to_dict()
    return row


FIGURES = {
    "version",
    "fit_seconds",
    "peak_mb",
    "accuracy",
    "log_loss",
    "congruence_1",
    "ability_r_2",
    "start",
}


def test_failed_starts_are_counted_and_the_next_seed_is_tried(peers: ModuleType, tmp_path: Path) -> None:
    """Starts 0 and 1 fail; start 2 returns probabilities of one half and discriminations of one."""
    python = fake(
        tmp_path,
        f"if int(start) < 2: sys.exit({NAN!r})\n"
        "models, items = np.load(file)['seen'].shape\n"
        "theta = np.random.default_rng(0).normal(size=(models, 2))\n"
        "np.savez(out + '/fit.npz', theta=theta, a=np.ones((items, 2)), probability=np.full((models, items), .5))\n"
        "told = dict(version='7', fit_seconds=2.5, cpu_seconds=2, again_seconds=None, peak_mb=10, converged=None)\n"
        "json.dump(told, open(out + '/fit.json', 'w'))",
    )
    row = only_row(peers, tmp_path, "py-irt", python)
    assert row.keys() >= FIGURES
    assert (row["seeds_tried"], row["seeds_failed"], row["start"]) == (3, 2, 2)
    assert row["reason"] == f"2 x {TURNED_NAN}"
    assert (row["data"], row["version"], row["fit_seconds"]) == ("simulated", 7, 2.5)
    assert row["log_loss"] == pytest.approx(np.log(2), abs=1e-4)
    assert row["oracle_log_loss"] < row["item_mean_log_loss"]


def test_a_tool_that_always_fails_has_a_row_with_the_reason(peers: ModuleType, tmp_path: Path) -> None:
    row = only_row(peers, tmp_path, "py-irt", fake(tmp_path, f"sys.exit({NAN!r})"))
    assert not row.keys() & FIGURES
    assert (row["seeds_tried"], row["seeds_failed"], row["reason"]) == (4, 4, f"4 x {TURNED_NAN}")


@pytest.mark.parametrize("tool", ["py-irt", "mirt"])
def test_a_tool_that_is_missing_has_a_row_with_the_reason(
    peers: ModuleType, tmp_path: Path, tool: str
) -> None:
    row = only_row(peers, tmp_path, tool, fake(tmp_path, "import no_such_peer"))
    assert not row.keys() & FIGURES
    assert row["seeds_tried"] == 1  # another seed would not help
    assert row["reason"] == "1 x ModuleNotFoundError: No module named 'no_such_peer'"


def test_an_interpreter_that_is_missing_is_named(peers: ModuleType, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    row = only_row(peers, tmp_path, "mirt", missing)
    assert row["reason"] == f"1 x {missing} can't be started: No such file or directory"
    assert only_row(peers, tmp_path, "mirt", None)["reason"] == "not run: --peers-python is missing"
