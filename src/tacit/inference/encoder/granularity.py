"""What is feasible or not: a step by itself, or a trajectory as far as it is seen."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float

from tacit.argument_checks import check_choice, check_count
from tacit.control.learner import Rollout
from tacit.inference.constraint import cost_of
from tacit.inference.encoder.belief_model import BeliefModel
from tacit.inference.encoder.model import GRANULARITIES, Granularity
from tacit.inference.inputs import Steps
from tacit.inference.method import Learned, Round
from tacit.inference.replay import sample_steps, sample_windows
from tacit.inference.trained import JUDGED_EXPERTS, TrainedMethod

# Two, whatever the machine: numbers must not depend on how many cores it has.
HELPERS = ThreadPoolExecutor(max_workers=2)


def half_costs(
    constraint: BeliefModel, confidence: float, observations: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """Costs of a half of the steps: the comparison with experts runs on one core, so two may."""
    return np.asarray(cost_of(constraint, observations, actions, confidence))


@dataclass(frozen=True)
class Granular(TrainedMethod):
    """Costs and samples of CA-ICRL, by its granularity.

    Fields:
        granularity: `step`, or `trajectory`: a step then costs what it takes from the feasibility
            of its trajectory. A trajectory is as much of an episode as one rollout shows.
        window: steps of the pieces of trajectories that are learned from.
    """

    granularity: Granularity = "step"
    window: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("granularity", self.granularity, GRANULARITIES)
        check_count("window", self.window)

    def sample(self, rollout: Rollout, generator: np.random.Generator) -> Steps:
        """Steps, or windows of them."""
        if self.granularity == "step":
            return sample_steps(rollout, self.rows, generator)
        number = max(1, self.rows // self.window)
        return sample_windows(rollout, number, self.window, generator)

    def experts_sample(self, given: Round, number: int) -> Steps:
        """Steps of experts, or windows of them."""
        if self.granularity == "step":
            return super().experts_sample(given, number)
        return given.experts.windows(number, self.window, given.generator)

    def judge(
        self, learned: Learned, rollout: Rollout, confidence: float
    ) -> tuple[Learned, Float[np.ndarray, "T n"]]:
        """The cost of every step of a rollout."""
        constraint = self.constraint(learned)
        if self.granularity == "step":
            halves = (
                np.array_split(np.asarray(field), 2)
                for field in (rollout.observations, rollout.actions)
            )
            costs = HELPERS.map(partial(half_costs, constraint, confidence), *halves)
            return learned, np.concatenate(list(costs))
        turned = [np.swapaxes(field, 0, 1) for field in (rollout.observations, rollout.actions)]
        ended = np.asarray(rollout.terminated | rollout.truncated).T
        begins = np.concatenate([np.ones_like(ended[:, :1]), ended[:, :-1]], axis=1)
        costs = trajectory_cost(constraint, *turned, confidence, begins)
        return learned, np.asarray(costs).T

    def experts_cost(self, learned: Learned, given: Round, width: int) -> float:
        """Mean cost of a step of the experts."""
        if self.granularity == "step":
            steps = given.experts.draw(JUDGED_EXPERTS, given.generator)
        else:
            # As long as what a rollout shows of an episode: a longer piece spreads cost thinner.
            number = max(1, JUDGED_EXPERTS // width)
            steps = given.experts.windows(number, width, given.generator)
        constraint = self.constraint(learned)
        costs = cost_of(constraint, steps.observations, steps.actions, given.confidence)
        return float((costs * steps.present).sum() / steps.present.sum())


@jax.jit
def trajectory_cost(
    constraint: BeliefModel, observations: Array, actions: Array, confidence: float, begins: Array
) -> Float[Array, "n T"]:
    """Costs of whole rollouts, in which episodes begin where `begins` is true."""
    return constraint.cost(observations, actions, confidence, begins)
