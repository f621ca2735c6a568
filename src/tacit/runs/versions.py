"""Which versions a result was made with."""

import importlib.metadata
import platform


def installed() -> dict[str, str]:
    """Versions of Python, tacit and the libraries that its numbers depend on."""
    packages = ("tacit", "jax", "numpy", "scipy", "mujoco", "gymnasium", "equinox", "optax")
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }
