"""The lab computes in double precision, whatever JAX's global setting is."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

double_precision = jax.enable_x64


def in_double_precision(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run `function` with 64-bit floats switched on, and switch back afterwards.

    For functions on the outside of the library: NumPy in, NumPy out.
    """

    @functools.wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with double_precision(True):
            return function(*args, **kwargs)

    return wrapped
