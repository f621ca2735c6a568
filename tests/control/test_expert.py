"""Experts against their own samples, and demonstrations against the rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.control.expert import Expert, collect, train_expert
from tacit.control.tabular_expert import draw, roll_out
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError, TaskError

EPISODES = 20_000


@pytest.fixture(scope="module")
def task():
    return chain(length=9, limit=-2, horizon=8, reward_scale=5, slip=0.2, budget=0.4)


@pytest.fixture(scope="module")
def expert(task):
    return train_expert(task)


@pytest.fixture(scope="module")
def rolled(task, expert):
    return roll_out(task, expert.policy.table, EPISODES, np.random.default_rng(3))


def close(sample, exact):
    """The mean of the sample lies within five standard errors of the exact value."""
    return abs(sample.mean() - exact) < 5 * sample.std() / np.sqrt(len(sample))


def test_violation_and_reward_of_the_expert_are_those_of_its_episodes(task, expert, rolled):
    states, actions = rolled[0][:, :-1], rolled[1]
    violated = (task.costs[states, actions] > 0).any(axis=1)
    assert 0.05 < expert.violation < 0.5
    assert close(violated, expert.violation)
    assert close(task.rewards[states, actions].sum(axis=1), expert.reward)


def test_the_expert_uses_its_budget_and_no_more(task, expert, rolled):
    assert expert.multiplier > 0
    spent = task.costs[rolled[0][:, :-1], rolled[1]].sum(axis=1)
    assert close(spent, task.budget)


def test_the_expert_does_not_depend_on_the_seed(task, expert):
    np.testing.assert_array_equal(train_expert(task, seed=9).policy.table, expert.policy.table)


def test_episodes_follow_the_policy_and_the_dynamics(task, expert, rolled):
    states, actions = rolled
    assert (states[:, 0] == 4).all()
    for step, state, action in ((0, 4, 0), (0, 4, 2), (3, 2, 0), (5, 3, 1)):
        here = states[:, step] == state
        assert close(actions[here, step] == action, expert.policy.table[step, state, action])
    went = (states[:, :-1] == 3) & (actions == 0)
    for successor in (2, 4):
        assert close(states[:, 1:][went] == successor, task.transitions[3, 0, successor])


def test_collected_episodes_all_obey_the_rule_and_carry_their_numbers(task, expert):
    data = collect(expert, 300, seed=1)
    assert len(data) == 300
    states, actions = data.observations[:, :-1, 0], data.actions[:, :, 0]
    assert not (task.costs[states, actions] > 0).any()
    np.testing.assert_array_equal(data.costs, task.costs[states, actions])
    np.testing.assert_array_equal(data.rewards, task.rewards[states, actions])
    assert (data.lengths == task.horizon).all()
    moved = task.transitions[states, actions, data.observations[:, 1:, 0]]
    assert (moved > 0).all()


def test_collect_reports_how_many_episodes_it_discarded(task, expert):
    data = collect(expert, 20, seed=5)
    states, actions = roll_out(task, expert.policy.table, 64, np.random.default_rng(5))
    clean = [not (task.costs[s[:-1], a] > 0).any() for s, a in zip(states, actions, strict=True)]
    kept = [index for index, good in enumerate(clean) if good][:20]
    np.testing.assert_array_equal(data.observations[:, :, 0], states[kept])
    np.testing.assert_array_equal(data.actions[:, :, 0], actions[kept])
    assert data.provenance["discarded"] == kept[-1] + 1 - 20 > 0
    assert data.provenance["feasible"] == 20
    assert data.provenance["expert_violation"] == expert.violation


def test_the_share_of_discarded_episodes_is_the_violation_also_over_several_batches(expert):
    found = [collect(expert, 400, seed=seed).provenance["discarded"] for seed in range(10)]
    share = sum(found) / (sum(found) + 4000)
    error = np.sqrt(expert.violation * (1 - expert.violation) / 4000)
    assert abs(share - expert.violation) < 5 * error


def test_one_seed_gives_one_data_set_and_another_seed_another(expert):
    assert collect(expert, 30, seed=1) == collect(expert, 30, seed=1)
    assert collect(expert, 30, seed=1) != collect(expert, 30, seed=2)


def test_progress_rises_to_the_wanted_number(expert):
    told = []
    collect(expert, 200, seed=0, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 200


def test_a_rule_that_forbids_everything_is_an_error_not_an_endless_loop():
    task = TabularTask(np.full((2, 2, 2), 0.5), np.zeros(2), np.ones(2), [1, 0], horizon=2)
    expert = train_expert(task)
    assert expert.violation == pytest.approx(1)
    with pytest.raises(TaskError, match="obey the rule"):
        collect(expert, 1, seed=0)


@pytest.mark.parametrize("number", [0, -3])
def test_fewer_than_one_demonstration_is_an_error(expert, number):
    with pytest.raises(ArgumentError, match="at least 1"):
        collect(expert, number, seed=0)


class Fixed:
    """A generator whose every number is the same."""

    def __init__(self, level):
        self.level = level

    def random(self, shape):
        return np.full(shape, self.level)


levels = st.one_of(st.sampled_from((0.0, 0.5, 1 - 2**-53)), st.floats(0, 1, exclude_max=True))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from((0.0, 1e-300, 1e-17, 0.1, 0.25, 0.7)), min_size=2, max_size=6),
    levels,
)
def test_an_action_of_probability_zero_is_never_drawn(weights, level):
    weights = np.array(weights)
    if weights.sum() == 0:
        return
    probabilities = weights / weights.sum()
    index = draw(probabilities.cumsum()[None], Fixed(level))
    assert probabilities[index[0]] > 0


def test_draws_have_the_frequencies_of_the_probabilities():
    probabilities = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    thresholds = np.tile(probabilities.cumsum(), (EPISODES, 1))
    drawn = draw(thresholds, np.random.default_rng(0))
    for index in (1, 3, 4):
        assert close(drawn == index, probabilities[index])
    assert set(drawn) == {1, 3, 4}


def test_a_policy_that_avoids_an_action_leaves_episodes_without_it(task):
    policy = np.zeros((task.horizon, task.number_of_states, 3))
    policy[:, :, 1:] = 0.5
    data = collect(Expert(task, policy, 0.0, 0.0, 0.0), 100, seed=0)
    assert set(np.unique(data.actions)) == {1, 2}
