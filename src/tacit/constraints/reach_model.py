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

A visit is proof, as for votes `visits` in the lab. A step is as feasible as its least supported
quantity: alpha = 1 + for, beta = 1 + against there.
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from tacit.constraints.belief import Reading, feasibility
from tacit.constraints.expert_memory import Evidence
from tacit.constraints.inputs import Inputs


class Rule(NamedTuple):
    """One side of one quantity that the experts did not go to, though policies would have.

    Fields:
        quantity: its place in the observation.
        side: where it is forbidden: "below" or "above" the limit.
        limit: the last value that is allowed at the confidence; where it wants more experts than
            there are, nothing is allowed, and this is the last one that all of them reached.
        experts: how many went at least as far as the limit.
        against: how many of the N experts speak against going further than all of them.
    """

    quantity: int
    side: Literal["below", "above"]
    limit: float
    experts: int
    against: float

    def __str__(self) -> str:
        kept = "at least" if self.side == "below" else "at most"
        return (
            f"observation {self.quantity} is {kept} {self.limit:.4g} "
            f"({self.against:.0f} experts speak against going further)"
        )


class Reach(eqx.Module):
    """The lowest and the highest value of Q quantities in each of m episodes, each sorted."""

    lowest: Float[Array, "Q m"]
    highest: Float[Array, "Q m"]

    @classmethod
    def nowhere(cls, quantities: int, episodes: int) -> "Reach":
        """Episodes that pass no value."""
        return cls(
            jnp.full((quantities, episodes), jnp.inf), jnp.full((quantities, episodes), -jnp.inf)
        )

    @property
    def episodes(self) -> int:
        """M."""
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

    def widened(self, other: "Reach") -> "Reach":
        """At every value the larger of the two numbers that reach it, each side by itself.

        The larger of two survival functions has the larger of their quantiles.
        """
        return Reach(
            jnp.minimum(self.lowest, other.lowest), jnp.maximum(self.highest, other.highest)
        )


class Extremes(eqx.Module):
    """Which expert went how far, and when: owners of the values of a `Reach`, in its order."""

    lowest_expert: Int[Array, "Q N"]
    lowest_step: Int[Array, "Q N"]
    highest_expert: Int[Array, "Q N"]
    highest_step: Int[Array, "Q N"]


