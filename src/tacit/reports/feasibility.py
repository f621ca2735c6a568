"""Pictures of feasibility: maps of rules on tables, and curves against one quantity."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_environment import cells_of
from tacit.errors import ArgumentError
from tacit.reports.style import (
    BLUE,
    BROKEN,
    FEASIBILITY_COLOURS,
    INK,
    LABEL_SIZE,
    QUIET,
    TICK_SIZE,
    VERMILION,
    WALL,
    WIDTH,
    legend_under,
    new_figure,
    ordered_colours,
    set_title,
    share_axis,
    style_axes,
)

TOLERANCE = 1e-6
MOST_IN_A_ROW = 4
LETTERS_PER_INCH = 9  # of a title


@dataclass(frozen=True, eq=False)
class MapPanel:
    """One map: a title, and the feasibility [queries] of each state (or state-action pair)."""

    title: str
    feasibility: np.ndarray


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the states of a task lie on its map.

    Arguments:
        cells: [S, 2] row and column of each state, from 0.
        shape: number of rows and columns.
        filled: [rows, columns] True where a state lies; the rest is wall.
        forbidden: [rows, columns] True where the true rule forbids something.
    """

    cells: np.ndarray
    shape: tuple[int, int]
    filled: np.ndarray
    forbidden: np.ndarray


def constraint_maps(task: TabularTask, panels: Sequence[MapPanel]) -> Figure:
    """A row of maps that show how allowed each state is: 0 forbidden, 1 allowed.

    Truly forbidden cells are hatched and outlined in every panel, so that a learned rule can be
    compared with the true one. Maps of a single row are stacked. A rule on state-action pairs is
    shown by its mean over actions.
    """
    if not panels:
        raise ArgumentError("constraint_maps needs at least one panel")
    grid = lay_out(task)
    flat = grid.shape[0] == 1
    columns = 1 if flat else min(len(panels), MOST_IN_A_ROW)
    rows = -(-len(panels) // columns)
    width, height = figure_size(grid, rows, columns)
    figure = new_figure(height, width=width, compressed=not flat)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    shown = list(places[: len(panels)])
    line = max(8, int(width / columns * LETTERS_PER_INCH))
    meshes = [
        draw_map(axes, task, grid, panel, line) for axes, panel in zip(shown, panels, strict=True)
    ]
    if flat:
        label_columns(shown, grid.shape[1])
    add_colour_bar(figure, meshes[0], list(places), pairs=task.rule_on == "pair", wide=flat)
    add_legend(figure, task, grid)
    return figure


def lay_out(task: TabularTask) -> Grid:
    """The map of a task; a task without positions becomes a strip."""
    cells = cells_of(task)
    rows, columns = (int(size) for size in cells.max(axis=0) + 1)
    filled, forbidden = np.zeros((rows, columns), bool), np.zeros((rows, columns), bool)
    filled[tuple(cells.T)] = True
    forbidden[tuple(cells[(task.costs > 0).any(axis=1)].T)] = True
    return Grid(cells, (rows, columns), filled, forbidden)


def figure_size(grid: Grid, rows: int, columns: int) -> tuple[float, float]:
    """Inches that let cells be square in grids, and strips be tall enough to read."""
    if grid.shape[0] == 1:
        return WIDTH, 1.35 + 0.72 * rows
    tallness = grid.shape[0] / grid.shape[1]
    width = max(min((WIDTH - 1.3) / columns, 3.6, 5.5 / tallness), 1.2)
    height = min((width - 0.15) * tallness, 5.5) + 0.45
    return max(1.3 + columns * width, 4.5), 0.45 + rows * height


def draw_map(axes: Axes, task: TabularTask, grid: Grid, panel: MapPanel, line: int) -> QuadMesh:
    """Draw coloured cells, walls, hatched truth, start and goal; `line` letters of title a line."""
    rows, columns = grid.shape
    axes.set_facecolor(WALL)
    mesh = axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        on_map(task, grid, panel),
        cmap=FEASIBILITY_COLOURS,
        vmin=0,
        vmax=1,
        edgecolor="white",
        linewidth=min(0.5, 4 / max(grid.shape)),
    )
    hatch_forbidden(axes, grid)
    mark_ends(axes, task, grid)
    axes.set_aspect("auto" if rows == 1 else "equal")
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(QUIET)
    set_title(axes, panel.title if rows == 1 else textwrap.fill(panel.title, line))
    return mesh


