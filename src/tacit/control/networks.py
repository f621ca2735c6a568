"""Small networks on whole batches: perceptrons, two kinds of policy, a stack of critics.

With them the running moments that bring a task's numbers to order one before networks see them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from tacit.errors import TaskError

FIRST_ACTIONS_SCALE = 0.01
MOST_PERCEPTRONS = 4
LARGEST = 10.0
SMALLEST_VARIANCE = 1e-8


class Perceptron(eqx.Module):
    """Layers of tanh units and a linear last one; batches come first, so a layer is `x @ w + b`.

    Weights start orthogonal with gain sqrt(2), those of the last layer with gain `last_gain`.
    """

    weights: list[Float[Array, "above below"]]
    biases: list[Float[Array, " below"]]

    def __init__(self, sizes: Sequence[int], last_gain: float, *, key: Key[Array, ""]) -> None:
        gains = [math.sqrt(2)] * (len(sizes) - 2) + [last_gain]
        keys = jax.random.split(key, len(gains))
        self.weights = [
            jax.nn.initializers.orthogonal(gain)(layer_key, (above, below), jnp.float32)
            for gain, layer_key, above, below in zip(
                gains, keys, sizes[:-1], sizes[1:], strict=True
            )
        ]
        self.biases = [jnp.zeros(below) for below in sizes[1:]]

    def __call__(self, inputs: Float[Array, "*n above"]) -> Float[Array, "*n below"]:
        """The last layer's output."""
        values = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = jnp.tanh(values @ weight + bias)
        return values @ self.weights[-1] + self.biases[-1]


class GaussianPolicy(eqx.Module):
    """a ~ N(mean(o), std^2), independent in every dimension; std does not depend on o.

    `smallest_std` keeps some exploration alive: a policy without any cannot leave a bad corner.
    """

    mean: Perceptron
    log_std: Float[Array, " a"]
    smallest_std: float = eqx.field(static=True)

    def clipped_log_std(self) -> Float[Array, " a"]:
        """Log std, not below its floor; the gradient passes, so that it can rise again."""
        floor = jnp.maximum(self.log_std, math.log(self.smallest_std))
        return self.log_std + jax.lax.stop_gradient(floor - self.log_std)

    def noise(self, shape: tuple[int, ...], *, key: Key[Array, ""]) -> Float[Array, "..."]:
        """The random part of a batch of actions, to be handed to `act`."""
        return jax.random.normal(key, (*shape, self.log_std.shape[0]))

    def act(
        self, observations: Float[Array, "*n o"], noise: Float[Array, "*n a"]
    ) -> Float[Array, "*n a"]:
        """Mean + std * noise."""
        return self.mean(observations) + jnp.exp(self.clipped_log_std()) * noise

    def log_probability(
        self, observations: Float[Array, "*n o"], actions: Float[Array, "*n a"]
    ) -> Float[Array, "*n"]:
        """Log density of the actions."""
        log_std = self.clipped_log_std()
        distance = (actions - self.mean(observations)) * jnp.exp(-log_std)
        return -(0.5 * distance**2 + log_std + 0.5 * math.log(2 * math.pi)).sum(axis=-1)

    def entropy(self, observations: Float[Array, "*n o"]) -> Float[Array, ""]:
        """Mean entropy of the action in nats; here the same everywhere."""
        del observations
        return (self.clipped_log_std() + 0.5 * math.log(2 * math.pi * math.e)).sum()


class CategoricalPolicy(eqx.Module):
    """a ~ softmax(logits(o)), one of finitely many actions."""

    logits: Perceptron

    def noise(self, shape: tuple[int, ...], *, key: Key[Array, ""]) -> Float[Array, "..."]:
        """Gumbel noise: the largest of logits + noise is distributed as the softmax."""
        return jax.random.gumbel(key, (*shape, self.logits.biases[-1].shape[0]))

    def act(
        self, observations: Float[Array, "*n o"], noise: Float[Array, "*n a"]
    ) -> Int[Array, "*n"]:
        """The action of the largest logits + noise."""
        return jnp.argmax(self.logits(observations) + noise, axis=-1)

    def log_probability(
        self, observations: Float[Array, "*n o"], actions: Int[Array, "*n"]
    ) -> Float[Array, "*n"]:
        """Log probability of the actions."""
        table = jax.nn.log_softmax(self.logits(observations))
        return jnp.take_along_axis(table, actions[..., None], axis=-1)[..., 0]

    def entropy(self, observations: Float[Array, "*n o"]) -> Float[Array, ""]:
        """Mean entropy of the action in nats."""
        table = jax.nn.log_softmax(self.logits(observations))
        return -(jnp.exp(table) * table).sum(axis=-1).mean()


