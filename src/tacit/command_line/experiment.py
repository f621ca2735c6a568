"""`tacit experiment`: run the experiments of the lab."""

from pathlib import Path
from typing import Literal

import tyro

from tacit.command_line.tables import console, progress_bar, show_table
from tacit.errors import ArgumentError
from tacit.experiments.coverage import CoverageSettings, run_coverage


def experiment(
    action: tyro.conf.Positional[Literal["run"]],
    name: tyro.conf.Positional[Literal["coverage"]],
    out: Path,
    quick: bool = False,
    datasets: int | None = None,
    seed: int = 0,
) -> None:
    """Run an experiment into a folder; the same command again goes on where it was stopped.

    Args:
        action: run.
        name: coverage: does a confidence level mean what it says?
        out: folder for the table, the figure and the finished cells.
        quick: ten data sets instead of fifty.
        datasets: another number of data sets.
        seed: of all data sets.
    """
    del action, name
    base = CoverageSettings.quick() if quick else CoverageSettings()
    if datasets is not None and datasets < 2:
        raise ArgumentError(f"datasets must be at least 2 for an interval, not {datasets}")
    settings = CoverageSettings(
        datasets=datasets or base.datasets, candidates=base.candidates, seed=seed
    )
    with progress_bar() as bar:
        job = bar.add_task("coverage", total=1)
        rows = run_coverage(
            out,
            settings,
            progress=lambda done, total, text: bar.update(
                job, completed=done, total=total, description=text
            ),
        )
    shown = [
        row
        for row in rows
        if (row["objective"], row["votes"], row["reading"]) == ("counts", "visits", "graded")
    ]
    show_table(
        "Coverage of the default method (all others are in coverage.csv)",
        ["task", "N", "level", "violation", "at most", "reward", "joint", "point", "oracle"],
        [
            [
                row["task"],
                str(row["experts"]),
                f"{row['confidence']:g}",
                f"{row['violation']:.3f}",
                f"{row['violation_high']:.3f}",
                f"{row['reward']:.2f}",
                f"{row['joint_coverage']:.2f}",
                f"{row['pointwise_coverage']:.2f}",
                f"{row['distance_to_oracle']:.2f}",
            ]
            for row in shown
        ],
    )
    console.print(
        f"written: {out / 'coverage.csv'} ({len(rows)} rows), {out / 'coverage.svg'}", markup=False
    )
