"""A MuJoCo task as Gymnasium environments: one world, or many that reset themselves."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, UInt8

from tacit.environments.mujoco_rules import (
    MujocoRules,
    load_model,
    observation_names,
    spaces_of,
)
from tacit.environments.mujoco_worlds import Arrival, MujocoWorlds
from tacit.environments.task import SimulatedTask
from tacit.environments.worlds import RENDER_MODES, check_render_mode
from tacit.errors import ArgumentError, EpisodeError

if TYPE_CHECKING:
    from tacit.environments.mujoco_picture import Picture

DRAWN_SEEDS = 2**31


class MujocoEnvironment(gymnasium.Env[Float[np.ndarray, " o"], Float[np.ndarray, " a"]]):
    """One world of a MuJoCo task.

    `info` holds the true `cost` of the step and the `x_position` it led to, and in the last step
    of an episode the `reason` for its end: "fell", "time limit" or "diverged".

    `reset(seed=...)` fixes all randomness from there on, later episodes included.

    Arguments:
        rules: of the task.
        render_mode: "rgb_array" lets `render` draw the robot, None switches drawing off.
    """

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 20}  # noqa: RUF012

    def __init__(self, rules: MujocoRules, *, render_mode: str | None = None) -> None:
        check_render_mode(render_mode)
        self.worlds = MujocoWorlds(rules, 1, threads=1)
        self.painter = Painter(self.worlds)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(1 / self.worlds.seconds)}
        self.observation_space, self.action_space = spaces_of(
            self.worlds.model, rules.contact_forces
        )
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
        arrival = self.worlds.advance(np.asarray(action)[None])
        observation, terminated = arrival.observations[0], bool(arrival.terminated[0])
        truncated = bool(arrival.truncated[0])
        info = info_of(arrival, 0)
        if terminated or truncated:
            self.end = info["reason"] = arrival.reason(0)
        return observation, float(arrival.rewards[0]), terminated, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The robot and its limit, or None without a render mode."""
        return None if self.render_mode is None else self.painter.draw(0)

    def close(self) -> None:
        """Free the simulation and the picture."""
        self.painter.close()
        self.worlds.close()


class MujocoVectorEnvironment(
    VectorEnv[Float[np.ndarray, "n o"], Float[np.ndarray, "n a"], np.ndarray]
):
    """Many worlds of a MuJoCo task on threads, with Gymnasium's autoreset mode SAME_STEP.

    Where an episode ends, the observation returned is the first of the next one, `final_obs` and
    `final_info` say how the last one ended, as in Gymnasium. Unlike there, `infos["cost"]` is the
    true cost of the step that was taken in every world, also where an episode ended, so that it
    belongs to `rewards`.

    Arguments:
        rules: of the task.
        num_envs: how many worlds.
        threads: None takes as many as there are cores; the numbers never depend on it.
        render_mode: as for one environment; `render` returns one picture for each world.
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
        self.painter = Painter(self.worlds)
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": [*RENDER_MODES],
            "render_fps": round(1 / self.worlds.seconds),
            "autoreset_mode": AutoresetMode.SAME_STEP,
        }
        self.num_envs = self.worlds.number
        self.single_observation_space = self.worlds.observation_space
        self.single_action_space = self.worlds.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
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

    def step(
        self, actions: Float[np.ndarray, "n a"]
    ) -> tuple[
        Float[np.ndarray, "n o"],
        Float[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        dict[str, Any],
    ]:
        """Take one action in every world; worlds whose episode ends start the next one."""
        arrival = self.worlds.advance(actions)
        observations, ended = self.worlds.go_on(arrival)
        infos = {}
        for world in ended.tolist():
            last = {**info_of(arrival, world), "reason": arrival.reason(world)}
            final = {"final_obs": arrival.observations[world], "final_info": last}
            infos = self._add_info(infos, final, world)
        infos |= self.for_all(cost=arrival.costs[:, 0], x_position=observations[:, 0].copy())
        return observations, arrival.rewards, arrival.terminated, arrival.truncated, infos

    def for_all(self, **values: Float[np.ndarray, " n"]) -> dict[str, np.ndarray]:
        """Infos of all worlds, each with the mask that Gymnasium wants."""
        masks = {f"_{name}": np.ones(self.num_envs, bool) for name in values}
        return values | masks

    def render(self) -> tuple[UInt8[np.ndarray, "height width 3"], ...] | None:
        """One picture for each world, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self.painter.draw(world) for world in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations and the picture."""
        self.painter.close()
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

    def close(self) -> None:
        """Free the picture."""
        if self.picture is not None:
            self.picture.close()
            self.picture = None


def info_of(arrival: Arrival, world: int) -> dict[str, Any]:
    """What `info` says of a step of one world."""
    return {
        "cost": float(arrival.costs[world, 0]),
        "x_position": float(arrival.observations[world, 0]),
    }


def mujoco_task(rules: MujocoRules, options: Mapping[str, Any]) -> SimulatedTask:
    """The task that `rules` describe, made with `options`."""
    model = load_model(rules.model_file)
    observation_space, action_space = spaces_of(model, rules.contact_forces)
    return SimulatedTask(
        name=rules.name,
        options=options,
        observation_space=observation_space,
        action_space=action_space,
        horizon=rules.horizon,
        constraints=("x_position",),
        make_worlds=partial(MujocoWorlds, rules),
        make_environment=lambda render_mode: MujocoEnvironment(rules, render_mode=render_mode),
        make_vector=partial(MujocoVectorEnvironment, rules),
        observation_names=observation_names(model, rules.contact_forces),
    )
