"""What inference gives back: a constraint, a policy that keeps it, and how they came about."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Float

from tacit.control.actor import Actor
from tacit.control.table_policy import TablePolicy, load_policy
from tacit.environments.registry import known, make
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import StorageError, TacitError, TaskError
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.runs.files import read_arrays, write_arrays
from tacit.runs.run_folder import SETTINGS
from tacit.runs.settings_file import installed_versions

CONSTRAINT_FILE, POLICY_FILE, SUMMARY_FILE = (
    "constraint.safetensors",
    "policy.safetensors",
    "result.safetensors",
)
KIND = "tacit result 2"
KINDS_BEFORE = ("tacit result", "tacit simulated result")
TABLES = ("transitions", "rewards", "costs", "initial", "positions")
FACTS = ("horizon", "temperature", "budget", "rule_on", "actions", "name")


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `tacit.infer`.

    Fields:
        constraint: the learned rule, to be asked at any confidence.
        policy: the best policy under the constraint at its confidence. Where it was learned by
            acting: the last policy, or the imitation that it began as where that is better.
        metrics: the last numbers of the learning; true reward and violation among them where there
            was training, which no method has learned from.
        settings: all that is needed to do it again.
        task: what it was learned on; None where it cannot be built from its name.
        training: [m, 4] the last 100 episodes of the training: reward, feasible reward, whether
            violated, length; [0, 4] where nothing was trained.
    """

    constraint: Constraint
    policy: Actor | TablePolicy
    metrics: dict[str, float]
    settings: dict[str, Any]
    task: TabularTask | SimulatedTask | None
    training: Float[np.ndarray, "m 4"] = field(default_factory=lambda: np.zeros((0, 4)))

    @property
    def method(self) -> str:
        """The name of the method that ran."""
        return str(self.settings["method"])

    def save(self, folder: str | Path) -> Path:
        """Write constraint, policy and numbers to `folder`, a file each."""
        folder = Path(folder)
        self.constraint.save(folder / CONSTRAINT_FILE)
        self.policy.save(folder / POLICY_FILE)
        arrays: dict[str, np.ndarray] = {"training": np.asarray(self.training)}
        header: dict[str, Any] = {
            "kind": KIND,
            "metrics": self.metrics,
            "settings": self.settings,
            "tacit": installed_versions()["tacit"],
        }
        if isinstance(self.task, SimulatedTask):
            header["made_by_name"] = self.task.made_by_name
        if isinstance(self.task, TabularTask):
            tables = {name: getattr(self.task, name) for name in TABLES}
            arrays |= {f"task.{name}": table for name, table in tables.items() if table is not None}
            header["task"] = {name: getattr(self.task, name) for name in FACTS}
        return write_arrays(folder / SUMMARY_FILE, arrays, header)


def load(folder: str | Path) -> Result:
    """Read the result that `Result.save` wrote to a folder; nothing in the files can run code.

    >>> import tempfile
    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> result = tacit.infer(task, tacit.collect(tacit.train_expert(task), 20, seed=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = result.save(folder)
    ...     load(folder).method
    'counts'

    A task of ours, or one made known by `tacit.register`, is built again from its name; the task of
    another result is None, and must be given to whoever needs it.
    """
    folder = Path(folder)
    path = folder / SUMMARY_FILE
    if not path.exists() and (folder / SETTINGS).exists():
        raise StorageError(
            f"{path}: there is no such file: the run is not finished; give the command that began "
            "it again"
        )
    arrays, header = read_arrays(path)
    check_kind(path, header)
    try:
        settings, metrics = dict(header["settings"]), dict(header["metrics"])
        training = arrays["training"].reshape(-1, 4)
        task = stored_task(arrays, header)
        for name in ("method", "confidence"):
            settings[name]
    except (KeyError, TypeError, ValueError, TaskError) as error:
        raise StorageError(f"{path}: the result is incomplete or damaged: {error}") from None
    constraint = Constraint.load(folder / CONSTRAINT_FILE)
    policy = load_policy(folder / POLICY_FILE)
    if constraint.facts.get("method", settings["method"]) != settings["method"]:
        raise StorageError(
            f"{folder}: {CONSTRAINT_FILE} was learned by {constraint.facts['method']!r}, but "
            f"{SUMMARY_FILE} is of {settings['method']!r}: they are of different results"
        )
    check_sizes(folder, constraint, policy, task)
    return Result(constraint, policy, metrics, settings, task, training)


def check_kind(path: Path, header: dict[str, Any]) -> None:
    """Raise an error unless the file is a result of this version."""
    kind = header.get("kind")
    if kind in KINDS_BEFORE:
        settings = header.get("settings")
        used = settings.get("versions") if isinstance(settings, dict) else None
        writer = used.get("tacit") if isinstance(used, dict) else None
        rule = path.with_name(CONSTRAINT_FILE)
        hint = f" (tacit.Constraint.load still reads {rule})" if rule.exists() else ""
        raise StorageError(
            f"{path}: was written by tacit {writer or 'before 0.2'} in a form that is no longer "
            f"read; infer again{hint}"
        )
    if kind != KIND:
        raise StorageError(f"{path}: not a result of tacit.infer")


def stored_task(
    arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> TabularTask | SimulatedTask | None:
    """The table in the file, or the task that its name and options stand for."""
    if "task" in header:
        tables = {name: arrays[f"task.{name}"] for name in TABLES if f"task.{name}" in arrays}
        return TabularTask(**tables, **header["task"])
    name, options = str(header["settings"]["task"]), dict(header["settings"]["options"])
    if not (header.get("made_by_name") and known(name)):
        return None
    try:
        return make(name, **options)
    except TacitError:
        # It is known no more with these options, or no more by this name.
        return None


def check_sizes(
    folder: Path,
    constraint: Constraint,
    policy: Actor | TablePolicy,
    task: TabularTask | SimulatedTask | None,
) -> None:
    """Raise an error if the files of the folder do not belong together."""
    if not isinstance(policy, TablePolicy) or not isinstance(task, TabularTask):
        return
    shape = (task.horizon, task.number_of_states, task.number_of_actions)
    if policy.table.shape != shape:
        raise StorageError(
            f"{folder / POLICY_FILE}: the policy has the shape {list(policy.table.shape)}, not "
            f"{list(shape)}"
        )
    wanted = Spaces(Discrete(task.number_of_states), Discrete(task.number_of_actions))
    if constraint.spaces != wanted:
        states, actions = (getattr(space, "n", "other") for space in constraint.spaces)
        raise StorageError(
            f"{folder / CONSTRAINT_FILE}: the constraint is about {states} states and {actions} "
            f"actions, the task has {shape[1]} and {shape[2]}"
        )
