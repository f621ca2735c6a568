"""Made-up traffic as highD sees it: boxes in the picture, in whole centimetres.

The picture's origin is its upper left corner, x points right and y **down**. The upper carriageway
(direction 1) drives towards -x, the lower one (direction 2) towards +x. Everything that is derived
(lanes, neighbours, gaps) is derived from the rounded boxes, so that a file agrees with itself.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tacit.highway.synthetic_traffic import SeenTraffic
from tacit.highway.traffic import LANE_WIDTH, ROAD_LENGTH

VERGE, MEDIAN = 8.0, 5.0
"""Above the upper carriageway, and between the two."""
BEHIND, ALONGSIDE, AHEAD = 0, 1, 2
NO_ROW = -1
SPACE = 1 << 20
"""More centimetres than any position in the picture: keeps lanes apart in one sorted list."""


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
