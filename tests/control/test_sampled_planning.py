"""Soft policies by sampling on a table: what a round finds, and what it tells of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from tacit.control.conduct import watch_policies
from tacit.control.constrained_planning import Dynamics, penalised_plan
from tacit.control.networks import make_policy
from tacit.control.sampled_planning import Orders, every_observation, imitation, play_rounds
from tacit.control.soft_planning import visit_probability
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_compiled import tabular_compiled
from tacit.inference.round_settings import round_settings


@pytest.fixture(scope="module")
def task():
    """Nine states, of which the two most rewarding are forbidden."""
    return chain(length=9, limit=-2, horizon=10, reward_scale=3)


def ordered(task, price, costs=0.0):
    """Orders for one round that knows nothing, in an axis of one."""
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    return jax.tree.map(
        lambda part: jnp.asarray(part)[None],
        Orders(
            costs=jnp.broadcast_to(jnp.asarray(costs), task.number_of_states),
            budget=jnp.asarray(1e6),
            price=jnp.asarray(price),
            firm=jnp.asarray(True),
            imitate=jnp.asarray(False),
            experts=jnp.zeros(shape),
        ),
    )


@pytest.mark.slow
def test_a_round_finds_the_soft_policy_of_exact_planning(task):
    costs = np.where(np.arange(task.number_of_states) < 2, 1.0, 0.0)
    settings = dataclasses.replace(round_settings(task), steps=200 * 64 * 10)
    compiled, keys = tabular_compiled(task), jax.random.split(jax.random.key(0), 1)
    played = play_rounds(compiled, settings, task.temperature, ordered(task, 1.0), keys)
    dynamics = Dynamics.of(task)
    exact = penalised_plan(dynamics, jnp.zeros_like(dynamics.rewards), 0.0, task.horizon)
    wanted = visit_probability(dynamics.transitions, dynamics.initial, exact.policy)
    seen = watch_policies(compiled, played.policy, costs[None], task.temperature)
    np.testing.assert_allclose(seen.visits[0], wanted, atol=0.05)
    careful = play_rounds(compiled, settings, task.temperature, ordered(task, 500.0, costs), keys)
    assert watch_policies(compiled, careful.policy, costs[None], 1.0).cost[0] < 0.05 < seen.cost[0]


def test_an_imitation_does_what_the_experts_did(task):
    experts = np.zeros((task.horizon, task.number_of_states, task.number_of_actions))
    experts[:, 2, 1] = 5
    seen = every_observation(tabular_compiled(task))
    policy = make_policy(seen.shape[-1], Discrete(3), (16,), 0.01, key=jax.random.key(0))
    table = jax.nn.softmax(imitation(policy, jnp.asarray(experts), seen).logits(seen))
    np.testing.assert_allclose(table[:, 2, 1], 0.9 + 0.1 / 3, atol=0.02)
    np.testing.assert_allclose(table[:, 2, 0], 0.1 / 3, atol=0.02)
