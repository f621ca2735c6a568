"""Which gap do real drivers keep? Learns it from recordings and shows it at several confidences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.task import SimulatedTask
from tacit.highway.driving import highway_of
from tacit.highway.neighbours import SIGHT
from tacit.highway.observation import GAP_AHEAD, OBSERVATION_NAMES, SPEED, gap_and_speed
from tacit.highway.recorded_drivers import Recovered, drive
from tacit.highway.recording import RecordingError
from tacit.inference.infer import infer
from tacit.inference.reach.limits import Rule
from tacit.inference.reach.method import Reach
from tacit.inference.result import Result
from tacit.reports.feasibility import feasibility_curve
from tacit.reports.page import Fact, Page, Section
from tacit.reports.style import INK, new_figure, style_axes
from tacit.reports.table import Table
from tacit.runs.resumable_run import ProgressCallback

SHOWN_POINTS = 4000
TIME_GAP = len(OBSERVATION_NAMES)
"""The place of the time gap, after the observation's own quantities."""
METHOD = Reach(
    votes="visits-fallible",
    ratios=(f"{GAP_AHEAD}/{SPEED[0]}",),
    about=(GAP_AHEAD, TIME_GAP),
    temptation=0.5,
    start="clone",
)
"""Drivers err, so that the behaviour of one of them proves nothing. They keep a distance for their
speed, so that the time gap is measured too; rules may be about the two gaps alone. The policy
begins as a clone: it does not learn driving from nothing in a few million steps, and one that
crashes at once keeps no gap."""
NAMES = (*OBSERVATION_NAMES, "time gap ahead")
UNITS = {GAP_AHEAD: "m", TIME_GAP: "s"}
WORLDS, STEPS = 512, 3_000_000
"""A quarter of the worlds show how far policies would go, as shares of episodes; fewer worlds would
make these coarse. With a third of the steps policies come less close than people do, and there may
be no rule."""


@dataclass(frozen=True, eq=False)
class Drivers:
    """The constraint that recorded drivers taught, with all that its page needs.

    Fields:
        task: their traffic.
        recovered: their drives, and how exactly they were replayed.
        result: the constraint, and a policy that keeps it at the highest confidence.
        levels: the confidences to show, rising.
    """

    task: SimulatedTask
    recovered: Recovered
    result: Result
    levels: tuple[float, ...]

    @property
    def demonstrations(self) -> Trajectories:
        """Their drives as demonstrations."""
        return self.recovered.trajectories


