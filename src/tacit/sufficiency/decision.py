"""Objective 2 of the paper: a yes or no to "are these demonstrations enough?" (section 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.constraints.tabular_constraint import TabularConstraint, check_confidence
from tacit.constraints.votes import visits_of
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask, check_tabular
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate
from tacit.inference.infer import infer
from tacit.inference.many_data_sets import VisitCounts
from tacit.inference.tabular_ca_icrl import Objective, Reading, TabularCAICRL, Votes, fitting_votes
from tacit.sufficiency.learning_curve import LearningCurve, learning_curve, policy_values

LEVELS = np.round(np.arange(0.05, 0.96, 0.05), 2)
LEAST_GROWTH = 1.25
MOST_GROWTH = 4.0
FEW = 30

Collector = Callable[[int], Trajectories]


@dataclass(frozen=True, eq=False)
class Answer:
    """The decision with its evidence.

    Fields:
        enough: whether the policy learned from the data reaches the wanted reward.
        value: expected reward of that policy; exact for these data, with an interval for other
            data sets of the same size.
        wanted: the reward asked for.
        confidence: the confidence asked for.
        number: how many demonstrations there are.
        constraint: the constraint used.
        recommended_number: how many demonstrations in all are estimated to suffice; the present
            number if they do, None if no number seems to.
        recommended_interval: 95 % interval of it; the upper end is None where none may suffice.
        largest_confidence: the largest confidence (in steps of 0.05) at which the present data
            would do; None if there is none.
        curve: value against number of demonstrations, from nested subsets.
        reason: the answer in words.
        history: numbers of demonstrations and values as they were collected.
        demonstrations: the data behind the answer, with what was collected on the way.
    """

    enough: bool
    value: Estimate
    wanted: float
    confidence: float
    number: int
    constraint: TabularConstraint
    recommended_number: int | None
    recommended_interval: tuple[int, int | None] | None
    largest_confidence: float | None
    curve: LearningCurve
    reason: str
    history: tuple[tuple[int, float], ...]
    demonstrations: Trajectories


def sufficient(
    task: TabularTask,
    demonstrations: Trajectories,
    confidence: float,
    reward: float,
    *,
    collect: Collector | None = None,
    limit: int = 1000,
    seed: int = 0,
    objective: Objective = "counts",
    votes: Votes | None = None,
    reading: Reading = "graded",
) -> Answer:
    """Are the demonstrations enough for a policy worth `reward` at `confidence`?

    Few demonstrations make a tight constraint and a policy of low value; more of them relax it
    (section 3.2). The answer is yes when the policy learned from the data has at least the wanted
    expected reward.

    Args:
        task: the task.
        demonstrations: what there is.
        confidence: lambda.
        reward: delta, the expected reward wanted.
        collect: called with a number to bring that many further demonstrations, again and again
            until the answer is yes or `limit` is reached.
        limit: the most demonstrations to hold.
        seed: of the random subsets.
        objective: see `tacit.inference.tabular_ca_icrl.TabularCAICRL`.
        votes: likewise; by default those that go with the objective.
        reading: likewise.
    """
    check_tabular(task)
    check_confidence(confidence)
    if not np.isfinite(reward):
        raise ArgumentError(f"reward must be a finite number, not {reward!r}")
    if limit < len(demonstrations):
        raise ArgumentError(f"limit {limit} is below the {len(demonstrations)} demonstrations")
    votes = votes or fitting_votes(objective)
    method = TabularCAICRL(objective=objective, votes=votes, reading=reading)
    history: tuple[tuple[int, float], ...] = ()
    while True:
        answer = decide(task, demonstrations, confidence, reward, method, seed, history)
        history = answer.history
        hopeless = reward > best_reward(task)
        if answer.enough or hopeless or collect is None or len(demonstrations) >= limit:
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
    confidence: float,
    wanted: float,
    method: TabularCAICRL,
    seed: int,
    history: tuple[tuple[int, float], ...],
) -> Answer:
    """The answer for the demonstrations at hand."""
    number = len(demonstrations)
    result = infer(
        task,
        demonstrations,
        confidence=confidence,
        seed=seed,
        objective=method.objective,
        votes=method.votes,
        reading=method.reading,
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


def recommend(
    curve: LearningCurve, wanted: float, seed: int
) -> tuple[int | None, tuple[int, int | None] | None]:
    """The number that the learning curve says will do, with its interval.

    A curve from a handful of demonstrations cannot tell levelling off from not having started:
    where it does not reach the goal, the advice is then to double them and ask again.
    """
    number = int(curve.sizes[-1])
    possible = np.maximum(curve.needed(wanted, seed=seed), number + 1)
    low, needed, high = np.quantile(possible, [0.025, 0.5, 0.975], method="closest_observation")
    if not np.isfinite(needed):
        return (2 * number, (number + 1, None)) if number < FEW else (None, None)
    return int(needed), (int(low), int(high) if np.isfinite(high) else None)


def largest_confidence(
    task: TabularTask, demonstrations: Trajectories, wanted: float, method: TabularCAICRL
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
    """The answer as a sentence."""
    worth = f"the learned policy is worth {value.value:.4g}, {wanted:.4g} is wanted"
    if enough:
        return f"yes: {worth}"
    best = best_reward(task)
    if wanted > best:
        return f"no: {worth}; even without any rule the task gives at most {best:.4g}"
    if recommended is None:
        return f"no: {worth}, and more data help little: lower the confidence or the reward"
    if interval is not None and interval[1] is None:
        return f"no: {worth}; too few to say how many will do: try {recommended} in all, ask again"
    return f"no: {worth}; about {recommended} demonstrations in all should do"


def best_reward(task: TabularTask) -> float:
    """The expected reward of the best policy without rule or entropy (plain value iteration)."""
    value = np.zeros(task.number_of_states)
    for _ in range(task.horizon):
        value = (task.rewards + task.transitions @ value).max(axis=1)
    return float(task.initial @ value)
