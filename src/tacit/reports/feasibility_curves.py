"""Feasibility against one quantity: at several confidences, and in several postures."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from tacit.reports.style import (
    BLUE,
    BROKEN,
    INK,
    VERMILION,
    legend_under,
    new_figure,
    ordered_colours,
    share_axis,
    style_axes,
)


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
