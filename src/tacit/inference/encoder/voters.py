"""Who votes until the next update of CA-ICRL's encoder: chosen steps of chosen experts."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from tacit.inference.encoder.memory import ExpertMemory, PolicyMemory, choose_steps, gather_steps
from tacit.inference.encoder.model import ConfidenceModel
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
        """The past policies, likewise."""
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
