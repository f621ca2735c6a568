"""BC2L: a binary classifier as constraint (the benchmark of Liu et al., ICLR 2023).

    repeat
        policy      <- PPO-Lagrange with cost 1 - z, for `every` updates
        samples     <- the policy's steps, and those of its predecessors
        z           <- gradient steps on  -E_experts[log z] - E_policy[log(1 - z)]

At the optimum z = p_experts / (p_experts + p_policy): it tells whose step it is, not whether the
step is allowed.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
from jaxtyping import Array, Float

from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Steps
from tacit.inference.trained_method import StepCosts


def cross_entropy(model: ClassifierModel, experts: Steps, policy: Steps) -> Float[Array, ""]:
    """-E_experts[log z] - E_policy[log(1 - z)]."""
    return (
        -jax.nn.log_sigmoid(model.logit(experts)).mean()
        - jax.nn.log_sigmoid(-model.logit(policy)).mean()
    )


@dataclass(frozen=True, kw_only=True)
class BC2L(StepCosts):
    """The method `bc2l`: a classifier tells the steps of experts, and its doubt is the cost."""

    name: ClassVar[str] = "bc2l"
    kind: ClassVar[type[ClassifierModel]] = ClassifierModel

    def loss(self, model: ClassifierModel, batch: Minibatch) -> Float[Array, ""]:
        """The cross-entropy of telling experts from policies."""
        return cross_entropy(model, batch.experts, batch.policy)
