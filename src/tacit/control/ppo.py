"""Proximal policy optimisation under a price of cost: the update, compiled whole.

One update sees a batch of N steps. Policy and critics share no weights, so each has its own
compiled loop over all epochs and minibatches; the host runs the two side by side on two threads.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from tacit.control.networks import Critics, Policy, moved
from tacit.control.settings import PPO

STOP_AT = 1.5


class Batch(NamedTuple):
    """N steps to learn from; signals are the reward and then every cost.

    Fields:
        observations: [N, o] standardised.
        actions: [N, a], or [N] of discrete ones.
        log_probabilities: [N] under the policy that took them.
        advantages: [N, 1 + k].
        returns: [N, 1 + k] what the critics should say.
    """

    observations: Float[Array, "N o"]
    actions: Shaped[Array, "N ..."]
    log_probabilities: Float[Array, " N"]
    advantages: Float[Array, "N signals"]
    returns: Float[Array, "N signals"]


def advantages(
    signals: Float[Array, "t n d"],
    values: Float[Array, "t n d"],
    values_arrived: Float[Array, "t n d"],
    terminated: Bool[Array, "t n"],
    truncated: Bool[Array, "t n"],
    discounts: Float[Array, " d"],
    traces: Float[Array, " d"],
) -> Float[Array, "t n d"]:
    """How much better each step turned out than its state's value.

        delta_t = signal_t + discount * V(arrived_t) - V(o_t),   V(arrived_t) = 0 if terminated
        A_t     = delta_t + discount * trace * A_{t+1},          A_{t+1} = 0 where an episode ended

    A time limit cuts the sum short but not the value of what lies behind it: a truncated step
    still looks ahead to V(arrived_t) (reference code: it does not, which punishes late states).
    The returns that critics learn from are A + V.
    """
    ahead = jnp.where(terminated[..., None], 0.0, values_arrived)
    surprise = signals + discounts * ahead - values
    goes_on = 1.0 - (terminated | truncated)[..., None]

    def backward(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, continues = now
        here = delta + discounts * traces * continues * later
        return here, here

    last = jnp.zeros_like(surprise[0])
    return jax.lax.scan(backward, last, (surprise, goes_on), reverse=True)[1]


class PolicyUpdate(NamedTuple):
    """A policy after an update, and how the update went."""

    policy: Policy
    optimiser: optax.OptState
    kl: Float[Array, ""]
    clipped: Float[Array, ""]
    epochs: Int[Array, ""]


def policy_loss(
    policy: Policy, batch: Batch, price: Float[Array, " k"], settings: PPO
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, ""]]]:
    """The clipped surrogate of reward and priced costs.

        A = (A_reward - sum_k nu_k A_cost_k) / (1 + sum_k nu_k)
        L = -mean min(ratio A, clip(ratio, 1 - c, 1 + c) A) - weight * entropy

    A_reward is standardised, A_cost centred, so that a cost that never occurs moves nothing (and
    standardised too where `scales_costs`). The division keeps the step size as nu grows.
    (Reference code: the cost term is not clipped.)

    Returns:
        The loss, and (KL(old, new), share of clipped ratios).
    """
    centred = batch.advantages - batch.advantages.mean(axis=0)
    reward = centred[:, 0] / (centred[:, 0].std() + 1e-8)
    costs = centred[:, 1:]
    if settings.scales_costs:
        costs = costs / (costs.std(axis=0) + 1e-8)
    advantage = (reward - costs @ price) / (1.0 + price.sum())
    change = policy.log_probability(batch.observations, batch.actions) - batch.log_probabilities
    ratio = jnp.exp(change)
    cut = jnp.clip(ratio, 1.0 - settings.clip, 1.0 + settings.clip)
    gain = jnp.minimum(ratio * advantage, cut * advantage).mean()
    bonus = settings.entropy_weight * policy.entropy(batch.observations)
    # (ratio - 1) - log ratio: never negative, and exact to second order.
    kl = (ratio - 1.0 - change).mean()
    return -gain - bonus, (kl, (ratio != cut).mean())


def update_policy(
    policy: Policy,
    optimiser: optax.OptState,
    batch: Batch,
    price: Float[Array, " k"],
    rate: Float[Array, ""],
    settings: PPO,
    *,
    key: Key[Array, ""],
) -> PolicyUpdate:
    """Run the epochs of the policy; stop after the first whose mean KL exceeds 1.5 targets."""
    adam = settings.optimiser()
    most = jnp.inf if settings.target_kl is None else STOP_AT * settings.target_kl

    def gradient_step(now: Any, part: Batch) -> tuple[Any, tuple[Array, Array]]:
        policy, state = now
        slope, seen = jax.grad(policy_loss, has_aux=True)(policy, part, price, settings)
        change, state = adam.update(slope, state)
        return (moved(policy, change, rate), state), seen

    def epoch(now: PolicyUpdate) -> PolicyUpdate:
        parts = shuffled(batch, settings, key=jax.random.fold_in(key, now.epochs))
        (policy, state), seen = jax.lax.scan(gradient_step, (now.policy, now.optimiser), parts)
        kl, clipped = jax.tree.map(jnp.mean, seen)
        return PolicyUpdate(policy, state, kl, clipped, now.epochs + 1)

    def unfinished(now: PolicyUpdate) -> Array:
        return (now.epochs < settings.epochs) & (now.kl <= most)

    zero = jnp.zeros(())
    begin = PolicyUpdate(policy, optimiser, zero, zero, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(unfinished, epoch, begin)


def update_critics(
    critics: Critics,
    optimiser: optax.OptState,
    batch: Batch,
    rate: Float[Array, ""],
    settings: PPO,
    *,
    key: Key[Array, ""],
) -> tuple[Critics, optax.OptState, Float[Array, " signals"]]:
    """Run the epochs of the critics on half the squared error, summed over signals.

    Returns:
        The critics, the state of their optimiser, and the mean error of each signal in the last
        epoch.
    """
    adam = settings.optimiser()

    def loss(critics: Critics, part: Batch) -> tuple[Array, Array]:
        squares = 0.5 * (critics(part.observations) - part.returns) ** 2
        return squares.mean(axis=0).sum(), squares.mean(axis=0)

    def gradient_step(now: Any, part: Batch) -> tuple[Any, Array]:
        critics, state = now
        slope, errors = jax.grad(loss, has_aux=True)(critics, part)
        change, state = adam.update(slope, state)
        return (moved(critics, change, rate), state), errors

    def epoch(now: Any, number: Array) -> tuple[Any, Array]:
        parts = shuffled(batch, settings, key=jax.random.fold_in(key, number))
        now, errors = jax.lax.scan(gradient_step, now, parts)
        return now, errors.mean(axis=0)

    (critics, optimiser), errors = jax.lax.scan(
        epoch, (critics, optimiser), jnp.arange(settings.epochs)
    )
    return critics, optimiser, errors[-1]


def shuffled(batch: Batch, settings: PPO, *, key: Key[Array, ""]) -> Batch:
    """The batch in random order, cut into minibatches along a new first axis."""
    order = jax.random.permutation(key, settings.batch)
    parts = settings.batch // settings.minibatch

    def cut(values: Array) -> Array:
        return values[order].reshape(parts, settings.minibatch, *values.shape[1:])

    return jax.tree.map(cut, batch)
