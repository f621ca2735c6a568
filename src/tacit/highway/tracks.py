"""What all readers of recordings share: three files per recording, and rows that become tracks.

highD and exiD keep a recording in `03_recordingMeta.csv` (about itself), `03_tracksMeta.csv` (about
its vehicles) and `03_tracks.csv`, each of which may be compressed (`.csv.gz`). Every reader sorts
the rows, drops duplicates, and cuts a track where frames are missing.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.highway.csv_columns import Columns, Layout, read_columns
from tacit.highway.recording import CAR, TRUCK, Notices, RecordingError, Track

PARTS = ("recordingMeta", "tracksMeta", "tracks")
LENGTHS, WIDTHS = (1.0, 30.0), (0.5, 4.0)
"""Sizes in metres that a vehicle can have."""
LONGEST_CAR = 7.0
"""Where a file does not say what a vehicle is, a longer one is taken for a truck."""
MOST_FRAMES = 10_000_000
"""More than four days at 25 Hz: a frame beyond it is a damaged number, not a long recording."""


class ThreeFiles(NamedTuple):
    """The files of one recording, and its name, e.g. "03"."""

    name: str
    recording: Path
    vehicles: Path
    tracks: Path


def three_files(folder: Path, name: str) -> ThreeFiles:
    """The files of the recording with that name, e.g. "03"."""
    paths = []
    for part in PARTS:
        choices = [folder / f"{name}_{part}.csv", folder / f"{name}_{part}.csv.gz"]
        found = [path for path in choices if path.is_file()]
        if not found:
            raise RecordingError(
                f"{choices[0]}: is missing (also as .csv.gz); a recording needs the files "
                + ", ".join(f"{name}_{wanted}.csv" for wanted in PARTS)
            )
        paths.append(found[0])
    return ThreeFiles(name, *paths)


def read_about_recording(files: ThreeFiles, layout: Layout, number: str) -> Columns:
    """Read the row about the recording; `number` is the column with the recording's number."""
    about = read_columns(files.recording, layout)
    if len(about) != 1:
        raise RecordingError(f"{files.recording}: has {len(about)} rows; it must have one")
    refuse_number(about, number, files.name)
    if not about["frameRate"][0] > 0:
        raise RecordingError(
            f"{about.place(0, 'frameRate')}: is {about['frameRate'][0]}; it must be positive"
        )
    return about


def refuse_number(columns: Columns, column: str, name: str) -> None:
    """Raise an error if a file belongs to another recording than its name says."""
    if not name.isdecimal():
        return
    wrong = np.flatnonzero(columns[column] != int(name))
    if len(wrong):
        raise RecordingError(
            f"{columns.place(wrong[0], column)}: is {columns[column][wrong[0]]}, but the name of "
            f"the file says {name}; one of them is wrong"
        )


def match_vehicles(
    vehicle: Int[np.ndarray, " rows"],
    described: Int[np.ndarray, " vehicles"],
    numbers: Int[np.ndarray, " vehicles"],
    notices: Notices,
) -> Int[np.ndarray, " rows"]:
    """For each row of the tracks the place of its vehicle in the description, or -1.

    Args:
        vehicle: its id in each row of the tracks.
        described: ids in the file about vehicles.
        numbers: of frames that these vehicles should have.
        notices: counts what does not fit.
    """
    known, places = np.unique(described, return_index=True)
    notices.add("vehicles described twice, the first counts", len(described) - len(known))
    at = np.searchsorted(known, vehicle).clip(max=len(known) - 1)
    found = known[at] == vehicle
    lost = len(np.unique(vehicle[~found]))
    notices.add("vehicles dropped, they have rows but no description", lost)
    seen = np.bincount(at[found], minlength=len(known))
    notices.add("vehicles described that have no rows", int((seen == 0).sum()))
    other = (seen != numbers[places]) & (seen > 0)
    notices.add("vehicles with another number of frames than described", int(other.sum()))
    return np.where(found, places[at], -1)


class Motion(NamedTuple):
    """Rows of one carriageway, in order of vehicle and frame; sizes are the same in all rows."""

    vehicle: Int[np.ndarray, " rows"]
    frame: Int[np.ndarray, " rows"]
    s: Float[np.ndarray, " rows"]
    d: Float[np.ndarray, " rows"]
    vs: Float[np.ndarray, " rows"]
    vd: Float[np.ndarray, " rows"]
    length: Float[np.ndarray, " rows"]
    width: Float[np.ndarray, " rows"]
    kind: Int[np.ndarray, " rows"]

    def take(self, chosen: Bool[np.ndarray, " rows"] | Int[np.ndarray, " some"]) -> "Motion":
        """Some of the rows."""
        return Motion(*(array[chosen] for array in self))


def in_order(columns: Columns, vehicle: str, frame: str, notices: Notices) -> Columns:
    """Sort by vehicle and frame; of duplicate rows the first in the file stays."""
    order = np.lexsort((columns[frame], columns[vehicle]))
    one, now = columns[vehicle][order], columns[frame][order]
    again = np.zeros(len(order), bool)
    again[1:] = (one[1:] == one[:-1]) & (now[1:] == now[:-1])
    notices.add("rows dropped, vehicle and frame are there already", int(again.sum()))
    return columns.take(order[~again])


