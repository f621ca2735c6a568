"""The physics limit: MuJoCo's own batch with nothing around it."""

# MuJoCo's names are made in C++ and come without stubs.
# pyright: reportAttributeAccessIssue=false

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError
from timing import timed

from tacit.environments.mujoco_worlds import SILENCE, MujocoWorlds, usable_cores
from tacit.environments.registry import Simulated
from tacit.environments.worlds import Worlds

NAMES: tuple[Simulated, ...] = (
    "BlockedHalfCheetah",
    "BlockedAnt",
    "BlockedWalker",
    "BlockedSwimmer",
    "BiasedPendulum",
)


def random_actions(worlds: Worlds, steps: int) -> np.ndarray:
    """Actions for `steps` steps of all worlds, uniform over the box."""
    space = worlds.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    shape = (steps, worlds.number, *space.shape)
    return np.random.default_rng(0).uniform(space.low, space.high, shape)


class BarePhysics:
    """As many simulations of the same model as some worlds have, on all cores.

    Every block starts from where the worlds stand, so that both simulate the same contacts: a
    walker that has fallen costs more than one that is set upright again.
    """

    def __init__(self, worlds: Worlds, actions: np.ndarray) -> None:
        assert isinstance(worlds, MujocoWorlds)
        self.worlds, self.actions = worlds, actions
        self.frame_skip = worlds.rules.frame_skip
        self.batch = Batch(worlds.model, worlds.number, min(usable_cores(), worlds.number))
        self.controls = self.batch.bind("ctrl")
        self.stage = mujoco.mjtStage.mjSTAGE_NONE.value

    @property
    def steps(self) -> int:
        """Control steps in one block, over all worlds."""
        return self.actions.shape[0] * self.actions.shape[1]

    def seconds(self) -> float:
        """Time of one block; copying the states is not part of it."""
        self.batch.state[:] = self.worlds.batch.state
        with SILENCE:
            return timed(self.simulate)

    def simulate(self) -> None:
        """Take all actions."""
        for action in self.actions:
            self.controls[:] = action
            try:
                self.batch.step(nstep=self.frame_skip, stage=self.stage)
            except SimulationError:
                continue
