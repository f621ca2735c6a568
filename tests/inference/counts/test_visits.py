"""Visits of the queries of a table, against counting by hand; and what cannot be of this table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import DemonstrationError
from tacit.inference.counts.model import visits_of

STATES, ACTIONS, HORIZON = 5, 3, 6
often = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def task(rule_on="state"):
    transitions = np.full((STATES, ACTIONS, STATES), 1 / STATES)
    start = np.eye(STATES)[0]
    return TabularTask(
        transitions, np.zeros(STATES), np.zeros(STATES), start, HORIZON, rule_on=rule_on
    )


def episodes(seed, number=4):
    """Lists of states and actions of different lengths."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, HORIZON + 1, number)
    states = [random.integers(STATES, size=length + 1) for length in lengths]
    return states, [random.integers(ACTIONS, size=length) for length in lengths]


def record(states, actions):
    rewards = [np.zeros(len(row)) for row in actions]
    return Trajectories.from_arrays(states, actions, rewards)


@often
@given(seeds, st.sampled_from(("state", "pair")))
def test_visits_are_counted_step_by_step_and_padding_is_not(seed, rule_on):
    states, actions = episodes(seed)
    size = STATES * (ACTIONS if rule_on == "pair" else 1)
    wanted = np.zeros((4, size))
    for row, (visited, chosen) in enumerate(zip(states, actions, strict=True)):
        for state, action in zip(visited[:-1], chosen, strict=True):
            wanted[row, state * ACTIONS + action if rule_on == "pair" else state] += 1
    found = visits_of(task(rule_on), record(states, actions))
    np.testing.assert_array_equal(found, wanted)


def test_the_state_after_the_last_action_is_not_a_step():
    found = visits_of(task(), record([[1, 4]], [[0]]))
    np.testing.assert_array_equal(found, [[0, 1, 0, 0, 0]])


@pytest.mark.parametrize(
    ("states", "actions", "words"),
    [
        ([[0, 1, 2], [0, 1, 5]], [[0, 0], [0, 0]], ("observations", "episode 1", "step 2", "5")),
        ([[0, -1, 2]], [[0, 0]], ("observations", "episode 0", "step 1", "-1")),
        ([[0, 1, 2], [0, 1, 2]], [[0, 2], [0, 3]], ("actions", "episode 1", "step 1", "3")),
        ([[0, 1, 2]], [[-2, 0]], ("actions", "episode 0", "step 0", "-2")),
    ],
)
def test_a_state_or_action_out_of_range_is_named_with_episode_and_step(states, actions, words):
    with pytest.raises(DemonstrationError) as caught:
        visits_of(task(), record(states, actions))
    for word in words:
        assert word in str(caught.value)


def test_real_numbers_where_states_or_actions_belong_are_an_error_that_names_the_field():
    real = Trajectories.from_arrays([np.zeros((3, 1))], [[0, 1]], [[0.0, 0.0]])
    with pytest.raises(DemonstrationError, match=r"observations.*float64"):
        visits_of(task(), real)
    real = Trajectories.from_arrays([[0, 1, 2]], [np.zeros((2, 1))], [[0.0, 0.0]])
    with pytest.raises(DemonstrationError, match=r"actions.*float64"):
        visits_of(task(), real)


def test_several_numbers_per_step_are_an_error_that_names_the_field():
    wide = Trajectories.from_arrays([np.zeros((3, 2), dtype=int)], [[0, 1]], [[0.0, 0.0]])
    with pytest.raises(DemonstrationError, match="observations"):
        visits_of(task(), wide)


def test_a_demonstration_longer_than_the_horizon_is_an_error_that_names_both_lengths():
    long = record([[0] * 3, [0] * (HORIZON + 2)], [[0] * 2, [0] * (HORIZON + 1)])
    with pytest.raises(DemonstrationError) as caught:
        visits_of(task(), long)
    assert str(HORIZON + 1) in str(caught.value)
    assert str(HORIZON) in str(caught.value)


def test_a_demonstration_longer_than_the_horizon_is_named():
    long = record([[0] * 3, [0] * (HORIZON + 2)], [[0] * 2, [0] * (HORIZON + 1)])
    with pytest.raises(DemonstrationError, match="episode 1"):
        visits_of(task(), long)


def test_a_demonstration_as_long_as_the_horizon_is_welcome():
    found = visits_of(task(), record([[0] * (HORIZON + 1)], [[0] * HORIZON]))
    assert found[0, 0] == HORIZON
