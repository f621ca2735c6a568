"""Advantages against sums that are written out, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.control import ppo

advantages = jax.jit(ppo.advantages)

STEPS, WORLDS, SIGNALS = 7, 3, 2
numbers = st.floats(-100, 100)
shares = arrays(np.float64, SIGNALS, elements=st.floats(0, 1))
signals_of = arrays(np.float64, (STEPS, WORLDS, SIGNALS), elements=numbers)
endings = arrays(bool, (STEPS, WORLDS))
often = settings(max_examples=150, deadline=None)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def written_out(signals, values, arrived, terminated, truncated, discounts, traces):
    """A_t = sum over l of (discount * trace)^l delta_{t+l}, up to the end of the episode."""
    result = np.zeros_like(signals)
    for t in range(len(signals)):
        for world in range(signals.shape[1]):
            for signal, (discount, trace) in enumerate(zip(discounts, traces, strict=True)):
                weight = 1.0
                for later in range(t, len(signals)):
                    here = later, world, signal
                    ahead = 0.0 if terminated[later, world] else arrived[here]
                    surprise = signals[here] + discount * ahead - values[here]
                    result[t, world, signal] += weight * surprise
                    weight *= discount * trace
                    if terminated[later, world] or truncated[later, world]:
                        break
    return result


def one_episode(signals, values, arrived, *, terminated=False, truncated=False, discount, trace):
    """The advantages of one world and one signal whose last step ends as told."""
    steps = len(signals)
    ends = np.zeros((2, steps, 1), bool)
    ends[:, -1, 0] = terminated, truncated
    columns = [
        jnp.reshape(jnp.asarray(x, float), (steps, 1, 1)) for x in (signals, values, arrived)
    ]
    found = advantages(*columns, *ends, jnp.array([discount]), jnp.array([trace]))
    return np.asarray(found)[:, 0, 0]


@often
@given(signals_of, signals_of, signals_of, endings, endings, shares, shares)
def test_advantages_are_the_sums_written_out(
    signals, values, arrived, terminated, truncated, discounts, traces
):
    given_ = signals, values, arrived, terminated, truncated, discounts, traces
    np.testing.assert_allclose(advantages(*given_), written_out(*given_), rtol=1e-10, atol=1e-9)


@often
@given(signals_of, signals_of, signals_of, endings, endings, shares, shares)
def test_every_world_and_every_signal_is_on_its_own(
    signals, values, arrived, terminated, truncated, discounts, traces
):
    whole = advantages(signals, values, arrived, terminated, truncated, discounts, traces)
    worlds, kinds = np.array([2, 0, 1]), np.array([1, 0])
    others = advantages(
        *(field[:, worlds][:, :, kinds] for field in (signals, values, arrived)),
        terminated[:, worlds],
        truncated[:, worlds],
        discounts[kinds],
        traces[kinds],
    )
    np.testing.assert_allclose(others, np.asarray(whole)[:, worlds][:, :, kinds], rtol=1e-12)


@often
@given(signals_of, signals_of, signals_of, endings, shares, shares)
def test_nothing_flows_back_over_the_end_of_an_episode(
    signals, values, arrived, ends, discounts, traces
):
    ends[3] = True
    never = np.zeros_like(ends)
    first = advantages(signals, values, arrived, never, ends, discounts, traces)
    for field in (signals, values, arrived):
        field[4:] = 7.0
    second = advantages(signals, values, arrived, never, ends, discounts, traces)
    np.testing.assert_array_equal(first[:4], second[:4])


def test_a_time_limit_looks_ahead_and_an_end_does_not():
    facts = {"discount": 0.5, "trace": 0.5}
    signals, values, arrived = [1.0, 1.0], [0.0, 2.0], [2.0, 8.0]
    cut = one_episode(signals, values, arrived, truncated=True, **facts)
    over = one_episode(signals, values, arrived, terminated=True, **facts)
    # The last surprise is 1 + 0.5 * 8 - 2 = 3 with a look ahead and 1 - 2 = -1 without.
    np.testing.assert_allclose(cut, [2 + 0.25 * 3, 3])
    np.testing.assert_allclose(over, [2 - 0.25, -1])


def test_an_end_that_meets_the_time_limit_is_an_end():
    facts = {"discount": 0.9, "trace": 0.9}
    signals, values, arrived = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [5.0, 6.0, 7.0]
    both = one_episode(signals, values, arrived, terminated=True, truncated=True, **facts)
    over = one_episode(signals, values, arrived, terminated=True, **facts)
    np.testing.assert_array_equal(both, over)


def test_the_value_behind_the_last_step_counts_although_the_rollout_ends_there():
    facts = {"discount": 0.9, "trace": 0.8}
    running = one_episode([1.0, 1.0], [0.0, 0.0], [0.0, 10.0], **facts)
    np.testing.assert_allclose(running, [1 + 0.72 * 10, 10])


@often
@given(
    arrays(np.float64, 6, elements=numbers),
    arrays(np.float64, 6, elements=numbers),
    st.floats(0, 1),
)
def test_with_a_trace_of_one_it_is_the_discounted_return_minus_the_value(rewards, values, discount):
    # What a step arrives at is where the next one starts; the last value lies behind the limit.
    arrived = np.append(values[1:], 3.0)
    found = one_episode(rewards, values, arrived, truncated=True, discount=discount, trace=1.0)
    for t in range(6):
        powers = discount ** np.arange(7 - t)
        returned = powers @ np.append(rewards[t:], 3.0)
        np.testing.assert_allclose(found[t], returned - values[t], rtol=1e-9, atol=1e-8)


@often
@given(signals_of, signals_of, signals_of, endings, endings, shares)
def test_with_a_trace_of_zero_it_is_the_surprise_of_one_step(
    signals, values, arrived, terminated, truncated, discounts
):
    found = advantages(
        signals, values, arrived, terminated, truncated, discounts, np.zeros(SIGNALS)
    )
    ahead = np.where(terminated[..., None], 0.0, arrived)
    np.testing.assert_allclose(found, signals + discounts * ahead - values, rtol=1e-12, atol=1e-12)


def test_critics_that_are_right_leave_nothing_to_be_surprised_about():
    discount = 0.9
    values = np.array([1 + discount + discount**2, 1 + discount, 1.0])
    arrived = np.append(values[1:], 50.0)
    found = one_episode([1, 1, 1], values, arrived, terminated=True, discount=discount, trace=0.95)
    np.testing.assert_allclose(found, 0, atol=1e-12)
