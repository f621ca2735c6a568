"""A Beta distribution for every step: the constraint model of VICRL (Liu et al. 2023)."""

from typing import ClassVar

import jax
from jaxtyping import Array, Float, Key, Shaped

from tacit.inference.baselines.networks import NetworkModel
from tacit.inference.inputs import Steps

SMALLEST = 1e-3


class VariationalModel(NetworkModel):
    """phi(s, a) ~ Beta(alpha, beta), both by softplus from one network; at first softplus(0).

    A step costs 1 - the mean; the reference code charges 1 - a fresh draw, the same on average.
    """

    outputs: ClassVar[int] = 2

    def belief(
        self, observations: Float[Array, "*n o"], actions: Shaped[Array, "..."]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of every step."""
        raw = jax.nn.softplus(self.raw(observations, actions)) + SMALLEST
        return raw[..., 0], raw[..., 1]

    def log_sample(self, steps: Steps, *, key: Key[Array, ""]) -> Float[Array, "*n"]:
        """Log of one draw of phi for every step, differentiable in the network's weights.

        phi = x / (x + y) with x ~ Gamma(alpha), y ~ Gamma(beta).
        """
        alpha, beta = self.belief(steps.observations, steps.actions)
        first, second = jax.random.split(key)
        for_, against = jax.random.loggamma(first, alpha), jax.random.loggamma(second, beta)
        return jax.nn.log_sigmoid(for_ - against)

    def feasibility(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """The mean alpha / (alpha + beta); it knows no confidence."""
        del confidence
        alpha, beta = self.belief(observations, actions)
        return alpha / (alpha + beta)
