"""The paper's calibration experiment: is a trajectory's stated feasibility right?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.argument_checks import check_choice, check_count, check_seed
from tacit.control.tabular_expert import roll_out
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError
from tacit.evaluation.calibration import Subject, expected_calibration_error
from tacit.evaluation.execution import SimulatedOutcome, simulated_task
from tacit.evaluation.simulated_calibration import (
    Aggregate,
    aggregated,
    shortage,
    stated_and_true,
)
from tacit.inference.result import Result

MOST_BATCHES = 200


def calibration_error(
    result: Result | SimulatedOutcome,
    task: SimulatedTask | None = None,
    *,
    number: int = 250,
    confidence: float | None = None,
    subject: Subject = "prediction",
    aggregate: Aggregate = "product",
    behaviours: Sequence[Any] = (),
    seed: int = 51,
    threads: int | None = None,
) -> float:
    """ECE of the constraint on `number` feasible and as many infeasible trajectories.

    The stated probability of a trajectory is made from phi(s_t, a_t) of its T steps, its label is
    the true rule's (which on simulated tasks looks at where a step leads). `aggregate` says how:

    - "product", the paper's: phi(tau) = prod_t phi(s_t, a_t). Over long episodes it vanishes for
      any soft belief (0.99 a step is 0.00004 over 1000), so that all trajectories are called
      infeasible and the ECE is near 0.5 whatever was learned.
    - "mean": the geometric mean, phi(tau) to the power of 1 / T; one step at 0 still makes 0.
    - "worst": the smallest phi of any step, as one step is enough to break a rule.

    The paper does not say whose trajectories it simulates. Ours come, as equally as both kinds
    allow, from the result's own policy, the same with a share of its actions random (every second
    one on tabular tasks; 20 % and 50 % on simulated ones), random actions, and `behaviours`. On
    simulated tasks at most 60 batches of 64 episodes are played: fewer than 50 of a kind are an
    error, fewer than `number` a warning, and then equally many of both are used.

    Arguments:
        result: from `tacit.infer` or `tacit.load`.
        task: a simulated task in place of the result's own.
        number: of trajectories of each kind.
        confidence: to read the constraint at, by default its own.
        subject: see `expected_calibration_error`.
        aggregate: from steps to trajectories, see above.
        behaviours: on simulated tasks, more policies (functions of a batch of observations, or
            agents with `predict`), for example one trained without the rule.
        seed: of everything random; on simulated tasks, the first of the episodes' seeds.
        threads: for the simulator, None for all cores; it does not change the numbers.
    """
    check_choice("aggregate", aggregate, ("product", "mean", "worst"))
    number = check_count("number", number)
    if isinstance(result, Result):
        if task is not None or len(behaviours):
            raise ArgumentError("`task` and `behaviours` are for results on simulated tasks only")
        stated, feasible = tabular_stated(result, number, confidence, aggregate, seed)
    else:
        stated, feasible = stated_and_true(
            result,
            simulated_task(result, task),
            number=number,
            confidence=confidence,
            aggregate=aggregate,
            behaviours=behaviours,
            seed=check_seed(seed),
            threads=threads,
        )
    return expected_calibration_error(stated, feasible, subject=subject)


def tabular_stated(
    result: Result, number: int, confidence: float | None, aggregate: Aggregate, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Stated feasibility and true label of 2 n trajectories."""
    states, actions, feasible = labelled_episodes(result, number, np.random.default_rng(seed))
    steps = result.constraint.feasibility(states, actions, confidence)
    return aggregated(steps, np.full(len(steps), steps.shape[1]), aggregate), feasible


def labelled_episodes(
    result: Result, number: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States [2 n, H], actions [2 n, H] and labels [2 n]: half of them feasible."""
    task = result.task
    uniform = np.full_like(result.policy, 1 / task.number_of_actions)
    behaviours = (result.policy, (result.policy + uniform) / 2, uniform)
    kept: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {True: [], False: []}
    have = {True: 0, False: 0}
    for batch in range(MOST_BATCHES):
        states, actions = roll_out(task, behaviours[batch % 3], number, generator)
        states = states[:, :-1]
        feasible = ~(task.costs[states, actions] > 0).any(axis=1)
        for label in (True, False):
            # A third from each behaviour, or more where a behaviour makes too few of a kind.
            share = -(-number // 3) if batch < 3 else number
            chosen = np.flatnonzero(feasible == label)[: min(share, number - have[label])]
            kept[label].append((states[chosen], actions[chosen]))
            have[label] += len(chosen)
        if min(have.values()) >= number:
            return assemble(kept, number)
    raise TaskError(shortage(task.name, have, number))


def assemble(
    kept: dict[bool, list[tuple[np.ndarray, np.ndarray]]], number: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One array of states, one of actions, and the labels."""
    states, actions = (
        np.concatenate([part[place] for label in (True, False) for part in kept[label]])
        for place in (0, 1)
    )
    return states, actions, np.arange(2 * number) < number
