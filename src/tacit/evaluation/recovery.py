"""Is what was learned the rule, or an imitation of those who kept it?

A constraint that forbids whatever is unlike the experts keeps a policy safe, but is no rule: it
also forbids what is allowed and merely clumsy, slow or strange. Recovery is the probability that of
two states, one truly forbidden and one allowed, the constraint doubts the forbidden one more (the
area under the ROC curve), over states from many kinds of behaviour.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.stats import rankdata

from tacit.control.play import Act, as_function, play
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.evaluation.simulated_calibration import mixed
from tacit.inference.constraint import Constraint

EPISODES = 16
CLUMSY_SHARES = (0.2, 0.5, 1.0)
SLOW = 0.4


def recovery(
    constraint: Constraint,
    task: SimulatedTask,
    behaviours: Sequence[Any],
    *,
    confidence: float | None = None,
    seed: int = 1001,
    threads: int | None = None,
) -> float:
    """Area under the ROC curve of the learned doubt against the true cost; 1/2 is chance.

    Arguments:
        constraint: to be judged.
        task: whose true costs are the labels.
        behaviours: policies, among them some that break the rule. Of each there are episodes as it
            is, slowed down (actions times 0.4) and clumsy (20, 50 and 100 % random actions).
        confidence: at which the constraint is asked; its own by default.
        seed: of the episodes.
        threads: for the simulator.
    """
    return recovered(
        constraint, seen_steps(task, behaviours, seed=seed, threads=threads), confidence
    )


class SeenSteps(NamedTuple):
    """Steps of many kinds of behaviour.

    Fields:
        observations: what was seen before each.
        actions: what was done.
        broken: whether the true rule was broken there.
    """

    observations: Float[np.ndarray, "m o"]
    actions: Shaped[np.ndarray, "m ..."]
    broken: Bool[np.ndarray, " m"]


def seen_steps(
    task: SimulatedTask, behaviours: Sequence[Any], *, seed: int, threads: int | None = None
) -> SeenSteps:
    """Of every behaviour as it is, slow and clumsy; the arguments are those of `recovery`."""
    parts = []
    with closing(task.worlds(EPISODES, threads=threads)) as worlds:
        for turn, act in enumerate(variants(task, behaviours, seed)):
            episodes = play(worlds, act, seed=seed + EPISODES * turn)
            # The cost of a step is that of where it leads: the state before the next step.
            seen, done = episodes.observations[:, 1:-1], episodes.actions[:, 1:]
            present = np.arange(1, episodes.actions.shape[1]) < episodes.lengths[:, None]
            broken = np.asarray((episodes.costs[:, :-1] > 0).any(axis=-1))
            parts.append((seen[present], done[present], broken[present]))
    return SeenSteps(*map(np.concatenate, zip(*parts, strict=True)))


def recovered(constraint: Constraint, steps: SeenSteps, confidence: float | None = None) -> float:
    """`recovery` on steps that were seen before."""
    doubts = constraint.doubt(steps.observations, steps.actions, confidence)
    return area(doubts, steps.broken)


def variants(task: SimulatedTask, behaviours: Sequence[Any], seed: int) -> list[Act]:
    """Every behaviour as it is, slow and clumsy."""
    kinds: list[Act] = []
    for place, policy in enumerate(behaviours):
        act = as_function(policy)
        kinds += [act, slowed(act)]
        for share in CLUMSY_SHARES:
            generator = np.random.default_rng([seed, place, int(100 * share)])
            kinds.append(mixed(act, share, task.action_space, generator))
    return kinds


def slowed(act: Act) -> Act:
    """The same with smaller actions; discrete ones stay as they are."""

    def choose(observations: np.ndarray) -> np.ndarray:
        actions = np.asarray(act(observations))
        return actions if actions.dtype.kind in "iu" else SLOW * actions

    return choose


def area(doubts: Float[np.ndarray, " m"], labels: Bool[np.ndarray, " m"]) -> float:
    """The probability that a true label has the higher doubt; equal ones count a half."""
    positive = int(labels.sum())
    if positive in (0, len(labels)):
        kind = "break" if positive == 0 else "keep"
        raise TaskError(f"none of the behaviours' states {kind} the rule: give others besides")
    ranks = rankdata(doubts)[labels].sum()
    return float((ranks - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))
