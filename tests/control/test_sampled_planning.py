"""Soft policies by sampling on a table: where worlds begin, what is a surprise, what is learned."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control.compiled_training import Account, Run
from tacit.control.conduct import watch_policies
from tacit.control.learner import Rollout
from tacit.control.planning import Dynamics, penalised_plan
from tacit.control.sampled_planning import ADDED, Orders, placed, soft_policies, surprise
from tacit.control.soft_planning import visit_probability
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import TabularState, tabular_compiled
from tacit.inference.round_settings import round_settings


@pytest.fixture(scope="module")
def task():
    """Nine states, of which the two most rewarding are forbidden."""
    return chain(length=9, limit=-2, horizon=10, reward_scale=3)


def ordered(task, price, costs=0.0, others=0.0):
    """Orders for one policy, in an axis of one."""
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    return Orders(
        costs=jnp.broadcast_to(jnp.asarray(costs), (1, task.number_of_states)),
        price=jnp.asarray([price]),
        others=jnp.broadcast_to(jnp.asarray(others), (1, *shape)),
    )


def test_half_of_the_worlds_begin_anywhere(task):
    compiled, worlds = tabular_compiled(task), 2000
    state, seen = jax.vmap(compiled.reset)(jax.random.split(jax.random.key(0), worlds))
    account = Account(jnp.zeros(worlds), jnp.zeros(worlds), jnp.zeros(4))
    run = Run(None, state, seen, account)
    put = placed(compiled, run, key=jax.random.key(1))
    moved, kept = slice(0, worlds // 2), slice(worlds // 2, worlds)
    np.testing.assert_array_equal(put.state.place[kept], state.place[kept])
    np.testing.assert_array_equal(put.state.steps[kept], 0)
    cells = np.zeros((task.horizon, task.number_of_states))
    np.add.at(cells, (np.asarray(put.state.steps[moved]), np.asarray(put.state.place[moved])), 1)
    expected = worlds / 2 / cells.size
    assert ((cells - expected) ** 2 / expected).sum() < cells.size + 5 * np.sqrt(2 * cells.size)
    np.testing.assert_array_equal(put.observations, jax.vmap(compiled.observe)(put.state))
    again = placed(compiled, run, key=jax.random.key(2))
    assert (again.state.place[moved] != put.state.place[moved]).any()


def test_what_others_do_already_is_no_surprise(task):
    compiled = tabular_compiled(task)
    state = TabularState(jnp.asarray([3, 3, 4]), jnp.asarray([2, 2, 2]))
    actions = jnp.asarray([[0, 1, 1]])
    rollout = Rollout(*(None,) * len(Rollout._fields))._replace(
        observations=jax.vmap(compiled.observe)(state)[None], actions=actions
    )
    own = jnp.log(jnp.asarray([[0.2, 0.7, 0.5]]))
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    others = np.zeros(shape)
    np.testing.assert_allclose(surprise(compiled, rollout, own, others), -own, rtol=1e-5)
    others[2, 3, 0] = 0.8
    chances = [(0.8 + ADDED * 0.2) / (0.8 + ADDED), ADDED * 0.7 / (0.8 + ADDED), 0.5]
    found = surprise(compiled, rollout, own, jnp.asarray(others))
    np.testing.assert_allclose(found, [-np.log(chances)], rtol=1e-5)


@pytest.mark.slow
def test_the_soft_policy_of_exact_planning_is_found(task):
    costs = np.where(np.arange(task.number_of_states) < 2, 1.0, 0.0)
    settings = dataclasses.replace(round_settings(task), steps=200 * 64 * 10)
    compiled, keys = tabular_compiled(task), jax.random.split(jax.random.key(0), 1)
    free = soft_policies(compiled, settings, task.temperature, ordered(task, 1.0), keys)
    dynamics = Dynamics.of(task)
    exact = penalised_plan(dynamics, jnp.zeros_like(dynamics.rewards), 0.0, task.horizon)
    wanted = visit_probability(dynamics.transitions, dynamics.initial, exact.policy)
    seen = watch_policies(compiled, free, costs[None], task.temperature)
    np.testing.assert_allclose(seen.visits[0], wanted, atol=0.05)
    careful = soft_policies(compiled, settings, task.temperature, ordered(task, 500.0, costs), keys)
    assert watch_policies(compiled, careful, costs[None], 1.0).cost[0] < 0.05 < seen.cost[0]
    # Beside others that always do what it does most, it does something else.
    most = jax.nn.one_hot(free[0].argmax(axis=-1), task.number_of_actions)
    others = seen.presence[0, ..., None] * most
    added = soft_policies(
        compiled, settings, task.temperature, ordered(task, 1.0, others=others), keys
    )
    alike, alone = (float((others * policy[0]).sum()) / task.horizon for policy in (added, free))
    assert alike < alone - 0.2
