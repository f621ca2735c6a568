"""The promise of a confidence level, on tasks that the code has never seen."""

import dataclasses

import numpy as np
import pytest

from tacit.control.expert import collect, train_expert
from tacit.environments.tabular import TabularTask
from tacit.evaluation.coverage import (
    joint_coverage,
    pointwise_coverage,
    reachable_queries,
    unconstrained_visits,
)
from tacit.evaluation.intervals import mean_intervals
from tacit.experiments.coverage_cell import allowed_sets, performances
from tacit.inference.counts.counts import Counts, learn_beliefs
from tacit.inference.counts.model import VisitCounts

CONFIDENCES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
NUMBERS = (5, 20, 100)
DATA_SETS = 20


def random_task(seed: int, scale: float) -> TabularTask:
    """Thirty states in no order, three random ways on from each, four tempting ones forbidden."""
    generator = np.random.default_rng(seed)
    states, actions = 30, 3
    transitions = np.zeros((states, actions, states))
    for state in range(states):
        for action in range(actions):
            targets = generator.choice(states, 3, replace=False)
            transitions[state, action, targets] = generator.dirichlet([0.3, 0.3, 0.3])
    task = TabularTask(
        transitions,
        generator.normal(size=(states, actions)) * scale,
        np.zeros(states),
        np.eye(states)[0],
        25,
        temperature=0.5,
        rule_on="state",
        name=f"random {seed} x{scale:g}",
    )
    tempting = np.argsort(-unconstrained_visits(task) * (np.arange(states) > 0))
    costs = np.zeros(states)
    costs[tempting[1:9:2]] = 1
    return dataclasses.replace(task, costs=costs)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_confidence_means_what_it_says_on_a_task_from_arrays(seed, scale):
    task = random_task(seed, scale)
    expert = train_expert(task)
    truth = (task.allowed, reachable_queries(task))
    rewards = {}
    for number in NUMBERS:
        data_sets = [collect(expert, number, seed=1000 * number + own) for own in range(DATA_SETS)]
        counts = VisitCounts.of(task, data_sets)
        beliefs = learn_beliefs(task, counts, CONFIDENCES, Counts())
        violation, reward = performances(task, counts, beliefs, CONFIDENCES, "graded")
        _, low, high = mean_intervals(violation)
        assert (high <= 1 - CONFIDENCES).all(), "the promise"
        # Below what the experts themselves tolerate, nothing orders the levels.
        ceiling = np.maximum(high[:-1], expert.violation)
        assert (low[1:] <= ceiling).all(), "violation does not rise with confidence"
        rewards[number] = mean_intervals(reward)
        allowed = allowed_sets(beliefs, CONFIDENCES)
        assert not (allowed[1:] & ~allowed[:-1]).any(), "allowed sets shrink"
        for level, confidence in enumerate(CONFIDENCES):
            assert pointwise_coverage(allowed[level], *truth).value >= confidence
            if confidence >= 0.5:
                assert joint_coverage(allowed[level], *truth).value >= confidence
    for few, many in ((5, 20), (20, 100)):
        for level in (3, 4):
            assert rewards[many][2][level] >= rewards[few][1][level], "reward rises with N"
