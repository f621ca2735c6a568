"""What a model keeps of the experts, and of past policies, between two updates of its weights."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


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
