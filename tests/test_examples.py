"""Every example runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


LONG = ("learn_on_a_robot", "your_own_encoder", "your_own_simulator")
LINES = {"your_own_method": 75}
"""A method written from nothing, with a constraint of its own that can be saved."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in EXAMPLES
    ],
)
def test_the_example_runs_and_says_something(path, tmp_path):
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2
    assert "nan" not in done.stdout


def test_examples_are_short():
    assert len(EXAMPLES) >= 8
    long = [
        path.stem
        for path in EXAMPLES
        if len(path.read_text(encoding="utf-8").splitlines()) >= LINES.get(path.stem, 60)
    ]
    assert long == []
