"""Play whole episodes in many worlds at once with any policy."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from tacit.control.learner import within
from tacit.control.table_policy import TablePolicy
from tacit.environments.worlds import Worlds
from tacit.errors import ArgumentError, TaskError

MOST_STEPS = 100_000

Act = Callable[[np.ndarray], np.ndarray]


class Episodes(NamedTuple):
    """m episodes, padded with zeros to the longest, T steps; k costs."""

    observations: Float[np.ndarray, "m T+1 o"]
    actions: Shaped[np.ndarray, "m T a"]
    rewards: Float[np.ndarray, "m T"]
    costs: Float[np.ndarray, "m T k"]
    lengths: Int[np.ndarray, " m"]
    terminated: Bool[np.ndarray, " m"]

    @property
    def violated(self) -> Bool[np.ndarray, " m"]:
        """Whether any true cost of an episode is above 0."""
        return np.asarray((self.costs > 0).any(axis=(1, 2)))

    def chosen(self, places: np.ndarray) -> "Episodes":
        """The episodes at the given places."""
        return Episodes(*(field[places] for field in self))


def as_function(policy: Any) -> Act:
    """Turn a policy into a function from a batch of observations [n, o] to a batch of actions.

    A function is returned as it is. An object with `predict(observations, deterministic=...)`, such
    as an agent of Stable-Baselines3, is asked for actions without exploration.
    """
    if isinstance(policy, TablePolicy):
        raise ArgumentError(
            "the policy of a table has to know the step of the episode: roll it out on its "
            "TabularTask, or call its `predict` with the step"
        )
    if hasattr(policy, "predict"):
        return lambda observations: policy.predict(observations, deterministic=True)[0]
    if callable(policy):
        return cast(Act, policy)
    raise ArgumentError(
        "a policy must be a function from observations to actions or have a method `predict`, as "
        f"agents of Stable-Baselines3 do; {type(policy).__name__} is neither"
    )


def play(worlds: Worlds, act: Act, *, seed: int) -> Episodes:
    """Play one episode in every world, from `seed`.

    Taking the episodes that end first, whichever world they are in, would favour short ones.
    """
    observations = worlds.reset(seed)
    number = worlds.number
    rows = [observations]
    taken: list[np.ndarray] = []
    rewards: list[np.ndarray] = []
    costs: list[np.ndarray] = []
    lengths = np.zeros(number, np.int64)
    terminated = np.zeros(number, bool)
    while not lengths.all():
        if len(rewards) >= MOST_STEPS:
            raise TaskError(
                f"an episode did not end within {MOST_STEPS} steps: give the task a shorter horizon"
            )
        # Copies: a policy may write to what it is given, or hand out the same array again.
        actions = within(worlds.action_space, np.array(act(observations.copy())))
        step = worlds.step(actions)
        running = lengths == 0
        rows.append(step.arrived)
        taken.append(actions.reshape(number, -1))
        rewards.append(step.rewards)
        costs.append(step.costs)
        ended = running & (step.terminated | step.truncated)
        lengths[ended] = len(rewards)
        terminated |= ended & step.terminated
        observations = step.observations
    return Episodes(
        blanked(rows, lengths + 1),
        blanked(taken, lengths),
        blanked(rewards, lengths),
        blanked(costs, lengths),
        lengths,
        terminated,
    )


def blanked(rows: list[np.ndarray], lengths: Int[np.ndarray, " m"]) -> np.ndarray:
    """Rows [T][m, ...] stacked to [m, T, ...], with zeros after the end of each episode."""
    stacked = np.stack(rows, axis=1)
    beyond = np.arange(stacked.shape[1]) >= lengths[:, None]
    stacked[beyond] = 0
    return stacked
