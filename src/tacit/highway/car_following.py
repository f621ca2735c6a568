"""How drivers keep their distance (IDM) and when they change lanes (MOBIL)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

MINIMUM_GAP = 2.0
COMFORTABLE_ACCELERATION, COMFORTABLE_BRAKING = 1.2, 2.0
HARDEST_BRAKING = 9.0
POLITENESS, THRESHOLD, SAFE_BRAKING, RIGHT_BIAS = 0.2, 0.2, 3.0, 0.2
REACTION_TIME = 0.3
NOBODY = -1
"""Index of a leader or follower that is not there."""


class Drivers(NamedTuple):
    """The vehicles on the road now, one entry each.

    Fields:
        number: counted over the whole simulation, in the order of entering.
        side: carriageway, 0 or 1.
        truck: whether it is one, else it is a car.
        length, width: of the box, in whole centimetres.
        desired: speed on an empty road.
        headway: time gap that the driver wants.
        offset: of the driver's preferred place from the middle of the lane, to the left.
        s, d: centre of the box, along the road and to the left of its left edge.
        vs, vd, acceleration_s, acceleration_d: their derivatives.
        origin, target: lanes, counted from the left over both sides; they differ during a change.
        rested: seconds since the last change of lane began.
    """

    number: Int[np.ndarray, " vehicles"]
    side: Int[np.ndarray, " vehicles"]
    truck: Bool[np.ndarray, " vehicles"]
    length: Float[np.ndarray, " vehicles"]
    width: Float[np.ndarray, " vehicles"]
    desired: Float[np.ndarray, " vehicles"]
    headway: Float[np.ndarray, " vehicles"]
    offset: Float[np.ndarray, " vehicles"]
    s: Float[np.ndarray, " vehicles"]
    d: Float[np.ndarray, " vehicles"]
    vs: Float[np.ndarray, " vehicles"]
    vd: Float[np.ndarray, " vehicles"]
    acceleration_s: Float[np.ndarray, " vehicles"]
    acceleration_d: Float[np.ndarray, " vehicles"]
    origin: Int[np.ndarray, " vehicles"]
    target: Int[np.ndarray, " vehicles"]
    rested: Float[np.ndarray, " vehicles"]


def following_acceleration(
    speed: Float[np.ndarray, "*vehicles"],
    desired: Float[np.ndarray, "*vehicles"],
    headway: Float[np.ndarray, "*vehicles"],
    gap: Float[np.ndarray, "*vehicles"],
    speed_ahead: Float[np.ndarray, "*vehicles"],
) -> Float[np.ndarray, "*vehicles"]:
    r"""The intelligent driver model (Treiber, Hennecke and Helbing, 2000).

    .. math:: \dot v = a \left[1 - (v / v_0)^4 - (s^* / s)^2\right], \quad
       s^* = s_0 + \max\left(0, v T + \frac{v (v - v_l)}{2 \sqrt{a b}}\right)

    `gap` s is infinite where nobody is ahead. We changed one thing: no driver brakes harder than
    `HARDEST_BRAKING`.
    """
    closing = speed * (speed - speed_ahead)
    root = 2 * np.sqrt(COMFORTABLE_ACCELERATION * COMFORTABLE_BRAKING)
    wanted = MINIMUM_GAP + np.maximum(0, speed * headway + closing / root)
    free = 1 - (speed / desired) ** 4
    acceleration = COMFORTABLE_ACCELERATION * (free - (wanted / np.maximum(gap, 0.1)) ** 2)
    return np.maximum(acceleration, -HARDEST_BRAKING)


def acceleration_behind(
    drivers: Drivers, followers: Int[np.ndarray, " pairs"], leaders: Int[np.ndarray, " pairs"]
) -> Float[np.ndarray, " pairs"]:
    """Acceleration of each follower if that leader were ahead; 0 where there is no follower."""
    distance = drivers.s[leaders] - drivers.s[followers]
    gap = distance - (drivers.length[leaders] + drivers.length[followers]) / 2
    acceleration = following_acceleration(
        drivers.vs[followers],
        drivers.desired[followers],
        drivers.headway[followers],
        np.where(leaders == NOBODY, np.inf, gap),
        drivers.vs[leaders],
    )
    return np.where(followers == NOBODY, 0.0, acceleration)


def nearest(
    drivers: Drivers, together: Bool[np.ndarray, "vehicles vehicles"]
) -> tuple[Int[np.ndarray, " vehicles"], Int[np.ndarray, " vehicles"]]:
    """For each vehicle the next one ahead and behind among those that `together` marks."""
    if len(drivers.s) == 0:
        return np.zeros(0, int), np.zeros(0, int)
    distance = drivers.s[None, :] - drivers.s[:, None]
    order = drivers.number[None, :] > drivers.number[:, None]
    behind = (distance < 0) | ((distance == 0) & order)
    ahead = np.where(together & ~behind, distance, np.inf)
    back = np.where(together & behind, -distance, np.inf)
    leader, follower = ahead.argmin(axis=1), back.argmin(axis=1)
    return (
        np.where(np.isinf(ahead.min(axis=1)), NOBODY, leader),
        np.where(np.isinf(back.min(axis=1)), NOBODY, follower),
    )


def occupants(
    drivers: Drivers, lane: Int[np.ndarray, " vehicles"]
) -> Bool[np.ndarray, "vehicles vehicles"]:
    """[i, j]: whether j is, even partly, in the lane that is asked about for i."""
    found = (drivers.origin[None, :] == lane[:, None]) | (drivers.target[None, :] == lane[:, None])
    np.fill_diagonal(found, False)
    return found


def leaders(drivers: Drivers) -> Int[np.ndarray, " vehicles"]:
    """The next vehicle ahead in either of the lanes that a vehicle is in."""
    together = occupants(drivers, drivers.origin) | occupants(drivers, drivers.target)
    return nearest(drivers, together)[0]


def change_incentive(drivers: Drivers, step: int, lanes: int) -> Float[np.ndarray, " vehicles"]:
    r"""MOBIL (Kesting, Treiber and Helbing, 2007): what each driver gains by changing lanes.

    .. math:: \tilde a_c - a_c + p \, (\tilde a_n - a_n + \tilde a_o - a_o)
       - \Delta a_{th} \mp \Delta a_{bias}

    with c the driver, n the new and o the old follower. `step` is -1 for a change to the left and
    1 to the right, `lanes` the number on each side. A driver changes if this is above 0; it is
    minus infinity where a change is impossible or someone would have to brake too hard. Trucks
    stay where they are.
    """
    own = np.arange(len(drivers.s))
    lane = drivers.target + step
    possible = (
        (drivers.origin == drivers.target)
        & ~drivers.truck
        & (lane // lanes == drivers.side)
        & (lane >= 0)
    )
    old_leader, old_follower = nearest(drivers, occupants(drivers, drivers.target))
    new_leader, new_follower = nearest(drivers, occupants(drivers, lane))
    mine = acceleration_behind(drivers, own, new_leader)
    theirs = acceleration_behind(drivers, new_follower, own)
    others = (
        theirs
        - np.where(new_follower == NOBODY, 0, drivers.acceleration_s[new_follower])
        + acceleration_behind(drivers, old_follower, old_leader)
        - acceleration_behind(drivers, old_follower, own)
    )
    gain = mine - acceleration_behind(drivers, own, old_leader) + POLITENESS * others
    gain += step * RIGHT_BIAS - THRESHOLD
    safe = (mine >= -SAFE_BRAKING) & (theirs >= -SAFE_BRAKING)
    room = room_between(drivers, own, new_leader) & room_between(drivers, new_follower, own)
    return np.where(possible & safe & room, gain, -np.inf)


def room_between(
    drivers: Drivers, followers: Int[np.ndarray, " pairs"], leaders: Int[np.ndarray, " pairs"]
) -> Bool[np.ndarray, " pairs"]:
    """Whether the gap leaves time to react, also where the one behind is the slower one."""
    distance = drivers.s[leaders] - drivers.s[followers]
    gap = distance - (drivers.length[leaders] + drivers.length[followers]) / 2
    enough = gap >= MINIMUM_GAP + REACTION_TIME * drivers.vs[followers]
    return enough | (followers == NOBODY) | (leaders == NOBODY)
