"""What methods share whose constraint is one network that charges every step by itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float, Key

from tacit.control.learner import Rollout
from tacit.inference.baselines.classifier_model import ClassifierModel
from tacit.inference.baselines.networks import NetworkModel
from tacit.inference.constraint import cost_of
from tacit.inference.inputs import Inputs
from tacit.inference.method import Learned, Round
from tacit.inference.trained import JUDGED_EXPERTS, TrainedMethod


@dataclass(frozen=True)
class StepCosts(TrainedMethod):
    """A method whose model says what a step costs: all but CA-ICRL.

    Fields:
        hidden: units of each hidden layer of the model.
    """

    hidden: tuple[int, ...] = (64, 64)

    kind: ClassVar[type[NetworkModel]] = ClassifierModel
    """Of the model."""

    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> NetworkModel:
        """The model before learning."""
        del experts
        return self.kind.start(inputs, self.hidden, key=key)

    def judge(
        self, learned: Learned, rollout: Rollout, confidence: float
    ) -> tuple[Learned, Float[np.ndarray, "T n"]]:
        """The model's cost of every step."""
        observations, actions = rollout.observations, rollout.actions
        return learned, np.asarray(cost_of(learned.model, observations, actions, confidence))

    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """Mean cost of some steps of the experts."""
        del width
        steps = given.experts.draw(JUDGED_EXPERTS, given.generator)
        costs = cost_of(learned.model, steps.observations, steps.actions, given.confidence)
        return float(costs.mean())
