"""Boxes and routes, as found point by point, and what does not depend on the view."""

import math

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_geometry import corners, edge_points, share_a_point, to_segments

from tacit.highway.geometry import (
    Box,
    Route,
    distance,
    find_place,
    gap_on_axes,
    heading,
    overlap,
    point_at,
    swept,
)

measured = jax.jit(distance)
touching = jax.jit(overlap)
cover = jax.jit(swept)

sizes = st.floats(0.1, 8)
places = st.floats(-12, 12)


@st.composite
def boxes(draw):
    angle = draw(st.floats(-math.pi, math.pi))
    place = draw(places), draw(places), draw(sizes), draw(sizes)
    return Box(*map(np.float32, (*place, math.cos(angle), math.sin(angle))))


def turned(box, angle, s, d):
    """The same box after turning everything by an angle and moving it."""
    cos, sin = math.cos(angle), math.sin(angle)
    return Box(
        np.float32(s + box.s * cos - box.d * sin),
        np.float32(d + box.s * sin + box.d * cos),
        box.along,
        box.across,
        np.float32(box.cos * cos - box.sin * sin),
        np.float32(box.cos * sin + box.sin * cos),
    )


def spacing(box):
    """Largest distance of an edge's points from each other in `edge_points`."""
    return 2 * max(box.along, box.across) / 60


@settings(max_examples=150, deadline=None)
@given(boxes(), boxes())
def test_the_distance_is_the_smallest_between_any_two_points_of_the_edges(one, other):
    found = float(measured(one, other))
    assert found >= 0
    if share_a_point(one, other):
        assert found == 0
        return
    # Points between the sampled ones can be nearer by half of their spacing, no more.
    sampled = to_segments(edge_points(one), corners(*other)).min()
    if found == 0:
        assert sampled <= spacing(one)
    else:
        assert sampled - spacing(one) <= found <= sampled + 1e-4


@settings(max_examples=150, deadline=None)
@given(boxes(), boxes())
def test_boxes_overlap_where_they_share_a_point_and_nowhere_else(one, other):
    found = bool(touching(one, other))
    if share_a_point(one, other, margin=1e-4):
        assert found
    if to_segments(edge_points(one), corners(*other)).min() > spacing(one):
        assert found == share_a_point(one, other)


@settings(max_examples=100, deadline=None)
@given(boxes(), boxes(), st.floats(-math.pi, math.pi), places, places)
def test_distance_and_overlap_depend_neither_on_the_order_nor_on_the_view(one, other, angle, s, d):
    here = float(measured(one, other))
    assert math.isclose(here, float(measured(other, one)), abs_tol=1e-4)
    there = float(measured(turned(one, angle, s, d), turned(other, angle, s, d)))
    # Where two boxes just touch, rounding decides which side of the border they are on.
    assert math.isclose(here, there, abs_tol=2e-3)
    assert bool(touching(one, other)) == bool(touching(other, one))


@settings(max_examples=100, deadline=None)
@given(boxes(), boxes())
def test_a_swept_box_contains_both_boxes_and_is_no_larger_than_it_must_be(before, after):
    found = cover(before, after)
    assert float(found.cos) == after.cos
    assert float(found.sin) == after.sin
    all_corners = np.concatenate([corners(*before), corners(*after)])
    to = all_corners - [found.s, found.d]
    forward = to @ np.array([found.cos, found.sin])
    left = to @ np.array([-found.sin, found.cos])
    for reached, half in ((forward, found.along), (left, found.across)):
        np.testing.assert_allclose([reached.max(), -reached.min()], half, atol=1e-4)


@settings(max_examples=50, deadline=None)
@given(boxes())
def test_sweeping_without_moving_changes_nothing(box):
    assume(min(box.along, box.across) > 0)
    np.testing.assert_allclose(np.array(cover(box, box)), np.array(box), atol=1e-5)


def test_known_distances():
    def box(s, d, angle=0.0, along=2.0, across=1.0):
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        return Box(*map(np.float32, (s, d, along, across, cos, sin)))

    here = box(0, 0)
    assert float(measured(here, box(10, 0))) == 6
    assert float(measured(here, box(0, 5))) == 3
    assert float(measured(here, box(7, 6))) == 5
    np.testing.assert_allclose(measured(here, box(10, 0, 90)), 7, atol=1e-5)
    # The corner of a square that stands on its tip.
    np.testing.assert_allclose(
        measured(here, box(10, 0, 45, across=2)), 8 - 2 * math.sqrt(2), atol=1e-5
    )
    assert float(measured(here, box(0.5, 0.2, 30, along=0.1, across=0.1))) == 0
    assert bool(touching(here, box(0.5, 0.2, 30, along=0.1, across=0.1)))
    # Nothing but the axes of the turned one separates these two.
    tipped = box(3.2, 2.2, -45, along=4.0, across=0.5)
    assert float(gap_on_axes(here, tipped)) < 0
    assert float(gap_on_axes(tipped, here)) > 0
    assert not bool(touching(here, tipped))


def test_many_boxes_at_once_equal_one_by_one():
    random = np.random.default_rng(0)
    fields = random.uniform(-8, 8, (2, 6, 40)).astype(np.float32)
    angle = random.uniform(-3, 3, (2, 40))
    fields[:, 2:4] = np.abs(fields[:, 2:4])
    fields[:, 4], fields[:, 5] = np.cos(angle), np.sin(angle)
    one, other = Box(*fields[0]), Box(*fields[1])
    alone = [measured(Box(*(f[k] for f in one)), Box(*(f[k] for f in other))) for k in range(40)]
    np.testing.assert_allclose(measured(one, other), alone, atol=1e-5)


