"""Does a confidence level mean what it says? The lab's experiment, on exact tasks.

Every combination of objective, votes and reading, on the chain and two grids at two reward scales,
for several numbers of demonstrations and confidence levels, over many data sets.
"""

import csv
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.control.expert import collect, train_expert
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.errors import StorageError
from tacit.evaluation.coverage import reachable_queries, unconstrained_visits
from tacit.experiments.coverage_cell import Cell, measure
from tacit.inference.confidence.belief import COUNTED_VOTES, LEARNED_VOTES
from tacit.inference.counts.counts import Counts, TableMethod
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.counts.posterior import RuleFamily, limit_rules, plan_for_rules, subset_rules
from tacit.reports.coverage_panels import coverage_panels
from tacit.runs.atomic_write import atomic_write
from tacit.runs.json_file import read_json, write_json
from tacit.runs.settings_file import installed_versions

COLUMNS: tuple[str, ...] = (
    "task",
    "objective",
    "votes",
    "reading",
    "experts",
    "confidence",
    "datasets",
    "violation",
    "violation_low",
    "violation_high",
    "reward",
    "joint_coverage",
    "pointwise_coverage",
    "distance_to_oracle",
)
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CoverageSettings:
    """What the coverage experiment runs over.

    Fields:
        confidences: the levels lambda.
        experts: numbers of demonstrations N.
        datasets: independent data sets per cell.
        candidates: cells of a grid that the exact posterior takes for possibly forbidden.
        seed: of all data sets.
    """

    confidences: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    experts: tuple[int, ...] = (5, 20, 100)
    datasets: int = 50
    candidates: int = 12
    seed: int = 0

    @classmethod
    def quick(cls) -> "CoverageSettings":
        """Ten data sets: minutes instead of a quarter of an hour."""
        return cls(datasets=10, candidates=10)


def lab_tasks() -> list[TabularTask]:
    """The chain and two grids, each at two reward scales."""
    return [
        *(chain(reward_scale=scale) for scale in (1.0, 3.0)),
        *(
            grid_world(layout, reward_scale=scale)
            for layout in ("open", "gate")
            for scale in (1.0, 3.0)
        ),
    ]


def methods() -> list[TableMethod]:
    """Both methods of tables, with every combination of objective, votes and reading."""
    return [
        *(
            Counts(votes=votes, reading=reading)
            for votes in COUNTED_VOTES
            for reading in ("graded", "hard", "soft")
        ),
        *(
            Likelihood(objective=objective, votes=votes, reading=reading)
            for objective in ("evidence", "quantile")
            for votes in LEARNED_VOTES
            for reading in ("graded", "hard", "soft")
        ),
    ]


def possible_rules(task: TabularTask, candidates: int) -> RuleFamily:
    """What the exact posterior takes for possible: limits on a chain, subsets of cells in a grid.

    Candidates are the forbidden cells and then allowed ones, the most tempting first.
    """
    if task.positions is not None and (task.positions[:, 0] == task.positions[0, 0]).all():
        return limit_rules(task)
    visits = unconstrained_visits(task)
    order = np.lexsort((-visits, task.allowed))
    order = order[(task.initial[order] == 0) & ((task.rewards[order] != 0).any(axis=1))]
    return subset_rules(task, order[:candidates])


def run_coverage(
    out: Path,
    settings: CoverageSettings,
    *,
    tasks: list[TabularTask] | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Run the experiment into the folder `out`, or go on where an earlier run was stopped.

    Writes settings.json, one file per cell (task and number of demonstrations) as soon as it is
    known, and at the end coverage.csv and coverage.svg.
    """
    tasks = tasks or lab_tasks()
    claim_folder(out, settings, tasks)
    rows: list[dict[str, Any]] = []
    total = len(tasks) * len(settings.experts)
    for place, task in enumerate(tasks):
        setting = None
        for turn, number in enumerate(settings.experts):
            file = out / "cells" / f"{identity(task).replace(' ', '-')}-{number}.json"
            if progress is not None:
                progress(place * len(settings.experts) + turn, total, f"{task.name}, N = {number}")
            if not file.exists():
                setting = setting or prepare(task, settings)
                write_json(file, run_cell(setting, number, settings))
            rows += read_json(file)
    write_csv(out / "coverage.csv", rows)
    figure = coverage_panels(rows, objective="counts", votes="visits", reading="graded")
    with atomic_write(out / "coverage.svg") as part:
        figure.savefig(part, format="svg", metadata={"Date": None})
    if progress is not None:
        progress(total, total, "done")
    return rows


def prepare(task: TabularTask, settings: CoverageSettings) -> Cell:
    """What the cells of one task share."""
    return Cell(
        task=task,
        expert=train_expert(task),
        reachable=reachable_queries(task),
        rule_experts=plan_for_rules(possible_rules(task, settings.candidates)),
        confidences=np.array(settings.confidences),
    )


def run_cell(cell: Cell, number: int, settings: CoverageSettings) -> list[dict[str, Any]]:
    """All rows for one task and one number of demonstrations."""
    # The task's own checksum, so that its data do not depend on which others are run.
    stream = np.random.SeedSequence(
        [settings.seed, zlib.crc32(identity(cell.task).encode()), number]
    ).generate_state(settings.datasets, np.uint64)
    data_sets = [collect(cell.expert, number, seed=int(seed)) for seed in stream]
    return measure(cell, data_sets, methods())


def claim_folder(out: Path, settings: CoverageSettings, tasks: list[TabularTask]) -> None:
    """Make the folder, or make sure that it holds this very experiment."""
    wanted = {
        "experiment": "coverage",
        "settings": json.loads(json.dumps(asdict(settings))),
        "tasks": [identity(task) for task in tasks],
        "versions": installed_versions(),
    }
    file = out / "settings.json"
    if not file.exists():
        write_json(file, wanted)
        return
    found = read_json(file)
    different = [
        key for key in wanted if not isinstance(found, dict) or found.get(key) != wanted[key]
    ]
    if different:
        raise StorageError(
            f"{file} is of another run (different {', '.join(different)}): choose another folder"
        )


def identity(task: TabularTask) -> str:
    """The task's name and a checksum of its numbers: names alone may repeat."""
    arrays = (task.transitions, task.rewards, task.costs, task.initial)
    numbers = f"{task.horizon} {task.temperature!r} {task.budget!r} {task.rule_on}".encode()
    return f"{task.name} {zlib.crc32(b''.join(map(np.ndarray.tobytes, arrays)) + numbers):08x}"


def write_csv(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write the table, whole or not at all."""
    with atomic_write(file) as part, part.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {key: f"{row[key]:.6g}" if isinstance(row[key], float) else row[key] for key in row}
            )
