"""`tacit evaluate`: judge what was learned."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import tacit.evaluation.evaluate as evaluation
from tacit.command_line.infer import RULE, performance, warning_of
from tacit.command_line.tables import console, percent, show_facts, show_table
from tacit.command_line.tasks import find_task, importable
from tacit.errors import ArgumentError, TaskError
from tacit.evaluation.calibration import calibration_error
from tacit.evaluation.evaluate import Evaluation
from tacit.evaluation.execution import SimulatedOutcome, simulated_task
from tacit.inference.result import Result, load

CALIBRATION = "calibration error (ECE)"


def evaluate(
    folder: tyro.conf.Positional[Path],
    episodes: int | None = None,
    seed: int = 51,
    threads: int | None = None,
    calibration: bool = True,
    task: str | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
) -> None:
    """Judge a saved result by the true rule.

    Args:
        folder: what `tacit infer --out` wrote.
        episodes: on tabular tasks, roll out that many instead of computing exactly; on simulated
            tasks, the length of the execution phase, by default 100.
        seed: of the episodes; on simulated tasks, of the first one.
        threads: for the simulator, by default as many as there are cores.
        calibration: also measure the calibration error, on 250 feasible and 250 infeasible
            trajectories.
        task: another task to judge it on, such as the same with other noise; needed for an
            environment of your own, which cannot be saved. Exact results have no other.
        settings: options of that task, as in --set noise_std=0.1.
    """
    with importable(Path.cwd()):
        result = load(folder)
    if isinstance(result, Result):
        if task is not None or settings:
            raise ArgumentError("this result is exact on its own task: leave --task and --set away")
    elif task is not None:
        result = replace(result, task=simulated_task(result, find_task(task, settings)))
    elif settings:
        raise ArgumentError("--set is about another task: give its name too, with --task")
    show(result, str(folder), episodes, seed, threads, calibration)


def show(
    result: Result | SimulatedOutcome,
    folder: str,
    episodes: int | None,
    seed: int,
    threads: int | None,
    calibration: bool,
) -> None:
    """Print what the result is worth."""
    if not isinstance(result, Result):
        show_phases(result, folder, episodes, seed, threads, calibration)
        return
    facts = performance(result, episodes, seed)
    if calibration:
        facts[CALIBRATION] = f"{calibration_error(result, seed=seed):.3f}"
    show_facts(f"{folder} on {result.task.name}", facts)


def show_phases(
    result: SimulatedOutcome,
    folder: str,
    episodes: int | None,
    seed: int,
    threads: int | None,
    calibration: bool,
) -> None:
    """Print the end of training and the execution phase side by side."""
    task = simulated_task(result, None)
    with console.status("playing episodes"):
        report = evaluation.evaluate(result, episodes=episodes, seed=seed, threads=threads)
    promises = getattr(result.constraint, "promises", True)
    promised = 1 - result.constraint.confidence if promises else None
    rows = phases(report, promised)
    notes: list[str] = []
    if calibration:
        with console.status("playing feasible and infeasible trajectories"):
            error, notes = calibration_or_reason(result, seed, threads)
        rows.append([CALIBRATION, "", error])
    last = seed + (report.episodes or 0) - 1
    training = "" if report.training is None else f" (last {report.training.episodes} episodes)"
    show_table(
        f"{folder} on {task.name}" + (f" at confidence {1 - promised:g}" if promised else ""),
        ["", f"training{training}", f"execution (seeds {seed} to {last})"],
        rows,
    )
    if promised is not None:
        notes += warning_of(report, promised)
    if task.broken_starts:
        notes.append(
            f"{percent(task.broken_starts)} of the starts break the rule before anything is done; "
            "most of their episodes count as violations"
        )
    for note in notes:
        console.print(note, highlight=False, markup=False)


def phases(report: Evaluation, promised: float | None) -> list[list[str]]:
    """Rows of name, training and execution; methods without a confidence promise nothing."""
    columns = [
        ["unknown"] * 3
        if phase is None
        else [percent(phase.violation), str(phase.reward), str(phase.feasible_reward)]
        for phase in (report.training, report)
    ]
    names = ["violation of the true rule", "reward per episode", "feasible reward"]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    if promised is not None and not np.isnan(float(report.violation)):
        kept = "kept" if report.violation <= promised else "BROKEN"
        rows.insert(1, [f"promise: at most {percent(promised)}", "", kept])
    if report.rule_violation is not None:
        rows.insert(len(rows) - 2, [RULE, "", percent(report.rule_violation)])
    return rows


def calibration_or_reason(
    result: SimulatedOutcome, seed: int, threads: int | None
) -> tuple[str, list[str]]:
    """The calibration error in words, and what is to be said about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            error = calibration_error(result, seed=seed, threads=threads)
        except TaskError as reason:
            # The other numbers must not be lost because hardly anything violates.
            return "unknown", [f"calibration error: {reason}"]
    return f"{error:.3f}", [f"calibration error: {warning.message}" for warning in caught]
