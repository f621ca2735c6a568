"""VICRL: variational inverse constrained reinforcement learning (Liu et al., ICLR 2023).

The feasibility of a step is uncertain, phi(s, a) ~ Beta(alpha(s, a), beta(s, a)):

    repeat
        policy      <- PPO-Lagrange with cost 1 - E[phi], for `every` updates
        samples     <- the policy's steps, and those of its predecessors
        alpha, beta <- gradient steps on
                       -E_experts[log phi] + E_policy[log phi]
                       + regulariser * (E_experts[KL] + E_policy[KL]),
                       phi one draw per step, KL = KL(Beta(alpha, beta) || Beta(prior))
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from tacit.constraints.inputs import Inputs, Steps
from tacit.constraints.variational_model import VariationalModel, beta_divergence
from tacit.errors import ArgumentError
from tacit.inference.step_costs import StepCosts

SMALLEST_LOG = -11.5  # of a draw, log(1e-5): one draw near zero must not outweigh a batch


@dataclass(frozen=True)
class VICRL(StepCosts):
    """Settings of VICRL.

    Fields:
        hidden: units of each hidden layer.
        regulariser: weight of the divergence from the prior.
        prior: alpha and beta of the prior.
    """

    hidden: tuple[int, ...] = (64, 64)
    regulariser: float = 0.5
    prior: tuple[float, float] = (0.9, 0.1)

    name: ClassVar[str] = "vicrl"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prior) != 2 or min(self.prior) <= 0:
            raise ArgumentError(f"prior must be two numbers above 0, not {self.prior!r}")
        object.__setattr__(self, "prior", tuple(self.prior))

    def new_model(self, inputs: Inputs, experts: int, *, key: Key[Array, ""]) -> VariationalModel:
        """Alpha and beta before learning."""
        del experts
        return VariationalModel.start(inputs, self.hidden, key=key)

    def loss(
        self,
        model: VariationalModel,
        memory: tuple,
        experts: Steps,
        policy: Steps,
        weights: Float[Array, "*n"],
        confidence: Array | float,
        *,
        key: Key[Array, ""],
    ) -> Float[Array, ""]:
        """The negative log-likelihood by one draw per step, and the divergence."""
        del memory, weights, confidence
        first, second = jax.random.split(key)
        terms = []
        for steps, step_key in ((experts, first), (policy, second)):
            log = jnp.maximum(model.log_sample(steps, key=step_key), SMALLEST_LOG)
            divergence = beta_divergence(
                *model.belief(steps.observations, steps.actions), *self.prior
            )
            terms.append((log.mean(), divergence.mean()))
        (expert_log, expert_divergence), (policy_log, policy_divergence) = terms
        return policy_log - expert_log + self.regulariser * (expert_divergence + policy_divergence)
