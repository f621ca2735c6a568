"""Which versions a result was made with."""

import importlib.metadata
import platform

PACKAGES = ("tacit", "jax", "numpy", "scipy", "gymnasium", "equinox", "optax")


def installed() -> dict[str, str]:
    """Versions of Python, tacit and the libraries that its numbers depend on."""
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in PACKAGES},
        "mujoco": importlib.metadata.version("mujoco-core"),
    }
