"""Checks of plain arguments, each with an error that says what would do."""

import difflib
import numbers
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, cast, get_args, get_origin

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


def fits(value: object, kind: Any) -> bool:
    """Whether `value` may stand where the annotation `kind` is written, NumPy scalars included.

    An annotation that cannot be checked, such as a protocol or a list of something, takes anything.
    """
    if get_origin(kind) in (Union, types.UnionType):
        return any(fits(value, member) for member in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind in (int, float):
        number = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    if get_origin(kind) is tuple:
        # A settings file holds lists where Python code would write tuples.
        return isinstance(value, tuple | list) and all(
            fits(member, get_args(kind)[0]) for member in value
        )
    checkable = kind is not Any and isinstance(kind, type) and get_origin(kind) is None
    if not checkable or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, cast(type, kind))


def nearest(word: str, spellings: Mapping[str, str]) -> str:
    """`; did you mean ...?`, when something close to `word` exists."""
    close = difflib.get_close_matches(word, spellings, n=1)
    return f"; did you mean {spellings[close[0]]}?" if close else ""


def enter(known: dict[str, Any], kind: type, what: str) -> None:
    """Enter a class under its own `name`, if it has one; a class defined again replaces it.

    Arguments:
        known: the classes of this kind so far, by name.
        kind: the class, right after its definition.
        what: what to call it in an error, such as "method".
    """
    if "name" not in kind.__dict__:
        return
    name = kind.__dict__["name"]
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise ArgumentError(
            f"the name of {what} {kind.__name__} must be a word such as 'my-own', not {name!r}"
        )
    other = known.get(name)
    if other is not None and place_of(other) != place_of(kind):
        raise ArgumentError(
            f"{what} {name!r} exists already ({place_of(other)}); choose another name"
        )
    known[name] = kind


def place_of(kind: type) -> str:
    """Where a class is defined."""
    return f"{kind.__module__}.{kind.__qualname__}"
