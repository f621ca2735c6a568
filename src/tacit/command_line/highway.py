"""Driving recordings on the command line."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.argument_checks import check_count
from tacit.command_line.tables import percent, progress_bar, show_table
from tacit.errors import ArgumentError, StorageError
from tacit.highway.highd_writer import write_highd
from tacit.highway.synthetic_traffic import SeenTraffic, Traffic


@dataclass(frozen=True)
class SynthesizeHighway:
    """Make up motorway traffic and write it as recordings in the layout of highD.

    Args:
        out: folder for the files, three for each recording: 01_tracks.csv and so on.
        recordings: how many; each has the seed after that of the one before.
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
        check_count("recordings", self.recordings)
        traffic = Traffic(self.seed, self.duration, self.lanes, self.flow, self.trucks)
        refuse_recordings(self.out)
        rows = []
        with progress_bar() as bar:
            total = round(self.recordings * self.duration)
            job = bar.add_task("seconds of traffic", total=total)
            for number in range(1, self.recordings + 1):
                before = (number - 1) * self.duration
                seen = write_highd(
                    self.out,
                    number,
                    replace(traffic, seed=self.seed + number - 1),
                    lambda seconds, before=before: bar.update(job, completed=before + seconds),
                )
                rows.append(described(number, seen))
        columns = ["recording", "vehicles", "trucks", "mean m/s", "above 40 m/s", "changes of lane"]
        show_table(f"Made-up recordings in {self.out}", columns, rows)


def refuse_recordings(out: Path) -> None:
    """Raise an error if `out` is no folder for new recordings."""
    if out.exists() and not out.is_dir():
        raise StorageError(f"{out}: is a file; choose a folder")
    if any(out.glob("*_recordingMeta.csv")):
        raise ArgumentError(f"{out}: has recordings already; choose another folder")


def described(number: int, seen: SeenTraffic) -> list[str]:
    """A line of the table: what there is in a recording."""
    speeds = seen.movement.vs
    return [
        f"{number:02d}",
        str(len(seen.side)),
        str(int(seen.truck.sum())),
        f"{speeds.mean():.1f}" if len(speeds) else "-",
        percent(float(np.mean(speeds > 40))) if len(speeds) else "-",
        str(seen.lane_changes),
    ]
