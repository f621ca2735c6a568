"""ICRL: inverse constrained reinforcement learning (Malik et al., ICML 2021), also called MECL.

Experts are modelled as maximally entropic under a constraint,

    p(tau) = exp(r(tau)) phi(tau) / Z,   phi(tau) = prod_t z(s_t, a_t).

The log-likelihood's gradient compares experts with the policy that is optimal for the present
constraint, whose samples are weighted by nu (see `gradient_steps`):

    repeat
        policy      <- PPO-Lagrange with cost 1 - z, for `every` updates
        samples     <- the policy's steps, and those of its predecessors
        z           <- gradient steps on
                       -E_experts[log z] + E_policy[nu log z]
                       + regulariser * (E_experts[1 - z] + E_policy[1 - z])
        until KL of nu exceeds its limits

The regulariser prefers constraints that forbid little. In the reference code the weights nu cancel
by a slip; here they act.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.inputs import Steps
from tacit.inference.trained_method import StepCosts


@dataclass(frozen=True, kw_only=True)
class ICRL(StepCosts):
    """The method `icrl`, also called MECL: the feasibility that makes the experts most likely.

    Fields:
        regulariser: how much forbidding costs.
    """

    regulariser: float = 0.5

    name: ClassVar[str] = "icrl"
    kind: ClassVar[type[ClassifierModel]] = ClassifierModel

    def log_feasibility(
        self, model: ClassifierModel, memory: tuple, steps: Steps, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """Log z."""
        del memory, confidence
        return jax.nn.log_sigmoid(model.logit(steps))

    def loss(self, model: ClassifierModel, batch: Minibatch) -> Float[Array, ""]:
        """The negative log-likelihood and the regulariser."""
        for_experts, for_policy = model.logit(batch.experts), model.logit(batch.policy)
        likelihood = jnp.mean(jax.nn.log_sigmoid(for_experts)) - jnp.mean(
            batch.weights * jax.nn.log_sigmoid(for_policy)
        )
        forbidden = jax.nn.sigmoid(-for_experts).mean() + jax.nn.sigmoid(-for_policy).mean()
        return -likelihood + self.regulariser * forbidden
