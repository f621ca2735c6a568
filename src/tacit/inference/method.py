"""What a method is: the few places in which the six differ. The loop is the same for all."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import optax
from jaxtyping import Array, Float, Key

from tacit.argument_checks import check_count
from tacit.control.learner import Rollout
from tacit.control.settings import PPO
from tacit.errors import ArgumentError
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.replay import Replay


class Learned(NamedTuple):
    """What a method has learned so far.

    Fields:
        model: of the constraint, an equinox module; the part that gradients train.
        optimiser: the state of Adam.
        memory: whatever else the method keeps, a tree of arrays.
    """

    model: Any
    optimiser: optax.OptState
    memory: Any


class Round(NamedTuple):
    """What an update of the constraint may look at.

    Fields:
        experts: all demonstrations.
        replay: what policies did, the newest round included; None where the method wants none.
        generator: of the draws of this round.
        passed: share of the run that is over.
        length: mean number of steps of an episode.
        confidence: asked for by the user.
        mixture: weight of every place of the replay, None for equal ones.
    """

    experts: ExpertSteps
    replay: Replay | None
    generator: np.random.Generator
    passed: float
    length: float
    confidence: float
    mixture: Float[np.ndarray, " R"] | None = None


@dataclass(frozen=True)
class Method(ABC):
    """What the loop asks of every method.

    Fields:
        every: updates of the policy between two of the constraint.
        temptation: share of the run in which the policy learns from nothing, so that it can be
            tempted. Then it begins anew as an imitation of the experts. 1: it never does.
    """

    every: int = 5
    temptation: float = 1.0

    name: ClassVar[str]
    rewards_too: ClassVar[bool] = False
    """Whether the method changes the reward and knows no price of cost."""
    only_feasible_rewards: ClassVar[bool] = False
    """Whether what the policy earns counts only as far as the step is feasible."""
    told: ClassVar[tuple[str, ...]]
    """What an update of the constraint tells, and `expert_cost`."""

    def __post_init__(self) -> None:
        check_count("every", self.every)
        if not 0 <= self.temptation <= 1:
            raise ArgumentError(f"temptation must lie in [0, 1], not {self.temptation!r}")

    def settings(self) -> dict[str, Any]:
        """All fields, JSON-able."""
        return dataclasses.asdict(self)

    @property
    def free_temptation(self) -> bool:
        """Whether nothing costs as long as the policy is tempted."""
        return False

    @property
    def able_temptation(self) -> bool:
        """Whether the policy is an imitation of the experts already when it is tempted."""
        return False

    @property
    def any_confidence(self) -> bool:
        """Whether one trained constraint answers at every confidence; most know none."""
        return False

    def number_of_costs(self, quantities: int) -> int:
        """How many costs `judge` gives for so many observed numbers, each with its own price."""
        del quantities
        return 1

    @abstractmethod
    def start(
        self, inputs: Inputs, experts: ExpertSteps, forward: PPO, *, key: Key[Array, ""]
    ) -> Learned:
        """Nothing learned yet."""

    def with_experts(self, learned: Learned, experts: ExpertSteps) -> Learned:
        """What is learned, as far as it goes on to be of use with other experts."""
        del experts
        return learned

    def interrupted(self, learned: Learned) -> Learned:
        """What is learned, when all running episodes are broken off and begun anew."""
        return learned

    def constraint(self, learned: Learned) -> Any:
        """The model to be asked after training."""
        return learned.model

    def new_replay(self, rollout: Rollout, generator: np.random.Generator) -> Replay | None:
        """An empty replay for rollouts like this one; None where none is wanted."""
        del rollout, generator
        return None

    def remember(
        self, replay: Replay | None, rollout: Rollout, generator: np.random.Generator
    ) -> None:
        """Put something of a rollout into the replay."""
        del replay, rollout, generator

    @abstractmethod
    def judge(
        self, learned: Learned, rollout: Rollout, confidence: float
    ) -> tuple[Learned, Float[np.ndarray, "T n ..."]]:
        """The cost of every step of a rollout, or k of them; its reward where `rewards_too`."""

    @abstractmethod
    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Learn from what the policy did; and what is told of it."""

    @abstractmethod
    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """What the experts spend of the budget, from some of them, in pieces of `width` steps."""

    @abstractmethod
    def allowance(self, expert_cost: float, confidence: float) -> float:
        """What the policy may spend."""
