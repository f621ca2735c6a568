"""The learning curve: recovers curves that are known, and knows what it does not know."""

import itertools

import numpy as np
import pytest

import tacit
from tacit.environments.lab_tasks import chain
from tacit.inference.counts.counts import Counts
from tacit.sufficiency import learning_curve as module
from tacit.sufficiency.answer import recommend
from tacit.sufficiency.learning_curve import (
    MOST_TIMES_MORE,
    LearningCurve,
    learning_curve,
    needed_number,
    subset_sizes,
)

SIZES = subset_sizes(100)


def curve_of_means(sample, orders, seed):
    """A learning curve whose statistic is the mean of the data that there are."""
    sizes = subset_sizes(len(sample))
    random = np.random.default_rng(seed)
    drawn = np.stack([random.permutation(sample) for _ in range(orders)])
    return LearningCurve(sizes, np.stack([drawn[:, :size].mean(axis=1) for size in sizes]))


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("limit", [-10.0, 0.0, 50.0])
@pytest.mark.parametrize("times", [1.5, 4.0, 20.0])
def test_a_known_curve_is_recovered(power, limit, times):
    truth = 100 * times
    values = limit - 8.0 * SIZES**-power
    wanted = limit - 8.0 * truth**-power
    assert needed_number(SIZES, values, wanted) == pytest.approx(truth, rel=0.1)


def test_a_sum_of_known_curves_is_recovered():
    def value(number):
        return 3 - 2 * number**-0.5 - 20 * number**-1.0

    assert needed_number(SIZES, value(SIZES), value(700.0)) == pytest.approx(700, rel=0.1)


@pytest.mark.parametrize("limit", [-10.0, 0.0, 50.0])
def test_no_number_will_do_when_the_limit_is_below_the_goal(limit):
    values = limit - 8.0 * SIZES**-1.0
    assert needed_number(SIZES, values, limit + 0.01) == np.inf
    assert np.isfinite(needed_number(SIZES, values, limit - 0.01))


def test_a_goal_too_far_beyond_the_data_is_not_promised():
    values = -8.0 * SIZES**-1.0
    beyond = 3 * MOST_TIMES_MORE * SIZES[-1]
    assert needed_number(SIZES, values, -8.0 / beyond) == np.inf


def test_what_the_data_reach_already_needs_no_more():
    values = 5 - 8.0 * SIZES**-1.0
    assert needed_number(SIZES, values, values[-1]) == SIZES[-1]
    assert needed_number(SIZES, values, values[0]) == SIZES[-1]


def test_a_curve_that_does_not_rise_never_gets_there():
    assert needed_number(SIZES, np.full(len(SIZES), 2.0), 2.1) == np.inf
    assert needed_number(SIZES, 2 + 1.0 / SIZES, 2.1) == np.inf


def test_a_higher_goal_never_needs_fewer():
    noise = np.random.default_rng(0).normal(scale=0.05, size=len(SIZES))
    values = 1 - 3 * SIZES**-0.5 + noise
    numbers = [needed_number(SIZES, values, wanted) for wanted in np.linspace(0.5, 1.2, 40)]
    assert (np.diff([min(number, 1e9) for number in numbers]) >= 0).all()
    assert len(set(numbers)) > 5


@pytest.mark.parametrize("number", [8, 20, 100])
def test_the_zero_of_the_reward_does_not_matter(number):
    sizes = subset_sizes(number)
    values = -8.0 / sizes
    wanted = -8.0 / (2 * number)
    plain = needed_number(sizes, values, wanted)
    for shift in (-30.0, 30.0):
        shifted = needed_number(sizes, values + shift, wanted + shift)
        assert shifted == pytest.approx(plain, rel=0.1)


def test_a_single_size_shows_no_growth_whatever_the_sign_of_the_reward():
    for value in (-0.4, 0.4):
        assert needed_number(np.array([1]), np.array([value]), value + 0.2) == np.inf


def test_an_interval_from_a_single_size_is_not_sure_of_itself():
    curve = LearningCurve(np.array([1]), np.full((1, 8), -0.4))
    recommended, interval = recommend(curve, -0.2, seed=0)
    assert recommended is not None
    assert interval is not None
    low, high = interval
    assert high is None or high > low


