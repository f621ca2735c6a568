"""What inference gives back: a constraint, a policy that keeps it, and how they came about."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.environments.tabular import TabularTask
from tacit.errors import StorageError, TaskError
from tacit.inference.counts.model import TabularConstraint
from tacit.inference.simulated_result import KIND as SIMULATED
from tacit.inference.simulated_result import load_simulated
from tacit.runs.array_file import read_arrays, write_arrays
from tacit.runs.run_folder import SETTINGS

FILE = "result.safetensors"
TASK_ARRAYS = ("transitions", "rewards", "costs", "initial", "positions")


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `tacit.infer`.

    Fields:
        constraint: the learned rule, to be asked at any confidence.
        policy: [H, S, A] the optimal policy under the constraint at its confidence.
        metrics: numbers from the learning.
        settings: method, seed, versions, demonstrations: all that is needed to do it again.
        task: what it was learned on.
    """

    constraint: TabularConstraint
    policy: np.ndarray
    metrics: dict[str, float]
    settings: dict[str, Any]
    task: TabularTask

    def save(self, folder: str | Path) -> Path:
        """Write `folder`/result.safetensors: arrays, and all else as JSON in its header."""
        task, constraint = self.task, self.constraint
        arrays = {"policy": self.policy, "alpha": constraint.alpha, "beta": constraint.beta}
        for field in TASK_ARRAYS:
            if getattr(task, field) is not None:
                arrays[f"task.{field}"] = getattr(task, field)
        header = {
            "kind": "tacit result",
            "metrics": self.metrics,
            "settings": self.settings,
            "constraint": {
                field: getattr(constraint, field)
                for field in (
                    "confidence",
                    "reading",
                    "budget",
                    "number_of_actions",
                    "rule_on",
                    "any_confidence",
                )
            },
            "task": {
                field: getattr(task, field)
                for field in ("horizon", "temperature", "budget", "rule_on", "actions", "name")
            },
        }
        return write_arrays(Path(folder) / FILE, arrays, header)


def load(folder: str | Path) -> Any:
    """Read the result that `save` wrote to a folder; nothing in the files can run code.

    Gives a `Result`, or a `SimulatedResult` where the task was simulated.
    """
    path = Path(folder) / FILE
    if not path.exists() and (Path(folder) / SETTINGS).exists():
        raise StorageError(
            f"{path}: there is no such file: the run is not finished; give the command that began "
            "it again"
        )
    arrays, header = read_arrays(path)
    if header.get("kind") == SIMULATED:
        return load_simulated(Path(folder))
    if header.get("kind") != "tacit result":
        raise StorageError(f"{path}: not a result of tacit.infer")
    try:
        task_arrays = {
            field: arrays[f"task.{field}"] for field in TASK_ARRAYS if f"task.{field}" in arrays
        }
        result = Result(
            constraint=TabularConstraint(
                alpha=arrays["alpha"], beta=arrays["beta"], **header["constraint"]
            ),
            policy=arrays["policy"],
            metrics=header["metrics"],
            settings=header["settings"],
            task=TabularTask(**task_arrays, **header["task"]),
        )
    except (KeyError, TypeError, TaskError) as error:
        raise StorageError(f"{path}: the result is incomplete or damaged: {error}") from None
    task = result.task
    for field, array, shape in (
        ("policy", result.policy, (task.horizon, task.number_of_states, task.number_of_actions)),
        ("alpha", result.constraint.alpha, (task.number_of_queries,)),
        ("beta", result.constraint.beta, (task.number_of_queries,)),
    ):
        if array.shape != shape:
            raise StorageError(
                f"{path}: {field} has the shape {list(array.shape)}, not {list(shape)}"
            )
    return result
