"""The constrained plan against NumPy dynamic programming and a duality certificate."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from tacit.control import planning
from tacit.control.planning import Dynamics
from tacit.environments.lab_tasks import chain

STATES, ACTIONS, HORIZON = 4, 3, 4
SHAPE = (HORIZON, STATES, ACTIONS)
often = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)

compiled = jax.jit(partial(planning.constrained_plan, horizon=HORIZON))
compiled_penalised = jax.jit(partial(planning.penalised_plan, horizon=HORIZON))


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def problem(seed, *, deterministic=False):
    random = np.random.default_rng(seed)
    transitions = random.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS))
    if deterministic:
        transitions = np.eye(STATES)[random.integers(STATES, size=(STATES, ACTIONS))]
    width = ACTIONS if seed % 2 else 1  # a rule on pairs, or one on states, harder to avoid
    costs = (random.random((STATES, width)) < 0.4) * random.uniform(0.2, 1, (STATES, width))
    return SimpleNamespace(
        transitions=transitions,
        rewards=2 * random.normal(size=(STATES, ACTIONS)),
        costs=np.broadcast_to(costs, (STATES, ACTIONS)),
        initial=random.dirichlet(np.ones(STATES)),
        temperature=float(random.uniform(0.3, 3)),
    )


def dynamics_of(task):
    return Dynamics(
        *(
            jnp.asarray(getattr(task, field))
            for field in ("transitions", "rewards", "initial", "temperature")
        )
    )


def plan(task, budget):
    return compiled(dynamics_of(task), jnp.asarray(task.costs), jnp.asarray(float(budget)))


def soft_plan(task, rewards, forbidden=None):
    """NumPy soft value iteration: the policy and the value of the start."""
    value, policy = np.zeros(STATES), np.zeros(SHAPE)
    for step in reversed(range(HORIZON)):
        quality = rewards + task.transitions @ value
        if forbidden is not None:
            quality = np.where(forbidden, -1e9, quality)
        peak = quality.max(axis=1, keepdims=True)
        weights = np.exp((quality - peak) / task.temperature)
        value = peak[:, 0] + task.temperature * np.log(weights.sum(axis=1))
        policy[step] = weights / weights.sum(axis=1, keepdims=True)
    return policy, float(task.initial @ value)


def occupied(task, policy):
    here, pairs = task.initial, np.zeros(SHAPE)
    for step in range(HORIZON):
        pairs[step] = here[:, None] * policy[step]
        here = np.einsum("sa,san->n", pairs[step], task.transitions)
    return pairs


def expected(task, policy, values):
    return float((occupied(task, policy) * values).sum())


def soft_objective(task, policy):
    pairs = occupied(task, policy)
    surprise = -np.log(np.maximum(policy, 1e-300))
    return float((pairs * (task.rewards + task.temperature * surprise)).sum())


def least_cost(task):
    """The linear programme over occupancies: the smallest expected cost of any policy."""
    size = STATES * ACTIONS
    flow = np.zeros((HORIZON * STATES, HORIZON * size))
    for step in range(HORIZON):
        for state in range(STATES):
            row = step * STATES + state
            flow[row, step * size + state * ACTIONS : step * size + (state + 1) * ACTIONS] = 1
            if step:
                flow[row, (step - 1) * size : step * size] -= task.transitions[:, :, state].ravel()
    start = np.concatenate([task.initial, np.zeros((HORIZON - 1) * STATES)])
    return linprog(np.tile(task.costs.ravel(), HORIZON), A_eq=flow, b_eq=start).fun


def upper_bound(task, budget):
    """No policy within the budget has a larger soft objective: weak duality, for any price."""

    def dual(log_price):
        price = np.exp(log_price)
        return soft_plan(task, task.rewards - price * task.costs)[1] + price * budget

    found = minimize_scalar(dual, bounds=(-25, 15), method="bounded", options={"xatol": 1e-9})
    return min(found.fun, soft_plan(task, task.rewards)[1])


budgets = st.sampled_from((0.0, 0.02, 0.2, 0.5, 1.0, 2.0))


@often
@given(seeds, budgets)
def test_cost_is_within_the_budget_or_close_to_the_least_there_is(seed, budget):
    task = problem(seed)
    found = plan(task, budget)
    policy = np.asarray(found.policy)
    np.testing.assert_allclose(policy.sum(axis=2), 1, atol=1e-12)
    spent = expected(task, policy, task.costs)
    assert spent == pytest.approx(float(found.cost), abs=1e-10)
    least = least_cost(task)
    assert spent <= max(budget, least + min(0.05 * least, budget)) + 1e-3 * least + 1e-9
    assert spent >= least - 1e-9


@often
@given(seeds, budgets)
def test_no_policy_within_the_budget_is_better(seed, budget):
    task = problem(seed)
    reached = soft_objective(task, np.asarray(plan(task, budget).policy))
    least = least_cost(task)
    best = upper_bound(task, max(budget, least + min(0.05 * least, budget)))
    assert reached >= best - 1e-4 * (1 + abs(best))


@often
@given(seeds)
def test_the_price_is_zero_exactly_when_the_free_optimum_is_within_the_budget(seed):
    task = problem(seed)
    free, _ = soft_plan(task, task.rewards)
    spent = expected(task, free, task.costs)
    if spent < 1e-6:
        return
    enough, short = plan(task, 1.001 * spent), plan(task, 0.98 * spent)
    assert float(enough.multiplier) == 0
    np.testing.assert_allclose(enough.policy, free, atol=1e-10)
    if 1.05 * least_cost(task) < 0.98 * spent:
        assert float(short.multiplier) > 0
        assert float(short.cost) == pytest.approx(0.98 * spent, rel=1e-4)
        assert float(short.cost) <= 0.98 * spent


def test_an_infinite_budget_changes_nothing():
    task = problem(1)
    found = plan(task, np.inf)
    assert float(found.multiplier) == 0
    np.testing.assert_allclose(found.policy, soft_plan(task, task.rewards)[0], atol=1e-10)


def test_without_costs_a_budget_of_zero_changes_nothing():
    task = problem(2)
    task.costs = np.zeros((STATES, ACTIONS))
    found = plan(task, 0.0)
    assert float(found.multiplier) == 0
    assert float(found.cost) == 0
    np.testing.assert_allclose(found.policy, soft_plan(task, task.rewards)[0], atol=1e-10)


def survivable(task):
    """[H, S] whether the rest of the episode can go without any cost (deterministic dynamics)."""
    alive = np.ones((HORIZON + 1, STATES), dtype=bool)
    successor = task.transitions.argmax(axis=2)
    for step in reversed(range(HORIZON)):
        alive[step] = ((task.costs == 0) & alive[step + 1][successor]).any(axis=1)
    return alive, successor


def test_where_zero_cost_is_reachable_a_budget_of_zero_reaches_it_with_the_best_clean_policy():
    tried = 0
    for seed in range(60):
        task = problem(seed, deterministic=True)
        alive, successor = survivable(task)
        task.initial = alive[0] / max(alive[0].sum(), 1)
        if not alive[0].any() or not (task.costs > 0).any():
            continue
        tried += 1
        found = plan(task, 0.0)
        assert float(found.cost) < 1e-9
        value, best = np.zeros(STATES), np.zeros(SHAPE)
        for step in reversed(range(HORIZON)):
            clean = (task.costs == 0) & alive[step + 1][successor]
            quality = np.where(clean, task.rewards + value[successor], -np.inf)
            quality[~clean.any(axis=1)] = 0
            value = task.temperature * np.log(np.exp(quality / task.temperature).sum(axis=1))
            best[step] = np.exp((quality - value[:, None]) / task.temperature)
        np.testing.assert_allclose(
            occupied(task, np.asarray(found.policy)), occupied(task, best), atol=1e-6
        )
    assert tried >= 15


@often
@given(seeds, st.floats(1e-3, 1e3), budgets)
def test_the_scale_of_rewards_does_not_matter(seed, scale, budget):
    task, scaled = problem(seed), problem(seed)
    scaled.rewards, scaled.temperature = task.rewards * scale, task.temperature * scale
    one, other = plan(task, budget), plan(scaled, budget)
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-6)
    if budget > 0:  # at the least cost there is, rounding picks one of many prices
        np.testing.assert_allclose(other.multiplier, scale * one.multiplier, rtol=1e-5)


@often
@given(seeds)
def test_a_larger_budget_never_costs_less_nor_earns_less(seed):
    task = problem(seed)
    plans = [plan(task, budget) for budget in (0.0, 0.1, 0.3, 1.0, 3.0)]
    assert (np.diff([float(found.cost) for found in plans]) >= -1e-6).all()
    earned = [soft_objective(task, np.asarray(found.policy)) for found in plans]
    assert (np.diff(earned) >= -1e-6).all()


def test_a_penalised_plan_is_the_soft_optimum_for_reward_minus_price_times_cost():
    task = problem(5)
    found = compiled_penalised(dynamics_of(task), jnp.asarray(task.costs), 1.7)
    policy, _ = soft_plan(task, task.rewards - 1.7 * task.costs)
    np.testing.assert_allclose(found.policy, policy, atol=1e-12)
    assert float(found.cost) == pytest.approx(expected(task, policy, task.costs), abs=1e-12)
    assert float(found.multiplier) == 1.7


def test_dynamics_are_those_of_the_task_in_double_precision():
    task = chain(length=5, limit=-1, horizon=3)
    dynamics = Dynamics.of(task)
    np.testing.assert_array_equal(dynamics.transitions, task.transitions)
    np.testing.assert_array_equal(dynamics.rewards, task.rewards)
    np.testing.assert_array_equal(dynamics.initial, task.initial)
    assert float(dynamics.temperature) == task.temperature
    assert {array.dtype for array in dynamics} == {jnp.dtype("float64")}


def test_the_scale_of_costs_does_not_matter():
    for seed in range(8):
        task, scaled = problem(seed), problem(seed)
        scaled.costs = task.costs * 1e-4
        budget = 1.2 * least_cost(task) + 0.01
        np.testing.assert_allclose(
            plan(task, budget).policy, plan(scaled, 1e-4 * budget).policy, atol=1e-3
        )


def test_a_budget_that_only_rare_dangers_threaten_is_kept_when_it_can_be():
    transitions = np.zeros((STATES, ACTIONS, STATES))
    transitions[1:, :, 1:] = np.eye(3)[:, None, :]
    transitions[0, :, 1], transitions[0, :, 2] = (9e-4, 1e-4, 1e-4), (1 - 9e-4, 1 - 1e-4, 1 - 1e-4)
    task = SimpleNamespace(
        transitions=transitions,
        rewards=np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        costs=np.array([[0.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]),
        initial=np.array([1.0, 0, 0, 0]),
        temperature=0.001,
    )
    budget = 3 * 5e-4  # three steps in the forbidden state, with probability 0.0005
    assert least_cost(task) == pytest.approx(3e-4)
    assert float(plan(task, budget).cost) <= budget + 1e-9
