"""Did a method learn a rule, or an imitation? Judges the finished runs of a comparison of methods.

It measures recovery (`tacit.evaluation.recovery`) and the calibration error (ECE, by the paper's
recipe), and draws feasibility against one quantity in the postures of those who keep the rule and
of those who break it. A rule about the quantity gives one curve, whoever's postures they are; an
imitation calls the postures of those who keep the rule feasible at every value, and the others at
none. The episodes are played by PPO without any constraint and by the first method's policy.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tacit.control.actor import Actor
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, TaskError
from tacit.evaluation.calibration import calibration_error
from tacit.evaluation.recovery import SeenSteps, recovered, seen_steps
from tacit.experiments.methods import Progress
from tacit.experiments.methods_cell import METHODS, NONE, Cell, Comparison, learn_nothing
from tacit.experiments.methods_table import REFERENCE, SEEDS_FOR_TESTS, student_interval, t_test
from tacit.inference.constraint import Constraint
from tacit.inference.method import find_method
from tacit.inference.result import Result, load
from tacit.reports.feasibility import posture_panels
from tacit.reports.style import write_png
from tacit.reports.table import MISSING, markdown_table, p_value
from tacit.runs.atomic_write import atomic_write
from tacit.runs.files import read_json, write_json

COLUMNS = ["method", "seed", "recovery", "of three sets of episodes", "calibration error"]
SUMMED = ["method", "seeds", "recovery", "p recovery", "calibration error", "p calibration error"]
EPISODE_SEEDS = (1001, 2001, 3001)
VALUES = 201
POSTURES = 200
NOT_ASKED = "not asked for"


@dataclass(frozen=True)
class Row:
    """The judgement of one run.

    Its recovery is the area under the ROC curve for each set of episodes. Where there is no
    calibration error, it has a reason.
    """

    method: str
    seed: int
    recovery: list[float]
    calibration: float | None
    reason: str = ""


def run_rule(
    out: Path | str,
    runs: Path | str,
    *,
    quantity: int = 0,
    methods: Sequence[str] = METHODS,
    calibration: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Judge all finished runs in `runs` into `out`, or go on where it was stopped.

    Writes rule.md, rule.json and postures.png. The comparison must have runs of PPO without any
    constraint (`none`), which breaks the rule. The postures are moved along the number at place
    `quantity` of the observation. The calibration error takes half a minute or more for each run on
    a robot.
    """
    out, runs, tell = Path(out), Path(runs), progress or (lambda *_: None)
    comparison = Comparison.of(runs)
    task = comparison.make_task()
    loaded = {cell: load(cell.folder) for cell in finished(runs, methods)}
    free = unconstrained_policy(runs, comparison, task)
    behaviours = [free, next(iter(loaded.values())).policy]
    tell(0, len(loaded), "episodes")
    sets = [seen_steps(task, behaviours, seed=seed, threads=threads) for seed in EPISODE_SEEDS]
    rows = []
    for place, (cell, result) in enumerate(loaded.items()):
        tell(place, len(loaded), str(cell))
        row = kept_row(out, cell)
        if row is None:
            areas = [recovered(result.constraint, steps) for steps in sets]
            row = keep_row(out, cell, Row(cell.method, cell.seed, areas, None, NOT_ASKED))
        if calibration and row.reason == NOT_ASKED:
            error, reason = calibration_of(result, task, free, threads)
            row = keep_row(out, cell, replace(row, calibration=error, reason=reason))
        rows.append(row)
    write_all(out, runs, rows)
    draw(out, loaded, sets[0], quantity)
    return rows


def finished(runs: Path, methods: Sequence[str]) -> list[Cell]:
    """The finished runs of these methods, in the order of `METHODS` and of the seeds."""
    for method in methods:
        find_method(method)
    cells = [cell for method in METHODS if method in methods for cell in cells_of(runs, method)]
    if not cells:
        raise ArgumentError(f"none of {', '.join(methods)} has finished in {runs}")
    return cells


def cells_of(runs: Path, method: str) -> list[Cell]:
    """The finished runs of one method, in the order of the seeds."""
    files = (runs / "cells").glob(f"{method}-*.json")
    seeds = sorted(int(file.stem.rpartition("-")[2]) for file in files)
    return [Cell(runs, method, seed) for seed in seeds]


def row_file(out: Path, cell: Cell) -> Path:
    """The file in which the row of a run is kept."""
    return out / "rows" / cell.file.name


def checksum(cell: Cell) -> str:
    """The checksum of a run's record: another run of the same name is judged anew."""
    return hashlib.sha256(cell.file.read_bytes()).hexdigest()


def keep_row(out: Path, cell: Cell, row: Row) -> Row:
    """Write a row down, so that it is not lost when the rest is interrupted; the row itself."""
    write_json(row_file(out, cell), {**asdict(row), "sha256": checksum(cell)})
    return row


