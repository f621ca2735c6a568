"""A learned cost where other libraries for safe reinforcement learning look for one: `info`."""

import math
from typing import Any, Self, overload

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import Autoreset
from jaxtyping import Bool, Float

from tacit.environments.gymnasium_worlds import kept
from tacit.errors import ArgumentError, EpisodeError
from tacit.use.judge import AnyConstraint, Judge

NOT_RESET = "no episode is running: call reset() before step()"


class CostWrapper(RecordConstructorArgs, gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment whose `info["cost"]` is what the constraint says of the step.

    The cost is that of the observation before the step and the action, which is cut to its box as
    in demonstrations. `info["feasibility"]` comes with it, and a cost that the environment reports
    itself moves to `info["true_cost"]`.

    A `gymnasium.vector.VectorEnv` becomes a `VectorCostWrapper`. Wrap before anything that changes
    observations or actions, because the constraint must see them as it did when it was learned.

    Arguments:
        env: one environment, or many.
        constraint: such as `result.constraint`.
        confidence: to read it at; None for its own.
        penalty: the reward becomes reward - penalty * cost, for agents that know no costs.
    """

    @overload
    def __new__(
        cls,
        env: VectorEnv[Any, Any, Any],
        constraint: AnyConstraint,
        *,
        confidence: float | None = None,
        penalty: float = 0.0,
    ) -> "VectorCostWrapper": ...
    @overload
    def __new__(
        cls,
        env: gymnasium.Env[Any, Any],
        constraint: AnyConstraint,
        *,
        confidence: float | None = None,
        penalty: float = 0.0,
    ) -> Self: ...
    def __new__(cls, env: Any = None, *arguments: Any, **options: Any) -> Any:
        """One environment or many; without arguments for `copy.deepcopy`, which has none."""
        if isinstance(env, VectorEnv):
            return VectorCostWrapper(env, *arguments, **options)
        return super().__new__(cls)

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        constraint: AnyConstraint,
        *,
        confidence: float | None = None,
        penalty: float = 0.0,
    ) -> None:
        check_environment(env)
        options = {"constraint": constraint, "confidence": confidence, "penalty": penalty}
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **options)
        gymnasium.Wrapper.__init__(self, env)
        self.penalty = check_penalty(penalty)
        self.judge = Judge(constraint, confidence, env.observation_space, env.action_space)
        self.previous: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and remember where the first step starts."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.previous = kept(observation)
        return observation, with_true_cost(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, with the learned cost in `info`."""
        if self.previous is None:
            raise EpisodeError(NOT_RESET)
        # A copy, because environments may work in place on the action.
        taken = kept(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        costs, feasibilities = self.judge([self.previous], [taken])
        cost, feasibility = float(costs[0]), float(feasibilities[0])
        self.previous = kept(observation)
        if self.penalty:
            reward = float(reward) - self.penalty * cost
        info = {**with_true_cost(info), "cost": cost, "feasibility": feasibility}
        return observation, reward, terminated, truncated, info


class VectorCostWrapper(VectorWrapper[Any, Any, Any, Any, Any]):
    """Many environments with the learned cost in `infos["cost"]`; see `CostWrapper`.

    `infos["cost"]` and `infos["feasibility"]` are about the step that was taken in every world,
    also where its episode ended, and so belong to the rewards; the latter worlds have them in
    `final_info` too, where there is one. Where a step was none but only the reset after an end
    (autoreset mode NEXT_STEP, which is assumed of environments that name no mode), both are 0 and
    the masks `_cost` and `_feasibility` are False.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        constraint: AnyConstraint,
        *,
        confidence: float | None = None,
        penalty: float = 0.0,
    ) -> None:
        check_environment(env)
        super().__init__(env)
        self.penalty = check_penalty(penalty)
        spaces = env.single_observation_space, env.single_action_space
        self.judge = Judge(constraint, confidence, *spaces)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.resets_in_next_step = AutoresetMode(mode) is AutoresetMode.NEXT_STEP
        self.previous: Any = None
        self.starting = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all worlds, or those of `options["reset_mask"]`."""
        # Looked up first, because Gymnasium takes it out of the options.
        chosen = (options or {}).get("reset_mask", True)
        observations, infos = self.env.reset(seed=seed, options=options)
        self.previous = kept(observations)
        self.starting = self.starting & ~np.asarray(chosen)
        return observations, with_true_cost(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every world, with the learned costs in `infos`."""
        if self.previous is None:
            raise EpisodeError(NOT_RESET)
        taken, real = kept(actions), ~self.starting
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        before = self.previous
        if not isinstance(self.single_observation_space, Box | Discrete):
            before = list(iterate(self.observation_space, before))
        costs, feasibilities = self.judge(before, taken, real)
        ended = np.asarray(terminated) | np.asarray(truncated)
        self.previous = kept(observations)
        self.starting = ended & self.resets_in_next_step
        if self.penalty:
            rewards = rewards - self.penalty * costs
        infos = with_true_cost(infos)
        if isinstance(infos.get("final_info"), dict):
            final = with_true_cost(infos["final_info"])
            infos["final_info"] = final | about(ended, costs, feasibilities)
        return (
            observations,
            rewards,
            terminated,
            truncated,
            infos | about(real, costs, feasibilities),
        )


def with_true_cost(info: dict[str, Any]) -> dict[str, Any]:
    """A copy in which the environment's own cost, and its mask if it has one, are `true_cost`."""
    names = {"cost": "true_cost", "_cost": "_true_cost"}
    return {names.get(name, name): value for name, value in info.items()}


def about(
    worlds: Bool[np.ndarray, " n"],
    costs: Float[np.ndarray, " n"],
    feasibilities: Float[np.ndarray, " n"],
) -> dict[str, np.ndarray]:
    """Infos of some worlds, each with the mask that Gymnasium asks for, and 0 elsewhere."""
    said = {"cost": costs, "feasibility": feasibilities}
    masks = {f"_{name}": worlds.copy() for name in said}
    return {name: np.where(worlds, values, 0.0) for name, values in said.items()} | masks


def check_environment(env: object) -> None:
    """Something of Gymnasium's that steps when it is told to, and has no learned cost yet."""
    if not isinstance(env, gymnasium.Env | VectorEnv):
        raise ArgumentError(
            f"env must be a gymnasium.Env or gymnasium.vector.VectorEnv, not {type(env).__name__}; "
            f"where another library makes batches of environments, wrap each of them before"
        )
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper | VectorWrapper):
        if isinstance(layer, CostWrapper | VectorCostWrapper):
            raise ArgumentError("env reports a learned cost already: wrap what is inside, env.env")
        if isinstance(layer, Autoreset):
            raise ArgumentError("turn it round: Autoreset(CostWrapper(env, constraint))")
        layer = layer.env


def check_penalty(penalty: float) -> float:
    """A finite number of at least 0."""
    number = isinstance(penalty, int | float | np.number) and not isinstance(penalty, bool)
    if not (number and 0 <= penalty < math.inf):
        raise ArgumentError(f"penalty must be a finite number of at least 0, not {penalty!r}")
    return float(penalty)
