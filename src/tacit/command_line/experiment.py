"""`tacit experiment`: run the experiments of the lab."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import subcommand

from tacit.command_line.console import console, progress_bar, show_line, show_table, show_written
from tacit.command_line.drives import LearnDrivers
from tacit.command_line.inputs import Options, Pairs, find_task, parse_setting, ppo_changes
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.experiments.methods_cell import Comparison


COVERAGE = {
    "task": ("task", ""),
    "N": ("experts", ""),
    "level": ("confidence", "g"),
    "violation": ("violation", ".3f"),
    "at most": ("violation_high", ".3f"),
    "reward": ("reward", ".2f"),
    "joint": ("joint_coverage", ".2f"),
    "point": ("pointwise_coverage", ".2f"),
    "oracle": ("distance_to_oracle", ".2f"),
}
"""What is shown of the coverage experiment: columns of its table, and the form of numbers."""


@dataclass(frozen=True)
class Coverage:
    """Does a confidence level mean what it says? On small tasks that are computed exactly.

    Args:
        out: folder for the table, the figure and the finished cells.
        quick: ten data sets instead of fifty.
        datasets: another number of data sets.
        seed: of all data sets.
    """

    out: Path
    quick: bool = False
    datasets: int | None = None
    seed: int = 0

    def run(self) -> None:
        """Run with a bar, then show the default method's rows."""
        from tacit.experiments.coverage import CoverageSettings, run_coverage

        base = CoverageSettings.quick() if self.quick else CoverageSettings()
        if self.datasets is not None and self.datasets < 2:
            raise ArgumentError(f"datasets must be at least 2 for an interval, not {self.datasets}")
        settings = replace(base, datasets=self.datasets or base.datasets, seed=self.seed)
        with progress_bar("coverage") as show:
            rows = run_coverage(self.out, settings, progress=show)
        show_coverage(rows)
        show_written(f"{self.out / 'coverage.csv'} ({len(rows)} rows)", self.out / "coverage.svg")


def show_coverage(rows: list[dict[str, Any]]) -> None:
    """The rows of the default method as a table."""
    shown = [
        row
        for row in rows
        if (row["objective"], row["votes"], row["reading"]) == ("counts", "visits", "graded")
    ]
    show_table(
        "Coverage of the default method (all others are in coverage.csv)",
        list(COVERAGE),
        [[f"{row[column]:{style}}" for column, style in COVERAGE.values()] for row in shown],
    )


@dataclass(frozen=True)
class Methods:
    """Which method learns best? All that act, and PPO without any constraint, on a simulated task.

    A cell is one method with one seed. More of both can be added to the same folder later. Every
    cell has its run folder, cells/METHOD-SEED, whose metrics.jsonl grows while it learns.

    Args:
        out: folder for the tables, the runs and the finished cells.
        task: name of a simulated task; by default BlockedHalfCheetah with
            --set variant=benchmark noise_std=0.
        settings: options of the task, as in --set variant=benchmark noise_std=0.
        experts: file or folder with the demonstrations; {seed} in it stands for the seed.
        number: demonstrations drawn from it for each seed; 50 by default.
        methods: none, reach, ca-icrl, icrl, vicrl, bc2l, gacl, icl; all by default.
        seeds: one cell of each method for each; 1 2 by default.
        steps: environment steps of each cell; 800000 by default.
        confidence: for reach and ca-icrl; 0.7 by default.
        train: settings of PPO for all methods, as in --train worlds=32 rollout=256.
        threads: for the simulator of each cell.
        processes: cells that run at a time.
        quick: tiny sizes on BiasedPendulum, only to see that everything runs; without --experts
            from demonstrations of experts that do nothing.
    """

    out: Path
    task: str | None = None
    settings: Options = ()
    experts: str | None = None
    number: int | None = None
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    steps: int | None = None
    confidence: float | None = None
    train: Pairs = ()
    threads: int = 1
    processes: int = 1
    quick: bool = False

    def run(self) -> None:
        """Run with a bar and a line per finished cell, then show the table over methods."""
        from tacit.experiments.methods import run_methods
        from tacit.experiments.methods_cell import NAMES
        from tacit.experiments.methods_table import caption, method_table

        comparison = self.comparison()
        with progress_bar("methods") as show:
            records = run_methods(
                self.out,
                comparison,
                methods=self.methods or (("none", "bc2l") if self.quick else NAMES),
                seeds=self.seeds or ((1,) if self.quick else (1, 2)),
                processes=self.processes,
                threads=self.threads,
                progress=show,
                notice=show_line,
            )
        show_table(f"Methods on {comparison.task}", *method_table(records))
        console.print(caption(comparison, records), markup=False)
        show_written(self.out / "methods.md", self.out / "methods.json")

    def comparison(self) -> "Comparison":
        """What all cells share."""
        from tacit.experiments.methods import collect_idle
        from tacit.experiments.methods_cell import Comparison

        base = Comparison.quick() if self.quick else Comparison()
        given = {name: getattr(self, name) for name in ("number", "steps", "confidence", "task")}
        changes: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
        if self.task is not None or self.settings:
            changes["options"] = dict(parse_setting(setting) for setting in self.settings)
        if self.train:
            changes["train"] = {**base.train, **ppo_changes(self.train)}
        comparison = replace(base, experts=self.experts, **changes)
        # Also lets modules in the present folder be imported, which then know their tasks.
        find_task(comparison.task, self.settings)
        if self.quick and self.experts is None:
            file = self.out / "experts.hdf5"
            collect_idle(comparison, file)
            comparison = replace(comparison, experts=str(file))
        return comparison


