"""A picture of the road around the ego: ego in blue, others in red, gap and speed with limits."""

import io
import math
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from tacit.highway.driving_step import DriveState, HighwayTask
from tacit.highway.neighbours import SIGHT
from tacit.highway.observation import GAP_AHEAD, gap_and_speed, reasons_in
from tacit.highway.scenarios import EGO_LENGTH, EGO_WIDTH

BEHIND, AHEAD = 60.0, 110.0
"""Metres of road that are shown."""
EGO, OTHERS, ROAD, GOAL, BROKEN = "#1f77b4", "#d62728", "#e6e6e6", "#2ca02c", "#b30000"
DOTS_PER_INCH = 100
WIDE, HIGH = 12.0, 2.4


def draw(
    task: HighwayTask, state: DriveState, observation: Float[np.ndarray, " 74"]
) -> UInt8[np.ndarray, "height width 3"]:
    """Draw one frame: travel is to the right, the driver's left is up."""
    figure = Figure(figsize=(WIDE, HIGH), dpi=DOTS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.03, 0.22, 0.95, 0.56))
    s = float(state.position[0])
    draw_road(axes, task, int(state.scenario), s)
    for other in np.asarray(task.frame(state)):
        if other[6] > 0 and abs(other[0] - s) < AHEAD + other[4]:
            axes.add_patch(vehicle(*other[:6].tolist(), colour=OTHERS))
    d, (vs, vd) = float(state.position[1]), np.asarray(state.velocity).tolist()
    axes.add_patch(vehicle(s, d, vs, vd, EGO_LENGTH, EGO_WIDTH, colour=EGO))
    draw_gap(axes, task, s, d, float(observation[GAP_AHEAD]))
    write_state(figure, task, state, observation)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def draw_road(axes: Any, task: HighwayTask, scenario: int, s: float) -> None:
    """Draw lanes, ends of the road and the goal."""
    around = task.around(jnp.int32(scenario))
    lanes = int(around.lanes)
    markings = np.asarray(around.boundaries)[: lanes + 1]
    start, end = float(around.start), float(around.end)
    axes.add_patch(
        Rectangle((start, markings[-1]), end - start, markings[0] - markings[-1], color=ROAD)
    )
    for number, marking in enumerate(markings):
        edge = number in (0, lanes)
        style = "-" if edge else (0, (12, 12))
        axes.plot([start, end], [marking, marking], color="#444444", lw=1.2, ls=style)
    goal = around.goal
    size = (2 * float(goal.along), 2 * float(goal.across))
    axes.add_patch(
        Rectangle(
            (float(goal.s) - size[0] / 2, float(goal.d) - size[1] / 2),
            *size,
            fill=False,
            ec=GOAL,
            lw=2,
        )
    )
    axes.set_xlim(s - BEHIND, s + AHEAD)
    axes.set_ylim(markings[-1] - 1, markings[0] + 1)
    axes.set_yticks([])
    axes.set_xlabel("metres along the road", fontsize=9)
    axes.tick_params(labelsize=8)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def vehicle(
    s: float, d: float, vs: float, vd: float, length: float, width: float, *, colour: str
) -> Polygon:
    """A box that points the way it moves."""
    angle = math.atan2(vd, vs) if math.hypot(vs, vd) > 1e-6 else 0.0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * [length / 2, width / 2]
    return Polygon(corners @ turn.T + [s, d], closed=True, fc=colour, ec="black", lw=0.6, zorder=3)


def draw_gap(axes: Any, task: HighwayTask, s: float, d: float, gap: float) -> None:
    """Draw an arrow from the ego's bumper to its leader."""
    if gap >= SIGHT:
        return
    colour = BROKEN if "distance" in task.constraints and gap < task.gap else "#555555"
    front = s + EGO_LENGTH / 2
    axes.annotate(
        "",
        (front, d),
        (front + gap, d),
        arrowprops={"arrowstyle": "<->", "color": colour, "lw": 1.2},
        zorder=4,
    )


def write_state(
    figure: Figure, task: HighwayTask, state: DriveState, observation: Float[np.ndarray, " 74"]
) -> None:
    """Write gap, speed, time and how the episode ended above the road."""
    gap, speed = gap_and_speed(observation)
    rules = task.constraints
    shown = "no leader within 100 m" if gap >= SIGHT else f"gap {gap:.1f} m"
    limits = {
        "distance": (shown, f" (at least {task.gap:g} m)", gap < task.gap),
        "velocity": (
            f"speed {speed:.1f} m/s",
            f" (at most {task.speed:g} m/s)",
            speed > task.speed,
        ),
    }
    for place, (rule, (text, limit, broken)) in zip((0.03, 0.36), limits.items(), strict=True):
        text, broken = (text + limit, broken) if rule in rules else (text, False)
        colour, weight = (BROKEN, "bold") if broken else ("black", "normal")
        figure.text(place, 0.86, text, fontsize=11, color=colour, weight=weight)
    ended = [reason.replace("_", " ") for reason in reasons_in(observation)]
    seconds = float(task.replay.dt[int(state.scenario)]) * int(state.step)
    about = f"scenario {int(state.scenario)}, {seconds:.1f} s"
    figure.text(0.98, 0.86, ", ".join([about, *ended]), fontsize=11, ha="right")


def animation(frames: Iterator[UInt8[np.ndarray, "height width 3"]], seconds: float) -> bytes:
    """A GIF that shows each frame for some seconds."""
    from PIL import Image

    pictures = [Image.fromarray(frame).quantize(64) for frame in frames]
    out = io.BytesIO()
    pictures[0].save(
        out,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=max(round(1000 * seconds), 20),
        loop=0,
    )
    return out.getvalue()
