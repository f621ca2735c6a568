"""The state of a constrained learner, and how it changes: by one rollout, or by imitation."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from tacit.control import multiplier
from tacit.control.multiplier import MultiplierState
from tacit.control.networks import (
    Critics,
    GaussianPolicy,
    Moments,
    Policy,
    make_policy,
    running_returns,
)
from tacit.control.ppo import Batch, PolicyUpdate, advantages
from tacit.control.settings import PPO

SILENT = 1e-6
REMEMBERED_EPISODES = 50

Draw = Callable[[int], tuple[Float[np.ndarray, "m o"], Shaped[np.ndarray, "m ..."]]]
"""Gives the observations and actions of a number of experts' steps, drawn uniformly."""

MEASURED = 20_000
MINIBATCH, AT_ONCE = 512, 100
GRADIENT_STEPS = 3_000
"""Also for few steps of experts: after 1,000 one pendulum of four fell over the limit ten times as
often as the expert (150 demonstrations), after 3,000 none."""
RATE = 3e-3
LEAST_SPREAD = 0.2
"""Of half the action box. Experts who act alike in similar states leave no spread to learn from:
with a twentieth, policies that strayed over a limit did not find back."""

ADAM = optax.scale_by_adam()


class Rollout(NamedTuple):
    """T steps of n worlds; see `tacit.environments.worlds.Step`. k costs, true or learned.

    Continuous actions are as the policy drew them, so that their probabilities are right.
    """

    observations: Float[Array, "T n o"]
    arrived: Float[Array, "T n o"]
    actions: Shaped[Array, "T n ..."]
    rewards: Float[Array, "T n"]
    costs: Float[Array, "T n k"]
    terminated: Bool[Array, "T n"]
    truncated: Bool[Array, "T n"]

    def within(self, space: gymnasium.Space) -> "Rollout":
        """The same rollout with actions cut to their box, as the worlds took them."""
        return self._replace(actions=within(space, np.asarray(self.actions)))


class Learner(NamedTuple):
    """The state of training, one record.

    Fields:
        policy, critics: the networks, with the states of their optimisers.
        observed: moments of the observations.
        scales: moments of the discounted sums of reward and costs.
        sums: [n, 1 + k] these sums in the episodes that are running.
        worst: [n, k] the highest cost of a step so far, in these episodes.
        multiplier: the price of cost.
        share: [k] running mean of the worst cost of an episode.
        episode_length: running mean of the length of an episode, for budgets per episode.
        updates: number of updates so far.
    """

    policy: Policy
    policy_optimiser: optax.OptState
    critics: Critics
    critic_optimiser: optax.OptState
    observed: Moments
    scales: Moments
    sums: Float[Array, "n signals"]
    worst: Float[Array, "n k"]
    multiplier: MultiplierState
    share: Float[Array, " k"]
    episode_length: Float[Array, ""]
    updates: Int[Array, ""]


class Progress(NamedTuple):
    """How one update went; costs are means per step, not normalised."""

    kl: Float[Array, ""]
    clipped: Float[Array, ""]
    epochs: Int[Array, ""]
    entropy: Float[Array, ""]
    value_error: Float[Array, " signals"]
    costs: Float[Array, " k"]
    prices: Float[Array, " k"]


def within(space: gymnasium.Space, actions: np.ndarray) -> np.ndarray:
    """Continuous actions [..., a] cut to their box, which is what a world makes of them."""
    if not isinstance(space, gymnasium.spaces.Box) or actions.ndim < 2:
        return actions
    if actions.dtype.kind in "iu":
        actions = actions.astype(np.float32)
    return np.clip(actions, space.low.ravel(), space.high.ravel())


def start(
    observation_size: int,
    action_space: gymnasium.Space,
    constraints: int,
    horizon: int | None,
    settings: PPO,
    *,
    key: Key[Array, ""],
) -> Learner:
    """A learner that has seen nothing."""
    policy_key, critic_key = jax.random.split(key)
    policy = make_policy(
        observation_size, action_space, settings.hidden, settings.smallest_std, key=policy_key
    )
    critics = Critics(observation_size, settings.hidden, 1 + constraints, key=critic_key)
    return Learner(
        policy=policy,
        policy_optimiser=settings.optimiser().init(policy),  # pyright: ignore[reportArgumentType]
        critics=critics,
        critic_optimiser=settings.optimiser().init(critics),  # pyright: ignore[reportArgumentType]
        observed=Moments.start(observation_size),
        scales=Moments.start(1 + constraints),
        sums=jnp.zeros((settings.worlds, 1 + constraints)),
        worst=jnp.zeros((settings.worlds, constraints)),
        multiplier=multiplier.start(settings.multiplier, constraints),
        share=jnp.zeros(constraints),
        episode_length=jnp.asarray(horizon or 1000, jnp.float32),
        updates=jnp.zeros((), jnp.int32),
    )


