"""Made-up motorway traffic, for tests and for trying things out without any recording.

Two carriageways, seen over 420 m. Drivers enter at random, follow (IDM) and change lanes (MOBIL);
a few would like to drive much faster than 40 m/s. Boxes never overlap: a vehicle counts as being
in both lanes while it changes, and at most one vehicle a side begins to change at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.argument_checks import check_count, check_seed
from tacit.errors import ArgumentError
from tacit.highway.car_following import (
    COMFORTABLE_BRAKING,
    Drivers,
    acceleration_behind,
    change_incentive,
    following_acceleration,
    leaders,
)

FRAME_RATE = 25
ROAD_LENGTH, LANE_WIDTH = 420.0, 3.75
WARM_UP = 40.0
ENTRANCE, EXIT = -400.0, 520.0
"""Where vehicles enter and leave the simulation, both out of sight; the road is seen from 0 on."""
LANE_SPEEDS, LANE_SPREAD = (30.0, 35.0, 38.0), 3.0
"""Desired speed of cars in the right lane, in between, and in the left lane."""
TRUCK_SPEED, TRUCK_SPREAD = 24.0, 1.0
FAST_SHARE, FAST_SPEEDS = 0.12, (42.0, 50.0)
"""Share and desired speeds of fast cars, which all enter in the left lane."""
HEADWAYS = (0.9, 1.8)
PUSHY_SHARE, PUSHY_HEADWAYS = 0.35, (0.3, 0.6)
"""Share and headways of cars that follow closely, besides all fast ones.

