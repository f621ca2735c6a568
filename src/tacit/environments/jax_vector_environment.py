"""Many worlds of a compiled task as one Gymnasium vector environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from tacit.argument_checks import check_seed
from tacit.environments.jax_environment import SEEDS
from tacit.environments.jax_world import CompiledTask, CompiledWorlds, Standing, cost_of_one
from tacit.errors import ArgumentError


class CompiledVectorEnvironment(VectorEnv[Float[np.ndarray, "n o"], np.ndarray, np.ndarray]):
    """All worlds step in one compiled call, with Gymnasium's autoreset mode SAME_STEP.

    Where an episode ends, the observation returned is the first of the next one, `final_obs` and
    `final_info` say how the last one ended. `infos["cost"]` is the true cost of the step that was
    taken in every world, [n], or [n, k] where the task has several costs.

    Arguments:
        task: what to step.
        num_envs: how many worlds.
    """

    def __init__(self, task: CompiledTask, num_envs: int = 1) -> None:
        self.task = task
        self.worlds = CompiledWorlds(task, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs = self.worlds.number
        self.single_observation_space = task.observation_space
        self.single_action_space = task.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
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

    def step(
        self, actions: np.ndarray
    ) -> tuple[
        Float[np.ndarray, "n o"],
        Float[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        Bool[np.ndarray, " n"],
        dict[str, Any],
    ]:
        """Take one action in every world; worlds whose episode ends start the next one."""
        before = self.worlds.here()
        step = self.worlds.step(actions)
        infos: dict[str, Any] = {}
        for world in np.flatnonzero(step.terminated | step.truncated).tolist():
            last = self.last_info(before, world, step.arrived[world], step.costs[world])
            final = {"final_obs": step.arrived[world], "final_info": last}
            infos = self._add_info(infos, final, world)
        infos["cost"] = step.costs[:, 0] if step.costs.shape[1] == 1 else step.costs
        infos["_cost"] = np.ones(self.num_envs, bool)
        return step.observations, step.rewards, step.terminated, step.truncated, infos

    def last_info(
        self,
        before: Standing,
        world: int,
        observation: Float[np.ndarray, " o"],
        costs: Float[np.ndarray, " k"],
    ) -> dict[str, Any]:
        """What `final_info` says of the episode that ended in `world`; `before`: one step ago."""
        return {"cost": cost_of_one(costs)}

    def close_extras(self, **kwargs: Any) -> None:
        """Forget the worlds."""
        self.worlds.close()
