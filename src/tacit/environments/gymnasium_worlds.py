"""n environments of the user's own, stepped one after the other as `Worlds`."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
from jaxtyping import Bool, Float

from tacit.argument_checks import check_seed
from tacit.environments.gymnasium_source import Environment
from tacit.environments.gymnasium_wrappers import cost_vector
from tacit.environments.worlds import Step, check_actions, check_finite
from tacit.errors import EpisodeError, TacitError, TaskError

NOT_RESUMABLE = (
    "what an environment of {name} holds inside is unknown, so its worlds cannot be kept and "
    "continued (resumable is False): reset them instead"
)


class GymnasiumWorlds:
    """Environments with flat spaces and `info["cost"]`, behind the contract of `Worlds`.

    They are stepped in a plain loop in this thread: for small environments that beats threads, and
    Gymnasium does not promise that two environments may be stepped at the same time.

    World i is seeded with `seed + i` by `reset`; episodes after the first one carry on with the
    environment's own generator. What an environment holds inside is unknown, so the worlds are not
    resumable.

    Arguments:
        environments: one for each world, all with the same spaces.
        number_of_costs: k.
        name: what to call the task in messages.
    """

    resumable = False

    def __init__(
        self, environments: Sequence[Environment], *, number_of_costs: int, name: str
    ) -> None:
        self.environments = tuple(environments)
        self.number = len(self.environments)
        self.number_of_costs = number_of_costs
        self.name = name
        self.observation_space, self.action_space = spaces_of(self.environments, name)
        self.running = False
        self.closed = False

    def reset(self, seed: int) -> Float[np.ndarray, "n o"]:
        """Seed every world anew and start an episode in each."""
        if self.closed:
            raise EpisodeError(f"the worlds of {self.name} are closed: make new ones")
        seed = check_seed(seed)
        self.running = False
        observations = self.empty_observations()
        for index, environment in enumerate(self.environments):
            try:
                observations[index] = environment.reset(seed=seed + index)[0]
            except Exception as error:
                self.blame(index, error)
        check_finite(self.name, observation=observations)
        self.running = True
        return observations

    def stagger(self) -> Bool[np.ndarray, " n"]:
        """Nothing: the environments keep their own clocks."""
        return np.zeros(self.number, bool)

    def step(self, actions: np.ndarray) -> Step:
        """Take one action in every world; worlds whose episode ends start the next one."""
        if not self.running:
            raise EpisodeError(f"no episodes of {self.name} are running: call reset(seed) first")
        actions = check_actions(actions, self.number, self.action_space)
        # If one world fails, others have moved on already: only a reset puts that right.
        self.running = False
        step = Step(
            observations=self.empty_observations(),
            arrived=self.empty_observations(),
            rewards=np.empty(self.number),
            costs=np.empty((self.number, self.number_of_costs)),
            terminated=np.empty(self.number, bool),
            truncated=np.empty(self.number, bool),
        )
        for index, action in enumerate(actions):
            try:
                self.step_one(index, action, step)
            except Exception as error:
                self.blame(index, error)
        check_finite(self.name, observation=step.arrived, reward=step.rewards, cost=step.costs)
        check_finite(self.name, observation=step.observations)
        self.running = True
        return step

    def step_one(self, index: int, action: np.ndarray, step: Step) -> None:
        """Step world `index` and write what happened into row `index` of `step`."""
        environment = self.environments[index]
        observation, reward, terminated, truncated, info = environment.step(action)
        step.arrived[index] = observation
        step.rewards[index] = self.number_in(reward)
        step.costs[index] = self.costs_in(info)
        step.terminated[index] = terminated
        step.truncated[index] = truncated
        ended = terminated or truncated
        step.observations[index] = environment.reset()[0] if ended else observation

    def number_in(self, reward: Any) -> float:
        """The reward as a float; some environments return it as an array of one number."""
        if isinstance(reward, float | int | np.number):
            return float(reward)
        values = np.asarray(reward)
        if values.size != 1 or values.dtype.kind not in "fiub":
            raise TaskError(f"{self.name} returned the reward {reward!r}, which is not a number")
        return float(values.item())

    def costs_in(self, info: Mapping[str, Any]) -> float | Float[np.ndarray, " k"]:
        """The true costs that the environment reports."""
        if not self.number_of_costs:
            return np.empty(0)
        reported = info["cost"]
        if self.number_of_costs == 1 and isinstance(reported, float):
            return reported
        costs = cost_vector(reported, self.name)
        if len(costs) != self.number_of_costs:
            raise TaskError(
                f"{self.name} returned {len(costs)} costs, {costs}, where its first step returned "
                f"{self.number_of_costs}"
            )
        return costs

    def state(self) -> dict[str, np.ndarray]:
        """Always an error: see `resumable`."""
        raise TaskError(NOT_RESUMABLE.format(name=self.name))

    def restore(self, state: dict[str, np.ndarray]) -> Float[np.ndarray, "n o"]:
        """Always an error: see `resumable`."""
        raise TaskError(NOT_RESUMABLE.format(name=self.name))

    def close(self) -> None:
        """Close the environments, except one that the user lent; a second time does nothing."""
        if not self.closed:
            self.running, self.closed = False, True
            for environment in self.environments:
                environment.close()

    def empty_observations(self) -> Float[np.ndarray, "n o"]:
        """Room for one observation from each world."""
        return np.empty((self.number, *self.observation_space.shape), self.observation_space.dtype)

    def blame(self, index: int, error: Exception) -> NoReturn:
        """Raise `error` again, saying in which world it happened."""
        if isinstance(error, TacitError):
            raise type(error)(f"world {index}: {error}") from error
        error.add_note(f"This happened in world {index} of {self.name}.")
        raise error


def spaces_of(
    environments: Sequence[Environment], name: str
) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box | gymnasium.spaces.Discrete]:
    """The spaces of observations and actions that all the environments share."""
    observations, actions = environments[0].observation_space, environments[0].action_space
    for index, environment in enumerate(environments):
        found = environment.observation_space, environment.action_space
        if found != (observations, actions):
            raise TaskError(
                f"world {index} of {name} has the spaces {found}, world 0 has "
                f"{(observations, actions)}; all worlds of a task must have the same"
            )
    assert isinstance(observations, gymnasium.spaces.Box)
    assert isinstance(actions, gymnasium.spaces.Box | gymnasium.spaces.Discrete)
    return observations, actions
