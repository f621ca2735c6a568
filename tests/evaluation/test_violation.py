"""The paper's two metrics, against all trajectories of tiny problems written out one by one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.control.planning import violation_probability
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, DemonstrationError
from tacit.evaluation.intervals import mean_interval
from tacit.evaluation.violation import (
    Performance,
    exact_performance,
    performance_of,
    violation_rate,
)

STATES, ACTIONS, HORIZON = 3, 2, 4
PLACES = np.array(list(itertools.product(range(STATES * ACTIONS), repeat=HORIZON)))
VISITED, CHOSEN = np.divmod(PLACES, ACTIONS)


def problem(seed, forbidden=0.3):
    rng = np.random.default_rng(seed)
    task = TabularTask(
        transitions=rng.dirichlet(np.full(STATES, 0.5), size=(STATES, ACTIONS)),
        rewards=rng.normal(size=(STATES, ACTIONS)),
        costs=(rng.random((STATES, ACTIONS)) < forbidden) * rng.random((STATES, ACTIONS)),
        initial=rng.dirichlet(np.ones(STATES)),
        horizon=HORIZON,
        rule_on="pair",
    )
    return task, rng.dirichlet(np.ones(ACTIONS), size=(HORIZON, STATES))


def written_out(task, policy):
    """Every possible trajectory with its probability, reward and whether it violates."""
    probability = task.initial[VISITED[:, 0]]
    probability = probability * policy[np.arange(HORIZON), VISITED, CHOSEN].prod(axis=1)
    moves = task.transitions[VISITED[:, :-1], CHOSEN[:, :-1], VISITED[:, 1:]]
    probability = probability * moves.prod(axis=1)
    reward = task.rewards[VISITED, CHOSEN].sum(axis=1)
    violated = (task.costs[VISITED, CHOSEN] > 0).any(axis=1)
    return probability, reward, violated


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_exact_performance_is_the_sum_over_all_trajectories(seed, forbidden):
    task, policy = problem(seed, forbidden)
    probability, reward, violated = written_out(task, policy)
    assert probability.sum() == pytest.approx(1)
    found = exact_performance(task, policy)
    assert found.violation == pytest.approx(probability @ violated, abs=1e-13)
    assert found.reward == pytest.approx(probability @ reward, abs=1e-13)
    assert found.feasible_reward == pytest.approx(probability @ (reward * ~violated), abs=1e-13)


def test_exact_performance_needs_no_global_double_precision():
    task, policy = problem(3)
    with jax.enable_x64(False):
        found = exact_performance(task, policy)
        assert jnp.ones(1).dtype == np.float32
    assert isinstance(found, Performance)
    with jax.enable_x64(True):
        arrays = map(jnp.asarray, (task.transitions, task.initial, policy, task.costs))
        assert found.violation == pytest.approx(float(violation_probability(*arrays)), abs=1e-14)


def test_a_tiny_violation_keeps_its_digits():
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0] = [1 - 1e-9, 1e-9]
    transitions[1, 0, 1] = 1
    task = TabularTask(transitions, np.ones((2, 1)), np.array([0.0, 1.0]), np.array([1.0, 0.0]), 2)
    found = exact_performance(task, np.ones((2, 2, 1)))
    assert found.violation == pytest.approx(1e-9, rel=1e-9)
    assert found.feasible_reward == pytest.approx(2 * (1 - 1e-9), rel=1e-14)


def test_performance_of_maps_over_policies():
    task, _ = problem(5)
    policies = np.stack([problem(seed)[1] for seed in range(6)])
    many = jax.vmap(performance_of, in_axes=(None, None, None, None, 0))
    with jax.enable_x64(True):
        found = np.stack(many(task.transitions, task.initial, task.rewards, task.costs, policies))
    for index, policy in enumerate(policies):
        single = exact_performance(task, policy)
        wanted = [single.violation, single.reward, single.feasible_reward]
        assert found[:, index] == pytest.approx(wanted, abs=1e-13)


def test_exact_performance_takes_float32_policies():
    task, policy = problem(7)
    exact = exact_performance(task, policy)
    rounded = exact_performance(task, policy.astype(np.float32))
    assert rounded.feasible_reward == pytest.approx(exact.feasible_reward, abs=1e-5)


def test_a_policy_of_the_wrong_kind_is_refused():
    task, policy = problem(0)
    with pytest.raises(ArgumentError, match=r"\[H, S, A\] = \[4, 3, 2\], not \[3, 3, 2\]"):
        exact_performance(task, policy[:3])
    broken = policy.copy()
    broken[1, 2, 0] = np.nan
    with pytest.raises(ArgumentError, match=r"policy is nan at \[1, 2, 0\]"):
        exact_performance(task, broken)
    for wrong in ([0.7, 0.7], [-0.5, 1.5]):
        broken[1, 2] = wrong
        with pytest.raises(ArgumentError, match="step 1, state 2"):
            exact_performance(task, broken)


def episodes(rewards, costs):
    states = [np.zeros(len(row) + 1, dtype=int) for row in rewards]
    actions = [np.zeros(len(row), dtype=int) for row in rewards]
    return Trajectories.from_arrays(states, actions, rewards, costs)


REWARDS = [[1.0, 2.0], [5.0], [1.0, 1.0, 1.0], [-4.0]]
COSTS = [[0.0, 0.0], [0.5], [0.0, 1.0, 1.0], [0.0]]


def test_violated_episodes_count_once():
    data = episodes(REWARDS, COSTS)
    assert violation_rate(data).value == 0.5
    assert violation_rate(data).low < 0.5 < violation_rate(data).high


def test_a_higher_level_gives_wider_intervals():
    data = episodes(REWARDS, COSTS)
    narrow, wide = violation_rate(data, level=0.5), violation_rate(data, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_clean_episodes_have_rate_zero_with_an_honest_interval():
    data = episodes([[1.0]] * 8, [[0.0]] * 8)
    rate = violation_rate(data)
    assert (rate.value, rate.low) == (0.0, 0.0)
    assert 0.2 < rate.high < 0.5


def test_episodes_without_costs_cannot_be_judged():
    data = episodes(REWARDS, None)
    with pytest.raises(DemonstrationError, match="costs"):
        violation_rate(data)


def test_sampled_episodes_agree_with_the_exact_numbers():
    task, policy = problem(11)
    probability, _, violated = written_out(task, policy)
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(probability), size=2000, p=probability / probability.sum())
    data = episodes(
        list(task.rewards[VISITED, CHOSEN][drawn]), list(task.costs[VISITED, CHOSEN][drawn])
    )
    exact = exact_performance(task, policy)
    feasible = np.where(data.violated, 0.0, data.returns)
    for found, wanted in (
        (violation_rate(data, level=0.999), exact.violation),
        (mean_interval(feasible, level=0.999), exact.feasible_reward),
        (mean_interval(data.returns, level=0.999), exact.reward),
    ):
        assert found.low < wanted < found.high
    assert violation_rate(data).value == violated[drawn].mean()
