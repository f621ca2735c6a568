"""Routes: places beside them as found by looking along the whole line."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.highway.route import Route, find_place, point_at

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
