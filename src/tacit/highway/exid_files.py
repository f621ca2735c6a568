"""exiD: motorway entries and exits at 25 Hz, in three CSV files per recording, **approximately**.

The reader ignores the lane map of a site. Instead, for each driving direction:

- The road is a line w(u) through the picture, u along the mean heading. Its slope, a polynomial of
  degree 3, is fitted to the headings of all vehicles; those of ramps are trimmed away as outliers.
- `s` is the length along this line, `d` the distance to its left; velocities are turned with it.
- Lanes have the median width that the file gives (`laneWidth`), and lie where most vehicles drive;
  an acceleration lane is a lane if at least 2 % of the traffic is on it, over the whole road.
- Rows further out, on ramps, are left out.

Sizes come from the tracks, because those in the file about vehicles are wrong at one site.
Direction 2 drives to the right in the picture, direction 1 to the left, as in highD.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from tacit.highway.csv_columns import Columns, Layout, read_columns
from tacit.highway.highd_files import (
    ThreeFiles,
    match_vehicles,
    read_about_recording,
    refuse_number,
)
from tacit.highway.recording import CAR, TRUCK, Carriageway, Notices, Reading, RecordingError
from tacit.highway.tracks import (
    Motion,
    extent,
    in_order,
    lane_boundaries,
    reentries,
    refuse_frames,
    tracks_of,
    typical_sizes,
)

RECORDING = Layout(whole=("recordingId",), real=("frameRate",))
VEHICLES = Layout(whole=("recordingId", "trackId", "numFrames"), text=("class",))
TRACKS = Layout(
    whole=("recordingId", "trackId", "frame"),
    real=("xCenter", "yCenter", "heading", "xVelocity", "yVelocity"),
    gappy=("width", "length", "laneWidth"),
    lists=True,
)
KINDS = {"car": CAR, "van": CAR, "motorcycle": CAR, "truck": TRUCK, "bus": TRUCK}
LANE_WIDTH, POSSIBLE_LANE_WIDTHS = 3.75, (2.0, 6.0)
PARALLEL = 0.05
SMALLEST_SHARE = 0.02
DEGREE = 3
STEEPEST = np.pi / 4
ROUNDS = 8
"""Iterations of the trimmed fit, and of Newton's method in the projection."""
MOST_ROWS = 50_000


def exid_reading(files: ThreeFiles) -> Reading:
    """The carriageways, and what was dropped or repaired."""
    notices = Notices(files.name, {})
    about = read_about_recording(files, RECORDING, "recordingId")
    vehicles = read_columns(files.vehicles, VEHICLES)
    rows = read_columns(files.tracks, TRACKS)
    for columns in (vehicles, rows):
        refuse_number(columns, "recordingId", files.name)
    refuse_frames(rows, "frame", 0)
    rows = in_order(rows, "trackId", "frame", notices)
    at = match_vehicles(rows["trackId"], vehicles["trackId"], vehicles["numFrames"], notices)
    kinds = np.array([KINDS.get(word.lower(), 0) for word in vehicles["class"]])
    others = len(np.unique(rows["trackId"][(at >= 0) & (kinds[at] == 0)]))
    notices.add("road users dropped, neither car, van, truck, bus nor motorcycle", others)
    good = (at >= 0) & (kinds[at] > 0)
    rows = rows.take(good).replace(kind=kinds[at[good]])
    sizes = typical_sizes(rows["trackId"], rows["length"], rows["width"], notices)
    rows = rows.replace(length=sizes.length, width=sizes.width).take(sizes.possible)
    dt, frames = 1 / float(about["frameRate"][0]), int(rows["frame"].max(initial=0)) + 1
    found = [along(files.name, part, way, dt, frames, notices) for way, part in directions(rows)]
    found = tuple(carriageway for carriageway in found if len(carriageway))
    if not found:
        raise RecordingError(f"{files.tracks}: no vehicle is left; {notices.counts}")
    return Reading(found, notices)


def directions(rows: Columns) -> list[tuple[int, Columns]]:
    """The vehicles of each driving direction: 1 to the left in the picture, 2 to the right."""
    if not len(rows):
        return []
    heading = np.radians(rows["heading"])
    axis = mean_heading(2 * heading) / 2
    _, numbers = np.unique(rows["trackId"], return_counts=True)
    starts = np.cumsum(numbers) - numbers
    forward = np.add.reduceat(np.cos(heading - axis), starts) >= 0
    forward = np.repeat(forward, numbers)
    ahead = 2 if np.cos(axis) >= 0 else 1
    parts = [(ahead, rows.take(forward)), (3 - ahead, rows.take(~forward))]
    return sorted(((way, part) for way, part in parts if len(part)), key=lambda pair: pair[0])


def along(
    name: str, rows: Columns, way: int, dt: float, frames: int, notices: Notices
) -> Carriageway:
    """The traffic of one direction as seen along its road."""
    heading = np.radians(rows["heading"])
    line = fit_line(rows["xCenter"], rows["yCenter"], heading)
    s, d, direction = line.project(rows["xCenter"], rows["yCenter"])
    parallel = np.abs(heading_difference(heading, direction)) < PARALLEL
    boundaries = boundaries_of(d, parallel, rows["laneWidth"])
    cosine, sine = np.cos(direction), np.sin(direction)
    motion = Motion(
        vehicle=rows["trackId"],
        frame=rows["frame"],
        s=s,
        d=d,
        vs=cosine * rows["xVelocity"] + sine * rows["yVelocity"],
        vd=cosine * rows["yVelocity"] - sine * rows["xVelocity"],
        length=rows["length"],
        width=rows["width"],
        kind=rows["kind"],
    )
    kept = (d <= boundaries[0]) & (d >= boundaries[-1])
    motion = motion.take(kept)
    start, end = extent(motion)
    return Carriageway(
        name=name,
        direction=way,
        dt=dt,
        frames=frames,
        boundaries=boundaries,
        start=start,
        end=end,
        tracks=tracks_of(motion, notices, reentry=reentries(kept)),
    )


