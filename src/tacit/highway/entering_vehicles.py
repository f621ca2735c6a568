"""Who enters a made-up motorway, and when."""

import numpy as np
from jaxtyping import Float

from tacit.highway.car_following import (
    COMFORTABLE_BRAKING,
    Drivers,
    following_acceleration,
)
from tacit.highway.traffic import ENTRANCE, LANE_WIDTH, Traffic

LANE_SPEEDS, LANE_SPREAD = (30.0, 35.0, 38.0), 3.0
"""Desired speed of cars in the right lane, in between, and in the left lane."""
TRUCK_SPEED, TRUCK_SPREAD = 24.0, 1.0
FAST_SHARE, FAST_SPEEDS = 0.12, (42.0, 50.0)
"""Of cars, all of which enter in the left lane."""
HEADWAYS = (0.9, 1.8)
PUSHY_SHARE, PUSHY_HEADWAYS = 0.35, (0.3, 0.6)
"""Of cars, besides all fast ones: without them, gaps are hardly ever below 20 m."""
LANE_FLOWS = (0.6, 1.4)
"""Flow of the left and of the right lane, as multiples of the mean."""
SHORTEST_HEADWAY = 1.0


class Entries:
    """Poisson entries in each lane, with a shortest headway.

    Fields:
        traffic: the settings.
        random: of times and drivers.
        times: of the next entry in each lane of both sides.
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
    """No vehicles."""
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
    """The vehicle at a speed that suits the one ahead; None as long as there is no room.

    Close behind another vehicle it enters no faster than that one; and only if it need not brake
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