@pytest.mark.parametrize("number", [*range(1, 40), 100, 1000, 12345])
def test_subset_sizes_rise_to_all_the_data(number):
    sizes = subset_sizes(number)
    assert sizes.dtype.kind == "i"
    assert (np.diff(sizes) > 0).all()
    assert sizes[-1] == number
    assert sizes[0] >= 1
    assert number < 5 or sizes[0] >= 4
    assert len(sizes) >= (1 if number < 5 else 2)
    if number >= 100:
        assert sizes[0] <= number / 8


@pytest.mark.parametrize("number", [2, 3])
def test_below_four_demonstrations_all_numbers_from_one_on_are_used(number):
    assert subset_sizes(number).tolist() == list(range(1, number + 1))


@pytest.fixture(scope="module")
def task():
    return chain(length=11, limit=-2, horizon=10, reward_scale=10)


@pytest.fixture(scope="module")
def data(task):
    return tacit.collect(tacit.train_expert(task), 30, seed=3)


def test_subsets_of_one_order_are_nested_and_end_with_all_the_data(task, data, monkeypatch):
    seen = []

    def watch(own_task, counts, confidences, method):
        assert own_task is task
        assert confidences.tolist() == [0.7]
        seen.append(counts)
        return counts.visitors.sum(axis=1)[None]

    monkeypatch.setattr(module, "policy_values", watch)
    curve = learning_curve(task, data, confidence=0.7, method=Counts(), seed=5)
    assert [counts.number for counts in seen] == curve.sizes.tolist()
    assert curve.values.shape == (len(curve.sizes), module.SUBSETS)
    for smaller, larger in itertools.pairwise(seen):
        added = larger.visitors - smaller.visitors
        assert (added >= 0).all()
        assert (added <= larger.number - smaller.number).all()
        steps = larger.number * larger.mean_visits - smaller.number * smaller.mean_visits
        assert (steps >= -1e-9).all()
        assert steps.sum(axis=1) == pytest.approx((larger.number - smaller.number) * task.horizon)
    assert len(np.unique(seen[0].mean_visits, axis=0)) > 1
    assert np.ptp(seen[-1].visitors, axis=0).max() == 0
    assert np.ptp(curve.values[-1]) == 0


def test_another_seed_draws_other_subsets_and_the_same_seed_the_same(task, data, monkeypatch):
    monkeypatch.setattr(
        module, "policy_values", lambda task, counts, *_: counts.mean_visits[:, 5][None]
    )
    one, again, other = (
        learning_curve(task, data, confidence=0.7, method=Counts(), seed=seed).values
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one, again)
    assert (one[0] != other[0]).any()


@pytest.mark.parametrize("number", [5, 6, 20, 50])
def test_the_interval_is_that_of_a_mean_where_the_statistic_is_a_mean(number):
    sample = np.random.default_rng(number).normal(size=number)
    estimate = curve_of_means(sample, orders=20_000, seed=1).value
    assert estimate.value == pytest.approx(sample.mean())
    expected = 1.96 * sample.std(ddof=1) / np.sqrt(number)
    assert estimate.high - estimate.value == pytest.approx(expected, rel=0.03)
    assert estimate.value - estimate.low == pytest.approx(expected, rel=0.03)


def test_the_interval_shrinks_as_demonstrations_are_added():
    sample = np.random.default_rng(0).normal(size=1600)
    widths = []
    for number in (16, 100, 400, 1600):
        estimate = curve_of_means(sample[:number], orders=200, seed=2).value
        widths.append(estimate.high - estimate.low)
    assert widths[-1] > 0
    assert (np.diff(widths) < 0).all()
    assert widths[-1] == pytest.approx(widths[0] / 10, rel=0.5)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_handful_of_demonstrations_gives_a_curve(task, data, number):
    few = data.subset(number, seed=1)
    curve = learning_curve(task, few, confidence=0.8, method=Counts(), seed=0)
    assert curve.sizes[-1] == number
    assert np.isfinite(curve.values).all()
    assert curve.value.low <= curve.value.value <= curve.value.high
    exact = tacit.evaluate(tacit.infer(task, few, confidence=0.8)).reward.value
    assert curve.value.value == pytest.approx(exact, abs=1e-6)
