"""Which recorded drives become episodes: one car of a window is the ego, the rest is traffic."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from tacit.highway.recording import CAR, SLOW, Carriageway, Geometry, Track

EGO_LENGTH, EGO_WIDTH = 4.508, 1.610
"""Every ego is a BMW 320i, whatever car it stands for."""
SHORTEST = 2.0
"""Seconds that a recorded drive must last to become an episode."""
FEWEST = 2
"""Frames of a window, and of a vehicle in it to take part."""
GRACE = 1.0
"""Seconds that the ego may take longer than the recorded driver took."""

Egos = Literal["one", "all"]
"""`one` ego for each window, or `all` cars that qualify, one scenario each."""


class Goal(NamedTuple):
    """A rectangle at the place where the recorded drive ended; angle in radians to the left."""

    s: float
    d: float
    length: float
    width: float
    angle: float


@dataclass(frozen=True)
class Scenario:
    """One recorded drive to be driven again.

    Fields:
        recording: its name.
        direction: the carriageway, 1 or 2.
        window: the piece of the recording, counted from 1.
        ego: id of the vehicle that the driver replaces.
        position, velocity: (along, left) at the start.
        goal: to be reached by the ego's centre.
        limit: steps until time is out.
        dt: seconds per step.
        start_gap: to the leader on the same lane, at most 100 m.
        violates: the constraints that the start itself breaks.
    """

    recording: str
    direction: int
    window: int
    ego: int
    position: tuple[float, float]
    velocity: tuple[float, float]
    goal: Goal
    limit: int
    dt: float
    start_gap: float = float("nan")
    violates: tuple[str, ...] = ()

    @property
    def start_speed(self) -> float:
        """Speed at the start, in m/s."""
        return float(np.hypot(*self.velocity))


class Window(NamedTuple):
    """A piece of a recording: its number from 1 and its first and last frame."""

    number: int
    first: int
    last: int


class Cast(NamedTuple):
    """A scenario and the tracks that it is made of.

    Fields:
        scenario: the drive.
        first: the frame in which it starts.
        last: the last frame of the window.
        others: all other vehicles that are seen in the window.
        path: [steps + 1, 2] where the recorded driver went, (along, left).
    """

    scenario: Scenario
    first: int
    last: int
    others: tuple[Track, ...]
    path: Float[np.ndarray, "steps 2"]


def windows(carriageway: Carriageway, seconds: float, geometry: Geometry) -> Iterator[Window]:
    """Cut a recording; the published simulator leaves one frame out between two windows."""
    length = max(round(seconds / carriageway.dt), FEWEST)
    stride = length + 1 if geometry == "legacy" else length
    for number, first in enumerate(range(0, carriageway.frames, stride), start=1):
        yield Window(number, first, min(first + length, carriageway.frames) - 1)


def cast_window(
    carriageway: Carriageway, window: Window, geometry: Geometry, egos: Egos, seed: int
) -> tuple[list[Cast], str | None]:
    """The scenarios of one window, or why there is none."""
    seen = [
        track
        for track in carriageway
        if min(track.last, window.last) - max(track.first, window.first) + 1 >= FEWEST
    ]
    first = window.first
    cars = [track for track in seen if track.kind == CAR and track.first <= first]
    if not cars:
        return [], "no car in the first frame"
    if geometry != "legacy":
        cars = [car for car in cars if starts_well(carriageway, window, car, seen)]
        if not cars:
            return [], "no car that lasts, moves on and starts on a free piece of road"
    cars.sort(key=lambda track: track.vehicle)
    if egos == "one":
        cars = [choose(cars, carriageway, window, geometry, seed)]
    casts = [describe(carriageway, window, car, seen) for car in cars]
    played = [cast for cast in casts if cast is not None]
    return played, None if played else "the ego is alone"


def choose(
    cars: list[Track], carriageway: Carriageway, window: Window, geometry: Geometry, seed: int
) -> Track:
    """One of the candidates; the published simulator seeds Python's generator with 0 every time."""
    if geometry == "legacy":
        return cars[published_choice(len(cars))]
    place = [seed, zlib.crc32(carriageway.name.encode()), carriageway.direction, window.number]
    return cars[np.random.default_rng(place).integers(len(cars))]


def published_choice(number: int) -> int:
    """What `random.seed(0); random.randrange(number)` gives: Python's draw, bit by bit."""
    draws = np.random.RandomState([0])
    while True:
        drawn = int(draws.randint(2**32, dtype=np.uint32)) >> (32 - number.bit_length())
        if drawn < number:
            return drawn


def starts_well(carriageway: Carriageway, window: Window, car: Track, seen: list[Track]) -> bool:
    """Whether `car` lasts, moves on by its length, and the ego's box fits where it starts."""
    first = window.first - car.first
    last = min(car.last, window.last) - car.first
    if (last - first) * carriageway.dt < SHORTEST or car.s[last] - car.s[first] < car.length:
        return False
    s, d = car.s[first], car.d[first]
    left, right = carriageway.boundaries[0], carriageway.boundaries[-1]
    if not right + EGO_WIDTH / 2 < d < left - EGO_WIDTH / 2:
        return False
    if not carriageway.start <= s <= carriageway.end:
        return False
    for other in seen:
        here = window.first - other.first
        if other is car or not 0 <= here < len(other.s):
            continue
        if (
            abs(other.s[here] - s) < (other.length + EGO_LENGTH) / 2
            and abs(other.d[here] - d) < (other.width + EGO_WIDTH) / 2
        ):
            return False
    return True


def describe(
    carriageway: Carriageway, window: Window, car: Track, seen: list[Track]
) -> Cast | None:
    """The scenario in which `car` is the ego; None if it would be alone."""
    # By its id: a car that was lost from sight for a while has several tracks.
    others = tuple(track for track in seen if track.vehicle != car.vehicle)
    if not others:
        return None
    first = window.first - car.first
    end = min(car.last, window.last) - car.first
    latest = max(min(track.last, window.last) for track in others) - window.first
    limit = min(end - first + round(GRACE / carriageway.dt), latest)
    if limit < 1:
        return None
    scenario = Scenario(
        recording=carriageway.name,
        direction=carriageway.direction,
        window=window.number,
        ego=car.vehicle,
        position=(float(car.s[first]), float(car.d[first])),
        velocity=(float(car.vs[first]), float(car.vd[first])),
        goal=Goal(
            float(car.s[end]),
            float(car.d[end]),
            car.length,
            car.width,
            float(np.arctan2(car.vd[end], max(float(car.vs[end]), SLOW))),
        ),
        limit=int(limit),
        dt=carriageway.dt,
    )
    path = np.stack([car.s[first : end + 1], car.d[first : end + 1]], -1)
    return Cast(scenario, window.first, window.last, others, path)
