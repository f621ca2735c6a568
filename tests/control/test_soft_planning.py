"""Exact control against all trajectories of tiny problems, written out one by one."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.control import soft_planning

STATES, ACTIONS, HORIZON = 3, 2, 4
DISCOUNT, LONG = 0.9, 400  # 0.9^400 is far below what the tests resolve
PLACES = np.array(list(itertools.product(range(STATES * ACTIONS), repeat=HORIZON)))
VISITED, CHOSEN = np.divmod(PLACES, ACTIONS)
STEPS = np.arange(HORIZON), VISITED, CHOSEN
MOVES = VISITED[:, :-1], CHOSEN[:, :-1], VISITED[:, 1:]

soft_value_iteration = jax.jit(soft_planning.soft_value_iteration, static_argnames="horizon")
stationary_soft_value_iteration = jax.jit(soft_planning.stationary_soft_value_iteration)
occupancy = jax.jit(soft_planning.occupancy)
discounted_occupancy = jax.jit(soft_planning.discounted_occupancy)
violation_probability = jax.jit(soft_planning.violation_probability)
stationary_violation_probability = jax.jit(soft_planning.stationary_violation_probability)
visit_probability = jax.jit(soft_planning.visit_probability, static_argnames="on_pairs")

seeds = st.integers(0, 2**32 - 1)
kinds = st.booleans()
often = settings(max_examples=20, deadline=None)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def problem(seed, *, deterministic=False):
    """A random problem, with a random policy per step and a stationary one, as JAX arrays."""
    random = np.random.default_rng(seed)
    transitions = random.dirichlet(np.full(STATES, 0.6), (STATES, ACTIONS))
    if deterministic:
        transitions = np.eye(STATES)[random.integers(STATES, size=(STATES, ACTIONS))]
    fields = {
        "transitions": transitions,
        "rewards": 2 * random.normal(size=(STATES, ACTIONS)),
        "costs": (random.random((STATES, ACTIONS)) < 0.3) * random.random((STATES, ACTIONS)),
        "initial": random.dirichlet(np.ones(STATES)),
        "policy": random.dirichlet(np.ones(ACTIONS), (HORIZON, STATES)),
        "stationary": random.dirichlet(np.ones(ACTIONS), STATES),
    }
    arrays = {name: jnp.asarray(array) for name, array in fields.items()}
    return SimpleNamespace(**arrays, temperature=float(random.uniform(0.3, 3)))


def trajectory_probabilities(task, policy):
    """P(s_0, a_0, ..., s_3, a_3) of every row of VISITED and CHOSEN."""
    chosen = np.asarray(policy)[STEPS].prod(axis=1)
    moved = np.asarray(task.transitions)[MOVES].prod(axis=1)
    return np.asarray(task.initial)[VISITED[:, 0]] * chosen * moved


def trajectory_rewards(task):
    return np.asarray(task.rewards)[VISITED, CHOSEN].sum(axis=1)


def soft_objective(task, policy):
    """E[reward] + temperature * E[-sum_t log pi_t(a_t | s_t)], summed over all trajectories."""
    surprise = -np.log(np.maximum(np.asarray(policy)[STEPS], 1e-300)).sum(axis=1)
    gain = trajectory_rewards(task) + task.temperature * surprise
    return trajectory_probabilities(task, policy) @ gain


def plan(task):
    return soft_value_iteration(
        task.transitions, task.rewards, horizon=HORIZON, temperature=task.temperature
    )


def plan_forever(task):
    return stationary_soft_value_iteration(
        task.transitions, task.rewards, DISCOUNT, temperature=task.temperature
    )


def with_a_stop(task, idle_reward=0.0):
    """The same problem where every step leads to a stop with probability 1 - DISCOUNT."""
    transitions = np.zeros((STATES + 1, ACTIONS, STATES + 1))
    transitions[:STATES, :, :STATES] = DISCOUNT * np.asarray(task.transitions)
    transitions[:STATES, :, STATES] = 1 - DISCOUNT
    transitions[STATES, :, STATES] = 1
    extra_row = ((0, 1), (0, 0))
    policy = np.pad(np.asarray(task.stationary), extra_row, constant_values=1 / ACTIONS)
    return SimpleNamespace(
        transitions=jnp.asarray(transitions),
        rewards=jnp.pad(task.rewards, extra_row, constant_values=idle_reward),
        costs=jnp.pad(task.costs, extra_row),
        initial=jnp.pad(task.initial, (0, 1)),
        policy=jnp.broadcast_to(policy, (LONG, STATES + 1, ACTIONS)),
    )


@given(seed=seeds)
@often
def test_without_chance_trajectories_are_weighted_by_the_exponential_of_their_reward(seed):
    task = problem(seed, deterministic=True)
    policy, values = plan(task)
    possible = np.asarray(task.transitions)[MOVES].all(axis=1)
    weight = possible * np.exp(trajectory_rewards(task) / task.temperature)
    total = np.bincount(VISITED[:, 0], weight, minlength=STATES)
    expected = np.asarray(task.initial)[VISITED[:, 0]] * weight / total[VISITED[:, 0]]
    np.testing.assert_allclose(trajectory_probabilities(task, policy), expected, atol=1e-12)
    np.testing.assert_allclose(values[0], task.temperature * np.log(total), atol=1e-10)


@given(seed=seeds, deterministic=kinds)
@often
def test_no_policy_earns_more_reward_and_entropy_together(seed, deterministic):
    task = problem(seed, deterministic=deterministic)
    policy, values = plan(task)
    best = soft_objective(task, policy)
    assert best == pytest.approx(float(task.initial @ values[0]), abs=1e-10)
    random = np.random.default_rng(seed)
    for spread in (0.1, 1.0, 10.0):
        rival = random.dirichlet(np.full(ACTIONS, spread), (HORIZON, STATES))
        assert soft_objective(task, rival) <= best + 1e-10
        for share in (0.5, 1e-2):
            nearby = (1 - share) * np.asarray(policy) + share * rival
            assert soft_objective(task, nearby) <= best + 1e-10


@given(seed=seeds)
@often
def test_the_gradient_of_the_value_is_the_occupancy(seed):
    task = problem(seed)

    def value(rewards):
        _, values = soft_value_iteration(
            task.transitions, rewards, horizon=HORIZON, temperature=task.temperature
        )
        return task.initial @ values[0]

    visits = occupancy(task.transitions, task.initial, plan(task)[0]).sum(axis=0)
    np.testing.assert_allclose(jax.grad(value)(task.rewards), visits, atol=1e-11)


@given(seed=seeds, deterministic=kinds)
@often
def test_occupancy_and_expected_reward_equal_sums_over_trajectories(seed, deterministic):
    task = problem(seed, deterministic=deterministic)
    probability = trajectory_probabilities(task, task.policy)
    visits = np.asarray(occupancy(task.transitions, task.initial, task.policy))
    expected = np.zeros((HORIZON, STATES, ACTIONS))
    for step in range(HORIZON):
        np.add.at(expected[step], (VISITED[:, step], CHOSEN[:, step]), probability)
    np.testing.assert_allclose(visits, expected, atol=1e-13)
    assert (visits * np.asarray(task.rewards)).sum() == pytest.approx(
        probability @ trajectory_rewards(task), abs=1e-12
    )


@given(seed=seeds, deterministic=kinds, of_states=kinds)
@often
def test_violation_equals_the_sum_over_violating_trajectories(seed, deterministic, of_states):
    task = problem(seed, deterministic=deterministic)
    costs = jnp.tile(task.costs[:, :1], ACTIONS) if of_states else task.costs
    violates = (np.asarray(costs)[VISITED, CHOSEN] > 0).any(axis=1)
    expected = trajectory_probabilities(task, task.policy)[violates].sum()
    found = violation_probability(task.transitions, task.initial, task.policy, costs)
    assert float(found) == pytest.approx(expected, abs=1e-13)


@given(seed=seeds, deterministic=kinds, on_pairs=kinds)
@often
def test_visits_equal_the_sums_over_visiting_trajectories(seed, deterministic, on_pairs):
    task = problem(seed, deterministic=deterministic)
    probability = trajectory_probabilities(task, task.policy)
    places = PLACES if on_pairs else VISITED
    hits = [(places == place).any(axis=1) for place in np.unique(places)]
    expected = [probability[hit].sum() for hit in hits]
    found = visit_probability(task.transitions, task.initial, task.policy, on_pairs=on_pairs)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@given(seed=seeds)
@often
def test_the_stationary_policy_is_that_of_a_long_episode_that_may_stop(seed):
    """Waiting at the stop pays -temperature * log(A), so that its soft value is zero."""
    task = problem(seed)
    policy, value = plan_forever(task)
    longer = with_a_stop(task, idle_reward=-task.temperature * np.log(ACTIONS))
    long_policy, long_values = soft_value_iteration(
        longer.transitions, longer.rewards, horizon=LONG, temperature=task.temperature
    )
    np.testing.assert_allclose(value, long_values[0, :STATES], atol=1e-9)
    np.testing.assert_allclose(policy, long_policy[0, :STATES], atol=1e-9)


@given(seed=seeds)
@often
def test_the_stationary_value_is_attained_by_its_policy_and_by_no_other(seed):
    task = problem(seed)
    policy, value = plan_forever(task)

    def evaluate(candidate):
        surprise = -np.log(np.maximum(candidate, 1e-300))
        gain = (candidate * (np.asarray(task.rewards) + task.temperature * surprise)).sum(axis=1)
        step = np.einsum("sa,san->sn", candidate, np.asarray(task.transitions))
        return np.linalg.solve(np.eye(STATES) - DISCOUNT * step, gain)

    np.testing.assert_allclose(evaluate(np.asarray(policy)), value, atol=1e-9)
    random = np.random.default_rng(seed)
    for spread in (0.1, 1.0, 10.0):
        rival = random.dirichlet(np.full(ACTIONS, spread), STATES)
        assert (evaluate(rival) <= np.asarray(value) + 1e-9).all()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_the_stationary_value_is_within_the_tolerance(tolerance):
    task = problem(8)
    arguments = task.transitions, task.rewards, 0.99
    _, exact = stationary_soft_value_iteration(*arguments, tolerance=1e-12)
    _, rough = stationary_soft_value_iteration(*arguments, tolerance=tolerance)
    assert 0 < np.abs(np.asarray(rough - exact)).max() <= tolerance


@given(seed=seeds)
@often
def test_discounted_occupancy_is_the_power_series(seed):
    task = problem(seed)
    policy = jnp.broadcast_to(task.stationary, (LONG, STATES, ACTIONS))
    visits = occupancy(task.transitions, task.initial, policy)
    series = jnp.einsum("t,tsa->sa", DISCOUNT ** jnp.arange(LONG), visits)
    found = discounted_occupancy(task.transitions, task.initial, task.stationary, DISCOUNT)
    np.testing.assert_allclose(found, series, atol=1e-12)
    assert float(found.sum()) == pytest.approx(1 / (1 - DISCOUNT), abs=1e-11)


@given(seed=seeds, of_states=kinds)
@often
def test_stationary_violation_is_that_of_a_long_episode_that_may_stop(seed, of_states):
    task = problem(seed)
    if of_states:
        task.costs = jnp.tile(task.costs[:, :1], ACTIONS)
    longer = with_a_stop(task)
    walk = longer.transitions, longer.initial, longer.policy
    expected = violation_probability(*walk, longer.costs)
    found = stationary_violation_probability(
        task.transitions, task.initial, task.stationary, task.costs, DISCOUNT
    )
    assert float(found) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-3, 1.0])
def test_large_rewards_neither_overflow_nor_loop(temperature):
    task = problem(4)
    arguments = task.transitions, 1e4 * task.rewards
    finite, _ = soft_value_iteration(*arguments, horizon=HORIZON, temperature=temperature)
    options = {"temperature": temperature, "tolerance": 1e-6}
    endless, _ = stationary_soft_value_iteration(*arguments, DISCOUNT, **options)
    for policy in (finite, endless):
        np.testing.assert_allclose(policy.sum(axis=-1), 1)


def test_problems_may_be_stacked():
    tasks = [problem(seed) for seed in range(3)]

    def outcome(transitions, rewards, initial, costs):
        walk = transitions, initial, soft_value_iteration(transitions, rewards, horizon=HORIZON)[0]
        forever, _ = stationary_soft_value_iteration(transitions, rewards, DISCOUNT)
        return (
            occupancy(*walk),
            violation_probability(*walk, costs),
            visit_probability(*walk, on_pairs=True),
            discounted_occupancy(transitions, initial, forever, DISCOUNT),
            stationary_violation_probability(transitions, initial, forever, costs, DISCOUNT),
        )

    rows = [(task.transitions, task.rewards, task.initial, task.costs) for task in tasks]
    together = jax.vmap(outcome)(*(jnp.stack(column) for column in zip(*rows, strict=True)))
    for number, row in enumerate(rows):
        for one, other in zip(together, outcome(*row), strict=True):
            np.testing.assert_allclose(one[number], other, atol=1e-9)


@pytest.mark.parametrize("costs", [0.0, 1.0])
def test_single_precision_is_kept_and_probabilities_stay_within_bounds(costs):
    for seed in range(20):
        task = problem(seed)
        walk = [jnp.float32(array) for array in (task.transitions, task.initial, task.policy)]
        violation = violation_probability(*walk, jnp.full((STATES, ACTIONS), costs, jnp.float32))
        assert float(violation) == pytest.approx(costs, abs=1e-6)
        for probability in (violation, visit_probability(*walk)):
            assert probability.dtype == jnp.float32
            assert ((probability >= 0) & (probability <= 1)).all()
