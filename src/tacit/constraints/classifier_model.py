"""A probability for every step: the constraint model of ICRL and BC2L, GACL's discriminator."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key, Shaped

from tacit.constraints.inputs import Inputs, Steps
from tacit.perceptron import Perceptron


class ClassifierModel(eqx.Module):
    """z(s, a) in (0, 1): how likely a step is an expert's, or how feasible it is."""

    inputs: Inputs
    network: Perceptron

    @classmethod
    def start(
        cls, inputs: Inputs, hidden: tuple[int, ...], *, key: Key[Array, ""]
    ) -> "ClassifierModel":
        """A model that has seen nothing."""
        return cls(inputs, Perceptron((inputs.size, *hidden, 1), 0.1, key=key))

    def logit(self, steps: Steps) -> Float[Array, "*n"]:
        """Log odds of z."""
        return self.network(self.inputs(steps.observations, steps.actions))[..., 0]

    def feasibility(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """z; it knows no confidence."""
        del confidence
        return jax.nn.sigmoid(self.network(self.inputs(observations, actions))[..., 0])

    def cost(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """1 - z."""
        return 1 - self.feasibility(observations, actions, confidence)

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {"hidden": [len(bias) for bias in self.network.biases[:-1]]}

    @classmethod
    def blank(cls, inputs: Inputs, shape: dict[str, Any]) -> "ClassifierModel":
        """A model to read a saved one into."""
        return cls.start(inputs, tuple(shape["hidden"]), key=jax.random.key(0))
