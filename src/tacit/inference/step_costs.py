"""What methods share whose constraint charges every step by itself."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from tacit.constraints.learned_constraint import cost_of
from tacit.control.learner import Rollout
from tacit.inference.expert_steps import ExpertSteps
from tacit.inference.method import Learned, Method


@dataclass(frozen=True)
class StepCosts(Method):
    """A method whose model says what a step costs: ICRL, BC2L, VICRL, ICL."""

    def judge(
        self, learned: Learned, rollout: Rollout, confidence: float
    ) -> tuple[Learned, Float[np.ndarray, "T n"]]:
        """The model's cost of every step."""
        observations, actions = rollout.observations, rollout.actions
        return learned, np.asarray(cost_of(learned.model, observations, actions, confidence))

    def experts_cost(
        self,
        learned: Learned,
        experts: ExpertSteps,
        number: int,
        width: int,
        confidence: float,
        generator: np.random.Generator,
    ) -> float:
        """Mean cost of `number` steps of the experts."""
        del width
        steps = experts.draw(number, generator)
        return float(cost_of(learned.model, steps.observations, steps.actions, confidence).mean())
