"""Compare speeds on a machine that is never quite idle: short blocks in turns, medians of ratios.

Whatever slows the machine for a second slows both sides of a ratio taken within that second, and
the median over many such ratios forgets the seconds in which it hit only one.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

CONSOLE = Console(highlight=False)


class Ratio(NamedTuple):
    """Median and quartiles of one ratio over all rounds."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True)
class Target:
    """What a value should be at least, or at most."""

    bound: float
    at_most: bool = False

    def met(self, value: float) -> bool:
        """Whether `value` is within."""
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.bound:g}"


class Row(NamedTuple):
    """One line of a table: cells, then the value as shown, its target and whether it is met."""

    cells: Sequence[str]
    shown: str
    value: float
    target: Target | None = None


def timed(function: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turns(
    blocks: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    turns: int = 1,
    fewest: int = 3,
    seconds: float = float("inf"),
) -> dict[str, np.ndarray]:
    """Run the blocks one after the other, every other time backwards; their seconds per round.

    A round is `turns` calls of every block, added up. No round begins after `seconds`, once there
    are `fewest`.
    """
    record: dict[str, list[float]] = {name: [] for name in blocks}
    order, began = list(blocks), time.perf_counter()
    for now in range(rounds):
        if now >= fewest and time.perf_counter() - began > seconds:
            break
        spent = dict.fromkeys(blocks, 0.0)
        for _ in range(turns):
            for name in order:
                spent[name] += blocks[name]()
            order.reverse()
        for name, total in spent.items():
            record[name].append(total)
    return {name: np.array(total) for name, total in record.items()}


def ratio(above: np.ndarray, below: np.ndarray) -> Ratio:
    """Compare what was measured in the same rounds."""
    return Ratio(*(float(value) for value in np.quantile(above / below, (0.5, 0.25, 0.75))))


def rate(work: float, seconds: np.ndarray) -> str:
    """Work per second in thousands, for reading next to the ratio."""
    return f"{work / float(np.median(seconds)) / 1e3:.1f}k"


def show(title: str, columns: Sequence[str], rows: Sequence[Row]) -> bool:
    """Print a table with the targets beside the values; whether all were met.

    `columns` names the cells of the rows and, last, their value.
    """
    CONSOLE.print(f"\n[bold]{title}[/]")
    table = Table()
    for place, column in enumerate((*columns, "target", "")):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        target, mark = "-", ""
        if row.target is not None:
            target = str(row.target)
            mark = "[green]met[/]" if row.target.met(row.value) else "[red]MISSED[/]"
        table.add_row(*row.cells, row.shown, target, mark)
    CONSOLE.print(table)
    return all(row.target is None or row.target.met(row.value) for row in rows)


def describe_machine() -> None:
    """Print what the numbers depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    CONSOLE.print(f"machine: {cores} cores, load average {load} at the start")


def verdict(met: bool, *, quick: bool) -> int:
    """Print whether the targets were met; the exit status."""
    if quick:
        CONSOLE.print("quick: everything ran, for too short a time to judge")
        return 0
    CONSOLE.print("targets met" if met else "A TARGET WAS MISSED")
    return 0 if met else 1
