"""The 74 numbers that a driver sees, in the order of the published simulator."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tacit.highway.geometry import LOOK_AHEAD, Box, Route, find_place, point_at
from tacit.highway.neighbours import Neighbours

PLACES = ("left_behind", "behind", "right_behind", "left_ahead", "ahead", "right_ahead")
WAYPOINTS = ("start", "here", "end")
FEATURES: tuple[str, ...] = (
    "goal_distance_along",
    "goal_advance_along",
    "goal_distance_across",
    "goal_advance_across",
    "goal_reached",
    "time_out",
    "speed_along",
    "speed_across",
    "acceleration_along",
    "acceleration_across",
    "friction_violation",
    "remaining_steps",
    *(f"approach_{place}" for place in PLACES),
    *(f"gap_{place}" for place in PLACES),
    *(f"kind_{place}" for place in PLACES),
    "collision",
    "off_road",
    "left_marking_distance",
    "right_marking_distance",
    "left_edge_distance",
    "right_edge_distance",
    "lane_offset",
    "lane_curvature",
    *(f"route_{place:g}m_{axis}" for place in LOOK_AHEAD for axis in ("forward", "left")),
    *(f"route_{place:g}m_angle" for place in LOOK_AHEAD),
    *(
        f"{lane}_lane_{point}_{axis}"
        for lane in ("route", "next")
        for point in WAYPOINTS
        for axis in ("forward", "left")
    ),
    *(f"{lane}_lane_{point}_angle" for lane in ("route", "next") for point in WAYPOINTS),
    "route_distance_to_goal",
    "route_offset",
    "on_route",
)
OBSERVATION_NAMES = tuple(feature.replace("_", " ") for feature in FEATURES)
"""The same as words, for rules, tables and pictures: "gap ahead", "speed along"."""
REASONS = ("off_road", "collision", "goal_reached", "time_out")
"""How an episode ends; the first that holds is its reason."""
GAP_AHEAD = FEATURES.index("gap_ahead")
SPEED = (FEATURES.index("speed_along"), FEATURES.index("speed_across"))


class Surroundings(NamedTuple):
    """The road and the goal of one scenario.

    Fields:
        boundaries: `d` of the markings from left to right; beyond the last, very negative numbers.
        lanes: how many lanes there are.
        start, end: `s` of the road's ends.
        goal: a box; it is reached when the ego's centre is inside.
        goal_lane, start_lane: 0 the leftmost.
        route: the way there.
        limit: steps after which time is out.
    """

    boundaries: Float[Array, " b"]
    lanes: Int[Array, ""]
    start: Float[Array, ""]
    end: Float[Array, ""]
    goal: Box
    goal_lane: Int[Array, ""]
    start_lane: Int[Array, ""]
    route: Route
    limit: Int[Array, ""]


class Flags(NamedTuple):
    """How an episode may end; several can hold at once."""

    goal: Bool[Array, ""]
    time_out: Bool[Array, ""]
    collision: Bool[Array, ""]
    off_road: Bool[Array, ""]


class Ego(NamedTuple):
    """The driver's own motion; `acceleration` is that of the last step, lane 0 the leftmost."""

    box: Box
    vs: Float[Array, ""]
    vd: Float[Array, ""]
    acceleration: Float[Array, " 2"]
    lane: Int[Array, ""]


def reasons_in(observation: Float[np.ndarray, " 74"]) -> list[str]:
    """Why the episode ended, the main reason first; empty while it goes on."""
    return [reason for reason in REASONS if observation[FEATURES.index(reason)]]


def gap_and_speed(
    observations: Float[np.ndarray, "*n 74"],
) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"]]:
    """Metres to the leader (100 where there is none) and m/s."""
    speed = np.hypot(observations[..., SPEED[0]], observations[..., SPEED[1]])
    return observations[..., GAP_AHEAD], speed


def goal_distances(goal: Box, ego: Box) -> Float[Array, " 2"]:
    """Signed distance to the goal's box along and across the road; 0 beside and inside it."""
    along = goal.along * jnp.abs(goal.cos) + goal.across * jnp.abs(goal.sin)
    across = goal.along * jnp.abs(goal.sin) + goal.across * jnp.abs(goal.cos)
    ahead = jnp.stack([goal.s - ego.s, goal.d - ego.d])
    size = jnp.stack([along, across])
    return jnp.sign(ahead) * jnp.maximum(jnp.abs(ahead) - size, 0)


