"""Costs and rewards that are learned, in place of the task's: functions of a whole rollout."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.control.learner import Rollout
from tacit.errors import ArgumentError

# Of a whole rollout at once: costs [T, n, k], rewards [T, n].
Judgement = Callable[[Rollout], np.ndarray]


def no_costs(rollout: Rollout) -> np.ndarray:
    """[T, n, 0]: no constraint, hence no price that would shrink the reward's share either."""
    return np.zeros((*rollout.rewards.shape, 0), np.float32)


def checked(name: str, judgement: np.ndarray, wanted: tuple[int, ...]) -> Any:
    """Learned costs or rewards in float32, if they have the shape they must have."""
    values = np.asarray(judgement, dtype=np.float32)
    if values.shape != wanted:
        raise ArgumentError(
            f"the {name} function gave an array of the shape {list(values.shape)}; for "
            f"{wanted[0]} steps of {wanted[1]} worlds it must be {list(wanted)}"
        )
    return values
