"""A set of demonstrations on a tabular task, as counts."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from tacit.constraints.votes import visits_of
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask


@dataclass(frozen=True)
class DataSet:
    """What one set of demonstrations says.

    Fields:
        visitors: [X] how many experts visited each query.
        actions: [H, S, A] how often they took each action.
        number: N.
    """

    visitors: Float[np.ndarray, " X"]
    actions: Float[np.ndarray, "H S A"]
    number: int

    @classmethod
    def of(cls, task: TabularTask, demonstrations: Trajectories) -> "DataSet":
        """Counted."""
        visits = visits_of(task, demonstrations)
        states = demonstrations.observations[:, :-1, 0]
        actions = demonstrations.actions.reshape(states.shape)
        shape = (task.horizon, task.number_of_states, task.number_of_actions)
        counts = np.zeros(shape, np.float32)
        steps = np.broadcast_to(np.arange(states.shape[1]), states.shape)
        taken = steps < demonstrations.lengths[:, None]
        np.add.at(counts, (steps[taken], states[taken], actions[taken]), 1)
        return cls((visits > 0).sum(axis=0).astype(np.float32), counts, len(visits))
