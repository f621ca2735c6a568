"""Feasibility against one quantity: what was learned about it, at several confidences."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from tacit.reports.style import (
    BROKEN,
    INK,
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
    """One line for each confidence; ticks where each expert turned back.

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
