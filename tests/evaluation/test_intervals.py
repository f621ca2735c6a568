"""Intervals hold their level, agree with scipy, and survive samples without spread."""

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tacit.errors import ArgumentError
from tacit.evaluation.intervals import (
    RESAMPLES,
    Estimate,
    mean_interval,
    mean_intervals,
    rate_interval,
    ratio_intervals,
)

reals = st.floats(-1e6, 1e6, allow_subnormal=False)
samples = arrays.arrays(np.float64, st.integers(2, 30), elements=reals)


def generator(seed=0):
    return np.random.default_rng(seed)


def test_an_estimate_prints_two_digits_of_its_width():
    assert str(Estimate(0.031, 0.012, 0.060)) == "0.031 [0.012, 0.060]"
    assert str(Estimate(1534.23, 1401.7, 1699.1)) == "1534 [1402, 1699]"
    assert str(Estimate.exact(0.25)) == "0.250"
    assert str(Estimate(-0.0001, -0.5, 0.5)) == "0.0 [-0.5, 0.5]"
    assert str(mean_interval([2.0])) == "2.000 [-inf, inf]"


def test_an_estimate_cannot_be_changed_and_holds_floats():
    exact = Estimate.exact(np.float32(2))  # type: ignore[arg-type]
    assert (exact.value, exact.low, exact.high) == (2.0, 2.0, 2.0)
    assert all(type(number) is float for number in dataclasses.astuple(exact))
    with pytest.raises(dataclasses.FrozenInstanceError):
        exact.value = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("number", [20, 50, 300])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_mean_interval_is_scipys_bca(number, level):
    values = generator(number).exponential(size=number)
    found = mean_interval(values, level=level, seed=3)
    wanted = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        confidence_level=level,
        method="BCa",
        rng=generator(99),
    ).confidence_interval
    assert found.value == pytest.approx(values.mean())
    tolerance = 0.05 * values.std()
    assert found.low == pytest.approx(wanted.low, abs=tolerance)
    assert found.high == pytest.approx(wanted.high, abs=tolerance)


def test_the_ratio_interval_is_scipys_bca():
    rng = generator(5)
    below = rng.integers(1, 20, size=40)
    above = rng.binomial(below, 0.8)
    value, low, high = ratio_intervals(above, below)
    wanted = stats.bootstrap(
        (above, below),
        lambda k, n, axis: k.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="BCa",
        rng=generator(99),
    ).confidence_interval
    assert value == pytest.approx(above.sum() / below.sum())
    assert [low, high] == pytest.approx([wanted.low, wanted.high], abs=2e-3)


@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_the_mean_interval_covers_the_mean_as_often_as_it_says(draw):
    values = getattr(generator(1), draw)(size=(1000, 50))
    mean = 0.0 if draw == "normal" else 1.0
    for level in (0.8, 0.95):
        _, low, high = mean_intervals(values, level=level)
        covered = np.mean((low <= mean) & (mean <= high))
        assert level - 0.04 < covered < level + 0.025


@pytest.mark.parametrize("probability", [0.02, 0.3])
def test_the_rate_interval_covers_the_rate_as_often_as_it_says(probability):
    intervals = [rate_interval(successes, 60, 0.9) for successes in range(61)]
    covered = [interval.low <= probability <= interval.high for interval in intervals]
    assert 0.87 < covered @ stats.binom.pmf(np.arange(61), 60, probability) < 0.99


def test_the_rate_interval_is_wilsons_formula_also_at_the_ends():
    z2 = stats.norm.ppf(0.975) ** 2
    none, every = rate_interval(0, 20), rate_interval(20, 20)
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(z2 / (20 + z2))
    assert (every.value, every.high) == (1.0, 1.0)
    assert every.low == pytest.approx(20 / (20 + z2))
    middle = rate_interval(np.int64(5), np.int64(20), 0.95)  # type: ignore[arg-type]
    half = np.sqrt(z2 * (0.25 * 0.75 / 20 + z2 / 1600)) / (1 + z2 / 20)
    centre = (0.25 + z2 / 40) / (1 + z2 / 20)
    assert [middle.low, middle.high] == pytest.approx([centre - half, centre + half])


