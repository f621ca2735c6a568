"""The six vehicles around the ego: behind and ahead, on the left, its own and the right lane."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from tacit.highway.geometry import Box, distance, heading, length, reach
from tacit.highway.recording import SLOW

SIGHT = 100.0
"""Metres that the ego sees, and the gap that is shown where nobody is there."""
SLOT_COLUMNS = ("s", "d", "vs", "vd", "length", "width", "kind")


class Traffic(NamedTuple):
    """The other vehicles in one frame; an empty slot has kind 0.

    Fields:
        vs, vd: velocity along and to the left.
        kind: 0 nobody, else as in `recording`.
        box: where they are.
    """

    vs: Float[Array, " slots"]
    vd: Float[Array, " slots"]
    kind: Float[Array, " slots"]
    box: Box


class Neighbours(NamedTuple):
    """Left, own and right lane behind, then the same ahead.

    Fields:
        approach: by how much the gap grows per second (negative: closing); 0 if nobody is there.
        gap: smallest distance between the two boxes; `SIGHT` if nobody is there.
        kind: 0 if nobody is there.
    """

    approach: Float[Array, " 6"]
    gap: Float[Array, " 6"]
    kind: Float[Array, " 6"]


def read_frame(frame: Float[Array, "slots 7"]) -> Traffic:
    """One row of the replay table."""
    s, d, vs, vd, length, width, kind = (frame[:, column] for column in range(7))
    # A crawling vehicle points along the road: rounded, tiny velocities have no direction.
    pointing = heading(jnp.maximum(vs, SLOW), vd)
    return Traffic(vs, vd, kind, Box(s, d, length / 2, width / 2, *pointing))


def lane_of(boundaries: Float[Array, " b"], lanes: Array, d: Array) -> Int[Array, "*n"]:
    """The lane of a point, 0 the leftmost; the nearest one for points off the road."""
    passed = jnp.sum(d[..., None] < boundaries, -1, dtype=jnp.int32)
    return jnp.clip(passed - jnp.int32(1), 0, lanes - jnp.int32(1))


def rough_gaps(ego: Box, traffic: Traffic) -> Float[Array, " slots"]:
    """Gaps between boxes along the road around the vehicles; infinite for centres out of sight."""
    along, across = reach(traffic.box, jnp.float32(1), jnp.float32(0))
    ego_along, ego_across = reach(ego, jnp.float32(1), jnp.float32(0))
    gap_s = jnp.maximum(jnp.abs(traffic.box.s - ego.s) - along - ego_along, 0)
    gap_d = jnp.maximum(jnp.abs(traffic.box.d - ego.d) - across - ego_across, 0)
    # The small term decides between vehicles whose boxes touch the ego's.
    gap = length(gap_s, gap_d) + 1e-3 * jnp.abs(traffic.box.s - ego.s)
    away = length(traffic.box.s - ego.s, traffic.box.d - ego.d)
    return jnp.where((traffic.kind > 0) & (away <= SIGHT), gap, jnp.inf)


def find_neighbours(
    ego: Box, vs: Array, lane: Array, frame: Float[Array, "slots 7"], lanes: Array
) -> Neighbours:
    """The nearest vehicle in each of the six places.

    `rough_gaps` decide which one is nearest; the gap that is shown is the true one. `vs` is the
    ego's velocity along the road, `lanes` are those of the other vehicles, the rows of `frame`.
    """
    traffic = read_frame(frame)
    near = rough_gaps(ego, traffic)
    behind = traffic.box.s < ego.s
    side = lanes - lane
    wanted_side = jnp.array([-1, 0, 1, -1, 0, 1], jnp.int32)[:, None]
    wanted_behind = jnp.array([True, True, True, False, False, False])[:, None]
    there = (side == wanted_side) & (behind == wanted_behind)
    # Computed once, not once for each use: XLA would repeat it.
    places = jax.lax.optimization_barrier(jnp.where(there, near, jnp.inf))
    nearest = jnp.min(places, -1, keepdims=True)
    # One only, also of two vehicles that are equally near.
    slots = jnp.arange(len(frame), dtype=jnp.int32)
    equal = (places == nearest) & (nearest < jnp.inf)
    hit = slots == jnp.min(jnp.where(equal, slots, len(frame)), -1, keepdims=True)
    seen = jnp.any(hit, -1)
    # A product instead of argmin and gathering, which are many times slower on a processor; an
    # exact one, as graphics cards would keep three digits.
    chosen = jnp.matmul(hit.astype(jnp.float32), frame, precision=jax.lax.Precision.HIGHEST)
    chosen = jax.lax.optimization_barrier(chosen)
    others = read_frame(chosen)
    gaps = jnp.stack(
        [distance(ego, jax.tree.map(lambda field, k=k: field[k], others.box)) for k in range(6)]
    )
    # Velocity of the other vehicle as seen along the ego's own heading.
    seen_speed = others.vs * ego.cos + others.vd * ego.sin
    growing = jnp.where(wanted_behind[:, 0], vs - seen_speed, seen_speed - vs)
    return Neighbours(
        approach=jnp.where(seen, growing, 0.0),
        gap=jnp.where(seen, gaps, SIGHT),
        kind=jnp.where(seen, others.kind, 0.0),
    )
