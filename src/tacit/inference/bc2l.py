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
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tacit.constraints.classifier_model import ClassifierModel
from tacit.constraints.inputs import Inputs, Steps
from tacit.inference.step_costs import StepCosts


def cross_entropy(model: ClassifierModel, experts: Steps, policy: Steps) -> Float[Array, ""]:
    """-E_experts[log z] - E_policy[log(1 - z)]."""
    return (
        -jax.nn.log_sigmoid(model.logit(experts)).mean()
        - jax.nn.log_sigmoid(-model.logit(policy)).mean()
    )


@dataclass(frozen=True)
class BC2L(StepCosts):
    """Settings of BC2L.

    Fields:
        hidden: units of each hidden layer of z.
    """

    hidden: tuple[int, ...] = (64, 64)

    name: ClassVar[str] = "bc2l"

    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> ClassifierModel:
        """Z before learning."""
        del experts
        return ClassifierModel.start(inputs, self.hidden, key=key)

    def loss(
        self,
        model: ClassifierModel,
        memory: tuple,
        experts: Steps,
        policy: Steps,
        weights: Float[Array, "*n"],
        confidence: Array | float,
        *,
        key: Key[Array, ""],
    ) -> Float[Array, ""]:
        """The cross-entropy of telling experts from policies."""
        del memory, weights, confidence, key
        return jnp.asarray(cross_entropy(model, experts, policy))
