"""Objective 2 of the paper: a yes or no to "are these demonstrations enough?" (section 3.2)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.argument_checks import check_confidence, check_seed
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate
from tacit.inference.counts.many_data_sets import VisitCounts
from tacit.inference.counts.method import TableMethod
from tacit.inference.counts.visits import visits_of
from tacit.inference.infer import check_task, check_unused, infer
from tacit.inference.method import NamedMethod
from tacit.inference.methods import chosen_method
from tacit.runs.resumable_run import ProgressCallback
from tacit.sufficiency.answer import Answer, History, recommend, words, worth_of
from tacit.sufficiency.learning_curve import learning_curve, policy_values
from tacit.sufficiency.simulated_decision import decide_by_acting

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 2)
LEAST_GROWTH = 1.25
MOST_GROWTH = 4.0

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
    (section 3.2). The answer is yes when the policy learned from the data has at least the wanted
    expected reward. Where policies learn by acting it takes less than twice as long as one
    inference.

    Arguments:
        task: the task.
        demonstrations: what there is.
        confidence: lambda.
        reward: delta, the expected reward wanted.
        method: as for `tacit.infer`.
        collect: called with a number to bring that many further demonstrations, again and again
            until the answer is yes or `limit` is reached.
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
    if not np.isfinite(reward):
        raise ArgumentError(f"reward must be a finite number, not {reward!r}")
    if limit < len(demonstrations):
        raise ArgumentError(f"limit {limit} is below the {len(demonstrations)} demonstrations")
    chosen = chosen_method(method, task)
    asked: dict[str, Any] = {
        "method": chosen,
        "confidence": confidence,
        "wanted": reward,
        "seed": seed,
    }
    if isinstance(chosen, TableMethod) and isinstance(task, TabularTask):
        check_unused(chosen, task, forward=forward, threads=threads, folder=folder)
        decided = partial(decide, task, **asked)
        hopeless = reward > best_reward(task)
    else:
        asked |= {"forward": forward, "folder": folder, "threads": threads, "progress": progress}
        decided = partial(decide_by_acting, task, **asked)
        hopeless = False
    return asked_again(decided, demonstrations, None if hopeless else collect, limit)


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
    number = len(demonstrations)
    result = infer(
        task,
        demonstrations,
        method=method,
        confidence=confidence,
        seed=seed,
    )
    curve = learning_curve(task, demonstrations, confidence=confidence, method=method, seed=seed)
    enough = curve.value.value >= wanted
    if enough:
        recommended, interval = number, None
    elif wanted > best_reward(task):
        recommended, interval = None, None
    else:
        recommended, interval = recommend(curve, wanted, seed)
    return Answer(
        enough=bool(enough),
        value=curve.value,
        wanted=float(wanted),
        confidence=float(confidence),
        number=number,
        constraint=result.constraint,
        recommended_number=recommended,
        recommended_interval=interval,
        largest_confidence=largest_confidence(task, demonstrations, wanted, method),
        curve=curve,
        reason=in_words(task, curve.value, wanted, enough, recommended, interval),
        history=(*history, (number, curve.value.value)),
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


def in_words(
    task: TabularTask,
    value: Estimate,
    wanted: float,
    enough: bool,
    recommended: int | None,
    interval: tuple[int, int | None] | None,
) -> str:
    """The answer on a tabular task as a sentence."""
    best = best_reward(task)
    if wanted > best and not enough:
        found = worth_of(value, wanted)
        return f"no: {found}; even without any rule the task gives at most {best:.4g}"
    return words(value, wanted, enough, recommended, interval)


def best_reward(task: TabularTask) -> float:
    """The expected reward of the best policy without rule or entropy (plain value iteration)."""
    value = np.zeros(task.number_of_states)
    for _ in range(task.horizon):
        value = (task.rewards + task.transitions @ value).max(axis=1)
    return float(task.initial @ value)