def on_map(task: TabularTask, grid: Grid, panel: MapPanel) -> np.ma.MaskedArray:
    """[rows, columns] feasibility, the mean of what falls on a cell; walls are masked."""
    values = np.asarray(panel.feasibility, dtype=np.float64)
    if values.shape != (task.number_of_queries,):
        raise ArgumentError(
            f"the panel {panel.title!r} needs {task.number_of_queries} values of feasibility, "
            f"not an array of shape {list(values.shape)}"
        )
    if not ((values >= -TOLERANCE) & (values <= 1 + TOLERANCE)).all():
        raise ArgumentError(f"the feasibility of the panel {panel.title!r} must lie in [0, 1]")
    values = task.on_pairs(values).mean(axis=1)
    total, number = np.zeros(grid.shape), np.zeros(grid.shape)
    np.add.at(total, tuple(grid.cells.T), values)
    np.add.at(number, tuple(grid.cells.T), 1)
    return np.ma.masked_array(total / np.maximum(number, 1), mask=~grid.filled)


def hatch_forbidden(axes: Axes, grid: Grid) -> None:
    """Draw diagonals through truly forbidden cells, and a line around the region they form."""
    cells = np.argwhere(grid.forbidden)
    half = np.array([[[-0.5, 0.5], [0.5, -0.5]]])
    # A long strip has more cells than lines can be told apart.
    centres = cells[:: 1 + grid.shape[1] // 60 if grid.shape[0] == 1 else 1, None, ::-1]
    axes.add_collection(
        LineCollection(list(centres + half), colors=INK, linewidths=0.8, alpha=0.75)
    )
    padded = np.pad(grid.forbidden, 1)
    around = []
    for (down, right), ends in {
        (-1, 0): ((-0.5, -0.5), (0.5, -0.5)),
        (1, 0): ((-0.5, 0.5), (0.5, 0.5)),
        (0, -1): ((-0.5, -0.5), (-0.5, 0.5)),
        (0, 1): ((0.5, -0.5), (0.5, 0.5)),
    }.items():
        open_side = cells[~padded[cells[:, 0] + 1 + down, cells[:, 1] + 1 + right]]
        around += list(open_side[:, None, ::-1] + np.array([ends]))
    outline = LineCollection(around, colors=INK, linewidths=1.8, capstyle="round", clip_on=False)
    outline.set_zorder(4)
    axes.add_collection(outline)


def mark_ends(axes: Axes, task: TabularTask, grid: Grid) -> None:
    """Write S where episodes may start (at most ten places), and G at the goals."""
    size = float(np.clip(150 / max(grid.shape), 7.5, 13))
    for letter, states in (("S", starts_of(task)), ("G", goals_of(task))):
        for row, column in grid.cells[states]:
            axes.text(
                column,
                row,
                letter,
                ha="center",
                va="center_baseline",
                fontsize=size,
                fontweight="bold",
                color=INK,
                zorder=5,
                bbox={"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": "none"},
            )


def starts_of(task: TabularTask) -> np.ndarray:
    """The states where episodes start, or none if there are too many to mark."""
    starts = np.flatnonzero(task.initial > 0)
    return starts if len(starts) <= 10 else starts[:0]


def goals_of(task: TabularTask) -> np.ndarray:
    """The states that are never left and pay the highest reward of all."""
    states = np.arange(task.number_of_states)
    keeps = (task.transitions[states, :, states] >= 1 - TOLERANCE).all(axis=1)
    return np.flatnonzero(keeps & (task.rewards.max(axis=1) >= task.rewards.max() - TOLERANCE))


def label_columns(shown: Sequence[Axes], columns: int) -> None:
    """Write state numbers under the lowest of the stacked strips."""
    step = max(1, round(columns / 10 / 5) * 5) if columns > 10 else 1
    for axes in shown:
        axes.set_xticks(np.arange(0, columns, step))
        axes.tick_params(labelsize=TICK_SIZE, labelcolor=INK, colors=QUIET, labelbottom=False)
    shown[-1].tick_params(labelbottom=True)
    shown[-1].set_xlabel("state number", fontsize=LABEL_SIZE, color=INK)


def add_colour_bar(
    figure: Figure, mesh: QuadMesh, places: list[Axes], *, pairs: bool, wide: bool
) -> None:
    """Add the scale from forbidden to allowed, in words and numbers."""
    bar = figure.colorbar(
        mesh, ax=places, fraction=0.04, pad=0.015, aspect=12 if wide else 22, shrink=0.95
    )
    bar.set_ticks(
        [0, 0.25, 0.5, 0.75, 1], labels=["0 forbidden", "0.25", "0.5", "0.75", "1 allowed"]
    )
    bar.ax.tick_params(labelsize=TICK_SIZE, labelcolor=INK, colors=QUIET, length=2)
    label = "feasibility, mean over actions" if pairs else "feasibility"
    bar.set_label(label, fontsize=LABEL_SIZE, color=INK)
    bar.outline.set_visible(False)  # type: ignore[operator]
    if bar.solids is not None:
        bar.solids.set_rasterized(False)
        bar.solids.set_edgecolor("face")


def add_legend(figure: Figure, task: TabularTask, grid: Grid) -> None:
    """Explain the marks that occur, under the maps."""
    forbidden = "truly forbidden" + (" for some action" if task.rule_on == "pair" else "")
    hatched = Patch(facecolor="none", edgecolor=INK, hatch="//", label=forbidden)
    handles: list[Patch | Line2D] = [hatched] if grid.forbidden.any() else []
    if not grid.filled.all():
        handles.append(Patch(facecolor=WALL, label="wall"))
    for letter, word, states in (("S", "start", starts_of(task)), ("G", "goal", goals_of(task))):
        if len(states):
            marker = rf"$\mathbf{{{letter}}}$"
            look = {"linestyle": "none", "markersize": 8, "markeredgewidth": 0, "color": INK}
            handles.append(Line2D([], [], marker=marker, label=word, **look))
    if handles:
        legend_under(figure, handles, columns=len(handles))


def feasibility_curve(
    values: Float[np.ndarray, " n"],
    curves: Mapping[float, Float[np.ndarray, " n"]],
    experts: Float[np.ndarray, " N"],
    *,
    quantity: str,
    forbidden_below: float | None = None,
) -> Figure:
    """Feasibility against a quantity, one line for each confidence, and where experts turned back.

    Arguments:
        values: of the quantity.
        curves: confidence -> feasibility at these values.
        experts: the lowest value that each expert went to.
        quantity: its name, with the unit.
        forbidden_below: where the true rule is known, its limit.
    """
    figure = new_figure(3.6, width=6.4)
    axes = figure.subplots()
    style_axes(axes, title="What was learned", across=quantity, up="feasibility")
    if forbidden_below is not None:
        axes.axvspan(
            values.min(), forbidden_below, color=BROKEN, zorder=0.5, label="truly forbidden"
        )
    for (level, feasibility), colour in zip(
        curves.items(), ordered_colours(len(curves)), strict=True
    ):
        axes.plot(values, feasibility, color=colour, linewidth=1.8, label=f"confidence {level:g}")
    ticks = np.full(len(experts), -0.03)
    axes.plot(experts, ticks, "|", color=INK, markersize=7, label="where an expert turned back")
    share_axis(axes)
    axes.set_ylim(-0.07, 1.05)
    axes.set_xlim(values.min(), values.max())
    legend_under(figure, axes.get_legend_handles_labels()[0], columns=3)
    return figure


class PostureCurves(Protocol):
    """Feasibility at n values, in postures of both kinds."""

    @property
    def allowed(self) -> Float[np.ndarray, "n m"]: ...  # noqa: D102
    @property
    def forbidden(self) -> Float[np.ndarray, "n k"]: ...  # noqa: D102


def posture_panels(
    values: Float[np.ndarray, " n"],
    panels: Mapping[str, PostureCurves],
    *,
    quantity: str,
    broken: Float[np.ndarray, " m"],
) -> Figure:
    """Feasibility in the postures of those who keep the rule and of those who break it.

    A panel for each name: means, and bands in which nine of ten postures lie.

    Arguments:
        values: of the quantity.
        panels: name of a method -> its curves.
        quantity: its name.
        broken: values of the quantity at which the true rule was broken; their range is tinted.
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(2.5 * rows + 0.5)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, curves) in zip(grid.flat, panels.items(), strict=False):
        style_axes(axes, title=name, across=quantity, up="feasibility")
        axes.axvspan(
            broken.min(), broken.max(), color=BROKEN, zorder=0.5, label="the rule was broken here"
        )
        for label, several, colour in (
            ("postures of those who keep the rule", curves.allowed, BLUE),
            ("of those who break it", curves.forbidden, VERMILION),
        ):
            low, high = np.quantile(several, (0.05, 0.95), axis=1)
            axes.fill_between(values, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(values, several.mean(axis=1), color=colour, linewidth=1.8, label=label)
        share_axis(axes)
        axes.set_ylim(-0.05, 1.05)
        axes.set_xlim(values.min(), values.max())
        axes.label_outer()
    legend_under(figure, grid.flat[0].get_legend_handles_labels()[0], columns=3)
    return figure
