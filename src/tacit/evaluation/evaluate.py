"""How good is a result against the truth: exactly on tables, else by fresh episodes."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from tacit.argument_checks import check_count
from tacit.control.actor import Actor
from tacit.control.play import Episodes, as_function, play
from tacit.control.table_policy import TablePolicy
from tacit.control.tabular_expert import roll_out
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate, mean_interval, rate_interval
from tacit.evaluation.violation import exact_performance
from tacit.inference.final_policy import breaks
from tacit.inference.result import Result

EXECUTED_EPISODES = 100
WORLDS = 50
FIRST_EXECUTED = 51
"""The paper trains on seeds 1 to 50 and executes from here on."""


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
    result: Result,
    task: TabularTask | SimulatedTask | None = None,
    *,
    episodes: int | None = None,
    seed: int = 51,
    threads: int | None = None,
) -> Evaluation:
    """The result's policy on `task` (its own unless given), judged by the true rule.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> demonstrations = tacit.collect(tacit.train_expert(task), 20, seed=1)
    >>> evaluate(tacit.infer(task, demonstrations, confidence=0.9)).violation <= 0.1
    True

    The policy of a table is judged exactly by default: the intervals then have no width. With
    `episodes`, by rolling out that many, as one has to do on tasks without exact dynamics.

    All others go through the paper's *execution phase*: no learning, no exploration, fresh episodes
    on the true task. Episode i draws all its randomness from `seed + i`. The paper trains on seeds
    1 to 50 and executes on 51 to 100, which we read as one episode per seed: that is `episodes=50,
    seed=51`. What training looked like at its end comes along as `training`.

    Arguments:
        result: from `tacit.infer` or `tacit.load`.
        task: of the same sizes as the one it was learned on; needed where a loaded result could
            not make its task again.
        episodes: how many; by default 100, or none (exact) for the policy of a table.
        seed: of the episodes.
        threads: for the simulator, None for all cores; it does not change the numbers.
    """
    if isinstance(result.policy, TablePolicy):
        return evaluate_table(result.policy, task or result.task, episodes, seed)
    chosen = task_to_judge(result, task)
    number = EXECUTED_EPISODES if episodes is None else check_episodes(episodes)
    # Only where the confidence is a promise about every step.
    learned = result.constraint
    rule = learned if learned.promises and not learned.over_time else None
    rows, broken = [], []
    for part in executed(chosen, result.policy, episodes=number, seed=seed, threads=threads):
        rows.append(summed(part))
        broken.append(breaks(part, rule) if rule else [])
    training, against = result.training, np.concatenate(broken)
    return replace(
        summary(np.concatenate(rows)),
        training=summary(training) if len(training) else None,
        rule_violation=rate_interval(int(against.sum()), number) if rule else None,
    )


def evaluate_table(
    policy: TablePolicy, task: TabularTask | SimulatedTask | None, episodes: int | None, seed: int
) -> Evaluation:
    """Exactly, or by rolling out episodes."""
    if not isinstance(task, TabularTask):
        raise ArgumentError(
            "this policy is of a table and cannot be judged on "
            f"{getattr(task, 'name', task)!r}, which is a {type(task).__name__}"
        )
    expected = (task.horizon, task.number_of_states, task.number_of_actions)
    if policy.table.shape != expected:
        raise ArgumentError(
            f"a policy of the shape {list(policy.table.shape)} does not fit {task.name}, "
            f"which needs {list(expected)}"
        )
    if episodes is None:
        exact = exact_performance(task, policy.table)
        return Evaluation(
            Estimate.exact(exact.violation),
            Estimate.exact(exact.reward),
            Estimate.exact(exact.feasible_reward),
        )
    number = check_episodes(episodes)
    states, actions = roll_out(task, policy.table, number, np.random.default_rng(seed))
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


def execute(
    task: SimulatedTask,
    policy: Any,
    *,
    episodes: int = EXECUTED_EPISODES,
    seed: int = FIRST_EXECUTED,
    threads: int | None = None,
) -> Float[np.ndarray, "m 4"]:
    """Reward, feasible reward (0 if violated), violated and length of each episode."""
    played = executed(task, policy, episodes=episodes, seed=seed, threads=threads)
    return np.concatenate([summed(part) for part in played])


def executed(
    task: SimulatedTask, policy: Any, *, episodes: int, seed: int, threads: int | None = None
) -> Iterator[Episodes]:
    """So many episodes, some at a time.

    Episode i draws all its randomness from `seed + i`, whatever the number of threads. Episodes
    are played in up to 50 worlds at a time, the first of each world.
    """
    act = as_function(policy)
    number = min(episodes, WORLDS)
    with closing(task.worlds(number, threads=threads)) as worlds:
        for start in range(0, episodes, number):
            wanted = np.arange(min(number, episodes - start))
            yield play(worlds, act, seed=seed + start).chosen(wanted)


def summed(episodes: Episodes) -> Float[np.ndarray, "m 4"]:
    """One row for each episode, as in `Result.training`; NaN where nobody knows."""
    rewards = episodes.rewards.sum(axis=1, dtype=np.float64)
    violated = episodes.violated.astype(np.float64)
    if not episodes.costs.shape[-1]:
        violated[:] = np.nan
    return np.stack([rewards, rewards * (1 - violated), violated, episodes.lengths], axis=1)


def task_to_judge(result: Result, task: TabularTask | SimulatedTask | None) -> SimulatedTask:
    """The task to judge the result on: the one given, or its own; an error if it does not fit."""
    chosen = result.task if task is None else task
    if chosen is None:
        raise ArgumentError(
            "this result does not know its task (an environment of one's own cannot be saved): "
            "give the task, as in tacit.evaluate(result, task)"
        )
    if not isinstance(chosen, TabularTask | SimulatedTask):
        raise ArgumentError(
            "this result was learned on a simulated task and cannot be judged on a "
            f"{type(chosen).__name__}: give a task, as tacit.make returns one"
        )
    chosen = simulator_of(chosen)
    own = sizes_of_policy(result)
    if own is not None and own != (wanted := sizes(chosen)):
        raise ArgumentError(
            f"the policy takes {own[0]} observed numbers and gives {own[1]}, but {chosen.name} "
            f"shows {wanted[0]} and takes {wanted[1]}: give the task that it was learned on, or "
            "one like it"
        )
    return chosen


def sizes(task: SimulatedTask) -> tuple[int, str]:
    """How many numbers an observation has, and what actions are, in words."""
    space = task.action_space
    discrete = isinstance(space, gymnasium.spaces.Discrete)
    kind = f"1 of {space.n} actions" if discrete else f"{np.prod(space.shape)} continuous actions"
    return int(np.prod(task.observation_space.shape)), kind


def sizes_of_policy(result: Result) -> tuple[int, str] | None:
    """The same as `sizes` of what the policy was made for; None where nobody knows."""
    policy: Any = result.policy
    if isinstance(policy, Actor):
        outputs = len(policy.biases[-1])
        kind = f"1 of {outputs} actions" if policy.std is None else f"{outputs} continuous actions"
        return len(policy.weights[0]), kind
    return sizes(result.task) if isinstance(result.task, SimulatedTask) else None