def prepare(learner: Learner, rollout: Rollout, settings: PPO) -> tuple[Learner, Batch]:
    """Turn a rollout into a batch, and move the price of cost and the scales of signals.

    The observations' moments stay as they were when the actions were taken, so that old and new
    probabilities are of the same policy; they move after the update, in `finish`.
    """
    ended = rollout.terminated | rollout.truncated
    worst, before, after = worst_costs(learner.worst, rollout.costs, ended)
    charged = rollout.costs
    if settings.charge_once:
        charged = jnp.clip(after, 0, 1) - jnp.clip(before, 0, 1)
    if settings.relative_costs:
        charged = charged - charged.mean(axis=(0, 1))
    signals = jnp.concatenate([rollout.rewards[..., None], charged], axis=-1)
    costs = signals.shape[-1] - 1
    discounts = jnp.array([settings.discount] + [settings.cost_discount] * costs)
    traces = jnp.array([settings.reward_trace] + [settings.cost_trace] * costs)
    sums, returns = running_returns(learner.sums, signals, ended, discounts)
    scales = learner.scales.updated(returns)
    use = jnp.array([settings.normalise_rewards] + [settings.normalise_costs] * costs)
    signals = jnp.where(use, one_scale(scales).rescale(signals), signals)

    learner = learner._replace(sums=sums, scales=scales, worst=worst)
    learner = with_price(learner, rollout, after - before, ended, settings)
    observations = look(learner.observed, rollout.observations, settings)
    values = learner.critics(observations)
    arrived = learner.critics(look(learner.observed, rollout.arrived, settings))
    ahead, awaited = values, arrived
    if settings.charge_once:
        # The critics know episodes in which nothing is charged yet; elsewhere only a rest is left.
        ahead, awaited = still_to_charge(values, before), still_to_charge(arrived, after)
    gains = advantages(
        signals, ahead, awaited, rollout.terminated, rollout.truncated, discounts, traces
    )
    if settings.scales_costs:
        # Where all steps cost the same, only the critics' error is left, and would be scaled up.
        silent = charged.std(axis=(0, 1)) < SILENT
        gains = gains.at[..., 1:].set(jnp.where(silent, 0.0, gains[..., 1:]))
    policy_gains = gains
    if settings.intended:
        others = gains[:, settings.intended :].mean(axis=(0, 1))
        policy_gains = gains.at[:, : settings.intended].set(others)
    batch = Batch(
        observations=observations,
        actions=rollout.actions,
        log_probabilities=learner.policy.log_probability(observations, rollout.actions),
        advantages=policy_gains,
        returns=gains + values,
    )
    return learner, jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), batch)


def one_scale(scales: Moments) -> Moments:
    """The scales of the signals, where all costs have the scale of the largest cost.

    With scales of their own, a cost that hardly ever occurs would weigh as much as one that always
    does. (Where `scales_costs`, the policy's update still scales each to a deviation of one.)
    """
    if scales.variance.shape[0] < 2:
        return scales
    return scales._replace(variance=scales.variance.at[1:].set(scales.variance[1:].max()))


def still_to_charge(
    values: Float[Array, "T n signals"], worst: Float[Array, "T n k"]
) -> Float[Array, "T n signals"]:
    """The values, where those of costs are reduced by the share of a cost of 1 charged so far."""
    return values.at[..., 1:].multiply(1 - jnp.clip(worst, 0, 1))


def with_price(
    learner: Learner,
    rollout: Rollout,
    rises: Float[Array, "T n k"],
    ended: Bool[Array, "T n"],
    settings: PPO,
) -> Learner:
    """Move the multiplier by the rollout's unnormalised costs; returns the learner with it."""
    worst_of_episodes = settings.multiplier.budget_per == "worst"
    # Where some worlds are without exploration, only their violations count against the policy.
    counted = settings.intended if worst_of_episodes and settings.intended else settings.worlds
    # Steps per end are the mean length; where no episode ends, the length so far is kept.
    ends = ended[:, :counted]
    length = jnp.where(ends.any(), ends.size / jnp.maximum(ends.sum(), 1), learner.episode_length)
    # Before the first episode has ended only the horizon is known, which may be far off.
    keep = jnp.where(learner.updates > 0, 0.9, 0.0)
    length = keep * learner.episode_length + (1 - keep) * length
    costs = rollout.costs.mean(axis=(0, 1))
    share = learner.share
    if settings.multiplier.budget_per == "episode":
        costs = costs * length
    elif worst_of_episodes:
        rise = rises[:, :counted].mean(axis=(0, 1))
        # A mean over about 50 episodes: enough to see a rare one that breaks the rule.
        old = jnp.exp(-ends.size / length / REMEMBERED_EPISODES)
        costs = share = old * share + (1 - old) * rise * length
    price = multiplier.ascend(settings.multiplier, learner.multiplier, costs)
    return learner._replace(multiplier=price, episode_length=length, share=share)


