"""Shared by all tests."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
