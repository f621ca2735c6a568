"""Evaluation against all trajectories of a tiny task, and exact numbers against samples."""

import itertools

import numpy as np
import pytest

from tacit.control.table_policy import TablePolicy
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.errors import ArgumentError
from tacit.evaluation.evaluate import evaluate
from tacit.inference.constraint import Constraint
from tacit.inference.counts.model import TableModel
from tacit.inference.result import Result

STATES, ACTIONS, HORIZON = 3, 2, 3


def tiny(seed, horizon=HORIZON):
    random = np.random.default_rng(seed)
    return TabularTask(
        random.dirichlet(np.ones(STATES), (STATES, ACTIONS)),
        random.normal(size=(STATES, ACTIONS)),
        (random.random((STATES, ACTIONS)) < 0.3) * 0.5,
        random.dirichlet(np.ones(STATES)),
        horizon,
        rule_on="pair",
    )


def result_on(task):
    random = np.random.default_rng(9)
    policy = random.dirichlet(np.ones(ACTIONS), (task.horizon, STATES))
    ones = np.ones(STATES * ACTIONS)
    model = TableModel(ones, ones, "hard", 0.02, ACTIONS, "pair")
    rule = Constraint(model, 0.5, model.spaces(), True)
    return Result(rule, TablePolicy(policy), {}, {"method": "counts"}, task)


@pytest.fixture(scope="module")
def task():
    return tiny(1)


@pytest.fixture(scope="module")
def result(task):
    return result_on(task)


def written_out(task, policy):
    """Violation, reward and feasible reward, summed over every trajectory."""
    totals = np.zeros(4)
    for path in itertools.product(range(STATES * ACTIONS), repeat=HORIZON):
        chance, reward, clean = 1.0, 0.0, True
        for step, place in enumerate(path):
            state, action = divmod(place, ACTIONS)
            before = task.initial if step == 0 else task.transitions[divmod(path[step - 1], 2)]
            chance *= before[state] * policy[step, state, action]
            reward += task.rewards[state, action]
            clean = clean and task.costs[state, action] == 0
        totals += chance * np.array([not clean, reward, reward * clean, 1])
    assert totals[3] == pytest.approx(1)
    return totals[:3]


def numbers(report):
    return [report.violation, report.reward, report.feasible_reward]


def test_exact_numbers_are_the_sums_over_all_trajectories(task, result):
    report = evaluate(result)
    assert report.episodes is None
    for found, wanted in zip(numbers(report), written_out(task, result.policy.table), strict=True):
        assert found.value == pytest.approx(wanted, abs=1e-12)
        assert found.low == found.value == found.high


def test_sampled_numbers_agree_with_the_exact_ones_within_their_intervals(task, result):
    report = evaluate(result, episodes=4000, seed=3)
    assert report.episodes == 4000
    for found, wanted in zip(numbers(report), written_out(task, result.policy.table), strict=True):
        width = found.high - found.low
        assert 0 < width < 0.2
        assert found.low <= found.value <= found.high
        assert abs(found.value - wanted) < 1.5 * width


def test_one_seed_gives_one_report_and_another_seed_another(result):
    assert evaluate(result, episodes=200, seed=1) == evaluate(result, episodes=200, seed=1)
    assert evaluate(result, episodes=200, seed=1) != evaluate(result, episodes=200, seed=2)


def test_a_result_can_be_judged_on_another_task(result):
    other = tiny(2)
    wanted = written_out(other, result.policy.table)
    assert evaluate(result, other).violation.value == pytest.approx(wanted[0], abs=1e-12)
    assert evaluate(result, other).reward.value == pytest.approx(wanted[1], abs=1e-12)
    assert evaluate(result).reward.value != pytest.approx(wanted[1], abs=1e-3)


def test_a_task_of_another_shape_is_an_error_that_names_both_shapes(result):
    with pytest.raises(ArgumentError, match=r"\[3, 3, 2\].*\[4, 3, 2\]"):
        evaluate(result, tiny(1, horizon=4))


def test_a_tabular_result_is_not_judged_on_a_simulated_task(result):
    with pytest.raises(ArgumentError, match="SimulatedTask"):
        evaluate(result, simulator_of(tiny(1)))


@pytest.mark.parametrize("episodes", [1, 0, -5])
def test_too_few_episodes_for_an_interval_are_an_error(result, episodes):
    with pytest.raises(ArgumentError, match="at least 2"):
        evaluate(result, episodes=episodes)
