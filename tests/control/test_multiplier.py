"""The price of cost: up while there is too much of it, down while there is less."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from tacit.control import multiplier
from tacit.control.multiplier import Multiplier
from tacit.errors import ArgumentError

ascend = jax.jit(multiplier.ascend, static_argnums=0)


def prices(rules, costs, state=None):
    """The prices [updates, k] over some updates with these costs [updates, k], and the state."""
    costs = np.atleast_2d(np.asarray(costs, np.float32).T).T
    state = state or multiplier.start(rules, costs.shape[1])
    found = []
    for row in costs:
        state = ascend(rules, state, jnp.asarray(row))
        found.append(np.asarray(state.price))
    return np.array(found), state


@pytest.mark.parametrize("start", [1e-3, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["lagrange", "penalty", "pid"])
def test_every_price_starts_where_it_is_told_to(kind, start):
    state = multiplier.start(Multiplier(kind=kind, start=start), 3)
    np.testing.assert_allclose(state.price, start)
    np.testing.assert_allclose(jax.nn.softplus(state.theta), start, rtol=1e-4)


def test_the_price_rises_with_every_update_above_the_budget():
    found, _ = prices(Multiplier(budget=0.1), [0.3] * 30)
    assert (np.diff(found[:, 0], prepend=1.0) > 0).all()


def test_the_price_falls_below_the_budget_and_below_its_start():
    found, _ = prices(Multiplier(budget=0.1), [0.02] * 60)
    assert (np.diff(found[:, 0], prepend=1.0) < 0).all()
    assert 0 < found[-1, 0] < 0.1


def test_the_price_stays_where_the_cost_is_its_budget():
    found, _ = prices(Multiplier(budget=0.25), [0.25] * 20)
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)


def test_without_budget_and_without_cost_the_price_stays():
    found, _ = prices(Multiplier(budget=0.0), [0.0] * 50)
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)


def test_without_budget_the_price_rises_to_a_stop_once_the_cost_is_gone():
    rules = Multiplier(budget=0.0)
    rising, state = prices(rules, [0.4] * 20)
    after, _ = prices(rules, [0.0] * 200, state)
    # Adam's momentum carries on for some updates; it never turns back.
    assert (np.diff(after[:, 0], prepend=rising[-1, 0]) >= 0).all()
    assert after[100, 0] == pytest.approx(after[-1, 0], rel=1e-4)
    assert after[-1, 0] < rising[-1, 0] + 10 * rules.rate


def test_one_update_moves_theta_by_the_rate_whatever_the_size_of_the_cost():
    for cost in (1e-3, 1.0, 1e3):
        rules = Multiplier(budget=0.0, rate=0.1)
        state = ascend(rules, multiplier.start(rules, 1), jnp.array([cost]))
        before = np.log(np.expm1(1.0))
        np.testing.assert_allclose(state.theta, before + 0.1, rtol=1e-4)
        np.testing.assert_allclose(state.price, np.log1p(np.exp(before + 0.1)), rtol=1e-4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=12, max_size=12))
def test_lagrange_is_adam_on_theta(costs):
    rules = Multiplier(budget=0.3, rate=0.05, start=2.0)
    found, _ = prices(rules, costs)
    theta, mean, square = 2.0 + np.log(-np.expm1(-2.0)), 0.0, 0.0
    for count, cost in enumerate(np.float32(costs), start=1):
        error = float(cost - np.float32(0.3))
        mean, square = 0.9 * mean + 0.1 * error, 0.999 * square + 0.001 * error**2
        step = (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
        theta += 0.05 * step
        assert found[count - 1, 0] == pytest.approx(np.log1p(np.exp(theta)), rel=1e-3)


@pytest.mark.parametrize("kind", ["lagrange", "pid"])
def test_the_price_never_exceeds_its_cap(kind):
    found, state = prices(Multiplier(kind=kind, budget=0.0, largest=3.0), [0.9] * 100)
    assert found.max() == pytest.approx(3.0, rel=1e-6)
    assert found.max() <= 3.0
    assert jax.nn.softplus(state.theta[0]) <= 3.0 + 1e-5


def test_time_spent_at_the_cap_is_not_time_needed_to_leave_it():
    rules = Multiplier(budget=0.5, largest=3.0)
    needed = []
    for updates_at_cap in (50, 500):
        _, state = prices(rules, [1.0] * updates_at_cap)
        assert state.price[0] == pytest.approx(3.0)
        after, _ = prices(rules, [0.0] * 60, state)
        needed.append(int(np.argmax(after[:, 0] < 2.5)))
    assert 0 < needed[1] <= needed[0] + 2 < 25


def test_pid_is_its_formula():
    gains = {"proportional": 3.0, "integral": 0.5, "derivative": 2.0}
    rules = Multiplier(kind="pid", budget=0.2, **gains)
    costs = np.random.default_rng(0).random(40)
    found, _ = prices(rules, costs)
    total, last = 0.0, 0.0
    for price, cost in zip(found[:, 0], costs, strict=True):
        total = max(total + cost - 0.2, 0.0)
        wanted = 3.0 * (cost - 0.2) + 0.5 * total + 2.0 * max(cost - last, 0.0)
        assert price == pytest.approx(max(wanted, 0.0), rel=1e-4, abs=1e-5)
        last = cost


def test_pid_forgets_no_debt_but_saves_nothing_up():
    rules = Multiplier(kind="pid", budget=0.5, proportional=0.0, integral=1.0)
    saved, state = prices(rules, [0.0] * 20)
    np.testing.assert_array_equal(saved, 0)
    owed, _ = prices(rules, [1.0, 1.0, 0.5, 0.5], state)
    np.testing.assert_allclose(owed[:, 0], [0.5, 1.0, 1.0, 1.0])


def test_a_penalty_is_due_only_above_the_budget():
    found, _ = prices(Multiplier(kind="penalty", budget=0.3, start=5.0), [0.2, 0.31, 0.3, 0.9])
    np.testing.assert_array_equal(found[:, 0], [0, 5, 0, 5])


@pytest.mark.parametrize("kind", ["lagrange", "pid", "penalty"])
def test_constraints_do_not_touch_each_other(kind):
    budgets, random = (0.1, 0.5, 0.9), np.random.default_rng(1)
    costs = random.random((25, 3))
    together, _ = prices(Multiplier(kind=kind, budget=budgets), costs)
    for place, budget in enumerate(budgets):
        alone, _ = prices(Multiplier(kind=kind, budget=budget), costs[:, place])
        np.testing.assert_allclose(together[:, place], alone[:, 0], rtol=1e-5)


def test_one_budget_is_for_every_constraint():
    np.testing.assert_allclose(Multiplier(budget=0.5).budgets(3), 0.5)
    np.testing.assert_allclose(Multiplier(budget=(0.5, 0.25)).budgets(2), [0.5, 0.25])


def test_a_number_of_budgets_that_fits_no_constraints_is_an_error():
    with pytest.raises(ArgumentError, match="2 budgets were given for 3 constraints"):
        multiplier.start(Multiplier(budget=(0.1, 0.2)), 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": -0.1}, "budget of cost must be at least 0, not -0.1"),
        ({"budget": float("nan")}, "budget"),
        ({"budget": (0.1, -1.0)}, "at least 0, not -1.0"),
        ({"start": 0.0}, "start above 0"),
        ({"start": float("nan")}, "start above 0"),
        ({"rate": -1.0}, "rate must be at least 0"),
        ({"start": 5.0, "largest": 4.0}, "4.0, is below its start, 5.0"),
    ],
)
def test_settings_that_cannot_work_are_errors(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        Multiplier(**wrong)


def test_a_rate_of_zero_fixes_the_price():
    found, _ = prices(Multiplier(rate=0.0, start=4.0), [0.9] * 10)
    np.testing.assert_allclose(found, 4.0, rtol=1e-6)


def test_very_large_prices_stay_finite():
    found, state = prices(Multiplier(start=1e4, rate=10.0), [1.0] * 20)
    assert np.isfinite(found).all()
    assert found[-1, 0] == pytest.approx(float(state.theta[0]))
    assert expit(state.theta[0]) == 1


def test_the_price_of_a_share_moves_at_most_by_its_rate_and_as_fast_down_as_up():
    rules = Multiplier(kind="share", budget_per="worst", budget=0.04, rate=0.03, largest=10.0)
    up, _ = prices(rules, [0.5] * 20)
    np.testing.assert_allclose(up[:, 0], np.exp(0.03 * np.arange(1, 21)), rtol=1e-4)
    down, _ = prices(rules, [0.0] * 20)
    np.testing.assert_allclose(down[:, 0], np.exp(-0.03 * np.arange(1, 21)), rtol=0.02)
    level, _ = prices(rules, [0.04] * 20)
    np.testing.assert_allclose(level, 1.0, rtol=1e-5)


def test_the_price_of_a_share_stays_within_its_bounds():
    rules = Multiplier(kind="share", budget_per="worst", rate=1.0, largest=10.0)
    found, state = prices(rules, [0.5] * 10)
    assert found.max() == 10
    found, _ = prices(rules, [0.0] * 30, state._replace(allowance=jnp.array([0.1])))
    assert 0 < found.min() <= 0.011
    assert found[1] < 10
