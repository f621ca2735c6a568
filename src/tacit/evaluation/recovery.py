"""Is what was learned the rule, or an imitation of those who kept it?

A constraint that forbids whatever is unlike the experts keeps a policy safe, but is no rule: it
also forbids what is allowed and merely clumsy, slow or strange. Recovery is the probability that of
two states, one truly forbidden and one allowed, the constraint doubts the forbidden one more (the
area under the ROC curve), over states from many kinds of behaviour.

Transfer asks a fresh agent with another reward to act under the learned rule alone. A constraint
that merely says "be like the experts" is no use to it; one that is the rule keeps it from breaking
the true one, whatever it is paid for.
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.stats import rankdata

from tacit.control.learner import Rollout
from tacit.control.multiplier import Multiplier
from tacit.control.play import Act, as_function, play
from tacit.control.presets import preset
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.evaluation.evaluate import execute
from tacit.evaluation.intervals import Estimate, rate_interval
from tacit.evaluation.simulated_calibration import mixed
from tacit.inference.constraint import Constraint

# With a tenth of the rate, one agent in four had not learned to keep a limit after 400,000 steps.
PRICE = Multiplier(start=5.0, rate=1.0, budget=0.005)
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

    >>> task = tacit.make("BlockedPoint", horizon=20)
    >>> expert = tacit.Expert(task, lambda seen: np.array([-0.8, 0.5]) - seen)
    >>> few, seen = tacit.PPO(steps=1600, worlds=16, rollout=20), tacit.collect(expert, 9, seed=1)
    >>> rule = tacit.infer(task, seen, method="bc2l", forward=few).constraint
    >>> recovery(rule, task, [expert.policy, lambda seen: 0 * seen - 1]) > 0.5
    True

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
    """Steps of many kinds of behaviour: what was seen, then done, and if it broke the true rule."""

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


def transfer(
    constraint: Constraint,
    task: SimulatedTask,
    reward: Callable[[Rollout], np.ndarray],
    *,
    confidence: float | None = None,
    forward: PPO | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Estimate:
    """Share of a fresh agent's episodes that break the true rule.

    It learns by PPO-Lagrange; what it earns counts as far as the step is feasible.

    >>> task = tacit.make("BlockedPoint", horizon=20)
    >>> expert = tacit.Expert(task, lambda seen: np.array([-0.8, 0.5]) - seen)
    >>> few, seen = tacit.PPO(steps=1600, worlds=16, rollout=20), tacit.collect(expert, 9, seed=1)
    >>> rule = tacit.infer(task, seen, method="bc2l", forward=few).constraint
    >>> share = transfer(rule, task, lambda rollout: rollout.observations[..., 1], forward=few)
    >>> 0 <= share <= 1
    True

    Arguments:
        constraint: all that it is told of the rule.
        task: what it acts in; its true costs are measured only.
        reward: what it is paid for instead of the task's reward: of a rollout's [T, n] steps, see
            `tacit.control.learner.Rollout`.
        confidence: at which the constraint is asked; its own by default.
        forward: settings of PPO but for the price of cost; None for those of the task.
        seed: of the agent.
        threads: for the simulator.
    """
    settings = dataclasses.replace(forward or preset(task), multiplier=PRICE)
    with closing(Trainer(task, settings, seed=seed, constraints=1, threads=threads)) as run:
        while not run.finished:
            rollout = run.roll_out()
            seen = rollout.within(task.action_space)
            steps = np.asarray(seen.observations), np.asarray(seen.actions)
            costs = constraint.cost(*steps, confidence)
            paid = np.asarray(reward(seen), np.float32)
            earned = np.where(paid > 0, paid * (1 - costs), paid)
            run.learn(rollout._replace(costs=costs[..., None], rewards=earned))
        rows = execute(task, run.actor, threads=threads)
    return rate_interval(int((rows[:, 2] > 0).sum()), len(rows))
