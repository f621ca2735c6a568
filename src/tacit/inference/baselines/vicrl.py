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
from jaxtyping import Array, Float

from tacit.errors import ArgumentError
from tacit.inference.baselines.networks import VariationalModel
from tacit.inference.confidence.belief import beta_divergence
from tacit.inference.gradient_steps import Minibatch
from tacit.inference.trained_method import StepCosts

SMALLEST_LOG = -11.5  # of a draw, log(1e-5): one draw near zero must not outweigh a batch


@dataclass(frozen=True, kw_only=True)
class VICRL(StepCosts):
    """The method `vicrl`: as `icrl`, with a Beta distribution over the feasibility of each step.

    Fields:
        regulariser: weight of the divergence from the prior.
        prior: alpha and beta of the prior.
    """

    regulariser: float = 0.5
    prior: tuple[float, float] = (0.9, 0.1)

    name: ClassVar[str] = "vicrl"
    kind: ClassVar[type[VariationalModel]] = VariationalModel

    def __post_init__(self) -> None:
        super().__post_init__()
        pair = isinstance(self.prior, tuple | list) and len(self.prior) == 2
        if not pair or min(self.prior) <= 0:
            raise ArgumentError(f"prior must be two numbers above 0, not {self.prior!r}")
        object.__setattr__(self, "prior", tuple(self.prior))

    def loss(self, model: VariationalModel, batch: Minibatch) -> Float[Array, ""]:
        """The negative log-likelihood by one draw per step, and the divergence."""
        first, second = jax.random.split(batch.key)
        terms = []
        for steps, step_key in ((batch.experts, first), (batch.policy, second)):
            log = jnp.maximum(model.log_sample(steps, key=step_key), SMALLEST_LOG)
            divergence = beta_divergence(
                *model.belief(steps.observations, steps.actions), *self.prior
            )
            terms.append((log.mean(), divergence.mean()))
        (expert_log, expert_divergence), (policy_log, policy_divergence) = terms
        return policy_log - expert_log + self.regulariser * (expert_divergence + policy_divergence)
