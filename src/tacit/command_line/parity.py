"""`tacit experiment run parity`: sampling against the exact computation."""

from dataclasses import dataclass
from pathlib import Path

from tacit.command_line.tables import console, follow, progress_bar, show_table
from tacit.environments.lab_tasks import chain
from tacit.experiments.parity import ParitySettings, parity_table, parity_tasks, run_parity


@dataclass(frozen=True)
class Parity:
    """Does learning by sampling agree with the exact computation? On the chain and two grids.

    A data set takes eight minutes on two cores; on an accelerator thirty take two together.

    Args:
        out: folder for the table and the finished runs.
        seeds: one data set of each cell for each, at least 2.
        together: data sets that are learned from side by side.
        quick: two data sets, two cells of a small chain and tiny rounds, only to see that it runs.
    """

    out: Path
    seeds: tuple[int, ...] = ParitySettings.seeds
    together: int = 1
    quick: bool = False

    def run(self) -> None:
        """Run with a bar, then show the table."""
        settings, tasks = ParitySettings(seeds=self.seeds), parity_tasks()
        if self.quick:
            settings = ParitySettings((0.7, 0.9), (5,), (1, 2), iterations=2)
            tasks = [chain(length=9, limit=-2, horizon=10)]
        with progress_bar() as bar:
            job = bar.add_task("parity", total=1)
            rows = run_parity(
                self.out,
                settings,
                together=self.together,
                tasks=tasks,
                progress=follow(bar, job),
            )
        show_table("Sampling against the exact computation", *parity_table(rows, intervals=False))
        console.print(
            f"written: {self.out / 'parity.md'}, {self.out / 'parity.json'}", markup=False
        )
