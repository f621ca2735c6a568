"""What any worlds check about actions, pictures and what their simulator returned."""

import gymnasium
import numpy as np
from jaxtyping import Shaped

from tacit.errors import ArgumentError, TaskError

RENDER_MODES = ("rgb_array",)


def check_render_mode(render_mode: str | None) -> None:
    """Raise an error unless there is such a render mode."""
    if render_mode not in (None, *RENDER_MODES):
        raise ArgumentError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")


def check_actions(
    actions: object, number: int, space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
) -> Shaped[np.ndarray, "n ..."]:
    """A copy of `actions` for `number` worlds, clipped to the box; or an error naming the world."""
    array = np.asarray(actions)
    if isinstance(space, gymnasium.spaces.Discrete):
        if array.shape != (number,) or array.dtype.kind not in "iu":
            raise ArgumentError(
                f"actions must be whole numbers of the shape [{number}], "
                f"not {array.dtype} of the shape {list(array.shape)}"
            )
        wrong = np.flatnonzero((array < 0) | (array >= space.n))
        if len(wrong):
            raise ArgumentError(
                f"the action of world {wrong[0]} is {array[wrong[0]]}; "
                f"it must lie between 0 and {space.n - 1}"
            )
        return array.astype(np.int64)
    wanted = (number, *space.shape)
    if array.shape != wanted or array.dtype.kind not in "fiu":
        raise ArgumentError(
            f"actions must be numbers of the shape {list(wanted)}, "
            f"not {array.dtype} of the shape {list(array.shape)}"
        )
    with np.errstate(over="ignore"):  # what becomes infinite is reported below
        values = array.astype(space.dtype)
    if not np.isfinite(values).all():
        world = first_not_finite(values)
        raise ArgumentError(f"the action of world {world} is not finite: {array[world]}")
    return np.clip(values, space.low, space.high)


def check_finite(name: str, **returned: np.ndarray) -> None:
    """Raise an error naming the first world whose observation, reward or cost is NaN or infinite.

    Learning on such a number would go on silently and learn nothing.
    """
    for what, values in returned.items():
        if not np.isfinite(values).all():
            world = first_not_finite(values)
            raise TaskError(
                f"world {world} of {name} returned the {what} {values[world]}; every number that a "
                f"task returns must be finite"
            )


def first_not_finite(values: Shaped[np.ndarray, "n ..."]) -> int:
    """The first world with a NaN or an infinity in its row."""
    return int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