Without them, gaps are hardly ever below 20 m.
"""
LANE_FLOWS = (0.6, 1.4)
"""Flow of the left and of the right lane, as multiples of the mean."""
SHORTEST_HEADWAY = 1.0
FRAMES_PER_DECISION = 5
LATERAL_RATE, LATERAL_SPEED, LATERAL_ACCELERATION = 0.8, 1.2, 1.5
REST_BETWEEN_CHANGES = 4.0


@dataclass(frozen=True)
class Traffic:
    """Settings of made-up traffic.

    Fields:
        seed: of every random draw.
        duration: seconds that are recorded, after the warm-up.
        lanes: on each side.
        flow: vehicles an hour and lane that want to enter.
        trucks: share of all vehicles, as far as the right lane has room for them.
    """

    seed: int = 1
    duration: float = 80.0
    lanes: int = 2
    flow: float = 800.0
    trucks: float = 0.25

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if check_count("lanes", self.lanes) > 6:
            raise ArgumentError(f"lanes must be at most 6 on each side, not {self.lanes}")
        if not 1 <= self.duration <= 7200:
            raise ArgumentError(f"duration must lie between 1 and 7200 s, not {self.duration}")
        if not 0 < self.flow <= 3000:
            raise ArgumentError(
                f"flow must lie between 0 and 3000 vehicles an hour and lane, not {self.flow}"
            )
        if not 0 <= self.trucks <= 1:
            raise ArgumentError(f"trucks must be a share between 0 and 1, not {self.trucks}")

    @property
    def frames(self) -> int:
        """The number of recorded frames."""
        return round(self.duration * FRAME_RATE)


class Entries:
    """Vehicles that enter each lane as a Poisson process with a shortest headway.

    Fields:
        traffic: the settings.
        random: the generator of times and drivers.
        times: when the next vehicle enters each lane of both sides.
        waiting: the vehicle that enters there next.
        admitted: all that have entered, in order; `number` is their place in this list.
    """

    def __init__(self, traffic: Traffic, random: np.random.Generator):
        self.traffic, self.random = traffic, random
        self.times: Float[np.ndarray, " lanes"] = np.zeros(2 * traffic.lanes)
        self.waiting = [empty_road()] * len(self.times)
        self.admitted: list[Drivers] = []
        self.between = 3600 / (traffic.flow * np.tile(lane_flows(traffic.lanes), 2))
        for lane, mean in enumerate(self.between):
            self.plan(lane, random.exponential(mean))

    def plan(self, lane: int, time: float) -> None:
        """Draw the vehicle that enters next in a lane."""
        self.times[lane] = time
        self.waiting[lane] = draw_driver(self.random, self.traffic, lane)

    def admit(self, drivers: Drivers, now: float) -> Drivers:
        """Add the vehicles whose time has come, where there is room for them."""
        for lane in np.flatnonzero(self.times <= now).tolist():
            new = adapted(self.waiting[lane], drivers, lane)
            if new is None:
                continue
            new = new._replace(number=np.array([len(self.admitted)]))
            self.admitted.append(new)
            drivers = Drivers(*map(np.concatenate, zip(drivers, new, strict=True)))
            more = self.random.exponential(max(0.0, self.between[lane] - SHORTEST_HEADWAY))
            self.plan(lane, now + SHORTEST_HEADWAY + more)
        return drivers


def lane_flows(lanes: int) -> Float[np.ndarray, " lanes"]:
    """Flow of each lane from the left, as a multiple of the mean over lanes."""
    return np.linspace(*LANE_FLOWS, lanes) if lanes > 1 else np.ones(1)


def empty_road() -> Drivers:
    """The record of a road without vehicles."""
    kinds = {"truck": bool, **dict.fromkeys(("number", "side", "origin", "target"), int)}
    return Drivers(**{name: np.zeros(0, kinds.get(name, float)) for name in Drivers._fields})


def draw_driver(random: np.random.Generator, traffic: Traffic, lane: int) -> Drivers:
    """A vehicle at the entrance, at the speed that its driver desires.

    The right lane has all trucks of its side, the left one all fast drivers.
    """
    side, place = divmod(lane, traffic.lanes)
    from_right = traffic.lanes - 1 - place
    share = traffic.lanes / lane_flows(traffic.lanes)[place]
    truck = from_right == 0 and random.random() < traffic.trucks * share
    fast = not truck and place == 0 and random.random() < FAST_SHARE * share
    if truck:
        length, width = random.uniform(8.0, 18.5), random.uniform(2.4, 2.6)
        desired = random.normal(TRUCK_SPEED, TRUCK_SPREAD)
    else:
        length = np.clip(random.normal(4.6, 0.4), 3.6, 5.6)
        width = np.clip(random.normal(1.9, 0.1), 1.6, 2.1)
        usual = LANE_SPEEDS[0 if from_right == 0 else 2 if place == 0 else 1]
        desired = random.normal(usual, LANE_SPREAD)
    desired = random.uniform(*FAST_SPEEDS) if fast else max(desired, TRUCK_SPEED / 2)
    pushy = fast or (not truck and random.random() < PUSHY_SHARE)
    offset = np.clip(random.normal(0.0, 0.15), -0.3, 0.3)
    numbers = {
        "length": np.round(length, 2),
        "width": np.round(width, 2),
        "desired": desired,
        "headway": random.uniform(*(PUSHY_HEADWAYS if pushy else HEADWAYS)),
        "offset": offset,
        "s": ENTRANCE,
        "d": offset - (place + 0.5) * LANE_WIDTH,
        "vs": desired,
        "vd": 0.0,
        "acceleration_s": 0.0,
        "acceleration_d": 0.0,
        "rested": 0.0,
    }
    return Drivers(
        number=np.array([0]),
        side=np.array([side]),
        truck=np.array([truck]),
        origin=np.array([lane]),
        target=np.array([lane]),
        **{name: np.array([value], dtype=float) for name, value in numbers.items()},
    )


def adapted(new: Drivers, drivers: Drivers, lane: int) -> Drivers | None:
    """The vehicle at a speed that suits the one ahead; None if there is no room yet.

    Close behind another vehicle it enters no faster than that one, and only if it need not brake
    harder than is comfortable.
    """
    there = np.flatnonzero((drivers.origin == lane) | (drivers.target == lane))
    if len(there) == 0:
        return new
    ahead = there[[drivers.s[there].argmin()]]
    gap = drivers.s[ahead] - new.s - (drivers.length[ahead] + new.length) / 2
    for speed in (new.vs, np.minimum(new.vs, drivers.vs[ahead])):
        needed = following_acceleration(speed, new.desired, new.headway, gap, drivers.vs[ahead])
        if gap[0] > 0 and needed[0] >= -COMFORTABLE_BRAKING:
            return new._replace(vs=speed)
    return None


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
    """Let traffic flow; `progress` is called with the seconds done after the warm-up."""
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


def without_gone(drivers: Drivers) -> Drivers:
    """Forget vehicles beyond the end of the road."""
    return Drivers(*(field[drivers.s < EXIT] for field in drivers))


def lane_middle(drivers: Drivers, lanes: int) -> Float[np.ndarray, " vehicles"]:
    """`d` of the middle of the target lane."""
    return -(drivers.target - lanes * drivers.side + 0.5) * LANE_WIDTH


def settle_in_lanes(drivers: Drivers, lanes: int) -> Drivers:
    """End a change of lane once the whole box is in the target lane."""
    aside = np.abs(drivers.d - lane_middle(drivers, lanes))
    inside = aside <= (LANE_WIDTH - drivers.width) / 2
    return drivers._replace(origin=np.where(inside, drivers.target, drivers.origin))


def change_lanes(drivers: Drivers, lanes: int) -> Drivers:
    """On each side, let the driver with the most to gain begin to change lanes, if one gains."""
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
    """Set the acceleration of every vehicle in this frame.

    Sideways, a driver aims at a capped speed in proportion to the distance that is left, and
    reaches it with a bounded acceleration, so that velocities are continuous.
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
    """Move every vehicle on by one frame; nobody drives backwards."""
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
