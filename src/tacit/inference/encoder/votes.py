"""What a model keeps of experts and past policies, and how their votes are cast."""

import math
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tacit.inference.encoder.encoders import random_matrix

DeepVotes = Literal["visits", "independent", "abstain"]
DEEP_VOTES: tuple[DeepVotes, ...] = get_args(DeepVotes)
FIRST_VOTES = 0.1
FIRST_GAIN = 0.1


class ExpertMemory(eqx.Module):
    """Tokens of S experts out of N, M steps each; an expert without a present step has no vote.

    Fields:
        tokens: what the encoder keeps of each step.
        present: false where there is padding.
        expert: which demonstration it is.
        step: which step of it.
        number: N.
    """

    tokens: Float[Array, "S M t"]
    present: Bool[Array, "S M"]
    expert: Int[Array, " S"]
    step: Int[Array, "S M"]
    number: Float[Array, ""]

    @property
    def voters(self) -> Bool[Array, " S"]:
        """Which experts have any step."""
        return self.present.any(axis=-1)

    @property
    def scale(self) -> Float[Array, ""]:
        """N / S: sums over a random subset, times this, are unbiased for the sums over all."""
        return self.number / jnp.maximum(self.voters.sum(), 1)


class PolicyMemory(eqx.Module):
    """Tokens of R rounds of P windows of M steps: what past policies did.

    Fields:
        tokens: what the encoder keeps of each step.
        present: false where there is padding.
        used: false for rounds that are still to come.
    """

    tokens: Float[Array, "R P M t"]
    present: Bool[Array, "R P M"]
    used: Bool[Array, " R"]


class VoteHead(eqx.Module):
    """logits = tanh(findings + query A + a) B + b: one output of `visits`, two, or three.

    At the start b is such that the votes of all N experts sum to about 0.1, whatever N is: the
    belief begins close to Beta(1, 1). Not so with `visits`: membership begins at one half, and as
    nobody was tempted yet, all is allowed.
    """

    from_query: Float[Array, "d h"]
    shift: Float[Array, " h"]
    weights: Float[Array, "h outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, width: int, votes: DeepVotes, number: int, *, key: Key[Array, ""]) -> None:
        first, last = jax.random.split(key)
        self.bias = first_bias(votes, number)
        self.from_query = random_matrix(width, width, key=first)
        self.shift = jnp.zeros(width)
        self.weights = random_matrix(width, self.bias.shape[0], FIRST_GAIN, key=last)

    def __call__(
        self, findings: Float[Array, "S h B"], queries: Float[Array, "B d"]
    ) -> Float[Array, "S outputs B"]:
        """The logits of each expert's votes."""
        asked = queries @ self.from_query + self.shift
        logits = jnp.einsum("ho,shb->sob", self.weights, jnp.tanh(findings + asked.T))
        return logits + self.bias[:, None]


def first_bias(votes: DeepVotes, number: int) -> Float[Array, " outputs"]:
    """Logits at which each vote is 0.1 / N: log(p / (1 - p)), or log(p / (1 - 2 p)) and 0.

    Membership starts even: nobody is tempted yet, so that there are no votes against.
    """
    if votes == "visits":
        return jnp.zeros(1)
    share = FIRST_VOTES / number
    if votes == "abstain":
        opinion = math.log(share / (1 - 2 * share))
        return jnp.array([opinion, opinion, 0.0])
    return jnp.full(2, math.log(share / (1 - share)))


def cast_votes(
    logits: Float[Array, "S outputs B"], votes: DeepVotes
) -> tuple[Float[Array, "S B"], Float[Array, "S B"]]:
    """Votes for and against: two sigmoids, or two of the three outputs of a softmax."""
    cast = jax.nn.softmax(logits, axis=1) if votes == "abstain" else jax.nn.sigmoid(logits)
    return cast[:, 0], cast[:, 1]
