"""Every benchmark that needs no other library runs, says what it is about, and leaves no file."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
TABLE = ("machine: ", "ratio", "target")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (("worlds.py",), (*TABLE, "Environment step", "BlockedHalfCheetah", "Rollout")),
        (("training.py", "--no-peers"), (*TABLE, "shipped settings", "BlockedHalfCheetah")),
        pytest.param(
            ("highway.py",), (*TABLE, "2,048 cars", "Memory of recordings"), marks=pytest.mark.slow
        ),
        pytest.param(
            ("inference.py",), (*TABLE, "plain PPO-Lagrange", "icrl"), marks=pytest.mark.slow
        ),
        pytest.param(
            ("expert_sets.py",),
            (*TABLE, "Update of the constraint", "GiB", "alpha - 1", "phi*"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("memory.py",), ("machine: ", "Peak memory", "target"), marks=pytest.mark.slow
        ),
        pytest.param(
            ("beta_quantile.py",), ("SciPy's time", "paper: value"), marks=pytest.mark.slow
        ),
    ],
    ids=lambda given: given[0],
)
def test_a_quick_benchmark_prints_its_ratios(script, expected, tmp_path):
    name, *options = script
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / name), "--quick", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for part in ("quick: ", *expected):
        assert part in done.stdout
    assert list(tmp_path.iterdir()) == []
