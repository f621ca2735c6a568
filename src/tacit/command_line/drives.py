"""Driving on the command line: made-up recordings, and recorded drivers as demonstrations."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tacit.argument_checks import check_count
from tacit.command_line.console import (
    console,
    percent,
    progress_bar,
    show_facts,
    show_table,
    show_written,
    watched,
)
from tacit.command_line.inputs import write_builtin
from tacit.environments.registry import make
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, StorageError
from tacit.highway.recording import Geometry

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import UInt8

    from tacit.highway.driving import Highway
    from tacit.highway.synthetic_traffic import SeenTraffic

BUILT_IN = "built-in"
FRAMES_PER_SECOND = 10


@dataclass(frozen=True)
class SynthesizeHighway:
    """Make up motorway traffic and write it as recordings in the layout of highD.

    Args:
        out: folder for the files, three for each recording: 01_tracks.csv and so on.
        recordings: how many; the first has the seed, each further one the next.
        duration: seconds of each recording.
        lanes: on each of the two carriageways.
        flow: vehicles an hour and lane that want to enter.
        trucks: share of trucks.
        seed: of the first recording.
    """

    out: Path
    recordings: int = 1
    duration: float = 80.0
    lanes: int = 2
    flow: float = 800.0
    trucks: float = 0.25
    seed: int = 1

    def run(self) -> None:
        """Write with a bar, then show what was written."""
        from tacit.highway.highd_writer import write_highd
        from tacit.highway.synthetic_traffic import Traffic

        check_count("recordings", self.recordings)
        traffic = Traffic(self.seed, self.duration, self.lanes, self.flow, self.trucks)
        if self.out.exists() and not self.out.is_dir():
            raise StorageError(f"{self.out}: is a file; choose a folder")
        if any(self.out.glob("*_recordingMeta.csv")):
            raise ArgumentError(f"{self.out}: has recordings already; choose another folder")
        rows = []
        total = round(self.recordings * self.duration)
        with progress_bar("seconds of traffic", total) as show:
            for number in range(1, self.recordings + 1):
                before = (number - 1) * self.duration
                seen = write_highd(
                    self.out,
                    number,
                    replace(traffic, seed=self.seed + number - 1),
                    lambda seconds, before=before: show(before + seconds),
                )
                rows.append(recording_row(number, seen))
        columns = ["recording", "vehicles", "trucks", "mean m/s", "above 40 m/s", "changes of lane"]
        show_table(f"Made-up recordings in {self.out}", columns, rows)


def recording_row(number: int, seen: "SeenTraffic") -> list[str]:
    """A row of the table: what one recording holds."""
    speeds = seen.movement.vs
    return [
        f"{number:02d}",
        str(len(seen.side)),
        str(int(seen.truck.sum())),
        f"{speeds.mean():.1f}" if len(speeds) else "-",
        percent(float((speeds > 40).mean())) if len(speeds) else "-",
        str(seen.lane_changes),
    ]


@dataclass(frozen=True)
class ImportHighway:
    """Write what recorded drivers did as demonstrations.

    Args:
        recordings: folder of highD, NGSIM, exiD or US-101 clips; "built-in" for made-up traffic.
        out: the file to write; the ending tells the format.
        constraint: the rule whose cost is written beside every step.
        gap: metres that must remain to the leader on the same lane.
        speed: m/s that must not be exceeded.
        geometry: centre, or legacy for recordings as the published simulator has them.
        split: train (70 %), test or all.
        split_by: whole recordings, or single scenarios.
        egos: one driver for each window, or all that qualify.
        window: seconds of the pieces that recordings are cut into.
        seed: of the choice of drivers and of the split.
    """

    recordings: str
    out: Path
    constraint: Literal["distance", "velocity", "both"] = "distance"
    gap: float = 20.0
    speed: float = 40.0
    geometry: Geometry = "centre"
    split: Literal["train", "test", "all"] = "all"
    split_by: Literal["recording", "scenario"] = "recording"
    egos: Literal["one", "all"] = "all"
    window: float = 40.0
    seed: int = 0

    def run(self) -> None:
        """Recover actions with a bar, write them, and show how many drivers were kept."""
        from tacit.demonstrations.trajectories import check_destination
        from tacit.evaluation.violation import violation_rate
        from tacit.highway.driving import highway_of
        from tacit.highway.recorded_drivers import drive

        check_destination(self.out)
        options = {name: value for name, value in asdict(self).items() if name != "out"}
        highway = highway_of(driving_task(**options))
        with progress_bar("drivers", len(highway.scenarios)) as show:
            recovered = drive(highway, show)
        recovered.trajectories.save(self.out)
        facts = {
            "drivers": str(len(recovered.trajectories)),
            "steps": str(recovered.trajectories.steps),
            "largest distance from the recorded path": f"{100 * recovered.error:.1f} cm",
            "violation": percent(violation_rate(recovered.trajectories)),
        }
        skipped = highway.skipped.items()
        facts |= {f"left out: {reason}": str(n) for reason, n in recovered.dropped.items()}
        facts |= {f"windows without a driver: {reason}": str(n) for reason, n in skipped}
        show_facts(str(self.out), facts)


@dataclass(frozen=True)
class LearnDrivers:
    """Learn what recorded drivers hold to, and write a page about it.

    Args:
        out: folder for report.html, drivers.hdf5 and the run.
        recordings: folder of highD, NGSIM, exiD or US-101 clips; "built-in" for made-up traffic.
        confidences: levels to read the constraint at.
        steps: of inference; 3,000,000 by default.
        seed: of everything random.
        threads: for the simulator; all cores by default.
    """

    out: Path
    recordings: str = BUILT_IN
    confidences: tuple[float, ...] = (0.5, 0.9)
    steps: int | None = None
    seed: int = 0
    threads: int | None = None

    def run(self) -> None:
        """Learn with a bar, write, and show the strongest rules."""
        from tacit.experiments.drivers import (
            TIME_GAP,
            drivers_page,
            driving_settings,
            held,
            learn_from_drivers,
        )
        from tacit.highway.observation import GAP_AHEAD
        from tacit.reports.page import write_page

        task = driving_task(self.recordings, split="all", egos="all")
        forward = driving_settings(task, self.steps)
        with watched("learning from drivers", forward) as watch:
            drivers = learn_from_drivers(
                task,
                confidences=self.confidences,
                forward=forward,
                seed=self.seed,
                folder=self.out / "run",
                threads=self.threads,
                progress=watch,
            )
        drivers.demonstrations.save(self.out / "drivers.hdf5")
        page = write_page(drivers_page(drivers), self.out / "report.html")
        for level in drivers.levels:
            gap, time = (held(drivers, level, quantity) for quantity in (GAP_AHEAD, TIME_GAP))
            console.print(
                f"gap that most hold to at confidence {level:g}: {gap}; as a time: {time}",
                markup=False,
            )
        show_written(page, self.out / "drivers.hdf5")


def driving_task(recordings: str, **options: Any) -> SimulatedTask:
    """The driving task on the recordings of a folder, or on the built-in ones."""
    if recordings == BUILT_IN:
        write_builtin()
    else:
        options["recordings"] = recordings
    velocity = options.get("constraint") == "velocity"
    return make("HighwayVelocity" if velocity else "HighwayDistance", **options)


def show_scenario(recordings: str, scenario: int, out: Path, options: dict[str, Any]) -> None:
    """Write a GIF of a recorded driver in its scenario; `options` are those of the task."""
    from tacit.highway.driving import highway_of
    from tacit.highway.highway_environment import chosen_scenario
    from tacit.highway.picture import animation
    from tacit.runs.atomic_write import atomic_write

    if "recordings" in options:
        raise ArgumentError(f"the recordings to show are {recordings}: leave --set recordings away")
    if out.suffix.lower() != ".gif":
        raise ArgumentError(f"{out}: the animation of a scenario is a GIF; choose the ending .gif")
    highway = highway_of(driving_task(recordings, **{"constraint": "both", **options}))
    number = chosen_scenario({"scenario": scenario}, len(highway.scenarios))
    assert number is not None
    chosen = highway.scenarios[number]
    stride = max(round(1 / (FRAMES_PER_SECOND * chosen.dt)), 1)
    moving = animation(frames(highway, number, stride), stride * chosen.dt)
    with atomic_write(out) as part:
        part.write_bytes(moving)
    facts = {
        "recording": f"{chosen.recording}, direction {chosen.direction}, window {chosen.window}",
        "driver": str(chosen.ego),
        "start": f"{chosen.start_speed:.1f} m/s, gap {chosen.start_gap:.1f} m",
        "time limit": f"{chosen.limit * chosen.dt:.1f} s",
        "start violates": ", ".join(chosen.violates) or "nothing",
        "scenarios in all": str(len(highway.scenarios)),
    }
    show_facts(f"scenario {number}", facts)
    show_written(out)


def frames(
    highway: "Highway", number: int, stride: int
) -> "Iterator[UInt8[np.ndarray, 'height width 3']]":
    """Every so many steps a picture, the last step included."""
    import numpy as np

    from tacit.highway.highway_environment import HighwayEnvironment
    from tacit.highway.recorded_drivers import recover_actions

    chosen = highway.scenarios[number]
    actions = recover_actions(highway.paths[number], np.array(chosen.velocity), chosen.dt)
    environment = HighwayEnvironment(highway.task, highway.scenarios, render_mode="rgb_array")
    environment.reset(options={"scenario": number})
    step, ended = 0, False
    while True:
        if ended or step % stride == 0:
            drawn = environment.render()
            assert drawn is not None
            yield drawn
        if ended:
            return
        action = actions[step] if step < len(actions) else np.zeros(2)
        _, _, terminated, truncated, _ = environment.step(action.astype(np.float32))
        ended, step = terminated or truncated, step + 1
