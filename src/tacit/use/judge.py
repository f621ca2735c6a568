"""What a constraint says of steps that come in the spaces of some Gymnasium environment."""

import math
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.spaces.utils import flatten
from jaxtyping import Bool, Float, Int, Shaped

from tacit.control.learner import within
from tacit.environments.gymnasium_worlds import flat_actions, flat_box
from tacit.errors import ArgumentError
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces

LARGEST_TABLE = 1_000_000


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


class Judge:
    """Takes steps of an environment, and asks the constraint about them in its own form.

    That is how demonstrations hold them: flat rows, actions within their box, numbers from 0.

    Arguments:
        constraint: what to ask.
        confidence: to read it at; None for its own.
        observation_space: of one environment.
        action_space: likewise, `Box` or `Discrete`.
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
            check_fit(known, observation_space, self.flat_observations, self.flat_actions)
        self.table = self.tabulated()

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


def check_fit(
    known: Spaces,
    observation_space: gymnasium.Space[Any],
    flat_observations: Box,
    flat_actions: Box | Discrete,
) -> None:
    """The sizes of the environment are those that the constraint was learned with."""
    here = f"observations of size {flat_observations.shape[0]} and actions {flat_actions}"
    size = known.observation_size
    if isinstance(known.observation, Discrete):
        size = int(known.observation.n)
        if not isinstance(observation_space, Discrete):
            raise ArgumentError(
                f"the constraint is about {size} numbered states, the observations of the "
                f"environment are {observation_space}"
            )
    if size != flat_observations.shape[0]:
        raise ArgumentError(
            f"the constraint was learned from observations of size {size}; the environment has "
            f"{here}: is it the same task with the same options?"
        )
    if size_of(known.action) != size_of(flat_actions):
        raise ArgumentError(
            f"the constraint was learned from actions {known.action}; the environment has {here}: "
            f"is it the same task with the same options?"
        )


def size_of(space: gymnasium.Space[Any]) -> tuple[str, int]:
    """What two action spaces must share: kind and size."""
    if isinstance(space, Discrete):
        return "numbers", int(space.n)
    return "rows", math.prod(space.shape or ())
