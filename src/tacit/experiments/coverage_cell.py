"""One task and one number of demonstrations of the coverage experiment."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacit.control.expert import Expert
from tacit.control.planning import Dynamics
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.evaluation.coverage import distance_to_oracle, joint_coverage, pointwise_coverage
from tacit.evaluation.intervals import mean_intervals
from tacit.evaluation.violation import performance_of
from tacit.inference.confidence.belief import Reading, feasibility
from tacit.inference.counts.counts import Beliefs, TableMethod, learn_beliefs, plan_policies
from tacit.inference.counts.model import VisitCounts, visits_of
from tacit.inference.counts.posterior import ExactPosterior, RuleExperts, action_counts, posteriors
from tacit.precision import in_double_precision


@dataclass(frozen=True, eq=False)
class Setting:
    """The parts that all cells of one task share."""

    task: TabularTask
    expert: Expert
    reachable: np.ndarray
    rule_experts: RuleExperts
    confidences: np.ndarray


def measure(
    setting: Setting, data_sets: list[Trajectories], methods: list[TableMethod]
) -> list[dict[str, Any]]:
    """Rows of the table for every method and confidence."""
    visits = [visits_of(setting.task, data) for data in data_sets]
    counts = VisitCounts.of_visits(visits)
    oracle = posteriors(
        setting.rule_experts,
        np.stack([action_counts(setting.task, data) for data in data_sets]),
        np.stack([steps.any(axis=0) for steps in visits]),
        np.full(len(data_sets), counts.number),
    )
    learned: dict[TableMethod, Beliefs] = {}
    rows = []
    for method in methods:
        learner = replace(method, reading="graded")
        if learner not in learned:
            learned[learner] = learn_beliefs(setting.task, counts, setting.confidences, learner)
        rows += rows_of(setting, counts, oracle, method, learned[learner])
    return rows


def rows_of(
    setting: Setting,
    counts: VisitCounts,
    oracle: ExactPosterior,
    method: TableMethod,
    beliefs: Beliefs,
) -> list[dict[str, Any]]:
    """The rows of one method, one per confidence."""
    task, confidences = setting.task, setting.confidences
    violation, reward = performances(task, counts, beliefs, confidences, method.reading)
    allowed = allowed_sets(beliefs, confidences)
    centre, low, high = mean_intervals(violation)
    rows = []
    for level, confidence in enumerate(confidences):
        truth = (task.allowed, setting.reachable)
        distance = distance_to_oracle(allowed[level], oracle.allowed(confidence), setting.reachable)
        rows.append(
            {
                "task": task.name,
                "objective": method.settings().get("objective", method.name),
                "votes": method.settings()["votes"],
                "reading": method.reading,
                "experts": counts.number,
                "confidence": float(confidence),
                "datasets": len(counts.visitors),
                "violation": float(centre[level]),
                "violation_low": float(low[level]),
                "violation_high": float(high[level]),
                "reward": float(reward[level].mean()),
                "joint_coverage": joint_coverage(allowed[level], *truth).value,
                "pointwise_coverage": pointwise_coverage(allowed[level], *truth).value,
                "distance_to_oracle": float(distance.mean()),
            }
        )
    return rows


@in_double_precision
def performances(
    task: TabularTask,
    counts: VisitCounts,
    beliefs: Beliefs,
    confidences: np.ndarray,
    reading: Reading,
) -> tuple[np.ndarray, np.ndarray]:
    """Exact violation and reward of the policy for every confidence and data set: [L, D]."""
    policies = plan_policies(task, counts, beliefs, confidences, reading)
    violation, reward, _ = judge(Dynamics.of(task), jnp.asarray(task.costs), policies)
    return np.asarray(violation), np.asarray(reward)


@jax.jit
def judge(dynamics: Dynamics, costs: jax.Array, policies: jax.Array) -> tuple:
    """Violation, reward and feasible reward of policies [L, D, H, S, A]."""
    one = partial(performance_of, dynamics.transitions, dynamics.initial, dynamics.rewards, costs)
    return jax.vmap(jax.vmap(one))(policies)


@in_double_precision
def allowed_sets(beliefs: Beliefs, confidences: np.ndarray) -> np.ndarray:
    """Which queries are allowed at every confidence, phi* >= 1/2, in every reading: [L, D, X]."""
    levels = jnp.asarray(confidences)[:, None, None]
    alpha, beta = jnp.asarray(beliefs.alpha), jnp.asarray(beliefs.beta)
    return np.asarray(feasibility(alpha, beta, levels, "hard") > 0)
