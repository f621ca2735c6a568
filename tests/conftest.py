"""Shared by all tests."""

import atexit
import os
import shutil
import tempfile

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")

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


@pytest.fixture(scope="module")
def hasty_compiler():
    """For modules in which compiling takes most of the time: compile in a hurry."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