@pytest.mark.parametrize("number", [2, 7, 50])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e-300])
def test_equal_values_give_an_interval_of_no_width(number, value):
    assert mean_interval(np.full(number, value)) == Estimate.exact(value)


def test_one_value_says_nothing_about_the_spread():
    assert mean_interval([3.0]) == Estimate(3.0, -np.inf, np.inf)


@settings(max_examples=50, deadline=None)
@given(samples)
def test_the_interval_lies_within_the_data_and_scales_with_it(values):
    found = mean_interval(values)
    slack = 1e-9 * (1 + np.abs(values).max())
    assert values.min() - slack <= found.low <= found.high <= values.max() + slack
    scaled = mean_interval(values * 4)  # a power of two, so that no rounding breaks ties
    assert [scaled.low, scaled.high] == pytest.approx([4 * found.low, 4 * found.high], abs=slack)


def test_rows_of_a_batch_equal_single_calls():
    values = generator(2).normal(size=(3, 101, 12))
    values[1, 5] = 4.0
    value, low, high = mean_intervals(values, seed=4)
    assert value.shape == low.shape == high.shape == (3, 101)
    for place in [(0, 0), (1, 5), (2, 100)]:
        single = mean_interval(values[place], seed=4)
        assert [value[place], low[place], high[place]] == pytest.approx(
            [single.value, single.low, single.high], abs=1e-12
        )


def test_blocks_do_not_change_the_answer(monkeypatch):
    values = generator(2).normal(size=(7, 20))
    whole = mean_intervals(values)
    monkeypatch.setattr("tacit.evaluation.intervals.KEPT_RESAMPLES", 0)
    monkeypatch.setattr("tacit.evaluation.intervals.BLOCK", 2 * RESAMPLES)
    np.testing.assert_allclose(mean_intervals(values), whole, rtol=1e-12)


def test_the_seed_alone_decides():
    values = generator(8).normal(size=20)
    np.random.seed(1)  # noqa: NPY002
    first = mean_interval(values, seed=1)
    np.random.seed(2)  # noqa: NPY002
    assert mean_interval(values, seed=1) == first
    assert mean_interval(values, seed=2) != first


def test_ties_count_half_whatever_the_unit():
    values = (generator(1).random(50) < 0.1).astype(float)
    whole, tenth = mean_interval(values), mean_interval(values * 0.1)
    assert [tenth.low, tenth.high] == pytest.approx([whole.low / 10, whole.high / 10])


def test_fifty_values_take_a_few_milliseconds():
    values = generator().normal(size=(20, 50))
    mean_interval(values[0])
    times = []
    for row in values:
        start = time.perf_counter()
        mean_interval(row)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "empty"),
        ([1.0, np.nan], r"values is nan at \[1\]"),
        ([1.0, np.inf], "inf"),
        ([[1.0, 2.0]], r"shape \[n\]"),
        (["a"], "not an array of numbers"),
        (3.0, r"shape \[n\]"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(ArgumentError, match=message):
        mean_interval(values)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95, np.nan])
def test_a_level_lies_between_zero_and_one(level):
    with pytest.raises(ArgumentError, match="level"):
        mean_interval([1.0, 2.0], level=level)
    with pytest.raises(ArgumentError, match="level"):
        rate_interval(1, 2, level=level)


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 0), (3, 2), (-1, 2), (1.0, 2), (True, 2), (1, "2")]
)
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(ArgumentError, match=r"successes|trials"):
        rate_interval(successes, trials)


@pytest.mark.parametrize(("above", "below"), [([1.0, 2.0], [1.0]), ([1.0], [0.0]), (1.0, 1.0)])
def test_ratios_need_positive_denominators_of_the_same_shape(above, below):
    with pytest.raises(ArgumentError, match="denominators"):
        ratio_intervals(above, below)


def test_an_estimate_compares_and_converts_by_its_value():
    estimate = Estimate(0.2, 0.1, 0.4)
    assert float(estimate) == 0.2
    assert estimate <= 0.2 < Estimate(0.3, 0.3, 0.3)
    assert estimate >= 0.2 > Estimate(0.1, 0.0, 0.9)
    assert not estimate < 0.2
    assert not estimate > 0.2
