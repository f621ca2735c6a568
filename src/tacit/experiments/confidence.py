"""Does a confidence level mean what it says where nothing is exact? Asks `reach` on a simulator.

It runs every number of demonstrations at every confidence, over several seeds; each combination is
a comparison of `tacit.experiments.methods` with one method, in a folder of its own.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tacit.evaluation.intervals import Estimate, mean_interval, rate_interval
from tacit.experiments.methods import Notice, Progress, check_distinct, run_methods
from tacit.experiments.methods_cell import Comparison, Record
from tacit.reports.confidence_curves import Curve, number_panels
from tacit.reports.style import write_png
from tacit.reports.table import four_digits, markdown_table, percent
from tacit.runs.atomic_write import atomic_write
from tacit.runs.files import write_json

COLUMNS = ["N", "confidence", "violation", "at most", "worst seed", "feasible reward", "training"]


@dataclass(frozen=True)
class Row:
    """The measurements for one number of demonstrations at one confidence, over the seeds.

    Violation and feasible reward are of executed episodes, `worst` is the highest violation of a
    seed, and `training` the violation in the last 100 episodes of training.
    """

    number: int
    confidence: float
    seeds: int
    violation: Estimate
    worst: float
    reward: Estimate
    training: float

    @property
    def kept(self) -> bool:
        """Whether the whole interval keeps the promise."""
        return self.violation.high <= 1 - self.confidence + 1e-12


def run_confidence(
    out: Path | str,
    comparison: Comparison,
    *,
    numbers: Sequence[int],
    confidences: Sequence[float],
    seeds: Sequence[int],
    processes: int = 1,
    threads: int | None = 1,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> list[Row]:
    """Run all cells into `out`, or go on; writes confidence.md, confidence.json and a figure."""
    out = Path(out)
    check_distinct(numbers=numbers, confidences=confidences)
    pairs = [(size, level) for size in numbers for level in confidences]
    tell = progress or (lambda *_: None)
    say = notice or (lambda sentence: None)
    rows = []
    for place, (size, level) in enumerate(pairs):
        tell(place, len(pairs), f"N = {size}, confidence {level:g}")
        records = run_methods(
            out / f"{size}-{level:g}",
            dataclasses.replace(comparison, number=size, confidence=level),
            methods=("reach",),
            seeds=seeds,
            processes=processes,
            threads=threads,
        )
        rows.append(summed(size, level, records))
        say(f"N = {size}, confidence {level:g}: violation {rows[-1].violation}")
    write_all(out, comparison, rows)
    return rows


def summed(size: int, level: float, records: Sequence[Record]) -> Row:
    """One row; its violation has the wider of the intervals over seeds and over episodes."""
    executed = [np.asarray(record.execution) for record in records]
    rates = np.array([episodes[:, 2].mean() for episodes in executed])
    rewards = np.array([episodes[:, 1].mean() for episodes in executed])
    pooled = np.concatenate(executed)[:, 2]
    over_seeds = mean_interval(rates) if len(rates) > 1 else Estimate.exact(float(rates[0]))
    over_episodes = rate_interval(int(pooled.sum()), len(pooled))
    return Row(
        number=size,
        confidence=float(level),
        seeds=len(records),
        violation=Estimate(
            float(rates.mean()),
            min(over_seeds.low, over_episodes.low),
            max(over_seeds.high, over_episodes.high),
        ),
        worst=float(rates.max()),
        reward=mean_interval(rewards) if len(rewards) > 1 else Estimate.exact(float(rewards[0])),
        training=float(np.mean([np.mean(record.training, axis=0)[2] for record in records])),
    )


def confidence_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for people."""
    return COLUMNS, [
        [
            str(row.number),
            f"{row.confidence:g}",
            percent(row.violation),
            percent(1 - row.confidence) + ("" if row.kept else " (broken)"),
            percent(row.worst),
            reward_cell(row.reward),
            percent(row.training),
        ]
        for row in rows
    ]


def reward_cell(reward: Estimate) -> str:
    """A reward with its interval, to four digits."""
    value, low, high = map(four_digits, (reward.value, reward.low, reward.high))
    return f"{value} [{low}, {high}]"


def write_all(out: Path, comparison: Comparison, rows: list[Row]) -> None:
    """Write the numbers for programs, a table and a figure for people."""
    content = {"comparison": asdict(comparison), "rows": [asdict(row) for row in rows]}
    write_json(out / "confidence.json", content)
    with atomic_write(out / "confidence.md") as part:
        part.write_text(
            f"# reach on {comparison.task}, {comparison.steps:,} steps, {rows[0].seeds} seeds\n\n"
            f"{markdown_table(*confidence_table(rows))}\n",
            encoding="utf-8",
        )
    curves = [
        Curve(f"{size} demonstrations", [row for row in rows if row.number == size])
        for size in dict.fromkeys(row.number for row in rows)
    ]
    write_png(out / "confidence.png", number_panels(curves))
