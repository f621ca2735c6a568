"""Splices: what a policy is worth from everywhere, and the best of several in every state."""

import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control import policy_splice
from tacit.control.policy_splice import SURER, outlooks, spliced, surer
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import tabular_compiled

TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def task():
    return chain(length=9, limit=-2, horizon=6)


def policies_of(task, seed, number=4):
    """Some that are mostly sure of themselves."""
    shape = (number, task.horizon, task.number_of_states)
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(task.number_of_actions, 0.3), size=shape)


def exact_outlook(task, policy, costs):
    """Gain and cost from each state at each step on; costs of states and actions."""
    gain, cost = np.zeros((2, task.number_of_states))
    found = []
    for chances in policy[::-1]:
        surprise = -np.log(np.maximum(chances, 1e-30))
        later = task.rewards + TEMPERATURE * surprise + task.transitions @ gain
        gain = (chances * later).sum(axis=1)
        cost = (chances * (costs + task.transitions @ cost)).sum(axis=1)
        found.append((gain, cost))
    return np.moveaxis(np.array(found[::-1]), 1, 0)


@pytest.mark.parametrize("on_pairs", [False, True])
def test_an_outlook_is_nearly_the_exact_one(task, on_pairs, monkeypatch):
    monkeypatch.setattr(policy_splice, "TRIES", 2**14)
    random = np.random.default_rng(0)
    actions = task.number_of_actions if on_pairs else 1
    costs = random.uniform(size=(2, task.number_of_states, actions))
    policies = policies_of(task, 1, number=2)
    gain, cost = outlooks(
        tabular_compiled(task),
        jnp.asarray(policies, jnp.float32),
        jnp.asarray(costs.reshape(2, -1), jnp.float32),
        TEMPERATURE,
    )
    for place in range(2):
        wanted = exact_outlook(task, policies[place], costs[place])
        spread = np.abs(wanted).max(axis=(1, 2))
        np.testing.assert_allclose(gain[place], wanted[0], atol=0.02 * spread[0])
        np.testing.assert_allclose(cost[place], wanted[1], atol=0.02 * spread[1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("price", [0.0, 1.0, 100.0])
def test_a_splice_is_nowhere_worse_than_any_of_its_policies(task, seed, price):
    costs = np.random.default_rng(seed).uniform(size=(task.number_of_states, 1))
    policies = policies_of(task, seed)

    def worth(policy):
        gain, cost = exact_outlook(task, policy, costs)
        return gain - price * cost

    values = np.stack([worth(policy) for policy in policies])
    splice = worth(spliced(policies, values))
    assert (splice >= values.max(axis=0) - 1e-9).all()
    # At the last step it is the best of them and no more; before, it may be better than all.
    np.testing.assert_allclose(splice[-1], values[:, -1].max(axis=0))
    assert (splice[0] > values[:, 0].max(axis=0) + 1e-3).any()


def test_a_splice_does_what_the_best_does():
    policies = np.zeros((2, 1, 2, 2))
    policies[0, ..., 0] = policies[1, ..., 1] = 1
    chosen = spliced(policies, np.array([[[3.0, 1.0]], [[2.0, 2.0]]]))
    np.testing.assert_array_equal(chosen, [[[1, 0], [0, 1]]])


def test_who_is_surer_does_what_it_did_most():
    policies = np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    found = surer(policies)
    np.testing.assert_allclose(found.sum(axis=-1), 1)
    np.testing.assert_allclose(found[1:], policies[1:])
    assert found[0, 0] / found[0, 1] == pytest.approx((0.5 / 0.4) ** SURER)