def learn_from_drivers(
    task: SimulatedTask,
    *,
    confidences: Sequence[float] = (0.5, 0.9),
    forward: PPO | None = None,
    seed: int = 0,
    folder: Path | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> Drivers:
    """Learn from all drivers of a driving task, once, at the highest confidence.

    The task is as `make("HighwayDistance", recordings=..., split="all", egos="all")` makes it, the
    settings of PPO are those of `driving_settings` unless given.
    """
    recovered = drive(highway_of(task))
    if not len(following(recovered.trajectories)):
        raise RecordingError("no recorded driver ever has a leader within 100 m: nothing to learn")
    levels = tuple(sorted(confidences))
    result = infer(
        task,
        recovered.trajectories,
        method=METHOD,
        confidence=levels[-1],
        seed=seed,
        forward=forward or driving_settings(task),
        folder=folder,
        threads=threads,
        progress=progress,
    )
    return Drivers(task, recovered, result, levels)


def driving_settings(task: SimulatedTask, steps: int | None = None) -> PPO:
    """The task's settings of PPO with more worlds and as large a batch."""
    forward = Reach.forward(task)
    rollout = max(forward.batch // WORLDS, 1)
    return replace(forward, worlds=WORLDS, rollout=rollout, steps=steps or STEPS)


def following(demonstrations: Trajectories) -> Float[np.ndarray, "n 2"]:
    """(gap, speed) of every step with a leader in sight."""
    seen = np.concatenate([episode.observations for episode in demonstrations])
    pairs = np.stack(gap_and_speed(seen), axis=1)
    return pairs[pairs[:, 0] < SIGHT]


def feasibility_at(
    drivers: Drivers, gaps: Float[np.ndarray, " n"], speeds: Float[np.ndarray, " n"], level: float
) -> Float[np.ndarray, " n"]:
    """Feasibility of an ordinary moment of the drivers, but for its gap and its speed."""
    observations = np.tile(ordinary_moment(drivers), (len(gaps), 1))
    observations[:, GAP_AHEAD] = gaps
    observations[:, SPEED[0]], observations[:, SPEED[1]] = speeds, 0
    actions = np.zeros((len(gaps), 2), np.float32)
    return drivers.result.constraint.feasibility(observations, actions, level)


def ordinary_moment(drivers: Drivers) -> Float[np.ndarray, " 74"]:
    """Of the moments in the middle of the drives the one that most experts speak for."""
    demonstrations = drivers.demonstrations
    middle = demonstrations.lengths // 2
    moments = demonstrations.observations[np.arange(len(middle)), middle].astype(np.float32)
    actions = np.zeros((len(moments), 2), np.float32)
    return moments[drivers.result.constraint.evidence(moments, actions, most=1).votes_for.argmax()]


def held_gap(drivers: Drivers, level: float, quantity: int = GAP_AHEAD) -> Rule | None:
    """The rule that keeps drivers from coming closer, in metres or in seconds, if there is one."""
    return next(
        (
            rule
            for rule in drivers.result.constraint.rules(level)
            if rule.quantity == quantity and rule.side == "below"
        ),
        None,
    )


def held(drivers: Drivers, level: float, quantity: int) -> str:
    """The limit of `held_gap` in words."""
    rule = held_gap(drivers, level, quantity)
    return "not found" if rule is None else f"{rule.limit:.2f} {UNITS[quantity]}"


def drivers_page(drivers: Drivers) -> Page:
    """The rules in words, feasibility against gap and speed, and against the gap alone."""
    pairs = following(drivers.demonstrations)
    gaps = [
        Fact(
            f"{kind} that most hold to",
            held(drivers, level, quantity),
            f"at confidence {level:g}",
            tone="bad" if held_gap(drivers, level, quantity) is None else "plain",
        )
        for quantity, kind in ((GAP_AHEAD, "gap"), (TIME_GAP, "time gap"))
        for level in drivers.levels
    ]
    return Page(
        title="What do these drivers hold to?",
        lead=(
            "Recorded drivers became demonstrations. A policy that is paid for arriving alone was "
            "let loose on the same roads. Where it stays, most drivers could have stayed too; "
            "those who did not speak against being there."
        ),
        facts=[
            Fact("drivers", str(len(drivers.demonstrations))),
            *gaps,
            Fact(
                "gap of half of all moments",
                f"{np.median(pairs[:, 0]):.1f} m or less",
                "of those with a leader",
            ),
            Fact("replayed within", f"{100 * drivers.recovered.error:.1f} cm"),
        ],
        sections=[map_section(drivers, pairs), gap_section(drivers), rules_section(drivers)],
        foot="Feasibility is read off one belief at each confidence. Only the gap and the time gap "
        "were asked about. To be somewhere means to stay there for a twentieth of a drive, and "
        "three steps at least. One seed.",
    )


def map_section(drivers: Drivers, pairs: Float[np.ndarray, "n 2"]) -> Section:
    """Gap and speed together."""
    gaps = np.linspace(0, 40, 161)
    speeds = np.linspace(0, max(1.4 * float(pairs[:, 1].max()), 1.0), 121)
    across, up = np.meshgrid(gaps, speeds)
    maps = {
        level: feasibility_at(drivers, across.ravel(), up.ravel(), level).reshape(across.shape)
        for level in drivers.levels
    }
    shown = pairs[:: max(len(pairs) // SHOWN_POINTS, 1)]
    return Section(
        heading="Gap and speed",
        text="Blue: one is sure enough that most drivers who could be there would. Red: most could "
        "have been there and were not. In between: as likely as not, or nothing is known. An "
        "upright border is a gap in metres, a slanting one a gap in seconds.",
        figure=driving_map(gaps, speeds, maps, shown),
        caption="Learned feasibility against the gap to the leader and the own speed. Points: "
        "moments of the recorded drivers.",
    )


def driving_map(
    gaps: Float[np.ndarray, " g"],
    speeds: Float[np.ndarray, " s"],
    maps: Mapping[float, Float[np.ndarray, "s g"]],
    seen: Float[np.ndarray, "n 2"],
) -> Figure:
    """One panel for each confidence: blue where driving is held to be feasible, red where not.

    Gaps are in metres, speeds in m/s; what drivers had (`seen`) is drawn as points.
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


def gap_section(drivers: Drivers) -> Section:
    """The gap alone, at the usual speed."""
    pairs = following(drivers.demonstrations)
    gaps = np.linspace(0, 40, 801)
    usual = np.full_like(gaps, np.median(pairs[:, 1]))
    smallest = np.array([e.observations[:, GAP_AHEAD].min() for e in drivers.demonstrations])
    return Section(
        heading="The gap alone",
        text="One line for each confidence: the more is asked for, the more drivers must have "
        "stayed as close.",
        figure=feasibility_curve(
            gaps,
            {level: feasibility_at(drivers, gaps, usual, level) for level in drivers.levels},
            smallest[smallest < gaps[-1]],
            quantity="gap to the leader (m)",
        ),
        caption=f"Feasibility against the gap at the median speed, {usual[0]:.1f} m/s. Ticks: the "
        "smallest gap of each driver.",
    )


def rules_section(drivers: Drivers) -> Section:
    """All rules at every confidence, by name."""
    rows = [
        [
            f"{level:g}",
            NAMES[rule.quantity],
            "at least" if rule.side == "below" else "at most",
            f"{rule.limit:.2f} {UNITS[rule.quantity]}",
            f"{rule.experts}",
            f"{rule.against:.0f}",
        ]
        for level in drivers.levels
        for rule in drivers.result.constraint.rules(level)
    ]
    columns = ["confidence", "quantity", "", "limit", "drivers who went so far", "against further"]
    return Section(
        heading="In words",
        text="At least: most of those who were tempted did not come closer. At most: policies hang "
        "back more than people do, which is hardly a rule of the road.",
        table=Table(columns, rows),
    )