def observe(
    ego: Ego,
    around: Surroundings,
    neighbours: Neighbours,
    flags: Flags,
    remaining: Array,
    advance: Float[Array, " 2"],
) -> Float[Array, " 74"]:
    """The whole observation; `advance` is how much nearer the goal has come, along and across."""
    distances = goal_distances(around.goal, ego.box)
    plain = jnp.zeros(())
    parts = [
        jnp.stack([distances[0], advance[0], distances[1], advance[1]]),
        jnp.stack([flags.goal, flags.time_out]),
        jnp.stack([ego.vs, ego.vd]),
        ego.acceleration,
        jnp.stack([plain, remaining.astype(jnp.float32)]),
        neighbours.approach,
        neighbours.gap,
        neighbours.kind,
        jnp.stack([flags.collision, flags.off_road]),
        lane_features(ego, around),
        route_features(ego.box, around),
    ]
    return jnp.concatenate([part.astype(jnp.float32) for part in parts])


def lane_features(ego: Ego, around: Surroundings) -> Float[Array, " 6"]:
    """Distances to the markings and the edges, offset from the lane's middle, curvature 0."""
    left, right = around.boundaries[ego.lane], around.boundaries[ego.lane + 1]
    edge_left, edge_right = around.boundaries[0], around.boundaries[around.lanes]
    d = ego.box.d
    markers = jnp.stack([left - d, d - right, edge_left - d, d - edge_right])
    return jnp.concatenate([jnp.abs(markers), jnp.stack([d - (left + right) / 2, jnp.zeros(())])])


def route_features(ego: Box, around: Surroundings) -> Float[Array, " 36"]:
    """The route ahead and its lanes in the ego's frame, and what remains of it to the goal."""
    place = find_place(around.route, ego.s, ego.d)
    goal = find_place(around.route, around.goal.s, around.goal.d)
    s, d, angle = point_at(around.route, place.along + jnp.array(LOOK_AHEAD, jnp.float32))
    to_goal = goal.along - place.along
    left_to_go = jnp.sign(to_goal) * jnp.maximum(jnp.abs(to_goal) - around.goal.along, 0)
    lanes_s, lanes_d = lane_waypoints(ego, around)
    own = jnp.arctan2(ego.sin, ego.cos)
    return jnp.concatenate(
        [
            seen_from(ego, s, d),
            turned(angle - own),
            seen_from(ego, lanes_s, lanes_d),
            jnp.broadcast_to(turned(-own), (6,)),
            jnp.stack([left_to_go, place.left, 1 / (1 + place.beyond)]),
        ]
    )


def lane_waypoints(ego: Box, around: Surroundings) -> tuple[Array, Array]:
    """Start, present place and end of the route's lane nearest to the ego, and of the next one."""
    first = jnp.minimum(around.start_lane, around.goal_lane)
    last = jnp.maximum(around.start_lane, around.goal_lane)
    middles = (around.boundaries[:-1] + around.boundaries[1:]) / 2
    numbers = jnp.arange(len(middles))
    on_route = (numbers >= first) & (numbers <= last)
    lane = jnp.argmin(jnp.where(on_route, jnp.abs(middles - ego.d), jnp.inf)).astype(jnp.int32)
    onwards = lane + jnp.sign(around.goal_lane - lane)
    s = jnp.stack([around.start, jnp.clip(ego.s, around.start, around.end), around.end])
    return jnp.tile(s, 2), jnp.repeat(jnp.stack([middles[lane], middles[onwards]]), 3)


def seen_from(ego: Box, s: Array, d: Array) -> Array:
    """Points as (forward, left) of the ego, one after the other."""
    s, d = s - ego.s, d - ego.d
    return jnp.stack([s * ego.cos + d * ego.sin, d * ego.cos - s * ego.sin], -1).ravel()


def turned(angle: Array) -> Array:
    """An angle in (-pi, pi]."""
    return -jnp.mod(jnp.pi - angle, 2 * jnp.pi) + jnp.pi
