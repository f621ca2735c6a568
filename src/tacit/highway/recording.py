"""Recordings of traffic as every reader returns them: carriageways, seen along the road.

All quantities are metric. `s` grows in driving direction and `d` to the driver's left, both of the
**centre** of a vehicle, so that both carriageways of a motorway and every data set look alike.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from tacit.errors import ArgumentError, TacitError

CAR, TRUCK = 1, 4
"""The two kinds of vehicle, with the numbers that the observation shows."""
SLOW = 1.0
"""m/s: the least speed along the road that a recorded vehicle's heading is taken from."""

Geometry = Literal["centre", "legacy"]
"""`centre`: vehicles where they are. `legacy`: as the published simulator places them."""


class RecordingError(TacitError, ValueError):
    """Raised when a recording cannot be used; the message names file, row and column."""


class RecordingWarning(UserWarning):
    """Issued when a reader repaired a recording or dropped parts of it."""


class Track(NamedTuple):
    """One vehicle over consecutive frames.

    Fields:
        vehicle: its id in the file.
        kind: `CAR` or `TRUCK`.
        length, width: of its box.
        first: frame of the first row, counted from 0.
        s, d: centre of the box, along and to the left.
        vs, vd: velocity along and to the left.
    """

    vehicle: int
    kind: int
    length: float
    width: float
    first: int
    s: Float[np.ndarray, " frames"]
    d: Float[np.ndarray, " frames"]
    vs: Float[np.ndarray, " frames"]
    vd: Float[np.ndarray, " frames"]

    @property
    def last(self) -> int:
        """Frame of the last row."""
        return self.first + len(self.s) - 1


@dataclass(frozen=True)
class Carriageway:
    """The traffic of one driving direction.

    Fields:
        name: of the recording, unique within a set of recordings, e.g. "03".
        direction: of travel, 1 or 2 as in highD; 1 where there is only one.
        dt: seconds between two frames.
        frames: how many there are.
        boundaries: `d` of the lane markings, falling from the left edge of the road to the right.
        start, end: `s` where the road begins and ends.
        tracks: vehicles, ordered by first frame, then id.
    """

    name: str
    direction: int
    dt: float
    frames: int
    boundaries: Float[np.ndarray, " markings"]
    start: float
    end: float
    tracks: tuple[Track, ...]

    def __iter__(self) -> Iterator[Track]:
        return iter(self.tracks)

    def __len__(self) -> int:
        return len(self.tracks)


class Notices(NamedTuple):
    """What a reader dropped or repaired, counted by kind and said in one warning.

    Fields:
        name: of the recording.
        counts: e.g. {"vehicles without rows": 2}; grows while the recording is read.
    """

    name: str
    counts: dict[str, int]

    def add(self, what: str, number: int) -> None:
        """Count `number` more of a kind; 0 leaves no notice."""
        if number > 0:
            self.counts[what] = self.counts.get(what, 0) + int(number)


class Reading(NamedTuple):
    """What a reader returns: the carriageways with traffic, and what was dropped or repaired."""

    carriageways: tuple[Carriageway, ...]
    notices: Notices

    def announce(self) -> tuple[Carriageway, ...]:
        """Issue one warning, if anything was counted, and return the carriageways."""
        name, counts = self.notices
        if counts:
            said = "; ".join(f"{what}: {number}" for what, number in counts.items())
            warnings.warn(RecordingWarning(f"recording {name}: {said}"), stacklevel=3)
        return self.carriageways


def refuse_geometry(geometry: str) -> None:
    """Raise an error unless `geometry` is one of the two known ones."""
    if geometry not in get_args(Geometry):
        raise ArgumentError(f"geometry: is {geometry!r}; use one of {get_args(Geometry)}")
