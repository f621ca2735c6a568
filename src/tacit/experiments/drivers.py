"""What real drivers hold to: a constraint learned from recorded people, at several confidences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from tacit.constraints.reach_model import Rule
from tacit.control.ppo import PPO
from tacit.demonstrations.recorded_drivers import Recovered, drive
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.highway.driving import highway_of
from tacit.environments.highway.neighbours import SIGHT
from tacit.environments.highway.observation import FEATURES, GAP_AHEAD, SPEED, gap_and_speed
from tacit.environments.highway.recording import RecordingError
from tacit.environments.task import SimulatedTask
from tacit.inference.infer import infer
from tacit.inference.simulated_result import SimulatedResult
from tacit.reports.driving_map import driving_map
from tacit.reports.feasibility_curve import feasibility_curve
from tacit.reports.page import Fact, Page, Section
from tacit.reports.table import Table
from tacit.runs.continued import Told

SHOWN_RULES = 10
SHOWN_POINTS = 4000


@dataclass(frozen=True, eq=False)
class Drivers:
    """What was learned from recorded drivers.

    Fields:
        task: their traffic.
        recovered: their drives as demonstrations.
        result: the constraint, and a policy that keeps it at the highest confidence.
        levels: the confidences to show, rising.
    """

    task: SimulatedTask
    recovered: Recovered
    result: SimulatedResult
    levels: tuple[float, ...]

    @property
    def demonstrations(self) -> Trajectories:
        """What they did."""
        return self.recovered.trajectories


def learn_from_drivers(
    task: SimulatedTask,
    *,
    confidences: Sequence[float] = (0.5, 0.9),
    forward: PPO | None = None,
    seed: int = 0,
    folder: Path | None = None,
    threads: int | None = None,
    progress: Told | None = None,
) -> Drivers:
    """All drivers of a driving task; learned once, at the highest confidence, read at each.

    Arguments:
        task: e.g. `make("HighwayDistance", recordings=..., split="all", egos="all")`.
        confidences: to read the constraint at.
        forward: settings of PPO; None for those of the task.
        seed: of everything random.
        folder: where to keep the run.
        threads: for the simulator.
        progress: is told the numbers of every update.
    """
    recovered = drive(highway_of(task))
    if not len(following(recovered.trajectories)):
        raise RecordingError("no recorded driver ever has a leader within 100 m: nothing to learn")
    levels = tuple(sorted(confidences))
    result = infer(
        task,
        recovered.trajectories,
        confidence=levels[-1],
        seed=seed,
        forward=forward,
        folder=folder,
        threads=threads,
        progress=progress,
    )
    return Drivers(task, recovered, result, levels)


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


def held_gap(drivers: Drivers, level: float) -> Rule | None:
    """The rule that keeps drivers from coming closer, if one was found."""
    return next(
        (
            rule
            for rule in drivers.result.constraint.rules(level)
            if rule.quantity == GAP_AHEAD and rule.side == "below"
        ),
        None,
    )


def drivers_page(drivers: Drivers) -> Page:
    """The rules in words, feasibility against gap and speed, and against the gap alone."""
    strictest = drivers.levels[-1]
    rules = drivers.result.constraint.rules(strictest)
    pairs = following(drivers.demonstrations)
    gap = held_gap(drivers, strictest)
    return Page(
        title="What do these drivers hold to?",
        lead=(
            "Recorded drivers became demonstrations. A policy was let loose on the same roads; "
            "where it went and no driver ever did, the drivers speak against going."
        ),
        facts=[
            Fact("drivers", str(len(drivers.demonstrations))),
            Fact(
                "smallest gap they hold to",
                "not found" if gap is None else f"{gap.limit:.1f} m",
                f"at confidence {strictest:g}",
                tone="bad" if gap is None else "plain",
            ),
            Fact(
                "gap of half of all moments",
                f"{np.median(pairs[:, 0]):.1f} m or less",
                "of those with a leader",
            ),
            Fact("replayed within", f"{100 * drivers.recovered.error:.1f} cm"),
        ],
        sections=[map_section(drivers, pairs), gap_section(drivers), rules_section(rules)],
        foot="Feasibility is read off one belief at each confidence. All other numbers that a "
        "driver sees are those of an ordinary moment. One seed.",
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
        text="Blue: drivers were there, so it is feasible. Red: they could have been and were not. "
        "Pale: neither drivers nor the policy went there, so nothing is known.",
        figure=driving_map(gaps, speeds, maps, shown),
        caption="Learned feasibility against the gap to the leader and the own speed. Points: "
        "moments of the recorded drivers.",
    )


def gap_section(drivers: Drivers) -> Section:
    """The gap alone, at the usual speed."""
    pairs = following(drivers.demonstrations)
    gaps = np.linspace(0, 12, 481)
    usual = np.full_like(gaps, np.median(pairs[:, 1]))
    smallest = np.array([e.observations[:, GAP_AHEAD].min() for e in drivers.demonstrations])
    return Section(
        heading="The gap alone",
        text="One line for each confidence: the more is asked for, the more drivers must have "
        "been as close.",
        figure=feasibility_curve(
            gaps,
            {level: feasibility_at(drivers, gaps, usual, level) for level in drivers.levels},
            smallest[smallest < gaps[-1]],
            quantity="gap to the leader (m)",
        ),
        caption="Feasibility against the gap at the median speed. Ticks: the smallest gap of each "
        "driver.",
    )


def rules_section(rules: Sequence[Rule]) -> Section:
    """The strongest rules, by name."""
    rows = [
        [
            FEATURES[rule.quantity].replace("_", " "),
            "at least" if rule.side == "below" else "at most",
            f"{rule.limit:.2f}",
            f"{rule.against:.0f}",
        ]
        for rule in rules[:SHOWN_RULES]
    ]
    columns = ["quantity", "", "limit", "drivers against going further"]
    return Section(
        heading="What else they never did",
        text="Everything a driver sees counts, so some of these are habits or the road itself "
        "rather than rules; a person has to say which.",
        table=Table(columns, rows),
    )
