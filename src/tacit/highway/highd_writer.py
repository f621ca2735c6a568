"""Made-up traffic in the three files of a highD recording.

Columns, signs and sentinels are those of the data set: positions are upper left corners, `width`
is the length of a vehicle and `height` its width; 0 stands for no neighbour, no gap and no time to
collision in `tracks`, and -1 for never in `tracksMeta`.

The picture's origin is its upper left corner, x points right and y **down**. The upper carriageway
(direction 1) drives towards -x, the lower one (direction 2) towards +x. Lanes, neighbours and gaps
follow from boxes rounded to whole centimetres, so that a file agrees with itself.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tacit.argument_checks import check_count
from tacit.errors import ArgumentError
from tacit.highway.synthetic_traffic import (
    FRAME_RATE,
    LANE_WIDTH,
    ROAD_LENGTH,
    SeenTraffic,
    Traffic,
    simulate,
)
from tacit.runs.atomic_write import atomic_write

VERGE, MEDIAN = 8.0, 5.0
"""Above the upper carriageway, and between the two."""
BEHIND, ALONGSIDE, AHEAD = 0, 1, 2
NO_ROW = -1
SPACE = 1 << 20
"""More centimetres than any position in the picture: keeps lanes apart in one sorted list."""
SPEED_LIMIT = 36.11
NEIGHBOUR_COLUMNS = {
    "precedingId": (0, AHEAD),
    "followingId": (0, BEHIND),
    "leftPrecedingId": (1, AHEAD),
    "leftAlongsideId": (1, ALONGSIDE),
    "leftFollowingId": (1, BEHIND),
    "rightPrecedingId": (-1, AHEAD),
    "rightAlongsideId": (-1, ALONGSIDE),
    "rightFollowingId": (-1, BEHIND),
}
"""How many lanes to the left each neighbour is, and where along the road."""


class Boxes(NamedTuple):
    """One entry per vehicle and frame, ordered by vehicle, then frame.

    Fields:
        vehicle: index of the vehicle.
        frame: counted from 0.
        direction: 1 or 2.
        x, y: upper left corner.
        width, height: of the box, along x and y.
        rear, front: ends of the box along the road, growing in driving direction.
        lane: counted downwards from 1, which is above the upper carriageway.
    """

    vehicle: Int[np.ndarray, " rows"]
    frame: Int[np.ndarray, " rows"]
    direction: Int[np.ndarray, " rows"]
    x: Int[np.ndarray, " rows"]
    y: Int[np.ndarray, " rows"]
    width: Int[np.ndarray, " rows"]
    height: Int[np.ndarray, " rows"]
    rear: Int[np.ndarray, " rows"]
    front: Int[np.ndarray, " rows"]
    lane: Int[np.ndarray, " rows"]


def write_highd(
    folder: Path, number: int, traffic: Traffic, progress: Callable[[float], None] | None = None
) -> SeenTraffic:
    """Write a made-up recording and return its traffic; the same settings give the same bytes.

    Its `number`, from 1, names the files, as in 03_tracks.csv. The folder is created if it does
    not exist; `progress` is called with the seconds of traffic that are done.
    """
    check_count("number", number)
    seen = simulate(traffic, progress)
    if len(seen.side) == 0:
        raise ArgumentError(
            f"nobody drove by in {traffic.duration:g} s; take more flow or a longer duration"
        )
    tracks = track_columns(seen)
    vehicles = vehicle_columns(seen, tracks)
    tables = {
        "tracks": tracks,
        "tracksMeta": vehicles,
        "recordingMeta": recording_columns(seen, vehicles, number),
    }
    for name, columns in tables.items():
        write_table(folder / f"{number:02d}_{name}.csv", columns)
    return seen


def track_columns(seen: SeenTraffic) -> dict[str, np.ndarray]:
    """The 25 columns of `tracks`."""
    boxes, rows = boxes_of(seen), seen.movement
    forward = np.where(boxes.direction == 1, -1, 1)
    speed = np.round(rows.vs, 2)
    found = {step: neighbours(boxes, step) for step in (0, 1, -1)}
    middle = (boxes.rear + boxes.front) / 200 + np.where(boxes.direction == 1, ROAD_LENGTH, 0)
    return {
        "frame": boxes.frame + 1,
        "id": boxes.vehicle + 1,
        "x": boxes.x / 100,
        "y": boxes.y / 100,
        "width": boxes.width / 100,
        "height": boxes.height / 100,
        "xVelocity": forward * speed,
        "yVelocity": -forward * rows.vd,
        "xAcceleration": forward * rows.acceleration_s,
        "yAcceleration": -forward * rows.acceleration_d,
        "frontSightDistance": np.clip(ROAD_LENGTH - middle, 0, ROAD_LENGTH),
        "backSightDistance": np.clip(middle, 0, ROAD_LENGTH),
        **gap_columns(boxes, speed, found[0][AHEAD]),
        **{
            name: np.where(found[step][place] == NO_ROW, 0, boxes.vehicle[found[step][place]] + 1)
            for name, (step, place) in NEIGHBOUR_COLUMNS.items()
        },
        "laneId": boxes.lane,
    }


def gap_columns(
    boxes: Boxes, speed: Float[np.ndarray, " rows"], leader: Int[np.ndarray, " rows"]
) -> dict[str, np.ndarray]:
    """Gap to the vehicle ahead, from bumper to bumper, as a distance and as times.

    The time to collision is 0 where the vehicle ahead is not slower.
    """
    led = leader != NO_ROW
    gap = np.where(led, boxes.rear[leader] - boxes.front, 0) / 100
    closing = np.where(led, speed - speed[leader], 0)
    # Speeds are whole centimetres a second: anything less is an error of rounding.
    approaching = closing > 0.005
    return {
        "dhw": gap,
        "thw": np.divide(gap, speed, out=np.zeros_like(gap), where=speed > 0),
        "ttc": np.divide(gap, closing, out=np.zeros_like(gap), where=approaching),
        "precedingXVelocity": np.where(
            led, np.where(boxes.direction == 1, -1, 1) * speed[leader], 0.0
        ),
    }


def vehicle_columns(seen: SeenTraffic, tracks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The 16 columns of `tracksMeta`."""
    vehicle = seen.movement.vehicle
    starts = np.searchsorted(vehicle, np.arange(len(seen.side)))
    ends = np.append(starts[1:], len(vehicle)) - 1
    frame, speed = tracks["frame"], np.abs(tracks["xVelocity"])
    counts = ends - starts + 1
    changed = (np.diff(tracks["laneId"]) != 0) & (np.diff(vehicle) == 0)

    def least(name: str) -> Float[np.ndarray, " vehicles"]:
        valid = (tracks["precedingId"] > 0) & ((name != "ttc") | (tracks[name] > 0))
        smallest = np.minimum.reduceat(np.where(valid, tracks[name], np.inf), starts)
        return np.where(np.isinf(smallest), -1.0, smallest)

    return {
        "id": np.arange(1, len(starts) + 1),
        "width": tracks["width"][starts],
        "height": tracks["height"][starts],
        "initialFrame": frame[starts],
        "finalFrame": frame[ends],
        "numFrames": counts,
        "class": np.where(seen.truck, "Truck", "Car"),
        "drivingDirection": seen.side + 1,
        "traveledDistance": np.abs(tracks["x"][ends] - tracks["x"][starts]),
        "minXVelocity": np.minimum.reduceat(speed, starts),
        "maxXVelocity": np.maximum.reduceat(speed, starts),
        "meanXVelocity": np.add.reduceat(speed, starts) / counts,
        "minDHW": least("dhw"),
        "minTHW": least("thw"),
        "minTTC": least("ttc"),
        "numLaneChanges": np.bincount(vehicle[1:][changed], minlength=len(starts)),
    }


