"""What constraint models share that are one network of a step."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key, Shaped

from tacit.control.networks import Perceptron
from tacit.inference.inputs import Inputs


class NetworkModel(eqx.Module):
    """A perceptron of the features of a step; a step costs what it lacks in feasibility."""

    inputs: Inputs
    network: Perceptron

    outputs: ClassVar[int]

    @classmethod
    def start(cls, inputs: Inputs, hidden: tuple[int, ...], *, key: Key[Array, ""]) -> Self:
        """A model that has seen nothing, with outputs near 0."""
        return cls(inputs, Perceptron((inputs.size, *hidden, cls.outputs), 0.1, key=key))

    def raw(
        self, observations: Float[Array, "*n o"], actions: Shaped[Array, "..."]
    ) -> Float[Array, "*n outputs"]:
        """What the network says."""
        return self.network(self.inputs(observations, actions))

    @abstractmethod
    def feasibility(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """How feasible each step is."""

    def cost(
        self,
        observations: Float[Array, "*n o"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """1 - feasibility."""
        return 1 - self.feasibility(observations, actions, confidence)

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {"hidden": [len(bias) for bias in self.network.biases[:-1]]}

    @classmethod
    def blank(cls, inputs: Inputs, shape: dict[str, Any]) -> Self:
        """A model to read a saved one into."""
        return cls.start(inputs, tuple(shape["hidden"]), key=jax.random.key(0))
