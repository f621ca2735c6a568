"""Experts of tabular tasks: exact policies, and episodes sampled from them."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from tacit.control.planning import Dynamics, constrained_plan, occupancy, violation_probability
from tacit.environments.tabular import TabularTask
from tacit.errors import TaskError
from tacit.precision import in_double_precision

MOST_ATTEMPTS_PER_EPISODE = 1000


@in_double_precision
def optimal_policy(task: TabularTask) -> tuple[np.ndarray, dict[str, float]]:
    """Plan the optimal policy [H, S, A] under the true cost and the task's budget (equation 4).

    Returns:
        The policy, and its exact violation, reward and multiplier.
    """
    dynamics = Dynamics.of(task)
    costs = jnp.asarray(task.costs)
    plan = constrained_plan(dynamics, costs, task.budget, task.horizon)
    pairs = occupancy(dynamics.transitions, dynamics.initial, plan.policy)
    violation = violation_probability(dynamics.transitions, dynamics.initial, plan.policy, costs)
    return np.asarray(plan.policy), {
        "violation": float(violation),
        "reward": float((pairs * dynamics.rewards).sum()),
        "multiplier": float(plan.multiplier),
    }


def feasible_episodes(
    task: TabularTask,
    policy: np.ndarray,
    number: int,
    *,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, np.ndarray], int]:
    """Sample until `number` episodes obey the rule: their arrays, and the number of the others.

    `policy` [H, S, A] holds probabilities; `progress` is told the number of episodes kept so far.
    """
    generator = np.random.default_rng(seed)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    have = attempts = 0
    while have < number:
        batch = max(64, int(1.2 * (number - have)))
        states, actions = roll_out(task, policy, batch, generator)
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
    episodes = {
        "observations": states[:, :, None],
        "actions": actions[:, :, None],
        "rewards": task.rewards[states[:, :-1], actions],
        "costs": task.costs[states[:, :-1], actions],
        "lengths": np.full(number, task.horizon),
    }
    return episodes, attempts - number


def roll_out(
    task: TabularTask, policy: np.ndarray, number: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sample episodes of a policy [H, S, A]: states [number, H + 1], actions [number, H]."""
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
    """Draw an index for each row of cumulative probabilities, never one of probability zero."""
    level = generator.random((len(thresholds), 1)) * thresholds[:, -1:]
    return (level >= thresholds).sum(axis=1)
