"""A measured curve together with the interval around each of its points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tacit.errors import ArgumentError


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
    """The interval as a tinted band with whiskers, the values as a line with markers over it."""
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
