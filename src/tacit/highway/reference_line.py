"""A smooth line along a road, fitted to the headings of vehicles, and places relative to it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

DEGREE = 3
STEEPEST = np.pi / 4
ROUNDS = 8
"""Of trimming outliers in the fit, and of Newton's method in the projection."""
MOST_ROWS = 50_000


@dataclass(frozen=True)
class ReferenceLine:
    """The line w(u), in axes turned by `angle` around `origin` and cut where vehicles are seen.

    Fields:
        origin: x and y where u = w = 0.
        angle: of the u axis.
        scale: u is divided by it in the polynomials.
        place: coefficients of w(u), lowest degree first; w(0) = 0.
        u, length: distance along the line at some u.
    """

    origin: tuple[float, float]
    angle: float
    scale: float
    place: Float[np.ndarray, " coefficients"]
    u: Float[np.ndarray, " points"]
    length: Float[np.ndarray, " points"]

    def project(
        self, x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Distance along the line, distance to its left, and heading of the line there.

        The foot f of a point (u, w) solves (u - f) + (w - w(f)) w'(f) = 0.
        """
        u, w = turned(x - self.origin[0], y - self.origin[1], self.angle)
        foot = u.clip(self.u[0], self.u[-1])
        for _ in range(ROUNDS):
            away, slope = w - self.value(foot), self.value(foot, 1)
            error = (u - foot) + away * slope
            # Where the line bends away, Newton's step would lead to a worse point.
            bend = np.maximum(1 + slope**2 - away * self.value(foot, 2), 0.5)
            foot = (foot + error / bend).clip(self.u[0], self.u[-1])
        slope = self.value(foot, 1)
        steep = np.sqrt(1 + slope**2)
        d = ((w - self.value(foot)) - (u - foot) * slope) / steep
        beyond = ((u - foot) + (w - self.value(foot)) * slope) / steep
        return np.interp(foot, self.u, self.length) + beyond, d, self.angle + np.arctan(slope)

    def value(self, u: Float[np.ndarray, " n"], order: int = 0) -> Float[np.ndarray, " n"]:
        """w(u) or one of its derivatives."""
        coefficients = np.polynomial.polynomial.polyder(self.place, order)
        return np.polynomial.polynomial.polyval(u / self.scale, coefficients) / self.scale**order


def fit_line(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], heading: Float[np.ndarray, " n"]
) -> ReferenceLine:
    """The line whose heading is that of most vehicles at each place."""
    angle = mean_heading(heading)
    origin = float(np.median(x)), float(np.median(y))
    u, _ = turned(x - origin[0], y - origin[1], angle)
    scale = max(float(np.abs(u).max()), 1.0)
    turn = heading_difference(heading, angle)
    every = max(1, len(u) // MOST_ROWS)
    usable = np.flatnonzero(np.abs(turn) < STEEPEST)[::every]
    powers = np.vander(u[usable] / scale, DEGREE + 1, increasing=True)
    slope = trimmed_fit(powers, np.tan(turn[usable]))
    place = np.polynomial.polynomial.polyint(slope) * scale
    points = np.linspace(u.min(), u.max(), max(2, int(np.ptp(u)) + 2))
    steep = np.sqrt(1 + np.polynomial.polynomial.polyval(points / scale, slope) ** 2)
    pieces = np.diff(points) * (steep[1:] + steep[:-1]) / 2
    length = np.concatenate([[0.0], np.cumsum(pieces)])
    return ReferenceLine(origin, angle, scale, place, points, length)


def trimmed_fit(powers: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Least squares, repeated without the values far from the last fit."""
    kept = np.ones(len(slope), bool)
    result = np.zeros(powers.shape[1])
    for _ in range(ROUNDS):
        result = np.linalg.lstsq(powers[kept], slope[kept], rcond=1e-6)[0]
        error = np.abs(slope - powers @ result)
        # 2.5 standard deviations of a normal distribution, from its median.
        kept = error <= max(2.5 * 1.4826 * float(np.median(error)), 0.01)
    return result


def turned(x: np.ndarray, y: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in axes turned to the left by `angle`."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * x + sine * y, cosine * y - sine * x


def mean_heading(angles: Float[np.ndarray, " n"]) -> float:
    """The mean on the circle."""
    return float(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))


def heading_difference(one: np.ndarray, other: np.ndarray | float) -> np.ndarray:
    """The turn from `other` to `one`, between -pi and pi."""
    return (one - other + np.pi) % (2 * np.pi) - np.pi
