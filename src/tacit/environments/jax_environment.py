"""Worlds written in JAX as Gymnasium environments: one world, or many."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from tacit.argument_checks import check_seed
from tacit.environments.jax_world import (
    JaxStep,
    JaxWorld,
    JaxWorlds,
    cost_of_one,
    plain_actions,
    world_keys,
)
from tacit.environments.worlds import Outcome, Step, WorldsEnvironment, check_render_mode
from tacit.errors import ArgumentError, EpisodeError

SEEDS = 2**32


@eqx.filter_jit
def start_one(task: JaxWorld, key: PRNGKeyArray) -> tuple[Any, Array]:
    """`task.reset`, compiled once for each task."""
    return task.reset(key)


@eqx.filter_jit
def step_one(task: JaxWorld, state: Any, action: np.ndarray, key: PRNGKeyArray) -> JaxStep:
    """`task.step`, compiled once for each task."""
    return task.step(state, jnp.asarray(action), key)


class JaxEnvironment(gymnasium.Env[np.ndarray, Any]):
    """The same episodes as one world of `JaxWorlds` with the same seed.

    Tables give the same bits; a task that computes with floats may differ in the last one, as XLA
    does not round alike in every program.

    `info["cost"]` is a float, or an array where the task has several costs. Environments with
    pictures say so in `metadata` and define `draw`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: JaxWorld, *, render_mode: str | None = None) -> None:
        check_render_mode(render_mode)
        if render_mode is not None and not self.metadata["render_modes"]:
            raise ArgumentError(f"{task.name} draws no pictures: render_mode must be None")
        self.task = task
        self.render_mode = render_mode
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self.key: PRNGKeyArray | None = None
        self.next_start: PRNGKeyArray | None = None
        self.state: Any = None
        self.running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " o"], dict[str, Any]]:
        """Start an episode; without a seed, the one with which `JaxWorlds` would go on."""
        super().reset(seed=seed, options=options)
        if seed is not None or self.key is None:
            seed = int(self.np_random.integers(SEEDS)) if seed is None else seed
            self.key, self.next_start = jax.random.split(world_keys(seed, 1)[0])
        elif self.next_start is None:  # the running episode is given up
            self.key, self.next_start = jax.random.split(self.key)
        assert self.next_start is not None
        self.state, observation = start_one(self.task, self.next_start)
        self.next_start, self.running = None, True
        return np.array(observation), {}

    def step(
        self, action: Any
    ) -> tuple[Float[np.ndarray, " o"], float, bool, bool, dict[str, Any]]:
        """Take `action`, clipped to the box if there is one."""
        if not self.running or self.key is None:
            raise EpisodeError(f"no episode of {self.task.name} is running: call reset() first")
        actions = plain_actions(self.task, np.asarray(action)[None], 1)
        self.key, key = jax.random.split(self.key)
        step_key, reset_key = jax.random.split(key)
        stepped = step_one(self.task, self.state, actions[0], step_key)
        ended = bool(stepped.terminated), bool(stepped.truncated)
        self.state, self.running = stepped.state, not any(ended)
        self.next_start = None if self.running else reset_key
        observation = np.array(stepped.observation)
        info = self.info_of(observation, np.array(stepped.costs))
        return observation, float(stepped.reward), *ended, info

    def info_of(
        self, observation: Float[np.ndarray, " o"], costs: Float[np.ndarray, " k"]
    ) -> dict[str, Any]:
        """What `info` says after a step."""
        return {"cost": cost_of_one(costs)}

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """A picture of where the world stands, or None without a render mode."""
        if self.render_mode is None:
            return None
        if self.state is None:
            raise EpisodeError("there is nothing to draw: call reset() before render()")
        return self.draw()

    def draw(self) -> UInt8[np.ndarray, "height width 3"]:
        """The picture of `self.state`."""
        raise NotImplementedError


class JaxVectorEnvironment(WorldsEnvironment):
    """All worlds step in one compiled call; see `WorldsEnvironment`."""

    def __init__(self, task: JaxWorld, num_envs: int = 1) -> None:
        self.task = task
        self.worlds = JaxWorlds(task, num_envs)
        super().__init__(self.worlds)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, "n o"], dict[str, Any]]:
        """Start an episode in every world; world i is seeded with `seed + i`."""
        if options:
            raise ArgumentError(f"many worlds take no options at reset, not {sorted(options)}")
        if isinstance(seed, Sequence):
            first = check_seed(seed[0] if seed else None)
            if list(seed) != list(range(first, first + self.num_envs)):
                raise ArgumentError("seeds must follow one another, one for each world")
            seed = first
        super().reset(seed=seed)
        seed = int(self.np_random.integers(SEEDS)) if seed is None else seed
        return self.worlds.reset(seed), {}

    def step(self, actions: np.ndarray) -> Outcome:
        """Take one action in every world; worlds whose episode ends start the next one."""
        return self.outcome(self.worlds.step(actions))

    def last_info(self, step: Step, world: int) -> dict[str, Any]:
        """The cost of the last step."""
        return {"cost": cost_of_one(step.costs[world])}

    def close_extras(self, **kwargs: Any) -> None:
        """Forget the worlds."""
        self.worlds.close()
