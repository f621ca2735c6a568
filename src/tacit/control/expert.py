"""Experts: optimal under the true rule, and the demonstrations they leave behind."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import tacit.runs.versions as versions
from tacit.control.constrained_planning import Dynamics, constrained_plan
from tacit.control.soft_planning import occupancy, violation_probability
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, TaskError
from tacit.precision import in_double_precision

MOST_ATTEMPTS_PER_EPISODE = 1000


@dataclass(frozen=True, eq=False)
class Expert:
    """A policy for a tabular task, with what is known about it.

    Fields:
        task: what it acts on.
        policy: [H, S, A] action probabilities for every step.
        violation: exact probability that an episode violates the true rule.
        reward: exact expected reward of an episode.
        multiplier: the price of a violated step that the policy is optimal for.
    """

    task: TabularTask
    policy: np.ndarray
    violation: float
    reward: float
    multiplier: float


@in_double_precision
def train_expert(task: TabularTask, *, seed: int = 0) -> Expert:
    """The optimal policy under the true cost and the task's budget (equation 4).

    On a tabular task this is exact, so that `seed` does not matter; it is there because the
    experts of other tasks are trained.
    """
    del seed
    dynamics = Dynamics.of(task)
    costs = jnp.asarray(task.costs)
    plan = constrained_plan(dynamics, costs, task.budget, task.horizon)
    pairs = occupancy(dynamics.transitions, dynamics.initial, plan.policy)
    violation = violation_probability(dynamics.transitions, dynamics.initial, plan.policy, costs)
    return Expert(
        task=task,
        policy=np.asarray(plan.policy),
        violation=float(violation),
        reward=float((pairs * dynamics.rewards).sum()),
        multiplier=float(plan.multiplier),
    )


def collect(
    expert: Expert,
    number: int,
    *,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Trajectories:
    """Roll the expert out until `number` episodes are feasible; the others are discarded.

    The provenance of the result tells how many were discarded. `progress` is told the number of
    feasible episodes so far.
    """
    check_request(number, seed)
    task = expert.task
    generator = np.random.default_rng(seed)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    have = attempts = 0
    while have < number:
        batch = max(64, int(1.2 * (number - have)))
        states, actions = roll_out(task, expert.policy, batch, generator)
        feasible = ~(task.costs[states[:, :-1], actions] > 0).any(axis=1)
        kept.append((states[feasible], actions[feasible]))
        position = np.flatnonzero(feasible)
        enough = have + len(position) >= number
        attempts += int(position[number - have - 1]) + 1 if enough else batch
        have += len(position)
        if progress is not None:
            progress(min(have, number))
        if attempts > MOST_ATTEMPTS_PER_EPISODE * number:
            raise TaskError(
                f"only {have} of {attempts} episodes on {task.name} obey the rule: "
                "too few to collect demonstrations from"
            )
    states = np.concatenate([states for states, _ in kept])[:number]
    actions = np.concatenate([actions for _, actions in kept])[:number]
    return Trajectories(
        observations=states[:, :, None],
        actions=actions[:, :, None],
        rewards=task.rewards[states[:, :-1], actions],
        costs=task.costs[states[:, :-1], actions],
        lengths=np.full(number, task.horizon),
        provenance={
            "task": task.name,
            "seed": seed,
            "feasible": number,
            "discarded": attempts - number,
            "expert_violation": expert.violation,
            "expert_reward": expert.reward,
            "versions": versions.installed(),
        },
    )


def check_request(number: int, seed: int) -> None:
    """A number of demonstrations and a seed that make sense."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ArgumentError(f"number must be a whole number of at least 1, not {number!r}")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0, not {seed!r}")


def roll_out(
    task: TabularTask, policy: np.ndarray, number: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sample episodes: states [number, H + 1] and actions [number, H]."""
    action_thresholds = policy.cumsum(axis=2)
    state_thresholds = task.transitions.cumsum(axis=2)
    states = np.zeros((number, task.horizon + 1), dtype=np.int64)
    actions = np.zeros((number, task.horizon), dtype=np.int64)
    states[:, 0] = generator.choice(task.number_of_states, size=number, p=task.initial)
    for step in range(task.horizon):
        here = states[:, step]
        actions[:, step] = draw(action_thresholds[step, here], generator)
        states[:, step + 1] = draw(state_thresholds[here, actions[:, step]], generator)
    return states, actions


def draw(thresholds: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One index per row of cumulative probabilities; an index of probability zero never comes."""
    level = generator.random((len(thresholds), 1)) * thresholds[:, -1:]
    return (level >= thresholds).sum(axis=1)
