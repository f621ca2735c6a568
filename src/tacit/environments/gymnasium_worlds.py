"""Environments of the user's own as `Worlds`: the true cost in `info`, flat arrays, n of them.

They are wrapped twice, `FlatEnvironment(CostReporting(environment))`, and stepped one after the
other by `GymnasiumWorlds`.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatten, flatten_space
from jaxtyping import Bool, Float

from tacit.argument_checks import check_seed
from tacit.environments.worlds import Step, check_actions, check_finite
from tacit.errors import EpisodeError, TacitError, TaskError

Environment: TypeAlias = gymnasium.Env[Any, Any]
CostFunction: TypeAlias = Callable[[Any, Any, Any], Any]
WHAT_TO_DO = (
    "give tacit.make a function cost(observation, action, next_observation), or let the "
    'environment put a number into info["cost"] at every step'
)
NOT_RESUMABLE = (
    "what an environment of {name} holds inside is unknown, so its worlds cannot be kept and "
    "continued (resumable is False): reset them instead"
)


class GymnasiumWorlds:
    """Environments with flat spaces and `info["cost"]`, behind the contract of `Worlds`.

    They are stepped in a plain loop in this thread, which is fastest for small ones; besides,
    Gymnasium does not promise that two environments may be stepped at the same time.

    World i is seeded with `seed + i` by `reset`; episodes after the first one carry on with the
    environment's own generator. What an environment holds inside is unknown, so the worlds are not
    resumable.
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
        """Do nothing: the environments keep their own clocks."""
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


class CostReporting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts the true cost of the step into `info["cost"]`: a float, or an array of several.

    Arguments:
        environment: what to wrap.
        cost: `cost(observation, action, next_observation)`, in the environment's own spaces; None
            where the environment reports its cost itself, which is then checked to be there.
        name: what to call the environment in messages.
    """

    def __init__(self, environment: Environment, cost: CostFunction | None, name: str) -> None:
        super().__init__(environment)
        self.cost = cost
        self.name = name
        self.previous: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and remember where the first step starts."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.remember(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, with the cost in `info`."""
        # Copies, because environments may work in place on the action and on their observation.
        taken = None if self.cost is None else kept(action)
        outcome: Any = self.env.step(action)
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            raise TaskError(
                f"step() of {self.name} must return (observation, reward, terminated, truncated, "
                f"info) as Gymnasium does since 0.26"
            )
        observation, reward, terminated, truncated, info = outcome
        if self.cost is not None:
            value = self.cost(self.previous, taken, observation)
            if not isinstance(value, float):
                row = cost_vector(value, self.name)
                value = row if len(row) > 1 else float(row[0])
            info = {**info, "cost": value}
            self.remember(observation)
        elif "cost" not in info:
            raise TaskError(f'{self.name} reported no info["cost"] at a step: {WHAT_TO_DO}')
        return observation, reward, terminated, truncated, info

    def remember(self, observation: Any) -> None:
        """Keep the observation that the cost function gets as the one before the next step."""
        if self.cost is not None:
            self.previous = kept(observation)


class FlatEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Returns flat observations and takes flat actions; see `flat_box` and `flat_actions`."""

    def __init__(self, environment: Environment, name: str) -> None:
        super().__init__(environment)
        self.name = name
        self.own_observations = environment.observation_space
        self.own_actions = environment.action_space
        self.observation_space = self.flat = flat_box(environment.observation_space, name)
        self.action_space = flat_actions(environment.action_space, name)
        own = self.own_observations
        self.is_plain = isinstance(own, gymnasium.spaces.Box) and own.dtype.kind == "f"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " o"], dict[str, Any]]:
        """Reset; the observation is flat."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.flattened(observation), info

    def step(self, action: Any) -> tuple[Float[np.ndarray, " o"], Any, bool, bool, dict[str, Any]]:
        """Take a flat action; the observation is flat."""
        outcome = self.env.step(own_action(self.own_actions, action))
        return self.flattened(outcome[0]), *outcome[1:]

    def flattened(self, observation: Any) -> Float[np.ndarray, " o"]:
        """`observation` as one row of floats, or an error if it is not what the space promises."""
        if isinstance(observation, np.ndarray) and self.is_plain:
            row = observation.astype(self.flat.dtype).reshape(-1)
            if row.shape == self.flat.shape:
                return row
        problem = ""
        if isinstance(self.own_observations, gymnasium.spaces.Discrete):
            # A number below the first one would count from the end, silently.
            problem = "" if self.own_observations.contains(observation) else "out of range"
        try:
            with np.errstate(invalid="raise"):  # a NaN must not become some integer
                row = np.asarray(flatten(self.own_observations, observation), self.flat.dtype)
            if row.shape != self.flat.shape:
                problem = f"{row.size} numbers instead of {self.flat.shape[0]}"
            if not problem:
                return row
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
        raise TaskError(
            f"{self.name} returned the observation {observation!r}, which does not fit its space "
            f"{self.own_observations}: {problem}"
        )


def kept(value: Any) -> Any:
    """A copy of an observation or action; arrays and numbers without `deepcopy`, which is slow."""
    if isinstance(value, np.generic):
        return value
    return value.copy() if type(value) is np.ndarray else copy.deepcopy(value)


def flat_box(space: gymnasium.Space[Any], name: str) -> gymnasium.spaces.Box:
    """`space` as a flat box of floats: float32, or float64 where float32 would lose digits."""
    try:
        box = flatten_space(space)
    except (NotImplementedError, ValueError) as error:
        raise TaskError(f"observations of {name} cannot be flattened: {error}") from error
    if not isinstance(box, gymnasium.spaces.Box) or 0 in box.shape:
        raise TaskError(f"observations of {name} cannot be flattened to a row of numbers: {space}")
    kind = np.result_type(box.dtype, np.float32)
    return gymnasium.spaces.Box(box.low.astype(kind), box.high.astype(kind), dtype=kind.type)


def flat_actions(
    space: gymnasium.Space[Any], name: str
) -> gymnasium.spaces.Box | gymnasium.spaces.Discrete:
    """Actions as a flat float32 box, or as the numbers 0..n-1."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return gymnasium.spaces.Discrete(int(space.n))
    if not isinstance(space, gymnasium.spaces.Box) or 0 in space.shape:
        raise TaskError(
            f"actions of {name} must be a Box or Discrete, not {space}; wrap the environment, for "
            f"instance with gymnasium.wrappers.TransformAction"
        )
    with np.errstate(over="ignore"):  # bounds beyond float32 are none
        low, high = (bound.reshape(-1).astype(np.float32) for bound in (space.low, space.high))
    return gymnasium.spaces.Box(low, high, dtype=np.float32)


def own_action(space: gymnasium.Space[Any], action: Any) -> Any:
    """A flat action as the environment itself takes it: type, shape, bounds and first number."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return space.start + space.dtype.type(action)
    assert isinstance(space, gymnasium.spaces.Box)
    values = np.asarray(action).reshape(space.shape)
    if space.dtype.kind in "iu":
        values = np.rint(values)
    # Bounds once more: in float32 they may have been rounded outwards.
    return np.minimum(np.maximum(values, space.low), space.high).astype(space.dtype)


def cost_vector(cost: object, name: str) -> Float[np.ndarray, " k"]:
    """A cost, or several, as an array."""
    try:
        values = np.asarray(cost, np.float64)
    except (TypeError, ValueError):
        values = None
    # NumPy turns None into NaN, which would hide that somebody forgot to return something.
    if cost is None or values is None or values.ndim > 1 or values.size == 0:
        raise TaskError(f"the cost of a step of {name} must be a number or a row, not {cost!r}")
    return values.reshape(-1)