@dataclass(frozen=True)
class Confidence:
    """Does a confidence level mean what it says on a simulated task? By reach, with many seeds.

    Args:
        out: folder for the table, the figure and the finished cells.
        task: name of a simulated task; by default BlockedPoint.
        settings: options of the task, as in --set noise_std=0.2.
        experts: file or folder with the demonstrations; {seed} in it stands for the seed.
        numbers: of demonstrations.
        confidences: levels to ask for.
        seeds: one cell for each, with other demonstrations.
        steps: environment steps of each cell; by default those of the task's settings.
        train: settings of PPO, as in --train worlds=32 rollout=256.
        threads: for the simulator of each cell.
        processes: cells that run at a time.
    """

    out: Path
    experts: str
    task: str = "BlockedPoint"
    settings: Options = ()
    numbers: tuple[int, ...] = (5, 20, 100)
    confidences: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    steps: int | None = None
    train: Pairs = ()
    threads: int = 1
    processes: int = 1

    def run(self) -> None:
        """Run with a bar and a line per number and confidence, then show the table."""
        from tacit.control.presets import preset
        from tacit.experiments.confidence import confidence_table, run_confidence
        from tacit.experiments.methods_cell import Comparison

        comparison = Comparison(
            task=self.task,
            options=dict(parse_setting(setting) for setting in self.settings),
            experts=self.experts,
            train=ppo_changes(self.train),
        )
        task = find_task(self.task, self.settings)
        if not isinstance(task, SimulatedTask):
            raise ArgumentError(
                f"{self.task} is computed exactly: see `tacit experiment run coverage`"
            )
        steps = self.steps or preset(task).steps
        with progress_bar("confidence") as show:
            rows = run_confidence(
                self.out,
                replace(comparison, steps=steps),
                numbers=self.numbers,
                confidences=self.confidences,
                seeds=self.seeds,
                processes=self.processes,
                threads=self.threads,
                progress=show,
                notice=show_line,
            )
        show_table(f"reach on {self.task}, {steps:,} steps", *confidence_table(rows))
        show_written(self.out / "confidence.md", self.out / "confidence.png")


@dataclass(frozen=True)
class Rule:
    """Does a method learn a rule, or an imitation? Judges runs of `tacit experiment run methods`.

    Recovery is the chance that of two states, one truly forbidden and one allowed, the forbidden
    one is doubted more. The figure shows feasibility against one observed number, in the postures
    of those who keep the rule and of those who break it.

    Args:
        out: folder for the table and the figure.
        runs: folder of the comparison, with `none` among its methods.
        quantity: place in the observation of the number that the postures are moved along.
        methods: judge the runs of these; by default all that are there.
        calibration: also measure the calibration error; half a minute or more for each run on a
            robot.
        threads: for the simulator.
    """

    out: Path
    runs: Path
    quantity: int = 0
    methods: tuple[str, ...] = ()
    calibration: bool = True
    threads: int | None = None

    def run(self) -> None:
        """Judge all finished runs with a bar, then show the table."""
        from tacit.experiments.methods_cell import METHODS
        from tacit.experiments.rule import rule_table, run_rule, summed_table

        with progress_bar("rule") as show:
            rows = run_rule(
                self.out,
                self.runs,
                quantity=self.quantity,
                methods=self.methods or METHODS,
                calibration=self.calibration,
                threads=self.threads,
                progress=show,
            )
        show_table("A rule or an imitation?", *rule_table(rows))
        show_table("Over seeds", *summed_table(rows))
        show_written(self.out / "rule.md", self.out / "postures.png")


def experiment(
    action: tyro.conf.Positional[Literal["run"]],
    name: Annotated[
        Coverage | Methods | Confidence | Rule | Annotated[LearnDrivers, subcommand("drivers")],
        tyro.conf.arg(name=""),
    ],
) -> None:
    """Run an experiment into a folder; the same command again goes on where it was stopped.

    Args:
        action: run.
        name: which experiment.
    """
    del action
    name.run()
