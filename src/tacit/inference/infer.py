"""From demonstrations to a constraint and a policy, by any method."""

import warnings

import jax.numpy as jnp
import numpy as np

from tacit.constraints.tabular_constraint import TabularConstraint
from tacit.constraints.votes import visits_of
from tacit.control.constrained_planning import Dynamics, Plan
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask, check_tabular
from tacit.errors import ArgumentError
from tacit.inference.ca_icrl import (
    CAICRL,
    Objective,
    Reading,
    Votes,
    fitting_votes,
    forward_control,
    learn_constraint,
)
from tacit.inference.result import Result
from tacit.precision import in_double_precision
from tacit.runs import versions

METHODS = ("ca-icrl",)


@in_double_precision
def infer(
    task: TabularTask,
    demonstrations: Trajectories,
    *,
    method: str = "ca-icrl",
    confidence: float = 0.8,
    seed: int = 0,
    objective: Objective = "counts",
    votes: Votes | None = None,
    reading: Reading = "graded",
) -> Result:
    """Learn the rule that the experts obeyed, and the best policy that keeps it.

    Args:
        task: the task, whose true costs are not looked at.
        demonstrations: what the experts did.
        method: `ca-icrl`.
        confidence: how sure the constraint must be at least as tight as the truth, in (0, 1).
        seed: kept with the result; learning on a tabular task draws no random numbers.
        objective: see `tacit.inference.ca_icrl.CAICRL`.
        votes: likewise; by default those that go with the objective.
        reading: likewise.
    """
    check_tabular(task)
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    votes = votes or fitting_votes(objective)
    chosen = CAICRL(objective=objective, votes=votes, reading=reading)
    check_demonstrations(demonstrations, votes)
    constraint, facts = learn_constraint(task, demonstrations, confidence, chosen)
    mean_visits = visits_of(task, demonstrations).mean(axis=0)
    plan = plan_under(task, constraint, mean_visits)
    return Result(
        constraint=constraint,
        policy=np.asarray(plan.policy),
        metrics={
            **facts,
            "learned_cost": float(plan.cost),
            "multiplier": float(plan.multiplier),
            "expert_cost": float(mean_visits @ constraint.cost_map()),
            "allowed_share": float(constraint.allowed_map().mean()),
        },
        settings={
            "method": method,
            "objective": objective,
            "votes": votes,
            "reading": reading,
            "confidence": float(confidence),
            "seed": seed,
            "demonstrations": len(demonstrations),
            "versions": versions.installed(),
        },
        task=task,
    )


def plan_under(task: TabularTask, constraint: TabularConstraint, mean_visits: np.ndarray) -> Plan:
    """The best policy under the constraint at its own confidence."""
    return forward_control(
        Dynamics.of(task),
        jnp.asarray(constraint.alpha),
        jnp.asarray(constraint.beta),
        jnp.asarray(mean_visits),
        constraint.confidence,
        task.budget,
        reading=constraint.reading,
        horizon=task.horizon,
    )


def check_demonstrations(demonstrations: Trajectories, votes: Votes) -> None:
    """They must be demonstrations; a warning if they show violations that would count as proof."""
    if not isinstance(demonstrations, Trajectories):
        raise ArgumentError(f"demonstrations must be Trajectories, not {type(demonstrations)}")
    if votes == "visits" and demonstrations.costs is not None and demonstrations.violated.any():
        warnings.warn(
            f"{demonstrations.violated.sum()} demonstrations have steps with a cost, which votes "
            "'visits' takes as proof that they are allowed: leave them out (take), or use "
            "votes='visits-fallible'",
            stacklevel=3,
        )
