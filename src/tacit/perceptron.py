"""The network that policies, critics and constraint models are made of."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Perceptron(eqx.Module):
    """Layers of tanh units and a linear last one; batches come first, so a layer is `x @ w + b`.

    Weights start orthogonal with gain sqrt(2), those of the last layer with gain `last_gain`.
    """

    weights: list[Float[Array, "above below"]]
    biases: list[Float[Array, " below"]]

    def __init__(self, sizes: Sequence[int], last_gain: float, *, key: Key[Array, ""]) -> None:
        gains = [math.sqrt(2)] * (len(sizes) - 2) + [last_gain]
        keys = jax.random.split(key, len(gains))
        self.weights = [
            jax.nn.initializers.orthogonal(gain)(layer_key, (above, below), jnp.float32)
            for gain, layer_key, above, below in zip(
                gains, keys, sizes[:-1], sizes[1:], strict=True
            )
        ]
        self.biases = [jnp.zeros(below) for below in sizes[1:]]

    def __call__(self, inputs: Float[Array, "*n above"]) -> Float[Array, "*n below"]:
        """The last layer's output."""
        values = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = jnp.tanh(values @ weight + bias)
        return values @ self.weights[-1] + self.biases[-1]
