"""Held-out demonstrations check a learned constraint and adjust it: split conformal calibration.

    score of an episode  = the lowest feasibility of its steps
    threshold            = the k-th smallest score of n held-out episodes, k = floor((1 - r)(n + 1))

If held-out and fresh episodes come from the same experts, in any order, a fresh episode has no step
below the threshold with probability at least r, whatever was learned and however few were held out.
That is on average over sets of n held-out episodes. Given one such set, the share of fresh episodes
follows Beta(n + 1 - k, k), if scores have no ties, and may be lower: `at_least`.

What it does not say: nothing about people who are not like these experts, and nothing about whether
the constraint forbids enough. A constraint that allows everything passes every such check. Episodes
that share traffic or a driver are not independent, and count for fewer.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import stats

from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate, rate_interval
from tacit.inference.constraint import Constraint

ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far held-out demonstrations satisfy a constraint, and the constraint adjusted to them.

    Fields:
        rate: the share of fresh expert episodes that should satisfy it.
        satisfied: the share of held-out episodes that satisfy it as it was: no step below full
            feasibility, which only the readings `graded` and `hard` ever give.
        at_least: the share of fresh episodes that satisfy it now, with 95 % certainty.
        threshold: feasibility from which on a step must count as feasible.
        constraint: the same, adjusted; the one given where no adjustment was needed.
    """

    rate: float
    satisfied: Estimate
    at_least: float
    threshold: float
    constraint: Constraint

    @property
    def adjusted(self) -> bool:
        """Whether the constraint had to be loosened."""
        return self.threshold < 1


def calibrate(constraint: Constraint, held_out: Trajectories, *, rate: float = 0.9) -> Calibration:
    """Check `constraint`, and loosen it until fresh episodes satisfy it at a rate.

    >>> task = tacit.make("BlockedPoint", horizon=20)
    >>> expert = tacit.Expert(task, lambda seen: np.array([-0.8, 0.5]) - seen)
    >>> price = tacit.Multiplier(kind="share", budget_per="worst")
    >>> few = tacit.PPO(steps=1600, worlds=16, rollout=20, minibatch=80, multiplier=price)
    >>> rule = tacit.infer(task, tacit.collect(expert, 20, seed=1), forward=few).constraint
    >>> calibrate(rule, tacit.collect(expert, 20, seed=2), rate=0.8).satisfied > 0.5
    True

    Arguments:
        constraint: learned from *other* demonstrations of the same experts.
        held_out: demonstrations that were not used to learn it.
        rate: r, the share of fresh expert episodes without an infeasible step.
    """
    if not 0 < rate < 1:
        raise ArgumentError(f"rate must lie between 0 and 1, not {rate!r}")
    if constraint.over_time:
        raise ArgumentError("granularity 'trajectory' judges no single step: nothing to calibrate")
    if constraint.threshold < 1:
        raise ArgumentError("this constraint has been calibrated already; give the original")
    number = len(held_out)
    # Slightly more, because 0.1 * 10 may be 0.99...
    place = int((1 - rate) * (number + 1) + 1e-9)
    if place < 1:
        least = int(np.ceil(1 / (1 - rate) - 1e-9)) - 1
        raise ArgumentError(
            f"a rate of {rate:g} needs {least} held-out demonstrations or more, not {number}"
        )
    scores = np.sort(lowest_feasibility(constraint, held_out))
    kept = scores >= 1 - ROUNDING
    satisfied = rate_interval(int(kept.sum()), number)
    certain = float(stats.beta.ppf(0.05, number + 1 - place, place))
    threshold = float(scores[place - 1])
    if threshold >= 1:
        return Calibration(rate, satisfied, certain, 1.0, constraint)
    if threshold <= 0:
        raise ArgumentError(
            f"no threshold will do: {place} of {number} held-out episodes have a step with "
            "feasibility 0. Learn from more demonstrations, or ask for a lower rate or confidence"
        )
    facts = {**constraint.facts, "calibrated": {"rate": rate, "held_out": number}}
    loosened = replace(constraint, threshold=threshold, facts=facts)
    return Calibration(rate, satisfied, certain, threshold, loosened)


def lowest_feasibility(
    constraint: Constraint, demonstrations: Trajectories
) -> Float[np.ndarray, " n"]:
    """The feasibility of the least feasible step of each episode."""
    steps = demonstrations.actions.shape[1]
    feasibility = constraint.feasibility(
        demonstrations.observations[:, :steps], demonstrations.actions
    )
    present = np.arange(steps) < demonstrations.lengths[:, None]
    return np.where(present, feasibility, 1.0).min(axis=1)
