"""Are there enough demonstrations? Reward against their number."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from tacit.errors import ArgumentError
from tacit.reports.style import (
    BLUE,
    PAPER,
    PURPLE,
    VERMILION,
    Band,
    draw_band,
    legend_under,
    new_figure,
    sorted_bands,
    style_axes,
)


def reward_against_number(
    numbers: Sequence[int] | np.ndarray,
    reward: Band,
    wanted: float,
    answers: Sequence[bool] | None = None,
    recommended: tuple[int, int, int] | None = None,
) -> Figure:
    """Reward against the number of demonstrations, and where it reaches the wanted one.

    Arguments:
        numbers: how many demonstrations each point was learned from.
        reward: the reward reached, with its interval.
        wanted: the reward that the user asks for.
        answers: for each point, whether it was "enough": a filled marker, else a hollow one.
        recommended: the recommended number of demonstrations and the ends of its interval.
    """
    places, (band,) = sorted_bands("numbers", numbers, reward)
    if places[0] <= 0:
        raise ArgumentError(f"numbers of demonstrations must be positive, not {places[0]:g}")
    figure = new_figure(4.3, width=7.6)
    axes = figure.subplots()
    style_axes(
        axes,
        title="Are the demonstrations enough?",
        across="number of demonstrations",
        up="reward per episode",
    )
    if recommended is not None:
        draw_recommended(axes, recommended)
    line = draw_band(axes, places, band, colour=BLUE, label="reward reached, with interval")
    level = axes.axhline(
        wanted, color=VERMILION, linestyle="--", linewidth=1.5, label=f"wanted: {wanted:g}"
    )
    handles = [line, level]
    if answers is not None:
        handles += draw_answers(axes, places, band, in_order_of(numbers, answers))
    if recommended is not None:
        handles += [found for found in axes.lines if "recommended" in str(found.get_label())]
    number_axis(axes, places, also=recommended or ())
    legend_under(figure, handles, columns=2)
    return figure


def in_order_of(numbers: Sequence[int] | np.ndarray, answers: Sequence[bool]) -> np.ndarray:
    """The answers, rearranged as the numbers are when sorted."""
    array = np.asarray(answers, dtype=bool)
    if array.shape != (len(numbers),):
        raise ArgumentError(f"there are {len(numbers)} numbers but {array.size} answers")
    return array[np.argsort(np.asarray(numbers), kind="stable")]


def draw_answers(axes: Axes, places: np.ndarray, band: Band, enough: np.ndarray) -> list[Line2D]:
    """Draw filled markers where the answer was "enough", hollow ones where it was not."""
    lines = []
    for chosen, fill, label in (
        (enough, BLUE, "answer: enough"),
        (~enough, PAPER, "answer: not enough"),
    ):
        lines += axes.plot(
            places[chosen],
            band.value[chosen],
            linestyle="none",
            marker="o",
            markersize=9,
            markerfacecolor=fill,
            markeredgecolor=BLUE,
            markeredgewidth=1.8,
            label=label,
            zorder=4,
        )
    return lines


def draw_recommended(axes: Axes, recommended: tuple[int, int, int]) -> None:
    """Draw a line at the recommended number, in a strip from its lower to its upper end."""
    number, low, high = recommended
    if not 0 < low <= number <= high:
        raise ArgumentError(
            f"recommended must be a positive number and the ends of its interval, not {recommended}"
        )
    axes.axvspan(low, high, color=PURPLE, alpha=0.14, linewidth=0, zorder=0.5)
    axes.axvline(
        number,
        color=PURPLE,
        linewidth=1.6,
        label=f"recommended: {number} (between {low} and {high})",
        zorder=1,
    )


def number_axis(
    axes: Axes, numbers: Sequence[float] | np.ndarray, *, also: Sequence[float] = ()
) -> None:
    """Make the x axis logarithmic; it holds `also` and the numbers, written where there is room."""
    axes.set_xscale("log")
    places = np.unique(np.asarray(numbers, dtype=float))
    axes.set_xlim(min([*places, *also]) / 1.18, max([*places, *also]) * 1.18)
    written = [places[0]]
    gap = max((places[-1] / places[0]) ** (1 / 14), 1.04)
    for place in places[1:]:
        if place >= written[-1] * gap:
            written.append(place)
    axes.xaxis.set_major_locator(FixedLocator(written))
    axes.set_xticks(written, [f"{place:,.0f}" for place in written])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
