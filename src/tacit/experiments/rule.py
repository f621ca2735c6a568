"""Is what was learned a rule, or an imitation? Of the finished runs of a comparison of methods.

Recovery (`tacit.evaluation.recovery`), the calibration error (ECE, by the paper's recipe), and
feasibility against one quantity in the postures of those who keep the rule and who break it: a
rule about the quantity gives one curve, whoever's postures they are; an imitation calls the
postures of those who keep the rule feasible at every value, and the others at none. The episodes
are of PPO without any constraint and of the first method's policy.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from tacit.control.actor import Actor
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, StorageError, TaskError
from tacit.evaluation.calibration import calibration_error
from tacit.evaluation.recovery import SeenSteps, recovered, seen_steps
from tacit.experiments.methods_cell import (
    METHODS,
    NONE,
    SETTINGS,
    Comparison,
    cell_file,
    cell_folder,
    learn_nothing,
)
from tacit.experiments.methods_table import (
    REFERENCE,
    SEEDS_FOR_TESTS,
    student_interval,
    t_test,
    within,
)
from tacit.experiments.methods_workers import Progress
from tacit.inference.constraint import Constraint
from tacit.inference.method import find_method
from tacit.inference.result import load
from tacit.reports.feasibility_curves import posture_panels
from tacit.reports.style import write_png
from tacit.reports.table import MISSING, markdown_table, p_value
from tacit.runs.atomic_write import atomic_write
from tacit.runs.json_file import read_json, write_json
from tacit.runs.settings_file import read_settings

COLUMNS = ["method", "seed", "recovery", "of three sets of episodes", "calibration error"]
SUMMED = ["method", "seeds", "recovery", "p recovery", "calibration error", "p calibration error"]
EPISODE_SEEDS = (1001, 2001, 3001)
VALUES = 201
POSTURES = 200
NOT_ASKED = "not asked for"


@dataclass(frozen=True)
class Row:
    """One run.

    Fields:
        method: its name.
        seed: of the run.
        recovery: area under the ROC curve, for each set of episodes.
        calibration: the calibration error; None where there is none, see `reason`.
        reason: why not.
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

    Writes rule.md, rule.json and postures.png.

    Arguments:
        out: a folder.
        runs: the folder of a comparison (`tacit experiment run methods`), with PPO without any
            constraint (`none`), which breaks the rule.
        quantity: place in the observation of the number that the postures are moved along.
        methods: whose runs are judged.
        calibration: whether to measure the calibration error too: half a minute or more for each
            run on a robot.
        threads: for the simulator.
        progress: is told how many runs are judged, of how many, and which is next.
    """
    out, runs = Path(out), Path(runs)
    comparison = comparison_of(runs)
    task = comparison.make_task()
    found = finished(runs, methods)
    tell = progress or (lambda *_: None)
    loaded = {cell: load(cell_folder(runs, *cell)) for cell in found}
    free = policy_of(runs, comparison, task)
    behaviours = [free, loaded[found[0]].policy]
    tell(0, len(found), "episodes")
    sets = [seen_steps(task, behaviours, seed=seed, threads=threads) for seed in EPISODE_SEEDS]
    rows = []
    for place, ((method, seed), result) in enumerate(loaded.items()):
        tell(place, len(found), f"{method}, seed {seed}")
        row = kept_row(out, runs, method, seed)
        if row is None:
            areas = [recovered(result.constraint, steps) for steps in sets]
            row = Row(method, seed, areas, None, NOT_ASKED)
            keep_row(out, runs, row)
        if calibration and row.reason == NOT_ASKED:
            error, reason = calibration_of(result, task, free, threads)
            row = replace(row, calibration=error, reason=reason)
            keep_row(out, runs, row)
        rows.append(row)
    write_all(out, runs, rows)
    first = {method: loaded[method, seed].constraint for method, seed in reversed(found)}
    draw(out, dict(reversed(first.items())), sets[0], quantity)
    return rows


def comparison_of(runs: Path) -> Comparison:
    """What the runs share."""
    if not (runs / SETTINGS).exists():
        raise StorageError(f"{runs} is no folder of `tacit experiment run methods`")
    return Comparison(**read_settings(runs / SETTINGS)["settings"])


def finished(runs: Path, methods: Sequence[str]) -> list[tuple[str, int]]:
    """Method and seed of all runs of these methods that are finished."""
    for method in methods:
        find_method(method)
    cells = [
        (method, int(file.stem.rpartition("-")[2]))
        for method in methods
        for file in (runs / "cells").glob(f"{method}-*.json")
    ]
    if not cells:
        raise ArgumentError(f"none of {', '.join(methods)} has finished in {runs}")
    return sorted(cells, key=lambda cell: (METHODS.index(cell[0]), cell[1]))


def row_file(out: Path, method: str, seed: int) -> Path:
    """Where a row is kept."""
    return out / "rows" / f"{method}-{seed}.json"


def checksum(runs: Path, method: str, seed: int) -> str:
    """Of the record of a run: another run of the same name is judged anew."""
    return hashlib.sha256(cell_file(runs, method, seed).read_bytes()).hexdigest()


def keep_row(out: Path, runs: Path, row: Row) -> None:
    """Write a row down, so that it is not lost when the rest is interrupted."""
    content = {**asdict(row), "sha256": checksum(runs, row.method, row.seed)}
    write_json(row_file(out, row.method, row.seed), content)


def kept_row(out: Path, runs: Path, method: str, seed: int) -> Row | None:
    """The row of this run from an earlier attempt, if there is one."""
    file = row_file(out, method, seed)
    if not file.exists():
        return None
    content = read_json(file)
    return Row(**content) if content.pop("sha256") == checksum(runs, method, seed) else None


def policy_of(runs: Path, comparison: Comparison, task: SimulatedTask) -> Actor:
    """The policy that knows of no cost, from the first finished run."""
    files = (runs / "cells").glob(f"{NONE}-*.json")
    seeds = sorted(int(file.stem.rpartition("-")[2]) for file in files)
    if not seeds:
        raise ArgumentError(
            f"{runs} has no run without a constraint, which would break the rule: add one with "
            "`--methods none`"
        )
    folder = cell_folder(runs, NONE, seeds[0])
    return learn_nothing(task, comparison, NONE, seeds[0], folder, None, None).policy


def calibration_of(
    result: Any, task: SimulatedTask, free: Actor, threads: int | None
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
        for of in (recoveries, calibrations):
            values, reference = of(own), of(by_method.get(REFERENCE, []))
            p = None if method == REFERENCE else t_test(values, reference)
            line += [spread(values), p_value(p)]
        lines.append(line)
    return SUMMED, lines


def recoveries(rows: Sequence[Row]) -> np.ndarray:
    """The recovery of each run."""
    return np.array([np.mean(row.recovery) for row in rows])


def calibrations(rows: Sequence[Row]) -> np.ndarray:
    """The calibration error of each run that has one."""
    return np.array([row.calibration for row in rows if row.calibration is not None])


def spread(values: np.ndarray) -> str:
    """The mean, with an interval where there are seeds enough for one."""
    if not len(values):
        return MISSING
    if len(values) < SEEDS_FOR_TESTS:
        return f"{values.mean():.3f}"
    estimate = within(student_interval(values), 0.0, 1.0)
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def write_all(out: Path, runs: Path, rows: Sequence[Row]) -> None:
    """The numbers for programs, and a table for people."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "rule.json", {"runs": str(runs), "rows": [asdict(row) for row in rows]})
    with atomic_write(out / "rule.md") as part:
        tables = markdown_table(*summed_table(rows)), markdown_table(*rule_table(rows))
        part.write_text("\n\n## Each seed\n\n".join(tables) + "\n", encoding="utf-8")


