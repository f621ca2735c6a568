"""All scenarios of a task as arrays, in which the step function looks up traffic and roads.

Only the frames that an episode can reach are kept. A row of the table is one frame of one scenario;
a vehicle keeps its slot while it is seen, and between two vehicles a slot is empty for a frame.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tacit.highway.geometry import Box, Route
from tacit.highway.neighbours import SLOT_COLUMNS, lane_of
from tacit.highway.observation import Surroundings
from tacit.highway.recording import Carriageway, Geometry, Track
from tacit.highway.scenarios import Cast, Scenario

NO_BOUNDARY = -1e9
JUMP_START, JUMP_END = 240.0, 253.8
"""Where the published simulator's routes change lane: metres from the road's start."""
LOST = 6.0
"""Metres by which its routes without a change of lane end before the road does."""
CHANGE = 100.0
"""Metres over which a route changes lane, from where the ego starts."""


class Replay(eqx.Module):
    """The tables of n scenarios.

    Fields:
        frames: [rows, slots, 7] the traffic, columns as in `SLOT_COLUMNS`.
        first_row: [n] the row of each scenario's step 0.
        last_row: [n] its last row.
        dt: [n] seconds per step.
        position, velocity: [n, 2] at the start, (along, left).
        around: road, goal and route, each with an axis of scenarios.
    """

    frames: Float[Array, "rows slots 7"]
    first_row: Int[Array, " n"]
    last_row: Int[Array, " n"]
    dt: Float[Array, " n"]
    position: Float[Array, "n 2"]
    velocity: Float[Array, "n 2"]
    around: Surroundings

    def __len__(self) -> int:
        return len(self.dt)


class Piece(NamedTuple):
    """Everything that is kept of one scenario.

    Fields:
        scenario: start, goal and time limit.
        path: [steps + 1, 2] where the recorded driver went.
        table: [frames, slots, 7] the traffic.
        around: road, goal and route.
    """

    scenario: Scenario
    path: Float[np.ndarray, "steps 2"]
    table: Float[np.ndarray, "frames slots 7"]
    around: Surroundings


def piece_of(carriageway: Carriageway, cast: Cast, geometry: Geometry) -> Piece:
    """Cut one scenario out of its recording."""
    around = surroundings_of(carriageway, cast, geometry)
    return Piece(cast.scenario, cast.path.copy(), table_of(cast), around)


def table_of(cast: Cast) -> Float[np.ndarray, "frames slots 7"]:
    """The traffic of one scenario, one frame beyond its last step."""
    length = min(cast.scenario.limit + 2, cast.last - cast.first + 1)
    placed: list[tuple[int, int, int, Track]] = []
    free_from: list[int] = []
    for track in sorted(cast.others, key=lambda track: (track.first, track.vehicle)):
        begin = max(track.first - cast.first, 0)
        end = min(track.last - cast.first + 1, length)
        if begin >= end:
            continue
        slot = next((slot for slot, free in enumerate(free_from) if free < begin), len(free_from))
        free_from[slot : slot + 1] = [end]
        placed.append((slot, begin, end, track))
    table = np.zeros((length, max(len(free_from), 1), len(SLOT_COLUMNS)), np.float32)
    for slot, begin, end, track in placed:
        rows = slice(begin + cast.first - track.first, end + cast.first - track.first)
        moving = (track.s[rows], track.d[rows], track.vs[rows], track.vd[rows])
        for column, values in enumerate((*moving, track.length, track.width, track.kind)):
            table[begin:end, slot, column] = values
    return table


def surroundings_of(carriageway: Carriageway, cast: Cast, geometry: Geometry) -> Surroundings:
    """Road, goal and route of one scenario."""
    scenario, boundaries = cast.scenario, carriageway.boundaries
    number, whole = partial(jnp.asarray, dtype=jnp.float32), partial(jnp.asarray, dtype=jnp.int32)
    middles = (boundaries[:-1] + boundaries[1:]) / 2
    ends = number([scenario.position[1], scenario.goal.d])
    lanes = lane_of(number(boundaries), whole(len(middles)), ends)
    start_lane, goal_lane = np.asarray(lanes).tolist()
    end = carriageway.end
    if geometry == "legacy":
        change = carriageway.start + JUMP_START, carriageway.start + JUMP_END
        end -= LOST if start_lane == goal_lane else 0
    else:
        ahead = max(scenario.goal.s - scenario.position[0], 1.0)
        change = scenario.position[0], scenario.position[0] + min(CHANGE, ahead)
    goal = scenario.goal
    box = (goal.s, goal.d, goal.length / 2, goal.width / 2, np.cos(goal.angle), np.sin(goal.angle))
    return Surroundings(
        boundaries=number(boundaries),
        lanes=whole(len(boundaries) - 1),
        start=number(carriageway.start),
        end=number(carriageway.end),
        goal=Box(*map(number, box)),
        goal_lane=whole(goal_lane),
        start_lane=whole(start_lane),
        route=Route(
            number([carriageway.start, *change, end]),
            number(np.repeat(middles[[start_lane, goal_lane]], 2)),
        ),
        limit=whole(scenario.limit),
    )


def stack_replay(pieces: Sequence[Piece]) -> Replay:
    """Join the tables of all scenarios, with room for as many slots as the fullest one needs."""
    lengths = np.array([len(piece.table) for piece in pieces], np.int32)
    slots = max(piece.table.shape[1] for piece in pieces)
    frames = np.zeros((int(lengths.sum()), slots, len(SLOT_COLUMNS)), np.float32)
    ends = np.cumsum(lengths, dtype=np.int32)
    for piece, end in zip(pieces, ends, strict=True):
        frames[end - len(piece.table) : end, : piece.table.shape[1]] = piece.table
    markings = max(len(piece.around.boundaries) for piece in pieces)
    around = [with_room(piece.around, markings) for piece in pieces]
    scenarios = [piece.scenario for piece in pieces]
    number = partial(jnp.asarray, dtype=jnp.float32)
    return Replay(
        frames=jnp.asarray(frames),
        first_row=jnp.asarray(ends - lengths),
        last_row=jnp.asarray(ends - 1),
        dt=number([scenario.dt for scenario in scenarios]),
        position=number([scenario.position for scenario in scenarios]),
        velocity=number([scenario.velocity for scenario in scenarios]),
        around=jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *around),
    )


def with_room(around: Surroundings, markings: int) -> Surroundings:
    """The surroundings, padded to that many boundaries."""
    padded = np.full(markings, NO_BOUNDARY, np.float32)
    padded[: len(around.boundaries)] = around.boundaries
    return around._replace(boundaries=jnp.asarray(padded))
