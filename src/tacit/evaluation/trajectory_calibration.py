"""The paper's calibration experiment: is a trajectory's stated feasibility right?"""

import numpy as np

from tacit.control.tabular_expert import roll_out
from tacit.environments.tabular import TabularTask
from tacit.errors import TaskError
from tacit.evaluation.calibration import Subject, expected_calibration_error
from tacit.inference.result import Result

MOST_BATCHES = 200


def calibration_error(
    result: Result,
    *,
    number: int = 250,
    confidence: float | None = None,
    subject: Subject = "prediction",
    seed: int = 51,
) -> float:
    """ECE of the constraint on `number` feasible and as many infeasible trajectories.

    The probability of a trajectory is phi(tau) = prod_t phi(s_t, a_t) at the confidence, its label
    the true rule's. The trajectories come from three behaviours in equal parts, so that both kinds
    are of many sorts: the result's own policy, the same with every second action random, and
    random actions (the paper does not say whose it simulates).
    """
    states, actions, feasible = labelled_episodes(result, number, np.random.default_rng(seed))
    steps = result.constraint.feasibility(states, actions, confidence)
    return expected_calibration_error(steps.prod(axis=1), feasible, subject=subject)


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
    raise TaskError(shortage(task, have, number))


def assemble(
    kept: dict[bool, list[tuple[np.ndarray, np.ndarray]]], number: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One array of states, one of actions, and the labels."""
    states, actions = (
        np.concatenate([part[place] for label in (True, False) for part in kept[label]])
        for place in (0, 1)
    )
    return states, actions, np.arange(2 * number) < number


def shortage(task: TabularTask, have: dict[bool, int], number: int) -> str:
    """Which kind of trajectory could not be found."""
    label = min(have, key=lambda kind: have[kind])
    kind = "feasible" if label else "infeasible"
    return f"only {have[label]} of {number} {kind} trajectories were found on {task.name}"
