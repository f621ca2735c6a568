"""Readings of the belief against SciPy's Beta distribution."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ArgumentError
from tacit.inference.confidence import belief

SIZE = 32
often = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
confidences = st.floats(0.01, 0.99)
feasibility = jax.jit(belief.feasibility, static_argnames="reading")
step_cost = jax.jit(belief.step_cost, static_argnames="reading")
support = jax.jit(belief.support)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def counts(seed):
    """Alpha and beta of few and of many votes, whole and fractional, some of them absent."""
    random = np.random.default_rng(seed)
    shapes = 1 + np.exp(random.uniform(-5, np.log(2000), (2, SIZE)))
    shapes[random.random((2, SIZE)) < 0.25] = 1
    shapes[:, ::4] = np.round(shapes[:, ::4])
    return shapes


def read(shapes, confidence, reading):
    return np.asarray(feasibility(*shapes, confidence, reading=reading))


def cost(shapes, confidence, reading, budget=0.02):
    return np.asarray(step_cost(*shapes, confidence, reading=reading, budget=budget))


def clear(shapes, confidence):
    """Not so close to the edge between allowed and forbidden that rounding decides."""
    return np.abs(stats.beta.sf(0.5, *shapes) - confidence) > 1e-6


@often
@given(seeds)
def test_support_is_the_mass_above_one_half(seed):
    shapes = counts(seed)
    np.testing.assert_allclose(support(*shapes), stats.beta.sf(0.5, *shapes), rtol=1e-8, atol=1e-14)


@often
@given(seeds, confidences)
def test_the_soft_reading_is_the_quantile_at_one_minus_the_confidence(seed, confidence):
    shapes = counts(seed)
    wanted = stats.beta.ppf(1 - confidence, *shapes)
    np.testing.assert_allclose(read(shapes, confidence, "soft"), wanted, atol=1e-9)


@often
@given(seeds, confidences)
def test_the_hard_reading_allows_where_enough_mass_lies_above_one_half(seed, confidence):
    shapes = counts(seed)
    sure = clear(shapes, confidence)
    hard = read(shapes, confidence, "hard")
    assert set(hard) <= {0.0, 1.0}
    wanted = stats.beta.sf(0.5, *shapes) >= confidence
    np.testing.assert_array_equal(hard[sure], wanted[sure])


@often
@given(seeds, confidences)
def test_the_hard_reading_allows_where_the_soft_one_reaches_one_half(seed, confidence):
    shapes = counts(seed)
    sure = clear(shapes, confidence)
    hard, soft = read(shapes, confidence, "hard"), read(shapes, confidence, "soft")
    np.testing.assert_array_equal(hard[sure] > 0, soft[sure] >= 0.5)


@often
@given(seeds, confidences, confidences)
def test_what_is_allowed_at_a_higher_confidence_is_allowed_at_a_lower_one(seed, one, other):
    shapes = counts(seed)
    low, high = sorted((one, other))
    for reading in belief.READINGS:
        assert (read(shapes, high, reading) <= read(shapes, low, reading) + 1e-12).all()


@often
@given(seeds, confidences)
def test_the_graded_reading_is_one_exactly_where_the_hard_one_allows(seed, confidence):
    shapes = counts(seed)
    graded = read(shapes, confidence, "graded")
    assert ((graded >= 0) & (graded <= 1)).all()
    np.testing.assert_array_equal(graded == 1, read(shapes, confidence, "hard") == 1)
    reached = np.minimum(1, stats.beta.sf(0.5, *shapes) / confidence)
    np.testing.assert_allclose(graded, reached, atol=2e-7)


@often
@given(seeds, confidences, confidences, st.floats(1e-3, 2))
def test_costs_lie_between_zero_and_one_and_rise_with_confidence(seed, one, other, budget):
    shapes = counts(seed)
    low, high = sorted((one, other))
    for reading in belief.READINGS:
        less, more = (cost(shapes, level, reading, budget) for level in (low, high))
        assert ((less >= 0) & (more <= 1)).all()
        assert (more >= less - 1e-9).all()


@often
@given(seeds, confidences)
def test_soft_and_hard_costs_are_one_minus_feasibility(seed, confidence):
    shapes = counts(seed)
    for reading in ("soft", "hard"):
        wanted = 1 - read(shapes, confidence, reading)
        np.testing.assert_allclose(cost(shapes, confidence, reading), wanted, atol=1e-15)


@often
@given(seeds, confidences, st.floats(1e-3, 2))
def test_a_graded_cost_prices_the_missing_bits(seed, confidence, budget):
    shapes = counts(seed)
    bits = np.log2(confidence) - stats.beta.logsf(0.5, *shapes) / np.log(2)
    price = min(4 * max(budget, 0.01) / (1 - confidence), 1)
    wanted = 1 - np.exp(-price * np.maximum(bits, 0))
    found = cost(shapes, confidence, "graded", budget)
    sure = clear(shapes, confidence)
    np.testing.assert_allclose(found[sure], wanted[sure], rtol=1e-6, atol=1e-12)
    allowed = read(shapes, confidence, "hard") == 1
    assert (found[allowed] == 0).all()


@given(confidences)
def test_without_evidence_the_soft_reading_is_one_minus_the_confidence(confidence):
    nothing = np.ones((2, SIZE))
    np.testing.assert_allclose(read(nothing, confidence, "soft"), 1 - confidence, atol=1e-9)


def test_without_evidence_the_hard_reading_allows_up_to_one_half_and_not_beyond():
    nothing = np.ones((2, SIZE))
    assert (read(nothing, 0.5, "hard") == 1).all()
    assert (read(nothing, 0.501, "hard") == 0).all()


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.99])
def test_a_graded_cost_never_stops_rising_with_the_missing_evidence(confidence):
    against = np.stack([np.ones(SIZE), np.linspace(5, 7, SIZE)])
    found = cost(against, confidence, "graded", 0.0)
    assert (np.diff(found) > 0).all()
    assert (found > 0).all()
    assert (found < 1).all()


def test_a_rejected_step_has_a_cost_even_when_the_budget_is_zero():
    against = np.stack([np.ones(SIZE), np.full(SIZE, 50.0)])
    assert (cost(against, 0.9, "graded", 0.0) > 0).all()
    np.testing.assert_array_equal(
        cost(against, 0.9, "graded", 0.0), cost(against, 0.9, "graded", 0.01)
    )


def test_an_overwhelming_majority_against_costs_a_full_violation():
    against = np.stack([np.ones(SIZE), np.full(SIZE, 20_001.0)])
    for reading in belief.READINGS:
        np.testing.assert_allclose(cost(against, 0.5, reading), 1, atol=1e-4)


@pytest.mark.parametrize("reading", ["Hard", "", "quantile", None])
def test_an_unknown_reading_is_an_error_that_names_the_known_ones(reading):
    with pytest.raises(ArgumentError, match="soft, hard, graded"):
        belief.feasibility(np.ones(SIZE), np.ones(SIZE), 0.5, reading)
    with pytest.raises(ArgumentError, match="soft, hard, graded"):
        belief.step_cost(np.ones(SIZE), np.ones(SIZE), 0.5, reading, 0.02)
