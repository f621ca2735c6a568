"""What is told of a policy is what exact computation says of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control.conduct import watch_policies
from tacit.control.planning import Dynamics
from tacit.control.soft_planning import occupancy, visit_probability
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import tabular_compiled


@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_what_is_told_of_policies_is_true(rule_on):
    task = dataclasses.replace(chain(length=9, limit=-2, horizon=10), rule_on=rule_on)
    shape = (2, task.horizon, task.number_of_states, task.number_of_actions)
    policies = jax.nn.softmax(2 * jax.random.normal(jax.random.key(0), shape))
    costs = np.random.default_rng(1).uniform(size=(2, task.number_of_queries))
    told = watch_policies(tabular_compiled(task), policies, jnp.asarray(costs), 0.5)
    dynamics = Dynamics.of(task)
    for place, policy in enumerate(policies):
        pairs = occupancy(dynamics.transitions, dynamics.initial, policy)
        visits = visit_probability(
            dynamics.transitions, dynamics.initial, policy, on_pairs=rule_on == "pair"
        )
        np.testing.assert_allclose(told.visits[place], visits, atol=0.005)
        of_pairs = np.broadcast_to(costs[place].reshape(task.number_of_states, -1), pairs.shape)
        assert float(told.cost[place]) == pytest.approx(float((pairs * of_pairs).sum()), rel=0.01)
        reward = float((pairs * dynamics.rewards).sum())
        assert float(told.reward[place]) == pytest.approx(reward, rel=0.01)
        now, entropy = task.initial, 0.0
        for step, present in zip(np.asarray(policy), told.presence[place], strict=True):
            np.testing.assert_allclose(present, now, atol=0.005)
            entropy -= float((now[:, None] * step * np.log(step)).sum())
            now = np.einsum("s,sa,sax->x", now, step, task.transitions)
        assert float(told.soft_return[place]) == pytest.approx(reward + 0.5 * entropy, rel=0.01)


def test_two_policies_that_are_the_same_are_told_the_same():
    task = chain(length=9, limit=-2, horizon=10)
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    policy = jax.nn.softmax(jax.random.normal(jax.random.key(3), shape))
    costs = jnp.ones((2, task.number_of_states))
    told = watch_policies(tabular_compiled(task), jnp.stack([policy, policy]), costs, 1.0)
    for values in told:
        np.testing.assert_array_equal(values[0], values[1])