def recording_columns(
    seen: SeenTraffic, vehicles: dict[str, np.ndarray], number: int
) -> dict[str, np.ndarray]:
    """The 15 columns of `recordingMeta`, one row."""
    upper, lower = lane_markings(seen.traffic.lanes)
    row = {
        "id": number,
        "frameRate": FRAME_RATE,
        "locationId": 1,
        "speedLimit": SPEED_LIMIT,
        "month": "09.2017",
        "weekDay": "Tue",
        "startTime": "09:00",
        "duration": f"{seen.traffic.duration:e}",
        "totalDrivenDistance": float(vehicles["traveledDistance"].sum()),
        "totalDrivenTime": float(vehicles["numFrames"].sum() / FRAME_RATE),
        "numVehicles": len(seen.side),
        "numCars": int((~seen.truck).sum()),
        "numTrucks": int(seen.truck.sum()),
        "upperLaneMarkings": ";".join(f"{y:.2f}" for y in upper),
        "lowerLaneMarkings": ";".join(f"{y:.2f}" for y in lower),
    }
    return {name: np.array([value]) for name, value in row.items()}


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write columns as comma-separated text: fractions with 2 decimals, the others as they are."""
    fractions = [np.issubdtype(column.dtype, np.floating) for column in columns.values()]
    line = ",".join("%.2f" if fraction else "%s" for fraction in fractions) + "\n"
    values = [
        # The sum with 0 turns a negative zero into a plain one.
        (np.round(column, 2) + 0.0 if fraction else column).tolist()
        for column, fraction in zip(columns.values(), fractions, strict=True)
    ]
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(columns) + "\n")
        file.writelines(line % row for row in zip(*values, strict=True))


def lane_markings(lanes: int) -> tuple[Float[np.ndarray, " markings"], ...]:
    """Markings of the upper and of the lower carriageway: their y, ascending."""
    upper = VERGE + LANE_WIDTH * np.arange(lanes + 1)
    return upper, upper + upper[-1] + MEDIAN - VERGE


def centimetres(metres: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The nearest whole number of centimetres."""
    return np.rint(100 * metres).astype(int)


