"""Rectangles in plain NumPy, to check the compiled ones against."""

import numpy as np


def corners(s, d, along, across, cos, sin):
    """[4, 2], one after the other around the box."""
    forward, left = np.array([cos, sin]), np.array([-sin, cos])
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    return np.array([s, d]) + [a * along * forward + b * across * left for a, b in signs]


def edge_points(box, number=60):
    """Points on the edges of a box, corners included; `number` on each edge."""
    ends = corners(*box)
    share = np.linspace(0, 1, number, endpoint=False)[:, None]
    return np.concatenate(
        [a + share * (b - a) for a, b in zip(ends, np.roll(ends, -1, 0), strict=True)]
    )


def to_segments(points, ends):
    """Smallest distance of each point to the closed line through `ends`."""
    best = np.full(len(points), np.inf)
    for a, b in zip(ends, np.roll(ends, -1, 0), strict=True):
        share = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        best = np.minimum(best, np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    return best


def inside(points, box, margin=0.0):
    """Which points lie in a box, at least `margin` away from its edges."""
    s, d, along, across, cos, sin = box
    to = points - [s, d]
    return (np.abs(to @ [cos, sin]) <= along - margin) & (
        np.abs(to @ [-sin, cos]) <= across - margin
    )


def share_a_point(one, other, margin=0.0):
    """Whether points on the edges or the centre of one box lie in the other."""
    return any(
        inside(np.vstack([edge_points(a), [a[:2]]]), b, margin).any()
        for a, b in ((one, other), (other, one))
    )


def box_distance(one, other):
    """The smallest distance between two boxes, found point by point on the edges of one."""
    if share_a_point(one, other):
        return 0.0
    return to_segments(edge_points(one), corners(*other)).min()


def vehicle_box(s, d, vs, vd, length, width):
    """A box that points the way it moves."""
    speed = np.hypot(vs, vd)
    cos, sin = (vs / speed, vd / speed) if speed > 0 else (1.0, 0.0)
    return (s, d, length / 2, width / 2, cos, sin)
