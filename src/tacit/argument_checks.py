"""Checks of plain arguments, each with an error that says what would do."""

import numpy as np

from tacit.errors import ArgumentError, TacitError


def check_choice(
    name: str,
    value: object,
    choices: tuple[str, ...],
    error: type[TacitError] = ArgumentError,
) -> None:
    """Raise an error with the choices there are, unless `value` is one of them."""
    if value not in choices:
        known = " or ".join(repr(choice) for choice in choices)
        raise error(f"{name} must be {known}, not {value!r}")


def check_count(name: str, value: object) -> int:
    """`value` as a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ArgumentError(f"{name} must be a whole number of at least 1, not {value!r}")
    return int(value)


def check_seed(seed: object) -> int:
    """A seed: a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0, not {seed!r}")
    return int(seed)


def check_confidence(confidence: object) -> None:
    """Raise an error unless `confidence` is a number strictly between 0 and 1."""
    if not isinstance(confidence, int | float | np.number) or not 0 < confidence < 1:
        raise ArgumentError(
            f"confidence must lie strictly between 0 and 1 (0.8 means 80 %), not {confidence!r}"
        )
