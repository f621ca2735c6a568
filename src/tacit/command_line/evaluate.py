"""`tacit evaluate`: judge what was learned."""

import math
import warnings
from dataclasses import dataclass, replace
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
    worth,
)
from tacit.command_line.inputs import Options, find_task, importable
from tacit.errors import ArgumentError, TaskError

if TYPE_CHECKING:
    from tacit.evaluation.evaluate import Evaluation
    from tacit.inference.result import Result

CALIBRATION = "calibration error (ECE)"


@dataclass(frozen=True)
class Evaluate:
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

    folder: tyro.conf.Positional[Path]
    episodes: int | None = None
    seed: int = 51
    threads: int | None = None
    calibration: bool = True
    task: str | None = None
    settings: Options = ()

    def run(self) -> None:
        """Find the task, then show what the policy is worth on it."""
        from tacit.control.table_policy import TablePolicy
        from tacit.evaluation.evaluate import task_to_judge
        from tacit.inference.result import load

        with importable(Path.cwd()):
            result = load(self.folder)
        exact = isinstance(result.policy, TablePolicy)
        if exact and (self.task is not None or self.settings):
            raise ArgumentError("this result is exact on its own task: leave --task and --set away")
        if self.task is not None:
            task = find_task(self.task, self.settings)
            result = replace(result, task=task_to_judge(result, task))
        elif self.settings:
            raise ArgumentError("--set is about another task: give its name too, with --task")
        if exact:
            self.show_exact(result)
        else:
            self.show_phases(result)

    def show_exact(self, result: "Result") -> None:
        """Print what the policy of a table is worth."""
        from tacit.evaluation.calibration import calibration_error

        assert result.task is not None
        facts = exact_facts(result, self.episodes, self.seed)
        if self.calibration:
            facts[CALIBRATION] = f"{calibration_error(result, seed=self.seed):.3f}"
        show_facts(f"{self.folder} on {result.task.name}", facts)

    def show_phases(self, result: "Result") -> None:
        """Print the end of training and the execution phase side by side."""
        from tacit.evaluation.evaluate import evaluate, task_to_judge

        task = task_to_judge(result, None)
        with console.status("playing episodes"):
            report = evaluate(result, episodes=self.episodes, seed=self.seed, threads=self.threads)
        constraint = result.constraint
        promised = 1 - constraint.confidence if constraint.promises else None
        rows, notes = phases(report, promised), []
        if self.calibration:
            with console.status("playing feasible and infeasible trajectories"):
                error, notes = calibration_or_reason(result, self.seed, self.threads)
            rows.append([CALIBRATION, "", error])
        last = self.seed + (report.episodes or 0) - 1
        training = "" if report.training is None else f" (last {report.training.episodes} episodes)"
        level = f" at confidence {1 - promised:g}" if promised else ""
        columns = ["", f"training{training}", f"execution (seeds {self.seed} to {last})"]
        show_table(f"{self.folder} on {task.name}{level}", columns, rows)
        if promised is not None:
            notes += warning_of(report, promised)
        if task.broken_starts:
            notes.append(
                f"{percent(task.broken_starts)} of the starts break the rule before anything is "
                "done; most of their episodes count as violations"
            )
        for note in notes:
            console.print(note, highlight=False, markup=False)


def phases(report: "Evaluation", promised: float | None) -> list[list[str]]:
    """Rows of name, training and execution; methods without a confidence promise nothing."""
    before = {} if report.training is None else worth(report.training)
    rows = [[name, before.get(name, "unknown"), now] for name, now in worth(report).items()]
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
