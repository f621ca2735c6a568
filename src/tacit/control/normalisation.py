"""Running moments, so that networks see numbers of order one whatever the units of a task."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LARGEST = 10.0
SMALLEST_VARIANCE = 1e-8


class Moments(NamedTuple):
    """Mean and variance of everything seen so far, per column."""

    mean: Float[Array, " d"]
    variance: Float[Array, " d"]
    seen: Float[Array, ""]

    @classmethod
    def start(cls, columns: int) -> "Moments":
        """Mean 0, variance 1, nothing seen."""
        return cls(jnp.zeros(columns), jnp.ones(columns), jnp.zeros(()))


def add(moments: Moments, values: Float[Array, "*n d"]) -> Moments:
    """Moments with a batch of values added (Chan's parallel update)."""
    rows = values.reshape(-1, values.shape[-1])
    seen = moments.seen + rows.shape[0]
    share = rows.shape[0] / seen
    mean, variance = rows.mean(axis=0), rows.var(axis=0)
    shift = mean - moments.mean
    return Moments(
        moments.mean + share * shift,
        (1 - share) * moments.variance + share * variance + share * (1 - share) * shift**2,
        seen,
    )


def standardise(moments: Moments, values: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """(value - mean) / std, within +-10."""
    scale = jax.lax.rsqrt(moments.variance + SMALLEST_VARIANCE)
    return jnp.clip((values - moments.mean) * scale, -LARGEST, LARGEST)


def rescale(moments: Moments, values: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """Value / std, within +-10: for rewards and costs, whose zero has a meaning."""
    scale = jax.lax.rsqrt(moments.variance + SMALLEST_VARIANCE)
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
