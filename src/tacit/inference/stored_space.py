"""Action spaces as JSON, for files that need neither the data nor the task."""

from typing import Any

import gymnasium
import numpy as np


def described_space(space: gymnasium.Space) -> dict[str, Any]:
    """A space as JSON."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n)}
    assert isinstance(space, gymnasium.spaces.Box)
    # As text: JSON has no infinity.
    low, high = ([repr(float(bound)) for bound in side.ravel()] for side in (space.low, space.high))
    return {"kind": "box", "low": low, "high": high}


def space_of(description: dict[str, Any]) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete:
    """The space that `described_space` described."""
    if description["kind"] == "discrete":
        return gymnasium.spaces.Discrete(description["n"])
    low, high = (
        np.array([float(bound) for bound in description[side]], np.float32)
        for side in ("low", "high")
    )
    return gymnasium.spaces.Box(low, high, dtype=np.float32)
