"""A noisy point that is paid for approaching a forbidden side: the fastest continuous task.

    position' = position + 0.1 * action + N(0, noise_std),   both coordinates, within +-2
    reward    = -x' - 0.5 * |y' - 0.5|
    cost      = 1 where x' < limit

The best obedient policy goes to y = 0.5 and waits as close to the limit as the noise lets it.
Everything is known and pure JAX, so that hundreds of runs take minutes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tacit.environments.jax_environment import JaxEnvironment, JaxVectorEnvironment
from tacit.environments.jax_world import JaxStep, JaxWorlds
from tacit.environments.task import SimulatedTask
from tacit.environments.worlds import check_render_mode
from tacit.errors import EpisodeError, TaskError

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
    """The task as a `JaxWorld`.

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

    @property
    def number_of_costs(self) -> int:
        """One."""
        return 1

    @property
    def observation_space(self) -> gymnasium.spaces.Box:
        """The position."""
        return gymnasium.spaces.Box(-EDGE, EDGE, (2,), np.float32)

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        """Where to go."""
        return gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, key: PRNGKeyArray) -> tuple[PointState, Float[Array, " 2"]]:
        """Start near the middle."""
        position = jax.random.uniform(key, (2,), jnp.float32, -0.25, 0.25)
        return PointState(position, jnp.int32(0)), position

    def step(self, state: PointState, action: Array, key: PRNGKeyArray) -> JaxStep:
        """Move, and be pushed about."""
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

    def __init__(self, task: BlockedPoint, *, render_mode: str | None = None) -> None:
        check_render_mode(render_mode)
        super().__init__(task)
        self.limit, self.render_mode = task.limit, render_mode

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The square from -2 to 2, x to the right and y upwards; None without a render mode."""
        if self.render_mode is None:
            return None
        if self.state is None:
            raise EpisodeError("there is nothing to draw: call reset() before render()")
        places = np.linspace(-EDGE, EDGE, PIXELS)
        across, up = np.meshgrid(places, -places)
        forbidden = (across < self.limit)[..., None]
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
    task = BlockedPoint(float(limit), float(noise_std), int(horizon))
    return SimulatedTask(
        name=task.name,
        options={"limit": task.limit, "noise_std": task.noise_std, "horizon": task.horizon},
        observation_space=task.observation_space,
        action_space=task.action_space,
        horizon=task.horizon,
        constraints=task.constraints,
        make_worlds=lambda number, threads: JaxWorlds(task, number),
        make_environment=lambda render_mode: PointEnvironment(task, render_mode=render_mode),
        jax_world=task,
        make_vector=lambda number: JaxVectorEnvironment(task, number),
    )
