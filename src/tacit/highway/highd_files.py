"""highD: both carriageways of a straight motorway at 25 Hz, in three CSV files per recording.

In the files x grows to the right and **y downwards**; x and y are the upper left corner of a box,
whose `width` is the vehicle's length and whose `height` is its width. Traffic of direction 1 drives
to the left, that of direction 2 to the right. With the centre of the box (x_c, y_c):

    direction 2:  s =  x_c,  d = -y_c,  v_s =  v_x,  v_d = -v_y
    direction 1:  s = -x_c,  d =  y_c,  v_s = -v_x,  v_d =  v_y

The columns about neighbours (`precedingId`, `dhw`, `ttc` ...) are never read.

Like exiD, highD keeps a recording in `03_recordingMeta.csv` (about itself), `03_tracksMeta.csv`
(about its vehicles) and `03_tracks.csv`, each of which may be compressed (`.csv.gz`).
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tacit.highway.csv_columns import Columns, Layout, read_columns
from tacit.highway.recording import (
    CAR,
    TRUCK,
    Carriageway,
    Geometry,
    Notices,
    Reading,
    RecordingError,
)
from tacit.highway.tracks import (
    Motion,
    Sizes,
    in_order,
    refuse_frames,
    refuse_not_positive,
    tracks_of,
    typical_sizes,
    without_unknown,
)

PARTS = ("recordingMeta", "tracksMeta", "tracks")
RECORDING = Layout(
    whole=("id",), real=("frameRate",), text=("upperLaneMarkings", "lowerLaneMarkings")
)
VEHICLES = Layout(whole=("id", "numFrames"), gappy=("drivingDirection",), text=("class",))
TRACKS = Layout(
    whole=("frame", "id"), real=("x", "y", "xVelocity", "yVelocity"), gappy=("width", "height")
)
KINDS = {"car": CAR, "truck": TRUCK}
MARKINGS = {1: "upperLaneMarkings", 2: "lowerLaneMarkings"}
MOST_WRONG_DIRECTIONS = 0.01
WIDER = 2.0
LEGACY_ROADS = {1: (-460.0, 32.0), 2: (-40.0, 452.0)}
"""Where the road of the published simulator begins and ends; its outer lanes are wider by 2 m."""


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
    refuse_not_positive(about, "frameRate")
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

    `described` are the ids in the file about vehicles, which should have `numbers` of frames.
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


def highd_reading(files: ThreeFiles, geometry: Geometry) -> Reading:
    """The carriageways, and what was dropped or repaired."""
    notices = Notices(files.name, {})
    about = read_about_recording(files, RECORDING, "id")
    vehicles = read_columns(files.vehicles, VEHICLES)
    rows = read_columns(files.tracks, TRACKS)
    refuse_frames(rows, "frame", 1)
    rows = in_order(rows, "id", "frame", notices)
    rows, direction, kind = keep_described(rows, vehicles, notices)
    sizes = typical_sizes(rows["id"], rows["width"], rows["height"], notices)
    kind = without_unknown(kind, rows["id"], sizes, notices)
    centres = box_centres(rows, sizes, geometry)
    frames = int(rows["frame"].max(initial=0))
    found = []
    for way in (1, 2):
        mine = np.flatnonzero(sizes.possible & (direction == way))
        motion = seen_along(rows, centres, sizes, kind, way).take(mine)
        tracks = tracks_of(motion, notices)
        if tracks:
            boundaries = markings(about, way, geometry)
            start, end = road(centres, way, geometry)
            found.append(
                Carriageway(
                    name=files.name,
                    direction=way,
                    dt=1 / float(about["frameRate"][0]),
                    frames=frames,
                    boundaries=boundaries,
                    start=start,
                    end=end,
                    tracks=tracks,
                )
            )
    if not found:
        raise RecordingError(f"{files.tracks}: no vehicle is left; {notices.counts}")
    return Reading(tuple(found), notices)


def keep_described(
    rows: Columns, vehicles: Columns, notices: Notices
) -> tuple[Columns, Int[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
    """Keep rows of vehicles with a description and a direction.

    Returns them with the direction and the kind (0: unknown) of each row.
    """
    at = match_vehicles(rows["id"], vehicles["id"], vehicles["numFrames"], notices)
    rows, at = rows.take(at >= 0), at[at >= 0]
    towards = np.nan_to_num(vehicles["drivingDirection"])[at]
    number = len(vehicles)
    drift = np.bincount(at, rows["xVelocity"], minlength=number)[at]
    known = (towards == 1) | (towards == 2)
    wrong = known & (drift * (2 * towards - 3) < 0)
    dropped = 0
    for what, bad in (("is neither 1 nor 2", ~known), ("contradicts xVelocity", wrong)):
        dropped += (found := len(np.unique(at[bad])))
        notices.add(f"vehicles dropped, drivingDirection {what}", found)
    if dropped > MOST_WRONG_DIRECTIONS * number:
        first = int(at[np.flatnonzero(~known | wrong)[0]])
        raise RecordingError(
            f"{vehicles.place(first, 'drivingDirection')}: {dropped} of {number} vehicles have no "
            "direction or one that contradicts their xVelocity; the files do not belong together"
        )
    kinds = np.array([KINDS.get(word.lower(), 0) for word in vehicles["class"]])
    good = known & ~wrong
    return rows.take(good), towards[good].astype(np.int64), kinds[at[good]]


class Centres(NamedTuple):
    """Centres of the boxes in the picture, and how far the section reaches in it."""

    x: Float[np.ndarray, " rows"]
    y: Float[np.ndarray, " rows"]
    left: float
    right: float


def box_centres(rows: Columns, sizes: Sizes, geometry: Geometry) -> Centres:
    """Corner plus half a box, with the vehicle's usual size where a row has no usable one."""
    wide = np.where(rows["width"] > 0, rows["width"], sizes.length)
    high = np.where(rows["height"] > 0, rows["height"], sizes.width)
    right = (rows["x"] + wide)[sizes.possible]
    left = rows["x"][sizes.possible]
    share = 0.0 if geometry == "legacy" else 0.5
    return Centres(
        x=rows["x"] + share * wide,
        y=rows["y"] + share * high,
        left=float(left.min(initial=0)),
        right=float(right.max(initial=0)),
    )