def test_what_stands_still_points_along_the_road():
    cos, sin = heading(np.float32([0, 3, -2, 0]), np.float32([0, 4, 0, -1]))
    np.testing.assert_allclose(cos, [1, 0.6, -1, 0], atol=1e-6)
    np.testing.assert_allclose(sin, [0, 0.8, 0, -1], atol=1e-6)


placed = jax.jit(find_place)
points = jax.jit(point_at)


def route_of(s, d):
    return Route(np.float32(s), np.float32(d))


def corners_of(route):
    """Distances travelled up to the ends of the three pieces."""
    return np.hypot(np.diff(np.asarray(route.s, float)), np.diff(route.d)).cumsum()


def points_along(route, number=4000):
    """Points of the route with the distance travelled up to them."""
    s, d = np.asarray(route.s, float), np.asarray(route.d, float)
    travelled = np.append(0, corners_of(route))
    along = np.union1d(np.linspace(0, travelled[-1], number), travelled)
    return along, np.interp(along, travelled, s), np.interp(along, travelled, d)


@st.composite
def routes(draw):
    steps = [draw(st.floats(2, 150)) for _ in range(3)]
    start = draw(st.floats(-460, 0))
    first, last = draw(st.sampled_from([(0, 0), (0, -3.75), (-3.75, 0), (3.5, -7)]))
    return route_of(start + np.cumsum([0, *steps]), [first, first, last, last])


@settings(max_examples=100, deadline=None)
@given(routes(), st.floats(-0.2, 1.2), st.floats(-12, 12))
def test_the_place_is_that_of_the_nearest_point(route, share, d):
    s = np.float32(route.s[0] + share * (route.s[3] - route.s[0]))
    d = np.float32(d)
    place = placed(route, s, d)
    along, line_s, line_d = points_along(route)
    away = np.hypot(line_s - s, line_d - d)
    there = np.interp(place.along, along, line_s), np.interp(place.along, along, line_d)
    # The nearest of the points may be half of their distance away.
    close = np.diff(along).max() / 2 + 1e-3
    np.testing.assert_allclose(np.hypot(*np.subtract(there, (s, d))), away.min(), atol=close)
    if abs(place.along - np.append(corners_of(route), 0)).min() > 0.1:
        # On a piece, not at its end: the foot of the perpendicular.
        assert abs(place.left) == pytest.approx(away.min(), abs=close)
    expected = max(route.s[0] - s, s - route.s[3], 0)
    np.testing.assert_allclose(place.beyond, expected, atol=1e-3)


@pytest.mark.parametrize(("d", "left"), [(1.5, 1.5), (-2.0, -2.0), (0.0, 0.0)])
def test_left_of_the_route_is_positive(d, left):
    route = route_of([0, 100, 200, 300], [0, 0, 0, 0])
    place = placed(route, np.float32(250), np.float32(d))
    np.testing.assert_allclose(place, [250, left, 0], atol=1e-4)


def test_left_of_a_change_of_lane_is_measured_across_it():
    route = route_of([0, 100, 103, 300], [0, 0, -4, -4])
    # From the middle of the change 2.5 m to its left, which is (4, 3) / 5.
    place = placed(route, np.float32(101.5 + 2), np.float32(-2 + 1.5))
    np.testing.assert_allclose(place, [102.5, 2.5, 0], atol=1e-4)


def test_before_and_after_the_route_the_offset_stays_that_of_its_ends():
    route = route_of([0, 100, 120, 300], [0, 0, -4, -4])
    np.testing.assert_allclose(placed(route, np.float32(-7), np.float32(1)), [0, 1, 7], atol=1e-4)
    end = 100 + np.hypot(20, 4) + 180
    past = placed(route, np.float32(305), np.float32(-3))
    np.testing.assert_allclose(past, [end, 1, 5], atol=1e-3)


@pytest.mark.parametrize("s", [0.0, 0.001, 30.0, -3.0])
def test_a_route_that_changes_lane_where_the_road_begins_has_offsets_there(s):
    route = route_of([0, 0, 100, 300], [0, 0, 0, 0])
    place = placed(route, np.float32(s), np.float32(1.5))
    np.testing.assert_allclose(place, [max(s, 0), 1.5, max(-s, 0)], atol=1e-4)


@settings(max_examples=50, deadline=None)
@given(routes(), st.lists(st.floats(-1000, 1000), min_size=5, max_size=5))
def test_points_lie_as_far_along_as_was_asked_cut_to_the_ends(route, asked):
    along, line_s, line_d = points_along(route)
    s, d, angle = points(route, np.float32(asked))
    cut = np.clip(asked, 0, along[-1])
    np.testing.assert_allclose(s, np.interp(cut, along, line_s), atol=0.01)
    np.testing.assert_allclose(d, np.interp(cut, along, line_d), atol=0.01)
    change = np.arctan2(route.d[2] - route.d[1], route.s[2] - route.s[1])
    borders = corners_of(route)
    for there, turn in zip(cut, np.asarray(angle), strict=True):
        if abs(there - borders[:2]).min() > 0.01:
            on_change = borders[0] < there < borders[1]
            assert turn == pytest.approx(change if on_change else 0, abs=1e-4)
