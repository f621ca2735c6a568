"""Feasibility against gap and speed, as a traffic engineer looks at following traffic."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from tacit.reports.style import INK, new_figure, style_axes


def driving_map(
    gaps: Float[np.ndarray, " g"],
    speeds: Float[np.ndarray, " s"],
    maps: Mapping[float, Float[np.ndarray, "s g"]],
    seen: Float[np.ndarray, "n 2"],
) -> Figure:
    """One panel for each confidence: blue where driving is held to be feasible, red where not.

    Arguments:
        gaps: metres to the leader.
        speeds: m/s.
        maps: confidence -> feasibility.
        seen: (gap, speed) of drivers, drawn as points.
    """
    figure = new_figure(3.9, width=8.2)
    panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    drawn = None
    for number, (axes, (level, feasibility)) in enumerate(zip(panels, maps.items(), strict=True)):
        up = "speed (m/s)" if number == 0 else ""
        style_axes(axes, title=f"confidence {level:g}", across="gap to the leader (m)", up=up)
        # As a picture: the many small rectangles of a mesh show seams.
        extent = (gaps[0], gaps[-1], speeds[0], speeds[-1])
        drawn = axes.imshow(
            feasibility, extent=extent, aspect="auto", origin="lower", cmap="RdYlBu",
            vmin=0, vmax=1, interpolation="nearest", zorder=0.5,
        )  # fmt: skip
        axes.plot(*seen.T, ".", color=INK, markersize=1.5, alpha=0.35, zorder=2)
        axes.grid(visible=False)
        axes.set_xlim(gaps[0], gaps[-1])
        axes.set_ylim(speeds[0], speeds[-1])
    assert drawn is not None
    bar = figure.colorbar(drawn, ax=panels, fraction=0.04, pad=0.02)
    bar.set_label("feasibility")
    return figure
