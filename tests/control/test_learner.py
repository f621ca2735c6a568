"""From a rollout to a batch: scales, prices and what the networks see."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_training import learn

from tacit.control import learner as learning
from tacit.control.learner import Rollout, worst_costs
from tacit.control.multiplier import Multiplier
from tacit.control.networks import Moments
from tacit.control.ppo import advantages
from tacit.control.settings import PPO

STEPS, WORLDS, OBSERVED, COSTS = 6, 3, 4, 2
SETTINGS = PPO(
    worlds=WORLDS,
    rollout=STEPS,
    minibatch=6,
    hidden=(8,),
    discount=0.9,
    cost_discount=0.8,
    reward_trace=0.7,
    cost_trace=0.6,
    multiplier=Multiplier(kind="pid", budget=0.1, proportional=1.0, integral=0.0),
)
BOX = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
prepare = jax.jit(learning.prepare, static_argnames="settings")


@pytest.fixture(scope="module")
def learner():
    begun = learning.start(OBSERVED, BOX, COSTS, 50, SETTINGS, key=jax.random.key(0))
    observed = Moments(jnp.arange(4.0), 1 + jnp.arange(4.0), jnp.asarray(20.0))
    return begun._replace(observed=observed)


@pytest.fixture(scope="module")
def rollout():
    random = np.random.default_rng(0)
    ends = random.random((2, STEPS, WORLDS)) < 0.15
    return Rollout(
        observations=random.normal(2, 2, (STEPS, WORLDS, OBSERVED)).astype(np.float32),
        arrived=random.normal(2, 2, (STEPS, WORLDS, OBSERVED)).astype(np.float32),
        actions=random.normal(size=(STEPS, WORLDS, 3)).astype(np.float32),
        rewards=random.normal(3, 2, (STEPS, WORLDS)).astype(np.float32),
        costs=(random.random((STEPS, WORLDS, COSTS)) < [0.3, 0.6]).astype(np.float32),
        terminated=ends[0],
        truncated=ends[1] & ~ends[0],
    )


def with_rules(**rules):
    return dataclasses.replace(SETTINGS, multiplier=Multiplier(**rules))


def test_a_batch_holds_the_advantages_of_scaled_signals(learner, rollout):
    after, batch = prepare(learner, rollout, SETTINGS)
    signals = np.concatenate([rollout.rewards[..., None], rollout.costs], axis=-1)
    discounts, traces = np.array([0.9, 0.8, 0.8]), np.array([0.7, 0.6, 0.6])
    sums, total = [], np.zeros((WORLDS, 3))
    for signal, end in zip(signals, rollout.terminated | rollout.truncated, strict=True):
        total = discounts * total + signal
        sums.append(total)
        total = np.where(end[:, None], 0, total)
    scale = np.std(sums, axis=(0, 1))
    np.testing.assert_allclose(np.sqrt(after.scales.variance), scale, rtol=1e-4)
    np.testing.assert_allclose(after.sums, total, rtol=1e-4, atol=1e-6)
    # Costs are scaled alike, by the largest of them.
    scale[1:] = scale[1:].max()

    def look(observations):
        return np.clip((observations - np.arange(4.0)) / np.sqrt(1 + np.arange(4.0)), -10, 10)

    seen = look(rollout.observations)
    values = learner.critics(jnp.asarray(seen, jnp.float32))
    gains = advantages(
        jnp.asarray(signals / scale, jnp.float32),
        values,
        learner.critics(jnp.asarray(look(rollout.arrived), jnp.float32)),
        jnp.asarray(rollout.terminated),
        jnp.asarray(rollout.truncated),
        jnp.asarray(discounts, jnp.float32),
        jnp.asarray(traces, jnp.float32),
    )
    number = STEPS * WORLDS
    np.testing.assert_allclose(batch.observations, seen.reshape(number, -1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch.advantages, gains.reshape(number, 3), rtol=1e-3, atol=1e-4)
    wanted = (gains + values).reshape(number, 3)
    np.testing.assert_allclose(batch.returns, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(batch.actions, rollout.actions.reshape(number, 3))
    densities = learner.policy.log_probability(batch.observations, batch.actions)
    np.testing.assert_allclose(batch.log_probabilities, densities, rtol=1e-4)


def test_the_price_sees_true_costs_per_step(learner, rollout):
    for normalise in (True, False):
        settings = dataclasses.replace(SETTINGS, normalise_costs=normalise)
        after, _ = prepare(learner, rollout, settings)
        wanted = rollout.costs.mean(axis=(0, 1)) - 0.1
        np.testing.assert_allclose(after.multiplier.price, wanted, rtol=1e-5)


def test_a_budget_per_episode_sees_the_cost_of_a_step_times_the_mean_length(learner, rollout):
    rules = {"kind": "pid", "proportional": 1.0, "integral": 0.0, "budget_per": "episode"}
    ends = int((rollout.terminated | rollout.truncated).sum())
    assert ends > 0
    first, _ = prepare(learner, rollout, with_rules(**rules))
    assert float(first.episode_length) == pytest.approx(STEPS * WORLDS / ends, rel=1e-5)
    later = learner._replace(updates=learner.updates + 1)
    after, _ = prepare(later, rollout, with_rules(**rules))
    length = 0.9 * 50 + 0.1 * STEPS * WORLDS / ends
    assert float(after.episode_length) == pytest.approx(length, rel=1e-5)
    wanted = rollout.costs.mean(axis=(0, 1)) * length
    np.testing.assert_allclose(after.multiplier.price, wanted, rtol=1e-5)


def test_the_length_of_episodes_is_held_while_none_ends(learner, rollout):
    never = np.zeros((STEPS, WORLDS), bool)
    after, _ = prepare(learner, rollout._replace(terminated=never, truncated=never), SETTINGS)
    assert float(after.episode_length) == pytest.approx(50)


def test_signals_can_be_left_as_they_are(learner, rollout):
    plain = {"normalise_rewards": False, "normalise_costs": False}
    settings = dataclasses.replace(SETTINGS, reward_trace=0.0, cost_trace=0.0, **plain)
    over = np.ones((STEPS, WORLDS), bool)
    _, batch = prepare(learner, rollout._replace(terminated=over), settings)
    signals = np.concatenate([rollout.rewards[..., None], rollout.costs], axis=-1)
    # Every episode is one step: what the critics should say is the signal itself.
    np.testing.assert_allclose(batch.returns, signals.reshape(-1, 3), rtol=1e-4, atol=1e-5)


def test_the_moments_of_observations_move_only_after_the_update(learner, rollout):
    after, _ = prepare(learner, rollout, SETTINGS)
    np.testing.assert_array_equal(after.observed.mean, learner.observed.mean)
    learnt, progress = jax.jit(learn, static_argnames="settings")(
        learner, rollout, SETTINGS, key=jax.random.key(1)
    )
    rows = rollout.observations.reshape(-1, OBSERVED)
    wanted = (20 * np.arange(4.0) + rows.sum(axis=0)) / (20 + len(rows))
    np.testing.assert_allclose(learnt.observed.mean, wanted, rtol=1e-4)
    np.testing.assert_allclose(progress.costs, rollout.costs.mean(axis=(0, 1)), rtol=1e-5)
    np.testing.assert_allclose(progress.prices, after.multiplier.price)
    assert progress.epochs >= 1
    assert learnt.updates == 1


def test_relative_costs_do_not_depend_on_their_height(learner, rollout):
    settings = dataclasses.replace(SETTINGS, relative_costs=True)
    higher = rollout._replace(costs=rollout.costs + 5)
    plain, raised = (prepare(learner, seen, settings)[1] for seen in (rollout, higher))
    np.testing.assert_allclose(raised.advantages, plain.advantages, rtol=1e-3, atol=1e-4)
    given = prepare(learner, higher, SETTINGS)[1]
    assert not np.allclose(given.advantages[:, 1:], plain.advantages[:, 1:], atol=0.1)


def test_relative_costs_that_are_all_the_same_say_nothing(learner, rollout):
    silent = rollout._replace(costs=np.full_like(rollout.costs, 0.7))
    batch = prepare(learner, silent, dataclasses.replace(SETTINGS, relative_costs=True))[1]
    np.testing.assert_array_equal(batch.advantages[:, 1:], 0)
    assert np.abs(batch.advantages[:, 0]).max() > 0


def test_the_price_sees_costs_as_they_are(learner, rollout):
    prices = [
        prepare(learner, rollout, dataclasses.replace(SETTINGS, relative_costs=choice))[
            0
        ].multiplier.price
        for choice in (True, False)
    ]
    np.testing.assert_array_equal(*prices)


def test_the_worst_cost_of_episodes_is_followed_over_rollouts():
    draws = np.random.default_rng(3)
    costs = draws.random((2, STEPS, WORLDS, 2)) ** 3
    ended = draws.random((2, STEPS, WORLDS)) < 0.3
    worst, rises = jnp.zeros((WORLDS, 2)), []
    for part, end in zip(costs, ended, strict=True):
        worst, before, after = worst_costs(worst, jnp.asarray(part), jnp.asarray(end))
        rises.append(np.asarray(after - before).mean(axis=(0, 1)))
    whole, over = costs.reshape(-1, WORLDS, 2), ended.reshape(-1, WORLDS)
    total, going = np.zeros(2), np.zeros((WORLDS, 2))
    for world in range(WORLDS):
        begin = 0
        for end in [*np.flatnonzero(over[:, world]), len(whole) - 1]:
            if begin <= end:
                episode = whole[begin : end + 1, world].max(axis=0)
                total += episode
                going[world] = 0 if over[end, world] else episode
            begin = end + 1
    np.testing.assert_allclose(np.mean(rises, axis=0) * len(whole) * WORLDS, total, rtol=1e-5)
    np.testing.assert_allclose(worst, going, rtol=1e-6)


@pytest.fixture(scope="module")
def rarely(rollout):
    """One episode in every world that goes on; some of them break a rule, once or more often."""
    never = np.zeros((STEPS, WORLDS), bool)
    costs = np.zeros_like(rollout.costs)
    costs[[2, 3, 5], 0, 0], costs[4, 1] = 1, 1
    arrived = np.concatenate([rollout.observations[1:], rollout.arrived[-1:]])
    return rollout._replace(costs=costs, arrived=arrived, terminated=never, truncated=never)


def charged_once(learner, rollout, **settings):
    """A batch of undiscounted charges as they are; [STEPS, WORLDS, COSTS] gains and returns."""
    once = dataclasses.replace(
        SETTINGS, charge_once=True, cost_discount=1.0, cost_trace=1.0, normalise_costs=False
    )
    after, batch = prepare(learner, rollout, dataclasses.replace(once, **settings))
    gains, returns = (
        np.asarray(part).reshape(STEPS, WORLDS, 1 + COSTS)[..., 1:]
        for part in (batch.advantages, batch.returns)
    )
    values = learner.critics(batch.observations).reshape(STEPS, WORLDS, 1 + COSTS)[..., 1:]
    return after, gains, returns, np.asarray(values)


def test_what_is_charged_once_is_the_chance_that_the_rule_is_yet_to_be_broken(learner, rarely):
    over = np.zeros((STEPS, WORLDS), bool)
    over[-1] = True
    _, gains, returns, values = charged_once(learner, rarely._replace(terminated=over))
    broken = np.maximum.accumulate(rarely.costs, axis=0)
    before = np.concatenate([np.zeros((1, WORLDS, COSTS)), broken[:-1]])
    # Before the rule is broken the critic learns whether it will be; afterwards nothing counts.
    wanted = np.where(before == 1, values, broken[-1])
    np.testing.assert_allclose(returns, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gains, wanted - values, rtol=1e-3, atol=1e-5)


def test_what_was_charged_in_an_earlier_rollout_is_not_charged_again(learner, rarely):
    first, *_ = charged_once(learner, rarely)
    np.testing.assert_array_equal(first.worst, rarely.costs.max(axis=0))
    others = np.roll(rarely.costs, 2, axis=1)
    _, gains, returns, values = charged_once(first, rarely._replace(costs=rarely.costs + others))
    broken = np.asarray(first.worst) == 1
    np.testing.assert_allclose(gains[:, broken], 0, atol=1e-6)
    np.testing.assert_allclose(returns[:, broken], values[:, broken], rtol=1e-5)
    assert np.abs(gains[:, ~broken]).max() > 1e-3


def test_charges_that_never_come_say_nothing(learner, rollout):
    free = rollout._replace(costs=np.zeros_like(rollout.costs))
    _, gains, *_ = charged_once(learner, free)
    np.testing.assert_array_equal(gains, 0)


def test_who_was_charged_before_and_stays_beyond_the_limit_says_nothing(learner, rarely):
    costs = np.zeros_like(rarely.costs)
    costs[:, 0] = 1
    beyond = learner._replace(worst=jnp.zeros((WORLDS, COSTS)).at[0].set(1.0))
    _, gains, *_ = charged_once(beyond, rarely._replace(costs=costs))
    np.testing.assert_array_equal(gains, 0)


def test_what_is_charged_once_is_at_most_one(learner, rarely):
    worse = rarely._replace(costs=3 * rarely.costs * np.arange(1, STEPS + 1)[:, None, None])
    for usual, large in zip(
        charged_once(learner, rarely)[1:], charged_once(learner, worse)[1:], strict=True
    ):
        np.testing.assert_allclose(large, usual, rtol=1e-5, atol=1e-6)


def test_the_price_sees_every_cost_where_episodes_are_charged_once(learner, rollout):
    after, *_ = charged_once(learner, rollout)
    plain, _ = prepare(learner, rollout, SETTINGS)
    np.testing.assert_array_equal(after.multiplier.price, plain.multiplier.price)


def test_worlds_without_exploration_do_not_move_the_policy(learner, rollout):
    quiet = dataclasses.replace(SETTINGS, intent=1 / WORLDS)
    _, plain = prepare(learner, rollout, SETTINGS)
    _, batch = prepare(learner, rollout, quiet)
    shape = (STEPS, WORLDS, -1)
    gains, usual = batch.advantages.reshape(shape), plain.advantages.reshape(shape)
    np.testing.assert_allclose(gains[:, 1:], usual[:, 1:], rtol=1e-6)
    mean = np.broadcast_to(usual[:, 1:].mean(axis=(0, 1)), gains[:, 0].shape)
    np.testing.assert_allclose(gains[:, 0], mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(batch.returns, plain.returns, rtol=1e-6)
