"""Many worlds of one task, stepped together: what every simulator of tacit can do."""

from typing import Any, NamedTuple, Protocol, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Shaped

from tacit.errors import ArgumentError, TaskError

RENDER_MODES = ("rgb_array",)


class Step(NamedTuple):
    """What one step of n worlds returned.

    Where an episode ended, the world has been reset already: `arrived` is the observation the step
    led to, `observations` the one from which the next step starts. Elsewhere both are the same.

    Fields:
        observations: [n, o] where the worlds stand now.
        arrived: [n, o] where the step led; the true cost looks at this one.
        rewards: [n].
        costs: [n, k] true cost for each of k constraints.
        terminated: [n] the episode came to an end of its own.
        truncated: [n] the episode was cut short by its time limit.
    """

    observations: Float[np.ndarray, "n o"]
    arrived: Float[np.ndarray, "n o"]
    rewards: Float[np.ndarray, " n"]
    costs: Float[np.ndarray, "n k"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]


class Worlds(Protocol):
    """n worlds of one task. World i draws all its randomness from `seed + i`.

    Fields:
        number: n.
        observation_space: of one world, flat.
        action_space: of one world.
        number_of_costs: k.
        resumable: whether `state` holds everything. Where it does not (an environment of the
            user's own, say), whoever needs to continue bit for bit resets the worlds instead.
    """

    number: int
    observation_space: gymnasium.spaces.Box
    action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    number_of_costs: int
    resumable: bool

    def reset(self, seed: int) -> Float[np.ndarray, "n o"]:
        """Seed every world anew and start an episode in each."""
        ...

    def stagger(self) -> Bool[np.ndarray, " n"]:
        """Let the first episodes after `reset` end one after the other, if that can be done.

        Returns which of them will be cut short. Worlds that start together would otherwise reach
        their time limit together for ever, and a batch of steps would show one part of the episode
        only.
        """
        ...

    def step(self, actions: np.ndarray) -> Step:
        """Take one action in every world; worlds whose episode ends start the next one."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to go on from here, as arrays; only where `resumable`."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> Float[np.ndarray, "n o"]:
        """Go back to a `state`; returns the observations there."""
        ...

    def close(self) -> None:
        """Free what the worlds hold; they cannot be stepped afterwards."""
        ...


Outcome: TypeAlias = tuple[
    Float[np.ndarray, "n o"],
    Float[np.ndarray, " n"],
    Bool[np.ndarray, " n"],
    Bool[np.ndarray, " n"],
    dict[str, Any],
]
"""What Gymnasium's `step` returns of n worlds."""


class WorldsEnvironment(VectorEnv[Float[np.ndarray, "n o"], np.ndarray, np.ndarray]):
    """`Worlds` for Gymnasium, with its autoreset mode SAME_STEP.

    Where an episode ends, the observation returned is the first of the next one, `final_obs` and
    `final_info` say how the last one ended, as in Gymnasium. Unlike there, `infos["cost"]` is the
    true cost of the step that was taken in every world, also where an episode ended, so that it
    belongs to `rewards`: [n], or [n, k] where the task has several costs.
    """

    def __init__(self, worlds: Worlds) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs = worlds.number
        self.single_observation_space = worlds.observation_space
        self.single_action_space = worlds.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def outcome(self, step: Step, **more: np.ndarray) -> Outcome:
        """A step of all worlds as Gymnasium wants it; `more` are further infos of all worlds."""
        infos: dict[str, Any] = {}
        for world in np.flatnonzero(step.terminated | step.truncated).tolist():
            final = {"final_obs": step.arrived[world], "final_info": self.last_info(step, world)}
            infos = self._add_info(infos, final, world)
        costs = step.costs[:, 0] if step.costs.shape[1] == 1 else step.costs
        infos |= self.for_all(cost=costs, **more)
        return step.observations, step.rewards, step.terminated, step.truncated, infos

    def for_all(self, **values: np.ndarray) -> dict[str, np.ndarray]:
        """Infos of all worlds, each with the mask that Gymnasium wants."""
        masks = {f"_{name}": np.ones(self.num_envs, bool) for name in values}
        return values | masks

    def last_info(self, step: Step, world: int) -> dict[str, Any]:
        """What `final_info` says of the episode that ended in `world`."""
        raise NotImplementedError


def check_render_mode(render_mode: str | None) -> None:
    """Raise an error unless there is such a render mode."""
    if render_mode not in (None, *RENDER_MODES):
        raise ArgumentError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")


def check_actions(
    actions: object, number: int, space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
) -> Shaped[np.ndarray, "n ..."]:
    """A copy of `actions` for `number` worlds, clipped to the box; or an error naming the world."""
    array, wanted = np.asarray(actions), (number, *(space.shape or ()))
    discrete = isinstance(space, gymnasium.spaces.Discrete)
    if array.shape != wanted or array.dtype.kind not in ("iu" if discrete else "fiu"):
        raise ArgumentError(
            f"actions must be {'whole ' if discrete else ''}numbers of the shape {list(wanted)}, "
            f"not {array.dtype} of the shape {list(array.shape)}"
        )
    if isinstance(space, gymnasium.spaces.Discrete):
        wrong = np.flatnonzero((array < 0) | (array >= space.n))
        if len(wrong):
            raise ArgumentError(
                f"the action of world {wrong[0]} is {array[wrong[0]]}; "
                f"it must lie between 0 and {space.n - 1}"
            )
        return array.astype(np.int64)
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