def kept_row(out: Path, cell: Cell) -> Row | None:
    """The row of this run from an earlier attempt, if there is one."""
    file = row_file(out, cell)
    if not file.exists():
        return None
    content = read_json(file)
    return Row(**content) if content.pop("sha256") == checksum(cell) else None


def unconstrained_policy(runs: Path, comparison: Comparison, task: SimulatedTask) -> Actor:
    """The policy that knows of no cost, from the first finished run."""
    cells = cells_of(runs, NONE)
    if not cells:
        raise ArgumentError(
            f"{runs} has no run without a constraint, which would break the rule: add one with "
            "`--methods none`"
        )
    return learn_nothing(cells[0], comparison, task, None).policy


def calibration_of(
    result: Result, task: SimulatedTask, free: Actor, threads: int | None
) -> tuple[float | None, str]:
    """The calibration error, or why there is none."""
    try:
        return calibration_error(result, task, behaviours=[free], threads=threads), ""
    except TaskError as error:
        return None, str(error)


def rule_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for people."""
    return COLUMNS, [
        [
            row.method,
            str(row.seed),
            f"{np.mean(row.recovery):.3f}",
            " ".join(f"{area:.3f}" for area in row.recovery),
            "none" if row.calibration is None else f"{row.calibration:.3f}",
        ]
        for row in rows
    ]


def summed_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: one row per method, with 95 % t-intervals and t-tests over seeds."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    lines = []
    for method, own in by_method.items():
        line = [method, str(len(own))]
        for name in ("recovery", "calibration"):
            values, reference = per_run(own, name), per_run(by_method.get(REFERENCE, []), name)
            p = None if method == REFERENCE else t_test(values, reference)
            line += [spread(values), p_value(p)]
        lines.append(line)
    return SUMMED, lines


def per_run(rows: Sequence[Row], name: str) -> np.ndarray:
    """The (mean) recovery or calibration of each run that has one."""
    found = [getattr(row, name) for row in rows]
    return np.array([np.mean(value) for value in found if value is not None])


def spread(values: np.ndarray) -> str:
    """The mean, with an interval where there are seeds enough for one."""
    if not len(values):
        return MISSING
    if len(values) < SEEDS_FOR_TESTS:
        return f"{values.mean():.3f}"
    estimate = student_interval(values, low=0.0, high=1.0)
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def write_all(out: Path, runs: Path, rows: Sequence[Row]) -> None:
    """Write the numbers for programs, and a table for people."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "rule.json", {"runs": str(runs), "rows": [asdict(row) for row in rows]})
    with atomic_write(out / "rule.md") as part:
        tables = markdown_table(*summed_table(rows)), markdown_table(*rule_table(rows))
        part.write_text("\n\n## Each seed\n\n".join(tables) + "\n", encoding="utf-8")


def draw(out: Path, results: dict[Cell, Result], steps: SeenSteps, quantity: int) -> None:
    """Write the figure of postures of each method's first run, over the values that were seen."""
    constraints: dict[str, Constraint] = {}
    for cell, result in results.items():
        constraints.setdefault(cell.method, result.constraint)
    seen = steps.observations[:, quantity]
    low, high = np.quantile(seen, (0.01, 0.99))
    values = np.linspace(low, high, VALUES)
    panels = {
        method.upper(): postures(constraint, steps, quantity, values)
        for method, constraint in constraints.items()
    }
    names = next(iter(constraints.values())).names
    name = names[quantity] if names else f"observation {quantity}"
    figure = posture_panels(values, panels, quantity=name, broken=seen[steps.broken])
    write_png(out / "postures.png", figure)


class Postures(NamedTuple):
    """Feasibility [n, m] at n values of a quantity, in m postures of each kind."""

    allowed: Float[np.ndarray, "n m"]
    forbidden: Float[np.ndarray, "n k"]


def postures(
    constraint: Constraint, steps: SeenSteps, quantity: int, values: Float[np.ndarray, " n"]
) -> Postures:
    """Feasibility against one observed number, in postures of steps that kept and broke the rule.

    The number at place `quantity` of the observation is set to each of the `values`. Up to 200
    postures of each kind are drawn from the steps.
    """
    size = steps.observations.shape[1]
    if not 0 <= quantity < size:
        raise ArgumentError(f"quantity must be one of the {size} observed numbers, not {quantity}")
    generator = np.random.default_rng(0)
    curves = []
    for kind in (~steps.broken, steps.broken):
        places = np.flatnonzero(kind)
        chosen = generator.choice(places, min(POSTURES, len(places)), replace=False)
        seen, done = (
            np.repeat(field[chosen][None], len(values), axis=0)
            for field in (steps.observations, steps.actions)
        )
        seen[..., quantity] = values[:, None]
        curves.append(constraint.feasibility(seen, done))
    return Postures(*curves)
