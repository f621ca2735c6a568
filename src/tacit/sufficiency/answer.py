"""The answer to "are these demonstrations enough?", and what it is made of."""

from dataclasses import dataclass

import numpy as np

from tacit.demonstrations.trajectories import Trajectories
from tacit.evaluation.intervals import Estimate
from tacit.inference.constraint import Constraint
from tacit.sufficiency.learning_curve import LearningCurve

FEW = 30

History = tuple[tuple[int, float], ...]
"""Numbers of demonstrations and values as they were collected."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The decision with its evidence.

    Fields:
        enough: whether the policy learned from the data reaches the wanted reward; on a simulated
            task even at the lower end of the interval of `value`.
        value: expected reward of that policy, with an interval for other data sets of the same
            size. On a tabular task it is exact for these data; on a simulated one it is the mean
            of 50 episodes, and the interval allows for that.
        wanted: the reward asked for.
        confidence: the confidence asked for.
        number: how many demonstrations there are.
        constraint: the constraint used.
        recommended_number: how many demonstrations in all are estimated to suffice; the present
            number if they do, None if no number seems to.
        recommended_interval: 95 % interval of it; the upper end is None where none may suffice.
        largest_confidence: the largest confidence (in steps of 0.05) at which the present data
            would do; None if there is none, and on simulated tasks (`tacit.tradeoff` tells there).
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
    constraint: Constraint
    recommended_number: int | None
    recommended_interval: tuple[int, int | None] | None
    largest_confidence: float | None
    curve: LearningCurve
    reason: str
    history: History
    demonstrations: Trajectories


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


def worth_of(value: Estimate, wanted: float) -> str:
    """What there is and what is wanted, for a sentence."""
    return f"the learned policy is worth {value.value:.4g}, {wanted:.4g} is wanted"


def words(
    value: Estimate,
    wanted: float,
    enough: bool,
    recommended: int | None,
    interval: tuple[int, int | None] | None,
) -> str:
    """The answer as a sentence."""
    worth = worth_of(value, wanted)
    if enough:
        return f"yes: {worth}"
    if recommended is None:
        return f"no: {worth}, and more data help little: lower the confidence or the reward"
    if interval is not None and interval[1] is None:
        return f"no: {worth}; too few to say how many will do: try {recommended} in all, ask again"
    return f"no: {worth}; about {recommended} demonstrations in all should do"
