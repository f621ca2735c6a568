"""Training that is killed at any moment ends, once continued, as if it had not been."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tacit.control.expert import ACTOR_FILE
from tacit.runs.files import read_arrays
from tacit.runs.metrics_file import read_metrics

ITERATIONS = 24
SCRIPT = """
import sys
import time

import tacit
from tacit.control import trainer
from tacit.control.settings import PPO

trainer.CHECKPOINT_EVERY = 2
settings = PPO(
    steps=4 * 8 * int(sys.argv[2]), worlds=4, rollout=8, minibatch=16, epochs=2, hidden=(8,)
)
tacit.train_expert(
    tacit.make("BlockedSwimmer", horizon=20),
    settings=settings,
    seed=4,
    folder=sys.argv[1],
    progress=lambda facts: time.sleep(0.02),
    notice=lambda sentence: print("NOTICE", sentence),
)
print("DONE")
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")


@pytest.fixture
def begin(tmp_path):
    """Starts the script on a folder; what the first process has compiled, the others find."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    started = []

    def start(folder):
        started.append(
            subprocess.Popen(
                [sys.executable, str(script), str(folder), str(ITERATIONS)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process):
    """Wait for the end; what was printed."""
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return output.splitlines()


def lines(folder):
    """How many lines of metrics there are; the last may be in the middle of being written."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def without_seconds(folder):
    metrics = read_metrics(folder / "metrics.jsonl")
    return [{name: line[name] for name in line if name != "seconds"} for line in metrics]


@pytest.mark.slow
def test_a_run_killed_three_times_ends_bit_for_bit_as_an_undisturbed_one(begin, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert finish(begin(whole)) == ["DONE"]

    for reached, delay in zip(
        (1, 9, 15), np.random.default_rng(0).uniform(0, 0.05, 3), strict=True
    ):
        process = begin(killed)
        while lines(killed) < reached and process.poll() is None:
            time.sleep(0.002)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert reached <= lines(killed) < ITERATIONS
        assert not (killed / ACTOR_FILE).exists()

    notice, done = finish(begin(killed))
    assert "the run in this folder goes on after" in notice
    assert done == "DONE"
    assert len(without_seconds(whole)) == ITERATIONS
    assert without_seconds(whole) == without_seconds(killed)
    for name in ("checkpoint.safetensors", ACTOR_FILE):
        (first, facts), (second, others) = (read_arrays(path / name) for path in (whole, killed))
        assert set(first) == set(second)
        for key in set(first) - {"['seconds']"}:
            assert first[key].dtype == second[key].dtype
            assert first[key].tobytes() == second[key].tobytes(), key
        if name == ACTOR_FILE:
            assert facts | {"minutes": 0} == others | {"minutes": 0}
