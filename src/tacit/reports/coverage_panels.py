"""The coverage experiment at a glance: one row of small panels per task."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tacit.errors import ArgumentError
from tacit.reports.confidence_curves import draw_diagonal, draw_promise
from tacit.reports.number_curve import number_axis
from tacit.reports.style import (
    INK,
    QUIET,
    TICK_SIZE,
    TITLE_SIZE,
    Band,
    confidence_axis,
    draw_band,
    legend_under,
    new_figure,
    numbers_of,
    ordered_colours,
    share_axis,
    style_axes,
)

Row = Mapping[str, Any]
COMBINATION = ("objective", "votes", "reading")
KEYS = (
    *("task", *COMBINATION, "experts", "confidence", "violation", "violation_low"),
    *("violation_high", "reward", "joint_coverage", "pointwise_coverage", "distance_to_oracle"),
)


def coverage_panels(
    rows: Iterable[Row],
    *,
    objective: str | None = None,
    votes: str | None = None,
    reading: str | None = None,
) -> Figure:
    """Violation, reward, coverage and distance to the oracle for one way of learning.

    Arguments:
        rows: the results, one mapping per task, number of demonstrations (`experts`) and
            confidence, with the keys in `KEYS`.
        objective: which objective to show; the first one in the rows unless given.
        votes: which kind of votes to show; the first one in the rows unless given.
        reading: which reading of the belief to show; the first one in the rows unless given.
    """
    chosen = choose(list(rows), {"objective": objective, "votes": votes, "reading": reading})
    tasks = list(dict.fromkeys(str(row["task"]) for row in chosen))
    numbers = sorted({int(row["experts"]) for row in chosen})
    colours = dict(zip(numbers, ordered_colours(len(numbers)), strict=True))
    figure = new_figure(1.2 + 2.25 * len(tasks))
    places = figure.subplots(len(tasks), 4, squeeze=False)
    for axes_row, task in zip(places, tasks, strict=True):
        draw_task(axes_row, [row for row in chosen if str(row["task"]) == task], colours)
    label_edges(places, tasks)
    combination = ", ".join(f"{key}: {chosen[0][key]}" for key in COMBINATION)
    figure.suptitle(
        combination, x=0.01, ha="left", fontsize=TITLE_SIZE, color=QUIET, parse_math=False
    )
    add_legend(figure, colours)
    return figure


def choose(rows: Sequence[Row], wanted: Mapping[str, str | None]) -> list[Row]:
    """The rows of one combination of objective, votes and reading, each point once."""
    if not rows:
        raise ArgumentError("coverage_panels needs at least one row")
    for place, row in enumerate(rows):
        missing = [key for key in KEYS if key not in row]
        if missing:
            raise ArgumentError(f"row {place} has no {', '.join(missing)}")
    for key in COMBINATION:
        value = rows[0][key] if wanted[key] is None else wanted[key]
        known = list(dict.fromkeys(str(row[key]) for row in rows))
        rows = [row for row in rows if row[key] == value]
        if not rows:
            raise ArgumentError(f"there are no rows with {key} {value!r}; there are {known}")
    points = [(row["task"], row["experts"], row["confidence"]) for row in rows]
    twice = next((point for point in points if points.count(point) > 1), None)
    if twice is not None:
        raise ArgumentError(f"task {twice[0]}, experts {twice[1]}, confidence {twice[2]} is twice")
    return list(rows)


def draw_task(places: Sequence[Axes], rows: Sequence[Row], colours: Mapping[int, str]) -> None:
    """Draw the four panels of one task."""
    violation, _, coverage, distance = places
    for axes in places:
        style_axes(axes)
    confidences = numbers_of("confidence", [row["confidence"] for row in rows])
    for axes in places[:3]:
        confidence_axis(axes, confidences, ticks=5)
    highest = [row[key] for row in rows for key in ("violation", "violation_high")]
    draw_promise(violation, np.nanmax(numbers_of("violation", highest)))
    draw_diagonal(coverage)
    share_axis(coverage)
    for text in (*violation.texts, *coverage.texts):
        text.set_fontsize(7)
    for number, colour in colours.items():
        mine = [row for row in rows if int(row["experts"]) == number]
        if mine:
            draw_number(places[:3], sorted(mine, key=lambda row: row["confidence"]), colour)
    draw_distance(distance, rows, colours)


def draw_number(places: Sequence[Axes], rows: Sequence[Row], colour: str) -> None:
    """Draw the lines of one number of demonstrations against confidence."""
    violation, reward, coverage = places
    experts = int(rows[0]["experts"])

    def column(key: str) -> np.ndarray:
        return numbers_of(key, [row[key] for row in rows])

    band = Band(column("violation"), column("violation_low"), column("violation_high"))
    label = f"{experts} demonstrations"
    draw_band(violation, column("confidence"), band, colour=colour, label=label).set_markersize(4)
    for axes, key, style in (
        (reward, "reward", "-"),
        (coverage, "joint_coverage", "-"),
        (coverage, "pointwise_coverage", ":"),
    ):
        axes.plot(
            column("confidence"),
            column(key),
            color=colour,
            linestyle=style,
            linewidth=1.6,
            marker="o",
            markersize=3.5,
            label=f"{label}, {key}",
        )


def draw_distance(axes: Axes, rows: Sequence[Row], colours: Mapping[int, str]) -> None:
    """Draw distance to the oracle against number: mean over confidences, and whiskers."""
    numbers = [number for number in colours if any(int(row["experts"]) == number for row in rows)]
    groups = [
        numbers_of(
            "distance", [r["distance_to_oracle"] for r in rows if int(r["experts"]) == number]
        )
        for number in numbers
    ]
    means = summary(groups, np.mean)
    axes.vlines(
        numbers,
        summary(groups, np.min),
        summary(groups, np.max),
        color=[colours[number] for number in numbers],
        linewidth=1.4,
    )
    axes.plot(numbers, means, color=QUIET, linewidth=1.2, zorder=2, label="distance to oracle")
    axes.scatter(numbers, means, s=26, color=[colours[number] for number in numbers], zorder=3)
    axes.set_ylim(bottom=0)
    number_axis(axes, numbers)


def summary(groups: Sequence[np.ndarray], function: Callable[..., Any]) -> np.ndarray:
    """One number per group, missing values left out; NaN for a group with nothing else."""
    known = [group[~np.isnan(group)] for group in groups]
    return np.array([float(function(group)) if len(group) else np.nan for group in known])


def label_edges(places: np.ndarray, tasks: Sequence[str]) -> None:
    """Write titles over the first row, x labels under the last, task names at the left."""
    titles = ("Violation", "Reward", "Coverage", "Distance to oracle")
    below = ("confidence", "confidence", "confidence", "demonstrations")
    for axes, title, across in zip(places[0], titles, below, strict=True):
        axes.set_title(title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK)
        places[-1, list(places[0]).index(axes)].set_xlabel(across, fontsize=TICK_SIZE, color=INK)
    for axes, task in zip(places[:, 0], tasks, strict=True):
        axes.set_ylabel(task, fontsize=TITLE_SIZE, fontweight="bold", color=INK, parse_math=False)
    for axes in places.ravel():
        axes.tick_params(labelsize=7.5)


def add_legend(figure: Figure, colours: Mapping[int, str]) -> None:
    """Explain the colours (numbers of demonstrations) and line styles (kinds of coverage)."""
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=f"{number:,} demonstrations")
        for number, colour in colours.items()
    ]
    handles += [
        Line2D([], [], color=QUIET, linestyle="-", label="coverage of the whole rule"),
        Line2D([], [], color=QUIET, linestyle=":", label="coverage of single states"),
    ]
    legend_under(figure, handles, columns=min(len(handles), 5))
