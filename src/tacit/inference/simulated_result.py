"""What inference on a simulated task gives back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from tacit.control.actor import Actor
from tacit.environments.registry import known, make
from tacit.environments.task import SimulatedTask
from tacit.errors import StorageError, TacitError
from tacit.inference.constraint import LearnedConstraint
from tacit.runs.array_file import read_arrays, write_arrays

CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE = (
    "constraint.safetensors",
    "policy.safetensors",
    "result.safetensors",
)
KIND = "tacit simulated result"


@dataclass(frozen=True, eq=False)
class SimulatedResult:
    """The outcome of `tacit.infer` on a task that can only be simulated.

    Fields:
        constraint: the learned rule.
        policy: the last policy of the training, without exploration.
        metrics: the last numbers of the training; true reward and violation among them, which no
            method has learned from.
        training: [m, 4] the last 100 episodes of the training: reward, feasible reward, whether
            violated, length.
        settings: all that is needed to do it again.
        task: what it was learned on; None where it cannot be built from its name.
    """

    constraint: LearnedConstraint
    policy: Actor
    metrics: dict[str, float]
    training: Float[np.ndarray, "m 4"]
    settings: dict[str, Any]
    task: SimulatedTask | None

    def save(self, folder: str | Path) -> Path:
        """Write constraint, policy and numbers to `folder`, a file each."""
        folder = Path(folder)
        self.constraint.save(folder / CONSTRAINT_FILE)
        self.policy.save(folder / POLICY_FILE)
        header = {"kind": KIND, "metrics": self.metrics, "settings": self.settings}
        return write_arrays(folder / SUMMARY_FILE, {"training": self.training}, header)


def load_simulated(folder: Path) -> SimulatedResult:
    """Read what `SimulatedResult.save` wrote."""
    path = folder / SUMMARY_FILE
    arrays, header = read_arrays(path)
    try:
        settings, metrics, training = header["settings"], header["metrics"], arrays["training"]
        name, options = str(settings["task"]), dict(settings["options"])
        training = training.reshape(-1, 4)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: the result is incomplete or damaged: {error}") from None
    return SimulatedResult(
        constraint=LearnedConstraint.load(folder / CONSTRAINT_FILE),
        policy=Actor.load(folder / POLICY_FILE),
        metrics=metrics,
        training=training,
        settings=settings,
        task=rebuilt(name, options),
    )


def rebuilt(name: str, options: dict[str, Any]) -> SimulatedTask | None:
    """The task of this name, where it is one of ours and still has these options."""
    if not known(name):
        return None
    try:
        task = make(name, **options)
    except TacitError:
        return None
    return task if isinstance(task, SimulatedTask) else None
