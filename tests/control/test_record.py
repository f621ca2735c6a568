"""Book-keeping of episodes over rollouts."""

import numpy as np
import pytest

from tacit.control.record import REMEMBERED, EpisodeLedger, feasible_score


def test_violating_is_never_an_advantage_where_rewards_are_negative():
    rewards = np.array([-5.0, -4.0])
    obeyed = feasible_score(rewards, np.array([False, False]))
    assert obeyed == -4.5
    assert feasible_score(rewards, np.array([False, True])) == -5
    assert feasible_score(np.array([5.0, 3.0]), np.array([True, False])) == 1.5


def entered(ledger, rewards, costs, ended):
    ledger.add(*(np.array(field, float) for field in (rewards, costs)), np.array(ended, bool))


def test_the_ledger_sums_episodes_over_rollouts():
    ledger = EpisodeLedger.start(2)
    assert ledger.summary() == {}
    # Two worlds; the first ends after three steps, violated in the first rollout.
    entered(ledger, [[1, 5], [2, 5]], [[[1], [0]], [[0], [0]]], [[0, 0], [0, 0]])
    assert ledger.summary() == {}
    entered(ledger, [[3, 5], [4, 5]], [[[0], [0]], [[0], [0]]], [[1, 0], [0, 1]])
    assert ledger.summary() == {
        "reward": (6 + 20) / 2,
        "feasible_reward": 20 / 2,
        "violation": 0.5,
        "episode_length": 3.5,
        "episodes": 2,
    }
    np.testing.assert_array_equal(ledger.running, [[4, 0, 1, 0], [0, 0, 0, 0]])


def test_the_ledger_remembers_the_last_hundred_and_survives_a_file():
    ledger = EpisodeLedger.start(2)
    count = REMEMBERED // 2 + 10
    rewards = np.arange(2.0 * count).reshape(count, 2)
    entered(ledger, rewards, np.zeros((count, 2, 1)), np.ones((count, 2)))
    assert ledger.number == 2 * count
    assert ledger.summary()["reward"] == rewards.reshape(-1)[-REMEMBERED:].mean()
    back = EpisodeLedger.from_arrays(ledger.arrays())
    assert back.summary() == ledger.summary()
    np.testing.assert_array_equal(back.running, ledger.running)


def test_a_violation_of_any_constraint_is_a_violation():
    ledger = EpisodeLedger.start(3)
    costs = [[[0, 0], [0, 0.1], [2, 0]]]
    entered(ledger, [[1, 1, 1]], costs, [[1, 1, 1]])
    assert ledger.summary()["violation"] == pytest.approx(2 / 3)
