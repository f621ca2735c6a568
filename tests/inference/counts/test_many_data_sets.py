"""Many data sets at once against one after the other."""

import itertools

import numpy as np
import pytest

from tacit.control.expert import collect, train_expert
from tacit.environments.lab_tasks import chain
from tacit.inference.counts.counts import Counts, learn_beliefs, plan_policies
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.counts.model import VisitCounts, visits_of
from tacit.inference.infer import infer

LEVELS = np.array([0.5, 0.8])
METHODS = (Counts(), Likelihood(objective="quantile", votes="abstain", reading="soft"))


@pytest.fixture(scope="module")
def task():
    return chain(length=21, limit=-3, horizon=8, reward_scale=3)


@pytest.fixture(scope="module")
def data_sets(task):
    expert = train_expert(task)
    return [collect(expert, 20, seed=seed) for seed in range(3)]


@pytest.fixture(scope="module")
def counts(task, data_sets):
    return VisitCounts.of(task, data_sets)


def test_visit_counts_are_those_of_each_data_set(task, data_sets, counts):
    assert counts.number == 20
    for index, data in enumerate(data_sets):
        visited = np.zeros((20, 21))
        for episode, states in enumerate(data.observations[:, :-1, 0]):
            for state in states:
                visited[episode, state] += 1
        np.testing.assert_array_equal(counts.visitors[index], (visited > 0).sum(axis=0))
        np.testing.assert_allclose(counts.mean_visits[index], visited.mean(axis=0))
    again = VisitCounts.of_visits([visits_of(task, data) for data in data_sets])
    np.testing.assert_array_equal(again.visitors, counts.visitors)


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.name)
def learned(request, task, counts):
    return request.param, learn_beliefs(task, counts, LEVELS, request.param)


def test_beliefs_and_policies_are_those_that_infer_finds_one_by_one(
    task, data_sets, counts, learned
):
    method, beliefs = learned
    policies = np.asarray(plan_policies(task, counts, beliefs, LEVELS, method.reading))
    assert beliefs.alpha.shape == (2, 3, 21)
    assert policies.shape == (2, 3, 8, 21, 3)
    assert policies.dtype == np.float64
    for (row, level), (index, data) in itertools.product(
        enumerate(LEVELS), enumerate(data_sets[1:], start=1)
    ):
        if not method.any_confidence and level != 0.8:
            continue  # compiles for every level, so one has to do
        alone = infer(task, data, method=method, confidence=float(level))
        belief = alone.constraint.model
        np.testing.assert_allclose(beliefs.alpha[row, index], belief.alpha, atol=1e-6)
        np.testing.assert_allclose(beliefs.beta[row, index], belief.beta, atol=1e-6)
        np.testing.assert_allclose(policies[row, index], alone.policy.table, atol=1e-5)


def test_a_belief_is_learned_once_exactly_if_it_serves_every_confidence(learned):
    method, beliefs = learned
    assert np.array_equal(beliefs.beta[0], beliefs.beta[1]) == method.any_confidence
    assert np.allclose(beliefs.beta[0], beliefs.beta[1]) == method.any_confidence
