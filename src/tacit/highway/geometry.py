"""Boxes with a heading (distance, overlap, swept area), and the route to a goal.

A route has three straight pieces: the middle of the start lane, one change of lane, and the middle
of the goal's lane. Places on it are given by the distance travelled along it.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LOOK_AHEAD = (-1000.0, 0.0, 5.0, 15.0, 100.0)
"""Where the route is shown, in metres from the ego's place on it; cut to the route's ends."""


class Box(NamedTuple):
    """A rectangle, or any number of them: every field has the same shape.

    Fields:
        s, d: its centre.
        along, across: half of its length and half of its width.
        cos, sin: of the angle between its length and the road.
    """

    s: Float[Array, "*n"]
    d: Float[Array, "*n"]
    along: Float[Array, "*n"]
    across: Float[Array, "*n"]
    cos: Float[Array, "*n"]
    sin: Float[Array, "*n"]


def length(s: Array, d: Array) -> Array:
    """Length of a vector; `jnp.hypot`, which guards against overflow, is many times slower."""
    return jnp.sqrt(s * s + d * d)


def heading(vs: Array, vd: Array) -> tuple[Array, Array]:
    """Cosine and sine of the direction of travel; along the road at a standstill."""
    speed = length(vs, vd)
    still = speed < 1e-6
    safe = jnp.where(still, 1.0, speed)
    return jnp.where(still, 1.0, vs / safe), jnp.where(still, 0.0, vd / safe)


def reach(box: Box, cos: Array, sin: Array) -> tuple[Array, Array]:
    """Half of the space that `box` takes up along the direction (cos, sin) and across it."""
    dot = jnp.abs(box.cos * cos + box.sin * sin)
    cross = jnp.abs(box.sin * cos - box.cos * sin)
    return box.along * dot + box.across * cross, box.along * cross + box.across * dot


def gap_on_axes(one: Box, other: Box) -> Array:
    """The larger of the two gaps between the boxes seen along the axes of `one`."""
    s, d = other.s - one.s, other.d - one.d
    along, across = reach(other, one.cos, one.sin)
    gap_along = jnp.abs(s * one.cos + d * one.sin) - along - one.along
    gap_across = jnp.abs(d * one.cos - s * one.sin) - across - one.across
    return jnp.maximum(gap_along, gap_across)


def overlap(one: Box, other: Box) -> Bool[Array, "*n"]:
    """Whether two boxes share a point: no axis of either separates them."""
    return (gap_on_axes(one, other) <= 0) & (gap_on_axes(other, one) <= 0)


def corner_distance(one: Box, other: Box) -> Array:
    """The distance from `one` to the nearest corner of `other`."""
    squares = []
    for along, across in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        forward, sideways = along * other.along, across * other.across
        s = other.s + forward * other.cos - sideways * other.sin - one.s
        d = other.d + forward * other.sin + sideways * other.cos - one.d
        beyond_along = jnp.maximum(jnp.abs(s * one.cos + d * one.sin) - one.along, 0)
        beyond_across = jnp.maximum(jnp.abs(d * one.cos - s * one.sin) - one.across, 0)
        squares.append(beyond_along**2 + beyond_across**2)
    return jnp.sqrt(functools.reduce(jnp.minimum, squares))


def distance(one: Box, other: Box) -> Float[Array, "*n"]:
    """The smallest distance between two boxes; 0 where they touch.

    Two rectangles that do not touch are nearest at a corner of one of them.
    """
    apart = jnp.minimum(corner_distance(one, other), corner_distance(other, one))
    return jnp.where(overlap(one, other), 0.0, apart)


def swept(before: Box, after: Box) -> Box:
    """The box around both, pointing as `after` does: what a vehicle covers between two moments."""
    along, across = reach(before, after.cos, after.sin)
    s, d = before.s - after.s, before.d - after.d
    shift_along, shift_across = s * after.cos + d * after.sin, d * after.cos - s * after.sin
    front = jnp.maximum(after.along, shift_along + along)
    back = jnp.minimum(-after.along, shift_along - along)
    left = jnp.maximum(after.across, shift_across + across)
    right = jnp.minimum(-after.across, shift_across - across)
    middle_along, middle_across = (front + back) / 2, (left + right) / 2
    return Box(
        after.s + middle_along * after.cos - middle_across * after.sin,
        after.d + middle_along * after.sin + middle_across * after.cos,
        (front - back) / 2,
        (left - right) / 2,
        after.cos,
        after.sin,
    )


class Route(NamedTuple):
    """Four points joined by three straight pieces.

    Fields:
        s, d: [4] of the points; s rises.
    """

    s: Float[Array, " 4"]
    d: Float[Array, " 4"]


class Place(NamedTuple):
    """Where a point stands beside the route.

    Fields:
        along: distance travelled on the route up to the nearest point of it.
        left: signed distance from the route, positive on its left.
        beyond: how far the point lies before the route's start or past its end.
    """

    along: Float[Array, ""]
    left: Float[Array, ""]
    beyond: Float[Array, ""]


def pieces(route: Route) -> tuple[Array, Array, Array, Array]:
    """Unit vector, length and start (travelled) of each of the three pieces."""
    s, d = jnp.diff(route.s), jnp.diff(route.d)
    distance = length(s, d)
    return *heading(s, d), distance, jnp.cumsum(distance) - distance


def find_place(route: Route, s: Array, d: Array) -> Place:
    """The nearest point of the route."""
    cos, sin, size, start = pieces(route)
    to_s, to_d = s - route.s[:3], d - route.d[:3]
    forward = to_s * cos + to_d * sin
    inside = jnp.clip(forward, 0, size)
    away = length(to_s - inside * cos, to_d - inside * sin)
    nearest = jnp.argmin(away)
    left = (to_d * cos - to_s * sin)[nearest]
    end = size[2]
    beyond = jnp.maximum(jnp.maximum(-forward[0], forward[2] - end), 0)
    return Place((start + inside)[nearest], left, beyond)


def point_at(route: Route, along: Array) -> tuple[Array, Array, Array]:
    """Points at distances travelled, cut to the route's ends: s, d and the heading there."""
    cos, sin, size, start = pieces(route)
    along = jnp.clip(along, 0, start[2] + size[2])
    piece = (along >= start[1]).astype(jnp.int32) + (along >= start[2])
    forward = along - start[piece]
    angle = jnp.arctan2(sin, cos)
    return (
        route.s[piece] + forward * cos[piece],
        route.d[piece] + forward * sin[piece],
        angle[piece],
    )