def boxes_of(seen: SeenTraffic) -> Boxes:
    """The boxes of all vehicles in all frames."""
    rows, lanes = seen.movement, seen.traffic.lanes
    upper, lower = lane_markings(lanes)
    length, width = seen.length[rows.vehicle], seen.width[rows.vehicle]
    first = seen.side[rows.vehicle] == 0
    x = centimetres(np.where(first, ROAD_LENGTH - rows.s, rows.s) - length / 2)
    y = centimetres(np.where(first, upper[-1] + rows.d, lower[0] - rows.d) - width / 2)
    wide, high = centimetres(length), centimetres(width)
    markings = np.concatenate([centimetres(upper), centimetres(lower)])
    return Boxes(
        vehicle=rows.vehicle,
        frame=rows.frame,
        direction=np.where(first, 1, 2),
        x=x,
        y=y,
        width=wide,
        height=high,
        rear=np.where(first, -(x + wide), x),
        front=np.where(first, -x, x + wide),
        # Doubled, so that the middle of a box is a whole number too.
        lane=1 + np.searchsorted(2 * markings, 2 * y + high, side="right"),
    )


def neighbours(boxes: Boxes, step: int) -> Int[np.ndarray, "3 rows"]:
    """The rows of the vehicles behind, alongside and ahead, `step` lanes to the driver's left.

    Alongside means that the boxes overlap along the road, with the nearest middle if several do;
    behind and ahead are the nearest ones that do not. Vehicles of one lane never overlap, so that
    one order of a lane serves for rears and fronts.
    """
    lanes = int(boxes.lane.max(initial=0)) + 2
    own = boxes.frame * lanes + boxes.lane
    asked = own + step * np.where(boxes.direction == 1, 1, -1)
    order = np.argsort(own * SPACE + boxes.rear, kind="stable")
    place = own[order]
    rears, fronts = place * SPACE + boxes.rear[order], place * SPACE + boxes.front[order]
    # How many of the sorted list are behind, and how many are not yet wholly ahead.
    behind = np.searchsorted(fronts, asked * SPACE + boxes.rear, side="right")
    ahead = np.searchsorted(rears, asked * SPACE + boxes.front, side="left")
    padded, padded_place = np.append(order, NO_ROW), np.append(place, NO_ROW)

    def row(index: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        inside = np.where((index >= 0) & (index < len(order)), index, len(order))
        return np.where(padded_place[inside] == asked, padded[inside], NO_ROW)

    if step == 0:
        return np.stack([row(behind - 1), np.full(len(own), NO_ROW), row(ahead)])
    middle = boxes.rear + boxes.front
    beside = np.where(ahead > behind, padded[np.minimum(behind, len(order))], NO_ROW)
    for further in range(1, int((ahead - behind).max(initial=0))):
        other = padded[np.minimum(behind + further, len(order))]
        nearer = np.abs(middle[other] - middle) < np.abs(middle[beside] - middle)
        beside = np.where((behind + further < ahead) & nearer, other, beside)
    return np.stack([row(behind - 1), beside, row(ahead)])
