"""A set of demonstrations on a tabular task, as counts."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.inference.confidence.votes import visits_of


@dataclass(frozen=True)
class DataSet:
    """What one set of demonstrations says.

    Fields:
        visitors: [X] how many experts visited each query.
        number: N.
    """

    visitors: Float[np.ndarray, " X"]
    number: int

    @classmethod
    def of(cls, task: TabularTask, demonstrations: Trajectories) -> "DataSet":
        """Counted."""
        visits = visits_of(task, demonstrations)
        return cls((visits > 0).sum(axis=0).astype(np.float32), len(visits))
