"""The method `counts`: votes are counted, without a gradient, for every confidence at once."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tacit.argument_checks import check_choice
from tacit.control.planning import Dynamics, constrained_plan, visit_probability
from tacit.environments.tabular import TabularTask
from tacit.inference.confidence.belief import step_cost
from tacit.inference.confidence.votes import COUNTED_VOTES, CountedVotes, counted_votes
from tacit.inference.counts.method import TableMethod

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
MOST_ROUNDS = 40
TOLERANCE = 1e-3


class CountedBelief(NamedTuple):
    """What counting the votes ends in."""

    alpha: Float[Array, " X"]
    beta: Float[Array, " X"]
    tempted: Float[Array, " X"]
    """The largest probability, over all rounds, with which a policy visited the query."""
    rounds: Array
    """How many rounds it took until no policy found a new way."""


@dataclass(frozen=True, kw_only=True)
class Counts(TableMethod):
    """The method `counts`, the default on tables: votes are counted, and nothing is trained.

    Fields:
        votes: "visits": a state that one expert visited is allowed. "visits-fallible": experts may
            err, and those who stayed away speak against a state even where others went.
    """

    votes: CountedVotes = "visits"

    name: ClassVar[str] = "counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("votes", self.votes, COUNTED_VOTES)

    @property
    def visits_prove(self) -> bool:
        """Unless experts may err."""
        return self.votes == "visits"

    @property
    def any_confidence(self) -> bool:
        """Confidence is used after counting."""
        return True

    def belief(
        self,
        dynamics: Dynamics,
        visitors: Array,
        mean_visits: Array,
        number: float,
        *,
        task: TabularTask,
        confidence: float,
    ) -> CountedBelief:
        """Count the votes; see `count_votes`."""
        del mean_visits, confidence
        return count_votes(
            dynamics,
            visitors,
            number,
            task.budget,
            horizon=task.horizon,
            on_pairs=task.rule_on == "pair",
            votes=self.votes,
        )

    def facts(self, belief: CountedBelief) -> dict[str, float]:
        """How many rounds it took until no policy found a new way."""
        return {"rounds": float(belief.rounds)}


@partial(jax.jit, static_argnames=("horizon", "on_pairs", "votes"))
def count_votes(
    dynamics: Dynamics,
    visitors: Float[Array, " X"],
    number: Array | float,
    budget: Array | float,
    *,
    horizon: int,
    on_pairs: bool,
    votes: CountedVotes,
) -> CountedBelief:
    """Algorithm 1 of the paper, but votes are counted instead of learned.

    repeat
        1. forward control: for each of five confidence levels, the optimal policy under the
           constraint read off the present belief;
        2. every query that one of these policies visits is tempting: the experts would have come,
           had it been allowed. `tempted` keeps the largest such probability of all rounds;
        3. alpha and beta from visitors and from those who were tempted and stayed away
    until no policy finds a new way.

    The first policy is unconstrained. `tempted` never falls: if the evidence against a forbidden
    query faded because nobody goes there any more, the game would cycle.
    """
    states, actions, _ = dynamics.transitions.shape

    def visits_at(confidence: Array, alpha: Array, beta: Array) -> Array:
        costs = step_cost(alpha, beta, confidence, "graded", budget).reshape(states, -1)
        costs = jnp.broadcast_to(costs, (states, actions))
        return visits_under(constrained_plan(dynamics, costs, budget, horizon).policy)

    def visits_under(policy: Array) -> Array:
        return visit_probability(dynamics.transitions, dynamics.initial, policy, on_pairs=on_pairs)

    def next_round(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tempted, _, rounds = carry
        alpha, beta = counted_votes(visitors, number, tempted, votes)
        levels = jnp.asarray(LEVELS, dtype=tempted.dtype)
        visits = jax.vmap(visits_at, in_axes=(0, None, None))(levels, alpha, beta)
        updated = jnp.maximum(tempted, visits.max(axis=0))
        matters = (visitors == 0) | (votes != "visits")
        change = jnp.where(matters, updated - tempted, 0.0).max()
        return updated, change, rounds + 1

    free = constrained_plan(dynamics, jnp.zeros_like(dynamics.rewards), jnp.inf, horizon)
    start = (visits_under(free.policy), jnp.asarray(jnp.inf), jnp.asarray(0))
    tempted, _, rounds = jax.lax.while_loop(
        lambda carry: (carry[1] > TOLERANCE) & (carry[2] < MOST_ROUNDS), next_round, start
    )
    alpha, beta = counted_votes(visitors, number, tempted, votes)
    return CountedBelief(alpha, beta, tempted, rounds)
