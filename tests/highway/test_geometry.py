"""Boxes: distances and overlaps as found point by point, and what does not depend on the view."""

import math

import jax
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_geometry import corners, edge_points, share_a_point, to_segments

from tacit.highway.boxes import Box, distance, gap_on_axes, heading, overlap, swept

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
