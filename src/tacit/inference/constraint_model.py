"""What a constraint is made of: pure functions of observations and actions, known by a name."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import equinox as eqx
import gymnasium
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from tacit.argument_checks import enter
from tacit.errors import ArgumentError

Observations: TypeAlias = Float[Array, "*n o"]
Actions: TypeAlias = Shaped[Array, "..."]
"""Continuous ones [*n, a], cut to their box; discrete ones [*n] whole numbers."""
ROWS_AT_ONCE = 8192
MODELS: "dict[str, type[ConstraintModel]]" = {}
"""Every model by its name; a subclass with a `name` is entered when it is defined.

A file is read into the model that it names, and only into one that is known here: nothing is ever
imported because a file says so."""


class Spaces(NamedTuple):
    """What steps look like.

    Fields:
        observation: a flat box, or the numbers of the states of a table.
        action: a flat box, or numbered actions.
    """

    observation: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    action: gymnasium.spaces.Box | gymnasium.spaces.Discrete

    @property
    def observation_size(self) -> int:
        """Numbers in an observation."""
        if isinstance(self.observation, gymnasium.spaces.Discrete):
            return 1
        return self.observation.shape[0]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Who speaks for and against queries of any arrangement *n.

    Fields:
        votes_for: fractional number of the N experts who vote "feasible" (alpha - 1).
        votes_against: fractional number who vote "infeasible" (beta - 1).
        support: P(phi >= 1/2), how sure the votes make one that most people find it acceptable.
        expert: the demonstrations that speak loudest for it, the heaviest first; -1 where there
            are fewer steps. None where votes are only counted, as on tables.
        step: which of their steps; -1 or None in the same places.
        weight: the expert's share of the votes for, times its attention to the step.
    """

    votes_for: Float[np.ndarray, "*n"]
    votes_against: Float[np.ndarray, "*n"]
    support: Float[np.ndarray, "*n"]
    expert: Int[np.ndarray, "*n most"] | None = None
    step: Int[np.ndarray, "*n most"] | None = None
    weight: Float[np.ndarray, "*n most"] | None = None

    def arranged(self, shape: tuple[int, ...]) -> "Evidence":
        """The same for queries in another arrangement."""
        axes = self.votes_for.ndim

        def part(value: np.ndarray | None) -> Any:
            return None if value is None else value.reshape(*shape, *value.shape[axes:])

        return Evidence(*(part(getattr(self, field.name)) for field in fields(self)))


class ConstraintModel(eqx.Module):
    """What was learned about steps: the part of a `Constraint` to subclass.

    A subclass sets `name`, under which its constraints are saved and loaded, and defines
    `feasibility`, `shape` and `blank`.
    """

    name: ClassVar[str]
    promises: ClassVar[bool] = False
    """Whether the confidence means anything to the model."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        enter(MODELS, cls, "constraint model")

    @abstractmethod
    def feasibility(
        self, observations: Observations, actions: Actions, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """How feasible each step is, in [0, 1]."""

    def cost(
        self, observations: Observations, actions: Actions, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """What each step costs, in [0, 1]: 1 - feasibility."""
        return 1 - self.feasibility(observations, actions, confidence)

    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """What `blank` needs to build a model like this one, JSON-able."""

    @classmethod
    @abstractmethod
    def blank(cls, spaces: Spaces, shape: dict[str, Any]) -> Self:
        """A model of this shape to read a saved one into; its numbers do not matter."""

    @classmethod
    def pattern(cls, spaces: Spaces, shape: dict[str, Any]) -> Any:
        """The shapes of `blank`, without the memory that a file may claim for it."""
        return jax.eval_shape(lambda: cls.blank(spaces, shape))

    @property
    def over_time(self) -> bool:
        """Whether a step is judged with those before it (granularity `trajectory`)."""
        return False

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int) -> Evidence:
        """Who speaks for and against each step."""
        raise ArgumentError(
            f"a constraint of the kind {self.name!r} was not learned from votes of single experts, "
            "so that nobody can say who speaks for a step: 'reach', 'counts' and 'ca-icrl' keep "
            "the votes"
        )

    def rules(self, confidence: float, names: Sequence[str]) -> list[Any]:
        """What is forbidden at the confidence, in words; `names` are of the observed numbers."""
        raise ArgumentError(
            f"a constraint of the kind {self.name!r} is a network, which nobody can read: 'reach' "
            "and 'counts', the defaults, give rules"
        )

    def doubt(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float
    ) -> Float[np.ndarray, " m"]:
        """How much speaks against each of m steps, on a scale of the model's own: the cost."""
        return self.answers("cost", observations, actions, confidence)

    def answers(
        self, question: str, observations: np.ndarray, actions: np.ndarray, confidence: float
    ) -> Float[np.ndarray, "m ..."]:
        """`cost` or `feasibility` of m rows, a few thousand steps at a time, compiled."""
        ask = {"cost": cost_of, "feasibility": feasibility_of}[question]
        at_once = max(1, ROWS_AT_ONCE // (observations.shape[1] if observations.ndim > 2 else 1))
        found = []
        for first in range(0, len(observations), at_once):
            parts = [values[first : first + at_once] for values in (observations, actions)]
            rows = len(parts[0])
            # Few shapes, so that questions of many sizes do not compile again and again.
            padded = 1 << (rows - 1).bit_length()
            seen, done = (
                np.pad(part, [(0, padded - rows)] + [(0, 0)] * (part.ndim - 1)) for part in parts
            )
            found.append(np.asarray(ask(self, seen, done, confidence))[:rows])
        return np.concatenate(found)


def check_named(model: object) -> None:
    """Raise an error unless `model` can be saved: it is a model with a name of its own."""
    kind = type(model)
    if not isinstance(model, ConstraintModel):
        raise ArgumentError(f"a constraint is made of a tacit.ConstraintModel, not {kind.__name__}")
    if "name" not in kind.__dict__:
        # Its file would be read as the model from which it inherits a name.
        raise ArgumentError(f"constraint model {kind.__name__} has no `name` of its own")


@jax.jit
def feasibility_of(model: Any, observations: Array, actions: Array, confidence: float) -> Array:
    """`model.feasibility`, compiled."""
    return model.feasibility(observations, actions, confidence)


@jax.jit
def cost_of(model: Any, observations: Array, actions: Array, confidence: float) -> Array:
    """`model.cost`, compiled."""
    return model.cost(observations, actions, confidence)
