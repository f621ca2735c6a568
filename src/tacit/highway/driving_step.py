"""The driving task as a pure step function: a point mass among replayed traffic.

    a  = 11.5 m/s^2 * action, cut to a length of 11.5     (along, left)
    s' = s + v dt + a dt^2 / 2,   v' = v + a dt

Reward: +50 at the goal, -50 for a collision, -20 off the road, -10 when time is out. Other
vehicles replay what was recorded and do not react.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tacit.environments.jax_world import JaxStep
from tacit.highway.geometry import Box, gap_on_axes, heading, length, overlap, reach, swept
from tacit.highway.neighbours import find_neighbours, lane_of, read_frame
from tacit.highway.observation import (
    FEATURES,
    GAP_AHEAD,
    SPEED,
    Ego,
    Flags,
    Surroundings,
    goal_distances,
    observe,
)
from tacit.highway.recording import Geometry
from tacit.highway.replay import Replay
from tacit.highway.scenarios import EGO_LENGTH, EGO_WIDTH

STRONGEST = 11.5
REWARDS = {"goal": 50.0, "time_out": -10.0, "collision": -50.0, "off_road": -20.0}


class DriveState(NamedTuple):
    """The state of a drive.

    Fields:
        scenario: which one.
        step: how many have been taken.
        position, velocity, acceleration: [2] (along, left).
        to_goal: [2] distances to the goal, without sign.
    """

    scenario: Int[Array, ""]
    step: Int[Array, ""]
    position: Float[Array, " 2"]
    velocity: Float[Array, " 2"]
    acceleration: Float[Array, " 2"]
    to_goal: Float[Array, " 2"]


class HighwayTask(eqx.Module):
    """The task as a `JaxWorld`; its tables are arrays, so programs do not contain them.

    Fields:
        replay: the scenarios.
        name: of the task.
        constraints: "distance", "velocity" or both.
        gap: metres that must remain to the leader on the same lane.
        speed: m/s that must not be exceeded.
        geometry: `legacy` declares collisions as early as the published simulator does.
        horizon: steps of the longest scenario.
    """

    replay: Replay
    name: str = eqx.field(static=True)
    constraints: tuple[str, ...] = eqx.field(static=True)
    gap: float = eqx.field(static=True)
    speed: float = eqx.field(static=True)
    geometry: Geometry = eqx.field(static=True)
    horizon: int = eqx.field(static=True)

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """The 74 numbers of `FEATURES`."""
        return gymnasium.spaces.Box(-np.inf, np.inf, (len(FEATURES),), np.float32)

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        """Acceleration along the road and to the left, in units of 11.5 m/s^2."""
        return gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, key: PRNGKeyArray) -> tuple[DriveState, Float[Array, " 74"]]:
        """Start a scenario drawn at random."""
        return self.start(jax.random.randint(key, (), 0, len(self.replay), jnp.int32))

    def start(self, scenario: Int[Array, ""]) -> tuple[DriveState, Float[Array, " 74"]]:
        """Start the scenario with that number."""
        state = DriveState(
            scenario=scenario,
            step=jnp.int32(0),
            position=self.replay.position[scenario],
            velocity=self.replay.velocity[scenario],
            acceleration=jnp.zeros(2, jnp.float32),
            to_goal=jnp.zeros(2, jnp.float32),
        )
        around = self.around(scenario)
        distances = jnp.abs(goal_distances(around.goal, ego_box(state)))
        state = state._replace(to_goal=distances)
        nothing = jnp.zeros((), bool)
        flags = Flags(nothing, nothing, nothing, nothing)
        return state, self.see(state, around, flags, jnp.zeros(2, jnp.float32))

    def step(self, state: DriveState, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Accelerate for one frame; `key` is not used, as nothing is random."""
        del key
        around = self.around(state.scenario)
        moved = move(state, action, self.replay.dt[state.scenario])
        flags = self.judge(state, moved, around)
        distances = jnp.abs(goal_distances(around.goal, ego_box(moved)))
        moved = moved._replace(to_goal=distances)
        observation = self.see(moved, around, flags, state.to_goal - distances)
        return JaxStep(
            state=moved,
            observation=observation,
            reward=jnp.sum(
                jnp.stack(
                    [jnp.float32(value) * getattr(flags, name) for name, value in REWARDS.items()]
                )
            ),
            costs=self.costs(observation),
            terminated=flags.goal | flags.collision | flags.off_road,
            truncated=flags.time_out & ~(flags.goal | flags.collision | flags.off_road),
        )

    def costs(self, observation: Float[Array, "*n 74"]) -> Float[Array, "*n k"]:
        """1 for each constraint that an observation breaks."""
        speed = length(observation[..., SPEED[0]], observation[..., SPEED[1]])
        broken = {
            "distance": observation[..., GAP_AHEAD] < self.gap,
            "velocity": speed > self.speed,
        }
        return jnp.stack([broken[name] for name in self.constraints], -1).astype(jnp.float32)

    def around(self, scenario: Int[Array, ""]) -> Surroundings:
        """Road, goal and route of a scenario."""
        return jax.tree.map(lambda field: field[scenario], self.replay.around)

    def frame(self, state: DriveState, later: int = 0) -> Float[Array, "slots 7"]:
        """The traffic at a state's step, or some steps later; the scenario's last frame stays."""
        replay = self.replay
        row = replay.first_row[state.scenario] + state.step + jnp.int32(later)
        row = jnp.minimum(row, replay.last_row[state.scenario])
        return replay.frames[row]

    def see(
        self, state: DriveState, around: Surroundings, flags: Flags, advance: Float[Array, " 2"]
    ) -> Float[Array, " 74"]:
        """The observation in a state."""
        box = ego_box(state)
        vs, vd = state.velocity
        lane = lane_of(around.boundaries, around.lanes, box.d)
        frame = self.frame(state)
        lanes = lane_of(around.boundaries, around.lanes, frame[:, 1])
        # Beyond the ends of the road the ego has no neighbours.
        lanes = jnp.where(on_road(box, around), lanes, jnp.int32(-9))
        neighbours = find_neighbours(box, vs, lane, frame, lanes)
        ego = Ego(box, vs, vd, state.acceleration, lane)
        return observe(ego, around, neighbours, flags, around.limit - state.step, advance)

    def judge(self, before: DriveState, now: DriveState, around: Surroundings) -> Flags:
        """How the episode ends, if it does."""
        box = ego_box(now)
        _, half_width = reach(box, jnp.float32(1), jnp.float32(0))
        left, right = around.boundaries[0], around.boundaries[around.lanes]
        centre = box._replace(along=jnp.float32(0), across=jnp.float32(0))
        return Flags(
            goal=gap_on_axes(around.goal, centre) <= 0,
            time_out=(now.step >= around.limit) | ~on_road(box, around),
            collision=self.collides(before, now),
            off_road=(box.d + half_width > left) | (box.d - half_width < right),
        )

    def collides(self, before: DriveState, now: DriveState) -> Bool[Array, ""]:
        """Whether the area that the ego swept in the step meets that of another vehicle.

        The published simulator (`legacy`) lets the others sweep one step further.
        """
        ego = swept(ego_box(before), ego_box(now))
        frames = [read_frame(self.frame(before)), read_frame(self.frame(now))]
        if self.geometry == "legacy":
            frames.append(read_frame(self.frame(now, later=1)))
        here = frames[1]
        cover = here.box
        for frame in (frames[0], *frames[2:]):
            there = frame.kind > 0
            both = swept(frame.box, cover)
            cover = jax.tree.map(partial(jnp.where, there), both, cover)
        selves = jax.tree.map(lambda field: jnp.broadcast_to(field, here.kind.shape), ego)
        return jnp.any((here.kind > 0) & overlap(selves, cover))


def on_road(box: Box, around: Surroundings) -> Bool[Array, ""]:
    """Whether the centre lies between the road's two ends."""
    return (box.s >= around.start) & (box.s <= around.end)


def ego_box(state: DriveState) -> Box:
    """The ego's box, which points the way it moves."""
    s, d = state.position
    half_length, half_width = jnp.float32(EGO_LENGTH / 2), jnp.float32(EGO_WIDTH / 2)
    return Box(s, d, half_length, half_width, *heading(*state.velocity))


def move(state: DriveState, action: Array, dt: Array) -> DriveState:
    """One step of the point mass."""
    wanted = STRONGEST * jnp.clip(jnp.asarray(action, jnp.float32), -1, 1)
    size = length(wanted[0], wanted[1])
    acceleration = wanted * jnp.minimum(1.0, STRONGEST / jnp.maximum(size, 1e-6))
    return state._replace(
        step=state.step + jnp.int32(1),
        position=state.position + state.velocity * dt + acceleration * dt**2 / 2,
        velocity=state.velocity + acceleration * dt,
        acceleration=acceleration,
    )
