"""One look for all figures: colours that colour-blind readers can tell apart, quiet axes.

Figures are made of plain arrays, without pyplot and its global state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from tacit.errors import ArgumentError
from tacit.runs.atomic_write import atomic_write

WIDTH = 9.4  # inches; at 96 pixels an inch it fills the page's text width
TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 10.5, 9.5, 8.5
SHARES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

INK, QUIET, GRID, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"
# After Okabe and Ito's palette for readers with any kind of colour vision.
BLUE, GREEN, VERMILION, PURPLE = "#0072b2", "#009e73", "#d55e00", "#aa4499"
BROKEN = "#fbe3d6"
WALL = "#3e4c59"

FEASIBILITY_COLOURS = LinearSegmentedColormap.from_list(
    "feasibility", ["#b83b12", "#e8956f", "#f7f3ec", "#8bbad6", "#1b6ca8"], N=64
)
# Few to many: light to dark, ordered in grey as well, so that it survives a black-and-white print.
ORDERED_COLOURS = LinearSegmentedColormap.from_list(
    "ordered", ["#e8a33d", "#c8577b", "#7b4ba0", "#24306e"]
)


def new_figure(height: float, *, width: float = WIDTH, compressed: bool = False) -> Figure:
    """An empty figure of `width` x `height` inches that arranges its parts without overlaps.

    `compressed` closes the gaps that panels with square cells would leave.
    """
    layout = "compressed" if compressed else "constrained"
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout=layout)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.08, h_pad=0.06, wspace=0.04, hspace=0.05)  # type: ignore[call-arg]
    return figure


def style_axes(axes: Axes, *, title: str = "", across: str = "", up: str = "") -> None:
    """Set title (at the left) and names of the axes, a light horizontal grid, and no box."""
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#9aa5b1")
    axes.tick_params(labelsize=TICK_SIZE, colors=QUIET, labelcolor=INK, width=0.8, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    set_title(axes, title)
    axes.set_xlabel(across, fontsize=LABEL_SIZE, color=INK, parse_math=False)
    axes.set_ylabel(up, fontsize=LABEL_SIZE, color=INK, parse_math=False)


def set_title(axes: Axes, title: str) -> None:
    """Set a bold title over the left edge; dollar signs in it mean dollars, not mathematics."""
    axes.set_title(
        title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK, parse_math=False
    )


def confidence_axis(axes: Axes, confidences: np.ndarray, *, ticks: int = 9) -> None:
    """Show confidence levels on the x axis in percent, with a little air at both ends."""
    lowest, highest = float(confidences.min()), float(confidences.max())
    air = 0.04 * (highest - lowest) or 0.1
    axes.set_xlim(max(0.0, lowest - air), min(1.0, highest + air))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(percent)


def percent(share: float, _: float | None = None) -> str:
    """A share in percent for the ticks of an axis: 0.125 as 12.5%."""
    return f"{round(100 * share, 6):g}%".replace("-", "−")


def share_axis(axes: Axes) -> None:
    """Show shares on the y axis, from 0 to 100 percent."""
    axes.set_ylim(-0.02, 1.04)
    axes.yaxis.set_major_formatter(percent)


def stretched_share_axis(axes: Axes, top: float) -> None:
    """Show shares on the y axis so that small ones matter: 1 percent can be told from 3.

    Heights are square roots of shares, which is also the scale on which shares of any size are
    known equally well.
    """
    axes.set_yscale("function", functions=(signed_root, signed_square))
    marks = [mark for mark in SHARES if mark <= top] or [0.0, top]
    axes.set_yticks(marks)
    axes.yaxis.set_major_formatter(percent)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(-0.0004, top)


def signed_root(values: np.ndarray) -> np.ndarray:
    """Square root of the size, with the sign kept."""
    return np.sign(values) * np.sqrt(np.abs(values))


def signed_square(values: np.ndarray) -> np.ndarray:
    """The inverse of `signed_root`."""
    return np.sign(values) * np.square(values)


def legend_below(axes: Axes) -> None:
    """Put a legend under the axes, where it covers no data."""
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=2,
        frameon=False,
        fontsize=TICK_SIZE,
        labelcolor=INK,
    )


def legend_under(figure: Figure, handles: Sequence[Artist], *, columns: int) -> None:
    """Put a legend under the whole figure."""
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=TICK_SIZE,
        labelcolor=INK,
    )


def ordered_colours(number: int) -> list[str]:
    """`number` colours from few (light) to many (dark)."""
    places = np.linspace(0.0, 1.0, number) if number > 1 else np.array([0.75])
    return [
        "#" + "".join(f"{round(255 * part):02x}" for part in ORDERED_COLOURS(float(place))[:3])
        for place in places
    ]


@dataclass(frozen=True, eq=False)
class Band:
    """Values [n] with the lower and upper ends [n] of their intervals."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __post_init__(self) -> None:
        for field in ("value", "low", "high"):
            object.__setattr__(self, field, numbers_of(field, getattr(self, field)))
        if not len(self.value) == len(self.low) == len(self.high):
            raise ArgumentError(
                f"a band needs as many lower and upper ends as values, not {len(self.low)} and "
                f"{len(self.high)} for {len(self.value)}"
            )

    def in_order(self, order: np.ndarray) -> "Band":
        """The same band with its points rearranged."""
        return Band(self.value[order], self.low[order], self.high[order])


def numbers_of(field: str, values: object) -> np.ndarray:
    """A float64 vector with at least one entry; None counts as missing (NaN)."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{field} is not a list of numbers: {error}") from None
    if array.ndim != 1 or not len(array):
        raise ArgumentError(f"{field} must be a list of numbers, not of shape {list(array.shape)}")
    return array


def sorted_bands(
    field: str, places: Sequence[float] | np.ndarray, *bands: Band
) -> tuple[np.ndarray, list[Band]]:
    """The places on the x axis in rising order, and the bands in that order too."""
    array = numbers_of(field, places)
    for band in bands:
        if len(band.value) != len(array):
            raise ArgumentError(f"there are {len(array)} {field} but {len(band.value)} values")
    order = np.argsort(array, kind="stable")
    return array[order], [band.in_order(order) for band in bands]


def draw_band(
    axes: Axes, places: np.ndarray, band: Band, *, colour: str, label: str, marker: str = "o"
) -> Line2D:
    """Draw the intervals as a tinted band with whiskers, and the values as a line with markers."""
    axes.fill_between(places, band.low, band.high, color=colour, alpha=0.18, linewidth=0, zorder=2)
    axes.vlines(places, band.low, band.high, color=colour, alpha=0.55, linewidth=1.2, zorder=2.5)
    (line,) = axes.plot(
        places,
        band.value,
        color=colour,
        linewidth=1.8,
        marker=marker,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.8,
        label=label,
        zorder=3,
    )
    return line


def write_png(file: Path, figure: Figure) -> None:
    """Write a picture, whole or not at all."""
    with atomic_write(file) as part:
        figure.savefig(part, format="png", dpi=150)
