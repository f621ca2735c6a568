"""The method `counts`: votes are counted, without a gradient; and what methods of tables share."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tacit.argument_checks import check_choice, check_confidence
from tacit.control.planning import Dynamics, Plan, constrained_plan, visit_probability
from tacit.control.table_policy import TablePolicy
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.inference.confidence.belief import (
    COUNTED_VOTES,
    READINGS,
    CountedVotes,
    Reading,
    counted_votes,
    forward_budget,
    step_cost,
)
from tacit.inference.constraint import Constraint
from tacit.inference.counts.model import TableModel, VisitCounts, check_experts, visits_of
from tacit.inference.method import ExactMethod
from tacit.inference.result import Result
from tacit.precision import in_double_precision
from tacit.runs.settings_file import installed_versions

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
MOST_ROUNDS = 40
TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class TableMethod(ExactMethod):
    """What both methods of tables share.

    Fields:
        reading: how a confidence level reads the belief: `graded`, `hard` or `soft`; see
            `tacit.inference.confidence.belief`.
    """

    reading: Reading = "graded"

    heeds_confidence: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("reading", self.reading, READINGS)

    @property
    def visits_prove(self) -> bool:
        """Whether one visit proves that a query is allowed, also one by an expert who erred."""
        return False

    @abstractmethod
    def belief(
        self, dynamics: Dynamics, counts: VisitCounts, *, task: TabularTask, confidence: float
    ) -> Any:
        """Alpha, beta and more of one data set; pure, so that data sets may be a `vmap` axis.

        The confidence is lambda, for a belief that is trained for one.
        """

    @abstractmethod
    def facts(self, belief: Any) -> dict[str, float]:
        """What to tell of how the belief came about."""

    def constraint(self, task: TabularTask, alpha: Any, beta: Any, confidence: float) -> Constraint:
        """A belief about a task's queries as a constraint."""
        model = TableModel(
            alpha=np.asarray(alpha),
            beta=np.asarray(beta),
            reading=self.reading,
            budget=float(task.budget),
            number_of_actions=task.number_of_actions,
            rule_on=task.rule_on or "state",
        )
        return Constraint(
            model=model,
            confidence=float(confidence),
            spaces=model.spaces(),
            any_confidence=self.any_confidence,
            facts={"method": self.name, "task": task.name},
            names=("state",),
        )

    @in_double_precision
    def learn(
        self, task: TabularTask, demonstrations: Trajectories, confidence: float, seed: int
    ) -> Result:
        """The rule and the best policy that keeps it; `seed` is kept only, as nothing is drawn."""
        check_confidence(confidence)
        check_experts(demonstrations, proofs=self.visits_prove)
        visits, dynamics = visits_of(task, demonstrations), Dynamics.of(task)
        visitors, mean_visits = (visits > 0).sum(axis=0).astype(float), visits.mean(axis=0)
        counts = VisitCounts(visitors, mean_visits, len(visits)).as_arrays()
        belief = self.belief(dynamics, counts, task=task, confidence=confidence)
        constraint = self.constraint(task, belief.alpha, belief.beta, confidence)
        plan = forward_control(
            dynamics,
            jnp.asarray(belief.alpha),
            jnp.asarray(belief.beta),
            counts.mean_visits,
            float(confidence),
            task.budget,
            reading=self.reading,
            horizon=task.horizon,
        )
        model = constraint.model
        assert isinstance(model, TableModel)
        return Result(
            constraint=constraint,
            policy=TablePolicy(np.asarray(plan.policy)),
            metrics={
                **self.facts(belief),
                "learned_cost": float(plan.cost),
                "multiplier": float(plan.multiplier),
                "expert_cost": float(mean_visits @ model.costs(confidence)),
                "allowed_share": float(model.allowed(confidence).mean()),
            },
            settings=self.described(task, len(visits), confidence, seed),
            task=task,
        )

    def described(
        self, task: TabularTask, number: int, confidence: float, seed: int
    ) -> dict[str, Any]:
        """What was asked for, with `number` demonstrations."""
        return {
            "task": task.name,
            "method": self.name,
            "settings": self.settings(),
            "confidence": float(confidence),
            "seed": seed,
            "demonstrations": number,
            "versions": installed_versions(),
        }


@partial(jax.jit, static_argnames=("reading", "horizon"))
def forward_control(
    dynamics: Dynamics,
    alpha: jax.Array,
    beta: jax.Array,
    mean_visits: jax.Array,
    confidence: jax.Array | float,
    budget: jax.Array | float,
    *,
    reading: Reading,
    horizon: int,
) -> Plan:
    """The best policy under the constraint at a confidence: the forward step of Algorithm 1.

    With the soft reading even the experts' own steps cost something, so that its budget is stated
    relative to them: epsilon plus the cost of the mean demonstration. The other readings charge
    nothing for what the experts have proved and keep to epsilon.
    """
    states, actions, _ = dynamics.transitions.shape
    budget = forward_budget(budget, confidence)
    cost = step_cost(alpha, beta, confidence, reading, budget)
    if reading == "soft":
        budget = budget + (mean_visits * cost).sum()
    costs = jnp.broadcast_to(cost.reshape(states, -1), (states, actions))
    return constrained_plan(dynamics, costs, budget, horizon)


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
        self, dynamics: Dynamics, counts: VisitCounts, *, task: TabularTask, confidence: float
    ) -> CountedBelief:
        """Count the votes; see `count_votes`."""
        del confidence
        return count_votes(
            dynamics,
            counts.visitors,
            counts.number,
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


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Alpha and beta for each confidence level and data set: [L, D, X]."""

    alpha: np.ndarray
    beta: np.ndarray


@in_double_precision
def learn_beliefs(
    task: TabularTask, counts: VisitCounts, confidences: np.ndarray, method: TableMethod
) -> Beliefs:
    """One belief per data set, repeated for every confidence if it serves all of them."""
    dynamics = Dynamics.of(task)
    levels = confidences[:1] if method.any_confidence else confidences
    alphas, betas = [], []
    for level in levels:
        learn = partial(method.belief, dynamics, task=task, confidence=float(level))
        belief = jax.vmap(learn, in_axes=(VisitCounts(0, 0, None),))(counts.as_arrays())
        alphas.append(np.asarray(belief.alpha))
        betas.append(np.asarray(belief.beta))
    shape = (len(confidences), *alphas[0].shape)
    return Beliefs(
        np.broadcast_to(np.stack(alphas), shape), np.broadcast_to(np.stack(betas), shape)
    )


@in_double_precision
def plan_policies(
    task: TabularTask,
    counts: VisitCounts,
    beliefs: Beliefs,
    confidences: np.ndarray,
    reading: Reading,
) -> jax.Array:
    """The best policy under each constraint: [L, D, H, S, A]."""
    control = partial(forward_control, reading=reading, horizon=task.horizon)
    over_sets = jax.vmap(control, in_axes=(None, 0, 0, 0, None, None))
    over_levels = jax.vmap(over_sets, in_axes=(None, 0, 0, None, 0, None))
    return over_levels(
        Dynamics.of(task),
        jnp.asarray(beliefs.alpha),
        jnp.asarray(beliefs.beta),
        jnp.asarray(counts.mean_visits),
        jnp.asarray(confidences),
        task.budget,
    ).policy