def worst_costs(
    worst: Float[Array, "n k"], costs: Float[Array, "T n k"], ended: Bool[Array, "T n"]
) -> tuple[Float[Array, "n k"], Float[Array, "T n k"], Float[Array, "T n k"]]:
    """The worst cost so far in each episode that goes on, and before and after every step.

    Times the mean length of an episode, the mean rise is the mean of the episodes' worst cost, also
    where episodes are longer than a rollout.
    """
    # A plain scan inside compiled training over seeds made XLA hang on two cores.
    begins = jnp.concatenate([jnp.zeros_like(ended[:1]), ended[:-1]])[..., None]
    known = jnp.maximum(costs, 0).at[0].set(jnp.maximum(worst, costs[0]))

    def join(early: tuple[Array, Array], late: tuple[Array, Array]) -> tuple[Array, Array]:
        (begun, worst), (begins, cost) = early, late
        return begun | begins, jnp.where(begins, cost, jnp.maximum(worst, cost))

    flags = jnp.broadcast_to(begins, costs.shape)
    _, after = jax.lax.associative_scan(join, (flags, known))
    before = jnp.where(begins, 0.0, jnp.concatenate([worst[None], after[:-1]]))
    return jnp.where(ended[-1][:, None], 0.0, after[-1]), before, after


def look(observed: Moments, observations: Float[Array, "*n o"], settings: PPO) -> Array:
    """Observations as the networks see them."""
    if not settings.normalise_observations:
        return observations
    return observed.standardise(observations)


def finish(
    learner: Learner,
    rollout: Rollout,
    batch: Batch,
    policy: PolicyUpdate,
    critics: tuple[Critics, optax.OptState, Float[Array, " signals"]],
) -> tuple[Learner, Progress]:
    """Put the updated networks into the learner, and add the observations to its moments."""
    networks, optimiser, errors = critics
    learner = learner._replace(
        policy=policy.policy,
        policy_optimiser=policy.optimiser,
        critics=networks,
        critic_optimiser=optimiser,
        observed=learner.observed.updated(rollout.observations),
        updates=learner.updates + 1,
    )
    progress = Progress(
        kl=policy.kl,
        clipped=policy.clipped,
        epochs=policy.epochs,
        entropy=policy.policy.entropy(batch.observations),
        value_error=errors,
        costs=rollout.costs.mean(axis=(0, 1)),
        prices=learner.multiplier.price,
    )
    return learner, progress


def imitate(learner: Learner, draw: Draw, action_space: gymnasium.Space, settings: PPO) -> Learner:
    """Fit the learner's policy to the experts' actions, and its scales to their observations.

    The learner should be a fresh one; its critics are left as they are.
    """
    seen, _ = draw(MEASURED)
    observed = Moments.start(seen.shape[-1]).updated(jnp.asarray(seen))
    policy: Any = learner.policy
    optimiser = ADAM.init(policy)
    rates = RATE / 2 * (1 + np.cos(np.linspace(0, np.pi, GRADIENT_STEPS, dtype=np.float32)))
    for part in rates.reshape(-1, AT_ONCE):
        observations, actions = (
            field.reshape(AT_ONCE, MINIBATCH, *field.shape[1:])
            for field in draw(AT_ONCE * MINIBATCH)
        )
        policy, optimiser = cloning_steps(
            policy, optimiser, observed, observations, actions, part, settings
        )
    if isinstance(policy, GaussianPolicy) and isinstance(action_space, gymnasium.spaces.Box):
        seen, done = draw(MEASURED)
        error = jnp.asarray(done) - policy.mean(look(observed, jnp.asarray(seen), settings))
        least = LEAST_SPREAD * (action_space.high - action_space.low).ravel() / 2
        spread = jnp.maximum(jnp.sqrt((error**2).mean(axis=0)), least)
        policy = GaussianPolicy(policy.mean, jnp.log(spread), policy.smallest_std)
    return learner._replace(policy=policy, observed=observed)


@partial(jax.jit, static_argnames="settings")
def cloning_steps(
    policy: Any,
    optimiser: Any,
    observed: Moments,
    observations: Float[Array, "steps m o"],
    actions: Shaped[Array, "steps m ..."],
    rates: Float[Array, " steps"],
    settings: PPO,
) -> tuple[Any, Any]:
    """Gradient steps of Adam on the likelihood of the experts' actions, one per minibatch."""

    def step(now: tuple[Any, Any], batch: tuple[Array, Array, Array]) -> tuple[Any, None]:
        policy, optimiser = now
        observation, action, rate = batch
        seen = look(observed, observation, settings)

        def surprise(policy: Any) -> Array:
            return -policy.log_probability(seen, action).mean()

        direction, optimiser = ADAM.update(jax.grad(surprise)(policy), optimiser)
        downhill = jax.tree.map(lambda part: -rate * part, direction)
        return (optax.apply_updates(policy, downhill), optimiser), None

    return jax.lax.scan(step, (policy, optimiser), (observations, actions, rates))[0]
