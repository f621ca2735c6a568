"""One cell of the comparison of methods: it learns, plays and writes down, also as a process."""

import dataclasses
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.control.actor import Actor
from tacit.control.presets import preset
from tacit.control.settings import PPO
from tacit.control.simulated_expert import run_settings
from tacit.control.trainer import Trainer, checkpoint_every
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.registry import make
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, StorageError, TacitError, TaskError
from tacit.evaluation.evaluate import execute
from tacit.inference.infer import infer
from tacit.inference.method import Method, find_method
from tacit.runs.files import read_json, write_json
from tacit.runs.resumable_run import run_until_finished
from tacit.runs.settings_file import installed_versions, read_settings

NONE = "none"
METHODS = ("reach", "ca-icrl", "icrl", "vicrl", "bc2l", "gacl", "icl")
NAMES: tuple[str, ...] = (NONE, *METHODS)
SETTINGS = "settings.json"
STOPPED = 130


@dataclass(frozen=True)
class Comparison:
    """The settings that all cells of a comparison share.

    Fields:
        task: name of a simulated task.
        options: of the task.
        experts: file of demonstrations; `{seed}` in it stands for the seed of the cell.
        number: demonstrations drawn from it, others for each seed.
        steps: environment steps of each cell.
        confidence: for the methods that heed it.
        train: settings of PPO in place of the task's, the same for all methods.
    """

    task: str = "BlockedHalfCheetah"
    options: Mapping[str, Any] = field(
        default_factory=lambda: {"variant": "benchmark", "noise_std": 0}
    )
    experts: str | None = None
    number: int = 50
    steps: int = 800_000
    confidence: float = 0.7
    train: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def quick(cls) -> "Comparison":
        """A comparison that only shows that everything runs; its numbers mean nothing."""
        small = {"worlds": 8, "rollout": 64, "minibatch": 128, "epochs": 1}
        return cls("BiasedPendulum", {}, number=5, steps=1024, train=small)

    @classmethod
    def of(cls, folder: Path) -> "Comparison":
        """The comparison whose cells are in the folder."""
        if not (folder / SETTINGS).exists():
            raise StorageError(f"{folder} is no folder of `tacit experiment run methods`")
        return cls(**read_settings(folder / SETTINGS)["settings"])

    def make_task(self) -> SimulatedTask:
        """Make the task, or raise an error if methods cannot be compared on it."""
        task = make(self.task, **self.options)
        if not isinstance(task, SimulatedTask):
            raise TaskError(f"{task.name} is tabular; methods are compared on simulated tasks")
        if not task.constraints:
            raise TaskError(
                f"nobody knows the rule of {task.name} (cost='unknown'), so that methods cannot be "
                "compared by it"
            )
        return task

    def forward(self, method: str, task: SimulatedTask) -> PPO:
        """Settings of PPO for a method."""
        base = preset(task) if method == NONE else acting(method).forward(task)
        return dataclasses.replace(base, **self.train, steps=self.steps)

    def experts_file(self, seed: int) -> Path:
        """The file of the demonstrations for a seed."""
        if self.experts is None:
            raise ArgumentError("there must be demonstrations to learn from (experts)")
        return Path(self.experts.replace("{seed}", str(seed)))

    def demonstrations(self, seed: int) -> Trajectories:
        """The demonstrations that the methods learn from with this seed."""
        file = self.experts_file(seed)
        experts = Trajectories.load(file)
        if len(experts) < self.number:
            raise ArgumentError(
                f"{file} has {len(experts)} demonstrations, fewer than the {self.number} asked for"
            )
        return experts.subset(self.number, seed=seed)


def acting(name: str) -> type[Method]:
    """The class of a method that learns by acting."""
    kind = find_method(name)
    assert issubclass(kind, Method)
    return kind


