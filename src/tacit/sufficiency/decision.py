"""Objective 2 of the paper: a yes or no to "are these demonstrations enough?" (section 3.2).

On a table every subset of the data is learned from exactly. Where policies learn by acting, one
whole inference finds out where they are tempted, which does not depend on the experts. For a subset
of them the policy begins as an imitation of *these* experts, counts *these* experts, and learns for
an eighth of the steps. Two sizes in three random orders make six eighths, so that all takes less
than two runs.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from tacit.argument_checks import check_confidence, check_seed
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.evaluate import execute
from tacit.inference.constraint import Constraint
from tacit.inference.counts.counts import TableMethod
from tacit.inference.counts.model import VisitCounts, visits_of
from tacit.inference.experts import ExpertSteps, as_simulated
from tacit.inference.infer import check_task, check_unused, infer
from tacit.inference.loop import Inference
from tacit.inference.method import Method, NamedMethod, chosen_method
from tacit.runs.resumable_run import ProgressCallback
from tacit.sufficiency.answer import Answer, History, recommend, words, worth_of
from tacit.sufficiency.learning_curve import LearningCurve, learning_curve, policy_values

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 2)
LEAST_GROWTH = 1.25
MOST_GROWTH = 4.0
ORDERS = 3
SHARE = 1 / 8
EPISODES = 50

Collector = Callable[[int], Trajectories]


def sufficient(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    confidence: float,
    reward: float,
    *,
    method: NamedMethod | str | None = None,
    collect: Collector | None = None,
    limit: int = 1000,
    seed: int = 0,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> Answer:
    """Are the demonstrations enough for a policy worth `reward` at `confidence`?

    Few demonstrations make a tight constraint and a policy of low value; more of them relax it
    (section 3.2). The answer is yes when the policy learned from the data is worth the reward.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> sufficient(task, tacit.collect(tacit.train_expert(task), 20, seed=1), 0.8, reward=9).enough
    False

    Arguments:
        task: the task.
        demonstrations: what there is.
        confidence: lambda.
        reward: delta, the expected reward wanted.
        method: as for `tacit.infer`.
        collect: brings as many further demonstrations as it is asked for, until the answer is yes.
        limit: the most demonstrations to hold.
        seed: of the random subsets, and of the simulation.
        forward: settings of PPO; None for those of the task.
        folder: where to keep the whole run; the same call continues it.
        threads: for the simulator.
        progress: is told the numbers of every update.
    """
    check_seed(seed)
    check_task(task)
    check_confidence(confidence)
    check_goal(reward, limit, len(demonstrations))
    chosen = chosen_method(method, task)
    asked = {"method": chosen, "confidence": confidence, "wanted": reward, "seed": seed}
    if isinstance(chosen, TableMethod) and isinstance(task, TabularTask):
        check_unused(chosen, task, forward=forward, threads=threads, folder=folder)
        more = None if reward > best_reward(task) else collect
        return asked_again(partial(decide, task, **asked), demonstrations, more, limit)
    asked |= {"forward": forward, "folder": folder, "threads": threads, "progress": progress}
    return asked_again(partial(decide_by_acting, task, **asked), demonstrations, collect, limit)


def check_goal(reward: float, limit: int, number: int) -> None:
    """The reward is a number, and the demonstrations are not too many already."""
    if not np.isfinite(reward):
        raise ArgumentError(f"reward must be a finite number, not {reward!r}")
    if limit < number:
        raise ArgumentError(f"limit {limit} is below the {number} demonstrations")


def asked_again(
    decided: Callable[[Trajectories, History], Answer],
    demonstrations: Trajectories,
    collect: Collector | None,
    limit: int,
) -> Answer:
    """The answer for the demonstrations, and for more of them as long as it is no."""
    history: History = ()
    while True:
        answer = decided(demonstrations, history)
        history = answer.history
        if answer.enough or collect is None or len(demonstrations) >= limit:
            return answer
        more = further_number(answer, limit)
        brought = collect(more)
        if not isinstance(brought, Trajectories) or len(brought) == 0:
            raise ArgumentError(f"collect({more}) must bring at least one demonstration")
        demonstrations = demonstrations + brought


def further_number(answer: Answer, limit: int) -> int:
    """How many to ask for next: up to the recommendation, but neither crawling nor leaping."""
    least, most = (int(np.ceil(answer.number * factor)) for factor in (LEAST_GROWTH, MOST_GROWTH))
    goal = most if answer.recommended_number is None else answer.recommended_number
    return max(min(max(goal, least), most, limit) - answer.number, 1)


def decide(
    task: TabularTask,
    demonstrations: Trajectories,
    history: History,
    *,
    confidence: float,
    wanted: float,
    method: TableMethod,
    seed: int,
) -> Answer:
    """The answer for the demonstrations at hand."""
    number, best = len(demonstrations), best_reward(task)
    result = infer(task, demonstrations, method=method, confidence=confidence, seed=seed)
    curve = learning_curve(task, demonstrations, confidence=confidence, method=method, seed=seed)
    value = curve.value
    enough = value.value >= wanted
    recommended, interval = number, None
    if not enough:
        recommended, interval = (None, None) if wanted > best else recommend(curve, wanted, seed)
    reason = words(value, wanted, enough, recommended, interval)
    if wanted > best and not enough:
        found = worth_of(value, wanted)
        reason = f"no: {found}; even without any rule the task gives at most {best:.4g}"
    return Answer(
        enough=bool(enough),
        value=value,
        wanted=float(wanted),
        confidence=float(confidence),
        number=number,
        constraint=result.constraint,
        recommended_number=recommended,
        recommended_interval=interval,
        largest_confidence=largest_confidence(task, demonstrations, wanted, method),
        curve=curve,
        reason=reason,
        history=(*history, (number, value.value)),
        demonstrations=demonstrations,
    )


def largest_confidence(
    task: TabularTask, demonstrations: Trajectories, wanted: float, method: TableMethod
) -> float | None:
    """The other lever: the largest confidence at which the present data reach the reward."""
    counts = VisitCounts.of_visits([visits_of(task, demonstrations)])
    values = policy_values(task, counts, LEVELS, method)[:, 0]
    reached = np.flatnonzero(values >= wanted)
    return float(LEVELS[reached[-1]]) if len(reached) else None


def best_reward(task: TabularTask) -> float:
    """The expected reward of the best policy without rule or entropy (plain value iteration)."""
    value = np.zeros(task.number_of_states)
    for _ in range(task.horizon):
        value = (task.rewards + task.transitions @ value).max(axis=1)
    return float(task.initial @ value)


def decide_by_acting(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    history: History,
    *,
    method: Method,
    confidence: float,
    wanted: float,
    seed: int,
    folder: Path | str | None,
    **chosen: Any,
) -> Answer:
    """The answer for the demonstrations at hand; `chosen` is for `simulated_curve`."""
    number = len(demonstrations)
    curve, constraint = simulated_curve(
        task,
        demonstrations,
        method=method,
        confidence=confidence,
        seed=seed,
        # Each number of demonstrations is a run of its own.
        folder=None if folder is None else Path(folder) / str(number),
        **chosen,
    )
    value = curve.value
    enough = value.low >= wanted
    recommended, interval = (number, None) if enough else recommend(curve, wanted, seed)
    reason = words(value, wanted, enough, recommended, interval)
    if not enough and value.high >= wanted:
        reason = f"not clear, so {reason} (interval {value.low:.4g} to {value.high:.4g})"
    return Answer(
        enough=bool(enough),
        value=value,
        wanted=float(wanted),
        confidence=float(confidence),
        number=number,
        constraint=constraint,
        recommended_number=recommended,
        recommended_interval=interval,
        largest_confidence=None,
        curve=curve,
        reason=reason,
        history=(*history, (number, value.value)),
        demonstrations=demonstrations,
    )


def simulated_curve(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    method: Method,
    confidence: float,
    seed: int,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[LearningCurve, Constraint]:
    """The reward of policies learned from nested subsets; and the constraint from all.

    Values are means over 50 fresh episodes without exploration.
    """
    generator = np.random.default_rng([seed, len(demonstrations)])
    orders = [generator.permutation(len(demonstrations)) for _ in range(ORDERS)]
    sizes = simulated_sizes(len(demonstrations))
    values = np.empty((len(sizes), ORDERS))
    with Inference.of(
        task, demonstrations, method, confidence, seed=seed, forward=forward, threads=threads
    ) as run:
        run.finish(folder, progress)
        result = run.result()
        earned = rewards_of(run, threads)
        values[-1] = earned.mean()
        known = run.now.learned
        for row, size in enumerate(sizes[:-1]):
            for column, order in enumerate(orders):
                # What one subset finds out must not help the next.
                run.now.learned = known
                some = ExpertSteps.of(*as_simulated(task, demonstrations.take(order[:size])))
                run.continue_at(confidence, some, SHARE)
                run.finish(None, progress)
                values[row, column] = rewards_of(run, threads).mean()
    noise = float(earned.std(ddof=1) / np.sqrt(len(earned)))
    return LearningCurve(sizes, values, noise), result.constraint


def rewards_of(run: Inference, threads: int | None) -> Float[np.ndarray, " m"]:
    """What the run's policy earns in fresh episodes."""
    return execute(run.task, run.result().policy, episodes=EPISODES, threads=threads)[:, 0]


def simulated_sizes(number: int) -> np.ndarray:
    """A quarter, a half, and all."""
    return np.unique([max(1, number // 4), max(1, number // 2), number])
