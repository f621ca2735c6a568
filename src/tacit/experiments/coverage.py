"""Does a confidence level mean what it says? Measures it on tasks that are computed exactly.

It runs every combination of objective, votes and reading, on the chain and two grids at two reward
scales, for several numbers of demonstrations and confidence levels, over many data sets.
"""

import csv
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tacit.control.expert import collect, train_expert
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.coverage import reachable_queries, unconstrained_visits
from tacit.experiments.coverage_cell import Setting, measure
from tacit.inference.confidence.belief import COUNTED_VOTES, LEARNED_VOTES
from tacit.inference.counts.counts import Counts, TableMethod
from tacit.inference.counts.likelihood import Likelihood
from tacit.inference.counts.posterior import RuleFamily, limit_rules, plan_for_rules, subset_rules
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
from tacit.runs.atomic_write import atomic_write
from tacit.runs.files import read_json, write_json
from tacit.runs.settings_file import keep_settings

COMBINATION = ("objective", "votes", "reading")
COLUMNS: tuple[str, ...] = (
    *("task", *COMBINATION, "experts", "confidence", "datasets"),
    *("violation", "violation_low", "violation_high", "reward"),
    *("joint_coverage", "pointwise_coverage", "distance_to_oracle"),
)
DRAWN = tuple(column for column in COLUMNS if column != "datasets")
Row = Mapping[str, Any]
LABEL = "coverage"
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CoverageSettings:
    """The sizes of the coverage experiment.

    Fields:
        confidences: the levels lambda.
        experts: numbers of demonstrations N.
        datasets: independent data sets per cell.
        candidates: cells of a grid that may be forbidden, as far as the exact posterior knows.
        seed: of all data sets.
    """

    confidences: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    experts: tuple[int, ...] = (5, 20, 100)
    datasets: int = 50
    candidates: int = 12
    seed: int = 0

    @classmethod
    def quick(cls) -> "CoverageSettings":
        """Ten data sets, which take minutes instead of a quarter of an hour."""
        return cls(datasets=10, candidates=10)


def lab_tasks() -> list[TabularTask]:
    """The chain and two grids, each at two reward scales."""
    return [
        *(chain(reward_scale=scale) for scale in (1.0, 3.0)),
        *(
            grid_world(layout, reward_scale=scale)
            for layout in ("open", "gate")
            for scale in (1.0, 3.0)
        ),
    ]


def methods() -> list[TableMethod]:
    """Both methods of tables, with every combination of objective, votes and reading."""
    return [
        *(
            Counts(votes=votes, reading=reading)
            for votes in COUNTED_VOTES
            for reading in ("graded", "hard", "soft")
        ),
        *(
            Likelihood(objective=objective, votes=votes, reading=reading)
            for objective in ("evidence", "quantile")
            for votes in LEARNED_VOTES
            for reading in ("graded", "hard", "soft")
        ),
    ]


def possible_rules(task: TabularTask, candidates: int) -> RuleFamily:
    """The rules that the exact posterior weighs: limits on a chain, subsets of cells in a grid.

    Candidates are the forbidden cells and then allowed ones, the most tempting first.
    """
    if task.positions is not None and (task.positions[:, 0] == task.positions[0, 0]).all():
        return limit_rules(task)
    visits = unconstrained_visits(task)
    order = np.lexsort((-visits, task.allowed))
    order = order[(task.initial[order] == 0) & ((task.rewards[order] != 0).any(axis=1))]
    return subset_rules(task, order[:candidates])


