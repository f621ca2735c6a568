"""Made-up motorway traffic, for tests and for trying things out without any recording.

Two carriageways, seen over 420 m. Drivers follow (IDM), change lanes (MOBIL) and enter at random;
a few would like to drive much faster than 40 m/s. Boxes never overlap: a vehicle counts as being
in both lanes while it changes, and at most one vehicle a side begins to change at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.highway.car_following import (
    Drivers,
    acceleration_behind,
    change_incentive,
    leaders,
)
from tacit.highway.entering_vehicles import Entries, empty_road
from tacit.highway.traffic import (
    EXIT,
    FRAME_RATE,
    LANE_WIDTH,
    ROAD_LENGTH,
    WARM_UP,
    Traffic,
)

FRAMES_PER_DECISION = 5
LATERAL_RATE, LATERAL_SPEED, LATERAL_ACCELERATION = 0.8, 1.2, 1.5
REST_BETWEEN_CHANGES = 4.0


class Movement(NamedTuple):
    """What was seen of all vehicles: one entry per vehicle and frame, in this order.

    Fields:
        vehicle: index into the vehicles of the record.
        frame: counted from 0.
        s: centre along the road, growing in driving direction from 0 to `ROAD_LENGTH`.
        d: centre to the left, 0 at the left edge of the carriageway.
        vs, vd, acceleration_s, acceleration_d: their derivatives.
    """

    vehicle: Int[np.ndarray, " rows"]
    frame: Int[np.ndarray, " rows"]
    s: Float[np.ndarray, " rows"]
    d: Float[np.ndarray, " rows"]
    vs: Float[np.ndarray, " rows"]
    vd: Float[np.ndarray, " rows"]
    acceleration_s: Float[np.ndarray, " rows"]
    acceleration_d: Float[np.ndarray, " rows"]


@dataclass(frozen=True)
class SeenTraffic:
    """Vehicles in the order in which they were first seen, and how they moved.

    Fields:
        traffic: the settings it was made from.
        side: carriageway of each vehicle, 0 or 1.
        truck: whether it is one.
        length, width: of its box.
        movement: of all of them.
    """

    traffic: Traffic
    side: Int[np.ndarray, " vehicles"]
    truck: Bool[np.ndarray, " vehicles"]
    length: Float[np.ndarray, " vehicles"]
    width: Float[np.ndarray, " vehicles"]
    movement: Movement

    @property
    def lanes(self) -> Int[np.ndarray, " rows"]:
        """The lane that each centre is in, counted from the left, from 0."""
        return np.floor(-self.movement.d / LANE_WIDTH).astype(int)

    @property
    def lane_changes(self) -> int:
        """How often a vehicle's centre crosses a lane marking."""
        same = np.diff(self.movement.vehicle) == 0
        return int((same & (np.diff(self.lanes) != 0)).sum())


def simulate(traffic: Traffic, progress: Callable[[float], None] | None = None) -> SeenTraffic:
    """Let traffic flow for the warm-up and the duration; `progress` is told the seconds done."""
    random = np.random.default_rng(traffic.seed)
    warm_up = round(WARM_UP * FRAME_RATE)
    entries = Entries(traffic, random)
    drivers = empty_road()
    ahead = leaders(drivers)
    seen: list[Float[np.ndarray, "8 visible"]] = []
    for frame in range(warm_up + traffic.frames):
        if frame % FRAMES_PER_DECISION == 0:
            now = frame / FRAME_RATE
            drivers = settle_in_lanes(without_gone(drivers), traffic.lanes)
            drivers = entries.admit(drivers, now)
            drivers = change_lanes(drivers, traffic.lanes)
            ahead = leaders(drivers)
            if progress is not None and frame % (10 * FRAME_RATE) == 0:
                progress(max(0.0, now - WARM_UP))
        accelerated = accelerate(drivers, ahead, traffic.lanes)
        if frame >= warm_up:
            seen.append(visible_rows(accelerated, frame - warm_up))
        drivers = move(accelerated)
    if progress is not None:
        progress(traffic.duration)
    return as_seen(traffic, entries.admitted, np.concatenate(seen, axis=1))


def select(drivers: Drivers, chosen: Bool[np.ndarray, " vehicles"]) -> Drivers:
    """The vehicles that `chosen` marks."""
    return Drivers(*(field[chosen] for field in drivers))


def without_gone(drivers: Drivers) -> Drivers:
    """Forget vehicles beyond the end of the road."""
    return select(drivers, drivers.s < EXIT)


