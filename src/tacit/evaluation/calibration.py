"""The expected calibration error (ECE): does a stated probability mean what it says?

`calibration_error` is the paper's experiment, of trajectories and the feasibility that a constraint
states for them. On simulators it plays at most 60 batches of 64 episodes: fewer than 50
trajectories of a kind are an error, fewer than were asked for a warning, and then equally many of
both kinds are used. `expected_calibration_error` is the number itself, of any probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from tacit.argument_checks import check_choice, check_count, check_seed
from tacit.control.table_policy import TablePolicy
from tacit.control.tabular_expert import roll_out
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError
from tacit.evaluation.evaluate import task_to_judge
from tacit.evaluation.intervals import finite
from tacit.evaluation.simulated_calibration import Aggregate, aggregated, shortage, stated_and_true
from tacit.inference.result import Result

Subject = Literal["prediction", "feasible"]
MOST_BATCHES = 200


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """One row per bin, for reliability plots; an empty bin has NaN accuracy and confidence.

    Attributes:
        edges: [bins + 1], from 0 to 1; bin m holds the values in (edges[m], edges[m + 1]].
        counts: [bins], how many trajectories fell into the bin.
        accuracy: [bins], acc(B_m).
        confidence: [bins], conf(B_m).
    """

    edges: Float[np.ndarray, " edges"]
    counts: Int[np.ndarray, " bins"]
    accuracy: Float[np.ndarray, " bins"]
    confidence: Float[np.ndarray, " bins"]


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 5, *, subject: Subject = "prediction"
) -> float:
    """ECE = sum_m |B_m| / n * |acc(B_m) - conf(B_m)|, by the paper's recipe (its appendix on ECE).

    The paper assigns label 1 (feasible) to a trajectory with p > 0.5 and label 0 otherwise, splits
    into 5 equally wide bins and cites the usual formula (Guo et al. 2017). There acc(B_m) is the
    share of *assigned labels* that are right and conf(B_m) the mean probability of the assigned
    label, max(p, 1 - p), by which the trajectories are also binned. That is our default. As
    max(p, 1 - p) >= 0.5, only the upper bins (3 of 5) are ever used, and an error on feasible
    trajectories can cancel the opposite error on infeasible ones in the same bin.

    `subject="feasible"` bins by p itself and compares the share of feasible trajectories with the
    mean of p: all bins are used, nothing cancels between the two ends, and no threshold is needed.
    Prefer it to judge p as a probability of feasibility, the default to compare with the paper.

    Arguments:
        probabilities: p, [n], the stated probability that the trajectory is feasible.
        labels: [n], 1 or True where it truly is feasible.
        bins: number of equally wide bins on [0, 1].
        subject: whose probability is judged: the assigned label's, or that of "feasible".
    """
    table = calibration_table(probabilities, labels, bins, subject=subject)
    used = table.counts > 0
    gap = np.abs(table.accuracy[used] - table.confidence[used])
    return float(np.sum(table.counts[used] * gap) / table.counts.sum())


def calibration_table(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 5, *, subject: Subject = "prediction"
) -> CalibrationTable:
    """Counts, accuracy and confidence per bin; arguments as in `expected_calibration_error`.

    Bins are open below and closed above, ((m - 1) / M, m / M], as in Guo et al.; 0 is in the first.
    """
    stated, truth = check_labelled(probabilities, labels)
    bins = check_count("bins", bins)
    check_choice("subject", subject, ("prediction", "feasible"))
    if subject == "prediction":
        right, stated = (stated > 0.5) == truth, np.maximum(stated, 1 - stated)
    else:
        right = truth
    edges = np.arange(bins + 1) / bins
    place = np.searchsorted(edges[1:-1], stated, side="left")
    counts, correct, confidence = (
        np.bincount(place, weights, minlength=bins) for weights in (None, right, stated)
    )
    number = np.where(counts > 0, counts, np.nan)
    return CalibrationTable(edges, counts, correct / number, confidence / number)


def check_labelled(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities and the labels as booleans, checked; an error names the first bad one."""
    stated, truth = finite("probabilities", probabilities), finite("labels", labels)
    if stated.ndim != 1 or stated.shape != truth.shape:
        raise ArgumentError(
            "probabilities and labels must both have the shape [n], "
            f"not {list(stated.shape)} and {list(truth.shape)}"
        )
    outside = np.flatnonzero((stated < 0) | (stated > 1))
    if len(outside):
        raise ArgumentError(
            f"probabilities[{outside[0]}] = {stated[outside[0]]:g} is not in [0, 1]"
        )
    odd = np.flatnonzero((truth != 0) & (truth != 1))
    if len(odd):
        raise ArgumentError(f"labels[{odd[0]}] = {truth[odd[0]]:g} is neither 0 nor 1")
    return stated, truth == 1


def calibration_error(
    result: Result,
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
    the true rule's. The paper does not say whose trajectories it simulates. Ours come, as equally
    as both kinds allow, from the result's own policy, the same with random actions mixed in, random
    actions alone, and `behaviours`.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> calibration_error(tacit.infer(task, tacit.collect(tacit.train_expert(task), 9, seed=1))) < 1
    True

    Arguments:
        result: from `tacit.infer` or `tacit.load`.
        task: a simulated task in place of the result's own.
        number: of trajectories of each kind.
        confidence: to read the constraint at, by default its own.
        subject: see `expected_calibration_error`.
        aggregate: from steps to trajectories, see `simulated_calibration.aggregated`.
        behaviours: on simulated tasks, more policies, for example one trained without the rule.
        seed: of everything random; on simulated tasks, the first of the episodes' seeds.
        threads: for the simulator.
    """
    check_choice("aggregate", aggregate, ("product", "mean", "worst"))
    check_count("number", number)
    asked: Any = {"number": number, "confidence": confidence, "aggregate": aggregate}
    if isinstance(result.policy, TablePolicy):
        if task is not None or len(behaviours):
            raise ArgumentError("`task` and `behaviours` are for results on simulated tasks only")
        stated, feasible = tabular_stated(result, **asked, seed=seed)
    else:
        asked |= {"behaviours": behaviours, "seed": check_seed(seed), "threads": threads}
        stated, feasible = stated_and_true(result, task_to_judge(result, task), **asked)
    return expected_calibration_error(stated, feasible, subject=subject)


def tabular_stated(
    result: Result, number: int, confidence: float | None, aggregate: Aggregate, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Stated feasibility and true label of 2 n trajectories on a table."""
    states, actions, feasible = labelled_episodes(result, number, np.random.default_rng(seed))
    steps = result.constraint.feasibility(states[..., None], actions[..., None], confidence)
    return aggregated(steps, np.full(len(steps), steps.shape[1]), aggregate), feasible


def labelled_episodes(
    result: Result, number: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States [2 n, H], actions [2 n, H] and labels [2 n]: half of them feasible."""
    task, policy = result.task, result.policy
    assert isinstance(task, TabularTask)
    assert isinstance(policy, TablePolicy)
    uniform = np.full_like(policy.table, 1 / task.number_of_actions)
    behaviours = (policy.table, (policy.table + uniform) / 2, uniform)
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
            both = kept[True] + kept[False]
            chosen_states, chosen_actions = map(np.concatenate, zip(*both, strict=True))
            return chosen_states, chosen_actions, np.arange(2 * number) < number
    raise TaskError(shortage(task.name, have, number))
