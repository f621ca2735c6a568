"""Shared by all tests."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling is most of the time: in a hurry, then, here and in every process that tests start.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    # The workers inherit it: what one of them has compiled, the others and their children need not.
    compiled = tempfile.mkdtemp(prefix="tacit-compiled-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"

if "TACIT_CACHE" not in os.environ:
    # Recordings that are made up once are made up once for all workers, and not in the user's home.
    kept = tempfile.mkdtemp(prefix="tacit-cache-")
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    os.environ["TACIT_CACHE"] = kept


MOST_MAPS = 30_000
"""Half of what Linux lets a process map. Every compiled program maps some memory, and where no more
can be mapped XLA crashes."""


@pytest.fixture(scope="module", autouse=True)
def room_for_programs():
    """After a module, forget what has been compiled if it is too much."""
    yield
    maps = Path("/proc/self/maps")
    if "jax" in sys.modules and maps.exists():
        with maps.open() as lines:
            number = sum(1 for _ in lines)
        if number > MOST_MAPS:
            sys.modules["jax"].clear_caches()


@pytest.fixture(scope="session")
def point():
    """A short task on a plane, and six demonstrations that keep its rule."""
    import numpy as np

    import tacit

    task = tacit.make("BlockedPoint", horizon=20)
    expert = tacit.Expert(task, lambda seen: np.stack([-0.8 - seen[:, 0], 0.5 - seen[:, 1]], 1))
    return task, tacit.collect(expert, 6, seed=1)


@pytest.fixture(scope="module")
def hasty_imitation():
    """For modules that do not look at how well experts are imitated."""
    from tacit.control import learner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "GRADIENT_STEPS", 100)
        patch.setattr(learner, "MINIBATCH", 64)
        yield


@pytest.fixture(scope="session")
def recorded_traffic(tmp_path_factory):
    """A folder with two short recordings of made-up traffic, on two and on three lanes."""
    from tacit.highway.highd_writer import write_highd
    from tacit.highway.synthetic_traffic import Traffic

    folder = tmp_path_factory.mktemp("recorded")
    write_highd(folder, 1, Traffic(seed=3, duration=24.0, lanes=2))
    write_highd(folder, 2, Traffic(seed=4, duration=24.0, lanes=3, flow=1000.0))
    return folder
