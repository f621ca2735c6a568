"""A MuJoCo task as Gymnasium environments: one world, or many that reset themselves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from jaxtyping import Float, UInt8

from tacit.environments.mujoco_rules import MujocoRules
from tacit.environments.mujoco_worlds import MujocoWorlds
from tacit.environments.worlds import (
    RENDER_MODES,
    Outcome,
    Step,
    WorldsEnvironment,
    check_render_mode,
)
from tacit.errors import ArgumentError, EpisodeError

if TYPE_CHECKING:
    from tacit.environments.mujoco_picture import Picture

DRAWN_SEEDS = 2**31


class MujocoEnvironment(gymnasium.Env[Float[np.ndarray, " o"], Any]):
    """One world of a MuJoCo task.

    `info` holds the true `cost` of the step and the `x_position` it led to, and in the last step
    of an episode the `reason` for its end: "fell", "time limit" or "diverged".

    `reset(seed=...)` fixes all randomness from there on, later episodes included.
    """

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 20}  # noqa: RUF012

    def __init__(self, rules: MujocoRules, *, render_mode: str | None = None) -> None:
        check_render_mode(render_mode)
        self.worlds = MujocoWorlds(rules, 1, threads=1)
        self.painter = Painter(self.worlds)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(1 / self.worlds.seconds)}
        self.observation_space = self.worlds.observation_space
        self.action_space = self.worlds.action_space
        self.end: str | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " o"], dict[str, Any]]:
        """Start the next episode, or with a `seed` the first one of that seed."""
        super().reset(seed=seed, options=options)
        if seed is None and self.worlds.running:
            observation = self.worlds.begin_episodes(np.arange(1))[0]
        else:
            seed = int(self.np_random.integers(DRAWN_SEEDS)) if seed is None else seed
            observation = self.worlds.reset(seed)[0]
        self.end = None
        return observation, {"x_position": float(observation[0])}

    def step(
        self, action: Float[np.ndarray, " a"]
    ) -> tuple[Float[np.ndarray, " o"], float, bool, bool, dict[str, Any]]:
        """Take `action`: observation, reward, terminated, truncated, info with the true cost."""
        if self.end is not None:
            raise EpisodeError(f"the episode has ended ({self.end}): call reset() before step()")
        if np.shape(action) != self.action_space.shape:
            raise ArgumentError(
                f"an action must have shape {self.action_space.shape}, not {np.shape(action)}"
            )
        step = self.worlds.advance(np.asarray(action)[None])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        info = info_of(step, 0)
        if terminated or truncated:
            self.end = info["reason"] = self.worlds.reason(step, 0)
        return step.arrived[0], float(step.rewards[0]), terminated, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The robot and its limit, or None without a render mode."""
        return None if self.render_mode is None else self.painter.draw(0)

    def close(self) -> None:
        """Free the simulation."""
        self.worlds.close()


class MujocoVectorEnvironment(WorldsEnvironment):
    """Many worlds of a MuJoCo task; see `WorldsEnvironment`.

    They are simulated on `threads` threads (None: as many as there are cores), on which the
    numbers never depend. `render` returns one picture for each world.
    """

    def __init__(
        self,
        rules: MujocoRules,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_render_mode(render_mode)
        self.worlds = MujocoWorlds(rules, num_envs, threads)
        super().__init__(self.worlds)
        self.painter = Painter(self.worlds)
        self.render_mode = render_mode
        self.metadata |= {
            "render_modes": [*RENDER_MODES],
            "render_fps": round(1 / self.worlds.seconds),
        }

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, "n o"], dict[str, Any]]:
        """Start an episode in every world; world i is seeded with `seed + i` or `seed[i]`."""
        if options and "reset_mask" in options:
            raise ArgumentError("reset_mask is of no use here: worlds reset themselves")
        if isinstance(seed, Sequence):
            observations = self.worlds.reset_each(list(seed))
        elif seed is None and self.worlds.running:
            observations = self.worlds.begin_episodes(np.arange(self.num_envs))
        else:
            super().reset(seed=seed)
            seed = int(self.np_random.integers(DRAWN_SEEDS)) if seed is None else seed
            observations = self.worlds.reset(seed)
        return observations, self.for_all(x_position=observations[:, 0].copy())

    def step(self, actions: Float[np.ndarray, "n a"]) -> Outcome:
        """Take one action in every world; worlds whose episode ends start the next one."""
        step = self.worlds.step(actions)
        return self.outcome(step, x_position=step.observations[:, 0].copy())

    def last_info(self, step: Step, world: int) -> dict[str, Any]:
        """Cost and place of the last step, and the reason for the end."""
        return {**info_of(step, world), "reason": self.worlds.reason(step, world)}

    def render(self) -> tuple[UInt8[np.ndarray, "height width 3"], ...] | None:
        """One picture for each world, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self.painter.draw(world) for world in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations."""
        self.worlds.close()


class Painter:
    """Draws worlds; it loads what drawing needs with the first picture."""

    def __init__(self, worlds: MujocoWorlds) -> None:
        self.worlds = worlds
        self.picture: Picture | None = None

    def draw(self, world: int) -> UInt8[np.ndarray, "height width 3"]:
        """The robot of `world` and its limit."""
        if not self.worlds.running:
            raise EpisodeError("there is nothing to draw yet: call reset() before render()")
        if self.picture is None:
            from tacit.environments.mujoco_picture import Picture

            rules = self.worlds.rules
            self.picture = Picture(self.worlds.model, rules.limit, rules.forbidden)
        return self.picture.draw(self.worlds.batch.get_data(world))


def info_of(step: Step, world: int) -> dict[str, Any]:
    """What `info` says of a step of one world."""
    return {"cost": float(step.costs[world, 0]), "x_position": float(step.arrived[world, 0])}