def run_coverage(
    out: Path,
    settings: CoverageSettings,
    *,
    tasks: list[TabularTask] | None = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Run the experiment into the folder `out`, or go on where an earlier run was stopped.

    Writes settings.json, one file per cell (task and number of demonstrations) as soon as it is
    known, and at the end coverage.csv and coverage.svg.
    The tasks are those of the lab by default. `progress` is told how many cells are finished, of
    how many, and which is next; `notice` if the folder was begun with other versions of libraries.
    """
    tasks = tasks or lab_tasks()
    asked = {**asdict(settings), "tasks": [identity(task) for task in tasks]}
    say, tell = notice or (lambda sentence: None), progress or (lambda *_: None)
    for sentence in keep_settings(out / "settings.json", asked, LABEL):
        say(sentence)
    rows: list[dict[str, Any]] = []
    total = len(tasks) * len(settings.experts)
    for place, task in enumerate(tasks):
        setting = None
        for turn, number in enumerate(settings.experts):
            file = out / "cells" / f"{identity(task).replace(' ', '-')}-{number}.json"
            tell(place * len(settings.experts) + turn, total, f"{task.name}, N = {number}")
            if not file.exists():
                setting = setting or prepare(task, settings)
                write_json(file, run_cell(setting, number, settings))
            rows += read_json(file)
    write_csv(out / "coverage.csv", rows)
    figure = coverage_panels(rows, objective="counts", votes="visits", reading="graded")
    with atomic_write(out / "coverage.svg") as part:
        figure.savefig(part, format="svg", metadata={"Date": None})
    tell(total, total, "done")
    return rows


def prepare(task: TabularTask, settings: CoverageSettings) -> Setting:
    """Prepare the parts that the cells of one task share."""
    return Setting(
        task=task,
        expert=train_expert(task),
        reachable=reachable_queries(task),
        rule_experts=plan_for_rules(possible_rules(task, settings.candidates)),
        confidences=np.array(settings.confidences),
    )


def run_cell(setting: Setting, number: int, settings: CoverageSettings) -> list[dict[str, Any]]:
    """Collect the data sets, and measure all rows for one task and one number."""
    # The task's own checksum, so that its data do not depend on which others are run.
    stream = np.random.SeedSequence(
        [settings.seed, zlib.crc32(identity(setting.task).encode()), number]
    ).generate_state(settings.datasets, np.uint64)
    data_sets = [collect(setting.expert, number, seed=int(seed)) for seed in stream]
    return measure(setting, data_sets, methods())


def identity(task: TabularTask) -> str:
    """The task's name and a checksum of its numbers: names alone may repeat."""
    arrays = (task.transitions, task.rewards, task.costs, task.initial)
    numbers = f"{task.horizon} {task.temperature!r} {task.budget!r} {task.rule_on}".encode()
    return f"{task.name} {zlib.crc32(b''.join(map(np.ndarray.tobytes, arrays)) + numbers):08x}"


def write_csv(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write the table, whole or not at all."""
    with atomic_write(file) as part, part.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {key: f"{row[key]:.6g}" if isinstance(row[key], float) else row[key] for key in row}
            )


def coverage_panels(
    rows: Iterable[Row],
    *,
    objective: str | None = None,
    votes: str | None = None,
    reading: str | None = None,
) -> Figure:
    """Draw violation, reward, coverage and distance to the oracle for one way of learning.

    Rows are mappings, one per task, number of demonstrations (`experts`) and confidence, with the
    keys in `DRAWN`. Of objective, votes and reading, the first in the rows is shown unless given.
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
        missing = [key for key in DRAWN if key not in row]
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
    means = summarise(groups, np.mean)
    axes.vlines(
        numbers,
        summarise(groups, np.min),
        summarise(groups, np.max),
        color=[colours[number] for number in numbers],
        linewidth=1.4,
    )
    axes.plot(numbers, means, color=QUIET, linewidth=1.2, zorder=2, label="distance to oracle")
    axes.scatter(numbers, means, s=26, color=[colours[number] for number in numbers], zorder=3)
    axes.set_ylim(bottom=0)
    number_axis(axes, numbers)


def summarise(groups: Sequence[np.ndarray], function: Callable[..., Any]) -> np.ndarray:
    """One number per group, missing values left out; NaN for a group with nothing else."""
    known = [group[~np.isnan(group)] for group in groups]
    return np.array([float(function(group)) if len(group) else np.nan for group in known])


def label_edges(places: np.ndarray, tasks: Sequence[str]) -> None:
    """Write titles over the first row, x labels under the last, task names at the left."""
    titles = ("Violation", "Reward", "Coverage", "Distance to oracle")
    below = ("confidence", "confidence", "confidence", "demonstrations")
    for top, bottom, title, across in zip(places[0], places[-1], titles, below, strict=True):
        top.set_title(title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK)
        bottom.set_xlabel(across, fontsize=TICK_SIZE, color=INK)
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
