"""A policy that begins as the experts act: what they do is found again, and some spread is left."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control import learner
from tacit.control.actor import Actor
from tacit.control.learner import LEAST_SPREAD, imitate
from tacit.control.settings import PPO

SETTINGS = PPO(worlds=4, rollout=16, minibatch=16, hidden=(16,))
BOX = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
CHOICE = gymnasium.spaces.Discrete(3)
TURN = np.array([[0.5, -0.3], [0.2, 0.4], [0.0, 0.1]], np.float32)


def fresh(space):
    return learner.start(3, space, 1, 10, SETTINGS, key=jax.random.key(0))


def drawn(act, seed=0):
    random = np.random.default_rng(seed)

    def draw(number):
        seen = random.normal([5, 0, -2], [3, 1, 0.1], size=(number, 3)).astype(np.float32)
        return seen, act(seen, random)

    return draw


def steered(seen, random):
    return np.tanh((seen - [5, 0, -2]) @ TURN).astype(np.float32)


def test_what_the_experts_do_is_found_again_on_their_own_scale():
    found = imitate(fresh(BOX), drawn(steered), BOX, SETTINGS)
    np.testing.assert_allclose(found.observed.mean, [5, 0, -2], atol=0.1)
    np.testing.assert_allclose(np.sqrt(found.observed.variance), [3, 1, 0.1], rtol=0.05)
    seen, done = drawn(steered, seed=1)(500)
    actor = Actor.of(found, BOX, SETTINGS)
    assert np.abs(actor(seen) - done).mean() < 0.03


def test_experts_without_any_spread_leave_a_fifth_of_half_the_box():
    found = imitate(fresh(BOX), drawn(steered), BOX, SETTINGS)
    np.testing.assert_allclose(np.exp(found.policy.log_std), LEAST_SPREAD * 2.0, rtol=1e-5)


def test_experts_with_more_spread_keep_theirs():
    def trembling(seen, random):
        return random.normal(0, 1.5, (len(seen), 2)).astype(np.float32)

    found = imitate(fresh(BOX), drawn(trembling), BOX, SETTINGS)
    np.testing.assert_allclose(np.exp(found.policy.log_std), 1.5, rtol=0.05)


def test_choices_are_made_as_often_as_the_experts_make_them():
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])

    def choose(seen, random):
        uniform = random.random((len(seen), 1))
        return (uniform > chances[(seen[:, 0] > 5).astype(int)].cumsum(axis=1)).sum(axis=1)

    found = imitate(fresh(CHOICE), drawn(choose), CHOICE, SETTINGS)
    for side, place in enumerate((2.0, 8.0)):
        seen = learner.look(found.observed, jnp.array([[place, 0.0, -2.0]]), SETTINGS)
        np.testing.assert_allclose(
            jax.nn.softmax(found.policy.logits(seen))[0], chances[side], atol=0.06
        )


def test_the_rate_falls_over_all_gradient_steps(monkeypatch):
    given = []

    def count(policy, optimiser, observed, observations, actions, rates, settings):
        given.extend(rates)
        return policy, optimiser

    monkeypatch.setattr(learner, "cloning_steps", count)
    imitate(fresh(BOX), drawn(steered), BOX, SETTINGS)
    assert len(given) == learner.GRADIENT_STEPS
    assert (np.diff(given) <= 0).all()
    assert given[0] == pytest.approx(3e-3)
