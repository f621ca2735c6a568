"""Mixtures of policies: the best one within a budget, and one policy that does the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tacit.control.planning import attainable_budget
from tacit.control.policy_mixture import (
    best_mixture,
    limit_of,
    mixed_policy,
    pairs_of,
    soft_mixture,
    soft_returns,
    spent_by,
)
from tacit.environments.lab_tasks import chain

numbers = st.lists(
    st.tuples(st.integers(0, 500), st.integers(-500, 500)), min_size=1, max_size=8, unique=True
)


@settings(max_examples=200, deadline=None)
@given(policies=numbers, budget=st.integers(0, 300).map(lambda number: number / 100))
def test_no_mixture_within_the_budget_is_better(policies, budget):
    costs, returns = np.array(policies).T / [[100], [10]]
    weights, price = best_mixture(costs, returns, limit_of(costs, budget))
    limit = max(float(attainable_budget(budget, costs.min())), costs.min())
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert weights @ costs <= limit * (1 + 1e-6) + 1e-9
    best = linprog(-returns, A_ub=[costs], b_ub=[limit], A_eq=[np.ones(len(costs))], b_eq=[1.0])
    assert weights @ returns == pytest.approx(-best.fun, abs=1e-4)
    # What a little more of the budget earns, where it does not end at a policy just there.
    if np.abs(costs - limit).min() > 1e-3:
        more = linprog(
            -returns, A_ub=[costs], b_ub=[limit + 1e-3], A_eq=[np.ones(len(costs))], b_eq=[1.0]
        )
        assert price == pytest.approx((best.fun - more.fun) / 1e-3, rel=1e-3, abs=1e-3)


def test_a_budget_between_two_policies_mixes_them():
    weights, price = best_mixture(np.array([0.0, 0.4]), np.array([0.0, 10.0]), 0.1)
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-6)
    assert price == pytest.approx(25)
    for returns, wanted in (([0.0, 10.0], [0, 1]), ([11.0, 10.0], [1, 0])):
        weights, price = best_mixture(np.array([0.0, 0.4]), np.array(returns), 0.4)
        np.testing.assert_allclose(weights, wanted)
        assert price == 0


def test_where_all_are_too_dear_nearly_the_cheapest_is_taken():
    costs = np.array([1.0, 2.0, 3.0])
    weights, price = best_mixture(costs, np.array([0.0, 1.0, 5.0]), limit_of(costs, 0.2))
    assert price == pytest.approx(2.5)
    assert weights @ [1.0, 2.0, 3.0] == pytest.approx(1.05)
    np.testing.assert_allclose(weights, [0.975, 0, 0.025], atol=1e-6)


def soft_return(pairs, rewards, temperature):
    """J of one occupancy."""
    chances = pairs / np.maximum(pairs.sum(axis=-1, keepdims=True), 1e-300)
    return (pairs * (rewards - temperature * np.log(np.maximum(chances, 1e-300)))).sum()


@pytest.mark.parametrize("seed", range(6))
def test_no_soft_mixture_within_the_budget_is_better(seed):
    task, random = chain(length=9, limit=-2, horizon=6), np.random.default_rng(seed)
    policies = random.dirichlet(np.full(3, 0.2), size=(3, task.horizon, task.number_of_states))
    pairs = np.stack([presence_of(task, policy)[1] for policy in policies])
    costs, temperature = random.uniform(0, 1, 3), 0.7
    budget = costs.min() + 0.4 * np.ptp(costs)
    weights, price = soft_mixture(pairs, task.rewards, temperature, costs, budget)
    assert price > 0
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert weights @ costs <= budget * (1 + 1e-6)

    def worth(weights):
        return soft_return(np.tensordot(weights, pairs, 1), task.rewards, temperature)

    first, second = np.meshgrid(*2 * [np.linspace(0, 1, 51)])
    others = np.stack([first, second, 1 - first - second], axis=-1).reshape(-1, 3)
    allowed = (others[:, 2] >= 0) & (others @ costs <= budget)
    best = max(map(worth, others[allowed]))
    alone = [worth(each) for each, cost in zip(np.eye(3), costs, strict=True) if cost <= budget]
    assert worth(weights) > max(alone)
    assert worth(weights) >= best - 0.005 * (best - min(alone))


def test_the_price_is_what_more_budget_earns():
    task, random = chain(length=9, limit=-2, horizon=6), np.random.default_rng(3)
    policies = random.dirichlet(np.full(3, 0.2), size=(4, task.horizon, task.number_of_states))
    pairs, costs = np.stack([presence_of(task, each)[1] for each in policies]), np.arange(4.0)

    def best(budget):
        weights, price = soft_mixture(pairs, task.rewards, 0.7, costs, budget)
        return soft_return(np.tensordot(weights, pairs, 1), task.rewards, 0.7), price

    earned, price = best(0.3)
    assert (best(0.32)[0] - earned) / 0.02 == pytest.approx(price, rel=0.1)
    # With enough of it, more is worth nothing.
    assert best(3.0)[1] == 0


def test_what_a_policy_earns_and_pays_is_counted_over_its_pairs():
    task, random = chain(length=9, limit=-2, horizon=6), np.random.default_rng(5)
    policies = random.dirichlet(np.full(3, 0.2), size=(2, task.horizon, task.number_of_states))
    presence, pairs = map(
        np.array, zip(*(presence_of(task, each) for each in policies), strict=True)
    )
    np.testing.assert_allclose(pairs_of(policies, presence), pairs)
    wanted = [soft_return(each, task.rewards, 0.7) for each in pairs]
    np.testing.assert_allclose(soft_returns(pairs, task.rewards, 0.7), wanted, rtol=1e-6)
    on_states, on_pairs = random.uniform(size=9), random.uniform(size=(9, 3))
    np.testing.assert_allclose(spent_by(pairs, on_states), (presence @ on_states).sum(axis=1))
    np.testing.assert_allclose(
        spent_by(pairs, on_pairs.ravel()), (pairs * on_pairs).sum(axis=(1, 2, 3))
    )


def test_two_ways_that_are_as_good_are_both_gone():
    ways = np.zeros((2, 1, 1, 2))
    ways[0, 0, 0, 0] = ways[1, 0, 0, 1] = 1
    weights, _ = soft_mixture(ways, np.zeros((1, 2)), 0.1, np.zeros(2), 0.0)
    np.testing.assert_allclose(weights, 0.5, atol=0.01)


def presence_of(task, policy):
    """Share of episodes in each state at each step, and in each pair."""
    now, states, pairs = task.initial, [], []
    for step in policy:
        states.append(now)
        pairs.append(now[:, None] * step)
        now = np.einsum("sa,sax->x", pairs[-1], task.transitions)
    return np.array(states), np.array(pairs)


def test_the_mixed_policy_does_everything_as_often_as_the_mixture():
    task = chain(length=9, limit=-2, horizon=10)
    random = np.random.default_rng(0)
    policies = random.dirichlet(np.full(3, 0.3), size=(3, task.horizon, task.number_of_states))
    weights = np.array([0.2, 0.0, 0.8])
    presence, pairs = zip(*(presence_of(task, policy) for policy in policies), strict=True)
    mixed = mixed_policy(policies, np.array(presence), weights)
    np.testing.assert_allclose(mixed.sum(axis=-1), 1)
    wanted = np.einsum("k,khsa->hsa", weights, np.array(pairs))
    np.testing.assert_allclose(presence_of(task, mixed)[1], wanted, atol=1e-4)
