"""Tabular tasks for the methods that learn by sampling: the task and its demonstrations."""

import numpy as np

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import simulator_of
from tacit.environments.task import SimulatedTask
from tacit.inference.confidence.votes import visits_of


def as_simulated(
    task: TabularTask, demonstrations: Trajectories
) -> tuple[SimulatedTask, Trajectories]:
    """The task as a simulator, and demonstrations with its observations: state and time.

    See `tacit.environments.tabular_world.TabularWorld` for the observations.
    """
    visits_of(task, demonstrations)
    states = demonstrations.observations[:, :, 0]
    rows = states.shape[1]
    observations = np.zeros((*states.shape, task.number_of_states + 1), np.float32)
    np.put_along_axis(observations, states[:, :, None], 1.0, axis=2)
    observations[:, :, -1] = np.arange(rows) / task.horizon
    beyond = np.arange(rows) > demonstrations.lengths[:, None]
    observations[beyond] = 0
    return simulator_of(task), Trajectories(
        observations=observations,
        actions=demonstrations.actions,
        rewards=demonstrations.rewards,
        lengths=demonstrations.lengths,
        costs=demonstrations.costs,
        terminated=demonstrations.terminated,
        provenance=demonstrations.provenance,
    )
