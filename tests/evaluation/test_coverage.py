"""Coverage of learned constraints: made by hand, and its intervals by simulation."""

import itertools

import numpy as np
import pytest

from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.coverage import (
    distance_to_oracle,
    joint_coverage,
    pointwise_coverage,
    reachable_queries,
)
from tacit.evaluation.intervals import Estimate, rate_interval

TRUTH = np.array([True, True, True, False, False])
REACHABLE = np.array([True, True, True, True, False])
ALLOWED = np.array(
    [
        [1, 1, 0, 0, 0],  # right, 2 of 2
        [1, 1, 1, 1, 0],  # one wrong, 3 of 4
        [1, 0, 0, 0, 1],  # the wrong one cannot be reached: right, 1 of 1
        [0, 0, 0, 0, 0],  # allows nothing: right, 0 of 0
    ],
    dtype=bool,
)


def test_joint_coverage_by_hand():
    assert joint_coverage(ALLOWED, TRUTH, REACHABLE) == rate_interval(3, 4)
    assert joint_coverage(ALLOWED, TRUTH, REACHABLE, level=0.5) == rate_interval(3, 4, 0.5)


def test_pointwise_coverage_by_hand():
    found = pointwise_coverage(ALLOWED, TRUTH, REACHABLE)
    assert found.value == pytest.approx(6 / 7)
    assert 0.75 <= found.low < found.value < found.high <= 1
    wide = pointwise_coverage(np.tile(ALLOWED, (10, 1)), TRUTH, REACHABLE, level=0.99, seed=3)
    narrow = pointwise_coverage(np.tile(ALLOWED, (10, 1)), TRUTH, REACHABLE, level=0.5, seed=3)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_allowing_nothing_is_right_by_convention():
    nothing = np.zeros((5, 5), dtype=bool)
    assert pointwise_coverage(nothing, TRUTH, REACHABLE) == Estimate.exact(1.0)
    assert joint_coverage(nothing, TRUTH, REACHABLE) == rate_interval(5, 5)


def test_no_failure_seen_is_not_certainty():
    right = np.tile(TRUTH, (30, 1))
    assert pointwise_coverage(right, TRUTH, REACHABLE) == rate_interval(30, 30)
    wrong = np.tile(~TRUTH, (30, 1))
    wrong[:10] = False
    assert pointwise_coverage(wrong, TRUTH, REACHABLE) == rate_interval(0, 20)


def test_one_data_set_says_nothing_about_the_spread():
    assert pointwise_coverage(ALLOWED[1:2], TRUTH, REACHABLE) == Estimate(0.75, 0.0, 1.0)


def test_pointwise_intervals_hold_their_level_when_states_fail_together():
    """Each data set allows everything up to a limit that it errs about: failures come in runs."""
    truth, everywhere = np.arange(20) < 12, np.ones(20, dtype=bool)
    limits = np.arange(8, 17)
    chances = np.array([2, 3, 5, 6, 5, 3, 2, 1, 1]) / 28
    share = (chances @ np.minimum(limits, 12)) / (chances @ limits)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        allowed = np.arange(20) < rng.choice(limits, size=(50, 1), p=chances)
        found = pointwise_coverage(allowed, truth, everywhere, level=0.9)
        hits += found.low <= share <= found.high
    assert 0.82 < hits / 200 < 0.97


def corridor(rule_on=None):
    """Six places in a row, reward for going right, a slip of one in five."""
    transitions = np.zeros((6, 2, 6))
    for place, action in itertools.product(range(6), range(2)):
        for step, chance in ((2 * action - 1, 0.8), (0, 0.2)):
            transitions[place, action, np.clip(place + step, 0, 5)] += chance
    rewards = np.tile([0.0, 3.0], (6, 1))
    initial = np.eye(6)[1]
    costs = np.arange(6) > 3
    return TabularTask(transitions, rewards, costs, initial, horizon=4, rule_on=rule_on)


