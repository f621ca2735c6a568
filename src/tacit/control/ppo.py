"""Proximal policy optimisation under a price of cost: the update, compiled whole.

One update sees a batch of N steps. Policy and critics share no weights, so each has its own
compiled loop over all epochs and minibatches; the host runs the two side by side on two threads.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, Shaped

from tacit.argument_checks import check_count
from tacit.control.multiplier import Multiplier
from tacit.control.networks import Critics, Policy
from tacit.errors import ArgumentError

STOP_AT = 1.5


@dataclass(frozen=True)
class PPO:
    """Settings of PPO-Lagrange and PPO-Penalty.

    Fields:
        steps: environment steps of the whole run.
        worlds: stepped together.
        rollout: steps of every world between two updates.
        minibatch: steps per gradient step; divides worlds * rollout.
        epochs: passes over the batch per update, fewer when `target_kl` stops them.
        learning_rate: of Adam, for policy and critics.
        final_learning_rate: what it falls to, in a straight line over the run, as a share.
        clip: how far the probability ratio may move before its gradient is cut.
        target_kl: the policy's epochs stop once KL(old, new) exceeds 1.5 times this; None: never.
        entropy_weight: weight of the policy's entropy in its objective.
        discount: of later rewards.
        cost_discount: of later costs.
        reward_trace: lambda of the reward's advantage estimate.
        cost_trace: lambda of the costs' advantage estimates.
        hidden: units of each hidden layer, the same for policy and critics.
        smallest_std: floor on the standard deviation of continuous actions.
        largest_gradient: gradients are scaled down to this norm, policy and critics each.
        normalise_observations: by their running mean and variance.
        normalise_rewards: by the running scale of their discounted sum.
        normalise_costs: likewise; budgets and the multiplier always see true costs.
        relative_costs: whether steps are charged what they cost more than the mean step of their
            rollout, and cost advantages scaled to a deviation of one, as those of the reward are.
            Wanted for a learned cost, which is high all over as long as the policy is unlike the
            experts: to end an episode early would save cost, and what differences there are
            between steps would vanish beside the reward's. Budgets see the costs as they are.
            None for yes where the cost is learned by inference, and no where it is given.
        charge_once: whether each step is charged by how much it is worse than all before in its
            episode, where 1 is the worst, so that the critic of a cost of 0 or 1 tells the
            (discounted) chance that the rule is yet to be broken. Wanted, with a `cost_discount`
            near one, where chance breaks it; cost advantages, small then, are scaled as above.
        intent: share of the worlds in which the policy acts without exploration, so that what it
            means to do can be told from what it tries out. They teach the critics only: taken for
            draws, actions without noise would seem to say that noise is bad.
        multiplier: how the price of cost is set.
    """

    steps: int = 1_000_000
    worlds: int = 64
    rollout: int = 128
    minibatch: int = 64
    epochs: int = 10
    learning_rate: float = 3e-4
    final_learning_rate: float = 1.0
    clip: float = 0.2
    target_kl: float | None = 0.01
    entropy_weight: float = 0.0
    discount: float = 0.99
    cost_discount: float = 0.99
    reward_trace: float = 0.95
    cost_trace: float = 0.95
    hidden: tuple[int, ...] = (64, 64, 64)
    smallest_std: float = 0.01
    largest_gradient: float = 0.5
    normalise_observations: bool = True
    normalise_rewards: bool = True
    normalise_costs: bool = True
    relative_costs: bool | None = None
    charge_once: bool = False
    intent: float = 0.0
    multiplier: Multiplier = field(default_factory=Multiplier)

    def __post_init__(self) -> None:
        self.check_kinds()
        for name in ("steps", "worlds", "rollout", "minibatch", "epochs"):
            check_count(name, getattr(self, name))
        if self.batch % self.minibatch:
            raise ArgumentError(
                f"minibatch {self.minibatch} does not divide the batch of {self.worlds} worlds * "
                f"{self.rollout} steps = {self.batch}"
            )
        shares = ("discount", "cost_discount", "reward_trace", "cost_trace", "final_learning_rate")
        for name in shares:
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name} must lie in [0, 1], not {getattr(self, name)!r}")
        if self.charge_once and self.relative_costs:
            raise ArgumentError("charge_once and relative_costs exclude each other")
        if not 0 <= self.intent < 1:
            raise ArgumentError(f"intent must lie in [0, 1), not {self.intent!r}")
        for name in ("learning_rate", "clip", "smallest_std", "largest_gradient", "target_kl"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(f"{name} must be above 0 and finite, not {value!r}")
        if not 0 <= self.entropy_weight < math.inf:
            raise ArgumentError(f"entropy_weight must be at least 0, not {self.entropy_weight!r}")

    def check_kinds(self) -> None:
        """The multiplier's settings and the layers are what they should be."""
        if not isinstance(self.multiplier, Multiplier):
            raise ArgumentError(f"multiplier must be a Multiplier, not {self.multiplier!r}")
        if not isinstance(self.hidden, tuple | list):
            raise ArgumentError(f"hidden must be a tuple such as (64, 64), not {self.hidden!r}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count("hidden", units)

    @property
    def scales_costs(self) -> bool:
        """Whether cost advantages have a deviation of one, as those of the reward have."""
        return bool(self.relative_costs or self.charge_once)

    @property
    def batch(self) -> int:
        """Steps per update."""
        return self.worlds * self.rollout

    @property
    def intended(self) -> int:
        """How many worlds are without exploration: the first ones."""
        if not self.intent:
            return 0
        return max(1, min(round(self.intent * self.worlds), self.worlds - 1))

    @property
    def iterations(self) -> int:
        """Updates of the whole run, the last one included when steps do not divide evenly."""
        return -(-self.steps // self.batch)

    def optimiser(self) -> optax.GradientTransformation:
        """Adam's directions on clipped gradients, to be multiplied by the learning rate."""
        return optax.chain(
            optax.clip_by_global_norm(self.largest_gradient), optax.scale_by_adam(eps=1e-5)
        )

    def rate(self, updates: Int[Array, ""]) -> Float[Array, ""]:
        """The learning rate after a number of updates.

        It follows updates and not gradient steps, of which there are fewer where the KL stops them.
        """
        passed = updates / self.iterations
        return self.learning_rate * (1 - (1 - self.final_learning_rate) * passed)


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
    """All epochs of the policy, stopped after the first whose mean KL is beyond 1.5 targets."""
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
    """All epochs of the critics: half the squared error, summed over signals; the last errors."""
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


def moved(networks: Any, change: Any, rate: Float[Array, ""]) -> Any:
    """Networks after one gradient step."""
    return jax.tree.map(lambda weight, step: weight - rate * step, networks, change)


def shuffled(batch: Batch, settings: PPO, *, key: Key[Array, ""]) -> Batch:
    """The batch in random order, cut into minibatches along a new first axis."""
    order = jax.random.permutation(key, settings.batch)
    parts = settings.batch // settings.minibatch

    def cut(values: Array) -> Array:
        return values[order].reshape(parts, settings.minibatch, *values.shape[1:])

    return jax.tree.map(cut, batch)
