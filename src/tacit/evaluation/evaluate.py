"""How good is a result against the truth."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from tacit.argument_checks import check_count
from tacit.control.tabular_expert import roll_out
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.execution import SimulatedOutcome, executed, simulated_task, summed
from tacit.evaluation.intervals import Estimate, mean_interval, rate_interval
from tacit.evaluation.violation import exact_performance
from tacit.inference.constraint import LearnedConstraint
from tacit.inference.ending import breaks
from tacit.inference.result import Result

EXECUTED_EPISODES = 100


@dataclass(frozen=True)
class Evaluation:
    """Violation of the true rule and reward, with 95 % intervals.

    Fields:
        violation: share of episodes with at least one violated step; NaN, as is what depends on it,
            where the true rule is unknown.
        reward: reward of an episode.
        feasible_reward: reward of an episode, 0 if it violates.
        episodes: how many were rolled out; none when the numbers are exact.
        training: the same for the last episodes of training, with exploration, on simulated tasks.
            Its intervals take the episodes as independent, which they are only nearly: the policy
            went on learning between them.
        rule_violation: share of the same episodes that break the *learned* rule, which can be told
            where nobody knows the true one: above one minus the confidence, nothing shows that the
            promise is kept. None where nothing is promised or all is exact, or where whole
            trajectories are judged.
    """

    violation: Estimate
    reward: Estimate
    feasible_reward: Estimate
    episodes: int | None = None
    training: "Evaluation | None" = None
    rule_violation: Estimate | None = None


def evaluate(
    result: Result | SimulatedOutcome,
    task: TabularTask | SimulatedTask | None = None,
    *,
    episodes: int | None = None,
    seed: int = 51,
    threads: int | None = None,
) -> Evaluation:
    """The result's policy on `task` (its own unless given), judged by the true rule.

    On tabular tasks exact by default: the intervals then have no width. With `episodes`, by rolling
    out that many, as one has to do on tasks without exact dynamics.

    On simulated tasks this is the paper's *execution phase*: no learning, no exploration, fresh
    episodes on the true task. Episode i draws all its randomness from `seed + i`. The paper trains
    on seeds 1 to 50 and executes on 51 to 100, which we read as one episode per seed: that is
    `episodes=50, seed=51`. What training looked like at its end comes along as `training`.

    Arguments:
        result: from `tacit.infer` or `tacit.load`.
        task: of the same sizes as the one it was learned on; needed where a loaded result could
            not make its task again.
        episodes: how many; by default 100 on simulated tasks, none (exact) on tabular ones.
        seed: of the episodes.
        threads: for the simulator, None for all cores; it does not change the numbers.
    """
    if isinstance(result, Result):
        return evaluate_tabular(result, result.task if task is None else task, episodes, seed)
    chosen = simulated_task(result, task)
    number = EXECUTED_EPISODES if episodes is None else check_episodes(episodes)
    rule = learned_rule(result)
    rows, broken = [], []
    for part in executed(chosen, result.policy, episodes=number, seed=seed, threads=threads):
        rows.append(summed(part))
        broken.append(breaks(part, rule) if rule else [])
    training, against = result.training, np.concatenate(broken)
    return replace(
        summary(np.concatenate(rows)),
        training=summary(training) if training is not None and len(training) else None,
        rule_violation=rate_interval(int(against.sum()), number) if rule else None,
    )


def learned_rule(result: SimulatedOutcome) -> LearnedConstraint | None:
    """The constraint, if it is one whose confidence is a promise about every step."""
    rule = result.constraint
    if isinstance(rule, LearnedConstraint) and rule.promises and not rule.over_time:
        return rule
    return None


def evaluate_tabular(
    result: Result, task: TabularTask | SimulatedTask, episodes: int | None, seed: int
) -> Evaluation:
    """Exactly, or by rolling out episodes."""
    if not isinstance(task, TabularTask):
        raise ArgumentError(
            f"this result was learned on the tabular task {result.task.name}; its policy does not "
            f"fit {getattr(task, 'name', task)!r}, which is a {type(task).__name__}"
        )
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
    number = check_episodes(episodes)
    states, actions = roll_out(task, result.policy, number, np.random.default_rng(seed))
    pairs = states[:, :-1], actions
    rewards = task.rewards[pairs].sum(axis=1)
    violated = (task.costs[pairs] > 0).any(axis=1)
    lengths = np.full(number, task.horizon)
    return summary(np.stack([rewards, rewards * ~violated, violated, lengths], axis=1))


def summary(rows: Float[np.ndarray, "m 4"]) -> Evaluation:
    """Episodes (reward, feasible reward, violated, length) as means with their intervals."""
    rewards, feasible, violated, _ = np.asarray(rows, np.float64).T
    if np.isnan(violated).any():
        unknown = Estimate(np.nan, np.nan, np.nan)
        return Evaluation(unknown, mean_interval(rewards), unknown, len(rewards))
    return Evaluation(
        rate_interval(int((violated > 0).sum()), len(violated)),
        mean_interval(rewards),
        mean_interval(feasible),
        len(rewards),
    )


def check_episodes(episodes: int) -> int:
    """Enough episodes for an interval."""
    if isinstance(episodes, int) and episodes < 2:
        raise ArgumentError(f"episodes must be at least 2 for an interval, not {episodes}")
    return check_count("episodes", episodes)
