"""Queries that are beginnings of trajectories, and how queries of any arrangement become rows."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped


def largest_so_far(
    asked: Float[Array, "B W d"], present: Bool[Array, "B W"], begins: Bool[Array, "B W"] | None
) -> Float[Array, "B W d"]:
    """The largest value of each element up to every place of a window; 0 where nothing came yet."""
    lowest = jnp.finfo(asked.dtype).min
    values = jnp.where(present[..., None], asked, lowest)
    if begins is None:
        largest = jax.lax.cummax(values, axis=1)
    else:
        afresh = jnp.broadcast_to(begins[..., None], values.shape)
        _, largest = jax.lax.associative_scan(larger, (afresh, values), axis=1)
    return jnp.where(largest > lowest, largest, 0.0)


def larger(
    before: tuple[Bool[Array, "*n"], Float[Array, "*n"]],
    after: tuple[Bool[Array, "*n"], Float[Array, "*n"]],
) -> tuple[Bool[Array, "*n"], Float[Array, "*n"]]:
    """The larger of two values, or the later one where it begins afresh."""
    largest = jnp.where(after[0], after[1], jnp.maximum(before[1], after[1]))
    return before[0] | after[0], largest


def flat(array: Shaped[Array, "*n last"]) -> Shaped[Array, "B last"]:
    """All axes but the last in one."""
    return array.reshape(-1, array.shape[-1])


def in_chunks(
    function: Callable[[Float[Array, "C d"]], tuple[Array, ...]],
    queries: Float[Array, "B d"],
    chunk: int,
) -> tuple[Array, ...]:
    """What `function` makes of the queries, `chunk` of them at a time."""
    number, width = queries.shape
    chunk = min(chunk, max(number, 1))
    padded = jnp.pad(queries, ((0, -number % chunk), (0, 0)))
    # Without a checkpoint, the gradient would store what every chunk computed.
    parts = jax.lax.map(jax.checkpoint(function), padded.reshape(-1, chunk, width))
    return tuple(part.reshape(-1, *part.shape[2:])[:number] for part in parts)
