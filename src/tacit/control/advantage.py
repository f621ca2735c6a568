"""Generalised advantage estimation for the reward and every cost at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


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
