"""The way to the goal: the middle of the start lane, one change of lane, the middle of the goal's.

A line of three straight pieces. Places on it are given by the distance travelled along it.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from tacit.highway.boxes import heading, length

LOOK_AHEAD = (-1000.0, 0.0, 5.0, 15.0, 100.0)
"""Where the route is shown, in metres from the ego's place on it; cut to the route's ends."""


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