def lane_middle(drivers: Drivers, lanes: int) -> Float[np.ndarray, " vehicles"]:
    """`d` of the middle of the target lane."""
    return -(drivers.target - lanes * drivers.side + 0.5) * LANE_WIDTH


def settle_in_lanes(drivers: Drivers, lanes: int) -> Drivers:
    """A change has ended, for the others, once the whole box is in the target lane."""
    aside = np.abs(drivers.d - lane_middle(drivers, lanes))
    inside = aside <= (LANE_WIDTH - drivers.width) / 2
    return drivers._replace(origin=np.where(inside, drivers.target, drivers.origin))


def change_lanes(drivers: Drivers, lanes: int) -> Drivers:
    """Let the driver of each side with the most to gain begin to change, if anyone gains."""
    if len(drivers.s) == 0:
        return drivers
    left, right = change_incentive(drivers, -1, lanes), change_incentive(drivers, 1, lanes)
    gain = np.where(drivers.rested > REST_BETWEEN_CHANGES, np.maximum(left, right), -np.inf)
    target, rested = drivers.target.copy(), drivers.rested.copy()
    for side in (0, 1):
        here = np.where(drivers.side == side, gain, -np.inf)
        best = here.argmax()
        if here[best] > 0:
            target[best] += -1 if left[best] > right[best] else 1
            rested[best] = 0.0
    return drivers._replace(target=target, rested=rested)


def accelerate(drivers: Drivers, ahead: Int[np.ndarray, " vehicles"], lanes: int) -> Drivers:
    """Everyone decides how to accelerate in this frame.

    To the side, the speed that is aimed at is proportional to the distance that is left, and
    capped; it is reached with a bounded acceleration, so that velocities are continuous.
    """
    own = np.arange(len(drivers.s))
    aim = LATERAL_RATE * (lane_middle(drivers, lanes) + drivers.offset - drivers.d)
    aim = np.clip(aim, -LATERAL_SPEED, LATERAL_SPEED)
    return drivers._replace(
        acceleration_s=acceleration_behind(drivers, own, ahead),
        acceleration_d=np.clip(
            (aim - drivers.vd) * FRAME_RATE, -LATERAL_ACCELERATION, LATERAL_ACCELERATION
        ),
    )


def move(drivers: Drivers) -> Drivers:
    """One frame further; nobody drives backwards."""
    step = 1 / FRAME_RATE
    speed = np.maximum(drivers.vs + drivers.acceleration_s * step, 0.0)
    aside = drivers.vd + drivers.acceleration_d * step
    return drivers._replace(
        s=drivers.s + (drivers.vs + speed) / 2 * step,
        d=drivers.d + (drivers.vd + aside) / 2 * step,
        vs=speed,
        vd=aside,
        rested=drivers.rested + step,
    )


def visible_rows(drivers: Drivers, frame: int) -> Float[np.ndarray, "8 visible"]:
    """The entries of `Movement` for one frame: from front entering to rear leaving."""
    half = drivers.length / 2
    visible = (drivers.s + half > 0) & (drivers.s - half < ROAD_LENGTH)
    moving = (drivers.s, drivers.d, drivers.vs, drivers.vd)
    rates = (drivers.acceleration_s, drivers.acceleration_d)
    return np.array([drivers.number, np.full(len(half), frame), *moving, *rates])[:, visible]


def as_seen(
    traffic: Traffic, admitted: list[Drivers], rows: Float[np.ndarray, "8 rows"]
) -> SeenTraffic:
    """Vehicles that were seen at least twice, ordered by first frame, with their rows."""
    number = rows[0].astype(int)
    rows = rows[:, np.bincount(number)[number] > 1]
    rows = rows[:, np.lexsort((rows[1], rows[0]))]
    numbers, firsts, index = np.unique(rows[0].astype(int), return_index=True, return_inverse=True)
    order = np.lexsort((numbers, rows[1, firsts]))
    rank = np.argsort(order)
    vehicle = rank[index]
    rows, vehicle = rows[:, (by := np.argsort(vehicle, kind="stable"))], vehicle[by]
    seen = [admitted[number] for number in numbers[order]]
    return SeenTraffic(
        traffic=traffic,
        side=np.array([one.side[0] for one in seen], dtype=int),
        truck=np.array([one.truck[0] for one in seen], dtype=bool),
        length=np.array([one.length[0] for one in seen], dtype=float),
        width=np.array([one.width[0] for one in seen], dtype=float),
        movement=Movement(vehicle, rows[1].astype(int), *rows[2:]),
    )
