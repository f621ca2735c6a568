"""A noisy point that is paid for approaching a forbidden side: the fastest continuous task.

    position' = position + 0.1 * action + N(0, noise_std),   both coordinates, within +-2
    reward    = -x' - 0.5 * |y' - 0.5|
    cost      = 1 where x' < limit

The best obedient policy goes to y = 0.5 and waits as close to the limit as the noise lets it.
Everything is known and pure JAX, so that hundreds of runs take minutes.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tacit.environments.jax_environment import JaxEnvironment
from tacit.environments.jax_task import task_from_jax
from tacit.environments.jax_world import JaxStep
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError

EDGE = 2.0
STRIDE = 0.1
PIXELS = 160
FORBIDDEN_COLOUR, ALLOWED_COLOUR, POINT_COLOUR = (247, 205, 200), (250, 250, 250), (31, 119, 180)


class PointState(NamedTuple):
    """Where the point is, and how many steps of the episode have been taken."""

    position: Float[Array, " 2"]
    steps: Int[Array, ""]


@dataclass(frozen=True)
class BlockedPoint:
    """The task as a `JaxWorld`: pure functions and two spaces.

    Fields:
        limit: smallest x that is allowed.
        noise_std: of each coordinate in each step.
        horizon: steps of an episode, which is then truncated.
    """

    limit: float
    noise_std: float
    horizon: int
    name: str = "BlockedPoint"
    constraints: tuple[str, ...] = ("x",)
    observation_names: tuple[str, ...] = ("x", "y")

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """X and y, within 2 of the middle."""
        return gymnasium.spaces.Box(-EDGE, EDGE, (2,), np.float32)

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        """The push in x and in y."""
        return gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, key: PRNGKeyArray) -> tuple[PointState, Float[Array, " 2"]]:
        """Start within 0.25 of the middle."""
        position = jax.random.uniform(key, (2,), jnp.float32, -0.25, 0.25)
        return PointState(position, jnp.int32(0)), position

    def step(self, state: PointState, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Move by the action and by noise."""
        noise = self.noise_std * jax.random.normal(key, (2,), jnp.float32)
        position = jnp.clip(state.position + STRIDE * action + noise, -EDGE, EDGE)
        arrived = PointState(position, state.steps + jnp.int32(1))
        return JaxStep(
            state=arrived,
            observation=position,
            reward=-position[0] - 0.5 * jnp.abs(position[1] - 0.5),
            costs=(position[:1] < self.limit).astype(jnp.float32),
            terminated=jnp.zeros((), bool),
            truncated=arrived.steps >= self.horizon,
        )


class PointEnvironment(JaxEnvironment):
    """One world, with a picture: the forbidden side in red, the point in blue."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    task: BlockedPoint

    def draw(self) -> UInt8[np.ndarray, "height width 3"]:
        """The square from -2 to 2, x to the right and y upwards."""
        places = np.linspace(-EDGE, EDGE, PIXELS)
        across, up = np.meshgrid(places, -places)
        forbidden = (across < self.task.limit)[..., None]
        picture = np.where(forbidden, FORBIDDEN_COLOUR, ALLOWED_COLOUR).astype(np.uint8)
        x, y = np.asarray(self.state.position)
        picture[np.hypot(across - x, up - y) < 0.06] = POINT_COLOUR
        return picture


def blocked_point(limit: float = -1.0, noise_std: float = 0.03, horizon: int = 50) -> SimulatedTask:
    """The point under the rule x >= limit; starts lie within 0.25 of the middle."""
    if not -EDGE < limit < -0.25:
        raise TaskError(f"limit must lie between -2 and -0.25, not at {limit!r}")
    if not 0 <= noise_std < EDGE:
        raise TaskError(f"noise_std must be at least 0 and below 2, not {noise_std!r}")
    if horizon < 1:
        raise TaskError(f"horizon must be at least 1, not {horizon!r}")
    world = BlockedPoint(float(limit), float(noise_std), int(horizon))
    options = {"limit": world.limit, "noise_std": world.noise_std, "horizon": world.horizon}
    return dataclasses.replace(
        task_from_jax(world, options=options),
        make_environment=lambda render_mode: PointEnvironment(world, render_mode=render_mode),
    )
