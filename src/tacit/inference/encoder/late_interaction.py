"""Late interaction: experts are encoded once, and queries are compared with what was kept of them.

The costly part, the encoding of S experts of M steps each, is done once per update of the weights.
A query is embedded by a small network and compared with the kept tokens, at a cost of B S M d for B
queries, where comparing every query with every expert from scratch would cost B S M d^2 per layer.

Whatever is per query *and* expert has the queries as its last axis: sums over steps and experts
then run along contiguous rows, which makes the comparison two to three times as fast on a CPU.
"""

import math
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from tacit.control.networks import Perceptron

# Finite, so that a row of nothing but padding gives numbers without meaning instead of NaN.
ABSENT = -1e9


class Encoder(eqx.Module):
    """What every encoder offers; d is its width, and t is the width of what it keeps of a step."""

    question: eqx.AbstractVar[Perceptron]

    def ask(self, features: Float[Array, "*n f"]) -> Float[Array, "*n d"]:
        """Embed the query steps."""
        return self.question(features)

    @abstractmethod
    def encode(
        self, features: Float[Array, "S M f"], present: Bool[Array, "S M"]
    ) -> Float[Array, "S M t"]:
        """What is kept of the experts' steps."""

    @abstractmethod
    def compare(
        self,
        queries: Float[Array, "B d"],
        tokens: Float[Array, "S M t"],
        present: Bool[Array, "S M"],
    ) -> tuple[Float[Array, "S d B"], Float[Array, "S M B"]]:
        """Findings about each query and expert, and the attention to each of the expert's steps.

        Attention sums to 1 over the steps that are present. Of an expert without any, neither
        findings nor attention mean anything.
        """


def attend(
    scores: Float[Array, "S M B"], present: Bool[Array, "S M"]
) -> tuple[Float[Array, "S M B"], Float[Array, "S B"]]:
    """Attention over the M steps of each expert, and how close the query is to them.

        attention_m = exp(score_m) / sum_k exp(score_k),
        closeness = log( mean_k exp(score_k) )

    The sum and the mean are over the steps present. Attention only ranks the steps of one expert;
    closeness also says whether any of them is worth attending to.
    """
    scores = scores + jnp.where(present, 0.0, ABSENT)[..., None]
    highest = jax.lax.stop_gradient(scores.max(axis=1, keepdims=True))
    powers = jnp.exp(scores - highest)
    total = powers.sum(axis=1, keepdims=True)
    number = jnp.maximum(present.sum(axis=1, keepdims=True), 1)
    return powers / total, (highest + jnp.log(total))[:, 0] - jnp.log(number)


def random_matrix(
    above: int, below: int, gain: float = 1.0, *, key: Key[Array, ""]
) -> Float[Array, "above below"]:
    """Normal entries of variance gain^2 / above, which keep the size of what they multiply."""
    return jax.random.normal(key, (above, below)) * (gain / math.sqrt(above))
