"""Made-up traffic: the same for a seed, without collisions, and with what the constraints need."""

import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.highway.car_following import HARDEST_BRAKING, following_acceleration
from tacit.highway.synthetic_traffic import FRAME_RATE, LANE_WIDTH, ROAD_LENGTH, Traffic, simulate

SETTINGS = (
    Traffic(seed=1, duration=60.0),
    Traffic(seed=2, duration=60.0, lanes=3, flow=900.0),
    Traffic(seed=3, duration=40.0, lanes=2, flow=2500.0, trucks=0.4),
    Traffic(seed=4, duration=40.0, lanes=4, flow=1500.0, trucks=0.0),
    Traffic(seed=5, duration=30.0, lanes=1, flow=1200.0, trucks=0.5),
)


@pytest.fixture(scope="module")
def everything():
    return [simulate(traffic) for traffic in SETTINGS]


@pytest.fixture(scope="module")
def usual():
    return [simulate(Traffic(seed=s, duration=100.0, lanes=3, flow=900.0)) for s in (11, 12)]


def frames(seen):
    """For each frame the rows that belong to it."""
    order = np.argsort(seen.movement.frame, kind="stable")
    cuts = np.searchsorted(seen.movement.frame[order], np.arange(1, seen.traffic.frames))
    return np.split(order, cuts)


def pairs(seen, rows):
    """Distance along and across, and mean length and width, of all pairs of a frame."""
    vehicle, moved = seen.movement.vehicle[rows], seen.movement
    same = seen.side[vehicle][:, None] == seen.side[vehicle][None]
    first, second = np.nonzero(np.triu(same, 1))
    sizes = [size[vehicle] for size in (seen.length, seen.width)]
    return (
        np.abs(moved.s[rows][first] - moved.s[rows][second]),
        np.abs(moved.d[rows][first] - moved.d[rows][second]),
        *((size[first] + size[second]) / 2 for size in sizes),
    )


def gaps(seen):
    """All gaps between a vehicle and the next in its lane."""
    found = []
    for rows in frames(seen)[:: FRAME_RATE // 5]:
        vehicle, s = seen.movement.vehicle[rows], seen.movement.s[rows]
        lane = seen.lanes[rows] + 10 * seen.side[vehicle]
        order = np.lexsort((s, lane))
        following = np.diff(lane[order]) == 0
        length = seen.length[vehicle][order]
        found.append((np.diff(s[order]) - (length[1:] + length[:-1]) / 2)[following])
    return np.concatenate(found)


def test_a_seed_tells_everything():
    first, again = simulate(SETTINGS[0]), simulate(SETTINGS[0])
    other = simulate(Traffic(seed=9, duration=60.0))
    for one, two in zip(first.movement, again.movement, strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(first.length, again.length)
    assert not np.array_equal(first.movement.s, other.movement.s[: len(first.movement.s)])


def test_boxes_never_overlap(everything):
    for seen in everything:
        for rows in frames(seen):
            along, across, length, width = pairs(seen, rows)
            assert not ((along < length) & (across < width)).any()


def test_boxes_stay_on_the_road(everything):
    for seen in everything:
        half = seen.width[seen.movement.vehicle] / 2
        assert (seen.movement.d + half < 0).all()
        assert (seen.movement.d - half > -seen.traffic.lanes * LANE_WIDTH).all()


def test_vehicles_are_seen_from_front_entering_to_rear_leaving(everything):
    for seen in everything:
        moved = seen.movement
        front = moved.s + seen.length[moved.vehicle] / 2
        rear = moved.s - seen.length[moved.vehicle] / 2
        assert (front > 0).all()
        assert (rear < ROAD_LENGTH).all()
        starts = np.flatnonzero(np.diff(moved.vehicle, prepend=-1))
        ends = np.append(starts[1:], len(moved.s)) - 1
        later = moved.frame[starts] > 0
        assert (front[starts][later] < 2.1).all()
        gone = moved.frame[ends] < seen.traffic.frames - 1
        assert (rear[ends][gone] > ROAD_LENGTH - 2.1).all()


def test_vehicles_are_in_the_order_of_their_first_frames_without_holes(everything):
    for seen in everything:
        moved = seen.movement
        starts = np.flatnonzero(np.diff(moved.vehicle, prepend=-1))
        assert np.array_equal(moved.vehicle[starts], np.arange(len(seen.side)))
        assert (np.diff(moved.frame[starts]) >= 0).all()
        same = np.diff(moved.vehicle) == 0
        assert (np.diff(moved.frame)[same] == 1).all()
        assert moved.frame.min() == 0
        assert moved.frame.max() == seen.traffic.frames - 1


def test_positions_velocities_and_accelerations_belong_together(everything):
    for seen in everything:
        moved = seen.movement
        same = np.diff(moved.vehicle) == 0
        for place, speed, rate in (("s", "vs", "acceleration_s"), ("d", "vd", "acceleration_d")):
            x, v, a = (getattr(moved, name) for name in (place, speed, rate))
            mean = (v[1:] + v[:-1]) / 2 / FRAME_RATE
            assert np.allclose(np.diff(x)[same], mean[same], atol=1e-9)
            assert np.allclose(np.diff(v)[same], a[:-1][same] / FRAME_RATE, atol=1e-9)
        assert moved.vs.min() > 0
        assert np.abs(moved.vd).max() <= 1.2 + 1e-9


def test_some_drive_faster_than_40_and_some_are_nearer_than_20_m(usual):
    speeds = np.concatenate([seen.movement.vs for seen in usual])
    assert 0.01 < np.mean(speeds > 40) < 0.15
    assert speeds.max() < 50.5
    near = np.concatenate([gaps(seen) for seen in usual])
    assert 0.002 < np.mean(near < 20) < 0.1
    assert near.min() > 2


def test_cars_change_lanes_and_trucks_keep_to_the_right(usual):
    assert sum(seen.lane_changes for seen in usual) > 10
    for seen in usual:
        assert (seen.lanes[seen.truck[seen.movement.vehicle]] == seen.traffic.lanes - 1).all()
        assert 0.15 < seen.truck.mean() < 0.35


def test_both_sides_have_as_much_traffic_as_was_asked_for(usual):
    for seen in usual:
        wanted = seen.traffic.flow * seen.traffic.lanes * seen.traffic.duration / 3600
        for side in (0, 1):
            assert 0.75 < np.sum(seen.side == side) / wanted < 1.3


def test_progress_is_told_in_seconds():
    told = []
    simulate(Traffic(duration=20.0), told.append)
    assert told[0] == 0
    assert told == sorted(told)
    assert told[-1] == 20


def test_drivers_brake_for_slower_ones_and_speed_up_on_an_empty_road():
    one = np.ones(1)
    free = following_acceleration(20 * one, 30 * one, one, np.inf * one, one)
    assert free == pytest.approx(1.2 * (1 - (2 / 3) ** 4))
    far, near, touching = (
        following_acceleration(30 * one, 35 * one, one, gap * one, 25 * one)
        for gap in (200.0, 60.0, 0.0)
    )
    assert far > near > touching
    assert touching == -HARDEST_BRAKING


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"duration": 0.0}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"lanes": 0}, "lanes"),
        ({"lanes": 7}, "lanes"),
        ({"flow": 0.0}, "flow"),
        ({"flow": float("inf")}, "flow"),
        ({"trucks": 1.5}, "trucks"),
    ],
)
def test_settings_that_cannot_work_are_named(wrong, named):
    with pytest.raises(ArgumentError, match=named):
        Traffic(**wrong)
