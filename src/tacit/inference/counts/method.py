"""Confidence Aware Inverse Constrained Reinforcement Learning (Algorithm 1) on tabular tasks."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from tacit.control.planning import Dynamics, Plan, constrained_plan
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.inference.confidence.belief import READINGS, Reading, forward_budget, step_cost
from tacit.inference.confidence.quantile_table import QuantileTable
from tacit.inference.confidence.votes import COUNTED_VOTES, LEARNED_VOTES, visits_of
from tacit.inference.counts.counted import count_votes
from tacit.inference.counts.likelihood import learn_votes
from tacit.inference.counts.model import TabularConstraint, check_confidence

Objective = Literal["counts", "evidence", "quantile"]
Votes = Literal["visits", "visits-fallible", "independent", "abstain"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def fitting_votes(objective: Objective) -> Votes:
    """The votes to use with an objective unless others are asked for."""
    return "visits" if objective == "counts" else "independent"


@dataclass(frozen=True)
class TabularCAICRL:
    """How CA-ICRL learns in the lab; the defaults are those that kept the promise best.

    Fields:
        objective: `counts` counts the votes (no gradient); `evidence` and `quantile` learn them
            with the variational bound or with the paper's equation 8.
        votes: `visits` or `visits-fallible` are counted, `independent` or `abstain` learned.
        reading: how a confidence level reads the belief: `graded`, `hard` or `soft`.
    """

    objective: Objective = "counts"
    votes: Votes = "visits"
    reading: Reading = "graded"

    def __post_init__(self) -> None:
        for field, value, choices in (
            ("objective", self.objective, OBJECTIVES),
            ("votes", self.votes, (*COUNTED_VOTES, *LEARNED_VOTES)),
            ("reading", self.reading, READINGS),
        ):
            if value not in choices:
                raise ArgumentError(f"{field} must be one of {', '.join(choices)}, not {value!r}")
        fitting = COUNTED_VOTES if self.objective == "counts" else LEARNED_VOTES
        if self.votes not in fitting:
            raise ArgumentError(
                f"objective {self.objective!r} goes with votes {' or '.join(fitting)}, "
                f"not {self.votes!r}"
            )

    @property
    def any_confidence(self) -> bool:
        """Whether one trained belief serves every confidence."""
        return self.objective != "quantile"


def learn_constraint(
    task: TabularTask, demonstrations: Trajectories, confidence: float, method: TabularCAICRL
) -> tuple[TabularConstraint, dict[str, float]]:
    """The belief from the demonstrations, read at `confidence`; call in double precision."""
    check_confidence(confidence)
    visits = visits_of(task, demonstrations)
    belief = belief_from(
        Dynamics.of(task),
        jnp.asarray((visits > 0).sum(axis=0).astype(float)),
        jnp.asarray(visits.mean(axis=0)),
        float(len(visits)),
        task=task,
        confidence=confidence,
        method=method,
    )
    constraint = constraint_of(task, belief.alpha, belief.beta, confidence, method)
    facts = (
        {"rounds": float(belief.rounds)}
        if method.objective == "counts"
        else {"visit_gap": float(belief.gap)}
    )
    return constraint, facts


def constraint_of(
    task: TabularTask,
    alpha: jax.Array | np.ndarray,
    beta: jax.Array | np.ndarray,
    confidence: float,
    method: TabularCAICRL,
) -> TabularConstraint:
    """A belief about a task's queries as a constraint."""
    return TabularConstraint(
        alpha=np.asarray(alpha),
        beta=np.asarray(beta),
        confidence=float(confidence),
        reading=method.reading,
        budget=task.budget,
        number_of_actions=task.number_of_actions,
        rule_on=task.rule_on or "state",
        any_confidence=method.any_confidence,
    )


def belief_from(dynamics, visitors, mean_visits, number, *, task, confidence, method):
    """Count or learn the votes of one data set; pure, so that data sets may be a `vmap` axis."""
    if method.objective == "counts":
        return count_votes(
            dynamics,
            visitors,
            number,
            task.budget,
            horizon=task.horizon,
            on_pairs=task.rule_on == "pair",
            votes=method.votes,
        )
    table = QuantileTable.build(1 - confidence) if method.objective == "quantile" else None
    return learn_votes(
        dynamics,
        visitors,
        mean_visits,
        number,
        horizon=task.horizon,
        votes=method.votes,
        table=table,
    )


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
