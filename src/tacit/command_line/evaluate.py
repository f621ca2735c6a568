"""`tacit evaluate`: judge what was learned."""

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from tacit.command_line.console import (
    RULE,
    console,
    exact_facts,
    percent,
    show_facts,
    show_table,
    warning_of,
)
from tacit.command_line.inputs import Options, find_task, importable
from tacit.errors import ArgumentError, TaskError

if TYPE_CHECKING:
    from tacit.evaluation.evaluate import Evaluation
    from tacit.inference.result import Result

CALIBRATION = "calibration error (ECE)"


def evaluate(
    folder: tyro.conf.Positional[Path],
    episodes: int | None = None,
    seed: int = 51,
    threads: int | None = None,
    calibration: bool = True,
    task: str | None = None,
    settings: Options = (),
) -> None:
    """Judge a saved result by the true rule.

    Args:
        folder: what `tacit infer --out` wrote.
        episodes: how many to play after training, by default 100; for the policy of a table, play
            that many instead of computing exactly.
        seed: of the first episode, which the others count on from.
        threads: for the simulator, by default as many as there are cores.
        calibration: also measure the calibration error, on 250 feasible and 250 infeasible
            trajectories.
        task: another task to judge it on, such as the same with other noise; needed for an
            environment of your own, which cannot be saved. Exact results have no other.
        settings: options of that task, as in --set noise_std=0.1.
    """
    from tacit.control.table_policy import TablePolicy
    from tacit.evaluation.evaluate import task_to_judge
    from tacit.inference.result import load

    with importable(Path.cwd()):
        result = load(folder)
    exact = isinstance(result.policy, TablePolicy)
    if exact and (task is not None or settings):
        raise ArgumentError("this result is exact on its own task: leave --task and --set away")
    if task is not None:
        result = replace(result, task=task_to_judge(result, find_task(task, settings)))
    elif settings:
        raise ArgumentError("--set is about another task: give its name too, with --task")
    if exact:
        show_exact(result, str(folder), episodes, seed, calibration)
    else:
        show_phases(result, str(folder), episodes, seed, threads, calibration)


def show_exact(
    result: "Result", folder: str, episodes: int | None, seed: int, calibration: bool
) -> None:
    """Print what the policy of a table is worth."""
    from tacit.evaluation.calibration import calibration_error

    assert result.task is not None
    facts = exact_facts(result, episodes, seed)
    if calibration:
        facts[CALIBRATION] = f"{calibration_error(result, seed=seed):.3f}"
    show_facts(f"{folder} on {result.task.name}", facts)


def show_phases(
    result: "Result",
    folder: str,
    episodes: int | None,
    seed: int,
    threads: int | None,
    calibration: bool,
) -> None:
    """Print the end of training and the execution phase side by side."""
    from tacit.evaluation.evaluate import evaluate as judged
    from tacit.evaluation.evaluate import task_to_judge

    task = task_to_judge(result, None)
    with console.status("playing episodes"):
        report = judged(result, episodes=episodes, seed=seed, threads=threads)
    constraint = result.constraint
    promised = 1 - constraint.confidence if constraint.promises else None
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


def phases(report: "Evaluation", promised: float | None) -> list[list[str]]:
    """Rows of name, training and execution; methods without a confidence promise nothing."""
    columns = [
        ["unknown"] * 3
        if phase is None
        else [percent(phase.violation), str(phase.reward), str(phase.feasible_reward)]
        for phase in (report.training, report)
    ]
    names = ["violation of the true rule", "reward per episode", "feasible reward"]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    if promised is not None and not math.isnan(float(report.violation)):
        kept = "kept" if report.violation <= promised else "BROKEN"
        rows.insert(1, [f"promise: at most {percent(promised)}", "", kept])
    if report.rule_violation is not None:
        rows.insert(len(rows) - 2, [RULE, "", percent(report.rule_violation)])
    return rows


def calibration_or_reason(
    result: "Result", seed: int, threads: int | None
) -> tuple[str, list[str]]:
    """The calibration error in words, and what is to be said about it."""
    from tacit.evaluation.calibration import calibration_error

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            error = calibration_error(result, seed=seed, threads=threads)
        except TaskError as reason:
            # The other numbers must not be lost because hardly anything violates.
            return "unknown", [f"calibration error: {reason}"]
    return f"{error:.3f}", [f"calibration error: {warning.message}" for warning in caught]
