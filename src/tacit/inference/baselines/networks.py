"""The networks of the compared methods: a probability, or a Beta distribution, for every step."""

from typing import Any, ClassVar, Self

import jax
from jaxtyping import Array, Float, Key

from tacit.control.networks import Perceptron
from tacit.inference.constraint_model import Actions, ConstraintModel, Observations, Spaces
from tacit.inference.inputs import Inputs, Steps

SMALLEST = 1e-3


class NetworkModel(ConstraintModel):
    """A perceptron of the features of a step; a step costs what it lacks in feasibility."""

    inputs: Inputs
    network: Perceptron

    outputs: ClassVar[int]

    @classmethod
    def start(cls, inputs: Inputs, hidden: tuple[int, ...], *, key: Key[Array, ""]) -> Self:
        """A model that has seen nothing, with outputs near 0."""
        return cls(inputs, Perceptron((inputs.size, *hidden, cls.outputs), 0.1, key=key))

    def raw(self, observations: Observations, actions: Actions) -> Float[Array, "*n outputs"]:
        """What the network says."""
        return self.network(self.inputs(observations, actions))

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to build a model like this one."""
        return {"hidden": [len(bias) for bias in self.network.biases[:-1]]}

    @classmethod
    def blank(cls, spaces: Spaces, shape: dict[str, Any]) -> Self:
        """A model of this shape to read a saved one into."""
        inputs = Inputs.blank(spaces.observation_size, spaces.action)
        return cls.start(inputs, tuple(shape["hidden"]), key=jax.random.key(0))


class ClassifierModel(NetworkModel):
    """z(s, a) in (0, 1): how likely a step is an expert's, or how feasible it is.

    The constraint of ICRL, BC2L and ICL, and the discriminator of GACL.
    """

    name: ClassVar[str] = "classifier"
    outputs: ClassVar[int] = 1

    def logit(self, steps: Steps) -> Float[Array, "*n"]:
        """Log odds of z."""
        return self.raw(steps.observations, steps.actions)[..., 0]

    def feasibility(
        self, observations: Observations, actions: Actions, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """z; it knows no confidence."""
        del confidence
        return jax.nn.sigmoid(self.raw(observations, actions)[..., 0])


class VariationalModel(NetworkModel):
    """phi(s, a) ~ Beta(alpha, beta), both by softplus from one network; at first softplus(0).

    The constraint of VICRL (Liu et al. 2023). A step costs 1 - the mean; the reference code charges
    1 - a fresh draw, the same on average.
    """

    name: ClassVar[str] = "variational"
    outputs: ClassVar[int] = 2

    def belief(
        self, observations: Observations, actions: Actions
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
        self, observations: Observations, actions: Actions, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """The mean alpha / (alpha + beta); it knows no confidence."""
        del confidence
        alpha, beta = self.belief(observations, actions)
        return alpha / (alpha + beta)