def draw(out: Path, constraints: dict[str, Any], steps: SeenSteps, quantity: int) -> None:
    """The figure of postures, over the values that were seen."""
    seen = steps.observations[:, quantity]
    low, high = np.quantile(seen, (0.01, 0.99))
    values = np.linspace(low, high, VALUES)
    panels = {
        name.upper(): postures(constraint, steps, quantity, values)
        for name, constraint in constraints.items()
    }
    figure = posture_panels(
        values, panels, quantity=named(constraints, quantity), broken=seen[steps.broken]
    )
    write_png(out / "postures.png", figure)


def named(constraints: dict[str, Constraint], quantity: int) -> str:
    """What the observed number is called."""
    names = next(iter(constraints.values())).names
    return names[quantity] if names else f"observation {quantity}"


class Postures(NamedTuple):
    """Feasibility [n, m] at n values of a quantity, in m postures of each kind."""

    allowed: Float[np.ndarray, "n m"]
    forbidden: Float[np.ndarray, "n k"]


def postures(
    constraint: Constraint,
    steps: SeenSteps,
    quantity: int,
    values: Float[np.ndarray, " n"],
    *,
    confidence: float | None = None,
    seed: int = 0,
) -> Postures:
    """Feasibility against one observed number, in postures of steps that kept and broke the rule.

    Arguments:
        constraint: whose feasibility is drawn.
        steps: where the postures come from, see `tacit.evaluation.recovery.seen_steps`; up to 200
            of each kind are drawn.
        quantity: its place in the observation.
        values: what it is set to.
        confidence: at which the constraint is asked; its own by default.
        seed: of the draw.
    """
    size = steps.observations.shape[1]
    if not 0 <= quantity < size:
        raise ArgumentError(f"quantity must be one of the {size} observed numbers, not {quantity}")
    generator = np.random.default_rng(seed)
    curves = []
    for kind in (~steps.broken, steps.broken):
        places = np.flatnonzero(kind)
        chosen = generator.choice(places, min(POSTURES, len(places)), replace=False)
        curves.append(
            move_quantity(
                constraint,
                steps.observations[chosen],
                steps.actions[chosen],
                quantity,
                values,
                confidence,
            )
        )
    return Postures(*curves)


def move_quantity(
    constraint: Constraint,
    observations: Float[np.ndarray, "m o"],
    actions: Shaped[np.ndarray, "m ..."],
    quantity: int,
    values: Float[np.ndarray, " n"],
    confidence: float | None,
) -> Float[np.ndarray, "n m"]:
    """Feasibility of every step with its quantity set to every value."""
    everywhere = np.repeat(observations[None], len(values), axis=0)
    everywhere[..., quantity] = values[:, None]
    repeated = np.repeat(actions[None], len(values), axis=0)
    flat = constraint.feasibility(
        everywhere.reshape(-1, observations.shape[1]),
        repeated.reshape(-1, *actions.shape[1:]),
        confidence,
    )
    return np.asarray(flat).reshape(len(values), len(observations))
