"""Exact control against all trajectories of tiny problems, written out one by one."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.control import planning

STATES, ACTIONS, HORIZON = 3, 2, 4
PLACES = np.array(list(itertools.product(range(STATES * ACTIONS), repeat=HORIZON)))
VISITED, CHOSEN = np.divmod(PLACES, ACTIONS)
STEPS = np.arange(HORIZON), VISITED, CHOSEN
MOVES = VISITED[:, :-1], CHOSEN[:, :-1], VISITED[:, 1:]

soft_value_iteration = jax.jit(planning.soft_value_iteration, static_argnames="horizon")
occupancy = jax.jit(planning.occupancy)
violation_probability = jax.jit(planning.violation_probability)
visit_probability = jax.jit(planning.visit_probability, static_argnames="on_pairs")

seeds = st.integers(0, 2**32 - 1)
kinds = st.booleans()
often = settings(max_examples=20, deadline=None)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def problem(seed, *, deterministic=False):
    """A random problem, with a random policy per step, as JAX arrays."""
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


@pytest.mark.parametrize("temperature", [1e-3, 1.0])
def test_large_rewards_do_not_overflow(temperature):
    task = problem(4)
    arguments = task.transitions, 1e4 * task.rewards
    policy, _ = soft_value_iteration(*arguments, horizon=HORIZON, temperature=temperature)
    np.testing.assert_allclose(policy.sum(axis=-1), 1)


def test_problems_may_be_stacked():
    tasks = [problem(seed) for seed in range(3)]

    def outcome(transitions, rewards, initial, costs):
        walk = transitions, initial, soft_value_iteration(transitions, rewards, horizon=HORIZON)[0]
        return (
            occupancy(*walk),
            violation_probability(*walk, costs),
            visit_probability(*walk, on_pairs=True),
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
