"""A learned cost where other libraries for safe reinforcement learning look for one: `info`."""

import math
from typing import Any, Protocol, Self, overload

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.spaces.utils import flatten
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import Autoreset
from jaxtyping import Bool, Float, Int, Shaped

from tacit.control.learner import within
from tacit.environments.gymnasium_worlds import flat_actions, flat_box, kept
from tacit.errors import ArgumentError, EpisodeError
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces

LARGEST_TABLE = 1_000_000
NOT_RESET = "no episode is running: call reset() before step()"


class AnyConstraint(Protocol):
    """What is asked of a constraint, ours or not: NumPy in, NumPy out, batches first."""

    def cost(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> np.ndarray:
        """The cost of each step."""
        ...

    def feasibility(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float | None = None
    ) -> np.ndarray:
        """How feasible each step is, in [0, 1]."""
        ...


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
        infos |= about(real, costs, feasibilities)
        return observations, rewards, terminated, truncated, infos


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


class Judge:
    """Takes steps of an environment, and asks the constraint about them in its own form.

    That is how demonstrations hold them: flat rows, actions within their box, numbers from 0.
    The spaces are those of one environment.
    """

    def __init__(
        self,
        constraint: AnyConstraint,
        confidence: float | None,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        check_methods(constraint)
        self.constraint, self.confidence = constraint, confidence
        self.observation_space, self.action_space = observation_space, action_space
        self.flat_observations = flat_box(observation_space, "the environment")
        self.flat_actions = flat_actions(action_space, "the environment")
        if isinstance(constraint, Constraint) and constraint.over_time:
            raise ArgumentError(
                "this constraint judges a step with those before it (granularity 'trajectory'); "
                "single steps can be judged by one that was learned with granularity 'step'"
            )
        known = constraint.spaces if isinstance(constraint, Constraint) else None
        # Ours that were learned from flat rows are asked about rows, all others about states.
        has_rows = known is not None and isinstance(known.observation, Box)
        self.by_number = isinstance(observation_space, Discrete) and not has_rows
        if known is not None:
            self.check_fit(known)
        self.table = self.tabulated()

    def check_fit(self, known: Spaces) -> None:
        """The sizes of the environment are those that the constraint was learned with."""
        here = self.flat_observations.shape[0]
        asked = (
            f"the environment has observations of size {here} and actions {self.flat_actions}: "
            "is it the same task with the same options?"
        )
        size = known.observation_size
        if isinstance(known.observation, Discrete):
            size = int(known.observation.n)
            if not isinstance(self.observation_space, Discrete):
                raise ArgumentError(
                    f"the constraint is about {size} numbered states, the observations of the "
                    f"environment are {self.observation_space}"
                )
        if size != here:
            raise ArgumentError(
                f"the constraint was learned from observations of size {size}; {asked}"
            )
        if size_of(known.action) != size_of(self.flat_actions):
            raise ArgumentError(f"the constraint was learned from actions {known.action}; {asked}")

    def __call__(
        self, observations: Any, actions: Any, asked: Bool[np.ndarray, " n"] | None = None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Costs and feasibilities of n steps; 0 for those that are not `asked` about."""
        rows, moves = self.rows(observations), self.moves(actions)
        if asked is None or asked.all():
            return self.answers(rows, moves)
        said = np.zeros((2, len(rows)))
        if asked.any():
            said[:, asked] = self.answers(rows[asked], moves[asked])
        return said[0], said[1]

    def answers(
        self, rows: Shaped[np.ndarray, "n *o"], moves: Shaped[np.ndarray, "n *a"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Costs and feasibilities, from the table where there is one."""
        if self.table is None:
            return self.ask(rows, moves)
        _, states, choices = self.table.shape
        if not (in_range(rows, states) and in_range(moves, choices)):
            raise ArgumentError(
                f"states must lie in 0 to {states - 1} and actions in 0 to {choices - 1}, as the "
                f"spaces of the environment say; here they are {rows} and {moves}"
            )
        return self.table[0, rows, moves], self.table[1, rows, moves]

    def rows(self, observations: Any) -> Shaped[np.ndarray, "n *o"]:
        """Numbers of states [n], or flat observations [n, o]."""
        space = self.observation_space
        if self.by_number and isinstance(space, Discrete):
            return np.asarray(observations, np.int64).reshape(-1) - int(space.start)
        if not isinstance(space, Box):
            observations = [flatten(space, observation) for observation in observations]
        rows = np.asarray(observations, self.flat_observations.dtype)
        return rows.reshape(-1, *self.flat_observations.shape)

    def moves(self, actions: Any) -> Shaped[np.ndarray, "n *a"]:
        """Numbers of actions [n], or flat actions [n, a] within their box."""
        if isinstance(self.action_space, Discrete):
            return np.asarray(actions, np.int64).reshape(-1) - int(self.action_space.start)
        rows = np.asarray(actions, np.float32).reshape(-1, math.prod(self.action_space.shape or ()))
        return within(self.flat_actions, rows)

    def tabulated(self) -> Float[np.ndarray, "2 S A"] | None:
        """All answers in a small finite world; else None, after a first question as a check.

        A tabular constraint reads its whole belief at every question, which takes far longer than
        a step of the environment.
        """
        if self.by_number and isinstance(self.flat_actions, Discrete):
            shape = self.flat_observations.shape[0], int(self.flat_actions.n)
            if math.prod(shape) <= LARGEST_TABLE:
                states, choices = np.indices(shape)
                said = self.ask(states.ravel(), choices.ravel())
                return np.stack(said).reshape(2, *shape)
        first = np.zeros(1, np.int64) if self.by_number else nearest_to_zero(self.flat_observations)
        self.ask(first, nearest_to_zero(self.flat_actions))
        return None

    def ask(
        self, rows: Shaped[np.ndarray, "n *o"], moves: Shaped[np.ndarray, "n *a"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """What the constraint itself says."""
        costs = np.asarray(self.constraint.cost(rows, moves, self.confidence), np.float64)
        feasibilities = np.asarray(
            self.constraint.feasibility(rows, moves, self.confidence), np.float64
        )
        if not costs.shape == feasibilities.shape == (len(rows),):
            raise ArgumentError(
                f"cost and feasibility of {len(rows)} steps must be arrays of as many numbers; "
                f"the constraint returned the shapes {costs.shape} and {feasibilities.shape}"
            )
        return costs, feasibilities


def nearest_to_zero(space: Box | Discrete) -> Shaped[np.ndarray, "1 *size"]:
    """A batch of one member of a flat space."""
    if isinstance(space, Discrete):
        return np.zeros(1, np.int64)
    return np.clip(0, space.low, space.high).astype(space.dtype)[None]


def in_range(numbers: Int[np.ndarray, " n"], size: int) -> bool:
    """Whether all lie in 0 to size - 1; others would count from the end, silently."""
    return bool(((numbers >= 0) & (numbers < size)).all())


def check_methods(constraint: object) -> None:
    """Something that can be asked."""
    if not all(callable(getattr(constraint, name, None)) for name in ("cost", "feasibility")):
        raise ArgumentError(
            f"constraint must have the methods cost and feasibility, as `result.constraint` has; "
            f"{type(constraint).__name__} lacks them"
        )


def size_of(space: gymnasium.Space[Any]) -> tuple[str, int]:
    """What two action spaces must share: kind and size."""
    if isinstance(space, Discrete):
        return "numbers", int(space.n)
    return "rows", math.prod(space.shape or ())
