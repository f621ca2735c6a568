"""The six neighbours, found by a plain loop over random traffic."""

import jax
import numpy as np
import pytest
from plain_geometry import box_distance, vehicle_box

from tacit.highway.geometry import Box
from tacit.highway.neighbours import SIGHT, find_neighbours, lane_of
from tacit.highway.recording import CAR, TRUCK

BOUNDARIES = np.float32([7, 3.5, 0, -3.5])
LANES = len(BOUNDARIES) - 1
PLACES = ((-1, True), (0, True), (1, True), (-1, False), (0, False), (1, False))
"""Side and whether behind, in the order of the observation."""


def plain_lane(d):
    lane = 0
    for number, boundary in enumerate(BOUNDARIES[:-1]):
        if d < boundary:
            lane = number
    return lane


@jax.jit
def look(ego, vs, frame):
    lane = lane_of(BOUNDARIES, np.int32(LANES), ego.d)
    lanes = lane_of(BOUNDARIES, np.int32(LANES), frame[:, 1])
    return find_neighbours(ego, vs, lane, frame, lanes)


def ego_at(s, d, vs=30.0, vd=0.0):
    return Box(*map(np.float32, vehicle_box(s, d, vs, vd, 4.508, 1.61))), np.float32(vs)


def row(s, d, vs=25.0, vd=0.0, length=4.5, width=1.8, kind=CAR):
    return [s, d, vs, vd, length, width, kind]


def frame_of(*rows, slots=12):
    frame = np.zeros((slots, 7), np.float32)
    frame[: len(rows)] = np.reshape(rows, (-1, 7))
    return frame


def plain_search(ego, vs, frame):
    """approach, gap, kind of the six places."""
    found = []
    half_s = ego.along * abs(ego.cos) + ego.across * abs(ego.sin)
    half_d = ego.along * abs(ego.sin) + ego.across * abs(ego.cos)
    for side, behind in PLACES:
        best, nearest = (0.0, SIGHT, 0.0), np.inf
        for s, d, other_vs, other_vd, length, width, kind in frame.astype(float):
            if kind == 0 or np.hypot(s - ego.s, d - ego.d) > SIGHT:
                continue
            if plain_lane(d) - plain_lane(ego.d) != side or (s < ego.s) != behind:
                continue
            # Who crawls points along the road.
            box = vehicle_box(s, d, max(other_vs, 1.0), other_vd, length, width)
            along = box[2] * abs(box[4]) + box[3] * abs(box[5])
            across = box[2] * abs(box[5]) + box[3] * abs(box[4])
            gap_s = max(abs(s - ego.s) - along - half_s, 0)
            gap_d = max(abs(d - ego.d) - across - half_d, 0)
            order = np.hypot(gap_s, gap_d) + 1e-3 * abs(s - ego.s)
            if order < nearest:
                nearest = order
                seen = other_vs * ego.cos + other_vd * ego.sin
                growing = vs - seen if behind else seen - vs
                best = (growing, box_distance(tuple(map(float, ego)), box), kind)
        found.append(best)
    return np.array(found).T


def test_neighbours_are_those_of_a_plain_loop():
    random = np.random.default_rng(5)
    filled = np.zeros(6)
    for _ in range(120):
        frame = frame_of()
        taken = random.random(len(frame)) < random.choice([0.2, 0.8])
        frame[:, 0] = random.uniform(-150, 150, len(frame))
        frame[:, 1] = random.uniform(-5, 9, len(frame))
        frame[:, 2] = random.uniform(0, 45, len(frame))
        frame[:, 3] = random.uniform(-2, 2, len(frame))
        frame[:, 4] = random.uniform(3, 16, len(frame))
        frame[:, 5] = random.uniform(1.5, 2.6, len(frame))
        frame[:, 6] = random.choice([CAR, TRUCK], len(frame))
        frame[~taken] = 0
        ego, vs = ego_at(0.0, random.uniform(-4, 8), random.uniform(-5, 45), random.uniform(-3, 3))
        found = look(ego, vs, frame)
        expected = plain_search(ego, vs, frame)
        np.testing.assert_allclose(found.approach, expected[0], atol=1e-3)
        np.testing.assert_allclose(found.gap, expected[1], atol=0.02)
        np.testing.assert_array_equal(found.kind, expected[2])
        filled += expected[2] > 0
    # Each place was held by somebody now and then, and by nobody now and then.
    assert (filled > 10).all()
    assert (filled < 110).all()


def test_where_nobody_is_the_gap_is_100_and_the_rest_0():
    found = look(*ego_at(0, 1.75), frame_of())
    np.testing.assert_array_equal(found.gap, 100)
    np.testing.assert_array_equal(found.approach, 0)
    np.testing.assert_array_equal(found.kind, 0)


@pytest.mark.parametrize(("d", "empty"), [(5.25, (0, 3)), (-1.75, (2, 5))])
def test_beside_the_edges_of_the_road_nobody_drives(d, empty):
    everywhere = [row(s, lane) for s in (-20, 20) for lane in (5.25, 1.75, -1.75)]
    found = look(*ego_at(0, d), frame_of(*everywhere))
    kinds = np.ones(6)
    kinds[list(empty)] = 0
    np.testing.assert_array_equal(found.kind, kinds)


def test_sight_ends_100_metres_from_centre_to_centre():
    near, far = row(99.9, 1.75), row(100.1, 1.75)
    found = look(*ego_at(0, 1.75), frame_of(near))
    assert found.gap[4] == pytest.approx(99.9 - (4.5 + 4.508) / 2, abs=1e-3)
    assert look(*ego_at(0, 1.75), frame_of(far)).gap[4] == 100


def test_the_gap_grows_where_the_others_are_faster_ahead_or_slower_behind():
    rows = [row(20, 1.75, vs=33), row(-20, 1.75, vs=26), row(20, 5.25, vs=28)]
    found = look(*ego_at(0, 1.75, vs=30), frame_of(*rows))
    np.testing.assert_allclose(found.approach, [0, 4, 0, -2, 3, 0], atol=1e-4)


def test_who_is_exactly_beside_the_ego_counts_as_ahead():
    found = look(*ego_at(0, 1.75), frame_of(row(0, 5.25)))
    np.testing.assert_array_equal(found.kind, [0, 0, 0, 1, 0, 0])
    assert found.gap[3] == pytest.approx(3.5 - (1.61 + 1.8) / 2, abs=1e-4)


def test_two_vehicles_at_the_same_place_count_as_one():
    """Recordings hold doubled vehicles; their sum would be twice as far away and twice as fast."""
    one = look(*ego_at(300, 1.75), frame_of(row(330, 1.75, kind=TRUCK)))
    two = look(*ego_at(300, 1.75), frame_of(row(330, 1.75, kind=TRUCK), row(330, 1.75)))
    for field, same in zip(one, two, strict=True):
        np.testing.assert_array_equal(field, same)
    assert two.kind[4] == TRUCK


def test_a_marking_belongs_to_the_lane_on_its_left_and_the_roadside_to_the_nearest_lane():
    d = np.float32([20, 7, 3.6, 3.5, 3.4, 0, -0.1, -3.5, -30])
    lanes = np.asarray(lane_of(BOUNDARIES, np.int32(LANES), d))
    np.testing.assert_array_equal(lanes, [0, 0, 0, 0, 1, 1, 2, 2, 2])
    padded = np.float32([*BOUNDARIES, -1e9, -1e9])
    np.testing.assert_array_equal(lane_of(padded, np.int32(LANES), d), lanes)
