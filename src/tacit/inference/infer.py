"""From demonstrations to a constraint and a policy, by any method."""

import jax.numpy as jnp
import numpy as np

from tacit.constraints.votes import visits_of
from tacit.control.constrained_planning import Dynamics
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.inference.ca_icrl import (
    CAICRL,
    Objective,
    Reading,
    Votes,
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
    votes: Votes = "visits",
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
        votes: likewise.
        reading: likewise.
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    chosen = CAICRL(objective=objective, votes=votes, reading=reading)
    constraint, facts = learn_constraint(task, demonstrations, confidence, chosen)
    mean_visits = visits_of(task, demonstrations).mean(axis=0)
    plan = forward_control(
        Dynamics.of(task),
        jnp.asarray(constraint.alpha),
        jnp.asarray(constraint.beta),
        jnp.asarray(mean_visits),
        confidence,
        task.budget,
        reading=reading,
        horizon=task.horizon,
    )
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
