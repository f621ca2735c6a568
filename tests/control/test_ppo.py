"""The update of PPO against finite differences and against a loop that is written out."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tacit.control import ppo
from tacit.control.networks import CategoricalPolicy, Critics, GaussianPolicy, Perceptron
from tacit.control.ppo import Batch
from tacit.control.settings import PPO
from tacit.precision import double_precision

OBSERVED, ACTIONS = 4, 3
SETTINGS = PPO(
    steps=32 * 10,
    worlds=4,
    rollout=8,
    minibatch=8,
    epochs=3,
    learning_rate=0.01,
    final_learning_rate=0.1,
    target_kl=None,
    entropy_weight=0.01,
    hidden=(8,),
)
KEY, RATE = jax.random.key(3), 0.01
update_policy = jax.jit(ppo.update_policy, static_argnames="settings")
update_critics = jax.jit(ppo.update_critics, static_argnames="settings")
shuffled = jax.jit(ppo.shuffled, static_argnames="settings")
loss = jax.jit(ppo.policy_loss, static_argnames="settings")
slope = jax.jit(jax.grad(ppo.policy_loss, has_aux=True), static_argnames="settings")
kinds = pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])


def policy_of(discrete):
    network = Perceptron((OBSERVED, 8, ACTIONS), 1.0, key=jax.random.key(0))
    if discrete:
        return CategoricalPolicy(network)
    return GaussianPolicy(network, jnp.array([-0.5, 0.0, 0.3]), 0.01)


def batch_of(policy, *, number=SETTINGS.batch, costs=2, shift=0.3, seed=0):
    """Actions of `policy`, with old probabilities that are `shift` off and random advantages."""
    random = np.random.default_rng(seed)
    observations = jnp.asarray(random.normal(size=(number, OBSERVED)), jnp.float32)
    noise = policy.noise((number,), key=jax.random.key(seed))
    actions = policy.act(observations, noise)
    old = policy.log_probability(observations, actions) + shift * random.normal(size=number)
    signals = random.normal(size=(2, number, 1 + costs)) + 0.5
    return Batch(observations, actions, old.astype(jnp.float32), *jnp.asarray(signals, jnp.float32))


def doubled(tree):
    """In double precision; whole numbers as they are."""
    return jax.tree.map(
        lambda leaf: leaf.astype(jnp.float64) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf,
        tree,
    )


@kinds
def test_the_slope_of_the_loss_is_that_of_finite_differences(discrete):
    policy, price = policy_of(discrete), jnp.array([0.7, 2.0])
    batch = batch_of(policy)
    with double_precision(True):
        policy, batch, price = doubled((policy, batch, price))
        flat, unflatten = ravel_pytree(policy)
        found = ravel_pytree(slope(policy, batch, price, SETTINGS)[0])[0]
        assert 0 < loss(policy, batch, price, SETTINGS)[1][1] < 1  # some ratios are clipped
        random = np.random.default_rng(1)
        for _ in range(10):
            way = 1e-6 * random.normal(size=flat.shape)
            after, before = (
                loss(unflatten(flat + sign * way), batch, price, SETTINGS)[0] for sign in (1, -1)
            )
            assert float(after - before) / 2 == pytest.approx(float(found @ way), rel=1e-4)


@kinds
def test_the_loss_is_its_formula(discrete):
    policy, price = policy_of(discrete), np.array([0.7, 2.0])
    batch = batch_of(policy)
    found, (kl, clipped) = loss(policy, batch, jnp.asarray(price), SETTINGS)
    new = np.asarray(policy.log_probability(batch.observations, batch.actions), np.float64)
    ratio = np.exp(new - np.asarray(batch.log_probabilities))
    gains = np.asarray(batch.advantages, np.float64)
    reward = (gains[:, 0] - gains[:, 0].mean()) / gains[:, 0].std()
    first, second = (gains[:, 1:] - gains[:, 1:].mean(axis=0)).T
    mixed = (reward - 0.7 * first - 2.0 * second) / 3.7
    surrogate = np.minimum(ratio * mixed, np.clip(ratio, 0.8, 1.2) * mixed).mean()
    entropy = float(policy.entropy(batch.observations))
    assert float(found) == pytest.approx(-surrogate - 0.01 * entropy, rel=1e-4)
    assert float(kl) == pytest.approx((ratio - 1 - np.log(ratio)).mean(), rel=1e-3)
    assert float(clipped) == pytest.approx((np.abs(ratio - 1) > 0.2).mean())


@kinds
def test_ratios_that_went_far_enough_have_no_slope_and_others_do(discrete):
    policy = policy_of(discrete)
    settings = dataclasses.replace(SETTINGS, entropy_weight=0.0)
    batch = batch_of(policy, costs=1, shift=0.0)
    good = batch.advantages[:, 0] > batch.advantages[:, 0].mean()
    far = jnp.where(good, 1.0, -1.0)  # good actions e times more likely already, bad ones less
    price = jnp.zeros(1)
    beyond = batch._replace(log_probabilities=batch.log_probabilities - far)
    found, (_, clipped) = slope(policy, beyond, price, settings)
    assert clipped == 1
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(found))
    back = batch._replace(log_probabilities=batch.log_probabilities + far)
    found, (_, clipped) = slope(policy, back, price, settings)
    assert clipped == 1
    assert float(jnp.linalg.norm(ravel_pytree(found)[0])) > 1e-3


@kinds
def test_at_a_price_of_zero_costs_are_ignored(discrete):
    policy = policy_of(discrete)
    batch = batch_of(policy)
    other = batch._replace(advantages=batch.advantages.at[:, 1:].multiply(-7.0))
    free, dear = jnp.zeros(2), jnp.array([0.0, 1.0])
    first, second = (ravel_pytree(slope(policy, b, free, SETTINGS)[0])[0] for b in (batch, other))
    np.testing.assert_array_equal(first, second)
    first, second = (ravel_pytree(slope(policy, b, dear, SETTINGS)[0])[0] for b in (batch, other))
    assert float(jnp.abs(first - second).max()) > 1e-3


def test_a_cost_that_is_the_same_everywhere_turns_the_policy_nowhere():
    policy = policy_of(False)
    settings = dataclasses.replace(SETTINGS, entropy_weight=0.0)
    batch = batch_of(policy, costs=1)
    same = batch._replace(advantages=batch.advantages.at[:, 1].set(0.25))
    free = ravel_pytree(slope(policy, same, jnp.zeros(1), settings)[0])[0]
    dear = ravel_pytree(slope(policy, same, jnp.full(1, 9.0), settings)[0])[0]
    np.testing.assert_allclose(10 * dear, free, rtol=1e-3, atol=1e-6)


def test_rewards_that_are_the_same_everywhere_give_no_slope_and_no_nan():
    policy = policy_of(True)
    settings = dataclasses.replace(SETTINGS, entropy_weight=0.0)
    batch = batch_of(policy, costs=1)
    same = batch._replace(advantages=jnp.full_like(batch.advantages, 0.5))
    found = ravel_pytree(slope(policy, same, jnp.ones(1), settings)[0])[0]
    np.testing.assert_allclose(found, 0, atol=1e-5)


def test_an_epoch_takes_every_sample_exactly_once_and_in_another_order_than_the_last():
    policy = policy_of(True)
    batch = batch_of(policy)
    numbered = batch._replace(log_probabilities=jnp.arange(32.0))
    orders = []
    for epoch in range(3):
        parts = shuffled(numbered, SETTINGS, key=jax.random.fold_in(KEY, epoch))
        assert parts.observations.shape == (4, 8, OBSERVED)
        order = np.asarray(parts.log_probabilities).reshape(-1).astype(int)
        assert sorted(order) == list(range(32))
        for name in ("observations", "actions", "advantages", "returns"):
            whole, cut = np.asarray(getattr(batch, name)), np.asarray(getattr(parts, name))
            np.testing.assert_array_equal(cut.reshape(whole.shape), whole[order])
        orders.append(tuple(order))
    assert len(set(orders)) == 3


def by_hand(network, slope_of, batch):
    """Adam on clipped gradients as in the textbook, over the minibatches of KEY; parameters."""
    flat, unflatten = ravel_pytree(network)
    values = np.asarray(flat, np.float64)
    mean = square = np.zeros_like(values)
    count = 0
    for epoch in range(SETTINGS.epochs):
        order = np.asarray(jax.random.permutation(jax.random.fold_in(KEY, epoch), SETTINGS.batch))
        for place in order.reshape(4, 8):
            part = jax.tree.map(lambda field, place=place: field[place], batch)
            here = unflatten(jnp.asarray(values, jnp.float32))
            gradient = np.asarray(ravel_pytree(slope_of(here, part))[0], np.float64)
            gradient *= min(1.0, SETTINGS.largest_gradient / np.linalg.norm(gradient))
            count += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            scale = np.sqrt(square / (1 - 0.999**count)) + 1e-5
            values = values - RATE * mean / (1 - 0.9**count) / scale
    return values


@kinds
def test_the_update_of_a_policy_is_a_loop_of_gradient_steps(discrete):
    policy, price = policy_of(discrete), jnp.array([0.5, 0.1])
    batch = batch_of(policy, shift=0.0)
    start = SETTINGS.optimiser().init(policy)
    found = update_policy(policy, start, batch, price, RATE, SETTINGS, key=KEY)
    wanted = by_hand(policy, lambda now, part: slope(now, part, price, SETTINGS)[0], batch)
    before = ravel_pytree(policy)[0]
    np.testing.assert_allclose(ravel_pytree(found.policy)[0], wanted, atol=1e-4)
    assert np.abs(wanted - before).max() > 0.05
    assert found.epochs == SETTINGS.epochs
    assert found.kl > 0


def test_the_update_of_critics_is_a_loop_of_gradient_steps():
    critics = Critics(OBSERVED, (8,), 3, key=jax.random.key(0))
    batch = batch_of(policy_of(True))

    @jax.jit
    @jax.grad
    def slope_of(now, part):
        return 0.5 * ((now(part.observations) - part.returns) ** 2).mean(axis=0).sum()

    start = SETTINGS.optimiser().init(critics)
    found, _, errors = update_critics(critics, start, batch, RATE, SETTINGS, key=KEY)
    wanted = by_hand(critics, slope_of, batch)
    np.testing.assert_allclose(ravel_pytree(found)[0], wanted, atol=1e-4)
    now, then = (
        np.asarray((these(batch.observations) - batch.returns) ** 2) for these in (found, critics)
    )
    assert (now.mean(axis=0) < then.mean(axis=0)).all()
    assert errors.shape == (3,)
    assert (np.abs(errors / now.mean(axis=0) - 0.5) < 0.2).all()


def test_the_policy_stops_after_the_first_epoch_that_goes_too_far():
    policy, price = policy_of(False), jnp.zeros(2)
    batch = batch_of(policy, shift=0.0)
    start = SETTINGS.optimiser().init(policy)
    free = update_policy(policy, start, batch, price, RATE, SETTINGS, key=KEY)
    strict = dataclasses.replace(SETTINGS, target_kl=1e-9)
    stopped = update_policy(policy, start, batch, price, RATE, strict, key=KEY)
    assert (int(free.epochs), int(stopped.epochs)) == (3, 1)
    assert float(stopped.kl) > 1.5e-9
    # One epoch and no more: the same as if only one had been asked for.
    single = dataclasses.replace(SETTINGS, epochs=1)
    once = update_policy(policy, start, batch, price, RATE, single, key=KEY)
    np.testing.assert_allclose(
        ravel_pytree(stopped.policy)[0], ravel_pytree(once.policy)[0], atol=1e-6
    )
    lenient = dataclasses.replace(SETTINGS, target_kl=float(free.kl))
    assert update_policy(policy, start, batch, price, RATE, lenient, key=KEY).epochs == 3


def test_a_rate_of_zero_moves_nothing():
    policy, price = policy_of(True), jnp.ones(2)
    start = SETTINGS.optimiser().init(policy)
    found = update_policy(policy, start, batch_of(policy), price, 0.0, SETTINGS, key=KEY)
    np.testing.assert_array_equal(ravel_pytree(found.policy)[0], ravel_pytree(policy)[0])
