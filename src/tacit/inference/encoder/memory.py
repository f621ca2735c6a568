"""What a model keeps of the experts, and of past policies, between two updates of its weights."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from tacit.argument_checks import check_count
from tacit.errors import ArgumentError
from tacit.inference.inputs import Steps


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


@dataclass(frozen=True, eq=False)
class Evidence:
    """Who speaks for queries of any arrangement *n, the `most` heaviest steps first.

    Fields:
        votes_for: of all N experts (alpha - 1).
        votes_against: likewise (beta - 1).
        expert: which demonstrations; -1 where there are fewer steps.
        step: which steps of them; -1 likewise.
        weight: the expert's share of the votes for, times its attention to the step.
    """

    votes_for: Float[np.ndarray, "*n"]
    votes_against: Float[np.ndarray, "*n"]
    expert: Int[np.ndarray, "*n most"]
    step: Int[np.ndarray, "*n most"]
    weight: Float[np.ndarray, "*n most"]

    def arranged(self, shape: tuple[int, ...]) -> "Evidence":
        """The same for queries in another arrangement."""
        heaviest = self.weight.shape[-1]
        return Evidence(
            votes_for=self.votes_for.reshape(shape),
            votes_against=self.votes_against.reshape(shape),
            expert=self.expert.reshape(*shape, heaviest),
            step=self.step.reshape(*shape, heaviest),
            weight=self.weight.reshape(*shape, heaviest),
        )


def choose_steps(
    lengths: Int[np.ndarray, " N"],
    experts: Int[np.ndarray, " S"],
    tokens: int,
    generator: np.random.Generator,
) -> tuple[Int[np.ndarray, "S M"], Bool[np.ndarray, "S M"]]:
    """M steps of each chosen expert: its trajectory is cut in M strata, with one step from each.

    Stratum j of a trajectory of L steps is floor(j L / M) to floor((j + 1) L / M) - 1. Of a
    trajectory with fewer than M steps all are taken, and the rest is absent.
    """
    check_count("tokens", tokens)
    rows = np.asarray(lengths)[experts].astype(np.int64)[:, None]
    if (rows < 1).any():
        raise ArgumentError("every chosen expert must have at least one step")
    bounds = np.arange(tokens + 1) * np.maximum(rows, tokens) // tokens
    step = generator.integers(bounds[:, :-1], bounds[:, 1:])
    present = step < rows
    return np.where(present, step, 0).astype(np.int32), present


def gather_steps(
    observations: Float[np.ndarray, "N rows o"],
    actions: Shaped[np.ndarray, "N T ..."],
    experts: Int[np.ndarray, " S"],
    step: Int[np.ndarray, "S M"],
    present: Bool[np.ndarray, "S M"],
) -> Steps:
    """The chosen steps [S, M], and zeros where they are absent; only these are copied."""
    rows = np.asarray(experts)[:, None]
    seen, done = observations[rows, step], actions[rows, step]
    shown = present.reshape(*present.shape, *[1] * (done.ndim - 2))
    return Steps(
        observations=jnp.asarray(np.where(present[..., None], seen, 0), jnp.float32),
        actions=jnp.asarray(np.where(shown, done, 0)),
        present=jnp.asarray(present),
    )
