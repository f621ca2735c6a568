"""ICL: inverse constraint learning from soft constraints (Gaurav et al., ICLR 2023).

No likelihood: the cost is made as large as possible on what past policies did, while the experts
keep to a budget.

    fit a density to the experts' steps
    repeat
        policy      <- PPO-Penalty with cost c and budget, for `every` updates
        mixture     <- all policies so far, each weighted by how unlike the experts it is
        c           <- gradient steps on
                       maximise  J_c(mixture) - penalty * max(0, J_c(experts) - budget)

J_c is the mean cost of a step here (the paper's is discounted and summed), c = 1 - z lies in
(0, 1), and the weight of a policy is the share of its steps that the density finds unlikely. The
newest policy has a share of its own beside the mixture (1 - `past`).
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.inference.baselines.density import Flow, fit_flow, threshold_of, unlikeness
from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.experts import ExpertSteps
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Inputs, Steps
from tacit.inference.method import Learned, Round
from tacit.inference.trained import StepCosts

FITTED = 10_000
SMALLEST_WEIGHT = 0.01  # no policy is forgotten altogether


class Mixture(NamedTuple):
    """The experts' density, and the weight of every round in the replay."""

    flow: Flow
    threshold: Float[Array, ""]
    weights: Float[Array, " R"]


@dataclass(frozen=True, kw_only=True)
class ICL(StepCosts):
    """The method `icl`: the cost that past policies run up and the experts keep within a budget.

    Fields:
        budget: mean cost of a step that experts and policy may have; not on top of the experts'.
        penalty: for experts above the budget.
    """

    budget: float = 0.05
    penalty: float = 10.0

    name: ClassVar[str] = "icl"
    kind: ClassVar[type[ClassifierModel]] = ClassifierModel

    @classmethod
    def forward(cls, task: SimulatedTask) -> PPO:
        """As for all methods, but PPO-Penalty."""
        penalty = Multiplier(kind="penalty", start=2.0)
        return dataclasses.replace(super().forward(task), multiplier=penalty)

    def new_memory(
        self, model: ClassifierModel, experts: ExpertSteps, worlds: int, *, key: Key[Array, ""]
    ) -> Mixture:
        """An untrained density and no policies."""
        del experts, worlds
        flow = Flow.start(model.inputs.size, key=key)
        return Mixture(flow, jnp.zeros(()), jnp.zeros(self.rounds))

    def allowance(self, expert_cost: float, confidence: float) -> float:
        """The budget itself; it is the cost that is kept below it on the experts."""
        del expert_cost, confidence
        return self.budget

    def update(
        self, learned: Learned, given: Round, *, key: Key[Array, ""]
    ) -> tuple[Learned, dict[str, float]]:
        """Weigh the newest policy, then let the cost learn from the mixture."""
        assert given.replay is not None
        inputs, memory = learned.model.inputs, learned.memory
        if given.replay.rounds == 1:
            memory = fitted(inputs, memory, given, key=jax.random.fold_in(key, 0))
        newest = Steps.on_host(
            *(np.asarray(field)[given.replay.newest] for field in given.replay.steps)
        )
        unlike = unlikeness(
            memory.flow, inputs(newest.observations, newest.actions), memory.threshold
        )
        weights = memory.weights.at[given.replay.newest].set(unlike)
        learned = learned._replace(memory=memory._replace(weights=weights))
        weighed = given._replace(mixture=np.asarray(weights) + SMALLEST_WEIGHT)
        return super().update(learned, weighed, key=jax.random.fold_in(key, 1))

    def loss(self, model: ClassifierModel, batch: Minibatch) -> Float[Array, ""]:
        """-J_c(mixture) + penalty * max(0, J_c(experts) - budget)."""
        for_experts = jax.nn.sigmoid(-model.logit(batch.experts)).mean()
        for_mixture = jax.nn.sigmoid(-model.logit(batch.policy)).mean()
        return self.penalty * jax.nn.relu(for_experts - self.budget) - for_mixture


def fitted(inputs: Inputs, memory: Mixture, given: Round, *, key: Key[Array, ""]) -> Mixture:
    """The mixture with a density of the experts' steps."""
    steps = given.experts.draw(FITTED, given.generator)
    features = inputs(jnp.asarray(steps.observations), jnp.asarray(steps.actions))
    flow = fit_flow(features, key=key)
    return memory._replace(flow=flow, threshold=threshold_of(flow, features))