Policy = GaussianPolicy | CategoricalPolicy


def make_policy(
    observation_size: int,
    action_space: gymnasium.Space,
    hidden: Sequence[int],
    smallest_std: float,
    *,
    key: Key[Array, ""],
) -> Policy:
    """A policy for the action space that starts close to zero actions or equal chances."""
    if isinstance(action_space, gymnasium.spaces.Discrete):
        sizes = (observation_size, *hidden, int(action_space.n))
        return CategoricalPolicy(Perceptron(sizes, FIRST_ACTIONS_SCALE, key=key))
    if isinstance(action_space, gymnasium.spaces.Box):
        size = math.prod(action_space.shape)
        sizes = (observation_size, *hidden, size)
        mean = Perceptron(sizes, FIRST_ACTIONS_SCALE, key=key)
        return GaussianPolicy(mean, jnp.zeros(size), smallest_std)
    raise TaskError(f"actions must be a Box or Discrete space, not {action_space}")


class Critics(eqx.Module):
    """The value of every signal: reward, then every cost.

    Each has a perceptron of its own, stacked so that they run together; but many costs share one,
    as time would grow with their number.
    """

    stack: Perceptron
    shared: Perceptron | None

    def __init__(
        self, observation_size: int, hidden: Sequence[int], signals: int, *, key: Key[Array, ""]
    ) -> None:
        sizes = (observation_size, *hidden, 1)
        own = signals if signals <= MOST_PERCEPTRONS else 1
        own_key, shared_key = (key, key) if own == signals else jax.random.split(key)
        self.stack = jax.vmap(lambda one: Perceptron(sizes, 1.0, key=one))(
            jax.random.split(own_key, own)
        )
        self.shared = None
        if own < signals:
            sizes = (observation_size, *hidden, signals - own)
            self.shared = Perceptron(sizes, 1.0, key=shared_key)

    def __call__(self, observations: Float[Array, "*n o"]) -> Float[Array, "*n signals"]:
        """The value of every signal."""
        values = jax.vmap(lambda critic: critic(observations)[..., 0])(self.stack)
        own = jnp.moveaxis(values, 0, -1)
        if self.shared is None:
            return own
        return jnp.concatenate([own, self.shared(observations)], axis=-1)


def moved(networks: Any, change: Any, rate: Float[Array, ""]) -> Any:
    """Networks after one gradient step."""
    return jax.tree.map(lambda weight, step: weight - rate * step, networks, change)


class Moments(NamedTuple):
    """Mean and variance of everything seen so far, per column."""

    mean: Float[Array, " d"]
    variance: Float[Array, " d"]
    seen: Float[Array, ""]

    @classmethod
    def start(cls, columns: int) -> "Moments":
        """Mean 0, variance 1, nothing seen."""
        return cls(jnp.zeros(columns), jnp.ones(columns), jnp.zeros(()))

    def updated(self, values: Float[Array, "*n d"]) -> "Moments":
        """Moments with a batch of values added (Chan's parallel update)."""
        rows = values.reshape(-1, values.shape[-1])
        seen = self.seen + rows.shape[0]
        share = rows.shape[0] / seen
        mean, variance = rows.mean(axis=0), rows.var(axis=0)
        shift = mean - self.mean
        return Moments(
            self.mean + share * shift,
            (1 - share) * self.variance + share * variance + share * (1 - share) * shift**2,
            seen,
        )

    def standardise(self, values: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """(value - mean) / std, within +-10."""
        scale = jax.lax.rsqrt(self.variance + SMALLEST_VARIANCE)
        return jnp.clip((values - self.mean) * scale, -LARGEST, LARGEST)

    def rescale(self, values: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Value / std, within +-10: for rewards and costs, whose zero has a meaning."""
        scale = jax.lax.rsqrt(self.variance + SMALLEST_VARIANCE)
        return jnp.clip(values * scale, -LARGEST, LARGEST)


def running_returns(
    start: Float[Array, "n d"],
    signals: Float[Array, "t n d"],
    ended: Bool[Array, "t n"],
    discounts: Float[Array, " d"],
) -> tuple[Float[Array, "n d"], Float[Array, "t n d"]]:
    """G_t = discount * G_{t-1} + signal_t, from zero in every episode; the last one and all.

    The variance of G is the scale of a signal: it grows with the length of its consequences.
    """

    def forward(total: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        signal, end = now
        total = discounts * total + signal
        return jnp.where(end[:, None], 0.0, total), total

    return jax.lax.scan(forward, start, (signals, ended))
