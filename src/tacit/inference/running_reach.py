"""How far policies go: the lowest and highest value of every quantity in episodes that run."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.constraints.reach_model import Extremes, Reach
from tacit.control.learner import Rollout
from tacit.inference.expert_steps import ExpertSteps

LEAST = 1 / 4
"""The part of the experts' return that an episode must earn to count: what those do who earn
next to nothing, experts avoid for the sake of the reward alone."""


class Spans(NamedTuple):
    """One episode of each of n worlds: [n, Q] extremes, [n] steps and [n] reward so far."""

    lowest: Float[Array, "n Q"]
    highest: Float[Array, "n Q"]
    steps: Float[Array, " n"]
    earned: Float[Array, " n"]

    @classmethod
    def none(cls, worlds: int, quantities: int) -> "Spans":
        """Episodes without a step."""
        shape = (worlds, quantities)
        nothing = jnp.zeros(worlds)
        return cls(jnp.full(shape, jnp.inf), jnp.full(shape, -jnp.inf), nothing, nothing)

    def where(self, these: Bool[Array, " n"], other: "Spans") -> "Spans":
        """Of each world this episode or the other."""
        return Spans(
            *(
                jnp.where(these.reshape(-1, *(1,) * (mine.ndim - 1)), mine, theirs)
                for mine, theirs in zip(self, other, strict=True)
            )
        )


class RunningReach(NamedTuple):
    """Where counting stands.

    Fields:
        now: the episodes that are running.
        last: the ones before.
        worth: an episode counts until it has earned so much.
    """

    now: Spans
    last: Spans
    worth: Float[Array, ""]

    @classmethod
    def start(cls, worlds: int, quantities: int, experts_return: float) -> "RunningReach":
        """Nothing seen yet.

        Who has earned as much as the experts in a whole episode and goes on is more able than they
        are: where they did not get to in their time then says nothing. Where rewards are charges
        (a return of 0 or less), there is no such moment.
        """
        none = Spans.none(worlds, quantities)
        worth = experts_return if experts_return > 0 else jnp.inf
        return cls(none, none, jnp.asarray(worth, jnp.float32))

    def interrupted(self) -> "RunningReach":
        """The same with new episodes in all worlds."""
        return self._replace(now=Spans.none(*self.now.lowest.shape))

    def reach(self) -> Reach:
        """Of each world the longer of its episodes that earned enough to show a will, if any."""
        least = jnp.where(jnp.isfinite(self.worth), LEAST * self.worth, -jnp.inf)
        now, last = self.now.earned >= least, self.last.earned >= least
        longer = self.now.where(now & (~last | (self.now.steps >= self.last.steps)), self.last)
        longer = longer.where(now | last, Spans.none(*longer.lowest.shape))
        return Reach(jnp.sort(longer.lowest.T, axis=1), jnp.sort(longer.highest.T, axis=1))


@jax.jit
def followed(running: RunningReach, rollout: Rollout) -> RunningReach:
    """The count after a rollout."""
    ended = jnp.asarray(rollout.terminated | rollout.truncated)
    none = Spans.none(*running.now.lowest.shape)

    def step(
        now: RunningReach, seen: tuple[Array, Array, Array, Array]
    ) -> tuple[RunningReach, None]:
        observation, arrived, reward, end = seen
        counts = (now.now.earned < now.worth)[:, None]
        # The last observation of an episode is seen nowhere else.
        low = jnp.where(end[:, None], jnp.minimum(observation, arrived), observation)
        high = jnp.where(end[:, None], jnp.maximum(observation, arrived), observation)
        spans = Spans(
            lowest=jnp.where(counts, jnp.minimum(now.now.lowest, low), now.now.lowest),
            highest=jnp.where(counts, jnp.maximum(now.now.highest, high), now.now.highest),
            steps=now.now.steps + 1,
            earned=now.now.earned + reward,
        )
        return (
            RunningReach(
                now=none.where(end, spans),
                last=spans.where(end, now.last),
                worth=now.worth,
            ),
            None,
        )

    seen = (rollout.observations, rollout.arrived, rollout.rewards, ended)
    return jax.lax.scan(step, running, jax.tree.map(jnp.asarray, seen))[0]


def reach_of(experts: ExpertSteps) -> tuple[Reach, Extremes]:
    """How far each expert went and when, one at a time: 20,000 need no second copy in memory."""
    ends = [
        (seen.min(axis=0), seen.max(axis=0), seen.argmin(axis=0), seen.argmax(axis=0))
        for seen in (
            observations[: length + 1]
            for observations, length in zip(experts.observations, experts.lengths, strict=True)
        )
    ]
    lowest, highest, low_step, high_step = (
        np.stack(parts, axis=1) for parts in zip(*ends, strict=True)
    )
    low, high = np.argsort(lowest, axis=1), np.argsort(highest, axis=1)

    def whole(values: np.ndarray) -> Array:
        return jnp.asarray(values, jnp.int32)

    def sorted_by(values: np.ndarray, order: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, order, axis=1)

    reach = Reach(
        jnp.asarray(sorted_by(lowest, low), jnp.float32),
        jnp.asarray(sorted_by(highest, high), jnp.float32),
    )
    return reach, Extremes(
        lowest_expert=whole(low),
        lowest_step=whole(sorted_by(low_step, low)),
        highest_expert=whole(high),
        highest_step=whole(sorted_by(high_step, high)),
    )
