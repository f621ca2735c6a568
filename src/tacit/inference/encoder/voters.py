"""Who votes until the next update of CA-ICRL's encoder: chosen steps of chosen experts.

With the objective `contrast`, the encoder learns from them who passes where. With m(x, tau) the
probability that the step x and the trajectory tau are of the same kind (both an expert's, or both a
policy's), the loss is the cross-entropy of

    m(expert step, expert) = 1,  m(policy step, expert) = 0,
    m(policy step, policy) = 1,  m(expert step, policy) = 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from tacit.argument_checks import check_count
from tacit.errors import ArgumentError
from tacit.inference.encoder.model import ConfidenceModel
from tacit.inference.encoder.votes import ExpertMemory, PolicyMemory
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Steps
from tacit.inference.replay import Replay


class Voters(NamedTuple):
    """S experts out of N with M steps each, and what past policies did.

    Fields:
        steps: [S, M] of the experts.
        expert, step: which ones they are.
        number: N.
        policies: [R, P, M] steps of past policies, None where nobody asks for temptations.
        used: [R] which of these rounds there are.
    """

    steps: Steps
    expert: Int[Array, " S"]
    step: Int[Array, "S M"]
    number: Float[Array, ""]
    policies: Steps | None = None
    used: Bool[Array, " R"] | None = None

    @classmethod
    def draw(
        cls, experts: ExpertSteps, number: int, tokens: int, generator: np.random.Generator
    ) -> "Voters":
        """A random subset of the experts, and of each a step from every part of its trajectory."""
        size = min(number, len(experts))
        expert = np.sort(generator.choice(len(experts), size=size, replace=False))
        step, present = choose_steps(experts.lengths, expert, tokens, generator)
        return cls(
            steps=gather_steps(experts.observations, experts.actions, expert, step, present),
            expert=jnp.asarray(expert, jnp.int32),
            step=jnp.asarray(step, jnp.int32),
            number=jnp.asarray(len(experts), jnp.float32),
        )

    def shuffled(self, generator: np.random.Generator) -> "Voters":
        """The same with each expert's steps in random order.

        The steps that stand for a policy's trajectory come in none. An encoder that sees the order
        could tell experts from policies by it.
        """
        size = self.step.shape
        order = generator.permuted(np.broadcast_to(np.arange(size[1]), size), axis=1)
        rows = np.arange(size[0])[:, None], order
        steps = Steps(*(field[rows] for field in self.steps))
        return self._replace(steps=steps, step=self.step[rows])

    def some(self, number: int, *, key: Key[Array, ""]) -> "Voters":
        """A random part of the voters, in the name of all."""
        if len(self.expert) <= number:
            return self
        chosen = jax.random.choice(key, len(self.expert), (number,), replace=False)
        steps = Steps(*(field[chosen] for field in self.steps))
        return self._replace(steps=steps, expert=self.expert[chosen], step=self.step[chosen])

    def experts_by(self, model: ConfidenceModel) -> ExpertMemory:
        """The experts as the model's encoder sees them."""
        return model.remember(self.steps, self.expert, self.step, self.number)

    def policies_by(self, model: ConfidenceModel) -> PolicyMemory | None:
        """The past policies as the model's encoder sees them."""
        if self.policies is None or self.used is None:
            return None
        return model.remember_policies(self.policies, self.used)


def past_policies(
    replay: Replay, rounds: int, windows: int, tokens: int
) -> tuple[Steps, Bool[np.ndarray, " R"]]:
    """[R, P, M] steps of rounds that are spread evenly over those of the replay.

    Of a replay of windows, each stands for a trajectory, and M steps are spread evenly over it. Of
    a replay of single steps, M random ones of one round stand for a trajectory of that policy:
    they come from all parts of it, as an expert's do.
    """
    there = max(1, replay.filled)
    places = np.unique(np.linspace(0, there - 1, min(rounds, there)).astype(int))
    if replay.filled and replay.newest not in places:
        places[-1] = replay.newest
    used = np.arange(rounds) < (len(places) if replay.filled else 0)
    places = np.resize(places, rounds)[:, None, None]
    row = np.arange(windows)[:, None]
    if replay.steps.present.ndim == 2:
        chosen = places, (row * tokens + np.arange(tokens)) % replay.steps.present.shape[1]
    else:
        rows, length = replay.steps.present.shape[1:]
        chosen = places, row % rows, np.linspace(0, length - 1, tokens).astype(int)
    return Steps.on_host(*(np.asarray(field)[chosen] for field in replay.steps)), used


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


def contrast(
    model: ConfidenceModel, voters: Voters, experts: Steps, policy: Steps, *, key: Key[Array, ""]
) -> Float[Array, ""]:
    """The cross-entropy; of the policies, one window of every round is used."""
    assert voters.policies is not None
    assert voters.used is not None
    window = jax.random.randint(key, (), 0, voters.policies.present.shape[1])
    one = Steps(*(field[:, window] for field in voters.policies))
    one = one._replace(present=one.present & voters.used[:, None])
    rounds = len(voters.used)
    blank = jnp.zeros((rounds, one.present.shape[1]), jnp.int32)
    passing = voters.experts_by(model)
    tempted = model.remember(one, jnp.zeros(rounds, jnp.int32), blank, float(rounds))
    total = jnp.zeros(())
    for memory, mine, others in ((passing, experts, policy), (tempted, policy, experts)):
        there = memory.voters / jnp.maximum(memory.voters.sum(), 1)
        for_mine = jax.nn.log_sigmoid(whole_logit(model, mine, memory)) @ there
        for_others = jax.nn.log_sigmoid(-whole_logit(model, others, memory)) @ there
        total = total - for_mine.mean() - for_others.mean()
    return total


def whole_logit(model: ConfidenceModel, steps: Steps, memory: ExpertMemory) -> Float[Array, "B S"]:
    """Log odds that sample and trajectory are of the same kind.

    Of a window only the last step's is kept: it has seen the whole window.
    """
    logits = model.passing_logit(steps, memory)
    return logits if logits.ndim == 2 else logits[:, -1]
