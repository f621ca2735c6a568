"""One world of a compiled task as a Gymnasium environment."""

from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from tacit.environments.jax_world import (
    CompiledStep,
    CompiledTask,
    cost_of_one,
    plain_actions,
    world_keys,
)
from tacit.errors import EpisodeError

SEEDS = 2**32


@eqx.filter_jit
def start_one(task: CompiledTask, key: PRNGKeyArray) -> tuple[Any, Array]:
    """`task.reset`, compiled once for each task."""
    return task.reset(key)


@eqx.filter_jit
def step_one(task: CompiledTask, state: Any, action: np.ndarray, key: PRNGKeyArray) -> CompiledStep:
    """`task.step`, compiled once for each task."""
    return task.step(state, jnp.asarray(action), key)


class CompiledEnvironment(gymnasium.Env[np.ndarray, Any]):
    """The same episodes as one world of `CompiledWorlds` with the same seed.

    Tables give the same bits; a task that computes with floats may differ in the last one, as XLA
    does not round alike in every program.

    `info["cost"]` is a float, or an array where the task has several costs.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: CompiledTask) -> None:
        self.task = task
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self.key: PRNGKeyArray | None = None
        self.next_start: PRNGKeyArray | None = None
        self.state: Any = None
        self.running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " o"], dict[str, Any]]:
        """Start an episode; without a seed, the one that the worlds would go on with."""
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