def refuse_frames(columns: Columns, frame: str, first: int) -> None:
    """Raise an error if a frame lies before `first` or beyond `MOST_FRAMES`."""
    wrong = np.flatnonzero((columns[frame] < first) | (columns[frame] > MOST_FRAMES))
    if len(wrong):
        raise RecordingError(
            f"{columns.place(wrong[0], frame)}: is {columns[frame][wrong[0]]}; frames count from "
            f"{first} and stay below {MOST_FRAMES}"
        )


class Sizes(NamedTuple):
    """Length and width of the vehicle of each row, and whether a vehicle can have them."""

    length: Float[np.ndarray, " rows"]
    width: Float[np.ndarray, " rows"]
    possible: Bool[np.ndarray, " rows"]


def typical_sizes(
    vehicle: Int[np.ndarray, " rows"],
    length: Float[np.ndarray, " rows"],
    width: Float[np.ndarray, " rows"],
    notices: Notices,
) -> Sizes:
    """The median over the rows of each vehicle, because boxes jitter; rows must be sorted."""
    _, starts, numbers = np.unique(vehicle, return_index=True, return_counts=True)
    lengths, widths = (medians(sizes, starts, numbers) for sizes in (length, width))
    possible = (lengths >= LENGTHS[0]) & (lengths <= LENGTHS[1]) & (lengths >= widths)
    possible &= (widths >= WIDTHS[0]) & (widths <= WIDTHS[1])
    notices.add("vehicles dropped, their size is impossible", int((~possible).sum()))
    return Sizes(*(np.repeat(array, numbers) for array in (lengths, widths, possible)))


def medians(sizes: np.ndarray, starts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The median of each vehicle's positive sizes; NaN if it has none."""
    result = np.full(len(starts), np.nan)
    for i, (start, number) in enumerate(zip(starts, numbers, strict=True)):
        mine = sizes[start : start + number]
        mine = mine[mine > 0]
        result[i] = np.median(mine) if len(mine) else np.nan
    return result


def kinds_by_length(length: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Car or truck, guessed from the length."""
    return np.where(length > LONGEST_CAR, TRUCK, CAR)


def reentries(kept: Bool[np.ndarray, " rows"]) -> Bool[np.ndarray, " kept"]:
    """Which of the kept rows follow a row that is left out on purpose."""
    before = np.concatenate([[True], kept[:-1]])
    return ~before[kept]


def tracks_of(
    motion: Motion,
    notices: Notices,
    longest_step: float = np.inf,
    reentry: Bool[np.ndarray, " rows"] | None = None,
) -> tuple[Track, ...]:
    """Cut into tracks at missing frames and at steps in position longer than `longest_step`.

    Cuts at a `reentry` are not counted in `notices`.
    """
    new = np.ones(len(motion.vehicle), bool)
    new[1:] = motion.vehicle[1:] != motion.vehicle[:-1]
    if reentry is not None:
        new |= reentry
    gap, jump = np.zeros_like(new), np.zeros_like(new)
    gap[1:] = ~new[1:] & (np.diff(motion.frame) > 1)
    step = np.hypot(np.diff(motion.s), np.diff(motion.d))
    jump[1:] = ~new[1:] & ~gap[1:] & (step > longest_step)
    notices.add("cuts of a track at missing frames", int(gap.sum()))
    notices.add("cuts of a track at jumps of its position", int(jump.sum()))
    starts = np.flatnonzero(new | gap | jump)
    ends = np.append(starts[1:], len(new))
    long_enough = ends - starts >= 2
    notices.add("tracks dropped, only one frame", int((~long_enough).sum()))
    spans = zip(starts[long_enough].tolist(), ends[long_enough].tolist(), strict=True)
    tracks = [track_of(motion, start, end) for start, end in spans]
    return tuple(sorted(tracks, key=lambda track: (track.first, track.vehicle)))


def track_of(motion: Motion, start: int, end: int) -> Track:
    """The rows from `start` to `end` as one track."""
    s, d, vs, vd = (
        array[start:end].astype(np.float32) for array in (motion.s, motion.d, motion.vs, motion.vd)
    )
    return Track(
        vehicle=int(motion.vehicle[start]),
        kind=int(motion.kind[start]),
        length=float(motion.length[start]),
        width=float(motion.width[start]),
        first=int(motion.frame[start]),
        s=s,
        d=d,
        vs=vs,
        vd=vd,
    )


def extent(motion: Motion) -> tuple[float, float]:
    """Where the first box begins and the last one ends."""
    half = motion.length / 2
    return float((motion.s - half).min()), float((motion.s + half).max())


def lane_boundaries(centres: Float[np.ndarray, " lanes"], width: float) -> np.ndarray:
    """Markings half way between lane centres that fall from left to right.

    The outer ones are half a lane further out; `width` is used where there is one lane only.
    """
    if len(centres) == 1:
        return centres[0] + np.array([0.5, -0.5]) * width
    between = (centres[1:] + centres[:-1]) / 2
    left, right = centres[0] - centres[1], centres[-2] - centres[-1]
    return np.concatenate([[centres[0] + left / 2], between, [centres[-1] - right / 2]])
