"""A Beta distribution for every step: the constraint model of VICRL (Liu et al. 2023)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float, Key, Shaped

from tacit.constraints.inputs import Inputs, Steps
from tacit.perceptron import Perceptron

SMALLEST = 1e-3


class VariationalModel(eqx.Module):
    """phi(s, a) ~ Beta(alpha, beta), both by softplus from one network."""

    inputs: Inputs
    network: Perceptron

    @classmethod
    def start(
        cls, inputs: Inputs, hidden: tuple[int, ...], *, key: Key[Array, ""]
    ) -> "VariationalModel":
        """A model that has seen nothing: alpha and beta near softplus(0)."""
        return cls(inputs, Perceptron((inputs.size, *hidden, 2), 0.1, key=key))

    def belief(
        self, observations: Float[Array, "*n o"], actions: Shaped[Array, "..."]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of every step."""
        raw = jax.nn.softplus(self.network(self.inputs(observations, actions))) + SMALLEST
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

    def cost(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """1 - the mean; the reference code charges 1 - a fresh draw, the same on average."""
        return 1 - self.feasibility(observations, actions, confidence)

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {"hidden": [len(bias) for bias in self.network.biases[:-1]]}

    @classmethod
    def blank(cls, inputs: Inputs, shape: dict[str, Any]) -> "VariationalModel":
        """A model to read a saved one into."""
        return cls.start(inputs, tuple(shape["hidden"]), key=jax.random.key(0))


def beta_divergence(
    alpha: Float[Array, "*n"],
    beta: Float[Array, "*n"],
    prior_alpha: float,
    prior_beta: float,
) -> Float[Array, "*n"]:
    """KL(Beta(alpha, beta) || Beta(prior)).

    ln B(p, q) - ln B(a, b) + (a - p) psi(a) + (b - q) psi(b) + (p - a + q - b) psi(a + b)
    """
    total = alpha + beta
    prior = (
        gammaln(jnp.asarray(prior_alpha))
        + gammaln(jnp.asarray(prior_beta))
        - gammaln(jnp.asarray(prior_alpha + prior_beta))
    )
    return (
        prior
        - (gammaln(alpha) + gammaln(beta) - gammaln(total))
        + (alpha - prior_alpha) * digamma(alpha)
        + (beta - prior_beta) * digamma(beta)
        + (prior_alpha - alpha + prior_beta - beta) * digamma(total)
    )