def boundaries_of(
    d: Float[np.ndarray, " rows"],
    parallel: Bool[np.ndarray, " rows"],
    widths: Float[np.ndarray, " rows"],
) -> Float[np.ndarray, " markings"]:
    """Markings of lanes side by side, placed where most vehicles along the road drive.

    With lanes of width w, places d and d + w look alike; the mean over this circle is the centre of
    a lane.
    """
    usual = widths[(widths > POSSIBLE_LANE_WIDTHS[0]) & (widths < POSSIBLE_LANE_WIDTHS[1])]
    width = float(np.median(usual)) if len(usual) else LANE_WIDTH
    if parallel.any():
        d = d[parallel]
    centre = mean_heading(2 * np.pi * d / width) * width / (2 * np.pi)
    lane = np.rint((centre - d) / width).astype(np.int64)
    lowest = lane.min()
    shares = np.bincount(lane - lowest) / len(lane)
    first = last = int(shares.argmax())
    while first > 0 and shares[first - 1] >= SMALLEST_SHARE:
        first -= 1
    while last + 1 < len(shares) and shares[last + 1] >= SMALLEST_SHARE:
        last += 1
    used = range(first + lowest, last + lowest + 1)
    return lane_boundaries(np.array([np.median(d[lane == number]) for number in used]), width)


@dataclass(frozen=True)
class ReferenceLine:
    """The line w(u), in axes turned by `angle` around `origin` and cut where vehicles are seen.

    Fields:
        origin: x and y where u = w = 0.
        angle: of the u axis.
        scale: u is divided by it in the polynomials.
        place: coefficients of w(u), lowest degree first; w(0) = 0.
        u, length: distance along the line at some u.
    """

    origin: tuple[float, float]
    angle: float
    scale: float
    place: Float[np.ndarray, " coefficients"]
    u: Float[np.ndarray, " points"]
    length: Float[np.ndarray, " points"]

    def project(
        self, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Distance along the line, distance to its left, and heading of the line there.

        The foot f of a point (u, w) solves (u - f) + (w - w(f)) w'(f) = 0.
        """
        u, w = turned(x - self.origin[0], y - self.origin[1], self.angle)
        foot = u.clip(self.u[0], self.u[-1])
        for _ in range(ROUNDS):
            away, slope = w - self.value(foot), self.value(foot, 1)
            error = (u - foot) + away * slope
            # Where the line bends away, Newton's step would lead to a worse point.
            bend = np.maximum(1 + slope**2 - away * self.value(foot, 2), 0.5)
            foot = (foot + error / bend).clip(self.u[0], self.u[-1])
        slope = self.value(foot, 1)
        steep = np.sqrt(1 + slope**2)
        d = ((w - self.value(foot)) - (u - foot) * slope) / steep
        beyond = ((u - foot) + (w - self.value(foot)) * slope) / steep
        return np.interp(foot, self.u, self.length) + beyond, d, self.angle + np.arctan(slope)

    def value(self, u: Float[np.ndarray, " n"], order: int = 0) -> Float[np.ndarray, " n"]:
        """w(u) or one of its derivatives."""
        coefficients = np.polynomial.polynomial.polyder(self.place, order)
        return np.polynomial.polynomial.polyval(u / self.scale, coefficients) / self.scale**order


def fit_line(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], heading: Float[np.ndarray, " n"]
) -> ReferenceLine:
    """Fit the line whose heading is that of most vehicles at each place."""
    angle = mean_heading(heading)
    origin = float(np.median(x)), float(np.median(y))
    u, _ = turned(x - origin[0], y - origin[1], angle)
    scale = max(float(np.abs(u).max()), 1.0)
    turn = heading_difference(heading, angle)
    every = max(1, len(u) // MOST_ROWS)
    usable = np.flatnonzero(np.abs(turn) < STEEPEST)[::every]
    powers = np.vander(u[usable] / scale, DEGREE + 1, increasing=True)
    slope = trimmed_fit(powers, np.tan(turn[usable]))
    place = np.polynomial.polynomial.polyint(slope) * scale
    points = np.linspace(u.min(), u.max(), max(2, int(np.ptp(u)) + 2))
    steep = np.sqrt(1 + np.polynomial.polynomial.polyval(points / scale, slope) ** 2)
    pieces = np.diff(points) * (steep[1:] + steep[:-1]) / 2
    length = np.concatenate([[0.0], np.cumsum(pieces)])
    return ReferenceLine(origin, angle, scale, place, points, length)


def trimmed_fit(powers: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Least squares, repeated without the values far from the last fit."""
    kept = np.ones(len(slope), bool)
    result = np.zeros(powers.shape[1])
    for _ in range(ROUNDS):
        result = np.linalg.lstsq(powers[kept], slope[kept], rcond=1e-6)[0]
        error = np.abs(slope - powers @ result)
        # 2.5 standard deviations of a normal distribution, from its median.
        kept = error <= max(2.5 * 1.4826 * float(np.median(error)), 0.01)
    return result


def turned(x: np.ndarray, y: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in axes turned to the left by `angle`."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * x + sine * y, cosine * y - sine * x


def mean_heading(angles: Float[np.ndarray, " n"]) -> float:
    """The mean of angles on the circle."""
    return float(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))


def heading_difference(one: np.ndarray, other: np.ndarray | float) -> np.ndarray:
    """The turn from `other` to `one`, between -pi and pi."""
    return (one - other + np.pi) % (2 * np.pi) - np.pi
