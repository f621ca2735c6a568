"""Violation, reward and coverage against the confidence that was asked for."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.evaluation.intervals import Estimate
from tacit.reports.style import (
    BLUE,
    BROKEN,
    GREEN,
    INK,
    TICK_SIZE,
    VERMILION,
    Band,
    confidence_axis,
    draw_band,
    legend_below,
    legend_under,
    new_figure,
    ordered_colours,
    share_axis,
    sorted_bands,
    stretched_share_axis,
    style_axes,
)

ASKED = "confidence asked for"


def confidence_curves(
    confidences: Sequence[float] | np.ndarray,
    violation: Band,
    reward: Band,
    expert_violation: float,
    expert_reward: float,
) -> Figure:
    """Violation and reward against confidence, side by side, with the experts' own levels.

    The promise is that at confidence c at most 1 - c of the episodes break the rule; the region
    above that line is shaded.
    """
    places, (violation, reward) = sorted_bands("confidences", confidences, violation, reward)
    highest = np.nanmax([*violation.high, *violation.value, expert_violation])
    figure, panels = two_panels(places, "Reward", highest)
    for axes, band, colour, level in zip(
        panels, (violation, reward), (BLUE, GREEN), (expert_violation, expert_reward), strict=True
    ):
        draw_band(axes, places, band, colour=colour, label="learned rule, with interval")
        axes.axhline(level, color=INK, linestyle=":", linewidth=1.5, label="experts", zorder=2.2)
        legend_below(axes)
    return figure


def two_panels(
    places: np.ndarray, reward: str, highest_violation: float
) -> tuple[Figure, tuple[Axes, Axes]]:
    """Axes for the violation, with its promise, and for a reward of that name, side by side."""
    figure = new_figure(3.9)
    left, right = figure.subplots(1, 2)
    up = "episodes that break it\n(axis stretched near 0)"
    style_axes(left, title="Violation of the true rule", across=ASKED, up=up)
    style_axes(right, title=reward, across=ASKED, up="reward per episode")
    for axes in (left, right):
        confidence_axis(axes, places)
    draw_promise(left, highest_violation)
    return figure, (left, right)


def draw_promise(axes: Axes, highest: float) -> None:
    """Draw the line 1 - confidence and shade above it, on a y axis that holds `highest` too."""
    ends = np.linspace(*axes.get_xlim(), 100)
    promise = 1 - ends
    top = float(min(1.02, 1.1 * max(highest, promise[0])))
    stretched_share_axis(axes, top)
    draw_border(axes, ends, promise, 1.2, ("promise: 1 − confidence", "promise broken"))


def draw_border(
    axes: Axes, ends: np.ndarray, border: np.ndarray, beyond: float, words: tuple[str, str]
) -> None:
    """Draw a dashed line and shade from it to `beyond`; `words` name the line and that region."""
    above = beyond > border.max()
    low, high = np.minimum(border, beyond), np.maximum(border, beyond)
    axes.fill_between(ends, low, high, color=BROKEN, linewidth=0, zorder=0.5)
    axes.plot(ends, border, color=VERMILION, linestyle="--", linewidth=1.4, label=words[0])
    axes.text(
        0.97,
        0.95 if above else 0.05,
        words[1],
        transform=axes.transAxes,
        ha="right",
        va="top" if above else "bottom",
        fontsize=TICK_SIZE,
        fontstyle="italic",
        color="#8a3b0b",
        bbox={"facecolor": BROKEN, "edgecolor": "none", "pad": 1.5},
    )


class Measured(Protocol):
    """Violation and reward measured at one confidence."""

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
    """Violation and reward against confidence, one line for each number of demonstrations."""
    places = np.array(sorted({point.confidence for curve in curves for point in curve.points}))
    highest = max(point.violation.high for curve in curves for point in curve.points)
    figure, panels = two_panels(places, "Feasible reward", highest)
    for curve, colour in zip(curves, ordered_colours(len(curves)), strict=True):
        points = sorted(curve.points, key=lambda point: point.confidence)
        at = np.array([point.confidence for point in points])
        for axes, name in zip(panels, ("violation", "reward"), strict=True):
            band = band_of([getattr(point, name) for point in points])
            draw_band(axes, at, band, colour=colour, label=curve.label)
    legend_under(figure, panels[0].get_legend_handles_labels()[0], columns=len(curves) + 1)
    return figure


def band_of(estimates: Sequence[Estimate]) -> Band:
    """Estimates as a band."""
    columns = np.array([(one.value, one.low, one.high) for one in estimates]).T
    return Band(*columns)


def coverage_against_confidence(
    confidences: Sequence[float] | np.ndarray, joint: Band, pointwise: Band
) -> Figure:
    """How often the learned rule was safe, against how often it was asked to be.

    `joint` is the share of data sets in which every state that the learned rule allows is truly
    allowed; `pointwise` is the share of allowed states that are truly allowed. A point on or above
    the diagonal keeps the promise.
    """
    places, (joint, pointwise) = sorted_bands("confidences", confidences, joint, pointwise)
    figure = new_figure(4.7, width=6.4)
    axes = figure.subplots()
    style_axes(
        axes,
        title="Is the learned rule as safe as it says?",
        across="confidence asked for (how often the rule should be safe)",
        up="how often it was safe",
    )
    confidence_axis(axes, places)
    draw_diagonal(axes)
    draw_band(
        axes, places, joint, colour=BLUE, label="whole rule: allows nothing that is forbidden"
    )
    draw_band(
        axes,
        places,
        pointwise,
        colour=GREEN,
        marker="s",
        label="single states: an allowed one is truly allowed",
    )
    share_axis(axes)
    legend_under(figure, axes.get_legend_handles_labels()[0], columns=1)
    return figure


def draw_diagonal(axes: Axes) -> None:
    """Draw the diagonal (as safe as asked for), and shade the region that is less safe."""
    ends = np.array(axes.get_xlim())
    draw_border(axes, ends, ends, -0.1, ("exactly as asked for", "less safe than asked for"))