def seen_along(
    rows: Columns, centres: Centres, sizes: Sizes, kind: Int[np.ndarray, " rows"], way: int
) -> Motion:
    """All rows in coordinates along the road of one driving direction."""
    forward = 1.0 if way == 2 else -1.0
    return Motion(
        vehicle=rows["id"],
        frame=rows["frame"] - 1,
        s=forward * centres.x,
        d=-forward * centres.y,
        vs=forward * rows["xVelocity"],
        vd=-forward * rows["yVelocity"],
        length=sizes.length,
        width=sizes.width,
        kind=kind,
    )


def markings(about: Columns, way: int, geometry: Geometry) -> Float[np.ndarray, " markings"]:
    """The lane markings of a direction as `d`, from left to right."""
    column = MARKINGS[way]
    text = str(about[column][0])
    try:
        values = np.array([float(part) for part in text.split(";")])
    except ValueError:
        values = np.array([])
    if len(values) < 2 or not np.isfinite(values).all() or not (np.diff(values) > 0).all():
        raise RecordingError(
            f"{about.place(0, column)}: is {text!r}; it must hold the y of two or more lane "
            "markings, ascending and separated by ';', because there is traffic in direction "
            f"{way}"
        )
    result = -values if way == 2 else values[::-1].copy()
    if geometry == "legacy":
        result[0] += WIDER
        result[-1] -= WIDER
    return result


def road(centres: Centres, way: int, geometry: Geometry) -> tuple[float, float]:
    """Where the road begins and ends: where boxes of either direction are seen."""
    if geometry == "legacy":
        return LEGACY_ROADS[way]
    return (centres.left, centres.right) if way == 2 else (-centres.right, -centres.left)
