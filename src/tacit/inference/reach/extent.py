"""How far policies go: the lowest and highest value of every quantity in episodes that run.

An episode goes beyond a level if it stays there for a while. Where a visit of one expert is proof,
the only level that matters is that of the furthest expert on each side. Where experts may err, it
matters how many of them went less far: levels are spread over all of them, and they, too, have been
where they stayed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tacit.control.learner import Rollout
from tacit.inference.experts import ExpertSteps
from tacit.inference.reach.model import Extent, Extremes
from tacit.inference.reach.quantities import Quantities

LEAST = 1 / 20
"""The part of the experts' return that an episode must earn to count: what those do who earn
next to nothing, experts avoid for the sake of the reward alone."""

LEVELS = 33
"""How many levels there are on each side where experts may err."""

DWELLING, FEWEST = 1 / 20, 3.0
"""The part of an episode's steps that must lie beyond a level to count, and how many at least:
who means to be there stays there. A gait that swings a little wider for a moment is another habit,
not another aim."""

ONE_IN = 16
"""One episode in so many may be an accident."""


class Spans(NamedTuple):
    """One episode of each of n worlds so far, as long as it counts.

    Fields:
        lowest, highest: its extremes.
        below, above: how many steps lay beyond each level, on each side.
        steps: how many there were.
        earned: its reward.
    """

    lowest: Float[Array, "n Q"]
    highest: Float[Array, "n Q"]
    below: Float[Array, "n Q L"]
    above: Float[Array, "n Q L"]
    steps: Float[Array, " n"]
    earned: Float[Array, " n"]

    @classmethod
    def none(cls, worlds: int, quantities: int, levels: int) -> "Spans":
        """Episodes without a step."""
        shape = (worlds, quantities)
        never, nothing = jnp.zeros((*shape, levels)), jnp.zeros(worlds)
        return cls(
            jnp.full(shape, jnp.inf), jnp.full(shape, -jnp.inf), never, never, nothing, nothing
        )

    def forgotten(self) -> "Spans":
        """As many episodes without a step."""
        return Spans.none(*self.below.shape)

    def where(self, these: Bool[Array, " n"], other: "Spans") -> "Spans":
        """Of each world this episode or the other."""
        return Spans(
            *(
                jnp.where(these.reshape(-1, *(1,) * (mine.ndim - 1)), mine, theirs)
                for mine, theirs in zip(self, other, strict=True)
            )
        )


class RunningExtent(NamedTuple):
    """Where counting stands.

    Fields:
        now: the episodes that are running.
        last: the ones before.
        lowest, highest: levels on each side, the furthest expert first.
        all_lowest, all_highest: how far all of them went at least.
        worth: an episode counts until it has earned so much.
    """

    now: Spans
    last: Spans
    lowest: Float[Array, "Q L"]
    highest: Float[Array, "Q L"]
    all_lowest: Float[Array, " Q"]
    all_highest: Float[Array, " Q"]
    worth: Float[Array, ""]

    @classmethod
    def start(
        cls, worlds: int, experts: Extent, experts_return: float, levels: int = 1
    ) -> "RunningExtent":
        """Nothing seen yet.

        Who has earned as much as the experts in a whole episode and goes on is more able than they
        are: where they did not get to in their time then says nothing. Where rewards are charges
        (a return of 0 or less), there is no such moment.
        """
        none = Spans.none(worlds, len(experts.lowest), levels)
        # The last level is not that of all experts, which has a field of its own.
        places = np.linspace(0, experts.episodes - 1, levels, endpoint=False).astype(int)
        return cls(
            now=none,
            last=none,
            lowest=experts.lowest[:, places],
            highest=experts.highest[:, ::-1][:, places],
            all_lowest=experts.lowest.max(axis=1),
            all_highest=experts.highest.min(axis=1),
            worth=jnp.asarray(experts_return if experts_return > 0 else jnp.inf, jnp.float32),
        )

    def forget_running(self) -> "RunningExtent":
        """The same with new episodes in all worlds."""
        return self._replace(now=self.now.forgotten())

    def extent(self) -> Extent:
        """Of each world the longer of its episodes that earned enough to show a will, if any.

        It goes as far as the furthest level beyond which it dwells, beyond all experts as far as it
        ever was, and otherwise no further than all of them. Where they never left one value (an
        indicator), to leave it once is enough.
        """
        least = jnp.where(jnp.isfinite(self.worth), LEAST * self.worth, -jnp.inf)
        now, last = self.now.earned >= least, self.last.earned >= least
        longer = self.now.where(now & (~last | (self.now.steps >= self.last.steps)), self.last)
        longer = longer.where(now | last, longer.forgotten())
        enough = jnp.maximum(FEWEST, DWELLING * longer.steps[:, None])
        enough = jnp.where(self.lowest[:, 0] == self.highest[:, 0], 1.0, enough)
        low = furthest(longer.below >= enough[..., None], self.lowest, self.all_lowest)
        high = furthest(longer.above >= enough[..., None], -self.highest, -self.all_highest)
        lowest, highest = jnp.maximum(longer.lowest, low), jnp.minimum(longer.highest, -high)
        # The furthest few may have got there by accident.
        accidents = len(self.now.steps) // ONE_IN
        low, high = jnp.sort(lowest.T, axis=1), jnp.sort(highest.T, axis=1)
        if accidents:
            low = jnp.roll(low.at[:, :accidents].set(jnp.inf), -accidents, axis=1)
            high = jnp.roll(high.at[:, -accidents:].set(-jnp.inf), accidents, axis=1)
        return Extent(low, high)


@jax.jit
def followed(running: RunningExtent, rollout: Rollout) -> RunningExtent:
    """The count after a rollout."""
    ended = jnp.asarray(rollout.terminated | rollout.truncated)
    none = running.now.forgotten()

    def step(now: RunningExtent, seen: tuple[Array, Array, Array]) -> tuple[RunningExtent, None]:
        observation, reward, end = seen
        counts = now.now.earned < now.worth
        longer = Spans(
            lowest=jnp.minimum(now.now.lowest, observation),
            highest=jnp.maximum(now.now.highest, observation),
            below=now.now.below + (observation[..., None] < now.lowest),
            above=now.now.above + (observation[..., None] > now.highest),
            steps=now.now.steps + 1,
            earned=now.now.earned + reward,
        )
        spans = longer.where(counts, now.now)
        return now._replace(now=none.where(end, spans), last=spans.where(end, now.last)), None

    seen = (rollout.observations, rollout.rewards, ended)
    return jax.lax.scan(step, running, jax.tree.map(jnp.asarray, seen))[0]


def furthest(
    dwelt: Bool[Array, "n Q L"], levels: Float[Array, "Q L"], inner: Float[Array, " Q"]
) -> Float[Array, "n Q"]:
    """The furthest level, towards low values, beyond which each episode dwelt.

    Beyond the first there is no end; who dwelt beyond none is at the inner one.
    """
    first = dwelt.argmax(axis=-1)
    level = jnp.take_along_axis(levels[None], first[..., None], axis=-1)[..., 0]
    level = jnp.where(first == 0, -jnp.inf, level)
    return jnp.where(dwelt.any(axis=-1), level, inner)


def extent_of(
    experts: ExpertSteps, quantities: Quantities, *, dwelling: bool = False
) -> tuple[Extent, Extremes]:
    """How far each expert went and when, one at a time: 20,000 need no second copy in memory.

    Where an episode ends nobody acts any more: an expert who stumbles over the limit with the last
    step has not shown that it may be crossed. If `dwelling`, an expert went as far as it stayed.
    """
    ends = [
        extremes_of(np.asarray(quantities.measured(observations[:length])), dwelling=dwelling)
        for observations, length in zip(experts.observations, experts.lengths, strict=True)
    ]
    lowest, highest, low_step, high_step = (
        np.stack(parts, axis=1) for parts in zip(*ends, strict=True)
    )
    low, high = np.argsort(lowest, axis=1), np.argsort(highest, axis=1)

    def whole(values: np.ndarray) -> Array:
        return jnp.asarray(values, jnp.int32)

    def sorted_by(values: np.ndarray, order: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, order, axis=1)

    reach = Extent(
        jnp.asarray(sorted_by(lowest, low), jnp.float32),
        jnp.asarray(sorted_by(highest, high), jnp.float32),
    )
    return reach, Extremes(
        lowest_expert=whole(low),
        lowest_step=whole(sorted_by(low_step, low)),
        highest_expert=whole(high),
        highest_step=whole(sorted_by(high_step, high)),
    )


def extremes_of(
    seen: Float[np.ndarray, "T Q"], *, dwelling: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The lowest and highest values of an episode and their steps, or beyond which it stayed."""
    if not dwelling:
        return seen.min(axis=0), seen.max(axis=0), seen.argmin(axis=0), seen.argmax(axis=0)
    enough = int(np.ceil(max(FEWEST, DWELLING * len(seen))))
    place = min(enough, len(seen)) - 1
    order = np.argsort(seen, axis=0, kind="stable")
    low, high = order[place], order[-1 - place]
    columns = np.arange(seen.shape[1])
    return seen[low, columns], seen[high, columns], low, high