def sampled_visits(task, number=20_000):
    """How often each state and pair is visited, by sampling the policy Q ~ 3 for right."""
    rng = np.random.default_rng(0)
    right = np.exp(3) / (1 + np.exp(3))  # the reward does not depend on the place
    place = np.ones(number, dtype=int)
    seen = np.zeros((number, 6, 2), dtype=bool)
    for _ in range(task.horizon):
        action = (rng.random(number) < right).astype(int)
        seen[np.arange(number), place, action] = True
        moved = rng.random(number) < 0.8
        place = np.clip(place + moved * (2 * action - 1), 0, 5)
    return seen.any(axis=2).mean(axis=0), seen.mean(axis=0).reshape(-1)


def test_reachable_queries_are_those_the_free_policy_visits():
    states, pairs = sampled_visits(corridor())
    for task, visits in ((corridor("state"), states), (corridor("pair"), pairs)):
        for threshold in (0.01, 0.3):
            clear = np.abs(visits - threshold) > 0.004
            found = reachable_queries(task, threshold)
            assert found.shape == (task.number_of_queries,)
            assert clear.sum() >= 0.8 * task.number_of_queries
            np.testing.assert_array_equal(found[clear], (visits > threshold)[clear])
    assert reachable_queries(corridor()).tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("threshold", [-0.1, 1.0, np.nan])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(ArgumentError, match="threshold"):
        reachable_queries(corridor(), threshold)


def test_distance_to_oracle_by_hand():
    oracle = np.array([1.0, 0.5, 0.0, 0.0])
    learned = np.array([[1.0, 0.5, 0.0, 1.0], [0.5, 0.5, 0.25, 0.0]])
    reachable = np.array([True, True, True, False])
    assert distance_to_oracle(learned, oracle, reachable) == pytest.approx([0, 0.25])
    assert distance_to_oracle(learned[1], oracle, reachable) == pytest.approx(0.25)
    many = distance_to_oracle(np.zeros((3, 2, 4)), learned, reachable)
    assert many.shape == (3, 2)


@pytest.mark.parametrize("coverage", [joint_coverage, pointwise_coverage])
@pytest.mark.parametrize(
    ("allowed", "truth", "reachable", "message"),
    [
        (ALLOWED[0], TRUTH, REACHABLE, r"do not fit together: \[5\]"),
        (ALLOWED, TRUTH[:3], REACHABLE, "do not fit"),
        (ALLOWED, TRUTH, REACHABLE[:3], "do not fit"),
        (ALLOWED, np.tile(TRUTH, (4, 1)), REACHABLE, "do not fit"),
        (ALLOWED[:0], TRUTH, REACHABLE, "no data set"),
        (ALLOWED, TRUTH, np.zeros(5, dtype=bool), "nothing to judge"),
        (ALLOWED.astype(float), TRUTH, REACHABLE, "allowed must be an array of booleans"),
        (ALLOWED, TRUTH.astype(int), REACHABLE, "truly_allowed must be"),
        (ALLOWED, TRUTH, np.arange(5), "reachable must be"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(coverage, allowed, truth, reachable, message):
    with pytest.raises(ArgumentError, match=message):
        coverage(allowed, truth, reachable)


def test_a_level_is_checked_even_when_nothing_is_allowed():
    with pytest.raises(ArgumentError, match="level"):
        pointwise_coverage(np.zeros((5, 5), dtype=bool), TRUTH, REACHABLE, level=2)


@pytest.mark.parametrize(
    ("feasibility", "oracle", "reachable", "message"),
    [
        (np.zeros(4), np.zeros(5), REACHABLE, "do not fit"),
        (np.zeros((2, 5)), np.zeros((3, 5)), REACHABLE, "do not broadcast"),
        (np.full(5, np.nan), np.zeros(5), REACHABLE, "feasibility is nan"),
        (np.zeros(5), np.full(5, 2.0), REACHABLE, r"oracle must lie in \[0, 1\]"),
        (np.zeros(5), np.zeros(5), np.zeros(5, dtype=bool), "nothing to judge"),
        (0.0, 0.0, True, "do not fit"),
    ],
)
def test_distances_of_unlike_arrays_are_refused(feasibility, oracle, reachable, message):
    with pytest.raises(ArgumentError, match=message):
        distance_to_oracle(feasibility, oracle, reachable)
