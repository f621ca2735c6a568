"""Violation and reward against confidence, one line for each number of demonstrations."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from matplotlib.figure import Figure

from tacit.evaluation.intervals import Estimate
from tacit.reports.band import Band, draw_band
from tacit.reports.confidence_curves import ASKED, draw_promise
from tacit.reports.style import (
    confidence_axis,
    legend_under,
    new_figure,
    ordered_colours,
    style_axes,
)


class Measured(Protocol):
    """What was measured at one confidence."""

    @property
    def confidence(self) -> float: ...  # noqa: D102
    @property
    def violation(self) -> Estimate: ...  # noqa: D102
    @property
    def reward(self) -> Estimate: ...  # noqa: D102


class Curve(NamedTuple):
    """A line with its name."""

    label: str
    points: Sequence[Measured]


def number_panels(curves: Sequence[Curve]) -> Figure:
    """Two panels side by side, with intervals and the promise."""
    figure = new_figure(3.9)
    left, right = figure.subplots(1, 2)
    style_axes(
        left,
        title="Violation of the true rule",
        across=ASKED,
        up="episodes that break it\n(axis stretched near 0)",
    )
    style_axes(right, title="Feasible reward", across=ASKED, up="reward per episode")
    places = np.array(sorted({point.confidence for curve in curves for point in curve.points}))
    for axes in (left, right):
        confidence_axis(axes, places)
    draw_promise(left, max(point.violation.high for curve in curves for point in curve.points))
    for curve, colour in zip(curves, ordered_colours(len(curves)), strict=True):
        points = sorted(curve.points, key=lambda point: point.confidence)
        at = np.array([point.confidence for point in points])
        for axes, name in ((left, "violation"), (right, "reward")):
            band = band_of([getattr(point, name) for point in points])
            draw_band(axes, at, band, colour=colour, label=curve.label)
    legend_under(figure, left.get_legend_handles_labels()[0], columns=len(curves) + 1)
    return figure


def band_of(estimates: Sequence[Estimate]) -> Band:
    """Estimates as a band."""
    columns = np.array([(one.value, one.low, one.high) for one in estimates]).T
    return Band(*columns)