class ReachModel(eqx.Module):
    """Beta(alpha, beta) over the feasibility of a step.

    Fields:
        inputs: the sizes of steps; their scales do not matter to counts.
        experts: how far each went.
        extremes: who they are.
        tempted: how far episodes of past policies went, at their widest.
    """

    inputs: Inputs
    experts: Reach
    extremes: Extremes
    tempted: Reach
    reading: Reading = eqx.field(static=True)

    def votes(self, observations: Float[Array, "*n Q"]) -> Float[Array, "*n Q"]:
        """Votes for each quantity of a step, or minus those against it where there are none."""
        visited = self.experts.passing(observations).astype(jnp.float32)
        lowest, highest = self.furthest
        below = (self.tempted.lowest < lowest[:, None]).sum(axis=1)
        above = (self.tempted.highest > highest[:, None]).sum(axis=1)
        tempted = self.tempted.passing(observations)
        tempted = jnp.where(observations < lowest, below, tempted)
        tempted = jnp.where(observations > highest, above, tempted)
        share = tempted / self.tempted.episodes
        return jnp.where(visited > 0, visited, -self.experts.episodes * share)

    @property
    def furthest(self) -> tuple[Float[Array, " Q"], Float[Array, " Q"]]:
        """The lowest and the highest value of any expert."""
        return self.experts.lowest.min(axis=1), self.experts.highest.max(axis=1)

    def beyond(self, observations: Float[Array, "*n Q"]) -> Float[Array, "*n"]:
        """How far a step is beyond all experts, at most over the quantities that are doubted.

        In units of how far the experts are apart there.
        """
        lowest, highest = self.furthest
        away = jnp.maximum(lowest - observations, observations - highest)
        width = jnp.maximum(highest - lowest, jnp.finfo(jnp.float32).tiny)
        doubted = (self.votes(observations) < 0) & (away > 0)
        return jnp.where(doubted, away / width, 0.0).max(axis=-1)

    def belief(
        self, observations: Float[Array, "*n Q"]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Alpha and beta of every step."""
        return belief_of(self.votes(observations).min(axis=-1))

    def feasibility(
        self,
        observations: Float[Array, "*n Q"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """Feasibility at the confidence, by the reading."""
        del actions
        return feasibility(*self.belief(observations), confidence, self.reading)

    def cost(
        self,
        observations: Float[Array, "*n Q"],
        actions: Shaped[Array, "..."],
        confidence: Array | float,
    ) -> Float[Array, "*n"]:
        """1 - feasibility."""
        return 1 - self.feasibility(observations, actions, confidence)

    def costs(
        self, observations: Float[Array, "*n Q"], confidence: Array | float
    ) -> Float[Array, "*n Q"]:
        """What every quantity of a step costs a policy that learns.

        As 1 - feasibility, but that values where no expert went and no policy wants to go cost
        nothing: trials lead there, and as soon as they become intentions, it costs.
        """
        votes = self.votes(observations)
        return jnp.where(
            votes == 0, 0.0, 1 - feasibility(*belief_of(votes), confidence, self.reading)
        )

    def rules(self, confidence: float) -> list[Rule]:
        """The sides that at least one expert speaks against, the strongest evidence first.

        Strong is what many speak against, and where policies would go far beyond the experts,
        compared with how much these differ in where they turned back: those who keep a limit
        turn back at one place, those who have habits do not.
        """
        number, found_rules = self.experts.episodes, []
        sides: tuple[tuple[Literal["below", "above"], Any, Any], ...] = (
            ("below", self.experts.lowest, self.tempted.lowest),
            # Turned round, the highest are the lowest.
            ("above", -self.experts.highest[:, ::-1], -self.tempted.highest[:, ::-1]),
        )
        for side, reached, wanted in sides:
            for quantity, (ends, tempting) in enumerate(
                zip(np.asarray(reached), np.asarray(wanted), strict=True)
            ):
                beyond = tempting[tempting < ends[0]]
                against = number * len(beyond) / len(tempting)
                found = limit_of(ends, against, confidence)
                if against < 1 or found is None:
                    continue
                limit, experts = found
                value = limit if side == "below" else -limit
                spread = max(float(np.std(ends)), float(np.finfo(np.float32).tiny))
                far = float(ends[0] - beyond.mean()) / spread
                rule = Rule(quantity, side, value, experts, against)
                found_rules.append((against * far / (1 + far), rule))
        return [rule for _, rule in sorted(found_rules, key=lambda pair: -pair[0])]

    def evidence(self, observations: np.ndarray, actions: np.ndarray, *, most: int) -> Evidence:
        """Votes on each step's least supported quantity, and the experts who went furthest there.

        Those are on the side of it that fewer experts went to. Each who reached the value has an
        equal share of the votes; the weight of those who did not is 0.
        """
        del actions
        seen = jnp.asarray(observations, jnp.float32)
        votes = self.votes(seen)
        worst = votes.argmin(axis=-1)
        alpha, beta = belief_of(jnp.take_along_axis(votes, worst[..., None], axis=-1)[..., 0])
        value = jnp.take_along_axis(seen, worst[..., None], axis=-1)
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
        return Evidence(*map(np.asarray, (alpha - 1, beta - 1, who, when, weight)))

    def shape(self) -> dict[str, Any]:
        """What `blank` needs to make a model like this one."""
        return {
            "experts": self.experts.episodes,
            "tempted": self.tempted.episodes,
            "reading": self.reading,
        }

    @classmethod
    def blank(cls, inputs: Inputs, shape: dict[str, Any]) -> "ReachModel":
        """A model to read a saved one into."""
        quantities, experts = inputs.centre.shape[0], shape["experts"]
        who = jnp.zeros((quantities, experts), jnp.int32)
        return cls(
            inputs=inputs,
            experts=Reach.nowhere(quantities, experts),
            extremes=Extremes(who, who, who, who),
            tempted=Reach.nowhere(quantities, shape["tempted"]),
            reading=shape["reading"],
        )


def belief_of(votes: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Alpha and beta of votes for, or of those against with a minus."""
    return 1 + jnp.maximum(votes, 0), 1 + jnp.maximum(-votes, 0)


def limit_of(
    ends: Float[np.ndarray, " N"], against: float, confidence: float
) -> tuple[float, int] | None:
    """The lowest value that is allowed at the confidence, and how many experts went as far.

    n visits make P(phi >= 1/2) = 1 - 2^-(n + 1), so that n >= -log2(1 - lambda) - 1 are wanted.
    Where none are, n votes against make it 2^-(n + 1): up to -log2(lambda) - 1 are borne, and
    there is no limit.
    """
    wanted = max(0, int(np.ceil(-np.log2(1 - confidence) - 1 - 1e-9)))
    if wanted == 0 and against <= -np.log2(confidence) - 1:
        return None
    # Beyond len(ends) nothing can be proved; what all of them reached is the best there is.
    place = min(max(wanted, 1), len(ends)) - 1
    return float(ends[place]), place + 1
