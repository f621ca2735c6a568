"""A run that is killed at any moment continues from a complete checkpoint."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from tacit.errors import StorageError
from tacit.runs.run_folder import RunFolder

SETTINGS = {"seed": 1}
LIKE = {"weights": np.zeros(20_000), "steps": 0}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a fork server")


def state(steps):
    """Different in every number after every step, so that a mixture of two would be seen."""
    return {"weights": np.random.default_rng(steps).normal(size=20_000), "steps": steps}


def work(path, started):
    """Record and save without end, from where the folder says."""
    started.set()
    with RunFolder.open(path, SETTINGS) as folder:
        saved = folder.latest(LIKE)
        steps = saved.facts["steps"] if saved else 0
        while True:
            steps += 1
            folder.record({"steps": steps, "loss": 1 / steps})
            folder.record({"steps": steps, "reward": float(steps)})
            folder.save(state(steps), steps=steps)


def wait(path, started):
    """Hold the folder and do nothing."""
    with RunFolder.open(path, SETTINGS):
        started.set()
        time.sleep(60)


def start(target, path):
    """The process, once it has come so far as to say that it has started."""
    # A server that has imported everything once: fifteen imports would take longer than the test.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tacit.runs.run_folder", "tensorboard.summary"])
    started = context.Event()
    process = context.Process(target=target, args=(path, started))
    process.start()
    assert started.wait(60)
    return process


def kill(process):
    process.kill()
    process.join()
    assert process.exitcode == -9


def checkpoint(path):
    """Something that changes when a checkpoint is written."""
    try:
        found = (path / "checkpoint.safetensors").stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def lines(steps):
    return [
        line
        for n in range(1, steps + 1)
        for line in ({"steps": n, "loss": 1 / n}, {"steps": n, "reward": float(n)})
    ]


def test_a_run_killed_at_random_moments_continues_from_a_complete_checkpoint(tmp_path):
    reached = [0]
    for number, delay in enumerate(np.random.default_rng(0).uniform(0, 0.15, size=15)):
        before = checkpoint(tmp_path)
        process = start(work, tmp_path)
        # Two of three are killed while they save, the others while they take up the run.
        while number % 3 and checkpoint(tmp_path) == before and process.is_alive():
            time.sleep(0.002)
        time.sleep(delay)
        kill(process)
        with RunFolder.open(tmp_path, SETTINGS) as folder:
            saved = folder.latest(LIKE)
            steps = saved.facts["steps"] if saved else 0
            assert steps >= reached[-1]
            if saved:
                assert saved.tree["steps"] == steps
                assert saved.tree["weights"].tobytes() == state(steps)["weights"].tobytes()
            assert folder.metrics() == lines(steps)
            assert folder.notices == []
        assert not list(tmp_path.glob(".*.part"))
        reached.append(steps)
    assert len(set(reached)) > 10


def test_the_lock_of_another_process_holds_until_it_is_killed(tmp_path):
    process = start(wait, tmp_path)
    with pytest.raises(StorageError, match=rf"in use by another run \(process {process.pid} on"):
        RunFolder.open(tmp_path, SETTINGS)
    kill(process)
    RunFolder.open(tmp_path, SETTINGS).close()