@dataclass(frozen=True)
class Record:
    """The findings of one cell.

    Fields:
        seed: of everything random, the choice of demonstrations included.
        training: [m, 4] the last 100 episodes of training: reward, feasible reward (0 if violated),
            violated, length.
        execution: [100, 4] the same of fresh episodes without exploration.
        settings: everything that decides its numbers.
    """

    method: str
    seed: int
    steps: int
    minutes: float
    training: list[list[float]]
    execution: list[list[float]]
    settings: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True)
class Cell:
    """One method with one seed, in the folder `out` of a comparison."""

    out: Path
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """The folder of its run."""
        return self.out / "cells" / f"{self.method}-{self.seed}"

    @property
    def file(self) -> Path:
        """Its record, which is there once it is finished."""
        return self.folder.with_name(f"{self.folder.name}.json")

    @property
    def record(self) -> Record:
        """The record that `run_cell` wrote."""
        return Record(**read_json(self.file))


class Learnt(NamedTuple):
    """The outcome of learning; all fields but the policy are as in `Record`."""

    policy: Actor
    training: np.ndarray
    steps: int
    minutes: float
    settings: dict[str, Any]


def run_cell(cell: Cell, comparison: Comparison, *, threads: int | None = None) -> None:
    """Learn (or go on) in the cell's folder, execute, and write the record."""
    task = comparison.make_task()
    learn = learn_nothing if cell.method == NONE else learn_constraint
    learnt = learn(cell, comparison, task, threads)
    record = Record(
        method=cell.method,
        seed=cell.seed,
        steps=learnt.steps,
        minutes=learnt.minutes,
        training=learnt.training.tolist(),
        execution=execute(task, learnt.policy, threads=threads).tolist(),
        settings=learnt.settings,
        versions=installed_versions(),
    )
    write_json(cell.file, asdict(record))


def learn_constraint(
    cell: Cell, comparison: Comparison, task: SimulatedTask, threads: int | None
) -> Learnt:
    """Infer a constraint by one of the methods."""
    result = infer(
        task,
        comparison.demonstrations(cell.seed),
        method=cell.method,
        confidence=comparison.confidence,
        seed=cell.seed,
        forward=comparison.forward(cell.method, task),
        folder=cell.folder,
        threads=threads,
    )
    settings = {key: value for key, value in result.settings.items() if key != "versions"}
    steps, minutes = int(result.metrics["steps"]), float(result.metrics["minutes"])
    assert isinstance(result.policy, Actor)
    return Learnt(result.policy, result.training, steps, minutes, settings)


class Unconstrained(Trainer):
    """PPO that knows of no cost."""

    def advance(self) -> dict[str, float]:
        """One rollout, and one update on its rewards alone."""
        rollout = self.roll_out()
        return self.learn(rollout._replace(costs=rollout.costs[..., :0]))


def learn_nothing(
    cell: Cell, comparison: Comparison, task: SimulatedTask, threads: int | None
) -> Learnt:
    """Train a policy that knows of no cost."""
    forward = comparison.forward(NONE, task)
    with closing(
        Unconstrained(task, forward, seed=cell.seed, constraints=0, threads=threads)
    ) as trainer:
        settings = {**run_settings(trainer), "method": NONE}
        every = checkpoint_every(trainer)
        run_until_finished(trainer, cell.folder, settings, label="unconstrained", every=every)
        now = trainer.now
        training = now.ledger.ended.copy()
        return Learnt(trainer.actor, training, trainer.steps, now.seconds / 60, settings)


def end_with_parent() -> None:
    """Leave as soon as the process that started this one is gone, however it went."""

    def wait() -> None:
        # Not through sys.stdin, whose lock this thread would still hold at the end.
        os.read(sys.stdin.fileno(), 1)
        os._exit(STOPPED)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> int:
    """Work as a process: run one cell of the comparison whose settings are in the folder."""
    out, method, seed, threads = Path(arguments[0]), *arguments[1:]
    end_with_parent()
    try:
        cell = Cell(out, method, int(seed))
        run_cell(cell, Comparison.of(out), threads=int(threads) or None)
    except TacitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
