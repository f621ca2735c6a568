"""Running moments against those of everything at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.control import networks
from tacit.control.networks import LARGEST, Moments

updated = jax.jit(Moments.updated)
standardise = jax.jit(Moments.standardise)
rescale = jax.jit(Moments.rescale)
running_returns = jax.jit(networks.running_returns)

COLUMNS, ROWS = 3, 8
OFFSETS, SPREADS = np.array([0.0, 50.0, -1e4]), np.array([1.0, 1e-2, 30.0])
often = settings(max_examples=100, deadline=None)
batches = st.lists(arrays(np.float64, (ROWS, COLUMNS), elements=st.floats(-5, 5)), max_size=6)


def seen(parts, moments=None):
    """The moments after some batches."""
    moments = moments or Moments.start(COLUMNS)
    for part in parts:
        moments = updated(moments, jnp.asarray(part, jnp.float32))
    return moments


@often
@given(batches.filter(len))
def test_moments_are_those_of_all_batches_together(parts):
    parts = [(part * SPREADS + OFFSETS).astype(np.float32) for part in parts]
    moments = seen(parts)
    whole = np.concatenate(parts).astype(np.float64)
    resolved = 1e-5 * (np.abs(OFFSETS) + SPREADS)  # what float32 can tell apart
    assert (np.abs(moments.mean - whole.mean(axis=0)) < resolved).all()
    error = np.abs(moments.variance - whole.var(axis=0))
    assert (error < 1e-4 * SPREADS**2 + 10 * resolved * SPREADS).all()
    assert moments.seen == len(whole)


@often
@given(batches.filter(lambda parts: len(parts) > 1))
def test_the_order_of_batches_does_not_matter(parts):
    first, second = seen(parts), seen(parts[::-1])
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-5)
    np.testing.assert_allclose(first.variance, second.variance, atol=1e-4)


def test_a_large_offset_does_not_drown_the_variance():
    random = np.random.default_rng(0)
    parts = [1e4 + random.normal(size=(ROWS * 100, COLUMNS)) for _ in range(50)]
    moments = seen(parts)
    np.testing.assert_allclose(moments.variance, 1, rtol=0.02)
    np.testing.assert_allclose(moments.mean, 1e4, atol=0.05)


def test_the_moments_of_nothing_are_forgotten_with_the_first_batch():
    part = np.random.default_rng(1).normal(5, 0.1, (ROWS, COLUMNS))
    moments = seen([part])
    np.testing.assert_allclose(moments.mean, part.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(moments.variance, part.var(axis=0), rtol=1e-3)


def test_many_axes_are_rows_as_well():
    part = np.random.default_rng(2).normal(size=(4, 2, COLUMNS)).astype(np.float32)
    flat, deep = seen([part.reshape(8, COLUMNS)]), seen([part])
    np.testing.assert_allclose(flat.mean, deep.mean, rtol=1e-6)
    np.testing.assert_allclose(flat.variance, deep.variance, rtol=1e-6)


def test_the_count_still_counts_after_a_hundred_million_steps():
    moments = Moments(jnp.zeros(COLUMNS), jnp.ones(COLUMNS), jnp.asarray(1e8))
    for _ in range(10):
        moments = seen([np.zeros((8192, COLUMNS))], moments)
    assert moments.seen == 1e8 + 10 * 8192


def test_standardised_values_have_mean_zero_and_variance_one():
    values = (np.random.default_rng(3).normal(size=(500, COLUMNS)) * SPREADS + OFFSETS).astype("f")
    seen_by_networks = np.asarray(standardise(seen([values]), jnp.asarray(values)))
    # A column at -1e4 is resolved to 1e-3, which is 3e-5 of its spread.
    np.testing.assert_allclose(seen_by_networks.mean(axis=0), 0, atol=1e-2)
    np.testing.assert_allclose(seen_by_networks.std(axis=0), 1, rtol=1e-2)


def test_rescaled_values_keep_their_zero():
    moments = Moments(jnp.array([5.0, -3.0, 0.0]), jnp.array([4.0, 0.25, 1.0]), jnp.asarray(9.0))
    values = jnp.array([[0.0, 0.0, 0.0], [2.0, 1.0, -1.0]])
    np.testing.assert_allclose(rescale(moments, values), [[0, 0, 0], [1, 2, -1]], rtol=1e-6)


@pytest.mark.parametrize("function", [standardise, rescale])
def test_what_is_far_out_is_cut_to_ten(function):
    moments = Moments(jnp.zeros(2), jnp.ones(2), jnp.asarray(1.0))
    values = jnp.array([[1e6, -1e6], [9.5, -9.5], [jnp.inf, -jnp.inf]])
    np.testing.assert_allclose(
        function(moments, values), [[LARGEST, -LARGEST], [9.5, -9.5], [LARGEST, -LARGEST]]
    )
    assert LARGEST == 10


def test_a_column_that_never_moves_gives_zeros_and_not_nan():
    values = np.full((ROWS, COLUMNS), 7.0, np.float32)
    moments = seen([values, values])
    np.testing.assert_array_equal(standardise(moments, jnp.asarray(values)), 0)
    assert np.isfinite(rescale(moments, jnp.asarray(values))).all()


@often
@given(
    arrays(np.float64, (2, 2), elements=st.floats(-10, 10)),
    arrays(np.float64, (9, 2, 2), elements=st.floats(-10, 10)),
    arrays(bool, (9, 2)),
    arrays(np.float64, 2, elements=st.floats(0, 1)),
)
def test_running_returns_are_those_of_a_loop(start, signals, ended, discounts):
    with jax.enable_x64(True):
        last, found = running_returns(start, signals, ended, discounts)
    total = start.copy()
    for t in range(9):
        for world in range(2):
            total[world] = discounts * total[world] + signals[t, world]
            np.testing.assert_allclose(found[t, world], total[world], rtol=1e-12, atol=1e-12)
            if ended[t, world]:
                total[world] = 0
    np.testing.assert_allclose(last, total, rtol=1e-12, atol=1e-12)


def test_running_returns_go_on_where_the_last_rollout_stopped():
    random = np.random.default_rng(4)
    signals = random.normal(size=(10, 2, 3)).astype(np.float32)
    ended = random.random((10, 2)) < 0.2
    discounts = jnp.array([0.9, 0.99, 0.5])
    last, whole = running_returns(jnp.zeros((2, 3)), signals, ended, discounts)
    middle, first = running_returns(jnp.zeros((2, 3)), signals[:4], ended[:4], discounts)
    final, second = running_returns(middle, signals[4:], ended[4:], discounts)
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-6)
    np.testing.assert_allclose(final, last, rtol=1e-6)
