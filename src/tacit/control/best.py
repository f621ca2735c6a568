"""The best policy of a training so far."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit.control.actor import Actor


class Best(NamedTuple):
    """The actor with the highest score over 100 episodes so far; see `EpisodeLedger.score`."""

    actor: Actor
    score: float
    steps: int

    def arrays(self) -> dict[str, Any]:
        """Everything, as a tree of arrays and numbers."""
        return {"actor": self.actor.arrays(), "score": self.score, "steps": self.steps}

    @classmethod
    def from_arrays(cls, tree: Mapping[str, Any]) -> "Best | None":
        """The one that `arrays` came from; None where its score is not finite."""
        if not np.isfinite(tree["score"]):
            return None
        actor = Actor.from_arrays({name: np.asarray(part) for name, part in tree["actor"].items()})
        return cls(actor, float(tree["score"]), int(tree["steps"]))
