"""Tables and progress bars on the terminal."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tacit.evaluation.intervals import Estimate

# Colons in paths and messages are not the names of pictures.
console = Console(emoji=False)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def show_facts(title: str, facts: dict[str, str]) -> None:
    """Print names and values, one per line."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in facts.items():
        table.add_row(escape(name), escape(value))
    console.print(table)


def progress_bar() -> Progress:
    """A bar with what is being done, how far it is and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, emoji=False),
    )


def percent(share: float | Estimate) -> str:
    """A share as a percentage, with its interval where it has one."""
    if np.isnan(float(share)):
        return "unknown"
    if isinstance(share, Estimate):
        if share.low == share.high:
            return percent(share.value)
        return f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return f"{100 * share:.1f} %"


def follow(bar: Progress, job: TaskID) -> Callable[[int, int, str], None]:
    """What an experiment calls to move the bar."""
    return lambda done, total, text: bar.update(job, completed=done, total=total, description=text)
