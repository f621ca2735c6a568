"""How good is a result against the truth."""

from dataclasses import dataclass

import numpy as np

from tacit.control.tabular_expert import roll_out
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate
from tacit.evaluation.violation import (
    episode_reward,
    exact_performance,
    feasible_reward,
    violation_rate,
)
from tacit.inference.result import Result


@dataclass(frozen=True)
class Evaluation:
    """Violation of the true rule and reward, with 95 % intervals.

    Fields:
        violation: share of episodes with at least one violated step.
        reward: reward of an episode.
        feasible_reward: reward of an episode, 0 if it violates.
        episodes: how many were rolled out; none when the numbers are exact.
    """

    violation: Estimate
    reward: Estimate
    feasible_reward: Estimate
    episodes: int | None = None


def evaluate(
    result: Result,
    task: TabularTask | None = None,
    *,
    episodes: int | None = None,
    seed: int = 51,
) -> Evaluation:
    """The result's policy on `task` (its own unless given), judged by the true rule.

    Exact by default: the intervals then have no width. With `episodes`, by rolling out that many,
    as one has to do on tasks without exact dynamics.
    """
    task = task or result.task
    expected = (task.horizon, task.number_of_states, task.number_of_actions)
    if result.policy.shape != expected:
        raise ArgumentError(
            f"a policy of the shape {list(result.policy.shape)} does not fit {task.name}, "
            f"which needs {list(expected)}"
        )
    if episodes is None:
        exact = exact_performance(task, result.policy)
        return Evaluation(
            Estimate.exact(exact.violation),
            Estimate.exact(exact.reward),
            Estimate.exact(exact.feasible_reward),
        )
    if episodes < 2:
        raise ArgumentError(f"episodes must be at least 2 for an interval, not {episodes}")
    states, actions = roll_out(task, result.policy, episodes, np.random.default_rng(seed))
    rolled = Trajectories(
        observations=states[:, :, None],
        actions=actions[:, :, None],
        rewards=task.rewards[states[:, :-1], actions],
        costs=task.costs[states[:, :-1], actions],
        lengths=np.full(episodes, task.horizon),
    )
    return Evaluation(
        violation_rate(rolled), episode_reward(rolled), feasible_reward(rolled), episodes
    )
