"""Classes that are known by a name: methods, models and encoders, ours and users' own."""

from typing import Any

from tacit.errors import ArgumentError


def enter(known: dict[str, Any], kind: type, what: str) -> None:
    """Enter a class under its own `name`, if it has one; a class defined again replaces it.

    Arguments:
        known: the classes of this kind so far, by name.
        kind: the class, right after its definition.
        what: what to call it in an error, such as "method".
    """
    name = kind.__dict__.get("name")
    if not isinstance(name, str):
        return
    other = known.get(name)
    if other is not None and place_of(other) != place_of(kind):
        raise ArgumentError(
            f"{what} {name!r} exists already ({place_of(other)}); choose another name"
        )
    known[name] = kind


def place_of(kind: type) -> str:
    """Where a class is defined."""
    return f"{kind.__module__}.{kind.__qualname__}"
