"""How far experts went, in every measured quantity: a belief by counting, without a network.

A quantity is one number of the observation. On its way an expert passes every value between its
lowest and its highest, so that of N experts exactly

    for(v) = N - #(lowest > v) - #(highest < v)

have been at the value v. Where nobody has been, those speak against v who would have come had it
been allowed:

    against(v) = N p(v),   p(v) = share of a policy's episodes that pass v, at most over all rounds

Beyond all experts p is that of the first step beyond: who gets further has passed it, and nothing
is less doubtful for being further off. (The largest is taken on each side by itself: exact where
all episodes begin in one region.)

A visit is proof, as for votes `visits` in the lab. For experts who err there are `visits-fallible`:
those who stayed away speak against v even where others went, and what one of them did proves
nothing; see `sided_votes`. Then phi is the share of those who, tempted, would go there.

A step is as feasible as its least supported quantity: alpha = 1 + for, beta = 1 + against there.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tacit.inference.confidence.belief import (
    CountedVotes,
    Reading,
    counted_votes,
    feasibility,
    support,
)
from tacit.inference.constraint_model import (
    Actions,
    ConstraintModel,
    Evidence,
    Observations,
    Spaces,
)
from tacit.inference.inputs import Inputs
from tacit.inference.reach.limits import Rule, margin, rules_of, sided_votes
from tacit.inference.reach.quantities import Quantities


class Extent(eqx.Module):
    """The lowest and the highest value of Q quantities in each of m episodes, each sorted."""

    lowest: Float[Array, "Q m"]
    highest: Float[Array, "Q m"]

    @classmethod
    def nowhere(cls, quantities: int, episodes: int) -> "Extent":
        """Episodes that pass no value."""
        return cls(
            jnp.full((quantities, episodes), jnp.inf), jnp.full((quantities, episodes), -jnp.inf)
        )

    @property
    def episodes(self) -> int:
        """The number of episodes, m."""
        return self.lowest.shape[1]

    def passing(self, values: Float[Array, "*n Q"]) -> Int[Array, "*n Q"]:
        """How many episodes pass each value."""
        flat = values.reshape(-1, values.shape[-1]).T
        begun = jax.vmap(lambda ends, at: jnp.searchsorted(ends, at, side="right"))
        over = jax.vmap(lambda ends, at: jnp.searchsorted(ends, at, side="left"))
        # An episode that passes no value has neither begun nor is over.
        nowhere = jnp.isneginf(self.highest).sum(axis=1, keepdims=True)
        number = begun(self.lowest, flat) - over(self.highest, flat) + nowhere
        return jnp.maximum(number, 0).T.reshape(values.shape)

    def widened(self, other: "Extent") -> "Extent":
        """At every value the larger of the two numbers that reach it, each side by itself.

        The larger of two survival functions has the larger of their quantiles.
        """
        return Extent(
            jnp.minimum(self.lowest, other.lowest), jnp.maximum(self.highest, other.highest)
        )


class Extremes(eqx.Module):
    """Which expert went how far, and when: owners of the values of a `Extent`, in its order."""

    lowest_expert: Int[Array, "Q N"]
    lowest_step: Int[Array, "Q N"]
    highest_expert: Int[Array, "Q N"]
    highest_step: Int[Array, "Q N"]


class ReachModel(ConstraintModel):
    """Beta(alpha, beta) over the feasibility of a step.

    Fields:
        inputs: the sizes of steps; their scales do not matter to counts.
        experts: how far each went.
        extremes: who they are.
        tempted: how far episodes of past policies went, at their widest.
        reading: how a confidence reads a feasibility off the belief.
        voting: whether a visit is proof, or experts may err.
        quantities: what is measured, and what a rule may be about.
    """

    inputs: Inputs
    experts: Extent
    extremes: Extremes
    tempted: Extent
    reading: Reading = eqx.field(static=True)
    voting: CountedVotes = eqx.field(static=True, default="visits")
    quantities: Quantities = eqx.field(static=True, default=Quantities())

    name: ClassVar[str] = "reach"
    promises: ClassVar[bool] = True

    def beliefs(
        self, observations: Float[Array, "*n o"]
    ) -> tuple[Float[Array, "*n Q"], Float[Array, "*n Q"]]:
        """Alpha and beta of each quantity of a step."""
        values, number = self.quantities.measured(observations), self.experts.episodes
        counted = self.quantities.counted(values.shape[-1])
        if self.voting == "visits-fallible":
            low = self.experts.lowest, self.tempted.lowest
            high = self.experts.highest, self.tempted.highest
            alpha, beta = sided_votes(low, high, values)
        else:
            visited = self.experts.passing(values).astype(jnp.float32)
            alpha, beta = counted_votes(visited, number, self.tempting(values), "visits")
        return jnp.where(counted, alpha, 1.0 + number), jnp.where(counted, beta, 1.0)

    def tempting(self, values: Float[Array, "*n Q"]) -> Float[Array, "*n Q"]:
        """Share of a policy's episodes that pass each value, or the first one beyond experts."""
        lowest, highest = self.furthest
        below = (self.tempted.lowest < lowest[:, None]).sum(axis=1)
        above = (self.tempted.highest > highest[:, None]).sum(axis=1)
        tempted = self.tempted.passing(values)
        tempted = jnp.where(values < lowest, below, tempted)
        tempted = jnp.where(values > highest, above, tempted)
        return tempted / self.tempted.episodes

    @property
    def furthest(self) -> tuple[Float[Array, " Q"], Float[Array, " Q"]]:
        """The lowest and the highest value of any expert."""
        return self.experts.lowest.min(axis=1), self.experts.highest.max(axis=1)

    def votes(self, observations: Float[Array, "*n o"]) -> Float[Array, "*n Q"]:
        """Votes for each quantity of a step, less those against it."""
        alpha, beta = self.beliefs(observations)
        return alpha - beta

    def beyond(self, observations: Float[Array, "*n o"]) -> Float[Array, "*n"]:
        """How far a step is beyond all experts, at most over the quantities that are doubted.

        In units of how far the experts are apart there.
        """
        lowest, highest = self.furthest
        values = self.quantities.measured(observations)
        away = jnp.maximum(lowest - values, values - highest)
        width = jnp.maximum(highest - lowest, jnp.finfo(jnp.float32).tiny)
        doubted = (self.votes(observations) < 0) & (away > 0)
        return jnp.where(doubted, away / width, 0.0).max(axis=-1)

    def least_supported(
        self, observations: Float[Array, "*n o"]
    ) -> tuple[Int[Array, "*n"], Float[Array, "*n"], Float[Array, "*n"]]:
        """Of every step the quantity that least speaks for, and its alpha and beta."""
        alpha, beta = self.beliefs(observations)
        worst = margin(alpha, beta).argmin(axis=-1)
        alpha, beta = (
            jnp.take_along_axis(part, worst[..., None], axis=-1)[..., 0] for part in (alpha, beta)
        )
        return worst, alpha, beta

    def belief(
        self, observations: Float[Array, "*n o"]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of every step."""
        return self.least_supported(observations)[1:]

    def feasibility(
        self, observations: Observations, actions: Actions, confidence: Array | float
    ) -> Float[Array, "*n"]:
        """Feasibility at the confidence, by the reading."""
        del actions
        return feasibility(*self.belief(observations), confidence, self.reading)

    def costs(
        self, observations: Float[Array, "*n o"], confidence: Array | float
    ) -> Float[Array, "*n Q"]:
        """What every quantity of a step costs a policy that learns.

        1 - feasibility, except that a value costs nothing where no expert went and no policy wants
        to go. Exploration leads there by accident; once a policy means to go there, it costs.
        """
        alpha, beta = self.beliefs(observations)
        unknown = (alpha == 1) & (beta == 1)
        return jnp.where(unknown, 0.0, 1 - feasibility(alpha, beta, confidence, self.reading))

    def doubt(
        self, observations: np.ndarray, actions: np.ndarray, confidence: float
    ) -> Float[np.ndarray, " m"]:
        """Votes against each step, less those for it.

        Of two steps with as many votes, the one further beyond the experts is doubted more.
        """
        del actions, confidence
        seen = jnp.asarray(observations, jnp.float32)
        votes = np.asarray(self.votes(seen)).min(axis=-1)
        beyond = np.asarray(self.beyond(seen))
        return -votes + 0.5 * beyond / (1 + beyond)

    def rules(self, confidence: float, names: Sequence[str]) -> list[Rule]:
        """The sides that at least one expert speaks against, the strongest evidence first."""
        number, observation = len(self.experts.lowest), self.inputs.centre.shape[0]
        names = names or [f"observation {place}" for place in range(observation)]
        return rules_of(
            (np.asarray(self.experts.lowest), np.asarray(self.experts.highest)),
            (np.asarray(self.tempted.lowest), np.asarray(self.tempted.highest)),
            names=[self.quantities.name(quantity, names) for quantity in range(number)],
            counted=self.quantities.counted(number),
            confidence=confidence,
            voting=self.voting,
        )

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int) -> Evidence:
        """Votes on each step's least supported quantity, and the experts who went furthest there.

        Those are on the side of it that fewer experts went to. Each who reached the value has an
        equal share of the votes; the weight of those who did not is 0.
        """
        del actions
        seen = jnp.asarray(observations, jnp.float32)
        worst, alpha, beta = self.least_supported(seen)
        values = self.quantities.measured(seen)
        value = jnp.take_along_axis(values, worst[..., None], axis=-1)
        most = min(most, self.experts.episodes)
        low = self.experts.lowest[worst][..., :most]
        high = self.experts.highest[worst][..., ::-1][..., :most]
        lower = (self.experts.lowest[worst] <= value).sum(axis=-1) <= (
            self.experts.highest[worst] >= value
        ).sum(axis=-1)
        who, when = (
            np.where(
                np.asarray(lower)[..., None],
                np.asarray(first[worst][..., :most]),
                np.asarray(second[worst][..., ::-1][..., :most]),
            )
            for first, second in (
                (self.extremes.lowest_expert, self.extremes.highest_expert),
                (self.extremes.lowest_step, self.extremes.highest_step),
            )
        )
        reached = jnp.where(lower[..., None], low <= value, high >= value) & (alpha > 1)[..., None]
        weight = reached / jnp.maximum(alpha - 1, 1)[..., None]
        supported = support(alpha, beta)
        return Evidence(*map(np.asarray, (alpha - 1, beta - 1, supported, who, when, weight)))

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {
            "experts": self.experts.episodes,
            "tempted": self.tempted.episodes,
            "reading": self.reading,
            "voting": self.voting,
            "ratios": [list(pair) for pair in self.quantities.ratios],
            "about": None if self.quantities.about is None else list(self.quantities.about),
        }

    @classmethod
    def blank(cls, spaces: Spaces, shape: dict[str, Any]) -> "ReachModel":
        """A model of this shape to read a saved one into."""
        inputs = Inputs.blank(spaces.observation_size, spaces.action)
        about = shape.get("about")
        measured = Quantities(
            tuple((first, second) for first, second in shape.get("ratios", ())),
            None if about is None else tuple(about),
        )
        quantities, experts = measured.number(inputs.centre.shape[0]), shape["experts"]
        who = jnp.zeros((quantities, experts), jnp.int32)
        return cls(
            inputs=inputs,
            experts=Extent.nowhere(quantities, experts),
            extremes=Extremes(who, who, who, who),
            tempted=Extent.nowhere(quantities, shape["tempted"]),
            reading=shape["reading"],
            voting=shape.get("voting", "visits"),
            quantities=measured,
        )
