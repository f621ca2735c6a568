"""What all readers of recordings share: rows that become tracks.

Every reader sorts the rows, drops duplicates, and cuts a track where frames are missing.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.highway.csv_columns import Columns
from tacit.highway.recording import CAR, TRUCK, Notices, RecordingError, Track

LENGTHS, WIDTHS = (1.0, 30.0), (0.5, 4.0)
"""Sizes in metres that a vehicle can have."""
LONGEST_CAR = 7.0
"""Where a file does not say what a vehicle is, a longer one is taken for a truck."""
MOST_FRAMES = 10_000_000
"""More than four days at 25 Hz: a frame beyond it is a damaged number, not a long recording."""


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


def refuse_not_positive(columns: Columns, name: str) -> None:
    """Raise an error unless the first number in a column is above 0."""
    if not columns[name][0] > 0:
        raise RecordingError(
            f"{columns.place(0, name)}: is {columns[name][0]}; it must be positive"
        )


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


def without_unknown(
    kind: Int[np.ndarray, " rows"],
    vehicle: Int[np.ndarray, " rows"],
    sizes: Sizes,
    notices: Notices,
) -> Int[np.ndarray, " rows"]:
    """The kinds, with a guess from the length where the file says nothing known (0)."""
    number = len(np.unique(vehicle[(kind == 0) & sizes.possible]))
    notices.add("vehicles of an unknown class, now car or truck by their length", number)
    return np.where(kind == 0, kinds_by_length(sizes.length), kind)


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
    moving = (motion.s, motion.d, motion.vs, motion.vd)
    return Track(
        int(motion.vehicle[start]),
        int(motion.kind[start]),
        float(motion.length[start]),
        float(motion.width[start]),
        int(motion.frame[start]),
        *(array[start:end].astype(np.float32) for array in moving),
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
