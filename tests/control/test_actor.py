"""The policy in NumPy is the policy in JAX."""

from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.control import learner as learning
from tacit.control.actor import Actor
from tacit.control.networks import Moments, make_policy
from tacit.control.settings import PPO
from tacit.errors import ArgumentError, StorageError
from tacit.runs.files import write_arrays

OBSERVED = 4
HIGH = np.array([1.0, 0.5, 0.2], np.float32)
BOX = gymnasium.spaces.Box(-1, HIGH, (3,), np.float32)
CHOICE = gymnasium.spaces.Discrete(3)
kinds = pytest.mark.parametrize("space", [BOX, CHOICE], ids=["continuous", "discrete"])
normalised = pytest.mark.parametrize("normalise", [True, False])


def made(space, normalise):
    """What an actor needs of a learner that has seen something, its settings and its actor."""
    settings = PPO(normalise_observations=normalise)
    policy = make_policy(OBSERVED, space, (8, 8), 0.01, key=jax.random.key(0))
    policy = jax.tree.map(lambda leaf: 1.5 * leaf + 0.1, policy)
    # The first policy does nearly nothing, whatever it sees.
    head = policy.mean if space is BOX else policy.logits
    head.weights[-1] = head.weights[-1] * 50
    observed = Moments(jnp.arange(4.0), 1 + jnp.arange(4.0) ** 2, jnp.asarray(100.0))
    learner = SimpleNamespace(policy=policy, observed=observed)
    return learner, settings, Actor.of(learner, space, settings)


def observations(number=200):
    """Some usual ones and some far beyond the moments."""
    values = np.random.default_rng(0).normal(2, 3, (number, OBSERVED))
    values[:3] *= 100
    return values.astype(np.float32)


@kinds
@normalised
def test_the_actor_draws_what_the_policy_draws(space, normalise):
    learner, settings, actor = made(space, normalise)
    seen = learning.look(learner.observed, jnp.asarray(observations()), settings)
    noise = learner.policy.noise((200,), key=jax.random.key(1))
    wanted = np.asarray(learner.policy.act(seen, noise))
    found = actor.draw(observations(), np.asarray(noise))
    if space is CHOICE:
        np.testing.assert_array_equal(found, wanted)
        assert len(set(found.tolist())) > 1
    else:
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@kinds
@normalised
def test_without_exploration_the_actor_takes_the_best_action_within_the_box(space, normalise):
    learner, settings, actor = made(space, normalise)
    seen = learning.look(learner.observed, jnp.asarray(observations()), settings)
    nothing = np.zeros((200, 3), np.float32)
    wanted = np.asarray(learner.policy.act(seen, nothing))
    found = actor(observations())
    if space is CHOICE:
        np.testing.assert_array_equal(found, wanted)
    else:
        assert (wanted > BOX.high).any()
        assert (wanted < BOX.low).any()
        np.testing.assert_allclose(found, np.clip(wanted, BOX.low, BOX.high), atol=1e-5)
    assert all(space.contains(action) for action in found)


@kinds
def test_observations_in_double_precision_give_nearly_the_same(space):
    _, _, actor = made(space, True)
    values = observations()
    np.testing.assert_allclose(actor(values.astype(np.float64)), actor(values), atol=1e-5)


@kinds
def test_one_observation_gives_one_action(space):
    _, _, actor = made(space, True)
    values = observations(5)
    for row, action in zip(values, actor(values), strict=True):
        alone = actor(row)
        assert np.shape(alone) == space.shape
        np.testing.assert_allclose(alone, action, atol=1e-6)


def test_the_observations_that_are_given_stay_as_they_are():
    _, _, actor = made(BOX, False)
    values = observations()
    before = values.copy()
    actor(values)
    actor.draw(values, np.zeros((200, 3), np.float32))
    np.testing.assert_array_equal(values, before)


@kinds
def test_observations_of_another_size_are_an_error(space):
    _, _, actor = made(space, True)
    with pytest.raises(ArgumentError, match="observations of 4 numbers, not of 6"):
        actor(np.zeros((3, 6)))
    with pytest.raises(ArgumentError, match="observations of 4 numbers, not of 5"):
        actor(np.zeros(5))


@kinds
@normalised
def test_an_actor_is_read_as_it_was_written(space, normalise, tmp_path):
    _, _, actor = made(space, normalise)
    path = actor.save(tmp_path / "actor.safetensors", {"task": "some task", "seed": 3})
    read = Actor.load(path)
    before, after = actor.arrays(), read.arrays()
    assert set(before) == set(after)
    assert ("centre" in before) == normalise
    assert ("std" in before) == (space is BOX)
    for name in before:
        assert before[name].dtype == after[name].dtype
        np.testing.assert_array_equal(before[name], after[name])
    np.testing.assert_array_equal(read(observations()), actor(observations()))


def test_a_network_of_more_than_ten_layers_keeps_their_order():
    random = np.random.default_rng(1)
    weights = tuple(random.normal(size=(OBSERVED, OBSERVED)).astype(np.float32) for _ in range(12))
    biases = tuple(random.normal(size=OBSERVED).astype(np.float32) for _ in range(12))
    actor = Actor(weights, biases, None, None, None)
    read = Actor.from_arrays(actor.arrays())
    assert len(read.weights) == 12
    np.testing.assert_array_equal(read.scores(observations()), actor.scores(observations()))


def test_a_file_that_holds_something_else_is_an_error(tmp_path):
    path = write_arrays(tmp_path / "other.safetensors", {"weights": np.zeros(2)}, {"kind": "tree"})
    with pytest.raises(StorageError, match=r"other\.safetensors: holds no actor"):
        Actor.load(path)
    with pytest.raises(StorageError, match="no such file"):
        Actor.load(tmp_path / "missing.safetensors")


@kinds
def test_an_actor_predicts_as_an_agent_of_stable_baselines_does(space):
    _, _, actor = made(space, True)
    actions, state = actor.predict(observations(), state=None, episode_start=np.ones(200, bool))
    assert state is None
    np.testing.assert_array_equal(actions, actor(observations()))
    action, _ = actor.predict(observations()[5])
    np.testing.assert_allclose(action, actions[5], rtol=1e-5)
    assert np.shape(action) == space.shape
    with pytest.raises(ArgumentError, match="draw"):
        actor.predict(observations(), deterministic=False)
